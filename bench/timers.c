/*
 * What a timer costs, and how late it is: N entities that tick every millisecond, beside one thread that
 *waits by epoll for N timerfds and reads each that is due. Both wait for the same times, spread over the
 * millisecond, and do the same in a tick: they note how late it is. Rounds of both alternate in one process.
 *
 *	timers [--quick]                 all rows
 *	timers loop|weir TIMERS WORKERS  one way alone for three seconds, for strace -f -c
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <weir.h>

#include "program.h"

enum { TIMERS_MAX = 1000, ROUNDS = 7, PERIOD_NS = 1000000, LEAD_NS = 20000000 };

/* --- what both do --- */

/* Each timer's own; 64 bytes, as several threads tick. */
struct timer {
	_Alignas(64) int64_t due;
	size_t ticks;
	int32_t *late; /* of its ticks, in ns */
};

static struct timer timers[TIMERS_MAX];
static size_t timer_count, ticks_each;

static void timers_begin(int64_t at)
{
	for (size_t i = 0; i < timer_count; i++) {
		timers[i].due = at + (int64_t)(i * PERIOD_NS / timer_count);
		timers[i].ticks = 0;
	}
}

/* Returns false with the last tick. */
static bool timer_tick(struct timer *timer)
{
	timer->late[timer->ticks] = (int32_t)(now() - timer->due);
	timer->due += PERIOD_NS;
	return ++timer->ticks < ticks_each;
}

/* --- timerfds --- */

static int timer_open(int set, struct timer *timer)
{
	struct itimerspec spec = {{0, PERIOD_NS}, {timer->due / 1000000000, timer->due % 1000000000}};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = timer};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL) ||
	    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event)) {
		perror("timerfd");
		exit(1);
	}
	return fd;
}

static void run_loop(void)
{
	static int fds[TIMERS_MAX];
	struct epoll_event events[64];
	int set = epoll_create1(0);
	size_t left = timer_count;
	uint64_t times;

	for (size_t i = 0; i < timer_count; i++)
		fds[i] = timer_open(set, &timers[i]);
	while (left) {
		int count = epoll_wait(set, events, 64, -1);
		for (int k = 0; k < count; k++) {
			struct timer *timer = events[k].data.ptr;
			int fd = fds[timer - timers];
			if (read(fd, &times, sizeof times) != sizeof times)
				continue;
			while (times-- && timer_tick(timer))
				;
			if (timer->ticks < ticks_each)
				continue;
			epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL);
			left--;
		}
	}
	for (size_t i = 0; i < timer_count; i++)
		close(fds[i]);
	close(set);
}

/* --- weir --- */

struct ticker {
	struct timer *timer;
};

static weir_status ticker_start(weir_context *context, void *state, const weir_values *values)
{
	(void)context;
	((struct ticker *)state)->timer = &timers[weir_values_int(values, "timer")];
	return WEIR_OK;
}

static weir_status ticker_compute(weir_context *context, void *state)
{
	if (!timer_tick(((struct ticker *)state)->timer))
		weir_context_finish(context);
	return WEIR_OK;
}

/* As the condition periodic, on a grid that the program knows. */
static weir_status due_start(void *state, const weir_values *values)
{
	((struct ticker *)state)->timer = &timers[weir_values_int(values, "timer")];
	return WEIR_OK;
}

static void due_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct ticker *self = state;

	if (weir_view_now(view) >= self->timer->due) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "it is not due yet");
	weir_verdict_until(verdict, self->timer->due);
}

static const weir_parameter parameters[] = {
	{.size = sizeof(weir_parameter), .name = "timer", .type = WEIR_TYPE_INT, .max = TIMERS_MAX},
	{.name = NULL},
};
static const weir_operator ticker = {.size = sizeof(weir_operator),
				     .name = "ticker",
				     .state_size = sizeof(struct ticker),
				     .parameters = parameters,
				     .start = ticker_start,
				     .compute = ticker_compute};
static const weir_condition due = {.size = sizeof(weir_condition),
				   .name = "due",
				   .state_size = sizeof(struct ticker),
				   .parameters = parameters,
				   .start = due_start,
				   .ask = due_ask};

static void put(weir_description *description, size_t i, const char *key, const char *format)
{
	char place[64], value[96];

	snprintf(place, sizeof place, "/entities/%zu/%s", i, key);
	snprintf(value, sizeof value, format, i);
	must(weir_description_put(description, place, value), place);
}

static weir_description *describe(void)
{
	weir_description *description = NULL;
	char name[32];

	must(weir_description_create(&description), "description");
	for (size_t i = 0; i < timer_count; i++) {
		snprintf(name, sizeof name, "t%zu", i);
		must(weir_description_add_entity(description, name, "ticker"), "entity");
		put(description, i, "parameters", "{\"timer\": %zu}");
		put(description, i, "conditions", "[{\"type\": \"due\", \"timer\": %zu}]");
	}
	return description;
}

static weir_registry *registry;
static weir_graph *graph;
static weir_scheduler *scheduler;

static void weir_begin(int workers)
{
	weir_scheduler_options options = {.size = sizeof options, .workers = workers, .backend = "host"};
	weir_description *description;

	must(weir_registry_create(&registry), "registry");
	must(weir_registry_add_operator(registry, &ticker), "operator");
	must(weir_registry_add_condition(registry, &due), "condition");
	description = describe();
	must(weir_graph_create(registry, description, &graph), "graph");
	weir_description_destroy(description);
	must(weir_scheduler_create(graph, &options, &scheduler), "scheduler");
}

static void run_weir(void)
{
	must(weir_scheduler_run(scheduler), "run");
}

static void weir_end(void)
{
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
	weir_registry_destroy(registry);
}

/* --- measuring --- */

struct figures {
	double cpu, p50, p99, switches; /* of a tick, in us; switches: how often a thread went to sleep */
};

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

static int compare_late(const void *a, const void *b)
{
	return *(const int32_t *)a - *(const int32_t *)b;
}

static double cpu_us(const struct rusage *use)
{
	return (double)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) * 1e6 +
	       (double)(use->ru_utime.tv_usec + use->ru_stime.tv_usec);
}

static struct figures measure(void (*run)(void), int32_t *late)
{
	struct rusage before, after;
	size_t ticks = timer_count * ticks_each;
	struct figures figures;

	timers_begin(now() + LEAD_NS);
	getrusage(RUSAGE_SELF, &before);
	run();
	getrusage(RUSAGE_SELF, &after);
	qsort(late, ticks, sizeof *late, compare_late);
	figures.cpu = (cpu_us(&after) - cpu_us(&before)) / (double)ticks;
	figures.switches = (double)(after.ru_nvcsw - before.ru_nvcsw) / (double)ticks;
	figures.p50 = late[ticks / 2] / 1e3;
	figures.p99 = late[ticks * 99 / 100] / 1e3;
	return figures;
}

/* Each figure is the median of its rounds. */
static struct figures median(const struct figures *rounds)
{
	struct figures result;
	double values[ROUNDS], *places[] = {&result.cpu, &result.p50, &result.p99, &result.switches};

	for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
		for (int i = 0; i < ROUNDS; i++)
			values[i] = (&rounds[i].cpu)[k];
		qsort(values, ROUNDS, sizeof *values, compare);
		*places[k] = values[ROUNDS / 2];
	}
	return result;
}

static int32_t *late_create(void)
{
	int32_t *late = malloc(timer_count * ticks_each * sizeof *late);

	must(late ? WEIR_OK : WEIR_E_NOMEM, "samples");
	for (size_t i = 0; i < timer_count; i++)
		timers[i].late = late + i * ticks_each;
	return late;
}

static void print(const char *what, struct figures figures, double floor)
{
	printf("%5zu  %-16s %8.2f %7.2f %9.1f %9.1f %9.2f\n", timer_count, what, figures.cpu,
	       figures.cpu / floor, figures.p50, figures.p99, figures.switches);
}

static void row(size_t count, size_t ticks, int workers)
{
	struct figures loops[ROUNDS], weirs[ROUNDS], loop;
	int32_t *late;
	char text[32];

	timer_count = count;
	ticks_each = ticks;
	late = late_create();
	weir_begin(workers);
	for (int i = 0; i < ROUNDS; i++) {
		loops[i] = measure(run_loop, late);
		weirs[i] = measure(run_weir, late);
	}
	weir_end();
	free(late);
	loop = median(loops);
	snprintf(text, sizeof text, "weir, %d worker%s", workers, workers > 1 ? "s" : "");
	print("timerfd + epoll", loop, loop.cpu);
	print(text, median(weirs), loop.cpu);
}

static int run_alone(char **arguments)
{
	bool is_weir = !strcmp(arguments[1], "weir");
	int32_t *late;

	timer_count = strtoul(arguments[2], NULL, 10);
	if (!timer_count || timer_count > TIMERS_MAX)
		return 2;
	ticks_each = 3000;
	late = late_create();
	if (is_weir)
		weir_begin(atoi(arguments[3]));
	print(arguments[1], measure(is_weir ? run_weir : run_loop, late), 1);
	if (is_weir)
		weir_end();
	free(late);
	return 0;
}

int main(int argc, char **argv)
{
	size_t ticks = argc > 1 && !strcmp(argv[1], "--quick") ? 5 : 500;

	if (argc == 4)
		return run_alone(argv);
	printf("%5s  %-16s %8s %7s %9s %9s %9s\n", "kHz", "us a tick", "CPU", "ratio", "late p50", "p99",
	       "sleeps");
	row(1, ticks, 1);
	row(1, ticks, 2);
	row(2, ticks, 2);
	row(10, ticks, 2);
	row(100, ticks, 2);
	row(1000, ticks, 1);
	row(1000, ticks, 2);
	return 0;
}

/*
 * Latency of a message pushed into a sleeping run: from before weir_inlet_push until the first instruction
 * of compute, beside a bare futex hop (a store, FUTEX_WAKE, the first instruction of the woken thread). One
 * at a time; before each, the other thread has had time to fall asleep. No device work.
 *
 * Both are measured in one process, alternating, by the same code: the waking thread polls the same word
 * for the stamp. On one core the woken thread preempts the other, which shows the library's own share best;
 * with a core each the time is mostly that of waking an idle core; with any core the kernel chooses, and
 * not always alike.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <weir.h>

#include "program.h"

enum { ROUNDS = 15, GAP_NS = 100000, IDLE_NS = 1000000, PATIENCE_NS = 1000000 };

static _Atomic int64_t arrived; /* time stamp of the woken thread; 0: not yet */
static bool idle;               /* the waking thread sleeps, too, before it wakes the other one */

/* Spins, so that the waking thread's core stays awake, as in a busy program; or sleeps. */
static void let_sleep(void)
{
	if (idle)
		nanosleep(&(struct timespec){.tv_nsec = IDLE_NS}, NULL);
	for (int64_t until = now() + GAP_NS; !idle && now() < until;)
		;
}

/* Pins the calling thread and those that it creates later; below 0: any core. */
static void pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (core < 0 || i == core)
			CPU_SET(i, &set);
	sched_setaffinity(0, sizeof set, &set);
}

/* --- a bare hop --- */

struct hop {
	pthread_t thread;
	_Atomic uint32_t word; /* 0: wait; 1: go; 2: end */
};

static void *wait_for_hops(void *arg)
{
	struct hop *hop = arg;
	uint32_t word;

	while ((word = atomic_load(&hop->word)) != 2) {
		if (!word) {
			syscall(SYS_futex, &hop->word, FUTEX_WAIT_PRIVATE, 0, NULL);
			continue;
		}
		atomic_store(&arrived, now());
		atomic_store(&hop->word, 0);
	}
	return NULL;
}

static void tell(struct hop *hop, uint32_t word)
{
	atomic_store(&hop->word, word);
	syscall(SYS_futex, &hop->word, FUTEX_WAKE_PRIVATE, 1);
}

static void go_by_hop(void *hop)
{
	tell(hop, 1);
}

static void hop_begin(struct hop *hop)
{
	must(pthread_create(&hop->thread, NULL, wait_for_hops, hop) ? WEIR_E_NOMEM : WEIR_OK, "thread");
}

static void hop_end(struct hop *hop)
{
	tell(hop, 2);
	pthread_join(hop->thread, NULL);
}

/* --- a run of one entity --- */

struct run {
	weir_registry *registry;
	weir_graph *graph;
	weir_scheduler *scheduler;
	weir_inlet *in;
	weir_message *message; /* to push next */
};

static weir_status compute(weir_context *context, void *state)
{
	(void)context;
	(void)state;
	atomic_store(&arrived, now());
	return WEIR_OK;
}

static const weir_port inputs[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_operator stamp = {
	.size = sizeof(weir_operator), .name = "stamp", .inputs = inputs, .compute = compute};

static void make_message(void *arg)
{
	struct run *run = arg;

	must(weir_message_create_empty(run->graph, &run->message), "message");
}

static void go_by_push(void *arg)
{
	struct run *run = arg;

	must(weir_inlet_push(run->in, run->message, 0), "push");
}

static void run_begin(struct run *run, int workers)
{
	static const char json[] =
		"{\"weir\": 1, \"entities\": [{\"name\": \"stamp\", \"operator\": \"stamp\"}]}";
	weir_scheduler_options options = {.size = sizeof options, .workers = workers, .backend = "host"};
	weir_description *description = NULL;

	must(weir_registry_create(&run->registry), "registry");
	must(weir_registry_add_operator(run->registry, &stamp), "operator");
	must(weir_description_parse(json, strlen(json), NULL, NULL, &description), "graph");
	must(weir_graph_create(run->registry, description, &run->graph), "graph");
	weir_description_destroy(description);
	must(weir_graph_add_inlet(run->graph, "stamp.in", &run->in), "inlet");
	must(weir_scheduler_create(run->graph, &options, &run->scheduler), "scheduler");
	must(weir_scheduler_start(run->scheduler), "start");
}

static void run_end(struct run *run)
{
	weir_inlet_close(run->in);
	must(weir_scheduler_wait(run->scheduler, -1, NULL), "run");
	weir_scheduler_destroy(run->scheduler);
	weir_graph_destroy(run->graph);
	weir_registry_destroy(run->registry);
}

/* --- measuring --- */

struct way {
	void (*ready)(void *arg); /* may be NULL */
	void (*go)(void *arg);    /* wakes, or pushes */
	void *arg;
};

/* In microseconds; call: duration of the waking call itself. */
struct figures {
	double p50, p99, call;
};

static int compare(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

static double part_of(int64_t *samples, size_t count, size_t percent)
{
	qsort(samples, count, sizeof *samples, compare);
	return (double)samples[count * percent / 100] / 1e3;
}

/*
 * One sample: *took from before the call to the stamp, *call until the call's return. On one core that other
 * programs use, too, the woken thread may have to wait until this one sleeps: so it does after a while. It
 * changes no stamp that comes earlier.
 */
static void wake(const struct way *way, int64_t *took, int64_t *call)
{
	int64_t begun, stamped;

	let_sleep();
	if (way->ready)
		way->ready(way->arg);
	atomic_store(&arrived, 0);
	begun = now();
	way->go(way->arg);
	*call = now() - begun;
	while (!(stamped = atomic_load(&arrived)))
		if (now() - begun > PATIENCE_NS)
			nanosleep(&(struct timespec){.tv_nsec = GAP_NS}, NULL);
	*took = stamped - begun;
}

static struct figures measure(struct way way, size_t count)
{
	int64_t *took = malloc(2 * count * sizeof *took), *call = took + count;
	struct figures figures;

	must(took ? WEIR_OK : WEIR_E_NOMEM, "samples");
	for (size_t i = 0; i < count / 10 + 1; i++)
		wake(&way, took, call); /* not counted */
	for (size_t i = 0; i < count; i++)
		wake(&way, took + i, call + i);
	figures = (struct figures){part_of(took, count, 50), part_of(took, count, 99),
				   part_of(call, count, 50)};
	free(took);
	return figures;
}

/* Each figure is the median of its rounds: other load disturbs single ones. */
static double median_of(const struct figures *rounds, size_t offset)
{
	double values[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		int k = i;
		double value = *(const double *)((const char *)&rounds[i] + offset);
		for (; k && values[k - 1] > value; k--)
			values[k] = values[k - 1];
		values[k] = value;
	}
	return values[ROUNDS / 2];
}

static struct figures print(const char *what, const struct figures *rounds)
{
	struct figures m = {median_of(rounds, offsetof(struct figures, p50)),
			    median_of(rounds, offsetof(struct figures, p99)),
			    median_of(rounds, offsetof(struct figures, call))};

	printf("%-44s %9.2f %9.2f %9.2f\n", what, m.p50, m.p99, m.call);
	return m;
}

/* own: core of the waking thread; others: core of the woken ones. */
static void compare_them(const char *where, int own, int others, int workers, size_t count)
{
	struct figures hops[ROUNDS], pushes[ROUNDS], floor, found;
	struct hop hop = {0};
	struct run run = {0};
	char text[64];

	pin(others);
	hop_begin(&hop);
	run_begin(&run, workers);
	pin(own);
	for (int i = 0; i < ROUNDS; i++) {
		hops[i] = measure((struct way){NULL, go_by_hop, &hop}, count);
		pushes[i] = measure((struct way){make_message, go_by_push, &run}, count);
	}
	hop_end(&hop);
	run_end(&run);
	snprintf(text, sizeof text, "futex hop, %s", where);
	floor = print(text, hops);
	snprintf(text, sizeof text, "inlet push -> compute, %s, %d worker%s", where, workers,
		 workers > 1 ? "s" : "");
	found = print(text, pushes);
	printf("%-44s %9.2f %9.2f %9.2f\n", "ratio", found.p50 / floor.p50, found.p99 / floor.p99,
	       found.call / floor.call);
}

int main(int argc, char **argv)
{
	size_t count = argc > 1 && !strcmp(argv[1], "--quick") ? 5 : 500;

	printf("%-44s %9s %9s %9s\n", "us, waking call -> woken", "p50", "p99", "the call");
	compare_them("one core", 0, 0, 1, count);
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		compare_them("a core each", 0, 1, 1, count);
	compare_them("any core", -1, -1, 1, count);
	compare_them("any core", -1, -1, 2, count);
	idle = true;
	count = count / 5 + 1; /* each takes ten times as long */
	compare_them("one core, after 1 ms of idle", 0, 0, 1, count);
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		compare_them("a core each, after 1 ms", 0, 1, 1, count);
	compare_them("any core, after 1 ms", -1, -1, 2, count);
	return 0;
}

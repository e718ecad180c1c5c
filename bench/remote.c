/*
 * Two processes joined by remote_send and remote_receive, beside ucx_perftest of the same library, which
 * sends the same number of bytes by UCX alone: messages of 8 bytes a second with 64 under way, one way of a
 * message of 8 bytes (half of the way there and back), and GB/s of 1 MiB. By TCP and through shared memory.
 * Beside what weir does by itself ucx_perftest sleeps, beside `spin` it polls. By TCP weir needs UCX to
 * handle the loss of the other side, which ucx_perftest does with -e.
 *
 * Each measurement is a run of its own: the two graphs in two new processes, then the two of ucx_perftest.
 * They alternate.
 *
 *     remote PLUGIN [--rounds N] [--quick]
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "remote_graph.h"

enum { ROUNDS_MOST = 25, MIB = 1 << 20 };
#define SPIN ", \"spin\": \"1ms\""

static const char *plugin;
static uint64_t count; /* messages of this measurement */
static size_t bytes;   /* of each */

/* --- what the graphs do --- */

struct figures {
	double rate, p50, p99; /* messages/s; us */
};
static struct figures figures; /* of this process */

static int64_t *ways; /* ns, one for each message */

static int compare(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right;
}

struct pour {
	weir_message *message;
	uint64_t poured;
};

/* The same message, again and again. */
static weir_status pour_compute(weir_context *context, void *state)
{
	struct pour *self = state;
	weir_status status = WEIR_OK;

	if (!self->message)
		status = weir_message_create_bytes(weir_context_graph(context), bytes, &self->message);
	for (size_t room = weir_context_room(context, 0); room && self->poured < count && !status; room--) {
		status = weir_context_emit(context, 0, weir_message_ref(self->message));
		self->poured++;
	}
	return status || self->poured < count ? status : weir_context_finish(context);
}

static void pour_stop(weir_context *context, void *state)
{
	(void)context;
	weir_message_unref(((struct pour *)state)->message);
}

struct drink {
	uint64_t drunk, before;
	int64_t begun;
};

/* The first tenth warms up. */
static weir_status drink_compute(weir_context *context, void *state)
{
	struct drink *self = state;

	self->drunk += weir_context_count(context, 0);
	if (self->drunk > count / 10 && !self->begun) {
		self->begun = now();
		self->before = self->drunk;
	} else if (self->drunk == count) {
		figures.rate = (double)(count - self->before) * 1e9 / (double)(now() - self->begun);
	}
	return WEIR_OK;
}

/* Sends the message that came again; the first one is the connection's own. */
static weir_status ball_compute(weir_context *context, void *state)
{
	int64_t *thrown = state, came = now();
	uint64_t tick = weir_context_tick(context), before = count / 10;
	weir_message *message;
	weir_status status;

	if (tick > before)
		ways[tick - before - 1] = (came - *thrown) / 2;
	if (tick == count) {
		qsort(ways, count - before, sizeof *ways, compare);
		figures.p50 = (double)ways[(count - before) / 2] / 1e3;
		figures.p99 = (double)ways[(count - before) * 99 / 100] / 1e3;
		return weir_context_finish(context);
	}
	status = weir_message_create_bytes(weir_context_graph(context), bytes, &message);
	*thrown = now();
	return status ? status : weir_context_emit(context, 0, message);
}

static const weir_port inputs[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_port outputs[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};
static const weir_port several[] = {{.size = sizeof(weir_port), .name = "out", .max_emits = 16},
				    {.name = NULL}};
static const weir_operator operators[] = {
	{.size = sizeof(weir_operator),
	 .name = "pour",
	 .state_size = sizeof(struct pour),
	 .outputs = several,
	 .compute = pour_compute,
	 .stop = pour_stop},
	{.size = sizeof(weir_operator),
	 .name = "drink",
	 .state_size = sizeof(struct drink),
	 .inputs = inputs,
	 .compute = drink_compute},
	{.size = sizeof(weir_operator),
	 .name = "ball",
	 .state_size = sizeof(int64_t),
	 .inputs = inputs,
	 .outputs = outputs,
	 .compute = ball_compute},
};

/* --- graphs; @1 and @2 are ports, @3 more parameters, @4 credits --- */

#define HEAD "{\"weir\": 1, \"entities\": ["
#define SEND(port)                                                                                           \
	"{\"name\": \"send\", \"operator\": \"remote_send\", \"ports\": {\"in\": {\"capacity\": 64, "        \
	"\"take\": \"all\"}}, "                                                                              \
	"\"parameters\": {\"to\": \"127.0.0.1:" port "\"@3}}"
#define RECEIVE(port, credits)                                                                               \
	"{\"name\": \"receive\", \"operator\": \"remote_receive\", "                                         \
	"\"parameters\": {\"listen\": \"127.0.0.1:" port "\", \"credits\": " credits "@3}}"

static const char pours[] = HEAD "{\"name\": \"pour\", \"operator\": \"pour\"}, " SEND(
	"@1") "], "
	      "\"connections\": [[\"pour.out\", \"send.in\"]]}";
static const char drinks[] =
	HEAD RECEIVE("@1", "@4") ", {\"name\": \"drink\", \"operator\": \"drink\", "
				 "\"ports\": {\"in\": {\"capacity\": 64, \"take\": \"all\"}}}], "
				 "\"connections\": [[\"receive.out\", \"drink.in\"]]}";
static const char throws[] = HEAD "{\"name\": \"ball\", \"operator\": \"ball\"}, " SEND("@1") ", " RECEIVE(
	"@2", "8") "], \"connections\": [{\"from\": \"receive.out\", \"to\": \"ball.in\", "
		   "\"initial_messages\": 1}, [\"ball.out\", \"send.in\"]]}";
static const char returns[] =
	HEAD RECEIVE("@1", "8") ", " SEND("@2") "], "
						"\"connections\": [[\"receive.out\", \"send.in\"]]}";

static void fill(const char *format, int port, const char *more, char *json, size_t room)
{
	FILE *file = fmemopen(json, room, "w");

	for (; *format; format++)
		if (*format != '@')
			fputc(*format, file);
		else if (*++format == '3')
			fputs(more, file);
		else if (*format == '4')
			fprintf(file, "%d", bytes == MIB ? 8 : 64);
		else
			fprintf(file, "%d", port + *format - '1');
	fclose(file);
}

/* Runs a graph to its end, in a process of its own, which writes its figures. */
static void run(const char *format, int port, const char *more)
{
	const weir_scheduler_options options = {.size = sizeof options, .workers = 1, .backend = "host"};
	char json[1500];

	fill(format, port, more, json, sizeof json);
	run_graph(plugin, operators, sizeof operators / sizeof operators[0], json, &options, -1);
}

/* --- measuring --- */

/* Two graphs in two processes; the figures of the one that is told to write them. */
static struct figures join(const char *first, const char *second, bool second_knows, const char *more)
{
	static int port = 20000;
	const char *graphs[] = {first, second};
	struct figures seen = {0};
	pid_t children[2];
	int ends[2];

	port = 20000 + (port + 2 + getpid() % 1000) % 10000;
	must(pipe(ends) ? WEIR_E_IO : WEIR_OK, "pipe");
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i])
			continue;
		ways = calloc(count, sizeof *ways);
		run(graphs[i], port, more);
		if ((bool)i == second_knows && write(ends[1], &figures, sizeof figures) < 0)
			_exit(1);
		_exit(0);
	}
	close(ends[1]);
	must(read(ends[0], &seen, sizeof seen) == sizeof seen ? WEIR_OK : WEIR_E_IO, "the processes");
	close(ends[0]);
	for (int i = 0; i < 2; i++)
		waitpid(children[i], NULL, 0);
	return seen;
}

/* The last line of ucx_perftest is: iterations, percentile, averages and totals of latency, MB/s, messages/s.
 */
static bool perftest(const char *options, double values[8])
{
	static int port = 13337;
	char command[600], line[400], last[400] = "";
	FILE *file;

	port = 13337 + (port + 1 + getpid() % 100) % 1000;
	snprintf(command, sizeof command,
		 "timeout 60 ucx_perftest -p %d >/dev/null 2>&1 & sleep 0.3; "
		 "timeout 60 ucx_perftest -p %d -v -f -s %zu -n %llu -w %llu %s localhost 2>/dev/null; wait",
		 port, port, bytes, (unsigned long long)count, (unsigned long long)count / 10, options);
	fflush(stdout);
	file = popen(command, "r");
	while (file && fgets(line, sizeof line, file))
		strcpy(last, line);
	if (file)
		pclose(file);
	return sscanf(last, "%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &values[0], &values[1], &values[2], &values[3],
		      &values[4], &values[5], &values[6], &values[7]) == 8;
}

/* --- a hop of a futex, for the aim --- */

static _Atomic uint32_t turn_of;

static void pass(uint32_t own, int passes)
{
	for (int i = 0; i < passes; i++) {
		while (atomic_load(&turn_of) != own)
			syscall(SYS_futex, &turn_of, FUTEX_WAIT_PRIVATE, !own, NULL);
		atomic_store(&turn_of, !own);
		syscall(SYS_futex, &turn_of, FUTEX_WAKE_PRIVATE, 1);
	}
}

static void *pass_back(void *passes)
{
	pass(1, *(int *)passes);
	return NULL;
}

/* us */
static double hop(int passes)
{
	pthread_t other;
	int64_t begun = now();

	must(pthread_create(&other, NULL, pass_back, &passes) ? WEIR_E_NOMEM : WEIR_OK, "thread");
	pass(0, passes);
	pthread_join(other, NULL);
	return (double)(now() - begun) / passes / 2e3;
}

/* --- the table --- */

/* weir's and UCX's, of each round */
struct column {
	const char *name, *unit;
	double weir[ROUNDS_MOST], ucx[ROUNDS_MOST];
};

enum { RATE, RATE_SPUN, P50, P99, P50_SPUN, BANDWIDTH, BANDWIDTH_SPUN, BANDWIDTH_SAFE, COLUMNS };

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

static double median(const double *values, int rounds)
{
	double sorted[ROUNDS_MOST];

	memcpy(sorted, values, sizeof *values * (size_t)rounds);
	qsort(sorted, (size_t)rounds, sizeof *sorted, compare_doubles);
	return sorted[rounds / 2];
}

static void show(const char *engine, const struct column *column, int rounds)
{
	double ratios[ROUNDS_MOST];

	for (int i = 0; i < rounds; i++)
		ratios[i] = column->ucx[i] > 0 ? column->weir[i] / column->ucx[i] : 0;
	printf("%-14s %-24s %10.1f %10.1f  %s  %5.2f", engine, column->name, median(column->weir, rounds),
	       median(column->ucx, rounds), column->unit, median(ratios, rounds));
	qsort(ratios, (size_t)rounds, sizeof *ratios, compare_doubles);
	printf("  %.2f to %.2f\n", ratios[0], ratios[rounds - 1]);
}

static void measure(struct column *columns, int round, bool quick, bool tcp)
{
	double seen[8];
	struct figures weir;

	bytes = 8, count = quick ? 2000 : tcp ? 200000 : 2000000;
	columns[RATE].weir[round] = join(drinks, pours, false, "").rate / 1e3;
	columns[RATE].ucx[round] = perftest("-t ucp_am_bw -O 64 -E sleep", seen) ? seen[7] / 1e3 : 0;
	columns[RATE_SPUN].weir[round] = join(drinks, pours, false, SPIN).rate / 1e3;
	columns[RATE_SPUN].ucx[round] = perftest("-t ucp_am_bw -O 64", seen) ? seen[7] / 1e3 : 0;
	count = quick ? 500 : 20000;
	weir = join(returns, throws, true, "");
	columns[P50].weir[round] = weir.p50;
	columns[P99].weir[round] = weir.p99;
	columns[P50].ucx[round] = perftest("-t ucp_am_lat -E sleep", seen) ? seen[1] : 0;
	columns[P99].ucx[round] = perftest("-t ucp_am_lat -E sleep -R 99", seen) ? seen[1] : 0;
	columns[P50_SPUN].weir[round] = join(returns, throws, true, SPIN).p50;
	columns[P50_SPUN].ucx[round] = perftest("-t ucp_am_lat", seen) ? seen[1] : 0;
	bytes = MIB, count = quick ? 20 : 3000;
	columns[BANDWIDTH].weir[round] = join(drinks, pours, false, "").rate * MIB / 1e6;
	columns[BANDWIDTH].ucx[round] =
		perftest("-t ucp_am_bw -O 64 -E sleep", seen) ? seen[5] * 1.048576 : 0;
	columns[BANDWIDTH_SPUN].weir[round] = join(drinks, pours, false, SPIN).rate * MIB / 1e6;
	columns[BANDWIDTH_SPUN].ucx[round] = perftest("-t ucp_am_bw -O 64", seen) ? seen[5] * 1.048576 : 0;
	columns[BANDWIDTH_SAFE].weir[round] = columns[BANDWIDTH].weir[round];
	if (tcp && perftest("-e -t ucp_am_bw -O 64 -E sleep", seen))
		columns[BANDWIDTH_SAFE].ucx[round] = seen[5] * 1.048576;
}

int main(int argc, char **argv)
{
	static const char *const engines[] = {"tcp,self", "sm,self"};
	bool quick = argc > 2 && !strcmp(argv[argc - 1], "--quick");
	int rounds = quick ? 1 : 5;

	if (argc > 3 && !strcmp(argv[2], "--rounds"))
		rounds = atoi(argv[3]);
	if (argc < 2 || rounds < 1 || rounds > ROUNDS_MOST) {
		fprintf(stderr, "remote PLUGIN [--rounds 1..%d] [--quick]\n", ROUNDS_MOST);
		return 2;
	}
	plugin = argv[1];
	printf("a hop of a futex: %.1f us\n%-14s %-24s %10s %10s\n", hop(quick ? 100 : 20000), "UCX_TLS", "",
	       "weir", "UCX");
	for (int i = 0; i < 2; i++) {
		struct column columns[COLUMNS] = {
			[RATE] = {.name = "8 bytes, 64 under way", .unit = "1000/s"},
			[P50] = {.name = "one way, p50", .unit = "us    "},
			[P99] = {.name = "one way, p99", .unit = "us    "},
			[RATE_SPUN] = {.name = "the same, both spin", .unit = "1000/s"},
			[P50_SPUN] = {.name = "one way, both spin, p50", .unit = "us    "},
			[BANDWIDTH] = {.name = "1 MiB", .unit = "MB/s  "},
			[BANDWIDTH_SPUN] = {.name = "the same, both spin", .unit = "MB/s  "},
			[BANDWIDTH_SAFE] = {.name = "1 MiB, perftest -e", .unit = "MB/s  "},
		};

		setenv("UCX_TLS", engines[i], 1);
		for (int round = 0; round < rounds; round++)
			measure(columns, round, quick, !i);
		for (int c = 0; c < COLUMNS - i; c++) /* through shared memory weir handles it itself */
			show(engines[i], &columns[c], rounds);
	}
	return 0;
}

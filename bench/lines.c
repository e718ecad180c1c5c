/*
 * Frames/s of many lines with one frame each in flight: per line three kernels that follow each other, as one
 * replayed entity or enqueued each time, and a host entity behind a gate, which sends the line's next frame.
 * Beside it the same in plain CUDA, on as many threads as weir has workers (at least one), in turn with it;
 * and what the kernels alone would allow: lines / (3 x their time).
 *
 * usage: lines [--backend NAME] [--signal NAME] [--workers N] [--lines N] [--frames N] [--us N] [--rounds N]
 *
 * frames: of each line. Without CUDA, or with --backend host, weir only.
 * exit: 0; 1 a call failed; 2 usage; 3 something hangs
 */
#include <stdbool.h>
#include <string.h>

#include "lines_plain.h"
#include "program.h"
#include "watchdog.h"

enum { ROUNDS_MAX = 32 };

static const char *backend = "auto", *signal_name = "flag";
static unsigned workers = 1, lines = 16, frames = 2000, rounds = 5;
static struct ready_work work = {.ns = 50000};

static int spin_on_host(const void *arguments)
{
	weir_sleep(((const struct ready_work *)arguments)->ns);
	return 0;
}

static const weir_kernel kernel = {.size = sizeof kernel,
				   .name = "spin",
				   .host = spin_on_host,
#ifdef BENCH_WITH_CUDA
				   .cuda = ready_gpu_launch
#endif
};

/* --- the operators --- */

static weir_status enqueue(weir_context *context, weir_stream *stream, void *arg)
{
	weir_status status = WEIR_OK;

	(void)context;
	(void)arg;
	for (int i = 0; !status && i < LINES_STAGES; i++)
		status = weir_stream_launch(stream, &kernel, &work, sizeof work);
	return status;
}

/* The message that came goes on, with this tick's fence. */
static weir_status work_compute(weir_context *context, void *state)
{
	weir_message *message = weir_message_ref(weir_context_message(context, 0, 0));
	weir_status status = weir_context_replay(context, "work", 4, enqueue, NULL);

	(void)state;
	if (!status)
		return weir_context_emit(context, 0, message);
	weir_message_unref(message);
	return status;
}

static weir_status sink_compute(weir_context *context, void *state)
{
	(void)state;
	if (weir_context_tick(context) + 1 >= frames)
		weir_context_finish(context);
	return weir_context_forward(context, 0, 0, 0);
}

static const weir_port device_in[] = {{.size = sizeof(weir_port), .name = "in", .flags = WEIR_PORT_DEVICE},
				      {.name = NULL}};
static const weir_port in[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_port out[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};

static const weir_operator operators[] = {
	{.size = sizeof(weir_operator),
	 .name = "lines_work",
	 .flags = WEIR_OPERATOR_STREAM,
	 .inputs = device_in,
	 .outputs = out,
	 .compute = work_compute},
	{.size = sizeof(weir_operator),
	 .name = "lines_sink",
	 .flags = WEIR_OPERATOR_EFFECTS,
	 .inputs = in,
	 .outputs = out,
	 .compute = sink_compute},
};

/* --- one run --- */

static weir_graph *make_graph(const weir_registry *registry, bool replays)
{
	static char text[LINES_MAX * 512];
	weir_description *description = NULL;
	weir_graph *graph = NULL;
	size_t at = 0;

	at += (size_t)snprintf(text + at, sizeof text - at,
			       "{\"weir\": 1, \"name\": \"lines\", \"entities\": [");
	for (unsigned i = 0; i < lines; i++)
		at += (size_t)snprintf(
			text + at, sizeof text - at,
			"%s{\"name\": \"work%u\", \"operator\": \"lines_work\", \"replay\": %s},"
			"{\"name\": \"sink%u\", \"operator\": \"lines_sink\"}",
			i ? "," : "", i, replays ? "{\"keys\": 1}" : "false", i);
	at += (size_t)snprintf(text + at, sizeof text - at, "], \"connections\": [");
	for (unsigned i = 0; i < lines; i++)
		at += (size_t)snprintf(
			text + at, sizeof text - at,
			"%s[\"work%u.out\", \"sink%u.in\"],"
			"{\"from\": \"sink%u.out\", \"to\": \"work%u.in\", \"initial_messages\": 1}",
			i ? "," : "", i, i, i, i);
	at += (size_t)snprintf(text + at, sizeof text - at, "]}");
	must(weir_description_parse(text, at, NULL, NULL, &description), "lines");
	must(weir_graph_create(registry, description, &graph), "graph");
	weir_description_destroy(description);
	return graph;
}

/* Frames/s of all lines. */
static double run(const weir_registry *registry, bool replays)
{
	weir_scheduler_options options = {.size = sizeof options,
					  .backend = backend,
					  .signal = signal_name,
					  .workers = workers,
					  .max_duration_ns = INT64_C(120000000000)};
	weir_outcome outcome = {.size = sizeof outcome};
	weir_graph *graph = make_graph(registry, replays);
	weir_scheduler *scheduler = NULL;

	must(weir_scheduler_create(graph, &options, &scheduler), "scheduler");
	must(weir_scheduler_start(scheduler), "start");
	must(weir_scheduler_wait(scheduler, -1, &outcome), "run");
	must(weir_scheduler_destroy(scheduler), "destroy");
	must(weir_graph_destroy(graph), "destroy");
	return (double)lines * frames * 1e9 / (double)outcome.duration_ns;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* --- rounds --- */

enum { FORMS = 2 }; /* replayed, enqueued */
struct rates {
	double of[FORMS][ROUNDS_MAX];
};
static const char *const names[FORMS] = {"replayed", "enqueued"};

static bool plain_open(void)
{
#ifdef BENCH_WITH_CUDA
	if (strcmp(backend, "host") && strcmp(backend, "sim"))
		return lines_plain_open(lines);
#endif
	return false;
}

static double run_plain(bool replays)
{
#ifdef BENCH_WITH_CUDA
	const struct lines_plain how = {.lines = lines,
					.frames = frames,
					.threads = workers ? workers : 1,
					.work = work,
					.replays = replays};

	return lines_plain_run(&how);
#else
	(void)replays;
	return 0;
#endif
}

static void print_rates(const char *name, int form, double *rates)
{
	double possible = lines * 1e9 / (LINES_STAGES * (double)work.ns);

	qsort(rates, rounds, sizeof *rates, by_value);
	printf("%u lines of one frame, %d x %.0f us %s, %s: %.0f frames/s, %.3f of %.0f (%.3f to %.3f)\n",
	       lines, LINES_STAGES, (double)work.ns / 1e3, names[form], name, rates[rounds / 2],
	       rates[rounds / 2] / possible, possible, rates[0] / possible, rates[rounds - 1] / possible);
}

static void print_form(int form, struct rates *weir, struct rates *plain)
{
	double ratio[ROUNDS_MAX];
	char name[64];

	for (unsigned round = 0; plain && round < rounds; round++)
		ratio[round] = weir->of[form][round] / plain->of[form][round];
	snprintf(name, sizeof name, "%u workers, %s", workers, signal_name);
	print_rates(name, form, weir->of[form]);
	if (!plain)
		return;
	snprintf(name, sizeof name, "plain CUDA, %u threads", workers ? workers : 1);
	print_rates(name, form, plain->of[form]);
	qsort(ratio, rounds, sizeof *ratio, by_value);
	printf("  weir / plain, %s: %.3f (%.3f to %.3f)\n", names[form], ratio[rounds / 2], ratio[0],
	       ratio[rounds - 1]);
}

static void measure(const weir_registry *registry)
{
	static struct rates weir, plain;
	bool beside;

	watchdog_part("start", 60);
	beside = plain_open();
	watchdog_part("rounds", 600.0 * rounds);
	for (unsigned round = 0; round < rounds; round++)
		for (int form = 0; form < FORMS; form++) {
			watchdog_point(150, "round %u, weir, %s", round + 1, names[form]);
			weir.of[form][round] = run(registry, !form);
			watchdog_point(150, "round %u, plain, %s", round + 1, names[form]);
			if (beside)
				plain.of[form][round] = run_plain(!form);
		}
	watchdog_part("end", 30);
	for (int form = 0; form < FORMS; form++)
		print_form(form, &weir, beside ? &plain : NULL);
	if (!beside)
		printf("plain CUDA: not measured: no device that writes words in stream order\n");
}

static void read_options(int count, char **arguments)
{
	for (int i = 1; i + 1 < count; i += 2) {
		const char *name = arguments[i], *value = arguments[i + 1];
		unsigned number = (unsigned)strtoul(value, NULL, 10);

		if (!strcmp(name, "--backend"))
			backend = value;
		else if (!strcmp(name, "--signal"))
			signal_name = value;
		else if (!strcmp(name, "--workers"))
			workers = number;
		else if (!strcmp(name, "--lines"))
			lines = number;
		else if (!strcmp(name, "--frames"))
			frames = number;
		else if (!strcmp(name, "--us"))
			work.ns = number * INT64_C(1000);
		else if (!strcmp(name, "--rounds"))
			rounds = number;
	}
	if (lines < 1 || lines > LINES_MAX || rounds < 1 || rounds > ROUNDS_MAX || !frames || !work.ns) {
		fprintf(stderr, "lines: --lines 1 to %d, --rounds 1 to %d\n", LINES_MAX, ROUNDS_MAX);
		exit(2);
	}
}

int main(int count, char **arguments)
{
	weir_registry *registry = NULL;

	setvbuf(stdout, NULL, _IOLBF, 0);
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); /* or lines wait for each other */
	read_options(count, arguments);
	must(weir_registry_create(&registry), "registry");
	for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
		must(weir_registry_add_operator(registry, &operators[i]), operators[i].name);
	watchdog_begin("lines");
	measure(registry);
	weir_registry_destroy(registry);
	return 0;
}

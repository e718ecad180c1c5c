/*
 * One worker, and N kernels of a second each on the streams of other entities. Measures an entity that
 * works only on the CPU, and one that waits for short kernels; prints one line of JSON: both while the long
 * kernels run, and after them in the same run. one_worker.py compares.
 *
 *   free              ticks as often as it can, a fixed amount of arithmetic each time
 *   short -> gated    each ms a kernel of 10 us; `gated` waits for it by a cuda_stream condition
 *   busy -> end       N times: kernels of the given length back to back until the first measurement is over
 *
 * READY latency: from the start of the tick that launches the short kernel to the start of compute of
 * `gated` on its result, minus the 10 us of the kernel. It includes the launch, the completion's way back
 * to the host, and the scheduling: everything that the busy entities could delay. Only the host's clock is
 * used.
 *
 *   one_worker [--backend B] [--signal S] [--busy N] [--kernel MS] [--seconds S]
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weir.h"

enum { SAMPLES = 1 << 16, WORK = 1000 };
#define SHORT_NS 10000
#define WARM_NS  400000000 /* until all busy streams run, and the first launch has loaded its kernel */
#define MS       1000000

static _Atomic uint64_t free_ticks;
static _Atomic int64_t launched[SAMPLES];
static _Atomic int64_t latency[SAMPLES]; /* 0: not measured */
static const weir_operator *spin;

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* --- operators --- */

static weir_status free_compute(weir_context *context, void *state)
{
	volatile uint64_t left = WORK;

	(void)context, (void)state;
	while (left)
		left--;
	atomic_fetch_add_explicit(&free_ticks, 1, memory_order_relaxed);
	return WEIR_OK;
}

/* The built-in spin, preceded by a time stamp. */
static weir_status stamped_compute(weir_context *context, void *state)
{
	launched[weir_context_tick(context) % SAMPLES] = now();
	return spin->compute(context, state);
}

static weir_status gated_compute(weir_context *context, void *state)
{
	uint64_t i = weir_context_tick(context) % SAMPLES;

	(void)state;
	latency[i] = now() - launched[i] - SHORT_NS;
	return WEIR_OK;
}

static const weir_port gated_inputs[] = {
	{.size = sizeof(weir_port), .name = "in", .capacity = 4},
	{.name = NULL},
};
static const weir_operator free_running = {
	.size = sizeof(weir_operator),
	.name = "free_running",
	.help = "counts its ticks",
	.compute = free_compute,
};
static const weir_operator gated = {
	.size = sizeof(weir_operator),
	.name = "gated",
	.help = "measures when it runs",
	.inputs = gated_inputs,
	.compute = gated_compute,
};

static const weir_operator *find_spin(const weir_registry *registry)
{
	const weir_operator *table;

	for (size_t i = 0; (table = weir_registry_operator(registry, i)); i++)
		if (!strcmp(table->name, "spin"))
			return table;
	return NULL;
}

static weir_status make_registry(weir_registry **out)
{
	static weir_operator stamped; /* borrowed by the registry */
	weir_status status = weir_registry_create(out);

	if (status)
		return status;
	spin = find_spin(*out);
	if (!spin)
		return WEIR_E_UNSUPPORTED;
	stamped = *spin;
	stamped.name = "stamped_spin";
	stamped.compute = stamped_compute;
	status = weir_registry_add_operator(*out, &stamped);
	if (!status)
		status = weir_registry_add_operator(*out, &free_running);
	if (!status)
		status = weir_registry_add_operator(*out, &gated);
	return status;
}

/* --- the graph --- */

struct settings {
	unsigned busy;
	int64_t kernel_ns, window_ns;
	weir_scheduler_options options;
};

static const char base[] =
	"{\"weir\": 1, \"name\": \"one_worker\", \"entities\": ["
	"{\"name\": \"free\", \"operator\": \"free_running\"},"
	"{\"name\": \"short\", \"operator\": \"stamped_spin\", \"parameters\": {\"duration\": \"10us\"},"
	" \"conditions\": [{\"type\": \"periodic\", \"period\": \"1ms\"}]},"
	"{\"name\": \"gated\", \"operator\": \"gated\","
	" \"conditions\": [{\"type\": \"cuda_stream\", \"port\": \"in\"}]}],"
	"\"connections\": [[\"short.out\", \"gated.in\"]]}";

/* Enough kernels for the warm-up and the measurement, plus one, all enqueued at the beginning. */
static weir_status add_busy(weir_description *description, const struct settings *settings, unsigned i)
{
	int64_t kernels = (WARM_NS + settings->window_ns) / settings->kernel_ns + 1;
	char name[32], json[320], connection[96];
	weir_status status;

	snprintf(json, sizeof json,
		 "{\"name\": \"busy%u\", \"operator\": \"spin\", \"parameters\": {\"duration\": \"%" PRId64
		 "us\"},"
		 " \"conditions\": [{\"type\": \"count\", \"count\": %" PRId64 "}]}",
		 i, settings->kernel_ns / 1000, kernels);
	status = weir_description_put(description, "/entities/-", json);
	snprintf(json, sizeof json,
		 "{\"name\": \"end%u\", \"operator\": \"sink\", \"ports\": {\"in\": {\"capacity\": 16}},"
		 " \"conditions\": [{\"type\": \"cuda_stream\", \"port\": \"in\"}]}",
		 i);
	if (!status)
		status = weir_description_put(description, "/entities/-", json);
	snprintf(name, sizeof name, "busy%u.out", i);
	snprintf(connection, sizeof connection, "end%u.in", i);
	return status ? status : weir_description_connect(description, name, connection);
}

static weir_status make_graph(weir_graph **out, const weir_registry *registry,
			      const struct settings *settings)
{
	weir_description *description = NULL;
	weir_status status = weir_description_parse(base, strlen(base), NULL, NULL, &description);

	for (unsigned i = 0; !status && i < settings->busy; i++)
		status = add_busy(description, settings, i);
	if (!status)
		status = weir_graph_create(registry, description, out);
	weir_description_destroy(description);
	return status;
}

/* --- measuring --- */

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void print_latencies(uint64_t from, uint64_t to)
{
	static int64_t sorted[SAMPLES];
	size_t n = 0;

	for (uint64_t i = from; i < to && i < SAMPLES; i++)
		if (latency[i])
			sorted[n++] = latency[i];
	qsort(sorted, n, sizeof *sorted, compare);
	printf("\"samples\": %zu, \"p50_us\": %.2f, \"p99_us\": %.2f}", n,
	       n ? (double)sorted[n / 2] / 1e3 : 0.0, n ? (double)sorted[n * 99 / 100] / 1e3 : 0.0);
}

static uint64_t ticks_of(weir_scheduler *scheduler, const char *prefix)
{
	weir_entity_counts counts = {.size = sizeof counts};
	uint64_t ticks = 0;

	for (size_t i = 0; !weir_scheduler_entity_counts(scheduler, i, &counts); i++)
		if (!strncmp(counts.entity, prefix, strlen(prefix)))
			ticks += counts.ticks;
	return ticks;
}

/* Number of busy kernels not known to be complete. */
static uint64_t unfinished(weir_scheduler *scheduler)
{
	uint64_t done = ticks_of(scheduler, "end");

	return ticks_of(scheduler, "busy") - done;
}

static weir_status pass(weir_scheduler *scheduler, int64_t ns)
{
	return weir_scheduler_wait(scheduler, ns, NULL) == WEIR_E_TIMEOUT ? WEIR_OK : WEIR_E_FAILED;
}

static weir_status measure(weir_scheduler *scheduler, const char *name, int64_t window_ns)
{
	uint64_t first = ticks_of(scheduler, "gated"), ticks = free_ticks;
	int64_t begin = now();
	weir_status status = pass(scheduler, window_ns);

	ticks = free_ticks - ticks;
	printf(", \"%s\": {\"ticks_per_s\": %.0f, \"unfinished\": %" PRIu64 ", ", name,
	       (double)ticks * 1e9 / (double)(now() - begin), unfinished(scheduler));
	print_latencies(first, ticks_of(scheduler, "gated"));
	return status;
}

/* First while the busy kernels run, then after them: the same run, the same core. */
static weir_status measure_both(weir_scheduler *scheduler, const struct settings *settings)
{
	weir_status status = pass(scheduler, WARM_NS);

	printf("{\"where\": \"%s\", \"streams\": %u", weir_scheduler_where(scheduler), settings->busy);
	if (!status)
		status = measure(scheduler, "busy", settings->window_ns);
	while (!status && unfinished(scheduler))
		status = pass(scheduler, 20 * MS);
	if (!status)
		status = pass(scheduler, WARM_NS);
	if (!status)
		status = measure(scheduler, "quiet", settings->window_ns);
	printf("}\n");
	return status;
}

static weir_status run(weir_graph *graph, const struct settings *settings)
{
	weir_scheduler *scheduler = NULL;
	weir_status status = weir_scheduler_create(graph, &settings->options, &scheduler), ended;

	if (!status)
		status = weir_scheduler_start(scheduler);
	if (!status) {
		status = measure_both(scheduler, settings);
		weir_scheduler_stop(scheduler, WEIR_STOP_DRAIN);
		ended = weir_scheduler_wait(scheduler, -1, NULL);
		status = ended ? ended : status;
	}
	weir_scheduler_destroy(scheduler);
	return status;
}

static bool take_options(struct settings *settings, char **argv)
{
	for (; argv[0] && argv[1]; argv += 2)
		if (!strcmp(argv[0], "--backend"))
			settings->options.backend = argv[1];
		else if (!strcmp(argv[0], "--signal"))
			settings->options.signal = argv[1];
		else if (!strcmp(argv[0], "--busy"))
			settings->busy = (unsigned)atoi(argv[1]);
		else if (!strcmp(argv[0], "--kernel"))
			settings->kernel_ns = (int64_t)atoi(argv[1]) * MS;
		else if (!strcmp(argv[0], "--seconds"))
			settings->window_ns = (int64_t)(atof(argv[1]) * 1e9);
		else
			return false;
	return !argv[0] && settings->kernel_ns > 0;
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.kernel_ns = 1000 * (int64_t)MS,
		.window_ns = 2000 * (int64_t)MS,
		.options = {.size = sizeof settings.options, .workers = 1},
	};
	weir_registry *registry = NULL;
	weir_graph *graph = NULL;
	weir_status status;

	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0); /* else streams share hardware queues */
	if (argc < 1 || !take_options(&settings, argv + 1)) {
		fprintf(stderr, "usage: one_worker [--backend B] [--signal S] [--busy N] [--kernel MS] "
				"[--seconds S]\n");
		return 2;
	}
	status = make_registry(&registry);
	if (!status)
		status = make_graph(&graph, registry, &settings);
	if (!status)
		status = run(graph, &settings);
	if (status)
		fprintf(stderr, "one_worker: %s: %s\n", weir_status_text(status), weir_last_error());
	weir_graph_destroy(graph);
	weir_registry_destroy(registry);
	return status ? 1 : 0;
}

/*
 * Cost and benefit of the bound on ticks in flight (max_in_flight), as three ratios:
 *   - frames/s of an ungated chain of three kernels of 5 us, with the default bound and without one;
 *   - rates of two host entities beside a source of long kernels, on one worker, with that source and
 * without;
 *   - how long a run that enqueues 5 ms kernels without pause drains, relative to the bound times the kernel.
 *
 * usage: in_flight [--backend NAME] [--seconds N]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir.h"

enum { ROUNDS = 5, TEXT = 2048 };

static const char *backend = "auto";
static double seconds = 2;

static void check(weir_status status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "in_flight: %s: %s: %s\n", what, weir_status_text(status), weir_last_error());
	exit(1);
}

/* --- one run --- */

struct result {
	uint64_t ticks; /* of the requested entity */
	int64_t compute_ns, ns;
	uint64_t most;
	char where[80];
};

/* The statistics name the entity and then its submit: {"count":40,"sum":7000,... */
static int64_t time_in_compute(weir_scheduler *scheduler, const char *entity)
{
	char name[64], *text = NULL;
	const char *at;
	int64_t sum = 0;

	check(weir_scheduler_print_statistics(scheduler, &text), "statistics");
	snprintf(name, sizeof name, "{\"name\":\"%s\"", entity);
	at = strstr(text, name);
	at = at ? strstr(at, "\"submit\":") : NULL;
	at = at ? strstr(at, "\"sum\":") : NULL;
	if (at)
		sum = strtoll(at + strlen("\"sum\":"), NULL, 10);
	weir_text_free(text);
	return sum;
}

static struct result counts_of(weir_scheduler *scheduler, const char *entity)
{
	weir_entity_counts counts = {.size = sizeof counts};
	struct result result = {0};

	for (size_t i = 0; !weir_scheduler_entity_counts(scheduler, i, &counts); i++) {
		if (strcmp(counts.entity, entity))
			continue;
		result.ticks = counts.ticks;
		result.compute_ns = time_in_compute(scheduler, entity);
		result.most = counts.most_in_flight;
	}
	return result;
}

static struct result run(const char *text, const char *entity, unsigned workers, int max_in_flight)
{
	weir_scheduler_options options = {.size = sizeof options,
					  .backend = backend,
					  .workers = workers,
					  .observe = WEIR_OBSERVE_COMPUTE,
					  .max_in_flight = max_in_flight,
					  .max_duration_ns = (int64_t)(seconds * 1e9)};
	weir_outcome outcome = {.size = sizeof outcome};
	weir_description *description = NULL;
	weir_scheduler *scheduler = NULL;
	weir_graph *graph = NULL;
	struct result result;

	check(weir_description_parse(text, strlen(text), NULL, NULL, &description), "parse");
	check(weir_graph_create(NULL, description, &graph), "create");
	check(weir_scheduler_create(graph, &options, &scheduler), "scheduler");
	check(weir_scheduler_start(scheduler), "start");
	check(weir_scheduler_wait(scheduler, -1, &outcome), "run");
	result = counts_of(scheduler, entity);
	result.ns = outcome.duration_ns;
	snprintf(result.where, sizeof result.where, "%s", weir_scheduler_where(scheduler));
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
	weir_description_destroy(description);
	return result;
}

static double rate(struct result result)
{
	return (double)result.ticks * 1e9 / (double)result.ns;
}

/* --- the three --- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure_chain(void)
{
	static const char text[] =
		"{\"weir\":1,\"entities\":["
		"{\"name\":\"a\",\"operator\":\"spin\",\"parameters\":{\"duration\":\"5us\"}},"
		"{\"name\":\"b\",\"operator\":\"spin\",\"parameters\":{\"duration\":\"5us\"},"
		"\"ports\":{\"in\":{\"capacity\":8}}},"
		"{\"name\":\"c\",\"operator\":\"spin\",\"parameters\":{\"duration\":\"5us\"},"
		"\"ports\":{\"in\":{\"capacity\":8}}},"
		"{\"name\":\"end\",\"operator\":\"sink\",\"ports\":{\"in\":{\"capacity\":8}}}],"
		"\"connections\":[[\"a.out\",\"b.in\"],[\"b.out\",\"c.in\"],[\"c.out\",\"end.in\"]]}";
	double ratios[ROUNDS], bounded = 0, unbounded = 0;

	for (int i = 0; i < ROUNDS; i++) {
		bounded = rate(run(text, "c", 3, 0));
		unbounded = rate(run(text, "c", 3, -1));
		ratios[i] = bounded / unbounded;
	}
	qsort(ratios, ROUNDS, sizeof *ratios, by_value);
	printf("chain of 3 x 5 us, ungated: %.0f frames/s with 64 in flight, %.0f without a bound (last "
	       "round); "
	       "ratio %.3f (median of %d; %.3f to %.3f; wanted: 0.95)\n",
	       bounded, unbounded, ratios[ROUNDS / 2], ROUNDS, ratios[0], ratios[ROUNDS - 1]);
}

static void put_beside(char *text, bool spins)
{
	snprintf(text, TEXT,
		 "{\"weir\":1,\"entities\":[%s"
		 "{\"name\":\"p\",\"operator\":\"ping\",\"conditions\":[{\"type\":\"periodic\",\"period\":"
		 "\"100us\"}]},"
		 "{\"name\":\"q\",\"operator\":\"sink\"}%s],"
		 "\"connections\":[[\"p.out\",\"q.in\"]%s]}",
		 spins ? "{\"name\":\"s\",\"operator\":\"spin\",\"parameters\":{\"duration\":\"100ms\"}},"
		       : "",
		 spins ? ",{\"name\":\"end\",\"operator\":\"sink\"}" : "",
		 spins ? ",[\"s.out\",\"end.in\"]" : "");
}

static void measure_beside(void)
{
	char alone_text[TEXT], beside_text[TEXT];
	struct result alone, beside, spin;

	put_beside(alone_text, false);
	put_beside(beside_text, true);
	alone = run(alone_text, "q", 1, 0);
	beside = run(beside_text, "q", 1, 0);
	spin = run(beside_text, "s", 1, 0);
	/* The others stop when draining begins: their time is the requested duration. */
	printf("one worker beside 100 ms kernels: %.0f of %.0f ticks, ratio %.3f (wanted: 0.95); "
	       "in compute of 'spin' %.4f of the time (wanted: at most 0.01); most in flight %llu\n",
	       (double)beside.ticks, (double)alone.ticks, (double)beside.ticks / (double)alone.ticks,
	       (double)spin.compute_ns / (double)spin.ns, (unsigned long long)spin.most);
}

static void measure_drain(void)
{
	static const char text[] =
		"{\"weir\":1,\"entities\":["
		"{\"name\":\"s\",\"operator\":\"spin\",\"parameters\":{\"duration\":\"5ms\"}},"
		"{\"name\":\"end\",\"operator\":\"sink\"}],\"connections\":[[\"s.out\",\"end.in\"]]}";
	struct result result = run(text, "s", 1, 0);
	double over = (double)result.ns / 1e9 - seconds;

	printf("5 ms kernels without pause: finished %.2f s after the drain began (wanted: at most %.2f), "
	       "%llu ticks, "
	       "in compute %.4f of the time; %s\n",
	       over, 64 * 0.005 + 1, (unsigned long long)result.ticks,
	       (double)result.compute_ns / (double)result.ns, result.where);
}

int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--backend"))
			backend = argv[i + 1];
		else if (!strcmp(argv[i], "--seconds"))
			seconds = strtod(argv[i + 1], NULL);
	}
	measure_chain();
	measure_beside();
	measure_drain();
	return 0;
}

/*
 * The cost of a tick without its compute: a chain source -> pass -> ... -> sink on one worker, beside the
 * bare chain of calls through pointers and, if available at build time, oneTBB's flow graph. Time of the
 * run / sum of ticks. No pass or fail.
 *
 * usage: chain [--quick] [--workers N] [ENTITIES [CAPACITY]]
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain.h"
#include "chain_graph.h"
#include "program.h"

enum { REPETITIONS = 11 };

static uint64_t ticks_least = 2000000; /* per repetition */

/* --- weir's chain --- */

struct chain {
	weir_registry *registry;
	weir_description *description;
	weir_graph *graph;
	weir_scheduler *scheduler;
};

static void chain_open(struct chain *chain, size_t entities, unsigned capacity, unsigned workers)
{
	const weir_scheduler_options options = {
		.size = sizeof options, .workers = workers, .backend = "host"};

	*chain = (struct chain){0};
	must(weir_registry_create(&chain->registry), "registry");
	chain_register(chain->registry, chain_operators);
	chain->description = chain_describe(entities, capacity);
	must(weir_graph_create(chain->registry, chain->description, &chain->graph), "graph");
	must(weir_scheduler_create(chain->graph, &options, &chain->scheduler), "scheduler");
}

static double chain_run(struct chain *chain, uint64_t messages, size_t entities)
{
	weir_outcome outcome = {.size = sizeof outcome};

	chain_messages = messages;
	must(weir_scheduler_start(chain->scheduler), "start");
	must(weir_scheduler_wait(chain->scheduler, -1, &outcome), "wait");
	if (outcome.ticks != messages * entities) {
		fprintf(stderr, "chain: some ticks are missing\n");
		exit(1);
	}
	return (double)outcome.duration_ns / (double)outcome.ticks;
}

static void chain_close(struct chain *chain)
{
	weir_scheduler_destroy(chain->scheduler);
	weir_graph_destroy(chain->graph);
	weir_description_destroy(chain->description);
	weir_registry_destroy(chain->registry);
}

/* --- the bare chain --- */

struct stage {
	uint64_t (*compute)(struct stage *stage, uint64_t message);
	uint64_t ticks;
};

static uint64_t stage_compute(struct stage *stage, uint64_t message)
{
	stage->ticks++;
	return message;
}

static double calls_run(volatile struct stage *stages, size_t entities, uint64_t messages)
{
	int64_t begin = now();

	for (uint64_t i = 0; i < messages; i++) {
		uint64_t message = i;
		for (size_t k = 0; k < entities; k++) /* volatile: hides the callee from the compiler */
			message = stages[k].compute((struct stage *)&stages[k], message);
	}
	return (double)(now() - begin) / ((double)messages * (double)entities);
}

/* --- measuring --- */

struct samples {
	double ns[REPETITIONS];
	size_t count;
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double least(const struct samples *samples)
{
	double result = samples->ns[0];

	for (size_t i = 1; i < samples->count; i++)
		result = samples->ns[i] < result ? samples->ns[i] : result;
	return result;
}

static double median(struct samples *samples)
{
	qsort(samples->ns, samples->count, sizeof samples->ns[0], by_size);
	return samples->ns[samples->count / 2];
}

static double tbb_once(void *tbb, uint64_t messages)
{
#ifdef BENCH_WITH_TBB
	return tbb_chain_run(tbb, messages);
#else
	(void)tbb;
	(void)messages;
	return 0;
#endif
}

static void print_row(size_t entities, unsigned capacity, struct samples *weir, struct samples *calls,
		      struct samples *tbb)
{
	printf("%8zu %8u  %7.1f %7.1f  %7.1f %7.1f", entities, capacity, least(weir), median(weir),
	       least(calls), median(calls));
#ifdef BENCH_WITH_TBB
	printf("  %7.1f %7.1f  %10.1f %8.2f\n", least(tbb), median(tbb), least(weir) / least(calls),
	       least(weir) / least(tbb));
#else
	(void)tbb;
	printf("  %7s %7s  %10.1f %8s\n", "-", "-", least(weir) / least(calls), "-");
#endif
}

/* The three take turns, so that other load hits all of them. The first round warms up. */
static void measure(size_t entities, unsigned capacity, unsigned workers, size_t repetitions, void *tbb_chain)
{
	struct samples weir = {.count = repetitions}, calls = weir, tbb = weir;
	struct stage stages[100];
	struct chain chain;
	uint64_t messages = ticks_least / entities;

	for (size_t i = 0; i < entities; i++)
		stages[i] = (struct stage){.compute = stage_compute};
	chain_open(&chain, entities, capacity, workers);
	chain_run(&chain, messages, entities);
	tbb_once(tbb_chain, messages / 4);
	for (size_t i = 0; i < repetitions; i++) {
		weir.ns[i] = chain_run(&chain, messages, entities);
		calls.ns[i] = calls_run(stages, entities, messages);
		tbb.ns[i] = tbb_once(tbb_chain, messages / 4);
	}
	chain_close(&chain);
	print_row(entities, capacity, &weir, &calls, &tbb);
}

/* All rows, or the requested one. */
struct options {
	bool quick;
	unsigned workers;
	size_t entities;
	unsigned capacity;
};

static void measure_row(const struct options *options, size_t entities, void *tbb)
{
	static const unsigned capacities[] = {1, 4, 64};
	size_t repetitions = options->quick ? 1 : REPETITIONS;

	for (size_t i = 0; i < 3; i++)
		if (!options->capacity || options->capacity == capacities[i])
			measure(entities, capacities[i], options->workers, repetitions, tbb);
}

static void measure_length(const struct options *options, size_t entities)
{
	void *tbb = NULL;

#ifdef BENCH_WITH_TBB
	tbb = tbb_chain_create(entities);
#endif
	measure_row(options, entities, tbb);
#ifdef BENCH_WITH_TBB
	tbb_chain_destroy(tbb);
#endif
}

static void measure_all(const struct options *options)
{
	static const size_t lengths[] = {3, 8, 100};

	printf("ns per tick (minimum, median), %u worker%s, %llu ticks a repetition\n\n", options->workers,
	       options->workers == 1 ? "" : "s", (unsigned long long)ticks_least);
	printf("%8s %8s  %15s  %15s  %15s  %10s %8s\n", "entities", "capacity", "weir", "calls", "oneTBB",
	       "weir/calls", "weir/TBB");
	for (size_t i = 0; i < 3; i++)
		if (!options->entities || options->entities == lengths[i])
			measure_length(options, lengths[i]);
}

static unsigned number(const char *text)
{
	return text ? (unsigned)strtoul(text, NULL, 10) : 0;
}

static bool read_options(char **argv, struct options *options)
{
	for (argv++; *argv; argv++) {
		if (!strcmp(*argv, "--quick"))
			options->quick = true;
		else if (!strcmp(*argv, "--workers"))
			options->workers = number(*++argv);
		else if (!options->entities)
			options->entities = number(*argv);
		else
			options->capacity = number(*argv);
		if (!*argv)
			break;
	}
	return options->workers && options->entities <= 100;
}

int main(int argc, char **argv)
{
	struct options options = {.workers = 1};

	(void)argc;
	if (!read_options(argv, &options)) {
		fprintf(stderr, "usage: chain [--quick] [--workers N] [ENTITIES [CAPACITY]]\n");
		return 2;
	}
	if (options.quick)
		ticks_least = 20000;
	measure_all(&options);
	return 0;
}

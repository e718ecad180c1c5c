/*
 * The cost of being observed: a chain of entities whose compute takes 1 us, on one worker of `host`, without
 * an observer, with statistics, with the timeline, and with both. What an event costs is the difference of
 * the two runs, divided by the number of events. Minima of rounds that alternate. No pass or fail.
 *
 * usage: trace [--quick] [ENTITIES]
 */
#include <string.h>

#include "chain_graph.h"
#include "program.h"

enum { ROUNDS = 11, MOST = 100 };

/* --- the operators: those of the chain, and 1 us of work --- */

static void work(void)
{
	int64_t until = now() + 1000;

	while (now() < until)
		;
}

static weir_status source_compute(weir_context *context, void *state)
{
	work();
	return chain_source_compute(context, state);
}

static weir_status pass_compute(weir_context *context, void *state)
{
	work();
	return chain_pass_compute(context, state);
}

static weir_status sink_compute(weir_context *context, void *state)
{
	work();
	return chain_sink_compute(context, state);
}

static void register_operators(weir_registry *registry)
{
	static weir_operator operators[CHAIN_KINDS]; /* the registry borrows them */

	memcpy(operators, chain_operators, sizeof operators);
	operators[CHAIN_SOURCE].compute = source_compute;
	operators[CHAIN_PASS].compute = pass_compute;
	operators[CHAIN_SINK].compute = sink_compute;
	chain_register(registry, operators);
}

/* --- runs --- */

/* How a run is observed. */
struct mode {
	const char *name;
	unsigned observe;
};
static const struct mode modes[] = {
	{"off", 0},
	{"statistics", WEIR_OBSERVE_STATISTICS},
	{"trace", WEIR_OBSERVE_TRACE},
	{"both", WEIR_OBSERVE_STATISTICS | WEIR_OBSERVE_TRACE},
};
enum { MODES = sizeof modes / sizeof modes[0] };

/* Returns ns per tick. events: how many were recorded; NULL: not wanted. */
static double run_once(size_t entities, unsigned observe, size_t kept, uint64_t *events)
{
	const weir_scheduler_options options = {
		.size = sizeof options,
		.workers = 1,
		.backend = "host",
		.observe = observe,
		.trace_events = kept,
	};
	weir_description *description = chain_describe(entities, 4);
	weir_registry *registry = NULL;
	weir_graph *graph = NULL;
	weir_scheduler *scheduler = NULL;
	weir_outcome outcome = {.size = sizeof outcome};

	must(weir_registry_create(&registry), "registry");
	register_operators(registry);
	must(weir_graph_create(registry, description, &graph), "graph");
	must(weir_scheduler_create(graph, &options, &scheduler), "scheduler");
	must(weir_scheduler_start(scheduler), "start");
	must(weir_scheduler_wait(scheduler, -1, &outcome), "wait");
	if (events)
		must(weir_scheduler_write_trace(scheduler, "/dev/null", events), "write");
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
	weir_description_destroy(description);
	weir_registry_destroy(registry);
	return (double)outcome.duration_ns / (double)outcome.ticks;
}

/* A trace that keeps one record has dropped the others. */
static double events_per_tick(size_t entities)
{
	uint64_t dropped = 0;

	run_once(entities, WEIR_OBSERVE_TRACE, 1, &dropped);
	return (double)dropped / ((double)chain_messages * (double)entities);
}

static void measure(size_t entities, size_t rounds)
{
	double least[MODES] = {0}, events = events_per_tick(entities);

	for (size_t i = 0; i < rounds; i++)
		for (size_t mode = 0; mode < MODES; mode++) {
			double ns = run_once(entities, modes[mode].observe, 0, NULL);
			least[mode] = i && least[mode] < ns ? least[mode] : ns;
		}
	printf("%zu entities, %.1f events a tick, minimum of %zu rounds\n\n", entities, events, rounds);
	printf("%10s %12s %8s %14s\n", "", "ns per tick", "ratio", "ns per event");
	for (size_t mode = 0; mode < MODES; mode++)
		printf("%10s %12.1f %8.3f %14.1f\n", modes[mode].name, least[mode], least[mode] / least[0],
		       (least[mode] - least[0]) / events);
}

int main(int argc, char **argv)
{
	bool quick = argc > 1 && !strcmp(argv[1], "--quick");
	const char *given = argc > 1 + quick ? argv[1 + quick] : "8";
	size_t entities = strtoul(given, NULL, 10);

	if (entities < 2 || entities > MOST) {
		fprintf(stderr, "usage: trace [--quick] [ENTITIES]\n");
		return 2;
	}
	chain_messages = (quick ? 2000 : 400000) / entities;
	measure(entities, quick ? 1 : ROUNDS);
	return 0;
}

/* What the programs that join processes share. */
#ifndef BENCH_REMOTE_GRAPH_H
#define BENCH_REMOTE_GRAPH_H

#include <string.h>

#include "program.h"

/* Runs a graph of the plugin's operators and these to its end; limit: ns, -1: none. */
static inline void run_graph(const char *plugin, const weir_operator *operators, size_t count,
			     const char *json, const weir_scheduler_options *options, int64_t limit)
{
	weir_description *description = NULL;
	weir_scheduler *scheduler = NULL;
	weir_graph *graph = NULL;
	weir_registry *registry;

	must(weir_registry_create(&registry), "registry");
	must(weir_registry_load(registry, plugin), "plugin");
	for (size_t i = 0; i < count; i++)
		must(weir_registry_add_operator(registry, &operators[i]), "operator");
	must(weir_description_parse(json, strlen(json), NULL, NULL, &description), "graph");
	must(weir_graph_create(registry, description, &graph), "graph");
	weir_description_destroy(description);
	must(weir_scheduler_create(graph, options, &scheduler), "scheduler");
	must(weir_scheduler_start(scheduler), "start");
	must(weir_scheduler_wait(scheduler, limit, NULL), "run");
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
	weir_registry_destroy(registry);
}

#endif

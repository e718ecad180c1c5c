/*
 * Builds the same graph by calls.
 * streams [--default] [BACKEND]
 * --default: all work on the default stream, no pool. BACKEND: cuda, host or sim; default: cuda if there is a
 * GPU, else host.
 */
#include <stdio.h>
#include <string.h>

#include "streams.h"

static const struct {
	const char *name, *operator_name;
	bool on_device;
} entities[] = {
	{"source1", "numbers", true},
	{"source2", "numbers", true},
	{"process", "combine", true},
	{"sink", "check", false},
};
enum { ENTITIES = sizeof entities / sizeof *entities };

static const char *const parameters[] = {
	"source1.first=1", "source2.first=1000", "process.a=3",
	"sink.first1=1",   "sink.first2=1000",   "sink.a=3",
};

static const struct {
	const char *from, *to;
} connections[] = {
	{"source1.out", "process.in1"},
	{"source2.out", "process.in2"},
	{"process.out", "sink.in"},
};

/* Settings without a call of their own are set by their JSON pointer. */
static const struct {
	const char *pointer, *json;
} conditions[] = {
	{"/entities/0/conditions", "[{\"type\": \"count\", \"count\": 20}]"},
	{"/entities/1/conditions", "[{\"type\": \"count\", \"count\": 20}]"},
};

static weir_status add_entities(weir_description *graph)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < ENTITIES && !status; i++)
		status = weir_description_add_entity(graph, entities[i].name, entities[i].operator_name);
	for (size_t i = 0; i < sizeof parameters / sizeof *parameters && !status; i++)
		status = weir_description_set(graph, parameters[i]);
	for (size_t i = 0; i < sizeof conditions / sizeof *conditions && !status; i++)
		status = weir_description_put(graph, conditions[i].pointer, conditions[i].json);
	for (size_t i = 0; i < sizeof connections / sizeof *connections && !status; i++)
		status = weir_description_connect(graph, connections[i].from, connections[i].to);
	return status;
}

/* One pool for all entities with device work: they take three of its up to five streams. */
static weir_status add_pool(weir_description *graph)
{
	weir_status status = weir_description_put(graph, "/resources/pool",
						  "{\"type\": \"stream_pool\", \"max_size\": 5}");

	for (size_t i = 0; i < ENTITIES && !status; i++)
		if (entities[i].on_device)
			status = weir_description_use(graph, entities[i].name, "pool");
	return status;
}

/* The sources no longer ask the pool, and the internal stream of every entity is the default stream. */
static weir_status use_default_stream(weir_description *graph)
{
	weir_status status = weir_description_put(graph, "/use_default_stream", "true");

	if (!status)
		status = weir_description_set(graph, "source1.stream=");
	if (!status)
		status = weir_description_set(graph, "source2.stream=");
	return status;
}

static weir_status make_graph(weir_graph **out, const weir_registry *registry, bool default_stream)
{
	weir_description *description = NULL;
	weir_status status = weir_description_create(&description);

	if (!status)
		status = add_entities(description);
	if (!status)
		status = add_pool(description);
	if (!status && default_stream)
		status = use_default_stream(description);
	if (!status)
		status = weir_graph_create(registry, description, out);
	weir_description_destroy(description); /* the graph keeps nothing of it */
	return status;
}

int main(int argc, char **argv)
{
	bool default_stream = argc > 1 && !strcmp(argv[1], "--default");
	weir_scheduler_options options = {.size = sizeof options, .backend = argv[1 + default_stream]};
	weir_registry *registry = NULL;
	weir_graph *graph = NULL;
	weir_scheduler *scheduler = NULL;
	weir_status status = weir_registry_create(&registry);

	if (!status)
		status = streams_add(registry);
	if (!status)
		status = make_graph(&graph, registry, default_stream);
	if (!status)
		status = weir_scheduler_create(graph, &options, &scheduler);
	if (!status)
		status = weir_scheduler_run(scheduler);
	if (status)
		fprintf(stderr, "%s: %s\n", weir_status_text(status), weir_last_error());
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
	weir_registry_destroy(registry);
	return status ? 1 : 0;
}

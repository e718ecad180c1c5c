/* The graphs of bench/cores in weir: its operators are those of the chain, with more inputs and with work. */
#include "cores.h"

#include <string.h>

#include "chain_graph.h"
#include "program.h"

struct cores_weir {
	weir_registry *registry;
	weir_graph *graph;
	weir_scheduler *scheduler;
	weir_operator operators[CORES_INPUTS_MOST + 1][2][2]; /* by inputs, emits, works */
	char names[CORES_INPUTS_MOST + 1][2][2][32];
	bool cyclic;
	size_t nodes;
};

/* --- the operators --- */

static weir_status source_work(weir_context *context, void *state)
{
	cores_work(cores_iterations);
	return chain_source_compute(context, state);
}

static weir_status pass_work(weir_context *context, void *state)
{
	cores_work(cores_iterations);
	return chain_pass_compute(context, state);
}

static weir_status sink_work(weir_context *context, void *state)
{
	cores_work(cores_iterations);
	return chain_sink_compute(context, state);
}

static const weir_port inputs[CORES_INPUTS_MOST + 1] = {{.size = sizeof(weir_port), .name = "in1"},
							{.size = sizeof(weir_port), .name = "in0"},
							{.name = NULL}};

static void add_operator(struct cores_weir *self, unsigned ins, bool emits, bool works)
{
	static weir_status (*const work[CHAIN_KINDS])(weir_context *, void *) = {source_work, pass_work,
										 sink_work};
	size_t kind = !ins ? CHAIN_SOURCE : emits ? CHAIN_PASS : CHAIN_SINK;
	weir_operator *table = &self->operators[ins][emits][works];
	char *name = self->names[ins][emits][works];

	snprintf(name, sizeof self->names[0][0][0], "%s_of_%u%s", chain_operators[kind].name, ins,
		 works ? "_works" : "");
	*table = chain_operators[kind];
	table->name = name;
	table->inputs = inputs + CORES_INPUTS_MOST - ins;
	if (works)
		table->compute = work[kind];
	must(weir_registry_add_operator(self->registry, table), name);
}

/* --- the graph --- */

static void put(weir_description *description, size_t node, const char *where, const char *json)
{
	char pointer[80];

	snprintf(pointer, sizeof pointer, "/entities/%zu/%s", node, where);
	must(weir_description_put(description, pointer, json), pointer);
}

static void add_node(struct cores_weir *self, weir_description *description, const struct cores_shape *shape,
		     size_t i, uint64_t messages)
{
	const struct cores_node *node = &shape->node[i];
	char name[32], where[32], value[80];

	snprintf(name, sizeof name, "e%zu", i);
	must(weir_description_add_entity(description, name,
					 self->names[node->inputs][node->emits][node->works]),
	     name);
	snprintf(value, sizeof value, "%u", shape->capacity);
	for (unsigned k = 0; k < node->inputs; k++) {
		snprintf(where, sizeof where, "ports/in%u/capacity", k);
		put(description, i, where, value);
	}
	if (!shape->cyclic)
		return;
	snprintf(value, sizeof value, "[{\"type\": \"count\", \"count\": %llu}]",
		 (unsigned long long)messages);
	put(description, i, "conditions", value);
	put(description, i, "effects",
	    "true"); /* the last step counts, too, though nothing takes its message */
}

static void add_edge(weir_description *description, const struct cores_shape *shape, size_t i)
{
	const struct cores_edge *edge = &shape->edge[i];
	char json[120];

	snprintf(json, sizeof json,
		 "{\"from\": \"e%zu.out\", \"to\": \"e%zu.in%u\", \"initial_messages\": %d}", edge->from,
		 edge->to, edge->input, shape->cyclic);
	must(weir_description_put(description, "/connections/-", json), json);
}

struct cores_weir *cores_weir_open(const struct cores_shape *shape, unsigned workers, uint64_t messages,
				   bool observe)
{
	const weir_scheduler_options options = {.size = sizeof options,
						.workers = workers,
						.backend = "host",
						.observe = observe ? WEIR_OBSERVE_STATISTICS : 0};
	struct cores_weir *self = calloc(1, sizeof *self);
	weir_description *description = NULL;

	must(self ? WEIR_OK : WEIR_E_NOMEM, "graph");
	self->cyclic = shape->cyclic;
	self->nodes = shape->nodes;
	must(weir_registry_create(&self->registry), "registry");
	for (unsigned i = 0; i < (CORES_INPUTS_MOST + 1) * 4; i++)
		if (i / 4 || i & 2) /* nothing takes and emits nothing */
			add_operator(self, i / 4, i & 2, i & 1);
	must(weir_description_create(&description), "description");
	for (size_t i = 0; i < shape->nodes; i++)
		add_node(self, description, shape, i, messages);
	for (size_t i = 0; i < shape->edges; i++)
		add_edge(description, shape, i);
	must(weir_graph_create(self->registry, description, &self->graph), shape->name);
	weir_description_destroy(description);
	must(weir_scheduler_create(self->graph, &options, &self->scheduler), "scheduler");
	return self;
}

struct cores_run cores_weir_run(struct cores_weir *self, uint64_t messages)
{
	weir_outcome outcome = {.size = sizeof outcome};
	int64_t cpu = cores_cpu(), begun = now();

	chain_messages = messages;
	must(weir_scheduler_start(self->scheduler), "start");
	must(weir_scheduler_wait(self->scheduler, -1, &outcome), "wait");
	if (self->cyclic && outcome.ticks != messages * self->nodes)
		must(WEIR_E_INVALID, "cores: some ticks are missing");
	return (struct cores_run){now() - begun, cores_cpu() - cpu, outcome.ticks};
}

/* The key is one of the workers' alone. */
static uint64_t sum_of(const char *text, const char *key)
{
	uint64_t sum = 0;

	while ((text = strstr(text, key)))
		sum += strtoull(text += strlen(key), NULL, 10);
	return sum;
}

void cores_weir_moves(struct cores_weir *self, uint64_t *wakes, uint64_t *steals)
{
	char *text = NULL;

	must(weir_scheduler_print_statistics(self->scheduler, &text), "statistics");
	*wakes = sum_of(text, "\"wakes\":");
	*steals = sum_of(text, "\"steals\":");
	weir_text_free(text);
}

void cores_weir_close(struct cores_weir *self)
{
	weir_scheduler_destroy(self->scheduler);
	weir_graph_destroy(self->graph);
	weir_registry_destroy(self->registry);
	free(self);
}

#include "chain_graph.h"

#include "program.h"

uint64_t chain_messages;

/* --- the operators --- */

struct source {
	uint64_t left;
};

static weir_status source_start(weir_context *context, void *state, const weir_values *values)
{
	(void)context;
	(void)values;
	((struct source *)state)->left = chain_messages;
	return WEIR_OK;
}

weir_status chain_source_compute(weir_context *context, void *state)
{
	struct source *self = state;
	weir_message *message;
	weir_status status = weir_message_create_empty(weir_context_graph(context), &message);

	if (status)
		return status;
	if (--self->left == 0)
		weir_context_finish(context);
	return weir_context_emit(context, 0, message);
}

weir_status chain_pass_compute(weir_context *context, void *state)
{
	(void)state;
	return weir_context_forward(context, 0, 0, 0);
}

weir_status chain_sink_compute(weir_context *context, void *state)
{
	*(uint64_t *)state += weir_context_count(context, 0);
	return WEIR_OK;
}

static const weir_port in[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_port out[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};

const weir_operator chain_operators[CHAIN_KINDS] = {
	[CHAIN_SOURCE] = {.size = sizeof(weir_operator),
			  .name = "chain_source",
			  .help = "makes empty messages",
			  .state_size = sizeof(struct source),
			  .outputs = out,
			  .start = source_start,
			  .compute = chain_source_compute},
	[CHAIN_PASS] = {.size = sizeof(weir_operator),
			.name = "chain_pass",
			.help = "hands its message on",
			.inputs = in,
			.outputs = out,
			.compute = chain_pass_compute},
	[CHAIN_SINK] = {.size = sizeof(weir_operator),
			.name = "chain_sink",
			.help = "counts",
			.state_size = sizeof(uint64_t),
			.inputs = in,
			.compute = chain_sink_compute},
};

/* --- the graph --- */

void chain_register(weir_registry *registry, const weir_operator operators[CHAIN_KINDS])
{
	for (size_t i = 0; i < CHAIN_KINDS; i++)
		must(weir_registry_add_operator(registry, &operators[i]), operators[i].name);
}

weir_description *chain_describe(size_t entities, unsigned capacity)
{
	weir_description *description = NULL;
	char name[32], from[40] = "", to[40], pointer[80], value[16];

	must(weir_description_create(&description), "description");
	snprintf(value, sizeof value, "%u", capacity);
	for (size_t i = 0; i < entities; i++) {
		size_t kind = !i ? CHAIN_SOURCE : i + 1 < entities ? CHAIN_PASS : CHAIN_SINK;

		snprintf(name, sizeof name, "e%zu", i);
		snprintf(to, sizeof to, "%s.in", name);
		snprintf(pointer, sizeof pointer, "/entities/%zu/ports/in/capacity", i);
		must(weir_description_add_entity(description, name, chain_operators[kind].name), "add");
		if (i) {
			must(weir_description_put(description, pointer, value), "put");
			must(weir_description_connect(description, from, to), "connect");
		}
		snprintf(from, sizeof from, "%s.out", name);
	}
	return description;
}

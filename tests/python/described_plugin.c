/* A plugin whose operator has the ports that its parameters name, and one of its table. */
#include "weir.h"

static const weir_parameter parameters[] = {
	{.size = sizeof(weir_parameter), .name = "from", .type = WEIR_TYPE_STRING, .help = "the input"},
	{.size = sizeof(weir_parameter), .name = "to", .type = WEIR_TYPE_STRING, .help = "the output"},
	{.name = NULL},
};

static weir_status describe(const weir_values *values, weir_ports *ports)
{
	const weir_port in = {.size = sizeof(weir_port), .name = weir_values_string(values, "from")};
	const weir_port out = {.size = sizeof(weir_port), .name = weir_values_string(values, "to")};
	weir_status status = weir_ports_add_input(ports, &in);

	return status ? status : weir_ports_add_output(ports, &out);
}

static weir_status compute(weir_context *context, void *state)
{
	(void)state;
	return weir_context_emit(context, 1, weir_message_ref(weir_context_message(context, 0, 0)));
}

static const weir_port outputs[] = {{.size = sizeof(weir_port), .name = "more", .flags = WEIR_PORT_OPTIONAL},
				    {.name = NULL}};
static const weir_operator named = {.size = sizeof named,
				    .name = "named",
				    .help = "passes messages on",
				    .parameters = parameters,
				    .outputs = outputs,
				    .compute = compute,
				    .describe = describe};

static weir_status add(weir_registry *registry)
{
	return weir_registry_add_operator(registry, &named);
}

WEIR_PLUGIN(add);

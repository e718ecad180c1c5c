/*
 * A plugin whose texts all contain terminal control characters. Operator `strange`: fails, waits or prints.
 */
#include <string.h>

#include "weir.h"

#define STRANGE "x\x1b[31m\a\x7f\xc2\x9bm\xe2\x80\xaey\nz\xff"

static const weir_parameter parameters[] = {
	{.size = sizeof(weir_parameter),
	 .name = "text",
	 .type = WEIR_TYPE_STRING,
	 .fallback = "\"x\xc2\x9bm\xe2\x80\xaey\"",
	 .help = "help " STRANGE},
	{.size = sizeof(weir_parameter),
	 .name = "mode",
	 .type = WEIR_TYPE_CHOICE,
	 .fallback = "\"fail\"",
	 .choices = "fail|start|" STRANGE,
	 .help = "help " STRANGE},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{.size = sizeof(weir_port), .name = "out", .help = "help " STRANGE, .flags = WEIR_PORT_OPTIONAL},
	{.name = NULL},
};

static weir_status start(weir_context *context, void *state, const weir_values *values)
{
	(void)state;
	if (!strcmp(weir_values_string(values, "mode"), "start"))
		return weir_context_fail(context, "cannot start %s", STRANGE);
	return WEIR_OK;
}

static weir_status compute(weir_context *context, void *state)
{
	(void)state;
	return weir_context_fail(context, "cannot go on %s", STRANGE);
}

static const weir_operator strange = {
	.size = sizeof(weir_operator),
	.name = "strange",
	.help = "help " STRANGE,
	.parameters = parameters,
	.outputs = outputs,
	.start = start,
	.compute = compute,
};

static void ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_wait(verdict, "waits " STRANGE);
}

static const weir_condition never_there = {
	.size = sizeof(weir_condition),
	.name = "never_there",
	.help = "help " STRANGE,
	.parameters = parameters,
	.ask = ask,
};

static weir_status add(weir_registry *registry)
{
	weir_status status = weir_registry_add_operator(registry, &strange);

	return status ? status : weir_registry_add_condition(registry, &never_there);
}

WEIR_PLUGIN(add);

/* A plugin as a user would write it: an operator that doubles numbers, and a condition
 * that allows three ticks. */
#include "weir.h"

static weir_status compute(weir_context *context, void *state)
{
	int64_t *number;
	weir_message *message = NULL;
	weir_status status = weir_message_create_bytes(weir_context_graph(context), sizeof *number, &message);

	(void)state;
	if (status)
		return status;
	number = weir_message_data(message);
	*number = 2 * *(int64_t *)weir_message_data(weir_context_message(context, 0, 0));
	return weir_context_emit(context, 0, message);
}

static void ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)view;
	if (*(const int *)state < 3)
		weir_verdict_ready(verdict);
	else
		weir_verdict_never(verdict, "three ticks were enough");
}

static void ticked(void *state, weir_view *view)
{
	(void)view;
	++*(int *)state;
}

static const weir_port inputs[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_port outputs[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};
static const weir_operator doubler = {
	.size = sizeof doubler, .name = "doubler", .inputs = inputs, .outputs = outputs, .compute = compute};
static const weir_condition thrice = {
	.size = sizeof thrice, .name = "thrice", .state_size = sizeof(int), .ask = ask, .ticked = ticked};

static weir_status add(weir_registry *registry)
{
	weir_status status = weir_registry_add_operator(registry, &doubler);

	return status ? status : weir_registry_add_condition(registry, &thrice);
}

WEIR_PLUGIN(add);

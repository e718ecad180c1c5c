#include "operators/operators.h"
#include "operators/tensor.h"

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.flags = WEIR_PORT_DEVICE, /* no host code reads the messages */
		.help = "anything",
	},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.help = "the same message, with its streams and its stamp",
	},
	{.name = NULL},
};

static weir_status pass_on(weir_context *context, void *state, weir_message *message)
{
	(void)state;
	return weir_context_emit(context, 0, weir_message_ref(message));
}

static weir_status pass_compute(weir_context *context, void *state)
{
	return wr_messages_each(context, state, pass_on);
}

const weir_operator wr_pass = {
	.size = sizeof(weir_operator),
	.name = "pass",
	.help = "passes each message on as it is, also while the device works on it; a place for a queue, a "
		"policy or a condition",
	.inputs = inputs,
	.outputs = outputs,
	.compute = pass_compute,
};

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
		.like = "in",
	},
	{.name = NULL},
};

static weir_status pass_compute(weir_context *context, void *state)
{
	size_t count = weir_context_count(context, 0);
	weir_status status = WEIR_OK;

	(void)state;
	for (size_t i = 0; i < count && !status; i++)
		status = weir_context_forward(context, 0, i, 0);
	return status;
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

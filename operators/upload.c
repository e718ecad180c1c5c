#include "operators/operators.h"
#include "operators/tensor.h"

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.kinds = WEIR_KIND_TENSOR,
		.help = "a tensor in host memory or on any device",
	},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_TENSOR,
		.help = "its dense copy on the device; a tensor that is there already is passed on",
		.place = "device",
	},
	{.name = NULL},
};

static weir_status upload_message(weir_context *context, void *state, weir_message *message)
{
	(void)state;
	return wr_tensor_copy(context, message, false);
}

static weir_status upload_compute(weir_context *context, void *state)
{
	return wr_messages_each(context, state, upload_message);
}

const weir_operator wr_upload = {
	.size = sizeof(weir_operator),
	.name = "upload",
	.help = "copies tensors from host memory, or from another device, to its own device, "
		"on a stream of its own",
	.flags = WEIR_OPERATOR_STREAM,
	.inputs = inputs,
	.outputs = outputs,
	.compute = upload_compute,
};

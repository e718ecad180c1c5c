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
		.like = "in",
	},
	{.name = NULL},
};

static weir_status upload_compute(weir_context *context, void *state)
{
	(void)state;
	return wr_tensors_copy(context, false);
}

const weir_operator wr_upload = {
	.size = sizeof(weir_operator),
	.name = "upload",
	.help = "copies tensors from host memory, or from another device, to its own device, "
		"on a stream of its own",
	.flags = WEIR_OPERATOR_STREAM | WEIR_OPERATOR_INSTANCES,
	.inputs = inputs,
	.outputs = outputs,
	.compute = upload_compute,
};

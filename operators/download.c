#include "operators/operators.h"
#include "operators/tensor.h"

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.kinds = WEIR_KIND_TENSOR,
		.help = "a tensor on the device",
		.place = "device",
	},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.flags = WEIR_PORT_HOST,
		.kinds = WEIR_KIND_TENSOR,
		.help = "its dense copy in pinned host memory",
		.place = "host",
		.like = "in",
	},
	{.name = NULL},
};

static weir_status download_compute(weir_context *context, void *state)
{
	(void)state;
	return wr_tensors_copy(context, true);
}

const weir_operator wr_download = {
	.size = sizeof(weir_operator),
	.name = "download",
	.help = "copies tensors from the device to pinned host memory, on a stream of its own",
	.flags = WEIR_OPERATOR_STREAM | WEIR_OPERATOR_INSTANCES,
	.inputs = inputs,
	.outputs = outputs,
	.compute = download_compute,
};

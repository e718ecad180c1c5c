/*
 * A plugin with one operator: `scale` makes pictures brighter or darker on the device. Its kernel has two
 * forms: the host form runs on the backends `host` and `sim`, the CUDA form (scale.cu) on a GPU.
 * docs/writing-operators.md explains this file.
 */
#include "scale.h"

#include <weir.h>

/* --- the kernel --- */

static int scale_on_host(const void *arguments)
{
	const struct scale_arguments *work = arguments;

	for (int64_t i = 0; i < work->count; i++)
		work->to[i] = scale_one(work->from[i], work->percent);
	return 0;
}

static const weir_kernel kernel = {
	.size = sizeof(weir_kernel),
	.name = "scale",
	.host = scale_on_host,
#ifdef SCALE_WITH_CUDA
	.cuda = scale_on_cuda,
#endif
};

/* --- the operator --- */

struct scale {
	int32_t percent;
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "percent",
		.type = WEIR_TYPE_INT,
		.fallback = "100",
		.max = 10000,
		.help = "brightness: 100 changes nothing",
	},
	{.name = NULL},
};

static const weir_port inputs[] = {
	{.size = sizeof(weir_port),
	 .name = "in",
	 .help = "any shape, dense",
	 .dtype = "uint8",
	 .place = "device"},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{.size = sizeof(weir_port),
	 .name = "out",
	 .help = "the same shape, scaled",
	 .dtype = "uint8",
	 .place = "device"},
	{.name = NULL},
};

static weir_status start(weir_context *context, void *state, const weir_values *values)
{
	struct scale *self = state;

	(void)context;
	self->percent = (int32_t)weir_values_int(values, "percent");
	return WEIR_OK;
}

static weir_status check(weir_context *context, const weir_tensor *tensor, int device)
{
	if (!tensor || tensor->code != 1 || tensor->bits != 8)
		return weir_context_fail(context, "input 'in' expects a tensor of uint8");
	if (tensor->device != device)
		return weir_context_fail(context, "input 'in' is not on device %d: put an 'upload' before it",
					 device);
	return WEIR_OK;
}

static weir_status compute(weir_context *context, void *state)
{
	const struct scale *self = state;
	weir_message *from = weir_context_message(context, 0, 0); /* borrowed until we return */
	weir_message *to = NULL;
	weir_stream *stream;
	struct scale_arguments work = {.percent = self->percent};
	weir_status status = weir_context_stream(context, &stream); /* ordered after the producer of `from` */

	if (!status)
		status = check(context, weir_message_tensor(from), weir_stream_device(stream));
	if (!status)
		status = weir_context_create_tensor(context, weir_message_tensor(from), 0, &to);
	if (status)
		return status;
	work.from = weir_message_data(from);
	work.to = weir_message_data(to);
	work.count = (int64_t)weir_message_size(from);
	status = weir_stream_launch(stream, &kernel, &work, sizeof work); /* returns at once */
	if (!status) /* takes `to`, which travels with a fence of our stream */
		return weir_context_emit(context, 0, to);
	weir_message_unref(to);
	return status;
}

static const weir_operator scale = {
	.size = sizeof(weir_operator),
	.name = "scale",
	.help = "multiplies bytes by a percentage, clamped to 255",
	.flags = WEIR_OPERATOR_STREAM,
	.state_size = sizeof(struct scale),
	.parameters = parameters,
	.inputs = inputs,
	.outputs = outputs,
	.start = start,
	.compute = compute,
};

/* --- the plugin --- */

static weir_status add(weir_registry *registry)
{
	return weir_registry_add_operator(registry, &scale);
}

WEIR_PLUGIN(add);

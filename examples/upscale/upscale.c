/*
 * Two operators. `letterbox` makes frames of one size out of pictures, as networks want them; `upscale` runs
 * the network of upscale.h, which doubles a frame. Both only enqueue: nothing here waits for the device.
 */
#include "upscale.h"

#include <inttypes.h>
#include <weir.h>

enum { UINT = 1, INT = 0, SIDE_MAX = 8192 };

/* Fails unless the message is a dense tensor of 8 bits on this entity's device with `channels` or fewer. */
static weir_status check_input(weir_context *context, const weir_tensor *tensor, uint8_t code,
			       int64_t channels)
{
	if (!tensor || tensor->dimensions != 3 || tensor->code != code || tensor->bits != 8 ||
	    tensor->lanes > 1 || tensor->shape[2] > channels || tensor->shape[0] > SIDE_MAX ||
	    tensor->shape[1] > SIDE_MAX)
		return weir_context_fail(context,
					 "input 'in' expects %s [height, width, channels], at most %d wide",
					 code == UINT ? "uint8" : "int8", SIDE_MAX);
	if (tensor->device != weir_context_device(context))
		return weir_context_fail(context, "input 'in' is not on device %d: put an 'upload' before it",
					 weir_context_device(context));
	return WEIR_OK;
}

static weir_status create(weir_context *context, uint8_t code, const int64_t shape[3], weir_message **out)
{
	const weir_tensor like = {
		.size = sizeof like, .dimensions = 3, .shape = shape, .code = code, .bits = 8};

	return weir_context_create_tensor(context, &like, 0, out);
}

static weir_status emit(weir_context *context, weir_message *message, weir_status written)
{
	if (!written)
		return weir_context_emit(context, 0, message);
	weir_message_unref(message);
	return written;
}

#ifdef UPSCALE_WITH_CUDA
#define CUDA_FORM(function) function
#else
#define CUDA_FORM(function) NULL
#endif

/* --- letterbox --- */

struct letterbox_state {
	int32_t height, width;
};

static const weir_kernel letterbox_kernel = {
	.size = sizeof(weir_kernel),
	.name = "letterbox",
	.host = letterbox_on_host,
	.cuda = CUDA_FORM(letterbox_on_cuda),
};

static weir_status letterbox_start(weir_context *context, void *state, const weir_values *values)
{
	struct letterbox_state *self = state;

	(void)context;
	self->height = (int32_t)weir_values_int(values, "height");
	self->width = (int32_t)weir_values_int(values, "width");
	return WEIR_OK;
}

static weir_status letterbox_compute(weir_context *context, void *state)
{
	const struct letterbox_state *self = state;
	const int64_t shape[] = {self->height, self->width, FRAME_CHANNELS};
	const weir_message *in = weir_context_message(context, 0, 0);
	const weir_tensor *picture = weir_message_tensor(in);
	struct letterbox work = {.frame_height = self->height, .frame_width = self->width};
	weir_message *out = NULL;
	weir_stream *stream;
	weir_status status = check_input(context, picture, UINT, 4);

	if (status)
		return status;
	work.height = (int32_t)picture->shape[0];
	work.width = (int32_t)picture->shape[1];
	work.channels = (int32_t)picture->shape[2];
	if (work.height > work.frame_height || work.width > work.frame_width)
		return weir_context_fail(
			context, "a picture of %d x %d does not fit into %d x %d: raise 'width' and 'height'",
			work.width, work.height, work.frame_width, work.frame_height);
	status = weir_context_stream(context, &stream);
	if (!status)
		status = create(context, INT, shape, &out);
	if (status)
		return status;
	work.from = weir_message_data(in);
	work.to = weir_message_data(out);
	return emit(context, out, weir_stream_launch(stream, &letterbox_kernel, &work, sizeof work));
}

static const weir_parameter letterbox_parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "height",
		.type = WEIR_TYPE_INT,
		.fallback = "512",
		.min = 1,
		.max = SIDE_MAX,
		.help = "of the frame, pixels",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "width",
		.type = WEIR_TYPE_INT,
		.fallback = "608",
		.min = 1,
		.max = SIDE_MAX,
		.help = "of the frame, pixels",
	},
	{.name = NULL},
};

static const weir_port letterbox_inputs[] = {
	{.size = sizeof(weir_port),
	 .name = "in",
	 .kinds = WEIR_KIND_TENSOR,
	 .help = "a uint8 picture on the device"},
	{.name = NULL},
};

static const weir_port letterbox_outputs[] = {
	{.size = sizeof(weir_port),
	 .name = "out",
	 .kinds = WEIR_KIND_TENSOR,
	 .help = "int8 [height, width, 4]"},
	{.name = NULL},
};

static const weir_operator letterbox = {
	.size = sizeof(weir_operator),
	.name = "letterbox",
	.help = "puts pictures into the middle of frames of one size, as a network wants them",
	.flags = WEIR_OPERATOR_STREAM,
	.state_size = sizeof(struct letterbox_state),
	.parameters = letterbox_parameters,
	.inputs = letterbox_inputs,
	.outputs = letterbox_outputs,
	.start = letterbox_start,
	.compute = letterbox_compute,
};

/* --- upscale --- */

static const weir_kernel layer_kernel = {
	.size = sizeof(weir_kernel),
	.name = "layer",
	.host = layer_on_host,
	.cuda = CUDA_FORM(layer_on_cuda),
};

static const weir_kernel last_layer_kernel = {
	.size = sizeof(weir_kernel),
	.name = "last_layer",
	.host = last_layer_on_host,
	.cuda = CUDA_FORM(last_layer_on_cuda),
};

/* What the work of one tick depends on: the key of its replay. */
struct frame {
	const int8_t *from;
	uint8_t *to;
	int8_t *hidden[2]; /* what is between the layers */
	int32_t height, width;
};

static weir_status enqueue_network(weir_context *context, weir_stream *stream, void *arg)
{
	const struct frame *frame = arg;
	const struct layer first = {frame->from, frame->hidden[0], frame->height, frame->width, 1};
	const struct layer second = {frame->hidden[0], frame->hidden[1], frame->height, frame->width, 2};
	const struct last_layer last = {frame->hidden[1], frame->from, frame->to, frame->height,
					frame->width};
	weir_status status = weir_stream_launch(stream, &layer_kernel, &first, sizeof first);

	(void)context;
	if (!status)
		status = weir_stream_launch(stream, &layer_kernel, &second, sizeof second);
	if (!status)
		status = weir_stream_launch(stream, &last_layer_kernel, &last, sizeof last);
	return status;
}

struct upscale_state {
	bool replay;
};

static weir_status upscale_start(weir_context *context, void *state, const weir_values *values)
{
	struct upscale_state *self = state;

	(void)context;
	self->replay = weir_values_bool(values, "replay");
	return WEIR_OK;
}

static weir_status enqueue_or_replay(weir_context *context, const struct upscale_state *self,
				     struct frame *frame)
{
	weir_stream *stream;
	weir_status status;

	if (self->replay)
		return weir_context_replay(context, frame, sizeof *frame, enqueue_network, frame);
	status = weir_context_stream(context, &stream);
	return status ? status : enqueue_network(context, stream, frame);
}

static weir_status upscale_compute(weir_context *context, void *state)
{
	const weir_message *in = weir_context_message(context, 0, 0);
	const weir_tensor *tensor = weir_message_tensor(in);
	struct frame frame = {.from = weir_message_data(in)};
	weir_message *out = NULL;
	void *hidden = NULL;
	size_t bytes;
	weir_status status = check_input(context, tensor, INT, FRAME_CHANNELS);

	if (status)
		return status;
	frame.height = (int32_t)tensor->shape[0];
	frame.width = (int32_t)tensor->shape[1];
	bytes = (size_t)HIDDEN * (size_t)frame.height * (size_t)frame.width;
	status = create(context, UINT, (const int64_t[]){2 * frame.height, 2 * frame.width, COLOURS}, &out);
	if (!status)
		status = weir_context_scratch(context, NULL, 2 * bytes, &hidden);
	if (status)
		return emit(context, out, status);
	frame.to = weir_message_data(out);
	frame.hidden[0] = hidden;
	frame.hidden[1] = frame.hidden[0] + bytes;
	status = enqueue_or_replay(context, state, &frame);
	return emit(context, out, status);
}

static const weir_parameter upscale_parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "replay",
		.type = WEIR_TYPE_BOOL,
		.fallback = "true",
		.help = "launch captured work again (a CUDA graph) where the addresses are the same",
	},
	{.name = NULL},
};

static const weir_port upscale_inputs[] = {
	{.size = sizeof(weir_port), .name = "in", .kinds = WEIR_KIND_TENSOR, .help = "frames from letterbox"},
	{.name = NULL},
};

static const weir_port upscale_outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_TENSOR,
		.help = "uint8 [2 height, 2 width, 3]",
	},
	{.name = NULL},
};

static const weir_operator upscale = {
	.size = sizeof(weir_operator),
	.name = "upscale",
	.help = "doubles frames by a network of three layers, in integers: the same bytes on every backend",
	.flags = WEIR_OPERATOR_STREAM,
	.state_size = sizeof(struct upscale_state),
	.parameters = upscale_parameters,
	.inputs = upscale_inputs,
	.outputs = upscale_outputs,
	.start = upscale_start,
	.compute = upscale_compute,
};

/* --- the plugin --- */

static weir_status add(weir_registry *registry)
{
	weir_status status = weir_registry_add_operator(registry, &letterbox);

	return status ? status : weir_registry_add_operator(registry, &upscale);
}

WEIR_PLUGIN(add);

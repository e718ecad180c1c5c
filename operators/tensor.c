#include "operators/tensor.h"

#include <inttypes.h>
#include <stdio.h>

static const char *type_name(const weir_tensor *tensor)
{
	static const char *const names[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};

	return tensor->code < sizeof names / sizeof *names ? names[tensor->code] : "type ";
}

const char *wr_tensor_text(const weir_tensor *tensor, char text[WR_TENSOR_TEXT])
{
	size_t at = (size_t)snprintf(text, WR_TENSOR_TEXT, "%s", type_name(tensor));

	if (tensor->code != 6) /* DLPack's bool: there is one */
		at += (size_t)snprintf(text + at, WR_TENSOR_TEXT - at, "%u", tensor->bits);
	at += (size_t)snprintf(text + at, WR_TENSOR_TEXT - at, " [");

	for (int32_t i = 0; i < tensor->dimensions && at < WR_TENSOR_TEXT; i++)
		at += (size_t)snprintf(text + at, WR_TENSOR_TEXT - at, "%s%" PRId64, i ? ", " : "",
				       tensor->shape[i]);
	if (at < WR_TENSOR_TEXT && tensor->device == WEIR_DEVICE_HOST)
		snprintf(text + at, WR_TENSOR_TEXT - at, "] in host memory");
	else if (at < WR_TENSOR_TEXT)
		snprintf(text + at, WR_TENSOR_TEXT - at, "] on device %d", tensor->device);
	return text;
}

bool wr_tensor_is_dense(const weir_tensor *tensor)
{
	int64_t step = 1;

	for (int32_t i = tensor->dimensions; tensor->strides && i-- > 0; step *= tensor->shape[i])
		if (tensor->shape[i] != 1 && tensor->strides[i] != step)
			return false;
	return true;
}

static bool is_image(const weir_tensor *tensor)
{
	if (tensor->code != 1 || tensor->bits != 8 || tensor->lanes > 1 || !wr_tensor_is_dense(tensor))
		return false;
	if (tensor->dimensions < 2 || tensor->dimensions > 3)
		return false;
	for (int32_t i = 0; i < tensor->dimensions; i++)
		if (tensor->shape[i] < 1 || tensor->shape[i] > (i < 2 ? WR_IMAGE_SIDE_MAX : WR_CHANNELS_MAX))
			return false;
	return true;
}

weir_status wr_tensor_image(weir_context *context, const weir_tensor *tensor, struct wr_image *out)
{
	char text[WR_TENSOR_TEXT];

	if (!tensor)
		return weir_context_fail(context,
					 "input 'in' expects an image, got a message without a tensor");
	if (!is_image(tensor))
		return weir_context_fail(
			context, "input 'in' expects a dense uint8 [height, width, 1 to 4 channels], got %s",
			wr_tensor_text(tensor, text));
	out->height = (int32_t)tensor->shape[0];
	out->width = (int32_t)tensor->shape[1];
	out->channels = tensor->dimensions == 3 ? (int32_t)tensor->shape[2] : 1;
	return WEIR_OK;
}

weir_status wr_tensor_on_host(weir_context *context, const weir_tensor *tensor)
{
	char text[WR_TENSOR_TEXT];

	if (tensor->device == WEIR_DEVICE_HOST)
		return WEIR_OK;
	return weir_context_fail(context, "input 'in' is %s: put a 'download' before it",
				 wr_tensor_text(tensor, text));
}

weir_status wr_launch(weir_context *context, const weir_kernel *kernel, const void *arguments, size_t bytes)
{
	weir_stream *stream;
	weir_status status = weir_context_stream(context, &stream);

	return status ? status : weir_stream_launch(stream, kernel, arguments, bytes);
}

static weir_status check_on_device(weir_context *context, const weir_tensor *tensor)
{
	int device = weir_context_device(context);
	weir_stream *stream;
	const char *also =
		tensor->device == WEIR_DEVICE_HOST ? "" : ", with a stream pool of the same device";
	char text[WR_TENSOR_TEXT];

	if (tensor->device == device)
		return weir_context_stream(context, &stream);
	return weir_context_fail(context,
				 "input 'in' is %s, but device %d works here: put an 'upload' before it%s",
				 wr_tensor_text(tensor, text), device, also);
}

const weir_port wr_image_inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.kinds = WEIR_KIND_TENSOR,
		.help = "a uint8 image on the device",
		.dtype = "uint8",
		.place = "device",
		.shape = "[H, W] | [H, W, 1..4]",
	},
	{.name = NULL},
};

weir_status wr_image_on_device(weir_context *context, const weir_message *message, struct wr_image *out)
{
	const weir_tensor *tensor = weir_message_tensor(message);
	weir_status status = wr_tensor_image(context, tensor, out);

	return status ? status : check_on_device(context, tensor);
}

struct wr_per_channel wr_per_channel_read(const weir_values *values, const char *name)
{
	size_t count = weir_values_count(values, name);
	struct wr_per_channel numbers = {.name = name};

	for (size_t i = 0; i < count && i < WR_CHANNELS_MAX; i++)
		numbers.values[numbers.count++] = weir_values_number_at(values, name, i);
	return numbers;
}

double wr_per_channel_at(const struct wr_per_channel *numbers, int32_t channel)
{
	if (numbers->count == 1)
		return numbers->values[0];
	return channel < numbers->count ? numbers->values[channel] : 0;
}

weir_status wr_per_channel_check_levels(weir_context *context, const struct wr_per_channel *numbers)
{
	for (int32_t i = 0; i < numbers->count; i++) {
		double level = numbers->values[i];

		if (!(level >= 0 && level <= 255) || level != (int32_t)level)
			return weir_context_fail(context, "%s has %g: must have integers from 0 to 255",
						 numbers->name, level);
	}
	return WEIR_OK;
}

weir_status wr_per_channel_fit(weir_context *context, const struct wr_per_channel *numbers,
			       const weir_tensor *tensor, struct wr_image image, double out[WR_CHANNELS_MAX])
{
	char text[WR_TENSOR_TEXT];

	if (numbers->count != 1 && numbers->count != image.channels)
		return weir_context_fail(
			context,
			"%s has %d numbers, but input 'in' is %s: give one number, or one per channel",
			numbers->name, numbers->count, wr_tensor_text(tensor, text));
	for (int32_t i = 0; i < WR_CHANNELS_MAX; i++)
		out[i] = wr_per_channel_at(numbers, i);
	return WEIR_OK;
}

weir_status wr_message_finished(weir_context *context, const weir_message *message)
{
	return wr_port_finished(context, "in", message);
}

weir_status wr_port_finished(weir_context *context, const char *port, const weir_message *message)
{
	enum { ROOM = 16 };
	weir_fence fences[ROOM];
	size_t count = weir_message_fences(message, ROOM, fences);
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < count && i < ROOM && !status; i++)
		status = weir_fence_query(weir_context_graph(context), fences[i]);
	if (status != WEIR_E_BUSY)
		return status;
	return weir_context_fail(
		context,
		"the device still writes what input '%s' holds: take \"gate\": false of port '%s' "
		"out of '%s'",
		port, port, weir_entity_name(weir_context_entity(context)));
}

weir_status wr_message_written(weir_context *context, weir_message *message, weir_status written)
{
	if (!written)
		return weir_context_emit(context, 0, message);
	weir_message_unref(message);
	return written;
}

weir_status wr_messages_each(weir_context *context, void *state, wr_message_fn *tick)
{
	size_t count = weir_context_count(context, 0);
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < count && !status; i++)
		status = tick(context, state, weir_context_message(context, 0, i));
	return status;
}

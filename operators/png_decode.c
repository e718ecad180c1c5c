#include "operators/png_decode.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "operators/operators.h"
#include "operators/path.h"
#include "operators/picture.h"
#include "operators/tensor.h"

const weir_port wr_png_outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_TENSOR,
		.help = "uint8 [height, width, 1, 3 or 4 channels] in pinned host memory",
		.dtype = "uint8",
		.place = "host",
		.shape = "[H, W, 1] | [H, W, 3..4]",
	},
	{.name = NULL},
};

static weir_status alloc_image(weir_context *context, struct wr_image image, weir_message **out)
{
	const int64_t shape[] = {image.height, image.width, image.channels};
	const weir_tensor like = {
		.size = sizeof(weir_tensor),
		.device = WEIR_DEVICE_HOST,
		.dimensions = 3,
		.shape = shape,
		.code = 1,
		.bits = 8,
	};

	return weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, out);
}

/* The pictures before it are worked off. */
static weir_status fail_picture(weir_context *context, const char *file, const char *why)
{
	return weir_context_fail_after_drain(context, WEIR_E_FAILED, "'%s': %s", file, why);
}

static weir_status read_picture(weir_context *context, int64_t max_bytes, struct wr_picture *picture,
				const char *file)
{
	const struct wr_image *image = &picture->image;
	weir_message *message = NULL;
	weir_status status;

	if (!wr_picture_take(picture, wr_path_open(context, file, WR_PICTURE_OPEN, 0)))
		return fail_picture(context, file, picture->text);
	if ((int64_t)image->width * image->height * image->channels > max_bytes)
		return weir_context_fail_after_drain(
			context, WEIR_E_FAILED,
			"'%s': %d x %d pixels of %d bytes are more than max_bytes, %" PRId64, file,
			image->width, image->height, image->channels, max_bytes);
	status = alloc_image(context, *image, &message);
	if (status)
		return status;
	if (wr_picture_rows(picture, weir_message_data(message)))
		return weir_context_emit(context, 0, message);
	weir_message_unref(message);
	return fail_picture(context, file, picture->text);
}

weir_status wr_png_emit(weir_context *context, const char *file, int64_t max_bytes)
{
	struct wr_picture picture;
	weir_status status = read_picture(context, max_bytes, &picture, file);

	wr_picture_close(&picture);
	return status;
}

/* --- the operator --- */

struct png_decode {
	int64_t max_bytes;
};

static const weir_parameter parameters[] = {WR_PNG_MAX_BYTES, {.name = NULL}};

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.kinds = WEIR_KIND_BYTES,
		.help = "the path of a PNG file, as `files` emits it; at most 32768 x 32768 pixels",
	},
	{.name = NULL},
};

static weir_status png_decode_start(weir_context *context, void *state, const weir_values *values)
{
	struct png_decode *self = state;

	(void)context;
	self->max_bytes = weir_values_int(values, "max_bytes");
	return WEIR_OK;
}

static weir_status decode_message(weir_context *context, void *state, weir_message *message)
{
	const struct png_decode *self = state;
	size_t length = weir_message_size(message);
	const char *bytes = weir_message_data(message);
	char *file;
	weir_status status;

	if (!length || memchr(bytes, '\0', length))
		return weir_context_fail(context, "a path has at least one byte and no 0");
	file = strndup(bytes, length);
	if (!file)
		return WEIR_E_NOMEM;
	status = wr_png_emit(context, file, self->max_bytes);
	free(file);
	return status;
}

static weir_status png_decode_compute(weir_context *context, void *state)
{
	return wr_messages_each(context, state, decode_message);
}

const weir_operator wr_png_decode = {
	.size = sizeof(weir_operator),
	.name = "png_decode",
	.help = "reads the PNG file of each path that it receives, from `files`: png_read in two, so that "
		"several read "
		"at once",
	.flags = WEIR_OPERATOR_INSTANCES,
	.state_size = sizeof(struct png_decode),
	.parameters = parameters,
	.inputs = inputs,
	.outputs = wr_png_outputs,
	.start = png_decode_start,
	.compute = png_decode_compute,
};

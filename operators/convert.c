/*
 * Converts pixels from one format to another. The host form is compiled once for each pair of formats, so
 * that the inner loop has no choice to make.
 */
#include "operators/convert.h"

#include <string.h>

#include "operators/operators.h"
#include "operators/tensor.h"

#define FORMATS "rgb|bgr|rgba|bgra|gray|nv12|i420"

struct convert {
	int32_t from, to; /* enum wr_pixel_format */
	struct wr_convert_matrix matrix;
};

static const char *const names[] = {"rgb", "bgr", "rgba", "bgra", "gray", "nv12", "i420"};

static const struct wr_convert_matrix bt601 = {
	.r_to_y = 16829,
	.g_to_y = 33039,
	.b_to_y = 6416,
	.to_u = {-9714, -19070, 28784},
	.to_v = {28784, -24103, -4681},
	.y_scale = 76309,
	.v_to_r = 104597,
	.u_to_g = -25675,
	.v_to_g = -53279,
	.u_to_b = 132201,
	.gray = {77, 150, 29},
};

static const struct wr_convert_matrix bt709 = {
	.r_to_y = 11966,
	.g_to_y = 40254,
	.b_to_y = 4064,
	.to_u = {-6596, -22188, 28784},
	.to_v = {28784, -26145, -2639},
	.y_scale = 76309,
	.v_to_r = 117489,
	.u_to_g = -13975,
	.v_to_g = -34925,
	.u_to_b = 138438,
	.gray = {54, 183, 19},
};

/* --- the host form; the functions are inlined with constant formats --- */

static inline void convert_rows(const struct wr_convert_arguments *arguments, int32_t from, int32_t to)
{
	const struct wr_convert_arguments job =
		*arguments; /* a copy: no byte that is written belongs to it */

	for (int32_t y = 0; y < job.height; y += 2)
		for (int32_t x = 0; x < job.width; x += 2)
			wr_convert_block(&job, from, to, x, y);
}

#define CONVERT_TO(to)                                                                                       \
	static void convert_to_##to(const struct wr_convert_arguments *job)                                  \
	{                                                                                                    \
		switch (job->from_format) {                                                                  \
		case WR_PIXEL_RGB:                                                                           \
			convert_rows(job, WR_PIXEL_RGB, WR_PIXEL_##to);                                      \
			break;                                                                               \
		case WR_PIXEL_BGR:                                                                           \
			convert_rows(job, WR_PIXEL_BGR, WR_PIXEL_##to);                                      \
			break;                                                                               \
		case WR_PIXEL_RGBA:                                                                          \
			convert_rows(job, WR_PIXEL_RGBA, WR_PIXEL_##to);                                     \
			break;                                                                               \
		case WR_PIXEL_BGRA:                                                                          \
			convert_rows(job, WR_PIXEL_BGRA, WR_PIXEL_##to);                                     \
			break;                                                                               \
		case WR_PIXEL_GRAY:                                                                          \
			convert_rows(job, WR_PIXEL_GRAY, WR_PIXEL_##to);                                     \
			break;                                                                               \
		case WR_PIXEL_NV12:                                                                          \
			convert_rows(job, WR_PIXEL_NV12, WR_PIXEL_##to);                                     \
			break;                                                                               \
		case WR_PIXEL_I420:                                                                          \
			convert_rows(job, WR_PIXEL_I420, WR_PIXEL_##to);                                     \
			break;                                                                               \
		}                                                                                            \
	}
CONVERT_TO(RGB)
CONVERT_TO(BGR)
CONVERT_TO(RGBA)
CONVERT_TO(BGRA)
CONVERT_TO(GRAY)
CONVERT_TO(NV12)
CONVERT_TO(I420)

static int convert_on_host(const void *arguments)
{
	static void (*const forms[])(const struct wr_convert_arguments *job) = {
		convert_to_RGB,  convert_to_BGR,  convert_to_RGBA, convert_to_BGRA,
		convert_to_GRAY, convert_to_NV12, convert_to_I420,
	};
	const struct wr_convert_arguments *job = arguments;

	forms[job->to_format](job);
	return 0;
}

static const weir_kernel kernel = {
	.size = sizeof(weir_kernel),
	.name = "convert",
	.host = convert_on_host,
	.cuda = WR_CUDA_FORM(wr_convert_cuda),
};

/* --- the operator --- */

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "from",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"rgb\"",
		.choices = FORMATS,
		.help = "format of the input",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "to",
		.type = WEIR_TYPE_CHOICE,
		.choices = FORMATS,
		.help = "format of the result",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "matrix",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"bt601\"",
		.choices = "bt601|bt709",
		.help = "how luma and chroma are made of colours; nv12 and i420 have limited range (16 to "
			"235, 16 to 240)",
	},
	{.name = NULL},
};

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.kinds = WEIR_KIND_TENSOR,
		.help = "a uint8 image on the device; nv12, i420: [height * 3 / 2, width]",
		.dtype = "uint8",
		.place = "device",
		.shape = "[H, W] | [H, W, 1] | [H, W, 3..4]",
	},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_TENSOR,
		.help = "uint8 [height, width, channels]; nv12, i420: [height * 3 / 2, width, 1]",
		.dtype = "uint8",
		.place = "device",
		.shape = "[rows, W, 1] | [rows, W, 3..4]",
	},
	{.name = NULL},
};

static int32_t format_of(const weir_values *values, const char *name)
{
	const char *text = weir_values_string(values, name);
	int32_t format = WR_PIXEL_RGB;

	while (format < WR_PIXEL_I420 && strcmp(names[format], text) != 0)
		format++;
	return format;
}

static weir_status convert_start(weir_context *context, void *state, const weir_values *values)
{
	struct convert *self = state;

	self->from = format_of(values, "from");
	self->to = format_of(values, "to");
	self->matrix = strcmp(weir_values_string(values, "matrix"), "bt709") ? bt601 : bt709;
	if (self->from == self->to)
		return weir_context_fail(context, "from and to are both %s: there is nothing to convert",
					 names[self->from]);
	return WEIR_OK;
}

/* Gives the size of the picture. */
static weir_status job_size(weir_context *context, const struct convert *self, const weir_tensor *tensor,
			    struct wr_image image, struct wr_convert_arguments *job)
{
	int32_t channels = wr_convert_channels(self->from);
	char text[WR_TENSOR_TEXT];

	job->height = wr_convert_is_yuv(self->from) ? image.height / 3 * 2 : image.height;
	job->width = image.width;
	if (image.channels != channels)
		return weir_context_fail(context, "input 'in' is %s, but %s has %d channel%s: see 'from'",
					 wr_tensor_text(tensor, text), names[self->from], channels,
					 channels == 1 ? "" : "s");
	if (wr_convert_is_yuv(self->from) && (image.height % 3 || image.width % 2))
		return weir_context_fail(context,
					 "input 'in' is %s, but %s has height * 3 / 2 rows of an even "
					 "number of pixels, with an even height",
					 wr_tensor_text(tensor, text), names[self->from]);
	if (wr_convert_is_yuv(self->to) && !wr_convert_is_yuv(self->from) &&
	    (image.height % 2 || image.width % 2))
		return weir_context_fail(context,
					 "input 'in' is %s, but %s needs an even height and width: resize "
					 "it before",
					 wr_tensor_text(tensor, text), names[self->to]);
	return WEIR_OK;
}

static weir_status create_converted(weir_context *context, const struct wr_convert_arguments *job,
				    weir_message **out)
{
	int32_t format = job->to_format;
	const int64_t shape[] = {wr_convert_is_yuv(format) ? job->height / 2 * 3 : job->height, job->width,
				 wr_convert_channels(format)};
	const weir_tensor like = {
		.size = sizeof(weir_tensor),
		.dimensions = 3,
		.shape = shape,
		.code = 1,
		.bits = 8,
	};

	return weir_context_create_tensor(context, &like, 0, out);
}

static weir_status convert_message(weir_context *context, void *state, weir_message *message)
{
	const struct convert *self = state;
	struct wr_convert_arguments job = {
		.from_format = self->from, .to_format = self->to, .matrix = self->matrix};
	struct wr_image image;
	weir_message *out = NULL;
	weir_status status = wr_image_on_device(context, message, &image);

	if (!status)
		status = job_size(context, self, weir_message_tensor(message), image, &job);
	if (!status)
		status = create_converted(context, &job, &out);
	if (status)
		return status;
	job.from = weir_message_data(message);
	job.to = weir_message_data(out);
	status = wr_launch(context, &kernel, &job, sizeof job);
	return wr_message_written(context, out, status);
}

static weir_status convert_compute(weir_context *context, void *state)
{
	return wr_messages_each(context, state, convert_message);
}

const weir_operator wr_convert = {
	.size = sizeof(weir_operator),
	.name = "convert",
	.help = "converts a uint8 image between rgb, bgr, rgba, bgra, gray, nv12 and i420, in integers: the "
		"same "
		"bytes "
		"on every backend",
	.flags = WEIR_OPERATOR_STREAM,
	.state_size = sizeof(struct convert),
	.parameters = parameters,
	.inputs = inputs,
	.outputs = outputs,
	.start = convert_start,
	.compute = convert_compute,
};

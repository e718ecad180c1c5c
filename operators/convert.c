/*
 * Converts pixels from one format to another. The host form has a loop for each way in which pixels only
 * move, or become grey; the others go by planes of a strip, R, G and B by themselves, which stay in the
 * cache. So no inner loop has a choice to make, and the compiler vectorises them.
 */
#include "operators/convert.h"

#include <string.h>

#include "operators/host_form.h"
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

/* --- the host form: pixels; functions with constants as arguments are inlined with these --- */

WR_INLINED bool is_swapped(int32_t format)
{
	return format == WR_PIXEL_BGR || format == WR_PIXEL_BGRA;
}

/* From 4 channels, or grey, to 3 or 4. Swapped: the first and the third are exchanged. */
WR_INLINED void move_pixels(uint8_t *restrict to, const uint8_t *from, int64_t count, int32_t from_channels,
			    int32_t to_channels, bool swapped)
{
	int32_t first = from_channels == 1 ? 0 : swapped ? 2 : 0, third = from_channels == 1 ? 0 : 2 - first;
	int32_t second = from_channels == 1 ? 0 : 1;

	for (int64_t i = 0; i < count; i++, from += from_channels, to += to_channels) {
		to[0] = from[first];
		to[1] = from[second];
		to[2] = from[third];
		if (to_channels == 4)
			to[3] = from[3];
	}
}

/* Of three channels. A byte becomes the one two after it, stays, or becomes the one two before it: by masks.
 */
WR_INLINED void swap_pixels(uint8_t *restrict to, const uint8_t *from, int64_t count)
{
	enum { PIXELS = 32, BYTES = 3 * PIXELS };
	uint8_t thirds[BYTES + 2];
	int64_t i = 1;

	for (int32_t k = 0; k < BYTES + 2; k++)
		thirds[k] = k % 3 == 2 ? 255 : 0;
	move_pixels(to, from, 1, 3, 3, true);
	for (; i + PIXELS < count; i += PIXELS) {
		const uint8_t *at = from + 3 * i;
		uint8_t *restrict out = to + 3 * i;

		for (int32_t k = 0; k < BYTES; k++)
			out[k] = (uint8_t)((at[k + 2] & thirds[k + 2]) | (at[k] & thirds[k + 1]) |
					   (at[k - 2] & thirds[k]));
	}
	move_pixels(to + 3 * i, from + 3 * i, count - i, 3, 3, true);
}

WR_INLINED void make_gray(uint8_t *restrict to, const uint8_t *from, int64_t count, int32_t channels,
			  const uint16_t weights[3])
{
	uint16_t first = weights[0], second = weights[1], third = weights[2];

	for (int64_t i = 0; i < count; i++, from += channels)
		to[i] = (uint8_t)((uint16_t)(first * from[0] + second * from[1] + third * from[2] + 128) >>
				  8);
}

/* --- planes of a strip --- */

enum { STRIP = 512 };

struct planes {
	uint8_t r[STRIP], g[STRIP], b[STRIP], a[STRIP];
};

WR_INLINED void unpack(struct planes *restrict to, const uint8_t *from, int32_t count, int32_t channels,
		       bool swapped)
{
	int32_t first = swapped ? 2 : 0;

	for (int32_t i = 0; i < count; i++, from += channels) {
		to->r[i] = from[first];
		to->g[i] = from[1];
		to->b[i] = from[2 - first];
	}
}

WR_INLINED void pack(uint8_t *restrict to, const struct planes *from, int32_t count, int32_t channels,
		     bool swapped)
{
	int32_t first = swapped ? 2 : 0;

	for (int32_t i = 0; i < count; i++, to += channels) {
		to[first] = from->r[i];
		to[1] = from->g[i];
		to[2 - first] = from->b[i];
		if (channels == 4)
			to[3] = from->a[i];
	}
}

WR_INLINED void load(struct planes *to, const uint8_t *from, int32_t count, int32_t format)
{
	switch (format) {
	case WR_PIXEL_RGB:
		unpack(to, from, count, 3, false);
		break;
	case WR_PIXEL_BGR:
		unpack(to, from, count, 3, true);
		break;
	case WR_PIXEL_RGBA:
		unpack(to, from, count, 4, false);
		break;
	case WR_PIXEL_BGRA:
		unpack(to, from, count, 4, true);
		break;
	case WR_PIXEL_GRAY:
		memcpy(to->r, from, (size_t)count);
		memcpy(to->g, from, (size_t)count);
		memcpy(to->b, from, (size_t)count);
		break;
	}
}

WR_INLINED void store(uint8_t *to, const struct planes *from, int32_t count, int32_t format)
{
	switch (format) {
	case WR_PIXEL_RGB:
		pack(to, from, count, 3, false);
		break;
	case WR_PIXEL_BGR:
		pack(to, from, count, 3, true);
		break;
	case WR_PIXEL_RGBA:
		pack(to, from, count, 4, false);
		break;
	case WR_PIXEL_BGRA:
		pack(to, from, count, 4, true);
		break;
	}
}

/* --- between formats of whole pixels --- */

WR_INLINED void add_alpha(const struct wr_convert_arguments *job, int64_t count)
{
	int32_t channels = wr_convert_channels(job->from_format);
	struct planes planes;

	memset(planes.a, 255, sizeof planes.a);
	for (int64_t i = 0; i < count; i += STRIP) {
		int32_t part = count - i < STRIP ? (int32_t)(count - i) : STRIP;

		load(&planes, job->from + i * channels, part, job->from_format);
		store(job->to + i * 4, &planes, part, job->to_format);
	}
}

WR_INLINED void convert_pixels(const struct wr_convert_arguments *job)
{
	int64_t count = (int64_t)job->height * job->width;
	int32_t channels = wr_convert_channels(job->from_format);
	bool swapped = is_swapped(job->from_format) != is_swapped(job->to_format), alpha = channels == 4;

	if (job->to_format == WR_PIXEL_GRAY) {
		const int32_t *gray = job->matrix.gray;
		uint16_t weights[3] = {(uint16_t)gray[swapped ? 2 : 0], (uint16_t)gray[1],
				       (uint16_t)gray[swapped ? 0 : 2]};

		if (alpha)
			make_gray(job->to, job->from, count, 4, weights);
		else
			make_gray(job->to, job->from, count, 3, weights);
	} else if (wr_convert_channels(job->to_format) == 4 && !alpha) {
		add_alpha(job, count);
	} else if (wr_convert_channels(job->to_format) == 4) {
		move_pixels(job->to, job->from, count, 4, 4, true);
	} else if (job->from_format == WR_PIXEL_GRAY) {
		move_pixels(job->to, job->from, count, 1, 3, false);
	} else if (!alpha) {
		swap_pixels(job->to, job->from, count);
	} else if (swapped) {
		move_pixels(job->to, job->from, count, 4, 3, true);
	} else {
		move_pixels(job->to, job->from, count, 4, 3, false);
	}
}

/* --- luma and chroma: two rows of a strip, whose count of pixels is even --- */

/* At most 235: there is nothing to clamp. */
WR_INLINED void write_luma(uint8_t *restrict to, const struct planes *from, int32_t count,
			   const struct wr_convert_matrix *m)
{
	uint32_t r = (uint32_t)m->r_to_y, g = (uint32_t)m->g_to_y, b = (uint32_t)m->b_to_y;

	for (int32_t i = 0; i < count; i++)
		to[i] = (uint8_t)((from->r[i] * r + from->g[i] * g + from->b[i] * b + (16 << 16) +
				   (1 << 15)) >>
				  16);
}

/* step: from value to value. */
WR_INLINED void write_chroma(uint8_t *restrict u, uint8_t *restrict v, int32_t step,
			     const struct planes rows[2], int32_t count,
			     const struct wr_convert_matrix *matrix)
{
	const struct wr_convert_matrix m = *matrix;
	const struct planes *one = rows, *two = rows + 1;

	for (int32_t i = 0; i < count / 2; i++) {
		struct wr_rgba sum;

		sum.r = one->r[2 * i] + one->r[2 * i + 1] + two->r[2 * i] + two->r[2 * i + 1];
		sum.g = one->g[2 * i] + one->g[2 * i + 1] + two->g[2 * i] + two->g[2 * i + 1];
		sum.b = one->b[2 * i] + one->b[2 * i + 1] + two->b[2 * i] + two->b[2 * i + 1];
		u[i * step] = wr_convert_chroma(m.to_u, sum);
		v[i * step] = wr_convert_chroma(m.to_v, sum);
	}
}

WR_INLINED void convert_to_yuv(const struct wr_convert_arguments *job, int32_t x, int32_t y, int32_t count)
{
	int32_t channels = wr_convert_channels(job->from_format);
	uint8_t *u = job->to + wr_convert_u_at(job, job->to_format, x, y);
	struct planes rows[2];

	for (int32_t i = 0; i < 2; i++) {
		int64_t at = (int64_t)(y + i) * job->width + x;

		load(&rows[i], job->from + at * channels, count, job->from_format);
		write_luma(job->to + at, &rows[i], count, &job->matrix);
	}
	if (job->to_format == WR_PIXEL_NV12)
		write_chroma(u, u + 1, 2, rows, count, &job->matrix);
	else
		write_chroma(u, u + wr_convert_to_v(job, WR_PIXEL_I420), 1, rows, count, &job->matrix);
}

/* What the chroma adds to the luma of each pixel. */
struct terms {
	int32_t r[STRIP], g[STRIP], b[STRIP];
};

WR_INLINED void make_terms(struct terms *restrict to, const uint8_t *from_u, const uint8_t *from_v,
			   int32_t step, int32_t count, const struct wr_convert_matrix *matrix)
{
	const struct wr_convert_matrix m = *matrix;

	for (int32_t i = 0; i < count / 2; i++) {
		int32_t u = from_u[i * step] - 128, v = from_v[i * step] - 128;

		to->r[2 * i] = to->r[2 * i + 1] = v * m.v_to_r;
		to->g[2 * i] = to->g[2 * i + 1] = u * m.u_to_g + v * m.v_to_g;
		to->b[2 * i] = to->b[2 * i + 1] = u * m.u_to_b;
	}
}

/* wr_convert_round in two loops: what is left of the sums has 16 bits. */
WR_INLINED void clamp(uint8_t *restrict to, const int16_t *from, int32_t count)
{
	for (int32_t i = 0; i < count; i++) {
		int16_t value = from[i] < 0 ? 0 : from[i];

		to[i] = (uint8_t)(value < 255 ? value : 255);
	}
}

WR_INLINED void add_terms(struct planes *restrict to, const uint8_t *luma, const struct terms *terms,
			  int32_t count, int32_t scale)
{
	int16_t r[STRIP], g[STRIP], b[STRIP];

	for (int32_t i = 0; i < count; i++) {
		int32_t y = (luma[i] - 16) * scale + (1 << 15);

		r[i] = (int16_t)((y + terms->r[i]) >> 16);
		g[i] = (int16_t)((y + terms->g[i]) >> 16);
		b[i] = (int16_t)((y + terms->b[i]) >> 16);
	}
	clamp(to->r, r, count);
	clamp(to->g, g, count);
	clamp(to->b, b, count);
}

WR_INLINED void convert_from_yuv(const struct wr_convert_arguments *job, int32_t x, int32_t y, int32_t count)
{
	int32_t channels = wr_convert_channels(job->to_format);
	const uint8_t *u = job->from + wr_convert_u_at(job, job->from_format, x, y);
	struct planes planes;
	struct terms terms;

	if (channels == 4)
		memset(planes.a, 255, sizeof planes.a);
	if (job->from_format == WR_PIXEL_NV12)
		make_terms(&terms, u, u + 1, 2, count, &job->matrix);
	else
		make_terms(&terms, u, u + wr_convert_to_v(job, WR_PIXEL_I420), 1, count, &job->matrix);
	for (int32_t i = 0; i < 2; i++) {
		int64_t at = (int64_t)(y + i) * job->width + x;

		add_terms(&planes, job->from + at, &terms, count, job->matrix.y_scale);
		store(job->to + at * channels, &planes, count, job->to_format);
	}
}

/* The luma alone. */
WR_INLINED void make_gray_of_yuv(const struct wr_convert_arguments *job)
{
	int64_t count = (int64_t)job->height * job->width;
	int32_t scale = job->matrix.y_scale;
	const uint8_t *from = job->from;
	uint8_t *restrict to = job->to;

	for (int64_t i = 0; i < count; i++)
		to[i] = (uint8_t)wr_convert_round((from[i] - 16) * scale);
}

/* Between nv12 and i420: the luma stays, the chroma is ordered otherwise. */
WR_INLINED void move_yuv(const struct wr_convert_arguments *job)
{
	int64_t luma = (int64_t)job->height * job->width, count = luma / 4;
	const uint8_t *from = job->from + luma;
	uint8_t *restrict to = job->to + luma;

	memcpy(job->to, job->from, (size_t)luma);
	if (job->to_format == WR_PIXEL_NV12)
		for (int64_t i = 0; i < count; i++) {
			to[2 * i] = from[i];
			to[2 * i + 1] = from[count + i];
		}
	else
		for (int64_t i = 0; i < count; i++) {
			to[i] = from[2 * i];
			to[count + i] = from[2 * i + 1];
		}
}

WR_INLINED int convert_rows(const void *arguments)
{
	const struct wr_convert_arguments *job = arguments;
	bool from_yuv = wr_convert_is_yuv(job->from_format), to_yuv = wr_convert_is_yuv(job->to_format);

	if (!from_yuv && !to_yuv)
		convert_pixels(job);
	else if (from_yuv && to_yuv)
		move_yuv(job);
	else if (job->to_format == WR_PIXEL_GRAY)
		make_gray_of_yuv(job);
	else
		for (int32_t y = 0; y < job->height; y += 2)
			for (int32_t x = 0; x < job->width; x += STRIP) {
				int32_t count = job->width - x < STRIP ? job->width - x : STRIP;

				if (from_yuv)
					convert_from_yuv(job, x, y, count);
				else
					convert_to_yuv(job, x, y, count);
			}
	return 0;
}
WR_HOST_FORM(convert_on_host, convert_rows)

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
	.flags = WEIR_OPERATOR_STREAM | WEIR_OPERATOR_INSTANCES,
	.state_size = sizeof(struct convert),
	.parameters = parameters,
	.inputs = inputs,
	.outputs = outputs,
	.start = convert_start,
	.compute = convert_compute,
};

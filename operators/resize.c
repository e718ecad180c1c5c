/*
 * Resizes pictures by bilinear interpolation, whole or as a letterbox.
 *
 * The host form takes a strip of columns at a time: where they lie in the source is computed once a strip. A
 * row of the strip is made in three passes: two rows of the source are mixed to one line; the pixels of the
 * line that lie to the left and to the right of each column are copied to lines of their own; these are
 * mixed. The first and the last pass have no choice to make, so the compiler vectorises them. A source that
 * is more than RATIO times as wide has more columns than are needed: then the pixels are copied first. Both
 * ways give the same bytes.
 */
#include <stdio.h>

#include "operators/host_form.h"
#include "operators/operators.h"
#include "operators/resize.h"
#include "operators/tensor.h"

enum { STRIP = 1024, RATIO = 4, PIXEL = WR_CHANNELS_MAX }; /* values of a strip, at most; of a pixel */

struct resize {
	int32_t width, height;
	bool letterbox;
	struct wr_per_channel fill;
};

struct strip {
	const struct wr_resize_arguments *job;
	int32_t left, width;                 /* columns of the resized picture */
	int32_t from;                        /* the first value of a source row that they need */
	int32_t values;                      /* number of these */
	int32_t first[STRIP], second[STRIP]; /* values of each column, counted from `from` */
	int16_t part[STRIP];                 /* of each value */
	int16_t line[RATIO * STRIP + 4 * PIXEL];
	int16_t pairs[2 * STRIP]; /* of one channel: left, right, left, right ... */
	int16_t lefts[STRIP + PIXEL], rights[STRIP + PIXEL];
	uint8_t levels[4][STRIP]; /* above and below, left and right */
};

WR_INLINED void strip_init(struct strip *strip, const struct wr_resize_arguments *job, int32_t left)
{
	int32_t rest = job->inner_width - left, channels = job->image.channels;
	struct wr_resize_tap tap = wr_resize_tap_of(left, job->image.width, job->inner_width);

	strip->job = job;
	strip->left = left;
	strip->width = rest < STRIP / channels ? rest : STRIP / channels;
	strip->from = tap.first * channels;
	for (int32_t i = 0; i < strip->width; i++) {
		tap = wr_resize_tap_of(left + i, job->image.width, job->inner_width);
		strip->first[i] = tap.first * channels - strip->from;
		strip->second[i] = tap.second * channels - strip->from;
		for (int32_t c = 0; c < channels; c++)
			strip->part[i * channels + c] = (int16_t)tap.part;
	}
	strip->values = (tap.second + 1) * channels - strip->from;
}

/* --- two rows, two columns: as wr_resize_mix_rows and wr_resize_mix_columns do it, in 16 bits --- */

/* (difference * part + 8) >> 4, of 20 bits: the upper ones of the product in 32nds, and the rest of it. */
WR_INLINED void mix_rows(int16_t *restrict to, const uint8_t *above, const uint8_t *below, int32_t part,
			 int32_t count)
{
	volatile int16_t hidden = (int16_t)(part * 16); /* whose range is known is multiplied in 32 bits */
	int16_t factor = (int16_t)part, sixteenfold = hidden;

	for (int32_t i = 0; i < count; i++) {
		int16_t difference = (int16_t)(below[i] - above[i]);
		int16_t upper = (int16_t)((int32_t)(int16_t)(difference * 128) * sixteenfold >> 16);
		int16_t lower = (int16_t)(difference * factor);

		to[i] = (int16_t)(above[i] * 128 + upper * 2 + ((lower & 31) + 8) / 16);
	}
}

/*
 * left + difference * part / 2048, of 27 bits: the upper ones of the product in 4096ths, and the next.
 * Inlined with a constant step from value to value.
 */
WR_INLINED void mix_columns(uint8_t *restrict to, const int16_t *lefts, const int16_t *rights, int32_t step,
			    const int16_t *parts, int32_t count)
{
	for (int32_t i = 0; i < count; i++) {
		int16_t left = lefts[i * step], difference = (int16_t)(rights[i * step] - left);
		int16_t upper = (int16_t)((int32_t)difference * (int16_t)(parts[i] * 16) >> 16);
		int16_t lower = (int16_t)(difference * parts[i]);

		to[i] = (uint8_t)((int16_t)(left + upper * 2 + (lower >> 11 & 1) + 64) >> 7);
	}
}

/* --- a row of a strip; always inlined with a constant number of channels --- */

/* Copies up to PIXEL values each time: what is too much is overwritten by the next pixel. */
WR_INLINED void copy_from_line(struct strip *strip, int32_t channels)
{
	size_t bytes = sizeof *strip->line * (size_t)(channels < 3 ? channels : PIXEL);
	int32_t width = strip->width;

#pragma GCC unroll 4
	for (int32_t i = 0; i < width && channels == 1; i++)
		wr_bytes_copy(strip->pairs + 2 * i, strip->line + strip->first[i], 2 * bytes);
#pragma GCC unroll 4
	for (int32_t i = 0; i < width && channels > 1; i++) {
		wr_bytes_copy(strip->lefts + i * channels, strip->line + strip->first[i], bytes);
		wr_bytes_copy(strip->rights + i * channels, strip->line + strip->second[i], bytes);
	}
}

WR_INLINED void copy_levels(struct strip *strip, const uint8_t *above, const uint8_t *below, int32_t channels)
{
	size_t bytes = (size_t)channels;
	int32_t width = strip->width;

#pragma GCC unroll 4
	for (int32_t i = 0; i < width; i++) {
		wr_bytes_copy(strip->levels[0] + i * channels, above + strip->first[i], bytes);
		wr_bytes_copy(strip->levels[1] + i * channels, below + strip->first[i], bytes);
		wr_bytes_copy(strip->levels[2] + i * channels, above + strip->second[i], bytes);
		wr_bytes_copy(strip->levels[3] + i * channels, below + strip->second[i], bytes);
	}
}

WR_INLINED void write_row(struct strip *strip, int32_t y, int32_t channels)
{
	const struct wr_resize_arguments *job = strip->job;
	struct wr_resize_tap tap = wr_resize_tap_of(y, job->image.height, job->inner_height);
	int64_t pitch = (int64_t)job->image.width * channels;
	const uint8_t *above = job->from + tap.first * pitch + strip->from;
	const uint8_t *below = job->from + tap.second * pitch + strip->from;
	int64_t pixel = (int64_t)(job->top + y) * job->width + job->left + strip->left;
	int32_t count = strip->width * channels;
	uint8_t *to = job->to + pixel * channels;

	if (job->image.width > RATIO * (int64_t)job->inner_width) {
		copy_levels(strip, above, below, channels);
		mix_rows(strip->lefts, strip->levels[0], strip->levels[1], tap.part, count);
		mix_rows(strip->rights, strip->levels[2], strip->levels[3], tap.part, count);
		mix_columns(to, strip->lefts, strip->rights, 1, strip->part, count);
		return;
	}
	mix_rows(strip->line, above, below, tap.part, strip->values);
	strip->line[strip->values] = 0; /* to the right of the last column: has no part in it */
	copy_from_line(strip, channels);
	if (channels == 1)
		mix_columns(to, strip->pairs, strip->pairs + 1, 2, strip->part, count);
	else
		mix_columns(to, strip->lefts, strip->rights, 1, strip->part, count);
}

WR_INLINED void write_strip(struct strip *strip)
{
	for (int32_t y = 0; y < strip->job->inner_height; y++)
		switch (strip->job->image.channels) {
		case 1:
			write_row(strip, y, 1);
			break;
		case 2:
			write_row(strip, y, 2);
			break;
		case 3:
			write_row(strip, y, 3);
			break;
		case 4:
			write_row(strip, y, 4);
			break;
		}
}

/* --- the whole --- */

WR_INLINED void fill_pixels(const struct wr_resize_arguments *job, int32_t x, int32_t y, int32_t count)
{
	int32_t channels = job->image.channels;
	uint8_t *to = job->to + ((int64_t)y * job->width + x) * channels;

	for (int32_t i = 0; i < count; i++)
		for (int32_t c = 0; c < channels; c++)
			*to++ = job->fill[c];
}

WR_INLINED void fill_border(const struct wr_resize_arguments *job)
{
	int32_t right = job->left + job->inner_width, bottom = job->top + job->inner_height;

	for (int32_t y = 0; y < job->height; y++)
		if (y < job->top || y >= bottom) {
			fill_pixels(job, 0, y, job->width);
		} else {
			fill_pixels(job, 0, y, job->left);
			fill_pixels(job, right, y, job->width - right);
		}
}

WR_INLINED int resize_rows(const void *arguments)
{
	const struct wr_resize_arguments *job = arguments;
	struct strip strip;

	fill_border(job);
	for (int32_t left = 0; left < job->inner_width; left += strip.width) {
		strip_init(&strip, job, left);
		write_strip(&strip);
	}
	return 0;
}
WR_HOST_FORM(resize_on_host, resize_rows)

static const weir_kernel kernel = {
	.size = sizeof(weir_kernel),
	.name = "resize",
	.host = resize_on_host,
	.cuda = WR_CUDA_FORM(wr_resize_cuda),
};

/* --- the operator --- */

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "width",
		.type = WEIR_TYPE_INT,
		.min = 1,
		.max = WR_IMAGE_SIDE_MAX,
		.help = "width of the result in pixels",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "height",
		.type = WEIR_TYPE_INT,
		.min = 1,
		.max = WR_IMAGE_SIDE_MAX,
		.help = "height of the result in pixels",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "letterbox",
		.type = WEIR_TYPE_BOOL,
		.fallback = "false",
		.help = "keeps the ratio of width and height: the image is centered, the rest has the colour "
			"`fill`",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "fill",
		.type = WEIR_TYPE_NUMBERS,
		.fallback = "[0]",
		.min = 1,
		.max = WR_CHANNELS_MAX,
		.help = "colour of the rest: an integer from 0 to 255 for all channels, or one per channel",
	},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_TENSOR,
		.help = "the image in the new size, with as many channels",
		.dtype = "uint8",
		.place = "device",
		.shape = "[height, width] | [height, width, 1..4]",
	},
	{.name = NULL},
};

static weir_status resize_describe(const weir_values *values, weir_ports *ports)
{
	long long width = weir_values_int(values, "width"), height = weir_values_int(values, "height");
	weir_port out = outputs[0];
	char shape[96];

	snprintf(shape, sizeof shape, "[%lld, %lld] | [%lld, %lld, 1..4]", height, width, height, width);
	out.shape = shape;
	return weir_ports_add_output(ports, &out);
}

static weir_status resize_start(weir_context *context, void *state, const weir_values *values)
{
	struct resize *self = state;

	self->width = (int32_t)weir_values_int(values, "width");
	self->height = (int32_t)weir_values_int(values, "height");
	self->letterbox = weir_values_bool(values, "letterbox");
	self->fill = wr_per_channel_read(values, "fill");
	return wr_per_channel_check_levels(context, &self->fill);
}

/* A 2-dimensional image stays one. */
static weir_status create_resized(weir_context *context, const weir_tensor *tensor,
				  const struct wr_resize_arguments *job, weir_message **out)
{
	const int64_t shape[] = {job->height, job->width, job->image.channels};
	const weir_tensor like = {
		.size = sizeof(weir_tensor),
		.dimensions = tensor->dimensions,
		.shape = shape,
		.code = 1,
		.bits = 8,
	};

	return weir_context_create_tensor(context, &like, 0, out);
}

static weir_status resize_message(weir_context *context, void *state, weir_message *message)
{
	const weir_tensor *tensor = weir_message_tensor(message);
	const struct resize *self = state;
	struct wr_resize_arguments job = {0};
	double fill[WR_CHANNELS_MAX];
	weir_message *out = NULL;
	weir_status status = wr_image_on_device(context, message, &job.image);

	if (!status)
		status = wr_per_channel_fit(context, &self->fill, tensor, job.image, fill);
	if (status)
		return status;
	job.width = self->width;
	job.height = self->height;
	wr_resize_place(&job, self->letterbox);
	for (int32_t i = 0; i < WR_CHANNELS_MAX; i++)
		job.fill[i] = (uint8_t)fill[i];
	status = create_resized(context, tensor, &job, &out);
	if (status)
		return status;
	job.from = weir_message_data(message);
	job.to = weir_message_data(out);
	status = wr_launch(context, &kernel, &job, sizeof job);
	return wr_message_written(context, out, status);
}

static weir_status resize_compute(weir_context *context, void *state)
{
	return wr_messages_each(context, state, resize_message);
}

const weir_operator wr_resize = {
	.size = sizeof(weir_operator),
	.name = "resize",
	.help = "resizes a uint8 image (bilinear), in integers: the same bytes on every backend",
	.flags = WEIR_OPERATOR_STREAM | WEIR_OPERATOR_INSTANCES,
	.state_size = sizeof(struct resize),
	.parameters = parameters,
	.inputs = wr_image_inputs,
	.outputs = outputs,
	.start = resize_start,
	.compute = resize_compute,
	.describe = resize_describe,
};

/*
 * Resizes pictures by bilinear interpolation, whole or as a letterbox.
 *
 * The host form takes a strip of columns at a time: where they lie in the source is computed once a strip. If
 * the source is at most twice as wide, each row of the strip is made in two passes: two rows of the source
 * are mixed to one line, which the compiler vectorises, then columns of the line are mixed. A wider source
 * has more columns than are needed: then each value is mixed of its four by itself. Both give the same bytes.
 */
#include "operators/operators.h"
#include "operators/resize.h"
#include "operators/tensor.h"

enum { STRIP = 256, SPAN = 2 * STRIP + 4 };

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
	int32_t part[STRIP];
	uint16_t line[SPAN * WR_CHANNELS_MAX];
};

static void strip_init(struct strip *strip, const struct wr_resize_arguments *job, int32_t left)
{
	int32_t rest = job->inner_width - left, channels = job->image.channels;
	struct wr_resize_tap tap = wr_resize_tap_of(left, job->image.width, job->inner_width);

	strip->job = job;
	strip->left = left;
	strip->width = rest < STRIP ? rest : STRIP;
	strip->from = tap.first * channels;
	for (int32_t i = 0; i < strip->width; i++) {
		tap = wr_resize_tap_of(left + i, job->image.width, job->inner_width);
		strip->first[i] = tap.first * channels - strip->from;
		strip->second[i] = tap.second * channels - strip->from;
		strip->part[i] = tap.part;
	}
	strip->values = (tap.second + 1) * channels - strip->from;
}

/* --- a row of a strip; always inlined with a constant number of channels --- */

static inline void mix_columns(const struct strip *strip, uint8_t *to, int32_t channels)
{
	const uint16_t *line = strip->line;

	for (int32_t i = 0; i < strip->width; i++) {
		const uint16_t *first = line + strip->first[i], *second = line + strip->second[i];

		for (int32_t c = 0; c < channels; c++)
			*to++ = wr_resize_mix_columns(first[c], second[c], strip->part[i]);
	}
}

static inline void mix_values(const struct strip *strip, const uint8_t *above, const uint8_t *below,
			      int32_t part, uint8_t *to, int32_t channels)
{
	for (int32_t i = 0; i < strip->width; i++) {
		int32_t first = strip->first[i], second = strip->second[i];

		for (int32_t c = 0; c < channels; c++)
			*to++ = wr_resize_mix_columns(
				wr_resize_mix_rows(above[first + c], below[first + c], part),
				wr_resize_mix_rows(above[second + c], below[second + c], part),
				strip->part[i]);
	}
}

static inline void write_row(struct strip *strip, int32_t y, int32_t channels)
{
	const struct wr_resize_arguments *job = strip->job;
	struct wr_resize_tap tap = wr_resize_tap_of(y, job->image.height, job->inner_height);
	int64_t pitch = (int64_t)job->image.width * channels;
	const uint8_t *above = job->from + tap.first * pitch + strip->from;
	const uint8_t *below = job->from + tap.second * pitch + strip->from;
	int64_t pixel = (int64_t)(job->top + y) * job->width + job->left + strip->left;
	uint8_t *to = job->to + pixel * channels;

	if (job->image.width > 2 * (int64_t)job->inner_width) {
		mix_values(strip, above, below, tap.part, to, channels);
		return;
	}
	for (int32_t i = 0; i < strip->values; i++)
		strip->line[i] = (uint16_t)wr_resize_mix_rows(above[i], below[i], tap.part);
	mix_columns(strip, to, channels);
}

static void write_strip(struct strip *strip)
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

static void fill_pixels(const struct wr_resize_arguments *job, int32_t x, int32_t y, int32_t count)
{
	int32_t channels = job->image.channels;
	uint8_t *to = job->to + ((int64_t)y * job->width + x) * channels;

	for (int32_t i = 0; i < count; i++)
		for (int32_t c = 0; c < channels; c++)
			*to++ = job->fill[c];
}

static void fill_border(const struct wr_resize_arguments *job)
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

static int resize_on_host(const void *arguments)
{
	const struct wr_resize_arguments *job = arguments;
	struct strip strip;

	fill_border(job);
	for (int32_t left = 0; left < job->inner_width; left += STRIP) {
		strip_init(&strip, job, left);
		write_strip(&strip);
	}
	return 0;
}

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
	.flags = WEIR_OPERATOR_STREAM,
	.state_size = sizeof(struct resize),
	.parameters = parameters,
	.inputs = wr_image_inputs,
	.outputs = outputs,
	.start = resize_start,
	.compute = resize_compute,
};

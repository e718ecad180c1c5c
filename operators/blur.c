/*
 * A box blur of bytes, each channel by itself: the mean over (2 radius + 1)^2 pixels, halves rounded up,
 * edges repeated.
 *
 * The host form takes a strip of the values of a row at a time: `sums` holds the sum of each value and those
 * below it, over the rows of the box; going down a row adds one row and drops one. Then values that are a
 * pixel apart are added up: one by one while the sums of a box fit into 16 bits, else by a running sum, whose
 * cost does not depend on the radius. The strip's sums stay on the stack, so there is nothing to allocate on
 * a thread of the backend.
 */
#include <string.h>

#include "operators/host_form.h"
#include "operators/operators.h"
#include "operators/pixel.h"
#include "operators/tensor.h"

enum { RADIUS_MAX = 64, RADIUS_NARROW = 7, STRIP = 1024, MARGIN = RADIUS_MAX * WR_CHANNELS_MAX };

struct blur {
	int32_t radius;
};

struct strip {
	const struct wr_blur_arguments *box;
	int32_t left, count;               /* values of a row to write */
	int32_t margin;                    /* values of the box to each side of one */
	uint16_t sums[STRIP + 2 * MARGIN]; /* from left - margin on; 129 values of 255 fit */
};

/* --- the sums of a strip --- */

WR_INLINED const uint8_t *row_at(const struct wr_blur_arguments *box, int32_t y)
{
	struct wr_image image = box->image;

	return box->from + (int64_t)wr_pixel_clamp(y, image.height) * image.width * image.channels;
}

/* Adds row `in` to the sums, and subtracts row `out` if there is one. */
WR_INLINED void move_sums(struct strip *strip, const uint8_t *in, const uint8_t *out)
{
	const struct wr_blur_arguments *box = strip->box;
	int32_t channels = box->image.channels, values = box->image.width * channels;
	int32_t first = strip->left - strip->margin, all = strip->count + 2 * strip->margin;
	int32_t begin = first < 0 ? -first : 0, end = values - first < all ? values - first : all;
	uint16_t *restrict sums = strip->sums;

	for (int32_t i = begin; i < end && out; i++)
		sums[i] = (uint16_t)(sums[i] + in[first + i] - out[first + i]);
	for (int32_t i = begin; i < end && !out; i++)
		sums[i] = (uint16_t)(sums[i] + in[first + i]);
	for (int32_t i = begin - 1; i >= 0; i--)
		sums[i] = sums[i + channels];
	for (int32_t i = end; i < all; i++)
		sums[i] = sums[i - channels];
}

/* --- a row of a strip --- */

/*
 * Both divide a sum by n pixels as a product with 2^shift / n, rounded up: exact, since a sum has at most
 * 255.5 n and (factor n - 2^shift) 255.5 n < 2^shift for each n here.
 */
WR_INLINED void write_narrow(const struct strip *strip, uint8_t *restrict to)
{
	int32_t radius = strip->box->radius, channels = strip->box->image.channels, count = strip->count;
	uint32_t side = 2 * (uint32_t)radius + 1, n = side * side, shift = 16;
	const uint16_t *sums = strip->sums;
	uint16_t boxes[STRIP], factor;

	while (n >> (shift - 15)) /* as large as 16 bits allow */
		shift++;
	factor = (uint16_t)(((UINT32_C(1) << shift) + n - 1) / n);
	shift -= 16;
	for (int32_t i = 0; i < count; i++)
		boxes[i] = (uint16_t)(sums[i] + n / 2);
	for (int32_t k = 1; k <= 2 * radius; k += 2) {
		const uint16_t *one = sums + k * channels, *two = one + channels;

		for (int32_t i = 0; i < count; i++)
			boxes[i] = (uint16_t)(boxes[i] + one[i] + two[i]);
	}
	for (int32_t i = 0; i < count; i++)
		to[i] = (uint8_t)((uint16_t)((uint32_t)boxes[i] * factor >> 16) >> shift);
}

WR_INLINED void write_wide(const struct strip *strip, uint8_t *restrict to)
{
	enum { SHIFT = 40 };
	int32_t channels = strip->box->image.channels, count = strip->count, box = 2 * strip->margin;
	uint32_t side = 2 * (uint32_t)strip->box->radius + 1, n = side * side;
	uint32_t factor = (uint32_t)(((UINT64_C(1) << SHIFT) + n - 1) / n);
	const uint16_t *sums = strip->sums;
	uint32_t boxes[STRIP];

	for (int32_t c = 0; c < channels; c++) {
		uint32_t sum = n / 2;

		for (int32_t i = c; i < box; i += channels)
			sum += sums[i];
		for (int32_t i = c; i < count; i += channels) {
			sum += sums[i + box];
			boxes[i] = sum;
			sum -= sums[i];
		}
	}
	for (int32_t i = 0; i < count; i++)
		to[i] = (uint8_t)((uint32_t)((uint64_t)boxes[i] * factor >> 32) >> (SHIFT - 32));
}

WR_INLINED int blur_rows(const void *arguments)
{
	const struct wr_blur_arguments *box = arguments;
	int32_t channels = box->image.channels, values = box->image.width * channels, radius = box->radius;

	if (!radius)
		memcpy(box->to, box->from, (size_t)box->image.height * (size_t)values);
	for (int32_t left = 0; radius && left < values; left += STRIP) {
		struct strip strip = {.box = box, .left = left, .margin = radius * channels};

		strip.count = values - left < STRIP ? values - left : STRIP;
		for (int32_t y = -radius; y <= radius; y++)
			move_sums(&strip, row_at(box, y), NULL);
		for (int32_t y = 0; y < box->image.height; y++) {
			uint8_t *to = box->to + (int64_t)y * values + left;

			if (radius <= RADIUS_NARROW)
				write_narrow(&strip, to);
			else
				write_wide(&strip, to);
			move_sums(&strip, row_at(box, y + radius + 1), row_at(box, y - radius));
		}
	}
	return 0;
}
WR_HOST_FORM(blur_on_host, blur_rows)

static const weir_kernel kernel = {
	.size = sizeof(weir_kernel),
	.name = "blur",
	.host = blur_on_host,
	.cuda = WR_CUDA_FORM(wr_blur_cuda),
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "radius",
		.type = WEIR_TYPE_INT,
		.fallback = "2",
		.min = 0,
		.max = RADIUS_MAX,
		.help = "pixels to each side of the middle one; 0 changes nothing",
	},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_TENSOR,
		.help = "the blurred image, of the same size",
		.dtype = "uint8",
		.place = "device",
		.shape = "[H, W] | [H, W, 1..4]",
	},
	{.name = NULL},
};

static weir_status blur_start(weir_context *context, void *state, const weir_values *values)
{
	struct blur *self = state;

	(void)context;
	self->radius = (int32_t)weir_values_int(values, "radius");
	return WEIR_OK;
}

static weir_status blur_message(weir_context *context, void *state, weir_message *message)
{
	const struct blur *self = state;
	struct wr_blur_arguments box = {.radius = self->radius};
	weir_message *out = NULL;
	weir_status status = wr_image_on_device(context, message, &box.image);

	if (!status)
		status = weir_context_create_tensor(context, weir_message_tensor(message), 0, &out);
	if (status)
		return status;
	box.from = weir_message_data(message);
	box.to = weir_message_data(out);
	status = wr_launch(context, &kernel, &box, sizeof box);
	return wr_message_written(context, out, status);
}

static weir_status blur_compute(weir_context *context, void *state)
{
	return wr_messages_each(context, state, blur_message);
}

const weir_operator wr_blur = {
	.size = sizeof(weir_operator),
	.name = "blur",
	.help = "box blur of a uint8 image, in integers: the same bytes on every backend",
	.flags = WEIR_OPERATOR_STREAM | WEIR_OPERATOR_INSTANCES,
	.state_size = sizeof(struct blur),
	.parameters = parameters,
	.inputs = wr_image_inputs,
	.outputs = outputs,
	.start = blur_start,
	.compute = blur_compute,
};

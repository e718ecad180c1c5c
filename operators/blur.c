/*
 * A box blur of bytes, each channel by itself: the mean over (2 radius + 1)^2 pixels, halves rounded up,
 * edges repeated.
 *
 * The host form takes a strip of columns at a time: `sums` holds the sum of each column over the rows of the
 * box; going down a row adds one row and drops one, going right adds one column and drops one. So the radius
 * costs nothing, the strip's sums stay on the stack, and there is nothing to allocate on a thread of the
 * backend.
 */
#include "operators/operators.h"
#include "operators/pixel.h"
#include "operators/tensor.h"

enum { RADIUS_MAX = 64, STRIP = 256 };

struct blur {
	int32_t radius;
};

struct strip {
	const struct wr_blur_arguments *box;
	int32_t left, width; /* columns to write */
	int32_t channel;
	uint32_t sums[STRIP + 2 * RADIUS_MAX]; /* of columns left - radius ... left + width + radius - 1 */
};

/* Adds row y to the sums of the columns, or subtracts it. */
static void add_row(struct strip *strip, int32_t y, bool out)
{
	const struct wr_blur_arguments *box = strip->box;
	struct wr_image image = box->image;
	const uint8_t *row =
		box->from + (int64_t)wr_pixel_clamp(y, image.height) * image.width * image.channels;

	for (int32_t i = 0; i < strip->width + 2 * box->radius; i++) {
		int32_t x = wr_pixel_clamp(strip->left - box->radius + i, image.width);
		uint32_t value = row[(int64_t)x * image.channels + strip->channel];

		strip->sums[i] += out ? -value : value;
	}
}

static void write_row(const struct strip *strip, int32_t y)
{
	const struct wr_blur_arguments *box = strip->box;
	struct wr_image image = box->image;
	int32_t side = 2 * box->radius + 1;
	uint8_t *to = box->to + ((int64_t)y * image.width + strip->left) * image.channels + strip->channel;
	uint32_t sum = 0;

	for (int32_t i = 0; i < side; i++)
		sum += strip->sums[i];
	for (int32_t i = 0; i < strip->width; i++) {
		to[(int64_t)i * image.channels] = wr_pixel_mean(sum, (uint32_t)(side * side));
		if (i + 1 < strip->width)
			sum += strip->sums[i + side] - strip->sums[i];
	}
}

static void blur_strip(const struct wr_blur_arguments *box, int32_t left, int32_t channel)
{
	int32_t rest = box->image.width - left;
	struct strip strip = {
		.box = box, .left = left, .width = rest < STRIP ? rest : STRIP, .channel = channel};

	for (int32_t y = -box->radius; y <= box->radius; y++)
		add_row(&strip, y, false);
	for (int32_t y = 0; y < box->image.height; y++) {
		write_row(&strip, y);
		add_row(&strip, y + box->radius + 1, false);
		add_row(&strip, y - box->radius, true);
	}
}

static int blur_on_host(const void *arguments)
{
	const struct wr_blur_arguments *box = arguments;

	for (int32_t left = 0; left < box->image.width; left += STRIP)
		for (int32_t channel = 0; channel < box->image.channels; channel++)
			blur_strip(box, left, channel);
	return 0;
}

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
	.flags = WEIR_OPERATOR_STREAM,
	.state_size = sizeof(struct blur),
	.parameters = parameters,
	.inputs = wr_image_inputs,
	.outputs = outputs,
	.start = blur_start,
	.compute = blur_compute,
};

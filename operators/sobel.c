/*
 * The edges of an image. The host form takes a strip of columns at a time, and goes down it with the luma of
 * three rows.
 */
#include "operators/host_form.h"
#include "operators/operators.h"
#include "operators/pixel.h"
#include "operators/tensor.h"

enum { STRIP = 1024 };

struct strip {
	const struct wr_sobel_arguments *edges;
	int32_t left, count;        /* columns to write */
	uint8_t luma[3][STRIP + 2]; /* of three rows, a column more to each side */
};

/* Inlined with a constant number of channels. */
WR_INLINED void load_pixels(uint8_t *restrict to, const uint8_t *from, int32_t count, int32_t channels)
{
	for (int32_t i = 0; i < count; i++)
		to[i] = (uint8_t)wr_pixel_luma(from + (int64_t)i * channels, channels);
}

WR_INLINED void load_row(struct strip *strip, int32_t y)
{
	struct wr_image image = strip->edges->image;
	int32_t first = strip->left - 1, all = strip->count + 2;
	int32_t begin = first < 0, end = image.width - first < all ? image.width - first : all;
	const uint8_t *from =
		strip->edges->from +
		((int64_t)wr_pixel_clamp(y, image.height) * image.width + first + begin) * image.channels;
	uint8_t *to = strip->luma[(y + 1) % 3];

	switch (image.channels) {
	case 1:
		load_pixels(to + begin, from, end - begin, 1);
		break;
	case 2:
		load_pixels(to + begin, from, end - begin, 2);
		break;
	case 3:
		load_pixels(to + begin, from, end - begin, 3);
		break;
	case 4:
		load_pixels(to + begin, from, end - begin, 4);
		break;
	}
	to[0] = to[begin];
	to[all - 1] = to[end - 1];
}

/* As wr_pixel_sobel does it, in 16 bits. */
WR_INLINED void write_row(const struct strip *strip, int32_t y)
{
	const uint8_t *n = strip->luma[y % 3], *here = strip->luma[(y + 1) % 3],
		      *s = strip->luma[(y + 2) % 3];
	uint8_t *restrict to = strip->edges->to + (int64_t)y * strip->edges->image.width + strip->left;
	int16_t down[STRIP + 2], across[STRIP + 2];
	int32_t count = strip->count;

	for (int32_t i = 0; i < count + 2; i++) {
		down[i] = (int16_t)(s[i] - n[i]);
		across[i] = (int16_t)(n[i] + 2 * here[i] + s[i]);
	}
	for (int32_t i = 0; i < count; i++) {
		int16_t gx = (int16_t)(across[i + 2] - across[i]);
		int16_t gy = (int16_t)(down[i] + 2 * down[i + 1] + down[i + 2]);
		int16_t length = (int16_t)((gx < 0 ? -gx : gx) + (gy < 0 ? -gy : gy));

		to[i] = (uint8_t)(length < 255 ? length : 255);
	}
}

WR_INLINED int sobel_rows(const void *arguments)
{
	const struct wr_sobel_arguments *edges = arguments;
	int32_t width = edges->image.width;

	for (int32_t left = 0; left < width; left += STRIP) {
		struct strip strip = {.edges = edges, .left = left};

		strip.count = width - left < STRIP ? width - left : STRIP;
		load_row(&strip, -1);
		load_row(&strip, 0);
		for (int32_t y = 0; y < edges->image.height; y++) {
			load_row(&strip, y + 1);
			write_row(&strip, y);
		}
	}
	return 0;
}
WR_HOST_FORM(sobel_on_host, sobel_rows)

static const weir_kernel kernel = {
	.size = sizeof(weir_kernel),
	.name = "sobel",
	.host = sobel_on_host,
	.cuda = WR_CUDA_FORM(wr_sobel_cuda),
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_TENSOR,
		.help = "its edges, one channel",
		.dtype = "uint8",
		.place = "device",
		.shape = "[H, W, 1]",
	},
	{.name = NULL},
};

static weir_status alloc_edges(weir_context *context, struct wr_image image, weir_message **out)
{
	const int64_t shape[] = {image.height, image.width, 1};
	const weir_tensor like = {
		.size = sizeof(weir_tensor),
		.dimensions = 3,
		.shape = shape,
		.code = 1,
		.bits = 8,
	};

	return weir_context_create_tensor(context, &like, 0, out);
}

static weir_status sobel_message(weir_context *context, void *state, weir_message *message)
{
	struct wr_sobel_arguments edges;
	weir_message *out = NULL;
	weir_status status = wr_image_on_device(context, message, &edges.image);

	(void)state;
	if (!status)
		status = alloc_edges(context, edges.image, &out);
	if (status)
		return status;
	edges.from = weir_message_data(message);
	edges.to = weir_message_data(out);
	status = wr_launch(context, &kernel, &edges, sizeof edges);
	return wr_message_written(context, out, status);
}

static weir_status sobel_compute(weir_context *context, void *state)
{
	return wr_messages_each(context, state, sobel_message);
}

const weir_operator wr_sobel = {
	.size = sizeof(weir_operator),
	.name = "sobel",
	.help = "edges of a uint8 image (Sobel on its luma), in integers: the same bytes on every backend",
	.flags = WEIR_OPERATOR_STREAM | WEIR_OPERATOR_INSTANCES,
	.inputs = wr_image_inputs,
	.outputs = outputs,
	.compute = sobel_compute,
};

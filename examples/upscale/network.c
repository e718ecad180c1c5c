/* The host forms of the network's kernels: plain loops over the pixels. */
#include "upscale.h"

#define WEIGHTS static const
#include "weights.h"

int letterbox_on_host(const void *arguments)
{
	const struct letterbox *work = arguments;
	int8_t *to = work->to;

	for (int32_t y = 0; y < work->frame_height; y++)
		for (int32_t x = 0; x < work->frame_width; x++)
			for (int32_t channel = 0; channel < FRAME_CHANNELS; channel++)
				*to++ = letterbox_value(work, y, x, channel);
	return 0;
}

/* A layer without its clamp, for one pixel; the compiler makes one copy per layer. */
static inline void convolve(const int8_t *from, int32_t height, int32_t width, int32_t y, int32_t x, int side,
			    int inputs, int outputs, const int8_t *weights, int32_t *sums)
{
	for (int tap = 0; tap < side * side; tap++) {
		const int8_t *pixel = from + inputs * nearest_pixel(y + tap / side - side / 2,
								    x + tap % side - side / 2, height, width);
		const int8_t *row = weights + (int64_t)tap * outputs * inputs;

		for (int out = 0; out < outputs; out++)
			for (int in = 0; in < inputs; in++)
				sums[out] += row[out * inputs + in] * pixel[in];
	}
}

static void start_sums(const int32_t *bias, int outputs, int shift, int32_t *sums)
{
	for (int out = 0; out < outputs; out++)
		sums[out] = bias[out] + (1 << shift >> 1);
}

static void hidden_pixel(const struct layer *work, int32_t y, int32_t x, int8_t *to)
{
	const int shift = work->number == 1 ? SHIFT_1 : SHIFT_2;
	int32_t sums[HIDDEN];

	start_sums(work->number == 1 ? bias_1 : bias_2, HIDDEN, shift, sums);
	if (work->number == 1)
		convolve(work->from, work->height, work->width, y, x, 5, FRAME_CHANNELS, HIDDEN,
			 weights_1[0][0], sums);
	else
		convolve(work->from, work->height, work->width, y, x, 3, HIDDEN, HIDDEN, weights_2[0][0],
			 sums);
	for (int out = 0; out < HIDDEN; out++)
		to[out] = (int8_t)clamp(sums[out] >> shift, 0, 127);
}

int layer_on_host(const void *arguments)
{
	const struct layer *work = arguments;

	for (int32_t y = 0; y < work->height; y++)
		for (int32_t x = 0; x < work->width; x++)
			hidden_pixel(work, y, x, work->to + HIDDEN * ((int64_t)y * work->width + x));
	return 0;
}

int last_layer_on_host(const void *arguments)
{
	const struct last_layer *work = arguments;
	int32_t sums[LACKS];

	for (int32_t y = 0; y < work->height; y++)
		for (int32_t x = 0; x < work->width; x++) {
			start_sums(bias_3, LACKS, SHIFT_3, sums);
			convolve(work->from, work->height, work->width, y, x, 3, HIDDEN, LACKS,
				 weights_3[0][0], sums);
			for (int32_t part = 0; part < LACKS; part++) {
				int64_t pixel = (2L * y + part / 2 % 2) * 2 * work->width + 2 * x + part % 2;

				work->to[COLOURS * pixel + part / 4] =
					upscaled_value(work, y, x, part, sums[part] >> SHIFT_3);
			}
		}
	return 0;
}

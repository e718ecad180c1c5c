/*
 * A small network that doubles a picture's size; shared by the C and the CUDA side.
 *
 * All of it is computed in integers, so every backend gives the same bytes. A frame is int8
 * [height][width][4]: level - 128 of red, green and blue, and 0. Three convolutions follow; beyond the edge
 * the nearest pixel counts. With w and b from weights.h a layer computes
 *
 *     (b[out] + the sum over taps and inputs of w[tap][out][in] * x + half) >> SHIFT
 *
 * and clamps to 0..127, except for the last one. That one gives 12 numbers a pixel, [colour][row][column]:
 * what linear interpolation lacks at the four pixels that take the place of this one.
 */
#ifndef UPSCALE_H
#define UPSCALE_H

#include <stdint.h>

enum { FRAME_CHANNELS = 4, HIDDEN = 16, LACKS = 12, COLOURS = 3 };

/* letterbox: writes a frame with the picture in its middle and grey bars around it */
struct letterbox {
	const uint8_t *from; /* [height][width][channels] */
	int8_t *to;          /* [frame_height][frame_width][FRAME_CHANNELS] */
	int32_t height, width, channels, frame_height, frame_width;
};

/* one hidden layer of the network */
struct layer {
	const int8_t *from; /* [height][width][FRAME_CHANNELS or HIDDEN] */
	int8_t *to;         /* [height][width][HIDDEN] */
	int32_t height, width, number;
};

/* the last layer, and the interpolation that its result is added to */
struct last_layer {
	const int8_t *from;  /* [height][width][HIDDEN] */
	const int8_t *frame; /* [height][width][FRAME_CHANNELS] */
	uint8_t *to;         /* [2 height][2 width][COLOURS] */
	int32_t height, width;
};

#ifdef __CUDACC__
#define BOTH static __host__ __device__ inline
#else
#define BOTH static inline
#endif

BOTH int32_t clamp(int32_t value, int32_t least, int32_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* Index of the pixel at (y, x), or of the nearest one of the frame. */
BOTH int64_t nearest_pixel(int32_t y, int32_t x, int32_t height, int32_t width)
{
	return (int64_t)clamp(y, 0, height - 1) * width + clamp(x, 0, width - 1);
}

/* One value of a frame; y, x and channel are of the frame. */
BOTH int8_t letterbox_value(const struct letterbox *work, int32_t y, int32_t x, int32_t channel)
{
	int32_t from_y = y - (work->frame_height - work->height) / 2;
	int32_t from_x = x - (work->frame_width - work->width) / 2;
	int32_t from_channel = work->channels < COLOURS ? 0 : channel;

	if (channel >= COLOURS || from_y < 0 || from_y >= work->height || from_x < 0 || from_x >= work->width)
		return 0;
	return (int8_t)(work->from[((int64_t)from_y * work->width + from_x) * work->channels + from_channel] -
			128);
}

/* One value of the result: pixel (y, x) of the frame, its row and column of the four, a colour. */
BOTH uint8_t upscaled_value(const struct last_layer *work, int32_t y, int32_t x, int32_t part, int32_t lacks)
{
	int32_t colour = part / 4, other_y = y + (part / 2 % 2 ? 1 : -1), other_x = x + (part % 2 ? 1 : -1);
	const int8_t *frame = work->frame + colour;
	int32_t near = frame[4 * nearest_pixel(y, x, work->height, work->width)] + 128;
	int32_t across = frame[4 * nearest_pixel(y, other_x, work->height, work->width)] + 128;
	int32_t down = frame[4 * nearest_pixel(other_y, x, work->height, work->width)] + 128;
	int32_t far = frame[4 * nearest_pixel(other_y, other_x, work->height, work->width)] + 128;

	return (uint8_t)clamp(((9 * near + 3 * across + 3 * down + far + 8) >> 4) + lacks, 0, 255);
}

#ifdef __cplusplus
extern "C" {
#endif
/* Each enqueues its kernel on a cudaStream_t; arguments: the struct above. */
int letterbox_on_cuda(void *native_stream, const void *arguments);
int layer_on_cuda(void *native_stream, const void *arguments);
int last_layer_on_cuda(void *native_stream, const void *arguments);
#ifdef __cplusplus
}
#endif

/* The host forms, in network.c. */
int letterbox_on_host(const void *arguments);
int layer_on_host(const void *arguments);
int last_layer_on_host(const void *arguments);

#endif

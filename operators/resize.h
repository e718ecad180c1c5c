/*
 * Bilinear resizing in integers, pixel by pixel: the CUDA form. The host form, which works on rows, uses what
 * it can of this, and gives the same bytes (tests/operators/forms.c).
 *
 * A position in the source is counted in 2048ths of a pixel. Rows are mixed first, to 128ths of a level (at
 * most 15 bits, so that the host may multiply 16-bit numbers), then columns. docs/operators.md states the
 * formula.
 */
#ifndef WR_OPERATORS_RESIZE_H
#define WR_OPERATORS_RESIZE_H

#include "operators/pixel.h"

enum { WR_RESIZE_BITS = 11, WR_RESIZE_ONE = 1 << WR_RESIZE_BITS };

/* The two pixels of the source that a pixel is mixed of, in one direction; part: 2048ths of the second. */
struct wr_resize_tap {
	int32_t first, second, part;
};

/*
 * Of pixel i, where `to` pixels cover `from` of the source. The position of the pixel's center is kept
 * between 0 and from - 1: beyond its edge an image repeats the edge. Sizes up to 2^20 fit.
 */
WR_PIXEL struct wr_resize_tap wr_resize_tap_of(int32_t i, int32_t from, int32_t to)
{
	int64_t sum = ((2 * (int64_t)i + 1) * from - to) * WR_RESIZE_ONE + to;
	int64_t position = sum < 0 ? 0 : sum / (2 * (int64_t)to), last = (int64_t)(from - 1) * WR_RESIZE_ONE;
	struct wr_resize_tap tap;

	position = position < last ? position : last;
	tap.first = (int32_t)(position >> WR_RESIZE_BITS);
	tap.second = wr_pixel_clamp(tap.first + 1, from);
	tap.part = (int32_t)(position & (WR_RESIZE_ONE - 1));
	return tap;
}

/* Two levels, one above the other: in 128ths of a level. */
WR_PIXEL int32_t wr_resize_mix_rows(int32_t above, int32_t below, int32_t part)
{
	return (above * WR_RESIZE_ONE + (below - above) * part + 8) >> 4;
}

/* Two results of wr_resize_mix_rows, side by side: a level. */
WR_PIXEL uint8_t wr_resize_mix_columns(int32_t left, int32_t right, int32_t part)
{
	return (uint8_t)((left * WR_RESIZE_ONE + (right - left) * part + (1 << 17)) >> 18);
}

/* Returns true if the pixel lies in the resized picture, not in the border of a letterbox. */
WR_PIXEL int32_t wr_resize_inside(const struct wr_resize_arguments *job, int32_t x, int32_t y)
{
	return x >= job->left && x - job->left < job->inner_width && y >= job->top &&
	       y - job->top < job->inner_height;
}

/* size * to / from, halves rounded up, at least 1. */
WR_PIXEL int32_t wr_resize_scaled(int32_t size, int32_t to, int32_t from)
{
	int64_t result = (2 * (int64_t)size * to + from) / (2 * (int64_t)from);

	return result ? (int32_t)result : 1;
}

/* Sets where the picture lies in the result, which has width and height already. */
WR_PIXEL void wr_resize_place(struct wr_resize_arguments *job, int32_t letterbox)
{
	struct wr_image image = job->image;

	job->inner_width = job->width;
	job->inner_height = job->height;
	if (letterbox && (int64_t)job->width * image.height <= (int64_t)job->height * image.width)
		job->inner_height = wr_resize_scaled(image.height, job->width, image.width);
	else if (letterbox)
		job->inner_width = wr_resize_scaled(image.width, job->height, image.height);
	job->left = (job->width - job->inner_width) / 2;
	job->top = (job->height - job->inner_height) / 2;
}

#endif

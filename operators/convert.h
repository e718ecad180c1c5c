/*
 * Conversion of a block of pixels in integers: the CUDA form. The host form, which works on rows, uses what
 * it can of this, and gives the same bytes (tests/operators/forms.c).
 *
 * A pixel is loaded as R, G, B, A from one format and stored as another. NV12 and I420 have the luma of each
 * pixel, and below it the chroma of each block of 2 x 2 pixels; so the work is done by such blocks. Between
 * these two the bytes only move. docs/operators.md states the formulas.
 */
#ifndef WR_OPERATORS_CONVERT_H
#define WR_OPERATORS_CONVERT_H

#include "operators/pixel.h"

enum wr_pixel_format {
	WR_PIXEL_RGB,
	WR_PIXEL_BGR,
	WR_PIXEL_RGBA,
	WR_PIXEL_BGRA,
	WR_PIXEL_GRAY,
	WR_PIXEL_NV12,
	WR_PIXEL_I420
};

struct wr_rgba {
	int32_t r, g, b, a;
};

WR_PIXEL int32_t wr_convert_channels(int32_t format)
{
	return format <= WR_PIXEL_BGR ? 3 : format <= WR_PIXEL_BGRA ? 4 : 1;
}

/* Luma and chroma, the latter of blocks. */
WR_PIXEL int32_t wr_convert_is_yuv(int32_t format)
{
	return format == WR_PIXEL_NV12 || format == WR_PIXEL_I420;
}

/* 65536ths, halves rounded up, clamped to a byte. The offset keeps the shifted sum positive. */
WR_PIXEL int32_t wr_convert_round(int32_t sum)
{
	int32_t value = ((sum + (512 << 16) + (1 << 15)) >> 16) - 512;

	return value < 0 ? 0 : value < 255 ? value : 255;
}

WR_PIXEL struct wr_rgba wr_convert_from_yuv(const struct wr_convert_matrix *m, int32_t y, int32_t u,
					    int32_t v)
{
	int32_t luma = (y - 16) * m->y_scale;
	struct wr_rgba pixel;

	pixel.r = wr_convert_round(luma + (v - 128) * m->v_to_r);
	pixel.g = wr_convert_round(luma + (u - 128) * m->u_to_g + (v - 128) * m->v_to_g);
	pixel.b = wr_convert_round(luma + (u - 128) * m->u_to_b);
	pixel.a = 255;
	return pixel;
}

/* Where U of the block with the pixel x, y lies: rows of U, V, U, V ..., or a plane of U and one of V. */
WR_PIXEL int64_t wr_convert_u_at(const struct wr_convert_arguments *job, int32_t format, int32_t x, int32_t y)
{
	if (format == WR_PIXEL_NV12)
		return ((int64_t)job->height + y / 2) * job->width + x / 2 * 2;
	return (int64_t)job->height * job->width + (int64_t)(y / 2) * (job->width / 2) + x / 2;
}

/* From U to V. */
WR_PIXEL int64_t wr_convert_to_v(const struct wr_convert_arguments *job, int32_t format)
{
	return format == WR_PIXEL_NV12 ? 1 : (int64_t)(job->height / 2) * (job->width / 2);
}

/* Grey is the luma alone, without the clamping that its colours undergo. */
WR_PIXEL struct wr_rgba wr_convert_load_yuv(const struct wr_convert_arguments *job, int32_t format, int32_t x,
					    int32_t y)
{
	const uint8_t *u = job->from + wr_convert_u_at(job, format, x, y);
	int32_t luma = job->from[(int64_t)y * job->width + x];

	if (job->to_format == WR_PIXEL_GRAY)
		return wr_convert_from_yuv(&job->matrix, luma, 128, 128);
	return wr_convert_from_yuv(&job->matrix, luma, u[0], u[wr_convert_to_v(job, format)]);
}

WR_PIXEL struct wr_rgba wr_convert_load(const struct wr_convert_arguments *job, int32_t format, int32_t x,
					int32_t y)
{
	const uint8_t *at = job->from + ((int64_t)y * job->width + x) * wr_convert_channels(format);
	struct wr_rgba pixel;

	if (wr_convert_is_yuv(format))
		return wr_convert_load_yuv(job, format, x, y);
	if (format == WR_PIXEL_GRAY) {
		pixel.r = pixel.g = pixel.b = at[0];
	} else {
		int32_t swapped = format == WR_PIXEL_BGR || format == WR_PIXEL_BGRA ? 2 : 0;

		pixel.r = at[swapped];
		pixel.g = at[1];
		pixel.b = at[2 - swapped];
	}
	pixel.a = format == WR_PIXEL_RGBA || format == WR_PIXEL_BGRA ? at[3] : 255;
	return pixel;
}

WR_PIXEL void wr_convert_store(const struct wr_convert_arguments *job, int32_t format, int32_t x, int32_t y,
			       struct wr_rgba pixel)
{
	uint8_t *at = job->to + ((int64_t)y * job->width + x) * wr_convert_channels(format);
	const struct wr_convert_matrix *m = &job->matrix;

	if (wr_convert_is_yuv(format)) {
		at[0] = (uint8_t)(16 + wr_convert_round(pixel.r * m->r_to_y + pixel.g * m->g_to_y +
							pixel.b * m->b_to_y));
	} else if (format == WR_PIXEL_GRAY) {
		at[0] = (uint8_t)((m->gray[0] * pixel.r + m->gray[1] * pixel.g + m->gray[2] * pixel.b +
				   128) >>
				  8);
	} else {
		int32_t swapped = format == WR_PIXEL_BGR || format == WR_PIXEL_BGRA ? 2 : 0;

		at[swapped] = (uint8_t)pixel.r;
		at[1] = (uint8_t)pixel.g;
		at[2 - swapped] = (uint8_t)pixel.b;
		if (wr_convert_channels(format) == 4)
			at[3] = (uint8_t)pixel.a;
	}
}

/* Of the sum of four pixels; 128 is added before the rounding, so that the sum is positive. */
WR_PIXEL uint8_t wr_convert_chroma(const int32_t weights[3], struct wr_rgba sum)
{
	int32_t value = weights[0] * sum.r + weights[1] * sum.g + weights[2] * sum.b;

	return (uint8_t)((value + (128 << 18) + (1 << 17)) >> 18);
}

WR_PIXEL void wr_convert_store_chroma(const struct wr_convert_arguments *job, int32_t format, int32_t x,
				      int32_t y, uint8_t u, uint8_t v)
{
	uint8_t *at = job->to + wr_convert_u_at(job, format, x, y);

	at[0] = u;
	at[wr_convert_to_v(job, format)] = v;
}

/* Both have luma and chroma: height and width are even. */
WR_PIXEL void wr_convert_move_block(const struct wr_convert_arguments *job, int32_t from, int32_t to,
				    int32_t x, int32_t y)
{
	const uint8_t *u = job->from + wr_convert_u_at(job, from, x, y);

	for (int32_t i = 0; i < 4; i++) {
		int64_t at = (int64_t)(y + (i >> 1)) * job->width + x + (i & 1);

		job->to[at] = job->from[at];
	}
	wr_convert_store_chroma(job, to, x, y, u[0], u[wr_convert_to_v(job, from)]);
}

/* Converts the 2 x 2 pixels from x, y on, those of them that exist. */
WR_PIXEL void wr_convert_block(const struct wr_convert_arguments *job, int32_t from, int32_t to, int32_t x,
			       int32_t y)
{
	struct wr_rgba sum = {0, 0, 0, 0};

	if (wr_convert_is_yuv(from) && wr_convert_is_yuv(to)) {
		wr_convert_move_block(job, from, to, x, y);
		return;
	}
	for (int32_t i = 0; i < 4; i++) {
		int32_t u = x + (i & 1), v = y + (i >> 1);
		struct wr_rgba pixel;

		if (u >= job->width || v >= job->height)
			continue;
		pixel = wr_convert_load(job, from, u, v);
		wr_convert_store(job, to, u, v, pixel);
		sum.r += pixel.r;
		sum.g += pixel.g;
		sum.b += pixel.b;
	}
	if (wr_convert_is_yuv(to))
		wr_convert_store_chroma(job, to, x, y, wr_convert_chroma(job->matrix.to_u, sum),
					wr_convert_chroma(job->matrix.to_v, sum));
}

#endif

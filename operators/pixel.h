/*
 * Arithmetic of a pixel in integers: the CUDA forms. The host forms, which work on rows, use what they can of
 * this, and give the same bytes (tests/operators/forms.c).
 */
#ifndef WR_OPERATORS_PIXEL_H
#define WR_OPERATORS_PIXEL_H

#include "operators/kernels.h"

#ifdef __CUDACC__
#define WR_PIXEL static inline __host__ __device__
#else
#define WR_PIXEL static inline
#endif

/* Beyond its edge an image repeats the edge. */
WR_PIXEL int32_t wr_pixel_clamp(int32_t at, int32_t size)
{
	return at < 0 ? 0 : at < size ? at : size - 1;
}

/* The mean of n values, halves rounded up. At most 129 x 129 values of 255: 32 bits are enough. */
WR_PIXEL uint8_t wr_pixel_mean(uint32_t sum, uint32_t n)
{
	return (uint8_t)((sum + n / 2) / n);
}

/* BT.601 in 256ths for three and four channels; one or two are luma already. */
WR_PIXEL int32_t wr_pixel_luma(const uint8_t *pixel, int32_t channels)
{
	return channels < 3 ? pixel[0] : (77 * pixel[0] + 150 * pixel[1] + 29 * pixel[2] + 128) >> 8;
}

WR_PIXEL int32_t wr_pixel_luma_at(const uint8_t *data, struct wr_image image, int32_t x, int32_t y)
{
	int64_t row = wr_pixel_clamp(y, image.height), column = wr_pixel_clamp(x, image.width);

	return wr_pixel_luma(data + (row * image.width + column) * image.channels, image.channels);
}

WR_PIXEL int32_t wr_pixel_abs(int32_t value)
{
	return value < 0 ? -value : value;
}

/* The length of the gradient of luma, |x| + |y|, 3 x 3 Sobel. */
WR_PIXEL uint8_t wr_pixel_sobel(const uint8_t *data, struct wr_image image, int32_t x, int32_t y)
{
	int32_t nw = wr_pixel_luma_at(data, image, x - 1, y - 1), n = wr_pixel_luma_at(data, image, x, y - 1);
	int32_t ne = wr_pixel_luma_at(data, image, x + 1, y - 1), w = wr_pixel_luma_at(data, image, x - 1, y);
	int32_t e = wr_pixel_luma_at(data, image, x + 1, y), sw = wr_pixel_luma_at(data, image, x - 1, y + 1);
	int32_t s = wr_pixel_luma_at(data, image, x, y + 1), se = wr_pixel_luma_at(data, image, x + 1, y + 1);
	int32_t gx = ne + 2 * e + se - nw - 2 * w - sw, gy = sw + 2 * s + se - nw - 2 * n - ne;
	int32_t length = wr_pixel_abs(gx) + wr_pixel_abs(gy);

	return (uint8_t)(length < 255 ? length : 255);
}

#endif

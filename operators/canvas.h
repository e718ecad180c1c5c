/* Rectangles and text on an image in host memory. All is clipped to the image. */
#ifndef WR_OPERATORS_CANVAS_H
#define WR_OPERATORS_CANVAS_H

#include <stdbool.h>
#include <stddef.h>

#include "operators/kernels.h"

struct wr_canvas {
	uint8_t *pixels;
	struct wr_image image;
};

/* Without the column `right` and the row `bottom`. Each within 2^24 of 0. */
struct wr_rectangle {
	int32_t left, top, right, bottom;
};

/* A value for each channel of the image. */
struct wr_colour {
	uint8_t values[4];
};

void wr_canvas_fill(const struct wr_canvas *canvas, struct wr_rectangle where, struct wr_colour colour);
/* The edges of a rectangle, `thickness` pixels wide, inside of it. */
void wr_canvas_frame(const struct wr_canvas *canvas, struct wr_rectangle where, int32_t thickness,
		     struct wr_colour colour);

/* A line of text of `length` bytes on a ground; a character is 6 x 9 times `scale` pixels. */
enum { WR_CANVAS_LINE = 9, WR_CANVAS_SCALE_MAX = 64 };
struct wr_caption {
	const char *text;
	size_t length;
	int32_t left, top, scale;
	struct wr_colour ink, ground;
};
void wr_canvas_caption(const struct wr_canvas *canvas, const struct wr_caption *caption);

#endif

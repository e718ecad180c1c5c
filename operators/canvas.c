#include "operators/canvas.h"

#include <string.h>

#include "operators/font.h"
#include "operators/pixel.h"

static int32_t clipped(int32_t at, int32_t size)
{
	return at < 0 ? 0 : at < size ? at : size;
}

void wr_canvas_fill(const struct wr_canvas *canvas, struct wr_rectangle where, struct wr_colour colour)
{
	struct wr_image image = canvas->image;
	int32_t left = clipped(where.left, image.width), right = clipped(where.right, image.width);
	int32_t top = clipped(where.top, image.height), bottom = clipped(where.bottom, image.height);

	for (int32_t y = top; y < bottom; y++) {
		uint8_t *to = canvas->pixels + ((int64_t)y * image.width + left) * image.channels;

		for (int32_t x = left; x < right; x++, to += image.channels)
			memcpy(to, colour.values, (size_t)image.channels);
	}
}

void wr_canvas_frame(const struct wr_canvas *canvas, struct wr_rectangle where, int32_t thickness,
		     struct wr_colour colour)
{
	struct wr_rectangle top = where, bottom = where, left = where, right = where;

	if (thickness >= where.right - where.left || thickness >= where.bottom - where.top) {
		wr_canvas_fill(canvas, where, colour);
		return;
	}
	top.bottom = where.top + thickness;
	bottom.top = where.bottom - thickness;
	left.right = where.left + thickness;
	right.left = where.right - thickness;
	wr_canvas_fill(canvas, top, colour);
	wr_canvas_fill(canvas, bottom, colour);
	wr_canvas_fill(canvas, left, colour);
	wr_canvas_fill(canvas, right, colour);
}

static void draw_character(const struct wr_canvas *canvas, const struct wr_caption *caption, int32_t left,
			   unsigned char character)
{
	int32_t scale = caption->scale;

	for (int32_t y = 0; y < WR_FONT_HEIGHT; y++)
		for (int32_t x = 0; x < WR_FONT_WIDTH; x++) {
			struct wr_rectangle dot = {.left = left + x * scale,
						   .top = caption->top + (y + 1) * scale};

			dot.right = dot.left + scale;
			dot.bottom = dot.top + scale;
			if (wr_font_pixel(character, x, y))
				wr_canvas_fill(canvas, dot, caption->ink);
		}
}

/* A byte that continues a character of UTF-8. */
static bool is_continued(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

void wr_canvas_caption(const struct wr_canvas *canvas, const struct wr_caption *caption)
{
	int32_t step = (WR_FONT_WIDTH + 1) * caption->scale, left = caption->left;
	struct wr_rectangle ground = {.left = left,
				      .top = caption->top,
				      .right = left + caption->scale,
				      .bottom = caption->top + WR_CANVAS_LINE * caption->scale};

	for (size_t i = 0; i < caption->length && ground.right < canvas->image.width; i++)
		if (!is_continued(caption->text[i]))
			ground.right += step;
	wr_canvas_fill(canvas, ground, caption->ground);
	left += caption->scale;
	for (size_t i = 0; i < caption->length && left < canvas->image.width; i++) {
		if (is_continued(caption->text[i]))
			continue;
		draw_character(canvas, caption, left, (unsigned char)caption->text[i]);
		left += step;
	}
}

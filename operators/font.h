/* A small font of the printable characters of ASCII. */
#ifndef WR_OPERATORS_FONT_H
#define WR_OPERATORS_FONT_H

#include <stdbool.h>
#include <stdint.h>

enum { WR_FONT_WIDTH = 5, WR_FONT_HEIGHT = 7 };

/* Returns true if the pixel is set; x < WR_FONT_WIDTH, y < WR_FONT_HEIGHT. Others than ASCII are a full
 * block. */
bool wr_font_pixel(unsigned char character, int32_t x, int32_t y);

#endif

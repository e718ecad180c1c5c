/*
 * PNG files made without libpng: every colour type, depth and interlacing, in stored (uncompressed) blocks.
 */
#ifndef TESTS_OPERATORS_DRAWING_H
#define TESTS_OPERATORS_DRAWING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGB_ALPHA = 6 };

struct drawing {
	uint32_t width, height;
	uint8_t depth, type;
	bool interlaced, transparent; /* transparent: a tRNS chunk: grey or RGB value 0, palette entry 0 with
					 alpha 7 */
	uint32_t claimed_width, claimed_height; /* 0: the true ones */
};

/* The expected sample of a channel, below 2^depth. */
uint16_t drawing_sample(const struct drawing *drawing, uint32_t x, uint32_t y, unsigned channel);
unsigned drawing_channels(const struct drawing *drawing);
uint8_t drawing_palette(unsigned entry, unsigned channel); /* of four entries */

/* Returns the file's bytes; free() them. */
uint8_t *drawing_bytes(const struct drawing *drawing, size_t *size);

#endif

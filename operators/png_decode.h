/* Reading a PNG file into a message: png_decode.c, which is the operator `png_decode`, too. */
#ifndef WR_OPERATORS_PNG_DECODE_H
#define WR_OPERATORS_PNG_DECODE_H

#include "weir.h"

/*
 * Emits the picture on output 0. One that cannot be read, or has more than max_bytes of pixels, fails the run
 * after its drain: the pictures before it are worked off.
 */
weir_status wr_png_emit(weir_context *context, const char *file, int64_t max_bytes);

/* The rows of what both operators have: the parameter, and the output. */
#define WR_PNG_MAX_BYTES                                                                                     \
	{                                                                                                    \
		.size = sizeof(weir_parameter), .name = "max_bytes", .type = WEIR_TYPE_SIZE,                 \
		.fallback = "\"256MiB\"", .min = 1, .max = INT64_MAX,                                        \
		.help = "a picture with more bytes of pixels fails the run: a small file may hold a large "  \
			"one",                                                                               \
	}
extern const weir_port wr_png_outputs[];

#endif

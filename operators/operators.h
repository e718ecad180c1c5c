/*
 * The built-in operators: one a file, one const table each, written against weir.h alone.
 */
#ifndef WR_OPERATORS_OPERATORS_H
#define WR_OPERATORS_OPERATORS_H

#include "weir.h"

extern const weir_operator wr_blur;
extern const weir_operator wr_convert;
extern const weir_operator wr_delay;
extern const weir_operator wr_download;
extern const weir_operator wr_files;
extern const weir_operator wr_frames_read;
extern const weir_operator wr_frames_write;
extern const weir_operator wr_draw;
extern const weir_operator wr_normalize;
extern const weir_operator wr_pass;
extern const weir_operator wr_ping;
extern const weir_operator wr_png_decode;
extern const weir_operator wr_png_read;
extern const weir_operator wr_png_write;
extern const weir_operator wr_print;
extern const weir_operator wr_resize;
extern const weir_operator wr_sink;
extern const weir_operator wr_sobel;
extern const weir_operator wr_spin;
extern const weir_operator wr_top;
extern const weir_operator wr_upload;

extern const weir_operator *const wr_builtin_operators[]; /* by name; ends with NULL */

#endif

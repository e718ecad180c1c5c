#include "operators/operators.h"

const weir_operator *const wr_builtin_operators[] = {
	&wr_blur,        &wr_convert,      &wr_delay,     &wr_download, &wr_draw, &wr_files,
	&wr_frames_read, &wr_frames_write, &wr_normalize, &wr_pass,     &wr_ping, &wr_png_decode,
	&wr_png_read,    &wr_png_write,    &wr_print,     &wr_resize,   &wr_sink, &wr_sobel,
	&wr_spin,        &wr_top,          &wr_upload,    NULL,
};

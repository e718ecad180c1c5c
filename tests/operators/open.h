#ifndef TESTS_OPERATORS_OPEN_H
#define TESTS_OPERATORS_OPEN_H

#include <fcntl.h>

#include "operators/picture.h"

/* wr_picture_close even after a failure. */
static inline bool picture_open(struct wr_picture *picture, const char *path)
{
	return wr_picture_take(picture, open(path, WR_PICTURE_OPEN));
}

#endif

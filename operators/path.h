/* The error text for a path that cannot be opened. */
#ifndef WR_OPERATORS_PATH_H
#define WR_OPERATORS_PATH_H

#include <errno.h>
#include <string.h>

static inline const char *wr_path_error(int error)
{
	return error == EXDEV ? "lies outside of the root (--root)" : strerror(error);
}

#endif

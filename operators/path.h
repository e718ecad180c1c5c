/* The error text for a path that weir_context_open cannot open. */
#ifndef WR_OPERATORS_PATH_H
#define WR_OPERATORS_PATH_H

#include <errno.h>
#include <string.h>

#include "weir.h"

static inline const char *wr_path_error(int error)
{
	if (error == EBUSY)
		return weir_last_error(); /* which names the other user of the file */
	return error == EXDEV ? "lies outside of the root (--root)" : strerror(error);
}

#endif

/* Opening a path, and the error text for one that cannot be opened. */
#ifndef WR_OPERATORS_PATH_H
#define WR_OPERATORS_PATH_H

#include <errno.h>
#include <string.h>

#include "weir.h"

/* Returns the descriptor, or -1 and errno, on which the caller acts. */
static inline int wr_path_open(weir_context *context, const char *path, int flags, unsigned mode)
{
	int fd = -1;

	return weir_context_open(context, path, flags, mode, &fd) ? -1 : fd;
}

/* path NULL: not known. */
static inline const char *wr_path_error(const char *path, int error)
{
	if (error == EBUSY)
		return weir_last_error(); /* which names the other user of the file */
	if (error == EXDEV)
		return "lies outside of the root (--root)";
	if (error == ENOENT && path && *path && *path != '/')
		return "No such file or directory: a relative path begins at the working folder, or at "
		       "--root, "
		       "not where the graph file is";
	return strerror(error);
}

#endif

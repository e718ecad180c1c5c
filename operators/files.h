/*
 * The files of a folder, or one file: files.c, which is the operator `files`, too. The path of a tick is that
 * of the tick's number in the list, which begins again after its last.
 */
#ifndef WR_OPERATORS_FILES_H
#define WR_OPERATORS_FILES_H

#include <dirent.h>

#include "weir.h"

struct wr_files {
	const char *path, *suffix;
	struct dirent **list; /* in a folder; NULL: path is the file */
	size_t count;
	uint64_t repeat;
	char *name; /* buffer for "path/file" */
	size_t room;
};

/* Reads `path` and `repeat` of the values. suffix: of the names in a folder, in either case. Borrows it. */
weir_status wr_files_start(weir_context *context, struct wr_files *files, const weir_values *values,
			   const char *suffix);
void wr_files_stop(struct wr_files *files);
/* Until the next call. Stamps what the tick emits with the time and its number. */
const char *wr_files_next(weir_context *context, struct wr_files *files);
/* Makes the tick the last one if it was the list's last. */
weir_status wr_files_advance(weir_context *context, const struct wr_files *files);

/* The row of the parameter `repeat`. */
#define WR_FILES_REPEAT                                                                                      \
	{                                                                                                    \
		.size = sizeof(weir_parameter), .name = "repeat", .type = WEIR_TYPE_INT, .fallback = "1",    \
		.min = 0, .max = INT32_MAX, .help = "how many times all of it is read; 0: endlessly",        \
	}

#endif

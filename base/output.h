/*
 * A file that is written whole or not at all, for the library and the command. It uses libc alone, so that
 * the command is built with it.
 *
 * The file is written beside its place, under a name of its own (.weir-PID-N), and renamed when it is whole:
 * a disk that is full costs the new file, not the old one. Paths may lead through links, which stay. What
 * cannot be replaced is written in place: FIFOs, devices, open descriptors (/dev/stdout), a file with another
 * owner or with several names, or in a folder that takes no new files.
 */
#ifndef WR_BASE_OUTPUT_H
#define WR_BASE_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct wr_output_file {
	int fd;
	const char *path;
	char target[PATH_MAX];    /* where the path leads to */
	char temporary[PATH_MAX]; /* "": it is written in place */
};

/*
 * Opens a file to write it from its beginning; a missing one is made. Borrows the path until it is closed.
 * Does not wait for the reader of a FIFO. Returns false with errno (ENXIO: a FIFO that is not being read).
 */
bool wr_output_open(struct wr_output_file *output, const char *path);
/*
 * After a read or write that failed, with its errno. True: call it again. Waits for `events` if the
 * descriptor is busy and another process has made it non-blocking.
 */
bool wr_call_again(int fd, short events);
/* Returns false with errno. */
bool wr_output_write(int fd, const char *text, size_t bytes);
/*
 * Closes it. If it was not written whole, or closing fails, the old file stays; one that was written in place
 * is removed if it is a regular file. Returns true if the file is whole; else errno is kept, or that of
 * closing.
 */
bool wr_output_close(struct wr_output_file *output, bool whole);

/* Returns true if there is something else than a regular file or a folder: opening it may have effects. */
bool wr_output_is_special(const char *path);
void wr_output_remove(const char *path); /* a regular file */
/* Returns the words for errno of a failure above. */
const char *wr_output_why(int error);

#endif

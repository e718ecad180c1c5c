/*
 * A file that is written whole or not at all, for the library and the command. It uses libc alone, so that
 * the command is built with it. Paths may lead through links, which stay.
 */
#ifndef WR_BASE_OUTPUT_H
#define WR_BASE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Opens a file to write it from its beginning; a missing one is made. Does not wait for the reader of a FIFO.
 * Returns the descriptor, or -1 with errno (ENXIO: a FIFO that is not being read).
 */
int wr_output_open(const char *path);
/* Returns false with errno. */
bool wr_output_write(int fd, const char *text, size_t bytes);
/*
 * Closes it. If it was not written whole, or closing fails, a regular file is removed; FIFOs and devices
 * stay. Returns true if the file is whole; else errno is kept, or that of closing.
 */
bool wr_output_close(const char *path, int fd, bool whole);

/* Returns true if there is something else than a regular file or a folder: opening it may have effects. */
bool wr_output_is_special(const char *path);
void wr_output_remove(const char *path); /* a regular file */
/* Returns the words for errno of a failure above. */
const char *wr_output_why(int error);

#endif

/*
 * Pictures in files. png.c is the only file that uses libpng. A function that fails leaves one line in
 * `text`.
 */
#ifndef WR_OPERATORS_PICTURE_H
#define WR_OPERATORS_PICTURE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "operators/kernels.h"

enum { WR_PICTURE_TEXT = 160, WR_PICTURE_SIDE_MAX = 1 << 15 };
enum { WR_PICTURE_CHUNK_MAX = 8 << 20 }; /* size limit of any chunk but the pixels */

struct wr_picture {
	struct wr_image image;      /* as wr_picture_rows returns it: 1, 3 or 4 channels of 8 bits */
	char text[WR_PICTURE_TEXT]; /* reason of a failure, without the file's name */
	FILE *file;
	size_t file_size;
	void *png, *info;
};

/*
 * Takes the descriptor of a file and reads its header; fd -1: fails with errno. Open it with these flags, so
 * that a pipe does not block the worker. Call wr_picture_close even after a failure.
 */
#define WR_PICTURE_OPEN (O_RDONLY | O_CLOEXEC | O_NONBLOCK)
bool wr_picture_take(struct wr_picture *picture, int fd);

/*
 * Reads the pixels into image.height x image.width x image.channels bytes; call it once. Palettes become
 * colours, 16 bits become 8, grey with alpha becomes RGBA.
 */
bool wr_picture_rows(struct wr_picture *picture, uint8_t *to);
void wr_picture_close(struct wr_picture *picture);

/*
 * Writes a new file, which must not exist, in an open folder (AT_FDCWD: the working directory), of 1 to 4
 * channels; compression: 0 (none) to 9. Removes the file on failure.
 */
bool wr_picture_write(int folder, const char *name, const uint8_t *from, struct wr_image image,
		      int compression, char text[WR_PICTURE_TEXT]);

#endif

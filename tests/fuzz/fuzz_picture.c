/*
 * libFuzzer: any bytes as a picture. Nothing may crash, leak, or write beyond the pixels that the header
 * declares; a rejected picture has a reason of one line. With an instrumented libpng (scripts/fuzz picture)
 * its coverage counts, too.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "operators/picture.h"
#include "tests/operators/open.h"
#include "shown.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_picture(const char *path)
{
	struct wr_picture picture;
	bool opened = picture_open(&picture, path);
	size_t bytes =
		(size_t)picture.image.width * (size_t)picture.image.height * (size_t)picture.image.channels;
	uint8_t *pixels = opened ? malloc(bytes) : NULL;

	if (opened && !pixels)
		abort(); /* too large for so few bytes: must be rejected earlier */
	if ((!opened || !wr_picture_rows(&picture, pixels)) &&
	    (!picture.text[0] || !shown(picture.text, false)))
		abort();
	free(pixels);
	wr_picture_close(&picture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	int fd = memfd_create("picture", 0);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	read_picture(path);
	close(fd);
	return 0;
}

#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int wr_output_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);

	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK); /* only opening must not wait */
	return fd;
}

bool wr_output_write(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t wrote = write(fd, text, bytes);

		if (wrote < 0 && errno != EINTR)
			return false;
		if (wrote > 0) {
			text += wrote;
			bytes -= (size_t)wrote;
		}
	}
	return true;
}

void wr_output_remove(const char *path)
{
	char target[PATH_MAX];
	struct stat status;

	if (realpath(path, target) && !stat(target, &status) && S_ISREG(status.st_mode))
		unlink(target);
}

bool wr_output_close(const char *path, int fd, bool whole)
{
	int kept = errno;

	if (close(fd) && whole) { /* some file systems report a full disk late */
		kept = errno;
		whole = false;
	}
	if (!whole)
		wr_output_remove(path);
	errno = kept;
	return whole;
}

bool wr_output_is_special(const char *path)
{
	struct stat status;

	return !stat(path, &status) && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

const char *wr_output_why(int error)
{
	return error == ENXIO ? "the FIFO has no reader" : strerror(error);
}

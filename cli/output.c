/*
 * A file that is written at the end of a run. It is opened before the run, so that a long run is not lost to
 * a path that cannot be written. A file that could not be written whole is removed; one that was there before
 * is not.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

static bool is_special(const char *path)
{
	struct stat status;

	return !stat(path, &status) && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/* A FIFO or a device is not opened before it is written: its reader would see an end. */
static bool can_write(struct cli_output *output)
{
	int fd;

	if (is_special(output->path))
		return !access(output->path, W_OK);
	output->made = access(output->path, F_OK) != 0;
	fd = open(output->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

int cli_output_begin(struct cli_output *output, const char *option, const char *path)
{
	*output = (struct cli_output){.path = path};
	if (!path || can_write(output))
		return CLI_OK;
	cli_say("--%s '%s': %s", option, path, strerror(errno));
	output->path = NULL;
	return CLI_FAILED;
}

/* Returns false with errno set. */
static bool write_whole(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");
	bool written;
	int error;

	if (!file)
		return false;
	written = fputs(text, file) >= 0 && !fflush(file);
	error = errno;
	if (fclose(file) && written) {
		written = false;
		error = errno;
	}
	errno = error;
	return written;
}

static void remove_partial(const char *path)
{
	char *target = is_special(path) ? NULL : realpath(path, NULL);

	if (target)
		unlink(target); /* a link stays */
	free(target);
}

void cli_output_write(struct cli_output *output, const char *text)
{
	if (!output->path)
		return;
	if (!write_whole(output->path, text)) {
		cli_say("%s: %s", output->path, strerror(errno));
		remove_partial(output->path);
	}
	output->path = NULL;
}

void cli_output_give_up(struct cli_output *output)
{
	if (output->path && output->made)
		remove_partial(output->path);
	output->path = NULL;
}

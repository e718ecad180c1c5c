/*
 * Files that the command writes. One that is written at the end of a run is looked at before it, so that a
 * long run is not lost to a path that cannot be written, and made if it was missing; if it cannot be written
 * whole at the end, a made one is removed, and an older one stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "cli/cli.h"

/* --- now --- */

const char *cli_write_file(const char *path, const char *text, size_t bytes)
{
	struct wr_output_file output;

	if (wr_output_open(&output, path) &&
	    wr_output_close(&output, wr_output_write(output.fd, text, bytes)))
		return NULL;
	return wr_output_why(errno);
}

/* To stdio a write that fails is like any other: only what it says of the first one is kept. */
static ssize_t put(void *cookie, const char *text, size_t bytes)
{
	struct cli_file *file = cookie;

	if (!file->error && !wr_output_write(file->output.fd, text, bytes))
		file->error = errno;
	return file->error ? 0 : (ssize_t)bytes;
}

const char *cli_file_open(struct cli_file *file, const char *path)
{
	file->error = 0;
	file->standard = !strcmp(path, "-");
	if (file->standard)
		file->output.fd = STDOUT_FILENO;
	else if (!wr_output_open(&file->output, path))
		return wr_output_why(errno);
	file->to = fopencookie(file, "w", (cookie_io_functions_t){.write = put});
	if (file->to && !setvbuf(file->to, file->buffer, _IOFBF, sizeof file->buffer))
		return NULL;
	errno = ENOMEM;
	if (!file->standard)
		wr_output_close(&file->output, false);
	return wr_output_why(errno);
}

const char *cli_file_close(struct cli_file *file)
{
	fclose(file->to); /* writes the rest of the buffer */
	errno = file->error;
	if (file->standard ? file->error : !wr_output_close(&file->output, !file->error))
		return wr_output_why(errno);
	return NULL;
}

/* --- at the end of a run --- */

/* A FIFO or a device is not opened before it is written: its reader would see an end. */
static bool can_write(struct cli_output *output)
{
	int fd;

	if (wr_output_is_special(output->path))
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

void cli_output_write(struct cli_output *output, const char *text)
{
	const char *why = output->path ? cli_write_file(output->path, text, strlen(text)) : NULL;

	if (why) {
		cli_say("%s: %s", output->path, why);
		cli_output_give_up(output);
	}
	output->path = NULL;
}

void cli_output_give_up(struct cli_output *output)
{
	if (output->path && output->made)
		wr_output_remove(output->path);
	output->path = NULL;
}

/* --- what a run leaves --- */

void cli_statistics_write(struct cli_output *output, weir_scheduler *scheduler)
{
	char *text = NULL;
	weir_status status;

	if (!output->path)
		return;
	status = weir_scheduler_print_statistics(scheduler, &text);
	if (status) {
		cli_say_error(status, output->path);
		cli_output_give_up(output);
		return;
	}
	cli_output_write(output, text);
	weir_text_free(text);
}

/* The library writes this file. */
void cli_trace_write(struct cli_output *output, weir_scheduler *scheduler)
{
	uint64_t dropped = 0;
	weir_status status;

	if (!output->path)
		return;
	status = weir_scheduler_write_trace(scheduler, output->path, &dropped);
	if (status) {
		cli_say_error(status, output->path);
		cli_output_give_up(output);
	} else if (dropped)
		cli_say("trace '%s': the %" PRIu64 " oldest records were dropped; --trace-events keeps more",
			output->path, dropped);
	output->path = NULL;
}

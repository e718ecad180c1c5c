/*
 * The file of --trace. The library opens it when it writes; here it is only looked at before the run, so that
 * a long run is not lost to a path that cannot be written. A FIFO or a device is not opened before it is
 * written: its reader would see an end.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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

static bool can_write(struct cli_trace *trace)
{
	int fd;

	if (is_special(trace->path))
		return !access(trace->path, W_OK);
	trace->made = access(trace->path, F_OK) != 0;
	fd = open(trace->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

int cli_trace_begin(struct cli_trace *trace, const char *path)
{
	*trace = (struct cli_trace){.path = path};
	if (!path || can_write(trace))
		return CLI_OK;
	cli_say("--trace '%s': %s", path, strerror(errno));
	trace->path = NULL;
	return CLI_FAILED;
}

void cli_trace_write(struct cli_trace *trace, weir_scheduler *scheduler)
{
	uint64_t dropped = 0;
	weir_status status;

	if (!trace->path)
		return;
	status = weir_scheduler_write_trace(scheduler, trace->path, &dropped);
	if (status)
		cli_say_error(status, trace->path);
	else if (dropped)
		cli_say("trace '%s': the %" PRIu64 " oldest records were dropped; --trace-events keeps more",
			trace->path, dropped);
	trace->path = NULL;
}

void cli_trace_give_up(struct cli_trace *trace)
{
	char *target = trace->path && trace->made ? realpath(trace->path, NULL) : NULL;

	if (target)
		unlink(target); /* a link that named no file stays */
	free(target);
	trace->path = NULL;
}

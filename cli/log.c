/*
 * The library's log on stderr: warnings and errors as lines of the command, or what WEIR_LOG asks for, with
 * times. Writing must never block or end the program (F51), and stderr is shared: its O_NONBLOCK flag with
 * the parent's terminal, its file offset with other writers. So a pipe or terminal is opened again for each
 * line, non-blocking; a socket is sent to with MSG_DONTWAIT; a regular file never blocks. A line that cannot
 * be written is dropped, and the next one that is written says how many were lost. No stdio: the interrupted
 * code may hold its locks.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

static const char *const level_names[] = {"off", "error", "warn", "info", "debug"};
enum { LEVELS = sizeof level_names / sizeof level_names[0] };

static _Atomic unsigned long long lost; /* lines dropped since the last one that was written */
static int wanted_level;
static bool asked;                 /* WEIR_LOG is set */
static _Atomic bool over_progress; /* a line that is not ended stands on the terminal */

static ssize_t write_opened_again(const char *line, size_t length)
{
	int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
	ssize_t written;

	if (fd >= 0) {
		written = write(fd, line, length);
		close(fd);
		return written;
	}
	/* No permission or no /proc: poll first. POLLERR: the pipe has no reader (open failed with ENXIO). */
	if (poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT) || (ready.revents & POLLERR))
		return -1;
	return write(STDERR_FILENO, line, length);
}

static ssize_t write_any(const char *line, size_t length)
{
	struct stat what;

	if (fstat(STDERR_FILENO, &what))
		return -1;
	if (S_ISREG(what.st_mode))
		return write(STDERR_FILENO, line, length);
	if (S_ISSOCK(what.st_mode))
		return send(STDERR_FILENO, line, length, MSG_DONTWAIT | MSG_NOSIGNAL);
	return write_opened_again(line, length);
}

/*
 * Blocks SIGPIPE in this thread and consumes the one that the write raises, but not one that was pending
 * before.
 */
static bool write_quietly(const char *line, size_t length)
{
	sigset_t pipe_only, before, pending;
	ssize_t written;
	int error = errno;

	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	written = write_any(line, length);
	if (written < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&pipe_only, NULL, &(struct timespec){0}) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error; /* the caller may be about to report it */
	return written == (ssize_t)length;
}

static size_t put_line(char *line, size_t room, weir_log_level level, int64_t at, const char *text)
{
	unsigned long long missing = lost;
	char head[64], note[48] = "";
	int length;

	if (missing)
		snprintf(note, sizeof note, "(%llu lines lost) ", missing);
	if (asked)
		snprintf(head, sizeof head, "weir %.6f %s: ", (double)at / 1e9, level_names[level]);
	else
		snprintf(head, sizeof head, "weir%s%s: %s", *cli_said_for() ? " " : "", cli_said_for(),
			 level == WEIR_LOG_WARN ? "warning: " : "");
	length = snprintf(line, room - 1, "%s%s%s%s", over_progress ? CLI_CLEAR_LINE : "", head, note, text);
	if ((size_t)length > room - 2)
		length = (int)room - 2;
	line[length++] = '\n';
	lost -= missing;
	return (size_t)length;
}

void cli_log_line(weir_log_level level, int64_t at, const char *text, void *arg)
{
	const int *wanted = arg;
	char line[1024]; /* below PIPE_BUF: lines of several writers do not mix */
	unsigned long long before = lost;
	size_t length;

	if ((int)level > *wanted)
		return;
	length = put_line(line, sizeof line, level, at, text);
	if (!write_quietly(line, length))
		lost += before + 1;
}

void cli_log_open(void)
{
	const char *name = getenv("WEIR_LOG");

	asked = name && *name;
	wanted_level = asked ? 0 : WEIR_LOG_WARN;
	for (int i = 0; asked && i < LEVELS; i++)
		if (!strcasecmp(name, level_names[i]))
			wanted_level = i;
	if (wanted_level && weir_log_set(cli_log_line, &wanted_level))
		cli_say("%s", weir_last_error());
}

void cli_log_quiet(void)
{
	if (!asked)
		wanted_level = WEIR_LOG_ERROR;
}

void cli_log_over_progress(bool on)
{
	over_progress = on;
}

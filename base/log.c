/*
 * The log must never block or end the program (F51), and stderr belongs to the whole process: its O_NONBLOCK
 * flag is shared with the parent's terminal, its file offset with other writers. So a pipe or terminal is
 * opened once more for each line, non-blocking; a socket is sent to with MSG_DONTWAIT; a regular file never
 * blocks. What cannot be written is dropped and counted, and the next line that gets through says how many
 * were lost. No libc stream: stdio's locks could be held.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/shown.h"
#include "base/status.h"

static const char *const level_names[] = {"off", "error", "warn", "info", "debug"};

static _Atomic int threshold = -1;	/* -1: the environment was not read yet */
static _Atomic uint64_t lost;

static int read_threshold(void)
{
	const char *wanted = getenv("WEIR_LOG");
	int level = WR_LOG_OFF;

	for (int i = WR_LOG_OFF; wanted && i <= WR_LOG_DEBUG; i++)
		if (!strcasecmp(wanted, level_names[i]))
			level = i;
	atomic_store_explicit(&threshold, level, memory_order_relaxed);	/* twice at once: the same answer */
	return level;
}

bool wr_log_on(enum wr_level level)
{
	int now = wr_read(&threshold);

	return (int)level <= (now >= 0 ? now : read_threshold());
}

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
	/* Not permitted or no /proc: ask first. No reader (ENXIO) ends here too: POLLERR. */
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

/* SIGPIPE is held back for this thread, and taken away if it is ours: not if one was pending before. */
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
	errno = error;	/* whoever logs a failure may still want to read it */
	return written == (ssize_t)length;
}

static size_t put_head(char *line, size_t room, enum wr_level level, uint64_t missing)
{
	double seconds = (double)wr_now() / 1e9;
	int length = missing ? snprintf(line, room, "weir %.6f %s: (%llu lines lost) ", seconds,
					level_names[level], (unsigned long long)missing)
			     : snprintf(line, room, "weir %.6f %s: ", seconds, level_names[level]);

	return (size_t)length;
}

void wr_log_line(enum wr_level level, const char *format, ...)
{
	char line[1024], text[1024];	/* below PIPE_BUF: lines of several writers never mix */
	uint64_t missing = atomic_exchange_explicit(&lost, 0, memory_order_relaxed);
	size_t head = put_head(line, sizeof(line), level, missing);
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	wr_shown_cut(line + head, sizeof(line) - head - 1, text);
	size_t length = strlen(line);
	line[length++] = '\n';
	if (!write_quietly(line, length))
		atomic_fetch_add_explicit(&lost, missing + 1, memory_order_relaxed);
}

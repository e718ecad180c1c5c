/*
 * Descriptors without blocking. The user's descriptor may be shared with other processes (a terminal, the end
 * of a pipe), and so is its O_NONBLOCK flag, so it is not set. A read of at most what poll reported does not
 * block. A write may, so a pipe or a terminal is opened again for writing, and the new description is ours;
 * where that is not possible, no more than PIPE_BUF bytes are written at once, for which poll knows the room.
 */
#include "operators/frames.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "operators/path.h"

#define PIPE_BYTES (1 << 20) /* what a user may ask for by default */

static bool is_fifo(weir_context *context, const char *path)
{
	int fd = wr_path_open(context, path, O_PATH, 0);
	struct stat about;
	bool fifo = fd >= 0 && !fstat(fd, &about) && S_ISFIFO(about.st_mode);

	if (fd >= 0)
		close(fd);
	return fifo;
}

static weir_status fail_open(weir_context *context, const struct wr_channel *channel, const char *path,
			     bool write, int error)
{
	const char *why = wr_path_error(*channel->name == '\'' ? channel->name + 1 : NULL, error);

	if (write && error == ENXIO)
		why = is_fifo(context, path) ? "nothing reads this FIFO yet: start its reader first"
					     : "there is no device behind it; /dev/tty needs a terminal";
	weir_context_fail(context, "%s: %s", channel->name, why);
	return WEIR_E_IO;
}

/* Also false for the standard input of a command that was started without one. */
static bool is_open_for(int fd, bool write)
{
	int mode = fcntl(fd, F_GETFL) & O_ACCMODE;

	return mode == O_RDWR || mode == (write ? O_WRONLY : O_RDONLY);
}

static weir_status fail_mode(weir_context *context, const struct wr_channel *channel, bool write)
{
	weir_context_fail(context, "%s: closed, or not open for %s", channel->name,
			  write ? "writing" : "reading");
	return WEIR_E_IO;
}

/*
 * Opens a FIFO without waiting for its other end. A file keeps its content until the first write: a run that
 * fails before has destroyed nothing.
 */
static int open_path(weir_context *context, struct wr_channel *channel, const char *path, bool write)
{
	int flags = (write ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_NOCTTY;
	int fd = wr_path_open(context, path, flags, 0);

	channel->old = write && fd >= 0;
	if (fd >= 0 || !write || errno != ENOENT)
		return fd;
	fd = wr_path_open(context, path, flags | O_CREAT | O_EXCL, 0666);
	channel->made = fd >= 0;
	if (fd >= 0 || errno != EEXIST)
		return fd;
	channel->old = true; /* it has just been made, by another one; or the path is a link to nothing */
	return wr_path_open(context, path, flags | O_CREAT, 0666);
}

static int open_again(int fd)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* A descriptor that is not ours, with the mode of its file. */
static void take_inherited(struct wr_channel *channel, mode_t mode, bool write)
{
	int again = write && (S_ISFIFO(mode) || S_ISCHR(mode)) ? open_again(channel->fd) : -1;

	if (again >= 0) {
		channel->fd = again;
		channel->own = true;
	}
	channel->blocks = again < 0 && !S_ISREG(mode) && !S_ISSOCK(mode);
}

/* A long path is cut between two characters. */
static void name_path(struct wr_channel *channel, const char *path)
{
	char shown[sizeof channel->name - sizeof "'...'"];

	weir_text_escape(&path, sizeof shown, shown);
	snprintf(channel->name, sizeof channel->name, "'%s%s'", shown, *path ? "..." : "");
}

static void name_channel(struct wr_channel *channel, const char *path, int descriptor, bool write)
{
	if (descriptor >= 0)
		snprintf(channel->name, sizeof channel->name, "descriptor %d", descriptor);
	else if (strcmp(path, "-"))
		name_path(channel, path);
	else
		snprintf(channel->name, sizeof channel->name, "standard %s", write ? "output" : "input");
}

/* The file must still be there under its name. Without O_CREAT nothing else is touched. */
static void remove_made(weir_context *context, const struct wr_channel *channel, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char folder[PATH_MAX] = ".";
	struct stat made, found;
	int fd;

	if (slash)
		snprintf(folder, sizeof folder, "%.*s", slash > path ? (int)(slash - path) : 1, path);
	fd = wr_path_open(context, folder, O_PATH | O_DIRECTORY, 0);
	if (fd >= 0 && !fstat(channel->fd, &made) && !fstatat(fd, name, &found, AT_SYMLINK_NOFOLLOW) &&
	    made.st_dev == found.st_dev && made.st_ino == found.st_ino)
		unlinkat(fd, name, 0);
	if (fd >= 0)
		close(fd);
}

weir_status wr_channel_open(weir_context *context, struct wr_channel *channel, const weir_values *values,
			    bool write)
{
	const char *path = weir_values_string(values, "path");
	int descriptor = (int)weir_values_int(values, "descriptor");
	struct stat about;
	weir_status status;

	*channel = (struct wr_channel){.fd = descriptor};
	name_channel(channel, path, descriptor, write);
	if (descriptor < 0 && !strcmp(path, "-"))
		channel->fd = write ? STDOUT_FILENO : STDIN_FILENO;
	else if (descriptor < 0) {
		channel->fd = open_path(context, channel, path, write);
		channel->own = true;
	}
	if (channel->fd < 0 || fstat(channel->fd, &about))
		return fail_open(context, channel, path, write, errno);
	if (!is_open_for(channel->fd, write))
		return fail_mode(context, channel, write);
	if (!channel->own)
		take_inherited(channel, about.st_mode, write);
	channel->file = S_ISREG(about.st_mode);
	channel->old &= channel->file;
	channel->socket = S_ISSOCK(about.st_mode);
	status = weir_entity_watch(weir_context_entity(context), "file_descriptor", channel->fd,
				   write ? WEIR_WATCH_WRITE : WEIR_WATCH_READ);
	if (status && channel->made)
		remove_made(context, channel, path);
	if (status)
		wr_channel_close(context, channel);
	return status;
}

void wr_channel_close(weir_context *context, struct wr_channel *channel)
{
	/* Some file systems tell only now that what was written is lost. EINTR: it is closed. */
	if (channel->own && channel->fd >= 0 && close(channel->fd) && errno != EINTR)
		weir_context_log(context, WEIR_LOG_ERROR, "%s: closing it failed: %s", channel->name,
				 strerror(errno));
	channel->fd = -1;
}

void wr_channel_end(weir_context *context, struct wr_channel *channel, const char *path)
{
	if (channel->fd < 0 || (!channel->old && !channel->made))
		return;
	if (channel->made && weir_context_stopping(context))
		remove_made(context, channel, path);
	else if (channel->old && !weir_context_stopping(context))
		(void)!ftruncate(channel->fd, 0);
	channel->old = channel->made = false;
}

int64_t wr_channel_left(const struct wr_channel *channel)
{
	struct stat about;
	off_t at = channel->file ? lseek(channel->fd, 0, SEEK_CUR) : -1;

	return at < 0 || fstat(channel->fd, &about) || about.st_size < at ? -1 : about.st_size - at;
}

void wr_channel_widen(const struct wr_channel *channel, size_t frame)
{
	int bytes = fcntl(channel->fd, F_GETPIPE_SZ); /* -1: no pipe */

	if (bytes > 0 && bytes < PIPE_BYTES && (size_t)bytes < frame)
		(void)fcntl(channel->fd, F_SETPIPE_SZ, PIPE_BYTES);
}

/* Returns false, with EAGAIN, if the channel is not ready. */
static bool channel_ready(const struct wr_channel *channel, short events)
{
	struct pollfd about = {.fd = channel->fd, .events = events};

	if (channel->file || poll(&about, 1, 0) > 0)
		return true;
	errno = EAGAIN;
	return false;
}

/* EINTR cannot be met twice in a row for ever: the next review asks again. */
static ssize_t or_again(ssize_t count)
{
	if (count < 0 && (errno == EINTR || errno == EWOULDBLOCK))
		errno = EAGAIN;
	return count;
}

ssize_t wr_channel_read(const struct wr_channel *channel, void *to, size_t bytes)
{
	if (!channel_ready(channel, POLLIN))
		return -1;
	return or_again(read(channel->fd, to, bytes));
}

/*
 * Blocks SIGPIPE in this thread and consumes the one that the write raises, but not one that was pending
 * before. Weir's workers block it anyway; on `sim` a tick runs on the program's thread.
 */
static ssize_t write_quietly(int fd, const void *from, size_t bytes)
{
	sigset_t pipe_only, before, pending;
	ssize_t written;
	int error;

	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	written = write(fd, from, bytes);
	error = errno;
	if (written < 0 && error == EPIPE && !sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&pipe_only, NULL, &(struct timespec){0}) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return written;
}

ssize_t wr_channel_write(struct wr_channel *channel, const void *from, size_t bytes)
{
	if (channel->old && ftruncate(channel->fd, 0))
		return -1;
	channel->old = channel->made = false;
	if (channel->socket)
		return or_again(send(channel->fd, from, bytes, MSG_DONTWAIT | MSG_NOSIGNAL));
	if (channel->blocks && !channel_ready(channel, POLLOUT))
		return -1;
	if (channel->blocks && bytes > PIPE_BUF)
		bytes = PIPE_BUF;
	return or_again(write_quietly(channel->fd, from, bytes));
}

/* --- Y4M --- */

/* Rows of a frame for each two rows of its first plane; 0: no such colour space. */
static int64_t rows_for_two(const char *planes)
{
	static const struct {
		const char *name;
		int64_t rows;
	} known[] = {{"420", 3}, {"422", 4}, {"444", 6}, {"mono", 2}};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i].name, planes))
			return known[i].rows;
	return 0;
}

int64_t wr_y4m_rows(const char *planes, int64_t width, int64_t height)
{
	bool halves_rows = !strcmp(planes, "420"), halves = halves_rows || !strcmp(planes, "422");

	if ((halves && width % 2) || (halves_rows && height % 2))
		return 0;
	return height * rows_for_two(planes) / 2;
}

int64_t wr_y4m_height(const char *planes, int64_t width, int64_t rows)
{
	int64_t height = rows * 2 / rows_for_two(planes);

	return height && wr_y4m_rows(planes, width, height) == rows ? height : 0;
}

#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/words.h"

enum { LINKS_MAX = 40, NAMES_MAX = 100 };

/* --- where the path leads to --- */

/* Splits it into the folder, without links, and the name in it. Returns NULL if there is no such folder. */
static const char *split_path(const char *path, char folder[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	char before[PATH_MAX] = ".";

	if (slash)
		snprintf(before, sizeof before, "%.*s", slash > path ? (int)(slash - path) : 1, path);
	return realpath(before, folder) ? slash ? slash + 1 : path : NULL;
}

static bool join_path(char out[PATH_MAX], const char *folder, const char *name)
{
	return snprintf(out, PATH_MAX, "%s/%s", strcmp(folder, "/") ? folder : "", name) < PATH_MAX;
}

/*
 * Follows the links one by one, since those of /proc (/dev/stdout leads there) stand for open files, whatever
 * their names are now. Returns false for these, and if there is no such folder.
 */
static bool find_target(const char *path, char target[PATH_MAX])
{
	char folder[PATH_MAX], link[PATH_MAX], at[PATH_MAX];
	const char *name;

	if (snprintf(at, sizeof at, "%s", path) >= PATH_MAX)
		return false;
	for (int i = 0; i < LINKS_MAX; i++) {
		ssize_t length = readlink(at, link, sizeof link - 1);

		name = split_path(at, folder);
		if (!name || !strncmp(folder, "/proc/", 6))
			return false;
		if (length < 0)
			return join_path(target, folder, name);
		link[length] = 0;
		if (*link != '/' && !join_path(target, folder, link))
			return false;
		strcpy(at, *link == '/' ? link : target);
	}
	return false;
}

/* --- opening --- */

/* Makes a file of a name that nothing has. Returns false if the folder takes none. */
static bool make_temporary(struct wr_output_file *output)
{
	static _Atomic unsigned names_made;
	char folder[PATH_MAX], name[32];

	if (!split_path(output->target, folder))
		return false;
	for (int i = 0; i < NAMES_MAX; i++) {
		snprintf(name, sizeof name, ".weir-%d-%u", (int)getpid(),
			 atomic_fetch_add_explicit(&names_made, 1, memory_order_relaxed)); /* only a number */
		if (!join_path(output->temporary, folder, name))
			return false;
		output->fd = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (output->fd >= 0 || errno != EEXIST)
			return output->fd >= 0;
	}
	return false;
}

static bool open_beside(struct wr_output_file *output)
{
	struct stat old;
	bool is_there;

	if (!find_target(output->path, output->target))
		return false;
	is_there = !stat(output->target, &old);
	if (is_there && (!S_ISREG(old.st_mode) || old.st_nlink != 1 || old.st_uid != geteuid() ||
			 faccessat(AT_FDCWD, output->target, W_OK, AT_EACCESS)))
		return false; /* it cannot be replaced by another one with the same rights */
	if (!make_temporary(output))
		return false;
	if (is_there) {
		(void)!fchown(output->fd, (uid_t)-1, old.st_gid);
		(void)!fchmod(output->fd, old.st_mode & 0777);
	}
	return true;
}

static bool open_in_place(struct wr_output_file *output)
{
	struct stat old;

	*output->temporary = 0;
	output->fd =
		open(output->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
	if (output->fd >= 0) /* only opening must not wait */
		fcntl(output->fd, F_SETFL, fcntl(output->fd, F_GETFL) & ~O_NONBLOCK);
	else if (errno == ENXIO && (stat(output->path, &old) || !S_ISFIFO(old.st_mode)))
		errno = ENODEV; /* a device that is not there, like /dev/tty without a terminal */
	return output->fd >= 0;
}

bool wr_output_open(struct wr_output_file *output, const char *path)
{
	output->path = path;
	return open_beside(output) || open_in_place(output);
}

bool wr_call_again(int fd, short events)
{
	struct pollfd about = {.fd = fd, .events = events};

	if (errno != EAGAIN && errno != EWOULDBLOCK)
		return errno == EINTR;
	return poll(&about, 1, -1) >= 0 || errno == EINTR;
}

bool wr_output_write(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t wrote = write(fd, text, bytes);

		if (wrote < 0 && !wr_call_again(fd, POLLOUT))
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

bool wr_output_close(struct wr_output_file *output, bool whole)
{
	bool beside = *output->temporary;
	int kept = errno;

	/* So that the new file is on the disk before its name is. Some file systems cannot: EINVAL, ENOSYS.
	 */
	if (whole && beside && fsync(output->fd) && errno != EINVAL && errno != ENOSYS) {
		kept = errno;
		whole = false;
	}
	if (close(output->fd) && whole) { /* some file systems report a full disk late */
		kept = errno;
		whole = false;
	}
	if (whole && beside && rename(output->temporary, output->target)) {
		kept = errno;
		whole = false;
	}
	if (!whole && beside)
		unlink(output->temporary);
	else if (!whole)
		wr_output_remove(output->path);
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
	return error == ENXIO ? "the FIFO has no reader" : wr_errno_words(error);
}

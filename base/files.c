#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/words.h"

enum { LINKS_MAX = 40 };

int wr_file_open_anywhere(const void *unused, const char *path, int flags)
{
	(void)unused;
	return open(path, flags | O_CLOEXEC);
}

/* --- what is there --- */

void wr_file_seen(struct wr_file *file, const struct stat *about)
{
	mode_t mode = about->st_mode;

	file->device = about->st_dev;
	file->inode = about->st_ino;
	file->kind = S_ISREG(mode) || S_ISBLK(mode) ? WR_FILE_PLAIN
		     : S_ISFIFO(mode)               ? WR_FILE_PIPE
		     : S_ISDIR(mode)                ? WR_FILE_FOLDER
						    : WR_FILE_FREE; /* also what has no inode of its own */
}

/* Returns a descriptor of the folder that the path lies in, and sets *name to the rest; -1: there is none. */
static int open_folder(const char *path, const char **name, wr_file_opener *open, const void *arg)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX] = ".";

	*name = slash ? slash + 1 : path;
	if (slash)
		snprintf(folder, sizeof folder, "%.*s", slash > path ? (int)(slash - path) : 1, path);
	return open(arg, folder, O_PATH | O_DIRECTORY);
}

/* Replaces the path of a link by that of its target. Returns false if it is no link. */
static bool follow_link(char path[PATH_MAX], int folder, const char *name)
{
	char link[PATH_MAX], next[PATH_MAX];
	ssize_t length = readlinkat(folder, name, link, sizeof link - 1);
	int written;

	if (length < 0)
		return false;
	link[length] = 0;
	written = snprintf(next, sizeof next, "%.*s%s", *link == '/' ? 0 : (int)(name - path), path, link);
	if (written < 0 || (size_t)written >= sizeof next)
		return false;
	memcpy(path, next, sizeof next);
	return true;
}

/* Looks at the path as it is, and at its folder. Returns true if it is a link to nothing, which it follows.
 */
static bool look_once(struct wr_file *file, char path[PATH_MAX], wr_file_opener *open, const void *arg)
{
	const char *name;
	struct stat about;
	int folder = open_folder(path, &name, open, arg), fd = -1;
	bool again = false;

	if (folder >= 0 && !fstat(folder, &about)) {
		file->folder_device = about.st_dev;
		file->folder_inode = about.st_ino;
		snprintf(file->name, sizeof file->name, "%.*s", NAME_MAX, name);
		fd = open(arg, path, O_PATH);
		if (fd >= 0 && !fstat(fd, &about))
			wr_file_seen(file, &about);
		else if (fd < 0 && errno == ENOENT) {
			again = follow_link(path, folder, name);
			file->kind = again ? WR_FILE_UNSEEN : WR_FILE_MISSING;
		}
	}
	if (fd >= 0)
		close(fd);
	if (folder >= 0)
		close(folder);
	return again;
}

void wr_file_look(struct wr_file *file, wr_file_opener *open, const void *arg)
{
	char path[PATH_MAX];
	size_t length = file->path ? strlen(file->path) : 0;
	struct stat about;

	if (!file->path && !fstat(file->fd, &about))
		wr_file_seen(file, &about);
	while (length > 1 && file->path[length - 1] == '/')
		length--;
	if (!length || length >= sizeof path)
		return;
	snprintf(path, sizeof path, "%.*s", (int)length, file->path);
	for (int i = 0; i < LINKS_MAX && look_once(file, path, open, arg); i++)
		;
}

/* --- clashes --- */

/* Files that are written into a folder have the prefix and a number. */
static bool is_numbered(const char *name, const char *prefix)
{
	size_t length = strlen(prefix);

	return !strncmp(name, prefix, length) && name[length] >= '0' && name[length] <= '9';
}

static bool folder_has(const struct wr_file *folder, const char *prefix, wr_file_opener *open,
		       const void *arg)
{
	int fd = open(arg, folder->path, O_RDONLY | O_DIRECTORY);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	bool found = false;

	for (struct dirent *entry; list && !found && (entry = readdir(list));)
		found = is_numbered(entry->d_name, prefix);
	if (list)
		closedir(list);
	else if (fd >= 0)
		close(fd);
	return found;
}

static bool same_object(const struct wr_file *a, const struct wr_file *b)
{
	if (a->kind == WR_FILE_MISSING && b->kind == WR_FILE_MISSING)
		return a->folder_device == b->folder_device && a->folder_inode == b->folder_inode &&
		       !strcmp(a->name, b->name);
	if (a->kind == WR_FILE_UNSEEN && b->kind == WR_FILE_UNSEEN)
		return a->path && b->path ? !strcmp(a->path, b->path) : a->fd >= 0 && a->fd == b->fd;
	return a->kind == b->kind && a->kind > WR_FILE_MISSING && a->device == b->device &&
	       a->inode == b->inode;
}

/* The one that has a prefix writes numbered files into its folder. */
static bool numbered_clash(const struct wr_file *numbered, const struct wr_file *other, wr_file_opener *open,
			   const void *arg)
{
	if (other->prefix)
		return !strcmp(numbered->prefix, other->prefix) && same_object(numbered, other);
	if (other->kind == WR_FILE_FOLDER)
		return other->use == WR_FILE_READ && same_object(numbered, other) &&
		       folder_has(other, numbered->prefix, open, arg);
	return numbered->kind == WR_FILE_FOLDER && other->path && other->kind != WR_FILE_UNSEEN &&
	       other->folder_device == numbered->device && other->folder_inode == numbered->inode &&
	       is_numbered(other->name, numbered->prefix);
}

bool wr_file_clashes(const struct wr_file *file, const struct wr_file *other, wr_file_opener *open,
		     const void *arg)
{
	if (file->prefix)
		return numbered_clash(file, other, open, arg);
	if (other->prefix)
		return numbered_clash(other, file, open, arg);
	if (file->kind == WR_FILE_FOLDER || file->kind == WR_FILE_FREE || !same_object(file, other))
		return false;
	if (file->use == WR_FILE_READ && other->use == WR_FILE_READ)
		return file->kind == WR_FILE_PIPE || (file->fd >= 0 && file->fd == other->fd);
	return file->use != WR_FILE_LINES || other->use != WR_FILE_LINES;
}

/* --- in words --- */

static void add_name(struct wr_words *words, const struct wr_file *file)
{
	if (file->path)
		wr_words_add(words, "'%s%s%s%s'", wr_shown(file->path).text, file->prefix ? "/" : "",
			     file->prefix ? wr_shown(file->prefix).text : "", file->prefix ? "*" : "");
	else if (file->fd == STDIN_FILENO || file->fd == STDOUT_FILENO)
		wr_words_add(words, "standard %s", file->fd ? "output" : "input");
	else
		wr_words_add(words, "descriptor %d", file->fd);
}

/* Returns true if the name of `b` would tell nothing more: it is that of `a`, or the number of a plugin's. */
static bool same_name(const struct wr_file *a, const struct wr_file *b)
{
	if (!b->path && !b->user && b->fd > STDERR_FILENO)
		return true;
	if (a->path && b->path)
		return !strcmp(a->path, b->path) && !a->prefix == !b->prefix;
	return !a->path && !b->path && a->fd == b->fd;
}

void wr_file_clash_text(char text[WR_FILE_TEXT], const struct wr_file *file, const struct wr_file *other)
{
	struct wr_words words = wr_words_in(text, WR_FILE_TEXT);
	bool consumed = file->use == WR_FILE_READ && other->use == WR_FILE_READ;

	add_name(&words, file);
	if (same_name(file, other)) {
		wr_words_add(&words, " is also ");
	} else {
		wr_words_add(&words,
			     file->prefix || other->prefix ? " shares files with " : " is the same as ");
		add_name(&words, other);
		wr_words_add(&words, ", which is ");
	}
	wr_words_add(&words, other->use == WR_FILE_READ ? "read" : "written");
	if (!other->user)
		wr_words_add(&words, " as %s", other->place);
	else
		wr_words_add(&words, *other->place ? " by '%s' (%s)" : " by '%s'", other->user, other->place);
	wr_words_add(&words, "%s: %s", consumed ? ", and what one takes the other lacks" : "",
		     file->use == WR_FILE_LINES ? "leave one of them out" : "name another one");
}

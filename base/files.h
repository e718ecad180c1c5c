/*
 * Which of the files of a run are one file, so that no run destroys what it reads or what another of its
 * writers writes. A file is known by device and inode, one that does not exist yet by its folder's and its
 * name, and a descriptor by what it refers to. Uses libc alone, so that the command is built with it.
 *
 * Two uses of one file exclude each other if one of them writes, or if both consume what they read: a pipe,
 * or one descriptor. Lines go with lines: each is written by one call. Character devices (/dev/null,
 * terminals) and sockets exclude nothing.
 */
#ifndef WR_BASE_FILES_H
#define WR_BASE_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum wr_file_use { WR_FILE_READ, WR_FILE_WRITE, WR_FILE_LINES };

/* What is there. UNSEEN: it was not looked at, or cannot be. */
enum wr_file_kind {
	WR_FILE_UNSEEN,
	WR_FILE_MISSING,
	WR_FILE_PLAIN,
	WR_FILE_PIPE,
	WR_FILE_FOLDER,
	WR_FILE_FREE
};

enum { WR_FILE_PLACE = 128, WR_FILE_TEXT = 512 };

/* One use of a file. All texts but `place` are borrowed. */
struct wr_file {
	char place[WR_FILE_PLACE]; /* "the graph", "--trace", "/entities/0/parameters/path"; "": of `user` */
	const char *user;          /* the entity's name; NULL: none */
	const char *path;          /* NULL: a descriptor */
	const char *prefix;        /* of the files that are written into the folder `path`; NULL: none */
	bool owned;                /* the path is freed with the list */
	int fd;                    /* -1: a path */
	size_t entity;             /* index; SIZE_MAX: none */
	enum wr_file_use use;
	enum wr_file_kind kind;
	dev_t device, folder_device; /* folder: that of the path */
	ino_t inode, folder_inode;
	char name[NAME_MAX + 1]; /* in its folder */
};

/* Opens a path beneath the root of a run, if there is one, with O_CLOEXEC. Returns -1 and errno. */
typedef int wr_file_opener(const void *arg, const char *path, int flags);
int wr_file_open_anywhere(const void *unused, const char *path, int flags);

/* Finds out what is there; opens nothing for reading or writing. Links are followed, also dangling ones. */
void wr_file_look(struct wr_file *file, wr_file_opener *open, const void *arg);
void wr_file_seen(struct wr_file *file, const struct stat *about);
/* Returns true if the two exclude each other. The folder of `file` may be listed for it. */
bool wr_file_clashes(const struct wr_file *file, const struct wr_file *other, wr_file_opener *open,
		     const void *arg);
/* "'a.rgb' is also written by 'w' (/entities/1/parameters/path): name another one" */
void wr_file_clash_text(char text[WR_FILE_TEXT], const struct wr_file *file, const struct wr_file *other);

#endif

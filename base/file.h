/* Files: reading whole ones, and opening one that must lie beneath a folder, whatever links there are. */
#ifndef WR_BASE_FILE_H
#define WR_BASE_FILE_H

#include "base/text.h"

#define WR_FILE_MAX ((size_t)256 << 20) /* bytes of a graph's text by default */

/*
 * Gives the text of a file or pipe; "-" is standard input. If it is larger than `most`, so is `length`, and
 * the text is incomplete or NULL. Fails: WEIR_E_IO, WEIR_E_NOMEM.
 */
weir_status wr_file_read(struct wr_text *out, const char *path, size_t most);

/*
 * As openat, but no part of the path ("..", a link's target, an absolute path) may lead out of the folder.
 * The kernel checks this while it resolves the path, so there is no race. Returns the descriptor, or -1 with
 * errno: EXDEV if the path leads out of the folder, ENOSYS before Linux 5.6.
 */
int wr_file_open_beneath(int folder, const char *path, int flags, unsigned mode);

/* A folder that paths of a graph file are confined to. All zero: none, any path may be opened. */
struct wr_root {
	char *path; /* NULL: none */
	int folder;
};
/* Fails: WEIR_E_IO, WEIR_E_NOMEM; *out is then to be closed all the same. */
weir_status wr_root_open(struct wr_root *out, const char *path);
/* As open with O_CLOEXEC: a relative path begins at the root, an absolute one must lie beneath it. */
int wr_root_open_file(const struct wr_root *root, const char *path, int flags, unsigned mode);
void wr_root_close(struct wr_root *root);

#endif

/* Opening files that must lie beneath a folder, whatever links there are. */
#ifndef WR_BASE_BENEATH_H
#define WR_BASE_BENEATH_H

/*
 * As openat, but no part of the path ("..", a link's target, an absolute path) may lead out of the folder.
 * The kernel checks this while it resolves the path, so there is no race. Returns the descriptor, or -1 with
 * errno: EXDEV if the path leads out of the folder, ENOSYS before Linux 5.6.
 */
int wr_open_beneath(int folder, const char *path, int flags, unsigned mode);

#endif

/* Files beneath a folder, whatever links there are. */
#ifndef WR_BASE_BENEATH_H
#define WR_BASE_BENEATH_H

/*
 * As openat, but no part of the path, "..", a link's target or an absolute path, leads out of the folder: the kernel
 * checks it while it walks, so nothing can be swapped in between. -1: errno; EXDEV: it leads out; ENOSYS: Linux before
 * 5.6.
 */
int wr_open_beneath(int folder, const char *path, int flags, unsigned mode);

#endif

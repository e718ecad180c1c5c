#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int wr_open_beneath(int folder, const char *path, int flags, unsigned mode)
{
	struct open_how how = {
		.flags = (unsigned)flags,
		.mode = flags & (O_CREAT | __O_TMPFILE) ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	do
		fd = syscall(SYS_openat2, folder, path, &how, sizeof how);
	while (fd < 0 && errno == EAGAIN); /* a folder of the path was renamed meanwhile */
	return (int)fd;
}

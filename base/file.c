#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/output.h"
#include "base/status.h"
#include "base/words.h"

int wr_file_open_beneath(int folder, const char *path, int flags, unsigned mode)
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

static weir_status read_all(struct wr_text *text, int fd, size_t most)
{
	while (text->length <= most) {
		size_t want = most + 1 - text->length;
		ssize_t got;

		if (want > 65536)
			want = 65536;
		if (!wr_text_reserve(text, want))
			return text->status;
		got = read(fd, text->text + text->length, want);
		if (got < 0 && !wr_call_again(fd, POLLIN))
			return WEIR_E_IO;
		if (got == 0)
			break;
		if (got > 0)
			text->length += (size_t)got;
		text->text[text->length] = '\0';
	}
	return WEIR_OK;
}

/* Returns true, with its size, for a regular file that is too large to be read. */
static bool is_too_large(int fd, size_t most, size_t *bytes)
{
	struct stat status;

	if (fstat(fd, &status) || !S_ISREG(status.st_mode) || (uintmax_t)status.st_size <= most)
		return false;
	*bytes = (size_t)status.st_size;
	return true;
}

weir_status wr_file_read(struct wr_text *out, const char *path, size_t most)
{
	struct wr_text text = {0};
	bool is_standard = !strcmp(path, "-");
	int fd = is_standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	weir_status status = fd < 0 ? WEIR_E_IO : WEIR_OK;

	if (!status && !is_too_large(fd, most, &text.length))
		status = read_all(&text, fd, most);
	if (status == WEIR_E_IO)
		wr_fail(WEIR_E_IO, "%s: cannot be read: %s",
			is_standard ? "standard input" : wr_shown(path).text, wr_errno_words(errno));
	if (fd >= 0 && !is_standard)
		close(fd);
	if (status)
		wr_text_finish(&text);
	else
		*out = text;
	return status;
}

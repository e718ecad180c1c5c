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

static weir_status fail_root(const char *path)
{
	return wr_fail(WEIR_E_IO, "root '%s': %s", wr_shown(path).text,
		       errno == ENOSYS ? "this kernel cannot confine paths: use Linux 5.6 or newer"
				       : wr_errno_words(errno));
}

weir_status wr_root_open(struct wr_root *out, const char *path)
{
	char *whole = realpath(path, NULL);
	int probe;

	if (!whole)
		return fail_root(path);
	out->folder = -1;
	out->path = wr_strdup(whole);
	wr_free(whole);
	if (!out->path)
		return WEIR_E_NOMEM;
	out->folder = open(out->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	probe = out->folder < 0 ? -1 : wr_file_open_beneath(out->folder, ".", O_PATH | O_CLOEXEC, 0);
	if (probe < 0)
		return fail_root(path);
	close(probe);
	return WEIR_OK;
}

int wr_root_open_file(const struct wr_root *root, const char *path, int flags, unsigned mode)
{
	size_t length = root->path ? strlen(root->path) : 0;

	if (!root->path)
		return open(path, flags | O_CLOEXEC, mode);
	if (!strncmp(path, root->path, length) && (!path[length] || path[length] == '/')) {
		path += length + strspn(path + length, "/");
		path = *path ? path : ".";
	}
	return wr_file_open_beneath(root->folder, path, flags | O_CLOEXEC, mode);
}

void wr_root_close(struct wr_root *root)
{
	if (root->path && root->folder >= 0)
		close(root->folder);
	wr_free(root->path);
	*root = (struct wr_root){0};
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

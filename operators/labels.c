#include "operators/labels.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "operators/path.h"

enum { FILE_MAX = 16 << 20 };

static weir_status labels_no_memory(weir_context *context)
{
	weir_context_fail(context, "out of memory");
	return WEIR_E_NOMEM;
}

/* Reads all of an open file of `size` bytes, or what is there of it; returns -1 and errno. */
static ssize_t read_file(int fd, char *to, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t bytes = read(fd, to + done, size - done);

		if (bytes < 0 && errno != EINTR)
			return -1;
		if (!bytes)
			break;
		done += bytes > 0 ? (size_t)bytes : 0;
	}
	return (ssize_t)done;
}

static weir_status labels_load(weir_context *context, const char *path, int fd, struct wr_labels *labels,
			       size_t *size)
{
	struct stat about;
	ssize_t bytes;

	if (fd < 0 || fstat(fd, &about))
		return weir_context_fail(context, "labels '%s': %s", path, wr_path_error(path, errno));
	if (!S_ISREG(about.st_mode))
		return weir_context_fail(context, "labels '%s': not a regular file", path);
	if (about.st_size > FILE_MAX)
		return weir_context_fail(context, "labels '%s': more than 16 MiB", path);
	labels->text = calloc((size_t)about.st_size + 1, 1);
	if (!labels->text)
		return labels_no_memory(context);
	bytes = read_file(fd, labels->text, (size_t)about.st_size);
	if (bytes < 0)
		return weir_context_fail(context, "labels '%s': %s", path, strerror(errno));
	*size = (size_t)bytes;
	return WEIR_OK;
}

static weir_status labels_split(weir_context *context, const char *path, struct wr_labels *labels,
				size_t size)
{
	size_t count = 1;

	if (memchr(labels->text, 0, size))
		return weir_context_fail(context, "labels '%s': has a NUL byte: it is no text", path);
	for (size_t i = 0; i < size; i++)
		count += labels->text[i] == '\n';
	labels->lines = calloc(count, sizeof *labels->lines);
	if (!labels->lines)
		return labels_no_memory(context);
	for (char *at = labels->text; *at;) {
		size_t length = strcspn(at, "\n");
		char *next = at[length] ? at + length + 1 : at + length;

		at[length] = 0;
		if (length && at[length - 1] == '\r')
			at[length - 1] = 0;
		labels->lines[labels->count++] = at;
		if (strlen(at) > WR_LABEL_MAX)
			return weir_context_fail(context, "labels '%s': line %zu has more than %d bytes",
						 path, labels->count, WR_LABEL_MAX);
		at = next;
	}
	return WEIR_OK;
}

weir_status wr_labels_read(weir_context *context, const char *path, struct wr_labels *out)
{
	struct wr_labels labels = {0};
	weir_status status;
	size_t size = 0;
	int fd;

	*out = labels;
	if (!*path)
		return WEIR_OK;
	fd = wr_path_open(context, path, O_RDONLY | O_NONBLOCK, 0);
	status = labels_load(context, path, fd, &labels, &size);
	if (fd >= 0)
		close(fd);
	if (!status)
		status = labels_split(context, path, &labels, size);
	if (status)
		wr_labels_finish(&labels);
	else
		*out = labels;
	return status;
}

void wr_labels_finish(struct wr_labels *labels)
{
	free(labels->lines);
	free(labels->text);
	*labels = (struct wr_labels){0};
}

const char *wr_labels_name(const struct wr_labels *labels, int64_t number)
{
	if (number < 0 || (uint64_t)number >= labels->count || !*labels->lines[number])
		return NULL;
	return labels->lines[number];
}

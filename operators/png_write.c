#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "operators/operators.h"
#include "operators/path.h"
#include "operators/picture.h"
#include "operators/tensor.h"

struct png_write {
	const char *directory, *prefix;
	int compression;
	uint64_t every, next;   /* next: number of the message, of all that the entity receives */
	int folder;             /* descriptor of `directory` */
	char *name, *temporary; /* "directory/prefix000000.png", ".prefix000000.png.1234" */
	size_t room;            /* size of each buffer */
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "directory",
		.type = WEIR_TYPE_WRITE_FILE,
		.choices = "prefix",
		.fallback = "\"out\"",
		.help = "the folder to write to; created if missing",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "prefix",
		.type = WEIR_TYPE_STRING,
		.fallback = "\"frame\"",
		.help = "prefix of the files' names: frame000000.png, frame000001.png, ...",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "compression",
		.type = WEIR_TYPE_INT,
		.fallback = "3",
		.min = 0,
		.max = 9,
		.help = "0 none, 1 fast ... 9 small",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "every",
		.type = WEIR_TYPE_INT,
		.fallback = "1",
		.min = 1,
		.max = INT64_MAX,
		.help = "writes the first image and then every n-th; the others are not looked at",
	},
	{.name = NULL},
};

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.kinds = WEIR_KIND_TENSOR,
		.help = "uint8 [height, width, 1 to 4 channels] in host memory, finished",
		.dtype = "uint8",
		.place = "host",
		.shape = "[H, W] | [H, W, 1..4]",
	},
	{.name = NULL},
};

/* Creates a folder in an existing one; the last step follows no link. */
static void make_folder(weir_context *context, char *path)
{
	char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	int above;

	if (slash)
		*slash = 0;
	above = wr_path_open(context, !slash ? "." : *path ? path : "/", O_PATH | O_DIRECTORY, 0);
	if (slash)
		*slash = '/';
	if (above < 0)
		return;
	mkdirat(above, name, 0777); /* an error shows when the folder is opened */
	close(above);
}

/* Preserves errno. */
static bool file_exists(weir_context *context, const char *path)
{
	int error = errno, fd = wr_path_open(context, path, O_PATH, 0);

	if (fd >= 0)
		close(fd);
	errno = error;
	return fd >= 0;
}

/* Creates the folder and its parents, and opens it. Uses `name` as scratch. */
static weir_status make_directory(weir_context *context, struct png_write *self)
{
	snprintf(self->name, self->room, "%s", self->directory);
	for (char *at = self->name + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = 0;
		make_folder(context, self->name);
	}
	make_folder(context, self->name);
	self->folder = wr_path_open(context, self->directory, O_RDONLY | O_DIRECTORY, 0);
	if (self->folder < 0 && errno == ENOTDIR && file_exists(context, self->directory))
		return weir_context_fail(context, "directory '%s': there is something else of this name",
					 self->directory);
	if (self->folder < 0 || faccessat(self->folder, ".", W_OK | X_OK, 0))
		return weir_context_fail(context, "directory '%s': %s", self->directory,
					 wr_path_error(self->directory, errno));
	return WEIR_OK;
}

static void png_write_stop(weir_context *context, void *state)
{
	struct png_write *self = state;

	(void)context;
	free(self->name);
	free(self->temporary);
	if (self->folder >= 0)
		close(self->folder);
	self->name = self->temporary = NULL;
	self->folder = -1;
}

static weir_status make_file_names(weir_context *context, struct png_write *self)
{
	if (!*self->directory)
		return weir_context_fail(context, "directory is empty: name a folder, '.' for this one");
	if (strchr(self->prefix, '/') || strlen(self->prefix) > 200)
		return weir_context_fail(context, "prefix '%.40s': must have no '/' and at most 200 bytes",
					 self->prefix);
	self->room = strlen(self->directory) + strlen(self->prefix) + 64;
	self->name = malloc(self->room);
	self->temporary = malloc(self->room);
	if (self->name && self->temporary)
		return WEIR_OK;
	weir_context_fail(context, "out of memory");
	return WEIR_E_NOMEM;
}

static weir_status png_write_start(weir_context *context, void *state, const weir_values *values)
{
	struct png_write *self = state;
	weir_status status;

	*self = (struct png_write){.directory = weir_values_string(values, "directory"), .folder = -1};
	self->prefix = weir_values_string(values, "prefix");
	self->compression = (int)weir_values_int(values, "compression");
	self->every = (uint64_t)weir_values_int(values, "every");
	status = make_file_names(context, self);
	if (!status)
		status = make_directory(context, self);
	if (status)
		png_write_stop(context, self);
	return status;
}

/*
 * Writes under a temporary name first, so that the folder only ever shows complete pictures. An existing
 * file of the temporary name was left by a killed process with the same id.
 */
static weir_status write_file(weir_context *context, struct png_write *self, uint64_t number,
			      const uint8_t *data, struct wr_image image)
{
	char text[WR_PICTURE_TEXT];
	const char *own;

	snprintf(self->name, self->room, "%s/%s%06" PRIu64 ".png", self->directory, self->prefix, number);
	own = self->name + strlen(self->directory) + 1;
	snprintf(self->temporary, self->room, ".%s.%ld", own, (long)getpid());
	unlinkat(self->folder, self->temporary, 0);
	if (!wr_picture_write(self->folder, self->temporary, data, image, self->compression, text))
		return weir_context_fail(context, "'%s': %s", self->name, text);
	if (!renameat(self->folder, self->temporary, self->folder, own))
		return WEIR_OK;
	snprintf(text, sizeof text, "%s", strerror(errno));
	unlinkat(self->folder, self->temporary, 0);
	return weir_context_fail(context, "'%s': %s", self->name, text);
}

static weir_status write_message(weir_context *context, void *state, weir_message *message)
{
	const weir_tensor *tensor = weir_message_tensor(message);
	struct png_write *self = state;
	struct wr_image image;
	weir_status status;

	uint64_t number = self->next++;

	if (number % self->every)
		return WEIR_OK;
	status = wr_tensor_image(context, tensor, &image);
	if (!status)
		status = wr_tensor_on_host(context, tensor);
	if (!status)
		status = wr_message_finished(context, message);
	return status ? status
		      : write_file(context, self, number / self->every, weir_message_data(message), image);
}

static weir_status png_write_compute(weir_context *context, void *state)
{
	struct png_write *self = state;

	self->next = weir_context_received(context, 0);
	return wr_messages_each(context, state, write_message);
}

const weir_operator wr_png_write = {
	.size = sizeof(weir_operator),
	.name = "png_write",
	.help = "writes each image, or every n-th, to a PNG file of its own, numbered from 0 in each run",
	.flags = WEIR_OPERATOR_EFFECTS | WEIR_OPERATOR_INSTANCES,
	.state_size = sizeof(struct png_write),
	.parameters = parameters,
	.inputs = inputs,
	.start = png_write_start,
	.compute = png_write_compute,
	.stop = png_write_stop,
};

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "operators/operators.h"
#include "operators/path.h"
#include "operators/picture.h"

struct png_read {
	const char *path;
	struct dirent **files; /* in a folder; NULL: path is the file */
	size_t file_count;
	char *name; /* buffer for "path/file" */
	size_t name_room;
	uint64_t repeat;
	int64_t max_bytes;
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "path",
		.type = WEIR_TYPE_READ_FILE,
		.help = "a PNG file, or a folder whose *.png are read in the order of their names; "
			"at most 32768 x 32768 pixels",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "repeat",
		.type = WEIR_TYPE_INT,
		.fallback = "1",
		.min = 0,
		.max = INT32_MAX,
		.help = "how many times all of it is read; 0: endlessly",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "max_bytes",
		.type = WEIR_TYPE_SIZE,
		.fallback = "\"256MiB\"",
		.min = 1,
		.max = INT64_MAX,
		.help = "a picture with more bytes of pixels fails the run: a small file may hold a large "
			"one",
	},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_TENSOR,
		.help = "uint8 [height, width, 1, 3 or 4 channels] in pinned host memory",
		.dtype = "uint8",
		.place = "host",
		.shape = "[H, W, 1] | [H, W, 3..4]",
	},
	{.name = NULL},
};

static int is_png(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return entry->d_name[0] != '.' && length > 4 && !strcasecmp(entry->d_name + length - 4, ".png");
}

/* Not alphasort: the order must not depend on the locale. */
static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void png_read_stop(weir_context *context, void *state)
{
	struct png_read *self = state;

	(void)context;
	for (size_t i = 0; self->files && i < self->file_count; i++)
		free(self->files[i]);
	free(self->files);
	free(self->name);
	self->files = NULL;
	self->name = NULL;
}

static weir_status list_folder(weir_context *context, struct png_read *self)
{
	int folder = wr_path_open(context, self->path, O_RDONLY | O_DIRECTORY, 0);
	int count = folder < 0 ? -1 : scandirat(folder, ".", &self->files, is_png, compare_names),
	    error = errno;

	if (folder >= 0)
		close(folder);
	if (count < 0)
		return weir_context_fail(context, "path '%s': %s", self->path,
					 wr_path_error(self->path, error));
	self->file_count = (size_t)count;
	if (!count)
		return weir_context_fail(context, "path '%s': no *.png in this folder", self->path);
	self->name_room = strlen(self->path) + sizeof self->files[0]->d_name + 2;
	self->name = malloc(self->name_room);
	if (self->name)
		return WEIR_OK;
	weir_context_fail(context, "out of memory");
	return WEIR_E_NOMEM;
}

/* stat, within the root. */
static int about_path(weir_context *context, const char *path, struct stat *about)
{
	int fd = wr_path_open(context, path, O_PATH, 0), failed, error;

	if (fd < 0)
		return -1;
	failed = fstat(fd, about);
	error = errno;
	close(fd);
	errno = error;
	return failed;
}

static weir_status png_read_start(weir_context *context, void *state, const weir_values *values)
{
	struct png_read *self = state;
	struct stat about;
	weir_status status = WEIR_OK;

	*self = (struct png_read){.path = weir_values_string(values, "path"), .file_count = 1};
	self->repeat = (uint64_t)weir_values_int(values, "repeat");
	self->max_bytes = weir_values_int(values, "max_bytes");
	if (about_path(context, self->path, &about))
		return weir_context_fail(context, "path '%s': %s", self->path,
					 wr_path_error(self->path, errno));
	if (S_ISDIR(about.st_mode))
		status = list_folder(context, self);
	if (status)
		png_read_stop(context, self);
	return status;
}

static const char *file_of_tick(struct png_read *self, uint64_t tick)
{
	if (!self->files)
		return self->path;
	snprintf(self->name, self->name_room, "%s/%s", self->path,
		 self->files[tick % self->file_count]->d_name);
	return self->name;
}

static weir_status alloc_image(weir_context *context, struct wr_image image, weir_message **out)
{
	const int64_t shape[] = {image.height, image.width, image.channels};
	const weir_tensor like = {
		.size = sizeof(weir_tensor),
		.device = WEIR_DEVICE_HOST,
		.dimensions = 3,
		.shape = shape,
		.code = 1,
		.bits = 8,
	};

	return weir_context_create_tensor(context, &like, WEIR_TENSOR_HOST, out);
}

/* The pictures before it are worked off. */
static weir_status fail_picture(weir_context *context, const char *file, const char *why)
{
	return weir_context_fail_after_drain(context, WEIR_E_FAILED, "'%s': %s", file, why);
}

static weir_status read_picture(weir_context *context, const struct png_read *self,
				struct wr_picture *picture, const char *file)
{
	const struct wr_image *image = &picture->image;
	weir_message *message = NULL;
	weir_status status;

	if (!wr_picture_take(picture, wr_path_open(context, file, WR_PICTURE_OPEN, 0)))
		return fail_picture(context, file, picture->text);
	if ((int64_t)image->width * image->height * image->channels > self->max_bytes)
		return weir_context_fail_after_drain(
			context, WEIR_E_FAILED,
			"'%s': %d x %d pixels of %d bytes are more than max_bytes, %" PRId64, file,
			image->width, image->height, image->channels, self->max_bytes);
	status = alloc_image(context, *image, &message);
	if (status)
		return status;
	if (wr_picture_rows(picture, weir_message_data(message)))
		return weir_context_emit(context, 0, message);
	weir_message_unref(message);
	return fail_picture(context, file, picture->text);
}

static weir_status png_read_compute(weir_context *context, void *state)
{
	struct png_read *self = state;
	uint64_t tick = weir_context_tick(context);
	struct wr_picture picture;
	weir_status status;

	weir_context_set_stamp(context, (weir_stamp){weir_context_now(context), tick});
	status = read_picture(context, self, &picture, file_of_tick(self, tick));
	wr_picture_close(&picture);
	if (!status && tick + 1 == self->repeat * self->file_count)
		status = weir_context_finish(context);
	return status;
}

const weir_operator wr_png_read = {
	.size = sizeof(weir_operator),
	.name = "png_read",
	.help = "reads PNG files, one a tick, and ends after the last; stamps each with the time and its "
		"number",
	.state_size = sizeof(struct png_read),
	.parameters = parameters,
	.outputs = outputs,
	.start = png_read_start,
	.compute = png_read_compute,
	.stop = png_read_stop,
};

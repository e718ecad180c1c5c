#include "operators/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "operators/operators.h"
#include "operators/path.h"

static bool is_listed(const char *name, const char *suffix)
{
	size_t length = strlen(name), least = strlen(suffix);

	return *name != '.' && length > least && !strcasecmp(name + length - least, suffix);
}

/* Not alphasort: the order must not depend on the locale. */
static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

void wr_files_stop(struct wr_files *files)
{
	for (size_t i = 0; files->list && i < files->count; i++)
		free(files->list[i]);
	free(files->list);
	free(files->name);
	files->list = NULL;
	files->name = NULL;
}

/* Those of the suffix alone stay. */
static void keep_listed(struct wr_files *files, size_t found)
{
	for (size_t i = 0; i < found; i++)
		if (is_listed(files->list[i]->d_name, files->suffix))
			files->list[files->count++] = files->list[i];
		else
			free(files->list[i]);
}

static weir_status list_folder(weir_context *context, struct wr_files *files)
{
	int folder = wr_path_open(context, files->path, O_RDONLY | O_DIRECTORY, 0);
	int found = folder < 0 ? -1 : scandirat(folder, ".", &files->list, NULL, compare_names),
	    error = errno;

	if (folder >= 0)
		close(folder);
	if (found < 0)
		return weir_context_fail(context, "path '%s': %s", files->path,
					 wr_path_error(files->path, error));
	files->count = 0;
	keep_listed(files, (size_t)found);
	if (!files->count)
		return weir_context_fail(context, "path '%s': no *%s in this folder", files->path,
					 files->suffix);
	files->room = strlen(files->path) + sizeof files->list[0]->d_name + 2;
	files->name = malloc(files->room);
	if (files->name)
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

weir_status wr_files_start(weir_context *context, struct wr_files *files, const weir_values *values,
			   const char *suffix)
{
	struct stat about;
	weir_status status = WEIR_OK;

	*files = (struct wr_files){.path = weir_values_string(values, "path"),
				   .suffix = suffix,
				   .count = 1,
				   .repeat = (uint64_t)weir_values_int(values, "repeat")};
	if (about_path(context, files->path, &about))
		return weir_context_fail(context, "path '%s': %s", files->path,
					 wr_path_error(files->path, errno));
	if (S_ISDIR(about.st_mode))
		status = list_folder(context, files);
	if (status)
		wr_files_stop(files);
	return status;
}

const char *wr_files_next(weir_context *context, struct wr_files *files)
{
	uint64_t tick = weir_context_tick(context);

	weir_context_set_stamp(context, (weir_stamp){weir_context_now(context), tick});
	if (!files->list)
		return files->path;
	snprintf(files->name, files->room, "%s/%s", files->path, files->list[tick % files->count]->d_name);
	return files->name;
}

weir_status wr_files_advance(weir_context *context, const struct wr_files *files)
{
	return weir_context_tick(context) + 1 == files->repeat * files->count ? weir_context_finish(context)
									      : WEIR_OK;
}

/* --- the operator --- */

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "path",
		.type = WEIR_TYPE_READ_FILE,
		.help = "a file, or a folder whose files are taken in the order of their names",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "suffix",
		.type = WEIR_TYPE_STRING,
		.fallback = "\".png\"",
		.help = "in a folder: how their names end, in upper or lower case",
	},
	WR_FILES_REPEAT,
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.kinds = WEIR_KIND_BYTES,
		.help = "the path, without a 0 at its end",
	},
	{.name = NULL},
};

static weir_status files_start(weir_context *context, void *state, const weir_values *values)
{
	return wr_files_start(context, state, values, weir_values_string(values, "suffix"));
}

static weir_status files_compute(weir_context *context, void *state)
{
	const char *path = wr_files_next(context, state);
	weir_message *message = NULL;
	weir_status status = weir_message_create_bytes(weir_context_graph(context), strlen(path), &message);

	if (status)
		return status;
	memcpy(weir_message_data(message), path, strlen(path));
	status = weir_context_emit(context, 0, message);
	return status ? status : wr_files_advance(context, state);
}

static void files_stop(weir_context *context, void *state)
{
	(void)context;
	wr_files_stop(state);
}

const weir_operator wr_files = {
	.size = sizeof(weir_operator),
	.name = "files",
	.help = "the paths of a folder's files, one a tick, for `png_decode`; ends after the last; stamps "
		"each with "
		"the time and its number",
	.state_size = sizeof(struct wr_files),
	.parameters = parameters,
	.outputs = outputs,
	.start = files_start,
	.compute = files_compute,
	.stop = files_stop,
};

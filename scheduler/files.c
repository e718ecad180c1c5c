/*
 * The files of a run: what it reads and writes is known before it begins, and compared once more with what
 * operators open (weir.h, "The files of a run"). The table grows while the operators start, on one thread;
 * computes only look at it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "scheduler/scheduler.h"

/* --- beneath the root --- */

/* The rest of a path that begins with the root's own path; any other path is returned as it is. */
static const char *path_below_root(const weir_scheduler *scheduler, const char *path)
{
	size_t length = strlen(scheduler->root_path);

	if (strncmp(path, scheduler->root_path, length) || (path[length] && path[length] != '/'))
		return path;
	path += length + strspn(path + length, "/");
	return *path ? path : ".";
}

static int open_beneath(const weir_scheduler *scheduler, const char *path, int flags, unsigned mode)
{
	if (!scheduler->root_path)
		return open(path, flags | O_CLOEXEC, mode);
	return wr_file_open_beneath(scheduler->root, path_below_root(scheduler, path), flags | O_CLOEXEC,
				    mode);
}

static int open_to_look(const void *scheduler, const char *path, int flags)
{
	return open_beneath(scheduler, path, flags, 0);
}

/* --- at the start of a run --- */

static weir_status add_given(weir_scheduler *scheduler)
{
	const weir_scheduler_options *options = &scheduler->options;
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < options->file_count; i++) {
		const weir_file *given = &options->files[i];
		bool standard = given->size == sizeof *given && !strcmp(given->path, "-");
		const struct wr_file file = {.path = standard ? NULL : given->path,
					     .fd = standard ? given->write : -1,
					     .entity = SIZE_MAX,
					     .use = given->write ? WR_FILE_WRITE : WR_FILE_READ};

		status = given->size == sizeof *given
				 ? wr_files_add(&scheduler->files, &file, given->name)
				 : wr_fail(WEIR_E_INVALID, "files: set .size = sizeof(weir_file)");
	}
	return status;
}

/* Fails if there is a reason why the i-th file cannot be used beside those before it, or at all. */
static weir_status check_file(const weir_scheduler *scheduler, size_t i)
{
	const struct wr_file *file = &scheduler->files.list[i];
	const struct wr_file *other = wr_files_clash(&scheduler->files, i);
	const char *foreign = wr_files_foreign(&scheduler->files, i);
	char text[WR_FILE_TEXT];

	if (foreign)
		return wr_fail(WEIR_E_INVALID, "%s: descriptor %d %s", file->place, file->fd, foreign);
	if (!other)
		return WEIR_OK;
	wr_file_clash_text(text, file, other);
	return wr_fail(WEIR_E_INVALID, "%s: %s", file->place, text);
}

weir_status wr_scheduler_check_files(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	weir_status status;

	wr_files_finish(&scheduler->files);
	scheduler->files = (struct wr_files){.open = open_to_look, .arg = scheduler, .live = true};
	status = wr_files_add_plan(&scheduler->files, graph->plan, graph->registry);
	if (!status)
		status = add_given(scheduler);
	for (size_t i = 0; !status && i < scheduler->files.count; i++) {
		size_t entity = scheduler->files.list[i].entity;

		status = check_file(scheduler, i);
		if (status && entity != SIZE_MAX)
			wr_error_about(status, graph->entities[entity].plan->name);
	}
	return status;
}

/* --- what operators open --- */

static weir_status keep_opened(weir_scheduler *scheduler, struct wr_file file)
{
	char *path = wr_strdup(file.path);
	weir_status status = path ? WEIR_OK : WEIR_E_NOMEM;

	file.path = path;
	file.owned = true;
	if (!status)
		status = wr_files_keep(&scheduler->files, &file);
	if (status)
		wr_free(path);
	return status;
}

/* Returns false, with errno, if another user of the file stands against it. */
static bool may_use(weir_scheduler *scheduler, const struct wr_file *file, bool starting)
{
	char text[WR_FILE_TEXT];

	for (size_t i = 0; i < scheduler->files.count; i++) {
		const struct wr_file *other = &scheduler->files.list[i];

		if (other->entity == file->entity || !wr_file_clashes(file, other, open_to_look, scheduler))
			continue;
		wr_file_clash_text(text, file, other);
		wr_fail(WEIR_E_INVALID, "%s", text);
		errno = EBUSY;
		return false;
	}
	if (!starting || !keep_opened(scheduler, *file))
		return true;
	errno = ENOMEM;
	return false;
}

/* The kernel's reason: as a text, and in errno for an operator that acts on it. */
static weir_status fail_open(const char *path, int error)
{
	wr_fail(WEIR_E_IO, "'%s': %s", path, strerror(error));
	errno = error;
	return WEIR_E_IO;
}

/* What was opened without O_TRUNC is emptied once it is known that it may be. */
static weir_status accept_opened(weir_context *context, int fd, const char *path, int flags)
{
	weir_entity *entity = weir_context_entity(context);
	weir_scheduler *scheduler = wr_load_acquire(&entity->scheduler);
	struct wr_file file = {.user = entity->plan->name, .path = path, .fd = -1, .entity = entity->id};
	struct stat about;
	int error;

	if ((flags & O_ACCMODE) != O_RDONLY)
		file.use = flags & O_APPEND ? WR_FILE_LINES : WR_FILE_WRITE;
	if (!fstat(fd, &about)) {
		wr_file_seen(&file, &about);
		if ((file.kind != WR_FILE_PLAIN && file.kind != WR_FILE_PIPE) ||
		    may_use(scheduler, &file, wr_load(&scheduler->phase) == WR_ENDED))
			if (!(flags & O_TRUNC) || !S_ISREG(about.st_mode) || !ftruncate(fd, 0))
				return WEIR_OK;
	}
	error = errno;
	close(fd);
	errno = error;
	return error == EBUSY ? WEIR_E_INVALID : fail_open(path, error);
}

weir_status weir_context_open(weir_context *context, const char *path, int flags, unsigned mode, int *out)
{
	const weir_scheduler *scheduler = wr_load_acquire(&weir_context_entity(context)->scheduler);
	int fd = open_beneath(scheduler, path, flags & ~O_TRUNC, mode);
	weir_status status = fd < 0 ? fail_open(path, errno) : WEIR_OK;

	if (!status && !(flags & O_PATH))
		status = accept_opened(context, fd, path, flags);
	if (!status)
		*out = fd;
	return status;
}

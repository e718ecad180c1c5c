/* The folder that the built-in operators are confined to (weir_scheduler_options.root). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/memory.h"
#include "base/status.h"
#include "graphs/text.h"
#include "scheduler/scheduler.h"

static weir_status fail_root(const char *path)
{
	return wr_fail(WEIR_E_IO, "root '%s': %s", wr_shown(path).text,
		       errno == ENOSYS ? "this kernel cannot confine paths: use Linux 5.6 or newer"
				       : strerror(errno));
}

weir_status wr_root_open(weir_scheduler *scheduler)
{
	const char *path = scheduler->options.root;
	char *whole;
	int probe;

	if (!path)
		return WEIR_OK;
	whole = realpath(path, NULL);
	if (!whole)
		return fail_root(path);
	scheduler->root_path = wr_strdup(whole);
	wr_free(whole);
	if (!scheduler->root_path)
		return WEIR_E_NOMEM;
	scheduler->root = open(scheduler->root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	probe = scheduler->root < 0 ? -1 : wr_open_beneath(scheduler->root, ".", O_PATH | O_CLOEXEC, 0);
	if (probe < 0)
		return fail_root(path);
	close(probe);
	return WEIR_OK;
}

void wr_root_close(weir_scheduler *scheduler)
{
	if (scheduler->root_path && scheduler->root >= 0)
		close(scheduler->root);
	wr_free(scheduler->root_path);
	scheduler->root_path = NULL;
}

/* The rest of a path that begins with the root's own path; any other path is returned as it is. */
static const char *path_below_root(const weir_scheduler *scheduler, const char *path)
{
	size_t length = strlen(scheduler->root_path);

	if (strncmp(path, scheduler->root_path, length) || (path[length] && path[length] != '/'))
		return path;
	path += length + strspn(path + length, "/");
	return *path ? path : ".";
}

int weir_context_open(weir_context *context, const char *path, int flags, unsigned mode)
{
	const weir_scheduler *scheduler = wr_load_acquire(&weir_context_entity(context)->scheduler);

	if (!scheduler || !scheduler->root_path)
		return open(path, flags | O_CLOEXEC, mode);
	return wr_open_beneath(scheduler->root, path_below_root(scheduler, path), flags | O_CLOEXEC, mode);
}

/*
 * Plugins: shared objects that add kinds. dlopen runs a file's constructors, so the file is checked first, on
 * an open descriptor, and then loaded as /proc/self/fd/N: the linker does not search its paths for that name,
 * and the file cannot be replaced between check and load (F91, F95).
 *
 * The linker identifies an object by the name that it was opened by. If the descriptor were closed while the
 * object is loaded, the next plugin could get the same number, so the same name, and the linker would give
 * the old object. So the descriptor stays open as long as the object is loaded: also by another registry,
 * which has opened it by a descriptor of its own.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"
#include "base/text.h"
#include "graphs/layout.h"
#include "graphs/registry.h"

struct fd_path {
	char path[32];
};

static struct fd_path fd_path(int fd)
{
	struct fd_path whole;

	snprintf(whole.path, sizeof(whole.path), "/proc/self/fd/%d", fd);
	return whole;
}

/* O_NONBLOCK: opening a FIFO must not block; check_file refuses it. */
static weir_status open_file(const char *path, int *fd)
{
	if (!*path)
		return wr_fail(WEIR_E_INVALID, "plugin '': name a file");
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*fd < 0)
		return wr_fail(WEIR_E_IO, "plugin '%s' cannot be opened: %s", wr_shown(path).text,
			       strerror(errno));
	return WEIR_OK;
}

static weir_status check_file(const char *path, int fd)
{
	struct stat status;
	const char *why = NULL;

	if (fstat(fd, &status))
		return wr_fail(WEIR_E_IO, "plugin '%s': %s", wr_shown(path).text, strerror(errno));
	if (!S_ISREG(status.st_mode))
		why = "is not a regular file";
	else if (status.st_uid != 0 && status.st_uid != geteuid())
		why = "belongs to another user: its owner must be root or you";
	else if (status.st_mode & S_IWOTH)
		why = "is writable by all users: chmod o-w it";
	return why ? wr_fail(WEIR_E_INVALID, "plugin '%s' %s", wr_shown(path).text, why) : WEIR_OK;
}

static weir_status load_failure(const char *path)
{
	const char *why = dlerror(), *end = NULL;

	if (why && !strncmp(why, "/proc/self/fd/", strlen("/proc/self/fd/")))
		end = strstr(why,
			     ": "); /* the path by which the linker knows it means nothing to the reader */
	return wr_fail(WEIR_E_INVALID, "plugin '%s' cannot be loaded: %s", wr_shown(path).text,
		       end   ? end + 2
		       : why ? why
			     : "the linker says no more");
}

/* --- without /proc --- */

/* An object that was loaded by its path, as long as it may be loaded. */
struct loaded {
	struct loaded *next;
	dev_t device;
	ino_t inode;
	char path[];
};

static struct loaded *loaded_by_path; /* guarded by wr_global_lock */

/* What is known of the object of that path; NULL: nothing. The list only grows, so the answer stays valid. */
static const struct loaded *find_loaded(const char *path)
{
	const struct loaded *found;

	wr_global_lock();
	for (found = loaded_by_path; found && strcmp(found->path, path); found = found->next)
		;
	wr_global_unlock();
	return found;
}

static weir_status remember_loaded(const char *path, const struct stat *file)
{
	struct loaded *loaded = wr_alloc(1, sizeof(*loaded) + strlen(path) + 1);

	if (!loaded)
		return WEIR_E_NOMEM;
	loaded->device = file->st_dev;
	loaded->inode = file->st_ino;
	strcpy(loaded->path, path);
	wr_global_lock();
	loaded->next = loaded_by_path;
	loaded_by_path = loaded;
	wr_global_unlock();
	return WEIR_OK;
}

/*
 * The linker gives an object that is loaded by this path already without a look at the file. It may be an
 * older file of that name: a plugin that another registry uses, or one that stays loaded after dlclose.
 */
static weir_status check_not_stale(const char *path, const struct stat *file)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	const struct loaded *known = handle ? find_loaded(path) : NULL;

	if (!handle)
		return WEIR_OK;
	dlclose(handle);
	if (known && known->device == file->st_dev && known->inode == file->st_ino)
		return WEIR_OK;
	return wr_fail(
		WEIR_E_INVALID,
		"plugin '%s' cannot be loaded: an older file of that name is still loaded, and without /proc "
		"it would be used: give the new file another name",
		wr_shown(path).text);
}

/*
 * Without /proc (a chroot) the file is loaded by its absolute path, by which the linker then identifies it.
 * Another file may have been put there since the check; this is detected only after its constructors have
 * run.
 */
static weir_status load_by_path(const char *path, int fd, void **out)
{
	struct stat was, is;
	weir_status status;

	if (fstat(fd, &was))
		return wr_fail(WEIR_E_IO, "plugin '%s': %s", wr_shown(path).text, strerror(errno));
	status = check_not_stale(path, &was);
	if (status)
		return status;
	*out = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!*out)
		return load_failure(path);
	if (stat(path, &is) || was.st_ino != is.st_ino || was.st_dev != is.st_dev)
		return wr_fail(WEIR_E_INVALID,
			       "plugin '%s' cannot be loaded: the file was replaced meanwhile",
			       wr_shown(path).text);
	return remember_loaded(path, &was);
}

static weir_status load_file(const char *path, struct wr_plugin *plugin)
{
	weir_status status;
	char *whole;

	plugin->handle = dlopen(fd_path(plugin->fd).path, RTLD_NOW | RTLD_LOCAL);
	if (plugin->handle)
		return WEIR_OK;
	if (!access("/proc/self/fd", F_OK))
		return load_failure(path);
	whole = realpath(path, NULL);
	if (!whole)
		return wr_fail(WEIR_E_IO, "plugin '%s' cannot be found again: %s", wr_shown(path).text,
			       strerror(errno));
	status = load_by_path(whole, plugin->fd, &plugin->handle);
	wr_free(whole);
	return status;
}

/* --- descriptors that outlive their plugin --- */

/* Closed plugins whose object was still loaded then; only the descriptors count. Guarded by wr_global_lock.
 */
static struct wr_plugin *kept;

static void keep(struct wr_plugin *plugin)
{
	wr_global_lock();
	plugin->next = kept;
	kept = plugin;
	wr_global_unlock();
}

/* All of them: the linker is not to be called under the lock. */
static struct wr_plugin *take_kept(void)
{
	struct wr_plugin *all;

	wr_global_lock();
	all = kept;
	kept = NULL;
	wr_global_unlock();
	return all;
}

static bool is_loaded(int fd)
{
	void *handle = dlopen(fd_path(fd).path, RTLD_NOW | RTLD_NOLOAD);

	if (handle)
		dlclose(handle);
	return handle;
}

static void keep_or_close(struct wr_plugin *plugin)
{
	if (is_loaded(plugin->fd)) {
		keep(plugin);
		return;
	}
	close(plugin->fd);
	wr_free(plugin);
}

static void review_kept(void)
{
	for (struct wr_plugin *plugin = take_kept(), *next; plugin; plugin = next) {
		next = plugin->next;
		keep_or_close(plugin);
	}
}

/* A file that is loaded again is loaded by the descriptor that is kept for it: no further one is. */
static void use_kept(struct wr_plugin *plugin)
{
	struct stat file, other;
	bool known = !fstat(plugin->fd, &file);

	for (struct wr_plugin *one = take_kept(), *next; one; one = next) {
		next = one->next;
		if (plugin->used || !known || fstat(one->fd, &other) || other.st_dev != file.st_dev ||
		    other.st_ino != file.st_ino) {
			keep(one);
			continue;
		}
		close(plugin->fd);
		plugin->fd = one->fd;
		plugin->used = true;
		wr_free(one);
	}
}

/* --- loading --- */

/* Runs before the first call into the plugin (F92). Every version has the first two fields. */
static weir_status check_info(const char *path, const weir_plugin_info *info)
{
	struct wr_shown file = wr_shown(path);

	if (!info)
		return wr_fail(
			WEIR_E_INVALID,
			"plugin '%s' has no symbol weir_plugin: add WEIR_PLUGIN(function) to its source",
			file.text);
	if (info->abi != WEIR_ABI || info->size != sizeof(*info))
		return wr_fail(WEIR_E_INVALID,
			       "plugin '%s' was built for ABI %u of weir, this is %u: rebuild it", file.text,
			       info->abi, WEIR_ABI);
	if (info->operator_size < WR_OPERATOR_FIRST || info->condition_size != sizeof(weir_condition) ||
	    info->port_size < WR_PORT_FIRST || info->parameter_size < WR_PARAMETER_FIRST)
		return wr_fail(WEIR_E_INVALID, "plugin '%s' was built with tables of other sizes: rebuild it",
			       file.text);
	if (!info->add)
		return wr_fail(WEIR_E_INVALID, "plugin '%s' adds nothing: its function is NULL", file.text);
	return WEIR_OK;
}

static weir_status plugin_load(weir_registry *registry, const char *path, struct wr_plugin *plugin)
{
	const weir_plugin_info *info = NULL;
	size_t mark = wr_registry_mark(registry);
	weir_status status = open_file(path, &plugin->fd);

	if (!status)
		status = check_file(path, plugin->fd);
	if (!status) {
		use_kept(plugin);
		status = load_file(path, plugin);
	}
	if (!status) {
		info = dlsym(plugin->handle, "weir_plugin");
		status = check_info(path, info);
	}
	if (status)
		return status;
	status = info->add(registry);
	if (!status)
		return WEIR_OK;
	wr_registry_rollback(registry, mark);
	return wr_fail(status, "plugin '%s': %s", wr_shown(path).text, weir_last_error());
}

weir_status weir_registry_load(weir_registry *registry, const char *given)
{
	struct wr_plugin *plugin = wr_alloc(1, sizeof(*plugin));
	char *path = NULL;
	weir_status status;

	if (!plugin)
		return WEIR_E_NOMEM;
	plugin->fd = -1;
	status = wr_plugin_path(given, &path);
	if (!status)
		status = plugin_load(registry, path, plugin);
	wr_free(path);
	if (status)
		wr_plugin_close(plugin);
	else
		wr_registry_add_plugin(registry, plugin);
	return status;
}

/* An object may stay loaded after dlclose (C++ often does); its descriptor must then stay open, too. */
void wr_plugin_close(struct wr_plugin *plugin)
{
	bool was = plugin->handle || plugin->used;

	if (plugin->handle)
		dlclose(plugin->handle);
	if (was) {
		keep_or_close(plugin);
	} else {
		if (plugin->fd >= 0)
			close(plugin->fd);
		wr_free(plugin);
	}
	review_kept();
}

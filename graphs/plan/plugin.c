/*
 * Plugins: shared objects that bring kinds. dlopen runs a file's constructors, so everything that can be
 * checked is checked before, on an open descriptor, and that descriptor is what is loaded: /proc/self/fd/N is
 * not looked for in the linker's paths, and nobody can put another file in its place meanwhile (F91, F95).
 *
 * The linker tells objects apart by the name they were opened by. Were a descriptor closed while its object
 * stays loaded, the next plugin could get the same number, hence the same name, hence the old object. So the
 * descriptor lives as long.
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
#include "graphs/plan/registry.h"
#include "graphs/plan/text.h"

struct name {
	char path[32];
};

static struct name name_of(int fd)
{
	struct name name;

	snprintf(name.path, sizeof(name.path), "/proc/self/fd/%d", fd);
	return name;
}

/* O_NONBLOCK: a FIFO must not hold us; it is refused afterwards. */
static weir_status open_file(const char *path, int *fd)
{
	if (!*path)
		return wr_fail(WEIR_E_INVALID, "plugin '': name a file");
	*fd = open(path,
		   O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* without '/': of the working directory */
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
		why = "is no regular file";
	else if (status.st_uid != 0 && status.st_uid != geteuid())
		why = "belongs to another user: it must be root's or yours";
	else if (status.st_mode & S_IWOTH)
		why = "may be written by everybody: chmod o-w it";
	return why ? wr_fail(WEIR_E_INVALID, "plugin '%s' %s", wr_shown(path).text, why) : WEIR_OK;
}

/*
 * Where there is no /proc (a chroot): by its whole path, which is what the linker then tells objects apart by. Whoever
 * may write the folder could put another file there meanwhile; that is told afterwards, when it is the other one.
 */
static void *load_by_path(const char *path, int fd)
{
	char *whole = realpath(path, NULL);
	void *handle = whole ? dlopen(whole, RTLD_NOW | RTLD_LOCAL) : NULL;
	struct stat was, is;

	if (handle && (fstat(fd, &was) || stat(whole, &is) || was.st_ino != is.st_ino || was.st_dev != is.st_dev)) {
		dlclose(handle);
		handle = NULL;
	}
	wr_free(whole);
	return handle;
}

static weir_status cannot_load(const char *path)
{
	const char *why = dlerror();

	return wr_fail(WEIR_E_INVALID, "plugin '%s' cannot be loaded: %s", wr_shown(path).text,
		       why ? why : "another file came in its place meanwhile");
}

static weir_status load_file(const char *path, struct wr_plugin *plugin)
{
	plugin->handle = dlopen(name_of(plugin->fd).path, RTLD_NOW | RTLD_LOCAL);
	if (!plugin->handle && access("/proc/self/fd", F_OK))
		plugin->handle = load_by_path(path, plugin->fd);
	if (!plugin->handle)
		return cannot_load(path);
	return WEIR_OK;
}

/* Looked at before the first call (F92). The first two fields are there in every version. */
static weir_status check_info(const char *path, const weir_plugin_info *info)
{
	struct wr_shown file = wr_shown(path);

	if (!info)
		return wr_fail(WEIR_E_INVALID,
			       "plugin '%s' has no symbol weir_plugin: write WEIR_PLUGIN(function) into it",
			       file.text);
	if (info->abi != WEIR_ABI || info->size != sizeof(*info))
		return wr_fail(WEIR_E_INVALID,
			       "plugin '%s' was built for ABI %u of weir, this is %u: build it anew",
			       file.text, info->abi, WEIR_ABI);
	if (info->operator_size != sizeof(weir_operator) || info->condition_size != sizeof(weir_condition) ||
	    info->port_size != sizeof(weir_port) || info->parameter_size != sizeof(weir_parameter))
		return wr_fail(WEIR_E_INVALID,
			       "plugin '%s' was built with tables of other sizes: build it anew", file.text);
	if (!info->add)
		return wr_fail(WEIR_E_INVALID, "plugin '%s' adds nothing: its function is NULL", file.text);
	return WEIR_OK;
}

static weir_status add_kinds(weir_registry *registry, const char *path, const weir_plugin_info *info)
{
	size_t mark = wr_registry_mark(registry);
	weir_status status = info->add(registry);

	if (!status)
		return WEIR_OK;
	wr_registry_return(registry, mark);
	return wr_fail(status, "plugin '%s': %s", wr_shown(path).text, weir_last_error());
}

static weir_status load(weir_registry *registry, const char *path, struct wr_plugin *plugin)
{
	const weir_plugin_info *info = NULL;
	weir_status status = open_file(path, &plugin->fd);

	if (!status)
		status = check_file(path, plugin->fd);
	if (!status)
		status = load_file(path, plugin);
	if (!status) {
		info = dlsym(plugin->handle, "weir_plugin");
		status = check_info(path, info);
	}
	return status ? status : add_kinds(registry, path, info);
}

weir_status weir_registry_load(weir_registry *registry, const char *path)
{
	struct wr_plugin *plugin = wr_alloc(1, sizeof(*plugin));
	weir_status status;

	if (!plugin)
		return WEIR_E_NOMEM;
	plugin->fd = -1;
	status = load(registry, path, plugin);
	if (status)
		wr_plugin_close(plugin);
	else
		wr_registry_keep(registry, plugin);
	return status;
}

/* An object may refuse to be unloaded (C++ often does): then its name stays taken, and so must the
 * descriptor. */
static bool is_still_loaded(int fd)
{
	void *handle = dlopen(name_of(fd).path, RTLD_NOW | RTLD_NOLOAD);

	if (handle)
		dlclose(handle);
	return handle;
}

void wr_plugin_close(struct wr_plugin *plugin)
{
	bool stays = false;

	if (plugin->handle) {
		dlclose(plugin->handle);
		stays = is_still_loaded(plugin->fd);
	}
	if (plugin->fd >= 0 && !stays)
		close(plugin->fd);
	wr_free(plugin);
}

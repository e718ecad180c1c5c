/*
 * Plugins by name: `onnx` is the file libweir_onnx.so in the folder `weir` beside the library that is loaded,
 * in an installation, in the Python package and in a build. Neither the linker's paths nor the environment
 * nor the working folder have a say in it (F91).
 */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "graphs/registry.h"

enum { SHOWN_FOLDER = 512 };

/*
 * The file that this code was loaded from; NULL: unknown. The linker has no name for the program itself,
 * whose code this is if it was linked statically; dladdr gives argv[0] for it, which may be anything. A
 * relative name is one in the folder that was the working folder then.
 */
static char *own_file(void)
{
	static const char here;
	struct link_map *object = NULL;
	Dl_info info;

	if (!dladdr1(&here, &info, (void **)&object, RTLD_DL_LINKMAP))
		return NULL;
	if (!*object->l_name)
		return realpath("/proc/self/exe", NULL);
	return *object->l_name == '/' ? realpath(object->l_name, NULL) : NULL;
}

static weir_status not_found(const char *name, const char *folder)
{
	char shown[SHOWN_FOLDER];

	wr_shown_cut(shown, sizeof shown, folder);
	return wr_fail(
		WEIR_E_IO,
		"plugin '%s' is not found: '%s/weir' has no file libweir_%s.so: install the plugin, or "
		"name its file by a path, such as ./%s",
		wr_shown(name).text, shown, wr_shown(name).text, wr_shown(name).text);
}

weir_status wr_plugin_path(const char *given, char **out)
{
	weir_status status;
	char *own, *path;

	if (!*given || strpbrk(given, "/.")) {
		path = wr_strdup(given);
		*out = path ? path : *out;
		return path ? WEIR_OK : WEIR_E_NOMEM;
	}
	own = own_file();
	if (!own)
		return wr_fail(
			WEIR_E_IO,
			"plugin '%s' is not found: the file of weir, beside which it would be, is unknown "
			"here (no /proc, or a relative path): name the plugin's file by its path",
			wr_shown(given).text);
	*strrchr(own, '/') = 0;
	path = wr_format("%s/weir/libweir_%s.so", own, given);
	status = !path ? WEIR_E_NOMEM : access(path, F_OK) ? not_found(given, own) : WEIR_OK;
	wr_free(own);
	if (status)
		wr_free(path);
	else
		*out = path;
	return status;
}

#include "plugins/onnx/runtime.h"

#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REMEDY                                                                                               \
	"install PyPI's onnxruntime or libonnxruntime (Debian 13), and set WEIR_ONNXRUNTIME to the file "    \
	"libonnxruntime.so.VERSION if it is not found"

enum { MINOR_MOST = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const OrtApi *found; /* guarded by the lock */

static void *load(const char *path)
{
	/* Its threads may outlive its last object, so it is never unloaded. */
	return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

/* The first match that loads. Libraries of providers have other names and do not match. */
static void *load_glob(const char *pattern, const char *folder)
{
	char path[4096];
	glob_t files = {0};
	void *handle = NULL;

	snprintf(path, sizeof path, pattern, folder);
	if (!glob(path, 0, NULL, &files))
		for (size_t i = 0; i < files.gl_pathc && !handle; i++)
			handle = load(files.gl_pathv[i]);
	globfree(&files);
	return handle;
}

/* PyPI's library is named by its major version, Debian's by the minor one, too; the newest first. */
static void *load_by_name(void)
{
	void *handle = load("libonnxruntime.so.1");
	char name[64];

	for (int minor = MINOR_MOST; minor >= RUNTIME_API && !handle; minor--) {
		snprintf(name, sizeof name, "libonnxruntime.so.1.%d", minor);
		handle = load(name);
	}
	return handle ? handle : load("libonnxruntime.so");
}

static void *load_given(const char *path, char why[RUNTIME_WHY])
{
	struct stat status;
	void *handle = !stat(path, &status) && S_ISDIR(status.st_mode)
			       ? load_glob("%s/libonnxruntime.so*", path)
			       : load(path);

	if (!handle) {
		const char *error = dlerror();
		snprintf(why, RUNTIME_WHY, "WEIR_ONNXRUNTIME: %s",
			 error ? error : "the folder has no libonnxruntime.so*");
	}
	return handle;
}

/*
 * In the Python package weir, whose folder this plugin is two below: the runtime that pip put beside the
 * package. Elsewhere nothing is taken from so far above. The linker knows the plugin by the path of a
 * descriptor (graphs/plugin.c), which realpath follows.
 */
static void *load_beside(void)
{
	static const char here;
	char *own, *end = NULL, module[4096];
	void *handle = NULL;
	Dl_info info;

	own = dladdr(&here, &info) ? realpath(info.dli_fname, NULL) : NULL;
	for (int up = 0; up < 3 && own && (end = strrchr(own, '/')); up++) /* the file, weir, lib */
		*end = 0;
	if (end) {
		snprintf(module, sizeof module, "%s/__init__.py", own);
		if (!access(module, F_OK))
			handle = load_glob("%s/../onnxruntime/capi/libonnxruntime.so*", own);
	}
	free(own);
	return handle;
}

static void *load_any(char why[RUNTIME_WHY])
{
	const char *given = getenv("WEIR_ONNXRUNTIME"), *python = getenv("VIRTUAL_ENV");
	void *handle;

	if (given && *given)
		return load_given(given, why);
	handle = load_beside();
	if (!handle)
		handle = load_by_name();
	if (!handle && python && *python)
		handle = load_glob("%s/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so*",
				   python);
	if (!handle)
		snprintf(why, RUNTIME_WHY, "ONNX Runtime is not found: " REMEDY);
	return handle;
}

static const OrtApi *open_locked(char why[RUNTIME_WHY])
{
	void *handle = load_any(why);
	const OrtApiBase *(*base)(void) = NULL;
	const OrtApi *ort = NULL;

	if (!handle)
		return NULL;
	*(void **)&base = dlsym(handle, "OrtGetApiBase");
	/* Of a version that it lacks it prints a line of its own, too. */
	ort = base ? base()->GetApi(RUNTIME_API) : NULL;
	if (!base)
		snprintf(why, RUNTIME_WHY, "the library that WEIR_ONNXRUNTIME names is no ONNX Runtime");
	else if (!ort)
		snprintf(why, RUNTIME_WHY,
			 "ONNX Runtime %s is too old: this needs 1.%d (API %d) or newer: " REMEDY,
			 base()->GetVersionString(), RUNTIME_API, RUNTIME_API);
	return ort;
}

const OrtApi *runtime_open(char why[RUNTIME_WHY])
{
	const OrtApi *ort;

	pthread_mutex_lock(&lock);
	if (!found)
		found = open_locked(why);
	ort = found;
	pthread_mutex_unlock(&lock);
	return ort;
}

bool runtime_good(const OrtApi *ort, OrtStatus *status, const char *what, char why[RUNTIME_WHY])
{
	if (!status)
		return true;
	snprintf(why, RUNTIME_WHY, "%s: %s", what, ort->GetErrorMessage(status));
	for (char *at = why; *at; at++) /* a line */
		if (*at == '\n')
			*at = ' ';
	ort->ReleaseStatus(status);
	return false;
}

/* Chooses and opens the backend of a system: by name, or the first that this machine supports. */
#include "streams/backend.h"

#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "streams/system.h"

static weir_status fail_unknown_backend(const char *name)
{
	return wr_fail(WEIR_E_INVALID, "backend '%s' is unknown: use auto, cuda, host or sim", name);
}

static weir_status open_backend(struct wr_system *system, const struct wr_backend *backend,
				const struct wr_system_options *options)
{
	system->backend = backend;
	return backend->open(&system->native, options, system->where, sizeof system->where);
}

static weir_status open_cuda(struct wr_system *system, const struct wr_system_options *options)
{
#ifdef WEIR_WITH_CUDA
	return open_backend(system, &wr_backend_cuda, options);
#else
	(void)system;
	(void)options;
	return wr_fail(WEIR_E_UNSUPPORTED, "backend 'cuda': this weir was built without CUDA");
#endif
}

/* With cuda asked for by name there is no fallback, so "no device here" is a device error as well. */
static weir_status open_named_cuda(struct wr_system *system, const struct wr_system_options *options)
{
	weir_status status = open_cuda(system, options);

#ifdef WEIR_WITH_CUDA
	status = status == WEIR_E_UNSUPPORTED ? WEIR_E_DEVICE : status;
#endif
	return status;
}

static weir_status open_auto(struct wr_system *system, const struct wr_system_options *options)
{
	return wr_system_open_or_host(system, open_cuda(system, options), options);
}

weir_status wr_system_open_or_host(struct wr_system *system, weir_status status,
				   const struct wr_system_options *options)
{
	static _Atomic bool said;

	if (status != WEIR_E_UNSUPPORTED)
		return status;
	if (!wr_exchange(&said, true))
		wr_log(WEIR_LOG_INFO, "running on the host: %s", weir_last_error());
	return open_backend(system, &wr_backend_host, options);
}

weir_status wr_system_open_backend(struct wr_system *system, const struct wr_system_options *options)
{
	const char *name = options->backend ? options->backend : "auto";

	if (!strcmp(name, "auto"))
		return open_auto(system, options);
	if (!strcmp(name, "cuda"))
		return open_named_cuda(system, options);
	if (!strcmp(name, "host"))
		return open_backend(system, &wr_backend_host, options);
	if (!strcmp(name, "sim"))
		return open_backend(system, &wr_backend_sim, options);
	return fail_unknown_backend(name);
}

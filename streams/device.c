/*
 * The device of a system. All calls through the backend's table are made here, and each looks at the result:
 * the first WEIR_E_DEVICE fails the system, even if the caller ignores the status.
 *
 * Two flags tell that a system failed (E2), each set once. One thread wins `failing`; it alone calls
 * system->on_failure (failure.c), which writes the report, sets `failed` and ends all signals. `failed` is
 * seq_cst: a thread that arms a token and then reads it either sees it, or its token is seen by the thread
 * that ends all tokens. A thread that has read `failed` with at least acquire may read the report, which does
 * not change any more.
 */
#include "streams/device.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "sim/simulation.h"
#include "base/status.h"
#include "streams/system.h"

/* --- opening a backend --- */

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
	if (status == WEIR_E_UNSUPPORTED)
		status = wr_fail(WEIR_E_DEVICE, "%s; backend 'host' or 'auto' runs on the CPU",
				 weir_last_error());
#endif
	return status;
}

static weir_status open_auto(struct wr_system *system, const struct wr_system_options *options)
{
	return wr_device_open_or_host(system, open_cuda(system, options), options);
}

weir_status wr_device_open_or_host(struct wr_system *system, weir_status status,
				   const struct wr_system_options *options)
{
	static _Atomic bool said;

	if (status != WEIR_E_UNSUPPORTED)
		return status;
	if (!wr_exchange(&said, true))
		wr_log(WEIR_LOG_INFO, "running on the host: %s", weir_last_error());
	return open_backend(system, &wr_backend_host, options);
}

weir_status wr_device_open(struct wr_system *system, const struct wr_system_options *options)
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

void wr_device_close(struct wr_system *system)
{
	system->backend->close(system->native);
}

/* --- failing --- */

/*
 * A thread that comes second waits until the first has written the report: if it returned before `failed` is
 * set, its caller would go on with work that is not complete, or report the failure as its own.
 */
void wr_system_fail(struct wr_system *system, const char *what)
{
	if (wr_exchange(&system->failing, true))
		wr_system_wait_failed(system);
	else
		system->on_failure(system, what);
}

weir_status wr_system_failure_status(struct wr_system *system)
{
	return wr_fail(WEIR_E_DEVICE, "%s", system->failure);
}

/* Acquire: after true the caller may read the report. */
bool wr_system_failed(const struct wr_system *system)
{
	return wr_load_acquire(&((struct wr_system *)system)->failed);
}

bool wr_system_wait_failed(struct wr_system *system)
{
	if (!wr_load(&system->failing))
		return false;
	while (!wr_load(&system->failed))
		wr_thread_yield();
	return true;
}

/* Whatever calls a function of the table passes its status through here. */
static weir_status device_result(struct wr_system *system, weir_status status)
{
	if (status == WEIR_E_DEVICE)
		wr_system_fail(system, weir_last_error());
	return status;
}

/* --- the device --- */

int wr_device_count(struct wr_system *system)
{
	return system->backend->devices(system->native);
}

weir_status wr_device_check(struct wr_system *system, int device)
{
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (device < 0 || device >= system->devices)
		return wr_fail(WEIR_E_INVALID, "device %d: this machine has %d", device, system->devices);
	return WEIR_OK;
}

void wr_device_select(struct wr_system *system, int device)
{
	if (system->backend->select)
		system->backend->select(system->native, device);
}

bool wr_device_lost(struct wr_system *system)
{
	return wr_system_failed(system) && system->backend->stopped(system->native);
}

weir_status wr_device_alloc(struct wr_system *system, int device, size_t bytes, void **out)
{
	return device_result(system, system->backend->alloc(system->native, device, bytes, out));
}

bool wr_system_is_closed(const struct wr_system *system, const void *address)
{
	return system->backend->is_closed && system->backend->is_closed(system->native, address);
}

void wr_device_release(struct wr_system *system, int device, void *memory)
{
	system->backend->release(system->native, device, memory);
}

weir_status wr_device_partitions_create(struct wr_system *system, const struct wr_partitions_spec *spec,
					void **out, uint32_t *sms)
{
	return device_result(system, system->backend->partitions_create(system->native, spec, out, sms));
}

void wr_device_partition_destroy(struct wr_system *system, void *partition)
{
	system->backend->partition_destroy(system->native, partition);
}

/* --- streams and events --- */

weir_status wr_device_stream_create(struct wr_system *system, const struct wr_stream_spec *spec,
				    void *partition, void **out)
{
	return device_result(system, system->backend->stream_create(system->native, spec->device, spec->flags,
								    spec->priority, partition, out));
}

weir_status wr_device_stream_default(struct wr_system *system, int device, void **out)
{
	return device_result(system, system->backend->stream_default(system->native, device, out));
}

void wr_device_stream_destroy(struct wr_system *system, void *stream)
{
	system->backend->stream_destroy(system->native, stream);
}

bool wr_device_capturing(struct wr_system *system, int device, void *stream)
{
	return system->backend->capturing && system->backend->capturing(system->native, device, stream);
}

weir_status wr_device_event_create(struct wr_system *system, int device, void **out)
{
	return device_result(system, system->backend->event_create(system->native, device, out));
}

void wr_device_event_destroy(struct wr_system *system, void *event)
{
	system->backend->event_destroy(system->native, event);
}

weir_status wr_device_record(struct wr_system *system, int device, void *stream, void *event)
{
	return device_result(system, system->backend->record(system->native, device, stream, event));
}

weir_status wr_device_query(struct wr_system *system, void *event)
{
	return device_result(system, system->backend->query(system->native, event));
}

weir_status wr_device_wait(struct wr_system *system, int device, void *stream, void *event)
{
	return device_result(system, system->backend->wait(system->native, device, stream, event));
}

/* --- work --- */

weir_status wr_device_launch(struct wr_system *system, int device, void *stream, const weir_kernel *kernel,
			     const void *arguments, size_t bytes)
{
	return device_result(
		system, system->backend->launch(system->native, device, stream, kernel, arguments, bytes));
}

weir_status wr_device_copy(struct wr_system *system, int device, void *stream, void *to, const void *from,
			   size_t bytes)
{
	return device_result(system, system->backend->copy(system->native, device, stream, to, from, bytes));
}

weir_status wr_device_copy_rows(struct wr_system *system, int device, void *stream, const weir_copy *copy)
{
	return device_result(system, system->backend->copy_rows(system->native, device, stream, copy));
}

weir_status wr_device_pageable(struct wr_system *system, const void *memory, bool *out)
{
	*out = false;
	return system->backend->pageable
		       ? device_result(system, system->backend->pageable(system->native, memory, out))
		       : WEIR_OK;
}

weir_status wr_device_call(struct wr_system *system, int device, void *stream, void (*fn)(void *arg),
			   void *arg)
{
	return device_result(system, system->backend->call(system->native, device, stream, fn, arg));
}

weir_status wr_device_can_write_flag(struct wr_system *system, int device)
{
	const struct wr_backend *backend = system->backend;

	if (!backend->write_flag)
		return wr_fail(WEIR_E_UNSUPPORTED,
			       "signal 'flag': the %s backend cannot write flags: use 'callback'",
			       backend->name);
	return backend->can_write_flag
		       ? device_result(system, backend->can_write_flag(system->native, device))
		       : WEIR_OK;
}

weir_status wr_device_write_flag(struct wr_system *system, int device, void *stream, _Atomic uint32_t *word,
				 uint32_t value)
{
	return device_result(system,
			     system->backend->write_flag(system->native, device, stream, word, value));
}

/* --- captures and graphs --- */

bool wr_device_captures(const struct wr_system *system)
{
	return system->backend->capture_begin != NULL;
}

weir_status wr_device_capture_begin(struct wr_system *system, int device, void *stream, void **capture)
{
	return device_result(system, system->backend->capture_begin(system->native, device, stream, capture));
}

weir_status wr_device_capture_order(struct wr_system *system, void *capture, void *before, void *after)
{
	return device_result(system, system->backend->capture_order(system->native, capture, before, after));
}

weir_status wr_device_capture_end(struct wr_system *system, void *capture, void **graph)
{
	return device_result(system, system->backend->capture_end(system->native, capture, graph));
}

size_t wr_device_graph_items(const struct wr_system *system, const void *graph)
{
	return system->backend->graph_items(graph);
}

weir_status wr_device_graph_launch(struct wr_system *system, int device, void *stream, void *graph)
{
	return device_result(system, system->backend->graph_launch(system->native, device, stream, graph));
}

void wr_device_graph_destroy(struct wr_system *system, void *graph)
{
	system->backend->graph_destroy(system->native, graph);
}

bool wr_device_graph_differs(struct wr_system *system, const void *graph, const void *other, char *what,
			     size_t room)
{
	return system->backend->graph_differs(system->native, graph, other, what, room);
}

/* --- timers --- */

bool wr_device_has_timers(const struct wr_system *system)
{
	return system->backend->timer_create != NULL;
}

weir_status wr_device_timer_create(struct wr_system *system, int device, void **out)
{
	return device_result(system, system->backend->timer_create(system->native, device, out));
}

void wr_device_timer_destroy(struct wr_system *system, void *timer)
{
	system->backend->timer_destroy(system->native, timer);
}

weir_status wr_device_timer_record(struct wr_system *system, int device, void *stream, void *timer)
{
	return device_result(system, system->backend->timer_record(system->native, device, stream, timer));
}

weir_status wr_device_timer_read(struct wr_system *system, int device, void *begin, void *end, int64_t *begun,
				 int64_t *ended)
{
	return device_result(system,
			     system->backend->timer_read(system->native, device, begin, end, begun, ended));
}

/* --- waiting --- */

#define SHORTEST_SLEEP 1000 /* ns */
#define LONGEST_SLEEP  200000

struct sleep {
	bool (*done)(void *arg);
	void *arg;
	int64_t until;
};

static void sleep_until_done(void *arg)
{
	struct sleep *sleep = arg;
	int64_t pause = SHORTEST_SLEEP;

	while (!sleep->done(sleep->arg)) {
		int64_t left = sleep->until == WR_FOREVER ? WR_FOREVER : sleep->until - wr_now();

		if (left <= 0)
			return;
		wr_thread_sleep(pause < left ? pause : left);
		pause = pause * 2 < LONGEST_SLEEP ? pause * 2 : LONGEST_SLEEP;
	}
}

bool wr_device_outside(const struct wr_system *system)
{
	return system->backend->enter && !wr_sim_current();
}

void wr_device_enter(struct wr_system *system, void (*fn)(void *arg), void *arg)
{
	if (system->backend->enter)
		system->backend->enter(system->native, fn, arg);
	else
		fn(arg);
}

struct entering {
	weir_status (*fn)(void *arg);
	void *arg;
	weir_status status;
};

static void call_in_world(void *arg)
{
	struct entering *entering = arg;

	entering->status = entering->fn(entering->arg);
}

weir_status wr_device_enter_call(struct wr_system *system, weir_status (*fn)(void *arg), void *arg)
{
	/* A broken world does not run the call, and has set the error text. */
	struct entering entering = {fn, arg, WEIR_E_DEADLOCK};

	wr_device_enter(system, call_in_world, &entering);
	return entering.status;
}

void wr_system_sleep_until(struct wr_system *system, bool (*done)(void *arg), void *arg, int64_t until)
{
	struct sleep sleep = {done, arg, until};

	wr_device_enter(system, sleep_until_done, &sleep);
}

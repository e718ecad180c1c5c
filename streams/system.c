/*
 * A system: one backend, its streams, memory, deferred frees and signals. In order: its device, what a lost
 * device does, how the system is made, destroyed and attached to a run, and the watch.
 *
 * The waker is used by workers and the loop, which have left when a run detaches; by callbacks, which are
 * counted in their slots; and by other threads that see work complete, counted in `waker_users`.
 * Detach drops the remaining live references, clears the waker, shuts down the tokens, and waits until both
 * counts are 0: from then on no thread touches the waker.
 */
#include "streams/system.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stack.h"
#include "base/status.h"
#include "base/units.h"
#include "sim/simulation.h"
#include "streams/memory.h"
#include "streams/signal.h"

/*
 * === the device ===
 *
 * All calls through the backend's table are made here, and each looks at the result: the first WEIR_E_DEVICE
 * fails the system, even if the caller ignores the status.
 *
 * Two flags tell that a system failed (E2), each set once. One thread wins `failing`; it alone calls
 * failure_announce, which writes the report, sets `failed` and ends all signals. `failed` is
 * seq_cst: a thread that arms a token and then reads it either sees it, or its token is seen by the thread
 * that ends all tokens. A thread that has read `failed` with at least acquire may read the report, which does
 * not change any more.
 */

/* --- opening a backend --- */

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

static weir_status device_open(struct wr_system *system, const struct wr_system_options *options)
{
	const char *name = options->backend ? options->backend : "auto";

	if (!strcmp(name, "auto"))
		return wr_device_open_or_host(system, open_cuda(system, options), options);
	if (!strcmp(name, "cuda"))
		return open_named_cuda(system, options);
	if (!strcmp(name, "host"))
		return open_backend(system, &wr_backend_host, options);
	if (!strcmp(name, "sim"))
		return open_backend(system, &wr_backend_sim, options);
	return wr_fail(WEIR_E_INVALID, "backend '%s' is unknown: use auto, cuda, host or sim", name);
}

/* --- failing --- */

static void failure_announce(struct wr_system *system, const char *what);

/*
 * A thread that comes second waits until the first has written the report: if it returned before `failed` is
 * set, its caller would go on with work that is not complete, or report the failure as its own.
 */
void wr_system_fail(struct wr_system *system, const char *what)
{
	if (wr_exchange(&system->failing, true))
		wr_system_wait_failed(system);
	else
		failure_announce(system, what);
}

weir_status wr_system_failure_status(struct wr_system *system)
{
	wr_fail(WEIR_E_DEVICE, "%s", system->failure);
	wr_error_cause(WEIR_CAUSE_DEVICE, NULL);
	return WEIR_E_DEVICE;
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

weir_status wr_device_check(struct wr_system *system, int device)
{
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (device < 0 || device >= system->devices)
		return wr_fail(WEIR_E_INVALID, "device %d: this machine has %d", device, system->devices);
	return WEIR_OK;
}

void wr_system_select(struct wr_system *system, int device)
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

bool wr_system_allocation(const struct wr_system *system, const void *memory, weir_allocation *out)
{
	return system->backend->allocation && system->backend->allocation(system->native, memory, out);
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

void wr_device_stream_keep(struct wr_system *system, const struct wr_stream_spec *spec, void *stream)
{
	if (system->backend->stream_keep && !spec->partition)
		system->backend->stream_keep(system->native, spec->device, spec->flags, spec->priority,
					     stream);
	else
		system->backend->stream_destroy(system->native, stream);
}

void *wr_device_stream_again(struct wr_system *system, const struct wr_stream_spec *spec)
{
	if (!system->backend->stream_again || spec->partition)
		return NULL;
	return system->backend->stream_again(system->native, spec->device, spec->flags, spec->priority);
}

bool wr_device_capturing(struct wr_system *system, int device, void *stream)
{
	return system->backend->capturing && system->backend->capturing(system->native, device, stream);
}

void wr_device_end_capture(struct wr_system *system, int device, void *stream)
{
	if (system->backend->end_capture)
		system->backend->end_capture(system->native, device, stream);
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

weir_status wr_device_prepare(struct wr_system *system, int device, void *stream,
			      const struct wr_firing *firing)
{
	weir_status status = WEIR_OK;

	if (system->backend->signal)
		return WEIR_OK;
	if (firing->event)
		status = wr_device_wait(system, device, stream, firing->event);
	if (!status && firing->word)
		(void)wr_device_write_flag(system, device, stream, firing->word, firing->value);
	return status;
}

weir_status wr_device_signal(struct wr_system *system, int device, void *stream,
			     const struct wr_firing *firing)
{
	if (system->backend->signal)
		return device_result(system, system->backend->signal(system->native, device, stream, firing));
	return wr_device_call(system, device, stream, firing->fn, firing->arg);
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

int64_t wr_system_now(struct wr_system *system)
{
	return wr_device_now(system);
}

void wr_system_note_now(struct wr_system *system, int64_t now)
{
	wr_store_relaxed(&system->noted_now, now);
}

/* Runs fn where it may block: on a fiber of the simulated world, else on the calling thread. */
static void device_enter(struct wr_system *system, void (*fn)(void *arg), void *arg)
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

	device_enter(system, call_in_world, &entering);
	return entering.status;
}

void wr_system_sleep_until(struct wr_system *system, bool (*done)(void *arg), void *arg, int64_t until)
{
	struct sleep sleep = {done, arg, until};

	device_enter(system, sleep_until_done, &sleep);
}

/*
 * === failure ===
 *
 * The report of a failed system (E2, E3), and what the failure does to the run: every signal is ended, so
 * that every waiting entity is poked and sees it.
 *
 * The report names the device's error and the suspects. After a fault even completed events return the error,
 * so every stream with work that was not seen complete before is a suspect; one is accused only if it is the
 * only one.
 */

/* --- the report --- */

enum { SUSPECTS = 8 }; /* named in the report */

struct suspect {
	const char *name;
	int64_t at;
};

struct suspect_list {
	struct suspect oldest[SUSPECTS];
	size_t count;
};

/*
 * When the oldest work that was not seen complete was recorded; INT64_MAX if there is only unrecorded work;
 * -1 if there is none.
 */
static int64_t busy_since(weir_stream *stream)
{
	uint64_t seen = wr_load(&stream->completed);

	if (wr_load(&stream->submitted) > seen)
		return wr_load_relaxed(&wr_stream_event(stream, seen + 1)->recorded_at);
	return wr_load(&stream->dirty) ? INT64_MAX : -1;
}

static void suspect_insert(struct suspect_list *suspects, struct suspect suspect)
{
	size_t i = suspects->count < SUSPECTS ? suspects->count : SUSPECTS;

	suspects->count++;
	for (; i > 0 && suspects->oldest[i - 1].at > suspect.at; i--)
		if (i < SUSPECTS)
			suspects->oldest[i] = suspects->oldest[i - 1];
	if (i < SUSPECTS)
		suspects->oldest[i] = suspect;
}

static size_t report_append_suspect(char *text, size_t room, const struct suspect *suspect, int64_t now,
				    bool first)
{
	int64_t age = suspect->at == INT64_MAX ? 0 : now - suspect->at;
	int n = snprintf(text, room, "%s%s (%s)", first ? "; suspects, oldest first: " : ", ", suspect->name,
			 wr_time_shown(age).text);

	return n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
}

static void report_append_suspects(struct wr_system *system, const struct suspect_list *suspects, size_t at)
{
	int64_t now = wr_now();
	char *text = system->failure;
	size_t room = sizeof system->failure;

	if (suspects->count == 1) {
		snprintf(system->accused, sizeof system->accused, "%s", suspects->oldest[0].name);
		snprintf(text + at, room - at, "; the work of '%s' was not complete", system->accused);
		return;
	}
	for (size_t i = 0; i < suspects->count && i < SUSPECTS; i++)
		at += report_append_suspect(text + at, room - at, &suspects->oldest[i], now, i == 0);
	if (suspects->count > SUSPECTS)
		snprintf(text + at, room - at, " and %zu more", suspects->count - SUSPECTS);
}

static void report_write(struct wr_system *system, const char *what)
{
	struct suspect_list suspects = {.count = 0};

	snprintf(system->failure, sizeof system->failure, "%s", what);
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);
		struct suspect suspect = {wr_load(&stream->owner), busy_since(stream)};

		if (suspect.at >= 0)
			suspect_insert(&suspects, suspect);
	}
	report_append_suspects(system, &suspects, strlen(system->failure));
}

/* --- failing --- */

/* As its callback, which may still come; it finds the token gone then. */
static void signal_fail(struct wr_signal *signal, void *arg)
{
	wr_token token = wr_load(&signal->token);
	enum wr_token_end end = token ? wr_token_end(token) : WR_TOKEN_GONE;

	(void)arg;
	if (end != WR_TOKEN_GONE)
		signal->sink.fired(&signal->sink, token, end == WR_TOKEN_WAS_CANCELLED);
}

/*
 * Writes the report, sets `failed`, ends all tokens and pokes all refused entities.
 * Called once, by the thread that sets `failing`.
 */
static void failure_announce(struct wr_system *system, const char *what)
{
	struct wr_waker *waker;

	report_write(system, what);
	wr_store(&system->failed, true);
	waker = wr_waker_enter(system);
	wr_signals_each(system, signal_fail, NULL);
	for (int device = 0; device < system->devices && waker; device++)
		wr_refused_poke(system, waker, device, UINT32_MAX);
	if (waker)
		waker->kick(waker);
	wr_waker_leave(system);
}

/* --- queries --- */

const char *wr_system_failure(struct wr_system *system)
{
	return wr_system_failed(system) ? system->failure : "";
}

const char *wr_system_accused(struct wr_system *system)
{
	return wr_system_failed(system) && *system->accused ? system->accused : NULL;
}

/*
 * After a fault a query of any event returns the device's error, even if the event
 * is complete. One event of each stream is queried, since they may differ in device.
 */
bool wr_system_check_device(struct wr_system *system)
{
	for (uint32_t i = 0; i < wr_load(&system->count) && !wr_system_failed(system); i++) {
		const struct wr_event_ring *ring = wr_load_acquire(&wr_stream_at(system, i)->ring);

		wr_device_query(system, ring->events[0].native);
	}
	return !wr_system_failed(system);
}

/* === the system === */

#define DRAIN_TIMEOUT 2000000000 /* for work of a run that was cut short */
#define SHORT_TIMEOUT 200000000  /* if a drain has already waited for it */
#define SERIALS       (1 << 16)

static _Atomic uint64_t serials;
static _Atomic(struct wr_system *) abandoned; /* systems leaked on purpose, reachable for leak checkers */

/* --- creation --- */

static weir_status system_init(struct wr_system *system)
{
	weir_status status = wr_mutex_init(&system->lock);

	system->devices = system->backend->devices(system->native);
	system->serial = (wr_fetch_add(&serials, 1) + 1) % SERIALS;
	wr_store(&system->watch_sleeps, true);
	if (!wr_device_outside(system))
		wr_system_note_now(system, wr_now());
	if (!status)
		status = wr_table_init(system);
	if (!status)
		status = wr_deferred_frees_init(system);
	if (!status)
		status = wr_memory_init(system);
	if (!status)
		status = wr_signals_init(system);
	if (!status)
		status = wr_flag_words_init(system);
	wr_poller_init(&system->poller, system->backend->spins);
	return status;
}

static void system_free(void *arg)
{
	struct wr_system *system = arg;

	wr_signal_streams_finish(system);
	wr_signals_finish(system);
	wr_executables_finish(system);
	wr_table_finish(system);
	wr_spans_finish(system);
	wr_stream_pools_finish(system);
	wr_partitions_finish(system);
	wr_flag_words_finish(system);
	wr_poller_finish(&system->poller);
	wr_promises_finish(system);
	wr_memory_finish(system);
	system->backend->close(system->native);
	wr_deferred_frees_finish(system);
	wr_mutex_finish(&system->lock);
	wr_free(system);
}

weir_status wr_system_create(struct wr_system **out, const struct wr_system_options *options)
{
	static const struct wr_system_options defaults = {0};
	struct wr_system *system = wr_alloc(1, sizeof *system);
	weir_status status;

	if (!system)
		return WEIR_E_NOMEM;
	status = device_open(system, options ? options : &defaults);
	if (status) {
		wr_free(system);
		return status;
	}
	status = system_init(system);
	if (status)
		device_enter(system, system_free, system);
	else
		*out = system;
	return status;
}

/* --- destruction --- */

struct ending {
	struct wr_system *system;
	bool drained;
};

static bool is_drained(void *arg)
{
	struct ending *ending = arg;
	struct wr_system *system = ending->system;
	bool done = true;

	wr_system_run_deferred_frees(system, true);
	if (wr_load(&system->deferred_frees.count) || wr_system_deferred_frees_ready(system))
		return false;
	for (uint32_t i = 0; i < wr_load(&system->count) && done; i++)
		done = wr_stream_may_free(wr_stream_at(system, i));
	/* The thread that completed the last promise may still be in that call. */
	ending->drained = done && wr_signals_drained(system) && !wr_system_open_promises(system) &&
			  !wr_load(&system->waker_users);
	return ending->drained;
}

static void drain_and_free(void *arg)
{
	struct ending *ending = arg;
	struct wr_system *system = ending->system;

	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);

		if (!wr_load(&stream->closed))
			wr_stream_close(stream);
	}
	wr_system_wait(system, is_drained, ending);
	if (ending->drained)
		system_free(system);
}

void wr_system_wait(struct wr_system *system, bool (*done)(void *arg), void *arg)
{
	int64_t timeout = wr_load(&system->short_timeout) ? SHORT_TIMEOUT : DRAIN_TIMEOUT;

	wr_system_sleep_until(system, done, arg, wr_time_add(wr_now(), timeout));
}

void wr_system_shorten_timeout(struct wr_system *system)
{
	wr_store(&system->short_timeout, true);
}

weir_status wr_system_destroy(struct wr_system *system)
{
	struct ending ending = {system, false};

	if (!system)
		return WEIR_OK;
	assert(!wr_load(&system->waker));
	device_enter(system, drain_and_free, &ending);
	if (ending.drained)
		return WEIR_OK;
	wr_stack_push(&abandoned, system, abandoned);
	return wr_fail(WEIR_E_ABANDONED, "%s: work is still running; what it may touch was left alone",
		       system->where);
}

/* --- properties --- */

const char *wr_system_where(const struct wr_system *system)
{
	return system->where;
}

weir_backend wr_system_backend(const struct wr_system *system)
{
	return system->backend->kind;
}

const char *wr_system_backend_name(const struct wr_system *system)
{
	return system->backend->name;
}

int wr_system_devices(const struct wr_system *system)
{
	return system->devices;
}

/* --- a run --- */

void wr_system_attach(struct wr_system *system, struct wr_waker *waker)
{
	assert(!wr_load(&system->waker));
	wr_store(&system->waker, waker);
}

void wr_system_set_running(struct wr_system *system, bool on)
{
	wr_store(&system->running, on);
	wr_store_relaxed(&system->draining, false);
	if (!on)
		return;
	wr_store(&system->short_timeout, false); /* it belonged to the last run */
	wr_note(&system->signals.late, 0);
	wr_promises_begin_run(system);
}

bool wr_system_running(struct wr_system *system)
{
	return wr_load(&system->running);
}

void wr_system_drop_all_refs(struct wr_system *system)
{
	struct wr_waker *waker = wr_waker_enter(system);

	if (waker) {
		for (uint32_t i = 0; i < wr_load(&system->count); i++)
			wr_stream_drop_ref(wr_stream_at(system, i), waker);
		wr_promises_drop_refs(system, waker);
		wr_deferred_frees_drop_refs(system, waker);
		wr_refused_drop_all_refs(system, waker);
	}
	wr_waker_leave(system);
}

void wr_system_kick(struct wr_system *system)
{
	struct wr_waker *waker = wr_waker_enter(system);

	if (waker)
		waker->kick(waker);
	wr_waker_leave(system);
}

/* --- the end of a run: signals end without their callbacks --- */

static void signal_shut_down(struct wr_signal *signal, void *arg)
{
	struct wr_system *system = arg;
	wr_token token = wr_load(&signal->token);

	if (token && signal->by_flag && wr_token_end(token) != WR_TOKEN_GONE)
		wr_store(&signal->ended, token);
	if (!token || signal->by_flag || !wr_token_detach(token))
		return;
	wr_fetch_sub(&system->signals.pending, 1);
	if (signal->signal_stream && !wr_device_lost(system))
		wr_signal_stream_record(system, signal->signal_stream);
}

static void signal_is_inside(struct wr_signal *signal, void *arg)
{
	bool *inside = arg;

	*inside |= signal->slot != WR_NO_SLOT && wr_slot_inside(signal->slot);
}

/* No thread is inside and the fired list was collected, so a token that is left was detached. */
static void signal_recycle_at_end(struct wr_signal *signal, void *arg)
{
	struct wr_signals *signals = arg;
	bool detached = wr_load(&signal->token) != 0;

	if (!detached && signal->slot != WR_NO_SLOT)
		wr_slot_give(signal->slot);
	signal->slot = WR_NO_SLOT;
	if (detached)
		wr_signal_stream_push(signals, &signals->draining, wr_signal_recycle(signal));
}

static bool waker_has_no_users(void *arg)
{
	struct wr_system *system = arg;
	bool inside = false;

	wr_signals_each(system, signal_is_inside, &inside);
	return !inside && !wr_load(&system->waker_users);
}

void wr_system_detach(struct wr_system *system)
{
	if (!wr_load(&system->waker))
		return;
	wr_system_drop_all_refs(system);
	wr_exchange(&system->waker, NULL);
	wr_promises_forget_waits(system);
	/* In two passes: in between the slots of detached tokens are asked for callbacks inside. */
	wr_signals_each(system, signal_shut_down, system);
	wr_system_sleep_until(system, waker_has_no_users, system, WR_FOREVER);
	wr_system_collect(system);
	wr_flags_recycle_all(system);
	wr_signals_each(system, signal_recycle_at_end, &system->signals);
}

/*
 * === the watch ===
 *
 * What the loop checks (E2) from time to time because nothing else may ever wake it: streams with
 * old work, deferred frees, lost callbacks, refused entities that were not poked, flags that no worker polls.
 *
 * If there is nothing to check it sleeps, and a thread that adds something kicks the loop. `watch_sleeps` is
 * set before the last check, and it is read after something was added, both seq_cst: one of the two threads
 * sees the other.
 *
 * Lost callbacks. A callback is lost if the work that its signal waits for has been complete for a second,
 * the signal has not fired, and an event recorded behind the callback is complete.
 *
 * Without the last condition the callback is only late: its enqueueing still blocks (F16), a user's long host
 * function occupies the thread that makes the calls, all threads of the host backend are in long kernels, or
 * the process was stopped (F36). Then the entity is poked in the callback's place, which is always correct,
 * and nothing fails.
 *
 * Thread: the loop. It alone releases such signals, so a signal does not change while it is examined.
 *
 * Lost flags. A flag is lost if it has not been written for a second although a later record of its stream is
 * complete. Without a later record this cannot be decided; waiting entities are poked all the same, since the
 * watch has seen the work complete.
 */

#define MS           1000000
#define OLD          (100 * MS)
#define PERIOD       (50 * MS)
#define OFFER_PERIOD (1 * MS)
enum { HARDWARE_QUEUES = 32, NAMES = 8 };

/* --- streams --- */

static bool has_work(weir_stream *stream)
{
	return wr_load(&stream->submitted) > wr_load(&stream->completed) || wr_load(&stream->live_until);
}

/* Returns when to check the stream again. */
static int64_t check_stream(weir_stream *stream, int64_t now)
{
	const struct wr_event *oldest; /* pending */
	int64_t old;

	if (!has_work(stream))
		return WR_FOREVER;
	wr_stream_drop_ref_if_complete(stream); /* a tick that enqueued nothing */
	if (wr_load(&stream->submitted) <= wr_load(&stream->completed))
		return wr_load(&stream->live_until) ? now + PERIOD : WR_FOREVER;
	oldest = wr_stream_event(stream, wr_load(&stream->completed) + 1);
	old = wr_load_relaxed(&oldest->recorded_at) + OLD;
	if (now < old)
		return old;
	return wr_stream_idle(stream) ? WR_FOREVER : now + PERIOD;
}

static void warn_naming_busy(struct wr_system *system, int device)
{
	char text[512] = "";
	size_t at = 0, named = 0;

	for (uint32_t i = 0; i < wr_load(&system->count) && named < NAMES; i++) {
		weir_stream *stream = wr_stream_at(system, i);

		if (stream->spec.device == device && has_work(stream) && at < sizeof text)
			at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", named++ ? ", " : "",
					       wr_load(&stream->owner));
	}
	wr_log(WEIR_LOG_WARN,
	       "device %d: more than %d streams have work in flight; they share hardware queues and wait for "
	       "each other (%s, ...)",
	       device, HARDWARE_QUEUES, text);
}

static void warn_of_crowd(struct wr_system *system)
{
	for (int device = 0; device < system->devices && !system->crowd_warned; device++) {
		size_t busy = 0;

		for (uint32_t i = 0; i < wr_load(&system->count); i++)
			busy += wr_stream_at(system, i)->spec.device == device &&
				has_work(wr_stream_at(system, i));
		if (busy > HARDWARE_QUEUES) {
			system->crowd_warned = true;
			warn_naming_busy(system, device);
		}
	}
}

static int64_t earlier_time(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* --- lost callbacks --- */

#define LOST_AFTER 1000000000

/*
 * Returns a copy of the fences of a signal that was armed long ago, or for work recorded long ago, else NULL.
 * A copy, because the device is queried without the lock. The caller frees it with wr_free.
 */
static weir_fence *signal_copy_fences(struct wr_signal *signal, int64_t now, size_t *n)
{
	struct wr_signals *signals = &signal->system->signals;
	weir_fence *copy = NULL;

	wr_spin_lock(&signals->lock);
	if (wr_load(&signal->token) && !signal->by_flag && now - signal->armed_at >= LOST_AFTER)
		copy = wr_alloc(signal->count, sizeof *copy);
	*n = copy ? signal->count : 0;
	for (size_t i = 0; i < *n; i++)
		copy[i] = signal->fences[i];
	wr_spin_unlock(&signals->lock);
	return copy;
}

struct lost_search {
	int64_t now;
	bool lost;
};

static weir_status query_signal_stream(struct wr_signal *signal, wr_token token)
{
	struct wr_system *system = signal->system;
	struct wr_signal_stream *signal_stream = signal->signal_stream;

	if (signal->probe_token == token)
		return wr_device_query(system, signal_stream->event);
	if (!wr_device_record(system, signal_stream->device, signal_stream->native, signal_stream->event))
		signal->probe_token = token;
	return WEIR_E_BUSY;
}

/*
 * For an inline callback: a complete record proves that the stream went past the callback if the record began
 * after the enqueueing had returned. One record may be in progress when `submitted` is read here, so only a
 * record after the next one counts. BUSY while there is none.
 */
static weir_status query_stream(struct wr_signal *signal, wr_token token)
{
	weir_stream *stream = signal->stream;
	weir_fence last = {wr_load(&stream->id), wr_load(&stream->submitted)};

	if (signal->probe_token != token) {
		signal->probe_token = token;
		signal->behind_value = last.value + 1;
	}
	return last.value > signal->behind_value ? wr_fence_query(signal->system, last) : WEIR_E_BUSY;
}

/* Pokes the entity, once per token. No warning if an inline callback waits for other work of its stream. */
static void signal_poke_late(struct wr_signal *signal, wr_token token, const char *producer)
{
	weir_stream *stream = signal->stream;

	if (signal->late_token == token)
		return;
	signal->late_token = token;
	wr_count(&signal->system->signals.late, 1);
	if (signal->signal_stream || (!wr_load(&stream->dirty) && wr_stream_idle(stream)))
		wr_log(WEIR_LOG_WARN,
		       "the work of '%s' has been complete for 1 s, and its callback has not run "
		       "yet: the thread that runs callbacks is busy, or too many streams are",
		       producer);
	if (signal->entity != WR_NO_ENTITY)
		signal->waker->poke(signal->waker, signal->entity, 0);
}

/* In the callback's place. Should it run after all, it finds its token gone. */
static void signal_fire_lost(struct wr_signal *signal, wr_token token, const char *producer)
{
	wr_log(WEIR_LOG_WARN,
	       "callback lost: the work of '%s' has been complete for 1 s; the run goes on without it",
	       producer);
	wr_count(&signal->system->signals.late, signal->late_token != token);
	wr_token_fire(wr_token_argument(token));
}

static void signal_decide(struct wr_signal *signal, struct lost_search *search, wr_token token,
			  weir_fence fence)
{
	const char *producer = wr_fence_producer(signal->system, fence, NULL);
	bool was_probed = signal->probe_token == token, past = false; /* the stream went past the callback */

	if (wr_load(&signal->enqueued) == token)
		past = signal->signal_stream ? !query_signal_stream(signal, token)
					     : !query_stream(signal, token);
	if (!wr_token_outstanding(token))
		return;
	if (past && signal->system->signals.forgives) {
		signal_fire_lost(signal, token, producer);
	} else if (past) {
		search->lost = true;
		wr_fail(WEIR_E_DEVICE, "callback lost: the work of '%s' has been complete for 1 s", producer);
	} else if (was_probed) {
		signal_poke_late(signal, token, producer);
	}
}

static void signal_find_lost(struct wr_signal *signal, void *arg)
{
	struct lost_search *search = arg;
	struct wr_system *system = signal->system;
	wr_token token = wr_load(&signal->token);
	weir_fence *fences = NULL;
	size_t n, complete = 0;

	if (search->lost)
		return; /* last_error names it: no further call may set another text */
	if (token && wr_token_outstanding(token))
		fences = signal_copy_fences(signal, search->now, &n);
	if (!fences)
		return;
	while (complete < n && !wr_fence_query(system, fences[complete]))
		complete++;
	if (complete < n)
		signal->complete_at = 0;
	else if (!signal->complete_at)
		signal->complete_at = search->now;
	else if (search->now - signal->complete_at >= LOST_AFTER)
		signal_decide(signal, search, token, fences[0]);
	wr_free(fences);
}

static weir_status callbacks_find_lost(struct wr_system *system, int64_t now)
{
	struct lost_search search = {now, false};

	if (wr_load(&system->signals.pending))
		wr_signals_each(system, signal_find_lost, &search);
	if (search.lost)
		wr_system_fail(system, weir_last_error());
	return wr_system_failed(system) ? wr_system_failure_status(system) : WEIR_OK;
}

/* --- lost flags --- */

static bool flag_is_lost(weir_stream *stream, int64_t now)
{
	uint64_t seen, value;
	bool far, given_up = wr_load_relaxed(&stream->flagless);

	if (!wr_load(&stream->word) || given_up)
		return false; /* without a word flag_missed is the owner's */
	seen = wr_load(&stream->completed);
	value = stream->flag_missed.value;
	far = seen > value && seen - value > WR_WORD_SPAN;
	if (far || (int32_t)(wr_load(wr_load(&stream->word)) - (uint32_t)value) >= 0) {
		stream->flag_missed.value = wr_load(&stream->flag_value);
		stream->flag_missed.since = 0;
	} else if (seen > value && !stream->flag_missed.since) {
		stream->flag_missed.since = now;
	}
	return stream->flag_missed.since && now - stream->flag_missed.since >= LOST_AFTER;
}

/* What waits for it has fired: the watch has seen the work complete. */
static void flag_give_up(weir_stream *stream)
{
	wr_log(WEIR_LOG_WARN,
	       "flag lost: the work of '%s' and later work have been complete for 1 s, its flag was not "
	       "written; "
	       "from now on callbacks are used for its stream",
	       wr_load(&stream->owner));
	wr_count(&stream->system->signals.late, 1);
	stream->flag_missed.since = 0;
	wr_store_relaxed(&stream->flagless, true);
}

static weir_status flags_find_lost(struct wr_system *system, int64_t now)
{
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);

		if (!flag_is_lost(stream, now))
			continue;
		if (system->signals.forgives) {
			flag_give_up(stream);
			continue;
		}
		wr_fail(WEIR_E_DEVICE,
			"flag lost: the work of '%s' and later work have been complete for 1 s, its flag was "
			"not written",
			wr_load(&stream->owner));
		wr_system_fail(system, weir_last_error());
		return WEIR_E_DEVICE;
	}
	return WEIR_OK;
}

/* --- the watch --- */

static int64_t watch_check_all(struct wr_system *system, int64_t now)
{
	int64_t next = WR_FOREVER;

	for (uint32_t i = 0; i < wr_load(&system->count); i++)
		next = earlier_time(next, check_stream(wr_stream_at(system, i), now));
	if (wr_system_backend(system) == WEIR_BACKEND_CUDA && !system->crowd_warned)
		warn_of_crowd(system);
	(void)wr_flags_poll(system, now); /* a safety net under the poller */
	wr_deferred_frees_process(system);
	if (wr_load(&system->deferred_frees.count) || wr_system_outstanding(system))
		next = earlier_time(next, now + PERIOD);
	if (!wr_refused_any(system))
		return next;
	for (int device = 0; device < system->devices; device++)
		wr_refused_poke_bounded(system, device);
	return wr_refused_any(system) ? earlier_time(next, now + OFFER_PERIOD) : next;
}

weir_status wr_system_watch(struct wr_system *system, int64_t now, int64_t *next)
{
	*next = WR_FOREVER;
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	wr_store(&system->watch_sleeps, true);
	*next = watch_check_all(system, now);
	if (*next != WR_FOREVER)
		wr_store(&system->watch_sleeps, false);
	return flags_find_lost(system, now) ? wr_system_failure_status(system)
					    : callbacks_find_lost(system, now);
}

/* --- a drain (S7) --- */

void wr_system_drain(struct wr_system *system)
{
	wr_store_relaxed(&system->draining, true);
	wr_promises_drain(system);
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);

		stream->drained = wr_load(&stream->completed);
	}
}

/* Queries the next of the values that count; returns true if some have completed. */
static bool stream_progressed(weir_stream *stream)
{
	weir_fence next = {wr_load(&stream->id), wr_load(&stream->completed) + 1};
	uint64_t before = stream->drained, until = wr_load_relaxed(&stream->drain_until);

	if (before >= until)
		return false;
	if (next.value <= until)
		(void)wr_fence_query(stream->system, next);
	stream->drained = wr_load(&stream->completed);
	return stream->drained > before;
}

bool wr_system_progressed(struct wr_system *system)
{
	bool some = wr_promises_progressed(system);

	for (uint32_t i = 0; i < wr_load(&system->count); i++)
		some |= stream_progressed(wr_stream_at(system, i));
	return some;
}

/*
 * If the fence is complete by now, the next turn releases what waits for it; so in the function below. The
 * stream may have been recycled meanwhile: then its fence is complete, too.
 */
static weir_status kick_at_fence(weir_stream *stream, weir_fence fence)
{
	weir_status status = wr_fence_query(stream->system, fence);

	if (status == WEIR_E_BUSY)
		return wr_signal_arm_kick(stream, fence);
	if (!status)
		wr_system_kick(stream->system);
	return status;
}

static weir_status kick_at_end(weir_stream *stream, bool frees_pending)
{
	bool pending = wr_load(&stream->submitted) > wr_load(&stream->completed);

	if (!wr_load(&stream->live_until) && !(frees_pending && has_work(stream)))
		return WEIR_OK;
	wr_stream_drop_ref_if_complete(stream);
	if (!wr_stream_idle(stream))
		return wr_signal_arm_kick(stream,
					  (weir_fence){wr_load(&stream->id), wr_load(&stream->submitted)});
	if (pending && frees_pending)
		wr_system_kick(stream->system);
	return WEIR_OK;
}

/* After the list was processed: a value that is armed here will fire, however early it completes. */
static weir_status arm_all_kicks(struct wr_system *system, bool all, uint64_t ended)
{
	weir_status status = WEIR_OK;
	bool frees_pending = wr_load(&system->deferred_frees.count) > 0;

	if (frees_pending &&
	    (wr_deferred_frees_note_wanted(system) || wr_load(&system->promises.ended) != ended))
		wr_system_kick(system); /* fences have become complete since the list was processed */
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);
		weir_fence wanted = stream->wanted;

		if (wanted.value)
			stream->wanted = (weir_fence){0, 0};
		if (wanted.value && !status)
			status = kick_at_fence(stream, wanted);
		else if (all && !status)
			status = kick_at_end(stream, frees_pending);
	}
	/* Seen complete since the list was processed, so that no signal was armed for it. */
	if (all && frees_pending && wr_deferred_frees_any_complete(system))
		wr_system_kick(system);
	return status;
}

weir_status wr_system_arm_kicks(struct wr_system *system, bool all, bool over)
{
	uint64_t ended = wr_load(&system->promises.ended);
	weir_status status;

	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (over)
		wr_promises_kick_all(system);
	wr_deferred_frees_process(system);
	status = arm_all_kicks(system, all, ended);
	return wr_system_failed(system) ? wr_system_failure_status(system) : status;
}

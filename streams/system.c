/*
 * A system: one backend, its streams, memory, deferred frees and signals. Creation, destruction, and how it
 * is attached to a run.
 *
 * The waker is used by workers and the loop, which have left when a run detaches; by callbacks, which are
 * counted in their slots; and by other threads that see work complete, counted in `waker_users`.
 * Detach drops the remaining live references, clears the waker, shuts down the tokens, and waits until both
 * counts are 0: from then on no thread touches the waker.
 */
#include "streams/system.h"

#include <assert.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/stack.h"
#include "base/status.h"
#include "streams/device.h"
#include "streams/failure.h"
#include "streams/memory.h"
#include "streams/signal_stream.h"

#define DRAIN_TIMEOUT 2000000000 /* for work of a run that was cut short */
#define SHORT_TIMEOUT 200000000  /* if a drain has already waited for it */
#define SERIALS       (1 << 16)

static _Atomic uint64_t serials;
static _Atomic(struct wr_system *) abandoned; /* systems leaked on purpose, reachable for leak checkers */

/* --- creation --- */

static weir_status system_init(struct wr_system *system)
{
	weir_status status = wr_mutex_init(&system->lock);

	system->on_failure = wr_failure_announce;
	system->devices = wr_device_count(system);
	system->serial = (wr_fetch_add(&serials, 1) + 1) % SERIALS;
	wr_store(&system->watch_sleeps, true);
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
	wr_memory_finish(system);
	wr_device_close(system);
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
	status = wr_device_open(system, options ? options : &defaults);
	if (status) {
		wr_free(system);
		return status;
	}
	status = system_init(system);
	if (status)
		wr_device_enter(system, system_free, system);
	else
		*out = system;
	return status;
}

/* --- destruction --- */

static void close_all_streams(struct wr_system *system)
{
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);

		if (!wr_load(&stream->closed))
			wr_stream_close(stream);
	}
}

static bool system_is_drained(void *arg)
{
	struct wr_system *system = arg;
	bool done = true;

	wr_system_run_deferred_frees(system, true);
	if (wr_load(&system->deferred_frees.count) || wr_system_deferred_frees_ready(system))
		return false;
	for (uint32_t i = 0; i < wr_load(&system->count) && done; i++)
		done = wr_stream_may_free(wr_stream_at(system, i));
	return done && wr_signals_drained(system);
}

struct ending {
	struct wr_system *system;
	bool drained;
};

static bool is_drained_for(void *arg)
{
	struct ending *ending = arg;

	ending->drained = system_is_drained(ending->system);
	return ending->drained;
}

static void drain_and_free(void *arg)
{
	struct ending *ending = arg;
	int64_t timeout = wr_load(&ending->system->short_timeout) ? SHORT_TIMEOUT : DRAIN_TIMEOUT;

	close_all_streams(ending->system);
	wr_system_sleep_until(ending->system, is_drained_for, ending, wr_time_add(wr_now(), timeout));
	if (ending->drained)
		system_free(ending->system);
}

static weir_status system_abandon(struct wr_system *system)
{
	wr_stack_push(&abandoned, system, abandoned);
	return wr_fail(WEIR_E_ABANDONED, "%s: work is still running; what it may touch was left alone",
		       system->where);
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
	wr_device_enter(system, drain_and_free, &ending);
	return ending.drained ? WEIR_OK : system_abandon(system);
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

void wr_system_select(struct wr_system *system, int device)
{
	wr_device_select(system, device);
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
	if (on)
		wr_store(&system->short_timeout, false); /* it belonged to the last run */
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

/* Separate from signals_release_all, since the slots of detached tokens are asked for callbacks inside in
 * between. */
static void signals_shut_down(struct wr_system *system)
{
	wr_signals_each(system, signal_shut_down, system);
}

static void signal_is_inside(struct wr_signal *signal, void *arg)
{
	bool *inside = arg;

	*inside |= signal->slot != WR_NO_SLOT && wr_slot_inside(signal->slot);
}

static bool signals_inside(struct wr_system *system)
{
	bool inside = false;

	wr_signals_each(system, signal_is_inside, &inside);
	return inside;
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

static void signals_release_all(struct wr_system *system)
{
	wr_signals_each(system, signal_recycle_at_end, &system->signals);
}

static bool waker_has_no_users(void *arg)
{
	return !signals_inside(arg) && !wr_load(&((struct wr_system *)arg)->waker_users);
}

void wr_system_detach(struct wr_system *system)
{
	if (!wr_load(&system->waker))
		return;
	wr_system_drop_all_refs(system);
	wr_exchange(&system->waker, NULL);
	signals_shut_down(system);
	wr_system_sleep_until(system, waker_has_no_users, system, WR_FOREVER);
	wr_system_collect(system);
	wr_flags_recycle_all(system);
	signals_release_all(system);
}

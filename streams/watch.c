/*
 * The watch (E2): what the loop checks from time to time because nothing else may ever wake it: streams with
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
 * Thread: the loop. It alone releases such signals, so a signal does not change while this file examines it.
 *
 * Lost flags. A flag is lost if it has not been written for a second although a later record of its stream is
 * complete. Without a later record this cannot be decided; waiting entities are poked all the same, since the
 * watch has seen the work complete.
 */
#include <stdio.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "streams/device.h"
#include "streams/signal_stream.h"
#include "streams/system.h"

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

static int64_t oldest_pending_since(weir_stream *stream)
{
	return wr_load_relaxed(&wr_stream_event(stream, wr_load(&stream->completed) + 1)->recorded_at);
}

/* Returns when to check the stream again. */
static int64_t check_stream(weir_stream *stream, int64_t now)
{
	int64_t old;

	if (!has_work(stream))
		return WR_FOREVER;
	wr_stream_drop_ref_if_complete(stream); /* a tick that enqueued nothing */
	if (wr_load(&stream->submitted) <= wr_load(&stream->completed))
		return wr_load(&stream->live_until) ? now + PERIOD : WR_FOREVER;
	old = oldest_pending_since(stream) + OLD;
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

static int64_t check_streams(struct wr_system *system, int64_t now)
{
	int64_t next = WR_FOREVER;

	for (uint32_t i = 0; i < wr_load(&system->count); i++)
		next = earlier_time(next, check_stream(wr_stream_at(system, i), now));
	if (wr_system_backend(system) == WEIR_BACKEND_CUDA && !system->crowd_warned)
		warn_of_crowd(system);
	return next;
}

/* --- lost callbacks --- */

#define LOST_AFTER 1000000000

static bool fences_complete(struct wr_system *system, const weir_fence *fences, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (wr_fence_query(system, fences[i]))
			return false;
	return true;
}

/*
 * Returns a copy of the fences of a signal that was armed long ago, else NULL. A copy, because the device is
 * queried without the lock. The caller frees it with wr_free.
 */
static weir_fence *signal_copy_fences(struct wr_signal *signal, int64_t now, size_t *n)
{
	struct wr_signals *signals = &signal->system->signals;
	weir_fence *copy = NULL;

	wr_mutex_lock(&signals->lock);
	if (wr_load(&signal->token) && !signal->by_flag && now - signal->armed_at >= LOST_AFTER)
		copy = wr_alloc(signal->count, sizeof *copy);
	*n = copy ? signal->count : 0;
	for (size_t i = 0; i < *n; i++)
		copy[i] = signal->fences[i];
	wr_mutex_unlock(&signals->lock);
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

static bool stream_went_past(struct wr_signal *signal, wr_token token)
{
	if (wr_load(&signal->enqueued) != token)
		return false;
	return signal->signal_stream ? !query_signal_stream(signal, token) : !query_stream(signal, token);
}

/* Returns true if an inline callback waits for other, unfinished work of its stream. */
static bool signal_is_behind_work(const struct wr_signal *signal)
{
	weir_stream *stream = signal->stream;

	return !signal->signal_stream && (wr_load(&stream->dirty) || !wr_stream_idle(stream));
}

/* Pokes the entity, once per token. No warning if other work of the stream comes first. */
static void signal_poke_late(struct wr_signal *signal, wr_token token, const char *producer)
{
	if (signal->late_token == token)
		return;
	signal->late_token = token;
	if (!signal_is_behind_work(signal))
		wr_log(WEIR_LOG_WARN,
		       "the work of '%s' has been complete for 1 s, and its callback has not run "
		       "yet: the thread that runs callbacks is busy, or too many streams are",
		       producer);
	if (signal->entity != WR_NO_ENTITY)
		signal->waker->poke(signal->waker, signal->entity, 0);
}

static void signal_decide(struct wr_signal *signal, struct lost_search *search, wr_token token,
			  weir_fence fence)
{
	const char *producer = wr_fence_producer(signal->system, fence, NULL);
	bool was_probed = signal->probe_token == token, past = stream_went_past(signal, token);

	if (!wr_token_outstanding(token))
		return;
	search->lost = past;
	if (past)
		wr_fail(WEIR_E_DEVICE, "callback lost: the work of '%s' has been complete for 1 s", producer);
	else if (was_probed)
		signal_poke_late(signal, token, producer);
}

static void signal_find_lost(struct wr_signal *signal, void *arg)
{
	struct lost_search *search = arg;
	struct wr_system *system = signal->system;
	wr_token token = wr_load(&signal->token);
	weir_fence *fences = NULL;
	size_t n;

	if (search->lost)
		return; /* last_error names it: no further call may set another text */
	if (token && wr_token_outstanding(token))
		fences = signal_copy_fences(signal, search->now, &n);
	if (!fences)
		return;
	if (!fences_complete(system, fences, n))
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

static bool flag_reached(weir_stream *stream, uint64_t value)
{
	return (int32_t)(wr_load(wr_load(&stream->word)) - (uint32_t)value) >= 0;
}

static bool flag_is_lost(weir_stream *stream, int64_t now)
{
	uint64_t seen, value;
	bool far;

	if (!wr_load(&stream->word))
		return false; /* until then flag_missed is the owner's */
	seen = wr_load(&stream->completed);
	value = stream->flag_missed.value;
	far = seen > value && seen - value > WR_WORD_SPAN;
	if (far || flag_reached(stream, value)) {
		stream->flag_missed.value = wr_load(&stream->flag_value);
		stream->flag_missed.since = 0;
	} else if (seen > value && !stream->flag_missed.since) {
		stream->flag_missed.since = now;
	}
	return stream->flag_missed.since && now - stream->flag_missed.since >= LOST_AFTER;
}

static weir_status flags_find_lost(struct wr_system *system, int64_t now)
{
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);

		if (!flag_is_lost(stream, now))
			continue;
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
	int64_t next = check_streams(system, now);

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
	bool some = false;

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
static weir_status arm_all_kicks(struct wr_system *system, bool all)
{
	weir_status status = WEIR_OK;
	bool frees_pending = wr_load(&system->deferred_frees.count) > 0;

	if (frees_pending && wr_deferred_frees_note_wanted(system))
		wr_system_kick(system); /* another thread has seen its fences complete since */
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
	return status;
}

weir_status wr_system_arm_kicks(struct wr_system *system, bool all)
{
	weir_status status;

	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	wr_deferred_frees_process(system);
	status = arm_all_kicks(system, all);
	return wr_system_failed(system) ? wr_system_failure_status(system) : status;
}

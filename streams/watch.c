/*
 * The watch (E2): what the loop checks from time to time because nothing else may ever wake it: streams with
 * old work, deferred frees, lost callbacks, refused entities that were not poked, flags that no worker polls.
 *
 * If there is nothing to check it rests, and a thread that adds something kicks the loop. `resting` is set
 * before the last check, and it is read after something was added, both seq_cst: one of the two threads sees
 * the other.
 */
#include <stdio.h>

#include "base/bug.h"
#include "base/log.h"
#include "base/status.h"
#include "streams/system.h"

#define MS           1000000
#define OLD          (100 * MS)
#define PERIOD       (50 * MS)
#define OFFER_PERIOD (1 * MS)
enum { HARDWARE_QUEUES = 32, NAMES = 8 };

void wr_system_added(struct wr_system *system)
{
	struct wr_waker *waker;

	if (!wr_load(&system->resting) || !wr_exchange(&system->resting, false))
		return;
	waker = wr_system_enter(system);
	if (waker)
		waker->kick(waker);
	wr_system_leave(system);
}

/* --- streams --- */

static bool has_work(weir_stream *stream)
{
	return wr_load(&stream->submitted) > wr_load(&stream->completed) || wr_load(&stream->held);
}

static int64_t oldest_pending_since(weir_stream *stream)
{
	return wr_load_relaxed(&wr_stream_point(stream, wr_load(&stream->completed) + 1)->at);
}

/* Returns when to check the stream again. */
static int64_t check_stream(weir_stream *stream, int64_t now)
{
	int64_t old;

	if (!has_work(stream))
		return WR_FOREVER;
	wr_stream_drop_ref_if_complete(stream); /* a tick that enqueued nothing */
	if (wr_load(&stream->submitted) <= wr_load(&stream->completed))
		return wr_load(&stream->held) ? now + PERIOD : WR_FOREVER;
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
	for (int device = 0; device < system->devices && !system->warned; device++) {
		size_t busy = 0;

		for (uint32_t i = 0; i < wr_load(&system->count); i++)
			busy += wr_stream_at(system, i)->spec.device == device &&
				has_work(wr_stream_at(system, i));
		if (busy > HARDWARE_QUEUES) {
			system->warned = true;
			warn_naming_busy(system, device);
		}
	}
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t check_streams(struct wr_system *system, int64_t now)
{
	int64_t next = WR_FOREVER;

	for (uint32_t i = 0; i < wr_load(&system->count); i++)
		next = earlier(next, check_stream(wr_stream_at(system, i), now));
	if (wr_system_is_cuda(system) && !system->warned)
		warn_of_crowd(system);
	return next;
}

/*
 * After a fault a query of any event returns the device's error, even if the event
 * is complete. One event of each stream is queried, since they may differ in device.
 */
bool wr_system_check_health(struct wr_system *system)
{
	for (uint32_t i = 0; i < wr_load(&system->count) && !wr_system_failed(system); i++) {
		const struct wr_event_ring *ring = wr_load_acquire(&wr_stream_at(system, i)->ring);

		wr_system_check(system, system->backend->query(system->native, ring->points[0].event));
	}
	return !wr_system_failed(system);
}

/* --- the watch --- */

static int64_t check_all(struct wr_system *system, int64_t now)
{
	int64_t next = check_streams(system, now);

	if (WR_NET)
		(void)wr_flags_poll(system, now); /* a safety net under the poller */
	wr_deferred_frees_look(system, false);
	if (wr_load(&system->deferred_frees.count) || wr_system_outstanding(system))
		next = earlier(next, now + PERIOD);
	if (!wr_signals_refuse(system))
		return next;
	for (int device = 0; device < system->devices; device++)
		wr_signals_offer(system, device);
	return wr_signals_refuse(system) ? earlier(next, now + OFFER_PERIOD) : next;
}

weir_status wr_system_watch(struct wr_system *system, int64_t now, int64_t *next)
{
	*next = WR_FOREVER;
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	wr_store(&system->resting, true);
	*next = check_all(system, now);
	if (*next != WR_FOREVER)
		wr_store(&system->resting, false);
	return wr_flags_find_lost(system, now) ? wr_system_failure_status(system)
					       : wr_signals_look(system, now);
}

/* --- a drain (S7) --- */

void wr_system_drain(struct wr_system *system)
{
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);

		stream->drain_until = wr_load(&stream->submitted);
		stream->drained = wr_load(&stream->completed);
	}
}

/*
 * Queries the next of the points that were recorded when the drain began; returns true if some have
 * completed.
 */
static bool stream_progressed(weir_stream *stream)
{
	weir_fence next = {wr_load(&stream->id), wr_load(&stream->completed) + 1};
	uint64_t before = stream->drained;

	if (before >= stream->drain_until)
		return false;
	if (next.point <= stream->drain_until)
		(void)wr_fence_query(stream->system, next);
	stream->drained = wr_load(&stream->completed);
	return stream->drained > before;
}

bool wr_system_progressed(struct wr_system *system, bool *left)
{
	bool some = false;

	*left = false;
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);

		some |= stream_progressed(stream);
		*left |= stream->drained < stream->drain_until;
	}
	return some;
}

weir_status wr_system_expect(struct wr_system *system)
{
	weir_status status = WEIR_OK;
	bool frees_pending = wr_load(&system->deferred_frees.count) > 0;

	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	for (uint32_t i = 0; i < wr_load(&system->count) && !status; i++) {
		weir_stream *stream = wr_stream_at(system, i);

		if (!wr_load(&stream->held) && !(frees_pending && has_work(stream)))
			continue;
		wr_stream_drop_ref_if_complete(stream);
		if (!wr_stream_idle(stream))
			status = wr_signal_expect(stream);
	}
	/*
	 * After the streams, so that a signal is armed for each stream that a listed payload still waits for.
	 */
	if (frees_pending)
		wr_system_run_deferred_frees(system, false);
	return wr_system_failed(system) ? wr_system_failure_status(system) : status;
}

/*
 * Lost callbacks: the work that a signal waits for has been complete for a second, it has not fired, and the
 * stream that carries the callback has come past it.
 *
 * Without the last it is only late: enqueueing it still blocks (F16), a long host function of somebody else's
 * occupies the thread that makes the calls, all threads of the host backend are in long kernels, the process
 * was stopped (F36). Then the entity is poked in its place, which is always right, and nothing has failed.
 *
 * Thread: the loop, which alone gives such signals back, so that one which has waited for long stays what it
 * is meanwhile.
 *
 * Lost rings: a word has not come to a point for a second though a later record of its stream is complete.
 * Without a later record nobody knows; whoever waits is told all the same, since the watch has seen the work
 * complete.
 */
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "streams/signal.h"
#include "streams/system.h"

#define LOST_AFTER 1000000000

static bool all_complete(struct wr_system *system, const weir_fence *fences, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (wr_fence_query(system, fences[i]))
			return false;
	return true;
}

/* A copy of its fences, if it is armed for long: asking the device goes without the lock. Free with wr_free.
 */
static weir_fence *copy_fences(struct wr_signal *signal, int64_t now, size_t *n)
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

struct look {
	int64_t now;
	bool lost;
};

static weir_status ask_signal_stream(struct wr_signal *signal, wr_token token)
{
	struct wr_system *system = signal->system;
	struct wr_signal_stream *signal_stream = signal->signal_stream;

	if (signal->probed == token)
		return wr_system_check(system, system->backend->query(system->native, signal_stream->event));
	if (!wr_system_check(system, system->backend->record(system->native, signal_stream->device, signal_stream->native,
							    signal_stream->event)))
		signal->probed = token;
	return WEIR_E_BUSY;
}

/*
 * Inline: a point tells whose record began after the enqueueing had returned. One record may be on its way
 * when the last point is read here: so the one after that. While there is none that is complete nobody knows.
 */
static weir_status ask_stream(struct wr_signal *signal, wr_token token)
{
	weir_stream *stream = signal->stream;
	weir_fence last = {wr_load(&stream->id), wr_load(&stream->submitted)};

	if (signal->probed != token) {
		signal->probed = token;
		signal->behind = last.point + 1;
	}
	return last.point > signal->behind ? wr_fence_query(signal->system, last) : WEIR_E_BUSY;
}

static bool went_past(struct wr_signal *signal, wr_token token)
{
	if (wr_load(&signal->enqueued) != token)
		return false;
	return signal->signal_stream ? !ask_signal_stream(signal, token) : !ask_stream(signal, token);
}

/* Inline: what its producer enqueued since comes first, and is not finished yet. */
static bool stands_behind_work(const struct wr_signal *signal)
{
	weir_stream *stream = signal->stream;

	return !signal->signal_stream && (wr_load(&stream->dirty) || !wr_stream_idle(stream));
}

/* Asked again once, which is always right; nothing is wrong where other work of the stream comes first. */
static void call_late(struct wr_signal *signal, wr_token token, const char *producer)
{
	if (signal->late == token)
		return;
	signal->late = token;
	if (!stands_behind_work(signal))
		wr_log(WEIR_LOG_WARN, "the work of '%s' has been complete for 1 s, and its callback is not made "
		       "yet: the thread that makes them is busy, or too many streams are", producer);
	if (signal->entity != WR_NO_ENTITY)
		signal->waker->poke(signal->waker, signal->entity);
}

static void decide(struct wr_signal *signal, struct look *look, wr_token token, weir_fence fence)
{
	const char *producer = wr_fence_producer(signal->system, fence, NULL);
	bool probed = signal->probed == token, past = went_past(signal, token);

	if (!wr_token_outstanding(token) || look->lost)
		return;
	look->lost = past;
	if (past)
		wr_fail(WEIR_E_DEVICE, "callback lost: the work of '%s' has been complete for 1 s", producer);
	else if (probed)
		call_late(signal, token, producer);
}

static void look_at(struct wr_signal *signal, void *arg)
{
	struct look *look = arg;
	struct wr_system *system = signal->system;
	wr_token token = wr_load(&signal->token);
	size_t n;
	weir_fence *fences = token && wr_token_outstanding(token) ? copy_fences(signal, look->now, &n) : NULL;

	if (!fences)
		return;
	if (!all_complete(system, fences, n))
		signal->complete_at = 0;
	else if (!signal->complete_at)
		signal->complete_at = look->now;
	else if (look->now - signal->complete_at >= LOST_AFTER)
		decide(signal, look, token, fences[0]);
	wr_free(fences);
}

weir_status wr_signals_look(struct wr_system *system, int64_t now)
{
	struct look look = {now, false};

	if (wr_load(&system->signals.pending))
		wr_signals_each(system, look_at, &look);
	if (look.lost)
		wr_system_fail(system, weir_last_error());
	return wr_system_failed(system) ? wr_system_failure_status(system) : WEIR_OK;
}

/* --- flags --- */

static bool came_to(weir_stream *stream, uint64_t point)
{
	return (int32_t)(wr_load(wr_load(&stream->word)) - (uint32_t)point) >= 0;
}

static bool missed(weir_stream *stream, int64_t now)
{
	uint64_t seen, point;
	bool far;

	if (!wr_load(&stream->word))
		return false; /* until then `missed` is the owner's */
	seen = wr_load(&stream->completed);
	point = stream->flag_missed.point;
	far = seen > point && seen - point > WR_WORD_SPAN;
	if (far || came_to(stream, point)) {
		stream->flag_missed.point = wr_load(&stream->flag_value);
		stream->flag_missed.since = 0;
	} else if (seen > point && !stream->flag_missed.since) {
		stream->flag_missed.since = now;
	}
	return stream->flag_missed.since && now - stream->flag_missed.since >= LOST_AFTER;
}

weir_status wr_flags_find_lost(struct wr_system *system, int64_t now)
{
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);

		if (!missed(stream, now))
			continue;
		wr_fail(WEIR_E_DEVICE,
			"flag lost: the work of '%s' has been complete for 1 s, and later work is, too",
			wr_load(&stream->owner));
		wr_system_fail(system, weir_last_error());
		return WEIR_E_DEVICE;
	}
	return WEIR_OK;
}

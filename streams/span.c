/*
 * Spans (T15): when the device worked for a tick on one stream. A span has two timers of the backend. It is
 * armed when its owner's tick begins. The first call that enqueues work, or gives out the native handle,
 * records the first timer just before, so waits that were enqueued until then are not part of the span. The
 * second timer is recorded before the fence that ends the tick, so it was reached when that fence is
 * complete.
 *
 * A span without timers is what the host knows for nothing while fences are told by completion flags. It
 * begins when the first call enqueues work, or, if the stream was not known to be complete by then, when the
 * poller last saw its value before pending. It ends when the poller sees the flag of the fence written. So
 * the span that timers would measure lies within it. If the poller has not looked at one of the two values,
 * nothing is known.
 *
 * In a capture nothing is recorded: the span begins where the captured work is launched. The same holds while
 * the user captures the stream.
 *
 * A span is read once its work is complete, later than its tick. A timer that is on a stream is not
 * destroyed: a span that is dropped too early is kept until the system is destroyed.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/stack.h"
#include "base/status.h"
#include "streams/device.h"
#include "streams/system.h"

/* An enqueueing that takes longer has waited: for room in the launch queue, or for a copy of pageable memory.
 */
#define ENQUEUEING_NS 50000

struct wr_span {
	struct wr_system *system;
	int device;
	void *begin, *end;   /* timers of the backend; NULL: none */
	weir_stream *stream; /* that it is armed for, or NULL */
	bool begun;          /* `begin` is recorded, or that has failed */
	bool on_stream;      /* a timer was recorded and was not read since */
	weir_status failure; /* of a record, and its text */
	char why[160];
	int64_t blocked;
	struct wr_span *next; /* in system->spans */

	/* Without timers. */
	int64_t enqueued_at;    /* before the first call */
	uint64_t last;          /* of the stream by then */
	uint64_t before, value; /* 0, or `last` if that was not complete by then; the end, 0: not recorded */
	weir_stream *fenced;    /* the stream of these values */
};

bool wr_system_times(const struct wr_system *system)
{
	return wr_device_has_timers(system);
}

/* --- life --- */

static void span_free(struct wr_span *span)
{
	if (span->begin)
		wr_device_timer_destroy(span->system, span->begin);
	if (span->end)
		wr_device_timer_destroy(span->system, span->end);
	wr_free(span);
}

weir_status wr_span_create(struct wr_system *system, int device, struct wr_span **out)
{
	struct wr_span *span = wr_alloc(1, sizeof *span);
	weir_status status;

	if (!span)
		return WEIR_E_NOMEM;
	span->system = system;
	span->device = device;
	status = wr_device_timer_create(system, device, &span->begin);
	if (!status)
		status = wr_device_timer_create(system, device, &span->end);
	if (status) {
		span_free(span);
		return status;
	}
	*out = span;
	return WEIR_OK;
}

weir_status wr_span_create_untimed(struct wr_system *system, int device, struct wr_span **out)
{
	struct wr_span *span = wr_alloc(1, sizeof *span);

	if (!span)
		return WEIR_E_NOMEM;
	span->system = system;
	span->device = device;
	wr_store_relaxed(&system->poller.notes, true);
	*out = span;
	return WEIR_OK;
}

bool wr_span_timed(const struct wr_span *span)
{
	return span->begin != NULL;
}

void wr_span_drop(struct wr_span *span)
{
	if (!span)
		return;
	if (span->stream)
		span->stream->span = NULL;
	span->stream = NULL;
	if (span->on_stream)
		wr_stack_push(&span->system->spans, span, next);
	else
		span_free(span);
}

void wr_spans_finish(struct wr_system *system)
{
	struct wr_span *span = wr_exchange(&system->spans, NULL);

	while (span) {
		struct wr_span *next = span->next;

		span_free(span);
		span = next;
	}
}

int wr_span_device(const struct wr_span *span)
{
	return span->device;
}

/* --- a tick --- */

void wr_span_arm(struct wr_span *span, weir_stream *stream)
{
	span->stream = stream;
	span->begun = false;
	span->failure = WEIR_OK;
	span->blocked = 0;
	stream->span = span;
}

/* Not again once it has failed. */
static void span_record(struct wr_span *span, void *timer)
{
	weir_stream *stream = span->stream;
	weir_status status;

	if (!timer)
		return;
	status = wr_device_timer_record(span->system, span->device, wr_load(&stream->native), timer);
	span->on_stream |= !status;
	if (!status)
		return;
	span->failure = status;
	snprintf(span->why, sizeof span->why, "%s", weir_last_error());
}

/* Outside of captures, work that is captured now is not run now. */
int64_t wr_span_enter(weir_stream *stream)
{
	struct wr_span *span = stream->span;

	if (!span->begun && !stream->capture && !wr_stream_capturing(stream)) {
		span->begun = true;
		span_record(span, span->begin);
		span->last = wr_load(&stream->submitted);
		span->before = wr_load(&stream->completed) < span->last ? span->last : 0;
		return span->enqueued_at = wr_now();
	}
	return wr_now();
}

void wr_span_leave(weir_stream *stream, int64_t since)
{
	int64_t spent = wr_now() - since;

	if (spent > ENQUEUEING_NS)
		stream->span->blocked += spent;
}

bool wr_span_end(struct wr_span *span)
{
	if (!span->stream)
		return span->begun;
	if (span->begun && !span->failure)
		span_record(span, span->end);
	span->stream->span = NULL;
	span->stream = NULL;
	return span->begun;
}

void wr_span_note_fence(struct wr_span *span, weir_stream *stream)
{
	uint64_t value = wr_load(&stream->submitted);

	span->fenced = stream;
	span->value = value > span->last ? value : 0;
}

/*
 * When the poller saw the value, which is complete; *since: when it last saw it pending. Returns false if it
 * did not look. The caller owns the stream, so that the event is not recorded again meanwhile.
 */
static bool value_seen(weir_stream *stream, uint64_t value, int64_t *since, int64_t *seen_at)
{
	const struct wr_event *event = wr_stream_event(stream, value);

	*seen_at = wr_load_relaxed(&event->seen_at);
	*since = *seen_at - wr_load_relaxed(&event->seen_late);
	return wr_load(&event->value) == value && *seen_at >= wr_load_relaxed(&event->recorded_at);
}

static weir_status span_read_seen(const struct wr_span *span, struct wr_span_times *times)
{
	int64_t since, seen_at;

	if (wr_load(&span->fenced->completed) < span->value)
		return WEIR_E_BUSY;
	times->begin = span->enqueued_at;
	times->known = span->value && value_seen(span->fenced, span->value, &since, &times->end);
	if (!times->known || !span->before)
		return WEIR_OK;
	times->known = value_seen(span->fenced, span->before, &since, &seen_at);
	if (since > times->begin)
		times->begin = since;
	return WEIR_OK;
}

weir_status wr_span_read(struct wr_span *span, struct wr_span_times *out)
{
	struct wr_span_times times = {.blocked = span->blocked, .known = true};
	weir_status status;

	if (!span->begin)
		status = span_read_seen(span, &times);
	else if (span->failure)
		return wr_fail(span->failure, "%s", span->why);
	else
		status = wr_device_timer_read(span->system, span->device, span->begin, span->end,
					      &times.begin, &times.end);
	if (status)
		return status;
	span->on_stream = false;
	*out = times;
	return WEIR_OK;
}

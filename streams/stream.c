/*
 * A stream: fences on its timeline, the calls of its owner and queries of its progress, copies, and when the
 * device worked for a tick.
 *
 * The live reference (S4, E2). `live_until` is the value until which the stream holds one, or 0.
 * wr_stream_begin_tick sets it to the next value with the bit IN_TICK, and takes a reference if it was 0; a
 * record moves it to the recorded value; the thread that sees this value or a later one complete sets it to 0
 * and drops the reference. All of these are read-modify-writes of one word, so each reference is dropped
 * once. After a tick that enqueued nothing, `live_until` keeps that bit, and the loop drops the reference
 * (wr_stream_drop_ref_if_complete). If that tick was merely slow, its record takes a new reference; its
 * worker holds one meanwhile. The bit makes the value of a tick that began and a recorded value differ, so
 * that a thread about to drop the first does not drop the second.
 *
 * Calls of a program outside of ticks. On real threads they are the same as in a tick. A simulated world runs
 * its fibers in its own order, so a call from outside is run as a fiber of the world, whose time goes on
 * meanwhile. Native streams of the program exist with the cuda backend only.
 */
#include "streams/stream.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/stack.h"
#include "base/status.h"
#include "base/struct.h"
#include "streams/system.h"

/*
 * === fences ===
 *
 * A fence names a value on the timeline of a stream. `completed`, the highest value known to be
 * complete, answers most queries with one load.
 *
 * An event may be recorded again for a later value while another thread queries it for the old one. The
 * owner changes the event's `value` before that, and only once the old value was seen complete. So if `value`
 * differs after the query, the old value is complete.
 *
 * The events of a stream are a ring with one event per timeline value. A full ring is replaced by a larger
 * one; the older rings keep the values below the new ring's `first`.
 */

/* --- events --- */

struct wr_event_ring *wr_event_ring_make(weir_stream *stream, uint64_t size, uint64_t first)
{
	struct wr_system *system = stream->system;
	struct wr_event_ring *ring = wr_alloc(1, sizeof *ring + size * sizeof *ring->events);

	if (!ring)
		return NULL;
	ring->first = first;
	for (ring->size = 0; ring->size < size; ring->size++)
		if (wr_device_event_create(system, stream->spec.device, &ring->events[ring->size].native))
			break;
	if (ring->size == size)
		return ring;
	while (ring->size)
		wr_device_event_destroy(system, ring->events[--ring->size].native);
	wr_free(ring);
	return NULL;
}

void wr_event_rings_free(weir_stream *stream)
{
	struct wr_event_ring *ring = wr_load(&stream->ring);

	while (ring) {
		struct wr_event_ring *older = ring->older;

		for (uint64_t i = 0; i < ring->size; i++)
			wr_device_event_destroy(stream->system, ring->events[i].native);
		wr_free(ring);
		ring = older;
	}
}

struct wr_event *wr_stream_event(weir_stream *stream, uint64_t value)
{
	struct wr_event_ring *ring = wr_load_acquire(&stream->ring);

	while (value < ring->first)
		ring = ring->older;
	return &ring->events[value % ring->size];
}

/* Needs a write for this very value: that of a later value may come long after this one is complete. */
bool wr_stream_has_flag(weir_stream *stream, uint64_t value)
{
	return wr_load(&stream->flag_value) >= value &&
	       wr_load(&wr_stream_event(stream, value)->marks) & WR_EVENT_FLAG;
}

bool wr_stream_is_early(weir_stream *stream, uint64_t value)
{
	return wr_load(&wr_stream_event(stream, value)->marks) & WR_EVENT_EARLY;
}

void wr_stream_mark_early(weir_stream *stream, uint64_t value)
{
	struct wr_event *event = wr_stream_event(stream, value);

	if (wr_load(&event->value) == value) /* else it was reused, so the value is complete */
		wr_store(&event->marks, wr_load(&event->marks) | WR_EVENT_EARLY);
}

/* --- lookup --- */

weir_stream *wr_stream_at(struct wr_system *system, uint32_t index)
{
	struct wr_page *page = wr_load_acquire(&system->table[index / WR_PAGE]);

	return page ? wr_load_acquire(&page->streams[index % WR_PAGE]) : NULL;
}

weir_stream *wr_stream_find(struct wr_system *system, uint64_t id)
{
	weir_stream *stream = id ? wr_stream_at(system, id & 0xffff) : NULL; /* 0: has no id so far */

	return stream && wr_load(&stream->id) == id ? stream : NULL;
}

_Static_assert(0x10000 == WR_PAGES * WR_PAGE, "any index of an id has its place in the table");

static uint32_t fence_index(weir_fence fence)
{
	return fence.stream & 0xffff;
}

/* Returns true if this system gave out the id; its stream may have been recycled since. */
static bool fence_is_ours(struct wr_system *system, weir_fence fence)
{
	uint64_t serial = fence.stream >> 16 & 0xffffffff;

	return fence.stream >> 48 == system->serial && serial && serial <= wr_load(&system->serials) &&
	       fence_index(fence) < wr_load(&system->count);
}

/* Of a fence that is not of an open stream, or has no value of it. */
__attribute__((noinline)) static weir_status find_other(struct wr_system *system, weir_fence fence,
							weir_stream **out)
{
	weir_stream *stream;

	*out = NULL;
	if (!fence.stream && !fence.value)
		return WEIR_OK;
	if (wr_fence_is_promise(fence))
		return wr_promise_check(system, fence);
	if (!fence.value || !fence_is_ours(system, fence))
		return wr_fail(WEIR_E_INVALID, "fence {%#llx, %llu} was never recorded in this graph",
			       (unsigned long long)fence.stream, (unsigned long long)fence.value);
	stream = wr_stream_at(system, fence_index(fence));
	if (wr_load(&stream->id) != fence.stream)
		return WEIR_OK; /* the id was recycled, and a stream is drained before that */
	if (fence.value > wr_load(&stream->submitted))
		return wr_fail(WEIR_E_INVALID, "timeline value %llu of the stream of '%s' was never recorded",
			       (unsigned long long)fence.value, wr_load(&stream->owner));
	*out = stream;
	return WEIR_OK;
}

/* An id that some stream has by now was given out by this system, and not recycled. */
static inline weir_status fence_find(struct wr_system *system, weir_fence fence, weir_stream **out)
{
	weir_stream *stream = wr_stream_find(system, fence.stream);

	if (!stream || !fence.value || fence.value > wr_load(&stream->submitted))
		return find_other(system, fence, out);
	*out = stream;
	return WEIR_OK;
}

weir_status wr_fence_find(struct wr_system *system, weir_fence fence, weir_stream **out)
{
	return fence_find(system, fence, out);
}

weir_status wr_fence_check(struct wr_system *system, weir_fence fence)
{
	weir_stream *stream;

	return wr_fence_find(system, fence, &stream);
}

weir_status wr_fences_each_pending(struct wr_system *system, const weir_fence *fences, size_t n,
				   weir_status (*fn)(weir_stream *stream, uint64_t value, void *arg),
				   void *arg)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < n && !status; i++) {
		weir_stream *stream;

		status = wr_fence_find(system, fences[i], &stream);
		if (!status && stream && fences[i].value > wr_load(&stream->completed))
			status = fn(stream, fences[i].value, arg);
	}
	return status;
}

/* --- queries --- */

void wr_stream_note_complete(weir_stream *stream, uint64_t value)
{
	uint64_t seen = wr_load(&stream->completed);

	while (seen < value && !wr_cas(&stream->completed, &seen, value))
		;
	wr_stream_drop_ref_if_complete(stream);
}

/* ns: after this long without the flag written, the device is queried as well. */
#define FLAG_TIMEOUT 50000000

/*
 * Returns true if the flag alone answers: it was written up to the value (*status stays OK), or a write for
 * this very value is still pending (BUSY). Returns false if the device must be queried. A pending write for a
 * later value only says nothing about this one.
 */
static bool flag_answers(weir_stream *stream, uint64_t value, weir_status *status)
{
	_Atomic uint32_t *word = wr_load(&stream->word);
	struct wr_event *event = wr_stream_event(stream, value);

	if (!word || wr_load(&stream->flag_value) < value)
		return false;
	if ((int32_t)(wr_load(word) - (uint32_t)value) >= 0)
		return true;
	if (!wr_stream_has_flag(stream, value) ||
	    wr_now() - wr_load_relaxed(&event->recorded_at) >= FLAG_TIMEOUT)
		return false;
	*status = WEIR_E_BUSY;
	return true;
}

static weir_status stream_query(weir_stream *stream, uint64_t value)
{
	struct wr_system *system = stream->system;
	struct wr_event *event = wr_stream_event(stream, value);
	weir_status status = WEIR_OK;

	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (flag_answers(stream, value, &status))
		;
	else if (wr_load(&event->value) == value)
		status = wr_device_query(system, event->native);
	if (status == WEIR_E_BUSY && wr_load(&event->value) != value)
		status = WEIR_OK;
	if (!status)
		wr_stream_note_complete(stream, value);
	return status;
}

weir_status wr_fence_query(struct wr_system *system, weir_fence fence)
{
	weir_stream *stream;
	weir_status status;

	if (wr_fence_is_promise(fence))
		return wr_promise_query(system, fence);
	status = fence_find(system, fence, &stream);
	if (status || !stream || fence.value <= wr_load(&stream->completed))
		return status;
	return stream_query(stream, fence.value);
}

bool wr_fence_known_complete(struct wr_system *system, weir_fence fence)
{
	weir_stream *stream;

	if (wr_fence_is_promise(fence))
		return !wr_promise_query(system, fence);
	return !wr_fence_find(system, fence, &stream) &&
	       (!stream || fence.value <= wr_load(&stream->completed));
}

/*
 * A fence that names no work of this system (INVALID) protects no memory; after any other failed query the
 * work may still run. On a lost device nothing completes any more, so it is enough that nothing runs there.
 * If the system failed while its device goes on (a lost callback), the device is queried all the same.
 */
bool wr_fence_may_free(struct wr_system *system, weir_fence fence)
{
	struct wr_event *event;
	weir_stream *stream;
	weir_status status;

	if (wr_fence_is_promise(fence)) /* if it failed, its work is over all the same */
		return wr_promise_over(system, fence);
	status = wr_fence_query(system, fence);
	if (status != WEIR_E_DEVICE)
		return !status || status == WEIR_E_INVALID;
	if (wr_device_lost(system) || wr_fence_find(system, fence, &stream) || !stream)
		return true;
	event = wr_stream_event(stream, fence.value);
	return wr_load(&event->value) != fence.value || !wr_device_query(system, event->native);
}

/* --- an event for a new value --- */

static bool value_complete(weir_stream *stream, uint64_t value)
{
	weir_fence fence = {wr_load(&stream->id), value};

	return !wr_fence_query(stream->system, fence);
}

/*
 * Returns the event of the new value if it can be recorded again: its old value is complete. Returns
 * NULL if that is pending or the device failed. A query costs as much as a record, so the value half a ring
 * later is queried first: if that is complete, half a ring is free.
 */
static struct wr_event *ring_free_event(weir_stream *stream, struct wr_event_ring *ring, uint64_t value)
{
	struct wr_event *event = &ring->events[value % ring->size];
	uint64_t old = wr_load(&event->value);

	if (!old || old == value || old <= wr_load(&stream->completed))
		return event;
	if (value_complete(stream, old + ring->size / 2) || value_complete(stream, old))
		return event;
	return NULL;
}

static struct wr_event_ring *ring_enlarge(weir_stream *stream, uint64_t size, uint64_t first)
{
	struct wr_event_ring *larger = wr_event_ring_make(stream, size, first);

	if (!larger)
		return NULL;
	larger->older = wr_load(&stream->ring);
	wr_store_release(&stream->ring, larger);
	return larger;
}

#define VALUES_RESERVED_MOST 1024

weir_status wr_stream_reserve(weir_stream *stream, size_t values)
{
	uint64_t size = wr_load(&stream->ring)->size,
		 wanted = values < VALUES_RESERVED_MOST ? values : VALUES_RESERVED_MOST;

	while (size < wanted)
		size *= 2;
	if (size == wr_load(&stream->ring)->size ||
	    ring_enlarge(stream, size, wr_load(&stream->submitted) + 1))
		return WEIR_OK;
	return wr_system_failed(stream->system) ? wr_system_failure_status(stream->system) : WEIR_E_NOMEM;
}

/* An event for a new value. Returns NULL without memory, or if the device failed. Thread: owner. */
static struct wr_event *event_ring_take(weir_stream *stream, uint64_t value)
{
	struct wr_event_ring *ring = wr_load(&stream->ring), *larger;
	struct wr_event *event = ring_free_event(stream, ring, value);

	if (event || wr_system_failed(stream->system))
		return event;
	larger = ring_enlarge(stream, ring->size * 2, value);
	return larger ? &larger->events[value % larger->size] : NULL;
}

/* --- waiting --- */

struct wait_query {
	struct wr_system *system;
	weir_fence fence;
	weir_status status;
};

static bool query_answered(void *arg)
{
	struct wait_query *query = arg;

	query->status = wr_fence_query(query->system, query->fence);
	return query->status != WEIR_E_BUSY;
}

weir_status wr_fence_wait(struct wr_system *system, weir_fence fence, int64_t until)
{
	struct wait_query query = {system, fence, WEIR_E_BUSY};

	if (!query_answered(&query))
		wr_system_sleep_until(system, query_answered, &query, until);
	if (query.status != WEIR_E_BUSY)
		return query.status;
	return wr_fail(WEIR_E_TIMEOUT, "the work of '%s' is not complete yet",
		       wr_fence_producer(system, fence, NULL));
}

const char *wr_fence_producer(struct wr_system *system, weir_fence fence, int64_t *age_ns)
{
	weir_stream *stream;
	struct wr_event *event;

	if (age_ns)
		*age_ns = 0;
	if (wr_fence_is_promise(fence))
		return wr_promise_owner(system, fence, age_ns);
	if (wr_fence_find(system, fence, &stream) || !stream)
		return "?";
	event = wr_stream_event(stream, fence.value);
	if (age_ns && wr_load(&event->value) == fence.value)
		*age_ns = wr_system_now(system) - wr_load_relaxed(&event->recorded_at);
	return wr_load(&stream->owner);
}

/* === the owner's calls, and progress === */

/* --- the live reference --- */

enum { IN_TICK = 1 };

static uint64_t live_word(uint64_t value)
{
	return value << 1;
}

/* The reference is taken before the word is stored: a thread that sees the word may drop it at once. */
static void live_ref_take(weir_stream *stream, uint64_t word)
{
	struct wr_waker *waker = wr_load(&stream->system->waker);
	uint64_t live = wr_load(&stream->live_until);

	if (!stream->in_tick || !waker)
		return;
	while (live)
		if (live == word || wr_cas(&stream->live_until, &live, word))
			return; /* the stream keeps the reference it has */
	waker->take(waker);
	wr_store(&stream->live_until, word); /* from 0 only the owner changes it */
}

void wr_stream_begin_tick(weir_stream *stream)
{
	stream->in_tick = true;
	live_ref_take(stream, live_word(wr_load(&stream->submitted) + 1) | IN_TICK);
	wr_watch_wake(stream->system);
}

void wr_stream_note_tick(weir_stream *stream, bool took_message)
{
	if (took_message || !wr_load_relaxed(&stream->system->draining))
		wr_store_relaxed(&stream->drain_until, wr_load(&stream->submitted));
}

void wr_stream_drop_ref_if_complete(weir_stream *stream)
{
	uint64_t live = wr_load(&stream->live_until), recorded = wr_load(&stream->submitted),
		 seen = wr_load(&stream->completed);
	bool idle_tick = live & IN_TICK && seen >= recorded && !wr_load(&stream->dirty);
	struct wr_waker *waker;

	if (!live || (live_word(seen) < live && !idle_tick))
		return;
	waker = wr_waker_enter(stream->system);
	if (wr_cas(&stream->live_until, &live, 0) && waker)
		waker->drop(waker);
	wr_waker_leave(stream->system);
}

void wr_stream_drop_ref(weir_stream *stream, struct wr_waker *waker)
{
	if (wr_exchange(&stream->live_until, 0))
		waker->drop(waker);
}

/* --- progress --- */

bool wr_stream_dirty(const weir_stream *stream)
{
	return wr_load(&((weir_stream *)stream)->dirty);
}

bool wr_stream_idle(weir_stream *stream)
{
	uint64_t value = wr_load(&stream->submitted);
	weir_fence fence = {wr_load(&stream->id), value};

	return !value || !wr_fence_query(stream->system, fence);
}

uint64_t wr_stream_submitted(const weir_stream *stream)
{
	return wr_load(&((weir_stream *)stream)->submitted);
}

uint64_t wr_stream_take_operations(weir_stream *stream)
{
	uint64_t operations = stream->operations;

	stream->operations = 0;
	return operations;
}

uint64_t wr_stream_wait_bit(const weir_stream *stream)
{
	return (uint64_t)1 << stream->index % 64;
}

uint64_t wr_stream_take_waits(weir_stream *stream)
{
	uint64_t waits = stream->waits;

	stream->waits = 0;
	return waits;
}

/* --- the native stream --- */

bool wr_stream_capturing(weir_stream *stream)
{
	return wr_load(&wr_load(&stream->root)->native_given) &&
	       wr_device_capturing(stream->system, stream->spec.device, wr_load(&stream->native));
}

void wr_stream_end_capture(weir_stream *stream)
{
	const weir_stream *root = wr_load(&stream->root);

	if (!root->wrapped && wr_stream_capturing(stream))
		wr_device_end_capture(stream->system, stream->spec.device, wr_load(&stream->native));
}

/*
 * Marks the stream dirty, since the caller may enqueue on the handle. The first time, waits for threads about
 * to enqueue an inline callback: it must not be captured (signal.c).
 */
void *weir_stream_native(const weir_stream *stream)
{
	weir_stream *root = wr_load(&((weir_stream *)stream)->root);

	if (!stream->system->backend->native_streams)
		return NULL;
	if (stream->capture) {
		((weir_stream *)stream)->queue_given = true;
		return stream->queue;
	}
	wr_store(&((weir_stream *)stream)->dirty, true);
	if (stream->span)
		(void)wr_span_enter((weir_stream *)stream);
	if (!wr_load(&root->native_given)) {
		wr_store(&root->native_given, true);
		while (wr_load(&root->arming_inline))
			wr_thread_yield();
	}
	return wr_load(&((weir_stream *)stream)->native);
}

void *wr_stream_handle(const weir_stream *stream)
{
	return stream->system->backend->native_streams ? stream->queue : NULL;
}

uint32_t wr_stream_number(const weir_stream *stream)
{
	return wr_load(&((weir_stream *)stream)->root)->index;
}

int weir_stream_device(const weir_stream *stream)
{
	return stream->spec.device;
}

uint64_t weir_stream_id(const weir_stream *stream)
{
	return wr_load(&((weir_stream *)stream)->id);
}

static void *queue_of(const weir_stream *stream)
{
	return wr_load(&((weir_stream *)stream)->native);
}

bool weir_stream_same(const weir_stream *a, const weir_stream *b)
{
	return a == b ||
	       (a->system == b->system && a->spec.device == b->spec.device && queue_of(a) == queue_of(b));
}

/* --- calls from outside of a simulated world --- */

struct outside_call {
	weir_stream *stream;
	const weir_kernel *kernel;
	const void *arguments;
	size_t bytes;
	weir_fence fence, *out;
	const weir_copy *copies;
	size_t count;
	unsigned flags;
};

static weir_status call_in_world(weir_status (*fn)(void *arg), struct outside_call call)
{
	return wr_device_enter_call(call.stream->system, fn, &call);
}

static weir_status launch_in_world(void *arg)
{
	const struct outside_call *call = arg;

	return weir_stream_launch(call->stream, call->kernel, call->arguments, call->bytes);
}

static weir_status record_in_world(void *arg)
{
	const struct outside_call *call = arg;

	return weir_stream_record(call->stream, call->out);
}

static weir_status wait_in_world(void *arg)
{
	const struct outside_call *call = arg;

	return weir_stream_wait(call->stream, call->fence);
}

static weir_status copies_in_world(void *arg)
{
	const struct outside_call *call = arg;

	return weir_stream_copies(call->stream, call->copies, call->count, call->flags, call->out);
}

/* --- work --- */

/* Callers often pass on the NULL of a stream call that failed; the text includes that call's error. */
static weir_status fail_null(void)
{
	const char *why = weir_last_error();

	return wr_fail(WEIR_E_INVALID, "a stream is needed, NULL was given; this thread's last error: %s",
		       *why ? why : "none");
}

/* Not inlined: a stream without a span pays one branch. */
__attribute__((noinline)) static weir_status launch_in_span(weir_stream *stream, const weir_kernel *kernel,
							    const void *arguments, size_t bytes)
{
	int64_t since = wr_span_enter(stream);
	weir_status status = wr_device_launch(stream->system, stream->spec.device, stream->queue, kernel,
					      arguments, bytes);

	wr_span_leave(stream, since);
	return status;
}

weir_status weir_stream_launch(weir_stream *stream, const weir_kernel *kernel, const void *arguments,
			       size_t bytes)
{
	struct wr_system *system;

	if (!stream)
		return fail_null();
	if (kernel->size != sizeof(*kernel)) {
		weir_status status = wr_struct_known("weir_kernel", kernel, sizeof(*kernel));
		if (status)
			return status;
	}
	system = stream->system;
	if (wr_device_outside(system))
		return call_in_world(launch_in_world, (struct outside_call){.stream = stream,
									    .kernel = kernel,
									    .arguments = arguments,
									    .bytes = bytes});
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (bytes > WEIR_ARGUMENTS_MAX)
		return wr_fail(WEIR_E_INVALID, "kernel '%s' is given %zu bytes of arguments, at most %d go",
			       kernel->name, bytes, WEIR_ARGUMENTS_MAX);
	/* Relaxed: other threads rely on it once they know, in order, of what the launch did. */
	wr_store_relaxed(&stream->dirty, true);
	stream->operations++;
	if (stream->span)
		return launch_in_span(stream, kernel, arguments, bytes);
	return wr_device_launch(system, stream->spec.device, stream->queue, kernel, arguments, bytes);
}

/* --- fences --- */

/* The end of the capture fails with the first text. */
static weir_status refuse_in_capture(weir_stream *stream, const char *why)
{
	if (!stream->refused)
		stream->refused = why;
	return wr_fail(WEIR_E_UNSUPPORTED, "%s", why);
}

/*
 * Returns true if the stream needs no wait: same queue, already complete, or waited for before.
 * If `other` was recycled meanwhile it was drained, and either answer is right.
 */
static bool is_ordered(weir_stream *stream, weir_fence fence, const weir_stream *other)
{
	const weir_fence *waited = &stream->waited[other->index % WR_WAITED];

	return weir_stream_same(stream, other) ||
	       fence.value <= wr_load(&((weir_stream *)other)->completed) ||
	       (waited->stream == fence.stream && waited->value >= fence.value);
}

weir_status weir_stream_wait(weir_stream *stream, weir_fence fence)
{
	struct wr_system *system;
	weir_stream *other;
	weir_status status;

	if (!stream)
		return fail_null();
	system = stream->system;
	if (wr_device_outside(system))
		return call_in_world(wait_in_world, (struct outside_call){.stream = stream, .fence = fence});
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (stream->capture) /* replayed, it would wait for the same fence again */
		return refuse_in_capture(
			stream, "a capture cannot wait for work from outside: wait before the replay, or "
				"use weir_context_synchronize_streams");
	if (wr_fence_is_promise(fence))
		return wr_promise_refuse_device(system, fence);
	status = wr_fence_find(system, fence, &other);
	if (status || !other)
		return status;
	stream->waits |= wr_stream_wait_bit(other);
	if (is_ordered(stream, fence, other))
		return WEIR_OK;
	wr_store(&stream->dirty, true); /* the last value does not cover this wait */
	stream->operations++;
	status = wr_device_wait(system, stream->spec.device, wr_load(&stream->native),
				wr_stream_event(other, fence.value)->native);
	if (!status)
		stream->waited[other->index % WR_WAITED] = fence;
	return status;
}

/* An event recorded in a capture never completes, and a wait for its fence would never end. */
static weir_status refuse_capturing(weir_stream *stream)
{
	if (stream->capture)
		return refuse_in_capture(stream, "a capture has no fences: record after the replay, or use "
						 "weir_context_synchronize_streams");
	if (!wr_stream_capturing(stream))
		return WEIR_OK;
	return wr_fail(WEIR_E_UNSUPPORTED,
		       "the stream of '%s' is being captured: end the capture before the fence, "
		       "which comes at the latest when the tick ends",
		       wr_load(&stream->owner));
}

weir_status weir_stream_record(weir_stream *stream, weir_fence *out)
{
	struct wr_system *system;
	struct wr_event *event;
	uint64_t value;
	weir_status status;

	if (!stream)
		return fail_null();
	system = stream->system;
	if (wr_device_outside(system))
		return call_in_world(record_in_world, (struct outside_call){.stream = stream, .out = out});
	value = wr_load(&stream->submitted) + 1;
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	status = refuse_capturing(stream);
	if (status)
		return status;
	event = event_ring_take(stream, value);
	if (!event)
		return wr_system_failed(system) ? wr_system_failure_status(system) : WEIR_E_NOMEM;
	/* Before the event is reused: a query that sees the new record must see it, too. */
	wr_store_release(&event->value, value);
	wr_store_relaxed(&event->marks, 0); /* this and the next two relaxed ones: published by `submitted` */
	wr_store_release(&event->recorded_at, wr_now());
	status = wr_device_record(system, stream->spec.device, wr_load(&stream->native), event->native);
	if (status)
		return status;
	stream->operations++;
	live_ref_take(stream, live_word(value));
	wr_store_relaxed(&stream->dirty, false);
	wr_store_relaxed(&stream->flag_after_record, false);
	wr_store(&stream->submitted, value);
	wr_watch_wake(system);
	*out = (weir_fence){wr_load(&stream->id), value};
	return WEIR_OK;
}

/* --- the end of all work on a stream, also of a system that failed --- */

/*
 * Records the end of work that was enqueued after the last record, because a record failed, or the system did
 * while its device goes on. A captured stream is left as it is.
 */
static bool end_recorded(weir_stream *stream)
{
	uint64_t value = wr_load(&stream->submitted) + 1;
	struct wr_event *event = wr_stream_event(stream, value);
	weir_fence before = {wr_load(&stream->id), wr_load(&event->value)}; /* that the event stands for */

	if ((!wr_load(&stream->dirty) && !wr_load(&stream->flag_after_record)) || wr_stream_capturing(stream))
		return true;
	if (before.value && before.value != value && !wr_fence_may_free(stream->system, before))
		return false;
	wr_store(&event->value, value); /* as in weir_stream_record */
	if (wr_device_record(stream->system, stream->spec.device, wr_load(&stream->native), event->native))
		return false;
	wr_store(&event->marks, 0);
	wr_store(&stream->dirty, false);
	wr_store(&stream->flag_after_record, false);
	wr_store(&stream->submitted, value);
	return true;
}

bool wr_stream_record_end(weir_stream *stream, weir_fence *out)
{
	struct wr_last_error error = *wr_error_here();
	bool recorded;

	wr_store(&stream->dirty, true); /* uses of its native handle cannot be seen */
	wr_stream_end_capture(stream);
	recorded = !wr_stream_capturing(stream) && end_recorded(stream);
	*wr_error_here() = error;
	if (recorded)
		*out = (weir_fence){wr_load(&stream->id), wr_load(&stream->submitted)};
	return recorded;
}

bool wr_stream_may_free(weir_stream *stream)
{
	weir_fence fence;

	if (wr_device_lost(stream->system))
		return true;
	if (!end_recorded(stream))
		return false;
	fence = (weir_fence){wr_load(&stream->id), wr_load(&stream->submitted)};
	return !fence.value || wr_fence_may_free(stream->system, fence);
}

/* --- native streams of the program --- */

weir_status wr_fence_enqueue(struct wr_system *system, weir_fence fence, int device, void *native)
{
	struct wr_event *event;
	weir_stream *stream;
	weir_status status;

	if (!system->backend->native_streams)
		return wr_fail(WEIR_E_UNSUPPORTED,
			       "the %s backend has no native streams: use the cuda backend",
			       system->backend->name);
	status = wr_device_check(system, device);
	if (!status && wr_fence_is_promise(fence))
		return wr_promise_refuse_device(system, fence);
	if (!status)
		status = wr_fence_find(system, fence, &stream);
	if (status || !stream || fence.value <= wr_load(&stream->completed))
		return status;
	event = wr_stream_event(stream, fence.value);
	/*
	 * If the event was recorded again the value was seen complete. If
	 * that happens after this check, the wait also covers later work.
	 */
	if (wr_load(&event->value) != fence.value)
		return WEIR_OK;
	return wr_device_wait(system, device, native, event->native);
}

/*
 * === copies ===
 *
 * A list of copies is checked as a whole before its first copy is enqueued, so only the device can refuse one
 * in the middle.
 */

/* --- enqueueing --- */

static weir_status device_copy(weir_stream *stream, const weir_copy *copy)
{
	struct wr_system *system = stream->system;

	return copy->rows > 1 ? wr_device_copy_rows(system, stream->spec.device, stream->queue, copy)
			      : wr_device_copy(system, stream->spec.device, stream->queue, copy->to,
					       copy->from, copy->row_bytes);
}

/* Not inlined: a stream without a span pays one branch. */
__attribute__((noinline)) static weir_status copy_in_span(weir_stream *stream, const weir_copy *copy)
{
	int64_t since = wr_span_enter(stream);
	weir_status status = device_copy(stream, copy);

	wr_span_leave(stream, since);
	return status;
}

/* --- the check of a list --- */

/* From the first to the last byte of a side; 0 if that does not fit in the address space. */
static size_t span_of(const weir_copy *copy, const void *memory, size_t stride)
{
	size_t steps = copy->rows > 1 ? copy->rows - 1 : 0, left = UINTPTR_MAX - (uintptr_t)memory;

	if (copy->row_bytes > left || (steps && stride > (left - copy->row_bytes) / steps))
		return 0;
	return steps * stride + copy->row_bytes;
}

/* May miss an overlap if the strides differ. */
static bool sides_overlap(const weir_copy *copy, size_t to_span, size_t from_span)
{
	uintptr_t to = (uintptr_t)copy->to, from = (uintptr_t)copy->from;
	size_t distance = to > from ? to - from : from - to, stride = copy->to_stride, shift, rest;

	if (distance >= (to > from ? from_span : to_span))
		return false;
	if (copy->rows <= 1 || stride != copy->from_stride)
		return copy->rows <= 1;
	shift = distance /
		stride; /* the rows of one side lie so many before those of the other, and `rest` bytes */
	rest = distance % stride;
	return (rest < copy->row_bytes && shift < copy->rows) ||
	       (stride - rest < copy->row_bytes && shift + 1 < copy->rows);
}

static weir_status check_side(const weir_copy *copy, size_t i, const char *side, const void *memory,
			      size_t stride)
{
	if (!memory)
		return wr_fail(WEIR_E_INVALID, "copies[%zu].%s is NULL for rows of %zu bytes", i, side,
			       copy->row_bytes);
	if (copy->rows > 1 && stride < copy->row_bytes)
		return wr_fail(WEIR_E_INVALID, "copies[%zu].%s_stride is %zu, less than a row of %zu bytes",
			       i, side, stride, copy->row_bytes);
	if (copy->rows > 1 && stride > WR_STRIDE_MAX)
		return wr_fail(WEIR_E_INVALID,
			       "copies[%zu].%s_stride is %zu, at most %d go: copy such rows one by one", i,
			       side, stride, WR_STRIDE_MAX);
	if (!span_of(copy, memory, stride))
		return wr_fail(WEIR_E_INVALID, "copies[%zu].%s: %zu rows end beyond the address space", i,
			       side, copy->rows);
	return WEIR_OK;
}

static weir_status check_pageable(struct wr_system *system, size_t i, const char *side, const void *memory)
{
	bool pageable;
	weir_status status = wr_device_pageable(system, memory, &pageable);

	if (status || !pageable)
		return status;
	return wr_fail(WEIR_E_UNSUPPORTED,
		       "copies[%zu].%s is pageable memory: use memory of weir_context_create_tensor or "
		       "cudaHostRegister",
		       i, side);
}

static weir_status check_copy(struct wr_system *system, const weir_copy *copy, size_t i, unsigned flags)
{
	weir_status status = wr_struct_check("weir_copy", copy->size, sizeof *copy);

	if (status || !copy->row_bytes)
		return status;
	status = check_side(copy, i, "to", copy->to, copy->to_stride);
	if (!status)
		status = check_side(copy, i, "from", copy->from, copy->from_stride);
	if (status)
		return status;
	if (sides_overlap(copy, span_of(copy, copy->to, copy->to_stride),
			  span_of(copy, copy->from, copy->from_stride)))
		return wr_fail(WEIR_E_INVALID, "copies[%zu]: the bytes written are among those read", i);
	if (flags & WEIR_COPY_ASYNC)
		status = check_pageable(system, i, "to", copy->to);
	if (!status && flags & WEIR_COPY_ASYNC)
		status = check_pageable(system, i, "from", copy->from);
	return status;
}

static weir_status check_copies(struct wr_system *system, const weir_copy *copies, size_t count,
				unsigned flags)
{
	weir_status status = WEIR_OK;

	if (flags & ~(unsigned)WEIR_COPY_ASYNC)
		return wr_fail(WEIR_E_INVALID, "copies: flags 0x%x are unknown: use WEIR_COPY_ASYNC or 0",
			       flags);
	if (count && !copies)
		return wr_fail(WEIR_E_INVALID, "copies: the list is NULL for %zu copies", count);
	for (size_t i = 0; i < count && !status; i++)
		status = check_copy(system, &copies[i], i, flags);
	return status;
}

/* --- the list --- */

weir_status weir_stream_copies(weir_stream *stream, const weir_copy *copies, size_t count, unsigned flags,
			       weir_fence *out)
{
	struct wr_system *system;
	weir_status status;

	if (!stream)
		return fail_null();
	system = stream->system;
	if (wr_device_outside(system))
		return call_in_world(copies_in_world, (struct outside_call){.stream = stream,
									    .copies = copies,
									    .count = count,
									    .flags = flags,
									    .out = out});
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	status = check_copies(system, copies, count, flags);
	if (status)
		return status;
	for (size_t i = 0; i < count; i++) {
		if (!copies[i].row_bytes)
			continue;
		wr_store(&stream->dirty, true);
		stream->operations++;
		status = stream->span ? copy_in_span(stream, &copies[i]) : device_copy(stream, &copies[i]);
		if (status)
			return wr_fail(status, "copies[%zu]: %s", i, weir_last_error());
	}
	return out ? weir_stream_record(stream, out) : WEIR_OK;
}

/*
 * === spans ===
 *
 * When the device worked for a tick on one stream (T15). A span has two timers of the backend. It is
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

/*
 * Operations of a stream's owner, and queries of its progress.
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
 * meanwhile. Native events and streams of the program exist with the cuda backend only.
 */
#include "base/clock.h"
#include "base/status.h"
#include "base/struct.h"
#include "streams/device.h"
#include "streams/system.h"

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
		if (wr_cas(&stream->live_until, &live, word))
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

/*
 * The first time, waits for threads about to enqueue an inline callback: it must not be captured
 * (callback.c).
 */
static void native_expose(weir_stream *root)
{
	if (wr_load(&root->native_given))
		return;
	wr_store(&root->native_given, true);
	while (wr_load(&root->arming_inline))
		wr_thread_yield();
}

/* Marks the stream dirty, since the caller may enqueue on the handle. */
void *weir_stream_native(const weir_stream *stream)
{
	if (!stream->system->backend->native_streams)
		return NULL;
	if (stream->capture) {
		((weir_stream *)stream)->queue_given = true;
		return stream->queue;
	}
	wr_store(&((weir_stream *)stream)->dirty, true);
	if (stream->span)
		(void)wr_span_enter((weir_stream *)stream);
	native_expose(wr_load(&((weir_stream *)stream)->root));
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
};

static weir_status launch_in_world(void *arg)
{
	const struct outside_call *call = arg;

	return weir_stream_launch(call->stream, call->kernel, call->arguments, call->bytes);
}

static weir_status launch_from_outside(weir_stream *stream, const weir_kernel *kernel, const void *arguments,
				       size_t bytes)
{
	struct outside_call call = {
		.stream = stream, .kernel = kernel, .arguments = arguments, .bytes = bytes};

	return wr_device_enter_call(stream->system, launch_in_world, &call);
}

static weir_status record_in_world(void *arg)
{
	const struct outside_call *call = arg;

	return weir_stream_record(call->stream, call->out);
}

static weir_status record_from_outside(weir_stream *stream, weir_fence *out)
{
	struct outside_call call = {.stream = stream, .out = out};

	return wr_device_enter_call(stream->system, record_in_world, &call);
}

static weir_status wait_in_world(void *arg)
{
	const struct outside_call *call = arg;

	return weir_stream_wait(call->stream, call->fence);
}

static weir_status wait_from_outside(weir_stream *stream, weir_fence fence)
{
	struct outside_call call = {.stream = stream, .fence = fence};

	return wr_device_enter_call(stream->system, wait_in_world, &call);
}

/* --- work --- */

/* Callers often pass on the NULL of a stream call that failed; the text includes that call's error. */
weir_status wr_stream_fail_null(void)
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
		return wr_stream_fail_null();
	if (kernel->size != sizeof(*kernel)) {
		weir_status status = wr_struct_known("weir_kernel", kernel, sizeof(*kernel));
		if (status)
			return status;
	}
	system = stream->system;
	if (wr_device_outside(system))
		return launch_from_outside(stream, kernel, arguments, bytes);
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (bytes > WEIR_ARGUMENTS_MAX)
		return wr_fail(WEIR_E_INVALID, "kernel '%s' is given %zu bytes of arguments, at most %d go",
			       kernel->name, bytes, WEIR_ARGUMENTS_MAX);
	wr_store(&stream->dirty, true);
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

/* Replayed, it would wait for the same fence again. */
static weir_status refuse_wait(weir_stream *stream)
{
	return refuse_in_capture(stream,
				 "a capture cannot wait for work from outside: wait before the replay, or "
				 "use weir_context_synchronize_streams");
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
		return wr_stream_fail_null();
	system = stream->system;
	if (wr_device_outside(system))
		return wait_from_outside(stream, fence);
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (stream->capture)
		return refuse_wait(stream);
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
		return wr_stream_fail_null();
	system = stream->system;
	if (wr_device_outside(system))
		return record_from_outside(stream, out);
	value = wr_load(&stream->submitted) + 1;
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	status = refuse_capturing(stream);
	if (status)
		return status;
	event = wr_event_ring_take(stream, value);
	if (!event)
		return wr_system_failed(system) ? wr_system_failure_status(system) : WEIR_E_NOMEM;
	wr_store(&event->value, value); /* before the event is reused: a query of the old value must see it */
	wr_store(&event->marks, 0);
	wr_store_relaxed(&event->recorded_at, wr_now());
	status = wr_device_record(system, stream->spec.device, wr_load(&stream->native), event->native);
	if (status)
		return status;
	stream->operations++;
	live_ref_take(stream, live_word(value));
	wr_store(&stream->dirty, false);
	wr_store(&stream->flag_after_record, false);
	wr_store(&stream->submitted, value);
	wr_watch_wake(system);
	*out = (weir_fence){wr_load(&stream->id), value};
	return WEIR_OK;
}

/* --- the end of all work on a stream, when its system is destroyed --- */

/*
 * Records the end of work that was enqueued after the last record, because a record failed, or the system did
 * while its device goes on. Nothing of a capture runs, so a captured stream needs no record.
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
	if (wr_device_record(stream->system, stream->spec.device, wr_load(&stream->native), event->native))
		return false;
	wr_store(&event->value, value);
	wr_store(&event->marks, 0);
	wr_store(&stream->dirty, false);
	wr_store(&stream->flag_after_record, false);
	wr_store(&stream->submitted, value);
	return true;
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

/* --- native events and streams of the program --- */

static weir_status check_native(const struct wr_system *system, const char *what)
{
	if (system->backend->native_streams)
		return WEIR_OK;
	return wr_fail(WEIR_E_UNSUPPORTED, "the %s backend has no native %s: use the cuda backend",
		       system->backend->name, what);
}

weir_status weir_stream_wait_native(weir_stream *stream, void *event)
{
	struct wr_system *system;
	weir_status status;

	if (!stream)
		return wr_stream_fail_null();
	system = stream->system;
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	status = check_native(system, "events");
	if (status)
		return status;
	if (stream->capture)
		return refuse_wait(stream);
	if (!event)
		return wr_fail(WEIR_E_INVALID, "an event is needed, NULL was given");
	wr_store(&stream->dirty, true); /* the last value does not cover this wait */
	return wr_device_wait(system, stream->spec.device, wr_load(&stream->native), event);
}

weir_status wr_fence_enqueue(struct wr_system *system, weir_fence fence, int device, void *native)
{
	struct wr_event *event;
	weir_stream *stream;
	weir_status status = check_native(system, "streams");

	if (!status)
		status = wr_device_check(system, device);
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

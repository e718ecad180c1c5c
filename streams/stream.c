/*
 * What the owner of a stream does with it, and what is known of it.
 *
 * The live reference (S4, E2). `held` says until which point a stream holds one, or 0: begin sets it to the
 * next point, as one that is only BEGUN, and takes a reference if it was 0; record moves it to the point that
 * was recorded; whoever sees a point complete that is not below it changes it to 0 and drops the reference.
 * All of these are read-modify-writes of one word, so each take has one drop. A tick that enqueued nothing
 * leaves `held` BEGUN: the loop then gives the reference back (wr_stream_drop_ref_if_complete), and should the tick be
 * merely slow, its record takes another one: its worker holds one meanwhile. BEGUN and recorded differ, so
 * that whoever was about to let go of the first does not let go of the second.
 */
#include "base/clock.h"
#include "base/status.h"
#include "base/struct.h"
#include "streams/outside.h"
#include "streams/system.h"

/* --- the live reference --- */

enum { BEGUN = 1 };

static uint64_t until(uint64_t point)
{
	return point << 1;
}

/* The reference is taken before the word says so: whoever sees the word may give it back at once. */
static void hold(weir_stream *stream, uint64_t word)
{
	struct wr_waker *waker = wr_load(&stream->system->waker);
	uint64_t held = wr_load(&stream->held);

	if (!stream->begun || !waker)
		return;
	while (held)
		if (wr_cas(&stream->held, &held, word))
			return; /* the one it has goes on */
	waker->take(waker);
	wr_store(&stream->held, word); /* from 0 only the owner changes it */
}

void wr_stream_begin(weir_stream *stream)
{
	stream->begun = true;
	hold(stream, until(wr_load(&stream->submitted) + 1) | BEGUN);
	wr_system_added(stream->system);
}

void wr_stream_drop_ref_if_complete(weir_stream *stream)
{
	uint64_t held = wr_load(&stream->held), recorded = wr_load(&stream->submitted),
		 seen = wr_load(&stream->completed);
	bool idle_tick = held & BEGUN && seen >= recorded && !wr_load(&stream->dirty);
	struct wr_waker *waker;

	if (!held || (until(seen) < held && !idle_tick))
		return;
	waker = wr_system_enter(stream->system);
	if (wr_cas(&stream->held, &held, 0) && waker)
		waker->drop(waker);
	wr_system_leave(stream->system);
}

void wr_stream_drop_ref(weir_stream *stream, struct wr_waker *waker)
{
	if (wr_exchange(&stream->held, 0))
		waker->drop(waker);
}

/* --- what is known of it --- */

bool wr_stream_dirty(const weir_stream *stream)
{
	return wr_load(&((weir_stream *)stream)->dirty);
}

bool wr_stream_idle(weir_stream *stream)
{
	uint64_t point = wr_load(&stream->submitted);
	weir_fence fence = {wr_load(&stream->id), point};

	return !point || !wr_fence_query(stream->system, fence);
}

bool wr_stream_capturing(weir_stream *stream)
{
	const struct wr_system *system = stream->system;

	return wr_load(&wr_load(&stream->root)->exposed) && system->backend->capturing &&
	       system->backend->capturing(system->native, stream->spec.device, wr_load(&stream->native));
}

bool wr_stream_over(weir_stream *stream)
{
	weir_fence fence = {wr_load(&stream->id), wr_load(&stream->submitted)};

	return !fence.point || wr_fence_over(stream->system, fence);
}

/* The first time: a callback of ours that is on its way there must not fall into a capture (callback.c). */
static void expose(weir_stream *root)
{
	if (wr_load(&root->exposed))
		return;
	wr_store(&root->exposed, true);
	while (wr_load(&root->entering))
		wr_thread_yield();
}

/* Whoever has the handle may enqueue on it. */
void *weir_stream_native(const weir_stream *stream)
{
	if (!stream->system->backend->native_streams)
		return NULL;
	wr_store(&((weir_stream *)stream)->dirty, true);
	expose(wr_load(&((weir_stream *)stream)->root));
	return wr_load(&((weir_stream *)stream)->native);
}

int weir_stream_device(const weir_stream *stream)
{
	return stream->spec.device;
}

uint64_t weir_stream_id(const weir_stream *stream)
{
	return wr_load(&((weir_stream *)stream)->id);
}

/* --- work --- */

/* Who passes on at once what a call gave him, which was nothing, wants ticked why. */
weir_status wr_stream_missing(void)
{
	const char *why = weir_last_error();

	return wr_fail(WEIR_E_INVALID, "a stream is needed, NULL was given; this thread's last error: %s",
		       *why ? why : "none");
}

weir_status weir_stream_launch(weir_stream *stream, const weir_kernel *kernel, const void *arguments,
			       size_t bytes)
{
	struct wr_system *system;

	if (!stream)
		return wr_stream_missing();
	if (wr_struct_check("weir_kernel", kernel->size, sizeof(*kernel)))
		return WEIR_E_INVALID;
	system = stream->system;
	if (wr_system_outside(system))
		return wr_outside_launch(stream, kernel, arguments, bytes);
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (bytes > WEIR_ARGUMENTS_MAX)
		return wr_fail(WEIR_E_INVALID, "kernel '%s' is given %zu bytes of arguments, at most %d go",
			       kernel->name, bytes, WEIR_ARGUMENTS_MAX);
	wr_store(&stream->dirty, true);
	stream->items++;
	return wr_system_check(system,
			      system->backend->launch(system->native, stream->spec.device,
						      wr_load(&stream->native), kernel, arguments, bytes));
}

weir_status weir_stream_copy(weir_stream *stream, void *to, const void *from, size_t bytes)
{
	struct wr_system *system;

	if (!stream)
		return wr_stream_missing();
	system = stream->system;
	if (wr_system_outside(system))
		return wr_outside_copy(stream, to, from, bytes);
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	wr_store(&stream->dirty, true);
	stream->items++;
	return wr_system_check(system, system->backend->copy(system->native, stream->spec.device,
							    wr_load(&stream->native), to, from, bytes));
}

/* --- fences of it --- */

static void *queue_of(const weir_stream *stream)
{
	return wr_load(&((weir_stream *)stream)->native);
}

bool weir_stream_same(const weir_stream *a, const weir_stream *b)
{
	return a == b ||
	       (a->system == b->system && a->spec.device == b->spec.device && queue_of(a) == queue_of(b));
}

/*
 * In one queue the record went before. One that is somebody
 * else's by now was drained: then either answer is right.
 */
static bool ordered(weir_stream *stream, weir_fence fence, const weir_stream *other)
{
	const weir_fence *waited = &stream->waited[other->index % WR_WAITED];

	return weir_stream_same(stream, other) || fence.point <= wr_load(&((weir_stream *)other)->completed) ||
	       (waited->stream == fence.stream && waited->point >= fence.point);
}

weir_status weir_stream_wait(weir_stream *stream, weir_fence fence)
{
	struct wr_system *system;
	weir_stream *other;
	weir_status status;

	if (!stream)
		return wr_stream_missing();
	system = stream->system;
	if (wr_system_outside(system))
		return wr_outside_wait(stream, fence);
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	status = wr_fence_find(system, fence, &other);
	if (status || !other || ordered(stream, fence, other))
		return status;
	wr_store(&stream->dirty, true); /* what is recorded next means more than what was recorded last */
	stream->items++;
	status = wr_system_check(system, system->backend->wait(system->native, stream->spec.device,
							      wr_load(&stream->native),
							      wr_stream_point(other, fence.point)->event));
	if (!status)
		stream->waited[other->index % WR_WAITED] = fence;
	return status;
}

/* An event that is recorded in a capture never completes: whoever waits for the fence would wait for ever. */
static weir_status refuse_capturing(weir_stream *stream)
{
	if (!wr_stream_capturing(stream))
		return WEIR_OK;
	return wr_fail(WEIR_E_UNSUPPORTED,
		       "the stream of '%s' is being captured: end the capture before the fence, "
		       "which comes at the latest when the tick ends", wr_load(&stream->owner));
}

weir_status weir_stream_record(weir_stream *stream, weir_fence *out)
{
	struct wr_system *system;
	struct wr_point *place;
	uint64_t point;
	weir_status status;

	if (!stream)
		return wr_stream_missing();
	system = stream->system;
	if (wr_system_outside(system))
		return wr_outside_record(stream, out);
	point = wr_load(&stream->submitted) + 1;
	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	status = refuse_capturing(stream);
	if (status)
		return status;
	place = wr_event_ring_place(stream, point);
	if (!place)
		return wr_system_failed(system) ? wr_system_failure_status(system) : WEIR_E_NOMEM;
	wr_store(&place->point, point); /* before the event changes: who asks for the old point sees it */
	wr_store(&place->flag_value, false);
	wr_store_relaxed(&place->at, wr_now());
	status = wr_system_check(system, system->backend->record(system->native, stream->spec.device,
								wr_load(&stream->native), place->event));
	if (status)
		return status;
	stream->items++;
	hold(stream, until(point));
	wr_store(&stream->dirty, false);
	wr_store(&stream->flag_after_record, false);
	wr_store(&stream->submitted, point);
	wr_system_added(system);
	*out = (weir_fence){wr_load(&stream->id), point};
	return WEIR_OK;
}

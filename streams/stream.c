/*
 * Streams: opened, given back, used by their owner.
 *
 * The live reference (S4, E2). `held` says until which point a stream holds one, or 0: begin sets it to the
 * next point, as one that is only BEGUN, and takes a reference if it was 0; record moves it to the point that
 * was recorded; whoever sees a point complete that is not below it changes it to 0 and drops the reference.
 * All of these are read-modify-writes of one word, so each take has one drop. A tick that enqueued nothing
 * leaves `held` BEGUN: the loop then gives the reference back (wr_stream_let_go), and should the tick be
 * merely slow, its record takes another one: its worker holds one meanwhile. BEGUN and recorded differ, so
 * that whoever was about to let go of the first does not let go of the second.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "streams/system.h"

/* --- the table --- */

weir_stream *wr_stream_at(struct wr_system *system, uint32_t index)
{
	struct wr_page *page = wr_load_acquire(&system->table[index / WR_PAGE]);

	return page ? wr_load_acquire(&page->streams[index % WR_PAGE]) : NULL;
}

static weir_status enter_table_locked(struct wr_system *system, weir_stream *stream)
{
	uint32_t index = wr_load(&system->count);
	struct wr_page *page;

	if (index == WR_PAGES * WR_PAGE)
		return wr_fail(WEIR_E_INVALID, "more than %d streams in one graph", WR_PAGES * WR_PAGE);
	page = wr_load(&system->table[index / WR_PAGE]);
	if (!page) {
		page = wr_alloc(1, sizeof *page);
		if (!page)
			return WEIR_E_NOMEM;
		wr_store_release(&system->table[index / WR_PAGE], page);
	}
	stream->index = index;
	wr_store_release(&page->streams[index % WR_PAGE], stream);
	wr_store(&system->count, index + 1);
	return WEIR_OK;
}

/* The id is the last thing that a fence could name: from here on the stream is found. */
static void name_locked(weir_stream *stream, const char *owner)
{
	uint64_t serial = wr_fetch_add(&stream->system->serials, 1) + 1;

	for (int i = 0; i < WR_WAITED; i++)
		stream->waited[i] = (weir_fence){0, 0};
	stream->begun = false;
	stream->expected = 0;
	wr_store(&stream->owner, owner ? owner : "?");
	wr_store(&stream->dirty, false);
	wr_store(&stream->trailing, false);
	wr_store(&stream->closed, false);
	wr_store(&stream->id, stream->system->serial << 40 | serial << 16 | stream->index);
}

/* --- opening --- */

/* Asks the device, so without the lock. */
static void look_at_closed(struct wr_system *system)
{
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);

		if (wr_load(&stream->closed))
			wr_stream_idle(stream);
	}
}

/* Still dirty: its last record was refused, so nobody knows when what is on it ends. */
static bool known_drained(weir_stream *stream)
{
	return wr_load(&stream->closed) && !wr_load(&stream->dirty) && !wr_load(&stream->inlined) &&
	       wr_load(&stream->seen) >= wr_load(&stream->recorded);
}

static bool same_kind(const weir_stream *stream, const weir_stream *like)
{
	return stream->device == like->device && stream->flags == like->flags &&
	       stream->priority == like->priority && stream->wrapped == like->wrapped;
}

static weir_stream *reuse(struct wr_system *system, const weir_stream *like, const char *owner)
{
	weir_stream *found = NULL;

	look_at_closed(system);
	wr_mutex_lock(&system->lock);
	for (uint32_t i = 0; i < wr_load(&system->count) && !found; i++) {
		weir_stream *stream = wr_stream_at(system, i);

		if (same_kind(stream, like) && known_drained(stream))
			found = stream;
	}
	if (found && like->wrapped)
		found->native = like->native;
	if (found)
		name_locked(found, owner);
	wr_mutex_unlock(&system->lock);
	return found;
}

static struct wr_ring *make_ring(weir_stream *stream, uint64_t size, uint64_t first)
{
	struct wr_system *system = stream->system;
	struct wr_ring *ring = wr_alloc(1, sizeof *ring + size * sizeof *ring->points);

	if (!ring)
		return NULL;
	ring->first = first;
	for (ring->size = 0; ring->size < size; ring->size++)
		if (wr_system_note(system, system->backend->event_create(system->native, stream->device,
									 &ring->points[ring->size].event)))
			break;
	if (ring->size == size)
		return ring;
	while (ring->size)
		system->backend->event_destroy(system->native, ring->points[--ring->size].event);
	wr_free(ring);
	return NULL;
}

static void free_rings(weir_stream *stream)
{
	const struct wr_backend *backend = stream->system->backend;
	struct wr_ring *ring = wr_load(&stream->ring);

	while (ring) {
		struct wr_ring *older = ring->older;

		for (uint64_t i = 0; i < ring->size; i++)
			backend->event_destroy(stream->system->native, ring->points[i].event);
		wr_free(ring);
		ring = older;
	}
}

void wr_stream_free(weir_stream *stream)
{
	struct wr_system *system = stream->system;

	free_rings(stream);
	if (stream->native && !stream->wrapped)
		system->backend->stream_destroy(system->native, stream->native);
	wr_free(stream);
}

static weir_status make(struct wr_system *system, const weir_stream *like, const char *owner,
			weir_stream **out)
{
	weir_stream *stream = wr_alloc(1, sizeof *stream);
	weir_status status = WEIR_OK;

	if (!stream)
		return WEIR_E_NOMEM;
	*stream = (weir_stream){.system = system,
				.device = like->device,
				.priority = like->priority,
				.flags = like->flags,
				.wrapped = like->wrapped,
				.native = like->native};
	if (!stream->wrapped)
		status = wr_system_note(system, system->backend->stream_create(system->native, like->device, like->flags,
									       like->priority, NULL, &stream->native));
	if (!status) {
		wr_store(&stream->ring, make_ring(stream, WR_EVENTS, 1));
		status = wr_load(&stream->ring) ? WEIR_OK : WEIR_E_NOMEM;
	}
	if (!status) {
		wr_mutex_lock(&system->lock);
		status = enter_table_locked(system, stream);
		if (!status)
			name_locked(stream, owner);
		wr_mutex_unlock(&system->lock);
	}
	if (status)
		wr_stream_free(stream);
	else
		*out = stream;
	return status;
}

static weir_status open_like(struct wr_system *system, const weir_stream *like, const char *owner,
			     weir_stream **out)
{
	weir_stream *stream;

	if (wr_system_failed(system))
		return wr_system_dead(system);
	if (like->device < 0 || like->device >= system->devices)
		return wr_fail(WEIR_E_INVALID, "device %d: this machine has %d", like->device,
			       system->devices);
	stream = reuse(system, like, owner);
	if (!stream)
		return make(system, like, owner, out);
	*out = stream;
	return WEIR_OK;
}

weir_status wr_stream_open(struct wr_system *system, const struct wr_stream_spec *spec, const char *owner, weir_stream **out)
{
	weir_stream like = {.device = spec->device, .flags = spec->flags, .priority = spec->priority};

	return open_like(system, &like, owner, out);
}

weir_status wr_stream_wrap(struct wr_system *system, int device, void *native, weir_stream **out)
{
	weir_stream like = {.device = device, .wrapped = true, .native = native};

	if (!system->backend->native_streams)
		return wr_fail(WEIR_E_UNSUPPORTED, "the %s backend has no streams of others to wrap",
			       system->backend->name);
	return open_like(system, &like, "a wrapped stream", out);
}

/* What was enqueued without a record still has to be waited for: one more point. */
void wr_stream_close(weir_stream *stream)
{
	weir_fence fence;

	if (!stream)
		return;
	if ((wr_load(&stream->dirty) || wr_load(&stream->trailing)) && !wr_system_failed(stream->system))
		(void)weir_stream_record(stream, &fence);
	wr_store(&stream->owner, "a closed stream");
	wr_store(&stream->closed, true);
}

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
	hold(stream, until(wr_load(&stream->recorded) + 1) | BEGUN);
	wr_system_added(stream->system);
}

void wr_stream_let_go(weir_stream *stream)
{
	uint64_t held = wr_load(&stream->held), recorded = wr_load(&stream->recorded),
		 seen = wr_load(&stream->seen);
	bool idle_tick = held & BEGUN && seen >= recorded && !wr_load(&stream->dirty);
	struct wr_waker *waker;

	if (!held || (until(seen) < held && !idle_tick))
		return;
	waker = wr_system_enter(stream->system);
	if (wr_cas(&stream->held, &held, 0) && waker)
		waker->drop(waker);
	wr_system_leave(stream->system);
}

void wr_stream_forfeit(weir_stream *stream, struct wr_waker *waker)
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
	uint64_t point = wr_load(&stream->recorded);
	weir_fence fence = {wr_load(&stream->id), point};

	return !point || !wr_fence_query(stream->system, fence);
}

bool wr_stream_capturing(weir_stream *stream)
{
	const struct wr_system *system = stream->system;

	return system->backend->capturing && system->backend->capturing(system->native, stream->device, stream->native);
}

bool wr_stream_over(weir_stream *stream)
{
	weir_fence fence = {wr_load(&stream->id), wr_load(&stream->recorded)};

	return !fence.point || wr_fence_over(stream->system, fence);
}

/* Whoever has the handle may enqueue on it. */
void *weir_stream_native(const weir_stream *stream)
{
	if (!stream->system->backend->native_streams)
		return NULL;
	wr_store(&((weir_stream *)stream)->dirty, true);
	return stream->native;
}

int weir_stream_device(const weir_stream *stream)
{
	return stream->device;
}

uint64_t weir_stream_id(const weir_stream *stream)
{
	return wr_load(&((weir_stream *)stream)->id);
}

/* --- work --- */

weir_status weir_stream_launch(weir_stream *stream, const weir_kernel *kernel, const void *arguments,
			       size_t bytes)
{
	struct wr_system *system = stream->system;

	if (wr_system_failed(system))
		return wr_system_dead(system);
	if (bytes > WEIR_ARGUMENTS_MAX)
		return wr_fail(WEIR_E_INVALID, "kernel '%s' is given %zu bytes of arguments, at most %d go",
			       kernel->name, bytes, WEIR_ARGUMENTS_MAX);
	wr_store(&stream->dirty, true);
	return wr_system_note(system, system->backend->launch(system->native, stream->device, stream->native,
							      kernel, arguments, bytes));
}

weir_status weir_stream_copy(weir_stream *stream, void *to, const void *from, size_t bytes)
{
	struct wr_system *system = stream->system;

	if (wr_system_failed(system))
		return wr_system_dead(system);
	wr_store(&stream->dirty, true);
	return wr_system_note(system, system->backend->copy(system->native, stream->device, stream->native, to, from, bytes));
}

/* --- fences of it --- */

static bool ordered(weir_stream *stream, weir_fence fence, const weir_stream *other)
{
	const weir_fence *waited = &stream->waited[other->index % WR_WAITED];

	return other == stream || fence.point <= wr_load(&((weir_stream *)other)->seen) ||
	       (waited->stream == fence.stream && waited->point >= fence.point);
}

weir_status weir_stream_wait(weir_stream *stream, weir_fence fence)
{
	struct wr_system *system = stream->system;
	weir_stream *other;
	weir_status status;

	if (wr_system_failed(system))
		return wr_system_dead(system);
	status = wr_fence_find(system, fence, &other);
	if (status || !other || ordered(stream, fence, other))
		return status;
	wr_store(&stream->dirty, true); /* what is recorded next means more than what was recorded last */
	status = wr_system_note(system, system->backend->wait(system->native, stream->device, stream->native,
							      wr_stream_point(other, fence.point)->event));
	if (!status)
		stream->waited[other->index % WR_WAITED] = fence;
	return status;
}

/* A place whose event stands for nobody who still waits, or NULL: BUSY, or the device failed. */
static struct wr_point *free_place(weir_stream *stream, struct wr_ring *ring, uint64_t point)
{
	struct wr_point *place = &ring->points[point % ring->size];
	uint64_t old = wr_load(&place->point);
	weir_fence fence = {wr_load(&stream->id), old};

	if (!old || old == point || !wr_fence_query(stream->system, fence))
		return place;
	return NULL;
}

static struct wr_point *place_of(weir_stream *stream, uint64_t point)
{
	struct wr_ring *ring = wr_load(&stream->ring), *larger;
	struct wr_point *place = free_place(stream, ring, point);

	if (place || wr_system_failed(stream->system))
		return place;
	larger = make_ring(stream, ring->size * 2, point);
	if (!larger)
		return NULL;
	larger->older = ring;
	wr_store_release(&stream->ring, larger);
	return &larger->points[point % larger->size];
}

/* An event that is recorded in a capture never completes: whoever waits for the fence would wait for ever. */
static weir_status refuse_capturing(weir_stream *stream)
{
	if (!wr_stream_capturing(stream))
		return WEIR_OK;
	return wr_fail(WEIR_E_UNSUPPORTED,
		       "the stream of '%s' is being captured: end the capture before the fence, which comes at "
		       "the latest when the tick ends",
		       wr_load(&stream->owner));
}

weir_status weir_stream_record(weir_stream *stream, weir_fence *out)
{
	struct wr_system *system = stream->system;
	uint64_t point = wr_load(&stream->recorded) + 1;
	struct wr_point *place;
	weir_status status;

	if (wr_system_failed(system))
		return wr_system_dead(system);
	status = refuse_capturing(stream);
	if (status)
		return status;
	place = place_of(stream, point);
	if (!place)
		return wr_system_failed(system) ? wr_system_dead(system) : WEIR_E_NOMEM;
	wr_store(&place->point,
		 point); /* before the event changes: who still asks for the old point sees it */
	wr_store_relaxed(&place->at, wr_now());
	status =
		wr_system_note(system, system->backend->record(system->native, stream->device, stream->native, place->event));
	if (status)
		return status;
	hold(stream, until(point));
	wr_store(&stream->dirty, false);
	wr_store(&stream->trailing, false);
	wr_store(&stream->recorded, point);
	wr_system_added(system);
	*out = (weir_fence){wr_load(&stream->id), point};
	return WEIR_OK;
}

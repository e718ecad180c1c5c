/*
 * The events of a stream: a ring with one event per timeline value. A full ring is replaced by a larger one;
 * the older rings keep the values below the new ring's `first`.
 */
#include "base/memory.h"
#include "streams/system.h"

struct wr_event_ring *wr_event_ring_make(weir_stream *stream, uint64_t size, uint64_t first)
{
	struct wr_system *system = stream->system;
	struct wr_event_ring *ring = wr_alloc(1, sizeof *ring + size * sizeof *ring->points);

	if (!ring)
		return NULL;
	ring->first = first;
	for (ring->size = 0; ring->size < size; ring->size++)
		if (wr_system_check(system, system->backend->event_create(system->native, stream->spec.device,
									  &ring->points[ring->size].event)))
			break;
	if (ring->size == size)
		return ring;
	while (ring->size)
		system->backend->event_destroy(system->native, ring->points[--ring->size].event);
	wr_free(ring);
	return NULL;
}

void wr_event_rings_free(weir_stream *stream)
{
	const struct wr_backend *backend = stream->system->backend;
	struct wr_event_ring *ring = wr_load(&stream->ring);

	while (ring) {
		struct wr_event_ring *older = ring->older;

		for (uint64_t i = 0; i < ring->size; i++)
			backend->event_destroy(stream->system->native, ring->points[i].event);
		wr_free(ring);
		ring = older;
	}
}

struct wr_point *wr_stream_point(weir_stream *stream, uint64_t point)
{
	struct wr_event_ring *ring = wr_load_acquire(&stream->ring);

	while (point < ring->first)
		ring = ring->older;
	return &ring->points[point % ring->size];
}

/* Needs a write for this very value: that of a later value may come long after this one is complete. */
bool wr_stream_has_flag(weir_stream *stream, uint64_t point)
{
	return wr_load(&stream->flag_value) >= point && wr_load(&wr_stream_point(stream, point)->flag_value);
}

static bool value_complete(weir_stream *stream, uint64_t point)
{
	weir_fence fence = {wr_load(&stream->id), point};

	return !wr_fence_query(stream->system, fence);
}

/*
 * Returns the place for the new value if its event can be recorded again: its old value is complete. Returns
 * NULL if that is pending or the device failed. A query costs as much as a record, so the value half a ring
 * later is queried first: if that is complete, half a ring of places is free.
 */
static struct wr_point *ring_free_place(weir_stream *stream, struct wr_event_ring *ring, uint64_t point)
{
	struct wr_point *place = &ring->points[point % ring->size];
	uint64_t old = wr_load(&place->point);

	if (!old || old == point || old <= wr_load(&stream->completed))
		return place;
	if (value_complete(stream, old + ring->size / 2) || value_complete(stream, old))
		return place;
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

#define RESERVED_MOST 1024

weir_status wr_stream_reserve(weir_stream *stream, size_t points)
{
	uint64_t size = wr_load(&stream->ring)->size,
		 wanted = points < RESERVED_MOST ? points : RESERVED_MOST;

	while (size < wanted)
		size *= 2;
	if (size == wr_load(&stream->ring)->size ||
	    ring_enlarge(stream, size, wr_load(&stream->submitted) + 1))
		return WEIR_OK;
	return wr_system_failed(stream->system) ? wr_system_failure_status(stream->system) : WEIR_E_NOMEM;
}

struct wr_point *wr_event_ring_place(weir_stream *stream, uint64_t point)
{
	struct wr_event_ring *ring = wr_load(&stream->ring), *larger;
	struct wr_point *place = ring_free_place(stream, ring, point);

	if (place || wr_system_failed(stream->system))
		return place;
	larger = ring_enlarge(stream, ring->size * 2, point);
	return larger ? &larger->points[point % larger->size] : NULL;
}

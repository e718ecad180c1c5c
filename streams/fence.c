/*
 * Fences: a fence names a value on the timeline of a stream. `completed`, the highest value known to be
 * complete, answers most queries with one load.
 *
 * An event may be recorded again for a later value while another thread queries it for the old one. The
 * owner changes the event's `value` before that, and only once the old value was seen complete. So if `value`
 * differs after the query, the old value is complete.
 *
 * The events of a stream are a ring with one event per timeline value. A full ring is replaced by a larger
 * one; the older rings keep the values below the new ring's `first`.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "streams/device.h"
#include "streams/system.h"

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
	weir_stream *stream =
		id && (id & 0xffff) < wr_load(&system->count) ? wr_stream_at(system, id & 0xffff) : NULL;

	return stream && wr_load(&stream->id) == id ? stream : NULL;
}

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

weir_status wr_fence_find(struct wr_system *system, weir_fence fence, weir_stream **out)
{
	weir_stream *stream;

	*out = NULL;
	if (!fence.stream && !fence.value)
		return WEIR_OK;
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

weir_status wr_fence_check(struct wr_system *system, weir_fence fence)
{
	weir_stream *stream;

	return wr_fence_find(system, fence, &stream);
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
	weir_status status = wr_fence_find(system, fence, &stream);

	if (status || !stream || fence.value <= wr_load(&stream->completed))
		return status;
	return stream_query(stream, fence.value);
}

bool wr_fence_known_complete(struct wr_system *system, weir_fence fence)
{
	weir_stream *stream;

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
	weir_status status = wr_fence_query(system, fence);
	struct wr_event *event;
	weir_stream *stream;

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

struct wr_event *wr_event_ring_take(weir_stream *stream, uint64_t value)
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
	if (wr_fence_find(system, fence, &stream) || !stream)
		return "?";
	event = wr_stream_event(stream, fence.value);
	if (age_ns && wr_load(&event->value) == fence.value)
		*age_ns = wr_now() - wr_load_relaxed(&event->recorded_at);
	return wr_load(&stream->owner);
}

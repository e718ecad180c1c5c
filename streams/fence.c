/*
 * Fences: a fence names a timeline value (`point`) of a stream. `completed`, the highest value known to be
 * complete, answers most queries with one load.
 *
 * An event may be recorded again for a later value while another thread queries it for the old one. The
 * owner changes the place's `point` before that, and only once the old value was seen complete. So if `point`
 * differs after the query, the old value is complete.
 */
#include "base/clock.h"
#include "base/status.h"
#include "streams/system.h"

/* --- lookup --- */

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
	if (!fence.stream && !fence.point)
		return WEIR_OK;
	if (!fence.point || !fence_is_ours(system, fence))
		return wr_fail(WEIR_E_INVALID, "fence {%#llx, %llu} was never recorded in this graph",
			       (unsigned long long)fence.stream, (unsigned long long)fence.point);
	stream = wr_stream_at(system, fence_index(fence));
	if (wr_load(&stream->id) != fence.stream)
		return WEIR_OK; /* the id was recycled, and a stream is drained before that */
	if (fence.point > wr_load(&stream->submitted))
		return wr_fail(WEIR_E_INVALID, "timeline value %llu of the stream of '%s' was never recorded",
			       (unsigned long long)fence.point, wr_load(&stream->owner));
	*out = stream;
	return WEIR_OK;
}

/* --- queries --- */

void wr_stream_saw(weir_stream *stream, uint64_t point)
{
	uint64_t seen = wr_load(&stream->completed);

	while (seen < point && !wr_cas(&stream->completed, &seen, point))
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
static bool flag_answers(weir_stream *stream, uint64_t point, weir_status *status)
{
	_Atomic uint32_t *word = wr_load(&stream->word);
	struct wr_point *place = wr_stream_point(stream, point);

	if (!word || wr_load(&stream->flag_value) < point)
		return false;
	if ((int32_t)(wr_load(word) - (uint32_t)point) >= 0)
		return true;
	if (!wr_stream_has_flag(stream, point) || wr_now() - wr_load_relaxed(&place->at) >= FLAG_TIMEOUT)
		return false;
	*status = WEIR_E_BUSY;
	return true;
}

static weir_status stream_query(weir_stream *stream, uint64_t point)
{
	struct wr_system *system = stream->system;
	struct wr_point *place = wr_stream_point(stream, point);
	weir_status status = WEIR_OK;

	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (flag_answers(stream, point, &status))
		;
	else if (wr_load(&place->point) == point)
		status = wr_system_check(system, system->backend->query(system->native, place->event));
	if (status == WEIR_E_BUSY && wr_load(&place->point) != point)
		status = WEIR_OK;
	if (!status)
		wr_stream_saw(stream, point);
	return status;
}

weir_status wr_fence_query(struct wr_system *system, weir_fence fence)
{
	weir_stream *stream;
	weir_status status = wr_fence_find(system, fence, &stream);

	if (status || !stream || fence.point <= wr_load(&stream->completed))
		return status;
	return stream_query(stream, fence.point);
}

bool wr_fence_seen(struct wr_system *system, weir_fence fence)
{
	weir_stream *stream;

	return !wr_fence_find(system, fence, &stream) &&
	       (!stream || fence.point <= wr_load(&stream->completed));
}

/*
 * A fence that names no work of this system (INVALID) protects no memory; after any other failed query the
 * work may still run. On a lost device nothing completes any more, so it is enough that nothing runs there.
 * If the system failed while its device goes on (a lost callback), the device is queried all the same.
 */
bool wr_fence_over(struct wr_system *system, weir_fence fence)
{
	weir_status status = wr_fence_query(system, fence);
	struct wr_point *place;
	weir_stream *stream;

	if (status != WEIR_E_DEVICE)
		return !status || status == WEIR_E_INVALID;
	if (system->backend->quiet(system->native) || wr_fence_find(system, fence, &stream) || !stream)
		return true;
	place = wr_stream_point(stream, fence.point);
	return wr_load(&place->point) != fence.point || !system->backend->query(system->native, place->event);
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
	struct wr_point *place;

	if (age_ns)
		*age_ns = 0;
	if (wr_fence_find(system, fence, &stream) || !stream)
		return "?";
	place = wr_stream_point(stream, fence.point);
	if (age_ns && wr_load(&place->point) == fence.point)
		*age_ns = wr_now() - wr_load_relaxed(&place->at);
	return wr_load(&stream->owner);
}

/*
 * Fences: values that name a point of a stream. `seen`, the highest point known to be complete, answers most
 * questions with a load.
 *
 * A point's event may be recorded again for a later point while somebody asks about it. The place's `point`
 * is changed before that, and only once the old point was seen complete: whoever finds another point there
 * after asking knows the answer is OK.
 */
#include "base/clock.h"
#include "base/status.h"
#include "streams/system.h"

/* --- finding --- */

static uint32_t index_of(weir_fence fence)
{
	return fence.stream & 0xffff;
}

/* Whether the id was given out by this system, to a stream that has another id by now. */
static bool was_ours(struct wr_system *system, weir_fence fence)
{
	uint64_t serial = fence.stream >> 16 & 0xffffffff;

	return fence.stream >> 48 == system->serial && serial && serial <= wr_load(&system->serials) &&
	       index_of(fence) < wr_load(&system->count);
}

weir_status wr_fence_find(struct wr_system *system, weir_fence fence, weir_stream **out)
{
	weir_stream *stream;

	*out = NULL;
	if (!fence.stream && !fence.point)
		return WEIR_OK;
	if (!fence.point || !was_ours(system, fence))
		return wr_fail(WEIR_E_INVALID, "fence {%#llx, %llu} was never recorded in this graph",
			       (unsigned long long)fence.stream, (unsigned long long)fence.point);
	stream = wr_stream_at(system, index_of(fence));
	if (wr_load(&stream->id) != fence.stream)
		return WEIR_OK; /* it was drained before another took its place */
	if (fence.point > wr_load(&stream->submitted))
		return wr_fail(WEIR_E_INVALID, "point %llu of the stream of '%s' was never recorded",
			       (unsigned long long)fence.point, wr_load(&stream->owner));
	*out = stream;
	return WEIR_OK;
}

/* --- asking --- */

void wr_stream_saw(weir_stream *stream, uint64_t point)
{
	uint64_t seen = wr_load(&stream->completed);

	while (seen < point && !wr_cas(&stream->completed, &seen, point))
		;
	wr_stream_drop_ref_if_complete(stream);
}

/* ns: a word that was told to come to a point and has not is believed so long; then the device is asked. */
#define TRUST 50000000

/*
 * The word has come to the point, or was told to come to it: nobody has to ask the device. False: it must be
 * asked. A word that was told of a later point only can say yes, but not no.
 */
static bool word_answers(weir_stream *stream, uint64_t point, weir_status *status)
{
	_Atomic uint32_t *word = wr_load(&stream->word);
	struct wr_point *place = wr_stream_point(stream, point);

	if (!word || wr_load(&stream->flag_value) < point)
		return false;
	if ((int32_t)(wr_load(word) - (uint32_t)point) >= 0)
		return true;
	if (!wr_stream_has_flag(stream, point) || wr_now() - wr_load_relaxed(&place->at) >= TRUST)
		return false;
	*status = WEIR_E_BUSY;
	return true;
}

static weir_status ask(weir_stream *stream, uint64_t point)
{
	struct wr_system *system = stream->system;
	struct wr_point *place = wr_stream_point(stream, point);
	weir_status status = WEIR_OK;

	if (wr_system_failed(system))
		return wr_system_failure_status(system);
	if (word_answers(stream, point, &status))
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
	return ask(stream, fence.point);
}

bool wr_fence_seen(struct wr_system *system, weir_fence fence)
{
	weir_stream *stream;

	return !wr_fence_find(system, fence, &stream) && (!stream || fence.point <= wr_load(&stream->completed));
}

/*
 * A fence that names no work of this system (INVALID) holds nothing; a question that could not be answered
 * says nothing: the work may go on. On a lost device nothing completes any more; there it is enough that
 * nothing runs. A system may also have failed though its device goes on (a lost callback): then the device is
 * asked all the same.
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

struct question {
	struct wr_system *system;
	weir_fence fence;
	weir_status status;
};

static bool answered(void *arg)
{
	struct question *question = arg;

	question->status = wr_fence_query(question->system, question->fence);
	return question->status != WEIR_E_BUSY;
}

weir_status wr_fence_wait(struct wr_system *system, weir_fence fence, int64_t until)
{
	struct question question = {system, fence, WEIR_E_BUSY};

	if (!answered(&question))
		wr_system_sleep_until(system, answered, &question, until);
	if (question.status != WEIR_E_BUSY)
		return question.status;
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

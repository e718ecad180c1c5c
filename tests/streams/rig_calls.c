/* Calls of the room that assert success (rig.h). */
#include "rig.h"

#include "base/clock.h"
#include "test.h"

#define SECOND INT64_C(1000000000)

/* --- signals and flags --- */

wr_token rig_arm(struct rig *rig, uint32_t entity, weir_fence fence)
{
	wr_token token = 0;

	assert_int_equal(wr_signal_arm(rig->system, entity, &fence, 1, &token), WEIR_OK);
	assert_int_not_equal(token, 0);
	return token;
}

weir_status rig_arm_inline(struct rig *rig, uint32_t entity, weir_fence fence)
{
	wr_token token;

	return wr_signal_inline(rig->system, entity, &fence, 1, &token);
}

wr_token rig_arm_flags(struct rig *rig, uint32_t entity, const weir_fence *fences, size_t n)
{
	wr_token token = 0;

	assert_int_equal(wr_flag_arm(rig->system, entity, fences, n, &token), WEIR_OK);
	assert_true(token != 0);
	return token;
}

wr_token rig_arm_flag(struct rig *rig, uint32_t entity, weir_fence fence)
{
	return rig_arm_flags(rig, entity, &fence, 1);
}

weir_fence rig_record_flag(weir_stream *stream)
{
	weir_fence fence = rig_record(stream);

	assert_int_equal(wr_flag_write(stream, WR_FLAGS_ALL), WEIR_OK);
	return fence;
}

/* Polls as the poller does until nothing is armed. */
void rig_poll_until_idle(struct rig *rig)
{
	int64_t deadline = wr_now() + 20 * SECOND, next;

	while ((next = wr_flags_poll(rig->system, wr_now())) != INT64_MAX) {
		int64_t now = wr_now();

		assert_true(now < deadline);
		wr_thread_sleep(next > now ? next - now : 1);
	}
	assert_int_equal(wr_flags_armed(rig->system), 0);
	assert_int_equal(wr_system_outstanding(rig->system), 0);
}

void rig_count_from(struct rig *rig, weir_stream *stream, uint64_t point)
{
	rig_wait(rig, rig_record(stream));
	wr_store(&stream->submitted, point);
	wr_store(&stream->completed, point);
}

/* --- payloads --- */

void rig_count_release(struct wr_deferred_free *retired)
{
	((struct rig_payload *)retired)->released++;
}

bool rig_defer(struct rig *rig, struct rig_payload *payload, weir_fence fence, bool destructor)
{
	*payload = (struct rig_payload){.fences = {fence}};
	payload->retired = (struct wr_deferred_free){.fences = payload->fences,
						     .count = 1,
						     .release = rig_count_release,
						     .destructor = destructor};
	return wr_defer_free(rig->system, &payload->retired);
}

/* --- pools --- */

struct wr_stream_pool *rig_pool(struct rig *rig, const char *name, uint32_t reserved, uint32_t max)
{
	struct wr_stream_pool_spec spec = {.name = name, .reserved = reserved, .max = max};
	struct wr_stream_pool *pool = NULL;

	assert_int_equal(wr_stream_pool_create(rig->system, &spec, &pool), WEIR_OK);
	return pool;
}

weir_stream *rig_take(struct wr_stream_pool *pool)
{
	weir_stream *stream = NULL;

	assert_int_equal(wr_stream_pool_take(pool, "taker", &stream), WEIR_OK);
	return stream;
}

weir_stream *rig_share(weir_stream *stream)
{
	weir_stream *view = NULL;

	assert_int_equal(wr_stream_share(stream, "view", &view), WEIR_OK);
	return view;
}

uint32_t rig_stream_count(struct rig *rig)
{
	return wr_load(&rig->system->count);
}

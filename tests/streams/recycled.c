/*
 * Fences of streams that were closed and recycled, what a detach leaves of the refused, and systems that
 * cannot be created.
 */
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "rig.h"
#include "test.h"

#define MS ((int64_t)1000000)

/* --- fences --- */

/* A complete fence of a stream whose place another stream has by now. */
static weir_fence recycled_fence(struct rig *rig)
{
	weir_stream *stream = rig_stream(rig, "before");
	weir_fence fence = rig_record(stream);
	uint32_t count = rig->system->count;

	rig_wait(rig, fence);
	wr_stream_close(stream);
	rig->c = rig_stream(rig, "after");
	assert_int_equal(rig->system->count, count);
	assert_int_not_equal(weir_stream_id(rig->c), fence.stream);
	return fence;
}

RIG_BODY(g02_a_fence_of_a_recycled_stream_fires_at_once_by_callback)
{
	weir_fence fence = recycled_fence(rig);

	rig_arm(rig, 1, fence);
	rig_until_poked(rig, 1);
	rig_until_none_outstanding(rig);
}

RIG_BODY(g03_a_fence_of_a_recycled_stream_needs_no_callback_of_its_own)
{
	weir_fence fence = recycled_fence(rig);

	assert_int_equal(rig_arm_inline(rig, 1, fence), WEIR_E_UNSUPPORTED);
	assert_int_equal(wr_load(&rig->waker.poked[1]), 0);
}

RIG_BODY(g04_a_fence_of_a_recycled_stream_is_seen_written_at_the_first_poll)
{
	weir_fence fence = recycled_fence(rig);

	rig_arm_flag(rig, 1, fence);
	wr_flags_poll(rig->system, wr_now());
	assert_int_equal(wr_load(&rig->waker.poked[1]), 1);
	assert_int_equal(wr_flags_armed(rig->system), 0);
}

RIG_BODY(xb24_a_fence_of_a_recycled_stream_is_not_waited_for)
{
	weir_fence fence = recycled_fence(rig);
	void *native;

	rig_own_backend(rig)->native_streams = true;
	native = weir_stream_native(rig->a);
	assert_int_equal(wr_fence_enqueue(rig->system, fence, 0, native), WEIR_OK);
	assert_int_equal(weir_stream_wait(rig->b, fence), WEIR_OK);
}

RIG_BODY(xb28_a_fence_of_a_stream_that_never_was_is_refused)
{
	weir_fence fence = rig_record(rig->a), none = {fence.stream | 0xffff, 1};

	assert_int_equal(wr_fence_query(rig->system, none), WEIR_E_INVALID);
}

/* --- a run's end --- */

RIG_BODY(g02_a_detach_drops_the_references_of_the_refused)
{
	weir_fence fence;
	wr_token token;

	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record(rig->a);
	rig->system->signals.bound = 1;
	rig_arm(rig, 1, fence);
	for (uint32_t entity = 2; entity < 5; entity++)
		assert_int_equal(wr_signal_arm(rig->system, entity, &fence, 1, &token), WEIR_E_BUSY);
	assert_true(wr_refused_any(rig->system));
	assert_int_equal(wr_load(&rig->waker.live), 3);
	wr_system_drop_all_refs(rig->system);
	assert_int_equal(wr_load(&rig->waker.live), 0);
	assert_false(wr_refused_any(rig->system));
	rig_until_poked(rig, 1);
}

RIG_BODY(xb24_a_wrapped_stream_is_not_unwrapped_during_a_run)
{
	wr_system_set_running(rig->system, true);
	assert_int_equal(weir_stream_unwrap(rig->a), WEIR_E_STATE);
	assert_non_null(strstr(weir_last_error(), "a run is on"));
	wr_system_set_running(rig->system, false);
	assert_int_equal(weir_stream_unwrap(NULL), WEIR_OK);
}

/* --- systems that cannot be --- */

static void assert_no_system(struct wr_system_options options, const char *text)
{
	struct wr_system *system = NULL;

	assert_int_equal(wr_system_create(&system, &options), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), text));
	assert_null(system);
}

static void e06_a_system_that_cannot_be_is_refused(void **state)
{
	(void)state;
	assert_no_system((struct wr_system_options){.backend = "host", .devices = -1},
			 "-1 devices: ask for 1 to");
	assert_no_system((struct wr_system_options){.backend = "host", .devices = 1000},
			 "1000 devices: ask for");
	assert_no_system((struct wr_system_options){.backend = "sim"}, "it needs a simulated world");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(g02_a_fence_of_a_recycled_stream_fires_at_once_by_callback),
		cmocka_unit_test(g03_a_fence_of_a_recycled_stream_needs_no_callback_of_its_own),
		cmocka_unit_test(g04_a_fence_of_a_recycled_stream_is_seen_written_at_the_first_poll),
		cmocka_unit_test(xb24_a_fence_of_a_recycled_stream_is_not_waited_for),
		cmocka_unit_test(xb28_a_fence_of_a_stream_that_never_was_is_refused),
		cmocka_unit_test(g02_a_detach_drops_the_references_of_the_refused),
		cmocka_unit_test(xb24_a_wrapped_stream_is_not_unwrapped_during_a_run),
		cmocka_unit_test(e06_a_system_that_cannot_be_is_refused),
	};

	rig_backend = "host";
	return cmocka_run_group_tests(tests, NULL, NULL);
}

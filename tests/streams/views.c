/* Views that share one queue, the default stream, wrapped streams. Run as `views BACKEND`. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "rig.h"
#include "test.h"

#define MS 1000000

/* --- views --- */

RIG_BODY(t06_views_are_one_queue_under_identities_of_their_own)
{
	weir_stream *view = rig_share(rig->a);
	weir_fence of_a, of_view;

	assert_true(weir_stream_same(rig->a, view));
	assert_false(weir_stream_same(rig->a, rig->b));
	assert_true(weir_stream_id(rig->a) != weir_stream_id(view));
	rig_store(rig, rig->a, 1, 10 * MS);
	rig_add(rig, view, 10, 5 * MS);
	rig_add(rig, rig->a, 100, 0);
	of_a = rig_record(rig->a);
	assert_true(wr_stream_dirty(view));
	assert_int_equal(rig_read(rig, view), 111);
	of_view = rig_record(view);
	assert_int_equal(of_a.value, 2); /* the rig has recorded point 1 */
	assert_int_equal(of_view.value, 2);
	rig_wait(rig, of_view);
	wr_stream_close(view);
}

RIG_BODY(t06_a_view_of_a_view_is_one_of_its_root)
{
	weir_stream *view = rig_share(rig->a), *second = rig_share(view);

	assert_true(weir_stream_same(second, rig->a));
	wr_stream_close(view);
	assert_true(weir_stream_same(second, rig->a));
	wr_stream_close(second);
}

RIG_BODY(t06_what_shares_a_queue_need_not_wait)
{
	weir_stream *view = rig_share(rig->a);
	weir_fence fence;

	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record(rig->a);
	assert_int_equal(weir_stream_wait(view, fence), WEIR_OK);
	assert_false(wr_stream_dirty(view));
	assert_int_equal(weir_stream_wait(rig->b, fence), WEIR_OK);
	assert_true(wr_stream_dirty(rig->b));
	wr_stream_close(view);
}

RIG_BODY(t06_a_shared_stream_is_not_handed_out_again)
{
	weir_stream *root = rig->a, *view = rig_share(root), *next;
	weir_fence fence;

	wr_stream_close(root);
	next = rig_stream(rig, "next");
	assert_ptr_not_equal(next, root);
	wr_stream_close(next);
	rig_store(rig, view, 1, 20 * MS);
	fence = rig_record(view);
	wr_stream_close(view); /* its work is still on the root's queue */
	assert_true(wr_stream_idle(root));
	rig->a = rig_stream(rig, "next");
	assert_ptr_not_equal(rig->a, root);
	rig_wait(rig, fence);
	next = rig_stream(rig, "after that");
	assert_ptr_equal(next, root);
	wr_stream_close(next);
}

RIG_BODY(t06_a_view_that_was_given_back_serves_for_another_stream)
{
	weir_stream *view = rig_share(rig->a), *next;
	uint64_t id = weir_stream_id(view);

	wr_stream_close(view);
	next = rig_share(rig->b);
	assert_ptr_equal(next, view);
	assert_true(weir_stream_id(next) != id);
	assert_true(weir_stream_same(next, rig->b));
	rig_store(rig, rig->b, 4, 5 * MS);
	rig_add(rig, next, 1, 0);
	assert_int_equal(rig_read(rig, next), 5);
	wr_stream_close(next);
}

RIG_BODY(t06_a_released_view_does_not_lead_to_another_stream)
{
	weir_stream *root = rig->a, *view = rig_share(root), *late = NULL;
	weir_fence fence = rig_record(view);

	rig_wait(rig, fence);
	wr_stream_close(view);
	wr_stream_close(root);
	rig->a = rig_stream(rig, "next");
	assert_ptr_equal(rig->a, root); /* reused for another stream */
	assert_int_equal(wr_stream_share_of(rig->system, fence.stream, "late", &late), WEIR_E_CLOSED);
}

RIG_BODY(t06_a_view_that_was_given_back_serves_on_its_own_device_alone)
{
	const struct wr_stream_spec there = {.device = 1};
	weir_stream *far = NULL, *view, *next;

	assert_int_equal(wr_stream_open(rig->system, &there, "far", &far), WEIR_OK);
	view = rig_share(far);
	wr_stream_close(view);
	next = rig_share(rig->a);
	assert_ptr_not_equal(next, view);
	assert_int_equal(weir_stream_device(next), 0);
	wr_stream_close(next);
	wr_stream_close(far);
}

RIG_BODY(f40_a_view_that_could_not_be_made_holds_no_stream)
{
	weir_stream *view = NULL;

	wr_memory_fail_at(0, true);
	assert_int_equal(wr_stream_share(rig->a, "view", &view), WEIR_E_NOMEM);
	wr_memory_fail_at(-1, false);
	assert_null(view);
	assert_int_equal(rig->a->sharers, 0);
}

RIG_BODY(t01_ids_do_not_run_out_when_many_streams_are_opened)
{
	weir_fence fence;

	wr_store(&rig->system->serials, (UINT32_C(1) << 24) - 2);
	for (int i = 0; i < 4; i++) {
		weir_stream *stream = rig_stream(rig, "one of many");

		assert_int_equal(weir_stream_record(stream, &fence), WEIR_OK);
		rig_wait(rig, fence);
		wr_stream_close(stream);
	}
}

RIG_BODY(t06_a_view_records_more_points_than_it_has_events)
{
	weir_stream *view = rig_share(rig->a);
	weir_fence first, last;

	rig_store(rig, rig->a, 1, 20 * MS);
	first = rig_record(view);
	for (int i = 0; i < 3 * WR_EVENTS_SHARED; i++)
		last = rig_record(view);
	assert_int_equal(wr_fence_query(rig->system, first), WEIR_E_BUSY);
	rig_wait(rig, last);
	assert_int_equal(wr_fence_query(rig->system, first), WEIR_OK);
	wr_stream_close(view);
}

RIG_BODY(t06_each_view_holds_a_live_reference_of_its_own)
{
	weir_stream *view = rig_share(rig->a);
	weir_fence of_a, of_view;

	wr_stream_begin_tick(rig->a);
	wr_stream_begin_tick(view);
	assert_int_equal(wr_load(&rig->waker.live), 2);
	rig_store(rig, rig->a, 1, MS);
	of_a = rig_record(rig->a);
	rig_store(rig, view, 1, 20 * MS);
	of_view = rig_record(view);
	rig_wait(rig, of_a);
	assert_int_equal(wr_load(&rig->waker.live), 1);
	rig_wait(rig, of_view);
	assert_int_equal(wr_load(&rig->waker.live), 0);
	wr_stream_close(view);
}

RIG_BODY(t06_a_view_may_outlive_the_owner_of_the_stream)
{
	weir_stream *view = rig_share(rig->a);

	wr_stream_close(rig->a);
	rig_store(rig, view, 3, MS);
	assert_int_equal(rig_read(rig, view), 3);
	rig->a = view; /* closed by the rig or the system */
}

RIG_BODY(t06_a_stream_that_was_given_on_is_not_shared)
{
	weir_fence fence = rig_record(rig->a);
	weir_stream *root = rig->a, *view = NULL;

	assert_ptr_equal(wr_stream_find(rig->system, fence.stream), root);
	assert_int_equal(wr_stream_share_of(rig->system, fence.stream, "view", &view), WEIR_OK);
	assert_true(weir_stream_same(view, root));
	wr_stream_close(view);
	rig_wait(rig, fence);
	wr_stream_close(root);
	rig->a = rig_stream(rig, "next");
	assert_ptr_equal(rig->a, root);
	view = NULL;
	assert_null(wr_stream_find(rig->system, fence.stream));
	assert_int_equal(wr_stream_share_of(rig->system, fence.stream, "view", &view), WEIR_E_CLOSED);
	assert_null(view);
	assert_null(wr_stream_find(rig->system, 0));
	assert_null(wr_stream_find(rig->system, UINT64_MAX));
}

/* --- the default stream --- */

RIG_BODY(t06_the_default_stream_has_one_queue_and_many_views)
{
	weir_stream *x = NULL, *y = NULL;
	uint32_t before;

	assert_int_equal(wr_stream_default(rig->system, 0, "x", &x), WEIR_OK);
	before = rig_stream_count(rig);
	assert_int_equal(wr_stream_default(rig->system, 0, "y", &y), WEIR_OK);
	assert_int_equal(rig_stream_count(rig), before + 1);
	assert_true(weir_stream_same(x, y));
	assert_false(weir_stream_same(x, rig->a));
	rig_store(rig, x, 1, 5 * MS);
	rig_add(rig, y, 1, 0);
	assert_int_equal(rig_read(rig, y), 2);
	assert_int_equal(wr_stream_default(rig->system, 77, "z", &y), WEIR_E_INVALID);
	wr_stream_close(x);
	wr_stream_close(y);
}

/* --- wrapped streams: streams of the backend stand for the caller's --- */

static weir_stream *wrap(struct rig *rig, weir_stream *native)
{
	weir_stream *stream = NULL;

	rig_own_backend(rig)->native_streams = true;
	assert_int_equal(wr_stream_wrap(rig->system, 0, wr_load(&native->native), &stream), WEIR_OK);
	return stream;
}

RIG_BODY(t06_two_wraps_of_one_native_stream_are_the_same_queue)
{
	weir_stream *x = wrap(rig, rig->a), *y = wrap(rig, rig->a), *z = wrap(rig, rig->b), *legacy = NULL,
		    *none = NULL;

	assert_ptr_not_equal(x, y);
	assert_true(weir_stream_same(x, y));
	assert_false(weir_stream_same(x, z));
	assert_int_equal(wr_stream_default(rig->system, 0, "default", &legacy), WEIR_OK);
	assert_int_equal(wr_stream_wrap(rig->system, 0, NULL, &none), WEIR_OK);
	assert_true(weir_stream_same(legacy, none));
	wr_stream_close(legacy);
	assert_int_equal(wr_stream_unwrap(none), WEIR_OK);
	assert_int_equal(wr_stream_unwrap(x), WEIR_OK);
	assert_int_equal(wr_stream_unwrap(y), WEIR_OK);
	assert_int_equal(wr_stream_unwrap(z), WEIR_OK);
}

RIG_BODY(t06_a_wrapped_stream_is_unwrapped_when_no_work_is_on_it)
{
	weir_stream *wrapped = wrap(rig, rig->a), *view = rig_share(wrapped), *late = NULL;
	weir_fence fence;

	rig_store(rig, wrapped, 1, 20 * MS);
	fence = rig_record(wrapped);
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_E_BUSY);
	rig_wait(rig, fence);
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_E_BUSY);
	assert_non_null(strstr(weir_last_error(), "end the run"));
	rig_store(rig, view, 1, 20 * MS);
	fence = rig_record(view);
	wr_stream_close(view);
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_E_BUSY);
	rig_wait(rig, fence);
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_OK);
	assert_int_equal(wr_stream_share_of(rig->system, weir_stream_id(wrapped), "late", &late),
			 WEIR_E_CLOSED);
	assert_int_equal(wr_stream_unwrap(rig->a), WEIR_E_INVALID);
	assert_int_equal(wr_stream_unwrap(NULL), WEIR_OK);
}

RIG_BODY(t06_a_wrapped_stream_is_unwrapped_after_its_own_work)
{
	weir_stream *wrapped = wrap(rig, rig->a);
	weir_fence fence;

	rig_store(rig, wrapped, 1, 20 * MS);
	fence = rig_record(wrapped);
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_E_BUSY);
	assert_non_null(strstr(weir_last_error(), "wait for it first"));
	rig_wait(rig, fence);
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_OK);
}

/* At the end of a run the work is complete; the flag that was written behind it may not be. */
RIG_BODY(t06_g04_a_wrapped_stream_is_unwrapped_when_the_last_flag_is_written)
{
	weir_stream *wrapped = wrap(rig, rig->a), *view = rig_share(wrapped);

	rig_store(rig, view, 1, 0);
	rig_wait(rig, rig_record(view));
	rig_store(rig, rig->a, 2, 20 * MS); /* on the same queue, before the flag */
	assert_int_equal(wr_flag_write(view, WR_FLAGS_ALL), WEIR_OK);
	wr_stream_close(view);
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_OK);
}

/* Unwrapping queries the last points of views itself. */
RIG_BODY(t06_a_wrapped_stream_is_unwrapped_after_views_that_were_not_queried)
{
	weir_stream *wrapped = wrap(rig, rig->a), *view = rig_share(wrapped);

	rig_store(rig, view, 1, MS);
	wr_stream_close(view);
	rig_wait(rig, rig_record(wrapped)); /* enqueued behind the view's work */
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_OK);
}

RIG_BODY(t06_work_that_the_caller_left_on_a_wrapped_stream_is_not_waited_for)
{
	weir_stream *wrapped = wrap(rig, rig->a), *own;
	uint32_t before = rig_stream_count(rig);

	rig_wait(rig, rig_record(wrapped));
	wr_store(&wrapped->flag_after_record, true);
	assert_non_null(weir_stream_native(wrapped)); /* work may come by the native handle */
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_OK);
	own = rig_stream(rig, "one of our own");
	assert_ptr_not_equal(own, wrapped);
	wr_stream_close(own);
	assert_ptr_equal(wrap(rig, rig->b), wrapped);
	assert_int_equal(rig_stream_count(rig), before + 1);
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_OK);
}

RIG_BODY(t06_a_wrapped_stream_is_unwrapped_whatever_a_lost_device_left)
{
	weir_stream *wrapped = wrap(rig, rig->a);

	rig_store(rig, wrapped, 1, 5 * MS);
	rig_record(wrapped);
	wr_system_fail(rig->system, "the device is gone");
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_OK);
}

RIG_BODY(g03_the_maker_of_a_wrapped_stream_may_capture_it)
{
	weir_stream *wrapped = wrap(rig, rig->a);
	weir_fence fence;

	rig->backend.capturing = rig_in_capture;
	assert_int_equal(weir_stream_record(wrapped, &fence), WEIR_E_UNSUPPORTED);
	rig->backend.capturing = NULL;
	rig_wait(rig, rig_record(wrapped));
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_OK);
}

static weir_status nameless(void *self, int device, void **out)
{
	(void)self;
	(void)device;
	*out = NULL;
	return WEIR_OK;
}

RIG_BODY(t06_default_streams_of_two_devices_are_two_though_they_have_no_names)
{
	weir_stream *here = NULL, *there = NULL;

	rig_own_backend(rig)->stream_default = nameless;
	assert_int_equal(wr_stream_default(rig->system, 0, "here", &here), WEIR_OK);
	assert_int_equal(wr_stream_default(rig->system, 1, "there", &there), WEIR_OK);
	assert_false(weir_stream_same(here, there));
	wr_stream_close(here);
	wr_stream_close(there);
}

RIG_BODY(t06_the_stream_of_each_thread_is_none_to_wrap)
{
	weir_stream *stream = wrap(rig, rig->a), *none = NULL;

	rig->backend.per_thread = wr_load(&rig->a->native);
	assert_int_equal(wr_stream_wrap(rig->system, 0, rig->backend.per_thread, &none), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "wrap a stream that was made"));
	assert_null(none);
	assert_int_equal(wr_stream_unwrap(stream), WEIR_OK);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(t06_views_are_one_queue_under_identities_of_their_own),
		cmocka_unit_test(t06_a_view_of_a_view_is_one_of_its_root),
		cmocka_unit_test(t06_what_shares_a_queue_need_not_wait),
		cmocka_unit_test(t06_a_shared_stream_is_not_handed_out_again),
		cmocka_unit_test(t06_a_view_that_was_given_back_serves_for_another_stream),
		cmocka_unit_test(t06_a_released_view_does_not_lead_to_another_stream),
		cmocka_unit_test(t06_a_view_that_was_given_back_serves_on_its_own_device_alone),
		cmocka_unit_test(f40_a_view_that_could_not_be_made_holds_no_stream),
		cmocka_unit_test(t01_ids_do_not_run_out_when_many_streams_are_opened),
		cmocka_unit_test(t06_a_view_records_more_points_than_it_has_events),
		cmocka_unit_test(t06_each_view_holds_a_live_reference_of_its_own),
		cmocka_unit_test(t06_a_view_may_outlive_the_owner_of_the_stream),
		cmocka_unit_test(t06_a_stream_that_was_given_on_is_not_shared),
		cmocka_unit_test(t06_the_default_stream_has_one_queue_and_many_views),
		cmocka_unit_test(t06_two_wraps_of_one_native_stream_are_the_same_queue),
		cmocka_unit_test(t06_a_wrapped_stream_is_unwrapped_after_its_own_work),
		cmocka_unit_test(t06_g04_a_wrapped_stream_is_unwrapped_when_the_last_flag_is_written),
		cmocka_unit_test(t06_a_wrapped_stream_is_unwrapped_after_views_that_were_not_queried),
		cmocka_unit_test(t06_work_that_the_caller_left_on_a_wrapped_stream_is_not_waited_for),
		cmocka_unit_test(t06_a_wrapped_stream_is_unwrapped_whatever_a_lost_device_left),
		cmocka_unit_test(g03_the_maker_of_a_wrapped_stream_may_capture_it),
		cmocka_unit_test(t06_default_streams_of_two_devices_are_two_though_they_have_no_names),
		cmocka_unit_test(t06_the_stream_of_each_thread_is_none_to_wrap),
		cmocka_unit_test(t06_a_wrapped_stream_is_unwrapped_when_no_work_is_on_it),
	};

	if (argc > 1)
		rig_backend = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}

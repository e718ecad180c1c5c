/* Completion flags: written, fired, cancelled, lost with the device, refused. Run as `flags BACKEND`. */
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "rig.h"
#include "test.h"

#define US     ((int64_t)1000)
#define MS     (1000 * US)
#define SECOND (1000 * MS)

/* --- firing --- */

RIG_BODY(g04_a_flag_fires_after_the_work_and_not_before)
{
	uint64_t version = wr_flags_version(rig->system);
	weir_fence fence;

	assert_int_equal(wr_flags_poll(rig->system, wr_now()), INT64_MAX);
	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record_flag(rig->a);
	rig_arm_flag(rig, 5, fence);
	assert_int_equal(wr_flags_armed(rig->system), 1);
	assert_int_equal(wr_system_outstanding(rig->system), 1);
	assert_true(wr_flags_version(rig->system) > version);
	assert_true(wr_flags_poll(rig->system, wr_now()) > 0);
	assert_int_equal(wr_load(&rig->waker.poked[5]), 0);
	rig_poll_until_idle(rig);
	assert_int_equal(wr_load(&rig->waker.poked[5]), 1);
	assert_int_equal(wr_fence_query(rig->system, fence), WEIR_OK);
	assert_int_equal(wr_load(&rig->waker.kicked), 1); /* by arming alone */
}

RIG_BODY(g04_one_flag_waits_for_all_fences)
{
	weir_fence fences[3];

	rig_store(rig, rig->a, 1, 5 * MS);
	fences[0] = rig_record_flag(rig->a);
	rig->cell++;
	rig_store(rig, rig->b, 1, 30 * MS);
	fences[1] = rig_record_flag(rig->b);
	rig->cell++;
	rig_store(rig, rig->c, 1, 10 * MS);
	fences[2] = rig_record_flag(rig->c);
	rig_arm_flags(rig, 5, fences, 3);
	rig_poll_until_idle(rig);
	assert_int_equal(wr_load(&rig->waker.poked[5]), 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wr_fence_query(rig->system, fences[i]), WEIR_OK);
}

RIG_BODY(g04_two_entities_wait_for_one_point)
{
	weir_fence fence;

	rig_store(rig, rig->a, 1, 5 * MS);
	fence = rig_record_flag(rig->a);
	assert_int_equal(wr_flag_write(rig->a, WR_FLAGS_ALL), WEIR_OK); /* one write per point */
	rig_arm_flag(rig, 5, fence);
	rig_arm_flag(rig, 6, fence);
	rig_poll_until_idle(rig);
	assert_int_equal(wr_load(&rig->waker.poked[5]), 1);
	assert_int_equal(wr_load(&rig->waker.poked[6]), 1);
}

RIG_BODY(g04_what_is_complete_fires_at_the_first_look)
{
	weir_fence fence = rig_record_flag(rig->a);

	rig_wait(rig, fence);
	rig_arm_flag(rig, 5, fence);
	assert_int_equal(wr_flags_poll(rig->system, wr_now()), INT64_MAX);
	assert_int_equal(wr_load(&rig->waker.poked[5]), 1);
}

RIG_BODY(g04_a_cancelled_flag_pokes_no_entity)
{
	weir_fence fence;

	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record_flag(rig->a);
	wr_signal_cancel(rig->system, rig_arm_flag(rig, 5, fence));
	rig_arm_flag(rig, 6, fence);
	wr_flags_poll(rig->system, wr_now());
	assert_int_equal(wr_flags_armed(rig->system), 1);           /* 5 was removed at once */
	wr_signal_cancel(rig->system, rig_arm_flag(rig, 7, fence)); /* 5 was in the list, 7 is in the inbox */
	rig_poll_until_idle(rig);
	assert_int_equal(wr_load(&rig->waker.poked[5]), 0);
	assert_int_equal(wr_load(&rig->waker.poked[6]), 1);
	assert_int_equal(wr_load(&rig->waker.poked[7]), 0);
}

RIG_BODY(g04_a_point_without_a_flag_write_is_armed_otherwise)
{
	weir_fence fences[2];
	wr_token token = 0;

	rig_store(rig, rig->b, 1, 20 * MS);
	fences[1] = rig_record(rig->b);
	rig->cell++;
	rig_store(rig, rig->a, 1, 5 * MS);
	fences[0] = rig_record_flag(rig->a);
	assert_int_equal(wr_flag_arm(rig->system, 5, fences, 2, &token), WEIR_E_UNSUPPORTED);
	assert_int_equal(wr_flags_armed(rig->system), 0);
	rig_wait(rig, fences[1]);
	rig_arm_flags(rig, 5, fences, 2); /* a complete fence needs no flag */
	rig_poll_until_idle(rig);
	assert_int_equal(wr_load(&rig->waker.poked[5]), 1);
}

/* The later point may take long: neither a wait for nor a query of the earlier one may use its flag. */
RIG_BODY(g04_a_point_without_a_flag_write_does_not_wait_for_a_later_one)
{
	weir_fence fence, later;
	wr_token token;

	rig_store(rig, rig->a, 1, MS);
	fence = rig_record(rig->a);
	rig_store(rig, rig->a, 2, 30 * MS);
	later = rig_record_flag(rig->a);
	assert_int_equal(wr_flag_arm(rig->system, 5, &fence, 1, &token), WEIR_E_UNSUPPORTED);
	rig_wait(rig, fence);
	if (rig_is("sim"))
		assert_int_equal(wr_fence_query(rig->system, later), WEIR_E_BUSY);
	rig_wait(rig, later);
}

/* The fence's slot in the event ring belonged to a point that wrote the flag. */
RIG_BODY(g04_a_place_that_is_used_again_says_nothing_of_the_next_point)
{
	weir_fence fence = {0, 0};
	wr_token token;

	for (int i = 0; i < WR_EVENTS; i++)
		rig_wait(rig, rig_record_flag(rig->a));
	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record(rig->a);
	rig_record_flag(rig->a);
	assert_int_equal(wr_flag_arm(rig->system, 5, &fence, 1, &token), WEIR_E_UNSUPPORTED);
	rig_wait(rig, fence);
}

RIG_BODY(g04_an_entity_that_queued_for_a_callback_leaves_the_queue)
{
	weir_fence fence;
	wr_token token;

	rig->system->signals.bound = 0;
	rig_store(rig, rig->a, 1, 5 * MS);
	fence = rig_record(rig->a);
	assert_int_equal(wr_signal_arm(rig->system, 5, &fence, 1, &token), WEIR_E_BUSY);
	assert_int_equal(wr_load(&rig->waker.live), 1);
	assert_int_equal(wr_flag_write(rig->a, WR_FLAGS_ALL), WEIR_OK);
	rig_arm_flag(rig, 5, fence);
	assert_int_equal(wr_load(&rig->waker.live), 0);
	rig_poll_until_idle(rig);
}

RIG_BODY(g04_a_point_after_which_the_word_wraps_around_is_not_complete_early)
{
	weir_fence fence;

	rig_count_from(rig, rig->a, UINT32_MAX - (uint64_t)1);
	rig_wait(rig, rig_record_flag(rig->a)); /* the largest word */
	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record_flag(rig->a);
	assert_int_equal(wr_fence_query(rig->system, fence), WEIR_E_BUSY);
	rig_wait(rig, fence);
}

RIG_BODY(g04_views_write_flags_of_their_own)
{
	weir_stream *view = NULL;
	weir_fence of_a, of_view;

	assert_int_equal(wr_stream_share(rig->a, "view", &view), WEIR_OK);
	rig_store(rig, rig->a, 1, 5 * MS);
	of_a = rig_record_flag(rig->a);
	rig_store(rig, view, 2, 20 * MS);
	of_view = rig_record_flag(view);
	assert_ptr_not_equal(wr_load(&rig->a->word), wr_load(&view->word));
	rig_arm_flag(rig, 5, of_a);
	rig_arm_flag(rig, 6, of_view);
	rig_poll_until_idle(rig);
	assert_int_equal(wr_fence_query(rig->system, of_view), WEIR_OK);
	wr_stream_close(view);
}

RIG_BODY(g04_a_stream_that_is_opened_again_counts_on)
{
	weir_stream *stream = rig_stream(rig, "first");
	_Atomic uint32_t *word;
	weir_fence fence = rig_record_flag(stream);

	word = wr_load(&stream->word);
	rig_wait(rig, fence);
	wr_stream_close(stream);
	while (!wr_stream_idle(stream))
		wr_thread_sleep(10 * US);
	assert_ptr_equal(rig_stream(rig, "second"), stream);
	rig_store(rig, stream, 1, 10 * MS);
	fence = rig_record_flag(stream);
	assert_ptr_equal(wr_load(&stream->word), word);
	rig_arm_flag(rig, 5, fence);
	wr_flags_poll(rig->system, wr_now());
	assert_int_equal(wr_load(&rig->waker.poked[5]), 0);
	rig_poll_until_idle(rig);
	wr_stream_close(stream);
}

/* --- flag words that wrap around --- */

RIG_BODY(f39_a_word_comes_round_at_2_to_the_32)
{
	weir_fence fence = {0, 0};

	rig_count_from(rig, rig->a, UINT32_MAX - (uint64_t)2);
	for (int i = 0; i < 6; i++) {
		rig_store(rig, rig->a, i, 5 * MS);
		fence = rig_record_flag(rig->a);
		rig_arm_flag(rig, 5, fence);
		wr_flags_poll(rig->system, wr_now());
		assert_int_equal(wr_load(&rig->waker.poked[5]), i);
		rig_poll_until_idle(rig);
		assert_int_equal(wr_load(&rig->waker.poked[5]), i + 1);
		assert_int_equal(wr_fence_query(rig->system, fence), WEIR_OK);
	}
	assert_true(fence.value > UINT32_MAX);
}

RIG_BODY(f39_a_word_that_was_not_used_for_long_says_nothing)
{
	weir_fence fence;

	rig_wait(rig, rig_record_flag(rig->a));
	rig_count_from(rig, rig->a, UINT64_C(3) << 30);
	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record_flag(rig->a);
	rig_arm_flag(rig, 5, fence);
	wr_flags_poll(rig->system, wr_now());
	assert_int_equal(wr_load(&rig->waker.poked[5]), 0);
	rig_poll_until_idle(rig);
	assert_int_equal(wr_fence_query(rig->system, fence), WEIR_OK);
}

/* --- failure, the end of a run --- */

RIG_BODY(f10_a_failure_pokes_each_entity_that_waits_for_a_flag_once)
{
	weir_fence fence;
	wr_token token;

	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record_flag(rig->a);
	rig_record(rig->c);
	rig_arm_flag(rig, 1, fence);
	wr_flags_poll(rig->system, wr_now());
	rig_arm_flag(rig, 2, fence);
	wr_signal_cancel(rig->system, rig_arm_flag(rig, 3, fence));
	wr_system_fail(rig->system, "the device is gone");
	wr_flags_poll(rig->system, wr_now());
	assert_int_equal(wr_load(&rig->waker.poked[1]), 1);
	assert_int_equal(wr_load(&rig->waker.poked[2]), 1);
	assert_int_equal(wr_load(&rig->waker.poked[3]), 0);
	assert_int_equal(wr_flags_armed(rig->system), 0);
	assert_int_equal(wr_flag_arm(rig->system, 4, &fence, 1, &token), WEIR_E_DEVICE);
	assert_int_equal(wr_flag_write(rig->b, WR_FLAGS_ALL), WEIR_OK); /* no new point: nothing to write */
	assert_int_equal(wr_flag_write(rig->c, WR_FLAGS_ALL), WEIR_E_DEVICE);
	wr_flags_poll(rig->system, wr_now());
	assert_int_equal(wr_load(&rig->waker.poked[1]), 1);
	assert_int_equal(wr_load(&rig->waker.poked[4]), 0);
}

RIG_BODY(f08_a_flag_of_a_run_that_is_over_pokes_nothing)
{
	struct rig_waker next;
	weir_fence fence;

	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record_flag(rig->a);
	rig_arm_flag(rig, 1, fence);
	wr_flags_poll(rig->system, wr_now());
	rig_arm_flag(rig, 2, fence);
	wr_signal_cancel(rig->system, rig_arm_flag(rig, 3, fence));
	wr_system_detach(rig->system);
	memset(&rig->waker.waker, 0, sizeof rig->waker.waker); /* a call through it would crash */
	assert_int_equal(wr_flags_armed(rig->system), 0);
	assert_int_equal(wr_system_outstanding(rig->system), 0);
	rig_fill_waker(&next);
	wr_system_attach(rig->system, &next.waker);
	rig_arm_flag(rig, 4, fence);
	rig_poll_until_idle(rig);
	assert_int_equal(wr_load(&next.poked[4]), 1);
	assert_int_equal(wr_load(&next.poked[1]) + wr_load(&next.poked[2]), 0);
	wr_system_detach(rig->system);
}

RIG_BODY(f08_without_a_run_no_flag_is_armed)
{
	weir_fence fence = rig_record_flag(rig->a);
	wr_token token;

	wr_system_detach(rig->system);
	assert_int_equal(wr_flag_arm(rig->system, 1, &fence, 1, &token), WEIR_E_CLOSED);
}

/* --- devices that cannot write flags --- */

static weir_status cannot_write_flags(void *self, int device)
{
	(void)self;
	return wr_fail(WEIR_E_UNSUPPORTED, "device %d has no stream memory operations", device);
}

static weir_status only_the_first_is_written(void *self, int device)
{
	return device ? cannot_write_flags(self, device) : WEIR_OK;
}

RIG_BODY(g04_one_device_that_cannot_write_flags_is_enough_to_refuse)
{
	rig_own_backend(rig)->can_write_flag = only_the_first_is_written;
	assert_int_equal(wr_flags_use(rig->system, WR_FLAGS_ALL), WEIR_E_UNSUPPORTED);
	assert_string_equal(weir_last_error(), "device 1 has no stream memory operations");
}

RIG_BODY(g04_a_device_that_cannot_write_flags_refuses_the_signal_by_name)
{
	rig_own_backend(rig)->can_write_flag = cannot_write_flags;
	assert_int_equal(wr_flags_use(rig->system, WR_FLAGS_ALL), WEIR_E_UNSUPPORTED);
	assert_string_equal(weir_last_error(), "device 0 has no stream memory operations");
	rig->backend.write_flag = NULL;
	assert_int_equal(wr_flags_use(rig->system, WR_FLAGS_ALL), WEIR_E_UNSUPPORTED);
	assert_int_equal(wr_flag_write(rig->a, WR_FLAGS_ALL),
			 WEIR_OK); /* not an error: the point is armed by callback */
	assert_true(wr_load(&rig->a->flag_value) < wr_load(&rig->a->submitted));
}

static bool is_given_out(const struct wr_flag_words *words, const _Atomic uint32_t *word)
{
	for (const struct wr_words_page *page = words->pages; page; page = page->older)
		if (word >= &page->at[0].value && word <= &page->at[WR_WORDS - 1].value)
			return true;
	return false;
}

RIG_BODY(g04_streams_have_their_words_before_the_first_write)
{
	enum { MANY = WR_WORDS + 3 };
	weir_stream *streams[MANY];

	assert_int_equal(wr_flags_use(rig->system, WR_FLAGS_ALL), WEIR_OK);
	assert_int_equal(wr_flags_use(rig->system, WR_FLAGS_ALL), WEIR_OK);
	for (int i = 0; i < MANY; i++) {
		streams[i] = rig_stream(rig, "one more");
		assert_non_null(wr_load(&streams[i]->word));
		assert_true(is_given_out(&rig->system->flag_words, wr_load(&streams[i]->word)));
		assert_true(!i || wr_load(&streams[i]->word) != wr_load(&streams[i - 1]->word));
	}
	for (int i = 0; i < MANY; i++)
		wr_stream_close(streams[i]);
}

static weir_status alloc_dirty(void *self, int device, size_t bytes, void **out)
{
	weir_status status = rig_is("sim") ? wr_backend_sim.alloc(self, device, bytes, out)
					   : wr_backend_host.alloc(self, device, bytes, out);

	if (!status)
		memset(*out, 0xff, bytes);
	return status;
}

RIG_BODY(g04_words_begin_with_the_completed_point_whatever_lay_there)
{
	weir_stream *stream;
	_Atomic uint32_t *word = NULL;

	rig_own_backend(rig)->alloc = alloc_dirty;
	assert_int_equal(wr_flag_word(rig->system, 0, &word), WEIR_OK);
	assert_int_equal(wr_load(word), 0);
	assert_int_equal(wr_flags_use(rig->system, WR_FLAGS_ALL), WEIR_OK);
	stream = rig_stream(rig, "new");
	assert_int_equal(wr_load(wr_load(&stream->word)), 0);
	wr_stream_close(stream);
}

/* The write would become a node of the captured graph and be repeated by each launch of it. */
RIG_BODY(g04_no_flag_is_written_in_a_capture)
{
	rig_record(rig->a);
	rig_own_backend(rig)->capturing = rig_in_capture;
	wr_store(&rig->a->native_given, true); /* a capture by its native handle, after the record */
	wr_store(&rig->a->dirty, true);
	assert_int_equal(wr_flag_write(rig->a, WR_FLAGS_ALL), WEIR_OK);
	assert_true(wr_load(&rig->a->flag_value) < wr_load(&rig->a->submitted));
	rig->backend.capturing = NULL;
	assert_int_equal(wr_flag_write(rig->a, WR_FLAGS_ALL), WEIR_OK);
	assert_true(wr_load(&rig->a->flag_value) == wr_load(&rig->a->submitted));
}

/* The write is enqueued after the record, so it may still be pending when the fence is complete. */
RIG_BODY(t05_a_stream_that_wrote_is_drained_when_its_flag_is_written)
{
	weir_stream *stream = rig_stream(rig, "written");
	weir_fence fence = rig_record_flag(stream);

	rig_wait(rig, fence);
	wr_stream_close(stream);
	assert_int_equal(wr_load(&stream->submitted), fence.value + 1);
}

static weir_status refuse_write(void *self, int device, void *stream, _Atomic uint32_t *word, uint32_t value)
{
	(void)self;
	(void)device;
	(void)stream;
	(void)word;
	(void)value;
	return wr_fail(WEIR_E_NOMEM, "no room for a write");
}

RIG_BODY(f65_a_flag_write_that_could_not_be_enqueued_is_armed_otherwise)
{
	weir_fence fence;
	wr_token token;

	rig_own_backend(rig)->write_flag = refuse_write;
	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record_flag(rig->a);
	assert_int_equal(wr_flag_arm(rig->system, 1, &fence, 1, &token), WEIR_E_UNSUPPORTED);
	assert_int_equal(wr_signal_arm(rig->system, 1, &fence, 1, &token), WEIR_OK);
	rig_until_poked(rig, 1);
}

/* A stream lost on the other device may release waiters of this one. */
RIG_BODY(g01_the_word_of_a_callback_proves_nothing_of_another_device)
{
	struct wr_stream_spec spec = {.device = 1};
	weir_stream *far = NULL;
	weir_fence fences[2];
	wr_token token;

	assert_int_equal(wr_stream_open(rig->system, &spec, "far", &far), WEIR_OK);
	assert_int_equal(wr_signals_reserve(rig->system, 0, 1), WEIR_OK); /* signal streams have words */
	rig_store(rig, rig->a, 1, 5 * MS);
	fences[0] = rig_record(rig->a);
	rig->cell++;
	rig_store(rig, far, 1, 5 * MS);
	fences[1] = rig_record(far);
	assert_int_equal(wr_signal_arm(rig->system, 1, fences, 2, &token), WEIR_OK);
	rig_until_poked(rig, 1);
	assert_true(wr_fence_known_complete(rig->system, fences[0]));
	assert_false(wr_fence_known_complete(rig->system, fences[1]));
	assert_int_equal(wr_fence_query(rig->system, fences[1]), WEIR_OK);
	wr_stream_close(far);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(g04_a_flag_fires_after_the_work_and_not_before),
		cmocka_unit_test(g04_one_flag_waits_for_all_fences),
		cmocka_unit_test(g04_two_entities_wait_for_one_point),
		cmocka_unit_test(g04_what_is_complete_fires_at_the_first_look),
		cmocka_unit_test(g04_a_cancelled_flag_pokes_no_entity),
		cmocka_unit_test(g04_a_point_without_a_flag_write_is_armed_otherwise),
		cmocka_unit_test(g04_a_point_without_a_flag_write_does_not_wait_for_a_later_one),
		cmocka_unit_test(g04_a_place_that_is_used_again_says_nothing_of_the_next_point),
		cmocka_unit_test(g04_an_entity_that_queued_for_a_callback_leaves_the_queue),
		cmocka_unit_test(g04_a_point_after_which_the_word_wraps_around_is_not_complete_early),
		cmocka_unit_test(g04_views_write_flags_of_their_own),
		cmocka_unit_test(g04_a_stream_that_is_opened_again_counts_on),
		cmocka_unit_test(f39_a_word_comes_round_at_2_to_the_32),
		cmocka_unit_test(f39_a_word_that_was_not_used_for_long_says_nothing),
		cmocka_unit_test(f10_a_failure_pokes_each_entity_that_waits_for_a_flag_once),
		cmocka_unit_test(f08_a_flag_of_a_run_that_is_over_pokes_nothing),
		cmocka_unit_test(f08_without_a_run_no_flag_is_armed),
		cmocka_unit_test(g04_a_device_that_cannot_write_flags_refuses_the_signal_by_name),
		cmocka_unit_test(g04_one_device_that_cannot_write_flags_is_enough_to_refuse),
		cmocka_unit_test(g04_words_begin_with_the_completed_point_whatever_lay_there),
		cmocka_unit_test(g04_no_flag_is_written_in_a_capture),
		cmocka_unit_test(t05_a_stream_that_wrote_is_drained_when_its_flag_is_written),
		cmocka_unit_test(g04_streams_have_their_words_before_the_first_write),
		cmocka_unit_test(f65_a_flag_write_that_could_not_be_enqueued_is_armed_otherwise),
		cmocka_unit_test(g01_the_word_of_a_callback_proves_nothing_of_another_device),
	};

	if (argc > 1)
		rig_backend = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}

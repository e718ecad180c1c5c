/* The contract of flags, signals and the watch (G1 to G4, E2). */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "contract.h"
#include "tests/calls.h"

#define MS     1000000
#define SECOND (1000 * (int64_t)MS)

/* --- flags --- */

static bool can_write_flags(struct rig *rig)
{
	const struct wr_backend *backend = rig->system->backend;

	return !backend->can_write_flag || !backend->can_write_flag(rig->system->native, 0);
}

static _Atomic uint32_t *a_word(struct rig *rig)
{
	_Atomic uint32_t *flag;
	void *memory = NULL;

	assert_int_equal(wr_system_alloc(rig->system, WEIR_DEVICE_HOST, sizeof *flag, &memory), WEIR_OK);
	flag = memory;
	wr_store(flag, 0);
	return flag;
}

static void write_flag_word(struct rig *rig, weir_stream *stream, _Atomic uint32_t *flag, uint32_t value)
{
	const struct wr_backend *backend = rig->system->backend;

	assert_int_equal(backend->write_flag(rig->system->native, 0, stream->native, flag, value), WEIR_OK);
}

/* Waits for the value; the word must only grow. */
static void wait_until_written(_Atomic uint32_t *flag, uint32_t value)
{
	int64_t deadline = wr_now() + 10 * SECOND;
	uint32_t last = 0, now;

	for (; (now = wr_load(flag)) != value && wr_now() < deadline; last = now) {
		assert_true(now >= last && now < value);
		wr_thread_sleep(10000);
	}
	assert_int_equal(wr_load(flag), value);
}

RIG_BODY(g4_a_flag_is_written_when_the_work_before_it_is_done)
{
	_Atomic uint32_t *flag = a_word(rig);

	if (!can_write_flags(rig))
		return;
	for (int i = 1; i <= 10; i++) {
		rig_add(rig, rig->a, 1, 2 * MS);
		assert_int_equal(copy_bytes(rig->a, rig->copy, rig->cell, sizeof *rig->cell), WEIR_OK);
		write_flag_word(rig, rig->a, flag, (uint32_t)i);
		wait_until_written(flag, (uint32_t)i);
		assert_int_equal(*rig->copy, i);
	}
}

RIG_BODY(g4_the_word_of_a_flag_only_grows)
{
	_Atomic uint32_t *flag = a_word(rig);

	if (!can_write_flags(rig))
		return;
	for (uint32_t i = 1; i <= 50; i++) {
		rig_add(rig, rig->a, 1, i % 3 * MS);
		write_flag_word(rig, rig->a, flag, i);
	}
	wait_until_written(flag, 50);
	rig_wait(rig, rig_record(rig->a));
	assert_int_equal(wr_load(flag), 50);
}

RIG_BODY(f12_a_lost_flag_leaves_the_word_as_it_was)
{
	struct wr_sim_knobs knobs = {.lost = 1000};
	_Atomic uint32_t *flag = a_word(rig);

	if (!rig_is("sim"))
		return;
	wr_system_set_knobs(rig->system, &knobs);
	write_flag_word(rig, rig->a, flag, 1);
	rig_wait(rig, rig_record(rig->a));
	assert_int_equal(wr_load(flag), 0);
}

/* --- signals --- */

struct called {
	_Atomic uint32_t *word;
	const int *cell;
	_Atomic int value; /* what the call found: 0 until then; -1: not its flag */
};

static void note_call(void *arg)
{
	struct called *called = arg;

	wr_store(&called->value, wr_load(called->word) == 7 ? *called->cell : -1);
}

/* Whether the backend does it in one call or in three. */
RIG_BODY(g3_a_signal_waits_then_writes_its_flag_then_calls)
{
	_Atomic uint32_t *word = a_word(rig);
	struct called called = {.word = word, .cell = rig->copy};
	struct wr_firing firing = {.word = word, .value = 7, .fn = note_call, .arg = &called};
	weir_fence fence;

	if (!can_write_flags(rig))
		return;
	rig_store(rig, rig->a, 3, 20 * MS);
	assert_int_equal(copy_bytes(rig->a, rig->copy, rig->cell, sizeof *rig->cell), WEIR_OK);
	fence = rig_record(rig->a);
	firing.event = wr_stream_event(rig->a, fence.value)->native;
	assert_int_equal(wr_device_prepare(rig->system, 0, rig->b->native, &firing), WEIR_OK);
	assert_int_equal(wr_device_signal(rig->system, 0, rig->b->native, &firing), WEIR_OK);
	fence = rig_record(rig->b); /* behind the call */
	rig_wait(rig, fence);
	assert_int_equal(wr_load(&called.value), 3);
	firing.event = NULL; /* it waits for nothing, and writes nothing */
	firing.word = NULL;
	wr_store(word, 7);
	wr_store(&called.value, 0);
	assert_int_equal(wr_device_prepare(rig->system, 0, rig->b->native, &firing), WEIR_OK);
	assert_int_equal(wr_device_signal(rig->system, 0, rig->b->native, &firing), WEIR_OK);
	rig_wait(rig, rig_record(rig->b));
	assert_int_equal(wr_load(&called.value), 3);
	wr_system_free(rig->system, WEIR_DEVICE_HOST, (void *)word, sizeof *word);
}

RIG_BODY(g3_one_signal_waits_for_all_fences)
{
	weir_fence fences[3];
	wr_token token;

	rig_store(rig, rig->a, 1, 0);
	rig->cell++;
	rig_store(rig, rig->b, 1, 20 * MS);
	rig->cell++;
	rig_store(rig, rig->c, 1, 10 * MS);
	fences[0] = rig_record(rig->a);
	fences[1] = rig_record(rig->b);
	fences[2] = rig_record(rig->c);
	assert_int_equal(wr_signal_arm(rig->system, 5, fences, 3, &token), WEIR_OK);
	assert_int_equal(wr_system_outstanding(rig->system), 1);
	rig_until_poked(rig, 5);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wr_fence_query(rig->system, fences[i]), WEIR_OK);
	rig_until_none_outstanding(rig);
	wr_system_collect(rig->system);
	assert_int_equal(rig->waker.poked[5], 1);
}

RIG_BODY(g1_a_cancelled_signal_pokes_no_entity)
{
	weir_fence fence;
	wr_token token;

	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record(rig->a);
	wr_signal_cancel(rig->system, rig_arm(rig, 5, fence));
	wr_signal_cancel(rig->system, 0);
	token = rig_arm(rig, 6, fence);
	rig_until_poked(rig, 6);
	rig_until_none_outstanding(rig);
	assert_int_equal(rig->waker.poked[5], 0);
	assert_int_equal(rig->waker.fired[6], token);
	assert_int_equal(wr_system_stale(rig->system), 1);
}

RIG_BODY(g3_a_signal_for_foreign_fences_is_refused)
{
	weir_fence foreign = {UINT64_MAX, 1};
	wr_token token;

	assert_int_equal(wr_signal_arm(rig->system, 5, &foreign, 1, &token), WEIR_E_INVALID);
	assert_int_equal(wr_system_outstanding(rig->system), 0);
}

/* A kernel that lasts until all is armed, also on a busy machine. */
#define LONG (200 * MS)

RIG_BODY(g2_at_the_bound_entities_wait_in_order)
{
	weir_fence fence;
	wr_token token;

	rig->system->signals.bound = 2;
	rig_store(rig, rig->a, 1, LONG);
	fence = rig_record(rig->a);
	wr_signal_cancel(rig->system, rig_arm(rig, 1, fence)); /* counts until it has fired */
	rig_arm(rig, 2, fence);
	for (uint32_t entity = 3; entity <= 6; entity++)
		assert_int_equal(wr_signal_arm(rig->system, entity, &fence, 1, &token), WEIR_E_BUSY);
	assert_int_equal(wr_signal_arm(rig->system, 3, &fence, 1, &token),
			 WEIR_E_BUSY); /* in the FIFO already */
	assert_int_equal(rig->waker.live, 4);
	wr_signal_leave_fifo(rig->system, 4);
	wr_signal_leave_fifo(rig->system, 4);
	assert_int_equal(rig->waker.live, 3);
	rig_until_kicked(rig, 2);
	rig_until_none_outstanding(rig);
	wr_system_collect(rig->system);
	assert_int_equal(rig->waker.poked[3], 1);
	assert_int_equal(rig->waker.fired[3], 0); /* no signal of it fired: it may try again */
	assert_int_equal(rig->waker.poked[4], 0);
	assert_int_equal(rig->waker.poked[5], 1);
	assert_int_equal(rig->waker.live, rig->waker.poked[6] ? 0 : 1);
}

RIG_BODY(g2_a_turn_that_is_not_taken_goes_to_the_next)
{
	weir_fence fence;
	wr_token token;
	int64_t next;

	rig->system->signals.bound = 1;
	rig_store(rig, rig->a, 1, LONG);
	fence = rig_record(rig->a);
	rig_arm(rig, 1, fence);
	assert_int_equal(wr_signal_arm(rig->system, 2, &fence, 1, &token), WEIR_E_BUSY);
	assert_int_equal(wr_signal_arm(rig->system, 3, &fence, 1, &token), WEIR_E_BUSY);
	rig_until_poked(rig, 1);
	rig_until_none_outstanding(rig);
	wr_system_collect(rig->system);
	assert_int_equal(rig->waker.poked[2], 1);
	assert_int_equal(rig->waker.poked[3], 0); /* 2 is READY and arms nothing */
	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_int_equal(rig->waker.poked[3], 1);
	assert_int_equal(rig->waker.live, 0);
}

RIG_BODY(g2_an_entity_that_gets_a_token_leaves_the_fifo)
{
	weir_fence fence;
	wr_token token;

	rig->system->signals.bound = 1;
	rig_store(rig, rig->a, 1, LONG);
	fence = rig_record(rig->a);
	rig_arm(rig, 1, fence);
	assert_int_equal(wr_signal_arm(rig->system, 2, &fence, 1, &token), WEIR_E_BUSY);
	assert_int_equal(rig->waker.live, 1);
	rig->system->signals.bound = 2;
	rig_arm(rig, 2, fence);
	assert_int_equal(rig->waker.live, 0);
	assert_false(wr_refused_any(rig->system));
}

RIG_BODY(g2_inline_signals_count_against_the_bound_of_the_device)
{
	weir_fence fence;

	rig->system->signals.bound = 2;
	rig_store(rig, rig->a, 1, LONG);
	fence = rig_record(rig->a);
	assert_int_equal(rig_arm_inline(rig, 1, fence), WEIR_OK);
	rig_arm(rig, 2, fence);
	assert_int_equal(rig_arm_inline(rig, 3, fence), WEIR_E_BUSY);
	assert_int_equal(rig->waker.live, 1);
	rig_until_poked(rig, 1);
	rig_collect_until_poked(rig, 3);
	assert_int_equal(rig->waker.live, 0);
}

RIG_BODY(f08_a_signal_of_a_run_that_is_over_pokes_nothing)
{
	struct rig_waker next;
	weir_fence fence;

	rig_store(rig, rig->a, 1, LONG);
	fence = rig_record(rig->a);
	rig_arm(rig, 1, fence);
	assert_int_equal(rig_arm_inline(rig, 2, fence), WEIR_OK);
	wr_system_detach(rig->system);
	memset(&rig->waker.waker, 0, sizeof rig->waker.waker); /* a call through it would crash */
	rig_fill_waker(&next);
	wr_system_attach(rig->system, &next.waker);
	rig_arm(rig, 3, fence);
	while (!wr_load(&next.poked[3]))
		wr_thread_sleep(10000);
	assert_int_equal(rig->waker.poked[1] + rig->waker.poked[2] + next.poked[1] + next.poked[2], 0);
	wr_system_detach(rig->system);
	assert_int_equal(wr_system_outstanding(rig->system), 0);
}

RIG_BODY(g1_a_signal_that_was_cancelled_delays_no_other)
{
	struct rig_waker next;
	weir_fence slow;

	rig_store(rig, rig->a, 1, 150 * MS);
	slow = rig_record(rig->a);
	rig_arm(rig, 1, slow);
	wr_system_detach(rig->system);
	rig_fill_waker(&next);
	wr_system_attach(rig->system, &next.waker);
	rig_arm(rig, 2, rig_record(rig->b));
	while (!wr_load(&next.poked[2]))
		wr_thread_sleep(10000);
	assert_int_equal(wr_fence_query(rig->system, slow), WEIR_E_BUSY);
	wr_system_detach(rig->system);
}

RIG_BODY(g1_signal_streams_of_cancelled_signals_are_used_again)
{
	struct wr_signal_stream *first;
	weir_fence fence;

	assert_int_equal(wr_signals_reserve(rig->system, 0, 1), WEIR_OK);
	first = rig->system->signals.signal_streams;
	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record(rig->a);
	rig_arm(rig, 1, fence);
	wr_system_detach(rig->system);
	assert_ptr_equal(rig->system->signals.draining, first);
	rig_wait(rig, fence);
	wr_thread_sleep(SECOND / 2); /* the signal is behind it */
	assert_int_equal(wr_signals_reserve(rig->system, 0, 1), WEIR_OK);
	assert_ptr_equal(rig->system->signals.signal_streams, first);
	assert_null(rig->system->signals.draining);
}

RIG_BODY(g3_a_point_from_before_a_capture_is_signalled_and_none_is_recorded_in_it)
{
	weir_fence fence;

	if (!rig_is("cuda"))
		return;
	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record(rig->a);
	rig_cuda_capture(weir_stream_native(rig->a), true);
	assert_int_equal(rig_arm_inline(rig, 1, fence), WEIR_E_UNSUPPORTED);
	rig_arm(rig, 1, fence);
	assert_int_equal(weir_stream_record(rig->a, &fence), WEIR_E_UNSUPPORTED);
	rig_until_poked(rig, 1);
	assert_true(rig_cuda_capture(weir_stream_native(rig->a), false));
	rig_wait(rig, rig_record(rig->a));
}

RIG_BODY(f69_what_is_asked_meanwhile_breaks_no_capture)
{
	weir_fence fence = rig_record(rig->b);
	void *memory;

	if (!rig_is("cuda"))
		return;
	rig_cuda_capture(weir_stream_native(rig->a), true); /* in global mode */
	rig_wait(rig, fence);
	assert_int_equal(wr_system_alloc(rig->system, 0, 100 << 20, &memory), WEIR_OK);
	assert_true(rig_cuda_capture(weir_stream_native(rig->a), false));
	wr_system_free(rig->system, 0, memory, 100 << 20);
}

RIG_BODY(f08_without_a_run_nothing_is_armed)
{
	weir_fence fence = rig_record(rig->a);
	wr_token token;

	wr_system_detach(rig->system);
	assert_int_equal(wr_signal_arm(rig->system, 1, &fence, 1, &token), WEIR_E_CLOSED);
	assert_int_equal(rig_arm_inline(rig, 1, fence), WEIR_E_CLOSED);
}

RIG_BODY(f07_a_stream_is_closed_with_a_signal_pending)
{
	weir_stream *gone = rig_stream(rig, "gone");

	rig_store(rig, gone, 1, 10 * MS);
	assert_int_equal(rig_arm_inline(rig, 9, rig_record(gone)), WEIR_OK);
	wr_stream_close(gone);
	rig_until_poked(rig, 9);
}

RIG_BODY(f71_the_default_stream_carries_fences_and_signals)
{
	weir_stream *legacy = NULL;
	weir_fence fence;

	assert_int_equal(wr_stream_default(rig->system, 0, "default", &legacy), WEIR_OK);
	rig_store(rig, legacy, 4, 20 * MS);
	fence = rig_record(legacy);
	rig_arm(rig, 1, fence);
	assert_int_equal(rig_arm_inline(rig, 2, fence), WEIR_E_UNSUPPORTED); /* others may enqueue there */
	rig_until_poked(rig, 1);
	assert_int_equal(rig_read(rig, rig->a), 4);
	wr_stream_close(legacy);
}

/* --- the watch --- */

RIG_BODY(e2_streams_that_are_not_queried_wake_the_loop)
{
	wr_stream_begin_tick(rig->a);
	rig_store(rig, rig->a, 1, 200 * MS); /* not done before it is asked, on a busy machine, too */
	rig_record(rig->a);
	wr_store(&rig->waker.kicked, 0);
	assert_int_equal(wr_system_arm_kicks(rig->system, true, true), WEIR_OK);
	assert_int_equal(wr_system_arm_kicks(rig->system, true, true), WEIR_OK);
	assert_int_equal(wr_system_outstanding(rig->system), 1); /* one reference for the last point */
	rig_until_none_outstanding(rig);
	rig_until_kicked(rig, 1);
	wr_system_collect(rig->system);
	assert_int_equal(rig->waker.live, 0);
}

RIG_BODY(e2_a_record_wakes_the_resting_watch)
{
	int64_t next;

	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_true(next == INT64_MAX);
	wr_store(&rig->waker.kicked, 0);
	rig_record(rig->a);
	assert_int_equal(rig->waker.kicked, 1);
}

RIG_BODY(e2_the_watch_sees_old_work_and_rests_when_there_is_none)
{
	int64_t next = 0, now = wr_now();
	weir_fence fence;

	assert_int_equal(wr_system_watch(rig->system, now, &next), WEIR_OK);
	assert_true(next == INT64_MAX);
	wr_store(&rig->waker.kicked, 0);
	wr_stream_begin_tick(rig->a);
	assert_int_equal(rig->waker.kicked, 1); /* the loop was told of the new work */
	rig_store(rig, rig->a, 1, MS);
	fence = rig_record(rig->a);
	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_true(next != INT64_MAX);
	assert_false(wr_fence_known_complete(rig->system, fence));
	while (!wr_fence_known_complete(rig->system, fence)) {
		wr_thread_sleep(10 * MS);
		assert_int_equal(wr_system_watch(rig->system, wr_now() + 200 * MS, &next), WEIR_OK);
	}
	assert_int_equal(rig->waker.live, 0);
	assert_true(next == INT64_MAX);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(g4_a_flag_is_written_when_the_work_before_it_is_done),
	cmocka_unit_test(g4_the_word_of_a_flag_only_grows),
	cmocka_unit_test(f12_a_lost_flag_leaves_the_word_as_it_was),
	cmocka_unit_test(g3_a_signal_waits_then_writes_its_flag_then_calls),
	cmocka_unit_test(g3_one_signal_waits_for_all_fences),
	cmocka_unit_test(g1_a_cancelled_signal_pokes_no_entity),
	cmocka_unit_test(g3_a_signal_for_foreign_fences_is_refused),
	cmocka_unit_test(g2_at_the_bound_entities_wait_in_order),
	cmocka_unit_test(g2_a_turn_that_is_not_taken_goes_to_the_next),
	cmocka_unit_test(g2_an_entity_that_gets_a_token_leaves_the_fifo),
	cmocka_unit_test(g2_inline_signals_count_against_the_bound_of_the_device),
	cmocka_unit_test(f08_a_signal_of_a_run_that_is_over_pokes_nothing),
	cmocka_unit_test(g1_a_signal_that_was_cancelled_delays_no_other),
	cmocka_unit_test(g1_signal_streams_of_cancelled_signals_are_used_again),
	cmocka_unit_test(g3_a_point_from_before_a_capture_is_signalled_and_none_is_recorded_in_it),
	cmocka_unit_test(f69_what_is_asked_meanwhile_breaks_no_capture),
	cmocka_unit_test(f08_without_a_run_nothing_is_armed),
	cmocka_unit_test(f07_a_stream_is_closed_with_a_signal_pending),
	cmocka_unit_test(f71_the_default_stream_carries_fences_and_signals),
	cmocka_unit_test(e2_streams_that_are_not_queried_wake_the_loop),
	cmocka_unit_test(e2_a_record_wakes_the_resting_watch),
	cmocka_unit_test(e2_the_watch_sees_old_work_and_rests_when_there_is_none),
};

const struct contract_part contract_signals = {tests, sizeof tests / sizeof *tests};

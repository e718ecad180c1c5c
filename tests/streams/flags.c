/* Completion flags: what the poller sees, when it looks again, and its estimates. Run as `flags BACKEND`. */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "rig.h"
#include "streams/poller.h"
#include "streams/signal.h"
#include "test.h"

#define US     ((int64_t)1000)
#define MS     (1000 * US)
#define SECOND (1000 * MS)

/* --- estimates --- */

static void g04_what_is_learned_comes_near_to_what_is_and_stays_within_bounds(void **state)
{
	struct wr_estimate estimate = {0};

	(void)state;
	wr_estimate_learn(&estimate, 8 * MS);
	assert_int_equal(estimate.mean, 8 * MS);
	assert_int_equal(wr_estimate_late(&estimate), 12 * MS); /* one sample: a wide margin */
	for (int i = 0; i < 100; i++)
		wr_estimate_learn(&estimate, MS);
	assert_in_range(estimate.mean, MS - 10 * US, MS + 10 * US);
	assert_in_range(wr_estimate_early(&estimate), MS - 50 * US, MS);
	wr_estimate_learn(&estimate, INT64_MAX);
	assert_in_range(estimate.mean, MS, 2 * SECOND);
	assert_int_equal(wr_estimate_early(&estimate), estimate.mean / 2); /* the lower bound */
	for (int i = 0; i < 100; i++)
		wr_estimate_learn(&estimate, -5);
	assert_in_range(estimate.mean, 0, 20 * US);
	for (int i = 0; i < 1000; i++)
		wr_estimate_learn(&estimate, INT64_MAX);
	assert_true(estimate.mean <= WR_ESTIMATE_MOST && wr_estimate_late(&estimate) <= WR_ESTIMATE_MOST);
}

/* Frames of 5 ms; each sleep ends 200 us after the frame. The estimate must stay steady, and early enough. */
static void g04_sleeps_that_end_too_late_make_no_work_seem_shorter_than_it_is(void **state)
{
	struct wr_estimate estimate = {0};

	(void)state;
	wr_estimate_learn_between(&estimate, 4 * MS, 6 * MS);
	assert_int_equal(estimate.mean, 5 * MS);
	for (int i = 0; i < 50; i++)
		wr_estimate_learn_between(&estimate, 0, 5 * MS + 200 * US);
	assert_int_equal(estimate.mean, 5 * MS); /* nothing was learned */
	assert_true(estimate.deviation < 10 * US);
	for (int i = 0; i < 50; i++)
		wr_estimate_learn_between(&estimate, 0, 3 * MS);
	assert_in_range(estimate.mean, 3 * MS - 100 * US, 3 * MS + 100 * US); /* it did end before */
}

static void g04_it_spins_while_the_end_may_come_if_that_is_short(void **state)
{
	struct wr_waiting tight = {.known = true, .early = 990 * US, .mean = MS, .late = 1010 * US};
	struct wr_waiting wide = {.known = true, .early = MS, .mean = 2 * MS, .late = 3 * MS};
	struct wr_waiting longer = {.known = true, .early = 4900 * US, .mean = 5 * MS, .late = 5100 * US};

	(void)state;
	assert_int_equal(wr_wait_next(&tight, 980 * US, true, 60 * US), 980 * US);
	assert_int_equal(wr_wait_next(&tight, 1020 * US, true, 60 * US), 1020 * US);
	assert_int_equal(wr_wait_next(&wide, 2 * MS, true, 60 * US), 2 * MS + 125 * US); /* now and then */
	assert_int_equal(wr_wait_next(&longer, 5 * MS, true, 60 * US), 5 * MS); /* not worth a spin */
}

static void g04_longer_work_is_expected_later(void **state)
{
	(void)state;
	for (int64_t length = 10 * US; length < SECOND; length *= 2) {
		struct wr_estimate shorter = {0}, longer = {0};

		for (int i = 0; i < 20; i++) {
			wr_estimate_learn(&shorter, length + i % 3 * US);
			wr_estimate_learn(&longer, 2 * length + i % 3 * US);
		}
		assert_true(wr_estimate_early(&shorter) < wr_estimate_early(&longer));
		assert_true(wr_estimate_early(&shorter) <= shorter.mean &&
			    shorter.mean <= wr_estimate_late(&shorter));
	}
}

static void g04_it_sleeps_until_shortly_before_the_end_that_it_expects(void **state)
{
	struct wr_waiting wait = {.since = 0, .asked = 100, .known = true, .early = 9 * MS, .mean = 10 * MS};
	int64_t overdue = 100 * MS;

	(void)state;
	assert_int_equal(wr_wait_next(&wait, MS, true, 60 * US), 9 * MS - 60 * US);
	assert_int_equal(wr_wait_next(&wait, 2 * MS, true, 500 * US), 9 * MS - 500 * US);
	assert_in_range(wr_wait_next(&wait, overdue, true, 60 * US), overdue + 1, overdue + MS); /* no spin */
}

static void g04_it_sleeps_for_no_moment_that_is_not_worth_a_sleep(void **state)
{
	struct wr_waiting wait = {.known = true, .early = 9 * MS, .mean = 9020 * US, .late = 9040 * US};

	(void)state;
	assert_int_equal(wr_wait_next(&wait, 9 * MS - 81 * US, true, 60 * US), 9 * MS - 60 * US);
	assert_int_equal(wr_wait_next(&wait, 9 * MS - 79 * US, true, 60 * US), 9 * MS - 79 * US);
}

static void g04_it_spins_only_a_moment_for_what_it_does_not_know(void **state)
{
	struct wr_waiting wait = {.since = 0, .asked = MS};

	(void)state;
	assert_int_equal(wr_wait_next(&wait, MS + 50 * US, true, 60 * US), MS + 50 * US);
	assert_in_range(wr_wait_next(&wait, MS + 800 * US, true, 60 * US), MS + 801 * US, MS + 900 * US);
	assert_int_equal(wr_wait_next(&wait, 100 * MS, true, 60 * US), 101 * MS);
}

static void g04_it_never_spins_where_the_work_is_this_machines_own(void **state)
{
	(void)state;
	for (int64_t waited = 0; waited < SECOND; waited = waited * 2 + US) {
		struct wr_waiting wait = {.asked = MS, .known = true, .early = 5 * MS, .mean = 6 * MS};
		int64_t now = MS + waited;

		assert_in_range(wr_wait_next(&wait, now, false, 60 * US), now + 5 * US, now + MS);
	}
}

/* --- helpers --- */

static wr_token arm_all(struct rig *rig, uint32_t entity, const weir_fence *fences, size_t n)
{
	wr_token token = 0;

	assert_int_equal(wr_flag_arm(rig->system, entity, fences, n, &token), WEIR_OK);
	assert_true(token != 0);
	return token;
}

static wr_token arm(struct rig *rig, uint32_t entity, weir_fence fence)
{
	return arm_all(rig, entity, &fence, 1);
}

static weir_fence record_and_write(weir_stream *stream)
{
	weir_fence fence = rig_record(stream);

	assert_int_equal(wr_flag_write(stream), WEIR_OK);
	return fence;
}

/* Polls as the poller does until nothing is armed. */
static void poll_until_idle(struct rig *rig)
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

/* --- firing --- */

RIG_BODY(g04_a_flag_fires_after_the_work_and_not_before)
{
	uint64_t version = wr_flags_version(rig->system);
	weir_fence fence;

	assert_int_equal(wr_flags_poll(rig->system, wr_now()), INT64_MAX);
	rig_store(rig, rig->a, 1, 20 * MS);
	fence = record_and_write(rig->a);
	arm(rig, 5, fence);
	assert_int_equal(wr_flags_armed(rig->system), 1);
	assert_int_equal(wr_system_outstanding(rig->system), 1);
	assert_true(wr_flags_version(rig->system) > version);
	assert_true(wr_flags_poll(rig->system, wr_now()) > 0);
	assert_int_equal(wr_load(&rig->waker.poked[5]), 0);
	poll_until_idle(rig);
	assert_int_equal(wr_load(&rig->waker.poked[5]), 1);
	assert_int_equal(wr_fence_query(rig->system, fence), WEIR_OK);
	assert_int_equal(wr_load(&rig->waker.kicked), 1); /* by arming alone */
}

RIG_BODY(g04_one_flag_waits_for_all_fences)
{
	weir_fence fences[3];

	rig_store(rig, rig->a, 1, 5 * MS);
	fences[0] = record_and_write(rig->a);
	rig->cell++;
	rig_store(rig, rig->b, 1, 30 * MS);
	fences[1] = record_and_write(rig->b);
	rig->cell++;
	rig_store(rig, rig->c, 1, 10 * MS);
	fences[2] = record_and_write(rig->c);
	arm_all(rig, 5, fences, 3);
	poll_until_idle(rig);
	assert_int_equal(wr_load(&rig->waker.poked[5]), 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wr_fence_query(rig->system, fences[i]), WEIR_OK);
}

RIG_BODY(g04_two_entities_wait_for_one_point)
{
	weir_fence fence;

	rig_store(rig, rig->a, 1, 5 * MS);
	fence = record_and_write(rig->a);
	assert_int_equal(wr_flag_write(rig->a), WEIR_OK); /* one write per point */
	arm(rig, 5, fence);
	arm(rig, 6, fence);
	poll_until_idle(rig);
	assert_int_equal(wr_load(&rig->waker.poked[5]), 1);
	assert_int_equal(wr_load(&rig->waker.poked[6]), 1);
}

RIG_BODY(g04_what_is_complete_fires_at_the_first_look)
{
	weir_fence fence = record_and_write(rig->a);

	rig_wait(rig, fence);
	arm(rig, 5, fence);
	assert_int_equal(wr_flags_poll(rig->system, wr_now()), INT64_MAX);
	assert_int_equal(wr_load(&rig->waker.poked[5]), 1);
}

RIG_BODY(g04_a_cancelled_flag_pokes_no_entity)
{
	weir_fence fence;

	rig_store(rig, rig->a, 1, 20 * MS);
	fence = record_and_write(rig->a);
	wr_signal_cancel(rig->system, arm(rig, 5, fence));
	arm(rig, 6, fence);
	wr_flags_poll(rig->system, wr_now());
	assert_int_equal(wr_flags_armed(rig->system), 1);  /* 5 was removed at once */
	wr_signal_cancel(rig->system, arm(rig, 7, fence)); /* 5 was in the list, 7 is in the inbox */
	poll_until_idle(rig);
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
	fences[0] = record_and_write(rig->a);
	assert_int_equal(wr_flag_arm(rig->system, 5, fences, 2, &token), WEIR_E_UNSUPPORTED);
	assert_int_equal(wr_flags_armed(rig->system), 0);
	rig_wait(rig, fences[1]);
	arm_all(rig, 5, fences, 2); /* a complete fence needs no flag */
	poll_until_idle(rig);
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
	later = record_and_write(rig->a);
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
		rig_wait(rig, record_and_write(rig->a));
	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record(rig->a);
	record_and_write(rig->a);
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
	assert_int_equal(wr_flag_write(rig->a), WEIR_OK);
	arm(rig, 5, fence);
	assert_int_equal(wr_load(&rig->waker.live), 0);
	poll_until_idle(rig);
}

RIG_BODY(g04_views_write_flags_of_their_own)
{
	weir_stream *view = NULL;
	weir_fence of_a, of_view;

	assert_int_equal(wr_stream_share(rig->a, "view", &view), WEIR_OK);
	rig_store(rig, rig->a, 1, 5 * MS);
	of_a = record_and_write(rig->a);
	rig_store(rig, view, 2, 20 * MS);
	of_view = record_and_write(view);
	assert_ptr_not_equal(wr_load(&rig->a->word), wr_load(&view->word));
	arm(rig, 5, of_a);
	arm(rig, 6, of_view);
	poll_until_idle(rig);
	assert_int_equal(wr_fence_query(rig->system, of_view), WEIR_OK);
	wr_stream_close(view);
}

RIG_BODY(g04_a_stream_that_is_opened_again_counts_on)
{
	weir_stream *stream = rig_stream(rig, "first");
	_Atomic uint32_t *word;
	weir_fence fence = record_and_write(stream);

	word = wr_load(&stream->word);
	rig_wait(rig, fence);
	wr_stream_close(stream);
	while (!wr_stream_idle(stream))
		wr_thread_sleep(10 * US);
	assert_ptr_equal(rig_stream(rig, "second"), stream);
	rig_store(rig, stream, 1, 10 * MS);
	fence = record_and_write(stream);
	assert_ptr_equal(wr_load(&stream->word), word);
	arm(rig, 5, fence);
	wr_flags_poll(rig->system, wr_now());
	assert_int_equal(wr_load(&rig->waker.poked[5]), 0);
	poll_until_idle(rig);
	wr_stream_close(stream);
}

/* --- flag words that wrap around --- */

static void count_from(struct rig *rig, weir_stream *stream, uint64_t point)
{
	rig_wait(rig, rig_record(stream));
	wr_store(&stream->submitted, point);
	wr_store(&stream->completed, point);
}

RIG_BODY(f39_a_word_comes_round_at_2_to_the_32)
{
	weir_fence fence = {0, 0};

	count_from(rig, rig->a, UINT32_MAX - (uint64_t)2);
	for (int i = 0; i < 6; i++) {
		rig_store(rig, rig->a, i, 5 * MS);
		fence = record_and_write(rig->a);
		arm(rig, 5, fence);
		wr_flags_poll(rig->system, wr_now());
		assert_int_equal(wr_load(&rig->waker.poked[5]), i);
		poll_until_idle(rig);
		assert_int_equal(wr_load(&rig->waker.poked[5]), i + 1);
		assert_int_equal(wr_fence_query(rig->system, fence), WEIR_OK);
	}
	assert_true(fence.value > UINT32_MAX);
}

RIG_BODY(f39_a_word_that_was_not_used_for_long_says_nothing)
{
	weir_fence fence;

	rig_wait(rig, record_and_write(rig->a));
	count_from(rig, rig->a, UINT64_C(3) << 30);
	rig_store(rig, rig->a, 1, 10 * MS);
	fence = record_and_write(rig->a);
	arm(rig, 5, fence);
	wr_flags_poll(rig->system, wr_now());
	assert_int_equal(wr_load(&rig->waker.poked[5]), 0);
	poll_until_idle(rig);
	assert_int_equal(wr_fence_query(rig->system, fence), WEIR_OK);
}

/* --- failure, the end of a run --- */

RIG_BODY(f10_a_failure_pokes_each_entity_that_waits_for_a_flag_once)
{
	weir_fence fence;
	wr_token token;

	rig_store(rig, rig->a, 1, 20 * MS);
	fence = record_and_write(rig->a);
	rig_record(rig->c);
	arm(rig, 1, fence);
	wr_flags_poll(rig->system, wr_now());
	arm(rig, 2, fence);
	wr_signal_cancel(rig->system, arm(rig, 3, fence));
	wr_system_fail(rig->system, "the device is gone");
	wr_flags_poll(rig->system, wr_now());
	assert_int_equal(wr_load(&rig->waker.poked[1]), 1);
	assert_int_equal(wr_load(&rig->waker.poked[2]), 1);
	assert_int_equal(wr_load(&rig->waker.poked[3]), 0);
	assert_int_equal(wr_flags_armed(rig->system), 0);
	assert_int_equal(wr_flag_arm(rig->system, 4, &fence, 1, &token), WEIR_E_DEVICE);
	assert_int_equal(wr_flag_write(rig->b), WEIR_OK); /* no new point: nothing to write */
	assert_int_equal(wr_flag_write(rig->c), WEIR_E_DEVICE);
	wr_flags_poll(rig->system, wr_now());
	assert_int_equal(wr_load(&rig->waker.poked[1]), 1);
	assert_int_equal(wr_load(&rig->waker.poked[4]), 0);
}

RIG_BODY(f08_a_flag_of_a_run_that_is_over_pokes_nothing)
{
	struct rig_waker next;
	weir_fence fence;

	rig_store(rig, rig->a, 1, 20 * MS);
	fence = record_and_write(rig->a);
	arm(rig, 1, fence);
	wr_flags_poll(rig->system, wr_now());
	arm(rig, 2, fence);
	wr_signal_cancel(rig->system, arm(rig, 3, fence));
	wr_system_detach(rig->system);
	memset(&rig->waker.waker, 0, sizeof rig->waker.waker); /* a call through it would crash */
	assert_int_equal(wr_flags_armed(rig->system), 0);
	assert_int_equal(wr_system_outstanding(rig->system), 0);
	rig_fill_waker(&next);
	wr_system_attach(rig->system, &next.waker);
	arm(rig, 4, fence);
	poll_until_idle(rig);
	assert_int_equal(wr_load(&next.poked[4]), 1);
	assert_int_equal(wr_load(&next.poked[1]) + wr_load(&next.poked[2]), 0);
	wr_system_detach(rig->system);
}

RIG_BODY(f08_without_a_run_no_flag_is_armed)
{
	weir_fence fence = record_and_write(rig->a);
	wr_token token;

	wr_system_detach(rig->system);
	assert_int_equal(wr_flag_arm(rig->system, 1, &fence, 1, &token), WEIR_E_CLOSED);
}

/* --- the health check behind the poller --- */

RIG_BODY(f12_the_watch_looks_when_no_thread_polls)
{
	weir_fence fence;
	int64_t next;

	rig_store(rig, rig->a, 1, 5 * MS);
	fence = record_and_write(rig->a);
	arm(rig, 5, fence);
	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_true(next <= wr_now() + 50 * MS);
	rig_wait(rig, fence);
	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_int_equal(wr_load(&rig->waker.poked[5]), 1);
}

RIG_BODY(f12_arming_a_flag_wakes_the_watch)
{
	weir_fence fence = record_and_write(rig->a);
	int64_t next;
	int kicked;

	rig_wait(rig, fence);
	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_true(next == WR_FOREVER);
	kicked = wr_load(&rig->waker.kicked);
	arm(rig, 5, fence);
	assert_int_equal(wr_load(&rig->waker.kicked), kicked + 1);
	poll_until_idle(rig);
}

static void lose_flags(struct rig *rig, unsigned of_1000)
{
	struct wr_sim_knobs knobs = {.lost = of_1000};

	wr_system_set_knobs(rig->system, &knobs);
}

static weir_status watch_for(struct rig *rig, int64_t ns)
{
	int64_t end = wr_now() + ns, next;
	weir_status status = WEIR_OK;

	while (!status && wr_now() < end) {
		status = wr_system_watch(rig->system, wr_now(), &next);
		wr_thread_sleep(10 * MS);
	}
	return status;
}

RIG_BODY(f12_a_lost_flag_write_keeps_no_entity_waiting)
{
	if (!rig_is("sim"))
		return;
	lose_flags(rig, 1000);
	rig_store(rig, rig->a, 1, 5 * MS);
	arm(rig, 5, record_and_write(rig->a));
	assert_int_equal(watch_for(rig, 5 * SECOND), WEIR_OK); /* no later write: the loss cannot be told */
	assert_int_equal(wr_load(&rig->waker.poked[5]), 1);
}

RIG_BODY(f12_a_lost_flag_write_is_found_by_later_work)
{
	if (!rig_is("sim"))
		return;
	assert_int_equal(wr_flag_check(rig->system), WEIR_OK);
	rig_wait(rig, record_and_write(rig->a));
	assert_int_equal(watch_for(rig, 2 * SECOND), WEIR_OK);
	lose_flags(rig, 1000);
	rig_wait(rig, record_and_write(rig->a));
	assert_int_equal(watch_for(rig, 2 * SECOND), WEIR_OK);
	rig_wait(rig, record_and_write(rig->a));
	assert_int_equal(watch_for(rig, 2 * SECOND), WEIR_E_DEVICE);
	assert_non_null(strstr(wr_system_failure(rig->system), "flag lost: the work of 'a'"));
}

RIG_BODY(f39_a_word_that_was_not_used_for_long_is_not_lost)
{
	if (!rig_is("sim"))
		return;
	rig_wait(rig, record_and_write(rig->a));
	assert_int_equal(watch_for(rig, SECOND), WEIR_OK);
	count_from(rig, rig->a, UINT64_C(3) << 30);
	assert_int_equal(watch_for(rig, 2 * SECOND), WEIR_OK);
	rig_wait(rig, record_and_write(rig->a));
	assert_int_equal(watch_for(rig, 2 * SECOND), WEIR_OK);
	rig_wait(rig, record_and_write(rig->a));
	assert_int_equal(watch_for(rig, 2 * SECOND), WEIR_OK);
}

/* --- devices that cannot write flags --- */

static struct wr_backend changed;

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
	changed = *rig->system->backend;
	changed.can_write_flag = only_the_first_is_written;
	rig->system->backend = &changed;
	assert_int_equal(wr_flag_check(rig->system), WEIR_E_UNSUPPORTED);
	assert_string_equal(weir_last_error(), "device 1 has no stream memory operations");
}

RIG_BODY(g04_a_device_that_cannot_write_flags_refuses_the_signal_by_name)
{
	changed = *rig->system->backend;
	changed.can_write_flag = cannot_write_flags;
	rig->system->backend = &changed;
	assert_int_equal(wr_flag_check(rig->system), WEIR_E_UNSUPPORTED);
	assert_string_equal(weir_last_error(), "device 0 has no stream memory operations");
	changed.write_flag = NULL;
	assert_int_equal(wr_flag_check(rig->system), WEIR_E_UNSUPPORTED);
	assert_int_equal(wr_flag_write(rig->a), WEIR_OK); /* not an error: the point is armed by callback */
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

	assert_int_equal(wr_flag_check(rig->system), WEIR_OK);
	assert_int_equal(wr_flag_check(rig->system), WEIR_OK);
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

	changed = *rig->system->backend;
	changed.alloc = alloc_dirty;
	rig->system->backend = &changed;
	assert_int_equal(wr_flag_word(rig->system, 0, &word), WEIR_OK);
	assert_int_equal(wr_load(word), 0);
	assert_int_equal(wr_flag_check(rig->system), WEIR_OK);
	stream = rig_stream(rig, "new");
	assert_int_equal(wr_load(wr_load(&stream->word)), 0);
	wr_stream_close(stream);
}

/* The write would become a node of the captured graph and be repeated by each launch of it. */
RIG_BODY(g04_no_flag_is_written_in_a_capture)
{
	rig_record(rig->a);
	changed = *rig->system->backend;
	changed.capturing = rig_in_capture;
	rig->system->backend = &changed;
	wr_store(&rig->a->native_given, true); /* a capture by its native handle, after the record */
	wr_store(&rig->a->dirty, true);
	assert_int_equal(wr_flag_write(rig->a), WEIR_OK);
	assert_true(wr_load(&rig->a->flag_value) < wr_load(&rig->a->submitted));
	changed.capturing = NULL;
	assert_int_equal(wr_flag_write(rig->a), WEIR_OK);
	assert_true(wr_load(&rig->a->flag_value) == wr_load(&rig->a->submitted));
}

/* The write is enqueued after the record, so it may still be pending when the fence is complete. */
RIG_BODY(t05_a_stream_that_wrote_is_drained_when_its_flag_is_written)
{
	weir_stream *stream = rig_stream(rig, "written");
	weir_fence fence = record_and_write(stream);

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

	changed = *rig->system->backend;
	changed.write_flag = refuse_write;
	rig->system->backend = &changed;
	rig_store(rig, rig->a, 1, 10 * MS);
	fence = record_and_write(rig->a);
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
	assert_true(wr_fence_seen(rig->system, fences[0]));
	assert_false(wr_fence_seen(rig->system, fences[1]));
	assert_int_equal(wr_fence_query(rig->system, fences[1]), WEIR_OK);
	wr_stream_close(far);
}

RIG_BODY(g04_the_margin_follows_how_late_sleeps_end)
{
	for (int i = 0; i < 100; i++)
		wr_flags_overslept(rig->system, 0);
	assert_int_equal(wr_load(&rig->system->poller.margin), 20 * US);
	for (int i = 0; i < 100; i++)
		wr_flags_overslept(rig->system, 200 * US);
	assert_in_range(wr_load(&rig->system->poller.margin), 190 * US, 210 * US);
	for (int i = 0; i < 100; i++)
		wr_flags_overslept(rig->system, SECOND);
	assert_int_equal(wr_load(&rig->system->poller.margin), 500 * US);
}

RIG_BODY(g04_the_length_of_a_streams_work_is_learned)
{
	if (!rig_is("sim"))
		return; /* only virtual time is exact enough */
	for (int i = 0; i < 40; i++) {
		rig_store(rig, rig->a, 1, 4 * MS);
		arm(rig, 1, record_and_write(rig->a));
		poll_until_idle(rig);
	}
	assert_in_range(rig->a->flag_seen.work.mean, 3 * MS, 5 * MS);
}

RIG_BODY(g04_work_begins_when_what_was_before_it_has_ended)
{
	if (!rig_is("sim"))
		return;
	for (int i = 0; i < 20; i++) {
		for (uint32_t k = 1; k <= 3; k++) {
			rig_store(rig, rig->a, 1, 4 * MS);
			arm(rig, k, record_and_write(rig->a));
		}
		poll_until_idle(rig);
	}
	assert_in_range(rig->a->flag_seen.work.mean, 3 * MS, 5 * MS);
}

/* Polls until `entity` was poked. Returns the time until the next look: how long the poller may sleep. */
static int64_t look_until_poked(struct rig *rig, uint32_t entity)
{
	for (;;) {
		int64_t now = wr_now(), next = wr_flags_poll(rig->system, now);

		if (wr_load(&rig->waker.poked[entity]))
			return next - now;
		wr_thread_sleep(next > now + 5 * US ? next - now : 5 * US);
	}
}

static void learn_4_ms(struct rig *rig)
{
	rig->system->poller.spins = true;
	for (int i = 0; i < 20; i++) {
		rig_store(rig, rig->a, 1, 4 * MS);
		arm(rig, 1, record_and_write(rig->a));
		wr_store(&rig->waker.poked[1], 0);
		look_until_poked(rig, 1);
	}
	assert_in_range(rig->a->flag_seen.work.mean, 3900 * US, 4100 * US);
}

RIG_BODY(g04_the_end_of_one_point_moves_the_look_at_the_next)
{
	if (!rig_is("sim"))
		return;
	learn_4_ms(rig);
	for (uint32_t k = 2; k <= 3; k++) {
		rig_store(rig, rig->a, 1, 4 * MS);
		arm(rig, k, record_and_write(rig->a));
	}
	assert_true(look_until_poked(rig, 2) > 2 * MS);
	look_until_poked(rig, 3);
}

RIG_BODY(g04_what_ended_in_one_gap_with_the_one_before_teaches_nothing)
{
	int64_t before;

	if (!rig_is("sim"))
		return;
	learn_4_ms(rig);
	before = rig->a->flag_seen.work.mean;
	for (uint32_t k = 2; k <= 3; k++) {
		rig_store(rig, rig->a, 1, k == 2 ? 4 * MS : 0);
		arm(rig, k, record_and_write(rig->a));
		wr_flags_poll(rig->system, wr_now());
	}
	wr_thread_sleep(3900 * US);
	wr_flags_poll(rig->system, wr_now());
	wr_thread_sleep(200 * US);
	wr_flags_poll(rig->system, wr_now());
	assert_int_equal(wr_load(&rig->waker.poked[3]), 1);
	assert_in_range(rig->a->flag_seen.work.mean, before - 100 * US, before + 100 * US);
}

RIG_BODY(g04_the_next_look_is_the_earliest_that_any_wants)
{
	weir_fence fence;
	int64_t now;

	if (!rig_is("sim"))
		return;
	rig_store(rig, rig->a, 1, 100 * MS);
	fence = record_and_write(rig->a);
	arm(rig, 1, fence);
	wr_thread_sleep(10 * MS);
	arm(rig, 2, fence);
	now = wr_now();
	assert_in_range(wr_flags_poll(rig->system, now), now + 1, now + 100 * US); /* 1 is due later */
	poll_until_idle(rig);
}

RIG_BODY(g04_a_poller_that_finds_another_polling_comes_again_soon)
{
	int64_t now;

	rig_store(rig, rig->a, 1, 5 * MS);
	arm(rig, 1, record_and_write(rig->a));
	wr_store(&rig->system->poller.polling, true);
	now = wr_now();
	assert_in_range(wr_flags_poll(rig->system, now), now + 1, now + MS);
	wr_store(&rig->system->poller.polling, false);
	poll_until_idle(rig);
}

RIG_BODY(f40_a_flag_that_could_not_be_listed_is_looked_at_later)
{
	int64_t now;

	rig_store(rig, rig->a, 1, 5 * MS);
	arm(rig, 1, record_and_write(rig->a));
	wr_memory_fail_at(0, true);
	now = wr_now();
	assert_in_range(wr_flags_poll(rig->system, now), now + 1, now + 10 * MS);
	wr_memory_fail_at(-1, false);
	assert_int_equal(wr_flags_armed(rig->system), 1);
	poll_until_idle(rig);
	assert_int_equal(wr_load(&rig->waker.poked[1]), 1);
}

/* --- many at a time --- */

enum { ARMERS = 3, FLAGS = 200 };

struct armer {
	struct rig *rig;
	struct wr_thread thread;
	weir_stream *stream;
	uint32_t first;
	_Atomic bool *over;
};

static void write_and_arm(void *arg)
{
	struct armer *armer = arg;
	struct rig *rig = armer->rig;

	for (uint32_t i = 0; i < FLAGS; i++) {
		wr_token token = arm(rig, armer->first + i, record_and_write(armer->stream));

		if (i % 3 == 0)
			wr_signal_cancel(rig->system, token);
	}
}

static void poll_all_the_time(void *arg)
{
	struct armer *armer = arg;

	while (!wr_load(armer->over) || wr_flags_armed(armer->rig->system)) {
		wr_flags_poll(armer->rig->system, wr_now());
		wr_thread_yield();
	}
}

RIG_BODY(g04_each_flag_is_fired_or_cancelled_once)
{
	_Atomic bool over = false;
	weir_stream *streams[ARMERS] = {rig->a, rig->b, rig->c};
	struct armer armers[ARMERS], lookers[2];

	for (uint32_t i = 0; i < 2; i++) {
		lookers[i] = (struct armer){.rig = rig, .over = &over};
		assert_int_equal(
			wr_thread_start(&lookers[i].thread, "looker", poll_all_the_time, &lookers[i]),
			WEIR_OK);
	}
	for (uint32_t i = 0; i < ARMERS; i++) {
		armers[i] = (struct armer){.rig = rig, .stream = streams[i], .first = i * FLAGS};
		assert_int_equal(wr_thread_start(&armers[i].thread, "armer", write_and_arm, &armers[i]),
				 WEIR_OK);
	}
	for (uint32_t i = 0; i < ARMERS; i++)
		wr_thread_join(&armers[i].thread);
	wr_store(&over, true);
	for (uint32_t i = 0; i < 2; i++)
		wr_thread_join(&lookers[i].thread);
	assert_int_equal(wr_system_outstanding(rig->system), 0);
	for (uint32_t i = 0; i < ARMERS * FLAGS; i++)
		assert_true(wr_load(&rig->waker.poked[i]) == 1 ||
			    (i % FLAGS % 3 == 0 && !wr_load(&rig->waker.poked[i])));
}

static void watch_all_the_time(void *arg)
{
	struct armer *armer = arg;
	int64_t next;

	while (!wr_load(armer->over)) {
		assert_int_equal(wr_system_watch(armer->rig->system, wr_now(), &next), WEIR_OK);
		wr_thread_yield();
	}
}

/* For ThreadSanitizer: what the health check compares flags with is the owner's until there is a word. */
RIG_BODY(g04_words_are_given_out_while_the_watch_looks)
{
	_Atomic bool over = false;
	struct armer armer = {.rig = rig, .stream = rig->a}, watcher = {.rig = rig, .over = &over};

	assert_int_equal(wr_thread_start(&watcher.thread, "watcher", watch_all_the_time, &watcher), WEIR_OK);
	assert_int_equal(wr_thread_start(&armer.thread, "armer", write_and_arm, &armer), WEIR_OK);
	wr_thread_join(&armer.thread);
	record_and_write(rig->b);
	record_and_write(rig->c);
	wr_store(&over, true);
	wr_thread_join(&watcher.thread);
	poll_until_idle(rig);
}

static void fail_meanwhile(void *arg)
{
	struct armer *armer = arg;

	wr_thread_sleep(MS);
	wr_system_fail(armer->rig->system, "the device is gone");
}

static void write_and_arm_until_failure(void *arg)
{
	struct armer *armer = arg;
	weir_fence fence;
	wr_token token;

	for (uint32_t i = 0; i < FLAGS; i++)
		if (weir_stream_record(armer->stream, &fence) || wr_flag_write(armer->stream) ||
		    wr_flag_arm(armer->rig->system, armer->first + i, &fence, 1, &token))
			return;
}

RIG_BODY(f10_a_failure_in_the_midst_pokes_no_entity_twice)
{
	_Atomic bool over = false;
	struct armer failer = {.rig = rig}, looker = {.rig = rig, .over = &over},
		     armer = {.rig = rig, .stream = rig->a};

	assert_int_equal(wr_thread_start(&looker.thread, "looker", poll_all_the_time, &looker), WEIR_OK);
	assert_int_equal(wr_thread_start(&armer.thread, "armer", write_and_arm_until_failure, &armer),
			 WEIR_OK);
	assert_int_equal(wr_thread_start(&failer.thread, "failer", fail_meanwhile, &failer), WEIR_OK);
	wr_thread_join(&failer.thread);
	wr_thread_join(&armer.thread);
	wr_store(&over, true);
	wr_thread_join(&looker.thread);
	assert_int_equal(wr_system_outstanding(rig->system), 0);
	for (uint32_t i = 0; i < FLAGS; i++)
		assert_true(wr_load(&rig->waker.poked[i]) <= 1);
}

#define T(test) cmocka_unit_test(test)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		T(g04_what_is_learned_comes_near_to_what_is_and_stays_within_bounds),
		T(g04_sleeps_that_end_too_late_make_no_work_seem_shorter_than_it_is),
		T(g04_it_spins_while_the_end_may_come_if_that_is_short),
		T(g04_longer_work_is_expected_later),
		T(g04_it_sleeps_until_shortly_before_the_end_that_it_expects),
		T(g04_it_sleeps_for_no_moment_that_is_not_worth_a_sleep),
		T(g04_it_spins_only_a_moment_for_what_it_does_not_know),
		T(g04_it_never_spins_where_the_work_is_this_machines_own),
		T(g04_a_flag_fires_after_the_work_and_not_before),
		T(g04_one_flag_waits_for_all_fences),
		T(g04_two_entities_wait_for_one_point),
		T(g04_what_is_complete_fires_at_the_first_look),
		T(g04_a_cancelled_flag_pokes_no_entity),
		T(g04_a_point_without_a_flag_write_is_armed_otherwise),
		T(g04_a_point_without_a_flag_write_does_not_wait_for_a_later_one),
		T(g04_a_place_that_is_used_again_says_nothing_of_the_next_point),
		T(g04_an_entity_that_queued_for_a_callback_leaves_the_queue),
		T(g04_views_write_flags_of_their_own),
		T(g04_a_stream_that_is_opened_again_counts_on),
		T(f39_a_word_comes_round_at_2_to_the_32),
		T(f39_a_word_that_was_not_used_for_long_says_nothing),
		T(f10_a_failure_pokes_each_entity_that_waits_for_a_flag_once),
		T(f08_a_flag_of_a_run_that_is_over_pokes_nothing),
		T(f08_without_a_run_no_flag_is_armed),
		T(f12_the_watch_looks_when_no_thread_polls),
		T(f12_arming_a_flag_wakes_the_watch),
		T(f12_a_lost_flag_write_keeps_no_entity_waiting),
		T(f12_a_lost_flag_write_is_found_by_later_work),
		T(f39_a_word_that_was_not_used_for_long_is_not_lost),
		T(g04_a_device_that_cannot_write_flags_refuses_the_signal_by_name),
		T(g04_one_device_that_cannot_write_flags_is_enough_to_refuse),
		T(g04_words_begin_with_the_completed_point_whatever_lay_there),
		T(g04_no_flag_is_written_in_a_capture),
		T(t05_a_stream_that_wrote_is_drained_when_its_flag_is_written),
		T(g04_streams_have_their_words_before_the_first_write),
		T(f65_a_flag_write_that_could_not_be_enqueued_is_armed_otherwise),
		T(g01_the_word_of_a_callback_proves_nothing_of_another_device),
		T(g04_the_margin_follows_how_late_sleeps_end),
		T(g04_the_length_of_a_streams_work_is_learned),
		T(g04_work_begins_when_what_was_before_it_has_ended),
		T(g04_the_end_of_one_point_moves_the_look_at_the_next),
		T(g04_what_ended_in_one_gap_with_the_one_before_teaches_nothing),
		T(g04_the_next_look_is_the_earliest_that_any_wants),
		T(g04_a_poller_that_finds_another_polling_comes_again_soon),
		T(f40_a_flag_that_could_not_be_listed_is_looked_at_later),
		T(g04_each_flag_is_fired_or_cancelled_once),
		T(g04_words_are_given_out_while_the_watch_looks),
		T(f10_a_failure_in_the_midst_pokes_no_entity_twice),
	};

	if (argc > 1)
		rig_backend = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}

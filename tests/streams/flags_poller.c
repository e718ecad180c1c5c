/* The poller of flags: its estimates, when it looks again, the watch behind it. Run as `flags_poller
 * BACKEND`. */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "rig.h"
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

/* --- the watch behind the poller --- */

RIG_BODY(f12_the_watch_looks_when_no_thread_polls)
{
	weir_fence fence;
	int64_t next;

	rig_store(rig, rig->a, 1, 5 * MS);
	fence = rig_record_flag(rig->a);
	rig_arm_flag(rig, 5, fence);
	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_true(next <= wr_now() + 50 * MS);
	rig_wait(rig, fence);
	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_int_equal(wr_load(&rig->waker.poked[5]), 1);
}

RIG_BODY(f12_arming_a_flag_wakes_the_watch)
{
	weir_fence fence = rig_record_flag(rig->a);
	int64_t next;
	int kicked;

	rig_wait(rig, fence);
	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_true(next == WR_FOREVER);
	kicked = wr_load(&rig->waker.kicked);
	rig_arm_flag(rig, 5, fence);
	assert_int_equal(wr_load(&rig->waker.kicked), kicked + 1);
	rig_poll_until_idle(rig);
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
	rig_arm_flag(rig, 5, rig_record_flag(rig->a));
	assert_int_equal(watch_for(rig, 5 * SECOND), WEIR_OK); /* no later write: the loss cannot be told */
	assert_int_equal(wr_load(&rig->waker.poked[5]), 1);
}

RIG_BODY(f12_a_lost_flag_write_is_found_by_later_work)
{
	if (!rig_is("sim"))
		return;
	assert_int_equal(wr_flags_use(rig->system, WR_FLAGS_ALL), WEIR_OK);
	rig_wait(rig, rig_record_flag(rig->a));
	assert_int_equal(watch_for(rig, 2 * SECOND), WEIR_OK);
	lose_flags(rig, 1000);
	rig_wait(rig, rig_record_flag(rig->a));
	assert_int_equal(watch_for(rig, 2 * SECOND), WEIR_OK);
	rig_wait(rig, rig_record_flag(rig->a));
	assert_int_equal(watch_for(rig, 2 * SECOND), WEIR_E_DEVICE);
	assert_non_null(strstr(wr_system_failure(rig->system), "flag lost: the work of 'a'"));
}

RIG_BODY(f39_a_word_that_was_not_used_for_long_is_not_lost)
{
	if (!rig_is("sim"))
		return;
	rig_wait(rig, rig_record_flag(rig->a));
	assert_int_equal(watch_for(rig, SECOND), WEIR_OK);
	rig_count_from(rig, rig->a, UINT64_C(3) << 30);
	assert_int_equal(watch_for(rig, 2 * SECOND), WEIR_OK);
	rig_wait(rig, rig_record_flag(rig->a));
	assert_int_equal(watch_for(rig, 2 * SECOND), WEIR_OK);
	rig_wait(rig, rig_record_flag(rig->a));
	assert_int_equal(watch_for(rig, 2 * SECOND), WEIR_OK);
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
		rig_arm_flag(rig, 1, rig_record_flag(rig->a));
		rig_poll_until_idle(rig);
	}
	assert_in_range(rig->a->flag_seen.work.mean, 3 * MS, 5 * MS);
}

/* Messages were emitted at the middle of the tick: its end comes 4 ms later. */
RIG_BODY(g04_t12_the_middle_of_ticks_is_learned_apart_from_their_ends)
{
	if (!rig_is("sim"))
		return;
	for (int i = 0; i < 20; i++) {
		weir_fence middle;

		rig_store(rig, rig->a, 1, 100 * US);
		middle = rig_record_flag(rig->a);
		wr_stream_mark_early(rig->a, middle.value);
		rig_arm_flag(rig, 1, middle);
		rig_store(rig, rig->a, 1, 4 * MS);
		rig_arm_flag(rig, 2, rig_record_flag(rig->a));
		rig_poll_until_idle(rig);
	}
	assert_in_range(rig->a->flag_seen.early_work.mean, 0, MS);
	assert_in_range(rig->a->flag_seen.work.mean, 3 * MS, 5 * MS);
}

RIG_BODY(g04_work_begins_when_what_was_before_it_has_ended)
{
	if (!rig_is("sim"))
		return;
	for (int i = 0; i < 20; i++) {
		for (uint32_t k = 1; k <= 3; k++) {
			rig_store(rig, rig->a, 1, 4 * MS);
			rig_arm_flag(rig, k, rig_record_flag(rig->a));
		}
		rig_poll_until_idle(rig);
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
		rig_arm_flag(rig, 1, rig_record_flag(rig->a));
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
		rig_arm_flag(rig, k, rig_record_flag(rig->a));
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
		rig_arm_flag(rig, k, rig_record_flag(rig->a));
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
	fence = rig_record_flag(rig->a);
	rig_arm_flag(rig, 1, fence);
	wr_thread_sleep(10 * MS);
	rig_arm_flag(rig, 2, fence);
	now = wr_now();
	assert_in_range(wr_flags_poll(rig->system, now), now + 1, now + 100 * US); /* 1 is due later */
	rig_poll_until_idle(rig);
}

RIG_BODY(g04_a_poller_that_finds_another_polling_comes_again_soon)
{
	int64_t now;

	rig_store(rig, rig->a, 1, 5 * MS);
	rig_arm_flag(rig, 1, rig_record_flag(rig->a));
	wr_store(&rig->system->poller.polling, true);
	now = wr_now();
	assert_in_range(wr_flags_poll(rig->system, now), now + 1, now + MS);
	wr_store(&rig->system->poller.polling, false);
	rig_poll_until_idle(rig);
}

RIG_BODY(f40_a_flag_that_could_not_be_listed_is_looked_at_later)
{
	int64_t now;

	rig_store(rig, rig->a, 1, 5 * MS);
	rig_arm_flag(rig, 1, rig_record_flag(rig->a));
	wr_memory_fail_at(0, true);
	now = wr_now();
	assert_in_range(wr_flags_poll(rig->system, now), now + 1, now + 10 * MS);
	wr_memory_fail_at(-1, false);
	assert_int_equal(wr_flags_armed(rig->system), 1);
	rig_poll_until_idle(rig);
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
		wr_token token = rig_arm_flag(rig, armer->first + i, rig_record_flag(armer->stream));

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

/* For ThreadSanitizer: what the watch compares flags with is the owner's until there is a word. */
RIG_BODY(g04_words_are_given_out_while_the_watch_looks)
{
	_Atomic bool over = false;
	struct armer armer = {.rig = rig, .stream = rig->a}, watcher = {.rig = rig, .over = &over};

	assert_int_equal(wr_thread_start(&watcher.thread, "watcher", watch_all_the_time, &watcher), WEIR_OK);
	assert_int_equal(wr_thread_start(&armer.thread, "armer", write_and_arm, &armer), WEIR_OK);
	wr_thread_join(&armer.thread);
	rig_record_flag(rig->b);
	rig_record_flag(rig->c);
	wr_store(&over, true);
	wr_thread_join(&watcher.thread);
	rig_poll_until_idle(rig);
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
		if (weir_stream_record(armer->stream, &fence) || wr_flag_write(armer->stream, WR_FLAGS_ALL) ||
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

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(g04_what_is_learned_comes_near_to_what_is_and_stays_within_bounds),
		cmocka_unit_test(g04_sleeps_that_end_too_late_make_no_work_seem_shorter_than_it_is),
		cmocka_unit_test(g04_it_spins_while_the_end_may_come_if_that_is_short),
		cmocka_unit_test(g04_longer_work_is_expected_later),
		cmocka_unit_test(g04_it_sleeps_until_shortly_before_the_end_that_it_expects),
		cmocka_unit_test(g04_it_sleeps_for_no_moment_that_is_not_worth_a_sleep),
		cmocka_unit_test(g04_it_spins_only_a_moment_for_what_it_does_not_know),
		cmocka_unit_test(g04_it_never_spins_where_the_work_is_this_machines_own),
		cmocka_unit_test(f12_the_watch_looks_when_no_thread_polls),
		cmocka_unit_test(f12_arming_a_flag_wakes_the_watch),
		cmocka_unit_test(f12_a_lost_flag_write_keeps_no_entity_waiting),
		cmocka_unit_test(f12_a_lost_flag_write_is_found_by_later_work),
		cmocka_unit_test(f39_a_word_that_was_not_used_for_long_is_not_lost),
		cmocka_unit_test(g04_the_margin_follows_how_late_sleeps_end),
		cmocka_unit_test(g04_the_length_of_a_streams_work_is_learned),
		cmocka_unit_test(g04_t12_the_middle_of_ticks_is_learned_apart_from_their_ends),
		cmocka_unit_test(g04_work_begins_when_what_was_before_it_has_ended),
		cmocka_unit_test(g04_the_end_of_one_point_moves_the_look_at_the_next),
		cmocka_unit_test(g04_what_ended_in_one_gap_with_the_one_before_teaches_nothing),
		cmocka_unit_test(g04_the_next_look_is_the_earliest_that_any_wants),
		cmocka_unit_test(g04_a_poller_that_finds_another_polling_comes_again_soon),
		cmocka_unit_test(f40_a_flag_that_could_not_be_listed_is_looked_at_later),
		cmocka_unit_test(g04_each_flag_is_fired_or_cancelled_once),
		cmocka_unit_test(g04_words_are_given_out_while_the_watch_looks),
		cmocka_unit_test(f10_a_failure_in_the_midst_pokes_no_entity_twice),
	};

	if (argc > 1)
		rig_backend = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The grid of `periodic`: beats do not depend on the duration of compute, and lost ones are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conditions/conditions.h"
#include "tests/conditions/rig.h"

#define TEST(name) static void name(void **state_)

static struct rig beat(int64_t period, const char *policy, int64_t offset)
{
	static char text[160];

	snprintf(text, sizeof text, "period=%lld policy=%s offset=%lld", (long long)period, policy,
		 (long long)offset);
	return rig_of(&wr_periodic, text);
}

/* Returns the time at which the condition is due, or now if it is due already. */
static int64_t due(struct rig *rig)
{
	return rig_ask(rig) == READY ? rig->view.now : rig->verdict.at;
}

/* Ticks n times, as soon as due, with a compute of that duration. Returns when the n-th tick began. */
static int64_t tick(struct rig *rig, int n, int64_t compute)
{
	for (int i = 0; i < n; i++) {
		rig->view.now = due(rig);
		rig_tick_for(rig, compute);
	}
	return rig->view.began;
}

static const int64_t periods[] = {1000000, 10000000, 100000000};
static const int percents[] = {0, 30, 99};

TEST(xb32_beats_lie_on_a_grid_from_the_beginning_of_the_first_tick_whatever_compute_takes)
{
	static const char *const policies[] = {"catch_up_missed_ticks", "min_time_between_ticks",
					       "no_catch_up_missed_ticks"};

	(void)state_;
	for (size_t i = 0; i < 27; i++) {
		int64_t period = periods[i % 3];
		struct rig rig = beat(period, policies[i / 9], -1);

		rig.view.now = 12345;
		assert_true(tick(&rig, 1001, period * percents[i / 3 % 3] / 100) == 12345 + 1000 * period);
		assert_true(rig.view.lost == 0);
	}
}

TEST(xb32_a_compute_longer_than_the_period_catches_up_without_a_pause)
{
	struct rig rig = beat(100, "catch_up_missed_ticks", -1);

	(void)state_;
	assert_true(tick(&rig, 11, 101) == 10 * 101);
	assert_true(rig.view.lost == 0);
	assert_true(tick(&rig, 1, 0) == 11 * 101 && tick(&rig, 1, 0) == 1200);
	rig.view.now = 5000;
	assert_true(tick(&rig, 38, 0) == 5000 && due(&rig) == 5100); /* beats 1300 to 5000 were due */
}

TEST(xb32_min_time_counts_from_beginning_to_beginning)
{
	struct rig rig = beat(100, "min_time_between_ticks", -1);

	(void)state_;
	assert_true(tick(&rig, 2, 30) == 100);
	assert_true(tick(&rig, 2, 250) == 100 + 100 + 250);
	assert_true(rig.view.lost == 0);
}

TEST(xb32_every_beat_of_the_grid_has_its_tick_or_is_counted_lost)
{
	static const int64_t compute[] = {0, 30, 99, 101, 250, 1000};

	(void)state_;
	for (size_t i = 0; i < 6; i++) {
		struct rig rig = beat(100, "no_catch_up_missed_ticks", -1);
		int64_t began = tick(&rig, 500, compute[i]);

		assert_true(rig.view.lost + 499 == (uint64_t)(began / 100));
		rig.view.now = began;
		rig_ask(&rig);
		assert_true(rig.verdict.at % 100 == 0 && rig.verdict.at - began <= 100);
	}
}

TEST(xb32_an_offset_sets_the_grid_from_the_start_of_the_run)
{
	struct rig rig = beat(100, "no_catch_up_missed_ticks", 30);

	(void)state_;
	rig.view.started = rig.view.now = 1000;
	assert_int_equal(rig_ask(&rig), WAIT);
	assert_true(rig.verdict.at == 1030);
	rig.view.now = 1275; /* late messages: 1030, 1130 and 1230 are due, one is used */
	rig_tick_for(&rig, 10);
	assert_true(rig.view.lost == 2 && due(&rig) == 1330);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			xb32_beats_lie_on_a_grid_from_the_beginning_of_the_first_tick_whatever_compute_takes),
		cmocka_unit_test(xb32_a_compute_longer_than_the_period_catches_up_without_a_pause),
		cmocka_unit_test(xb32_min_time_counts_from_beginning_to_beginning),
		cmocka_unit_test(xb32_every_beat_of_the_grid_has_its_tick_or_is_counted_lost),
		cmocka_unit_test(xb32_an_offset_sets_the_grid_from_the_start_of_the_run),
	};

	return cmocka_run_group_tests_name("grid", tests, NULL, NULL);
}

/* Periodic ticks: when they begin, which are missed, and how
 * long they wait behind others. Virtual time only. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define TEST(name) static void name(void **state_)

enum { BEATS = 256 };

/* The witness notes when each tick of its entity began; one entity of a graph has it. */
static int64_t began[BEATS];
static size_t begun;

static void ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_ready(verdict);
}

static void ticked(void *state, weir_view *view)
{
	(void)state;
	if (begun < BEATS)
		began[begun++] = weir_view_began(view);
}

static const weir_condition witness = {.size = sizeof(weir_condition),
				       .name = "witness",
				       .help = "notes when ticks begin",
				       .ask = ask,
				       .ticked = ticked};
static const weir_condition *const conditions[] = {&witness, NULL};

static weir_entity_counts counts_of(struct rig *rig, size_t i)
{
	weir_entity_counts counts = {.size = sizeof counts};

	assert_false(weir_scheduler_entity_counts(rig->scheduler, i, &counts));
	return counts;
}

/* Runs 50 ticks of a periodic entity, the only one of its graph. Returns how many beats it missed. */
static uint64_t beat(uint64_t seed, int64_t period, const char *policy, int percent)
{
	char text[200];
	struct rig *rig;
	uint64_t lost;

	snprintf(text, sizeof text, "source ticks=50 delay=%lldns period=%lldns,%s condition=witness -> end",
		 (long long)(period * percent / 100), (long long)period, policy);
	begun = 0;
	rig = rig_of(text);
	rig->options.seed = seed;
	assert_int_equal(rig_run(rig), WEIR_OK);
	lost = counts_of(rig, 0).lost;
	rig_destroy(rig);
	assert_int_equal(begun, 50);
	return lost;
}

static const int64_t periods[] = {MS, 10 * MS, 100 * MS};

TEST(xb32_a_beat_begins_on_its_grid_to_the_nanosecond_whatever_compute_takes)
{
	static const char *const policies[] = {"catch_up_missed_ticks", "min_time_between_ticks",
					       "no_catch_up_missed_ticks"};
	static const int percents[] = {0, 30, 99};

	(void)state_;
	for (uint64_t i = 0; i < 27; i++) {
		int64_t period = periods[i % 3];
		assert_int_equal(beat(i, period, policies[i / 9], percents[i / 3 % 3]), 0);
		for (int64_t k = 1; k < 50; k++)
			assert_true(began[k] - began[0] == k * period);
	}
}

/* A late tick stands for the earliest beat that was due; the beats since then are missed. */
TEST(xb32_beats_that_a_long_compute_passes_over_are_counted_and_the_grid_stays)
{
	static const int percents[] = {101, 250};

	(void)state_;
	for (uint64_t i = 0; i < 6; i++) {
		int64_t period = periods[i % 3];
		uint64_t lost = beat(i, period, "no_catch_up_missed_ticks", percents[i / 3]);
		assert_true(lost + 49 == (uint64_t)((began[49] - began[0]) / period));
		assert_int_equal(beat(i, period, "catch_up_missed_ticks", percents[i / 3]), 0);
		assert_true(began[49] - began[48] < period * percents[i / 3] / 100 + 3 * US); /* no pause */
	}
}

/* Three chains of 8 that keep two workers half busy, out of step with each other and with the beat. */
static struct rig *three_chains(void)
{
	static const int hops[] = {5, 4, 3}, periods_ms[] = {97, 89, 103};
	char text[4096] =
		"beat:source ticks=200 period=100ms,no_catch_up_missed_ticks condition=witness -> heard:end";
	size_t length = strlen(text);

	for (int c = 0; c < 3; c++) {
		length += (size_t)snprintf(text + length, sizeof text - length,
					   "; s%d:source delay=%dms period=%dms", c, hops[c], periods_ms[c]);
		for (int i = 1; i < 8; i++)
			length += (size_t)snprintf(text + length, sizeof text - length,
						   " -> c%de%d:%s delay=%dms", c, i, i < 7 ? "pass" : "end",
						   hops[c]);
	}
	return rig_of(text);
}

static double deviation(int64_t period)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < begun; i++) {
		double late = (double)((began[i] - began[0]) % period);
		sum += late;
		squares += late * late;
	}
	return sqrt(squares / (double)begun - sum / (double)begun * sum / (double)begun);
}

TEST(xb34_a_beat_among_three_busy_chains_deviates_by_less_than_half_the_longest_compute)
{
	(void)state_;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct rig *rig = three_chains();
		begun = 0;
		rig->options.seed = seed;
		rig->options.max_duration_ns = 20 * SECOND;
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(begun, 200);
		print_message("deviation %.3f ms\n", deviation(100 * MS) / 1e6);
		assert_true(deviation(100 * MS) <= 2.5e6);
		rig_destroy(rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb32_a_beat_begins_on_its_grid_to_the_nanosecond_whatever_compute_takes),
		cmocka_unit_test(xb32_beats_that_a_long_compute_passes_over_are_counted_and_the_grid_stays),
		cmocka_unit_test(
			xb34_a_beat_among_three_busy_chains_deviates_by_less_than_half_the_longest_compute),
	};

	rig_conditions = conditions;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

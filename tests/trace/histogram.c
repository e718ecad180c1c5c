/* Histograms against exact order statistics of the same values. */
#include "trace/histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "sim/random.h"
#include "test.h"

enum { MOST = 4000 };

static int compare(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

/* The least value that the part p of the values does not exceed. */
static int64_t exact(const int64_t *sorted, size_t count, double p)
{
	size_t rank = (size_t)ceil(p * (double)count);

	return sorted[rank ? rank - 1 : 0];
}

static void assert_near(int64_t found, int64_t wanted)
{
	int64_t error = found > wanted ? found - wanted : wanted - found;

	if (error * 100 > wanted * 3)
		fail_msg("%lld instead of %lld", (long long)found, (long long)wanted);
}

/* Draws from [0, 2^bits), so that every order of magnitude is as likely. */
static int64_t draw(struct wr_random *random, unsigned most_bits)
{
	return (int64_t)wr_random_below(random, UINT64_C(1) << (1 + wr_random_below(random, most_bits)));
}

static void quantiles_are_within_three_percent_of_exact_ones(void **state)
{
	static const double parts[] = {0, 0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1};
	static int64_t values[MOST];
	struct wr_random random;

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct wr_histogram histogram = {0};
		size_t count;

		wr_random_seed(&random, seed, 0);
		count = 1 + wr_random_below(&random, MOST - 1);
		for (size_t i = 0; i < count; i++)
			wr_histogram_add(&histogram, values[i] = draw(&random, 1 + (unsigned)(seed % 40)));
		qsort(values, count, sizeof *values, compare);
		for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
			assert_near(wr_histogram_percentile(&histogram, parts[i]),
				    exact(values, count, parts[i]));
		wr_histogram_finish(&histogram);
	}
}

static void count_sum_and_bounds_are_exact(void **state)
{
	struct wr_histogram histogram = {0};
	struct wr_durations all;

	(void)state;
	for (int64_t i = 1; i <= 1000; i++)
		wr_histogram_add(&histogram, i * 1001);
	all = wr_histogram_summary(&histogram);
	assert_int_equal(all.count, 1000);
	assert_int_equal(all.sum_ns, 1001 * 500500);
	assert_int_equal(all.min_ns, 1001);
	assert_int_equal(all.max_ns, 1001000);
	assert_near(all.p50_ns, 500500);
	assert_near(all.p90_ns, 900900);
	assert_near(all.p99_ns, 990990);
	wr_histogram_finish(&histogram);
}

static void nothing_counted_is_all_zero(void **state)
{
	struct wr_histogram histogram = {0};
	struct wr_durations none = {0}, all = wr_histogram_summary(&histogram);

	(void)state;
	assert_memory_equal(&all, &none, sizeof all);
	assert_int_equal(wr_histogram_percentile(&histogram, 0.5), 0);
}

static void one_value_is_every_percentile(void **state)
{
	static const int64_t values[] = {0, 1, 31, 32, 33, 1000, INT64_C(1) << 40, (INT64_C(1) << 41) - 1};

	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		struct wr_histogram histogram = {0};
		struct wr_durations all;

		wr_histogram_add(&histogram, values[i]);
		all = wr_histogram_summary(&histogram);
		assert_int_equal(all.p50_ns, values[i]);
		assert_int_equal(all.p99_ns, values[i]);
		assert_int_equal(all.min_ns, values[i]);
		wr_histogram_finish(&histogram);
	}
}

static void what_is_beyond_the_last_bucket_is_counted_in_it(void **state)
{
	struct wr_histogram histogram = {0};

	(void)state;
	wr_histogram_add(&histogram, INT64_MAX);
	wr_histogram_add(&histogram, WR_HISTOGRAM_END);
	assert_int_equal(wr_histogram_summary(&histogram).count, 2);
	assert_int_equal(wr_histogram_summary(&histogram).max_ns, INT64_MAX);
	assert_int_equal(wr_histogram_percentile(&histogram, 0.5), WR_HISTOGRAM_END);
	wr_histogram_finish(&histogram);
}

static void a_negative_duration_counts_as_none(void **state)
{
	struct wr_histogram histogram = {0};

	(void)state;
	wr_histogram_add(&histogram, -5);
	assert_int_equal(wr_histogram_summary(&histogram).min_ns, 0);
	assert_int_equal(wr_histogram_summary(&histogram).sum_ns, 0);
	wr_histogram_finish(&histogram);
}

struct walk {
	int64_t end;
	uint64_t count;
};

static void walk_bucket(const struct wr_bucket *bucket, void *arg)
{
	struct walk *walk = arg;

	assert_true(bucket->from >= walk->end);
	assert_true(bucket->to > bucket->from);
	assert_true(bucket->count > 0);
	*walk = (struct walk){bucket->to, walk->count + bucket->count};
}

/* Every edge of a bucket, and the values beside it, lie in the bucket that says so. */
static void buckets_ascend_and_hold_what_was_counted(void **state)
{
	struct wr_histogram histogram = {0};
	struct walk walk = {0, 0};
	uint64_t added = 0;

	(void)state;
	for (unsigned bit = 0; bit < 41; bit++)
		for (int64_t beside = -1; beside <= 1; beside++, added++)
			wr_histogram_add(&histogram, (INT64_C(1) << bit) + beside);
	wr_histogram_each(&histogram, walk_bucket, &walk);
	assert_int_equal(walk.count, added);
	assert_true(walk.end > INT64_C(1) << 40);
	wr_histogram_finish(&histogram);
}

static void merged_is_as_if_one_had_counted_all(void **state)
{
	struct wr_histogram left = {0}, right = {0}, both = {0};
	struct wr_random random;
	struct wr_durations merged, wanted;

	(void)state;
	wr_random_seed(&random, 7, 0);
	for (size_t i = 0; i < 2000; i++) {
		int64_t ns = draw(&random, 40);

		wr_histogram_add(i % 3 ? &left : &right, ns);
		wr_histogram_add(&both, ns);
	}
	wr_histogram_merge(&left, &right);
	wr_histogram_merge(&left, &(struct wr_histogram){0});
	merged = wr_histogram_summary(&left);
	wanted = wr_histogram_summary(&both);
	assert_memory_equal(&merged, &wanted, sizeof merged);
	wr_histogram_finish(&left);
	wr_histogram_finish(&right);
	wr_histogram_finish(&both);
}

static void cleared_counts_anew(void **state)
{
	struct wr_histogram histogram = {0};

	(void)state;
	wr_histogram_add(&histogram, 5000);
	wr_histogram_clear(&histogram);
	wr_histogram_add(&histogram, 9000);
	assert_int_equal(wr_histogram_summary(&histogram).count, 1);
	assert_int_equal(wr_histogram_summary(&histogram).p50_ns, 9000);
	wr_histogram_finish(&histogram);
}

static void f40_a_value_without_memory_for_its_bucket_is_counted(void **state)
{
	struct wr_histogram histogram = {0};

	(void)state;
	wr_memory_fail_at(0, false);
	wr_histogram_add(&histogram, 100);
	wr_memory_fail_at(-1, false);
	assert_int_equal(wr_histogram_summary(&histogram).count, 1);
	assert_int_equal(wr_histogram_summary(&histogram).max_ns, 100);
	assert_int_equal(wr_read(&histogram.homeless), 1);
	wr_histogram_finish(&histogram);
}

struct reading {
	struct wr_histogram histogram;
	_Atomic bool over;
	struct wr_durations last;
};

static void read_until_over(void *arg)
{
	struct reading *reading = arg;

	while (!wr_load(&reading->over)) {
		struct wr_durations now = wr_histogram_summary(&reading->histogram);

		if (now.count < reading->last.count || now.max_ns < reading->last.max_ns ||
		    now.p50_ns > now.max_ns)
			abort();
		reading->last = now;
	}
}

static void another_thread_may_read_meanwhile(void **state)
{
	struct reading *reading = wr_alloc(1, sizeof *reading);
	struct wr_thread thread = {0};
	struct wr_random random;

	(void)state;
	wr_random_seed(&random, 3, 0);
	assert_int_equal(wr_thread_start(&thread, "reader", read_until_over, reading), WEIR_OK);
	for (size_t i = 0; i < 20000; i++)
		wr_histogram_add(&reading->histogram, draw(&random, 40));
	wr_store(&reading->over, true);
	wr_thread_join(&thread);
	assert_int_equal(wr_histogram_summary(&reading->histogram).count, 20000);
	wr_histogram_finish(&reading->histogram);
	wr_free(reading);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_within_three_percent_of_exact_ones),
		cmocka_unit_test(count_sum_and_bounds_are_exact),
		cmocka_unit_test(nothing_counted_is_all_zero),
		cmocka_unit_test(one_value_is_every_percentile),
		cmocka_unit_test(what_is_beyond_the_last_bucket_is_counted_in_it),
		cmocka_unit_test(a_negative_duration_counts_as_none),
		cmocka_unit_test(buckets_ascend_and_hold_what_was_counted),
		cmocka_unit_test(merged_is_as_if_one_had_counted_all),
		cmocka_unit_test(cleared_counts_anew),
		cmocka_unit_test(f40_a_value_without_memory_for_its_bucket_is_counted),
		cmocka_unit_test(another_thread_may_read_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "base/clock.h"

#include <time.h>

#include "test.h"

static int64_t monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void f35_the_clock_is_the_monotonic_one(void **state)
{
	int64_t before = monotonic(), now = wr_now(), after = monotonic();

	(void)state;
	assert_true(before <= now && now <= after);
}

static void f37_a_sum_of_times_saturates(void **state)
{
	(void)state;
	assert_int_equal(wr_time_add(5, 7), 12);
	assert_int_equal(wr_time_add(5, -7), -2);
	assert_int_equal(wr_time_add(INT64_MAX - 1, 1), INT64_MAX);
	assert_int_equal(wr_time_add(INT64_MAX - 1, 2), INT64_MAX);
	assert_int_equal(wr_time_add(INT64_MAX, INT64_MAX), INT64_MAX);
	assert_int_equal(wr_time_add(1, INT64_MIN), INT64_MIN + 1);
	assert_int_equal(wr_time_add(-2, INT64_MIN), INT64_MIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f35_the_clock_is_the_monotonic_one),
		cmocka_unit_test(f37_a_sum_of_times_saturates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

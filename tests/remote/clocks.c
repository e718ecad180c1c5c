#include "remote/clocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "remote/way.h"

/* The other clock shows 1000 more; the way there takes 30, the way back 50. */
static void r08_the_offset_is_within_its_error(void **unused)
{
	struct clocks clocks = {0};

	(void)unused;
	clocks_take(&clocks, 100, 1130, 1200, 250);
	assert_int_equal(clocks.exchanges, 1);
	assert_in_range(clocks.error, 40, 41);
	assert_in_range(1000, clocks.offset - clocks.error, clocks.offset + clocks.error);
}

static void r08_the_shortest_exchange_counts(void **unused)
{
	struct clocks clocks = {0};

	(void)unused;
	clocks_take(&clocks, 100, 1200, 1200, 300);
	clocks_take(&clocks, 400, 1405, 91405, 90410); /* the answer waited, which is no time on the way */
	clocks_take(&clocks, 100, 1900, 1900, 1900);
	assert_int_equal(clocks.exchanges, 3);
	assert_int_equal(clocks.offset, 1000);
	assert_int_equal(clocks.error, 6);
}

/* Whatever the other side says. */
static void e06_r08_what_cannot_be_is_no_exchange(void **unused)
{
	static const int64_t said[][4] = {
		{0, 5, 6, 10},                 /* nothing was asked */
		{10, 5, 6, 9},                 /* answered before */
		{10, 6, 5, 20},                /* sent before it came */
		{10, 100, 200, 20},            /* held for longer than all took */
		{1, INT64_MIN, INT64_MAX, 20}, /* sums that cannot be */
		{INT64_MAX, -5, 0, INT64_MAX},
	};
	struct clocks clocks = {0};

	(void)unused;
	for (size_t i = 0; i < sizeof said / sizeof said[0]; i++)
		clocks_take(&clocks, said[i][0], said[i][1], said[i][2], said[i][3]);
	assert_int_equal(clocks.exchanges, 0);
}

static void r08_times_on_the_way_have_percentiles(void **unused)
{
	static struct way way;

	(void)unused;
	assert_int_equal(way_percentile(&way, 50), 0);
	for (int64_t ns = 1000; ns > 0; ns--)
		way_add(&way, ns - 500);
	assert_true(way.count == 1000 && way.least == -499 && way.most == 500);
	assert_int_equal(way_percentile(&way, 50), 0);
	assert_int_equal(way_percentile(&way, 99), 490);
}

/* Of more than are kept each is as likely to be kept: the median of a million is near the middle. */
static void r08_a_sample_stands_for_all(void **unused)
{
	static struct way way;

	(void)unused;
	for (int64_t ns = 0; ns < 1000000; ns++)
		way_add(&way, ns);
	assert_int_equal(way.count, 1000000);
	assert_in_range(way_percentile(&way, 50), 450000, 550000);
	assert_in_range(way_percentile(&way, 99), 980000, 999999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r08_the_offset_is_within_its_error),
		cmocka_unit_test(r08_the_shortest_exchange_counts),
		cmocka_unit_test(e06_r08_what_cannot_be_is_no_exchange),
		cmocka_unit_test(r08_times_on_the_way_have_percentiles),
		cmocka_unit_test(r08_a_sample_stands_for_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

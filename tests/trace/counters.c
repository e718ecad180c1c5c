#include "trace/trace.h"

#include "test.h"

static const struct wr_queue_counters full = {
	.pushed = 63,
	.delivered = 1,
	.dropped = 2,
	.closed = 4,
	.taken_back = 8,
	.abandoned = 16,
};

static void e05_a_queue_that_saw_nothing_is_conserved(void **state)
{
	struct wr_queue_counters nothing = {0};

	(void)state;
	assert_true(wr_counts_conserved(&nothing, 0));
	assert_false(wr_counts_conserved(&nothing, 1));
}

static void e05_pushed_is_the_sum_of_where_it_went(void **state)
{
	(void)state;
	assert_true(wr_counts_conserved(&full, 32));
	assert_false(wr_counts_conserved(&full, 31));
	assert_false(wr_counts_conserved(&full, 33));
}

static void e05_no_way_out_is_forgotten(void **state)
{
	const size_t ways[] = {
		offsetof(struct wr_queue_counters, pushed),     offsetof(struct wr_queue_counters, delivered),
		offsetof(struct wr_queue_counters, dropped),    offsetof(struct wr_queue_counters, closed),
		offsetof(struct wr_queue_counters, taken_back), offsetof(struct wr_queue_counters, abandoned),
	};

	(void)state;
	for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		struct wr_queue_counters counters = full;

		wr_count((_Atomic uint64_t *)((char *)&counters + ways[i]), 1);
		assert_false(wr_counts_conserved(&counters, 32));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e05_a_queue_that_saw_nothing_is_conserved),
		cmocka_unit_test(e05_pushed_is_the_sum_of_where_it_went),
		cmocka_unit_test(e05_no_way_out_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

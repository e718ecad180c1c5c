#include "sim/random.h"

#include "tests/base/test.h"

enum { DRAWS = 60000 };

static void equal_seeds_give_equal_numbers_everywhere(void **state)
{
	struct wr_random one, two;

	(void)state;
	wr_random_seed(&one, 7, 1);
	wr_random_seed(&two, 7, 1);
	for (int i = 0; i < 100; i++)
		assert_true(wr_random_next(&one) == wr_random_next(&two));
}

/* From the algorithm's reference: a change would make every recorded seed worthless. */
static void the_numbers_are_those_of_xoshiro256(void **state)
{
	static const uint64_t expected[] = {
		11520u,
		0u,
		1509978240u,
		1215971899390074240u,
		1216172134540287360u,
		607988272756665600u,
		16172922978634559625u,
		8476171486693032832u,
		10595114339597558777u,
		2904607092377533576u,
	};
	struct wr_random random = {{1, 2, 3, 4}};

	(void)state;
	for (size_t i = 0; i < COUNT(expected); i++)
		assert_true(wr_random_next(&random) == expected[i]);
}

static void seeds_and_streams_do_not_share_numbers(void **state)
{
	static const uint64_t seeds[][2] = {{7, 1}, {7, 2}, {8, 1}, {1, 7}, {8, 0}, {0, 0}};
	uint64_t first[COUNT(seeds)];

	(void)state;
	for (size_t i = 0; i < COUNT(seeds); i++) {
		struct wr_random random;

		wr_random_seed(&random, seeds[i][0], seeds[i][1]);
		first[i] = wr_random_next(&random);
		for (size_t j = 0; j < i; j++)
			assert_true(first[i] != first[j]);
	}
}

static void below_stays_below_and_is_even(void **state)
{
	struct wr_random random;
	int seen[6] = {0};

	(void)state;
	wr_random_seed(&random, 3, 0);
	for (int i = 0; i < DRAWS; i++)
		seen[wr_random_below(&random, 6)]++;
	for (int i = 0; i < 6; i++)
		assert_in_range(seen[i], DRAWS / 6 - 500, DRAWS / 6 + 500); /* 5 standard deviations */
	assert_true(wr_random_below(&random, 1) == 0);
}

/* With a plain remainder the lower half of this range would be drawn twice as often as the upper one. */
static void below_a_huge_number_is_even_too(void **state)
{
	const uint64_t n = UINT64_MAX / 3 * 2;
	struct wr_random random;
	int low = 0;

	(void)state;
	wr_random_seed(&random, 3, 0);
	for (int i = 0; i < DRAWS; i++)
		low += wr_random_below(&random, n) < n / 2;
	assert_in_range(low, DRAWS / 2 - 700, DRAWS / 2 + 700);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_seeds_give_equal_numbers_everywhere),
		cmocka_unit_test(the_numbers_are_those_of_xoshiro256),
		cmocka_unit_test(seeds_and_streams_do_not_share_numbers),
		cmocka_unit_test(below_stays_below_and_is_even),
		cmocka_unit_test(below_a_huge_number_is_even_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which free block of a memory pool is taken (S3, T13). */
#include "memory_blocks_rig.h"

/* `most` at once for that many takes. Returns how many different ones were taken. */
static int use(struct wr_blocks *blocks, int most, int takes)
{
	int held[COUNT], different = 0;
	bool seen[COUNT] = {false};

	for (int i = 0; i < takes; i++) {
		if (i >= most)
			give_back(blocks, held[i % most]);
		held[i % most] = taken(blocks);
		different += !seen[held[i % most]];
		seen[held[i % most]] = true;
	}
	for (int i = takes > most ? takes - most : 0; i < takes; i++)
		give_back(blocks, held[i % most]);
	return different;
}

static void s03_as_many_blocks_take_turns_as_are_needed_at_once(void **state)
{
	struct wr_blocks blocks = filled(COUNT);

	(void)state;
	assert_int_equal(use(&blocks, 3, 1000), 3);
	assert_int_equal(wr_blocks_free(&blocks), COUNT);
	assert_int_equal(use(&blocks, 5, 1000), 5);
	wr_blocks_finish(&blocks);
}

static void s03_the_block_that_became_free_first_is_taken_first(void **state)
{
	struct wr_blocks blocks = filled(4);

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(taken(&blocks), i);
	give_back(&blocks, 1);
	give_back(&blocks, 0);
	assert_int_equal(taken(&blocks), 1);
	assert_int_equal(taken(&blocks), 0);
	assert_int_equal(taken(&blocks), 3);
	give_back(&blocks, 3);
	give_back(&blocks, 2);
	assert_int_equal(taken(&blocks), 3);
	wr_blocks_finish(&blocks);
}

/* A stall takes all of them once. */
static void s03_after_a_peak_few_blocks_take_turns_again(void **state)
{
	struct wr_blocks blocks = filled(COUNT);

	(void)state;
	assert_int_equal(use(&blocks, 2, 100), 2);
	assert_int_equal(use(&blocks, COUNT, COUNT), COUNT);
	assert_int_equal(use(&blocks, 2, 64), COUNT); /* they still take turns */
	(void)use(&blocks, 2, 3 * WR_BLOCKS_WHILE);
	assert_int_equal(use(&blocks, 2, 1000), 2);
	wr_blocks_finish(&blocks);
}

/* Fewer for a while, but not by half: the same blocks take turns, or replay would meet new pairs. */
static void s03_a_small_change_in_use_keeps_the_turns(void **state)
{
	struct wr_blocks blocks = filled(COUNT);

	(void)state;
	assert_int_equal(use(&blocks, 4, 100), 4);
	(void)use(&blocks, 2, 10 * WR_BLOCKS_WHILE);
	assert_int_equal(use(&blocks, 2, 100), 4);
	wr_blocks_finish(&blocks);
}

static void s03_before_a_run_all_free_blocks_rest(void **state)
{
	struct wr_blocks blocks = filled(COUNT);
	int kept = taken(&blocks);

	(void)state;
	(void)use(&blocks, COUNT - 1, COUNT);
	wr_blocks_rest(&blocks);
	assert_int_equal(wr_blocks_free(&blocks), COUNT - 1);
	assert_int_equal(use(&blocks, 1, 10), 1);
	give_back(&blocks, kept);
	assert_int_equal(use(&blocks, 2, 1000), 2);
	wr_blocks_finish(&blocks);
}

/* Few are to take turns, and more are in use when the run ends. */
static void s03_blocks_that_were_in_use_between_two_runs_take_turns_in_the_next(void **state)
{
	struct wr_blocks blocks = filled(COUNT);
	int kept[5];

	(void)state;
	(void)use(&blocks, COUNT, COUNT);
	for (int i = COUNT; i < 2 * WR_BLOCKS_WHILE - 1; i++)
		give_back(&blocks, taken(&blocks));
	for (int i = 0; i < 5; i++)
		kept[i] = taken(&blocks);
	wr_blocks_rest(&blocks);
	for (int i = 0; i < 5; i++)
		give_back(&blocks, kept[i]);
	for (int i = 0; i < 5; i++)
		assert_int_equal(taken(&blocks), kept[i]);
	wr_blocks_finish(&blocks);
}

/* A pool that was used gets memory at another place. */
static void s03_blocks_that_are_filled_again_are_those_of_the_new_memory(void **state)
{
	void *listed[] = {memory + 7 * BYTES, memory + 5 * BYTES};
	struct wr_blocks blocks = filled(2);

	(void)state;
	(void)use(&blocks, 2, 10);
	wr_blocks_fill(&blocks, NULL, 0, listed);
	assert_int_equal(wr_blocks_free(&blocks), 2);
	assert_int_equal(taken(&blocks), 7);
	assert_int_equal(taken(&blocks), 5);
	wr_blocks_finish(&blocks);
}

/* Against a list of what is out: none is lost, none given twice, in whatever order they come back. */
static void s03_no_block_is_lost_or_given_twice(void **state)
{
	struct wr_random random;
	bool out[COUNT];

	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct wr_blocks blocks = filled(1 + seed % COUNT);
		size_t count = blocks.count, used = 0;

		memset(out, 0, sizeof out);
		wr_random_seed(&random, seed, 0);
		for (int i = 0; i < 3000; i++) {
			size_t one = (size_t)(wr_random_next(&random) % count);
			bool most = i / 700 % 2; /* sometimes nearly all of them, sometimes few */

			if (wr_random_next(&random) % 1000 == 0)
				wr_blocks_rest(&blocks);
			if (used < count && (!used || wr_random_next(&random) % 4 < (most ? 3 : 1))) {
				int number = taken(&blocks);

				assert_false(out[number]);
				out[number] = true;
				used++;
			} else if (out[one]) {
				give_back(&blocks, (int)one);
				out[one] = false;
				used--;
			}
			assert_int_equal(wr_blocks_free(&blocks), count - used);
		}
		wr_blocks_finish(&blocks);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s03_as_many_blocks_take_turns_as_are_needed_at_once),
		cmocka_unit_test(s03_the_block_that_became_free_first_is_taken_first),
		cmocka_unit_test(s03_after_a_peak_few_blocks_take_turns_again),
		cmocka_unit_test(s03_a_small_change_in_use_keeps_the_turns),
		cmocka_unit_test(s03_before_a_run_all_free_blocks_rest),
		cmocka_unit_test(s03_blocks_that_were_in_use_between_two_runs_take_turns_in_the_next),
		cmocka_unit_test(s03_blocks_that_are_filled_again_are_those_of_the_new_memory),
		cmocka_unit_test(s03_no_block_is_lost_or_given_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

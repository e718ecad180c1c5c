/* The order of fibers: seeds, strategies, repetition. */
#include <string.h>

#include "rig.h"

/* ----------------------------------------------------------------------------------- seeds and repeats -- */

static uint64_t hash_of(uint64_t seed, enum wr_sim_strategy strategy)
{
	struct notes *notes = rig_begin(seed, strategy);
	uint64_t hash;

	assert_int_equal(rig_call(notes, rig_crowd), WEIR_OK);
	assert_true(wr_sim_switches(notes->sim) > 30);
	hash = wr_sim_hash(notes->sim);
	rig_end(notes);
	return hash;
}

static void the_same_seed_gives_the_same_order(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < RIG_SEEDS; seed++)
		assert_true(hash_of(seed, WR_SIM_BY_SEED) == hash_of(seed, WR_SIM_BY_SEED));
}

static void different_seeds_give_different_orders(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < RIG_SEEDS; seed++)
		assert_true(hash_of(seed, WR_SIM_UNIFORM) != hash_of(seed + 1, WR_SIM_UNIFORM));
}

/* Half of the seeds are uniform, four in ten PCT, the rest round robin. */
static void the_seed_draws_the_strategy(void **state)
{
	int seen[4] = {0};

	(void)state;
	for (uint64_t seed = 0; seed < RIG_SEEDS; seed++) {
		uint64_t hash = hash_of(seed, WR_SIM_BY_SEED);
		enum wr_sim_strategy strategy = WR_SIM_UNIFORM;

		while (strategy < WR_SIM_ROUND_ROBIN && hash_of(seed, strategy) != hash)
			strategy++;
		assert_true(hash_of(seed, strategy) == hash);
		seen[strategy]++;
	}
	assert_in_range(seen[WR_SIM_UNIFORM], RIG_SEEDS * 4 / 10, RIG_SEEDS * 6 / 10);
	assert_in_range(seen[WR_SIM_PCT], RIG_SEEDS * 3 / 10, RIG_SEEDS * 5 / 10);
	assert_in_range(seen[WR_SIM_ROUND_ROBIN], RIG_SEEDS / 20, RIG_SEEDS * 2 / 10);
}

struct signer {
	struct notes *notes;
	char name;
};

static void sign(void *arg)
{
	struct signer *signer = arg;

	for (int i = 0; i < 2; i++) {
		signer->notes->order[signer->notes->count++] = signer->name;
		wr_thread_yield();
	}
}

static void three_sign(void *arg)
{
	struct signer signer[] = {{arg, 'a'}, {arg, 'b'}, {arg, 'c'}};
	struct wr_thread threads[COUNT(signer)];

	for (size_t i = 0; i < COUNT(signer); i++)
		wr_thread_start(&threads[i], "signs", sign, &signer[i]);
	for (size_t i = 0; i < COUNT(signer); i++)
		wr_thread_join(&threads[i]);
}

static void round_robin_goes_in_turn(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < RIG_SEEDS; seed++) {
		struct notes *notes = rig_begin(seed, WR_SIM_ROUND_ROBIN);

		assert_int_equal(rig_call(notes, three_sign), WEIR_OK);
		for (char name = 'a'; name < 'c'; name++)
			assert_true(strchr(notes->order, name) < strchr(notes->order, name + 1));
		rig_end(notes);
	}
}

static void take_turns(void *arg)
{
	struct notes *notes = arg;

	for (int i = 0; i < 200; i++) {
		wr_mutex_lock(&notes->mutex);
		notes->count++;
		wr_mutex_unlock(&notes->mutex);
	}
}

static void two_take_turns(void *arg)
{
	struct notes *notes = arg;

	wr_thread_start(&notes->thread, "turns", take_turns, notes);
	take_turns(notes);
	wr_thread_join(&notes->thread);
}

/* No fiber sleeps, so only pauses let time pass; the seed determines how long it takes and in which order. */
static int64_t time_of_turns(uint64_t seed, enum wr_sim_strategy strategy, uint64_t *hash)
{
	struct notes *notes = rig_begin(seed, strategy);
	int64_t took;

	assert_int_equal(rig_call(notes, two_take_turns), WEIR_OK);
	assert_int_equal(notes->count, 400);
	took = wr_sim_now(notes->sim) - SECOND;
	*hash = wr_sim_hash(notes->sim);
	rig_end(notes);
	return took;
}

static void fibers_pause_if_it_is_asked_for(void **state)
{
	int paused = 0;

	(void)state;
	for (uint64_t seed = 0; seed < RIG_SEEDS; seed++) {
		uint64_t hashes[3];
		int64_t took = time_of_turns(seed, WR_SIM_PAUSES, &hashes[0]);

		assert_int_equal(time_of_turns(seed, WR_SIM_PAUSES, &hashes[1]), took);
		assert_true(hashes[0] == hashes[1]);
		assert_int_equal(time_of_turns(seed, WR_SIM_BY_SEED, &hashes[2]), 0);
		assert_in_range(took, 0, 512 * 32768);
		paused += took > 0;
	}
	assert_in_range(paused, RIG_SEEDS / 4, RIG_SEEDS);
}

static void draw(void *arg)
{
	struct notes *notes = arg;

	rig_crowd(notes);
	notes->hash = wr_random_next(wr_sim_random(notes->sim));
}

static void schedule_choices_do_not_move_the_worlds_random_numbers(void **state)
{
	struct notes *one = rig_begin(5, WR_SIM_UNIFORM), *two = rig_begin(5, WR_SIM_PCT),
		     *three = rig_begin(6, WR_SIM_PCT);

	(void)state;
	assert_int_equal(rig_call(one, draw) | rig_call(two, draw) | rig_call(three, draw), WEIR_OK);
	assert_true(wr_sim_hash(one->sim) != wr_sim_hash(two->sim));
	assert_true(one->hash == two->hash);
	assert_true(one->hash != three->hash);
	rig_end(one);
	rig_end(two);
	rig_end(three);
}

static void call_crowd_often(void *arg)
{
	struct notes **notes = arg;

	for (int i = 0; i < 50; i++)
		notes[0]->wrong |= rig_call(notes[0], rig_crowd) != WEIR_OK;
}

static void b05_two_worlds_in_two_threads_do_not_know_of_each_other(void **state)
{
	struct notes *notes[3];
	struct wr_thread threads[2];

	(void)state;
	for (int i = 0; i < 3; i++)
		notes[i] = rig_begin(5, WR_SIM_UNIFORM);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wr_thread_start(&threads[i], "world", call_crowd_often, &notes[i]), WEIR_OK);
	for (int i = 0; i < 2; i++)
		wr_thread_join(&threads[i]);
	call_crowd_often(&notes[2]); /* alone: the same result */
	for (int i = 0; i < 3; i++) {
		assert_false(notes[i]->wrong);
		assert_true(wr_sim_hash(notes[i]->sim) == wr_sim_hash(notes[2]->sim));
	}
	for (int i = 0; i < 3; i++)
		rig_end(notes[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_seed_gives_the_same_order),
		cmocka_unit_test(different_seeds_give_different_orders),
		cmocka_unit_test(the_seed_draws_the_strategy),
		cmocka_unit_test(round_robin_goes_in_turn),
		cmocka_unit_test(fibers_pause_if_it_is_asked_for),
		cmocka_unit_test(schedule_choices_do_not_move_the_worlds_random_numbers),
		cmocka_unit_test(b05_two_worlds_in_two_threads_do_not_know_of_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

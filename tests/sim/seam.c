/*
 * Tests of the simulation itself: a toy with the wake-up protocol of an entity (S1, S2), correct and with
 * seeded bugs. The correct one must hold under every schedule; each bug must be found within 1000 seeds.
 */
#include <stdlib.h>

#include "base/atomic.h"
#include "base/thread.h"
#include "sim/simulation.h"
#include "tests/base/test.h"
#include "tests/bugs/bug.h"

enum { POKED = 1, RUNNING = 2 };
enum { POKERS = 2, POKES = 3 };

struct toy {
	_Atomic uint32_t state, told;
	struct wr_parker parker; /* stands for the ready queue */
	uint32_t seen;           /* by the reviewer */
	_Atomic uint32_t stopped;
	struct wr_sim *sim;
};

static void poke(struct toy *toy)
{
	if (!wr_fetch_or(&toy->state, POKED))
		wr_unpark(&toy->parker);
}

static void tell(void *arg)
{
	struct toy *toy = arg;

	for (int i = 0; i < POKES; i++) {
		wr_fetch_add(&toy->told, 1);
		poke(toy);
	}
}

static bool leave(struct toy *toy)
{
	uint32_t running = RUNNING;

	if (WR_BUG(BLIND_IDLE)) {
		wr_store(&toy->state, 0);
		return true;
	}
	if (WR_BUG(CHECK_THEN_STORE)) {
		if (wr_load(&toy->state) != RUNNING)
			return false;
		wr_store(&toy->state, 0);
		return true;
	}
	return wr_cas(&toy->state, &running, 0);
}

static void review(void *arg)
{
	struct toy *toy = arg;

	while (wr_park(&toy->parker, WR_FOREVER), !wr_load(&toy->stopped))
		do {
			wr_exchange(&toy->state, RUNNING);
			toy->seen = wr_load(&toy->told);
		} while (!leave(toy));
}

/* After the last poke the reviewer must have seen everything: time goes on only when it rests. */
static void run_toy(void *arg)
{
	struct wr_thread pokers[POKERS], reviewer;
	struct toy *toy = arg;

	wr_thread_start(&reviewer, "reviewer", review, toy);
	for (int i = 0; i < POKERS; i++)
		wr_thread_start(&pokers[i], "poker", tell, toy);
	for (int i = 0; i < POKERS; i++)
		wr_thread_join(&pokers[i]);
	wr_thread_sleep(1);
	wr_store(&toy->stopped, 1);
	wr_unpark(&toy->parker);
	wr_thread_join(&reviewer);
}

static bool toy_holds(uint64_t seed, enum wr_sim_strategy strategy, uint64_t *hash)
{
	struct toy toy = {.seen = 0};
	struct wr_sim *sim = NULL;

	assert_int_equal(wr_sim_create(&sim, seed, strategy), WEIR_OK);
	assert_int_equal(wr_sim_call(sim, run_toy, &toy), WEIR_OK);
	*hash = wr_sim_hash(sim);
	wr_sim_destroy(sim);
	return toy.seen == POKERS * POKES;
}

/* Returns the number of the first seed that fails, or 0. */
static uint64_t seeds_until_found(enum wr_bug bug, enum wr_sim_strategy strategy, uint64_t seeds)
{
	uint64_t hash, seed = 1;

	wr_bug_active = bug;
	while (seed <= seeds && toy_holds(seed, strategy, &hash))
		seed++;
	wr_bug_active = WR_BUG_NONE;
	return seed <= seeds ? seed : 0;
}

static void f01_the_right_protocol_holds_under_every_schedule(void **state)
{
	(void)state;
	assert_int_equal(seeds_until_found(WR_BUG_NONE, WR_SIM_BY_SEED, 2000), 0);
}

static void f02_a_lost_wake_up_is_found_within_1000_seeds(void **state)
{
	(void)state;
	assert_in_range(seeds_until_found(WR_BUG_CHECK_THEN_STORE, WR_SIM_BY_SEED, 1000), 1, 1000);
}

static void f03_a_blind_store_is_found_within_1000_seeds(void **state)
{
	(void)state;
	assert_in_range(seeds_until_found(WR_BUG_BLIND_IDLE, WR_SIM_BY_SEED, 1000), 1, 1000);
}

static void f02_uniform_and_pct_each_find_it_alone(void **state)
{
	(void)state;
	assert_in_range(seeds_until_found(WR_BUG_CHECK_THEN_STORE, WR_SIM_UNIFORM, 1000), 1, 1000);
	assert_in_range(seeds_until_found(WR_BUG_CHECK_THEN_STORE, WR_SIM_PCT, 1000), 1, 1000);
}

static void a_failing_seed_fails_again(void **state)
{
	uint64_t seed = seeds_until_found(WR_BUG_CHECK_THEN_STORE, WR_SIM_BY_SEED, 1000), hashes[2];

	(void)state;
	wr_bug_active = WR_BUG_CHECK_THEN_STORE;
	for (int i = 0; i < 2; i++)
		assert_false(toy_holds(seed, WR_SIM_BY_SEED, &hashes[i]));
	wr_bug_active = WR_BUG_NONE;
	assert_true(hashes[0] == hashes[1]);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void seeds_give_different_schedules(void **state)
{
	enum { SEEDS = 500 };
	static uint64_t hashes[SEEDS];
	int distinct = 1;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		assert_true(toy_holds(seed, WR_SIM_UNIFORM, &hashes[seed]));
	qsort(hashes, SEEDS, sizeof(*hashes), by_value);
	for (int i = 1; i < SEEDS; i++)
		distinct += hashes[i] != hashes[i - 1];
	assert_true(distinct > SEEDS * 9 / 10);
}

/* ------------------------------------------------------------------------------------ switching points -- */

struct torn {
	_Atomic int word;
	bool global;
	bool stop, seen_half;
};

static void write_halves(struct torn *torn)
{
	if (torn->global)
		wr_global_lock();
	wr_store_relaxed(&torn->word, 1);
	wr_store_relaxed(&torn->word, 2);
	if (torn->global)
		wr_global_unlock();
}

static void look(void *arg)
{
	struct torn *torn = arg;

	while (!torn->stop)
		torn->seen_half |= wr_load(&torn->word) == 1;
}

static void write_and_look(void *arg)
{
	struct torn *torn = arg;
	struct wr_thread thread;

	wr_thread_start(&thread, "looks", look, torn);
	for (int i = 0; i < 50; i++)
		write_halves(torn);
	torn->stop = true;
	wr_thread_join(&thread);
}

static bool half_is_seen(bool global)
{
	struct torn torn = {.global = global};
	struct wr_sim *sim = NULL;

	assert_int_equal(wr_sim_create(&sim, 3, WR_SIM_UNIFORM), WEIR_OK);
	assert_int_equal(wr_sim_call(sim, write_and_look, &torn), WEIR_OK);
	wr_sim_destroy(sim);
	return torn.seen_half;
}

static void each_atomic_is_a_switching_point(void **state)
{
	(void)state;
	assert_true(half_is_seen(false));
}

static void none_is_one_under_the_global_lock(void **state)
{
	(void)state;
	assert_false(half_is_seen(true));
}

/* Under PCT the thread of highest priority runs for ever, unless the scheduler limits that. */
static void a_thread_that_spins_without_a_yield_is_overtaken(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct torn torn = {.global = false};
		struct wr_sim *sim = NULL;

		assert_int_equal(wr_sim_create(&sim, seed, WR_SIM_PCT), WEIR_OK);
		wr_sim_set_limit(sim, 100000);
		assert_int_equal(wr_sim_call(sim, write_and_look, &torn), WEIR_OK);
		wr_sim_destroy(sim);
	}
}

static void outside_of_a_world_nothing_switches(void **state)
{
	_Atomic int word = 1;

	(void)state;
	wr_switch();
	assert_int_equal(wr_fetch_add(&word, 1), 1);
	assert_null(wr_sim_current());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f01_the_right_protocol_holds_under_every_schedule),
		cmocka_unit_test(f02_a_lost_wake_up_is_found_within_1000_seeds),
		cmocka_unit_test(f03_a_blind_store_is_found_within_1000_seeds),
		cmocka_unit_test(f02_uniform_and_pct_each_find_it_alone),
		cmocka_unit_test(a_failing_seed_fails_again),
		cmocka_unit_test(seeds_give_different_schedules),
		cmocka_unit_test(each_atomic_is_a_switching_point),
		cmocka_unit_test(none_is_one_under_the_global_lock),
		cmocka_unit_test(a_thread_that_spins_without_a_yield_is_overtaken),
		cmocka_unit_test(outside_of_a_world_nothing_switches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "sim/simulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "tests/base/test.h"

#define SECOND INT64_C(1000000000)
enum { SEEDS = 200 };

/* No assertions inside of a world, since cmocka jumps out of it: fibers note here what they see. */
struct notes {
	struct wr_sim *sim;
	struct wr_mutex mutex;
	struct wr_cond cond;
	struct wr_parker parker, back;
	struct wr_thread thread;
	int64_t at[8];
	int count, inside, most;
	bool flag, wrong;
	char order[16];
	uint64_t hash;
};

static struct notes *begin(uint64_t seed, enum wr_sim_strategy strategy)
{
	struct notes *notes = wr_alloc(1, sizeof(*notes));

	assert_int_equal(wr_sim_create(&notes->sim, seed, strategy), WEIR_OK);
	wr_mutex_init(&notes->mutex);
	wr_cond_init(&notes->cond);
	return notes;
}

static void end(struct notes *notes)
{
	wr_sim_destroy(notes->sim);
	wr_cond_finish(&notes->cond);
	wr_mutex_finish(&notes->mutex);
	wr_free(notes);
}

static weir_status call(struct notes *notes, void (*fn)(void *arg))
{
	return wr_sim_call(notes->sim, fn, notes);
}

/* Runs in worlds of many seeds, and so under all strategies. */
static void each_seed(void (*fn)(void *arg), void (*check)(struct notes *notes))
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct notes *notes = begin(seed, WR_SIM_BY_SEED);

		assert_int_equal(call(notes, fn), WEIR_OK);
		check(notes);
		end(notes);
	}
}

/* ------------------------------------------------------------------------------------------------ time -- */

static void sleep_an_hour(void *arg)
{
	struct notes *notes = arg;

	notes->at[0] = wr_now();
	weir_sleep(3600 * SECOND);
	notes->at[1] = wr_now();
}

static void time_is_virtual_and_starts_at_one_second(void **state)
{
	struct notes *notes = begin(1, WR_SIM_BY_SEED);

	(void)state;
	assert_int_equal(call(notes, sleep_an_hour), WEIR_OK);
	assert_int_equal(notes->at[0], SECOND);
	assert_int_equal(notes->at[1], 3601 * SECOND);
	assert_int_equal(wr_sim_now(notes->sim), 3601 * SECOND);
	end(notes);
}

struct sleeper {
	struct notes *notes;
	int64_t ns;
	char name;
};

static void sleep_and_sign(void *arg)
{
	struct sleeper *sleeper = arg;
	struct notes *notes = sleeper->notes;

	wr_thread_sleep(sleeper->ns);
	notes->order[notes->count++] = sleeper->name;
}

static void start_sleepers(void *arg)
{
	struct sleeper sleepers[] = {{arg, 30, 'c'}, {arg, 10, 'a'}, {arg, 40, 'd'}, {arg, 20, 'b'}};
	struct wr_thread threads[COUNT(sleepers)];

	for (size_t i = 0; i < COUNT(sleepers); i++)
		wr_thread_start(&threads[i], "sleeps", sleep_and_sign, &sleepers[i]);
	for (size_t i = 0; i < COUNT(sleepers); i++)
		wr_thread_join(&threads[i]);
}

static void check_order(struct notes *notes)
{
	assert_string_equal(notes->order, "abcd");
}

static void sleepers_wake_in_the_order_of_time(void **state)
{
	(void)state;
	each_seed(start_sleepers, check_order);
}

static void wait_in_vain(void *arg)
{
	struct notes *notes = arg;
	int64_t until = wr_now() + 5;

	wr_mutex_lock(&notes->mutex);
	while (wr_cond_wait(&notes->cond, &notes->mutex, until))
		notes->wrong |= wr_now() >= until;
	notes->at[0] = wr_now() - until;
	notes->wrong |= wr_cond_wait(&notes->cond, &notes->mutex, until); /* in the past: at once */
	wr_mutex_unlock(&notes->mutex);
	notes->wrong |= wr_park(&notes->parker, wr_now() + 7);
	notes->at[1] = wr_now() - until;
}

static void check_times(struct notes *notes)
{
	assert_false(notes->wrong);
	assert_int_equal(notes->at[0], 0);
	assert_int_equal(notes->at[1], 7);
}

static void time_outs_come_exactly_at_their_time(void **state)
{
	(void)state;
	each_seed(wait_in_vain, check_times);
}

static void sleep_then_raise(void *arg)
{
	struct notes *notes = arg;

	wr_thread_sleep(100);
	notes->flag = true;
}

static void spin_for_the_flag(void *arg)
{
	struct notes *notes = arg;

	wr_thread_start(&notes->thread, "raises", sleep_then_raise, notes);
	while (!notes->flag)
		wr_thread_yield();
	notes->at[0] = wr_now();
	while (wr_now() < notes->at[0] + 50000) /* no fiber sleeps */
		wr_thread_yield();
	wr_thread_join(&notes->thread);
}

static void check_spun(struct notes *notes)
{
	assert_int_equal(notes->at[0], SECOND + 100);
}

static void time_passes_for_threads_that_spin_for_it(void **state)
{
	(void)state;
	each_seed(spin_for_the_flag, check_spun);
}

static void raise_at_once(void *arg)
{
	struct notes *notes = arg;

	notes->flag = true;
}

static void yield_to_the_other(void *arg)
{
	struct notes *notes = arg;

	wr_sim_set_limit(notes->sim, 20);
	wr_thread_start(&notes->thread, "raises", raise_at_once, notes);
	while (!notes->flag)
		wr_thread_yield();
	wr_thread_join(&notes->thread);
}

static void check_flag(struct notes *notes)
{
	assert_true(notes->flag);
}

static void a_yield_lets_the_other_go_on_soon(void **state)
{
	(void)state;
	each_seed(yield_to_the_other, check_flag);
}

/* --------------------------------------------------------------------------------- mutexes, conditions -- */

static void go_in(void *arg)
{
	struct notes *notes = arg;

	for (int i = 0; i < 5; i++) {
		wr_mutex_lock(&notes->mutex);
		if (++notes->inside > notes->most)
			notes->most = notes->inside;
		wr_thread_yield();
		notes->inside--;
		notes->count++;
		wr_mutex_unlock(&notes->mutex);
	}
}

static void crowd(void *arg)
{
	struct wr_thread threads[3];

	for (int i = 0; i < 3; i++)
		wr_thread_start(&threads[i], "goes in", go_in, arg);
	for (int i = 0; i < 3; i++)
		wr_thread_join(&threads[i]);
}

static void check_alone(struct notes *notes)
{
	assert_int_equal(notes->most, 1);
	assert_int_equal(notes->count, 15);
}

static void a_mutex_lets_one_fiber_in(void **state)
{
	(void)state;
	each_seed(crowd, check_alone);
}

static void wait_for_flag(void *arg)
{
	struct notes *notes = arg;

	wr_mutex_lock(&notes->mutex);
	while (!notes->flag)
		wr_cond_wait(&notes->cond, &notes->mutex, WR_FOREVER);
	notes->count++;
	wr_mutex_unlock(&notes->mutex);
}

static void raise_flag(void *arg)
{
	struct notes *notes = arg;

	wr_mutex_lock(&notes->mutex);
	notes->flag = true;
	wr_cond_broadcast(&notes->cond);
	wr_mutex_unlock(&notes->mutex);
}

static void three_wait(void *arg)
{
	struct wr_thread threads[3];

	for (int i = 0; i < 3; i++)
		wr_thread_start(&threads[i], "waits", wait_for_flag, arg);
	raise_flag(arg);
	for (int i = 0; i < 3; i++)
		wr_thread_join(&threads[i]);
}

static void check_three(struct notes *notes)
{
	assert_int_equal(notes->count, 3);
}

static void a_broadcast_wakes_all_fibers(void **state)
{
	(void)state;
	each_seed(three_wait, check_three);
}

static void wait_once(void *arg)
{
	struct notes *notes = arg;

	wr_mutex_lock(&notes->mutex);
	notes->flag = wr_cond_wait(&notes->cond, &notes->mutex, wr_now() + 1);
	wr_mutex_unlock(&notes->mutex);
}

/* POSIX allows them, so code that does not expect them has to be found. */
static void some_waits_on_a_condition_variable_are_spurious(void **state)
{
	int woken = 0;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct notes *notes = begin(seed, WR_SIM_BY_SEED);

		assert_int_equal(call(notes, wait_once), WEIR_OK);
		woken += notes->flag;
		end(notes);
	}
	assert_in_range(woken, 1, SEEDS / 4);
}

/* --------------------------------------------------------------------------------------------- parkers -- */

static void answer(void *arg)
{
	struct notes *notes = arg;

	for (int i = 0; i < 20; i++) {
		wr_park(&notes->parker, WR_FOREVER);
		wr_unpark(&notes->back);
	}
}

static void ask(void *arg)
{
	struct notes *notes = arg;

	wr_thread_start(&notes->thread, "answers", answer, notes);
	for (int i = 0; i < 20; i++) {
		wr_unpark(&notes->parker);
		notes->count += wr_park(&notes->back, wr_now() + SECOND);
	}
	wr_thread_join(&notes->thread);
}

static void check_answers(struct notes *notes)
{
	assert_int_equal(notes->count, 20);
	assert_int_equal(wr_sim_now(notes->sim), SECOND);
}

static void f20_no_token_is_lost_between_fibers(void **state)
{
	(void)state;
	each_seed(ask, check_answers);
}

static void unpark_twice(void *arg)
{
	struct notes *notes = arg;

	wr_unpark(&notes->parker);
	wr_unpark(&notes->parker);
	notes->count += wr_park(&notes->parker, 0);
	notes->count += wr_park(&notes->parker, wr_now() + 1);
}

static void check_one(struct notes *notes)
{
	assert_int_equal(notes->count, 1);
}

static void a_parker_of_a_world_holds_one_token(void **state)
{
	(void)state;
	each_seed(unpark_twice, check_one);
}

static void unpark_on_time(void *arg)
{
	struct notes *notes = arg;

	wr_thread_sleep(10);
	wr_unpark(&notes->parker);
	notes->flag = true;
}

/* Time-out and token at the same instant, in either order: the token is either taken or still there. */
static void park_until_the_token(void *arg)
{
	struct notes *notes = arg;

	wr_thread_start(&notes->thread, "unparks", unpark_on_time, notes);
	notes->count += wr_park(&notes->parker, SECOND + 10);
	wr_thread_join(&notes->thread);
	notes->count += wr_park(&notes->parker, 0);
}

static void a_token_that_meets_its_time_out_is_kept(void **state)
{
	(void)state;
	each_seed(park_until_the_token, check_one);
}

/* ---------------------------------------------------------------------------------------------- fibers -- */

static void note_identity(void *arg)
{
	struct notes *notes = arg;
	uintptr_t self = wr_thread_self();

	notes->wrong |= wr_thread_local() != NULL;
	wr_thread_set_local(&self);
	wr_thread_yield();
	notes->wrong |= wr_thread_local() != &self || wr_thread_self() != self;
	notes->at[notes->count++] = (int64_t)self;
}

static void note_two_identities(void *arg)
{
	struct notes *notes = arg;

	wr_thread_set_local(notes);
	wr_thread_start(&notes->thread, "other", note_identity, notes);
	wr_thread_yield();
	notes->wrong |= wr_thread_local() != notes || !notes->thread.fiber;
	wr_thread_join(&notes->thread);
	notes->at[notes->count++] = (int64_t)wr_thread_self();
}

static void check_identities(struct notes *notes)
{
	assert_false(notes->wrong);
	assert_int_equal(notes->count, 2);
	assert_true(notes->at[0] && notes->at[1] && notes->at[0] != notes->at[1]);
	assert_null(wr_thread_local());
}

static void self_and_local_belong_to_the_fiber(void **state)
{
	(void)state;
	each_seed(note_two_identities, check_identities);
}

static void hold_and_yield(void *arg)
{
	struct notes *notes = arg;

	wr_mutex_lock(&notes->mutex);
	notes->most = wr_mutex_held();
	wr_thread_start(&notes->thread, "holds none", note_identity, notes);
	for (int i = 0; i < 8; i++)
		wr_thread_yield();
	wr_mutex_unlock(&notes->mutex);
	notes->inside = wr_mutex_held();
	wr_thread_join(&notes->thread);
}

static void s11_held_mutexes_are_counted_per_fiber(void **state)
{
	struct notes *notes = begin(1, WR_SIM_ROUND_ROBIN);
	struct wr_mutex mutex = {.owner = NULL};

	(void)state;
	wr_mutex_lock(&mutex); /* the mutex of the driving thread, not of a fiber */
	assert_int_equal(call(notes, hold_and_yield), WEIR_OK);
	assert_int_equal(notes->inside, 0);
	assert_int_equal(notes->most, wr_mutex_held());
	wr_mutex_unlock(&mutex);
	end(notes);
}

static void start_and_leave(void *arg)
{
	struct notes *notes = arg;

	wr_thread_start(&notes->thread, "answers", answer, notes);
}

static void join_it(void *arg)
{
	struct notes *notes = arg;

	wr_thread_join(&notes->thread);
}

static void fibers_rest_between_calls(void **state)
{
	struct notes *notes = begin(5, WR_SIM_BY_SEED);

	(void)state;
	assert_int_equal(call(notes, start_and_leave), WEIR_OK);
	for (int i = 0; i < 20; i++) {
		wr_unpark(&notes->parker); /* by the thread that drives the world */
		assert_int_equal(call(notes, sleep_an_hour), WEIR_OK); /* lets the other fiber run */
		assert_int_equal(notes->back.word, 1);
		notes->back.word = 0;
	}
	assert_int_equal(call(notes, join_it), WEIR_OK);
	assert_false(notes->thread.started);
	end(notes);
}

static void hold_a_while(void *arg)
{
	struct notes *notes = arg;

	wr_mutex_lock(&notes->mutex);
	notes->inside = 1;
	wr_thread_sleep(1000);
	notes->inside = 0;
	wr_mutex_unlock(&notes->mutex);
}

static void let_it_hold(void *arg)
{
	struct notes *notes = arg;

	wr_thread_start(&notes->thread, "holds", hold_a_while, notes);
	wr_thread_sleep(10);
}

static void the_driving_thread_may_lock_broadcast_and_join(void **state)
{
	struct notes *notes = begin(5, WR_SIM_BY_SEED);

	(void)state;
	assert_int_equal(call(notes, let_it_hold), WEIR_OK);
	assert_int_equal(notes->inside, 1);
	wr_mutex_lock(&notes->mutex); /* the fiber must run first */
	assert_int_equal(notes->inside, 0);
	wr_mutex_unlock(&notes->mutex);
	wr_cond_broadcast(&notes->cond);
	wr_thread_join(&notes->thread);
	assert_false(notes->thread.started);
	end(notes);
}

static void start_waiters(void *arg)
{
	struct notes *notes = arg;

	wr_thread_start(&notes->thread, "waits", wait_for_flag, notes);
	wr_thread_sleep(1);
}

static void a_broadcast_of_the_driving_thread_reaches_fibers(void **state)
{
	struct notes *notes = begin(5, WR_SIM_BY_SEED);

	(void)state;
	assert_int_equal(call(notes, start_waiters), WEIR_OK);
	raise_flag(notes);
	wr_thread_join(&notes->thread);
	assert_int_equal(notes->count, 1);
	end(notes);
}

static void call_again(void *arg)
{
	struct notes *notes = arg;
	uintptr_t self = wr_thread_self();

	if (notes->count++ == 0)
		notes->wrong |= call(notes, call_again) != WEIR_OK;
	else
		notes->at[0] = (int64_t)self;
	notes->at[1] = (int64_t)self;
}

static void a_fiber_of_the_world_simply_calls(void **state)
{
	struct notes *notes = begin(5, WR_SIM_BY_SEED);

	(void)state;
	assert_int_equal(call(notes, call_again), WEIR_OK);
	assert_false(notes->wrong);
	assert_int_equal(notes->count, 2);
	assert_true(notes->at[0] == notes->at[1]);
	end(notes);
}

static void drive_another_world(void *arg)
{
	struct notes *outer = arg, *inner = begin(9, WR_SIM_BY_SEED);
	int64_t before = wr_now();

	outer->wrong |= call(inner, sleep_an_hour) != WEIR_OK || wr_sim_now(inner->sim) != 3601 * SECOND;
	end(inner);
	outer->wrong |= wr_now() != before || wr_sim_current() != outer->sim;
}

static void worlds_may_be_nested(void **state)
{
	struct notes *notes = begin(5, WR_SIM_BY_SEED);

	(void)state;
	assert_int_equal(call(notes, drive_another_world), WEIR_OK);
	assert_false(notes->wrong);
	assert_null(wr_sim_current());
	end(notes);
}

/* A fiber's stack is still used after another thread drives the world. */
static void call_ask(void *arg)
{
	struct notes *notes = arg;

	notes->wrong = call(notes, ask) != WEIR_OK;
	notes->hash = wr_sim_hash(notes->sim);
}

static void another_thread_may_drive_the_next_call(void **state)
{
	struct notes *notes = begin(5, WR_SIM_BY_SEED);
	struct wr_thread thread;

	(void)state;
	assert_int_equal(call(notes, let_it_hold), WEIR_OK);
	assert_int_equal(wr_thread_start(&thread, "drives", call_ask, notes), WEIR_OK);
	wr_thread_join(&thread);
	assert_false(notes->wrong);
	assert_int_equal(notes->count, 20);
	end(notes);
}

/* ----------------------------------------------------------------------------------- seeds and repeats -- */

static uint64_t hash_of(uint64_t seed, enum wr_sim_strategy strategy)
{
	struct notes *notes = begin(seed, strategy);
	uint64_t hash;

	assert_int_equal(call(notes, crowd), WEIR_OK);
	assert_true(wr_sim_switches(notes->sim) > 30);
	hash = wr_sim_hash(notes->sim);
	end(notes);
	return hash;
}

static void the_same_seed_gives_the_same_order(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		assert_true(hash_of(seed, WR_SIM_BY_SEED) == hash_of(seed, WR_SIM_BY_SEED));
}

static void different_seeds_give_different_orders(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		assert_true(hash_of(seed, WR_SIM_UNIFORM) != hash_of(seed + 1, WR_SIM_UNIFORM));
}

/* Half of the seeds are uniform, four in ten PCT, the rest round robin. */
static void the_seed_draws_the_strategy(void **state)
{
	int seen[4] = {0};

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint64_t hash = hash_of(seed, WR_SIM_BY_SEED);
		enum wr_sim_strategy strategy = WR_SIM_UNIFORM;

		while (strategy < WR_SIM_ROUND_ROBIN && hash_of(seed, strategy) != hash)
			strategy++;
		assert_true(hash_of(seed, strategy) == hash);
		seen[strategy]++;
	}
	assert_in_range(seen[WR_SIM_UNIFORM], SEEDS * 4 / 10, SEEDS * 6 / 10);
	assert_in_range(seen[WR_SIM_PCT], SEEDS * 3 / 10, SEEDS * 5 / 10);
	assert_in_range(seen[WR_SIM_ROUND_ROBIN], SEEDS / 20, SEEDS * 2 / 10);
}

static void sign(void *arg)
{
	struct sleeper *sleeper = arg;

	for (int i = 0; i < 2; i++) {
		sleeper->notes->order[sleeper->notes->count++] = sleeper->name;
		wr_thread_yield();
	}
}

static void three_sign(void *arg)
{
	struct sleeper sleeper[] = {{arg, 0, 'a'}, {arg, 0, 'b'}, {arg, 0, 'c'}};
	struct wr_thread threads[COUNT(sleeper)];

	for (size_t i = 0; i < COUNT(sleeper); i++)
		wr_thread_start(&threads[i], "signs", sign, &sleeper[i]);
	for (size_t i = 0; i < COUNT(sleeper); i++)
		wr_thread_join(&threads[i]);
}

static void round_robin_goes_in_turn(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct notes *notes = begin(seed, WR_SIM_ROUND_ROBIN);

		assert_int_equal(call(notes, three_sign), WEIR_OK);
		for (char name = 'a'; name < 'c'; name++)
			assert_true(strchr(notes->order, name) < strchr(notes->order, name + 1));
		end(notes);
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
	struct notes *notes = begin(seed, strategy);
	int64_t took;

	assert_int_equal(call(notes, two_take_turns), WEIR_OK);
	assert_int_equal(notes->count, 400);
	took = wr_sim_now(notes->sim) - SECOND;
	*hash = wr_sim_hash(notes->sim);
	end(notes);
	return took;
}

static void fibers_pause_if_it_is_asked_for(void **state)
{
	int paused = 0;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint64_t hashes[3];
		int64_t took = time_of_turns(seed, WR_SIM_PAUSES, &hashes[0]);

		assert_int_equal(time_of_turns(seed, WR_SIM_PAUSES, &hashes[1]), took);
		assert_true(hashes[0] == hashes[1]);
		assert_int_equal(time_of_turns(seed, WR_SIM_BY_SEED, &hashes[2]), 0);
		assert_in_range(took, 0, 512 * 32768);
		paused += took > 0;
	}
	assert_in_range(paused, SEEDS / 4, SEEDS);
}

static void draw(void *arg)
{
	struct notes *notes = arg;

	crowd(notes);
	notes->hash = wr_random_next(wr_sim_random(notes->sim));
}

static void schedule_choices_do_not_move_the_worlds_random_numbers(void **state)
{
	struct notes *one = begin(5, WR_SIM_UNIFORM), *two = begin(5, WR_SIM_PCT),
		     *three = begin(6, WR_SIM_PCT);

	(void)state;
	assert_int_equal(call(one, draw) | call(two, draw) | call(three, draw), WEIR_OK);
	assert_true(wr_sim_hash(one->sim) != wr_sim_hash(two->sim));
	assert_true(one->hash == two->hash);
	assert_true(one->hash != three->hash);
	end(one);
	end(two);
	end(three);
}

static void call_crowd_often(void *arg)
{
	struct notes **notes = arg;

	for (int i = 0; i < 50; i++)
		notes[0]->wrong |= call(notes[0], crowd) != WEIR_OK;
}

static void b05_two_worlds_in_two_threads_do_not_know_of_each_other(void **state)
{
	struct notes *notes[3];
	struct wr_thread threads[2];

	(void)state;
	for (int i = 0; i < 3; i++)
		notes[i] = begin(5, WR_SIM_UNIFORM);
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
		end(notes[i]);
}

/* ------------------------------------------------------------------------------------------- deadlocks -- */

static void take_and_park(void *arg)
{
	struct notes *notes = arg;

	wr_mutex_lock(&notes->mutex);
	wr_park(&notes->parker, WR_FOREVER);
}

static void take_it_too(void *arg)
{
	struct notes *notes = arg;

	wr_thread_sleep(5);
	wr_mutex_lock(&notes->mutex);
}

static void wait_on_cond(void *arg)
{
	struct notes *notes = arg;
	struct wr_mutex mutex;

	wr_mutex_init(&mutex);
	wr_mutex_lock(&mutex);
	while (!notes->flag)
		wr_cond_wait(&notes->cond, &mutex, WR_FOREVER);
}

static void get_stuck(void *arg)
{
	struct wr_thread threads[3];

	wr_thread_start(&threads[0], "parks", take_and_park, arg);
	wr_thread_start(&threads[1], "locks", take_it_too, arg);
	wr_thread_start(&threads[2], "waits", wait_on_cond, arg);
	wr_thread_join(&threads[0]);
}

static void f23_a_stuck_world_names_its_fibers_and_what_each_waits_for(void **state)
{
	static const char *const parts[] = {
		"no fiber can ever run again", "; main waits for the end of parks", "; parks is parked",
		"; locks waits for a mutex held by parks", "; waits waits on a condition variable"};

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct notes *notes = begin(seed, WR_SIM_BY_SEED);

		assert_int_equal(call(notes, get_stuck), WEIR_E_DEADLOCK);
		for (size_t i = 0; i < COUNT(parts); i++)
			assert_non_null(strstr(weir_last_error(), parts[i]));
		assert_int_equal(call(notes, sleep_an_hour), WEIR_E_DEADLOCK); /* it stays broken */
		assert_int_equal(notes->at[0], 0);
		notes->mutex.owner = NULL;
		end(notes);
	}
}

static void yield_for_ever(void *arg)
{
	struct notes *notes = arg;

	while (!notes->wrong)
		wr_thread_yield();
}

static void f29_a_world_that_never_ends_is_stopped_at_its_limit(void **state)
{
	struct notes *notes = begin(1, WR_SIM_BY_SEED);
	uint64_t before;

	(void)state;
	wr_sim_set_limit(notes->sim, 200);
	assert_int_equal(call(notes, crowd), WEIR_OK);
	before = wr_sim_switches(notes->sim); /* these do not count for the next call */
	assert_in_range(before, 30, 200);
	assert_int_equal(call(notes, yield_for_ever), WEIR_E_TIMEOUT);
	assert_non_null(strstr(weir_last_error(), "main still runs after 200 switching points"));
	assert_int_equal(wr_sim_switches(notes->sim), before + 201);
	end(notes);
}

static void a_world_with_unfinished_fibers_can_be_dropped(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct notes *notes = begin(seed, WR_SIM_BY_SEED);

		assert_int_equal(call(notes, let_it_hold), WEIR_OK);
		assert_int_equal(call(notes, start_and_leave), WEIR_OK);
		notes->mutex.owner = NULL;
		end(notes);
	}
	wr_sim_destroy(NULL);
}

static void start_many(void *arg)
{
	struct notes *notes = arg;

	for (int i = 0; i < 3; i++) {
		struct wr_thread thread;
		weir_status status = wr_thread_start(&thread, "counts", go_in, notes);

		notes->wrong |= thread.started != (status == WEIR_OK);
		notes->inside += status == WEIR_E_NOMEM;
		wr_thread_join(&thread);
	}
	notes->inside = 0;
}

/* Returns true if allocation n was reached. */
static bool fail_nth(int64_t n)
{
	struct notes notes = {.inside = 0};
	int64_t before = wr_memory_count();
	weir_status status;

	wr_memory_fail_at(n, false);
	status = wr_sim_create(&notes.sim, 1, WR_SIM_BY_SEED);
	if (!status)
		status = call(&notes, start_many);
	wr_memory_fail_at(-1, false);
	wr_sim_destroy(notes.sim);
	assert_true(status == WEIR_OK || status == WEIR_E_NOMEM);
	assert_false(notes.wrong);
	return wr_memory_count() - before > n;
}

static void f40_any_allocation_of_a_world_may_fail(void **state)
{
	int64_t n = 0;

	(void)state;
	while (fail_nth(n))
		n++;
	assert_true(n >= 5);
}

/* ---------------------------------------------------------------------------------------------- stacks -- */

static int deepen(volatile char *above, int depth)
{
	volatile char frame[4096];

	frame[0] = above[0];
	return depth ? deepen(frame, depth - 1) + frame[0] : frame[0];
}

static void use_200_kib(void *arg)
{
	struct notes *notes = arg;
	volatile char first = 1;

	notes->count = deepen(&first, 40);
}

static void a_fiber_has_room_for_deep_calls(void **state)
{
	struct notes *notes = begin(1, WR_SIM_BY_SEED);

	(void)state;
	assert_int_equal(call(notes, use_200_kib), WEIR_OK);
	assert_int_equal(notes->count, 41);
	end(notes);
}

static void use_too_much(void *arg)
{
	volatile char first = 1;

	(void)arg;
	deepen(&first, 70); /* less than the stack and its guard together */
}

static void f49_a_stack_overflow_hits_the_guard_page(void **state)
{
	int status = 0;
	pid_t child = fork();

	(void)state;
	if (!child) {
		struct wr_sim *sim = NULL;

		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		if (!freopen("/dev/null", "w", stderr) || wr_sim_create(&sim, 1, WR_SIM_BY_SEED))
			_exit(0);
		wr_sim_call(sim, use_too_much, NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_not_equal(status, 0); /* SIGSEGV, or a sanitizer's exit status */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_is_virtual_and_starts_at_one_second),
		cmocka_unit_test(sleepers_wake_in_the_order_of_time),
		cmocka_unit_test(time_outs_come_exactly_at_their_time),
		cmocka_unit_test(time_passes_for_threads_that_spin_for_it),
		cmocka_unit_test(a_yield_lets_the_other_go_on_soon),
		cmocka_unit_test(a_mutex_lets_one_fiber_in),
		cmocka_unit_test(a_broadcast_wakes_all_fibers),
		cmocka_unit_test(some_waits_on_a_condition_variable_are_spurious),
		cmocka_unit_test(f20_no_token_is_lost_between_fibers),
		cmocka_unit_test(a_parker_of_a_world_holds_one_token),
		cmocka_unit_test(a_token_that_meets_its_time_out_is_kept),
		cmocka_unit_test(self_and_local_belong_to_the_fiber),
		cmocka_unit_test(s11_held_mutexes_are_counted_per_fiber),
		cmocka_unit_test(fibers_rest_between_calls),
		cmocka_unit_test(the_driving_thread_may_lock_broadcast_and_join),
		cmocka_unit_test(a_broadcast_of_the_driving_thread_reaches_fibers),
		cmocka_unit_test(a_fiber_of_the_world_simply_calls),
		cmocka_unit_test(worlds_may_be_nested),
		cmocka_unit_test(another_thread_may_drive_the_next_call),
		cmocka_unit_test(the_same_seed_gives_the_same_order),
		cmocka_unit_test(different_seeds_give_different_orders),
		cmocka_unit_test(the_seed_draws_the_strategy),
		cmocka_unit_test(round_robin_goes_in_turn),
		cmocka_unit_test(fibers_pause_if_it_is_asked_for),
		cmocka_unit_test(schedule_choices_do_not_move_the_worlds_random_numbers),
		cmocka_unit_test(b05_two_worlds_in_two_threads_do_not_know_of_each_other),
		cmocka_unit_test(f23_a_stuck_world_names_its_fibers_and_what_each_waits_for),
		cmocka_unit_test(f29_a_world_that_never_ends_is_stopped_at_its_limit),
		cmocka_unit_test(a_world_with_unfinished_fibers_can_be_dropped),
		cmocka_unit_test(f40_any_allocation_of_a_world_may_fail),
		cmocka_unit_test(a_fiber_has_room_for_deep_calls),
		cmocka_unit_test(f49_a_stack_overflow_hits_the_guard_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

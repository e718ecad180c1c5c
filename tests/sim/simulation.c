/* Time, mutexes, conditions and parkers of a simulated world. */

#include "base/clock.h"
#include "rig.h"

/* ------------------------------------------------------------------------------------------------ time -- */

static void time_is_virtual_and_starts_at_one_second(void **state)
{
	struct notes *notes = rig_begin(1, WR_SIM_BY_SEED);

	(void)state;
	assert_int_equal(rig_call(notes, rig_sleep_an_hour), WEIR_OK);
	assert_int_equal(notes->at[0], SECOND);
	assert_int_equal(notes->at[1], 3601 * SECOND);
	assert_int_equal(wr_sim_now(notes->sim), 3601 * SECOND);
	rig_end(notes);
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
	rig_each_seed(start_sleepers, check_order);
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
	rig_each_seed(wait_in_vain, check_times);
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
	rig_each_seed(spin_for_the_flag, check_spun);
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
	rig_each_seed(yield_to_the_other, check_flag);
}

/* --------------------------------------------------------------------------------- mutexes, conditions -- */

static void check_alone(struct notes *notes)
{
	assert_int_equal(notes->most, 1);
	assert_int_equal(notes->count, 15);
}

static void a_mutex_lets_one_fiber_in(void **state)
{
	(void)state;
	rig_each_seed(rig_crowd, check_alone);
}

static void three_wait(void *arg)
{
	struct wr_thread threads[3];

	for (int i = 0; i < 3; i++)
		wr_thread_start(&threads[i], "waits", rig_wait_for_flag, arg);
	rig_raise_flag(arg);
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
	rig_each_seed(three_wait, check_three);
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
	for (uint64_t seed = 0; seed < RIG_SEEDS; seed++) {
		struct notes *notes = rig_begin(seed, WR_SIM_BY_SEED);

		assert_int_equal(rig_call(notes, wait_once), WEIR_OK);
		woken += notes->flag;
		rig_end(notes);
	}
	assert_in_range(woken, 1, RIG_SEEDS / 4);
}

/* --------------------------------------------------------------------------------------------- parkers -- */

static void check_answers(struct notes *notes)
{
	assert_int_equal(notes->count, 20);
	assert_int_equal(wr_sim_now(notes->sim), SECOND);
}

static void f20_no_token_is_lost_between_fibers(void **state)
{
	(void)state;
	rig_each_seed(rig_ask, check_answers);
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
	rig_each_seed(unpark_twice, check_one);
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
	rig_each_seed(park_until_the_token, check_one);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Fibers: what belongs to each, calls into worlds, worlds that are stuck or never end, stacks. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "rig.h"

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
	rig_each_seed(note_two_identities, check_identities);
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
	struct notes *notes = rig_begin(1, WR_SIM_ROUND_ROBIN);
	struct wr_mutex mutex = {.owner = NULL};

	(void)state;
	wr_mutex_lock(&mutex); /* the mutex of the driving thread, not of a fiber */
	assert_int_equal(rig_call(notes, hold_and_yield), WEIR_OK);
	assert_int_equal(notes->inside, 0);
	assert_int_equal(notes->most, wr_mutex_held());
	wr_mutex_unlock(&mutex);
	rig_end(notes);
}

static void start_and_leave(void *arg)
{
	struct notes *notes = arg;

	wr_thread_start(&notes->thread, "answers", rig_answer, notes);
}

static void join_it(void *arg)
{
	struct notes *notes = arg;

	wr_thread_join(&notes->thread);
}

static void fibers_rest_between_calls(void **state)
{
	struct notes *notes = rig_begin(5, WR_SIM_BY_SEED);

	(void)state;
	assert_int_equal(rig_call(notes, start_and_leave), WEIR_OK);
	for (int i = 0; i < 20; i++) {
		wr_unpark(&notes->parker); /* by the thread that drives the world */
		assert_int_equal(rig_call(notes, rig_sleep_an_hour), WEIR_OK); /* lets the other fiber run */
		assert_int_equal(notes->back.word, 1);
		notes->back.word = 0;
	}
	assert_int_equal(rig_call(notes, join_it), WEIR_OK);
	assert_false(notes->thread.started);
	rig_end(notes);
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
	struct notes *notes = rig_begin(5, WR_SIM_BY_SEED);

	(void)state;
	assert_int_equal(rig_call(notes, let_it_hold), WEIR_OK);
	assert_int_equal(notes->inside, 1);
	wr_mutex_lock(&notes->mutex); /* the fiber must run first */
	assert_int_equal(notes->inside, 0);
	wr_mutex_unlock(&notes->mutex);
	wr_cond_broadcast(&notes->cond);
	wr_thread_join(&notes->thread);
	assert_false(notes->thread.started);
	rig_end(notes);
}

static void start_waiters(void *arg)
{
	struct notes *notes = arg;

	wr_thread_start(&notes->thread, "waits", rig_wait_for_flag, notes);
	wr_thread_sleep(1);
}

static void a_broadcast_of_the_driving_thread_reaches_fibers(void **state)
{
	struct notes *notes = rig_begin(5, WR_SIM_BY_SEED);

	(void)state;
	assert_int_equal(rig_call(notes, start_waiters), WEIR_OK);
	rig_raise_flag(notes);
	wr_thread_join(&notes->thread);
	assert_int_equal(notes->count, 1);
	rig_end(notes);
}

static void call_again(void *arg)
{
	struct notes *notes = arg;
	uintptr_t self = wr_thread_self();

	if (notes->count++ == 0)
		notes->wrong |= rig_call(notes, call_again) != WEIR_OK;
	else
		notes->at[0] = (int64_t)self;
	notes->at[1] = (int64_t)self;
}

static void a_fiber_of_the_world_simply_calls(void **state)
{
	struct notes *notes = rig_begin(5, WR_SIM_BY_SEED);

	(void)state;
	assert_int_equal(rig_call(notes, call_again), WEIR_OK);
	assert_false(notes->wrong);
	assert_int_equal(notes->count, 2);
	assert_true(notes->at[0] == notes->at[1]);
	rig_end(notes);
}

static void drive_another_world(void *arg)
{
	struct notes *outer = arg, *inner = rig_begin(9, WR_SIM_BY_SEED);
	int64_t before = wr_now();

	outer->wrong |=
		rig_call(inner, rig_sleep_an_hour) != WEIR_OK || wr_sim_now(inner->sim) != 3601 * SECOND;
	rig_end(inner);
	outer->wrong |= wr_now() != before || wr_sim_current() != outer->sim;
}

static void worlds_may_be_nested(void **state)
{
	struct notes *notes = rig_begin(5, WR_SIM_BY_SEED);

	(void)state;
	assert_int_equal(rig_call(notes, drive_another_world), WEIR_OK);
	assert_false(notes->wrong);
	assert_null(wr_sim_current());
	rig_end(notes);
}

/* A fiber's stack is still used after another thread drives the world. */
static void call_ask(void *arg)
{
	struct notes *notes = arg;

	notes->wrong = rig_call(notes, rig_ask) != WEIR_OK;
	notes->hash = wr_sim_hash(notes->sim);
}

static void another_thread_may_drive_the_next_call(void **state)
{
	struct notes *notes = rig_begin(5, WR_SIM_BY_SEED);
	struct wr_thread thread;

	(void)state;
	assert_int_equal(rig_call(notes, let_it_hold), WEIR_OK);
	assert_int_equal(wr_thread_start(&thread, "drives", call_ask, notes), WEIR_OK);
	wr_thread_join(&thread);
	assert_false(notes->wrong);
	assert_int_equal(notes->count, 20);
	rig_end(notes);
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
	for (uint64_t seed = 0; seed < RIG_SEEDS; seed++) {
		struct notes *notes = rig_begin(seed, WR_SIM_BY_SEED);

		assert_int_equal(rig_call(notes, get_stuck), WEIR_E_DEADLOCK);
		for (size_t i = 0; i < COUNT(parts); i++)
			assert_non_null(strstr(weir_last_error(), parts[i]));
		assert_int_equal(rig_call(notes, rig_sleep_an_hour), WEIR_E_DEADLOCK); /* it stays broken */
		assert_int_equal(notes->at[0], 0);
		notes->mutex.owner = NULL;
		rig_end(notes);
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
	struct notes *notes = rig_begin(1, WR_SIM_BY_SEED);
	uint64_t before;

	(void)state;
	wr_sim_set_limit(notes->sim, 200);
	assert_int_equal(rig_call(notes, rig_crowd), WEIR_OK);
	before = wr_sim_switches(notes->sim); /* these do not count for the next call */
	assert_in_range(before, 30, 200);
	assert_int_equal(rig_call(notes, yield_for_ever), WEIR_E_TIMEOUT);
	assert_non_null(strstr(weir_last_error(), "main still runs after 200 switching points"));
	assert_int_equal(wr_sim_switches(notes->sim), before + 201);
	rig_end(notes);
}

static void a_world_with_unfinished_fibers_can_be_dropped(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < RIG_SEEDS; seed++) {
		struct notes *notes = rig_begin(seed, WR_SIM_BY_SEED);

		assert_int_equal(rig_call(notes, let_it_hold), WEIR_OK);
		assert_int_equal(rig_call(notes, start_and_leave), WEIR_OK);
		notes->mutex.owner = NULL;
		rig_end(notes);
	}
	wr_sim_destroy(NULL);
}

static void start_many(void *arg)
{
	struct notes *notes = arg;

	for (int i = 0; i < 3; i++) {
		struct wr_thread thread;
		weir_status status = wr_thread_start(&thread, "counts", rig_go_in, notes);

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
		status = rig_call(&notes, start_many);
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
	struct notes *notes = rig_begin(1, WR_SIM_BY_SEED);

	(void)state;
	assert_int_equal(rig_call(notes, use_200_kib), WEIR_OK);
	assert_int_equal(notes->count, 41);
	rig_end(notes);
}

static bool is_blocked(int number)
{
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	return sigismember(&mask, number);
}

static void see_it_blocked_later(void *arg)
{
	struct notes *notes = arg;

	notes->wrong = is_blocked(SIGUSR2);
	while (!notes->flag)
		wr_thread_yield();
	notes->wrong |= !is_blocked(SIGUSR2);
	notes->count++;
}

static void block_beside_another(void *arg)
{
	struct notes *notes = arg;
	sigset_t set;

	wr_thread_start(&notes->thread, "other", see_it_blocked_later, notes);
	wr_thread_yield();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	notes->flag = true;
	wr_thread_join(&notes->thread);
}

static void the_signal_mask_belongs_to_the_thread(void **state)
{
	struct notes *notes = rig_begin(1, WR_SIM_ROUND_ROBIN);
	sigset_t set;

	(void)state;
	assert_int_equal(rig_call(notes, block_beside_another), WEIR_OK);
	assert_int_equal(notes->count, 1);
	assert_false(notes->wrong);
	assert_true(is_blocked(SIGUSR2));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	rig_end(notes);
}

/* What the ABI lets a function preserve for its caller: more values than the registers for it. */
static double add_up_beside_others(int n)
{
	double a = n, b = 2 * n, c = 3 * n, d = 4 * n, e = 5 * n, f = 6 * n, g = 7 * n, h = 8 * n;
	uint64_t i = 1, j = 2, k = 3, l = 4, m = 5, o = 6, p = 7, q = 8, r = 9, s = 10;

	for (int turn = 0; turn < 10; turn++) {
		wr_thread_yield();
		a += 1, b += a, c += b, d += c, e += d, f += e, g += f, h += g;
		i += (uint64_t)n, j += i, k += j, l += k, m += l, o += m, p += o, q += p, r += q, s += r;
	}
	return a + b + c + d + e + f + g + h + (double)((i ^ j ^ k ^ l ^ m ^ o ^ p ^ q ^ r ^ s) % 1000000);
}

static void use_many_registers(void *arg)
{
	struct notes *notes = arg;
	double sum = add_up_beside_others(notes->count++);

	notes->hash += (uint64_t)sum;
}

static void three_use_many_registers(void *arg)
{
	struct wr_thread threads[3];

	for (int i = 0; i < 3; i++)
		wr_thread_start(&threads[i], "adds", use_many_registers, arg);
	for (int i = 0; i < 3; i++)
		wr_thread_join(&threads[i]);
}

static void registers_survive_a_switch(void **state)
{
	struct notes *notes = rig_begin(1, WR_SIM_ROUND_ROBIN);
	uint64_t alone = 0;

	(void)state;
	for (int n = 0; n < 3; n++)
		alone += (uint64_t)add_up_beside_others(n);
	assert_int_equal(rig_call(notes, three_use_many_registers), WEIR_OK);
	assert_int_equal(notes->hash, alone);
	rig_end(notes);
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
		cmocka_unit_test(self_and_local_belong_to_the_fiber),
		cmocka_unit_test(s11_held_mutexes_are_counted_per_fiber),
		cmocka_unit_test(fibers_rest_between_calls),
		cmocka_unit_test(the_driving_thread_may_lock_broadcast_and_join),
		cmocka_unit_test(a_broadcast_of_the_driving_thread_reaches_fibers),
		cmocka_unit_test(a_fiber_of_the_world_simply_calls),
		cmocka_unit_test(worlds_may_be_nested),
		cmocka_unit_test(another_thread_may_drive_the_next_call),
		cmocka_unit_test(f23_a_stuck_world_names_its_fibers_and_what_each_waits_for),
		cmocka_unit_test(f29_a_world_that_never_ends_is_stopped_at_its_limit),
		cmocka_unit_test(a_world_with_unfinished_fibers_can_be_dropped),
		cmocka_unit_test(f40_any_allocation_of_a_world_may_fail),
		cmocka_unit_test(a_fiber_has_room_for_deep_calls),
		cmocka_unit_test(the_signal_mask_belongs_to_the_thread),
		cmocka_unit_test(registers_survive_a_switch),
		cmocka_unit_test(f49_a_stack_overflow_hits_the_guard_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

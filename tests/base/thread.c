#include "base/thread.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "test.h"

#define MS 1000000

/* --------------------------------------------------------------------------------------- start and end -- */

struct birth {
	sigset_t mask;
	char name[64];
	uintptr_t self;
	void *local;
};

static void look_around(void *arg)
{
	struct birth *seen = arg;

	pthread_sigmask(SIG_SETMASK, NULL, &seen->mask);
	pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
	seen->self = wr_thread_self();
	seen->local = wr_thread_local();
	wr_thread_set_local(seen);
}

static struct birth born(const char *name)
{
	struct birth seen = {.local = &seen};
	struct wr_thread thread;

	assert_int_equal(wr_thread_start(&thread, name, look_around, &seen), WEIR_OK);
	wr_thread_join(&thread);
	return seen;
}

static bool is_fault(int number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
	       number == SIGTRAP || number == SIGSYS;
}

static void b04_threads_start_with_all_posix_signals_blocked_but_their_own_faults(void **state)
{
	struct birth seen = born("worker");
	sigset_t own;

	(void)state;
	for (int number = 1; number < 32; number++)
		if (number != SIGKILL && number != SIGSTOP)
			assert_int_equal(sigismember(&seen.mask, number), !is_fault(number));
	pthread_sigmask(SIG_SETMASK, NULL, &own);
	assert_false(sigismember(&own, SIGINT)); /* the mask of the starting thread is unchanged */
}

static void a_thread_has_its_name_cut_to_15_bytes(void **state)
{
	(void)state;
	assert_string_equal(born("weir.worker").name, "weir.worker");
	assert_string_equal(born("weir.a-long-name-of-it").name, "weir.a-long-nam");
}

static void self_and_local_belong_to_the_thread(void **state)
{
	int mine;
	struct birth seen;

	(void)state;
	wr_thread_set_local(&mine);
	seen = born("other");
	assert_null(seen.local);
	assert_ptr_equal(wr_thread_local(), &mine);
	assert_true(seen.self != 0 && wr_thread_self() != 0);
	assert_true(wr_thread_self() == wr_thread_self());
	assert_true(seen.self != wr_thread_self());
	wr_thread_set_local(NULL);
}

/* RLIMIT_NPROC has no effect for root and RLIMIT_AS breaks sanitizers, so the stack is
 * larger than any address space. */
static void f41_a_thread_that_cannot_start_is_a_status(void **state)
{
	pthread_attr_t usual, huge;
	struct wr_thread thread;
	struct birth seen;
	weir_status status;

	(void)state;
	pthread_getattr_default_np(&usual);
	pthread_getattr_default_np(&huge);
	pthread_attr_setstacksize(&huge, (size_t)1 << 48);
	pthread_setattr_default_np(&huge);
	status = wr_thread_start(&thread, "worker 3", look_around, &seen);
	pthread_setattr_default_np(&usual);
	assert_int_equal(status, WEIR_E_NOMEM);
	assert_non_null(strstr(weir_last_error(), "thread 'worker 3' cannot be started: "));
	assert_false(thread.started);
	wr_thread_join(&thread); /* returns at once */
}

static void f40_a_thread_without_memory_is_a_status(void **state)
{
	struct wr_thread thread;
	struct birth seen;
	weir_status status;

	(void)state;
	wr_memory_fail_at(0, false);
	status = wr_thread_start(&thread, "worker", look_around, &seen);
	wr_memory_fail_at(-1, false);
	assert_int_equal(status, WEIR_E_NOMEM);
	assert_false(thread.started);
}

/* --------------------------------------------------------------------------------------------- mutexes -- */

enum { ROUNDS = 20000 };

struct shared {
	struct wr_mutex mutex;
	struct wr_cond cond;
	struct wr_parker here, there;
	int count; /* guarded by mutex */
	bool global;
};

static void add_up(void *arg)
{
	struct shared *shared = arg;

	for (int i = 0; i < ROUNDS; i++) {
		shared->global ? wr_global_lock() : wr_mutex_lock(&shared->mutex);
		shared->count++;
		shared->global ? wr_global_unlock() : wr_mutex_unlock(&shared->mutex);
	}
}

static void two_threads_add_up(struct shared *shared)
{
	struct wr_thread threads[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(wr_thread_start(&threads[i], "adds", add_up, shared), WEIR_OK);
	for (int i = 0; i < 2; i++)
		wr_thread_join(&threads[i]);
	assert_int_equal(shared->count, 2 * ROUNDS);
}

static void a_mutex_lets_one_in(void **state)
{
	struct shared shared = {.global = false};

	(void)state;
	assert_int_equal(wr_mutex_init(&shared.mutex), WEIR_OK);
	two_threads_add_up(&shared);
	wr_mutex_finish(&shared.mutex);
}

static void the_global_lock_lets_one_in(void **state)
{
	struct shared shared = {.global = true};

	(void)state;
	two_threads_add_up(&shared);
}

static void s11_held_mutexes_are_counted_in_debug_builds(void **state)
{
#ifdef NDEBUG
	const int one = 0;
#else
	const int one = 1;
#endif
	struct wr_mutex zeroed = {.owner = NULL}, mutex;

	(void)state;
	assert_int_equal(wr_mutex_init(&mutex), WEIR_OK);
	wr_mutex_lock(&mutex);
	assert_int_equal(wr_mutex_held(), one);
	wr_mutex_unlock(&mutex);
	assert_int_equal(wr_mutex_held(), 0);
	wr_mutex_finish(&mutex);
	wr_mutex_finish(&zeroed);
}

/* --------------------------------------------------------------------------------- condition variables -- */

static void open_shared(struct shared *shared)
{
	*shared = (struct shared){.count = 0};
	assert_int_equal(wr_mutex_init(&shared->mutex), WEIR_OK);
	assert_int_equal(wr_cond_init(&shared->cond), WEIR_OK);
}

static void close_shared(struct shared *shared)
{
	wr_cond_finish(&shared->cond);
	wr_mutex_finish(&shared->mutex);
}

static void f35_a_condition_variable_waits_on_the_monotonic_clock(void **state)
{
	struct shared shared;
	int64_t until = wr_now() + 2 * MS;

	(void)state;
	open_shared(&shared);
	wr_mutex_lock(&shared.mutex);
	assert_false(wr_cond_wait(&shared.cond, &shared.mutex, -5)); /* in the past */
	while (wr_cond_wait(&shared.cond, &shared.mutex, until))
		;
	assert_true(wr_now() >= until);
	wr_mutex_unlock(&shared.mutex);
	close_shared(&shared);
}

static void wait_and_count(void *arg)
{
	struct shared *shared = arg;

	wr_mutex_lock(&shared->mutex);
	shared->count++;
	wr_cond_broadcast(&shared->cond);
	while (shared->count < 100)
		wr_cond_wait(&shared->cond, &shared->mutex, WR_FOREVER);
	wr_mutex_unlock(&shared->mutex);
}

static void a_broadcast_wakes_all(void **state)
{
	struct wr_thread threads[3];
	struct shared shared;

	(void)state;
	open_shared(&shared);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wr_thread_start(&threads[i], "waits", wait_and_count, &shared), WEIR_OK);
	wr_mutex_lock(&shared.mutex);
	while (shared.count < 3)
		wr_cond_wait(&shared.cond, &shared.mutex, WR_FOREVER);
	shared.count = 100;
	wr_cond_broadcast(&shared.cond);
	wr_mutex_unlock(&shared.mutex);
	for (int i = 0; i < 3; i++)
		wr_thread_join(&threads[i]);
	close_shared(&shared);
}

/* --------------------------------------------------------------------------------------------- parkers -- */

static void a_parker_holds_one_token(void **state)
{
	struct wr_parker parker = {0};

	(void)state;
	wr_unpark(&parker);
	wr_unpark(&parker);
	assert_true(wr_park(&parker, WR_FOREVER));
	assert_false(wr_park(&parker, 0));
	wr_unpark(&parker);
	assert_true(wr_park(&parker, 0)); /* a token counts even when it is late */
}

static void parking_ends_when_the_time_has_passed(void **state)
{
	struct wr_parker parker = {0};
	int64_t until = wr_now() + 2 * MS;

	(void)state;
	assert_false(wr_park(&parker, until));
	assert_true(wr_now() >= until);
	assert_int_equal(parker.word, 0);
}

static void answer(void *arg)
{
	struct shared *shared = arg;

	for (int i = 0; i < ROUNDS; i++) {
		wr_park(&shared->here, WR_FOREVER);
		wr_unpark(&shared->there);
	}
}

/* A lost token makes both wait for ever. */
static void f20_no_token_is_lost_between_threads(void **state)
{
	struct shared shared = {.count = 0};
	struct wr_thread thread;

	(void)state;
	assert_int_equal(wr_thread_start(&thread, "answers", answer, &shared), WEIR_OK);
	for (int i = 0; i < ROUNDS; i++) {
		wr_unpark(&shared.here);
		assert_true(wr_park(&shared.there, wr_now() + 20000 * (int64_t)MS));
	}
	wr_thread_join(&thread);
}

struct interrupted {
	struct wr_parker parker, awake;
	_Atomic bool done;
	bool token;
	int64_t slept;
};

static _Atomic int interruptions;

static void interrupt(int number)
{
	(void)number;
	interruptions++;
}

static void wait_interrupted(void *arg)
{
	struct interrupted *it = arg;
	int64_t begin = wr_now();
	sigset_t usr1;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
	wr_unpark(&it->awake);
	wr_thread_sleep(3 * MS);
	it->slept = wr_now() - begin;
	it->token = wr_park(&it->parker, WR_FOREVER);
	wr_store(&it->done, true);
}

static void f44_an_interrupted_wait_goes_on(void **state)
{
	struct sigaction action = {.sa_handler = interrupt}, before;
	struct interrupted it = {.token = false};
	struct wr_thread thread;

	(void)state;
	sigaction(SIGUSR1, &action, &before);
	assert_int_equal(wr_thread_start(&thread, "interrupted", wait_interrupted, &it), WEIR_OK);
	wr_park(&it.awake, WR_FOREVER);
	for (int64_t until = wr_now() + 10 * MS; wr_now() < until || !wr_load(&interruptions);
	     wr_thread_sleep(MS / 10))
		pthread_kill(thread.handle, SIGUSR1);
	assert_false(wr_load(&it.done));
	wr_unpark(&it.parker);
	wr_thread_join(&thread);
	assert_true(it.token);
	assert_true(it.slept >= 3 * MS);
	sigaction(SIGUSR1, &before, NULL);
}

static struct wr_parker from_handler;

static void unpark_in_handler(int number)
{
	(void)number;
	wr_unpark(&from_handler);
}

static void a_posix_signal_handler_may_unpark(void **state)
{
	struct sigaction action = {.sa_handler = unpark_in_handler}, before;

	(void)state;
	sigaction(SIGUSR2, &action, &before);
	raise(SIGUSR2);
	assert_true(wr_park(&from_handler, 0));
	sigaction(SIGUSR2, &before, NULL);
}

static void f37_sleeping_for_nothing_or_less_returns(void **state)
{
	(void)state;
	wr_thread_sleep(0);
	wr_thread_sleep(INT64_MIN);
	weir_sleep(-1);
	wr_thread_yield();
	assert_int_equal(wr_mutex_held(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(b04_threads_start_with_all_posix_signals_blocked_but_their_own_faults),
		cmocka_unit_test(a_thread_has_its_name_cut_to_15_bytes),
		cmocka_unit_test(self_and_local_belong_to_the_thread),
		cmocka_unit_test(f41_a_thread_that_cannot_start_is_a_status),
		cmocka_unit_test(f40_a_thread_without_memory_is_a_status),
		cmocka_unit_test(a_mutex_lets_one_in),
		cmocka_unit_test(the_global_lock_lets_one_in),
		cmocka_unit_test(s11_held_mutexes_are_counted_in_debug_builds),
		cmocka_unit_test(f35_a_condition_variable_waits_on_the_monotonic_clock),
		cmocka_unit_test(a_broadcast_wakes_all),
		cmocka_unit_test(a_parker_holds_one_token),
		cmocka_unit_test(parking_ends_when_the_time_has_passed),
		cmocka_unit_test(f20_no_token_is_lost_between_threads),
		cmocka_unit_test(f44_an_interrupted_wait_goes_on),
		cmocka_unit_test(a_posix_signal_handler_may_unpark),
		cmocka_unit_test(f37_sleeping_for_nothing_or_less_returns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

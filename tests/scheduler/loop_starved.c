/*
 * A program whose descriptors, system calls or libevent's memory run out goes on: each life of a scheduler
 * ends well or fails in words, leaves no descriptor behind, and a later one with everything there ends well.
 * Had the library ended the process, this program would not end by itself.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/thread.h"
#include "rig_inside.h"

enum { LIMIT = 80, SPARE_MOST = 12 };

static struct event_base *base; /* the program's */

/* --- one life of a scheduler --- */

enum way { OWN_THREAD, POSIX_SIGNALS, OWN_LOOP, EVENT_BASE, WAYS };

static weir_status live_once(enum way way)
{
	struct rig *rig = rig_of("source ticks=20 work=1us -> p:pass -> end gate=in");
	weir_status status;

	rig->options.backend = "host";
	rig->options.handle_signals = way == POSIX_SIGNALS;
	rig->options.own_loop = way == OWN_LOOP;
	rig->options.event_base = way == EVENT_BASE ? base : NULL;
	status = weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler);
	if (!status) {
		rig_here(rig);
		status = weir_scheduler_run(rig->scheduler);
	}
	assert_true(!status || *weir_last_error());
	if (!status)
		assert_int_equal(rig_ticks(rig, "end"), 20);
	assert_int_equal(wr_load(&rig->started), wr_load(&rig->stopped));
	rig_destroy(rig);
	return status;
}

/* --- descriptors --- */

static size_t count_open(void)
{
	size_t count = 0;

	for (int fd = 0; fd < LIMIT; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Takes all free descriptors of the process. */
static size_t take_all(int taken[LIMIT])
{
	size_t count = 0;

	while (count < LIMIT && (taken[count] = fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0)
		count++;
	return count;
}

static void close_some(int *taken, size_t count)
{
	while (count)
		close(taken[--count]);
}

static weir_status live_with(enum way way, size_t spare)
{
	int taken[LIMIT];
	size_t count = take_all(taken), closed = spare < count ? spare : count;
	weir_status status;

	close_some(taken + count - closed, closed);
	status = live_once(way);
	if (status) {
		assert_int_equal(status, WEIR_E_IO);
		assert_says(weir_last_error(), "raise the limit of descriptors");
	}
	close_some(taken, count - closed);
	return status;
}

static void f42_a_program_without_descriptors_goes_on(void **state)
{
	size_t open = count_open();

	(void)state;
	for (enum way way = OWN_THREAD; way < WAYS; way++) {
		size_t least = 0;

		while (live_with(way, least) && least < SPARE_MOST)
			least++;
		assert_in_range(least, 3, 4); /* the set, the eventfd, the timerfd, the signalfd */
		for (size_t spare = least; spare <= SPARE_MOST; spare++)
			assert_int_equal(live_with(way, spare), WEIR_OK);
		assert_int_equal(count_open(), open);
	}
}

static _Atomic bool takes;

static void take_for_ever(void *unused)
{
	int taken[LIMIT];

	(void)unused;
	for (unsigned round = 0; wr_load(&takes); round++) {
		size_t count = take_all(taken);
		for (unsigned i = 0; i < round * 7919 % 64; i++)
			sched_yield();
		close_some(taken, count);
		for (unsigned i = 0; i < round * 6271 % 64; i++)
			sched_yield();
	}
}

static void f42_another_thread_may_take_the_descriptors_meanwhile(void **state)
{
	size_t open = count_open(), well = 0;
	struct wr_thread taker;

	(void)state;
	wr_store(&takes, true);
	assert_int_equal(wr_thread_start(&taker, "taker", take_for_ever, NULL), WEIR_OK);
	for (unsigned i = 0; i < 400; i++) {
		weir_status status = live_once(i % WAYS);

		assert_true(!status || status == WEIR_E_IO);
		well += !status;
	}
	wr_store(&takes, false);
	wr_thread_join(&taker);
	print_message("%zu of 400 ran\n", well);
	assert_int_equal(live_once(OWN_THREAD), WEIR_OK);
	assert_int_equal(count_open(), open);
}

/* poll refuses even one descriptor then. */
static void f42_a_limit_of_no_descriptors_in_a_run_does_not_end_it(void **state)
{
	struct rig *rig = rig_of("source period=1ms count=20 -> end");
	struct rlimit limit;

	(void)state;
	rig->options.backend = "host";
	rig_start(rig);
	getrlimit(RLIMIT_NOFILE, &limit);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, limit.rlim_max});
	assert_int_equal(rig_wait(rig), WEIR_OK);
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(rig_ticks(rig, "end"), 20);
	rig_destroy(rig);
}

/* --- system calls --- */

static _Atomic int calls_left = -1; /* until the one that fails; negative: none does */

static bool call_fails(void)
{
	return wr_load(&calls_left) >= 0 && wr_fetch_sub(&calls_left, 1) == 0;
}

/* Defines __wrap_NAME, which fails as the system call does, when it is its turn. */
#define WRAP(name, error, parameters, ...)                                                                   \
	int __real_##name parameters;                                                                        \
	int __wrap_##name parameters;                                                                        \
	int __wrap_##name parameters                                                                         \
	{                                                                                                    \
		if (call_fails())                                                                            \
			return errno = EMFILE, error;                                                        \
		return __real_##name(__VA_ARGS__);                                                           \
	}
WRAP(epoll_create1, -1, (int flags), flags)
WRAP(epoll_ctl, -1, (int set, int what, int fd, struct epoll_event *event), set, what, fd, event)
WRAP(eventfd, -1, (unsigned value, int flags), value, flags)
WRAP(signalfd, -1, (int fd, const sigset_t *mask, int flags), fd, mask, flags)
WRAP(timerfd_create, -1, (int clock, int flags), clock, flags)
WRAP(pthread_create, EAGAIN,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *arg), thread,
     attributes, fn, arg)

static void f41_f42_any_system_call_of_a_start_may_fail(void **state)
{
	size_t open = count_open();

	(void)state;
	for (enum way way = OWN_THREAD; way < WAYS; way++) {
		int n = 0;
		bool failed = true;

		for (; failed && n < 100; n++) {
			wr_store(&calls_left, n);
			(void)live_once(way); /* some do without: fewer threads, no POSIX signals */
			failed = wr_exchange(&calls_left, -1) < 0;
		}
		assert_in_range(n, 8, 99);
		assert_int_equal(live_once(way), WEIR_OK);
		assert_int_equal(count_open(), open);
	}
}

/* --- libevent's memory --- */

static _Atomic int allocations_left = -1;

static bool allocation_fails(void)
{
	return wr_load(&allocations_left) >= 0 && wr_fetch_sub(&allocations_left, 1) == 0;
}

static void *event_malloc(size_t bytes)
{
	return allocation_fails() ? NULL : malloc(bytes);
}

static void *event_realloc(void *memory, size_t bytes)
{
	return allocation_fails() ? NULL : realloc(memory, bytes);
}

static void make_base(void)
{
	base = event_base_new();
	assert_non_null(base);
}

static void f40_b01_a_base_of_the_program_may_have_no_memory(void **state)
{
	bool failed = true;
	int n = 0;

	(void)state;
	for (; failed && n < 100; n++) {
		event_base_free(base);
		make_base(); /* its tables are empty again */
		wr_store(&allocations_left, n);
		weir_status status = live_once(EVENT_BASE);
		failed = wr_exchange(&allocations_left, -1) < 0;
		assert_true(!failed == !status);
	}
	assert_in_range(n, 2, 99);
}

int main(void)
{
	struct rlimit all;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f42_a_program_without_descriptors_goes_on),
		cmocka_unit_test(f42_another_thread_may_take_the_descriptors_meanwhile),
		cmocka_unit_test(f42_a_limit_of_no_descriptors_in_a_run_does_not_end_it),
		cmocka_unit_test(f41_f42_any_system_call_of_a_start_may_fail),
		cmocka_unit_test(f40_b01_a_base_of_the_program_may_have_no_memory),
	};

	event_set_mem_functions(event_malloc, event_realloc, free); /* the program may, the library not */
	getrlimit(RLIMIT_NOFILE, &all);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){LIMIT, all.rlim_max});
	make_base();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	event_base_free(base);
	return failed;
}

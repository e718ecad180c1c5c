/*
 * Descriptors that entities wait for (C9): pipes, files and sockets. `z` reads one byte a tick.
 */
#include <dirent.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"
#include "sim/coroutine.h"
#include "tests/calls.h"

#define TEST(name) static void name(void **state_)

static int ends[2]; /* of the pipe: z reads from the first, the test writes to the second */

static weir_status watch(weir_entity *entity, int fd, unsigned events)
{
	return weir_entity_watch(entity, "file_descriptor", fd, events);
}

static weir_status watch_pipe(struct rig *rig, weir_context *context)
{
	(void)rig;
	return watch(weir_context_entity(context), ends[0], WEIR_WATCH_READ);
}

/* Notes the byte; ends with the file. */
static weir_status read_byte(struct rig *rig, weir_context *context)
{
	char word[2] = "";
	ssize_t count = read(ends[0], word, 1);

	HOLDS(rig, count >= 0);
	if (count == 1)
		rig_note(rig, context, word);
	return count ? WEIR_OK : weir_context_finish(context);
}

static struct rig *rig_reading(const char *text)
{
	struct rig *rig = rig_of(text);

	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	rig_on(rig, "z", read_byte);
	rig_entity(rig, "z")->start = watch_pipe;
	return rig;
}

static void put_byte(char byte)
{
	assert_int_equal(write(ends[1], &byte, 1), 1);
}

static void close_writer(void)
{
	close(ends[1]);
	ends[1] = -1;
}

static void destroy_reading(struct rig *rig)
{
	rig_destroy(rig);
	close(ends[0]);
	if (ends[1] >= 0)
		close(ends[1]);
}

static void wait_for_ticks(struct rig *rig, uint64_t ticks)
{
	for (int i = 0; i < 20000 && rig_ticks(rig, "z") < ticks; i++)
		(void)weir_scheduler_wait(rig->scheduler, MS, NULL);
	assert_int_equal(rig_ticks(rig, "z"), ticks);
}

/* Until a review found the descriptor of z not ready: a worker may be late. */
static void wait_until_watched(struct rig *rig)
{
	for (int i = 0; i < 20000 && !strstr(rig_explain(rig), "has waited"); i++)
		assert_int_equal(weir_scheduler_wait(rig->scheduler, MS, NULL), WEIR_E_TIMEOUT);
	assert_says(rig_explain(rig), "z: file_descriptor: WAIT_EVENT (has waited ");
}

/* --- waking --- */

static void one_tick_for_each_byte(void)
{
	struct rig *rig = rig_reading("z:call condition=file_descriptor");

	rig_start(rig);
	for (uint64_t i = 1; i <= 5; i++) {
		put_byte((char)('a' + i));
		wait_for_ticks(rig, i);
	}
	close_writer(); /* its end counts as readable */
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "z"), "b c d e f");
	destroy_reading(rig);
}

TEST(c09_each_readiness_wakes_and_no_run_ends_meanwhile)
{
	(void)state_;
	rig_in_worlds(20, one_tick_for_each_byte);
	rig_on_host(one_tick_for_each_byte);
}

/* Data, its end, and a stop come at any moment of z's reviews. */
static void *write_many(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		while (write(ends[1], "x", 1) != 1)
			sched_yield();
		if (i % 50 == 0)
			sched_yield();
	}
	close_writer();
	return arg;
}

static void read_beside_a_writer(void)
{
	struct rig *rig = rig_reading("z:call condition=file_descriptor");
	pthread_t thread;

	rig_start(rig);
	assert_int_equal(pthread_create(&thread, NULL, write_many, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 2001);
	destroy_reading(rig);
}

TEST(c09_no_byte_of_a_thread_outside_is_overlooked)
{
	(void)state_;
	rig_on_host(read_beside_a_writer);
}

/* --- what else it waits for --- */

static int64_t processor_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * SECOND + used.tv_nsec;
}

static void wait_cheaply(struct rig *rig)
{
	int64_t before = processor_ns();

	assert_int_equal(weir_scheduler_wait(rig->scheduler, 200 * MS, NULL), WEIR_E_TIMEOUT);
	assert_in_range(processor_ns() - before, 0, 60 * MS);
}

static void stay_ready(void)
{
	struct rig *rig = rig_reading("z:call condition=file_descriptor enabled=false");

	rig->options.deadlock_grace_ns = INT64_MAX;
	rig_start(rig);
	put_byte('a'); /* ready, and nothing reads it */
	wait_cheaply(rig);
	rig_tell(rig, "z", WEIR_TOLD_READY);
	wait_for_ticks(rig, 1);
	wait_cheaply(rig); /* nothing to say */
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	destroy_reading(rig);
}

TEST(c09_neither_a_ready_descriptor_nor_a_silent_one_costs_time)
{
	(void)state_;
	rig_on_host(stay_ready);
}

static int file;

static weir_status watch_file(struct rig *rig, weir_context *context)
{
	(void)rig;
	return watch(weir_context_entity(context), file, WEIR_WATCH_READ | WEIR_WATCH_WRITE);
}

static weir_status do_nothing(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	return WEIR_OK;
}

static void read_a_file(void)
{
	struct rig *rig = rig_of("z:call condition=file_descriptor count=3");

	rig_on(rig, "z", do_nothing);
	rig_entity(rig, "z")->start = watch_file;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 3);
	rig_destroy(rig);
}

TEST(c09_a_regular_file_is_always_ready)
{
	char name[] = "/tmp/weir-descriptors-XXXXXX";

	(void)state_;
	file = mkstemp(name);
	assert_true(file >= 0);
	unlink(name);
	rig_in_world(1, read_a_file);
	rig_on_host(read_a_file);
	close(file);
}

/* --- one descriptor, two entities --- */

static int pair[2];

static weir_status watch_to_read(struct rig *rig, weir_context *context)
{
	(void)rig;
	return watch(weir_context_entity(context), pair[0], WEIR_WATCH_READ);
}

static weir_status watch_to_write(struct rig *rig, weir_context *context)
{
	(void)rig;
	return watch(weir_context_entity(context), pair[0], WEIR_WATCH_WRITE);
}

static weir_status read_pair(struct rig *rig, weir_context *context)
{
	char byte;

	HOLDS(rig, read(pair[0], &byte, 1) == 1);
	return weir_context_finish(context);
}

static weir_status write_pair(struct rig *rig, weir_context *context)
{
	HOLDS(rig, write(pair[0], "w", 1) == 1);
	return weir_context_finish(context);
}

static size_t fill_pair(void)
{
	size_t filled = 0;
	ssize_t count;
	char bytes[4096] = "";

	while ((count = write(pair[0], bytes, sizeof bytes)) > 0)
		filled += (size_t)count;
	return filled;
}

static void drain_pair(size_t left)
{
	char bytes[4096];

	while (left) {
		ssize_t count = read(pair[1], bytes, left < sizeof bytes ? left : sizeof bytes);
		assert_true(count > 0);
		left -= (size_t)count;
	}
}

static void read_and_write(void)
{
	struct rig *rig = rig_of("z:call condition=file_descriptor; y:call condition=file_descriptor");
	size_t filled;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	filled = fill_pair();
	rig_on(rig, "z", read_pair);
	rig_on(rig, "y", write_pair);
	rig_entity(rig, "z")->start = watch_to_read;
	rig_entity(rig, "y")->start = watch_to_write;
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 20 * MS, NULL), WEIR_E_TIMEOUT);
	assert_int_equal(write(pair[1], "r", 1), 1);
	wait_for_ticks(rig, 1);
	assert_int_equal(rig_ticks(rig, "y"), 0);
	drain_pair(filled);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
	close(pair[0]);
	close(pair[1]);
}

static size_t open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static void watch_one_for_two(void)
{
	size_t before = open_descriptors();

	read_and_write();
	assert_int_equal(open_descriptors(), before);
}

TEST(c09_a_descriptor_that_two_conditions_watch_leaves_no_copy_open)
{
	(void)state_;
	rig_on_host(watch_one_for_two);
}

TEST(c09_two_conditions_wait_for_one_descriptor)
{
	(void)state_;
	rig_in_world(1, read_and_write);
	rig_on_host(read_and_write);
}

/* --- watching again --- */

static void another_pipe(void)
{
	struct rig *rig = rig_reading("z:call condition=file_descriptor");
	weir_entity *z = weir_graph_entity(rig->graph, "z");
	int old[2];

	memcpy(old, ends, sizeof old);
	rig_start(rig);
	wait_until_watched(rig);
	assert_int_equal(watch(z, -1, 0), WEIR_OK); /* from this thread, then from none */
	close(old[0]);
	close(old[1]);
	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0); /* the same numbers */
	put_byte('n');
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 10 * MS, NULL), WEIR_E_TIMEOUT);
	assert_int_equal(rig_ticks(rig, "z"), 0);
	assert_says(rig_explain(rig), "z: file_descriptor: WAIT_EVENT (no descriptor is watched)");
	assert_int_equal(watch(z, ends[0], WEIR_WATCH_READ), WEIR_OK);
	wait_for_ticks(rig, 1);
	assert_int_equal(weir_entity_tell(z, "file_descriptor", WEIR_TOLD_NEVER), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	destroy_reading(rig);
}

TEST(c09_another_descriptor_takes_the_place_of_the_first)
{
	(void)state_;
	rig_in_world(1, another_pipe);
	rig_on_host(another_pipe);
}

static _Atomic bool swaps;

static void *swap_pipes(void *entity)
{
	int other[2];

	assert_int_equal(pipe2(other, O_NONBLOCK | O_CLOEXEC), 0);
	while (wr_load(&swaps)) {
		(void)watch(entity, other[0], WEIR_WATCH_READ);
		(void)watch(entity, ends[0], WEIR_WATCH_READ);
	}
	close(other[0]);
	close(other[1]);
	return NULL;
}

static void swap_meanwhile(void)
{
	struct rig *rig = rig_reading("z:call condition=file_descriptor");
	pthread_t thread;

	wr_store(&swaps, true);
	rig_start(rig);
	assert_int_equal(pthread_create(&thread, NULL, swap_pipes, weir_graph_entity(rig->graph, "z")), 0);
	for (uint64_t i = 1; i <= 100; i++) {
		put_byte('s');
		wait_for_ticks(rig, i);
	}
	wr_store(&swaps, false);
	pthread_join(thread, NULL);
	close_writer();
	assert_int_equal(rig_wait(rig), WEIR_OK);
	destroy_reading(rig);
}

TEST(c09_another_thread_may_change_it_at_any_time)
{
	(void)state_;
	rig_on_host(swap_meanwhile);
}

/* --- the end of a run --- */

static void stop_a_silent_one(bool drain)
{
	struct rig *rig = rig_reading("z:call condition=file_descriptor -> end");

	rig_start(rig);
	wait_until_watched(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 10 * MS, NULL), WEIR_E_TIMEOUT); /* S4 */
	assert_says(rig_explain(rig), "(readable))");
	weir_scheduler_stop(rig->scheduler, drain ? WEIR_STOP_DRAIN : 0);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_true(rig->outcome.duration_ns < 4 * SECOND);
	destroy_reading(rig);
}

static void stop_silent_ones(void)
{
	stop_a_silent_one(true);
	stop_a_silent_one(false);
}

TEST(c09_s04_s07_a_silent_descriptor_is_no_deadlock_and_a_stop_ends_it)
{
	(void)state_;
	rig_in_world(1, stop_silent_ones);
	rig_on_host(stop_silent_ones);
}

static void forget_between_runs(void)
{
	struct rig *rig = rig_reading("z:call condition=file_descriptor");

	rig_start(rig);
	put_byte('1');
	wait_for_ticks(rig, 1);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_entity(rig, "z")->start = NULL; /* does not watch it again */
	put_byte('2');
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 10 * MS, NULL), WEIR_E_TIMEOUT);
	assert_int_equal(rig_ticks(rig, "z"), 0);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(watch(weir_graph_entity(rig->graph, "z"), ends[0], WEIR_WATCH_READ), WEIR_OK);
	rig_start(rig); /* what was watched between runs is kept */
	wait_for_ticks(rig, 1);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	destroy_reading(rig);
}

TEST(c09_s08_a_watch_ends_with_its_run)
{
	(void)state_;
	rig_in_world(1, forget_between_runs);
	rig_on_host(forget_between_runs);
}

/* --- the program's loop --- */

TEST(c09_b01_the_callers_poll_serves_it)
{
	struct rig *rig = rig_reading("z:call condition=file_descriptor");
	struct pollfd loop = {.events = POLLIN};
	unsigned turns = 0;

	(void)state_;
	rig_backend = "host";
	rig->options.backend = "host";
	rig->options.own_loop = true;
	rig_start(rig);
	loop.fd = scheduler_fd(rig->scheduler);
	put_byte('a');
	close_writer();
	while (weir_scheduler_running(rig->scheduler) && turns < 10000) {
		assert_true(poll(&loop, 1, 5000) > 0);
		assert_int_equal(weir_scheduler_turn(rig->scheduler), WEIR_OK);
		turns++;
	}
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "z"), "a");
	assert_in_range(turns, 1, 50);
	destroy_reading(rig);
}

static void write_and_close(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	put_byte('a');
	close_writer();
}

TEST(c09_b01_the_callers_base_serves_it)
{
	struct rig *rig = rig_reading("z:call condition=file_descriptor");
	struct event_base *base = event_base_new();
	struct timeval later = {0, 5000};
	struct event *event = event_new(base, -1, 0, write_and_close, NULL);

	(void)state_;
	rig->options.backend = "host";
	rig->options.event_base = base;
	rig_start(rig);
	event_add(event, &later);
	event_base_dispatch(base); /* returns after the run */
	assert_false(weir_scheduler_running(rig->scheduler));
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "z"), "a");
	destroy_reading(rig);
	event_free(event);
	event_base_free(base);
}

/* --- misuse --- */

/* The thread sanitizer reports this misuse itself. */
static void unless_reported(void (*body)(void))
{
#ifndef WR_TSAN
	rig_on_host(body);
#else
	(void)body;
#endif
}

static void close_while_watched(void)
{
	struct rig *rig = rig_reading("z:call condition=file_descriptor");

	rig_start(rig);
	wait_until_watched(rig);
	close(ends[0]);
	assert_int_equal(rig_wait(rig), WEIR_E_INVALID);
	assert_says(rig->outcome.text, "closed: call weir_entity_watch with -1 before you close it");
	assert_string_equal(rig->outcome.entity, "z");
	rig_destroy(rig);
	close_writer();
}

TEST(c09_a_descriptor_that_is_closed_while_watched_fails_the_run)
{
	(void)state_;
	rig_in_world(1, close_while_watched);
	unless_reported(close_while_watched);
}

/* Its number is that of another file when the loop looks. */
static void reuse_while_watched(void)
{
	struct rig *rig = rig_reading("z:call condition=file_descriptor");
	int other[2];

	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 20 * MS, NULL), WEIR_E_TIMEOUT);
	assert_int_equal(pipe2(other, O_CLOEXEC), 0);
	assert_true(dup2(other[0], ends[0]) >= 0);
	assert_int_equal(rig_wait(rig), WEIR_E_INVALID);
	assert_says(rig->outcome.text, "which was closed");
	destroy_reading(rig);
	close(other[0]);
	close(other[1]);
}

TEST(c09_a_number_that_names_another_file_fails_the_run)
{
	(void)state_;
	unless_reported(reuse_while_watched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c09_each_readiness_wakes_and_no_run_ends_meanwhile),
		cmocka_unit_test(c09_no_byte_of_a_thread_outside_is_overlooked),
		cmocka_unit_test(c09_neither_a_ready_descriptor_nor_a_silent_one_costs_time),
		cmocka_unit_test(c09_a_regular_file_is_always_ready),
		cmocka_unit_test(c09_two_conditions_wait_for_one_descriptor),
		cmocka_unit_test(c09_a_descriptor_that_two_conditions_watch_leaves_no_copy_open),
		cmocka_unit_test(c09_another_descriptor_takes_the_place_of_the_first),
		cmocka_unit_test(c09_another_thread_may_change_it_at_any_time),
		cmocka_unit_test(c09_s04_s07_a_silent_descriptor_is_no_deadlock_and_a_stop_ends_it),
		cmocka_unit_test(c09_s08_a_watch_ends_with_its_run),
		cmocka_unit_test(c09_b01_the_callers_poll_serves_it),
		cmocka_unit_test(c09_b01_the_callers_base_serves_it),
		cmocka_unit_test(c09_a_descriptor_that_is_closed_while_watched_fails_the_run),
		cmocka_unit_test(c09_a_number_that_names_another_file_fails_the_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

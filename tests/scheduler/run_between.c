/* What a run that ended or did not begin tells its caller, and what it leaves to the next one (E1, S6, S8,
 * B4). */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/thread.h"
#include "rig_inside.h"
#include "tests/calls.h"

/* --- the line of a failed run --- */

static weir_status wait_for_oneself(struct rig *rig, weir_context *context)
{
	(void)context;
	if (weir_scheduler_wait(rig->scheduler, -1, NULL) != WEIR_E_INVALID)
		rig_break(rig);
	return weir_scheduler_destroy(rig->scheduler);
}

static void e01_a_worker_that_waits_for_its_own_run_is_refused(void **state)
{
	struct rig *rig = rig_of("a:call");

	(void)state;
	rig->options.backend = "host";
	rig_on(rig, "a", wait_for_oneself);
	assert_int_equal(rig_run(rig), WEIR_E_INVALID);
	assert_string_equal(rig->outcome.text, "a worker must not destroy its own scheduler");
	rig_destroy(rig);
}

static weir_status do_not_start(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_fail(context, "no camera");
}

static void e01_a_wait_for_a_run_that_did_not_begin_says_why(void **state)
{
	struct rig *rig = rig_of("a:call");

	(void)state;
	rig_entity(rig, "a")->start = do_not_start;
	rig_make(rig);
	rig_here(rig);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_FAILED);
	assert_int_equal(rig_wait(rig), WEIR_E_FAILED);
	assert_string_equal(weir_last_error(), "a: no camera");
	assert_string_equal(last_failure().entity, "a");
	assert_int_equal(last_failure().cause, WEIR_CAUSE_START);
	assert_string_equal(rig->outcome.text, "no camera");
	assert_string_equal(rig->outcome.entity, "a");
	assert_int_equal(rig->outcome.cause, WEIR_CAUSE_START);
	rig_destroy(rig);
}

static void e06_a_wait_for_a_run_of_an_unconnected_graph_names_the_port(void **state)
{
	struct rig *rig = rig_of("source");

	(void)state;
	rig_make(rig);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_INVALID);
	assert_int_equal(rig_wait(rig), WEIR_E_INVALID);
	assert_non_null(strstr(rig->outcome.text, "source.out"));
	rig_destroy(rig);
}

static void s06_f40_a_deadlock_without_memory_for_words_is_one(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end enabled=false");

	(void)state;
	rig->options.backend = "host";
	rig->options.own_loop = true;
	rig->options.deadlock_grace_ns = 200 * MS;
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 5 * MS, NULL), WEIR_E_TIMEOUT);
	wr_memory_fail_at(0, true);
	assert_int_equal(rig_wait(rig), WEIR_E_DEADLOCK);
	wr_memory_fail_at(-1, false);
	assert_int_equal(rig->outcome.leftover, 1);
	rig_destroy(rig);
}

/* --- waiting entities, and what is left --- */

static void s06_c05_an_entity_that_waits_for_an_outside_condition_is_listed(void **state)
{
	struct rig *rig = rig_of("a:source ticks=1 -> x:end; b:source enabled=false -> y:end; "
				 "c:source enabled=false -> z:end");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig->outcome.waiting, "b (boolean: disabled), c (boolean: disabled)");
	rig_destroy(rig);
	rig = rig_of("source ticks=1 -> end");
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_null(rig->outcome.waiting);
	rig_destroy(rig);
}

static void s06_s08_a_deadlock_names_the_entity_to_blame_and_leftovers_are_counted(void **state)
{
	struct rig *rig = rig_of("a:source ticks=1 -> p:pass; b:source enabled=false -> p.in2; p -> end");

	(void)state;
	for (uint64_t before = 0; before < 2; before++) {
		assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
		assert_string_equal(rig->outcome.waiting, "b (boolean: disabled)");
		assert_string_equal(rig->outcome.text,
				    "b waits: boolean: disabled (WAIT); 1 other waits behind it");
		assert_int_equal(rig->outcome.discarded, before);
	}
	rig_destroy(rig);
}

/* --- after the end --- */

/* What a poke does that has read entity->scheduler just before the scheduler was destroyed. */
static void s04_s08_a_late_poke_finds_a_closed_scheduler_and_writes_nowhere(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end");
	weir_scheduler *late;
	struct pollfd fds[8];

	(void)state;
	rig->options.backend = "host";
	assert_int_equal(rig_run(rig), WEIR_OK);
	late = rig->scheduler;
	assert_int_equal(weir_scheduler_destroy(late), WEIR_OK);
	for (int i = 0; i < 8; i++) /* they get the descriptor numbers that the loop had */
		fds[i] = (struct pollfd){.fd = eventfd(0, EFD_NONBLOCK), .events = POLLIN};
	rig_poke_late(late, fds[0].fd);
	assert_int_equal(poll(fds, 8, 0), 0);
	assert_int_equal(rig_live(late), 0);
	assert_int_equal(weir_entity_poke(weir_graph_entity(rig->graph, "end")), WEIR_E_CLOSED);
	for (int i = 0; i < 8; i++)
		close(fds[i].fd);
	rig->scheduler = NULL;
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

/* --- POSIX signals --- */

static bool blocked(int number)
{
	sigset_t now;

	pthread_sigmask(SIG_BLOCK, NULL, &now);
	return sigismember(&now, number);
}

static void b04_destroy_unblocks_what_create_blocked(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end");
	sigset_t interrupt;

	(void)state;
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	pthread_sigmask(SIG_BLOCK, &interrupt, NULL);
	assert_false(blocked(SIGTERM));
	rig->options.handle_signals = true;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(blocked(SIGTERM));
	rig_destroy(rig);
	assert_false(blocked(SIGTERM));
	assert_true(blocked(SIGINT)); /* blocked by the caller itself */
	pthread_sigmask(SIG_UNBLOCK, &interrupt, NULL);
}

static bool readable(struct rig *rig)
{
	struct pollfd fd = {.fd = scheduler_fd(rig->scheduler), .events = POLLIN};

	assert_int_equal(weir_scheduler_turn(rig->scheduler), WEIR_OK);
	return poll(&fd, 1, 0) > 0;
}

static void b01_b04_a_signal_between_runs_waits_and_keeps_no_thread_busy(void **state)
{
	struct rig *rig = rig_of("source period=1ms -> end");

	(void)state;
	rig->options.backend = "host";
	rig->options.own_loop = rig->options.handle_signals = true;
	rig_make(rig);
	kill(getpid(), SIGTERM); /* blocked here; the loop takes it */
	assert_false(readable(rig));
	rig_start(rig);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig->outcome.posix_signal, SIGTERM);
	kill(getpid(), SIGTERM);
	assert_false(readable(rig));
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig->outcome.posix_signal, SIGTERM);
	rig_destroy(rig);
}

/* --- what the device leaves while no run is on --- */

static _Atomic bool gate_open;
static int destroyed;

static int wait_at_gate(const void *args)
{
	(void)args;
	while (!wr_load(&gate_open))
		wr_thread_yield();
	return 0;
}

static void count_destroyed(void *arg)
{
	(void)arg;
	destroyed++;
}

/* Drops `count` messages that a kernel reads, which ends when the gate is open. Returns its fence. */
static weir_fence drop_behind_gate(struct rig *rig, weir_stream *stream, int count)
{
	static const weir_kernel kernel = {.size = sizeof kernel, .name = "gate", .host = wait_at_gate};
	weir_fence fence;

	destroyed = 0;
	wr_store(&gate_open, false);
	assert_int_equal(weir_stream_launch(stream, &kernel, NULL, 0), WEIR_OK);
	assert_int_equal(weir_stream_record(stream, &fence), WEIR_OK);
	for (int i = 0; i < count; i++) {
		weir_message *message;

		assert_int_equal(weir_message_wrap_user(rig->graph, NULL, count_destroyed, &message),
				 WEIR_OK);
		assert_int_equal(weir_message_add_reader(message, fence), WEIR_OK);
		weir_message_unref(message);
	}
	assert_int_equal(destroyed, 0);
	return fence;
}

static struct rig *rig_with_stream(weir_stream **stream)
{
	struct rig *rig = rig_of("source ticks=3 -> a:end");

	rig->options.backend = "host";
	rig->options.own_loop = true; /* so that a run ends when the test says so */
	rig_make(rig);
	assert_int_equal(weir_graph_add_stream(rig->graph, 0, stream), WEIR_OK);
	return rig;
}

static void b03_t04_a_wait_for_a_fence_between_runs_works_off_what_it_completes(void **state)
{
	weir_stream *stream;
	struct rig *rig = rig_with_stream(&stream);
	weir_fence fence = drop_behind_gate(rig, stream, 2);

	(void)state;
	assert_int_equal(weir_fence_query(rig->graph, fence), WEIR_E_BUSY);
	assert_int_equal(destroyed, 0);
	wr_store(&gate_open, true);
	assert_int_equal(weir_fence_wait(rig->graph, fence, -1), WEIR_OK);
	assert_int_equal(destroyed, 2);
	rig_destroy(rig);
}

static void b03_t04_a_dropped_message_between_runs_works_off_earlier_ones(void **state)
{
	weir_stream *stream;
	struct rig *rig = rig_with_stream(&stream);
	weir_message *message;

	(void)state;
	(void)drop_behind_gate(rig, stream, 1);
	wr_store(&gate_open, true);
	while (!destroyed) { /* no call waits for the device here */
		assert_int_equal(weir_message_create_bytes(rig->graph, 1000, &message), WEIR_OK);
		weir_message_unref(message);
		wr_thread_yield();
	}
	rig_destroy(rig);
}

static void b03_t04_collect_waits_for_the_device_and_is_refused_in_a_run(void **state)
{
	weir_stream *stream;
	struct rig *rig = rig_with_stream(&stream);

	(void)state;
	(void)drop_behind_gate(rig, stream, 3);
	assert_int_equal(weir_graph_collect(rig->graph, 0), WEIR_E_TIMEOUT);
	assert_non_null(strstr(weir_last_error(), "the device still uses 3 messages"));
	wr_store(&gate_open, true);
	assert_int_equal(weir_graph_collect(rig->graph, -1), WEIR_OK);
	assert_int_equal(destroyed, 3);
	rig_start(rig);
	assert_int_equal(weir_graph_collect(rig->graph, 0), WEIR_E_STATE);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(b03_t04_a_wait_for_a_fence_between_runs_works_off_what_it_completes),
		cmocka_unit_test(b03_t04_a_dropped_message_between_runs_works_off_earlier_ones),
		cmocka_unit_test(b03_t04_collect_waits_for_the_device_and_is_refused_in_a_run),
		cmocka_unit_test(e01_a_worker_that_waits_for_its_own_run_is_refused),
		cmocka_unit_test(e01_a_wait_for_a_run_that_did_not_begin_says_why),
		cmocka_unit_test(e06_a_wait_for_a_run_of_an_unconnected_graph_names_the_port),
		cmocka_unit_test(s06_f40_a_deadlock_without_memory_for_words_is_one),
		cmocka_unit_test(s06_c05_an_entity_that_waits_for_an_outside_condition_is_listed),
		cmocka_unit_test(s06_s08_a_deadlock_names_the_entity_to_blame_and_leftovers_are_counted),
		cmocka_unit_test(s04_s08_a_late_poke_finds_a_closed_scheduler_and_writes_nowhere),
		cmocka_unit_test(b04_destroy_unblocks_what_create_blocked),
		cmocka_unit_test(b01_b04_a_signal_between_runs_waits_and_keeps_no_thread_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Failures: of operators, full queues, bad options, no memory,
 * threads or descriptors (E1, E5, E6, F25 to F44). */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/memory.h"
#include "rig_inside.h"
#include "tests/calls.h"

/* --- E1, F28 --- */

static weir_status fail_at_tick_three(struct rig *rig, weir_context *context)
{
	(void)rig;
	if (weir_context_tick(context) == 3)
		return weir_context_fail(context, "the %s is empty", "bottle");
	return weir_context_emit(context, 0, rig_number(context, 0));
}

static weir_status fail_later(struct rig *rig, weir_context *context)
{
	(void)rig;
	weir_sleep(2 * MS);
	return weir_context_fail(context, "too late");
}

static void e01_f28_the_first_failure_is_kept_with_its_entity_and_text(void **state)
{
	struct rig *rig = rig_of("a:call period=100us -> end; b:call");

	(void)state;
	rig_on(rig, "a", fail_at_tick_three);
	rig_on(rig, "b", fail_later);
	assert_int_equal(rig_run(rig), WEIR_E_FAILED);
	assert_string_equal(rig->outcome.entity, "a");
	assert_string_equal(rig->outcome.text, "the bottle is empty");
	assert_string_equal(weir_last_error(), "a: the bottle is empty");
	assert_int_equal(rig_ticks(rig, "a"), 3);
	assert_int_equal(rig_ticks(rig, "b"), 0);
	rig_destroy(rig);
}

static weir_status fail_by_status(struct rig *rig, weir_context *context)
{
	(void)rig;
	weir_context_emit(context, 0, rig_number(context, 0));
	return WEIR_E_IO;
}

static void e01_f28_what_a_failed_tick_emitted_is_not_delivered(void **state)
{
	struct rig *rig = rig_of("source ticks=5 -> a:call -> end");

	(void)state;
	rig_on(rig, "a", fail_by_status);
	assert_int_equal(rig_run(rig), WEIR_E_IO);
	assert_int_equal(rig_queue(rig, "a.in").delivered, 1);
	assert_int_equal(rig_queue(rig, "end.in").pushed, 0);
	assert_int_equal(rig->outcome.abandoned, rig_queue(rig, "a.in").abandoned);
	assert_int_equal(wr_load(&rig->stopped), 3);
	rig_destroy(rig);
}

static weir_status fail_to_start(struct rig *rig, weir_context *context)
{
	return wr_fetch_add(&rig->told, 1) ? WEIR_OK : weir_context_fail(context, "no camera");
}

static void e01_a_start_that_fails_stops_what_has_started_and_may_be_tried_again(void **state)
{
	struct rig *rig = rig_of("source ticks=2 -> b:call");

	(void)state;
	rig_entity(rig, "b")->start = fail_to_start;
	rig_make(rig);
	rig_here(rig);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_FAILED);
	assert_string_equal(weir_last_error(), "b: no camera");
	assert_int_equal(wr_load(&rig->stopped), 1);
	assert_int_equal(weir_entity_poke(weir_graph_entity(rig->graph, "b")), WEIR_E_CLOSED);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "b"), 2);
	rig_destroy(rig);
}

/* --- F30 --- */

static weir_status emit_too_much(struct rig *rig, weir_context *context)
{
	if (weir_context_emit(context, 0, rig_number(context, 1)) != WEIR_OK)
		rig_break(rig);
	if (weir_context_emit(context, 0, rig_number(context, 2)) != WEIR_E_INVALID ||
	    !strstr(weir_last_error(), "max_emits"))
		rig_break(rig);
	if (weir_context_emit(context, 9, rig_number(context, 3)) != WEIR_E_INVALID ||
	    !strstr(weir_last_error(), "output 9"))
		rig_break(rig);
	if (weir_context_emit(context, 0, NULL) != WEIR_E_INVALID)
		rig_break(rig);
	return WEIR_OK;
}

static weir_status emit_at_start(struct rig *rig, weir_context *context)
{
	if (weir_context_emit(context, 0, rig_number(context, 1)) != WEIR_E_INVALID)
		rig_break(rig);
	return WEIR_OK;
}

static void f30_emitting_too_much_or_elsewhere_is_refused_and_harms_nothing(void **state)
{
	struct rig *rig = rig_of("c:call count=3 -> end");

	(void)state;
	rig_on(rig, "c", emit_too_much);
	rig_entity(rig, "c")->start = emit_at_start;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "1 1 1");
	rig_destroy(rig);
}

/* --- E5, F25, F26 --- */

static struct rig *fill(const char *text)
{
	struct rig *rig = rig_of(text);

	rig->options.deadlock_grace_ns = SECOND;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 20 * MS, NULL);
	weir_entity_tell(weir_graph_entity(rig->graph, "end"), "boolean", WEIR_TOLD_READY);
	return rig;
}

static void e05_f25_pop_drops_the_oldest(void **state)
{
	struct rig *rig = fill("source period=1ms count=10 -> end enabled=false capacity=3 policy=pop");

	(void)state;
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "7 8 9");
	assert_int_equal(rig_queue(rig, "end.in").dropped, 7);
	rig_destroy(rig);
}

static void e05_f25_reject_drops_the_newest(void **state)
{
	struct rig *rig = fill("source period=1ms count=10 -> end enabled=false capacity=3 policy=reject");

	(void)state;
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	assert_int_equal(rig_queue(rig, "end.in").dropped, 7);
	rig_destroy(rig);
}

static void e05_f25_fault_ends_the_run(void **state)
{
	struct rig *rig = fill("source period=1ms count=10 -> end enabled=false capacity=3 policy=fault");

	(void)state;
	assert_int_equal(rig_wait(rig), WEIR_E_FAILED);
	assert_string_equal(rig->outcome.entity, "source");
	assert_says(rig->outcome.text, "end.in: the queue of 3 is full and its policy is 'fault'");
	assert_int_equal(rig_queue(rig, "end.in").pushed, 4);
	assert_int_equal(rig->outcome.abandoned, 3);
	rig_destroy(rig);
}

static void e05_f26_each_queue_of_a_fan_out_has_its_own_policy(void **state)
{
	struct rig *rig = fill(
		"source period=1ms count=10 -> end enabled=false capacity=2 policy=pop; source -> a:end; "
		"source -> b:end policy=reject delay=3ms");

	(void)state;
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_queue(rig, "a.in").delivered, 10);
	assert_string_equal(rig_text(rig, "end"), "8 9");
	assert_int_equal(rig_queue(rig, "end.in").pushed, 10);
	assert_int_equal(rig_queue(rig, "b.in").pushed, 10);
	assert_in_range(rig_queue(rig, "b.in").dropped, 3, 6);
	rig_destroy(rig);
}

static void e05_what_is_emitted_without_a_connection_is_counted(void **state)
{
	struct rig *rig = rig_of("source ticks=4 -> p:pass -> end");
	weir_entity_counts counts = {.size = sizeof counts};

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_false(weir_scheduler_entity_counts(rig->scheduler, 1, &counts));
	assert_string_equal(counts.entity, "p");
	assert_int_equal(counts.received, 4);
	assert_int_equal(counts.emitted, 8); /* on both outputs */
	assert_int_equal(counts.unconnected, 4);
	assert_int_equal(weir_scheduler_entity_counts(rig->scheduler, 3, &counts), WEIR_E_INVALID);
	rig_destroy(rig);
}

static void e05_queues_are_named_by_their_two_ends(void **state)
{
	struct rig *rig = rig_of("source ticks=4 -> end capacity=7");
	weir_queue_counts counts = {.size = sizeof counts};

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_false(weir_scheduler_queue_counts(rig->scheduler, 0, &counts));
	assert_string_equal(counts.from, "source.out");
	assert_string_equal(counts.to, "end.in");
	assert_int_equal(counts.capacity, 7);
	assert_int_equal(counts.pushed, 4);
	assert_int_equal(weir_scheduler_queue_counts(rig->scheduler, 1, &counts), WEIR_E_INVALID);
	rig_destroy(rig);
}

/* --- E6 --- */

static void refuse(struct rig *rig, const char *part)
{
	weir_scheduler *scheduler = NULL;

	assert_int_equal(weir_scheduler_create(rig->graph, &rig->options, &scheduler), WEIR_E_INVALID);
	assert_null(scheduler);
	assert_says(weir_last_error(), part);
}

static void e06_bad_options_are_refused_in_words_and_leave_the_graph_as_it_was(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end");
	const weir_scheduler_options good = rig->options;

	(void)state;
	rig->options.workers = 65;
	refuse(rig, "65 workers");
	rig->options = good;
	rig->options.backend = "opencl";
	refuse(rig, "opencl");
	rig->options = good;
	rig->options.signal = "smoke";
	refuse(rig, "signal 'smoke'");
	rig->options = good;
	rig->options.own_loop = true;
	refuse(rig, "loop");
	rig->options = good;
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void e06_b04_a_refused_scheduler_writes_to_no_descriptor_of_the_callers(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end");
	int ends[2], kept = dup(0);
	struct pollfd fd;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], 0); /* what a descriptor that was never opened would refer to */
	rig->options.workers = 65;
	refuse(rig, "65 workers");
	dup2(kept, 0);
	fd = (struct pollfd){.fd = ends[0], .events = POLLIN};
	assert_int_equal(poll(&fd, 1, 0), 0);
	close(ends[0]);
	close(ends[1]);
	close(kept);
	rig_destroy(rig);
}

static void e06_an_unconnected_port_is_named_at_the_start(void **state)
{
	weir_description *description = NULL;
	weir_scheduler *scheduler = NULL;
	weir_graph *graph = NULL;
	struct rig *rig = rig_of("c:call");

	(void)state;
	assert_int_equal(weir_description_create(&description), WEIR_OK);
	assert_int_equal(weir_description_add_entity(description, "source", "source"), WEIR_OK);
	if (!weir_graph_create(rig->registry, description, &graph)) {
		assert_int_equal(weir_scheduler_create(graph, &rig->options, &scheduler), WEIR_OK);
		assert_int_equal(weir_scheduler_run(scheduler), WEIR_E_INVALID);
	}
	assert_says(weir_last_error(), "source");
	assert_says(weir_last_error(), "out");
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
	weir_description_destroy(description);
	rig_destroy(rig);
}

/* --- F40 --- */

/* Creates, runs and destroys while allocation n fails. Returns true if there were fewer. */
static bool run_with_failure(int64_t n, bool all)
{
	struct rig *rig =
		rig_of("source ticks=3 work=1us -> p:pass -> end gate=in; p.out2 -> other:end policy=pop");
	int64_t before = wr_memory_count();
	weir_status status;

	wr_memory_fail_at(n, all);
	status = weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler);
	if (!status) {
		rig_here(rig);
		status = weir_scheduler_run(rig->scheduler);
	}
	assert_true(status == WEIR_OK || status == WEIR_E_NOMEM || status == WEIR_E_FAILED ||
		    status == WEIR_E_DEVICE);
	wr_memory_fail_at(-1, false);
	rig_destroy(rig);
	return wr_memory_count() - before <= n;
}

static void fail_each_once(void)
{
	int64_t n = 0;

	while (n < 2000 && !run_with_failure(n, false))
		n++;
	assert_in_range(n, 20, 1999);
}

static void fail_all_from(void)
{
	int64_t n = 0;

	while (n < 2000 && !run_with_failure(n, true))
		n++;
	assert_in_range(n, 20, 1999);
}

static void f40_any_allocation_of_a_run_may_fail(void **state)
{
	(void)state;
	rig_in_world(1, fail_each_once);
	rig_on_host(fail_each_once);
}

static void f40_memory_may_run_out_for_good(void **state)
{
	(void)state;
	rig_in_world(1, fail_all_from);
	rig_on_host(fail_all_from);
}

/* --- F41: pthread_create, wrapped by the linker --- */

static _Atomic int threads_left = 1000000;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *),
			  void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *arg)
{
	return wr_fetch_sub(&threads_left, 1) > 0 ? __real_pthread_create(thread, attributes, fn, arg)
						  : 11 /* EAGAIN */;
}

/* Returns true if the run could start with so many threads. */
static bool run_with_threads(int n)
{
	struct rig *rig = rig_of("source ticks=20 work=1us -> end gate=in");
	weir_status status;

	rig->options.backend = "host";
	rig->options.workers = 3;
	wr_store(&threads_left, n);
	status = weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler);
	if (!status) {
		rig_here(rig);
		status = weir_scheduler_run(rig->scheduler);
	}
	wr_store(&threads_left, 1000000);
	assert_int_equal(wr_load(&rig->started), wr_load(&rig->stopped));
	if (!status)
		assert_int_equal(rig_ticks(rig, "end"), 20);
	else
		assert_int_not_equal(*weir_last_error(), 0);
	rig_destroy(rig);
	return !status;
}

static void f41_without_all_threads_it_runs_on_fewer_or_fails_in_words(void **state)
{
	int least = 0;

	(void)state;
	while (!run_with_threads(least) && least < 20)
		least++;
	assert_in_range(least, 2, 6); /* a worker, the loop, at least one backend thread */
	for (int n = least + 1; n < least + 4; n++)
		assert_true(run_with_threads(n));
}

/* --- F42 to F44 --- */

static void f42_without_descriptors_creating_fails_in_words(void **state)
{
	struct rlimit all, few;
	struct rig *rig = rig_of("source ticks=1 -> end");
	int next = dup(0);

	(void)state;
	close(next);
	rig->options.backend = "host";
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	for (int spare = 0; spare < 3; spare++) {
		few = (struct rlimit){(rlim_t)(next + spare), all.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		weir_status status = weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
		assert_int_equal(status, WEIR_E_IO);
		assert_null(rig->scheduler);
		assert_says(weir_last_error(), "the loop's ");
	}
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void f43_a_full_wake_up_descriptor_is_a_wake_up(void **state)
{
	struct rig *rig = rig_of("source period=1ms -> end");
	struct pollfd fd;

	(void)state;
	rig->options.backend = "host";
	rig->options.own_loop = true;
	rig_start(rig);
	assert_true(rig_fill_wake(rig));
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN); /* does not block */
	fd = (struct pollfd){.fd = scheduler_fd(rig->scheduler), .events = POLLIN};
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void do_nothing(int number)
{
	(void)number;
}

static void f44_interrupted_calls_are_made_again(void **state)
{
	struct rig *rig = rig_of("source period=1ms count=50 -> end");
	struct sigaction action = {.sa_handler = do_nothing}, before;
	struct itimerval often = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};

	(void)state;
	rig->options.backend = "host";
	rig->options.own_loop = true;
	sigaction(SIGALRM, &action, &before);
	setitimer(ITIMER_REAL, &often, NULL);
	assert_int_equal(rig_run(rig), WEIR_OK);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	assert_int_equal(rig_ticks(rig, "end"), 50);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e01_f28_the_first_failure_is_kept_with_its_entity_and_text),
		cmocka_unit_test(e01_f28_what_a_failed_tick_emitted_is_not_delivered),
		cmocka_unit_test(e01_a_start_that_fails_stops_what_has_started_and_may_be_tried_again),
		cmocka_unit_test(f30_emitting_too_much_or_elsewhere_is_refused_and_harms_nothing),
		cmocka_unit_test(e05_f25_pop_drops_the_oldest),
		cmocka_unit_test(e05_f25_reject_drops_the_newest),
		cmocka_unit_test(e05_f25_fault_ends_the_run),
		cmocka_unit_test(e05_f26_each_queue_of_a_fan_out_has_its_own_policy),
		cmocka_unit_test(e05_what_is_emitted_without_a_connection_is_counted),
		cmocka_unit_test(e05_queues_are_named_by_their_two_ends),
		cmocka_unit_test(e06_bad_options_are_refused_in_words_and_leave_the_graph_as_it_was),
		cmocka_unit_test(e06_b04_a_refused_scheduler_writes_to_no_descriptor_of_the_callers),
		cmocka_unit_test(e06_an_unconnected_port_is_named_at_the_start),
		cmocka_unit_test(f40_any_allocation_of_a_run_may_fail),
		cmocka_unit_test(f40_memory_may_run_out_for_good),
		cmocka_unit_test(f41_without_all_threads_it_runs_on_fewer_or_fails_in_words),
		cmocka_unit_test(f42_without_descriptors_creating_fails_in_words),
		cmocka_unit_test(f43_a_full_wake_up_descriptor_is_a_wake_up),
		cmocka_unit_test(f44_interrupted_calls_are_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

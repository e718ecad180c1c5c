/* Run after run of one graph, and what they leave (S8, F18). */
#include <dirent.h>

#include "base/thread.h"
#include "rig.h"

/* --- S8, F18 --- */

static void rerun(void)
{
	struct rig *rig = rig_of("source count=20 work=1us -> p:pass -> end gate=in; p.out2 -> other:end "
				 "capacity=2 policy=pop");

	for (int i = 0; i < 100; i++) {
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig_ticks(rig, "source"), 20);
		assert_int_equal(rig_queue(rig, "end.in").delivered, 20);
		assert_int_equal(rig_queue(rig, "other.in").pushed, 20);
	}
	assert_int_equal(wr_load(&rig->started), 400);
	assert_int_equal(wr_load(&rig->stopped), 400);
	rig_destroy(rig);
}

static void s08_a_hundred_runs_of_one_graph_count_alike(void **state)
{
	(void)state;
	rig_in_world(7, rerun);
	rig_on_host(rerun);
}

static void s08_outside_a_run_a_poke_is_refused_and_changes_nothing(void **state)
{
	struct rig *rig = rig_of("source ticks=2 -> end");
	weir_entity *source = weir_graph_entity(rig->graph, "source");

	(void)state;
	assert_int_equal(weir_entity_poke(source), WEIR_E_CLOSED);
	rig_make(rig);
	assert_int_equal(weir_entity_poke(source), WEIR_E_CLOSED);
	assert_int_equal(rig_run(rig), WEIR_OK);
	for (int i = 0; i < 10; i++)
		assert_int_equal(weir_entity_poke(source), WEIR_E_CLOSED);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "source"), 2);
	rig_destroy(rig);
}

static void s08_a_word_told_before_a_run_is_kept_for_it_and_forgotten_after(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end enabled=false");
	weir_entity *end = weir_graph_entity(rig->graph, "end");

	(void)state;
	assert_int_equal(weir_entity_tell(end, "boolean", WEIR_TOLD_READY), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_int_equal(weir_entity_tell(end, "boolean", WEIR_TOLD_READY), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void s08_leftovers_are_discarded_before_the_next_run(void **state)
{
	struct rig *rig = rig_of("source ticks=3 -> end enabled=false capacity=3");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_int_equal(rig->outcome.leftover, 3);
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_int_equal(rig_queue(rig, "end.in").pushed, 3);
	assert_int_equal(rig_queue(rig, "end.in").queued, 3);
	rig_destroy(rig);
}

static void s08_a_second_start_and_a_second_scheduler_are_refused(void **state)
{
	struct rig *rig = rig_of("source period=1s count=2 -> end");
	weir_scheduler *second = NULL;

	(void)state;
	rig_start(rig);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_STATE);
	assert_int_equal(weir_scheduler_create(rig->graph, NULL, &second), WEIR_E_STATE);
	assert_null(second);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void s08_a_graph_may_have_one_scheduler_after_the_other(void **state)
{
	struct rig *rig = rig_of("source count=5 work=10us -> end gate=in");
	const char *const places[] = {"sim", "host", "host", "sim"};

	(void)state;
	for (int i = 0; i < 4; i++) {
		rig->options.backend = places[i];
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig_ticks(rig, "end"), 5);
		assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
		rig->scheduler = NULL;
	}
	rig_destroy(rig);
}

static size_t entries(const char *path)
{
	DIR *folder = opendir(path);
	size_t count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* The kernel lists a joined thread a moment longer. */
static void assert_threads_end(size_t most)
{
	for (int i = 0; i < 10000 && entries("/proc/self/task") > most; i++)
		wr_thread_sleep(MS);
	assert_in_range(entries("/proc/self/task"), 0, most);
}

static void f18_two_thousand_runs_leave_no_thread_and_no_descriptor(void **state)
{
	struct rig *rig = rig_of("source count=3 -> end");
	size_t threads, descriptors;

	(void)state;
	rig->options.backend = "host";
	rig_run(rig);
	threads = entries("/proc/self/task");
	descriptors = entries("/proc/self/fd");
	for (int i = 0; i < 2000; i++) {
		rig_start(rig);
		weir_scheduler_stop(rig->scheduler, i & 1 ? WEIR_STOP_DRAIN : 0);
		rig_wait(rig);
	}
	assert_threads_end(threads);
	assert_int_equal(entries("/proc/self/fd"), descriptors);
	rig_destroy(rig);
}

static void f18_schedulers_give_back_their_threads_and_descriptors(void **state)
{
	struct rig *rig = rig_of("source count=3 -> end");
	size_t threads = entries("/proc/self/task"), descriptors = entries("/proc/self/fd");

	(void)state;
	rig->options.backend = "host";
	for (int i = 0; i < 100; i++) {
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
		rig->scheduler = NULL;
	}
	rig_destroy(rig);
	assert_threads_end(threads);
	assert_int_equal(entries("/proc/self/fd"), descriptors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s08_a_hundred_runs_of_one_graph_count_alike),
		cmocka_unit_test(s08_outside_a_run_a_poke_is_refused_and_changes_nothing),
		cmocka_unit_test(s08_a_word_told_before_a_run_is_kept_for_it_and_forgotten_after),
		cmocka_unit_test(s08_leftovers_are_discarded_before_the_next_run),
		cmocka_unit_test(s08_a_second_start_and_a_second_scheduler_are_refused),
		cmocka_unit_test(s08_a_graph_may_have_one_scheduler_after_the_other),
		cmocka_unit_test(f18_two_thousand_runs_leave_no_thread_and_no_descriptor),
		cmocka_unit_test(f18_schedulers_give_back_their_threads_and_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

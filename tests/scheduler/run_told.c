/* A run that the program fails: the first failure is kept, whichever side had it, and operators hear its text
 * (E1, S7). */
#include <string.h>

#include "base/thread.h"
#include "rig.h"
#include "tests/calls.h"

static void hear(struct rig *rig, weir_context *context)
{
	const char *why = weir_context_failure(context);

	rig_note(rig, context, why ? why : "nothing");
}

static void fail_twice(void *arg)
{
	struct rig *rig = arg;

	weir_sleep(2 * MS);
	if (weir_scheduler_fail(rig->scheduler, WEIR_E_IO, "the camera\nis gone") ||
	    weir_scheduler_fail(rig->scheduler, WEIR_E_UNSUPPORTED, "later"))
		rig_break(rig);
}

static void fail_from_a_thread(void)
{
	struct rig *rig = rig_of("a:call period=100us -> end");
	struct wr_thread thread = {0};

	rig_entity(rig, "a")->stop = hear;
	rig_start(rig);
	assert_int_equal(wr_thread_start(&thread, "program", fail_twice, rig), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_E_IO);
	wr_thread_join(&thread);
	assert_string_equal(rig->outcome.text, "the camera\\nis gone");
	assert_null(rig->outcome.entity);
	assert_int_equal(rig->outcome.cause, WEIR_CAUSE_DRAIN);
	assert_string_equal(rig_text(rig, "a"), "the camera\\nis gone");
	rig_destroy(rig);
}

static void e01_s07_a_program_fails_its_run_by_a_text(void **state)
{
	(void)state;
	rig_everywhere(fail_from_a_thread);
}

/* Its threads are in no world, and nothing there may wait for them. */
static void e01_a_program_fails_a_simulated_run_from_outside(void **state)
{
	struct rig *rig = rig_of("a:call period=1ms -> end");

	(void)state;
	rig_entity(rig, "a")->stop = hear;
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 5 * MS, NULL), WEIR_E_TIMEOUT);
	assert_int_equal(weir_scheduler_fail(rig->scheduler, WEIR_E_IO, NULL), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_E_IO);
	assert_string_equal(rig->outcome.text, weir_status_text(WEIR_E_IO));
	assert_string_equal(rig_text(rig, "a"), weir_status_text(WEIR_E_IO));
	rig_destroy(rig);
}

static weir_status fail_behind_the_program(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_scheduler_fail(rig->scheduler, WEIR_E_IO, "first") == WEIR_OK);
	return weir_context_fail(context, "second");
}

static weir_status fail_before_the_program(struct rig *rig, weir_context *context)
{
	weir_status status = weir_context_fail_after_drain(context, WEIR_E_UNSUPPORTED, "first");

	HOLDS(rig, weir_scheduler_fail(rig->scheduler, WEIR_E_IO, "second") == WEIR_OK);
	return status;
}

static void fail_in_compute(rig_fn *compute, weir_status status, const char *entity)
{
	struct rig *rig = rig_of("a:call period=1ms");

	rig_on(rig, "a", compute);
	assert_int_equal(rig_run(rig), status);
	assert_string_equal(rig->outcome.text, "first");
	assert_true(entity ? rig->outcome.entity && !strcmp(rig->outcome.entity, entity)
			   : !rig->outcome.entity);
	rig_destroy(rig);
}

static void fail_beside_an_entity(void)
{
	fail_in_compute(fail_behind_the_program, WEIR_E_IO, NULL);
	fail_in_compute(fail_before_the_program, WEIR_E_UNSUPPORTED, "a");
}

static void e01_of_the_program_and_an_entity_the_first_failure_is_kept(void **state)
{
	(void)state;
	rig_everywhere(fail_beside_an_entity);
}

static void fail_between_runs(void)
{
	struct rig *rig = rig_of("a:call count=1");

	rig_make(rig);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(weir_scheduler_fail(rig->scheduler, WEIR_E_IO, "no run is on"), WEIR_OK);
		assert_int_equal(rig_run(rig), WEIR_OK);
	}
	assert_int_equal(weir_scheduler_fail(rig->scheduler, WEIR_OK, "well"), WEIR_E_INVALID);
	assert_says(weir_last_error(), "a run fails by a failure");
	rig_destroy(rig);
}

static void e01_e06_without_a_run_nothing_fails_and_ok_is_no_failure(void **state)
{
	(void)state;
	rig_everywhere(fail_between_runs);
}

/* Beside the end of a run. */
static void fail_at_any_time(void)
{
	struct rig *rig = rig_of("source ticks=3 delay=1ms -> p:pass -> end");
	struct wr_thread thread = {0};
	weir_status status;

	rig_start(rig);
	assert_int_equal(wr_thread_start(&thread, "program", fail_twice, rig), WEIR_OK);
	status = rig_wait(rig);
	wr_thread_join(&thread);
	assert_true(status ? status == WEIR_E_IO && !strcmp(rig->outcome.text, "the camera\\nis gone")
			   : !rig->outcome.text);
	rig_destroy(rig);
}

static void e01_s07_a_run_that_ends_meanwhile_fails_by_the_text_or_is_over(void **state)
{
	(void)state;
	rig_in_worlds(500, fail_at_any_time);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e01_s07_a_program_fails_its_run_by_a_text),
		cmocka_unit_test(e01_a_program_fails_a_simulated_run_from_outside),
		cmocka_unit_test(e01_of_the_program_and_an_entity_the_first_failure_is_kept),
		cmocka_unit_test(e01_e06_without_a_run_nothing_fails_and_ok_is_no_failure),
		cmocka_unit_test(e01_s07_a_run_that_ends_meanwhile_fails_by_the_text_or_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Causes are values (C5): of waits, explanations, statistics, errors and outcomes; no text beside them turns
 * one. */
#include <stdio.h>
#include <string.h>

#include "rig.h"
#include "tests/calls.h"

/* Waits 20 ms between its ticks, for a reason whose words name other causes. */
#define WORDS "no room for the device: too few messages"

static int64_t next;

static void ask_warm(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (weir_view_now(view) >= next) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, WORDS);
	weir_verdict_until(verdict, next);
}

static void ticked_warm(void *state, weir_view *view)
{
	(void)state;
	next = weir_view_now(view) + 20 * MS;
}

static void ask_stuck(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_wait(verdict, "the board is busy");
	weir_verdict_set_cause(verdict, WEIR_CAUSE_DEVICE, 0, 0);
}

static const weir_condition warm = {.size = sizeof warm,
				    .name = "warm",
				    .phase = WEIR_PHASE_GATHERING,
				    .ask = ask_warm,
				    .ticked = ticked_warm};
static const weir_condition board = {
	.size = sizeof board, .name = "board", .phase = WEIR_PHASE_GATHERING, .ask = ask_stuck};

/* --- outcomes --- */

static void ends(struct rig *rig, weir_cause cause, const char *entity, const char *on)
{
	assert_string_equal(weir_cause_text(rig->outcome.cause), weir_cause_text(cause));
	assert_string_equal(rig->outcome.cause_entity ? rig->outcome.cause_entity : "none", entity);
	assert_string_equal(rig->outcome.cause_on ? rig->outcome.cause_on : "none", on);
	rig_destroy(rig);
}

static void c05_the_cause_of_a_deadlock_is_that_of_its_first_root(void **state)
{
	struct rig *told = rig_of("source -> end enabled=false"),
		   *own = rig_of("source -> end condition=board");
	struct rig *circle =
		rig_of("a:pass capacity=2 take=2 -> b:pass -> a initial_messages=1; a.out max_emits=2; "
		       "a.out2 max_emits=2; b.in capacity=2");

	(void)state;
	assert_int_equal(rig_run(told), WEIR_E_DEADLOCK);
	ends(told, WEIR_CAUSE_TOLD, "end", "none");
	assert_int_equal(rig_run(own), WEIR_E_DEADLOCK);
	ends(own, WEIR_CAUSE_DEVICE, "end", "in");
	assert_int_equal(rig_run(circle), WEIR_E_DEADLOCK);
	ends(circle, WEIR_CAUSE_MESSAGES, "a", "in");
}

/* The period of beat has not passed when the run ends: it would not have helped. */
static void c05_a_time_beside_another_cause_is_no_root_of_a_deadlock(void **state)
{
	struct rig *rig = rig_of("beat:source period=1s -> end enabled=false");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_null(strstr(rig->outcome.text, "period"));
	assert_says(rig->outcome.text, "disabled");
	ends(rig, WEIR_CAUSE_TOLD, "end", "none");
}

static weir_status fail_empty(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_fail(context, "the bottle is empty");
}

static void c05_an_end_without_a_deadlock_has_a_cause(void **state)
{
	struct rig *done = rig_of("source ticks=2 -> end"), *drained = rig_of("source period=1ms -> end");
	struct rig *failed = rig_of("source -> a:call");

	(void)state;
	assert_int_equal(rig_run(done), WEIR_OK);
	ends(done, WEIR_CAUSE_DONE, "none", "none");
	drained->options.max_duration_ns = 5 * MS;
	assert_int_equal(rig_run(drained), WEIR_OK);
	ends(drained, WEIR_CAUSE_DRAIN, "none", "none");
	rig_on(failed, "a", fail_empty);
	assert_int_equal(rig_run(failed), WEIR_E_FAILED);
	assert_string_equal(weir_last_error(), "a: the bottle is empty");
	assert_string_equal(last_failure().entity, "a");
	assert_int_equal(last_failure().cause, WEIR_CAUSE_COMPUTE);
	assert_int_equal(last_failure().status, WEIR_E_FAILED);
	assert_string_equal(last_failure().text, failed->outcome.text);
	ends(failed, WEIR_CAUSE_COMPUTE, "a", "none");
}

static weir_status emit_nothing(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_emit(context, 0, NULL);
}

static void e01_the_name_of_an_entity_is_no_part_of_its_text(void **state)
{
	struct rig *rig = rig_of("a:call -> end");

	(void)state;
	rig_on(rig, "a", emit_nothing);
	assert_int_equal(rig_run(rig), WEIR_E_INVALID);
	assert_string_equal(rig->outcome.entity, "a");
	assert_string_equal(rig->outcome.text, "emit needs a message");
	assert_string_equal(weir_last_error(), "a: emit needs a message");
	rig_destroy(rig);
}

/* --- explanations --- */

static void add_unmet(const weir_unmet *unmet, void *arg)
{
	char *text = arg;

	snprintf(text + strlen(text), 80, "%s %s %s %s\n", unmet->entity, weir_cause_text(unmet->cause),
		 unmet->on ? unmet->on : "-", unmet->blames ? unmet->blames : "-");
}

static void c05_an_explanation_has_cause_subject_and_the_entity_that_could_change_it(void **state)
{
	struct rig *rig = rig_of("source -> a:pass -> end enabled=false");
	char text[RIG_TEXT] = "";

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	weir_scheduler_explain(rig->scheduler, add_unmet, text);
	assert_string_equal(text, "end told - -\nsource room out a\na room out end\n");
	rig_destroy(rig);
}

/* --- statistics --- */

static void c05_statistics_tell_the_cause_whatever_the_reason_says(void **state)
{
	struct rig *rig = rig_of("source ticks=3 condition=warm -> a:pass -> end period=50ms capacity=1");
	char *text = NULL;

	(void)state;
	next = 0;
	rig->options.observe = WEIR_OBSERVE_STATISTICS;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(weir_scheduler_print_statistics(rig->scheduler, &text), WEIR_OK);
	assert_says(text, "{\"cause\":\"own\",\"on\":null,\"of\":\"warm\",\"why\":\"" WORDS "\"");
	assert_says(text, "{\"cause\":\"messages\",\"on\":\"in\",\"of\":");
	assert_says(text, "{\"cause\":\"time\",\"on\":null,\"of\":\"periodic\"");
	assert_says(text, "\"backend\":\"sim\"");
	assert_says(text, "\"cause\":\"done\",\"cause_entity\":null,\"cause_on\":null");
	weir_text_free(text);
	rig_destroy(rig);
}

static void b01_a_scheduler_tells_its_backend(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(weir_scheduler_backend(rig->scheduler), WEIR_BACKEND_SIM);
	rig_destroy(rig);
}

int main(void)
{
	static const weir_condition *const conditions[] = {&warm, &board, NULL};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c05_the_cause_of_a_deadlock_is_that_of_its_first_root),
		cmocka_unit_test(c05_a_time_beside_another_cause_is_no_root_of_a_deadlock),
		cmocka_unit_test(c05_an_end_without_a_deadlock_has_a_cause),
		cmocka_unit_test(e01_the_name_of_an_entity_is_no_part_of_its_text),
		cmocka_unit_test(c05_an_explanation_has_cause_subject_and_the_entity_that_could_change_it),
		cmocka_unit_test(c05_statistics_tell_the_cause_whatever_the_reason_says),
		cmocka_unit_test(b01_a_scheduler_tells_its_backend),
	};

	rig_backend = "sim";
	rig_conditions = conditions;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

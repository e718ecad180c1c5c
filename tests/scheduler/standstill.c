/* Why a run makes no progress: one answer, root causes first, at a deadlock and while it runs. */
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "rig.h"

static void assert_silent_on(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("'%s' says '%s'", text, part);
}

/* READY once `allowed` is set, whether or not it is poked then. */
static _Atomic bool allowed;

static void ask_allowed(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	if (wr_load(&allowed))
		weir_verdict_ready(verdict);
	else
		weir_verdict_wait(verdict, "not allowed yet");
}

static const weir_condition may = {.size = sizeof may, .name = "allowed", .ask = ask_allowed};
static const weir_condition in = {.size = sizeof in, .name = "in", .ask = ask_allowed};
static const weir_condition *const conditions[] = {&may, &in, NULL};

/* The line that explains a running run after `after` ns. */
static char *explanation_after(struct rig *rig, int64_t after)
{
	char *text = NULL;

	weir_scheduler_wait(rig->scheduler, after, NULL);
	assert_int_equal(weir_scheduler_explain_line(rig->scheduler, &text), WEIR_OK);
	return text;
}

static void end(struct rig *rig)
{
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	rig_wait(rig);
	rig_destroy(rig);
}

/* --- at a deadlock --- */

static void xb06_a_deadlock_says_which_queues_are_full_and_empty_and_what_to_do(void **state)
{
	struct rig *rig = rig_of("a:source ticks=10 -> join:pass capacity=2 -> end; "
				 "a -> slow:pass take=3 capacity=3 max_emits=3 -> join.in2 capacity=3");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_says(rig->outcome.text, "circular wait: ");
	assert_says(rig->outcome.text, "a.out -> join.in is full (2 of 2)");
	assert_says(rig->outcome.text, "join.in2 has 0 of 1 messages from slow.out");
	assert_says(rig->outcome.text, "slow.in has 2 of 3 messages from a.out");
	assert_says(rig->outcome.text, "; raise the capacity of join.in");
	rig_destroy(rig);
}

static void xb06_a_circle_of_empty_queues_is_told_what_starts_it(void **state)
{
	struct rig *rig =
		rig_of("a:pass capacity=2 take=2 -> b:pass -> a initial_messages=1; a.out max_emits=2; "
		       "a.out2 max_emits=2; b.in capacity=2");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_says(rig->outcome.text, "a.in has 1 of 2 messages from b.out");
	assert_says(rig->outcome.text, "give one of these connections \"initial_messages\"");
	rig_destroy(rig);
}

static void xb06_entities_behind_a_cause_are_counted_not_listed(void **state)
{
	char text[RIG_TEXT] = "source";
	struct rig *rig;

	(void)state;
	for (int i = 0; i < 50; i++)
		snprintf(text + strlen(text), 32, " -> p%d:pass", i);
	strcat(text, " -> end enabled=false");
	rig = rig_of(text);
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_string_equal(rig->outcome.text,
			    "end waits: boolean: disabled (WAIT); 51 others wait behind it");
	rig_destroy(rig);
}

static void xb06_of_many_causes_some_are_told(void **state)
{
	char text[RIG_TEXT] = "";
	struct rig *rig;

	(void)state;
	for (int i = 0; i < 20; i++)
		snprintf(text + strlen(text), 96, "%ss%d:source -> e%d:end enabled=false", i ? "; " : "", i,
			 i);
	rig = rig_of(text);
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_says(rig->outcome.text, "e0 waits: boolean: disabled (WAIT); e1 waits");
	assert_says(rig->outcome.text, "; and 12 more causes; ");
	assert_true(strlen(rig->outcome.text) < 600);
	rig_destroy(rig);
}

/* --- while it runs --- */

static void xb07_a_full_queue_behind_an_optional_output_is_told(void **state)
{
	struct rig *rig = rig_of("source -> p:pass -> end; p.out2 -> other:end enabled=false");
	char *text;

	(void)state;
	rig->options.deadlock_grace_ns = INT64_MAX;
	rig_start(rig);
	text = explanation_after(rig, 10 * MS);
	assert_says(text, "other waits: boolean: disabled (WAIT)");
	assert_says(rig_explain(rig), "(no room behind the output: p.out2 -> other.in is full (1 of 1))\n");
	weir_text_free(text);
	end(rig);
}

static void xb07_an_outlet_that_nothing_takes_from_is_told(void **state)
{
	struct rig *rig = rig_of("source -> p:pass -> end");
	weir_outlet *outlet = NULL;
	char *text;

	(void)state;
	rig->options.deadlock_grace_ns = INT64_MAX;
	assert_int_equal(weir_graph_add_outlet(rig->graph, "p.out2", 1, 0, &outlet), WEIR_OK);
	rig_start(rig);
	text = explanation_after(rig, 10 * MS);
	assert_says(text, "p.out2 -> outlet is full (1 of 1): nothing takes from the outlet");
	assert_says(rig_explain(rig),
		    "p: room on out2: WAIT (no room behind the output: p.out2 -> outlet is full");
	weir_text_free(text);
	end(rig);
}

static void xb07_an_open_inlet_is_told_to_keep_the_run_open(void **state)
{
	struct rig *rig = rig_of("p:pass -> end; source -> stuck:end enabled=false");
	weir_inlet *inlet = NULL;
	char *text;

	(void)state;
	assert_int_equal(weir_graph_add_inlet(rig->graph, "p.in", &inlet), WEIR_OK);
	rig_start(rig);
	text = explanation_after(rig, 10 * MS);
	assert_says(text, "p.in has 0 of 1 messages: its inlet is open and nothing is pushed");
	assert_says(text, "stuck waits: boolean: disabled (WAIT)");
	assert_says(text, "; no deadlock is reported while inlets are open: p.in");
	weir_text_free(text);
	end(rig);
}

static void xb07_what_is_parked_with_nothing_unmet_is_told(void **state)
{
	struct rig *rig = rig_of("source condition=allowed -> end");
	char *text;

	(void)state;
	wr_store(&allowed, false);
	rig->options.deadlock_grace_ns = INT64_MAX;
	rig_start(rig);
	text = explanation_after(rig, 10 * MS);
	assert_says(text, "source waits: allowed: not allowed yet (WAIT)");
	weir_text_free(text);
	wr_store(&allowed, true);
	text = explanation_after(rig, 10 * MS);
	assert_says(text, "source waits: poke: parked, though nothing is unmet");
	weir_text_free(text);
	weir_entity_poke(weir_graph_entity(rig->graph, "source"));
	text = explanation_after(rig, 10 * MS);
	assert_silent_on(text, "parked");
	weir_text_free(text);
	end(rig);
}

/* The source parks for its period, which is longer than a tick under a sanitizer; nothing turns the loop,
 * which alone would wake it. */
static void xb07_a_loop_that_is_late_is_told(void **state)
{
	struct rig *rig = rig_of("source period=1ms -> end");
	char *text = NULL;

	(void)state;
	rig->options.backend = "host";
	rig->options.own_loop = true;
	rig_start(rig);
	do {
		weir_text_free(text);
		assert_int_equal(weir_scheduler_explain_line(rig->scheduler, &text), WEIR_OK);
	} while (!strstr(text, "source waits: timer: its timer has been due for "));
	assert_says(text, ": weir_scheduler_turn was not called (PARKED)");
	weir_text_free(text);
	rig_destroy(rig);
}

static void xb07_a_condition_named_like_a_port_is_not_taken_for_it(void **state)
{
	struct rig *rig = rig_of("source -> end condition=in");

	(void)state;
	wr_store(&allowed, false);
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_string_equal(rig->outcome.text,
			    "end waits: in: not allowed yet (WAIT); 1 other waits behind it");
	rig_destroy(rig);
}

static void xb16_times_and_fences_are_told_with_their_age(void **state)
{
	struct rig *rig = rig_of(
		"camera:source ticks=1 work=50ms -> end gate=in; slow:source period=1s count=2 -> other:end");
	char *text;

	(void)state;
	rig_start(rig);
	text = explanation_after(rig, 10 * MS);
	assert_says(text, "end waits: cuda_stream on in: 1 fence pending, oldest 10 ms, producer camera "
			  "(WAIT_EVENT)");
	assert_says(text, "slow waits: periodic: the period is not over, due in 990 ms (WAIT_TIME)");
	assert_says(text, "; 1 other waits behind them");
	weir_text_free(text);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void xb16_a_compute_that_hangs_past_its_drain_is_named(void **state)
{
	struct rig *rig = rig_of("source ticks=1 delay=60s -> end");
	char *text;

	(void)state;
	rig->options.observe = WEIR_OBSERVE_COMPUTE;
	rig->options.drain_ns = SECOND;
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 10 * MS, NULL), WEIR_E_TIMEOUT); /* in compute */
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	text = explanation_after(rig, 90 * MS);
	assert_string_equal(text, "source waits: compute: runs for 100 ms (BUSY); 1 other waits behind it");
	weir_text_free(text);
	text = explanation_after(rig, 10 * SECOND - 100 * MS);
	assert_string_equal(text, "source waits: compute: runs for 10 s (BUSY)");
	weir_text_free(text);
	assert_int_equal(rig_wait(rig), WEIR_E_ABANDONED);
	rig_destroy(rig);
}

static void xb16_a_program_is_told_that_a_run_drains_whatever_caused_it(void **state)
{
	struct rig *rig = rig_of("source ticks=1 delay=1s -> end");

	(void)state;
	rig->options.max_duration_ns = 100 * MS;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 50 * MS, NULL);
	assert_false(weir_scheduler_stopping(rig->scheduler));
	weir_scheduler_wait(rig->scheduler, 100 * MS, NULL);
	assert_true(weir_scheduler_stopping(rig->scheduler));
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_false(weir_scheduler_stopping(rig->scheduler));
	rig_destroy(rig);
}

static void xb16_a_run_that_is_over_has_nothing_to_tell(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end");
	char *text = NULL;

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(weir_scheduler_explain_line(rig->scheduler, &text), WEIR_OK);
	assert_string_equal(text, "");
	weir_text_free(text);
	rig_destroy(rig);
}

static weir_status ask_why_inside(struct rig *rig, weir_context *context)
{
	char *text = NULL;

	if (weir_scheduler_explain_line(rig->scheduler, &text) != WEIR_E_INVALID || text)
		wr_fetch_add(&rig->broken, 1);
	return weir_context_finish(context);
}

static void xb16_a_worker_does_not_ask_about_its_own_run(void **state)
{
	struct rig *rig = rig_of("a:call");

	(void)state;
	rig_on(rig, "a", ask_why_inside);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb06_a_deadlock_says_which_queues_are_full_and_empty_and_what_to_do),
		cmocka_unit_test(xb06_a_circle_of_empty_queues_is_told_what_starts_it),
		cmocka_unit_test(xb06_entities_behind_a_cause_are_counted_not_listed),
		cmocka_unit_test(xb06_of_many_causes_some_are_told),
		cmocka_unit_test(xb07_a_full_queue_behind_an_optional_output_is_told),
		cmocka_unit_test(xb07_an_outlet_that_nothing_takes_from_is_told),
		cmocka_unit_test(xb07_an_open_inlet_is_told_to_keep_the_run_open),
		cmocka_unit_test(xb07_what_is_parked_with_nothing_unmet_is_told),
		cmocka_unit_test(xb07_a_loop_that_is_late_is_told),
		cmocka_unit_test(xb07_a_condition_named_like_a_port_is_not_taken_for_it),
		cmocka_unit_test(xb16_times_and_fences_are_told_with_their_age),
		cmocka_unit_test(xb16_a_compute_that_hangs_past_its_drain_is_named),
		cmocka_unit_test(xb16_a_program_is_told_that_a_run_drains_whatever_caused_it),
		cmocka_unit_test(xb16_a_run_that_is_over_has_nothing_to_tell),
		cmocka_unit_test(xb16_a_worker_does_not_ask_about_its_own_run),
	};

	rig_conditions = conditions;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a run that stands still is explained by: inlets, outlets, gates, circles, and what is left out. */
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "rig.h"

static void never_ready(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_wait(verdict, "not allowed");
}

static const weir_condition looks = {
	.size = sizeof looks, .name = "looks", .phase = WEIR_PHASE_CONTENT, .ask = never_ready};

/* The line that explains a running run after 10 ms equals the text. */
static void assert_stands_by(struct rig *rig, const char *line)
{
	char *text = NULL;

	weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	assert_int_equal(weir_scheduler_explain_line(rig->scheduler, &text), WEIR_OK);
	assert_string_equal(text, line);
	weir_text_free(text);
}

static void end(struct rig *rig)
{
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	rig_wait(rig);
	rig_destroy(rig);
}

/* --- inlets --- */

static void xb07_three_open_inlets_are_named_and_the_others_counted(void **state)
{
	static const char *const ports[] = {"p1.in", "p2.in", "p3.in", "p4.in", "p5.in", "p6.in"};
	struct rig *rig =
		rig_of("p1:pass -> e1:end; p2:pass -> e2:end; p3:pass -> e3:end; p4:pass -> e4:end; "
		       "p5:pass -> e5:end; p6:pass -> e6:end; source -> stuck:end enabled=false");
	weir_inlet *inlets[6];
	char *text = NULL;

	(void)state;
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(weir_graph_add_inlet(rig->graph, ports[i], &inlets[i]), WEIR_OK);
	rig_start(rig);
	weir_inlet_close(inlets[0]);
	weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	assert_int_equal(weir_scheduler_explain_line(rig->scheduler, &text), WEIR_OK);
	assert_non_null(strstr(text, "; no deadlock is reported while inlets are open: "));
	assert_string_equal(strstr(text, "; no deadlock") +
				    strlen("; no deadlock is reported while inlets are open: "),
			    "p6.in, p5.in, p4.in and 2 more");
	weir_text_free(text);
	end(rig);
}

static void xb07_open_inlets_are_not_blamed_while_an_entity_waits_for_a_time(void **state)
{
	struct rig *rig = rig_of("p:pass -> end; source period=1s -> e:end");
	weir_inlet *inlet = NULL;
	char *text = NULL;

	(void)state;
	assert_int_equal(weir_graph_add_inlet(rig->graph, "p.in", &inlet), WEIR_OK);
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	assert_int_equal(weir_scheduler_explain_line(rig->scheduler, &text), WEIR_OK);
	assert_says(text, "p.in has 0 of 1 messages: its inlet is open and nothing is pushed");
	assert_says(text, "(WAIT_TIME)");
	assert_null(strstr(text, "no deadlock is reported"));
	weir_text_free(text);
	end(rig);
}

/* --- gates --- */

static void c08_a_content_condition_is_not_told_while_a_gate_of_its_entity_is_closed(void **state)
{
	struct rig *rig = rig_of("camera:source ticks=1 work=50ms -> end condition=looks");

	(void)state;
	rig->options.deadlock_grace_ns = INT64_MAX;
	rig_start(rig);
	assert_stands_by(rig, "end waits: gate on in: waits for device work on 'in': 1 fence pending, "
			      "oldest 10 ms, producer camera (WAIT_EVENT)");
	assert_string_equal(rig_explain(rig), "end: gate on in: WAIT_EVENT (waits for device work on 'in': "
					      "1 fence pending, oldest 10 ms, producer camera)\n");
	weir_scheduler_wait(rig->scheduler, 50 * MS, NULL);
	assert_stands_by(rig, "end waits: looks: not allowed (WAIT)");
	assert_string_equal(rig_explain(rig), "end: looks: WAIT (not allowed)\n");
	end(rig);
}

static void c08_a_content_condition_keeps_its_entity_waiting_once_the_gate_has_opened(void **state)
{
	struct rig *rig = rig_of("camera:source ticks=1 work=50ms -> end condition=looks");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_string_equal(rig->outcome.text, "end waits: looks: not allowed (WAIT)");
	assert_string_equal(rig->outcome.waiting, "end (looks: not allowed)");
	assert_true(rig->outcome.duration_ns >= 50 * MS);
	rig_destroy(rig);
}

/* --- circles --- */

static void xb06_a_circle_after_the_last_cause_told_is_counted(void **state)
{
	char text[RIG_TEXT] = "";
	struct rig *rig;

	(void)state;
	for (int i = 0; i < 8; i++)
		snprintf(text + strlen(text), 96, "s%d:source -> e%d:end enabled=false; ", i, i);
	strcat(text, "a:pass capacity=2 take=2 -> b:pass -> a initial_messages=1; a.out max_emits=2; "
		     "a.out2 max_emits=2; b.in capacity=2");
	rig = rig_of(text);
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_says(rig->outcome.text,
		    "e7 waits: boolean: disabled (WAIT); and 1 more causes; 8 others wait behind them");
	assert_null(strstr(rig->outcome.text, "circular wait"));
	rig_destroy(rig);
}

/* --- from inside --- */

static _Atomic unsigned explained;

static void count_line(const weir_unmet *unmet, void *arg)
{
	(void)unmet;
	(void)arg;
	wr_fetch_add(&explained, 1);
}

static weir_status explain_inside(struct rig *rig, weir_context *context)
{
	weir_scheduler_explain(rig->scheduler, count_line, NULL);
	return weir_context_finish(context);
}

static void xb16_a_worker_that_asks_for_all_causes_of_its_own_run_gets_none(void **state)
{
	struct rig *rig = rig_of("a:call; source -> stuck:end enabled=false");

	(void)state;
	wr_store(&explained, 0);
	rig_on(rig, "a", explain_inside);
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_int_equal(rig_ticks(rig, "a"), 1);
	assert_int_equal(wr_load(&explained), 0);
	rig_destroy(rig);
}

/* --- outlets, needs, several threads --- */

static void xb07_an_early_outlet_that_nothing_takes_from_is_told(void **state)
{
	struct rig *rig = rig_of("source work=1us -> p:pass -> end");
	weir_outlet *outlet = NULL;

	(void)state;
	assert_int_equal(weir_graph_add_outlet(rig->graph, "p.out2", 1, WEIR_OUTLET_EARLY, &outlet), WEIR_OK);
	rig_start(rig);
	assert_stands_by(rig, "p.out2 -> outlet is full (1 of 1): nothing takes from the outlet; 2 others "
			      "wait behind it");
	end(rig);
}

static void xb06_the_number_that_a_condition_needs_is_told(void **state)
{
	struct rig *rig = rig_of("source enabled=false -> end min=2 take=3 capacity=4");

	(void)state;
	rig->options.deadlock_grace_ns = INT64_MAX;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	assert_says(rig_explain(rig), "end.in has 0 of 2 messages from source.out"); /* not of 3 */
	end(rig);
}

static void ask_for_line(void *arg)
{
	struct rig *rig = arg;

	for (int i = 0; i < 4; i++) {
		char *text = NULL;

		HOLDS(rig, !weir_scheduler_explain_line(rig->scheduler, &text));
		HOLDS(rig, text && !strcmp(text,
					   "stuck waits: boolean: disabled (WAIT); 1 other waits behind it"));
		weir_text_free(text);
	}
}

static void ask_at_once(void)
{
	struct rig *rig = rig_of("source -> stuck:end enabled=false");
	struct wr_thread threads[3];

	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wr_thread_start(&threads[i], "asker", ask_for_line, rig), WEIR_OK);
	for (int i = 0; i < 3; i++)
		wr_thread_join(&threads[i]);
	assert_int_equal(wr_load(&rig->broken), 0);
	rig_destroy(rig);
}

static void c05_several_threads_may_ask_between_two_runs(void **state)
{
	(void)state;
	rig_in_worlds(50, ask_at_once);
	rig_on_host(ask_at_once);
}

int main(void)
{
	static const weir_condition *const conditions[] = {&looks, NULL};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb07_three_open_inlets_are_named_and_the_others_counted),
		cmocka_unit_test(xb07_open_inlets_are_not_blamed_while_an_entity_waits_for_a_time),
		cmocka_unit_test(c08_a_content_condition_is_not_told_while_a_gate_of_its_entity_is_closed),
		cmocka_unit_test(c08_a_content_condition_keeps_its_entity_waiting_once_the_gate_has_opened),
		cmocka_unit_test(xb06_a_circle_after_the_last_cause_told_is_counted),
		cmocka_unit_test(xb16_a_worker_that_asks_for_all_causes_of_its_own_run_gets_none),
		cmocka_unit_test(xb07_an_early_outlet_that_nothing_takes_from_is_told),
		cmocka_unit_test(xb06_the_number_that_a_condition_needs_is_told),
		cmocka_unit_test(c05_several_threads_may_ask_between_two_runs),
	};

	rig_backend = "sim";
	rig_conditions = conditions;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

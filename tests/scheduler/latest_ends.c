/* Ports with the policy `latest` at the ends: the first message, a hold, a failure, a drain, the end of a
 * run. */
#include <string.h>

#include "rig.h"

static struct rig *started(const char *text)
{
	struct rig *rig = rig_of(text);

	rig->options.drain_ns = 200 * MS;
	rig_make(rig);
	rig_start(rig);
	return rig;
}

/* --- the first message --- */

static weir_status expect_shown(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_context_count(context, 1) == 1);
	return WEIR_OK;
}

/* The device completes at any instant of a review: the answer of one look counts. */
static void poked_meanwhile(void)
{
	for (int i = 0; i < 100; i++) {
		struct rig *rig = rig_of(
			"f:source ticks=1 -> e:host; s:source ticks=1 work=50us -> e.in2 policy=latest");
		weir_status status = WEIR_E_TIMEOUT;

		rig_on(rig, "e", expect_shown);
		rig_make(rig);
		rig_start(rig);
		while (status == WEIR_E_TIMEOUT) {
			weir_entity_poke(weir_graph_entity(rig->graph, "e"));
			status = weir_scheduler_wait(rig->scheduler, 0, &rig->outcome);
		}
		assert_int_equal(rig_wait(rig), WEIR_OK);
		assert_int_equal(rig_ticks(rig, "e"), 1);
		rig_destroy(rig);
	}
}

static void c04_c08_no_tick_begins_before_something_is_shown(void **state)
{
	(void)state;
	rig_on_host(poked_meanwhile);
}

/* --- a condition that waits for a newer message --- */

static weir_graph *late_graph; /* not NULL: the next question finds a fence pending, and completes it */
static weir_fence late;

static void newer_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	const weir_message *shown = weir_view_message(view, 0, 0);
	weir_graph *graph = late_graph;

	late_graph = NULL;
	if (graph && weir_fence_query(graph, late) == WEIR_E_BUSY)
		assert_int_equal(weir_fence_complete(graph, late, WEIR_OK, NULL), WEIR_OK);

	if (shown && shown != *(const weir_message *const *)state)
		weir_verdict_ready(verdict);
	else
		weir_verdict_wait(verdict, "nothing new");
}

static void newer_ticked(void *state, weir_view *view)
{
	*(const weir_message **)state = weir_view_message(view, 0, 0);
}

static const weir_parameter newer_parameters[] = {{.size = sizeof(weir_parameter),
						   .name = "port",
						   .type = WEIR_TYPE_INPUT,
						   .fallback = "\"in\"",
						   .help = "the port"},
						  {.name = NULL}};
static const weir_condition newer = {.size = sizeof(weir_condition),
				     .name = "newer",
				     .help = "what is shown is not what the last tick received",
				     .state_size = sizeof(const weir_message *),
				     .parameters = newer_parameters,
				     .phase = WEIR_PHASE_CONTENT,
				     .ask = newer_ask,
				     .ticked = newer_ticked};

static void each_newer_one(void)
{
	struct rig *rig =
		rig_of("s:source ticks=4 work=3ms period=10ms -> e:end policy=latest condition=newer");

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "e"), "0 1 2 3");
	assert_true(rig_done(rig, "e"));
	rig_destroy(rig);
}

static void c01_a_condition_that_waits_for_a_newer_message_is_asked_when_it_is_finished(void **state)
{
	(void)state;
	rig_everywhere(each_newer_one);
}

/* The review has looked, and nothing is armed yet: what completes then must not be lost. */
static void finished_between_two_looks(void)
{
	struct rig *rig = rig_of("e:end condition=newer; e.in policy=latest");
	weir_inlet *inlet = NULL;
	weir_message *message = rig_message(rig, 8);

	assert_int_equal(weir_graph_add_inlet(rig->graph, "e.in", &inlet), WEIR_OK);
	rig_start(rig);
	assert_int_equal(weir_inlet_push(inlet, rig_message(rig, 7), -1), WEIR_OK);
	weir_sleep(10 * MS);
	assert_int_equal(weir_graph_create_fence(rig->graph, &late), WEIR_OK);
	assert_int_equal(weir_message_add_producer(message, late), WEIR_OK);
	late_graph = rig->graph;
	assert_int_equal(weir_inlet_push(inlet, message, -1), WEIR_OK);
	weir_sleep(10 * MS);
	assert_null(late_graph);
	assert_string_equal(rig_text(rig, "e"), "7 8");
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void c01_a_message_that_is_finished_after_the_look_of_a_review_is_shown(void **state)
{
	(void)state;
	rig_in_worlds(5, finished_between_two_looks);
}

/* --- a hold --- */

static weir_status hold_in_between(struct rig *rig, weir_context *context)
{
	uint64_t tick = weir_context_tick(context);

	HOLDS(rig, weir_context_count(context, 1) == (tick == 2 || tick == 3 ? 0 : 1));
	if (tick == 1)
		HOLDS(rig, !weir_context_hold(context, 1, 0));
	if (tick == 3)
		HOLDS(rig, !weir_context_hold(context, 1, WEIR_HOLD_END));
	return WEIR_OK;
}

static void hold_two_ticks(void)
{
	struct rig *rig = rig_of(
		"f:source ticks=8 period=1ms -> e:host; s:source ticks=8 period=1ms -> e.in2 policy=latest");

	rig_on(rig, "e", hold_in_between);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "e"), 8);
	rig_destroy(rig);
}

static void c04_a_held_latest_port_gives_nothing(void **state)
{
	(void)state;
	rig_everywhere(hold_two_ticks);
}

/* Its one port is held from the first tick to the sixth. */
static weir_status hold_alone(struct rig *rig, weir_context *context)
{
	uint64_t tick = weir_context_tick(context);

	HOLDS(rig, weir_context_count(context, 0) == (tick && tick < 6 ? 0 : 1));
	if (!tick || tick == 5)
		HOLDS(rig, !weir_context_hold(context, 0, tick ? WEIR_HOLD_END : 0));
	return WEIR_OK;
}

static bool drains;

/* The sender ends, or the drain begins, within the hold. */
static void held_at_the_end(void)
{
	struct rig *rig = rig_of("s:source ticks=2 period=5ms -> e:host policy=latest period=10ms");

	rig_on(rig, "e", hold_alone);
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 25 * MS, NULL);
	if (drains)
		weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "e"), 7);
	rig_destroy(rig);
}

/* All has been received, so it is over when the hold ends. */
static void held_behind_the_end(void)
{
	struct rig *rig = rig_of("s:source ticks=1 -> e:host policy=latest period=10ms");

	rig_on(rig, "e", hold_alone);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "e"), 6);
	rig_destroy(rig);
}

static void s05_an_entity_that_holds_its_latest_port_goes_on_after_the_last_message(void **state)
{
	(void)state;
	rig_in_worlds(5, held_behind_the_end);
}

static void s05_s07_what_comes_in_a_hold_is_shown_after_it(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		drains = i;
		rig_in_worlds(5, held_at_the_end);
	}
}

static weir_status hold_second(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_hold(context, 1, 0);
}

/* Both have a message whose device work is pending. */
static void held_beside_a_gate(void)
{
	struct rig *rig = rig_of("f:source ticks=2 period=50ms work=20ms -> e:host; e.in2 policy=latest");
	weir_inlet *inlet = NULL;
	weir_message *message = rig_message(rig, 8);
	weir_fence fence;

	rig_on(rig, "e", hold_second);
	assert_int_equal(weir_graph_add_inlet(rig->graph, "e.in2", &inlet), WEIR_OK);
	rig_start(rig);
	assert_int_equal(weir_inlet_push(inlet, rig_message(rig, 7), -1), WEIR_OK);
	weir_scheduler_wait(rig->scheduler, 30 * MS, NULL);
	assert_int_equal(weir_graph_create_fence(rig->graph, &fence), WEIR_OK);
	assert_int_equal(weir_message_add_producer(message, fence), WEIR_OK);
	assert_int_equal(weir_inlet_push(inlet, message, -1), WEIR_OK);
	weir_scheduler_wait(rig->scheduler, 30 * MS, NULL);
	assert_says(rig_explain(rig), "e: gate on in: WAIT");
	assert_null(strstr(rig->explained, "gate on in2"));
	assert_int_equal(weir_fence_complete(rig->graph, fence, WEIR_OK, NULL), WEIR_OK);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "e"), 2);
	rig_destroy(rig);
}

static void c05_an_explanation_names_no_gate_of_a_port_that_is_held(void **state)
{
	(void)state;
	rig_in_worlds(5, held_beside_a_gate);
}

/* --- a failure --- */

static void fail_behind_what_is_shown(void)
{
	struct rig *rig = rig_of("f:source ticks=100 period=1ms -> e:end; e.in2 policy=latest");
	weir_inlet *inlet = NULL;
	weir_message *message = rig_message(rig, 8);
	weir_fence fence;

	assert_int_equal(weir_graph_add_inlet(rig->graph, "e.in2", &inlet), WEIR_OK);
	rig_start(rig);
	assert_int_equal(weir_inlet_push(inlet, rig_message(rig, 7), -1), WEIR_OK);
	weir_sleep(10 * MS);
	assert_int_equal(weir_graph_create_fence(rig->graph, &fence), WEIR_OK);
	assert_int_equal(weir_message_add_producer(message, fence), WEIR_OK);
	assert_int_equal(weir_inlet_push(inlet, message, -1), WEIR_OK);
	weir_sleep(10 * MS);
	assert_int_equal(weir_fence_complete(rig->graph, fence, WEIR_E_IO, "the camera is gone"), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_E_IO);
	assert_says(rig->outcome.text, "the camera is gone");
	rig_destroy(rig);
}

static void t17_e01_a_failure_behind_what_is_shown_ends_the_run(void **state)
{
	(void)state;
	rig_in_worlds(5, fail_behind_what_is_shown);
}

/* --- drains and ends --- */

static const char *drained_text;

static void drain_while_the_sender_waits(void)
{
	struct rig *rig = started(drained_text);

	weir_sleep(20 * MS);
	rig_tell(rig, "s", WEIR_TOLD_WAIT);
	weir_sleep(20 * MS);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_not_equal(weir_scheduler_wait(rig->scheduler, 5 * SECOND, &rig->outcome), WEIR_E_TIMEOUT);
	rig_destroy(rig);
}

static void s07_what_is_shown_does_not_keep_a_drain_going(void **state)
{
	static const char *const texts[] = {
		"a:source ticks=100 period=5ms -> s:rig_pass enabled=true -> e:rig_pass policy=latest "
		"period=1ms -> k:end",
		"a:source ticks=100 period=5ms -> s:rig_pass enabled=true -> e:rig_pass work=100us "
		"policy=latest "
		"period=1ms -> k:end policy=latest period=100s",
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		drained_text = texts[i];
		rig_in_worlds(5, drain_while_the_sender_waits);
	}
}

static void drain_what_waits(void)
{
	struct rig *rig = started("s:source work=2ms period=3ms -> e:end policy=latest period=1ms");

	weir_sleep(20 * MS);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_true(rig_done(rig, "e"));
	assert_int_equal(rig_queue(rig, "e.in").delivered, rig_queue(rig, "e.in").pushed);
	rig_destroy(rig);
}

static void s07_a_drain_shows_the_last_message(void **state)
{
	(void)state;
	rig_in_worlds(20, drain_what_waits);
}

/* The first message is being written, or the second one has not been received, when the drain begins. */
static void drain_before_the_tick(void)
{
	struct rig *rig = started("s:source ticks=1 work=50ms -> e:end policy=latest");

	weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "e"), "0");
	rig_destroy(rig);
	rig = started("s:source period=10ms -> e:end policy=latest period=100ms");
	weir_scheduler_wait(rig->scheduler, 15 * MS, NULL);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "e"), "0 1");
	rig_destroy(rig);
}

static void s07_a_drain_waits_for_the_work_or_the_time_of_the_last_message(void **state)
{
	(void)state;
	rig_in_worlds(5, drain_before_the_tick);
}

static void a_long_period(void)
{
	struct rig *rig = rig_of("s:source ticks=1 -> e:end policy=latest period=1000s");

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "e"), "0");
	assert_true(rig->outcome.duration_ns < SECOND);
	rig_destroy(rig);
}

static void s05_an_entity_with_latest_ports_alone_ends_before_its_next_time(void **state)
{
	(void)state;
	rig_in_worlds(20, a_long_period);
}

static void disabled_with_something_shown(void)
{
	struct rig *rig =
		started("s:source ticks=30 period=1ms -> e:end policy=latest period=1ms enabled=true");
	weir_queue_counts counts;

	weir_sleep(10 * MS);
	rig_tell(rig, "e", WEIR_TOLD_WAIT);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	counts = rig_queue(rig, "e.in");
	assert_int_equal(rig->outcome.held, 0);
	assert_int_equal(rig->outcome.leftover, counts.queued);
	assert_true(counts.queued > 0);
	rig_destroy(rig);
}

static void s06_what_is_shown_is_held_by_nobody_when_the_run_is_over(void **state)
{
	(void)state;
	rig_in_worlds(5, disabled_with_something_shown);
}

int main(void)
{
	static const weir_condition *const conditions[] = {&newer, NULL};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c04_c08_no_tick_begins_before_something_is_shown),
		cmocka_unit_test(c01_a_condition_that_waits_for_a_newer_message_is_asked_when_it_is_finished),
		cmocka_unit_test(c01_a_message_that_is_finished_after_the_look_of_a_review_is_shown),
		cmocka_unit_test(c04_a_held_latest_port_gives_nothing),
		cmocka_unit_test(s05_an_entity_that_holds_its_latest_port_goes_on_after_the_last_message),
		cmocka_unit_test(s05_s07_what_comes_in_a_hold_is_shown_after_it),
		cmocka_unit_test(c05_an_explanation_names_no_gate_of_a_port_that_is_held),
		cmocka_unit_test(t17_e01_a_failure_behind_what_is_shown_ends_the_run),
		cmocka_unit_test(s07_what_is_shown_does_not_keep_a_drain_going),
		cmocka_unit_test(s07_a_drain_shows_the_last_message),
		cmocka_unit_test(s07_a_drain_waits_for_the_work_or_the_time_of_the_last_message),
		cmocka_unit_test(s05_an_entity_with_latest_ports_alone_ends_before_its_next_time),
		cmocka_unit_test(s06_what_is_shown_is_held_by_nobody_when_the_run_is_over),
	};

	rig_conditions = conditions;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The verdicts of several conditions become one (C2, C3), also beside gates (C8); what is said of a condition
 * that gives no reason.
 */
#include <stdio.h>

#include "rig_inside.h"
#include "rig_streams.h"

/* --- conditions --- */

static _Atomic bool allowed;
static unsigned asked; /* of `once`, and of `fenced_0` */
static int64_t due[2], second_ask, began;
static weir_fence fences[2];

static void ask_never(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_never(verdict, "not wanted");
}

static void ask_ready(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_ready(verdict);
}

static void ask_nothing(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	(void)verdict;
}

static void ask_unexplained(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	if (wr_load(&allowed))
		weir_verdict_ready(verdict);
	else
		weir_verdict_wait(verdict, NULL);
}

static void ask_timed(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (weir_view_now(view) >= due[0])
		weir_verdict_ready(verdict);
	else
		weir_verdict_until(verdict, due[0]);
}

/* Names a time that has come, once before each tick. */
static void ask_once(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	if (asked++ % 2)
		weir_verdict_ready(verdict);
	else
		weir_verdict_until(verdict, 1);
}

static void ask_fenced(weir_view *view, weir_verdict *verdict, int i)
{
	if (weir_fence_query(rig_view_graph(view), fences[i]) != WEIR_E_BUSY) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_fence(verdict, fences[i]);
	if (weir_view_now(view) < due[i])
		weir_verdict_until(verdict, due[i]);
}

static void ask_fenced_0(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (asked++ == 1)
		second_ask = weir_view_now(view);
	ask_fenced(view, verdict, 0);
}

static void ask_fenced_1(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	ask_fenced(view, verdict, 1);
}

static void note_begin(void *state, weir_view *view)
{
	(void)state;
	began = weir_view_began(view);
}

#define GATHERING(table)                                                                                     \
	{                                                                                                    \
		.size = sizeof(weir_condition), .name = #table, .ask = ask_##table                           \
	}
#define CONTENT(text, function, ports)                                                                       \
	{                                                                                                    \
		.size = sizeof(weir_condition), .name = text, .ask = function, .phase = WEIR_PHASE_CONTENT,  \
		.parameters = ports                                                                          \
	}

static const weir_parameter in2[] = {{.size = sizeof(weir_parameter),
				      .name = "port",
				      .type = WEIR_TYPE_INPUT,
				      .fallback = "\"in2\"",
				      .help = "the second input"},
				     {.name = NULL}};
static const weir_condition never = GATHERING(never), unexplained = GATHERING(unexplained),
			    timed = GATHERING(timed), once = GATHERING(once), fenced_0 = GATHERING(fenced_0),
			    fenced_1 = GATHERING(fenced_1),
			    content_never = CONTENT("content_never", ask_never, NULL),
			    content_nothing = CONTENT("content_nothing", ask_nothing, NULL),
			    in2_never = CONTENT("in2_never", ask_never, in2),
			    in2_ready = CONTENT("in2_ready", ask_ready, in2),
			    in2_nothing = CONTENT("in2_nothing", ask_nothing, in2),
			    begun = {.size = sizeof begun,
				     .name = "begun",
				     .ask = ask_ready,
				     .ticked = note_begin};
static const weir_condition *const conditions[] = {
	&never,           &unexplained, &timed,     &once,        &fenced_0, &fenced_1, &content_never,
	&content_nothing, &in2_never,   &in2_ready, &in2_nothing, &begun,    NULL};

/* --- C2, C3 --- */

static int sleep_long(const void *arguments)
{
	(void)arguments;
	weir_sleep(SECOND);
	return 0;
}

static const weir_kernel long_kernel = {sizeof(weir_kernel), "sleep_long", sleep_long, NULL};

/* Work of a second on each of two streams of the program, and conditions that wait for it, or for a time. */
static int64_t asked_again_after(int64_t due_0, int64_t due_1)
{
	struct rig *rig = rig_of("source ticks=1 condition=fenced_0 condition=fenced_1 -> end");
	int64_t after;

	rig_make(rig);
	for (int i = 0; i < 2; i++) {
		weir_stream *stream = NULL;
		assert_int_equal(weir_graph_add_stream(rig->graph, 0, &stream), WEIR_OK);
		assert_int_equal(weir_stream_launch(stream, &long_kernel, "", 1), WEIR_OK);
		assert_int_equal(weir_stream_record(stream, &fences[i]), WEIR_OK);
	}
	asked = 0;
	due[0] = SECOND + due_0; /* a world begins at 1 s */
	due[1] = SECOND + due_1;
	assert_int_equal(rig_run(rig), WEIR_OK);
	after = second_ask - SECOND;
	assert_string_equal(rig_text(rig, "end"), "0");
	rig_destroy(rig);
	return after;
}

static void c02_of_the_times_beside_fences_the_earlier_is_armed(void **state)
{
	(void)state;
	assert_in_range(asked_again_after(20 * MS, 50 * MS), 20 * MS, 21 * MS);
	assert_in_range(asked_again_after(50 * MS, 20 * MS), 20 * MS, 21 * MS);
}

/* Both inputs of j lack messages, but at the times at which its senders tick. */
static weir_status look_at_join(struct rig *rig, weir_context *context)
{
	if (weir_context_tick(context) % 10 && rig_waits_on(rig, "j") != 0)
		rig_break(rig);
	return WEIR_OK;
}

static void c02_of_several_waits_for_pokes_the_first_is_published_in_every_review(void **state)
{
	struct rig *rig = rig_of(
		"a:source ticks=5 period=10ms -> j:pass -> end; b:source ticks=5 period=10ms -> j.in2; "
		"look:call period=3ms count=14");

	(void)state;
	rig_on(rig, "look", look_at_join);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void c03_a_time_that_has_come_may_be_named_once_before_each_tick(void **state)
{
	static const char *const texts[] = {"source ticks=3 condition=once -> end",
					    "source ticks=3 condition=once -> end capacity=4"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct rig *rig = rig_of(texts[i]);
		asked = 0;
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(rig_text(rig, "end"), "0 1 2");
		assert_int_equal(asked, 6);
		rig_destroy(rig);
	}
}

static void c03_a_condition_is_told_when_its_entity_was_found_ready(void **state)
{
	struct rig *rig = rig_of("source ticks=1 delay=5ms condition=begun -> end");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(began, SECOND, SECOND + MS); /* not when its compute had ended */
	rig_destroy(rig);
}

/* --- content conditions, and beside gates --- */

static void c04_a_content_condition_that_says_never_ends_its_entity(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end condition=content_never");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(rig_done(rig, "end"));
	assert_int_equal(rig_ticks(rig, "end"), 0);
	rig_destroy(rig);
}

static void c04_a_content_condition_gives_a_verdict_too(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end condition=content_nothing");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_INVALID);
	assert_says(rig->outcome.text, "condition 'content_nothing' gave no verdict");
	rig_destroy(rig);
}

/* `end` has device work of a second in its first input; the condition of the second is asked, or not. */
static struct rig *rig_beside_gate(const char *condition)
{
	char text[200];
	struct rig *rig;

	snprintf(text, sizeof text,
		 "slow:source ticks=1 work=1s -> end condition=%s; quick:source ticks=1 -> end.in2",
		 condition);
	rig = rig_of(text);
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	return rig;
}

static void c08_a_condition_of_a_port_without_a_waiting_gate_is_asked(void **state)
{
	struct rig *rig = rig_beside_gate("in2_never");

	(void)state;
	assert_true(rig_done(rig, "end"));
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 0);
	rig_destroy(rig);
	rig = rig_beside_gate("in2_nothing");
	assert_int_equal(rig_wait(rig), WEIR_E_INVALID);
	assert_says(rig->outcome.text, "condition 'in2_nothing' gave no verdict");
	rig_destroy(rig);
}

static void c08_a_condition_that_holds_beside_a_gate_leaves_the_entity_waiting(void **state)
{
	struct rig *rig = rig_beside_gate("in2_ready");

	(void)state;
	assert_false(rig_done(rig, "end"));
	assert_int_equal(rig_ticks(rig, "end"), 0);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0|0");
	rig_destroy(rig);
}

static void c08_a_condition_that_names_no_port_waits_for_every_gate(void **state)
{
	struct rig *rig = rig_beside_gate("content_never");

	(void)state;
	assert_false(rig_done(rig, "end"));
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_true(rig_done(rig, "end"));
	assert_int_equal(rig_ticks(rig, "end"), 0);
	rig_destroy(rig);
}

/* --- without a reason --- */

static void c05_a_wait_without_a_reason_is_told_as_not_ready(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end condition=unexplained");

	(void)state;
	wr_store(&allowed, false);
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_says(rig_explain(rig), "end: unexplained: WAIT (not ready)");
	assert_string_equal(rig->outcome.waiting, "end (unexplained: not ready)");
	rig_destroy(rig);
}

static void c05_a_time_without_a_reason_is_told_as_a_time(void **state)
{
	struct rig *rig = rig_of("source ticks=1 condition=timed -> end");

	(void)state;
	due[0] = SECOND + 30 * MS;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	assert_says(rig_explain(rig), "source: timed: WAIT_TIME (waits for its time, due in 20 ms)");
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

/* Nothing pokes the entity when its condition begins to hold, and then no condition can be blamed. */
static void s06_a_condition_that_holds_without_a_poke_is_a_deadlock_all_the_same(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end condition=unexplained");

	(void)state;
	wr_store(&allowed, false);
	rig->options.deadlock_grace_ns = 100 * MS;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	wr_store(&allowed, true);
	assert_int_equal(rig_wait(rig), WEIR_E_DEADLOCK);
	assert_string_equal(rig->outcome.text, "messages are queued that no condition waits for");
	assert_int_equal(rig->outcome.leftover, 1);
	rig_destroy(rig);
}

static void s07_c05_a_root_that_would_tick_says_that_the_run_drains(void **state)
{
	struct rig *rig = rig_of("source ticks=1 condition=unexplained -> end");

	(void)state;
	wr_store(&allowed, false);
	rig->options.deadlock_grace_ns = INT64_MAX;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	wr_store(&allowed, true);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN); /* the world stands still until the next call */
	assert_says(rig_explain(rig), "source: drain: NEVER (draining)");
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

/* --- C6 --- */

static void c06_only_an_entity_with_a_boolean_condition_is_enabled_and_disabled(void **state)
{
	struct rig *rig = rig_of("source period=1ms condition=unexplained -> end; other:source enabled=true "
				 "period=1ms -> e:end");
	weir_entity *plain = weir_graph_entity(rig->graph, "source"),
		    *other = weir_graph_entity(rig->graph, "other");
	uint64_t ticks;

	(void)state;
	wr_store(&allowed, true);
	rig_start(rig);
	assert_int_equal(weir_entity_tell(plain, "boolean", WEIR_TOLD_WAIT), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(),
			    "source has no condition 'boolean': add it to \"conditions\" of the entity");
	weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	assert_int_equal(weir_entity_tell(other, "boolean", WEIR_TOLD_WAIT), WEIR_OK);
	weir_scheduler_wait(rig->scheduler, 20 * MS, NULL);
	ticks = rig_ticks(rig, "other");
	assert_in_range(ticks, 9, 12);
	assert_int_equal(weir_entity_tell(other, "boolean", WEIR_TOLD_READY), WEIR_OK);
	weir_scheduler_wait(rig->scheduler, 20 * MS, NULL);
	assert_true(rig_ticks(rig, "other") > ticks);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(c02_of_the_times_beside_fences_the_earlier_is_armed),
		cmocka_unit_test(c02_of_several_waits_for_pokes_the_first_is_published_in_every_review),
		cmocka_unit_test(c03_a_time_that_has_come_may_be_named_once_before_each_tick),
		cmocka_unit_test(c03_a_condition_is_told_when_its_entity_was_found_ready),
		cmocka_unit_test(c04_a_content_condition_that_says_never_ends_its_entity),
		cmocka_unit_test(c04_a_content_condition_gives_a_verdict_too),
		cmocka_unit_test(c08_a_condition_of_a_port_without_a_waiting_gate_is_asked),
		cmocka_unit_test(c08_a_condition_that_holds_beside_a_gate_leaves_the_entity_waiting),
		cmocka_unit_test(c08_a_condition_that_names_no_port_waits_for_every_gate),
		cmocka_unit_test(c05_a_wait_without_a_reason_is_told_as_not_ready),
		cmocka_unit_test(c05_a_time_without_a_reason_is_told_as_a_time),
		cmocka_unit_test(s06_a_condition_that_holds_without_a_poke_is_a_deadlock_all_the_same),
		cmocka_unit_test(s07_c05_a_root_that_would_tick_says_that_the_run_drains),
		cmocka_unit_test(c06_only_an_entity_with_a_boolean_condition_is_enabled_and_disabled),
	};

	rig_conditions = conditions;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * What a condition may ask of its view (C1): each call about a port that the entity lacks answers 0 and fails
 * the run by the condition's name; each call about a port that it has answers as weir.h says.
 */
#include <stdio.h>
#include <string.h>

#include "rig_inside.h"

enum { LACKING = 7, NO_ANSWER = 99 };

static _Atomic uint64_t answer;

/* --- ports that the entity lacks --- */

static uint64_t ask_count(weir_view *view)
{
	return weir_view_count(view, LACKING);
}

static uint64_t ask_take(weir_view *view)
{
	return weir_view_take(view, LACKING);
}

static uint64_t ask_connected(weir_view *view)
{
	return weir_view_connected(view, LACKING);
}

static uint64_t ask_closed(weir_view *view)
{
	return weir_view_closed(view, LACKING);
}

static uint64_t ask_ended(weir_view *view)
{
	return weir_view_ended(view, LACKING, 1);
}

static uint64_t ask_message(weir_view *view)
{
	return weir_view_message(view, LACKING, 0) != NULL;
}

static uint64_t ask_pending(weir_view *view)
{
	return weir_view_pending(view, LACKING, 0, NULL);
}

static uint64_t ask_room(weir_view *view)
{
	return weir_view_room(view, LACKING);
}

static uint64_t ask_receivers_done(weir_view *view)
{
	return weir_view_receivers_done(view, LACKING);
}

static uint64_t (*asked)(weir_view *view); /* before the run starts */

static void ask_lacking(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	wr_store(&answer, asked(view));
	weir_verdict_ready(verdict);
}

static const weir_condition lacking = {.size = sizeof lacking, .name = "lacking", .ask = ask_lacking};
static const weir_condition lacking_content = {.size = sizeof lacking_content,
					       .name = "lacking_content",
					       .phase = WEIR_PHASE_CONTENT,
					       .ask = ask_lacking};

static void assert_refused(uint64_t (*ask)(weir_view *view), const char *condition, const char *port)
{
	char graph[128], text[256];
	struct rig *rig;

	snprintf(graph, sizeof graph, "source ticks=1 -> end condition=%s", condition);
	snprintf(text, sizeof text,
		 "condition '%s' asked about an %s that the entity does not have: "
		 "take the index from weir_values_int",
		 condition, port);
	rig = rig_of(graph);
	asked = ask;
	wr_store(&answer, NO_ANSWER);
	assert_int_equal(rig_run(rig), WEIR_E_INVALID);
	assert_int_equal(wr_load(&answer), 0);
	assert_string_equal(rig->outcome.entity, "end");
	assert_string_equal(rig->outcome.text, text);
	assert_string_equal(rig_text(rig, "end"), "");
	rig_destroy(rig);
}

static void c01_each_call_about_an_input_that_lacks_answers_0_and_names_the_condition(void **state)
{
	static uint64_t (*const calls[])(weir_view * view) = {ask_count, ask_take, ask_connected, ask_closed,
							      ask_ended};

	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		assert_refused(calls[i], "lacking", "input");
		assert_refused(calls[i], "lacking_content", "input");
	}
}

static void c04_each_call_about_a_front_that_lacks_answers_0_and_names_the_condition(void **state)
{
	(void)state;
	assert_refused(ask_message, "lacking_content", "input");
	assert_refused(ask_pending, "lacking_content", "input");
}

static void c01_each_call_about_an_output_that_lacks_answers_0_and_names_the_condition(void **state)
{
	(void)state;
	assert_refused(ask_room, "lacking", "output");
	assert_refused(ask_receivers_done, "lacking", "output");
}

/* --- ports that it has: "in", "in2" and "any" of an `end`, in this order --- */

static struct {
	size_t count, take, front;
	bool connected, closed, ended, after_last;
} seen[3];

static void ask_ports(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		seen[i].count = weir_view_count(view, i);
		seen[i].take = weir_view_take(view, i);
		seen[i].connected = weir_view_connected(view, i);
		seen[i].closed = weir_view_closed(view, i);
		seen[i].ended = weir_view_ended(view, i, 1);
		seen[i].front = 0;
		while (weir_view_message(view, i, seen[i].front))
			seen[i].front++;
		seen[i].after_last = weir_view_message(view, i, seen[i].front + 1);
	}
	weir_verdict_ready(verdict);
}

static const weir_condition ports = {
	.size = sizeof ports, .name = "ports", .phase = WEIR_PHASE_CONTENT, .ask = ask_ports};

static void c04_a_view_tells_of_each_port_what_the_next_tick_finds(void **state)
{
	struct rig *rig = rig_of("a:source ticks=2 -> end take=2 capacity=2 condition=ports; "
				 "b:source ticks=1 -> end.any; c:source ticks=1 -> end.any");

	(void)state;
	rig->options.workers = 1;
	memset(seen, 0, sizeof seen);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 1);
	assert_true(seen[0].connected && seen[2].connected);
	assert_true(seen[0].count == 2 && seen[0].take == 2 && seen[0].front == 2);
	assert_true(seen[2].count == 2 && seen[2].take == 1 && seen[2].front == 2);
	for (unsigned i = 0; i < 3; i++)
		assert_false(seen[i].after_last);
	rig_destroy(rig);
}

static void c04_a_port_without_a_connection_is_empty_and_never_ends(void **state)
{
	struct rig *rig = rig_of("a:source ticks=1 -> end condition=ports");

	(void)state;
	memset(seen, 0xff, sizeof seen);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 1);
	for (unsigned i = 1; i < 3; i++) {
		assert_true(!seen[i].count && !seen[i].front);
		assert_true(!seen[i].connected && !seen[i].closed && !seen[i].ended);
	}
	rig_destroy(rig);
}

/* Of a `latest` port, and of nine connections. */
static void c04_a_view_shows_the_messages_of_every_kind_of_front(void **state)
{
	struct rig *rig = rig_of("a:source ticks=1 -> end policy=latest condition=ports; "
				 "b:source ticks=1 -> end.in2; c:source ticks=1 -> end.in2; "
				 "d:source ticks=1 -> end.in2; e:source ticks=1 -> end.in2; "
				 "f:source ticks=1 -> end.in2; g:source ticks=1 -> end.in2; "
				 "h:source ticks=1 -> end.in2; i:source ticks=1 -> end.in2; "
				 "j:source ticks=1 -> end.in2");

	(void)state;
	memset(seen, 0, sizeof seen);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(seen[0].front, 1);
	assert_int_equal(seen[1].front, 1);
	for (unsigned i = 0; i < 2; i++)
		assert_false(seen[i].after_last);
	rig_destroy(rig);
}

static uint64_t last_words; /* 1: the closed port lacks what a tick takes; 2: it has what was asked for */

static void ask_last(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (weir_view_closed(view, 0) && weir_view_count(view, 0) == 1)
		last_words = (weir_view_ended(view, 0, 0) ? 1 : 0) + (weir_view_ended(view, 0, 1) ? 0 : 2);
	weir_verdict_ready(verdict);
}

static const weir_condition last = {.size = sizeof last, .name = "last", .ask = ask_last};

static void c04_a_port_has_ended_where_fewer_are_left_than_a_tick_takes(void **state)
{
	struct rig *rig = rig_of("a:source ticks=3 -> end take=2 capacity=2 condition=last");

	(void)state;
	last_words = 0;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 1);
	assert_int_equal(last_words, 3);
	rig_destroy(rig);
}

/* --- the cause of a wait --- */

static void ask_memory(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_wait(verdict, "waits for memory of its own");
	weir_verdict_set_cause(verdict, WEIR_CAUSE_MEMORY, 0, 1);
}

static const weir_condition memory = {.size = sizeof memory, .name = "memory", .ask = ask_memory};

/* Only the scheduler numbers pools: a port that is given as one is not taken for it. */
static void c05_a_condition_that_waits_for_memory_names_no_pool(void **state)
{
	struct rig *rig = rig_of("a:source ticks=1 -> end condition=memory");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_string_equal(rig->outcome.waiting, "end (memory: waits for memory of its own)");
	assert_int_equal(rig_waits_on(rig, "end"), UINT32_MAX);
	rig_destroy(rig);
}

/* --- the fences of a front --- */

static struct {
	size_t without_room, with_one, with_all;
	bool wrote_past, same_first, all_differ;
} pending;

static void ask_fences(const void *state, weir_view *view, weir_verdict *verdict)
{
	weir_fence one[2] = {{0}}, all[4] = {{0}};

	(void)state;
	if (pending.with_all)
		goto ready;
	pending.without_room = weir_view_pending(view, 0, 0, NULL);
	pending.with_one = weir_view_pending(view, 0, 1, one);
	pending.with_all = weir_view_pending(view, 0, 4, all);
	pending.wrote_past = one[1].stream || one[1].value || all[3].stream || all[3].value;
	pending.same_first = one[0].stream == all[0].stream && one[0].value == all[0].value;
	pending.all_differ = all[0].stream != all[1].stream && all[1].stream != all[2].stream &&
			     all[2].stream != all[0].stream;
ready:
	weir_verdict_ready(verdict);
}

static const weir_condition fences = {
	.size = sizeof fences, .name = "fences", .phase = WEIR_PHASE_CONTENT, .ask = ask_fences};

static void c04_incomplete_fences_are_counted_also_where_no_room_is_given_for_them(void **state)
{
	struct rig *rig =
		rig_of("a:source ticks=1 work=50ms -> end gated=false take=3 capacity=3 condition=fences; "
		       "b:source ticks=1 work=50ms -> end; c:source ticks=1 work=50ms -> end");

	(void)state;
	memset(&pending, 0, sizeof pending);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 1);
	assert_int_equal(pending.with_all, 3);
	assert_int_equal(pending.with_one, 3);
	assert_int_equal(pending.without_room, 3);
	assert_true(pending.same_first && pending.all_differ && !pending.wrote_past);
	rig_destroy(rig);
}

static void c04_fences_of_one_stream_are_counted_as_the_latest(void **state)
{
	struct rig *rig =
		rig_of("a:source ticks=3 work=50ms -> end gated=false take=3 capacity=3 condition=fences");

	(void)state;
	memset(&pending, 0, sizeof pending);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(pending.with_all, 1);
	assert_int_equal(pending.with_one, 1);
	assert_int_equal(pending.without_room, 1);
	assert_true(pending.same_first && !pending.wrote_past);
	rig_destroy(rig);
}

int main(void)
{
	static const weir_condition *const conditions[] = {&lacking, &lacking_content, &ports, &last,
							   &memory,  &fences,          NULL};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c01_each_call_about_an_input_that_lacks_answers_0_and_names_the_condition),
		cmocka_unit_test(c04_each_call_about_a_front_that_lacks_answers_0_and_names_the_condition),
		cmocka_unit_test(c01_each_call_about_an_output_that_lacks_answers_0_and_names_the_condition),
		cmocka_unit_test(c04_a_view_tells_of_each_port_what_the_next_tick_finds),
		cmocka_unit_test(c04_a_view_shows_the_messages_of_every_kind_of_front),
		cmocka_unit_test(c04_a_port_has_ended_where_fewer_are_left_than_a_tick_takes),
		cmocka_unit_test(c05_a_condition_that_waits_for_memory_names_no_pool),
		cmocka_unit_test(c04_a_port_without_a_connection_is_empty_and_never_ends),
		cmocka_unit_test(c04_incomplete_fences_are_counted_also_where_no_room_is_given_for_them),
		cmocka_unit_test(c04_fences_of_one_stream_are_counted_as_the_latest),
	};

	rig_conditions = conditions;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

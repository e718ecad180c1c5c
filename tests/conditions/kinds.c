#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "conditions/conditions.h"
#include "tests/conditions/rig.h"

#define TEST(name)              static void name(void **state_)
#define GIVEN(kind, parameters) struct rig rig = (((void)state_), rig_of(&(kind), parameters))

/* ---- message_available ---- */

TEST(c01_too_few_messages_wait_for_a_poke_alone)
{
	GIVEN(wr_message_available, "port=1 min_size=3");

	rig.view.ports[1].count = 2;
	assert_int_equal(rig_ask(&rig), WAIT);
	assert_int_equal(rig.verdict.at, 0);
	assert_int_equal(rig.verdict.fences, 0);
	assert_false(rig.verdict.external);
	rig.view.ports[1].count = 3;
	assert_int_equal(rig_ask(&rig), READY);
}

TEST(c01_min_size_zero_is_the_take_of_the_port)
{
	GIVEN(wr_message_available, "port=0 min_size=0");

	rig.view.ports[0].take = 4;
	rig.view.ports[0].count = 3;
	assert_int_equal(rig_ask(&rig), WAIT);
	rig.view.ports[0].count = 4;
	assert_int_equal(rig_ask(&rig), READY);
}

TEST(c04_an_any_size_port_needs_them_in_every_queue)
{
	GIVEN(wr_message_available, "port=0 min_size=2");

	rig.view.ports[0].any_size = true;
	rig.view.ports[0].count = 9;
	rig.view.ports[0].least = 1;
	assert_int_equal(rig_ask(&rig), WAIT);
	rig.view.ports[0].least = 2;
	assert_int_equal(rig_ask(&rig), READY);
}

TEST(s05_closed_and_too_few_is_never_but_enough_is_ready)
{
	GIVEN(wr_message_available, "port=0 min_size=2");

	rig.view.ports[0].closed = true;
	rig.view.ports[0].count = 2;
	assert_int_equal(rig_ask(&rig), READY);
	rig.view.ports[0].count = 1;
	assert_int_equal(rig_ask(&rig), NEVER);
}

TEST(xb18_one_closed_and_too_empty_queue_of_an_any_size_port_is_never)
{
	GIVEN(wr_message_available, "port=0 min_size=2");

	rig.view.ports[0].any_size = rig.view.ports[0].closed = true;
	rig.view.ports[0].count = 9;
	rig.view.ports[0].least = 2;
	assert_int_equal(rig_ask(&rig), READY);
	rig.view.ports[0].least = 1;
	assert_int_equal(rig_ask(&rig), NEVER);
}

TEST(c01_an_unconnected_optional_port_asks_for_nothing)
{
	GIVEN(wr_message_available, "port=0 min_size=1");

	rig.view.ports[0].unconnected = true;
	assert_int_equal(rig_ask(&rig), READY);
}

/* ---- downstream_message_affordable ---- */

TEST(s03_room_for_what_a_tick_may_emit)
{
	GIVEN(wr_downstream_message_affordable, "port=2 min_size=0");

	rig.view.ports[2].emits = 3;
	rig.view.ports[2].room = 2;
	assert_int_equal(rig_ask(&rig), WAIT);
	rig.view.ports[2].room = 3;
	assert_int_equal(rig_ask(&rig), READY);
}

TEST(s03_room_for_min_size_when_it_is_given)
{
	GIVEN(wr_downstream_message_affordable, "port=0 min_size=2");

	rig.view.ports[0].room = 1;
	assert_int_equal(rig_ask(&rig), WAIT);
	rig.view.ports[0].room = 2;
	assert_int_equal(rig_ask(&rig), READY);
	rig.view.ports[0].room = SIZE_MAX;
	assert_int_equal(rig_ask(&rig), READY);
}

/* ---- count ---- */

TEST(c01_count_ticks_so_often_and_then_never)
{
	GIVEN(wr_count, "count=2");

	rig_tick(&rig);
	rig_tick(&rig);
	assert_int_equal(rig_ask(&rig), NEVER);
	assert_int_equal(rig.view.clock_reads, 0); /* C3 */
}

TEST(c01_count_zero_is_never_and_negative_has_no_end)
{
	GIVEN(wr_count, "count=0");

	assert_int_equal(rig_ask(&rig), NEVER);
	rig = rig_of(&wr_count, "count=-1");
	for (int i = 0; i < 1000; i++)
		rig_tick(&rig);
	assert_int_equal(rig_ask(&rig), READY);
}

/* ---- periodic: the numbers of the table in periodic.c ---- */

struct beat {
	int64_t tick, next; /* a tick at this time: the next is due then */
};

static void beats(const char *policy, const struct beat *rows, size_t count)
{
	char text[80] = "period=100 offset=-1 policy=";
	struct rig rig = rig_of(&wr_periodic, strcat(text, policy));

	for (size_t i = 0; i < count; i++) {
		rig.view.now = rows[i].tick;
		rig_tick(&rig);
		rig.view.now = rows[i].next - 1;
		assert_int_equal(rig_ask(&rig), WAIT);
		assert_int_equal(rig.verdict.at, rows[i].next);
		rig.view.now = rows[i].next;
		assert_int_equal(rig_ask(&rig), READY); /* C3: now >= at */
	}
}

TEST(c03_catch_up_loses_no_tick)
{
	static const struct beat rows[] = {{0, 100}, {250, 200}, {255, 300}, {300, 400}};

	(void)state_;
	beats("catch_up_missed_ticks", rows, 4);
}

TEST(c03_min_time_counts_from_the_last_tick)
{
	static const struct beat rows[] = {{1, 101}, {101, 201}, {350, 450}};

	(void)state_;
	beats("min_time_between_ticks", rows, 3);
}

TEST(c03_no_catch_up_goes_to_the_next_beat_after_now)
{
	static const struct beat rows[] = {{0, 100}, {250, 300}, {305, 400}, {400, 500}, {600, 700}};

	(void)state_;
	beats("no_catch_up_missed_ticks", rows, 5);
}

TEST(c03_the_first_tick_is_at_once)
{
	GIVEN(wr_periodic, "period=100 policy=catch_up_missed_ticks offset=-1");

	rig.view.now = -5;
	assert_int_equal(rig_ask(&rig), READY);
}

TEST(f37_the_longest_period_saturates)
{
	static const char *const texts[] = {
		"period=9223372036854775807 offset=-1 policy=catch_up_missed_ticks",
		"period=9223372036854775807 offset=-1 policy=min_time_between_ticks",
		"period=9223372036854775807 offset=-1 policy=no_catch_up_missed_ticks",
	};

	(void)state_;
	for (size_t i = 0; i < 3; i++) {
		struct rig rig = rig_of(&wr_periodic, texts[i]);

		rig.view.now = 1000;
		rig_tick(&rig);
		assert_int_equal(rig_ask(&rig), WAIT);
		assert_true(rig.verdict.at == INT64_MAX);
	}
}

TEST(f37_period_zero_and_negative_are_outside_the_bounds_of_the_table)
{
	const weir_parameter *period = wr_periodic.parameters;

	(void)state_;
	assert_string_equal(period->name, "period");
	assert_null(period->fallback); /* required */
	assert_true(period->min == 1 && period->max == INT64_MAX);
}

TEST(f36_after_a_pause_no_catch_up_ticks_once)
{
	GIVEN(wr_periodic, "period=100 policy=no_catch_up_missed_ticks offset=-1");

	rig_tick(&rig);
	rig.view.now = 5000000050;
	rig_tick(&rig);
	assert_int_equal(rig_ask(&rig), WAIT);
	assert_true(rig.verdict.at == 5000000100);
}

/* ---- boolean, asynchronous: what is told ---- */

struct word {
	weir_told told;
	enum answer answer;
	bool external;
};

static void words(struct rig *rig, const struct word *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		rig->view.told = rows[i].told;
		assert_int_equal(rig_ask(rig), rows[i].answer);
		assert_int_equal(rig->verdict.external, rows[i].external);
	}
}

TEST(c06_boolean_follows_the_last_word_and_can_be_set_again)
{
	static const struct word rows[] = {
		{WEIR_TOLD_NOTHING, READY, false},    {WEIR_TOLD_WAIT, WAIT, false},
		{WEIR_TOLD_READY, READY, false},      {WEIR_TOLD_EVENT_WAITING, WAIT, false},
		{WEIR_TOLD_EVENT_DONE, READY, false}, {WEIR_TOLD_NEVER, NEVER, false},
	};
	GIVEN(wr_boolean, "enable_tick=true");

	words(&rig, rows, 6);
	rig.view.told = WEIR_TOLD_WAIT;
	rig_ask(&rig);
	assert_string_equal(rig.verdict.why, "disabled"); /* S6 */
}

TEST(c06_boolean_that_begins_disabled_can_be_enabled)
{
	static const struct word rows[] = {
		{WEIR_TOLD_NOTHING, WAIT, false},
		{WEIR_TOLD_READY, READY, false},
		{WEIR_TOLD_NEVER, NEVER, false},
	};
	GIVEN(wr_boolean, "enable_tick=false");

	words(&rig, rows, 3);
}

TEST(c06_asynchronous_holds_the_run_open_for_an_event_alone)
{
	static const struct word rows[] = {
		{WEIR_TOLD_NOTHING, READY, false},    {WEIR_TOLD_READY, READY, false},
		{WEIR_TOLD_WAIT, WAIT, false},        {WEIR_TOLD_EVENT_WAITING, WAIT, true},
		{WEIR_TOLD_EVENT_DONE, READY, false}, {WEIR_TOLD_NEVER, NEVER, false},
	};
	GIVEN(wr_asynchronous, "");

	words(&rig, rows, 6);
}

/* ---- fence ---- */

TEST(c06_no_told_fence_waits_for_the_program)
{
	GIVEN(wr_fence, "once=true");

	assert_int_equal(rig_ask(&rig), WAIT);
	assert_true(rig.verdict.external);
	assert_int_equal(rig.verdict.fences, 0);
	rig.view.told = WEIR_TOLD_NEVER;
	assert_int_equal(rig_ask(&rig), NEVER);
}

TEST(c06_once_waits_for_the_oldest_fence_and_uses_it)
{
	GIVEN(wr_fence, "once=true");

	rig.view.next_fence = (weir_fence){3, 5};
	rig.view.told_fence = (weir_fence){3, 9};
	rig.view.incomplete = true;
	rig.view.told = WEIR_TOLD_NEVER; /* after what was told before */
	assert_int_equal(rig_ask(&rig), WAIT);
	assert_false(rig.verdict.external);
	assert_int_equal(rig.verdict.fences, 1);
	assert_int_equal(rig.verdict.last.value, 5);
	rig.view.incomplete = false;
	rig_tick(&rig);
	assert_int_equal(rig.view.used, 1);
}

TEST(c06_not_once_waits_for_the_last_fence_and_uses_none)
{
	GIVEN(wr_fence, "once=false");

	rig.view.told_fence = (weir_fence){3, 9};
	rig.view.incomplete = true;
	assert_int_equal(rig_ask(&rig), WAIT);
	assert_int_equal(rig.verdict.last.value, 9);
	rig.view.incomplete = false;
	rig_tick(&rig);
	rig_tick(&rig);
	assert_int_equal(rig.view.used, 0);
	rig.view.told = WEIR_TOLD_NEVER;
	assert_int_equal(rig_ask(&rig), NEVER);
}

/* ---- file_descriptor ---- */

TEST(c09_a_watched_descriptor_is_waited_for)
{
	GIVEN(wr_file_descriptor, "warn_after=7");

	assert_int_equal(rig_ask(&rig), WAIT); /* nothing is watched: the program is awaited */
	assert_int_equal(rig.view.warn_after, 7);
	assert_true(rig.verdict.external);
	assert_false(rig.verdict.watched);
	rig.view.watched = WEIR_WATCHED_WAITING;
	assert_int_equal(rig_ask(&rig), WAIT);
	assert_true(rig.verdict.watched);
	assert_false(rig.verdict.external);
	rig.view.watched = WEIR_WATCHED_READY;
	assert_int_equal(rig_ask(&rig), READY);
	rig.view.told = WEIR_TOLD_NEVER;
	assert_int_equal(rig_ask(&rig), NEVER);
}

/* ---- cuda_stream ---- */

TEST(g03_no_fence_pending_is_ready_at_once)
{
	GIVEN(wr_cuda_stream, "port=0");

	assert_int_equal(rig_ask(&rig), READY);
	assert_int_equal(wr_cuda_stream.phase, WEIR_PHASE_CONTENT); /* C4 */
}

TEST(f70_waits_for_all_fences_of_every_port_named_and_of_no_other)
{
	GIVEN(wr_cuda_stream, "port=0,2");

	rig.view.ports[0].pending = 3;
	rig.view.ports[1].pending = 5;
	rig.view.ports[2].pending = 2;
	rig.view.ports[2].fences[1] = (weir_fence){7, 9};
	assert_int_equal(rig_ask(&rig), WAIT);
	assert_int_equal(rig.verdict.fences, 5);
	assert_int_equal(rig.verdict.last.stream, 7);
	assert_int_equal(rig.verdict.last.value, 9);
	assert_false(rig.verdict.external);
}

TEST(g03_ready_only_when_the_last_port_is_done_too)
{
	GIVEN(wr_cuda_stream, "port=1,3");

	rig.view.ports[3].pending = 1;
	assert_int_equal(rig_ask(&rig), WAIT);
	rig.view.ports[3].pending = 0;
	rig.view.ports[1].pending = 1;
	assert_int_equal(rig_ask(&rig), WAIT);
	assert_string_equal(rig.verdict.why, "work on the device is not finished");
	rig.view.ports[1].pending = 0;
	assert_int_equal(rig_ask(&rig), READY);
}

TEST(g03_it_gates_64_ports_at_most)
{
	GIVEN(wr_cuda_stream, "port=0");
	char text[sizeof "port=" + 2 * 65] = "port=0";

	for (int i = 1; i < 65; i++) {
		assert_int_equal(wr_cuda_stream.start(rig.state, &(weir_values){.text = text}), WEIR_OK);
		strcat(text, ",0");
	}
	assert_int_equal(wr_cuda_stream.start(rig.state, &(weir_values){.text = text}), WEIR_E_UNSUPPORTED);
}

/* ---- in_flight ---- */

TEST(t08_at_the_bound_it_waits_for_the_fences_that_it_gets_and_holds_16_of_them)
{
	GIVEN(wr_in_flight, "");

	assert_int_equal(rig_ask(&rig), READY);
	rig.view.in_flight = 2;
	assert_int_equal(rig_ask(&rig), WAIT);
	assert_int_equal(rig.verdict.fences, 2);
	assert_int_equal(rig.verdict.cause, WEIR_CAUSE_BOUND);
	rig.view.in_flight = 17;
	assert_int_equal(rig_ask(&rig), WAIT);
	assert_int_equal(rig.verdict.fences, 16); /* the last is waited for when these are complete */
}

/* ---- memory_available ---- */

TEST(s03_what_is_claimed_is_not_asked)
{
	(void)state_;
	assert_null(wr_memory_available.ask);
}

/* ---- causes ---- */

static void says(struct rig *rig, enum answer answer, weir_cause cause, int port)
{
	assert_int_equal(rig_ask(rig), answer);
	assert_int_equal(rig->verdict.cause, cause);
	assert_int_equal(rig->verdict.port, port);
}

TEST(c05_a_wait_for_a_queue_names_the_port_and_what_it_must_have)
{
	GIVEN(wr_message_available, "port=1 min_size=3");
	struct rig room = rig_of(&wr_downstream_message_affordable, "port=2 min_size=2");
	struct rig gate = rig_of(&wr_cuda_stream, "port=0,3");

	says(&rig, WAIT, WEIR_CAUSE_MESSAGES, 1);
	assert_int_equal(rig.verdict.needed, 3);
	rig.view.ports[1].closed = true;
	says(&rig, NEVER, WEIR_CAUSE_MESSAGES, 1);
	says(&room, WAIT, WEIR_CAUSE_ROOM, 2);
	assert_int_equal(room.verdict.needed, 2);
	gate.view.ports[3].pending = 1;
	says(&gate, WAIT, WEIR_CAUSE_DEVICE, 3);
}

TEST(c05_a_wait_for_what_comes_from_outside_names_its_cause)
{
	GIVEN(wr_boolean, "enable_tick=false");
	struct rig told = rig_of(&wr_asynchronous, ""), fence = rig_of(&wr_fence, "once=true");
	struct rig descriptor = rig_of(&wr_file_descriptor, "warn_after=0");

	says(&rig, WAIT, WEIR_CAUSE_TOLD, -1);
	told.view.told = WEIR_TOLD_WAIT;
	says(&told, WAIT, WEIR_CAUSE_TOLD, -1);
	told.view.told = WEIR_TOLD_NEVER;
	says(&told, NEVER, WEIR_CAUSE_TOLD, -1);
	says(&descriptor, WAIT, WEIR_CAUSE_DESCRIPTOR, -1);
	says(&fence, WAIT, WEIR_CAUSE_TOLD, -1);
	fence.view.next_fence = (weir_fence){1, 1};
	fence.view.incomplete = true;
	says(&fence, WAIT, WEIR_CAUSE_DEVICE, -1); /* it was told: now the device is waited for */
}

TEST(c05_times_and_counts_name_their_cause)
{
	GIVEN(wr_periodic, "period=100 policy=catch_up_missed_ticks offset=10");
	struct rig count = rig_of(&wr_count, "count=0");

	says(&rig, WAIT, WEIR_CAUSE_TIME, -1);
	says(&count, NEVER, WEIR_CAUSE_DONE, -1);
}

/* ---- the table ---- */

TEST(c01_every_kind_has_a_name_a_help_a_size_and_an_answer)
{
	size_t count = 0;

	(void)state_;
	for (const weir_condition *kind; (kind = wr_builtin_conditions[count]); count++) {
		assert_int_equal(kind->size, sizeof(weir_condition));
		assert_non_null(kind->help);
		assert_true(kind->ask || kind == &wr_memory_available);
		for (const weir_parameter *p = kind->parameters; p && p->name; p++)
			assert_true(p->size == sizeof(weir_parameter) && p->type && p->help);
		if (count)
			assert_true(strcmp(wr_builtin_conditions[count - 1]->name, kind->name) < 0);
	}
	assert_int_equal(count, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c06_no_told_fence_waits_for_the_program),
		cmocka_unit_test(c06_once_waits_for_the_oldest_fence_and_uses_it),
		cmocka_unit_test(c06_not_once_waits_for_the_last_fence_and_uses_none),
		cmocka_unit_test(c01_too_few_messages_wait_for_a_poke_alone),
		cmocka_unit_test(c01_min_size_zero_is_the_take_of_the_port),
		cmocka_unit_test(c04_an_any_size_port_needs_them_in_every_queue),
		cmocka_unit_test(s05_closed_and_too_few_is_never_but_enough_is_ready),
		cmocka_unit_test(xb18_one_closed_and_too_empty_queue_of_an_any_size_port_is_never),
		cmocka_unit_test(c01_an_unconnected_optional_port_asks_for_nothing),
		cmocka_unit_test(s03_room_for_what_a_tick_may_emit),
		cmocka_unit_test(s03_room_for_min_size_when_it_is_given),
		cmocka_unit_test(c01_count_ticks_so_often_and_then_never),
		cmocka_unit_test(c01_count_zero_is_never_and_negative_has_no_end),
		cmocka_unit_test(c03_catch_up_loses_no_tick),
		cmocka_unit_test(c03_min_time_counts_from_the_last_tick),
		cmocka_unit_test(c03_no_catch_up_goes_to_the_next_beat_after_now),
		cmocka_unit_test(c03_the_first_tick_is_at_once),
		cmocka_unit_test(f37_the_longest_period_saturates),
		cmocka_unit_test(f37_period_zero_and_negative_are_outside_the_bounds_of_the_table),
		cmocka_unit_test(f36_after_a_pause_no_catch_up_ticks_once),
		cmocka_unit_test(c06_boolean_follows_the_last_word_and_can_be_set_again),
		cmocka_unit_test(c06_boolean_that_begins_disabled_can_be_enabled),
		cmocka_unit_test(c06_asynchronous_holds_the_run_open_for_an_event_alone),
		cmocka_unit_test(c09_a_watched_descriptor_is_waited_for),
		cmocka_unit_test(g03_no_fence_pending_is_ready_at_once),
		cmocka_unit_test(f70_waits_for_all_fences_of_every_port_named_and_of_no_other),
		cmocka_unit_test(g03_ready_only_when_the_last_port_is_done_too),
		cmocka_unit_test(g03_it_gates_64_ports_at_most),
		cmocka_unit_test(t08_at_the_bound_it_waits_for_the_fences_that_it_gets_and_holds_16_of_them),
		cmocka_unit_test(s03_what_is_claimed_is_not_asked),
		cmocka_unit_test(c05_a_wait_for_a_queue_names_the_port_and_what_it_must_have),
		cmocka_unit_test(c05_a_wait_for_what_comes_from_outside_names_its_cause),
		cmocka_unit_test(c05_times_and_counts_name_their_cause),
		cmocka_unit_test(c01_every_kind_has_a_name_a_help_a_size_and_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Inputs that an operator holds (C4), and the reason that it gives for a drain (S7). */
#include <stdio.h>

#include "rig.h"

#define TEST(name) static void name(void **state_)

/* Holds its input for two ticks after each message: they receive nothing. */
static weir_status hold_twice(struct rig *rig, weir_context *context)
{
	uint64_t tick = weir_context_tick(context);
	size_t count = weir_context_count(context, 0);

	HOLDS(rig, count == (tick % 3 ? 0 : 1));
	for (size_t i = 0; i < count; i++) {
		char word[24];
		snprintf(word, sizeof word, "%d", (int)rig_value(weir_context_message(context, 0, i)));
		rig_note(rig, context, word);
	}
	return weir_context_hold(context, 0, tick % 3 == 2 ? WEIR_HOLD_END : 0);
}

static void hold_beside_messages(const char *text)
{
	struct rig *rig = rig_of(text);

	rig_on(rig, "z", hold_twice);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "z").received, 12);
	assert_int_equal(rig_ticks(rig, "z"), 36);
	rig_destroy(rig);
}

static void hold_inputs(void)
{
	hold_beside_messages("source ticks=12 -> z:call");
	hold_beside_messages("source ticks=12 -> z:call capacity=4");
	hold_beside_messages("source ticks=12 -> z:call min=1");
	hold_beside_messages("source ticks=12 -> z:call; z.in2 min=1"); /* it has no connection */
	hold_beside_messages("source ticks=12 -> z:call policy=pop capacity=16");
	hold_beside_messages("a:source ticks=6 -> z:call; b:source ticks=6 -> z");
	hold_beside_messages("a:source ticks=2 -> z:call; b:source ticks=2 -> z; c:source ticks=2 -> z; "
			     "d:source ticks=1 -> z; e:source ticks=1 -> z; f:source ticks=1 -> z; "
			     "g:source ticks=1 -> z; h:source ticks=1 -> z; i:source ticks=1 -> z");
}

TEST(c04_a_held_input_gives_nothing_and_loses_nothing)
{
	(void)state_;
	rig_everywhere(hold_inputs);
}

static size_t limit, most; /* of the next tick; that one has received */
static bool over;          /* the input has ended */

/* Each tick says how many the next one receives: 1, 2, 3, then what the port takes. */
static weir_status limit_each(struct rig *rig, weir_context *context)
{
	uint64_t tick = weir_context_tick(context);
	size_t count = weir_context_count(context, 0);

	limit = tick ? limit : SIZE_MAX;
	over &= tick > 0;
	HOLDS(rig, count && count <= limit && !over);
	most = count > most ? count : most;
	over = weir_context_ended(context, 0);
	limit = tick % 4 == 3 ? SIZE_MAX : tick % 4 + 1;
	return weir_context_limit(context, 0, limit);
}

static void limit_of(const char *text, size_t expected)
{
	struct rig *rig = rig_of(text);

	most = 0;
	rig_on(rig, "z", limit_each);
	for (int i = 0; i < 2; i++) { /* a run begins without a limit */
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig_counts(rig, "z").received, 24);
	}
	assert_in_range(most, 1, expected);
	rig_destroy(rig);
}

static void limit_inputs(void)
{
	limit_of("source ticks=24 -> z:call", 1);
	limit_of("source ticks=24 -> z:call capacity=8 take=all", 8);
	limit_of("source ticks=24 -> z:call capacity=8 take=4", 4);
	limit_of("a:source ticks=12 -> z:call capacity=4 take=all; b:source ticks=12 -> z", 8);
}

TEST(c04_a_tick_receives_no_more_than_the_one_before_has_said)
{
	(void)state_;
	rig_everywhere(limit_inputs);
}

static weir_status limit_wrongly(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_context_limit(context, 7, 1) == WEIR_E_INVALID);
	HOLDS(rig, weir_context_limit(context, 0, 0) == WEIR_E_INVALID);
	HOLDS(rig, !weir_context_ended(context, 7));
	return WEIR_OK;
}

TEST(c04_a_limit_is_of_an_input_and_not_0)
{
	struct rig *rig = rig_of("source ticks=3 -> z:call");

	(void)state_;
	rig_on(rig, "z", limit_wrongly);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static weir_status hold_and_finish(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_context_hold(context, 7, 0) == WEIR_E_INVALID);
	HOLDS(rig, weir_context_hold(context, 0, 2) == WEIR_E_INVALID);
	HOLDS(rig, !weir_context_hold(context, 0, 0));
	return weir_context_finish(context);
}

static void hold_two_runs(void)
{
	struct rig *rig = rig_of("source ticks=3 -> z:call");

	rig_on(rig, "z", hold_and_finish);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig_counts(rig, "z").received, 1);
	}
	rig_destroy(rig);
}

TEST(c04_s08_a_run_begins_with_no_held_input)
{
	(void)state_;
	rig_in_world(1, hold_two_runs);
	rig_on_host(hold_two_runs);
}

static weir_status drain_twice(struct rig *rig, weir_context *context)
{
	(void)rig;
	weir_context_drain(context, "it is %d o'clock\n", 7);
	weir_context_drain(context, "too late");
	return WEIR_OK;
}

static bool drained, stopping; /* as `stop` sees it */

static void look_in_stop(struct rig *rig, weir_context *context)
{
	(void)rig;
	drained = weir_context_drained(context);
	stopping = weir_context_stopping(context);
}

static void drain_with_a_reason(void)
{
	struct rig *rig = rig_of("z:call");

	rig_on(rig, "z", drain_twice);
	rig_entity(rig, "z")->stop = look_in_stop;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig->outcome.text, "z: it is 7 o'clock\\n");
	assert_true(drained && stopping);
	rig_destroy(rig);
}

static weir_status drain_and_fail(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_fail_after_drain(context, WEIR_E_IO, "broken");
}

static weir_status go_on(struct rig *rig, weir_context *context)
{
	(void)rig, (void)context;
	return WEIR_OK;
}

/* A failure, and a drain that the program wants, are none of the graph's. */
static void drain_otherwise(void)
{
	struct rig *rig = rig_of("z:call period=1ms");

	rig_on(rig, "z", drain_and_fail);
	rig_entity(rig, "z")->stop = look_in_stop;
	assert_int_equal(rig_run(rig), WEIR_E_IO);
	assert_true(!drained && stopping);
	rig_on(rig, "z", go_on);
	stopping = false;
	rig_start(rig);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_true(!drained && stopping);
	rig_destroy(rig);
}

TEST(s07_an_operator_says_why_it_drains_the_run)
{
	(void)state_;
	rig_in_world(1, drain_with_a_reason);
	rig_on_host(drain_with_a_reason);
	rig_in_world(1, drain_otherwise);
	rig_on_host(drain_otherwise);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c04_a_held_input_gives_nothing_and_loses_nothing),
		cmocka_unit_test(c04_a_tick_receives_no_more_than_the_one_before_has_said),
		cmocka_unit_test(c04_a_limit_is_of_an_input_and_not_0),
		cmocka_unit_test(c04_s08_a_run_begins_with_no_held_input),
		cmocka_unit_test(s07_an_operator_says_why_it_drains_the_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

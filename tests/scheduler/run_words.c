/* How a run reports a failure: its text, its entity, its place; and a condition that
 * names a time in the past. */
#include <stdio.h>
#include <string.h>

#include "rig.h"

#define TEST(name) static void name(void **state_)

/* --- conditions that misbehave --- */

static weir_status fail_to_start(void *state, const weir_values *values)
{
	(void)state;
	(void)values;
	return WEIR_E_INVALID;
}

static void ready(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_ready(verdict);
}

static void until_yesterday(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_until(verdict, 5);
}

/* Each time another time, always past. */
static void until_a_moment_ago(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	weir_verdict_until(verdict, weir_view_now(view) - MS);
}

struct beat {
	int64_t next;
};

/* READY after the time that it names, not at that time. */
static void until_strictly(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct beat *self = state;

	if (weir_view_now(view) > self->next)
		weir_verdict_ready(verdict);
	else
		weir_verdict_until(verdict, self->next);
}

static void strictly_ticked(void *state, weir_view *view)
{
	struct beat *self = state;

	self->next = weir_view_began(view) + MS;
}

#define CONDITION .size = sizeof(weir_condition), .help = "of a test"

static const weir_condition broken = {CONDITION, .name = "broken", .start = fail_to_start, .ask = ready};
static const weir_condition yesterday = {CONDITION, .name = "yesterday", .ask = until_yesterday};
static const weir_condition ago = {CONDITION, .name = "ago", .ask = until_a_moment_ago};
static const weir_condition strict = {CONDITION, .name = "strict", .state_size = sizeof(struct beat),
				      .ask = until_strictly, .ticked = strictly_ticked};
static const weir_condition *const conditions[] = {&broken, &yesterday, &ago, &strict, NULL};

/* --- operators that fail without a text, after a call that failed with one --- */

static void say_something_else(weir_context *context)
{
	weir_fence foreign = {99, 99};

	weir_fence_query(weir_context_graph(context), foreign);
}

static weir_status fail_bare(struct rig *rig, weir_context *context)
{
	(void)rig;
	if (!weir_context_tick(context)) {
		say_something_else(context);
		return WEIR_OK;
	}
	return WEIR_E_IO;
}

static weir_status start_bare(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	return WEIR_E_IO;
}

static weir_status return_three(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	return (weir_status)3;
}

static weir_status start_with_words(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_fail(context, "no camera");
}

/* Asserts that the run of this graph fails, with this outcome. */
static void assert_fails(struct rig *rig, weir_status status, const char *entity, const char *text)
{
	char line[600];

	rig_here(rig);
	rig_make(rig);
	weir_scheduler_start(rig->scheduler);
	assert_int_equal(rig_wait(rig), status);
	assert_string_equal(rig->outcome.entity, entity);
	assert_string_equal(rig->outcome.text, text);
	snprintf(line, sizeof line, "%s: ", entity);
	assert_int_equal(strncmp(weir_last_error(), line, strlen(line)), 0);
	assert_null(strstr(weir_last_error() + 1, line)); /* once */
	rig_destroy(rig);
}

TEST(xb22_a_bare_failure_of_compute_has_plain_words_and_none_of_an_earlier_call)
{
	struct rig *rig = rig_of("a:call");

	(void)state_;
	rig->options.workers = 1;
	rig_on(rig, "a", fail_bare);
	assert_fails(rig, WEIR_E_IO, "a",
		     "compute returned WEIR_E_IO (input/output failed) without saying why");
}

TEST(xb22_a_bare_failure_of_start_has_plain_words_and_none_of_an_earlier_call)
{
	struct rig *rig = rig_of("a:call");
	weir_inlet *inlet;

	(void)state_;
	rig_entity(rig, "a")->start = start_bare;
	assert_int_equal(weir_graph_add_inlet(rig->graph, "missing.in", &inlet), WEIR_E_INVALID);
	assert_fails(rig, WEIR_E_IO, "a",
		     "start returned WEIR_E_IO (input/output failed) without saying why");
}

TEST(xb22_a_failed_start_names_its_entity_once)
{
	struct rig *rig = rig_of("a:call");

	(void)state_;
	rig_entity(rig, "a")->start = start_with_words;
	assert_fails(rig, WEIR_E_FAILED, "a", "no camera");
}

TEST(xb22_a_condition_that_fails_to_start_is_named_with_its_entity)
{
	(void)state_;
	assert_fails(rig_of("a:call condition=broken"), WEIR_E_INVALID, "a",
		     "condition 'broken': start returned WEIR_E_INVALID (invalid) without saying why");
}

TEST(xb22_a_status_above_0_is_refused)
{
	struct rig *rig = rig_of("a:call");

	(void)state_;
	rig_on(rig, "a", return_three);
	assert_fails(
		rig, WEIR_E_INVALID, "a",
		"compute returned 3: a failure is a negative weir_status, and statuses above 0 mean nothing");
}

/* --- a condition that names the past --- */

static void names_the_past(void)
{
	assert_fails(
		rig_of("a:call condition=yesterday"), WEIR_E_INVALID, "a",
		"condition 'yesterday' waits until a time that has come, twice in a row: it must say READY "
		"when now >= that time");
}

TEST(xb19_a_condition_that_waits_for_the_past_fails_the_run_by_name)
{
	(void)state_;
	rig_everywhere(names_the_past);
}

static void names_a_past_that_moves(void)
{
	assert_fails(rig_of("a:call condition=ago"), WEIR_E_INVALID, "a",
		     "condition 'ago' waits until a time that has come, twice in a row: it must say READY "
		     "when now >= that time");
}

TEST(xb19_c03_so_does_one_whose_past_moves_with_the_clock)
{
	(void)state_;
	rig_everywhere(names_a_past_that_moves);
}

TEST(xb19_where_time_stands_still_strictly_after_is_never)
{
	(void)state_;
	assert_fails(rig_of("a:call condition=strict count=5"), WEIR_E_INVALID, "a",
		     "condition 'strict' waits until a time that has come, twice in a row: it must say READY "
		     "when now >= that time");
}

/* Asked again when it may have become READY; on a clock that moves it has. */
static void strictly_on_a_clock(void)
{
	struct rig *rig = rig_of("a:call condition=strict count=5");

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "a"), 5);
	rig_destroy(rig);
}

TEST(xb19_strictly_after_is_asked_again_on_a_clock_that_moves)
{
	(void)state_;
	rig_on_host(strictly_on_a_clock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb22_a_bare_failure_of_compute_has_plain_words_and_none_of_an_earlier_call),
		cmocka_unit_test(xb22_a_bare_failure_of_start_has_plain_words_and_none_of_an_earlier_call),
		cmocka_unit_test(xb22_a_failed_start_names_its_entity_once),
		cmocka_unit_test(xb22_a_condition_that_fails_to_start_is_named_with_its_entity),
		cmocka_unit_test(xb22_a_status_above_0_is_refused),
		cmocka_unit_test(xb19_a_condition_that_waits_for_the_past_fails_the_run_by_name),
		cmocka_unit_test(xb19_c03_so_does_one_whose_past_moves_with_the_clock),
		cmocka_unit_test(xb19_where_time_stands_still_strictly_after_is_never),
		cmocka_unit_test(xb19_strictly_after_is_asked_again_on_a_clock_that_moves),
	};

	rig_conditions = conditions;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Trees of conditions in runs (C11): `b` notes how many messages its ticks receive from `a`, which sends ten
 * at 0, 10, ... 90 ms, and from `c`, which sends five at 5, 25, ... 85 ms.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "rig_inside.h"
#ifdef WR_SEAM
#include "tests/bugs/bug.h"
#endif

static char received[1024];
static size_t length;
static weir_fence fences[2];

static weir_status note(weir_context *context, void *state)
{
	(void)state;
	length +=
		(size_t)snprintf(received + length, sizeof received - length, "%s%zu,%zu", length ? " " : "",
				 weir_context_count(context, 0), weir_context_count(context, 1));
	return WEIR_OK;
}

static const weir_port inputs[] = {{.size = sizeof(weir_port), .name = "in"},
				   {.size = sizeof(weir_port), .name = "in2"},
				   {.name = NULL}};
static const weir_operator noting = {.size = sizeof(weir_operator),
				     .name = "noting",
				     .help = "notes how many messages its ticks receive",
				     .inputs = inputs,
				     .compute = note};

static uint64_t waited_ticks; /* of `w`, when the second fence is completed */
static size_t first;

/* One fence 10 ms after the start, the other one 10 ms later; then no more are told. */
static weir_status tell(weir_context *context, void *state)
{
	weir_graph *graph = weir_context_graph(context);
	weir_entity *w = weir_graph_entity(graph, "w");

	(void)state;
	if (!weir_context_tick(context))
		return weir_fence_complete(graph, fences[first], WEIR_OK, NULL);
	waited_ticks = length;
	weir_entity_tell(w, "first", WEIR_TOLD_NEVER);
	weir_entity_tell(w, "second", WEIR_TOLD_NEVER);
	return weir_fence_complete(graph, fences[!first], WEIR_OK, NULL);
}

static weir_status count_tick(weir_context *context, void *state)
{
	(void)context, (void)state;
	length++;
	return WEIR_OK;
}

static const weir_operator telling = {
	.size = sizeof(weir_operator), .name = "telling", .help = "completes fences", .compute = tell};
static const weir_operator counting = {
	.size = sizeof(weir_operator), .name = "counting", .help = "counts its ticks", .compute = count_tick};

#define A    "{\"type\": \"message_available\", \"port\": \"in\"}"
#define C    "{\"type\": \"message_available\", \"port\": \"in2\"}"
#define BOTH "{\"type\": \"all_of\", \"conditions\": [" A ", " C "]}"

static struct rig *rig_of_tree(const char *alternatives)
{
	char json[2000];

	snprintf(json, sizeof json,
		 "{\"weir\": 1, \"entities\": ["
		 "{\"name\": \"a\", \"operator\": \"ping\", \"conditions\": [{\"type\": \"periodic\", "
		 "\"period\": \"10ms\"}, {\"type\": \"count\", \"count\": 10}]}, "
		 "{\"name\": \"c\", \"operator\": \"ping\", \"conditions\": [{\"type\": \"periodic\", "
		 "\"period\": \"20ms\", \"offset\": \"5ms\"}, {\"type\": \"count\", \"count\": 5}]}, "
		 "{\"name\": \"b\", \"operator\": \"noting\", \"ports\": {\"in\": {\"capacity\": 20}, "
		 "\"in2\": "
		 "{\"capacity\": 20}}, \"conditions\": [{\"type\": \"any_of\", \"conditions\": [%s]}]}], "
		 "\"connections\": [[\"a.out\", \"b.in\"], [\"c.out\", \"b.in2\"]]}",
		 alternatives);
	length = 0;
	received[0] = 0;
	return rig_of_json(json, (const weir_operator *[]){&noting, NULL});
}

/* expected NULL: it depends on the clock. */
static void run(const char *alternatives, uint64_t messages, const char *expected)
{
	struct rig *rig = rig_of_tree(alternatives);

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "b").received, messages);
	assert_true(rig_done(rig, "b"));
	rig_destroy(rig);
	if (expected)
		assert_string_equal(received, expected);
}

static void one_or_the_other(void)
{
	run(A ", " C, 15, "1,0 0,1 1,0 1,0 0,1 1,0 1,0 0,1 1,0 1,0 0,1 1,0 1,0 0,1 1,0");
}

static void c11_c04_a_tick_takes_the_inputs_that_hold(void **state)
{
	(void)state;
	rig_in_worlds(4, one_or_the_other);
}

/* The last five messages of `a` have no partner. */
static void both_alone(void)
{
	run(BOTH, 10, "1,1 1,1 1,1 1,1 1,1");
}

static void c11_s05_no_alternative_can_hold_any_more(void **state)
{
	(void)state;
	rig_in_worlds(4, both_alone);
}

static void a_timeout(void)
{
	run(A ", " C ", {\"type\": \"periodic\", \"period\": \"10ms\", \"offset\": \"2ms\"}", 15,
	    "1,0 0,0 0,1 1,0 0,0 1,0 0,0 0,1 1,0 0,0 1,0 0,0 0,1 1,0 0,0 1,0 0,0 0,1 1,0 0,0 1,0 0,0 0,1 "
	    "1,0");
}

static void c11_s10_the_earliest_time_counts_if_nothing_comes_before(void **state)
{
	(void)state;
	rig_in_worlds(2, a_timeout);
}

/* Its time is never due, and never used up. */
static void a_timer_that_loses(void)
{
	int64_t began = wr_now();

	run(A ", " C ", {\"type\": \"periodic\", \"period\": \"1000s\", \"offset\": \"1000s\"}", 15, NULL);
	assert_true(wr_now() - began < 100 * SECOND);
}

static void c11_s04_the_timer_of_a_lost_alternative_holds_nothing_open(void **state)
{
	(void)state;
	rig_everywhere(a_timer_that_loses);
}

/* --- what is explained --- */

static void ask_unexplained(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_wait(verdict, NULL);
}

static const weir_condition unexplained = {
	.size = sizeof(weir_condition), .name = "unexplained", .help = "waits", .ask = ask_unexplained};

#define UNEXPLAINED "{\"type\": \"unexplained\"}"

/* Alone and in all_of. */
static void explain_without_reasons(void)
{
	struct rig *rig = rig_of_json(
		"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"ping\", \"conditions\": "
		"[{\"type\": \"any_of\", \"conditions\": [" UNEXPLAINED ", {\"type\": \"all_of\", "
		"\"conditions\": [" UNEXPLAINED ", {\"type\": \"boolean\"}]}]}]}, "
		"{\"name\": \"b\", \"operator\": \"sink\"}], \"connections\": [[\"a.out\", \"b.in\"]]}",
		(const weir_operator *[]){NULL});

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_says(rig_explain(rig),
		    "a: any_of: WAIT (unexplained: not ready or (unexplained: not ready and "
		    "boolean: holds))");
	rig_destroy(rig);
}

static void c11_c05_alternatives_that_give_no_reason_are_explained(void **state)
{
	(void)state;
	rig_conditions = (const weir_condition *[]){&unexplained, NULL};
	rig_in_worlds(2, explain_without_reasons);
	rig_conditions = NULL;
}

/* --- fences --- */

#define FIRST "{\"type\": \"fence\", \"name\": \"first\"}"
#define LATER "{\"type\": \"fence\", \"name\": \"second\"}"

static void tell_two(struct rig *rig, const char *entity)
{
	weir_entity *b = weir_graph_entity(rig->graph, entity);

	for (int i = 0; i < 2; i++) {
		assert_int_equal(weir_graph_create_fence(rig->graph, &fences[i]), WEIR_OK);
		assert_int_equal(weir_entity_tell_fence(b, i ? "second" : "first", fences[i]), WEIR_OK);
	}
}

/* On a busy machine what comes at two times may be there at once. */
static bool in_virtual_time(void)
{
	return !strcmp(rig_backend, "sim");
}

/* Both are armed, and neither completes. */
static void fences_that_lose(void)
{
	struct rig *rig = rig_of_tree(A ", " C ", " FIRST ", " LATER);

	rig_make(rig);
	tell_two(rig, "b");
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "b").received, 15);
	if (in_virtual_time())
		assert_int_equal(rig_ticks(rig, "b"), 15);
	for (int i = 0; i < 2; i++)
		weir_fence_complete(rig->graph, fences[i], WEIR_OK, NULL);
	rig_destroy(rig);
}

static void c11_s04_g02_the_fences_of_lost_alternatives_hold_nothing_open(void **state)
{
	(void)state;
	rig_everywhere(fences_that_lose);
}

static struct rig *rig_of_waiter(void)
{
	struct rig *rig = rig_of_json(
		"{\"weir\": 1, \"entities\": [{\"name\": \"w\", \"operator\": \"counting\", \"conditions\": "
		"[{\"type\": \"any_of\", \"conditions\": [" FIRST ", " LATER "]}]}, "
		"{\"name\": \"t\", \"operator\": \"telling\", \"conditions\": [{\"type\": \"count\", "
		"\"count\": 2}, "
		"{\"type\": \"periodic\", \"period\": \"10ms\", \"offset\": \"10ms\"}]}], \"connections\": "
		"[]}",
		(const weir_operator *[]){&telling, &counting, NULL});

	length = waited_ticks = 0;
	rig_make(rig);
	tell_two(rig, "w");
	return rig;
}

/* It waits for two fences, none of which completes. */
static void stopped_in_its_wait(void)
{
	struct rig *rig = rig_of_tree(FIRST ", " LATER ", {\"type\": \"all_of\", \"conditions\": [" A ", " C
					    ", {\"type\": \"boolean\", \"enable_tick\": false}]}");

	rig_make(rig);
	tell_two(rig, "b");
	rig_start(rig);
	weir_scheduler_stop(rig->scheduler, 0);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "b"), 0);
	for (int i = 0; i < 2; i++)
		weir_fence_complete(rig->graph, fences[i], WEIR_OK, NULL);
	rig_destroy(rig);
}

static void c11_s07_a_run_is_stopped_in_a_wait_for_alternatives(void **state)
{
	(void)state;
	rig_everywhere(stopped_in_its_wait);
}

#define OPEN(name) "{\"type\": \"fence\", \"name\": \"" name "\", \"once\": false}"

static int nap(const void *arguments)
{
	(void)arguments;
	weir_sleep(200 * MS);
	return 0;
}

/* It waits for work on two streams, of which one is then given up: no signal is armed for that any more. */
static void one_is_given_up(void)
{
	static const weir_kernel napping = {.size = sizeof(weir_kernel), .name = "napping", .host = nap};
	struct rig *rig = rig_of_tree(OPEN("first") ", " OPEN("second"));
	weir_entity *b = weir_graph_entity(rig->graph, "b");

	rig_make(rig);
	for (int i = 0; i < 2; i++) {
		weir_stream *stream = NULL;
		assert_int_equal(weir_graph_add_stream(rig->graph, 0, &stream), WEIR_OK);
		assert_int_equal(weir_stream_launch(stream, &napping, "", 1), WEIR_OK);
		assert_int_equal(weir_stream_record(stream, &fences[i]), WEIR_OK);
		assert_int_equal(weir_entity_tell_fence(b, i ? "second" : "first", fences[i]), WEIR_OK);
	}
	rig_start(rig);
	(void)weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	assert_int_equal(rig_armed(rig).armed, 2);
	weir_entity_tell(b, "second", WEIR_TOLD_NEVER);
	(void)weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	assert_int_equal(rig_waits_for(rig, "b"), 1);
	assert_int_equal(rig_armed(rig).armed, 1);
	assert_int_equal(rig_ticks(rig, "b"), 0);
	(void)weir_scheduler_wait(rig->scheduler, SECOND, NULL);
	assert_true(rig_ticks(rig, "b") > 0);
	weir_scheduler_stop(rig->scheduler, 0);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

/* The first of three is given up: the waits for the others stay as they are. */
static void first_is_given_up(void)
{
	struct rig *rig = rig_of_tree(OPEN("zero") ", " OPEN("first") ", " OPEN("second"));
	weir_entity *b = weir_graph_entity(rig->graph, "b");
	weir_fence zero;

	rig_make(rig);
	tell_two(rig, "b");
	assert_int_equal(weir_graph_create_fence(rig->graph, &zero), WEIR_OK);
	assert_int_equal(weir_entity_tell_fence(b, "zero", zero), WEIR_OK);
	rig_start(rig);
	(void)weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	weir_entity_tell(b, "zero", WEIR_TOLD_NEVER);
	(void)weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rig_promise_waits(rig, fences[i]), 1);
	weir_fence_complete(rig->graph, fences[0], WEIR_OK, NULL);
	(void)weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	assert_true(rig_ticks(rig, "b") > 0);
	weir_scheduler_stop(rig->scheduler, 0);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	weir_fence_complete(rig->graph, fences[1], WEIR_OK, NULL);
	weir_fence_complete(rig->graph, zero, WEIR_OK, NULL);
	rig_destroy(rig);
}

static void c11_g02_an_alternative_that_ends_gives_up_its_fence(void **state)
{
	(void)state;
	rig_in_worlds(4, one_is_given_up);
	rig_in_worlds(4, first_is_given_up);
}

/* Each alternative wakes it, whichever is complete first. */
static void fences_in_any_order(void)
{
	for (first = 0; first < 2; first++) {
		struct rig *rig = rig_of_waiter();
		assert_int_equal(rig_run(rig), WEIR_OK);
		if (in_virtual_time()) {
			assert_int_equal(waited_ticks, 1);
			assert_int_equal(length, 2);
		}
		rig_destroy(rig);
	}
}

static void c11_g02_the_fences_of_each_alternative_wake_the_entity(void **state)
{
	(void)state;
	rig_everywhere(fences_in_any_order);
}

/* 10 ms after the start the alternative of `in` stops to hold, after 20 ms it holds again. */
static weir_status tell_go(weir_context *context, void *state)
{
	weir_told told = weir_context_tick(context) ? WEIR_TOLD_READY : WEIR_TOLD_WAIT;

	(void)state;
	return weir_entity_tell(weir_graph_entity(weir_context_graph(context), "b"), "go", told);
}

static const weir_operator going = {
	.size = sizeof(weir_operator), .name = "going", .help = "tells whether to go", .compute = tell_go};

/* The device works on the message of `a` for 30 ms; that of `c` comes after 15 ms. */
static void a_front_that_stays(void)
{
	struct rig *rig = rig_of_json(
		"{\"weir\": 1, \"entities\": ["
		"{\"name\": \"a\", \"operator\": \"spin\", \"parameters\": {\"duration\": \"30ms\"}, "
		"\"conditions\": [{\"type\": \"count\", \"count\": 1}]}, "
		"{\"name\": \"c\", \"operator\": \"ping\", \"conditions\": [{\"type\": \"periodic\", "
		"\"period\": "
		"\"1s\", \"offset\": \"15ms\"}, {\"type\": \"count\", \"count\": 1}]}, "
		"{\"name\": \"t\", \"operator\": \"going\", \"conditions\": [{\"type\": \"periodic\", "
		"\"period\": \"10ms\", \"offset\": \"10ms\"}, {\"type\": \"count\", \"count\": 2}]}, "
		"{\"name\": \"b\", \"operator\": \"noting\", \"conditions\": [{\"type\": \"any_of\", "
		"\"conditions\": ["
		"{\"type\": \"all_of\", \"conditions\": [{\"type\": \"boolean\", \"name\": \"go\"}, " A
		"]}, " C "]}]}], \"connections\": [[\"a.out\", \"b.in\"], [\"c.out\", \"b.in2\"]]}",
		(const weir_operator *[]){&noting, &going, NULL});

	length = 0;
	received[0] = 0;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "b").received, 2);
	rig_destroy(rig);
}

static void a_front_that_stays_in_time(void)
{
	a_front_that_stays();
	assert_string_equal(received, "0,1 1,0");
}

static void c11_c08_a_front_of_an_alternative_that_is_lost_stays_and_its_gate_is_not_asked(void **state)
{
	(void)state;
	rig_in_worlds(4, a_front_that_stays_in_time);
	rig_on_host(a_front_that_stays);
}

#ifdef WR_SEAM
static bool one_tick;

static void lose_a_fence(void)
{
	struct rig *rig = rig_of_waiter();

	rig_run(rig);
	one_tick = waited_ticks == 1 && length == 2;
	rig_destroy(rig);
}

/* Fences: a signal of the last alternative alone, or one for all, does not wake the entity for the first. */
static void c11_the_seeded_bugs_are_found(void **state)
{
	static const enum wr_bug bugs[] = {WR_BUG_TREE_LAST_ALTERNATIVE, WR_BUG_TREE_ALL_FENCES,
					   WR_BUG_TREE_USES_LOST};

	(void)state;
	first = 0;
	for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++) {
		wr_bug_active = bugs[i];
		rig_in_world(1, lose_a_fence);
		wr_bug_active = WR_BUG_NONE;
		assert_false(one_tick);
	}
	wr_bug_active = WR_BUG_TREE_TAKES_ALL;
	rig_in_world(1, a_front_that_stays);
	wr_bug_active = WR_BUG_NONE;
	assert_string_not_equal(received, "0,1 1,0");
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c11_c04_a_tick_takes_the_inputs_that_hold),
		cmocka_unit_test(c11_s05_no_alternative_can_hold_any_more),
		cmocka_unit_test(c11_s10_the_earliest_time_counts_if_nothing_comes_before),
		cmocka_unit_test(c11_s04_the_timer_of_a_lost_alternative_holds_nothing_open),
		cmocka_unit_test(c11_s07_a_run_is_stopped_in_a_wait_for_alternatives),
		cmocka_unit_test(c11_g02_an_alternative_that_ends_gives_up_its_fence),
		cmocka_unit_test(c11_c05_alternatives_that_give_no_reason_are_explained),
		cmocka_unit_test(c11_g02_the_fences_of_each_alternative_wake_the_entity),
		cmocka_unit_test(c11_s04_g02_the_fences_of_lost_alternatives_hold_nothing_open),
		cmocka_unit_test(
			c11_c08_a_front_of_an_alternative_that_is_lost_stays_and_its_gate_is_not_asked),
#ifdef WR_SEAM
		cmocka_unit_test(c11_the_seeded_bugs_are_found),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

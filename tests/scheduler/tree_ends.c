/*
 * Trees of conditions (C11): how runs of them end, alternatives whose inputs are held or not connected, and
 * fronts of alternatives that are lost. `b` notes how many messages its ticks receive.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "rig_inside.h"

static char received[1024];
static size_t length;
static bool holds;    /* `b` holds `in` from its first tick on */
static uint64_t last; /* tick of `b`; 0: it never finishes by itself */
static int peeked;    /* a content condition saw messages at both inputs */

static weir_status note(weir_context *context, void *state)
{
	(void)state;
	if (length < sizeof received - 16)
		length += (size_t)snprintf(received + length, sizeof received - length, "%s%zu,%zu",
					   length ? " " : "", weir_context_count(context, 0),
					   weir_context_count(context, 1));
	if (last && weir_context_tick(context) + 1 == last)
		return weir_context_finish(context);
	return holds && !weir_context_tick(context) ? weir_context_hold(context, 0, 0) : WEIR_OK;
}

static const weir_port inputs[] = {{.size = sizeof(weir_port), .name = "in", .flags = WEIR_PORT_OPTIONAL},
				   {.size = sizeof(weir_port), .name = "in2", .flags = WEIR_PORT_OPTIONAL},
				   {.name = NULL}};
static const weir_operator noting = {.size = sizeof(weir_operator),
				     .name = "noting",
				     .help = "notes how many messages its ticks receive",
				     .inputs = inputs,
				     .compute = note};

/* At its first tick "go" is told to wait; at its second one "pair" is told to be ready, if there is one. */
static weir_status tell_go(weir_context *context, void *state)
{
	weir_entity *b = weir_graph_entity(weir_context_graph(context), "b");
	bool begins = !weir_context_tick(context);

	(void)state;
	return weir_entity_tell(b, begins ? "go" : "pair", begins ? WEIR_TOLD_WAIT : WEIR_TOLD_READY);
}

static const weir_operator going = {
	.size = sizeof(weir_operator), .name = "going", .help = "tells whether to go", .compute = tell_go};

#define A               "{\"type\": \"message_available\", \"port\": \"in\"}"
#define C               "{\"type\": \"message_available\", \"port\": \"in2\"}"
#define GO              "{\"type\": \"boolean\", \"name\": \"go\"}"
#define ALL(conditions) "{\"type\": \"all_of\", \"conditions\": [" conditions "]}"
#define PERIODIC        "{\"type\": \"periodic\", \"period\": \"10ms\"}"
#define LATE            "{\"type\": \"periodic\", \"period\": \"100s\", \"offset\": \"100s\"}"
#define DISABLED        "{\"type\": \"boolean\", \"enable_tick\": false}"

/* An entity with what it has beside its name, and a tick every `period` from `offset` on, `count` of them. */
#define SOURCE(name, what, period, offset, count)                                                            \
	"{\"name\": \"" name "\", \"operator\": " what                                                       \
	", \"conditions\": [{\"type\": \"periodic\", \"period\": \"" period "\", \"offset\": \"" offset      \
	"\"}, {\"type\": \"count\", \"count\": " count "}]}, "
#define PING           "\"ping\""
#define GOING          "\"going\""
#define SPIN(duration) "\"spin\", \"parameters\": {\"duration\": \"" duration "\"}"
#define BOTH           "[\"a.out\", \"b.in\"], [\"c.out\", \"b.in2\"]"

static struct rig *rig_of_tree(const char *sources, const char *ports, const char *conditions,
			       const char *connections)
{
	char json[3000];

	snprintf(
		json, sizeof json,
		"{\"weir\": 1, \"entities\": [%s{\"name\": \"b\", \"operator\": \"noting\", \"ports\": {%s}, "
		"\"conditions\": [%s]}], \"connections\": [%s]}",
		sources, ports, conditions, connections);
	length = 0;
	received[0] = 0;
	return rig_of_json(json, (const weir_operator *[]){&noting, &going, NULL});
}

#define ANY(alternatives) "{\"type\": \"any_of\", \"conditions\": [" alternatives "]}"
#define WIDE              "\"in\": {\"capacity\": 20}, \"in2\": {\"capacity\": 20}"

/* Returns what the run returned. */
static weir_status run(struct rig *rig)
{
	weir_status status = rig_run(rig);

	rig_destroy(rig);
	return status;
}

/* --- the end of a run --- */

/* Five messages of `a` have no partner, and the time alone would let `b` tick for ever. */
static void without_a_partner(void)
{
	struct rig *rig =
		rig_of_tree(SOURCE("a", PING, "1ms", "0ms", "10") SOURCE("c", PING, "1ms", "0ms", "5"), WIDE,
			    ANY(ALL(A ", " C) ", " PERIODIC), BOTH);

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "b").received, 10);
	assert_true(rig_done(rig, "b"));
	rig_destroy(rig);
}

static void c11_s05_messages_that_no_alternative_can_take_keep_no_run(void **state)
{
	(void)state;
	rig_everywhere(without_a_partner);
}

/* Of `c`, which no alternative names, the last message comes after those of `a`. */
static void newest_unseen(void)
{
	struct rig *rig =
		rig_of_tree(SOURCE("a", PING, "1ms", "0ms", "5") SOURCE("c", PING, "10ms", "1ms", "3"),
			    "\"in2\": {\"policy\": \"latest\"}", ANY(A ", " LATE), BOTH);
	int64_t began = wr_now();

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(wr_now() - began < 3 * SECOND);
	assert_int_equal(rig_ticks(rig, "b"), 5);
	rig_destroy(rig);
}

static void c11_c04_s05_what_no_tick_shows_keeps_no_run(void **state)
{
	(void)state;
	rig_in_worlds(4, newest_unseen);
}

/* What takes messages waits for the program; the time alone goes on. */
static void drained(void)
{
	struct rig *rig = rig_of_tree(SOURCE("a", PING, "1ms", "0ms", "10"), WIDE,
				      ANY(ALL(A ", " DISABLED) ", " PERIODIC), "[\"a.out\", \"b.in\"]");
	int64_t began;

	rig_start(rig);
	weir_sleep(50 * MS);
	began = wr_now();
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_true(wr_now() - began < 3 * SECOND); /* `drain` is 5 s */
	assert_true(rig_done(rig, "b"));
	rig_destroy(rig);
}

static void c11_s07_a_time_alone_keeps_no_drain_alive(void **state)
{
	(void)state;
	rig_on_host(drained);
}

/* Without a connection `in2` is nothing to tick for. */
static void absent(void)
{
	assert_int_equal(run(rig_of_tree(SOURCE("a", PING, "10ms", "0ms", "3"), WIDE, ANY(A ", " C),
					 "[\"a.out\", \"b.in\"]")),
			 WEIR_OK);
	assert_string_equal(received, "1,0 1,0 1,0");
}

static void c11_an_input_without_a_connection_lets_nothing_tick(void **state)
{
	(void)state;
	rig_everywhere(absent);
}

/* The first drain begins at 25 ms: two or three ticks have taken one message of `c` each. */
static void beside_a_tree(void)
{
	struct rig *rig = rig_of_tree(SOURCE("a", PING, "1s", "1s", "5") SOURCE("c", PING, "1us", "0ms", "6"),
				      WIDE, ANY(A ", " PERIODIC), BOTH);

	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 25 * MS, NULL);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
	assert_string_equal(received, "0,1 0,1 0,1 0,1 0,1 0,1");
}

static void c11_s07_a_drain_takes_what_is_beside_a_tree(void **state)
{
	(void)state;
	rig_in_worlds(4, beside_a_tree);
}

/* The alternative without an input is passed over; that of `in` holds every 100 ms. */
static void drained_later(void)
{
	struct rig *rig = rig_of_tree(SOURCE("a", PING, "1ms", "0ms", "3"), WIDE,
				      ANY(ALL(A ", {\"type\": \"periodic\", \"period\": \"100ms\", "
						"\"offset\": \"100ms\"}") ", " PERIODIC),
				      "[\"a.out\", \"b.in\"]");

	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 50 * MS, NULL);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "b").received, 3);
	rig_destroy(rig);
}

static void c11_s07_a_drain_waits_for_the_time_of_an_alternative_that_takes_messages(void **state)
{
	(void)state;
	rig_in_worlds(4, drained_later);
}

/* `in` is named in the tree, too, and every tick takes from it all the same. */
static void named_beside_the_tree(void)
{
	assert_int_equal(
		run(rig_of_tree(SOURCE("a", PING, "10ms", "0ms", "3") SOURCE("c", PING, "10ms", "0ms", "3"),
				WIDE, ANY(ALL(A ", " DISABLED) ", " C) ", " A, BOTH)),
		WEIR_OK);
	assert_string_equal(received, "1,1 1,1 1,1");
}

static void c11_c04_an_input_that_is_named_beside_a_tree_is_taken_by_every_tick(void **state)
{
	(void)state;
	rig_in_worlds(4, named_beside_the_tree);
}

enum { SENDERS = 9 }; /* so many have a set of those with new messages */

static void many_senders(const char *conditions, const char *expected)
{
	char sources[2000] = "", connections[600] = "[\"a.out\", \"b.in\"]";

	snprintf(sources, sizeof sources, "%s", SOURCE("a", PING, "1s", "1s", "1"));
	for (int i = 0; i < SENDERS; i++) {
		snprintf(sources + strlen(sources), sizeof sources - strlen(sources),
			 "{\"name\": \"c%d\", \"operator\": " SPIN(
				 "10ms") ", \"conditions\": [{\"type\": \"count\", "
					 "\"count\": 1}]}, ",
			 i);
		snprintf(connections + strlen(connections), sizeof connections - strlen(connections),
			 ", [\"c%d.out\", \"b.in2\"]", i);
	}
	assert_int_equal(run(rig_of_tree(sources, WIDE, conditions, connections)), WEIR_OK);
	assert_string_equal(received, expected);
}

/* With a tick every 10 ms, and as fast as they come. */
static void beside_and_inside(void)
{
	many_senders(ANY(A ", " PERIODIC), "0,1 0,1 0,1 0,1 0,1 0,1 0,1 0,1 0,1");
	many_senders(ANY(A ", " C), "0,1 0,1 0,1 0,1 0,1 0,1 0,1 0,1 0,1 1,0");
}

static void c11_c04_an_input_of_many_senders_stands_beside_a_tree_or_in_it(void **state)
{
	(void)state;
	rig_in_worlds(4, beside_and_inside);
}

/* --- held inputs --- */

/* `in` is held: until its last message, `in2` alone says when `b` ticks. */
static void held(void)
{
	holds = true;
	/* The rest of the alternative of `in` does not hold in the end. */
	assert_int_equal(
		run(rig_of_tree(SOURCE("a", PING, "1ms", "0ms", "3") SOURCE("c", PING, "20ms", "20ms", "3")
					SOURCE("t", GOING, "10ms", "50ms", "1"),
				"\"in\": {\"capacity\": 20}", ANY(ALL(GO ", " A) ", " C), BOTH)),
		WEIR_E_DEADLOCK);
	holds = false;
	assert_string_equal(received, "1,0 0,1 0,1 0,1");
}

static void c11_c04_an_alternative_that_is_held_lets_nothing_tick(void **state)
{
	(void)state;
	rig_in_worlds(4, held);
}

/* Another condition says when the compute that holds goes on; the disabled alternative does not keep it. */
static void held_and_timed(void)
{
	struct rig *rig =
		rig_of_tree(SOURCE("a", PING, "1ms", "0ms", "1"), WIDE,
			    ANY(A ", " DISABLED) ", {\"type\": \"periodic\", \"period\": \"10ms\"}, "
						 "{\"type\": \"count\", \"count\": 4}",
			    "[\"a.out\", \"b.in\"]");

	holds = true;
	assert_int_equal(run(rig), WEIR_OK);
	holds = false;
	assert_string_equal(received, "1,0 0,0 0,0 0,0");
}

static void c11_c04_a_compute_that_holds_ticks_as_another_condition_says(void **state)
{
	(void)state;
	rig_in_worlds(4, held_and_timed);
}

/* How often `b` has ticked decides nothing: `in2` does, and once that has ended what is held is enough. */
static void held_and_counted(void)
{
	assert_int_equal(
		run(rig_of_tree(SOURCE("a", PING, "1ms", "0ms", "1") SOURCE("c", PING, "20ms", "20ms", "3"),
				WIDE, ANY(ALL(A ", {\"type\": \"count\", \"count\": 100}") ", " C), BOTH)),
		WEIR_OK);
	assert_string_equal(received, "1,0 0,1 0,1 0,1 0,0 0,0");
}

/* A time within the alternative says when, as it does beside it. */
static void held_and_paced(void)
{
	assert_int_equal(
		run(rig_of_tree(SOURCE("a", PING, "1ms", "0ms", "1") SOURCE("c", PING, "1s", "25ms", "9"),
				WIDE, ANY(ALL(A ", " PERIODIC) ", " C), BOTH)),
		WEIR_OK);
	assert_string_equal(received, "1,0 0,0 0,0 0,1 0,0 0,0");
}

/* The disabled alternative waits, and `in2` beside the tree says when to tick. */
static void held_beside_an_input(void)
{
	assert_int_equal(
		run(rig_of_tree(SOURCE("a", PING, "1ms", "0ms", "1") SOURCE("c", PING, "10ms", "0ms", "9"),
				WIDE, ANY(A ", " DISABLED), BOTH)),
		WEIR_OK);
	assert_string_equal(received, "1,1 0,1 0,1 0,1 0,1 0,1");
}

static void c11_c04_what_decides_for_a_held_alternative(void **state)
{
	(void)state;
	holds = true;
	last = 6;
	rig_in_worlds(4, held_and_counted);
	rig_in_worlds(4, held_and_paced);
	rig_in_worlds(4, held_beside_an_input);
	holds = false;
	last = 0;
}

/* --- a condition of the program in a tree --- */

static void ask_nothing(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	(void)verdict;
}

static const weir_condition nothing = {
	.size = sizeof(weir_condition), .name = "nothing", .help = "gives no verdict", .ask = ask_nothing};

static void without_a_verdict(void)
{
	struct rig *rig = rig_of_tree(SOURCE("a", PING, "1ms", "0ms", "3"), WIDE,
				      ANY("{\"type\": \"nothing\"}, " A), "[\"a.out\", \"b.in\"]");

	assert_int_equal(rig_run(rig), WEIR_E_INVALID);
	assert_says(rig->outcome.text, "condition 'nothing' gave no verdict");
	assert_string_equal(rig->outcome.entity, "b");
	rig_destroy(rig);
	assert_string_equal(received, "");
}

static void c11_c02_an_alternative_without_a_verdict_fails_the_run(void **state)
{
	(void)state;
	rig_conditions = (const weir_condition *[]){&nothing, NULL};
	rig_in_worlds(2, without_a_verdict);
	rig_conditions = NULL;
}

/* --- fronts of lost alternatives --- */

/* The front was closed with one message, for an alternative that the program then switches off. */
static void topped_up(void)
{
	assert_int_equal(run(rig_of_tree(SOURCE("a", SPIN("200ms"), "20ms", "0ms", "3")
						 SOURCE("t", GOING, "10ms", "10ms", "1"),
					 "\"in\": {\"capacity\": 8, \"take\": 3}",
					 ANY(ALL(GO ", {\"type\": \"message_available\", \"port\": \"in\", "
						    "\"min_size\": 1}") ", "
									"{\"type\": \"message_available\", "
									"\"port\": \"in\", \"min_size\": 3}"),
					 "[\"a.out\", \"b.in\"]")),
			 WEIR_OK);
	assert_string_equal(received, "3,0");
}

static void c11_c04_a_front_has_what_the_alternative_that_holds_needs(void **state)
{
	(void)state;
	rig_in_worlds(4, topped_up);
}

static void peek_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	weir_fence fence;

	(void)state;
	peeked += weir_view_message(view, 1, 0) &&
		  (weir_view_message(view, 0, 0) || weir_view_pending(view, 0, 1, &fence));
	weir_verdict_ready(verdict);
}

static const weir_condition peek = {.size = sizeof(weir_condition),
				    .name = "peek",
				    .help = "looks at both inputs",
				    .phase = WEIR_PHASE_CONTENT,
				    .ask = peek_ask};

#define LOST                                                                                                 \
	SOURCE("a", SPIN("100ms"), "1s", "0ms", "1")                                                         \
	SOURCE("c", PING, "200ms", "30ms", "3") SOURCE("t", GOING, "100ms", "10ms", "2")
#define PAIR ALL("{\"type\": \"boolean\", \"name\": \"pair\", \"enable_tick\": false}, " A ", " C)

/* The front of `in` is closed at 0 ms; from 10 ms on no alternative takes it, and `b` holds it from 30 ms on.
 */
static void held_front(void)
{
	struct rig *rig =
		rig_of_tree(LOST, "", ANY(ALL(GO ", " A) ", " C ", " PAIR) ", {\"type\": \"peek\"}", BOTH);

	holds = true;
	peeked = 0;
	assert_int_equal(run(rig), WEIR_E_DEADLOCK);
	holds = false;
	assert_string_equal(received, "0,1 0,1 0,1");
	assert_int_equal(peeked, 0);
}

static void c11_c04_a_front_that_is_not_taken_is_inbox_again(void **state)
{
	(void)state;
	rig_conditions = (const weir_condition *[]){&peek, NULL};
	rig_in_worlds(4, held_front);
	rig_conditions = NULL;
}

/* --- a refused alternative --- */

static weir_fence promise;
static int64_t completed_at, ticked_at;

static int nap(const void *arguments)
{
	(void)arguments;
	weir_sleep(900 * MS);
	return 0;
}

/* `b` waits for this work, too. */
static weir_status work(weir_context *context, void *state)
{
	static const weir_kernel napping = {.size = sizeof(weir_kernel), .name = "napping", .host = nap};
	weir_stream *stream = NULL;
	weir_fence fence = {0, 0};
	weir_status status = weir_context_stream(context, &stream);

	(void)state;
	if (!status)
		status = weir_stream_launch(stream, &napping, "", 1);
	if (!status)
		status = weir_stream_record(stream, &fence);
	return status ? status
		      : weir_entity_tell_fence(weir_graph_entity(weir_context_graph(context), "b"), "first",
					       fence);
}

static weir_status complete(weir_context *context, void *state)
{
	(void)state;
	completed_at = wr_now();
	return weir_fence_complete(weir_context_graph(context), promise, WEIR_OK, NULL);
}

static weir_status tick_once(weir_context *context, void *state)
{
	(void)state;
	if (!ticked_at)
		ticked_at = wr_now();
	return weir_context_finish(context);
}

static const weir_operator working = {.size = sizeof(weir_operator),
				      .name = "working",
				      .help = "works",
				      .flags = WEIR_OPERATOR_STREAM,
				      .compute = work};
static const weir_operator completing = {
	.size = sizeof(weir_operator), .name = "completing", .help = "completes", .compute = complete};
static const weir_operator ticking = {.size = sizeof(weir_operator),
				      .name = "ticking",
				      .help = "notes when it ticks",
				      .compute = tick_once};

#define FIRST "{\"type\": \"fence\", \"name\": \"first\"}"
#define LATER "{\"type\": \"fence\", \"name\": \"second\"}"

/* The one callback of the device is `e`'s, for 900 ms. */
static void refused(const char *alternatives)
{
	char json[3000];
	struct rig *rig;

	snprintf(json, sizeof json,
		 "{\"weir\": 1, \"entities\": [" SOURCE("a", SPIN("900ms"), "1s", "0ms", "1")
			 SOURCE("w", "\"working\"", "1s", "50ms", "1")
				 SOURCE("t", "\"completing\"", "1s", "150ms",
					"1") "{\"name\": \"e\", \"operator\": \"print\"}, {\"name\": \"b\", "
					     "\"operator\": "
					     "\"ticking\", \"conditions\": [{\"type\": \"any_of\", "
					     "\"conditions\": [%s]}]}], "
					     "\"connections\": [[\"a.out\", \"e.in\"]]}",
		 alternatives);
	rig = rig_of_json(json, (const weir_operator *[]){&working, &completing, &ticking, NULL});
	rig->options.signal = "callback";
	rig_make(rig);
	rig_bound_signals(rig, 1);
	assert_int_equal(weir_graph_create_fence(rig->graph, &promise), WEIR_OK);
	assert_int_equal(weir_entity_tell_fence(weir_graph_entity(rig->graph, "b"), "second", promise),
			 WEIR_OK);
	ticked_at = 0;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(ticked_at - completed_at, 0, 10 * MS);
	rig_destroy(rig);
}

static void refused_before_and_after(void)
{
	refused(FIRST ", " LATER);
	refused(LATER ", " FIRST);
}

static void c11_g02_what_follows_a_refused_alternative_is_armed(void **state)
{
	(void)state;
	rig_in_worlds(2, refused_before_and_after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c11_s05_messages_that_no_alternative_can_take_keep_no_run),
		cmocka_unit_test(c11_c04_s05_what_no_tick_shows_keeps_no_run),
		cmocka_unit_test(c11_s07_a_time_alone_keeps_no_drain_alive),
		cmocka_unit_test(c11_an_input_without_a_connection_lets_nothing_tick),
		cmocka_unit_test(c11_c04_an_input_that_is_named_beside_a_tree_is_taken_by_every_tick),
		cmocka_unit_test(c11_c04_an_input_of_many_senders_stands_beside_a_tree_or_in_it),
		cmocka_unit_test(c11_s07_a_drain_takes_what_is_beside_a_tree),
		cmocka_unit_test(c11_s07_a_drain_waits_for_the_time_of_an_alternative_that_takes_messages),
		cmocka_unit_test(c11_c04_an_alternative_that_is_held_lets_nothing_tick),
		cmocka_unit_test(c11_c04_a_compute_that_holds_ticks_as_another_condition_says),
		cmocka_unit_test(c11_c04_what_decides_for_a_held_alternative),
		cmocka_unit_test(c11_c02_an_alternative_without_a_verdict_fails_the_run),
		cmocka_unit_test(c11_c04_a_front_has_what_the_alternative_that_holds_needs),
		cmocka_unit_test(c11_c04_a_front_that_is_not_taken_is_inbox_again),
		cmocka_unit_test(c11_g02_what_follows_a_refused_alternative_is_armed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

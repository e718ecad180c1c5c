/*
 * Runs with the condition `aligned`: sources stamp their messages as a list says, `pair` notes the tags of
 * what its ticks receive, "1,1 2,-".
 */
#include <stdio.h>
#include <string.h>

#include "cameras.h"
#include "rig.h"
#ifdef WR_SEAM
#include "tests/bugs/bug.h"
#endif

static char received[4000];
static size_t length;

/* --- an operator --- */

static weir_status pair_compute(weir_context *context, void *state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		weir_message *message =
			weir_context_count(context, i) ? weir_context_message(context, i, 0) : NULL;
		const char *before = i ? "," : length ? " " : "";
		char tag[24] = "-";

		weir_fence fences[4];
		size_t fence_count = message ? weir_message_fences(message, 4, fences) : 0;

		for (size_t k = 0; k < fence_count; k++) /* C8 */
			if (weir_fence_query(weir_context_graph(context), fences[k]))
				return weir_context_fail(context, "is not finished");
		if (message)
			snprintf(tag, sizeof tag, "%llu",
				 (unsigned long long)weir_message_stamp(message).tag);
		length += (size_t)snprintf(received + length, sizeof received - length, "%s%s", before, tag);
	}
	return WEIR_OK;
}

static const weir_port pair_inputs[] = {{.size = sizeof(weir_port), .name = "a"},
					{.size = sizeof(weir_port), .name = "b"},
					{.size = sizeof(weir_port), .name = "c", .flags = WEIR_PORT_OPTIONAL},
					{.name = NULL}};
static const weir_operator pair = {.size = sizeof(weir_operator),
				   .name = "pair",
				   .help = "notes the tags that its ticks receive",
				   .inputs = pair_inputs,
				   .compute = pair_compute};

/* --- lists and runs --- */

static bool spins; /* what comes at `a` is device work */

#define SPIN "{\"name\": \"s\", \"operator\": \"spin\", \"parameters\": {\"duration\": \"300us\"}},"

static struct rig *rig_with(const char *condition, const char *port_settings)
{
	char json[1600];

	length = 0;
	received[0] = 0;
	snprintf(json, sizeof json,
		 "{\"weir\": 1, \"entities\": ["
		 "{\"name\": \"l\", \"operator\": \"camera\", \"parameters\": {\"list\": 0}},"
		 "{\"name\": \"r\", \"operator\": \"camera\", \"parameters\": {\"list\": 1}},"
		 "%s{\"name\": \"p\", \"operator\": \"pair\", \"ports\": {%s}, \"conditions\": "
		 "[{\"type\": \"aligned\", %s}]}], \"connections\": [[\"l.out\", \"%s\"], [\"r.out\", "
		 "\"p.b\"]%s]}",
		 spins ? SPIN : "", port_settings, condition, spins ? "s.in" : "p.a",
		 spins ? ", [\"s.out\", \"p.a\"]" : "");
	return rig_of_json(json, (const weir_operator *[]){&camera, &pair, NULL});
}

#define BOTH "\"ports\": [\"a\", \"b\"], "
#define ONE  "\"a\": {\"capacity\": 1}, \"b\": {\"capacity\": 1}"
#define FOUR "\"a\": {\"capacity\": 4}, \"b\": {\"capacity\": 4}"

struct expected {
	const char *condition, *ports, *a, *b, *sets;
	uint64_t unmatched; /* of both */
};

static const struct expected *now;

static void run(void)
{
	struct rig *rig;
	weir_queue_counts a, b;

	fill(0, now->a);
	fill(1, now->b);
	rig = rig_with(now->condition, now->ports);
	assert_int_equal(rig_run(rig), WEIR_OK);
	a = rig_queue(rig, "p.a");
	b = rig_queue(rig, "p.b");
	assert_int_equal(a.unmatched + b.unmatched, now->unmatched);
	assert_int_equal(a.pushed, a.delivered + a.unmatched + a.closed);
	assert_int_equal(b.pushed, b.delivered + b.unmatched + b.closed);
	rig_destroy(rig);
	assert_string_equal(received, now->sets);
}

static void expect(const struct expected *expected)
{
	now = expected;
	rig_in_worlds(50, run);
	rig_on_host(run);
}

/* --- sets of all --- */

static void c12_ticks_receive_what_belongs_together(void **state)
{
	static const struct expected cases[] = {
		{BOTH "\"by\": \"time\", \"within\": \"5ms\", \"nearest\": true", FOUR, "10 20 30 40 50",
		 "11 32 40 52", "1,1 3,2 4,3 5,4", 1},
		{BOTH "\"by\": \"time\"", FOUR, "10 20 30", "10 25 30", "1,1 3,3", 2},
		{BOTH "\"by\": \"tag\"", FOUR, "1 2 3", "7 8 9", "1,1 2,2 3,3", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		expect(&cases[i]);
}

/* The other port's message cannot come before there is room, nor its own partner. */
static void c12_s03_queues_of_one_place_never_block(void **state)
{
	static const struct expected cases[] = {
		{BOTH "\"by\": \"time\"", ONE, "1 2 3 4 5 6 7 8 9", "9", "9,1", 8},
		{BOTH "\"by\": \"time\", \"within\": \"1ms\"", ONE, "1 10 20 30", "5 15 30", "4,3", 5},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		expect(&cases[i]);
}

static void c12_s05_a_source_that_ends_early_ends_the_sets(void **state)
{
	(void)state;
	expect(&(struct expected){BOTH "\"by\": \"time\", \"nearest\": true", FOUR, "10 20 30 40 50 60 70",
				  "10 20", "1,1 2,2", 0});
	expect(&(struct expected){BOTH "\"by\": \"time\"", FOUR, "10 20", "", "", 0});
}

#define THREE "\"ports\": [\"a\", \"b\", \"c\"], "

/* Nothing is connected to c. */
static void c12_an_aligned_port_without_a_connection_is_left_out(void **state)
{
	static const struct expected cases[] = {
		{THREE "\"by\": \"time\"", FOUR, "10 20 30", "10 25 30", "1,1 3,3", 2},
		{THREE "\"by\": \"time\", \"missing\": \"empty\", \"timeout\": \"1s\"", FOUR, "10 20", "20",
		 "1,- 2,1", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		expect(&cases[i]);
}

/* What has no partner frees its place all the same: a push is never refused here. */
static void c12_s03_a_drop_frees_its_place_whatever_the_policy_is(void **state)
{
	(void)state;
	expect(&(struct expected){BOTH "\"by\": \"time\"",
				  "\"a\": {\"capacity\": 4, \"policy\": \"fault\"}, \"b\": {\"capacity\": 1}",
				  "1 2 3 9", "9", "4,1", 3});
}

/* --- sets of some --- */

static void c12_ticks_come_without_what_cannot_come(void **state)
{
	static const struct expected cases[] = {
		{BOTH "\"by\": \"time\", \"missing\": \"empty\"", FOUR, "10 20 30", "20 25",
		 "1,- 2,1 -,2 3,-", 0},
		{BOTH "\"by\": \"time\", \"missing\": \"empty\"", ONE, "10 20 30 40 50", "",
		 "1,- 2,- 3,- 4,- 5,-", 0},
		{BOTH "\"by\": \"time\", \"missing\": \"empty\", \"within\": \"3ms\", \"nearest\": true",
		 FOUR, "10 20 22", "23 24", "1,- 3,1 -,2", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		expect(&cases[i]);
}

/* --- device work --- */

/* Stamps are compared while the device works; compute receives what is finished. */
static void c12_c08_gates_wait_for_the_set(void **state)
{
	(void)state;
	spins = true;
	expect(&(struct expected){BOTH "\"by\": \"time\", \"within\": \"2ms\", \"nearest\": true", FOUR,
				  "10 20 30 40 50", "11 31 41 51", "1,1 3,2 4,3 5,4", 1});
	spins = false;
}

/* --- inlets --- */

static void drops_at_an_inlet(void)
{
	weir_inlet *inlet = NULL;
	struct rig *rig;

	fill(1, "50");
	length = 0;
	received[0] = 0;
	rig = rig_of_json("{\"weir\": 1, \"entities\": ["
			  "{\"name\": \"r\", \"operator\": \"camera\", \"parameters\": {\"list\": 1}},"
			  "{\"name\": \"p\", \"operator\": \"pair\", \"ports\": {" ONE "}, \"conditions\": "
			  "[{\"type\": \"aligned\", " BOTH "\"by\": \"time\"}]}], "
			  "\"connections\": [[\"r.out\", \"p.b\"]]}",
			  (const weir_operator *[]){&camera, &pair, NULL});
	assert_int_equal(weir_graph_add_inlet(rig->graph, "p.a", &inlet), WEIR_OK);
	rig_start(rig);
	for (uint64_t i = 1; i <= 5; i++) {
		weir_message *message = rig_message(rig, 0);

		weir_message_set_stamp(message, (weir_stamp){(int64_t)i * 10 * MS, i});
		assert_int_equal(weir_inlet_push(inlet, message, 60 * SECOND), WEIR_OK);
	}
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_queue(rig, "p.a").unmatched, 4);
	rig_destroy(rig);
	assert_string_equal(received, "5,1");
}

static void c12_s03_a_drop_lets_the_program_push_on(void **state)
{
	(void)state;
	rig_everywhere(drops_at_an_inlet);
}

/* --- failures --- */

static void fails(const char *condition, const char *line)
{
	struct rig *rig = rig_with(condition, FOUR);

	assert_int_equal(rig_run(rig), WEIR_E_INVALID);
	assert_non_null(strstr(rig->outcome.text, line));
	assert_string_equal(rig->outcome.entity, "p");
	rig_destroy(rig);
}

static void failing(void)
{
	fill(0, "10 20 30");
	fill(1, "10 20 15");
	fails(BOTH "\"by\": \"time\"",
	      "times of r.out -> p.b go back, from 20000000 to 15000000 ns: they must not descend");
	lists[1][2] = (weir_stamp){40000000, 1};
	fails(BOTH "\"by\": \"tag\"", "tags of r.out -> p.b go back, from 2 to 1: they must not descend");
	lists[1][0] = (weir_stamp){0, 5};
	fails(BOTH "\"by\": \"time\"", "a message of r.out has no time at 'b': its sender sets it by "
				       "weir_context_set_stamp or weir_message_set_stamp");
	lists[1][0].tag = UINT64_MAX;
	fails(BOTH "\"by\": \"tag\"", "a message of r.out has no stamp at 'b'");
}

/* By tag a message needs no time. */
static void tags_alone(void)
{
	struct rig *rig;

	for (size_t list = 0; list < 2; list++)
		for (uint64_t i = 0; i < 4; i++)
			lists[list][i] = (weir_stamp){0, i < 3 ? i + list + 1 : 0};
	rig = rig_with(BOTH "\"by\": \"tag\"", FOUR);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
	assert_string_equal(received, "2,2 3,3");
	lists[1][2].tag = 1;
	fails(BOTH "\"by\": \"tag\"", "tags of r.out -> p.b go back, from 3 to 1: they must not descend");
}

static void c12_tags_alone_are_enough_and_must_not_descend(void **state)
{
	(void)state;
	rig_in_worlds(20, tags_alone);
}

static void c12_an_inlet_beside_a_connection_of_an_aligned_port_lets_no_run_start(void **state)
{
	weir_inlet *inlet = NULL;
	struct rig *rig;

	(void)state;
	fill(0, "10");
	fill(1, "10");
	rig = rig_with(BOTH "\"by\": \"time\"", FOUR);
	assert_int_equal(weir_graph_add_inlet(rig->graph, "p.a", &inlet), WEIR_OK);
	rig_make(rig);
	rig_here(rig);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_INVALID);
	assert_says(weir_last_error(),
		    "'a' has 2 connections, and an aligned port has one: make no inlet there");
	rig_destroy(rig);
	assert_string_equal(received, "");
}

static void c12_bad_stamps_fail_the_run_by_one_line(void **state)
{
	(void)state;
	rig_in_worlds(20, failing);
}

/* --- the seeded bugs --- */

#ifdef WR_SEAM
static void run_with_bug(void)
{
	struct rig *rig;

	fill(0, "1 2 3 4 5 6 7 8 9");
	fill(1, "10");
	rig = rig_with(BOTH "\"by\": \"time\", \"within\": \"1ms\"", ONE);
	rig_run(rig);
	rig_destroy(rig);
}

static void c12_the_seeded_bugs_are_found(void **state)
{
	(void)state;
	rig_in_world(1, run_with_bug);
	assert_string_equal(received, "9,1");
	wr_bug_active = WR_BUG_ALIGNED_NOT_POKED;
	rig_in_world(1, run_with_bug);
	assert_string_equal(received, "");
	wr_bug_active = WR_BUG_ALIGNED_EARLY;
	rig_in_world(1, run_with_bug);
	wr_bug_active = WR_BUG_NONE;
	assert_string_equal(received, "");
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c12_ticks_receive_what_belongs_together),
		cmocka_unit_test(c12_s03_queues_of_one_place_never_block),
		cmocka_unit_test(c12_s05_a_source_that_ends_early_ends_the_sets),
		cmocka_unit_test(c12_an_aligned_port_without_a_connection_is_left_out),
		cmocka_unit_test(c12_s03_a_drop_frees_its_place_whatever_the_policy_is),
		cmocka_unit_test(c12_ticks_come_without_what_cannot_come),
		cmocka_unit_test(c12_c08_gates_wait_for_the_set),
		cmocka_unit_test(c12_s03_a_drop_lets_the_program_push_on),
		cmocka_unit_test(c12_tags_alone_are_enough_and_must_not_descend),
		cmocka_unit_test(c12_an_inlet_beside_a_connection_of_an_aligned_port_lets_no_run_start),
		cmocka_unit_test(c12_bad_stamps_fail_the_run_by_one_line),
#ifdef WR_SEAM
		cmocka_unit_test(c12_the_seeded_bugs_are_found),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a run gets in which `aligned` gives the last message of a port again ("reuse"), and how it is counted.
 */
#include <stdio.h>
#include <string.h>

#include "films.h"

static void check_counts(struct rig *rig)
{
	weir_queue_counts a = rig_queue(rig, "p.a"), b = rig_queue(rig, "p.b");
	weir_frames sink = {.size = sizeof(sink)};

	assert_int_equal(weir_scheduler_frames(rig->scheduler, &sink), WEIR_OK);
	assert_int_equal(sink.frames, rig_counts(rig, "p").ticks); /* no port gives each frame once */
	assert_int_equal(a.reused + b.reused, now.reused);
	assert_int_equal(a.pushed, a.delivered + a.unmatched + a.closed);
	assert_int_equal(b.pushed, b.delivered + b.unmatched + b.closed);
	assert_int_equal(rig_counts(rig, "p").received, a.delivered + b.delivered + now.reused);
	assert_int_equal(rig->outcome.held, 0);
	assert_int_equal(rig->outcome.leftover, 0);
}

/* A second run begins with nothing kept. */
static void run_twice(void)
{
	struct rig *rig = begin();

	for (int i = 0; i < 2; i++) {
		length = 0;
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_string_equal(seen, now.sets);
		check_counts(rig);
		check_given_back();
		assert_true(rig_done(rig, "p")); /* what is kept is none that it waits with (S5) */
	}
	rig_destroy(rig);
}

static void expect(unsigned capacity, const char *condition, const char *a, const char *b, const char *sets,
		   uint64_t reused)
{
	now.graph = PLAIN;
	now.capacity = capacity;
	now.condition = condition;
	now.a = a;
	now.b = b;
	now.sets = sets;
	now.reused = reused;
	rig_in_worlds(30, run_twice);
	rig_on_host(run_twice);
}

/* --- what is given --- */

static void c12_e05_s05_a_port_gives_its_last_message_again(void **state)
{
	(void)state;
	expect(4, BOTH, "10 20 30 40", "20", "10,- 20,20 30,20+ 40,20+", 2);
	expect(1, BOTH, "10 30 50", "20 40", "10,- 10+,20 30,20+ 30+,40 50,40+", 4);
	expect(4, BOTH ", \"within\": \"2ms\"", "10 20 30", "11 21.5 40", "10,11 20,21.5 30,21.5+ 30+,40", 2);
}

static void c12_what_is_too_old_is_not_given(void **state)
{
	(void)state;
	expect(4, BOTH ", \"max_age\": \"15ms\"", "10 20 25 26 60", "10 70",
	       "10,10 20,10+ 25,10+ 26,- 60,- 60+,70", 3);
	expect(4, BOTH ", \"max_age\": \"1ms\"", "10 20", "9 20", "-,9 10,9+ 20,20", 1);
}

#define THREE                                                                                                \
	"{\"weir\": 1, \"entities\": ["                                                                      \
	"{\"name\": \"l\", \"operator\": \"film\", \"parameters\": {\"list\": 0}},"                          \
	"{\"name\": \"r\", \"operator\": \"film\", \"parameters\": {\"list\": 1}},"                          \
	"{\"name\": \"m\", \"operator\": \"film\", \"parameters\": {\"list\": 2}},"                          \
	"{\"name\": \"p\", \"operator\": \"see\", "                                                          \
	"\"ports\": {\"a\": {\"capacity\": %u}, \"b\": {\"capacity\": %u}, \"c\": {\"capacity\": 4, "        \
	"\"take\": 2}}, "                                                                                    \
	"\"conditions\": [{\"type\": \"aligned\", %s}]}],"                                                   \
	"\"connections\": [[\"l.out\", \"p.a\"], [\"r.out\", \"p.b\"], [\"m.out\", \"p.c\"]]}"

static void count_frames(void)
{
	weir_frames sink = {.size = sizeof(sink)};
	struct rig *rig;

	fill(2, "1 2 3 4 5 6");
	rig = begin();
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(seen, now.sets);
	assert_int_equal(weir_scheduler_frames(rig->scheduler, &sink), WEIR_OK);
	assert_int_equal(rig_counts(rig, "p").ticks, 3);
	assert_int_equal(sink.frames, 6);
	rig_destroy(rig);
	check_given_back();
}

/* where one of a sink's ports gives each message once, its messages are the frames */
static void c12_e05_what_is_given_again_is_no_frame(void **state)
{
	(void)state;
	now.graph = THREE;
	now.capacity = 4;
	now.condition = BOTH;
	now.a = "10 20 30";
	now.b = "20";
	now.sets = "10,-,1 20,20,3 30,20+,5";
	rig_in_worlds(30, count_frames);
	rig_on_host(count_frames);
}

/* by their numbers: lists number from 1 */
static void c12_ages_of_tags_count_tags(void **state)
{
	(void)state;
	expect(4, "\"ports\": [\"a\", \"b\"], \"by\": \"tag\", \"missing\": \"reuse\", \"max_age_tags\": 2",
	       "10 20 30 40 50", "5", "10,5 20,5+ 30,5+ 40,- 50,-", 2);
}

/* c, which is named and which nothing feeds, takes no part. */
static void c12_a_port_that_nothing_feeds_has_nothing_to_give_again(void **state)
{
	(void)state;
	expect(4, "\"ports\": [\"a\", \"b\", \"c\"], \"by\": \"time\", \"missing\": \"reuse\"", "10 20 30 40",
	       "20", "10,- 20,20 30,20+ 40,20+", 2);
}

static unsigned shown,
	missing; /* fronts of b in which a content condition saw one message, or another count */

static void peek_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	bool one = weir_view_message(view, 1, 0) && !weir_view_message(view, 1, 1);

	(void)state;
	*(one ? &shown : &missing) += 1;
	weir_verdict_ready(verdict);
}

static const weir_condition peek = {.size = sizeof(weir_condition),
				    .name = "peek",
				    .help = "looks at the second input",
				    .phase = WEIR_PHASE_CONTENT,
				    .ask = peek_ask};

static void look_at_fronts(void)
{
	struct rig *rig = begin();

	shown = missing = 0;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(seen, now.sets);
	assert_true(shown >= 3);
	assert_int_equal(missing, 0);
	rig_destroy(rig);
}

static void c12_c04_a_condition_sees_what_is_given_again(void **state)
{
	(void)state;
	rig_conditions = (const weir_condition *[]){&peek, NULL};
	now.graph = PLAIN;
	now.capacity = 4;
	now.condition = BOTH "}, {\"type\": \"peek\"";
	now.a = "10 20 30";
	now.b = "10";
	now.sets = "10,10 20,10+ 30,10+";
	rig_in_worlds(5, look_at_fronts);
	rig_conditions = NULL;
}

/* --- what is said of it --- */

#define FED                                                                                                  \
	"{\"weir\": 1, \"inlets\": [\"p.a\"], \"entities\": ["                                               \
	"{\"name\": \"r\", \"operator\": \"film\", \"parameters\": {\"list\": 1}},"                          \
	"{\"name\": \"p\", \"operator\": \"see\", " PORTS                                                    \
	"\"conditions\": [{\"type\": \"aligned\", %s}]}], \"connections\": [[\"r.out\", \"p.b\"]]}"

static void push(struct rig *rig, weir_inlet *inlet, int64_t ms)
{
	weir_message *message = NULL;

	assert_int_equal(weir_message_create_empty(rig->graph, &message), WEIR_OK);
	assert_int_equal(weir_message_set_stamp(message, (weir_stamp){ms * MS, 1}), WEIR_OK);
	assert_int_equal(weir_inlet_push(inlet, message, -1), WEIR_OK);
}

static void explain_what_is_kept(void)
{
	struct rig *rig = begin();
	weir_inlet *inlet = NULL;

	assert_int_equal(weir_graph_add_inlet(rig->graph, "p.a", &inlet), WEIR_OK);
	rig_start(rig);
	push(rig, inlet, 10);
	weir_sleep(20 * MS);
	push(rig, inlet, 20);
	weir_sleep(10 * MS);
	assert_string_equal(seen, now.sets);
	assert_says(rig_explain(rig), "p: aligned on a: WAIT (no messages that belong together, 'a' shows a "
				      "message of 10");
	assert_says(rig->explained, ", 'b' shows a message of 30");
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig->outcome.held, 0);
	rig_destroy(rig);
	check_given_back();
}

static void c12_c05_it_is_explained_how_old_what_is_kept_is(void **state)
{
	(void)state;
	now.graph = FED;
	now.capacity = 4;
	now.condition = BOTH;
	now.a = "";
	now.b = "10";
	now.sets = "10,10 20,10+";
	rig_in_worlds(10, explain_what_is_kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c12_e05_s05_a_port_gives_its_last_message_again),
		cmocka_unit_test(c12_what_is_too_old_is_not_given),
		cmocka_unit_test(c12_e05_what_is_given_again_is_no_frame),
		cmocka_unit_test(c12_ages_of_tags_count_tags),
		cmocka_unit_test(c12_a_port_that_nothing_feeds_has_nothing_to_give_again),
		cmocka_unit_test(c12_c04_a_condition_sees_what_is_given_again),
		cmocka_unit_test(c12_c05_it_is_explained_how_old_what_is_kept_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

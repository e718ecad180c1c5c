/*
 * Runs with the condition `aligned` at its ends: small queues, more than two ports, timeouts, what
 * follows behind it, and graphs that stand.
 */
#include <stdio.h>
#include <string.h>

#include "cameras.h"
#include "rig.h"

static char noted[2000];
static size_t length;

/* --- operators --- */

/* Notes the times of what a tick receives, in ms, "1,-". */
static void note_set(weir_context *context, unsigned count)
{
	const char *before = length ? " " : "";

	for (unsigned i = 0; i < count; i++, before = ",") {
		char time[24] = "-";

		if (weir_context_count(context, i))
			snprintf(time, sizeof time, "%g",
				 (double)weir_message_stamp(weir_context_message(context, i, 0)).time / 1e6);
		length += (size_t)snprintf(noted + length, sizeof noted - length, "%s%s", before, time);
	}
}

static weir_status two_compute(weir_context *context, void *state)
{
	(void)state;
	note_set(context, 2);
	return WEIR_OK;
}

static weir_status three_compute(weir_context *context, void *state)
{
	(void)state;
	note_set(context, 3);
	return WEIR_OK;
}

static int64_t begun;

static weir_status when_start(weir_context *context, void *state, const weir_values *values)
{
	(void)state, (void)values;
	begun = weir_context_now(context);
	return WEIR_OK;
}

static weir_status when_compute(weir_context *context, void *state)
{
	(void)state;
	note_set(context, 2);
	length += (size_t)snprintf(noted + length, sizeof noted - length, "@%d",
				   (int)((weir_context_now(context) - begun) / 1000000));
	return WEIR_OK;
}

static weir_status join_compute(weir_context *context, void *state)
{
	weir_message *message = NULL;
	weir_status status = weir_message_create_empty(weir_context_graph(context), &message);

	(void)state;
	return status ? status : weir_context_emit(context, 0, message);
}

struct silent {
	struct camera camera;
	size_t ticks;
};

/* Emits what its list says, then nothing until its 40th tick. */
static weir_status silent_compute(weir_context *context, void *state)
{
	struct silent *self = state;
	weir_stamp stamp = lists[self->camera.list][self->camera.next];
	weir_message *message = NULL;
	weir_status status;

	if (self->ticks++ == 40)
		return weir_context_finish(context);
	if (!stamp.time)
		return WEIR_OK;
	self->camera.next++;
	status = weir_message_create_empty(weir_context_graph(context), &message);
	if (!status)
		status = weir_message_set_stamp(message, stamp);
	return status ? status : weir_context_emit(context, 0, message);
}

static const weir_port inputs[] = {{.size = sizeof(weir_port), .name = "a"},
				   {.size = sizeof(weir_port), .name = "b"},
				   {.size = sizeof(weir_port), .name = "c", .flags = WEIR_PORT_OPTIONAL},
				   {.name = NULL}};
static const weir_operator two = {.size = sizeof(weir_operator),
				  .name = "two",
				  .help = "notes what two ports receive",
				  .inputs = inputs,
				  .compute = two_compute};
static const weir_operator three = {.size = sizeof(weir_operator),
				    .name = "three",
				    .help = "notes what three ports receive",
				    .inputs = inputs,
				    .compute = three_compute};
static const weir_operator when = {.size = sizeof(weir_operator),
				   .name = "when",
				   .help = "notes what two ports receive, and when",
				   .inputs = inputs,
				   .start = when_start,
				   .compute = when_compute};
static const weir_operator join = {.size = sizeof(weir_operator),
				   .name = "join",
				   .help = "emits one message for each set",
				   .inputs = inputs,
				   .outputs = camera_outputs,
				   .flags = WEIR_OPERATOR_INSTANCES,
				   .compute = join_compute};
static const weir_port group_inputs[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_operator group = {.size = sizeof(weir_operator),
				    .name = "group",
				    .help = "emits one message for all that a tick takes",
				    .inputs = group_inputs,
				    .outputs = camera_outputs,
				    .compute = join_compute};
static const weir_operator silent = {.size = sizeof(weir_operator),
				     .name = "silent",
				     .help = "emits what a list says, and is silent then",
				     .state_size = sizeof(struct silent),
				     .parameters = camera_parameters,
				     .outputs = camera_outputs,
				     .start = camera_start,
				     .compute = silent_compute};

/* --- graphs --- */

#define SOURCE(name, kind, list)                                                                             \
	"{\"name\": \"" name "\", \"operator\": \"" kind "\", \"parameters\": {\"list\": " list "}}, "
#define PLACES(port, capacity)                "\"" port "\": {\"capacity\": " capacity "}"
#define JOIN(name, kind, capacity, condition) SEVERAL("1", name, kind, capacity, condition)
#define SEVERAL(instances, name, kind, capacity, condition)                                                  \
	"{\"name\": \"" name "\", \"operator\": \"" kind "\", \"instances\": " instances                     \
	", \"ports\": {" PLACES("a", capacity) ", " PLACES("b", capacity) ", " PLACES(                       \
		"c", capacity) "}, \"conditions\": [{\"type\": \"aligned\", " condition "}]}"
#define BOTH  "\"ports\": [\"a\", \"b\"], \"by\": \"time\""
#define TIMED "\"conditions\": [{\"type\": \"periodic\", \"period\": \"4ms\"}], "

static const char *graph, *lines[LISTS], *expected;

static struct rig *begin(void)
{
	length = 0;
	noted[0] = 0;
	for (size_t i = 0; i < LISTS; i++)
		fill(i, lines[i]);
	return rig_of_json(
		graph, (const weir_operator *[]){&camera, &two, &three, &when, &join, &group, &silent, NULL});
}

static void run(void)
{
	struct rig *rig = begin();

	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
	assert_string_equal(noted, expected);
}

static void expect(const char *json, const char *a, const char *b, const char *c, const char *sets)
{
	graph = json;
	lines[0] = a;
	lines[1] = b;
	lines[2] = c;
	expected = sets;
	rig_in_worlds(30, run);
}

/* --- what is chosen --- */

#define PAIR(capacity, condition)                                                                            \
	"{\"weir\": 1, \"entities\": [" SOURCE("l", "camera", "0") SOURCE("r", "camera", "1")                \
		JOIN("p", "two", capacity,                                                                   \
		     condition) "], \"connections\": [[\"l.out\", \"p.a\"], [\"r.out\", \"p.b\"]]}"
#define TRIO(condition)                                                                                      \
	"{\"weir\": 1, \"entities\": [" SOURCE("l", "camera", "0") SOURCE("r", "camera", "1")                \
		SOURCE("s", "camera", "2") JOIN("p", "three", "4",                                           \
						"\"ports\": [\"a\", \"b\", \"c\"], \"by\": "                 \
						"\"time\"" condition) "], \"connections\": [[\"l.out\", "    \
								      "\"p.a\"], [\"r.out\", \"p.b\"], "     \
								      "[\"s.out\", \"p.c\"]]}"

/* What its own review drops makes room for a nearer one. */
static void c12_the_nearest_is_found_through_queues_of_two_places(void **state)
{
	(void)state;
	expect(PAIR("2", BOTH ", \"within\": \"5ms\", \"nearest\": true"), "8 9 10", "10", "", "10,10");
	expect(PAIR("2", BOTH ", \"within\": \"5ms\", \"nearest\": true"),
	       "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20", "10 20", "", "10,10 20,20");
}

/* With "empty" nothing is dropped before the set is known, so the queue holds what is within, and one more.
 */
static void c12_the_nearest_of_some_is_found_if_the_queue_holds_what_is_within(void **state)
{
	(void)state;
	expect(PAIR("6", BOTH ", \"within\": \"5ms\", \"nearest\": true, \"missing\": \"empty\""),
	       "1 2 3 4 5 6", "5", "", "5,5 6,-");
}

/* 10.5 is nearer to 10 than 9 is, but too far from 8. */
static void c12_no_set_is_wider_than_within(void **state)
{
	(void)state;
	expect(TRIO(", \"within\": \"2ms\", \"nearest\": true"), "9 10.5", "10 30", "8 30", "9,10,8");
	expect(TRIO(", \"within\": \"2ms\", \"nearest\": true, \"missing\": \"empty\""), "9 10.5", "10 30",
	       "8 30", "9,10,8 10.5,-,- -,30,30");
}

/* --- timeouts --- */

#define PERIODIC(name, list)                                                                                 \
	"{\"name\": \"" name "\", \"operator\": \"silent\", " TIMED "\"parameters\": {\"list\": " list "}}," \
	" "
#define WAITING                                                                                              \
	"{\"weir\": 1, \"entities\": [" PERIODIC("l", "0") PERIODIC("r", "1")                                \
		JOIN("p", "when", "4",                                                                       \
		     BOTH                                                                                    \
		     ", \"missing\": \"empty\", \"timeout\": \"5ms\"") "], \"connections\": [[\"l.out\", "   \
								       "\"p.a\"], [\"r.out\", \"p.b\"]]}"

/* Each waits from when it was seen, not from when it became the first. */
static void c12_a_timeout_counts_for_each_message_from_when_it_was_seen(void **state)
{
	(void)state;
	expect(WAITING, "100 101 102", "", "", "100,-@5 101,-@9 102,-@13");
	expect(WAITING, "100", "1 2 3 4", "", "-,1@0 -,2@4 100,-@5 -,3@8 -,4@12");
}

/* --- behind it --- */

/* The first input's stamps would be 12, 11: a set may lack a. */
#define STAMPS(instances)                                                                                    \
	"{\"weir\": 1, \"entities\": [" SOURCE("l", "camera", "0") SOURCE("r", "camera", "1")                \
		SOURCE("s", "camera", "2")                                                                   \
			SEVERAL(instances, "j", "join", "4",                                                 \
				BOTH ", \"within\": \"3ms\", \"missing\": \"empty\", \"nearest\": "          \
				     "true") ", " JOIN("p", "two", "4",                                      \
						       BOTH ", \"within\": \"3ms\"") "], \"connections\": "  \
										     "[[\"l.out\", "         \
										     "\"j.a\"], "            \
										     "[\"r.out\", "          \
										     "\"j.b\"], "            \
										     "[\"j.out\", "          \
										     "\"p.a\"], "            \
										     "[\"s.out\", "          \
										     "\"p.b\"]]}"

static void c12_what_a_tick_emits_has_the_stamp_of_its_earliest_message(void **state)
{
	(void)state;
	expect(STAMPS("1"), "12", "11 11", "11 12", "11,11 11,12");
}

static void c12_c13_what_an_instance_emits_has_the_stamp_of_its_earliest_message(void **state)
{
	(void)state;
	expect(STAMPS("2"), "12", "11 11", "11 12", "11,11 11,12");
}

/* --- graphs that stand --- */

static char said[1000];

static void note_errors(weir_log_level level, int64_t at, const char *line, void *arg)
{
	(void)at, (void)arg;
	if (level == WEIR_LOG_ERROR && strlen(said) + strlen(line) < sizeof said)
		strcat(said, line);
}

/* g takes 8 at once, while p has room for 4 of the same; r goes on beside them. */
#define STANDING(missing)                                                                                    \
	"{\"weir\": 1, \"entities\": [{\"name\": \"r\", \"operator\": \"camera\", \"parameters\": "          \
	"{\"list\": 1}, \"conditions\": [{\"type\": \"periodic\", \"period\": \"100ms\"}]}, "                \
	"{\"name\": \"e\", \"operator\": \"sink\"}, " SOURCE(                                                \
		"s", "camera",                                                                               \
		"0") "{\"name\": \"g\", \"operator\": \"group\", \"ports\": {\"in\": {\"capacity\": 8, "     \
		     "\"take\": 8}}, \"conditions\": [{\"type\": \"message_available\", \"port\": \"in\", "  \
		     "\"min_size\": 8}]}, " JOIN(                                                            \
			     "p", "two", "4", BOTH missing) "], \"connections\": [[\"r.out\", \"e.in\"], "   \
							    "{\"from\": \"s.out\", \"to\": "                 \
							    "[\"p.a\", \"g.in\"]}, [\"g.out\", \"p.b\"]]}"

static void stand(void)
{
	struct rig *rig = begin();

	said[0] = 0;
	weir_log_set(note_errors, NULL);
	rig_run(rig);
	weir_log_set(NULL, NULL);
	rig_destroy(rig);
	if (*expected)
		assert_non_null(strstr(said, expected));
	else
		assert_null(strstr(said, "stands for ever"));
}

static void c12_s06_a_set_that_waits_for_its_own_graph_stands(void **state)
{
	(void)state;
	lines[0] = "1 2 3 4 5 6 7 8 9 10 11 12";
	lines[1] = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20";
	graph = STANDING("");
	expected = "a part of the graph stands for ever while the rest goes on: ";
	rig_in_worlds(5, stand);
	/* with a timeout it goes on */
	graph = STANDING(", \"missing\": \"empty\", \"timeout\": \"1500ms\"");
	expected = "";
	rig_in_worlds(5, stand);
}

/* g gives one message for 4: what lies between two of these waits at p until the second comes (W052). */
#define BETWEEN(capacity, missing)                                                                           \
	"{\"weir\": 1, \"entities\": [" SOURCE(                                                              \
		"s", "camera",                                                                               \
		"0") "{\"name\": \"g\", \"operator\": "                                                      \
		     "\"group\", \"ports\": {\"in\": {\"capacity\": 4, \"take\": 4}}, \"conditions\": "      \
		     "[{\"type\": "                                                                          \
		     "\"message_available\", \"port\": \"in\", \"min_size\": 4}]}, " JOIN(                   \
			     "p", "two", capacity,                                                           \
			     BOTH missing) "], \"connections\": [{\"from\": \"s.out\", \"to\": "             \
					   "[\"p.a\", \"g.in\"]}, [\"g.out\", \"p.b\"]]}"

static void run_into_standstill(void)
{
	struct rig *rig = begin();

	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	rig_destroy(rig);
	assert_string_equal(noted, expected);
}

static void c12_s06_what_lies_between_two_partners_needs_room(void **state)
{
	(void)state;
	expect(BETWEEN("7", ""), "1 2 3 4 5 6 7 8 9 10 11 12", "", "", "1,1 5,5 9,9");
	graph = BETWEEN("6", "");
	expected = "1,1";
	rig_in_worlds(20, run_into_standstill);
	expect(BETWEEN("7", ", \"missing\": \"reuse\""), "1 2 3 4 5 6 7 8", "", "",
	       "1,1 2,1 3,1 4,1 5,5 6,5 7,5 8,5");
	graph = BETWEEN("6", ", \"missing\": \"reuse\"");
	expected = "1,1";
	rig_in_worlds(20, run_into_standstill);
	/* with a timeout it goes on */
	expect(BETWEEN("6", ", \"missing\": \"reuse\", \"timeout\": \"1s\""), "1 2 3 4 5", "", "",
	       "1,1 2,1 3,1 4,1 5,1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c12_the_nearest_is_found_through_queues_of_two_places),
		cmocka_unit_test(c12_the_nearest_of_some_is_found_if_the_queue_holds_what_is_within),
		cmocka_unit_test(c12_no_set_is_wider_than_within),
		cmocka_unit_test(c12_a_timeout_counts_for_each_message_from_when_it_was_seen),
		cmocka_unit_test(c12_what_a_tick_emits_has_the_stamp_of_its_earliest_message),
		cmocka_unit_test(c12_c13_what_an_instance_emits_has_the_stamp_of_its_earliest_message),
		cmocka_unit_test(c12_s06_a_set_that_waits_for_its_own_graph_stands),
		cmocka_unit_test(c12_s06_what_lies_between_two_partners_needs_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

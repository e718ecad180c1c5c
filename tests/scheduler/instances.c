/* Several ticks of one entity at once (C13): the operator `work` does what a test says, and may have
 * instances. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "rig.h"
#include "tests/calls.h"

#define TEST(name) static void name(void **state_)
#define OPERATOR   .size = sizeof(weir_operator)
#define PORT       .size = sizeof(weir_port)

enum { SETS = 23 };

static struct {
	_Atomic unsigned now, most, started, stopped, ticks[8];
	_Atomic uint64_t last; /* 1 + what the sink has received last */
	_Atomic unsigned gaps, received, emitted;
} seen;

struct work {
	unsigned computing, number;
};

static weir_status work_start(weir_context *context, void *state, const weir_values *values)
{
	struct work *self = state;

	(void)context, (void)values;
	self->number = wr_fetch_add(&seen.started, 1) % 8;
	return WEIR_OK;
}

static void work_stop(weir_context *context, void *state)
{
	(void)context, (void)state;
	wr_fetch_add(&seen.stopped, 1);
}

/* Set i takes a time of its own and emits i % 3 messages of its number. */
static weir_status work_compute(weir_context *context, void *state)
{
	struct work *self = state;
	uint64_t set = weir_context_tick(context);
	unsigned now = wr_fetch_add(&seen.now, 1) + 1;
	weir_status status = WEIR_OK;

	if (self->computing++)
		return weir_context_fail(context, "two ticks in one state");
	wr_fetch_add(&seen.ticks[self->number], 1);
	if (now > wr_load(&seen.most))
		wr_store(&seen.most, now);
	weir_sleep((int64_t)(set * 7 % 5) * MS);
	if (weir_context_received(context, 0) != set || weir_context_received(context, 1))
		status = weir_context_fail(context, "set %llu has another number", (unsigned long long)set);
	if (rig_value(weir_context_message(context, 0, 0)) != (int64_t)set)
		status = weir_context_fail(context, "another set");
	for (uint64_t i = 0; !status && i < set % 3; i++)
		status = weir_context_emit(context, 0, rig_number(context, (int64_t)set));
	wr_fetch_add(&seen.emitted, (unsigned)(set % 3));
	wr_fetch_sub(&seen.now, 1);
	self->computing--;
	return status;
}

static weir_status from_compute(weir_context *context, void *state)
{
	(void)state;
	if (weir_context_received(context, 0))
		return weir_context_fail(context, "a source has received");
	if (weir_context_tick(context) + 1 == SETS)
		weir_context_finish(context);
	return weir_context_emit(context, 0, rig_number(context, (int64_t)weir_context_tick(context)));
}

/* Numbers come in order: those of set i, i % 3 times. */
static weir_status to_compute(weir_context *context, void *state)
{
	(void)state;
	for (size_t i = 0; i < weir_context_count(context, 0); i++) {
		uint64_t number = (uint64_t)rig_value(weir_context_message(context, 0, i));

		if (number + 1 < wr_load(&seen.last))
			wr_fetch_add(&seen.gaps, 1);
		wr_store(&seen.last, number + 1);
		wr_fetch_add(&seen.received, 1);
	}
	if (strcmp(weir_context_sender(context, 0, 0), "x.out"))
		return weir_context_fail(context, "came from %s", weir_context_sender(context, 0, 0));
	return WEIR_OK;
}

/* Takes two messages of `in` and what there is of `more`, and passes all on. */
static weir_status pair_compute(weir_context *context, void *state)
{
	int64_t set = (int64_t)weir_context_tick(context);
	weir_status status = WEIR_OK;

	(void)state;
	weir_sleep(set * 7 % 5 * MS);
	for (size_t i = 0; i < weir_context_count(context, 0); i++)
		if (rig_value(weir_context_message(context, 0, i)) != 2 * set + (int64_t)i)
			return weir_context_fail(context, "set %lld is mixed", (long long)set);
	for (size_t i = 0; !status && i < weir_context_count(context, 0); i++)
		status = weir_context_forward(context, 0, i, 0);
	for (size_t i = 0; i < weir_context_count(context, 1); i++)
		wr_fetch_add(&seen.ticks[0], 1);
	return status;
}

static weir_status fail_compute(weir_context *context, void *state)
{
	(void)state;
	return weir_context_tick(context) == 5 ? weir_context_fail(context, "the sixth set") : WEIR_OK;
}

static weir_status finish_compute(weir_context *context, void *state)
{
	(void)state;
	return weir_context_finish(context);
}

static weir_status hold_compute(weir_context *context, void *state)
{
	(void)state;
	return weir_context_hold(context, 0, 0);
}

static const weir_port in[] = {{PORT, .name = "in"}, {.name = NULL}};
static const weir_port out[] = {{PORT, .name = "out"}, {.name = NULL}};
static const weir_port two[] = {{PORT, .name = "out", .max_emits = 2}, {.name = NULL}};
#define MAY .flags = WEIR_OPERATOR_INSTANCES, .inputs = in
static const weir_operator from = {OPERATOR, .name = "from", .outputs = out, .compute = from_compute};
static const weir_operator work = {OPERATOR,
				   .name = "work",
				   MAY,
				   .outputs = two,
				   .state_size = sizeof(struct work),
				   .start = work_start,
				   .compute = work_compute,
				   .stop = work_stop};
static const weir_operator to = {OPERATOR, .name = "to", MAY, .compute = to_compute};
static const weir_operator failing = {OPERATOR, .name = "failing", MAY, .compute = fail_compute};
static const weir_operator finishing = {OPERATOR, .name = "finishing", MAY, .compute = finish_compute};
static const weir_operator holding = {OPERATOR, .name = "holding", MAY, .compute = hold_compute};
static const weir_port pair_in[] = {
	{PORT, .name = "in", .capacity = 4, .take = 2},
	{PORT, .name = "more", .flags = WEIR_PORT_OPTIONAL, .take = WEIR_TAKE_ALL},
	{.name = NULL}};
static const weir_operator pair = {OPERATOR,          .name = "pair", .flags = WEIR_OPERATOR_INSTANCES,
				   .inputs = pair_in, .outputs = two, .compute = pair_compute};
static const weir_operator *const operators[] = {&from,      &work,    &to,   &failing,
						 &finishing, &holding, &pair, NULL};

static unsigned instances;

static struct rig *rig_of_work(void)
{
	char json[600];

	memset(&seen, 0, sizeof seen);
	snprintf(json, sizeof json,
		 "{\"weir\":1,\"entities\":[{\"name\":\"a\",\"operator\":\"from\"},"
		 "{\"name\":\"x\",\"operator\":\"work\",\"instances\":%u},"
		 "{\"name\":\"b\",\"operator\":\"to\",\"ports\":{\"in\":{\"capacity\":4,\"take\":2}},"
		 "\"conditions\":[{\"type\":\"message_available\",\"port\":\"in\",\"min_size\":1}]}],"
		 "\"connections\":[[\"a.out\",\"x.in\"],[\"x.out\",\"b.in\"]]}",
		 instances);
	struct rig *rig = rig_of_json(json, operators);
	rig->options.workers = 4;
	return rig;
}

static void check_order(void)
{
	struct rig *rig = rig_of_work();
	unsigned emitted = 0;

	assert_int_equal(rig_run(rig), WEIR_OK);
	for (unsigned i = 0; i < SETS; i++)
		emitted += i % 3;
	assert_int_equal(wr_load(&seen.gaps), 0);
	assert_int_equal(wr_load(&seen.received), emitted);
	assert_int_equal(rig_counts(rig, "x").ticks, SETS);
	assert_int_equal(rig_counts(rig, "x").received, SETS);
	assert_int_equal(rig_counts(rig, "x").emitted, emitted);
	assert_int_equal(wr_load(&seen.started), instances);
	assert_int_equal(wr_load(&seen.stopped), instances);
	for (unsigned k = 0; k < instances; k++)
		assert_int_equal(wr_load(&seen.ticks[k]), (SETS + instances - 1 - k) / instances);
	rig_destroy(rig);
}

TEST(c13_outputs_keep_the_order_of_the_inputs)
{
	(void)state_;
	for (instances = 1; instances <= 5; instances++)
		rig_everywhere(check_order);
}

static void check_several(void)
{
	struct rig *rig = rig_of_work();

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(wr_load(&seen.most), 2, instances);
	rig_destroy(rig);
}

TEST(c13_several_ticks_compute_at_once)
{
	(void)state_;
	instances = 3;
	rig_on_host(check_several);
}

static void check_again(void)
{
	struct rig *rig = rig_of_work();

	assert_int_equal(rig_run(rig), WEIR_OK);
	wr_store(&seen.last, 0);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&seen.gaps), 0);
	assert_int_equal(wr_load(&seen.started), 2 * instances);
	rig_destroy(rig);
}

TEST(c13_s08_a_run_is_repeated_from_the_first_instance)
{
	(void)state_;
	instances = 3;
	rig_everywhere(check_again);
}

static void check_stopped(void)
{
	struct rig *rig = rig_of_work();

	rig_start(rig);
	weir_sleep(11 * MS);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(wr_load(&seen.gaps), 0);
	assert_int_equal(rig_counts(rig, "x").ticks, rig_counts(rig, "a").ticks);
	assert_int_equal(rig_counts(rig, "b").received, rig_counts(rig, "x").emitted);
	rig_destroy(rig);
}

TEST(c13_s07_a_drain_ends_when_the_last_set_is_through)
{
	(void)state_;
	instances = 4;
	rig_everywhere(check_stopped);
}

/* What is between its parts is counted as the graph shows it. */
static void check_cut(void)
{
	struct rig *rig = rig_of_work();
	weir_entity_counts x;
	weir_queue_counts queue;

	rig_start(rig);
	weir_sleep(11 * MS);
	weir_scheduler_stop(rig->scheduler, 0);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	x = rig_counts(rig, "x");
	queue = rig_queue(rig, "x.in");
	assert_int_equal(x.received, x.ticks);
	assert_int_equal(queue.delivered, x.ticks);
	assert_int_equal(x.emitted + x.unsent, wr_load(&seen.emitted));
	assert_int_equal(rig->outcome.abandoned,
			 queue.abandoned + x.unsent + rig_queue(rig, "b.in").abandoned);
	rig_destroy(rig);
}

TEST(c13_e05_what_a_stop_leaves_of_dealt_sets_is_counted)
{
	(void)state_;
	instances = 4;
	rig_everywhere(check_cut);
}

static void check_undrained(void)
{
	struct rig *rig = rig_of_work();

	rig->options.drain_ns = -1;
	rig_start(rig);
	weir_sleep(11 * MS);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_E_ABANDONED);
	assert_says(rig->outcome.text, "x (");
	assert_null(strstr(strstr(rig->outcome.text, "x (") + 1, "x"));
	rig_destroy(rig);
}

TEST(c13_s07_what_a_drain_leaves_of_an_entity_is_said_once)
{
	(void)state_;
	instances = 4;
	rig_everywhere(check_undrained);
}

/* Neither what its parts wait for among themselves, nor a port that the graph does not have. */
static void assert_one_place(const char *text)
{
	assert_null(strstr(text, "turn"));
	assert_null(strstr(text, "order of its instances"));
	assert_null(strstr(text, "x.in -> x.in"));
}

static void check_standing(void)
{
	char json[600];
	struct rig *rig;

	snprintf(json, sizeof json,
		 "{\"weir\":1,\"entities\":[{\"name\":\"a\",\"operator\":\"from\"},"
		 "{\"name\":\"x\",\"operator\":\"work\",\"instances\":%u},"
		 "{\"name\":\"b\",\"operator\":\"to\",\"ports\":{\"in\":{\"capacity\":4}},\"conditions\":[{"
		 "\"type\":\"boolean\",\"enable_tick\":false}"
		 "]}],"
		 "\"connections\":[[\"a.out\",\"x.in\"],[\"x.out\",\"b.in\"]]}",
		 instances);
	rig = rig_of_json(json, operators);
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_says(rig->outcome.text, "b waits: boolean: disabled");
	assert_says(rig->outcome.text, "2 others wait behind it");
	assert_one_place(rig->outcome.text);
	assert_one_place(rig_explain(rig));
	rig_destroy(rig);
}

static void check_circle(void)
{
	struct rig *rig = rig_of_json(
		"{\"weir\":1,\"entities\":[{\"name\":\"x\",\"operator\":\"work\",\"instances\":3,"
		"\"ports\":{\"in\":{\"capacity\":2,\"take\":2}},"
		"\"conditions\":[{\"type\":\"message_available\",\"port\":\"in\",\"min_size\":2}]},"
		"{\"name\":\"y\",\"operator\":\"pass\",\"ports\":{\"in\":{\"capacity\":4}}}],"
		"\"connections\":[[\"x.out\",\"y.in\"],{\"from\":\"y.out\",\"to\":\"x.in\",\"initial_"
		"messages\":1}]}",
		operators);

	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_says(rig->outcome.text, "circular wait: x.in has 1 of 2 messages from y.out");
	assert_string_equal(rig->outcome.cause_entity, "x");
	assert_string_equal(rig->outcome.cause_on, "in");
	assert_one_place(rig->outcome.text);
	rig_destroy(rig);
}

TEST(c13_c05_what_stands_still_is_told_of_one_entity)
{
	(void)state_;
	instances = 3;
	rig_everywhere(check_standing);
	rig_everywhere(check_circle);
}

static void check_pairs(void)
{
	struct rig *rig;

	memset(&seen, 0, sizeof seen);
	rig = rig_of_json(
		"{\"weir\":1,\"entities\":[{\"name\":\"a\",\"operator\":\"from\"},"
		"{\"name\":\"c\",\"operator\":\"from\"},"
		"{\"name\":\"x\",\"operator\":\"pair\",\"instances\":3,\"ports\":{\"more\":{\"capacity\":64}}"
		","
		"\"conditions\":[{\"type\":\"message_available\",\"port\":\"in\"},"
		"{\"type\":\"message_available\",\"port\":\"more\",\"min_size\":0}]},"
		"{\"name\":\"b\",\"operator\":\"to\",\"ports\":{\"in\":{\"capacity\":4}}}],"
		"\"connections\":[[\"a.out\",\"x.in\"],[\"c.out\",\"x.more\"],[\"x.out\",\"b.in\"]]}",
		operators);
	rig->options.workers = 3;
	if (rig_run(rig))
		fail_msg("%s", rig->outcome.text);
	assert_int_equal(wr_load(&seen.gaps), 0);
	assert_int_equal(wr_load(&seen.received), rig_counts(rig, "x").emitted);
	rig_destroy(rig);
}

TEST(c13_a_set_of_several_messages_and_inputs_stays_together)
{
	(void)state_;
	rig_everywhere(check_pairs);
}

/* --- what ends a run, by the name of the entity --- */

static void assert_fails(const char *operator, const char * part)
{
	char json[400];
	struct rig *rig;

	snprintf(json, sizeof json,
		 "{\"weir\":1,\"entities\":[{\"name\":\"a\",\"operator\":\"from\"},"
		 "{\"name\":\"x\",\"operator\":\"%s\",\"instances\":3}],\"connections\":[[\"a.out\",\"x.in\"]"
		 "]}",
		 operator);
	rig = rig_of_json(json, operators);
	assert_int_not_equal(rig_run(rig), WEIR_OK);
	assert_says(rig->outcome.text, part);
	assert_string_equal(rig->outcome.cause_entity, "x");
	rig_destroy(rig);
}

static void check_failures(void)
{
	assert_fails("failing", "the sixth set");
	assert_fails("finishing", "cannot finish the entity");
	assert_fails("holding", "cannot hold an input");
}

TEST(c13_an_instance_that_fails_ends_the_run_by_the_name_of_its_entity)
{
	(void)state_;
	rig_everywhere(check_failures);
}

/* --- ports that it has, and has not --- */

static weir_status stray_compute(weir_context *context, void *state)
{
	(void)state;
	return weir_context_emit(context, 1,
				 rig_number(context, 0)); /* of an instance it is none of the operator's */
}

static const weir_operator straying = {OPERATOR, .name = "straying", MAY, .outputs = out,
				       .compute = stray_compute};

TEST(c13_an_instance_emits_on_the_outputs_of_its_operator_alone)
{
	struct rig *rig = rig_of_json("{\"weir\":1,\"entities\":[{\"name\":\"a\",\"operator\":\"from\"},"
				      "{\"name\":\"x\",\"operator\":\"straying\",\"instances\":2},"
				      "{\"name\":\"b\",\"operator\":\"to\"}],"
				      "\"connections\":[[\"a.out\",\"x.in\"],[\"x.out\",\"b.in\"]]}",
				      (const weir_operator *[]){&from, &to, &straying, NULL});

	(void)state_;
	assert_int_equal(rig_run(rig), WEIR_E_INVALID);
	assert_says(rig->outcome.text, "emitted on output 1 of 1");
	rig_destroy(rig);
}

static weir_status rest_compute(weir_context *context, void *state)
{
	(void)context, (void)state;
	return WEIR_OK;
}

static const weir_operator resting = {OPERATOR, .name = "resting", MAY, .compute = rest_compute};

TEST(c13_e05_the_frames_of_a_sink_with_instances_are_its_messages)
{
	weir_frames sink = {.size = sizeof sink};
	struct rig *rig = rig_of_json("{\"weir\":1,\"entities\":[{\"name\":\"a\",\"operator\":\"from\"},"
				      "{\"name\":\"x\",\"operator\":\"resting\",\"instances\":3}],"
				      "\"connections\":[[\"a.out\",\"x.in\"]]}",
				      (const weir_operator *[]){&from, &resting, NULL});

	(void)state_;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(weir_scheduler_frames(rig->scheduler, &sink), WEIR_OK);
	assert_string_equal(sink.entity, "x");
	assert_int_equal(sink.frames, SETS);
	rig_destroy(rig);
}

/* --- what the program gives it --- */

TEST(c13_a_program_gives_its_entity_neither_a_second_inlet_nor_a_stream)
{
	weir_inlet *inlet = NULL;
	weir_stream *stream = NULL;
	weir_entity *entity;
	struct rig *rig;

	(void)state_;
	instances = 3;
	rig = rig_of_work();
	entity = weir_graph_entity(rig->graph, "x");
	assert_int_equal(weir_graph_add_inlet(rig->graph, "x.in", &inlet), WEIR_OK);
	rig_make(rig);
	assert_int_equal(weir_graph_add_stream(rig->graph, 0, &stream), WEIR_OK);
	assert_int_equal(weir_entity_use_stream(entity, stream), WEIR_E_INVALID);
	assert_says(weir_last_error(),
		    "each of its instances has a stream: leave \"instances\" out to give it one");
	assert_int_equal(weir_entity_use_stream(entity, NULL), WEIR_OK);
	rig_here(rig);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_INVALID);
	assert_says(weir_last_error(), "an input of instances has one connection: give it one inlet");
	assert_int_equal(wr_load(&seen.started), 0);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c13_outputs_keep_the_order_of_the_inputs),
		cmocka_unit_test(c13_several_ticks_compute_at_once),
		cmocka_unit_test(c13_s08_a_run_is_repeated_from_the_first_instance),
		cmocka_unit_test(c13_s07_a_drain_ends_when_the_last_set_is_through),
		cmocka_unit_test(c13_e05_what_a_stop_leaves_of_dealt_sets_is_counted),
		cmocka_unit_test(c13_s07_what_a_drain_leaves_of_an_entity_is_said_once),
		cmocka_unit_test(c13_c05_what_stands_still_is_told_of_one_entity),
		cmocka_unit_test(c13_a_set_of_several_messages_and_inputs_stays_together),
		cmocka_unit_test(c13_an_instance_emits_on_the_outputs_of_its_operator_alone),
		cmocka_unit_test(c13_e05_the_frames_of_a_sink_with_instances_are_its_messages),
		cmocka_unit_test(c13_a_program_gives_its_entity_neither_a_second_inlet_nor_a_stream),
		cmocka_unit_test(c13_an_instance_that_fails_ends_the_run_by_the_name_of_its_entity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

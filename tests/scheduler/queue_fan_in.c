/* Ports with many connections keep a set of the new ones instead
 * of walking all (C4, S5). Nothing else may differ. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

enum { MANY = 24, EACH = 4, STEP = 100 };

/* MANY sources, s0, s1, ..., of EACH messages: 0, 1, ... of s0, 100, 101, ... of s1; into a port of `end`. */
static struct rig *rig_of_many(const char *port, const char *settings, const char *source)
{
	static _Thread_local char text[MANY * 96];
	size_t length = 0;

	for (int i = 0; i < MANY; i++)
		length += (size_t)snprintf(text + length, sizeof text - length,
					   "s%d:source ticks=%d first=%d %s -> end.%s %s; ", i, EACH,
					   i * STEP, source, port, i ? "" : settings);
	text[length - 2] = 0;
	return rig_of(text);
}

/* What `end` received, without what follows a '|' within a word. Returns how many. */
static size_t received(struct rig *rig, int *out, size_t room)
{
	const char *at = rig_text(rig, "end");
	size_t count = 0;

	while (*at && count < room) {
		at += strspn(at, " ,|");
		out[count++] = atoi(at);
		at += strcspn(at, " ,");
	}
	return count;
}

/* All messages of each connection, in order. */
static void assert_all_in_order(struct rig *rig, unsigned runs)
{
	int numbers[4 * MANY * EACH], next[MANY] = {0};
	size_t count = received(rig, numbers, 4 * MANY * EACH);

	assert_int_equal(count, runs * MANY * EACH);
	for (size_t i = 0; i < count; i++) {
		int sender = numbers[i] / STEP;
		assert_in_range(sender, 0, MANY - 1);
		assert_int_equal(numbers[i] % STEP, next[sender] % EACH);
		next[sender]++;
	}
}

static void receive_all(const char *settings, const char *source)
{
	struct rig *rig = rig_of_many("in", settings, source);

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_all_in_order(rig, 1);
	rig_destroy(rig);
}

static void receive_all_in_all_ways(void)
{
	receive_all("capacity=1", "");
	receive_all("capacity=4 take=3", "");
	receive_all("capacity=3 take=all", "");
	receive_all("capacity=4 policy=pop", "");
	receive_all("capacity=4 policy=reject", "");
	receive_all("capacity=2 gate=in", "work=3us");
	receive_all("capacity=2 take=all gate=in", "work=3us");
}

static void xb25_each_connection_keeps_its_order_and_loses_nothing(void **state)
{
	(void)state;
	rig_everywhere(receive_all_in_all_ways);
}

/* Each queue is served once a round, except for the first tick, when some may still be empty. */
static void take_turns(void)
{
	char late[80], settings[120];
	int numbers[MANY * EACH];
	struct rig *rig;

	snprintf(late, sizeof late, "; late:source period=1ms count=%d -> end.in2", MANY * EACH);
	snprintf(settings, sizeof settings, "capacity=%d%s", EACH, late);
	rig = rig_of_many("in", settings, "");
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(received(rig, numbers, MANY * EACH), MANY * EACH);
	for (size_t round = 0; round + 1 < EACH; round++) {
		bool served[MANY] = {false};
		for (size_t i = 0; i < MANY; i++)
			served[numbers[1 + round * MANY + i] / STEP] = true;
		for (size_t i = 0; i < MANY; i++)
			assert_true(served[i]);
	}
	rig_destroy(rig);
}

static void xb25_connections_are_served_in_turn(void **state)
{
	(void)state;
	rig_in_worlds(10, take_turns);
}

static weir_status look_at_lists(struct rig *rig, weir_context *context)
{
	size_t at = 0;

	HOLDS(rig, weir_context_count(context, 2) == 2 * MANY);
	for (int k = 0; k < MANY; k++) {
		HOLDS(rig, weir_context_queue_count(context, 2, (size_t)k) == 2);
		for (int i = 0; i < 2; i++)
			HOLDS(rig, rig_value(weir_context_message(context, 2, at++)) ==
					   k * STEP + 2 * (int)weir_context_tick(context) + i);
	}
	HOLDS(rig, weir_context_queue_count(context, 2, MANY) == 0);
	return WEIR_OK;
}

static void look_at_lists_of_any_size(void)
{
	char text[MANY * 64];
	size_t length = 0;
	struct rig *rig;

	for (int i = 0; i < MANY; i++)
		length += (size_t)snprintf(
			text + length, sizeof text - length, "s%d:source ticks=%d first=%d -> %s; ", i,
			i == 7 ? EACH - 1 : EACH, i * STEP, i ? "c.any" : "c:call.any capacity=3 take=2");
	text[length - 2] = 0;
	rig = rig_of(text);
	rig_on(rig, "c", look_at_lists);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "c"), 1); /* the one of three has too few for another */
	assert_true(rig_done(rig, "c") && rig_done(rig, "s0"));
	rig_destroy(rig);
}

static void xb25_an_any_size_port_has_its_lists_and_its_end(void **state)
{
	(void)state;
	rig_everywhere(look_at_lists_of_any_size);
}

static void end_before_the_senders(const char *settings)
{
	struct rig *rig = rig_of_many("in", settings, "");

	assert_int_equal(rig_run(rig), WEIR_OK); /* the rig asserts conservation */
	assert_int_equal(rig_ticks(rig, "end"), 3);
	assert_true(rig_done(rig, "end") && rig_done(rig, "s0") && rig_done(rig, "s9"));
	rig_destroy(rig);
}

static void end_before_the_senders_in_all_ways(void)
{
	end_before_the_senders("count=3");
	end_before_the_senders("count=3 take=all capacity=3");
	end_before_the_senders("count=3 policy=pop");
	end_before_the_senders("count=3 policy=reject capacity=2");
}

static void xb25_what_a_done_receiver_leaves_is_counted(void **state)
{
	(void)state;
	rig_everywhere(end_before_the_senders_in_all_ways);
}

static void run_twice(void)
{
	struct rig *rig = rig_of_many("in", "capacity=2 take=2", "");

	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_start(rig);
	weir_scheduler_stop(rig->scheduler, 0); /* abandons the messages in queues */
	rig_wait(rig);
	rig_entity(rig, "end")->length = 0;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_all_in_order(rig, 1);
	rig_destroy(rig);
}

static void xb25_a_run_that_was_cut_short_leaves_no_news_to_the_next(void **state)
{
	(void)state;
	rig_everywhere(run_twice);
}

static void push_to_inlets(void)
{
	struct rig *rig = rig_of("end capacity=4");
	weir_inlet *inlets[MANY];

	for (int i = 0; i < MANY; i++)
		assert_int_equal(weir_graph_add_inlet(rig->graph, "end.in", &inlets[i]), WEIR_OK);
	rig_start(rig);
	for (int k = 0; k < EACH; k++)
		for (int i = 0; i < MANY; i++)
			assert_int_equal(weir_inlet_push(inlets[i], rig_message(rig, i * STEP + k), -1),
					 WEIR_OK);
	for (int i = 0; i < MANY; i++)
		weir_inlet_close(inlets[i]);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_all_in_order(rig, 1);
	rig_destroy(rig);
}

static void xb25_inlets_are_connections_of_the_set(void **state)
{
	(void)state;
	rig_on_host(push_to_inlets);
}

/* Between two runs the program makes more inlets of the same port. */
static void xb25_a_port_may_get_connections_between_two_runs(void **state)
{
	struct rig *rig = rig_of_many("in", "", "");
	weir_inlet *inlet = NULL;
	int numbers[3 * MANY * EACH];

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
	rig->scheduler = NULL;
	assert_int_equal(weir_graph_add_inlet(rig->graph, "end.in", &inlet), WEIR_OK);
	rig_start(rig);
	assert_int_equal(weir_inlet_push(inlet, rig_message(rig, 7777), 0), WEIR_OK);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(received(rig, numbers, 3 * MANY * EACH), 2 * MANY * EACH + 1);
	assert_says(rig_text(rig, "end"), "7777");
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb25_each_connection_keeps_its_order_and_loses_nothing),
		cmocka_unit_test(xb25_connections_are_served_in_turn),
		cmocka_unit_test(xb25_an_any_size_port_has_its_lists_and_its_end),
		cmocka_unit_test(xb25_what_a_done_receiver_leaves_is_counted),
		cmocka_unit_test(xb25_a_run_that_was_cut_short_leaves_no_news_to_the_next),
		cmocka_unit_test(xb25_inlets_are_connections_of_the_set),
		cmocka_unit_test(xb25_a_port_may_get_connections_between_two_runs),
	};

	return cmocka_run_group_tests_name("scheduler/fan_in", tests, NULL, NULL);
}

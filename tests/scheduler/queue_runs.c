/* Messages in queues when senders end, receivers are DONE, and queues drop. */
#include <stdio.h>

#include "rig.h"

/* --- any-size ports: one queue that can never hold enough again makes the receiver DONE --- */

static void end_with_the_shorter(const char *settings)
{
	char text[160];
	struct rig *rig;

	snprintf(text, sizeof text, "a:source ticks=10 -> end.any %s; b:source ticks=4 first=20 -> end.any",
		 settings);
	rig = rig_of(text);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(rig_done(rig, "a") && rig_done(rig, "b") && rig_done(rig, "end"));
	assert_int_equal(rig_ticks(rig, "end"), 4);
	assert_string_equal(rig_text(rig, "end"), "|0,20 |1,21 |2,22 |3,23");
	rig_destroy(rig);
}

static void end_any_size_ports(void)
{
	end_with_the_shorter("capacity=1");
	end_with_the_shorter("capacity=16");
	end_with_the_shorter("capacity=1 gate=any"); /* no message condition: the port has its own */
	end_with_the_shorter("capacity=16 gate=any");
}

static void xb18_an_any_size_port_is_never_when_one_closed_queue_has_too_few(void **state)
{
	(void)state;
	rig_everywhere(end_any_size_ports);
}

/* The first sender is DONE. Its queue holds less than a tick takes, but enough for the condition. */
static void xb18_enough_for_the_condition_is_not_too_few(void **state)
{
	struct rig *rig = rig_of("a:source ticks=1 -> end.any min=1 take=2 capacity=2; "
				 "b:source ticks=1 first=20 delay=1ms -> end.any");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "|0,20");
	rig_destroy(rig);
}

/* --- queues that drop: an otherwise idle receiver gets each message --- */

static void lose_nothing(const char *text)
{
	struct rig *rig = rig_of(text);

	rig->options.workers = 1;
	assert_int_equal(rig_run(rig), WEIR_OK);
	if (rig_queue(rig, "end.in").dropped)
		fail_msg("%s: dropped %d", text, (int)rig_queue(rig, "end.in").dropped);
	assert_int_equal(rig_ticks(rig, "end"), 200);
	rig_destroy(rig);
}

static void lose_nothing_in_all_ways(void)
{
	lose_nothing("source ticks=200 -> end policy=reject");
	lose_nothing("source ticks=200 -> end policy=pop");
	lose_nothing("source ticks=200 -> end policy=reject capacity=3");
	lose_nothing("end; source ticks=200 -> end policy=pop"); /* `end` is queued first */
	lose_nothing("a:source ticks=200 -> p:pass -> end policy=reject; b:source ticks=300 -> q:call");
}

static void xb21_an_idle_receiver_loses_nothing_to_a_row_of_ticks(void **state)
{
	(void)state;
	rig_everywhere(lose_nothing_in_all_ways);
}

/* The receiver waits for something else: its sender goes on, and what does not fit is dropped. */
static void xb21_a_receiver_that_is_not_ready_delays_no_sender(void **state)
{
	struct rig *rig =
		rig_of("source ticks=50 -> end policy=pop gate=in2; slow:source ticks=1 work=1ms -> end.in2");

	(void)state;
	rig->options.workers = 1;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "source"), 50);
	assert_int_equal(rig_ticks(rig, "end"), 1);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb18_an_any_size_port_is_never_when_one_closed_queue_has_too_few),
		cmocka_unit_test(xb18_enough_for_the_condition_is_not_too_few),
		cmocka_unit_test(xb21_an_idle_receiver_loses_nothing_to_a_row_of_ticks),
		cmocka_unit_test(xb21_a_receiver_that_is_not_ready_delays_no_sender),
	};

	return cmocka_run_group_tests_name("scheduler/queues", tests, NULL, NULL);
}

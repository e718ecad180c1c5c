/* Which way the walk along causes goes (cli/root.c), and what is said of its end (cli/findings.c). */
#include "findings_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- records of a run of 1,000,000 ns; an entity has 100 ticks --- */

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO_QUEUES LIST(NULL)
/* more, if given: keys, with a comma before each. */
#define ENTITY(name, ...) ENTITY_OF(name, __VA_ARGS__, "", "")
#define ENTITY_OF(name, submit, more, ...)                                                                   \
	"{\"name\": \"" name "\", \"ticks\": 100, \"submit\": {\"count\": 100, \"sum\": " #submit "}" more "}"
#define WAIT_OF(cause, on, sum) WAIT_LASTING(cause, on, sum, sum)
#define WAIT_LASTING(cause, on, p90, sum)                                                                    \
	"{\"cause\": \"" cause "\", \"on\": " on                                                             \
	", \"of\": \"of\", \"why\": \"why\", \"time\": {\"count\": 9, \"p90\": " #p90 ", \"sum\": " #sum     \
	"}}"
#define WAIT(cause, sum)  ", \"waits\": [" WAIT_OF(cause, "null", sum) "]"
#define WAITS(one, other) ", \"waits\": [" one ", " other "]"
#define GPU(sum)          ", \"gpu_span\": {\"count\": 100, \"sum\": " #sum "}"
#define CPU(of, time, waits)                                                                                 \
	", \"cpu\": {\"count\": 100, \"of\": " #of ", \"time\": " #time ", \"waits\": " #waits "}"
#define STREAM(sum)                                                                                          \
	GPU(sum) ", \"streams\": [{\"stream\": 1, \"device\": 0, \"count\": 100, \"time\": " #sum "}]"
#define PORT(from, to, ...) PORT_OF(from, to, __VA_ARGS__, "", "")
#define PORT_OF(from, to, port, more, ...)                                                                   \
	"{\"from\": \"" from ".out\", \"to\": \"" to "." port "\", \"sender\": \"" from                      \
	"\", \"receiver\": \"" to "\", \"capacity\": 4" more "}"
#define QUEUE(from, ...)              QUEUE_OF(from, __VA_ARGS__, "", "")
#define QUEUE_OF(from, to, more, ...) PORT_OF(from, to, "in", more, "")

static void add_all(char *text, size_t room, const char *const parts[])
{
	for (size_t i = 0; parts[i]; i++)
		snprintf(text + strlen(text), room - strlen(text), "%s%s", i ? ", " : "", parts[i]);
}

/* `more`: keys of the run, with a comma before each. The next call overwrites it. */
static const char *run_of(const char *const entities[], const char *const queues[], const char *more)
{
	static char text[8192];

	snprintf(text, sizeof text, "{\"weir_statistics\": 1, \"duration\": 1000000%s, \"entities\": [",
		 more);
	add_all(text, sizeof text, entities);
	snprintf(text + strlen(text), sizeof text - strlen(text), "], \"queues\": [");
	add_all(text, sizeof text, queues);
	snprintf(text + strlen(text), sizeof text - strlen(text), "]}");
	return text;
}

/* --- which way it goes --- */

static void waits_for_one_thing_count_together(void **state)
{
	(void)state;
	one_finding(run_of(LIST(ENTITY("a", 950000),
				ENTITY("b", 10000,
				       ", \"waits\": [" WAIT_OF("messages", "\"in\"", 300000) ", " WAIT_OF(
					       "messages", "\"in\"", 200000) ", " WAIT_OF("told", "null",
											  400000) "]")),
			   LIST(QUEUE("a", "b")), ""),
		    CLI_CAUSE_COMPUTE, 0, "'b' waits 50 % of the run for 'a'");
}

static void sender_of_the_port_that_lacks_messages_is_followed(void **state)
{
	(void)state;
	one_finding(run_of(LIST(ENTITY("a", 10000, WAIT("time", 900000)), ENTITY("b", 950000),
				ENTITY("join", 10000,
				       ", \"waits\": [" WAIT_OF("messages", "\"in\"", 900000) "]")),
			   LIST(PORT("a", "join", "also", ", \"pushed\": 200"),
				PORT("b", "join", "in", ", \"pushed\": 100")),
			   ""),
		    CLI_CAUSE_COMPUTE, 1, "'join' waits 90 % of the run for 'b'");
}

static void queue_that_was_full_longest_is_followed(void **state)
{
	(void)state;
	one_finding(
		run_of(LIST(ENTITY("a", 10000, WAIT("room", 900000)), ENTITY("busy", 950000),
			    ENTITY("timed", 10000, WAIT("time", 900000)),
			    ENTITY("sink", 10000, WAIT("messages", 900000))),
		       LIST(QUEUE("a", "busy", ", \"depth\": {\"full_time\": 900000}"),
			    QUEUE("a", "timed", ", \"depth\": {\"full_time\": 100000}"), QUEUE("a", "sink")),
		       ", \"main\": \"sink\""),
		CLI_CAUSE_COMPUTE, 1, "'busy'");
}

/* Its device work is complete when it takes a message, so what follows never waits for it. */
static void device_work_before_a_gate_is_not_suspected(void **state)
{
	(void)state;
	one_finding(run_of(LIST(ENTITY("a", 10000, GPU(900000)),
				ENTITY("gated", 10000,
				       GPU(100000) WAITS(WAIT_OF("time", "null", 500000),
							 WAIT_OF("device", "null", 100000))),
				ENTITY("sink", 10000, WAIT("device", 900000))),
			   LIST(QUEUE("a", "gated"), QUEUE("gated", "sink")), ""),
		    CLI_CAUSE_PERIOD, 1, "'gated' waits 50 % of the run for its time");
}

static void stream_that_others_hardly_use_is_not_shared(void **state)
{
	(void)state;
	one_finding(run_of(LIST(ENTITY("a", 950000, STREAM(700000)), ENTITY("other", 10000, STREAM(120000)),
				ENTITY("sink", 10000, WAIT("device", 900000))),
			   LIST(QUEUE("a", "sink"), QUEUE("other", "sink", ", \"pushed\": 0")),
			   ", \"main\": \"sink\""),
		    CLI_CAUSE_COMPUTE, 0, "'a' is in compute for 95 %");
}

static void entity_that_fills_a_stream_alone_is_named(void **state)
{
	(void)state;
	one_finding(run_of(LIST(ENTITY("a", 10000, STREAM(810000)), ENTITY("other", 10000, STREAM(160000)),
				ENTITY("sink", 10000, WAIT("device", 900000))),
			   LIST(QUEUE("a", "sink")), ", \"main\": \"sink\""),
		    CLI_CAUSE_DEVICE, 0, "the device work of 'a'");
}

static void memory_that_an_idle_receiver_keeps_is_what_lacks(void **state)
{
	(void)state;
	one_finding(run_of(LIST(ENTITY("a", 10000, WAIT("memory", 900000)),
				ENTITY("sink", 300000, WAIT("messages", 600000))),
			   LIST(QUEUE("a", "sink")), ""),
		    CLI_CAUSE_POOL, 0, "'a' waits 90 % of the run for memory");
}

static void queue_that_kept_its_ends_apart_longest_is_named(void **state)
{
	(void)state;
	one_finding(run_of(LIST(ENTITY("a", 10000, WAIT("messages", 900000)),
				ENTITY("b", 10000, WAIT("room", 800000)),
				ENTITY("c", 10000, WAIT("room", 400000))),
			   LIST(QUEUE("b", "a"), QUEUE("b", "c", ", \"depth\": {\"full_time\": 800000}"),
				QUEUE("c", "a", ", \"depth\": {\"full_time\": 400000}, \"pushed\": 0")),
			   ", \"main\": \"a\""),
		    CLI_CAUSE_QUEUE, 2, "the queue b.out -> c.in");
}

static void queue_on_the_way_to_a_circle_is_not_of_it(void **state)
{
	(void)state;
	one_finding(run_of(LIST(ENTITY("main", 10000, WAIT("room", 900000)),
				ENTITY("x", 10000, WAIT("messages", 800000)),
				ENTITY("y", 10000, WAIT("room", 500000))),
			   LIST(QUEUE("main", "x", ", \"depth\": {\"full_time\": 900000}"),
				QUEUE("y", "x", ", \"pushed\": 9, \"depth\": {\"full_time\": 500000}")),
			   ", \"main\": \"main\""),
		    CLI_CAUSE_QUEUE, 1, "the queue y.out -> x.in");
}

static void busy_compute_on_a_way_that_leads_nowhere_is_found(void **state)
{
	(void)state;
	one_finding(run_of(LIST(ENTITY("a", 300000), ENTITY("sink", 750000, WAIT("messages", 200000))),
			   LIST(QUEUE("a", "sink")), ""),
		    CLI_CAUSE_COMPUTE, 1, "'sink' is in compute for 75 %");
}

static void walk_begins_where_messages_end(void **state)
{
	(void)state;
	one_finding(run_of(LIST(ENTITY("a", 950000),
				ENTITY("thinned", 10000, ", \"received\": 100" WAIT("messages", 900000)),
				ENTITY("sink", 10000, ", \"received\": 50" WAIT("told", 900000))),
			   LIST(QUEUE("a", "thinned"), QUEUE("thinned", "sink")), ""),
		    CLI_CAUSE_TOLD, 2, "'sink' waits 90 % of the run");
}

static void ready_entities_need_workers_only_if_all_are_busy(void **state)
{
	(void)state;
	assert_int_equal(
		findings_of(run_of(LIST(ENTITY("a", 490000,
					       ", \"ready_to_compute\": {\"count\": 100, \"sum\": 500000}"),
					ENTITY("b", 300000)),
				   NO_QUEUES, ", \"workers\": [{\"busy\": 790000}]"))
			.count,
		0);
}

/* --- what is said --- */

static void stage_that_is_half_as_busy_is_one_of_the_others(void **state)
{
	(void)state;
	one_finding(
		run_of(LIST(ENTITY("a", 500000), ENTITY("b", 950000), ENTITY("c", 250000)), NO_QUEUES, ""),
		CLI_CAUSE_COMPUTE, 1, "others for 50 %");
}

static void compute_that_is_off_the_core_for_half_of_its_time_is_slow_nevertheless(void **state)
{
	(void)state;
	one_finding(run_of(LIST(ENTITY("a", 970000, CPU(970000, 485000, 100))), NO_QUEUES, ""),
		    CLI_CAUSE_COMPUTE, 0, "a good part of it not on a core");
}

static void computes_that_were_preempted_take_no_turns(void **state)
{
	struct cli_findings findings =
		findings_of(run_of(LIST(ENTITY("a", 970000, CPU(970000, 490000, 10)),
					ENTITY("b", 960000, CPU(960000, 480000, 10)), ENTITY("c", 100000)),
				   NO_QUEUES, ""));

	(void)state;
	assert_true(findings.balanced);
	assert_int_equal(findings.count, 0);
}

static void computes_that_fill_more_than_a_core_take_no_turns(void **state)
{
	struct cli_findings findings =
		findings_of(run_of(LIST(ENTITY("a", 970000, CPU(970000, 700000, 100)),
					ENTITY("b", 960000, CPU(960000, 700000, 100)), ENTITY("c", 100000)),
				   NO_QUEUES, ""));

	(void)state;
	assert_true(findings.balanced);
	assert_int_equal(findings.count, 0);
}

static void queue_that_drops_a_tenth_is_found(void **state)
{
	(void)state;
	one_finding(run_of(LIST(ENTITY("a", 490000), ENTITY("b", 480000)),
			   LIST(QUEUE("a", "b", ", \"policy\": \"pop\", \"pushed\": 100, \"dropped\": 10")),
			   ""),
		    CLI_CAUSE_DROPS, 1, "dropped 10 of 100 messages (policy pop, capacity 4)");
}

static void queue_that_drops_most_is_named(void **state)
{
	(void)state;
	one_finding(run_of(LIST(ENTITY("a", 490000), ENTITY("b", 480000), ENTITY("c", 480000)),
			   LIST(QUEUE("a", "b", ", \"policy\": \"pop\", \"pushed\": 100, \"dropped\": 10"),
				QUEUE("a", "c", ", \"policy\": \"pop\", \"pushed\": 100, \"dropped\": 40")),
			   ""),
		    CLI_CAUSE_DROPS, 2, "dropped 40 of 100 messages");
}

static void receiver_that_waits_for_room_is_not_why_messages_are_dropped(void **state)
{
	struct cli_findings findings = findings_of(run_of(
		LIST(ENTITY("a", 490000), ENTITY("b", 100000, WAIT("room", 800000)), ENTITY("c", 950000)),
		LIST(QUEUE("a", "b", ", \"policy\": \"pop\", \"pushed\": 100, \"dropped\": 40"),
		     QUEUE("b", "c")),
		""));

	(void)state;
	assert_int_equal(findings.count, 2);
	assert_int_equal(findings.list[0].cause, CLI_CAUSE_DROPS);
	assert_non_null(strstr(findings.list[0].text, "'b' waits 80 % of the run for room: what follows it"));
}

/* What limited it is why the drain took long. */
static void drain_that_took_too_long_has_its_reason_behind_it(void **state)
{
	struct cli_findings findings = findings_of(run_of(
		LIST(ENTITY("a", 950000)), NO_QUEUES, ", \"status\": \"abandoned\", \"cause\": \"drain\""));

	(void)state;
	assert_int_equal(findings.count, 2);
	assert_int_equal(findings.list[0].cause, CLI_CAUSE_ENDING);
	assert_int_equal(findings.list[1].cause, CLI_CAUSE_COMPUTE);
}

#define PERIODIC(sum)                                                                                        \
	", \"conditions\": [{\"type\": \"periodic\", \"times\": {\"period\": 9500}}]" WAIT("time", sum)

static void period_is_not_told_to_be_shorter_than_a_tenth(void **state)
{
	(void)state;
	one_finding(run_of(LIST(ENTITY("a", 1000, PERIODIC(900000)),
				ENTITY("b", 50000, WAIT("messages", 900000))),
			   LIST(QUEUE("a", "b")), ""),
		    CLI_CAUSE_PERIOD, 0, "set \"period\", to 0.95 us for a start");
}

static void period_leaves_workers_time_for_all(void **state)
{
	(void)state;
	one_finding(
		run_of(LIST(ENTITY("a", 0, PERIODIC(900000)), ENTITY("b", 300000, WAIT("messages", 600000)),
			    ENTITY("c", 300000, WAIT("messages", 600000))),
		       LIST(QUEUE("a", "b"), QUEUE("b", "c")), ", \"workers\": [{\"busy\": 600000}]"),
		CLI_CAUSE_PERIOD, 0, "set \"period\", to 6.3 us for a start");
}

/* 'b' could take 70 messages while it waits for them; how long it waits for room does not matter. */
static void queue_is_to_hold_what_its_receiver_waits_for(void **state)
{
	(void)state;
	one_finding(run_of(LIST(ENTITY("a", 240000, WAIT("room", 700000)),
				ENTITY("b", 100000,
				       WAITS(WAIT_LASTING("messages", "null", 70000, 700000),
					     WAIT_LASTING("room", "null", 90000, 90000)))),
			   LIST(QUEUE("a", "b", ", \"depth\": {\"full_time\": 800000}")), ""),
		    CLI_CAUSE_QUEUE, 1, "to 74 for a start");
}

static void more_workers_are_at_most_those_that_there_may_be(void **state)
{
	static char workers[4096];

	(void)state;
	strcpy(workers, ", \"workers\": [{\"busy\": 990000}");
	for (int i = 1; i < 63; i++)
		strcat(workers, ", {\"busy\": 990000}");
	strcat(workers, "]");
	one_finding(
		run_of(LIST(ENTITY("a", 90000, ", \"ready_to_compute\": {\"count\": 100, \"sum\": 9000000}")),
		       NO_QUEUES, workers),
		CLI_CAUSE_WORKERS, 0, "--workers 64)");
}

static void other_end_of_a_descriptor_reads_what_is_written(void **state)
{
	(void)state;
	one_finding(run_of(LIST(ENTITY("a", 10000, WAIT("room", 900000)),
				ENTITY("b", 10000, ", \"received\": 100" WAIT("descriptor", 900000))),
			   LIST(QUEUE("a", "b")), ""),
		    CLI_CAUSE_DESCRIPTOR, 1, "what reads the other end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_one_thing_count_together),
		cmocka_unit_test(sender_of_the_port_that_lacks_messages_is_followed),
		cmocka_unit_test(queue_that_was_full_longest_is_followed),
		cmocka_unit_test(device_work_before_a_gate_is_not_suspected),
		cmocka_unit_test(stream_that_others_hardly_use_is_not_shared),
		cmocka_unit_test(entity_that_fills_a_stream_alone_is_named),
		cmocka_unit_test(memory_that_an_idle_receiver_keeps_is_what_lacks),
		cmocka_unit_test(queue_that_kept_its_ends_apart_longest_is_named),
		cmocka_unit_test(queue_on_the_way_to_a_circle_is_not_of_it),
		cmocka_unit_test(busy_compute_on_a_way_that_leads_nowhere_is_found),
		cmocka_unit_test(walk_begins_where_messages_end),
		cmocka_unit_test(ready_entities_need_workers_only_if_all_are_busy),
		cmocka_unit_test(stage_that_is_half_as_busy_is_one_of_the_others),
		cmocka_unit_test(compute_that_is_off_the_core_for_half_of_its_time_is_slow_nevertheless),
		cmocka_unit_test(computes_that_were_preempted_take_no_turns),
		cmocka_unit_test(computes_that_fill_more_than_a_core_take_no_turns),
		cmocka_unit_test(queue_that_drops_a_tenth_is_found),
		cmocka_unit_test(queue_that_drops_most_is_named),
		cmocka_unit_test(receiver_that_waits_for_room_is_not_why_messages_are_dropped),
		cmocka_unit_test(drain_that_took_too_long_has_its_reason_behind_it),
		cmocka_unit_test(period_is_not_told_to_be_shorter_than_a_tenth),
		cmocka_unit_test(period_leaves_workers_time_for_all),
		cmocka_unit_test(queue_is_to_hold_what_its_receiver_waits_for),
		cmocka_unit_test(more_workers_are_at_most_those_that_there_may_be),
		cmocka_unit_test(other_end_of_a_descriptor_reads_what_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What the findings of weir report say of small statistics. tests/cli/planted.py plants them in real runs. */
#include "findings_rig.h"

#include <stdio.h>
#include <string.h>

#define RUN(entities, more)                                                                                  \
	"{\"weir_statistics\": 1, \"duration\": 1000000, \"entities\": [" entities "]" more "}"
#define ENTITY(name, ticks, submit, more)                                                                    \
	"{\"name\": \"" name "\", \"ticks\": " #ticks ", \"submit\": {\"count\": " #ticks                    \
	", \"sum\": " #submit "}" more "}"
#define WAIT(cause, sum)                                                                                     \
	"{\"cause\": \"" cause                                                                               \
	"\", \"of\": \"of\", \"why\": \"why\", \"time\": {\"count\": 9, \"sum\": " #sum "}}"
#define WAITS(waits) ", \"waits\": [" waits "]"
#define QUEUE(sender, receiver, capacity, more)                                                              \
	"{\"from\": \"" sender ".out\", \"to\": \"" receiver ".in\", \"sender\": \"" sender                  \
	"\", \"receiver\": \"" receiver "\", \"capacity\": " #capacity more "}"

static void slow_compute_is_found(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 240000, "") "," ENTITY("b", 100, 970000, "") "," ENTITY("c", 100,
												 250000, ""),
			""),
		    CLI_CAUSE_COMPUTE, 1,
		    "'b' is in compute for 97 % of the run (9.7 us a tick), others for 25 %");
}

static void compute_that_waits_is_found(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 240000, "") "," ENTITY(
				"b", 100, 970000, ", \"blocked\": {\"count\": 100, \"sum\": 900000}"),
			""),
		    CLI_CAUSE_BLOCKS, 1, "93 % of that it waits there");
}

static void device_work_is_found(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 240000, "") "," ENTITY(
				"b", 100, 10000, ", \"gpu_span\": {\"count\": 4, \"sum\": 38000}"),
			""),
		    CLI_CAUSE_DEVICE, 1, "takes 9.5 us a tick and goes on for 95 % of the run");
}

static void too_few_timed_ticks_tell_nothing(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 240000, WAITS(WAIT("room", 700000))) "," ENTITY(
				"b", 100, 10000, ", \"gpu_span\": {\"count\": 3, \"sum\": 28500}"),
			", \"gpu_time\": \"sample:64\", \"queues\": [" QUEUE("a", "b", 1, "") "]"),
		    CLI_CAUSE_UNKNOWN, CLI_NO_ENTITY,
		    "too few ticks were timed (gpu_time sample:64); run with --gpu-time all, or longer");
}

#define USES(stream, time)                                                                                   \
	", \"gpu_span\": {\"count\": 100, \"sum\": " #time "}, \"streams\": [{\"stream\": " #stream          \
	", \"device\": 0, \"count\": 100, \"time\": " #time "}]"

static void stream_that_several_fill_is_found(void **state)
{
	(void)state;
	one_finding(
		RUN(ENTITY("a", 100, 10000, USES(1, 480000) WAITS(WAIT("room", 900000))) "," ENTITY(
			    "b", 100, 10000, WAITS(WAIT("device", 900000))) "," ENTITY("c", 100, 10000,
										       USES(1, 490000)),
		    ", \"main\": \"b\", \"queues\": [" QUEUE("a", "b", 4, ", \"depth\": {\"mean\": 3}") "]"),
		CLI_CAUSE_STREAM, 0,
		"the device work of 'a' (48 %), 'c' (49 %) shares one stream, which is busy 97 % of the run");
}

static void streams_of_their_own_are_no_shared_one(void **state)
{
	(void)state;
	assert_int_equal(
		findings_of(
			RUN(ENTITY("a", 100, 10000, USES(1, 480000) WAITS(WAIT("room", 900000))) "," ENTITY(
				    "b", 100, 10000,
				    WAITS(WAIT("device", 900000))) "," ENTITY("c", 100, 10000,
									      USES(2, 490000)),
			    ", \"main\": \"b\", \"queues\": [" QUEUE("a", "b", 4, "") "]"))
			.list[0]
			.cause,
		CLI_CAUSE_QUEUE);
}

#define LOCKED(time) ", \"lock\": {\"name\": \"GIL\", \"count\": 100, \"time\": " #time "}"

static void computes_that_wait_for_one_lock_take_turns(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 970000, LOCKED(480000)) "," ENTITY(
				"b", 100, 960000, LOCKED(480000)) "," ENTITY("c", 100, 100000,
									     WAITS(WAIT("messages", 850000))),
			", \"queues\": [" QUEUE("a", "b", 4, "") "," QUEUE("b", "c", 4, "") "]"),
		    CLI_CAUSE_LOCK, 1,
		    "'a' and 'b' take turns: together they are in compute 1.9 times as long as the run");
}

#define CPU(of, time, waits)                                                                                 \
	", \"cpu\": {\"count\": 100, \"of\": " #of ", \"time\": " #time ", \"waits\": " #waits "}"

static void computes_that_never_fill_more_than_one_core_take_turns(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 970000, CPU(970000, 490000, 100)) "," ENTITY(
				"b", 100, 960000,
				CPU(960000, 480000, 100)) "," ENTITY("c", 100, 100000,
								     WAITS(WAIT("messages", 850000))),
			", \"queues\": [" QUEUE("a", "b", 4, "") "," QUEUE("b", "c", 4, "") "]"),
		    CLI_CAUSE_LOCK, 1, "on a core 1.0 times");
}

static void few_ticks_tell_nothing_but_what_took_nearly_all_of_the_time(void **state)
{
	(void)state;
	one_finding(
		RUN(ENTITY("a", 3, 400000, "") "," ENTITY("b", 3, 300000, WAITS(WAIT("messages", 500000))),
		    ", \"queues\": [" QUEUE("a", "b", 4, "") "]"),
		CLI_CAUSE_UNKNOWN, CLI_NO_ENTITY,
		"the run is too short to tell what limits it: 'b' had 3 ticks");
	one_finding(RUN(ENTITY("a", 3, 950000, "") "," ENTITY("b", 3, 10000, WAITS(WAIT("messages", 900000))),
			", \"queues\": [" QUEUE("a", "b", 4, "") "]"),
		    CLI_CAUSE_COMPUTE, 0, "(so 'b' waits 90 % of the run for 'a')");
}

static void entity_that_never_ticked_is_told_to_go_on(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 0, 0, WAITS(WAIT("told", 600000))) "," ENTITY(
				"b", 0, 0, WAITS(WAIT("messages", 600000))),
			", \"queues\": [" QUEUE("a", "b", 4, "") "]"),
		    CLI_CAUSE_TOLD, 0, "which the program decides; let it tell the entity sooner to go on");
}

static void ending_that_is_a_failure_is_the_only_finding(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 950000, "") "," ENTITY("b", 0, 0, WAITS(WAIT("told", 990000))),
			", \"status\": \"deadlock\", \"cause\": \"told\", \"cause_entity\": \"b\", \"text\": "
			"\"b waits\""),
		    CLI_CAUSE_ENDING, 1, "the run ended after 1 ms: deadlock: b waits; tell it to go on");
}

/* Of a later weir. */
static void ending_that_is_not_known_is_told_by_its_own_word(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 950000, ""),
			", \"ending\": \"eclipsed\", \"status\": \"eclipsed\", \"cause\": \"device\""),
		    CLI_CAUSE_ENDING, CLI_NO_ENTITY, "the run ended after 1 ms: eclipsed");
}

static void drain_that_was_asked_for_is_no_finding(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 950000, ""),
			", \"status\": \"ok\", \"cause\": \"drain\", \"drained\": true"),
		    CLI_CAUSE_COMPUTE, 0, "'a' is in compute for 95 % of the run");
}

static void program_that_pushes_too_slowly_is_found(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 20000, WAITS(WAIT("messages", 950000))),
			", \"queues\": [{\"from\": \"inlet\", \"to\": \"a.in\", \"sender\": null, "
			"\"receiver\": \"a\", "
			"\"capacity\": 1}]"),
		    CLI_CAUSE_PROGRAM, 0, "for the program, which pushes too slowly into an inlet");
}

/* 'also' is the fast side: its queue is full and its sender waits for room. */
static void slow_side_of_a_join_is_followed(void **state)
{
	(void)state;
	one_finding(
		RUN(ENTITY("fast", 100, 100000, WAITS(WAIT("room", 850000))) "," ENTITY(
			    "slow", 100, 950000,
			    "") "," ENTITY("join", 100, 50000,
					   ", \"waits\": [{\"cause\": \"messages\", \"on\": \"in\", "
					   "\"of\": \"in\", \"time\": {\"count\": 9, \"sum\": 900000}}]"),
		    ", \"queues\": [{\"from\": \"fast.out\", \"to\": \"join.also\", \"sender\": \"fast\", "
		    "\"receiver\": "
		    "\"join\", \"capacity\": 4, \"depth\": {\"mean\": 3.9, \"full_time\": 900000}}," QUEUE(
			    "slow", "join", 4, "") "]"),
		CLI_CAUSE_COMPUTE, 1, "(so 'join' waits 90 % of the run for 'slow')");
}

#define QUEUE_OF(from, to, policy, pushed, depth)                                                            \
	"{\"from\": \"" from ".out\", \"to\": \"" to ".in\", \"sender\": \"" from "\", \"receiver\": \"" to  \
	"\", \"policy\": \"" policy "\", \"pushed\": " #pushed ", \"capacity\": 1, \"depth\": " depth "}"

/* A queue that drops holds no sender up, however full it is. */
static void room_is_that_of_a_queue_that_blocks(void **state)
{
	(void)state;
	one_finding(
		RUN(ENTITY("a", 100, 10000, WAITS(WAIT("room", 900000))) "," ENTITY(
			    "shown", 100, 100000,
			    "") "," ENTITY("slow", 100, 950000,
					   "") "," ENTITY("sink", 100, 10000,
							  WAITS(WAIT("messages", 950000))),
		    ", \"main\": \"sink\", \"queues\": [" QUEUE_OF(
			    "a", "shown", "pop", 1,
			    "{\"full_time\": 990000}") "," QUEUE_OF("a", "slow", "block", 100,
								    "{\"full_time\": 900000}") "," QUEUE_OF("a",
													    "sink",
													    "block",
													    100,
													    "{}") "]"),
		CLI_CAUSE_COMPUTE, 2, "'slow'");
}

static void of_several_senders_that_which_sends_most_is_followed(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 950000, "") "," ENTITY(
				"b", 1, 10,
				WAITS(WAIT("time", 900000))) "," ENTITY("sink", 100, 10000,
									WAITS(WAIT("messages", 950000))),
			", \"queues\": [" QUEUE_OF("b", "sink", "block", 1, "{\"mean\": 0.01}") "," QUEUE_OF(
				"a", "sink", "block", 100, "{\"mean\": 0.1}") "]"),
		    CLI_CAUSE_COMPUTE, 0, "'a'");
}

/* Each of its queues must have a message: that which has none is what it waits for. */
static void of_queues_that_are_not_empty_the_emptiest_is_followed(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 10000, WAITS(WAIT("room", 900000))) "," ENTITY(
				"b", 100, 10000,
				WAITS(WAIT("time", 900000))) "," ENTITY("sink", 100, 10000,
									WAITS(WAIT("messages", 950000))),
			", \"queues\": [" QUEUE_OF("a", "sink", "block", 101, "{\"mean\": 0.9}") "," QUEUE_OF(
				"b", "sink", "block", 100, "{\"mean\": 0.1}") "]"),
		    CLI_CAUSE_PERIOD, 1, "'b'");
}

static void untimed_device_work_behind_one_message_is_no_root(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 500000,
			       ", \"most_in_flight\": 1" WAITS(
				       WAIT("room", 400000))) "," ENTITY("b", 100, 500000,
									 WAITS(WAIT("device", 450000))),
			", \"queues\": [" QUEUE_OF("a", "b", "block", 100,
						   "{\"mean\": 0.4, \"full_time\": 400000}") "]"),
		    CLI_CAUSE_QUEUE, 1, "raise \"capacity\" of b.in");
}

static void memory_that_a_busy_receiver_keeps_is_not_what_lacks(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 10000, WAITS(WAIT("memory", 900000))) "," ENTITY(
				"side", 100, 950000, "") "," ENTITY("sink", 100, 10000,
								    WAITS(WAIT("messages", 950000))),
			", \"main\": \"sink\", \"queues\": [" QUEUE("a", "side", 8, "") "," QUEUE("a", "sink",
												  8, "") "]"),
		    CLI_CAUSE_COMPUTE, 1, "'side'");
}

/* With one tick in flight the device rests while it computes, with four it has work all the time. */
static void untimed_bound_is_raised_only_if_the_device_rests(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 490000,
			       ", \"most_in_flight\": 1, \"max_in_flight\": 1" WAITS(WAIT("bound", 480000))),
			""),
		    CLI_CAUSE_IN_FLIGHT, 0, "raise \"max_in_flight\" of the entity, to 4");
	one_finding(RUN(ENTITY("a", 100, 490000,
			       ", \"most_in_flight\": 4, \"max_in_flight\": 4" WAITS(WAIT("bound", 480000))),
			""),
		    CLI_CAUSE_DEVICE, 0, "for its work on the device, of which too few ticks were timed");
}

static void ready_entities_of_a_busy_machine_need_no_workers(void **state)
{
	(void)state;
	assert_int_equal(findings_of(RUN(ENTITY("a", 100, 500000,
						", \"ready_to_compute\": {\"count\": 100, \"sum\": 450000}"),
					 ", \"workers\": [{\"busy\": 250000}, {\"busy\": 250000}]"))
				 .count,
			 0);
}

static void equally_busy_stages_are_balanced(void **state)
{
	(void)state;
	assert_int_equal(findings_of(RUN(ENTITY("a", 100, 940000, "") "," ENTITY(
						 "b", 100, 970000, "") "," ENTITY("c", 100, 850000, ""),
					 ""))
				 .count,
			 0);
}

static void source_that_waits_for_its_time_sets_the_pace(void **state)
{
	(void)state;
	one_finding(
		RUN(ENTITY("a", 100, 1000,
			   ", \"conditions\": [{\"type\": \"periodic\", \"times\": {\"period\": "
			   "9500}}]" WAITS(WAIT("time", 900000))) "," ENTITY("b", 100, 300000,
									     WAITS(WAIT("messages", 700000))),
		    ", \"queues\": [" QUEUE("a", "b", 1, "") "]"),
		CLI_CAUSE_PERIOD, 0,
		"'a' waits 90 % of the run for its time (a period of 9.5 us): it sets the pace, and the "
		"others keep up; if the "
		"graph is to be faster, set \"period\", to 3.15 us for a start: the busiest of the others "
		"needs 3 us");
}

static void stages_with_little_to_do_say_nothing(void **state)
{
	struct cli_findings findings =
		findings_of(RUN(ENTITY("a", 100, 100000, "") "," ENTITY("b", 100, 300000, ""),
				", \"queues\": [" QUEUE("a", "b", 1, "") "]"));

	(void)state;
	assert_int_equal(findings.count, 0);
	assert_false(findings.balanced);
	assert_string_equal(findings.none,
			    "no entity, queue, pool or number of workers takes most of the time: "
			    "nothing stands out");
}

static void full_queue_before_an_idle_receiver_is_found(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 240000, WAITS(WAIT("room", 700000))) "," ENTITY(
				"b", 100, 250000, WAITS(WAIT("messages", 700000))),
			", \"queues\": [" QUEUE("a", "b", 1,
						", \"depth\": {\"mean\": 0.8, \"full_time\": 800000}") "]"),
		    CLI_CAUSE_QUEUE, 1, "the queue a.out -> b.in of 1 is full 80 % of the run");
}

static const char of_two[] =
	", \"queues\": [" QUEUE("a", "b", 1, ", \"depth\": {\"mean\": 0.8, \"full_time\": 800000}") "]";

static void condition_of_the_programs_own_is_found_whatever_its_words_are(void **state)
{
	char text[1024];

	(void)state;
	snprintf(
		text, sizeof text, "%s%s}",
		"{\"weir_statistics\": 1, \"duration\": 1000000, \"entities\": [" ENTITY(
			"a", 100, 240000,
			WAITS(WAIT(
				"room",
				700000))) "," ENTITY("b", 100, 250000,
						     WAITS("{\"cause\": \"own\", \"of\": \"warm\", \"why\": "
							   "\"the device: too few messages\", "
							   "\"time\": {\"count\": 9, \"sum\": 700000}}")) "]",
		of_two);
	one_finding(text, CLI_CAUSE_CONDITION, 1,
		    "'b' waits 70 % of the run for its condition 'warm' (the device: too few messages)");
}

static bool lacks_causes(const char *wait)
{
	struct cli_recorded recorded;
	char text[512], fault[512];
	bool lacks;

	snprintf(text, sizeof text,
		 "{\"weir_statistics\": 1, \"duration\": 9, \"entities\": [{\"name\": \"a\", \"ticks\": 1, "
		 "\"waits\": [{%s\"of\": \"in\", \"why\": \"too few messages\"}]}]}",
		 wait);
	assert_true(cli_recorded_read(&recorded, text, strlen(text), fault));
	lacks = cli_recorded_lacks_causes(&recorded);
	cli_recorded_finish(&recorded);
	return lacks;
}

static void waits_of_another_version_have_no_cause(void **state)
{
	(void)state;
	assert_false(lacks_causes("\"cause\": \"messages\", \"on\": \"in\", "));
	assert_true(lacks_causes(""));
	assert_true(lacks_causes("\"cause\": null, "));
	assert_true(lacks_causes("\"cause\": \"gravity\", \"on\": null, "));
}

/* The queue passes on that its receiver is slow. */
static void full_queue_before_a_busy_receiver_is_none(void **state)
{
	(void)state;
	one_finding(
		RUN(ENTITY("a", 100, 240000, WAITS(WAIT("room", 700000))) "," ENTITY("b", 100, 980000, ""),
		    ", \"queues\": [" QUEUE("a", "b", 1,
					    ", \"depth\": {\"mean\": 0.8, \"full_time\": 800000}") "]"),
		CLI_CAUSE_COMPUTE, 1, "'b'");
}

static void device_that_is_behind_is_found_without_its_times(void **state)
{
	(void)state;
	one_finding(
		RUN(ENTITY("a", 100, 1000, ", \"most_in_flight\": 8" WAITS(WAIT("room", 900000))) "," ENTITY(
			    "b", 100, 250000, WAITS(WAIT("device", 700000))),
		    ", \"queues\": [" QUEUE("a", "b", 8,
					    ", \"depth\": {\"mean\": 7.5, \"full_time\": 800000}") "]"),
		CLI_CAUSE_DEVICE, 0,
		"'a' is waited for 70 % of the run for its work on the device, of which too few ticks were "
		"timed");
}

/* Of 4 ticks that were timed the mean is short of the truth, which the queue tells. */
static void device_that_is_behind_is_found_although_few_ticks_were_timed(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 1000,
			       ", \"gpu_span\": {\"count\": 4, \"sum\": 27600}" WAITS(
				       WAIT("room", 910000))) "," ENTITY("b", 100, 40000,
									 WAITS(WAIT("device", 930000))),
			", \"queues\": [" QUEUE("a", "b", 4,
						", \"depth\": {\"mean\": 3.8, \"full_time\": 920000}") "]"),
		    CLI_CAUSE_DEVICE, 0, "(so 'b' waits 93 % of the run for 'a')");
}

static void way_names_its_begin_and_its_end(void **state)
{
	(void)state;
	one_finding(
		RUN(ENTITY("a", 100, 950000, "") "," ENTITY("b", 100, 10000, WAITS(WAIT("messages", 900000))) "," ENTITY(
			    "c", 100, 10000,
			    WAITS(WAIT(
				    "messages",
				    900000))) "," ENTITY("d", 100, 10000,
							 WAITS(WAIT(
								 "messages",
								 900000))) "," ENTITY("e", 100, 10000,
										      WAITS(WAIT(
											      "messages",
											      900000))) "," ENTITY("f",
														   100,
														   10000,
														   WAITS(WAIT(
															   "messages",
															   900000))),
		    ", \"main\": \"f\", \"queues\": [" QUEUE("a", "b", 1, "") "," QUEUE(
			    "b", "c", 1, "") "," QUEUE("c", "d", 1, "") "," QUEUE("d", "e", 1,
										  "") "," QUEUE("e", "f", 1,
												"") "]"),
		CLI_CAUSE_COMPUTE, 0,
		"(so 'f' waits 90 % of the run for 'e', that for 'd', that for 'c', that for 'a' by way of 1 "
		"other)");
}

static void too_few_workers_are_found(void **state)
{
	(void)state;
	one_finding(
		RUN(ENTITY("a", 100, 490000,
			   ", \"ready_to_compute\": {\"count\": 100, \"sum\": 500000}") "," ENTITY("b", 100,
												   490000,
												   ", "
												   "\"ready_"
												   "to_"
												   "compute\""
												   ": "
												   "{\"count"
												   "\": 100, "
												   "\"sum\": "
												   "400000}"),
		    ", \"workers\": [{\"busy\": 990000}]"),
		CLI_CAUSE_WORKERS, 0, "the only worker is busy 99 % of the run");
}

static void used_up_pool_is_found(void **state)
{
	(void)state;
	one_finding(
		RUN(ENTITY("a", 100, 490000, WAITS(WAIT("memory", 500000))) "," ENTITY("b", 100, 480000, ""),
		    ", \"pools\": [{\"name\": \"frames\", \"capacity\": 1, \"unit\": \"blocks\", "
		    "\"waits\": 99}]"),
		CLI_CAUSE_POOL, 0,
		"memory of the pool 'frames', which has 1 block; raise \"blocks\" of the pool, to 2");
}

static void bound_of_ticks_in_flight_is_found(void **state)
{
	(void)state;
	one_finding(
		RUN(ENTITY("a", 100, 490000,
			   ", \"max_in_flight\": 2, \"gpu_span\": {\"count\": 100, \"sum\": 400000}" WAITS(
				   WAIT("bound", 450000))) "," ENTITY("b", 100, 480000, ""),
		    ""),
		CLI_CAUSE_IN_FLIGHT, 0,
		"max_in_flight (2) of its ticks are on the device, whose work for it goes on for 40 % only");
}

static void dropped_messages_are_found(void **state)
{
	(void)state;
	one_finding(RUN(ENTITY("a", 100, 490000, "") "," ENTITY("b", 100, 480000, ""),
			", \"queues\": [" QUEUE(
				"a", "b", 1, ", \"policy\": \"pop\", \"pushed\": 100, \"dropped\": 40") "]"),
		    CLI_CAUSE_DROPS, 1, "dropped 40 of 100 messages (policy pop, capacity 1): 'b'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slow_compute_is_found),
		cmocka_unit_test(compute_that_waits_is_found),
		cmocka_unit_test(device_work_is_found),
		cmocka_unit_test(too_few_timed_ticks_tell_nothing),
		cmocka_unit_test(stream_that_several_fill_is_found),
		cmocka_unit_test(streams_of_their_own_are_no_shared_one),
		cmocka_unit_test(computes_that_wait_for_one_lock_take_turns),
		cmocka_unit_test(computes_that_never_fill_more_than_one_core_take_turns),
		cmocka_unit_test(few_ticks_tell_nothing_but_what_took_nearly_all_of_the_time),
		cmocka_unit_test(entity_that_never_ticked_is_told_to_go_on),
		cmocka_unit_test(ending_that_is_a_failure_is_the_only_finding),
		cmocka_unit_test(ending_that_is_not_known_is_told_by_its_own_word),
		cmocka_unit_test(drain_that_was_asked_for_is_no_finding),
		cmocka_unit_test(program_that_pushes_too_slowly_is_found),
		cmocka_unit_test(slow_side_of_a_join_is_followed),
		cmocka_unit_test(room_is_that_of_a_queue_that_blocks),
		cmocka_unit_test(of_several_senders_that_which_sends_most_is_followed),
		cmocka_unit_test(of_queues_that_are_not_empty_the_emptiest_is_followed),
		cmocka_unit_test(untimed_device_work_behind_one_message_is_no_root),
		cmocka_unit_test(memory_that_a_busy_receiver_keeps_is_not_what_lacks),
		cmocka_unit_test(untimed_bound_is_raised_only_if_the_device_rests),
		cmocka_unit_test(ready_entities_of_a_busy_machine_need_no_workers),
		cmocka_unit_test(equally_busy_stages_are_balanced),
		cmocka_unit_test(source_that_waits_for_its_time_sets_the_pace),
		cmocka_unit_test(stages_with_little_to_do_say_nothing),
		cmocka_unit_test(full_queue_before_an_idle_receiver_is_found),
		cmocka_unit_test(condition_of_the_programs_own_is_found_whatever_its_words_are),
		cmocka_unit_test(waits_of_another_version_have_no_cause),
		cmocka_unit_test(full_queue_before_a_busy_receiver_is_none),
		cmocka_unit_test(device_that_is_behind_is_found_without_its_times),
		cmocka_unit_test(device_that_is_behind_is_found_although_few_ticks_were_timed),
		cmocka_unit_test(way_names_its_begin_and_its_end),
		cmocka_unit_test(too_few_workers_are_found),
		cmocka_unit_test(used_up_pool_is_found),
		cmocka_unit_test(bound_of_ticks_in_flight_is_found),
		cmocka_unit_test(dropped_messages_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

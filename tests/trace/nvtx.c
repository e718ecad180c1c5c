/* What a profiler sees, as recorded by the recorder. */
#include "trace/trace.h"

#include <pthread.h>
#include <stdio.h>

#include "base/memory.h"
#include "recorder.h"
#include "test.h"

static const struct wr_trace_options options = {.workers = 4};

static int open_trace(void **state)
{
	struct wr_trace *trace = NULL;

	if (wr_trace_open(&options, &trace) || !trace)
		return -1;
	wr_trace_entity(trace, 0, "read");
	wr_trace_entity(trace, 5, "blur");
	wr_trace_queue(trace, 1, 0, 5, "read.out", "blur.in", 4);
	wr_trace_pool(trace, 0, "frames", 1 << 20, "bytes");
	recorder_clear();
	*state = trace;
	return 0;
}

static int close_trace(void **state)
{
	wr_trace_close(*state);
	return 0;
}

static size_t open_ranges(void)
{
	return recorder_count("\"call\":\"start\"") - recorder_count("\"call\":\"end\"");
}

/* Runs first: it checks what the process registers once. */
static void one_domain_however_many_schedulers(void **state)
{
	struct wr_trace *one = NULL, *two = NULL;

	(void)state;
	assert_int_equal(wr_trace_open(&options, &one), WEIR_OK);
	assert_int_equal(wr_trace_open(&options, &two), WEIR_OK);
	assert_string_equal(recorder_line(0), "{\"call\":\"domain\",\"name\":\"weir\"}");
	assert_int_equal(recorder_count("\"call\":\"domain\""), 1);
	assert_int_equal(recorder_count("\"call\":\"category\",\"domain\":\"weir\""), 8);
	wr_trace_close(one);
	wr_trace_close(two);
}

static void a_tick_is_a_range_named_as_its_entity(void **state)
{
	wr_trace_tick_begin(*state, 0, 5, 7);
	wr_trace_tick_end(*state, 0, 5, 7);
	assert_string_equal(recorder_line(0),
			    "{\"call\":\"push\",\"domain\":\"weir\",\"category\":1,\"name\":\"blur\","
			    "\"payload\":5497558138887}"); /* 5 << 40 | 7 */
	assert_string_equal(recorder_line(1), "{\"call\":\"pop\",\"domain\":\"weir\"}");
	assert_null(recorder_line(2));
}

static void a_tick_beyond_40_bits_leaves_the_entity_alone(void **state)
{
	wr_trace_tick_begin(*state, 0, 0, (UINT64_C(1) << 40) + 3);
	wr_trace_tick_end(*state, 0, 0, (UINT64_C(1) << 40) + 3);
	assert_int_equal(recorder_count("\"name\":\"read\",\"payload\":3}"), 1);
}

static void ready_is_a_mark(void **state)
{
	wr_trace_ready(*state, 0, 0);
	assert_string_equal(
		recorder_line(0),
		"{\"call\":\"mark\",\"domain\":\"weir\",\"category\":2,\"name\":\"read\",\"payload\":0}");
}

static void a_worker_names_its_thread_and_its_sleep(void **state)
{
	wr_trace_worker(*state, 3);
	wr_trace_sleep_begin(*state, 3);
	wr_trace_sleep_end(*state, 3);
	assert_string_equal(recorder_line(0), "{\"call\":\"thread\",\"self\":true,\"name\":\"weir:3\"}");
	assert_string_equal(recorder_line(1),
			    "{\"call\":\"push\",\"domain\":\"weir\",\"category\":3,\"name\":\"sleep\","
			    "\"payload\":3}");
	assert_int_equal(recorder_count("{\"call\":\"pop\",\"domain\":\"weir\"}"), 1);
}

static void a_run_is_a_range_of_the_process(void **state)
{
	wr_trace_run_begin(*state, 4);
	wr_trace_run_end(*state, 4);
	assert_int_equal(
		recorder_count("{\"call\":\"start\",\"domain\":\"weir\",\"category\":8,\"name\":\"run\","
			       "\"payload\":4,"),
		1);
	assert_int_equal(recorder_count("\"call\":\"end\""), 1);
	assert_int_equal(open_ranges(), 0);
}

static void a_signal_is_a_range_from_its_arming_to_its_firing(void **state)
{
	wr_trace_arm(*state, 0, 5, 77, WR_TRACE_CALLBACK);
	assert_int_equal(recorder_count("\"category\":4,\"name\":\"blur signal\",\"payload\":5497558138880,"),
			 1);
	assert_int_equal(open_ranges(), 1);
	wr_trace_fire(*state, WR_LANE_OUTSIDE, 5, 77);
	assert_int_equal(open_ranges(), 0);
	wr_trace_fire(*state, WR_LANE_OUTSIDE, 5, 77);
	assert_int_equal(recorder_count("\"call\":\"end\""), 1);
}

/* One is open per entity at most, and none remains. */
static void the_range_of_a_token_that_was_cancelled_ends(void **state)
{
	wr_trace_run_begin(*state, 4);
	wr_trace_arm(*state, 0, 5, 77, WR_TRACE_CALLBACK);
	wr_trace_arm(*state, 0, 5, 78, WR_TRACE_CALLBACK);
	assert_int_equal(open_ranges(), 2); /* the run and the second */
	wr_trace_tick_begin(*state, 0, 5, 0);
	wr_trace_tick_end(*state, 0, 5, 0);
	assert_int_equal(open_ranges(), 1);
	wr_trace_arm(*state, 0, 5, 79, WR_TRACE_FLAG);
	wr_trace_fire(*state, WR_LANE_OUTSIDE, 5, 78); /* late: the range of 79 goes on */
	assert_int_equal(open_ranges(), 2);
	wr_trace_entity_done(*state, 0, 5);
	assert_int_equal(open_ranges(), 1);
	wr_trace_arm(*state, 0, 0, 80, WR_TRACE_INLINE);
	wr_trace_run_end(*state, 4);
	assert_int_equal(open_ranges(), 0);
}

static void a_signal_that_fires_before_its_arming_is_told_leaves_no_range(void **state)
{
	wr_trace_fire(*state, WR_LANE_OUTSIDE, 5, 77);
	wr_trace_arm(*state, 0, 5, 77, WR_TRACE_CALLBACK);
	assert_int_equal(recorder_count("\"call\":\"start\""), 1);
	assert_int_equal(open_ranges(), 0);
}

static void a_reason_to_wait_is_marked_once_between_two_ticks(void **state)
{
	static const char few[] = "too few messages";

	for (int i = 0; i < 3; i++)
		wr_trace_wait(*state, 0, 5, WEIR_CAUSE_MESSAGES, 0, "in", few);
	assert_string_equal(recorder_line(0),
			    "{\"call\":\"mark\",\"domain\":\"weir\",\"category\":5,\"name\":\"blur "
			    "waits: in: too few messages\",\"payload\":5497558138880}");
	assert_null(recorder_line(1));
	wr_trace_wait(*state, 0, 5, WEIR_CAUSE_ROOM, 0, "room", "its receiver is full");
	assert_int_equal(recorder_count("blur waits: room: its receiver is full"), 1);
	wr_trace_wait(*state, 0, 5, WEIR_CAUSE_MESSAGES, 0, "in", few);
	assert_int_equal(recorder_count("blur waits: in: too few messages"), 2);
	wr_trace_tick_begin(*state, 0, 5, 0);
	wr_trace_tick_end(*state, 0, 5, 0);
	wr_trace_wait(*state, 0, 5, WEIR_CAUSE_MESSAGES, 0, "in", few);
	assert_int_equal(recorder_count("blur waits: in: too few messages"), 3);
}

static void a_wait_without_memory_is_not_marked(void **state)
{
	wr_memory_fail_at(0, true);
	wr_trace_wait(*state, 0, 5, WEIR_CAUSE_MESSAGES, 0, "in", "too few messages");
	wr_memory_fail_at(-1, false);
	assert_null(recorder_line(0));
	wr_trace_wait(*state, 0, 4000, WEIR_CAUSE_MESSAGES, 0, "in",
		      "too few messages"); /* an entity that had no memory */
	assert_null(recorder_line(0));
}

static void captures_and_replays_are_ranges_inside_of_the_tick(void **state)
{
	wr_trace_replay_begin(*state, 0, 5, true);
	wr_trace_replay_end(*state, 0, 5);
	wr_trace_replay_begin(*state, 0, 5, false);
	wr_trace_replay_end(*state, 0, 5);
	assert_string_equal(recorder_line(0),
			    "{\"call\":\"push\",\"domain\":\"weir\",\"category\":6,\"name\":\"blur "
			    "capture\",\"payload\":5497558138880}");
	assert_string_equal(recorder_line(1), "{\"call\":\"pop\",\"domain\":\"weir\"}");
	assert_int_equal(
		recorder_count(
			"\"call\":\"push\",\"domain\":\"weir\",\"category\":6,\"name\":\"blur replay\""),
		1);
	assert_int_equal(recorder_count("\"call\":\"pop\""), 2);
}

static void a_steal_is_a_mark(void **state)
{
	wr_trace_steal(*state, 1, 5);
	assert_int_equal(
		recorder_count("{\"call\":\"mark\",\"domain\":\"weir\",\"category\":7,\"name\":\"blur\""), 1);
}

#if __has_include(<nvtx3/nvToolsExtCounters.h>)
static void queues_pools_and_flights_are_counters(void **state)
{
	wr_trace_deliver(*state, 0, 1, 0);
	wr_trace_deliver(*state, 0, 1, 1);
	wr_trace_drop(*state, 0, 1, 0);
	wr_trace_take(*state, 0, 1, 1);
	for (int depth = 0; depth < 3; depth++) {
		static const char *const seen[] = {"1}", "2}", "0}"};
		char line[128];

		snprintf(line, sizeof line, "\"name\":\"queue read.out -> blur.in\",\"value\":%s",
			 seen[depth]);
		assert_int_equal(recorder_count(line), depth == 0 ? 2 : 1);
	}
	wr_trace_pool_used(*state, 0, 0, 4096);
	assert_int_equal(recorder_count("\"name\":\"pool frames\",\"value\":4096}"), 1);
	wr_trace_flight(*state, 0, 5, 3);
	wr_trace_flight(*state, 0, 5, 2);
	assert_int_equal(
		recorder_count("\"call\":\"counter\",\"domain\":\"weir\",\"name\":\"blur in flight\""), 1);
	assert_int_equal(recorder_count("\"name\":\"blur in flight\",\"value\":2}"), 1);
}

/* It is empty for good: what is pushed then is dropped. */
static void the_queue_of_an_entity_that_is_done_is_counted_no_more(void **state)
{
	wr_trace_deliver(*state, 0, 1, 0);
	wr_trace_entity_done(*state, 0, 0); /* its sender */
	wr_trace_deliver(*state, 0, 1, 1);
	assert_int_equal(recorder_count("\"name\":\"queue read.out -> blur.in\",\"value\":2}"), 1);
	wr_trace_entity_done(*state, 0, 5);
	wr_trace_deliver(*state, 0, 1, 2);
	assert_int_equal(recorder_count("\"name\":\"queue read.out -> blur.in\""), 3);
	assert_int_equal(recorder_count("\"name\":\"queue read.out -> blur.in\",\"value\":0}"), 1);
}

static void sleeping_workers_are_counted(void **state)
{
	wr_trace_sleep_begin(*state, 3);
	wr_trace_sleep_end(*state, 3);
	assert_int_equal(recorder_count("\"name\":\"workers asleep\",\"value\":1}"), 1);
	assert_int_equal(recorder_count("\"name\":\"workers asleep\",\"value\":0}"), 1);
}

/* A queue that there was no memory for, a pool likewise. */
static void what_has_no_counter_is_left_out(void **state)
{
	wr_trace_deliver(*state, 0, 4000, 0);
	wr_trace_pool_used(*state, 0, 4000, 1);
	wr_trace_flight(*state, 0, 4000, 1);
	assert_null(recorder_line(0));
}
#endif

static void an_entity_without_a_name_still_has_its_range(void **state)
{
	wr_memory_fail_at(0, true);
	wr_trace_entity(*state, 4000, "far");
	wr_memory_fail_at(-1, false);
	wr_trace_tick_begin(*state, 0, 4000, 1);
	wr_trace_tick_end(*state, 0, 4000, 1);
	assert_int_equal(
		recorder_count("\"call\":\"push\",\"domain\":\"weir\",\"category\":1,\"name\":\"?\""), 1);
	assert_int_equal(recorder_count("\"call\":\"pop\""), 1);
}

static void only_streams_of_cuda_have_names(void **state)
{
	wr_trace_stream(*state, NULL, "blur");
	assert_null(recorder_line(0));
#ifdef WEIR_WITH_CUDA
	wr_trace_stream(*state, (void *)16, "blur");
	assert_string_equal(recorder_line(0), "{\"call\":\"stream\",\"stream\":16,\"name\":\"weir:blur\"}");
#endif
}

static void f40_any_malloc_fails(void **state)
{
	struct wr_trace *trace = NULL;

	(void)state;
	for (int n = 0; n < 2; n++) {
		wr_memory_fail_at(n, false);
		assert_int_equal(wr_trace_open(&options, &trace), WEIR_E_NOMEM);
		wr_memory_fail_at(-1, false);
		assert_null(trace);
	}
}

/* The device fires while the entity ticks and arms anew. */
static void *fire_in_a_thread(void *trace)
{
	for (uint64_t tick = 0; tick < 100; tick++) {
		wr_trace_tick_begin(trace, 1, 0, tick);
		wr_trace_fire(trace, WR_LANE_OUTSIDE, 5, tick + 1);
		wr_trace_tick_end(trace, 1, 0, tick);
	}
	return NULL;
}

static void b05_two_threads_may_tell_at_once(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, fire_in_a_thread, *state), 0);
	for (uint64_t tick = 0; tick < 100; tick++) {
		wr_trace_arm(*state, 0, 5, tick + 1, WR_TRACE_CALLBACK);
		wr_trace_tick_begin(*state, 0, 5, tick);
		wr_trace_tick_end(*state, 0, 5, tick);
	}
	pthread_join(thread, NULL);
	assert_int_equal(recorder_count("\"call\":\"push\""), 200);
	assert_int_equal(recorder_count("\"call\":\"pop\""), 200);
	assert_int_equal(recorder_count("\"call\":\"start\""), 100);
	assert_int_equal(open_ranges(), 0);
}

#define WITH_TRACE(test) cmocka_unit_test_setup_teardown(test, open_trace, close_trace)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_domain_however_many_schedulers),
		WITH_TRACE(a_tick_is_a_range_named_as_its_entity),
		WITH_TRACE(a_tick_beyond_40_bits_leaves_the_entity_alone),
		WITH_TRACE(ready_is_a_mark),
		WITH_TRACE(a_worker_names_its_thread_and_its_sleep),
		WITH_TRACE(a_run_is_a_range_of_the_process),
		WITH_TRACE(a_signal_is_a_range_from_its_arming_to_its_firing),
		WITH_TRACE(the_range_of_a_token_that_was_cancelled_ends),
		WITH_TRACE(a_signal_that_fires_before_its_arming_is_told_leaves_no_range),
		WITH_TRACE(a_reason_to_wait_is_marked_once_between_two_ticks),
		WITH_TRACE(a_wait_without_memory_is_not_marked),
		WITH_TRACE(captures_and_replays_are_ranges_inside_of_the_tick),
		WITH_TRACE(a_steal_is_a_mark),
#if __has_include(<nvtx3/nvToolsExtCounters.h>)
		WITH_TRACE(queues_pools_and_flights_are_counters),
		WITH_TRACE(the_queue_of_an_entity_that_is_done_is_counted_no_more),
		WITH_TRACE(sleeping_workers_are_counted),
		WITH_TRACE(what_has_no_counter_is_left_out),
#endif
		WITH_TRACE(an_entity_without_a_name_still_has_its_range),
		WITH_TRACE(only_streams_of_cuda_have_names),
		WITH_TRACE(b05_two_threads_may_tell_at_once),
		cmocka_unit_test(f40_any_malloc_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a profiler sees, as recorded by the recorder. */
#include "trace/trace.h"

#include <pthread.h>

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
	recorder_clear();
	*state = trace;
	return 0;
}

static int close_trace(void **state)
{
	wr_trace_close(*state);
	return 0;
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
	assert_int_equal(recorder_count("\"call\":\"category\",\"domain\":\"weir\""), 3);
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
	assert_string_equal(recorder_line(2), "{\"call\":\"pop\",\"domain\":\"weir\"}");
}

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

static void *tick_in_a_thread(void *trace)
{
	for (uint64_t tick = 0; tick < 100; tick++) {
		wr_trace_tick_begin(trace, 0, 0, tick);
		wr_trace_tick_end(trace, 0, 0, tick);
	}
	return NULL;
}

static void b05_two_threads_may_tell_at_once(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, tick_in_a_thread, *state), 0);
	tick_in_a_thread(*state);
	pthread_join(thread, NULL);
	assert_int_equal(recorder_count("\"call\":\"push\""), 200);
	assert_int_equal(recorder_count("\"call\":\"pop\""), 200);
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
		WITH_TRACE(an_entity_without_a_name_still_has_its_range),
		WITH_TRACE(only_streams_of_cuda_have_names),
		WITH_TRACE(b05_two_threads_may_tell_at_once),
		cmocka_unit_test(f40_any_malloc_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What the fake orders and what it does not, as CUDA does. Under the thread sanitizer a missing order is a
 * race. */
#include <cudaTypedefs.h>

#include "test.h"

#if defined(__SANITIZE_THREAD__)
#define SEES_RACES 1
#elif defined(__has_feature)
#define SEES_RACES __has_feature(thread_sanitizer)
#else
#define SEES_RACES 0
#endif

static const char *program;
static int number; /* not atomic: CUDA's order is what makes its use right */

static void CUDART_CB set_to_1(void *arg)
{
	*(int *)arg = 1;
}

static void CUDART_CB double_it(void *arg)
{
	*(int *)arg *= 2;
}

static void CUDART_CB add_3(void *arg)
{
	*(int *)arg += 3;
}

/* --- streams and events --- */

static void a_stream_keeps_its_order(void **state)
{
	cudaStream_t stream = a_stream(cudaStreamNonBlocking);

	(void)state;
	OK(cudaLaunchHostFunc(stream, set_to_1, &number));
	for (int i = 0; i < 5; i++)
		OK(cudaLaunchHostFunc(stream, double_it, &number));
	OK(cudaLaunchHostFunc(stream, add_3, &number));
	OK(cudaStreamSynchronize(stream));
	assert_int_equal(number, 35);
	OK(cudaStreamDestroy(stream));
}

static void an_event_orders_two_streams_and_the_host(void **state)
{
	cudaStream_t one = a_stream(cudaStreamNonBlocking), two = a_stream(cudaStreamNonBlocking);
	cudaEvent_t event = an_event(), end = an_event();

	(void)state;
	OK(cudaLaunchHostFunc(one, set_to_1, &number));
	OK(cudaEventRecord(event, one));
	OK(cudaStreamWaitEvent(two, event, 0));
	OK(cudaLaunchHostFunc(two, add_3, &number));
	OK(cudaEventRecord(end, two));
	while (cudaEventQuery(end) == cudaErrorNotReady)
		;
	assert_int_equal(number, 4);
	OK(cudaEventDestroy(event));
	OK(cudaEventDestroy(end));
	OK(cudaStreamDestroy(one));
	OK(cudaStreamDestroy(two));
}

static void an_event_that_was_never_recorded_is_complete(void **state)
{
	cudaEvent_t event = an_event();
	cudaStream_t stream = a_stream(cudaStreamNonBlocking);
	struct door door;

	(void)state;
	OK(cudaEventQuery(event));
	close_door(&door, stream);
	OK(cudaEventRecord(event, stream));
	assert_int_equal(cudaEventQuery(event), cudaErrorNotReady);
	open_door(&door);
	OK(cudaEventSynchronize(event));
	OK(cudaEventQuery(event));
	OK(cudaEventDestroy(event));
	OK(cudaStreamDestroy(stream));
}

static void a_wait_is_for_the_record_that_was_the_latest_at_the_call(void **state)
{
	cudaStream_t one = a_stream(cudaStreamNonBlocking), two = a_stream(cudaStreamNonBlocking);
	cudaEvent_t event = an_event();
	struct door door;

	(void)state;
	OK(cudaEventRecord(event, one));
	OK(cudaStreamWaitEvent(two, event, 0));
	close_door(&door, one);
	OK(cudaEventRecord(event, one));
	OK(cudaStreamSynchronize(two)); /* it would not return */
	open_door(&door);
	OK(cudaStreamSynchronize(one));
	OK(cudaEventDestroy(event));
	OK(cudaStreamDestroy(one));
	OK(cudaStreamDestroy(two));
}

static void the_default_stream_and_blocking_streams_wait_for_each_other(void **state)
{
	cudaStream_t one = a_stream(cudaStreamDefault), two = a_stream(cudaStreamDefault);

	(void)state;
	OK(cudaLaunchHostFunc(one, set_to_1, &number));
	OK(cudaLaunchHostFunc(cudaStreamLegacy, add_3, &number));
	OK(cudaLaunchHostFunc(two, double_it, &number));
	OK(cudaStreamSynchronize(two));
	assert_int_equal(number, 8);
	OK(cudaStreamDestroy(one));
	OK(cudaStreamDestroy(two));
}

static void a_stream_that_does_not_block_is_not_behind_the_default_one(void **state)
{
	cudaStream_t stream = a_stream(cudaStreamNonBlocking);
	struct door door;

	(void)state;
	close_door(&door, cudaStreamLegacy);
	OK(cudaLaunchHostFunc(stream, set_to_1, &number));
	OK(cudaStreamSynchronize(stream));
	assert_int_equal(cudaStreamQuery(cudaStreamLegacy), cudaErrorNotReady);
	open_door(&door);
	OK(cudaStreamSynchronize(cudaStreamLegacy));
	OK(cudaStreamDestroy(stream));
}

static void a_destroyed_stream_does_what_was_enqueued(void **state)
{
	cudaStream_t stream = a_stream(cudaStreamNonBlocking);
	cudaEvent_t event = an_event();
	struct door door;

	(void)state;
	close_door(&door, stream);
	OK(cudaLaunchHostFunc(stream, set_to_1, &number));
	OK(cudaEventRecord(event, stream));
	OK(cudaStreamDestroy(stream));
	open_door(&door);
	OK(cudaEventSynchronize(event));
	assert_int_equal(number, 1);
	OK(cudaEventDestroy(event));
}

static void CUDART_CB call_cuda(void *arg)
{
	*(int *)arg = cudaStreamSynchronize(NULL);
}

static void a_host_function_makes_no_calls(void **state)
{
	cudaStream_t stream = a_stream(cudaStreamNonBlocking);

	(void)state;
	OK(cudaLaunchHostFunc(stream, call_cuda, &number));
	OK(cudaStreamSynchronize(stream));
	assert_int_equal(number, cudaErrorNotPermitted);
	OK(cudaStreamDestroy(stream));
}

/* --- copies --- */

static void pageable_memory_is_read_at_the_call_and_written_before_it_returns(void **state)
{
	cudaStream_t stream = a_stream(cudaStreamNonBlocking);
	int here = 5, back = 0;
	void *there;

	(void)state;
	OK(cudaMalloc(&there, sizeof here));
	OK(cudaMemcpyAsync(there, &here, sizeof here, cudaMemcpyDefault, stream));
	here = 6;
	OK(cudaMemcpyAsync(&back, there, sizeof back, cudaMemcpyDefault, stream));
	assert_int_equal(back, 5);
	OK(cudaStreamSynchronize(stream));
	OK(cudaFree(there));
	OK(cudaStreamDestroy(stream));
}

static void pinned_memory_is_copied_behind_the_work_of_the_stream(void **state)
{
	cudaStream_t stream = a_stream(cudaStreamNonBlocking);
	struct door door;
	void *there, *here;

	(void)state;
	OK(cudaMalloc(&there, sizeof number));
	OK(cudaHostAlloc(&here, sizeof number, cudaHostAllocPortable));
	OK(cudaMemsetAsync(there, 1, sizeof number, stream));
	close_door(&door, stream);
	OK(cudaMemcpyAsync(here, there, sizeof number, cudaMemcpyDefault, stream));
	assert_int_equal(cudaStreamQuery(stream), cudaErrorNotReady);
	open_door(&door);
	OK(cudaStreamSynchronize(stream));
	assert_int_equal(*(int *)here, 0x01010101);
	OK(cudaFree(there));
	OK(cudaFreeHost(here));
	OK(cudaStreamDestroy(stream));
}

/* --- flags --- */

static void a_flag_follows_the_work_of_its_stream(void **state)
{
	cudaStream_t stream = a_stream(cudaStreamNonBlocking);
	PFN_cuStreamWriteValue32_v11070 write;
	enum cudaDriverEntryPointQueryResult found;
	_Atomic uint32_t *word;
	void *memory, *function;

	(void)state;
	OK(cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &function, 11070, 0, &found));
	memcpy(&write, &function, sizeof write);
	OK(cudaHostAlloc(&memory, sizeof *word, cudaHostAllocPortable));
	word = memory;
	atomic_init(word, 0);
	OK(cudaLaunchHostFunc(stream, set_to_1, &number));
	assert_int_equal(write(stream, (CUdeviceptr)(uintptr_t)word, 7, 0), CUDA_SUCCESS);
	while (atomic_load_explicit(word, memory_order_acquire) != 7)
		;
	assert_int_equal(number, 1);
	assert_int_equal(write(stream, (CUdeviceptr)(uintptr_t)&number, 7, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cudaFreeHost(memory));
	OK(cudaStreamDestroy(stream));
}

/* --- captures and graphs --- */

/* one: set; then two: add, and one: nothing; one joins two and doubles. */
static cudaGraphExec_t capture_fork(cudaStream_t one, cudaStream_t two, cudaEvent_t event)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	OK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
	OK(cudaLaunchHostFunc(one, set_to_1, &number));
	OK(cudaEventRecord(event, one));
	OK(cudaStreamWaitEvent(two, event, 0));
	OK(cudaLaunchHostFunc(two, add_3, &number));
	OK(cudaEventRecord(event, two));
	OK(cudaStreamWaitEvent(one, event, 0));
	OK(cudaLaunchHostFunc(one, double_it, &number));
	OK(cudaStreamEndCapture(one, &graph));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphDestroy(graph));
	return exec;
}

static void a_graph_keeps_its_edges_and_its_launches_follow_each_other(void **state)
{
	cudaStream_t one = a_stream(cudaStreamNonBlocking), two = a_stream(cudaStreamNonBlocking);
	cudaEvent_t event = an_event();
	cudaGraphExec_t exec;

	(void)state;
	number = 0;
	exec = capture_fork(one, two, event);
	assert_int_equal(number, 0);
	OK(cudaGraphLaunch(exec, one));
	OK(cudaGraphLaunch(exec, two));
	OK(cudaGraphExecDestroy(exec)); /* the launches go on */
	OK(cudaStreamSynchronize(one));
	OK(cudaStreamSynchronize(two));
	assert_int_equal(number, 8);
	OK(cudaEventDestroy(event));
	OK(cudaStreamDestroy(one));
	OK(cudaStreamDestroy(two));
}

static void a_capture_whose_streams_are_not_joined_is_refused(void **state)
{
	cudaStream_t one = a_stream(cudaStreamNonBlocking), two = a_stream(cudaStreamNonBlocking);
	cudaEvent_t event = an_event();
	cudaGraph_t graph;

	(void)state;
	OK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
	OK(cudaEventRecord(event, one));
	OK(cudaStreamWaitEvent(two, event, 0));
	OK(cudaLaunchHostFunc(two, add_3, &number));
	assert_int_equal(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureUnjoined);
	assert_null(graph);
	OK(cudaLaunchHostFunc(two, add_3, &number)); /* it is no part of a capture any more */
	OK(cudaStreamSynchronize(two));
	OK(cudaEventDestroy(event));
	OK(cudaStreamDestroy(one));
	OK(cudaStreamDestroy(two));
}

/* As measured on an H200 (driver 580, CUDA 13.0). */
static void a_stream_that_is_destroyed_ends_its_capture_and_is_not_joined_to_another(void **state)
{
	cudaStream_t one = a_stream(cudaStreamNonBlocking), two = a_stream(cudaStreamNonBlocking), three;
	cudaEvent_t event = an_event();
	cudaGraph_t graph;

	(void)state;
	OK(cudaStreamBeginCapture(two, cudaStreamCaptureModeThreadLocal));
	OK(cudaEventRecord(event, two));
	OK(cudaStreamDestroy(two));
	assert_int_equal(cudaStreamWaitEvent(one, event, 0), cudaErrorInvalidValue);
	three = a_stream(cudaStreamNonBlocking);
	OK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
	OK(cudaEventRecord(event, one));
	OK(cudaStreamWaitEvent(three, event, 0));
	OK(cudaLaunchHostFunc(three, add_3, &number));
	OK(cudaStreamDestroy(three));
	assert_int_equal(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureUnjoined);
	assert_int_equal(cudaStreamEndCapture(one, &graph), cudaErrorIllegalState);
	OK(cudaEventDestroy(event));
	OK(cudaStreamDestroy(one));
}

static void what_a_capture_prohibits_invalidates_it_unless_the_thread_is_relaxed(void **state)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	cudaStream_t stream = a_stream(cudaStreamNonBlocking);
	cudaEvent_t event = an_event();
	cudaGraph_t graph;

	(void)state;
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	OK(cudaThreadExchangeStreamCaptureMode(&mode));
	OK(cudaEventQuery(event));
	OK(cudaThreadExchangeStreamCaptureMode(&mode));
	OK(cudaLaunchHostFunc(stream, set_to_1, &number));
	assert_int_equal(cudaEventQuery(event), cudaErrorStreamCaptureUnsupported);
	assert_int_equal(cudaLaunchHostFunc(stream, set_to_1, &number), cudaErrorStreamCaptureInvalidated);
	assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
	OK(cudaEventDestroy(event));
	OK(cudaStreamDestroy(stream));
}

static void work_from_outside_is_no_part_of_a_capture(void **state)
{
	cudaStream_t one = a_stream(cudaStreamNonBlocking), two = a_stream(cudaStreamNonBlocking);
	cudaEvent_t event = an_event();
	cudaGraph_t graph;

	(void)state;
	OK(cudaEventRecord(event, two));
	OK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
	assert_int_equal(cudaStreamWaitEvent(one, event, 0), cudaErrorStreamCaptureIsolation);
	assert_int_equal(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureInvalidated);
	OK(cudaStreamSynchronize(two));
	OK(cudaEventDestroy(event));
	OK(cudaStreamDestroy(one));
	OK(cudaStreamDestroy(two));
}

static void while_a_blocking_stream_is_captured_the_default_one_is_not_used(void **state)
{
	cudaStream_t stream = a_stream(cudaStreamDefault);
	enum cudaStreamCaptureStatus status;
	cudaGraph_t graph;

	(void)state;
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	assert_int_equal(cudaStreamIsCapturing(cudaStreamLegacy, &status), cudaErrorStreamCaptureImplicit);
	assert_int_equal(cudaLaunchHostFunc(NULL, set_to_1, &number), cudaErrorStreamCaptureImplicit);
	OK(cudaStreamIsCapturing(stream, &status));
	assert_int_equal(status, cudaStreamCaptureStatusActive);
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphDestroy(graph));
	OK(cudaStreamDestroy(stream));
}

/* --- what is not ordered: each is a process, which the thread sanitizer ends --- */

static void race_of_two_streams(cudaStream_t one, cudaStream_t two, cudaEvent_t event)
{
	OK(cudaLaunchHostFunc(one, set_to_1, &number));
	OK(cudaEventRecord(event, one));
	OK(cudaLaunchHostFunc(two, add_3, &number));
}

static void race_behind_a_record(cudaStream_t one, cudaStream_t two, cudaEvent_t event)
{
	OK(cudaEventRecord(event, one));
	OK(cudaLaunchHostFunc(one, set_to_1, &number));
	OK(cudaStreamWaitEvent(two, event, 0));
	OK(cudaLaunchHostFunc(two, add_3, &number));
}

static void race_of_the_host(cudaStream_t one, cudaStream_t two, cudaEvent_t event)
{
	OK(cudaEventRecord(event, two));
	OK(cudaLaunchHostFunc(one, set_to_1, &number));
	OK(cudaEventSynchronize(event));
	number = 2;
}

static void race_of_the_default_stream(cudaStream_t one, cudaStream_t two, cudaEvent_t event)
{
	(void)two, (void)event;
	OK(cudaLaunchHostFunc(one, set_to_1, &number));
	OK(cudaLaunchHostFunc(cudaStreamLegacy, add_3, &number));
	OK(cudaStreamSynchronize(cudaStreamLegacy));
}

static void race_within_a_graph(cudaStream_t one, cudaStream_t two, cudaEvent_t event)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	OK(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal));
	OK(cudaEventRecord(event, one));
	OK(cudaStreamWaitEvent(two, event, 0));
	OK(cudaLaunchHostFunc(one, set_to_1, &number));
	OK(cudaLaunchHostFunc(two, add_3, &number));
	OK(cudaEventRecord(event, two));
	OK(cudaStreamWaitEvent(one, event, 0));
	OK(cudaStreamEndCapture(one, &graph));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, one));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
}

static void (*const races[])(cudaStream_t one, cudaStream_t two, cudaEvent_t event) = {
	race_of_two_streams,        race_behind_a_record, race_of_the_host,
	race_of_the_default_stream, race_within_a_graph,
};

static int run_race(int which)
{
	cudaStream_t one = a_stream(cudaStreamNonBlocking), two = a_stream(cudaStreamNonBlocking);
	cudaEvent_t event = an_event();

	races[which](one, two, event);
	OK(cudaStreamSynchronize(one));
	OK(cudaStreamSynchronize(two));
	OK(cudaEventDestroy(event));
	OK(cudaStreamDestroy(one));
	OK(cudaStreamDestroy(two));
	return 0;
}

static void what_cuda_does_not_order_is_a_race(void **state)
{
	enum { RACE = 66 }; /* the thread sanitizer's exit code */

	(void)state;
	for (size_t i = 0; i < sizeof races / sizeof *races; i++) {
		char which[] = {(char)('0' + i), 0};

		assert_int_equal(exit_code_of(program, which), SEES_RACES ? RACE : 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_keeps_its_order),
		cmocka_unit_test(an_event_orders_two_streams_and_the_host),
		cmocka_unit_test(an_event_that_was_never_recorded_is_complete),
		cmocka_unit_test(a_wait_is_for_the_record_that_was_the_latest_at_the_call),
		cmocka_unit_test(the_default_stream_and_blocking_streams_wait_for_each_other),
		cmocka_unit_test(a_stream_that_does_not_block_is_not_behind_the_default_one),
		cmocka_unit_test(a_destroyed_stream_does_what_was_enqueued),
		cmocka_unit_test(a_host_function_makes_no_calls),
		cmocka_unit_test(pageable_memory_is_read_at_the_call_and_written_before_it_returns),
		cmocka_unit_test(pinned_memory_is_copied_behind_the_work_of_the_stream),
		cmocka_unit_test(a_flag_follows_the_work_of_its_stream),
		cmocka_unit_test(a_graph_keeps_its_edges_and_its_launches_follow_each_other),
		cmocka_unit_test(a_capture_whose_streams_are_not_joined_is_refused),
		cmocka_unit_test(a_stream_that_is_destroyed_ends_its_capture_and_is_not_joined_to_another),
		cmocka_unit_test(what_a_capture_prohibits_invalidates_it_unless_the_thread_is_relaxed),
		cmocka_unit_test(work_from_outside_is_no_part_of_a_capture),
		cmocka_unit_test(while_a_blocking_stream_is_captured_the_default_one_is_not_used),
		cmocka_unit_test(what_cuda_does_not_order_is_a_race),
	};

	program = argv[0];
	if (argc > 1)
		return run_race(atoi(argv[1]));
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What the fake tells: each use after the end, wrong handles, calls that it lacks, what is left over. */
#include "test.h"

static const char *program;
static char told[700];

static int begin(void **state)
{
	(void)state;
	*told = 0;
	fake_catch(told, sizeof told);
	return 0;
}

static int end(void **state)
{
	(void)state;
	fake_catch(NULL, 0);
	return fake_left_over() ? -1 : 0;
}

static void assert_told(const char *words)
{
	if (!strstr(told, words))
		fail_msg("'%s' is not in '%s'", words, told);
	*told = 0;
}

static void an_event_is_not_used_after_its_end(void **state)
{
	cudaStream_t stream = a_stream(cudaStreamNonBlocking);
	cudaEvent_t event = an_event();

	(void)state;
	OK(cudaEventDestroy(event));
	assert_int_equal(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
	assert_told("cudaEventRecord: event ");
	assert_int_equal(cudaStreamWaitEvent(stream, event, 0), cudaErrorInvalidResourceHandle);
	assert_told("was destroyed by cudaEventDestroy, called from ");
	assert_int_equal(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
	assert_told("cudaEventQuery: event ");
	assert_int_equal(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
	assert_told("cudaEventDestroy: event ");
	OK(cudaStreamDestroy(stream));
}

static void a_stream_is_not_used_after_its_end(void **state)
{
	cudaStream_t stream = a_stream(cudaStreamNonBlocking);
	cudaEvent_t event = an_event();

	(void)state;
	OK(cudaStreamDestroy(stream));
	assert_int_equal(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
	assert_told("was destroyed by cudaStreamDestroy, called from ");
	assert_int_equal(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
	assert_told("cudaStreamDestroy: stream ");
	OK(cudaEventDestroy(event));
}

static void graphs_are_not_used_after_their_end(void **state)
{
	cudaStream_t stream = a_stream(cudaStreamNonBlocking);
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	size_t count;

	(void)state;
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphDestroy(graph));
	assert_int_not_equal(cudaGraphGetNodes(graph, NULL, &count), cudaSuccess);
	assert_told("was destroyed by cudaGraphDestroy, called from ");
	OK(cudaGraphExecDestroy(exec));
	assert_int_not_equal(cudaGraphLaunch(exec, stream), cudaSuccess);
	assert_told("was destroyed by cudaGraphExecDestroy, called from ");
	OK(cudaStreamDestroy(stream));
}

static void a_handle_of_another_kind_is_known(void **state)
{
	cudaEvent_t event = an_event();

	(void)state;
	assert_int_not_equal(cudaStreamDestroy((cudaStream_t)event), cudaSuccess);
	assert_told("is no handle of a stream");
	OK(cudaEventDestroy(event));
}

static void memory_is_not_used_after_its_end_or_beyond_it(void **state)
{
	cudaStream_t stream = a_stream(cudaStreamNonBlocking);
	char here[32] = "";
	void *there;

	(void)state;
	OK(cudaMalloc(&there, 16));
	assert_int_not_equal(cudaMemcpyAsync(there, here, 32, cudaMemcpyDefault, stream), cudaSuccess);
	assert_told("writes 32 bytes");
	OK(cudaFree(there));
	assert_int_not_equal(cudaMemcpyAsync(here, there, 16, cudaMemcpyDefault, stream), cudaSuccess);
	assert_told("which was freed by cudaFree, called from ");
	assert_int_not_equal(cudaFree(there), cudaSuccess);
	assert_told("cudaFree: frees ");
	assert_int_not_equal(cudaFree(here), cudaSuccess);
	assert_told("is no memory that this call could free");
	OK(cudaStreamDestroy(stream));
}

static void what_the_fake_lacks_is_named(void **state)
{
	enum cudaDriverEntryPointQueryResult found;
	cudaLibrary_t library;
	cudaKernel_t kernel;
	void *function;

	(void)state;
	OK(cudaGetDriverEntryPointByVersion("cuNothing", &function, 12000, 0, &found));
	assert_int_equal(found, cudaDriverEntryPointSymbolNotFound);
	assert_told("the fake has no function of the driver 'cuNothing'");
	OK(cudaLibraryLoadData(&library, "", NULL, NULL, 0, NULL, NULL, 0));
	assert_int_equal(cudaLibraryGetKernel(&kernel, library, "nothing"), cudaErrorSymbolNotFound);
	assert_told("no form for the fake of the kernel 'nothing'");
	assert_int_not_equal(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
	assert_told("the fake has no cudaStreamPerThread");
}

static void what_is_left_over_fails_the_process(void **state)
{
	(void)state;
	fake_catch(NULL, 0);
	assert_int_equal(exit_code_of(program, "nothing"), 0);
	assert_int_equal(exit_code_of(program, "event"), FAKE_LEFT_OVER);
	assert_int_equal(exit_code_of(program, "memory"), FAKE_LEFT_OVER);
	assert_true(exit_code_of(program, "twice") > 0); /* it is aborted: 128 and the signal */
}

static int leave(const char *part)
{
	cudaEvent_t event;
	void *memory;

	if (!strcmp(part, "event"))
		return cudaEventCreate(&event);
	if (!strcmp(part, "memory"))
		return cudaMalloc(&memory, 16);
	if (!strcmp(part, "twice"))
		return cudaEventCreate(&event) || cudaEventDestroy(event) || cudaEventDestroy(event);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_event_is_not_used_after_its_end, begin, end),
		cmocka_unit_test_setup_teardown(a_stream_is_not_used_after_its_end, begin, end),
		cmocka_unit_test_setup_teardown(graphs_are_not_used_after_their_end, begin, end),
		cmocka_unit_test_setup_teardown(a_handle_of_another_kind_is_known, begin, end),
		cmocka_unit_test_setup_teardown(memory_is_not_used_after_its_end_or_beyond_it, begin, end),
		cmocka_unit_test_setup_teardown(what_the_fake_lacks_is_named, begin, end),
		cmocka_unit_test_setup_teardown(what_is_left_over_fails_the_process, begin, end),
	};

	program = argv[0];
	return argc > 1 ? leave(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}

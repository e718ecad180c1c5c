/* What streams/cuda leaves behind in the calling thread: nothing. Its calls are made as streams/ makes them.
 */
#include <stdlib.h>

#include "base/status.h"
#include "streams/backend.h"
#include "test.h"

static const struct wr_backend *const backend = &wr_backend_cuda;

struct rig {
	void *self, *stream, *event;
};

static int begin(void **state)
{
	struct rig *rig = calloc(1, sizeof *rig);
	char where[100];

	assert_int_equal(backend->open(&rig->self, NULL, where, sizeof where), WEIR_OK);
	assert_int_equal(backend->stream_create(rig->self, 0, 0, 0, NULL, &rig->stream), WEIR_OK);
	assert_int_equal(backend->event_create(rig->self, 0, &rig->event), WEIR_OK);
	*state = rig;
	return 0;
}

static int end(void **state)
{
	struct rig *rig = *state;

	backend->event_destroy(rig->self, rig->event);
	backend->stream_destroy(rig->self, rig->stream);
	backend->close(rig->self);
	free(rig);
	cudaSetDevice(0);
	return fake_left_over() ? -1 : 0;
}

static enum cudaStreamCaptureMode exchange_mode(enum cudaStreamCaptureMode mode)
{
	OK(cudaThreadExchangeStreamCaptureMode(&mode));
	return mode;
}

/* Some calls of each file; all of them are on device 0. */
static void make_calls(const struct rig *rig)
{
	void *memory;

	assert_int_equal(backend->alloc(rig->self, 0, 64, &memory), WEIR_OK);
	assert_int_equal(backend->record(rig->self, 0, rig->stream, rig->event), WEIR_OK);
	assert_int_equal(backend->wait(rig->self, 0, rig->stream, rig->event), WEIR_OK);
	while (backend->query(rig->self, rig->event) == WEIR_E_BUSY)
		;
	assert_int_equal(backend->can_write_flag(rig->self, 0), WEIR_OK);
	backend->release(rig->self, 0, memory);
}

static void a_call_leaves_the_threads_device_and_capture_mode(void **state)
{
	const enum cudaStreamCaptureMode modes[] = {cudaStreamCaptureModeGlobal,
						    cudaStreamCaptureModeThreadLocal};
	int device;

	for (int i = 0; i < 2; i++) {
		OK(cudaSetDevice(1));
		exchange_mode(modes[i]);
		make_calls(*state);
		assert_int_equal(exchange_mode(cudaStreamCaptureModeGlobal), modes[i]);
		OK(cudaGetDevice(&device));
		assert_int_equal(device, 1);
	}
}

static void t13_a_capture_leaves_the_threads_capture_mode(void **state)
{
	struct rig *rig = *state;
	void *capture, *graph;

	exchange_mode(cudaStreamCaptureModeGlobal);
	assert_int_equal(backend->capture_begin(rig->self, 0, rig->stream, &capture), WEIR_OK);
	assert_int_equal(backend->capture_end(rig->self, capture, &graph), WEIR_OK);
	assert_null(graph);
	assert_int_equal(exchange_mode(cudaStreamCaptureModeGlobal), cudaStreamCaptureModeGlobal);
}

static void f69_a_call_breaks_no_capture_of_the_program(void **state)
{
	cudaStream_t stream = a_stream(cudaStreamNonBlocking);
	cudaGraph_t graph;

	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	make_calls(*state);
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphDestroy(graph));
	OK(cudaStreamDestroy(stream));
}

static void a_call_is_made_on_the_device_that_it_names(void **state)
{
	struct cudaPointerAttributes attributes;
	struct rig *rig = *state;
	void *memory;

	OK(cudaSetDevice(0));
	assert_int_equal(backend->alloc(rig->self, 1, 64, &memory), WEIR_OK);
	OK(cudaPointerGetAttributes(&attributes, memory));
	assert_int_equal(attributes.device, 1);
	backend->release(rig->self, 1, memory);
}

static void an_error_of_one_call_does_not_stay_with_the_thread(void **state)
{
	struct rig *rig = *state;

	fake_fail("cudaEventRecord", 1, cudaErrorInvalidValue);
	assert_int_equal(backend->record(rig->self, 0, rig->stream, rig->event), WEIR_E_FAILED);
	fake_fail(NULL, 0, 0);
	OK(cudaPeekAtLastError());
}

static int launch_nothing(void *stream, const void *arguments)
{
	(void)stream, (void)arguments;
	return cudaGetLastError(); /* as after <<<>>> */
}

static void a_launch_is_not_told_an_older_error(void **state)
{
	const weir_kernel kernel = {.size = sizeof kernel, .name = "nothing", .cuda = launch_nothing};
	struct rig *rig = *state;

	fake_fail("cudaSetDevice", 1, cudaErrorInvalidValue);
	assert_int_equal(cudaSetDevice(0), cudaErrorInvalidValue);
	fake_fail(NULL, 0, 0);
	assert_int_equal(backend->launch(rig->self, 0, rig->stream, &kernel, NULL, 0), WEIR_OK);
}

static void f71_the_default_stream_is_not_destroyed(void **state)
{
	struct rig *rig = *state;
	void *stream;

	assert_int_equal(backend->stream_default(rig->self, 0, &stream), WEIR_OK);
	backend->stream_destroy(rig->self, stream);
	OK(cudaStreamSynchronize(stream));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_call_leaves_the_threads_device_and_capture_mode, begin,
						end),
		cmocka_unit_test_setup_teardown(t13_a_capture_leaves_the_threads_capture_mode, begin, end),
		cmocka_unit_test_setup_teardown(f69_a_call_breaks_no_capture_of_the_program, begin, end),
		cmocka_unit_test_setup_teardown(a_call_is_made_on_the_device_that_it_names, begin, end),
		cmocka_unit_test_setup_teardown(an_error_of_one_call_does_not_stay_with_the_thread, begin,
						end),
		cmocka_unit_test_setup_teardown(a_launch_is_not_told_an_older_error, begin, end),
		cmocka_unit_test_setup_teardown(f71_the_default_stream_is_not_destroyed, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

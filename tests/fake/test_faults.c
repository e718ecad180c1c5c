/* Calls that fail at their N-th time; last the loss of the device, which is for the process. */
#include "test.h"

static void a_call_fails_at_its_nth_time(void **state)
{
	cudaEvent_t event;

	(void)state;
	fake_fail("cudaEventCreateWithFlags", 2, cudaErrorMemoryAllocation);
	event = an_event();
	OK(cudaEventDestroy(event));
	assert_int_equal(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaErrorMemoryAllocation);
	assert_int_equal(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
	assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
	OK(cudaGetLastError());
	event = an_event();
	fake_fail(NULL, 0, 0);
	OK(cudaEventDestroy(event));
}

static void any_call_fails_at_the_nth(void **state)
{
	cudaEvent_t event = an_event();

	(void)state;
	fake_fail("*", 2, cudaErrorInvalidValue);
	OK(cudaEventQuery(event));
	assert_int_equal(cudaEventQuery(event), cudaErrorInvalidValue);
	fake_fail(NULL, 0, 0);
	OK(cudaEventDestroy(event));
}

static void a_call_that_ends_an_object_ends_it_though_it_fails(void **state)
{
	cudaEvent_t event = an_event();

	(void)state;
	fake_fail("cudaEventDestroy", 1, cudaErrorInvalidValue);
	assert_int_equal(cudaEventDestroy(event), cudaErrorInvalidValue);
	fake_fail(NULL, 0, 0);
	assert_int_equal(fake_left_over(), 0);
}

static void calls_are_counted(void **state)
{
	unsigned before = fake_count("cudaGetDevice");
	int device;

	(void)state;
	OK(cudaGetDevice(&device));
	assert_int_equal(fake_count("cudaGetDevice"), before + 1);
	assert_int_equal(fake_count("cudaNothing"), 0);
}

static int trap(void *const *parameters, const struct fake_place *place)
{
	(void)parameters, (void)place;
	return cudaErrorIllegalAddress;
}

static void CUDART_CB count_call(void *arg)
{
	atomic_fetch_add((atomic_int *)arg, 1);
}

static void after_a_fault_nothing_succeeds_and_nothing_is_called(void **state)
{
	static const struct fake_kernel kernel = {"trap", trap, {0}};
	cudaStream_t stream = a_stream(cudaStreamNonBlocking);
	cudaEvent_t done = an_event();
	atomic_int calls = 0;
	void *memory;

	(void)state;
	OK(cudaEventRecord(done, stream));
	OK(cudaEventSynchronize(done));
	OK(fake_launch(stream, &kernel, NULL));
	(void)cudaLaunchHostFunc(stream, count_call, &calls);
	assert_int_equal(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
	assert_int_equal(cudaEventQuery(done), cudaErrorIllegalAddress);
	assert_int_equal(cudaMalloc(&memory, 16), cudaErrorIllegalAddress);
	assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress);
	OK(cudaGetLastError()); /* it clears itself: it cannot tell of a lost device */
	assert_int_equal(atomic_load(&calls), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_fails_at_its_nth_time),
		cmocka_unit_test(any_call_fails_at_the_nth),
		cmocka_unit_test(a_call_that_ends_an_object_ends_it_though_it_fails),
		cmocka_unit_test(calls_are_counted),
		cmocka_unit_test(after_a_fault_nothing_succeeds_and_nothing_is_called),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * What brackets a CUDA call, and what its error means.
 *
 * Every call that could disturb another thread's stream capture is made in RELAXED capture mode; the mode is
 * restored after it. The current device is changed only if a call depends on it and there are several; it is
 * restored as well. Contexts are made on a thread of the library (device.c).
 *
 * Whether an error is sticky is found by a query: an event that was never recorded returns cudaSuccess on a
 * healthy device and the sticky error on a lost one. cudaGetLastError cannot tell; it is called only to clear
 * the thread's error. After a sticky error no CUDA call is made any more; what the driver holds is freed with
 * the process.
 */
#include "streams/cuda/cuda.h"

#include <assert.h>

#include "base/status.h"

/* --- around a call --- */

/*
 * A worker stays RELAXED after its first call, since it makes many in a tick; but while it captures it is in
 * mode THREAD_LOCAL between weir's calls.
 */
enum thread_mode { MODE_FOREIGN, MODE_RELAXED, MODE_CAPTURES };
static _Thread_local enum thread_mode thread_mode;

static void select_device(struct wr_cuda *cuda, int device, struct wr_cuda_scope *scope)
{
	int current;

	if (device < 0 || cuda->count == 1 || cudaGetDevice(&current) || current == device)
		return;
	scope->before = current;
	cudaSetDevice(device);
}

struct wr_cuda_scope wr_cuda_enter(struct wr_cuda *cuda, int device)
{
	struct wr_cuda_scope scope = {cudaStreamCaptureModeRelaxed, -1, thread_mode != MODE_RELAXED};

	assert(!wr_mutex_held()); /* the driver may block, and a callback may need the lock (F15) */
	if (scope.restore)
		cudaThreadExchangeStreamCaptureMode(&scope.mode);
	if (thread_mode == MODE_FOREIGN && wr_thread_local()) {
		thread_mode = MODE_RELAXED;
		scope.restore = false;
	}
	select_device(cuda, device, &scope);
	return scope;
}

struct wr_cuda_scope wr_cuda_enter_launcher(struct wr_cuda *cuda, int device)
{
	struct wr_cuda_scope scope = {cudaStreamCaptureModeRelaxed, -1, false};

	if (thread_mode != MODE_CAPTURES)
		return wr_cuda_enter(cuda, device);
	select_device(cuda, device, &scope);
	return scope;
}

struct wr_cuda_mode wr_cuda_begin_capture_mode(void)
{
	struct wr_cuda_mode before = {cudaStreamCaptureModeThreadLocal, (int)thread_mode};

	cudaThreadExchangeStreamCaptureMode(&before.native);
	thread_mode = MODE_CAPTURES;
	return before;
}

void wr_cuda_end_capture_mode(struct wr_cuda_mode before)
{
	thread_mode = (enum thread_mode)before.thread;
	cudaThreadExchangeStreamCaptureMode(&before.native);
}

struct wr_cuda_scope wr_cuda_enter_driver(struct wr_cuda *cuda, int device)
{
	struct wr_cuda_scope scope = wr_cuda_enter(cuda, device);

	cudaSetDevice(device);
	return scope;
}

void wr_cuda_leave(struct wr_cuda_scope scope)
{
	if (scope.before >= 0)
		cudaSetDevice(scope.before);
	if (scope.restore)
		cudaThreadExchangeStreamCaptureMode(&scope.mode);
}

/* --- errors --- */

static bool devices_healthy(struct wr_cuda *cuda)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	bool healthy = true;

	cudaThreadExchangeStreamCaptureMode(&mode); /* the query must not fail because of a capture */

	for (int i = 0; i < cuda->count && healthy; i++)
		if (wr_load(&cuda->devices[i].ready)) {
			cudaError_t error = cudaEventQuery(cuda->devices[i].probe);

			healthy = error == cudaSuccess || error == cudaErrorNotReady;
		}
	cudaThreadExchangeStreamCaptureMode(&mode);
	return healthy;
}

weir_status wr_cuda_fail(cudaError_t error, const char *what)
{
	weir_status status = error == cudaErrorMemoryAllocation ? WEIR_E_NOMEM : WEIR_E_FAILED;

	return wr_fail(status, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

/*
 * An error that is not sticky is cleared from the thread, or the next launcher on it would find it there and
 * report it as its own.
 */
weir_status wr_cuda_check(struct wr_cuda *cuda, cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return WEIR_OK;
	if (error == cudaErrorMemoryAllocation || devices_healthy(cuda)) {
		cudaGetLastError();
		return wr_cuda_fail(error, what);
	}
	wr_store(&cuda->lost, true);
	return wr_fail(WEIR_E_DEVICE, "CUDA: %s (%s), found by: %s", cudaGetErrorString(error),
		       cudaGetErrorName(error), what);
}

bool wr_cuda_lost(struct wr_cuda *cuda)
{
	return wr_load(&cuda->lost);
}

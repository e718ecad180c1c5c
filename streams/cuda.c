/*
 * CUDA as a backend: the runtime API, linked statically.
 *
 * Every call that could disturb another thread's stream capture is made in RELAXED capture mode, which is put
 * back after it. The current device is changed only where a call depends on it and there are several, and put
 * back as well. Contexts are made on a thread of ours: it has all POSIX signals blocked, and the driver's
 * threads inherit that.
 *
 * Whether an error is sticky is asked, not looked up: an event of ours that was never recorded answers
 * "complete" on a healthy device and the sticky error on a lost one. cudaGetLastError is no answer: it clears
 * itself; it is called for that alone. After a sticky error no CUDA call is made any more; what the driver
 * holds is left to the end of the process.
 */
#include "streams/cuda.h"

#include <assert.h>

#include "base/status.h"

/* --- around a call --- */

struct wr_cuda_around wr_cuda_enter(struct wr_cuda *cuda, int device)
{
	static _Thread_local bool relaxed; /* a worker is so for good: there are many calls in a tick */
	struct wr_cuda_around around = {cudaStreamCaptureModeRelaxed, -1, !relaxed};
	int current;

	assert(!wr_mutex_held()); /* the driver may block, and a callback may want the lock (F15) */
	if (around.restore)
		cudaThreadExchangeStreamCaptureMode(&around.mode);
	if (!relaxed && wr_thread_local()) {
		relaxed = true;
		around.restore = false;
	}
	if (device < 0 || cuda->count == 1 || cudaGetDevice(&current) || current == device)
		return around;
	around.before = current;
	cudaSetDevice(device);
	return around;
}

struct wr_cuda_around wr_cuda_enter_driver(struct wr_cuda *cuda, int device)
{
	struct wr_cuda_around around = wr_cuda_enter(cuda, device);

	cudaSetDevice(device);
	return around;
}

void wr_cuda_leave(struct wr_cuda_around around)
{
	if (around.before >= 0)
		cudaSetDevice(around.before);
	if (around.restore)
		cudaThreadExchangeStreamCaptureMode(&around.mode);
}

/* --- errors --- */

static bool all_answer(struct wr_cuda *cuda)
{
	bool well = true;

	for (int i = 0; i < cuda->count && well; i++)
		if (wr_load(&cuda->devices[i].ready)) {
			cudaError_t error = cudaEventQuery(cuda->devices[i].probe);

			well = error == cudaSuccess || error == cudaErrorNotReady;
		}
	return well;
}

weir_status wr_cuda_refused(cudaError_t error, const char *what)
{
	weir_status status = error == cudaErrorMemoryAllocation ? WEIR_E_NOMEM : WEIR_E_FAILED;

	return wr_fail(status, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

/*
 * Called between enter and leave. What one call alone has met is forgotten by the thread, or the next
 * launcher on it would find it there and report it as its own.
 */
weir_status wr_cuda_judge(struct wr_cuda *cuda, cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return WEIR_OK;
	if (error == cudaErrorMemoryAllocation || all_answer(cuda)) {
		cudaGetLastError();
		return wr_cuda_refused(error, what);
	}
	wr_store(&cuda->lost, true);
	return wr_fail(WEIR_E_DEVICE, "CUDA: %s (%s), found by: %s", cudaGetErrorString(error),
		       cudaGetErrorName(error), what);
}

bool wr_cuda_lost(struct wr_cuda *cuda)
{
	return wr_load(&cuda->lost);
}

/* --- streams and events --- */

static int cuda_devices(void *self)
{
	return ((struct wr_cuda *)self)->count;
}

/* A priority outside of the device's range is clamped by CUDA itself. */
static weir_status cuda_stream_create(void *self, int device, unsigned flags, int priority, void *partition,
				      void **out)
{
	unsigned native = flags & WEIR_STREAM_BLOCKING ? cudaStreamDefault : cudaStreamNonBlocking;
	struct wr_cuda *cuda = self;
	weir_status status = wr_cuda_ready(cuda, device);
	cudaStream_t stream = NULL;

	if (status)
		return status;
	if (partition)
		return wr_cuda_green_stream(cuda, device, flags, priority, partition, out);
	struct wr_cuda_around around = wr_cuda_enter(cuda, device);
	status = wr_cuda_judge(cuda, cudaStreamCreateWithPriority(&stream, native, priority),
			       "cudaStreamCreateWithPriority");
	wr_cuda_leave(around);
	if (!status)
		*out = stream;
	return status;
}

static weir_status cuda_stream_default(void *self, int device, void **out)
{
	weir_status status = wr_cuda_ready(self, device);

	if (!status)
		*out = cudaStreamLegacy;
	return status;
}

static void cuda_stream_destroy(void *self, void *stream)
{
	if (wr_cuda_lost(self) || stream == cudaStreamLegacy)
		return;
	struct wr_cuda_around around = wr_cuda_enter(self, -1);
	cudaStreamDestroy(stream);
	wr_cuda_leave(around);
}

static weir_status cuda_event_create(void *self, int device, void **out)
{
	struct wr_cuda *cuda = self;
	weir_status status = wr_cuda_ready(cuda, device);
	cudaEvent_t event = NULL;

	if (status)
		return status;
	struct wr_cuda_around around = wr_cuda_enter(cuda, device);
	status = wr_cuda_judge(cuda, cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
		       "cudaEventCreateWithFlags");
	wr_cuda_leave(around);
	if (!status)
		*out = event;
	return status;
}

static void cuda_event_destroy(void *self, void *event)
{
	if (wr_cuda_lost(self))
		return;
	struct wr_cuda_around around = wr_cuda_enter(self, -1);
	cudaEventDestroy(event);
	wr_cuda_leave(around);
}

static weir_status cuda_record(void *self, int device, void *stream, void *event)
{
	struct wr_cuda_around around = wr_cuda_enter(self, device);
	weir_status status = wr_cuda_judge(self, cudaEventRecord(event, stream), "cudaEventRecord");

	wr_cuda_leave(around);
	return status;
}

/* Whatever it is but OK and NotReady, the event of a healthy stream does not answer it. */
static weir_status cuda_query(void *self, void *event)
{
	struct wr_cuda_around around = wr_cuda_enter(self, -1);
	cudaError_t error = cudaEventQuery(event);
	weir_status status =
		error == cudaErrorNotReady ? WEIR_E_BUSY : wr_cuda_judge(self, error, "cudaEventQuery");

	wr_cuda_leave(around);
	return status;
}

static weir_status cuda_wait(void *self, int device, void *stream, void *event)
{
	struct wr_cuda_around around = wr_cuda_enter(self, device);
	weir_status status =
		wr_cuda_judge(self, cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");

	wr_cuda_leave(around);
	return status;
}

/* --- work --- */

static weir_status cuda_launch(void *self, int device, void *stream, const weir_kernel *kernel,
			       const void *arguments, size_t bytes)
{
	weir_status status;

	(void)bytes;
	if (!kernel->cuda)
		return wr_fail(WEIR_E_UNSUPPORTED, "kernel '%s' has no form for CUDA", kernel->name);
	struct wr_cuda_around around = wr_cuda_enter(self, device);
	cudaGetLastError(); /* launchers return what they find there: nothing older than they are */
	status = wr_cuda_judge(self, (cudaError_t)kernel->cuda(stream, arguments), kernel->name);
	wr_cuda_leave(around);
	return status;
}

static weir_status cuda_copy(void *self, int device, void *stream, void *to, const void *from, size_t bytes)
{
	struct wr_cuda_around around = wr_cuda_enter(self, device);
	weir_status status = wr_cuda_judge(self, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream),
					   "cudaMemcpyAsync");

	wr_cuda_leave(around);
	return status;
}

static weir_status cuda_call(void *self, int device, void *stream, void (*fn)(void *arg), void *arg)
{
	struct wr_cuda_around around = wr_cuda_enter(self, device);
	weir_status status = wr_cuda_judge(self, cudaLaunchHostFunc(stream, fn, arg), "cudaLaunchHostFunc");

	wr_cuda_leave(around);
	return status;
}

/*
 * The legacy default stream cannot be asked while another one is captured: then it is no place for a signal
 * either.
 */
static bool cuda_capturing(void *self, int device, void *stream)
{
	enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
	struct wr_cuda_around around = wr_cuda_enter(self, device);
	cudaError_t error = cudaStreamIsCapturing(stream, &capture);

	wr_cuda_leave(around);
	if (error == cudaErrorStreamCaptureImplicit)
		cudaGetLastError();
	return error == cudaErrorStreamCaptureImplicit || capture != cudaStreamCaptureStatusNone;
}

/* --- memory --- */

static weir_status cuda_alloc(void *self, int device, size_t bytes, void **out)
{
	struct wr_cuda *cuda = self;
	weir_status status = wr_cuda_ready(cuda, device);
	void *memory = NULL;

	if (status)
		return status;
	struct wr_cuda_around around = wr_cuda_enter(cuda, device);
	if (device == WEIR_HOST)
		status = wr_cuda_judge(cuda, cudaHostAlloc(&memory, bytes, cudaHostAllocPortable),
				       "cudaHostAlloc");
	else
		status = wr_cuda_judge(cuda, cudaMalloc(&memory, bytes), "cudaMalloc");
	wr_cuda_leave(around);
	if (!status)
		*out = memory;
	return status;
}

static void cuda_release(void *self, int device, void *memory)
{
	if (wr_cuda_lost(self))
		return;
	struct wr_cuda_around around = wr_cuda_enter(self, device);
	if (device == WEIR_HOST)
		cudaFreeHost(memory);
	else
		cudaFree(memory);
	wr_cuda_leave(around);
}

static void cuda_select(void *self, int device)
{
	if (wr_cuda_lost(self) || wr_cuda_ready(self, device))
		return;
	cudaSetDevice(device);
}

/* A sticky error ends all work of its context. */
static bool cuda_quiet(void *self)
{
	return wr_cuda_lost(self);
}

const struct wr_backend wr_backend_cuda = {
	.name = "cuda",
	.native_streams = true,
	.per_thread = cudaStreamPerThread,
	.open = wr_cuda_open,
	.close = wr_cuda_close,
	.devices = cuda_devices,
	.stream_create = cuda_stream_create,
	.stream_destroy = cuda_stream_destroy,
	.stream_default = cuda_stream_default,
	.event_create = cuda_event_create,
	.event_destroy = cuda_event_destroy,
	.record = cuda_record,
	.query = cuda_query,
	.wait = cuda_wait,
	.launch = cuda_launch,
	.copy = cuda_copy,
	.call = cuda_call,
	.capturing = cuda_capturing,
	.write_flag = wr_cuda_write_flag,
	.can_write_flag = wr_cuda_can_write_flag,
	.spins = true,
	.partitions_create = wr_cuda_partitions_create,
	.partition_destroy = wr_cuda_partition_destroy,
	.select = cuda_select,
	.alloc = cuda_alloc,
	.release = cuda_release,
	.quiet = cuda_quiet,
};

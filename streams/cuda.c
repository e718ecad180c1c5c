/*
 * CUDA as a backend: the runtime API, linked statically; the only file that sees it.
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
#include "streams/backend.h"

#include <assert.h>
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"

struct device {
	_Atomic bool ready;
	cudaEvent_t probe; /* never recorded */
};

struct cuda {
	int count;
	_Atomic bool lost;
	struct wr_mutex lock; /* making contexts, one at a time: held by callers of nobody else's locks */
	struct device devices[];
};

/* --- around a call --- */

struct around {
	enum cudaStreamCaptureMode mode;
	int before; /* device; -1: not changed */
};

/* device < 0: the call does not depend on the current one. */
static struct around enter(struct cuda *cuda, int device)
{
	struct around around = {cudaStreamCaptureModeRelaxed, -1};
	int current;

	assert(!wr_mutex_held()); /* the driver may block, and a callback may want the lock (F15) */
	cudaThreadExchangeStreamCaptureMode(&around.mode);
	if (device < 0 || cuda->count == 1 || cudaGetDevice(&current) || current == device)
		return around;
	around.before = current;
	cudaSetDevice(device);
	return around;
}

static void leave(struct around around)
{
	if (around.before >= 0)
		cudaSetDevice(around.before);
	cudaThreadExchangeStreamCaptureMode(&around.mode);
}

/* --- errors --- */

static bool all_answer(struct cuda *cuda)
{
	bool well = true;

	for (int i = 0; i < cuda->count && well; i++)
		if (wr_load(&cuda->devices[i].ready)) {
			cudaError_t error = cudaEventQuery(cuda->devices[i].probe);

			well = error == cudaSuccess || error == cudaErrorNotReady;
		}
	return well;
}

static weir_status of_one_call(cudaError_t error, const char *what)
{
	weir_status status = error == cudaErrorMemoryAllocation ? WEIR_E_NOMEM : WEIR_E_FAILED;

	return wr_fail(status, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

/*
 * Called between enter and leave. What one call alone has met is forgotten by the thread, or the next launcher on
 * it would find it there and report it as its own.
 */
static weir_status judge(struct cuda *cuda, cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return WEIR_OK;
	if (error == cudaErrorMemoryAllocation || all_answer(cuda)) {
		cudaGetLastError();
		return of_one_call(error, what);
	}
	wr_store(&cuda->lost, true);
	return wr_fail(WEIR_E_DEVICE, "CUDA: %s (%s), found by: %s", cudaGetErrorString(error),
		       cudaGetErrorName(error), what);
}

static bool lost(struct cuda *cuda)
{
	return wr_load(&cuda->lost);
}

/* --- contexts --- */

struct initialization {
	struct cuda *cuda;
	int device;
	cudaError_t error;
};

static void CUDART_CB nothing(void *arg)
{
	(void)arg;
}

/* One host function, so that the driver's callback thread exists and inherits this thread's signal mask. */
static cudaError_t first_call(void)
{
	cudaStream_t stream;
	cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

	if (error)
		return error;
	error = cudaLaunchHostFunc(stream, nothing, NULL);
	if (!error)
		error = cudaStreamSynchronize(stream);
	cudaStreamDestroy(stream);
	return error;
}

/* On a thread of its own. */
static void initialize(void *arg)
{
	struct initialization *self = arg;
	struct device *device = &self->cuda->devices[self->device];

	self->error = cudaSetDevice(self->device);
	if (!self->error)
		self->error = cudaFree(NULL);
	if (!self->error)
		self->error = first_call();
	if (!self->error)
		self->error = cudaEventCreateWithFlags(&device->probe, cudaEventDisableTiming);
}

static weir_status initialize_locked(struct cuda *cuda, int number)
{
	struct initialization initialization = {cuda, number, cudaSuccess};
	struct wr_thread thread;
	weir_status status;

	if (wr_load(&cuda->devices[number].ready))
		return WEIR_OK;
	status = wr_thread_start(&thread, "weir-cuda", initialize, &initialization);
	if (status)
		return status;
	wr_thread_join(&thread);
	if (initialization.error)
		return wr_fail(number ? WEIR_E_FAILED : WEIR_E_DEVICE, /* of several, the others go on */
			       "cuda: device %d cannot be used: %s; backend 'host' needs none", number,
			       cudaGetErrorString(initialization.error));
	wr_store(&cuda->devices[number].ready, true);
	return WEIR_OK;
}

/* A context costs time and memory: a device gets one when it is first used. */
static weir_status make_ready(struct cuda *cuda, int device)
{
	weir_status status;

	if (device < 0 || wr_load(&cuda->devices[device].ready))
		return WEIR_OK;
	wr_mutex_lock(&cuda->lock);
	status = initialize_locked(cuda, device);
	wr_mutex_unlock(&cuda->lock);
	return status;
}

/* --- open, close --- */

struct inquiry {
	int count;
	cudaError_t error;
};

/* On a thread of ours, too: already asking for the number of devices initialises the driver. */
static void inquire(void *arg)
{
	struct inquiry *inquiry = arg;

	inquiry->error = cudaGetDeviceCount(&inquiry->count);
}

/* As opposed to a device that is there and does not work. */
static bool none_here(const struct inquiry *inquiry)
{
	if (!inquiry->error)
		return !inquiry->count;
	return inquiry->error == cudaErrorNoDevice || inquiry->error == cudaErrorInsufficientDriver ||
	       inquiry->error == cudaErrorStubLibrary;
}

static weir_status count_devices(int *count)
{
	struct inquiry inquiry = {0, cudaSuccess};
	struct wr_thread thread;
	weir_status status = wr_thread_start(&thread, "weir-cuda", inquire, &inquiry);

	if (status)
		return status;
	wr_thread_join(&thread);
	if (none_here(&inquiry))
		return wr_fail(WEIR_E_UNSUPPORTED, "cuda: no device: %s",
			       cudaGetErrorString(inquiry.error ? inquiry.error : cudaErrorNoDevice));
	if (inquiry.error)
		return wr_fail(WEIR_E_DEVICE, "cuda: the devices cannot be used: %s (%s); backend 'host' needs none",
			       cudaGetErrorString(inquiry.error), cudaGetErrorName(inquiry.error));
	*count = inquiry.count;
	return WEIR_OK;
}

static void cuda_close(void *self)
{
	struct cuda *cuda = self;

	for (int i = 0; i < cuda->count; i++)
		if (wr_load(&cuda->devices[i].ready) && !lost(cuda))
			cudaEventDestroy(cuda->devices[i].probe);
	wr_mutex_finish(&cuda->lock);
	wr_free(cuda);
}

static weir_status describe(char *where, size_t room)
{
	struct cudaDeviceProp properties;
	cudaError_t error = cudaGetDeviceProperties(&properties, 0);

	if (error)
		return of_one_call(error, "cudaGetDeviceProperties");
	snprintf(where, room, "cuda: %s", properties.name);
	return WEIR_OK;
}

static weir_status cuda_open(void **out, const struct wr_system_options *options, char *where, size_t room)
{
	int count = 0;
	weir_status status = count_devices(&count);
	struct cuda *cuda;

	(void)options;
	if (status)
		return status;
	cuda = wr_alloc(1, sizeof *cuda + (size_t)count * sizeof *cuda->devices);
	if (!cuda)
		return WEIR_E_NOMEM;
	cuda->count = count;
	status = wr_mutex_init(&cuda->lock);
	if (status) {
		wr_free(cuda);
		return status;
	}
	status = make_ready(cuda, 0);
	if (!status)
		status = describe(where, room);
	if (status)
		cuda_close(cuda);
	else
		*out = cuda;
	return status;
}

static int cuda_devices(void *self)
{
	return ((struct cuda *)self)->count;
}

/* --- streams and events --- */

static weir_status cuda_stream_create(void *self, int device, unsigned flags, int priority, void *partition, void **out)
{
	unsigned native = flags & WEIR_STREAM_BLOCKING ? cudaStreamDefault : cudaStreamNonBlocking;
	struct cuda *cuda = self;
	weir_status status = make_ready(cuda, device);
	cudaStream_t stream = NULL;

	(void)partition;
	if (status)
		return status;
	struct around around = enter(cuda, device);
	status = judge(cuda, cudaStreamCreateWithPriority(&stream, native, priority),
		       "cudaStreamCreateWithPriority");
	leave(around);
	if (!status)
		*out = stream;
	return status;
}

static void cuda_stream_destroy(void *self, void *stream)
{
	if (lost(self))
		return;
	struct around around = enter(self, -1);
	cudaStreamDestroy(stream);
	leave(around);
}

static weir_status cuda_event_create(void *self, int device, void **out)
{
	struct cuda *cuda = self;
	weir_status status = make_ready(cuda, device);
	cudaEvent_t event = NULL;

	if (status)
		return status;
	struct around around = enter(cuda, device);
	status = judge(cuda, cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
		       "cudaEventCreateWithFlags");
	leave(around);
	if (!status)
		*out = event;
	return status;
}

static void cuda_event_destroy(void *self, void *event)
{
	if (lost(self))
		return;
	struct around around = enter(self, -1);
	cudaEventDestroy(event);
	leave(around);
}

static weir_status cuda_record(void *self, int device, void *stream, void *event)
{
	struct around around = enter(self, device);
	weir_status status = judge(self, cudaEventRecord(event, stream), "cudaEventRecord");

	leave(around);
	return status;
}

/* Whatever it is but OK and NotReady, the event of a healthy stream does not answer it. */
static weir_status cuda_query(void *self, void *event)
{
	struct around around = enter(self, -1);
	cudaError_t error = cudaEventQuery(event);
	weir_status status = error == cudaErrorNotReady ? WEIR_E_BUSY : judge(self, error, "cudaEventQuery");

	leave(around);
	return status;
}

static weir_status cuda_wait(void *self, int device, void *stream, void *event)
{
	struct around around = enter(self, device);
	weir_status status = judge(self, cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");

	leave(around);
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
	struct around around = enter(self, device);
	cudaGetLastError(); /* launchers return what they find there: nothing older than they are */
	status = judge(self, (cudaError_t)kernel->cuda(stream, arguments), kernel->name);
	leave(around);
	return status;
}

static weir_status cuda_copy(void *self, int device, void *stream, void *to, const void *from, size_t bytes)
{
	struct around around = enter(self, device);
	weir_status status =
		judge(self, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");

	leave(around);
	return status;
}

static weir_status cuda_call(void *self, int device, void *stream, void (*fn)(void *arg), void *arg)
{
	struct around around = enter(self, device);
	weir_status status = judge(self, cudaLaunchHostFunc(stream, fn, arg), "cudaLaunchHostFunc");

	leave(around);
	return status;
}

/*
 * The legacy default stream cannot be asked while another one is captured: then it is no place for a signal
 * either.
 */
static bool cuda_capturing(void *self, int device, void *stream)
{
	enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
	struct around around = enter(self, device);
	cudaError_t error = cudaStreamIsCapturing(stream, &capture);

	leave(around);
	if (error == cudaErrorStreamCaptureImplicit)
		cudaGetLastError();
	return error == cudaErrorStreamCaptureImplicit || capture != cudaStreamCaptureStatusNone;
}

/* --- memory --- */

static weir_status cuda_alloc(void *self, int device, size_t bytes, void **out)
{
	struct cuda *cuda = self;
	weir_status status = make_ready(cuda, device);
	void *memory = NULL;

	if (status)
		return status;
	struct around around = enter(cuda, device);
	if (device == WEIR_HOST)
		status = judge(cuda, cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "cudaHostAlloc");
	else
		status = judge(cuda, cudaMalloc(&memory, bytes), "cudaMalloc");
	leave(around);
	if (!status)
		*out = memory;
	return status;
}

static void cuda_release(void *self, int device, void *memory)
{
	if (lost(self))
		return;
	struct around around = enter(self, device);
	if (device == WEIR_HOST)
		cudaFreeHost(memory);
	else
		cudaFree(memory);
	leave(around);
}

/* A sticky error ends all work of its context. */
static bool cuda_quiet(void *self)
{
	return lost(self);
}

const struct wr_backend wr_backend_cuda = {
	.name = "cuda",
	.native_streams = true,
	.open = cuda_open,
	.close = cuda_close,
	.devices = cuda_devices,
	.stream_create = cuda_stream_create,
	.stream_destroy = cuda_stream_destroy,
	.event_create = cuda_event_create,
	.event_destroy = cuda_event_destroy,
	.record = cuda_record,
	.query = cuda_query,
	.wait = cuda_wait,
	.launch = cuda_launch,
	.copy = cuda_copy,
	.call = cuda_call,
	.capturing = cuda_capturing,
	.alloc = cuda_alloc,
	.release = cuda_release,
	.quiet = cuda_quiet,
};

/* CUDA as a backend: the runtime API, linked statically. call.c has the rules for each call. */
#include "streams/cuda/cuda.h"

#include "base/status.h"
#include "base/struct.h"

/* --- streams and events --- */

static int cuda_devices(void *self)
{
	return ((struct wr_cuda *)self)->count;
}

/* CUDA clamps a priority outside the device's range. */
static weir_status cuda_stream_create(void *self, int device, unsigned flags, int priority, void *partition,
				      void **out)
{
	unsigned native = flags & WR_STREAM_BLOCKING ? cudaStreamDefault : cudaStreamNonBlocking;
	struct wr_cuda *cuda = self;
	weir_status status = wr_cuda_ready(cuda, device);
	cudaStream_t stream = NULL;

	if (status)
		return status;
	if (partition)
		return wr_cuda_green_stream(cuda, device, flags, priority, partition, out);
	struct wr_cuda_scope scope = wr_cuda_enter(cuda, device);
	status = wr_cuda_check(cuda, cudaStreamCreateWithPriority(&stream, native, priority),
			       "cudaStreamCreateWithPriority");
	wr_cuda_leave(scope);
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
	struct wr_cuda_scope scope = wr_cuda_enter(self, -1);
	cudaStreamDestroy(stream);
	wr_cuda_leave(scope);
}

/* Of a device that faulted nothing can be used again. */
static void cuda_stream_keep(void *self, int device, unsigned flags, int priority, void *stream)
{
	if (wr_cuda_lost(self) || !wr_cuda_keep_stream(device, flags, priority, stream))
		cuda_stream_destroy(self, stream);
}

static void *cuda_stream_again(void *self, int device, unsigned flags, int priority)
{
	return wr_cuda_ready(self, device) ? NULL : wr_cuda_kept_stream(device, flags, priority);
}

static weir_status cuda_event_create(void *self, int device, void **out)
{
	struct wr_cuda *cuda = self;
	weir_status status = wr_cuda_ready(cuda, device);
	cudaEvent_t event = NULL;

	if (status)
		return status;
	struct wr_cuda_scope scope = wr_cuda_enter(cuda, device);
	status = wr_cuda_check(cuda, cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
			       "cudaEventCreateWithFlags");
	wr_cuda_leave(scope);
	if (!status)
		*out = event;
	return status;
}

static void cuda_event_destroy(void *self, void *event)
{
	if (wr_cuda_lost(self))
		return;
	struct wr_cuda_scope scope = wr_cuda_enter(self, -1);
	cudaEventDestroy(event);
	wr_cuda_leave(scope);
}

static weir_status cuda_record(void *self, int device, void *stream, void *event)
{
	struct wr_cuda_scope scope = wr_cuda_enter(self, device);
	weir_status status = wr_cuda_check(self, cudaEventRecord(event, stream), "cudaEventRecord");

	wr_cuda_leave(scope);
	return status;
}

/* The event of a healthy stream returns only cudaSuccess or cudaErrorNotReady. */
static weir_status cuda_query(void *self, void *event)
{
	struct wr_cuda_scope scope = wr_cuda_enter(self, -1);
	cudaError_t error = cudaEventQuery(event);
	weir_status status =
		error == cudaErrorNotReady ? WEIR_E_BUSY : wr_cuda_check(self, error, "cudaEventQuery");

	wr_cuda_leave(scope);
	return status;
}

static weir_status cuda_wait(void *self, int device, void *stream, void *event)
{
	struct wr_cuda_scope scope = wr_cuda_enter(self, device);
	weir_status status =
		wr_cuda_check(self, cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");

	wr_cuda_leave(scope);
	return status;
}

/* --- work --- */

static weir_status cuda_launch(void *self, int device, void *stream, const weir_kernel *kernel,
			       const void *arguments, size_t bytes)
{
	weir_status status;

	(void)bytes;
	if (!kernel->cuda)
		return wr_fail(WEIR_E_UNSUPPORTED, "kernel '%s' has no form for CUDA: set weir_kernel.cuda",
			       kernel->name);
	struct wr_cuda_scope scope = wr_cuda_enter_launcher(self, device);
	cudaGetLastError(); /* a launcher returns the thread's last error: clear older ones */
	status = wr_cuda_check(self, (cudaError_t)kernel->cuda(stream, arguments), kernel->name);
	wr_cuda_leave(scope);
	return status;
}

static weir_status cuda_copy(void *self, int device, void *stream, void *to, const void *from, size_t bytes)
{
	struct wr_cuda_scope scope = wr_cuda_enter(self, device);
	weir_status status = wr_cuda_check(self, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream),
					   "cudaMemcpyAsync");

	wr_cuda_leave(scope);
	return status;
}

static weir_status cuda_copy_rows(void *self, int device, void *stream, const weir_copy *copy)
{
	struct wr_cuda_scope scope = wr_cuda_enter(self, device);
	cudaError_t error = cudaMemcpy2DAsync(copy->to, copy->to_stride, copy->from, copy->from_stride,
					      copy->row_bytes, copy->rows, cudaMemcpyDefault, stream);
	weir_status status = wr_cuda_check(self, error, "cudaMemcpy2DAsync");

	wr_cuda_leave(scope);
	return status;
}

static weir_status cuda_pageable(void *self, const void *memory, bool *out)
{
	struct cudaPointerAttributes attributes = {.type = cudaMemoryTypeUnregistered};
	struct wr_cuda_scope scope = wr_cuda_enter(self, -1);
	weir_status status = wr_cuda_check(self, cudaPointerGetAttributes(&attributes, memory),
					   "cudaPointerGetAttributes");

	wr_cuda_leave(scope);
	if (!status)
		*out = attributes.type == cudaMemoryTypeUnregistered;
	return status;
}

/* What is asked of an address that the driver does not know stays 0. */
static bool cuda_allocation(void *self, const void *memory, weir_allocation *out)
{
	struct wr_cuda *cuda = self;
	weir_allocation found = {.size = sizeof found};
	unsigned alone = 0; /* it is of cudaMalloc: a process may open it by itself */
	CUpointer_attribute attributes[] = {
		CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
		CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
	void *values[] = {&found.id, &found.data, &found.bytes, &alone};
	struct wr_cuda_scope scope;
	CUresult error;

	if (!cuda->driver.attributes)
		return false;
	scope = wr_cuda_enter(cuda, -1);
	error = cuda->driver.attributes(sizeof values / sizeof *values, attributes, values,
					(CUdeviceptr)(uintptr_t)memory);
	wr_cuda_leave(scope);
	if (error || !alone || !found.id)
		return false;
	return !wr_struct_fill(out, &found, sizeof found, "weir_allocation");
}

static weir_status cuda_call(void *self, int device, void *stream, void (*fn)(void *arg), void *arg)
{
	struct wr_cuda_scope scope = wr_cuda_enter(self, device);
	weir_status status = wr_cuda_check(self, cudaLaunchHostFunc(stream, fn, arg), "cudaLaunchHostFunc");

	wr_cuda_leave(scope);
	return status;
}

/*
 * While another stream is captured the legacy default stream cannot be queried (StreamCaptureImplicit); no
 * signal may be enqueued on it either, so it counts as captured.
 */
static bool cuda_capturing(void *self, int device, void *stream)
{
	enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
	struct wr_cuda_scope scope = wr_cuda_enter(self, device);
	cudaError_t error = cudaStreamIsCapturing(stream, &capture);

	wr_cuda_leave(scope);
	if (error == cudaErrorStreamCaptureImplicit)
		cudaGetLastError();
	return error == cudaErrorStreamCaptureImplicit || capture != cudaStreamCaptureStatusNone;
}

/* An implicitly captured default stream is in no capture of its own. */
static void cuda_end_capture(void *self, int device, void *stream)
{
	enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
	struct wr_cuda_scope scope = wr_cuda_enter(self, device);
	cudaGraph_t graph = NULL;

	if (!cudaStreamIsCapturing(stream, &capture) && capture != cudaStreamCaptureStatusNone)
		cudaStreamEndCapture(stream, &graph);
	if (graph)
		cudaGraphDestroy(graph);
	cudaGetLastError();
	wr_cuda_leave(scope);
}

/* --- memory --- */

static weir_status cuda_alloc(void *self, int device, size_t bytes, void **out)
{
	struct wr_cuda *cuda = self;
	weir_status status = wr_cuda_ready(cuda, device);
	void *memory = NULL;

	if (status)
		return status;
	struct wr_cuda_scope scope = wr_cuda_enter(cuda, device);
	if (device == WEIR_DEVICE_HOST)
		status = wr_cuda_check(cuda, cudaHostAlloc(&memory, bytes, cudaHostAllocPortable),
				       "cudaHostAlloc");
	else
		status = wr_cuda_check(cuda, cudaMalloc(&memory, bytes), "cudaMalloc");
	wr_cuda_leave(scope);
	if (!status)
		*out = memory;
	return status;
}

static void cuda_release(void *self, int device, void *memory)
{
	if (wr_cuda_lost(self))
		return;
	struct wr_cuda_scope scope = wr_cuda_enter(self, device);
	if (device == WEIR_DEVICE_HOST)
		cudaFreeHost(memory);
	else
		cudaFree(memory);
	wr_cuda_leave(scope);
}

static void cuda_select(void *self, int device)
{
	if (wr_cuda_lost(self) || wr_cuda_ready(self, device))
		return;
	cudaSetDevice(device);
}

/* A sticky error has ended all work of its context. */
static bool cuda_stopped(void *self)
{
	return wr_cuda_lost(self);
}

const struct wr_backend wr_backend_cuda = {
	.name = "cuda",
	.kind = WEIR_BACKEND_CUDA,
	.native_streams = true,
	.per_thread = cudaStreamPerThread,
	.open = wr_cuda_open,
	.close = wr_cuda_close,
	.devices = cuda_devices,
	.stream_create = cuda_stream_create,
	.stream_destroy = cuda_stream_destroy,
	.stream_keep = cuda_stream_keep,
	.stream_again = cuda_stream_again,
	.stream_default = cuda_stream_default,
	.event_create = cuda_event_create,
	.event_destroy = cuda_event_destroy,
	.record = cuda_record,
	.query = cuda_query,
	.wait = cuda_wait,
	.launch = cuda_launch,
	.copy = cuda_copy,
	.copy_rows = cuda_copy_rows,
	.pageable = cuda_pageable,
	.allocation = cuda_allocation,
	.call = cuda_call,
	.capturing = cuda_capturing,
	.end_capture = cuda_end_capture,
	.timer_create = wr_cuda_timer_create,
	.timer_destroy = cuda_event_destroy,
	.timer_record = cuda_record,
	.timer_read = wr_cuda_timer_read,
	.capture_begin = wr_cuda_capture_begin,
	.capture_order = wr_cuda_capture_order,
	.capture_end = wr_cuda_capture_end,
	.graph_items = wr_cuda_graph_items,
	.graph_launch = wr_cuda_graph_launch,
	.graph_destroy = wr_cuda_graph_destroy,
	.graph_differs = wr_cuda_graph_differs,
	.write_flag = wr_cuda_write_flag,
	.can_write_flag = wr_cuda_can_write_flag,
	.spins = true,
	.partitions_create = wr_cuda_partitions_create,
	.partition_destroy = wr_cuda_partition_destroy,
	.select = cuda_select,
	.alloc = cuda_alloc,
	.release = cuda_release,
	.stopped = cuda_stopped,
};

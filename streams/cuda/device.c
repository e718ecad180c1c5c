/*
 * The devices of the CUDA backend: their number, and their contexts. A context is made when its device is
 * first used, on a thread of the library: that has all POSIX signals blocked, and the driver's threads
 * inherit its signal mask.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "streams/cuda/cuda.h"

/* --- contexts --- */

struct initialization {
	struct wr_cuda *cuda;
	int device;
	cudaError_t error;
};

static void CUDART_CB do_nothing(void *arg)
{
	(void)arg;
}

/* Runs one host function, so that the driver starts its callback thread with this thread's signal mask. */
static cudaError_t callback_thread_start(void)
{
	cudaStream_t stream;
	cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

	if (error)
		return error;
	error = cudaLaunchHostFunc(stream, do_nothing, NULL);
	if (!error)
		error = cudaStreamSynchronize(stream);
	cudaStreamDestroy(stream);
	return error;
}

/*
 * Lets `device` access the memory of `other`. Failure is no error:
 * copies between them then go through the host.
 */
static void peer_enable(int device, int other)
{
	int can = 0;

	if (!cudaDeviceCanAccessPeer(&can, device, other) && can && !cudaSetDevice(device))
		cudaDeviceEnablePeerAccess(other, 0);
	cudaGetLastError();
}

static void peers_enable(struct wr_cuda *cuda, int device)
{
	for (int other = 0; other < cuda->count; other++)
		if (wr_load(&cuda->devices[other].ready)) {
			peer_enable(other, device);
			peer_enable(device, other);
		}
}

/* Runs on its own thread, in relaxed mode: another thread may be capturing. */
static void context_make(void *arg)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	struct initialization *self = arg;
	struct wr_cuda_device *device = &self->cuda->devices[self->device];

	cudaThreadExchangeStreamCaptureMode(&mode);
	self->error = cudaSetDevice(self->device);
	if (!self->error)
		self->error = cudaFree(NULL);
	if (!self->error)
		self->error = callback_thread_start();
	if (!self->error)
		self->error = cudaEventCreateWithFlags(&device->probe, cudaEventDisableTiming);
	if (!self->error)
		peers_enable(self->cuda, self->device);
}

static weir_status context_make_locked(struct wr_cuda *cuda, int number)
{
	struct initialization initialization = {cuda, number, cudaSuccess};
	struct wr_thread thread;
	weir_status status;

	if (wr_load(&cuda->devices[number].ready))
		return WEIR_OK;
	status = wr_thread_start(&thread, "weir-cuda", context_make, &initialization);
	if (status)
		return status;
	wr_thread_join(&thread);
	if (initialization.error)
		return wr_fail(number ? WEIR_E_FAILED : WEIR_E_DEVICE, /* the other devices can go on */
			       "cuda: device %d cannot be used: %s; use backend 'host'", number,
			       cudaGetErrorString(initialization.error));
	wr_store(&cuda->devices[number].ready, true);
	return WEIR_OK;
}

weir_status wr_cuda_ready(struct wr_cuda *cuda, int device)
{
	weir_status status;

	if (device < 0 || wr_load(&cuda->devices[device].ready))
		return WEIR_OK;
	wr_mutex_lock(&cuda->lock);
	status = context_make_locked(cuda, device);
	wr_mutex_unlock(&cuda->lock);
	return status;
}

/* --- open, close --- */

struct query {
	int count;
	cudaError_t error;
};

/* Runs on a thread of the library, too: cudaGetDeviceCount initialises the driver. */
static void device_count_run(void *arg)
{
	struct query *query = arg;

	query->error = cudaGetDeviceCount(&query->count);
}

/* Returns false if there is a device that does not work. */
static bool no_device_here(const struct query *query)
{
	if (!query->error)
		return !query->count;
	return query->error == cudaErrorNoDevice || query->error == cudaErrorInsufficientDriver ||
	       query->error == cudaErrorStubLibrary;
}

static weir_status device_count(int *count)
{
	struct query query = {0, cudaSuccess};
	struct wr_thread thread;
	weir_status status = wr_thread_start(&thread, "weir-cuda", device_count_run, &query);

	if (status)
		return status;
	wr_thread_join(&thread);
	if (no_device_here(&query))
		return wr_fail(WEIR_E_UNSUPPORTED, "cuda: no device: %s",
			       cudaGetErrorString(query.error ? query.error : cudaErrorNoDevice));
	if (query.error)
		return wr_fail(WEIR_E_DEVICE, "cuda: the devices cannot be used: %s (%s); use backend 'host'",
			       cudaGetErrorString(query.error), cudaGetErrorName(query.error));
	*count = query.count;
	return WEIR_OK;
}

void wr_cuda_close(void *self)
{
	struct wr_cuda *cuda = self;

	for (int i = 0; i < cuda->count; i++)
		if (wr_load(&cuda->devices[i].ready) && !wr_cuda_lost(cuda)) {
			wr_cuda_clock_finish(&cuda->devices[i].clock);
			cudaEventDestroy(cuda->devices[i].probe);
		}
	wr_mutex_finish(&cuda->lock);
	wr_free(cuda);
}

/* Appends "NVIDIA H200" or "2 x NVIDIA H200", truncated to the room left. */
static void append_name(char *where, size_t room, int alike, const char *name, bool first)
{
	size_t used = strlen(where);

	if (alike > 1)
		snprintf(where + used, room - used, "%s%d x %s", first ? "" : ", ", alike, name);
	else
		snprintf(where + used, room - used, "%s%s", first ? "" : ", ", name);
}

static weir_status describe_devices(int count, char *where, size_t room)
{
	struct cudaDeviceProp properties, last;
	int alike = 0, names = 0;

	snprintf(where, room, "cuda: ");
	for (int i = 0; i < count; i++) {
		cudaError_t error = cudaGetDeviceProperties(&properties, i);

		if (error)
			return wr_cuda_fail(error, "cudaGetDeviceProperties");
		if (alike && strcmp(properties.name, last.name)) {
			append_name(where, room, alike, last.name, !names++);
			alike = 0;
		}
		last = properties;
		alike++;
	}
	append_name(where, room, alike, last.name, !names);
	return WEIR_OK;
}

weir_status wr_cuda_open(void **out, const struct wr_system_options *options, char *where, size_t room)
{
	int count = 0;
	weir_status status = device_count(&count);
	struct wr_cuda *cuda;

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
	status = wr_cuda_ready(cuda, 0);
	if (!status)
		status = describe_devices(count, where, room);
	if (!status)
		wr_cuda_driver_find(&cuda->driver);
	if (status)
		wr_cuda_close(cuda);
	else
		*out = cuda;
	return status;
}

/*
 * The devices of the CUDA backend: how many there are, and their contexts, which are made when a device is
 * first used, on a thread of ours: it has all POSIX signals blocked, and the driver's threads inherit that.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "streams/cuda.h"

/* --- contexts --- */

struct initialization {
	struct wr_cuda *cuda;
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

/*
 * Without it copies from one to the other go through the
 * host, and that is all: nothing of this is an error.
 */
static void let_reach(int device, int other)
{
	int can = 0;

	if (!cudaDeviceCanAccessPeer(&can, device, other) && can && !cudaSetDevice(device))
		cudaDeviceEnablePeerAccess(other, 0);
	cudaGetLastError();
}

static void join_others(struct wr_cuda *cuda, int device)
{
	for (int other = 0; other < cuda->count; other++)
		if (wr_load(&cuda->devices[other].ready)) {
			let_reach(other, device);
			let_reach(device, other);
		}
}

/* On a thread of its own; beside it another one may capture. */
static void initialize(void *arg)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	struct initialization *self = arg;
	struct wr_cuda_device *device = &self->cuda->devices[self->device];

	cudaThreadExchangeStreamCaptureMode(&mode);
	self->error = cudaSetDevice(self->device);
	if (!self->error)
		self->error = cudaFree(NULL);
	if (!self->error)
		self->error = first_call();
	if (!self->error)
		self->error = cudaEventCreateWithFlags(&device->probe, cudaEventDisableTiming);
	if (!self->error)
		join_others(self->cuda, self->device);
}

static weir_status initialize_locked(struct wr_cuda *cuda, int number)
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

weir_status wr_cuda_ready(struct wr_cuda *cuda, int device)
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
		return wr_fail(WEIR_E_DEVICE,
			       "cuda: the devices cannot be used: %s (%s); backend 'host' needs none",
			       cudaGetErrorString(inquiry.error), cudaGetErrorName(inquiry.error));
	*count = inquiry.count;
	return WEIR_OK;
}

void wr_cuda_close(void *self)
{
	struct wr_cuda *cuda = self;

	for (int i = 0; i < cuda->count; i++)
		if (wr_load(&cuda->devices[i].ready) && !wr_cuda_lost(cuda))
			cudaEventDestroy(cuda->devices[i].probe);
	wr_mutex_finish(&cuda->lock);
	wr_free(cuda);
}

/* Appends "NVIDIA H200" or "2 x NVIDIA H200"; what finds no room is cut. */
static void append(char *where, size_t room, int alike, const char *name, bool first)
{
	size_t used = strlen(where);

	if (alike > 1)
		snprintf(where + used, room - used, "%s%d x %s", first ? "" : ", ", alike, name);
	else
		snprintf(where + used, room - used, "%s%s", first ? "" : ", ", name);
}

static weir_status describe(int count, char *where, size_t room)
{
	struct cudaDeviceProp properties, last;
	int alike = 0, names = 0;

	snprintf(where, room, "cuda: ");
	for (int i = 0; i < count; i++) {
		cudaError_t error = cudaGetDeviceProperties(&properties, i);

		if (error)
			return wr_cuda_refused(error, "cudaGetDeviceProperties");
		if (alike && strcmp(properties.name, last.name)) {
			append(where, room, alike, last.name, !names++);
			alike = 0;
		}
		last = properties;
		alike++;
	}
	append(where, room, alike, last.name, !names);
	return WEIR_OK;
}

weir_status wr_cuda_open(void **out, const struct wr_system_options *options, char *where, size_t room)
{
	int count = 0;
	weir_status status = count_devices(&count);
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
		status = describe(count, where, room);
	if (!status)
		wr_cuda_driver_find(&cuda->driver);
	if (status)
		wr_cuda_close(cuda);
	else
		*out = cuda;
	return status;
}

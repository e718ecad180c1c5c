/* Devices, the names of errors, and the thread's last one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inside.h"

enum { DEVICES_MAX = 15, VERSION = 13000 };

static _Thread_local int current;

int fake_devices(void)
{
	static _Atomic int known;
	const char *text;
	int count;

	if (fake_get(&known))
		return fake_get(&known) - 1;
	text = getenv("FAKE_CUDA_DEVICES");
	count = text && *text ? atoi(text) : 2;
	fake_set(&known, (count < 0 || count > DEVICES_MAX ? DEVICES_MAX : count) + 1);
	return fake_get(&known) - 1;
}

int fake_device(void)
{
	return current;
}

cudaError_t cudaGetDeviceCount(int *out)
{
	cudaError_t error = fake_begin(FAKE_NO_CONTEXT);

	*out = error ? 0 : fake_devices();
	return fake_end(error || fake_devices() ? error : cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *out)
{
	cudaError_t error = fake_begin(FAKE_NO_CONTEXT);

	if (!error)
		*out = current;
	return fake_end(error);
}

cudaError_t cudaSetDevice(int device)
{
	cudaError_t error = fake_begin(FAKE_PLAIN);

	if (!error && (device < 0 || device >= fake_devices()))
		error = cudaErrorInvalidDevice;
	if (!error)
		current = device;
	return fake_end(error);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device)
{
	cudaError_t error = fake_begin(FAKE_NO_CONTEXT);

	if (!error && (device < 0 || device >= fake_devices()))
		error = cudaErrorInvalidDevice;
	if (error)
		return fake_end(error);
	memset(out, 0, sizeof *out);
	strcpy(out->name, "a fake");
	out->multiProcessorCount = FAKE_SMS;
	out->major = 9;
	return fake_end(cudaSuccess);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int other)
{
	cudaError_t error = fake_begin(FAKE_NO_CONTEXT);

	*can = !error && device != other;
	return fake_end(error);
}

cudaError_t cudaDeviceEnablePeerAccess(int other, unsigned flags)
{
	static _Atomic unsigned enabled[DEVICES_MAX];
	cudaError_t error = fake_begin(FAKE_PLAIN);

	(void)flags;
	if (!error && (other < 0 || other >= fake_devices() || other == current))
		error = cudaErrorInvalidDevice;
	if (!error &&
	    atomic_fetch_or_explicit(&enabled[current], 1u << other, memory_order_relaxed) & 1u << other)
		error = cudaErrorPeerAccessAlreadyEnabled;
	return fake_end(error);
}

cudaError_t cudaDriverGetVersion(int *out)
{
	cudaError_t error = fake_begin(FAKE_NO_CONTEXT);

	*out = VERSION;
	return fake_end(error);
}

cudaError_t cudaRuntimeGetVersion(int *out)
{
	cudaError_t error = fake_begin(FAKE_NO_CONTEXT);

	*out = VERSION;
	return fake_end(error);
}

/* --- errors --- */

#define ERRORS(_)                                                                                            \
	_(cudaSuccess, "no error")                                                                           \
	_(cudaErrorInvalidValue, "invalid argument")                                                         \
	_(cudaErrorMemoryAllocation, "out of memory")                                                        \
	_(cudaErrorInitializationError, "initialization error")                                              \
	_(cudaErrorInvalidPitchValue, "invalid pitch argument")                                              \
	_(cudaErrorStubLibrary, "CUDA driver is a stub library")                                             \
	_(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version")       \
	_(cudaErrorNoDevice, "no CUDA-capable device is detected")                                           \
	_(cudaErrorInvalidDevice, "invalid device ordinal")                                                  \
	_(cudaErrorDeviceUninitialized, "invalid device context")                                            \
	_(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered")                                  \
	_(cudaErrorInvalidResourceHandle, "invalid resource handle")                                         \
	_(cudaErrorIllegalState, "the operation cannot be performed in the present state")                   \
	_(cudaErrorSymbolNotFound, "named symbol not found")                                                 \
	_(cudaErrorNotReady, "device not ready")                                                             \
	_(cudaErrorIllegalAddress, "an illegal memory access was encountered")                               \
	_(cudaErrorLaunchOutOfResources, "too many resources requested for launch")                          \
	_(cudaErrorLaunchTimeout, "the launch timed out and was terminated")                                 \
	_(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled")                               \
	_(cudaErrorHostMemoryAlreadyRegistered,                                                              \
	  "part or all of the requested memory range is already mapped")                                     \
	_(cudaErrorLaunchFailure, "unspecified launch failure")                                              \
	_(cudaErrorNotPermitted, "operation not permitted")                                                  \
	_(cudaErrorNotSupported, "operation not supported")                                                  \
	_(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")             \
	_(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture")      \
	_(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences")    \
	_(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began")           \
	_(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work")                              \
	_(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream")        \
	_(cudaErrorStreamCaptureImplicit,                                                                    \
	  "operation would make the legacy stream depend on a capturing one")                                \
	_(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream") \
	_(cudaErrorStreamCaptureWrongThread,                                                                 \
	  "attempt to terminate a thread-local capture sequence from another thread")

static const struct {
	cudaError_t error;
	const char *name, *text;
} errors[] = {
#define ROW(error, text) {error, #error, text},
	ERRORS(ROW)
#undef ROW
};

const char *cudaGetErrorName(cudaError_t error)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].error == error)
			return errors[i].name;
	return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].error == error)
			return errors[i].text;
	return "unrecognized error code";
}

/* Clears itself on a lost device, too: it cannot tell of one. */
cudaError_t cudaGetLastError(void)
{
	cudaError_t error = fake_last_error;

	fake_begin(FAKE_ALWAYS);
	fake_last_error = cudaSuccess;
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	return fake_last_error;
}

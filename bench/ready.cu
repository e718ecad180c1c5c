/* The CUDA side of bench/ready; ready_gpu.h documents each function. */
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

#include "ready_gpu.h"

#define LONGEST_NS     1000000000
#define LONGEST_CYCLES 4000000000LL /* about two seconds, in case the device's clock stands still */

/* --- the kernel --- */

static __device__ uint64_t device_time(void)
{
	uint64_t now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
}

static __global__ void work_of(struct ready_work work)
{
	uint64_t begin = device_time();
	long long cycles = clock64();

	while (device_time() - begin < (uint64_t)work.ns && clock64() - cycles < LONGEST_CYCLES)
		;
	if (!work.flag)
		return;
	__threadfence_system();
	*(volatile uint32_t *)work.flag = work.value;
}

int ready_gpu_launch(void *stream, const void *arguments)
{
	struct ready_work work = *(const struct ready_work *)arguments;

	if (work.ns > LONGEST_NS)
		work.ns = LONGEST_NS;
	work_of<<<1, 1, 0, (cudaStream_t)stream>>>(work);
	return cudaPeekAtLastError();
}

/* --- stream memory operations: driver API only, looked up at run time --- */

typedef CUresult write_value(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags);
static write_value *write_value_32;

static bool find_write(void)
{
	enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
	void *function = NULL;
	cudaError_t error;

#if CUDART_VERSION >= 12050
	error = cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &function, 12000, cudaEnableDefault,
						 &found);
#else
	error = cudaGetDriverEntryPoint("cuStreamWriteValue32", &function, cudaEnableDefault, &found);
#endif
	if (error || found != cudaDriverEntryPointSuccess)
		return false;
	write_value_32 = (write_value *)function;
	return write_value_32 != NULL;
}

int ready_gpu_write(void *stream, uint32_t *word, uint32_t value)
{
	if (!write_value_32)
		return cudaErrorNotSupported;
	/*
	 * Pinned memory has the same address on both sides; by default the write becomes visible after all
	 * earlier work.
	 */
	return write_value_32((CUstream)stream, (CUdeviceptr)(uintptr_t)word, value,
			      CU_STREAM_WRITE_VALUE_DEFAULT)
		       ? cudaErrorUnknown
		       : cudaSuccess;
}

/* Tries one, since the symbol alone proves little. */
static bool write_works(void *stream)
{
	void *word;

	if (!find_write() || ready_gpu_pinned(&word, sizeof(uint32_t)))
		return false;
	if (ready_gpu_write(stream, (uint32_t *)word, 7) || ready_gpu_wait(stream))
		return false;
	return *(volatile uint32_t *)word == 7;
}

/* --- the device, its memory and streams --- */

int ready_gpu_open(struct ready_gpu *out)
{
	struct ready_work nothing = {1000, NULL, 0};
	struct cudaDeviceProp properties;
	void *stream = NULL;
	int error = cudaSetDevice(0);

	if (!error)
		error = cudaGetDeviceProperties(&properties, 0);
	if (!error)
		error = ready_gpu_stream(&stream);
	if (!error)
		error = ready_gpu_launch(stream, &nothing);
	if (!error)
		error = ready_gpu_wait(stream);
	if (error)
		return error;
	snprintf(out->name, sizeof out->name, "%s", properties.name);
	out->processors = properties.multiProcessorCount;
	cudaDriverGetVersion(&out->driver);
	cudaRuntimeGetVersion(&out->runtime);
	out->can_write = write_works(stream);
	return 0;
}

const char *ready_gpu_text(int error)
{
	return cudaGetErrorString((cudaError_t)error);
}

int ready_gpu_pinned(void **out, size_t bytes)
{
	int error = cudaHostAlloc(out, bytes, cudaHostAllocPortable | cudaHostAllocMapped);

	if (!error)
		memset(*out, 0, bytes);
	return error;
}

int ready_gpu_stream(void **out)
{
	return cudaStreamCreateWithFlags((cudaStream_t *)out, cudaStreamNonBlocking);
}

int ready_gpu_call(void *stream, void (*fn)(void *arg), void *arg)
{
	return cudaLaunchHostFunc((cudaStream_t)stream, fn, arg);
}

/* Destroying an event that may be pending is allowed: CUDA keeps it until it completes. */
static int record(cudaEvent_t *out, void *stream)
{
	int error = cudaEventCreateWithFlags(out, cudaEventDisableTiming);

	if (error)
		return error;
	error = cudaEventRecord(*out, (cudaStream_t)stream);
	if (error)
		cudaEventDestroy(*out);
	return error;
}

int ready_gpu_follow(void *stream, void *before)
{
	cudaEvent_t event;
	int error = record(&event, before);

	if (error)
		return error;
	error = cudaStreamWaitEvent((cudaStream_t)stream, event, 0);
	cudaEventDestroy(event);
	return error;
}

int ready_gpu_mark(void *stream)
{
	cudaEvent_t event;
	int error = record(&event, stream);

	if (!error)
		cudaEventDestroy(event);
	return error;
}

int ready_gpu_wait(void *stream)
{
	return cudaStreamSynchronize((cudaStream_t)stream);
}

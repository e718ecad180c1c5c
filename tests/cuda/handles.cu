/* The kernels of handles.c: they enqueue and return CUDA's error. */
#include "handles.h"

static __device__ int64_t device_time(void)
{
	int64_t now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
}

static __device__ int64_t index_here(void)
{
	return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __global__ void fill(struct handles_fill work)
{
	int64_t begin = device_time(), i = index_here();

	while (device_time() - begin < work.ns)
		;
	if (i < work.count)
		work.to[i] = work.first + (uint32_t)i;
}

static __global__ void triple(struct handles_triple work)
{
	int64_t i = index_here();

	if (i < work.count)
		work.to[i] = 3 * work.from[i] + 1;
}

static __global__ void stay(struct handles_stay work)
{
	int64_t begin = device_time();

	while (!*(volatile const uint32_t *)work.flag)
		if (device_time() - begin > work.most) {
			*(volatile uint32_t *)work.told = 2;
			return;
		}
	*(volatile uint32_t *)work.told = 1;
}

static unsigned blocks(int64_t count)
{
	return count > 0 ? (unsigned)((count + 255) / 256) : 1;
}

extern "C" int handles_fill_cuda(void *native, const void *arguments)
{
	const struct handles_fill *work = (const struct handles_fill *)arguments;

	fill<<<blocks(work->count), 256, 0, (cudaStream_t)native>>>(*work);
	return cudaGetLastError();
}

extern "C" int handles_triple_cuda(void *native, const void *arguments)
{
	const struct handles_triple *work = (const struct handles_triple *)arguments;

	triple<<<blocks(work->count), 256, 0, (cudaStream_t)native>>>(*work);
	return cudaGetLastError();
}

extern "C" int handles_stay_cuda(void *native, const void *arguments)
{
	const struct handles_stay *work = (const struct handles_stay *)arguments;

	stay<<<1, 1, 0, (cudaStream_t)native>>>(*work);
	return cudaGetLastError();
}

extern "C" int handles_load(int device)
{
	cudaFuncAttributes attributes;
	cudaError_t error = cudaSetDevice(device);

	if (!error)
		error = cudaFuncGetAttributes(&attributes, fill);
	if (!error)
		error = cudaFuncGetAttributes(&attributes, triple);
	if (!error)
		error = cudaFuncGetAttributes(&attributes, stay);
	return error;
}

/* The CUDA forms of the kernels in streams.c: enqueue and return CUDA's error. They never wait. */
#include "streams.h"

static __device__ int64_t device_time(void)
{
	int64_t now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
}

static __device__ int64_t index(void)
{
	return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __global__ void count_up(struct count_up work)
{
	int64_t begin = device_time(), i = index();

	while (device_time() - begin < work.duration)
		;
	if (i < work.count)
		work.to[i] = work.first + (float)i;
}

static __global__ void scale_add(struct scale_add work)
{
	int64_t i = index();

	if (i < work.count)
		work.to[i] = work.a * work.x[i] + work.y[i];
}

static __global__ void reverse(struct reverse work)
{
	int64_t i = index();

	if (i < work.count)
		work.to[i] = work.from[work.count - 1 - i];
}

static unsigned blocks(int64_t count)
{
	return (unsigned)((count + 255) / 256);
}

extern "C" int count_up_on_cuda(void *native_stream, const void *arguments)
{
	const struct count_up *work = (const struct count_up *)arguments;

	count_up<<<blocks(work->count), 256, 0, (cudaStream_t)native_stream>>>(*work);
	return cudaPeekAtLastError();
}

extern "C" int scale_add_on_cuda(void *native_stream, const void *arguments)
{
	const struct scale_add *work = (const struct scale_add *)arguments;

	scale_add<<<blocks(work->count), 256, 0, (cudaStream_t)native_stream>>>(*work);
	return cudaPeekAtLastError();
}

extern "C" int reverse_on_cuda(void *native_stream, const void *arguments)
{
	const struct reverse *work = (const struct reverse *)arguments;

	reverse<<<blocks(work->count), 256, 0, (cudaStream_t)native_stream>>>(*work);
	return cudaPeekAtLastError();
}

/* The kernel of lines.c: one thread that is busy for a time. */
#include <stdint.h>

extern "C" int lines_spin_cuda(void *native, const void *arguments);

static __device__ int64_t device_ns(void)
{
	int64_t ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

static __global__ void spin(int64_t ns)
{
	int64_t end = device_ns() + ns;

	while (device_ns() < end)
		;
}

extern "C" int lines_spin_cuda(void *native, const void *arguments)
{
	spin<<<1, 1, 0, (cudaStream_t)native>>>(*(const int64_t *)arguments);
	return cudaGetLastError();
}

/* The CUDA form of spin.c: one thread polls the GPU's clock. */
#include "operators/kernels.h"

static __device__ uint64_t device_time(void)
{
	uint64_t now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
}

static __global__ void spin(struct wr_spin_arguments work)
{
	uint64_t begin = device_time();

	while (device_time() - begin < (uint64_t)work.duration)
		;
	if (work.fault)
		*(volatile int *)16 = 1; /* an illegal address, as in a kernel with a bug */
	work.to[0] = work.tick;
	work.to[1] = (uint64_t)work.duration;
}

extern "C" int wr_spin_cuda(void *stream, const void *arguments)
{
	spin<<<1, 1, 0, (cudaStream_t)stream>>>(*(const struct wr_spin_arguments *)arguments);
	return cudaPeekAtLastError();
}

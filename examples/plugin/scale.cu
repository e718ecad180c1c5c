/* The CUDA form of scale.c: enqueues and returns CUDA's error. It never waits. */
#include "scale.h"

static __global__ void scale(struct scale_arguments work)
{
	int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

	if (i < work.count)
		work.to[i] = scale_one(work.from[i], work.percent);
}

extern "C" int scale_on_cuda(void *native_stream, const void *arguments)
{
	const struct scale_arguments *work = (const struct scale_arguments *)arguments;
	int64_t blocks = (work->count + 255) / 256;

	if (blocks)
		scale<<<(unsigned)blocks, 256, 0, (cudaStream_t)native_stream>>>(*work);
	return cudaPeekAtLastError();
}

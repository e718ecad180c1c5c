/* The CUDA form of convert.c: one thread per block of 2 x 2 pixels. */
#include "operators/convert.h"

enum { WIDE = 32, HIGH = 8 };

static __global__ void convert(struct wr_convert_arguments job)
{
	int32_t x = 2 * (int32_t)(blockIdx.x * WIDE + threadIdx.x);

	if (x >= job.width)
		return;
	for (int32_t y = 2 * (int32_t)(blockIdx.y * HIGH + threadIdx.y); y < job.height;
	     y += 2 * (int32_t)gridDim.y * HIGH)
		wr_convert_block(&job, job.from_format, job.to_format, x, y);
}

extern "C" int wr_convert_cuda(void *stream, const void *arguments)
{
	struct wr_convert_arguments job = *(const struct wr_convert_arguments *)arguments;
	uint32_t rows = ((uint32_t)job.height + 2 * HIGH - 1) / (2 * HIGH);
	dim3 grid(((uint32_t)job.width + 2 * WIDE - 1) / (2 * WIDE), rows < 65535 ? rows : 65535);

	convert<<<grid, dim3(WIDE, HIGH), 0, (cudaStream_t)stream>>>(job);
	return cudaPeekAtLastError();
}

/* The CUDA form of sobel.c: one thread per pixel. */
#include "operators/pixel.h"

enum { WIDE = 32, HIGH = 8 };

static __global__ void sobel(struct wr_sobel_arguments edges)
{
	int32_t x = (int32_t)(blockIdx.x * WIDE + threadIdx.x);

	if (x >= edges.image.width)
		return;
	for (int32_t y = (int32_t)(blockIdx.y * HIGH + threadIdx.y); y < edges.image.height;
	     y += (int32_t)gridDim.y * HIGH)
		edges.to[(int64_t)y * edges.image.width + x] = wr_pixel_sobel(edges.from, edges.image, x, y);
}

extern "C" int wr_sobel_cuda(void *stream, const void *arguments)
{
	struct wr_sobel_arguments edges = *(const struct wr_sobel_arguments *)arguments;
	uint32_t rows = ((uint32_t)edges.image.height + HIGH - 1) / HIGH;
	dim3 grid(((uint32_t)edges.image.width + WIDE - 1) / WIDE, rows < 65535 ? rows : 65535);

	sobel<<<grid, dim3(WIDE, HIGH), 0, (cudaStream_t)stream>>>(edges);
	return cudaPeekAtLastError();
}

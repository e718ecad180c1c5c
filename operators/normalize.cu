/* The CUDA form of normalize.c: each block makes a table of the 256 levels in shared memory, then reads it.
 */
#include "operators/normalize.h"

enum { LEVELS = 256, PIXELS = 4 * LEVELS }; /* threads of a block, one per level; pixels per block */

static __device__ void set_value(float *to, double value, int32_t type)
{
	(void)type;
	*to = (float)value;
}

static __device__ void set_value(uint16_t *to, double value, int32_t type)
{
	*to = wr_normalize_short(value, type);
}

template <typename Value> static __global__ void normalize(struct wr_normalize_arguments job)
{
	__shared__ Value table[4][LEVELS];
	int64_t count = (int64_t)job.image.height * job.image.width;
	int32_t channels = job.image.channels;
	Value *to = (Value *)job.to;

	for (int32_t c = 0; c < channels; c++)
		set_value(&table[c][threadIdx.x], wr_normalize_level(&job, (int32_t)threadIdx.x, c),
			  job.type);
	__syncthreads();
	for (int64_t i = (int64_t)blockIdx.x * LEVELS + threadIdx.x; i < count;
	     i += (int64_t)gridDim.x * LEVELS)
		for (int32_t c = 0; c < channels; c++)
			to[c * count + i] = table[c][job.from[i * channels + c]];
}

extern "C" int wr_normalize_cuda(void *stream, const void *arguments)
{
	struct wr_normalize_arguments job = *(const struct wr_normalize_arguments *)arguments;
	int64_t blocks = ((int64_t)job.image.height * job.image.width + PIXELS - 1) / PIXELS;
	uint32_t grid = blocks < 65536 ? (uint32_t)blocks : 65536;

	if (job.type != WR_FLOAT32)
		normalize<uint16_t><<<grid, LEVELS, 0, (cudaStream_t)stream>>>(job);
	else
		normalize<float><<<grid, LEVELS, 0, (cudaStream_t)stream>>>(job);
	return cudaPeekAtLastError();
}

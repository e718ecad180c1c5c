/* The CUDA form of resize.c: one thread per pixel. */
#include "operators/resize.h"

enum { WIDE = 32, HIGH = 8 };

static __device__ void mix(const struct wr_resize_arguments *job, int32_t x, int32_t y, uint8_t *to)
{
	struct wr_resize_tap across = wr_resize_tap_of(x - job->left, job->image.width, job->inner_width);
	struct wr_resize_tap down = wr_resize_tap_of(y - job->top, job->image.height, job->inner_height);
	int32_t channels = job->image.channels;
	int64_t pitch = (int64_t)job->image.width * channels;
	const uint8_t *above = job->from + down.first * pitch, *below = job->from + down.second * pitch;
	int32_t first = across.first * channels, second = across.second * channels;

	for (int32_t c = 0; c < channels; c++)
		to[c] = wr_resize_mix_columns(
			wr_resize_mix_rows(above[first + c], below[first + c], down.part),
			wr_resize_mix_rows(above[second + c], below[second + c], down.part), across.part);
}

static __global__ void resize(struct wr_resize_arguments job)
{
	int32_t x = (int32_t)(blockIdx.x * WIDE + threadIdx.x);

	if (x >= job.width)
		return;
	for (int32_t y = (int32_t)(blockIdx.y * HIGH + threadIdx.y); y < job.height;
	     y += (int32_t)gridDim.y * HIGH) {
		uint8_t *to = job.to + ((int64_t)y * job.width + x) * job.image.channels;

		if (wr_resize_inside(&job, x, y))
			mix(&job, x, y, to);
		else
			for (int32_t c = 0; c < job.image.channels; c++)
				to[c] = job.fill[c];
	}
}

extern "C" int wr_resize_cuda(void *stream, const void *arguments)
{
	struct wr_resize_arguments job = *(const struct wr_resize_arguments *)arguments;
	uint32_t rows = ((uint32_t)job.height + HIGH - 1) / HIGH;
	dim3 grid(((uint32_t)job.width + WIDE - 1) / WIDE, rows < 65535 ? rows : 65535);

	resize<<<grid, dim3(WIDE, HIGH), 0, (cudaStream_t)stream>>>(job);
	return cudaPeekAtLastError();
}

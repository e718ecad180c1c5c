/*
 * The CUDA form of blur.c. Each thread goes down ROWS rows of one column of one channel with a running sum,
 * and so reads two rows of the box per pixel instead of all. No scratch memory, so nothing to allocate or
 * to keep alive.
 */
#include "operators/pixel.h"

enum { ROWS = 16, COLUMNS = 128 };

static __device__ uint32_t row_sum(struct wr_blur_arguments box, int32_t x, int32_t y, int32_t channel)
{
	struct wr_image image = box.image;
	const uint8_t *row =
		box.from + (int64_t)wr_pixel_clamp(y, image.height) * image.width * image.channels;
	uint32_t sum = 0;

	for (int32_t dx = -box.radius; dx <= box.radius; dx++)
		sum += row[(int64_t)wr_pixel_clamp(x + dx, image.width) * image.channels + channel];
	return sum;
}

static __global__ void blur(struct wr_blur_arguments box)
{
	struct wr_image image = box.image;
	int64_t at = (int64_t)blockIdx.x * COLUMNS + threadIdx.x;
	int32_t x = (int32_t)(at / image.channels), channel = (int32_t)(at % image.channels);
	uint32_t side = 2 * (uint32_t)box.radius + 1, sum = 0;

	if (x >= image.width)
		return;
	for (int32_t top = (int32_t)blockIdx.y * ROWS; top < image.height; top += (int32_t)gridDim.y * ROWS) {
		int32_t bottom = top + ROWS < image.height ? top + ROWS : image.height;

		sum = 0;
		for (int32_t y = top - box.radius; y <= top + box.radius; y++)
			sum += row_sum(box, x, y, channel);
		for (int32_t y = top; y < bottom; y++) {
			box.to[((int64_t)y * image.width + x) * image.channels + channel] =
				wr_pixel_mean(sum, side * side);
			sum += row_sum(box, x, y + box.radius + 1, channel) -
			       row_sum(box, x, y - box.radius, channel);
		}
	}
}

extern "C" int wr_blur_cuda(void *stream, const void *arguments)
{
	struct wr_blur_arguments box = *(const struct wr_blur_arguments *)arguments;
	uint32_t values = (uint32_t)box.image.width * (uint32_t)box.image.channels;
	uint32_t strips = ((uint32_t)box.image.height + ROWS - 1) / ROWS;
	dim3 grid((values + COLUMNS - 1) / COLUMNS, strips < 65535 ? strips : 65535);

	blur<<<grid, COLUMNS, 0, (cudaStream_t)stream>>>(box);
	return cudaPeekAtLastError();
}

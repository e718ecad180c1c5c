/*
 * The CUDA forms of the network's kernels: one thread per pixel of the frame. The weights are in constant
 * memory, where all threads of a warp read the same word; __dp4a multiplies four int8 at once.
 */
#include "upscale.h"

#define WEIGHTS static __constant__ __align__(4) const
#include "weights.h"

enum { WIDE = 32, HIGH = 8 };

static __device__ inline bool pixel_of_thread(int32_t height, int32_t width, int32_t *y, int32_t *x)
{
	*y = (int32_t)(blockIdx.y * HIGH + threadIdx.y);
	*x = (int32_t)(blockIdx.x * WIDE + threadIdx.x);
	return *y < height && *x < width;
}

static dim3 blocks(int32_t height, int32_t width)
{
	return dim3((uint32_t)(width + WIDE - 1) / WIDE, (uint32_t)(height + HIGH - 1) / HIGH);
}

/* A layer without its clamp. WORDS: inputs of a pixel, four to a word. */
template <int SIDE, int WORDS, int OUTPUTS>
static __device__ inline void convolve(const int8_t *from, int32_t height, int32_t width, int32_t y,
				       int32_t x, const int8_t *weights, int32_t *sums)
{
#pragma unroll
	for (int tap = 0; tap < SIDE * SIDE; tap++) {
		const int *pixel =
			(const int *)from + WORDS * nearest_pixel(y + tap / SIDE - SIDE / 2,
								  x + tap % SIDE - SIDE / 2, height, width);
		const int *row = (const int *)weights + tap * OUTPUTS * WORDS;
		int words[WORDS];

#pragma unroll
		for (int word = 0; word < WORDS; word++)
			words[word] = pixel[word];
#pragma unroll
		for (int out = 0; out < OUTPUTS; out++)
#pragma unroll
			for (int word = 0; word < WORDS; word++)
				sums[out] = __dp4a(row[out * WORDS + word], words[word], sums[out]);
	}
}

static __global__ void letterbox(struct letterbox work)
{
	int32_t y, x;

	if (!pixel_of_thread(work.frame_height, work.frame_width, &y, &x))
		return;
	for (int32_t channel = 0; channel < FRAME_CHANNELS; channel++)
		work.to[FRAME_CHANNELS * ((int64_t)y * work.frame_width + x) + channel] =
			letterbox_value(&work, y, x, channel);
}

template <int SIDE, int WORDS, int SHIFT>
static __device__ inline void hidden_pixel(const struct layer &work, int32_t y, int32_t x,
					   const int32_t *bias, const int8_t *weights)
{
	int8_t *to = work.to + HIDDEN * ((int64_t)y * work.width + x);
	int32_t sums[HIDDEN];

	for (int out = 0; out < HIDDEN; out++)
		sums[out] = bias[out] + (1 << SHIFT >> 1);
	convolve<SIDE, WORDS, HIDDEN>(work.from, work.height, work.width, y, x, weights, sums);
	for (int out = 0; out < HIDDEN; out++)
		to[out] = (int8_t)clamp(sums[out] >> SHIFT, 0, 127);
}

static __global__ void first(struct layer work)
{
	int32_t y, x;

	if (pixel_of_thread(work.height, work.width, &y, &x))
		hidden_pixel<5, FRAME_CHANNELS / 4, SHIFT_1>(work, y, x, bias_1, weights_1[0][0]);
}

static __global__ void second(struct layer work)
{
	int32_t y, x;

	if (pixel_of_thread(work.height, work.width, &y, &x))
		hidden_pixel<3, HIDDEN / 4, SHIFT_2>(work, y, x, bias_2, weights_2[0][0]);
}

static __global__ void last(struct last_layer work)
{
	int32_t y, x, sums[LACKS];

	if (!pixel_of_thread(work.height, work.width, &y, &x))
		return;
	for (int part = 0; part < LACKS; part++)
		sums[part] = bias_3[part] + (1 << SHIFT_3 >> 1);
	convolve<3, HIDDEN / 4, LACKS>(work.from, work.height, work.width, y, x, weights_3[0][0], sums);
	for (int part = 0; part < LACKS; part++) {
		int64_t pixel = (2L * y + part / 2 % 2) * 2 * work.width + 2 * x + part % 2;

		work.to[COLOURS * pixel + part / 4] =
			upscaled_value(&work, y, x, part, sums[part] >> SHIFT_3);
	}
}

extern "C" int letterbox_on_cuda(void *native_stream, const void *arguments)
{
	const struct letterbox work = *(const struct letterbox *)arguments;

	letterbox<<<blocks(work.frame_height, work.frame_width), dim3(WIDE, HIGH), 0,
		    (cudaStream_t)native_stream>>>(work);
	return cudaPeekAtLastError();
}

extern "C" int layer_on_cuda(void *native_stream, const void *arguments)
{
	const struct layer work = *(const struct layer *)arguments;
	auto kernel = work.number == 1 ? first : second;

	kernel<<<blocks(work.height, work.width), dim3(WIDE, HIGH), 0, (cudaStream_t)native_stream>>>(work);
	return cudaPeekAtLastError();
}

extern "C" int last_layer_on_cuda(void *native_stream, const void *arguments)
{
	const struct last_layer work = *(const struct last_layer *)arguments;

	last<<<blocks(work.height, work.width), dim3(WIDE, HIGH), 0, (cudaStream_t)native_stream>>>(work);
	return cudaPeekAtLastError();
}

/*
 * Checks what upscale.json wrote by the plainest program that there is: one stream, and a wait after each
 * step; without --cuda on the host.
 *
 * usage: reference [--cuda] WIDTH HEIGHT PICTURE.png RESULT.png [PICTURE.png RESULT.png]...
 */
#include "upscale.h"

#include <png.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef UPSCALE_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

static void refuse(const char *what, const char *which)
{
	fprintf(stderr, "reference: %s: %s\n", which, what);
	exit(1);
}

/* The picture's bytes, red, green and blue. */
static uint8_t *read_picture(const char *path, int32_t *height, int32_t *width)
{
	png_image image = {.version = PNG_IMAGE_VERSION};
	uint8_t *bytes = NULL;

	if (png_image_begin_read_from_file(&image, path)) {
		image.format = PNG_FORMAT_RGB;
		bytes = malloc(PNG_IMAGE_SIZE(image));
	}
	if (!bytes || !png_image_finish_read(&image, NULL, bytes, 0, NULL))
		refuse(image.message, path);
	*height = (int32_t)image.height;
	*width = (int32_t)image.width;
	return bytes;
}

/* --- where the work is done: the host, or one stream --- */

static bool on_cuda;

#ifdef UPSCALE_WITH_CUDA
static cudaStream_t stream;

static void check(cudaError_t error)
{
	if (error)
		refuse(cudaGetErrorString(error), "CUDA");
}

static void *create(size_t bytes)
{
	void *memory;

	if (!on_cuda)
		return malloc(bytes);
	check(cudaMalloc(&memory, bytes));
	return memory;
}

static void copy(void *to, const void *from, size_t bytes)
{
	if (!on_cuda) {
		memcpy(to, from, bytes);
		return;
	}
	check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
	check(cudaStreamSynchronize(stream));
}

static void step(int (*host)(const void *), int (*cuda)(void *, const void *), const void *arguments)
{
	if (!on_cuda) {
		host(arguments);
		return;
	}
	check((cudaError_t)cuda(stream, arguments));
	check(cudaStreamSynchronize(stream));
}

static void begin(void)
{
	if (on_cuda)
		check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
}

#define STEP(name, arguments) step(name##_on_host, name##_on_cuda, arguments)
#else
static void *create(size_t bytes)
{
	return malloc(bytes);
}

static void copy(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

static void begin(void)
{
	if (on_cuda)
		refuse("built without CUDA", "--cuda");
}

#define STEP(name, arguments) (void)name##_on_host(arguments)
#endif

/* --- the steps --- */

static uint8_t *device_picture; /* frame_width * frame_height * 3 bytes suffice */
static int8_t *device_frame, *hidden[2];
static uint8_t *device_result;

static void create_all(int32_t height, int32_t width)
{
	size_t pixels = (size_t)height * (size_t)width;

	begin();
	device_picture = create(pixels * COLOURS);
	device_frame = create(pixels * FRAME_CHANNELS);
	hidden[0] = create(pixels * HIDDEN);
	hidden[1] = create(pixels * HIDDEN);
	device_result = create(pixels * LACKS);
	if (!device_picture || !device_frame || !hidden[0] || !hidden[1] || !device_result)
		refuse("no memory", "frame");
}

static void upscale(const uint8_t *picture, struct letterbox box, uint8_t *result)
{
	const struct layer first = {device_frame, hidden[0], box.frame_height, box.frame_width, 1};
	const struct layer second = {hidden[0], hidden[1], box.frame_height, box.frame_width, 2};
	const struct last_layer last = {hidden[1], device_frame, device_result, box.frame_height,
					box.frame_width};

	copy(device_picture, picture, (size_t)box.height * (size_t)box.width * COLOURS);
	box.from = device_picture;
	box.to = device_frame;
	STEP(letterbox, &box);
	STEP(layer, &first);
	STEP(layer, &second);
	STEP(last_layer, &last);
	copy(result, device_result, (size_t)box.frame_height * (size_t)box.frame_width * LACKS);
}

static bool agrees(const char *picture_path, const char *result_path, int32_t height, int32_t width)
{
	struct letterbox box = {.frame_height = height, .frame_width = width, .channels = COLOURS};
	size_t bytes = (size_t)height * (size_t)width * LACKS, at = 0;
	int32_t found_height, found_width;
	uint8_t *picture = read_picture(picture_path, &box.height, &box.width);
	uint8_t *found = read_picture(result_path, &found_height, &found_width), *wanted = malloc(bytes);

	if (!wanted || box.height > height || box.width > width)
		refuse("does not fit into the frame", picture_path);
	if (found_height != 2 * height || found_width != 2 * width)
		refuse("is not twice as large as the frame", result_path);
	upscale(picture, box, wanted);
	while (at < bytes && found[at] == wanted[at])
		at++;
	if (at < bytes)
		printf("%s: byte %zu is %d, must be %d\n", result_path, at, found[at], wanted[at]);
	free(picture);
	free(found);
	free(wanted);
	return at == bytes;
}

int main(int count, char **arguments)
{
	int32_t width, height, right = 0, wrong = 0;

	on_cuda = count > 1 && !strcmp(arguments[1], "--cuda");
	arguments += on_cuda;
	count -= on_cuda;
	if (count < 5 || count % 2 == 0) {
		fprintf(stderr, "usage: reference [--cuda] WIDTH HEIGHT PICTURE.png RESULT.png...\n");
		return 2;
	}
	width = atoi(arguments[1]);
	height = atoi(arguments[2]);
	if (width < 1 || height < 1)
		refuse("must be numbers above 0", "WIDTH HEIGHT");
	create_all(height, width);
	for (int i = 3; i < count; i += 2)
		agrees(arguments[i], arguments[i + 1], height, width) ? right++ : wrong++;
	printf("%d pictures agree, %d differ\n", right, wrong);
	return wrong > 0;
}

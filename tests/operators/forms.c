/*
 * The host forms, which work on strips and rows, compared with the functions of one pixel that the device
 * forms call (operators/NAME.cu). Compiled twice: as in the library, and with the forms for any processor
 * (forms_plain).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "operators/convert.h"
#include "operators/operators.h"
#include "operators/resize.h"
#include "tests/operators/rig.h"

/* --- the device forms, pixel by pixel --- */

typedef void device_form(const void *arguments, uint8_t *to);

static uint32_t box_sum(const struct wr_blur_arguments *box, int32_t x, int32_t y, int32_t channel)
{
	struct wr_image image = box->image;
	uint32_t sum = 0;

	for (int32_t v = y - box->radius; v <= y + box->radius; v++)
		for (int32_t u = x - box->radius; u <= x + box->radius; u++)
			sum += box->from[(wr_pixel_clamp(v, image.height) * image.width +
					  wr_pixel_clamp(u, image.width)) *
						 image.channels +
					 channel];
	return sum;
}

static void blur(const void *arguments, uint8_t *to)
{
	const struct wr_blur_arguments *box = arguments;
	uint32_t side = 2 * (uint32_t)box->radius + 1;

	for (int32_t y = 0; y < box->image.height; y++)
		for (int32_t x = 0; x < box->image.width; x++)
			for (int32_t c = 0; c < box->image.channels; c++)
				*to++ = wr_pixel_mean(box_sum(box, x, y, c), side * side);
}

static void sobel(const void *arguments, uint8_t *to)
{
	const struct wr_sobel_arguments *edges = arguments;

	for (int32_t y = 0; y < edges->image.height; y++)
		for (int32_t x = 0; x < edges->image.width; x++)
			*to++ = wr_pixel_sobel(edges->from, edges->image, x, y);
}

static void convert(const void *arguments, uint8_t *to)
{
	struct wr_convert_arguments job = *(const struct wr_convert_arguments *)arguments;

	job.to = to;
	for (int32_t y = 0; y < job.height; y += 2)
		for (int32_t x = 0; x < job.width; x += 2)
			wr_convert_block(&job, job.from_format, job.to_format, x, y);
}

static uint8_t mixed(const struct wr_resize_arguments *job, int32_t x, int32_t y, int32_t channel)
{
	struct wr_resize_tap across = wr_resize_tap_of(x - job->left, job->image.width, job->inner_width);
	struct wr_resize_tap down = wr_resize_tap_of(y - job->top, job->image.height, job->inner_height);
	int32_t channels = job->image.channels, pitch = job->image.width * channels;
	const uint8_t *above = job->from + down.first * pitch + channel;
	const uint8_t *below = job->from + down.second * pitch + channel;
	int32_t first = across.first * channels, second = across.second * channels;

	return wr_resize_mix_columns(wr_resize_mix_rows(above[first], below[first], down.part),
				     wr_resize_mix_rows(above[second], below[second], down.part),
				     across.part);
}

static void resize(const void *arguments, uint8_t *to)
{
	const struct wr_resize_arguments *job = arguments;

	for (int32_t y = 0; y < job->height; y++)
		for (int32_t x = 0; x < job->width; x++)
			for (int32_t c = 0; c < job->image.channels; c++)
				*to++ = wr_resize_inside(job, x, y) ? mixed(job, x, y, c) : job->fill[c];
}

/* --- both on one image --- */

static int drawn(int least, int most)
{
	return least + rand() % (most - least + 1);
}

/* One pixel in some cases; else small, or one side longer than any strip. */
static void draw_size(int *height, int *width)
{
	int kind = drawn(0, 9);

	*height = kind == 0 ? 1 : drawn(1, 12);
	*width = kind == 1 ? 1 : kind < 7 ? drawn(1, 80) : drawn(200, 2600);
	if (kind == 9) {
		int side = *height;

		*height = *width;
		*width = side;
	}
}

static void compare(const weir_operator *kind, const char *parameters, weir_message *in, device_form *device)
{
	struct rig rig;
	uint8_t *wanted;
	size_t bytes;

	rig_start(&rig, kind, parameters);
	rig_give(&rig, weir_message_ref(in));
	assert_int_equal(rig_tick(&rig), WEIR_OK);
	bytes = weir_message_size(rig.context.out[0]);
	wanted = malloc(bytes);
	assert_non_null(wanted);
	device(rig.context.launched, wanted);
	if (memcmp(wanted, weir_message_data(rig.context.out[0]), bytes))
		fail_msg("%s %s of %d x %d x %d", kind->name, parameters, (int)in->shape[0],
			 (int)in->shape[1], (int)in->shape[2]);
	free(wanted);
	weir_message_unref(in);
	rig_stop(&rig);
}

/* Random bytes, or few levels: sums at their bounds. */
static weir_message *draw_image(int height, int width, int channels)
{
	weir_message *image = rig_image(RIG_DEVICE, height, width, channels);
	uint8_t *data = weir_message_data(image);
	int levels = drawn(0, 2), level = drawn(0, 1) * 255;

	for (size_t i = 0; i < weir_message_size(image); i++)
		data[i] = (uint8_t)(!levels ? level : levels == 1 ? drawn(0, 1) * 255 : drawn(0, 255));
	return image;
}

static void blur_on_host_is_blur_on_the_device(void **state)
{
	(void)state;
	srand(1);
	for (int i = 0; i < 150; i++) {
		int height, width, radius = drawn(0, 2) ? drawn(0, 9) : drawn(10, 64);
		char parameters[32];

		draw_size(&height, &width);
		if (radius > 9 && width > 80)
			height = 1;
		snprintf(parameters, sizeof parameters, "radius=%d", radius);
		compare(&wr_blur, parameters, draw_image(height, width, drawn(1, 4)), blur);
	}
}

static void sobel_on_host_is_sobel_on_the_device(void **state)
{
	(void)state;
	srand(2);
	for (int i = 0; i < 200; i++) {
		int height, width;

		draw_size(&height, &width);
		compare(&wr_sobel, "", draw_image(height, width, drawn(1, 4)), sobel);
	}
}

static void convert_on_host_is_convert_on_the_device(void **state)
{
	static const char *const names[] = {"rgb", "bgr", "rgba", "bgra", "gray", "nv12", "i420"};
	static const int channels[] = {3, 3, 4, 4, 1, 1, 1};

	(void)state;
	srand(3);
	for (int i = 0; i < 20 * 49; i++) {
		int from = i % 7, to = i / 7 % 7, height, width;
		char parameters[64];

		if (from == to)
			continue;
		draw_size(&height, &width);
		if (from > 4 || to > 4)
			height *= from > 4 ? 3 : 2, width *= 2;
		snprintf(parameters, sizeof parameters, "from=%s to=%s matrix=%s", names[from], names[to],
			 drawn(0, 1) ? "bt601" : "bt709");
		compare(&wr_convert, parameters, draw_image(height, width, channels[from]), convert);
	}
}

static void resize_on_host_is_resize_on_the_device(void **state)
{
	(void)state;
	srand(4);
	for (int i = 0; i < 300; i++) {
		int height, width, to_height, to_width;
		char parameters[96];
		int fill = drawn(0, 255);

		draw_size(&height, &width);
		draw_size(&to_height, &to_width);
		snprintf(parameters, sizeof parameters, "width=%d height=%d letterbox=%s fill=[%d]", to_width,
			 to_height, drawn(0, 1) ? "true" : "false", fill);
		compare(&wr_resize, parameters, draw_image(height, width, drawn(1, 4)), resize);
	}
}

static int nothing_left(void **state)
{
	(void)state;
	return rig_messages() != 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blur_on_host_is_blur_on_the_device),
		cmocka_unit_test(sobel_on_host_is_sobel_on_the_device),
		cmocka_unit_test(convert_on_host_is_convert_on_the_device),
		cmocka_unit_test(resize_on_host_is_resize_on_the_device),
	};

	return cmocka_run_group_tests(tests, NULL, nothing_left);
}

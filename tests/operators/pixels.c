/* blur and sobel compared with plain references, one pixel at a time, that share nothing with the kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "operators/operators.h"
#include "tests/operators/rig.h"

struct size {
	int height, width, channels;
};

static const struct size sizes[] = {
	{1, 1, 1}, {1, 1, 3},   {1, 9, 3},   {9, 1, 4},   {2, 2, 2},   {3, 5, 3},
	{7, 8, 1}, {5, 256, 1}, {4, 257, 3}, {3, 520, 4}, {200, 3, 1},
};

static int at(const uint8_t *data, struct size size, int y, int x, int channel)
{
	y = y < 0 ? 0 : y >= size.height ? size.height - 1 : y;
	x = x < 0 ? 0 : x >= size.width ? size.width - 1 : x;
	return data[(y * size.width + x) * size.channels + channel];
}

static int blurred(const uint8_t *data, struct size size, int y, int x, int channel, int radius)
{
	int n = (2 * radius + 1) * (2 * radius + 1), sum = 0;

	for (int dy = -radius; dy <= radius; dy++)
		for (int dx = -radius; dx <= radius; dx++)
			sum += at(data, size, y + dy, x + dx, channel);
	return (sum + n / 2) / n;
}

static int luma(const uint8_t *data, struct size size, int y, int x)
{
	if (size.channels < 3)
		return at(data, size, y, x, 0);
	return (77 * at(data, size, y, x, 0) + 150 * at(data, size, y, x, 1) + 29 * at(data, size, y, x, 2) +
		128) /
	       256;
}

static int edge(const uint8_t *data, struct size size, int y, int x)
{
	static const int kernel[3][3] = {{-1, 0, 1}, {-2, 0, 2}, {-1, 0, 1}};
	int gx = 0, gy = 0, length;

	for (int j = 0; j < 3; j++)
		for (int i = 0; i < 3; i++) {
			gx += kernel[j][i] * luma(data, size, y + j - 1, x + i - 1);
			gy += kernel[i][j] * luma(data, size, y + j - 1, x + i - 1);
		}
	length = (gx < 0 ? -gx : gx) + (gy < 0 ? -gy : gy);
	return length > 255 ? 255 : length;
}

static void compare_blur(struct size size, int radius)
{
	char parameters[32];
	struct rig rig;
	weir_message *in = rig_image(RIG_DEVICE, size.height, size.width, size.channels);
	const uint8_t *out;

	snprintf(parameters, sizeof parameters, "radius=%d", radius);
	rig_start(&rig, &wr_blur, parameters);
	rig_give(&rig, weir_message_ref(in));
	assert_int_equal(rig_tick(&rig), WEIR_OK);
	assert_int_equal(weir_message_size(rig.context.out[0]), weir_message_size(in));
	out = weir_message_data(rig.context.out[0]);
	for (int y = 0; y < size.height; y++)
		for (int x = 0; x < size.width; x++)
			for (int c = 0; c < size.channels; c++)
				assert_int_equal(*out++,
						 blurred(weir_message_data(in), size, y, x, c, radius));
	weir_message_unref(in);
	rig_stop(&rig);
}

static void compare_sobel(struct size size)
{
	struct rig rig;
	weir_message *in = rig_image(RIG_DEVICE, size.height, size.width, size.channels);
	const uint8_t *out;

	rig_start(&rig, &wr_sobel, "");
	rig_give(&rig, weir_message_ref(in));
	assert_int_equal(rig_tick(&rig), WEIR_OK);
	assert_int_equal(weir_message_size(rig.context.out[0]), size.height * size.width);
	out = weir_message_data(rig.context.out[0]);
	for (int y = 0; y < size.height; y++)
		for (int x = 0; x < size.width; x++)
			assert_int_equal(*out++, edge(weir_message_data(in), size, y, x));
	weir_message_unref(in);
	rig_stop(&rig);
}

static void blur_is_the_mean_of_the_box_with_halves_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (int radius = 0; radius <= 3; radius++)
			compare_blur(sizes[i], radius);
}

static void blur_with_a_radius_beyond_the_image(void **state)
{
	(void)state;
	compare_blur((struct size){1, 1, 1}, 64);
	compare_blur((struct size){3, 5, 3}, 64);
	compare_blur((struct size){2, 300, 1}, 63);
}

/* The middle pixel of a square that its box just covers: the sums below and above each half. */
static void blur_rounds_each_half_up(int radius)
{
	int side = 2 * radius + 1, n = side * side;
	char parameters[32];
	struct rig rig;

	snprintf(parameters, sizeof parameters, "radius=%d", radius);
	rig_start(&rig, &wr_blur, parameters);
	for (int i = 0; i < 2 * 255; i++) {
		int level = i / 2,
		    sum = level * n + n / 2 + i % 2; /* n is odd: level + 1/2 is between them */
		weir_message *in = rig_image(RIG_DEVICE, side, side, 1);
		uint8_t *data = weir_message_data(in);

		for (int k = 0; k < n; k++)
			data[k] = (uint8_t)(sum / n + (k < sum % n));
		rig_give(&rig, in);
		assert_int_equal(rig_tick(&rig), WEIR_OK);
		data = weir_message_data(rig.context.out[0]);
		assert_int_equal(data[n / 2], level + i % 2);
	}
	rig_stop(&rig);
}

static void blur_rounds_halves_up_at_each_level(void **state)
{
	(void)state;
	for (int radius = 1; radius <= 9; radius++)
		blur_rounds_each_half_up(radius);
	blur_rounds_each_half_up(32);
	blur_rounds_each_half_up(64);
}

static void blur_of_white_stays_white(void **state)
{
	struct rig rig;
	weir_message *in = rig_image(RIG_DEVICE, 40, 30, 3);

	(void)state;
	memset(weir_message_data(in), 255, weir_message_size(in));
	rig_start(&rig, &wr_blur, "radius=64");
	rig_give(&rig, weir_message_ref(in));
	assert_int_equal(rig_tick(&rig), WEIR_OK);
	assert_memory_equal(weir_message_data(rig.context.out[0]), weir_message_data(in),
			    weir_message_size(in));
	weir_message_unref(in);
	rig_stop(&rig);
}

static void sobel_is_the_sum_of_both_gradients_of_luma(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		compare_sobel(sizes[i]);
}

static int nothing_left(void **state)
{
	(void)state;
	return rig_messages() != 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blur_is_the_mean_of_the_box_with_halves_up),
		cmocka_unit_test(blur_with_a_radius_beyond_the_image),
		cmocka_unit_test(blur_rounds_halves_up_at_each_level),
		cmocka_unit_test(blur_of_white_stays_white),
		cmocka_unit_test(sobel_is_the_sum_of_both_gradients_of_luma),
	};

	return cmocka_run_group_tests(tests, NULL, nothing_left);
}

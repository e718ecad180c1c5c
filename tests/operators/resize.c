/*
 * resize compared with its formula at one pixel at a time, with bilinear interpolation in double, and with
 * pictures that a program in another language made by the formula.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "operators/operators.h"
#include "tests/operators/rig.h"

struct size {
	int height, width;
};

/* --- the formula --- */

struct tap {
	int64_t first, second, part;
};

static struct tap tap_of(int64_t i, int64_t from, int64_t to)
{
	int64_t position = ((2 * i + 1) * from - to) * 2048 + to;
	struct tap tap;

	position = position < 0 ? 0 : position / (2 * to);
	position = position > (from - 1) * 2048 ? (from - 1) * 2048 : position;
	tap.first = position / 2048;
	tap.second = tap.first + 1 < from ? tap.first + 1 : from - 1;
	tap.part = position % 2048;
	return tap;
}

static int by_formula(const weir_message *from, int c, struct tap across, struct tap down)
{
	const uint8_t *data = weir_message_data(from);
	int64_t width = from->shape[1], channels = from->shape[2];
	int64_t mixed[2];

	for (int side = 0; side < 2; side++) {
		int64_t x = side ? across.second : across.first;
		int64_t above = data[(down.first * width + x) * channels + c];
		int64_t below = data[(down.second * width + x) * channels + c];

		mixed[side] = (above * (2048 - down.part) + below * down.part + 8) / 16;
	}
	return (int)((mixed[0] * (2048 - across.part) + mixed[1] * across.part + 131072) / 262144);
}

/* --- in double --- */

static double level_at(const weir_message *from, double y, double x, int c)
{
	const uint8_t *data = weir_message_data(from);
	int64_t height = from->shape[0], width = from->shape[1], channels = from->shape[2];

	y = fmin(fmax(y, 0), (double)height - 1);
	x = fmin(fmax(x, 0), (double)width - 1);
	return data[((int64_t)y * width + (int64_t)x) * channels + c];
}

static double interpolated(const weir_message *from, double y, double x, int c)
{
	double top = floor(y), left = floor(x), down = y - top, across = x - left;

	return (level_at(from, top, left, c) * (1 - across) + level_at(from, top, left + 1, c) * across) *
		       (1 - down) +
	       (level_at(from, top + 1, left, c) * (1 - across) +
		level_at(from, top + 1, left + 1, c) * across) *
		       down;
}

/* --- both --- */

/* Parts are rounded to 4096ths of a level's difference in both directions, rows to 256ths, the result to 1/2.
 */
static const double BOUND = 0.5 + 2 * 255 / 4096.0 + 1 / 256.0;

static weir_message *resized(struct rig *rig, const weir_message *from, const char *parameters)
{
	rig_start(rig, &wr_resize, parameters);
	assert_int_equal(rig->started, WEIR_OK);
	rig_give(rig, weir_message_ref((weir_message *)from));
	assert_int_equal(rig_tick(rig), WEIR_OK);
	assert_int_equal(rig->context.out_count, 1);
	assert_int_equal(rig->context.faults, 0);
	return rig->context.out[0];
}

static void compare_pixels(const weir_message *from, const weir_message *to)
{
	const uint8_t *at = weir_message_data(to);

	for (int64_t y = 0; y < to->shape[0]; y++)
		for (int64_t x = 0; x < to->shape[1]; x++) {
			struct tap across = tap_of(x, from->shape[1], to->shape[1]);
			struct tap down = tap_of(y, from->shape[0], to->shape[0]);
			double v = ((double)y + 0.5) * (double)from->shape[0] / (double)to->shape[0] - 0.5;
			double u = ((double)x + 0.5) * (double)from->shape[1] / (double)to->shape[1] - 0.5;

			for (int c = 0; c < from->shape[2]; c++, at++) {
				assert_int_equal(*at, by_formula(from, c, across, down));
				assert_true(fabs(*at - interpolated(from, v, u, c)) <= BOUND);
			}
		}
}

static void compare(struct size from, struct size to, int channels)
{
	weir_message *in = rig_image(RIG_DEVICE, from.height, from.width, channels), *out;
	char parameters[64];
	struct rig rig;

	snprintf(parameters, sizeof parameters, "width=%d height=%d", to.width, to.height);
	out = resized(&rig, in, parameters);
	assert_int_equal(out->tensor.dimensions, 3);
	assert_int_equal(weir_message_size(out), to.height * to.width * channels);
	compare_pixels(in, out);
	weir_message_unref(in);
	rig_stop(&rig);
}

static void resize_is_bilinear_between_pixel_centers(void **state)
{
	static const struct size sizes[] = {{1, 1}, {1, 9}, {8, 1}, {2, 2}, {3, 5}, {7, 8}, {20, 31}};

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++)
			for (int channels = 1; channels <= 4; channels++)
				compare(sizes[i], sizes[j], channels);
}

/* The host form works in strips of 1024 values, in another way if the source is more than four times as wide.
 */
static void resize_of_wide_pictures(void **state)
{
	static const int widths[] = {1, 128, 255, 256, 257, 512, 513, 700, 1024, 1100};

	(void)state;
	for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
		for (size_t j = 0; j < sizeof widths / sizeof *widths; j++)
			compare((struct size){3, widths[i]}, (struct size){2, widths[j]},
				1 + (int)(i + j) % 4);
}

static void resize_of_the_longest_rows(void **state)
{
	(void)state;
	compare((struct size){1, 1 << 20}, (struct size){1, 5}, 1);
	compare((struct size){1, 5}, (struct size){1, 1 << 18}, 1);
	compare((struct size){1 << 20, 1}, (struct size){5, 1}, 1);
	compare((struct size){1, 1 << 20}, (struct size){1, (1 << 20) - 1}, 1);
}

static void resize_to_the_same_size_changes_nothing(void **state)
{
	weir_message *in = rig_image(RIG_DEVICE, 19, 300, 3), *out;
	struct rig rig;

	(void)state;
	out = resized(&rig, in, "width=300 height=19 letterbox=true");
	assert_memory_equal(weir_message_data(out), weir_message_data(in), weir_message_size(in));
	weir_message_unref(in);
	rig_stop(&rig);
}

static void compare_golden(struct size from, int channels, const char *parameters, const uint8_t *golden,
			   size_t bytes)
{
	static const uint8_t levels[] = {0, 255, 10, 200, 40, 80, 120, 160, 255, 0, 255, 0};
	weir_message *in = rig_image(RIG_DEVICE, from.height, from.width, channels), *out;
	struct rig rig;

	memcpy(weir_message_data(in), levels, sizeof levels);
	out = resized(&rig, in, parameters);
	assert_int_equal(weir_message_size(out), bytes);
	assert_memory_equal(weir_message_data(out), golden, bytes);
	weir_message_unref(in);
	rig_stop(&rig);
}

static void resize_gives_these_bytes(void **state)
{
	static const uint8_t smaller[] = {44, 124, 165, 171, 121, 70};
	static const uint8_t larger[] = {0,   91,  237, 133, 24,  132, 200, 16,  76,  173, 120, 63,
					 138, 184, 40,  54,  77,  100, 123, 146, 160, 169, 120, 42,
					 117, 191, 113, 64,  255, 164, 18,  128, 237, 91,  0};
	static const uint8_t two_channels[] = {10, 211, 24, 201, 38, 190, 201, 20, 211, 30, 221, 40};

	(void)state;
	compare_golden((struct size){3, 4}, 1, "width=3 height=2", smaller, sizeof smaller);
	compare_golden((struct size){3, 4}, 1, "width=7 height=5", larger, sizeof larger);
	compare_golden((struct size){3, 2}, 2, "width=3 height=2", two_channels, sizeof two_channels);
}

/* --- letterbox --- */

struct place {
	struct size from, to;
	int top, left, height, width; /* of the picture in the result */
};

/* The rest is 114; the picture is as a resize to its own size gives it. */
static void compare_letterbox(const struct place *place)
{
	weir_message *in = rig_image(RIG_DEVICE, place->from.height, place->from.width, 3), *out, *inner;
	char text[96];
	struct rig rig, alone;
	const uint8_t *at;

	snprintf(text, sizeof text, "width=%d height=%d letterbox=true fill=[114,115,116]", place->to.width,
		 place->to.height);
	out = resized(&rig, in, text);
	snprintf(text, sizeof text, "width=%d height=%d", place->width, place->height);
	inner = resized(&alone, in, text);
	at = weir_message_data(out);
	for (int y = 0; y < place->to.height; y++)
		for (int x = 0; x < place->to.width; x++)
			for (int c = 0; c < 3; c++, at++) {
				int v = y - place->top, u = x - place->left;
				bool inside = v >= 0 && v < place->height && u >= 0 && u < place->width;
				const uint8_t *levels = weir_message_data(inner);

				assert_int_equal(*at,
						 inside ? levels[(v * place->width + u) * 3 + c] : 114 + c);
			}
	weir_message_unref(in);
	rig_stop(&rig);
	rig_stop(&alone);
}

static void a_letterbox_keeps_the_ratio_and_fills_the_rest(void **state)
{
	static const struct place places[] = {
		{{9, 16}, {16, 16}, 3, 0, 9, 16}, /* as wide: 7 rows remain, 3 above */
		{{18, 32}, {16, 16}, 3, 0, 9, 16},
		{{32, 9}, {16, 16}, 0, 5, 16, 5}, /* 4.5 columns, rounded up */
		{{10, 10}, {7, 7}, 0, 0, 7, 7},
		{{1, 1}, {5, 3}, 1, 0, 3, 3},      /* larger */
		{{1, 1000}, {4, 10}, 1, 0, 1, 10}, /* at least one row */
		{{1000, 1}, {10, 4}, 0, 1, 10, 1},
		{{3, 7}, {600, 600}, 171, 0, 257, 600},
	};

	(void)state;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		compare_letterbox(&places[i]);
}

/* --- what is refused --- */

static void a_colour_that_no_pixel_has_is_refused(void **state)
{
	static const char *const wrong[] = {"fill=[-1]", "fill=[256]", "fill=[0,1.5]", "fill=1e99"};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		char text[64];
		struct rig rig;

		snprintf(text, sizeof text, "width=1 height=1 %s", wrong[i]);
		rig_start(&rig, &wr_resize, text);
		assert_int_equal(rig.started, WEIR_E_FAILED);
		assert_non_null(strstr(rig.context.text, "must have integers from 0 to 255"));
		rig_stop(&rig);
	}
}

static void refused(weir_message *message, const char *parameters, const char *text)
{
	struct rig rig;

	rig_start(&rig, &wr_resize, parameters);
	rig_give(&rig, message);
	assert_int_equal(rig_tick(&rig), WEIR_E_FAILED);
	assert_non_null(strstr(rig.context.text, text));
	assert_int_equal(rig.context.out_count, 0);
	rig_stop(&rig);
}

static void e06_a_wrong_image_gets_a_line(void **state)
{
	(void)state;
	refused(rig_image(WEIR_DEVICE_HOST, 2, 2, 3), "width=4 height=4", "put an 'upload' before it");
	refused(rig_image(RIG_DEVICE, 2, 2, 5), "width=4 height=4", "got uint8 [2, 2, 5]");
	refused(rig_bytes(12), "width=4 height=4", "got a message without a tensor");
	refused(rig_image(RIG_DEVICE, 2, 2, 1), "width=4 height=4 fill=[1,2,3]",
		"fill has 3 numbers, but input 'in' is uint8 [2, 2, 1] on device 3");
}

static void an_image_of_two_dimensions_stays_one(void **state)
{
	weir_message *in = rig_image(RIG_DEVICE, 4, 6, 1), *out;
	struct rig rig;

	(void)state;
	in->tensor.dimensions = 2;
	out = resized(&rig, in, "width=3 height=2");
	assert_int_equal(out->tensor.dimensions, 2);
	assert_int_equal(weir_message_size(out), 6);
	weir_message_unref(in);
	rig_stop(&rig);
}

static void what_fails_leaves_no_message(void **state)
{
	(void)state;
	for (int launch = 0; launch < 2; launch++) {
		struct rig rig;

		rig_start(&rig, &wr_resize, "width=4 height=4");
		rig.context.fails_to_launch = launch;
		rig.context.fails_to_allocate = !launch;
		rig_give(&rig, rig_image(RIG_DEVICE, 2, 2, 3));
		assert_int_equal(rig_tick(&rig), launch ? WEIR_E_DEVICE : WEIR_E_NOMEM);
		assert_int_equal(rig.context.out_count, 0);
		rig_stop(&rig);
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
		cmocka_unit_test(resize_is_bilinear_between_pixel_centers),
		cmocka_unit_test(resize_of_wide_pictures),
		cmocka_unit_test(resize_of_the_longest_rows),
		cmocka_unit_test(resize_to_the_same_size_changes_nothing),
		cmocka_unit_test(resize_gives_these_bytes),
		cmocka_unit_test(a_letterbox_keeps_the_ratio_and_fills_the_rest),
		cmocka_unit_test(a_colour_that_no_pixel_has_is_refused),
		cmocka_unit_test(e06_a_wrong_image_gets_a_line),
		cmocka_unit_test(an_image_of_two_dimensions_stays_one),
		cmocka_unit_test(what_fails_leaves_no_message),
	};

	return cmocka_run_group_tests(tests, NULL, nothing_left);
}

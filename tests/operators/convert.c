/*
 * convert compared with the definitions of BT.601 and BT.709 in double, and with bytes that a program in
 * another language made by its formulas.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "operators/operators.h"
#include "tests/operators/rig.h"

struct matrix {
	const char *name;
	double red, blue; /* of luma */
};
static const struct matrix matrices[] = {{"bt601", 0.299, 0.114}, {"bt709", 0.2126, 0.0722}};

struct colour {
	double r, g, b, a;
};

static weir_message *converted(struct rig *rig, const weir_message *from, const char *names,
			       const char *matrix)
{
	char text[64], to[8] = "", first[8] = "";

	sscanf(names, "%7[a-z0-9] %7[a-z0-9]", first, to);
	snprintf(text, sizeof text, "from=%s to=%s matrix=%s", first, to, matrix);
	rig_start(rig, &wr_convert, text);
	assert_int_equal(rig->started, WEIR_OK);
	rig_give(rig, weir_message_ref((weir_message *)from));
	assert_int_equal(rig_tick(rig), WEIR_OK);
	assert_int_equal(rig->context.out_count, 1);
	return rig->context.out[0];
}

/* --- colours of a format --- */

static int channels_of(const char *name)
{
	return !strcmp(name, "gray") || strpbrk(name, "0123456789") ? 1 : (int)strlen(name);
}

static struct colour colour_at(const weir_message *image, const char *name, int y, int x)
{
	const uint8_t *at =
		(const uint8_t *)weir_message_data(image) + (y * image->shape[1] + x) * channels_of(name);
	struct colour colour = {at[0], at[0], at[0], 255};

	for (int c = 0; channels_of(name) > 1 && name[c]; c++)
		*(name[c] == 'r'   ? &colour.r
		  : name[c] == 'g' ? &colour.g
		  : name[c] == 'b' ? &colour.b
				   : &colour.a) = at[c];
	return colour;
}

static double luma(const struct matrix *matrix, struct colour colour)
{
	return matrix->red * colour.r + (1 - matrix->red - matrix->blue) * colour.g + matrix->blue * colour.b;
}

static void assert_near(double found, double wanted, double bound)
{
	wanted = fmin(fmax(wanted, 0), 255);
	if (fabs(found - wanted) > bound)
		fail_msg("found %g, wanted %g", found, wanted);
}

/* --- between formats of whole pixels --- */

static void compare_pixels(const char *from, const char *to, int height, int width)
{
	weir_message *in = rig_image(RIG_DEVICE, height, width, channels_of(from)), *out;
	char names[32];
	struct rig rig;

	snprintf(names, sizeof names, "%s %s", from, to);
	out = converted(&rig, in, names, "bt601");
	assert_int_equal(weir_message_size(out), height * width * channels_of(to));
	assert_int_equal(out->shape[2], channels_of(to));
	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++) {
			struct colour wanted = colour_at(in, from, y, x), found = colour_at(out, to, y, x);

			if (!strcmp(to, "gray")) {
				assert_near(found.r, luma(&matrices[0], wanted), 1.01);
				continue;
			}
			assert_true(found.r == wanted.r && found.g == wanted.g && found.b == wanted.b);
			assert_true(found.a == (channels_of(to) == 4 ? wanted.a : 255));
		}
	weir_message_unref(in);
	rig_stop(&rig);
}

static void each_format_of_pixels_becomes_each_other(void **state)
{
	static const char *const names[] = {"rgb", "bgr", "rgba", "bgra", "gray"};

	(void)state;
	for (int from = 0; from < 5; from++)
		for (int to = 0; to < 5; to++) {
			if (from == to)
				continue;
			compare_pixels(names[from], names[to], 1, 1);
			compare_pixels(names[from], names[to], 1, 8);
			compare_pixels(names[from], names[to], 7, 1);
			compare_pixels(names[from], names[to], 5, 9);
		}
}

/* --- nv12 and i420 --- */

static struct colour chroma_at(const weir_message *image, const char *format, int height, int y, int x)
{
	int64_t width = image->shape[1];
	const uint8_t *chroma = (const uint8_t *)weir_message_data(image) + height * width;
	const uint8_t *u = chroma + y / 2 * width + x / 2 * 2, *v = u + 1;

	if (!strcmp(format, "i420")) {
		u = chroma + y / 2 * width / 2 + x / 2;
		v = u + height * width / 4;
	}
	return (struct colour){.b = *u - 128, .r = *v - 128};
}

/* The first pixels take each corner of the cube of colours. */
static weir_message *colourful(int height, int width, int channels)
{
	weir_message *image = rig_image(RIG_DEVICE, height, width, channels);
	uint8_t *data = weir_message_data(image);

	for (int i = 0; i < 32 && i < height * width; i++)
		for (int c = 0; c < channels; c++)
			data[i * channels + c] = i / 4 >> c & 1 ? 255 : 0;
	return image;
}

static void compare_to_yuv(const struct matrix *matrix, const char *from, const char *to, int height,
			   int width)
{
	weir_message *in = colourful(height, width, channels_of(from)), *out;
	char names[32];
	struct rig rig;

	snprintf(names, sizeof names, "%s %s", from, to);
	out = converted(&rig, in, names, matrix->name);
	assert_int_equal(out->shape[0], height * 3 / 2);
	assert_int_equal(out->shape[1], width);
	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++) {
			struct colour sum = {0}, pixel = colour_at(in, from, y, x), chroma;

			assert_near(colour_at(out, to, y, x).r, 16 + 219 * luma(matrix, pixel) / 255, 0.51);
			for (int i = 0; i < 4; i++) {
				pixel = colour_at(in, from, y / 2 * 2 + i / 2, x / 2 * 2 + i % 2);
				sum.r += pixel.r / 4;
				sum.g += pixel.g / 4;
				sum.b += pixel.b / 4;
			}
			chroma = chroma_at(out, to, height, y, x);
			assert_near(128 + chroma.b,
				    128 + 224 * (sum.b - luma(matrix, sum)) / (2 * (1 - matrix->blue)) / 255,
				    0.51);
			assert_near(128 + chroma.r,
				    128 + 224 * (sum.r - luma(matrix, sum)) / (2 * (1 - matrix->red)) / 255,
				    0.51);
		}
	weir_message_unref(in);
	rig_stop(&rig);
}

static void compare_from_yuv(const struct matrix *matrix, const char *from, const char *to, int height,
			     int width)
{
	weir_message *in = colourful(height * 3 / 2, width, 1), *out;
	double green = 1 - matrix->red - matrix->blue;
	char names[32];
	struct rig rig;

	snprintf(names, sizeof names, "%s %s", from, to);
	out = converted(&rig, in, names, matrix->name);
	assert_int_equal(weir_message_size(out), height * width * channels_of(to));
	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++) {
			struct colour chroma = chroma_at(in, from, height, y, x),
				      found = colour_at(out, to, y, x);
			double grey = (colour_at(in, from, y, x).r - 16) * 255 / 219;
			double red = chroma.r * 255 / 224 * 2 * (1 - matrix->red);
			double blue = chroma.b * 255 / 224 * 2 * (1 - matrix->blue);

			if (!strcmp(to, "gray"))
				red = blue = 0;
			assert_near(found.r, grey + red, 0.51);
			assert_near(found.b, grey + blue, 0.51);
			assert_near(found.g, grey - (matrix->red * red + matrix->blue * blue) / green, 0.51);
			assert_true(found.a == 255);
		}
	weir_message_unref(in);
	rig_stop(&rig);
}

static void compare_yuv(const struct matrix *matrix, const char *yuv, const char *name)
{
	static const int sizes[][2] = {{2, 2}, {6, 10}, {64, 128}};

	for (int i = 0; i < 3; i++) {
		compare_to_yuv(matrix, name, yuv, sizes[i][0], sizes[i][1]);
		compare_from_yuv(matrix, yuv, name, sizes[i][0], sizes[i][1]);
	}
}

static void nv12_and_i420_have_the_luma_of_pixels_and_the_chroma_of_four(void **state)
{
	static const char *const names[] = {"rgb", "bgr", "rgba", "bgra", "gray"};

	(void)state;
	for (int m = 0; m < 2; m++)
		for (int i = 0; i < 5; i++) {
			compare_yuv(&matrices[m], "nv12", names[i]);
			compare_yuv(&matrices[m], "i420", names[i]);
		}
}

static void compare_moved(const char *from, const char *to, int height, int width)
{
	weir_message *in = rig_image(RIG_DEVICE, height * 3 / 2, width, 1), *out;
	char names[32];
	struct rig rig;

	snprintf(names, sizeof names, "%s %s", from, to);
	out = converted(&rig, in, names, "bt601");
	assert_int_equal(weir_message_size(out), weir_message_size(in));
	assert_memory_equal(weir_message_data(out), weir_message_data(in), (size_t)(height * width));
	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++) {
			struct colour a = chroma_at(in, from, height, y, x),
				      b = chroma_at(out, to, height, y, x);

			assert_true(a.b == b.b && a.r == b.r);
		}
	weir_message_unref(in);
	rig_stop(&rig);
}

static void between_nv12_and_i420_no_value_changes(void **state)
{
	(void)state;
	compare_moved("nv12", "i420", 2, 2);
	compare_moved("i420", "nv12", 6, 10);
	compare_moved("nv12", "i420", 64, 128);
}

static void black_white_and_grey_have_no_chroma(void **state)
{
	static const uint8_t levels[] = {0, 255, 100};
	static const uint8_t wanted[] = {16, 235, 102};

	(void)state;
	for (int i = 0; i < 3; i++) {
		weir_message *in = rig_image(RIG_DEVICE, 2, 2, 3), *out;
		const uint8_t *data;
		struct rig rig;

		memset(weir_message_data(in), levels[i], 12);
		out = converted(&rig, in, "rgb nv12", "bt709");
		data = weir_message_data(out);
		assert_true(data[0] == wanted[i] && data[3] == wanted[i]);
		assert_true(data[4] == 128 && data[5] == 128);
		weir_message_unref(in);
		rig_stop(&rig);
	}
}

static void compare_golden(const char *names, const char *matrix, const uint8_t *golden, size_t bytes,
			   int height, int channels)
{
	static const uint8_t levels[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 200, 100, 50};
	weir_message *in = rig_image(RIG_DEVICE, height, 2, channels), *out;
	struct rig rig;

	memcpy(weir_message_data(in), levels, weir_message_size(in));
	out = converted(&rig, in, names, matrix);
	assert_int_equal(weir_message_size(out), bytes);
	assert_memory_equal(weir_message_data(out), golden, bytes);
	weir_message_unref(in);
	rig_stop(&rig);
}

static void convert_gives_these_bytes(void **state)
{
	static const uint8_t nv12_bt601[] = {81, 145, 41, 123, 119, 140};
	static const uint8_t i420_bt601[] = {81, 145, 41, 123, 119, 140};
	static const uint8_t rgb_bt601[] = {74, 255, 255, 0, 36, 238, 0, 36, 238, 0, 36, 238};
	static const uint8_t gray_bt601[] = {77, 149, 29, 124};
	static const uint8_t nv12_bt709[] = {63, 173, 32, 117, 120, 139};
	static const uint8_t rgb_bt709[] = {49, 255, 255, 0, 23, 250, 0, 23, 250, 0, 23, 250};
	static const uint8_t gray_bt709[] = {54, 182, 19, 117};

	(void)state;
	compare_golden("rgb nv12", "bt601", nv12_bt601, sizeof nv12_bt601, 2, 3);
	compare_golden("rgb i420", "bt601", i420_bt601, sizeof i420_bt601, 2, 3);
	compare_golden("i420 rgb", "bt601", rgb_bt601, sizeof rgb_bt601, 3, 1);
	compare_golden("nv12 rgb", "bt601", rgb_bt601, sizeof rgb_bt601, 3, 1);
	compare_golden("rgb gray", "bt601", gray_bt601, sizeof gray_bt601, 2, 3);
	compare_golden("rgb nv12", "bt709", nv12_bt709, sizeof nv12_bt709, 2, 3);
	compare_golden("nv12 rgb", "bt709", rgb_bt709, sizeof rgb_bt709, 3, 1);
	compare_golden("rgb gray", "bt709", gray_bt709, sizeof gray_bt709, 2, 3);
}

/* --- what is refused --- */

static void refused(const char *parameters, weir_message *message, const char *text)
{
	struct rig rig;

	rig_start(&rig, &wr_convert, parameters);
	assert_int_equal(rig.started, WEIR_OK);
	rig_give(&rig, message);
	assert_int_equal(rig_tick(&rig), WEIR_E_FAILED);
	if (!strstr(rig.context.text, text))
		fail_msg("%s", rig.context.text);
	assert_int_equal(rig.context.out_count, 0);
	rig_stop(&rig);
}

static void e06_a_picture_of_another_format_gets_a_line(void **state)
{
	(void)state;
	refused("to=bgr", rig_image(RIG_DEVICE, 2, 2, 4),
		"input 'in' is uint8 [2, 2, 4] on device 3, but rgb has 3 channels: see 'from'");
	refused("from=gray to=bgr", rig_image(RIG_DEVICE, 2, 2, 3), "but gray has 1 channel:");
	refused("from=nv12 to=rgb", rig_image(RIG_DEVICE, 4, 2, 1), "but nv12 has height * 3 / 2 rows");
	refused("from=nv12 to=rgb", rig_image(RIG_DEVICE, 3, 3, 1), "but nv12 has height * 3 / 2 rows");
	refused("from=i420 to=nv12", rig_image(RIG_DEVICE, 4, 2, 1), "but i420 has height * 3 / 2 rows");
	refused("to=i420", rig_image(RIG_DEVICE, 3, 2, 3), "i420 needs an even height and width");
	refused("to=nv12", rig_image(RIG_DEVICE, 3, 2, 3), "nv12 needs an even height and width");
	refused("to=nv12", rig_image(RIG_DEVICE, 2, 3, 3), "nv12 needs an even height and width");
	refused("to=bgr", rig_image(WEIR_DEVICE_HOST, 2, 2, 3), "put an 'upload' before it");
}

static void the_same_format_twice_is_refused(void **state)
{
	struct rig rig;

	(void)state;
	rig_start(&rig, &wr_convert, "from=bgra to=bgra");
	assert_int_equal(rig.started, WEIR_E_FAILED);
	assert_non_null(strstr(rig.context.text, "from and to are both bgra"));
	rig_stop(&rig);
}

static int nothing_left(void **state)
{
	(void)state;
	return rig_messages() != 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_format_of_pixels_becomes_each_other),
		cmocka_unit_test(nv12_and_i420_have_the_luma_of_pixels_and_the_chroma_of_four),
		cmocka_unit_test(between_nv12_and_i420_no_value_changes),
		cmocka_unit_test(black_white_and_grey_have_no_chroma),
		cmocka_unit_test(convert_gives_these_bytes),
		cmocka_unit_test(e06_a_picture_of_another_format_gets_a_line),
		cmocka_unit_test(the_same_format_twice_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, nothing_left);
}

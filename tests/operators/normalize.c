/*
 * normalize compared with its formula, rounded by other means, and with bits that a program in another
 * language made by it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "operators/operators.h"
#include "tests/operators/rig.h"

struct numbers {
	double range, mean[4], std[4];
	int count; /* of mean and std: 1, or of the channels */
	const char *text;
};

static const struct numbers photographs = {255,
					   {0.485, 0.456, 0.406},
					   {0.229, 0.224, 0.225},
					   3,
					   "range=255 mean=[0.485,0.456,0.406] std=[0.229,0.224,0.225]"};

static weir_message *normalized(struct rig *rig, const weir_message *from, const char *parameters)
{
	rig_start(rig, &wr_normalize, parameters);
	assert_int_equal(rig->started, WEIR_OK);
	rig_give(rig, weir_message_ref((weir_message *)from));
	assert_int_equal(rig_tick(rig), WEIR_OK);
	assert_int_equal(rig->context.out_count, 1);
	return rig->context.out[0];
}

/* A type: its bits after the point, its least and its greatest exponent. */
static const struct format {
	const char *name;
	int code, digits, least, most;
} formats[] = {{"float32", 2, 23, -126, 127}, {"float16", 2, 10, -14, 15}, {"bfloat16", 4, 7, -126, 127}};

/* The nearest number of the format, ties to even. */
static double nearest_short(const struct format *format, double value)
{
	int exponent;
	double unit, nearest;

	frexp(value, &exponent);
	unit = ldexp(1, (exponent - 1 < format->least ? format->least : exponent - 1) - format->digits);
	nearest = nearbyint(value / unit) * unit;
	return fabs(nearest) >= ldexp(1, format->most + 1) ? copysign(HUGE_VAL, value) : nearest;
}

static double value_of_short(const struct format *format, uint16_t bits)
{
	int one = 1 << format->digits, exponent = (bits & 0x7fff) >> format->digits,
	    mantissa = bits & (one - 1);
	double size = exponent ? ldexp(one + mantissa, exponent - format->most - format->digits)
			       : ldexp(mantissa, format->least - format->digits);

	if (exponent > 2 * format->most)
		size = mantissa ? NAN : HUGE_VAL;
	return bits >> 15 ? -size : size;
}

static void compare(const struct numbers *numbers, int height, int width, int channels,
		    const struct format *format)
{
	weir_message *in = rig_image(RIG_DEVICE, height, width, channels), *out;
	const uint8_t *levels = weir_message_data(in);
	char text[160];
	struct rig rig;
	size_t at = 0;

	snprintf(text, sizeof text, "%s type=%s", numbers->text, format->name);
	out = normalized(&rig, in, text);
	assert_int_equal(weir_message_size(out), weir_message_size(in) * (format == formats ? 4 : 2));
	assert_int_equal(out->tensor.code, format->code);
	for (int c = 0; c < channels; c++)
		for (int i = 0; i < height * width; i++, at++) {
			int of = numbers->count == 1 ? 0 : c;
			double value = (levels[i * channels + c] / numbers->range - numbers->mean[of]) /
				       numbers->std[of];

			if (format != formats)
				assert_true(
					value_of_short(format, ((uint16_t *)weir_message_data(out))[at]) ==
					nearest_short(format, value));
			else
				assert_true(((float *)weir_message_data(out))[at] == (float)value);
		}
	weir_message_unref(in);
	rig_stop(&rig);
}

static void normalize_is_its_formula_rounded_once(void **state)
{
	static const struct numbers rows[] = {
		{255, {0}, {1}, 1, ""},
		{1, {127.5}, {127.5}, 1, "range=1 mean=127.5 std=[127.5]"},
		{1, {0}, {4e-3}, 1, "range=1 std=0.004"},    /* 16 bits: 255 is 63,750 */
		{1, {0}, {3.8e-3}, 1, "range=1 std=0.0038"}, /* more than 65,504 */
		{1, {0}, {3e8}, 1, "range=1 std=3e8"},       /* subnormal and less */
		{1, {0}, {3e40}, 1, "range=1 std=3e40"},     /* the same of bfloat16 */
		{1, {0}, {7e-37}, 1, "range=1 std=7e-37"},   /* more than it has */
		{-16, {100}, {-1e-3}, 1, "range=-16 mean=[100] std=[-1e-3]"},
		{255, {0.2}, {1e-6}, 1, "mean=0.2 std=0.000001"}, /* the difference cancels at 51 */
	};

	(void)state;
	for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
			for (int channels = 1; channels <= 4; channels++)
				compare(&rows[i], 31, 33, channels, &formats[f]);
		compare(&photographs, 1, 1, 3, &formats[f]);
		compare(&photographs, 1, 257, 3, &formats[f]);
		compare(&photographs, 65, 3, 3, &formats[f]);
	}
}

/* Values of 16 bits, and what lies between two of them: a tie, and its neighbours. */
static void compare_all(const struct format *format, int last)
{
	for (int bits = 0; bits < last; bits += 7) {
		double low = value_of_short(format, (uint16_t)bits);
		double high = value_of_short(format, (uint16_t)(bits + 1));
		double tie = (low + high) / 2;
		const double values[] = {low, nextafter(tie, 0), tie, nextafter(tie, HUGE_VAL)};

		for (size_t i = 0; i < 4; i++) {
			weir_message *in = rig_image(RIG_DEVICE, 1, 1, 1);
			char text[96];
			struct rig rig;

			/* level 1: (1 / 1 - (1 - v)) would round: the level 0 and a mean of -v is exact */
			*(uint8_t *)weir_message_data(in) = 0;
			snprintf(text, sizeof text, "range=1 mean=[%.17g] type=%s", -values[i], format->name);
			assert_true(value_of_short(format, *(uint16_t *)weir_message_data(
								   normalized(&rig, in, text))) ==
				    nearest_short(format, values[i]));
			weir_message_unref(in);
			rig_stop(&rig);
		}
	}
}

static void sixteen_bits_are_the_nearest_ties_to_even(void **state)
{
	(void)state;
	compare_all(&formats[1], 0x7bff);
	compare_all(&formats[2], 0x7f7f);
}

static void compare_golden(const char *parameters, const void *golden, size_t bytes)
{
	static const uint8_t levels[] = {0, 1, 51, 127, 128, 254, 255};
	weir_message *in = rig_image(RIG_DEVICE, 1, sizeof levels, 1), *out;
	struct rig rig;

	memcpy(weir_message_data(in), levels, sizeof levels);
	out = normalized(&rig, in, parameters);
	assert_int_equal(weir_message_size(out), bytes);
	assert_memory_equal(weir_message_data(out), golden, bytes);
	weir_message_unref(in);
	rig_stop(&rig);
}

static void normalize_gives_these_bits(void **state)
{
	static const uint32_t floats0[] = {0xc0078bbd, 0xc006732b, 0xbf9f4d23, 0x3d6939b7,
					   0x3d97af29, 0x400ed58b, 0x400fee1d};
	static const uint16_t halves0[] = {0xc03c, 0xc034, 0xbcfa, 0x2b4a, 0x2cbd, 0x4077, 0x407f};
	static const uint32_t floats1[] = {0xbf800000, 0xbf7dfdfe, 0xbf19999a, 0xbb808081,
					   0x3b808081, 0x3f7dfdfe, 0x3f800000};
	static const uint16_t halves1[] = {0xbc00, 0xbbf0, 0xb8cd, 0x9c04, 0x1c04, 0x3bf0, 0x3c00};
	static const uint32_t floats2[] = {0x00000000, 0x3165109f, 0x3436893f, 0x34e3467e,
					   0x34e5109f, 0x3563467e, 0x35642b8e};
	static const uint16_t halves2[] = {0x0000, 0x0000, 0x0003, 0x0007, 0x0007, 0x000e, 0x000e};
	static const uint32_t floats3[] = {0x00000000, 0x43839436, 0x4651b436, 0x47028d0d,
					   0x47039436, 0x47828d0d, 0x478310a2};
	static const uint16_t bfloats0[] = {0xc008, 0xc006, 0xbf9f, 0x3d69, 0x3d98, 0x400f, 0x4010};
	static const uint16_t bfloats1[] = {0xbf80, 0xbf7e, 0xbf1a, 0xbb81, 0x3b81, 0x3f7e, 0x3f80};
	static const uint16_t bfloats2[] = {0x0000, 0x0000, 0x0013, 0x002e, 0x002e, 0x005c, 0x005d};
	static const uint16_t bfloats3[] = {0x0000, 0x7b8a, 0x7e5b, 0x7f08, 0x7f0a, 0x7f80, 0x7f80};
	static const uint16_t halves3[] = {0x0000, 0x5c1d, 0x728e, 0x7814, 0x781d, 0x7c00, 0x7c00};

	(void)state;
	compare_golden("mean=[0.485] std=[0.229]", floats0, sizeof floats0);
	compare_golden("mean=[0.485] std=[0.229] type=float16", halves0, sizeof halves0);
	compare_golden("range=1 mean=127.5 std=127.5", floats1, sizeof floats1);
	compare_golden("range=1 mean=127.5 std=127.5 type=float16", halves1, sizeof halves1);
	compare_golden("range=1 std=3e8", floats2, sizeof floats2);
	compare_golden("range=1 std=3e8 type=float16", halves2, sizeof halves2);
	compare_golden("range=1 std=0.0038", floats3, sizeof floats3);
	compare_golden("range=1 std=0.0038 type=float16", halves3, sizeof halves3);
	compare_golden("mean=[0.485] std=[0.229] type=bfloat16", bfloats0, sizeof bfloats0);
	compare_golden("range=1 mean=127.5 std=127.5 type=bfloat16", bfloats1, sizeof bfloats1);
	compare_golden("range=1 std=3e40 type=bfloat16", bfloats2, sizeof bfloats2);
	compare_golden("range=1 std=7e-37 type=bfloat16", bfloats3, sizeof bfloats3);
}

static void the_result_is_a_batch_of_one_planar_image(void **state)
{
	weir_message *in = rig_image(RIG_DEVICE, 5, 7, 3), *out;
	struct rig rig;

	(void)state;
	out = normalized(&rig, in, "type=float16");
	assert_int_equal(out->tensor.dimensions, 4);
	assert_int_equal(out->tensor.code, 2);
	assert_int_equal(out->tensor.bits, 16);
	assert_true(out->shape[0] == 1 && out->shape[1] == 3 && out->shape[2] == 5 && out->shape[3] == 7);
	weir_message_unref(in);
	rig_stop(&rig);
}

static void a_division_by_zero_is_refused(void **state)
{
	static const char *const wrong[] = {"range=0", "std=[0]", "std=[1,0,1]"};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct rig rig;

		rig_start(&rig, &wr_normalize, wrong[i]);
		assert_int_equal(rig.started, WEIR_E_FAILED);
		assert_non_null(strstr(rig.context.text, "must be another number"));
		rig_stop(&rig);
	}
}

static void e06_numbers_that_do_not_fit_the_channels_get_a_line(void **state)
{
	static const char *const wrong[] = {"mean=[1,2,3]", "std=[1,2]"};
	static const char *const texts[] = {
		"mean has 3 numbers, but input 'in' is uint8 [2, 2, 4] on device 3",
		"std has 2 numbers, but"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct rig rig;

		rig_start(&rig, &wr_normalize, wrong[i]);
		rig_give(&rig, rig_image(RIG_DEVICE, 2, 2, 4));
		assert_int_equal(rig_tick(&rig), WEIR_E_FAILED);
		assert_non_null(strstr(rig.context.text, texts[i]));
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
		cmocka_unit_test(normalize_is_its_formula_rounded_once),
		cmocka_unit_test(sixteen_bits_are_the_nearest_ties_to_even),
		cmocka_unit_test(normalize_gives_these_bits),
		cmocka_unit_test(the_result_is_a_batch_of_one_planar_image),
		cmocka_unit_test(a_division_by_zero_is_refused),
		cmocka_unit_test(e06_numbers_that_do_not_fit_the_channels_get_a_line),
	};

	return cmocka_run_group_tests(tests, NULL, nothing_left);
}

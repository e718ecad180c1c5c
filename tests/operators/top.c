/* top compared with a sort of all scores, and its texts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "operators/operators.h"
#include "tests/operators/rig.h"

/* Scores in host memory: float32, or float16 as bits. */
static weir_message *scores(int64_t rows, int64_t classes, unsigned bits)
{
	weir_message *message = rig_image(WEIR_DEVICE_HOST, rows, classes, bits / 8);

	message->tensor.dimensions = 2;
	message->tensor.code = 2;
	message->tensor.bits = (uint8_t)bits;
	return message;
}

static weir_message *scores_of(const float *values, int64_t count)
{
	weir_message *message = scores(1, count, 32);

	memcpy(weir_message_data(message), values, (size_t)count * sizeof *values);
	return message;
}

static const weir_message *best(struct rig *rig, const char *parameters, weir_message *message)
{
	rig_start(rig, &wr_top, parameters);
	assert_int_equal(rig->started, WEIR_OK);
	rig_give(rig, message);
	assert_int_equal(rig_tick(rig), WEIR_OK);
	assert_int_equal(rig->context.out_count, 1);
	return rig->context.out[0];
}

static const int32_t *indices(const weir_message *out)
{
	return weir_message_data(weir_message_part(out, "index"));
}

static const float *values(const weir_message *out)
{
	return weir_message_data(weir_message_part(out, "value"));
}

static void assert_text(const weir_message *out, const char *expected)
{
	const weir_message *text = weir_message_part(out, "text");

	assert_int_equal(weir_message_kind(text), WEIR_KIND_BYTES);
	assert_int_equal(weir_message_size(text), strlen(expected));
	assert_memory_equal(weir_message_data(text), expected, strlen(expected));
}

/* --- the order --- */

struct scored {
	float value;
	int32_t index;
};

static int compare_scored(const void *a, const void *b)
{
	const struct scored *one = a, *two = b;

	if (one->value != two->value)
		return one->value < two->value ? 1 : -1;
	return one->index - two->index;
}

static void compare_with_sorted(int64_t rows, int64_t classes, int k)
{
	weir_message *in = scores(rows, classes, 32);
	float *data = weir_message_data(in);
	struct scored *sorted = calloc((size_t)classes, sizeof *sorted);
	int64_t n = k < classes ? k : classes;
	const weir_message *out, *index;
	char text[32];
	struct rig rig;

	assert_non_null(sorted);
	for (int64_t i = 0; i < rows * classes; i++) /* with many equal ones */
		data[i] = (float)(((uint8_t *)data)[4 * i] % 50) - 25;
	snprintf(text, sizeof text, "k=%d", k);
	out = best(&rig, text, weir_message_ref(in));
	index = weir_message_part(out, "index");
	assert_true(index->shape[0] == rows && index->shape[1] == n &&
		    index->tensor.device == WEIR_DEVICE_HOST);
	assert_true(index->tensor.code == 0 && index->tensor.bits == 32);
	for (int64_t row = 0; row < rows; row++) {
		for (int64_t i = 0; i < classes; i++)
			sorted[i] = (struct scored){data[row * classes + i], (int32_t)i};
		qsort(sorted, (size_t)classes, sizeof *sorted, compare_scored);
		for (int64_t i = 0; i < n; i++) {
			assert_int_equal(indices(out)[row * n + i], sorted[i].index);
			assert_true(values(out)[row * n + i] == sorted[i].value);
		}
	}
	free(sorted);
	weir_message_unref(in);
	rig_stop(&rig);
}

static void the_best_come_in_order_the_first_of_equal_ones_first(void **state)
{
	(void)state;
	compare_with_sorted(1, 1, 1);
	compare_with_sorted(1, 1000, 1);
	compare_with_sorted(1, 1000, 5);
	compare_with_sorted(3, 300, 256);
	compare_with_sorted(7, 4, 5); /* all */
}

static void what_is_no_number_comes_last(void **state)
{
	static const float some[] = {NAN, -INFINITY, 3, NAN, INFINITY};
	const weir_message *out;
	struct rig rig;

	(void)state;
	out = best(&rig, "k=5", scores_of(some, 5));
	assert_true(indices(out)[0] == 4 && indices(out)[1] == 2 && indices(out)[2] == 1);
	assert_true(indices(out)[3] == 0 && indices(out)[4] == 3);
	assert_true(isnan(values(out)[3]));
	rig_stop(&rig);
}

static void all_dimensions_but_the_first_are_classes(void **state)
{
	static const int64_t shape[] = {2, 3, 1, 1};
	static const float some[] = {1, 3, 2, 9, 7, 8};
	weir_message *in = scores_of(some, 6);
	const weir_message *out;
	struct rig rig;

	(void)state;
	in->tensor.dimensions = 4;
	in->tensor.shape = shape;
	out = best(&rig, "k=2", in);
	assert_text(out, "0: 1 3\n0: 2 2\n1: 0 9\n1: 2 8\n");
	rig_stop(&rig);
}

static void a_vector_is_one_row(void **state)
{
	static const int64_t shape[] = {4};
	static const float some[] = {1, 3, 2, 9};
	weir_message *in = scores_of(some, 4);
	struct rig rig;

	(void)state;
	in->tensor.dimensions = 1;
	in->tensor.shape = shape;
	assert_text(best(&rig, "k=2", in), "3 9\n1 3\n");
	rig_stop(&rig);
}

static void scores_of_sixteen_bits(void **state)
{
	/* 1, -2, 65504, the least subnormal, the least normal, -0, infinite, not a number */
	static const uint16_t bits[] = {0x3c00, 0xc000, 0x7bff, 0x0001, 0x0400, 0x8000, 0x7c00, 0x7e00};
	static const int32_t order[] = {6, 2, 0, 4, 3, 5, 1, 7};
	weir_message *in = scores(1, 8, 16);
	const weir_message *out;
	struct rig rig;

	(void)state;
	memcpy(weir_message_data(in), bits, sizeof bits);
	out = best(&rig, "k=8", in);
	assert_memory_equal(indices(out), order, sizeof order);
	assert_true(values(out)[1] == 65504 && values(out)[3] == ldexpf(1, -14));
	assert_true(values(out)[4] == ldexpf(1, -24) && values(out)[6] == -2);
	rig_stop(&rig);
}

static void scores_of_bfloat16(void **state)
{
	/* 1, -2, the largest, the least subnormal, the least normal, -0, infinite, not a number */
	static const uint16_t bits[] = {0x3f80, 0xc000, 0x7f7f, 0x0001, 0x0080, 0x8000, 0x7f80, 0x7fc0};
	static const int32_t order[] = {6, 2, 0, 4, 3, 5, 1, 7};
	weir_message *in = scores(1, 8, 16);
	const weir_message *out;
	struct rig rig;

	(void)state;
	in->tensor.code = 4;
	memcpy(weir_message_data(in), bits, sizeof bits);
	out = best(&rig, "k=8", in);
	assert_memory_equal(indices(out), order, sizeof order);
	assert_true(values(out)[1] == ldexpf(255, 120) && values(out)[3] == ldexpf(1, -126));
	assert_true(values(out)[4] == ldexpf(1, -133) && values(out)[6] == -2);
	rig_stop(&rig);
}

static void softmax_makes_probabilities(void **state)
{
	static const float some[] = {1000, 1001, 999, -1000};
	const weir_message *out;
	double e = exp(1);
	struct rig rig;

	(void)state;
	out = best(&rig, "k=3 softmax=true", scores_of(some, 4));
	assert_int_equal(indices(out)[0], 1);
	assert_true(fabs(values(out)[0] - e * e / (e * e + e + 1)) < 1e-7);
	assert_true(fabs(values(out)[2] - 1 / (e * e + e + 1)) < 1e-7);
	rig_stop(&rig);
}

/* --- labels --- */

static const char *file_of(const char *text, size_t bytes)
{
	static char path[64];
	int fd;

	snprintf(path, sizeof path, "/tmp/weir-labels-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, bytes), (ssize_t)bytes);
	close(fd);
	return path;
}

static void assert_labelled(const char *file, const char *expected)
{
	static const float some[] = {4, 3, 2, 1};
	const char *path = file_of(file, strlen(file));
	char parameters[128];
	struct rig rig;

	snprintf(parameters, sizeof parameters, "labels=%s", path);
	assert_text(best(&rig, parameters, scores_of(some, 4)), expected);
	unlink(path);
	rig_stop(&rig);
}

static void classes_are_called_by_the_lines_of_a_file(void **state)
{
	(void)state;
	assert_labelled("tabby cat\nfox\ndog\ncow\n", "tabby cat 4\nfox 3\ndog 2\ncow 1\n");
	assert_labelled("a\r\n\nc", "a 4\n1 3\nc 2\n3 1\n");
	assert_labelled("", "0 4\n1 3\n2 2\n3 1\n");
	assert_labelled("a\nb\nc\nd\ne\nf\n", "a 4\nb 3\nc 2\nd 1\n");
}

static void refused_file(const char *path, const char *text)
{
	char parameters[128];
	struct rig rig;

	snprintf(parameters, sizeof parameters, "labels=%s", path);
	rig_start(&rig, &wr_top, parameters);
	assert_int_equal(rig.started, WEIR_E_FAILED);
	if (!strstr(rig.context.text, text))
		fail_msg("%s", rig.context.text);
	rig_stop(&rig);
	if (!strncmp(path, "/tmp/weir-labels-", 17))
		unlink(path);
}

static void a_file_that_has_no_labels_is_refused(void **state)
{
	char longer[300];

	(void)state;
	memset(longer, 'a', sizeof longer);
	longer[1] = '\n';
	refused_file("/nowhere/at/all", "labels '/nowhere/at/all': No such file or directory");
	refused_file("/tmp", "labels '/tmp': not a regular file");
	refused_file(file_of("a\0b", 3), "has a NUL byte: it is no text");
	refused_file(file_of(longer, sizeof longer), "line 2 has more than 255 bytes");
}

/* --- what is refused --- */

static void refused(weir_message *message, const char *text)
{
	struct rig rig;

	rig_start(&rig, &wr_top, "");
	rig_give(&rig, message);
	assert_int_equal(rig_tick(&rig), WEIR_E_FAILED);
	if (!strstr(rig.context.text, text))
		fail_msg("%s", rig.context.text);
	assert_int_equal(rig.context.out_count, 0);
	rig_stop(&rig);
}

static void e06_what_are_no_scores_gets_a_line(void **state)
{
	static const int64_t strides[] = {1, 2}, empty[] = {2, 0}, no_rows[] = {0, 2};
	weir_message *strided = scores(2, 2, 32), *none = scores(2, 2, 32), *pending = scores(2, 2, 32);
	weir_message *rowless = scores(2, 2, 32), *device = scores(2, 2, 32), *point = scores(2, 2, 32);

	(void)state;
	strided->tensor.strides = strides;
	none->tensor.shape = empty;
	rowless->tensor.shape = no_rows;
	pending->unfinished = true;
	device->tensor.device = RIG_DEVICE;
	point->tensor.dimensions = 0;
	refused(rig_image(WEIR_DEVICE_HOST, 2, 2, 3), "[rows, classes], got uint8 [2, 2, 3] in host memory");
	refused(rig_bytes(4), "got a message without a tensor");
	refused(scores(2, 2, 64), "got float64");
	refused(strided, "expects dense float32");
	refused(none, "got float32 [2, 0]");
	refused(rowless, "got float32 [0, 2]");
	refused(point, "got float32 []");
	refused(device, "on device 3: put a 'download' before it");
	refused(pending, "the device still writes");
}

static void what_fails_leaves_no_message(void **state)
{
	(void)state;
	for (int pack = 0; pack < 2; pack++) {
		struct rig rig;

		rig_start(&rig, &wr_top, "");
		rig_give(&rig, scores(1, 10, 32));
		rig.context.fails_to_pack = pack;
		rig.context.fails_to_allocate = !pack;
		assert_int_equal(rig_tick(&rig), WEIR_E_NOMEM);
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
		cmocka_unit_test(the_best_come_in_order_the_first_of_equal_ones_first),
		cmocka_unit_test(what_is_no_number_comes_last),
		cmocka_unit_test(all_dimensions_but_the_first_are_classes),
		cmocka_unit_test(a_vector_is_one_row),
		cmocka_unit_test(scores_of_sixteen_bits),
		cmocka_unit_test(scores_of_bfloat16),
		cmocka_unit_test(softmax_makes_probabilities),
		cmocka_unit_test(classes_are_called_by_the_lines_of_a_file),
		cmocka_unit_test(a_file_that_has_no_labels_is_refused),
		cmocka_unit_test(e06_what_are_no_scores_gets_a_line),
		cmocka_unit_test(what_fails_leaves_no_message),
	};

	return cmocka_run_group_tests(tests, NULL, nothing_left);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "operators/operators.h"
#include "tests/operators/rig.h"

static void e06_every_kind_has_a_name_a_help_and_well_formed_ports(void **state)
{
	size_t count = 0;

	(void)state;
	for (const weir_operator *kind; (kind = wr_builtin_operators[count]); count++) {
		assert_int_equal(kind->size, sizeof(weir_operator));
		assert_non_null(kind->help);
		for (const weir_port *port = kind->inputs; port && port->name; port++)
			assert_true(port->size == sizeof(weir_port) && port->help);
		for (const weir_port *port = kind->outputs; port && port->name; port++)
			assert_true(port->size == sizeof(weir_port) && port->help);
		for (const weir_parameter *p = kind->parameters; p && p->name; p++)
			assert_true(p->size == sizeof(weir_parameter) && p->type && p->help);
		if (count)
			assert_true(strcmp(wr_builtin_operators[count - 1]->name, kind->name) < 0);
	}
	assert_int_equal(count, 21);
}

static void upload_and_download_give_the_same_bytes_in_the_other_place(void **state)
{
	struct rig up, down;
	weir_message *in = rig_image(WEIR_DEVICE_HOST, 3, 4, 3), *there;

	(void)state;
	rig_start(&up, &wr_upload, "");
	rig_give(&up, weir_message_ref(in));
	assert_int_equal(rig_tick(&up), WEIR_OK);
	there = weir_message_ref(up.context.out[0]);
	assert_int_equal(weir_message_tensor(there)->device, RIG_DEVICE);
	rig_start(&down, &wr_download, "");
	rig_give(&down, there);
	assert_int_equal(rig_tick(&down), WEIR_OK);
	assert_int_equal(weir_message_tensor(down.context.out[0])->device, WEIR_DEVICE_HOST);
	assert_memory_equal(weir_message_data(down.context.out[0]), weir_message_data(in),
			    weir_message_size(in));
	weir_message_unref(in);
	rig_stop(&down);
	rig_stop(&up);
	assert_int_equal(rig_messages(), 0);
}

static void several_messages_of_a_tick_are_all_served(void **state)
{
	struct rig rig;

	(void)state;
	rig_start(&rig, &wr_upload, "");
	for (int i = 0; i < 3; i++)
		rig_give(&rig, rig_image(WEIR_DEVICE_HOST, 1, 1 + i, 1));
	assert_int_equal(rig_tick(&rig), WEIR_OK);
	assert_int_equal(rig.context.out_count, 3);
	assert_int_equal(weir_message_size(rig.context.out[2]), 3);
	rig_stop(&rig);
}

struct refusal {
	const weir_operator *kind;
	weir_message *message;
	const char *text;
};

static weir_message *strided(void)
{
	static const int64_t strides[] = {40, 3, 1};
	weir_message *message = rig_image(RIG_DEVICE, 2, 2, 3);

	message->tensor.strides = strides;
	return message;
}

/* Each of its bytes is a copy: nothing lies one after another, and the strides are smaller than a row. */
static weir_message *in_too_many_rows(void)
{
	static const int64_t strides[] = {0, 0, 0};
	weir_message *message = rig_image(RIG_DEVICE, 513, 1, 2);

	message->tensor.strides = strides;
	return message;
}

static weir_message *elsewhere(void)
{
	weir_message *message = rig_image(RIG_DEVICE, 2, 2, 3);

	message->tensor.device = 1;
	return message;
}

static void upload_copies_from_other_devices_and_passes_on_what_is_there(void **state)
{
	weir_message *other = elsewhere(), *here = rig_image(RIG_DEVICE, 2, 2, 3);
	struct rig rig;

	(void)state;
	rig_start(&rig, &wr_upload, "");
	rig_give(&rig, weir_message_ref(other));
	rig_give(&rig, weir_message_ref(here));
	assert_int_equal(rig_tick(&rig), WEIR_OK);
	assert_int_equal(weir_message_tensor(rig.context.out[0])->device, RIG_DEVICE);
	assert_ptr_not_equal(rig.context.out[0], other);
	assert_memory_equal(weir_message_data(rig.context.out[0]), weir_message_data(other),
			    weir_message_size(other));
	assert_ptr_equal(rig.context.out[1], here);
	weir_message_unref(other);
	weir_message_unref(here);
	rig_stop(&rig);
	assert_int_equal(rig_messages(), 0);
}

struct view {
	int32_t dimensions;
	int64_t shape[4], strides[4];
	size_t copies;
};

/* The elements in order, as a dense tensor has them; returns their number. */
static size_t gather(const struct view *view, const uint16_t *from, uint16_t *out)
{
	size_t count = 1;

	for (int32_t i = 0; i < view->dimensions; i++)
		count *= (size_t)view->shape[i];
	for (size_t n = 0; n < count; n++) {
		int64_t left = (int64_t)n, at = 0;

		for (int32_t i = view->dimensions; i-- > 0; left /= view->shape[i])
			at += left % view->shape[i] * view->strides[i];
		out[n] = from[at];
	}
	return count;
}

static void download_view(const struct view *view)
{
	weir_message *message = rig_image(RIG_DEVICE, 1, 4096, 1);
	uint16_t expected[4096];
	size_t count = gather(view, weir_message_data(message), expected);
	struct rig rig;

	message->tensor.dimensions = view->dimensions;
	message->tensor.shape = view->shape;
	message->tensor.strides = view->strides;
	message->tensor.bits = 16;
	rig_start(&rig, &wr_download, "");
	rig_give(&rig, message);
	assert_int_equal(rig_tick(&rig), WEIR_OK);
	assert_int_equal(rig.context.copies, view->copies);
	assert_int_equal(rig.context.copy_flags, WEIR_COPY_ASYNC);
	assert_int_equal(weir_message_size(rig.context.out[0]), count * sizeof *expected);
	assert_memory_equal(weir_message_data(rig.context.out[0]), expected, count * sizeof *expected);
	rig_stop(&rig);
}

static void t1_a_strided_tensor_arrives_dense_by_the_fewest_copies(void **state)
{
	static const struct view views[] = {
		{3, {4, 5, 3}, {15, 3, 1}, 1},            /* dense */
		{3, {4, 5, 3}, {60, 3, 1}, 1},            /* a part of each line */
		{3, {4, 5, 3}, {60, 9, 1}, 4},            /* and every third pixel */
		{2, {5, 40}, {1, 7}, 5},                  /* transposed: 5 x 40 rows of an element */
		{2, {40, 5}, {1, 50}, 5},                 /* 40 counts, though it is not the last */
		{3, {2, 1, 6}, {9, 500, 1}, 1},           /* an extent of 1 has any stride */
		{2, {50, 6}, {0, 1}, 50},                 /* a line, repeated */
		{2, {50, 6}, {1, 1}, 50},                 /* lines that overlap */
		{1, {30}, {4}, 1},                        /* every fourth element */
		{4, {3, 4, 2, 5}, {200, 20, 100, 2}, 24}, /* no two dimensions together */
		{0, {0}, {0}, 1},                         /* one element */
	};

	(void)state;
	for (size_t i = 0; i < sizeof views / sizeof *views; i++)
		download_view(&views[i]);
	assert_int_equal(rig_messages(), 0);
}

/* It may be the program's, and pageable; a worker then waits for the copy, as before. */
static void t1_upload_takes_any_host_memory(void **state)
{
	static const int64_t strides[] = {12, 6, 2};
	weir_message *message = rig_image(WEIR_DEVICE_HOST, 4, 4, 3);
	const uint8_t *from = weir_message_data(message), *to;
	struct rig rig;

	(void)state;
	message->tensor.strides = strides;
	message->shape[1] = 2;
	rig_start(&rig, &wr_upload, "");
	rig_give(&rig, weir_message_ref(message));
	assert_int_equal(rig_tick(&rig), WEIR_OK);
	assert_int_equal(rig.context.copy_flags, 0);
	to = weir_message_data(rig.context.out[0]);
	for (int i = 0; i < 24; i++)
		assert_int_equal(to[i], from[i * 2]);
	weir_message_unref(message);
	rig_stop(&rig);
}

static weir_message *of_type(uint8_t code, uint8_t bits)
{
	weir_message *message = rig_image(RIG_DEVICE, 2, 2, 3);

	message->tensor.code = code;
	message->tensor.bits = bits;
	return message;
}

static void e06_a_wrong_input_gets_a_line_that_names_what_came_and_what_to_do(void **state)
{
	const struct refusal rows[] = {
		{&wr_upload, rig_bytes(4), "expects a tensor"},
		{&wr_download, rig_image(WEIR_DEVICE_HOST, 2, 2, 3), "in host memory already"},
		{&wr_download, elsewhere(),
		 "on device 1, but device 3 works here: give it a stream pool of device 1"},
		{&wr_download, in_too_many_rows(), "with strides that take more than 512 copies"},
		{&wr_blur, rig_image(WEIR_DEVICE_HOST, 2, 2, 3), "put an 'upload' before it"},
		{&wr_sobel, elsewhere(),
		 "on device 1, but device 3 works here: put an 'upload' before it, with a stream pool of "
		 "the"},
		{&wr_blur, rig_image(RIG_DEVICE, 2, 2, 5), "1 to 4 channels], got uint8 [2, 2, 5]"},
		{&wr_blur, of_type(2, 32), "got float32 [2, 2, 3]"},
		{&wr_blur, strided(), "expects a dense uint8"},
		{&wr_sobel, rig_bytes(1), "got a message without a tensor"},
		{&wr_sobel, of_type(0, 8), "got int8"},
		{&wr_normalize, rig_image(WEIR_DEVICE_HOST, 2, 2, 3), "put an 'upload' before it"},
		{&wr_normalize, of_type(2, 32), "1 to 4 channels], got float32 [2, 2, 3]"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rig rig;

		rig_start(&rig, rows[i].kind, "");
		rig_give(&rig, rows[i].message);
		assert_int_equal(rig_tick(&rig), WEIR_E_FAILED);
		assert_non_null(strstr(rig.context.text, rows[i].text));
		assert_int_equal(rig.context.out_count, 0);
		rig_stop(&rig);
	}
}

static void f40_no_memory_fails_the_tick_and_leaks_nothing(void **state)
{
	const weir_operator *const kinds[] = {&wr_upload, &wr_blur, &wr_sobel, &wr_download, &wr_spin};

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct rig rig;

		rig_start(&rig, kinds[i], kinds[i] == &wr_spin ? "duration=1" : "");
		rig.context.fails_to_allocate = true;
		rig_give(&rig, rig_image(i ? RIG_DEVICE : WEIR_DEVICE_HOST, 2, 2, 3));
		assert_int_equal(rig_tick(&rig), WEIR_E_NOMEM);
		rig_stop(&rig);
	}
}

static void a_stream_that_refuses_work_fails_the_tick_and_nothing_is_emitted(void **state)
{
	const weir_operator *const kinds[] = {&wr_upload, &wr_blur, &wr_sobel, &wr_download, &wr_spin};

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct rig rig;

		rig_start(&rig, kinds[i], kinds[i] == &wr_spin ? "duration=1" : "");
		rig.context.fails_to_launch = true;
		rig_give(&rig, rig_image(i ? RIG_DEVICE : WEIR_DEVICE_HOST, 2, 2, 3));
		assert_int_equal(rig_tick(&rig), WEIR_E_DEVICE);
		assert_int_equal(rig.context.out_count, 0);
		rig_stop(&rig);
		assert_int_equal(rig_messages(), 0);
	}
}

static void without_a_stream_the_tick_fails_with_the_device(void **state)
{
	const weir_operator *const kinds[] = {&wr_upload, &wr_blur, &wr_sobel, &wr_download, &wr_spin};

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct rig rig;

		rig_start(&rig, kinds[i], kinds[i] == &wr_spin ? "duration=1" : "");
		rig.context.has_no_stream = true;
		rig_give(&rig, rig_image(i ? RIG_DEVICE : WEIR_DEVICE_HOST, 2, 2, 3));
		assert_int_equal(rig_tick(&rig), WEIR_E_DEVICE);
		rig_stop(&rig);
		assert_int_equal(rig_messages(), 0);
	}
}

static void spin_works_for_its_duration_and_writes_what_it_emits(void **state)
{
	struct rig rig;
	const uint64_t *words;

	(void)state;
	rig_start(&rig, &wr_spin, "duration=5000");
	rig_tick(&rig);
	rig_give(&rig, rig_bytes(1));
	assert_int_equal(rig_tick(&rig), WEIR_OK);
	assert_int_equal(rig.context.slept, 10000);
	assert_int_equal(rig.context.faults, 0);
	assert_int_equal(rig.context.out_count, 1);
	assert_int_equal(weir_message_tensor(rig.context.out[0])->device, RIG_DEVICE);
	words = weir_message_data(rig.context.out[0]);
	assert_true(weir_message_size(rig.context.out[0]) == 16 && words[0] == 1 && words[1] == 5000);
	rig_stop(&rig);
}

static void spin_with_fault_faults_the_stream_after_its_duration(void **state)
{
	struct rig rig;

	(void)state;
	rig_start(&rig, &wr_spin, "duration=7 fault=true");
	assert_int_equal(rig_tick(&rig), WEIR_OK); /* the stream fails, not the tick */
	assert_int_equal(rig.context.faults, 1);
	assert_int_equal(rig.context.slept, 7);
	rig_stop(&rig);
}

static void ping_emits_empty_messages_or_bytes_that_count_up(void **state)
{
	struct rig rig;
	const unsigned char *data;

	(void)state;
	rig_start(&rig, &wr_ping, "");
	assert_int_equal(rig_tick(&rig), WEIR_OK);
	assert_int_equal(weir_message_kind(rig.context.out[0]), WEIR_KIND_EMPTY);
	rig_stop(&rig);
	rig_start(&rig, &wr_ping, "bytes=3");
	rig_tick(&rig);
	assert_int_equal(rig_tick(&rig), WEIR_OK);
	assert_int_equal(weir_message_size(rig.context.out[0]), 3);
	data = weir_message_data(rig.context.out[0]);
	assert_true(data[0] == 1 && data[2] == 3);
	rig_stop(&rig);
}

static void ping_stamps_its_messages_if_asked(void **state)
{
	struct rig rig;

	(void)state;
	rig_start(&rig, &wr_ping, "");
	rig_tick(&rig);
	assert_true(rig.context.stamp.time == 0 && rig.context.stamp.tag == 0);
	rig_stop(&rig);
	rig_start(&rig, &wr_ping, "stamp=true");
	rig_tick(&rig);
	rig_tick(&rig);
	assert_true(rig.context.stamp.time == RIG_NOW && rig.context.stamp.tag == 1);
	rig_stop(&rig);
}

static void delay_passes_the_same_message_on_after_its_duration(void **state)
{
	struct rig rig;
	weir_message *message = rig_bytes(1);

	(void)state;
	rig_start(&rig, &wr_delay, "duration=30");
	rig_give(&rig, message);
	assert_int_equal(rig_tick(&rig), WEIR_OK);
	assert_ptr_equal(rig.context.out[0], message);
	assert_int_equal(rig.context.slept, 30);
	rig_stop(&rig);
}

static void pass_emits_what_it_received_unread(void **state)
{
	weir_message *message = rig_image(RIG_DEVICE, 1, 1, 1);
	struct rig rig;

	(void)state;
	message->unfinished = true;
	message->stamp.tag = 7;
	rig_start(&rig, &wr_pass, "");
	rig_give(&rig, message);
	assert_int_equal(rig_tick(&rig), WEIR_OK);
	assert_ptr_equal(rig.context.out[0], message);
	assert_int_equal(rig.context.out[0]->stamp.tag, 7);
	assert_true(wr_pass.inputs[0].flags & WEIR_PORT_DEVICE);
	rig_stop(&rig);
}

static void sink_has_nothing_to_do(void **state)
{
	struct rig rig;

	(void)state;
	rig_start(&rig, &wr_sink, "");
	rig_give(&rig, rig_bytes(1));
	assert_int_equal(rig_tick(&rig), WEIR_OK);
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
		cmocka_unit_test(e06_every_kind_has_a_name_a_help_and_well_formed_ports),
		cmocka_unit_test(upload_and_download_give_the_same_bytes_in_the_other_place),
		cmocka_unit_test(upload_copies_from_other_devices_and_passes_on_what_is_there),
		cmocka_unit_test(t1_a_strided_tensor_arrives_dense_by_the_fewest_copies),
		cmocka_unit_test(t1_upload_takes_any_host_memory),
		cmocka_unit_test(several_messages_of_a_tick_are_all_served),
		cmocka_unit_test(e06_a_wrong_input_gets_a_line_that_names_what_came_and_what_to_do),
		cmocka_unit_test(f40_no_memory_fails_the_tick_and_leaks_nothing),
		cmocka_unit_test(a_stream_that_refuses_work_fails_the_tick_and_nothing_is_emitted),
		cmocka_unit_test(without_a_stream_the_tick_fails_with_the_device),
		cmocka_unit_test(spin_works_for_its_duration_and_writes_what_it_emits),
		cmocka_unit_test(spin_with_fault_faults_the_stream_after_its_duration),
		cmocka_unit_test(ping_emits_empty_messages_or_bytes_that_count_up),
		cmocka_unit_test(ping_stamps_its_messages_if_asked),
		cmocka_unit_test(delay_passes_the_same_message_on_after_its_duration),
		cmocka_unit_test(pass_emits_what_it_received_unread),
		cmocka_unit_test(sink_has_nothing_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, nothing_left);
}

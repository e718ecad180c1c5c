/* print: its output, read back from a pipe in place of stdout. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "operators/operators.h"
#include "tests/operators/rig.h"

static int saved_stdout = -1;

static void begin_capture(int to)
{
	fflush(stdout);
	saved_stdout = dup(STDOUT_FILENO);
	dup2(to, STDOUT_FILENO);
}

static void end_capture(void)
{
	fflush(stdout);
	clearerr(stdout);
	dup2(saved_stdout, STDOUT_FILENO);
	close(saved_stdout);
}

/* Ticks `print` once per message; returns its output. */
static const char *printed(const char *parameters, weir_message **messages, size_t count)
{
	static char text[8192];
	struct rig rig;
	int ends[2];
	ssize_t got;

	assert_int_equal(pipe(ends), 0);
	rig_start(&rig, &wr_print, parameters);
	begin_capture(ends[1]);
	for (size_t i = 0; i < count; i++) {
		rig_give(&rig, messages[i]);
		rig_tick(&rig);
	}
	end_capture();
	close(ends[1]);
	got = read(ends[0], text, sizeof text - 1);
	text[got < 0 ? 0 : got] = 0;
	close(ends[0]);
	rig_stop(&rig);
	return text;
}

static void print_says_kind_shape_tick_and_first_bytes(void **state)
{
	weir_message *unfinished = rig_bytes(2);
	weir_message *messages[] = {rig_bytes(3), rig_bytes(9), rig_image(RIG_DEVICE, 2, 5, 3), unfinished};

	(void)state;
	unfinished->unfinished = true;
	assert_string_equal(printed("", messages, 4),
			    "me: tick 0: bytes, 3 bytes: 00 01 02\n"
			    "me: tick 1: bytes, 9 bytes: 00 01 02 03 04 05 06 07 ..., checksum 0a444d0f\n"
			    "me: tick 2: uint8 [2, 5, 3] on device 3\n"
			    "me: tick 3: bytes, not finished on the device\n");
}

static void print_says_names_shapes_and_devices_of_parts(void **state)
{
	weir_message *image = rig_image(RIG_DEVICE, 2, 5, 3), *boxes = rig_image(WEIR_DEVICE_HOST, 1, 4, 1),
		     *raw = rig_bytes(3);
	const weir_part parts[] = {{sizeof(weir_part), "image", image},
				   {sizeof(weir_part), "bo\nxes", boxes},
				   {sizeof(weir_part), "raw", raw}};
	weir_message *messages[] = {rig_parts(parts, 3)};

	(void)state;
	assert_string_equal(printed("", messages, 1), "me: tick 0: parts: image uint8 [2, 5, 3] on device 3; "
						      "bo\\nxes uint8 [1, 4, 1] in host memory; raw bytes\n");
	weir_message_unref(image);
	weir_message_unref(boxes);
	weir_message_unref(raw);
}

static void print_says_how_many_parts_do_not_fit_in_its_line(void **state)
{
	weir_part parts[WEIR_PARTS_MAX];
	char names[WEIR_PARTS_MAX][WEIR_PART_NAME_MAX + 1];
	weir_message *raw = rig_bytes(3), *message;
	const char *text;

	(void)state;
	for (int i = 0; i < WEIR_PARTS_MAX; i++) {
		memset(names[i], '\n', WEIR_PART_NAME_MAX);
		names[i][WEIR_PART_NAME_MAX] = 0;
		parts[i] = (weir_part){sizeof(weir_part), names[i], raw};
	}
	message = rig_parts(parts, WEIR_PARTS_MAX);
	text = printed("", &message, 1);
	assert_non_null(strstr(text, " bytes; and 52 more\n"));
	weir_message_unref(raw);
}

/* What a terminal must not get is escaped; a line that is too long for the buffer is cut. */
static void print_prints_the_lines_of_a_text(void **state)
{
	static const char lines[] = "tabby cat 0.5\n\n\x1b[2J\nlast";
	static char expected[8192];
	weir_message *text = rig_bytes(sizeof lines - 1), *longer = rig_bytes(5000);
	const weir_part parts[] = {{sizeof(weir_part), "text", text}};
	const weir_part others[] = {{sizeof(weir_part), "text", longer}};
	weir_message *messages[] = {rig_parts(parts, 1), rig_parts(others, 1)};

	(void)state;
	memcpy(weir_message_data(text), lines, sizeof lines - 1);
	memset(weir_message_data(longer), 'x', 5000);
	assert_string_equal(printed("", messages, 1),
			    "me: tick 0: parts: text bytes\n  tabby cat 0.5\n  \n  \\u001b[2J\n  last\n");
	snprintf(expected, sizeof expected, "me: tick 0: parts: text bytes\n  %.*s\n  ...\n", 4095,
		 (char *)weir_message_data(longer));
	assert_string_equal(printed("", messages + 1, 1), expected);
	weir_message_unref(text);
	weir_message_unref(longer);
}

/* As text nothing else is printed, and nothing is cut; a character is not torn at the end of the buffer. */
static void print_prints_bytes_as_text(void **state)
{
	static const char bytes[] = "one\n\ntwo\x1b \xff\0z";
	static char expected[8192];
	weir_message *longer = rig_bytes(5001), *part = rig_bytes(3);
	const weir_part parts[] = {{sizeof(weir_part), "text", part}};
	weir_message *messages[] = {rig_bytes(sizeof bytes - 1), rig_parts(parts, 1), rig_bytes(0),
				    rig_image(RIG_DEVICE, 1, 1, 1), longer};

	(void)state;
	memcpy(weir_message_data(messages[0]), bytes, sizeof bytes - 1);
	memcpy(weir_message_data(part), "abc", 3);
	memset(weir_message_data(longer), 'x', 5001);
	memcpy((char *)weir_message_data(longer) + 4094, "\xc3\xa9", 2);
	snprintf(expected, sizeof expected,
		 "one\n\ntwo\\u001b \\xff\\x00z\nabc\nme: tick 3: uint8 [1, 1, 1] on device 3\n%.*s\n", 5001,
		 (char *)weir_message_data(longer));
	assert_string_equal(printed("as=text", messages, 5), expected);
	weir_message_unref(part);
}

static void print_says_the_stamp(void **state)
{
	weir_message *messages[] = {rig_bytes(1), rig_bytes(1)};

	(void)state;
	messages[0]->stamp = (weir_stamp){INT64_C(12345678900), 7};
	messages[1]->stamp.tag = 8;
	assert_string_equal(printed("", messages, 2),
			    "me: tick 0: bytes, 1 bytes: 00, time 12.345679 s, tag 7\n"
			    "me: tick 1: bytes, 1 bytes: 00, tag 8\n");
}

static void print_prints_every_nth_or_nothing(void **state)
{
	weir_message *some[] = {rig_bytes(1), rig_bytes(1), rig_bytes(1)}, *others[1];

	(void)state;
	assert_string_equal(printed("every=2", some, 3),
			    "me: tick 0: bytes, 1 bytes: 00\nme: tick 2: bytes, 1 bytes: 00\n");
	others[0] = rig_bytes(1);
	assert_string_equal(printed("quiet=true", others, 1), "");
}

/* Prints two messages while stdout is `fd`; returns the status of both ticks. */
static void print_to(int fd, struct rig *rig, weir_status ticks[2])
{
	rig_start(rig, &wr_print, "");
	begin_capture(fd);
	for (int i = 0; i < 2; i++) {
		rig_give(rig, rig_bytes(1));
		ticks[i] = rig_tick(rig);
	}
	end_capture();
	rig_stop(rig);
}

static void xb13_print_fails_where_it_cannot_write(void **state)
{
	int full = open("/dev/full", O_WRONLY);
	weir_status ticks[2];
	struct rig rig;

	(void)state;
	print_to(full, &rig, ticks);
	assert_int_equal(ticks[0], WEIR_E_FAILED);
	assert_string_equal(rig.context.text, "stdout: No space left on device");
	assert_false(rig.context.drained);
	close(full);
}

static void xb13_print_drains_the_run_when_nothing_reads_it(void **state)
{
	weir_status ticks[2];
	struct rig rig;
	int pipes[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(pipes), 0);
	close(pipes[0]);
	print_to(pipes[1], &rig, ticks);
	assert_int_equal(ticks[0], WEIR_OK);
	assert_int_equal(ticks[1], WEIR_OK);
	assert_true(rig.context.drained);
	close(pipes[1]);
}

static int nothing_left(void **state)
{
	(void)state;
	return rig_messages() != 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(print_says_kind_shape_tick_and_first_bytes),
		cmocka_unit_test(print_says_names_shapes_and_devices_of_parts),
		cmocka_unit_test(print_says_how_many_parts_do_not_fit_in_its_line),
		cmocka_unit_test(print_prints_the_lines_of_a_text),
		cmocka_unit_test(print_prints_bytes_as_text),
		cmocka_unit_test(print_says_the_stamp),
		cmocka_unit_test(print_prints_every_nth_or_nothing),
		cmocka_unit_test(xb13_print_fails_where_it_cannot_write),
		cmocka_unit_test(xb13_print_drains_the_run_when_nothing_reads_it),
	};

	return cmocka_run_group_tests(tests, NULL, nothing_left);
}

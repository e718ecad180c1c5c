#include "base/status.h"

#include <string.h>

#include "base/thread.h"
#include "sim/simulation.h"
#include "test.h"

static void e01_every_status_has_its_text(void **state)
{
	(void)state;
#define CHECK(name, value, text) assert_string_equal(weir_status_text(name), text);
	WEIR_STATUS_TABLE(CHECK)
#undef CHECK
	assert_string_equal(weir_status_text((weir_status)-99), "unknown status");
}

static void e01_a_failure_is_handed_up_with_its_words(void **state)
{
	(void)state;
	assert_int_equal(wr_fail(WEIR_E_INVALID, "port '%s': %d", "in", 3), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "port 'in': 3");
}

static void e01_the_last_error_may_be_part_of_the_next(void **state)
{
	(void)state;
	wr_fail(WEIR_E_IO, "no such file");
	wr_fail(WEIR_E_INVALID, "graph.json: %s", weir_last_error());
	assert_string_equal(weir_last_error(), "graph.json: no such file");
}

static void c05_every_cause_has_its_word(void **state)
{
	(void)state;
#define CHECK(name, value, text) assert_string_equal(weir_cause_text(name), text);
	WEIR_CAUSE_TABLE(CHECK)
#undef CHECK
	assert_string_equal(weir_cause_text((weir_cause)99), "unknown");
}

static void last_error_is(const char *line, const char *entity, const char *text)
{
	weir_error error = {.size = sizeof error};

	assert_string_equal(weir_last_error(), line);
	assert_int_equal(weir_error_last(&error), WEIR_OK);
	assert_string_equal(error.entity ? error.entity : "none", entity);
	assert_string_equal(error.text, text);
}

static void e01_an_error_has_its_status_cause_and_port(void **state)
{
	weir_error error = {.size = sizeof error};

	(void)state;
	wr_fail_port(WEIR_E_BUSY, "blur", "in", "the queue is full");
	assert_int_equal(weir_error_last(&error), WEIR_OK);
	assert_int_equal(error.status, WEIR_E_BUSY);
	assert_int_equal(error.cause, WEIR_CAUSE_NONE);
	assert_string_equal(error.on, "in");
	wr_fail(WEIR_E_DEADLOCK, "nothing goes on");
	wr_error_cause(WEIR_CAUSE_ROOM, "out");
	assert_int_equal(weir_error_last(&error), WEIR_OK);
	assert_int_equal(error.cause, WEIR_CAUSE_ROOM);
	assert_string_equal(error.on, "out");
	assert_null(error.entity);
	wr_error_clear(wr_error_here());
	assert_int_equal(weir_error_last(&error), WEIR_OK);
	assert_int_equal(error.status, WEIR_OK);
	assert_null(error.on);
}

static void e01_an_error_of_an_entity_has_its_name_once(void **state)
{
	(void)state;
	assert_int_equal(wr_fail_in(WEIR_E_INVALID, "blur", "no input %d", 3), WEIR_E_INVALID);
	last_error_is("blur: no input 3", "blur", "no input 3");
	assert_int_equal(wr_error_blame(WEIR_E_INVALID, "blur"), WEIR_E_INVALID);
	last_error_is("blur: no input 3", "blur", "no input 3");
	wr_fail(WEIR_E_IO, "blurry: no entity's name, though it looks like one");
	last_error_is("blurry: no entity's name, though it looks like one", "none",
		      "blurry: no entity's name, though it looks like one");
	wr_error_blame(WEIR_E_IO, "blurry");
	last_error_is("blurry: blurry: no entity's name, though it looks like one", "blurry",
		      "blurry: no entity's name, though it looks like one");
}

static void e01_an_error_about_another_entity_keeps_its_name_in_the_text(void **state)
{
	(void)state;
	wr_fail_in(WEIR_E_INVALID, "b", "no condition 'x'");
	wr_error_blame(WEIR_E_INVALID, "a");
	last_error_is("a: b: no condition 'x'", "a", "b: no condition 'x'");
}

static void e01_an_error_of_a_port_names_it_in_its_text(void **state)
{
	(void)state;
	wr_fail_port(WEIR_E_FAILED, "write", "in", "the queue of %d is full", 3);
	last_error_is("write.in: the queue of 3 is full", "write", "write.in: the queue of 3 is full");
	wr_error_clear(wr_error_here());
	last_error_is("", "none", "");
}

static void e06_what_was_put_in_stays_one_line(void **state)
{
	(void)state;
	wr_fail(WEIR_E_INVALID, "name 'a\nb\x1b[1m\x7f'");
	assert_string_equal(weir_last_error(), "name 'a\\nb\\u001b[1m\\u007f'");
}

static void xa07_what_steers_a_terminal_is_shown_as_escapes(void **state)
{
	static const char *const cases[][2] = {
		{"a\\u001b \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
		 "a\\u001b \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"\xc2\x80\xc2\x9f\xc2\xa0", "\\u0080\\u009f\xc2\xa0"},
		{"\xe2\x80\x8e\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c",
		 "\\u200e\\u202e\\u2066\\u2069\\u061c"},
		{"\xe2\x80\x8b\xef\xbb\xbf\xe2\x80\x8c", "\\u200b\\ufeff\xe2\x80\x8c"},
		{"\x9b\xff\xc0\x80\xe2\x80", "\\x9b\\xff\\xc0\\x80\\xe2\\x80"},
		{"\xed\xa0\x80\xf4\x90\x80\x80", "\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *text = cases[i][0];
		char shown[64];

		assert_int_equal(weir_text_escape(&text, sizeof shown, shown), strlen(cases[i][1]));
		assert_string_equal(shown, cases[i][1]);
		assert_int_equal(*text, 0);
	}
}

static void xa07_a_text_is_shown_piece_by_piece(void **state)
{
	const char *text = "abcdefghijkl\xc2\x9bmn";
	char shown[16];

	(void)state;
	assert_int_equal(weir_text_escape(&text, sizeof shown, shown), 12); /* not a part of \u009b */
	assert_int_equal(weir_text_escape(&text, sizeof shown, shown), 8);
	assert_string_equal(shown, "\\u009bmn");
}

static void e06_a_long_text_is_cut_between_characters(void **state)
{
	char text[2 * WR_ERROR_BYTES] = "";
	size_t length;

	(void)state;
	for (size_t at = 0; at + 2 < sizeof(text); at += 2)
		memcpy(text + at, "\xc3\xa4", 2);
	for (int shift = 0; shift < 2; shift++) {
		wr_fail(WEIR_E_INVALID, "%s%s", shift ? "x" : "", text);
		length = strlen(weir_last_error());
		assert_in_range(length, WR_ERROR_BYTES - 5, WR_ERROR_BYTES - 1);
		assert_string_equal(weir_last_error() + length - 3, "...");
		assert_int_equal((unsigned char)weir_last_error()[length - 4], 0xa4);
	}
}

static void fail_elsewhere(void *seen)
{
	*(bool *)seen = strcmp(weir_last_error(), "") == 0;
	wr_fail(WEIR_E_IO, "elsewhere");
}

static void e01_threads_do_not_see_each_others_errors(void **state)
{
	struct wr_thread thread;
	bool empty = false;

	(void)state;
	wr_fail(WEIR_E_INVALID, "here");
	assert_int_equal(wr_thread_start(&thread, "other", fail_elsewhere, &empty), WEIR_OK);
	wr_thread_join(&thread);
	assert_true(empty);
	assert_string_equal(weir_last_error(), "here");
}

struct two_fibers {
	bool empty, kept;
};

static void start_and_compare(void *arg)
{
	struct two_fibers *seen = arg;
	struct wr_thread thread;

	wr_fail(WEIR_E_INVALID, "here");
	if (!wr_thread_start(&thread, "other", fail_elsewhere, &seen->empty))
		wr_thread_join(&thread);
	seen->kept = strcmp(weir_last_error(), "here") == 0;
}

static void e01_fibers_do_not_see_each_others_errors_and_the_caller_gets_the_last(void **state)
{
	struct two_fibers seen = {false, false};
	struct wr_sim *sim = NULL;

	(void)state;
	wr_fail(WEIR_E_INVALID, "before");
	assert_int_equal(wr_sim_create(&sim, 1, WR_SIM_UNIFORM), WEIR_OK);
	assert_int_equal(wr_sim_call(sim, start_and_compare, &seen), WEIR_OK);
	assert_true(seen.empty);
	assert_true(seen.kept);
	assert_string_equal(weir_last_error(), "here");
	wr_sim_destroy(sim);
}

static void the_version_is_that_of_the_header(void **state)
{
	(void)state;
	assert_string_equal(weir_version(), WEIR_VERSION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e01_every_status_has_its_text),
		cmocka_unit_test(e01_a_failure_is_handed_up_with_its_words),
		cmocka_unit_test(e01_the_last_error_may_be_part_of_the_next),
		cmocka_unit_test(c05_every_cause_has_its_word),
		cmocka_unit_test(e01_an_error_has_its_status_cause_and_port),
		cmocka_unit_test(e01_an_error_of_an_entity_has_its_name_once),
		cmocka_unit_test(e01_an_error_about_another_entity_keeps_its_name_in_the_text),
		cmocka_unit_test(e01_an_error_of_a_port_names_it_in_its_text),
		cmocka_unit_test(e06_what_was_put_in_stays_one_line),
		cmocka_unit_test(xa07_what_steers_a_terminal_is_shown_as_escapes),
		cmocka_unit_test(xa07_a_text_is_shown_piece_by_piece),
		cmocka_unit_test(e06_a_long_text_is_cut_between_characters),
		cmocka_unit_test(e01_threads_do_not_see_each_others_errors),
		cmocka_unit_test(e01_fibers_do_not_see_each_others_errors_and_the_caller_gets_the_last),
		cmocka_unit_test(the_version_is_that_of_the_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

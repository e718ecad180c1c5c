#include "base/words.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "test.h"

static void what_does_not_fit_is_cut(void **state)
{
	char buffer[8] = "xxxxxxx";
	struct wr_words words = wr_words_in(buffer, sizeof buffer);

	(void)state;
	assert_string_equal(buffer, "");
	wr_words_add(&words, "%d", 123);
	wr_words_put(&words, "45");
	assert_string_equal(buffer, "12345");
	wr_words_add(&words, "%s", "6789");
	assert_string_equal(buffer, "1234567");
	assert_int_equal(words.length, 7);
	wr_words_put(&words, "8");
	wr_words_add(&words, "8");
	assert_string_equal(buffer, "1234567");
}

static void text_put_piece_by_piece_is_cut_at_the_same_place(void **state)
{
	char buffer[4];
	struct wr_words words = wr_words_in(buffer, sizeof buffer);

	(void)state;
	wr_words_put(&words, "abcdef");
	assert_string_equal(buffer, "abc");
	assert_int_equal(words.length, 3);
}

static void foreign_text_is_escaped_and_cut(void **state)
{
	char line[300];

	(void)state;
	memset(line, 'a', sizeof line - 1);
	line[sizeof line - 1] = '\0';
	assert_string_equal(wr_shown("a\033[31m\n").text, "a\\u001b[31m\\n");
	assert_int_equal(strlen(wr_shown(line).text), sizeof(struct wr_shown) - 1);
	assert_string_equal(wr_shown(line).text + sizeof(struct wr_shown) - 1 - 3, "...");
}

static void assert_real(double real, const char *expected)
{
	struct wr_text text = {0};

	wr_text_real(&text, real);
	assert_string_equal(text.text, expected);
	assert_true(strtod(text.text, NULL) == real);
	wr_text_finish(&text);
}

static void a_real_number_has_the_fewest_digits_that_are_read_as_the_same(void **state)
{
	(void)state;
	assert_real(0.485, "0.485");
	assert_real(1, "1.0");
	assert_real(-1e300, "-1e+300");
	assert_real(1.0 / 3, "0.3333333333333333");
	assert_real(0.1 + 0.2, "0.30000000000000004");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_not_fit_is_cut),
		cmocka_unit_test(text_put_piece_by_piece_is_cut_at_the_same_place),
		cmocka_unit_test(foreign_text_is_escaped_and_cut),
		cmocka_unit_test(a_real_number_has_the_fewest_digits_that_are_read_as_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

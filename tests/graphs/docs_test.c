/* docs/errors.md explains every number of the table, under its title, with cause and remedy, and no other. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "graphs/report.h"
#include "kinds.h"

static const struct {
	int number;
	const char *title;
} table[] = {
#define ROW(name, number, title) {number, title},
	WR_ERROR_TABLE(ROW)};

static void every_number_is_explained_with_cause_and_remedy(void **state)
{
	struct wr_text docs = {0};

	(void)state;
	assert_int_equal(wr_file_read(&docs, "../../docs/errors.md", WR_FILE_MAX), WEIR_OK);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char heading[160];
		const char *section, *next;

		snprintf(heading, sizeof(heading), "\n### W%03d: %s\nCause: ", table[i].number,
			 table[i].title);
		section = strstr(docs.text, heading);
		if (!section)
			fail_msg("docs/errors.md lacks%s", heading);
		next = strstr(section + 1, "\n#");
		assert_true(strstr(section, "\nRemedy: ") && (!next || strstr(section, "\nRemedy: ") < next));
	}
	wr_text_finish(&docs);
}

static void nothing_is_explained_that_is_not_there(void **state)
{
	struct wr_text docs = {0};
	size_t headings = 0;

	(void)state;
	assert_int_equal(wr_file_read(&docs, "../../docs/errors.md", WR_FILE_MAX), WEIR_OK);
	for (const char *at = docs.text; (at = strstr(at, "\n### W")); at++)
		headings++;
	assert_int_equal(headings, sizeof(table) / sizeof(table[0]));
	wr_text_finish(&docs);
}

static void numbers_are_used_once_and_in_order(void **state)
{
	(void)state;
	for (size_t i = 1; i < sizeof(table) / sizeof(table[0]); i++)
		assert_true(table[i - 1].number < table[i].number);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_number_is_explained_with_cause_and_remedy),
		cmocka_unit_test(nothing_is_explained_that_is_not_there),
		cmocka_unit_test(numbers_are_used_once_and_in_order),
	};

	return cmocka_run_group_tests_name("docs/errors.md", tests, NULL, NULL);
}

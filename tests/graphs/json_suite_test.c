/*
 * The files of JSONTestSuite (json_suite/; MIT, see its LICENSE): what is not JSON (n_) is reported so;
 * what is JSON (y_) is not, though it may be no graph; where the standard leaves it open (i_), either is
 * right. Every file gets at least one report.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "weir.h"

enum { NOT_JSON = 1, TOO_DEEP = 3 };

struct found {
	unsigned reports;
	bool not_json;
};

/* JSON that weir rejects: a string with U+0000, see docs/errors.md. */
static const char *const refused[] = {"y_object_escaped_null_in_key.json", "y_string_null_escape.json"};
/* `123` and a NUL byte: that the root is not an object is reported first. */
static const char root_alone[] = "n_multidigit_number_then_00.json";

static void hear(const weir_diagnostic *report, void *arg)
{
	struct found *found = arg;

	found->reports++;
	found->not_json |= report->number == NOT_JSON || report->number == TOO_DEEP;
}

static struct found parse(const char *text, size_t length)
{
	struct found found = {0};
	weir_description *description = NULL;

	if (!weir_description_parse(text, length, hear, &found, &description))
		weir_description_check(description, NULL, hear, &found);
	weir_description_destroy(description);
	assert_true(found.reports > 0);
	return found;
}

static struct found parse_file(const char *name)
{
	static char text[65536];
	char path[300];
	size_t length;
	FILE *file;

	snprintf(path, sizeof path, "json_suite/%s", name);
	file = fopen(path, "rb");
	assert_non_null(file);
	length = fread(text, 1, sizeof text, file);
	assert_true(length < sizeof text);
	fclose(file);
	return parse(text, length);
}

static bool is_refused(const char *name)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (!strcmp(name, refused[i]))
			return true;
	return false;
}

static void f81_e06_each_file_of_the_suite_is_judged_as_it_says(void **state)
{
	DIR *folder = opendir("json_suite");
	unsigned files = 0;

	(void)state;
	assert_non_null(folder);
	for (struct dirent *entry; (entry = readdir(folder));) {
		const char *name = entry->d_name, *end = strstr(name, ".json");
		if (!end || name[1] != '_')
			continue;
		bool not_json = parse_file(name).not_json;
		if (name[0] != 'i' && strcmp(name, root_alone) &&
		    not_json != (name[0] == 'n' || is_refused(name)))
			fail_msg("%s: %s", name, not_json ? "is called no JSON" : "passes for JSON");
		files++;
	}
	closedir(folder);
	assert_int_equal(files, 316);
}

/* The suite's two large files. */
static void f81_lists_without_end_are_no_json(void **state)
{
	enum { DEEP = 100000 };
	static const char object[] = "[{\"\":";
	size_t unit = sizeof object - 1;
	char *text = malloc(DEEP * unit);

	(void)state;
	assert_non_null(text);
	memset(text, '[', DEEP);
	assert_true(parse(text, DEEP).not_json);
	for (size_t i = 0; i < DEEP / 2; i++)
		memcpy(text + i * unit, object, unit);
	assert_true(parse(text, DEEP / 2 * unit).not_json);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f81_e06_each_file_of_the_suite_is_judged_as_it_says),
		cmocka_unit_test(f81_lists_without_end_are_no_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

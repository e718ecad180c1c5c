/*
 * Every folder of bad/ is a test: graph.json and the expected reports, each with its line and a caret under
 * the place. WEIR_UPDATE=1 rewrites the expected files: then read them.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "graphs/description.h"
#include "graphs/report.h"
#include "kinds.h"

static bool seen[100];
static const char *const titles[100] = {
#define TITLE(name, number, title) [number] = title,
	WR_ERROR_TABLE(TITLE)};

struct golden {
	struct wr_text source, said;
	weir_description *description;
	size_t reports;
	char first[1024];
};

/* Prints the line of the source, and a caret under the column: tabs stay, so that both align. */
static void show_place(struct golden *golden, unsigned line, unsigned column)
{
	const char *at = golden->source.text, *end;

	for (unsigned i = 1; i < line && strchr(at, '\n'); i++)
		at = strchr(at, '\n') + 1;
	end = at + strcspn(at, "\n");
	for (const char *c = at; c < end; c++) /* bytes that are not text would make the file unreadable */
		wr_text_add(&golden->said, "%c", (unsigned char)*c < 0x20 && *c != '\t' ? '?' : *c);
	wr_text_add(&golden->said, "\n");
	for (unsigned i = 1; i < column && at < end; i++) {
		wr_text_bytes(&golden->said, *at == '\t' ? "\t" : " ", 1);
		for (at++; at < end && ((unsigned char)*at & 0xc0) == 0x80;)
			at++;
	}
	wr_text_add(&golden->said, "^\n");
}

/* Follows a report's pointer independently, and checks the place of the value, and of its key. */
static bool is_place_of(const struct wr_value *value, const char *pointer, unsigned line, unsigned column)
{
	struct wr_place place = value->place;

	while (*pointer == '/') {
		size_t length = strcspn(++pointer, "/"), i = 0;
		const struct wr_member *found = NULL;

		for (; i < wr_value_count(value) && !found; i++) {
			const struct wr_member *member = wr_value_at(value, i);
			char index[24];
			snprintf(index, sizeof(index), "%zu", i);
			const char *key = member->key ? member->key : index;
			bool last_duplicate =
				pointer[length] ||
				(member->place.line == line && member->place.column == column) ||
				(member->value.place.line == line && member->value.place.column == column);
			if (strlen(key) == length && !strncmp(key, pointer, length) && last_duplicate)
				found = member;
		}
		if (!found)
			return false;
		value = &found->value;
		place = found->place;
		pointer += length;
	}
	return (place.line == line && place.column == column) ||
	       (value->place.line == line && value->place.column == column);
}

static void collect(const weir_diagnostic *report, void *arg)
{
	struct golden *golden = arg;

	assert_int_equal(report->size, sizeof(*report));
	assert_null(strchr(report->text, '\n'));
	if (golden->reports++ == 0 && !report->warning)
		snprintf(golden->first, sizeof(golden->first), "%s:%u:%u: %s%s%s (W%03d)", report->file,
			 report->line, report->column, report->pointer, *report->pointer ? ": " : "",
			 report->text, report->number);
	wr_text_add(&golden->said, "%u:%u: %s: %s (W%03d)%s\n", report->line, report->column, report->pointer,
		    report->text, report->number, report->warning ? " warning" : "");
	show_place(golden, report->line, report->column);
	seen[report->number] = true;
	assert_int_equal(report->warning, strstr(titles[report->number], "(warning)") != NULL);
	if (golden->description && !strpbrk(report->pointer, "\\~")) /* the walk does not know escapes */
		assert_true(is_place_of(&golden->description->root, report->pointer, report->line,
					report->column));
}

static void compare(const char *path, struct wr_text *said)
{
	struct wr_text expected = {0};
	FILE *file;

	if (getenv("WEIR_UPDATE")) {
		file = fopen(path, "w");
		assert_non_null(file);
		fwrite(said->text, 1, said->length, file);
		fclose(file);
	}
	assert_int_equal(wr_file_read(&expected, path, WR_FILE_MAX), WEIR_OK);
	assert_string_equal(said->text, expected.text);
	wr_text_finish(&expected);
}

static void says_what_is_expected(void **state)
{
	struct golden golden = {0};
	char path[320];
	weir_status status;

	snprintf(path, sizeof(path), "bad/%s/graph.json", (const char *)*state);
	assert_int_equal(wr_file_read(&golden.source, path, WR_FILE_MAX), WEIR_OK);
	status = weir_description_read(path, 0, collect, &golden, &golden.description);
	if (!status)
		status = weir_description_check(golden.description, NULL, collect, &golden);
	if (!status)
		status = weir_description_check_files(golden.description, NULL, collect, &golden);
	assert_true(golden.reports > 0);
	assert_int_equal(status, *golden.first ? WEIR_E_INVALID : WEIR_OK);
	if (status)
		assert_string_equal(weir_last_error(), golden.first);
	snprintf(path, sizeof(path), "bad/%s/expected", (const char *)*state);
	compare(path, &golden.said);
	wr_text_finish(&golden.source);
	wr_text_finish(&golden.said);
	weir_description_destroy(golden.description);
}

/* Text sizes, floods of errors and users' operators have tests of their own: 002, 034 and 047. */
static void every_number_has_a_case(void **state)
{
	(void)state;
#define ASSERT_SEEN(name, number, title)                                                                     \
	if (number != WR_W_TEXT_SIZE && number != WR_W_TOO_MANY && number != WR_W_DEVICE_PORT &&             \
	    !seen[number])                                                                                   \
		fail_msg("no case for W%03d: %s", number, title);
	WR_ERROR_TABLE(ASSERT_SEEN)
}

int main(void)
{
	struct CMUnitTest tests[121] = {{0}};
	struct dirent **entries;
	int count = scandir("bad", &entries, NULL, alphasort), n = 0, failed;

	for (int i = 0; i < count && n < 120; i++)
		if (entries[i]->d_name[0] != '.')
			tests[n++] = (struct CMUnitTest){entries[i]->d_name, says_what_is_expected, NULL,
							 NULL, entries[i]->d_name};
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(every_number_has_a_case);
	failed = _cmocka_run_group_tests("bad graphs", tests, (size_t)n, NULL, NULL);
	for (int i = 0; i < count; i++)
		free(entries[i]);
	free(entries);
	return failed;
}

/* The real built-ins: their tables pass the checks for plugins, and the examples are valid. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "graphs/registry.h"
#include "graphs/table.h"
#include "kinds.h"

static void built_in_tables_pass_the_check_of_plugins(void **state)
{
	(void)state;
	for (size_t i = 0; weir_registry_operator(NULL, i); i++)
		if (wr_operator_check(weir_registry_operator(NULL, i)))
			fail_msg("%s", weir_last_error());
	for (size_t i = 0; weir_registry_condition(NULL, i); i++) {
		const weir_condition *kind = weir_registry_condition(NULL, i);
		bool claims = !kind->ask; /* for the scheduler alone */
		assert_int_equal(claims, !strcmp(kind->name, "memory_available"));
		if (!claims && wr_condition_check(kind))
			fail_msg("%s", weir_last_error());
	}
	assert_non_null(wr_registry_find_condition(NULL, "message_available"));
	assert_non_null(wr_registry_find_condition(NULL, "downstream_message_affordable"));
}

static void every_example_is_right(void **state)
{
	struct dirent *entry;
	DIR *folder = opendir("../../examples");
	int graphs = 0;

	(void)state;
	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		weir_description *description = NULL;
		char path[400];
		weir_status status;

		if (!strstr(entry->d_name, ".json"))
			continue;
		snprintf(path, sizeof(path), "../../examples/%s", entry->d_name);
		status = weir_description_read(path, 0, NULL, NULL, &description);
		if (!status)
			status = weir_description_check(description, NULL, NULL, NULL);
		weir_description_destroy(description);
		graphs++;
		if (status)
			fail_msg("%s", weir_last_error());
	}
	closedir(folder);
	assert_true(graphs > 0);
}

/* The graphs in a text: indented by a tab, from "{" to "}" alone on a line. */
static void every_graph_in_the_docs_is_right(void **state)
{
	struct wr_text docs = {0};
	int graphs = 0;

	(void)state;
	assert_int_equal(wr_file_read(&docs, "../../docs/graph-format.md", WR_FILE_MAX), WEIR_OK);
	for (char *at = docs.text, *end; (at = strstr(at, "\n\t{\n")); at = end, graphs++) {
		weir_description *description = NULL;
		weir_status status;

		end = strstr(at, "\n\t}\n");
		assert_non_null(end);
		status = weir_description_parse(at, (size_t)(end + 3 - at), NULL, NULL, &description);
		if (!status)
			status = weir_description_check(description, NULL, NULL, NULL);
		weir_description_destroy(description);
		if (status)
			fail_msg("%s", weir_last_error());
	}
	assert_int_equal(graphs, 3);
	wr_text_finish(&docs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(built_in_tables_pass_the_check_of_plugins),
		cmocka_unit_test(every_example_is_right),
		cmocka_unit_test(every_graph_in_the_docs_is_right),
	};

	return cmocka_run_group_tests_name("built-ins", tests, NULL, NULL);
}

/* Reading a graph when an allocation fails inside the JSON parser. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "kinds.h"

/* A string of many memory blocks, with escapes. */
static char long_graph[120000];

static int make_long_graph(void **state)
{
	size_t at;

	(void)state;
	at = (size_t)snprintf(long_graph, sizeof long_graph,
			      "{\"weir\": 1, \"scheduler\": {\"seed\": 1234567890123, \"drain\": \"1.5s\"}, "
			      "\"entities\": [{\"name\": \"read\", \"operator\": \"source\", \"parameters\": "
			      "{\"path\": \"");
	while (at < 100000)
		at += (size_t)snprintf(long_graph + at, 64, "im\\u0061ges-%zu\\ud83d\\ude00", at);
	snprintf(long_graph + at, sizeof long_graph - at,
		 "\"}}, {\"name\": \"write\", \"operator\": \"sink\"}], "
		 "\"connections\": [[\"read.out\", \"write.in\"]]}");
	return 0;
}

/* Reads and prints as JSON; the n-th allocation fails, none if n < 0. */
static weir_status read_and_print(const char *text, int64_t n, char **out)
{
	weir_description *description = NULL;
	weir_status status;

	wr_memory_fail_at(n, false);
	status = weir_description_parse(text, strlen(text), NULL, NULL, &description);
	wr_memory_fail_at(-1, false);
	if (!status)
		status = weir_description_print(description, NULL, WEIR_FORMAT_JSON, out);
	weir_description_destroy(description);
	return status;
}

static int64_t allocations(const char *text)
{
	weir_description *description = NULL;
	int64_t before = wr_memory_count();

	assert_int_equal(weir_description_parse(text, strlen(text), NULL, NULL, &description), WEIR_OK);
	weir_description_destroy(description);
	return wr_memory_count() - before;
}

static void xa06_a_failed_allocation_is_out_of_memory_and_never_another_graph(void **state)
{
	const char *text = *state;
	int64_t count = allocations(text);
	char *right = NULL;

	assert_int_equal(read_and_print(text, -1, &right), WEIR_OK);
	assert_in_range(count, 20, 100000); /* including jansson's own */
	for (int64_t n = 0; n < count; n++) {
		char *out = NULL;
		weir_status status = read_and_print(text, n, &out);

		if (status)
			assert_int_equal(status, WEIR_E_NOMEM);
		else
			assert_string_equal(out, right);
		weir_text_free(out);
	}
	weir_text_free(right);
}

static void xa06_a_value_that_is_set_is_not_taken_as_a_string_for_want_of_memory(void **state)
{
	weir_description *description = NULL;

	(void)state;
	assert_int_equal(weir_description_parse(long_graph, strlen(long_graph), NULL, NULL, &description),
			 WEIR_OK);
	for (int64_t n = 0; n < 60; n++) {
		char *out = NULL;
		weir_status status;

		wr_memory_fail_at(n, false);
		status = weir_description_set(description, "read.repeat=7");
		wr_memory_fail_at(-1, false);
		assert_true(!status || status == WEIR_E_NOMEM);
		assert_int_equal(weir_description_print(description, NULL, WEIR_FORMAT_JSON, &out), WEIR_OK);
		assert_null(strstr(out, "repeat\": \"7"));
		weir_text_free(out);
	}
	weir_description_destroy(description);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(xa06_a_failed_allocation_is_out_of_memory_and_never_another_graph,
					  (void *)good_graph),
		cmocka_unit_test_prestate(xa06_a_failed_allocation_is_out_of_memory_and_never_another_graph,
					  (void *)resource_graph),
		cmocka_unit_test_prestate(xa06_a_failed_allocation_is_out_of_memory_and_never_another_graph,
					  (void *)long_graph),
		cmocka_unit_test(xa06_a_value_that_is_set_is_not_taken_as_a_string_for_want_of_memory),
	};

	return cmocka_run_group_tests(tests, make_long_graph, NULL);
}

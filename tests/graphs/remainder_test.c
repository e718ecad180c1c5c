/* The remainder of a green context pool has a name, even if it is not the pool's default. */
#include <string.h>

#include "graphs/plan.h"
#include "kinds.h"

static const char text[] =
	"{\"weir\": 1, \"resources\": {"
	"\"parts\": {\"type\": \"green_context_pool\", \"sms_per_partition\": [8, 16], "
	"\"default_context_index\": 0},"
	"\"rest\": {\"type\": \"green_context\", \"pool\": \"parts\", \"index\": \"remainder\"},"
	"\"usual\": {\"type\": \"green_context\", \"pool\": \"parts\"}},"
	"\"entities\": ["
	"{\"name\": \"a\", \"operator\": \"relay\", \"resources\": [\"rest\"]},"
	"{\"name\": \"b\", \"operator\": \"sink\", \"resources\": [\"usual\"]}],"
	"\"connections\": [[\"a.out\", \"b.in\"]], \"inlets\": [\"a.in\"]}";

static void the_remainder_is_not_the_default(void **state)
{
	struct wr_plan *plan = kinds_plan(text, false);

	(void)state;
	assert_string_equal(plan->green_contexts[0].name, "rest");
	assert_int_equal(plan->green_contexts[0].index, -1);
	assert_int_equal(plan->green_contexts[1].index, 0);
	wr_plan_destroy(plan);
}

static void a_printed_graph_names_it_again(void **state)
{
	char *once = kinds_print_text(text, WEIR_FORMAT_JSON),
	     *twice = kinds_print_text(once, WEIR_FORMAT_JSON);

	(void)state;
	assert_non_null(strstr(
		once,
		"\"rest\": {\"type\": \"green_context\", \"pool\": \"parts\", \"index\": \"remainder\"}"));
	assert_string_equal(once, twice);
	weir_text_free(once);
	weir_text_free(twice);
}

static void calls_name_it(void **state)
{
	weir_description *description = kinds_read(text);

	(void)state;
	assert_int_equal(weir_description_put(description, "/resources/too",
					      "{\"type\": \"green_context\", \"pool\": \"parts\", "
					      "\"index\": \"remainder\"}"),
			 WEIR_OK);
	assert_int_equal(weir_description_put(description, "/entities/1/resources/0", "\"too\""), WEIR_OK);
	assert_int_equal(weir_description_check(description, NULL, NULL, NULL), WEIR_OK);
	assert_int_equal(weir_description_put(description, "/resources/rest/index", "\"rest\""), WEIR_OK);
	assert_int_equal(weir_description_check(description, NULL, NULL, NULL), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "'rest' is not one of remainder"));
	weir_description_destroy(description);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_remainder_is_not_the_default),
		cmocka_unit_test(a_printed_graph_names_it_again),
		cmocka_unit_test(calls_name_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

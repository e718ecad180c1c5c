/* weir_has() knows the library's public functions. That it knows all of them is house.exports. */
#include "test.h"
#include "weir.h"

static void it_has_the_first_the_last_and_itself(void **state)
{
	(void)state;
	assert_true(weir_has("weir_context_allocate_stream"));
	assert_true(weir_has("weir_view_watched"));
	assert_true(weir_has("weir_has"));
	assert_true(weir_has("weir_graph_open"));
}

static void it_has_no_function_of_the_future_nor_a_part_of_a_name(void **state)
{
	static const char *const others[] = {"",
					     "a",
					     "weir_",
					     "weir_context_lease",
					     "weir_graph_ope",
					     "weir_graph_openn",
					     "WEIR_GRAPH_OPEN",
					     "wr_alloc",
					     "weir_zzz"};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(weir_has(others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_has_the_first_the_last_and_itself),
		cmocka_unit_test(it_has_no_function_of_the_future_nor_a_part_of_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* No tool, no observer. A separate program, since the recorder must not be linked. */
#include "trace/trace.h"

#include "test.h"

static void without_a_tool_nothing_is_observed(void **state)
{
	struct wr_trace_options options = {.workers = 1};
	struct wr_trace *trace = NULL;

	(void)state;
	assert_int_equal(wr_trace_open(&options, &trace), WEIR_OK);
	assert_null(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(without_a_tool_nothing_is_observed)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

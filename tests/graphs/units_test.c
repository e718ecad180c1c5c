/* One grammar of durations: in graph files, in values set by calls, in options. */
#include <stdio.h>
#include <string.h>

#include "kinds.h"

static void xb09_a_duration_without_a_unit_is_refused(void **state)
{
	static const char *const wrong[] = {"",     "30",    "0",          "-1",       "-1s",
					    ".5s",  "1.s",   "1 ms",       "1e3s",     "0x1s",
					    "60Hz", "1 kHz", "1fortnight", "99999999h"};
	int64_t ns = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(weir_duration_parse(wrong[i], &ns), WEIR_E_INVALID);
		assert_non_null(strstr(weir_last_error(), "like \"10ms\""));
	}
	assert_int_equal(ns, 7);
}

static void xb09_a_duration_with_a_unit_is_read(void **state)
{
	int64_t ns;

	(void)state;
	assert_int_equal(weir_duration_parse("1.5ms", &ns), WEIR_OK);
	assert_int_equal(ns, 1500000);
	assert_int_equal(weir_duration_parse("0s", &ns), WEIR_OK);
	assert_int_equal(ns, 0);
}

static void note(const weir_diagnostic *report, void *arg)
{
	snprintf(arg, 256, "%s W%03d %s", report->pointer, report->number, report->text);
}

/* Values set by calls are JSON, too. */
static void xb09_a_bare_number_that_a_call_puts_is_refused(void **state)
{
	weir_description *description = NULL;
	char said[256] = "";

	(void)state;
	assert_int_equal(weir_description_parse(good_graph, strlen(good_graph), NULL, NULL, &description),
			 WEIR_OK);
	assert_int_equal(weir_description_put(description, "/scheduler/drain", "30"), WEIR_OK);
	assert_int_equal(weir_description_check(description, NULL, note, said), WEIR_E_INVALID);
	assert_string_equal(said, "/scheduler/drain W012 30 has no unit: write \"30ms\", or \"30ns\" for "
				  "nanoseconds");
	assert_int_equal(weir_description_put(description, "/scheduler/drain", "\"30ms\""), WEIR_OK);
	assert_int_equal(weir_description_check(description, NULL, note, said), WEIR_OK);
	weir_description_destroy(description);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb09_a_duration_without_a_unit_is_refused),
		cmocka_unit_test(xb09_a_duration_with_a_unit_is_read),
		cmocka_unit_test(xb09_a_bare_number_that_a_call_puts_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

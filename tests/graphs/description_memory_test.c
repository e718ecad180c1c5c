/* Descriptions when memory runs out: each allocation fails once (F90). */
#include <string.h>

#include "base/memory.h"
#include "graphs/description.h"
#include "graphs/report.h"
#include "graphs/json.h"
#include "graphs/plan.h"
#include "kinds.h"

/* --- out of memory --- */

/* Prints it in all forms, unless the status is an error already. */
static weir_status print_and_destroy(weir_description *description, weir_status status)
{
	char *out = NULL;

	if (!status)
		status = weir_description_print(description, NULL, WEIR_FORMAT_JSON, &out);
	weir_text_free(out);
	out = NULL;
	if (!status)
		status = weir_description_print(description, NULL, WEIR_FORMAT_TEXT, &out);
	weir_text_free(out);
	out = NULL;
	if (!status)
		status = weir_description_print(description, NULL, WEIR_FORMAT_DOT, &out);
	weir_text_free(out);
	weir_description_destroy(description);
	return status;
}

static weir_status everything(const char *text)
{
	weir_description *description = NULL;
	weir_status status = weir_description_parse(text, strlen(text), NULL, NULL, &description);

	if (!status)
		status = weir_description_put(description, "/scheduler/new~0key/-/x", "[1, {\"a\": \"b\"}]");
	if (!status)
		status = weir_description_put(description, "/scheduler", "{\"workers\": 2}");
	if (!status)
		status = weir_description_set(description, "write.x=[1");
	if (!status)
		status = weir_description_put(description, "/entities/2/parameters", "{}");
	if (!status)
		status = weir_description_check(description, NULL, NULL, NULL);
	return print_and_destroy(description, status);
}

/* LeakSanitizer reports leaks. */
static void sweep(const char *text, bool all, weir_status expected)
{
	int64_t count = wr_memory_count();

	assert_int_equal(everything(text), expected);
	count = wr_memory_count() - count;
	assert_true(count > 50);
	for (int64_t n = 0; n < count; n++) {
		weir_status status;

		wr_memory_fail_at(n, all);
		status = everything(text);
		wr_memory_fail_at(-1, false);
		if (status != WEIR_E_NOMEM &&
		    !(status == expected && expected)) /* a report's text may be missing */
			fail_msg("allocation %lld failed, but the status is %d", (long long)n, status);
		if (status == WEIR_E_NOMEM)
			assert_string_equal(weir_last_error(), "out of memory");
	}
}

/* The same for resources built by calls. */
static weir_status all_resources(void)
{
	static const char *const puts[][2] = {
		{"/resources/more", "{\"type\": \"green_context_pool\", \"sms_per_partition\": [8, 16]}"},
		{"/resources/one", "{\"type\": \"green_context\", \"pool\": \"more\", \"index\": 1}"},
		{"/resources/slow", "{\"type\": \"stream_pool\", \"green_context\": \"more\"}"},
		{"/resources/frames", "{\"type\": \"memory_pool\", \"place\": \"host\", \"block_size\": "
				      "8, \"blocks\": 2}"},
	};
	static char bytes[2][8];
	void *const blocks[] = {bytes[0], bytes[1]};
	weir_description *description = NULL;
	weir_status status =
		weir_description_parse(resource_graph, strlen(resource_graph), NULL, NULL, &description);

	for (size_t i = 0; !status && i < sizeof puts / sizeof *puts; i++)
		status = weir_description_put(description, puts[i][0], puts[i][1]);
	if (!status)
		status = weir_description_set_pool_memory(description, "frames", sizeof bytes[0], blocks, 2);
	if (!status)
		status = weir_description_add_entity(description, "g", "source");
	if (!status)
		status = weir_description_use(description, "g", "slow");
	if (!status)
		status = weir_description_use(description, "g", "frames");
	return print_and_destroy(description, status);
}

static void f90_any_allocation_of_resources_fails(void **state)
{
	int64_t count = wr_memory_count();

	(void)state;
	assert_int_equal(all_resources(), WEIR_OK);
	count = wr_memory_count() - count;
	for (int64_t n = 0; n < 2 * count; n++) {
		weir_status status;

		wr_memory_fail_at(n / 2, n % 2);
		status = all_resources();
		wr_memory_fail_at(-1, false);
		assert_int_equal(status, WEIR_E_NOMEM);
		assert_string_equal(weir_last_error(), "out of memory");
	}
}

static void f90_any_allocation_fails_once(void **state)
{
	(void)state;
	sweep(good_graph, false, WEIR_OK);
}

static void f90_any_allocation_fails_and_all_after_it(void **state)
{
	(void)state;
	sweep(good_graph, true, WEIR_OK);
}

static void f90_also_of_a_graph_with_memory_pools(void **state)
{
	(void)state;
	sweep(memory_graph, false, WEIR_OK);
	sweep(memory_graph, true, WEIR_OK);
}

static void f90_also_of_a_graph_that_is_wrong(void **state)
{
	static const char wrong[] =
		"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"relay\", \"ports\": {\"x\": "
		"1}},"
		"{\"name\": \"b\", \"operator\": \"relay\"}, {\"name\": \"write\", \"operator\": "
		"\"nothing\"}],"
		"\"connections\": [[\"a.out\", \"b.in\"], [\"b.out\", \"a.in\"], [\"a.out\", \"b.in\"]]}";

	(void)state;
	sweep(wrong, false, WEIR_E_INVALID);
	sweep(wrong, true, WEIR_E_INVALID);
}

/* Ports that parameters decide, types that agree and do not, instances, files. */
static const char checked_graph[] =
	"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"shaped\", \"parameters\": "
	"{\"shape\": "
	"\"[5, W]\"}}, {\"name\": \"b\", \"operator\": \"sink\"}, {\"name\": \"i\", \"operator\": "
	"\"copier\", "
	"\"parameters\": {\"from\": \"x\", \"to\": \"y\", \"folder\": \"z\"}}, {\"name\": \"t\", "
	"\"operator\": \"three\"}, "
	"{\"name\": \"p\", \"operator\": \"pair\"}], \"connections\": [[\"a.out\", \"b.in\"], [\"t.out\", "
	"\"p.left\"], [\"t.out\", \"p.right\"]]}";

static weir_status check_with_files(const weir_description *description)
{
	weir_status status = weir_description_check(description, NULL, NULL, NULL);

	return status ? status : weir_description_check_files(description, NULL, NULL, NULL);
}

static void f90_any_allocation_of_a_check_fails_once(void **state)
{
	weir_description *description = kinds_read(checked_graph);
	int64_t count = wr_memory_count();

	(void)state;
	if (check_with_files(description))
		fail_msg("%s", weir_last_error());
	count = wr_memory_count() - count;
	assert_true(count > 50);
	for (int64_t n = 0; n < 2 * count; n++) {
		weir_status status;

		weir_description_destroy(description);
		description = kinds_read(checked_graph);
		wr_memory_fail_at(n / 2, n % 2);
		status = check_with_files(description);
		wr_memory_fail_at(-1, false);
		if (status != WEIR_E_NOMEM)
			fail_msg("allocation %lld failed, but the status is %d", (long long)(n / 2), status);
	}
	weir_description_destroy(description);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f90_any_allocation_fails_once),
		cmocka_unit_test(f90_any_allocation_fails_and_all_after_it),
		cmocka_unit_test(f90_any_allocation_of_resources_fails),
		cmocka_unit_test(f90_also_of_a_graph_with_memory_pools),
		cmocka_unit_test(f90_also_of_a_graph_that_is_wrong),
		cmocka_unit_test(f90_any_allocation_of_a_check_fails_once),
	};

	return cmocka_run_group_tests_name("description memory", tests, NULL, NULL);
}

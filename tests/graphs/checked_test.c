/* The plan of a checked description is made once: the graph takes it, unless something has changed. */
#include <string.h>

#include "graphs/description.h"
#include "kinds.h"

static weir_description *checked_description(const weir_registry *registry)
{
	static const char text[] = "{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"ping\"},"
				   " {\"name\": \"b\", \"operator\": \"sink\"}],"
				   " \"connections\": [[\"a.out\", \"b.in\"]]}";
	weir_description *description = NULL;

	assert_int_equal(weir_description_parse(text, strlen(text), NULL, NULL, &description), WEIR_OK);
	assert_null(description->checked);
	assert_int_equal(weir_description_check(description, registry, NULL, NULL), WEIR_OK);
	assert_non_null(description->checked);
	return description;
}

static void the_plan_of_a_check_is_taken(void **state)
{
	weir_description *description = checked_description(NULL);
	struct wr_plan *made = description->checked, *plan = NULL;
	char *text = NULL;

	(void)state;
	assert_int_equal(weir_description_print(description, NULL, WEIR_FORMAT_TEXT, &text), WEIR_OK);
	weir_text_free(text);
	assert_ptr_equal(description->checked, made);
	assert_int_equal(wr_description_plan(&plan, NULL, description), WEIR_OK);
	assert_ptr_equal(plan, made);
	assert_null(description->checked);
	wr_plan_destroy(plan);
	weir_description_destroy(description);
}

static void a_description_that_changes_is_planned_again(void **state)
{
	weir_description *description = checked_description(NULL);
	struct wr_plan *plan = NULL;

	(void)state;
	assert_int_equal(weir_description_put(description, "/name", "\"other\""), WEIR_OK);
	assert_null(description->checked);
	assert_int_equal(weir_description_check(description, NULL, NULL, NULL), WEIR_OK);
	assert_int_equal(weir_description_set(description, "a.bytes=3"), WEIR_OK);
	assert_null(description->checked);
	assert_int_equal(wr_description_plan(&plan, NULL, description), WEIR_OK);
	assert_string_equal(plan->name, "other");
	wr_plan_destroy(plan);
	weir_description_destroy(description);
}

/* The second registry may well be where the first one was. */
static void a_plan_of_another_registry_is_not_taken(void **state)
{
	weir_registry *first = NULL, *second = NULL;
	weir_description *description;
	struct wr_plan *plan = NULL;
	uint64_t stamp;

	(void)state;
	assert_int_equal(weir_registry_create(&first), WEIR_OK);
	description = checked_description(first);
	stamp = description->checked->registry;
	weir_registry_destroy(first);
	assert_int_equal(weir_registry_create(&second), WEIR_OK);
	assert_int_equal(wr_description_plan(&plan, second, description), WEIR_OK);
	assert_int_not_equal(plan->registry, stamp);
	wr_plan_destroy(plan);
	weir_registry_destroy(second);
	weir_description_destroy(description);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_plan_of_a_check_is_taken),
		cmocka_unit_test(a_description_that_changes_is_planned_again),
		cmocka_unit_test(a_plan_of_another_registry_is_not_taken),
	};

	return cmocka_run_group_tests_name("checked", tests, NULL, NULL);
}

/* Changes of a description by pointers and assignments: what a key means, and what is refused. */
#include <stdio.h>
#include <string.h>

#include "kinds.h"

static void assert_put_refused(weir_description *description, const char *pointer, const char *said)
{
	assert_int_equal(weir_description_put(description, pointer, "1"), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), said);
}

static void assert_set_refused(weir_description *description, const char *assignment, const char *said)
{
	assert_int_equal(weir_description_set(description, assignment), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), said);
}

/* --- keys --- */

static void a_key_of_a_list_is_an_index_without_leading_zeroes(void **state)
{
	static const char *const keys[] = {"x", "-1", "01", "1x", "+0", "3", ":", "99999999999999999999", ""};
	weir_description *description = kinds_read("{\"weir\": 1, \"entities\": [{\"name\": \"a\"}, 2]}");
	char pointer[64], said[160];

	(void)state;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		snprintf(pointer, sizeof pointer, "/entities/%s", keys[i]);
		snprintf(said, sizeof said, "%s: '%s' is not an index of a list of 2: use \"-\" to append",
			 pointer, keys[i]);
		assert_put_refused(description, pointer, said);
	}
	/* A parent that is not there is made, but not where its own key is wrong. */
	assert_put_refused(description, "/entities/01/name",
			   "/entities/01/name: '01' is not an index of a list of 2: use \"-\" to append");
	assert_put_refused(description, "/entities/1/name",
			   "/entities/1/name: 'name' would be inside an integer: put an object or a list "
			   "there first");
	weir_description_destroy(description);
}

static void an_index_replaces_an_item_and_the_count_appends_one(void **state)
{
	weir_description *description = kinds_read("{\"entities\": [{\"name\": \"a\"}, 2]}");

	(void)state;
	assert_int_equal(weir_description_put(description, "/entities/1", "{\"name\": \"b\"}"), WEIR_OK);
	assert_int_equal(weir_description_put(description, "/entities/2", "{\"name\": \"c\"}"), WEIR_OK);
	assert_int_equal(weir_description_put(description, "/entities/-/name", "\"d\""), WEIR_OK);
	assert_int_equal(weir_description_set(description, "b.x=1"), WEIR_OK);
	assert_int_equal(weir_description_set(description, "c.x=1"), WEIR_OK);
	assert_int_equal(weir_description_set(description, "d.x=1"), WEIR_OK);
	assert_put_refused(description, "/entities/5",
			   "/entities/5: '5' is not an index of a list of 4: use \"-\" to append");
	weir_description_destroy(description);
}

/* RFC 6901: "~1" is "/", "~0" is "~", and "~01" is "~1". */
static void an_escape_is_a_tilde_with_0_or_1(void **state)
{
	static const char *const wrong[] = {"/a~2b", "/a~", "/~/b", "/a/b~x"};
	weir_description *description = kinds_read("{\"a/b\": {\"~1\": [0]}}");
	char said[100];

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		snprintf(said, sizeof said, "'%s' is not a JSON pointer: write 0 or 1 after ~", wrong[i]);
		assert_put_refused(description, wrong[i], said);
	}
	assert_put_refused(description, "/a~1b/~01/7",
			   "/a~1b/~01/7: '7' is not an index of a list of 1: use \"-\" to append");
	weir_description_destroy(description);
}

/* --- entities --- */

static void set_finds_an_entity_among_items_that_are_none(void **state)
{
	weir_description *description = kinds_read(
		"{\"entities\": [7, {\"operator\": \"sink\"}, {\"name\": 3}, [], {\"name\": \"blur\", "
		"\"parameters\": {}}]}");

	(void)state;
	assert_int_equal(weir_description_set(description, "blur.radius=2"), WEIR_OK);
	assert_set_refused(description, "blurr.radius=2",
			   "there is no entity 'blurr' (did you mean 'blur'?)");
	assert_put_refused(description, "/entities/4/parameters/radius/x",
			   "/entities/4/parameters/radius/x: 'x' would be inside an integer: put an object "
			   "or a list there first");
	weir_description_destroy(description);
}

static void set_tells_a_resource_from_an_entity(void **state)
{
	weir_description *description =
		kinds_read("{\"entities\": [{\"name\": \"a\"}], \"resources\": {\"fast\": {}, \"9\": {}}}");

	(void)state;
	assert_set_refused(description, "fast.max_size=2",
			   "'fast' is a resource, not an entity: change it in \"resources\"");
	assert_set_refused(description, "slow.max_size=2", "there is no entity 'slow'");
	assert_set_refused(description, "9.max_size=2", "there is no entity '9'");
	weir_description_destroy(description);
}

static void set_and_resources_refuse_a_text_that_is_no_graph(void **state)
{
	weir_description *list = kinds_read("[1]"), *wrong = kinds_read("{\"resources\": [1]}");

	(void)state;
	assert_set_refused(list, "a.x=1", "there is no entity 'a'");
	assert_set_refused(wrong, "a.x=1", "there is no entity 'a'");
	assert_int_equal(weir_description_put(list, "/resources/fast", "{}"), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "/resources/fast: 'resources' is not an index of a list of "
					       "1: use \"-\" to append");
	assert_int_equal(weir_description_put(wrong, "/resources/fast", "{}"), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(),
			    "/resources/fast: 'fast' is not an index of a list of 1: use \"-\" to append");
	weir_description_destroy(list);
	weir_description_destroy(wrong);
}

/* --- values --- */

static void a_value_keeps_its_type_and_prints_as_it_was_given(void **state)
{
	weir_description *description =
		kinds_read("{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"source\"}, "
			   "{\"name\": \"b\", \"operator\": \"sink\"}], \"connections\": "
			   "[[\"a.out\", \"b.in\"]]}");
	char *text;

	(void)state;
	assert_int_equal(weir_description_set(description, "a.loop=false"), WEIR_OK);
	text = kinds_print(description, WEIR_FORMAT_TEXT);
	assert_non_null(strstr(text, " loop=false\n"));
	weir_text_free(text);
	assert_int_equal(weir_description_set(description, "a.loop=true"), WEIR_OK);
	text = kinds_print(description, WEIR_FORMAT_TEXT);
	assert_non_null(strstr(text, " loop=true\n"));
	weir_text_free(text);
	weir_description_destroy(description);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_of_a_list_is_an_index_without_leading_zeroes),
		cmocka_unit_test(an_index_replaces_an_item_and_the_count_appends_one),
		cmocka_unit_test(an_escape_is_a_tilde_with_0_or_1),
		cmocka_unit_test(set_finds_an_entity_among_items_that_are_none),
		cmocka_unit_test(set_tells_a_resource_from_an_entity),
		cmocka_unit_test(set_and_resources_refuse_a_text_that_is_no_graph),
		cmocka_unit_test(a_value_keeps_its_type_and_prints_as_it_was_given),
	};

	return cmocka_run_group_tests_name("graphs/changes", tests, NULL, NULL);
}

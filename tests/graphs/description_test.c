/* Descriptions: reading and building by calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "graphs/description.h"
#include "graphs/json.h"
#include "graphs/plan.h"
#include "graphs/report.h"
#include "kinds.h"

/* --- positions --- */

/* Every key and string of the text states its own line and column. */
static void check_says_place(const char *said, struct wr_place place)
{
	char expected[32];

	snprintf(expected, sizeof(expected), "%u:%u", place.line, place.column);
	assert_string_equal(said, expected);
}

static void walk(const struct wr_value *value)
{
	if (value->type == WR_STRING)
		check_says_place(value->string, value->place);
	for (size_t i = 0; i < wr_value_count(value); i++) {
		if (wr_value_at(value, i)->key)
			check_says_place(wr_value_at(value, i)->key, wr_value_at(value, i)->place);
		walk(&wr_value_at(value, i)->value);
	}
}

static void e06_every_value_knows_its_line_and_column(void **state)
{
	static const char text[] =
		"{\"1:2\": \"1:9\",\r\n\t\"2:2\" :[ \"2:11\",\"2:18\"\n,  \"3:4\", [[\"3:13\"]],\n\n"
		" {\"5:3\":{\"5:10\": {}}, \"5:23\":\"5:30\"}], \"5:40\": 1.5e3, \"5:55\": true }";
	weir_description *description = kinds_read(text);

	(void)state;
	walk(&description->root);
	weir_description_destroy(description);
}

static void e06_columns_count_characters_not_bytes(void **state)
{
	weir_description *description = kinds_read("[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\", 1]");

	(void)state;
	assert_int_equal(wr_value_at(&description->root, 1)->value.place.column, 9);
	weir_description_destroy(description);
}

static void f81_e06_a_byte_order_mark_is_passed_over_and_no_column(void **state)
{
	weir_description *description = kinds_read("\xef\xbb\xbf{\"1:2\": \"1:9\"}");

	(void)state;
	walk(&description->root);
	assert_int_equal(wr_value_count(&description->root), 1);
	weir_description_destroy(description);
}

static void escapes_and_numbers_mean_what_json_says(void **state)
{
	weir_description *description =
		kinds_read("[\"a\\u00e9\\ud83d\\ude00\\\"\\\\\\n\", -9223372036854775808, 1e5, null]");
	const struct wr_value *root = &description->root;

	(void)state;
	assert_string_equal(wr_value_at(root, 0)->value.string, "a\xc3\xa9\xf0\x9f\x98\x80\"\\\n");
	assert_true(wr_value_at(root, 1)->value.integer == INT64_MIN);
	assert_int_equal(wr_value_at(root, 2)->value.type, WR_REAL);
	assert_int_equal(wr_value_at(root, 3)->value.type, WR_NULL);
	weir_description_destroy(description);
}

/* --- limits --- */

struct last {
	int number;
	size_t count;
};

static void note(const weir_diagnostic *report, void *arg)
{
	struct last *last = arg;

	last->number = report->number;
	last->count++;
}

static void f80_a_text_too_large_is_refused_before_it_is_looked_at(void **state)
{
	weir_description *description = NULL;
	struct last last = {0};

	(void)state; /* only the first byte exists */
	assert_int_equal(weir_description_parse("{", WR_FILE_MAX + 1, note, &last, &description),
			 WEIR_E_INVALID);
	assert_int_equal(last.number, WR_W_TEXT_SIZE);
	assert_null(description);
}

static void f80_a_file_too_large_is_not_read(void **state)
{
	char path[] = "/tmp/weir-graph-XXXXXX";
	weir_description *description = NULL;
	struct last last = {0};
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(ftruncate(fd, (off_t)WR_FILE_MAX + 1), 0);
	assert_int_equal(weir_description_read(path, 0, note, &last, &description), WEIR_E_INVALID);
	assert_int_equal(last.number, WR_W_TEXT_SIZE);
	assert_non_null(strstr(weir_last_error(), "(W002)"));
	close(fd);
	unlink(path);
}

static void e06_a_file_that_is_not_there_is_named(void **state)
{
	weir_description *description = NULL;

	(void)state;
	assert_int_equal(weir_description_read("no\x1bsuch.json", 0, NULL, NULL, &description), WEIR_E_IO);
	assert_non_null(strstr(weir_last_error(), "no\\u001bsuch.json"));
	assert_int_equal(weir_description_read(".", 0, NULL, NULL, &description), WEIR_E_IO);
	assert_int_equal(weir_description_read(NULL, 0, NULL, NULL, &description), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "a path is needed, NULL was given");
	assert_null(description);
}

/* 50,000 entities of four keys each, chained. */
static struct wr_text many_keys(void)
{
	struct wr_text text = {0};

	wr_text_add(&text, "{\"weir\": 1, \"entities\": [{\"name\": \"e0\", \"operator\": \"source\"}");
	for (int i = 1; i < 50000; i++)
		wr_text_add(
			&text,
			",\n{\"name\": \"e%d\", \"operator\": \"relay\", \"parameters\": {}, \"ports\": {}}",
			i);
	wr_text_add(&text, "], \"connections\": [[\"e0.out\", \"e1.in\"]");
	for (int i = 1; i < 49999; i++)
		wr_text_add(&text, ",[\"e%d.out\", \"e%d.in\"]", i, i + 1);
	wr_text_add(&text, ",{\"from\": \"e49999.out\", \"to\": \"e1.side\", \"initial_messages\": 1}]}");
	assert_int_equal(text.status, WEIR_OK);
	return text;
}

static void f89_200000_keys_are_no_trouble(void **state)
{
	struct wr_text text = many_keys();
	weir_description *description = kinds_read(text.text);
	int64_t before = wr_now();

	(void)state;
	if (weir_description_check(description, NULL, NULL, NULL))
		fail_msg("%s", weir_last_error());
	print_message("checked in %lld ms\n", (long long)((wr_now() - before) / 1000000));
	weir_description_destroy(description);
	wr_text_finish(&text);
}

static void f89_one_object_of_200000_keys_is_found_wrong_in_no_time(void **state)
{
	struct wr_text text = {0};
	struct last last = {0};
	weir_description *description;

	(void)state;
	wr_text_add(&text, "{\"weir\": 1, \"entities\": []");
	for (int i = 0; i < 200000; i++)
		wr_text_add(&text, ", \"key%d\": %d", i, i);
	wr_text_add(&text, "}");
	description = kinds_read(text.text);
	assert_int_equal(weir_description_check(description, NULL, note, &last), WEIR_E_INVALID);
	assert_int_equal(last.number, WR_W_TOO_MANY); /* the 1001st says that there are more */
	assert_int_equal(last.count, 1001);
	weir_description_destroy(description);
	wr_text_finish(&text);
}

/* --- built by calls --- */

static void calls_and_text_mean_the_same(void **state)
{
	static const char text[] =
		"{\"weir\": 1, \"scheduler\": {\"workers\": 4}, \"entities\": ["
		"{\"name\": \"read\", \"operator\": \"source\", \"parameters\": {\"path\": \"photos\", "
		"\"repeat\": 3}},"
		"{\"name\": \"write\", \"operator\": \"sink\", \"ports\": {\"in\": {\"capacity\": 4}},"
		" \"conditions\": [{\"type\": \"cuda_stream\", \"port\": \"in\"}]}],"
		"\"connections\": [[\"read.out\", \"write.in\"]]}";
	weir_description *read = kinds_read(text), *made = NULL;
	char *as_read = kinds_print(read, WEIR_FORMAT_JSON), *as_made;

	(void)state;
	assert_int_equal(weir_description_create(&made), WEIR_OK);
	assert_int_equal(weir_description_add_entity(made, "read", "source"), WEIR_OK);
	assert_int_equal(weir_description_add_entity(made, "write", "sink"), WEIR_OK);
	assert_int_equal(weir_description_connect(made, "read.out", "write.in"), WEIR_OK);
	assert_int_equal(weir_description_put(made, "/scheduler/workers", "4"), WEIR_OK);
	assert_int_equal(weir_description_put(made, "/entities/1/ports/in/capacity", "4"), WEIR_OK);
	assert_int_equal(weir_description_put(made, "/entities/1/conditions/-",
					      "{\"type\": \"cuda_stream\", \"port\": \"in\"}"),
			 WEIR_OK);
	assert_int_equal(weir_description_set(made, "read.path=photos"), WEIR_OK);
	assert_int_equal(weir_description_set(made, "read.repeat=3"), WEIR_OK);
	as_made = kinds_print(made, WEIR_FORMAT_JSON);
	assert_string_equal(as_made, as_read);
	weir_text_free(as_read);
	weir_text_free(as_made);
	weir_description_destroy(read);
	weir_description_destroy(made);
}

/* The resources of resource_graph in another order: a name may be used before it is defined. */
static void resources_by_calls_and_by_text_mean_the_same(void **state)
{
	static const char text[] =
		"{\"weir\": 1, \"resources\": {"
		"\"fast\": {\"type\": \"stream_pool\", \"priority\": -3, \"reserved_size\": 0, \"max_size\": "
		"4, "
		"\"green_context\": \"left\"},"
		"\"far\": {\"type\": \"stream_pool\", \"device\": 2, \"flags\": \"blocking\", \"default\": "
		"true},"
		"\"left\": {\"type\": \"green_context\", \"pool\": \"parts\", \"index\": 0},"
		"\"usual\": {\"type\": \"green_context\", \"pool\": \"parts\"},"
		"\"parts\": {\"type\": \"green_context_pool\", \"device\": 1, \"sms_per_partition\": [8, "
		"16], "
		"\"min_sm_size\": 4, \"default_context_index\": 1}},"
		"\"entities\": [{\"name\": \"a\", \"operator\": \"source\", \"resources\": [\"fast\"]},"
		"{\"name\": \"b\", \"operator\": \"source\", \"resources\": [\"usual\"]},"
		"{\"name\": \"c\", \"operator\": \"source\"}]}";
	static const struct {
		const char *pointer, *json;
	} resources[] = {
		{"/resources/fast", "{\"type\": \"stream_pool\", \"priority\": -3, \"reserved_size\": 0, "
				    "\"max_size\": 4, \"green_context\": \"left\"}"},
		{"/resources/far", "{\"type\": \"stream_pool\", \"device\": 2, \"flags\": \"blocking\", "
				   "\"default\": true}"},
		{"/resources/left", "{\"type\": \"green_context\", \"pool\": \"parts\", \"index\": 0}"},
		{"/resources/usual", "{\"type\": \"green_context\", \"pool\": \"parts\"}"},
		{"/resources/parts", "{\"type\": \"green_context_pool\", \"device\": 1, "
				     "\"sms_per_partition\": [8, 16], \"min_sm_size\": 4, "
				     "\"default_context_index\": 1}"},
	};
	weir_description *read = kinds_read(text), *made = NULL;
	char *as_read = kinds_print(read, WEIR_FORMAT_JSON), *as_made;

	(void)state;
	assert_int_equal(weir_description_create(&made), WEIR_OK);
	for (char name[] = "a"; *name <= 'c'; ++*name)
		assert_int_equal(weir_description_add_entity(made, name, "source"), WEIR_OK);
	assert_int_equal(weir_description_use(made, "a", "fast"), WEIR_OK);
	assert_int_equal(weir_description_use(made, "b", "usual"), WEIR_OK);
	for (size_t i = 0; i < sizeof resources / sizeof *resources; i++)
		assert_int_equal(weir_description_put(made, resources[i].pointer, resources[i].json),
				 WEIR_OK);
	as_made = kinds_print(made, WEIR_FORMAT_JSON);
	assert_string_equal(as_made, as_read);
	weir_text_free(as_read);
	weir_text_free(as_made);
	weir_description_destroy(read);
	weir_description_destroy(made);
}

static void use_names_the_nearest_entity(void **state)
{
	weir_description *made = NULL;

	(void)state;
	assert_int_equal(weir_description_create(&made), WEIR_OK);
	assert_int_equal(weir_description_add_entity(made, "blur", "filter"), WEIR_OK);
	assert_int_equal(weir_description_use(made, "blr", "a"), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "there is no entity 'blr' (did you mean 'blur'?)");
	weir_description_destroy(made);
}

static void set_names_the_nearest_entity(void **state)
{
	weir_description *description = kinds_read(good_graph);

	(void)state;
	assert_int_equal(weir_description_set(description, "blr.radius=1"), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "there is no entity 'blr' (did you mean 'blur'?)");
	assert_int_equal(weir_description_set(description, "blur=1"), WEIR_E_INVALID);
	assert_int_equal(weir_description_set(description, "blur.=1"), WEIR_E_INVALID);
	assert_int_equal(weir_description_set(description, ".radius=1"), WEIR_E_INVALID);
	weir_description_destroy(description);
}

static void put_changes_nothing_when_it_fails(void **state)
{
	static const char *const wrong[] = {"",        "entities", "/entities/x", "/entities/99",
					    "/name/x", "/a~2b",    "/weir/x/y/-"};
	weir_description *description = kinds_read(good_graph);
	char *before = kinds_print(description, WEIR_FORMAT_JSON), *after;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(weir_description_put(description, wrong[i], "1"), WEIR_E_INVALID);
	assert_int_equal(weir_description_put(description, "/name", "{"), WEIR_E_INVALID);
	after = kinds_print(description, WEIR_FORMAT_JSON);
	assert_string_equal(before, after);
	weir_text_free(before);
	weir_text_free(after);
	weir_description_destroy(description);
}

static void put_is_as_bounded_in_depth_as_a_text(void **state)
{
	weir_description *description = NULL;
	weir_status status = WEIR_OK;
	int depth = 0;

	(void)state;
	assert_int_equal(weir_description_create(&description), WEIR_OK);
	for (struct wr_text pointer = {0};; depth++) {
		wr_text_add(&pointer, "/x");
		status = weir_description_put(description, pointer.text, "{}");
		if (status) {
			wr_text_finish(&pointer);
			break;
		}
	}
	assert_int_equal(status, WEIR_E_INVALID);
	assert_int_equal(depth, 63);
	weir_description_destroy(description);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e06_every_value_knows_its_line_and_column),
		cmocka_unit_test(e06_columns_count_characters_not_bytes),
		cmocka_unit_test(f81_e06_a_byte_order_mark_is_passed_over_and_no_column),
		cmocka_unit_test(escapes_and_numbers_mean_what_json_says),
		cmocka_unit_test(f80_a_text_too_large_is_refused_before_it_is_looked_at),
		cmocka_unit_test(f80_a_file_too_large_is_not_read),
		cmocka_unit_test(e06_a_file_that_is_not_there_is_named),
		cmocka_unit_test(f89_200000_keys_are_no_trouble),
		cmocka_unit_test(f89_one_object_of_200000_keys_is_found_wrong_in_no_time),
		cmocka_unit_test(calls_and_text_mean_the_same),
		cmocka_unit_test(resources_by_calls_and_by_text_mean_the_same),
		cmocka_unit_test(use_names_the_nearest_entity),
		cmocka_unit_test(set_names_the_nearest_entity),
		cmocka_unit_test(put_changes_nothing_when_it_fails),
		cmocka_unit_test(put_is_as_bounded_in_depth_as_a_text),
	};

	return cmocka_run_group_tests_name("descriptions", tests, NULL, NULL);
}

/*
 * Inlets and outlets that a graph file names, and comments: their meaning, and what a printed graph keeps
 * of them.
 */
#include <stdio.h>
#include <string.h>

#include "graphs/plan.h"
#include "kinds.h"

static const char open_graph[] =
	"{\"weir\": 1, \"entities\": ["
	"{\"name\": \"one\", \"operator\": \"relay\"}, {\"name\": \"two\", \"operator\": \"relay\"}],"
	"\"connections\": [[\"one.out\", \"two.in\"]],"
	"\"inlets\": [\"one.in\", {\"port\": \"one.side\"}],"
	"\"outlets\": [\"two.out\", {\"port\": \"two.extra\", \"capacity\": 4}]}";

static bool is_right(const char *text)
{
	weir_description *description = kinds_read(text);
	weir_status status = weir_description_check(description, NULL, NULL, NULL);

	weir_description_destroy(description);
	return status == WEIR_OK;
}

static void xb11_named_ports_count_as_connected(void **state)
{
	struct wr_plan *plan = kinds_plan(open_graph, false);

	(void)state;
	assert_int_equal(plan->inlet_count, 2);
	assert_true(plan->entities[0].inputs[0].inlet && plan->entities[0].inputs[1].inlet);
	assert_int_equal(plan->entities[1].outputs[0].outlet, 1);
	assert_int_equal(plan->entities[1].outputs[1].outlet, 4);
	assert_int_equal(plan->entities[0].condition_count, 3); /* both inputs, and the connected output */
	assert_int_equal(plan->entities[1].condition_count, 3); /* the input, and both outputs */
	wr_plan_destroy(plan);
}

static void xb11_a_printed_graph_names_them_again(void **state)
{
	char *once = kinds_print_text(open_graph, WEIR_FORMAT_JSON),
	     *twice = kinds_print_text(once, WEIR_FORMAT_JSON);

	(void)state;
	assert_string_equal(once, twice);
	assert_non_null(strstr(once, "\"inlets\": [\"one.in\", \"one.side\"],\n"));
	assert_non_null(strstr(once, "{\"port\": \"two.extra\", \"capacity\": 4}]"));
	weir_text_free(once);
	weir_text_free(twice);
}

static void xb11_calls_may_name_them(void **state)
{
	weir_description *description =
		kinds_read("{\"weir\": 1, \"entities\": [{\"name\": \"end\", \"operator\": "
			   "\"sink\"}]}");

	(void)state;
	assert_int_equal(weir_description_check(description, NULL, NULL, NULL), WEIR_E_INVALID);
	assert_int_equal(weir_description_put(description, "/inlets/-", "\"end.in\""), WEIR_OK);
	assert_int_equal(weir_description_check(description, NULL, NULL, NULL), WEIR_OK);
	weir_description_destroy(description);
}

static void xb12_any_object_may_have_a_comment(void **state)
{
	static const char text[] =
		"{\"$schema\": \"graph.schema.json\", \"weir\": 1, \"comment\": \"c\", \"scheduler\": "
		"{\"comment\": \"c\"},"
		"\"resources\": {\"comment\": \"c\", \"pool\": {\"type\": \"stream_pool\", \"comment\": "
		"\"c\"},"
		" \"parts\": {\"type\": \"green_context_pool\", \"sms_per_partition\": [8], \"comment\": "
		"\"c\"},"
		" \"left\": {\"type\": \"green_context\", \"pool\": \"parts\", \"comment\": \"c\"}},"
		"\"entities\": [{\"name\": \"a\", \"operator\": \"relay\", \"comment\": \"c\","
		" \"parameters\": {\"comment\": \"c\"}, \"conditions\": [{\"type\": \"count\", \"comment\": "
		"\"c\"}],"
		" \"ports\": {\"comment\": \"c\", \"in\": {\"comment\": \"c\"}, \"out\": {\"comment\": "
		"\"c\"}}},"
		" {\"name\": \"b\", \"operator\": \"sink\"}],"
		"\"connections\": [{\"from\": \"a.out\", \"to\": \"b.in\", \"comment\": \"c\"}],"
		"\"inlets\": [{\"port\": \"a.in\", \"comment\": \"c\"}]}";
	char *json = kinds_print_text(text, WEIR_FORMAT_JSON);

	(void)state;
	assert_true(is_right(text));
	assert_null(strstr(json, "comment")); /* comments are not printed */
	weir_text_free(json);
}

/* A name with a meaning takes precedence. */
static void xb12_a_resource_may_be_called_comment(void **state)
{
	(void)state;
	assert_true(is_right(
		"{\"weir\": 1, \"resources\": {\"comment\": {\"type\": \"stream_pool\"}}, \"entities\": ["
		"{\"name\": \"a\", \"operator\": \"sink\", \"resources\": [\"comment\"]}],"
		"\"inlets\": [\"a.in\"]}"));
}

/* What leaves the instances leaves by the entity that puts it in order, also to the program. */
static void c13_xb11_an_outlet_of_instances_is_that_of_their_joiner(void **state)
{
	static const weir_condition order = {.size = sizeof order, .name = "order"};
	struct wr_plan *plan = kinds_plan(
		"{\"weir\": 1, \"entities\": [{\"name\": \"plain\", \"operator\": \"filter\", "
		"\"parameters\": "
		"{\"radius\": 1}}, {\"name\": \"many\", \"operator\": \"filter\", \"parameters\": "
		"{\"radius\": 1}, "
		"\"instances\": 3}], \"inlets\": [\"plain.in\", \"many.in\"], \"outlets\": [\"plain.out\", "
		"\"many.out\"]}",
		false);

	(void)state;
	assert_int_equal(wr_plan_expand(plan, &order), WEIR_OK);
	assert_int_equal(plan->entity_count, 6);
	assert_int_equal(plan->outlets[0].entity, 0);
	assert_int_equal(plan->outlets[1].entity, plan->entities[1].joiner);
	assert_int_equal(plan->entities[plan->entities[1].joiner].role, WR_JOINER);
	assert_int_equal(plan->inlets[1].entity, 1);
	assert_int_equal(plan->connection_count, 3 * (2 + 2)); /* the port, and whose turn it is */
	wr_plan_destroy(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb11_named_ports_count_as_connected),
		cmocka_unit_test(c13_xb11_an_outlet_of_instances_is_that_of_their_joiner),
		cmocka_unit_test(xb11_a_printed_graph_names_them_again),
		cmocka_unit_test(xb11_calls_may_name_them),
		cmocka_unit_test(xb12_any_object_may_have_a_comment),
		cmocka_unit_test(xb12_a_resource_may_be_called_comment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

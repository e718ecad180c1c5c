/* Tables that were built with a header whose structs have other sizes. */
#include <string.h>

#include "kinds.h"

struct small_port {
	size_t size;
	const char *name;
	unsigned flags, kinds;
	uint32_t capacity, take, max_emits;
	weir_policy policy;
	const char *help;
};

struct large_port {
	weir_port known;
	const char *further;
};

struct small_parameter {
	size_t size;
	const char *name;
	weir_parameter_type type;
	const char *fallback, *help;
	int64_t min, max;
};

struct large_parameter {
	weir_parameter known;
	int64_t further;
};

static const struct small_port small_inputs[] = {
	{.size = sizeof(struct small_port), .name = "in", .kinds = WEIR_KIND_TENSOR, .help = "frames"},
	{.size = sizeof(struct small_port), .name = "side", .flags = WEIR_PORT_OPTIONAL},
	{.name = NULL},
};
static const struct small_parameter small_parameters[] = {
	{.size = sizeof(struct small_parameter), .name = "gain", .type = WEIR_TYPE_INT, .fallback = "7"},
	{.size = sizeof(struct small_parameter), .name = "rate", .type = WEIR_TYPE_INT, .fallback = "8"},
	{.name = NULL},
};

static weir_status add(weir_registry *registry, const void *inputs, const void *parameters)
{
	const weir_operator *table;
	static weir_operator tables[8];
	static int count;
	weir_operator *own = &tables[count++ % 8];

	*own = (weir_operator){
		.size = sizeof *own, .name = "mine", .inputs = inputs, .parameters = parameters};
	table = own;
	return weir_registry_add_operator(registry, table);
}

static const weir_operator *operator_of(const weir_registry *registry, const char *name)
{
	const weir_operator *table = NULL;

	for (size_t i = 0; (table = weir_registry_operator(registry, i)); i++)
		if (!strcmp(table->name, name))
			break;
	assert_non_null(table);
	return table;
}

static void f92_smaller_ports_and_parameters_are_read_by_their_size(void **state)
{
	weir_registry *registry = NULL;
	const weir_operator *table;

	(void)state;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(add(registry, small_inputs, small_parameters), WEIR_OK);
	table = operator_of(registry, "mine");
	assert_string_equal(table->inputs[1].name, "side");
	assert_int_equal(table->inputs[1].size, sizeof(weir_port));
	assert_int_equal(table->inputs[1].flags, WEIR_PORT_OPTIONAL);
	assert_null(table->inputs[0].shape);
	assert_null(table->inputs[2].name);
	assert_string_equal(table->parameters[1].fallback, "8");
	assert_null(table->parameters[1].choices);
	assert_null(table->parameters[2].name);
	weir_registry_destroy(registry);
}

static void f92_a_graph_uses_an_operator_of_smaller_structs(void **state)
{
	static const char text[] =
		"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"image\"}, {\"name\": \"b\", "
		"\"operator\": \"mine\", \"parameters\": {\"rate\": 3}}], \"connections\": [[\"a.out\", "
		"\"b.in\"]]}";
	weir_description *description = kinds_read(text);
	weir_registry *registry = NULL;
	char *printed = NULL;

	(void)state;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(add(registry, small_inputs, small_parameters), WEIR_OK);
	assert_int_equal(weir_description_print(description, registry, WEIR_FORMAT_JSON, &printed), WEIR_OK);
	assert_non_null(strstr(printed, "\"gain\": 7"));
	weir_text_free(printed);
	weir_description_destroy(description);
	weir_registry_destroy(registry);
}

static void f92_larger_structs_are_read_if_what_is_unknown_is_zero(void **state)
{
	static const struct large_port ports[] = {
		{{.size = sizeof(struct large_port), .name = "in", .shape = "[N]"}, NULL},
		{{.size = sizeof(struct large_port), .name = "side"}, NULL},
		{{.name = NULL}, NULL}};
	static const struct large_port unknown[] = {
		{{.size = sizeof(struct large_port), .name = "in"}, NULL},
		{{.size = sizeof(struct large_port), .name = "side"}, "set"},
		{{.name = NULL}, NULL}};
	static const struct large_parameter parameters[] = {
		{{.size = sizeof(struct large_parameter), .name = "gain", .type = WEIR_TYPE_INT}, 1},
		{{.name = NULL}, 0}};
	weir_registry *registry = NULL;

	(void)state;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(add(registry, unknown, NULL), WEIR_E_UNSUPPORTED);
	assert_non_null(strstr(weir_last_error(), "table of operator 'mine': 'side' has a field set that"));
	assert_int_equal(add(registry, NULL, parameters), WEIR_E_UNSUPPORTED);
	assert_int_equal(add(registry, ports, NULL), WEIR_OK);
	assert_string_equal(operator_of(registry, "mine")->inputs[0].shape, "[N]");
	assert_string_equal(operator_of(registry, "mine")->inputs[1].name, "side");
	weir_registry_destroy(registry);
}

static void f92_two_sizes_in_one_list_are_refused_by_name(void **state)
{
	static const weir_port mixed[] = {{.size = sizeof *mixed, .name = "in"},
					  {.size = sizeof(struct small_port), .name = "side"},
					  {.name = NULL}};
	static const weir_parameter none[] = {{.size = sizeof *none, .name = "gain", .type = WEIR_TYPE_INT},
					      {.name = "rate", .type = WEIR_TYPE_INT},
					      {.name = NULL}};
	weir_registry *registry = NULL;

	(void)state;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(add(registry, mixed, NULL), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "'side' has a size of"));
	assert_non_null(strstr(weir_last_error(), "but 'in' of the same list has"));
	assert_int_equal(add(registry, NULL, none), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "'rate' has a size of 0, but 'gain'"));
	assert_non_null(strstr(weir_last_error(), "set size to sizeof(weir_parameter) in each"));
	weir_registry_destroy(registry);
}

/* A field that was never set, or sizes that no struct has. */
static void f92_a_size_that_no_struct_has_is_refused(void **state)
{
	static const size_t wrong[] = {4104, sizeof(weir_port) + 1};
	weir_registry *registry = NULL;

	(void)state;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		const weir_port ports[] = {{.size = wrong[i], .name = "in"}, {.name = NULL}};

		assert_int_equal(add(registry, ports, NULL), WEIR_E_INVALID);
		assert_non_null(
			strstr(weir_last_error(), "'in' has a wrong size: set size to sizeof(weir_port)"));
	}
	assert_int_equal(weir_registry_add_operator(registry, &(weir_operator){.size = 4104, .name = "mine"}),
			 WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "table of an operator: size is 4104, must be "));
	weir_registry_destroy(registry);
}

static void ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	(void)verdict;
}

static void f92_a_condition_has_smaller_parameters(void **state)
{
	const weir_condition table = {.size = sizeof table,
				      .name = "mine",
				      .parameters = (const weir_parameter *)small_parameters,
				      .ask = ask};
	weir_registry *registry = NULL;
	const weir_condition *found = NULL;

	(void)state;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(weir_registry_add_condition(registry, &table), WEIR_OK);
	for (size_t i = 0; (found = weir_registry_condition(registry, i)); i++)
		if (!strcmp(found->name, "mine"))
			break;
	assert_non_null(found);
	assert_string_equal(found->parameters[1].name, "rate");
	assert_null(found->parameters[2].name);
	weir_registry_destroy(registry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(f92_smaller_ports_and_parameters_are_read_by_their_size),
		cmocka_unit_test(f92_a_graph_uses_an_operator_of_smaller_structs),
		cmocka_unit_test(f92_larger_structs_are_read_if_what_is_unknown_is_zero),
		cmocka_unit_test(f92_two_sizes_in_one_list_are_refused_by_name),
		cmocka_unit_test(f92_a_size_that_no_struct_has_is_refused),
		cmocka_unit_test(f92_a_condition_has_smaller_parameters),
	};

	return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}

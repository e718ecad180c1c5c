/* Tables of operators and conditions that are refused when they are added: ports, parameters, phases. */
#include <string.h>

#include "base/memory.h"
#include "graphs/registry.h"
#include "kinds.h"

#define PORT(...)                                                                                            \
	{                                                                                                    \
		.size = sizeof(weir_port), __VA_ARGS__                                                       \
	}
#define PARAMETER(...)                                                                                       \
	{                                                                                                    \
		.size = sizeof(weir_parameter), __VA_ARGS__                                                  \
	}

static void ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_ready(verdict);
}

static void assert_said(weir_status status, const char *why)
{
	assert_int_equal(status, WEIR_E_INVALID);
	if (!strstr(weir_last_error(), why))
		fail_msg("'%s' does not say '%s'", weir_last_error(), why);
}

static void assert_port_refused(const weir_port *ports, bool input, const char *why)
{
	const weir_operator table = {.size = sizeof table,
				     .name = "mine",
				     .inputs = input ? ports : NULL,
				     .outputs = input ? NULL : ports};
	weir_registry *registry;

	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_said(weir_registry_add_operator(registry, &table), why);
	weir_registry_destroy(registry);
}

static void assert_parameter_refused(const weir_parameter *parameters, const char *why)
{
	const weir_condition table = {.size = sizeof table,
				      .name = "mine",
				      .parameters = parameters,
				      .phase = WEIR_PHASE_GATHERING,
				      .ask = ask};
	weir_registry *registry;

	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_said(weir_registry_add_condition(registry, &table), why);
	weir_registry_destroy(registry);
}

static void a_port_that_cannot_work_is_refused(void **state)
{
	static const weir_port no_size[] = {{.name = "in"}, {.name = NULL}};
	static const weir_port policy[] = {PORT(.name = "in", .policy = (weir_policy)77), {.name = NULL}};
	static const weir_port roomy[] = {PORT(.name = "in", .policy = WEIR_POLICY_LATEST, .capacity = 2),
					  {.name = NULL}};
	static const weir_port several[] = {
		PORT(.name = "in", .policy = WEIR_POLICY_LATEST, .take = WEIR_TAKE_ALL), {.name = NULL}};
	static const weir_port any[] = {
		PORT(.name = "in", .policy = WEIR_POLICY_LATEST, .flags = WEIR_PORT_ANY_SIZE),
		{.name = NULL}};
	static const weir_port once[] = {
		PORT(.name = "in", .policy = WEIR_POLICY_LATEST, .flags = WEIR_PORT_ONCE), {.name = NULL}};
	static const weir_port both[] = {PORT(.name = "in", .flags = WEIR_PORT_DEVICE | WEIR_PORT_HOST),
					 {.name = NULL}};
	static const weir_port twice[] = {PORT(.name = "in"), PORT(.name = "in"), {.name = NULL}};
	static const weir_port device[] = {PORT(.name = "out", .flags = WEIR_PORT_DEVICE), {.name = NULL}};
	static const weir_port many[] = {PORT(.name = "out", .max_emits = 65537), {.name = NULL}};
	static const weir_port ahead_in[] = {PORT(.name = "in", .ahead = 1), {.name = NULL}};
	static const weir_port far_ahead[] = {PORT(.name = "out", .ahead = 65537), {.name = NULL}};
	static const weir_port like[] = {PORT(.name = "out", .like = "in"), {.name = NULL}};
	static const weir_port typed[] = {PORT(.name = "out", .dtype = "uint8", .kinds = WEIR_KIND_BYTES),
					  {.name = NULL}};

	(void)state;
	assert_port_refused(no_size, true, "'in' has a wrong size");
	assert_port_refused(policy, true, "'in' has an unknown policy");
	assert_port_refused(roomy, true, "'in' is 'latest' with a capacity or a take: leave both 0");
	assert_port_refused(several, true, "'in' is 'latest' with a capacity or a take: leave both 0");
	assert_port_refused(any, true, "'in' is both 'latest' and an any-size port");
	assert_port_refused(once, true, "'in' is 'latest', and takes each message once");
	assert_port_refused(both, true, "'in' is both a device port and a host port");
	assert_port_refused(twice, true, "'in' appears twice");
	assert_port_refused(device, false, "'out' is an output");
	assert_port_refused(many, false, "'out' has max_emits of more than 65536");
	assert_port_refused(ahead_in, true, "'in' is an input: only outputs have 'ahead'");
	assert_port_refused(far_ahead, false, "'out' has an 'ahead' of more than 65536");
	assert_port_refused(like, false, "'out' is like an input that is not there");
	assert_port_refused(typed, false, "but its kinds are without WEIR_KIND_TENSOR");
}

static void a_port_that_takes_all_needs_no_capacity_for_it(void **state)
{
	static const weir_port all[] = {PORT(.name = "in", .take = WEIR_TAKE_ALL), {.name = NULL}};
	const weir_operator table = {.size = sizeof table, .name = "mine", .inputs = all};
	weir_registry *registry;

	(void)state;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &table), WEIR_OK);
	weir_registry_destroy(registry);
}

static void a_parameter_of_a_condition_that_cannot_work_is_refused(void **state)
{
	static const char *const reserved[] = {"type", "name", "signal"};
	static const weir_parameter no_type[] = {PARAMETER(.name = "a", .type = 77), {.name = NULL}};
	static const weir_parameter empty[] = {
		PARAMETER(.name = "a", .type = WEIR_TYPE_CHOICE, .choices = ""), {.name = NULL}};
	static const weir_parameter range[] = {
		PARAMETER(.name = "a", .type = WEIR_TYPE_INT, .min = 5, .max = 4), {.name = NULL}};
	static const weir_parameter too_long[] = {
		PARAMETER(.name = "a", .type = WEIR_TYPE_NUMBERS, .fallback = "[1, 2]", .min = 1, .max = 1),
		{.name = NULL}};
	static const weir_parameter words[] = {
		PARAMETER(.name = "a", .type = WEIR_TYPE_NUMBERS, .fallback = "[1, \"b\", true]", .max = 3),
		{.name = NULL}};
	static const weir_parameter too_large[] = {
		PARAMETER(.name = "a", .type = WEIR_TYPE_NUMBER, .fallback = "1.5", .max = 1),
		{.name = NULL}};
	static const weir_parameter prefix[] = {
		PARAMETER(.name = "a", .type = WEIR_TYPE_WRITE_FILE, .choices = "b"),
		PARAMETER(.name = "b", .type = WEIR_TYPE_INT),
		{.name = NULL}};
	const weir_parameter spaced[] = {PARAMETER(.name = "a b", .type = WEIR_TYPE_INT), {.name = NULL}};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const weir_parameter named[] = {PARAMETER(.name = reserved[i], .type = WEIR_TYPE_INT),
						{.name = NULL}};
		assert_parameter_refused(named, "is not a valid parameter name");
	}
	assert_parameter_refused(spaced, "is not a valid parameter name");
	assert_parameter_refused(no_type, "'a' has an unknown type");
	assert_parameter_refused(too_long,
				 "'a' has a default that does not fit it: has 2 numbers: must have 1");
	assert_parameter_refused(words, "does not fit it: is a string, must be a number");
	assert_parameter_refused(too_large, "does not fit it: 1.5 is out of range: must be 0 to 1");
	assert_parameter_refused(empty, "'a' has no choices");
	assert_parameter_refused(prefix, "'a' has choices that name no parameter of type WEIR_TYPE_STRING");
	assert_parameter_refused(range, "'a' has a minimum above its maximum");
}

static void a_table_that_is_not_there_is_refused(void **state)
{
	weir_registry *registry;

	(void)state;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_said(weir_registry_add_condition(registry, NULL), "size is 0");
	assert_said(weir_registry_add_operator(registry, NULL), "size is 0");
	weir_registry_destroy(registry);
}

static void c13_an_output_of_instances_is_plain(void **state)
{
	static const weir_port in[] = {PORT(.name = "in"), {.name = NULL}};
	static const weir_port full[] = {PORT(.name = "out", .flags = WEIR_PORT_FULL), {.name = NULL}};
	static const weir_port ahead[] = {PORT(.name = "out", .ahead = 1), {.name = NULL}};
	const weir_port *const outputs[] = {full, ahead};
	weir_registry *registry;

	(void)state;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	for (size_t i = 0; i < 2; i++) {
		const weir_operator table = {.size = sizeof table,
					     .name = "mine",
					     .flags = WEIR_OPERATOR_INSTANCES,
					     .inputs = in,
					     .outputs = outputs[i]};

		assert_said(weir_registry_add_operator(registry, &table),
			    i ? "'out' has 'ahead', which no operator with instances has"
			      : "'out' may be full, which no operator with instances has");
	}
	weir_registry_destroy(registry);
}

/* --- conditions that an operator brings --- */

static weir_registry *bring(const char *const *conditions, weir_status *status)
{
	static const weir_port inputs[] = {PORT(.name = "in", .flags = WEIR_PORT_OPTIONAL), {.name = NULL}};
	static weir_operator table = {.size = sizeof table, .name = "mine", .inputs = inputs};
	weir_registry *registry;

	table.conditions = conditions;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	*status = weir_registry_add_operator(registry, &table);
	return registry;
}

static void assert_not_brought(const char *text, const char *why)
{
	const char *const conditions[] = {"{\"type\": \"count\"}", text, NULL};
	weir_status status;
	weir_registry *registry = bring(conditions, &status);

	assert_said(status, "table of operator 'mine': condition '");
	assert_said(status, why);
	weir_registry_destroy(registry);
}

static void what_an_operator_cannot_bring_is_refused_with_its_text(void **state)
{
	(void)state;
	assert_not_brought("{\"type\": \"periodic\"", "condition '{\"type\": \"periodic\"': ");
	assert_not_brought("[1]", "condition '[1]': is a list, must be an object");
	assert_not_brought("{\"type\": \"any_of\", \"conditions\": [{\"type\": \"boolean\"}]}",
			   "an operator brings no tree of conditions");
	assert_not_brought("{\"name\": \"a\"}", "needs the key 'type'");
	assert_not_brought("{\"type\": \"perioidc\"}", "there is no condition 'perioidc'");
	assert_not_brought("{\"type\": 5}", "is an integer, must be a string");
	assert_not_brought("{\"type\": \"periodic\"}", "'period'");
	assert_not_brought("{\"type\": \"cuda_stream\", \"port\": \"inn\"}",
			   "operator 'mine' has no input 'inn'");
	assert_not_brought("{\"type\": \"count\", \"count\": 7}", "an earlier one has this name");
	assert_not_brought("{\"type\": \"memory_available\"}", "memory pools are named in the graph file");
}

static char *shown(const weir_registry *registry, const char *conditions, weir_format format)
{
	weir_description *description = NULL;
	char *text = NULL;

	assert_int_equal(weir_description_create(&description), WEIR_OK);
	assert_int_equal(weir_description_add_entity(description, "a", "mine"), WEIR_OK);
	if (conditions)
		assert_int_equal(weir_description_put(description, "/entities/0/conditions", conditions),
				 WEIR_OK);
	assert_int_equal(weir_description_print(description, registry, format, &text), WEIR_OK);
	weir_description_destroy(description);
	return text;
}

static void assert_shows(const weir_registry *registry, const char *conditions, weir_format format,
			 const char *part, bool has)
{
	char *text = shown(registry, conditions, format);

	if (!strstr(text, part) == has)
		fail_msg("'%s' %s '%s'", text, has ? "does not say" : "says", part);
	weir_text_free(text);
}

static void an_entity_has_what_its_operator_brings_unless_its_file_names_it(void **state)
{
	static const char *const conditions[] = {"{\"type\": \"count\", \"count\": 7}",
						 "{\"type\": \"count\", \"name\": \"more\", \"count\": 9}",
						 NULL};
	weir_status status;
	weir_registry *registry = bring(conditions, &status);

	(void)state;
	assert_int_equal(status, WEIR_OK);
	assert_shows(registry, NULL, WEIR_FORMAT_TEXT, "  when count count=7 (of the operator)\n", true);
	assert_shows(registry, NULL, WEIR_FORMAT_JSON, "{\"type\": \"count\", \"count\": 7}", true);
	assert_shows(registry, "[{\"type\": \"count\"}]", WEIR_FORMAT_TEXT, "count=7", false);
	assert_shows(registry, "[{\"type\": \"count\"}]", WEIR_FORMAT_TEXT,
		     "  when count 'more' count=9 (of the operator)\n", true);
	assert_shows(registry, "[{\"type\": \"periodic\", \"name\": \"more\", \"period\": \"1s\"}]",
		     WEIR_FORMAT_TEXT, "count=9", false);
	weir_registry_destroy(registry);
}

/* What is read of the texts when the operator is added, and once more for the plan of an entity. */
static void f40_without_memory_an_operator_brings_all_or_is_refused(void **state)
{
	static const char *const conditions[] = {"{\"type\": \"count\", \"count\": 7}",
						 "{\"type\": \"periodic\", \"period\": \"1s\"}", NULL};
	static weir_operator table = {.size = sizeof table, .name = "mine", .conditions = conditions};
	weir_status status = WEIR_E_NOMEM;
	int64_t n = 0;

	(void)state;
	for (; status; n++) {
		weir_registry *registry;

		assert_int_equal(weir_registry_create(&registry), WEIR_OK);
		wr_memory_fail_at(n, false);
		status = weir_registry_add_operator(registry, &table);
		wr_memory_fail_at(-1, false);
		assert_true(!status || status == WEIR_E_NOMEM);
		assert_true(!wr_registry_find_operator(registry, "mine") == (status != WEIR_OK));
		weir_registry_destroy(registry);
	}
	assert_true(n > 5);
}

static void f40_without_memory_an_entity_has_all_that_is_brought_or_no_plan(void **state)
{
	static const char *const conditions[] = {"{\"type\": \"count\", \"count\": 7}",
						 "{\"type\": \"periodic\", \"period\": \"1s\"}", NULL};
	weir_description *description = NULL;
	weir_status status;
	weir_registry *registry = bring(conditions, &status);
	int64_t n = 0;

	(void)state;
	assert_int_equal(weir_description_create(&description), WEIR_OK);
	assert_int_equal(weir_description_add_entity(description, "a", "mine"), WEIR_OK);
	for (status = WEIR_E_NOMEM; status; n++) {
		char *text = NULL;

		wr_memory_fail_at(n, false);
		status = weir_description_print(description, registry, WEIR_FORMAT_TEXT, &text);
		wr_memory_fail_at(-1, false);
		assert_true(!status || status == WEIR_E_NOMEM);
		assert_true(status || (strstr(text, "count=7") && strstr(text, "period=1s")));
		weir_text_free(text);
	}
	assert_true(n > 10);
	weir_description_destroy(description);
	weir_registry_destroy(registry);
}

/* The size that a table had before it could bring conditions; and one that will be larger. */
static void a_table_of_another_size_is_taken_as_far_as_it_is_known(void **state)
{
	struct {
		weir_operator known;
		size_t later;
	} table = {.known = {.size = offsetof(weir_operator, conditions), .name = "mine"}};
	static const char *const unread[] = {"no JSON", NULL};
	weir_registry *registry;

	(void)state;
	table.known.conditions = unread;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &table.known), WEIR_OK);
	assert_shows(registry, NULL, WEIR_FORMAT_TEXT, "(of the operator)", false);
	table.known = (weir_operator){.size = sizeof table, .name = "mine_too"};
	assert_int_equal(weir_registry_add_operator(registry, &table.known), WEIR_OK);
	table.known.name = "third";
	table.later = 1;
	assert_int_equal(weir_registry_add_operator(registry, &table.known), WEIR_E_UNSUPPORTED);
	table.known.size = offsetof(weir_operator, conditions) - 1;
	assert_said(weir_registry_add_operator(registry, &table.known), "table of an operator: size is ");
	weir_registry_destroy(registry);
}

/* W019 shows the help of the parameter that is missing. */
static void a_missing_parameter_without_help_is_named_all_the_same(void **state)
{
	static const char graph[] =
		"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"mine\"}]}";
	static const char *const helps[] = {NULL, ""};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const weir_parameter parameters[] = {
			PARAMETER(.name = "n", .type = WEIR_TYPE_INT, .help = helps[i]), {.name = NULL}};
		const weir_operator table = {.size = sizeof table, .name = "mine", .parameters = parameters};
		weir_registry *registry;
		weir_description *description;

		assert_int_equal(weir_registry_create(&registry), WEIR_OK);
		assert_int_equal(weir_registry_add_operator(registry, &table), WEIR_OK);
		assert_int_equal(weir_description_parse(graph, sizeof graph - 1, NULL, NULL, &description),
				 WEIR_OK);
		assert_said(weir_description_check(description, registry, NULL, NULL),
			    "operator 'mine' needs the parameter 'n': it has no default (W019)");
		weir_description_destroy(description);
		weir_registry_destroy(registry);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_that_cannot_work_is_refused),
		cmocka_unit_test(a_port_that_takes_all_needs_no_capacity_for_it),
		cmocka_unit_test(a_parameter_of_a_condition_that_cannot_work_is_refused),
		cmocka_unit_test(c13_an_output_of_instances_is_plain),
		cmocka_unit_test(a_table_that_is_not_there_is_refused),
		cmocka_unit_test(what_an_operator_cannot_bring_is_refused_with_its_text),
		cmocka_unit_test(an_entity_has_what_its_operator_brings_unless_its_file_names_it),
		cmocka_unit_test(f40_without_memory_an_operator_brings_all_or_is_refused),
		cmocka_unit_test(f40_without_memory_an_entity_has_all_that_is_brought_or_no_plan),
		cmocka_unit_test(a_table_of_another_size_is_taken_as_far_as_it_is_known),
		cmocka_unit_test(a_missing_parameter_without_help_is_named_all_the_same),
	};

	return cmocka_run_group_tests_name("graphs/tables", tests, NULL, NULL);
}

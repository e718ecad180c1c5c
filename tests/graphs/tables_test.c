/* Tables of operators and conditions that are refused when they are added: ports, parameters, phases. */
#include <string.h>

#include "kinds.h"

#define PORT(...)                                                                                            \
	{                                                                                                    \
		.size = sizeof(weir_port), __VA_ARGS__                                                       \
	}
#define PARAMETER(...)                                                                                       \
	{                                                                                                    \
		.size = sizeof(weir_parameter), __VA_ARGS__                                                  \
	}

static void ask(const void *state, const weir_view *view, weir_verdict *verdict)
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
	static const weir_port both[] = {PORT(.name = "in", .flags = WEIR_PORT_DEVICE | WEIR_PORT_HOST),
					 {.name = NULL}};
	static const weir_port twice[] = {PORT(.name = "in"), PORT(.name = "in"), {.name = NULL}};
	static const weir_port device[] = {PORT(.name = "out", .flags = WEIR_PORT_DEVICE), {.name = NULL}};
	static const weir_port many[] = {PORT(.name = "out", .max_emits = 65537), {.name = NULL}};

	(void)state;
	assert_port_refused(no_size, true, "'in' has a wrong size");
	assert_port_refused(policy, true, "'in' has an unknown policy");
	assert_port_refused(both, true, "'in' is both a device port and a host port");
	assert_port_refused(twice, true, "'in' appears twice");
	assert_port_refused(device, false, "'out' is an output");
	assert_port_refused(many, false, "'out' has max_emits of more than 65536");
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
	const weir_parameter spaced[] = {PARAMETER(.name = "a b", .type = WEIR_TYPE_INT), {.name = NULL}};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		const weir_parameter named[] = {PARAMETER(.name = reserved[i], .type = WEIR_TYPE_INT),
						{.name = NULL}};
		assert_parameter_refused(named, "is not a valid parameter name");
	}
	assert_parameter_refused(spaced, "is not a valid parameter name");
	assert_parameter_refused(no_type, "'a' has an unknown type");
	assert_parameter_refused(empty, "'a' has no choices");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_that_cannot_work_is_refused),
		cmocka_unit_test(a_port_that_takes_all_needs_no_capacity_for_it),
		cmocka_unit_test(a_parameter_of_a_condition_that_cannot_work_is_refused),
		cmocka_unit_test(a_table_that_is_not_there_is_refused),
	};

	return cmocka_run_group_tests_name("graphs/tables", tests, NULL, NULL);
}

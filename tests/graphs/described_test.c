/* Ports that parameters decide: what is added, what takes its place, what is refused. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graphs/description.h"
#include "graphs/registry.h"
#include "kinds.h"

#define PORT .size = sizeof(weir_port)

static weir_registry *registry;

static weir_status check(const weir_operator *table, const char *entity)
{
	weir_description *description = NULL;
	char text[512];
	weir_status status;

	snprintf(text, sizeof text, "{\"weir\": 1, \"entities\": [%s]}", entity);
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	status = weir_registry_add_operator(registry, table);
	if (!status) {
		description = kinds_read(text);
		status = weir_description_check(description, registry, NULL, NULL);
	}
	weir_description_destroy(description);
	weir_registry_destroy(registry);
	return status;
}

static void c14_each_entity_has_the_ports_of_its_own_parameters(void **state)
{
	struct wr_plan *plan = kinds_plan(
		"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"shaped\", \"parameters\": "
		"{\"shape\": \"[5, W]\"}}, {\"name\": \"b\", \"operator\": \"shaped\", \"parameters\": "
		"{\"more\": true}}, {\"name\": \"s\", \"operator\": \"sink\"}], \"connections\": "
		"[[\"a.out\", \"s.in\"], [\"b.out\", \"s.in\"]]}",
		true);

	(void)state;
	assert_int_equal(plan->entities[0].output_count, 1);
	assert_string_equal(plan->entities[0].outputs[0].port->shape, "[5, W]");
	assert_int_equal(plan->entities[0].outputs[0].type.shapes[0].sizes[0].in.least, 5);
	assert_int_equal(plan->entities[1].output_count, 2);
	assert_null(plan->entities[1].outputs[0].port->shape); /* of the table */
	assert_string_equal(plan->entities[1].outputs[1].port->name, "more");
	assert_int_equal(plan->entities[2].input_count, 1);
	wr_plan_destroy(plan);
}

static void c14_the_text_says_the_types_of_described_ports_alone(void **state)
{
	char *text = kinds_print_text(
		"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"shaped\", \"parameters\": "
		"{\"shape\": \"[5, W]\"}}, {\"name\": \"b\", \"operator\": \"shaped\", \"parameters\": "
		"{\"more\": true}}, {\"name\": \"s\", \"operator\": \"sink\"}], \"connections\": "
		"[[\"a.out\", \"s.in\"], [\"b.out\", \"s.in\"], [\"b.more\", \"s.in\"]]}",
		WEIR_FORMAT_TEXT);

	(void)state;
	if (!strstr(text, "[5, W]\n"))
		fail_msg("there is no type in:\n%s", text);
	if (!strstr(text, "  output more: max_emits 1\n")) /* says nothing */
		fail_msg("there is no output without a type in:\n%s", text);
	weir_text_free(text);
}

/* What a description may do wrong; the number chooses. */
static int wrong;

static weir_status describe(const weir_values *values, weir_ports *ports)
{
	static const weir_port in = {PORT, .name = "in"};
	weir_port port = {PORT, .name = "out"};

	switch (wrong) {
	case 0:
		return weir_ports_add_output(ports, &(weir_port){PORT, .name = "9"});
	case 1:
		port.dtype = "float31";
		break;
	case 2:
		port.size = 8;
		break;
	case 3:
		port.name = NULL;
		break;
	case 4:
		port.name = "in"; /* is an input, too */
		break;
	case 5:
		return WEIR_E_IO;
	case 6:
		weir_values_int(values, "no_such");
		break;
	case 7:
		return weir_ports_add_input(ports, NULL);
	}
	weir_ports_add_input(ports, &in);
	return weir_ports_add_output(ports, &port);
}

static void c14_what_cannot_be_is_refused_with_a_line(void **state)
{
	static const char *const says[] = {"'9' is not a valid port name",
					   "'out' has an unknown dtype 'float31'",
					   "'out' has a wrong size: set size to sizeof(weir_port)",
					   "a port without a name",
					   "'in' is both an input and an output",
					   "operator 'mine' says no more",
					   "no_such",
					   "a port without a name"};
	static const weir_operator mine = {.size = sizeof mine, .name = "mine", .describe = describe};

	(void)state;
	for (wrong = 0; wrong < (int)(sizeof says / sizeof *says); wrong++) {
		assert_int_equal(check(&mine, "{\"name\": \"a\", \"operator\": \"mine\"}"), WEIR_E_INVALID);
		if (!strstr(weir_last_error(), says[wrong]) || !strstr(weir_last_error(), "(W060)"))
			fail_msg("'%s' does not say '%s'", weir_last_error(), says[wrong]);
	}
}

static void c14_a_parameter_cannot_name_a_port_that_parameters_decide(void **state)
{
	static const weir_parameter_type types[] = {WEIR_TYPE_INPUT, WEIR_TYPE_OUTPUT};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const weir_parameter parameters[] = {
			{.size = sizeof *parameters, .name = "port", .type = types[i]}, {.name = NULL}};
		const weir_operator mine = {
			.size = sizeof mine, .name = "mine", .parameters = parameters, .describe = describe};

		assert_int_equal(check(&mine, ""), WEIR_E_INVALID);
		assert_non_null(strstr(weir_last_error(), "has a parameter that names one"));
	}
}

static weir_status open_it(const weir_values *values, weir_ports *ports)
{
	int fd = -1;

	if (weir_ports_open(ports, weir_values_string(values, "path"), &fd))
		return weir_ports_fail(ports, "%s", errno == EXDEV ? "outside" : "missing");
	close(fd);
	return WEIR_OK;
}

static weir_status open_beneath(const char *root, const char *path)
{
	static const weir_parameter parameters[] = {
		{.size = sizeof *parameters, .name = "path", .type = WEIR_TYPE_STRING}, {.name = NULL}};
	static const weir_operator mine = {
		.size = sizeof mine, .name = "mine", .parameters = parameters, .describe = open_it};
	weir_description *description;
	char text[512];
	weir_status status;

	snprintf(text, sizeof text,
		 "{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"mine\", \"parameters\": "
		 "{\"path\": \"%s\"}}]}",
		 path);
	description = kinds_read(text);
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &mine), WEIR_OK);
	assert_int_equal(weir_description_set_root(description, root), WEIR_OK);
	status = weir_description_check(description, registry, NULL, NULL);
	weir_description_destroy(description);
	weir_registry_destroy(registry);
	return status;
}

static void c14_xb30_what_describes_ports_opens_no_file_outside_of_the_root(void **state)
{
	(void)state;
	assert_int_equal(open_beneath("bad", "c14_described_ports/graph.json"), WEIR_OK);
	assert_int_equal(open_beneath(NULL, "bad/c14_described_ports/graph.json"), WEIR_OK);
	assert_int_equal(open_beneath("bad", "../golden_test.c"), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "outside"));
}

static void c14_xb30_a_root_that_is_none_is_refused_and_the_one_before_stays(void **state)
{
	weir_description *description = kinds_read("{\"weir\": 1, \"entities\": []}");

	(void)state;
	assert_int_equal(weir_description_set_root(description, "bad"), WEIR_OK);
	assert_int_equal(weir_description_set_root(description, "no/such"), WEIR_E_IO);
	assert_non_null(strstr(weir_last_error(), "root 'no/such': "));
	assert_non_null(strstr(description->confined.path, "/bad"));
	assert_int_equal(weir_description_set_root(description, NULL), WEIR_OK);
	assert_null(description->confined.path);
	weir_description_destroy(description);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c14_the_text_says_the_types_of_described_ports_alone),
		cmocka_unit_test(c14_each_entity_has_the_ports_of_its_own_parameters),
		cmocka_unit_test(c14_what_cannot_be_is_refused_with_a_line),
		cmocka_unit_test(c14_a_parameter_cannot_name_a_port_that_parameters_decide),
		cmocka_unit_test(c14_xb30_what_describes_ports_opens_no_file_outside_of_the_root),
		cmocka_unit_test(c14_xb30_a_root_that_is_none_is_refused_and_the_one_before_stays),
	};

	return cmocka_run_group_tests_name("described", tests, NULL, NULL);
}

/* The plan of a checked description is made once: the graph takes it, unless something has changed. */
#include <stdio.h>
#include <string.h>

#include "graphs/description.h"
#include "graphs/plan.h"
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

/* --- what is refused, or known, of built-in kinds --- */

static void what_cannot_be_is_refused_by_entity_and_reason(void **state)
{
#define A          "{\"name\": \"a\", \"operator\": \"ping\"}, "
#define AFTER(...) A __VA_ARGS__ "], \"connections\": [[\"a.out\", \"b.in\"]]}"
	static const struct {
		const char *entities, *why;
	} cases[] = {
		{"{\"name\": \"a\", \"operator\": \"spin\", \"main\": true}]}", "'a' receives no messages"},
		{"{\"name\": \"a\", \"operator\": \"ping\", \"main\": true}, {\"name\": \"b\", \"operator\": "
		 "\"sink\"}], \"connections\": [[\"a.out\", \"b.in\"]]}",
		 "'a' sends messages, so it is no sink"},
		{AFTER("{\"name\": \"b\", \"operator\": \"delay\", \"instances\": 2, \"conditions\": "
		       "[{\"type\": \"asynchronous\"}]}"),
		 "condition 'asynchronous' speaks of one compute at a time"},
		{AFTER("{\"name\": \"b\", \"operator\": \"delay\", \"instances\": 2, \"conditions\": "
		       "[{\"type\": \"file_descriptor\"}]}"),
		 "condition 'file_descriptor' speaks of one compute at a time"},
		{AFTER("{\"name\": \"b\", \"operator\": \"delay\", \"instances\": 2, \"ports\": {\"in\": "
		       "{\"policy\": \"latest\"}}}"),
		 "choose another policy, or leave \"instances\" out"},
		{AFTER("{\"name\": \"b\", \"operator\": \"sink\", \"ports\": {\"in\": {\"policy\": "
		       "\"latest\"}}, "
		       "\"conditions\": [{\"type\": \"multi_message_available\", \"ports\": [\"in\"], "
		       "\"min_sum\": 1}]}"),
		 "gives one message: leave 'in' out of multi_message_available"},
		{AFTER("{\"name\": \"b\", \"operator\": \"sink\", \"conditions\": [{\"type\": \"any_of\", "
		       "\"conditions\": [{\"type\": \"in_flight\"}, {\"type\": \"count\"}]}]}"),
		 "each tick needs what 'in_flight' says"},
		{"{\"name\": \"a\", \"operator\": \"spin\", \"main\": true}], \"outlets\": [\"a.out\"]}",
		 "'a' sends messages, so it is no sink"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[600];
		weir_description *description = NULL;

		snprintf(text, sizeof text, "{\"weir\": 1, \"entities\": [%s", cases[i].entities);
		assert_int_equal(weir_description_parse(text, strlen(text), NULL, NULL, &description),
				 WEIR_OK);
		assert_int_equal(weir_description_check(description, NULL, NULL, NULL), WEIR_E_INVALID);
		if (!strstr(weir_last_error(), cases[i].why))
			fail_msg("'%s' does not say '%s'", weir_last_error(), cases[i].why);
		if (i) /* a program may still connect the first one's input */
			assert_int_equal(weir_description_check_files(description, NULL, NULL, NULL),
					 WEIR_E_INVALID);
		weir_description_destroy(description);
	}
}

/* --- operators of the program's --- */

static void ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_ready(verdict);
}

#define PORT(...)                                                                                            \
	{                                                                                                    \
		.size = sizeof(weir_port), __VA_ARGS__                                                       \
	}

static weir_registry *registry_of(const weir_operator *table, const weir_condition *condition)
{
	weir_registry *registry = NULL;

	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, table), WEIR_OK);
	if (condition)
		assert_int_equal(weir_registry_add_condition(registry, condition), WEIR_OK);
	return registry;
}

/* Gives what the check of the entity `mine`, which gets messages, says; *possible: whether it may have
 * instances. */
static const char *check_mine(const weir_operator *table, const weir_condition *condition, const char *keys,
			      bool *possible)
{
	weir_registry *registry = registry_of(table, condition);
	weir_description *description = NULL;
	char text[400];
	weir_status status;

	snprintf(text, sizeof text,
		 "{\"weir\": 1, \"entities\": [{\"name\": \"mine\", \"operator\": \"mine\"%s}]%s}", keys,
		 table->inputs ? ", \"inlets\": [\"mine.in\"]" : "");
	assert_int_equal(weir_description_parse(text, strlen(text), NULL, NULL, &description), WEIR_OK);
	status = weir_description_check(description, registry, NULL, NULL);
	if (!status && possible)
		*possible = wr_instances_possible(&description->checked->entities[0]);
	weir_description_destroy(description);
	weir_registry_destroy(registry);
	return status ? weir_last_error() : "";
}

static void c13_conditions_of_a_program_may_forbid_instances(void **state)
{
	static const weir_port inputs[] = {PORT(.name = "in"), {.name = NULL}};
	static const weir_parameter port[] = {{.size = sizeof *port, .name = "port", .type = WEIR_TYPE_INPUT},
					      {.name = NULL}};
	static const char *const brought[] = {"{\"type\": \"count\", \"count\": 7}", NULL};
	const weir_condition looks = {.size = sizeof looks,
				      .name = "looks",
				      .parameters = port,
				      .phase = WEIR_PHASE_CONTENT,
				      .ask = ask};
	weir_operator table = {
		.size = sizeof table, .name = "mine", .flags = WEIR_OPERATOR_INSTANCES, .inputs = inputs};
	bool possible = false;

	(void)state;
	assert_string_equal(check_mine(&table, &looks, "", &possible), "");
	assert_true(possible);
	assert_non_null(strstr(check_mine(&table, &looks,
					  ", \"instances\": 2, \"conditions\": [{\"type\": \"looks\", "
					  "\"port\": \"in\"}]",
					  NULL),
			       "condition 'looks' looks into messages, which instances wait for later"));
	table.conditions = brought;
	assert_non_null(strstr(check_mine(&table, NULL, ", \"instances\": 2", NULL),
			       "operator mine brings conditions, which instances do not have"));
	assert_string_equal(check_mine(&table, NULL, "", &possible), "");
	assert_false(possible);
	table.conditions = NULL;
	table.inputs = NULL;
	possible = true;
	assert_string_equal(check_mine(&table, NULL, "", &possible), "");
	assert_false(possible);
}

/* Nothing comes at the second one. */
static void a_batch_has_a_size_for_each_of_its_ports(void **state)
{
	static const weir_port inputs[] = {
		PORT(.name = "in"), PORT(.name = "more", .flags = WEIR_PORT_OPTIONAL), {.name = NULL}};
	const weir_operator table = {.size = sizeof table, .name = "mine", .inputs = inputs};

	(void)state;
	assert_non_null(strstr(check_mine(&table, NULL,
					  ", \"conditions\": [{\"type\": \"multi_message_available\", "
					  "\"ports\": [\"in\", \"more\"], \"min_sizes\": [1]}]",
					  NULL),
			       "min_sizes has 1 number for 2 ports: give one for each port"));
	assert_non_null(strstr(check_mine(&table, NULL,
					  ", \"ports\": {\"in\": {\"capacity\": 4}}, \"conditions\": "
					  "[{\"type\": \"multi_message_available\", \"ports\": [\"in\", "
					  "\"more\"], \"min_sum\": 2}]",
					  NULL),
			       "min_sum 2 is larger than what a tick takes from its ports together (1)"));
}

/* It counts as one connection. */
static void a_batch_may_come_from_a_port_that_a_program_connects(void **state)
{
	(void)state;
	for (int sum = 2; sum <= 3; sum++) {
		weir_description *description = NULL;
		struct wr_plan *plan = NULL;
		char text[400];

		snprintf(text, sizeof text,
			 "{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"sink\", \"ports\": "
			 "{\"in\": {\"capacity\": 2, \"take\": \"all\"}}, \"conditions\": [{\"type\": "
			 "\"multi_message_available\", \"ports\": [\"in\"], \"min_sum\": %d}]}]}",
			 sum);
		assert_int_equal(weir_description_parse(text, strlen(text), NULL, NULL, &description),
				 WEIR_OK);
		assert_int_equal(wr_plan_create(&plan, NULL, description, true, NULL, NULL),
				 sum == 2 ? WEIR_OK : WEIR_E_INVALID);
		wr_plan_destroy(plan);
		weir_description_destroy(description);
	}
	assert_non_null(strstr(weir_last_error(),
			       "min_sum 3 is larger than the capacities of its ports together (2)"));
}

/* Without a parameter "quiet" that is true it prints. */
static void f96_lines_of_a_program_s_operator_do_not_go_into_a_file_on_standard_output(void **state)
{
	static const weir_parameter to[] = {
		{.size = sizeof *to, .name = "to", .type = WEIR_TYPE_WRITE_FILE, .fallback = "\"-\""},
		{.name = NULL}};
	static const weir_parameter level[] = {
		{.size = sizeof *level, .name = "quiet", .type = WEIR_TYPE_INT, .fallback = "1"},
		{.name = NULL}};
	static const char text[] =
		"{\"weir\": 1, \"entities\": [{\"name\": \"file\", \"operator\": \"writes\"}, "
		"{\"name\": \"lines\", \"operator\": \"mine\"}]}";
	const weir_operator writes = {.size = sizeof writes, .name = "writes", .parameters = to};

	(void)state;
	for (int i = 0; i < 2; i++) {
		const weir_operator prints = {.size = sizeof prints,
					      .name = "mine",
					      .flags = WEIR_OPERATOR_PRINTS,
					      .parameters = i ? level : NULL};
		weir_registry *registry = registry_of(&prints, NULL);
		weir_description *description = NULL;

		assert_int_equal(weir_registry_add_operator(registry, &writes), WEIR_OK);
		assert_int_equal(weir_description_parse(text, strlen(text), NULL, NULL, &description),
				 WEIR_OK);
		assert_int_equal(weir_description_check_files(description, registry, NULL, NULL),
				 WEIR_E_INVALID);
		assert_non_null(strstr(weir_last_error(), "standard output is also written by 'file'"));
		weir_description_destroy(description);
		weir_registry_destroy(registry);
	}
}

static void c10_the_bytes_of_an_input_are_known_after_the_check(void **state)
{
	weir_description *description = checked_description(NULL);
	weir_sent_bytes bytes = {.size = sizeof bytes}, wrong = {.size = 3};

	(void)state;
	assert_int_equal(weir_description_sent_bytes(description, "b.in", &bytes), WEIR_OK);
	assert_int_equal(weir_description_sent_bytes(description, "b.in", &wrong), WEIR_E_INVALID);
	assert_int_equal(weir_description_sent_bytes(description, "b.out", &bytes), WEIR_E_INVALID);
	assert_int_equal(weir_description_sent_bytes(description, "b:in", &bytes), WEIR_E_INVALID);
	assert_int_equal(weir_description_sent_bytes(description, "b", &bytes), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "there is no input 'b'"));
	assert_int_equal(weir_description_put(description, "/name", "\"other\""), WEIR_OK);
	assert_int_equal(weir_description_sent_bytes(description, "b.in", &bytes), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "is known after weir_description_check"));
	weir_description_destroy(description);
}

/* The keys of an entity that are not its operator's. */
static void a_drawing_says_what_the_file_gives_an_entity(void **state)
{
	static const char text[] =
		"{\"weir\": 1, \"scheduler\": {\"workers\": 2}, \"entities\": [{\"name\": \"a\", "
		"\"operator\": \"spin\", \"effects\": true, \"max_in_flight\": 3, \"replay\": false}, "
		"{\"name\": \"c\", \"operator\": \"spin\", \"replay\": true}, {\"name\": \"u\", "
		"\"operator\": \"png_read\", \"parameters\": {\"path\": \"x\"}}, {\"name\": \"b\", "
		"\"operator\": \"png_write\", "
		"\"main\": true, \"parameters\": {\"prefix\": \"a&b\"}}], \"connections\": [[\"u.out\", "
		"\"b.in\"]]}";
	static const char *const parts[] = {"max_in_flight 3", "effects", "replay off",
					    "replay on",       "main",    "a&amp;b"};
	weir_description *description = NULL;
	char *shown = NULL;

	(void)state;
	assert_int_equal(weir_description_parse(text, strlen(text), NULL, NULL, &description), WEIR_OK);
	if (weir_description_print(description, NULL, WEIR_FORMAT_DOT, &shown))
		fail_msg("%s", weir_last_error());
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (!strstr(shown, parts[i]))
			fail_msg("there is no '%s' in:\n%s", parts[i], shown);
	weir_text_free(shown);
	weir_description_destroy(description);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_plan_of_a_check_is_taken),
		cmocka_unit_test(a_description_that_changes_is_planned_again),
		cmocka_unit_test(a_plan_of_another_registry_is_not_taken),
		cmocka_unit_test(what_cannot_be_is_refused_by_entity_and_reason),
		cmocka_unit_test(c13_conditions_of_a_program_may_forbid_instances),
		cmocka_unit_test(a_batch_has_a_size_for_each_of_its_ports),
		cmocka_unit_test(a_batch_may_come_from_a_port_that_a_program_connects),
		cmocka_unit_test(f96_lines_of_a_program_s_operator_do_not_go_into_a_file_on_standard_output),
		cmocka_unit_test(c10_the_bytes_of_an_input_are_known_after_the_check),
		cmocka_unit_test(a_drawing_says_what_the_file_gives_an_entity),
	};

	return cmocka_run_group_tests_name("checked", tests, NULL, NULL);
}

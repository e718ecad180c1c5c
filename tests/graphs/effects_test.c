/*
 * Which entities have side effects, by their operator or by the graph file; the printed graph says the
 * same.
 */
#include <stdio.h>
#include <string.h>

#include "graphs/plan.h"
#include "kinds.h"

static const char graph[] =
	"{\"weir\": 1, \"entities\": [\n"
	" {\"name\": \"plain\", \"operator\": \"delay\", \"parameters\": {\"duration\": \"1ms\"}},\n"
	" {\"name\": \"written\", \"operator\": \"delay\", \"parameters\": {\"duration\": \"1ms\"}, "
	"\"effects\": true},\n"
	" {\"name\": \"by_kind\", \"operator\": \"print\"},\n"
	" {\"name\": \"taken_back\", \"operator\": \"png_write\", \"effects\": false}],\n"
	" \"connections\": [[\"plain.out\", \"written.in\"], [\"written.out\", \"by_kind.in\"],\n"
	"  [\"plain.out\", \"taken_back.in\"], {\"from\": \"written.out\", \"to\": \"plain.in\", "
	"\"initial_messages\": 1}]}\n";

static void assert_effects(const char *text)
{
	static const bool wanted[] = {false, true, true, false};
	weir_description *description = NULL;
	struct wr_plan *plan = NULL;

	assert_int_equal(weir_description_parse(text, strlen(text), NULL, NULL, &description), WEIR_OK);
	if (wr_plan_create(&plan, NULL, description, true, NULL, NULL))
		fail_msg("%s", weir_last_error());
	for (size_t i = 0; i < plan->entity_count; i++)
		if (plan->entities[i].effects != wanted[i])
			fail_msg("%s: %d", plan->entities[i].name, plan->entities[i].effects);
	wr_plan_destroy(plan);
	weir_description_destroy(description);
}

static void xb20_a_graph_file_declares_effects_and_show_prints_them(void **state)
{
	weir_description *description = NULL;
	char *shown = NULL;

	(void)state;
	assert_effects(graph);
	assert_int_equal(weir_description_parse(graph, strlen(graph), NULL, NULL, &description), WEIR_OK);
	assert_int_equal(weir_description_print(description, NULL, WEIR_FORMAT_JSON, &shown), WEIR_OK);
	assert_effects(shown);
	weir_text_free(shown);
	weir_description_destroy(description);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb20_a_graph_file_declares_effects_and_show_prints_them),
	};

	return cmocka_run_group_tests_name("effects", tests, NULL, NULL);
}

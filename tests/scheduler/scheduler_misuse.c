/*
 * Misuse is refused in every build: an error about verdicts, ports, messages, parameters or structs names the
 * thing and the remedy.
 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

/* --- verdicts --- */

static void says_nothing(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	(void)verdict;
}

static void says_two(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	weir_verdict_until(verdict, weir_view_now(view) + SECOND);
	weir_verdict_ready(verdict);
}

static void says_never_too(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_ready(verdict);
	weir_verdict_never(verdict, "never");
}

static void says_wait_too(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_ready(verdict);
	weir_verdict_wait(verdict, "not yet");
}

static void gives_no_cause_of_weirs(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_wait(verdict, "not yet");
	weir_verdict_set_cause(verdict, (weir_cause)99, -1, 0);
}

static void gives_input_7(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_wait(verdict, "not yet");
	weir_verdict_set_cause(verdict, WEIR_CAUSE_MESSAGES, 7, 1);
}

static void gives_output_9(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_never(verdict, "not wanted");
	weir_verdict_set_cause(verdict, WEIR_CAUSE_ROOM, 9, 1);
}

static void asks_for_both(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (weir_view_room(view, 9) || weir_view_count(view, 7))
		weir_verdict_wait(verdict, "it has one");
	else
		weir_verdict_ready(verdict);
}

static void asks_for_input_7(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (weir_view_count(view, 7))
		weir_verdict_wait(verdict, "it has one");
	else
		weir_verdict_ready(verdict);
}

static void asks_for_end_of_7(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (weir_view_ended(view, 7, 1))
		weir_verdict_never(verdict, "it has ended");
	else
		weir_verdict_ready(verdict);
}

static void asks_for_output_9(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (weir_view_room(view, 9))
		weir_verdict_wait(verdict, "it has one");
	else
		weir_verdict_ready(verdict);
}

static weir_status asks_for_nope(void *state, const weir_values *values)
{
	(void)state;
	return weir_values_int(values, "nope") ? WEIR_E_FAILED : WEIR_OK;
}

static void ready(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_ready(verdict);
}

#define CONDITION(table)                                                                                     \
	{                                                                                                    \
		.size = sizeof(weir_condition), .name = #table, .ask = table                                 \
	}
static const weir_condition wait_too = CONDITION(says_wait_too), both = CONDITION(asks_for_both);
static const weir_condition silent = CONDITION(says_nothing), two = CONDITION(says_two),
			    never_too = CONDITION(says_never_too), input_7 = CONDITION(asks_for_input_7),
			    end_of_7 = CONDITION(asks_for_end_of_7), output_9 = CONDITION(asks_for_output_9),
			    nope = {.size = sizeof nope,
				    .name = "nope",
				    .start = asks_for_nope,
				    .ask = ready};
static const weir_condition no_cause = CONDITION(gives_no_cause_of_weirs),
			    cause_of_7 = CONDITION(gives_input_7), cause_of_9 = CONDITION(gives_output_9);
static const weir_condition *const conditions[] = {&wait_too,   &both,     &silent,   &two,      &never_too,
						   &input_7,    &end_of_7, &output_9, &no_cause, &cause_of_7,
						   &cause_of_9, &nope,     NULL};

/* Asserts that the run fails with a line that names the entity and contains the text. */
static void assert_fails(const char *graph, const char *entity, const char *words)
{
	struct rig *rig = rig_of(graph);

	assert_int_equal(rig_run(rig), WEIR_E_INVALID);
	assert_string_equal(rig->outcome.entity ? rig->outcome.entity : "none", entity);
	if (!strstr(rig->outcome.text, words))
		fail_msg("\"%s\" lacks \"%s\"", rig->outcome.text, words);
	rig_destroy(rig);
}

static void c01_an_ask_gives_one_verdict(void **state)
{
	(void)state;
	assert_fails("source ticks=1 -> end condition=says_nothing", "end",
		     "condition 'says_nothing' gave no verdict");
	assert_fails("source ticks=1 -> end condition=says_two", "end",
		     "condition 'says_two' said READY or NEVER beside another verdict");
	assert_fails("source ticks=1 -> end condition=says_wait_too", "end",
		     "condition 'says_wait_too' said READY or NEVER beside another verdict");
	assert_fails("source ticks=1 -> end condition=says_never_too", "end",
		     "condition 'says_never_too' said READY or NEVER beside another verdict");
}

static void c01_a_cause_is_one_of_weirs_about_a_port_of_the_entity(void **state)
{
	(void)state;
	assert_fails("source ticks=1 -> end condition=gives_no_cause_of_weirs", "end",
		     "condition 'gives_no_cause_of_weirs' gave a cause that is none of weir_cause");
	assert_fails("source ticks=1 -> end condition=gives_input_7", "end",
		     "condition 'gives_input_7' gave its cause a port that the entity does not have");
	assert_fails("source ticks=1 condition=gives_output_9 -> end", "source",
		     "condition 'gives_output_9' gave its cause a port that the entity does not have");
}

static void c01_a_view_has_the_ports_of_its_entity(void **state)
{
	(void)state;
	assert_fails("source ticks=1 condition=asks_for_both -> end", "source",
		     "condition 'asks_for_both' asked about an output that"); /* the first mistake */
	assert_fails("source ticks=1 -> end condition=asks_for_input_7", "end",
		     "condition 'asks_for_input_7' asked about an input that the entity does not have");
	assert_fails("source ticks=1 -> end condition=asks_for_end_of_7", "end",
		     "condition 'asks_for_end_of_7' asked about an input that the entity does not have");
	assert_fails("source ticks=1 -> end condition=asks_for_output_9", "end",
		     "condition 'asks_for_output_9' asked about an output that the entity does not have");
}

static void s08_misuse_of_one_run_does_not_fail_the_next(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end");

	(void)state;
	weir_message *message = rig_message(rig, 1);
	weir_message_unref(message);
	weir_message_unref(message);
	assert_int_equal(rig_run(rig), WEIR_E_INVALID);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

/* --- messages --- */

static weir_status pass_without_reference(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_emit(context, 0, weir_context_message(context, 0, 0));
}

static weir_status pass_twice(struct rig *rig, weir_context *context)
{
	weir_message *message = rig_number(context, 1);
	weir_status status = weir_context_emit(context, 0, message);

	(void)rig;
	return status ? status : weir_context_emit(context, 0, message);
}

static weir_status drop_what_is_not_its_own(struct rig *rig, weir_context *context)
{
	(void)rig;
	weir_message_unref(weir_context_message(context, 0, 0));
	return WEIR_OK;
}

static weir_status emit_empty(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;
	weir_status status = weir_message_create_empty(weir_context_graph(context), &message);

	(void)rig;
	return status ? status : weir_context_emit(context, 0, message);
}

static void assert_call_fails(const char *graph, rig_fn *compute, const char *words)
{
	struct rig *rig = rig_of(graph);

	rig_on(rig, "c", compute);
	assert_int_equal(rig_run(rig), WEIR_E_INVALID);
	if (!strstr(rig->outcome.text, words))
		fail_msg("\"%s\" lacks \"%s\"", rig->outcome.text, words);
	assert_string_equal(rig->outcome.entity, "c");
	rig_destroy(rig);
}

static void xb04_a_received_message_is_not_passed_on_without_a_reference(void **state)
{
	(void)state;
	assert_call_fails("source ticks=1 -> c:call -> end", pass_without_reference,
			  "c.out: emitted a message without a reference of its own");
}

static void xb04_one_reference_is_emitted_once(void **state)
{
	(void)state;
	assert_call_fails("source ticks=1 -> c:call max_emits=2 -> end capacity=2", pass_twice,
			  "c.out: emitted a message without a reference of its own");
}

static void xb04_one_unref_too_many_fails_the_run(void **state)
{
	(void)state;
	assert_call_fails("source ticks=1 -> c:call -> end", drop_what_is_not_its_own,
			  "a message was unreferenced more often than it was referenced");
}

static weir_status says_tensor(weir_context *context, void *state)
{
	(void)state;
	return emit_empty(NULL, context);
}

static const weir_port takes_tensors[] = {
	{.size = sizeof(weir_port), .name = "in", .kinds = WEIR_KIND_TENSOR}, {.name = NULL}};
static const weir_port gives_tensors[] = {
	{.size = sizeof(weir_port), .name = "out", .kinds = WEIR_KIND_TENSOR}, {.name = NULL}};
static const weir_operator tensors = {.size = sizeof tensors, .name = "tensors", .inputs = takes_tensors};
static const weir_operator liar = {
	.size = sizeof liar, .name = "liar", .outputs = gives_tensors, .compute = says_tensor};
static const weir_operator *const operators[] = {&tensors, &liar, NULL};

static void xb08_an_output_keeps_to_its_kinds(void **state)
{
	struct rig *rig =
		rig_of_json("{\"weir\": 1, \"entities\": [{\"name\": \"l\", \"operator\": \"liar\"},"
			    "{\"name\": \"s\", \"operator\": \"sink\"}],"
			    "\"connections\": [[\"l.out\", \"s.in\"]]}",
			    operators);

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_INVALID);
	assert_non_null(
		strstr(rig->outcome.text, "l.out: emitted an empty message, which is not among the kinds"));
	rig_destroy(rig);
}

static void xb08_an_inlet_refuses_what_its_port_does_not_take(void **state)
{
	struct rig *rig = rig_of_json(
		"{\"weir\": 1, \"entities\": [{\"name\": \"t\", \"operator\": \"tensors\"}]}", operators);
	weir_inlet *inlet = NULL;
	weir_message *message = NULL;

	(void)state;
	assert_int_equal(weir_graph_add_inlet(rig->graph, "t.in", &inlet), WEIR_OK);
	rig_start(rig);
	assert_int_equal(weir_message_create_bytes(rig->graph, 4, &message), WEIR_OK);
	assert_int_equal(weir_inlet_push(inlet, message, 0), WEIR_E_INVALID);
	assert_non_null(
		strstr(weir_last_error(), "inlet of t.in: the port does not take messages of this kind"));
	weir_message_unref(message);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void xb29_a_graph_is_not_destroyed_under_its_messages(void **state)
{
	struct rig *rig = rig_of("source ticks=2 -> end");
	weir_message *kept[2];

	(void)state;
	for (size_t i = 0; i < 2; i++)
		kept[i] = rig_message(rig, 5);
	assert_int_equal(rig_run(rig), WEIR_OK);
	weir_scheduler_destroy(rig->scheduler);
	rig->scheduler = NULL;
	assert_int_equal(weir_graph_destroy(rig->graph), WEIR_E_STATE);
	assert_non_null(strstr(weir_last_error(), "2 of its messages are still held"));
	assert_int_equal(rig_value(kept[0]), 5);
	weir_message_unref(kept[0]);
	weir_message_unref(kept[1]);
	rig_destroy(rig);
}

/* --- parameters --- */

static void xb10_a_parameter_that_is_not_declared_fails_start(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end condition=nope");

	(void)state;
	rig_make(rig);
	rig_here(rig);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "condition 'nope' asked for the parameter 'nope'"));
	rig_destroy(rig);
}

/* --- structs --- */

static void xb03_a_struct_without_a_size_is_refused_by_name(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end");
	const weir_scheduler_options options = {.workers = 1};
	weir_outcome outcome = {0};
	weir_entity_counts entity = {0};
	weir_queue_counts queue = {0};
	weir_tensor tensor = {.code = 1, .bits = 8};
	weir_message *message = NULL;
	weir_scheduler *scheduler = NULL;

	(void)state;
	assert_int_equal(weir_scheduler_create(rig->graph, &options, &scheduler), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "weir_scheduler_options: its size is 0"));
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, -1, &outcome), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "weir_outcome: its size is 0"));
	assert_int_equal(weir_scheduler_entity_counts(rig->scheduler, 0, &entity), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "weir_entity_counts: its size is 0"));
	assert_int_equal(weir_scheduler_queue_counts(rig->scheduler, 0, &queue), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "weir_queue_counts: its size is 0"));
	assert_int_equal(weir_message_create_tensor(rig->graph, &tensor, &message), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "weir_tensor: its size is 0"));
	rig_destroy(rig);
}

static void xb03_a_field_that_the_library_does_not_know_is_refused(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end");
	struct {
		weir_scheduler_options options;
		int64_t newer;
	} later = {.options = {.size = sizeof later}, .newer = 0};

	(void)state;
	assert_int_equal(weir_scheduler_create(rig->graph, &later.options, &rig->scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
	rig->scheduler = NULL;
	later.newer = 1;
	assert_int_equal(weir_scheduler_create(rig->graph, &later.options, &rig->scheduler),
			 WEIR_E_UNSUPPORTED);
	assert_non_null(strstr(weir_last_error(), "a field is set that this library"));
	rig_destroy(rig);
}

static void e06_a_state_size_that_wraps_is_refused(void **state)
{
	static const weir_operator table = {.size = sizeof table, .name = "vast", .state_size = SIZE_MAX};
	weir_registry *registry = NULL;

	(void)state;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &table), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "state_size"));
	weir_registry_destroy(registry);
}

static weir_status stateless(weir_context *context, void *state)
{
	return state ? weir_context_fail(context, "no bytes are somewhere") : weir_context_finish(context);
}

static void xb54_a_state_of_no_bytes_is_null(void **state)
{
	static const weir_operator table = {.size = sizeof table, .name = "stateless", .compute = stateless};
	weir_description *description;
	weir_registry *registry = NULL;
	weir_scheduler *scheduler;
	weir_graph *graph;

	(void)state;
	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &table), WEIR_OK);
	assert_int_equal(weir_description_create(&description), WEIR_OK);
	assert_int_equal(weir_description_add_entity(description, "a", "stateless"), WEIR_OK);
	assert_int_equal(weir_graph_create(registry, description, &graph), WEIR_OK);
	weir_description_destroy(description);
	assert_int_equal(
		weir_scheduler_create(
			graph,
			&(weir_scheduler_options){.size = sizeof(weir_scheduler_options), .backend = "sim"},
			&scheduler),
		WEIR_OK);
	assert_int_equal(weir_scheduler_run(scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_destroy(scheduler), WEIR_OK);
	assert_int_equal(weir_graph_destroy(graph), WEIR_OK);
	weir_registry_destroy(registry);
}

int main(void)
{
	rig_conditions = conditions;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c01_an_ask_gives_one_verdict),
		cmocka_unit_test(c01_a_cause_is_one_of_weirs_about_a_port_of_the_entity),
		cmocka_unit_test(c01_a_view_has_the_ports_of_its_entity),
		cmocka_unit_test(s08_misuse_of_one_run_does_not_fail_the_next),
		cmocka_unit_test(xb04_a_received_message_is_not_passed_on_without_a_reference),
		cmocka_unit_test(xb04_one_reference_is_emitted_once),
		cmocka_unit_test(xb04_one_unref_too_many_fails_the_run),
		cmocka_unit_test(xb08_an_output_keeps_to_its_kinds),
		cmocka_unit_test(xb08_an_inlet_refuses_what_its_port_does_not_take),
		cmocka_unit_test(xb29_a_graph_is_not_destroyed_under_its_messages),
		cmocka_unit_test(xb10_a_parameter_that_is_not_declared_fails_start),
		cmocka_unit_test(xb03_a_struct_without_a_size_is_refused_by_name),
		cmocka_unit_test(xb03_a_field_that_the_library_does_not_know_is_refused),
		cmocka_unit_test(e06_a_state_size_that_wraps_is_refused),
		cmocka_unit_test(xb54_a_state_of_no_bytes_is_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

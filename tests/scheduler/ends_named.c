/* Inlets and outlets that a graph names: the program creates them, or gets an error. */
#include <string.h>

#include "rig.h"

static const char text[] =
	"{\"weir\": 1, \"entities\": [{\"name\": \"work\", \"operator\": \"delay\", \"parameters\": "
	"{\"duration\": 0}}],"
	"\"inlets\": [\"work.in\"], \"outlets\": [{\"port\": \"work.out\", \"capacity\": 3}]}";

static weir_graph *graph_of(const char *json)
{
	weir_description *description = NULL;
	weir_graph *graph = NULL;

	assert_int_equal(weir_description_parse(json, strlen(json), NULL, NULL, &description), WEIR_OK);
	assert_int_equal(weir_graph_create(NULL, description, &graph), WEIR_OK);
	weir_description_destroy(description);
	return graph;
}

static weir_scheduler *scheduler_of(weir_graph *graph)
{
	weir_scheduler_options options = {.size = sizeof options, .backend = "host", .workers = 1};
	weir_scheduler *scheduler = NULL;

	weir_scheduler_create(graph, &options, &scheduler);
	return scheduler;
}

static void xb11_a_program_that_makes_none_is_told(void **state)
{
	weir_graph *graph = graph_of(text);
	weir_scheduler *scheduler = scheduler_of(graph);
	weir_inlet *inlet;

	(void)state;
	assert_int_equal(weir_scheduler_start(scheduler), WEIR_E_INVALID);
	assert_string_equal(
		weir_last_error(),
		"work.in is an inlet of this graph: a program must feed it (weir_graph_add_inlet)");
	weir_scheduler_destroy(scheduler);
	assert_int_equal(weir_graph_add_inlet(graph, "work.in", &inlet), WEIR_OK);
	scheduler = scheduler_of(graph);
	assert_int_equal(weir_scheduler_start(scheduler), WEIR_E_INVALID);
	assert_string_equal(
		weir_last_error(),
		"work.out is an outlet of this graph: a program must take from it (weir_graph_add_outlet)");
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
}

static uint32_t capacity_of_the_outlet(uint32_t wanted)
{
	weir_queue_counts counts = {.size = sizeof counts};
	weir_graph *graph = graph_of(text);
	weir_scheduler *scheduler;
	weir_outlet *outlet;
	weir_inlet *inlet;

	assert_int_equal(weir_graph_add_inlet(graph, "work.in", &inlet), WEIR_OK);
	assert_int_equal(weir_graph_add_outlet(graph, "work.out", wanted, 0, &outlet), WEIR_OK);
	scheduler = scheduler_of(graph);
	assert_non_null(scheduler);
	for (size_t i = 0; !weir_scheduler_queue_counts(scheduler, i, &counts); i++)
		if (!strcmp(counts.from, "work.out"))
			break;
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
	return counts.capacity;
}

static void xb11_an_outlet_is_as_large_as_the_graph_says(void **state)
{
	(void)state;
	assert_int_equal(capacity_of_the_outlet(0), 3);
	assert_int_equal(capacity_of_the_outlet(5), 5); /* the program's capacity overrides the graph's */
}

/* Messages go in by the named inlet and out by the named outlet. */
static void xb11_named_ends_carry_messages(void **state)
{
	weir_graph *graph = graph_of(text);
	weir_message *message = NULL, *taken = NULL;
	weir_scheduler *scheduler;
	weir_outlet *outlet;
	weir_inlet *inlet;

	(void)state;
	assert_int_equal(weir_graph_add_inlet(graph, "work.in", &inlet), WEIR_OK);
	assert_int_equal(weir_graph_add_outlet(graph, "work.out", 0, 0, &outlet), WEIR_OK);
	scheduler = scheduler_of(graph);
	assert_int_equal(weir_scheduler_start(scheduler), WEIR_OK);
	assert_int_equal(weir_message_create_empty(graph, &message), WEIR_OK);
	assert_int_equal(weir_inlet_push(inlet, message, -1), WEIR_OK);
	assert_int_equal(weir_outlet_take(outlet, -1, &taken), WEIR_OK);
	assert_ptr_equal(taken, message);
	weir_message_unref(taken);
	weir_inlet_close(inlet);
	assert_int_equal(weir_scheduler_wait(scheduler, -1, NULL), WEIR_OK);
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
}

/* Of two named inlets and two named outlets one each is made. */
static void xb11_each_named_end_must_be_made(void **state)
{
	static const char two[] =
		"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"delay\", \"parameters\": "
		"{\"duration\": 0}}, {\"name\": \"b\", \"operator\": \"delay\", \"parameters\": "
		"{\"duration\": 0}}], \"inlets\": [\"a.in\", \"b.in\"], \"outlets\": [\"a.out\", \"b.out\"]}";
	weir_graph *graph = graph_of(two);
	weir_scheduler *scheduler;
	weir_outlet *outlet;
	weir_inlet *inlet;

	(void)state;
	assert_int_equal(weir_graph_add_inlet(graph, "b.in", &inlet), WEIR_OK);
	assert_int_equal(weir_graph_add_outlet(graph, "b.out", 0, 0, &outlet), WEIR_OK);
	scheduler = scheduler_of(graph);
	assert_int_equal(weir_scheduler_start(scheduler), WEIR_E_INVALID);
	assert_says(weir_last_error(), "a.in is an inlet of this graph");
	weir_scheduler_destroy(scheduler);
	assert_int_equal(weir_graph_add_inlet(graph, "a.in", &inlet), WEIR_OK);
	scheduler = scheduler_of(graph);
	assert_int_equal(weir_scheduler_start(scheduler), WEIR_E_INVALID);
	assert_says(weir_last_error(), "a.out is an outlet of this graph");
	weir_scheduler_destroy(scheduler);
	weir_graph_destroy(graph);
}

static void xb11_an_end_that_does_not_exist_is_refused_by_name(void **state)
{
	static const char *const inlets[] = {
		"nodot", "nobody.in", "work.nope",
		"a-name-that-is-longer-than-any-name-of-an-entity-may-be-and-so-cannot-be-one-of-them.in"};
	weir_graph *graph = graph_of(text);
	weir_outlet *outlet = NULL;
	weir_inlet *inlet = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof inlets / sizeof *inlets; i++) {
		assert_int_equal(weir_graph_add_inlet(graph, inlets[i], &inlet), WEIR_E_INVALID);
		assert_says(weir_last_error(), inlets[i]);
	}
	assert_int_equal(weir_graph_add_outlet(graph, "work.nope", 1, 0, &outlet), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "'work.nope': operator delay has no output 'nope'");
	assert_null(inlet);
	assert_null(outlet);
	weir_graph_destroy(graph);
}

static void e06_an_input_without_connection_or_inlet_is_named_at_the_start(void **state)
{
	struct rig *rig = rig_of("p:pass -> end");

	(void)state;
	rig_make(rig);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "p.in: nothing is connected to this input; "
					       "connect it or give it an inlet");
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb11_a_program_that_makes_none_is_told),
		cmocka_unit_test(xb11_an_outlet_is_as_large_as_the_graph_says),
		cmocka_unit_test(xb11_named_ends_carry_messages),
		cmocka_unit_test(xb11_each_named_end_must_be_made),
		cmocka_unit_test(xb11_an_end_that_does_not_exist_is_refused_by_name),
		cmocka_unit_test(e06_an_input_without_connection_or_inlet_is_named_at_the_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

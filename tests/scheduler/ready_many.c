/* More entities become READY at once than a worker's queue holds (S9): the rest go to the injector, each with
 * a reference (S4). */
#include <stdio.h>
#include <stdlib.h>

#include "rig.h"

enum { RECEIVERS = 700, ROUNDS = 20 };

static uint64_t received[RECEIVERS];

static weir_status send(weir_context *context, void *state)
{
	weir_message *message = NULL;
	weir_status status = weir_message_create_empty(weir_context_graph(context), &message);

	(void)state;
	if (weir_context_tick(context) + 1 == ROUNDS)
		weir_context_finish(context);
	return status ? status : weir_context_emit(context, 0, message);
}

static weir_status receive(weir_context *context, void *state)
{
	(void)state;
	received[atoi(weir_entity_name(weir_context_entity(context)) + 1)] += weir_context_count(context, 0);
	return WEIR_OK;
}

static const weir_port in[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_port out[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};
static const weir_operator sender = {
	.size = sizeof sender, .name = "sender", .help = "to all", .outputs = out, .compute = send};
static const weir_operator receiver = {
	.size = sizeof receiver, .name = "receiver", .help = "counts", .inputs = in, .compute = receive};

static void describe(weir_description *description)
{
	char name[16], port[24];

	assert_int_equal(weir_description_add_entity(description, "s", "sender"), WEIR_OK);
	for (unsigned i = 0; i < RECEIVERS; i++) {
		snprintf(name, sizeof name, "r%u", i);
		snprintf(port, sizeof port, "%s.in", name);
		assert_int_equal(weir_description_add_entity(description, name, "receiver"), WEIR_OK);
		assert_int_equal(weir_description_connect(description, "s.out", port), WEIR_OK);
		received[i] = 0;
	}
}

static void send_to_all(void)
{
	weir_scheduler_options options = {.size = sizeof options, .workers = 1, .backend = rig_backend};
	weir_registry *registry = NULL;
	weir_description *description = NULL;
	weir_graph *graph = NULL;
	weir_scheduler *scheduler = NULL;

	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &sender), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &receiver), WEIR_OK);
	assert_int_equal(weir_description_create(&description), WEIR_OK);
	describe(description);
	assert_int_equal(weir_graph_create(registry, description, &graph), WEIR_OK);
	assert_int_equal(weir_scheduler_create(graph, &options, &scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_run(scheduler), WEIR_OK);
	for (unsigned i = 0; i < RECEIVERS; i++)
		assert_int_equal(received[i], ROUNDS);
	assert_int_equal(weir_scheduler_destroy(scheduler), WEIR_OK);
	assert_int_equal(weir_graph_destroy(graph), WEIR_OK);
	weir_description_destroy(description);
	weir_registry_destroy(registry);
}

static void s04_s09_more_are_ready_than_a_worker_has_places(void **state)
{
	(void)state;
	rig_everywhere(send_to_all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(s04_s09_more_are_ready_than_a_worker_has_places)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

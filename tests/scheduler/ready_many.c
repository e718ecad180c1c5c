/* More entities become READY at once than a worker's ring holds (S9): the rest go to its spill. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "rig_inside.h"

enum { RECEIVERS = 700, ROUNDS = 20 };

static uint64_t received[RECEIVERS];
static int64_t received_at[RECEIVERS], long_since;
static bool first_is_long; /* the first one that the sender's worker runs */
static bool blocks;
static uintptr_t sent_by;
static unsigned workers;

static weir_status send(weir_context *context, void *state)
{
	weir_message *message = NULL;
	weir_status status = weir_message_create_empty(weir_context_graph(context), &message);

	(void)state;
	sent_by = wr_thread_self();
	if (first_is_long && weir_context_tick(context) == 1) {
		weir_sleep(5 * MS); /* the others are done with the first message */
		blocks = true;
		weir_sleep(5 * MS);
	}
	if (weir_context_tick(context) + 1 == ROUNDS)
		weir_context_finish(context);
	return status ? status : weir_context_emit(context, 0, message);
}

static weir_status receive(weir_context *context, void *state)
{
	int i = atoi(weir_entity_name(weir_context_entity(context)) + 1);

	(void)state;
	if (received[i] < 2)
		received_at[i] = wr_now();
	received[i] += weir_context_count(context, 0);
	if (blocks && !long_since && wr_thread_self() == sent_by) {
		long_since = wr_now();
		weir_sleep(300 * MS);
	}
	return WEIR_OK;
}

/* While the sender's worker sends the second message to all, the other one is here. */
static weir_status block(weir_context *context, void *state)
{
	(void)state;
	while (blocks && !long_since)
		weir_sleep(MS);
	if (!first_is_long || long_since)
		weir_context_finish(context);
	weir_sleep(MS / 2);
	return WEIR_OK;
}

/* --- always READY --- */

enum { TURNS = 3, ROW = 8, MOST = 4000000 }; /* ROW: the ticks of a turn */

static uint64_t all_ticks;
static unsigned short_of_turns;

/* Sources end together, once each has had its turns, or too many ticks have gone by. One worker. */
static weir_status go_on(weir_context *context, void *state)
{
	(void)state;
	all_ticks++;
	short_of_turns -= weir_context_tick(context) == (TURNS - 1) * ROW;
	if (!short_of_turns || all_ticks > MOST)
		weir_context_finish(context);
	return WEIR_OK;
}

static const weir_port in[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_port out[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};
static const weir_operator sender = {
	.size = sizeof sender, .name = "sender", .help = "to all", .outputs = out, .compute = send};
static const weir_operator receiver = {
	.size = sizeof receiver, .name = "receiver", .help = "counts", .inputs = in, .compute = receive};

static const weir_operator blocker = {
	.size = sizeof blocker, .name = "blocker", .help = "keeps a worker", .compute = block};
static const weir_operator source = {
	.size = sizeof source, .name = "source", .help = "always ready", .compute = go_on};

static void describe_sources(weir_description *description)
{
	char name[16];

	for (unsigned i = 0; i < RECEIVERS; i++) {
		snprintf(name, sizeof name, "s%u", i);
		assert_int_equal(weir_description_add_entity(description, name, "source"), WEIR_OK);
	}
	all_ticks = 0;
	short_of_turns = RECEIVERS;
}

static void describe(weir_description *description)
{
	char name[16], port[24];

	assert_int_equal(weir_description_add_entity(description, "s", "sender"), WEIR_OK);
	assert_int_equal(weir_description_add_entity(description, "b", "blocker"), WEIR_OK);
	for (unsigned i = 0; i < RECEIVERS; i++) {
		snprintf(name, sizeof name, "r%u", i);
		snprintf(port, sizeof port, "%s.in", name);
		assert_int_equal(weir_description_add_entity(description, name, "receiver"), WEIR_OK);
		assert_int_equal(weir_description_connect(description, "s.out", port), WEIR_OK);
		received[i] = 0;
	}
}

static void run(void (*describes)(weir_description *description))
{
	weir_scheduler_options options = {.size = sizeof options, .workers = workers, .backend = rig_backend};
	weir_registry *registry = NULL;
	weir_description *description = NULL;
	weir_graph *graph = NULL;
	weir_scheduler *scheduler = NULL;

	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &sender), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &receiver), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &blocker), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &source), WEIR_OK);
	assert_int_equal(weir_description_create(&description), WEIR_OK);
	describes(description);
	assert_int_equal(weir_graph_create(registry, description, &graph), WEIR_OK);
	assert_int_equal(weir_scheduler_create(graph, &options, &scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_run(scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_destroy(scheduler), WEIR_OK);
	assert_int_equal(weir_graph_destroy(graph), WEIR_OK);
	weir_description_destroy(description);
	weir_registry_destroy(registry);
}

static void send_to_all(void)
{
	for (workers = 1; workers <= 3; workers++) {
		run(describe);
		for (unsigned i = 0; i < RECEIVERS; i++)
			assert_int_equal(received[i], ROUNDS);
	}
}

static void s04_s09_more_are_ready_than_a_worker_has_places(void **state)
{
	(void)state;
	rig_everywhere(send_to_all);
}

/* Others take the spill, too, once it waits behind a compute that is long. */
static void check_long(void)
{
	unsigned late = 0;

	workers = 2;
	first_is_long = true;
	blocks = false;
	long_since = 0;
	run(describe);
	first_is_long = blocks = false;
	for (unsigned i = 0; i < RECEIVERS; i++)
		late += received_at[i] - long_since > 30 * MS;
	assert_true(long_since > 0);
	assert_int_equal(late, 0);
}

static void s09_what_does_not_fit_is_taken_by_others_behind_a_long_compute(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++)
		rig_in_world(seed, check_long);
}

/* Each goes to the end of the ring after its turn, so the ring is never empty. */
static void s09_what_does_not_fit_has_its_turn_though_the_ring_is_never_empty(void **state)
{
	(void)state;
	workers = 1;
	rig_backend = "host";
	run(describe_sources);
	assert_int_equal(short_of_turns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s04_s09_more_are_ready_than_a_worker_has_places),
		cmocka_unit_test(s09_what_does_not_fit_is_taken_by_others_behind_a_long_compute),
		cmocka_unit_test(s09_what_does_not_fit_has_its_turn_though_the_ring_is_never_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

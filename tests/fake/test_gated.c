/*
 * What a gated tick enqueues on the device: counted by the fake, so it holds at any speed of the machine.
 * Queries do not: a signal whose stream was made during the run proves nothing, and the review that follows
 * it asks.
 */
#include "test.h"

#include "tests/calls.h"
#include "weir.h"

enum { MESSAGES = 60, SLACK = 10 }; /* a watch that finds the machine slow */

static const char *const calls[] = {"cudaEventRecord", "cudaStreamWaitEvent", "cudaLaunchHostFunc",
				    "cuStreamWriteValue32"};
enum { CALLS = sizeof calls / sizeof *calls };
static unsigned counts[CALLS]; /* when the last message is made */

static void note_counts(void)
{
	for (int i = 0; i < CALLS; i++)
		counts[i] = fake_count(calls[i]);
}

static int work(void *const *parameters, const struct fake_place *place)
{
	(void)parameters;
	(void)place;
	weir_sleep(500000);
	return 0;
}

static int launch_work(void *stream, const void *arguments)
{
	static const struct fake_kernel kernel = {"gated_work", work, {sizeof(int), 0}};
	int unused = 0;

	(void)arguments;
	return fake_launch(stream, &kernel, &unused);
}

static weir_status make_compute(weir_context *context, void *state)
{
	static const weir_kernel kernel = {.size = sizeof kernel, .name = "work", .cuda = launch_work};
	weir_stream *stream = current_stream(context);
	weir_message *message;

	if (!stream || weir_stream_launch(stream, &kernel, NULL, 0) ||
	    weir_message_create_empty(weir_context_graph(context), &message))
		return WEIR_E_FAILED;
	if (++*(unsigned *)state == MESSAGES) {
		note_counts();
		weir_context_finish(context);
	}
	return weir_context_emit(context, 0, message);
}

static weir_status take_compute(weir_context *context, void *state)
{
	(void)context;
	(void)state;
	return WEIR_OK;
}

static void add_operators(weir_registry *registry)
{
	static const weir_port in[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
	static const weir_port out[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};
	static const weir_operator make = {.size = sizeof make,
					   .name = "make",
					   .help = "makes messages behind a kernel",
					   .state_size = sizeof(unsigned),
					   .flags = WEIR_OPERATOR_STREAM,
					   .outputs = out,
					   .compute = make_compute};
	static const weir_operator take = {.size = sizeof take,
					   .name = "take",
					   .help = "takes finished messages",
					   .inputs = in,
					   .compute = take_compute};

	assert_int_equal(weir_registry_add_operator(registry, &make), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &take), WEIR_OK);
}

/*
 * A source, and a receiver with the gate that each host port has; with room for one message, so that nothing
 * but that message and its signal pokes the receiver. Returns the number of ticks.
 */
static uint64_t run(void)
{
	const weir_scheduler_options options = {.size = sizeof options, .workers = 1, .backend = "cuda"};
	weir_outcome outcome = {.size = sizeof outcome};
	weir_registry *registry;
	weir_description *description;
	weir_scheduler *scheduler;
	weir_graph *graph;

	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	add_operators(registry);
	assert_int_equal(weir_description_create(&description), WEIR_OK);
	assert_int_equal(weir_description_add_entity(description, "a", "make"), WEIR_OK);
	assert_int_equal(weir_description_add_entity(description, "b", "take"), WEIR_OK);
	assert_int_equal(weir_description_connect(description, "a.out", "b.in"), WEIR_OK);
	assert_int_equal(weir_description_put(description, "/entities/1/ports/in/capacity", "1"), WEIR_OK);
	assert_int_equal(weir_graph_create(registry, description, &graph), WEIR_OK);
	assert_int_equal(weir_scheduler_create(graph, &options, &scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_start(scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_wait(scheduler, -1, &outcome), WEIR_OK);
	assert_int_equal(weir_scheduler_destroy(scheduler), WEIR_OK);
	assert_int_equal(weir_graph_destroy(graph), WEIR_OK);
	weir_description_destroy(description);
	weir_registry_destroy(registry);
	return outcome.ticks;
}

static void g3_a_gated_tick_records_once_and_arms_one_signal(void **state)
{
	unsigned before[CALLS], made, launched = fake_count("cudaLaunchKernel");

	(void)state;
	note_counts();
	memcpy(before, counts, sizeof before);
	assert_int_equal(run(), 2 * MESSAGES);
	assert_int_equal(fake_count("cudaLaunchKernel") - launched, MESSAGES);
	for (int i = 0; i < CALLS; i++) {
		made = counts[i] - before[i];
		if (made > MESSAGES + SLACK)
			fail_msg("%u messages made %u calls of %s", MESSAGES, made, calls[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(g3_a_gated_tick_records_once_and_arms_one_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Claims that are kept (S3), of a pool on the device: messages are made in other ticks than those that emit
 * them, and the device still works on them when they are dropped. However a run ends, all blocks are back.
 */
#include "test.h"

#include "tests/calls.h"
#include "weir.h"

enum { AHEAD = 4, MADE = 2, MOST = 30, BLOCK = 256 };
enum ending { FINISHES, FAILS, STOPPED };
static const enum ending endings[] = {FINISHES, FAILS, STOPPED};

static enum ending ending;
static weir_scheduler *scheduler;

struct keeper {
	weir_message *made[MADE]; /* the oldest first; what it reserves beside these it keeps */
	size_t count;
	unsigned emitted;
};

static int work(void *const *parameters, const struct fake_place *place)
{
	(void)parameters;
	(void)place;
	weir_sleep(200000);
	return 0;
}

static int launch_work(void *stream, const void *arguments)
{
	static const struct fake_kernel kernel = {"kept_work", work, {sizeof(int), 0}};
	int unused = 0;

	(void)arguments;
	return fake_launch(stream, &kernel, &unused);
}

/* What it has reserved is there. */
static weir_status make_one(weir_context *context, struct keeper *keeper)
{
	static const weir_kernel kernel = {.size = sizeof kernel, .name = "work", .cuda = launch_work};
	const int64_t count = BLOCK;
	const weir_tensor like = {
		.size = sizeof like, .dimensions = 1, .shape = &count, .code = 1, .bits = 8, .lanes = 1};
	weir_status status = weir_context_create_tensor(context, &like, 0, &keeper->made[keeper->count]);

	if (status)
		return status;
	keeper->count++;
	return weir_stream_launch(current_stream(context), &kernel, NULL, 0);
}

static weir_status emit_oldest(weir_context *context, struct keeper *keeper)
{
	weir_message *message = keeper->made[0];

	memmove(keeper->made, keeper->made + 1, --keeper->count * sizeof *keeper->made);
	if (++keeper->emitted == MOST && ending == FINISHES)
		weir_context_finish(context);
	return weir_context_emit(context, 0, message);
}

static weir_status keep_start(weir_context *context, void *state, const weir_values *values)
{
	(void)state;
	(void)values;
	return weir_entity_tell(weir_context_entity(context), "kept", WEIR_TOLD_READY);
}

static weir_status keep_compute(weir_context *context, void *state)
{
	struct keeper *keeper = state;
	weir_status status = keeper->count ? emit_oldest(context, keeper) : WEIR_OK;
	size_t kept = weir_context_reserve(context, AHEAD - keeper->count);

	if (!status && kept && keeper->count < MADE)
		status = make_one(context, keeper);
	if (!status && keeper->emitted == MOST / 2 && ending == FAILS)
		return weir_context_fail(context, "told to fail");
	if (keeper->emitted == MOST / 2 && ending == STOPPED)
		weir_scheduler_stop(scheduler, 0);
	return status ? status
		      : weir_entity_tell(weir_context_entity(context), "kept",
					 keeper->count ? WEIR_TOLD_READY : WEIR_TOLD_WAIT);
}

static void keep_stop(weir_context *context, void *state)
{
	struct keeper *keeper = state;

	(void)context;
	while (keeper->count)
		weir_message_unref(keeper->made[--keeper->count]);
}

static void kept_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (weir_view_told(view) == WEIR_TOLD_READY || weir_view_reserved(view)) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "nothing to emit, and no memory for more");
	weir_verdict_set_cause(verdict, WEIR_CAUSE_MEMORY, -1, false);
}

static weir_status take_compute(weir_context *context, void *state)
{
	(void)context;
	(void)state;
	return WEIR_OK;
}

static void add_operators(weir_registry *registry)
{
	static const weir_port in[] = {{.size = sizeof(weir_port), .name = "in", .flags = WEIR_PORT_DEVICE},
				       {.name = NULL}};
	static const weir_port out[] = {{.size = sizeof(weir_port),
					 .name = "out",
					 .kinds = WEIR_KIND_TENSOR,
					 .place = "device",
					 .ahead = AHEAD},
					{.name = NULL}};
	static const char *const kept_alone[] = {"{\"type\": \"kept\"}", NULL};
	static const weir_condition kept = {.size = sizeof kept,
					    .name = "kept",
					    .help = "has a message, or memory for one",
					    .phase = WEIR_PHASE_GATHERING,
					    .ask = kept_ask};
	static const weir_operator keep = {.size = sizeof keep,
					   .name = "keep",
					   .help = "makes messages ahead, behind a kernel",
					   .state_size = sizeof(struct keeper),
					   .flags = WEIR_OPERATOR_STREAM,
					   .outputs = out,
					   .conditions = kept_alone,
					   .start = keep_start,
					   .compute = keep_compute,
					   .stop = keep_stop};
	static const weir_operator take = {.size = sizeof take,
					   .name = "take",
					   .help = "takes messages, finished or not",
					   .inputs = in,
					   .compute = take_compute};

	assert_int_equal(weir_registry_add_condition(registry, &kept), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &keep), WEIR_OK);
	assert_int_equal(weir_registry_add_operator(registry, &take), WEIR_OK);
}

/* One that keeps claims, or two that share the pool. */
static weir_graph *make_graph(weir_registry *registry, unsigned blocks, bool shared)
{
	weir_description *description;
	weir_graph *graph;
	char json[1000];

	snprintf(json, sizeof json,
		 "{\"weir\": 1, \"resources\": {\"pool\": {\"type\": \"memory_pool\", \"blocks\": %u, "
		 "\"block_size\": %d}}, \"entities\": [{\"name\": \"k0\", \"operator\": \"keep\", "
		 "\"resources\": "
		 "[\"pool\"]}, {\"name\": \"t0\", \"operator\": \"take\"}%s], \"connections\": [[\"k0.out\", "
		 "\"t0.in\"]%s]}",
		 blocks, BLOCK,
		 shared ? ", {\"name\": \"k1\", \"operator\": \"keep\", \"resources\": [\"pool\"]}, "
			  "{\"name\": \"t1\", \"operator\": \"take\"}"
			: "",
		 shared ? ", [\"k1.out\", \"t1.in\"]" : "");
	assert_int_equal(weir_description_parse(json, strlen(json), NULL, NULL, &description), WEIR_OK);
	if (weir_graph_create(registry, description, &graph))
		fail_msg("%s", weir_last_error());
	weir_description_destroy(description);
	return graph;
}

static void run_once(weir_graph *graph, unsigned blocks)
{
	weir_pool_counts counts = {.size = sizeof counts};
	weir_outcome outcome = {.size = sizeof outcome};
	weir_status status;

	assert_int_equal(weir_scheduler_start(scheduler), WEIR_OK);
	status = weir_scheduler_wait(scheduler, INT64_C(60000000000), &outcome);
	if (status != (ending == FAILS ? WEIR_E_FAILED : WEIR_OK))
		fail_msg("%u blocks, ending %d: %d %s", blocks, ending, status,
			 outcome.text ? outcome.text : "");
	assert_int_equal(weir_graph_collect(graph, -1), WEIR_OK);
	assert_int_equal(weir_scheduler_pool_counts(scheduler, 0, &counts), WEIR_OK);
	assert_int_equal(counts.used, 0);
	assert_int_equal(counts.busy, 0);
	assert_true(counts.most_used <= blocks && counts.allocations >= MOST / 2);
}

/* The second run begins with what the first one left. */
static void run_twice(unsigned blocks, bool shared)
{
	const weir_scheduler_options options = {.size = sizeof options, .workers = 2, .backend = "cuda"};
	weir_registry *registry;
	weir_graph *graph;

	assert_int_equal(weir_registry_create(&registry), WEIR_OK);
	add_operators(registry);
	graph = make_graph(registry, blocks, shared);
	assert_int_equal(weir_scheduler_create(graph, &options, &scheduler), WEIR_OK);
	run_once(graph, blocks);
	run_once(graph, blocks);
	assert_int_equal(weir_scheduler_destroy(scheduler), WEIR_OK);
	assert_int_equal(weir_graph_destroy(graph), WEIR_OK);
	weir_registry_destroy(registry);
}

static void s03_claims_that_are_kept_come_back_however_the_run_ends(void **state)
{
	static const unsigned fewer_to_more[] = {1, 2, AHEAD, 2 * MOST}; /* of the last some are left */

	(void)state;
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
		for (size_t k = 0; k < sizeof fewer_to_more / sizeof *fewer_to_more; k++) {
			ending = endings[i];
			run_twice(fewer_to_more[k], false);
		}
}

static void s03_two_that_keep_claims_of_one_pool_leave_it_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
		for (unsigned blocks = 2 * AHEAD + 2; blocks < 2 * AHEAD + 5; blocks++) {
			ending = endings[i];
			run_twice(blocks, true);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s03_claims_that_are_kept_come_back_however_the_run_ends),
		cmocka_unit_test(s03_two_that_keep_claims_of_one_pool_leave_it_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The forms of bench/pipeline by weir: source -> upload -> compute -> download -> end, each step on a stream
 * of its own, gated by nothing but the end's port. Credits that the end returns to the source keep `ahead`
 * frames in flight; each step's memory comes from a pool of as many blocks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline.h"
#include "program.h"

/* the one run at a time */
static const struct pipeline_work *work_now;
static struct pipeline_run *run_now;
static bool replay_now;

/* --- the operators --- */

static weir_status create(weir_context *context, size_t bytes, bool on_host, weir_message **out)
{
	const int64_t count = (int64_t)bytes;
	const weir_tensor like = {
		.size = sizeof like, .dimensions = 1, .shape = &count, .code = 1, .bits = 8};

	return weir_context_create_tensor(context, &like, on_host ? WEIR_TENSOR_HOST : 0, out);
}

static weir_status source_compute(weir_context *context, void *state)
{
	const uint64_t frame = weir_context_tick(context);
	weir_message *out = NULL;
	weir_status status;

	(void)state;
	if (frame >= (uint64_t)run_now->frames)
		return weir_context_finish(context);
	status = create(context, work_now->input, true, &out);
	if (status)
		return status;
	pipeline_begin(run_now, (int)frame, work_now, weir_message_data(out));
	return weir_context_emit(context, 0, out);
}

static int compute_on_cuda(void *stream, const void *arguments)
{
	return pipeline_compute(stream, work_now, arguments);
}

static const weir_kernel kernel = {.size = sizeof kernel, .name = "compute", .cuda = compute_on_cuda};

static weir_status enqueue(weir_context *context, weir_stream *stream, void *arg)
{
	(void)context;
	return weir_stream_launch(stream, &kernel, arg, sizeof(struct pipeline_buffers));
}

static weir_status compute_compute(weir_context *context, void *state)
{
	struct pipeline_buffers buffers = {.device_input =
						   weir_message_data(weir_context_message(context, 0, 0))};
	weir_stream *stream = NULL;
	weir_message *out = NULL;
	weir_status status = weir_context_stream(context, &stream);

	(void)state;
	if (!status)
		status = create(context, work_now->output, false, &out);
	if (!status && work_now->hidden)
		status = weir_context_scratch(context, stream, work_now->hidden, &buffers.hidden);
	if (status) {
		weir_message_unref(out);
		return status;
	}
	buffers.device_output = weir_message_data(out);
	if (replay_now)
		status = weir_context_replay(context, &buffers, sizeof buffers, enqueue, &buffers);
	else
		status = enqueue(context, stream, &buffers);
	if (!status)
		return weir_context_emit(context, 0, out);
	weir_message_unref(out);
	return status;
}

static weir_status end_compute(weir_context *context, void *state)
{
	weir_message *credit = NULL;
	weir_status status = weir_message_create_empty(weir_context_graph(context), &credit);

	(void)state;
	if (status)
		return status;
	pipeline_end(run_now, (int)weir_context_tick(context), work_now,
		     weir_message_data(weir_context_message(context, 0, 0)));
	return weir_context_emit(context, 0, credit);
}

static const weir_port in[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_port out[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};

static const weir_operator operators[] = {
	{.size = sizeof(weir_operator),
	 .name = "bench_source",
	 .inputs = in,
	 .outputs = out,
	 .compute = source_compute},
	{.size = sizeof(weir_operator),
	 .name = "bench_compute",
	 .flags = WEIR_OPERATOR_STREAM,
	 .inputs = in,
	 .outputs = out,
	 .compute = compute_compute},
	{.size = sizeof(weir_operator),
	 .name = "bench_end",
	 .flags = WEIR_OPERATOR_EFFECTS,
	 .inputs = in,
	 .outputs = out,
	 .compute = end_compute},
};

/* --- the graph --- */

static const char graph_text[] =
	"{\"weir\": 1, \"name\": \"pipeline\","
	" \"resources\": {"
	"  \"inputs\": {\"type\": \"memory_pool\", \"place\": \"host\", \"block_size\": %zu, \"blocks\": %d},"
	"  \"outputs\": {\"type\": \"memory_pool\", \"place\": \"host\", \"block_size\": %zu, \"blocks\": "
	"%d},"
	"  \"uploaded\": {\"type\": \"memory_pool\", \"device\": 0, \"block_size\": %zu, \"blocks\": %d},"
	"  \"computed\": {\"type\": \"memory_pool\", \"device\": 0, \"block_size\": %zu, \"blocks\": %d}},"
	" \"entities\": ["
	"  {\"name\": \"source\", \"operator\": \"bench_source\", \"resources\": [\"inputs\"],"
	"   \"ports\": {\"in\": {\"capacity\": %d}}},"
	"  {\"name\": \"upload\", \"operator\": \"upload\", \"resources\": [\"uploaded\"],"
	"   \"ports\": {\"in\": {\"capacity\": %d}}},"
	"  {\"name\": \"compute\", \"operator\": \"bench_compute\", \"resources\": [\"computed\"],"
	"   \"ports\": {\"in\": {\"capacity\": %d}}},"
	"  {\"name\": \"download\", \"operator\": \"download\", \"resources\": [\"outputs\"],"
	"   \"ports\": {\"in\": {\"capacity\": %d}}},"
	"  {\"name\": \"end\", \"operator\": \"bench_end\", \"ports\": {\"in\": {\"capacity\": %d}}}],"
	" \"connections\": [[\"source.out\", \"upload.in\"], [\"upload.out\", \"compute.in\"],"
	"  [\"compute.out\", \"download.in\"], [\"download.out\", \"end.in\"],"
	"  {\"from\": \"end.out\", \"to\": \"source.in\", \"initial_messages\": %d}]}";

static weir_description *describe(void)
{
	const int n = run_now->ahead;
	const size_t input = work_now->input, output = work_now->output;
	weir_description *description = NULL;
	char text[sizeof graph_text + 256];

	snprintf(text, sizeof text, graph_text, input, n, output, n, input, n, output, n, n, n, n, n, n, n);
	must(weir_description_parse(text, strlen(text), NULL, NULL, &description), "pipeline");
	return description;
}

static weir_registry *registry_of_operators(void)
{
	weir_registry *registry = NULL;

	must(weir_registry_create(&registry), "registry");
	for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
		must(weir_registry_add_operator(registry, &operators[i]), operators[i].name);
	return registry;
}

/* A run that stands still must not hang the program. */
enum { LONGEST_RUN_S = 120 };

/* What the compute step replayed. */
static void note_counts(weir_scheduler *scheduler)
{
	weir_entity_counts counts = {.size = sizeof counts};

	for (size_t i = 0; !weir_scheduler_entity_counts(scheduler, i, &counts); i++) {
		run_now->hits += counts.replay_hits;
		run_now->captures += counts.replay_captures;
	}
}

void pipeline_weir(const struct pipeline_work *work, struct pipeline_run *run,
		   const struct pipeline_weir *how)
{
	weir_scheduler_options options = {.size = sizeof options,
					  .backend = "cuda",
					  .workers = how->workers,
					  .worker_spin_ns = how->worker_spin_ns,
					  .signal = how->signal,
					  .max_duration_ns = LONGEST_RUN_S * INT64_C(1000000000)};
	weir_registry *registry = registry_of_operators();
	weir_description *description;
	weir_scheduler *scheduler = NULL;
	weir_graph *graph = NULL;

	work_now = work;
	run_now = run;
	replay_now = how->replay;
	description = describe();
	must(weir_graph_create(registry, description, &graph), "graph");
	must(weir_scheduler_create(graph, &options, &scheduler), "scheduler");
	must(weir_scheduler_run(scheduler), "run");
	note_counts(scheduler);
	must(weir_scheduler_destroy(scheduler), "destroy");
	must(weir_graph_destroy(graph), "destroy");
	weir_description_destroy(description);
	weir_registry_destroy(registry);
}

/*
 * A plugin with device work that waits until the program opens a gate: `keep_one` keeps the message that it
 * received last, which the program then leaves with the device; `behind_gate` passes on what the device still
 * works on.
 */
#include <semaphore.h>
#include <time.h>

#include "weir.h"

static sem_t gate;
static weir_graph *graph;
static weir_message *kept;

/* Fails after a while: then nothing will open it, as the thread that would waits for the device. */
static int wait_at_gate(const void *arguments)
{
	struct timespec until;

	(void)arguments;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	return sem_timedwait(&gate, &until);
}

static const weir_kernel kernel = {.size = sizeof kernel, .name = "gate", .host = wait_at_gate};

/* Between two runs: drops the message behind a kernel that reads it until open_gate is called. */
WEIR_API weir_status drop_behind_gate(void)
{
	weir_stream *stream;
	weir_fence fence;
	weir_status status = weir_graph_add_stream(graph, 0, &stream);

	if (!status)
		status = weir_stream_launch(stream, &kernel, NULL, 0);
	if (!status)
		status = weir_stream_record(stream, &fence);
	if (!status)
		status = weir_message_add_reader(kept, fence);
	weir_message_unref(kept);
	return status;
}

WEIR_API void open_gate(void)
{
	sem_post(&gate);
}

static weir_status compute(weir_context *context, void *state)
{
	(void)state;
	graph = weir_context_graph(context);
	kept = weir_message_ref(weir_context_message(context, 0, 0));
	return WEIR_OK;
}

static const weir_port inputs[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_operator keep = {.size = sizeof keep,
				   .name = "keep_one",
				   .help = "keeps a message",
				   .inputs = inputs,
				   .compute = compute};

static weir_status compute_behind_gate(weir_context *context, void *state)
{
	weir_stream *stream;
	weir_status status = weir_context_stream(context, &stream);

	if (!status)
		status = weir_stream_launch(stream, &kernel, NULL, 0);

	(void)state;
	return status ? status
		      : weir_context_emit(context, 0, weir_message_ref(weir_context_message(context, 0, 0)));
}

static const weir_port outputs[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};
static const weir_operator behind = {.size = sizeof behind,
				     .name = "behind_gate",
				     .help = "passes on what is finished when the gate opens",
				     .inputs = inputs,
				     .outputs = outputs,
				     .compute = compute_behind_gate};

static weir_status add(weir_registry *registry)
{
	weir_status status = weir_registry_add_operator(registry, &keep);

	sem_init(&gate, 0, 0);
	return status ? status : weir_registry_add_operator(registry, &behind);
}

WEIR_PLUGIN(add);

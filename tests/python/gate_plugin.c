/* A plugin whose operator keeps the message that it received last. The program leaves that with the device.
 */
#include <semaphore.h>

#include "weir.h"

static sem_t gate;
static weir_graph *graph;
static weir_message *kept;

static int wait_at_gate(const void *arguments)
{
	(void)arguments;
	return sem_wait(&gate);
}

/* Between two runs: drops the message behind a kernel that reads it until open_gate is called. */
WEIR_API weir_status drop_behind_gate(void)
{
	static const weir_kernel kernel = {.size = sizeof kernel, .name = "gate", .host = wait_at_gate};
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

static weir_status add(weir_registry *registry)
{
	sem_init(&gate, 0, 0);
	return weir_registry_add_operator(registry, &keep);
}

WEIR_PLUGIN(add);

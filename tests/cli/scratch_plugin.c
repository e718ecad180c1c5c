/* A plugin whose operator works in scratch memory: three ticks, which are replayed from the third on. */
#include <stdint.h>
#include <string.h>

#include "weir.h"

enum { BYTES = 1000 };

static int fill(const void *arguments)
{
	memset(*(void *const *)arguments, 1, BYTES);
	return 0;
}

static const weir_kernel kernel = {.size = sizeof kernel, .name = "fill", .host = fill};

static weir_status enqueue(weir_context *context, weir_stream *stream, void *arg)
{
	void *memory = NULL;
	weir_status status = weir_context_scratch(context, stream, BYTES, &memory);

	(void)arg;
	return status ? status : weir_stream_launch(stream, &kernel, &memory, sizeof memory);
}

static weir_status compute(weir_context *context, void *state)
{
	(void)state;
	if (weir_context_tick(context) == 3)
		weir_context_finish(context);
	return weir_context_replay(context, "fill", 4, enqueue, NULL);
}

static const weir_operator scratch = {
	.size = sizeof scratch, .name = "scratch", .help = "uses memory", .compute = compute};

static weir_status add(weir_registry *registry)
{
	return weir_registry_add_operator(registry, &scratch);
}

WEIR_PLUGIN(add);

/*
 * A plugin with an operator that works in scratch memory: three ticks, which are replayed from the third on;
 * and with one that has a `latest` port, which prints a line for each of its ticks.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
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

/* -1: nothing came there. */
static int64_t tag_of(weir_context *context, unsigned input)
{
	weir_message *message = weir_context_message(context, input, 0);

	return message ? (int64_t)weir_message_stamp(message).tag : -1;
}

static weir_status overlay_compute(weir_context *context, void *state)
{
	(void)state;
	printf("%" PRId64 " with %" PRId64 ", %" PRId64 "ms old\n", tag_of(context, 0), tag_of(context, 1),
	       (weir_context_age(context, 1) + 500000) / 1000000);
	return WEIR_OK;
}

static const weir_port overlay_inputs[] = {
	{.size = sizeof(weir_port), .name = "in", .help = "a message a tick"},
	{.size = sizeof(weir_port),
	 .name = "last",
	 .policy = WEIR_POLICY_LATEST,
	 .help = "what is there of another stream"},
	{.name = NULL},
};
static const weir_operator overlay = {.size = sizeof overlay,
				      .name = "overlay",
				      .help = "prints what each tick receives",
				      .flags = WEIR_OPERATOR_PRINTS,
				      .inputs = overlay_inputs,
				      .compute = overlay_compute};

static weir_status add(weir_registry *registry)
{
	weir_status status = weir_registry_add_operator(registry, &scratch);

	return status ? status : weir_registry_add_operator(registry, &overlay);
}

WEIR_PLUGIN(add);

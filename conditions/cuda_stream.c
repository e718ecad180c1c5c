#include "conditions/conditions.h"
#include "scheduler/view.h"

/*
 * Ready when the fences of all messages in the front are complete, for every named port: compute then finds
 * finished data and never waits for the GPU. All pending fences make one wait, so that one signal wakes the
 * entity. Every review asks for the pending fences anew; compute receives exactly the front that was reviewed
 * (C4).
 */
enum { PORTS = 64 };

struct cuda_stream {
	size_t count;
	unsigned ports[PORTS];
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "port",
		.type = WEIR_TYPE_INPUTS,
		.help = "the input port, or a list of ports, whose messages must be finished",
	},
	{.name = NULL},
};

static weir_status cuda_stream_start(void *state, const weir_values *values)
{
	struct cuda_stream *self = state;

	self->count = weir_values_count(values, "port");
	if (self->count > PORTS)
		return WEIR_E_UNSUPPORTED;
	for (size_t i = 0; i < self->count; i++)
		self->ports[i] = weir_values_at(values, "port", i);
	return WEIR_OK;
}

static void cuda_stream_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct cuda_stream *self = state;
	bool pending = false;

	for (size_t i = 0; i < self->count; i++)
		pending |= wr_view_wait_for_device(view, self->ports[i], verdict,
						   "work on the device is not finished");
	if (!pending)
		weir_verdict_ready(verdict);
}

const weir_condition wr_cuda_stream = {
	.size = sizeof(weir_condition),
	.name = "cuda_stream",
	.help = "the device work behind the messages of the next tick has finished, on all streams",
	.state_size = sizeof(struct cuda_stream),
	.parameters = parameters,
	.phase = WEIR_PHASE_CONTENT,
	.start = cuda_stream_start,
	.ask = cuda_stream_ask,
};

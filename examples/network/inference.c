/*
 * The condition of a `network`, which ticks for one of two reasons: frames and a free request, or a result.
 * The operator tells it which of them counts:
 *
 *     READY          no request is in flight: frames are waited for
 *     EVENT_WAITING  some are, and one is free: frames or the oldest request are waited for
 *     WAIT           all are in flight: the oldest request is waited for
 *     EVENT_DONE     the oldest request is done: a tick begins, with as many frames as there are
 *
 * A tick that receives frames thus finds a free request: in the last state it is the oldest one. While a
 * request is in flight, the answer promises an event from outside, which keeps the run open.
 */
#include "inference.h"

struct inference {
	unsigned port;
};

static const weir_parameter parameters[] = {
	{.size = sizeof(weir_parameter),
	 .name = "port",
	 .type = WEIR_TYPE_INPUT,
	 .help = "the input of the frames"},
	{.name = NULL},
};

static weir_status inference_start(void *state, const weir_values *values)
{
	struct inference *self = state;

	self->port = (unsigned)weir_values_int(values, "port");
	return WEIR_OK;
}

/* A request is free. At the end of the input a smaller batch is enough. */
static void ask_frames(const struct inference *self, weir_view *view, bool in_flight, weir_verdict *verdict)
{
	bool closed = weir_view_closed(view, self->port); /* before the count: a sender pushes, then closes */
	size_t count = weir_view_count(view, self->port);

	if (count >= weir_view_take(view, self->port) || (closed && count))
		weir_verdict_ready(verdict);
	else if (in_flight) {
		weir_verdict_wait(verdict, "too few frames; requests are in flight");
		weir_verdict_external(verdict);
	} else if (closed)
		weir_verdict_never(verdict, "no frames are left, and all senders are closed");
	else
		weir_verdict_wait(verdict, "too few frames");
}

static void inference_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	switch (weir_view_told(view)) {
	case WEIR_TOLD_NOTHING:
	case WEIR_TOLD_READY:
		ask_frames(state, view, false, verdict);
		return;
	case WEIR_TOLD_EVENT_WAITING:
		ask_frames(state, view, true, verdict);
		return;
	case WEIR_TOLD_EVENT_DONE:
		weir_verdict_ready(verdict);
		return;
	case WEIR_TOLD_WAIT:
		weir_verdict_wait(verdict, "all requests are in flight");
		weir_verdict_external(verdict);
		return;
	case WEIR_TOLD_NEVER:
		break;
	}
	weir_verdict_never(verdict, "told never");
}

const weir_condition inference = {
	.size = sizeof(weir_condition),
	.name = "inference",
	.help = "a 'network' has frames and a free request, or results to emit",
	.state_size = sizeof(struct inference),
	.parameters = parameters,
	.phase = WEIR_PHASE_GATHERING,
	.start = inference_start,
	.ask = inference_ask,
	.flags = WEIR_CONDITION_TIMELESS,
};

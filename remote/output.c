/*
 * remote_output, the condition of remote_send, which ticks for one of five reasons: a message that may be
 * sent, the end of the input, what the link brought (the watched descriptor), what is left to do
 * (remote_tell), and, while there is no receiver, a drain. While the operator holds the input, as there is no
 * credit, the last three count.
 */
#include "remote/remote.h"

struct output {
	unsigned port;
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "port",
		.type = WEIR_TYPE_INPUT,
		.help = "the input of what is sent",
	},
	{.name = NULL},
};

static weir_status output_start(void *state, const weir_values *values)
{
	struct output *self = state;

	self->port = (unsigned)weir_values_int(values, "port");
	return WEIR_OK;
}

static void output_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct output *self = state;
	size_t take = weir_view_take(view, self->port);   /* 0: held */
	bool closed = weir_view_closed(view, self->port); /* before the count: a sender pushes, then closes */
	bool has = weir_view_told(view) == WEIR_TOLD_READY ||
		   (weir_view_told(view) == WEIR_TOLD_EVENT_WAITING && weir_view_stopping(view)) ||
		   (take && (closed || weir_view_count(view, self->port) >= take));
	/* To look at the descriptor is a call of the system: not for each message. */
	weir_watched watched = has ? WEIR_WATCHED_NOTHING : weir_view_watched(view);

	weir_verdict_set_cause(verdict, take ? WEIR_CAUSE_MESSAGES : WEIR_CAUSE_DESCRIPTOR, (int)self->port,
			       0);
	if (has || watched == WEIR_WATCHED_READY) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict,
			  take ? "too few messages" : "the receiver has no room yet, or is not there");
	if (watched == WEIR_WATCHED_WAITING)
		weir_verdict_watched(verdict);
}

const weir_condition remote_output_condition = {
	.size = sizeof(weir_condition),
	.name = "remote_output",
	.help = "a 'remote_send' has a message and room for it at the receiver, or its link has news",
	.state_size = sizeof(struct output),
	.parameters = parameters,
	.phase = WEIR_PHASE_GATHERING,
	.start = output_start,
	.ask = output_ask,
	.flags = WEIR_CONDITION_TIMELESS,
};

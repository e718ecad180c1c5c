/*
 * remote_input, the condition of remote_receive, which ticks for one of three reasons: what the link brought
 * (the watched descriptor), also while its graph is full; room for a message that waits to be emitted, memory
 * for more credits, and what is left to do, which the operator tells (remote_tell); and the end of all
 * receivers. Behind that it ticks for its link as long as the run goes on (EVENT_DONE).
 */
#include "remote/remote.h"

struct input {
	unsigned port;
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "port",
		.type = WEIR_TYPE_OUTPUT,
		.help = "the output of what is received",
	},
	{.name = NULL},
};

static weir_status input_start(void *state, const weir_values *values)
{
	struct input *self = state;

	self->port = (unsigned)weir_values_int(values, "port");
	return WEIR_OK;
}

static void input_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct input *self = state;
	weir_told told = weir_view_told(view);
	bool emits = told == WEIR_TOLD_EVENT_WAITING;
	bool has = told == WEIR_TOLD_READY || (emits && weir_view_room(view, self->port)) ||
		   weir_view_reserved(view);
	bool full = told == WEIR_TOLD_EVENT_DONE;
	bool over = !full && weir_view_receivers_done(view, self->port); /* the sender is told */
	/* To look at the descriptor is a call of the system: not for each message. */
	weir_watched watched = has || over ? WEIR_WATCHED_NOTHING : weir_view_watched(view);

	if (has || over || watched == WEIR_WATCHED_READY) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, emits  ? "no room behind the output"
				   : full ? "all receivers are done"
					  : "nothing comes from the sender");
	weir_verdict_set_cause(verdict, emits ? WEIR_CAUSE_ROOM : WEIR_CAUSE_DESCRIPTOR,
			       emits ? (int)self->port : -1, emits);
	if (watched == WEIR_WATCHED_WAITING && full)
		weir_verdict_watched_meanwhile(verdict);
	else if (watched == WEIR_WATCHED_WAITING)
		weir_verdict_watched(verdict);
}

const weir_condition remote_input_condition = {
	.size = sizeof(weir_condition),
	.name = "remote_input",
	.help = "a 'remote_receive' has a message and room for it, its link has news, or all its receivers "
		"are done",
	.state_size = sizeof(struct input),
	.parameters = parameters,
	.phase = WEIR_PHASE_GATHERING,
	.start = input_start,
	.ask = input_ask,
	.flags = WEIR_CONDITION_TIMELESS,
};

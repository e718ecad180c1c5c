/*
 * gst_output, the condition of gst_write, which ticks for one of three reasons: a message for which there is
 * room, the end of the input, and what GStreamer has said. The operator tells it which of them count:
 *
 *     READY          there is room: a message, or the end, is waited for
 *     WAIT           there is none, or the end was sent: GStreamer is waited for, or the watched descriptor,
 *                    which is the timer of the end
 *     EVENT_DONE     GStreamer has failed or ended: a tick begins, whatever the input holds
 */
#include "gst.h"

struct output {
	unsigned port;
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "port",
		.type = WEIR_TYPE_INPUT,
		.help = "the input of the frames",
	},
	{.name = NULL},
};

static weir_status output_start(void *state, const weir_values *values)
{
	struct output *self = state;

	self->port = (unsigned)weir_values_int(values, "port");
	return WEIR_OK;
}

/* There is room. */
static void ask_input(const struct output *self, weir_view *view, weir_verdict *verdict)
{
	bool closed = weir_view_closed(view, self->port); /* before the count: a sender pushes, then closes */

	weir_verdict_set_cause(verdict, WEIR_CAUSE_MESSAGES, (int)self->port, 0);
	if (weir_view_count(view, self->port) >= weir_view_take(view, self->port) || closed)
		weir_verdict_ready(verdict);
	else
		weir_verdict_wait(verdict, "too few frames");
}

static void output_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	switch (weir_view_told(view)) {
	case WEIR_TOLD_NOTHING:
	case WEIR_TOLD_READY:
		ask_input(state, view, verdict);
		return;
	case WEIR_TOLD_EVENT_DONE:
		weir_verdict_ready(verdict);
		return;
	case WEIR_TOLD_WAIT:
	case WEIR_TOLD_EVENT_WAITING:
		if (weir_view_watched(view) == WEIR_WATCHED_READY) {
			weir_verdict_ready(verdict);
			return;
		}
		weir_verdict_wait(verdict, "GStreamer has not taken the frames yet");
		weir_verdict_external(verdict);
		if (weir_view_watched(view) == WEIR_WATCHED_WAITING)
			weir_verdict_watched(verdict);
		return;
	case WEIR_TOLD_NEVER:
		break;
	}
	weir_verdict_never(verdict, "told never");
}

const weir_condition gst_output_condition = {
	.size = sizeof(weir_condition),
	.name = "gst_output",
	.help = "a 'gst_write' has frames and room for them, or its pipeline has ended",
	.state_size = sizeof(struct output),
	.parameters = parameters,
	.phase = WEIR_PHASE_GATHERING,
	.start = output_start,
	.ask = output_ask,
	.flags = WEIR_CONDITION_TIMELESS,
};

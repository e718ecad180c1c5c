#include "conditions/conditions.h"
#include "scheduler/view.h"

struct message_available {
	unsigned port;
	size_t min_size; /* 0: the port's take */
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "port",
		.type = WEIR_TYPE_INPUT,
		.help = "the input port",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "min_size",
		.type = WEIR_TYPE_INT,
		.fallback = "0",
		.max = UINT32_MAX,
		.help = "messages that must be queued (any-size port: in every queue); 0: as many as a tick "
			"takes",
	},
	{.name = NULL},
};

static weir_status message_available_start(void *state, const weir_values *values)
{
	struct message_available *self = state;

	self->port = (unsigned)weir_values_int(values, "port");
	self->min_size = (size_t)weir_values_int(values, "min_size");
	return WEIR_OK;
}

/* An unconnected port needs no messages. */
static void message_available_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct message_available *self = state;
	enum wr_answer answer = wr_view_messages(view, self->port, self->min_size);

	if (answer == WR_READY) {
		weir_verdict_ready(verdict);
		return;
	}
	if (answer == WR_NEVER)
		weir_verdict_never(verdict, wr_view_any_size(view, self->port)
						    ? "too few messages, and a sender is closed"
						    : "too few messages, and all senders are closed");
	else
		weir_verdict_wait(verdict, "too few messages");
	weir_verdict_set_cause(verdict, WEIR_CAUSE_MESSAGES, (int)self->port, self->min_size);
}

const weir_condition wr_message_available = {
	.size = sizeof(weir_condition),
	.name = "message_available",
	.help = "enough messages wait at the input; the default of each input",
	.state_size = sizeof(struct message_available),
	.parameters = parameters,
	.phase = WEIR_PHASE_GATHERING,
	.start = message_available_start,
	.ask = message_available_ask,
};

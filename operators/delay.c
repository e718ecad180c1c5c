#include "operators/operators.h"
#include "operators/tensor.h"

struct delay {
	int64_t duration;
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "duration",
		.type = WEIR_TYPE_DURATION,
		.fallback = "\"10ms\"",
		.help = "time that each message keeps its worker busy",
	},
	{.name = NULL},
};

static const weir_port inputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "in",
		.help = "anything",
	},
	{.name = NULL},
};

static const weir_port outputs[] = {
	{
		.size = sizeof(weir_port),
		.name = "out",
		.flags = WEIR_PORT_OPTIONAL,
		.help = "the same message, later",
	},
	{.name = NULL},
};

static weir_status delay_start(weir_context *context, void *state, const weir_values *values)
{
	struct delay *self = state;

	(void)context;
	self->duration = weir_values_int(values, "duration");
	return WEIR_OK;
}

static weir_status delay_pass_on(weir_context *context, void *state, weir_message *message)
{
	const struct delay *self = state;

	weir_sleep(self->duration);
	return weir_context_emit(context, 0, weir_message_ref(message));
}

static weir_status delay_compute(weir_context *context, void *state)
{
	return wr_messages_each(context, state, delay_pass_on);
}

const weir_operator wr_delay = {
	.size = sizeof(weir_operator),
	.name = "delay",
	.help = "simulates host work: keeps its worker busy for a time, then passes the message on",
	.state_size = sizeof(struct delay),
	.parameters = parameters,
	.inputs = inputs,
	.outputs = outputs,
	.start = delay_start,
	.compute = delay_compute,
};

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
		.like = "in",
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

static weir_status delay_compute(weir_context *context, void *state)
{
	const struct delay *self = state;
	size_t count = weir_context_count(context, 0);
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < count && !status; i++) {
		weir_sleep(self->duration);
		status = weir_context_forward(context, 0, i, 0);
	}
	return status;
}

const weir_operator wr_delay = {
	.size = sizeof(weir_operator),
	.name = "delay",
	.help = "simulates host work: keeps its worker busy for a time, then passes the message on",
	.flags = WEIR_OPERATOR_INSTANCES,
	.state_size = sizeof(struct delay),
	.parameters = parameters,
	.inputs = inputs,
	.outputs = outputs,
	.start = delay_start,
	.compute = delay_compute,
};

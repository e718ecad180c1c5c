#include "conditions/conditions.h"
#include "scheduler/view.h"

struct downstream {
	unsigned port;
	size_t min_size; /* 0: as many as a tick may emit */
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "port",
		.type = WEIR_TYPE_OUTPUT,
		.help = "the output port",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "min_size",
		.type = WEIR_TYPE_INT,
		.fallback = "0",
		.max = UINT32_MAX,
		.help = "room needed, in messages, in every queue that blocks; 0: as many as a tick may emit",
	},
	{.name = NULL},
};

static weir_status downstream_start(void *state, const weir_values *values)
{
	struct downstream *self = state;

	self->port = (unsigned)weir_values_int(values, "port");
	self->min_size = (size_t)weir_values_int(values, "min_size");
	return WEIR_OK;
}

/* The room stays until the tick: no other entity pushes into these queues (S3). */
static void downstream_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct downstream *self = state;

	if (wr_view_has_room(view, self->port, self->min_size)) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "no room behind the output");
	weir_verdict_set_cause(verdict, WEIR_CAUSE_ROOM, (int)self->port, self->min_size);
}

const weir_condition wr_downstream_message_affordable = {
	.size = sizeof(weir_condition),
	.name = "downstream_message_affordable",
	.help = "every receiver of the output has room; the default of each output",
	.state_size = sizeof(struct downstream),
	.parameters = parameters,
	.phase = WEIR_PHASE_GATHERING,
	.start = downstream_start,
	.ask = downstream_ask,
};

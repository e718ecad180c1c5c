#include "conditions/conditions.h"

struct count {
	int64_t left; /* negative: unlimited */
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "count",
		.type = WEIR_TYPE_INT,
		.fallback = "1",
		.help = "number of ticks; negative: unlimited",
	},
	{.name = NULL},
};

static weir_status count_start(void *state, const weir_values *values)
{
	struct count *self = state;

	self->left = weir_values_int(values, "count");
	return WEIR_OK;
}

static void count_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct count *self = state;

	(void)view;
	if (self->left) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_never(verdict, "all its ticks are done");
	weir_verdict_set_cause(verdict, WEIR_CAUSE_DONE, -1, 0);
}

static void count_ticked(void *state, weir_view *view)
{
	struct count *self = state;

	(void)view;
	if (self->left > 0)
		self->left--;
}

const weir_condition wr_count = {
	.size = sizeof(weir_condition),
	.name = "count",
	.help = "that many ticks, then never again",
	.state_size = sizeof(struct count),
	.parameters = parameters,
	.phase = WEIR_PHASE_GATHERING,
	.start = count_start,
	.ask = count_ask,
	.ticked = count_ticked,
	.flags = WEIR_CONDITION_TIMELESS,
};

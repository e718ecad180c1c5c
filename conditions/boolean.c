#include "conditions/conditions.h"

struct boolean {
	bool enabled; /* until it is told something */
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "enable_tick",
		.type = WEIR_TYPE_BOOL,
		.fallback = "true",
		.help = "whether the entity may tick until weir_entity_tell says otherwise",
	},
	{.name = NULL},
};

static weir_status boolean_start(void *state, const weir_values *values)
{
	struct boolean *self = state;

	self->enabled = weir_values_bool(values, "enable_tick");
	return WEIR_OK;
}

/* The last call counts. Disabled is a plain wait: it does not keep the run from ending, and can be undone. */
static bool is_enabled(const struct boolean *self, weir_told told)
{
	switch (told) {
	case WEIR_TOLD_NOTHING:
		return self->enabled;
	case WEIR_TOLD_READY:
	case WEIR_TOLD_EVENT_DONE:
		return true;
	case WEIR_TOLD_WAIT:
	case WEIR_TOLD_EVENT_WAITING:
	case WEIR_TOLD_NEVER:
		break;
	}
	return false;
}

static void boolean_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	weir_told told = weir_view_told(view);

	weir_verdict_set_cause(verdict, WEIR_CAUSE_TOLD, -1, 0);
	if (told == WEIR_TOLD_NEVER)
		weir_verdict_never(verdict, "told never");
	else if (is_enabled(state, told))
		weir_verdict_ready(verdict);
	else
		weir_verdict_wait(verdict, "disabled");
}

const weir_condition wr_boolean = {
	.size = sizeof(weir_condition),
	.name = "boolean",
	.help = "ready while enabled; set from outside (weir_entity_tell), any number of times",
	.state_size = sizeof(struct boolean),
	.parameters = parameters,
	.phase = WEIR_PHASE_GATHERING,
	.start = boolean_start,
	.ask = boolean_ask,
};

#include "conditions/conditions.h"
#include "scheduler/view.h"

/*
 * Ready when the device has reached a fence that the program told (weir_entity_tell_fence). By default each
 * fence allows one tick, as a notification does: without that, an entity without inputs would tick without
 * end after the first one. With "once": false the last fence opens the entity until another one is told.
 */
struct fence {
	bool once;
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "once",
		.type = WEIR_TYPE_BOOL,
		.fallback = "true",
		.help = "one tick for each told fence; false: any number of ticks until another is told",
	},
	{.name = NULL},
};

static weir_status fence_start(void *state, const weir_values *values)
{
	struct fence *self = state;

	self->once = weir_values_bool(values, "once");
	return WEIR_OK;
}

/*
 * NEVER comes after the fences that were told: the last result is not lost. Without a fence it waits for the
 * program, which keeps the run open: another tell is promised until it says NEVER.
 */
static void fence_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct fence *self = state;
	bool never = weir_view_told(view) == WEIR_TOLD_NEVER; /* before the fence: it is told after that */
	const weir_fence *fence = self->once ? wr_view_fence_next(view) : wr_view_fence_told(view);

	bool device = fence && !wr_view_is_promise(*fence);

	weir_verdict_set_cause(verdict, device ? WEIR_CAUSE_DEVICE : WEIR_CAUSE_TOLD, -1, 0);
	if (never && (!fence || !self->once)) {
		weir_verdict_never(verdict, "told never");
	} else if (!fence) {
		weir_verdict_wait(verdict, "no fence was told");
		weir_verdict_external(verdict);
	} else if (weir_view_fence_complete(view, *fence)) {
		wr_view_fence_done(view, *fence);
		weir_verdict_ready(verdict);
	} else {
		weir_verdict_wait(verdict, device ? "the work before the told fence is not finished"
						  : "waits for a fence that the program completes");
		weir_verdict_fence(verdict, *fence);
	}
}

static void fence_ticked(void *state, weir_view *view)
{
	const struct fence *self = state;

	if (self->once)
		wr_view_fence_use(view);
}

const weir_condition wr_fence = {
	.size = sizeof(weir_condition),
	.name = "fence",
	.help = "the device has reached a fence that the program told; one tick for each",
	.state_size = sizeof(struct fence),
	.parameters = parameters,
	.phase = WEIR_PHASE_GATHERING,
	.start = fence_start,
	.ask = fence_ask,
	.ticked = fence_ticked,
	.flags = WEIR_CONDITION_TIMELESS,
};

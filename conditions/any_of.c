#include "conditions/conditions.h"
#include "scheduler/view.h"

/* Its conditions are asked by the scheduler, which waits for the first of them (C11). */
static void any_of_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	wr_view_ask_any_of(view, verdict);
}

static void any_of_ticked(void *state, weir_view *view)
{
	(void)state;
	wr_view_any_of_ticked(view);
}

const weir_condition wr_any_of = {
	.size = sizeof(weir_condition),
	.name = "any_of",
	.help = "one of its \"conditions\", or several of them, hold",
	.phase = WEIR_PHASE_GATHERING,
	.ask = any_of_ask,
	.ticked = any_of_ticked,
	.flags = WEIR_CONDITION_TIMELESS,
};

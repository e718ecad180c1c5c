#include "conditions/conditions.h"
#include "scheduler/view.h"

/* It stands inside any_of alone, which asks its conditions. */
static void all_of_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state, (void)view;
	weir_verdict_ready(verdict);
}

const weir_condition wr_all_of = {
	.size = sizeof(weir_condition),
	.name = "all_of",
	.help = "inside any_of: all of its \"conditions\" hold",
	.phase = WEIR_PHASE_GATHERING,
	.ask = all_of_ask,
	.flags = WEIR_CONDITION_TIMELESS,
};

#include "conditions/conditions.h"

/*
 * Set from outside, by any thread (C6). With WAIT no further call is promised, so the run may end meanwhile;
 * EVENT_WAITING promises a further call, so it keeps the run from ending.
 */
static void asynchronous_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	weir_verdict_set_cause(verdict, WEIR_CAUSE_TOLD, -1, 0);
	switch (weir_view_told(view)) {
	case WEIR_TOLD_NOTHING:
	case WEIR_TOLD_READY:
	case WEIR_TOLD_EVENT_DONE:
		weir_verdict_ready(verdict);
		return;
	case WEIR_TOLD_WAIT:
		weir_verdict_wait(verdict, "told to wait");
		return;
	case WEIR_TOLD_EVENT_WAITING:
		weir_verdict_wait(verdict, "told that an event is outstanding");
		weir_verdict_external(verdict);
		return;
	case WEIR_TOLD_NEVER:
		break;
	}
	weir_verdict_never(verdict, "told never");
}

const weir_condition wr_asynchronous = {
	.size = sizeof(weir_condition),
	.name = "asynchronous",
	.help = "state set from outside; EVENT_WAITING keeps the run from ending, WAIT does not",
	.phase = WEIR_PHASE_GATHERING,
	.ask = asynchronous_ask,
};

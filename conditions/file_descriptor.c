#include "conditions/conditions.h"

/*
 * Ready while the descriptor that the program, or the operator itself, lets it wait for (weir_entity_watch)
 * can be read or written. Without a descriptor it waits for the program, which keeps the run open: another
 * watch is promised until the condition is told NEVER.
 */
static void file_descriptor_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	weir_verdict_set_cause(verdict, WEIR_CAUSE_DESCRIPTOR, -1, 0);
	if (weir_view_told(view) == WEIR_TOLD_NEVER) {
		weir_verdict_never(verdict, "told never");
		return;
	}
	switch (weir_view_watched(view)) {
	case WEIR_WATCHED_READY:
		weir_verdict_ready(verdict);
		return;
	case WEIR_WATCHED_WAITING:
		weir_verdict_wait(verdict, "its descriptor is not ready");
		weir_verdict_watched(verdict);
		return;
	case WEIR_WATCHED_NOTHING:
		break;
	}
	weir_verdict_wait(verdict, "no descriptor is watched");
	weir_verdict_external(verdict);
}

const weir_condition wr_file_descriptor = {
	.size = sizeof(weir_condition),
	.name = "file_descriptor",
	.help = "a descriptor can be read or written: a pipe, a socket, a timerfd, a device",
	.phase = WEIR_PHASE_GATHERING,
	.ask = file_descriptor_ask,
};

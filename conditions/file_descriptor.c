#include "conditions/conditions.h"
#include "scheduler/view.h"

/*
 * Ready while the descriptor that the program, or the operator itself, lets it wait for (weir_entity_watch)
 * can be read or written. Without a descriptor it waits for the program, which keeps the run open: another
 * watch is promised until the condition is told NEVER.
 */
struct file_descriptor {
	int64_t warn_after;
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "warn_after",
		.type = WEIR_TYPE_DURATION,
		.fallback = "\"0s\"",
		.min = 0,
		.max = INT64_MAX,
		.help = "a wait that is as long is logged, and another line says when it goes on; 0s: none",
	},
	{.name = NULL},
};

static weir_status file_descriptor_start(void *state, const weir_values *values)
{
	struct file_descriptor *self = state;

	self->warn_after = weir_values_int(values, "warn_after");
	return WEIR_OK;
}

static void file_descriptor_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct file_descriptor *self = state;

	weir_verdict_set_cause(verdict, WEIR_CAUSE_DESCRIPTOR, -1, 0);
	if (weir_view_told(view) == WEIR_TOLD_NEVER) {
		weir_verdict_never(verdict, "told never");
		return;
	}
	switch (wr_view_watched(view, self->warn_after)) {
	case WEIR_WATCHED_READY:
		weir_verdict_ready(verdict);
		return;
	case WEIR_WATCHED_WAITING:
		weir_verdict_wait(verdict, NULL); /* texts say which descriptor */
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
	.state_size = sizeof(struct file_descriptor),
	.parameters = parameters,
	.phase = WEIR_PHASE_GATHERING,
	.start = file_descriptor_start,
	.ask = file_descriptor_ask,
};

#include "conditions/conditions.h"
#include "scheduler/view.h"

/*
 * A batch that does not wait for ever: `max_batch` messages wait at the input, or the oldest one was pushed
 * `max_delay` ago. What is left when the senders are closed is received, too.
 */
struct expiring {
	unsigned port;
	size_t max_batch;
	int64_t max_delay;
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "port",
		.type = WEIR_TYPE_INPUT,
		.help = "the input port",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "max_batch",
		.type = WEIR_TYPE_INT,
		.min = 1,
		.max = UINT32_MAX,
		.help = "so many messages are enough at once",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "max_delay",
		.type = WEIR_TYPE_DURATION,
		.max = INT64_MAX,
		.help = "fewer are enough when the oldest one was pushed so long ago",
	},
	{.name = NULL},
};

static weir_status expiring_start(void *state, const weir_values *values)
{
	struct expiring *self = state;

	self->port = (unsigned)weir_values_int(values, "port");
	self->max_batch = (size_t)weir_values_int(values, "max_batch");
	self->max_delay = weir_values_int(values, "max_delay");
	return WEIR_OK;
}

static void expiring_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct expiring *self = state;
	bool closed = weir_view_closed(view, self->port); /* before the count (S5) */
	size_t count = weir_view_count(view, self->port);
	int64_t oldest = count ? wr_view_oldest_at(view, self->port) : INT64_MAX, at = INT64_MAX;

	if (!weir_view_take(view, self->port) || !weir_view_connected(view, self->port) ||
	    count >= self->max_batch || (closed && count)) {
		weir_verdict_ready(verdict);
		return;
	}
	if (oldest < INT64_MAX - self->max_delay)
		at = oldest + self->max_delay;
	if (closed) {
		weir_verdict_never(verdict, "no messages, and all senders are closed");
	} else if (count && weir_view_now(view) >= at) {
		weir_verdict_ready(verdict);
		return;
	} else {
		weir_verdict_wait(verdict, "too few messages");
		if (at < INT64_MAX)
			weir_verdict_until(verdict, at);
	}
	weir_verdict_set_cause(verdict, WEIR_CAUSE_MESSAGES, (int)self->port, self->max_batch);
}

const weir_condition wr_expiring_message_available = {
	.size = sizeof(weir_condition),
	.name = "expiring_message_available",
	.help = "a batch of messages waits at the input, or fewer have waited for long enough",
	.state_size = sizeof(struct expiring),
	.parameters = parameters,
	.phase = WEIR_PHASE_GATHERING,
	.start = expiring_start,
	.ask = expiring_ask,
};

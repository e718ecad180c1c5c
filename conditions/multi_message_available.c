#include "conditions/conditions.h"

/*
 * Enough messages wait at several inputs: `min_sum` at all of them together, or at each as many as
 * `min_sizes` says. With a timeout the entity also ticks with less, but not with nothing, when so long has
 * passed since its last tick began. What is left at the end is not lost: ticks receive it when all senders
 * are closed. If one of the inputs alone cannot come to its size any more, one or two more ticks receive what
 * is there.
 */
enum { PORTS = 64 };

struct multi {
	size_t count; /* of the ports */
	unsigned ports[PORTS];
	size_t sizes[PORTS], sum; /* sum 0: each its own size */
	int64_t timeout, last;    /* last: when the last tick began */
	bool ticked;
	unsigned over_ticks; /* after which it could not be met any more: the second one was due to that */
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "ports",
		.type = WEIR_TYPE_INPUTS,
		.help = "the input ports",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "min_sum",
		.type = WEIR_TYPE_INT,
		.fallback = "0",
		.max = UINT32_MAX,
		.help = "messages that must be queued at all ports together; 0: min_sizes says",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "min_sizes",
		.type = WEIR_TYPE_NUMBERS,
		.fallback = "[]",
		.max = PORTS,
		.help = "messages that must be queued at each of the ports, in their order; empty: min_sum "
			"says",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "timeout",
		.type = WEIR_TYPE_DURATION,
		.fallback = "0",
		.max = INT64_MAX,
		.help = "ticks with less, but not with nothing, when so long has passed since the last tick "
			"began; 0: never",
	},
	{.name = NULL},
};

static weir_status multi_start(void *state, const weir_values *values)
{
	struct multi *self = state;

	self->count = weir_values_count(values, "ports");
	self->sum = (size_t)weir_values_int(values, "min_sum");
	self->timeout = weir_values_int(values, "timeout");
	if (self->count > PORTS)
		return WEIR_E_UNSUPPORTED;
	for (size_t i = 0; i < self->count; i++) {
		self->ports[i] = weir_values_at(values, "ports", i);
		self->sizes[i] = (size_t)weir_values_number_at(values, "min_sizes", i);
	}
	return WEIR_OK;
}

struct seen {
	size_t sum;             /* messages at all ports */
	bool met, over, closed; /* over: it cannot be met any more; closed: nothing will come */
	size_t lacks;           /* the port that lacks messages, among the ports */
	size_t needed;          /* and how many it must have */
};

/* Reads `closed` of a port before its count (S5). */
static struct seen look(const struct multi *self, weir_view *view)
{
	struct seen seen = {.met = true, .closed = true};
	size_t open = 0, asked = 0;

	for (size_t i = 0; i < self->count; i++) {
		bool closed = weir_view_closed(view, self->ports[i]);
		size_t count = weir_view_count(view, self->ports[i]);

		if (!weir_view_connected(view, self->ports[i]) || !weir_view_take(view, self->ports[i]))
			continue; /* held: a tick needs none there */
		asked++;
		seen.sum += count;
		seen.closed &= closed;
		if (self->sum) {
			open = closed ? open : i;
		} else if (count < self->sizes[i]) {
			seen.over |= closed;
			open = seen.met ? i : open;
			seen.met = false;
		}
	}
	seen.lacks = open;
	seen.needed = self->sizes[open];
	if (!asked)
		return (struct seen){.met = true};
	if (self->sum) {
		seen.met = seen.sum >= self->sum;
		seen.over = seen.closed && !seen.met;
		seen.needed = weir_view_count(view, self->ports[open]) + self->sum - seen.sum;
	}
	return seen;
}

static void multi_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct multi *self = state;
	struct seen seen = look(self, view);
	int64_t last = self->ticked ? self->last : weir_view_started(view);
	int64_t at = self->timeout && last < INT64_MAX - self->timeout ? last + self->timeout : INT64_MAX;

	if (seen.met || (seen.over && seen.sum && (seen.closed || self->over_ticks < 2))) {
		weir_verdict_ready(verdict);
		return;
	}
	if (seen.over) {
		weir_verdict_never(verdict, "too few messages, and senders are closed");
	} else if (self->timeout && seen.sum && weir_view_now(view) >= at) {
		weir_verdict_ready(verdict);
		return;
	} else {
		weir_verdict_wait(verdict, "too few messages");
		if (self->timeout && seen.sum)
			weir_verdict_until(verdict, at);
	}
	weir_verdict_set_cause(verdict, WEIR_CAUSE_MESSAGES, (int)self->ports[seen.lacks], seen.needed);
}

static void multi_ticked(void *state, weir_view *view)
{
	struct multi *self = state;

	self->last = weir_view_began(view);
	self->ticked = true;
	self->over_ticks += look(self, view).over;
}

const weir_condition wr_multi_message_available = {
	.size = sizeof(weir_condition),
	.name = "multi_message_available",
	.help = "enough messages wait at several inputs together, or at each of them; with a timeout, also "
		"less",
	.state_size = sizeof(struct multi),
	.parameters = parameters,
	.phase = WEIR_PHASE_GATHERING,
	.start = multi_start,
	.ask = multi_ask,
	.ticked = multi_ticked,
};

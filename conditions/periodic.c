#include <string.h>

#include "conditions/conditions.h"
#include "scheduler/view.h"

/*
 * One tick per period. The due times form a grid that starts with the first tick, which is due at once, or at
 * `offset` after the run's start. Times are from begin to begin, so the length of compute does not matter.
 * After a tick that was due at `at` and began at `began`, the next one is due (for period 100):
 *   catch_up_missed_ticks      at + period, none is lost: due at 100, began at 250 -> 200; at 255 -> 300
 *   min_time_between_ticks     began + period: 101 -> 201, 350 -> 450
 *   no_catch_up_missed_ticks   the first grid time after began: 250 -> 300, 305 -> 400; those between are
 * lost It is ready when now >= at.
 */
enum policy { CATCH_UP, MIN_TIME, NO_CATCH_UP };
static const char *const policies[] = {
	"catch_up_missed_ticks",
	"min_time_between_ticks",
	"no_catch_up_missed_ticks",
};

struct periodic {
	int64_t period, offset;
	int64_t at; /* when the next tick is due; valid once begun */
	enum policy policy;
	bool begun; /* the first tick has been done */
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "period",
		.type = WEIR_TYPE_DURATION,
		.min = 1,
		.max = INT64_MAX,
		.help = "time from tick to tick: \"10ms\" or \"60Hz\"",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "policy",
		.type = WEIR_TYPE_CHOICE,
		.fallback = "\"catch_up_missed_ticks\"",
		.choices = "catch_up_missed_ticks|min_time_between_ticks|no_catch_up_missed_ticks",
		.help = "what happens to ticks that came too late",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "offset",
		.type = WEIR_TYPE_DURATION,
		.fallback = "-1",
		.min = -1,
		.max = INT64_MAX,
		.help = "when the first tick is due, after the run's start; -1: at once",
	},
	{.name = NULL},
};

static weir_status periodic_start(void *state, const weir_values *values)
{
	struct periodic *self = state;
	const char *policy = weir_values_string(values, "policy");

	self->period = weir_values_int(values, "period");
	self->offset = weir_values_int(values, "offset");
	while (self->policy < NO_CATCH_UP && strcmp(policy, policies[self->policy]))
		self->policy++;
	return WEIR_OK;
}

/* Saturates: a tick beyond the largest time never comes due (F37). */
static int64_t time_after(int64_t at, int64_t period)
{
	return at > INT64_MAX - period ? INT64_MAX : at + period;
}

static int64_t first_due(const struct periodic *self, weir_view *view, int64_t now)
{
	return self->offset < 0 ? now : time_after(weir_view_started(view), self->offset);
}

static void periodic_ask(const void *state, weir_view *view, weir_verdict *verdict)
{
	const struct periodic *self = state;
	int64_t now = weir_view_now(view), at = self->begun ? self->at : first_due(self, view, now);

	if (now >= at) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, self->begun ? "the period is not over" : "the first tick is not due yet");
	weir_verdict_until(verdict, at);
	weir_verdict_set_cause(verdict, WEIR_CAUSE_TIME, -1, 0);
}

/* The number of ticks that are lost: those that came due after `at` until this one began. */
static uint64_t missed_ticks(const struct periodic *self, int64_t began)
{
	return self->policy == NO_CATCH_UP ? (uint64_t)((began - self->at) / self->period) : 0;
}

static int64_t next_due(const struct periodic *self, int64_t began)
{
	switch (self->policy) {
	case CATCH_UP:
		return time_after(self->at, self->period);
	case MIN_TIME:
		return time_after(began, self->period);
	case NO_CATCH_UP:
		break;
	}
	return time_after(began - (began - self->at) % self->period, self->period);
}

static void periodic_ticked(void *state, weir_view *view)
{
	struct periodic *self = state;
	int64_t began = weir_view_began(view);
	uint64_t lost;

	if (!self->begun)
		self->at = first_due(self, view, began);
	self->begun = true;
	lost = missed_ticks(self, began);
	if (lost)
		wr_view_add_lost(view, lost);
	self->at = next_due(self, began);
}

const weir_condition wr_periodic = {
	.size = sizeof(weir_condition),
	.name = "periodic",
	.help = "one tick per period, on a grid",
	.state_size = sizeof(struct periodic),
	.parameters = parameters,
	.phase = WEIR_PHASE_GATHERING,
	.start = periodic_start,
	.ask = periodic_ask,
	.ticked = periodic_ticked,
};

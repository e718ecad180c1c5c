#include <string.h>

#include "conditions/conditions.h"

/*
 * One tick per period; the first one at once, and it sets the beat. After a tick at `now` that was due at
 * `at` the next is due, with period 100:
 *   catch_up_missed_ticks      at + period, none is lost: due at 100, tick at 250 -> 200; tick at 255 -> 300
 *   min_time_between_ticks     now + period: 101 -> 201, 350 -> 450
 *   no_catch_up_missed_ticks   the first beat after now: 250 -> 300, 305 -> 400
 * It is ready when now >= at.
 */
enum policy { CATCH_UP, MIN_TIME, NO_CATCH_UP };
static const char *const policies[] = {
	"catch_up_missed_ticks",
	"min_time_between_ticks",
	"no_catch_up_missed_ticks",
};

struct periodic {
	int64_t period, at;
	enum policy policy;
	bool begun; /* the first tick was done */
};

static const weir_parameter parameters[] = {
	{
		.size = sizeof(weir_parameter),
		.name = "period",
		.type = WEIR_DURATION,
		.min = 1,
		.max = INT64_MAX,
		.help = "time from tick to tick: ns, \"10ms\" or \"60Hz\"",
	},
	{
		.size = sizeof(weir_parameter),
		.name = "policy",
		.type = WEIR_CHOICE,
		.fallback = "\"catch_up_missed_ticks\"",
		.choices = "catch_up_missed_ticks|min_time_between_ticks|no_catch_up_missed_ticks",
		.help = "what happens to ticks that came too late",
	},
	{.name = NULL},
};

static weir_status start(void *state, const weir_values *values)
{
	struct periodic *self = state;
	const char *policy = weir_values_string(values, "policy");

	self->period = weir_values_int(values, "period");
	while (self->policy < NO_CATCH_UP && strcmp(policy, policies[self->policy]))
		self->policy++;
	return WEIR_OK;
}

static void ask(const void *state, const weir_view *view, weir_verdict *verdict)
{
	const struct periodic *self = state;

	if (!self->begun || weir_view_now(view) >= self->at) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "the period is not over");
	weir_verdict_until(verdict, self->at);
}

/* Saturates: a beat beyond the end of time never comes (F37). */
static int64_t later(int64_t at, int64_t period)
{
	return at > INT64_MAX - period ? INT64_MAX : at + period;
}

static int64_t next(const struct periodic *self, int64_t now)
{
	switch (self->policy) {
	case CATCH_UP:
		return later(self->at, self->period);
	case MIN_TIME:
		return later(now, self->period);
	case NO_CATCH_UP:
		break;
	}
	return later(now - (now - self->at) % self->period, self->period);
}

static void ticked(void *state, const weir_view *view)
{
	struct periodic *self = state;
	int64_t now = weir_view_now(view);

	if (!self->begun)
		self->at = now; /* the beat begins here */
	self->begun = true;
	self->at = next(self, now);
}

const weir_condition wr_periodic = {
	.size = sizeof(weir_condition),
	.name = "periodic",
	.help = "one tick per period, the first one at once",
	.state_size = sizeof(struct periodic),
	.parameters = parameters,
	.phase = WEIR_GATHERING,
	.start = start,
	.ask = ask,
	.ticked = ticked,
};

#include "scheduler/world.h"

struct visit {
	weir_scheduler *scheduler;
	void (*fn)(void *arg);
	void *arg;
};

/* Who goes in wakes somebody for what was left outside, as the loop does from time to time (run.c). */
static void enter(void *arg)
{
	const struct visit *visit = arg;

	if (wr_injector_holds(visit->scheduler))
		wr_wake_one(visit->scheduler);
	visit->fn(visit->arg);
}

weir_status wr_in_world(weir_scheduler *scheduler, void (*fn)(void *arg), void *arg)
{
	struct visit visit = {scheduler, fn, arg};

	if (scheduler->sim && wr_sim_current() != scheduler->sim)
		return wr_sim_call(scheduler->sim, enter, &visit);
	fn(arg);
	return WEIR_OK;
}

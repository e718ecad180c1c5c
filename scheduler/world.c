#include "scheduler/world.h"

struct visit {
	weir_scheduler *scheduler;
	void (*fn)(void *arg);
	void *arg;
};

/* Wakes a worker for entries that were pushed from outside, as the loop does now and then (turn.c). */
static void enter_world(void *arg)
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
		return wr_sim_call(scheduler->sim, enter_world, &visit);
	fn(arg);
	return WEIR_OK;
}

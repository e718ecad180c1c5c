/*
 * Simulated runs: calls from outside their world go in as a fiber, and drive it meanwhile. One thread at a time
 * may do so; pokes may come from any, but touch nothing that fibers wait on.
 */
#ifndef WR_SCHEDULER_WORLD_H
#define WR_SCHEDULER_WORLD_H

#include "base/sim.h"
#include "scheduler/scheduler.h"

/*
 * Runs fn(arg) in the scheduler's world, or simply here if it has none or the caller is in it. Fails:
 * WEIR_E_DEADLOCK, WEIR_E_TIMEOUT of the world.
 */
weir_status wr_in_world(weir_scheduler *scheduler, void (*fn)(void *arg), void *arg);

/* False: the caller is outside of the world that the run has for itself, and may wake nobody in it. */
static inline bool wr_may_wake(const weir_scheduler *scheduler)
{
	return !scheduler->graph->owns_world || wr_sim_current() == scheduler->sim;
}

#endif

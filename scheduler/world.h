/*
 * Simulated runs: a call from outside the simulated world runs in it as a fiber, and the calling thread
 * drives the world until it returns. Only one thread at a time may do so. Any thread may poke, but a poke
 * from outside must not touch anything that fibers wait on.
 */
#ifndef WR_SCHEDULER_WORLD_H
#define WR_SCHEDULER_WORLD_H

#include "sim/simulation.h"
#include "scheduler/scheduler.h"

/*
 * Runs fn(arg) in the scheduler's world; calls it directly if there is no world or the caller is in it
 * already. Fails: WEIR_E_DEADLOCK, WEIR_E_TIMEOUT of the world.
 */
weir_status wr_in_world(weir_scheduler *scheduler, void (*fn)(void *arg), void *arg);

/* Returns false if the run has a world of its own and the caller is outside: it must not wake fibers. */
static inline bool wr_may_wake(const weir_scheduler *scheduler)
{
	return !scheduler->graph->owns_world || wr_sim_current() == scheduler->sim;
}

#endif

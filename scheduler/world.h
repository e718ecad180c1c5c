/* Simulated runs: calls from outside their world go in as a fiber, and drive it meanwhile. */
#ifndef WR_SCHEDULER_WORLD_H
#define WR_SCHEDULER_WORLD_H

#include "base/sim.h"
#include "scheduler/scheduler.h"

/*
 * Runs fn(arg) in the scheduler's world, or simply here if it has none or the caller is in it. Fails:
 * WEIR_E_DEADLOCK, WEIR_E_TIMEOUT of the world.
 */
weir_status wr_in_world(weir_scheduler *scheduler, void (*fn)(void *arg), void *arg);

#endif

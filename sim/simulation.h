/*
 * A simulated world: fibers of one thread, in virtual time, ordered by a seed.
 *
 * Every blocking call of base/thread.h and, in the seam build (WR_SEAM), every atomic is a switching point,
 * where the world may let another fiber go on. Virtual time starts at 1 s. It advances only when no fiber can
 * run, to the earliest end of a sleep or time-out; fibers that have only yielded for a while count as not
 * able to run (they spin for time). The same seed and the same program always give the same order. A world
 * runs only in wr_sim_call, which runs fn as a fiber, and all other fibers beside it, until fn returns; the
 * others are then suspended until the next call. One thread at a time drives a world; worlds in different
 * threads are independent.
 */
#ifndef WR_SIM_SIMULATION_H
#define WR_SIM_SIMULATION_H

#include "sim/random.h"
#include "weir.h"

struct wr_sim;

enum wr_sim_strategy {
	WR_SIM_BY_SEED, /* one of the next three: 50 %, 40 %, 10 % of seeds */
	WR_SIM_UNIFORM,
	WR_SIM_PCT,
	WR_SIM_ROUND_ROBIN,
	WR_SIM_PAUSES /* by seed, and fibers are sometimes paused at a switching point */
};

weir_status wr_sim_create(struct wr_sim **out, uint64_t seed, enum wr_sim_strategy strategy);
/*
 * Frees fibers that have not ended, with their stacks; what they had locked or waited on must not be used any
 * more. NULL is fine.
 */
void wr_sim_destroy(struct wr_sim *sim);

/*
 * Runs fn(arg) as a fiber until it returns. A caller that is already a fiber of this world simply calls fn.
 * Fails: WEIR_E_DEADLOCK: no fiber can ever run again (the last error lists each fiber and what it waits
 * for); WEIR_E_TIMEOUT: more switching points than wr_sim_set_limit allows (10 million by default; a
 * livelock). Both break the world: every later call fails likewise. The last error of fn becomes the
 * caller's.
 */
weir_status wr_sim_call(struct wr_sim *sim, void (*fn)(void *arg), void *arg);
/* Likewise, and returns what fn returns. sim NULL: there is no world, fn is simply called. */
weir_status wr_sim_try(struct wr_sim *sim, weir_status (*fn)(void *arg), void *arg);
void wr_sim_set_limit(struct wr_sim *sim, uint64_t switches);
/*
 * Calls fn(arg) each time before virtual time advances because no fiber can run, if none is paused: the state
 * of the program will not change before the next instant. fn must not block; its atomics are no switching
 * points.
 */
void wr_sim_at_rest(struct wr_sim *sim, void (*fn)(void *arg), void *arg);

struct wr_sim *wr_sim_current(void); /* the world of the calling fiber, or NULL */
int64_t wr_sim_now(const struct wr_sim *sim);
/* A hash of the order of all switches so far, to count distinct schedules. */
uint64_t wr_sim_hash(const struct wr_sim *sim);
uint64_t wr_sim_switches(const struct wr_sim *sim);
/* Random numbers that do not depend on the schedule's choices: for delays, faults, topologies. */
struct wr_random *wr_sim_random(struct wr_sim *sim);

#endif

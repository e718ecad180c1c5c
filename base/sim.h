/*
 * A simulated world: fibers of one thread, in virtual time, ordered by a seed.
 *
 * Every blocking call of base/thread.h and, in the seam build (WR_SEAM), every atomic is a switching point,
 * where the world may let another fiber go on. Virtual time starts at 1 s and advances only when no fiber can
 * run, to the earliest sleeper or time-out; fibers that have done nothing but yield for a while count as not
 * running (they spin for time). The same seed and the same program give the same order, always. A world is
 * driven by wr_sim_call alone: it runs fn as a fiber and all others beside it until fn returns. Others then
 * rest until the next call. One thread drives a world at a time; two worlds in two threads do not know of
 * each other.
 */
#ifndef WR_BASE_SIM_H
#define WR_BASE_SIM_H

#include "base/random.h"
#include "weir.h"

struct wr_sim;

enum wr_sim_strategy {
	WR_SIM_BY_SEED,		/* one of the next three: 50 %, 40 %, 10 % of seeds */
	WR_SIM_UNIFORM,
	WR_SIM_PCT,
	WR_SIM_ROUND_ROBIN,
	WR_SIM_PAUSES		/* by seed, and a few times a fiber is left out in the middle of something */
};

weir_status wr_sim_create(struct wr_sim **out, uint64_t seed, enum wr_sim_strategy strategy);
/*
 * Fibers that have not ended are dropped with their stacks; what they had locked or waited on must not be
 * used any more. NULL is fine.
 */
void wr_sim_destroy(struct wr_sim *sim);

/*
 * Runs fn(arg) as a fiber until it returns. A caller that is already a fiber of this world simply calls fn.
 * Fails: WEIR_E_DEADLOCK if no fiber can ever run again (the last error lists each fiber and what it waits
 * for), WEIR_E_TIMEOUT after as many switching points as wr_sim_set_limit says (10 million; livelock). Either
 * breaks the world: every later call fails likewise. What fails inside is the caller's last error afterwards,
 * too.
 */
weir_status wr_sim_call(struct wr_sim *sim, void (*fn)(void *arg), void *arg);
void wr_sim_set_limit(struct wr_sim *sim, uint64_t switches);
/*
 * Calls fn(arg) each time before virtual time goes on because no fiber can run and none is paused: what the
 * world has come to by then stays so until the next instant. fn does not block, and its atomics are no
 * switching points.
 */
void wr_sim_at_rest(struct wr_sim *sim, void (*fn)(void *arg), void *arg);

struct wr_sim *wr_sim_current(void);		/* the world whose fiber calls, or NULL */
int64_t wr_sim_now(const struct wr_sim *sim);
/* Of the order of all switches so far: counts distinct schedules. */
uint64_t wr_sim_hash(const struct wr_sim *sim);
uint64_t wr_sim_switches(const struct wr_sim *sim);
/* A stream of random numbers that schedule choices do not move: for delays, faults, topologies. */
struct wr_random *wr_sim_random(struct wr_sim *sim);

#endif

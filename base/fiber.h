/*
 * What base/thread.c, clock.c and status.c need of a world's fibers (base/sim.c). Private to base.
 * Unless it says otherwise a function is called by a fiber, and is a switching point.
 */
#ifndef WR_BASE_FIBER_H
#define WR_BASE_FIBER_H

#include "base/status.h"
#include "base/thread.h"

/*
 * What a thread of the machine carries; a switch of fibers
 * swaps all of it, so that reading it is one load for both.
 */
struct wr_here {
	struct wr_fiber *fiber;		/* NULL: no fiber runs in this thread */
	void *local;			/* wr_thread_local */
	int held;			/* mutexes, debug builds */
	int pinned;			/* in wr_global_lock: no switch now */
	unsigned relaxed;		/* turns of wr_thread_relax */
};

/*
 * This thread's. A library that is loaded by dlopen may find no room in the static TLS block, so the address
 * is asked for by a call (2 to 5 instructions a tick); it is asked for again each time, since a fiber may go
 * on in another thread. The seam build, which is linked into programs alone and asks at every atomic, loads it.
 */
#ifdef WR_SEAM
extern _Thread_local struct wr_here wr_here_of_thread __attribute__((tls_model("initial-exec")));
#define WR_HERE wr_here_of_thread
#else
struct wr_here *wr_here_find(void);	/* thread.c */
#define WR_HERE (*wr_here_find())
#endif

/*
 * How many worlds there are. Who finds none need not ask for its thread's record: each fiber's thread knows of its
 * world, so what others do meanwhile does not matter (relaxed).
 */
extern _Atomic unsigned wr_worlds;

/* The fiber that runs in this thread, or NULL. */
static inline struct wr_fiber *wr_fiber_here(void)
{
	return wr_read(&wr_worlds) ? WR_HERE.fiber : NULL;
}

char *wr_fiber_error(struct wr_fiber *fiber);	/* its last error, WR_ERROR_BYTES; no switching point */
int64_t wr_fiber_now(const struct wr_fiber *fiber);	/* no switching point */

weir_status wr_fiber_start(struct wr_fiber **out, const char *name, void (*fn)(void *arg), void *arg);
/* Also by the thread that drives the world while no fiber runs: the world then goes on until it is done. */
void wr_fiber_join(struct wr_fiber *fiber);
void wr_fiber_yield(void);
void wr_fiber_sleep(int64_t ns);
/* By the driving thread: waits until no resting fiber holds it. */
void wr_fiber_lock(struct wr_mutex *mutex);
void wr_fiber_unlock(struct wr_mutex *mutex);
bool wr_fiber_wait(struct wr_cond *cond, struct wr_mutex *mutex, int64_t until);
void wr_fiber_broadcast(struct wr_cond *cond);		/* also by the driving thread */
bool wr_fiber_park(struct wr_parker *parker, int64_t until);
void wr_fiber_unpark(struct wr_parker *parker);		/* also by the driving thread */

#endif

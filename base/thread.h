/*
 * Threads, mutexes, condition variables and parkers: POSIX ones or, if the caller is a fiber of a simulated
 * world (sim/simulation.h), the world's. During a run an object must be used either by threads or by fibers.
 * The thread that drives a world may also use the world's objects while no fiber runs (uncontended lock,
 * unpark). Real threads start with all POSIX signals blocked (B4).
 */
#ifndef WR_BASE_THREAD_H
#define WR_BASE_THREAD_H

#include <pthread.h>

#include "base/atomic.h"
#include "weir.h"

struct wr_fiber;
struct wr_sim;

struct wr_thread {
	pthread_t handle;
	struct wr_fiber *fiber; /* instead of the handle, in a world */
	bool started;
};

/* Starts fn(arg) as a thread (a fiber, if the caller is one) named `name` (cut to 15 bytes). */
weir_status wr_thread_start(struct wr_thread *thread, const char *name, void (*fn)(void *arg), void *arg);
/*
 * The same. If fn does not return because the thread was ended (pthread_exit, pthread_cancel), the thread
 * calls died(arg) last. Fibers never call it.
 */
weir_status wr_thread_start_watched(struct wr_thread *thread, const char *name, void (*fn)(void *arg),
				    void *arg, void (*died)(void *arg));
void wr_thread_join(struct wr_thread *thread); /* does nothing if it was never started */
void wr_thread_yield(void);
void wr_thread_relax(void);       /* the pause of a spin loop */
void wr_thread_sleep(int64_t ns); /* virtual in a world */

struct wr_mutex {
	pthread_mutex_t handle;
	struct wr_fiber *owner; /* in a world */
};

weir_status wr_mutex_init(struct wr_mutex *mutex);
void wr_mutex_finish(struct wr_mutex *mutex); /* a zeroed one is fine */
void wr_mutex_lock(struct wr_mutex *mutex);
void wr_mutex_unlock(struct wr_mutex *mutex);
/* Number of mutexes that the calling thread or fiber holds (S11: none across CUDA); 0 in release builds. */
int wr_mutex_held(void);

/* A lock of one word, held for a few stores: a thread that waits for it yields. A zeroed one is free. */
struct wr_spin {
	_Atomic uint32_t held;
};

static inline void wr_spin_lock(struct wr_spin *spin)
{
	while (wr_exchange(&spin->held, 1))
		wr_thread_yield();
}

static inline void wr_spin_unlock(struct wr_spin *spin)
{
	wr_store_release(&spin->held, 0);
}

/*
 * The lock for process-wide state, which several worlds and real threads may share (a wr_mutex serves the
 * fibers of one world only). While a fiber holds it, switching points have no effect: hold it for a few
 * lines, do not block, and take no other lock.
 */
void wr_global_lock(void);
void wr_global_unlock(void);

struct wr_cond {
	pthread_cond_t handle; /* CLOCK_MONOTONIC */
	struct wr_sim *sim;    /* the world whose fibers wait, or NULL */
};

#define WR_FOREVER INT64_MAX

weir_status wr_cond_init(struct wr_cond *cond);
void wr_cond_finish(struct wr_cond *cond);
/* Returns false if `until` (in wr_now's time) has passed. */
bool wr_cond_wait(struct wr_cond *cond, struct wr_mutex *mutex, int64_t until);
void wr_cond_broadcast(struct wr_cond *cond);

/*
 * A parker holds at most one token: wr_unpark stores it, wr_park takes it or waits for it. A futex; wr_unpark
 * takes no lock and allocates nothing, so the CUDA driver's thread may call it.
 */
struct wr_parker {
	_Atomic uint32_t word;   /* 0 empty, 1 token, 2 its owner waits */
	struct wr_fiber *waiter; /* in a world */
};

/* returns false if `until` has passed without a token */
bool wr_park(struct wr_parker *parker, int64_t until);
/*
 * Takes a token that comes before `until`, awake: wr_unpark then calls no kernel. False, too, if another
 * thread had the core meanwhile, though a token may be there by then, and in a world.
 */
bool wr_park_awake(struct wr_parker *parker, int64_t until);
void wr_unpark(struct wr_parker *parker);

/* Cores that this thread may run on (sched_setaffinity, cpusets); at least 1. */
unsigned wr_cores(void);

/* Identifies the calling thread or fiber; never 0. To check whether the caller is an owner. */
uintptr_t wr_thread_self(void);

/*
 * The library's one thread-local (or fiber-local) pointer: the worker that runs there, or NULL. Read on hot
 * paths.
 */
void *wr_thread_local(void);
void wr_thread_set_local(void *value);

#endif

/*
 * Threads, mutexes, condition variables and parkers: POSIX ones, or, for a caller that is a fiber of a
 * simulated world (base/sim.h), the world's. The same object must be used from one kind of caller only during
 * a run; a world's objects may also be touched by the thread that drives the world while no fiber runs
 * (uncontended lock, unpark). Real threads start with all POSIX signals blocked (B4).
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
	struct wr_fiber *fiber;		/* instead of the handle, in a world */
	bool started;
};

/* Starts fn(arg) as a thread (a fiber, if the caller is one) named `name` (at most 15 bytes are shown). */
weir_status wr_thread_start(struct wr_thread *thread, const char *name, void (*fn)(void *arg), void *arg);
/*
 * The same. If fn does not return, since something that it called ended the thread (pthread_exit, or a
 * pthread_cancel), that thread calls died(arg) as its last act. A fiber's thread is the world's: nothing of
 * that is noticed there.
 */
weir_status wr_thread_start_watched(struct wr_thread *thread, const char *name, void (*fn)(void *arg),
				    void *arg, void (*died)(void *arg));
void wr_thread_join(struct wr_thread *thread);			/* nothing, if it was never started */
void wr_thread_yield(void);
void wr_thread_relax(void);	/* between two looks of a thread that spins: the core breathes */
void wr_thread_sleep(int64_t ns);				/* virtual in a world */

struct wr_mutex {
	pthread_mutex_t handle;
	struct wr_fiber *owner;		/* in a world */
};

weir_status wr_mutex_init(struct wr_mutex *mutex);
void wr_mutex_finish(struct wr_mutex *mutex);			/* a zeroed one is taken too */
void wr_mutex_lock(struct wr_mutex *mutex);
void wr_mutex_unlock(struct wr_mutex *mutex);
/* Mutexes that this thread or fiber holds; debug builds only, else 0 (S11: none across CUDA) */
int wr_mutex_held(void);

/*
 * The one lock for state of the whole process, which several worlds and real threads may share: a world's
 * mutex knows its own fibers alone. While a fiber holds it no switching point takes effect, so hold it for a
 * few lines, block nowhere, and take no other lock.
 */
void wr_global_lock(void);
void wr_global_unlock(void);

struct wr_cond {
	pthread_cond_t handle;		/* CLOCK_MONOTONIC */
	struct wr_sim *sim;		/* the world whose fibers wait, or NULL */
};

#define WR_FOREVER INT64_MAX

weir_status wr_cond_init(struct wr_cond *cond);
void wr_cond_finish(struct wr_cond *cond);
/* False: `until` (wr_now's clock) has passed. */
bool wr_cond_wait(struct wr_cond *cond, struct wr_mutex *mutex, int64_t until);
void wr_cond_broadcast(struct wr_cond *cond);

/*
 * A parker holds one token: unpark leaves it, park takes it or waits for it. A futex; wr_unpark takes no lock
 * and allocates nothing, so the CUDA driver's thread may call it.
 */
struct wr_parker {
	_Atomic uint32_t word;		/* 0 empty, 1 token, 2 somebody waits */
	struct wr_fiber *waiter;	/* in a world */
};

bool wr_park(struct wr_parker *parker, int64_t until);	/* false: `until` has passed and there was no token */
void wr_unpark(struct wr_parker *parker);

/* An 8-byte stamp of the calling thread or fiber, never 0: for "is the caller the owner" questions. */
uintptr_t wr_thread_self(void);

/*
 * What the library keeps per thread (or fiber): one pointer, the worker that runs there, or NULL. Read on hot
 * paths.
 */
void *wr_thread_local(void);
void wr_thread_set_local(void *value);

#endif

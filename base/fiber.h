/*
 * What base/ knows of a simulated world (sim/): whether the caller is a fiber, and a table of calls that the
 * world registers. base/ never calls sim/ by name. Private to base and sim.
 */
#ifndef WR_BASE_FIBER_H
#define WR_BASE_FIBER_H

#include "base/status.h"
#include "base/thread.h"

/* The thread-local state. A switch of fibers swaps all of it, so that threads and fibers read it in the same
 * way. */
struct wr_here {
	struct wr_fiber *fiber; /* NULL: no fiber runs in this thread */
	void *local;            /* wr_thread_local */
	int held;               /* mutexes held, in debug builds */
	int pinned;             /* in wr_global_lock: switching points have no effect */
	unsigned relaxed;       /* calls of wr_thread_relax */
};

/*
 * This thread's record. A library loaded by dlopen may find no room in the static TLS block, so a function
 * returns the address (2 to 5 instructions per tick). It is called each time, since a fiber may go on in
 * another thread. The seam build uses static TLS: it is linked into programs only, and reads it at every
 * atomic.
 */
#ifdef WR_SEAM
extern _Thread_local struct wr_here wr_here_of_thread __attribute__((tls_model("initial-exec")));
#define WR_HERE wr_here_of_thread
#else
struct wr_here *wr_here_find(void); /* thread.c */
#define WR_HERE (*wr_here_find())
#endif

/*
 * Number of worlds. If it is 0 the caller is no fiber, and need not read its thread's record. Relaxed: a
 * thread that runs a fiber has seen the increment of its own world, and other worlds do not matter.
 */
extern _Atomic unsigned wr_worlds;

/* The fiber that runs in this thread, or NULL. */
static inline struct wr_fiber *wr_fiber_here(void)
{
	return wr_read(&wr_worlds) ? WR_HERE.fiber : NULL;
}

/*
 * The calls of a world, for base/thread.c, clock.c and status.c. Unless a comment says otherwise a call is
 * made by a fiber, and is a switching point.
 */
struct wr_world_calls {
	struct wr_last_error *(*error)(struct wr_fiber *fiber); /* its last error; no switching point */
	int64_t (*now)(const struct wr_fiber *fiber);           /* no switching point */
	void (*point)(struct wr_fiber *self);                   /* a switching point and nothing else */

	weir_status (*start)(struct wr_fiber **out, const char *name, void (*fn)(void *arg), void *arg);
	/* The driving thread may call it while no fiber runs: the world then goes on until the fiber is done.
	 */
	void (*join)(struct wr_fiber *fiber);
	void (*yield)(void);
	void (*sleep)(int64_t ns);
	/* Called by the driving thread it only waits until no fiber owns the mutex. */
	void (*lock)(struct wr_mutex *mutex);
	void (*unlock)(struct wr_mutex *mutex);
	bool (*wait)(struct wr_cond *cond, struct wr_mutex *mutex, int64_t until);
	void (*broadcast)(struct wr_cond *cond); /* also by the driving thread */
	bool (*park)(struct wr_parker *parker, int64_t until);
	void (*unpark)(struct wr_parker *parker); /* also by the driving thread */
};

/* Around the life of a world; all worlds have the same calls. Thread: any. */
void wr_world_open(const struct wr_world_calls *calls);
void wr_world_close(void);

/* The calls. Relaxed, as wr_worlds: they are stored before the first world is counted and never change. */
extern const struct wr_world_calls *_Atomic wr_world_table;

static inline const struct wr_world_calls *wr_world(void)
{
	return wr_read(&wr_world_table);
}

#endif

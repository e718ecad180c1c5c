/* A worker: a thread that runs entities, with a ready queue of its own. */
#ifndef WR_SCHEDULER_WORKER_H
#define WR_SCHEDULER_WORKER_H

#include "base/thread.h"
#include "scheduler/entity.h"
#include "trace/trace.h"

#define WR_RING           256u /* entries of a worker's own ring; the rest goes to the injector */
#define WR_NEXT_MAX       8    /* consecutive pops from the `next` slot and the due list (S9) */
#define WR_TICKS_MAX      8    /* consecutive ticks of one entity (S2) */
#define WR_INJECTOR_EVERY 61   /* every 61st pop looks at the injector first (S9) */

struct wr_worker {
	struct wr_local local; /* must be first: base/thread.h keeps a pointer to it */
	weir_scheduler *scheduler;
	struct wr_thread thread;
	char name[16];
	struct wr_last_error *error; /* wr_error_here() of its thread */
	unsigned pops, nexts;        /* nexts: consecutive pops from `next` and the due list */
	bool was_due;                /* the last pop came from the due list: `next` is first now */
	unsigned row;                /* ticks of the current entity since it was popped (S2) */
	weir_entity *row_woke;       /* receiver woken in this row by a droppable message */
	bool row_yields;             /* the row ended for a receiver that may be in any queue */
	/*
	 * It spun or slept since it last ran an entity. Pushers skipped their wake-up because it was
	 * spinning, or one wake-up stood for several pushes: it must look at the queues again before it runs
	 * something.
	 */
	bool wakes_skipped;
	bool polling; /* polling flags now: what fires goes to its own queue */
	struct wr_parker parker;
	_Alignas(64) weir_entity *_Atomic next; /* any worker may take it */
	_Alignas(64) _Atomic uint64_t head;     /* any worker takes here, by CAS */
	_Alignas(64) _Atomic uint64_t tail;     /* written by the owner only */
	weir_entity *_Atomic ring[WR_RING];
};

/* Returns the calling thread's worker, or NULL if it is no worker of this scheduler. */
static inline struct wr_worker *wr_worker_here(const weir_scheduler *scheduler)
{
	struct wr_worker *worker = wr_thread_local();

	return worker && worker->scheduler == scheduler ? worker : NULL;
}

/* For events (trace/). */
static inline unsigned wr_lane_here(const weir_scheduler *scheduler)
{
	const struct wr_worker *worker = wr_worker_here(scheduler);

	return worker ? worker->local.index : WR_LANE_OUTSIDE;
}

void wr_worker_main(void *worker);
void wr_worker_died(void *worker); /* its thread exited within compute: fails the run */

#endif

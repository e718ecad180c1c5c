/*
 * Promises: fences that the program completes (T17). Thread: any, where nothing else is said.
 *
 * The lock of promises is taken inside and held for a few stores, by whatever thread the program has, also
 * one outside of a simulated world. No call of the backend, no allocation and no poke is made under it.
 */
#ifndef WR_STREAMS_PROMISE_H
#define WR_STREAMS_PROMISE_H

#include "base/thread.h"
#include "streams/streams.h"

#define WR_PROMISES_PAGE  64 /* promises */
#define WR_PROMISES_PAGES 4096
#define WR_PROMISES_KEPT  1024 /* that failed and that nothing names */

/* An entity that waits for a promise. */
struct wr_promise_wait {
	struct wr_promise_wait *next;
	wr_token token;
	uint32_t entity;
	bool watches; /* for a failure alone: the token ends with the wait for another promise */
};

/*
 * A place for one fence at a time, which is known by its generation. Guarded by the lock, where it is not
 * atomic.
 */
struct wr_promise {
	_Atomic uint64_t issued;    /* the last generation that was given out */
	_Atomic uint64_t completed; /* the last one that was completed; `issued` if none is open */
	_Atomic uint64_t lost; /* the last one that failed and was forgotten: handles up to it are stale */
	_Atomic bool failed;   /* `issued` was completed with a failure, and does not count as complete */
	bool carried;          /* a tick has emitted a message that carries it */
	bool live;             /* it holds a live reference of the run (S4) */
	bool counts;           /* its end counts for a drain (S7) */
	bool kick;             /* its end kicks the loop: memory waits for it */
	bool kept;             /* in the list of those */
	uint32_t named;        /* messages that name `issued`, as long as it is open, and if it failed */
	weir_status status;    /* of one that failed */
	char *text;            /* likewise; NULL: none was given */
	uint32_t index;
	uint32_t entity; /* that emitted it, in the run of number `run`; or WR_NO_ENTITY */
	const char *owner;
	uint64_t run;
	int64_t created_at;
	uint64_t order; /* it was the order-th that was given out */
	struct wr_promise_wait *waits;
	size_t wait_count, sweep_at;
	struct wr_promise *next; /* in the list of free ones, or of kept ones */
};

struct wr_promises_page {
	struct wr_promise at[WR_PROMISES_PAGE];
};

struct wr_promises {
	_Atomic(struct wr_promises_page *) pages[WR_PROMISES_PAGES];
	_Atomic uint32_t count; /* promises in the pages */
	struct wr_spin lock;
	_Atomic uint64_t open;   /* given out and not completed */
	_Atomic uint64_t ended;  /* completions so far */
	_Atomic uint64_t counts; /* those that count for a drain */
	uint64_t counts_seen;    /* Loop thread */
	uint64_t issued, run;    /* guarded by lock, as all that follows */
	struct wr_promise *free;
	struct wr_promise *kept_first, *kept_last; /* failed, in the order in which they were put there */
	uint32_t kept_count;
	struct wr_promise_wait *spare, *doomed; /* doomed: until the end of the run, which has failed */
	_Atomic(struct wr_promise *) failed;    /* the first of this run that fails it */
	uint32_t failed_entity;                 /* written before */
};

void wr_promises_finish(struct wr_system *system);
/* A run begins: no failure of a promise ends it yet. */
void wr_promises_begin_run(struct wr_system *system);
/* The waits end without a poke; no thread arms any more. */
void wr_promises_forget_waits(struct wr_system *system);
void wr_promises_drop_refs(struct wr_system *system, struct wr_waker *waker);
/* Of the drain: wr_system_drain, wr_system_progressed. Thread: the loop. */
void wr_promises_drain(struct wr_system *system);
bool wr_promises_progressed(struct wr_system *system);
/* The ends of all that are open kick the loop. Thread: the loop. */
void wr_promises_kick_all(struct wr_system *system);

/*
 * OK: complete. WEIR_E_BUSY: not completed. Fails: WEIR_E_INVALID: never created, or of another system, or
 * stale; WEIR_E_FAILED: completed with a failure.
 */
weir_status wr_promise_query(struct wr_system *system, weir_fence fence);
weir_status wr_promise_check(struct wr_system *system, weir_fence fence);
/* Refuses a wait of the device, unless it is complete. */
weir_status wr_promise_refuse_device(struct wr_system *system, weir_fence fence);
const char *wr_promise_owner(struct wr_system *system, weir_fence fence, int64_t *age_ns);
/* Its end kicks the loop. Returns false if it has ended. Thread: the loop. */
bool wr_promise_kick_at(struct wr_system *system, weir_fence fence);

#endif

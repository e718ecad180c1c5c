/*
 * The scheduler's internal header. docs/dev/rules.md (S) describes the protocol, and tests/models
 * model-check it: change a rule only together with its model.
 *
 * The path of an entity: ready.c wakes it (also on behalf of streams/) and queues it, worker.c pops it,
 * tick.c decides what it does, arms what it waits for, runs it, delivers what it emitted and ends it. The
 * path of a run: scheduler.c holds the caller's calls, run.c begins the run, loop.c is the loop thread's side
 * (timers, stopping, the device, quiescence), run.c ends the run and determines its outcome, and has what any
 * thread may do to a run: fail it, stop it.
 *
 * Headers: this one has the scheduler's record; worker.h a worker's, ready.h which entity runs next, run.h
 * the course of a run.
 */
#ifndef WR_SCHEDULER_SCHEDULER_H
#define WR_SCHEDULER_SCHEDULER_H

#include "base/atomic.h"
#include "base/status.h"
#include "graphs/files.h"
#include "scheduler/graph.h"
#include "scheduler/loop.h"
#include "scheduler/worker.h"
#include "trace/trace.h"

/*
 * === the live count ===
 *
 * The live counter (S4): one word that says whether a run can go on. Bits 0-31 count references, bit 32 is
 * CLOSED, bits 33-63 are the epoch (how often the count left 0; it may wrap).
 *
 * The thread that takes the first reference increments the epoch before it drops that reference. So the epoch
 * is exact while the count is 0, and the CAS (0, epoch) -> CLOSED fails if anything was alive meanwhile. Only
 * a read-modify-write may decide that the run is closed (S8).
 */

#define WR_LIVE_COUNT  UINT64_C(0xffffffff)
#define WR_LIVE_CLOSED (UINT64_C(1) << 32)
#define WR_LIVE_EPOCH  (UINT64_C(1) << 33)

typedef _Atomic uint64_t wr_live;

static inline bool wr_live_closed(wr_live *live)
{
	return wr_load(live) & WR_LIVE_CLOSED;
}

static inline uint64_t wr_live_count(wr_live *live)
{
	return wr_load(live) & WR_LIVE_COUNT;
}

/* Takes a reference. Returns false if the run is closed; the caller must drop the reference all the same. */
static inline bool wr_live_take(wr_live *live)
{
	uint64_t before = wr_fetch_add(live, 1);

	if (before & WR_LIVE_CLOSED)
		return false;
	if (!(before & WR_LIVE_COUNT))
		wr_fetch_add(live, WR_LIVE_EPOCH);
	return true;
}

/* Drops a reference. Returns true if the count is now 0: the caller must kick the loop. */
static inline bool wr_live_drop(wr_live *live)
{
	return (wr_fetch_sub(live, 1) & WR_LIVE_COUNT) == 1;
}

/* Closes the counter if the word is still `seen`, read at a count of 0. */
static inline bool wr_live_close_idle(wr_live *live, uint64_t seen)
{
	return !(seen & (WR_LIVE_COUNT | WR_LIVE_CLOSED)) && wr_cas(live, &seen, seen | WR_LIVE_CLOSED);
}

static inline void wr_live_close(wr_live *live) /* whatever the count */
{
	wr_fetch_or(live, WR_LIVE_CLOSED);
}

/* Opens a closed counter at count 0 and takes the references of all entries and workers, in one step (S8). */
static inline void wr_live_open(wr_live *live, uint64_t references)
{
	wr_fetch_add(live, references - WR_LIVE_CLOSED);
}

/* === life === */

struct wr_ready_list {
	weir_entity *first, *last;
};

/* The phase of a run. CLOSING lasts until all workers have left and the live count is 0. */
enum wr_phase { WR_ENDED, WR_OPEN, WR_CLOSING };
enum { WR_STOP_DRAIN = 1, WR_STOP_NOW = 2, WR_STOP_FAILED = 4 }; /* bits of `stop_asked` */

enum { WR_ENDED_TEXT = 1024 };
/* What statistics say of the outcome, which any thread may read when it likes. All 0: the run is on. */
struct wr_ended {
	weir_status status;
	weir_cause cause;        /* NONE: it has not ended */
	const char *entity, *on; /* the cause's entity, and its port or pool: the graph's names, or NULL */
	uint64_t leftover, abandoned;
	int posix_signal;
	bool drained;
	char text[WR_ENDED_TEXT], stuck[WR_ENDED_TEXT]; /* cut; "": none */
};

struct weir_scheduler {
	/* any thread: the run */
	_Alignas(64) wr_live live;
	_Alignas(64) _Atomic uint64_t sleepers;     /* announced sleeps, one bit per worker (S9) */
	_Alignas(64) weir_entity *_Atomic injected; /* the injector's stack */
	_Atomic uint64_t backlog_count;             /* entries of `backlog`; may be read without the lock */
	_Atomic uint64_t due_count;                 /* the same for `due` */
	_Atomic int phase;           /* enum wr_phase; start sets OPEN, the loop the other two */
	_Atomic unsigned stop_asked; /* WR_STOP_... bits, obeyed by reviews and by the loop */
	_Atomic unsigned workers_ended;
	_Atomic uint64_t not_done;          /* entities */
	_Atomic unsigned spinners;          /* workers that look at every queue: no wake-up is needed */
	_Atomic bool standby;               /* one worker spins beside the poller */
	_Atomic unsigned poller;            /* 1 + the index of the worker that polls flags; 0: none */
	_Atomic bool watching;              /* the watch is scheduled. If not, a stream that becomes
					       busy kicks, and the last sleeper need not (worker.c) */
	_Atomic bool looks_rest;            /* the loop looks for nothing stuck until a worker is woken */
	_Atomic bool entering;              /* a thread is in weir_scheduler_start() */
	_Atomic bool destroying;            /* the loop thread ends */
	_Atomic uintptr_t calling_ended;    /* ENDED_SOON (loop.c), or the thread in options.ended */
	weir_entity *_Atomic timers_listed; /* S10: requests not yet in the loop's heap */
	struct wr_loop loop;
	struct wr_waker waker;

	/* workers */
	struct wr_mutex backlog_lock; /* guards both FIFO lists */
	struct wr_ready_list backlog; /* emptied from the injector's stack */
	struct wr_ready_list due;     /* poked by a timer: popped first */
	struct wr_worker *workers;
	unsigned worker_count, worker_asked; /* running; requested */

	/* constant from creation to destruction */
	weir_graph *graph;
	struct wr_sim *sim; /* the world of a simulated run */
	struct wr_trace *trace;
	weir_scheduler_options options;
	int gpu_time;        /* is measured in one tick of so many; 0: off */
	int signal;          /* enum wr_signal_kind */
	int process;         /* the creator's pid: threads do not survive a fork */
	int64_t stuck_every; /* stuck.c: between two looks */
	int64_t stuck_stood; /* so long must have stood what is told */
	uint64_t all_asleep; /* `sleepers` when every worker sleeps; set by each start */

	/* loop thread */
	struct wr_thread loop_thread;
	weir_entity **heap; /* timers, by absolute time */
	size_t heap_count;
	int64_t started_at, ends_at, idle_since, drain_at, drain_look_at, watch_at, streams_until;
	int64_t descriptors_at; /* when the loop looks whether a watched descriptor was closed */
	int64_t outside_at;     /* on sim: when the loop gives threads outside real time again */
	uint64_t drain_taken;   /* messages, at the last look in a drain */
	uint64_t idle_ticks;    /* of all entities when the count was 0; grace runs from idle_since */
	uint64_t looked_word; /* `live` after the last look who holds memory (holders.h), and what it found */
	bool looked_holds;
	int posix_signal;
	bool draining, cut_short, timed_out;
	bool stuck_found;                /* stuck.c: in this run */
	char *stuck;                     /* its line; NULL: none, or out of memory */
	uint32_t stuck_entity, stuck_on; /* its root cause: as in struct wr_cause */
	weir_cause stuck_cause;
	int64_t stuck_at, stuck_since; /* the next look; since when there was no tick */
	uint64_t stuck_ticks;          /* of all entities at the last look */

	/* under `lock` */
	struct wr_mutex lock;
	struct wr_cond changed;
	bool explaining, starting; /* between two runs: a thread explains; a run is starting */
	weir_outcome outcome;
	char *text, *waiting;       /* strings of the outcome: of a run that did not fail */
	weir_status failure;        /* the run's first failure (E1), */
	weir_cause cause;           /* its cause, */
	struct wr_last_error error; /* and its text, or that of a failed start; line "": none */
	size_t discarded;

	struct wr_ended ended; /* under wr_global_lock, which serves simulated worlds and other threads */

	char *root_path;       /* from the options; NULL: none */
	int root;              /* its descriptor */
	struct wr_files files; /* of the run; start and the operators' start functions add to it */
	struct wr_kept kept;   /* after destroy: the graph frees this memory */
};

/* --- options --- */
/* Combines the caller's options (NULL: all defaults) with the plan's. Fails: WEIR_E_INVALID. */
weir_status wr_options_resolve(weir_scheduler *scheduler, const weir_scheduler_options *options);

/* --- files --- */
/* Fails with WEIR_E_INVALID if the run would read or write a file in two ways that exclude each other. */
weir_status wr_scheduler_check_files(weir_scheduler *scheduler);

/* --- tick.c --- */
/* Reviews the entity, and lets it tick, park or end. */
void wr_run_entity(struct wr_worker *worker, weir_entity *entity);
/* Cancels what a review armed, and drops the live reference of the wait. Thread: the entity's owner. */
void wr_wait_disarm(weir_scheduler *scheduler, weir_entity *entity);

#endif

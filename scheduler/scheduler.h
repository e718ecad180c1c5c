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
 * This header has the record of a scheduler and of its workers, and says which entity runs next; run.h has
 * the course of a run.
 */
#ifndef WR_SCHEDULER_SCHEDULER_H
#define WR_SCHEDULER_SCHEDULER_H

#include "base/atomic.h"
#include "base/file.h"
#include "base/status.h"
#include "base/thread.h"
#include "graphs/files.h"
#include "scheduler/graph.h"
#include "scheduler/loop.h"
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

/* === a worker: a thread that runs entities, with a ready queue of its own === */

#define WR_RING           256u /* entries of a worker's own ring; the rest goes to its spill */
#define WR_NEXT_MAX       8    /* consecutive pops from the `next` slot and the due list (S9) */
#define WR_TICKS_MAX      8    /* consecutive ticks of one entity (S2) */
#define WR_INJECTOR_EVERY 61   /* every 61st pop looks at the injector first (S9) */

struct wr_ready_list {
	weir_entity *first, *last;
};

#define WR_LOOP_LOOKS UINT_MAX /* in `lookout`: the loop has the role (S9) */

struct wr_worker {
	struct wr_local local; /* must be first: base/thread.h keeps a pointer to it */
	weir_scheduler *scheduler;
	struct wr_thread thread;
	char name[16];
	struct wr_last_error *error; /* wr_error_here() of its thread */
	unsigned nexts;              /* consecutive pops from `next` and the due list */
	int64_t look_after;          /* how long it sleeps if it is the lookout */
	unsigned more_looks;         /* as the lookout, though it leaves nothing */
	int64_t slept;               /* ns, a mean over its last sleeps (worker.c) */
	unsigned undisturbed;        /* long sleeps in a row that its time has ended */
	unsigned awake_pause;        /* sleeps without a wait awake, after one in vain */
	unsigned awake_left;         /* of them */
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
	/* timers.c */
	int64_t time;    /* the earliest that it must see to, before it sleeps or runs an entity */
	unsigned beside; /* runs of entities since it last looked for what is due */
	bool will_keep;  /* it has popped what was due since it slept, or requested a time: it will keep it */
	bool was_keeper; /* it has gone to sleep as the keeper */
	struct wr_parker parker;
	struct wr_spin spill_lock;
	struct wr_ready_list spill; /* what did not fit into the ring; under spill_lock */
	/* Written by workers that look at its queue, relaxed: its pops at the last look, and since when. */
	_Alignas(64) _Atomic uint32_t looked_pops;
	_Atomic int64_t looked_since;
	_Alignas(64) weir_entity *_Atomic next; /* any worker may take it */
	_Atomic uint32_t pops;                  /* by the owner. Relaxed */
	_Atomic uint32_t running_cost; /* of the entity that it runs or ran last. By the owner, relaxed */
	_Alignas(64) _Atomic uint64_t head; /* any worker takes here, by CAS */
	_Alignas(64) _Atomic uint64_t tail; /* written by the owner only */
	weir_entity *_Atomic ring[WR_RING];
	_Atomic uint64_t spilled; /* entries of `spill` */
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

/* === the scheduler === */

/* The phase of a run. CLOSING lasts until all workers have left and the live count is 0. */
enum wr_phase { WR_ENDED, WR_OPEN, WR_CLOSING };
/* Bits of `stop_asked`. GRAPH: beside DRAIN, an operator has asked. TOLD: beside FAILED, the program has. */
enum { WR_STOP_DRAIN = 1, WR_STOP_NOW = 2, WR_STOP_FAILED = 4, WR_STOP_GRAPH = 8, WR_STOP_TOLD = 16 };

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
	_Atomic unsigned lookout;           /* 1 + the index of the worker that sleeps for a time; 0: none;
					       WR_LOOP_LOOKS */
	_Atomic unsigned poller;            /* 1 + the index of the worker that polls flags; 0: none */
	_Atomic bool watching;              /* the watch is scheduled. If not, a stream that becomes
					       busy kicks, and the last sleeper need not (worker.c) */
	_Atomic bool looks_rest;            /* the loop looks for nothing stuck until a worker is woken */
	_Atomic bool entering;              /* a thread is in weir_scheduler_start() */
	_Atomic bool destroying;            /* the loop thread ends */
	_Atomic uintptr_t calling_ended;    /* ENDED_SOON (loop.c), or the thread in options.ended */
	weir_entity *_Atomic timers_listed; /* S10: requests not yet in the heap */
	_Atomic int64_t kept_until;         /* when the keeper wakes; INT64_MAX: there is none */
	struct wr_loop loop;
	struct wr_waker waker;

	/* timers.c, under timers_lock */
	struct wr_mutex timers_lock;
	weir_entity **heap; /* by absolute time */
	size_t heap_count;
	int64_t loop_until; /* when the loop's wait ends at the latest, whatever the times */
	int64_t look_by; /* if the loop is relied on, it must look by then; an old time: as soon as it waits
			  */
	unsigned keeper; /* 1 + index of the worker that sleeps until the earliest time; 0: none */

	/* workers */
	int64_t looked_at; /* by the loop as the lookout; all pops at that time, and how long it stays it
			      (ready.c) */
	uint32_t looked_pops;
	int64_t busy_until;
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
	int gpu_time;           /* is measured in one tick of so many; 0: off */
	int signal;             /* enum wr_signal_kind */
	bool workers_keep_time; /* timers.c; false: the program turns the loop */
	bool costs;             /* of computes are learned: there are several workers */
	bool own_cores;         /* each worker can have a core */
	int process;            /* the creator's pid: threads do not survive a fork */
	int64_t stuck_every;    /* stuck.c: between two looks */
	int64_t stuck_stood;    /* so long must have stood what is told */
	uint64_t all_asleep;    /* `sleepers` when every worker sleeps; set by each start */

	/* loop thread */
	struct wr_thread loop_thread;
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

	/* under wr_global_lock, which serves simulated worlds and other threads */
	struct wr_ended ended;
	struct wr_last_error told; /* of weir_scheduler_fail, with WR_STOP_TOLD */

	struct wr_root root;   /* of the options */
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

/* Drops a live reference; the last one kicks the loop. Thread: any. */
static inline void wr_run_drop_live(weir_scheduler *scheduler)
{
	if (wr_live_drop(&scheduler->live))
		wr_loop_kick(&scheduler->loop);
}

/*
 * === which entity runs next: ready.c ===
 *
 * A poke asks for the review of an entity, which is queued for a worker; one is woken. Thread: where a
 * function takes the worker, that worker; else any, unless the comment says otherwise.
 */

/* --- pokes --- */
bool wr_poke(weir_entity *entity); /* any thread; returns false if no run is on */
/* By a worker of the entity's run. Returns false if the entity is DONE. */
static inline bool wr_poke_by_worker(struct wr_worker *worker, weir_entity *entity);
/*
 * The same; returns the entity's state before the poke. trace: the run's; NULL where a tick is compiled for
 * runs without observers.
 */
static inline uint32_t wr_poke_fetch(struct wr_worker *worker, weir_entity *entity, struct wr_trace *trace);
/* The same for a sender whose receiver freed room: it got room, not a message, so it is queued last. */
static inline void wr_poke_room(struct wr_worker *worker, weir_entity *entity, struct wr_trace *trace);
/*
 * Takes a live reference and owns the entity if it is parked (C5); else returns false. Thread: any but a
 * worker.
 */
bool wr_entity_own_parked(weir_scheduler *scheduler, weir_entity *entity);
/*
 * Gives up an entity that the caller, no worker, has owned with a live reference, which goes. Returns false
 * if the entity was poked meanwhile: then it is queued, with that reference. Thread: its owner.
 */
bool wr_entity_leave_parked(weir_scheduler *scheduler, weir_entity *entity);
/*
 * The timers of these entities have expired. Wakes no worker. Returns how many were parked. Thread: loop, or
 * a worker.
 */
size_t wr_poke_due(weir_scheduler *scheduler, weir_entity *const *entities, size_t count);
/* Fills in the functions by which streams/ reports. `waker` must be the member of a weir_scheduler. */
void wr_waker_init(struct wr_waker *waker);

/* --- the queues --- */
/* Any thread. The entry takes over the caller's live reference. The second one wakes no worker. */
void wr_ready_inject(weir_scheduler *scheduler, weir_entity *entity);
void wr_ready_inject_no_wake(weir_scheduler *scheduler, weir_entity *entity);
/* Returns true if the injector's stack, the backlog or the due list has an entry. */
bool wr_ready_injector_holds(weir_scheduler *scheduler);
/* Into `next`, so that it stays on this core; to the end of the worker's own ring. Wake one if worth it. */
void wr_ready_push_next(struct wr_worker *worker, weir_entity *entity);
void wr_ready_push_last(struct wr_worker *worker, weir_entity *entity);
void wr_ready_push_room(struct wr_worker *worker, weir_entity *entity); /* to the end; before a compute */
/*
 * Wakes another if it is worth it. Call if worker->local.undecided: ENTRIES: before it runs an entity, or
 * another tick of it; FLAGS: when it has popped the next one.
 */
void wr_ready_decide(struct wr_worker *worker);
/* Call when it stops idling to run this entity: wakes another to poll if one is wanted and it is worth it. */
void wr_ready_hand_over(struct wr_worker *worker, weir_entity *entity);
/* Behind the receiver that it has just woken, too; if the row yields, behind the other queues' entries. */
void wr_ready_push_behind(struct wr_worker *worker, weir_entity *entity);
/* By the poller, which runs the first entity that fired at once. */
void wr_ready_push_fired(struct wr_worker *worker, weir_entity *entity);
weir_entity *wr_ready_pop(struct wr_worker *worker);
/*
 * What a worker would take: what is in its own queue, the injector or the due list, and what it is worth to
 * take from others. *left: others have entries that it leaves to them (S9).
 */
bool wr_ready_any_work(struct wr_worker *worker, bool *left);
/*
 * The same for a spinning worker. What another worker has just pushed to its own queue is left to it for a
 * moment, so that it runs on a warm core. *since is 0 before the first call.
 */
bool wr_spinner_has_work(struct wr_worker *worker, int64_t now, int64_t *since);
/* Called by a worker that has spun or slept and found work: wakes another one if there is more (S9). */
void wr_wake_if_more(struct wr_worker *worker);
/* Called after a push. The push must be a full fence: see ready.c. */
static inline void wr_wake_one(weir_scheduler *scheduler);
void wr_wake_all(weir_scheduler *scheduler);
/* Returns true if flags are armed and no worker polls them. */
bool wr_poller_wanted(weir_scheduler *scheduler);
void wr_wake_for_flags(weir_scheduler *scheduler); /* wakes a sleeper to poll if a poller is wanted */
void wr_wake_poller(struct wr_worker *worker);     /* call after arming a flag */
bool wr_worth_it(const weir_scheduler *scheduler, bool worth); /* it is done, where either is right */
/* Loop thread, each turn: does what the lookout does. */
void wr_ready_look_out(weir_scheduler *scheduler, int64_t now);
int64_t wr_ready_looked_at(const weir_scheduler *scheduler,
			   int64_t now); /* if it would not in this turn; else now */
/* No worker runs. Drops all entries, returns the number of those that held a reference (the injector's). */
size_t wr_ready_clear(weir_scheduler *scheduler);

/* --- whether it is worth it (S9) --- */
/* Ticks whose compute is timed: the first few, and 1 in 16, in no rhythm that an entity may have, too. */
static inline bool wr_cost_is_sampled(uint64_t tick)
{
	return tick < 4 || (uint32_t)tick * 0x9e3779b1u >> 28 == 0;
}
void wr_cost_learn(weir_entity *entity, int64_t ns); /* thread: the entity's owner */

/* --- inline, as every tick calls them --- */

void wr_wake_one_of(weir_scheduler *scheduler, uint64_t sleepers);

static inline void wr_wake_one(weir_scheduler *scheduler)
{
	uint64_t sleepers = wr_load(&scheduler->sleepers);

	if (sleepers && !wr_load(&scheduler->spinners))
		wr_wake_one_of(scheduler, sleepers);
}

static inline uint32_t wr_poke_fetch(struct wr_worker *worker, weir_entity *entity, struct wr_trace *trace)
{
	uint32_t before = wr_fetch_or(&entity->state, WR_POKED);

	if (before == WR_IDLE) {
		wr_trace_poke(trace, worker->local.index, entity->id);
		wr_ready_push_next(worker, entity);
	}
	return before;
}

static inline bool wr_poke_by_worker(struct wr_worker *worker, weir_entity *entity)
{
	return !(wr_poke_fetch(worker, entity, worker->scheduler->trace) & WR_DONE);
}

static inline void wr_poke_room(struct wr_worker *worker, weir_entity *entity, struct wr_trace *trace)
{
	if (wr_fetch_or(&entity->state, WR_POKED) != WR_IDLE)
		return;
	wr_trace_poke(trace, worker->local.index, entity->id);
	wr_ready_push_room(worker, entity);
}

/* Exact only after the worker has announced its sleep; a hint otherwise. */
static inline bool wr_ready_due_holds(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->due_count);
}

/*
 * === timers.c ===
 *
 * The thread that waits for the earliest time: a worker that sleeps, else the loop. Thread: the worker, or
 * the loop.
 */

void wr_timers_request(struct wr_worker *worker, weir_entity *entity, int64_t at);
/* Runs the entity. If worker->time is INT64_MAX, wr_run_entity() will do. */
void wr_timers_run_entity(struct wr_worker *worker, weir_entity *entity);
/* The loop's turn comes within 10 ms from `now`. */
void wr_timers_have_loop_look(weir_scheduler *scheduler, int64_t now);
/* Call before the worker sleeps, after its last look at the queues. Returns when it must wake: `until`, or
 * earlier. */
int64_t wr_timers_keep(struct wr_worker *worker, int64_t until);
void wr_timers_woken(struct wr_worker *worker); /* call after it, with a live reference: pokes what is due */
/* Pokes what is due. The worker is about to pop one of it. Returns false if there was nothing. */
bool wr_timers_fire(struct wr_worker *worker);
void wr_timers_fire_loop(weir_scheduler *scheduler, int64_t now);
/* The loop waits until then at most; `now`: when its turn began. */
void wr_timers_arm_loop(weir_scheduler *scheduler, int64_t now, int64_t until);
/* Call before what may be long and is no run of an entity: another thread sees to the times meanwhile. */
void wr_timers_hand_over(struct wr_worker *worker);
bool wr_timers_any(weir_scheduler *scheduler);
void wr_timers_clear(weir_scheduler *scheduler); /* no worker runs */

/*
 * === stuck.c ===
 *
 * A part of the graph that stands for ever while the rest goes on, or is drained (S6): the loop looks for it
 * and says so once in a run.
 */

void wr_stuck_init(weir_scheduler *scheduler);               /* when its options are known */
void wr_stuck_begin(weir_scheduler *scheduler, int64_t now); /* before a run */
/* Call at stuck_at: looks, and returns when to look again. Thread: loop. */
int64_t wr_stuck_look(weir_scheduler *scheduler, int64_t now);
/*
 * Look also at what has stood for no time: when the drain begins; and when it has come to rest, while the
 * queues and claims are as the last tick left them. Thread: loop.
 */
void wr_stuck_look_before_drain(weir_scheduler *scheduler, int64_t now);
void wr_stuck_look_after_drain(weir_scheduler *scheduler);
/* A worker has been woken: if nothing ticked for so long that the loop has stopped looking, it looks again.
 */
static inline void wr_stuck_wake(weir_scheduler *scheduler)
{
	if (wr_load(&scheduler->looks_rest) && wr_exchange(&scheduler->looks_rest, false))
		wr_loop_kick(&scheduler->loop);
}

#endif

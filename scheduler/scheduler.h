/*
 * The scheduler's internal header. Section 4 of docs/design.md describes the protocol, and tests/models
 * model-check it: change a rule only together with its model.
 *
 * The path of an entity: poke.c wakes it (also on behalf of streams/), ready.c queues it, worker.c pops it,
 * review.c decides what it does and arms what it waits for, tick.c runs it, delivers what it emitted and ends
 * it. The path of a run: control.c holds the caller's calls, start.c begins the run, turn.c
 * is the loop thread's side (timers, stopping, the device, quiescence), end.c ends the run and determines its
 * outcome. run.c is what any thread may do to a run: fail it, stop it.
 */
#ifndef WR_SCHEDULER_SCHEDULER_H
#define WR_SCHEDULER_SCHEDULER_H

#include "base/thread.h"
#include "scheduler/graph.h"
#include "scheduler/live.h"
#include "scheduler/loop.h"
#include "trace/trace.h"

#define WR_RING           256u /* entries of a worker's own ring; the rest goes to the injector */
#define WR_NEXT_MAX       8    /* consecutive pops from the `next` slot and the due list (S9) */
#define WR_TICKS_MAX      8    /* consecutive ticks of one entity (S2) */
#define WR_INJECTOR_EVERY 61   /* every 61st pop looks at the injector first (S9) */

struct wr_ready_list {
	weir_entity *first, *last;
};

struct wr_worker {
	struct wr_local local; /* must be first: base/thread.h keeps a pointer to it */
	weir_scheduler *scheduler;
	struct wr_thread thread;
	char name[16];
	char *error;           /* wr_error_here() of its thread */
	unsigned pops, nexts;  /* nexts: consecutive pops from `next` and the due list */
	bool was_due;          /* the last pop came from the due list: `next` is first now */
	unsigned row;          /* ticks of the current entity since it was popped (S2) */
	weir_entity *row_woke; /* receiver woken in this row by a droppable message */
	bool row_yields;       /* the row ended for a receiver that may be in any queue */
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

/* The phase of a run. CLOSING lasts until all workers have left and the live count is 0. */
enum wr_phase { WR_ENDED, WR_OPEN, WR_CLOSING };
enum { WR_STOP_DRAIN = 1, WR_STOP_NOW = 2, WR_STOP_FAILED = 4 }; /* bits of `asked` */

struct weir_scheduler {
	/* any thread: the run */
	_Alignas(64) wr_live live;
	_Alignas(64) _Atomic uint64_t sleepers;     /* announced sleeps, one bit per worker (S9) */
	_Alignas(64) weir_entity *_Atomic injected; /* the injector's stack */
	_Atomic uint64_t backlog_count;             /* entries of `backlog`; may be read without the lock */
	_Atomic uint64_t due_count;                 /* the same for `due` */
	_Atomic int phase;                  /* enum wr_phase; start sets OPEN, the loop the other two */
	_Atomic unsigned asked;             /* WR_STOP_... bits, obeyed by reviews and by the loop */
	_Atomic unsigned left;              /* workers that have ended */
	_Atomic uint64_t undone;            /* entities that are not DONE */
	_Atomic unsigned spinners;          /* workers that look at every queue: no wake-up is needed */
	_Atomic bool standby;               /* one worker spins beside the poller */
	_Atomic unsigned poller;            /* 1 + the index of the worker that polls flags; 0: none */
	_Atomic bool watching;              /* a health check is scheduled. If not, a stream that becomes
					       busy kicks, and the last sleeper need not (worker.c) */
	_Atomic bool entering;              /* a thread is in weir_scheduler_start() */
	_Atomic bool quit;                  /* being destroyed: the loop thread ends */
	_Atomic uintptr_t calling_ended;    /* ENDED_SOON (turn.c), or the thread in options.ended */
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
	int signal;          /* enum wr_signal_kind */
	int process;         /* the creator's pid: threads do not survive a fork */
	uint64_t all_asleep; /* `sleepers` when every worker sleeps; set by each start */

	/* loop thread */
	struct wr_thread loop_thread;
	weir_entity **heap; /* timers, by absolute time */
	size_t heap_count;
	int64_t started_at, ends_at, idle_since, drain_at, drain_look_at, watch_at, streams_until;
	uint64_t idle_word; /* `live` as seen at count 0; grace runs from idle_since */
	int posix_signal;
	bool draining, cut_short, timed_out;

	/* under `lock` */
	struct wr_mutex lock;
	struct wr_cond changed;
	bool explaining, starting; /* between two runs: a thread explains; a run is starting */
	weir_outcome outcome;
	char *text, *culprit, *waiting; /* strings of the outcome */
	weir_status failure;            /* the run's first failure (E1) */
	size_t discarded;

	char *root_path;     /* from the options; NULL: none */
	int root;            /* its descriptor */
	struct wr_kept kept; /* after destroy: the graph frees this memory */
};

/* --- options.c --- */
/* Combines the caller's options (NULL: all defaults) with the plan's. Fails: WEIR_E_INVALID. */
weir_status wr_options_resolve(weir_scheduler *scheduler, const weir_scheduler_options *options);
weir_status wr_root_open(weir_scheduler *scheduler); /* fails: WEIR_E_IO, WEIR_E_NOMEM */
void wr_root_close(weir_scheduler *scheduler);

/* --- control.c --- */
/* Called in the scheduler's world. Returns WEIR_E_TIMEOUT if the run is not over by `until`. */
weir_status wr_wait_for_end(weir_scheduler *scheduler, int64_t until);
bool wr_driven_by_caller(const weir_scheduler *scheduler); /* true if the caller's thread runs the loop */
/* Fails: WEIR_E_BUSY inside options.ended, WEIR_E_INVALID after a fork. `what` names the call. */
weir_status wr_check_call(weir_scheduler *scheduler, const char *what);

/* --- poke.c --- */
bool wr_poke(weir_entity *entity); /* any thread; returns false if no run is on */
/* By a worker of that run. Returns false if the entity is DONE. */
static inline bool wr_poke_by_worker(struct wr_worker *worker, weir_entity *entity);
/* The same; returns the entity's state before the poke. */
static inline uint32_t wr_poke_fetch(struct wr_worker *worker, weir_entity *entity);
/* The same for a sender whose receiver freed room: it got room, not a message, so it is queued last. */
static inline void wr_poke_room(struct wr_worker *worker, weir_entity *entity);
/* The same without a wake-up. Returns true if the caller must still call wr_wake_one(). */
bool wr_poke_room_no_wake(struct wr_worker *worker, weir_entity *entity);
/* Returns the calling thread's worker, or NULL if it is no worker of this scheduler. */
static inline struct wr_worker *wr_worker_here(const weir_scheduler *scheduler);
static inline void
wr_drop_live(weir_scheduler *scheduler); /* drops a live reference; the last kicks the loop */
/* By a thread that holds no live reference. Returns false if no run is on. */
bool wr_poke_foreign(weir_scheduler *scheduler, weir_entity *entity);
/* Loop thread: the entity's timer has expired. */
void wr_poke_due(weir_scheduler *scheduler, weir_entity *entity);
/* Fills in the functions by which streams/ reports. `waker` must be the member of a weir_scheduler. */
void wr_waker_init(struct wr_waker *waker);

/* --- ready.c --- */
/* Any thread. The entry takes over the caller's live reference. */
void wr_inject(weir_scheduler *scheduler, weir_entity *entity);
void wr_inject_no_wake(weir_scheduler *scheduler, weir_entity *entity); /* the same without a wake-up */
/* Loop thread. The entry takes over the caller's live reference. */
void wr_push_due(weir_scheduler *scheduler, weir_entity *entity);
/* Returns true if the injector's stack, the backlog or the due list has an entry. */
bool wr_injector_holds(weir_scheduler *scheduler);
void wr_push_next(struct wr_worker *worker, weir_entity *entity); /* into `next`: it stays on this core */
void wr_push_last(struct wr_worker *worker, weir_entity *entity); /* to the end of the worker's own ring */
/* Behind the receiver that it has just woken, too; if the row yields, behind the other queues' entries. */
void wr_push_behind(struct wr_worker *worker, weir_entity *entity);
/* By the poller, which runs the first entity that fired at once. */
void wr_push_fired(struct wr_worker *worker, weir_entity *entity);
weir_entity *wr_pop(struct wr_worker *worker);
bool wr_any_work(weir_scheduler *scheduler); /* looks at every queue (S9) */
/*
 * The same for a spinning worker. What another worker has just pushed to its own queue is left to it for a
 * moment, so that it runs on a warm core. *since is 0 before the first call.
 */
bool wr_spinner_has_work(struct wr_worker *worker, int64_t now, int64_t *since);
/* Called by a worker that has spun or slept and found work: wakes another one if there is more. */
void wr_wake_if_more(struct wr_worker *worker);
/* Called after a push. The push must be a full fence (see ready.c). */
static inline void wr_wake_one(weir_scheduler *scheduler);
void wr_wake_all(weir_scheduler *scheduler);
bool wr_poller_wanted(
	weir_scheduler *scheduler); /* returns true if flags are armed and no worker polls them */
void wr_wake_for_flags(weir_scheduler *scheduler); /* wakes a sleeper to poll if a poller is wanted */
void wr_wake_poller(weir_scheduler *scheduler);    /* call after arming a flag */
/* No worker runs. Drops all entries, returns the number of those that held a reference (the injector's). */
size_t wr_ready_clear(weir_scheduler *scheduler);

/* --- worker.c --- */
void wr_worker_main(void *worker);
void wr_worker_died(void *worker); /* its thread exited within compute: fails the run */

/* --- review.c --- */
void wr_run_entity(struct wr_worker *worker, weir_entity *entity);

/* --- tick.c; the entity's wait is disarmed --- */
weir_status wr_tick(struct wr_worker *worker, weir_entity *entity);

/* The entity becomes DONE (S5). */
void wr_entity_end(struct wr_worker *worker, weir_entity *entity);

/* --- timers.c, loop thread --- */
void wr_timers_request(weir_scheduler *scheduler, weir_entity *entity, int64_t at); /* Thread: worker */
void wr_timers_take(weir_scheduler *scheduler);                 /* moves the listed requests into the heap */
int64_t wr_timers_fire(weir_scheduler *scheduler, int64_t now); /* pokes what is due; returns the next time */
void wr_timers_clear(weir_scheduler *scheduler);

/* --- run.c, turn.c --- */
/* Fails the run with this thread's last error. Only the first failure is kept. Thread: any. */
void wr_fail_run(weir_scheduler *scheduler, const weir_entity *entity, weir_status status);
void wr_turn(weir_scheduler *scheduler); /* loop thread: does what is due; never blocks */
void wr_loop_main(void *scheduler);

/* --- start.c, end.c --- */
weir_status wr_start_run(weir_scheduler *scheduler);
/* Call when the workers have left and the live count is 0. Finds the verdict, stops the operators. */
void wr_finish_run(weir_scheduler *scheduler);
/* Drops the live references that a run cut short has left (S4). */
void wr_release_leftovers(weir_scheduler *scheduler);

/* The operators' stop functions. */
void wr_stop_started(weir_scheduler *scheduler); /* a start failed: in reverse order */
/* Before a start: makes the calls that are owed. Fails: WEIR_E_BUSY if the device still works for one. */
weir_status wr_stop_owed(weir_scheduler *scheduler);
/* Makes the calls that are owed; an operator whose work still hangs is never stopped. */
void wr_stop_before_destroy(weir_scheduler *scheduler);

/* --- inlet.c, outlet.c --- */
size_t wr_inlets_count(const weir_graph *graph); /* start takes one live reference for each */
/* Call after the live counter is open: a push into an open inlet must find a run. */
void wr_inlets_open(weir_graph *graph);
/* Closes the inlet and drops its live reference: at a drain, receiver DONE, or a run cut short. */
void wr_inlet_end(weir_inlet *inlet);
bool wr_inlet_is_open(weir_inlet *inlet);
void wr_inlet_room(weir_inlet *inlet); /* call after its receiver freed room */
void wr_outlets_open(weir_graph *graph);
void wr_outlet_push(struct wr_worker *worker, weir_outlet *outlet, weir_message *message);
void wr_outlet_end(weir_outlet *outlet, bool abandon); /* no more messages will come */
/* The sender is DONE: ends the outlet, but its finisher still completes the messages that it has. */
void wr_outlet_done(struct wr_worker *worker, weir_outlet *outlet);

/* --- inline, as every tick calls them --- */

void wr_wake_one_of(weir_scheduler *scheduler, uint64_t sleepers);

static inline void wr_wake_one(weir_scheduler *scheduler)
{
	uint64_t sleepers = wr_load(&scheduler->sleepers);

	if (sleepers && !wr_load(&scheduler->spinners))
		wr_wake_one_of(scheduler, sleepers);
}

static inline struct wr_worker *wr_worker_here(const weir_scheduler *scheduler)
{
	struct wr_worker *worker = wr_thread_local();

	return worker && worker->scheduler == scheduler ? worker : NULL;
}

static inline void wr_drop_live(weir_scheduler *scheduler)
{
	if (wr_live_drop(&scheduler->live))
		wr_loop_kick(&scheduler->loop);
}

static inline uint32_t wr_poke_fetch(struct wr_worker *worker, weir_entity *entity)
{
	uint32_t before = wr_fetch_or(&entity->state, WR_POKED);

	if (before == WR_IDLE)
		wr_push_next(worker, entity);
	return before;
}

static inline bool wr_poke_by_worker(struct wr_worker *worker, weir_entity *entity)
{
	return !(wr_poke_fetch(worker, entity) & WR_DONE);
}

static inline void wr_poke_room(struct wr_worker *worker, weir_entity *entity)
{
	if (wr_fetch_or(&entity->state, WR_POKED) == WR_IDLE)
		wr_push_last(worker, entity);
}

/* Exact only after the worker has announced its sleep; a hint otherwise. */
static inline bool wr_due_holds(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->due_count);
}

static inline bool wr_run_ended(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->phase) == WR_ENDED;
}

#endif

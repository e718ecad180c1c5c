/*
 * The scheduler's own header: who runs next. The protocol is section 4 of docs/design.md, model-checked in
 * tests/models; change a rule only together with its model.
 *
 * The way of an entity: poke.c wakes it (waker.c: on behalf of streams/), ready.c and injector.c queue it,
 * worker.c pops it, review.c decides, tick.c runs it, deliver.c hands on what it emitted, park.c arms what it
 * waits for, done.c ends it. The way of a run: control.c is its caller's side, start.c begins it, run.c is
 * the loop thread's side (timers, stopping, the device, quiescence), finish.c ends it, verdict.c says what
 * its end means.
 */
#ifndef WR_SCHEDULER_SCHEDULER_H
#define WR_SCHEDULER_SCHEDULER_H

#include "base/thread.h"
#include "graphs/graph.h"
#include "scheduler/live.h"
#include "scheduler/loop.h"
#include "trace/trace.h"

#define WR_RING 256u		/* entries of a worker's own queue; more go to the injector */
#define WR_NEXT_MAX 8		/* in a row from the `next` slot and of what is due (S9) */
#define WR_TICKS_MAX 8		/* in a row of one entity (S2) */
#define WR_INJECTOR_EVERY 61	/* pops between two that look at the injector first (S9) */

struct wr_ready_list {
	weir_entity *first, *last;
};

struct wr_worker {
	struct wr_local local;			/* must be first: what base/thread.h keeps for the thread */
	weir_scheduler *scheduler;
	struct wr_thread thread;
	char name[16];
	char *error;				/* wr_error_here of its thread */
	unsigned pops, nexts;
	bool was_due;				/* the last pop's entity: the `next` slot has its turn */
	unsigned row;				/* ticks of the entity that it runs, since it was popped (S2) */
	weir_entity *row_woke;			/* by a message that may be dropped, in this row */
	bool row_yields;			/* ends for a receiver that may wait in any queue */
	/*
	 * Since it last ran something it was counted in `spinners`, or slept. Pushers have relied on that:
	 * more may wait than it was woken for.
	 */
	bool relied_on;
	bool polling;				/* looks at the flags right now: what fires is its own */
	struct wr_parker parker;
	_Alignas(64) weir_entity *_Atomic next;	/* any worker may take it */
	_Alignas(64) _Atomic uint64_t head;	/* any worker takes here, by CAS */
	_Alignas(64) _Atomic uint64_t tail;	/* owner */
	weir_entity *_Atomic ring[WR_RING];
};

/* Of a run: CLOSING until all workers have left and the count is 0. */
enum wr_phase { WR_ENDED, WR_OPEN, WR_CLOSING };
enum { WR_STOP_DRAIN = 1, WR_STOP_NOW = 2, WR_STOP_FAILED = 4 };	/* asked for, as bits */

struct weir_scheduler {
	/* any thread: the run */
	_Alignas(64) wr_live live;
	_Alignas(64) _Atomic uint64_t sleepers;	/* announced sleeps, one bit a worker (S9) */
	_Alignas(64) weir_entity *_Atomic injected;	/* the injector's stack */
	_Atomic uint64_t backlog_count;		/* entries of `backlog`, for a look without its lock */
	_Atomic uint64_t due_count;		/* likewise of `due` */
	_Atomic int phase;			/* enum wr_phase; to OPEN by start, from there by the loop */
	_Atomic unsigned asked;			/* WR_STOP_...: one word, which reviews and the loop obey */
	_Atomic unsigned left;			/* workers that have ended */
	_Atomic uint64_t undone;		/* entities that are not DONE */
	_Atomic unsigned spinners;		/* awake, looking at every queue: nobody need be woken */
	_Atomic bool standby;			/* one of them, beside the poller */
	_Atomic unsigned poller;		/* watches the flags: 1 + a worker's index; 0: nobody */
	_Atomic bool watching;			/* the health watch comes back; else a busy stream kicks,
						   and who sleeps last need not (worker.c) */
	_Atomic bool entering;			/* a thread is in start */
	_Atomic bool quit;			/* it is being destroyed: the loop thread ends */
	_Atomic uintptr_t telling;		/* options.ended is due, or runs on the thread of this stamp */
	weir_entity *_Atomic timers_listed;	/* S10: what the loop has to enter into its heap */
	struct wr_loop loop;
	struct wr_waker waker;

	/* workers */
	struct wr_mutex backlog_lock;		/* guards both lists, first in, first out */
	struct wr_ready_list backlog;		/* off the injector's stack */
	struct wr_ready_list due;		/* poked by a timer: these go first */
	struct wr_worker *workers;
	unsigned worker_count, worker_asked;	/* how many run; how many there should be */

	/* fixed while it lives */
	weir_graph *graph;
	struct wr_sim *sim;			/* the world of a simulated run */
	struct wr_trace *trace;
	weir_scheduler_options options;
	int signal;				/* enum wr_signal_kind */
	int process;				/* of whoever made it: threads do not go along with a fork */
	uint64_t all_asleep;			/* the mask of `sleepers` when nobody is awake */

	/* loop thread */
	struct wr_thread loop_thread;
	weir_entity **heap;			/* timers, on absolute time */
	size_t heap_count;
	int64_t started_at, ends_at, quiet_at, drain_at, drain_look_at, watch_at, settle_at;
	uint64_t quiet_word;			/* the live word at a count of 0; grace runs from quiet_at */
	int posix_signal;
	bool draining, cut_short, timed_out;

	/* under `lock` */
	struct wr_mutex lock;
	struct wr_cond changed;
	bool asking, starting;			/* between two runs: somebody explains; one begins */
	weir_outcome outcome;
	char *text, *culprit, *waiting;		/* of the outcome */
	weir_status failure;			/* first kept (E1) */
	size_t discarded;

	char *root_path;			/* of the options; NULL: none */
	int root;				/* it, opened */
	struct wr_kept kept;			/* destroyed: by the graph */
};

/* --- options.c --- */
/* NULL: all defaults. */
weir_status wr_options_settle(weir_scheduler *scheduler, const weir_scheduler_options *options);

/* --- root.c --- */
weir_status wr_root_open(weir_scheduler *scheduler);	/* fails: WEIR_E_IO, WEIR_E_NOMEM */
void wr_root_close(weir_scheduler *scheduler);

/* --- control.c --- */
/* In its world; WEIR_E_TIMEOUT: it goes on. */
weir_status wr_wait_for_end(weir_scheduler *scheduler, int64_t until);
bool wr_driven_by_caller(const weir_scheduler *scheduler); /* the loop is a thread of the caller's */
/* Fails inside options.ended: WEIR_E_BUSY. */
weir_status wr_may_call(weir_scheduler *scheduler, const char *what);

/* --- waker.c --- */
void wr_waker_init(struct wr_waker *waker);		/* a scheduler's own */

/* --- poke.c --- */
bool wr_poke(weir_entity *entity);			/* any thread; false: refused, no run is on */
/* A worker of that run; false: the entity is DONE. */
static inline bool wr_poke_held(struct wr_worker *worker, weir_entity *entity);
/* The same; returns the state that it found. */
static inline uint32_t wr_poke_before(struct wr_worker *worker, weir_entity *entity);
/* The same, for room: it brings no message. */
static inline void wr_poke_room(struct wr_worker *worker, weir_entity *entity);
/* True: pushed; the caller still owes a wr_wake_one. */
bool wr_poke_room_quietly(struct wr_worker *worker, weir_entity *entity);
/* The calling thread, if it is one of its workers. */
struct wr_worker *wr_worker_here(const weir_scheduler *scheduler);
void wr_drop(weir_scheduler *scheduler);		/* a live reference; the last one kicks the loop */
/* By a thread that holds no live reference. */
bool wr_poke_foreign(weir_scheduler *scheduler, weir_entity *entity);
/* The same, by the loop thread: its time has come. */
void wr_poke_due(weir_scheduler *scheduler, weir_entity *entity);

/* --- injector.c --- */
/* Any thread; the entry keeps the caller's reference. */
void wr_inject(weir_scheduler *scheduler, weir_entity *entity);
void wr_stack_ready(weir_scheduler *scheduler, weir_entity *entity); /* the same before a run: wakes nobody */
/* Loop thread; the entry keeps the caller's reference. */
void wr_push_due(weir_scheduler *scheduler, weir_entity *entity);
/* The oldest due entry or NULL; its reference is given back. */
weir_entity *wr_due_take(struct wr_worker *worker);
bool wr_injector_holds(weir_scheduler *scheduler);	/* or something is due */
/* The oldest entry or NULL; its reference is given back: the worker has its own. */
weir_entity *wr_injector_take(struct wr_worker *worker);
size_t wr_injector_clear(weir_scheduler *scheduler); /* nobody works: forgets all entries, returns how many */

/* --- ready.c --- */
void wr_push_next(struct wr_worker *worker, weir_entity *entity); /* just woken: it stays on this core */
void wr_push_last(struct wr_worker *worker, weir_entity *entity); /* to the end of the worker's own queue */
/* The same, also behind what it has just woken; where its row yields, behind what others have queued. */
void wr_push_behind(struct wr_worker *worker, weir_entity *entity);
/* By the poller, who runs the first one at once. */
void wr_push_fired(struct wr_worker *worker, weir_entity *entity);
weir_entity *wr_pop(struct wr_worker *worker);
bool wr_work_waits(weir_scheduler *scheduler);				/* a look at every queue (S9) */
/*
 * For who spins: the same, but what another worker has just pushed to itself that one takes itself, on its
 * warm core; only what has lain for a while is stolen. *since: 0 at first.
 */
bool wr_work_calls(struct wr_worker *worker, int64_t now, int64_t *since);
/* It has spun or slept and leaves with work: wakes one if more waits. */
void wr_pass_on(struct wr_worker *worker);
static inline void wr_wake_one(weir_scheduler *scheduler); /* after a push, by a full fence: see ready.c */
void wr_wake_all(weir_scheduler *scheduler);
/* Nobody works: forgets all entries, returns the injector's. */
size_t wr_ready_clear(weir_scheduler *scheduler);

/* --- worker.c --- */
void wr_worker_main(void *worker);
void wr_worker_died(void *worker);	/* its thread was ended within compute: the run fails by name */
/* False: nobody woke it until `until`. version: of the flags, for the poller; NULL: another worker. */
bool wr_worker_sleep(struct wr_worker *worker, int64_t until, const uint64_t *version);

/* --- poll.c --- */
/* Plays the role until there may be work; false: nothing is armed, or somebody plays it. */
bool wr_poll(struct wr_worker *worker);
void wr_poll_in_passing(struct wr_worker *worker);	/* one look, if nobody plays the role */
bool wr_poll_wanted(weir_scheduler *scheduler);		/* flags are armed and nobody plays the role */
void wr_poll_hand_over(weir_scheduler *scheduler);	/* wakes one for it if it is wanted */
void wr_poll_armed(weir_scheduler *scheduler);		/* a flag was armed */

/* --- review.c --- */
void wr_run_entity(struct wr_worker *worker, weir_entity *entity);

/* --- tick.c --- */
weir_status wr_tick(struct wr_worker *worker, weir_entity *entity);

/* --- deliver.c --- */
/* What the tick has emitted; the first failure. */
weir_status wr_deliver(struct wr_worker *worker, weir_entity *entity);

/* --- park.c --- */
void wr_arm(struct wr_worker *worker, weir_entity *entity);		/* what the verdict names */
/* It ticks or is DONE: its wait is superseded. */
void wr_disarm(struct wr_worker *worker, weir_entity *entity);

/* --- done.c --- */
void wr_entity_end(struct wr_worker *worker, weir_entity *entity);

/* --- timers.c, loop thread --- */
void wr_timers_request(weir_scheduler *scheduler, weir_entity *entity, int64_t at);	/* worker */
void wr_timers_take(weir_scheduler *scheduler);
int64_t wr_timers_fire(weir_scheduler *scheduler, int64_t now); /* pokes what is due; returns the next time */
void wr_timers_clear(weir_scheduler *scheduler);

/* --- run.c --- */
/* With this thread's last error; first kept. */
void wr_fail_run(weir_scheduler *scheduler, const weir_entity *entity, weir_status status);
void wr_turn(weir_scheduler *scheduler);		/* loop thread: does what is due, arms the loop */
void wr_loop_main(void *scheduler);

/* --- start.c, reserve.c, finish.c --- */
weir_status wr_reserve(weir_graph *graph);
weir_status wr_start_run(weir_scheduler *scheduler);
/* Workers have left, the count is 0: verdict, stop functions, outcome. */
void wr_finish_run(weir_scheduler *scheduler);
/* Tells the observers of those it took since the last call. */
void wr_name_streams(weir_scheduler *scheduler, weir_entity *entity);
void wr_give_back(weir_scheduler *scheduler); /* the references of what an abandoned run left (S4) */

/* --- stop.c: the operators' stop functions --- */
void wr_stop_operators(weir_scheduler *scheduler);	/* at the end of a run: called, or owed */
void wr_stop_started(weir_scheduler *scheduler);	/* of a start that failed, in reverse */
/* Before a start: WEIR_E_BUSY: the device still works for one that is owed the call. */
weir_status wr_stop_owed(weir_scheduler *scheduler);
void wr_stop_at_last(weir_scheduler *scheduler);	/* destroy: who hangs even now is never stopped */

/* --- verdict.c --- */
/*
 * False: finished. Else *text names the stuck entities (NULL: no memory for words). *leftover: messages still
 * queued.
 */
bool wr_deadlocked(weir_scheduler *scheduler, char **text, uint64_t *leftover);
/* Who waits for something from outside, as one line; NULL: nobody (S6). */
char *wr_waiting(weir_scheduler *scheduler, bool stuck_too);
/* The entities that a drain did not see DONE, as one line (S7); before their queues are emptied. */
char *wr_left_behind(weir_scheduler *scheduler);
weir_status wr_conservation(weir_scheduler *scheduler);	/* E5 */

/* --- inlet.c, outlet.c --- */
size_t wr_inlets_count(const weir_graph *graph);	/* start counts their references */
/* After the counter is open: what an open inlet takes must find a run. */
void wr_inlets_open(weir_graph *graph);
/* Closes it and drops its reference: drain, receiver DONE, abandonment. */
void wr_inlet_end(weir_inlet *inlet);
void wr_inlet_room(weir_inlet *inlet);			/* its receiver freed room */
void wr_outlets_open(weir_graph *graph);
void wr_outlet_push(struct wr_worker *worker, weir_outlet *outlet, weir_message *message);
void wr_outlet_end(weir_outlet *outlet, bool abandon);	/* the sender is done, or the run has ended */
/* The first: what is not finished yet still comes. */
void wr_outlet_done(struct wr_worker *worker, weir_outlet *outlet);

/* --- on the way of every tick --- */

void wr_wake_of(weir_scheduler *scheduler, uint64_t sleepers);	/* one of those that announced a sleep */

static inline void wr_wake_one(weir_scheduler *scheduler)
{
	uint64_t sleepers = wr_load(&scheduler->sleepers);

	if (sleepers && !wr_load(&scheduler->spinners))
		wr_wake_of(scheduler, sleepers);
}

static inline uint32_t wr_poke_before(struct wr_worker *worker, weir_entity *entity)
{
	uint32_t before = wr_fetch_or(&entity->state, WR_POKED);

	if (before == WR_IDLE)
		wr_push_next(worker, entity);
	return before;
}

static inline bool wr_poke_held(struct wr_worker *worker, weir_entity *entity)
{
	return !(wr_poke_before(worker, entity) & WR_DONE);
}

static inline void wr_poke_room(struct wr_worker *worker, weir_entity *entity)
{
	if (wr_fetch_or(&entity->state, WR_POKED) == WR_IDLE)
		wr_push_last(worker, entity);
}

/* A hint, or, after an announced sleep, the truth. */
static inline bool wr_due_holds(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->due_count);
}

static inline bool wr_run_ended(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->phase) == WR_ENDED;
}

/* A wait that was armed, or that the verdict names now? */
static inline bool wr_wait_armed(const struct wr_wait *wait)
{
	return wait->held || wait->token || wait->refused;
}

static inline bool wr_verdict_arms(const weir_verdict *verdict)
{
	return verdict->external || verdict->fence_count || verdict->at != INT64_MAX;
}

#endif

/*
 * The scheduler's own header: who runs next. The protocol is DESIGN section 4, model-checked in tests/models; change a rule only together
 * with its model. The way of an entity: poke.c wakes it, ready.c queues it, worker.c pops it, review.c decides, tick.c runs it, park.c
 * arms what it waits for, done.c ends it; run.c is the loop thread's side: timers, signals' tokens, quiescence, stopping, the verdict.
 */
#ifndef WR_SCHEDULER_SCHEDULER_H
#define WR_SCHEDULER_SCHEDULER_H

#include "base/thread.h"
#include "graphs/graph.h"
#include "scheduler/live.h"
#include "scheduler/loop.h"
#include "trace/trace.h"

#define WR_RING 256u		/* entries of a worker's own queue; more go to the injector */
#define WR_NEXT_MAX 8		/* in a row from the `next` slot (S9) */
#define WR_TICKS_MAX 8		/* in a row of one entity (S2) */
#define WR_INJECTOR_EVERY 61	/* pops between two that look at the injector first (S9) */

struct wr_worker {
	struct wr_local local;			/* must be first: what base/thread.h keeps for the thread */
	weir_scheduler *scheduler;
	struct wr_thread thread;
	char name[16];
	unsigned pops, nexts;
	bool relied_on;				/* it was counted in `spinners`, or slept, since it last ran something: more may wait than it was woken for */
	bool polling;				/* it looks at the doorbells right now: what fires is its own */
	struct wr_parker parker;
	_Alignas(64) weir_entity *_Atomic next;		/* any worker may take it */
	_Alignas(64) _Atomic uint64_t head;		/* any worker takes here, by CAS */
	_Alignas(64) _Atomic uint64_t tail;		/* owner */
	weir_entity *_Atomic ring[WR_RING];
};

enum wr_phase { WR_ENDED, WR_OPEN, WR_CLOSING };	/* of a run: CLOSING until all workers have left and the count is 0 */
enum { WR_STOP_DRAIN = 1, WR_STOP_NOW = 2, WR_STOP_FAILED = 4 };	/* asked for, as bits */

struct weir_scheduler {
	/* any thread */
	_Alignas(64) wr_live live;
	_Alignas(64) _Atomic uint64_t sleepers;		/* announced sleeps, one bit a worker (S9) */
	_Alignas(64) weir_entity *_Atomic injected;	/* the injector: a stack that foreign threads push to */
	_Atomic uint64_t backlog_count;			/* entries of `backlog`, for a look without its lock */
	_Atomic bool draining;
	_Atomic int phase;				/* enum wr_phase; to OPEN by start, from there by the loop thread */
	_Atomic unsigned asked;				/* WR_STOP_... */
	_Atomic unsigned left;				/* workers that have ended */
	_Atomic uint64_t undone;			/* entities that are not DONE */
	_Atomic unsigned spinners;			/* awake without work, looking at every queue again and again: pushers need wake nobody */
	_Atomic bool standby;				/* one of them, beside the poller */
	_Atomic unsigned poller;			/* 1 + the index of the worker that watches the doorbells; 0: nobody */
	_Atomic bool watching;				/* the health watch has a time to come back; else a stream that becomes busy kicks */
	_Atomic bool quit;				/* the scheduler is being destroyed: the loop thread ends */
	weir_entity *_Atomic timers_listed;		/* S10: what the loop has to enter into its heap */
	struct wr_loop loop;
	struct wr_waker waker;

	/* workers */
	struct wr_mutex backlog_lock;			/* guards the list */
	weir_entity *backlog, *backlog_end;		/* what was taken off the injector and not yet run: first in, first out */
	struct wr_worker *workers;
	unsigned worker_count, worker_asked;		/* how many run; how many there should be */

	/* fixed while it lives */
	weir_graph *graph;
	struct wr_sim *sim;				/* the world of a simulated run */
	struct wr_trace *trace;
	weir_scheduler_options options;
	int signal;					/* enum wr_signal_kind */
	uint64_t all_asleep;				/* the mask of `sleepers` when nobody is awake */

	/* loop thread */
	struct wr_thread loop_thread;
	weir_entity **heap;				/* timers, on absolute time */
	size_t heap_count;
	int64_t started_at, ends_at, quiet_at, drain_at, watch_at, settle_at;
	uint64_t quiet_word;				/* the live word when it came to 0; grace runs from quiet_at */
	int posix_signal;
	bool cut_short, timed_out;

	/* under `lock` */
	struct wr_mutex lock;
	struct wr_cond changed;
	bool asking, starting;				/* between two runs: somebody explains; a run is being started */
	weir_outcome outcome;
	char *text, *culprit, *waiting;			/* of the outcome */
	weir_status failure;				/* first kept (E1) */
	size_t discarded;

	struct wr_kept kept;		/* destroyed: by the graph */
};

/* --- poke.c --- */
bool wr_poke(weir_entity *entity);			/* any thread; false: refused, no run is on */
static inline bool wr_poke_held(struct wr_worker *worker, weir_entity *entity);	/* a worker of that run; false: the entity is DONE */
static inline void wr_poke_room(struct wr_worker *worker, weir_entity *entity);	/* the same, for room: it brings no message */
bool wr_poke_room_quietly(struct wr_worker *worker, weir_entity *entity);	/* true: pushed; the caller still owes a wr_wake_one */
struct wr_worker *wr_worker_here(const weir_scheduler *scheduler);	/* the calling thread, if it is one of its workers */
void wr_drop(weir_scheduler *scheduler);		/* a live reference; the last one kicks the loop */
void wr_poke_by_id(struct wr_waker *waker, uint32_t entity);

/* --- ready.c --- */
void wr_push_next(struct wr_worker *worker, weir_entity *entity);	/* just woken: it stays on this core */
void wr_push_last(struct wr_worker *worker, weir_entity *entity);	/* to the end of the worker's own queue */
void wr_push_fired(struct wr_worker *worker, weir_entity *entity);	/* by the poller, who runs the first one at once */
void wr_inject(weir_scheduler *scheduler, weir_entity *entity);		/* any thread; the entry keeps the caller's reference */
void wr_stack_ready(weir_scheduler *scheduler, weir_entity *entity);	/* the same before a run: wakes nobody */
weir_entity *wr_pop(struct wr_worker *worker);
bool wr_work_waits(weir_scheduler *scheduler);				/* a look at every queue (S9) */
/*
 * For who spins: the same, but what another worker has just pushed to itself that one takes itself, on its warm core; only what has lain for a
 * while is stolen. *since: 0 at first.
 */
bool wr_work_calls(struct wr_worker *worker, int64_t now, int64_t *since);
void wr_pass_on(struct wr_worker *worker);				/* it has spun or slept and leaves with work: wakes one if more waits */
static inline void wr_wake_one(weir_scheduler *scheduler);		/* after a push, by a full fence: see ready.c */
void wr_wake_all(weir_scheduler *scheduler);
size_t wr_ready_clear(weir_scheduler *scheduler);			/* nobody works: forgets all entries, returns the injector's */

/* --- worker.c --- */
void wr_worker_main(void *worker);
/* False: nobody woke it until `until`. version: of the doorbells, for the poller; NULL: another worker. */
bool wr_worker_sleep(struct wr_worker *worker, int64_t until, const uint64_t *version);

/* --- poll.c --- */
bool wr_poll(struct wr_worker *worker);			/* plays the role until there may be work; false: nothing is armed, or somebody plays it */
void wr_poll_in_passing(struct wr_worker *worker);	/* one look, if nobody plays the role */
bool wr_poll_wanted(weir_scheduler *scheduler);		/* doorbells are armed and nobody plays the role */
void wr_poll_hand_over(weir_scheduler *scheduler);	/* wakes one for it if it is wanted */
void wr_poll_armed(weir_scheduler *scheduler);		/* a doorbell was armed */

/* --- review.c --- */
void wr_run_entity(struct wr_worker *worker, weir_entity *entity);

/* --- tick.c --- */
weir_status wr_tick(struct wr_worker *worker, weir_entity *entity);

/* --- park.c --- */
void wr_arm(struct wr_worker *worker, weir_entity *entity);		/* what the verdict names */
void wr_disarm(struct wr_worker *worker, weir_entity *entity);		/* it ticks or is DONE: its wait is superseded */

/* --- done.c --- */
void wr_retire_entity(struct wr_worker *worker, weir_entity *entity);

/* --- timers.c, loop thread --- */
void wr_timers_request(weir_scheduler *scheduler, weir_entity *entity, int64_t at);	/* worker */
void wr_timers_take(weir_scheduler *scheduler);
int64_t wr_timers_fire(weir_scheduler *scheduler, int64_t now);		/* pokes what is due; returns the next time */
void wr_timers_clear(weir_scheduler *scheduler);

/* --- run.c --- */
void wr_fail_run(weir_scheduler *scheduler, const weir_entity *entity, weir_status status);	/* with this thread's last error; first kept */
void wr_turn(weir_scheduler *scheduler);		/* loop thread: does what is due, arms the loop */
void wr_loop_main(void *scheduler);

/* --- start.c, finish.c --- */
weir_status wr_start_run(weir_scheduler *scheduler);
void wr_finish_run(weir_scheduler *scheduler);		/* workers have left, the count is 0: verdict, stop functions, outcome */
void wr_name_streams(weir_scheduler *scheduler, weir_entity *entity);	/* tells the observers of those it took since the last call */
void wr_stop_operator(weir_entity *entity);		/* that has a stop function and was started */
void wr_give_back(weir_scheduler *scheduler);		/* the references of what an abandoned run left (S4) */

/* --- verdict.c --- */
/* False: finished. Else *text names the stuck entities (NULL: no memory for words). *leftover: messages still queued. */
bool wr_deadlocked(weir_scheduler *scheduler, char **text, uint64_t *leftover);
char *wr_waiting(weir_scheduler *scheduler, bool stuck_too);	/* who waits for something from outside, as one line; NULL: nobody (S6) */
char *wr_left_behind(weir_scheduler *scheduler);	/* the entities that a drain did not see DONE, as one line (S7); before their queues are emptied */
weir_status wr_conservation(weir_scheduler *scheduler);	/* E5 */

/* --- inlet.c, outlet.c --- */
size_t wr_inlets_count(const weir_graph *graph);	/* start counts their references */
void wr_inlets_open(weir_graph *graph);			/* after the counter is open: what an open inlet takes must find a run */
void wr_inlet_end(weir_inlet *inlet);			/* closes it and drops its reference: drain, receiver DONE, abandonment */
void wr_inlet_room(weir_inlet *inlet);			/* its receiver freed room */
void wr_outlets_open(weir_graph *graph);
void wr_outlet_push(struct wr_worker *worker, weir_outlet *outlet, weir_message *message);
void wr_outlet_end(weir_outlet *outlet, bool abandon);	/* the sender is done, or the run has ended */

/* --- on the way of every tick --- */

void wr_wake_of(weir_scheduler *scheduler, uint64_t sleepers);	/* one of those that announced a sleep */

static inline void wr_wake_one(weir_scheduler *scheduler)
{
	uint64_t sleepers = wr_load(&scheduler->sleepers);

	if (sleepers && !wr_load(&scheduler->spinners))
		wr_wake_of(scheduler, sleepers);
}

static inline bool wr_poke_held(struct wr_worker *worker, weir_entity *entity)
{
	uint32_t before = wr_fetch_or(&entity->state, WR_POKED);

	if (before == WR_IDLE)
		wr_push_next(worker, entity);
	return !(before & WR_DONE);
}

static inline void wr_poke_room(struct wr_worker *worker, weir_entity *entity)
{
	if (wr_fetch_or(&entity->state, WR_POKED) == WR_IDLE)
		wr_push_last(worker, entity);
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

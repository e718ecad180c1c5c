/*
 * Which entity runs next: a poke asks for the review of an entity, which is queued for a worker; one is
 * woken. Thread: where a function takes the worker, that worker; else any, unless the comment says otherwise.
 */
#ifndef WR_SCHEDULER_READY_H
#define WR_SCHEDULER_READY_H

#include "scheduler/scheduler.h"

/* --- pokes --- */
bool wr_poke(weir_entity *entity); /* any thread; returns false if no run is on */
/* By a worker of the entity's run. Returns false if the entity is DONE. */
static inline bool wr_poke_by_worker(struct wr_worker *worker, weir_entity *entity);
/* The same; returns the entity's state before the poke. */
static inline uint32_t wr_poke_fetch(struct wr_worker *worker, weir_entity *entity);
/* The same for a sender whose receiver freed room: it got room, not a message, so it is queued last. */
static inline void wr_poke_room(struct wr_worker *worker, weir_entity *entity);
/* The same without a wake-up. Returns true if the caller must still call wr_wake_one(). */
bool wr_poke_room_no_wake(struct wr_worker *worker, weir_entity *entity);
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
/* Loop thread: the entity's timer has expired. */
void wr_poke_due(weir_scheduler *scheduler, weir_entity *entity);
/* Fills in the functions by which streams/ reports. `waker` must be the member of a weir_scheduler. */
void wr_waker_init(struct wr_waker *waker);

/* --- the queues --- */
/* Any thread. The entry takes over the caller's live reference. The second one wakes no worker. */
void wr_ready_inject(weir_scheduler *scheduler, weir_entity *entity);
void wr_ready_inject_no_wake(weir_scheduler *scheduler, weir_entity *entity);
/* Returns true if the injector's stack, the backlog or the due list has an entry. */
bool wr_ready_injector_holds(weir_scheduler *scheduler);
/* Into `next`, so that it stays on this core; to the end of the worker's own ring. */
void wr_ready_push_next(struct wr_worker *worker, weir_entity *entity);
void wr_ready_push_last(struct wr_worker *worker, weir_entity *entity);
/* Behind the receiver that it has just woken, too; if the row yields, behind the other queues' entries. */
void wr_ready_push_behind(struct wr_worker *worker, weir_entity *entity);
/* By the poller, which runs the first entity that fired at once. */
void wr_ready_push_fired(struct wr_worker *worker, weir_entity *entity);
weir_entity *wr_ready_pop(struct wr_worker *worker);
bool wr_ready_any_work(weir_scheduler *scheduler); /* looks at every queue (S9) */
/*
 * The same for a spinning worker. What another worker has just pushed to its own queue is left to it for a
 * moment, so that it runs on a warm core. *since is 0 before the first call.
 */
bool wr_spinner_has_work(struct wr_worker *worker, int64_t now, int64_t *since);
/* Called by a worker that has spun or slept and found work: wakes another one if there is more. */
void wr_wake_if_more(struct wr_worker *worker);
/* Called after a push. The push must be a full fence: see ready.c. */
static inline void wr_wake_one(weir_scheduler *scheduler);
void wr_wake_all(weir_scheduler *scheduler);
/* Returns true if flags are armed and no worker polls them. */
bool wr_poller_wanted(weir_scheduler *scheduler);
void wr_wake_for_flags(weir_scheduler *scheduler); /* wakes a sleeper to poll if a poller is wanted */
void wr_wake_poller(weir_scheduler *scheduler);    /* call after arming a flag */
/* No worker runs. Drops all entries, returns the number of those that held a reference (the injector's). */
size_t wr_ready_clear(weir_scheduler *scheduler);

/* --- inline, as every tick calls them --- */

void wr_wake_one_of(weir_scheduler *scheduler, uint64_t sleepers);

static inline void wr_wake_one(weir_scheduler *scheduler)
{
	uint64_t sleepers = wr_load(&scheduler->sleepers);

	if (sleepers && !wr_load(&scheduler->spinners))
		wr_wake_one_of(scheduler, sleepers);
}

static inline uint32_t wr_poke_fetch(struct wr_worker *worker, weir_entity *entity)
{
	uint32_t before = wr_fetch_or(&entity->state, WR_POKED);

	if (before == WR_IDLE) {
		wr_trace_poke(worker->scheduler->trace, worker->local.index, entity->id);
		wr_ready_push_next(worker, entity);
	}
	return before;
}

static inline bool wr_poke_by_worker(struct wr_worker *worker, weir_entity *entity)
{
	return !(wr_poke_fetch(worker, entity) & WR_DONE);
}

static inline void wr_poke_room(struct wr_worker *worker, weir_entity *entity)
{
	if (wr_fetch_or(&entity->state, WR_POKED) != WR_IDLE)
		return;
	wr_trace_poke(worker->scheduler->trace, worker->local.index, entity->id);
	wr_ready_push_last(worker, entity);
}

/* Exact only after the worker has announced its sleep; a hint otherwise. */
static inline bool wr_ready_due_holds(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->due_count);
}

#endif

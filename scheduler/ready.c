/*
 * The ready queues (S9). An entity is in at most one of them, at most once.
 *
 * Each worker has a ring (it pushes at the tail; it and thieves take at the head by CAS) and a `next` slot
 * before it, so that a message passed on stays on the warm core; a thief may take from the slot, too. Who
 * waited for room goes to the ring's end: room brings no message, and by its turn the entity often has one,
 * too (one review instead of two). Who is no worker pushes to the injector (injector.c).
 *
 * No wake-up is lost: whoever pushes does so by a sequentially consistent store or read-modify-write and then
 * looks at the announced sleeps; whoever sleeps announces by one and then looks at every queue. One of the
 * two sees the other.
 */
#include "scheduler/scheduler.h"

/* The poller sleeps for a time, and has something to do then: another one, if there is one. */
static uint64_t choose(weir_scheduler *scheduler, uint64_t sleepers)
{
	unsigned poller = wr_load(&scheduler->poller);
	uint64_t others = poller ? sleepers & ~(UINT64_C(1) << (poller - 1)) : sleepers;

	return others ? others & -others : sleepers;
}

void wr_wake_one_of(weir_scheduler *scheduler, uint64_t sleepers)
{
	for (; sleepers; sleepers = wr_load(&scheduler->sleepers)) {
		uint64_t bit = choose(scheduler, sleepers);
		if (wr_fetch_and(&scheduler->sleepers, ~bit) & bit) {
			wr_unpark(&scheduler->workers[__builtin_ctzll(bit)].parker);
			return;
		}
	}
}

void wr_wake_all(weir_scheduler *scheduler)
{
	wr_exchange(&scheduler->sleepers, 0);
	for (unsigned i = 0; i < scheduler->worker_count; i++)
		wr_unpark(&scheduler->workers[i].parker);
}

/* --- the ring --- */

static bool ring_push(struct wr_worker *worker, weir_entity *entity)
{
	uint64_t tail = wr_load_relaxed(&worker->tail);	/* owner's word */

	if (tail - wr_load_acquire(&worker->head) == WR_RING)	/* acquire: thieves have read the slot */
		return false;
	wr_store_relaxed(&worker->ring[tail % WR_RING], entity);	/* published by the tail */
	wr_store(&worker->tail, tail + 1);
	return true;
}

static weir_entity *ring_take(struct wr_worker *worker)
{
	uint64_t head = wr_load_acquire(&worker->head);

	for (;;) {
		if (head == wr_load_acquire(&worker->tail))
			return NULL;
		weir_entity *entity = wr_load_relaxed(&worker->ring[head % WR_RING]);
		if (wr_cas(&worker->head, &head, head + 1))
			return entity;	/* nobody can have overwritten the slot: the head had not moved */
	}
}

static void push_own(struct wr_worker *worker, weir_entity *entity)
{
	if (ring_push(worker, entity))
		return;
	wr_live_take(&worker->scheduler->live);	/* an injector's entry has a reference of its own */
	wr_stack_ready(worker->scheduler, entity);
}

void wr_push_last(struct wr_worker *worker, weir_entity *entity)
{
	push_own(worker, entity);
	wr_wake_one(worker->scheduler);
}

/*
 * What it has just woken is popped before the ring, unless a row of `next` is full: then it goes there, too.
 * What others have queued may lie in the injector, which is popped after the ring.
 */
void wr_push_behind(struct wr_worker *worker, weir_entity *entity)
{
	weir_entity *woken = worker->nexts < WR_NEXT_MAX ? NULL : wr_exchange(&worker->next, NULL);

	if (woken)
		push_own(worker, woken);
	if (!worker->row_yields) {
		wr_push_last(worker, entity);
		return;
	}
	wr_live_take(&worker->scheduler->live);	/* the entry's own */
	wr_inject(worker->scheduler, entity);
}

bool wr_poke_room_no_wake(struct wr_worker *worker, weir_entity *entity)
{
	bool idle = wr_fetch_or(&entity->state, WR_POKED) == WR_IDLE;

	if (idle)
		push_own(worker, entity);
	return idle;
}

void wr_push_next(struct wr_worker *worker, weir_entity *entity)
{
	weir_entity *before = wr_exchange(&worker->next, entity);

	if (before)
		push_own(worker, before);
	wr_wake_one(worker->scheduler);
}

/* The first wakes nobody: it is what the worker takes next, unless a row of `next` is full. */
void wr_push_fired(struct wr_worker *worker, weir_entity *entity)
{
	weir_entity *before = wr_exchange(&worker->next, entity);

	if (before)
		push_own(worker, before);
	else if (worker->nexts < WR_NEXT_MAX)
		return;
	wr_wake_one(worker->scheduler);
}

static weir_entity *take_next(struct wr_worker *worker)
{
	if (!wr_load_relaxed(&worker->next))
		return NULL;	/* a pusher on another core looks at the announcements after its push */
	return wr_exchange(&worker->next, NULL);
}

/* --- taking --- */

static weir_entity *steal(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;

	for (unsigned i = 1; i < scheduler->worker_count; i++) {
		unsigned other = (worker->local.index + i) % scheduler->worker_count;
		struct wr_worker *victim = &scheduler->workers[other];
		weir_entity *entity = ring_take(victim);
		if (!entity)
			entity = take_next(victim);
		if (entity)
			return entity;
	}
	return NULL;
}

/* If there is both they take turns, so that neither starves the other. */
static weir_entity *take_due(struct wr_worker *worker)
{
	weir_entity *entity = NULL;

	if (!worker->was_due || !wr_load_relaxed(&worker->next))
		entity = wr_due_take(worker);
	worker->was_due = entity;
	return entity;
}

/* What is due goes before `next`. Who sleeps looks again after its announcement: here a hint will do. */
static inline weir_entity *take_row(struct wr_worker *worker)
{
	weir_entity *entity = NULL;

	if (wr_load_relaxed(&worker->scheduler->due_count))
		entity = take_due(worker);
	else
		worker->was_due = false;
	return entity ? entity : take_next(worker);
}

weir_entity *wr_pop(struct wr_worker *worker)
{
	weir_entity *entity = NULL;

	if (++worker->pops % WR_INJECTOR_EVERY == 0)
		entity = wr_injector_take(worker);
	if (!entity && worker->nexts < WR_NEXT_MAX && (entity = take_row(worker))) {
		worker->nexts++;
		return entity;
	}
	worker->nexts = 0;
	if (!entity)
		entity = ring_take(worker);
	if (!entity)
		entity = take_row(worker);
	if (!entity)
		entity = wr_injector_take(worker);
	return entity ? entity : steal(worker);
}

/* --- looking --- */

#define GRACE 2000	/* ns: what another worker has just pushed is its own so long */

static bool holds(struct wr_worker *worker)
{
	return wr_load(&worker->next) || wr_load(&worker->head) != wr_load(&worker->tail);
}

bool wr_spinner_has_work(struct wr_worker *worker, int64_t now, int64_t *since)
{
	weir_scheduler *scheduler = worker->scheduler;

	if (holds(worker) || wr_injector_holds(scheduler))
		return true;
	if (!wr_any_work(scheduler))
		*since = 0;
	else if (!*since)
		*since = now;
	return *since && now - *since >= GRACE;
}

void wr_wake_if_more(struct wr_worker *worker)
{
	if (!worker->wakes_skipped)
		return;
	worker->wakes_skipped = false;
	if (wr_any_work(worker->scheduler))
		wr_wake_one(worker->scheduler);
}

bool wr_any_work(weir_scheduler *scheduler)
{
	if (wr_injector_holds(scheduler))
		return true;
	for (unsigned i = 0; i < scheduler->worker_count; i++)
		if (holds(&scheduler->workers[i]))
			return true;
	return scheduler->graph->system && wr_system_deferred_frees_ready(scheduler->graph->system);
}

size_t wr_ready_clear(weir_scheduler *scheduler)
{
	for (unsigned i = 0; i < scheduler->worker_count; i++) {
		struct wr_worker *worker = &scheduler->workers[i];
		wr_store(&worker->next, NULL);
		wr_store(&worker->head, 0);
		wr_store(&worker->tail, 0);
	}
	return wr_injector_clear(scheduler);
}

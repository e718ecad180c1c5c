/*
 * The ready queues (S9). An entity is in at most one of them, at most once.
 *
 * Each worker has a ring (the owner pushes at the tail; the owner and thieves take at the head by CAS) and,
 * in front of it, a `next` slot, so that the receiver of a message runs on the warm core. A thief may take
 * from the slot, too. An entity that waited for room goes to the end of the ring: when it is popped it often
 * has a message as well, which saves a review. Threads that are no workers push to the injector
 * (injector.c).
 *
 * No wake-up is lost: a pusher pushes by a sequentially consistent store or read-modify-write and then looks
 * at the announced sleeps; a worker announces its sleep in the same way and then looks at every queue. At
 * least one of the two sees the other.
 */
#include "scheduler/scheduler.h"

/* Prefers a sleeper that is not the poller, which sleeps with a timeout and has work after it. */
static uint64_t choose_sleeper(weir_scheduler *scheduler, uint64_t sleepers)
{
	unsigned poller = wr_load(&scheduler->poller);
	uint64_t others = poller ? sleepers & ~(UINT64_C(1) << (poller - 1)) : sleepers;

	return others ? others & -others : sleepers;
}

void wr_wake_one_of(weir_scheduler *scheduler, uint64_t sleepers)
{
	for (; sleepers; sleepers = wr_load(&scheduler->sleepers)) {
		uint64_t bit = choose_sleeper(scheduler, sleepers);
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
	uint64_t tail = wr_load_relaxed(&worker->tail); /* only the owner writes it */

	if (tail - wr_load_acquire(&worker->head) == WR_RING) /* acquire: thieves have read the slot */
		return false;
	wr_store_relaxed(&worker->ring[tail % WR_RING], entity); /* published by the tail */
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
			return entity; /* the slot was not overwritten: the head had not moved */
	}
}

static void ring_push_or_inject(struct wr_worker *worker, weir_entity *entity)
{
	if (ring_push(worker, entity))
		return;
	wr_live_take(&worker->scheduler->live); /* the reference of the injector's entry */
	wr_stack_ready(worker->scheduler, entity);
}

void wr_push_last(struct wr_worker *worker, weir_entity *entity)
{
	ring_push_or_inject(worker, entity);
	wr_wake_one(worker->scheduler);
}

/*
 * An entity in the `next` slot is popped before the ring, unless WR_NEXT_MAX is reached: then it is moved to
 * the ring, before `entity`. If the row yields, the receiver may be in the injector, which is popped after
 * the ring.
 */
void wr_push_behind(struct wr_worker *worker, weir_entity *entity)
{
	weir_entity *woken = worker->nexts < WR_NEXT_MAX ? NULL : wr_exchange(&worker->next, NULL);

	if (woken)
		ring_push_or_inject(worker, woken);
	if (!worker->row_yields) {
		wr_push_last(worker, entity);
		return;
	}
	wr_live_take(&worker->scheduler->live); /* the reference of the injector's entry */
	wr_inject(worker->scheduler, entity);
}

bool wr_poke_room_no_wake(struct wr_worker *worker, weir_entity *entity)
{
	bool idle = wr_fetch_or(&entity->state, WR_POKED) == WR_IDLE;

	if (idle)
		ring_push_or_inject(worker, entity);
	return idle;
}

void wr_push_next(struct wr_worker *worker, weir_entity *entity)
{
	weir_entity *before = wr_exchange(&worker->next, entity);

	if (before)
		ring_push_or_inject(worker, before);
	wr_wake_one(worker->scheduler);
}

/* The first one needs no wake-up: this worker pops it next, unless WR_NEXT_MAX is reached. */
void wr_push_fired(struct wr_worker *worker, weir_entity *entity)
{
	weir_entity *before = wr_exchange(&worker->next, entity);

	if (before)
		ring_push_or_inject(worker, before);
	else if (worker->nexts < WR_NEXT_MAX)
		return;
	wr_wake_one(worker->scheduler);
}

static weir_entity *next_take(struct wr_worker *worker)
{
	if (!wr_load_relaxed(&worker->next))
		return NULL; /* a push missed here is not lost: its pusher looks at the announced sleeps */
	return wr_exchange(&worker->next, NULL);
}

/* --- taking --- */

static weir_entity *steal_entity(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;

	for (unsigned i = 1; i < scheduler->worker_count; i++) {
		unsigned other = (worker->local.index + i) % scheduler->worker_count;
		struct wr_worker *victim = &scheduler->workers[other];
		weir_entity *entity = ring_take(victim);
		if (!entity)
			entity = next_take(victim);
		if (entity)
			return entity;
	}
	return NULL;
}

/* If both the due list and `next` have an entry they alternate, so that neither starves. */
static weir_entity *due_take_in_turn(struct wr_worker *worker)
{
	weir_entity *entity = NULL;

	if (!worker->was_due || !wr_load_relaxed(&worker->next))
		entity = wr_due_take(worker);
	worker->was_due = entity;
	return entity;
}

/* A hint will do for due_count: a worker that goes to sleep looks again after its announcement. */
static inline weir_entity *due_or_next_take(struct wr_worker *worker)
{
	weir_entity *entity = NULL;

	if (wr_load_relaxed(&worker->scheduler->due_count))
		entity = due_take_in_turn(worker);
	else
		worker->was_due = false;
	return entity ? entity : next_take(worker);
}

weir_entity *wr_pop(struct wr_worker *worker)
{
	weir_entity *entity = NULL;

	if (++worker->pops % WR_INJECTOR_EVERY == 0)
		entity = wr_injector_take(worker);
	if (!entity && worker->nexts < WR_NEXT_MAX && (entity = due_or_next_take(worker))) {
		worker->nexts++;
		return entity;
	}
	worker->nexts = 0;
	if (!entity)
		entity = ring_take(worker);
	if (!entity)
		entity = due_or_next_take(worker);
	if (!entity)
		entity = wr_injector_take(worker);
	return entity ? entity : steal_entity(worker);
}

/* --- looking --- */

#define STEAL_AFTER 2000 /* ns that a spinner leaves another worker's entries to that worker */

static bool worker_has_entries(struct wr_worker *worker)
{
	return wr_load(&worker->next) || wr_load(&worker->head) != wr_load(&worker->tail);
}

bool wr_spinner_has_work(struct wr_worker *worker, int64_t now, int64_t *since)
{
	weir_scheduler *scheduler = worker->scheduler;

	if (worker_has_entries(worker) || wr_injector_holds(scheduler))
		return true;
	if (!wr_any_work(scheduler))
		*since = 0;
	else if (!*since)
		*since = now;
	return *since && now - *since >= STEAL_AFTER;
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
		if (worker_has_entries(&scheduler->workers[i]))
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

/*
 * The injector (S9): the ready queue for threads that are no workers, such as the driver's. An intrusive
 * stack, one CAS, no lock. A worker empties that stack by one exchange, reverses it and appends it to the
 * backlog, a list behind a lock that only workers take. Each entry has a live reference of its own (S4).
 *
 * The due list holds what a timer has poked (wr_push_due). Only the loop thread pushes there, under the same
 * lock. Each pop looks there first, except every WR_INJECTOR_EVERY-th, which begins with the injector.
 *
 * No wake-up is lost: the worker that moves a batch from the stack to the backlog is awake meanwhile, and it
 * looks at the announced sleeps after appending.
 */
#include "scheduler/world.h"

void wr_stack_ready(weir_scheduler *scheduler, weir_entity *entity)
{
	weir_entity *top = wr_load_relaxed(&scheduler->injected);

	do
		wr_store_relaxed(&entity->next_ready, top); /* published by the CAS */
	while (!wr_cas(&scheduler->injected, &top, entity));
}

void wr_inject(weir_scheduler *scheduler, weir_entity *entity)
{
	wr_stack_ready(scheduler, entity);
	if (wr_may_wake(scheduler)) /* else the simulated loop polls the injector (run.c) */
		wr_wake_one(scheduler);
}

static weir_entity *list_reverse(weir_entity *list)
{
	weir_entity *first = NULL;

	while (list) {
		weir_entity *rest = wr_load_relaxed(&list->next_ready);
		wr_store_relaxed(&list->next_ready, first);
		first = list;
		list = rest;
	}
	return first;
}

static void list_append_locked(struct wr_ready_list *list, _Atomic uint64_t *count, weir_entity *entity)
{
	wr_store_relaxed(&entity->next_ready, NULL);
	if (list->last)
		wr_store_relaxed(&list->last->next_ready, entity);
	else
		list->first = entity;
	list->last = entity;
	wr_fetch_add(count, 1);
}

static weir_entity *list_shift_locked(struct wr_ready_list *list, _Atomic uint64_t *count)
{
	weir_entity *entity = list->first;

	if (!entity)
		return NULL;
	list->first = wr_load_relaxed(&entity->next_ready);
	if (!list->first)
		list->last = NULL;
	wr_fetch_sub(count, 1);
	return entity;
}

static void backlog_refill_locked(weir_scheduler *scheduler)
{
	weir_entity *list = list_reverse(wr_exchange(&scheduler->injected, NULL));

	while (list) {
		weir_entity *rest = wr_load_relaxed(&list->next_ready);
		list_append_locked(&scheduler->backlog, &scheduler->backlog_count, list);
		list = rest;
	}
}

bool wr_injector_holds(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->injected) || wr_load(&scheduler->backlog_count) || wr_due_holds(scheduler);
}

weir_entity *wr_injector_take(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;
	weir_entity *entity;
	bool more;

	if (!wr_load(&scheduler->injected) && !wr_load(&scheduler->backlog_count))
		return NULL;
	wr_mutex_lock(&scheduler->backlog_lock);
	backlog_refill_locked(scheduler);
	entity = list_shift_locked(&scheduler->backlog, &scheduler->backlog_count);
	more = scheduler->backlog.first;
	wr_mutex_unlock(&scheduler->backlog_lock);
	if (more)
		wr_wake_one(scheduler);
	if (entity)
		wr_drop_live(scheduler);
	return entity;
}

void wr_push_due(weir_scheduler *scheduler, weir_entity *entity)
{
	wr_mutex_lock(&scheduler->backlog_lock);
	list_append_locked(&scheduler->due, &scheduler->due_count, entity);
	wr_mutex_unlock(&scheduler->backlog_lock);
	wr_wake_one(scheduler);
}

weir_entity *wr_due_take(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;
	weir_entity *entity;

	wr_mutex_lock(&scheduler->backlog_lock);
	entity = list_shift_locked(&scheduler->due, &scheduler->due_count);
	wr_mutex_unlock(&scheduler->backlog_lock);
	if (entity)
		wr_drop_live(scheduler);
	return entity;
}

size_t wr_injector_clear(weir_scheduler *scheduler)
{
	size_t entries = wr_exchange(&scheduler->backlog_count, 0) + wr_exchange(&scheduler->due_count, 0);

	for (weir_entity *entity = wr_exchange(&scheduler->injected, NULL); entity;
	     entity = wr_load_relaxed(&entity->next_ready))
		entries++;
	scheduler->backlog = scheduler->due = (struct wr_ready_list){NULL, NULL};
	return entries;
}

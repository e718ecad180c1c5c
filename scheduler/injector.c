/*
 * The injector (S9): the way into the ready queues for who is no worker, the driver among them. An intrusive
 * stack, one CAS, no lock. A worker empties that stack by one exchange, turns it round and appends it to the
 * backlog, a list behind a lock that only workers take. Each entry has a live reference of its own (S4).
 *
 * No wake-up is lost: while a batch is on its way from the stack to the backlog its worker is awake, and it
 * looks at the announced sleeps after appending.
 */
#include "scheduler/world.h"

void wr_stack_ready(weir_scheduler *scheduler, weir_entity *entity)
{
	weir_entity *top = wr_load_relaxed(&scheduler->injected);

	do
		wr_store_relaxed(&entity->next_ready, top);	/* published by the CAS */
	while (!wr_cas(&scheduler->injected, &top, entity));
}

void wr_inject(weir_scheduler *scheduler, weir_entity *entity)
{
	wr_stack_ready(scheduler, entity);
	if (wr_may_wake(scheduler)) /* else its loop looks by itself (run.c) */
		wr_wake_one(scheduler);
}

static weir_entity *reversed(weir_entity *list)
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

static void refill_locked(weir_scheduler *scheduler)
{
	weir_entity *list = reversed(wr_exchange(&scheduler->injected, NULL));

	while (list) {
		weir_entity *rest = wr_load_relaxed(&list->next_ready);
		wr_store_relaxed(&list->next_ready, NULL);
		if (scheduler->backlog_end)
			wr_store_relaxed(&scheduler->backlog_end->next_ready, list);
		else
			scheduler->backlog = list;
		scheduler->backlog_end = list;
		wr_fetch_add(&scheduler->backlog_count, 1);
		list = rest;
	}
}

bool wr_injector_holds(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->injected) || wr_load(&scheduler->backlog_count);
}

weir_entity *wr_injector_take(struct wr_worker *worker)
{
	weir_scheduler *scheduler = worker->scheduler;
	weir_entity *entity;
	bool more;

	if (!wr_injector_holds(scheduler))
		return NULL;
	wr_mutex_lock(&scheduler->backlog_lock);
	refill_locked(scheduler);
	entity = scheduler->backlog;
	if (entity) {
		scheduler->backlog = wr_load_relaxed(&entity->next_ready);
		if (!scheduler->backlog)
			scheduler->backlog_end = NULL;
		wr_fetch_sub(&scheduler->backlog_count, 1);
	}
	more = scheduler->backlog;
	wr_mutex_unlock(&scheduler->backlog_lock);
	if (more)
		wr_wake_one(scheduler);
	if (entity)
		wr_drop(scheduler);
	return entity;
}

size_t wr_injector_clear(weir_scheduler *scheduler)
{
	size_t entries = wr_exchange(&scheduler->backlog_count, 0);

	for (weir_entity *entity = wr_exchange(&scheduler->injected, NULL); entity;
	     entity = wr_load_relaxed(&entity->next_ready))
		entries++;
	scheduler->backlog = scheduler->backlog_end = NULL;
	return entries;
}

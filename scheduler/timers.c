/*
 * Timers (S10): one binary heap of absolute times in nanoseconds, with at most one entry per entity, used by
 * the loop thread only. Workers add requests through a lock-free list. An entity is in the list at most
 * once, and its time is read after it has left the list, so the latest request counts.
 *
 * The heap's array has room for all entities, so adding an entry never fails.
 */
#include "scheduler/ready.h"
#include "scheduler/run.h"

void wr_timers_request(weir_scheduler *scheduler, weir_entity *entity, int64_t at)
{
	weir_entity *top;

	wr_store(&entity->timer_at, at);
	if (!wr_exchange(&entity->timer_listed, true)) {
		top = wr_load_relaxed(&scheduler->timers_listed);
		do
			entity->timer_next = top;
		while (!wr_cas(&scheduler->timers_listed, &top, entity));
	}
	if (at < wr_load(&scheduler->loop.until))
		wr_loop_kick(&scheduler->loop);
}

static void heap_put(weir_scheduler *scheduler, size_t place, weir_entity *entity)
{
	scheduler->heap[place] = entity;
	entity->timer_place = place + 1;
}

static void heap_rise(weir_scheduler *scheduler, size_t place)
{
	weir_entity *entity = scheduler->heap[place];

	while (place && scheduler->heap[(place - 1) / 2]->timer_due > entity->timer_due) {
		heap_put(scheduler, place, scheduler->heap[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	heap_put(scheduler, place, entity);
}

static void heap_sink(weir_scheduler *scheduler, size_t place)
{
	weir_entity *entity = scheduler->heap[place];

	for (size_t child = 2 * place + 1; child < scheduler->heap_count; child = 2 * place + 1) {
		if (child + 1 < scheduler->heap_count &&
		    scheduler->heap[child + 1]->timer_due < scheduler->heap[child]->timer_due)
			child++;
		if (scheduler->heap[child]->timer_due >= entity->timer_due)
			break;
		heap_put(scheduler, place, scheduler->heap[child]);
		place = child;
	}
	heap_put(scheduler, place, entity);
}

void wr_timers_take(weir_scheduler *scheduler)
{
	weir_entity *entity = wr_exchange(&scheduler->timers_listed, NULL);

	while (entity) {
		weir_entity *next = entity->timer_next;
		wr_exchange(&entity->timer_listed, false); /* from here on a new request lists it again */
		entity->timer_due = wr_load(&entity->timer_at);
		if (!entity->timer_place)
			heap_put(scheduler, scheduler->heap_count++, entity);
		heap_rise(scheduler, entity->timer_place - 1);
		heap_sink(scheduler, entity->timer_place - 1);
		entity = next;
	}
}

int64_t wr_timers_fire(weir_scheduler *scheduler, int64_t now)
{
	while (scheduler->heap_count && scheduler->heap[0]->timer_due <= now) {
		weir_entity *entity = scheduler->heap[0];
		entity->timer_place = 0;
		if (--scheduler->heap_count) {
			heap_put(scheduler, 0, scheduler->heap[scheduler->heap_count]);
			heap_sink(scheduler, 0);
		}
		wr_poke_due(scheduler, entity);
	}
	return scheduler->heap_count ? scheduler->heap[0]->timer_due : INT64_MAX;
}

void wr_timers_clear(weir_scheduler *scheduler)
{
	wr_timers_take(scheduler);
	while (scheduler->heap_count)
		scheduler->heap[--scheduler->heap_count]->timer_place = 0;
}

/*
 * The operators' stop functions. Each is called once for each start that succeeded, when the entity's
 * streams are idle (S7). The loop thread calls them at the end of a run. An entity whose streams still have
 * work then keeps them, and its call is owed: the next start waits for this work as long as a drain may
 * take, destroy for up to LATE_NS. If the work hangs even then, the function is never called.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "scheduler/scheduler.h"

#define LATE_NS  INT64_C(2000000000) /* destroy waits so long for work, including the time of a drain */
#define LEAST_NS INT64_C(200000000)  /* but at least so long */

static bool has_device_work(weir_entity *entity)
{
	struct wr_system *system = entity->graph->system;

	return system && !wr_system_failed(system) && !wr_entity_idle(entity);
}

/* The stop function may enqueue work: it is fenced like that of a tick (T3, T4). */
static void call_stop(weir_entity *entity)
{
	entity->stop_owed = entity->started = false;
	wr_entity_enter(entity);
	entity->plan->kind->stop(&entity->context, entity->operator_state);
	wr_entity_settle(entity);
}

static void call_or_owe_stop(weir_entity *entity)
{
	if (!entity->started || !entity->plan->kind->stop)
		return;
	if (!has_device_work(entity)) {
		call_stop(entity);
		return;
	}
	entity->stop_owed = true;
	wr_log(WEIR_LOG_WARN, "%s: its streams still have work; its stop function is called later",
	       entity->plan->name);
}

void wr_stop_operators(weir_scheduler *scheduler)
{
	for (size_t i = 0; i < scheduler->graph->entity_count; i++)
		call_or_owe_stop(&scheduler->graph->entities[i]);
}

static void wait_for_streams(weir_entity *entity, int64_t until)
{
	for (size_t i = 0; i < entity->own.count; i++)
		if (entity->own.items[i].last.point)
			(void)wr_fence_wait(entity->graph->system, entity->own.items[i].last, until);
}

static int64_t drain_time(const weir_scheduler *scheduler)
{
	return scheduler->options.drain_ns > 0 ? scheduler->options.drain_ns : 0;
}

/* Waits for what the start functions have enqueued, as long as a drain may take. No worker runs yet. */
void wr_stop_started(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	int64_t until = wr_time_add(wr_now(), drain_time(scheduler));

	for (size_t i = graph->entity_count; i--;) {
		if (graph->entities[i].started && graph->entities[i].plan->kind->stop)
			wait_for_streams(&graph->entities[i], until);
		call_or_owe_stop(&graph->entities[i]);
	}
}

/* Returns true if the work has ended: then the function was called and the entity's streams are closed. */
static bool call_owed_stop(weir_entity *entity, int64_t until)
{
	wait_for_streams(entity, until);
	if (has_device_work(entity))
		return false;
	call_stop(entity);
	if (!entity->fences_pending)
		wr_entity_close_streams(entity);
	return true;
}

weir_status wr_stop_owed(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	int64_t until = wr_time_add(wr_now(), drain_time(scheduler));

	for (size_t i = 0; i < graph->entity_count; i++) {
		weir_entity *entity = &graph->entities[i];
		if (!entity->stop_owed || call_owed_stop(entity, until))
			continue;
		graph->blamed = entity;
		return wr_fail(WEIR_E_BUSY,
			       "%s: the device still works for the run before, and the stop "
			       "function waits for that: start again later",
			       entity->plan->name);
	}
	return WEIR_OK;
}

void wr_stop_before_destroy(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	int64_t waited = scheduler->timed_out ? drain_time(scheduler) : 0;
	int64_t left = LATE_NS - waited > LEAST_NS ? LATE_NS - waited : LEAST_NS;
	int64_t until = wr_time_add(wr_now(), left);

	for (size_t i = 0; i < graph->entity_count; i++) {
		weir_entity *entity = &graph->entities[i];
		if (!entity->stop_owed || call_owed_stop(entity, until))
			continue;
		wr_log(WEIR_LOG_WARN,
		       "%s: its work on the device does not end; its stop function is not "
		       "called",
		       entity->plan->name);
		entity->stop_owed = false;
		if (!entity->fences_pending)
			wr_entity_close_streams(entity);
	}
}

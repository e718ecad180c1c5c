/*
 * An operator's stop function: once for each start that succeeded, when the entity's streams have drained
 * (S7). At the end of a run the loop's thread calls it. What the device still works on then keeps its streams
 * and is owed the call: the next start waits for it as long as a drain may take, destroy a while; only who
 * hangs in the end is never stopped.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "scheduler/scheduler.h"

#define LATE_NS INT64_C(2000000000)	/* so long destroy waits for work, what a drain has waited included */
#define LEAST_NS INT64_C(200000000)

static bool busy(weir_entity *entity)
{
	struct wr_system *system = entity->graph->system;

	return system && !wr_system_failed(system) && !wr_entity_idle(entity);
}

/*
 * It may use its stream: what it makes outlives that work, too (T4), and the next run's ticks begin anew
 * (T3).
 */
static void call(weir_entity *entity)
{
	entity->stop_owed = entity->started = false;
	wr_entity_enter(entity);
	entity->plan->kind->stop(&entity->context, entity->operator_state);
	wr_entity_settle(entity);
}

static void call_or_owe(weir_entity *entity)
{
	if (!entity->started || !entity->plan->kind->stop)
		return;
	if (!busy(entity)) {
		call(entity);
		return;
	}
	entity->stop_owed = true;
	wr_log(WEIR_LOG_WARN, "%s: a stream of its own still has work; its stop function is called later",
	       entity->plan->name);
}

void wr_stop_operators(weir_scheduler *scheduler)
{
	for (size_t i = 0; i < scheduler->graph->entity_count; i++)
		call_or_owe(&scheduler->graph->entities[i]);
}

static void wait_for_streams(weir_entity *entity, int64_t until)
{
	for (size_t i = 0; i < entity->own.count; i++)
		if (entity->own.items[i].last.point)
			(void)wr_fence_wait(entity->graph->system, entity->own.items[i].last, until);
}

static int64_t drain_of(const weir_scheduler *scheduler)
{
	return scheduler->options.drain_ns > 0 ? scheduler->options.drain_ns : 0;
}

/* What start functions enqueued is waited for as long as a drain would. Here nobody else works yet. */
void wr_stop_started(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	int64_t until = wr_time_add(wr_now(), drain_of(scheduler));

	for (size_t i = graph->entity_count; i--;) {
		if (graph->entities[i].started && graph->entities[i].plan->kind->stop)
			wait_for_streams(&graph->entities[i], until);
		call_or_owe(&graph->entities[i]);
	}
}

/* True: called. Its streams are closed then, as those of the others were at the run's end. */
static bool call_late(weir_entity *entity, int64_t until)
{
	wait_for_streams(entity, until);
	if (busy(entity))
		return false;
	call(entity);
	if (!entity->fences_pending)
		wr_entity_close_streams(entity);
	return true;
}

weir_status wr_stop_owed(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	int64_t until = wr_time_add(wr_now(), drain_of(scheduler));

	for (size_t i = 0; i < graph->entity_count; i++) {
		weir_entity *entity = &graph->entities[i];
		if (!entity->stop_owed || call_late(entity, until))
			continue;
		graph->blamed = entity;
		return wr_fail(WEIR_E_BUSY, "%s: the device still works for the run before, and its stop "
			       "function waits for that; start again later", entity->plan->name);
	}
	return WEIR_OK;
}

void wr_stop_before_destroy(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	int64_t waited = scheduler->timed_out ? drain_of(scheduler) : 0;
	int64_t left = LATE_NS - waited > LEAST_NS ? LATE_NS - waited : LEAST_NS;
	int64_t until = wr_time_add(wr_now(), left);

	for (size_t i = 0; i < graph->entity_count; i++) {
		weir_entity *entity = &graph->entities[i];
		if (!entity->stop_owed || call_late(entity, until))
			continue;
		wr_log(WEIR_LOG_WARN, "%s: its work on the device does not end; its stop function is not called",
		       entity->plan->name);
		entity->stop_owed = false;
		if (!entity->fences_pending)
			wr_entity_close_streams(entity);
	}
}

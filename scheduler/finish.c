/*
 * Ends a run. The workers have left and the live count is 0, so the loop thread owns everything. It counts
 * the messages that are left, finds the verdict, calls the operators' stop functions and publishes the
 * outcome.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "scheduler/finisher.h"
#include "scheduler/scheduler.h"

void wr_release_leftovers(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;

	for (size_t entries = wr_ready_clear(scheduler); entries; entries--)
		wr_drop_live(scheduler);
	wr_timers_clear(scheduler);
	for (size_t i = 0; i < wr_graph_all(graph); i++) {
		weir_entity *entity = wr_graph_at(graph, i);
		if (entity->wait.token)
			wr_signal_cancel(graph->system, entity->wait.token);
		if (entity->wait.refused)
			wr_signal_leave(graph->system, entity->id);
		entity->wait.token = 0;
		entity->wait.refused = false;
		entity->wait.fence_count = 0;
		if (entity->wait.held) {
			entity->wait.held = false;
			wr_drop_live(scheduler);
		}
	}
	for (weir_inlet *inlet = graph->inlets; inlet; inlet = inlet->next)
		wr_inlet_end(inlet);
	for (weir_outlet *outlet = graph->outlets; outlet; outlet = outlet->next)
		wr_outlet_end(outlet, true);
	if (graph->system)
		wr_system_drop_all_refs(graph->system);
}

/* Another thread may be taking from it: one by one, so that no destructor runs under the lock (S11). */
static uint64_t abandon_outlet(weir_outlet *outlet)
{
	weir_message *message;
	uint64_t abandoned = 0;

	do {
		wr_mutex_lock(&outlet->lock);
		message = wr_queue_abandon_one(&outlet->connection->queue);
		wr_mutex_unlock(&outlet->lock);
		weir_message_unref(message);
		abandoned += message != NULL;
	} while (message);
	return abandoned;
}

static uint64_t abandon_queues(weir_graph *graph)
{
	uint64_t abandoned = 0;

	for (size_t i = 0; i < graph->connection_count; i++) {
		struct wr_connection *connection = graph->connections[i];
		abandoned += connection->outlet ? abandon_outlet(connection->outlet)
						: wr_queue_abandon(&connection->queue);
	}
	wr_graph_forget_queued(graph);
	for (size_t i = 0; i < graph->hidden_count; i++) /* the finishers' references */
		wr_queue_abandon(&graph->hidden[i]->connection->queue);
	return abandoned;
}

static uint64_t count_ticks(const weir_graph *graph)
{
	uint64_t ticks = 0;

	for (size_t i = 0; i < graph->entity_count; i++)
		ticks += wr_read(&graph->entities[i].counters.ticks);
	return ticks;
}

/* Sets status and text of the outcome: a failure, a deadlock, a drain that timed out, or success. */
static void find_verdict(weir_scheduler *scheduler, weir_outcome *outcome)
{
	bool draining = scheduler->draining;
	char *text = NULL;

	if (!scheduler->failure && !scheduler->cut_short && !draining) {
		if (wr_deadlocked(scheduler, &text, &outcome->leftover))
			outcome->status = WEIR_E_DEADLOCK;
	} else {
		outcome->status = scheduler->failure;
		if (!scheduler->failure && scheduler->timed_out) {
			outcome->status = WEIR_E_ABANDONED;
			text = wr_undrained_text(scheduler);
		}
		outcome->abandoned = abandon_queues(scheduler->graph);
	}
	if (text)
		scheduler->text = text;
}

/* A message reference that was dropped twice overrides all other outcomes: it may have caused them. */
static void check_references(weir_scheduler *scheduler, weir_outcome *outcome)
{
	const weir_entity *by;
	weir_status status = wr_pool_judge(scheduler->graph->pool, &by);

	if (!status)
		return;
	outcome->status = status;
	wr_free(scheduler->text);
	wr_free(scheduler->culprit);
	scheduler->text = wr_strdup(weir_last_error());
	scheduler->culprit = by ? wr_strdup(by->plan->name) : NULL;
}

/* A violated conservation law (E5) overrides every other outcome but a reference that was dropped twice. */
static void check_conservation(weir_scheduler *scheduler, weir_outcome *outcome)
{
	if (!wr_conservation(scheduler))
		return;
	outcome->status = WEIR_E_FAILED;
	wr_free(scheduler->text);
	scheduler->text = wr_strdup(weir_last_error());
}

void wr_finish_run(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	weir_outcome outcome = {.size = sizeof outcome};

	wr_ready_clear(scheduler);
	wr_timers_clear(scheduler);
	if (!scheduler->cut_short)
		scheduler->waiting = wr_outside_waits_text(scheduler, true);
	find_verdict(scheduler, &outcome);
	check_conservation(scheduler, &outcome);
	check_references(scheduler, &outcome);
	outcome.ticks = count_ticks(graph);
	outcome.duration_ns = wr_now() - scheduler->started_at;
	outcome.posix_signal = scheduler->posix_signal;
	outcome.text = scheduler->text;
	outcome.entity = scheduler->culprit;
	outcome.discarded = scheduler->discarded;
	outcome.waiting = scheduler->waiting;
	if (scheduler->timed_out)
		wr_system_shorten_timeout(graph->system);
	wr_stop_operators(scheduler);
	wr_graph_close_streams(graph);
	if (graph->system) {
		wr_system_run_deferred_frees(graph->system, true);
		wr_system_run(graph->system, false);
	}
	wr_graph_forget_told(graph);
	for (weir_outlet *outlet = graph->outlets; outlet; outlet = outlet->next)
		wr_outlet_end(outlet, false);
	wr_mutex_lock(&scheduler->lock);
	scheduler->outcome = outcome;
	wr_store(&scheduler->phase, WR_ENDED);
	wr_cond_broadcast(&scheduler->changed);
	wr_mutex_unlock(&scheduler->lock);
}

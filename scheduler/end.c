/*
 * Ends a run. The workers have left and the live count is 0, so the loop thread owns everything. It counts
 * the messages that are left, finds the verdict, calls the operators' stop functions and publishes the
 * outcome.
 *
 * Deadlock (S6): at quiescence an entity that is not DONE has messages in an inbox or a front, waits for
 * room, or is refused. Otherwise the run has finished: the entities that are left wait for messages that no
 * entity can send any more.
 *
 * Each stop function is called once for each start that succeeded, when the entity's streams are idle (S7).
 * An entity whose streams still have work at the end of the run keeps them, and its call is owed: the next
 * start waits for this work as long as a drain may take, destroy for up to LATE_NS. If the work hangs even
 * then, the function is never called.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "scheduler/claim.h"
#include "scheduler/finisher.h"
#include "scheduler/gpu_time.h"
#include "scheduler/inlet.h"
#include "scheduler/outlet.h"
#include "scheduler/ready.h"
#include "scheduler/run.h"
#include "scheduler/standstill.h"
#include "scheduler/stuck.h"

/* --- what a run leaves --- */

void wr_run_release_leftovers(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;

	for (size_t entries = wr_ready_clear(scheduler); entries; entries--)
		wr_run_drop_live(scheduler);
	wr_timers_clear(scheduler);
	for (size_t i = 0; i < wr_graph_count_all(graph); i++)
		wr_wait_disarm(scheduler, wr_graph_entity_at(graph, i));
	for (weir_inlet *inlet = graph->inlets; inlet; inlet = inlet->next)
		weir_inlet_close(inlet);
	for (weir_outlet *outlet = graph->outlets; outlet; outlet = outlet->next)
		wr_outlet_end(outlet, true);
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
	for (size_t i = 0; i < graph->finisher_count; i++) /* the finishers' references */
		wr_queue_abandon(&graph->finishers[i]->connection->queue);
	return abandoned;
}

/* --- the verdict --- */

struct report {
	struct wr_text text;
	const char *last; /* name of the entity added last; NULL: none yet */
};

static bool is_done(weir_entity *entity)
{
	return wr_load(&entity->state) & WR_DONE;
}

static bool is_stuck(weir_entity *entity)
{
	return !is_done(entity) &&
	       (wr_entity_queued(entity) || (entity->receivers && wr_entity_lacks_room(entity)) ||
		wr_claims_refused(entity));
}

static const char *add_waiting(struct report *report, weir_entity *entity)
{
	const char *condition, *why;

	if (!wr_entity_waits_outside(entity, &condition, &why))
		return report->last;
	wr_text_add(&report->text, "%s%s (%s: ", report->last ? ", " : "", entity->plan->name, condition);
	wr_text_escaped(&report->text, why ? why : "not ready");
	wr_text_add(&report->text, ")");
	return entity->plan->name;
}

/* One line: the entities that wait for something from outside; NULL: none, or out of memory (S6). */
static char *outside_waits_text(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	struct report report = {{0}, NULL};

	for (size_t i = 0; i < graph->entity_count; i++)
		if (!is_done(&graph->entities[i]))
			report.last = add_waiting(&report, &graph->entities[i]);
	if (report.text.status) {
		wr_text_finish(&report.text);
		return NULL; /* the text is optional in the outcome */
	}
	return report.text.text;
}

static void set_root(weir_outcome *outcome, const weir_graph *graph, uint32_t root, weir_cause cause,
		     uint32_t on)
{
	const weir_entity *entity = wr_graph_entity_at(graph, root);

	outcome->cause = cause;
	outcome->cause_entity = entity->plan->name;
	outcome->cause_on = wr_entity_subject(entity, cause, on);
}

/*
 * Returns true if entities are stuck; *text then says why (NULL: out of memory). Counts the messages still
 * queued, and sets the cause.
 */
static bool is_deadlocked(weir_scheduler *scheduler, char **text, weir_outcome *outcome)
{
	weir_graph *graph = scheduler->graph;
	struct wr_standstill standstill;
	const struct wr_cause *root;
	struct wr_text line = {0};
	bool found = false;

	for (size_t i = 0; i < wr_graph_count_all(graph); i++) {
		weir_entity *entity = wr_graph_entity_at(graph, i);
		if (is_done(entity))
			continue;
		outcome->leftover += wr_entity_queued(entity);
		found |= is_stuck(entity);
	}
	if (!found)
		return false;
	wr_standstill_collect_at_end(&standstill, scheduler);
	wr_standstill_text(&standstill, is_stuck, &line);
	root = wr_standstill_root(&standstill);
	if (root)
		set_root(outcome, graph, root->entity, root->cause, root->on);
	wr_standstill_finish(&standstill);
	if (!line.status && !line.length)
		wr_text_add(&line, "messages are queued that no condition waits for");
	if (line.status)
		wr_text_finish(&line);
	*text = line.text ? line.text : wr_strdup("entities wait for each other");
	return true;
}

static void add_held(struct report *report, size_t held)
{
	wr_text_add(&report->text, " (%zu message%s)", held, held == 1 ? "" : "s");
}

/* Adds one entity that was not DONE at the end of a drain, and the reason. */
static void add_undrained(struct report *report, weir_entity *entity)
{
	size_t held = wr_entity_queued(entity);

	wr_text_add(&report->text, "%s%s", report->last ? ", " : "", entity->plan->name);
	report->last = entity->plan->name;
	if (held)
		add_held(report, held);
	else if (!wr_entity_streams_idle(entity))
		wr_text_add(&report->text, " (its stream has work)");
}

/* The program has not taken them; its finisher's references are to messages of the same queue. */
static void add_untaken(struct report *report, const struct wr_connection *connection)
{
	weir_outlet *outlet = connection->outlet;
	size_t held;

	wr_mutex_lock(&outlet->lock);
	held = wr_queue_count(&outlet->connection->queue);
	wr_mutex_unlock(&outlet->lock);
	if (!held)
		return;
	wr_text_add(&report->text, "%soutlet of '%s'", report->last ? ", " : "", connection->from);
	report->last = connection->from;
	add_held(report, held);
}

static bool has_streams(const weir_graph *graph)
{
	for (size_t i = 0; i < graph->entity_count; i++)
		if (graph->entities[i].streams.count)
			return true;
	return false;
}

/* One line: the entities that were not DONE when the drain timed out (S7), and what outlets hold. Call before
 * emptying queues. */
static char *undrained_text(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	struct report report = {{0}, NULL};

	if (scheduler->options.drain_ns > 0)
		wr_text_add(&report.text,
			    "the drain took longer than %g s without a message taken; left behind: ",
			    (double)scheduler->options.drain_ns / 1e9);
	else
		wr_text_add(&report.text, "the drain was given no time; left behind: ");
	for (size_t i = 0; i < graph->entity_count; i++)
		if (!is_done(&graph->entities[i]))
			add_undrained(&report, &graph->entities[i]);
	for (size_t i = 0; i < graph->connection_count; i++)
		if (graph->connections[i]->outlet)
			add_untaken(&report, graph->connections[i]);
	if (!report.last)
		wr_text_add(&report.text, "%s",
			    has_streams(graph) ? "work on the device" : "a worker that was late");
	if (scheduler->options.drain_ns > 0)
		wr_text_add(&report.text, "; if that is slow, not stuck, raise \"drain\" (weir run --drain)");
	if (report.text.status) {
		wr_text_finish(&report.text);
		return NULL; /* the outcome still has its status */
	}
	return report.text.text;
}

/* Sets status and text of the outcome: a failure, a deadlock, a drain that timed out, or success. */
static void find_verdict(weir_scheduler *scheduler, weir_outcome *outcome)
{
	bool draining = scheduler->draining;
	char *text = NULL;

	if (!scheduler->failure && !scheduler->cut_short && !draining) {
		outcome->cause = WEIR_CAUSE_DONE;
		if (is_deadlocked(scheduler, &text, outcome))
			outcome->status = WEIR_E_DEADLOCK;
	} else {
		outcome->status = scheduler->failure;
		outcome->cause = scheduler->failure ? scheduler->cause : WEIR_CAUSE_DRAIN;
		if (!scheduler->failure && scheduler->timed_out) {
			outcome->status = WEIR_E_ABANDONED;
			text = undrained_text(scheduler);
		}
		if (!scheduler->failure && !scheduler->cut_short)
			wr_stuck_look_after_drain(scheduler);
		outcome->abandoned = abandon_queues(scheduler->graph);
	}
	if (!outcome->status &&
	    scheduler->stuck_found) { /* it was drained, or the program ended what stood */
		outcome->status = WEIR_E_DEADLOCK;
		if (scheduler->stuck_entity != WR_NO_ENTITY)
			set_root(outcome, scheduler->graph, scheduler->stuck_entity, scheduler->stuck_cause,
				 scheduler->stuck_on);
		text = wr_strdup(scheduler->stuck);
	}
	if (text) {
		wr_free(scheduler->text); /* why it was drained */
		scheduler->text = text;
	}
}

void wr_outcome_name_error(weir_outcome *outcome, const struct wr_last_error *error)
{
	if (!*error->line)
		return;
	outcome->text = wr_error_text(error);
	outcome->entity = *error->entity ? error->entity : NULL;
	outcome->cause_entity = outcome->entity;
}

/* --- conservation of messages (E5) --- */

static weir_status check_queue_counts(weir_graph *graph, const struct wr_connection *connection)
{
	struct wr_connection *own = (struct wr_connection *)connection;
	const weir_entity *receiver = connection->receiver;

	if (wr_counts_conserved(&connection->queue.counters, wr_queue_count(&own->queue)))
		return WEIR_OK;
	return wr_fail(WEIR_E_FAILED,
		       "%s: messages were lost on connection %u into %s (pushed %llu, delivered %llu)",
		       graph->plan->name, connection->queue.id, receiver ? receiver->plan->name : "an outlet",
		       (unsigned long long)wr_read(&connection->queue.counters.pushed),
		       (unsigned long long)wr_read(&connection->queue.counters.delivered));
}

static weir_status check_output_counts(const weir_entity *entity, const struct wr_output *output)
{
	uint64_t pushed = 0;

	for (size_t i = 0; i < output->count; i++) {
		struct wr_connection *connection = output->connections[i];
		pushed += wr_read(&connection->queue.counters.pushed) - connection->initial_messages;
	}
	if (pushed == output->total * output->count)
		return WEIR_OK;
	return wr_fail_port(WEIR_E_FAILED, entity->plan->name, output->plan->port->name,
			    "emitted %llu to %zu connections, pushed %llu", (unsigned long long)output->total,
			    output->count, (unsigned long long)pushed);
}

static weir_status check_counts(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < graph->connection_count; i++)
		status = check_queue_counts(graph, graph->connections[i]);
	for (size_t i = 0; !status && i < graph->entity_count; i++)
		for (size_t k = 0; !status && k < graph->entities[i].output_count; k++)
			status = check_output_counts(&graph->entities[i], &graph->entities[i].outputs[k]);
	return status;
}

/* A violated conservation law (E5) overrides every other outcome but a reference that was dropped twice. */
static void check_conservation(weir_scheduler *scheduler, weir_outcome *outcome)
{
	if (!check_counts(scheduler))
		return;
	outcome->status = WEIR_E_FAILED;
	scheduler->error = *wr_error_here();
}

/* A message reference that was dropped twice overrides all other outcomes: it may have caused them. */
static void check_references(weir_scheduler *scheduler, weir_outcome *outcome)
{
	const weir_entity *by;
	weir_status status = wr_pool_check(scheduler->graph->pool, &by);

	if (!status)
		return;
	outcome->status = status;
	outcome->cause = WEIR_CAUSE_COMPUTE;
	if (by)
		wr_error_about(status, by->plan->name);
	scheduler->error = *wr_error_here();
}

/* --- messages that are still held --- */

/* At most so many live messages are in queues; a message of a fan-out is in several of them. */
static uint64_t count_queued(const weir_graph *graph)
{
	uint64_t each = wr_pool_has(graph->pool, WR_POOL_PACKS) ? 1 + WEIR_PARTS_MAX : 1, queued = 0;

	for (size_t i = 0; i < graph->connection_count; i++)
		queued += wr_queue_count(&graph->connections[i]->queue);
	return queued * each;
}

static uint64_t entity_kept(const weir_entity *entity)
{
	return entity->context.kept > 0 ? (uint64_t)entity->context.kept : 0;
}

/*
 * What is alive and neither queued nor waiting for the device is held by operators or the program. The
 * entities' own counts say by which, unless they are more than that: then others dropped some of it.
 */
static uint64_t count_held(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	uint64_t live = wr_pool_live(graph->pool), kept = 0;
	uint64_t known = count_queued(graph) + wr_system_deferred_frees(graph->system);
	uint64_t held = live > known && !scheduler->cut_short ? live - known : 0;

	for (size_t i = 0; i < graph->entity_count; i++)
		kept += entity_kept(&graph->entities[i]);
	for (size_t i = 0; kept <= held && i < graph->entity_count; i++)
		wr_store_relaxed(&graph->entities[i].counters.held, entity_kept(&graph->entities[i]));
	return held;
}

/* --- the operators' stop functions --- */

#define LATE_NS  INT64_C(2000000000) /* destroy waits so long for work, including the time of a drain */
#define LEAST_NS INT64_C(200000000)  /* but at least so long */

static bool has_device_work(weir_entity *entity)
{
	struct wr_system *system = entity->graph->system;

	return !wr_system_failed(system) && !wr_entity_streams_idle(entity);
}

/* The stop function may enqueue work: it is fenced like that of a tick (T3, T4). */
static void call_stop(weir_entity *entity)
{
	uint64_t live = wr_pool_live(entity->graph->pool);

	entity->stop_owed = entity->started = false;
	if (!wr_pool_has(entity->graph->pool, WR_POOL_COUNTED))
		entity->context.kept = 0; /* only what was emitted was subtracted */
	wr_entity_enter(entity);
	entity->plan->kind->stop(&entity->context, entity->operator_state);
	entity->context.kept -= (int64_t)(live - wr_pool_live(entity->graph->pool));
	wr_entity_drop_tick(entity);
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

/* Calls each stop function or marks it as owed. */
static void stop_operators(weir_scheduler *scheduler)
{
	for (size_t i = 0; i < scheduler->graph->entity_count; i++)
		call_or_owe_stop(&scheduler->graph->entities[i]);
}

static void wait_for_streams(weir_entity *entity, int64_t until)
{
	for (size_t i = 0; i < entity->streams.count; i++)
		if (entity->streams.items[i].last.value)
			(void)wr_fence_wait(entity->graph->system, entity->streams.items[i].last, until);
}

static int64_t drain_time(const weir_scheduler *scheduler)
{
	return scheduler->options.drain_ns > 0 ? scheduler->options.drain_ns : 0;
}

/* Waits for what the start functions have enqueued, as long as a drain may take. No worker runs yet. */
void wr_operators_stop_started(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	int64_t until = wr_time_add(wr_now(), drain_time(scheduler));

	wr_descriptors_forget(scheduler);
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

weir_status wr_operators_stop_owed(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	int64_t until = wr_time_add(wr_now(), drain_time(scheduler));

	for (size_t i = 0; i < graph->entity_count; i++) {
		weir_entity *entity = &graph->entities[i];
		if (!entity->stop_owed || call_owed_stop(entity, until))
			continue;
		return wr_fail_in(WEIR_E_BUSY, entity->plan->name,
				  "the device still works for the run before, and the stop "
				  "function waits for that: start again later");
	}
	return WEIR_OK;
}

void wr_operators_stop_before_destroy(weir_scheduler *scheduler)
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

/* --- the outcome --- */

uint64_t wr_graph_count_ticks(const weir_graph *graph)
{
	uint64_t ticks = 0;

	for (size_t i = 0; i < graph->entity_count; i++)
		ticks += wr_read(&graph->entities[i].counters.ticks);
	return ticks;
}

void wr_outcome_note(weir_scheduler *scheduler, const weir_outcome *outcome)
{
	const char *name = outcome ? outcome->cause_entity : NULL;
	const char *text = outcome ? outcome->text : NULL, *stuck = outcome ? outcome->stuck : NULL;
	const weir_entity *entity = name ? weir_graph_entity(scheduler->graph, name) : NULL;
	struct wr_ended ended = {0};

	if (outcome)
		ended = (struct wr_ended){
			.status = outcome->status,
			.cause = outcome->cause,
			.entity = entity ? entity->plan->name : NULL,
			.on = outcome->cause_on,
			.leftover = outcome->leftover,
			.abandoned = outcome->abandoned,
			.posix_signal = outcome->posix_signal,
			.drained = scheduler->draining,
		};
	if (text)
		weir_text_escape(&text, sizeof ended.text, ended.text);
	if (stuck)
		weir_text_escape(&stuck, sizeof ended.stuck, ended.stuck);
	wr_global_lock();
	scheduler->ended = ended;
	wr_global_unlock();
}

void wr_run_end(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	weir_outcome outcome = {.size = sizeof outcome};

	wr_ready_clear(scheduler);
	wr_timers_clear(scheduler);
	if (!scheduler->cut_short)
		scheduler->waiting = outside_waits_text(scheduler);
	find_verdict(scheduler, &outcome);
	check_conservation(scheduler, &outcome);
	check_references(scheduler, &outcome);
	outcome.ticks = wr_graph_count_ticks(graph);
	outcome.duration_ns = wr_now() - scheduler->started_at;
	outcome.posix_signal = scheduler->posix_signal;
	outcome.text = scheduler->text;
	wr_outcome_name_error(&outcome, &scheduler->error);
	outcome.discarded = scheduler->discarded;
	outcome.waiting = scheduler->waiting;
	outcome.stuck = scheduler->stuck;
	if (scheduler->timed_out)
		wr_system_shorten_timeout(graph->system);
	if (outcome.status)
		wr_fetch_or(&scheduler->stop_asked, WR_STOP_FAILED); /* for weir_context_stopping */
	wr_descriptors_forget(scheduler);
	for (size_t i = 0; i < graph->entity_count; i++)
		wr_gpu_time_end_run(&graph->entities[i]);
	stop_operators(scheduler);
	wr_graph_close_streams(graph);
	wr_system_run_deferred_frees(graph->system, true);
	outcome.held = count_held(scheduler);
	wr_system_set_running(graph->system, false);
	wr_graph_forget_told(graph);
	for (weir_outlet *outlet = graph->outlets; outlet; outlet = outlet->next)
		wr_outlet_end(outlet, false);
	wr_outcome_note(scheduler, &outcome);
	wr_trace_run_end(scheduler->trace, scheduler->worker_count);
	wr_mutex_lock(&scheduler->lock);
	scheduler->outcome = outcome;
	wr_store(&scheduler->phase, WR_ENDED);
	wr_cond_broadcast(&scheduler->changed);
	wr_mutex_unlock(&scheduler->lock);
}

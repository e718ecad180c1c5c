/*
 * A run: what any thread may do to it, how it begins and how it ends.
 *
 * Any thread may fail it, ask it to stop, look at its phase. These calls only set what the
 * loop's next turn obeys (loop.c) and kick the loop. And how a call from outside enters a simulated run.
 */
#include "scheduler/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "base/units.h"
#include "base/words.h"
#include "graphs/parameter.h"
#include "scheduler/ends.h"
#include "scheduler/gpu_time.h"
#include "scheduler/graph.h"
#include "scheduler/holders.h"
#include "scheduler/instances.h"
#include "scheduler/memory.h"
#include "scheduler/scheduler.h"
#include "scheduler/standstill.h"

/*
 * Keeps this thread's last error as the failure of the run, unless there is one. The entity that met the
 * error of a failed device need not have caused it: the text lists the suspects, and an entity is accused
 * only if there is just one (E3).
 */
static void keep_failure(weir_scheduler *scheduler, const weir_entity *entity, weir_cause cause,
			 weir_status status)
{
	struct wr_system *system = scheduler->graph->system;
	bool lost = !wr_system_check_device(system);

	if (lost) {
		const char *accused = wr_system_accused(system);
		entity = accused ? weir_graph_entity(scheduler->graph, accused) : NULL;
		status = wr_fail(WEIR_E_DEVICE, "%s", wr_system_failure(system));
	} else if (!*weir_last_error())
		wr_fail(status, "%s", weir_status_text(status));
	if (entity)
		wr_error_blame(status, entity->plan->name);
	wr_mutex_lock(&scheduler->lock);
	if (!scheduler->failure && !(wr_load(&scheduler->stop_asked) & WR_STOP_TOLD)) {
		scheduler->failure = status;
		scheduler->cause = lost ? WEIR_CAUSE_DEVICE : cause;
		scheduler->error = *wr_error_here();
	}
	wr_mutex_unlock(&scheduler->lock);
}

void wr_run_fail(weir_scheduler *scheduler, const weir_entity *entity, weir_cause cause, weir_status status)
{
	keep_failure(scheduler, entity, cause, status);
	wr_fetch_or(&scheduler->stop_asked, WR_STOP_FAILED);
	wr_loop_kick(&scheduler->loop);
}

void weir_scheduler_stop(weir_scheduler *scheduler, unsigned flags)
{
	wr_fetch_or(&scheduler->stop_asked, flags & WEIR_STOP_DRAIN ? WR_STOP_DRAIN : WR_STOP_NOW);
	if (scheduler->graph->owns_world)
		return; /* may be a signal handler, and the loop polls `stop_asked` (loop.c) */
	wr_loop_kick(&scheduler->loop);
}

/*
 * The caller need not be in the world of a simulated run, nor hold the run open, so it leaves the failure to
 * the loop. The bit tells those that fail later that they are not the first.
 */
weir_status weir_scheduler_fail(weir_scheduler *scheduler, weir_status failure, const char *text)
{
	struct wr_last_error *here = wr_error_here(), before = *here, told;

	if (failure >= WEIR_OK)
		return wr_fail(WEIR_E_INVALID, "a run fails by a failure, and status %d is none", failure);
	wr_fail(failure, "%s", text ? text : weir_status_text(failure));
	told = *here;
	*here = before;
	wr_global_lock();
	if (!(wr_fetch_or(&scheduler->stop_asked, WR_STOP_TOLD | WR_STOP_FAILED) & WR_STOP_TOLD))
		scheduler->told = told;
	wr_global_unlock();
	wr_loop_kick(&scheduler->loop);
	return WEIR_OK;
}

/* The scheduler's text is the failure's, if there is one. */
static void keep_reason(weir_scheduler *scheduler, const weir_entity *entity, const char *format,
			va_list list)
{
	char given[400], shown[sizeof given], *reason;

	vsnprintf(given, sizeof given, format, list);
	wr_shown_cut(shown, sizeof shown, given);
	reason = wr_format("%s: %s", entity->plan->name, shown);
	wr_mutex_lock(&scheduler->lock);
	if (!scheduler->failure && !scheduler->text) {
		scheduler->text = reason;
		reason = NULL;
	}
	wr_mutex_unlock(&scheduler->lock);
	wr_free(reason);
}

void weir_context_drain(weir_context *context, const char *format, ...)
{
	weir_entity *entity = weir_context_entity(context);
	weir_scheduler *scheduler = wr_load_acquire(&entity->scheduler);
	va_list list;

	va_start(list, format);
	if (format)
		keep_reason(scheduler, entity, format, list);
	va_end(list);
	wr_fetch_or(&scheduler->stop_asked, WR_STOP_GRAPH | WR_STOP_DRAIN);
	weir_scheduler_stop(scheduler, WEIR_STOP_DRAIN);
	wr_loop_kick(&scheduler->loop); /* in a simulated world, too: no signal handler calls this */
}

weir_status weir_context_fail_after_drain(weir_context *context, weir_status failure, const char *format, ...)
{
	weir_entity *entity = weir_context_entity(context);
	va_list list;

	if (!context->computing || failure >= WEIR_OK)
		return wr_fail(WEIR_E_INVALID, "%s: fail_after_drain is for compute, with a failure",
			       entity->plan->name);
	va_start(list, format);
	wr_vfail(failure, format, list);
	va_end(list);
	keep_failure(wr_load_acquire(&entity->scheduler), entity, WEIR_CAUSE_COMPUTE, failure);
	weir_context_drain(context, NULL);
	if (context->entity->plan->role != WR_INSTANCE)
		return weir_context_finish(context);
	wr_instances_end(context);
	return WEIR_OK;
}

bool weir_scheduler_running(const weir_scheduler *scheduler)
{
	return !wr_run_ended((weir_scheduler *)scheduler);
}

bool weir_scheduler_stopping(const weir_scheduler *scheduler)
{
	weir_scheduler *self = (weir_scheduler *)scheduler;

	return !wr_run_ended(self) && wr_load(&self->stop_asked);
}

/* --- simulated runs --- */

struct visit {
	weir_scheduler *scheduler;
	wr_world_fn *fn;
	void *arg;
};

/* Wakes a worker for entries that were pushed from outside, as the loop does now and then (loop.c). */
static weir_status enter_world(void *arg)
{
	const struct visit *visit = arg;

	if (wr_ready_injector_holds(visit->scheduler))
		wr_wake_one(visit->scheduler);
	return visit->fn(visit->scheduler, visit->arg);
}

weir_status wr_world_call(weir_scheduler *scheduler, wr_world_fn *fn, void *arg)
{
	struct visit visit = {scheduler, fn, arg};

	if (!scheduler->sim || wr_sim_current() == scheduler->sim)
		return fn(scheduler, arg);
	return wr_sim_try(scheduler->sim, enter_world, &visit);
}

/*
 * === the beginning ===
 *
 * Starts a run (S8): resets everything while no other thread looks at it, runs the operators' start
 * functions, exchanges every entity to QUEUED and puts it into the injector. Only then one fetch_add opens
 * the live counter and takes the references of all these entries.
 *
 * Messages, host and device memory and signals are reserved before the first tick, so that no tick waits for
 * an allocator or for the driver. Beyond these bounds they are created when they are needed.
 */

/* --- what is reserved --- */

#define RESERVE_MOST 32768 /* messages, 12 MiB */
#define SIGNALS_MAX  256   /* per device */

/* Returns true if a stream pool in use names the device. Without any pool device 0 is used. */
static bool uses_device(const struct wr_plan *plan, int device)
{
	for (size_t i = 0; i < plan->stream_pool_count; i++)
		if (plan->stream_pools[i].device == device && plan->stream_pools[i].users)
			return true;
	return !device && !plan->stream_pool_count;
}

static bool works_on(const weir_entity *entity, int device)
{
	return entity->plan->kind->flags & WEIR_OPERATOR_STREAM && wr_instances_operates(entity) &&
	       entity->plan->device == device;
}

/* Returns true if the entity will wait for work of the device: by a condition, or by an implied gate (C8). */
static bool waits_for(const weir_entity *entity, int device)
{
	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; k < entity->inputs[i].count; k++) {
			const weir_entity *sender = entity->inputs[i].connections[k]->sender;
			if (sender && entity->has_content && sender->plan->device == device)
				return true;
			if (sender && entity->inputs[i].gate && works_on(sender, device))
				return true;
		}
	return false;
}

/*
 * Two for each entity that is gated on work of the device, and two for each whose work there is bounded by
 * max_in_flight, since the loop releases a token only a little after it has fired. One for the end of each
 * stream.
 */
static weir_status reserve_signals(weir_graph *graph, int device)
{
	size_t count = 0;

	if (wr_system_failed(graph->system))
		return WEIR_OK; /* the run will fail with the device's error */
	for (size_t i = 0; i < graph->entity_count; i++) {
		const weir_entity *entity = &graph->entities[i];
		count += waits_for(entity, device) ? 2 : 0;
		count += works_on(entity, device);
		count += works_on(entity, device) && entity->flight.bound ? 2 : 0;
	}
	for (size_t i = 0; i < graph->finisher_count; i++)
		count += graph->finishers[i]->outlet->connection->sender->plan->device == device ? 2 : 0;
	return wr_signals_reserve(graph->system, device, count < SIGNALS_MAX ? count : SIGNALS_MAX);
}

static weir_status reserve_all(weir_graph *graph)
{
	const struct wr_plan *plan = graph->plan;
	bool memory =
		wr_system_backend(graph->system) == WEIR_BACKEND_CUDA; /* else device memory is host memory */
	size_t messages = graph->entity_count;
	weir_status status;

	for (size_t i = 0; i < graph->connection_count; i++) {
		size_t capacity = graph->connections[i]->queue.capacity;
		messages += capacity < 1024 ? capacity + 1 : 1024;
	}
	status = wr_pool_reserve(graph->pool, messages < RESERVE_MOST ? messages : RESERVE_MOST);
	if (status)
		return status;
	if (memory)
		status = wr_system_reserve(graph->system, WEIR_DEVICE_HOST,
					   (size_t)plan->scheduler.host_memory);
	else if (!graph->world) /* no gain in virtual time */
		status = wr_system_open_arena(graph->system, WEIR_DEVICE_HOST);
	for (int device = 0; !status && device < wr_system_devices(graph->system); device++) {
		if (!uses_device(plan, device))
			continue;
		if (memory)
			status = wr_system_reserve(graph->system, device,
						   (size_t)plan->scheduler.device_memory);
		else if (!graph->world)
			status = wr_system_open_arena(graph->system, device);
		if (!status)
			status = reserve_signals(graph, device);
	}
	return status;
}

/* --- the start --- */

/* Tells observers what the graph has. */
static void trace_graph(weir_scheduler *scheduler)
{
	struct wr_trace *trace = scheduler->trace;
	weir_graph *graph = scheduler->graph;

	for (size_t i = 0; i < wr_graph_count_all(graph); i++) {
		static const enum wr_trace_part parts[] = {
			[WR_PLAIN] = WR_PART_ALL,
			[WR_DEALER] = WR_PART_DEALS,
			[WR_INSTANCE] = WR_PART_INSTANCE,
			[WR_JOINER] = WR_PART_ORDERS,
		};
		const struct wr_plan_entity *plan = wr_graph_entity_at(graph, i)->plan;

		wr_trace_entity(trace, (uint32_t)i, plan->name);
		if (plan->role != WR_PLAIN)
			wr_trace_part(trace, (uint32_t)i, parts[plan->role], plan->dealer, plan->number,
				      plan->instances);
	}
	for (size_t i = 0; i < graph->connection_count; i++) {
		struct wr_connection *connection = graph->connections[i];
		uint32_t capacity = connection->queue.capacity;

		/* A `latest` queue is never full: its sender is not held back. */
		capacity += connection->queue.policy == WEIR_POLICY_LATEST;
		connection->queue.trace = trace;
		wr_trace_queue(trace, connection->queue.id,
			       connection->sender ? connection->sender->id : UINT32_MAX,
			       connection->receiver ? connection->receiver->id : UINT32_MAX, connection->from,
			       connection->to, capacity);
	}
	wr_memory_pools_watch(graph, trace ? scheduler : NULL);
}

static weir_status open_streams(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < graph->entity_count; i++) {
		weir_entity *entity = &graph->entities[i];
		if (entity->plan->kind->flags & WEIR_OPERATOR_STREAM && wr_instances_operates(entity) &&
		    !entity->current_stream)
			status = wr_entity_take_stream(entity);
		if (!status && entity->current_stream)
			status = wr_stream_reserve(entity->current_stream, entity->flight.bound);
		if (status)
			wr_error_blame(status, entity->plan->name);
	}
	return status;
}

static weir_status start_operator(weir_entity *entity)
{
	const weir_operator *kind = entity->plan->kind;
	weir_status status = WEIR_OK, settled;
	struct wr_last_error error;

	wr_entity_enter(entity);
	wr_error_clear(wr_error_here());
	if (kind->start && wr_instances_operates(entity))
		status = kind->start(&entity->context, entity->operator_state, entity->plan->values);
	if (status)
		status = wr_failure_explain(status, "start");
	if (!status)
		status = wr_values_check(entity->plan->values);
	entity->started = !status;
	error = *wr_error_here();
	settled = wr_entity_drop_tick(entity); /* also after a failure: it may have enqueued work */
	if (status)
		*wr_error_here() = error;
	else
		status = settled;
	return status ? wr_error_blame(status, entity->plan->name) : WEIR_OK;
}

static void outcome_note(weir_scheduler *scheduler, const weir_outcome *outcome);

static void clear_scheduler(weir_scheduler *scheduler)
{
	wr_ready_clear(scheduler);
	wr_timers_clear(scheduler);
	wr_store(&scheduler->stop_asked, 0);
	wr_store(&scheduler->workers_ended, 0);
	wr_store(&scheduler->sleepers, 0);
	wr_store(&scheduler->watching, false);
	wr_store(&scheduler->not_done, wr_graph_count_all(scheduler->graph));
	wr_free(scheduler->text);
	wr_free(scheduler->waiting);
	scheduler->text = scheduler->waiting = NULL;
	scheduler->cause = WEIR_CAUSE_NONE;
	outcome_note(scheduler, NULL);
	wr_error_clear(&scheduler->error);
	scheduler->failure = WEIR_OK;
	scheduler->posix_signal = 0;
	scheduler->draining = scheduler->timed_out = scheduler->cut_short = false;
	wr_store(&scheduler->spinners, 0); /* a worker may have died in one of these roles */
	wr_store(&scheduler->standby, false);
	wr_store(&scheduler->poller, 0);
	scheduler->idle_ticks = UINT64_MAX;
	wr_holders_reset(scheduler);
	scheduler->watch_at = 0;
	scheduler->descriptors_at = 0;
	scheduler->outside_at = 0;
	scheduler->outcome = (weir_outcome){0};
}

/* Workers wait on their parkers until the run is open. Fewer workers than requested are accepted (F41). */
static weir_status start_workers(weir_scheduler *scheduler)
{
	unsigned n = 0;
	weir_status status = WEIR_OK;

	for (; !status && n < scheduler->worker_asked; n += !status) {
		struct wr_worker *worker = &scheduler->workers[n];
		wr_store(&worker->parker.word, 0);
		worker->nexts = 0;
		wr_store_relaxed(&worker->pops, 0);
		worker->was_due = false;
		status = wr_thread_start_watched(&worker->thread, worker->name, wr_worker_main, worker,
						 wr_worker_died);
	}
	scheduler->worker_count = n;
	scheduler->costs = n > 1;
	scheduler->own_cores = n <= wr_cores();
	scheduler->all_asleep = n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
	return n ? WEIR_OK : status;
}

static void trace_initial_messages(struct wr_trace *trace, const weir_graph *graph)
{
	for (size_t i = 0; trace && i < graph->connection_count; i++) {
		struct wr_queue *queue = &graph->connections[i]->queue;
		uint64_t head = wr_read(&queue->head) + queue->moved;

		for (uint32_t k = 0; k < graph->connections[i]->initial_messages; k++)
			wr_trace_deliver(trace, WR_LANE_OUTSIDE, queue->id, head + k);
	}
}

static void open_run(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;

	for (size_t i = 0; i < wr_graph_count_all(graph); i++) {
		wr_exchange(&wr_graph_entity_at(graph, i)->state, WR_POKED);
		wr_ready_inject_no_wake(scheduler, wr_graph_entity_at(graph, i));
	}
	scheduler->started_at = graph->started_at = wr_now();
	wr_stuck_begin(scheduler, scheduler->started_at);
	wr_trace_run_begin(scheduler->trace, scheduler->worker_count);
	trace_initial_messages(scheduler->trace, graph);
	scheduler->ends_at = scheduler->options.max_duration_ns > 0
				     ? wr_time_add(scheduler->started_at, scheduler->options.max_duration_ns)
				     : INT64_MAX;
	wr_live_open(&scheduler->live,
		     wr_graph_count_all(graph) + scheduler->worker_count + wr_inlets_count(graph));
	wr_inlets_open(graph);
	wr_store(&scheduler->phase, WR_OPEN); /* after the counter is open: the loop may close it at once */
	for (unsigned i = 0; i < scheduler->worker_count; i++)
		wr_unpark(&scheduler->workers[i].parker);
	wr_loop_kick(&scheduler->loop);
}

static void operators_stop_started(weir_scheduler *scheduler);

static weir_status start_operators_and_workers(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < graph->entity_count; i++) {
		status = start_operator(&graph->entities[i]);
		if (!status)
			wr_entity_trace_streams(&graph->entities[i], scheduler->trace);
	}
	if (!status)
		status = start_workers(scheduler);
	if (!status)
		return WEIR_OK;
	scheduler->error = *wr_error_here();                 /* stop functions may overwrite it */
	wr_fetch_or(&scheduler->stop_asked, WR_STOP_FAILED); /* for weir_context_stopping */
	operators_stop_started(scheduler);
	*wr_error_here() = scheduler->error;
	return status;
}

/* Keeps explain away: while `starting` is set no other thread looks at an entity. */
static void set_starting(weir_scheduler *scheduler, bool starting)
{
	wr_mutex_lock(&scheduler->lock);
	while (scheduler->explaining)
		wr_cond_wait(&scheduler->changed, &scheduler->lock, WR_FOREVER);
	scheduler->starting = starting;
	wr_mutex_unlock(&scheduler->lock);
}

static weir_status operators_stop_owed(weir_scheduler *scheduler);

static weir_status prepare_run(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	size_t discarded = 0;
	weir_status status;

	clear_scheduler(scheduler);
	status = operators_stop_owed(scheduler);
	if (!status)
		status = wr_graph_check_ports(graph);
	if (!status)
		status = wr_scheduler_check_files(scheduler);
	if (!status)
		status = wr_graph_reset(graph, &discarded);
	scheduler->discarded = discarded;
	trace_graph(scheduler);
	if (!status)
		status = reserve_all(graph);
	if (scheduler->options.observe) /* it counts what its computes hold, too: two branches a reference */
		wr_pool_mark(graph->pool, WR_POOL_COUNTED);
	else
		wr_pool_clear(graph->pool, WR_POOL_COUNTED);
	if (!status)
		status = open_streams(scheduler);
	for (size_t i = 0; !status && i < graph->entity_count; i++)
		wr_gpu_time_begin_run(&graph->entities[i], scheduler);
	return status ? status : start_operators_and_workers(scheduler);
}

static void outcome_name_error(weir_outcome *outcome, const struct wr_last_error *error);

weir_status wr_run_start(weir_scheduler *scheduler)
{
	weir_status status;

	set_starting(scheduler, true);
	wr_system_set_running(scheduler->graph->system, true);
	status = wr_loop_activate(&scheduler->loop, true);
	if (!status)
		status = prepare_run(scheduler);
	if (!status) {
		wr_outlets_open(scheduler->graph);
		open_run(scheduler);
	} else {
		wr_error_here()->cause = WEIR_CAUSE_START;
		scheduler->error = *wr_error_here(); /* for weir_scheduler_wait() */
		wr_loop_activate(&scheduler->loop, false);
		wr_graph_close_streams(scheduler->graph);
		wr_system_set_running(scheduler->graph->system, false);
		scheduler->outcome = (weir_outcome){
			.size = sizeof scheduler->outcome, .status = status, .cause = WEIR_CAUSE_START};
		outcome_name_error(&scheduler->outcome, &scheduler->error);
		outcome_note(scheduler, &scheduler->outcome);
	}
	set_starting(scheduler, false);
	return status;
}

/*
 * === the end ===
 *
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
		bool turn =
			connection->receiver && wr_instances_turn(connection->receiver, connection->input);
		uint64_t left = connection->outlet ? abandon_outlet(connection->outlet)
						   : wr_queue_abandon(&connection->queue);

		abandoned += turn ? 0 : left;
	}
	wr_graph_forget_queued(graph);
	for (size_t i = 0; i < graph->finisher_count; i++) /* the finishers' references */
		wr_queue_abandon(&graph->finishers[i]->connection->queue);
	return abandoned;
}

/* --- the verdict --- */

static bool is_done(weir_entity *entity)
{
	return wr_load(&entity->state) & WR_DONE;
}

static bool is_stuck(weir_entity *entity)
{
	return !is_done(entity) &&
	       (wr_entity_queued(entity, false) || (entity->receivers && wr_entity_lacks_room(entity)) ||
		wr_claims_refused(entity));
}

/* Both texts are optional in the outcome: NULL if memory ran out. */
static char *take_text(struct wr_text *text)
{
	if (text->status)
		wr_text_finish(text);
	return text->text;
}

/* One line: the entities that wait for something from outside; NULL: none, or out of memory (S6). */
static char *outside_waits_text(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	const char *between = "", *condition, *why;
	struct wr_text text = {0};

	for (size_t i = 0; i < graph->entity_count; i++) {
		weir_entity *entity = &graph->entities[i];
		if (is_done(entity) || !wr_entity_waits_outside(entity, &condition, &why))
			continue;
		wr_text_add(&text, "%s%s (%s: ", between, entity->plan->name, condition);
		wr_text_escaped(&text, why ? why : "not ready");
		wr_text_add(&text, ")");
		between = ", ";
	}
	return take_text(&text);
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
		outcome->leftover += wr_entity_queued(entity, true);
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

static void add_held(struct wr_text *text, size_t held)
{
	wr_text_add(text, " (%zu message%s)", held, held == 1 ? "" : "s");
}

/* One line: the entities that were not DONE when the drain timed out (S7), and what outlets hold. Call before
 * emptying queues. */
static char *undrained_text(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	struct wr_text text = {0};
	const char *between = "", *owner = NULL;
	bool streams = false;
	size_t open;
	int64_t age;

	if (scheduler->options.drain_ns > 0)
		wr_text_add(&text, "the drain took longer than %s without a message taken; left behind: ",
			    wr_time_shown(scheduler->options.drain_ns).text);
	else
		wr_text_add(&text, "the drain was given no time; left behind: ");
	for (size_t i = 0; i < graph->plan->shown_count; i++) {
		weir_entity *entity = &graph->entities[i], *part;
		bool done = true, idle = true;
		size_t held = 0;

		for (uint32_t k = 0; (part = wr_instances_part(entity, k)); k++) {
			streams |= part->streams.count > 0;
			done &= is_done(part);
			idle &= wr_entity_streams_idle(part);
			held += is_done(part) ? 0 : wr_entity_queued(part, true);
		}
		if (done)
			continue;
		wr_text_add(&text, "%s%s", between, entity->plan->name);
		between = ", ";
		if (held)
			add_held(&text, held);
		else if (!idle)
			wr_text_add(&text, " (its stream has work)");
	}
	for (size_t i = 0; i < graph->connection_count; i++) {
		struct wr_connection *connection = graph->connections[i];
		size_t held;
		if (!connection->outlet)
			continue;
		wr_mutex_lock(&connection->outlet->lock);
		held = wr_queue_count(&connection->queue); /* its finisher holds the same messages */
		wr_mutex_unlock(&connection->outlet->lock);
		if (!held)
			continue;
		wr_text_add(&text, "%soutlet of '%s'", between, connection->from);
		between = ", ";
		add_held(&text, held);
	}
	open = wr_system_promises_of_run(graph->system, &owner, &age);
	if (open)
		wr_text_add(
			&text,
			"%swaits for a fence that the program completes: %zu open, oldest %s, producer %s",
			*between ? "; " : "", open, wr_time_shown(age).text, owner);
	else if (!*between)
		wr_text_add(&text, "%s", streams ? "work on the device" : "a worker that was late");
	if (scheduler->options.drain_ns > 0)
		wr_text_add(&text, "; if that is slow, not stuck, raise \"drain\" (weir run --drain)");
	return take_text(&text);
}

/* Sets status and text of the outcome: a failure, a deadlock, a drain that timed out, or success. */
static void find_verdict(weir_scheduler *scheduler, weir_outcome *outcome)
{
	bool draining = scheduler->draining;
	char *text = NULL;
	unsigned asked;

	wr_global_lock(); /* the program's failure is kept, unless another one was before it */
	asked = wr_fetch_and(&scheduler->stop_asked, ~(unsigned)WR_STOP_TOLD);
	if (asked & WR_STOP_TOLD)
		*wr_error_here() = scheduler->told;
	wr_global_unlock();
	if (asked & WR_STOP_TOLD)
		keep_failure(scheduler, NULL, WEIR_CAUSE_DRAIN, wr_error_here()->status);
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

/* Text and entity of the failure, if there was one. Borrows the error. */
static void outcome_name_error(weir_outcome *outcome, const struct wr_last_error *error)
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

/*
 * A violated conservation law (E5) overrides every other outcome but a message reference that was dropped
 * twice, which may have caused them all.
 */
static void check_conservation(weir_scheduler *scheduler, weir_outcome *outcome)
{
	weir_graph *graph = scheduler->graph;
	weir_status status = WEIR_OK;
	const weir_entity *by;

	for (size_t i = 0; !status && i < graph->connection_count; i++)
		status = check_queue_counts(graph, graph->connections[i]);
	for (size_t i = 0; !status && i < graph->entity_count; i++)
		for (size_t k = 0; !status && k < graph->entities[i].output_count; k++)
			status = check_output_counts(&graph->entities[i], &graph->entities[i].outputs[k]);
	if (status) {
		outcome->status = status;
		scheduler->error = *wr_error_here();
	}
	status = wr_pool_check(graph->pool, &by);
	if (!status)
		return;
	outcome->status = status;
	outcome->cause = WEIR_CAUSE_COMPUTE;
	if (by)
		wr_error_about(status, by->plan->name);
	scheduler->error = *wr_error_here();
}

/* --- messages that are still held --- */

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
	uint64_t live = wr_pool_live(graph->pool), known = 0, held, kept = 0;

	for (size_t i = 0; i < graph->connection_count; i++) {
		known += wr_queue_count(&graph->connections[i]->queue);
		known += graph->connections[i]->queue.shown != NULL;
	}
	/* At most so many live messages are in queues; a message of a fan-out is in several of them. */
	known *= wr_pool_has(graph->pool, WR_POOL_PACKS) ? 1 + WEIR_PARTS_MAX : 1;
	known += wr_system_deferred_frees(graph->system);
	held = live > known && !scheduler->cut_short ? live - known : 0;
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
	entity->context.stopping = true;
	entity->plan->kind->stop(&entity->context, entity->operator_state);
	entity->context.stopping = false;
	entity->context.kept -= (int64_t)(live - wr_pool_live(entity->graph->pool));
	wr_entity_drop_tick(entity);
}

static void call_or_owe_stop(weir_entity *entity)
{
	wr_claims_reset(entity); /* what it kept */
	if (!entity->started || !entity->plan->kind->stop || !wr_instances_operates(entity))
		return;
	if (!has_device_work(entity)) {
		call_stop(entity);
		return;
	}
	entity->stop_owed = true;
	wr_log(WEIR_LOG_WARN, "%s: its streams still have work; its stop function is called later",
	       entity->plan->name);
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

/*
 * A start failed: in reverse order.
 * Waits for what the start functions have enqueued, as long as a drain may take. No worker runs yet.
 */
static void operators_stop_started(weir_scheduler *scheduler)
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

/* Before a start: makes the calls that are owed. Fails: WEIR_E_BUSY if the device still works for one. */
static weir_status operators_stop_owed(weir_scheduler *scheduler)
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

/* Publishes the outcome to statistics; NULL: a run begins. */
static void outcome_note(weir_scheduler *scheduler, const weir_outcome *outcome)
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
	outcome.ticks = wr_graph_count_ticks(graph);
	outcome.duration_ns = wr_now() - scheduler->started_at;
	outcome.posix_signal = scheduler->posix_signal;
	outcome.text = scheduler->text;
	outcome_name_error(&outcome, &scheduler->error);
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
	for (size_t i = 0; i < graph->entity_count; i++)
		call_or_owe_stop(&graph->entities[i]);
	wr_graph_close_streams(graph);
	wr_system_run_deferred_frees(graph->system, true);
	outcome.held = count_held(scheduler);
	wr_system_set_running(graph->system, false);
	wr_graph_forget_told(graph);
	for (weir_outlet *outlet = graph->outlets; outlet; outlet = outlet->next)
		wr_outlet_end(outlet, false);
	outcome_note(scheduler, &outcome);
	wr_trace_run_end(scheduler->trace, scheduler->worker_count);
	wr_mutex_lock(&scheduler->lock);
	scheduler->outcome = outcome;
	wr_store(&scheduler->phase, WR_ENDED);
	wr_cond_broadcast(&scheduler->changed);
	wr_mutex_unlock(&scheduler->lock);
}

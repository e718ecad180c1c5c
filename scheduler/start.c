/*
 * Starts a run (S8): resets everything while no other thread looks at it, runs the operators' start
 * functions, exchanges every entity to QUEUED and puts it into the injector. Only then one fetch_add opens
 * the live counter and takes the references of all these entries.
 *
 * Messages, host and device memory and signals are reserved before the first tick, so that no tick waits for
 * an allocator or for the driver. Beyond these bounds they are created when they are needed.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "graphs/parameter.h"
#include "scheduler/finisher.h"
#include "scheduler/gpu_time.h"
#include "scheduler/holders.h"
#include "scheduler/inlet.h"
#include "scheduler/memory_pool.h"
#include "scheduler/outlet.h"
#include "scheduler/ready.h"
#include "scheduler/run.h"
#include "scheduler/stuck.h"

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
	return entity->plan->kind->flags & WEIR_OPERATOR_STREAM && entity->plan->device == device;
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

static weir_status reserve_devices(weir_graph *graph)
{
	const struct wr_plan *plan = graph->plan;
	bool memory =
		wr_system_backend(graph->system) == WEIR_BACKEND_CUDA; /* else device memory is host memory */
	weir_status status = WEIR_OK;

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

static weir_status reserve_all(weir_graph *graph)
{
	size_t messages = 0;
	weir_status status;

	for (size_t i = 0; i < graph->connection_count; i++) {
		size_t capacity = graph->connections[i]->queue.capacity;
		messages += capacity < 1024 ? capacity + 1 : 1024;
	}
	messages += graph->entity_count;
	status = wr_pool_reserve(graph->pool, messages < RESERVE_MOST ? messages : RESERVE_MOST);
	return status ? status : reserve_devices(graph);
}

/* A run that is observed counts what its computes hold, too: two branches a reference. */
static void count_holders(weir_scheduler *scheduler)
{
	if (scheduler->options.observe)
		wr_pool_mark(scheduler->graph->pool, WR_POOL_COUNTED);
	else
		wr_pool_clear(scheduler->graph->pool, WR_POOL_COUNTED);
}

/* --- the start --- */

static void trace_queue(struct wr_trace *trace, struct wr_connection *connection)
{
	connection->queue.trace = trace;
	wr_trace_queue(trace, connection->queue.id, connection->sender ? connection->sender->id : UINT32_MAX,
		       connection->receiver ? connection->receiver->id : UINT32_MAX, connection->from,
		       connection->to, connection->queue.capacity);
}

/* Tells observers what the graph has. */
static void trace_graph(weir_scheduler *scheduler)
{
	const weir_graph *graph = scheduler->graph;

	for (size_t i = 0; i < wr_graph_count_all(graph); i++)
		wr_trace_entity(scheduler->trace, (uint32_t)i, wr_graph_entity_at(graph, i)->plan->name);
	for (size_t i = 0; i < graph->connection_count; i++)
		trace_queue(scheduler->trace, graph->connections[i]);
	wr_memory_pools_watch(scheduler->graph, scheduler->trace ? scheduler : NULL);
}

static weir_status open_streams(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < graph->entity_count; i++) {
		weir_entity *entity = &graph->entities[i];
		if (entity->plan->kind->flags & WEIR_OPERATOR_STREAM && !entity->current_stream)
			status = wr_entity_take_stream(entity);
		if (!status && entity->current_stream)
			status = wr_stream_reserve(entity->current_stream, entity->flight.bound);
		if (status)
			wr_error_blame(status, entity->plan->name);
	}
	return status;
}

static void begin_gpu_time(weir_scheduler *scheduler)
{
	for (size_t i = 0; i < scheduler->graph->entity_count; i++)
		wr_gpu_time_begin_run(&scheduler->graph->entities[i], scheduler);
}

static weir_status start_operator(weir_entity *entity)
{
	const weir_operator *kind = entity->plan->kind;
	weir_status status = WEIR_OK, settled;
	struct wr_last_error error;

	wr_entity_enter(entity);
	wr_error_clear(wr_error_here());
	if (kind->start)
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

static weir_status start_operators(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < graph->entity_count; i++) {
		status = start_operator(&graph->entities[i]);
		if (status)
			break;
		wr_entity_trace_streams(&graph->entities[i], scheduler->trace);
	}
	return status;
}

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
	wr_outcome_note(scheduler, NULL);
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
		worker->pops = worker->nexts = 0;
		worker->was_due = false;
		status = wr_thread_start_watched(&worker->thread, worker->name, wr_worker_main, worker,
						 wr_worker_died);
	}
	scheduler->worker_count = n;
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

static weir_status start_operators_and_workers(weir_scheduler *scheduler)
{
	weir_status status = start_operators(scheduler);

	if (!status)
		status = start_workers(scheduler);
	if (!status)
		return WEIR_OK;
	scheduler->error = *wr_error_here();                 /* stop functions may overwrite it */
	wr_fetch_or(&scheduler->stop_asked, WR_STOP_FAILED); /* for weir_context_stopping */
	wr_operators_stop_started(scheduler);
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

static weir_status prepare_run(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	size_t discarded = 0;
	weir_status status;

	clear_scheduler(scheduler);
	status = wr_operators_stop_owed(scheduler);
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
	count_holders(scheduler);
	if (!status)
		status = open_streams(scheduler);
	if (!status)
		begin_gpu_time(scheduler);
	return status ? status : start_operators_and_workers(scheduler);
}

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
		wr_outcome_name_error(&scheduler->outcome, &scheduler->error);
		wr_outcome_note(scheduler, &scheduler->outcome);
	}
	set_starting(scheduler, false);
	return status;
}

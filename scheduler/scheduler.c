/*
 * Creates and destroys schedulers. In a simulated run the locks, threads and the loop belong to the simulated
 * world, so they are created and ended inside it. Destroy takes a half-built scheduler, too.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "scheduler/memory_pool.h"
#include "scheduler/ready.h"
#include "scheduler/run.h"
#include "scheduler/stuck.h"

/* --- create --- */

static weir_status create_workers(weir_scheduler *scheduler)
{
	scheduler->workers = wr_alloc_aligned(64, scheduler->worker_asked * sizeof *scheduler->workers);
	scheduler->heap = wr_alloc(wr_graph_count_all(scheduler->graph) + 1, sizeof *scheduler->heap);
	if (!scheduler->workers || !scheduler->heap)
		return WEIR_E_NOMEM;
	for (unsigned i = 0; i < scheduler->worker_asked; i++) {
		struct wr_worker *worker = &scheduler->workers[i];
		worker->local.index = i;
		worker->local.pool = scheduler->graph->pool;
		worker->scheduler = scheduler;
		snprintf(worker->name, sizeof worker->name, "weir:%u", i);
	}
	return WEIR_OK;
}

static void graph_set_scheduler(weir_scheduler *scheduler, weir_scheduler *owner)
{
	weir_graph *graph = scheduler->graph;

	graph->scheduler = owner;
	if (!graph->poke) /* once: another thread may free memory of a pool, and poke, at any time */
		graph->poke = wr_poke;
	for (size_t i = 0; i < wr_graph_count_all(graph); i++)
		wr_store(&wr_graph_entity_at(graph, i)->scheduler, owner);
}

static void on_turn(void *arg)
{
	weir_scheduler *scheduler = arg;

	wr_run_turn(scheduler);
	if (wr_load(&scheduler->destroying)) /* read after the turn, which clears the kicks */
		wr_loop_break(&scheduler->loop);
}

static void run_loop(void *arg)
{
	weir_scheduler *scheduler = arg;

	wr_loop_run(&scheduler->loop);
}

static weir_status open_trace(weir_scheduler *scheduler)
{
	struct wr_trace_options options = {
		.workers = scheduler->worker_asked,
		.simulated = scheduler->sim,
		.observe = scheduler->options.observe,
		.entities = wr_graph_count_all(scheduler->graph),
		.queues = scheduler->graph->connection_count,
		.events = scheduler->options.trace_events,
		.skip = scheduler->options.skip,
		.hidden = wr_graph_count_all(scheduler->graph) - scheduler->graph->entity_count,
	};

	return wr_trace_open(&options, &scheduler->trace);
}

static weir_status scheduler_init(weir_scheduler *scheduler, void *unused)
{
	weir_status status = wr_mutex_init(&scheduler->lock);

	(void)unused;
	if (!status)
		status = wr_cond_init(&scheduler->changed);
	if (!status)
		status = wr_mutex_init(&scheduler->backlog_lock);
	if (!status)
		status = wr_loop_open(&scheduler->loop, scheduler->sim, scheduler->options.handle_signals);
	if (!status && !scheduler->options.own_loop)
		status = wr_loop_watch(&scheduler->loop, scheduler->options.event_base, on_turn, scheduler);
	if (!status)
		status = create_workers(scheduler);
	if (!status)
		status = open_trace(scheduler);
	if (!status && !wr_scheduler_driven_by_caller(scheduler))
		status = wr_thread_start(&scheduler->loop_thread, "weir:loop", run_loop, scheduler);
	return status;
}

static weir_status place_graph(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	weir_status status;

	if (!strcmp(scheduler->options.backend, "sim") && wr_scheduler_driven_by_caller(scheduler))
		return wr_fail(WEIR_E_INVALID,
			       "backend 'sim' runs a loop of its own: leave out event_base and own_loop");
	status = wr_graph_place(graph, scheduler->options.backend, scheduler->options.seed,
				scheduler->options.strict);
	if (status)
		return status;
	scheduler->sim = graph->world;
	wr_system_attach(graph->system, &scheduler->waker);
	wr_graph_bind_signals(graph, scheduler->signal);
	for (size_t i = 0; i < wr_graph_count_all(graph); i++)
		if (wr_graph_entity_at(graph, i)->flagged)
			return wr_flag_check(graph->system);
	return WEIR_OK;
}

weir_status weir_scheduler_create(weir_graph *graph, const weir_scheduler_options *options,
				  weir_scheduler **out)
{
	weir_scheduler *scheduler;
	weir_status status;

	if (graph->scheduler)
		return wr_fail(WEIR_E_STATE, "graph %s has a scheduler already", graph->plan->name);
	scheduler = wr_alloc_aligned(64, sizeof *scheduler);
	if (!scheduler)
		return WEIR_E_NOMEM;
	scheduler->graph = graph;
	scheduler->process = (int)getpid();
	wr_waker_init(&scheduler->waker);
	wr_store(&scheduler->live, WR_LIVE_CLOSED);
	wr_loop_init(&scheduler->loop);
	graph_set_scheduler(scheduler, scheduler);
	status = wr_options_resolve(scheduler, options);
	wr_stuck_init(scheduler);
	if (!status)
		status = wr_root_open(scheduler);
	if (!status)
		status = place_graph(scheduler);
	if (!status)
		status = wr_world_call(scheduler, scheduler_init, NULL);
	if (status) {
		weir_scheduler_destroy(scheduler);
		return status;
	}
	*out = scheduler;
	return WEIR_OK;
}

/* --- destroy --- */

static weir_status end_threads(weir_scheduler *scheduler, void *unused)
{
	(void)unused;
	if (!wr_run_ended(scheduler)) {
		weir_scheduler_stop(scheduler, 0);
		wr_run_wait(scheduler, WR_FOREVER);
	}
	wr_operators_stop_before_destroy(scheduler);
	wr_store(&scheduler->destroying, true);
	wr_loop_kick(&scheduler->loop);
	wr_thread_join(&scheduler->loop_thread);
	if (scheduler->graph->system)
		wr_system_detach(scheduler->graph->system);
	while (wr_live_count(&scheduler->live))
		wr_thread_yield(); /* a poke is still being refused */
	return WEIR_OK;
}

/*
 * Leaves the memory to the graph: a late thread may have read entity->scheduler and not yet taken a live
 * reference, or dropped one and not yet kicked. It finds a closed counter and a loop that ignores kicks.
 */
static void keep_memory(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;

	scheduler->workers = NULL;
	scheduler->heap = NULL;
	scheduler->trace = NULL;
	scheduler->text = scheduler->waiting = NULL;
	scheduler->kept = (struct wr_kept){graph->kept, scheduler};
	graph->kept = &scheduler->kept;
}

weir_status weir_scheduler_destroy(weir_scheduler *scheduler)
{
	weir_status status;

	if (!scheduler)
		return WEIR_OK;
	if (wr_worker_here(scheduler))
		return wr_fail(WEIR_E_INVALID, "a worker must not destroy its own scheduler");
	status = wr_scheduler_check_call(scheduler, "destroy");
	if (status)
		return status;
	status = wr_world_call(scheduler, end_threads, NULL);
	wr_loop_close(&scheduler->loop);
	wr_memory_pools_watch(scheduler->graph, NULL);
	wr_trace_close(scheduler->trace);
	graph_set_scheduler(scheduler, NULL);
	wr_cond_finish(&scheduler->changed);
	wr_mutex_finish(&scheduler->lock);
	wr_mutex_finish(&scheduler->backlog_lock);
	wr_free(scheduler->workers);
	wr_free(scheduler->heap);
	wr_free(scheduler->text);
	wr_free(scheduler->waiting);
	wr_free(scheduler->stuck);
	wr_root_close(scheduler);
	wr_files_finish(&scheduler->files);
	keep_memory(scheduler);
	return status;
}

/* Schedulers: made, started, waited for, stopped, destroyed. */
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "scheduler/scheduler.h"
#include "scheduler/world.h"

#define DRAIN_NS 5000000000

weir_status wr_in_world(weir_scheduler *scheduler, void (*fn)(void *arg), void *arg)
{
	if (scheduler->sim && wr_sim_current() != scheduler->sim)
		return wr_sim_call(scheduler->sim, fn, arg);
	fn(arg);
	return WEIR_OK;
}

static bool driven_by_caller(const weir_scheduler *scheduler)
{
	return scheduler->options.own_loop || scheduler->options.event_base;
}

/* --- what streams/ tells: any thread, the driver's among them --- */

static weir_scheduler *of(struct wr_waker *waker)
{
	return (weir_scheduler *)(void *)((char *)waker - offsetof(struct weir_scheduler, waker));
}

static void kick(struct wr_waker *waker)
{
	wr_loop_kick(&of(waker)->loop);
}

static void take(struct wr_waker *waker)
{
	weir_scheduler *scheduler = of(waker);

	wr_live_take(&scheduler->live);
	if (!wr_load(&scheduler->watching))
		wr_loop_kick(&scheduler->loop);	/* the health watch has something to look at again */
}

static void drop(struct wr_waker *waker)
{
	wr_drop(of(waker));
}

/* --- create --- */

static weir_status pick_signal(weir_scheduler *scheduler)
{
	const char *name = scheduler->options.signal;
	int planned = scheduler->graph->plan->scheduler.signal;

	scheduler->signal = planned < 0 ? WR_SIGNAL_CALLBACK : planned;
	if (!name)
		return WEIR_OK;
	for (int kind = 0; wr_signal_text(kind); kind++) {
		if (!strcmp(name, wr_signal_text(kind))) {
			scheduler->signal = kind;
			return WEIR_OK;
		}
	}
	return wr_fail(WEIR_E_INVALID, "signal '%s': it is 'callback', 'callback_inline' or 'doorbell'", name);
}

/* The caller's options win over the description's, those over the defaults. */
static weir_status settle_options(weir_scheduler *scheduler, const weir_scheduler_options *options)
{
	const struct wr_plan_scheduler *plan = &scheduler->graph->plan->scheduler;
	weir_scheduler_options *own = &scheduler->options;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	if (options)
		memcpy(own, options, options->size < sizeof *own ? options->size : sizeof *own);
	if (!own->backend)
		own->backend = plan->backend ? plan->backend : "auto";
	if (!own->seed && plan->has_seed)
		own->seed = plan->seed;
	if (!own->drain_ns)
		own->drain_ns = plan->has_drain ? plan->drain_ns : DRAIN_NS;
	if (!own->deadlock_grace_ns && plan->has_grace)
		own->deadlock_grace_ns = plan->deadlock_grace_ns;
	if (!own->max_duration_ns && plan->has_duration)
		own->max_duration_ns = plan->max_duration_ns;
	if (!own->spin_ns && plan->has_spin)
		own->spin_ns = plan->spin_ns;
	scheduler->worker_asked = own->workers ? own->workers : plan->workers;
	if (!scheduler->worker_asked)
		scheduler->worker_asked = cores < 1 ? 1 : cores > WR_WORKERS_MAX ? WR_WORKERS_MAX : (unsigned)cores;
	if (scheduler->worker_asked > WR_WORKERS_MAX)
		return wr_fail(WEIR_E_INVALID, "%u workers: there are at most %d", scheduler->worker_asked, WR_WORKERS_MAX);
	return pick_signal(scheduler);
}

static weir_status make_workers(weir_scheduler *scheduler)
{
	scheduler->workers = wr_alloc_aligned(64, scheduler->worker_asked * sizeof *scheduler->workers);
	scheduler->heap = wr_alloc(scheduler->graph->entity_count + 1, sizeof *scheduler->heap);
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

static void give_entities(weir_scheduler *scheduler, weir_scheduler *owner)
{
	weir_graph *graph = scheduler->graph;

	graph->scheduler = owner;
	for (size_t i = 0; i < graph->entity_count; i++)
		wr_store(&graph->entities[i].scheduler, owner);
}

struct call {
	weir_scheduler *scheduler;
	weir_status status;
	int64_t timeout_ns;
	weir_outcome *outcome;
};

static void create_inside(void *arg)
{
	struct call *call = arg;
	weir_scheduler *scheduler = call->scheduler;
	weir_status status = wr_mutex_init(&scheduler->lock);

	if (!status)
		status = wr_cond_init(&scheduler->changed);
	if (!status)
		status = wr_mutex_init(&scheduler->backlog_lock);
	if (!status)
		status = wr_loop_open(&scheduler->loop, scheduler->sim, scheduler->options.handle_signals);
	if (!status)
		status = make_workers(scheduler);
	if (!status)
		status = wr_trace_open(&scheduler->trace);
	if (!status && !driven_by_caller(scheduler))
		status = wr_thread_start(&scheduler->loop_thread, "weir:loop", wr_loop_main, scheduler);
	call->status = status;
}

static weir_status place(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;
	weir_status status;

	if (!strcmp(scheduler->options.backend, "sim") && driven_by_caller(scheduler))
		return wr_fail(WEIR_E_INVALID, "a simulated run has a loop of its own: no event_base, no own_loop");
	status = wr_graph_place(graph, scheduler->options.backend, scheduler->options.seed);
	if (status)
		return status;
	scheduler->sim = graph->world;
	wr_system_attach(graph->system, &scheduler->waker);
	wr_graph_bind(graph, scheduler->signal);
	for (size_t i = 0; i < graph->entity_count; i++)
		if (graph->entities[i].belled)
			return wr_bell_check(graph->system);
	return WEIR_OK;
}

static void on_event(void *arg)
{
	wr_turn(arg);
}

weir_status weir_scheduler_create(weir_scheduler **out, weir_graph *graph, const weir_scheduler_options *options)
{
	struct call call = {0};
	weir_scheduler *scheduler;
	weir_status status;

	if (graph->scheduler)
		return wr_fail(WEIR_E_BUSY, "graph %s has a scheduler already", graph->plan->name);
	scheduler = wr_alloc_aligned(64, sizeof *scheduler);
	if (!scheduler)
		return WEIR_E_NOMEM;
	scheduler->graph = graph;
	scheduler->waker = (struct wr_waker){wr_poke_by_id, kick, take, drop};
	wr_store(&scheduler->live, WR_LIVE_CLOSED);
	wr_loop_init(&scheduler->loop);
	call.scheduler = scheduler;
	give_entities(scheduler, scheduler);
	status = settle_options(scheduler, options);
	if (!status)
		status = place(scheduler);
	if (!status)
		status = wr_in_world(scheduler, create_inside, &call);
	if (!status)
		status = call.status;
	if (!status && scheduler->options.event_base)
		status = wr_loop_watch(&scheduler->loop, scheduler->options.event_base, on_event, scheduler);
	if (status) {
		weir_scheduler_destroy(scheduler); /* takes any half-built scheduler */
		return status;
	}
	*out = scheduler;
	return WEIR_OK;
}

/* --- start, wait, stop --- */

static void start_inside(void *arg)
{
	struct call *call = arg;

	call->status = wr_start_run(call->scheduler);
}

static bool ended(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->phase) == WR_ENDED;
}

weir_status weir_scheduler_start(weir_scheduler *scheduler)
{
	struct call call = {.scheduler = scheduler};
	weir_status status;

	if (!ended(scheduler))
		return wr_fail(WEIR_E_BUSY, "graph %s is running", scheduler->graph->plan->name);
	status = wr_in_world(scheduler, start_inside, &call);
	return status ? status : call.status;
}

/* The caller's thread is the loop: it turns while it waits. */
static weir_status drive(weir_scheduler *scheduler, int64_t until)
{
	struct pollfd fd = {.fd = scheduler->loop.set, .events = POLLIN};

	for (wr_turn(scheduler); !ended(scheduler); wr_turn(scheduler)) {
		int64_t left = until == WR_FOREVER ? -1 : (until - wr_now() + 999999) / 1000000;
		if (until != WR_FOREVER && left <= 0)
			return WEIR_E_TIMEOUT;
		poll(&fd, 1, left > INT_MAX ? INT_MAX : (int)left);
	}
	return WEIR_OK;
}

static weir_status wait_for_end(weir_scheduler *scheduler, int64_t until)
{
	weir_status status = WEIR_OK;

	if (driven_by_caller(scheduler))
		return drive(scheduler, until);
	wr_mutex_lock(&scheduler->lock);
	while (!status && !ended(scheduler))
		if (!wr_cond_wait(&scheduler->changed, &scheduler->lock, until))
			status = WEIR_E_TIMEOUT;
	wr_mutex_unlock(&scheduler->lock);
	return status;
}

static void wait_inside(void *arg)
{
	struct call *call = arg;
	int64_t until = call->timeout_ns < 0 ? WR_FOREVER : wr_time_add(wr_now(), call->timeout_ns);

	call->status = wait_for_end(call->scheduler, until);
}

static void copy_outcome(weir_scheduler *scheduler, weir_outcome *out)
{
	size_t size = out->size && out->size < sizeof *out ? out->size : sizeof *out;

	memcpy(out, &scheduler->outcome, size);
	out->size = size;
}

weir_status weir_scheduler_wait(weir_scheduler *scheduler, int64_t timeout_ns, weir_outcome *outcome)
{
	struct call call = {.scheduler = scheduler, .timeout_ns = timeout_ns};
	weir_status status;

	if (wr_worker_here(scheduler))
		return wr_fail(WEIR_E_INVALID, "a worker must not wait for the end of its own run");
	status = wr_in_world(scheduler, wait_inside, &call);
	if (!status && call.status)
		return wr_fail(call.status, "graph %s goes on", scheduler->graph->plan->name);
	if (status)
		return status;
	if (outcome)
		copy_outcome(scheduler, outcome);
	if (scheduler->outcome.status)
		wr_fail(scheduler->outcome.status, "%s%s%s", scheduler->outcome.entity ? scheduler->outcome.entity : "",
			scheduler->outcome.entity ? ": " : "", scheduler->outcome.text ? scheduler->outcome.text : "");
	return scheduler->outcome.status;
}

weir_status weir_scheduler_run(weir_scheduler *scheduler)
{
	weir_status status = weir_scheduler_start(scheduler);

	return status ? status : weir_scheduler_wait(scheduler, -1, NULL);
}

void weir_scheduler_stop(weir_scheduler *scheduler, bool drain_first)
{
	wr_fetch_or(&scheduler->asked, drain_first ? WR_STOP_DRAIN : WR_STOP_NOW);
	if (!scheduler->graph->owns_world)	/* else the loop looks by itself (run.c): a handler may have interrupted the world */
		wr_loop_kick(&scheduler->loop);
}

int weir_scheduler_fd(weir_scheduler *scheduler)
{
	return scheduler->options.own_loop ? scheduler->loop.set : -1;
}

weir_status weir_scheduler_turn(weir_scheduler *scheduler)
{
	if (!scheduler->options.own_loop)
		return wr_fail(WEIR_E_INVALID, "the scheduler was made without own_loop: nobody needs to turn it");
	wr_turn(scheduler);
	return WEIR_OK;
}

bool weir_scheduler_running(const weir_scheduler *scheduler)
{
	return !ended((weir_scheduler *)scheduler);
}

const char *weir_scheduler_where(const weir_scheduler *scheduler)
{
	return wr_system_where(scheduler->graph->system);
}

/* --- destroy --- */

static void end_inside(void *arg)
{
	struct call *call = arg;
	weir_scheduler *scheduler = call->scheduler;

	if (!ended(scheduler)) {
		weir_scheduler_stop(scheduler, false);
		wait_for_end(scheduler, WR_FOREVER);
	}
	wr_store(&scheduler->quit, true);
	wr_loop_kick(&scheduler->loop);
	wr_thread_join(&scheduler->loop_thread);
	if (scheduler->graph->system)
		wr_system_detach(scheduler->graph->system);
	while (wr_live_count(&scheduler->live))
		wr_thread_yield();	/* a poke on its way */
}

/*
 * A poke that has read entity->scheduler but not yet asked for a reference, and a drop whose kick is still to come, find a closed counter
 * and a loop that is kicked already: the memory stays with the graph.
 */
static void keep(weir_scheduler *scheduler)
{
	weir_graph *graph = scheduler->graph;

	scheduler->workers = NULL;
	scheduler->heap = NULL;
	scheduler->text = scheduler->culprit = scheduler->waiting = NULL;
	scheduler->kept = (struct wr_kept){graph->kept, scheduler};
	graph->kept = &scheduler->kept;
}

weir_status weir_scheduler_destroy(weir_scheduler *scheduler)
{
	struct call call = {.scheduler = scheduler};

	if (!scheduler)
		return WEIR_OK;
	if (wr_worker_here(scheduler))
		return wr_fail(WEIR_E_INVALID, "a worker must not destroy its own scheduler");
	call.status = wr_in_world(scheduler, end_inside, &call);
	wr_loop_close(&scheduler->loop);
	wr_trace_close(scheduler->trace);
	give_entities(scheduler, NULL);
	wr_cond_finish(&scheduler->changed);
	wr_mutex_finish(&scheduler->lock);
	wr_mutex_finish(&scheduler->backlog_lock);
	wr_free(scheduler->workers);
	wr_free(scheduler->heap);
	wr_free(scheduler->text);
	wr_free(scheduler->culprit);
	wr_free(scheduler->waiting);
	keep(scheduler);
	return call.status;
}

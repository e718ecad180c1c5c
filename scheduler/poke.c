/*
 * The only way to wake an entity (S1): one fetch_or on its state, which is always executed. A thread that is
 * no worker first takes a live reference, so the run cannot be closed between the change of state and the
 * push. An entry that is pushed keeps this reference.
 */
#include <string.h>

#include "base/status.h"
#include "scheduler/ready.h"
#include "scheduler/run.h"

bool wr_poke_foreign(weir_scheduler *scheduler, weir_entity *entity)
{
	if (!wr_live_take(&scheduler->live)) {
		wr_run_drop_live(scheduler);
		return false;
	}
	if (wr_fetch_or(&entity->state, WR_POKED) == WR_IDLE) {
		if (scheduler->trace)
			wr_trace_poke(scheduler->trace, wr_lane_here(scheduler), entity->id);
		wr_ready_inject(scheduler, entity);
	} else {
		wr_run_drop_live(scheduler);
	}
	return true;
}

void wr_poke_due(weir_scheduler *scheduler, weir_entity *entity)
{
	if (wr_live_take(&scheduler->live) && wr_fetch_or(&entity->state, WR_POKED) == WR_IDLE) {
		wr_trace_poke(scheduler->trace, WR_LANE_OUTSIDE, entity->id);
		wr_ready_push_due(scheduler, entity);
	} else {
		wr_run_drop_live(scheduler);
	}
}

bool wr_poke(weir_entity *entity)
{
	weir_scheduler *scheduler = wr_load_acquire(&entity->scheduler);
	struct wr_worker *worker;

	if (!scheduler)
		return false;
	worker = wr_worker_here(scheduler);
	if (!worker)
		return wr_poke_foreign(scheduler, entity);
	wr_poke_by_worker(worker, entity);
	return true;
}

bool wr_entity_own_parked(weir_scheduler *scheduler, weir_entity *entity)
{
	uint32_t idle = WR_IDLE;

	if (wr_live_take(&scheduler->live) && wr_cas(&entity->state, &idle, WR_RUNNING))
		return true;
	wr_run_drop_live(scheduler);
	return false;
}

bool wr_entity_leave_parked(weir_scheduler *scheduler, weir_entity *entity)
{
	uint32_t running = WR_RUNNING;

	if (wr_cas(&entity->state, &running, WR_IDLE)) {
		wr_run_drop_live(scheduler);
		return true;
	}
	wr_exchange(&entity->state, WR_POKED); /* poked meanwhile: the entry takes over the reference */
	wr_ready_inject(scheduler, entity);
	return false;
}

weir_status weir_entity_poke(weir_entity *entity)
{
	if (!entity)
		return wr_fail_in_handler(WEIR_E_INVALID, "poke", "an entity is needed, NULL was given");
	if (wr_poke(entity))
		return WEIR_OK;
	return wr_fail_in_handler(WEIR_E_CLOSED, entity->plan->name, "no run is on: poke it after the start");
}

/*
 * The callbacks by which streams/ reports to the scheduler: a token has fired, the loop has something to
 * look at, work that holds the run open begins or ends. Thread: any, the driver's included, so nothing here
 * waits, allocates or calls CUDA.
 */

static weir_scheduler *scheduler_of(struct wr_waker *waker)
{
	return (weir_scheduler *)(void *)((char *)waker - offsetof(struct weir_scheduler, waker));
}

static void waker_kick(struct wr_waker *waker)
{
	wr_loop_kick(&scheduler_of(waker)->loop);
}

static void waker_take(struct wr_waker *waker)
{
	weir_scheduler *scheduler = scheduler_of(waker);

	wr_live_take(&scheduler->live);
	if (!wr_load(&scheduler->watching))
		wr_loop_kick(&scheduler->loop); /* the watch must run again */
}

static void waker_drop(struct wr_waker *waker)
{
	wr_run_drop_live(scheduler_of(waker));
}

__attribute__((noinline)) static void trace_fire(weir_scheduler *scheduler, uint32_t entity, uint64_t token)
{
	wr_trace_fire(scheduler->trace, wr_lane_here(scheduler), entity, token);
}

/* What a poller's own look fires goes to its own queue; every other poke may come from a foreign thread. */
static void waker_poke(struct wr_waker *waker, uint32_t entity, uint64_t token)
{
	weir_scheduler *scheduler = scheduler_of(waker);
	weir_entity *woken = wr_graph_entity_at(scheduler->graph, entity);
	struct wr_worker *worker = wr_worker_here(scheduler);

	if (scheduler->trace && token)
		trace_fire(scheduler, entity, token);
	if (!worker || !worker->polling) {
		wr_poke_foreign(scheduler, woken);
	} else if (wr_fetch_or(&woken->state, WR_POKED) == WR_IDLE) {
		wr_trace_poke(scheduler->trace, worker->local.index, entity);
		wr_ready_push_fired(worker, woken);
	}
}

void wr_waker_init(struct wr_waker *waker)
{
	*waker = (struct wr_waker){waker_poke, waker_kick, waker_take, waker_drop};
}

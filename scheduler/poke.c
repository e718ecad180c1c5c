/*
 * The only way to wake an entity (S1): one fetch_or on its state, which is always executed. A thread that is
 * no worker first takes a live reference, so the run cannot be closed between the change of state and the
 * push. An entry that is pushed keeps this reference.
 */
#include "base/bug.h"
#include "base/status.h"
#include "scheduler/scheduler.h"

struct wr_worker *wr_worker_here(const weir_scheduler *scheduler)
{
	struct wr_worker *worker = wr_thread_local();

	return worker && worker->scheduler == scheduler ? worker : NULL;
}

void wr_drop_live(weir_scheduler *scheduler)
{
	if (wr_live_drop(&scheduler->live))
		wr_loop_kick(&scheduler->loop);
}

/* Seeded bug: changes the state before it takes the reference. */
static bool poke_state_first(weir_scheduler *scheduler, weir_entity *entity)
{
	if (wr_fetch_or(&entity->state, WR_POKED) != WR_IDLE)
		return true;
	if (!wr_live_take(&scheduler->live)) {
		wr_drop_live(scheduler);
		return false;
	}
	wr_inject(scheduler, entity);
	return true;
}

bool wr_poke_foreign(weir_scheduler *scheduler, weir_entity *entity)
{
	if (WR_BUG(STATE_BEFORE_REFERENCE))
		return poke_state_first(scheduler, entity);
	if (!wr_live_take(&scheduler->live)) {
		wr_drop_live(scheduler);
		return false;
	}
	if (wr_fetch_or(&entity->state, WR_POKED) == WR_IDLE)
		wr_inject(scheduler, entity);
	else
		wr_drop_live(scheduler);
	return true;
}

void wr_poke_due(weir_scheduler *scheduler, weir_entity *entity)
{
	if (wr_live_take(&scheduler->live) && wr_fetch_or(&entity->state, WR_POKED) == WR_IDLE)
		wr_push_due(scheduler, entity);
	else
		wr_drop_live(scheduler);
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

weir_status weir_entity_poke(weir_entity *entity)
{
	if (wr_poke(entity))
		return WEIR_OK;
	return wr_fail_plainly(WEIR_E_CLOSED, entity->plan->name, "no run is on: poke it after the start");
}

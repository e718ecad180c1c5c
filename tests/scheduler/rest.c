#include "rest.h"

static bool queued(weir_scheduler *scheduler)
{
	if (wr_injector_holds(scheduler))
		return true;
	for (unsigned i = 0; i < scheduler->worker_count; i++) {
		struct wr_worker *worker = &scheduler->workers[i];
		if (wr_load(&worker->next) || wr_load(&worker->head) != wr_load(&worker->tail))
			return true;
	}
	return false;
}

/* S9: what room a gated tick frees wakes a worker only after compute, if that was short the last time. */
static bool owed(weir_scheduler *scheduler)
{
	for (unsigned i = 0; i < scheduler->worker_count; i++) {
		const weir_context *context = scheduler->workers[i].local.context;
		if (context && context->computing && context->entity->brisk)
			return true;
	}
	return false;
}

static bool open_run(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->phase) == WR_OPEN && !wr_live_closed(&scheduler->live) &&
	       !(wr_load(&scheduler->asked) & (WR_STOP_NOW | WR_STOP_FAILED));
}

const char *rest_broken(weir_scheduler *scheduler)
{
	if (!open_run(scheduler) || !wr_load(&scheduler->sleepers) || wr_load(&scheduler->spinners))
		return NULL;
	if (queued(scheduler) && !owed(scheduler))
		return "an entity is ready and a worker sleeps";
	if (wr_poll_wanted(scheduler))
		return "doorbells are armed, no worker looks at them, and one sleeps";
	return NULL;
}

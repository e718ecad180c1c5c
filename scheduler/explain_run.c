/*
 * Explains why entities are not ready, also while a run is on (C5): takes a live reference, then ownership
 * of an entity (CAS IDLE -> RUNNING), then asks its conditions. A busy entity shows its last published
 * verdict. Between two runs one thread at a time asks, and start waits for it. All answers are collected
 * before the first call of fn: no entity is owned while fn runs.
 */
#include "scheduler/standstill.h"
#include "scheduler/world.h"

struct explaining {
	weir_scheduler *scheduler;
	weir_explain_fn *fn;
	void *arg;
};

/*
 * Returns true between two runs: then the caller is the only thread that asks, and no run starts before
 * end_asking().
 */
static bool begin_asking(weir_scheduler *scheduler)
{
	bool ended;

	wr_mutex_lock(&scheduler->lock);
	while (scheduler->explaining)
		wr_cond_wait(&scheduler->changed, &scheduler->lock, WR_FOREVER);
	ended = wr_load(&scheduler->phase) == WR_ENDED && !scheduler->starting;
	scheduler->explaining = ended;
	wr_mutex_unlock(&scheduler->lock);
	return ended;
}

static void end_asking(weir_scheduler *scheduler)
{
	wr_mutex_lock(&scheduler->lock);
	scheduler->explaining = false;
	wr_cond_broadcast(&scheduler->changed);
	wr_mutex_unlock(&scheduler->lock);
}

void wr_explain_collect(struct wr_standstill *out, weir_scheduler *scheduler)
{
	bool ended = begin_asking(scheduler);

	wr_standstill_collect(out, scheduler, !ended);
	if (ended)
		end_asking(scheduler);
}

static void explain_inside(void *arg)
{
	struct explaining *explaining = arg;
	struct wr_standstill standstill;

	wr_explain_collect(&standstill, explaining->scheduler);
	wr_standstill_explain(&standstill, explaining->fn, explaining->arg);
	wr_standstill_finish(&standstill);
}

void weir_scheduler_explain(weir_scheduler *scheduler, weir_explain_fn *fn, void *arg)
{
	struct explaining explaining = {scheduler, fn, arg};

	if (!wr_worker_here(scheduler))
		wr_in_world(scheduler, explain_inside, &explaining);
}

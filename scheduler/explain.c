/*
 * Why an entity is not ready, told while a run is on (C5): a live reference, then ownership (CAS IDLE ->
 * RUNNING), then its conditions are asked. A busy entity shows its last published verdict. Between two runs
 * one thread at a time asks, and start waits for it.
 */
#include "base/shown.h"
#include "scheduler/scheduler.h"
#include "scheduler/world.h"

static void show_published(weir_entity *entity, weir_explain_fn *fn, void *arg)
{
	const char *why = wr_load_relaxed(&entity->why), *of = wr_load_relaxed(&entity->why_of);

	char detail[160];

	wr_shown_cut(detail, sizeof detail, why ? why : "runs now");
	fn(entity->plan->name, of ? of : "compute", "BUSY", detail, arg);
}

static void leave(weir_scheduler *scheduler, weir_entity *entity)
{
	uint32_t running = WR_RUNNING;

	if (wr_cas(&entity->state, &running, WR_IDLE)) {
		wr_drop(scheduler);
		return;
	}
	wr_exchange(&entity->state, WR_POKED);	/* poked meanwhile: the entry keeps our reference */
	wr_inject(scheduler, entity);
}

static void explain_running(weir_scheduler *scheduler, weir_entity *entity, weir_explain_fn *fn, void *arg)
{
	uint32_t idle = WR_IDLE;

	if (wr_live_take(&scheduler->live) && wr_cas(&entity->state, &idle, WR_RUNNING)) {
		wr_entity_explain(entity, wr_load(&scheduler->stopping) & WR_DRAINS, fn, arg);
		leave(scheduler, entity);
		return;
	}
	wr_drop(scheduler);
	if (!(wr_load(&entity->state) & WR_DONE))
		show_published(entity, fn, arg);
}

struct explaining {
	weir_scheduler *scheduler;
	weir_explain_fn *fn;
	void *arg;
};

/*
 * Between two runs: whoever has this is the only one who asks, and no run starts meanwhile. No lock is held
 * while fn runs (S11).
 */
static bool begin_asking(weir_scheduler *scheduler)
{
	bool ended;

	wr_mutex_lock(&scheduler->lock);
	while (scheduler->asking)
		wr_cond_wait(&scheduler->changed, &scheduler->lock, WR_FOREVER);
	ended = wr_load(&scheduler->phase) == WR_ENDED && !scheduler->starting;
	scheduler->asking = ended;
	wr_mutex_unlock(&scheduler->lock);
	return ended;
}

static void end_asking(weir_scheduler *scheduler)
{
	wr_mutex_lock(&scheduler->lock);
	scheduler->asking = false;
	wr_cond_broadcast(&scheduler->changed);
	wr_mutex_unlock(&scheduler->lock);
}

/* Before its first run, or after a start that failed, it has conditions that nobody may ask: they say nothing. */
static bool may_ask(weir_entity *entity)
{
	return entity->askable && !(wr_load(&entity->state) & WR_DONE);
}

static bool explain_ended(weir_scheduler *scheduler, weir_explain_fn *fn, void *arg)
{
	weir_graph *graph = scheduler->graph;

	if (!begin_asking(scheduler))
		return false;
	for (size_t i = 0; i < graph->entity_count; i++)
		if (may_ask(&graph->entities[i]))
			wr_entity_explain(&graph->entities[i], false, fn, arg);
	end_asking(scheduler);
	return true;
}

static void explain_inside(void *arg)
{
	struct explaining *explaining = arg;
	weir_scheduler *scheduler = explaining->scheduler;

	if (explain_ended(scheduler, explaining->fn, explaining->arg))
		return;
	for (size_t i = 0; i < scheduler->graph->entity_count; i++)
		explain_running(scheduler, &scheduler->graph->entities[i], explaining->fn, explaining->arg);
}

void weir_scheduler_explain(weir_scheduler *scheduler, weir_explain_fn *fn, void *arg)
{
	struct explaining explaining = {scheduler, fn, arg};

	if (!wr_worker_here(scheduler))
		wr_in_world(scheduler, explain_inside, &explaining);
}

#include "rest.h"

/* What workers leave to each other is looked at again by the lookout: a sleeper, or the loop within 10 ms. */
static bool is_looked_out_for(weir_scheduler *scheduler)
{
	unsigned lookout = wr_load(&scheduler->lookout);

	if (lookout == WR_LOOP_LOOKS)
		return wr_load(&scheduler->loop.until) <= wr_sim_now(scheduler->sim) + 10000000;
	return lookout && wr_load(&scheduler->sleepers) >> (lookout - 1) & 1;
}

/* A few that are due and were brief 64 times in a row wait for the worker that took the first; the loop looks
 * within 10 ms (S10). */
static bool due_waits(weir_scheduler *scheduler)
{
	bool looks = wr_load(&scheduler->loop.until) <= wr_sim_now(scheduler->sim) + 10000000;

	for (weir_entity *entity = scheduler->due.first; entity; entity = wr_read(&entity->next_ready))
		if (!looks || wr_read(&entity->brief_runs) < 64)
			return false;
	return wr_load(&scheduler->due_count) <= 8;
}

static bool work_is_queued(weir_scheduler *scheduler)
{
	if (wr_load(&scheduler->injected) || wr_load(&scheduler->backlog_count) || !due_waits(scheduler))
		return true;
	if (is_looked_out_for(scheduler))
		return false;
	for (unsigned i = 0; i < scheduler->worker_count; i++) {
		struct wr_worker *worker = &scheduler->workers[i];
		if (wr_load(&worker->next) || wr_load(&worker->head) != wr_load(&worker->tail) ||
		    wr_load(&worker->spilled))
			return true;
	}
	return false;
}

/* A worker that is awake and in no compute looks at the queues before it sleeps. */
static bool one_will_look(weir_scheduler *scheduler)
{
	for (unsigned i = 0; i < scheduler->worker_count; i++) {
		const weir_context *context = scheduler->workers[i].local.context;
		bool asleep = wr_load(&scheduler->sleepers) >> i & 1;
		if (!asleep && !(context && context->computing))
			return true;
	}
	return false;
}

static bool run_is_open(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->phase) == WR_OPEN && !wr_live_closed(&scheduler->live) &&
	       !(wr_load(&scheduler->stop_asked) & (WR_STOP_NOW | WR_STOP_FAILED));
}

/* E2: true if the device has work or frees left that the periodic watch must look at. */
static bool needs_watch(struct wr_system *system)
{
	if (wr_load(&system->deferred_frees.count) || wr_system_outstanding(system) || wr_refused_any(system))
		return true;
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);
		if (wr_load(&stream->submitted) > wr_load(&stream->completed) || wr_load(&stream->live_until))
			return true;
	}
	return false;
}

static bool is_watched(weir_scheduler *scheduler)
{
	struct wr_system *system = scheduler->graph->system;

	if (wr_load(&scheduler->loop.until) == INT64_MIN)
		return true; /* the loop is running; a device call in it may take long */
	return !system || wr_system_failed(system) || wr_load(&scheduler->watching) || !needs_watch(system);
}

/* S6: in a drain some may tick again, as what is left is flushed. */
static bool stuck_ticked(weir_scheduler *scheduler)
{
	for (size_t i = 0; scheduler->stuck_found && i < scheduler->graph->entity_count; i++) {
		const weir_entity *entity = &scheduler->graph->entities[i];
		if (entity->stuck && wr_read(&entity->counters.ticks) != entity->looked_ticks)
			return true;
	}
	return false;
}

bool rest_memory_unheard(const weir_entity *entity)
{
	for (size_t i = 0; wr_read(&entity->state) == WR_IDLE && i < entity->claim_count; i++) {
		const struct wr_claim *claim = &entity->claims[i];

		if (claim->held < claim->wanted && !claim->listed && !wr_read(&claim->owed) &&
		    claim->from->size - claim->from->used >= claim->units)
			return true;
	}
	return false;
}

uint64_t rest_memory_used(const weir_graph *graph)
{
	uint64_t used = 0;

	for (size_t i = 0; i < graph->memory_pool_count; i++)
		used += wr_shared_used(&graph->memory_pools[i].shared);
	return used;
}

void rest_look_often(weir_scheduler *scheduler, int64_t every)
{
	scheduler->stuck_every = every;
	scheduler->stuck_stood = 0;
}

const char *rest_broken(weir_scheduler *scheduler)
{
	if (!run_is_open(scheduler))
		return NULL;
	if (!(wr_load(&scheduler->stop_asked) & WR_STOP_DRAIN) && stuck_ticked(scheduler))
		return "an entity that was told to stand for ever has ticked";
	if (!is_watched(scheduler))
		return "a stream has work, or a free is deferred, and the watch rests";
	if (!wr_load(&scheduler->sleepers) || wr_load(&scheduler->spinners))
		return NULL;
	if (work_is_queued(scheduler) && !one_will_look(scheduler))
		return "an entity is ready and a worker sleeps";
	if (wr_poller_wanted(scheduler) && !is_looked_out_for(scheduler))
		return "flags are armed, no worker looks at them, and one sleeps";
	return NULL;
}

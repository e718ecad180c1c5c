#include "scheduler/memory_pool.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/units.h"
#include "scheduler/graph.h"
#include "scheduler/scheduler.h"

#define ALIGNMENT ((uint64_t)256) /* of a block: as cudaMalloc's */

static const struct wr_memory_calls memory_calls;

static bool in_blocks(const struct wr_memory_pool *pool)
{
	return pool->plan->blocks > 0;
}

uint64_t wr_memory_pool_units(const struct wr_memory_pool *pool, size_t bytes)
{
	return in_blocks(pool) ? 1 : bytes;
}

/* --- making --- */

weir_status wr_memory_pools_make(weir_graph *graph)
{
	size_t count = graph->plan->memory_pool_count;
	weir_status status = WEIR_OK;

	if (!count)
		return WEIR_OK;
	graph->memory_pools = wr_alloc(count, sizeof *graph->memory_pools);
	if (!graph->memory_pools)
		return WEIR_E_NOMEM;
	for (size_t i = 0; !status && i < count; i++) {
		struct wr_memory_pool *pool = &graph->memory_pools[i];

		pool->plan = &graph->plan->memory_pools[i];
		pool->graph = graph;
		pool->calls = &memory_calls;
		pool->shared.size = in_blocks(pool) ? pool->plan->blocks : pool->plan->max_size;
		graph->memory_pool_count = i + 1;
		status = wr_shared_init(&pool->shared);
		if (!status && in_blocks(pool))
			status = wr_blocks_init(&pool->blocks, pool->plan->blocks);
	}
	return status;
}

void wr_memory_pools_destroy(weir_graph *graph)
{
	for (size_t i = 0; i < graph->memory_pool_count; i++) {
		wr_shared_finish(&graph->memory_pools[i].shared);
		wr_blocks_finish(&graph->memory_pools[i].blocks);
	}
	wr_free(graph->memory_pools);
}

static weir_status open_pool(struct wr_memory_pool *pool)
{
	const struct wr_plan_memory_pool *plan = pool->plan;
	uint64_t stride = (plan->block_size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
	void *region = NULL;
	weir_status status = WEIR_OK;

	pool->system = pool->graph->system;
	pool->shared.used = 0;
	wr_store(&pool->outside, 0);
	if (!in_blocks(pool))
		return WEIR_OK;
	if (!plan->memory)
		status = wr_system_alloc_region(pool->system, plan->device, stride * plan->blocks, &region);
	if (!status)
		wr_blocks_fill(&pool->blocks, region, stride, plan->memory);
	if (status == WEIR_E_NOMEM)
		return wr_fail(status,
			       "memory pool '%s': there are no %u blocks of %s: lower blocks or "
			       "block_size",
			       plan->name, plan->blocks, wr_size_shown((int64_t)plan->block_size).text);
	return status;
}

weir_status wr_memory_pools_open(weir_graph *graph)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < graph->memory_pool_count; i++)
		status = open_pool(&graph->memory_pools[i]);
	return status;
}

void wr_memory_pools_close(weir_graph *graph)
{
	for (size_t i = 0; i < graph->memory_pool_count; i++)
		graph->memory_pools[i].system = NULL;
}

void wr_memory_pools_reset(weir_graph *graph)
{
	for (size_t i = 0; i < graph->memory_pool_count; i++) {
		struct wr_memory_pool *pool = &graph->memory_pools[i];

		wr_shared_reset(&pool->shared);
		wr_mutex_lock(&pool->shared.lock);
		pool->taken = pool->failed = 0;
		if (in_blocks(pool))
			wr_blocks_rest(&pool->blocks);
		wr_mutex_unlock(&pool->shared.lock);
	}
}

void wr_memory_pools_watch(weir_graph *graph, const weir_scheduler *scheduler)
{
	for (size_t i = 0; i < graph->memory_pool_count; i++) {
		struct wr_memory_pool *pool = &graph->memory_pools[i];

		if (scheduler)
			wr_trace_pool(scheduler->trace, (uint32_t)i, pool->plan->name, pool->shared.size,
				      in_blocks(pool) ? "blocks" : "bytes");
		wr_mutex_lock(&pool->shared.lock);
		pool->shared.watched = scheduler;
		pool->shared.id = (uint32_t)i;
		wr_mutex_unlock(&pool->shared.lock);
	}
}

/* --- taking and freeing --- */

struct wr_claim *wr_entity_memory(const weir_entity *entity, bool on_host)
{
	for (size_t i = 0; i < entity->claim_count; i++)
		if ((wr_memory_pool_of(&entity->claims[i])->plan->device == WEIR_DEVICE_HOST) == on_host)
			return &entity->claims[i];
	return NULL;
}

/* Uses up the claim first; more than that only if it is free. */
static bool take_units_locked(struct wr_claim *claim, uint64_t units)
{
	uint64_t claimed = units < claim->held ? units : claim->held;

	if (!wr_shared_take_locked(claim->from, units - claimed))
		return false;
	claim->held -= claimed;
	return true;
}

/* `rested`: also a block that rests (blocks.h). */
static bool take_units(struct wr_claim *claim, uint64_t units, bool rested, void **block)
{
	struct wr_memory_pool *pool = wr_memory_pool_of(claim);
	bool taken;

	wr_mutex_lock(&pool->shared.lock);
	taken = (rested || !in_blocks(pool) || wr_blocks_have_turn(&pool->blocks)) &&
		take_units_locked(claim, units);
	if (taken) {
		pool->taken++;
		*block = in_blocks(pool) ? wr_blocks_take(&pool->blocks) : NULL;
	}
	wr_mutex_unlock(&pool->shared.lock);
	return taken;
}

static weir_status refuse_take(struct wr_claim *claim, uint64_t units)
{
	struct wr_memory_pool *pool = wr_memory_pool_of(claim);

	wr_mutex_lock(&pool->shared.lock);
	pool->failed++;
	wr_mutex_unlock(&pool->shared.lock);
	if (in_blocks(pool))
		return wr_fail(WEIR_E_BUSY,
			       "memory pool '%s': no block is left and the tick claimed %" PRIu64
			       ": raise min_blocks of its memory_available",
			       pool->plan->name, claim->units);
	return wr_fail(WEIR_E_BUSY,
		       "memory pool '%s': no %" PRIu64 " bytes are left and the tick claimed %" PRIu64
		       ": raise min_bytes of its memory_available",
		       pool->plan->name, units, claim->units);
}

static weir_status check_take(const struct wr_memory_pool *pool, size_t bytes)
{
	uint64_t most = in_blocks(pool) ? pool->plan->block_size : pool->plan->max_size;

	if (!pool->system)
		return wr_fail(WEIR_E_INVALID,
			       "memory pool '%s': it has no memory before a scheduler is created",
			       pool->plan->name);
	if (bytes > most)
		return wr_fail(WEIR_E_INVALID,
			       "memory pool '%s': %zu bytes do not fit into %s of %" PRIu64 " bytes",
			       pool->plan->name, bytes, in_blocks(pool) ? "a block" : "max_size", most);
	return WEIR_OK;
}

static void memory_free(struct wr_memory_pool *pool, void *data, size_t bytes, bool outside)
{
	uint64_t units = wr_memory_pool_units(pool, bytes);
	struct wr_offer offer;

	if (data && !in_blocks(pool))
		wr_system_free(pool->system, pool->plan->device, data, bytes);
	wr_mutex_lock(&pool->shared.lock);
	if (in_blocks(pool))
		wr_blocks_give_back(&pool->blocks, data);
	offer = wr_shared_release_locked(&pool->shared, units);
	if (outside) /* after the offer's live reference: the loop reads it without the lock (holders.c) */
		wr_fetch_sub(&pool->outside, units);
	wr_mutex_unlock(&pool->shared.lock);
	wr_poke_offered(offer);
}

static weir_status memory_take(struct wr_claim *claim, size_t bytes, void **out)
{
	struct wr_memory_pool *pool = wr_memory_pool_of(claim);
	uint64_t units = wr_memory_pool_units(pool, bytes);
	weir_status status = check_take(pool, bytes);
	void *data = NULL;

	if (status)
		return status;
	/* A block that the device has left takes its turn before one that rests. */
	if (!take_units(claim, units, false, &data)) {
		wr_system_run_deferred_frees(pool->system, false);
		if (!take_units(claim, units, true, &data))
			return refuse_take(claim, units);
	}
	if (!in_blocks(pool))
		status = wr_system_alloc(pool->system, pool->plan->device, bytes, &data);
	if (status)
		memory_free(pool, NULL, bytes, false);
	else
		*out = data;
	return status;
}

static void memory_deferred(struct wr_memory_pool *pool)
{
	if (wr_load(&pool->shared.refused))
		wr_system_kick(pool->system);
}

/* --- memory that a program holds --- */

static void memory_note_outside(struct wr_memory_pool *pool, size_t bytes)
{
	wr_fetch_add(&pool->outside, wr_memory_pool_units(pool, bytes));
}

static const struct wr_memory_calls memory_calls = {
	.take = memory_take,
	.free = memory_free,
	.deferred = memory_deferred,
	.note_outside = memory_note_outside,
};

bool wr_memory_pools_refuse(const weir_graph *graph)
{
	for (size_t i = 0; i < graph->memory_pool_count; i++)
		if (wr_load(&graph->memory_pools[i].shared.refused))
			return true;
	return false;
}

/* --- reports --- */

void wr_memory_pool_count(struct wr_memory_pool *pool, weir_pool_counts *out)
{
	out->pool = pool->plan->name;
	out->device = pool->plan->device;
	out->block_size = in_blocks(pool) ? pool->plan->block_size : 0;
	out->capacity = pool->shared.size;
	wr_mutex_lock(&pool->shared.lock);
	out->used = pool->shared.used;
	out->most_used = pool->shared.most;
	out->outside = wr_load(&pool->outside);
	out->allocations = pool->taken;
	out->refused = pool->shared.refusals;
	out->busy = pool->failed;
	wr_mutex_unlock(&pool->shared.lock);
}

void wr_claim_describe(const struct wr_claim *claim, char *text, size_t room)
{
	struct wr_memory_pool *pool = wr_memory_pool_of(claim);
	uint64_t free;

	wr_mutex_lock(&pool->shared.lock);
	free = pool->shared.size - pool->shared.used;
	wr_mutex_unlock(&pool->shared.lock);
	snprintf(text, room, "%" PRIu64 " of %" PRIu64 " %s of pool '%s' are free, a tick needs %" PRIu64,
		 free, pool->shared.size, in_blocks(pool) ? "blocks" : "bytes", pool->plan->name,
		 claim->units);
}

/*
 * What ticks claim of shared resources (S3), and the resource that there is: memory pools, with their blocks.
 */
#include "scheduler/memory.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/units.h"
#include "scheduler/graph.h"
#include "scheduler/run.h"
#include "scheduler/scheduler.h"

weir_status wr_shared_init(struct wr_shared *shared)
{
	return wr_mutex_init(&shared->lock);
}

void wr_shared_finish(struct wr_shared *shared)
{
	wr_mutex_finish(&shared->lock);
}

void wr_shared_reset(struct wr_shared *shared)
{
	wr_mutex_lock(&shared->lock);
	shared->most = shared->used;
	shared->refusals = 0;
	wr_mutex_unlock(&shared->lock);
}

/* --- the list of the refused; under the lock --- */

static void list_remove_locked(struct wr_claim *claim)
{
	struct wr_shared *shared = claim->from;

	if (!claim->listed)
		return;
	*(claim->older ? &claim->older->newer : &shared->first) = claim->newer;
	*(claim->newer ? &claim->newer->older : &shared->last) = claim->older;
	claim->older = claim->newer = NULL;
	claim->listed = false;
	wr_store(&shared->refused, wr_load(&shared->refused) - 1);
}

static void list_append_locked(struct wr_claim *claim)
{
	struct wr_shared *shared = claim->from;

	claim->older = shared->last;
	*(shared->last ? &shared->last->newer : &shared->first) = claim;
	shared->last = claim;
	claim->listed = true;
	claim->needs = claim->units - claim->held % claim->units;
	wr_store(&shared->refused, wr_load(&shared->refused) + 1);
}

static inline bool enough_locked(const struct wr_shared *shared, uint64_t units)
{
	return shared->size - shared->used >= units;
}

static void claim_set_owed_locked(struct wr_claim *claim, bool owed)
{
	if (wr_load_relaxed(&claim->owed) == owed)
		return;
	wr_store_relaxed(&claim->owed, owed); /* the poke that follows publishes it */
	claim->from->owed += owed ? 1 : (size_t)-1;
}

/* Offers what is free to the oldest entry for which it is enough (H15). */
static struct wr_offer offer_locked(struct wr_shared *shared)
{
	struct wr_claim *claim = shared->first;
	struct wr_offer offer = {NULL, NULL};

	while (claim && !enough_locked(shared, claim->needs))
		claim = claim->newer;
	if (!claim)
		return offer;
	list_remove_locked(claim);
	claim_set_owed_locked(claim, true);
	offer.entity = claim->entity;
	offer.held_open = wr_load_acquire(&claim->entity->scheduler);
	if (offer.held_open && wr_worker_here(offer.held_open))
		offer.held_open = NULL;
	if (offer.held_open)
		wr_live_take(&offer.held_open->live); /* closed: the poke is refused */
	return offer;
}

void wr_poke_offered(struct wr_offer offer)
{
	if (offer.entity)
		wr_poke(offer.entity);
	if (offer.held_open)
		wr_run_drop_live(offer.held_open);
}

/* --- units --- */

/*
 * Under the lock, so that the observers get the values in their order. The one lock that an observer takes is
 * held for a few stores (trace/ring.c).
 */
static void trace_used_locked(const struct wr_shared *shared)
{
	if (shared->watched)
		wr_trace_pool_used(shared->watched->trace, wr_lane_here(shared->watched), shared->id,
				   shared->used);
}

/* Under the lock: takes `units` if there is enough. */
static bool shared_take_locked(struct wr_shared *shared, uint64_t units)
{
	if (!enough_locked(shared, units))
		return false;
	shared->used += units;
	if (shared->used > shared->most)
		shared->most = shared->used;
	trace_used_locked(shared);
	return true;
}

struct wr_offer wr_shared_release_locked(struct wr_shared *shared, uint64_t units)
{
	shared->used -= units;
	trace_used_locked(shared);
	return offer_locked(shared);
}

static void claim_release(struct wr_claim *claim)
{
	struct wr_offer offer;

	wr_mutex_lock(&claim->from->lock);
	offer = wr_shared_release_locked(claim->from, claim->held);
	wr_mutex_unlock(&claim->from->lock);
	claim->held = 0;
	wr_poke_offered(offer);
}

/* "Too little" and the entry in the list are one critical section, so no release can come between them. */
static bool claim_take(struct wr_claim *claim)
{
	struct wr_shared *shared = claim->from;
	struct wr_offer offer = {NULL, NULL};
	bool taken;

	wr_mutex_lock(&shared->lock);
	claim_set_owed_locked(claim, false);
	list_remove_locked(claim);
	taken = shared_take_locked(shared, claim->units);
	if (taken) {
		offer = offer_locked(shared);
	} else {
		list_append_locked(claim);
		shared->refusals++;
	}
	wr_mutex_unlock(&shared->lock);
	claim->owed_before = false;
	claim->held = taken ? claim->units : 0;
	wr_poke_offered(offer);
	return taken;
}

/* --- claims that are kept --- */

/* How many more there is to hold: whole messages, since two that wait for a rest each would never get it. */
static uint64_t missing_locked(const struct wr_claim *claim)
{
	const struct wr_shared *shared = claim->from;
	uint64_t most = claim->held + shared->size - shared->used;
	uint64_t whole = most - most % claim->units;

	whole = whole < claim->wanted ? whole : claim->wanted;
	return whole > claim->held ? whole - claim->held : 0;
}

/* Takes what it wants, as far as there is some, or gives the rest back. Returns whether it has more then. */
static bool claim_fill(struct wr_claim *claim)
{
	struct wr_shared *shared = claim->from;
	struct wr_offer offer = {NULL, NULL};
	uint64_t more;

	wr_mutex_lock(&shared->lock);
	claim_set_owed_locked(claim, false);
	list_remove_locked(claim);
	more = missing_locked(claim);
	if (claim->held > claim->wanted)
		offer = wr_shared_release_locked(shared, claim->held - claim->wanted);
	else
		(void)shared_take_locked(shared, more);
	claim->held = claim->held > claim->wanted ? claim->wanted : claim->held + more;
	shared->refusals += !claim->dry && claim->wanted && claim->held < claim->units;
	claim->dry = claim->wanted && claim->held < claim->units;
	if (claim->held < claim->wanted)
		list_append_locked(claim);
	else if (!offer.entity)
		offer = offer_locked(shared);
	wr_mutex_unlock(&shared->lock);
	claim->owed_before = false;
	wr_poke_offered(offer);
	return more;
}

bool wr_claims_kept(const weir_entity *entity)
{
	return entity->claim_count && entity->claims->ahead;
}

size_t wr_claims_reserve(weir_entity *entity, size_t messages)
{
	size_t reserved = messages;

	for (size_t i = 0; i < entity->claim_count; i++) {
		struct wr_claim *claim = &entity->claims[i];

		claim->wanted = (messages < claim->ahead ? messages : claim->ahead) * claim->units;
	}
	for (size_t i = 0; i < entity->claim_count; i++)
		if (entity->claims[i].held != entity->claims[i].wanted ||
		    wr_load_relaxed(&entity->claims[i].owed))
			(void)claim_fill(&entity->claims[i]);
	for (size_t i = 0; i < entity->claim_count; i++) {
		struct wr_claim *claim = &entity->claims[i];
		uint64_t here = claim->held / claim->units;

		reserved = here < reserved ? (size_t)here : reserved;
	}
	return reserved;
}

bool weir_view_reserved(weir_view *view)
{
	weir_entity *entity = view->entity;
	bool grew = false;

	for (size_t i = 0; i < entity->claim_count; i++) {
		struct wr_claim *claim = &entity->claims[i];

		if (claim->held < claim->wanted && claim_fill(claim))
			claim->grew = true;
		grew |= claim->grew;
	}
	return grew;
}

/* --- an entity's claims --- */

void wr_claims_note_owed(weir_entity *entity)
{
	for (size_t i = 0; i < entity->claim_count; i++)
		entity->claims[i].owed_before = wr_load_relaxed(&entity->claims[i].owed);
}

struct wr_shared *wr_claims_take(weir_entity *entity)
{
	size_t taken = 0;

	while (taken < entity->claim_count &&
	       (entity->claims[taken].ahead || claim_take(&entity->claims[taken])))
		entity->claims[taken++].grew = false;
	if (taken == entity->claim_count)
		return NULL;
	for (size_t i = 0; i < taken; i++)
		claim_release(&entity->claims[i]);
	return entity->claims[taken].from;
}

void wr_claims_release(weir_entity *entity)
{
	for (size_t i = 0; i < entity->claim_count; i++)
		if (entity->claims[i].held && !entity->claims[i].ahead)
			claim_release(&entity->claims[i]);
}

/* An offer that came after the review began is followed by a poke, and so by another review. */
void wr_claims_pass_on(weir_entity *entity)
{
	for (size_t i = 0; i < entity->claim_count; i++) {
		struct wr_claim *claim = &entity->claims[i];
		struct wr_offer offer = {NULL, NULL};

		if (!claim->owed_before)
			continue;
		wr_mutex_lock(&claim->from->lock);
		claim_set_owed_locked(claim, false);
		offer = offer_locked(claim->from);
		wr_mutex_unlock(&claim->from->lock);
		claim->owed_before = false;
		wr_poke_offered(offer);
	}
}

/* DONE absorbs every poke, so a newer mark is taken back as well; what goes, in one critical section. */
void wr_claims_end(weir_entity *entity)
{
	for (size_t i = 0; i < entity->claim_count; i++) {
		struct wr_claim *claim = &entity->claims[i];
		struct wr_offer offer = {NULL, NULL};

		wr_mutex_lock(&claim->from->lock);
		list_remove_locked(claim);
		if (claim->held)
			offer = wr_shared_release_locked(claim->from, claim->held);
		else if (wr_load_relaxed(&claim->owed))
			offer = offer_locked(claim->from);
		claim->held = claim->wanted = 0;
		claim_set_owed_locked(claim, false);
		wr_mutex_unlock(&claim->from->lock);
		claim->owed_before = false;
		wr_poke_offered(offer);
	}
}

/* What an abandoned run left: no worker and no poke of it is alive. */
void wr_claims_reset(weir_entity *entity)
{
	for (size_t i = 0; i < entity->claim_count; i++) {
		struct wr_claim *claim = &entity->claims[i];

		wr_mutex_lock(&claim->from->lock);
		list_remove_locked(claim);
		claim->from->used -= claim->held;
		claim_set_owed_locked(claim, false);
		wr_mutex_unlock(&claim->from->lock);
		claim->held = claim->wanted = 0;
		claim->owed_before = claim->grew = false;
	}
}

bool wr_claim_is_refused(const struct wr_claim *claim)
{
	bool refused;

	wr_mutex_lock(&claim->from->lock);
	refused = (claim->listed || wr_load_relaxed(&claim->owed)) &&
		  !(claim->ahead && claim->held >= claim->units);
	wr_mutex_unlock(&claim->from->lock);
	return refused;
}

bool wr_claims_refused(const weir_entity *entity)
{
	for (size_t i = 0; i < entity->claim_count; i++)
		if (wr_claim_is_refused(&entity->claims[i]))
			return true;
	return false;
}

bool wr_shared_lacks(struct wr_shared *shared)
{
	bool lacks;

	wr_mutex_lock(&shared->lock);
	lacks = shared->first || shared->owed;
	wr_mutex_unlock(&shared->lock);
	return lacks;
}

uint64_t wr_shared_used(struct wr_shared *shared)
{
	uint64_t used;

	wr_mutex_lock(&shared->lock);
	used = shared->used;
	wr_mutex_unlock(&shared->lock);
	return used;
}

/* === blocks === */

weir_status wr_blocks_init(struct wr_blocks *blocks, size_t count)
{
	*blocks = (struct wr_blocks){.count = count};
	blocks->resting = wr_alloc(2 * count, sizeof *blocks->resting);
	if (!blocks->resting)
		return WEIR_E_NOMEM;
	blocks->ring = blocks->resting + count;
	return WEIR_OK;
}

void wr_blocks_finish(struct wr_blocks *blocks)
{
	wr_free(blocks->resting);
}

/* The first one is taken first. */
void wr_blocks_fill(struct wr_blocks *blocks, void *region, size_t stride, void *const *listed)
{
	size_t count = blocks->count;

	for (size_t i = 0; i < count; i++)
		blocks->resting[count - 1 - i] = region ? (char *)region + i * stride : listed[i];
	blocks->resting_count = count;
	blocks->first = blocks->ring_count = blocks->turns = blocks->takes = blocks->most = 0;
}

size_t wr_blocks_free(const struct wr_blocks *blocks)
{
	return blocks->resting_count + blocks->ring_count;
}

static size_t in_turns(const struct wr_blocks *blocks)
{
	return blocks->count - blocks->resting_count;
}

static size_t in_use(const struct wr_blocks *blocks)
{
	return blocks->count - wr_blocks_free(blocks);
}

static void *ring_pop(struct wr_blocks *blocks)
{
	void *block = blocks->ring[blocks->first];

	blocks->first = (blocks->first + 1) % blocks->count;
	blocks->ring_count--;
	return block;
}

void wr_blocks_rest(struct wr_blocks *blocks)
{
	while (blocks->ring_count)
		blocks->resting[blocks->resting_count++] = ring_pop(blocks);
	blocks->turns = in_turns(blocks);
	blocks->takes = blocks->most = 0;
}

void *wr_blocks_take(struct wr_blocks *blocks)
{
	void *block;

	if (blocks->ring_count) {
		block = ring_pop(blocks);
	} else {
		block = blocks->resting[--blocks->resting_count];
		blocks->turns = in_turns(blocks);
	}
	if (in_use(blocks) > blocks->most)
		blocks->most = in_use(blocks);
	if (++blocks->takes >= WR_BLOCKS_WHILE) {
		if (2 * blocks->most < in_turns(blocks))
			blocks->turns = blocks->most;
		blocks->takes = 0;
		blocks->most = in_use(blocks);
	}
	return block;
}

void wr_blocks_give_back(struct wr_blocks *blocks, void *block)
{
	if (in_turns(blocks) > blocks->turns)
		blocks->resting[blocks->resting_count++] = block;
	else
		blocks->ring[(blocks->first + blocks->ring_count++) % blocks->count] = block;
}

/* === memory pools === */

#define ALIGNMENT ((uint64_t)256) /* of a block: as cudaMalloc's */

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

/* Uses up the claim first; more than that only if it is free. `rested`: also a block that rests. */
static bool take_units(struct wr_claim *claim, uint64_t units, bool rested, void **block)
{
	struct wr_memory_pool *pool = wr_memory_pool_of(claim);
	uint64_t claimed;
	bool taken;

	wr_mutex_lock(&pool->shared.lock);
	claimed = units < claim->held ? units : claim->held;
	taken = (rested || !in_blocks(pool) || wr_blocks_have_turn(&pool->blocks)) &&
		shared_take_locked(claim->from, units - claimed);
	if (taken) {
		claim->held -= claimed;
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

void wr_memory_free(struct wr_memory_pool *pool, void *data, size_t bytes, bool outside)
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

weir_status wr_memory_take(struct wr_claim *claim, size_t bytes, void **out)
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
		wr_memory_free(pool, NULL, bytes, false);
	else
		*out = data;
	return status;
}

void wr_memory_deferred(struct wr_memory_pool *pool)
{
	if (wr_load(&pool->shared.refused))
		wr_system_kick(pool->system);
}

/* --- memory that a program holds --- */

void wr_memory_note_outside(struct wr_memory_pool *pool, size_t bytes)
{
	wr_fetch_add(&pool->outside, wr_memory_pool_units(pool, bytes));
}

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
	snprintf(text, room, "%" PRIu64 " of %" PRIu64 " %s of pool '%s' are free, a %s needs %" PRIu64, free,
		 pool->shared.size, in_blocks(pool) ? "blocks" : "bytes", pool->plan->name,
		 claim->ahead ? "message" : "tick", claim->units);
}

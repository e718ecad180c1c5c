#include "scheduler/claim.h"

#include "scheduler/graph.h"
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
	wr_store(&shared->refused, wr_load(&shared->refused) + 1);
}

static inline bool enough_locked(const struct wr_shared *shared, uint64_t units)
{
	return shared->size - shared->used >= units;
}

/* Offers what is free to the oldest entry for which it is enough (H15). */
static weir_entity *offer_locked(struct wr_shared *shared)
{
	struct wr_claim *claim = shared->first;

	while (claim && !enough_locked(shared, claim->units))
		claim = claim->newer;
	if (!claim)
		return NULL;
	list_remove_locked(claim);
	wr_store_relaxed(&claim->owed, true); /* the poke that follows publishes it */
	return claim->entity;
}

void wr_poke_offered(weir_entity *entity)
{
	if (entity)
		entity->graph->poke(entity);
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

bool wr_shared_take_locked(struct wr_shared *shared, uint64_t units)
{
	if (!enough_locked(shared, units))
		return false;
	shared->used += units;
	if (shared->used > shared->most)
		shared->most = shared->used;
	trace_used_locked(shared);
	return true;
}

weir_entity *wr_shared_release_locked(struct wr_shared *shared, uint64_t units)
{
	shared->used -= units;
	trace_used_locked(shared);
	return offer_locked(shared);
}

static void claim_release(struct wr_claim *claim)
{
	weir_entity *offered;

	wr_mutex_lock(&claim->from->lock);
	offered = wr_shared_release_locked(claim->from, claim->held);
	wr_mutex_unlock(&claim->from->lock);
	claim->held = 0;
	wr_poke_offered(offered);
}

/* "Too little" and the entry in the list are one critical section, so no release can come between them. */
static bool claim_take(struct wr_claim *claim)
{
	struct wr_shared *shared = claim->from;
	weir_entity *offered = NULL;
	bool taken;

	wr_mutex_lock(&shared->lock);
	wr_store_relaxed(&claim->owed, false);
	list_remove_locked(claim);
	taken = wr_shared_take_locked(shared, claim->units);
	if (taken) {
		offered = offer_locked(shared);
	} else {
		list_append_locked(claim);
		shared->refusals++;
	}
	wr_mutex_unlock(&shared->lock);
	claim->owed_before = false;
	claim->held = taken ? claim->units : 0;
	wr_poke_offered(offered);
	return taken;
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

	while (taken < entity->claim_count && claim_take(&entity->claims[taken]))
		taken++;
	if (taken == entity->claim_count)
		return NULL;
	for (size_t i = 0; i < taken; i++)
		claim_release(&entity->claims[i]);
	return entity->claims[taken].from;
}

void wr_claims_release(weir_entity *entity)
{
	for (size_t i = 0; i < entity->claim_count; i++)
		if (entity->claims[i].held)
			claim_release(&entity->claims[i]);
}

/* An offer that came after the review began is followed by a poke, and so by another review. */
void wr_claims_pass_on(weir_entity *entity)
{
	for (size_t i = 0; i < entity->claim_count; i++) {
		struct wr_claim *claim = &entity->claims[i];
		weir_entity *offered = NULL;

		if (!claim->owed_before)
			continue;
		wr_mutex_lock(&claim->from->lock);
		wr_store_relaxed(&claim->owed, false);
		offered = offer_locked(claim->from);
		wr_mutex_unlock(&claim->from->lock);
		claim->owed_before = false;
		wr_poke_offered(offered);
	}
}

/* DONE absorbs every poke, so a newer mark is taken back as well; mark and entry in one critical section. */
void wr_claims_end(weir_entity *entity)
{
	for (size_t i = 0; i < entity->claim_count; i++) {
		struct wr_claim *claim = &entity->claims[i];
		weir_entity *offered = NULL;

		wr_mutex_lock(&claim->from->lock);
		list_remove_locked(claim);
		if (wr_load_relaxed(&claim->owed))
			offered = offer_locked(claim->from);
		wr_store_relaxed(&claim->owed, false);
		wr_mutex_unlock(&claim->from->lock);
		claim->owed_before = false;
		wr_poke_offered(offered);
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
		wr_store_relaxed(&claim->owed, false);
		wr_mutex_unlock(&claim->from->lock);
		claim->held = 0;
		claim->owed_before = false;
	}
}

bool wr_claim_is_refused(const struct wr_claim *claim)
{
	bool refused;

	wr_mutex_lock(&claim->from->lock);
	refused = claim->listed;
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

#include "scheduler/claim.h"

#include "scheduler/graph.h"
#include "scheduler/run.h"
#include "scheduler/worker.h"

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

	while (claim && !enough_locked(shared, claim->units))
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
		offer.entity->graph->poke(offer.entity);
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
	taken = wr_shared_take_locked(shared, claim->units);
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

/* DONE absorbs every poke, so a newer mark is taken back as well; mark and entry in one critical section. */
void wr_claims_end(weir_entity *entity)
{
	for (size_t i = 0; i < entity->claim_count; i++) {
		struct wr_claim *claim = &entity->claims[i];
		struct wr_offer offer = {NULL, NULL};

		wr_mutex_lock(&claim->from->lock);
		list_remove_locked(claim);
		if (wr_load_relaxed(&claim->owed))
			offer = offer_locked(claim->from);
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
		claim->held = 0;
		claim->owed_before = false;
	}
}

bool wr_claim_is_refused(const struct wr_claim *claim)
{
	bool refused;

	wr_mutex_lock(&claim->from->lock);
	refused = claim->listed || wr_load_relaxed(&claim->owed);
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

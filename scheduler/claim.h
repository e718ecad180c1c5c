/*
 * Claims (S3): what several entities share and a tick must not lack is claimed between READY and the tick.
 *
 * A shared resource has an amount, in units of its own (the blocks of a memory pool, or its bytes), and a
 * list of the entities that were refused, oldest first. Whatever adds to the free amount offers it: it
 * removes the oldest entry for which there is enough from the list, marks it as owed, and pokes it after the
 * critical section. Nothing is reserved for an owed entity. Model: tests/models/m2_claim.c; change it first.
 *
 * The caller of a function that returns an offer pokes its entity after the critical section. Between the two
 * the entity is neither refused nor queued, so an offer by a thread that is no worker of the run holds a live
 * reference: else the run could end there (S4).
 */
#ifndef WR_SCHEDULER_CLAIM_H
#define WR_SCHEDULER_CLAIM_H

#include "base/atomic.h"
#include "base/thread.h"
#include "weir.h"

struct wr_claim;

/* What a critical section offered. */
struct wr_offer {
	weir_entity *entity;       /* NULL: nothing */
	weir_scheduler *held_open; /* by a live reference, until the poke; NULL: a worker's own is enough */
};

struct wr_shared {
	struct wr_mutex lock;          /* guards what follows */
	uint64_t size, used;           /* units in all; claimed by an entity, or in use by what a tick made */
	uint64_t most;                 /* highest `used` of this run */
	uint64_t refusals;             /* of this run */
	struct wr_claim *first, *last; /* refused, oldest first */
	size_t owed;                   /* claims that are marked */
	const weir_scheduler *watched; /* whose observers are told of `used`; NULL: none are */
	uint32_t id;                   /* for them */
	/* A hint for threads without the lock: written under it, and a refused entity looks again itself. */
	_Atomic size_t refused;
};

/* What one entity claims of one resource for each tick. */
struct wr_claim {
	struct wr_shared *from;
	weir_entity *entity;
	uint64_t units;    /* constant during a run */
	uint64_t held;     /* owner: claimed for this tick, not yet used by it */
	bool owed_before;  /* owner: was owed when the review began */
	_Atomic bool owed; /* written under the lock of `from` */
	bool listed;       /* guarded by that lock, as the links: in the list of the refused */
	struct wr_claim *older, *newer;
};

weir_status wr_shared_init(struct wr_shared *shared);
void wr_shared_finish(struct wr_shared *shared);
void wr_shared_reset(struct wr_shared *shared); /* before a run, after its claims: counters of the run */

void wr_poke_offered(struct wr_offer offer); /* and drops its reference; call it without the lock */
/* Under the lock: takes `units` if there is enough. */
bool wr_shared_take_locked(struct wr_shared *shared, uint64_t units);
/* Under the lock: returns units and offers what is free. */
struct wr_offer wr_shared_release_locked(struct wr_shared *shared, uint64_t units);

/*
 * What follows is for the owner of an entity with claims. They are in ascending order of their resources,
 * which makes each step of a set of claims end (descending ones livelock).
 */
void wr_claims_note_owed(weir_entity *entity); /* when a review begins, after the exchange to RUNNING */
/* Claims everything for one tick, or nothing: then the entity is in the list of what it lacks, returned. */
struct wr_shared *wr_claims_take(weir_entity *entity);
void wr_claims_release(weir_entity *entity); /* after compute: what the tick did not use */
void wr_claims_pass_on(weir_entity *entity); /* the review did not end in a tick: passes offers on */
void wr_claims_end(weir_entity *entity);     /* the entity is DONE */
void wr_claims_reset(weir_entity *entity);   /* before a run */
bool wr_claim_is_refused(const struct wr_claim *claim); /* it is in the list; Thread: any */
/* Some claim of it is, or is owed what it was refused: the poke is on its way. Thread: any. */
bool wr_claims_refused(const weir_entity *entity);
uint64_t wr_shared_used(struct wr_shared *shared); /* units. Thread: any */
bool wr_shared_lacks(struct wr_shared *shared);    /* some entity is in the list, or owed. Thread: any */

#endif

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
#ifndef WR_SCHEDULER_MEMORY_H
#define WR_SCHEDULER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/atomic.h"
#include "base/text.h"
#include "base/thread.h"
#include "graphs/plan.h"
#include "streams/streams.h"
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
	uint64_t units;  /* for a tick, or a message made ahead; constant during a run, as `ahead` */
	uint64_t ahead;  /* such messages at most; 0: what a tick claimed it gives back */
	uint64_t held;   /* owner: claimed, not yet used. Made ahead: written under the lock of `from`, too */
	uint64_t wanted; /* owner: made ahead: what it is to hold */
	uint64_t needs;  /* guarded by that lock: it is offered a try if so many are free */
	bool grew;       /* owner: more is held than at the last tick */
	bool dry;        /* owner: made ahead: there was none when it was last filled */
	bool owed_before;  /* owner: was owed when the review began */
	_Atomic bool owed; /* written under the lock of `from` */
	bool listed;       /* guarded by that lock, as the links: in the list of the refused, or lacks some */
	struct wr_claim *older, *newer;
};

weir_status wr_shared_init(struct wr_shared *shared);
void wr_shared_finish(struct wr_shared *shared);
void wr_shared_reset(struct wr_shared *shared); /* before a run, after its claims: counters of the run */

void wr_poke_offered(struct wr_offer offer); /* and drops its reference; call it without the lock */
/* Under the lock: returns units and offers what is free. */
struct wr_offer wr_shared_release_locked(struct wr_shared *shared, uint64_t units);

/*
 * What follows is for the owner of an entity with claims. They are in ascending order of their resources,
 * which makes each step of a set of claims end (descending ones livelock).
 */
void wr_claims_note_owed(weir_entity *entity); /* when a review begins, after the exchange to RUNNING */
/* Claims everything for one tick, or nothing: then the entity is in the list of what it lacks, returned. */
struct wr_shared *wr_claims_take(weir_entity *entity);
void wr_claims_release(weir_entity *entity); /* after compute: what the tick did not use, unless it is kept */
/*
 * Claims that are kept (made ahead). Holds memory for `messages`, as far as there is some, and gives more
 * than that back; returns for how many it holds some. Without claims that is all.
 */
size_t wr_claims_reserve(weir_entity *entity, size_t messages);
bool wr_claims_kept(const weir_entity *entity); /* its claims are of this kind */
void wr_claims_pass_on(weir_entity *entity);    /* the review did not end in a tick: passes offers on */
void wr_claims_end(weir_entity *entity);        /* the entity is DONE */
void wr_claims_reset(weir_entity *entity);      /* before a run, and when it was stopped */
/* It is in the list, or owed; one that keeps holds nothing, too. Thread: any */
bool wr_claim_is_refused(const struct wr_claim *claim);
/* Some claim of it is, or is owed what it was refused: the poke is on its way. Thread: any. */
bool wr_claims_refused(const weir_entity *entity);
uint64_t wr_shared_used(struct wr_shared *shared); /* units. Thread: any */
bool wr_shared_lacks(struct wr_shared *shared);    /* some entity is in the list, or owed. Thread: any */

/*
 * === blocks ===
 *
 * The free blocks of a memory pool, and which of them is taken. As many blocks take turns as are needed at
 * once, and of these the one that became free first is taken first: so in a steady pipeline the blocks of
 * several pools go in step with each other, and replay meets few pairs of addresses, all of them early. The
 * others rest. One of them is taken if no block that takes turns is free; and if for a while less than half
 * of the blocks that take turns were in use at once, only so many go on, since a stall may have needed many.
 */

struct wr_blocks {
	void **resting, **ring; /* each has room for all; the ring: free ones that take turns, oldest first */
	size_t count, resting_count, first, ring_count;
	size_t turns;       /* how many are to take turns */
	size_t takes, most; /* of this while: blocks taken; most in use at once */
};

/* A whole while, in blocks taken. */
enum { WR_BLOCKS_WHILE = 256 };

weir_status wr_blocks_init(struct wr_blocks *blocks, size_t count); /* WEIR_E_NOMEM; then finish it, too */
void wr_blocks_finish(struct wr_blocks *blocks);
/* All are free and rest: those of a region, `stride` bytes apart, or those listed if it is NULL. */
void wr_blocks_fill(struct wr_blocks *blocks, void *region, size_t stride, void *const *listed);
void wr_blocks_rest(struct wr_blocks *blocks); /* those that are free; before a run */
size_t wr_blocks_free(const struct wr_blocks *blocks);
/* Returns true if one that takes turns is free; else the next one taken has rested. */
static inline bool wr_blocks_have_turn(const struct wr_blocks *blocks)
{
	return blocks->ring_count > 0;
}
void *wr_blocks_take(struct wr_blocks *blocks); /* one is free */
void wr_blocks_give_back(struct wr_blocks *blocks, void *block);

/*
 * === memory pools ===
 *
 * A bounded amount of memory of one place, shared by the entities that name it. In block form a
 * pool is an array of blocks, which keep their addresses as long as the graph has its system; with `max_size`
 * it is a bound on bytes of the system's arena. Ticks take from it what their claims hold, and more
 * only if something is left.
 */

struct wr_memory_pool;

struct wr_memory_pool {
	struct wr_shared shared; /* in blocks, or in bytes; its lock guards what is not constant */
	const struct wr_plan_memory_pool *plan;
	weir_graph *graph;
	struct wr_system *system; /* NULL: the graph has none; constant during a run */
	struct wr_blocks blocks;  /* block form */
	_Atomic uint64_t outside; /* units that a program took from outlets, until they are free */
	uint64_t taken;           /* of this run: allocations; those that found too little */
	uint64_t failed;
	/* Units, as of the loop's last look (holders.c): in queues; held by the program, or by an operator.
	 */
	uint64_t queued, program;
	/* Of its last search for what stands (stuck.c): units in queues of members; the member with the most.
	 */
	uint64_t units_inside;
	uint32_t holder_inside;
};

/* Makes the pools of the plan, without memory. wr_memory_pools_destroy takes half-made ones. */
weir_status wr_memory_pools_make(weir_graph *graph);
void wr_memory_pools_destroy(weir_graph *graph);
/* Gives the pools memory of the graph's system. Fails: WEIR_E_NOMEM, WEIR_E_DEVICE, naming the pool. */
weir_status wr_memory_pools_open(weir_graph *graph);
void wr_memory_pools_close(weir_graph *graph); /* the system is destroyed: nothing is in use */
void wr_memory_pools_reset(weir_graph *graph); /* before a run, after the entities */
/* Declares the pools to the scheduler's observers, and tells them from now on; NULL: not any more. */
void wr_memory_pools_watch(weir_graph *graph, const weir_scheduler *scheduler);

/* Its units for an allocation of that many bytes: one block, or the bytes. */
uint64_t wr_memory_pool_units(const struct wr_memory_pool *pool, size_t bytes);
/* The entity's claim of the pool of that place; NULL: it uses none. */
struct wr_claim *wr_entity_memory(const weir_entity *entity, bool on_host);
bool wr_memory_pools_refuse(const weir_graph *graph); /* some entity is refused: a hint */

/*
 * Takes memory for a tick, or in start. Fails: WEIR_E_INVALID: larger than a block; WEIR_E_BUSY: nothing is
 * left; WEIR_E_NOMEM. Thread: owner.
 */
weir_status wr_memory_take(struct wr_claim *claim, size_t bytes, void **out);
/* Pokes the entity that it is offered to. `outside`: it was counted by wr_memory_note_outside. */
void wr_memory_free(struct wr_memory_pool *pool, void *data, size_t bytes, bool outside);
/* The device still uses the memory: the loop frees it, and soon if an entity was refused. */
void wr_memory_deferred(struct wr_memory_pool *pool);
/* A program takes a message of the pool from an outlet. */
void wr_memory_note_outside(struct wr_memory_pool *pool, size_t bytes);

static inline struct wr_memory_pool *wr_memory_pool_of(const struct wr_claim *claim)
{
	return (struct wr_memory_pool *)(void *)claim->from; /* the first member */
}

void wr_memory_pool_count(struct wr_memory_pool *pool, weir_pool_counts *out); /* Thread: any */
/* "0 of 8 blocks of pool 'frames' are free, a tick needs 2". */
void wr_claim_describe(const struct wr_claim *claim, char *text, size_t room);

#endif

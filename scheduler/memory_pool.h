/*
 * Memory pools: a bounded amount of memory of one place, shared by the entities that name it. In block form a
 * pool is an array of blocks, which keep their addresses as long as the graph has its system; with `max_size`
 * it is a bound on bytes of the system's arena. Ticks take from it what their claims hold (claim.h), and more
 * only if something is left.
 */
#ifndef WR_SCHEDULER_MEMORY_POOL_H
#define WR_SCHEDULER_MEMORY_POOL_H

#include "base/text.h"
#include "graphs/plan.h"
#include "scheduler/blocks.h"
#include "scheduler/claim.h"
#include "streams/streams.h"

struct wr_memory_pool;

/* What messages call: a table, since the files of messages are below this one. */
struct wr_memory_calls {
	/*
	 * Takes memory for a tick, or in start. Fails: WEIR_E_INVALID: larger than a block; WEIR_E_BUSY:
	 * nothing is left; WEIR_E_NOMEM. Thread: owner.
	 */
	weir_status (*take)(struct wr_claim *claim, size_t bytes, void **out);
	/* Pokes the entity that it is offered to. `outside`: it was counted by note_outside. */
	void (*free)(struct wr_memory_pool *pool, void *data, size_t bytes, bool outside);
	/* The device still uses the memory: the loop frees it, and soon if an entity was refused. */
	void (*deferred)(struct wr_memory_pool *pool);
	/* A program takes a message of the pool from an outlet. */
	void (*note_outside)(struct wr_memory_pool *pool, size_t bytes);
};

struct wr_memory_pool {
	struct wr_shared shared; /* in blocks, or in bytes; its lock guards what is not constant */
	const struct wr_memory_calls *calls;
	const struct wr_plan_memory_pool *plan;
	weir_graph *graph;
	struct wr_system *system; /* NULL: the graph has none; constant during a run */
	struct wr_blocks blocks;  /* block form */
	_Atomic uint64_t outside; /* units that a program took from outlets, until they are free */
	uint64_t taken;           /* of this run: allocations; those that found too little */
	uint64_t failed;
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

static inline struct wr_memory_pool *wr_memory_pool_of(const struct wr_claim *claim)
{
	return (struct wr_memory_pool *)(void *)claim->from; /* the first member */
}

void wr_memory_pool_count(struct wr_memory_pool *pool, weir_pool_counts *out); /* Thread: any */
/* "0 of 8 blocks of pool 'frames' are free, a tick needs 2". */
void wr_claim_describe(const struct wr_claim *claim, char *text, size_t room);

#endif

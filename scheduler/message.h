/* Messages: pooled and reference-counted, with a payload and its fences (T4). */
#ifndef WR_SCHEDULER_MESSAGE_H
#define WR_SCHEDULER_MESSAGE_H

#include "base/atomic.h"
#include "streams/streams.h"

#define WR_WORKERS_MAX 64

/* The thread-local of a worker (base/thread.h): set by the scheduler, NULL on other threads. */
struct wr_local {
	unsigned index;        /* 0..WR_WORKERS_MAX-1 */
	const void *pool;      /* of its graph: only this thread uses cache `index` of it */
	weir_context *context; /* of the running tick, until its inputs are released */
	weir_message *freeing; /* the pack whose parts are dropped now; its `arg`: the one around it */
};

/*
 * What some message of a pool is or was; COUNTED: who holds messages is counted in this run. A graph without
 * such messages pays one load for them.
 */
enum wr_pool_mark { WR_POOL_PACKS = 1, WR_POOL_STAMPS = 2, WR_POOL_COUNTED = 4 };

/*
 * Sticky bits, in a line of their own, at the beginning of a pool. Relaxed: the push of the message that set
 * a bit releases it.
 */
struct wr_pool_marks {
	_Alignas(64) _Atomic uint32_t bits;
};

/*
 * The messages of one graph: a cache per worker (no lock), and one shared list behind a lock for all other
 * threads and to balance the caches.
 */
struct wr_pool;
weir_status wr_pool_create(struct wr_pool **out);
static inline bool wr_pool_has(const void *pool, enum wr_pool_mark mark)
{
	return wr_load_relaxed(&((struct wr_pool_marks *)pool)->bits) & mark;
}
void wr_pool_mark(struct wr_pool *pool, enum wr_pool_mark mark);
void wr_pool_clear(struct wr_pool *pool, enum wr_pool_mark mark);
/* Without a system (NULL) payloads are in host memory only. */
void wr_pool_bind(struct wr_pool *pool, struct wr_system *system);
struct wr_system *wr_pool_system(const struct wr_pool *pool);
/*
 * Messages that exist, including those in the deferred-free list; exact while no other thread uses the pool.
 */
uint64_t wr_pool_live(const struct wr_pool *pool);
void wr_pool_destroy(struct wr_pool *pool); /* asserts that no message is alive */
/*
 * Fails with WEIR_E_INVALID if a message was unreferenced too often since the last call; *by: the entity
 * whose tick did it, or NULL.
 */
weir_status wr_pool_check(struct wr_pool *pool, const weir_entity **by);
/* Allocates until at least `messages` are free, so that the steady state calls no malloc. */
weir_status wr_pool_reserve(struct wr_pool *pool, size_t messages);

weir_status wr_message_empty(struct wr_pool *pool, weir_message **out);
/* As weir_message_create_tensor, on this device. */
weir_status wr_message_tensor(struct wr_pool *pool, const weir_tensor *like, int device, weir_message **out);

struct wr_claim;
struct wr_memory_pool;
/* As weir_message_create_tensor, with memory of the pool that the claim is of (memory_pool.h). */
weir_status wr_message_pooled_tensor(struct wr_pool *pool, const weir_tensor *like, struct wr_claim *claim,
				     weir_message **out);
/* The memory pool of its payload, or NULL. Thread: holds a reference. */
struct wr_memory_pool *wr_message_memory_pool(const weir_message *message);
/*
 * A program takes it from an outlet. Thread: under the outlet's lock, so that a unit is the program's as soon
 * as it is not the outlet's any more (S4).
 */
void wr_message_note_outside(weir_message *message);

/*
 * Of a counted run: the compute that the calling thread runs holds so many references more. Outside of
 * compute nothing is counted.
 */
void wr_message_note_kept(int64_t references);
void wr_message_unref(weir_message *message); /* a reference of weir's own; not NULL */

/* A fan-out takes all its references before its first push (T4). */
void wr_message_ref_many(weir_message *message, uint32_t n);
uint32_t wr_message_references(const weir_message *message); /* exact if the caller holds all of them */
struct wr_pool *wr_message_pool(const weir_message *message);
/*
 * Marks it as delivered: others may hold it. Returns wr_message_has_fences. Call before its first push.
 * Thread: holds all references.
 */
bool wr_message_mark_delivered(weir_message *message);
/* Returns true if it was delivered and weir_message_unique has not returned true since. */
bool wr_message_delivered(const weir_message *message);
/*
 * The packs that were being freed when a destructor of a part ended the thread: frees what is left of them.
 * Thread: that of the local. A destructor of theirs may end it again: then call it again.
 */
void wr_message_finish_packs(struct wr_local *local);
/* How many references `pack`, which may be of any kind, holds to the message as its part. */
size_t wr_pack_count_held(const weir_message *pack, const weir_message *message);

/* --- stamps (stamp.c) --- */

/*
 * Before delivery, in a graph with stamps: gives those that a tick emits their stamp, and counts how old
 * those are that ended here. Thread: the entity's owner.
 */
void wr_entity_stamp_tick(weir_entity *entity);
/* The parts of a stamped message that have no stamp get its. Thread: its only holder. */
void wr_message_stamp_parts(weir_message *message);

struct wr_latencies;
void wr_latencies_clear(struct wr_latencies *latencies);
/* Counts the age of a message that has a stamp with a time; *now: 0: not read yet. */
void wr_latencies_add(struct wr_latencies *latencies, const weir_message *message, int64_t *now);

/*
 * How the work before a fence concerns a message (T4, T7). USED: the fence joins the use set only. PRODUCED:
 * the fence also travels with the message, so that gates and device waits see it, but receivers are not given
 * its stream. CARRIED: receivers are given the stream, too.
 */
enum wr_part { WR_USED, WR_CARRIED, WR_PRODUCED };
/*
 * Adds `fence` to the use set and, unless part is USED, to the producers. Keeps the latest fence per stream;
 * a stream once carried stays carried. Thread: holds a reference. Fails: WEIR_E_NOMEM.
 */
weir_status wr_message_add_fence(weir_message *message, weir_fence fence, enum wr_part part);
/* The producers' fences, one per stream. Returns their count, writes at most `room`. */
size_t wr_message_fences(const weir_message *message, weir_fence *out, size_t room);
/* Those among them whose stream is carried. */
size_t wr_message_carried(const weir_message *message, weir_fence *out, size_t room);
bool wr_message_has_fences(const weir_message *message);
/*
 * Adds a fence to `count` fences of different streams, of each the latest. Returns the new count: there must
 * be room.
 */
size_t wr_fences_add(weir_fence *out, size_t count, weir_fence fence);

#endif

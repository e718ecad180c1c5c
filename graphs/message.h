/* Messages: pooled, counted, with their payload and its fences (T4). */
#ifndef WR_GRAPHS_MESSAGE_H
#define WR_GRAPHS_MESSAGE_H

#include "base/atomic.h"
#include "streams/streams.h"

#define WR_WORKERS_MAX 64

/* What base/thread.h keeps per thread for a worker: set by the scheduler, NULL on foreign threads. */
struct wr_local {
	unsigned index;			/* 0..WR_WORKERS_MAX-1 */
	const void *pool;		/* of its graph: the cache `index` is this thread's alone */
	weir_context *context;		/* of the tick that runs now, until its inputs are released */
};

/*
 * The messages of one graph: a cache per worker (no lock), one shared list behind a lock for all other
 * threads and for balance.
 */
struct wr_pool;
weir_status wr_pool_create(struct wr_pool **out);
/* NULL: unbound; then there is host memory alone. */
void wr_pool_bind(struct wr_pool *pool, struct wr_system *system);
struct wr_system *wr_pool_system(const struct wr_pool *pool);
/* Messages that exist, also on a retire list; exact when nobody works. */
uint64_t wr_pool_live(const struct wr_pool *pool);
void wr_pool_destroy(struct wr_pool *pool);		/* asserts that none is alive */
/*
 * Fails with WEIR_E_INVALID if a reference was dropped that there was not since the last call; *by: in whose
 * tick, NULL if in none.
 */
weir_status wr_pool_judge(struct wr_pool *pool, const weir_entity **by);
/* Makes sure that so many messages lie ready: no malloc in steady state. */
weir_status wr_pool_reserve(struct wr_pool *pool, size_t messages);

/* graphs/graph.c: the pool of a graph, for the public creators. */
struct wr_pool *wr_graph_pool(weir_graph *graph);

weir_status wr_message_empty(weir_message **out, struct wr_pool *pool);
weir_status wr_message_bytes(weir_message **out, struct wr_pool *pool, size_t bytes);
weir_status wr_message_tensor(weir_message **out, struct wr_pool *pool, const weir_tensor *like, int device);
weir_status wr_message_wrap(weir_message **out, struct wr_pool *pool, const weir_tensor *tensor,
			    void (*destroy)(void *), void *arg);
weir_status wr_message_user(weir_message **out, struct wr_pool *pool, void *pointer, void (*destroy)(void *));

/* A fan-out takes all its references before its first push (T4). */
void wr_message_ref_many(weir_message *message, uint32_t n);
uint32_t wr_message_references(const weir_message *message);	/* a snapshot; exact for the only holders */
struct wr_pool *wr_message_pool(const weir_message *message);
/* From here on others may hold it: before its first push. Thread: who holds all references. */
void wr_message_deliver(weir_message *message);
/* That happened, and weir_message_unique has not told anybody yes since. */
bool wr_message_out(const weir_message *message);

/*
 * What the work before a fence did with a message, and how far that goes (T4, T7). PRODUCED: its fence travels
 * with the message, so that gates and device waits see it, but its stream does not: nobody who receives the
 * message is given that one. CARRIED: the stream does, too.
 */
enum wr_part { WR_USED, WR_CARRIED, WR_PRODUCED };
/*
 * Adds `fence` to the use set and, unless it was only USED, to the message's producers (the latest per stream is
 * kept; once carried, always carried). Thread: a holder. Fails: WEIR_E_NOMEM.
 */
weir_status wr_message_add_fence(weir_message *message, weir_fence fence, enum wr_part part);
/* Producers' fences, one per stream; a load when there are none. Gives their count, writes at most room. */
size_t wr_message_fences(const weir_message *message, weir_fence *out, size_t room);
/* Of those the ones whose streams travel. */
size_t wr_message_carried(const weir_message *message, weir_fence *out, size_t room);
bool wr_message_has_fences(const weir_message *message);

#endif

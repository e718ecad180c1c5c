/*
 * How a message lies in memory, and the way of a message out of its pool and back. Only graphs/message*.c
 * and graphs/pool.c look in here.
 *
 * Messages live in slabs that are freed with the pool alone, so a message always has its pool, its inline
 * storage and whatever grew with it. Free ones lie in arrays of pointers: one per worker, which only that
 * worker touches, and a shared one behind the pool's lock. A cache that runs empty or full moves half of
 * itself under the lock; so a worker that only makes messages and one that only drops them meet once in 32.
 * The shared array has room for all messages there are: giving back cannot fail.
 */
#ifndef WR_GRAPHS_POOL_H
#define WR_GRAPHS_POOL_H

#include "base/thread.h"
#include "graphs/message.h"

#define WR_LINE 64		/* bytes of a cache line */
#define WR_FEW 2		/* fences that need no memory of their own */
#define WR_SMALL 64		/* bytes that need no memory of their own */
#define WR_BATCH 32

/*
 * What the last unref has to give back. The order counts: up to WR_PAYLOAD_INLINE there is nothing to call.
 */
enum wr_payload {
	WR_PAYLOAD_NONE,	/* no payload, or a caller's who does not want to know */
	WR_PAYLOAD_INLINE,	/* bytes in the message itself: used again once its readers are done */
	WR_PAYLOAD_OWN,		/* of base/memory.h */
	WR_PAYLOAD_SYSTEM,	/* of wr_system_alloc */
	WR_PAYLOAD_DESTROY,	/* a user's destructor */
};

/*
 * Fences of different streams. Written under the message's lock, or by its only holder; `count` may be read
 * by any holder.
 */
struct wr_fences {
	_Atomic uint32_t count;
	uint32_t room;
	weir_fence *items;	/* WR_FEW inside the message; more: memory that stays with it */
};

/* The first line is all that an empty message touches on its way round. */
struct weir_message {
	_Alignas(WR_LINE) _Atomic uint32_t references;
	_Atomic uint32_t lock;
	struct wr_fences uses, producers;	/* the use set (T4); who produced it */
	struct wr_pool *pool;
	uint8_t kind, payload;			/* WEIR_EMPTY, ...; enum wr_payload */
	_Atomic bool out;			/* was delivered; unique has not said yes since */
	void *data;

	size_t size;
	void (*destroy)(void *arg);
	void *arg;
	struct wr_system *system;		/* WR_PAYLOAD_SYSTEM: whose memory it is */
	weir_fence few_uses[WR_FEW];

	union {					/* on a line's begin, as all payloads are */
		unsigned char small[WR_SMALL];
		struct {
			weir_tensor tensor;
			int64_t shape[WEIR_DIMENSIONS], strides[WEIR_DIMENSIONS];
		} of;
	};
	weir_fence few_producers[WR_FEW];
	struct wr_deferred_free retired;
};
_Static_assert(offsetof(struct weir_message, size) == WR_LINE, "an empty message touches one line");
_Static_assert(offsetof(struct weir_message, small) % WR_LINE == 0, "inline bytes are aligned");
_Static_assert(sizeof(struct weir_message) == 6 * WR_LINE, "messages of a slab share no line");

struct wr_cache {
	_Alignas(WR_LINE) _Atomic uint32_t count;	/* its worker alone writes; wr_pool_live reads */
	weir_message *free[2 * WR_BATCH];
};

struct wr_slab;
struct wr_pool {
	struct wr_cache caches[WR_WORKERS_MAX];
	_Atomic(struct wr_system *) system;
	_Atomic(const weir_entity *) misused_by;	/* dropped a reference that there was not (any thread) */
	_Atomic bool misused;
	struct wr_mutex lock;			/* guards what follows */
	struct wr_slab *slabs;
	size_t total;				/* messages in all slabs */
	weir_message **free;
	size_t count, room;
};

/* Acquire: whoever dropped his reference has done with the payload. */
static inline bool wr_message_held_once(const weir_message *message)
{
	return wr_load_acquire(&((weir_message *)message)->references) == 1;
}

/* NULL: no memory. `cache` may be NULL. */
weir_message *wr_pool_refill(struct wr_pool *pool, struct wr_cache *cache);
void wr_pool_spill(struct wr_pool *pool, struct wr_cache *cache, weir_message *message);

/* The cache that the calling thread may use without a lock, or NULL. */
static inline struct wr_cache *wr_pool_cache(struct wr_pool *pool)
{
	const struct wr_local *local = wr_thread_local();

	return local && local->pool == pool ? &pool->caches[local->index] : NULL;
}

/* Gives one without payload and fences; references, kind, payload and data are the caller's to set. */
static inline weir_message *wr_pool_get(struct wr_pool *pool)
{
	struct wr_cache *cache = wr_pool_cache(pool);
	uint32_t count = cache ? wr_read(&cache->count) : 0;

	if (count == 0)
		return wr_pool_refill(pool, cache);
	wr_store_relaxed(&cache->count, count - 1);
	return cache->free[count - 1];
}

static inline void wr_pool_put(struct wr_pool *pool, weir_message *message)
{
	struct wr_cache *cache = wr_pool_cache(pool);
	uint32_t count = cache ? wr_read(&cache->count) : 2 * WR_BATCH;

	wr_store_relaxed(&message->references, 0);	/* so that one unref too many is seen */
	if (count == 2 * WR_BATCH) {
		wr_pool_spill(pool, cache, message);
		return;
	}
	cache->free[count] = message;
	wr_store_relaxed(&cache->count, count + 1);
}

#endif

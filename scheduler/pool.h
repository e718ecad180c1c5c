/*
 * The layout of messages and their pool. In the library only holders.c, message.c, payload.c, pack.c,
 * parts.c, stamp.c and pool.c include it.
 *
 * Messages are in slabs that are freed with the pool only, so a message keeps its pool, its inline storage
 * and the fence arrays that it grew. Free messages are in arrays of pointers: a cache per worker, which only
 * that worker uses, and a shared array behind the pool's lock. A cache that runs empty or full moves half of
 * its size under the lock, so a worker that only makes messages, or only frees them, takes the lock once in
 * 32. The shared array has room for all messages: a release cannot fail.
 */
#ifndef WR_SCHEDULER_POOL_H
#define WR_SCHEDULER_POOL_H

#include "base/thread.h"
#include "scheduler/message.h"

#define WR_LINE  64 /* bytes of a cache line */
#define WR_FEW   2  /* fences stored inline */
#define WR_SMALL 64 /* bytes of a payload stored inline */
#define WR_BATCH 32

/*
 * What the last unref has to release. The order matters: up to WR_PAYLOAD_INLINE there is nothing to call.
 */
enum wr_payload {
	WR_PAYLOAD_NONE,    /* no payload, or one of the caller without a destructor */
	WR_PAYLOAD_INLINE,  /* bytes in the message itself: reused when its readers are done */
	WR_PAYLOAD_OWN,     /* from base/memory.h */
	WR_PAYLOAD_SYSTEM,  /* from wr_system_alloc */
	WR_PAYLOAD_POOL,    /* from a memory pool: `arg` */
	WR_PAYLOAD_DESTROY, /* the user's destructor */
	WR_PAYLOAD_PARTS,   /* references to parts */
};

/*
 * Fences of different streams. Written under the message's lock or by its only holder. Any holder may read
 * `count`.
 */
struct wr_fences {
	_Atomic uint32_t count;
	uint32_t room;
	weir_fence *items; /* WR_FEW inside the message; more: an allocation that the message keeps */
};

/* A part may be in two messages that two threads push: the one that sets WRITES gives it its stamp. */
enum wr_stamped { WR_STAMPED_NOT, WR_STAMPED_WRITES, WR_STAMPED };

/* An empty message uses its first cache line only. */
struct weir_message {
	_Alignas(WR_LINE) _Atomic uint32_t references;
	_Atomic uint32_t lock;
	struct wr_fences uses, producers; /* the use set, and the work that produces the payload (T4) */
	struct wr_pool *pool;
	uint8_t kind, payload;   /* WEIR_KIND_EMPTY, ...; enum wr_payload */
	_Atomic uint8_t stamped; /* enum wr_stamped; written before it is delivered only, as the stamp is */
	_Atomic bool delivered;  /* and weir_message_unique has not returned true since */
	_Atomic bool
		outside; /* memory of a memory pool, its own or of a part, that was taken from an outlet */
	void *data;

	size_t size;
	void (*destroy)(void *arg);
	union {
		void *arg;                /* of destroy */
		struct wr_system *system; /* WR_PAYLOAD_SYSTEM: owner of the memory */
	};
	int64_t stamp_time;
	weir_fence few_uses[WR_FEW];

	union { /* starts a cache line, as all payloads do */
		unsigned char small[WR_SMALL];
		struct {
			weir_tensor tensor;
			int64_t shape[WEIR_DIMENSIONS_MAX], strides[WEIR_DIMENSIONS_MAX];
		} of;
		struct {
			void *block;           /* parts.c: `few`, or an allocation */
			uint32_t count, freed; /* freed: parts that were dropped */
			_Alignas(8) unsigned char few[160];
		} parts;
	};
	weir_fence few_producers[WR_FEW];
	uint64_t stamp_tag;
	union {
		struct wr_deferred_free deferred; /* without references */
		uint32_t counted;                 /* in a queue: holders.c */
	};
};
_Static_assert(offsetof(struct weir_message, size) == WR_LINE, "an empty message touches one line");
_Static_assert(offsetof(struct weir_message, small) % WR_LINE == 0, "inline bytes are aligned");
_Static_assert(sizeof(struct weir_message) == 6 * WR_LINE, "messages of a slab share no line");

struct wr_cache {
	_Alignas(WR_LINE) _Atomic uint32_t count; /* written by its worker only, read by wr_pool_live */
	weir_message *free[2 * WR_BATCH];
};

struct wr_slab;
struct wr_pool {
	struct wr_pool_marks marks; /* first: wr_pool_has() */
	struct wr_cache caches[WR_WORKERS_MAX];
	_Atomic(struct wr_system *) system;
	_Atomic(const weir_entity *) misused_by; /* entity whose tick unreferenced too often */
	_Atomic bool misused;
	_Atomic bool looking; /* the loop found that the program may hold memory that an entity waits for */
	struct wr_mutex lock; /* guards what follows */
	struct wr_slab *slabs;
	size_t total; /* messages in all slabs */
	weir_message **free;
	size_t count, room;
};

/* Acquire: what other holders did before they dropped their references is visible. */
static inline bool wr_message_has_one_holder(const weir_message *message)
{
	return wr_load_acquire(&((weir_message *)message)->references) == 1;
}

/* Returns true if work of a former holder still reads the payload: a writer waits for the producers only. */
bool wr_message_still_read(const weir_message *message);
void wr_message_set_delivered(weir_message *message, bool delivered);

/*
 * The program let go of something that it took from an outlet: the loop looks again who holds memory, if it
 * did before. Thread: any, without locks.
 */
void wr_pool_let_go(struct wr_pool *pool);

/* --- packs (parts.c): the same for each part --- */

enum { WR_PART_HELD = 2 }; /* references that a pack holds to each part: parts.c */

typedef size_t wr_fence_getter(const weir_message *message, weir_fence *out, size_t room);

/* Copies the names. Returns false without memory. */
bool wr_pack_make_block(weir_message *pack, const weir_part *parts, size_t count);
void wr_pack_free(weir_message *pack);
weir_status wr_pack_add_fence(const weir_message *pack, weir_fence fence, enum wr_part part);
bool wr_pack_has_fences(const weir_message *pack);
size_t wr_pack_fences(const weir_message *pack, wr_fence_getter *get, weir_fence *out, size_t room);
bool wr_pack_unique(const weir_message *pack);
void wr_pack_set_delivered(const weir_message *pack, bool delivered);
/* Fails, naming it, if a part was delivered before. */
weir_status wr_pack_check_producer(const weir_message *pack);

/* Frees the payload. The message has no reference left and the GPU does not use it; no lock is held. */
void wr_payload_free(weir_message *message);

/* Returns NULL without memory. `cache` may be NULL. */
weir_message *wr_pool_refill(struct wr_pool *pool, struct wr_cache *cache);
void wr_pool_spill(struct wr_pool *pool, struct wr_cache *cache, weir_message *message);

/* The cache that the calling thread may use without a lock, or NULL. */
static inline struct wr_cache *wr_pool_cache(struct wr_pool *pool)
{
	const struct wr_local *local = wr_thread_local();

	return local && local->pool == pool ? &pool->caches[local->index] : NULL;
}

/* Returns a message without payload and fences; the caller sets references, kind, payload and data. */
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

	wr_store_relaxed(&message->references, 0); /* so that one unref too many is seen */
	if (count == 2 * WR_BATCH) {
		wr_pool_spill(pool, cache, message);
		return;
	}
	cache->free[count] = message;
	wr_store_relaxed(&cache->count, count + 1);
}

#endif

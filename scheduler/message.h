/* Messages: pooled and reference-counted, with a payload and its fences (T4). */
#ifndef WR_SCHEDULER_MESSAGE_H
#define WR_SCHEDULER_MESSAGE_H

#include "base/atomic.h"
#include "base/thread.h"
#include "streams/streams.h"

#define WR_WORKERS_MAX 64

/* Whether to wake another worker for what this one has pushed to its queue; to poll the flags (S9). */
enum wr_undecided { WR_UNDECIDED_ENTRIES = 1, WR_UNDECIDED_FLAGS = 2 };

/* The thread-local of a worker (base/thread.h): set by the scheduler, NULL on other threads. */
struct wr_local {
	unsigned index;        /* 0..WR_WORKERS_MAX-1 */
	const void *pool;      /* of its graph: only this thread uses cache `index` of it */
	weir_context *context; /* of the running tick, until its inputs are released */
	weir_message *freeing; /* the pack whose parts are dropped now; its `arg`: the one around it */
	uint8_t undecided;     /* of enum wr_undecided */
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
struct wr_claim;
struct wr_memory_pool;
/* As weir_message_create_tensor, on this device. claim: with memory of its pool, which is there; or NULL. */
weir_status wr_message_tensor(struct wr_pool *pool, const weir_tensor *like, int device,
			      struct wr_claim *claim, weir_message **out);
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

/*
 * A fan-out takes all its references before its first push (T4). Thread: one that shares its reference with
 * no other.
 */
void wr_message_ref_many(weir_message *message, uint32_t n);
static inline struct wr_pool *wr_message_pool(const weir_message *message);
/*
 * Marks it as delivered: others may hold it. Returns wr_message_has_fences. Call before its first push.
 * Thread: holds all references.
 */
bool wr_message_mark_delivered(weir_message *message);
/* Returns true if it was delivered and weir_message_unique has not returned true since. */
static inline bool wr_message_delivered(const weir_message *message);
/*
 * The packs that were being freed when a destructor of a part ended the thread: frees what is left of them.
 * Thread: that of the local. A destructor of theirs may end it again: then call it again.
 */
void wr_message_finish_packs(struct wr_local *local);
/* How many references `pack`, which may be of any kind, holds to the message as its part. */
size_t wr_pack_count_held(const weir_message *pack, const weir_message *message);

/* --- stamps --- */

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
/* Returns true if the message carries one fence, and the caller is its only holder. */
static inline bool wr_message_lone_fence(const weir_message *message, weir_fence *out);
/*
 * Adds a fence to `count` fences of different streams, of each the latest. Returns the new count: there must
 * be room.
 */
size_t wr_fences_add(weir_fence *out, size_t count, weir_fence fence);

/*
 * === the pools of free messages ===
 *
 * The layout of messages and their pool, for message.c and holders.c alone.
 *
 * Messages are in slabs that are freed with the pool only, so a message keeps its pool, its inline storage
 * and the fence arrays that it grew. Free messages are in arrays of pointers: a cache per worker, which only
 * that worker uses, and a shared array behind the pool's lock. A cache that runs empty or full moves half of
 * its size under the lock, so a worker that only makes messages, or only frees them, takes the lock once in
 * 32. The shared array has room for all messages: a release cannot fail.
 */

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
	struct wr_spin lock;
	struct wr_fences uses, producers; /* the use set, and the work that produces the payload (T4) */
	struct wr_pool *pool;
	uint8_t kind, payload;   /* WEIR_KIND_EMPTY, ...; enum wr_payload */
	_Atomic uint8_t stamped; /* enum wr_stamped; written before it is delivered only, as the stamp is */
	_Atomic bool delivered;  /* and weir_message_unique has not returned true since */
	_Atomic bool lent;       /* its owner may read it on */
	_Atomic bool emitted;    /* a tick has emitted it, since it was made */
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
			void *block;           /* `few`, or an allocation */
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

static inline struct wr_pool *wr_message_pool(const weir_message *message)
{
	return message->pool;
}

static inline bool wr_message_delivered(const weir_message *message)
{
	return wr_load_relaxed(&((weir_message *)message)->delivered);
}

/* Exact if the caller holds all of them. */
static inline uint32_t wr_message_references(const weir_message *message)
{
	return wr_load_acquire(&((weir_message *)message)->references);
}

/* Of one that is not marked no tick has a reference among its outputs. */
static inline void wr_message_mark_emitted(weir_message *message)
{
	if (!wr_load_relaxed(&message->emitted))
		wr_store_relaxed(&message->emitted, true);
}

static inline bool wr_message_emitted(const weir_message *message)
{
	return wr_load_relaxed(&((weir_message *)message)->emitted);
}

/* Acquire: what other holders did before they dropped their references is visible. */
static inline bool wr_message_has_one_holder(const weir_message *message)
{
	return wr_message_references(message) == 1;
}

/*
 * The highest bit of the timeline value marks a producer's fence whose stream is not carried: receivers get
 * the fence, but not its stream. Timeline values never get that large, and the bit is visible only here and
 * in message.c.
 */
#define WR_BARE (UINT64_C(1) << 63)

static inline bool wr_message_lone_fence(const weir_message *message, weir_fence *out)
{
	if (message->kind == WEIR_KIND_PARTS || wr_read(&((weir_message *)message)->producers.count) != 1 ||
	    !wr_message_has_one_holder(message))
		return false;
	*out = (weir_fence){message->producers.items[0].stream, message->producers.items[0].value & ~WR_BARE};
	return true;
}

/* Returns true if work of a former holder still reads the payload: a writer waits for the producers only. */
bool wr_message_still_read(const weir_message *message);

/* --- packs: the same for each part --- */

enum { WR_PART_HELD = 2 }; /* references that a pack holds to each part */

typedef size_t wr_fence_getter(const weir_message *message, weir_fence *out, size_t room);

/* Copies the names. Returns false without memory. */
bool wr_pack_make_block(weir_message *pack, const weir_part *parts, size_t count);

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

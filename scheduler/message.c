/*
 * A message: its references, the fences of its payload, its release. payload.c makes messages, parts.c
 * has those of named parts, pool.c keeps the free ones.
 *
 * The last unref has three cases. Without anything to release the message goes to the worker's cache, in a
 * few instructions. A payload that the GPU does not use is released at once. A payload with a use set goes to
 * wr_defer_free(), which releases it when all fences of the set are complete; until then wr_pool_live counts
 * the message.
 *
 * User destructors never run on the driver's thread (B3). If the use set is not complete, a worker, or the
 * destroy after the run, takes the message from the deferred-free list and runs the destructor. If there is
 * nothing to wait for, or no system, the list refuses the message and the destructor runs at once, on the
 * thread that dropped the last reference, which need not be a worker.
 *
 * Fences. The producers are the GPU work that writes the payload; the use set is all GPU work that uses it,
 * producers and readers (T4). Both keep the latest fence per stream, which covers the earlier ones, since a
 * stream is in order. Several holders may add fences at the same time (receivers of a fan-out), so a one-word
 * lock is held for a few stores. A single holder needs none.
 */
#include "scheduler/pool.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "scheduler/entity.h"
#include "scheduler/memory_pool.h"

/* --- references --- */

void wr_message_ref_many(weir_message *message, uint32_t n)
{
	/* Relaxed: the caller holds a reference already and passes the new ones on with release order. */
	wr_add_relaxed(&message->references, n);
}

void wr_message_note_kept(int64_t references)
{
	const struct wr_local *local = wr_thread_local();

	if (local && local->context && local->context->computing)
		local->context->kept += references;
}

/* Not inlined: keeps the common case of weir_message_ref short. */
__attribute__((noinline)) static weir_message *note_ref(weir_message *message)
{
	wr_message_note_kept(1);
	return message;
}

weir_message *weir_message_ref(weir_message *message)
{
	wr_message_ref_many(message, 1);
	return wr_pool_has(message->pool, WR_POOL_COUNTED) ? note_ref(message) : message;
}

/* Releases the payload, then the message. No reference is left, the GPU does not use it; no lock is held. */
static void message_recycle(weir_message *message)
{
	bool own = message->payload == WR_PAYLOAD_DESTROY;
	void (*destroy)(void *arg) = message->destroy;
	void *arg = message->arg;

	wr_payload_free(message);
	/* Relaxed: the next user gets it from this thread's cache or through the pool's lock. */
	wr_store_relaxed(&message->uses.count, 0);
	wr_store_relaxed(&message->producers.count, 0);
	wr_pool_put(message->pool, message);
	if (own)
		destroy(arg); /* last: a user's function may end its thread, and the message must not be lost
			       */
}

void wr_message_finish_packs(struct wr_local *local)
{
	while (local->freeing) {
		weir_message *pack = local->freeing;
		local->freeing = pack->arg;
		message_recycle(pack);
	}
}

static void release_deferred(struct wr_deferred_free *deferred)
{
	message_recycle((weir_message *)((char *)deferred - offsetof(weir_message, deferred)));
}

struct wr_memory_pool *wr_message_memory_pool(const weir_message *message)
{
	return message->payload == WR_PAYLOAD_POOL ? message->arg : NULL;
}

void wr_message_note_outside(weir_message *message)
{
	struct wr_memory_pool *memory = wr_message_memory_pool(message);

	/* Two outlets may have it: one of their takers counts it. */
	if (memory && !wr_exchange(&message->outside, true))
		memory->calls->note_outside(memory, message->size);
	for (size_t i = 0, parts = weir_message_parts(message); i < parts; i++) {
		weir_message *part = weir_message_part_at(message, i);

		wr_message_note_outside(part);
		if (wr_load_relaxed(&part->outside))
			wr_store_relaxed(&message->outside, true);
	}
}

/* Returns true if the deferred-free list took the message. */
static bool message_defer(weir_message *message)
{
	struct wr_system *system = wr_pool_system(message->pool);
	uint32_t uses = wr_read(&message->uses.count);
	bool destructor = message->payload == WR_PAYLOAD_DESTROY;
	const struct wr_local *local = wr_thread_local();
	struct wr_memory_pool *memory = wr_message_memory_pool(message);

	if (!system || message->payload == WR_PAYLOAD_NONE || (uses == 0 && (local || !destructor)))
		return false;
	message->deferred = (struct wr_deferred_free){
		.fences = message->uses.items,
		.count = uses,
		.release = release_deferred,
		.refused = memory ? &memory->shared.refused : NULL,
		.destructor = destructor,
		.foreign = !local || local->pool != message->pool,
	};
	if (wr_defer_free(system, &message->deferred))
		return false;
	if (memory) /* the message may be gone */
		memory->calls->deferred(memory);
	return true;
}

/* Not inlined: keeps the common case of weir_message_unref short. */
__attribute__((noinline)) static void message_release(weir_message *message)
{
	struct wr_pool *pool = message->pool;

	if (!message_defer(message))
		message_recycle(message);
	if (!wr_thread_local() && wr_pool_system(pool))
		wr_system_collect_between_runs(wr_pool_system(pool));
}

/* The message is in the pool already. Its memory lives as long as the graph, so the count can be repaired. */
__attribute__((noinline)) static void keep_misuse(weir_message *message)
{
	const struct wr_local *local = wr_thread_local();

	wr_add_relaxed(&message->references, 1);
	if (wr_exchange(&message->pool->misused, true))
		return;
	wr_store(&message->pool->misused_by, local && local->context ? local->context->entity : NULL);
}

weir_status wr_pool_check(struct wr_pool *pool, const weir_entity **by)
{
	*by = wr_load(&pool->misused_by);
	if (!wr_exchange(&pool->misused, false))
		return WEIR_OK;
	wr_store(&pool->misused_by, NULL);
	return wr_fail(WEIR_E_INVALID,
		       "a message was unreferenced more often than it was referenced: pass on "
		       "or keep weir_message_ref(message)");
}

void wr_pool_let_go(struct wr_pool *pool)
{
	/* After the change that the loop may have to see: it sets `looking`, then reads what was changed. */
	if (wr_load(&pool->looking) && wr_exchange(&pool->looking, false))
		wr_system_kick(wr_pool_system(pool));
}

static inline void message_end(weir_message *message)
{
	if (message->payload <= WR_PAYLOAD_INLINE && wr_read(&message->uses.count) == 0)
		wr_pool_put(message->pool, message);
	else
		message_release(message);
}

/* Not inlined: the common cases of an unref need no frame, or one reference is left. */
__attribute__((noinline)) static void message_end_shared(weir_message *message)
{
	message_end(message);
}

/* Of what was taken from an outlet. The last reference is let go of where the memory is freed. */
__attribute__((noinline)) static void unref_outside(weir_message *message)
{
	struct wr_pool *pool = message->pool;
	uint32_t before = wr_fetch_sub(&message->references, 1);

	if (before > 1)
		wr_pool_let_go(pool);
	else if (before)
		message_end_shared(message);
	else
		keep_misuse(message);
}

void wr_message_unref(weir_message *message)
{
	uint32_t before;

	/*
	 * Acquire: the last holder must see what the others did to the payload. A count of 1 is that of the
	 * last holder, which needs no read-modify-write.
	 */
	if (wr_load_acquire(&message->references) == 1) {
		message_end(message);
		return;
	}
	if (wr_load_relaxed(&message->outside)) {
		unref_outside(message);
		return;
	}
	before = wr_sub_acq_rel(&message->references, 1);
	if (before == 1)
		message_end_shared(message);
	else if (!before)
		keep_misuse(message);
}

void weir_message_unref(weir_message *message)
{
	if (!message)
		return;
	if (wr_pool_has(message->pool, WR_POOL_COUNTED))
		wr_message_note_kept(-1);
	wr_message_unref(message);
}

/* --- fences --- */

/*
 * The highest bit of the timeline value marks a producer's fence whose stream is not carried: receivers get
 * the fence, but not its stream. Timeline values never get that large, and the bit is never visible outside
 * of this file.
 */
#define BARE (UINT64_C(1) << 63)

/* Returns false without locking if the caller is the only holder. */
static bool message_lock_shared(weir_message *message)
{
	if (wr_message_has_one_holder(message))
		return false;
	while (wr_exchange(&message->lock, 1))
		wr_thread_yield();
	return true;
}

static void message_unlock_shared(weir_message *message, bool locked)
{
	if (locked)
		wr_store_release(&message->lock, 0);
}

static weir_status fences_grow(struct wr_fences *fences)
{
	weir_fence *items = wr_alloc((size_t)fences->room * 2, sizeof(*items));

	if (!items)
		return WEIR_E_NOMEM;
	memcpy(items, fences->items, fences->room * sizeof(*items));
	if (fences->room > WR_FEW)
		wr_free(fences->items);
	fences->items = items;
	fences->room *= 2;
	return WEIR_OK;
}

/* `bare`: BARE or 0. The entry stays BARE only if all fences of its stream were. */
static weir_status fences_keep_latest(struct wr_fences *fences, weir_fence fence, uint64_t bare)
{
	uint32_t count = wr_read(&fences->count);

	for (uint32_t i = 0; i < count; i++)
		if (fences->items[i].stream == fence.stream) {
			uint64_t kept = fences->items[i].value, point = kept & ~BARE;
			point = point < fence.value ? fence.value : point;
			fences->items[i].value = point | (kept & bare);
			return WEIR_OK;
		}
	if (count == fences->room && fences_grow(fences))
		return WEIR_E_NOMEM;
	fences->items[count] = (weir_fence){fence.stream, fence.value | bare};
	wr_store_release(&fences->count, count + 1);
	return WEIR_OK;
}

weir_status wr_message_add_fence(weir_message *message, weir_fence fence, enum wr_part part)
{
	weir_status status;
	bool locked;

	if (fence.stream == 0) /* no fence: counts as complete */
		return WEIR_OK;
	if (message->kind == WEIR_KIND_PARTS)
		return wr_pack_add_fence(message, fence, part);
	locked = message_lock_shared(message);
	status = fences_keep_latest(&message->uses, fence, 0);
	if (!status && part != WR_USED)
		status = fences_keep_latest(&message->producers, fence, part == WR_PRODUCED ? BARE : 0);
	message_unlock_shared(message, locked);
	return status;
}

/*
 * Queries the fence first: an invalid one would never complete and keep the payload for ever; a complete one
 * needs no entry.
 */
static weir_status message_add_pending_fence(weir_message *message, weir_fence fence, enum wr_part part)
{
	struct wr_system *system = wr_pool_system(message->pool);
	weir_status status;

	if (fence.stream == 0)
		return WEIR_OK;
	if (!system)
		return wr_fail(WEIR_E_INVALID, "fence: stream %llu does not belong to this graph",
			       (unsigned long long)fence.stream);
	status = wr_fence_query(system, fence);
	if (status == WEIR_OK || status == WEIR_E_INVALID)
		return status;
	return wr_message_add_fence(message, fence, part);
}

weir_status weir_message_add_reader(weir_message *message, weir_fence fence)
{
	return message_add_pending_fence(message, fence, WR_USED);
}

weir_status weir_message_add_producer(weir_message *message, weir_fence fence)
{
	if (wr_message_delivered(message))
		return wr_fail(WEIR_E_INVALID,
			       "call weir_message_add_producer on a message before it is pushed "
			       "or emitted: others may read it by now");
	if (message->kind == WEIR_KIND_PARTS && wr_pack_check_producer(message))
		return WEIR_E_INVALID;
	return message_add_pending_fence(message, fence, WR_PRODUCED);
}

bool wr_message_has_fences(const weir_message *message)
{
	if (message->kind == WEIR_KIND_PARTS)
		return wr_pack_has_fences(message);
	return wr_load_acquire(&((weir_message *)message)->producers.count) > 0;
}

size_t wr_fences_add(weir_fence *out, size_t count, weir_fence fence)
{
	for (size_t i = 0; i < count; i++) {
		if (out[i].stream == fence.stream) {
			out[i].value = fence.value > out[i].value ? fence.value : out[i].value;
			return count;
		}
	}
	out[count] = fence;
	return count + 1;
}

static inline size_t copy_producers(weir_message *self, uint64_t skipped, weir_fence *out, size_t room)
{
	uint32_t all = wr_read(&self->producers.count);
	size_t count = 0;

	for (uint32_t i = 0; i < all; i++) {
		weir_fence fence = self->producers.items[i];
		if (fence.value & skipped)
			continue;
		if (count < room)
			out[count] = (weir_fence){fence.stream, fence.value & ~BARE};
		count++;
	}
	return count;
}

static __attribute__((noinline)) size_t copy_producers_locking(weir_message *self, uint64_t skipped,
							       weir_fence *out, size_t room)
{
	bool locked = message_lock_shared(self);
	size_t count = copy_producers(self, skipped, out, room);

	message_unlock_shared(self, locked);
	return count;
}

/* The producers' fences; `skipped`: BARE to leave those out, else 0. */
static size_t copy_fences(const weir_message *message, uint64_t skipped, weir_fence *out, size_t room)
{
	weir_message *self = (weir_message *)message;

	if (!wr_message_has_fences(message))
		return 0;
	return wr_message_has_one_holder(self) ? copy_producers(self, skipped, out, room)
					       : copy_producers_locking(self, skipped, out, room);
}

size_t wr_message_fences(const weir_message *message, weir_fence *out, size_t room)
{
	return message->kind == WEIR_KIND_PARTS ? wr_pack_fences(message, wr_message_fences, out, room)
						: copy_fences(message, 0, out, room);
}

size_t wr_message_carried(const weir_message *message, weir_fence *out, size_t room)
{
	return message->kind == WEIR_KIND_PARTS ? wr_pack_fences(message, wr_message_carried, out, room)
						: copy_fences(message, BARE, out, room);
}

size_t weir_message_fences(const weir_message *message, size_t room, weir_fence *out)
{
	return wr_message_fences(message, out, room);
}

/* --- writing in place --- */

static bool producers_cover(const weir_message *message, weir_fence use)
{
	uint32_t count = wr_read(&((weir_message *)message)->producers.count);

	for (uint32_t i = 0; i < count; i++)
		if (message->producers.items[i].stream == use.stream)
			return (message->producers.items[i].value & ~BARE) >= use.value;
	return false;
}

bool wr_message_still_read(const weir_message *message)
{
	struct wr_system *system = wr_pool_system(message->pool);
	uint32_t count = wr_read(&((weir_message *)message)->uses.count);

	for (uint32_t i = 0; system && i < count; i++) {
		weir_fence use = message->uses.items[i];
		if (!producers_cover(message, use) && wr_fence_query(system, use))
			return true;
	}
	return false;
}

void wr_message_set_delivered(weir_message *message, bool delivered)
{
	if (wr_message_delivered(message) != delivered)
		wr_store_relaxed(&message->delivered, delivered);
	if (message->kind == WEIR_KIND_PARTS)
		wr_pack_set_delivered(message, delivered);
}

/* True licenses a write in place, so the message counts as not delivered from now on. */
bool weir_message_unique(const weir_message *message)
{
	if (!wr_message_has_one_holder(message))
		return false;
	if (message->kind == WEIR_KIND_PARTS ? !wr_pack_unique(message) : wr_message_still_read(message))
		return false;
	wr_message_set_delivered((weir_message *)message, false);
	return true;
}

bool wr_message_mark_delivered(weir_message *message)
{
	if (!wr_message_delivered(message))
		wr_message_set_delivered(message, true);
	return wr_message_has_fences(message);
}

bool wr_message_delivered(const weir_message *message)
{
	return wr_load_relaxed(&((weir_message *)message)->delivered);
}

/* --- getters --- */

uint32_t wr_message_references(const weir_message *message)
{
	return wr_load_acquire(&((weir_message *)message)->references);
}

struct wr_pool *wr_message_pool(const weir_message *message)
{
	return message->pool;
}

unsigned weir_message_kind(const weir_message *message)
{
	return message->kind;
}

const weir_tensor *weir_message_tensor(const weir_message *message)
{
	return message->kind == WEIR_KIND_TENSOR ? &message->of.tensor : NULL;
}

void *weir_message_data(const weir_message *message)
{
	return message->data; /* NULL for parts */
}

size_t weir_message_size(const weir_message *message)
{
	return message->kind & (WEIR_KIND_BYTES | WEIR_KIND_TENSOR) ? message->size : 0;
}

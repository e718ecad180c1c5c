/*
 * A message: its references, the fences of its payload, its release. Then what it carries, the pools of free
 * messages, packs and their parts, stamps.
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
#include "scheduler/message.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/struct.h"
#include "base/thread.h"
#include "scheduler/entity.h"
#include "scheduler/graph.h"
#include "scheduler/memory.h"
#include "scheduler/scheduler.h"

/* --- references --- */

void wr_message_ref_many(weir_message *message, uint32_t n)
{
	/*
	 * Relaxed: the caller passes the new ones on with release order. The only holder needs no
	 * read-modify-write, since no other thread may use its reference; but it must acquire: its store ends
	 * the release sequence of those that let go.
	 */
	if (wr_message_has_one_holder(message))
		wr_store_relaxed(&message->references, 1 + n);
	else
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
	/* No wr_message_ref_many: threads that share a reference may each take another at the same time. */
	wr_add_relaxed(&message->references, 1);
	return wr_pool_has(message->pool, WR_POOL_COUNTED) ? note_ref(message) : message;
}

static void payload_free(weir_message *message);
static void promises_unname(const weir_message *message, uint32_t uses);

/* Releases the payload, then the message. No reference is left, the GPU does not use it; no lock is held. */
static void message_recycle(weir_message *message)
{
	bool own = message->payload == WR_PAYLOAD_DESTROY;
	void (*destroy)(void *arg) = message->destroy;
	uint32_t uses = wr_read(&message->uses.count);
	void *arg = message->arg;
	struct wr_local *local = own ? wr_thread_local() : NULL;

	payload_free(message);
	if (uses)
		promises_unname(message, uses);
	/* Relaxed: the next user gets it from this thread's cache or through the pool's lock. */
	wr_store_relaxed(&message->uses.count, 0);
	wr_store_relaxed(&message->producers.count, 0);
	wr_pool_put(message->pool, message);
	if (local && local->undecided) /* what it has pushed must not wait for a user's function */
		wr_ready_decide((struct wr_worker *)local);
	if (own)
		destroy(arg); /* last: it may end its thread, and the message must not be lost */
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
		wr_memory_note_outside(memory, message->size);
	for (size_t i = 0, parts = weir_message_parts(message); i < parts; i++) {
		weir_message *part = weir_message_part_at(message, i);

		wr_message_note_outside(part);
		if (wr_load_relaxed(&part->outside))
			wr_store_relaxed(&message->outside, true);
	}
}

static struct wr_system *pool_system(const struct wr_pool *pool)
{
	return wr_load_acquire(&((struct wr_pool *)pool)->system);
}

/* Returns true if the deferred-free list took the message. */
static bool message_defer(weir_message *message)
{
	struct wr_system *system = pool_system(message->pool);
	bool destructor = message->payload == WR_PAYLOAD_DESTROY;
	struct wr_memory_pool *memory;
	const struct wr_local *local;
	uint32_t uses;

	if (!system || message->payload == WR_PAYLOAD_NONE)
		return false;
	memory = wr_message_memory_pool(message);
	local = wr_thread_local();
	uses = wr_read(&message->uses.count);
	if (uses == 0 && (local || !destructor))
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
		wr_memory_deferred(memory);
	return true;
}

/* Not inlined: keeps the common case of weir_message_unref short. */
__attribute__((noinline)) static void message_release(weir_message *message)
{
	struct wr_pool *pool = message->pool;

	if (!message_defer(message))
		message_recycle(message);
	if (!wr_thread_local() && pool_system(pool))
		wr_system_collect_between_runs(pool_system(pool));
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

/*
 * The program let go of something that it took from an outlet: the loop looks again what holds memory, if it
 * did before. Thread: any, without locks.
 */
static void pool_let_go(struct wr_pool *pool)
{
	/* After the change that the loop may have to see: it sets `looking`, then reads what was changed. */
	if (wr_load(&pool->looking) && wr_exchange(&pool->looking, false))
		wr_system_kick(pool_system(pool));
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
		pool_let_go(pool);
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

/* Returns false without locking if the caller is the only holder. */
static bool message_lock_shared(weir_message *message)
{
	if (wr_message_has_one_holder(message))
		return false;
	wr_spin_lock(&message->lock);
	return true;
}

static void message_unlock_shared(weir_message *message, bool locked)
{
	if (locked)
		wr_spin_unlock(&message->lock);
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

/* `bare`: WR_BARE or 0. The entry stays WR_BARE only if all fences of its stream were. */
static inline weir_status fences_keep_latest(struct wr_fences *fences, weir_fence fence, uint64_t bare)
{
	uint32_t count = wr_read(&fences->count);

	for (uint32_t i = 0; i < count; i++)
		if (fences->items[i].stream == fence.stream) {
			uint64_t kept = fences->items[i].value, point = kept & ~WR_BARE;
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

static weir_status fence_add(weir_message *message, weir_fence fence, enum wr_part part)
{
	bool locked = message_lock_shared(message);
	weir_status status = fences_keep_latest(&message->uses, fence, 0);

	if (!status && part != WR_USED)
		status = fences_keep_latest(&message->producers, fence, part == WR_PRODUCED ? WR_BARE : 0);
	message_unlock_shared(message, locked);
	return status;
}

/*
 * Puts the fence among the message's uses if it is not there. `named`: the message names it by now; else it
 * is not put. *there: whether it was there. Fails: WEIR_E_NOMEM.
 */
static weir_status promise_put(weir_message *message, weir_fence fence, bool named, bool *there)
{
	bool locked = message_lock_shared(message);
	uint32_t count = wr_read(&message->uses.count), i = 0;
	weir_status status = WEIR_OK;

	while (i < count && message->uses.items[i].stream != fence.stream)
		i++;
	*there = i < count && message->uses.items[i].value >= fence.value;
	if (!*there && named)
		status = fences_keep_latest(&message->uses, fence, 0);
	message_unlock_shared(message, locked);
	return status;
}

/* A promise that fails is not forgotten while a message names it in its uses (T17): each names it once. */
__attribute__((noinline)) static weir_status promise_add(weir_message *message, weir_fence fence,
							 enum wr_part part)
{
	struct wr_system *system = pool_system(message->pool);
	weir_status status;
	bool named, there;

	(void)promise_put(message, fence, false, &there);
	if (!there) {
		status = wr_promise_name(system, fence, &named);
		if (status && part == WR_USED) /* it is over, whatever came of it */
			return WEIR_OK;
		if (status || !named)
			return status;
		status = promise_put(message, fence, true, &there);
		if (there || status)
			wr_promise_unname(system, fence);
		if (status)
			return status;
	}
	return part == WR_USED ? WEIR_OK : fence_add(message, fence, part);
}

static void promises_unname(const weir_message *message, uint32_t uses)
{
	struct wr_system *system = pool_system(message->pool);

	for (uint32_t i = 0; system && i < uses; i++)
		if (wr_fence_is_promise(message->uses.items[i]))
			wr_promise_unname(system, message->uses.items[i]);
}

static weir_status pack_add_fence(const weir_message *pack, weir_fence fence, enum wr_part part);

weir_status wr_message_add_fence(weir_message *message, weir_fence fence, enum wr_part part)
{
	if (fence.stream == 0) /* no fence: counts as complete */
		return WEIR_OK;
	if (message->kind == WEIR_KIND_PARTS)
		return pack_add_fence(message, fence, part);
	return wr_fence_is_promise(fence) ? promise_add(message, fence, part)
					  : fence_add(message, fence, part);
}

/*
 * Queries the fence first: an invalid one would never complete and keep the payload for ever; a complete one
 * needs no entry.
 */
static weir_status message_add_pending_fence(weir_message *message, weir_fence fence, enum wr_part part)
{
	struct wr_system *system = pool_system(message->pool);
	weir_status status;

	if (fence.stream == 0)
		return WEIR_OK;
	if (!system)
		return wr_fail(WEIR_E_INVALID, "fence: stream %llu does not belong to this graph",
			       (unsigned long long)fence.stream);
	status = wr_fence_query(system, fence);
	if (status == WEIR_E_FAILED) /* a promise: no message can carry it any more, and nothing reads */
		return part == WR_USED ? WEIR_OK : status;
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
	for (size_t i = 0, parts = weir_message_parts(message); i < parts; i++)
		if (wr_message_delivered(weir_message_part_at(message, i)))
			return wr_fail(WEIR_E_INVALID,
				       "part '%s' was pushed or emitted before: call "
				       "weir_message_add_producer on the parts that the work writes",
				       weir_message_part_name(message, i));
	return message_add_pending_fence(message, fence, WR_PRODUCED);
}

static bool pack_has_fences(const weir_message *pack);

bool wr_message_has_fences(const weir_message *message)
{
	if (message->kind == WEIR_KIND_PARTS)
		return pack_has_fences(message);
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
			out[count] = (weir_fence){fence.stream, fence.value & ~WR_BARE};
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

/* The producers' fences; `skipped`: WR_BARE to leave those out, else 0. */
static size_t copy_fences(const weir_message *message, uint64_t skipped, weir_fence *out, size_t room)
{
	weir_message *self = (weir_message *)message;

	if (!wr_message_has_fences(message))
		return 0;
	return wr_message_has_one_holder(self) ? copy_producers(self, skipped, out, room)
					       : copy_producers_locking(self, skipped, out, room);
}

static size_t pack_fences(const weir_message *pack, wr_fence_getter *get, weir_fence *out, size_t room);

size_t wr_message_fences(const weir_message *message, weir_fence *out, size_t room)
{
	return message->kind == WEIR_KIND_PARTS ? pack_fences(message, wr_message_fences, out, room)
						: copy_fences(message, 0, out, room);
}

size_t wr_message_carried(const weir_message *message, weir_fence *out, size_t room)
{
	return message->kind == WEIR_KIND_PARTS ? pack_fences(message, wr_message_carried, out, room)
						: copy_fences(message, WR_BARE, out, room);
}

size_t weir_message_fences(const weir_message *message, size_t room, weir_fence *out)
{
	return wr_message_fences(message, out, room);
}

/* --- writing in place --- */

bool wr_message_still_read(const weir_message *message)
{
	struct wr_system *system = pool_system(message->pool);
	uint32_t count = wr_read(&((weir_message *)message)->uses.count);
	uint32_t producers = wr_read(&((weir_message *)message)->producers.count);

	for (uint32_t i = 0; system && i < count; i++) {
		weir_fence use = message->uses.items[i];
		uint64_t covered = 0;
		for (uint32_t k = 0; k < producers; k++)
			if (message->producers.items[k].stream == use.stream)
				covered = message->producers.items[k].value & ~WR_BARE;
		if (covered >= use.value)
			continue;
		if (wr_fence_is_promise(use) ? !wr_promise_over(system, use) : wr_fence_query(system, use))
			return true;
	}
	return false;
}

static void pack_set_delivered(const weir_message *pack, bool delivered);

static void message_set_delivered(weir_message *message, bool delivered)
{
	if (wr_load_relaxed(&message->delivered) != delivered)
		wr_store_relaxed(&message->delivered, delivered);
	if (message->kind == WEIR_KIND_PARTS)
		pack_set_delivered(message, delivered);
}

static bool is_lent(const weir_message *message)
{
	return wr_load_relaxed(&((weir_message *)message)->lent);
}

/* True licenses a write in place, so the message counts as not delivered from now on. */
bool weir_message_unique(const weir_message *message)
{
	size_t parts = weir_message_parts(message);

	if (!wr_message_has_one_holder(message) || is_lent(message) ||
	    (!parts && wr_message_still_read(message)))
		return false;
	for (size_t i = 0; i < parts; i++) {
		const weir_message *part = weir_message_part_at(message, i);
		if (wr_message_references(part) != WR_PART_HELD || is_lent(part) ||
		    wr_message_still_read(part))
			return false;
	}
	message_set_delivered((weir_message *)message, false);
	return true;
}

bool wr_message_mark_delivered(weir_message *message)
{
	if (!wr_message_delivered(message))
		message_set_delivered(message, true);
	return wr_message_has_fences(message);
}

/* --- getters --- */

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

/*
 * === what a message carries ===
 *
 * Makes messages with bytes, a tensor or the caller's memory as payload, and frees
 * the payload. Tensors are described in DLPack's terms; the message keeps a copy of the description.
 */

/* --- tensors: strides and bytes of a shape and type --- */

enum { CODE_INT = 0, CODE_UINT = 1, CODE_FLOAT = 2, CODE_BFLOAT = 4, CODE_BOOL = 6 };

static bool known_type(const weir_tensor *tensor)
{
	switch (tensor->bits) {
	case 8:
		return tensor->code == CODE_INT || tensor->code == CODE_UINT || tensor->code == CODE_BOOL;
	case 16:
		return tensor->code <= CODE_FLOAT || tensor->code == CODE_BFLOAT;
	case 32:
	case 64:
		return tensor->code <= CODE_FLOAT;
	}
	return false;
}

/* *out = a * b + c, all of them not negative. Returns false on overflow. */
static bool multiply_add(int64_t a, int64_t b, int64_t c, int64_t *out)
{
	if (a != 0 && b > (INT64_MAX - c) / a)
		return false;
	*out = a * b + c;
	return true;
}

static weir_status refuse_too_large(void)
{
	return wr_fail(WEIR_E_INVALID, "tensor: shape times element size does not fit in 63 bits");
}

static weir_status check_tensor(const weir_tensor *tensor, bool dense)
{
	weir_status status = wr_struct_known("weir_tensor", tensor, sizeof(*tensor));

	if (status)
		return status;
	if (!known_type(tensor))
		return wr_fail(WEIR_E_INVALID,
			       "tensor: no type of code %d with %d bits "
			       "(int, uint: 8 to 64; float: 16 to 64; bfloat: 16; bool: 8)",
			       tensor->code, tensor->bits);
	if (tensor->dimensions < 0 || tensor->dimensions > WEIR_DIMENSIONS_MAX)
		return wr_fail(WEIR_E_INVALID, "tensor: dimensions is %d, must be 0 to %d",
			       (int)tensor->dimensions, WEIR_DIMENSIONS_MAX);
	if (tensor->dimensions > 0 && !tensor->shape)
		return wr_fail(WEIR_E_INVALID, "tensor: shape is NULL for %d dimensions",
			       (int)tensor->dimensions);
	for (int i = 0; i < tensor->dimensions; i++) {
		if (tensor->shape[i] < 0)
			return wr_fail(WEIR_E_INVALID, "tensor: shape[%d] is %lld, must not be negative", i,
				       (long long)tensor->shape[i]);
		if (!dense && tensor->strides[i] < 0)
			return wr_fail(WEIR_E_INVALID,
				       "tensor: strides[%d] is %lld; data must point to "
				       "the lowest address",
				       i, (long long)tensor->strides[i]);
	}
	return WEIR_OK;
}

/*
 * Checks type and shape, but not data, device and size. Writes one stride per dimension: those of the tensor,
 * or dense row-major ones if it has none or `dense` is set. *bytes: from the first to the last element.
 * Fails: WEIR_E_INVALID, naming the field.
 */
static weir_status measure_tensor(const weir_tensor *tensor, bool dense, int64_t *strides, size_t *bytes)
{
	int64_t last = 0, step = 1, size, element = tensor->bits / 8 * (tensor->lanes ? tensor->lanes : 1);
	bool empty = false;
	weir_status status;

	dense = dense || !tensor->strides;
	status = check_tensor(tensor, dense);
	if (status)
		return status;
	for (int i = tensor->dimensions - 1; i >= 0; i--) {
		int64_t extent = tensor->shape[i];
		strides[i] = dense ? step : tensor->strides[i];
		empty |= !extent;
		/* An extent of 0 counts as 1, so that the strides of an empty tensor stay meaningful. */
		if (!multiply_add(strides[i], extent ? extent - 1 : 0, last, &last) ||
		    (dense && !multiply_add(step, extent ? extent : 1, 0, &step)))
			return refuse_too_large();
	}
	if (!multiply_add(last, element, element, &size))
		return refuse_too_large();
	*bytes = empty ? 0 : (size_t)size;
	return WEIR_OK;
}

/* --- making and freeing --- */

__attribute__((always_inline)) static inline weir_message *message_new(struct wr_pool *pool, unsigned kind)
{
	weir_message *message = wr_pool_get(pool);

	if (!message)
		return NULL;
	wr_store_relaxed(&message->references, 1); /* no other thread has it yet */
	message->kind = (uint8_t)kind;
	message->payload = WR_PAYLOAD_NONE;
	wr_store_relaxed(&message->stamped, WR_STAMPED_NOT);
	wr_store_relaxed(&message->delivered, false);
	wr_store_relaxed(&message->lent, false);
	wr_store_relaxed(&message->emitted, false);
	message->data = NULL;
	if (wr_pool_has(pool, WR_POOL_COUNTED))
		wr_message_note_kept(1);
	return message;
}

/* Allocates pinned or device memory from the system; without a system, host memory. */
static weir_status allocate_payload(weir_message *message, int device, size_t bytes)
{
	struct wr_system *system = pool_system(message->pool);
	weir_status status = WEIR_OK;

	if (system) {
		status = wr_system_alloc(system, device, bytes, &message->data);
		message->system = system;
		message->payload = WR_PAYLOAD_SYSTEM;
	} else if (device != WEIR_DEVICE_HOST) {
		status = wr_fail(WEIR_E_INVALID,
				 "tensor: no device %d before a scheduler was created: "
				 "use WEIR_DEVICE_HOST",
				 device);
	} else {
		message->data = wr_alloc_aligned(WR_LINE, bytes);
		message->payload = WR_PAYLOAD_OWN;
		status = message->data ? WEIR_OK : WEIR_E_NOMEM;
	}
	message->size = bytes;
	if (status)
		message->payload = WR_PAYLOAD_NONE;
	return status;
}

static void free_to_memory_pool(struct wr_memory_pool *memory, weir_message *message)
{
	bool outside = wr_load_relaxed(&message->outside);

	wr_store_relaxed(&message->outside, false);
	wr_memory_free(memory, message->data, message->size, outside);
	if (outside)
		pool_let_go(message->pool);
}

static void pack_free(weir_message *pack);

/* Frees the payload. The message has no reference left and the GPU does not use it; no lock is held. */
static void payload_free(weir_message *message)
{
	int device = message->kind == WEIR_KIND_TENSOR ? message->of.tensor.device : WEIR_DEVICE_HOST;

	switch ((enum wr_payload)message->payload) {
	case WR_PAYLOAD_NONE:
	case WR_PAYLOAD_INLINE:
	case WR_PAYLOAD_DESTROY: /* the release calls the user's function */
		break;
	case WR_PAYLOAD_OWN:
		wr_free(message->data);
		break;
	case WR_PAYLOAD_SYSTEM:
		wr_system_free(message->system, device, message->data, message->size);
		break;
	case WR_PAYLOAD_POOL:
		free_to_memory_pool(message->arg, message);
		break;
	case WR_PAYLOAD_PARTS:
		pack_free(message);
		break;
	}
}

/* Stores a new message in *out, or returns it to the pool if status is a failure. */
static weir_status message_hand_out(weir_message **out, weir_message *message, weir_status status)
{
	if (status)
		wr_pool_put(message->pool, message);
	else
		*out = message;
	return status;
}

weir_status wr_message_empty(struct wr_pool *pool, weir_message **out)
{
	weir_message *message = message_new(pool, WEIR_KIND_EMPTY);

	if (!message)
		return WEIR_E_NOMEM;
	*out = message;
	return WEIR_OK;
}

weir_status weir_message_create_empty(weir_graph *graph, weir_message **out)
{
	return wr_message_empty(graph->pool, out);
}

weir_status weir_message_create_bytes(weir_graph *graph, size_t bytes, weir_message **out)
{
	weir_message *message = message_new(graph->pool, WEIR_KIND_BYTES);

	if (!message)
		return WEIR_E_NOMEM;
	if (bytes > WR_SMALL)
		return message_hand_out(out, message, allocate_payload(message, WEIR_DEVICE_HOST, bytes));
	message->payload = WR_PAYLOAD_INLINE;
	message->data = message->small;
	message->size = bytes;
	return message_hand_out(out, message, WEIR_OK);
}

/* Copies the description, with shape and strides, into the message. */
static void message_describe(weir_message *message, const weir_tensor *tensor, int device,
			     const int64_t *strides)
{
	size_t n = (size_t)tensor->dimensions * sizeof(*strides);

	message->of.tensor = *tensor;
	message->of.tensor.size = sizeof(weir_tensor);
	message->of.tensor.device = device;
	message->of.tensor.data = message->data;
	message->of.tensor.lanes = tensor->lanes ? tensor->lanes : 1;
	message->of.tensor.shape = message->of.shape;
	message->of.tensor.strides = message->of.strides;
	if (n > 0) {
		memcpy(message->of.shape, tensor->shape, n);
		memcpy(message->of.strides, strides, n);
	}
}

weir_status wr_message_tensor(struct wr_pool *pool, const weir_tensor *like, int device,
			      struct wr_claim *claim, weir_message **out)
{
	int64_t strides[WEIR_DIMENSIONS_MAX];
	size_t bytes;
	weir_message *message;
	weir_status status = measure_tensor(like, true, strides, &bytes);

	if (status)
		return status;
	message = message_new(pool, WEIR_KIND_TENSOR);
	if (!message)
		return WEIR_E_NOMEM;
	message->size = 0;
	if (bytes > 0 && !claim)
		status = allocate_payload(message, device, bytes);
	else if (bytes > 0)
		status = wr_memory_take(claim, bytes, &message->data);
	if (bytes > 0 && claim && !status) {
		message->payload = WR_PAYLOAD_POOL;
		message->arg = wr_memory_pool_of(claim);
		message->size = bytes;
	}
	message_describe(message, like, device, strides);
	return message_hand_out(out, message, status);
}

weir_status weir_message_create_tensor(weir_graph *graph, const weir_tensor *like, weir_message **out)
{
	return wr_message_tensor(graph->pool, like, like->device, NULL, out);
}

static void message_set_destroy(weir_message *message, void (*destroy)(void *), void *arg)
{
	message->payload = destroy ? WR_PAYLOAD_DESTROY : WR_PAYLOAD_NONE;
	message->destroy = destroy;
	message->arg = arg;
}

weir_status weir_message_wrap_tensor(weir_graph *graph, const weir_tensor *tensor, void (*destroy)(void *),
				     void *arg, weir_message **out)
{
	struct wr_system *system = pool_system(graph->pool);
	int64_t strides[WEIR_DIMENSIONS_MAX];
	size_t bytes;
	weir_message *message;
	weir_status status = measure_tensor(tensor, false, strides, &bytes);

	if (status)
		return status;
	if (!tensor->data && bytes > 0)
		return wr_fail(WEIR_E_INVALID, "tensor: data is NULL for %zu bytes", bytes);
	if (tensor->device < WEIR_DEVICE_HOST || (system && tensor->device >= wr_system_devices(system)))
		return wr_fail(WEIR_E_INVALID, "tensor: there is no device %d", (int)tensor->device);
	message = message_new(graph->pool, WEIR_KIND_TENSOR);
	if (!message)
		return WEIR_E_NOMEM;
	message->data = tensor->data;
	message->size = bytes;
	message_set_destroy(message, destroy, arg);
	message_describe(message, tensor, tensor->device, strides);
	return message_hand_out(out, message, WEIR_OK);
}

weir_status weir_message_wrap_user(weir_graph *graph, void *pointer, void (*destroy)(void *),
				   weir_message **out)
{
	weir_message *message = message_new(graph->pool, WEIR_KIND_USER);

	if (!message)
		return WEIR_E_NOMEM;
	message->data = pointer;
	message_set_destroy(message, destroy, pointer);
	return message_hand_out(out, message, WEIR_OK);
}

/* === the pools of free messages === */

#define SLAB_LEAST 64u
#define SLAB_MOST  4096u

struct wr_slab {
	struct wr_slab *next;
	size_t count;
	_Alignas(WR_LINE) weir_message messages[];
};

weir_status wr_pool_create(struct wr_pool **out)
{
	struct wr_pool *pool = wr_alloc_aligned(WR_LINE, sizeof(*pool));
	weir_status status;

	if (!pool)
		return WEIR_E_NOMEM;
	status = wr_mutex_init(&pool->lock);
	if (status) {
		wr_free(pool);
		return status;
	}
	*out = pool;
	return WEIR_OK;
}

void wr_pool_mark(struct wr_pool *pool, enum wr_pool_mark mark)
{
	if (!wr_pool_has(pool, mark))
		wr_fetch_or(&pool->marks.bits, mark);
}

void wr_pool_clear(struct wr_pool *pool, enum wr_pool_mark mark)
{
	wr_fetch_and(&pool->marks.bits, ~(uint32_t)mark);
}

void wr_pool_bind(struct wr_pool *pool, struct wr_system *system)
{
	wr_store_release(&pool->system, system);
}

/* Allocates a slab of n messages and puts all of them into the shared array. */
static weir_status pool_grow_locked(struct wr_pool *pool, size_t n)
{
	struct wr_slab *slab;

	if (wr_grow(&pool->free, &pool->room, pool->total + n, sizeof(*pool->free)))
		return WEIR_E_NOMEM;
	slab = wr_alloc_aligned(WR_LINE, sizeof(*slab) + n * sizeof(weir_message));
	if (!slab)
		return WEIR_E_NOMEM;
	slab->count = n;
	slab->next = pool->slabs;
	pool->slabs = slab;
	pool->total += n;
	for (size_t i = n; i-- > 0;) {
		weir_message *message = &slab->messages[i];

		message->pool = pool;
		message->uses.items = message->few_uses;
		message->producers.items = message->few_producers;
		message->uses.room = message->producers.room = WR_FEW;
		pool->free[pool->count++] = message;
	}
	return WEIR_OK;
}

weir_status wr_pool_reserve(struct wr_pool *pool, size_t messages)
{
	weir_status status = WEIR_OK;

	wr_mutex_lock(&pool->lock);
	if (pool->count < messages)
		status = pool_grow_locked(pool, messages - pool->count);
	wr_mutex_unlock(&pool->lock);
	return status;
}

weir_message *wr_pool_refill(struct wr_pool *pool, struct wr_cache *cache)
{
	weir_message *message = NULL;
	uint32_t n = 0;
	size_t slab; /* the total doubles, so that a graph with many messages has few slabs */

	wr_mutex_lock(&pool->lock);
	slab = pool->total < SLAB_LEAST ? SLAB_LEAST : pool->total > SLAB_MOST ? SLAB_MOST : pool->total;
	if (pool->count > 0 || !pool_grow_locked(pool, slab)) {
		message = pool->free[--pool->count];
		n = !cache ? 0 : pool->count < WR_BATCH ? (uint32_t)pool->count : WR_BATCH;
		pool->count -= n;
		if (n > 0)
			memcpy(cache->free, pool->free + pool->count, n * sizeof(*cache->free));
	}
	if (n > 0)
		wr_count(&cache->count, n);
	wr_mutex_unlock(&pool->lock);
	return message;
}

void wr_pool_spill(struct wr_pool *pool, struct wr_cache *cache, weir_message *message)
{
	wr_mutex_lock(&pool->lock);
	if (cache) {
		memcpy(pool->free + pool->count, cache->free + WR_BATCH, WR_BATCH * sizeof(*cache->free));
		pool->count += WR_BATCH;
		wr_count(&cache->count, -(uint32_t)WR_BATCH);
	}
	pool->free[pool->count++] = message;
	wr_mutex_unlock(&pool->lock);
}

uint64_t wr_pool_live(const struct wr_pool *pool)
{
	struct wr_pool *self = (struct wr_pool *)pool;
	uint64_t live;

	wr_mutex_lock(&self->lock);
	live = self->total - self->count;
	for (unsigned i = 0; i < WR_WORKERS_MAX; i++)
		live -= wr_read(&self->caches[i].count);
	wr_mutex_unlock(&self->lock);
	return live;
}

static void free_grown_fences(const struct wr_fences *fences)
{
	if (fences->room > WR_FEW)
		wr_free(fences->items);
}

void wr_pool_destroy(struct wr_pool *pool)
{
	if (!pool)
		return;
	assert(wr_pool_live(pool) == 0);
	for (struct wr_slab *slab = pool->slabs, *next; slab; slab = next) {
		next = slab->next;
		for (size_t i = 0; i < slab->count; i++) {
			free_grown_fences(&slab->messages[i].uses);
			free_grown_fences(&slab->messages[i].producers);
		}
		wr_free(slab);
	}
	wr_free(pool->free);
	wr_mutex_finish(&pool->lock);
	wr_free(pool);
}

/* === packs: making a message of named parts === */

enum { NAME_PLACES = 2 * WEIR_PARTS_MAX }; /* a power of two */

/* Enters the name. places: the parts that were entered, as 1 + their index, by the hash of the name; 0: free.
 */
static bool name_is_new(uint8_t *places, const weir_part *parts, size_t i)
{
	const char *name = parts[i].name;
	uint32_t place = 0;

	for (const char *at = name; *at; at++)
		place = (place ^ (unsigned char)*at) * 0x01000193u; /* FNV */
	for (place ^= place >> 16; places[place % NAME_PLACES]; place++)
		if (!strcmp(parts[places[place % NAME_PLACES] - 1].name, name))
			return false;
	places[place % NAME_PLACES] = (uint8_t)(i + 1);
	return true;
}

static weir_status refuse_name(uint8_t *places, const weir_part *parts, size_t i)
{
	const char *name = parts[i].name;

	if (!name || !*name)
		return wr_fail(WEIR_E_INVALID, "part %zu: it has no name", i);
	if (strlen(name) > WEIR_PART_NAME_MAX)
		return wr_fail(WEIR_E_INVALID, "part '%.20s...': its name has %zu bytes, at most %d fit",
			       name, strlen(name), WEIR_PART_NAME_MAX);
	return name_is_new(places, parts, i)
		       ? WEIR_OK
		       : wr_fail(WEIR_E_INVALID, "part '%s': two parts have this name", name);
}

static weir_status refuse_part(const weir_graph *graph, const weir_part *part)
{
	const weir_message *message = part->message;
	const struct wr_local *local = wr_thread_local();

	if (!message)
		return wr_fail(WEIR_E_INVALID, "part '%s': it has no message", part->name);
	if (message->pool != graph->pool)
		return wr_fail(WEIR_E_INVALID, "part '%s': the message belongs to another graph", part->name);
	if (message->kind == WEIR_KIND_PARTS)
		return wr_fail(WEIR_E_INVALID, "part '%s': it has parts itself: put these into the message",
			       part->name);
	/* An operator that gives away a part of what it received must have referenced it. */
	if (local && local->context && wr_context_holds_all(local->context, message))
		return wr_fail(WEIR_E_INVALID,
			       "part '%s': the operator holds no reference to it: pass weir_message_ref(...)",
			       part->name);
	return WEIR_OK;
}

static weir_status check_parts(const weir_graph *graph, const weir_part *parts, size_t count)
{
	uint8_t places[NAME_PLACES] = {0};
	weir_status status = WEIR_OK;

	if (!parts || !count || count > WEIR_PARTS_MAX)
		return wr_fail(WEIR_E_INVALID, "a message has 1 to %d parts, not %zu", WEIR_PARTS_MAX,
			       parts ? count : 0);
	for (size_t i = 0; !status && i < count; i++) {
		if (parts[i].size != sizeof parts[i])
			return wr_fail(WEIR_E_INVALID,
				       "weir_part: size is %zu, must be %zu: set it to sizeof", parts[i].size,
				       sizeof parts[i]);
		status = refuse_name(places, parts, i);
		if (!status)
			status = refuse_part(graph, &parts[i]);
	}
	return status;
}

weir_status weir_message_pack(weir_graph *graph, const weir_part *parts, size_t count, weir_message **out)
{
	weir_status status = check_parts(graph, parts, count);
	weir_message *pack;

	if (status)
		return status;
	status = wr_message_empty(graph->pool, &pack);
	if (status)
		return status;
	if (!wr_pack_make_block(pack, parts, count)) {
		weir_message_unref(pack);
		return WEIR_E_NOMEM;
	}
	pack->kind = WEIR_KIND_PARTS;
	pack->payload = WR_PAYLOAD_PARTS;
	wr_pool_mark(graph->pool, WR_POOL_PACKS);
	if (wr_pool_has(graph->pool, WR_POOL_COUNTED))
		wr_message_note_kept(-(int64_t)count);
	*out = pack;
	return WEIR_OK;
}

/*
 * === parts of a pack ===
 *
 * A *pack* is a message of named parts. It has no fences of its
 * own: its producers are those of its parts, and what uses it uses each of them. So a part that is taken out
 * of a pack is a message like any other: its producers travel with it, and its memory waits for all its
 * readers, those of the pack included. A pack itself is never deferred: the device does not use it.
 *
 * A pack holds two references to each part: the caller's and one more. So a part that is looked at alone
 * never seems to have one holder; only the pack knows whether it may be written.
 *
 * Parts and names are in one block: the pointers, the names' offsets, the names. A small one is inside the
 * message, so that packing allocates nothing.
 */

_Static_assert(WEIR_PARTS_MAX *(WEIR_PART_NAME_MAX + 1) <= UINT16_MAX, "an offset of a name has 16 bits");

enum { FEW = 16 };

/* --- the block --- */

static weir_message **pack_parts(const weir_message *pack)
{
	return pack->parts.block;
}

static uint16_t *pack_name_offsets(const weir_message *pack)
{
	return (uint16_t *)(pack_parts(pack) + pack->parts.count);
}

static char *pack_names(const weir_message *pack)
{
	return (char *)(pack_name_offsets(pack) + pack->parts.count);
}

bool wr_pack_make_block(weir_message *pack, const weir_part *parts, size_t count)
{
	size_t bytes = count * (sizeof(weir_message *) + sizeof(uint16_t)), at = 0;

	for (size_t i = 0; i < count; i++)
		bytes += strlen(parts[i].name) + 1;
	pack->parts.count = (uint32_t)count;
	pack->parts.freed = 0;
	pack->parts.block = bytes <= sizeof pack->parts.few ? (void *)pack->parts.few : wr_alloc(1, bytes);
	if (!pack->parts.block)
		return false;
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(parts[i].name) + 1;
		weir_message *message = parts[i].message;

		wr_message_ref_many(message, 1);
		pack_parts(pack)[i] = message;
		if (wr_load_relaxed(&message->outside))
			wr_store_relaxed(&pack->outside, true);
		pack_name_offsets(pack)[i] = (uint16_t)at;
		memcpy(pack_names(pack) + at, parts[i].name, length);
		at += length;
	}
	return true;
}

/*
 * The destructor of a part may end the thread, or free another pack. So a worker notes the pack that it frees
 * and how far it is (wr_message_finish_packs).
 */
static void pack_free(weir_message *pack)
{
	struct wr_local *local = wr_thread_local();

	if (local) {
		pack->arg = local->freeing;
		local->freeing = pack;
	}
	while (pack->parts.freed < pack->parts.count) {
		weir_message *part = pack_parts(pack)[pack->parts.freed++];
		for (int k = 0; k < WR_PART_HELD; k++)
			wr_message_unref(part);
	}
	if (local)
		local->freeing = pack->arg;
	wr_store_relaxed(&pack->outside, false);
	if (pack->parts.block != (void *)pack->parts.few)
		wr_free(pack->parts.block);
}

/* --- what holds for each part --- */

size_t weir_message_parts(const weir_message *message)
{
	return message->kind == WEIR_KIND_PARTS ? message->parts.count : 0;
}

weir_message *weir_message_part_at(const weir_message *message, size_t i)
{
	return i < weir_message_parts(message) ? pack_parts(message)[i] : NULL;
}

const char *weir_message_part_name(const weir_message *message, size_t i)
{
	if (i >= weir_message_parts(message))
		return NULL;
	return pack_names(message) + pack_name_offsets(message)[i];
}

weir_message *weir_message_part(const weir_message *message, const char *name)
{
	for (size_t i = 0; name && i < weir_message_parts(message); i++)
		if (!strcmp(weir_message_part_name(message, i), name))
			return pack_parts(message)[i];
	return NULL;
}

size_t wr_pack_count_held(const weir_message *pack, const weir_message *message)
{
	size_t count = 0;

	for (size_t i = 0; i < weir_message_parts(pack); i++)
		count += pack_parts(pack)[i] == message ? WR_PART_HELD : 0;
	return count;
}

/* A part that was delivered before is only read by work on the pack: others must not wait for that work. */
__attribute__((noinline)) static weir_status pack_add_fence(const weir_message *pack, weir_fence fence,
							    enum wr_part part)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < pack->parts.count; i++) {
		weir_message *message = pack_parts(pack)[i];
		status = wr_message_add_fence(message, fence, wr_message_delivered(message) ? WR_USED : part);
	}
	return status;
}

__attribute__((noinline)) static bool pack_has_fences(const weir_message *pack)
{
	for (size_t i = 0; i < pack->parts.count; i++)
		if (wr_message_has_fences(pack_parts(pack)[i]))
			return true;
	return false;
}

/*
 * Those that do not fit are counted, perhaps several of one stream: with as much room as the result says
 * they fit.
 */
static size_t pack_fences(const weir_message *pack, wr_fence_getter *get, weir_fence *out, size_t room)
{
	size_t count = 0, beyond = 0;
	weir_fence few[FEW];

	for (size_t i = 0; i < pack->parts.count; i++) {
		size_t n = get(pack_parts(pack)[i], few, FEW);
		weir_fence *found = n > FEW && n <= room - count ? out + count : few;
		if (found != few)
			n = get(pack_parts(pack)[i], found, room - count);
		if (n > (found == few ? FEW : room - count)) {
			beyond += n;
			continue;
		}
		for (size_t k = 0; k < n; k++) {
			size_t listed = 0;
			while (listed < count && out[listed].stream != found[k].stream)
				listed++;
			if (count < room || listed < count)
				count = wr_fences_add(out, count, found[k]);
			else
				beyond++;
		}
	}
	return count + beyond;
}

/* The push of the message releases the marks. */
void weir_message_lend(weir_message *message)
{
	wr_store_relaxed(&message->lent, true);
	for (size_t i = 0; message->kind == WEIR_KIND_PARTS && i < message->parts.count; i++)
		wr_store_relaxed(&pack_parts(message)[i]->lent, true);
}

__attribute__((noinline)) static void pack_set_delivered(const weir_message *pack, bool delivered)
{
	for (size_t i = 0; i < pack->parts.count; i++)
		message_set_delivered(pack_parts(pack)[i], delivered);
}

/*
 * === stamps ===
 *
 * What a tick emits gets its stamp before it is delivered; a message that was delivered keeps the one
 * that it has, or none, since others may read it. Where a graph has no stamps, a tick pays one load.
 */

static inline bool is_stamped(const weir_message *message)
{
	return wr_load_acquire(&((weir_message *)message)->stamped) == WR_STAMPED;
}

static void message_stamp(weir_message *message, weir_stamp stamp)
{
	message->stamp_time = stamp.time;
	message->stamp_tag = stamp.tag;
	wr_store_release(&message->stamped, WR_STAMPED);
	wr_pool_mark(message->pool, WR_POOL_STAMPS);
}

weir_status weir_message_set_stamp(weir_message *message, weir_stamp stamp)
{
	if (wr_message_delivered(message))
		return wr_fail(WEIR_E_INVALID, "call weir_message_set_stamp on a message before it is pushed "
					       "or emitted: others may read it by now");
	message_stamp(message, stamp);
	return WEIR_OK;
}

weir_stamp weir_message_stamp(const weir_message *message)
{
	return is_stamped(message) ? (weir_stamp){message->stamp_time, message->stamp_tag}
				   : (weir_stamp){0, 0};
}

weir_status weir_context_set_stamp(weir_context *context, weir_stamp stamp)
{
	const weir_entity *entity = context->entity;

	if (!context->computing)
		return wr_fail_in(WEIR_E_INVALID, entity->plan->name,
				  "weir_context_set_stamp is for compute only");
	context->stamp = stamp;
	context->stamp_set = true;
	wr_pool_mark(entity->graph->pool, WR_POOL_STAMPS);
	return WEIR_OK;
}

/* --- what a tick emits --- */

/*
 * Of a set (C12) the earliest that is new gives it: a set may lack ports, and the stamps of its first would
 * go back. An instance receives a set of its dealer's.
 */
static bool find_stamp(const weir_entity *entity, weir_stamp *out)
{
	const weir_message *first = NULL, *earliest = NULL; /* received */
	bool dealt = entity->plan->role == WR_INSTANCE;
	const struct wr_input *sets =
		dealt ? entity->graph->entities[entity->plan->dealer].inputs : entity->inputs;
	size_t inputs = entity->input_count - dealt; /* without `turn` */

	for (size_t i = 0; i < inputs; i++) {
		const struct wr_input *input = &entity->inputs[i];
		const weir_message *message = input->taken_count ? input->taken[0] : NULL;

		if (!first)
			first = message;
		if (message && sets[i].aligned && !input->connections[0]->queue.again &&
		    (!earliest || (sets[i].by_tag ? message->stamp_tag < earliest->stamp_tag
						  : message->stamp_time < earliest->stamp_time)))
			earliest = message;
	}
	first = earliest ? earliest : first;
	if (entity->context.stamp_set)
		*out = entity->context.stamp;
	else if (first && is_stamped(first))
		*out = weir_message_stamp(first);
	else
		return false;
	return true;
}

void wr_message_stamp_parts(weir_message *message)
{
	weir_stamp stamp;

	if (!is_stamped(message) || wr_message_delivered(message))
		return;
	stamp = weir_message_stamp(message);
	for (size_t i = 0, parts = weir_message_parts(message); i < parts; i++) {
		weir_message *part = weir_message_part_at(message, i);
		uint8_t none = WR_STAMPED_NOT;
		/* Another thread may push another message with it: whichever is first, it has a stamp then.
		 */
		if (!wr_message_delivered(part) && wr_cas(&part->stamped, &none, WR_STAMPED_WRITES))
			message_stamp(part, stamp);
		while (wr_load_acquire(&part->stamped) == WR_STAMPED_WRITES)
			wr_thread_yield();
	}
}

/* --- how old messages are --- */

void wr_latencies_clear(struct wr_latencies *latencies)
{
	wr_note(&latencies->count, 0);
	wr_note(&latencies->sum, 0);
	wr_note(&latencies->max, 0);
}

void wr_latencies_add(struct wr_latencies *latencies, const weir_message *message, int64_t *now)
{
	int64_t age;

	if (!is_stamped(message) || !message->stamp_time)
		return;
	*now = *now ? *now : wr_now();
	age = *now > message->stamp_time ? *now - message->stamp_time : 0;
	wr_count(&latencies->count, 1);
	wr_count(&latencies->sum, age);
	if (age > wr_read(&latencies->max))
		wr_note(&latencies->max, age);
}

void wr_entity_stamp_tick(weir_entity *entity)
{
	weir_stamp stamp;
	bool found = find_stamp(entity, &stamp);
	int64_t now = 0;

	for (size_t i = 0; i < entity->output_count; i++) {
		for (size_t k = 0; k < entity->outputs[i].emitted_count; k++) {
			weir_message *message = entity->outputs[i].emitted[k];
			if (found && !is_stamped(message) && !wr_message_delivered(message))
				message_stamp(message, stamp);
			wr_message_stamp_parts(message);
		}
	}
	entity->context.stamp_set = false;
	for (size_t i = 0; !entity->receivers && i < entity->shown_inputs; i++)
		for (size_t k = 0; k < entity->inputs[i].taken_count; k++)
			wr_latencies_add(&entity->counters.latencies, entity->inputs[i].taken[k], &now);
}

/*
 * References of messages, their getters, and their release. message_make.c makes messages, message_fences.c
 * keeps their fences.
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
 */
#include "scheduler/pool.h"

#include "base/memory.h"
#include "base/status.h"
#include "scheduler/entity.h"

/* --- references --- */

void wr_message_ref_many(weir_message *message, uint32_t n)
{
	/* Relaxed: the caller holds a reference already and passes the new ones on with release order. */
	wr_add_relaxed(&message->references, n);
}

weir_message *weir_message_ref(weir_message *message)
{
	wr_message_ref_many(message, 1);
	return message;
}

/* Releases the payload, then the message. No reference is left, the GPU does not use it; no lock is held. */
static void message_recycle(weir_message *message)
{
	int device = message->kind == WEIR_TENSOR ? message->of.tensor.device : WEIR_HOST;

	switch ((enum wr_payload)message->payload) {
	case WR_PAYLOAD_NONE:
	case WR_PAYLOAD_INLINE:
		break;
	case WR_PAYLOAD_OWN:
		wr_free(message->data);
		break;
	case WR_PAYLOAD_SYSTEM:
		wr_system_free(message->system, device, message->data, message->size);
		break;
	case WR_PAYLOAD_DESTROY:
		message->destroy(message->arg);
		break;
	}
	/* Relaxed: the next user gets it from this thread's cache or through the pool's lock. */
	wr_store_relaxed(&message->uses.count, 0);
	wr_store_relaxed(&message->producers.count, 0);
	wr_pool_put(message->pool, message);
}

static void release_deferred(struct wr_deferred_free *deferred)
{
	message_recycle((weir_message *)((char *)deferred - offsetof(weir_message, deferred)));
}

/* Returns true if the deferred-free list took the message. */
static bool message_defer(weir_message *message)
{
	struct wr_system *system = wr_pool_system(message->pool);
	uint32_t uses = wr_read(&message->uses.count);
	bool destructor = message->payload == WR_PAYLOAD_DESTROY;
	const struct wr_local *local = wr_thread_local();

	if (!system || message->payload == WR_PAYLOAD_NONE || (uses == 0 && (local || !destructor)))
		return false;
	message->deferred = (struct wr_deferred_free){
		.fences = message->uses.items,
		.count = uses,
		.release = release_deferred,
		.destructor = destructor,
		.foreign = !local || local->pool != message->pool,
	};
	return !wr_defer_free(system, &message->deferred);
}

/* Not inlined: keeps the common case of weir_message_unref short. */
__attribute__((noinline)) static void message_release(weir_message *message)
{
	if (!message_defer(message))
		message_recycle(message);
}

/* The message is in the pool already. Its memory lives as long as the graph, so the count can be repaired. */
__attribute__((noinline)) static void note_misuse(weir_message *message)
{
	const struct wr_local *local = wr_thread_local();

	wr_add_relaxed(&message->references, 1);
	if (wr_exchange(&message->pool->misused, true))
		return;
	wr_store(&message->pool->misused_by, local && local->context ? local->context->entity : NULL);
}

weir_status wr_pool_judge(struct wr_pool *pool, const weir_entity **by)
{
	*by = wr_load(&pool->misused_by);
	if (!wr_exchange(&pool->misused, false))
		return WEIR_OK;
	wr_store(&pool->misused_by, NULL);
	return wr_fail(WEIR_E_INVALID,
		       "a message was unreferenced more often than it was referenced: pass on "
		       "or keep weir_message_ref(message)");
}

void weir_message_unref(weir_message *message)
{
	uint32_t before;

	if (!message)
		return;
	/*
	 * Acquire: the last holder must see what the others did to the payload. A count of 1 is that of the
	 * last holder, which needs no read-modify-write.
	 */
	before = wr_load_acquire(&message->references);
	if (before != 1)
		before = wr_sub_acq_rel(&message->references, 1);
	if (before != 1) {
		if (!before)
			note_misuse(message);
		return;
	}
	if (message->payload <= WR_PAYLOAD_INLINE && wr_read(&message->uses.count) == 0)
		wr_pool_put(message->pool, message);
	else
		message_release(message);
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
	return message->kind == WEIR_TENSOR ? &message->of.tensor : NULL;
}

void *weir_message_data(const weir_message *message)
{
	return message->data;
}

size_t weir_message_size(const weir_message *message)
{
	return message->kind & (WEIR_BYTES | WEIR_TENSOR) ? message->size : 0;
}

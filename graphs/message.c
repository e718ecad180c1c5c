/*
 * A message is a count, a payload, and two sets of fences (message_fences.c). Here it is counted, looked at
 * and given back; message_make.c makes them.
 *
 * The last unref finds one of three cases. Nothing to give back: into the cache of the worker, a handful of
 * instructions. A payload that nobody on the GPU reads: it goes back at once. A use set: wr_defer_free lists
 * the message, and it goes back when the whole set is complete; until then it is alive for wr_pool_live.
 *
 * User destructors never run on the driver's thread (B3). A message whose use set is not complete is handed
 * to the retire list, where a worker, or the destroy after the run, finds it. The list will not have one
 * with nothing to wait for: then the destructor runs at once, on whoever dropped the last reference, a
 * foreign thread, too; as it does without a system.
 */
#include "graphs/pool.h"

#include "base/memory.h"
#include "base/status.h"
#include "graphs/entity.h"

/* --- references --- */

void wr_message_ref_many(weir_message *message, uint32_t n)
{
	/* Relaxed: who adds holds one already, and hands the new ones on by something that orders. */
	wr_add_relaxed(&message->references, n);
}

weir_message *weir_message_ref(weir_message *message)
{
	wr_message_ref_many(message, 1);
	return message;
}

/* Gives the payload back, then the message. Nobody holds it, nothing on the GPU touches it; no lock. */
static void finish(weir_message *message)
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
	/* Relaxed: its next owner gets it from this thread's cache or by the pool's lock. */
	wr_store_relaxed(&message->uses.count, 0);
	wr_store_relaxed(&message->producers.count, 0);
	wr_pool_put(message->pool, message);
}

static void release(struct wr_deferred_free *retired)
{
	finish((weir_message *)((char *)retired - offsetof(weir_message, retired)));
}

/* The slow way of a last unref: true if the retire list has the message from now on. */
static bool listed(weir_message *message)
{
	struct wr_system *system = wr_pool_system(message->pool);
	uint32_t uses = wr_read(&message->uses.count);
	bool destructor = message->payload == WR_PAYLOAD_DESTROY;
	const struct wr_local *local = wr_thread_local();

	if (!system || message->payload == WR_PAYLOAD_NONE || (uses == 0 && (local || !destructor)))
		return false;
	message->retired = (struct wr_deferred_free){
		.fences = message->uses.items,
		.count = uses,
		.release = release,
		.destructor = destructor,
		.foreign = !local || local->pool != message->pool,
	};
	return !wr_defer_free(system, &message->retired);
}

/* Not inlined: the way of a message that has nothing to give back stays short. */
__attribute__((noinline)) static void let_go(weir_message *message)
{
	if (!listed(message))
		finish(message);
}

/* It has gone back to the pool already. Its memory is there for as long as the graph: nothing is torn. */
__attribute__((noinline)) static void misused(weir_message *message)
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
	return wr_fail(WEIR_E_INVALID, "a message was unreferenced more often than it was referenced: pass on "
		       "or keep weir_message_ref(message)");
}

void weir_message_unref(weir_message *message)
{
	uint32_t before;

	if (!message)
		return;
	/*
	 * The last holder must see what the others did to the payload. If it finds 1 it is the last one: no
	 * read-modify-write.
	 */
	before = wr_load_acquire(&message->references);
	if (before != 1)
		before = wr_sub_acq_rel(&message->references, 1);
	if (before != 1) {
		if (!before)
			misused(message);
		return;
	}
	if (message->payload <= WR_PAYLOAD_INLINE && wr_read(&message->uses.count) == 0)
		wr_pool_put(message->pool, message);
	else
		let_go(message);
}

/* --- looking at one --- */

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

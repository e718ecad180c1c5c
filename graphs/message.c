/*
 * A message is a count, a payload, and two sets of fences. The producers say which work on the GPU makes
 * the payload; the use set says which work still touches it, producers and readers alike (T4). Both keep
 * one fence per stream, the latest: a stream is in order, so its later point stands for the earlier ones.
 *
 * The last unref finds one of three cases. Nothing to give back: into the cache of the worker, a handful of
 * instructions. A payload that nobody on the GPU reads: it goes back at once. A use set: wr_retire lists
 * the message, and it goes back when the whole set is complete; until then it is alive for wr_pool_live.
 *
 * User destructors never run on the driver's thread (B3). A message whose use set is not complete is handed to the
 * retire list, where a worker, or the destroy after the run, finds it. The list will not have one with nothing to
 * wait for: then the destructor runs at once, on whoever dropped the last reference, a foreign thread, too; as it
 * does without a system.
 *
 * Two holders may add fences at the same time (receivers of one fan-out), so there is a lock: one word,
 * held for a few stores. The only holder needs none.
 */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "graphs/pool.h"
#include "graphs/tensor.h"

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

/* Acquire: whoever dropped his reference has done with the payload. */
static bool held_once(const weir_message *message)
{
	return wr_message_references(message) == 1;
}

static bool produced(const weir_message *message, weir_fence use)
{
	uint32_t count = wr_read(&((weir_message *)message)->producers.count);

	for (uint32_t i = 0; i < count; i++)
		if (message->producers.items[i].stream == use.stream)
			return message->producers.items[i].point >= use.point;
	return false;
}

/* By work of somebody who has let go of it: nobody who writes it would wait for that, as he waits for the producers. */
static bool still_read(const weir_message *message)
{
	struct wr_system *system = wr_pool_system(message->pool);
	uint32_t count = wr_read(&((weir_message *)message)->uses.count);

	for (uint32_t i = 0; system && i < count; i++)
		if (!produced(message, message->uses.items[i]) && wr_fence_query(system, message->uses.items[i]))
			return true;
	return false;
}

/* Who hears yes may write: then it is as good as made by him. */
bool weir_message_unique(const weir_message *message)
{
	if (!held_once(message) || still_read(message))
		return false;
	if (wr_message_out(message))
		wr_store_relaxed(&((weir_message *)message)->out, false);
	return true;
}

void wr_message_deliver(weir_message *message)
{
	if (!wr_message_out(message))
		wr_store_relaxed(&message->out, true);
}

bool wr_message_out(const weir_message *message)
{
	return wr_load_relaxed(&((weir_message *)message)->out);
}

/*
 * Gives the payload back, then the message. Nobody holds it, nothing on the GPU touches it, no lock is
 * held.
 */
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

static void release(struct wr_retired *retired)
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
	message->retired = (struct wr_retired){
		.fences = message->uses.items,
		.count = uses,
		.release = release,
		.destructor = destructor,
		.foreign = !local || local->pool != message->pool,
	};
	return !wr_retire(system, &message->retired);
}

/* Not inlined: the way of a message that has nothing to give back stays short. */
__attribute__((noinline)) static void let_go(weir_message *message)
{
	if (!listed(message))
		finish(message);
}

void weir_message_unref(weir_message *message)
{
	if (!message)
		return;
	/*
	 * The last holder must see what the others did to the payload. Who finds 1 is the last: no
	 * read-modify-write.
	 */
	if (wr_load_acquire(&message->references) != 1 && wr_sub_acq_rel(&message->references, 1) != 1)
		return;
	if (message->payload <= WR_PAYLOAD_INLINE && wr_read(&message->uses.count) == 0)
		wr_pool_put(message->pool, message);
	else
		let_go(message);
}

/* --- making one --- */

static weir_message *make(struct wr_pool *pool, unsigned kind)
{
	weir_message *message = wr_pool_get(pool);

	if (!message)
		return NULL;
	wr_store_relaxed(&message->references, 1);	/* nobody else knows it yet */
	message->kind = (uint8_t)kind;
	message->payload = WR_PAYLOAD_NONE;
	wr_store_relaxed(&message->out, false);
	message->data = NULL;
	return message;
}

/* Pinned or device memory if there is a system, else the host's. */
static weir_status allocate(weir_message *message, int device, size_t bytes)
{
	struct wr_system *system = wr_pool_system(message->pool);
	weir_status status = WEIR_OK;

	if (system) {
		status = wr_system_alloc(system, device, bytes, &message->data);
		message->system = system;
		message->payload = WR_PAYLOAD_SYSTEM;
	} else if (device != WEIR_HOST) {
		status = wr_fail(WEIR_E_INVALID,
				 "tensor: no device %d before a scheduler was created: use WEIR_HOST", device);
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

/* Hands a new message out, or takes it back. */
static weir_status hand_out(weir_message **out, weir_message *message, weir_status status)
{
	if (status)
		wr_pool_put(message->pool, message);
	else
		*out = message;
	return status;
}

weir_status wr_message_empty(weir_message **out, struct wr_pool *pool)
{
	weir_message *message = make(pool, WEIR_EMPTY);

	if (!message)
		return WEIR_E_NOMEM;
	*out = message;
	return WEIR_OK;
}

weir_status wr_message_bytes(weir_message **out, struct wr_pool *pool, size_t bytes)
{
	weir_message *message = make(pool, WEIR_BYTES);

	if (!message)
		return WEIR_E_NOMEM;
	if (bytes > WR_SMALL)
		return hand_out(out, message, allocate(message, WEIR_HOST, bytes));
	message->payload = WR_PAYLOAD_INLINE;
	message->data = message->small;
	message->size = bytes;
	return hand_out(out, message, WEIR_OK);
}

/* Makes the message own its description of the tensor: shape and strides are copied. */
static void describe(weir_message *message, const weir_tensor *tensor, int device, const int64_t *strides)
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

weir_status wr_message_tensor(weir_message **out, struct wr_pool *pool, const weir_tensor *like, int device)
{
	int64_t strides[WEIR_DIMENSIONS];
	size_t bytes;
	weir_message *message;
	weir_status status = wr_tensor_measure(like, true, strides, &bytes);

	if (status)
		return status;
	message = make(pool, WEIR_TENSOR);
	if (!message)
		return WEIR_E_NOMEM;
	message->size = 0;
	if (bytes > 0)
		status = allocate(message, device, bytes);
	describe(message, like, device, strides);
	return hand_out(out, message, status);
}

static weir_status check_wrapped(struct wr_pool *pool, const weir_tensor *tensor, size_t bytes)
{
	struct wr_system *system = wr_pool_system(pool);

	if (tensor->size != sizeof(*tensor))
		return wr_fail(WEIR_E_INVALID, "tensor: size is %zu, must be sizeof(weir_tensor)",
			       tensor->size);
	if (!tensor->data && bytes > 0)
		return wr_fail(WEIR_E_INVALID, "tensor: data is NULL for %zu bytes", bytes);
	if (tensor->device < WEIR_HOST || (system && tensor->device >= wr_system_devices(system)))
		return wr_fail(WEIR_E_INVALID, "tensor: there is no device %d", (int)tensor->device);
	return WEIR_OK;
}

static void set_destroy(weir_message *message, void (*destroy)(void *), void *arg)
{
	message->payload = destroy ? WR_PAYLOAD_DESTROY : WR_PAYLOAD_NONE;
	message->destroy = destroy;
	message->arg = arg;
}

weir_status wr_message_wrap(weir_message **out, struct wr_pool *pool, const weir_tensor *tensor,
			    void (*destroy)(void *), void *arg)
{
	int64_t strides[WEIR_DIMENSIONS];
	size_t bytes;
	weir_message *message;
	weir_status status = wr_tensor_measure(tensor, false, strides, &bytes);

	if (!status)
		status = check_wrapped(pool, tensor, bytes);
	if (status)
		return status;
	message = make(pool, WEIR_TENSOR);
	if (!message)
		return WEIR_E_NOMEM;
	message->data = tensor->data;
	message->size = bytes;
	set_destroy(message, destroy, arg);
	describe(message, tensor, tensor->device, strides);
	return hand_out(out, message, WEIR_OK);
}

weir_status wr_message_user(weir_message **out, struct wr_pool *pool, void *pointer, void (*destroy)(void *))
{
	weir_message *message = make(pool, WEIR_USER);

	if (!message)
		return WEIR_E_NOMEM;
	message->data = pointer;
	set_destroy(message, destroy, pointer);
	return hand_out(out, message, WEIR_OK);
}

weir_status weir_message_empty(weir_message **out, weir_graph *graph)
{
	return wr_message_empty(out, wr_graph_pool(graph));
}

weir_status weir_message_bytes(weir_message **out, weir_graph *graph, size_t bytes)
{
	return wr_message_bytes(out, wr_graph_pool(graph), bytes);
}

weir_status weir_message_tensor_new(weir_message **out, weir_graph *graph, const weir_tensor *like)
{
	return wr_message_tensor(out, wr_graph_pool(graph), like, like->device);
}

weir_status weir_message_wrap(weir_message **out, weir_graph *graph, const weir_tensor *tensor,
			      void (*destroy)(void *), void *arg)
{
	return wr_message_wrap(out, wr_graph_pool(graph), tensor, destroy, arg);
}

weir_status weir_message_user(weir_message **out, weir_graph *graph, void *pointer, void (*destroy)(void *))
{
	return wr_message_user(out, wr_graph_pool(graph), pointer, destroy);
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

/* --- fences --- */

/* True: locked. False: the caller is the only holder, nobody else can look. */
static bool lock_shared(weir_message *message)
{
	if (held_once(message))
		return false;
	while (wr_exchange(&message->lock, 1))
		wr_thread_yield();
	return true;
}

static void unlock_shared(weir_message *message, bool locked)
{
	if (locked)
		wr_store_release(&message->lock, 0);
}

static weir_status make_room(struct wr_fences *fences)
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

static weir_status keep_latest(struct wr_fences *fences, weir_fence fence)
{
	uint32_t count = wr_read(&fences->count);

	for (uint32_t i = 0; i < count; i++)
		if (fences->items[i].stream == fence.stream) {
			if (fences->items[i].point < fence.point)
				fences->items[i].point = fence.point;
			return WEIR_OK;
		}
	if (count == fences->room && make_room(fences))
		return WEIR_E_NOMEM;
	fences->items[count] = fence;
	wr_store_release(&fences->count, count + 1);
	return WEIR_OK;
}

weir_status wr_message_add_fence(weir_message *message, weir_fence fence, bool produced)
{
	weir_status status;
	bool locked;

	if (fence.stream == 0)		/* none, which counts as complete */
		return WEIR_OK;
	locked = lock_shared(message);
	status = keep_latest(&message->uses, fence);
	if (!status && produced)
		status = keep_latest(&message->producers, fence);
	unlock_shared(message, locked);
	return status;
}

/*
 * A fence that cannot complete would keep the payload for ever, so it is asked for first: complete ones
 * need no entry.
 */
weir_status weir_message_use(weir_message *message, weir_fence fence)
{
	struct wr_system *system = wr_pool_system(message->pool);
	weir_status status;

	if (fence.stream == 0)
		return WEIR_OK;
	if (!system)
		return wr_fail(WEIR_E_INVALID, "fence: of stream %llu, which no scheduler of this graph made",
			       (unsigned long long)fence.stream);
	status = wr_fence_query(system, fence);
	if (status == WEIR_OK || status == WEIR_E_INVALID)
		return status;
	return wr_message_add_fence(message, fence, false);
}

bool wr_message_has_fences(const weir_message *message)
{
	return wr_load_acquire(&((weir_message *)message)->producers.count) > 0;
}

size_t wr_message_fences(const weir_message *message, weir_fence *out, size_t room)
{
	weir_message *self = (weir_message *)message;
	size_t count, n;
	bool locked;

	if (!wr_message_has_fences(message))
		return 0;
	locked = lock_shared(self);
	count = wr_read(&self->producers.count);
	n = count < room ? count : room;
	if (n > 0)
		memcpy(out, self->producers.items, n * sizeof(*out));
	unlock_shared(self, locked);
	return count;
}

size_t weir_message_fences(const weir_message *message, weir_fence *out, size_t room)
{
	return wr_message_fences(message, out, room);
}

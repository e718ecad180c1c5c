/*
 * The fences of a message. The producers say which work on the GPU makes the payload; the use set says
 * which work still touches it, producers and readers alike (T4). Both keep one fence per stream, the
 * latest: a stream is in order, so its later point stands for the earlier ones.
 *
 * Two holders may add fences at the same time (receivers of one fan-out), so there is a lock: one word,
 * held for a few stores. The only holder needs none.
 *
 * A producer's fence whose stream does not travel has the highest bit of its point set; points never come
 * that far, and nobody outside of this file sees the bit.
 */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "graphs/pool.h"

#define BARE (UINT64_C(1) << 63)	/* the fence travels without its stream */

/* True: locked. False: the caller is the only holder, nobody else can look. */
static bool lock_shared(weir_message *message)
{
	if (wr_message_held_once(message))
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

/* `bare`: BARE or 0. It stays where all of the stream's fences were. */
static weir_status keep_latest(struct wr_fences *fences, weir_fence fence, uint64_t bare)
{
	uint32_t count = wr_read(&fences->count);

	for (uint32_t i = 0; i < count; i++)
		if (fences->items[i].stream == fence.stream) {
			uint64_t kept = fences->items[i].point, point = kept & ~BARE;
			point = point < fence.point ? fence.point : point;
			fences->items[i].point = point | (kept & bare);
			return WEIR_OK;
		}
	if (count == fences->room && make_room(fences))
		return WEIR_E_NOMEM;
	fences->items[count] = (weir_fence){fence.stream, fence.point | bare};
	wr_store_release(&fences->count, count + 1);
	return WEIR_OK;
}

weir_status wr_message_add_fence(weir_message *message, weir_fence fence, enum wr_part part)
{
	weir_status status;
	bool locked;

	if (fence.stream == 0)		/* none, which counts as complete */
		return WEIR_OK;
	locked = lock_shared(message);
	status = keep_latest(&message->uses, fence, 0);
	if (!status && part != WR_USED)
		status = keep_latest(&message->producers, fence, part == WR_PRODUCED ? BARE : 0);
	unlock_shared(message, locked);
	return status;
}

static weir_status no_stream_yet(weir_fence fence)
{
	return wr_fail(WEIR_E_INVALID, "fence: of stream %llu, which no scheduler of this graph made",
		       (unsigned long long)fence.stream);
}

/*
 * A fence that cannot complete would keep the payload for ever, so it is asked for first: complete ones
 * need no entry.
 */
static weir_status add_outside(weir_message *message, weir_fence fence, enum wr_part part)
{
	struct wr_system *system = wr_pool_system(message->pool);
	weir_status status;

	if (fence.stream == 0)
		return WEIR_OK;
	if (!system)
		return no_stream_yet(fence);
	status = wr_fence_query(system, fence);
	if (status == WEIR_OK || status == WEIR_E_INVALID)
		return status;
	return wr_message_add_fence(message, fence, part);
}

weir_status weir_message_use(weir_message *message, weir_fence fence)
{
	return add_outside(message, fence, WR_USED);
}

weir_status weir_message_produced(weir_message *message, weir_fence fence)
{
	if (wr_message_out(message))
		return wr_fail(WEIR_E_INVALID, "what produces a message is said before it is pushed or emitted: "
					       "others may look at it by now");
	return add_outside(message, fence, WR_PRODUCED);
}

bool wr_message_has_fences(const weir_message *message)
{
	return wr_load_acquire(&((weir_message *)message)->producers.count) > 0;
}

static inline size_t copy_held(weir_message *self, uint64_t passed_over, weir_fence *out, size_t room)
{
	uint32_t all = wr_read(&self->producers.count);
	size_t count = 0;

	for (uint32_t i = 0; i < all; i++) {
		weir_fence fence = self->producers.items[i];
		if (fence.point & passed_over)
			continue;
		if (count < room)
			out[count] = (weir_fence){fence.stream, fence.point & ~BARE};
		count++;
	}
	return count;
}

static __attribute__((noinline)) size_t copy_shared(weir_message *self, uint64_t passed_over, weir_fence *out, size_t room)
{
	bool locked = lock_shared(self);
	size_t count = copy_held(self, passed_over, out, room);

	unlock_shared(self, locked);
	return count;
}

/* The producers' fences, with or without the bare ones. */
static size_t copy(const weir_message *message, uint64_t passed_over, weir_fence *out, size_t room)
{
	weir_message *self = (weir_message *)message;

	if (!wr_message_has_fences(message))
		return 0;
	return wr_message_held_once(self) ? copy_held(self, passed_over, out, room)
					  : copy_shared(self, passed_over, out, room);
}

size_t wr_message_fences(const weir_message *message, weir_fence *out, size_t room)
{
	return copy(message, 0, out, room);
}

size_t wr_message_carried(const weir_message *message, weir_fence *out, size_t room)
{
	return copy(message, BARE, out, room);
}

size_t weir_message_fences(const weir_message *message, weir_fence *out, size_t room)
{
	return wr_message_fences(message, out, room);
}

/* --- who may write it --- */

static bool produced(const weir_message *message, weir_fence use)
{
	uint32_t count = wr_read(&((weir_message *)message)->producers.count);

	for (uint32_t i = 0; i < count; i++)
		if (message->producers.items[i].stream == use.stream)
			return (message->producers.items[i].point & ~BARE) >= use.point;
	return false;
}

/* By work of somebody who let go of it: a writer would not wait for that, as he does for producers. */
static bool still_read(const weir_message *message)
{
	struct wr_system *system = wr_pool_system(message->pool);
	uint32_t count = wr_read(&((weir_message *)message)->uses.count);

	for (uint32_t i = 0; system && i < count; i++) {
		weir_fence use = message->uses.items[i];
		if (!produced(message, use) && wr_fence_query(system, use))
			return true;
	}
	return false;
}

/* Who wants ticked yes may write: then it is as good as made by him. */
bool weir_message_unique(const weir_message *message)
{
	if (!wr_message_held_once(message) || still_read(message))
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

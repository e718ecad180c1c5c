/*
 * Positions count messages for ever and are 64 bits wide; position & mask is the slot. head <= look <=
 * tail: the front is [head, look), the inbox [look, tail).
 *
 * `block`, `reject` and `fault`: the sender writes the slot at tail, then tail (release); the receiver that
 * reads tail (acquire) sees the slot. The receiver empties slots, then writes head (release); the sender
 * that reads head (acquire) may fill them again. `look` is between the receiver and itself. Each side keeps
 * what it last read of the other and reads again only when that is not enough; who asks for the room gets
 * the newest, since he may park on the answer.
 *
 * `pop`: the sender moves head, look and the slots too, so everything goes under the lock, looking
 * included. Messages are unreferenced after it: that may run a user's destructor. To evict the oldest of
 * the inbox, the shorter of front and inbox moves up or down by one slot.
 */
#include "graphs/queue.h"

#include <stddef.h>

#include "base/bug.h"
#include "base/memory.h"
#include "base/status.h"
#include "weir.h"

_Static_assert(offsetof(struct wr_queue, tail) == 64, "the sender's line");
_Static_assert(offsetof(struct wr_queue, counters.delivered) == 128, "the receiver's line");

static uint32_t slots_for(uint32_t capacity, weir_policy policy)
{
	uint32_t need = capacity + (policy == WEIR_POP), n = 1;

#ifdef WR_SEAM
	need = 2 * capacity + 1;	/* ROOM_BY_LOOKING fills both ends: that breaks no memory */
#endif
	while (n < need)
		n *= 2;
	return n;
}

weir_status wr_queue_init(struct wr_queue *queue, uint32_t id, uint32_t capacity, weir_policy policy)
{
	weir_status status = WEIR_OK;

	if (capacity == 0 || capacity > WR_CAPACITY_MAX)
		return wr_fail(WEIR_E_INVALID, "capacity is %u, must be 1 to %u", capacity, WR_CAPACITY_MAX);
	*queue = (struct wr_queue){.id = id, .capacity = capacity, .policy = policy};
	queue->mask = slots_for(capacity, policy) - 1;
	if (policy == WEIR_POP)
		status = wr_mutex_init(&queue->lock);
	if (status)
		return status;
	queue->slots = wr_alloc((size_t)queue->mask + 1, sizeof(*queue->slots));
	if (!queue->slots) {
		wr_mutex_finish(&queue->lock);
		*queue = (struct wr_queue){0};
		return WEIR_E_NOMEM;
	}
	return WEIR_OK;
}

/*
 * For onlookers: writes nothing (tail_seen is the receiver's). The head first: it never passes a tail that
 * was read after it.
 */
size_t wr_queue_snapshot(const struct wr_queue *queue)
{
	struct wr_queue *own = (struct wr_queue *)queue;
	uint64_t head = wr_load_acquire(&own->head), filled = wr_load_acquire(&own->tail) - head;
	size_t most = (size_t)queue->capacity + wr_queue_evicts(queue);

	return filled < most ? (size_t)filled : most;	/* many came and went between the two loads */
}

/* Unrefs all that is in it and makes it empty. The caller is the only one who touches the queue. */
static size_t discard(struct wr_queue *queue)
{
	uint64_t head = wr_read(&queue->head), tail = wr_load_acquire(&queue->tail);
	size_t n = (size_t)(tail - head);

	for (; head != tail; head++)
		weir_message_unref(wr_queue_slot(queue, head)->message);
	queue->tail_seen = tail;
	wr_store_relaxed(&queue->look, tail);
	wr_store_release(&queue->head, tail);
	return n;
}

void wr_queue_finish(struct wr_queue *queue)
{
	if (!queue->slots)
		return;
	discard(queue);
	if (wr_queue_evicts(queue))
		wr_mutex_finish(&queue->lock);
	wr_free(queue->slots);
	queue->slots = NULL;
}

size_t wr_queue_reset(struct wr_queue *queue)
{
	size_t n = discard(queue);
	struct wr_queue_counters *counters = &queue->counters;

	wr_store_relaxed(&counters->pushed, 0);
	wr_store_relaxed(&counters->dropped, 0);
	wr_store_relaxed(&counters->taken_back, 0);
	wr_store_relaxed(&counters->delivered, 0);
	wr_store_relaxed(&counters->closed, 0);
	wr_store_relaxed(&counters->abandoned, 0);
	wr_store_release(&queue->closed, false);
	return n;
}

/* Takes the oldest of all out; NULL: empty. */
static struct weir_message *take_oldest(struct wr_queue *queue)
{
	struct weir_message *message = NULL;
	uint64_t head;

	wr_queue_lock(queue);
	head = wr_read(&queue->head);
	if (wr_queue_newest_tail(queue) != head) {
		message = wr_queue_slot(queue, head)->message;
		if (wr_read(&queue->look) == head)
			wr_store_relaxed(&queue->look, head + 1);
		wr_store_release(&queue->head, head + 1);
	}
	wr_queue_unlock(queue);
	return message;
}

/* --- sender --- */

static void count_dropped(struct wr_queue *queue)
{
	wr_count(&queue->counters.pushed, 1);
	wr_count(&queue->counters.dropped, 1);
}

enum wr_pushed wr_queue_refuse(struct wr_queue *queue, struct weir_message *message)
{
	if (queue->policy == WEIR_BLOCK)
		return WR_PUSH_FULL;
	if (queue->policy == WEIR_FAULT)
		return WR_PUSH_FAULT;
	count_dropped(queue);
	weir_message_unref(message);
	return WR_PUSH_DROPPED;
}

/* Takes the oldest message out of the inbox, which is not empty, and closes the gap from its shorter side. */
static struct weir_message *evict_locked(struct wr_queue *queue)
{
	uint64_t head = wr_read(&queue->head), look = wr_read(&queue->look), tail = wr_read(&queue->tail);
	struct weir_message *oldest = wr_queue_slot(queue, look)->message;

	if (look - head < tail - look) {
		for (uint64_t i = look; i != head; i--)
			*wr_queue_slot(queue, i) = *wr_queue_slot(queue, i - 1);
		wr_store_relaxed(&queue->head, head + 1);
		wr_store_relaxed(&queue->look, look + 1);
	} else {
		for (uint64_t i = look; i + 1 != tail; i++)
			*wr_queue_slot(queue, i) = *wr_queue_slot(queue, i + 1);
		wr_store_relaxed(&queue->tail, tail - 1);
	}
	return oldest;
}

/* Returns what had to go, or NULL. */
static struct weir_message *push_evicting(struct wr_queue *queue, struct wr_slot filled)
{
	struct weir_message *evicted = NULL;
	uint64_t tail;

	wr_mutex_lock(&queue->lock);
	tail = wr_read(&queue->tail);
	if (tail - wr_read(&queue->head) >= queue->capacity && tail != wr_read(&queue->look))
		evicted = evict_locked(queue);
	tail = wr_read(&queue->tail);	/* evicting may have moved it */
	*wr_queue_slot(queue, tail) = filled;
	wr_store_release(&queue->tail, tail + 1);
	wr_mutex_unlock(&queue->lock);
	wr_count(&queue->counters.pushed, 1);
	if (evicted)
		wr_count(&queue->counters.dropped, 1);
	return evicted;
}

enum wr_pushed wr_queue_push_evicting(struct wr_queue *queue, struct wr_slot filled)
{
	struct weir_message *evicted = push_evicting(queue, filled);

	if (evicted)
		weir_message_unref(evicted);
	return WR_PUSHED;
}

enum wr_pushed wr_queue_push_out(struct wr_queue *queue, struct weir_message *message,
				 struct weir_message **left)
{
	*left = NULL;
	if (wr_queue_evicts(queue)) {
		*left = push_evicting(queue, (struct wr_slot){.message = message});
		return WR_PUSHED;
	}
	if (queue->policy == WEIR_REJECT && !wr_queue_newest_room(queue, wr_read(&queue->tail))) {
		count_dropped(queue);
		*left = message;
		return WR_PUSH_DROPPED;
	}
	return wr_queue_push(queue, message);
}

void wr_queue_close(struct wr_queue *queue)
{
	wr_store_release(&queue->closed, true);
}

size_t wr_queue_take_back(struct wr_queue *queue)
{
	size_t n = discard(queue);

	wr_count(&queue->counters.taken_back, n);
	return n;
}

struct weir_message *wr_queue_take_one_back(struct wr_queue *queue)
{
	struct weir_message *message = take_oldest(queue);

	wr_count(&queue->counters.taken_back, message != NULL);
	return message;
}

/* --- receiver --- */

size_t wr_queue_inbox(struct wr_queue *queue)
{
	uint64_t tail, look;

	wr_queue_lock(queue);
	tail = wr_queue_newest_tail(queue);
	look = wr_load_relaxed(&queue->look);
	wr_queue_unlock(queue);
	return (size_t)(tail - look);
}

size_t wr_queue_front(struct wr_queue *queue)
{
	uint64_t head, look;

	wr_queue_lock(queue);
	head = wr_load_relaxed(&queue->head);
	look = wr_load_relaxed(&queue->look);
	wr_queue_unlock(queue);
	return (size_t)(look - head);
}

struct wr_slot wr_queue_at(struct wr_queue *queue, size_t i)
{
	struct wr_slot found;

	wr_queue_lock(queue);
	found = *wr_queue_slot(queue, wr_read(&queue->head) + i);
	wr_queue_unlock(queue);
	return found;
}

/* The seeded bug: what compute receives is not what the conditions saw, but the newest of the inbox. */
void wr_queue_swap_with_newest(struct wr_queue *queue)
{
	uint64_t head = wr_read(&queue->head), look = wr_read(&queue->look);
	uint64_t newest = wr_queue_newest_tail(queue);

	for (uint64_t i = look; i != head && newest != look; i--) {
		struct wr_slot older = *wr_queue_slot(queue, i - 1);

		newest--;
		*wr_queue_slot(queue, i - 1) = *wr_queue_slot(queue, newest);
		*wr_queue_slot(queue, newest) = older;
	}
}

/* No more than it saw at first: the sender may still be pushing, and takes the rest back. */
size_t wr_queue_drop(struct wr_queue *queue)
{
	size_t seen = wr_queue_count(queue), n = 0;
	struct weir_message *message;

	while (n < seen && (message = take_oldest(queue))) {
		weir_message_unref(message);
		n++;
	}
	wr_count(&queue->counters.closed, n);
	return n;
}

size_t wr_queue_abandon(struct wr_queue *queue)
{
	size_t n = discard(queue);

	wr_count(&queue->counters.abandoned, n);
	return n;
}

struct weir_message *wr_queue_abandon_one(struct wr_queue *queue)
{
	struct weir_message *message = take_oldest(queue);

	wr_count(&queue->counters.abandoned, message != NULL);
	return message;
}

/*
 * The queue of one connection (C4). Its only sender fills the inbox; its only receiver moves messages from
 * the inbox to the front and, at its tick, takes the front. Room = capacity - inbox - front: the take frees
 * it, closing the front does not. `block`, `reject` and `fault` need no lock, since the sender only adds.
 * `pop` evicts under the queue's lock, and closing its front takes that lock, too. Each side is one thread
 * at a time: the owner of the sender (or the holder of the inlet's lock), the owner of the receiver (or the
 * holder of the outlet's lock).
 */
#ifndef WR_SCHEDULER_QUEUE_H
#define WR_SCHEDULER_QUEUE_H

#include "base/thread.h"
#include "scheduler/message.h"
#include "trace/trace.h"

#define WR_CAPACITY_MAX 65536u

struct weir_message;

/*
 * The sender's fields and the receiver's are on different cache lines, provided that the queue is aligned to
 * 64. The boundary runs through the counters: the first three are the sender's, the others the receiver's.
 */
struct wr_queue {
	uint32_t id, capacity, mask;
	weir_policy policy;
	struct weir_message **slots; /* mask + 1 of them: at least capacity, `pop`: capacity + 1 */
	struct wr_trace *trace;      /* of a `pop` queue: is told of its fronts; NULL: there is none */
	char apart[32];

	_Atomic uint64_t tail; /* sender: end of the pushed messages */
	uint64_t head_seen;    /* sender: head is at least this */
	_Atomic bool closed;   /* sender: no push will follow; stored after the last push */
	char apart_too[16];
	struct wr_queue_counters counters;
	_Atomic uint64_t head;      /* receiver (pop: the holder of the lock): end of the taken ones */
	_Atomic uint64_t front_end; /* receiver (pop: likewise): the front is [head, front_end) */
	uint64_t tail_seen;         /* receiver: tail is at least this */

	/* pop only: guards head, front_end, tail, the slots between them, and what follows */
	struct wr_mutex lock;
	uint64_t moved;       /* by so much the inbox lies before the numbers of its messages */
	uint64_t front_first; /* the number of the first message of the front */
	uint64_t evicted;     /* sender: that of the last message that a push removed */
};

weir_status wr_queue_init(struct wr_queue *queue, uint32_t id, uint32_t capacity, weir_policy policy);
void wr_queue_finish(struct wr_queue *queue);           /* unrefs what is left; takes a zeroed one */
size_t wr_queue_snapshot(const struct wr_queue *queue); /* approximate message count. Thread: any */
/*
 * Before a run, when no other thread uses the queue: unrefs leftovers, clears counters and `closed`. Returns
 * the number of leftovers.
 */
size_t wr_queue_reset(struct wr_queue *queue);

/* --- sender --- */
enum wr_pushed { WR_PUSHED, WR_PUSH_EVICTED, WR_PUSH_DROPPED, WR_PUSH_FULL, WR_PUSH_FAULT };

/*
 * Takes the message, unless it returns FULL (a `block` queue without room) or FAULT. DROPPED: the `reject`
 * queue is full; the message was unref'd and counted as pushed and dropped. EVICTED: it was pushed, and a
 * full `pop` queue removed the oldest message of the inbox, which is unref'd after the critical section; if
 * the inbox is empty, it admits one more.
 */
static inline enum wr_pushed wr_queue_push(struct wr_queue *queue, struct weir_message *message);
/*
 * The same for a sender that holds a lock: the dropped or evicted message is stored in *left (NULL: none);
 * the caller unrefs it after releasing its lock (S11).
 */
enum wr_pushed wr_queue_push_out(struct wr_queue *queue, struct weir_message *message,
				 struct weir_message **left);
/* `block`: room that stays until the next push; other policies: SIZE_MAX. */
static inline size_t wr_queue_room(struct wr_queue *queue);
/* Returns true if the room is at least `needed`. A head that was read earlier may suffice: it only grows. */
static inline bool wr_queue_has_room(struct wr_queue *queue, size_t needed);
void wr_queue_close(struct wr_queue *queue);
/*
 * After the receiver became DONE and dropped the messages that it saw: unrefs and counts the rest. From then
 * on only the sender touches the queue.
 */
size_t wr_queue_take_back(struct wr_queue *queue);
/* The same for one message: returns the oldest, not unref'd; NULL: empty. */
struct weir_message *wr_queue_take_one_back(struct wr_queue *queue);

/* --- receiver --- */
static inline bool wr_queue_closed(struct wr_queue *queue);  /* call it before wr_queue_count (S5) */
static inline size_t wr_queue_count(struct wr_queue *queue); /* inbox + front */
/*
 * Not for `pop`: returns true if the count is at least `needed`. A tail that was read earlier may suffice: it
 * only grows.
 */
static inline bool wr_queue_holds(struct wr_queue *queue, size_t needed);
size_t wr_queue_inbox(struct wr_queue *queue);
size_t wr_queue_front(struct wr_queue *queue);
/* Moves up to n from the inbox to the front. */
static inline void wr_queue_close_front(struct wr_queue *queue, size_t n);
struct weir_message *wr_queue_at(struct wr_queue *queue, size_t i); /* i-th message of the front */
/* Moves the front to out[0..front), counts it as delivered and frees its room. Returns the number. */
static inline size_t wr_queue_take(struct wr_queue *queue, struct weir_message **out);
/* When the receiver becomes DONE: unrefs inbox and front and counts them as `closed`. */
size_t wr_queue_drop(struct wr_queue *queue);
/* After the run, when no other thread uses the queue: unrefs the rest and counts it as abandoned. */
size_t wr_queue_abandon(struct wr_queue *queue);
/* The same for one message: returns the oldest, not unref'd; NULL: empty. */
struct weir_message *wr_queue_abandon_one(struct wr_queue *queue);

/*
 * --- for observers ---
 *
 * A message has a number, its place in the queue: the position of its push, which in a `pop` queue stays when
 * the message moves. A queue that observers do not know, a finisher's, has no id.
 */

/* Call right before a push of any kind, so that the event comes before that of the take. Thread: sender. */
void wr_queue_tell_push(struct wr_queue *queue, struct wr_trace *trace, unsigned lane);
/* After a push that returned EVICTED or DROPPED. Thread: sender. */
void wr_queue_tell_drop(struct wr_queue *queue, struct wr_trace *trace, unsigned lane, enum wr_pushed pushed);
/* Right before the front is taken. Thread: receiver. */
void wr_queue_tell_take(struct wr_queue *queue, struct wr_trace *trace, unsigned lane);

/* --- inline, since every review and tick calls it; queue.c explains the memory orders --- */

void wr_queue_close_front_evicting(struct wr_queue *queue, size_t n);

enum wr_pushed wr_queue_push_evicting(struct wr_queue *queue, struct weir_message *message);
enum wr_pushed wr_queue_push_full(struct wr_queue *queue, struct weir_message *message);

static inline bool wr_queue_evicts(const struct wr_queue *queue)
{
	return queue->policy == WEIR_POLICY_POP;
}

static inline void wr_queue_lock(struct wr_queue *queue)
{
	if (wr_queue_evicts(queue))
		wr_mutex_lock(&queue->lock);
}

static inline void wr_queue_unlock(struct wr_queue *queue)
{
	if (wr_queue_evicts(queue))
		wr_mutex_unlock(&queue->lock);
}

static inline struct weir_message **wr_queue_slot(const struct wr_queue *queue, uint64_t position)
{
	return &queue->slots[position & queue->mask];
}

/* Acquire: the slots before head may be filled again. */
static inline size_t wr_queue_newest_room(struct wr_queue *queue, uint64_t tail)
{
	uint64_t filled;

	queue->head_seen = wr_load_acquire(&queue->head);
	filled = tail - queue->head_seen;
	return filled < queue->capacity ? (size_t)(queue->capacity - filled) : 0;
}

static inline enum wr_pushed wr_queue_push(struct wr_queue *queue, struct weir_message *message)
{
	uint64_t tail = wr_read(&queue->tail);

	if (wr_queue_evicts(queue))
		return wr_queue_push_evicting(queue, message);
	if (tail - queue->head_seen >= queue->capacity && wr_queue_newest_room(queue, tail) == 0)
		return wr_queue_push_full(queue, message);
	*wr_queue_slot(queue, tail) = message;
	wr_store_release(&queue->tail, tail + 1);
	wr_count(&queue->counters.pushed, 1);
	return WR_PUSHED;
}

static inline size_t wr_queue_room(struct wr_queue *queue)
{
	return queue->policy == WEIR_POLICY_BLOCK ? wr_queue_newest_room(queue, wr_read(&queue->tail))
						  : SIZE_MAX;
}

static inline bool wr_queue_has_room(struct wr_queue *queue, size_t needed)
{
	uint64_t tail = wr_read(&queue->tail);

	return queue->policy != WEIR_POLICY_BLOCK || tail - queue->head_seen + needed <= queue->capacity ||
	       wr_queue_newest_room(queue, tail) >= needed;
}

static inline bool wr_queue_closed(struct wr_queue *queue)
{
	/* Acquire: the count that follows sees the last push. */
	return wr_load_acquire(&queue->closed);
}

static inline uint64_t wr_queue_newest_tail(struct wr_queue *queue)
{
	return queue->tail_seen = wr_load_acquire(&queue->tail);
}

/* Two loads: in a `pop` queue only the lock makes them consistent. */
static inline size_t wr_queue_count(struct wr_queue *queue)
{
	uint64_t tail, head;

	wr_queue_lock(queue);
	tail = wr_queue_newest_tail(queue);
	head = wr_load_relaxed(&queue->head);
	wr_queue_unlock(queue);
	return (size_t)(tail - head);
}

static inline bool wr_queue_holds(struct wr_queue *queue, size_t needed)
{
	uint64_t head = wr_read(&queue->head);

	return queue->tail_seen - head >= needed || wr_queue_newest_tail(queue) - head >= needed;
}

static inline void wr_queue_close_front(struct wr_queue *queue, size_t n)
{
	uint64_t front_end = wr_read(&queue->front_end), tail = queue->tail_seen;

	if (wr_queue_evicts(queue)) {
		wr_queue_close_front_evicting(queue, n);
		return;
	}
	if (tail - front_end < n)
		tail = wr_queue_newest_tail(queue);
	/* Relaxed: only the receiver uses it; entity->state hands it to the next owner. */
	wr_store_relaxed(&queue->front_end, tail - front_end < n ? tail : front_end + n);
}

static inline size_t wr_queue_take(struct wr_queue *queue, struct weir_message **out)
{
	uint64_t head, front_end;
	size_t n;

	wr_queue_lock(queue);
	head = wr_read(&queue->head);
	front_end = wr_read(&queue->front_end);
	n = (size_t)(front_end - head);
	for (size_t i = 0; i < n; i++)
		out[i] = *wr_queue_slot(queue, head + i);
	/* Release: the slots are read before the sender may fill them again. */
	wr_store_release(&queue->head, front_end);
	wr_queue_unlock(queue);
	wr_count(&queue->counters.delivered, n);
	return n;
}

/*
 * === connections ===
 *
 * A queue from an entity or an inlet to an entity or an outlet. One end belongs to the sender's
 * owner, the other to the receiver's; the fields of each are marked above.
 */

struct wr_fan_in;

struct wr_connection {
	struct wr_queue queue;
	weir_entity *sender, *receiver; /* NULL: that end is an inlet or an outlet */
	weir_inlet *inlet;
	weir_outlet *outlet;
	uint32_t output, input, initial_messages;
	char *from, *to;                 /* "blur.out", "write.in"; "inlet", "outlet" */
	bool flagged;                    /* the receiver waits for its messages by completion flag */
	_Atomic bool receiver_done;      /* the receiver is DONE; stored after its state, before the poke */
	bool sender_owns;                /* sender: has seen receiver_done and taken back the rest */
	struct wr_fan_in *set;           /* of the receiving port; NULL: it has few connections (fan_in.h) */
	uint32_t index;                  /* among the connections of that port */
	_Atomic bool marked;             /* in the set; the thread that marks it inserts it */
	struct wr_connection *next_news; /* written by the inserting thread, then by the owner */
};

/*
 * Empties the queue and queues the initial messages. Adds the number of leftovers to *discarded. Thread: the
 * one that starts a run.
 */
weir_status wr_connection_reset(struct wr_connection *connection, struct wr_pool *pool, size_t *discarded);
void wr_connection_destroy(struct wr_connection *connection);
/*
 * Call before a message with fences is pushed: from then on the receiver asks its gates (C8). Thread: the
 * sender's.
 */
void wr_connection_announce_fences(struct wr_connection *connection);

#endif

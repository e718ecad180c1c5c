/*
 * The queue of one connection (C4). Its only sender fills the inbox; its only receiver moves messages from
 * the inbox to the front and, at its tick, takes the front. Room = capacity - inbox - front: the take frees
 * it, closing the front does not. `block`, `reject` and `fault` need no lock, since the sender only adds.
 * `pop` evicts under the queue's lock, and closing its front takes that lock, too. Each side is one thread
 * at a time: the owner of the sender (or the holder of the inlet's lock), the owner of the receiver (or the
 * holder of the outlet's lock).
 *
 * A `latest` queue has the same places and the same lock, and gives its message again and again. The inbox
 * holds two at the most: the oldest one, which nothing replaces, and the newest one, which each push does.
 * The owner moves the oldest one to the front when it is finished. A take leaves the message as `shown`,
 * outside of the queue, and gives a reference; it does so again until the front holds a newer one.
 *
 * Any other queue whose input is `reused` (C12) leaves what was taken last as `shown`, too, and gives it
 * again to a tick whose set says so.
 */
#ifndef WR_SCHEDULER_QUEUE_H
#define WR_SCHEDULER_QUEUE_H

#include "base/thread.h"
#include "graphs/plan.h"
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
	bool locked;                 /* each access takes the lock: `pop`, `latest`, or it keeps times */
	char apart[31];

	_Atomic uint64_t tail; /* sender: end of the pushed messages */
	uint64_t head_seen;    /* sender: head is at least this */
	_Atomic bool closed;   /* sender: no push will follow; stored after the last push */
	char apart_too[16];
	struct wr_queue_counters counters;
	_Atomic uint64_t head;      /* receiver (pop: the holder of the lock): end of the taken ones */
	_Atomic uint64_t front_end; /* receiver (pop: likewise): the front is [head, front_end) */
	uint64_t tail_seen;         /* receiver: tail is at least this */

	/* if it is locked: guards head, front_end, tail, the slots between them, and what follows */
	struct wr_mutex lock;
	int64_t *pushed_at;   /* per slot; NULL: it keeps no times */
	uint64_t moved;       /* pop: by so much the inbox lies before the numbers of its messages */
	uint64_t front_first; /* pop: the number of the first message of the front */
	uint64_t evicted;     /* pop, sender: that of the last message that a push removed */

	/* latest only */
	struct wr_trace *told; /* sender: is told of the next push */
	unsigned told_lane;    /* sender */
	bool held;             /* receiver: a take gives nothing */

	/* latest, reused; receiver */
	bool shows;                 /* a take leaves what it gives as `shown`; keeps times. Constant */
	bool again;                 /* and a take of an empty front gives that again */
	struct weir_message *shown; /* what the last tick received, unless the front has one */
	int64_t shown_since;        /* when that was pushed */
};

weir_status wr_queue_init(struct wr_queue *queue, uint32_t id, uint32_t capacity, weir_policy policy);
/* From now on it keeps when each message was pushed. Before the first run. */
weir_status wr_queue_keep_times(struct wr_queue *queue);
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
/* The receiver is DONE: counts the message as pushed and taken back, and unrefs it. */
void wr_queue_push_to_done(struct wr_queue *queue, struct weir_message *message);
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
static inline size_t wr_queue_front(struct wr_queue *queue);
/* Moves up to n from the inbox to the front. */
static inline void wr_queue_close_front(struct wr_queue *queue, size_t n);
/*
 * Not `latest`: the front is inbox again. The messages of a `pop` queue that were in it get numbers anew: if
 * others were evicted meanwhile, observers take them for these.
 */
void wr_queue_reopen_front(struct wr_queue *queue);
/* The i-th message of the front. */
static inline struct weir_message *wr_queue_at(struct wr_queue *queue, size_t i);
/*
 * Moves the front to out[0..front), counts it as delivered and frees its room. Returns the number. `shows`:
 * gives a reference to what is shown, and counts it as delivered the first time only.
 */
static inline size_t wr_queue_take(struct wr_queue *queue, struct weir_message **out);
/*
 * Neither `pop` nor `latest`, and with an empty front: drops the n oldest messages, counts them as unmatched
 * and frees their room. The caller pokes the sender. `trace`: NULL: none.
 */
void wr_queue_drop_unmatched(struct wr_queue *queue, size_t n, struct wr_trace *trace, unsigned lane);
/* When the oldest message of a queue that keeps times was pushed; INT64_MAX: there is none. */
int64_t wr_queue_oldest_at(struct wr_queue *queue);
/* `latest`: the oldest message of the inbox; NULL: it is empty. It stays there until the next call: */
struct weir_message *wr_queue_oldest(struct wr_queue *queue);
/* `latest`: moves it to the front; what was there, or was shown, is unref'd. */
void wr_queue_show(struct wr_queue *queue, struct wr_trace *trace, unsigned lane);
/* Unrefs what is shown, which was delivered: it is no part of any count. */
void wr_queue_forget_shown(struct wr_queue *queue);
/* `shows`: what a tick would receive now, and when that was pushed (may be NULL); NULL: nothing. */
struct weir_message *wr_queue_shown(struct wr_queue *queue, int64_t *since);
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

void wr_queue_close_front_locked(struct wr_queue *queue, size_t n);
size_t wr_queue_take_locked(struct wr_queue *queue, struct weir_message **out);

enum wr_pushed wr_queue_push_locked(struct wr_queue *queue, struct weir_message *message);
enum wr_pushed wr_queue_push_full(struct wr_queue *queue, struct weir_message *message);

/* A push may remove a message. */
static inline bool wr_queue_evicts(const struct wr_queue *queue)
{
	return queue->policy == WEIR_POLICY_POP || queue->policy == WEIR_POLICY_LATEST;
}

static inline void wr_queue_lock(struct wr_queue *queue)
{
	if (queue->locked)
		wr_mutex_lock(&queue->lock);
}

static inline void wr_queue_unlock(struct wr_queue *queue)
{
	if (queue->locked)
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

	if (queue->locked)
		return wr_queue_push_locked(queue, message);
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

static inline size_t wr_queue_front(struct wr_queue *queue)
{
	uint64_t head, front_end;

	wr_queue_lock(queue);
	head = wr_load_relaxed(&queue->head);
	front_end = wr_load_relaxed(&queue->front_end);
	wr_queue_unlock(queue);
	return (size_t)(front_end - head);
}

static inline struct weir_message *wr_queue_at(struct wr_queue *queue, size_t i)
{
	struct weir_message *found;

	wr_queue_lock(queue);
	found = *wr_queue_slot(queue, wr_read(&queue->head) + i);
	wr_queue_unlock(queue);
	return found;
}

static inline bool wr_queue_holds(struct wr_queue *queue, size_t needed)
{
	uint64_t head = wr_read(&queue->head);

	return queue->tail_seen - head >= needed || wr_queue_newest_tail(queue) - head >= needed;
}

static inline void wr_queue_close_front(struct wr_queue *queue, size_t n)
{
	uint64_t front_end = wr_read(&queue->front_end), tail = queue->tail_seen;

	if (queue->locked) {
		wr_queue_close_front_locked(queue, n);
		return;
	}
	if (tail - front_end < n)
		tail = wr_queue_newest_tail(queue);
	/* Relaxed: only the receiver uses it; entity->state hands it to the next owner. */
	wr_store_relaxed(&queue->front_end, tail - front_end < n ? tail : front_end + n);
}

/* Under the lock, if there is one. */
static inline size_t wr_queue_take_front(struct wr_queue *queue, struct weir_message **out)
{
	uint64_t head = wr_read(&queue->head), front_end = wr_read(&queue->front_end);
	size_t n;

	n = (size_t)(front_end - head);
	for (size_t i = 0; i < n; i++)
		out[i] = *wr_queue_slot(queue, head + i);
	/* Release: the slots are read before the sender may fill them again. */
	wr_store_release(&queue->head, front_end);
	return n;
}

static inline size_t wr_queue_take(struct wr_queue *queue, struct weir_message **out)
{
	size_t n;

	if (queue->locked)
		return wr_queue_take_locked(queue, out);
	n = wr_queue_take_front(queue, out);
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
	enum wr_flagging flagged;        /* how the receiver waits for its messages by completion flag */
	bool reviewed;                   /* constant in a run: its sender may review the receiver (S2) */
	_Atomic bool receiver_done;      /* the receiver is DONE; stored after its state, before the poke */
	bool sender_owns;                /* sender: has seen receiver_done and taken back the rest */
	struct wr_fan_in *set;           /* of the receiving port; NULL: it has few connections */
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

/*
 * === the fan-in set ===
 *
 * The fan-in set of an input port with many connections (C4, S5): it finds the queues with news without a
 * walk over all of them. News is a new message, or that the sender has closed.
 *
 * Sender, in this order: store the tail (or `closed`); exchange `marked`; if it was unset, insert the
 * connection into a stack; poke. Owner of the receiver, in this order: take the whole stack; exchange each
 * `marked`; read `closed`; read the tail. A store before an exchange that found the mark set is thus visible
 * to the exchange that resets it. A sender that closes decrements `open` after its insert, so if the owner
 * reads `open` as 0 and then takes the stack, it has all news (S5).
 *
 * The owner keeps its own counts of the messages that it saw, so each message costs two steps, one when it is
 * new and one when it is received, at any number of connections. Queues with messages are in a ring buffer in
 * the order in which they became non-empty and are served in turn, so none starves. Ports with few
 * connections have no set, since their walk is cheaper.
 */

/* A port of up to this many connections has no set. */
#define WR_FAN_IN_FEW ((size_t)8)

/* What the owner knows of one queue. */
struct wr_known {
	uint32_t inbox, front; /* messages seen */
	uint32_t taken;        /* by the last tick */
	bool closed;           /* read before `inbox` was last read */
};

struct wr_fan_in {
	_Alignas(64) struct wr_connection *_Atomic news; /* senders push, the owner takes all */
	_Alignas(64) _Atomic size_t open_senders;        /* senders that have not closed */

	/* owner */
	_Alignas(64) struct wr_connection **connections; /* of the port */
	struct wr_known *known;                          /* one per connection */
	size_t count;
	size_t messages; /* messages seen, in inboxes and fronts */
	uint32_t *ring;  /* ring buffer: queues with messages in the inbox, each once */
	size_t ring_first, ring_count;
	uint32_t *fronts; /* queues with a non-empty front, in connection order */
	size_t front_count, front_messages;
	size_t taken_count;          /* queues in `fronts` that the last tick took */
	size_t at_front, at_message; /* position of the last wr_fan_in_at; the next is often after it */
	bool any_size;               /* any-size port: maintains the fields below */
	size_t least, least_count;   /* messages in the emptiest queue; number of such, 0: unknown */
	size_t ended;                /* messages in the emptiest queue that its sender has closed */
};

/* Returns NULL without memory. Destroy takes NULL. */
struct wr_fan_in *wr_fan_in_make(size_t connections);
void wr_fan_in_destroy(struct wr_fan_in *set);
/* Before a run, when no other thread uses the set: resets it to what the queues hold. */
void wr_fan_in_reset(struct wr_fan_in *set, struct wr_connection **connections, bool each);

/* --- senders --- */

/* wr_queue_push, then wr_connection_arrived. The caller pokes the receiver afterwards. */
static inline enum wr_pushed wr_connection_push(struct wr_connection *connection,
						struct weir_message *message);
/* For a push by another function: call it after that push, before the poke. */
static inline void wr_connection_arrived(struct wr_connection *connection);
/* Closes the queue: no push will follow. */
void wr_connection_close(struct wr_connection *connection);
void wr_fan_in_insert(struct wr_connection *connection);

/* --- owner --- */

/* Returns true if all senders have closed. Call it before wr_fan_in_messages (S5). */
static inline bool wr_fan_in_closed(struct wr_fan_in *set)
{
	return !wr_load_acquire(&set->open_senders);
}

size_t wr_fan_in_messages(struct wr_fan_in *set);
size_t wr_fan_in_least(struct wr_fan_in *set); /* walks all queues, except on any-size ports */
/* Any-size ports only: returns true if a sender has closed and its queue holds fewer than `needed`. */
bool wr_fan_in_ended(struct wr_fan_in *set, size_t needed);
/* Moves up to n messages from inboxes to fronts, one per queue in turn; any-size port: up to n per queue. */
void wr_fan_in_close_fronts(struct wr_fan_in *set, size_t n);
/* Returns the i-th message of the fronts, in connection order, or NULL. */
struct weir_message *wr_fan_in_at(struct wr_fan_in *set, size_t i);
/* Call after the tick has taken all fronts. */
void wr_fan_in_taken(struct wr_fan_in *set);
/* Call after the queues were emptied by other means: resets all message counts. No worker runs. */
void wr_fan_in_forget(struct wr_fan_in *set);

static inline void wr_connection_arrived(struct wr_connection *connection)
{
	if (connection->set && !wr_exchange(&connection->marked, true))
		wr_fan_in_insert(connection);
}

static inline enum wr_pushed wr_connection_push(struct wr_connection *connection,
						struct weir_message *message)
{
	enum wr_pushed pushed = wr_queue_push(&connection->queue, message);

	if (pushed <= WR_PUSH_EVICTED)
		wr_connection_arrived(connection);
	return pushed;
}

#endif

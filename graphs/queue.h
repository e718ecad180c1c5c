/*
 * A queue of one connection (DESIGN C4): its only sender fills the inbox, its only receiver moves messages
 * from the inbox to the front and, at its tick, takes the front. Room = capacity - inbox - front: freed by
 * the take, not by looking. `block`, `reject` and `fault` need no lock: there the sender only adds. `pop`
 * evicts, under the queue's lock, as does closing its front. Sender side: one thread at a time (the
 * sender's owner, or the holder of the inlet's lock). Receiver side: likewise.
 */
#ifndef WR_GRAPHS_QUEUE_H
#define WR_GRAPHS_QUEUE_H

#include "base/thread.h"
#include "trace/trace.h"

#define WR_CAPACITY_MAX 65536u

struct weir_message;
struct wr_slot {
	struct weir_message *message;
	bool signalled;			/* an inline signal for it was enqueued for this receiver (G2) */
};

/*
 * What the sender writes and what the receiver writes lie on different lines (if the queue lies on one:
 * allocate it aligned to 64); the boundary goes through the counters, between the sender's three and the
 * receiver's.
 */
struct wr_queue {
	uint32_t id, capacity, mask;
	weir_policy policy;
	struct wr_slot *slots;		/* mask + 1 >= capacity of them; `pop`: capacity + 1 */
	char apart[40];

	_Atomic uint64_t tail;		/* sender: pushed up to here */
	uint64_t head_seen;		/* sender: head is at least this */
	_Atomic bool closed;		/* sender: no push will follow; stored after the last push */
	char apart_too[16];
	struct wr_queue_counters counters;
	_Atomic uint64_t head;		/* receiver (pop: whoever has the lock): taken up to here */
	_Atomic uint64_t look;		/* receiver: the front is [head, look) */
	uint64_t tail_seen;		/* receiver: tail is at least this */

	struct wr_mutex lock;		/* pop alone: guards head, look, tail and the slots between them */
};

weir_status wr_queue_init(struct wr_queue *queue, uint32_t id, uint32_t capacity, weir_policy policy);
void wr_queue_finish(struct wr_queue *queue);			/* unrefs what is left; a zeroed one is fine */
/*
 * Before a run, alone: discards leftovers (unref) and clears counters and `closed`. Returns how many were
 * discarded.
 */
size_t wr_queue_reset(struct wr_queue *queue);

/* --- sender --- */
enum wr_pushed { WR_PUSHED, WR_PUSH_DROPPED, WR_PUSH_FULL, WR_PUSH_FAULT };

/*
 * Takes the message unless FULL (a `block` queue without room) or FAULT. DROPPED: `reject` dropped this one
 * (unref'd, counted pushed and dropped); `pop` evicts the oldest of the inbox (unref'd after the critical
 * section) and answers PUSHED. With a full front `pop` admits one more.
 */
enum wr_pushed wr_queue_push(struct wr_queue *queue, struct weir_message *message, bool signalled);
size_t wr_queue_room(struct wr_queue *queue);			/* `block`: least sure room; other policies SIZE_MAX */
void wr_queue_close(struct wr_queue *queue);
/*
 * The receiver is DONE and has dropped what it saw: takes back all that is left, counted. From then on the
 * sender alone touches the queue.
 */
size_t wr_queue_take_back(struct wr_queue *queue);

/* --- receiver --- */
bool wr_queue_closed(struct wr_queue *queue);			/* read it before the count (S5) */
size_t wr_queue_count(struct wr_queue *queue);			/* inbox + front */
size_t wr_queue_inbox(struct wr_queue *queue);
size_t wr_queue_front(struct wr_queue *queue);
void wr_queue_close_front(struct wr_queue *queue, size_t n);	/* moves up to n from the inbox to the front */
struct wr_slot wr_queue_at(struct wr_queue *queue, size_t i);	/* i-th of the front */
/* The tick takes the front: moves it to out[0..front), counts delivered, frees the room. Returns how many. */
size_t wr_queue_take(struct wr_queue *queue, struct wr_slot *out);
size_t wr_queue_drop(struct wr_queue *queue);			/* became DONE: unrefs inbox and front, counted `closed` */
/* After the run, alone: what is left is counted abandoned and unref'd. */
size_t wr_queue_abandon(struct wr_queue *queue);

#endif

/*
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
#ifndef WR_SCHEDULER_FAN_IN_H
#define WR_SCHEDULER_FAN_IN_H

#include "base/atomic.h"
#include "scheduler/queue.h"

/* A port of up to this many connections has no set. */
#define WR_FAN_IN_FEW ((size_t)8)

struct wr_input;

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

/*
 * An input port with many connections (C4, S5): what there is to look at, without a walk over all of them.
 *
 * A *set* of the queues that have something new: a message, or that their sender has closed. The sender stores the
 * tail (or `closed`), THEN exchanges the queue's mark; who finds it unset inserts the connection into a stack; then
 * the poke. The receiver's owner takes the whole stack, exchanges each mark, THEN looks at `closed` and THEN at the
 * tail: what is stored before an exchange that found the mark set is seen by the exchange that resets it. A closed
 * sender is counted down only after it was inserted, so `open` at 0, read before the set is taken, says that
 * everything is in what is taken (S5).
 *
 * What the owner has seen he keeps as numbers of his own: each message is looked at once, when it is new, and once when
 * it is received, however many connections there are. Queues with messages stand in a ring in the order in which they
 * got some, and are served in turn: none starves. Ports with few connections have no set: their walk is cheaper.
 */
#ifndef WR_GRAPHS_FAN_IN_H
#define WR_GRAPHS_FAN_IN_H

#include "base/atomic.h"
#include "base/bug.h"
#include "graphs/connection.h"

/* Up to so many connections a port is walked over. */
#ifdef WR_SEAM
extern size_t wr_fan_in_few;	/* drawn, so that small worlds have sets, too */
#define WR_FAN_IN_FEW wr_fan_in_few
#else
#define WR_FAN_IN_FEW ((size_t)8)
#endif

struct wr_input;

/* What its owner knows of one queue. */
struct wr_known {
	uint32_t inbox, front;		/* messages seen */
	uint32_t taken;			/* by the tick */
	bool closed;			/* seen, before `inbox` was last looked at */
};

struct wr_fan_in {
	_Alignas(64) struct wr_connection *_Atomic news;	/* senders push, the owner takes all */
	_Alignas(64) _Atomic size_t open;	/* connections whose sender has not closed */

	/* owner */
	_Alignas(64) struct wr_connection **connections;	/* the port's */
	struct wr_known *known;		/* of each */
	size_t count;
	size_t held;			/* messages seen: inboxes and fronts */
	uint32_t *ring;			/* queues with messages in the inbox, each once */
	size_t ring_first, ring_count;
	uint32_t *fronts;		/* queues whose front is closed, in connection order */
	size_t front_count, front_held;
	size_t taken_count;		/* of the queues in `fronts`, which the last tick took */
	size_t at_front, at_message;	/* where the last look into the fronts was: the next is often behind it */
	bool each;			/* any-size: keeps what follows */
	size_t least, least_of;		/* of the least filled queue, and how many queues are; 0: not known */
	size_t ended;			/* of the least filled one whose sender has closed */
};

/* For as many connections; NULL: no memory. Destroy: NULL is fine. */
struct wr_fan_in *wr_fan_in_make(size_t connections);
void wr_fan_in_destroy(struct wr_fan_in *set);
/* Before a run, alone: sets all of it anew, with what the queues hold. */
void wr_fan_in_reset(struct wr_fan_in *set, struct wr_connection **connections, bool each);

/* --- senders --- */

/* wr_queue_push; the poke comes after it. */
static inline enum wr_pushed wr_connection_push(struct wr_connection *connection,
						struct weir_message *message);
/* After a push by other means, before the poke. */
static inline void wr_connection_arrived(struct wr_connection *connection);
/* No push will follow: closes the queue, and counts down. */
void wr_connection_close(struct wr_connection *connection);
void wr_fan_in_insert(struct wr_connection *connection);

/* --- owner --- */

/* All senders are closed; read it before what is held (S5). */
static inline bool wr_fan_in_closed(struct wr_fan_in *set)
{
	return !wr_load_acquire(&set->open);
}

size_t wr_fan_in_held(struct wr_fan_in *set);
size_t wr_fan_in_least(struct wr_fan_in *set);	/* a walk, but for any-size ports */
/* Any-size ports alone: one sender has closed, and its queue has fewer. */
bool wr_fan_in_ended(struct wr_fan_in *set, size_t needed);
/* Moves up to n from inboxes to fronts, in turn; `each` port: up to n of each. */
void wr_fan_in_close_fronts(struct wr_fan_in *set, size_t n);
/* The i-th message of the fronts, in connection order; NULL: not so many. */
struct weir_message *wr_fan_in_at(struct wr_fan_in *set, size_t i);
/* The tick has taken all fronts. */
void wr_fan_in_taken(struct wr_fan_in *set);
/* Others have emptied the queues: nothing is known of any message. Nobody works. */
void wr_fan_in_forget(struct wr_fan_in *set);

static inline void wr_connection_arrived(struct wr_connection *connection)
{
	if (connection->set && !wr_exchange(&connection->marked, true))
		wr_fan_in_insert(connection);
}

static inline enum wr_pushed wr_connection_push(struct wr_connection *connection,
						struct weir_message *message)
{
	enum wr_pushed pushed;

	if (WR_BUG(MARKED_BEFORE_PUSH))
		wr_connection_arrived(connection);
	pushed = wr_queue_push(&connection->queue, message);
	if (pushed == WR_PUSHED && !WR_BUG(MARKED_BEFORE_PUSH))
		wr_connection_arrived(connection);
	return pushed;
}

#endif

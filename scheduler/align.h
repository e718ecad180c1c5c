/*
 * Sets of messages that belong together (C12): which message of each aligned port a tick receives, and which
 * can have no partner any more. Messages are compared by their keys, times or tags, alone.
 */
#ifndef WR_SCHEDULER_ALIGN_H
#define WR_SCHEDULER_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graphs/plan.h"

typedef uint64_t wr_align_key_fn(const void *queue, size_t i);

struct wr_align_rules {
	uint64_t within; /* a partner's key is that far from the latest front's at the most */
	bool nearest;    /* waits for proof that no nearer message will come */
	bool empty;      /* a set may lack ports, but not all; else it has all of them */
	bool reuse;      /* empty: a port that a set lacks gives its last message again... */
	uint64_t oldest; /* ...if its key is so far before that of the set at the most */
};

/* One port: what is queued, whose keys do not descend; then what was chosen. */
struct wr_align_port {
	const void *queue; /* of `key` */
	wr_align_key_fn *key;
	size_t count;
	uint64_t last; /* no key that comes later is less; 0: nothing is known */
	bool closed;   /* nothing more will come; read before the count */
	bool full;     /* nothing more comes before one of these is taken or dropped */
	bool out;      /* takes no part: it is not connected, or held */
	bool has_kept; /* its last message is there */
	uint64_t kept; /* then: that one's key */

	size_t drop; /* so many from the head on are unmatched */
	bool in;     /* the one after them belongs to the set */
	bool again;  /* reuse: the set lacks the port, which gives its last message */
};

static inline bool wr_align_has_head(const struct wr_align_port *port)
{
	return !port->out && port->drop < port->count;
}

enum wr_align_says { WR_ALIGN_SET, WR_ALIGN_WAIT, WR_ALIGN_NEVER };

struct wr_align_choice {
	enum wr_align_says says;
	size_t lacks;  /* WAIT, NEVER: the port that must have */
	size_t needed; /* so many messages */
};

/*
 * Fills in the results of all ports. The key of a set is that of its earliest new message. What it drops is
 * right whatever comes later, also with WAIT. `late`: the set has waited for long enough (`empty` alone).
 * Thread: any.
 */
struct wr_align_choice wr_align_choose(const struct wr_align_rules *rules, struct wr_align_port *ports,
				       size_t count, bool late);

/* --- of a condition `aligned` --- */

/* What is known of a port between two reviews. */
struct wr_align_known {
	unsigned input;
	uint64_t checked; /* messages before this position were looked at */
	uint64_t last;    /* key of the last of them */
	bool left_out;    /* of the chosen set */
	/* with a timeout: when the message of this position, modulo `room`, was seen first */
	int64_t *seen;
	size_t room;
};

struct wr_align {
	struct wr_align_rules rules;
	bool by_tag;
	int64_t timeout; /* 0: none */
	size_t count;    /* of the ports */
	struct wr_align_known *known;
	struct wr_align_port *ports; /* while it chooses */
	bool chosen;                 /* the heads are a set, for the next tick */
};

struct weir_entity;

/* Fails: WEIR_E_NOMEM. */
weir_status wr_align_create(struct wr_align **out, struct weir_entity *entity,
			    const struct wr_plan_condition *plan);
void wr_align_destroy(struct wr_align *align); /* takes NULL */
/* Before a run. Fails: WEIR_E_INVALID: a port has more than one connection, by inlets of the program. */
weir_status wr_align_reset(struct wr_align *align, struct weir_entity *entity);

#endif

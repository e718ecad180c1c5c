/*
 * Connections: a queue from an entity or an inlet to an entity or an outlet. One end belongs to the sender's
 * owner, the other to the receiver's (scheduler/queue.h marks the fields of each).
 */
#ifndef WR_SCHEDULER_CONNECTION_H
#define WR_SCHEDULER_CONNECTION_H

#include "base/thread.h"
#include "scheduler/message.h"
#include "scheduler/queue.h"

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

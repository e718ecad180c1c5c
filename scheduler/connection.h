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

struct weir_inlet {
	struct weir_inlet *next;
	weir_graph *graph;
	struct wr_connection *connection;
	struct wr_mutex lock; /* makes all pushing threads one sender; guards what follows */
	struct wr_cond changed;
	bool open;                /* holds a live reference */
	_Atomic unsigned waiting; /* threads that wait for room or will; written under the lock */
};

struct weir_outlet {
	struct weir_outlet *next;
	weir_graph *graph;
	struct wr_connection *connection;
	struct wr_mutex lock; /* guards the queue: a worker sends, any threads receive */
	struct wr_cond changed;
	struct wr_finisher *finisher; /* NULL: unfinished messages may be taken; owned by the graph */
	size_t unfinished;            /* number of newest messages that the finisher still waits for */
	bool holding;                 /* holds messages, hence a live reference */
	bool ended;                   /* no run is active, or the sender is DONE */
	bool begun;                   /* a run has begun; before that no end is reported */
	bool shown;                   /* a take would not block; fd and fn have reported this */
	int fd;                       /* eventfd: readable while `shown`; -1: not requested yet */
	void (*fn)(void *arg);        /* called when `shown` begins, without the lock; NULL: none */
	void *arg;
};

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
	uint32_t place;                  /* index in that port */
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
void wr_connection_announce(struct wr_connection *connection);

#endif

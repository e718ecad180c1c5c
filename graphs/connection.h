/*
 * Connections: a queue from one entity to another, or from an inlet, or to an outlet. The two ends belong
 * to the sender's and the receiver's owner (graphs/queue.h says which word is whose).
 */
#ifndef WR_GRAPHS_CONNECTION_H
#define WR_GRAPHS_CONNECTION_H

#include "base/thread.h"
#include "graphs/message.h"
#include "graphs/queue.h"

struct wr_fan_in;

struct weir_inlet {
	struct weir_inlet *next;
	weir_graph *graph;
	struct wr_connection *connection;
	struct wr_mutex lock;		/* makes all pushing threads one sender; guards what follows */
	struct wr_cond changed;
	bool open;			/* holds a live reference */
	_Atomic unsigned waiting;	/* threads that wait for room, or are about to; changed under the lock */
};

struct weir_outlet {
	struct weir_outlet *next;
	weir_graph *graph;
	struct wr_connection *connection;
	struct wr_mutex lock;		/* guards the queue: a worker sends, any threads receive */
	struct wr_cond changed;
	struct wr_finisher *finisher;	/* NULL: it gives messages early. Fixed; the graph's */
	size_t unfinished;		/* the youngest so many are not finished; the finisher has them, too */
	bool holding;			/* holds messages, and so a live reference */
	bool ended;			/* no run is on, or the sender is done */
	bool begun;			/* a run has begun: before that, the end is none to tell of */
	bool shown;			/* a take would answer at once; so it was told */
	int fd;				/* eventfd: readable while `shown`; -1: nobody has asked for it */
	void (*fn)(void *arg);		/* called when `shown` begins, without the lock; NULL: none */
	void *arg;
};

struct wr_connection {
	struct wr_queue queue;
	weir_entity *sender, *receiver;	/* NULL: an inlet, an outlet */
	weir_inlet *inlet;
	weir_outlet *outlet;
	uint32_t output, input, initial;
	char *from, *to;		/* "blur.out", "write.in"; "inlet", "outlet" */
	bool flagged;			/* the receiver is gated on it by flag */
	_Atomic bool gone;		/* the receiver is DONE; stored after its state, before the poke */
	bool taken_over;		/* sender: knows that, and has taken back what was left */
	struct wr_fan_in *set;		/* the receiving port's; NULL: it has few connections (fan_in.h) */
	uint32_t place;			/* in that port */
	_Atomic bool marked;		/* in the set; who marks it inserts it */
	struct wr_connection *next_news;	/* of the set: by who inserts, then by who took it */
};

/*
 * Empties it and puts the initial messages in. Adds to `discarded` what was left. Thread: who starts a run.
 */
weir_status wr_connection_reset(struct wr_connection *connection, struct wr_pool *pool, size_t *discarded);
void wr_connection_destroy(struct wr_connection *connection);
/*
 * A message with fences is about to be pushed: from now on the receiver asks its gates (C8). Thread: the
 * sender's, before the push.
 */
void wr_connection_announce(struct wr_connection *connection);

#endif

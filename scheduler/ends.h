/* Inlets and outlets (B2): ends.c has the design note. */
#ifndef WR_SCHEDULER_ENDS_H
#define WR_SCHEDULER_ENDS_H

#include "graphs/type.h"
#include "scheduler/entity.h"
#include "scheduler/queue.h"

struct wr_worker;

struct weir_inlet {
	struct weir_inlet *next;
	weir_graph *graph;
	struct wr_connection *connection;
	struct wr_mutex lock; /* makes all pushing threads one sender; guards what follows */
	struct wr_cond changed;
	struct wr_passed passed;
	bool open;                /* holds a live reference */
	bool armed;               /* counts in `waiting` for fd, which was cleared by a refused push */
	int fd;                   /* eventfd, readable unless `armed`; -1: not requested yet */
	_Atomic unsigned waiting; /* threads that wait for room or will; written under the lock */
};

size_t wr_inlets_count(const weir_graph *graph); /* start takes one live reference for each */
/* Call after the live counter is open: a push into an open inlet must find a run. */
void wr_inlets_open(weir_graph *graph);
bool wr_inlet_is_open(weir_inlet *inlet);
void wr_inlet_wake_waiting(weir_inlet *inlet); /* call after its receiver freed room */

/* === outlets === */

/*
 * The finisher of an outlet: a hidden entity with one input and no output. It receives the messages that
 * the outlet got while the device was still working on them, in the same order. Its only condition is a
 * cuda_stream, so it uses the gates, tokens, failures and explanations of any entity. Its tick tells the
 * outlet that the oldest of these messages is finished.
 *
 * Its id is larger than those of the plan's entities. It cannot be found by name and is in no list of
 * counters; nor is its connection, which has no sender, since room and closing belong to the outlet.
 */

struct wr_finisher {
	weir_entity entity; /* must be first: compute casts its entity to the finisher */
	weir_outlet *outlet;
	struct wr_connection *connection;
	struct wr_plan_entity plan;
	struct wr_plan_input input;
	struct wr_plan_condition condition;
};

void wr_finisher_destroy(struct wr_finisher *finisher); /* takes NULL */

struct weir_outlet {
	struct weir_outlet *next;
	weir_graph *graph;
	struct wr_connection *connection;
	struct wr_mutex lock; /* guards the queue: a worker sends, any threads receive */
	struct wr_cond changed;
	struct wr_finisher *finisher;  /* NULL: unfinished messages may be taken; owned by the graph */
	size_t unfinished;             /* number of newest messages that the finisher still waits for */
	struct wr_latencies latencies; /* of the messages taken */
	bool holding;                  /* holds messages, hence a live reference */
	bool ended;                    /* no run is active, or the sender is DONE */
	bool closed;                   /* the program takes no more: what comes is dropped */
	bool readable;                 /* a take would not block; fd has reported this */
	int fd;                        /* eventfd, readable while `readable` is true; -1: not requested yet */
};

void wr_outlets_open(weir_graph *graph);
void wr_outlet_push(struct wr_worker *worker, weir_outlet *outlet, weir_message *message);
void wr_outlet_end(weir_outlet *outlet, bool abandon); /* no more messages will come */
/* The sender is DONE: ends the outlet, but its finisher still completes the messages that it has. */
void wr_outlet_done(struct wr_worker *worker, weir_outlet *outlet);

#endif

/* Inlets (B2): inlet.c has the design note. */
#ifndef WR_SCHEDULER_INLET_H
#define WR_SCHEDULER_INLET_H

#include "graphs/type.h"
#include "scheduler/connection.h"

struct weir_inlet {
	struct weir_inlet *next;
	weir_graph *graph;
	struct wr_connection *connection;
	struct wr_mutex lock; /* makes all pushing threads one sender; guards what follows */
	struct wr_cond changed;
	struct wr_passed passed;
	bool open;                /* holds a live reference */
	_Atomic unsigned waiting; /* threads that wait for room or will; written under the lock */
};

size_t wr_inlets_count(const weir_graph *graph); /* start takes one live reference for each */
/* Call after the live counter is open: a push into an open inlet must find a run. */
void wr_inlets_open(weir_graph *graph);
bool wr_inlet_is_open(weir_inlet *inlet);
void wr_inlet_wake_waiting(weir_inlet *inlet); /* call after its receiver freed room */

#endif

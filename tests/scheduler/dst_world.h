/* What a world of the simulation is made of: its runs, and the threads that meddle with them. */
#ifndef TESTS_SCHEDULER_DST_WORLD_H
#define TESTS_SCHEDULER_DST_WORLD_H

#include "base/thread.h"
#include "dst.h"
#include "scheduler/scheduler.h"
#include "streams/host/sim.h"
#include "streams/signal.h"
#include "streams/system.h"

#define US 1000
#define MS 1000000

enum { DST_POKERS = 4, DST_OUTSIDERS = 10 };
enum dst_stop { DST_STOP_NONE, DST_STOP_DRAIN, DST_STOP_AT_ONCE };

struct dst_run {
	struct dst dst;
	struct dst_world *world;
	weir_graph *graph;
	weir_scheduler *scheduler;
	weir_inlet *inlet;
	weir_outlet *outlet;
	weir_scheduler_options options;
	struct wr_sim_knobs knobs;
	uint64_t seed;
	unsigned runs, pokers, pushes;
	enum dst_stop stop;
	int64_t stop_after;
	bool explains;
	bool early;                /* the outlet gives messages that are not complete */
	_Atomic bool opened, over; /* the current run */
};

struct dst_world {
	struct dst_run runs[DST_GRAPHS];
	unsigned graphs;
	weir_registry *registry;
	bool spins;
};

struct dst_outsider {
	struct dst_run *run;
	unsigned number;
	struct wr_thread thread;
};

/* dst_outsiders.c: starts them; returns how many, each to be joined. */
unsigned dst_send_outsiders(struct dst_outsider *outsiders, struct dst_run *run);

#endif

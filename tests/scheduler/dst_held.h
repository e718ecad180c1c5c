/* What a world of dst_held.c is made of. */
#ifndef TESTS_SCHEDULER_DST_HELD_H
#define TESTS_SCHEDULER_DST_HELD_H

#include "dst_command.h"

/* See dst_held.c. */
enum dst_held_shape { DST_HELD_FLOWING, DST_HELD_STUCK, DST_HELD_TIGHT };
enum { CHAINS = 3, POOLS = 2, BLOCKS = 3, PLACES = 3, SHELF = 4, TAKERS = 3 };

/*
 * A head that claims memory, perhaps a passer behind it, at its end an outlet, a receiver in the graph, or
 * both. An inlet may feed the head.
 */
struct dst_chain {
	/* drawn */
	unsigned pool, units, blocks; /* a tick claims `units`, and emits `blocks` of them */
	unsigned messages;            /* in which it emits them: 1, a pack of parts; or one each */
	unsigned count;               /* ticks of the head in a run, or messages that the inlet gets */
	unsigned room;                /* capacity of its queues */
	unsigned places, takers;      /* of the outlet; 0: there is none */
	unsigned pushers;             /* of the inlet; 0: there is none */
	bool passes, receives, device, early;
	const char *told; /* a condition of the head that the program sets, or NULL */

	/* during a run */
	weir_inlet *inlet;
	weir_outlet *outlet;
	_Atomic unsigned taken, pushed;
};

struct dst_held_world {
	struct wr_random shape;
	uint64_t seed;
	unsigned chains, pokers, workers, blocks[POOLS];
	int64_t grace, patience; /* the program keeps messages about as long as `patience` */
	int64_t stop_after;      /* 0: the run is not stopped */
	bool carries;            /* what it holds at the end of a run it drops in the next one */
	bool brisk;              /* the program drops what it takes within a few accesses, and never sleeps */
	struct dst_chain chain[CHAINS];

	weir_graph *graph;
	weir_scheduler *scheduler;
	_Atomic bool opened, over;
	/* What the program holds for a while; a thread that wants its place drops what lies there. */
	weir_message *_Atomic shelf[SHELF];
};

extern struct dst_held_world held;
extern unsigned held_shape; /* enum dst_held_shape */

/* dst_held_draw.c: the world of a seed. */
void dst_held_draw(uint64_t seed);

/* dst_held_program.c: the program's threads of a run. */
enum { DST_HELD_THREADS = CHAINS * (2 * TAKERS + 1) + 8 };
unsigned dst_held_send(struct wr_thread *threads);
void dst_held_clear_shelf(void);

#endif

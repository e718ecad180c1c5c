/* What the simulation of claims sees of the library. */
#ifndef TESTS_SCHEDULER_DST_CLAIMS_H
#define TESTS_SCHEDULER_DST_CLAIMS_H

#include "dst_command.h"

/* What the worlds of dst_claims.c differ in; see there. */
enum dst_claims_shape { ANY, DRAINED, WIDE, KEEPING };
enum { ENTITIES = 6, POOLS = 2 };

struct dst_claims_world {
	struct wr_random shape;
	uint64_t seed, refusals; /* when the last tick began */
	unsigned entities, blocks[POOLS];
	bool greedy;             /* the first entity claims whole pools, the others one block each */
	unsigned uses[ENTITIES]; /* bit p: pool p */
	bool keeps[ENTITIES];    /* makes messages ahead */
	bool source[ENTITIES], device[ENTITIES];
	uint32_t fails_at[ENTITIES]; /* tick that fails, from 1; 0: none */
	bool told[ENTITIES];         /* an outsider disables and enables it */
	bool outlet, failed;
	int64_t stop_after; /* 0: not stopped */
	bool drain;
	weir_outlet *taken_from;
	weir_graph *graph;
	weir_scheduler *scheduler;
	_Atomic bool opened, over;
};

enum { AHEAD = 2 }; /* messages that one makes ahead */

extern struct dst_claims_world world;
extern unsigned shape; /* enum dst_claims_shape */

/* dst_claims_draw.c: the world of a seed. */
void dst_claims_draw(uint64_t seed);
uint64_t dst_claims_random(uint64_t n); /* of the world's shape; less than n */

#endif

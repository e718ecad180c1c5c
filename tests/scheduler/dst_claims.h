/* What the simulation of claims sees of the library. */
#ifndef TESTS_SCHEDULER_DST_CLAIMS_H
#define TESTS_SCHEDULER_DST_CLAIMS_H

#include "dst_command.h"

/* What the worlds of dst_claims.c differ in; see there. */
enum dst_claims_shape { ANY, DRAINED, WIDE };
enum { ENTITIES = 6, POOLS = 2 };

struct dst_claims_world {
	struct wr_random shape;
	uint64_t seed, refusals; /* when the last tick began */
	unsigned entities, blocks[POOLS];
	bool greedy; /* the first entity claims whole pools, the others one block each */
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

extern struct dst_claims_world world;
extern unsigned shape; /* enum dst_claims_shape */

/* dst_claims_draw.c: the world of a seed. */
void dst_claims_draw(uint64_t seed);
uint64_t dst_claims_random(uint64_t n); /* of the world's shape; less than n */

/* The seeded bugs of claims: X(name, bug). */
#define DST_CLAIM_BUGS(X)                                                                                    \
	X("claim_refused_outside", CLAIM_REFUSED_OUTSIDE)                                                    \
	X("claim_not_passed_on", CLAIM_NOT_PASSED_ON)                                                        \
	X("claim_entry_kept", CLAIM_ENTRY_KEPT)                                                              \
	X("claim_given_back_silent", CLAIM_GIVEN_BACK_SILENT)                                                \
	X("claim_unused_silent", CLAIM_UNUSED_SILENT)                                                        \
	X("claim_unused_kept", CLAIM_UNUSED_KEPT)                                                            \
	X("claim_descending", CLAIM_DESCENDING)                                                              \
	X("claim_oldest_only", CLAIM_OLDEST_ONLY)                                                            \
	X("claim_offers_nothing", CLAIM_OFFERS_NOTHING)                                                      \
	X("claim_as_written", CLAIM_AS_WRITTEN)                                                              \
	X("claim_done_keeps_entry", CLAIM_DONE_KEEPS_ENTRY)                                                  \
	X("claim_done_keeps_new_offer", CLAIM_DONE_KEEPS_NEW_OFFER)                                          \
	X("claim_done_in_two_sections", CLAIM_DONE_IN_TWO_SECTIONS)                                          \
	X("claim_done_silent", CLAIM_DONE_SILENT)                                                            \
	X("stuck_uncounted", STUCK_UNCOUNTED)

#endif

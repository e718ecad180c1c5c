/*
 * Who holds the memory of the pools (S4): queues of the graph, the program, operators. Whether a run may end,
 * what its verdict says and what an explanation says come from here.
 */
#ifndef WR_SCHEDULER_HOLDERS_H
#define WR_SCHEDULER_HOLDERS_H

#include "base/text.h"
#include "scheduler/scheduler.h"

struct wr_memory_pool;

/*
 * Returns true if an entity was refused memory of a pool, or is owed some, and the program may hold memory of
 * that pool: the run waits for something outside. When the program lets go of some, the loop is kicked. Also
 * true if something moves: then it is kicked as well. Else *word is the live word with which the run may be
 * closed. *word: the live word, at a count of 0. Thread: loop, in an open run.
 */
bool wr_holders_program_may_go_on(weir_scheduler *scheduler, uint64_t *word);

/* Returns true if the run stays open for that reason alone, as the last look found. Thread: loop. */
bool wr_holders_hold_open(weir_scheduler *scheduler);
void wr_holders_reset(weir_scheduler *scheduler); /* before a run */

/*
 * Adds where the pool's memory is (": 2 in a.out -> b.in, 1 held by the program"). Returns the receiver whose
 * queues hold the most, or NULL, also if the program may let go of some. at_end: nothing moves, so every
 * message is counted once. Else `owned` is the entity that the caller owns; queues of entities that run are
 * left out.
 */
weir_entity *wr_holders_describe(struct wr_memory_pool *pool, const weir_entity *owned, bool at_end,
				 struct wr_text *text);

#endif

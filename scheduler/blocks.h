/*
 * The free blocks of a memory pool, and which of them is taken. As many blocks take turns as are needed at
 * once, and of these the one that became free first is taken first: so in a steady pipeline the blocks of
 * several pools go in step with each other, and replay meets few pairs of addresses, all of them early. The
 * others rest. One of them is taken if no block that takes turns is free; and if for a while less than half
 * of the blocks that take turns were in use at once, only so many go on, since a stall may have needed many.
 */
#ifndef WR_SCHEDULER_BLOCKS_H
#define WR_SCHEDULER_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>

#include "weir.h"

struct wr_blocks {
	void **resting, **ring; /* each has room for all; the ring: free ones that take turns, oldest first */
	size_t count, resting_count, first, ring_count;
	size_t turns;       /* how many are to take turns */
	size_t takes, most; /* of this while: blocks taken; most in use at once */
};

/* A whole while, in blocks taken. */
enum { WR_BLOCKS_WHILE = 256 };

weir_status wr_blocks_init(struct wr_blocks *blocks, size_t count); /* WEIR_E_NOMEM; then finish it, too */
void wr_blocks_finish(struct wr_blocks *blocks);
/* All are free and rest: those of a region, `stride` bytes apart, or those listed if it is NULL. */
void wr_blocks_fill(struct wr_blocks *blocks, void *region, size_t stride, void *const *listed);
void wr_blocks_rest(struct wr_blocks *blocks); /* those that are free; before a run */
size_t wr_blocks_free(const struct wr_blocks *blocks);
/* Returns true if one that takes turns is free; else the next one taken has rested. */
static inline bool wr_blocks_have_turn(const struct wr_blocks *blocks)
{
	return blocks->ring_count > 0;
}
void *wr_blocks_take(struct wr_blocks *blocks); /* one is free */
void wr_blocks_give_back(struct wr_blocks *blocks, void *block);

#endif

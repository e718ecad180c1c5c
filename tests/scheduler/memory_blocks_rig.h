/* Blocks of a pool's memory, by number. */
#ifndef TESTS_SCHEDULER_BLOCKS_RIG_H
#define TESTS_SCHEDULER_BLOCKS_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "scheduler/memory.h"
#include "sim/random.h"

enum { COUNT = 32, BYTES = 16 };

static char memory[COUNT * BYTES];

static inline struct wr_blocks filled(size_t count)
{
	struct wr_blocks blocks;

	assert_int_equal(wr_blocks_init(&blocks, count), WEIR_OK);
	wr_blocks_fill(&blocks, memory, BYTES, NULL);
	assert_int_equal(wr_blocks_free(&blocks), count);
	return blocks;
}

static inline int taken(struct wr_blocks *blocks)
{
	return (int)(((char *)wr_blocks_take(blocks) - memory) / BYTES);
}

static inline void give_back(struct wr_blocks *blocks, int number)
{
	wr_blocks_give_back(blocks, memory + number * BYTES);
}

#endif

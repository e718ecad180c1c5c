#include "scheduler/blocks.h"

#include "base/memory.h"

weir_status wr_blocks_init(struct wr_blocks *blocks, size_t count)
{
	*blocks = (struct wr_blocks){.count = count};
	blocks->resting = wr_alloc(2 * count, sizeof *blocks->resting);
	if (!blocks->resting)
		return WEIR_E_NOMEM;
	blocks->ring = blocks->resting + count;
	return WEIR_OK;
}

void wr_blocks_finish(struct wr_blocks *blocks)
{
	wr_free(blocks->resting);
}

/* The first one is taken first. */
void wr_blocks_fill(struct wr_blocks *blocks, void *region, size_t stride, void *const *listed)
{
	size_t count = blocks->count;

	for (size_t i = 0; i < count; i++)
		blocks->resting[count - 1 - i] = region ? (char *)region + i * stride : listed[i];
	blocks->resting_count = count;
	blocks->first = blocks->ring_count = blocks->turns = blocks->takes = blocks->most = 0;
}

size_t wr_blocks_free(const struct wr_blocks *blocks)
{
	return blocks->resting_count + blocks->ring_count;
}

static size_t in_turns(const struct wr_blocks *blocks)
{
	return blocks->count - blocks->resting_count;
}

static size_t in_use(const struct wr_blocks *blocks)
{
	return blocks->count - wr_blocks_free(blocks);
}

static void *ring_pop(struct wr_blocks *blocks)
{
	void *block = blocks->ring[blocks->first];

	blocks->first = (blocks->first + 1) % blocks->count;
	blocks->ring_count--;
	return block;
}

void wr_blocks_rest(struct wr_blocks *blocks)
{
	while (blocks->ring_count)
		blocks->resting[blocks->resting_count++] = ring_pop(blocks);
	blocks->turns = in_turns(blocks);
	blocks->takes = blocks->most = 0;
}

static void *take_one(struct wr_blocks *blocks)
{
	void *block;

	if (blocks->ring_count)
		return ring_pop(blocks);
	block = blocks->resting[--blocks->resting_count];
	blocks->turns = in_turns(blocks);
	return block;
}

void *wr_blocks_take(struct wr_blocks *blocks)
{
	void *block = take_one(blocks);

	if (in_use(blocks) > blocks->most)
		blocks->most = in_use(blocks);
	if (++blocks->takes >= WR_BLOCKS_WHILE) {
		if (2 * blocks->most < in_turns(blocks))
			blocks->turns = blocks->most;
		blocks->takes = 0;
		blocks->most = in_use(blocks);
	}
	return block;
}

void wr_blocks_give_back(struct wr_blocks *blocks, void *block)
{
	if (in_turns(blocks) > blocks->turns)
		blocks->resting[blocks->resting_count++] = block;
	else
		blocks->ring[(blocks->first + blocks->ring_count++) % blocks->count] = block;
}

#include "scheduler/scratch.h"

#include "base/memory.h"
#include "base/status.h"
#include "scheduler/graph.h"

enum { ALIGNMENT = 256, LEAST = 16384 };

struct wr_scratch_block {
	struct wr_deferred_free entry; /* the first member: release gets the entry */
	struct wr_scratch_block *next; /* in `own` */
	struct wr_system *system;
	weir_fence fence; /* after its last use; the entry's only one */
	void *data;
	size_t bytes;
	int device;
};

/* --- blocks --- */

static void block_release(struct wr_deferred_free *entry)
{
	struct wr_scratch_block *block = (struct wr_scratch_block *)entry;

	wr_system_free(block->system, block->device, block->data, block->bytes);
	wr_free(block);
}

static weir_status block_make(weir_stream *stream, struct wr_system *system, size_t bytes,
			      struct wr_scratch_block **out)
{
	struct wr_scratch_block *block = wr_alloc(1, sizeof *block);
	weir_status status = block ? WEIR_OK : WEIR_E_NOMEM;

	if (!status) {
		block->system = system;
		block->device = weir_stream_device(stream);
		block->bytes = bytes;
		status = wr_system_alloc(system, block->device, bytes, &block->data);
	}
	if (status)
		wr_free(block);
	else
		*out = block;
	return status;
}

/* NULL is allowed. */
static void block_free_after(struct wr_scratch_block *block, weir_fence fence)
{
	if (!block)
		return;
	block->fence = fence;
	block->entry = (struct wr_deferred_free){
		.fences = &block->fence, .count = fence.value != 0, .release = block_release};
	if (wr_defer_free(block->system, &block->entry))
		block_release(&block->entry);
}

static void blocks_free_after(struct wr_scratch *scratch, weir_fence fence)
{
	while (scratch->own) {
		struct wr_scratch_block *block = scratch->own;

		scratch->own = block->next;
		block_free_after(block, fence);
	}
}

/* --- a stack --- */

static size_t height_of(const struct wr_scratch *scratch)
{
	return scratch->stack ? scratch->stack->bytes : 0;
}

static void *stack_take(struct wr_scratch *scratch, size_t bytes)
{
	void *data = (char *)scratch->stack->data + scratch->used;

	scratch->used += bytes;
	scratch->asked += bytes;
	return data;
}

/*
 * Replaces the stack, which nothing of this tick is in, by a higher one. Work of earlier ticks may still use
 * the outgrown one. Without memory for it there is no second try, so that not every tick asks the device.
 */
static bool stack_grow(weir_entity *entity, struct wr_entity_stream *item, size_t height)
{
	struct wr_scratch *scratch = &item->scratch;
	struct wr_scratch_block *outgrown = scratch->stack;

	if (height == scratch->refused)
		return false;
	if (block_make(item->stream, entity->graph->system, height, &scratch->stack)) {
		scratch->refused = height;
		return false;
	}
	block_free_after(outgrown, item->last);
	return true;
}

/* By a quarter at least, so that slowly growing requests rarely move the stack. */
static size_t next_height(const struct wr_scratch *scratch, size_t bytes)
{
	size_t height = height_of(scratch), grown = height + height / 4 / ALIGNMENT * ALIGNMENT;

	if (bytes <= height)
		return height;
	grown = grown > LEAST ? grown : LEAST;
	return bytes > grown ? bytes : grown;
}

static weir_status take_own_block(weir_entity *entity, struct wr_entity_stream *item, size_t bytes,
				  void **out)
{
	struct wr_scratch *scratch = &item->scratch;
	struct wr_scratch_block *block;
	weir_status status = block_make(item->stream, entity->graph->system, bytes, &block);

	if (status == WEIR_E_NOMEM)
		return wr_fail_in(WEIR_E_NOMEM, entity->plan->name,
				  "device %d has no %zu bytes of scratch memory: %s",
				  weir_stream_device(item->stream), bytes, weir_last_error());
	if (status)
		return status;
	block->next = scratch->own;
	scratch->own = block;
	scratch->asked += bytes;
	*out = block->data;
	return WEIR_OK;
}

/* Out of line: once the stack is large enough a request is an addition. */
__attribute__((noinline)) static weir_status take_more(weir_entity *entity, struct wr_entity_stream *item,
						       size_t bytes, void **out)
{
	struct wr_scratch *scratch = &item->scratch;
	size_t height = next_height(scratch, bytes > scratch->wanted ? bytes : scratch->wanted);
	bool grown = !scratch->asked && !entity->streams.scratch_fixed && stack_grow(entity, item, height);

	if (!grown && !bytes) { /* there may be no stack at all */
		*out = NULL;
		return WEIR_OK;
	}
	if (grown || bytes <= height_of(scratch) - scratch->used) {
		*out = stack_take(scratch, bytes);
		return WEIR_OK;
	}
	if (!entity->streams.scratch_fixed)
		return take_own_block(entity, item, bytes, out);
	height = next_height(scratch, scratch->asked + bytes);
	scratch->wanted = height > scratch->wanted ? height : scratch->wanted;
	return wr_fail_in(
		WEIR_E_BUSY, entity->plan->name,
		"%zu bytes of scratch memory do not fit into the stack, which grows in the next tick", bytes);
}

weir_status wr_scratch_take(weir_entity *entity, size_t index, size_t bytes, void **out)
{
	struct wr_entity_stream *item = &entity->streams.items[index];
	struct wr_scratch *scratch = &item->scratch;
	size_t height = height_of(scratch);
	weir_status status = WEIR_OK;

	if (bytes > SIZE_MAX / 2)
		return wr_fail_in(WEIR_E_NOMEM, entity->plan->name,
				  "no device has %zu bytes of scratch memory", bytes);
	if (!scratch->asked && scratch->lent)
		status = wr_scratch_begin_tick(entity, index);
	if (status)
		return status;
	bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	entity->streams.scratch_used = true;
	if (bytes > height - scratch->used || (!scratch->asked && scratch->wanted > height))
		return take_more(entity, item, bytes, out);
	*out = stack_take(scratch, bytes);
	return WEIR_OK;
}

weir_status wr_scratch_begin_tick(weir_entity *entity, size_t index)
{
	struct wr_entity_stream *items = entity->streams.items;
	weir_status status = WEIR_OK;

	if (!items[index].scratch.lent)
		return WEIR_OK;
	for (size_t i = 0; !status && i < entity->streams.count; i++)
		if (i != index && items[i].last.value)
			status = weir_stream_wait(items[index].stream, items[i].last);
	items[index].scratch.lent = status != WEIR_OK;
	return status;
}

/* --- for captures --- */

struct wr_scratch_place wr_scratch_place(const weir_entity *entity, size_t index)
{
	const struct wr_scratch *scratch = &entity->streams.items[index].scratch;

	return (struct wr_scratch_place){scratch->stack ? scratch->stack->data : NULL, height_of(scratch),
					 scratch->used, scratch->asked};
}

void wr_scratch_return_to(weir_entity *entity, size_t index, struct wr_scratch_place place)
{
	struct wr_scratch *scratch = &entity->streams.items[index].scratch;

	scratch->used = place.used;
	scratch->asked = place.asked;
}

void wr_scratch_fix(weir_entity *entity, bool fixed)
{
	entity->streams.scratch_fixed = fixed;
}

/* --- the end of a tick --- */

void wr_scratch_end_tick(weir_entity *entity)
{
	uint64_t asked = 0, waits = entity->replays ? UINT64_MAX : 0; /* what is replayed may order any two */

	for (size_t i = 0; i < entity->streams.count; i++)
		waits |= wr_stream_take_waits(entity->streams.items[i].stream);
	for (size_t i = 0; i < entity->streams.count; i++) {
		const struct wr_entity_stream *item = &entity->streams.items[i];
		struct wr_scratch *scratch = &entity->streams.items[i].scratch;
		if (scratch->asked > height_of(scratch))
			scratch->wanted = next_height(scratch, scratch->asked);
		/* Without a fence (its record failed) the blocks stay until the stream is closed. */
		if (!wr_stream_dirty(item->stream))
			blocks_free_after(scratch, item->last);
		scratch->lent |= scratch->asked && waits & wr_stream_wait_bit(item->stream);
		asked += scratch->asked;
		scratch->used = scratch->asked = 0;
	}
	entity->streams.scratch_used = false;
	if (asked > wr_read(&entity->counters.most_scratch))
		wr_store_relaxed(&entity->counters.most_scratch, asked);
}

void wr_scratch_free(struct wr_entity_stream *item)
{
	weir_fence last = {weir_stream_id(item->stream), wr_stream_submitted(item->stream)};
	struct wr_scratch *scratch = &item->scratch;

	if (scratch->stack) {
		scratch->stack->next = scratch->own;
		scratch->own = scratch->stack;
	}
	if (!wr_stream_dirty(item->stream))
		blocks_free_after(scratch, last);
	while (scratch->own) { /* work without a fence may use it: its memory stays with the arena */
		struct wr_scratch_block *block = scratch->own;

		scratch->own = block->next;
		wr_free(block);
	}
	*scratch = (struct wr_scratch){0};
}

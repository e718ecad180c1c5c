#include "scheduler/tags.h"

#include <string.h>

#include "base/memory.h"
#include "scheduler/queue.h"

weir_status wr_queue_add_tags(struct wr_queue *queue, size_t origins)
{
	size_t words = 1 + origins, rows = 2 * ((size_t)queue->mask + 1) + 1;
	struct wr_tags *tags = wr_alloc(1, sizeof *tags + rows * words * sizeof *tags->rows);

	if (!tags)
		return WEIR_E_NOMEM;
	tags->mask = queue->mask;
	tags->words = (uint32_t)words;
	tags->evicted = WR_NOT_PUSHED;
	wr_queue_remove_tags(queue);
	queue->tags = tags;
	return WEIR_OK;
}

void wr_queue_remove_tags(struct wr_queue *queue)
{
	wr_free(queue->tags);
	queue->tags = NULL;
}

static void tag_copy(struct wr_tags *tags, uint64_t *to, const uint64_t *from)
{
	memcpy(to, from, tags->words * sizeof *to);
}

void wr_tags_move(struct wr_tags *tags, uint64_t to, uint64_t from)
{
	tag_copy(tags, wr_tag_at(tags, to), wr_tag_at(tags, from));
}

void wr_tags_put_next(struct wr_tags *tags, uint64_t position)
{
	tag_copy(tags, wr_tag_at(tags, position), wr_tags_origins(tags) - 1);
}

/* `pop` puts the tag under its lock. Without room the slot at the tail is the receiver's. */
uint64_t wr_tags_push(struct wr_queue *queue)
{
	struct wr_tags *tags = queue->tags;
	uint64_t tail = wr_read(&queue->tail), sequence = tags->pushes++;

	wr_tags_origins(tags)[-1] = sequence;
	tags->evicted = WR_NOT_PUSHED;
	if (!wr_queue_evicts(queue) && wr_queue_newest_room(queue, tail))
		wr_tags_put_next(tags, tail);
	return sequence;
}

size_t wr_tags_take(struct wr_queue *queue)
{
	struct wr_tags *tags = queue->tags;
	uint64_t head, front_end;

	wr_queue_lock(queue);
	head = wr_read(&queue->head);
	front_end = wr_load_relaxed(&queue->front_end);
	for (uint64_t i = head; i != front_end; i++)
		tag_copy(tags, (uint64_t *)wr_tag_taken(tags, (size_t)(i - head)), wr_tag_at(tags, i));
	wr_queue_unlock(queue);
	return (size_t)(front_end - head);
}

void wr_tags_reset(struct wr_tags *tags)
{
	tags->pushes = 0;
	tags->evicted = WR_NOT_PUSHED;
	memset(wr_tags_origins(tags), 0, (tags->words - 1) * sizeof *tags->rows);
}

/* --- events --- */

void wr_tags_trace_deliver(struct wr_queue *queue, struct wr_trace *trace, unsigned lane)
{
	if (queue->tags)
		wr_trace_deliver(trace, lane, queue->id, wr_tags_push(queue));
}

void wr_tags_trace_pushed(struct wr_queue *queue, struct wr_trace *trace, unsigned lane, bool dropped)
{
	const struct wr_tags *tags = queue->tags;

	if (!tags)
		return;
	if (dropped)
		wr_trace_drop(trace, lane, queue->id, tags->pushes - 1);
	else if (tags->evicted != WR_NOT_PUSHED)
		wr_trace_drop(trace, lane, queue->id, tags->evicted);
}

size_t wr_tags_trace_take(struct wr_queue *queue, struct wr_trace *trace, unsigned lane)
{
	size_t front = queue->tags ? wr_tags_take(queue) : 0;

	for (size_t i = 0; i < front; i++)
		wr_trace_take(trace, lane, queue->id, *wr_tag_taken(queue->tags, i));
	return front;
}

#include "trace/statistics_queues.h"

/* --- what there is; a run --- */

static struct wr_queue_statistics *queue_of(struct wr_statistics *statistics, uint32_t queue)
{
	return queue < statistics->queue_count ? &statistics->queues[queue] : NULL;
}

void wr_statistics_on_queue(void *self, uint32_t queue, uint32_t sender, uint32_t receiver, const char *from,
			    const char *to, uint32_t capacity)
{
	struct wr_statistics *statistics = self;
	struct wr_queue_statistics *made = queue_of(statistics, queue);

	(void)from, (void)to;
	if (!made)
		return;
	wr_paths_on_queue(&statistics->paths, queue, sender, receiver, capacity);
	made->receiver = receiver;
	made->capacity = capacity;
}

static void queue_begin(struct wr_queue_statistics *queue)
{
	wr_note(&queue->entered, 0);
	wr_note(&queue->entered_sum, 0);
	wr_note(&queue->dropped, 0);
	wr_note(&queue->dropped_sum, 0);
	wr_note(&queue->most, 0);
	wr_note(&queue->full_at, 0);
	wr_note(&queue->full_taken, 0);
	wr_note(&queue->taken, 0);
	wr_note(&queue->taken_sum, 0);
	wr_note(&queue->full_time, 0);
	wr_note(&queue->closed_at, 0);
}

void wr_statistics_begin_queues(struct wr_statistics *statistics)
{
	for (size_t i = 0; i < statistics->queue_count; i++)
		queue_begin(&statistics->queues[i]);
}

/* --- messages --- */

/*
 * The sender says when the queue became full, and after how many takes; the receiver's next take, or drop,
 * ends that time if no other take has come between, which the sender may not have seen yet. full_taken is
 * written last and read first: what the receiver reads then belongs together, since the sender says it again
 * only after a take.
 */
static void note_depth(struct wr_queue_statistics *queue, int64_t at)
{
	uint64_t taken = wr_read(&queue->taken);
	uint64_t depth = wr_read(&queue->entered) - wr_read(&queue->dropped) - taken;

	depth = depth < queue->capacity ? depth : queue->capacity;
	if (depth > wr_read(&queue->most))
		wr_note(&queue->most, depth);
	if (depth < queue->capacity || wr_read(&queue->full_taken) == taken + 1)
		return;
	wr_note(&queue->full_at, at);
	wr_store_release(&queue->full_taken, taken + 1);
}

void wr_statistics_on_deliver(void *self, int64_t at, unsigned lane, uint32_t id, uint64_t number)
{
	struct wr_queue_statistics *queue = queue_of(self, id);

	(void)lane;
	wr_paths_on_deliver(self, id, number, at);
	if (!queue || wr_read(&queue->closed_at))
		return;
	wr_count(&queue->entered, 1);
	wr_count(&queue->entered_sum, (uint64_t)at);
	note_depth(queue, at);
}

void wr_statistics_on_drop(void *self, int64_t at, unsigned lane, uint32_t id, uint64_t number)
{
	struct wr_queue_statistics *queue = queue_of(self, id);

	(void)lane, (void)number;
	if (!queue || wr_read(&queue->closed_at))
		return;
	wr_count(&queue->dropped, 1);
	wr_count(&queue->dropped_sum, (uint64_t)at);
}

/* The receiver has removed one. */
static void note_less(struct wr_queue_statistics *queue, int64_t at)
{
	if (wr_load_acquire(&queue->full_taken) == wr_read(&queue->taken) + 1)
		wr_count(&queue->full_time, at - wr_read(&queue->full_at));
	wr_count(&queue->taken, 1);
	wr_count(&queue->taken_sum, (uint64_t)at);
}

/* Of the sums it is a take (C12): the sender may write what is dropped meanwhile. */
void wr_statistics_on_unmatched(void *self, int64_t at, unsigned lane, uint32_t id, uint64_t number)
{
	struct wr_queue_statistics *queue = queue_of(self, id);

	(void)lane, (void)number;
	if (queue)
		note_less(queue, at);
}

void wr_statistics_on_take(void *self, int64_t at, unsigned lane, uint32_t id, uint64_t number)
{
	struct wr_statistics *statistics = self;
	struct wr_queue_statistics *queue = queue_of(statistics, id);

	(void)lane;
	if (!queue)
		return;
	wr_paths_on_take(&statistics->paths, id, number);
	note_less(queue, at);
}

/* The receiver drops what its queues hold. */
void wr_statistics_on_entity_done(void *self, int64_t at, unsigned lane, uint32_t entity)
{
	struct wr_statistics *statistics = self;

	(void)lane;
	for (size_t i = 0; i < statistics->queue_count; i++)
		if (statistics->queues[i].receiver == entity)
			wr_note(&statistics->queues[i].closed_at, at);
}

/* --- reading --- */

/* A reading while the queue is used is off by what passes meanwhile; then the difference may be negative. */
struct wr_depth wr_statistics_depth(struct wr_statistics *statistics, size_t i)
{
	struct wr_queue_statistics *queue = &statistics->queues[i];
	uint64_t taken = wr_read(&queue->taken), dropped = wr_read(&queue->dropped);
	uint64_t left = wr_read(&queue->entered) - taken - dropped;
	int64_t begun_at = wr_read(&statistics->begun_at), now = wr_statistics_now(statistics);
	int64_t closed_at = wr_read(&queue->closed_at), end = closed_at ? closed_at : now, sum;
	struct wr_depth depth = {.most = wr_read(&queue->most), .full_time = wr_read(&queue->full_time)};

	sum = (int64_t)(wr_read(&queue->taken_sum) + wr_read(&queue->dropped_sum) -
			wr_read(&queue->entered_sum) + left * (uint64_t)end);
	if (now > begun_at && sum > 0)
		depth.mean = (double)sum / (double)(now - begun_at);
	if (wr_load_acquire(&queue->full_taken) == taken + 1 && end > wr_read(&queue->full_at))
		depth.full_time += end - wr_read(&queue->full_at);
	return depth;
}

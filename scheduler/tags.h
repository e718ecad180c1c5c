/*
 * Tags: beside each slot of a queue, which push filled it and when its origins began. A queue has them only
 * while an observer wants them (trace/); then a push costs a few stores more. `pop` moves messages between
 * slots, and their tags with them.
 *
 * A tag is a row of words: the sequence number of the push, then one time per origin of the sender
 * (paths). The same side may touch a tag that may touch its slot.
 */
#ifndef WR_SCHEDULER_TAGS_H
#define WR_SCHEDULER_TAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir.h"

struct wr_queue;
struct wr_trace;

#define WR_NOT_PUSHED UINT64_MAX

struct wr_tags {
	uint32_t mask;
	uint32_t words;   /* of a tag */
	uint64_t pushes;  /* sender: in this run */
	uint64_t evicted; /* sender: the sequence that the last push evicted; WR_NOT_PUSHED: none */
	uint64_t rows[];  /* tags of the slots, of the next push, of the last take (as many as slots) */
};

/* Gives the queue tags for `origins` times. Before the run. Fails: WEIR_E_NOMEM. */
weir_status wr_queue_add_tags(struct wr_queue *queue, size_t origins);
/* Frees them. The queue has none: does nothing. */
void wr_queue_remove_tags(struct wr_queue *queue);

/* Before a run: pushes are counted from 0, and have no origins. */
void wr_tags_reset(struct wr_tags *tags);

static inline uint64_t *wr_tag_at(struct wr_tags *tags, uint64_t position)
{
	return &tags->rows[(position & tags->mask) * tags->words];
}

/* Sender: the origins of the next push, to be filled in before wr_tags_push; they stay for the pushes after
 * it. */
static inline uint64_t *wr_tags_origins(struct wr_tags *tags)
{
	return &tags->rows[((uint64_t)tags->mask + 1) * tags->words] + 1;
}

/*
 * Sender, right before a push of any kind: numbers it and puts its tag where the push will put the message.
 * Returns the number.
 */
uint64_t wr_tags_push(struct wr_queue *queue);
/* A full `pop` queue evicts, within its critical section; the message at `to` is the one that was at `from`.
 */
void wr_tags_move(struct wr_tags *tags, uint64_t to, uint64_t from);
void wr_tags_put_next(struct wr_tags *tags, uint64_t position);

/* Receiver, right before it takes the front: keeps a copy of the front's tags. Returns how many. */
size_t wr_tags_take(struct wr_queue *queue);

/* Receiver: the i-th tag of the last wr_tags_take. */
static inline const uint64_t *wr_tag_taken(const struct wr_tags *tags, size_t i)
{
	return &tags->rows[((uint64_t)tags->mask + 2 + i) * tags->words];
}

/*
 * With the events of them, for queues that may have no tags. deliver: right before a push, so that the event
 * comes before that of the take. pushed: right after it. take: right before the front is taken.
 */
void wr_tags_trace_deliver(struct wr_queue *queue, struct wr_trace *trace, unsigned lane);
void wr_tags_trace_pushed(struct wr_queue *queue, struct wr_trace *trace, unsigned lane, bool dropped);
/* Returns how many tags were kept. */
size_t wr_tags_trace_take(struct wr_queue *queue, struct wr_trace *trace, unsigned lane);

#endif

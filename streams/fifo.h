/*
 * In-order queues of operations on a few runners (threads or fibers): what host and sim have in common. A wait parks its
 * queue on an event, never a runner. Events and queues mean what CUDA's mean.
 */
#ifndef WR_STREAMS_FIFO_H
#define WR_STREAMS_FIFO_H

#include "base/thread.h"
#include "streams/backend.h"

enum wr_work { WR_WORK_KERNEL, WR_WORK_COPY, WR_WORK_CALL, WR_WORK_RECORD, WR_WORK_WAIT };
enum wr_fate { WR_FATE_RUN, WR_FATE_FAULT, WR_FATE_LOSE, WR_FATE_TWICE };

/* How simulated work differs from real work. Asked with the lock held: no switching point inside. NULL: none of it. */
struct wr_fifo_rules {
	int64_t (*now)(void *arg);
	int64_t (*delay)(void *arg, enum wr_work work);	/* from its turn until it begins */
	enum wr_fate (*fate)(void *arg, enum wr_work work);
	size_t (*choose)(void *arg, size_t n);		/* which of n that are due */
	bool (*after_fault)(void *arg);			/* calls are made also after a fault */
};

struct wr_fifo;
struct wr_line;		/* one queue */
struct wr_mark;		/* an event */

weir_status wr_fifo_create(struct wr_fifo **out, unsigned runners, const struct wr_fifo_rules *rules, void *arg);
void wr_fifo_destroy(struct wr_fifo *fifo);	/* ends the runners; NULL is fine */
bool wr_fifo_quiet(struct wr_fifo *fifo);	/* it has faulted and nothing runs */

weir_status wr_line_create(struct wr_fifo *fifo, struct wr_line **out);
void wr_line_destroy(struct wr_line *line);
weir_status wr_mark_create(struct wr_fifo *fifo, struct wr_mark **out);
void wr_mark_destroy(struct wr_mark *mark);

weir_status wr_line_kernel(struct wr_line *line, const weir_kernel *kernel, const void *arguments, size_t bytes);
weir_status wr_line_copy(struct wr_line *line, void *to, const void *from, size_t bytes);
weir_status wr_line_call(struct wr_line *line, void (*fn)(void *), void *arg);
weir_status wr_line_record(struct wr_line *line, struct wr_mark *mark);
weir_status wr_line_wait(struct wr_line *line, struct wr_mark *mark);
weir_status wr_mark_query(struct wr_mark *mark);

#endif

/*
 * In-order queues of operations on a few runners (threads or fibers): what host and sim have in common. A
 * wait parks its queue on an event, never a runner. Events and queues mean what CUDA's mean.
 */
#ifndef WR_STREAMS_FIFO_H
#define WR_STREAMS_FIFO_H

#include "base/thread.h"
#include "streams/backend.h"

enum wr_work { WR_WORK_KERNEL, WR_WORK_COPY, WR_WORK_CALL, WR_WORK_FLAG, WR_WORK_RECORD, WR_WORK_WAIT };
enum wr_fate { WR_FATE_RUN, WR_FATE_FAULT, WR_FATE_LOSE, WR_FATE_TWICE };

/*
 * How simulated work differs from real work. Asked with the
 * lock held: no switching point inside. NULL: none of it.
 */
struct wr_fifo_rules {
	int64_t (*now)(void *arg);
	int64_t (*delay)(void *arg, enum wr_work work);	/* from its turn until it begins */
	enum wr_fate (*fate)(void *arg, enum wr_work work);
	size_t (*choose)(void *arg, size_t n);		/* which of n that are due */
	bool (*after_fault)(void *arg);			/* calls are made also after a fault */
};

struct wr_fifo;		/* the devices of a system */
struct wr_host_stream;		/* one queue */
struct wr_host_event;		/* an event */

#define WR_FIFO_DEVICES 64

/* Each device has so many runners of its own. With rules: called by a fiber of the world, and so is split. */
weir_status wr_fifo_create(struct wr_fifo **out, int devices, unsigned runners,
			   const struct wr_fifo_rules *rules, void *arg);
void wr_fifo_destroy(struct wr_fifo *fifo);	/* ends the runners; NULL is fine */
int wr_fifo_devices(const struct wr_fifo *fifo);
bool wr_fifo_quiet(struct wr_fifo *fifo);	/* it has faulted and nothing runs */

/*
 * As the table's partitions_create: a partition has runners of its own, the remainder is the device's. They
 * live as long as the fifo.
 */
weir_status wr_fifo_split(struct wr_fifo *fifo, const struct wr_partitions_spec *spec, void **out,
			  uint32_t *sms);

/*
 * As the table's stream_create. A device has one line for all BLOCKING streams and the legacy default one: as
 * they wait for each other, one order of all that is on them is a right one. That line outlives
 * wr_host_stream_destroy.
 */
weir_status wr_host_stream_open(struct wr_fifo *fifo, int device, unsigned flags, void *partition,
			 struct wr_host_stream **out);
void wr_host_stream_destroy(struct wr_host_stream *line);
weir_status wr_host_event_create(struct wr_fifo *fifo, struct wr_host_event **out);
void wr_host_event_destroy(struct wr_host_event *mark);

weir_status wr_host_stream_kernel(struct wr_host_stream *line, const weir_kernel *kernel, const void *arguments,
			   size_t bytes);
weir_status wr_host_stream_copy(struct wr_host_stream *line, void *to, const void *from, size_t bytes);
weir_status wr_host_stream_call(struct wr_host_stream *line, void (*fn)(void *), void *arg);
weir_status wr_host_stream_write_flag(struct wr_host_stream *line, _Atomic uint32_t *word, uint32_t value);
weir_status wr_host_stream_record(struct wr_host_stream *line, struct wr_host_event *mark);
weir_status wr_host_stream_wait(struct wr_host_stream *line, struct wr_host_event *mark);
weir_status wr_host_event_query(struct wr_host_event *mark);

#endif

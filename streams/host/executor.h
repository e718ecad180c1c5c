/*
 * Host streams: in-order queues of operations that a few workers (threads or fibers) run; host and sim share
 * them. A wait parks its stream on the event, never a worker. Streams and events behave as CUDA's do.
 */
#ifndef WR_STREAMS_HOST_EXECUTOR_H
#define WR_STREAMS_HOST_EXECUTOR_H

#include "base/thread.h"
#include "streams/backend.h"

enum wr_work {
	WR_WORK_KERNEL,
	WR_WORK_COPY,
	WR_WORK_CALL,
	WR_WORK_FLAG,
	WR_WORK_RECORD,
	WR_WORK_WAIT,
	WR_WORK_GRAPH
};
enum wr_fate { WR_FATE_RUN, WR_FATE_FAULT, WR_FATE_LOSE, WR_FATE_TWICE };

/*
 * How simulated work differs from real work; NULL for real work. The functions
 * are called with the lock held and must not switch fibers.
 */
struct wr_executor_rules {
	int64_t (*now)(void *arg);
	int64_t (*delay)(void *arg, enum wr_work work); /* from ready until it begins */
	enum wr_fate (*fate)(void *arg, enum wr_work work);
	size_t (*choose)(void *arg, size_t n); /* index of the one to run of n that are due */
	bool (*after_fault)(void *arg);        /* host callbacks are made even after a fault */
};

struct wr_executor;    /* the devices of a system */
struct wr_host_stream; /* an in-order queue */
struct wr_host_event;  /* an event */

#define WR_EXECUTOR_DEVICES 64

/*
 * `workers`: per device. `strict`: the devices' memory is closed but while their operations run. With rules,
 * this and wr_executor_partition must be called on a fiber of the simulation. Fails: WEIR_E_UNSUPPORTED:
 * strict, but without rules it needs protection keys, and there are none here.
 */
weir_status wr_executor_create(struct wr_executor **out, int devices, unsigned workers, bool strict,
			       const struct wr_executor_rules *rules, void *arg);
void wr_executor_destroy(struct wr_executor *executor); /* joins the workers; NULL is fine */
int wr_executor_devices(const struct wr_executor *executor);
bool wr_executor_stopped(struct wr_executor *executor); /* a kernel failed, and nothing runs any more */

/*
 * Implements partitions_create: a partition is a pool of workers, the remainder is the device's pool. Pools
 * live as long as the executor.
 */
weir_status wr_executor_partition(struct wr_executor *executor, const struct wr_partitions_spec *spec,
				  void **out, uint32_t *sms);

/*
 * Implements stream_create. All BLOCKING streams of a device and its legacy default stream are one host
 * stream: they wait for each other, so one common order is correct. wr_host_stream_destroy keeps that stream.
 */
weir_status wr_host_stream_open(struct wr_executor *executor, int device, unsigned flags, void *partition,
				struct wr_host_stream **out);
void wr_host_stream_destroy(struct wr_host_stream *stream);
weir_status wr_host_event_create(struct wr_executor *executor, struct wr_host_event **out);
void wr_host_event_destroy(struct wr_host_event *event);
/* Implements timer_create: an event that notes when it was reached. Recorded and destroyed as an event. */
weir_status wr_host_timer_create(struct wr_executor *executor, struct wr_host_event **out);
weir_status wr_host_timer_read(struct wr_host_event *begin, struct wr_host_event *end, int64_t *begun,
			       int64_t *ended);

weir_status wr_host_stream_kernel(struct wr_host_stream *stream, const weir_kernel *kernel,
				  const void *arguments, size_t bytes);
weir_status wr_host_stream_copy(struct wr_host_stream *stream, void *to, const void *from, size_t bytes);
weir_status wr_host_stream_copy_rows(struct wr_host_stream *stream, const weir_copy *copy);
weir_status wr_host_stream_call(struct wr_host_stream *stream, void (*fn)(void *), void *arg);
weir_status wr_host_stream_write_flag(struct wr_host_stream *stream, _Atomic uint32_t *word, uint32_t value);
weir_status wr_host_stream_record(struct wr_host_stream *stream, struct wr_host_event *event);
weir_status wr_host_stream_wait(struct wr_host_stream *stream, struct wr_host_event *event);
weir_status wr_host_event_query(struct wr_host_event *event);

/*
 * graph.c: captures (backend.h). A capture is a list of items in the order in which they were enqueued, which
 * is one of the orders that the streams allow; a launched graph is one operation of its stream.
 */
struct wr_host_capture;
struct wr_host_graph;
weir_status wr_host_capture_begin(struct wr_host_stream *stream, struct wr_host_capture **out);
weir_status wr_host_capture_order(struct wr_host_capture *capture, struct wr_host_stream *after);
weir_status wr_host_capture_end(struct wr_host_capture *capture, struct wr_host_graph **out);
weir_status wr_host_graph_launch(struct wr_host_stream *stream, struct wr_host_graph *graph);
/* Implement graph_items, graph_destroy and graph_differs; self does not matter. */
size_t wr_host_graph_items(const void *graph);
void wr_host_graph_destroy(void *self, void *graph);
bool wr_host_graph_differs(void *self, const void *graph, const void *other, char *what, size_t room);

/* Implement alloc and release. */
weir_status wr_executor_alloc(struct wr_executor *executor, int device, size_t bytes, void **out);
void wr_executor_release(struct wr_executor *executor, int device, void *memory);
bool wr_executor_is_closed(const struct wr_executor *executor,
			   const void *address); /* implements is_closed */

#endif

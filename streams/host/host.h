/*
 * Host streams: in-order queues of operations that a few workers (threads or fibers) run; the backends host
 * and sim share them. A wait parks its stream on the event, never a worker. Streams and events behave as
 * CUDA's do.
 *
 * A stream is ready, due at a time, if its first task could run; parked, if that is a wait for an event that
 * was not reached; running, while a worker executes its first task; idle, if it is empty. Only a ready stream
 * is in its pool's list, so it is run by one worker at a time and keeps its order.
 *
 * A pool is a device, or a partition of one: its streams run on its workers only. One lock guards all pools,
 * since an event may be recorded in one and waited for in another.
 *
 * Files: host.c has the executor, its pools and their memory, stream.c streams and events, worker.c what runs
 * them, graph.c captures.
 */
#ifndef WR_STREAMS_HOST_HOST_H
#define WR_STREAMS_HOST_HOST_H

#include <stdalign.h>

#include "base/closed.h"
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
 * How simulated work differs from real work; NULL for real work. All but `enqueued` are called with the lock
 * held and must not switch fibers.
 */
struct wr_executor_rules {
	int64_t (*now)(void *arg);
	int64_t (*delay)(void *arg, enum wr_work work); /* from ready until it begins */
	enum wr_fate (*fate)(void *arg, enum wr_work work);
	size_t (*choose)(void *arg, size_t n); /* index of the one to run of n that are due */
	bool (*after_fault)(void *arg);        /* host callbacks are made even after a fault */
	void (*enqueued)(void *arg);           /* the thread that enqueued an operation may be held up */
};

struct wr_host_event;

struct wr_task {
	struct wr_task *next;
	enum wr_work work;
	bool again; /* a callback's second call */
	/* of a record; of a wait, or a call that waits first: until so many records were reached. NULL: none
	 */
	struct wr_host_event *event;
	uint64_t count;
	union {
		struct {
			int (*host)(const void *arguments);
			const char *name;
			size_t bytes;
			alignas(16) unsigned char arguments[WEIR_ARGUMENTS_MAX];
		} kernel;
		weir_copy copy;
		struct {
			void (*fn)(void *arg);
			void *arg;
			_Atomic uint32_t *word; /* a flag that is written before the call; NULL: none */
			uint32_t value;
		} call;
		struct {
			_Atomic uint32_t *word;
			uint32_t value;
		} flag;
		const struct wr_host_graph *graph;
	};
};

/* A capture under way, and what it becomes. The items are linked by next. */
struct wr_host_capture {
	struct wr_host_stream *streams; /* in the capture; linked by next. Guarded by executor->lock */
	struct wr_host_graph *graph;
	struct wr_task **end; /* of graph->items */
};

struct wr_host_graph {
	struct wr_task *items;
	size_t count;
};

struct wr_host_event {
	struct wr_executor *executor;
	/* stored under executor->lock, with release: a query reads them without it */
	_Atomic uint64_t recorded, reached;
	struct wr_host_stream *parked; /* linked by next; guarded by executor->lock */
	bool timer;
	int64_t reached_at; /* of a timer; guarded by executor->lock */
};

struct wr_host_stream {
	struct wr_executor *executor;
	struct wr_host_pool *pool;
	struct wr_task *first, *last;    /* these and the rest: guarded by executor->lock */
	struct wr_host_stream *next;     /* in the ready list, an event's parked list, or a capture */
	struct wr_host_capture *capture; /* its work becomes a graph; NULL: it is run */
	int64_t due;
	bool busy;                  /* ready, parked or running: adding a task need not make it ready */
	bool running;               /* a worker has taken it, and still uses it after it has left the lock */
	struct wr_parker *returned; /* of the thread that waits until it is not, to destroy it; or NULL */
};

struct wr_host_worker {
	struct wr_host_pool *pool;
	struct wr_thread thread;
	struct wr_parker parker;
	struct wr_host_worker *next; /* idle; guarded by executor->lock */
	bool idle;
};

/*
 * Freed with the executor, when no worker is left, because a worker
 * of another pool is woken without the lock.
 */
struct wr_host_pool {
	struct wr_executor *executor;
	struct wr_host_pool *next;
	/* of a device: stands for the default stream and all BLOCKING ones */
	struct wr_host_stream default_stream;
	unsigned size, room; /* workers: to begin with; at most */
	unsigned started;    /* this and the rest: guarded by executor->lock */
	struct wr_host_stream *ready, **ready_end;
	struct wr_host_worker *idle;
	bool calling; /* a worker executes a callback */
	bool to_wake; /* a worker of another pool has made one of its streams ready */
	struct wr_host_worker workers[];
};

#define WR_EXECUTOR_DEVICES 64

/* The devices of a system: `self` of both backends. */
struct wr_executor {
	struct wr_spin lock; /* held for a few stores; for longer when the workers of a pool are started */
	const struct wr_executor_rules *rules;
	void *arg; /* of the rules */
	int devices;
	struct wr_host_pool *device[WR_EXECUTOR_DEVICES];
	struct wr_host_pool *pools; /* all of them; this and the rest: guarded by lock */
	struct wr_task *spare;
	unsigned running;
	unsigned pools_to_wake;
	bool stopping;
	_Atomic bool faulted; /* stored with release, after `fault`; a query reads it without the lock */
	bool strict;
	struct wr_closed_memory memory; /* of the devices, if strict: opened while an operation runs */
	char fault[160];
};

/*
 * --- what both tables of functions share (backend.h) ---
 *
 * `self` is the executor, a handle of a stream a wr_host_stream, of an event or timer a wr_host_event.
 */

int wr_host_devices(void *self);
/*
 * All BLOCKING streams of a device and its legacy default stream are one host stream: they wait for each
 * other, so one common order is correct. wr_host_stream_destroy keeps that stream.
 */
weir_status wr_host_stream_create(void *self, int device, unsigned flags, int priority, void *partition,
				  void **out);
weir_status wr_host_stream_default(void *self, int device, void **out);
void wr_host_stream_destroy(void *self, void *stream);
weir_status wr_host_event_create(void *self, int device, void **out);
void wr_host_event_destroy(void *self, void *event);
weir_status wr_host_record(void *self, int device, void *stream, void *event);
weir_status wr_host_query(void *self, void *event);
weir_status wr_host_wait(void *self, int device, void *stream, void *event);
weir_status wr_host_launch(void *self, int device, void *stream, const weir_kernel *kernel,
			   const void *arguments, size_t bytes);
weir_status wr_host_copy(void *self, int device, void *stream, void *to, const void *from, size_t bytes);
weir_status wr_host_copy_rows(void *self, int device, void *stream, const weir_copy *copy);
weir_status wr_host_call(void *self, int device, void *stream, void (*fn)(void *arg), void *arg);
weir_status wr_host_write_flag(void *self, int device, void *stream, _Atomic uint32_t *word, uint32_t value);
weir_status wr_host_signal(void *self, int device, void *stream, const struct wr_firing *firing);
/* A timer is an event that notes when it was reached; recorded and destroyed as an event. */
weir_status wr_host_timer_create(void *self, int device, void **out);
weir_status wr_host_timer_read(void *self, int device, void *begin, void *end, int64_t *begun,
			       int64_t *ended);
/*
 * A capture is a list of items in the order in which they were enqueued, which is one of the orders that the
 * streams allow; a launched graph is one operation of its stream.
 */
weir_status wr_host_capture_begin(void *self, int device, void *stream, void **out);
weir_status wr_host_capture_order(void *self, void *capture, void *before, void *after);
weir_status wr_host_capture_end(void *self, void *capture, void **out);
size_t wr_host_graph_items(const void *graph);
weir_status wr_host_graph_launch(void *self, int device, void *stream, void *graph);
void wr_host_graph_destroy(void *self, void *graph);
bool wr_host_graph_differs(void *self, const void *graph, const void *other, char *what, size_t room);
/* A partition is a pool of workers, the remainder is the device's pool. Pools live as long as the executor.
 */
weir_status wr_host_partitions_create(void *self, const struct wr_partitions_spec *spec, void **out,
				      uint32_t *sms);
void wr_host_partition_destroy(void *self, void *partition); /* does nothing */
weir_status wr_host_alloc(void *self, int device, size_t bytes, void **out);
void wr_host_release(void *self, int device, void *memory);
bool wr_host_is_closed(void *self, const void *address);
bool wr_host_stopped(void *self); /* a kernel failed, and nothing runs any more */

#define WR_HOST_ENTRIES                                                                                      \
	.devices = wr_host_devices, .stream_create = wr_host_stream_create,                                  \
	.stream_destroy = wr_host_stream_destroy, .stream_default = wr_host_stream_default,                  \
	.event_create = wr_host_event_create, .event_destroy = wr_host_event_destroy,                        \
	.record = wr_host_record, .query = wr_host_query, .wait = wr_host_wait, .launch = wr_host_launch,    \
	.copy = wr_host_copy, .copy_rows = wr_host_copy_rows, .call = wr_host_call,                          \
	.timer_create = wr_host_timer_create, .timer_destroy = wr_host_event_destroy,                        \
	.timer_record = wr_host_record, .timer_read = wr_host_timer_read,                                    \
	.capture_begin = wr_host_capture_begin, .capture_order = wr_host_capture_order,                      \
	.capture_end = wr_host_capture_end, .graph_items = wr_host_graph_items,                              \
	.graph_launch = wr_host_graph_launch, .graph_destroy = wr_host_graph_destroy,                        \
	.graph_differs = wr_host_graph_differs, .write_flag = wr_host_write_flag,                            \
	.partition_destroy = wr_host_partition_destroy, .alloc = wr_host_alloc, .release = wr_host_release,  \
	.is_closed = wr_host_is_closed, .stopped = wr_host_stopped

/* --- life --- */

/*
 * `workers`: per device. `strict`: the devices' memory is closed but while their operations run. With rules,
 * this and wr_host_partitions_create must be called on a fiber of the simulation. Fails: WEIR_E_UNSUPPORTED:
 * strict, but without rules it needs protection keys, and there are none here.
 */
weir_status wr_executor_create(struct wr_executor **out, int devices, unsigned workers, bool strict,
			       const struct wr_executor_rules *rules, void *arg);
void wr_executor_destroy(struct wr_executor *executor); /* joins the workers; NULL is fine */

/* --- between the files --- */

/* graph.c */
void wr_host_capture_append_locked(struct wr_host_capture *capture, struct wr_task *task);

/* stream.c: fills a task and appends it, see there */
struct wr_task *wr_host_enqueue_begin(void *stream, enum wr_work work, weir_status *status);
weir_status wr_host_enqueue_end(void *stream, struct wr_task *task);

/* stream.c; all with the lock held */
struct wr_task *wr_task_locked(struct wr_executor *executor);    /* a new one, or NULL */
void wr_host_stream_ready_locked(struct wr_host_stream *stream); /* its first task can run */
void wr_host_stream_pop_locked(struct wr_host_stream *stream);
struct wr_host_stream *wr_host_stream_unlink_locked(struct wr_host_pool *pool, struct wr_host_stream **at);
/* true: its wait is not over, it was parked */
bool wr_host_stream_park_locked(struct wr_host_stream *stream);
void wr_host_stream_reach_locked(struct wr_host_stream *stream); /* runs the record at its head */
void wr_tasks_free(struct wr_task *first);

/* worker.c */
/* Starts the pool's i-th worker. Thread: any. */
weir_status wr_host_worker_start(struct wr_host_pool *pool, unsigned i);
/* Removes an idle worker from the list, for wr_unpark; or returns NULL. */
struct wr_host_worker *wr_host_pool_wake_locked(struct wr_host_pool *pool);

/* host.c */
/* starts its workers, if it has none. Lock not held */
weir_status wr_host_pool_start(struct wr_host_pool *pool);

#endif

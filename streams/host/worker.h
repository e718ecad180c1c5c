/*
 * Shared by host streams (stream.c), host workers (worker.c) and host pools (pool.c). A stream is ready, due
 * at a time, if its first task could run; parked, if that is a wait for an event that was not reached;
 * running, while a worker executes its first task; idle, if it is empty. Only a ready stream is in its pool's
 * list, so it is run by one worker at a time and keeps its order.
 *
 * A pool is a device, or a partition of one: its streams run on its workers only. One lock guards all pools,
 * since an event may be recorded in one and waited for in another.
 */
#ifndef WR_STREAMS_HOST_WORKER_H
#define WR_STREAMS_HOST_WORKER_H

#include <stdalign.h>

#include "base/closed.h"
#include "streams/host/executor.h"

struct wr_task {
	struct wr_task *next;
	enum wr_work work;
	bool again; /* a callback's second call */
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
		} call;
		struct {
			_Atomic uint32_t *word;
			uint32_t value;
		} flag;
		struct {
			struct wr_host_event *event;
			uint64_t count;
		} sync; /* a record, a wait */
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
	uint64_t recorded, reached;    /* guarded by executor->lock */
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
	bool busy;    /* ready, parked or running: adding a task need not make it ready */
	bool running; /* a worker has taken it, and still uses it after it has left the lock */
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

struct wr_executor {
	struct wr_mutex lock;
	const struct wr_executor_rules *rules;
	void *arg;
	int devices;
	struct wr_host_pool *device[WR_EXECUTOR_DEVICES];
	struct wr_host_pool *pools; /* all of them; this and the rest: guarded by lock */
	struct wr_task *spare;
	unsigned running;
	unsigned pools_to_wake;
	bool stopping, faulted;
	bool strict;
	struct wr_closed_memory memory; /* of the devices, if strict: opened while an operation runs */
	unsigned leaving;               /* threads that wait on `returned` */
	struct wr_cond returned;        /* a worker has finished a task */
	char fault[160];
};

/* graph.c */
void wr_host_capture_append_locked(struct wr_host_capture *capture, struct wr_task *task);

/* stream.c: fills a task and appends it, see there */
struct wr_task *wr_host_enqueue_begin(struct wr_host_stream *stream, enum wr_work work, weir_status *status);
weir_status wr_host_enqueue_end(struct wr_host_stream *stream, struct wr_task *task);

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

/* pool.c */
/* starts its workers, if it has none. Lock not held */
weir_status wr_host_pool_start(struct wr_host_pool *pool);

#endif

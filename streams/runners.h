/*
 * What queues (fifo.c), those who run them (runners.c) and their groups (groups.c) share. A line is ready,
 * due at a time, when its first operation could run; parked when that is a wait for a mark that was not
 * reached; running while a runner is in its first operation; idle when it is empty. Only a ready line is in
 * its group's list, so a line is run by one runner at a time and its order is kept.
 *
 * A group is a device, or a partition of one: its lines run on its runners alone. One lock guards all groups,
 * since a mark may be recorded in one and waited for in another.
 */
#ifndef WR_STREAMS_RUNNERS_H
#define WR_STREAMS_RUNNERS_H

#include <stdalign.h>

#include "streams/fifo.h"

struct wr_task {
	struct wr_task *next;
	enum wr_work work;
	bool again;			/* it was made once already */
	union {
		struct {
			int (*host)(const void *arguments);
			const char *name;
			alignas(16) unsigned char arguments[WEIR_ARGUMENTS_MAX];
		} kernel;
		struct {
			void *to;
			const void *from;
			size_t bytes;
		} copy;
		struct {
			void (*fn)(void *arg);
			void *arg;
		} call;
		struct {
			_Atomic uint32_t *word;
			uint32_t value;
		} flag;
		struct {
			struct wr_host_event *mark;
			uint64_t count;
		} mark;
	};
};

struct wr_host_event {
	struct wr_fifo *fifo;
	uint64_t recorded, reached;	/* guarded by fifo->lock */
	struct wr_host_stream *parked;		/* linked by next; guarded by fifo->lock */
};

struct wr_host_stream {
	struct wr_fifo *fifo;
	struct wr_host_pool *group;
	struct wr_task *first, *last;	/* these and the rest: guarded by fifo->lock */
	struct wr_host_stream *next;		/* in the ready list, or among those parked on a mark */
	int64_t due;
	bool busy;			/* ready, parked or running: whoever adds a task leaves it alone */
	bool running;	/* a runner has taken it and comes back to it, whether it leaves the lock or not */
};

struct wr_host_worker {
	struct wr_host_pool *group;
	struct wr_thread thread;
	struct wr_parker parker;
	struct wr_host_worker *next;		/* idle; guarded by fifo->lock */
	bool idle;
};

/*
 * Freed with the fifo, when no runner is left: whoever wakes
 * one of another group's does it without the lock.
 */
struct wr_host_pool {
	struct wr_fifo *fifo;
	struct wr_host_pool *next;
	struct wr_host_stream standing;	/* of a device: the line of BLOCKING streams and of the default one */
	unsigned size, room;		/* runners to begin with; at most */
	unsigned started;		/* this and the rest: guarded by fifo->lock */
	struct wr_host_stream *ready, **ready_end;
	struct wr_host_worker *idle;
	bool calling;
	bool stirred;			/* a runner of another group has made a line of it ready */
	struct wr_host_worker runners[];
};

struct wr_fifo {
	struct wr_mutex lock;
	const struct wr_fifo_rules *rules;
	void *arg;
	int devices;
	struct wr_host_pool *device[WR_FIFO_DEVICES];
	struct wr_host_pool *groups;	/* all of them; this and the rest: guarded by lock */
	struct wr_task *spare;
	unsigned running;
	unsigned stirred;		/* groups that are */
	bool stopping, faulted;
	unsigned leaving;		/* threads that wait on `returned` */
	struct wr_cond returned;	/* a runner is back from a task */
	char fault[160];
};

/* fifo.c; all with the lock held */
struct wr_task *wr_task_locked(struct wr_fifo *fifo);	/* a new one, or NULL */
void wr_host_stream_ready_locked(struct wr_host_stream *line);	/* its first task is the next */
void wr_host_stream_pop_locked(struct wr_host_stream *line);
struct wr_host_stream *wr_host_stream_unlink_locked(struct wr_host_pool *group, struct wr_host_stream **at);
bool wr_host_stream_park_locked(struct wr_host_stream *line);		/* true if its wait is not over: it is parked */
void wr_host_stream_reach_locked(struct wr_host_stream *line);	/* its record has run */
void wr_tasks_free(struct wr_task *first);

/* runners.c */
/* Its i-th. Thread: any; who makes groups: with the lock. */
weir_status wr_host_worker_start(struct wr_host_pool *group, unsigned i);
struct wr_host_worker *wr_host_pool_wake_locked(struct wr_host_pool *group);	/* an idle one, for wr_unpark; or NULL */

/* groups.c */
weir_status wr_host_pool_start(struct wr_host_pool *group);	/* its runners, if it has none yet. Lock not held */

#endif

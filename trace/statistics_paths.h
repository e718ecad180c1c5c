/*
 * The rows of the observer of statistics that tell how long messages take from source to sink, per path. A
 * path leads from a source (an entity that no queue leads to) or an inlet to a sink (an entity that no queue
 * leads from) or an outlet, and visits an entity once. What leads up to an entity is a prefix: a node of a
 * trie, made by the entity's owner when a message first comes that way.
 *
 * The tick of a source begins a path, or the push into an inlet. That time, the origin, is kept per prefix:
 * for each message at its place in its queue, and for what an entity's tick took, of which the oldest counts.
 * A path ends with the compute of a sink, and of an entity that emits to an outlet; if that tick has device
 * work, when that is complete: it is measured if the tick's GPU time is.
 *
 * Bounds: WR_PREFIXES of an entity, WR_PREFIXES_ALL of a graph. What comes on other ways to an entity has one
 * more prefix, its `other`. What follows on an `other` is `other` as well, but not around a cycle, where it
 * would go on for ever.
 *
 * Threads: an entity's part belongs to its owner; the place of a message to the side of the queue that may
 * touch it. Prefixes stay as they are once made; their lists and times are read by any thread.
 */
#ifndef WR_TRACE_STATISTICS_PATHS_H
#define WR_TRACE_STATISTICS_PATHS_H

#include "trace/histogram.h"
#include "trace/trace.h"

enum {
	WR_PREFIXES = 64,
	WR_PREFIXES_ALL = 4096,
	WR_ENDS_PENDING = 64 /* ticks of an entity whose device work is not complete */
};
#define WR_NO_QUEUE UINT32_MAX

/* Where a prefix ends. Only the owner of its entity writes. */
struct wr_path {
	uint32_t outlet;        /* the queue; WR_NO_QUEUE: the entity is a sink */
	_Atomic uint64_t count; /* not measured ones, too */
	struct wr_histogram latency;
	struct wr_path *_Atomic next;
};

struct wr_prefix {
	const struct wr_prefix *before; /* that it continues; NULL: begins here, or is an `other` */
	uint32_t entity;
	uint32_t inlet; /* begins at this queue; WR_NO_QUEUE: it does not begin at an inlet */
	uint32_t index; /* among those of the entity */
	bool other;
	struct wr_path *_Atomic paths;  /* a list */
	struct wr_prefix *_Atomic next; /* of the entity, in the order in which they were met */
};

struct wr_origin {
	struct wr_prefix *prefix; /* NULL: an inlet's */
	int64_t time;
};
struct wr_origins {
	struct wr_origin *items; /* of different prefixes of one entity */
	size_t count, room;
};

/* A tick whose paths end with its device work. */
struct wr_pending_end {
	uint64_t tick; /* + 1; 0: none */
	uint64_t ends; /* mask: the entity's outlets that it emitted to; of a sink bit 0 */
	struct wr_origins origins;
};

struct wr_entity_paths {
	struct wr_prefix *_Atomic prefixes; /* a list */
	struct wr_prefix *other;
	uint32_t named;    /* prefixes that are no `other` */
	uint32_t *outlets; /* their queues */
	size_t outlet_count, outlet_room;
	bool fed, feeds;                /* some queue leads to it, from it */
	bool taking;                    /* since its last tick */
	bool device;                    /* the last tick has device work */
	uint64_t computed;              /* the number of the last tick that computed, + 1, if it counts */
	struct wr_origins origins;      /* of the tick */
	struct wr_pending_end *pending; /* WR_ENDS_PENDING of them, made by the first one */
	size_t next_pending;
};

struct wr_queue_paths {
	uint32_t sender, receiver; /* UINT32_MAX: an inlet, an outlet */
	uint32_t outlet;           /* index among those of the sender */
	bool held;                 /* its front is told when it closes */
	uint64_t ended;            /* tick of the sender, + 1, that last emitted to this outlet */
	uint64_t mask;
	struct wr_origins *places;    /* of messages, at their number & mask */
	struct wr_prefix **continued; /* by index of the sender's prefix; made by the first one */
};

struct wr_paths {
	struct wr_entity_paths *entities;
	struct wr_queue_paths *queues;
	size_t entity_count, queue_count;
	_Atomic uint32_t named;
	_Atomic bool folded; /* some entity has an `other` */
};

struct wr_statistics;

weir_status wr_paths_init(struct wr_paths *paths, size_t entities, size_t queues);
void wr_paths_finish(struct wr_paths *paths); /* takes a half-made one */

/* Calls fn for each path that a message went in the current or last run. Thread: any. */
typedef void wr_path_fn(const struct wr_prefix *prefix, struct wr_path *path, void *arg);
void wr_paths_each(struct wr_paths *paths, wr_path_fn *fn, void *arg);

/* --- rows --- */

void wr_paths_on_queue(struct wr_paths *paths, uint32_t queue, uint32_t sender, uint32_t receiver,
		       uint32_t capacity);
void wr_paths_on_front(void *self, uint32_t queue, uint64_t first, uint64_t count);
void wr_paths_on_computed(void *self, uint32_t entity, uint64_t tick, bool device);
void wr_paths_on_run_begin(struct wr_paths *paths);
void wr_paths_on_take(struct wr_paths *paths, uint32_t queue, uint64_t number);
void wr_paths_on_tick_begin(struct wr_paths *paths, uint32_t entity, int64_t at);
void wr_paths_on_deliver(struct wr_statistics *statistics, uint32_t queue, uint64_t number, int64_t at);
/* The device work of the tick is complete; end: of the latest of its streams. */
void wr_paths_on_complete(struct wr_paths *paths, uint32_t entity, uint64_t tick, int64_t end);

#endif

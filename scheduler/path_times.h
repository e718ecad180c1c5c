/*
 * How long messages take from source to sink, per path (paths.h). The tick of a source begins a path, or the
 * push into an inlet. That time, the origin, travels in the tags of queues (tags.h); a tick keeps per prefix
 * the oldest origin of what it took and hands it on with all that it emits. A path ends where nothing
 * follows: at the end of compute of an entity without connected outputs, and of one that emitted to an outlet
 * in this tick. If the tick has device work, the path ends when that is complete; it is measured if the
 * tick's GPU time is (wr_statistics.completed).
 *
 * Threads: an entity's part belongs to its owner. The times of paths are read by any thread.
 */
#ifndef WR_SCHEDULER_PATH_TIMES_H
#define WR_SCHEDULER_PATH_TIMES_H

#include "scheduler/paths.h"
#include "trace/statistics.h"

struct wr_connection;

enum { WR_ENDS_PENDING = 64 }; /* ticks of a sink whose device work is not complete */

/* A path. Only the owner of its last entity writes. */
struct wr_path_time {
	const char **names; /* source to sink */
	size_t length;
	bool other;
	_Atomic uint64_t count; /* not measured ones, too */
	struct wr_histogram latency;
};

/* A tick whose paths end with its device work. */
struct wr_pending_end {
	uint64_t tick;
	uint64_t outlets; /* mask: to which of the entity's outlets it emitted */
	int64_t *origins; /* per prefix */
};

struct wr_entity_paths {
	int64_t *origins; /* of the present tick, per prefix; 0: none */
	size_t count;
	uint32_t end_count; /* outlets of it; 1 for a sink; 0: no path ends here */
	uint32_t *outputs;  /* of its outlets */
	bool source;
	size_t first_path;              /* [end][prefix] from here on */
	struct wr_pending_end *pending; /* WR_ENDS_PENDING of them; NULL: no path ends here */
	size_t next_pending;
};

struct wr_path_times {
	struct wr_paths *paths;
	struct wr_statistics *statistics;
	struct wr_entity_paths *entities;
	size_t entity_count; /* of the plan */
	struct wr_path_time *times;
	size_t time_count;
	char **ends_text; /* names of inlets and outlets */
	size_t ends_text_count;
};

/* Before the first run, for a graph with all its inlets and outlets. Fails: WEIR_E_NOMEM. */
weir_status wr_path_times_create(weir_graph *graph, struct wr_statistics *statistics,
				 struct wr_path_times **out);
void wr_path_times_destroy(struct wr_path_times *times); /* NULL is fine */
void wr_path_times_reset(struct wr_path_times *times);   /* before a run */
/* How many origins the tags of the connection carry. */
size_t wr_path_times_origins(const struct wr_path_times *times, const struct wr_connection *connection);

/* Owner: a tick begins; then, for each connection whose queue has tags, its front is about to be taken:
 * `front` tags were kept. */
void wr_path_times_begin(struct wr_path_times *times, weir_entity *entity);
void wr_path_times_take(struct wr_path_times *times, struct wr_connection *connection, size_t front);
/* Owner: compute has succeeded, nothing was delivered so far. device: the tick has device work. */
void wr_path_times_end(struct wr_path_times *times, weir_entity *entity, bool device);
/* The holder of the inlet's lock: a message is about to be pushed. */
void wr_path_times_push(struct wr_connection *connection);

#endif

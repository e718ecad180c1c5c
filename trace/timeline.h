/*
 * The project's own timeline: an observer that keeps each event as a record in a ring (ring.h), and writes
 * them after the run in Chrome's trace event format (chrome.h).
 */
#ifndef WR_TRACE_TIMELINE_H
#define WR_TRACE_TIMELINE_H

#include "trace/ring.h"
#include "trace/trace.h"

#define WR_TIMELINE_EVENTS     ((size_t)1 << 20) /* records a lane keeps, unless options say otherwise */
#define WR_TIMELINE_EVENTS_MAX ((size_t)1 << 28) /* 8 GiB */

/* Names are borrowed from the graph; NULL: memory ran out when it was declared. */
struct wr_timeline_queue {
	const char *from, *to;
	uint32_t sender, receiver;
};
/* Of an entity with instances. */
struct wr_timeline_part {
	enum wr_trace_part part;
	uint32_t of, number, instances;
};
struct wr_timeline_pool {
	const char *name, *unit;
};

struct wr_timeline {
	struct wr_rings rings;
	unsigned workers;
	int64_t begun_at, ended_at; /* of the last run */
	const char **entities;
	struct wr_timeline_part *parts; /* by entity, as far as there are such */
	struct wr_timeline_queue *queues;
	struct wr_timeline_pool *pools;
	size_t part_count, part_room;
	size_t entity_count, entity_room, queue_count, queue_room, pool_count, pool_room;
};

/* `self` of the observer wr_timeline is a struct wr_timeline. */

/* For the head of the file. */
struct wr_timeline_about {
	const char *version, *graph, *where;
};
/* What was written: events that are in the file, and records that are not, as they were overwritten. */
struct wr_timeline_written {
	uint64_t records, dropped;
};

/*
 * Writes the last run (none yet: a file without events) to the descriptor. A lane that overwrote records
 * begins late; the file begins where the latest lane does, so that all that follows is complete. Thread: any,
 * while no run is on. Fails: WEIR_E_IO (with errno), WEIR_E_NOMEM.
 */
weir_status wr_timeline_write(struct wr_timeline *timeline, const struct wr_timeline_about *about, int fd,
			      struct wr_timeline_written *written);

#endif

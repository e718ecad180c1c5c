/*
 * The ticks of an entity that used the device, and which of them are not known to be complete (T8). They are
 * numbered from 1 in each run. Thread, for all functions: the entity's owner.
 */
#ifndef WR_SCHEDULER_FLIGHT_H
#define WR_SCHEDULER_FLIGHT_H

#include "streams/streams.h"

/* A fence that the end of a tick recorded; one per stream that the tick used. */
struct wr_flight_end {
	weir_fence fence;
	uint64_t tick;
};

struct wr_flight {
	size_t bound;               /* max_in_flight in this run; 0: no bound, `ends` stays empty */
	uint64_t ticks, completed;  /* number of the last tick; ticks 1..completed are known to be complete */
	struct wr_flight_end *ends; /* [first, first + count): ends of ticks after `completed`, in order */
	size_t first, count, room;
	uint64_t operations;   /* that the largest recent tick enqueued */
	uint64_t largest_tick; /* the number of that tick */
};

void wr_flight_reset(struct wr_flight *flight, size_t bound);
void wr_flight_finish(struct wr_flight *flight);
/* The bound, lowered if ticks enqueue many operations: the driver's launch queue is finite. */
size_t wr_flight_limit(const struct wr_flight *flight);
/*
 * Call after the streams of a tick were fenced: notes the tick if it used any. If the in-flight condition
 * waits by completion flag, writes the flags at every (wr_flight_limit() / 2)th tick. Fails: WEIR_E_NOMEM.
 */
weir_status wr_flight_note_tick(weir_entity *entity);

#endif

/*
 * An entity's ticks that used the device, and what of it is not known to be complete (T8). Numbered from 1 in
 * each run. Thread of everything here: the entity's owner.
 */
#ifndef WR_GRAPHS_FLIGHT_H
#define WR_GRAPHS_FLIGHT_H

#include "streams/streams.h"

/* A fence that the end of a tick recorded: one for each stream that it used. */
struct wr_flight_end {
	weir_fence fence;
	uint64_t tick;
};

struct wr_flight {
	size_t bound;			/* max_in_flight in this run; 0: none, nothing is kept */
	uint64_t ticks, done;		/* how many there were; all up to `done` are known to be complete */
	struct wr_flight_end *ends;	/* of ticks above `done`, in their order, from `first` on */
	size_t first, count, room;
	uint64_t items, largest;	/* of the largest recent tick, and which one that is */
};

/* As a run finds it: no tick yet. */
void wr_flight_reset(struct wr_flight *flight, size_t bound);
void wr_flight_finish(struct wr_flight *flight);
/* The bound, less where ticks enqueue much: the driver's launch queue is finite. */
size_t wr_flight_most(const struct wr_flight *flight);
/*
 * A tick has ended, its streams are fenced: it is noted if it used any. Rings the flags of every
 * (bound / 2)th one if `rings`. Fails: WEIR_E_NOMEM.
 */
weir_status wr_entity_note_flight(weir_entity *entity);

#endif

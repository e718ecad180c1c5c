/*
 * The arenas of a system, pinned host memory and one a device.
 * Each has a lock of its own; none is held in the backend.
 */
#ifndef WR_STREAMS_MEMORY_H
#define WR_STREAMS_MEMORY_H

#include "base/thread.h"
#include "streams/streams.h"

#define WR_MEMORY_CLASSES 192

struct wr_block {
	struct wr_block *next;
	void *data;
	unsigned class;				/* of one that is lent */
};

struct wr_chunk {
	struct wr_chunk *next;
	void *data;
	size_t size, used;
};

struct wr_arena {
	_Atomic bool growing;		/* one thread asks the backend for a chunk */
	struct wr_mutex lock;
	struct wr_block *free[WR_MEMORY_CLASSES];	/* guarded by lock, like the rest */
	struct wr_block *spare;			/* nodes of blocks that are out */
	struct wr_block *lent;			/* of blocks that are out in place of smaller ones */
	struct wr_chunk *chunks;
	size_t chunk;				/* bytes of the next one */
};

weir_status wr_memory_init(struct wr_system *system);
void wr_memory_finish(struct wr_system *system);	/* all chunks go back to the backend */

#endif

/*
 * The arenas of a system: pinned host memory, and one per device.
 * Each has a lock, which is not held in calls of the backend.
 */
#ifndef WR_STREAMS_MEMORY_H
#define WR_STREAMS_MEMORY_H

#include "base/thread.h"
#include "streams/streams.h"

#define WR_MEMORY_CLASSES 192

struct wr_block {
	struct wr_block *next;
	void *data;
	unsigned class; /* of a lent block */
};

struct wr_chunk {
	struct wr_chunk *next;
	void *data;
	size_t size, used;
};

struct wr_arena {
	_Atomic bool growing; /* a thread is getting a chunk from the backend */
	struct wr_mutex lock;
	struct wr_block *free[WR_MEMORY_CLASSES]; /* guarded by lock, like the rest */
	struct wr_block *spare;                   /* nodes of blocks in use */
	struct wr_block *lent;                    /* nodes of blocks in use that are lent as smaller ones */
	struct wr_chunk *chunks;
};

weir_status wr_memory_init(struct wr_system *system);
void wr_memory_finish(struct wr_system *system); /* returns all chunks to the backend */

#endif

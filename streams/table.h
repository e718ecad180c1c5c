/*
 * The table of streams (table.c), whom it gives a stream to
 * (open.c), and what streams may be tied to: pools, partitions.
 */
#ifndef WR_STREAMS_TABLE_H
#define WR_STREAMS_TABLE_H

#include "streams/stream.h"

#define WR_PAGE 256			/* streams a page of the table */
#define WR_PAGES 256

struct wr_page {
	_Atomic(weir_stream *) streams[WR_PAGE];
};

/* What makes one stream as good as another. */
struct wr_stream_kind {
	struct wr_stream_spec spec;
	struct wr_stream_pool *pool;
	bool wrapped;
	weir_stream *root; /* NULL: its own */
	void *native;	   /* if it is wrapped or has a root */
};

/* --- table.c. Thread: any; each takes system->lock, so the caller holds none --- */
weir_status wr_table_init(struct wr_system *system);
void wr_table_finish(struct wr_system *system);			/* frees all streams */
/*
 * Getter, without the lock. NULL: none was entered there.
 * index: below system->count, or of a fence that was.
 */
weir_stream *wr_stream_at(struct wr_system *system, uint32_t index);
/* One that was given back and is drained, under a new id; NULL: there is none. May ask the device. */
weir_stream *wr_table_reuse(struct wr_system *system, const struct wr_stream_kind *kind, const char *owner);
/*
 * A new one, complete but for its id: from here on others find it.
 * Takes it. Fails: WEIR_E_NOMEM, WEIR_E_INVALID: too many.
 */
weir_status wr_table_enter(weir_stream *stream, const struct wr_stream_kind *kind, const char *owner);
/*
 * Counts somebody in who will share the stream's queue, and
 * returns its root, which is not given out again meanwhile.
 */
weir_stream *wr_table_count_in(weir_stream *stream);
/* Likewise, by id. NULL: it was given on, or must not be shared. */
weir_stream *wr_table_count_in_by_id(struct wr_system *system, uint64_t id);
void wr_table_count_out(weir_stream *root);			/* nothing came of it */
void wr_table_close(weir_stream *stream);	/* given back, drained or not. Without the lock */
bool wr_table_close_unshared(weir_stream *stream);		/* false: others share it, nothing was done */

/* --- open.c --- */
/* wr_stream_open, of those that a pool has made; close then counts one less at the pool. */
weir_status wr_stream_open_in(struct wr_system *system, const struct wr_stream_spec *spec,
			      struct wr_stream_pool *pool, const char *owner, weir_stream **out);
void wr_stream_free(weir_stream *stream);	/* half-built ones, too. Nothing is left on it */

/* --- partition.c, pool.c --- */
void *wr_partition_native(const struct wr_partition *partition);	/* the backend's; of NULL: NULL */
void wr_partitions_finish(struct wr_system *system);
void wr_stream_pool_gave_back(struct wr_stream_pool *pool);		/* Thread: any */
void wr_stream_pools_finish(struct wr_system *system);

#endif

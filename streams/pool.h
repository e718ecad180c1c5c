/* The table of streams, and what a stream may belong to: a pool, a partition. Opening is in streams.h. */
#ifndef WR_STREAMS_POOL_H
#define WR_STREAMS_POOL_H

#include "streams/stream.h"

#define WR_PAGE  256 /* streams per page of the table */
#define WR_PAGES 256

struct wr_page {
	_Atomic(weir_stream *) streams[WR_PAGE];
};

/* A closed stream is reused for an open of the same kind. */
struct wr_stream_kind {
	struct wr_stream_spec spec;
	struct wr_stream_pool *pool;
	bool wrapped;
	weir_stream *root; /* NULL: its own */
	void *native;      /* if it is wrapped or has a root */
};

weir_status wr_table_init(struct wr_system *system);
void wr_table_finish(struct wr_system *system); /* frees all streams */

void *wr_partition_native(const struct wr_partition *partition); /* the backend's; NULL for NULL */
void wr_partitions_finish(struct wr_system *system);
void wr_stream_pools_finish(struct wr_system *system);

#endif

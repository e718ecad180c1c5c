/*
 * The table of streams (pool.c), opening them (pool.c),
 * and what they may belong to: pools and partitions.
 */
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

/* --- pool.c. Thread: any; each takes system->lock, so the caller holds none --- */
weir_status wr_table_init(struct wr_system *system);
void wr_table_finish(struct wr_system *system); /* frees all streams */
/* Reopens a closed, drained stream of the kind under a new id, or returns NULL. May query the device. */
weir_stream *wr_table_reuse(struct wr_system *system, const struct wr_stream_kind *kind, const char *owner);
/*
 * Adds a new stream and gives it an id: other threads find it from here on.
 * Takes the stream on success. Fails: WEIR_E_NOMEM; WEIR_E_INVALID: too many.
 */
weir_status wr_table_enter(weir_stream *stream, const struct wr_stream_kind *kind, const char *owner);
/*
 * Counts one more sharer of the stream's queue and returns
 * the root, which is not reused while it has sharers.
 */
weir_stream *wr_table_add_sharer(weir_stream *stream);
/* Likewise, by id. Returns NULL if the id was recycled, or the stream must not be shared. */
weir_stream *wr_table_add_sharer_by_id(struct wr_system *system, uint64_t id);
void wr_table_drop_sharer(weir_stream *root); /* undoes count_in */
/* Drained or not. Returns false if it was closed already. Takes no lock. */
bool wr_table_close(weir_stream *stream);
void wr_stream_free(weir_stream *stream);          /* drained or half-built */
bool wr_table_close_unshared(weir_stream *stream); /* false: others share it, it is still open */

/* --- pool.c --- */
/* wr_stream_open for a stream pool (or NULL), which counts the stream; close uncounts it. */
weir_status wr_stream_open_in(struct wr_system *system, const struct wr_stream_spec *spec,
			      struct wr_stream_pool *pool, const char *owner, weir_stream **out);

/* --- pool.c --- */
void *wr_partition_native(const struct wr_partition *partition); /* the backend's; NULL for NULL */
void wr_partitions_finish(struct wr_system *system);
void wr_stream_pool_uncount(struct wr_stream_pool *pool); /* uncounts a stream. Thread: any */
void wr_stream_pools_finish(struct wr_system *system);

#endif

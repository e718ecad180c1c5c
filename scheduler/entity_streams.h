/*
 * The streams that an entity works on: its internal stream, those that it allocated by name, and its shares
 * of streams that came with messages, from wrappers or as the device's default. An entity has one stream id
 * per native stream, so timeline values and live references have one owner.
 *
 * They are taken at first use and released when the operator has stopped. Thread, for all functions: the
 * entity's owner.
 */
#ifndef WR_SCHEDULER_ENTITY_STREAMS_H
#define WR_SCHEDULER_ENTITY_STREAMS_H

#include "streams/streams.h"

struct wr_trace;

#define WR_NO_OWN SIZE_MAX

struct wr_own_stream {
	weir_stream *stream;
	uint64_t of;     /* share: another owner's id that last led to it; 0: none */
	char *name;      /* of weir_context_allocate_stream; else NULL */
	bool used;       /* in this tick: it is fenced even if nothing was enqueued */
	bool ended;      /* the end of the last tick recorded `last` */
	weir_fence last; /* later work on the stream is not fenced yet */
};

struct wr_set_stream {
	size_t output, own;
};

struct wr_own_streams {
	struct wr_own_stream *items;
	size_t count, room;
	size_t named;               /* items[0..named) have a name in profilers */
	size_t current;             /* 1 + index of the internal stream, entity->stream; 0: none yet */
	size_t default_stream;      /* 1 + index of the device's default stream; 0: not requested */
	weir_fence before;          /* end of the last tick that had an internal stream, on that stream */
	bool for_run;               /* the internal stream stays for the run; else for this tick only */
	bool carried;               /* emitted messages carry the internal stream */
	bool entered;               /* in this tick: the internal stream waits for `before` */
	bool partly;                /* in this tick: some wr_input.waited is set */
	struct wr_set_stream *sets; /* of this tick: weir_context_set_stream */
	weir_status failure;        /* of a call that returns no status; the end of the tick returns it */
	size_t set_count, set_room;
};

/*
 * Takes the entity's internal stream from its pool, or the default stream of its device if the plan says so.
 * With no pool or an exhausted one it returns OK and leaves entity->stream NULL. Not for hot paths.
 */
weir_status wr_own_take(weir_entity *entity);
/*
 * Returns the stream of this name, taking it from the pool at the first call. Fails: WEIR_E_BUSY,
 * WEIR_E_UNSUPPORTED.
 */
weir_status wr_own_allocate(weir_entity *entity, const char *name, size_t *out);
weir_status wr_own_default(weir_entity *entity, size_t *out); /* the default stream of its device */
/*
 * The entity's own stream for the native stream of this id; made at the first call. Fails with WEIR_E_CLOSED,
 * without a text, if the id was recycled.
 */
weir_status wr_own_share(weir_entity *entity, uint64_t id, size_t *out);
/* Makes items[own] the internal stream, of this tick or for the run. */
void wr_own_set_internal(weir_entity *entity, size_t own, bool for_run, bool carried);
/* Records a fence for others to wait for; the end of the tick still fences the same work. */
weir_status wr_own_record(struct wr_own_stream *own, weir_fence *out);
/* Queries the device; returns true if all recorded work on all streams is complete. */
bool wr_entity_idle(weir_entity *entity);
void wr_entity_close_streams(weir_entity *entity);
/* Names to the trace the streams that the entity took since the last call. */
void wr_entity_trace_streams(weir_entity *entity, struct wr_trace *trace);

#endif

/*
 * A stream from the inside: its points, its events, its fences; event_ring.c, stream.c and fence.c.
 *
 * Owner: the thread that enqueues on the stream now, the worker of a tick mostly; one at a time, each
 * acquires what the one before wrote (with the entity, or by being given the stream). What is `_Atomic`
 * others read as well; unless a line says otherwise all of it is seq_cst: whoever sees a point complete must
 * not overlook that it holds a reference, and who looks for work must not overlook what was recorded.
 *
 * The functions here take no lock and may ask the device, so none is called under a lock of this room's.
 */
#ifndef WR_STREAMS_STREAM_H
#define WR_STREAMS_STREAM_H

#include "streams/estimate.h"
#include "streams/streams.h"

#define WR_EVENTS 256			/* that a stream has from the beginning */
#define WR_EVENTS_SHARED 16		/* likewise, one that shares another's queue */

struct wr_point {
	void *event;
	_Atomic uint64_t point;	/* whom the event stands for; changed before the event is recorded again */
	_Atomic int64_t at;	/* when it was recorded; relaxed: who reads it looks at `point` afterwards */
	_Atomic bool flag_value;		/* the stream's word was told to come to this very point */
};

/*
 * The events of a stream. A full ring is followed by a larger
 * one; the old ones answer for the points below its first.
 */
struct wr_event_ring {
	struct wr_event_ring *older;
	uint64_t first, size;
	struct wr_point points[];
};

#define WR_WAITED 16

/*
 * Never freed before its system: a fence finds it without a lock. Given back, drained, it is opened again
 * under a new id. One that shares another's queue has that one as its root; every other is its own root.
 */
struct weir_stream {
	/* Written once, before the stream is in the table. */
	struct wr_system *system;
	uint32_t index;			/* in the table */
	struct wr_stream_spec spec;
	struct wr_stream_pool *pool;	/* whose count it gives back when it is closed, or NULL */
	bool wrapped;			/* the native stream is not ours to destroy; a root's */

	/* From id to id: written while it is opened, under system->lock. */
	_Atomic uint64_t id;	/* system's serial << 48 | stream's serial << 16 | index; written last */
	_Atomic(const char *) owner;
	_Atomic(void *) native;
	_Atomic(weir_stream *) root;	/* itself, or whose queue it shares */
	/* of a root: who shares it and is open or not drained; guarded by system->lock */
	uint32_t sharers;
	bool sharing;			/* it is counted at its root; guarded by system->lock */
	_Atomic bool closed;

	/* What was enqueued. Written by the owner. */
	_Atomic(struct wr_event_ring *) ring;	/* released with what is in it */
	_Atomic uint64_t submitted;	/* the last point; goes on from id to id */
	_Atomic bool dirty;		/* work since the last record */
	_Atomic bool flag_after_record;		/* a flag since the last record */
	/* by index of the other stream: the latest point it waits for. Owner alone */
	weir_fence waited[WR_WAITED];
	uint64_t items;			/* that were enqueued by weir's own calls. Owner alone */
	bool begun;			/* by a tick, whose worker holds a live reference. Owner alone */

	/* What is known of it. Written by anybody. */
	_Atomic uint64_t completed;		/* highest point seen complete; only grows */
	_Atomic uint64_t held;	/* until when it holds a live reference, or 0 (S4): point << 1 | only begun */
	_Atomic bool exposed;		/* a root's: somebody may have the native handle, and capture it */
	uint64_t drain_until, drained;	/* the last point when a drain began; the last one seen since. Loop thread */
	uint64_t expected;		/* the loop's signal was armed for this point. Loop thread */
	_Atomic uint32_t inlined;	/* outstanding callbacks that were enqueued on it as on this identity */
	_Atomic uint32_t entering;	/* a root's: threads on their way to enqueue one there (callback.c) */

	/* Its flag. */
	_Atomic(_Atomic uint32_t *) word;	/* or NULL; written by the owner, or while it is being made */
	/* the last point that the word was told to come to; goes on from id to id. Owner */
	_Atomic uint64_t flag_value;
	struct {			/* of whoever looks at the flags */
		/* from a point's record, or the end of the one before, to its end */
		struct wr_estimate work;
		uint64_t point;			/* the last one that was seen to have rung, and when */
		int64_t at;
	} flag_seen;
	struct {			/* of the loop (lost.c), once there is a word */
		uint64_t point;	/* that the word must have come to when a later one is complete */
		int64_t since;			/* when it was found not to, or 0 */
	} flag_missed;
};

/* --- event_ring.c --- */
/* NULL: no memory, or no events. */
struct wr_event_ring *wr_event_ring_make(weir_stream *stream, uint64_t size, uint64_t first);
void wr_event_rings_free(weir_stream *stream);
/* The place of a point that was recorded; it may stand for a later one by now. Getter. Thread: any. */
struct wr_point *wr_stream_point(weir_stream *stream, uint64_t point);
/* True is right or the point is complete. Thread: any. */
bool wr_stream_has_flag(weir_stream *stream, uint64_t point);
/* For a new point. NULL: no memory, or the device failed. Thread: owner. */
struct wr_point *wr_event_ring_place(weir_stream *stream, uint64_t point);

/* --- stream.c. Thread: any --- */
void wr_stream_drop_ref_if_complete(weir_stream *stream);	/* drops its reference if its last point was seen complete */
/* Likewise, complete or not: the run was cut short. */
void wr_stream_drop_ref(weir_stream *stream, struct wr_waker *waker);
bool wr_stream_capturing(weir_stream *stream);	/* what is enqueued goes into a graph of the user's (G3) */
bool wr_stream_over(weir_stream *stream);	/* nothing recorded on it touches memory any more */

/* --- fence.c. Thread: any --- */
/*
 * The point is complete, somebody has seen it; so are all
 * before it. Lets go of the reference if it was the last.
 */
void wr_stream_saw(weir_stream *stream, uint64_t point);
/* Whose it is. OK with NULL: it is complete. Fails: WEIR_E_INVALID: never recorded, or not in this system. */
weir_status wr_fence_find(struct wr_system *system, weir_fence fence, weir_stream **out);
/* No work before it touches memory any more. */
bool wr_fence_over(struct wr_system *system, weir_fence fence);

#endif

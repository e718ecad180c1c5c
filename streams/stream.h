/*
 * The record of a stream, its events and fences. A fence is a value on the timeline of a stream: each record
 * takes the next one.
 *
 * The owner is the thread that enqueues on the stream now, mostly the worker of a tick. There is one at a
 * time, and each acquires what the one before wrote (with the entity, or when the stream is handed to it).
 * Other threads read the `_Atomic` fields, too. They are seq_cst unless a comment says otherwise: a thread
 * that sees a value complete must also see that the stream holds a reference, and a thread that looks for
 * pending work must see what was recorded.
 *
 * The functions here take no lock and may query the device, so they are never called under a lock of this
 * room.
 */
#ifndef WR_STREAMS_STREAM_H
#define WR_STREAMS_STREAM_H

#include "streams/flag.h"
#include "streams/streams.h"

#define WR_EVENTS        256 /* that a new stream has */
#define WR_EVENTS_SHARED 16  /* that a new stream has if it shares another's queue */

/*
 * FLAG: a flag write for the value was enqueued. EARLY: messages were emitted at this value, in the middle of
 * a tick (T12), so later work of the stream says nothing about how long it takes.
 */
enum wr_event_mark { WR_EVENT_FLAG = 1, WR_EVENT_EARLY = 2 };

/* An event of the backend, with the value that it stands for now. */
struct wr_event {
	void *native;
	/* the timeline value for which it was recorded; changed before it is recorded again */
	_Atomic uint64_t value;
	_Atomic int64_t recorded_at; /* when it was recorded: stored after `value`, read before it */
	/*
	 * By the poller: when it saw the flag of the value written, and how long before it last saw that it
	 * was not. Less than recorded_at: it did not look, or speaks of a value that the event stood for
	 * before. Relaxed: written before the value is noted as complete.
	 */
	_Atomic int64_t seen_at;
	_Atomic uint32_t seen_late;
	_Atomic uint8_t marks; /* enum wr_event_mark, of this very value */
};

/*
 * The events of a stream. When the ring is full a larger one is
 * made; the older rings keep the values below its first.
 */
struct wr_event_ring {
	struct wr_event_ring *older;
	uint64_t first, size;
	struct wr_event events[];
};

#define WR_WAITED 16

/*
 * Never freed before its system, so that a fence finds it without a lock. Once closed and drained it is
 * opened again under a new id. The root of a stream that shares another's queue is that other; else it is
 * itself.
 */
struct weir_stream {
	/* Written once, before the stream is in the table. */
	struct wr_system *system;
	uint32_t index; /* in the table */
	struct wr_stream_spec spec;
	struct wr_stream_pool *pool; /* that it returns to when it is closed, or NULL */
	bool wrapped;                /* of a root: the native stream is the caller's */
	bool kept;                   /* of a root: its handle was given out in an earlier graph */
	_Atomic uint32_t users;      /* entities that the program gave it as their current stream */

	/* Written each time it is opened, under system->lock. */
	_Atomic uint64_t id; /* system's serial << 48 | stream's serial << 16 | index; written last */
	_Atomic(const char *) owner;
	_Atomic(void *) native;
	_Atomic(weir_stream *) root; /* itself, or the stream whose queue it shares */
	/* of a root: number of streams that share it and are open or not drained; guarded by system->lock */
	uint32_t sharers;
	bool sharing; /* it is counted in its root's sharers; guarded by system->lock */
	_Atomic bool closed;

	/* What was enqueued. Written by the owner. */
	_Atomic(struct wr_event_ring *) ring; /* stored with release, with its contents */
	_Atomic uint64_t submitted;           /* the last value; does not restart with a new id */
	_Atomic bool dirty;                   /* work was enqueued since the last record */
	_Atomic bool flag_after_record;       /* a flag write was enqueued since the last record */
	_Atomic bool flag_is_last;            /* when it was closed, a flag write alone was not recorded */
	/* by index of the other stream: the latest fence that this one waits for. Owner only */
	weir_fence waited[WR_WAITED];
	uint64_t operations; /* operations enqueued by weir's own calls. Owner only */
	/* a bit for each stream that it was told to wait for, ordered already or not. Owner only */
	uint64_t waits;
	/* where the owner enqueues: `native`, or in a capture a private stream (capture.c). Owner only */
	void *queue;
	struct wr_capture *capture; /* that is under way, or NULL. Owner only */
	bool queue_given;           /* in this capture, as a native handle. Owner only */
	const char *refused;        /* in this capture: why its end fails; a literal, or NULL. Owner only */
	bool in_tick;               /* a tick uses it, whose worker holds a live reference. Owner only */
	struct wr_span *span;       /* of its work in this tick, or NULL (T15). Owner only */

	/* What is known of its progress. Written by any thread. */
	_Atomic uint64_t completed; /* highest value seen complete; only grows */
	/* the value until which it holds a live reference, or 0 (S4): value << 1 | IN_TICK */
	_Atomic uint64_t live_until;
	_Atomic bool native_given; /* of a root: the native handle was given out, so it may be captured */
	/*
	 * The last value that a drain's time depends on: recorded by a tick before the drain, or in it by one
	 * that took a message. Written by the owner. Relaxed: the loop that reads it late looks again.
	 */
	_Atomic uint64_t drain_until;
	uint64_t drained;    /* the last value that the loop has seen complete in a drain. Loop thread */
	uint64_t kick_value; /* the loop's signal was armed for this value. Loop thread */
	weir_fence
		wanted; /* the next one that refused memory waits for, or {0}; within a turn. Loop thread */
	_Atomic uint32_t inline_callbacks; /* outstanding inline callbacks enqueued through this stream */
	_Atomic uint32_t arming_inline;    /* of a root: threads about to enqueue an inline callback */

	/* Its flag. */
	_Atomic(_Atomic uint32_t *) word; /* or NULL; written by the owner, or at creation */
	/* the last value for which a flag write was enqueued; does not restart with a new id. Owner */
	_Atomic uint64_t flag_value;
	/* A write was refused, or the watch missed one: `auto` uses callbacks. Until it is opened again. */
	_Atomic bool flagless;
	struct { /* of the poller */
		/* time from a value's record, or the end of the value before, to its end */
		struct wr_estimate work, early_work; /* early: of values marked EARLY */
		uint64_t value;                      /* the last one whose flag was seen written, and when */
		int64_t at;
	} flag_seen;
	struct {                /* of the watch (system.c), once there is a word */
		uint64_t value; /* whose flag must be written once a later value is complete */
		int64_t since;  /* when the flag was found missing, or 0 */
	} flag_missed;
};

/* --- fences. Thread: any, where nothing else is said --- */
/* Returns NULL without memory or events. */
struct wr_event_ring *wr_event_ring_make(weir_stream *stream, uint64_t size, uint64_t first);
void wr_event_rings_free(weir_stream *stream);
/* The event of a value; may stand for a later value by now. Thread: any. */
struct wr_event *wr_stream_event(weir_stream *stream, uint64_t value);
/*
 * Returns true if a flag write was enqueued for the value; may be wrong only if it is complete. Thread: any.
 */
bool wr_stream_has_flag(weir_stream *stream, uint64_t value);
/* Returns true if messages were emitted at the value (T12); may be wrong only if it is complete. Thread: any.
 */
bool wr_stream_is_early(weir_stream *stream, uint64_t value);

/*
 * Notes that the value, and so all before it, was seen complete.
 * Drops the stream's live reference if it was the last value.
 */
void wr_stream_note_complete(weir_stream *stream, uint64_t value);
/*
 * Finds the stream of a fence; NULL if the fence is complete.
 * Fails: WEIR_E_INVALID: never recorded, or not in this system.
 */
weir_status wr_fence_find(struct wr_system *system, weir_fence fence, weir_stream **out);
/*
 * Calls fn(stream, value, arg) for each fence that is not known to be complete; ends with what fails. Thread:
 * any.
 */
weir_status wr_fences_each_pending(struct wr_system *system, const weir_fence *fences, size_t n,
				   weir_status (*fn)(weir_stream *stream, uint64_t value, void *arg),
				   void *arg);
/*
 * The stream at an index, which is below system->count or taken from
 * a fence; NULL if there is none.
 */
weir_stream *wr_stream_at(struct wr_system *system, uint32_t index);
/* Returns true if no work before the fence touches memory any more. */
bool wr_fence_may_free(struct wr_system *system, weir_fence fence);

/* --- spans. Thread: owner --- */
/*
 * Around a call that enqueues work on a stream with a span. wr_span_enter begins the span if this is the
 * first such call, and returns the time.
 */
int64_t wr_span_enter(weir_stream *stream);
void wr_span_leave(weir_stream *stream, int64_t since);

/* --- progress. Thread: any --- */
/* Drops its live reference if its last value was seen complete. */
void wr_stream_drop_ref_if_complete(weir_stream *stream);
/* Drops its live reference, complete or not: the run was cut short. */
void wr_stream_drop_ref(weir_stream *stream, struct wr_waker *waker);
/* Returns true if nothing enqueued on it touches memory any more. Thread: the one that destroys the system.
 */
bool wr_stream_may_free(weir_stream *stream);

#endif

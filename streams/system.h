/* What the files of this room share: a system and its streams from the inside. */
#ifndef WR_STREAMS_SYSTEM_H
#define WR_STREAMS_SYSTEM_H

#include "base/thread.h"
#include "streams/backend.h"
#include "streams/estimate.h"
#include "streams/token.h"

#define WR_BOUND 256			/* outstanding tokens a device (callback) or stream (inline), G2 */
#define WR_EVENTS 256			/* events that a stream has from the beginning */
#define WR_EVENTS_SHARED 16		/* likewise, one that shares another's queue */
#define WR_PAGE 256			/* streams a page of the table */
#define WR_PAGES 256
#define WR_MEMORY_CLASSES 192

/* --- streams --- */

struct wr_point {
	void *event;
	_Atomic uint64_t point;		/* whom the event stands for; changed before the event is recorded again */
	_Atomic int64_t at;		/* when it was recorded */
	_Atomic bool rung;		/* the stream's word was told to come to this very point */
};

/* The events of a stream. A full ring is followed by a larger one; the old ones answer for the points below its first. */
struct wr_ring {
	struct wr_ring *older;
	uint64_t first, size;
	struct wr_point points[];
};

#define WR_WAITED 16

/*
 * Never freed before its system: a fence finds it without a lock. Given back, drained, it is opened again under a new id. One that shares
 * another's queue has that one as its root; every other is its own root.
 */
struct weir_stream {
	struct wr_system *system;
	_Atomic uint64_t id;		/* system's serial << 48 | stream's serial << 16 | index */
	uint32_t index;
	int device, priority;
	unsigned flags;
	bool wrapped;			/* the native stream is not ours to destroy; a root's */
	struct wr_partition *partition;
	struct wr_stream_pool *pool;	/* whose count it gives back when it is closed, or NULL */
	_Atomic(weir_stream *) root;	/* itself, or whose queue it shares; changed under system->lock, from id to id */
	uint32_t sharers;		/* of a root: who shares it and is open or not drained; guarded by system->lock */
	bool sharing;			/* it is counted at its root; guarded by system->lock */
	_Atomic bool closed;
	_Atomic(const char *) owner;
	_Atomic(void *) native;		/* changes only from id to id */
	_Atomic(struct wr_ring *) ring;	/* written by the owner */
	_Atomic uint64_t recorded;	/* the last point, written by the owner; goes on from id to id */
	_Atomic uint64_t seen;		/* highest point seen complete; only grows */
	_Atomic uint64_t held;		/* until when it holds a live reference, or 0 (S4): point << 1 | only begun */
	_Atomic bool dirty;		/* work since the last record */
	_Atomic bool trailing;		/* a host callback since the last record */
	_Atomic bool exposed;		/* a root's: somebody may have the native handle, and capture it */
	bool begun;			/* by a tick, whose worker holds a live reference. Owner */
	uint64_t expected;		/* the loop's signal was armed for this point. Loop thread */
	_Atomic uint32_t inlined;	/* outstanding tokens of its own; changed under signals.lock */
	weir_fence waited[WR_WAITED];	/* by index of the other stream: the latest point it waits for. Owner */
	_Atomic(_Atomic uint32_t *) word;	/* its doorbell, or NULL; written by the owner, or while it is being opened */
	_Atomic uint64_t rung;		/* the last point that the word was told to come to; goes on from id to id. Owner */
	struct {			/* of whoever looks at the doorbells */
		struct wr_estimate work;	/* from a point's record, or the end of the one before, to its end */
		uint64_t point;			/* the last one that was seen to have rung, and when */
		int64_t at;
	} rang;
	struct {			/* of the loop (lost.c) */
		uint64_t point;			/* that the word must have come to when a later one is complete */
		int64_t since;			/* when it was found not to, or 0 */
	} missed;
};

/* --- signals --- */

/* A native stream that carries one signal at a time, so that none waits for another's producer. */
struct wr_carrier {
	struct wr_carrier *next;
	void *native, *event;		/* the event: recorded when the signal was given up, to see its end */
	int device;
	bool unmarked;			/* given up, and the record of the event was refused */
	_Atomic uint32_t *word;		/* told to count the signals, before the callback; NULL: the device cannot, or it was made in mid-run */
	uint32_t rung;
};

/* One armed signal. Fields but `next`, `token` are written while it is free or under signals.lock, before the token is armed. */
struct wr_signal {
	struct wr_sink sink;
	struct wr_signal *next;		/* free list (signals.lock), fired list */
	struct wr_system *system;
	struct wr_waker *waker;
	uint32_t slot, entity;
	_Atomic uint64_t token;		/* 0: not armed */
	struct wr_carrier *carrier;	/* NULL: inline */
	weir_stream *stream;		/* inline: whose bound; expected: who is looked at when it has fired */
	int device;
	bool bounded;			/* counts against a bound */
	bool proven;			/* when its callback comes the carrier's word is proof that the fences are complete */
	weir_fence *fences;		/* what it waits for; guarded by signals.lock */
	size_t count, room;
	int64_t armed_at, complete_at;	/* guarded by signals.lock */
	_Atomic wr_token enqueued;	/* the latest whose enqueueing has returned */
	bool doorbell;			/* it is in the poller's hands until it has ended; who else ends its token says so last: */
	_Atomic wr_token ended;
	wr_token probed, late;		/* carrier's event recorded behind it; told that it is late. Loop thread */
};

#define WR_SIGNALS 64
struct wr_signals_page {
	struct wr_signals_page *older;
	struct wr_signal at[WR_SIGNALS];
};

struct wr_refused {
	struct wr_refused *next;
	uint32_t entity;
	int device;
};

struct wr_signals {
	struct wr_mutex lock;
	uint32_t bound;				/* WR_BOUND; tests lower it */
	_Atomic(struct wr_signals_page *) pages;
	struct wr_signal *free;			/* guarded by lock, like the rest unless it is atomic */
	struct wr_carrier *carriers, *limbo;	/* ready; given up with a signal that has not fired */
	uint32_t *outstanding;			/* per device, against the bound */
	struct wr_refused *first, **end, *spare;	/* the FIFO */
	_Atomic(struct wr_signal *) fired;	/* a stack that the loop empties */
	_Atomic uint64_t pending;		/* armed and not fired */
	_Atomic uint64_t stale;
	uint64_t strays;			/* of the process when the system was made */
};

/* --- doorbells --- */

#define WR_WORDS 1024		/* a page; each has a cache line of its own */
#define WR_WORD_SPAN (UINT64_C(1) << 30)	/* a word that is further behind says nothing: the points would come round to it */
struct wr_words {
	struct wr_words *older;
	struct {
		_Alignas(64) _Atomic uint32_t value;
	} *at;				/* pinned */
};

/* What the poller watches: one fence of a signal at a time. */
struct wr_bell {
	_Atomic uint32_t *word;
	uint32_t target;
	uint32_t fence;			/* its number in the signal */
	weir_stream *stream;
	uint64_t point;
	struct wr_signal *signal;
	wr_token token;
	struct wr_waiting wait;
	int64_t made;			/* when the point was recorded, or 0: not known any more */
	int64_t pending_at;		/* when it was last known not to be complete, or 0 */
};

struct wr_bells {
	struct wr_mutex lock;
	struct wr_words *words;		/* the newest page; guarded by lock */
	uint32_t used;			/* of that page; guarded by lock */
	_Atomic bool on;		/* streams get their words when they are made */
	_Atomic(struct wr_signal *) inbox;	/* armed, and not yet in the list */
	_Atomic size_t armed;		/* in the inbox or the list */
	_Atomic uint64_t version;
	_Atomic bool looking;		/* somebody looks: the list is his */
	struct wr_bell *list;
	size_t count, room;
	struct wr_estimate lateness;	/* of sleeps. Poller */
	_Atomic int64_t margin;
};

/* --- memory --- */

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
	struct wr_mutex lock;
	struct wr_block *free[WR_MEMORY_CLASSES];	/* guarded by lock, like the rest */
	struct wr_block *spare;			/* nodes of blocks that are out */
	struct wr_block *lent;			/* of blocks that are out in place of smaller ones */
	struct wr_chunk *chunks;
	size_t chunk;				/* bytes of the next one */
};

/* --- the system --- */

struct wr_page {
	_Atomic(weir_stream *) streams[WR_PAGE];
};

struct wr_system {
	const struct wr_backend *backend;
	void *native;			/* the backend's */
	char where[160];
	int devices;
	uint64_t serial;
	struct wr_mutex lock;		/* opening and closing streams */
	_Atomic(struct wr_page *) table[WR_PAGES];
	_Atomic uint32_t count;		/* streams in the table */
	_Atomic uint32_t serials;	/* streams opened */
	_Atomic uint32_t lying;		/* closed and not given out again: where there are none nobody looks for them */
	uint32_t looked;		/* where the last look for one ended; guarded by the lock */
	_Atomic(weir_stream *) *defaults;	/* a device each: stands for its default stream, made at first use */
	_Atomic(struct wr_stream_pool *) pools;
	_Atomic(struct wr_partition *) partitions;
	_Atomic(struct wr_waker *) waker;
	_Atomic uint32_t inside;	/* foreign threads that may touch the waker; see wr_system_enter */
	_Atomic bool resting;		/* the watch sleeps until something is added */
	_Atomic bool running;		/* between two wr_system_run */
	_Atomic bool failing, failed, hurried;
	char failure[1024], accused[128];	/* written once, before `failed` */
	struct wr_arena *arenas;	/* pinned host memory, then one a device */
	struct wr_signals signals;
	struct wr_bells bells;
	struct {
		struct wr_mutex lock;
		struct wr_retired *listed, *ready;	/* ready: complete, a destructor must run. Guarded by lock */
		uint64_t forfeits;			/* guarded by lock */
		_Atomic size_t count, ready_count;
	} retire;
	int64_t warned;			/* that too many streams are busy. Loop thread */
	struct wr_system *abandoned;	/* the list of those whose memory a hung device may touch */
};

/*
 * Whoever is not known to be a worker or the loop brackets what it does with the waker: detach waits until all have left.
 * NULL: nobody is attached (leave all the same).
 */
struct wr_waker *wr_system_enter(struct wr_system *system);
void wr_system_leave(struct wr_system *system);
void wr_system_added(struct wr_system *system);		/* kicks if the watch rests */
void wr_system_fail(struct wr_system *system, const char *what);	/* the device is lost (E2); `what` may be last_error */
weir_status wr_system_dead(struct wr_system *system);			/* WEIR_E_DEVICE with the text */
weir_status wr_system_note(struct wr_system *system, weir_status status);	/* passes it on; WEIR_E_DEVICE fails the system */
void wr_system_sleep_until(struct wr_system *system, bool (*done)(void *arg), void *arg, int64_t until);	/* polls */

/*
 * "auto", after cuda answered `status`: the host where it has no device (UNSUPPORTED). One that is there and cannot be used is an
 * error: a run that was meant for it must not crawl along on the host unnoticed.
 */
weir_status wr_system_open_or_host(struct wr_system *system, weir_status status, const struct wr_system_options *options);

/* failure.c */
bool wr_system_lost(struct wr_system *system);		/* it failed, and nothing touches any memory any more */
void wr_failure_describe(struct wr_system *system, const char *what);

/* table.c */
weir_status wr_table_init(struct wr_system *system);
void wr_table_finish(struct wr_system *system);			/* frees all streams */
weir_stream *wr_stream_at(struct wr_system *system, uint32_t index);	/* getter */
/* wr_stream_open, of those that a pool has made; close then counts one less at the pool. */
weir_status wr_stream_open_in(struct wr_system *system, const struct wr_stream_spec *spec, struct wr_stream_pool *pool,
			      const char *owner, weir_stream **out);

/* partition.c, pool.c */
void *wr_partition_native(const struct wr_partition *partition);	/* the backend's; of NULL: NULL */
void wr_partitions_finish(struct wr_system *system);
void wr_stream_pool_gave_back(struct wr_stream_pool *pool);
void wr_stream_pools_finish(struct wr_system *system);

/* ring.c */
struct wr_ring *wr_ring_make(weir_stream *stream, uint64_t size, uint64_t first);
void wr_rings_free(weir_stream *stream);
struct wr_point *wr_stream_point(weir_stream *stream, uint64_t point);
bool wr_stream_rung(weir_stream *stream, uint64_t point);	/* true is right or the point is complete */
struct wr_point *wr_ring_place(weir_stream *stream, uint64_t point);	/* for a new point; NULL: no memory, or the device failed. Owner */

/* stream.c */
void wr_stream_let_go(weir_stream *stream);		/* drops its reference if its last point was seen complete */
void wr_stream_forfeit(weir_stream *stream, struct wr_waker *waker);

bool wr_stream_capturing(weir_stream *stream);		/* what is enqueued goes into a graph of the user's (G3) */
bool wr_stream_over(weir_stream *stream);		/* nothing recorded on it touches memory any more */

/* fence.c */
void wr_stream_saw(weir_stream *stream, uint64_t point);
weir_status wr_fence_find(struct wr_system *system, weir_fence fence, weir_stream **out);	/* OK with NULL: it is complete */
bool wr_fence_over(struct wr_system *system, weir_fence fence);	/* no work before it touches memory any more */

/* memory.c */
weir_status wr_memory_init(struct wr_system *system);
void wr_memory_finish(struct wr_system *system);

/* signal.c */
weir_status wr_signals_init(struct wr_system *system);
void wr_signals_finish(struct wr_system *system);
void wr_signals_fail(struct wr_system *system, struct wr_waker *waker);
void wr_signals_forfeit(struct wr_system *system, struct wr_waker *waker);
void wr_signals_revoke(struct wr_system *system);
bool wr_signals_inside(struct wr_system *system);
void wr_signals_give_back(struct wr_system *system);
bool wr_signals_drained(struct wr_system *system);
weir_status wr_signal_expect(weir_stream *stream);	/* kick only; once for its last point */
void wr_signals_offer(struct wr_system *system, int device);	/* pokes refused ones, as many as there are places */
bool wr_signals_refuse(struct wr_system *system);	/* somebody stands in the FIFO */
weir_status wr_signals_look(struct wr_system *system, int64_t now);	/* finds lost callbacks */

/* bell.c */
weir_status wr_bells_init(struct wr_system *system);
void wr_bells_finish(struct wr_system *system);
/* A word that is 0, in memory that the device writes; NULL: it cannot, or there is none. Not on hot paths: it is tried. Fails: WEIR_E_DEVICE. */
weir_status wr_bell_word(struct wr_system *system, int device, _Atomic uint32_t **out);
weir_status wr_bell_open(weir_stream *stream);	/* gives it a word if doorbells are on */
void wr_bells_reap(struct wr_system *system);	/* all tokens were revoked: takes back what has ended. Nobody looks any more */
weir_status wr_bells_missed(struct wr_system *system, int64_t now);	/* lost.c: finds lost rings */

/* retire.c */
weir_status wr_retire_init(struct wr_system *system);
void wr_retire_finish(struct wr_system *system);
bool wr_retire_look(struct wr_system *system, bool destructors);	/* the watch's: kicks nobody. True: some are left */
void wr_retire_forfeit(struct wr_system *system, struct wr_waker *waker);

#endif

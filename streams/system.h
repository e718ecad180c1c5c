/*
 * The record of a system: one backend with its devices, and everything made from it. Shared by the files of
 * this room; each part has a header of its own.
 */
#ifndef WR_STREAMS_SYSTEM_H
#define WR_STREAMS_SYSTEM_H

#include "base/thread.h"
#include "streams/backend.h"
#include "streams/flag.h"
#include "streams/poller.h"
#include "streams/signal.h"
#include "streams/stream.h"
#include "streams/table.h"

struct wr_deferred_list {
	struct wr_deferred_free *first, *last;
};

struct wr_system {
	const struct wr_backend *backend; /* this and the next five: written once, at creation */
	void *native;                     /* the backend's own record */
	char where[160];
	int devices;
	uint64_t serial;
	struct wr_arena *arenas; /* pinned host memory, then one per device */

	struct wr_mutex lock; /* for opening and closing streams; only table.c takes it */
	_Atomic(struct wr_page *) table[WR_PAGES];
	_Atomic uint32_t count;           /* streams in the table */
	_Atomic uint32_t serials;         /* streams opened */
	_Atomic uint32_t closed_count;    /* closed streams to reuse; if 0, the table is not searched */
	uint32_t search_from;             /* where the last search for one ended; guarded by lock */
	_Atomic(weir_stream *) *defaults; /* per device: its default stream, wrapped at first use */
	_Atomic(struct wr_stream_pool *) pools;
	_Atomic(struct wr_partition *) partitions;

	_Atomic(struct wr_waker *) waker;
	_Atomic uint32_t waker_users; /* foreign threads that may touch the waker; see wr_waker_enter */
	_Atomic bool running;         /* a run is on (wr_system_set_running) */
	_Atomic bool draining;        /* and is drained (wr_system_drain); relaxed: a hint */
	_Atomic bool watch_sleeps;    /* the watch sleeps until something is added */
	bool crowd_warned;            /* it was logged that too many streams are busy. Loop thread */

	_Atomic bool failing, failed; /* see device.c */
	/* called once, by the thread that sets `failing`: writes the report, sets `failed`, ends all signals
	 */
	void (*on_failure)(struct wr_system *system, const char *what);
	char failure[1024], accused[128]; /* written once, before `failed` */
	_Atomic bool short_timeout;
	struct wr_system *abandoned; /* next in the list of systems whose memory a hung device may touch */

	_Atomic(struct wr_executable *) executables; /* dropped; freed with the system (capture.c) */
	_Atomic(struct wr_span *) spans;             /* dropped before they ended; likewise (span.c) */

	struct wr_signals signals;
	struct wr_flag_words flag_words;
	struct wr_poller poller;
	struct {
		struct wr_mutex lock;
		/* The next four: guarded by lock. Ready: complete, but the destructor needs a worker */
		struct wr_deferred_list listed, ready;
		uint32_t numbers;
		uint64_t ref_drops;
		_Atomic size_t count, ready_count;
	} deferred_frees;
};

/* --- the waker of the run --- */
/*
 * Threads other than a worker or the loop use the waker only between enter and leave; detach waits until all
 * have left. Returns NULL if no run is attached (leave must be called all the same). Thread: any.
 */
static inline struct wr_waker *wr_waker_enter(struct wr_system *system)
{
	wr_fetch_add(&system->waker_users, 1);
	return wr_load(&system->waker);
}

static inline void wr_waker_leave(struct wr_system *system)
{
	wr_fetch_sub(&system->waker_users, 1);
}

/* Kicks the loop if the watch (watch.c) sleeps: there is something to watch. Thread: any. */
static inline void wr_watch_wake(struct wr_system *system)
{
	struct wr_waker *waker;

	if (!wr_load(&system->watch_sleeps) || !wr_exchange(&system->watch_sleeps, false))
		return;
	waker = wr_waker_enter(system);
	if (waker)
		waker->kick(waker);
	wr_waker_leave(system);
}

/* --- capture.c --- */
void wr_executables_finish(struct wr_system *system); /* no launch runs any more */

/* --- span.c --- */
void wr_spans_finish(struct wr_system *system); /* all work of the device has ended */

/* --- deferred_free.c --- */
weir_status wr_deferred_frees_init(struct wr_system *system);
void wr_deferred_frees_finish(struct wr_system *system);
/* For the loop: does not kick; a turn that calls this arms kicks after it. */
void wr_deferred_frees_process(struct wr_system *system);
/*
 * Sets `wanted` of the streams that memory waits for which an entity was refused. Returns true if some of
 * that memory waits for nothing any more: process the list again. Thread: the loop.
 */
bool wr_deferred_frees_note_wanted(struct wr_system *system);
void wr_deferred_frees_drop_refs(struct wr_system *system, struct wr_waker *waker);

#endif

/*
 * The record of a system: one backend with its devices, and everything made from it. Shared by the files of
 * this room; each part has a header of its own. Then the calls of the device.
 */
#ifndef WR_STREAMS_SYSTEM_H
#define WR_STREAMS_SYSTEM_H

#include "base/clock.h"
#include "base/thread.h"
#include "sim/simulation.h"
#include "streams/backend.h"
#include "streams/flag.h"
#include "streams/pool.h"
#include "streams/promise.h"
#include "streams/signal.h"
#include "streams/stream.h"
#include "streams/streams.h"

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

	struct wr_mutex lock; /* for opening and closing streams; only pool.c takes it */
	_Atomic(struct wr_page *) table[WR_PAGES];
	_Atomic uint32_t count;           /* streams in the table */
	_Atomic uint32_t serials;         /* streams opened */
	_Atomic uint32_t closed_count;    /* closed streams to reuse; if 0, the table is not searched */
	uint32_t search_from;             /* where the last search for one ended; guarded by lock */
	_Atomic(weir_stream *) *defaults; /* per device: its default stream, wrapped at first use */
	_Atomic(struct wr_stream_pool *) pools;
	_Atomic(struct wr_partition *) partitions;

	_Atomic int64_t noted_now; /* for threads outside of its simulated world: see wr_system_now */
	_Atomic(struct wr_waker *) waker;
	_Atomic uint32_t waker_users; /* foreign threads that may touch the waker; see wr_waker_enter */
	_Atomic bool running;         /* a run is on (wr_system_set_running) */
	_Atomic bool draining;        /* and is drained (wr_system_drain); relaxed: a hint */
	_Atomic bool watch_sleeps;    /* the watch sleeps until something is added */
	bool crowd_warned;            /* it was logged that too many streams are busy. Loop thread */

	_Atomic bool failing, failed;     /* see system.c, the device */
	char failure[1024], accused[128]; /* written once, before `failed` */
	_Atomic bool short_timeout;
	struct wr_system *abandoned; /* next in the list of systems whose memory a hung device may touch */

	_Atomic(struct wr_executable *) executables; /* dropped; freed with the system (capture.c) */
	_Atomic(struct wr_span *) spans;             /* dropped before they ended; likewise */

	struct wr_signals signals;
	struct wr_flag_words flag_words;
	struct wr_poller poller;
	struct wr_promises promises;
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

/* Kicks the loop if the watch sleeps: there is something to watch. Thread: any. */
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

/* As wr_system_now. */
static inline int64_t wr_device_now(struct wr_system *system)
{
	bool outside = system->backend->enter && !wr_sim_current();

	return outside ? wr_load_relaxed(&system->noted_now) : wr_now();
}

/* --- captures --- */
void wr_executables_finish(struct wr_system *system); /* no launch runs any more */

/* --- spans --- */
void wr_spans_finish(struct wr_system *system); /* all work of the device has ended */

/* --- deferred frees --- */
weir_status wr_deferred_frees_init(struct wr_system *system);
void wr_deferred_frees_finish(struct wr_system *system);
/* For the loop: does not kick; a turn that calls this arms kicks after it. */
void wr_deferred_frees_process(struct wr_system *system);
/*
 * Sets `wanted` of the streams that memory waits for which an entity was refused. Returns true if some of
 * that memory waits for nothing any more: process the list again. Thread: the loop.
 */
bool wr_deferred_frees_note_wanted(struct wr_system *system);
/* Returns true if some memory is known to wait for nothing any more. Thread: the loop. */
bool wr_deferred_frees_any_complete(struct wr_system *system);
void wr_deferred_frees_drop_refs(struct wr_system *system, struct wr_waker *waker);

/*
 * === the device ===
 *
 * Every call through the backend's table, with its contract (backend.h), and the system's failure.
 *
 * A function that returns a status fails the system before it returns WEIR_E_DEVICE, so the failure is known
 * even if the caller ignores the status. No function takes a lock, and callers hold none: the device may
 * block, and a failure pokes entities. Thread: any.
 */

/*
 * For "auto", after cuda returned `status`: opens the host backend if there is no device (UNSUPPORTED). A
 * device that exists but cannot be used is an error, so that a run does not silently use the slow host.
 */
weir_status wr_device_open_or_host(struct wr_system *system, weir_status status,
				   const struct wr_system_options *options);

/* --- failure --- */
/* Marks the device as lost (E2); `what` may be last_error. Returns once the report is written. */
void wr_system_fail(struct wr_system *system, const char *what);
/* WEIR_E_DEVICE, with the text */
weir_status wr_system_failure_status(struct wr_system *system);

/* --- the device --- */
/* Fails: WEIR_E_DEVICE: the system failed; WEIR_E_INVALID: no such device. */
weir_status wr_device_check(struct wr_system *system, int device);
weir_status wr_device_alloc(struct wr_system *system, int device, size_t bytes, void **out);
void wr_device_release(struct wr_system *system, int device, void *memory);
/* only if the backend has partitions_create */
weir_status wr_device_partitions_create(struct wr_system *system, const struct wr_partitions_spec *spec,
					void **out, uint32_t *sms);
void wr_device_partition_destroy(struct wr_system *system, void *partition);

/* --- streams and events --- */
/* `partition` is the backend's; spec->partition is not read */
weir_status wr_device_stream_create(struct wr_system *system, const struct wr_stream_spec *spec,
				    void *partition, void **out);
weir_status wr_device_stream_default(struct wr_system *system, int device, void **out);
void wr_device_stream_destroy(struct wr_system *system, void *stream);
void wr_device_stream_keep(struct wr_system *system, const struct wr_stream_spec *spec, void *stream);
void *wr_device_stream_again(struct wr_system *system, const struct wr_stream_spec *spec);
bool wr_device_capturing(struct wr_system *system, int device, void *stream);
void wr_device_end_capture(struct wr_system *system, int device, void *stream);
weir_status wr_device_event_create(struct wr_system *system, int device, void **out);
void wr_device_event_destroy(struct wr_system *system, void *event);
weir_status wr_device_record(struct wr_system *system, int device, void *stream, void *event);
weir_status wr_device_query(struct wr_system *system, void *event);
weir_status wr_device_wait(struct wr_system *system, int device, void *stream, void *event);

/* --- work --- */
weir_status wr_device_launch(struct wr_system *system, int device, void *stream, const weir_kernel *kernel,
			     const void *arguments, size_t bytes);
weir_status wr_device_copy(struct wr_system *system, int device, void *stream, void *to, const void *from,
			   size_t bytes);
/* Several rows of at least one byte each; the strides were checked. */
weir_status wr_device_copy_rows(struct wr_system *system, int device, void *stream, const weir_copy *copy);
/* *out: a copy from or to this address makes the calling thread wait; always false without CUDA. */
weir_status wr_device_pageable(struct wr_system *system, const void *memory, bool *out);
weir_status wr_device_call(struct wr_system *system, int device, void *stream, void (*fn)(void *arg),
			   void *arg);
/*
 * All of a signal: the wait and the flag, if the backend does not do them with the call, then the rest. A
 * flag that cannot be written is none.
 */
weir_status wr_device_prepare(struct wr_system *system, int device, void *stream,
			      const struct wr_firing *firing);
weir_status wr_device_signal(struct wr_system *system, int device, void *stream,
			     const struct wr_firing *firing);
/* Fails: WEIR_E_UNSUPPORTED: the device (named) cannot. */
weir_status wr_device_can_write_flag(struct wr_system *system, int device);
weir_status wr_device_write_flag(struct wr_system *system, int device, void *stream, _Atomic uint32_t *word,
				 uint32_t value);

/* --- captures and graphs --- */
/* Returns true if the device has graphs; the others are called only then. */
bool wr_device_captures(const struct wr_system *system);
weir_status wr_device_capture_begin(struct wr_system *system, int device, void *stream, void **capture);
weir_status wr_device_capture_order(struct wr_system *system, void *capture, void *before, void *after);
weir_status wr_device_capture_end(struct wr_system *system, void *capture, void **graph);
size_t wr_device_graph_items(const struct wr_system *system, const void *graph);
weir_status wr_device_graph_launch(struct wr_system *system, int device, void *stream, void *graph);
void wr_device_graph_destroy(struct wr_system *system, void *graph);
bool wr_device_graph_differs(struct wr_system *system, const void *graph, const void *other, char *what,
			     size_t room);

/* --- timers --- */
/* Returns true if the device has timers; the others are called only then. */
bool wr_device_has_timers(const struct wr_system *system);
weir_status wr_device_timer_create(struct wr_system *system, int device, void **out);
void wr_device_timer_destroy(struct wr_system *system, void *timer);
weir_status wr_device_timer_record(struct wr_system *system, int device, void *stream, void *timer);
weir_status wr_device_timer_read(struct wr_system *system, int device, void *begin, void *end, int64_t *begun,
				 int64_t *ended);

/* --- waiting --- */
/* Returns true if the system is in a simulated world and the caller is not. Always false on real devices. */
bool wr_device_outside(const struct wr_system *system);
/*
 * Runs fn where it may block, on a fiber of the simulated world, else on the calling thread; returns what fn
 * returns. Fails: WEIR_E_DEADLOCK: the world is broken and did not run fn.
 */
weir_status wr_device_enter_call(struct wr_system *system, weir_status (*fn)(void *arg), void *arg);
/*
 * Sleeps until done(arg), which is called from time to time, returns
 * true, or until `until`. Thread: any that may block, so no worker.
 */
void wr_system_sleep_until(struct wr_system *system, bool (*done)(void *arg), void *arg, int64_t until);

#endif

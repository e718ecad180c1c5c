/*
 * A system from the inside: one backend with its devices, and all that is made of it. What the files of this
 * room share; each of its parts has a header of its own.
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

struct wr_system {
	const struct wr_backend *backend;	/* this and the next five: written once, while it is made */
	void *native;			/* the backend's */
	char where[160];
	int devices;
	uint64_t serial;
	struct wr_arena *arenas;	/* pinned host memory, then one a device */

	struct wr_mutex lock;		/* giving streams out; see table.c, which alone takes it */
	_Atomic(struct wr_page *) table[WR_PAGES];
	_Atomic uint32_t count;		/* streams in the table */
	_Atomic uint32_t serials;	/* streams opened */
	/* closed and not given out again: where there are none nobody looks for them */
	_Atomic uint32_t lying;
	uint32_t looked;		/* where the last look for one ended; guarded by the lock */
	/* a device each: stands for its default stream, made at first use */
	_Atomic(weir_stream *) *defaults;
	_Atomic(struct wr_stream_pool *) pools;
	_Atomic(struct wr_partition *) partitions;

	_Atomic(struct wr_waker *) waker;
	_Atomic uint32_t inside;	/* foreign threads that may touch the waker; see wr_system_enter */
	_Atomic bool running;		/* between two wr_system_run */
	_Atomic bool resting;		/* the watch sleeps until something is added */
	int64_t warned;			/* that too many streams are busy. Loop thread */

	_Atomic bool failing, failed;	/* see failure.c */
	char failure[1024], accused[128];	/* written once, before `failed` */
	_Atomic bool short_timeout;
	struct wr_system *abandoned;	/* the list of those whose memory a hung device may touch */

	struct wr_signals signals;
	struct wr_flag_words flag_words;
	struct wr_poller poller;
	struct {
		struct wr_mutex lock;
		/* ready: complete, a destructor must run. Guarded by lock */
		struct wr_deferred_free *listed, *ready;
		uint64_t ref_drops;			/* guarded by lock */
		_Atomic size_t count, ready_count;
	} deferred_frees;
};

/* --- system.c --- */
/*
 * Whoever is not known to be a worker or the loop brackets what it does with the waker: detach waits until
 * all have left. NULL: nobody is attached (leave all the same). Thread: any.
 */
struct wr_waker *wr_system_enter(struct wr_system *system);
void wr_system_leave(struct wr_system *system);
/*
 * Asks done(arg) from time to time, until it is true or it is
 * `until`. Thread: any that may wait, so no worker.
 */
void wr_system_sleep_until(struct wr_system *system, bool (*done)(void *arg), void *arg, int64_t until);

/* --- backend.c. While the system is made; a backend that was refused leaves nothing behind --- */
weir_status wr_system_open_backend(struct wr_system *system, const struct wr_system_options *options);
/*
 * "auto", after cuda answered `status`: the host where it has no device (UNSUPPORTED). One that is there and
 * cannot be used is an error: a run that was meant for it must not crawl along on the host unnoticed.
 */
weir_status wr_system_open_or_host(struct wr_system *system, weir_status status,
				   const struct wr_system_options *options);

/* --- failure.c. Thread: any that holds no lock --- */
/* The device is lost (E2); `what` may be last_error. */
void wr_system_fail(struct wr_system *system, const char *what);
weir_status wr_system_failure_status(struct wr_system *system);			/* WEIR_E_DEVICE with the text */
/* Passes it on; WEIR_E_DEVICE fails the system. */
weir_status wr_system_check(struct wr_system *system, weir_status status);
bool wr_system_lost(struct wr_system *system);	/* it failed, and nothing touches any memory any more */

/* --- watch.c. Thread: any --- */
void wr_system_added(struct wr_system *system);		/* kicks if the watch rests */

/* --- deferred_free.c --- */
weir_status wr_deferred_frees_init(struct wr_system *system);
void wr_deferred_frees_finish(struct wr_system *system);
/* The watch's: kicks nobody. True: some are left. */
bool wr_deferred_frees_look(struct wr_system *system, bool destructors);
void wr_deferred_frees_drop_refs(struct wr_system *system, struct wr_waker *waker);

#endif

/*
 * Where work runs. A system is one backend with its devices, streams, fences, memory, retire list and
 * signals; a graph has one, made for it by its scheduler. This header is all that the rooms above see of
 * streams/, beside the public weir_stream_... and weir_fence_... functions, which live in this room too.
 */
#ifndef WR_STREAMS_STREAMS_H
#define WR_STREAMS_STREAMS_H

#include "base/atomic.h"
#include "weir.h"

struct wr_system;
struct wr_sim;

#define WR_NO_ENTITY UINT32_MAX

/*
 * How news travels upward: what a signal, a retire list or a busy stream may do to the run (S4). The
 * scheduler owns it; wr_system_detach returns only when nobody will touch it again. All four: Thread: any,
 * also the driver's; no lock, no allocation, no CUDA. The caller of poke from a foreign thread needs no
 * reference: poke takes its own (S1).
 */
struct wr_waker {
	void (*poke)(struct wr_waker *waker, uint32_t entity);
	/* the loop thread has something to look at: wr_system_collect */
	void (*kick)(struct wr_waker *waker);
	/* one live reference more. The caller holds one, so the count is not 0 */
	void (*take)(struct wr_waker *waker);
	void (*drop)(struct wr_waker *waker);	/* one less; the one who brings it to 0 kicks */
};

struct wr_system_options {
	const char *backend;		/* "auto", "cuda", "host", "sim"; NULL = "auto" */
	uint64_t seed;			/* sim: delays, faults and orders are drawn from it */
	struct wr_sim *sim;		/* sim: the world in which its driver fiber runs */
	unsigned host_threads;		/* host: 0 = 4 a device */
	int devices;			/* host and sim: how many they have; 0 = 1 */
};

/*
 * Opens the backend. "auto": cuda, or host (logged once at info) where there is no device, no driver or one
 * that is too old. Fails: WEIR_E_DEVICE with the driver's reason when "cuda" is asked for and cannot be had,
 * or a device is there and cannot be used ("auto", too); WEIR_E_INVALID: unknown name; WEIR_E_UNSUPPORTED:
 * built without CUDA.
 */
weir_status wr_system_create(struct wr_system **out, const struct wr_system_options *options);
/*
 * Needs: detached, no payload alive. Drains streams for a short time; a
 * hung one: WEIR_E_ABANDONED, and leaks what the GPU may touch (E4).
 */
weir_status wr_system_destroy(struct wr_system *system);
/* A drain has waited for its streams already: destroy waits a moment only. */
void wr_system_shorten_timeout(struct wr_system *system);
/* "cuda: NVIDIA H100 80GB HBM3", "host", "sim: seed 7". */
const char *wr_system_where(const struct wr_system *system);
bool wr_system_is_cuda(const struct wr_system *system);
int wr_system_devices(const struct wr_system *system);		/* host and sim: as many as were asked for */
/* Makes it the calling thread's current device, for what a user calls himself. */
void wr_system_select(struct wr_system *system, int device);

void wr_system_attach(struct wr_system *system, struct wr_waker *waker);
/*
 * Revokes all tokens, waits for callbacks that are inside (G1), forgets the
 * waker. Streams and retire entries go on without references.
 */
void wr_system_detach(struct wr_system *system);
/*
 * Gives back the live references of retire entries and busy
 * streams (an abandoned run, S4); they hold none from then on.
 */
void wr_system_drop_all_refs(struct wr_system *system);

/* --- failure (E2, E3) --- */
bool wr_system_failed(const struct wr_system *system);	/* one load: workers ask before each gated compute */
/*
 * The same for whoever may just have heard it from a fence, which answers a moment before the report is
 * written: waits for that. Thread: any that holds no lock.
 */
bool wr_system_wait_failed(struct wr_system *system);
/*
 * Asks the device first: who has failed may have met its loss before
 * anybody else, through a call of his own (E3). Thread: any.
 */
bool wr_system_check_health(struct wr_system *system);
/*
 * One line: the device's error and the suspects: producers of fences not
 * seen complete, oldest first. Borrowed while the system lives.
 */
const char *wr_system_failure(struct wr_system *system);
/* The name of the only suspect, or NULL. */
const char *wr_system_accused(struct wr_system *system);
/*
 * The health watch and the retire list's: queries streams whose work is older than 100 ms (every 50 ms),
 * looks at the retire list, finds lost callbacks (complete for 1 s, token unfired: WEIR_E_DEVICE "callback
 * lost"). *next: when it wants to be called again (INT64_MAX: when something was added). Thread: the loop.
 * Fails: WEIR_E_DEVICE, once wr_system_failed is true.
 */
weir_status wr_system_watch(struct wr_system *system, int64_t now, int64_t *next);
/*
 * A drain begins: what was recorded by now is progress when it completes. Thread: the loop.
 */
void wr_system_drain(struct wr_system *system);
/*
 * Some of that has completed since the last call; *left: some has not yet. Asks the device. Thread: the loop.
 */
bool wr_system_progressed(struct wr_system *system, bool *left);
/*
 * Arms a signal (kick only) for every stream that holds a live reference and has none for its last point:
 * nothing else will wake the loop (E2). Releases the payloads whose work is complete.
 */
weir_status wr_system_expect(struct wr_system *system);
/*
 * True if entries of the retire list are known to be complete and
 * wait for a worker (user destructors run there, B3).
 */
bool wr_system_deferred_frees_ready(const struct wr_system *system);
uint64_t wr_system_deferred_frees(const struct wr_system *system);	/* payloads on the list; exact when nobody works */
/*
 * Looks at the retire list and releases what is complete; `destructors`: also
 * entries with user destructors (a worker, or nobody runs any more).
 */
void wr_system_run_deferred_frees(struct wr_system *system, bool destructors);

/* --- green contexts: partitions of a device's multiprocessors (host, sim: threads) that share none --- */
struct wr_partition;
struct wr_partitions_spec {
	const char *name;		/* of the pool: for errors */
	int device;
	const uint32_t *sizes;
	size_t count;
	uint32_t minimum;
};
/*
 * Makes count partitions; where something remains, out[count] is the remainder, else NULL. The system owns
 * them. *sms (count + 1 places): how many each really has: the device may round up. Fails: WEIR_E_INVALID:
 * the device cannot give that size: says what it could; WEIR_E_UNSUPPORTED: the driver knows no green
 * contexts. Not on hot paths.
 */
weir_status wr_partitions_create(struct wr_system *system, const struct wr_partitions_spec *spec,
				 struct wr_partition **out, uint32_t *sms);

/* --- streams --- */
struct wr_stream_spec {
	int device;
	unsigned flags;			/* WEIR_STREAM_BLOCKING */
	int priority;
	struct wr_partition *partition;	/* NULL: the whole device */
};
/*
 * `owner` (borrowed while the stream lives) names who works on it: reports, NVTX
 * ("weir:<owner>"). Makes its pool of events at once. Not on hot paths.
 */
weir_status wr_stream_open(struct wr_system *system, const struct wr_stream_spec *spec, const char *owner,
			   weir_stream **out);
/*
 * A stream of the caller's (NULL: the legacy default one), which must outlive
 * the system. Fails: WEIR_E_UNSUPPORTED: the backend is not cuda.
 */
weir_status wr_stream_wrap(struct wr_system *system, int device, void *native, weir_stream **out);
/*
 * A second owner's view of the same native stream, under an identity of its own: points and live references
 * stay one owner's each, the device's queue is one. The first is not reused while others share it. Of a
 * shared one: of the same root.
 */
weir_status wr_stream_share(weir_stream *stream, const char *owner, weir_stream **out);
/*
 * A native stream of the caller's waits for the fence. Fails: WEIR_E_UNSUPPORTED: the backend is not cuda;
 * WEIR_E_INVALID: no such device, no such fence.
 */
weir_status wr_fence_enqueue(struct wr_system *system, weir_fence fence, int device, void *native);
/*
 * Likewise, of the device's legacy default stream; on host and sim
 * a stream that stands for it, and for all BLOCKING ones.
 */
weir_status wr_stream_default(struct wr_system *system, int device, const char *owner, weir_stream **out);
/*
 * Who has this identity now, or NULL: it was given on. Only to be
 * looked at: it may be given on at any moment, never freed.
 */
weir_stream *wr_stream_find(struct wr_system *system, uint64_t id);
/*
 * find and share in one: what a fence names is not given on in between. Fails:
 * WEIR_E_CLOSED (no text): it was given on, so its work is complete.
 */
weir_status wr_stream_share_of(struct wr_system *system, uint64_t id, const char *owner, weir_stream **out);

/* --- stream pools --- */
struct wr_stream_pool;
struct wr_stream_pool_spec {
	const char *name;		/* borrowed while the system lives */
	struct wr_stream_spec streams;
	uint32_t reserved, max;		/* max 0: no bound */
};
/* The system owns it. Makes the reserved ones at once. Fails as wr_stream_open does. Not on hot paths. */
weir_status wr_stream_pool_create(struct wr_system *system, const struct wr_stream_pool_spec *spec,
				  struct wr_stream_pool **out);
/*
 * One that was given back and is drained, else a new one, made outside of any
 * lock. wr_stream_close gives it back. WEIR_E_BUSY: exhausted. Thread: any.
 */
weir_status wr_stream_pool_take(struct wr_stream_pool *pool, const char *owner, weir_stream **out);
size_t wr_stream_pool_taken(const struct wr_stream_pool *pool);	/* now */

uint64_t wr_stream_recorded(const weir_stream *stream);		/* its last point */
/* weir_stream_native, to look at: nothing will be enqueued by it. */
void *wr_stream_handle(const weir_stream *stream);
/* A run begins, has ended: nothing is unwrapped meanwhile. */
void wr_system_run(struct wr_system *system, bool on);
/*
 * The native stream of a wrapped one is the caller's alone again, and the stream is given back. NULL is fine.
 * Fails: WEIR_E_BUSY: recorded work is not complete, or others share it; WEIR_E_INVALID: it was not wrapped.
 * Thread: owner.
 */
weir_status wr_stream_unwrap(weir_stream *stream);
/* Gives it back to the system. Work still on it is drained later, never destroyed under it. NULL is fine. */
void wr_stream_close(weir_stream *stream);
/*
 * A tick begins to use the stream: it holds a live reference from now until its last fence was seen complete
 * (S4, E2); no-op if it has one. Thread: owner.
 */
void wr_stream_begin(weir_stream *stream);
/* Work was enqueued, or the native handle taken, since the last record. */
bool wr_stream_dirty(const weir_stream *stream);
/* How much weir's own calls enqueued on it since the last call of this one. Thread: owner. */
uint64_t wr_stream_take_items(weir_stream *stream);
/*
 * Makes sure that so many points may be on their way before it needs more events (1,024 at most: the rest is
 * made when it is needed). Not on hot paths. Thread: owner.
 */
weir_status wr_stream_reserve(weir_stream *stream, size_t points);
/* weir_stream_record is the owner's record; it also clears dirty. */
bool wr_stream_idle(weir_stream *stream);	/* everything recorded on it was seen complete (queries) */

/* --- fences --- */
/*
 * OK complete (remembered: later asks cost a load); WEIR_E_BUSY; WEIR_E_INVALID
 * never recorded or foreign; WEIR_E_DEVICE the system failed.
 */
weir_status wr_fence_query(struct wr_system *system, weir_fence fence);
bool wr_fence_seen(struct wr_system *system, weir_fence fence);	/* known complete without asking the device */
/* Host wait; never on a worker. */
weir_status wr_fence_wait(struct wr_system *system, weir_fence fence, int64_t until);
/* The stream's owner; "?". */
const char *wr_fence_producer(struct wr_system *system, weir_fence fence, int64_t *age_ns);

/* --- memory --- */
/*
 * Pooled: returned blocks are reused, the backend's own allocator is asked only when nothing fits; once it
 * has none, larger blocks serve for smaller ones. device WEIR_HOST: pinned host memory. Looks at the retire
 * list before it grows. Fails: WEIR_E_NOMEM, WEIR_E_INVALID (no such device).
 */
weir_status wr_system_alloc(struct wr_system *system, int device, size_t bytes, void **out);
void wr_system_free(struct wr_system *system, int device, void *data, size_t bytes);
/*
 * Makes sure that there is this much in all, free or out, so
 * that no frame has to wait for the backend's allocator.
 */
weir_status wr_system_reserve(struct wr_system *system, int device, size_t bytes);
/* The same for a first chunk, where memory costs nothing until it is written. */
weir_status wr_system_open_arena(struct wr_system *system, int device);

/* --- retire list (T4) --- */
struct wr_deferred_free {
	struct wr_deferred_free *next;
	weir_fence *fences;			/* the use set, borrowed from the payload that embeds this */
	size_t count;
	void (*release)(struct wr_deferred_free *);	/* memory goes back, destructor runs; not under a lock */
	bool destructor;			/* release calls a user's function: only on a worker */
	bool foreign;	/* dropped by a worker of another run, who holds no reference of this one */
	bool referenced;			/* holds a live reference */
};
/*
 * True: the use set is complete already, nothing was listed, the caller
 * releases. False: listed, release is called later. Thread: any.
 */
bool wr_defer_free(struct wr_system *system, struct wr_deferred_free *entry);

/* --- signals (G1-G3) --- */
enum wr_signal_kind { WR_SIGNAL_CALLBACK, WR_SIGNAL_INLINE, WR_SIGNAL_FLAG };
const char *wr_signal_text(int kind);	/* as it is written in graphs and options; NULL after the last */
typedef uint64_t wr_token;			/* {slot, generation}; 0 = none */
/*
 * `callback`: one token, one host callback for all n fences, on a signal stream of the device's free list. n
 * is not 0; fences of a failed system: WEIR_E_DEVICE. WEIR_E_BUSY: the bound (256 a device) is reached: the
 * entity stands in the FIFO with a live reference and is poked when a token is released. WEIR_E_INVALID: a
 * fence was never recorded in this system. Thread: worker; no lock of the caller's may be held.
 */
weir_status wr_signal_arm(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n,
			  wr_token *out);
/*
 * `callback_inline`: the host callback on the stream itself that all pending fences lie on, behind all that
 * its producer has enqueued by now. WEIR_E_UNSUPPORTED (no text): they lie on several, none is pending, or
 * the stream's native handle was given out: arm by callback. Otherwise as wr_signal_arm.
 */
weir_status wr_signal_inline(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n,
			     wr_token *out);
/*
 * `flag`: the device writes the number of the stream's last recorded point into a word of the stream's,
 * right after it. Once per point; no token. Nothing is refused: what could not be enqueued is armed by
 * callback later. Thread: the stream's owner, at delivery.
 */
weir_status wr_flag_write(weir_stream *stream);
/* The device can do that; else WEIR_E_UNSUPPORTED, naming it. Asked when a scheduler is made. */
weir_status wr_flag_check(struct wr_system *system);
/*
 * Arms a token for all n fences with the poller. WEIR_E_UNSUPPORTED (no text): some fence was not rung: arm
 * by callback. Otherwise as wr_signal_arm, but unbounded: nothing lies on any stream. Thread: worker.
 */
weir_status wr_flag_arm(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n,
			wr_token *out);
/*
 * The poller is a role that one worker at a time plays (scheduler/poll.c). Looks at the words that are armed,
 * fires what has rung (pokes, from this thread), and says when to look again: `now` or before: at once,
 * spinning; INT64_MAX: nothing is armed. It learns how long each stream's work takes and how late a sleep
 * until a time ends, and asks to sleep only when the next completion is known to be further away than that.
 * One thread at a time.
 */
int64_t wr_flags_poll(struct wr_system *system, int64_t now);
/* A sleep that wr_flags_poll asked for ended so much too late. */
void wr_flags_overslept(struct wr_system *system, int64_t late_ns);
/*
 * Armed and not fired, a superseded one until the next
 * look; read seq_cst. Grows before wr_flag_arm returns.
 */
size_t wr_flags_armed(const struct wr_system *system);
/* Grows with each arming, seq_cst: what wr_flags_poll said holds while it is the same. */
uint64_t wr_flags_version(const struct wr_system *system);
/*
 * Makes sure that so many signal streams lie ready: making one may wait for a busy GPU, with it the worker,
 * so none is made while frames are on their way.
 */
weir_status wr_signals_reserve(struct wr_system *system, int device, size_t count);
bool wr_signal_pending(wr_token token);	/* armed and not fired, superseded or ended: it will poke */
/*
 * The entity no longer waits for it: its firing will be stale. It
 * counts against the bound until it has fired. 0 is fine.
 */
void wr_signal_cancel(struct wr_system *system, wr_token token);
/*
 * An entity that became DONE or waits for something else leaves the
 * FIFO of refused ones (its live reference is dropped).
 */
void wr_signal_leave(struct wr_system *system, uint32_t entity);
/* Drains the fired list: releases tokens, pokes the oldest refused. Thread: the loop. */
void wr_system_collect(struct wr_system *system);
/* Callbacks that found another generation or a superseded token. */
uint64_t wr_system_stale(const struct wr_system *system);
/* Tokens armed and not fired: idle workers may spin while there are any (S9) */
size_t wr_system_outstanding(const struct wr_system *system);

#endif

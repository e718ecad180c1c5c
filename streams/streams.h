/*
 * Where work runs. A system is one backend with its devices, streams, fences, memory, deferred-free list and
 * signals; a graph has one, created by its scheduler. This header is all that the rooms above see of
 * streams/, beside the public weir_stream_... and weir_fence_... functions, which live in this room too.
 */
#ifndef WR_STREAMS_STREAMS_H
#define WR_STREAMS_STREAMS_H

#include "base/atomic.h"
#include "weir.h"

struct wr_system;
struct wr_sim;
typedef uint64_t wr_token; /* of a signal: {slot, generation}; 0 = none */

#define WR_NO_ENTITY UINT32_MAX

/*
 * What a signal, the deferred-free list or a busy stream may do to the run (S4). Owned by the scheduler; no
 * thread touches it after wr_system_detach has returned. All five: no lock, no allocation, no CUDA. Thread:
 * any, the driver's included. A foreign thread that calls poke needs no live reference: poke takes its own
 * (S1).
 */
struct wr_waker {
	/* token: of the signal that fired; 0: none did, the entity is to look again */
	void (*poke)(struct wr_waker *waker, uint32_t entity, uint64_t token);
	/* wakes the loop thread, which calls wr_system_collect */
	void (*kick)(struct wr_waker *waker);
	/* takes a live reference. The caller holds one already, so the count is not 0 */
	void (*take)(struct wr_waker *waker);
	void (*drop)(struct wr_waker *waker); /* drops a live reference; dropping the last one kicks */
	/* as take, for what the watch need not look at */
	void (*hold)(struct wr_waker *waker);
};

struct wr_system_options {
	const char *backend;   /* "auto", "cuda", "host", "sim"; NULL = "auto" */
	uint64_t seed;         /* sim: of the random delays, faults and orders */
	struct wr_sim *sim;    /* sim: the world in which its driver fiber runs */
	unsigned host_threads; /* host: per device; 0 = 4 */
	int devices;           /* host and sim: number of devices; 0 = 1 */
	bool strict;           /* host and sim: device memory is closed to all but device operations */
};

/*
 * Opens the backend. "auto" is cuda, or host (logged once at info) if there is no device, no driver, or the
 * driver is too old. Fails: WEIR_E_DEVICE with the driver's reason if "cuda" is not available, or if a device
 * exists but cannot be used (also for "auto"); WEIR_E_INVALID: unknown name; WEIR_E_UNSUPPORTED: built
 * without CUDA.
 */
weir_status wr_system_create(struct wr_system **out, const struct wr_system_options *options);
/*
 * The system must be detached and all payloads released. Waits a limited time for work that is still on the
 * streams. Fails: WEIR_E_ABANDONED: a stream hangs; memory that the GPU may still touch is leaked (E4).
 */
weir_status wr_system_destroy(struct wr_system *system);
/* Sleeps until done(arg), which is called from time to time, returns true, or as long as destroy waits. */
void wr_system_wait(struct wr_system *system, bool (*done)(void *arg), void *arg);
/* Makes both wait only briefly, because a drain has already waited for the streams. */
void wr_system_shorten_timeout(struct wr_system *system);
/* "cuda: NVIDIA H100 80GB HBM3", "host", "sim: seed 7". */
const char *wr_system_where(const struct wr_system *system);
weir_backend wr_system_backend(const struct wr_system *system);
const char *wr_system_backend_name(const struct wr_system *system); /* "cuda", "host", "sim" */
/* Returns true if the address is of device memory that is closed to the host (strict). Takes no lock. */
bool wr_system_is_closed(const struct wr_system *system, const void *address);
/* See weir_context_allocation. */
bool wr_system_allocation(const struct wr_system *system, const void *memory, weir_allocation *out);
int wr_system_devices(const struct wr_system *system); /* host and sim: the number in the options */
/* Makes it the calling thread's current device, for CUDA calls that user code makes directly. */
void wr_system_select(struct wr_system *system, int device);

/*
 * The time by the system's clock; to a thread outside of its simulated world, the one that was noted last.
 * Thread: any.
 */
int64_t wr_system_now(struct wr_system *system);
void wr_system_note_now(struct wr_system *system, int64_t now); /* Thread: the loop */
void wr_system_attach(struct wr_system *system, struct wr_waker *waker);
/*
 * Shuts down all tokens, waits until no thread is inside a callback (G1), and forgets the waker. Streams and
 * deferred frees stay, without live references.
 */
void wr_system_detach(struct wr_system *system);
/*
 * Drops the live references of deferred frees, busy streams and refused
 * entities (the run is abandoned, S4); they hold none from then on.
 */
void wr_system_drop_all_refs(struct wr_system *system);

/* --- failure (E2, E3) --- */
bool wr_system_failed(const struct wr_system *system); /* one load: called before each gated compute */
/* Returns true if the system failed and nothing touches memory any more. */
bool wr_device_lost(struct wr_system *system);
/*
 * The same as wr_system_failed for a caller that may have just got WEIR_E_DEVICE from a fence: another thread
 * may still be writing the failure text, and this call waits for that. Thread: any that holds no lock.
 */
bool wr_system_wait_failed(struct wr_system *system);
/*
 * Queries the device and returns true if the system has not failed. For failures of user
 * code, whose own CUDA call may have been the first to meet a device error (E3). Thread: any.
 */
bool wr_system_check_device(struct wr_system *system);
/*
 * One line: the device's error and the suspects, which are the producers of fences
 * not seen complete, oldest first. Borrowed; valid while the system lives.
 */
const char *wr_system_failure(struct wr_system *system);
/* The name of the only suspect, or NULL. */
const char *wr_system_accused(struct wr_system *system);
/*
 * The watch. Every 50 ms it queries streams whose work is older than 100 ms, runs deferred frees and
 * looks for lost callbacks (work complete for 1 s, token not fired: WEIR_E_DEVICE "callback lost"). *next is
 * when to call it again (INT64_MAX: when something was added). Thread: the loop. Fails: WEIR_E_DEVICE, once
 * wr_system_failed is true.
 */
weir_status wr_system_watch(struct wr_system *system, int64_t now, int64_t *next);
/* Begins a drain: see wr_stream_note_tick. Thread: the loop. */
void wr_system_drain(struct wr_system *system);
/*
 * Returns true if some work that counts for the drain has completed since the last call. Queries the device.
 * Thread: the loop.
 */
bool wr_system_progressed(struct wr_system *system);
/*
 * Releases the payloads whose work is complete, then arms signals that kick the loop, unless one is armed:
 * `all`: for the last value of every stream that holds a live reference, as nothing else would wake the loop
 * (E2). In any case for the next value of each stream that memory waits for which an entity was refused (T4).
 * `over`: all entities are DONE, so the end of each open promise kicks as well; before that it pokes those
 * that wait for it. Thread: the loop.
 */
weir_status wr_system_arm_kicks(struct wr_system *system, bool all, bool over);
/*
 * Returns true if deferred frees are known to be complete and
 * wait for a worker, which runs their user destructors (B3).
 */
bool wr_system_deferred_frees_ready(const struct wr_system *system);
/* Number of payloads on the list; exact while no worker runs. */
uint64_t wr_system_deferred_frees(const struct wr_system *system);
/*
 * Releases the deferred frees that are complete. With `destructors`, also those with user destructors: for a
 * worker, or after the last one has left. Not for the loop.
 */
void wr_system_run_deferred_frees(struct wr_system *system, bool destructors);
/* The same, with destructors, if no run is on: then no thread does it by itself. Thread: any but a worker. */
void wr_system_collect_between_runs(struct wr_system *system);
/* Runs them until the list is empty; false: it was not, until then. Thread: any but a worker; no run is on.
 */
bool wr_system_wait_deferred_frees(struct wr_system *system, int64_t until);

/* --- green contexts: disjoint partitions of a device's multiprocessors (host, sim: of its threads) --- */
struct wr_partition;
struct wr_partitions_spec {
	const char *name; /* of the pool, for error texts */
	int device;
	const uint32_t *sizes;
	size_t count;
	uint32_t minimum;
};
/*
 * Creates count partitions; out[count] is the remainder of the device, or NULL if there is none. The system
 * owns them. sms (count + 1 places) receives the real sizes, which the device may round up. Fails:
 * WEIR_E_INVALID: the device does not offer such a size (the text says which it offers); WEIR_E_UNSUPPORTED:
 * the driver has no green contexts. Not on hot paths.
 */
weir_status wr_partitions_create(struct wr_system *system, const struct wr_partitions_spec *spec,
				 struct wr_partition **out, uint32_t *sms);

/* --- streams --- */
/* Flag: the streams and CUDA's legacy default stream wait for each other. */
enum { WR_STREAM_BLOCKING = 1 };

struct wr_stream_spec {
	int device;
	unsigned flags; /* WR_STREAM_BLOCKING */
	int priority;
	struct wr_partition *partition; /* NULL: the whole device */
};
/*
 * `owner` (borrowed while the stream lives) names the stream's user in reports and
 * NVTX ("weir:<owner>"). Creates the stream's events at once. Not on hot paths.
 */
weir_status wr_stream_open(struct wr_system *system, const struct wr_stream_spec *spec, const char *owner,
			   weir_stream **out);
/*
 * Wraps a native stream of the caller's (NULL: the legacy default stream),
 * which must outlive the system. Fails: WEIR_E_UNSUPPORTED: the backend is not cuda.
 */
weir_status wr_stream_wrap(struct wr_system *system, int device, void *native, weir_stream **out);
/*
 * Opens a second stream on the same native stream. It has its own id, owner, values and live reference; only
 * the device's queue is shared. The first (the root) is not reused while others share it. Sharing a stream
 * that is itself shared shares its root.
 */
weir_status wr_stream_share(weir_stream *stream, const char *owner, weir_stream **out);
/*
 * Makes a native stream of the caller's wait for the fence. Fails: WEIR_E_UNSUPPORTED: the backend is not
 * cuda; WEIR_E_INVALID: no such device, no such fence.
 */
weir_status wr_fence_enqueue(struct wr_system *system, weir_fence fence, int device, void *native);
/*
 * Shares the device's legacy default stream. Host and sim have one
 * stream in its place, which also runs all BLOCKING streams.
 */
weir_status wr_stream_default(struct wr_system *system, int device, const char *owner, weir_stream **out);
/*
 * The open stream with this id, or NULL if it was recycled. Read-only:
 * it may be recycled at any moment, but is never freed.
 */
weir_stream *wr_stream_find(struct wr_system *system, uint64_t id);
/*
 * Finds and shares in one step, so that the stream is not recycled in between.
 * Fails: WEIR_E_CLOSED (no text): it was recycled, so its work is complete.
 */
weir_status wr_stream_share_of(struct wr_system *system, uint64_t id, const char *owner, weir_stream **out);

/* --- stream pools --- */
struct wr_stream_pool;
struct wr_stream_pool_spec {
	const char *name; /* borrowed while the system lives */
	struct wr_stream_spec streams;
	uint32_t reserved, max; /* max 0: no bound */
};
/* The system owns it. Opens `reserved` streams at once. Fails as wr_stream_open does. Not on hot paths. */
weir_status wr_stream_pool_create(struct wr_system *system, const struct wr_stream_pool_spec *spec,
				  struct wr_stream_pool **out);
/*
 * Returns a released stream that is drained, or opens a new one, without holding a lock. wr_stream_close
 * returns it to the pool. Fails: WEIR_E_BUSY: the pool is exhausted. Thread: any.
 */
weir_status wr_stream_pool_take(struct wr_stream_pool *pool, const char *owner, weir_stream **out);
size_t wr_stream_pool_taken(const struct wr_stream_pool *pool); /* streams in use now */

uint64_t wr_stream_submitted(const weir_stream *stream); /* its last value */
/* The number of the queue of the device that its work goes to: streams of one queue share it. */
uint32_t wr_stream_number(const weir_stream *stream);
/* weir_stream_native without marking the stream dirty: the caller must not enqueue on the handle. */
void *wr_stream_handle(const weir_stream *stream);
/* Called when a run begins (on) and when it has ended. wr_stream_unwrap is refused in between. */
void wr_system_set_running(struct wr_system *system, bool on);
bool wr_system_running(struct wr_system *system);
/* Returns true if a program got it: it is wrapped, or weir_graph_add_stream made it. */
bool wr_stream_is_programs(const weir_stream *stream);
/* An entity uses it as its current stream (T14), or uses it no more; meanwhile it is not unwrapped. */
void wr_stream_count_user(weir_stream *stream, bool more);
/*
 * Ends the wrapping: closes the stream, and the system uses the native stream no more. NULL is fine.
 * Fails: WEIR_E_STATE: an entity uses it; WEIR_E_BUSY: recorded work is not complete, or other streams share
 * it; WEIR_E_INVALID: it was not wrapped. Thread: owner.
 */
weir_status wr_stream_unwrap(weir_stream *stream);
/* Releases it to the system, which reuses it once the work on it is complete. NULL is fine. */
void wr_stream_close(weir_stream *stream);
/*
 * Called when a tick begins to use the stream: from now on it holds a live reference until its last fence was
 * seen complete (S4, E2). Does nothing if it has one. Thread: owner.
 */
void wr_stream_begin_tick(weir_stream *stream);
/*
 * Called when the end of a tick was recorded. What a tick that took no message has enqueued in a drain does
 * not count for it, else an operator that enqueues for ever would drain for ever. Thread: owner.
 */
void wr_stream_note_tick(weir_stream *stream, bool took_message);
/*
 * As weir_stream_record, but also once the system has failed, while its device goes on, and leaves the last
 * error alone. Returns false if the device refuses. Thread: owner.
 */
bool wr_stream_record_end(weir_stream *stream, weir_fence *out);
/* Returns true if work was enqueued, or the native handle given out, since the last record. */
bool wr_stream_dirty(const weir_stream *stream);
/* A message is emitted at this value, which the running tick recorded (T12). Thread: owner. */
void wr_stream_mark_early(weir_stream *stream, uint64_t value);
/* Number of operations that weir's own calls enqueued since the last call of this one. Thread: owner. */
uint64_t wr_stream_take_operations(weir_stream *stream);
/*
 * The streams that this one was told to wait for since the last call of this function: the bits of
 * wr_stream_wait_bit. Two streams may have one bit. Thread: owner.
 */
uint64_t wr_stream_take_waits(weir_stream *stream);
uint64_t wr_stream_wait_bit(const weir_stream *stream);
/*
 * Creates events for `values` pending values, 1,024 at most (further ones are created when they are needed).
 * Not on hot paths. Thread: owner.
 */
weir_status wr_stream_reserve(weir_stream *stream, size_t values);
/* Queries the device; returns true if everything recorded on the stream is complete. */
bool wr_stream_idle(weir_stream *stream);

/* Returns true if the user captures the stream (G3). Thread: any. */
bool wr_stream_capturing(weir_stream *stream);
/*
 * Ends a capture that an operator left open, and drops what it captured: behind it the stream can be fenced.
 * A wrapped stream may be in a capture of another thread of the program, and is left alone. Thread: owner.
 */
void wr_stream_end_capture(weir_stream *stream);

/* --- captures (T13): work of an owner becomes an executable. Thread: the owner of all these streams --- */
struct wr_capture;    /* what an owner needs to capture, kept for the next time */
struct wr_executable; /* captured work, which can be launched again and again */
/* Returns true if the device has graphs. */
bool wr_system_captures(const struct wr_system *system);
weir_status wr_capture_create(struct wr_system *system, struct wr_capture **out);
void wr_capture_destroy(struct wr_capture *capture); /* NULL is fine */
/*
 * From here to the end, what the owner enqueues on these streams is captured. streams[0] is the origin, the
 * others are behind what it has by then; all work on them must be ordered before the origin's end again.
 * Their fences, and waits for others, are refused meanwhile. Not on hot paths. Fails: WEIR_E_NOMEM,
 * WEIR_E_DEVICE, WEIR_E_FAILED: the device could not begin.
 */
weir_status wr_capture_begin(struct wr_capture *capture, weir_stream *const *streams, size_t count);
/* Orders two streams of the capture: weir_context_synchronize_streams. Fails: WEIR_E_UNSUPPORTED. */
weir_status wr_capture_order(struct wr_capture *capture, weir_stream *before, weir_stream *after);
/* Fails with WEIR_E_UNSUPPORTED, with this text; the end of the capture fails with the first one. */
weir_status wr_capture_refuse(struct wr_capture *capture, const char *format, ...) WEIR_PRINTF(2, 3);
/* The same, for a cause that may be gone the next time. */
weir_status wr_capture_postpone(struct wr_capture *capture, const char *why);
bool wr_capture_postponed(const struct wr_capture *capture); /* that was called in the last capture */
/*
 * Ends the capture, always. *out is NULL if nothing was enqueued. Fails: WEIR_E_UNSUPPORTED: a call was
 * refused, or a stream was not joined; WEIR_E_FAILED: the device refused something; WEIR_E_NOMEM;
 * WEIR_E_DEVICE.
 */
weir_status wr_capture_end(struct wr_capture *capture, struct wr_executable **out);
/* Enqueues its work on a stream, as one operation. Nothing waits. */
weir_status wr_executable_launch(struct wr_executable *executable, weir_stream *stream);
/* The fence is behind all launches so far. */
void wr_executable_note_fence(struct wr_executable *executable, weir_fence fence);
/* Destroys it and returns true if a fence is behind its launches, and complete. */
bool wr_executable_try_destroy(struct wr_executable *executable);
/* Destroys it now or, if launches may still run, with the system. */
void wr_executable_drop(struct wr_executable *executable);
/* Returns true and writes the first difference if the operations of the two or their arguments differ. */
bool wr_executable_differs(const struct wr_executable *executable, const struct wr_executable *other,
			   char *what, size_t room);

/* --- spans: when the device worked for an owner (T15). Thread: the stream's owner --- */
/* The begin and the end of work on one stream: by two timers of the device, or as far as the host knows. */
struct wr_span;
struct wr_span_times {
	int64_t begin, end; /* on the clock of wr_now() */
	/* of the owner's calls that enqueued the work: those that took longer than an enqueueing does */
	int64_t blocked;
	bool known; /* always with timers; else begin and end mean nothing */
};
/* Returns true if the device has timers. */
bool wr_system_times(const struct wr_system *system);
/* Not on hot paths: the first one of a device measures what its timers cost. Fails: WEIR_E_NOMEM,
 * WEIR_E_FAILED, WEIR_E_DEVICE; WEIR_E_BUSY (no text): another thread measures that now. */
weir_status wr_span_create(struct wr_system *system, int device, struct wr_span **out);
/*
 * A span without timers: between the first call that enqueues its work, or what the stream had before, and
 * the poller's first look that finds the flag of its fence written. Fails: WEIR_E_NOMEM.
 */
weir_status wr_span_create_untimed(struct wr_system *system, int device, struct wr_span **out);
bool wr_span_timed(const struct wr_span *span);
/* Without timers: the fence behind it is the last one of its stream. After the end of the tick is recorded.
 */
void wr_span_note_fence(struct wr_span *span, weir_stream *stream);
/* Destroys it now or, if the device may still reach its timers, with the system. NULL is fine. */
void wr_span_drop(struct wr_span *span);
int wr_span_device(const struct wr_span *span);
/* The next kernel, copy or captured work of the stream, or its native handle, begins the span. */
void wr_span_arm(struct wr_span *span, weir_stream *stream);
/* Ends it behind all work of the stream, if it has not ended. Returns true if it had begun: it is read next.
 */
bool wr_span_end(struct wr_span *span);
/* Fails: WEIR_E_BUSY (no text): not complete; else as the first call of the device that failed. */
weir_status wr_span_read(struct wr_span *span, struct wr_span_times *out);

/* --- fences --- */
/*
 * OK: complete (remembered, so the next query costs a load). WEIR_E_BUSY: pending. Fails:
 * WEIR_E_INVALID: never recorded, or of another system; WEIR_E_DEVICE: the system failed.
 */
weir_status wr_fence_query(struct wr_system *system, weir_fence fence);
/* The same without asking the device. */
bool wr_fence_known_complete(struct wr_system *system, weir_fence fence);
/* Fails with WEIR_E_INVALID if it was never recorded, or is of another system. Does not ask the device. */
weir_status wr_fence_check(struct wr_system *system, weir_fence fence);
/* Blocks until the fence is complete, or until `until`. Thread: any but a worker. */
weir_status wr_fence_wait(struct wr_system *system, weir_fence fence, int64_t until);
/* The owner of the fence's stream, or "?". */
const char *wr_fence_producer(struct wr_system *system, weir_fence fence, int64_t *age_ns);

/* --- promises: fences that the program completes (T17). Thread: any --- */
#define WR_PROMISE_MARK (UINT64_C(1) << 47) /* in `stream` of such a fence */
static inline bool wr_fence_is_promise(weir_fence fence)
{
	return fence.stream & WR_PROMISE_MARK;
}
bool wr_system_has_promises(const struct wr_system *system); /* one was created, ever */
/* Returns true if it is over: complete, failed, or never created. Sets no text. */
bool wr_promise_over(struct wr_system *system, weir_fence fence);
uint64_t wr_system_open_promises(const struct wr_system *system); /* created, and not completed */
/* How many of them a tick of the last run has emitted; of the oldest: the owner, and its age. */
size_t wr_system_promises_of_run(struct wr_system *system, const char **owner, int64_t *age_ns);
weir_status wr_promise_create(struct wr_system *system, weir_fence *out);
/*
 * Completes it. A failure, with its text or NULL, ends the run in which a tick emitted it, or in which an
 * entity waits for it (wr_system_promise_failure). Fails: WEIR_E_INVALID: no such fence, or completed before.
 */
weir_status wr_promise_complete(struct wr_system *system, weir_fence fence, weir_status status,
				const char *text);
/*
 * A tick of the entity emits a message that carries it: unless it is complete it holds a live reference, and
 * its failure is the entity's. Fails as it was completed. Thread: the worker of the tick.
 */
weir_status wr_promise_carry(struct wr_system *system, weir_fence fence, uint32_t entity, const char *owner,
			     bool took_message);
/*
 * Arms a token for the newest open promise of these fences, to be reviewed again when it is completed. One
 * that failed ends the run, and so does a failure of any of them as long as the token is pending.
 * WEIR_E_UNSUPPORTED (no text): none of them is open. Thread: worker.
 */
weir_status wr_promise_arm(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n,
			   wr_token *out);
/*
 * A message names it: then it is not forgotten if it fails. *named false: it was complete. Fails:
 * WEIR_E_INVALID: no such fence, or stale.
 */
weir_status wr_promise_name(struct wr_system *system, weir_fence fence, bool *named);
void wr_promise_unname(struct wr_system *system, weir_fence fence); /* does nothing if it is complete */
/* The first failure of a promise that ends this run; *entity: whose, or WR_NO_ENTITY. OK: none. */
weir_status wr_system_promise_failure(struct wr_system *system, uint32_t *entity);

/* --- memory --- */
/*
 * Pooled: freed blocks are reused; the backend's allocator is called only if none fits (after the deferred
 * frees were run). If that fails, a larger free block serves. WEIR_DEVICE_HOST is pinned host memory. Fails:
 * WEIR_E_NOMEM; WEIR_E_INVALID: no such device.
 */
weir_status wr_system_alloc(struct wr_system *system, int device, size_t bytes, void **out);
void wr_system_free(struct wr_system *system, int device, void *data, size_t bytes);
/* A region of its own, aligned for any use, until the system is destroyed. Fails: WEIR_E_NOMEM,
 * WEIR_E_DEVICE. */
weir_status wr_system_alloc_region(struct wr_system *system, int device, size_t bytes, void **out);
/* Makes the loop of the system's run look at deferred frees. Thread: any. */
void wr_system_kick(struct wr_system *system);
/*
 * Grows the arena to at least `bytes`, free or in use, so
 * that no frame has to wait for the backend's allocator.
 */
weir_status wr_system_reserve(struct wr_system *system, int device, size_t bytes);
/* Likewise, to one chunk; for memory that costs nothing until it is written. */
weir_status wr_system_open_arena(struct wr_system *system, int device);

/* --- deferred frees (T4) --- */
struct wr_deferred_free {
	struct wr_deferred_free *next;
	weir_fence *fences; /* the use set, borrowed from the payload that embeds this */
	/* frees the memory, runs the destructor; no lock is held */
	void (*release)(struct wr_deferred_free *);
	/* the number of entities that were refused and wait for such memory; NULL: none ever does */
	_Atomic size_t *refused;
	uint32_t number;         /* in the order of the list; wraps around */
	uint32_t count : 29;     /* of fences */
	uint32_t destructor : 1; /* release calls a user's function: only on a worker */
	uint32_t foreign : 1;    /* dropped by a worker of another run, without a live reference */
	uint32_t referenced : 1; /* holds a live reference */
};
/*
 * Returns true if the use set is complete: nothing was listed, the caller
 * calls release. False: it was listed, and is released later. The caller then looks at what `refused` pointed
 * to, and kicks the loop if it is not 0. Thread: any.
 */
bool wr_defer_free(struct wr_system *system, struct wr_deferred_free *entry);

/* --- signals (G1-G3) --- */
enum wr_signal_kind { WR_SIGNAL_AUTO, WR_SIGNAL_CALLBACK, WR_SIGNAL_INLINE, WR_SIGNAL_FLAG };
const char *wr_signal_text(int kind); /* its name in graphs and options; NULL after the last */
/*
 * `callback`: arms one token and enqueues one host callback for all n fences (n > 0) on a signal stream of
 * the device. Fails: WEIR_E_BUSY: the bound (256 per device) is reached; the entity stands in the FIFO with a
 * live reference and is poked when a token is released. WEIR_E_DEVICE: the system failed. WEIR_E_INVALID: a
 * fence was never recorded in this system. Thread: a worker that holds no lock.
 */
weir_status wr_signal_arm(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n,
			  wr_token *out);
/*
 * `callback_inline`: enqueues the host callback on the producer's stream itself, behind all work that is on
 * it by now. WEIR_E_UNSUPPORTED (no text): the pending fences are on several streams, none is pending, one is
 * in the middle of a tick (T12), or the stream's native handle was given out; arm by callback then. Otherwise
 * as wr_signal_arm.
 */
weir_status wr_signal_inline(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n,
			     wr_token *out);
/*
 * Which streams get flag writes. AUTO: weir's own whose device can write flags; not those that a program
 * wrapped or uses (T14), nor a default stream: another thread may begin a capture on these between the record
 * and the write. ALL: those too; asked for by name.
 */
enum wr_flagging { WR_FLAGS_NONE, WR_FLAGS_AUTO, WR_FLAGS_ALL };
static inline enum wr_flagging wr_flagging_of(int signal) /* enum wr_signal_kind */
{
	return signal == WR_SIGNAL_FLAG   ? WR_FLAGS_ALL
	       : signal == WR_SIGNAL_AUTO ? WR_FLAGS_AUTO
					  : WR_FLAGS_NONE;
}
/*
 * `flag` and `auto`: lets the device write the stream's last recorded value into the stream's flag word,
 * right after that value. Once per value; no token. If the write cannot be enqueued, the value is armed by
 * callback later. Thread: the stream's owner, at delivery.
 */
weir_status wr_flag_write(weir_stream *stream, enum wr_flagging flagging);
bool wr_system_flags(const struct wr_system *system); /* flags are in use */
/* `auto` means flags here, else callbacks: on `host` and `sim`, where this machine does the device's work. */
bool wr_system_prefers_flags(const struct wr_system *system);
/*
 * Called when a scheduler is made. Fails: WEIR_E_UNSUPPORTED (ALL): a device (named) cannot write flags.
 */
weir_status wr_flags_use(struct wr_system *system, enum wr_flagging flagging);
/*
 * A signal that does not come although its work is complete: fires in its place and warns, if `forgives`;
 * else the system fails. Thread: any, no run is on.
 */
void wr_signals_forgive(struct wr_system *system, bool forgives);
uint64_t wr_signals_late(const struct wr_system *system); /* in this run: a second late, or lost */
/*
 * Arms a token for all n fences with the poller. WEIR_E_UNSUPPORTED (no text): no flag write was enqueued for
 * some fence; arm by callback then. Otherwise as wr_signal_arm, but without a bound, since nothing is
 * enqueued. Thread: worker.
 */
weir_status wr_flag_arm(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n,
			wr_token *out);
/*
 * The poller is a role that one worker at a time plays (scheduler/worker.c). Checks the flags that are armed,
 * fires the tokens whose flags are written (pokes from this thread), and returns when to poll again: `now` or
 * earlier means at once (spin), INT64_MAX that nothing is armed. It learns how long each stream's work takes
 * and how late sleeps end, and returns a later time only if the next completion is known to be further away
 * than that. One thread at a time.
 */
int64_t wr_flags_poll(struct wr_system *system, int64_t now);
/* Reports that a sleep that wr_flags_poll asked for ended late_ns too late. */
void wr_flags_overslept(struct wr_system *system, int64_t late_ns);
/*
 * Number of tokens armed and not fired (a cancelled one counts until the next
 * poll); read seq_cst. Incremented before wr_flag_arm returns.
 */
size_t wr_flags_armed(const struct wr_system *system);
/* Grows with each arming, seq_cst. The time that wr_flags_poll returned is valid while it stays the same. */
uint64_t wr_flags_version(const struct wr_system *system);
/*
 * Makes `count` signal streams ready before the run. Creating one may block the worker
 * while the GPU is busy, so none should be created while frames are processed.
 */
weir_status wr_signals_reserve(struct wr_system *system, int device, size_t count);
bool wr_signal_pending(wr_token token); /* armed; not fired, cancelled or ended: it will poke */
/*
 * The entity no longer waits for the token, whose firing will be stale.
 * It counts against the bound until it has fired. 0 is fine.
 */
void wr_signal_cancel(struct wr_system *system, wr_token token);
/*
 * Removes an entity that became DONE or waits for something else from
 * the FIFO of refused entities, and drops its live reference.
 */
void wr_signal_leave_fifo(struct wr_system *system, uint32_t entity);
/* Empties the fired list: releases tokens, pokes the oldest refused entities. Thread: the loop. */
void wr_system_collect(struct wr_system *system);
/* Number of callbacks that found another generation or a cancelled token. */
uint64_t wr_system_stale(const struct wr_system *system);
/* Tokens armed and not fired; idle workers may spin while there are any (S9). */
size_t wr_system_outstanding(const struct wr_system *system);

#endif

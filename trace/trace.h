/*
 * Observers: tables of functions that the rooms above call when something happens, and the counters. Names
 * are borrowed as long as the graph lives.
 */
#ifndef WR_TRACE_TRACE_H
#define WR_TRACE_TRACE_H

#include <limits.h>

#include "base/atomic.h"
#include "weir.h"

/* Of events: the index of the calling worker, or this for any other thread. */
#define WR_LANE_OUTSIDE UINT_MAX

struct wr_trace_options {
	unsigned workers; /* lanes 0 to workers - 1 */
	bool simulated;   /* one OS thread makes all calls */
	unsigned observe; /* WEIR_OBSERVE_... bits */
	size_t entities, queues, events;
	size_t hidden; /* entities, the last ones, that are on no path: finishers of outlets */
	uint64_t skip;
};

/* What a signal is armed by. */
enum wr_trace_signal { WR_TRACE_CALLBACK, WR_TRACE_INLINE, WR_TRACE_FLAG };
/* What an entity is of one with instances (C13). */
enum wr_trace_part { WR_PART_ALL, WR_PART_DEALS, WR_PART_INSTANCE, WR_PART_ORDERS };
/* How the time of device work was learned. */
enum wr_trace_source {
	WR_TRACE_TIMERS,
	WR_TRACE_POLLER /* of the flags: bounds, between which the work was done (T15) */
};

/*
 * Declarations: X(row, parameters, arguments). They are made before a run and describe what the events name
 * by number: entities, queues and memory pools. part: of the entity `of` with so many instances the entity is
 * one, that of `number`, or deals to them or orders what they emit; its name is that of `of`. `sender` and
 * `receiver` are UINT32_MAX if an inlet or an outlet is there. stream: a stream was made; native:
 * cudaStream_t or NULL. uses: the entity has a stream whose work goes to this queue of the device
 * (wr_stream_number), which several may share; by its owner. worker: on its thread, at its start.
 *
 * Two more rows have no time, and are of a run. computed: compute has succeeded, nothing was delivered so
 * far; device: the tick has device work. front: the front of a `pop` queue was closed, and will be taken
 * whatever is pushed meanwhile; called under the lock of the queue.
 */
#define WR_TRACE_DECLARATIONS(X)                                                                             \
	X(entity, (uint32_t entity, const char *name), (entity, name))                                       \
	X(part,                                                                                              \
	  (uint32_t entity, enum wr_trace_part part, uint32_t of, uint32_t number, uint32_t instances),      \
	  (entity, part, of, number, instances))                                                             \
	X(queue,                                                                                             \
	  (uint32_t queue, uint32_t sender, uint32_t receiver, const char *from, const char *to,             \
	   uint32_t capacity),                                                                               \
	  (queue, sender, receiver, from, to, capacity))                                                     \
	X(pool, (uint32_t pool, const char *name, uint64_t size, const char *unit),                          \
	  (pool, name, size, unit))                                                                          \
	X(worker, (unsigned lane), (lane))                                                                   \
	X(stream, (void *native, const char *owner), (native, owner))                                        \
	X(uses, (uint32_t entity, uint32_t queue, int device), (entity, queue, device))                      \
	X(computed, (uint32_t entity, uint64_t tick, bool device), (entity, tick, device))                   \
	X(front, (uint32_t queue, uint64_t first, uint64_t count), (queue, first, count))

/*
 * Events: X(row, parameters, arguments). An observer also gets the time, `at`, as the first argument after
 * itself.
 *
 * run_begin, run_end: no worker runs. tick_begin, tick_end: around compute, on its thread. ready: a review
 * answered READY. poke: an idle entity, or one after a row of ticks, enters a ready queue; not at the start
 * of a run, when all are in one. wait: a review ended in a park, for `cause`; `on` is what it is about: for
 * MEMORY the pool, for ROOM an output, else an input, by number, or UINT32_MAX. For people `of` names the
 * condition, the port or what else was not met, `why` the reason; both live as long as the graph. deliver: a
 * message is about to be pushed; `number` is its place in the queue: those that were refused, the next push
 * has again. drop: this or an earlier one was refused or removed, by the policy. unmatched: the receiver is
 * about to drop it. take: it is about to become part of a tick. arm: a signal was armed, in place of the one
 * before. fire: one fired; the device may be faster than the thread that arms, so this may come before `arm`
 * of the same token, and after that of the next one. Signals that were replaced before they fired do not.
 * complete: the device work of the tick is known to be complete. device_work: it lasted from `begin` to `end`
 * on one stream (the name lives as long as the graph), whose queue of the device has this number. lock: an
 * operator's compute has waited so long for a lock, whose name is a literal. blocked: so much of the tick's
 * compute went to calls that enqueued and had to wait; both come before `complete` of a tick whose GPU time
 * is measured (T15). wake: `worker` is woken. replay_begin, replay_end: around a capture and around the
 * launch of captured work.
 */
#define WR_TRACE_EVENTS(X)                                                                                   \
	X(run_begin, (unsigned workers), (workers))                                                          \
	X(run_end, (unsigned workers), (workers))                                                            \
	X(tick_begin, (unsigned lane, uint32_t entity, uint64_t tick), (lane, entity, tick))                 \
	X(tick_end, (unsigned lane, uint32_t entity, uint64_t tick), (lane, entity, tick))                   \
	X(ready, (unsigned lane, uint32_t entity), (lane, entity))                                           \
	X(poke, (unsigned lane, uint32_t entity), (lane, entity))                                            \
	X(wait,                                                                                              \
	  (unsigned lane, uint32_t entity, weir_cause cause, uint32_t on, const char *of, const char *why),  \
	  (lane, entity, cause, on, of, why))                                                                \
	X(entity_done, (unsigned lane, uint32_t entity), (lane, entity))                                     \
	X(deliver, (unsigned lane, uint32_t queue, uint64_t number), (lane, queue, number))                  \
	X(drop, (unsigned lane, uint32_t queue, uint64_t number), (lane, queue, number))                     \
	X(unmatched, (unsigned lane, uint32_t queue, uint64_t number), (lane, queue, number))                \
	X(take, (unsigned lane, uint32_t queue, uint64_t number), (lane, queue, number))                     \
	X(arm, (unsigned lane, uint32_t entity, uint64_t token, enum wr_trace_signal kind),                  \
	  (lane, entity, token, kind))                                                                       \
	X(fire, (unsigned lane, uint32_t entity, uint64_t token), (lane, entity, token))                     \
	X(complete, (unsigned lane, uint32_t entity, uint64_t tick), (lane, entity, tick))                   \
	X(device_work,                                                                                       \
	  (unsigned lane, uint32_t entity, uint64_t tick, const char *stream, uint32_t queue, int64_t begin, \
	   int64_t end, enum wr_trace_source source),                                                        \
	  (lane, entity, tick, stream, queue, begin, end, source))                                           \
	X(lock, (unsigned lane, uint32_t entity, const char *lock, int64_t waited),                          \
	  (lane, entity, lock, waited))                                                                      \
	X(blocked, (unsigned lane, uint32_t entity, uint64_t tick, int64_t spent),                           \
	  (lane, entity, tick, spent))                                                                       \
	X(flight, (unsigned lane, uint32_t entity, uint64_t ticks), (lane, entity, ticks))                   \
	X(pool_used, (unsigned lane, uint32_t pool, uint64_t used), (lane, pool, used))                      \
	X(replay_begin, (unsigned lane, uint32_t entity, bool capture), (lane, entity, capture))             \
	X(replay_end, (unsigned lane, uint32_t entity), (lane, entity))                                      \
	X(sleep_begin, (unsigned lane), (lane))                                                              \
	X(sleep_end, (unsigned lane), (lane))                                                                \
	X(steal, (unsigned lane, uint32_t entity), (lane, entity))                                           \
	X(wake, (unsigned lane, unsigned worker), (lane, worker))

#define WR_TRACE_LIST(...)                       __VA_ARGS__
#define WR_TRACE_ROW(row, parameters, arguments) void (*row)(void *self, WR_TRACE_LIST parameters);
#define WR_TRACE_TIMED_ROW(row, parameters, arguments)                                                       \
	void (*row)(void *self, int64_t at, WR_TRACE_LIST parameters);

/* Rows may be NULL. Threads: those of the events; the events of an entity come one after the other. */
struct wr_observer {
	const char *name;
	/* Leaves *self NULL and returns WEIR_OK if it is not wanted; it is then not called again. */
	weir_status (*open)(const struct wr_trace_options *options, void **self);
	void (*close)(void *self);
	WR_TRACE_DECLARATIONS(WR_TRACE_ROW)
	WR_TRACE_EVENTS(WR_TRACE_TIMED_ROW)
};
#undef WR_TRACE_ROW
#undef WR_TRACE_TIMED_ROW

/* trace/nvtx.c: NVTX ranges of one domain "weir"; silent when no tool listens. */
extern const struct wr_observer wr_nvtx;
/* trace/timeline.c: the project's own timeline; trace/timeline.h. */
extern const struct wr_observer wr_timeline;
/* trace/statistics.c: silent unless options.observe has WEIR_OBSERVE_STATISTICS. */
extern const struct wr_observer wr_statistics;
/* The same for WEIR_OBSERVE_COMPUTE without that bit: the times in compute, in the same struct. */
extern const struct wr_observer wr_compute_times;

/* The open observers of one scheduler; NULL if there are none, which costs one load per event. */
struct wr_trace;
/* *out stays NULL if no observer listens */
weir_status wr_trace_open(const struct wr_trace_options *options, struct wr_trace **out);
/* The same with the caller's observers, for tests. Borrows the tables until close. */
weir_status wr_trace_open_with(const struct wr_trace_options *options,
			       const struct wr_observer *const *observers, size_t count,
			       struct wr_trace **out);
void wr_trace_close(struct wr_trace *trace); /* NULL is fine */
/* What `open` of the observer gave; NULL: it is not open, or trace is NULL. */
void *wr_trace_self(const struct wr_trace *trace, const struct wr_observer *observer);
/* Returns true if an observer has the row device_work: then timers measure it. False for NULL. */
bool wr_trace_wants_device_work(const struct wr_trace *trace);

/* wr_trace_<row>(trace, ...) returns at once for NULL and else calls the observers out of line. */
#define WR_TRACE_INLINE(row, parameters, arguments)                                                          \
	void wr_trace_call_##row(struct wr_trace *trace, WR_TRACE_LIST parameters);                          \
	static inline void wr_trace_##row(struct wr_trace *trace, WR_TRACE_LIST parameters)                  \
	{                                                                                                    \
		if (trace)                                                                                   \
			wr_trace_call_##row(trace, WR_TRACE_LIST arguments);                                 \
	}
WR_TRACE_DECLARATIONS(WR_TRACE_INLINE)
WR_TRACE_EVENTS(WR_TRACE_INLINE)
#undef WR_TRACE_INLINE

/* --- counters (E5): each word has one writer at a time; any thread may read --- */
struct wr_queue_counters {
	_Atomic uint64_t pushed;     /* sender: from an entity or an inlet, or initial */
	_Atomic uint64_t dropped;    /* sender: by policy */
	_Atomic uint64_t taken_back; /* sender: after the receiver was DONE; part of `closed` */
	_Atomic uint64_t delivered;  /* receiver: to a compute or an outlet's caller */
	_Atomic uint64_t closed;     /* receiver: dropped on becoming DONE */
	_Atomic uint64_t abandoned;  /* the thread that cuts the run short, when no other runs */
	_Atomic uint64_t unmatched;  /* receiver: dropped by a review, as it belongs to no other message */
	_Atomic uint64_t reused;     /* receiver: ticks that were given a message again (C12) */
};
/* How old messages with a stamp were when they arrived where nothing follows. */
struct wr_latencies {
	_Atomic uint64_t count;
	_Atomic int64_t sum, max;
};
/*
 * Of an entity: X(name), as weir_entity_counts has them. most_in_flight: ticks on the device at once (T8);
 * most_scratch: bytes that one tick requested (T11); held: messages at the end of the run.
 */
#define WR_ENTITY_COUNTERS(X)                                                                                \
	X(ticks)                                                                                             \
	X(received)                                                                                          \
	X(emitted)                                                                                           \
	X(unconnected)                                                                                       \
	X(lost)                                                                                              \
	X(most_in_flight)                                                                                    \
	X(most_scratch)                                                                                      \
	X(replay_hits)                                                                                       \
	X(replay_captures)                                                                                   \
	X(replay_evictions)                                                                                  \
	X(replay_failures)                                                                                   \
	X(held)

struct wr_entity_counters {
#define WR_COUNTER(name) _Atomic uint64_t name;
	WR_ENTITY_COUNTERS(WR_COUNTER)
#undef WR_COUNTER
	struct wr_latencies latencies;
};
/* pushed = delivered + dropped + unmatched + closed + taken back + queued + abandoned. */
bool wr_counts_conserved(const struct wr_queue_counters *counters, uint64_t queued);

#endif

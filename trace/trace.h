/*
 * Trace events: a table of observer functions that the rooms above call, and the counters. Names are borrowed
 * as long as the graph lives.
 */
#ifndef WR_TRACE_TRACE_H
#define WR_TRACE_TRACE_H

#include "base/atomic.h"
#include "weir.h"

/* Rows may be NULL. */
struct wr_observer {
	const char *name;
	/* leaves *self NULL and returns WEIR_OK if no tool listens; the observer is then not called again */
	weir_status (*open)(void **self);
	void (*close)(void *self);
	void (*entity)(void *self, uint32_t entity, const char *name); /* before a run, once per entity */
	void (*worker)(void *self, unsigned worker); /* on the worker's thread, at its start */
	/* a stream was made; native: cudaStream_t or NULL */
	void (*stream)(void *self, void *native, const char *owner);
	void (*tick_begin)(void *self, uint32_t entity, uint64_t tick); /* around compute, on its thread */
	void (*tick_end)(void *self, uint32_t entity, uint64_t tick);
	void (*ready)(void *self, uint32_t entity); /* a review answered READY */
	void (*park)(void *self, uint32_t entity, const char *why);
	void (*deliver)(void *self, uint32_t queue, uint32_t entity); /* pushed by entity */
	void (*drop)(void *self, uint32_t queue);
	void (*arm)(void *self, uint32_t entity, uint64_t token);
	void (*entity_done)(void *self, uint32_t entity); /* became DONE */
	void (*sleep_begin)(void *self, unsigned worker); /* a worker without work */
	void (*sleep_end)(void *self, unsigned worker);
};

/* trace/nvtx.c: NVTX ranges of one domain "weir"; silent when no tool listens. */
extern const struct wr_observer wr_nvtx;

/* The open observers of one scheduler; NULL if there are none, which costs one load per event. */
struct wr_trace;
weir_status wr_trace_open(struct wr_trace **out); /* *out stays NULL if no observer listens */
/* The same with the caller's observers, for tests. Borrows the tables until close. */
weir_status wr_trace_open_with(struct wr_trace **out, const struct wr_observer *const *observers,
			       size_t count);
void wr_trace_close(struct wr_trace *trace); /* NULL is fine */

/*
 * X(row, parameters, arguments), one per event of the table above. Each makes an inline function
 * wr_trace_<row>(trace, ...) that returns at once for NULL and else calls the observers out of line.
 */
#define WR_TRACE_ROWS(X)                                                                                     \
	X(entity, (uint32_t entity, const char *name), (entity, name))                                       \
	X(worker, (unsigned worker), (worker))                                                               \
	X(stream, (void *native, const char *owner), (native, owner))                                        \
	X(tick_begin, (uint32_t entity, uint64_t tick), (entity, tick))                                      \
	X(tick_end, (uint32_t entity, uint64_t tick), (entity, tick))                                        \
	X(ready, (uint32_t entity), (entity))                                                                \
	X(park, (uint32_t entity, const char *why), (entity, why))                                           \
	X(deliver, (uint32_t queue, uint32_t entity), (queue, entity))                                       \
	X(drop, (uint32_t queue), (queue))                                                                   \
	X(arm, (uint32_t entity, uint64_t token), (entity, token))                                           \
	X(entity_done, (uint32_t entity), (entity))                                                          \
	X(sleep_begin, (unsigned worker), (worker))                                                          \
	X(sleep_end, (unsigned worker), (worker))

#define WR_TRACE_LIST(...) __VA_ARGS__
#define WR_TRACE_INLINE(row, parameters, arguments)                                                          \
	void wr_trace_call_##row(struct wr_trace *trace, WR_TRACE_LIST parameters);                          \
	static inline void wr_trace_##row(struct wr_trace *trace, WR_TRACE_LIST parameters)                  \
	{                                                                                                    \
		if (trace)                                                                                   \
			wr_trace_call_##row(trace, WR_TRACE_LIST arguments);                                 \
	}
WR_TRACE_ROWS(WR_TRACE_INLINE)
#undef WR_TRACE_INLINE

/* --- counters (E5): each word has one writer at a time; any thread may read --- */
struct wr_queue_counters {
	_Atomic uint64_t pushed;     /* sender: from an entity or an inlet, or initial */
	_Atomic uint64_t dropped;    /* sender: by policy */
	_Atomic uint64_t taken_back; /* sender: after the receiver was DONE; part of `closed` */
	_Atomic uint64_t delivered;  /* receiver: to a compute or an outlet's caller */
	_Atomic uint64_t closed;     /* receiver: dropped on becoming DONE */
	_Atomic uint64_t abandoned;  /* the thread that cuts the run short, when no other runs */
};
struct wr_entity_counters {
	_Atomic uint64_t ticks, received, emitted, unconnected, lost;
	_Atomic int64_t compute_ns;
	_Atomic uint64_t most_in_flight; /* ticks on the device at once (T8) */
	_Atomic uint64_t replay_hits, replay_captures, replay_evictions, replay_failures; /* T13 */
};
/* pushed = delivered + dropped + closed + taken back + queued + abandoned. */
bool wr_counts_conserved(const struct wr_queue_counters *counters, uint64_t queued);

#endif

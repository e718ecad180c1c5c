/*
 * What happened: one observer table that the rooms above call, and what hangs on it. Names are borrowed while the graph lives.
 */
#ifndef WR_TRACE_TRACE_H
#define WR_TRACE_TRACE_H

#include "base/atomic.h"
#include "weir.h"

struct wr_observer {
	const char *name;
	weir_status (*open)(void **self);				/* WEIR_OK with *self NULL: nobody listens, is not called again */
	void (*close)(void *self);
	void (*entity)(void *self, uint32_t entity, const char *name);	/* before a run, once per entity */
	void (*worker)(void *self, unsigned worker);			/* on the worker's thread, at its start */
	void (*stream)(void *self, void *native, const char *owner);	/* a stream was made; native: cudaStream_t or NULL */
	void (*tick_begin)(void *self, uint32_t entity, uint64_t tick);	/* around compute, on its thread */
	void (*tick_end)(void *self, uint32_t entity, uint64_t tick);
	void (*ready)(void *self, uint32_t entity);			/* a review answered READY */
	void (*park)(void *self, uint32_t entity, const char *why);
	void (*deliver)(void *self, uint32_t queue, uint32_t entity);	/* pushed by entity */
	void (*drop)(void *self, uint32_t queue);
	void (*arm)(void *self, uint32_t entity, uint64_t token);
	void (*fire)(void *self, uint32_t entity, uint64_t token);	/* seen by the loop thread */
	void (*retire)(void *self, uint32_t entity);			/* became DONE */
	void (*sleep_begin)(void *self, unsigned worker);		/* a worker without work */
	void (*sleep_end)(void *self, unsigned worker);
};

extern const struct wr_observer wr_nvtx;	/* trace/nvtx.c: NVTX ranges of one domain "weir" (PROFILING.md); silent when no tool listens */

struct wr_trace;	/* the observers that listen in one scheduler; NULL: nobody, which costs one load per call */
weir_status wr_trace_open(struct wr_trace **out);	/* *out stays NULL when nobody listens */
void wr_trace_close(struct wr_trace *trace);
/* One of these per row of the table; each is inline and returns at once for NULL. */
void wr_trace_entity(struct wr_trace *trace, uint32_t entity, const char *name);
void wr_trace_worker(struct wr_trace *trace, unsigned worker);
void wr_trace_stream(struct wr_trace *trace, void *native, const char *owner);
void wr_trace_tick_begin(struct wr_trace *trace, uint32_t entity, uint64_t tick);
void wr_trace_tick_end(struct wr_trace *trace, uint32_t entity, uint64_t tick);
void wr_trace_ready(struct wr_trace *trace, uint32_t entity);
void wr_trace_park(struct wr_trace *trace, uint32_t entity, const char *why);
void wr_trace_deliver(struct wr_trace *trace, uint32_t queue, uint32_t entity);
void wr_trace_drop(struct wr_trace *trace, uint32_t queue);
void wr_trace_arm(struct wr_trace *trace, uint32_t entity, uint64_t token);
void wr_trace_fire(struct wr_trace *trace, uint32_t entity, uint64_t token);
void wr_trace_retire(struct wr_trace *trace, uint32_t entity);
void wr_trace_sleep_begin(struct wr_trace *trace, unsigned worker);
void wr_trace_sleep_end(struct wr_trace *trace, unsigned worker);

/* --- counters (E5): each word has one writer at a time; any thread may read --- */
struct wr_queue_counters {
	_Atomic uint64_t pushed;	/* sender: came in (its sender, its inlet, or initial) */
	_Atomic uint64_t dropped;	/* sender: by policy */
	_Atomic uint64_t taken_back;	/* sender: after the receiver was DONE; part of `closed` */
	_Atomic uint64_t delivered;	/* receiver: to a compute or an outlet's caller */
	_Atomic uint64_t closed;	/* receiver: dropped on becoming DONE */
	_Atomic uint64_t abandoned;	/* whoever cuts the run short, alone then */
};
struct wr_entity_counters {
	_Atomic uint64_t ticks, received, emitted, unconnected;
	_Atomic int64_t compute_ns;
};
/* pushed = delivered + dropped + closed + taken back + queued + abandoned. */
bool wr_counts_conserved(const struct wr_queue_counters *counters, uint64_t queued);

#endif

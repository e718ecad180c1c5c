/*
 * Statistics of a run, collected by an observer: how long the ticks of each entity took and what the entity
 * waited for, how full queues were, what workers did, how long signals took. It knows entities, queues and
 * workers by number; report/statistics.c adds the names and the counters and writes the text.
 *
 * Threads: each part has one writer at a time, which its struct names. The words are atomics with relaxed
 * orders, so any thread may read them at any time; what it reads need not be of one moment.
 *
 * An entity is always in one of these: it waits for its conditions (from the review that parked it to the
 * poke after which it was READY), it waits for a worker (from that poke, or from READY if it ticks again at
 * once, to compute), it is inside compute, or it is between two of them (delivery, reviews). A wait that has
 * not ended counts too: until the time of reading, and at the end of the run until that.
 */
#ifndef WR_TRACE_STATISTICS_H
#define WR_TRACE_STATISTICS_H

#include "base/clock.h"
#include "trace/histogram.h"
#include "trace/statistics_paths.h"
#include "trace/trace.h"

enum { WR_SIGNALS_TRACED = WR_TRACE_FLAG + 1, WR_WAITS_LISTED = 64, WR_TICKS_REMEMBERED = 64, WR_FIRED = 2 };
enum { WR_STREAMS_LISTED = 64, WR_READINGS = 1000 };
enum {
	WR_USE_SAMPLED = 16, /* the use of the processor is measured in one tick of so many, */
	WR_USE_LONG = 20000  /* and in those that follow one that took so long, ns */
};

/* As in the event `wait`. */
struct wr_wait_for {
	weir_cause cause;
	uint32_t on;
	const char *of, *why;
};
/* What an entity waited for, and how long each time. */
struct wr_wait_times {
	struct wr_wait_for what;
	struct wr_histogram time; /* of those that have ended */
	_Atomic int64_t left;     /* how long the one was that the end of the run ended; 0: none */
	struct wr_wait_times *_Atomic next;
};

/* A stream that an entity has used: the device's queue behind it, which several may share. */
struct wr_stream_use {
	uint32_t queue; /* its number (wr_stream_number) */
	int device;
	_Atomic uint64_t run;   /* the last one in which it had it; a stream is taken before its run begins */
	_Atomic uint64_t count; /* measured spans of device work on it, and their sum: as gpu_span */
	_Atomic int64_t time;
	struct wr_stream_use *_Atomic next;
};

struct wr_ready_tick {
	uint64_t tick;
	int64_t ready_at;
};

/* Owner: the worker that runs the entity. */
struct wr_entity_statistics {
	_Atomic int64_t poked_at; /* the thread that puts it into a ready queue */
	/* Any thread: the last signals that fired. Two, since a firing may be told after that of the next
	 * one. */
	struct wr_fired {
		_Atomic uint64_t token; /* written after `at` */
		_Atomic int64_t at;
	} fired[WR_FIRED];
	_Atomic unsigned fired_count;

	/* Odd while the owner changes what waits show: the times, `open` and `waits_since`. */
	_Atomic uint64_t wait_changes;
	struct wr_wait_times *_Atomic open; /* `waiting`, if it counts */
	_Atomic int64_t waits_since;        /* if `waiting` is not NULL */

	uint64_t ticks; /* begun, so also the number of the next one */
	int64_t ready_at, begun_at, ended_at;
	struct wr_wait_times *waiting; /* the entry for what it waits for now */
	uint64_t armed_token;          /* 0: no signal is armed, or it has been counted */
	int64_t armed_at;
	enum wr_trace_signal armed_kind;
	struct wr_ready_tick ready[WR_TICKS_REMEMBERED]; /* at tick % WR_TICKS_REMEMBERED */
	uint64_t device_tick;                            /* whose device work is reported now, + 1 */
	int64_t device_begin, device_end;
	enum wr_trace_source device_source;

	struct wr_histogram submit, blocked, queued, waited, gpu_span, done_latency;
	struct wr_wait_times *_Atomic waits; /* a list */
	size_t waits_listed;
	struct wr_stream_use *_Atomic streams; /* a list */
	size_t streams_listed;
	const char *_Atomic lock; /* that its computes said they waited for; NULL: none */
	_Atomic uint64_t lock_waits;
	_Atomic int64_t lock_time;
	struct wr_histogram *_Atomic signals[WR_SIGNALS_TRACED]; /* made by the first of its kind */
	struct wr_thread_use used;                               /* when compute began, if `use_measured` */
	bool use_measured;
	/* Of the ticks whose use of the processor is measured: how many, the sums, their time in compute. */
	_Atomic uint64_t cpu_ticks, cpu_waits;
	_Atomic int64_t cpu_time, cpu_of;
	_Atomic unsigned source; /* 1 + enum wr_trace_source; 0: no device work */
};

/*
 * The sums of times wrap: sum of leaves - sum of enters + what is left * now is the integral of the depth, as
 * long as that fits a word.
 */
struct wr_queue_statistics {
	/* constant during a run */
	uint32_t receiver, capacity;

	/* sender */
	_Alignas(64) _Atomic uint64_t entered, entered_sum;
	_Atomic uint64_t dropped, dropped_sum;
	_Atomic uint64_t most;
	_Atomic int64_t full_at;     /* when it became full, after full_taken takes */
	_Atomic uint64_t full_taken; /* + 1; 0: it was not full yet */

	/* receiver */
	_Alignas(64) _Atomic uint64_t taken, taken_sum; /* or unmatched */
	_Atomic int64_t full_time, closed_at;           /* closed: the receiver is DONE; 0: it is not */
};

/* Owner: the worker; `wakes`: any. */
struct wr_worker_statistics {
	_Alignas(64) _Atomic uint64_t ticks, steals;
	_Atomic int64_t busy, asleep, asleep_since; /* 0: awake */
	_Atomic int64_t last_at;                    /* its last event */
	int64_t begun_at;
	_Atomic uint64_t wakes;
};

struct wr_statistics {
	uint64_t skip;  /* ticks of each entity that are left out */
	bool simulated; /* time is virtual */
	struct wr_entity_statistics *entities;
	struct wr_queue_statistics *queues;
	struct wr_worker_statistics *workers;
	size_t entity_count, queue_count, worker_count;
	_Atomic unsigned workers_running;   /* of this run */
	_Atomic int64_t begun_at, ended_at; /* 0: no run yet; it is on */
	_Atomic uint64_t run;               /* runs that have ended */
	struct wr_paths paths;
};

/* Of the observer that the trace has, wr_statistics or wr_compute_times; NULL: it has neither. Thread: any.
 */
struct wr_statistics *wr_statistics_in(const struct wr_trace *trace);
/* Now or the end of the run, on `sim` the last event; 0: no run yet. Thread: any. */
int64_t wr_statistics_now(struct wr_statistics *statistics);

/* How device times were learned: "timers", "flag", or NULL: none were. Thread: any. */
const char *wr_statistics_source(struct wr_entity_statistics *entity);

/*
 * Gives in `into` what the entity waited for this, with the wait that is open now; of NULL: all that it
 * waited for. Returns how long that one is so far, or was when the run ended; 0: it is not open. Thread: any;
 * `into` is the caller's.
 */
int64_t wr_statistics_waited(struct wr_statistics *statistics, size_t entity, struct wr_wait_times *wait,
			     struct wr_histogram *into);

/* Returns true if the entity had the stream in the run that is on, or was the last. Thread: any. */
bool wr_statistics_used(struct wr_statistics *statistics, struct wr_stream_use *use);

struct wr_depth {
	double mean;
	uint64_t most;
	int64_t full_time;
};
struct wr_depth wr_statistics_depth(struct wr_statistics *statistics, size_t queue); /* Thread: any */
int64_t wr_statistics_asleep(struct wr_statistics *statistics, size_t worker);       /* Thread: any */

#endif

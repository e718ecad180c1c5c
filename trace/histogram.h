/*
 * A log-linear histogram of durations in nanoseconds: 32 buckets per power of two, so that the middle of a
 * bucket is within 1/64 of every value in it. Values below 32 have a bucket each; from WR_HISTOGRAM_END on
 * all share the last one; negative values count as 0. A power of two gets its buckets at its first value, so
 * that a histogram takes about 1 KiB in practice.
 *
 * Threads: one writer at a time; any thread may read meanwhile. What it reads is of one moment per word only,
 * so the number of a summary is the sum of the buckets that it saw. All orders are relaxed, but that of the
 * pointer to new buckets, which are zeroed before they are seen.
 */
#ifndef WR_TRACE_HISTOGRAM_H
#define WR_TRACE_HISTOGRAM_H

#include "base/atomic.h"
#include "weir.h"

enum {
	WR_HISTOGRAM_STEPS = 32,   /* buckets per power of two */
	WR_HISTOGRAM_OCTAVES = 37, /* [0, 32), [32, 64), [64, 128) ... [2^40, 2^41) */
};
#define WR_HISTOGRAM_END (INT64_C(1) << 41)

struct wr_octave {
	_Atomic uint64_t counts[WR_HISTOGRAM_STEPS];
};

/* All zero: nothing was counted. */
struct wr_histogram {
	_Atomic uint64_t count;    /* also of values whose bucket had no memory */
	_Atomic uint64_t sum;      /* wraps after 584 years */
	_Atomic int64_t min, max;  /* if count is not 0 */
	_Atomic uint64_t homeless; /* without a bucket, for want of memory */
	struct wr_octave *_Atomic octaves[WR_HISTOGRAM_OCTAVES];
	_Atomic bool partial; /* of a merge: it had no memory for a bucket, so a reader must not tell it */
};

/* Of a histogram: all 0 if nothing was counted. */
struct wr_durations {
	uint64_t count;
	int64_t sum_ns, min_ns, max_ns, p50_ns, p90_ns, p99_ns;
};

struct wr_bucket {
	int64_t from, to; /* [from, to) */
	uint64_t count;
};

void wr_histogram_add(struct wr_histogram *histogram, int64_t ns);
/* Adds what `from` counted. Thread: the writer of `into`. */
void wr_histogram_merge(struct wr_histogram *into, struct wr_histogram *from);
/* Forgets all values, keeps the memory. Thread: the writer. */
void wr_histogram_clear(struct wr_histogram *histogram);
void wr_histogram_finish(struct wr_histogram *histogram);

/* What was counted; p50, p90 and p99 are within 1/64 of the exact ones. All 0: nothing. Thread: any. */
struct wr_durations wr_histogram_summary(struct wr_histogram *histogram);
/* Calls fn for each bucket that is not empty, in ascending order. Thread: any. */
void wr_histogram_each(struct wr_histogram *histogram, void (*fn)(const struct wr_bucket *bucket, void *arg),
		       void *arg);
/* The least value that the part `p` (0 to 1) of the values does not exceed, within 1/64; 0: nothing was
 * counted. */
int64_t wr_histogram_percentile(struct wr_histogram *histogram, double p);

#endif

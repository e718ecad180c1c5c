/*
 * For tests of scratch memory (T11). Kernels fill what their tick requested with a pattern, take their time,
 * and look whether it is still there: memory that two of them have at once is counted.
 */
#ifndef TESTS_SCHEDULER_RIG_SCRATCH_H
#define TESTS_SCHEDULER_RIG_SCRATCH_H

#include "rig_streams.h"

struct rig_pattern {
	uint64_t *memory;
	size_t words;
	uint64_t value;
	int64_t ns;
	bool written; /* by an earlier kernel: only looks */
};

extern _Atomic unsigned rig_overwritten; /* kernels that did not find their pattern */
extern const weir_kernel rig_keeping;    /* its argument is a rig_pattern */

uint64_t rig_next_value(void); /* for a pattern that no other has */
/* Requests so many words and lets a kernel on the stream (NULL: the current one) use them. */
weir_status rig_use(weir_context *context, weir_stream *stream, size_t words, int64_t ns, void **out);

/*
 * Function of `call`, which uses pools of `rig_means_resources` ("pool=p pool=m pool=h replay=1"): replays
 * work that uses scratch memory of two streams, with another key each 4 ticks; emits what it adds up, at a
 * point within the tick, and the tick's number from the host's pool at output 1.
 */
weir_status rig_emit_by_all_means(struct rig *rig, weir_context *context);
extern const char rig_means_resources[];

/* The graph, whose entity `a` does that, with a stream pool "p"; and a run of it. */
struct rig *rig_of_scratch(const char *text, rig_fn *compute);
struct rig *rig_run_scratch(const char *text, rig_fn *compute);
/* Two runs everywhere: `a` ticks that often, and no pattern is overwritten. */
void rig_scratch_everywhere(const char *text, size_t ticks, rig_fn *compute);

#endif

/*
 * For tests of the streams of an operator: a kernel that adds numbers, and functions of `call` that enqueue
 * it on the stream that their name says and emit its sum.
 */
#ifndef TESTS_SCHEDULER_RIG_STREAMS_H
#define TESTS_SCHEDULER_RIG_STREAMS_H

#include "sim/coroutine.h"
#include "rig.h"

#ifdef WR_TSAN
#define RIG_SEEDS 10 /* ThreadSanitizer: worlds are single-threaded, and their fibers slow */
#elif defined WR_ASAN
#define RIG_SEEDS 200
#else
#define RIG_SEEDS 1500
#endif

/* For rig_resources: one stream pool, "p". */
#define RIG_POOL(settings) "{\"p\": {\"type\": \"stream_pool\"" settings "}}"

/* Arguments of rig_adder: after ns it writes the sum of what lies there when it begins. NULL: nothing. */
struct rig_sum {
	int64_t *to;
	const int64_t *from[2];
	int64_t plus, ns;
};

extern const weir_kernel rig_adder;
extern _Atomic unsigned rig_read_early;  /* inputs that rig_adder read before they were written */
extern const weir_tensor rig_one_number; /* the shape of one int64_t, for weir_context_create_tensor */

const int64_t *rig_data_of(weir_context *context, unsigned input); /* NULL: no message */
/* A new tensor, written by a kernel on the stream: the sum of input 0, input 1 and a number. It holds -1
 * until then. */
weir_status rig_add(weir_context *context, weir_stream *stream, int64_t number, int64_t ns,
		    weir_message **out);
weir_status rig_emit_sum(weir_context *context, unsigned output, weir_stream *stream, int64_t number,
			 int64_t ns);
int64_t rig_tick(weir_context *context);
weir_stream *rig_carried(weir_context *context, unsigned input,
			 size_t i); /* the first of the message's streams */

/* Functions of `call`: the sum of the inputs, or the tick's number if there are none. */
weir_status rig_emit_on_current(struct rig *rig, weir_context *context);
weir_status rig_emit_on_allocated(struct rig *rig,
				  weir_context *context); /* "work", which the message then carries */
weir_status rig_emit_on_one_of_four(struct rig *rig,
				    weir_context *context); /* likewise, "s0" to "s3" in turn */
/* Receives, allocates, synchronizes and sets streams; output 0 is worked on by its own, output 1 on the
 * default. */
weir_status rig_emit_on_all(struct rig *rig, weir_context *context);
weir_status rig_emit_by_hand(struct rig *rig,
			     weir_context *context); /* "hand", which waits for what the input carries */

/* A check within an operator that a call failed with that status and a text that contains this one. */
void rig_refused(struct rig *rig, weir_status status, weir_status expected, const char *text);

#endif

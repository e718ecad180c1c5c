/* What the tests of GPU time (T15) share: an observer, and entities whose work takes a known time. */
#ifndef TESTS_SCHEDULER_GPU_TIME_RIG_H
#define TESTS_SCHEDULER_GPU_TIME_RIG_H

#include "rig_inside.h"
#include "rig_streams.h"

#define TEST(name)           static void name(void **state_)
#define ON(entity, function) rig_on(rig, entity, function)

enum { SPANS = 512, ENTITIES = 8 };

struct seen_span {
	uint32_t entity;
	uint64_t tick;
	const char *stream;
	int64_t begin, end;
};

struct seen {
	char names[ENTITIES][16];
	struct seen_span spans[SPANS];
	size_t count;
	int64_t submitted_at, submit[ENTITIES], ready_at[ENTITIES]; /* of the last tick */
	uint64_t completed[ENTITIES];                               /* ticks */
	int64_t blocked;
	bool ended;
	unsigned late; /* rows after the end of the run, or a tick that is complete before its spans are known
			*/
};

extern struct seen seen; /* of the last observed run, and those before it on the same scheduler */

extern const struct wr_observer observer; /* for one thread */

uint32_t entity_number(const char *name);
size_t span_count(const char *name);
const struct seen_span *span_of(const char *name, size_t n); /* the n-th span of the entity */
int64_t length_of(const struct seen_span *span);

/* The simulated device begins its work without a delay, and enqueueing takes no time. */
struct rig *observed(const char *text, int gpu_time);
void run_and_destroy(struct rig *rig);

/* Emits what a kernel writes after that time, on the current stream. */
weir_status kernel(weir_context *context, int64_t ns);
weir_status one_ms(struct rig *rig, weir_context *context); /* a function of `call` */

#endif

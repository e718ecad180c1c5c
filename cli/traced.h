/*
 * A trace (`weir run --trace FILE.json`), read into one step per tick, each with the step that its input came
 * from. Times are nanoseconds from the begin of the trace.
 */
#ifndef CLI_TRACED_H
#define CLI_TRACED_H

#include "cli/event.h"
#include "cli/recorded.h"

#define CLI_PROGRAM UINT32_MAX /* the entity of a step that is no tick: a push into an inlet */

/*
 * One tick. That of an instance is its entity's. Those that deal to instances, or order what these emit, are
 * `inside`: none of the ways goes by them.
 */
struct cli_step {
	uint32_t entity,
		via; /* via: the tick that the oldest part of its input came from, as index + 1; 0: none */
	int64_t tick, origin; /* origin: begin of the source's tick */
	int64_t ready, begin, end;
	int64_t device_begin, device_end; /* CLI_TIME_NONE: not measured */
	bool inside, took, gave;          /* took, gave: messages */
	uint32_t wait;                    /* what it waited for last: index + 1; 0: unknown */
};

struct cli_traced {
	struct cli_list steps; /* of struct cli_step: all ticks of the trace */
	struct cli_list waits; /* of char * */
	int64_t events, dropped;
	int64_t begun; /* 0 by the clock of the process, CLOCK_MONOTONIC; 0: unknown */
};

static inline struct cli_step *cli_traced_step(const struct cli_traced *traced, size_t i)
{
	return (struct cli_step *)traced->steps.items + i;
}

/*
 * Reads the trace of the run that `recorded` describes. Returns false with the reason in fault, empty if
 * memory ran out. cli_traced_finish takes what either leaves.
 */
bool cli_traced_read(struct cli_traced *out, const struct cli_recorded *recorded, const char *text,
		     size_t length, char fault[512]);
void cli_traced_finish(struct cli_traced *traced);

#endif

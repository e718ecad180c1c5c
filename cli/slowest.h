/*
 * The slowest frames of a trace (`weir run --trace FILE.json`), each with its way: which tick of which entity
 * handed it on to which, and where its time went. Times are nanoseconds from the begin of the trace.
 */
#ifndef CLI_SLOWEST_H
#define CLI_SLOWEST_H

#include <stdio.h>

#include "cli/recorded.h"

#define CLI_SLOWEST_MAX 11 /* 10 and a typical one, the last */
#define CLI_TIME_NONE   INT64_MIN

/* One tick. */
struct cli_step {
	uint32_t entity,
		via; /* via: the tick that the oldest part of its input came from, as index + 1; 0: none */
	int64_t tick, origin; /* origin: begin of the source's tick */
	int64_t ready, begin, end;
	int64_t device_begin, device_end; /* CLI_TIME_NONE: not measured */
	uint32_t wait;                    /* what it waited for last: index + 1; 0: unknown */
};

struct cli_frames_slowest {
	struct cli_list steps; /* of struct cli_step: all ticks of the trace */
	struct cli_list waits; /* of char * */
	size_t frames[CLI_SLOWEST_MAX], count;
	int64_t frame_count; /* ticks of sinks in the trace */
	int64_t events, dropped;
};

/*
 * Reads the trace of the run that `recorded` describes. Returns false with the reason in fault.
 * cli_slowest_finish takes what either leaves.
 */
bool cli_slowest_read(struct cli_frames_slowest *out, const struct cli_recorded *recorded, const char *text,
		      size_t length, char fault[512]);
void cli_slowest_finish(struct cli_frames_slowest *frames);
void cli_slowest_print(FILE *to, const struct cli_frames_slowest *frames);

#endif

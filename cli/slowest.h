/*
 * The slowest frames of a trace (`weir run --trace FILE.json`), each with its way: which tick of which entity
 * handed it on to which, and where its time went. Times are nanoseconds from the begin of the trace.
 */
#ifndef CLI_SLOWEST_H
#define CLI_SLOWEST_H

#include <stdio.h>

#include "cli/traced.h"

#define CLI_SLOWEST_MAX 11 /* 10 and a typical one, the last */

struct cli_frames_slowest {
	struct cli_traced traced;
	size_t frames[CLI_SLOWEST_MAX], count; /* steps of sinks */
	int64_t frame_count;                   /* ticks of sinks in the trace */
};

/*
 * Reads the trace of the run that `recorded` describes. Returns false with the reason in fault, empty if
 * memory ran out. cli_slowest_finish takes what either leaves.
 */
bool cli_slowest_read(struct cli_frames_slowest *out, const struct cli_recorded *recorded, const char *text,
		      size_t length, char fault[512]);
void cli_slowest_finish(struct cli_frames_slowest *frames);
void cli_slowest_print(FILE *to, const struct cli_frames_slowest *frames);

#endif

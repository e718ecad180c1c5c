/* What bench/lines does, without weir: plain CUDA on a few threads. */
#ifndef BENCH_LINES_PLAIN_H
#define BENCH_LINES_PLAIN_H

#include <stdbool.h>

#include "ready_gpu.h"

enum { LINES_STAGES = 3, LINES_MAX = 64 };

struct lines_plain {
	unsigned lines, frames, threads; /* frames: of each line; threads: among which lines are divided */
	struct ready_work work;          /* of each of a frame's kernels */
	bool replays;                    /* a frame is one CUDA graph, captured before the time runs */
};

bool lines_plain_open(unsigned lines); /* false: no device, or it cannot write words in stream order */
/* Frames/s of all lines. Ends the program with status 1 if a call fails. */
double lines_plain_run(const struct lines_plain *how);

#endif

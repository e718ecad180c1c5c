/* The simulated backend's knobs, for tests: faults and delays. */
#ifndef WR_STREAMS_HOST_SIM_H
#define WR_STREAMS_HOST_SIM_H

#include "streams/streams.h"

/* Chances are per 1000, 0 is never; times are virtual ns. */
struct wr_sim_knobs {
	int64_t work_min, work_max; /* of a kernel or copy, beside what it sleeps itself */
	int64_t call_min, call_max; /* from the end of the work to the callback */
	int64_t flag_min, flag_max; /* from the end of the work to the flag write */
	unsigned fault;             /* a kernel or copy fails: the device is lost */
	unsigned lost, twice;       /* a callback or flag write is lost; a callback is made twice */
	unsigned inside;            /* an operation has run before its enqueueing returns (F05) */
	unsigned blocked;           /* enqueueing takes long (F16) */
	bool after_fault;           /* callbacks are made after a fault, too (F11) */
};

void wr_system_set_knobs(struct wr_system *system, const struct wr_sim_knobs *knobs); /* sim only */

#endif

/* The simulated backend's knobs, for tests: what goes wrong, and how long things take. */
#ifndef WR_STREAMS_SIM_H
#define WR_STREAMS_SIM_H

#include "streams/streams.h"

/* Chances are of 1000. Zero is none; times are virtual ns. */
struct wr_sim_knobs {
	int64_t work_min, work_max;	/* a kernel or copy, beside what it sleeps itself */
	int64_t call_min, call_max;	/* from the end of the work to the callback */
	int64_t ring_min, ring_max;	/* from the end of the work to the flag */
	unsigned fault;			/* a kernel or copy fails: the device is lost */
	unsigned lost, twice;	/* a callback or flag never comes; a callback comes a second time */
	unsigned inside;	/* an enqueued call or record has happened before enqueueing returns (F05) */
	unsigned blocked;		/* enqueueing takes long (F16) */
	bool after_fault;		/* callbacks are made after a fault, too (F11) */
};

void wr_system_set_knobs(struct wr_system *system, const struct wr_sim_knobs *knobs);	/* sim only */

#endif

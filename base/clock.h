/* The only clock of the library: CLOCK_MONOTONIC, or the virtual time of the caller's world
 * (sim/simulation.h). */
#ifndef WR_BASE_CLOCK_H
#define WR_BASE_CLOCK_H

#include <stdint.h>

int64_t wr_now(void); /* nanoseconds; Thread: any */
/* What the calling thread has used. All is 0 in a simulated world. */
struct wr_thread_use {
	int64_t cpu;    /* nanoseconds on a core */
	uint64_t waits; /* how often it gave its core up to wait for something; not when it was preempted */
};
struct wr_thread_use wr_thread_use(void);    /* a call of the system */
int64_t wr_time_add(int64_t at, int64_t ns); /* saturates at INT64_MAX (F37) */

#endif

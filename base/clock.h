/* The only clock of the library: CLOCK_MONOTONIC, or the virtual time of the caller's world
 * (sim/simulation.h). */
#ifndef WR_BASE_CLOCK_H
#define WR_BASE_CLOCK_H

#include <stdint.h>

int64_t wr_now(void);                        /* nanoseconds; Thread: any */
int64_t wr_time_add(int64_t at, int64_t ns); /* saturates at INT64_MAX (F37) */

#endif

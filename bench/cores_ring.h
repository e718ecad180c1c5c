/* The shortest compute at which a stencil keeps its workers busy for half of the time. */
#ifndef BENCH_CORES_RING_H
#define BENCH_CORES_RING_H

#include <stdint.h>

/* Searches so many times and prints a line. span: ns of a run. */
void cores_ring_measure(unsigned workers, int searches, int64_t span);
void cores_ring_print_head(void);

#endif

/* One graph with some numbers of workers, beside itself with one worker and beside oneTBB. */
#ifndef BENCH_CORES_SET_H
#define BENCH_CORES_SET_H

#include "cores.h"

enum { CORES_COUNTS_MOST = 5, CORES_ROUNDS_MOST = 101 };

struct cores_set {
	struct cores_shape shape;
	double length;                      /* of a compute, ns; 0: empty */
	unsigned counts[CORES_COUNTS_MOST]; /* of workers: the first is 1 */
	size_t columns;
	double wanted[CORES_COUNTS_MOST]; /* see cores_set_measure; 0: nothing */
	int rounds;
	int64_t span; /* ns, of a run */
};

/*
 * Measures and prints a line for each number of workers. Of empty computes: wall time by that of one worker
 * (wanted: at most), and the cores used (wanted: at most 2). Else: what the workers gain over one, as a part
 * of what as many bare threads gain over one with the same loop (wanted: at least).
 */
void cores_set_measure(const struct cores_set *set);
void cores_set_print_head(void);

double cores_median(double *values, size_t count);
double cores_least(const double *values, size_t count);

#endif

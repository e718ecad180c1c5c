#include "cores_ring.h"

#include <math.h>

#include "cores_set.h"
#include "program.h"

enum { STEPS = 7 /* 10 octaves / 2^7 */, SEARCHES_MOST = 51, LEAST_NODES = 4, LEAST_STEPS = 20, TRIES = 3 };

static const double shortest = 250, longest = 256000; /* ns */

/* Part of the workers' time that is spent in the loop: a run with computes of this length. */
static double efficiency(const struct cores_shape *shape, unsigned workers, double length,
			 double per_iteration, int64_t span, uint64_t moves[3])
{
	double rows = ceil((double)shape->nodes / workers), values[TRIES];
	uint64_t steps = (uint64_t)((double)span / rows / (length + 1000)) + LEAST_STEPS;
	struct cores_weir *graph = cores_weir_open(shape, workers, steps, moves != NULL);

	cores_iterations = (uint64_t)(length / per_iteration);
	for (int i = 0; i < TRIES; i++) {
		struct cores_run run = cores_weir_run(graph, steps);

		values[i] = (double)run.ticks * length / ((double)run.wall * workers);
		if (moves) {
			cores_weir_moves(graph, &moves[0], &moves[1]);
			moves[2] = run.ticks;
		}
	}
	cores_weir_close(graph);
	return cores_median(values, TRIES);
}

/* Returns `shortest` or `longest` if it is beyond. */
static double search(const struct cores_shape *shape, unsigned workers, int64_t span)
{
	double per_iteration = cores_work_ns(workers), low = shortest, high = longest;

	if (efficiency(shape, workers, low, per_iteration, span, NULL) >= 0.5)
		return low;
	if (efficiency(shape, workers, high, per_iteration, span, NULL) < 0.5)
		return high;
	for (int i = 0; i < STEPS; i++) {
		double middle = sqrt(low * high);

		if (efficiency(shape, workers, middle, per_iteration, span, NULL) >= 0.5)
			high = middle;
		else
			low = middle;
	}
	return high;
}

void cores_ring_print_head(void)
{
	printf("%-28s %7s %-22s | %9s %9s %9s %6s %6s |\n", "length at 50 %, us", "workers", "wanted",
	       "median", "least", "most", "wakes", "steals");
}

void cores_ring_measure(unsigned workers, int searches, int64_t span)
{
	struct cores_shape shape = cores_ring(workers < LEAST_NODES ? LEAST_NODES : workers);
	double lengths[SEARCHES_MOST], median;
	uint64_t moves[3]; /* wakes, steals, ticks */

	searches = searches > SEARCHES_MOST ? SEARCHES_MOST : searches;
	for (int i = 0; i < searches; i++)
		lengths[i] = search(&shape, workers, span);
	median = cores_median(lengths, (size_t)searches);
	efficiency(&shape, workers, median, cores_work_ns(workers), span, moves);
	printf("%-28s %7u %-22s | %s%8.2f %9.2f %9.2f %6.4f %6.4f |\n", shape.name, workers, "-",
	       median <= shortest  ? "<"
	       : median >= longest ? ">"
				   : " ",
	       median / 1e3, lengths[0] / 1e3, lengths[searches - 1] / 1e3,
	       (double)moves[0] / (double)moves[2], (double)moves[1] / (double)moves[2]);
	fflush(stdout);
	cores_shape_free(&shape);
}

/*
 * What bench/pipeline prints of a run: rate, latencies, and where time went if the rate is below that of the
 * slowest stage. Frames that end late all at once are a stall (of this machine or of a scheduler); intervals
 * that are all a little longer are a stage that is slower than thought.
 */
#include <stdlib.h>

#include "pipeline.h"

static double values[PIPELINE_FRAMES_MAX]; /* one thread prints */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double pipeline_median(double *all, int count)
{
	qsort(all, (size_t)count, sizeof *all, by_value);
	return all[count / 2];
}

static void latencies(const struct pipeline_run *run, int count, struct pipeline_figures *out)
{
	for (int i = 0; i < count; i++)
		values[i] = (double)(run->end[PIPELINE_WARM_UP + i] - run->begin[PIPELINE_WARM_UP + i]) / 1e6;
	out->half = pipeline_median(values, count);
	out->most = values[count * 99 / 100];
}

static void intervals(const struct pipeline_run *run, int count, struct pipeline_figures *out)
{
	const int64_t *end = run->end + PIPELINE_WARM_UP;

	for (int i = 0; i < count; i++)
		values[i] = (double)(end[i] - end[i - 1]) / 1e6;
	out->interval = pipeline_median(values, count);
	out->longest = values[count - 1];
	for (int i = count; i-- && values[i] > 1.5 * out->interval; out->late_count++)
		out->late += values[i] - out->interval;
}

static void kernels(const struct pipeline_run *run, int count, struct pipeline_figures *out)
{
	const int64_t *from = run->computed_from + PIPELINE_WARM_UP,
		      *to = run->computed_to + PIPELINE_WARM_UP;
	double idle = 0;

	if (!from[0])
		return;
	for (int i = 0; i < count; i++)
		values[i] = (double)(to[i] - from[i]) / 1e3;
	out->kernel = pipeline_median(values, count);
	for (int i = 0; i < count; i++) {
		values[i] = (double)(from[i] - to[i - 1]) / 1e3;
		idle += values[i];
	}
	out->between = pipeline_median(values, count);
	out->idle = idle * 1e3 / (double)(to[count - 1] - to[-1]);
}

struct pipeline_figures pipeline_figures_of(const struct pipeline_run *run)
{
	struct pipeline_figures out = {.hits = run->hits, .captures = run->captures};
	int count = run->frames - PIPELINE_WARM_UP;

	out.rate = count * 1e9 / (double)(run->end[run->frames - 1] - run->end[PIPELINE_WARM_UP - 1]);
	latencies(run, count, &out);
	intervals(run, count, &out);
	kernels(run, count, &out);
	return out;
}

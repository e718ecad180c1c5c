/* Clocks, and percentiles of samples. One set of samples at a time, on the main thread. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "ready.h"

enum { ROOM = READY_LINES * READY_FRAMES };

const struct ready_stats ready_no_stats = {0, NAN, NAN, NAN};
static int64_t samples[ROOM];
static size_t count;

static int64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

int64_t ready_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* As getrusage, with a resolution of a nanosecond. */
int64_t ready_cpu(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void ready_relax(void)
{
	if (ready_settings.crowded)
		sched_yield();
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void ready_spin_until(int64_t at)
{
	while (ready_now() < at)
		ready_relax();
}

void ready_samples_begin(void)
{
	count = 0;
}

void ready_sample(int64_t ns)
{
	if (count < ROOM)
		samples[count++] = ns;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The smallest sample that at least this percentage of the samples does not exceed. */
static double percentile(size_t percent)
{
	size_t rank = (count * percent + 99) / 100;

	return (double)samples[rank ? rank - 1 : 0] / 1e3;
}

struct ready_stats ready_samples_end(void)
{
	if (!count)
		return ready_no_stats;
	qsort(samples, count, sizeof *samples, by_size);
	return (struct ready_stats){count, percentile(50), percentile(90), percentile(99)};
}

void ready_print_stats(const struct ready_stats *stats)
{
	if (stats->count)
		printf("%9.2f%9.2f%9.2f%9zu", stats->p50, stats->p90, stats->p99, stats->count);
	else
		printf("%9s%9s%9s%9d", "-", "-", "-", 0);
}

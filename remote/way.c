#include "remote/way.h"

#include <stdlib.h>

void way_add(struct way *way, int64_t ns)
{
	uint64_t at = way->count++;

	if (!at || ns < way->least)
		way->least = ns;
	if (!at || ns > way->most)
		way->most = ns;
	if (at >= WAY_SAMPLE) { /* the n-th is in it with WAY_SAMPLE of n */
		way->drawn = way->drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		at = (way->drawn >> 11) % way->count;
	}
	if (at < WAY_SAMPLE)
		way->sample[at] = ns;
}

static int compare(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

	return (one > other) - (one < other);
}

int64_t way_percentile(struct way *way, unsigned percent)
{
	uint64_t kept = way->count < WAY_SAMPLE ? way->count : WAY_SAMPLE;
	uint64_t place = (kept * percent + 99) / 100;

	qsort(way->sample, kept, sizeof way->sample[0], compare);
	return kept ? way->sample[place ? place - 1 : 0] : 0;
}

#include "trace/histogram.h"

#include "base/memory.h"

enum { STEP_BITS = 5 };

struct place {
	unsigned octave, step;
};

static struct place place_of(int64_t ns)
{
	unsigned top;

	if (ns < WR_HISTOGRAM_STEPS)
		return (struct place){0, ns < 0 ? 0 : (unsigned)ns};
	if (ns >= WR_HISTOGRAM_END)
		return (struct place){WR_HISTOGRAM_OCTAVES - 1, WR_HISTOGRAM_STEPS - 1};
	top = 63 - (unsigned)__builtin_clzll((unsigned long long)ns);
	return (struct place){top - STEP_BITS + 1,
			      (unsigned)(ns >> (top - STEP_BITS)) & (WR_HISTOGRAM_STEPS - 1)};
}

static struct wr_bucket bucket_at(unsigned octave, unsigned step, uint64_t count)
{
	int64_t width = octave ? INT64_C(1) << (octave - 1) : 1;
	int64_t from = octave ? (WR_HISTOGRAM_STEPS + (int64_t)step) * width : step;

	return (struct wr_bucket){from, from + width, count};
}

/* Release: a thread that reads the pointer reads zeroed counts behind it. */
static struct wr_octave *octave_make(struct wr_histogram *histogram, unsigned i)
{
	struct wr_octave *octave = wr_alloc(1, sizeof *octave);

	if (octave)
		wr_store_release(&histogram->octaves[i], octave);
	return octave;
}

static void add_many(struct wr_histogram *histogram, struct place place, uint64_t count)
{
	struct wr_octave *octave = wr_read(&histogram->octaves[place.octave]); /* the writer's own */

	if (!octave)
		octave = octave_make(histogram, place.octave);
	if (octave)
		wr_count(&octave->counts[place.step], count);
	else
		wr_count(&histogram->homeless, count);
}

static void note_bounds(struct wr_histogram *histogram, int64_t min, int64_t max)
{
	bool first = !wr_read(&histogram->count);

	if (first || min < wr_read(&histogram->min))
		wr_note(&histogram->min, min);
	if (first || max > wr_read(&histogram->max))
		wr_note(&histogram->max, max);
}

void wr_histogram_add(struct wr_histogram *histogram, int64_t ns)
{
	ns = ns < 0 ? 0 : ns;
	note_bounds(histogram, ns, ns);
	add_many(histogram, place_of(ns), 1);
	wr_count(&histogram->sum, (uint64_t)ns);
	wr_count(&histogram->count, 1);
}

static void add_bucket(const struct wr_bucket *bucket, void *arg)
{
	add_many(arg, place_of(bucket->from), bucket->count);
}

void wr_histogram_merge(struct wr_histogram *into, struct wr_histogram *from)
{
	uint64_t count = wr_read(&from->count), homeless = wr_read(&into->homeless);

	if (!count)
		return;
	note_bounds(into, wr_read(&from->min), wr_read(&from->max));
	wr_histogram_each(from, add_bucket, into);
	if (wr_read(&from->partial) || wr_read(&into->homeless) > homeless)
		wr_note(&into->partial, true);
	wr_count(&into->homeless, wr_read(&from->homeless));
	wr_count(&into->sum, wr_read(&from->sum));
	wr_count(&into->count, count);
}

void wr_histogram_clear(struct wr_histogram *histogram)
{
	wr_note(&histogram->count, 0);
	wr_note(&histogram->sum, 0);
	wr_note(&histogram->min, 0);
	wr_note(&histogram->max, 0);
	wr_note(&histogram->homeless, 0);
	wr_note(&histogram->partial, false);
	for (unsigned i = 0; i < WR_HISTOGRAM_OCTAVES; i++) {
		struct wr_octave *octave = wr_read(&histogram->octaves[i]);

		for (unsigned k = 0; octave && k < WR_HISTOGRAM_STEPS; k++)
			wr_note(&octave->counts[k], 0);
	}
}

void wr_histogram_finish(struct wr_histogram *histogram)
{
	for (unsigned i = 0; i < WR_HISTOGRAM_OCTAVES; i++) {
		wr_free(wr_read(&histogram->octaves[i]));
		wr_note(&histogram->octaves[i], NULL);
	}
}

/* --- readers --- */

void wr_histogram_each(struct wr_histogram *histogram, void (*fn)(const struct wr_bucket *bucket, void *arg),
		       void *arg)
{
	for (unsigned i = 0; i < WR_HISTOGRAM_OCTAVES; i++) {
		struct wr_octave *octave = wr_load_acquire(&histogram->octaves[i]);

		for (unsigned k = 0; octave && k < WR_HISTOGRAM_STEPS; k++) {
			struct wr_bucket bucket = bucket_at(i, k, wr_read(&octave->counts[k]));

			if (bucket.count)
				fn(&bucket, arg);
		}
	}
}

enum { RANKS = 3 };

/* Looks for the values of some ranks, which ascend, in one pass. */
struct search {
	uint64_t passed, ranks[RANKS];
	int64_t found[RANKS];
	unsigned next, count;
};

static void search_bucket(const struct wr_bucket *bucket, void *arg)
{
	struct search *search = arg;

	search->passed += bucket->count;
	while (search->next < search->count && search->passed >= search->ranks[search->next])
		search->found[search->next++] = bucket->from + (bucket->to - 1 - bucket->from) / 2;
}

static void add_count(const struct wr_bucket *bucket, void *arg)
{
	*(uint64_t *)arg += bucket->count;
}

/* The least rank of which at least the part p of all values is not above it. */
static uint64_t rank_of(double p, uint64_t total)
{
	double rank = p * (double)total;
	uint64_t floor = (uint64_t)rank;

	floor += (double)floor < rank;
	return !floor ? 1 : floor < total ? floor : total;
}

/* Counts that rise meanwhile are no harm: a rank is of the number that the first pass saw. */
static void find_ranks(struct wr_histogram *histogram, const double *parts, unsigned count, int64_t *out)
{
	struct search search = {.count = count};
	int64_t min = wr_read(&histogram->min), max = wr_read(&histogram->max);
	uint64_t total = 0;

	wr_histogram_each(histogram, add_count, &total);
	for (unsigned i = 0; i < count; i++)
		search.ranks[i] = rank_of(parts[i], total);
	wr_histogram_each(histogram, search_bucket, &search);
	for (unsigned i = 0; i < count; i++) {
		int64_t found = search.found[i] < min ? min : search.found[i];

		out[i] = found > max ? max : found;
	}
}

int64_t wr_histogram_percentile(struct wr_histogram *histogram, double p)
{
	int64_t found = 0;

	find_ranks(histogram, &p, 1, &found);
	return found;
}

struct wr_durations wr_histogram_summary(struct wr_histogram *histogram)
{
	static const double parts[RANKS] = {0.5, 0.9, 0.99};
	int64_t found[RANKS];

	find_ranks(histogram, parts, RANKS, found);
	return (struct wr_durations){
		.count = wr_read(&histogram->count),
		.sum_ns = (int64_t)wr_read(&histogram->sum),
		.min_ns = wr_read(&histogram->min),
		.max_ns = wr_read(&histogram->max),
		.p50_ns = found[0],
		.p90_ns = found[1],
		.p99_ns = found[2],
	};
}

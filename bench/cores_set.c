#include "cores_set.h"

#include <string.h>

#include "program.h"

enum { LEAST_MESSAGES = 20, MOST_MESSAGES = 10000000 };
#define CORES_WANTED 2.0

/* --- figures --- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double cores_median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, by_value);
	return values[count / 2];
}

double cores_least(const double *values, size_t count)
{
	double least = values[0];

	for (size_t i = 1; i < count; i++)
		least = values[i] < least ? values[i] : least;
	return least;
}

/* --- runs --- */

/* Of one scheduler with one number of workers, by round. */
struct column {
	double wall[CORES_ROUNDS_MOST], cores[CORES_ROUNDS_MOST]; /* wall: ns a message */
	uint64_t messages, ticks;                                 /* of a run */
};

/* The second column of one worker is the first one again. */
struct table {
	struct column weir[CORES_COUNTS_MOST], again, tbb[CORES_COUNTS_MOST];
	double work[CORES_COUNTS_MOST][CORES_ROUNDS_MOST]; /* ns per iteration of so many bare threads */
	double wakes[CORES_COUNTS_MOST], steals[CORES_COUNTS_MOST]; /* per tick */
};

static void note(struct column *column, int round, struct cores_run run, uint64_t messages)
{
	column->wall[round] = (double)run.wall / (double)messages;
	column->cores[round] = (double)run.cpu / (double)run.wall;
	column->messages = messages;
	column->ticks = run.ticks;
}

/* Of one worker, in a run of `span`. Longer and longer runs, until the start of a run is little beside it. */
static uint64_t messages_for(const struct cores_set *set)
{
	struct cores_weir *graph = cores_weir_open(&set->shape, 1, 0, false);
	double took = 0;
	uint64_t count = LEAST_MESSAGES / 2;

	while (took < (double)set->span / 4 && count < MOST_MESSAGES) {
		count *= 2;
		took = (double)cores_weir_run(graph, count).wall;
	}
	cores_weir_close(graph);
	count = (uint64_t)((double)count * (double)set->span / took);
	return count < LEAST_MESSAGES ? LEAST_MESSAGES : count;
}

/* If there is work to share, so many more as there are workers: all runs last about as long. */
static uint64_t messages_of(const struct cores_set *set, uint64_t of_one, size_t k)
{
	return set->length > 0 ? of_one * set->counts[k] : of_one;
}

static void measure_round(const struct cores_set *set, struct table *table, uint64_t of_one,
			  struct cores_weir **graphs, void *tbb, int round)
{
	for (size_t k = 0; k < set->columns; k++) {
		uint64_t messages = messages_of(set, of_one, k);

		note(&table->weir[k], round, cores_weir_run(graphs[k], messages), messages);
		if (set->length > 0)
			table->work[k][round] = cores_work_ns(set->counts[k]);
	}
	note(&table->again, round, cores_weir_run(graphs[0], of_one), of_one);
#ifdef BENCH_WITH_TBB
	for (size_t k = 0; k < set->columns; k++) {
		uint64_t messages = messages_of(set, of_one, k);

		note(&table->tbb[k], round, cores_tbb_run(tbb, set->counts[k], messages), messages);
		must(table->tbb[k].ticks == table->weir[k].ticks ? WEIR_OK : WEIR_E_INVALID,
		     "ticks are missing");
	}
#else
	(void)tbb;
#endif
}

/* In runs of their own: to observe costs time. */
static void count_moves(const struct cores_set *set, struct table *table)
{
	for (size_t k = 0; k < set->columns; k++) {
		uint64_t messages = table->weir[k].messages;
		struct cores_weir *graph = cores_weir_open(&set->shape, set->counts[k], messages, true);
		double ticks = (double)cores_weir_run(graph, messages).ticks;
		uint64_t wakes, steals;

		cores_weir_moves(graph, &wakes, &steals);
		table->wakes[k] = (double)wakes / ticks;
		table->steals[k] = (double)steals / ticks;
		cores_weir_close(graph);
	}
}

/* --- lines --- */

void cores_set_print_head(void)
{
	printf("%-28s %7s %-22s | %6s %6s %11s %5s %5s %7s %6s %6s | %6s %6s %5s %7s | %s\n", "", "workers",
	       "wanted", "median", "best", "A/A", "cores", "bare", "ns/tick", "wakes", "steals", "median",
	       "best", "cores", "ns/tick", "holds");
}

/* What the times of a scheduler say: median and best of the ratio that is wanted. */
struct ratio {
	double median, best;
};

/* one: times of one worker, by round, beside which the column stands. */
static struct ratio ratio_of(const struct cores_set *set, const struct table *table, size_t k,
			     const double *one, const struct column *column)
{
	double by_round[CORES_ROUNDS_MOST], bare[CORES_ROUNDS_MOST];
	size_t rounds = (size_t)set->rounds;
	double best = cores_least(column->wall, rounds) / cores_least(one, rounds);

	if (!(set->length > 0)) {
		for (size_t i = 0; i < rounds; i++)
			by_round[i] = column->wall[i] / one[i];
		return (struct ratio){cores_median(by_round, rounds), best};
	}
	for (size_t i = 0; i < rounds; i++) {
		bare[i] = set->counts[k] * table->work[0][i] / table->work[k][i];
		by_round[i] = one[i] / column->wall[i] / bare[i];
	}
	return (struct ratio){cores_median(by_round, rounds), 1 / best / cores_median(bare, rounds)};
}

/* One worker by itself: half of the rounds were within. */
struct spread {
	double low, high;
};

static struct spread spread_of(const struct cores_set *set, const struct table *table)
{
	double by_round[CORES_ROUNDS_MOST];
	size_t rounds = (size_t)set->rounds;

	for (size_t i = 0; i < rounds; i++)
		by_round[i] = table->again.wall[i] / table->weir[0].wall[i];
	qsort(by_round, rounds, sizeof *by_round, by_value);
	return (struct spread){by_round[rounds / 4], by_round[rounds - 1 - rounds / 4]};
}

static double median_of(const double *values, int rounds)
{
	double copy[CORES_ROUNDS_MOST];

	memcpy(copy, values, (size_t)rounds * sizeof *copy);
	return cores_median(copy, (size_t)rounds);
}

static double ns_per_tick(const struct column *column, int rounds)
{
	return median_of(column->wall, rounds) * (double)column->messages / (double)column->ticks;
}

static void print_tbb(const struct cores_set *set, struct table *table, size_t k)
{
#ifdef BENCH_WITH_TBB
	struct ratio ratio = ratio_of(set, table, k, table->tbb[0].wall, &table->tbb[k]);

	printf(" | %6.2f %6.2f %5.2f %7.0f", ratio.median, ratio.best,
	       median_of(table->tbb[k].cores, set->rounds), ns_per_tick(&table->tbb[k], set->rounds));
#else
	(void)set;
	(void)table;
	(void)k;
	printf(" | %6s %6s %5s %7s", "-", "-", "-", "-");
#endif
}

/* More cores than wanted may be used if the run is faster by as much; it may be slower by what two runs of
 * one worker differ. */
static bool holds_empty(struct ratio ratio, double cores, double wanted, struct spread again)
{
	double faster = ratio.median < 1 ? 1 / ratio.median : 1;

	return ratio.median <= wanted * (again.high > 1 ? again.high : 1) && cores <= CORES_WANTED * faster;
}

static void print_line(const struct cores_set *set, struct table *table, size_t k, const double *one)
{
	bool empty = !(set->length > 0);
	struct ratio ratio = ratio_of(set, table, k, one, &table->weir[k]);
	struct spread again = spread_of(set, table);
	double cores = median_of(table->weir[k].cores, set->rounds), wanted = set->wanted[k];
	char name[64], text[32] = "-";
	bool holds = empty ? holds_empty(ratio, cores, wanted, again) : ratio.median >= wanted;

	snprintf(name, sizeof name, empty ? "%s, empty" : "%s, %.0f us", set->shape.name, set->length / 1e3);
	if (wanted > 0)
		snprintf(text, sizeof text, empty ? "<= %.2f, %.0f cores" : ">= %.2f", wanted, CORES_WANTED);
	printf("%-28s %7u %-22s | %6.2f %6.2f", name, set->counts[k], text, ratio.median, ratio.best);
	printf(" %5.2f-%-5.2f %5.2f ", again.low, again.high, cores);
	if (empty)
		printf("%5s", "-");
	else
		printf("%5.2f", set->counts[k] * median_of(table->work[0], set->rounds) /
					median_of(table->work[k], set->rounds));
	printf(" %7.0f %6.4f %6.4f", ns_per_tick(&table->weir[k], set->rounds), table->wakes[k],
	       table->steals[k]);
	print_tbb(set, table, k);
	printf(" | %s\n", wanted > 0 ? holds ? "yes" : "NO" : "-");
	fflush(stdout);
}

void cores_set_measure(const struct cores_set *set)
{
	struct table *table = calloc(1, sizeof *table);
	struct cores_weir *graphs[CORES_COUNTS_MOST];
	double one[CORES_ROUNDS_MOST];
	uint64_t of_one;
	void *tbb = NULL;

	must(table ? WEIR_OK : WEIR_E_NOMEM, "figures");
	cores_iterations = (uint64_t)(set->length / cores_work_ns(set->counts[set->columns - 1]));
	of_one = messages_for(set);
	for (size_t k = 0; k < set->columns; k++)
		graphs[k] = cores_weir_open(&set->shape, set->counts[k], messages_of(set, of_one, k), false);
#ifdef BENCH_WITH_TBB
	tbb = cores_tbb_open(&set->shape);
	must(tbb ? WEIR_OK : WEIR_E_NOMEM, "oneTBB");
#endif
	measure_round(set, table, of_one, graphs, tbb, 0); /* warms up: the next one takes its place */
	for (int i = 0; i < set->rounds; i++)
		measure_round(set, table, of_one, graphs, tbb, i);
	count_moves(set, table);
	for (int i = 0; i < set->rounds; i++)
		one[i] = (table->weir[0].wall[i] + table->again.wall[i]) / 2;
	for (size_t k = 0; k < set->columns; k++)
		print_line(set, table, k, one);
	for (size_t k = 0; k < set->columns; k++)
		cores_weir_close(graphs[k]);
#ifdef BENCH_WITH_TBB
	cores_tbb_close(tbb);
#endif
	free(table);
}

/*
 * How runs scale with workers: the costs of more workers than a graph of empty computes can use, what workers
 * gain if computes take a microsecond or more, and how short the computes of a stencil may be.
 * bench/README.md says what is compared. No pass or fail.
 *
 * usage: cores [--short] [--rounds N] [empty|chains|fan|ring]...
 */
#include "cores.h"

#include <sched.h>
#include <string.h>

#include "cores_ring.h"
#include "cores_set.h"
#include "program.h"

#ifdef BENCH_WITH_TBB
static const char beside[] = "weir | oneTBB";
#else
static const char beside[] = "without oneTBB, which was not found when this was built";
#endif

static const unsigned counts[CORES_COUNTS_MOST] = {1, 2, 4, 8, 16};

struct settings {
	size_t fit; /* of counts, on the cores of this process */
	int rounds;
	int64_t span;
	bool brief;
};

static void measure(const struct settings *settings, struct cores_shape shape, double length,
		    const unsigned *workers, size_t columns, const double *wanted)
{
	struct cores_set set = {.shape = shape,
				.length = length,
				.columns = columns,
				.rounds = settings->rounds,
				.span = settings->span};

	memcpy(set.counts, workers, columns * sizeof *workers);
	memcpy(set.wanted, wanted, columns * sizeof *wanted);
	cores_set_measure(&set);
	cores_shape_free(&set.shape);
}

static void measure_empty(const struct settings *settings)
{
	static const double wanted[CORES_COUNTS_MOST] = {0, 1.2, 1.2, 1.2, 1.2};
	struct cores_shape shapes[] = {cores_chains(1), cores_chains(8), cores_fan(10),
				       cores_fan(settings->brief ? 100 : 1000), cores_layers(32, 32)};

	printf("\nEmpty computes: wall time by that of one worker; cores used\n");
	cores_set_print_head();
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		measure(settings, shapes[i], 0, counts, settings->fit, wanted);
}

static void measure_chains(const struct settings *settings)
{
	static const double lengths[] = {1000, 10000};
	static const double wanted[][CORES_COUNTS_MOST] = {{0, 0.9, 0.9, 0.85, 0.75},
							   {0, 0.95, 0.95, 0.95, 0.95}};

	printf("\nN chains on N workers: what they gain over one worker, by what N bare threads gain\n");
	cores_set_print_head();
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		for (size_t k = 1; k < settings->fit; k++)
			measure(settings, cores_chains(counts[k]), lengths[i], (unsigned[]){1, counts[k]}, 2,
				(double[]){0, wanted[i][k]});
}

static void measure_fan(const struct settings *settings)
{
	static const double wanted[CORES_COUNTS_MOST] = {0, 0.85, 0.85, 0.85, 0.85};

	printf("\nFan-out to 32 and back, empty ends: what N workers gain over one, by what N bare threads "
	       "gain\n");
	cores_set_print_head();
	measure(settings, cores_fan(32), 20000, counts, settings->fit, wanted);
}

static void measure_ring(const struct settings *settings)
{
	printf("\nStencil: the length of a compute at which half of the workers' time is spent in "
	       "computes\n");
	cores_ring_print_head();
	for (size_t k = settings->brief ? settings->fit - 1 : 0; k < settings->fit; k++)
		cores_ring_measure(counts[k], settings->rounds / 3 + 1,
				   settings->span / 5); /* of many runs each */
}

static const struct part {
	const char *name;
	void (*measure)(const struct settings *settings);
} parts[] = {
	{"empty", measure_empty}, {"chains", measure_chains}, {"fan", measure_fan}, {"ring", measure_ring}};

enum { PARTS = sizeof parts / sizeof *parts };

static bool read_options(char **argv, struct settings *settings, bool chosen[PARTS])
{
	bool any = false;

	for (argv++; *argv; argv++) {
		size_t i = 0;

		if (!strcmp(*argv, "--short")) {
			settings->brief = true;
			continue;
		}
		if (!strcmp(*argv, "--rounds") && argv[1]) {
			settings->rounds = (int)strtol(*++argv, NULL, 10);
			continue;
		}
		while (i < PARTS && strcmp(*argv, parts[i].name))
			i++;
		if (i == PARTS)
			return false;
		chosen[i] = any = true;
	}
	for (size_t i = 0; i < PARTS && !any; i++)
		chosen[i] = true;
	return settings->rounds > 0 && settings->rounds <= CORES_ROUNDS_MOST;
}

int main(int argc, char **argv)
{
	struct settings settings = {.rounds = 11, .span = 100000000};
	bool chosen[PARTS] = {false};
	cpu_set_t cores;
	int available;

	(void)argc;
	if (!read_options(argv, &settings, chosen)) {
		fprintf(stderr, "usage: cores [--short] [--rounds N] [empty|chains|fan|ring]...\n");
		return 2;
	}
	if (settings.brief) {
		settings.rounds = 1;
		settings.span = 500000;
	}
	available = sched_getaffinity(0, sizeof cores, &cores) ? 1 : CPU_COUNT(&cores);
	while (settings.fit < CORES_COUNTS_MOST &&
	       (!settings.fit || counts[settings.fit] <= (unsigned)available))
		settings.fit++;
	printf("%d cores: 1 to %u workers%s; %d rounds; %s\n", available, counts[settings.fit - 1],
	       settings.fit < CORES_COUNTS_MOST ? " (more do not fit: their rows are left out)" : "",
	       settings.rounds, beside);
	for (size_t i = 0; i < PARTS; i++)
		if (chosen[i])
			parts[i].measure(&settings);
	return 0;
}

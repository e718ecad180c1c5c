/*
 * Random graphs by the public API alone, on real threads and in simulated runs. Payloads carry their
 * producer, a number and a pattern, and are written by slow kernels: no payload may be lost, read early or
 * out of order, and nothing may hang, while other threads poke, tell, push, take, stop or destroy.
 *
 * fuzz_api [--seconds S] [--ticks N] [--seeds N] [--start SEED] [--jobs N] [--backend host|sim] [--without
 * a,b] [--verbose]
 *
 * Stops when the first of the three limits is reached (10 s if none is given). A seed that fails is printed
 * with its graph; `--seeds 1 --start SEED --backend B` draws it again (on `sim` with the same order of
 * events). --without excludes: mixed (signals per condition), loose (streams that no message carries), own
 * (conditions with their own fences, and `fence`).
 */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fuzz_api.h"
#include "shown.h"

/* --- random numbers: splitmix64 --- */

uint64_t fz_next(struct fz_random *random)
{
	uint64_t x = random->state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

uint32_t fz_below(struct fz_random *random, uint32_t n)
{
	return (uint32_t)((fz_next(random) >> 32) * n >> 32);
}

bool fz_chance(struct fz_random *random, uint32_t one_in)
{
	return !fz_below(random, one_in);
}

/* --- jobs --- */

struct command {
	struct fz_options options;
	uint64_t seconds, ticks, seeds, start;
	unsigned jobs;
};

static struct command command = {.start = 1, .jobs = 1};
static struct fz *jobs[FZ_JOBS];
static _Atomic uint64_t next_seed, ticks, graphs, checked, ends[3];
static int64_t began;

struct fz *fz_of(int64_t slot)
{
	return jobs[slot];
}

void fz_break(struct fz *fz, const char *format, ...)
{
	va_list list;

	fprintf(stderr, "fuzz_api --seeds 1 --start %llu --backend %s: ", (unsigned long long)fz->seed,
		fz->backend);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fprintf(stderr, "\nsignal %s, %u workers, spin %lld, max_duration %lld%s%s\n%s\n", fz->signal,
		fz->scheduler_options.workers, (long long)fz->scheduler_options.worker_spin_ns,
		(long long)fz->scheduler_options.max_duration_ns, fz->inlet ? ", an inlet" : "",
		fz->outlet ? ", an outlet" : "", fz->text);
	abort();
}

static int64_t seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static bool enough(uint64_t seed)
{
	return (command.seconds && (uint64_t)(seconds_now() - began) >= command.seconds) ||
	       (command.ticks && atomic_load(&ticks) >= command.ticks) ||
	       (command.seeds && seed >= command.start + command.seeds);
}

static void run_seed(struct fz *fz, unsigned slot, uint64_t seed)
{
	memset(fz, 0, sizeof *fz);
	fz->options = &command.options;
	fz->slot = slot;
	fz->seed = seed;
	fz->random.state = seed * 0x2545f4914f6cdd1du;
	jobs[slot] = fz;
	fz_draw(fz);
	if (command.options.verbose)
		printf("seed %llu, %s, %u workers: %s\n", (unsigned long long)seed, fz->backend,
		       fz->scheduler_options.workers, fz->text);
	fz_run(fz);
	atomic_fetch_add(&ticks, fz->ticks);
	atomic_fetch_add(&checked, atomic_load(&fz->checked));
	atomic_fetch_add(&graphs, 1);
	for (unsigned i = 0; i < 3; i++)
		atomic_fetch_add(&ends[i], fz->ends[i]);
}

static void *work(void *arg)
{
	unsigned slot = (unsigned)(size_t)arg;
	struct fz *fz = malloc(sizeof *fz);

	for (uint64_t seed; fz && !enough(seed = atomic_fetch_add(&next_seed, 1));) {
		alarm(100); /* from the start of the last seed: a hang that the fuzzer's own time-outs miss */
		run_seed(fz, slot, seed);
	}
	free(fz);
	return NULL;
}

/* --- the command --- */

static unsigned without(const char *list)
{
	static const struct {
		const char *name;
		unsigned bit;
	} names[] = {{"mixed", FZ_MIXED}, {"loose", FZ_LOOSE}, {"own", FZ_OWN_FENCES}};
	unsigned bits = 0;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strstr(list, names[i].name))
			bits |= names[i].bit;
	return bits;
}

static bool parse(int argc, char **argv)
{
	int i = 1;

	while (i < argc) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		static const char *const names[] = {"--seconds", "--ticks", "--seeds", "--start"};
		uint64_t *const numbers[] = {&command.seconds, &command.ticks, &command.seeds,
					     &command.start};
		size_t k = 0;

		while (k < 4 && strcmp(argv[i], names[k]))
			k++;
		if (k < 4)
			*numbers[k] = strtoull(value, NULL, 0);
		else if (!strcmp(argv[i], "--jobs"))
			command.jobs = (unsigned)atoi(value);
		else if (!strcmp(argv[i], "--backend"))
			command.options.backend = value;
		else if (!strcmp(argv[i], "--without"))
			command.options.without = without(value);
		else if (!strcmp(argv[i], "--verbose")) {
			command.options.verbose = true;
			i++;
			continue;
		} else
			return false;
		i += 2;
	}
	if (!command.seconds && !command.ticks && !command.seeds)
		command.seconds = 10;
	return command.jobs && command.jobs <= FZ_JOBS;
}

static void hung(int number)
{
	static const char text[] = "fuzz_api: a seed hangs:";
	char line[32];

	(void)number;
	if (write(2, text, sizeof text - 1) < 0)
		_exit(3);
	for (unsigned i = 0; i < FZ_JOBS; i++)
		if (jobs[i] && write(2, line,
				     (size_t)snprintf(line, sizeof line, " %llu",
						      (unsigned long long)jobs[i]->seed)) < 0)
			_exit(3);
	abort();
}

static void hear(weir_log_level level, int64_t at, const char *line, void *arg)
{
	(void)level;
	(void)at;
	(void)arg;
	if (shown(line, false))
		return;
	fprintf(stderr, "fuzz_api: a line of the log holds control characters: '%s'\n", line);
	abort();
}

int main(int argc, char **argv)
{
	pthread_t threads[FZ_JOBS];

	if (!parse(argc, argv)) {
		fprintf(stderr, "usage: fuzz_api [--seconds S] [--ticks N] [--seeds N] [--start SEED] "
				"[--jobs N] [--backend host|sim] "
				"[--without mixed,loose,own] [--verbose]\n");
		return 2;
	}
	signal(SIGALRM, hung);
	if (weir_log_set(hear, NULL))
		abort();
	began = seconds_now();
	atomic_store(&next_seed, command.start);
	for (unsigned i = 0; i < command.jobs; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(size_t)i))
			abort();
	for (unsigned i = 0; i < command.jobs; i++)
		pthread_join(threads[i], NULL);
	printf("seeds %llu to %llu: %llu graphs, %llu ticks, %llu payloads checked; runs: %llu finished, "
	       "%llu deadlocks, %llu failed; %lld s\n",
	       (unsigned long long)command.start, (unsigned long long)(command.start + graphs - 1),
	       (unsigned long long)graphs, (unsigned long long)ticks, (unsigned long long)checked,
	       (unsigned long long)ends[0], (unsigned long long)ends[1], (unsigned long long)ends[2],
	       (long long)(seconds_now() - began));
	return 0;
}

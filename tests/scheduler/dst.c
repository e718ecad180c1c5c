/*
 * The real scheduler under seeded schedules: random small graphs on `sim`, in the build whose atomics are
 * switching points.
 *
 *	dst [--bug NAME] [--seeds N] [--start S] [--distinct N]
 *	    [--regressions FILE] [--rate] [--lost] [--verbose]
 *
 * Without --bug every seed must pass. It runs N seeds, and with --distinct goes on until N different
 * schedules were seen (by a hash of their order). With --bug the seeded bug must be found within N seeds;
 * with --rate it goes on and counts the seeds that find it. With --lost each signal may be lost, and flags
 * are those of `auto`. A failing seed prints one line that replays it.
 */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dst.h"
#include "tests/bugs/bug.h"

/* --- a set of hashes --- */

struct hashes {
	uint64_t *slots;
	size_t size, count;
};

static void grow(struct hashes *set);
static void note(struct hashes *set, uint64_t hash)
{
	size_t i;

	if (2 * set->count >= set->size)
		grow(set);
	hash += !hash;
	for (i = hash % set->size; set->slots[i] && set->slots[i] != hash; i = (i + 1) % set->size)
		;
	set->count += !set->slots[i];
	set->slots[i] = hash;
}

static void grow(struct hashes *set)
{
	struct hashes larger = {calloc(set->size * 2 + 1024, sizeof(uint64_t)), set->size * 2 + 1024, 0};

	if (!larger.slots)
		abort();
	for (size_t i = 0; i < set->size; i++)
		if (set->slots[i])
			note(&larger, set->slots[i]);
	free(set->slots);
	*set = larger;
}

/* --- the command --- */

struct command {
	uint64_t seeds, start, distinct;
	const char *bug; /* its name; NULL: none */
	const char *regressions;
	bool verbose, rate;
};

static struct command parse(int argc, char **argv)
{
	struct command command = {.seeds = 1000, .start = 1};

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "0";
		if (!strcmp(argv[i], "--verbose"))
			command.verbose = true;
		else if (!strcmp(argv[i], "--rate"))
			command.rate = true;
		else if (!strcmp(argv[i], "--lost"))
			dst_signals_lost = true;
		else if (!strcmp(argv[i], "--seeds"))
			command.seeds = strtoull(value, NULL, 0), i++;
		else if (!strcmp(argv[i], "--start"))
			command.start = strtoull(value, NULL, 0), i++;
		else if (!strcmp(argv[i], "--distinct"))
			command.distinct = strtoull(value, NULL, 0), i++;
		else if (!strcmp(argv[i], "--regressions"))
			command.regressions = value, i++;
		else if (!strcmp(argv[i], "--bug"))
			command.bug = value, i++;
	}
	return command;
}

static bool seed_passes(uint64_t seed, const struct command *command, struct hashes *set)
{
	static struct dst_report report;
	bool holds = dst_world(seed, &report);

	note(set, report.hash);
	if (command->verbose)
		printf("seed %llu: %016llx, %llu switching points\n", (unsigned long long)seed,
		       (unsigned long long)report.hash, (unsigned long long)report.switches);
	if (!holds)
		printf("dst --seeds 1 --start %llu%s%s%s: %s\n", (unsigned long long)seed,
		       dst_signals_lost ? " --lost" : "", command->bug ? " --bug " : "",
		       command->bug ? command->bug : "", report.broken);
	if (!holds && (command->verbose || !command->bug))
		printf("%s\n", report.text);
	return holds;
}

/* Runs the seeds that once failed, one per line before any comment. */
static int replay(const char *path, const struct command *command, struct hashes *set)
{
	FILE *file = fopen(path, "r");
	char line[256];
	int failed = 0;

	if (!file) {
		fprintf(stderr, "dst: cannot read %s\n", path);
		return 2;
	}
	while (!failed && fgets(line, sizeof line, file)) {
		char *end = line;
		uint64_t seed = strtoull(line, &end, 0);
		failed = end != line && !seed_passes(seed, command, set);
	}
	fclose(file);
	return failed;
}

static int search(const struct command *command, struct hashes *set)
{
	uint64_t ran = 0, found = 0;

	for (; ran < command->seeds || set->count < command->distinct; ran++) {
		if (seed_passes(command->start + ran, command, set) || (command->rate && ++found))
			continue;
		if (command->bug)
			printf("found after %llu seeds\n", (unsigned long long)ran + 1);
		return command->bug ? 0 : 1;
	}
	if (command->rate)
		printf("found by %llu of %llu seeds\n", (unsigned long long)found, (unsigned long long)ran);
	if (command->rate)
		return !found;
	printf("%llu seeds, %zu distinct schedules: %s\n", (unsigned long long)ran, set->count,
	       command->bug ? "the bug was not found" : "all hold");
	return command->bug ? 1 : 0;
}

/* With a seeded bug a crash counts as a broken promise. */
static void crashed(int number)
{
	static const char text[] = "found by a crash\n";

	(void)number;
	_exit(write(1, text, sizeof text - 1) < 0);
}

int main(int argc, char **argv)
{
	struct command command = parse(argc, argv);
	static struct dst_report first;
	struct hashes set = {0};
	int result = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	mallopt(M_TRIM_THRESHOLD, 1 << 28); /* keep the memory of one world for the next one */
	mallopt(M_MMAP_THRESHOLD, 1 << 26);
	dst_world(0, &first); /* what a process does once must not change a schedule */
	if (command.bug) {
		wr_bug_active = wr_bug_named(command.bug);
		signal(SIGABRT, crashed);
		signal(SIGSEGV, crashed);
	}
	if (command.regressions)
		result = replay(command.regressions, &command, &set);
	if (!result)
		result = search(&command, &set);
	free(set.slots);
	return result;
}

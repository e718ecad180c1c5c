/*
 * The real scheduler under seeded schedules: random small graphs on `sim`, in the build whose atomics are
 * switching points.
 *
 *	dst [--bug NAME] [--seeds N] [--start S] [--distinct N] [--regressions FILE] [--rate] [--verbose]
 *
 * Without --bug every seed must pass. It runs N seeds, and with --distinct goes on until N different
 * schedules were seen (by a hash of their order). With --bug the seeded bug must be found within N seeds;
 * with --rate it goes on and counts the seeds that find it. A failing seed prints one line that replays it.
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

static const char *const bugs[] = {
	[WR_BUG_CHECK_THEN_STORE] = "check_then_store",
	[WR_BUG_BLIND_IDLE] = "blind_idle",
	[WR_BUG_POKE_SKIPS] = "poke_skips",
	[WR_BUG_ROOM_BY_LOOKING] = "room_by_looking",
	[WR_BUG_CLOSED_AFTER_COUNT] = "closed_after_count",
	[WR_BUG_STATE_BEFORE_REFERENCE] = "state_before_reference",
	[WR_BUG_GIVEN_BACK_TO_CLOSED] = "given_back_to_closed",
	[WR_BUG_READY_NOT_BOUND] = "ready_not_bound",
	[WR_BUG_PAYLOAD_EARLY] = "payload_early",
	[WR_BUG_TOKEN_WITHOUT_GENERATION] = "token_without_generation",
	[WR_BUG_FLIGHT_NOT_ASKED] = "flight_not_asked",
	[WR_BUG_OWN_FENCE_NOT_ARMED] = "own_fence_not_armed",
	[WR_BUG_MARKED_BEFORE_PUSH] = "marked_before_push",
	[WR_BUG_LOOKED_BEFORE_MARK] = "looked_before_mark",
	[WR_BUG_UNFINISHED_TAKEN] = "unfinished_taken",
	[WR_BUG_GATE_AFTER_PUSH] = "gate_after_push",
	[WR_BUG_GATE_BEFORE_FRONT] = "gate_before_front",
	[WR_BUG_INLET_WAITS_UNSEEN] = "inlet_waits_unseen",
	[WR_BUG_ONE_SCRATCH] = "one_scratch",
};

static enum wr_bug bug_named(const char *name)
{
	for (size_t i = 1; i < sizeof bugs / sizeof *bugs; i++)
		if (bugs[i] && !strcmp(bugs[i], name))
			return (enum wr_bug)i;
	fprintf(stderr, "dst: no seeded bug '%s'\n", name);
	exit(2);
}

struct command {
	uint64_t seeds, start, distinct;
	enum wr_bug bug;
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
		else if (!strcmp(argv[i], "--seeds"))
			command.seeds = strtoull(value, NULL, 0), i++;
		else if (!strcmp(argv[i], "--start"))
			command.start = strtoull(value, NULL, 0), i++;
		else if (!strcmp(argv[i], "--distinct"))
			command.distinct = strtoull(value, NULL, 0), i++;
		else if (!strcmp(argv[i], "--regressions"))
			command.regressions = value, i++;
		else if (!strcmp(argv[i], "--bug"))
			command.bug = bug_named(value), i++;
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
		printf("dst --seeds 1 --start %llu%s%s: %s\n", (unsigned long long)seed,
		       command->bug ? " --bug " : "", command->bug ? bugs[command->bug] : "", report.broken);
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
	wr_bug_active = command.bug;
	if (command.bug) {
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

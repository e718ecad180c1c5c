/*
 * The real scheduler under seeded schedules: random small graphs on `sim` in the seam build, where every atomic is a switching point.
 *
 *	dst [--bug NAME] [--seeds N] [--start S] [--distinct N] [--verbose]
 *
 * Without --bug every seed must hold; it goes on until N seeds have run and, with --distinct, so many different schedules were seen (by the hash
 * of their order). With --bug the seeded bug must be found within N seeds. A failing seed prints one line that replays it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/memory.h"
#include "base/sim.h"
#include "base/thread.h"
#include "dst_graph.h"
#include "graphs/graph.h"
#include "streams/sim.h"
#include "streams/token.h"

struct world {
	struct dst dst;
	weir_graph *graph;
	weir_scheduler *scheduler;
	uint64_t seed;
	int stop;		/* 0 none, 1 drain, 2 at once */
	int64_t stop_after;
	bool pokes;
	_Atomic bool over;
};

/* A thread of somebody else's: useless pokes, also before and after runs, and a stop at a random time. */
static void outsider(void *arg)
{
	struct world *world = arg;
	struct wr_random random;

	wr_random_seed(&random, world->seed, 77);
	for (int i = 0; world->pokes && i < 40 && !wr_load(&world->over); i++) {
		if (world->dst.tiny && i)
			weir_sleep(DST_BEAT);	/* together with the source's beat, from then on in any order */
		else if (wr_random_below(&random, 3))
			wr_thread_yield();
		else
			weir_sleep((int64_t)wr_random_below(&random, 900));
		weir_entity_poke(&world->graph->entities[wr_random_below(&random, world->graph->entity_count)]);
	}
	if (world->stop) {
		weir_sleep(world->stop_after);
		weir_scheduler_stop(world->scheduler, world->stop == 1);
	}
}

static void check_counts(struct world *world)
{
	weir_queue_counts counts = {.size = sizeof counts};

	for (size_t i = 0; weir_scheduler_queue_counts(world->scheduler, i, &counts); i++) {
		if (counts.pushed != counts.delivered + counts.dropped + counts.closed + counts.queued + counts.abandoned)
			dst_break(&world->dst, "%s -> %s: messages were lost", counts.from, counts.to);
		if (world->dst.strict && !world->stop && (counts.pushed != world->dst.beats || counts.delivered != counts.pushed))
			dst_break(&world->dst, "%s -> %s: %llu of %u came, %llu were delivered", counts.from, counts.to,
				  (unsigned long long)counts.pushed, world->dst.beats, (unsigned long long)counts.delivered);
	}
}

static void run_once(struct world *world)
{
	struct wr_thread thread = {0};
	weir_outcome outcome = {.size = sizeof outcome};
	weir_status status;

	wr_store(&world->over, false);
	wr_thread_start(&thread, "outsider", outsider, world);
	status = weir_scheduler_start(world->scheduler);
	if (!status)
		status = weir_scheduler_wait(world->scheduler, 20000000000, &outcome);
	wr_store(&world->over, true);
	if (status)
		dst_break(&world->dst, "%s: %s", weir_status_text(status), weir_last_error());
	else
		check_counts(world);
	wr_thread_join(&thread);
}

static void body(void *arg)
{
	struct world *world = arg;
	weir_registry *registry = NULL;
	weir_scheduler_options options = {.size = sizeof options, .backend = "sim", .seed = world->seed};
	struct wr_sim_knobs knobs = {.work_min = 1, .work_max = 4000, .call_min = 1, .call_max = 3000, .inside = 100, .twice = 30};
	weir_status status = weir_registry_create(&registry);

	options.workers = 1 + (unsigned)wr_random_below(&world->dst.random, 3);
	if (world->dst.tiny)
		options.workers = 1 + (unsigned)wr_random_below(&world->dst.random, 2);
	options.drain_ns = 10000000000;
	if (!status)
		status = dst_register(registry);
	if (!status)
		status = dst_graph(&world->dst, registry, &world->graph);
	if (!status)
		status = weir_scheduler_create(&world->scheduler, world->graph, &options);
	if (status) {
		dst_break(&world->dst, "setting up: %s", weir_last_error());
	} else {
		wr_system_set_knobs(world->graph->system, &knobs);
		unsigned runs = 1 + (unsigned)wr_random_below(&world->dst.random, 2);
		for (unsigned i = 0; i < runs && !world->dst.broken[0]; i++)
			run_once(world);
	}
	if (!world->dst.broken[0]) {
		weir_scheduler_destroy(world->scheduler);
		if (weir_graph_destroy(world->graph))
			dst_break(&world->dst, "destroy: %s", weir_last_error());
	}
	weir_registry_destroy(registry);
}

/* True: every promise held. A broken world is dropped as it stands: it may hang, and what it holds is lost. */
static bool try_seed(uint64_t seed, struct world *world, uint64_t *hash)
{
	struct wr_sim *sim = NULL;
	weir_status status;

	memset(world, 0, sizeof *world);
	world->seed = seed;
	wr_random_seed(&world->dst.random, seed, 5);
	world->dst.tiny = wr_random_below(&world->dst.random, 2);
	world->pokes = wr_random_below(&world->dst.random, 2);
	world->stop = wr_random_below(&world->dst.random, 4) ? 0 : 1 + (int)wr_random_below(&world->dst.random, 2);
	world->stop_after = (int64_t)wr_random_below(&world->dst.random, 12000);
	if (wr_sim_create(&sim, seed, WR_SIM_BY_SEED))
		abort();
	wr_sim_set_limit(sim, 400000);
	status = wr_sim_call(sim, body, world);
	if (status)
		dst_break(&world->dst, "%s: %s", weir_status_text(status), weir_last_error());
	*hash = wr_sim_hash(sim);
	wr_sim_destroy(sim);
	wr_tokens_forget();
	return !world->dst.broken[0];
}

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
};

static enum wr_bug bug_named(const char *name)
{
	for (size_t i = 1; i < sizeof bugs / sizeof *bugs; i++)
		if (!strcmp(bugs[i], name))
			return (enum wr_bug)i;
	fprintf(stderr, "dst: no seeded bug '%s'\n", name);
	exit(2);
}

struct command {
	uint64_t seeds, start, distinct;
	enum wr_bug bug;
	bool verbose;
};

static struct command parse(int argc, char **argv)
{
	struct command command = {.seeds = 1000, .start = 1};

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "0";
		if (!strcmp(argv[i], "--verbose"))
			command.verbose = true;
		else if (!strcmp(argv[i], "--seeds"))
			command.seeds = strtoull(value, NULL, 0), i++;
		else if (!strcmp(argv[i], "--start"))
			command.start = strtoull(value, NULL, 0), i++;
		else if (!strcmp(argv[i], "--distinct"))
			command.distinct = strtoull(value, NULL, 0), i++;
		else if (!strcmp(argv[i], "--bug"))
			command.bug = bug_named(value), i++;
	}
	return command;
}

int main(int argc, char **argv)
{
	struct command command = parse(argc, argv);
	static struct world world;
	struct hashes set = {0};
	uint64_t ran = 0, hash;

	setvbuf(stdout, NULL, _IOLBF, 0);
	try_seed(0, &world, &hash);	/* what a process does once (it reads the environment) must not show in a schedule */
	wr_bug_active = command.bug;
	for (; ran < command.seeds || set.count < command.distinct; ran++) {
		bool held = try_seed(command.start + ran, &world, &hash);
		note(&set, hash);
		if (command.verbose)
			printf("seed %llu: %016llx\n", (unsigned long long)(command.start + ran), (unsigned long long)hash);
		if (held)
			continue;
		if (command.verbose || !command.bug)
			printf("dst --seeds 1 --start %llu: %s\n%s\n", (unsigned long long)(command.start + ran), world.dst.broken,
			       world.dst.text);
		if (command.bug)
			printf("found after %llu seeds: %s\n", (unsigned long long)ran + 1, world.dst.broken);
		return command.bug ? 0 : 1;
	}
	printf("%llu seeds, %zu distinct schedules: %s\n", (unsigned long long)ran, set.count,
	       command.bug ? "the bug was not found" : "all hold");
	free(set.slots);
	return command.bug ? 1 : 0;
}

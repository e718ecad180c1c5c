/*
 * How a world chooses the next fiber. Strategies, drawn from the seed, since no single one finds everything:
 *   uniform      any ready fiber, but the current one stays with a probability drawn per world: short and
 *                long stretches between switches
 *   PCT          the fiber of the highest random priority runs; at up to three points drawn per world its
 *                priority drops below all others (Burckhardt et al., A randomized scheduler with
 *                probabilistic guarantees of finding bugs, 2010)
 *   round robin  in turn, after a number of points drawn per world
 * A fiber that yields: PCT lowers its priority, the other strategies leave it if they can.
 *
 * With WR_SIM_PAUSES, at up to 512 points of a world a fiber also sleeps for a random time, as if it had been
 * preempted. All others go on as far as they can, and time passes, which no priority achieves: some bugs show
 * only if one thread stops between two steps while a whole run goes by.
 */
#include "sim/fiber.h"

enum {
	PCT_PATIENCE = 2000, /* points in a row after which a fiber is taken to spin without yielding */
	PAUSES_LOG = 10,     /* at most 512 pauses per world */
	PAUSE_ROLES = 5,
};
enum { STREAM_PAUSES = 2 }; /* beside those of sim/simulation.c */

static struct wr_fiber *any_but(struct wr_sim *sim, const struct wr_fiber *self)
{
	uint64_t r = wr_random_next(&sim->schedule) >> 32;
	size_t others = sim->ready_count - (self ? 1 : 0);
	size_t i = (size_t)(r * others >> 32);

	/* The last one takes the place of self. */
	return sim->ready[i] == self ? sim->ready[others] : sim->ready[i];
}

static struct wr_fiber *next_uniform(struct wr_sim *sim, struct wr_fiber *self, enum wr_manner manner)
{
	if (manner == WR_GOES_ON && (wr_random_next(&sim->schedule) & 255) < sim->stay)
		return self;
	return any_but(sim, manner == WR_YIELDS ? self : NULL);
}

static struct wr_fiber *next_round_robin(struct wr_sim *sim, struct wr_fiber *self, enum wr_manner manner)
{
	struct wr_fiber *after = NULL, *first = NULL;

	if (manner == WR_GOES_ON && sim->turn > 0) {
		sim->turn--;
		return self;
	}
	sim->turn = sim->quantum;
	for (size_t i = 0; i < sim->ready_count; i++) {
		struct wr_fiber *fiber = sim->ready[i];

		if (!first || fiber->index < first->index)
			first = fiber;
		if (fiber->index > self->index && (!after || fiber->index < after->index))
			after = fiber;
	}
	return after ? after : first;
}

static bool pct_drops(struct wr_sim *sim, enum wr_manner manner)
{
	bool drops = manner == WR_YIELDS || ++sim->streak > PCT_PATIENCE;

	for (int i = 0; i < WR_PCT_DEPTH; i++)
		drops |= sim->changes[i] == sim->choices;
	return drops;
}

static struct wr_fiber *next_pct(struct wr_sim *sim, struct wr_fiber *self, enum wr_manner manner)
{
	struct wr_fiber *best = NULL;

	sim->choices++;
	if (pct_drops(sim, manner))
		self->priority = --sim->floor;
	for (size_t i = 0; i < sim->ready_count; i++)
		if (!best || sim->ready[i]->priority > best->priority)
			best = sim->ready[i];
	if (best != self)
		sim->streak = 0;
	return best;
}

static enum wr_sim_strategy drawn_strategy(struct wr_sim *sim)
{
	uint64_t r = wr_random_below(&sim->schedule, 10);

	return r < 5 ? WR_SIM_UNIFORM : r < 9 ? WR_SIM_PCT : WR_SIM_ROUND_ROBIN;
}

/*
 * The length of the run is not known beforehand, so the change
 * points are drawn for a random length of 16 to 16384 choices.
 */
static void draw_changes(struct wr_sim *sim)
{
	uint64_t length = (uint64_t)16 << wr_random_below(&sim->schedule, 11);
	uint64_t depth = wr_random_below(&sim->schedule, WR_PCT_DEPTH + 1);

	for (uint64_t i = 0; i < depth; i++)
		sim->changes[i] = 1 + wr_random_below(&sim->schedule, length);
	sim->floor = (uint64_t)1 << 62;
}

static void pauses_draw(struct wr_sim *sim, uint64_t seed)
{
	struct wr_random *random = &sim->pausing;

	wr_random_seed(random, seed, STREAM_PAUSES);
	sim->pauses = 1u << wr_random_below(random, PAUSES_LOG);
	sim->pause_in = (uint64_t)4 << wr_random_below(random, 6);
	sim->pause_ns = (uint64_t)512 << wr_random_below(random, 7);
	sim->pause_of = wr_random_below(random, 3) ? PAUSE_ROLES : 1;
	sim->pause_role = wr_random_below(random, sim->pause_of);
}

static void strategy_set(struct wr_sim *sim, enum wr_sim_strategy strategy)
{
	static const unsigned stays[] = {0, 128, 192, 224};

	/* drawn in any case, so that a world by seed equals one with the same strategy by name */
	enum wr_sim_strategy drawn = drawn_strategy(sim);

	if (strategy == WR_SIM_BY_SEED || strategy == WR_SIM_PAUSES)
		strategy = drawn;
	switch (strategy) {
	case WR_SIM_BY_SEED:
	case WR_SIM_PAUSES:
	case WR_SIM_UNIFORM:
		sim->next = next_uniform;
		sim->stay = stays[wr_random_below(&sim->schedule, 4)];
		break;
	case WR_SIM_PCT:
		sim->next = next_pct;
		draw_changes(sim);
		break;
	case WR_SIM_ROUND_ROBIN:
		sim->next = next_round_robin;
		sim->quantum = wr_random_below(&sim->schedule, 8);
		break;
	}
}

void wr_strategy_draw(struct wr_sim *sim, enum wr_sim_strategy strategy, uint64_t seed)
{
	strategy_set(sim, strategy);
	if (strategy == WR_SIM_PAUSES)
		pauses_draw(sim, seed);
}

/*
 * An entity that becomes DONE while the unit that it waits for comes back, under many orders: the seam build,
 * in which each lock and each atomic is a switching point. Whole worlds (dst_claims.c) hardly ever meet these
 * orders: the review that ends an entity is short.
 */
#include "base/thread.h"
#include "memory_claims_rig.h"
#include "sim/simulation.h"
#include "tests/bugs/bug.h"

enum { A, B, C, ENTITIES };
#define SEEDS 1000

static struct {
	struct wr_shared shared;
	weir_graph graph;
	weir_entity entities[ENTITIES];
	struct wr_claim claims[ENTITIES];
	bool poked[ENTITIES], lost;
} world;

/* Instead of wr_poke (--wrap): nothing runs. */
bool __wrap_wr_poke(weir_entity *entity);
bool __wrap_wr_poke(weir_entity *entity)
{
	world.poked[entity - world.entities] = true;
	return true;
}

/* A uses the only unit; B and C are refused, in this order. */
static void set_up(void)
{
	memset(&world, 0, sizeof world);
	assert_int_equal(wr_shared_init(&world.shared), WEIR_OK);
	world.shared.size = 1;
	for (int e = 0; e < ENTITIES; e++) {
		world.claims[e] =
			(struct wr_claim){.from = &world.shared, .entity = &world.entities[e], .units = 1};
		world.entities[e].claims = &world.claims[e];
		world.entities[e].claim_count = 1;
		world.entities[e].graph = &world.graph;
		wr_claims_note_owed(&world.entities[e]);
		assert_int_equal(!wr_claims_take(&world.entities[e]), e == A);
	}
	world.claims[A].held = 0;
}

static void comes_back(void *arg)
{
	struct wr_offer offer;

	(void)arg;
	wr_mutex_lock(&world.shared.lock);
	offer = wr_shared_release_locked(&world.shared, 1);
	wr_mutex_unlock(&world.shared.lock);
	wr_poke_offered(offer);
}

/* Its review finds that it is DONE. A DONE entity's pokes are lost. */
static void end_b(void *arg)
{
	(void)arg;
	wr_claims_note_owed(&world.entities[B]);
	wr_claims_end(&world.entities[B]);
}

static void both(void *arg)
{
	struct wr_thread ending, freeing;

	(void)arg;
	wr_thread_start(&ending, "ending", end_b, NULL);
	wr_thread_start(&freeing, "freeing", comes_back, NULL);
	wr_thread_join(&ending);
	wr_thread_join(&freeing);
	world.lost = !world.poked[C];
}

static bool is_lost(uint64_t seed)
{
	struct wr_sim *sim = NULL;

	set_up();
	assert_int_equal(wr_sim_create(&sim, seed, WR_SIM_BY_SEED), WEIR_OK);
	assert_int_equal(wr_sim_call(sim, both, NULL), WEIR_OK);
	wr_sim_destroy(sim);
	wr_shared_finish(&world.shared);
	return world.lost;
}

static void s03_what_comes_back_while_an_entity_becomes_done_goes_to_the_next(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		if (is_lost(seed))
			fail_msg("seed %llu: C was not told", (unsigned long long)seed);
}

static void finds(enum wr_bug bug)
{
	uint64_t seed = 1;

	wr_bug_active = bug;
	while (seed <= SEEDS && !is_lost(seed))
		seed++;
	wr_bug_active = WR_BUG_NONE;
	assert_in_range(seed, 1, SEEDS);
}

static void s03_each_seeded_bug_of_an_entity_that_becomes_done_is_found(void **state)
{
	(void)state;
	finds(WR_BUG_CLAIM_DONE_KEEPS_ENTRY);
	finds(WR_BUG_CLAIM_DONE_KEEPS_NEW_OFFER);
	finds(WR_BUG_CLAIM_DONE_IN_TWO_SECTIONS);
	finds(WR_BUG_CLAIM_DONE_SILENT);
}

/* A uses two of three, B keeps one and lacks one, C is refused. One comes back, and B wants no second one. */
static bool kept_is_lost(enum wr_bug bug)
{
	bool lost;

	memset(&world, 0, sizeof world);
	assert_int_equal(wr_shared_init(&world.shared), WEIR_OK);
	world.shared.size = 3;
	for (int e = 0; e < ENTITIES; e++) {
		world.claims[e] = (struct wr_claim){.from = &world.shared,
						    .entity = &world.entities[e],
						    .units = e == A ? 2 : 1,
						    .ahead = e == B ? 2 : 0};
		world.entities[e].claims = &world.claims[e];
		world.entities[e].claim_count = 1;
		world.entities[e].graph = &world.graph;
	}
	assert_null(wr_claims_take(&world.entities[A]));
	world.claims[A].held = 0;
	wr_bug_active = bug;
	assert_int_equal(wr_claims_reserve(&world.entities[B], 2), 1);
	assert_non_null(wr_claims_take(&world.entities[C]));
	comes_back(NULL);
	lost = !world.poked[B];
	(void)wr_claims_reserve(&world.entities[B], 1);
	lost |= !world.poked[C];
	wr_bug_active = WR_BUG_NONE;
	wr_shared_finish(&world.shared);
	return lost;
}

static void s03_each_seeded_bug_of_one_that_keeps_is_found(void **state)
{
	(void)state;
	assert_false(kept_is_lost(WR_BUG_NONE));
	assert_true(kept_is_lost(WR_BUG_CLAIM_KEPT_SHORT_UNLISTED));
	assert_true(kept_is_lost(WR_BUG_CLAIM_KEPT_OFFERS_NOTHING));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s03_what_comes_back_while_an_entity_becomes_done_goes_to_the_next),
		cmocka_unit_test(s03_each_seeded_bug_of_an_entity_that_becomes_done_is_found),
		cmocka_unit_test(s03_each_seeded_bug_of_one_that_keeps_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

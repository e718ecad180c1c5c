/* Claims alone: two resources, three entities that are never run, and a poke that is noted. */
#include "memory_claims_rig.h"

enum { ENTITIES = 3, RESOURCES = 2 };

static struct rig {
	struct wr_shared shared[RESOURCES];
	weir_graph graph;
	weir_entity entities[ENTITIES];
	struct wr_claim claims[ENTITIES][RESOURCES];
	char poked[64]; /* "AB": A, then B */
} rig;

/* Instead of wr_poke (--wrap): nothing runs. */
bool __wrap_wr_poke(weir_entity *entity);
bool __wrap_wr_poke(weir_entity *entity)
{
	rig.poked[strlen(rig.poked)] = (char)('A' + (entity - rig.entities));
	return true;
}

static void assert_poked(const char *expected)
{
	assert_string_equal(rig.poked, expected);
	memset(rig.poked, 0, sizeof rig.poked);
}

static int set_up(void **state)
{
	(void)state;
	memset(&rig, 0, sizeof rig);
	for (int r = 0; r < RESOURCES; r++)
		assert_int_equal(wr_shared_init(&rig.shared[r]), WEIR_OK);
	for (int e = 0; e < ENTITIES; e++)
		rig.entities[e].claims = rig.claims[e], rig.entities[e].graph = &rig.graph;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (int r = 0; r < RESOURCES; r++)
		wr_shared_finish(&rig.shared[r]);
	return 0;
}

/* Entity e claims that many units of resource r, beside what it claims already. */
static void claims(int e, int r, uint64_t units)
{
	weir_entity *entity = &rig.entities[e];

	entity->claims[entity->claim_count++] =
		(struct wr_claim){.from = &rig.shared[r], .entity = entity, .units = units};
}

/* A review of e that finds its conditions READY: true if it may tick. */
static bool review(int e)
{
	wr_claims_note_owed(&rig.entities[e]);
	if (!wr_claims_take(&rig.entities[e]))
		return true;
	wr_claims_pass_on(&rig.entities[e]);
	return false;
}

/* The tick uses all that it claimed: it stays in use when the tick is over. */
static void use_all(int e)
{
	for (size_t i = 0; i < rig.entities[e].claim_count; i++)
		rig.claims[e][i].held = 0;
}

static void comes_back(int r, uint64_t units)
{
	struct wr_offer offer;

	wr_mutex_lock(&rig.shared[r].lock);
	offer = wr_shared_release_locked(&rig.shared[r], units);
	wr_mutex_unlock(&rig.shared[r].lock);
	wr_poke_offered(offer);
}

/* What A claims of the only unit is in use; B and C are refused, in this order. */
static void with_two_refused(void)
{
	rig.shared[0].size = 1;
	for (int e = 0; e < ENTITIES; e++)
		claims(e, 0, 1);
	assert_true(review(0));
	use_all(0);
	assert_false(review(1));
	assert_false(review(2));
	assert_poked("");
}

static void s03_a_claim_takes_what_is_free_and_no_more(void **state)
{
	(void)state;
	rig.shared[0].size = 3;
	claims(0, 0, 2);
	claims(1, 0, 2);
	assert_true(review(0));
	assert_false(review(1));
	assert_int_equal(rig.shared[0].used, 2);
	assert_true(wr_claims_refused(&rig.entities[1]));
}

static void s03_what_comes_back_is_offered_to_the_oldest_and_to_it_alone(void **state)
{
	(void)state;
	with_two_refused();
	comes_back(0, 1);
	assert_poked("B");
	assert_false(rig.claims[1][0].listed);
	assert_true(wr_claims_refused(&rig.entities[1])); /* until the poke has come */
	assert_true(rig.claims[2][0].listed);
	assert_true(review(1));
	assert_false(wr_claims_refused(&rig.entities[1]));
	assert_poked("");
}

static void s03_nothing_is_reserved_for_the_owed_one(void **state)
{
	(void)state;
	with_two_refused();
	comes_back(0, 1);
	assert_true(review(0));
	assert_false(review(1)); /* it is now behind C */
	use_all(0);
	memset(rig.poked, 0, sizeof rig.poked);
	comes_back(0, 1);
	assert_poked("C");
}

static void s03_a_refused_entity_gives_back_what_it_had_claimed_and_offers_it(void **state)
{
	(void)state;
	rig.shared[0].size = rig.shared[1].size = 1;
	claims(0, 1, 1);
	claims(1, 0, 1), claims(1, 1, 1);
	claims(2, 0, 1);
	assert_true(review(0)); /* resource 1 is taken */
	use_all(0);
	assert_false(review(1));
	assert_int_equal(rig.shared[0].used, 0);
	assert_true(review(2));
	assert_false(review(1)); /* now it lacks resource 0, and keeps its entry of resource 1 */
	comes_back(1, 1);
	assert_poked("B");
}

static void s03_claims_are_made_in_ascending_order(void **state)
{
	(void)state;
	rig.shared[0].size = rig.shared[1].size = 1;
	claims(0, 0, 1);
	claims(1, 0, 1), claims(1, 1, 1);
	assert_true(review(0));
	assert_false(review(1));
	assert_int_equal(rig.shared[1].most, 0); /* it was not touched */
}

static void s03_what_a_tick_did_not_use_is_offered(void **state)
{
	(void)state;
	rig.shared[0].size = 1;
	claims(0, 0, 1);
	claims(1, 0, 1);
	assert_true(review(0));
	assert_false(review(1));
	wr_claims_release(&rig.entities[0]); /* compute failed, or took nothing */
	assert_int_equal(rig.shared[0].used, 0);
	assert_poked("B");
}

static void s03_an_offer_that_is_not_used_is_passed_on(void **state)
{
	(void)state;
	with_two_refused();
	comes_back(0, 1);
	assert_poked("B");
	wr_claims_note_owed(&rig.entities[1]); /* its review ends in WAIT */
	wr_claims_pass_on(&rig.entities[1]);
	assert_poked("C");
}

static void s03_an_offer_that_came_during_the_review_is_left_to_the_next_one(void **state)
{
	(void)state;
	with_two_refused();
	wr_claims_note_owed(&rig.entities[1]);
	comes_back(0, 1);
	assert_poked("B");
	wr_claims_pass_on(&rig.entities[1]);
	assert_poked("");
	assert_true(review(1));
}

static void s03_h15_what_is_left_goes_to_the_oldest_for_which_it_is_enough(void **state)
{
	(void)state;
	rig.shared[0].size = 2;
	claims(0, 0, 2);
	claims(1, 0, 2);
	claims(2, 0, 1);
	assert_true(review(0));
	use_all(0);
	assert_false(review(1));
	assert_false(review(2));
	comes_back(0, 1);
	assert_poked("C"); /* B is older and needs two */
	assert_true(review(2));
	use_all(2);
	comes_back(0, 2);
	assert_poked("B");
}

static void s03_h15_a_claim_offers_what_it_leaves(void **state)
{
	(void)state;
	rig.shared[0].size = 2;
	for (int e = 0; e < ENTITIES; e++)
		claims(e, 0, e ? 1 : 2);
	assert_true(review(0));
	use_all(0);
	assert_false(review(1));
	assert_false(review(2));
	comes_back(0, 2); /* one offer for two units */
	assert_poked("B");
	assert_true(review(1));
	assert_poked("C");
}

static void s03_done_removes_its_entry_and_passes_its_offers_on(void **state)
{
	(void)state;
	with_two_refused();
	comes_back(0, 1);
	assert_poked("B");
	wr_claims_end(&rig.entities[1]);
	assert_poked("C");
	wr_claims_end(&rig.entities[2]);
	assert_poked("");
	assert_null(rig.shared[0].first);
}

static void s03_done_removes_an_entry_in_the_middle(void **state)
{
	(void)state;
	with_two_refused();
	wr_claims_end(&rig.entities[1]);
	comes_back(0, 1);
	assert_poked("C");
}

static void s03_s08_a_reset_forgets_entries_offers_and_claims(void **state)
{
	(void)state;
	with_two_refused();
	claims(0, 1, 1);
	rig.claims[0][0].held = 1; /* the run was abandoned in its tick */
	for (int e = 0; e < ENTITIES; e++)
		wr_claims_reset(&rig.entities[e]);
	wr_shared_reset(&rig.shared[0]);
	assert_int_equal(rig.shared[0].used, 0);
	assert_null(rig.shared[0].first);
	assert_int_equal(rig.shared[0].refusals, 0);
}

/* Entity e keeps claims of resource r for up to `ahead` messages. */
static void keeps(int e, int r, uint64_t units, uint64_t ahead)
{
	claims(e, r, units);
	rig.claims[e][rig.entities[e].claim_count - 1].ahead = ahead;
}

static void s03_one_that_keeps_takes_what_there_is_and_is_told_of_the_rest(void **state)
{
	(void)state;
	rig.shared[0].size = 3;
	claims(0, 0, 2);
	keeps(1, 0, 1, 2);
	assert_true(review(0));
	use_all(0);
	assert_int_equal(wr_claims_reserve(&rig.entities[1], 5), 1); /* 2 at most are for it */
	assert_false(wr_claims_refused(&rig.entities[1]));           /* it can make one */
	assert_true(review(1));
	wr_claims_release(&rig.entities[1]);
	assert_int_equal(rig.claims[1][0].held, 1); /* behind its tick, too */
	comes_back(0, 1);
	assert_poked("B");
	assert_int_equal(wr_claims_reserve(&rig.entities[1], 5), 2);
	comes_back(0, 1);
	assert_poked("");
}

static void s03_what_one_that_keeps_wants_no_longer_goes_to_the_next(void **state)
{
	(void)state;
	rig.shared[0].size = 3;
	claims(0, 0, 2);
	keeps(1, 0, 1, 3);
	claims(2, 0, 1);
	assert_true(review(0));
	use_all(0);
	assert_int_equal(wr_claims_reserve(&rig.entities[1], 3), 1);
	assert_false(review(2));
	comes_back(0, 1);
	assert_poked("B");
	assert_int_equal(wr_claims_reserve(&rig.entities[1], 1), 1); /* it was offered a second one */
	assert_poked("C");
	assert_true(review(2));
	assert_int_equal(wr_claims_reserve(&rig.entities[1], 0), 0);
	assert_int_equal(rig.shared[0].used, 2);
}

/* Two that wait for the rest of a message each would never get it. */
static void s03_whole_messages_are_kept(void **state)
{
	(void)state;
	rig.shared[0].size = 5;
	keeps(0, 0, 2, 4);
	keeps(1, 0, 2, 4);
	assert_int_equal(wr_claims_reserve(&rig.entities[0], 4), 2);
	assert_int_equal(wr_claims_reserve(&rig.entities[1], 4), 0);
	assert_int_equal(rig.shared[0].used, 4);
	assert_true(wr_claims_refused(&rig.entities[1]));
	assert_int_equal(wr_claims_reserve(&rig.entities[0], 1), 1);
	assert_poked("B");
	assert_int_equal(wr_claims_reserve(&rig.entities[1], 4), 1);
}

static void s03_what_was_kept_comes_back_with_the_end(void **state)
{
	(void)state;
	rig.shared[0].size = 2;
	keeps(0, 0, 1, 2);
	claims(1, 0, 2);
	assert_int_equal(wr_claims_reserve(&rig.entities[0], 2), 2);
	assert_false(review(1));
	wr_claims_note_owed(&rig.entities[0]);
	wr_claims_end(&rig.entities[0]);
	assert_poked("B");
	assert_true(review(1));
}

static void s03_without_claims_all_is_reserved(void **state)
{
	(void)state;
	assert_int_equal(wr_claims_reserve(&rig.entities[0], 7), 7);
}

#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RIG(s03_a_claim_takes_what_is_free_and_no_more),
		WITH_RIG(s03_what_comes_back_is_offered_to_the_oldest_and_to_it_alone),
		WITH_RIG(s03_nothing_is_reserved_for_the_owed_one),
		WITH_RIG(s03_a_refused_entity_gives_back_what_it_had_claimed_and_offers_it),
		WITH_RIG(s03_claims_are_made_in_ascending_order),
		WITH_RIG(s03_what_a_tick_did_not_use_is_offered),
		WITH_RIG(s03_an_offer_that_is_not_used_is_passed_on),
		WITH_RIG(s03_an_offer_that_came_during_the_review_is_left_to_the_next_one),
		WITH_RIG(s03_h15_what_is_left_goes_to_the_oldest_for_which_it_is_enough),
		WITH_RIG(s03_h15_a_claim_offers_what_it_leaves),
		WITH_RIG(s03_done_removes_its_entry_and_passes_its_offers_on),
		WITH_RIG(s03_done_removes_an_entry_in_the_middle),
		WITH_RIG(s03_s08_a_reset_forgets_entries_offers_and_claims),
		WITH_RIG(s03_one_that_keeps_takes_what_there_is_and_is_told_of_the_rest),
		WITH_RIG(s03_what_one_that_keeps_wants_no_longer_goes_to_the_next),
		WITH_RIG(s03_whole_messages_are_kept),
		WITH_RIG(s03_what_was_kept_comes_back_with_the_end),
		WITH_RIG(s03_without_claims_all_is_reserved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

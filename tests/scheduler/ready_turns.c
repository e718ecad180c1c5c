/* The order of ticks on one worker: messages passed on from one entity to the next do not
 * starve a third one. */
#include "rig.h"

#define TEST(name) static void name(void **state_)

enum { ROUNDS = 500 };

struct turns {
	bool seen;                 /* the third entity had a turn */
	unsigned without, longest; /* ticks of the two since then; the most so far */
};

static weir_status pass_to_and_fro(struct rig *rig, weir_context *context)
{
	struct turns *turns = rig->own;

	turns->without += turns->seen;
	turns->longest = turns->without > turns->longest ? turns->without : turns->longest;
	if (weir_context_tick(context) == ROUNDS)
		return weir_context_fail(context, "enough");
	return weir_context_emit(context, 0, rig_number(context, 1));
}

static weir_status have_a_turn(struct rig *rig, weir_context *context)
{
	struct turns *turns = rig->own;

	(void)context;
	turns->seen = true;
	turns->without = 0;
	return WEIR_OK;
}

/* Two entities that always wake each other, by messages, not by room, beside a third in
 * the worker's own queue. */
static void pass_beside_a_third(void)
{
	struct rig *rig = rig_of("a:call -> b:call policy=pop capacity=2 -> a.in initial_messages=1 "
				 "policy=pop capacity=2; c:call");
	struct turns turns = {.seen = false};

	rig->own = &turns;
	rig->options.workers = 1;
	rig_on(rig, "a", pass_to_and_fro);
	rig_on(rig, "b", pass_to_and_fro);
	rig_on(rig, "c", have_a_turn);
	assert_int_equal(rig_run(rig), WEIR_E_FAILED);
	assert_true(turns.seen);
	assert_in_range(turns.longest, 1, 8);
	rig_destroy(rig);
}

TEST(s09_eight_messages_are_passed_on_in_a_row_then_the_queue_has_its_turn)
{
	(void)state_;
	rig_everywhere(pass_beside_a_third);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s09_eight_messages_are_passed_on_in_a_row_then_the_queue_has_its_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

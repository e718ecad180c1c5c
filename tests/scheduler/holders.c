/* Messages that are still held when a run has ended: how many, and by which operator. */
#include "rig.h"

#define TEST(name) static void name(void **state_)

enum { KEPT_MAX = 64 };

static weir_message *kept[KEPT_MAX];
static size_t kept_count;

static void drop_kept(void)
{
	while (kept_count)
		weir_message_unref(kept[--kept_count]);
}

static void drop_in_stop(struct rig *rig, weir_context *context)
{
	(void)rig;
	(void)context;
	drop_kept();
}

/* Passes each message on and keeps it. */
static weir_status keep(struct rig *rig, weir_context *context)
{
	weir_message *message = weir_context_message(context, 0, 0);

	(void)rig;
	kept[kept_count++] = weir_message_ref(message);
	return weir_context_emit(context, 0, weir_message_ref(message));
}

/* Makes, packs, drops and emits, and leaves nothing. */
static weir_status juggle(struct rig *rig, weir_context *context)
{
	weir_message *received = weir_context_message(context, 0, 0), *own = rig_number(context, 1), *pack;
	weir_part parts[] = {{sizeof *parts, "received", weir_message_ref(received)},
			     {sizeof *parts, "own", rig_number(context, 2)}};

	weir_message_unref(own);
	HOLDS(rig, !weir_message_pack(weir_context_graph(context), parts, 2, &pack));
	weir_message_unref(weir_message_ref(pack));
	if (weir_context_tick(context) % 2) {
		weir_message_unref(pack);
		return WEIR_OK;
	}
	return weir_context_emit(context, 0, pack);
}

static weir_status take_pack(struct rig *rig, weir_context *context)
{
	HOLDS(rig, weir_message_parts(weir_context_message(context, 0, 0)) == 2);
	return WEIR_OK;
}

#define GRAPH "source ticks=20 -> x:call -> other:end; x.out -> y:pass -> z:end"

static void leak(void)
{
	struct rig *rig = rig_of(GRAPH);

	rig->options.observe = WEIR_OBSERVE_COMPUTE;
	rig_on(rig, "x", keep);
	for (int run = 0; run < 2; run++) {
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig->outcome.held, 20);
		assert_int_equal(rig_counts(rig, "x").held, 20);
		assert_int_equal(rig_counts(rig, "source").held, 0);
		assert_int_equal(rig_counts(rig, "y").held, 0);
		assert_int_equal(rig_counts(rig, "z").held, 0);
		drop_kept();
	}
	rig_destroy(rig);
}

TEST(xb53_an_operator_that_keeps_references_is_named)
{
	(void)state_;
	rig_everywhere(leak);
}

static void leak_unmeasured(void)
{
	struct rig *rig = rig_of(GRAPH);

	rig_on(rig, "x", keep);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig->outcome.held, 20);
	assert_int_equal(rig_counts(rig, "x").held, 0);
	drop_kept();
	rig_destroy(rig);
}

TEST(xb53_without_measuring_they_are_counted_and_not_named)
{
	(void)state_;
	rig_everywhere(leak_unmeasured);
}

static weir_message *forgotten;

static weir_status forget_last(struct rig *rig, weir_context *context)
{
	(void)rig;
	if (weir_context_tick(context) == 19)
		forgotten = weir_message_ref(weir_context_message(context, 0, 0));
	return WEIR_OK;
}

static void drop_late(void)
{
	struct rig *rig = rig_of(GRAPH "; source2:source ticks=20 -> forgets:call");

	rig->options.observe = WEIR_OBSERVE_COMPUTE;
	rig_on(rig, "x", keep);
	rig_on(rig, "forgets", forget_last);
	rig_entity(rig, "x")->stop = drop_in_stop;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig->outcome.held, 1);
	assert_int_equal(rig_counts(rig, "x").held, 0);
	assert_int_equal(rig_counts(rig, "forgets").held, 1);
	weir_message_unref(forgotten);
	rig_destroy(rig);
}

TEST(xb53_what_a_stop_function_drops_is_not_held)
{
	(void)state_;
	rig_everywhere(drop_late);
}

static void hold_nothing(void)
{
	struct rig *rig = rig_of("source ticks=20 -> x:call -> z:call");

	rig->options.observe = WEIR_OBSERVE_COMPUTE;
	rig_on(rig, "x", juggle);
	rig_on(rig, "z", take_pack);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig->outcome.held, 0);
	assert_int_equal(rig_counts(rig, "x").held, 0);
	rig_destroy(rig);
}

TEST(xb53_what_is_packed_emitted_and_dropped_is_not_held)
{
	(void)state_;
	rig_everywhere(hold_nothing);
}

static void program_holds(void)
{
	struct rig *rig = rig_of("source ticks=5 -> x:pass");
	weir_outlet *outlet = rig_outlet(rig, "x.out", 8, 0);
	weir_message *taken[5];

	rig->options.observe = WEIR_OBSERVE_COMPUTE;
	rig_start(rig);
	assert_int_equal(weir_outlet_take(outlet, 10 * SECOND, &taken[0]), WEIR_OK);
	weir_message_unref(taken[0]); /* first: the run may end with the last take */
	for (int i = 1; i < 5; i++)
		assert_int_equal(weir_outlet_take(outlet, 10 * SECOND, &taken[i]), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig->outcome.held, 4);
	assert_int_equal(rig_counts(rig, "x").held, 0);
	for (int i = 1; i < 5; i++)
		weir_message_unref(taken[i]);
	rig_destroy(rig);
}

TEST(xb53_a_message_of_the_program_is_no_operators)
{
	(void)state_;
	rig_on_host(program_holds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb53_an_operator_that_keeps_references_is_named),
		cmocka_unit_test(xb53_without_measuring_they_are_counted_and_not_named),
		cmocka_unit_test(xb53_what_a_stop_function_drops_is_not_held),
		cmocka_unit_test(xb53_what_is_packed_emitted_and_dropped_is_not_held),
		cmocka_unit_test(xb53_a_message_of_the_program_is_no_operators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

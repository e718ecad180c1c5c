/* Entities with effects of their own become DONE by their inputs, not by receivers that are DONE. */
#include "rig.h"

static unsigned workers;

static struct rig *rig_with_workers(const char *text)
{
	struct rig *rig = rig_of(text);

	rig->options.workers = workers;
	return rig;
}

/* The last round, which the counted entity sends and does not receive again. */
static void go_round(void)
{
	struct rig *rig =
		rig_with_workers("tick:pass count=10 -> tock:pass effects=true -> tick initial_messages=1");

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "tick"), 10);
	assert_int_equal(rig_ticks(rig, "tock"), 10);
	assert_true(rig_done(rig, "tick") && rig_done(rig, "tock"));
	rig_destroy(rig);
}

static void xb20_the_last_round_of_a_cycle_is_done_without_receivers(void **state)
{
	static const unsigned counts[] = {1, 2, 8};

	(void)state;
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		workers = counts[i];
		rig_everywhere(go_round);
		rig_in_worlds(40, go_round);
		for (int run = 0; run < 20; run++)
			rig_on_host(go_round);
	}
	workers = 0;
}

static void record_all(void)
{
	struct rig *rig = rig_with_workers(
		"source ticks=50 -> record:pass effects=true capacity=8 -> display:end count=10");

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "record"), 50);
	assert_int_equal(rig_ticks(rig, "display"), 10);
	assert_int_equal(rig_queue(rig, "record.in").delivered, 50);
	assert_int_equal(rig_queue(rig, "display.in").pushed, 50);
	assert_int_equal(rig_queue(rig, "display.in").closed, 40);
	assert_int_equal(rig->outcome.leftover, 0);
	rig_destroy(rig);
}

static void xb20_a_recorder_before_a_display_records_all(void **state)
{
	(void)state;
	rig_everywhere(record_all);
}

/* Its receiver is DONE at once; it becomes DONE when no sender is left, and not before. */
static void xb20_it_ends_with_its_inputs(void **state)
{
	struct rig *rig =
		rig_of("source period=1ms count=5 -> record:pass effects=true -> display:end count=0");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "source"), 5);
	assert_int_equal(rig_ticks(rig, "record"), 5);
	assert_true(rig_done(rig, "record"));
	rig_destroy(rig);
}

static void xb20_without_effects_no_entity_goes_on_without_receivers(void **state)
{
	struct rig *rig = rig_of("source period=1ms count=5 -> record:pass -> display:end count=0");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(rig_ticks(rig, "source"), 0, 1); /* before it learned of it */
	assert_true(rig_done(rig, "source") && rig_done(rig, "record"));
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb20_the_last_round_of_a_cycle_is_done_without_receivers),
		cmocka_unit_test(xb20_a_recorder_before_a_display_records_all),
		cmocka_unit_test(xb20_it_ends_with_its_inputs),
		cmocka_unit_test(xb20_without_effects_no_entity_goes_on_without_receivers),
	};

	return cmocka_run_group_tests_name("scheduler/effects", tests, NULL, NULL);
}

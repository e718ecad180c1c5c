/* When a run ends: nothing can happen any more, all entities are DONE, a deadlock (S4, S5, S6). */

#include "rig.h"

/* --- S4 --- */

static void s04_a_run_ends_when_nothing_can_happen_any_more(void **state)
{
	struct rig *rig = rig_of("source ticks=3 -> p:pass -> end");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	assert_int_equal(rig->outcome.leftover + rig->outcome.abandoned, 0);
	assert_null(rig->outcome.entity);
	rig_destroy(rig);
}

static void s04_a_timer_holds_the_run_open(void **state)
{
	struct rig *rig = rig_of("source period=1h count=3 -> end");

	(void)state;
	assert_int_equal(weir_scheduler_create(rig->graph, &rig->options, &rig->scheduler), WEIR_OK);
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 2 * 3600 * SECOND + SECOND, &rig->outcome),
			 WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 3);
	rig_destroy(rig);
}

static void s04_f21_work_on_the_device_holds_the_run_open(void **state)
{
	struct rig *rig = rig_of("source ticks=2 work=1s -> end gate=in");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1");
	assert_in_range(rig->outcome.duration_ns, 2 * SECOND, 2 * SECOND + 10 * MS);
	rig_destroy(rig);
}

static void s04_e02_so_does_work_that_no_entity_is_gated_on(void **state)
{
	struct rig *rig = rig_of("source ticks=1 work=10s -> end");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(rig->outcome.duration_ns, 10 * SECOND,
			10 * SECOND + 10 * MS); /* no period of the watch on top */
	rig_destroy(rig);
}

static void s04_f23_a_deadlock_waits_for_its_grace_time(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end enabled=false");

	(void)state;
	rig->options.deadlock_grace_ns = SECOND;
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_in_range(rig->outcome.duration_ns, SECOND, SECOND + 20 * MS);
	rig_destroy(rig);
}

static void s04_f24_a_tick_within_the_grace_time_begins_it_anew(void **state)
{
	struct rig *rig =
		rig_of("source ticks=1 -> end enabled=false; late:source ticks=1 enabled=false -> sink:end");

	(void)state;
	rig->options.deadlock_grace_ns = SECOND;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 700 * MS, NULL);
	weir_entity_tell(weir_graph_entity(rig->graph, "late"), "boolean", WEIR_TOLD_READY);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 700 * MS, NULL), WEIR_E_TIMEOUT);
	assert_int_equal(rig_wait(rig), WEIR_E_DEADLOCK);
	assert_in_range(rig->outcome.duration_ns, 1700 * MS, 1730 * MS);
	rig_destroy(rig);
}

static void s04_f24_a_poke_in_vain_does_not_put_off_the_end_of_the_grace_time(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end enabled=false");

	(void)state;
	rig->options.deadlock_grace_ns = SECOND;
	rig_start(rig);
	for (int i = 0; i < 9; i++) {
		assert_int_equal(weir_scheduler_wait(rig->scheduler, 100 * MS, NULL), WEIR_E_TIMEOUT);
		weir_entity_poke(weir_graph_entity(rig->graph, "end"));
	}
	assert_int_equal(rig_wait(rig), WEIR_E_DEADLOCK);
	assert_in_range(rig->outcome.duration_ns, SECOND, SECOND + 20 * MS);
	rig_destroy(rig);
}

static void s04_a_negative_grace_time_waits_for_a_stop(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end enabled=false");

	(void)state;
	rig->options.deadlock_grace_ns = INT64_MAX;
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 3600 * SECOND, NULL), WEIR_E_TIMEOUT);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig->outcome.abandoned, 1);
	rig_destroy(rig);
}

static void s04_when_all_are_done_no_grace_time_is_waited_for(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end");

	(void)state;
	rig->options.deadlock_grace_ns = 3600 * SECOND;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(rig->outcome.duration_ns < SECOND);
	rig_destroy(rig);
}

/* --- S5 --- */

static void s05_done_spreads_down_a_chain(void **state)
{
	struct rig *rig = rig_of("source ticks=2 -> a:pass -> b:pass -> c:pass -> end");

	(void)state;
	rig->options.deadlock_grace_ns = 3600 * SECOND; /* only DONE ends the run soon */
	assert_int_equal(rig_run(rig), WEIR_OK);
	for (size_t i = 0; i < rig->entity_count; i++)
		assert_true(rig_done(rig, rig->entities[i].name));
	assert_string_equal(rig_text(rig, "end"), "0 1");
	assert_true(rig->outcome.duration_ns < SECOND);
	rig_destroy(rig);
}

static void s05_done_spreads_up_a_chain(void **state)
{
	struct rig *rig = rig_of("source delay=1us -> a:pass -> b:pass -> end count=3");

	(void)state;
	rig->options.deadlock_grace_ns = 3600 * SECOND;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(rig_done(rig, "source"));
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	assert_true(rig->outcome.duration_ns < SECOND);
	rig_destroy(rig);
}

/* All entities sleep when the condition of the last one is set to never; the others must become DONE too. */
static void tell_never(const char *text, const char *entity)
{
	struct rig *rig = rig_of(text);

	rig->options.deadlock_grace_ns = 3600 * SECOND;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 5 * MS, NULL);
	assert_int_equal(
		weir_entity_tell(weir_graph_entity(rig->graph, entity), "asynchronous", WEIR_TOLD_NEVER),
		WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	for (size_t i = 0; i < rig->entity_count; i++)
		assert_true(rig_done(rig, rig->entities[i].name));
	assert_true(rig->outcome.duration_ns < SECOND);
	rig_destroy(rig);
}

static void s05_done_wakes_entities_that_sleep(void **state)
{
	(void)state;
	tell_never("source period=1h asynchronous= -> a:pass -> b:pass -> end", "source");
	tell_never("source period=1h -> a:pass -> b:pass -> end asynchronous=", "end");
	tell_never("source -> a:pass period=1h -> b:pass -> end asynchronous=", "end");
}

static void s05_one_done_receiver_of_a_fan_out_does_not_stop_the_others(void **state)
{
	struct rig *rig = rig_of("source ticks=10 -> a:end count=2; source -> b:end");
	weir_queue_counts counts = {.size = sizeof counts};

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	counts = rig_queue(rig, "a.in");
	assert_int_equal(counts.pushed, 10);
	assert_int_equal(counts.delivered, 2);
	assert_int_equal(counts.closed, 8);
	assert_int_equal(rig_queue(rig, "b.in").delivered, 10);
	rig_destroy(rig);
}

static void s05_too_few_for_a_tick_and_no_sender_left(void **state)
{
	struct rig *rig = rig_of("source ticks=5 -> end capacity=2 take=2");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0,1 2,3");
	assert_int_equal(rig_queue(rig, "end.in").closed, 1);
	rig_destroy(rig);
}

static void f19_a_done_entity_stays_done(void **state)
{
	struct rig *rig = rig_of("source period=1ms count=5 -> a:end count=1; source -> b:end");

	(void)state;
	rig_start(rig);
	for (int i = 0; i < 5; i++) {
		weir_scheduler_wait(rig->scheduler, MS, NULL);
		weir_entity_poke(weir_graph_entity(rig->graph, "a"));
	}
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "a"), 1);
	rig_destroy(rig);
}

/* --- S6 --- */

static void s06_waiting_without_a_sender_is_finished(void **state)
{
	struct rig *rig = rig_of("source enabled=false -> end; other:source ticks=2 -> other_end:end");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_false(rig_done(rig, "end"));
	assert_null(rig->outcome.text);
	rig_destroy(rig);
}

static void s06_f23_messages_that_wait_make_a_deadlock_with_a_name_and_a_reason(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end enabled=false");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_says(rig->outcome.text, "end waits: boolean: disabled (WAIT)");
	assert_says(weir_last_error(), "end waits");
	assert_int_equal(rig->outcome.leftover, 1);
	assert_int_equal(rig->outcome.held, 0); /* it lies in a queue */
	rig_destroy(rig);
}

static void s06_f23_a_cycle_whose_messages_do_not_suffice_is_a_deadlock(void **state)
{
	struct rig *rig =
		rig_of("a:pass capacity=2 take=2 -> b:pass -> a initial_messages=1; a.out max_emits=2; "
		       "a.out2 max_emits=2; b.in capacity=2");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_says(rig->outcome.text, "circular wait: a.in has 1 of 2 messages from b.out");
	rig_destroy(rig);
}

static void s06_waiting_for_room_is_a_deadlock_too(void **state)
{
	struct rig *rig = rig_of("source ticks=3 -> p:pass -> end enabled=false");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_string_equal(rig->outcome.text,
			    "end waits: boolean: disabled (WAIT); 2 others wait behind it");
	rig_destroy(rig);
}

static void s06_what_waits_for_the_program_in_a_drain_is_abandoned(void **state)
{
	struct rig *rig = rig_of("source -> end enabled=false; beat:source period=100ms -> live:end");

	(void)state;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, MS, NULL);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig->outcome.abandoned, 1);
	assert_int_equal(rig_queue(rig, "end.in").abandoned, 1);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s04_a_run_ends_when_nothing_can_happen_any_more),
		cmocka_unit_test(s04_a_timer_holds_the_run_open),
		cmocka_unit_test(s04_f21_work_on_the_device_holds_the_run_open),
		cmocka_unit_test(s04_e02_so_does_work_that_no_entity_is_gated_on),
		cmocka_unit_test(s04_f23_a_deadlock_waits_for_its_grace_time),
		cmocka_unit_test(s04_f24_a_tick_within_the_grace_time_begins_it_anew),
		cmocka_unit_test(s04_f24_a_poke_in_vain_does_not_put_off_the_end_of_the_grace_time),
		cmocka_unit_test(s04_a_negative_grace_time_waits_for_a_stop),
		cmocka_unit_test(s04_when_all_are_done_no_grace_time_is_waited_for),
		cmocka_unit_test(s05_done_spreads_down_a_chain),
		cmocka_unit_test(s05_done_spreads_up_a_chain),
		cmocka_unit_test(s05_done_wakes_entities_that_sleep),
		cmocka_unit_test(s05_one_done_receiver_of_a_fan_out_does_not_stop_the_others),
		cmocka_unit_test(s05_too_few_for_a_tick_and_no_sender_left),
		cmocka_unit_test(f19_a_done_entity_stays_done),
		cmocka_unit_test(s06_waiting_without_a_sender_is_finished),
		cmocka_unit_test(s06_f23_messages_that_wait_make_a_deadlock_with_a_name_and_a_reason),
		cmocka_unit_test(s06_f23_a_cycle_whose_messages_do_not_suffice_is_a_deadlock),
		cmocka_unit_test(s06_waiting_for_room_is_a_deadlock_too),
		cmocka_unit_test(s06_what_waits_for_the_program_in_a_drain_is_abandoned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

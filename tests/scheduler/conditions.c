/* When an entity may run (C1 to C6), through the public interface. */
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "rig.h"

/* --- conditions of the tests, set by these variables --- */

static int64_t soon_at, later_at;
static _Atomic unsigned asked;

static void ask_never(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_never(verdict, "never");
}

static void ask_soon(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (weir_view_now(view) >= soon_at)
		weir_verdict_ready(verdict);
	else
		weir_verdict_until(verdict, soon_at);
}

static void ask_later(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	wr_fetch_add(&asked, 1);
	if (weir_view_now(view) >= later_at)
		weir_verdict_ready(verdict);
	else
		weir_verdict_until(verdict, later_at);
}

static const weir_condition never = {.size = sizeof never, .name = "never", .ask = ask_never};
static const weir_condition soon = {.size = sizeof soon, .name = "soon", .ask = ask_soon};
static const weir_condition later = {.size = sizeof later, .name = "later", .ask = ask_later};

/* `ask` must find what `start` made. */
struct fickle {
	bool started;
};
static _Atomic int fickle_starts; /* how many of the next starts fail */
static _Atomic bool asked_unstarted;

static weir_status start_fickle(void *state, const weir_values *values)
{
	(void)values;
	if (wr_load(&fickle_starts))
		return wr_fetch_sub(&fickle_starts, 1) ? WEIR_E_FAILED : WEIR_OK;
	((struct fickle *)state)->started = true;
	return WEIR_OK;
}

static void ask_fickle(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)view;
	if (!((const struct fickle *)state)->started)
		wr_store(&asked_unstarted, true);
	weir_verdict_wait(verdict, "fickle");
}

static const weir_condition fickle = {.size = sizeof fickle,
				      .name = "fickle",
				      .state_size = sizeof(struct fickle),
				      .start = start_fickle,
				      .ask = ask_fickle};
static const weir_condition *const conditions[] = {&never, &soon, &later, &fickle, NULL};

static void set_times(int64_t soon_ns, int64_t later_ns)
{
	soon_at = SECOND + soon_ns; /* a world begins at 1 s */
	later_at = SECOND + later_ns;
	wr_store(&asked, 0);
}

/* --- C1, C2, C3 --- */

static void c01_a_condition_names_a_time_and_the_scheduler_comes_back_then(void **state)
{
	struct rig *rig = rig_of("source ticks=1 condition=later -> end");

	(void)state;
	set_times(0, 10 * MS);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0");
	assert_in_range(rig->outcome.duration_ns, 9 * MS, 11 * MS);
	assert_in_range(wr_load(&asked), 2, 3);
	rig_destroy(rig);
}

static void end_at_once(const char *text)
{
	struct rig *rig = rig_of(text);

	set_times(0, 10 * MS);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(rig_done(rig, "source"));
	assert_int_equal(rig_ticks(rig, "source"), 0);
	assert_true(rig->outcome.duration_ns < 10 * MS);
	rig_destroy(rig);
}

static void c02_never_wins_in_any_order(void **state)
{
	(void)state;
	end_at_once("source condition=later condition=never -> end");
	end_at_once("source condition=never condition=later -> end");
	end_at_once("source enabled=false condition=never -> end");
}

static void tick_at_the_latest(const char *text)
{
	struct rig *rig = rig_of(text);

	set_times(5 * MS, 10 * MS);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_in_range(rig->outcome.duration_ns, 9 * MS, 11 * MS);
	assert_int_equal(wr_load(&asked), 2); /* not asked again at the earlier time */
	rig_destroy(rig);
}

static void c02_of_two_times_the_later_is_armed(void **state)
{
	(void)state;
	tick_at_the_latest("source ticks=1 condition=soon condition=later -> end");
	tick_at_the_latest("source ticks=1 condition=later condition=soon -> end");
}

/* A condition that only a poke can change needs no timer. No
 * poke comes, so the run ends long before the hour. */
static void end_without_the_timer(const char *text)
{
	struct rig *rig = rig_of(text);

	set_times(0, 3600 * SECOND);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(rig->outcome.duration_ns < SECOND);
	rig_destroy(rig);
}

static void c02_an_unmet_condition_without_a_source_arms_nothing(void **state)
{
	(void)state;
	end_without_the_timer("source enabled=false -> end condition=later");
	end_without_the_timer("source enabled=false -> end min=1 condition=later");
}

static void end_although_told(const char *text)
{
	struct rig *rig = rig_of(text);

	rig_make(rig);
	assert_int_equal(weir_entity_tell(weir_graph_entity(rig->graph, "end"), "asynchronous",
					  WEIR_TOLD_EVENT_WAITING),
			 WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(rig->outcome.duration_ns < SECOND);
	rig_destroy(rig);
}

static void c02_an_unmet_condition_without_a_source_outranks_one_from_outside(void **state)
{
	(void)state;
	end_although_told("source enabled=false -> end min=1 asynchronous=");
	end_although_told("source enabled=false -> end asynchronous=");
}

static void c02_two_conditions_may_wait_for_one_stream(void **state)
{
	struct rig *rig = rig_of("source count=3 work=10ms -> end gate=in gate=in");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	rig_destroy(rig);
}

static void c03_useless_reviews_change_nothing(void **state)
{
	struct rig *rig = rig_of("source period=1ms count=5 -> end");

	(void)state;
	rig_start(rig);
	for (int i = 0; i < 100; i++) {
		weir_entity_poke(weir_graph_entity(rig->graph, "source"));
		weir_entity_poke(weir_graph_entity(rig->graph, "end"));
		weir_scheduler_wait(rig->scheduler, 20 * US, NULL);
	}
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2 3 4");
	assert_in_range(rig->outcome.duration_ns, 4 * MS, 4 * MS + 500 * US);
	rig_destroy(rig);
}

/* --- C4 --- */

/* Kernels of 20 ms, a message each ms, into a gated `pop` queue: 0 is in the front while 1 to 8 push each
 * other out of the inbox. */
static void c04_what_the_front_holds_is_not_evicted(void **state)
{
	struct rig *rig = rig_of("source count=10 period=1ms work=20ms -> end gate=in policy=pop");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 9");
	assert_int_equal(rig_queue(rig, "end.in").dropped, 8);
	rig_destroy(rig);
}

static void c04_room_is_freed_by_the_tick_not_by_looking(void **state)
{
	struct rig *rig = rig_of("source ticks=3 work=10ms -> end gate=in");

	(void)state;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 5 * MS, NULL);
	assert_int_equal(rig_ticks(rig, "source"), 1); /* the front is closed while the kernel runs */
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	rig_destroy(rig);
}

/* Fills both queues of `end` while it is disabled, then lets it run. */
static struct rig *fill_then_run(const char *text)
{
	struct rig *rig = rig_of(text);

	rig->options.deadlock_grace_ns = INT64_MAX;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, MS, NULL);
	rig_tell(rig, "end", WEIR_TOLD_READY);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	return rig;
}

static void c04_connections_of_a_port_take_turns(void **state)
{
	struct rig *rig = fill_then_run(
		"a:source ticks=3 -> end enabled=false capacity=3; b:source ticks=3 first=10 -> end");

	(void)state;
	assert_string_equal(rig_text(rig, "end"), "0 10 1 11 2 12");
	rig_destroy(rig);
}

static void c04_take_counts_over_all_queues_of_the_port(void **state)
{
	struct rig *rig = fill_then_run(
		"a:source ticks=3 -> end enabled=false capacity=3 take=2; b:source ticks=3 first=10 -> end");

	(void)state;
	assert_string_equal(rig_text(rig, "end"), "0,10 1,11 2,12");
	rig_destroy(rig);
}

static void c04_take_all_receives_what_there_is(void **state)
{
	struct rig *rig = fill_then_run("a:source ticks=3 -> end enabled=false capacity=3 take=all; b:source "
					"ticks=2 first=10 -> end");

	(void)state;
	assert_string_equal(rig_text(rig, "end"), "0,1,2,10,11");
	rig_destroy(rig);
}

static void c04_an_any_size_port_takes_from_each_queue_in_connection_order(void **state)
{
	struct rig *rig = fill_then_run("a:source ticks=3 -> end.any enabled=false capacity=3 take=2; "
					"b:source ticks=3 first=10 -> end.any");

	(void)state;
	assert_string_equal(rig_text(rig, "end"), "|0,1,10,11");
	assert_int_equal(rig_queue(rig, "end.any").closed,
			 1); /* too few for another tick, and no more are sent */
	rig_destroy(rig);
}

static weir_status note_lists(struct rig *rig, weir_context *context)
{
	wr_store(&rig->told,
		 10 * weir_context_queue_count(context, 2, 0) + weir_context_queue_count(context, 2, 1));
	return WEIR_OK;
}

static void c04_compute_can_tell_the_lists_apart(void **state)
{
	struct rig *rig = rig_of("a:source ticks=1 -> c:call.any; b:source ticks=1 -> c.any");

	(void)state;
	rig_on(rig, "c", note_lists);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&rig->told), 11);
	rig_destroy(rig);
}

/* --- C5 --- */

static void c05_a_gated_entity_shows_its_fences_and_their_producer(void **state)
{
	struct rig *rig = rig_of("camera:source ticks=1 work=50ms -> end gate=in");

	(void)state;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	assert_says(rig_explain(rig),
		    "end: cuda_stream on in: WAIT_EVENT (1 fence pending, oldest 10 ms, producer camera)");
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_explain(rig), ""); /* all are done */
	rig_destroy(rig);
}

static void c05_each_unmet_condition_is_named_with_its_verdict(void **state)
{
	struct rig *rig = rig_of("source period=1s count=2 -> end enabled=false capacity=2");

	(void)state;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	assert_string_equal(rig_explain(rig),
			    "source: periodic: WAIT_TIME (the period is not over, due in 990 ms)\n"
			    "end: boolean: WAIT (disabled)\n");
	assert_int_equal(rig_wait(rig), WEIR_E_DEADLOCK);
	rig_destroy(rig);
}

static void c05_a_busy_entity_shows_its_last_verdict(void **state)
{
	struct rig *rig = rig_of("source ticks=1 delay=1s -> end");

	(void)state;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	assert_says(rig_explain(rig), "source: compute: BUSY (runs now)\n");
	assert_says(rig_explain(rig), "end: message_available on in: WAIT (too few messages: end.in has 0 of "
				      "1 messages from source.out)\n");
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void c05_after_a_deadlock_the_reason_can_still_be_asked_for(void **state)
{
	struct rig *rig = rig_of("source ticks=2 -> end enabled=false");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_says(rig_explain(rig), "source: downstream_message_affordable on out: WAIT (no room behind "
				      "the output: source.out -> end.in is full (1 of 1))\n");
	assert_says(rig_explain(rig), "end: boolean: WAIT (disabled)\n");
	rig_destroy(rig);
}

static void poke_and_explain(void)
{
	struct rig *rig = rig_of("source count=5000 -> p:pass -> end");

	rig_start(rig);
	while (weir_scheduler_wait(rig->scheduler, US, NULL) == WEIR_E_TIMEOUT)
		assert_non_null(rig_explain(rig)); /* owns each entity for a moment; no wake-up may be lost */
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 5000);
	rig_destroy(rig);
}

static void c05_explaining_loses_no_wake_up(void **state)
{
	(void)state;
	rig_everywhere(poke_and_explain);
}

static void explain_between_starts(void)
{
	struct rig *rig = rig_of("a:call condition=fickle");

	wr_store(&asked_unstarted, false);
	rig_make(rig);
	rig_here(rig);
	assert_string_equal(rig_explain(rig), "");
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_explain(rig), "a: fickle: WAIT (fickle)\n");
	wr_store(&fickle_starts, 1);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_FAILED);
	assert_string_equal(rig_explain(rig), "");
	assert_false(wr_load(&asked_unstarted));
	rig_destroy(rig);
}

static void c05_s08_no_condition_is_asked_before_it_was_started(void **state)
{
	(void)state;
	rig_everywhere(explain_between_starts);
}

/* --- C6 --- */

static void enable(void *arg)
{
	struct rig *rig = arg;

	weir_sleep(5 * MS);
	if (weir_entity_tell(weir_graph_entity(rig->graph, "end"), "boolean", WEIR_TOLD_READY))
		rig_break(rig);
}

static void enable_from_a_thread(void)
{
	struct rig *rig = rig_of("source ticks=3 -> end enabled=false");
	struct wr_thread thread = {0};

	rig->options.deadlock_grace_ns = 10 * SECOND;
	rig_start(rig);
	assert_int_equal(wr_thread_start(&thread, "outside", enable, rig), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2");
	wr_thread_join(&thread);
	rig_destroy(rig);
}

static void c06_a_word_from_outside_wakes_the_entity(void **state)
{
	(void)state;
	rig_everywhere(enable_from_a_thread);
}

static void c06_an_outstanding_event_holds_the_run_open_until_it_is_done(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end asynchronous=");
	weir_entity *end = weir_graph_entity(rig->graph, "end");

	(void)state;
	assert_int_equal(weir_entity_tell(end, "asynchronous", WEIR_TOLD_EVENT_WAITING), WEIR_OK);
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 5 * SECOND, NULL), WEIR_E_TIMEOUT);
	assert_says(rig_explain(rig), "end: asynchronous: WAIT_EVENT (told that an event is outstanding)\n");
	assert_int_equal(weir_entity_tell(end, "asynchronous", WEIR_TOLD_EVENT_DONE), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0");
	rig_destroy(rig);
}

static void c06_told_never_ends_the_entity(void **state)
{
	struct rig *rig = rig_of("source delay=1us -> end asynchronous=");

	(void)state;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, MS, NULL);
	assert_int_equal(
		weir_entity_tell(weir_graph_entity(rig->graph, "end"), "asynchronous", WEIR_TOLD_NEVER),
		WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(weir_entity_tell(weir_graph_entity(rig->graph, "end"), "nothing", WEIR_TOLD_READY),
			 WEIR_E_INVALID);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c01_a_condition_names_a_time_and_the_scheduler_comes_back_then),
		cmocka_unit_test(c02_never_wins_in_any_order),
		cmocka_unit_test(c02_of_two_times_the_later_is_armed),
		cmocka_unit_test(c02_an_unmet_condition_without_a_source_arms_nothing),
		cmocka_unit_test(c02_an_unmet_condition_without_a_source_outranks_one_from_outside),
		cmocka_unit_test(c02_two_conditions_may_wait_for_one_stream),
		cmocka_unit_test(c03_useless_reviews_change_nothing),
		cmocka_unit_test(c04_what_the_front_holds_is_not_evicted),
		cmocka_unit_test(c04_room_is_freed_by_the_tick_not_by_looking),
		cmocka_unit_test(c04_connections_of_a_port_take_turns),
		cmocka_unit_test(c04_take_counts_over_all_queues_of_the_port),
		cmocka_unit_test(c04_take_all_receives_what_there_is),
		cmocka_unit_test(c04_an_any_size_port_takes_from_each_queue_in_connection_order),
		cmocka_unit_test(c04_compute_can_tell_the_lists_apart),
		cmocka_unit_test(c05_a_gated_entity_shows_its_fences_and_their_producer),
		cmocka_unit_test(c05_each_unmet_condition_is_named_with_its_verdict),
		cmocka_unit_test(c05_a_busy_entity_shows_its_last_verdict),
		cmocka_unit_test(c05_after_a_deadlock_the_reason_can_still_be_asked_for),
		cmocka_unit_test(c05_explaining_loses_no_wake_up),
		cmocka_unit_test(c05_s08_no_condition_is_asked_before_it_was_started),
		cmocka_unit_test(c06_a_word_from_outside_wakes_the_entity),
		cmocka_unit_test(c06_an_outstanding_event_holds_the_run_open_until_it_is_done),
		cmocka_unit_test(c06_told_never_ends_the_entity),
	};

	rig_conditions = conditions;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

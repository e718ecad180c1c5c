/* How runs end and start again: quiescence, DONE, outcomes, drains, reruns (S4 to S8, F17, F18, F23, F24). */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "rig.h"

static void assert_says(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("'%s' does not say '%s'", text ? text : "(nothing)", part);
}

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
	assert_int_equal(weir_scheduler_create(&rig->scheduler, rig->graph, &rig->options), WEIR_OK);
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
			10 * SECOND + 10 * MS); /* no period of the health check on top */
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

static void s04_f24_what_happens_within_the_grace_time_begins_it_anew(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end enabled=false");

	(void)state;
	rig->options.deadlock_grace_ns = SECOND;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 700 * MS, NULL);
	weir_entity_poke(weir_graph_entity(rig->graph, "end"));
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 700 * MS, NULL), WEIR_E_TIMEOUT);
	assert_int_equal(rig_wait(rig), WEIR_E_DEADLOCK);
	assert_in_range(rig->outcome.duration_ns, 1700 * MS, 1730 * MS);
	rig_destroy(rig);
}

static void s04_a_negative_grace_time_waits_for_a_stop(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end enabled=false");

	(void)state;
	rig->options.deadlock_grace_ns = -1;
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 3600 * SECOND, NULL), WEIR_E_TIMEOUT);
	weir_scheduler_stop(rig->scheduler, true);
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
	rig_destroy(rig);
}

static void s06_f23_a_cycle_whose_messages_do_not_suffice_is_a_deadlock(void **state)
{
	struct rig *rig = rig_of("a:pass capacity=2 take=2 -> b:pass -> a initial=1; a.out max_emits=2; "
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

static void s06_during_a_drain_nothing_is_a_deadlock(void **state)
{
	struct rig *rig = rig_of("source -> end enabled=false");

	(void)state;
	rig->options.deadlock_grace_ns = -1;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, MS, NULL);
	weir_scheduler_stop(rig->scheduler, true);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig->outcome.abandoned, 1);
	assert_int_equal(rig_queue(rig, "end.in").abandoned, 1);
	rig_destroy(rig);
}

/* --- S7, F17 --- */

static void drain_soon(struct rig *rig, int64_t after)
{
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, after, NULL);
	weir_scheduler_stop(rig->scheduler, true);
}

static void s07_a_drain_lets_what_is_under_way_arrive(void **state)
{
	struct rig *rig = rig_of(
		"source delay=1ms -> a:pass delay=1ms -> b:pass capacity=8 -> end capacity=8 delay=3ms");
	weir_queue_counts counts = {.size = sizeof counts};

	(void)state;
	drain_soon(rig, 50 * MS);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	counts = rig_queue(rig, "end.in");
	assert_int_equal(counts.delivered, rig_ticks(rig, "source")); /* no message was dropped */
	assert_int_equal(rig->outcome.abandoned, 0);
	rig_destroy(rig);
}

static void s07_a_drain_ends_cycles_at_their_roots(void **state)
{
	struct rig *rig = rig_of("a:pass delay=1ms -> b:pass -> a initial=1");

	(void)state;
	drain_soon(rig, 20 * MS);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_in_range(rig->outcome.duration_ns, 20 * MS, 22 * MS);
	assert_int_equal(rig->outcome.abandoned, 0);
	rig_destroy(rig);
}

static void s07_a_drain_that_takes_too_long_abandons_the_rest_by_name(void **state)
{
	struct rig *rig = rig_of("source ticks=2 -> end asynchronous= capacity=2");

	(void)state;
	rig->options.drain_ns = 100 * MS;
	rig_make(rig);
	weir_entity_tell(weir_graph_entity(rig->graph, "end"), "asynchronous", WEIR_TOLD_EVENT_WAITING);
	drain_soon(rig, 10 * MS);
	assert_int_equal(rig_wait(rig), WEIR_E_ABANDONED);
	assert_says(rig->outcome.text, "the drain took longer than 0.1 s; left behind: end (2 messages)");
	assert_int_equal(rig->outcome.abandoned, 2);
	assert_in_range(rig->outcome.duration_ns, 110 * MS, 125 * MS);
	rig_destroy(rig);
}

static void s07_max_duration_drains(void **state)
{
	struct rig *rig = rig_of("source period=10ms -> end");

	(void)state;
	rig->options.max_duration_ns = 95 * MS;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "end"), 10);
	assert_in_range(rig->outcome.duration_ns, 95 * MS, 96 * MS);
	rig_destroy(rig);
}

static void s07_cut_short_means_at_once(void **state)
{
	struct rig *rig = rig_of("source delay=1ms -> end delay=10ms capacity=100");

	(void)state;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 20 * MS, NULL);
	weir_scheduler_stop(rig->scheduler, false);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_in_range(rig->outcome.abandoned, 15, 20); /* a drain would have delivered them */
	assert_int_equal(rig->outcome.leftover, 0);
	assert_in_range(rig->outcome.duration_ns, 20 * MS, 35 * MS);
	rig_destroy(rig);
}

static weir_status see_the_drain(struct rig *rig, weir_context *context)
{
	wr_store(&rig->told, weir_context_stopping(context));
	return WEIR_OK;
}

static void s07_operators_see_that_a_drain_is_on(void **state)
{
	struct rig *rig = rig_of("source ticks=2 delay=10ms -> c:call");

	(void)state;
	rig_on(rig, "c", see_the_drain);
	drain_soon(rig, 5 * MS);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(wr_load(&rig->told), 1);
	assert_int_equal(rig_ticks(rig, "source"), 1);
	rig_destroy(rig);
}

static void note_that_streams_are_idle(struct rig *rig, weir_context *context)
{
	weir_fence fence = *(weir_fence *)rig->own;

	if (weir_fence_query(weir_context_graph(context), fence) != WEIR_OK)
		rig_break(rig);
	wr_fetch_add(&rig->told, 1);
}

static int sleep_long(const void *arguments)
{
	(void)arguments;
	weir_sleep(50 * MS);
	return 0;
}

static const weir_kernel long_kernel = {sizeof(weir_kernel), "long", sleep_long, NULL};

static weir_status launch_long(struct rig *rig, weir_context *context)
{
	weir_stream *stream = weir_context_stream(context);

	if (!stream || weir_stream_launch(stream, &long_kernel, "", 1))
		return WEIR_E_DEVICE;
	return weir_stream_record(stream, rig->own);
}

static void s07_stop_runs_after_the_streams_have_drained(void **state)
{
	struct rig *rig = rig_of("c:call count=1");
	weir_fence fence = {0, 0};

	(void)state;
	rig->own = &fence;
	rig_on(rig, "c", launch_long);
	rig_entity(rig, "c")->stop = note_that_streams_are_idle;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, MS, NULL);
	weir_scheduler_stop(rig->scheduler, false);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(wr_load(&rig->told), 1);
	rig_destroy(rig);
}

static weir_status stop_itself(struct rig *rig, weir_context *context)
{
	if (weir_context_tick(context) == 10) {
		weir_scheduler_stop(rig->scheduler, true);
		weir_scheduler_stop(rig->scheduler, true);
	}
	weir_sleep(10 * US);
	return WEIR_OK;
}

static void stop_in_compute(void)
{
	struct rig *rig = rig_of("c:call");

	rig_on(rig, "c", stop_itself);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_true(rig_ticks(rig, "c") >= 11);
	weir_scheduler_stop(rig->scheduler, true); /* again, after the end */
	rig_destroy(rig);
}

static void s07_f17_stop_from_compute_twice_and_after_the_end(void **state)
{
	(void)state;
	rig_everywhere(stop_in_compute);
}

static void stop_twice(void *arg)
{
	struct rig *rig = arg;

	weir_sleep(2 * MS);
	weir_scheduler_stop(rig->scheduler, true);
	weir_scheduler_stop(rig->scheduler, false);
}

static void stop_from_threads(void)
{
	struct rig *rig = rig_of("source delay=10us -> p:pass -> end");
	struct wr_thread threads[2] = {{0}};

	rig_start(rig);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wr_thread_start(&threads[i], "stopper", stop_twice, rig), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	for (int i = 0; i < 2; i++)
		wr_thread_join(&threads[i]);
	rig_destroy(rig);
}

static void s07_f17_stop_from_two_threads_at_once(void **state)
{
	(void)state;
	rig_everywhere(stop_from_threads);
}

/* Stops at every point of a start, also before it and in the operators' start functions. */
static void stop_as_it_starts(void)
{
	struct rig *rig = rig_of("source delay=10us -> end");
	struct wr_thread thread = {0};

	rig_make(rig);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(wr_thread_start(&thread, "stopper", stop_twice, rig), WEIR_OK);
		weir_sleep(2 * MS - i);
		rig_start(rig);
		wr_thread_join(&thread);
		weir_scheduler_stop(rig->scheduler, false); /* a stop before the start is forgotten */
		assert_int_equal(rig_wait(rig), WEIR_OK);
	}
	rig_destroy(rig);
}

static void f17_stop_while_the_run_begins(void **state)
{
	(void)state;
	rig_on_host(stop_as_it_starts);
}

static weir_status stop_at_start(struct rig *rig, weir_context *context)
{
	(void)context;
	weir_scheduler_stop(rig->scheduler, false);
	return WEIR_OK;
}

/* The loop stops the run as soon as it is open, while the starting
 * thread is still at it; inlets add steps to the start. */
static void stop_in_start(void)
{
	struct rig *rig = rig_of("c:call period=10us; end");
	weir_inlet *inlets[2];

	rig_entity(rig, "c")->start = stop_at_start;
	assert_int_equal(weir_graph_inlet(rig->graph, "end.in", &inlets[0]), WEIR_OK);
	assert_int_equal(weir_graph_inlet(rig->graph, "end.in2", &inlets[1]), WEIR_OK);
	for (int i = 0; i < 50; i++)
		assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void f17_stop_from_an_operators_start_function(void **state)
{
	(void)state;
	rig_everywhere(stop_in_start);
}

static void s07_destroy_stops_a_run_that_is_on(void **state)
{
	struct rig *rig = rig_of("source delay=1ms work=20ms -> end gate=in");

	(void)state;
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 50 * MS, NULL);
	assert_int_equal(weir_graph_destroy(rig->graph), WEIR_E_BUSY);
	rig_destroy(rig);
}

/* --- S8, F18 --- */

static void rerun(void)
{
	struct rig *rig = rig_of("source count=20 work=1us -> p:pass -> end gate=in; p.out2 -> other:end "
				 "capacity=2 policy=pop");

	for (int i = 0; i < 100; i++) {
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig_ticks(rig, "source"), 20);
		assert_int_equal(rig_queue(rig, "end.in").delivered, 20);
		assert_int_equal(rig_queue(rig, "other.in").pushed, 20);
	}
	assert_int_equal(wr_load(&rig->started), 400);
	assert_int_equal(wr_load(&rig->stopped), 400);
	rig_destroy(rig);
}

static void s08_a_hundred_runs_of_one_graph_count_alike(void **state)
{
	(void)state;
	rig_in_world(7, rerun);
	rig_on_host(rerun);
}

static void s08_outside_a_run_a_poke_is_refused_and_changes_nothing(void **state)
{
	struct rig *rig = rig_of("source ticks=2 -> end");
	weir_entity *source = weir_graph_entity(rig->graph, "source");

	(void)state;
	assert_int_equal(weir_entity_poke(source), WEIR_E_CLOSED);
	rig_make(rig);
	assert_int_equal(weir_entity_poke(source), WEIR_E_CLOSED);
	assert_int_equal(rig_run(rig), WEIR_OK);
	for (int i = 0; i < 10; i++)
		assert_int_equal(weir_entity_poke(source), WEIR_E_CLOSED);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "source"), 2);
	rig_destroy(rig);
}

static void s08_a_word_told_before_a_run_is_kept_for_it_and_forgotten_after(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> end enabled=false");
	weir_entity *end = weir_graph_entity(rig->graph, "end");

	(void)state;
	assert_int_equal(weir_entity_enable(end, true), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_int_equal(weir_entity_enable(end, true), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

static void s08_leftovers_are_discarded_before_the_next_run(void **state)
{
	struct rig *rig = rig_of("source ticks=3 -> end enabled=false capacity=3");

	(void)state;
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_int_equal(rig->outcome.leftover, 3);
	assert_int_equal(rig_run(rig), WEIR_E_DEADLOCK);
	assert_int_equal(rig_queue(rig, "end.in").pushed, 3);
	assert_int_equal(rig_queue(rig, "end.in").queued, 3);
	rig_destroy(rig);
}

static void s08_a_second_start_and_a_second_scheduler_are_refused(void **state)
{
	struct rig *rig = rig_of("source period=1s count=2 -> end");
	weir_scheduler *second = NULL;

	(void)state;
	rig_start(rig);
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_E_BUSY);
	assert_int_equal(weir_scheduler_create(&second, rig->graph, NULL), WEIR_E_BUSY);
	assert_null(second);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void s08_a_graph_may_have_one_scheduler_after_the_other(void **state)
{
	struct rig *rig = rig_of("source count=5 work=10us -> end gate=in");
	const char *const places[] = {"sim", "host", "host", "sim"};

	(void)state;
	for (int i = 0; i < 4; i++) {
		rig->options.backend = places[i];
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig_ticks(rig, "end"), 5);
		assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
		rig->scheduler = NULL;
	}
	rig_destroy(rig);
}

static size_t entries(const char *path)
{
	DIR *folder = opendir(path);
	size_t count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* The kernel lists a joined thread a moment longer. */
static void assert_threads_end(size_t most)
{
	for (int i = 0; i < 10000 && entries("/proc/self/task") > most; i++)
		wr_thread_sleep(MS);
	assert_in_range(entries("/proc/self/task"), 0, most);
}

static void f18_two_thousand_runs_leave_no_thread_and_no_descriptor(void **state)
{
	struct rig *rig = rig_of("source count=3 -> end");
	size_t threads, descriptors;

	(void)state;
	rig->options.backend = "host";
	rig_run(rig);
	threads = entries("/proc/self/task");
	descriptors = entries("/proc/self/fd");
	for (int i = 0; i < 2000; i++) {
		rig_start(rig);
		weir_scheduler_stop(rig->scheduler, i & 1);
		rig_wait(rig);
	}
	assert_threads_end(threads);
	assert_int_equal(entries("/proc/self/fd"), descriptors);
	rig_destroy(rig);
}

static void f18_schedulers_give_back_their_threads_and_descriptors(void **state)
{
	struct rig *rig = rig_of("source count=3 -> end");
	size_t threads = entries("/proc/self/task"), descriptors = entries("/proc/self/fd");

	(void)state;
	rig->options.backend = "host";
	for (int i = 0; i < 100; i++) {
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
		rig->scheduler = NULL;
	}
	rig_destroy(rig);
	assert_threads_end(threads);
	assert_int_equal(entries("/proc/self/fd"), descriptors);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s04_a_run_ends_when_nothing_can_happen_any_more),
		cmocka_unit_test(s04_a_timer_holds_the_run_open),
		cmocka_unit_test(s04_f21_work_on_the_device_holds_the_run_open),
		cmocka_unit_test(s04_e02_so_does_work_that_no_entity_is_gated_on),
		cmocka_unit_test(s04_f23_a_deadlock_waits_for_its_grace_time),
		cmocka_unit_test(s04_f24_what_happens_within_the_grace_time_begins_it_anew),
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
		cmocka_unit_test(s06_during_a_drain_nothing_is_a_deadlock),
		cmocka_unit_test(s07_a_drain_lets_what_is_under_way_arrive),
		cmocka_unit_test(s07_a_drain_ends_cycles_at_their_roots),
		cmocka_unit_test(s07_a_drain_that_takes_too_long_abandons_the_rest_by_name),
		cmocka_unit_test(s07_max_duration_drains),
		cmocka_unit_test(s07_cut_short_means_at_once),
		cmocka_unit_test(s07_operators_see_that_a_drain_is_on),
		cmocka_unit_test(s07_stop_runs_after_the_streams_have_drained),
		cmocka_unit_test(s07_f17_stop_from_compute_twice_and_after_the_end),
		cmocka_unit_test(s07_f17_stop_from_two_threads_at_once),
		cmocka_unit_test(f17_stop_while_the_run_begins),
		cmocka_unit_test(f17_stop_from_an_operators_start_function),
		cmocka_unit_test(s07_destroy_stops_a_run_that_is_on),
		cmocka_unit_test(s08_a_hundred_runs_of_one_graph_count_alike),
		cmocka_unit_test(s08_outside_a_run_a_poke_is_refused_and_changes_nothing),
		cmocka_unit_test(s08_a_word_told_before_a_run_is_kept_for_it_and_forgotten_after),
		cmocka_unit_test(s08_leftovers_are_discarded_before_the_next_run),
		cmocka_unit_test(s08_a_second_start_and_a_second_scheduler_are_refused),
		cmocka_unit_test(s08_a_graph_may_have_one_scheduler_after_the_other),
		cmocka_unit_test(f18_two_thousand_runs_leave_no_thread_and_no_descriptor),
		cmocka_unit_test(f18_schedulers_give_back_their_threads_and_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

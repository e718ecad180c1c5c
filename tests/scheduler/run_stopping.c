/* A run that is stopped: drains, stop from everywhere and at any time (S7, F17). */

#include "base/memory.h"
#include "base/thread.h"
#include "rig.h"
#include "tests/calls.h"

/* --- S7, F17 --- */

static void drain_soon(struct rig *rig, int64_t after)
{
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, after, NULL);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
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
	struct rig *rig = rig_of("a:pass delay=1ms -> b:pass -> a initial_messages=1");

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
	assert_says(rig->outcome.text, "the drain took longer than 100 ms without a message taken; left "
				       "behind: end (2 messages); if that is "
				       "slow, not stuck, raise \"drain\" (weir run --drain)");
	assert_int_equal(rig->outcome.abandoned, 2);
	assert_in_range(rig->outcome.duration_ns, 110 * MS, 125 * MS);
	rig_destroy(rig);
}

static void s07_a_drain_that_took_too_long_waits_no_longer_for_streams(void **state)
{
	struct rig *rig = rig_of("source ticks=1 work=1s -> end");

	(void)state;
	rig->options.drain_ns = 100 * MS;
	rig_make(rig);
	drain_soon(rig, 10 * MS);
	assert_int_equal(rig_wait(rig), WEIR_E_ABANDONED);
	assert_in_range(rig->outcome.duration_ns, 110 * MS, 135 * MS);
	rig_destroy(rig);
}

/* With its finisher, and with none: messages without device work need none. */
static void s07_a_drain_names_the_outlet_that_the_program_leaves_full(void **state)
{
	(void)state;
	for (unsigned flags = 0; flags <= WEIR_OUTLET_EARLY; flags++) {
		struct rig *rig = rig_of("source ticks=3 -> end");

		rig->options.drain_ns = 100 * MS;
		rig_outlet(rig, "source.out", 2, flags);
		rig_start(rig);
		assert_int_equal(weir_scheduler_wait(rig->scheduler, 10 * MS, NULL), WEIR_E_TIMEOUT);
		weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
		assert_int_equal(rig_wait(rig), WEIR_E_ABANDONED);
		assert_says(rig->outcome.text, "outlet of 'source.out' (2 messages)");
		assert_int_equal(rig->outcome.abandoned, 2);
		rig_destroy(rig);
	}
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
	weir_scheduler_stop(rig->scheduler, 0);
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

static weir_status compute_until_it_ends(struct rig *rig, weir_context *context)
{
	int64_t until = weir_context_now(context) + 5000 * MS;

	wr_store(&rig->told, 1);
	while (!weir_context_stopping(context) && weir_context_now(context) < until)
		weir_sleep(MS);
	wr_store(&rig->told, 2 + weir_context_stopping(context));
	return WEIR_OK;
}

static void s07_a_compute_that_is_running_sees_the_end(void **state)
{
	(void)state;
	for (int drain = 0; drain < 2; drain++) {
		struct rig *rig = rig_of("c:call");

		rig->options.backend = "host"; /* a simulated run has no other thread that could stop it */
		rig_on(rig, "c", compute_until_it_ends);
		rig_start(rig);
		while (wr_load(&rig->told) != 1)
			weir_sleep(MS / 10);
		weir_scheduler_stop(rig->scheduler, drain ? WEIR_STOP_DRAIN : 0);
		assert_int_equal(rig_wait(rig), WEIR_OK);
		assert_int_equal(wr_load(&rig->told), 3);
		rig_destroy(rig);
	}
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
	weir_stream *stream = current_stream(context);

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
	weir_scheduler_stop(rig->scheduler, 0);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(wr_load(&rig->told), 1);
	rig_destroy(rig);
}

static weir_status stop_itself(struct rig *rig, weir_context *context)
{
	if (weir_context_tick(context) == 10) {
		weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
		weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
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
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN); /* again, after the end */
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
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	weir_scheduler_stop(rig->scheduler, 0);
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
		weir_scheduler_stop(rig->scheduler, 0); /* a stop before the start is forgotten */
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
	weir_scheduler_stop(rig->scheduler, 0);
	return WEIR_OK;
}

/* The loop stops the run as soon as it is open, while the starting
 * thread is still at it; inlets add steps to the start. */
static void stop_in_start(void)
{
	struct rig *rig = rig_of("c:call period=10us; end");
	weir_inlet *inlets[2];

	rig_entity(rig, "c")->start = stop_at_start;
	assert_int_equal(weir_graph_add_inlet(rig->graph, "end.in", &inlets[0]), WEIR_OK);
	assert_int_equal(weir_graph_add_inlet(rig->graph, "end.in2", &inlets[1]), WEIR_OK);
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
	assert_int_equal(weir_graph_destroy(rig->graph), WEIR_E_STATE);
	rig_destroy(rig);
}

/* --- drains of what waits for a time, and without memory --- */

/* An entity that waits for a time only ends in a drain, but not before it has done what is queued. */
static void s07_a_drain_works_off_what_waits_for_its_time(void **state)
{
	struct rig *rig = rig_of("source ticks=6 -> slow:pass period=10ms capacity=8 -> end");

	(void)state;
	drain_soon(rig, 5 * MS);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2 3 4 5");
	assert_int_equal(rig->outcome.abandoned, 0);
	rig_destroy(rig);
}

/* Each tick comes sooner than the drain's time is over, all of them later. */
static void s07_a_drain_that_is_only_slow_is_worked_off(void **state)
{
	struct rig *rig = rig_of("source ticks=8 -> a:pass delay=40ms capacity=8 -> end");

	(void)state;
	rig->options.drain_ns = 50 * MS;
	drain_soon(rig, 5 * MS);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0 1 2 3 4 5 6 7");
	rig_destroy(rig);
}

static int sleep_80ms(const void *arguments)
{
	(void)arguments;
	weir_sleep(80 * MS);
	return 0;
}

static weir_status pass_with_work(struct rig *rig, weir_context *context)
{
	static const weir_kernel kernel = {sizeof(weir_kernel), "sleep_80ms", sleep_80ms, NULL};

	(void)rig;
	if (weir_stream_launch(current_stream(context), &kernel, NULL, 0))
		return WEIR_E_FAILED;
	if (!weir_context_count(context, 0))
		return WEIR_OK;
	return weir_context_emit(context, 0, weir_message_ref(weir_context_message(context, 0, 0)));
}

/* Work that was enqueued in the drain counts, too, if it is of a tick that took a message. */
static void s07_e02_so_is_one_whose_work_is_made_in_it(void **state)
{
	struct rig *rig =
		rig_of("source ticks=1 -> a:call -> h:pass gated=true delay=1ms -> b:call -> i:pass "
		       "gated=true delay=1ms -> c:call -> end");

	(void)state;
	rig_on(rig, "a", pass_with_work);
	rig_on(rig, "b", pass_with_work);
	rig_on(rig, "c", pass_with_work);
	rig->options.drain_ns = 100 * MS;
	drain_soon(rig, 5 * MS);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "end"), "0");
	rig_destroy(rig);
}

static weir_status hold_for_ever(struct rig *rig, weir_context *context)
{
	weir_status status = pass_with_work(rig, context);

	weir_sleep(30 * MS);
	return status ? status : weir_context_hold(context, 0, 0);
}

/* Else an operator that makes work for ever would drain for ever. */
static void s07_ticks_that_take_nothing_hold_no_drain(void **state)
{
	struct rig *rig = rig_of("source ticks=1 -> a:call -> end");

	(void)state;
	rig_on(rig, "a", hold_for_ever);
	rig->options.drain_ns = 200 * MS;
	drain_soon(rig, 100 * MS);
	assert_int_equal(rig_wait(rig), WEIR_E_ABANDONED);
	assert_in_range(rig->outcome.duration_ns, 300 * MS, 600 * MS);
	rig_destroy(rig);
}

static void s07_f40_a_drain_that_took_too_long_says_so_without_memory_for_its_words(void **state)
{
	struct rig *rig = rig_of("source ticks=2 -> end asynchronous= capacity=2");

	(void)state;
	rig->options.backend = "host";
	rig->options.own_loop = true;
	rig->options.drain_ns = 10 * MS;
	rig_make(rig);
	weir_entity_tell(weir_graph_entity(rig->graph, "end"), "asynchronous", WEIR_TOLD_EVENT_WAITING);
	rig_start(rig);
	while (rig_queue(rig, "end.in").queued < 2)
		weir_scheduler_wait(rig->scheduler, MS, NULL);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	wr_memory_fail_at(0, true);
	assert_int_equal(rig_wait(rig), WEIR_E_ABANDONED);
	wr_memory_fail_at(-1, false);
	assert_null(rig->outcome.text);
	assert_int_equal(rig->outcome.abandoned, 2);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s07_a_drain_lets_what_is_under_way_arrive),
		cmocka_unit_test(s07_a_drain_ends_cycles_at_their_roots),
		cmocka_unit_test(s07_a_drain_that_takes_too_long_abandons_the_rest_by_name),
		cmocka_unit_test(s07_a_drain_that_took_too_long_waits_no_longer_for_streams),
		cmocka_unit_test(s07_a_drain_names_the_outlet_that_the_program_leaves_full),
		cmocka_unit_test(s07_max_duration_drains),
		cmocka_unit_test(s07_cut_short_means_at_once),
		cmocka_unit_test(s07_operators_see_that_a_drain_is_on),
		cmocka_unit_test(s07_a_compute_that_is_running_sees_the_end),
		cmocka_unit_test(s07_stop_runs_after_the_streams_have_drained),
		cmocka_unit_test(s07_f17_stop_from_compute_twice_and_after_the_end),
		cmocka_unit_test(s07_f17_stop_from_two_threads_at_once),
		cmocka_unit_test(f17_stop_while_the_run_begins),
		cmocka_unit_test(f17_stop_from_an_operators_start_function),
		cmocka_unit_test(s07_destroy_stops_a_run_that_is_on),
		cmocka_unit_test(s07_a_drain_works_off_what_waits_for_its_time),
		cmocka_unit_test(s07_a_drain_that_is_only_slow_is_worked_off),
		cmocka_unit_test(s07_e02_so_is_one_whose_work_is_made_in_it),
		cmocka_unit_test(s07_ticks_that_take_nothing_hold_no_drain),
		cmocka_unit_test(s07_f40_a_drain_that_took_too_long_says_so_without_memory_for_its_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

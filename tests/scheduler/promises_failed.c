/*
 * Fences that the program completes with a failure (T17): of one message of several, of messages that outlive
 * it, of none at all; and for how long their handles are good.
 */
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "rig_inside.h"
#include "tests/calls.h"

enum { KEPT = 1024 }; /* WR_PROMISES_KEPT */

static _Atomic unsigned freed;

static void note_freed(void *unused)
{
	(void)unused;
	wr_fetch_add(&freed, 1);
}

static weir_fence create(struct rig *rig)
{
	weir_fence fence = {0, 0};

	assert_int_equal(weir_graph_create_fence(rig->graph, &fence), WEIR_OK);
	return fence;
}

static void complete(struct rig *rig, weir_fence fence, weir_status status)
{
	assert_int_equal(weir_fence_complete(rig->graph, fence, status, "it is gone"), WEIR_OK);
}

/* A message that carries them, and what frees it. */
static weir_message *message_with(struct rig *rig, const weir_fence *fences, size_t n)
{
	weir_message *message = NULL;

	assert_int_equal(weir_message_wrap_user(rig->graph, &freed, note_freed, &message), WEIR_OK);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(weir_message_add_producer(message, fences[i]), WEIR_OK);
	return message;
}

static void fail_many(struct rig *rig, size_t n)
{
	while (n--)
		complete(rig, create(rig), WEIR_E_IO);
}

static struct rig *rig_with_inlet(weir_inlet **inlet)
{
	struct rig *rig = rig_of("z:call capacity=4");

	assert_int_equal(weir_graph_add_inlet(rig->graph, "z.in", inlet), WEIR_OK);
	rig_make(rig);
	wr_store(&freed, 0);
	return rig;
}

/* --- one of several fences of a message --- */

static void wait_for_parked(struct rig *rig)
{
	while (!strstr(rig_explain(rig), "fence pending") && !strstr(rig_explain(rig), "fences pending"))
		wr_thread_sleep(100 * US);
	while (!rig_all_asleep(rig->scheduler))
		wr_thread_sleep(100 * US);
}

/* One of many, which the entity waits for from the beginning; the others are completed after the run. */
static void fail_one_of(size_t n, size_t failing)
{
	weir_inlet *inlet = NULL;
	struct rig *rig = rig_with_inlet(&inlet);
	weir_fence fences[80];

	for (size_t i = 0; i < n; i++)
		fences[i] = create(rig);
	rig_start(rig);
	assert_int_equal(weir_inlet_push(inlet, message_with(rig, fences, n), -1), WEIR_OK);
	wait_for_parked(rig);
	complete(rig, fences[failing], WEIR_E_IO);
	assert_int_equal(rig_wait(rig), WEIR_E_IO);
	assert_string_equal(rig->outcome.entity, "z");
	assert_string_equal(rig->outcome.text, "it is gone");
	assert_int_equal(rig_ticks(rig, "z"), 0);
	for (size_t i = 0; i < n; i++) {
		if (i == failing)
			continue;
		(void)weir_graph_collect(rig->graph, 0);
		assert_int_equal(wr_load(&freed), 0); /* the work of this one goes on */
		complete(rig, fences[i], WEIR_OK);
	}
	weir_scheduler_destroy(rig->scheduler);
	rig->scheduler = NULL;
	rig_destroy(rig);
	assert_int_equal(wr_load(&freed), 1);
}

static void fail_one(void)
{
	fail_one_of(2, 0);
	fail_one_of(2, 1);
	fail_one_of(80, 40);
	fail_one_of(80, 75);
}

static void t17_e01_a_failure_of_one_of_several_fences_ends_the_run_at_once(void **state)
{
	(void)state;
	rig_everywhere(fail_one);
}

/* The entity waits for another fence now: the failure ends no wait. */
static void fail_given_up(void)
{
	struct rig *rig = rig_of("z:host fence=true");
	weir_entity *z = weir_graph_entity(rig->graph, "z");
	weir_fence first, second;

	rig_make(rig);
	first = create(rig);
	second = create(rig);
	rig_start(rig);
	assert_int_equal(rig_arm_in_vain(rig, (weir_fence[]){first, second}, 2), WEIR_OK);
	complete(rig, first, WEIR_E_IO);
	assert_int_equal(weir_entity_tell_fence(z, "fence", second), WEIR_OK);
	complete(rig, second, WEIR_OK);
	while (!rig_ticks(rig, "z"))
		wr_thread_sleep(100 * US);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	rig_wait(rig);
	assert_int_equal(rig->outcome.status, WEIR_OK);
	rig_destroy(rig);
}

static void t17_a_failure_that_no_entity_waits_for_any_more_ends_no_run(void **state)
{
	(void)state;
	rig_everywhere(fail_given_up);
}

/* --- places --- */

static void fail_without_end(void)
{
	weir_inlet *inlet = NULL;
	struct rig *rig = rig_with_inlet(&inlet);
	size_t places;

	fail_many(rig, 2 * KEPT);
	places = rig_promise_places(rig);
	assert_in_range(places, KEPT, KEPT + 128);
	fail_many(rig, 1000000);
	for (int i = 0; i < 3 * KEPT; i++) {
		weir_fence fence = create(rig);
		weir_message *message = message_with(rig, &fence, 1);
		complete(rig, fence, WEIR_E_IO);
		weir_message_unref(message);
	}
	assert_int_equal(rig_promise_places(rig), places);
	assert_int_equal(wr_load(&freed), 3 * KEPT);
	rig_destroy(rig);
}

static void t17_fences_that_failed_give_their_places_back(void **state)
{
	(void)state;
	rig_on_host(fail_without_end);
}

/* --- readers of a message --- */

/* While the program reads the payload none may write it; how the reading ended is nothing to it. */
static void read_by_the_program(void)
{
	struct rig *rig = rig_of("z:host fence=true");
	weir_message *message;
	weir_fence fence;

	rig_make(rig);
	message = rig_message(rig, 1);
	fence = create(rig);
	assert_int_equal(weir_message_add_reader(message, fence), WEIR_OK);
	assert_false(weir_message_unique(message));
	complete(rig, fence, WEIR_OK);
	assert_true(weir_message_unique(message));
	fence = create(rig);
	complete(rig, fence, WEIR_E_IO);
	assert_int_equal(weir_message_add_reader(message, fence), WEIR_OK);
	assert_true(weir_message_unique(message));
	assert_int_equal(weir_message_add_producer(message, fence), WEIR_E_FAILED);
	weir_message_unref(message);
	rig_destroy(rig);
}

static void t17_a_message_is_not_unique_while_the_program_reads_it(void **state)
{
	(void)state;
	rig_in_world(1, read_by_the_program);
	rig_on_host(read_by_the_program);
}

/* --- how long a handle is good --- */

static void assert_stale(struct rig *rig, weir_fence fence)
{
	weir_message *message = rig_message(rig, 1);

	assert_int_equal(weir_fence_query(rig->graph, fence), WEIR_E_INVALID);
	assert_says(weir_last_error(),
		    "is stale: a fence of its place has failed, and more than 1024 others since");
	assert_int_equal(weir_fence_complete(rig->graph, fence, WEIR_OK, NULL), WEIR_E_INVALID);
	assert_int_equal(weir_message_add_producer(message, fence), WEIR_E_INVALID);
	assert_int_equal(weir_message_add_reader(message, fence), WEIR_E_INVALID);
	assert_int_equal(weir_fence_wait(rig->graph, fence, -1), WEIR_E_INVALID);
	assert_int_equal(weir_entity_tell_fence(weir_graph_entity(rig->graph, "z"), "fence", fence),
			 WEIR_E_INVALID);
	weir_message_unref(message);
}

static void make_stale(void)
{
	struct rig *rig = rig_of("z:host fence=true");
	weir_fence good, failed, open;

	rig_make(rig);
	good = create(rig);
	failed = create(rig);
	complete(rig, good, WEIR_OK);
	complete(rig, failed, WEIR_E_IO);
	fail_many(rig, KEPT - 1);
	assert_int_equal(weir_fence_query(rig->graph, failed), WEIR_E_FAILED);
	assert_string_equal(weir_last_error(), "it is gone");
	assert_int_equal(weir_fence_query(rig->graph, good), WEIR_OK);
	fail_many(rig, 1);
	assert_stale(rig, failed);
	open = create(rig);
	assert_int_equal(weir_fence_query(rig->graph, open), WEIR_E_BUSY);
	complete(rig, open, WEIR_OK);
	rig_destroy(rig);
}

static void t17_a_handle_of_a_fence_that_failed_long_ago_is_refused(void **state)
{
	(void)state;
	rig_everywhere(make_stale);
}

static weir_status emit_stale(struct rig *rig, weir_context *context)
{
	weir_fence fence = create(rig);

	complete(rig, fence, WEIR_E_IO);
	fail_many(rig, KEPT);
	return weir_context_emit_at(context, 0, rig_number(context, 1), fence);
}

static void emit_after_all(void)
{
	struct rig *rig = rig_of("a:call count=1 -> z:end");

	rig_on(rig, "a", emit_stale);
	assert_int_equal(rig_run(rig), WEIR_E_INVALID);
	assert_says(rig->outcome.text, "is stale");
	assert_int_equal(rig_ticks(rig, "z"), 0);
	rig_destroy(rig);
}

static void t17_a_stale_fence_is_not_emitted(void **state)
{
	(void)state;
	rig_everywhere(emit_after_all);
}

/* A message that carries it keeps the failure, over runs; one whose fence was completed is finished. */
static void outlive(void)
{
	weir_inlet *inlet = NULL;
	struct rig *rig = rig_with_inlet(&inlet);
	weir_fence failed = create(rig), good = create(rig);
	weir_message *messages[2] = {message_with(rig, &good, 1), message_with(rig, &failed, 1)};

	complete(rig, failed, WEIR_E_IO);
	complete(rig, good, WEIR_OK);
	fail_many(rig, 3 * KEPT);
	assert_int_equal(weir_fence_query(rig->graph, failed), WEIR_E_FAILED);
	assert_int_equal(weir_fence_query(rig->graph, good), WEIR_E_INVALID);
	for (int i = 0; i < 2; i++) {
		rig_start(rig);
		assert_int_equal(weir_inlet_push(inlet, weir_message_ref(messages[i]), -1), WEIR_OK);
		weir_inlet_close(inlet);
		assert_int_equal(rig_wait(rig), i ? WEIR_E_IO : WEIR_OK);
		assert_int_equal(rig_ticks(rig, "z"), !i);
	}
	fail_many(rig, 3 * KEPT);
	assert_int_equal(weir_fence_query(rig->graph, failed), WEIR_E_FAILED);
	for (int i = 0; i < 2; i++)
		weir_message_unref(messages[i]);
	rig_start(rig); /* the next run lets go of what the last one left */
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	fail_many(rig, 3 * KEPT);
	assert_int_equal(weir_fence_query(rig->graph, failed), WEIR_E_INVALID);
	rig_destroy(rig);
	assert_int_equal(wr_load(&freed), 2);
}

static void t17_s08_a_message_keeps_the_failure_of_its_fence(void **state)
{
	(void)state;
	rig_everywhere(outlive);
}

/* --- what was completed well, while others fail --- */

/* The first that fails is given the place of the fence, which is stale by the end of the tick. */
static weir_status emit_and_fail(struct rig *rig, weir_context *context)
{
	weir_fence fence = create(rig);
	weir_status status;

	HOLDS(rig, current_stream(context));
	status = weir_context_emit_at(context, 0, rig_number(context, 1), fence);
	complete(rig, fence, WEIR_OK);
	fail_many(rig, KEPT + 1);
	HOLDS(rig, weir_fence_query(rig->graph, fence) == WEIR_E_INVALID);
	return status;
}

static weir_status use_stream(struct rig *rig, weir_context *context)
{
	HOLDS(rig, current_stream(context));
	return weir_context_message(context, 0, 0) ? WEIR_OK : WEIR_E_FAILED;
}

static void go_on(void)
{
	struct rig *rig = rig_of("a:call count=6 in_flight=1 -> z:call capacity=2");

	rig_on(rig, "a", emit_and_fail);
	rig_on(rig, "z", use_stream);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 6);
	rig_destroy(rig);
}

static void t17_t03_t08_a_message_is_finished_whose_fence_is_stale(void **state)
{
	(void)state;
	rig_everywhere(go_on);
}

/* The condition is open since the fence was completed. */
static void stay_open(void)
{
	struct rig *rig = rig_of("z:call fence=false");
	weir_inlet *inlet = NULL;
	weir_fence fence;

	assert_int_equal(weir_graph_add_inlet(rig->graph, "z.in", &inlet), WEIR_OK);
	rig_make(rig);
	fence = create(rig);
	assert_int_equal(weir_entity_tell_fence(weir_graph_entity(rig->graph, "z"), "fence", fence), WEIR_OK);
	rig_start(rig);
	assert_int_equal(weir_inlet_push(inlet, rig_message(rig, 1), -1), WEIR_OK);
	complete(rig, fence, WEIR_OK);
	while (!rig_ticks(rig, "z"))
		wr_thread_sleep(100 * US);
	fail_many(rig, KEPT + 1);
	assert_int_equal(weir_fence_query(rig->graph, fence), WEIR_E_INVALID);
	assert_int_equal(weir_inlet_push(inlet, rig_message(rig, 1), -1), WEIR_OK);
	weir_inlet_close(inlet);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 2);
	rig_destroy(rig);
}

static void t17_c06_a_condition_stays_open_whose_fence_is_stale(void **state)
{
	(void)state;
	rig_everywhere(stay_open);
}

/* --- ages --- */

/* The program is outside of the simulated world, whose clock is another one. */
static void t17_c05_the_age_of_a_fence_of_outside_is_by_the_clock_of_the_world(void **state)
{
	struct rig *rig = rig_of("z:host fence=true");
	weir_fence fence;

	(void)state;
	rig_make(rig);
	fence = create(rig);
	assert_int_equal(weir_entity_tell_fence(weir_graph_entity(rig->graph, "z"), "fence", fence), WEIR_OK);
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 5 * MS, NULL), WEIR_E_TIMEOUT);
	assert_says(rig_explain(rig), "z: fence: WAIT_EVENT (told ");
	assert_says(rig_explain(rig),
		    " ms ago: waits for a fence that the program completes: 1 fence pending, ");
	assert_says(rig_explain(rig), " ms, producer the program)");
	assert_in_range(rig_fence_age(rig, fence), 0, 100 * MS);
	complete(rig, fence, WEIR_OK);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t17_e01_a_failure_of_one_of_several_fences_ends_the_run_at_once),
		cmocka_unit_test(t17_a_failure_that_no_entity_waits_for_any_more_ends_no_run),
		cmocka_unit_test(t17_a_message_is_not_unique_while_the_program_reads_it),
		cmocka_unit_test(t17_fences_that_failed_give_their_places_back),
		cmocka_unit_test(t17_a_handle_of_a_fence_that_failed_long_ago_is_refused),
		cmocka_unit_test(t17_a_stale_fence_is_not_emitted),
		cmocka_unit_test(t17_s08_a_message_keeps_the_failure_of_its_fence),
		cmocka_unit_test(t17_t03_t08_a_message_is_finished_whose_fence_is_stale),
		cmocka_unit_test(t17_c06_a_condition_stays_open_whose_fence_is_stale),
		cmocka_unit_test(t17_c05_the_age_of_a_fence_of_outside_is_by_the_clock_of_the_world),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

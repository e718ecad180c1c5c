/*
 * Fences that the program completes (T17), by a test that completes them itself, or never: misuse, failures,
 * explanations, drains, the ends of a run, payloads, and messages from and to the program.
 */
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "rig_inside.h"
#include "tests/calls.h"

enum { FENCES = 4096 };

static struct {
	weir_fence fences[FENCES];
	_Atomic size_t given;
	_Atomic unsigned freed;
} own;

static void clear(void)
{
	memset(&own, 0, sizeof own);
}

static weir_status note_number(struct rig *rig, weir_context *context)
{
	weir_message *message = weir_context_message(context, 0, 0);

	HOLDS(rig, rig_value(message) == (int64_t)weir_context_tick(context));
	return WEIR_OK;
}

static weir_status emit_one(struct rig *rig, weir_context *context)
{
	(void)rig;
	return weir_context_emit(context, 0, rig_number(context, 1));
}

static weir_status emit_failed(struct rig *rig, weir_context *context)
{
	weir_fence fence = {0, 0};

	HOLDS(rig, !weir_graph_create_fence(rig->graph, &fence));
	HOLDS(rig, !weir_fence_complete(rig->graph, fence, WEIR_E_IO, "it is gone"));
	HOLDS(rig, weir_fence_query(rig->graph, fence) == WEIR_E_FAILED);
	return weir_context_emit_at(context, 0, rig_number(context, 1), fence);
}

static void fail_early(void)
{
	struct rig *rig = rig_of("a:call count=2 -> z:end");

	rig_on(rig, "a", emit_failed);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rig_run(rig), WEIR_E_IO);
		assert_string_equal(rig->outcome.text, "it is gone");
		assert_int_equal(rig_ticks(rig, "z"), 0);
	}
	rig_destroy(rig);
}

static void t17_a_fence_that_failed_is_not_emitted(void **state)
{
	(void)state;
	rig_everywhere(fail_early);
}

/* The fence would have nothing that completes it. */
static void t17_a_graph_with_open_fences_is_not_placed_elsewhere(void **state)
{
	struct rig *rig = rig_of("a:call count=1 -> z:end");
	weir_scheduler_options options = {.size = sizeof options, .backend = "host"};
	weir_scheduler *other = NULL;
	weir_fence fence;

	(void)state;
	rig_on(rig, "a", emit_one);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(weir_graph_create_fence(rig->graph, &fence), WEIR_OK);
	assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
	rig->scheduler = NULL;
	assert_int_equal(weir_scheduler_create(rig->graph, &options, &other), WEIR_E_STATE);
	assert_says(weir_last_error(), "before it runs elsewhere");
	assert_int_equal(weir_fence_complete(rig->graph, fence, WEIR_OK, NULL), WEIR_OK);
	assert_int_equal(weir_scheduler_create(rig->graph, &options, &other), WEIR_OK);
	assert_int_equal(weir_scheduler_destroy(other), WEIR_OK);
	rig_destroy(rig);
}

/* --- misuse --- */

static weir_status misuse(struct rig *rig, weir_context *context)
{
	weir_message *message = weir_context_message(context, 0, 0);
	weir_fence fence = {0, 0}, other;
	weir_stream *stream = current_stream(context);

	HOLDS(rig, !weir_graph_create_fence(rig->graph, &fence));
	HOLDS(rig, weir_context_emit_at(context, 0, weir_message_ref(message), fence) == WEIR_E_INVALID);
	HOLDS(rig, weir_stream_wait(stream, fence) == WEIR_E_UNSUPPORTED);
	HOLDS(rig, weir_fence_complete(rig->graph, fence, (weir_status)1, NULL) == WEIR_E_INVALID);
	HOLDS(rig, weir_fence_complete(rig->graph, (weir_fence){0, 0}, WEIR_OK, NULL) == WEIR_E_INVALID);
	other = (weir_fence){fence.stream, fence.value + 1};
	HOLDS(rig, weir_fence_complete(rig->graph, other, WEIR_OK, NULL) == WEIR_E_INVALID);
	HOLDS(rig, !strncmp(weir_last_error(), "fence {0x", 9));
	other = (weir_fence){fence.stream + 4096, 1};
	HOLDS(rig, weir_context_emit_at(context, 0, rig_number(context, 1), other) == WEIR_E_INVALID);
	HOLDS(rig, !weir_fence_complete(rig->graph, fence, WEIR_OK, NULL));
	HOLDS(rig, weir_fence_complete(rig->graph, fence, WEIR_OK, NULL) == WEIR_E_INVALID);
	HOLDS(rig, !strcmp(weir_last_error(), "the fence was completed before: it is completed once"));
	HOLDS(rig, !weir_stream_wait(stream, fence) && !weir_fence_query(rig->graph, fence));
	HOLDS(rig, !weir_graph_create_fence(rig->graph, &other)); /* the same place */
	HOLDS(rig, other.stream == fence.stream && other.value == fence.value + 1);
	HOLDS(rig, weir_fence_complete(rig->graph, fence, WEIR_OK, NULL) == WEIR_E_INVALID);
	HOLDS(rig, weir_fence_query(rig->graph, other) == WEIR_E_BUSY);
	HOLDS(rig, !weir_fence_complete(rig->graph, other, WEIR_OK, NULL));
	return weir_context_emit_at(context, 0, rig_number(context, 7), other);
}

static void misuse_fences(void)
{
	struct rig *rig = rig_of("s:source ticks=3 -> a:call -> z:end");

	rig_on(rig, "a", misuse);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_string_equal(rig_text(rig, "z"), "7 7 7");
	rig_destroy(rig);
}

static void t17_a_fence_is_completed_once_and_its_place_is_used_again(void **state)
{
	(void)state;
	rig_everywhere(misuse_fences);
}

/* --- fences that nothing completes --- */

/* The fence is in own.fences. */
static weir_status emit_open(struct rig *rig, weir_context *context)
{
	size_t place = wr_load(&own.given);

	HOLDS(rig, !weir_graph_create_fence(rig->graph, &own.fences[place]));
	wr_store(&own.given, place + 1);
	return weir_context_emit_at(context, 0, rig_number(context, (int64_t)place), own.fences[place]);
}

static void complete_all(struct rig *rig)
{
	for (size_t i = wr_load(&own.given); i-- > 0;)
		assert_int_equal(weir_fence_complete(rig->graph, own.fences[i], WEIR_OK, NULL), WEIR_OK);
}

static void wait_for_parked(struct rig *rig, size_t given)
{
	while (wr_load(&own.given) < given || !rig_all_asleep(rig->scheduler))
		wr_thread_sleep(100 * US);
}

static void explain_open(void)
{
	struct rig *rig = rig_of("a:call count=2 -> z:host capacity=4; a -> y:call capacity=4");

	clear();
	rig_on(rig, "a", emit_open);
	rig_start(rig);
	wait_for_parked(rig, 2);
	assert_says(rig_explain(rig), "z: gate on in: WAIT_EVENT (waits for a fence that the program "
				      "completes: 1 fence pending, oldest ");
	assert_says(rig_explain(rig), ", producer a)");
	assert_says(rig_explain(rig), "y: gate on in: WAIT_EVENT (waits for a fence that the program ");
	complete_all(rig);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "y"), 2);
	rig_destroy(rig);
}

static void t17_c05_an_open_fence_and_its_entity_are_explained(void **state)
{
	(void)state;
	rig_everywhere(explain_open);
}

static void drain_open(void)
{
	struct rig *rig = rig_of("a:call -> z:host capacity=4");

	clear();
	rig->options.drain_ns = 30 * SECOND;
	rig_on(rig, "a", emit_open);
	rig_on(rig, "z", note_number);
	rig_start(rig);
	wait_for_parked(rig, 4);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 2 * MS, NULL), WEIR_E_TIMEOUT);
	complete_all(rig);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), wr_load(&own.given));
	rig_destroy(rig);
}

static void t17_s07_a_drain_waits_for_open_fences(void **state)
{
	(void)state;
	rig_everywhere(drain_open);
}

static void drain_too_long(void)
{
	struct rig *rig = rig_of("a:call count=1 -> z:host");

	clear();
	rig->options.drain_ns = 5 * MS;
	rig_on(rig, "a", emit_open);
	rig_start(rig);
	wait_for_parked(rig, 1);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_E_ABANDONED);
	assert_says(rig->outcome.text, "waits for a fence that the program completes");
	complete_all(rig);
	rig_destroy(rig);
}

static void t17_s07_a_drain_that_takes_too_long_names_the_open_fence(void **state)
{
	(void)state;
	rig_everywhere(drain_too_long);
}

static void cut_short(void)
{
	struct rig *rig = rig_of("a:call -> z:host capacity=4");

	clear();
	rig_on(rig, "a", emit_open);
	for (int i = 0; i < 2; i++) {
		rig_start(rig);
		wait_for_parked(rig, 4 * (size_t)(i + 1));
		weir_scheduler_stop(rig->scheduler, 0);
		rig_wait(rig);
		assert_int_equal(rig_ticks(rig, "z"), 0);
	}
	weir_scheduler_destroy(rig->scheduler);
	rig->scheduler = NULL;
	assert_int_equal(weir_graph_destroy(rig->graph), WEIR_E_STATE);
	assert_says(weir_last_error(),
		    "of its fences are not completed: complete them before it is destroyed");
	complete_all(rig);
	rig_destroy(rig);
}

static void t17_a_graph_with_open_fences_is_not_destroyed(void **state)
{
	(void)state;
	rig_everywhere(cut_short);
}

/* A late failure of one run does not end the next. */
static void fail_late(void)
{
	struct rig *rig = rig_of("a:call count=1 -> z:host");
	weir_fence late;

	clear();
	rig_on(rig, "a", emit_open);
	rig_start(rig);
	wait_for_parked(rig, 1);
	weir_scheduler_stop(rig->scheduler, 0);
	rig_wait(rig);
	late = own.fences[0];
	rig_start(rig);
	wait_for_parked(rig, 2);
	assert_int_equal(weir_fence_complete(rig->graph, late, WEIR_E_IO, "late"), WEIR_OK);
	assert_int_equal(weir_fence_complete(rig->graph, own.fences[1], WEIR_OK, NULL), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 1);
	rig_destroy(rig);
}

static void t17_s08_a_late_failure_ends_no_other_run(void **state)
{
	(void)state;
	rig_everywhere(fail_late);
}

/* --- payloads --- */

static void note_freed(void *unused)
{
	(void)unused;
	wr_fetch_add(&own.freed, 1);
}

/* What it takes is used until the fence is completed. */
static weir_status use_input(struct rig *rig, weir_context *context)
{
	weir_status status = emit_open(rig, context);

	HOLDS(rig, weir_context_count(context, 0) == 1);
	return status;
}

static void keep_inputs(void)
{
	struct rig *rig = rig_of("a:call -> z:host capacity=4");
	weir_inlet *inlet = NULL;
	weir_message *message = NULL;

	clear();
	rig_on(rig, "a", use_input);
	assert_int_equal(weir_graph_add_inlet(rig->graph, "a.in", &inlet), WEIR_OK);
	rig_start(rig);
	assert_int_equal(weir_message_wrap_user(rig->graph, &own, note_freed, &message), WEIR_OK);
	assert_int_equal(weir_inlet_push(inlet, message, -1), WEIR_OK);
	wait_for_parked(rig, 1);
	assert_int_equal(wr_load(&own.freed), 0);
	weir_inlet_close(inlet);
	complete_all(rig);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(wr_load(&own.freed), 1);
	rig_destroy(rig);
}

static void t17_t04_what_the_tick_took_is_used_until_the_fence_is_completed(void **state)
{
	(void)state;
	rig_everywhere(keep_inputs);
}

/* --- from outside --- */

static void push_open(void)
{
	struct rig *rig = rig_of("z:end");
	weir_inlet *inlet = NULL;
	weir_message *message;
	weir_fence fence = {0, 0};

	assert_int_equal(weir_graph_create_fence(rig->graph, &fence), WEIR_E_INVALID);
	assert_int_equal(weir_graph_add_inlet(rig->graph, "z.in", &inlet), WEIR_OK);
	for (int fails = 0; fails < 2; fails++) {
		rig_start(rig);
		assert_int_equal(weir_graph_create_fence(rig->graph, &fence), WEIR_OK);
		message = rig_message(rig, 5);
		assert_int_equal(weir_message_add_producer(message, fence), WEIR_OK);
		assert_int_equal(weir_inlet_push(inlet, message, -1), WEIR_OK);
		weir_inlet_close(inlet);
		assert_int_equal(weir_scheduler_wait(rig->scheduler, 2 * MS, NULL), WEIR_E_TIMEOUT);
		assert_int_equal(weir_fence_complete(rig->graph, fence, fails ? WEIR_E_IO : WEIR_OK, "gone"),
				 WEIR_OK);
		assert_int_equal(rig_wait(rig), fails ? WEIR_E_IO : WEIR_OK);
		assert_int_equal(rig_ticks(rig, "z"), !fails);
	}
	assert_string_equal(rig->outcome.text, "gone");
	rig_destroy(rig);
}

static void t17_b02_a_program_pushes_what_is_not_finished(void **state)
{
	(void)state;
	rig_everywhere(push_open);
}

static void take_in_order(void)
{
	struct rig *rig = rig_of("a:call count=3");
	weir_outlet *outlet = rig_outlet(rig, "a.out", 4, 0);

	clear();
	rig_on(rig, "a", emit_open);
	rig_start(rig);
	wait_for_parked(rig, 3);
	assert_int_equal(rig_take(outlet, 0), WEIR_E_TIMEOUT);
	for (size_t i = 3; i-- > 1;)
		assert_int_equal(weir_fence_complete(rig->graph, own.fences[i], WEIR_OK, NULL), WEIR_OK);
	wr_thread_sleep(MS);
	assert_int_equal(rig_take(outlet, 0), WEIR_E_TIMEOUT);
	assert_int_equal(weir_fence_complete(rig->graph, own.fences[0], WEIR_OK, NULL), WEIR_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig_take(outlet, -1), i);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void t17_b02_an_outlet_gives_finished_messages_in_order(void **state)
{
	(void)state;
	rig_everywhere(take_in_order);
}

static void tell_open(void)
{
	struct rig *rig = rig_of("z:host fence=true");
	weir_fence fence;

	rig_make(rig);
	assert_int_equal(weir_graph_create_fence(rig->graph, &fence), WEIR_OK);
	assert_int_equal(weir_entity_tell_fence(weir_graph_entity(rig->graph, "z"), "fence", fence), WEIR_OK);
	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 2 * MS, NULL), WEIR_E_TIMEOUT);
	while (!strstr(rig_explain(rig), "waits for a fence that the program completes: 1 fence pending"))
		wr_thread_sleep(100 * US); /* z is under review */
	assert_int_equal(rig_ticks(rig, "z"), 0);
	assert_int_equal(weir_fence_complete(rig->graph, fence, WEIR_OK, NULL), WEIR_OK);
	while (!rig_ticks(rig, "z"))
		wr_thread_sleep(100 * US);
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	rig_wait(rig);
	rig_destroy(rig);
}

static void t17_c06_a_condition_is_told_a_fence_that_the_program_completes(void **state)
{
	(void)state;
	rig_everywhere(tell_open);
}

/* --- an entity that arms again and again --- */

static void poke_often(void)
{
	struct rig *rig = rig_of("a:call count=2 -> z:host capacity=2 take=2");

	clear();
	rig_on(rig, "a", emit_open);
	rig_start(rig);
	wait_for_parked(rig, 2);
	for (int i = 0; i < 100; i++) {
		weir_entity_poke(weir_graph_entity(rig->graph, "z"));
		wr_thread_sleep(10 * US);
	}
	wait_for_parked(rig, 2);
	assert_int_equal(rig_pending(rig, "z"), 2);
	assert_int_equal(rig_waits_for(rig, "z"), 2);
	assert_int_equal(weir_fence_complete(rig->graph, own.fences[1], WEIR_OK, NULL), WEIR_OK);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 2 * MS, NULL), WEIR_E_TIMEOUT);
	assert_int_equal(weir_fence_complete(rig->graph, own.fences[0], WEIR_OK, NULL), WEIR_OK);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 1);
	rig_destroy(rig);
}

static void t17_several_open_fences_are_waited_for_one_after_the_other(void **state)
{
	(void)state;
	rig_everywhere(poke_often);
}

static void arm_often(void)
{
	struct rig *rig = rig_of("z:end enabled=false");
	weir_fence fence;

	rig_make(rig);
	assert_int_equal(weir_graph_create_fence(rig->graph, &fence), WEIR_OK);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(rig_arm_in_vain(rig, &fence, 1), WEIR_OK);
		assert_in_range(rig_promise_waits(rig, fence), 1, 16);
	}
	assert_int_equal(weir_fence_complete(rig->graph, fence, WEIR_OK, NULL), WEIR_OK);
	assert_int_equal(rig_arm_in_vain(rig, &fence, 1), WEIR_E_UNSUPPORTED);
	rig_destroy(rig);
}

static void t17_waits_that_were_given_up_do_not_add_up(void **state)
{
	(void)state;
	rig_on_host(arm_often);
}

/* The queue evicts what is not finished; its payload stays until the fence is completed. */
static void evict_open(void)
{
	struct rig *rig = rig_of("a:call count=5 -> z:host policy=pop capacity=1");

	clear();
	rig_on(rig, "a", emit_open);
	rig_start(rig);
	wait_for_parked(rig, 5);
	complete_all(rig);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_in_range(rig_ticks(rig, "z"), 1, 2);
	rig_destroy(rig);
}

static void t17_c04_a_queue_evicts_what_is_not_finished(void **state)
{
	(void)state;
	rig_everywhere(evict_open);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t17_a_fence_that_failed_is_not_emitted),
		cmocka_unit_test(t17_a_fence_is_completed_once_and_its_place_is_used_again),
		cmocka_unit_test(t17_c05_an_open_fence_and_its_entity_are_explained),
		cmocka_unit_test(t17_s07_a_drain_waits_for_open_fences),
		cmocka_unit_test(t17_s07_a_drain_that_takes_too_long_names_the_open_fence),
		cmocka_unit_test(t17_a_graph_with_open_fences_is_not_destroyed),
		cmocka_unit_test(t17_a_graph_with_open_fences_is_not_placed_elsewhere),
		cmocka_unit_test(t17_s08_a_late_failure_ends_no_other_run),
		cmocka_unit_test(t17_t04_what_the_tick_took_is_used_until_the_fence_is_completed),
		cmocka_unit_test(t17_b02_a_program_pushes_what_is_not_finished),
		cmocka_unit_test(t17_b02_an_outlet_gives_finished_messages_in_order),
		cmocka_unit_test(t17_c06_a_condition_is_told_a_fence_that_the_program_completes),
		cmocka_unit_test(t17_several_open_fences_are_waited_for_one_after_the_other),
		cmocka_unit_test(t17_waits_that_were_given_up_do_not_add_up),
		cmocka_unit_test(t17_c04_a_queue_evicts_what_is_not_finished),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

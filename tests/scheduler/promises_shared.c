/*
 * Fences that the program completes (T17), where they are not expected: one of two entities, of two ticks, of
 * two graphs; completed by a kernel, by a destructor, when the run ends, while the scheduler is destroyed.
 */
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "rig_inside.h"
#include "tests/calls.h"

enum { COUNT = 12 };

static struct {
	weir_graph *graph;
	weir_fence fences[COUNT + 1];
	_Atomic unsigned ended, emitted;
	_Atomic bool over;
	struct rig *rig;
} own;

static weir_fence create(weir_graph *graph)
{
	weir_fence fence = {0, 0};

	assert_int_equal(weir_graph_create_fence(graph, &fence), WEIR_OK);
	return fence;
}

static void clear(struct rig *rig)
{
	rig_make(rig);
	memset(&own, 0, sizeof own);
	own.rig = rig;
	own.graph = rig->graph;
	for (int i = 0; i <= COUNT; i++)
		own.fences[i] = create(rig->graph);
}

static void complete_rest(void)
{
	for (int i = 0; i <= COUNT; i++)
		if (weir_fence_query(own.graph, own.fences[i]) == WEIR_E_BUSY)
			assert_int_equal(weir_fence_complete(own.graph, own.fences[i], WEIR_OK, NULL),
					 WEIR_OK);
}

/* --- one fence, several messages --- */

static weir_status emit_first(struct rig *rig, weir_context *context)
{
	weir_status status = weir_context_emit_at(context, 0, rig_number(context, 1), own.fences[0]);

	if (!status)
		status = weir_context_emit_at(context, 0, rig_number(context, 2), own.fences[0]);
	HOLDS(rig, !status);
	wr_fetch_add(&own.emitted, 1);
	return status;
}

static void share(weir_status status)
{
	struct rig *rig = rig_of("a:call max_emits=2 count=2 -> z:host capacity=4; "
				 "b:call max_emits=2 count=2 -> y:call capacity=4");

	rig_on(rig, "a", emit_first);
	rig_on(rig, "b", emit_first);
	clear(rig);
	rig_start(rig);
	while (wr_load(&own.emitted) < 4 || !rig_all_asleep(rig->scheduler))
		wr_thread_sleep(100 * US);
	assert_int_equal(weir_fence_complete(rig->graph, own.fences[0], status, "gone"), WEIR_OK);
	assert_int_equal(rig_wait(rig), status);
	assert_int_equal(rig_ticks(rig, "z") + rig_ticks(rig, "y"), status ? 0 : 8);
	assert_true(!status || !strcmp(rig->outcome.entity, "a") || !strcmp(rig->outcome.entity, "b"));
	complete_rest();
	rig_destroy(rig);
}

static void share_well(void)
{
	share(WEIR_OK);
}

static void share_badly(void)
{
	share(WEIR_E_IO);
}

static void t17_two_entities_emit_one_fence_in_several_ticks(void **state)
{
	(void)state;
	rig_everywhere(share_well);
	rig_everywhere(share_badly);
}

/* --- two graphs --- */

static weir_status emit_strange(struct rig *rig, weir_context *context)
{
	weir_fence strange = *(const weir_fence *)rig->own;
	weir_status status = weir_context_emit_at(context, 0, rig_number(context, 1), strange);

	HOLDS(rig, status == WEIR_E_INVALID);
	HOLDS(rig, strstr(weir_last_error(), "was never created in this graph"));
	HOLDS(rig, weir_fence_complete(rig->graph, strange, WEIR_OK, NULL) == WEIR_E_INVALID);
	HOLDS(rig, weir_fence_query(rig->graph, strange) == WEIR_E_INVALID);
	return WEIR_OK;
}

static void refuse_strange(void)
{
	struct rig *rig = rig_of("a:call count=1 -> z:end"), *other = rig_of("source ticks=1 -> end");

	rig_make(other);
	clear(rig);
	complete_rest();
	own.fences[0] = create(other->graph);
	rig->own = &own.fences[0];
	rig_on(rig, "a", emit_strange);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(weir_fence_complete(other->graph, own.fences[0], WEIR_OK, NULL), WEIR_OK);
	rig_destroy(rig);
	rig_destroy(other);
}

static void t17_a_fence_of_another_graph_is_refused(void **state)
{
	(void)state;
	rig_everywhere(refuse_strange);
}

/* --- completed on the device's threads, by a destructor, in the program's calls --- */

static int complete_in_kernel(const void *arguments)
{
	const weir_fence *fence = *(const weir_fence *const *)arguments;

	return weir_fence_complete(own.graph, *fence, WEIR_OK, NULL) ? 1 : 0;
}

static const weir_kernel completing = {sizeof(weir_kernel), "complete", complete_in_kernel, NULL};

static weir_status launch_and_emit(struct rig *rig, weir_context *context)
{
	const weir_fence *fence = &own.fences[weir_context_tick(context)];

	HOLDS(rig, !weir_stream_launch(current_stream(context), &completing, &fence, sizeof fence));
	return weir_context_emit_at(context, 0, rig_number(context, 1), *fence);
}

static void complete_on_device(const char *text)
{
	struct rig *rig = rig_of(text);

	rig_on(rig, "a", launch_and_emit);
	clear(rig);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), COUNT);
	complete_rest();
	rig_destroy(rig);
}

static void complete_on_devices(void)
{
	complete_on_device("a:call count=12 -> z:host capacity=3");
	complete_on_device("a:call count=12 in_flight=1 -> z:call gate=in,flag");
	complete_on_device("a:call count=12 in_flight=2 -> z:host; a -> y:call gate=in,callback_inline");
}

static void t17_t08_a_kernel_completes_the_fence_of_its_own_tick(void **state)
{
	(void)state;
	rig_everywhere(complete_on_devices);
}

static void complete_next(void *unused)
{
	unsigned next = wr_fetch_add(&own.ended, 1) + 1;

	(void)unused;
	if (weir_fence_complete(own.graph, own.fences[next], WEIR_OK, NULL))
		rig_break(own.rig);
}

/* The payload of each message is freed when its fence is completed, which completes the next one. */
static weir_status emit_chained(struct rig *rig, weir_context *context)
{
	weir_message *message = NULL;

	HOLDS(rig, !weir_message_wrap_user(rig->graph, &own, complete_next, &message));
	if (weir_context_tick(context) == COUNT - 1)
		HOLDS(rig, !weir_fence_complete(rig->graph, own.fences[0], WEIR_OK, NULL));
	return weir_context_emit_at(context, 0, message, own.fences[weir_context_tick(context)]);
}

static void chain(void)
{
	struct rig *rig = rig_of("a:call count=12 in_flight=20 -> z:call capacity=1 policy=pop");

	rig_on(rig, "a", emit_chained);
	clear(rig);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(wr_load(&own.ended), COUNT);
	complete_rest();
	rig_destroy(rig);
}

static void t17_b03_a_destructor_completes_a_fence(void **state)
{
	(void)state;
	rig_everywhere(chain);
}

/* --- the end of a run, and of its scheduler --- */

static weir_status emit_next(struct rig *rig, weir_context *context)
{
	unsigned next = wr_fetch_add(&own.emitted, 1);

	(void)rig;
	return next < COUNT ? weir_context_emit_at(context, 0, rig_number(context, 1), own.fences[next])
			    : weir_context_fail(context, "no fence is left");
}

static void complete_slowly(void *arg)
{
	bool fails = arg;

	for (int i = 0; i <= COUNT; i++) {
		wr_thread_sleep(i % 3 * 20 * US);
		if (weir_fence_complete(own.graph, own.fences[i], fails && i % 2 ? WEIR_E_IO : WEIR_OK,
					"gone"))
			rig_break(own.rig);
	}
	wr_store(&own.over, true);
}

static void end_beside(unsigned flags, void *fails)
{
	struct rig *rig = rig_of("a:call in_flight=4 -> z:host capacity=3; a -> y:call capacity=3");
	struct wr_thread thread;
	weir_status status;

	rig_on(rig, "a", emit_next);
	clear(rig);
	rig_start(rig);
	assert_int_equal(wr_thread_start(&thread, "program", complete_slowly, fails), WEIR_OK);
	while (wr_load(&own.emitted) < 4 && weir_scheduler_running(rig->scheduler))
		wr_thread_sleep(10 * US);
	weir_scheduler_stop(rig->scheduler, flags);
	(void)rig_wait(rig);
	weir_scheduler_destroy(rig->scheduler);
	rig->scheduler = NULL;
	do { /* refused while some are open; while the last call returns it is not */
		status = weir_graph_destroy(rig->graph);
		wr_thread_yield();
	} while (status == WEIR_E_STATE);
	assert_int_equal(status, WEIR_OK);
	wr_thread_join(&thread);
	rig->graph = NULL;
	rig_destroy(rig);
}

static void end_in_all_ways(void)
{
	for (int i = 0; i < 10; i++) {
		end_beside(0, NULL);
		end_beside(WEIR_STOP_DRAIN, NULL);
		end_beside(0, &own);
		end_beside(WEIR_STOP_DRAIN, &own);
	}
}

static void t17_s07_fences_are_completed_while_all_is_destroyed(void **state)
{
	(void)state;
	rig_on_host(end_in_all_ways);
}

/* --- failures beside a run that they do not concern --- */

static void fail_beside(void *arg)
{
	bool carried = arg;

	for (int i = 0; i < 3000; i++) {
		weir_message *message = NULL;
		weir_fence fence = {0, 0};
		bool holds = !weir_graph_create_fence(own.graph, &fence);

		if (carried)
			holds &= !weir_message_create_empty(own.graph, &message) &&
				 !weir_message_add_producer(message, fence);
		holds &= !weir_fence_complete(own.graph, fence, WEIR_E_IO, "gone");
		holds &= !carried || weir_fence_query(own.graph, fence) == WEIR_E_FAILED;
		weir_message_unref(message);
		if (!holds)
			rig_break(own.rig);
	}
	wr_fetch_add(&own.ended, 1);
}

static weir_status emit_until_they_end(struct rig *rig, weir_context *context)
{
	weir_fence fence = {0, 0};
	weir_status status;

	HOLDS(rig, !weir_graph_create_fence(rig->graph, &fence));
	status = weir_context_emit_at(context, 0, rig_number(context, 1), fence);
	HOLDS(rig, !weir_fence_complete(rig->graph, fence, WEIR_OK, NULL));
	if (wr_load(&own.ended) == 4)
		weir_context_finish(context);
	return status;
}

static void t17_failures_of_fences_that_no_entity_has_disturb_no_run(void **state)
{
	struct wr_thread threads[4];
	struct rig *rig;

	(void)state;
	rig_backend = "host";
	rig = rig_of("a:call in_flight=3 -> z:call capacity=3; a -> y:host");
	rig_on(rig, "a", emit_until_they_end);
	clear(rig);
	rig_start(rig);
	for (int i = 0; i < 4; i++)
		assert_int_equal(wr_thread_start(&threads[i], "program", fail_beside, i % 2 ? &own : NULL),
				 WEIR_OK);
	for (int i = 0; i < 4; i++)
		wr_thread_join(&threads[i]);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), rig_ticks(rig, "a"));
	assert_in_range(rig_promise_places(rig), 1024, 2048);
	complete_rest();
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t17_two_entities_emit_one_fence_in_several_ticks),
		cmocka_unit_test(t17_a_fence_of_another_graph_is_refused),
		cmocka_unit_test(t17_t08_a_kernel_completes_the_fence_of_its_own_tick),
		cmocka_unit_test(t17_b03_a_destructor_completes_a_fence),
		cmocka_unit_test(t17_failures_of_fences_that_no_entity_has_disturb_no_run),
		cmocka_unit_test(t17_s07_fences_are_completed_while_all_is_destroyed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

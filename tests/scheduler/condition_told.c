/*
 * Fences that the program tells the condition `fence` (C6), with both values of `once`; and a fence that a
 * condition of the program's own waits for.
 */
#include <string.h>

#include "rig_inside.h"
#include "tests/calls.h"

static weir_stream *stream_of(struct rig *rig)
{
	weir_stream *stream = NULL;

	assert_int_equal(weir_graph_add_stream(rig->graph, 0, &stream), WEIR_OK);
	return stream;
}

/* What the kernels have written, and what the ticks of `z` found. */
static _Atomic int64_t written;
static _Atomic int64_t found[16];
static weir_fence inner; /* recorded in a tick */

struct writing {
	int64_t number, ns;
};

static int write_number(const void *arguments)
{
	const struct writing *writing = arguments;

	weir_sleep(writing->ns);
	wr_store(&written, writing->number);
	return 0;
}

static _Atomic bool told_all; /* what hold_writer waits for */

static int hold_writer(const void *arguments)
{
	while (!wr_load(&told_all))
		weir_sleep(MS);
	return write_number(arguments);
}

static int fail_late(const void *arguments)
{
	(void)arguments;
	weir_sleep(MS);
	return 7;
}

static const weir_kernel writer = {sizeof(weir_kernel), "writer", write_number, NULL};
static const weir_kernel held_writer = {sizeof(weir_kernel), "held_writer", hold_writer, NULL};
static const weir_kernel failing = {sizeof(weir_kernel), "failing", fail_late, NULL};

static weir_fence enqueue_kernel(weir_stream *stream, const weir_kernel *kernel, int64_t number, int64_t ns)
{
	struct writing writing = {number, ns};
	weir_fence fence = {0, 0};

	assert_int_equal(weir_stream_launch(stream, kernel, &writing, sizeof writing), WEIR_OK);
	assert_int_equal(weir_stream_record(stream, &fence), WEIR_OK);
	return fence;
}

static weir_fence enqueue(weir_stream *stream, int64_t number, int64_t ns)
{
	return enqueue_kernel(stream, &writer, number, ns);
}

static weir_status tell(struct rig *rig, weir_fence fence)
{
	return weir_entity_tell_fence(weir_graph_entity(rig->graph, "z"), "fence", fence);
}

static void tell_never(struct rig *rig)
{
	assert_int_equal(weir_entity_tell(weir_graph_entity(rig->graph, "z"), "fence", WEIR_TOLD_NEVER),
			 WEIR_OK);
}

static void wait_for_ticks(struct rig *rig, uint64_t ticks)
{
	for (int i = 0; i < 10000 && rig_ticks(rig, "z") < ticks; i++)
		(void)weir_scheduler_wait(rig->scheduler, MS, NULL);
	assert_int_equal(rig_ticks(rig, "z"), ticks);
}

static weir_status look(struct rig *rig, weir_context *context)
{
	(void)rig;
	found[weir_context_tick(context)] = wr_load(&written);
	return WEIR_OK;
}

static const char *signal_kind = "callback";

static struct rig *rig_waiting(const char *text, rig_fn *compute)
{
	struct rig *rig = rig_of(text);

	wr_store(&written, 0);
	for (size_t i = 0; i < sizeof found / sizeof *found; i++)
		wr_store(&found[i], 0);
	rig->options.signal = signal_kind;
	rig_on(rig, "z", compute);
	rig_make(rig);
	return rig;
}

/* --- once --- */

static void one_tick_each(void)
{
	struct rig *rig = rig_waiting("z:call fence=true", look);
	weir_stream *stream = stream_of(rig);

	rig_start(rig);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(tell(rig, enqueue(stream, i, MS)), WEIR_OK);
		wait_for_ticks(rig, (uint64_t)i);
		assert_int_equal(found[i - 1], i);
	}
	tell_never(rig);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 3);
	rig_destroy(rig);
}

static void c06_each_told_fence_allows_one_tick_when_it_is_complete(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		signal_kind = rig_signals[i];
		rig_in_worlds(30, one_tick_each);
		rig_on_host(one_tick_each);
	}
	signal_kind = "callback";
}

/* The first fence is waited for although later ones are never complete in time; the last has its tick, too.
 */
static void tell_ahead(void)
{
	struct rig *rig = rig_waiting("z:call fence=true", look);
	weir_stream *stream = stream_of(rig);

	rig_start(rig);
	for (int i = 1; i <= 5; i++)
		assert_int_equal(tell(rig, enqueue(stream, i, 50 * MS)), WEIR_OK);
	tell_never(rig); /* after those that were told */
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 2);
	assert_in_range(found[0], 1, 4);
	assert_int_equal(found[1], 5);
	rig_destroy(rig);
}

static void c06_fences_told_ahead_do_not_starve_it_and_the_last_one_counts(void **state)
{
	(void)state;
	rig_everywhere(tell_ahead);
}

/* Tick 0 tells the fence of its own work: it is not used up by tick 0. */
static weir_status tell_in_tick(struct rig *rig, weir_context *context)
{
	struct writing writing = {9, MS};
	weir_stream *stream = current_stream(context);

	found[weir_context_tick(context)] = wr_load(&written);
	if (weir_context_tick(context))
		return weir_context_finish(context);
	HOLDS(rig, !weir_stream_launch(stream, &writer, &writing, sizeof writing));
	HOLDS(rig, !weir_stream_record(stream, &inner));
	return weir_entity_tell_fence(weir_context_entity(context), "fence", inner);
}

static void tell_inside(void)
{
	struct rig *rig = rig_waiting("z:call fence=true", tell_in_tick);

	assert_int_equal(tell(rig, (weir_fence){0, 0}), WEIR_OK);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 2);
	assert_int_equal(found[1], 9);
	rig_destroy(rig);
}

static void c06_a_fence_told_during_a_tick_gets_a_tick_of_its_own(void **state)
{
	(void)state;
	rig_everywhere(tell_inside);
}

/* --- fences told beforehand --- */

/* No work is to be waited for. */
static void c06_a_fence_may_be_told_before_there_is_a_scheduler(void **state)
{
	struct rig *rig = rig_of("z:call fence=true");

	(void)state;
	rig_on(rig, "z", look);
	assert_int_equal(tell(rig, (weir_fence){0, 0}), WEIR_OK);
	tell_never(rig);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 1);
	rig_destroy(rig);
}

static void complete_in_turn(void)
{
	struct rig *rig = rig_waiting("z:call fence=true", look);
	weir_fence promises[2];

	for (int i = 0; i < 2; i++) {
		assert_int_equal(weir_graph_create_fence(rig->graph, &promises[i]), WEIR_OK);
		assert_int_equal(tell(rig, promises[i]), WEIR_OK);
	}
	rig_start(rig);
	for (uint64_t i = 0; i < 2; i++) {
		(void)weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
		assert_int_equal(rig_ticks(rig, "z"), i);
		assert_int_equal(weir_fence_complete(rig->graph, promises[i], WEIR_OK, NULL), WEIR_OK);
	}
	tell_never(rig);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 2);
	rig_destroy(rig);
}

static void c06_t17_each_of_two_promises_that_were_told_allows_its_own_tick(void **state)
{
	(void)state;
	rig_in_worlds(20, complete_in_turn);
}

/* --- until another is told --- */

static weir_status tick_slowly(struct rig *rig, weir_context *context)
{
	(void)look(rig, context);
	weir_sleep(10 * US);
	return weir_context_tick(context) == 9 ? weir_context_finish(context) : WEIR_OK;
}

static void open_until_told(void)
{
	struct rig *rig = rig_waiting("z:call fence=false", tick_slowly);
	weir_stream *stream = stream_of(rig);

	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 10 * MS, NULL), WEIR_E_TIMEOUT);
	assert_int_equal(rig_ticks(rig, "z"), 0);
	wr_store(&told_all, false);
	assert_int_equal(tell(rig, enqueue_kernel(stream, &held_writer, 1, 0)), WEIR_OK);
	assert_int_equal(tell(rig, enqueue(stream, 2, 5 * MS)), WEIR_OK); /* the last counts */
	wr_store(&told_all, true);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 10);
	for (int i = 0; i < 10; i++)
		assert_int_equal(found[i], 2);
	rig_destroy(rig);
}

static void c06_without_once_the_last_fence_opens_it(void **state)
{
	(void)state;
	rig_everywhere(open_until_told);
}

/* --- before any, between runs, the end --- */

static void wait_outside(void)
{
	struct rig *rig = rig_waiting("z:call fence=true", look);

	rig_start(rig);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 5 * SECOND / 100, NULL), WEIR_E_TIMEOUT);
	assert_says(rig_explain(rig), "z: fence: WAIT_EVENT (no fence was told)\n");
	weir_scheduler_stop(rig->scheduler, WEIR_STOP_DRAIN);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 0);
	rig_destroy(rig);
}

static void c06_s04_before_the_first_fence_it_waits_for_the_program(void **state)
{
	(void)state;
	rig_everywhere(wait_outside);
}

static void tell_between_runs(void)
{
	struct rig *rig = rig_waiting("z:call fence=true", look);
	weir_stream *stream = stream_of(rig);

	assert_int_equal(tell(rig, enqueue(stream, 4, MS)), WEIR_OK);
	tell_never(rig);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 1);
	assert_int_equal(found[0], 4);
	tell_never(rig); /* the fence and the word of the first run are forgotten */
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 0);
	rig_destroy(rig);
}

/* The run is cut short before the fence is complete. */
static void leave_unused(void)
{
	struct rig *rig = rig_waiting("z:call fence=true", look);
	weir_stream *stream = stream_of(rig);

	rig_start(rig);
	assert_int_equal(tell(rig, enqueue(stream, 1, 50 * MS)), WEIR_OK);
	weir_scheduler_stop(rig->scheduler, 0);
	(void)rig_wait(rig);
	tell_never(rig);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 0);
	rig_destroy(rig);
}

static void c06_an_unused_fence_is_forgotten_at_the_end_of_a_run(void **state)
{
	(void)state;
	rig_everywhere(leave_unused);
}

static void c06_a_fence_told_between_runs_is_kept_for_one(void **state)
{
	(void)state;
	rig_everywhere(tell_between_runs);
}

/* --- what is said and refused --- */

static void explain_told(void)
{
	struct rig *rig = rig_waiting("z:call fence=true", look);
	weir_stream *stream = stream_of(rig);
	const char *text;

	rig_start(rig);
	assert_int_equal(tell(rig, enqueue(stream, 1, SECOND / 2)), WEIR_OK);
	tell_never(rig);
	(void)weir_scheduler_wait(rig->scheduler, 100 * MS, NULL);
	text = rig_explain(rig);
	assert_says(text, "z: fence: WAIT_EVENT (told 1");
	assert_says(text, "ms ago: 1 fence pending, oldest 1");
	assert_says(text, "producer the program)\n");
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void c05_c06_an_explanation_says_when_the_fence_was_told(void **state)
{
	(void)state;
	rig_in_worlds(20, explain_told);
}

/* What it waits for was told first; what was told later, on this stream or another, does not change that. */
static void explain_first(void)
{
	struct rig *rig = rig_waiting("z:call fence=true", look);
	weir_stream *stream = stream_of(rig), *other = stream_of(rig);

	rig_start(rig);
	assert_int_equal(tell(rig, enqueue(stream, 1, SECOND / 2)), WEIR_OK);
	(void)weir_scheduler_wait(rig->scheduler, 100 * MS, NULL);
	assert_int_equal(tell(rig, enqueue(other, 2, SECOND)), WEIR_OK);
	(void)weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	assert_says(rig_explain(rig), "z: fence: WAIT_EVENT (told 1");
	assert_int_equal(tell(rig, enqueue(stream, 3, 0)), WEIR_OK);
	tell_never(rig);
	(void)weir_scheduler_wait(rig->scheduler, 10 * MS, NULL);
	assert_says(rig_explain(rig), "z: fence: WAIT_EVENT (told 1");
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void c05_c06_an_explanation_is_of_the_fence_that_it_waits_for(void **state)
{
	(void)state;
	rig_in_worlds(20, explain_first);
}

static void refuse_fences(void)
{
	struct rig *rig = rig_of("z:call fence=true"), *other = rig_of("z:call");
	weir_stream *stream;
	weir_fence fence;

	assert_int_equal(tell(rig, (weir_fence){77, 1}), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "before a scheduler is created"));
	rig_make(rig);
	rig_make(other);
	stream = stream_of(rig);
	fence = enqueue(stream, 1, MS);
	assert_int_equal(tell(rig, (weir_fence){77, 1}), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "was never recorded in this graph"));
	assert_int_equal(tell(rig, (weir_fence){fence.stream, fence.value + 1}), WEIR_E_INVALID);
	assert_int_equal(tell(rig, (weir_fence){0, fence.value}), WEIR_E_INVALID);
	assert_int_equal(tell(rig, enqueue(stream_of(other), 1, MS)), WEIR_E_INVALID);
	assert_int_equal(weir_entity_tell_fence(weir_graph_entity(rig->graph, "z"), "other", fence),
			 WEIR_E_INVALID);
	assert_string_equal(weir_last_error(),
			    "z has no condition 'other': add it to \"conditions\" of the entity");
	assert_int_equal(weir_entity_tell_fence(weir_graph_entity(rig->graph, "z"), "fense", fence),
			 WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "z has no condition 'fense' (did you mean 'fence'?)");
	tell_never(rig); /* nothing that was refused is waited for */
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "z"), 0);
	rig_destroy(rig);
	rig_destroy(other);
}

static void c06_a_fence_that_was_not_recorded_in_this_graph_is_refused(void **state)
{
	(void)state;
	rig_everywhere(refuse_fences);
}

/* --- failure --- */

static void fail_device(void)
{
	struct rig *rig = rig_waiting("z:call fence=true", look);
	weir_stream *stream = stream_of(rig);
	weir_fence fence = {0, 0};
	weir_status status;

	rig_start(rig);
	assert_int_equal(weir_stream_launch(stream, &failing, "", 1), WEIR_OK);
	status = weir_stream_record(stream, &fence);
	if (!status)
		assert_int_equal(tell(rig, fence), WEIR_OK);
	else /* the device was faster */
		assert_int_equal(status, WEIR_E_DEVICE);
	assert_int_equal(rig_wait(rig), WEIR_E_DEVICE);
	assert_int_equal(rig_ticks(rig, "z"), 0);
	rig_destroy(rig);
}

static void c06_e02_work_that_fails_never_makes_it_ready(void **state)
{
	(void)state;
	rig_in_worlds(200, fail_device);
	rig_on_host(fail_device);
}

/* --- a condition of the program's own --- */

static _Atomic unsigned wrong_answers;
static weir_fence outside; /* what own_fence waits for */

/* Ready at a fence that it knows by itself. No fence is complete; one without a stream never is. */
static void ask_own(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (!weir_view_fence_complete(view, (weir_fence){0, 0}) ||
	    weir_view_fence_complete(view, (weir_fence){0, 1}))
		wr_fetch_add(&wrong_answers, 1);
	if (weir_view_fence_complete(view, outside)) {
		weir_verdict_ready(verdict);
	} else {
		weir_verdict_wait(verdict, "the work outside is not finished");
		weir_verdict_fence(verdict, outside);
	}
}

static const weir_condition own_kind = {.size = sizeof(weir_condition),
					.name = "own_fence",
					.help = "own_fence",
					.phase = WEIR_PHASE_GATHERING,
					.ask = ask_own};
static const weir_condition *const kinds[] = {&own_kind, NULL};

static weir_status finish_first(struct rig *rig, weir_context *context)
{
	(void)look(rig, context);
	return weir_context_finish(context);
}

static void know_own(void)
{
	struct rig *rig = rig_waiting("z:call condition=own_fence", finish_first);
	weir_entity *z = weir_graph_entity(rig->graph, "z");

	outside = enqueue(stream_of(rig), 3, 20 * MS);
	assert_int_equal(weir_entity_tell_fence(z, "own_fence", outside), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(),
			    "z: condition 'own_fence' takes no fences: add one of type 'fence'");
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(found[0], 3);
	assert_int_equal(wr_load(&wrong_answers), 0);
	rig_destroy(rig);
}

static void c06_a_condition_of_the_programs_own_waits_for_a_fence_that_it_knows(void **state)
{
	(void)state;
	rig_in_worlds(50, know_own);
}

/* weir_graph_entity gives NULL for a name that was mistyped. */
static void c06_an_entity_that_is_not_there_is_refused_by_each_call(void **state)
{
	static const char why[] = "an entity is needed, NULL was given";
	struct rig *rig = rig_of("source ticks=1 -> end");
	weir_entity *none;

	(void)state;
	rig_make(rig);
	none = weir_graph_entity(rig->graph, "ennd");
	assert_null(none);
	assert_int_equal(weir_entity_tell(none, "boolean", WEIR_TOLD_READY), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), why));
	assert_int_equal(weir_entity_tell_fence(none, "fence", (weir_fence){0, 0}), WEIR_E_INVALID);
	assert_int_equal(weir_entity_watch(none, "file_descriptor", 0, WEIR_WATCH_READ), WEIR_E_INVALID);
	assert_int_equal(weir_entity_use_stream(none, NULL), WEIR_E_INVALID);
	assert_int_equal(weir_entity_poke(none), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), why));
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c06_each_told_fence_allows_one_tick_when_it_is_complete),
		cmocka_unit_test(c06_fences_told_ahead_do_not_starve_it_and_the_last_one_counts),
		cmocka_unit_test(c06_a_fence_told_during_a_tick_gets_a_tick_of_its_own),
		cmocka_unit_test(c06_a_fence_may_be_told_before_there_is_a_scheduler),
		cmocka_unit_test(c06_t17_each_of_two_promises_that_were_told_allows_its_own_tick),
		cmocka_unit_test(c06_without_once_the_last_fence_opens_it),
		cmocka_unit_test(c06_s04_before_the_first_fence_it_waits_for_the_program),
		cmocka_unit_test(c06_a_fence_told_between_runs_is_kept_for_one),
		cmocka_unit_test(c06_an_unused_fence_is_forgotten_at_the_end_of_a_run),
		cmocka_unit_test(c05_c06_an_explanation_says_when_the_fence_was_told),
		cmocka_unit_test(c05_c06_an_explanation_is_of_the_fence_that_it_waits_for),
		cmocka_unit_test(c06_a_fence_that_was_not_recorded_in_this_graph_is_refused),
		cmocka_unit_test(c06_an_entity_that_is_not_there_is_refused_by_each_call),
		cmocka_unit_test(c06_e02_work_that_fails_never_makes_it_ready),
		cmocka_unit_test(c06_a_condition_of_the_programs_own_waits_for_a_fence_that_it_knows),
	};

	rig_conditions = kinds;
	return cmocka_run_group_tests_name("scheduler/ask", tests, NULL, NULL);
}

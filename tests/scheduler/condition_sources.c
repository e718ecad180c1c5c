/* A parked entity is woken by every source that the chosen verdict names, and by no other (C2). On `sim`:
 * time is virtual. */
#include "rig_inside.h"
#include "tests/calls.h"

/* --- conditions of the tests, for one test at a time --- */

static weir_graph *graph;
static weir_fence work; /* what the first tick enqueued */
static int64_t due;     /* when the second tick may come, whatever the work does */
static int64_t work_ns, second_at;
static _Atomic unsigned asked;

static bool unfinished(void)
{
	return graph && weir_fence_query(graph, work) == WEIR_E_BUSY;
}

static void ask_either(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	if (!unfinished() || weir_view_now(view) >= due) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "work, or a time");
	weir_verdict_until(verdict, due);
	weir_verdict_fence(verdict, work);
}

static void ask_work(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	wr_fetch_add(&asked, 1);
	if (!unfinished()) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "work");
	weir_verdict_fence(verdict, work);
}

static void ask_door(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	if (graph)
		weir_verdict_wait(verdict, "the door is closed");
	else
		weir_verdict_ready(verdict);
}

static const weir_condition either = {.size = sizeof either, .name = "either", .ask = ask_either};
static const weir_condition working = {.size = sizeof working, .name = "working", .ask = ask_work};
static const weir_condition door = {.size = sizeof door, .name = "door", .ask = ask_door};
static void ask_earlier(const void *state, weir_view *view, weir_verdict *verdict);
static const weir_condition early = {.size = sizeof early, .name = "earlier", .ask = ask_earlier};
static const weir_condition *const conditions[] = {&either, &working, &door, &early, NULL};

static int pause_on_stream(const void *arguments)
{
	weir_sleep(*(const int64_t *)arguments);
	return 0;
}

static const weir_kernel kernel = {sizeof(weir_kernel), "pause", pause_on_stream, NULL};

static weir_status enqueue_then_finish(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);

	if (weir_context_tick(context)) {
		second_at = weir_context_now(context);
		return weir_context_finish(context);
	}
	HOLDS(rig, stream && !weir_stream_launch(stream, &kernel, &work_ns, sizeof work_ns));
	HOLDS(rig, !weir_stream_record(stream, &work));
	graph = weir_context_graph(context);
	return WEIR_OK;
}

static void run_with(const char *text, int64_t of_work, int64_t until)
{
	struct rig *rig;

	graph = NULL;
	work_ns = of_work;
	due = SECOND + until; /* a world begins at 1 s */
	wr_store(&asked, 0);
	second_at = 0;
	rig = rig_of(text);
	rig_on(rig, "c", enqueue_then_finish);
	assert_int_equal(rig_run(rig), WEIR_OK);
	rig_destroy(rig);
}

/* --- a time beside fences --- */

static void a_time_before_fences(void)
{
	run_with("c:call condition=either", 10 * SECOND, 5 * MS);
	assert_in_range(second_at, SECOND + 5 * MS, SECOND + 50 * MS);
}

static void c02_s10_a_time_beside_fences_wakes(void **state)
{
	(void)state;
	rig_in_worlds(20, a_time_before_fences);
}

static void fences_before_a_time(void)
{
	run_with("c:call condition=either", 5 * MS, 10 * SECOND);
	assert_in_range(second_at, SECOND + 5 * MS, 2 * SECOND);
}

static void c02_g03_fences_beside_a_time_wake(void **state)
{
	(void)state;
	rig_in_worlds(20, fences_before_a_time);
}

/* --- sources that were not chosen --- */

/*
 * Asked before the first tick, after it, and once more by the end of the run, each time up to the first
 * condition that does not hold. The complete work wakes no entity, as the door is still closed.
 */
static void work_before_a_door(void)
{
	run_with("c:call condition=working condition=door", 5 * MS, 0);
	assert_int_equal(wr_load(&asked), 3);
}

static void work_behind_a_door(void)
{
	run_with("c:call condition=door condition=working", 5 * MS, 0);
	assert_int_equal(wr_load(&asked), 2);
}

static void c02_fences_of_a_condition_that_is_not_chosen_arm_nothing(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		rig_in_world(seed, work_before_a_door);
		rig_in_world(seed, work_behind_a_door);
	}
}

/* --- two waits for one stream --- */

static weir_fence earlier;

static void ask_earlier(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	if (!graph || weir_fence_query(graph, earlier) != WEIR_E_BUSY) {
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "earlier work");
	weir_verdict_fence(verdict, earlier);
}

static weir_status enqueue_twice(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);

	if (weir_context_tick(context))
		return weir_context_finish(context);
	HOLDS(rig, stream && !weir_stream_launch(stream, &kernel, &work_ns, sizeof work_ns));
	HOLDS(rig, !weir_stream_record(stream, &earlier));
	return enqueue_then_finish(rig, context);
}

static void wait_for_two_points(void)
{
	struct rig *rig = rig_of("c:call condition=working condition=earlier");

	graph = NULL;
	work_ns = 5 * MS;
	rig_on(rig, "c", enqueue_twice);
	rig_start(rig);
	weir_sleep(2 * MS); /* it has ticked and waits */
	assert_int_equal(rig_waits_for(rig, "c"), 1);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "c"), 2);
	rig_destroy(rig);
}

static void c02_two_waits_for_one_stream_are_one_for_the_later_point(void **state)
{
	(void)state;
	rig_in_worlds(20, wait_for_two_points);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c02_s10_a_time_beside_fences_wakes),
		cmocka_unit_test(c02_g03_fences_beside_a_time_wake),
		cmocka_unit_test(c02_fences_of_a_condition_that_is_not_chosen_arm_nothing),
		cmocka_unit_test(c02_two_waits_for_one_stream_are_one_for_the_later_point),
	};

	rig_conditions = conditions;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

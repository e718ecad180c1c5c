/* Fences wake an entity, by every signal: those of its messages and those that its conditions name. */
#include <stdio.h>
#include <string.h>

#include "rig_inside.h"
#include "tests/calls.h"

static const char *const signals[] = {"callback", "callback_inline", "flag"};
enum { SIGNALS = 3 };

/* --- the conditions of the current test --- */

/* The last fence of `a`, and the fence for which `z`, or `a`
 * itself, was READY. One stream: only the point changes. */
static _Atomic uint64_t own_stream, own_point;
static weir_fence passed;

static void ask_own(const void *state, weir_view *view, weir_verdict *verdict)
{
	weir_fence own = {wr_load(&own_stream), wr_load(&own_point)};

	(void)state;
	if (!own.value || weir_fence_query(rig_view_graph(view), own) != WEIR_E_BUSY) {
		passed = own;
		weir_verdict_ready(verdict);
		return;
	}
	weir_verdict_wait(verdict, "work that no message carries is not finished");
	weir_verdict_fence(verdict, own);
}

static bool holds(weir_context *context)
{
	return passed.value && weir_fence_query(weir_context_graph(context), passed) == WEIR_OK;
}

static void ask_unknown(const void *state, weir_view *view, weir_verdict *verdict)
{
	(void)state;
	(void)view;
	weir_verdict_wait(verdict, "waits for what was never recorded");
	weir_verdict_fence(verdict, (weir_fence){UINT64_C(77) << 48 | 1 << 16, 5});
}

#define KIND(named, in_phase, asks)                                                                          \
	{                                                                                                    \
		.size = sizeof(weir_condition), .name = #named, .help = #named, .phase = in_phase,           \
		.ask = asks                                                                                  \
	}
static const weir_condition gathering = KIND(own_work, WEIR_PHASE_GATHERING, ask_own),
			    content = KIND(side_work, WEIR_PHASE_CONTENT, ask_own),
			    unknown = KIND(unknown, WEIR_PHASE_GATHERING, ask_unknown),
			    unknown_content = KIND(unknown_content, WEIR_PHASE_CONTENT, ask_unknown);
static const weir_condition *const kinds[] = {&gathering, &content, &unknown, &unknown_content, NULL};

/* --- one output, receivers with different signals --- */

static void wake_each(const char *first, const char *second)
{
	char text[200];
	struct rig *rig;

	snprintf(text, sizeof text, "a:source ticks=20 work=30us -> x:end gate=in,%s; a -> y:end gate=in,%s",
		 first, second);
	rig = rig_of(text);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_ticks(rig, "x"), 20);
	assert_int_equal(rig_ticks(rig, "y"), 20);
	assert_null(strchr(rig_text(rig, "x"), '?'));
	assert_null(strchr(rig_text(rig, "y"), '?'));
	rig_destroy(rig);
}

static void wake_all_pairs(void)
{
	for (int i = 0; i < SIGNALS * SIGNALS; i++)
		wake_each(signals[i / SIGNALS], signals[i % SIGNALS]);
}

static void xa01_receivers_of_one_output_are_each_woken_by_their_signal(void **state)
{
	(void)state;
	rig_everywhere(wake_all_pairs);
}

/* --- fences that no message carries --- */

static int nap(const void *arguments)
{
	(void)arguments;
	weir_sleep(50 * US);
	return 0;
}

static const weir_kernel napping = {sizeof(weir_kernel), "nap", nap, NULL};

static weir_status work_on(weir_context *context, weir_stream *stream)
{
	weir_status status = stream ? weir_stream_launch(stream, &napping, "", 1) : WEIR_E_DEVICE;
	weir_fence fence = {0, 0};

	if (!status)
		status = weir_stream_record(stream, &fence);
	wr_store(&own_stream, fence.stream);
	wr_store(&own_point, fence.value);
	return status ? status : weir_context_emit(context, 0, rig_number(context, 1));
}

static weir_status work_inside(struct rig *rig, weir_context *context)
{
	HOLDS(rig, !weir_context_tick(context) || holds(context));
	return work_on(context, current_stream(context));
}

static weir_status work_aside(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;
	weir_status status = weir_context_allocate_stream(context, "side", &stream);

	(void)rig;
	return status ? status : work_on(context, stream);
}

static weir_status look_finished(struct rig *rig, weir_context *context)
{
	HOLDS(rig, holds(context));
	return WEIR_OK;
}

static void wait_for_own_work(const char *text, const char *worker, rig_fn *works)
{
	for (int i = 0; i < SIGNALS; i++) {
		struct rig *rig = rig_of(text);

		wr_store(&own_point, 0);
		rig->options.signal = signals[i];
		rig_on(rig, "z", look_finished);
		rig_on(rig, worker, works);
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig_ticks(rig, "z"), 10);
		rig_destroy(rig);
	}
}

static void wait_for_own(void)
{
	wait_for_own_work("z:call count=10 condition=own_work -> end", "z", work_inside);
}

static void wait_for_another(void)
{
	wait_for_own_work("a:call count=10 -> z:call condition=own_work", "a", work_aside);
}

static void wait_for_both(void)
{
	wait_for_own_work("a:call count=10 -> z:call condition=side_work gate=in", "a", work_aside);
}

static void xa02_a_fence_that_a_gathering_condition_names_wakes_its_entity(void **state)
{
	(void)state;
	rig_everywhere(wait_for_own);
	rig_everywhere(wait_for_another);
}

static void xa02_a_fence_that_no_message_carries_wakes_beside_those_that_they_carry(void **state)
{
	(void)state;
	rig_everywhere(wait_for_both);
}

/* --- fences that were never recorded --- */

static void refuse(const char *text, const char *condition)
{
	for (int i = 0; i < SIGNALS; i++) {
		struct rig *rig = rig_of(text);
		char line[200];

		rig->options.signal = signals[i];
		snprintf(line, sizeof line,
			 "condition '%s' waits for a fence that was never recorded in this graph: ",
			 condition);
		assert_int_equal(rig_run(rig), WEIR_E_INVALID);
		assert_string_equal(rig->outcome.entity, "z");
		assert_memory_equal(rig->outcome.text, line, strlen(line));
		rig_destroy(rig);
	}
}

static void refuse_both(void)
{
	refuse("source ticks=3 -> z:end condition=unknown", "unknown");
	refuse("source ticks=3 work=10us -> z:end gate=in condition=unknown_content", "unknown_content");
}

static void xb28_a_fence_that_was_never_recorded_fails_the_run_by_name(void **state)
{
	(void)state;
	rig_everywhere(refuse_both);
}

/* --- on which stream the callback is enqueued --- */

/* After 5 ms of a run; the sources' work takes 10 ms. */
static struct rig_armed find(struct rig *rig)
{
	struct rig_armed found;

	rig->options.signal = "callback_inline";
	rig_start(rig);
	weir_scheduler_wait(rig->scheduler, 5 * MS, NULL);
	found = rig_armed(rig);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
	return found;
}

static void g02_an_inline_callback_lies_on_the_stream_itself(void **state)
{
	struct rig_armed found =
		find(rig_of("a:source ticks=1 work=10ms -> x:end gate=in; a -> y:end gate=in"));

	(void)state;
	assert_int_equal(found.armed, 2);
	assert_int_equal(found.inlined, 2);
}

static weir_status emit_on_a_view(struct rig *rig, weir_context *context)
{
	weir_stream *stream = NULL;
	weir_status status =
		weir_context_receive_streams(context, 0, 0, 1, &stream) == 1 ? WEIR_OK : WEIR_E_FAILED;

	HOLDS(rig, !status);
	if (!status)
		status = weir_stream_launch(stream, &napping, "", 1);
	if (!status)
		status = weir_context_set_stream(context, 0, stream);
	return status ? status : weir_context_emit(context, 0, rig_number(context, 1));
}

static void g02_identities_of_one_queue_are_one_stream(void **state)
{
	struct rig *rig =
		rig_of("a:source ticks=1 work=10ms -> x:end gate=in capacity=2 take=2; a -> v:call -> x");
	struct rig_armed found;

	(void)state;
	rig_on(rig, "v", emit_on_a_view);
	found = find(rig);
	assert_int_equal(found.armed, 1);
	assert_int_equal(found.inlined, 1);
}

static void g02_of_two_streams_none_carries_the_callback(void **state)
{
	struct rig_armed found = find(rig_of("a:source ticks=1 work=10ms -> x:end gate=in capacity=2 take=2; "
					     "b:source ticks=1 work=10ms -> x"));

	(void)state;
	assert_int_equal(found.armed, 1);
	assert_int_equal(found.inlined, 0);
}

static weir_status give_the_handle_away(struct rig *rig, weir_context *context)
{
	weir_stream *stream = current_stream(context);

	HOLDS(rig, stream);
	rig_give_native(stream);
	for (int i = 0; i < 200; i++)
		HOLDS(rig, !weir_stream_launch(stream, &napping, "", 1));
	return weir_context_emit(context, 0, rig_number(context, 1));
}

static void g02_a_stream_whose_handle_was_given_out_carries_none(void **state)
{
	struct rig *rig = rig_of("a:call count=1 -> x:end gate=in");
	struct rig_armed found;

	(void)state;
	rig_on(rig, "a", give_the_handle_away);
	found = find(rig);
	assert_int_equal(found.armed, 1);
	assert_int_equal(found.inlined, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xa01_receivers_of_one_output_are_each_woken_by_their_signal),
		cmocka_unit_test(xa02_a_fence_that_a_gathering_condition_names_wakes_its_entity),
		cmocka_unit_test(xa02_a_fence_that_no_message_carries_wakes_beside_those_that_they_carry),
		cmocka_unit_test(xb28_a_fence_that_was_never_recorded_fails_the_run_by_name),
		cmocka_unit_test(g02_an_inline_callback_lies_on_the_stream_itself),
		cmocka_unit_test(g02_identities_of_one_queue_are_one_stream),
		cmocka_unit_test(g02_of_two_streams_none_carries_the_callback),
		cmocka_unit_test(g02_a_stream_whose_handle_was_given_out_carries_none),
	};

	rig_conditions = kinds;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

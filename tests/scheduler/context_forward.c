/* What a tick forwards (T4): it goes on with the reference that the tick has, once, whatever becomes of the
 * tick. */
#include <string.h>

#include "rig.h"
#include "rig_inside.h"
#include "rig_streams.h"
#include "tests/calls.h"

#define TEST(name) static void name(void **state_)

static _Atomic unsigned made, freed;

static void note_freed(void *pointer)
{
	(void)pointer;
	wr_fetch_add(&freed, 1);
}

/* Four of them, whose ends are counted. */
static weir_status make_four(struct rig *rig, weir_context *context)
{
	for (int i = 0; i < 4; i++) {
		weir_message *message = NULL;
		HOLDS(rig, !weir_message_wrap_user(weir_context_graph(context), &made, note_freed, &message));
		wr_fetch_add(&made, 1);
		HOLDS(rig, !weir_context_emit(context, 0, message));
	}
	return WEIR_OK;
}

static struct rig *rig_of_four(const char *text, rig_fn *forward)
{
	struct rig *rig = rig_of(text);

	wr_store(&made, 0);
	wr_store(&freed, 0);
	rig_on(rig, "a", make_four);
	rig_on(rig, "p", forward);
	return rig;
}

/* The run's end has dropped all that was queued only when the graph goes. */
static void assert_each_freed_once(struct rig *rig, unsigned emitted)
{
	rig_destroy(rig);
	assert_int_equal(wr_load(&made), emitted);
	assert_int_equal(wr_load(&freed), emitted);
}

static weir_status look(struct rig *rig, weir_context *context)
{
	for (size_t i = 0; i < weir_context_count(context, 0); i++)
		rig_note(rig, context,
			 weir_message_unique(weir_context_message(context, 0, i)) ? "sole" : "held");
	return WEIR_OK;
}

#define FOUR                                                                                                 \
	"a:call count=3 max_emits=4 -> p:call capacity=4 take=4 max_emits=4 -> x:call capacity=12 min=12 "   \
	"take=12"

static weir_status forward_all(struct rig *rig, weir_context *context)
{
	for (size_t i = 0; i < weir_context_count(context, 0); i++) {
		const weir_message *message = weir_context_message(context, 0, i);
		HOLDS(rig, !weir_context_forward(context, 0, i, 0));
		HOLDS(rig, weir_context_message(context, 0, i) == message);
		HOLDS(rig, rig_references(message) == 1);
	}
	HOLDS(rig, weir_context_count(context, 0) == 4);
	return WEIR_OK;
}

static void forward_four(void)
{
	struct rig *rig = rig_of_four(FOUR, forward_all);

	rig_on(rig, "x", look);
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "p").emitted, 12);
	assert_int_equal(rig_counts(rig, "x").received, 12);
	assert_null(strstr(rig_text(rig, "x"), "held"));
	assert_each_freed_once(rig, 12);
}

TEST(t04_what_is_forwarded_goes_on_with_the_reference_of_the_tick)
{
	(void)state_;
	rig_everywhere(forward_four);
}

static weir_status forward_the_third(struct rig *rig, weir_context *context)
{
	HOLDS(rig, !weir_context_forward(context, 0, 2, 0));
	return WEIR_OK;
}

static void forward_one_of_four(void)
{
	struct rig *rig = rig_of_four("a:call count=3 max_emits=4 -> p:call capacity=4 take=4 -> end",
				      forward_the_third);

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "end").received, 3);
	assert_each_freed_once(rig, 12);
}

TEST(t04_what_is_not_forwarded_is_dropped_at_the_end_of_the_tick)
{
	(void)state_;
	rig_everywhere(forward_one_of_four);
}

/* References of the operator are told from the one that has gone on. */
static weir_status forward_and_emit(struct rig *rig, weir_context *context)
{
	weir_message *first = weir_context_message(context, 0, 0),
		     *second = weir_context_message(context, 0, 1);

	HOLDS(rig, !weir_context_forward(context, 0, 0, 0));
	HOLDS(rig, weir_context_emit(context, 1, first) == WEIR_E_INVALID);
	HOLDS(rig, !weir_context_emit(context, 1, weir_message_ref(first)));
	HOLDS(rig, !weir_context_emit(context, 0, weir_message_ref(second)));
	HOLDS(rig, !weir_context_forward(context, 0, 1, 0));
	return WEIR_OK;
}

static void forward_beside_emits(void)
{
	struct rig *rig = rig_of_four(
		"a:call count=3 max_emits=4 -> p:call capacity=4 take=4 max_emits=3 -> end capacity=3; "
		"p.out2 -> other:end capacity=2",
		forward_and_emit);

	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "end").received, 9);
	assert_int_equal(rig_counts(rig, "other").received, 3);
	assert_each_freed_once(rig, 12);
}

TEST(t04_further_outputs_get_references_of_their_own)
{
	(void)state_;
	rig_everywhere(forward_beside_emits);
}

static void refused(struct rig *rig, weir_status status, const char *text)
{
	HOLDS(rig, status == WEIR_E_INVALID);
	HOLDS(rig, strstr(weir_last_error(), text));
}

static weir_status misuse(struct rig *rig, weir_context *context)
{
	refused(rig, weir_context_forward(context, 0, 4, 0),
		"p: forward: the tick has received no message 4 on input 0");
	refused(rig, weir_context_forward(context, 7, 0, 0), "no message 0 on input 7");
	refused(rig, weir_context_forward(context, 0, 0, 9), "p: emitted on output 9 of");
	HOLDS(rig, !weir_context_forward(context, 0, 1, 0));
	refused(rig, weir_context_forward(context, 0, 1, 0), "p.out: forwarded a message that this tick has");
	HOLDS(rig, !weir_context_forward(context, 0, 3, 0));
	refused(rig, weir_context_forward(context, 0, 2, 0), "p.out: more than max_emits (2)");
	return WEIR_OK;
}

static weir_status forward_early(struct rig *rig, weir_context *context)
{
	refused(rig, weir_context_forward(context, 0, 0, 0), "p: emit is for compute only");
	return WEIR_OK;
}

static void forward_late(struct rig *rig, weir_context *context)
{
	(void)forward_early(rig, context);
}

static void misuse_forward(void)
{
	struct rig *rig = rig_of_four(
		"a:call count=3 max_emits=4 -> p:call capacity=4 take=4 max_emits=2 -> end capacity=2",
		misuse);

	rig_entity(rig, "p")->start = forward_early;
	rig_entity(rig, "p")->stop = forward_late;
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "end").received, 6);
	assert_each_freed_once(rig, 12);
}

TEST(t04_a_forward_that_is_refused_changes_nothing)
{
	(void)state_;
	rig_everywhere(misuse_forward);
}

static weir_status forward_and_fail(struct rig *rig, weir_context *context)
{
	HOLDS(rig, !weir_context_forward(context, 0, 0, 0));
	HOLDS(rig, !weir_context_forward(context, 0, 2, 0));
	return weir_context_fail(context, "broken");
}

static void fail_after_forward(void)
{
	struct rig *rig = rig_of_four(FOUR, forward_and_fail);

	rig_on(rig, "x", look);
	assert_int_equal(rig_run(rig), WEIR_E_FAILED);
	assert_int_equal(rig_counts(rig, "x").received, 0);
	rig_on(rig, "p", forward_all); /* the graph runs again: nothing counts as forwarded */
	assert_int_equal(rig_run(rig), WEIR_OK);
	assert_int_equal(rig_counts(rig, "x").received, 12);
	assert_each_freed_once(rig, wr_load(&made));
}

TEST(t04_e01_a_tick_that_fails_drops_what_it_forwarded_once)
{
	(void)state_;
	rig_everywhere(fail_after_forward);
}

static weir_status forward_and_stop(struct rig *rig, weir_context *context)
{
	HOLDS(rig, !weir_context_forward(context, 0, 1, 0));
	weir_scheduler_stop(rig->scheduler, 0);
	return WEIR_OK;
}

static void stop_after_forward(void)
{
	struct rig *rig = rig_of_four(FOUR, forward_and_stop);

	(void)rig_run(rig);
	assert_each_freed_once(rig, wr_load(&made));
}

TEST(t04_s07_a_run_that_is_stopped_drops_what_was_forwarded_once)
{
	(void)state_;
	rig_everywhere(stop_after_forward);
}

/* --- what its work is to what it forwards (T7) --- */

static int do_nothing(const void *arguments)
{
	(void)arguments;
	return 0;
}

static const weir_kernel nothing = {sizeof(weir_kernel), "nothing", do_nothing, NULL};

static weir_status write_some(struct rig *rig, weir_context *context)
{
	for (uintptr_t i = 0; i < (uintptr_t)rig->own; i++)
		HOLDS(rig, !rig_emit_sum(context, 0, current_stream(context), (int64_t)i, MS));
	return WEIR_OK;
}

static weir_status work_and_forward(struct rig *rig, weir_context *context)
{
	HOLDS(rig, !weir_stream_launch(current_stream(context), &nothing, NULL, 0));
	for (size_t i = 0; i < weir_context_count(context, 0); i++)
		HOLDS(rig, !weir_context_forward(context, 0, i, 0));
	return WEIR_OK;
}

/* "1": the fence of a alone; "2": that of p, too. Both use the payload. */
static weir_status note_fences(struct rig *rig, weir_context *context)
{
	for (size_t i = 0; i < weir_context_count(context, 0); i++) {
		const weir_message *message = weir_context_message(context, 0, i);
		HOLDS(rig, rig_uses(message) == 2);
		rig_note(rig, context, weir_message_fences(message, 0, NULL) == 1 ? "1" : "2");
	}
	return WEIR_OK;
}

/* held: an outlet holds the messages meanwhile. Of more than a few the end of a tick sorts what it has. */
static void forward_with_work(uintptr_t count, bool held)
{
	struct rig *rig = rig_of("a:call count=1 max_emits=20 -> p:call capacity=20 take=all max_emits=20 -> "
				 "x:call capacity=20 take=all");
	weir_outlet *outlet = held ? rig_outlet(rig, "a.out", 20, WEIR_OUTLET_EARLY) : NULL;
	weir_message *message = NULL;

	rig->own = (void *)count;
	rig_on(rig, "a", write_some);
	rig_on(rig, "p", work_and_forward);
	rig_on(rig, "x", note_fences);
	rig_start(rig);
	(void)weir_scheduler_wait(rig->scheduler, SECOND, NULL);
	assert_int_equal(rig_counts(rig, "x").received, count);
	assert_null(strchr(rig_text(rig, "x"), held ? '2' : '1'));
	while (held && !weir_outlet_take(outlet, 0, &message))
		weir_message_unref(message);
	assert_int_equal(rig_wait(rig), WEIR_OK);
	rig_destroy(rig);
}

static void forward_with_all_work(void)
{
	forward_with_work(1, false);
	forward_with_work(1, true);
	forward_with_work(20, false);
	forward_with_work(20, true);
}

TEST(t07_what_others_hold_is_forwarded_with_what_it_carried)
{
	(void)state_;
	rig_in_worlds(20, forward_with_all_work);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t04_what_is_forwarded_goes_on_with_the_reference_of_the_tick),
		cmocka_unit_test(t04_what_is_not_forwarded_is_dropped_at_the_end_of_the_tick),
		cmocka_unit_test(t04_further_outputs_get_references_of_their_own),
		cmocka_unit_test(t04_a_forward_that_is_refused_changes_nothing),
		cmocka_unit_test(t04_e01_a_tick_that_fails_drops_what_it_forwarded_once),
		cmocka_unit_test(t04_s07_a_run_that_is_stopped_drops_what_was_forwarded_once),
		cmocka_unit_test(t07_what_others_hold_is_forwarded_with_what_it_carried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

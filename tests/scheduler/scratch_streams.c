/*
 * T11: scratch memory of several streams. Built a second time with the seeded bugs, which these tests must
 * find.
 */
#include <stdlib.h>

#include "rig_inside.h"
#include "rig_scratch.h"
#include "tests/calls.h"

#ifdef WR_SEAM
#include "tests/bugs/bug.h"
#endif

#define TEST(name) static void name(void **state_)

/* --- streams --- */

/* Before the current stream is asked for, after that, or without it, in turn. */
static weir_status before_after_and_without(struct rig *rig, weir_context *context)
{
	void *memory = NULL;
	weir_stream *stream = rig_tick(context) % 3 == 1 ? current_stream(context) : NULL;
	weir_status status = rig_use(context, stream, 100, 30 * US, &memory);

	if (!status && rig_tick(context) % 3 == 2)
		status = rig_emit_on_current(rig, context);
	return status;
}

TEST(t11_before_after_and_without_the_current_stream)
{
	(void)state_;
	rig_scratch_everywhere("a:call count=30 pool=p -> end gated=false", 30, before_after_and_without);
}

TEST(t11_on_the_default_stream)
{
	(void)state_;
	rig_scratch_everywhere("a:call count=30 pool=none -> end gated=false", 30, before_after_and_without);
}

/* Two named streams and the current one work at once, in turn as the first, and longer than a tick. */
static weir_status on_three_streams(struct rig *rig, weir_context *context)
{
	weir_stream *streams[3] = {NULL};
	void *memory;
	weir_status status = weir_context_allocate_stream(context, "one", &streams[0]);

	if (!status)
		status = weir_context_allocate_stream(context, "two", &streams[1]);
	for (int64_t i = rig_tick(context); !status && i < rig_tick(context) + 4; i++)
		status = rig_use(context, streams[i % 3], 50, 90 * US, &memory);
	(void)rig;
	return status;
}

TEST(t11_each_stream_has_a_stack_of_its_own)
{
	(void)state_;
	rig_scratch_everywhere("a:call count=40 pool=p in_flight=8", 40, on_three_streams);
}

/* Without a pool the current stream is one that a message carries: another in every tick. */
static weir_status on_what_came(struct rig *rig, weir_context *context)
{
	weir_stream *carried = rig_carried(context, 0, 0);
	void *memory;
	weir_status status = rig_use(context, NULL, 100, 60 * US, &memory);

	if (!status && carried)
		HOLDS(rig, weir_stream_same(carried, current_stream(context)));
	if (!status && carried)
		status = rig_use(context, carried, 10, US, &memory); /* the same stack */
	return status;
}

static void run_carried(void)
{
	struct rig *rig = rig_of_scratch(
		"b:call count=40 pool=p -> a:call pool=none capacity=4; a in_flight=16", on_what_came);

	rig_on(rig, "b", rig_emit_on_one_of_four);
	for (int run = 0; run < 2; run++) {
		assert_int_equal(rig_run(rig), WEIR_OK);
		assert_int_equal(rig_ticks(rig, "a"), 40);
		assert_int_equal(wr_load(&rig_overwritten), 0);
	}
	rig_destroy(rig);
}

TEST(t11_t06_a_stack_belongs_to_the_stream_that_came_not_to_the_tick)
{
	(void)state_;
	rig_everywhere(run_carried);
}

/* --- orders in which an arena hands memory out too early: a and b are streams, the first use is slow --- */

static weir_status two_streams(weir_context *context, weir_stream **a, weir_stream **b)
{
	weir_status status = weir_context_allocate_stream(context, "a", a);

	return status ? status : weir_context_allocate_stream(context, "b", b);
}

/* a uses its memory; in the next tick b uses its own. */
static weir_status use_a_then_b(struct rig *rig, weir_context *context)
{
	weir_stream *a, *b;
	void *memory;
	weir_status status = two_streams(context, &a, &b);
	bool even = rig_tick(context) % 2 == 0;

	(void)rig;
	return status ? status : rig_use(context, even ? a : b, 100, even ? 300 * US : US, &memory);
}

TEST(t11_what_one_stream_still_uses_is_not_given_to_another)
{
	(void)state_;
	rig_scratch_everywhere("a:call count=20 pool=p", 20, use_a_then_b);
}

/* b waits for a fence of a that was recorded before the use. */
static weir_status use_a_after_its_fence(struct rig *rig, weir_context *context)
{
	weir_stream *a, *b;
	weir_fence fence;
	void *memory;
	weir_status status = two_streams(context, &a, &b);

	(void)rig;
	if (!status && rig_tick(context) % 2)
		return rig_use(context, b, 100, US, &memory);
	if (!status)
		status = weir_stream_record(a, &fence);
	if (!status)
		status = rig_use(context, a, 100, 300 * US, &memory);
	return status ? status : weir_stream_wait(b, fence);
}

TEST(t11_a_fence_from_before_the_use_changes_nothing)
{
	(void)state_;
	rig_scratch_everywhere("a:call count=20 pool=p", 20, use_a_after_its_fence);
}

/* a writes its memory, b waits for that and goes on with it, slowly; in the next tick a writes again. */
static weir_status use_on_b_what_a_wrote(struct rig *rig, weir_context *context)
{
	struct rig_pattern pattern = {.words = 100, .value = rig_next_value(), .ns = US};
	weir_stream *a, *b;
	weir_fence fence;
	void *memory;
	weir_status status = two_streams(context, &a, &b);

	(void)rig;
	if (!status)
		status = weir_context_scratch(context, a, 800, &memory);
	if (status)
		return status;
	pattern.memory = memory;
	status = weir_stream_launch(a, &rig_keeping, &pattern, sizeof pattern);
	if (!status && rig_tick(context) % 3 == 0)
		status = weir_context_synchronize_streams(context, &a, 1, b);
	else if (!status)
		status = weir_stream_record(a, &fence);
	if (!status && rig_tick(context) % 3)
		status = weir_stream_wait(b, fence);
	pattern.written = true;
	pattern.ns = 300 * US;
	return status ? status : weir_stream_launch(b, &rig_keeping, &pattern, sizeof pattern);
}

TEST(t11_what_another_stream_goes_on_with_is_not_written_again)
{
	(void)state_;
	rig_scratch_everywhere("a:call count=20 pool=p", 20, use_on_b_what_a_wrote);
}

/* The stack of b gets the height that the one of a has outgrown in this tick, while a still works. */
static weir_status request_what_was_outgrown(struct rig *rig, weir_context *context)
{
	size_t words = (size_t)2048 << rig_tick(context);
	weir_stream *a = NULL, *b = NULL;
	void *memory;
	weir_status status = weir_context_allocate_stream(context, "a", &a);

	(void)rig;
	if (!status)
		status = weir_context_allocate_stream(context, "b", &b);
	if (!status)
		status = rig_use(context, a, words, 500 * US, &memory);
	return status || rig_tick(context) == 0 ? status : rig_use(context, b, words / 2, US, &memory);
}

TEST(t11_what_was_outgrown_is_freed_when_the_ticks_before_are_complete)
{
	(void)state_;
	rig_scratch_everywhere("a:call count=7 pool=p in_flight=64", 7, request_what_was_outgrown);
}

/* --- the seeded bugs --- */

#ifdef WR_SEAM
static bool bug_is_found(enum wr_bug bug, const char *text, rig_fn *fn)
{
	struct rig *rig;
	bool found = false;

	wr_bug_active = bug;
	rig_backend = "host";
	for (int i = 0; i < 20 && !found; i++) {
		rig = rig_run_scratch(text, fn);
		found = wr_load(&rig_overwritten) > 0;
		rig_destroy(rig);
	}
	wr_bug_active = WR_BUG_NONE;
	return found;
}

TEST(t11_the_seeded_bugs_are_found)
{
	(void)state_;
	assert_true(bug_is_found(WR_BUG_ONE_SCRATCH, "a:call count=40 pool=p in_flight=8", on_three_streams));
	assert_true(bug_is_found(WR_BUG_ONE_SCRATCH, "a:call count=20 pool=p", use_a_then_b));
	assert_true(bug_is_found(WR_BUG_ONE_SCRATCH, "a:call count=20 pool=p", use_a_after_its_fence));
	assert_true(bug_is_found(WR_BUG_SCRATCH_LENT, "a:call count=20 pool=p", use_on_b_what_a_wrote));
	assert_true(bug_is_found(WR_BUG_OUTGROWN_EARLY, "a:call count=7 pool=p in_flight=64",
				 request_what_was_outgrown));
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t11_what_was_outgrown_is_freed_when_the_ticks_before_are_complete),
		cmocka_unit_test(t11_before_after_and_without_the_current_stream),
		cmocka_unit_test(t11_on_the_default_stream),
		cmocka_unit_test(t11_each_stream_has_a_stack_of_its_own),
		cmocka_unit_test(t11_t06_a_stack_belongs_to_the_stream_that_came_not_to_the_tick),
		cmocka_unit_test(t11_what_one_stream_still_uses_is_not_given_to_another),
		cmocka_unit_test(t11_a_fence_from_before_the_use_changes_nothing),
		cmocka_unit_test(t11_what_another_stream_goes_on_with_is_not_written_again),
#ifdef WR_SEAM
		cmocka_unit_test(t11_the_seeded_bugs_are_found),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

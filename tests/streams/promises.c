/* Fences that the program completes (T17), call by call: what is none, what failed long ago, without memory.
 */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "rig.h"
#include "test.h"

static weir_fence created(struct rig *rig)
{
	weir_fence fence;

	assert_int_equal(wr_promise_create(rig->system, &fence), WEIR_OK);
	return fence;
}

static void assert_refused(struct rig *rig, weir_fence fence, const char *why)
{
	bool named = true;
	wr_token token;

	assert_int_equal(wr_promise_query(rig->system, fence), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), why));
	assert_int_equal(wr_promise_check(rig->system, fence), WEIR_E_INVALID);
	assert_int_equal(wr_promise_name(rig->system, fence, &named), WEIR_E_INVALID);
	assert_false(named);
	assert_int_equal(wr_promise_carry(rig->system, fence, 1, "a", true), WEIR_E_INVALID);
	assert_int_equal(wr_promise_arm(rig->system, 1, &fence, 1, &token), WEIR_E_INVALID);
	assert_int_equal(wr_promise_complete(rig->system, fence, WEIR_OK, NULL), WEIR_E_INVALID);
	assert_true(wr_promise_over(rig->system, fence));
	assert_false(wr_promise_kick_at(rig->system, fence));
	wr_promise_unname(rig->system, fence);
}

RIG_BODY(t17_a_fence_that_was_never_created_is_refused_by_each_call)
{
	weir_fence fence = created(rig);
	const weir_fence none[] = {
		{fence.stream ^ UINT64_C(1) << 48, fence.value}, /* of another system */
		{fence.stream + WR_PROMISES_PAGE, fence.value},
		{fence.stream, fence.value + 1},
		{fence.stream, 0},
	};

	for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
		assert_refused(rig, none[i], "was never created in this graph");
		assert_string_equal(wr_promise_owner(rig->system, none[i], NULL), "?");
	}
	assert_int_equal(wr_promise_query(rig->system, rig_record(rig->a)), WEIR_E_INVALID);
	assert_int_equal(wr_promise_query(rig->system, fence), WEIR_E_BUSY);
	assert_int_equal(wr_promise_complete(rig->system, fence, WEIR_OK, NULL), WEIR_OK);
}

/* Fails, named by a message that is freed afterwards. */
static weir_fence failed(struct rig *rig, const char *text)
{
	weir_fence fence = created(rig);
	bool named;

	assert_int_equal(wr_promise_name(rig->system, fence, &named), WEIR_OK);
	assert_true(named);
	assert_int_equal(wr_promise_complete(rig->system, fence, WEIR_E_IO, text), WEIR_OK);
	assert_int_equal(wr_promise_query(rig->system, fence), WEIR_E_FAILED);
	wr_promise_unname(rig->system, fence);
	return fence;
}

/* One that a message names again is not among the oldest that are forgotten. */
RIG_BODY(t17_of_failed_fences_the_oldest_are_forgotten_unless_they_are_named)
{
	weir_fence first = failed(rig, NULL), second = failed(rig, "the end"), last = second;
	bool named;

	assert_int_equal(wr_promise_name(rig->system, first, &named), WEIR_OK);
	for (int i = 0; i < WR_PROMISES_KEPT + 1; i++)
		last = failed(rig, i % 2 ? "gone" : "");
	assert_int_equal(wr_promise_query(rig->system, first), WEIR_E_FAILED);
	assert_int_equal(wr_promise_query(rig->system, last), WEIR_E_FAILED);
	assert_refused(rig, second, "is stale");
	assert_false(wr_promise_kick_at(rig->system, first));
	wr_promise_unname(rig->system, first);
}

RIG_BODY(t17_a_fence_that_fails_is_kept_as_long_as_one_of_its_messages)
{
	weir_fence fence = created(rig);
	bool named;

	for (int i = 0; i < 2; i++)
		assert_int_equal(wr_promise_name(rig->system, fence, &named), WEIR_OK);
	assert_int_equal(wr_promise_complete(rig->system, fence, WEIR_E_IO, "gone"), WEIR_OK);
	wr_promise_unname(rig->system, fence);
	for (int i = 0; i < WR_PROMISES_KEPT + 1; i++)
		failed(rig, "later");
	assert_int_equal(wr_promise_query(rig->system, fence), WEIR_E_FAILED);
	wr_promise_unname(rig->system, fence);
	for (int i = 0; i < WR_PROMISES_KEPT + 1; i++)
		failed(rig, "later");
	assert_int_equal(wr_promise_query(rig->system, fence), WEIR_E_INVALID);
}

/* More waits than are swept at once: none that is pending is lost. */
RIG_BODY(t17_each_entity_that_waits_for_a_fence_is_poked)
{
	weir_fence fence = created(rig);
	wr_token token;

	for (uint32_t entity = 0; entity < 100; entity++)
		assert_int_equal(wr_promise_arm(rig->system, entity, &fence, 1, &token), WEIR_OK);
	assert_int_equal(wr_promise_complete(rig->system, fence, WEIR_OK, NULL), WEIR_OK);
	for (uint32_t entity = 0; entity < 100; entity++)
		assert_int_equal(wr_load(&rig->waker.poked[entity]), 1);
}

RIG_BODY(f40_t17_without_memory_a_wait_for_several_fences_is_none)
{
	const weir_fence fences[] = {created(rig), created(rig), created(rig)};
	wr_token token = 0;
	weir_status status = WEIR_E_NOMEM;
	int64_t n = 0;

	for (; status && n < 20; n++) {
		wr_memory_fail_at(n, false);
		status = wr_promise_arm(rig->system, 5, fences, 3, &token);
		wr_memory_fail_at(-1, false);
		assert_true(!status || (status == WEIR_E_NOMEM && !token));
	}
	assert_in_range(n, 2, 19);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(wr_load(&rig->waker.poked[5]), 0);
		assert_int_equal(wr_promise_complete(rig->system, fences[i], WEIR_OK, NULL), WEIR_OK);
	}
	assert_int_equal(wr_load(&rig->waker.poked[5]), 1);
}

RIG_BODY(t17_of_the_open_fences_of_a_run_the_oldest_is_told)
{
	weir_fence older = created(rig), younger = created(rig), alone = created(rig), created_again;
	const char *owner = NULL;
	int64_t age = 0, own = 0;

	assert_int_equal(wr_promise_carry(rig->system, younger, 2, "b", true), WEIR_OK);
	assert_int_equal(wr_promise_carry(rig->system, older, 1, "a", true), WEIR_OK);
	assert_int_equal(wr_promise_carry(rig->system, older, 3, "c", true), WEIR_OK);
	assert_int_equal(wr_system_promises_of_run(rig->system, &owner, &age), 2);
	assert_string_equal(owner, "a");
	assert_string_equal(wr_promise_owner(rig->system, younger, &own), "b");
	assert_true(own >= 0);
	assert_string_equal(wr_promise_owner(rig->system, younger, NULL), "b");
	assert_string_equal(wr_promise_owner(rig->system, alone, NULL), "the program");
	assert_true(wr_promise_kick_at(rig->system, older));
	assert_int_equal(wr_promise_complete(rig->system, older, WEIR_OK, NULL), WEIR_OK);
	assert_false(wr_promise_kick_at(rig->system, older));
	own = -1;
	created_again = created(rig); /* in the same place */
	wr_promise_owner(rig->system, older, &own);
	assert_int_equal(own, -1);
	wr_promises_begin_run(rig->system);
	assert_int_equal(wr_system_promises_of_run(rig->system, &owner, &age), 0);
	assert_int_equal(wr_promise_carry(rig->system, younger, 4, "d", true), WEIR_OK);
	assert_int_equal(wr_system_promises_of_run(rig->system, &owner, &age), 1);
	assert_string_equal(owner, "d");
	assert_int_equal(wr_promise_complete(rig->system, created_again, WEIR_OK, NULL), WEIR_OK);
	assert_int_equal(wr_promise_complete(rig->system, younger, WEIR_E_IO, NULL), WEIR_OK);
	assert_int_equal(wr_system_promises_of_run(rig->system, &owner, &age), 0);
	assert_int_equal(wr_promise_complete(rig->system, alone, WEIR_OK, NULL), WEIR_OK);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(t17_a_fence_that_was_never_created_is_refused_by_each_call),
		cmocka_unit_test(t17_of_failed_fences_the_oldest_are_forgotten_unless_they_are_named),
		cmocka_unit_test(t17_a_fence_that_fails_is_kept_as_long_as_one_of_its_messages),
		cmocka_unit_test(t17_each_entity_that_waits_for_a_fence_is_poked),
		cmocka_unit_test(f40_t17_without_memory_a_wait_for_several_fences_is_none),
		cmocka_unit_test(t17_of_the_open_fences_of_a_run_the_oldest_is_told),
	};

	rig_backend = "host";
	return cmocka_run_group_tests(tests, NULL, NULL);
}

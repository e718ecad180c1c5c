/* The contract of captures and executables (T13). */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "contract.h"
#include "tests/calls.h"

#define MS 1000000

static struct wr_capture *capture_of(struct rig *rig)
{
	struct wr_capture *capture = NULL;

	assert_int_equal(wr_capture_create(rig->system, &capture), WEIR_OK);
	return capture;
}

static void begin(struct rig *rig, struct wr_capture *capture)
{
	weir_stream *streams[] = {rig->a, rig->b};

	assert_int_equal(wr_capture_begin(capture, streams, 2), WEIR_OK);
}

static struct wr_executable *end(struct wr_capture *capture)
{
	struct wr_executable *executable = NULL;

	assert_int_equal(wr_capture_end(capture, &executable), WEIR_OK);
	return executable;
}

static void launch(struct rig *rig, struct wr_executable *executable)
{
	assert_int_equal(wr_executable_launch(executable, rig->a), WEIR_OK);
	wr_executable_note_fence(executable, rig_record(rig->a));
}

static void drop(struct wr_capture *capture, struct wr_executable *executable)
{
	wr_executable_drop(executable);
	wr_capture_destroy(capture);
}

/* Ends the capture and launches once: the cell then has the value. */
static void launched_gives(struct rig *rig, struct wr_capture *capture, int value)
{
	struct wr_executable *executable = end(capture);

	launch(rig, executable);
	assert_int_equal(rig_read(rig, rig->a), value);
	drop(capture, executable);
}

/* Ends with the failure `says`; the streams go on. */
static void refused(struct rig *rig, struct wr_capture *capture, const char *says)
{
	struct wr_executable *executable = NULL;

	assert_int_not_equal(wr_capture_end(capture, &executable), WEIR_OK);
	assert_null(executable);
	assert_non_null(strstr(weir_last_error(), says));
	assert_false(wr_system_failed(rig->system));
	rig_store(rig, rig->a, 5, 0);
	assert_int_equal(weir_stream_wait(rig->b, rig_record(rig->a)), WEIR_OK);
	rig_add(rig, rig->b, 2, 0);
	assert_int_equal(rig_read(rig, rig->b), 7);
}

RIG_BODY(t13_captured_work_runs_at_each_launch_and_not_before)
{
	struct wr_capture *capture = capture_of(rig);
	struct wr_executable *executable;

	rig_store(rig, rig->a, 1, 0);
	begin(rig, capture);
	rig_add(rig, rig->a, 10, MS);
	executable = end(capture);
	assert_int_equal(rig_read(rig, rig->a), 1);
	for (int i = 0; i < 3; i++)
		launch(rig, executable);
	assert_int_equal(rig_read(rig, rig->a), 31);
	assert_true(wr_executable_try_destroy(executable));
	wr_capture_destroy(capture);
}

RIG_BODY(t13_a_launch_keeps_its_place_on_the_stream)
{
	struct wr_capture *capture = capture_of(rig);
	struct wr_executable *executable;

	begin(rig, capture);
	rig_add(rig, rig->a, 1, MS);
	rig_add(rig, rig->a, 2, 0);
	executable = end(capture);
	rig_store(rig, rig->a, 40, 5 * MS);
	launch(rig, executable);
	rig_add(rig, rig->a, 100, 0);
	assert_int_equal(rig_read(rig, rig->a), 143);
	drop(capture, executable);
}

RIG_BODY(t13_copies_are_captured)
{
	struct wr_capture *capture = capture_of(rig);
	struct wr_executable *executable;

	begin(rig, capture);
	assert_int_equal(copy_bytes(rig->a, rig->copy, rig->cell, sizeof *rig->cell), WEIR_OK);
	executable = end(capture);
	*rig->copy = -1;
	rig_store(rig, rig->a, 9, MS);
	launch(rig, executable);
	rig_wait(rig, rig_record(rig->a));
	assert_int_equal(*rig->copy, 9);
	drop(capture, executable);
}

RIG_BODY(t13_a_fork_that_is_joined_is_captured)
{
	struct wr_capture *capture = capture_of(rig);

	begin(rig, capture);
	rig_store(rig, rig->a, 1, MS);
	assert_int_equal(wr_capture_order(capture, rig->a, rig->b), WEIR_OK);
	rig_add(rig, rig->b, 10, 2 * MS);
	assert_int_equal(wr_capture_order(capture, rig->b, rig->a), WEIR_OK);
	rig_add(rig, rig->a, 100, 0);
	launched_gives(rig, capture, 111);
}

RIG_BODY(t13_a_stream_that_is_not_joined_is_refused)
{
	struct wr_capture *capture = capture_of(rig);

	begin(rig, capture);
	rig_store(rig, rig->a, 1, 0);
	assert_int_equal(wr_capture_order(capture, rig->a, rig->b), WEIR_OK);
	rig_add(rig, rig->b, 10, 0);
	assert_int_equal(wr_capture_order(capture, rig->b, rig->a), WEIR_OK);
	rig_add(rig, rig->b, 10, 0);
	refused(rig, capture, "was not joined");
	wr_capture_destroy(capture);
}

/* b is joined to c, and c to a. */
RIG_BODY(t13_a_stream_joined_through_another_is_joined)
{
	struct wr_capture *capture = capture_of(rig);
	weir_stream *streams[] = {rig->a, rig->b, rig->c};

	assert_int_equal(wr_capture_begin(capture, streams, 3), WEIR_OK);
	rig_store(rig, rig->b, 1, MS);
	assert_int_equal(wr_capture_order(capture, rig->b, rig->c), WEIR_OK);
	rig_add(rig, rig->c, 2, 0);
	assert_int_equal(wr_capture_order(capture, rig->c, rig->a), WEIR_OK);
	rig_add(rig, rig->a, 4, 0);
	launched_gives(rig, capture, 7);
}

RIG_BODY(t13_fences_and_waits_are_refused_in_a_capture)
{
	struct wr_capture *capture = capture_of(rig);
	weir_fence before = rig_record(rig->c), fence;

	begin(rig, capture);
	assert_int_equal(weir_stream_record(rig->a, &fence), WEIR_E_UNSUPPORTED);
	refused(rig, capture, "no fences");
	begin(rig, capture);
	assert_int_equal(weir_stream_wait(rig->a, before), WEIR_E_UNSUPPORTED);
	refused(rig, capture, "cannot wait");
	wr_capture_destroy(capture);
}

RIG_BODY(t13_a_stream_that_shares_anothers_queue_is_refused)
{
	struct wr_capture *capture = capture_of(rig);
	weir_stream *shared = NULL;

	assert_int_equal(wr_stream_share(rig->c, "shared", &shared), WEIR_OK);
	assert_int_equal(wr_capture_begin(capture, (weir_stream *[]){rig->a, shared}, 2), WEIR_OK);
	rig_store(rig, shared, 1, 0);
	refused(rig, capture, "not one of the entity's own");
	assert_false(wr_stream_dirty(shared));
	wr_stream_close(shared);
	wr_capture_destroy(capture);
}

RIG_BODY(t13_a_capture_of_nothing_gives_nothing)
{
	struct wr_capture *capture = capture_of(rig);

	begin(rig, capture);
	assert_null(end(capture));
	assert_false(wr_stream_dirty(rig->a));
	wr_capture_destroy(capture);
}

RIG_BODY(t13_an_executable_in_flight_is_not_destroyed)
{
	struct wr_capture *capture = capture_of(rig);
	struct wr_executable *executable;
	weir_fence fence;

	begin(rig, capture);
	rig_add(rig, rig->a, 1, 50 * MS);
	executable = end(capture);
	assert_int_equal(wr_executable_launch(executable, rig->a), WEIR_OK);
	assert_false(wr_executable_try_destroy(executable)); /* no fence yet */
	fence = rig_record(rig->a);
	wr_executable_note_fence(executable, fence);
	assert_false(wr_executable_try_destroy(executable));
	rig_wait(rig, fence);
	assert_true(wr_executable_try_destroy(executable));
	wr_capture_destroy(capture);
}

RIG_BODY(t13_an_executable_dropped_in_flight_ends_with_the_system)
{
	struct wr_capture *capture = capture_of(rig);
	struct wr_executable *executable;

	begin(rig, capture);
	rig_add(rig, rig->a, 1, 20 * MS);
	executable = end(capture);
	assert_int_equal(wr_executable_launch(executable, rig->a), WEIR_OK);
	drop(capture, executable);
}

static struct wr_executable *captured_store(struct rig *rig, struct wr_capture *capture, int value)
{
	begin(rig, capture);
	rig_store(rig, rig->a, value, 0);
	assert_int_equal(copy_bytes(rig->a, rig->copy, rig->cell, sizeof(int)), WEIR_OK);
	return end(capture);
}

RIG_BODY(t13_executables_are_compared_by_their_arguments)
{
	struct wr_capture *capture = capture_of(rig);
	struct wr_executable *one = captured_store(rig, capture, 1), *same = captured_store(rig, capture, 1);
	struct wr_executable *other = captured_store(rig, capture, 2);
	char what[200] = "";

	assert_false(wr_executable_differs(one, same, what, sizeof what));
	assert_string_equal(what, "");
	assert_true(wr_executable_differs(one, other, what, sizeof what));
	assert_non_null(strstr(what, rig_is("cuda") ? "kernel 'work'" : "kernel 'store'"));
	rig->copy++;
	wr_executable_drop(other);
	other = captured_store(rig, capture, 1);
	rig->copy--;
	assert_true(wr_executable_differs(one, other, what, sizeof what));
	assert_non_null(strstr(what, "destination of the copy"));
	wr_executable_drop(one);
	wr_executable_drop(same);
	wr_executable_drop(other);
	wr_capture_destroy(capture);
}

RIG_BODY(t13_t08_a_launch_is_one_operation)
{
	struct wr_capture *capture = capture_of(rig);
	struct wr_executable *executable;

	(void)wr_stream_take_operations(rig->a);
	begin(rig, capture);
	for (int i = 0; i < 5; i++)
		rig_store(rig, rig->a, i, 0);
	executable = end(capture);
	assert_int_equal(wr_stream_take_operations(rig->a), 0);
	assert_int_equal(wr_executable_launch(executable, rig->a), WEIR_OK);
	assert_int_equal(wr_stream_take_operations(rig->a), 1);
	wr_executable_note_fence(executable, rig_record(rig->a));
	drop(capture, executable);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(t13_captured_work_runs_at_each_launch_and_not_before),
	cmocka_unit_test(t13_a_launch_keeps_its_place_on_the_stream),
	cmocka_unit_test(t13_copies_are_captured),
	cmocka_unit_test(t13_a_fork_that_is_joined_is_captured),
	cmocka_unit_test(t13_a_stream_that_is_not_joined_is_refused),
	cmocka_unit_test(t13_a_stream_joined_through_another_is_joined),
	cmocka_unit_test(t13_fences_and_waits_are_refused_in_a_capture),
	cmocka_unit_test(t13_a_stream_that_shares_anothers_queue_is_refused),
	cmocka_unit_test(t13_a_capture_of_nothing_gives_nothing),
	cmocka_unit_test(t13_an_executable_in_flight_is_not_destroyed),
	cmocka_unit_test(t13_an_executable_dropped_in_flight_ends_with_the_system),
	cmocka_unit_test(t13_executables_are_compared_by_their_arguments),
	cmocka_unit_test(t13_t08_a_launch_is_one_operation),
};

const struct contract_part contract_captures = {tests, sizeof tests / sizeof *tests};

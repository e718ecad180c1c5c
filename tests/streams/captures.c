/*
 * Captures and executables (T13): what they refuse, how two of them differ, and what is left when there is no
 * memory or the device is lost. Run as `captures BACKEND`.
 */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "rig.h"
#include "test.h"

#define MS 1000000

static struct wr_capture *capture_of(struct rig *rig)
{
	struct wr_capture *capture = NULL;

	assert_int_equal(wr_capture_create(rig->system, &capture), WEIR_OK);
	return capture;
}

static void begin(struct wr_capture *capture, weir_stream *first, weir_stream *second)
{
	assert_int_equal(wr_capture_begin(capture, (weir_stream *[]){first, second}, second ? 2 : 1),
			 WEIR_OK);
}

static void refused(struct wr_capture *capture, const char *says)
{
	struct wr_executable *executable = NULL;

	assert_int_equal(wr_capture_end(capture, &executable), WEIR_E_UNSUPPORTED);
	assert_null(executable);
	assert_non_null(strstr(weir_last_error(), says));
}

/* --- what differs --- */

static void store_one(struct rig *rig)
{
	rig_store(rig, rig->a, 1, 0);
}

static void store_twice(struct rig *rig)
{
	store_one(rig);
	store_one(rig);
}

static void add_one(struct rig *rig)
{
	rig_add(rig, rig->a, 1, 0);
}

static void launch_bytes(struct rig *rig, size_t bytes)
{
	static const struct rig_work work;

	assert_int_equal(weir_stream_launch(rig->a, &rig_sleep, &work, bytes), WEIR_OK);
}

static void launch_few_bytes(struct rig *rig)
{
	launch_bytes(rig, 8);
}

static void launch_many_bytes(struct rig *rig)
{
	launch_bytes(rig, 16);
}

/* Nothing is copied: no executable of these is launched. */
static void copy_rows(struct rig *rig, weir_copy copy)
{
	copy.size = sizeof copy;
	copy.to = copy.to ? copy.to : rig->copy;
	copy.from = copy.from ? copy.from : rig->cell;
	assert_int_equal(weir_stream_copies(rig->a, &copy, 1, WEIR_COPY_ASYNC, NULL), WEIR_OK);
}

static void copy_two(struct rig *rig)
{
	copy_rows(rig, (weir_copy){.rows = 2, .row_bytes = 2, .to_stride = 8, .from_stride = 8});
}

static void copy_three(struct rig *rig)
{
	copy_rows(rig, (weir_copy){.rows = 3, .row_bytes = 2, .to_stride = 8, .from_stride = 8});
}

static void copy_wide(struct rig *rig)
{
	copy_rows(rig, (weir_copy){.rows = 2, .row_bytes = 4, .to_stride = 8, .from_stride = 8});
}

static void copy_sparsely(struct rig *rig)
{
	copy_rows(rig, (weir_copy){.rows = 2, .row_bytes = 2, .to_stride = 16, .from_stride = 8});
}

static void copy_from_sparse(struct rig *rig)
{
	copy_rows(rig, (weir_copy){.rows = 2, .row_bytes = 2, .to_stride = 8, .from_stride = 16});
}

static void copy_elsewhere(struct rig *rig)
{
	copy_rows(rig,
		  (weir_copy){
			  .to = rig->copy + 1, .rows = 2, .row_bytes = 2, .to_stride = 8, .from_stride = 8});
}

static void copy_from_elsewhere(struct rig *rig)
{
	copy_rows(
		rig,
		(weir_copy){
			.from = rig->cell + 1, .rows = 2, .row_bytes = 2, .to_stride = 8, .from_stride = 8});
}

static const struct difference {
	void (*one)(struct rig *rig), (*other)(struct rig *rig);
	const char *says; /* NULL: they are the same */
} differences[] = {
	{store_one, store_one, NULL},
	{store_one, add_one, "item 0: is kernel 'store', then kernel 'add'"},
	{store_one, store_twice, "1 items, then 2"},
	{store_one, copy_two, "item 0: one is a kernel, the other a copy"},
	{launch_few_bytes, launch_many_bytes, "item 0: kernel 'sleep' has 8 bytes of arguments, then 16"},
	{copy_two, copy_two, NULL},
	{copy_two, copy_three, "item 0: the size of the copy differs"},
	{copy_two, copy_wide, "item 0: the size of the copy differs"},
	{copy_two, copy_sparsely, "item 0: the destination of the copy differs"},
	{copy_two, copy_elsewhere, "item 0: the destination of the copy differs"},
	{copy_two, copy_from_sparse, "item 0: the source of the copy differs"},
	{copy_two, copy_from_elsewhere, "item 0: the source of the copy differs"},
};

static struct wr_executable *captured(struct rig *rig, struct wr_capture *capture,
				      void (*enqueue)(struct rig *rig))
{
	struct wr_executable *executable = NULL;

	begin(capture, rig->a, NULL);
	enqueue(rig);
	assert_int_equal(wr_capture_end(capture, &executable), WEIR_OK);
	return executable;
}

static void check_difference(struct rig *rig, struct wr_capture *capture, const struct difference *difference)
{
	struct wr_executable *one = captured(rig, capture, difference->one);
	struct wr_executable *other = captured(rig, capture, difference->other);
	char what[200] = "";

	assert_int_equal(wr_executable_differs(one, other, what, sizeof what), difference->says != NULL);
	assert_string_equal(what, difference->says ? difference->says : "");
	wr_executable_drop(one);
	wr_executable_drop(other);
}

RIG_BODY(t13_a_difference_of_two_executables_is_named)
{
	struct wr_capture *capture = capture_of(rig);

	for (size_t i = 0; i < sizeof differences / sizeof *differences; i++)
		check_difference(rig, capture, &differences[i]);
	wr_capture_destroy(capture);
}

/* --- what is refused --- */

RIG_BODY(t13_streams_from_outside_are_not_ordered_with_a_capture)
{
	struct wr_capture *capture = capture_of(rig);

	begin(capture, rig->a, rig->b);
	assert_int_equal(wr_capture_order(capture, rig->a, rig->c), WEIR_E_UNSUPPORTED);
	refused(capture, "streams from outside");
	begin(capture, rig->a, rig->b);
	assert_int_equal(wr_capture_order(capture, rig->c, rig->a), WEIR_E_UNSUPPORTED);
	refused(capture, "streams from outside");
	wr_capture_destroy(capture);
	wr_capture_destroy(NULL);
}

RIG_BODY(t13_streams_of_another_owner_are_not_ordered_in_a_capture)
{
	struct wr_capture *capture = capture_of(rig);
	weir_stream *shared = rig_share(rig->c);

	begin(capture, rig->a, shared);
	assert_int_equal(wr_capture_order(capture, rig->a, shared), WEIR_E_UNSUPPORTED);
	refused(capture, "the entity's own streams alone");
	begin(capture, rig->a, shared);
	assert_int_equal(wr_capture_order(capture, shared, rig->a), WEIR_E_UNSUPPORTED);
	refused(capture, "the entity's own streams alone");
	wr_stream_close(shared);
	wr_capture_destroy(capture);
}

RIG_BODY(t13_a_stream_of_another_owner_that_is_not_used_is_no_reason_to_refuse)
{
	struct wr_capture *capture = capture_of(rig);
	struct wr_executable *executable = NULL;
	weir_stream *shared = rig_share(rig->c);

	begin(capture, rig->a, shared);
	store_one(rig);
	assert_int_equal(wr_capture_end(capture, &executable), WEIR_OK);
	assert_non_null(executable);
	wr_executable_drop(executable);
	wr_stream_close(shared);
	wr_capture_destroy(capture);
}

RIG_BODY(t13_the_17th_stream_is_not_captured)
{
	struct wr_capture *capture = capture_of(rig);
	weir_stream *streams[17];

	for (size_t i = 0; i < 17; i++)
		streams[i] = rig_stream(rig, "many");
	assert_int_equal(wr_capture_begin(capture, streams, 17), WEIR_OK);
	rig_store(rig, streams[16], 1, 0);
	refused(capture, "the 17th");
	assert_false(wr_stream_dirty(streams[16]));
	for (size_t i = 0; i < 17; i++)
		wr_stream_close(streams[i]);
	wr_capture_destroy(capture);
}

RIG_BODY(t13_the_first_refusal_is_the_one_that_is_said)
{
	struct wr_capture *capture = capture_of(rig);
	weir_fence before = rig_record(rig->c), fence;

	begin(capture, rig->a, rig->b);
	assert_int_equal(wr_capture_order(capture, rig->a, rig->a), WEIR_OK); /* nothing to do */
	assert_int_equal(weir_stream_record(rig->a, &fence), WEIR_E_UNSUPPORTED);
	assert_int_equal(weir_stream_wait(rig->a, before), WEIR_E_UNSUPPORTED);
	refused(capture, "no fences");
	wr_capture_destroy(capture);
}

RIG_BODY(t13_the_backend_refuses_callbacks_in_a_capture)
{
	struct wr_capture *capture = capture_of(rig);
	struct wr_executable *executable = NULL;

	begin(capture, rig->a, NULL);
	assert_int_equal(wr_device_call(rig->system, 0, rig->a->queue, wr_token_fire, NULL), WEIR_E_FAILED);
	assert_non_null(strstr(weir_last_error(), "kernels and copies alone"));
	assert_int_equal(wr_capture_end(capture, &executable), WEIR_OK);
	assert_null(executable);
	wr_capture_destroy(capture);
}

/* --- places --- */

RIG_BODY(t13_a_capture_goes_on_with_streams_of_other_places)
{
	static const struct wr_stream_spec specs[] = {{.device = 1}, {.priority = -1}, {0}};
	struct wr_capture *capture = capture_of(rig);

	for (size_t i = 0; i < 3; i++) {
		struct wr_executable *executable = NULL;
		weir_stream *stream = NULL;

		assert_int_equal(wr_stream_open(rig->system, &specs[i], "elsewhere", &stream), WEIR_OK);
		begin(capture, stream, rig->b);
		rig_store(rig, stream, (int)i + 1, 0);
		assert_int_equal(wr_capture_end(capture, &executable), WEIR_OK);
		assert_int_equal(wr_executable_launch(executable, stream), WEIR_OK);
		wr_executable_note_fence(executable, rig_record(stream));
		assert_int_equal(rig_read(rig, stream), (int)i + 1);
		wr_executable_drop(executable);
		wr_stream_close(stream);
	}
	wr_capture_destroy(capture);
}

/* --- without memory, without a device --- */

static weir_status capture_and_launch(struct rig *rig, struct wr_capture **capture,
				      struct wr_executable **executable)
{
	weir_stream *streams[] = {rig->a, rig->b};
	struct rig_work work;
	weir_status status = wr_capture_create(rig->system, capture);
	weir_status ended;

	memset(&work, 0, sizeof work);
	if (!status)
		status = wr_capture_begin(*capture, streams, 2);
	if (status)
		return status;
	status = weir_stream_launch(rig->a, &rig_sleep, &work, sizeof work);
	ended = wr_capture_end(*capture, executable);
	if (status || ended)
		return status ? status : ended;
	status = wr_executable_launch(*executable, rig->a);
	wr_memory_fail_at(-1,
			  false); /* the ring of events may grow for a record: that is not the capture's */
	wr_executable_note_fence(*executable, rig_record(rig->a));
	return status;
}

RIG_BODY(f40_t13_any_one_allocation_of_a_capture_fails)
{
	weir_status status = WEIR_E_NOMEM;
	int64_t n = 0;

	for (; status; n++) {
		struct wr_executable *executable = NULL;
		struct wr_capture *capture = NULL;

		wr_memory_fail_at(n, false);
		status = capture_and_launch(rig, &capture, &executable);
		wr_memory_fail_at(-1, false);
		assert_true(!status || status == WEIR_E_NOMEM);
		rig_store(rig, rig->a, (int)n, 0); /* the stream is its owner's again */
		assert_int_equal(rig_read(rig, rig->a), n);
		if (executable)
			wr_executable_drop(executable);
		wr_capture_destroy(capture);
	}
	assert_in_range(n, 5, 100);
}

static void lose_device(struct rig *rig)
{
	int64_t until = wr_now() + 10000 * (int64_t)MS;

	assert_int_equal(weir_stream_launch(rig->c, &rig_broken, NULL, 0), WEIR_OK);
	while (wr_system_check_device(rig->system) && wr_now() < until)
		wr_thread_sleep(MS);
	assert_true(wr_system_failed(rig->system));
}

RIG_BODY(t13_e02_a_capture_in_which_the_device_is_lost_gives_nothing)
{
	struct wr_capture *capture = capture_of(rig);
	struct wr_executable *executable = NULL, *before = captured(rig, capture, store_one);

	begin(capture, rig->a, NULL);
	store_one(rig);
	lose_device(rig);
	assert_int_equal(wr_capture_end(capture, &executable), WEIR_E_DEVICE);
	assert_null(executable);
	assert_int_equal(wr_executable_launch(before, rig->a), WEIR_E_DEVICE);
	wr_executable_drop(before);
	wr_capture_destroy(capture);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t13_a_difference_of_two_executables_is_named),
		cmocka_unit_test(t13_streams_from_outside_are_not_ordered_with_a_capture),
		cmocka_unit_test(t13_streams_of_another_owner_are_not_ordered_in_a_capture),
		cmocka_unit_test(t13_a_stream_of_another_owner_that_is_not_used_is_no_reason_to_refuse),
		cmocka_unit_test(t13_the_17th_stream_is_not_captured),
		cmocka_unit_test(t13_the_first_refusal_is_the_one_that_is_said),
		cmocka_unit_test(t13_the_backend_refuses_callbacks_in_a_capture),
		cmocka_unit_test(t13_a_capture_goes_on_with_streams_of_other_places),
		cmocka_unit_test(f40_t13_any_one_allocation_of_a_capture_fails),
		cmocka_unit_test(t13_e02_a_capture_in_which_the_device_is_lost_gives_nothing),
	};

	rig_backend = argc > 1 ? argv[1] : "host";
	return cmocka_run_group_tests(tests, NULL, NULL);
}

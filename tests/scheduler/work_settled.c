/* A tick whose fence found no memory, or no device: its work is fenced when that is there again, and what it
 * uses lives until then, or until a lost device has stopped. */
#include "base/memory.h"
#include "device_counted.h"

enum { STREAMS = 3 }; /* more than a message holds without an allocation */

struct wrapped {
	_Atomic int64_t value;   /* number of finished kernels */
	_Atomic int64_t running; /* kernels */
	_Atomic unsigned destroyed, unfinished, in_use;
	int64_t fails_at; /* allocations after the last call of compute */
	int64_t longest;  /* kernel */
};

struct work {
	struct wrapped *wrapped;
	int64_t ns;
};

static int add_late(const void *arguments)
{
	const struct work *work = arguments;

	wr_fetch_add(&work->wrapped->running, 1);
	weir_sleep(work->ns);
	wr_fetch_add(&work->wrapped->value, 1);
	wr_fetch_sub(&work->wrapped->running, 1);
	return 0;
}

static const weir_kernel late = {sizeof(weir_kernel), "late", add_late, NULL};

static void destroy(void *arg)
{
	struct wrapped *wrapped = arg;

	wr_fetch_add(&wrapped->destroyed, 1);
	if (wr_load(&wrapped->value) != STREAMS)
		wr_fetch_add(&wrapped->unfinished, 1);
	if (wr_load(&wrapped->running))
		wr_fetch_add(&wrapped->in_use, 1);
}

static weir_status launch_on_all(weir_context *context, struct wrapped *wrapped)
{
	static const char *const names[STREAMS] = {"first", "second", "third"};
	struct work work = {wrapped, 0};
	weir_stream *stream;
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < STREAMS; i++) {
		status = weir_context_allocate_stream(context, names[i], &stream);
		work.ns = i + 1 < STREAMS ? 10 * MS : wrapped->longest;
		if (!status)
			status = weir_stream_launch(stream, &late, &work, sizeof(work));
	}
	return status;
}

static weir_status emit_and_lack_memory(struct rig *rig, weir_context *context)
{
	static const int64_t one = 1;
	struct wrapped *wrapped = rig->own;
	weir_tensor tensor = {sizeof(weir_tensor), &wrapped->value, 0, 1, &one, NULL, 0, 64, 1};
	weir_message *message = NULL;
	weir_status status =
		weir_message_wrap_tensor(weir_context_graph(context), &tensor, destroy, wrapped, &message);

	if (!status)
		status = launch_on_all(context, wrapped);
	if (!status)
		status = weir_context_emit(context, 0, message);
	HOLDS(rig, !status);
	wr_memory_fail_at(wrapped->fails_at, false);
	return status;
}

/* Returns true if all allocations succeeded. */
static bool lack_memory_at(int64_t n)
{
	struct rig *rig = rig_of("c:call count=1 -> d:call");
	struct wrapped wrapped = {.fails_at = n, .longest = SECOND}; /* a failed run waits less */
	weir_status status;

	rig->own = &wrapped;
	rig_on(rig, "c", emit_and_lack_memory);
	status = rig_run(rig);
	wr_memory_fail_at(-1, false);
	rig_destroy(rig);
	assert_true(status == WEIR_OK || status == WEIR_E_NOMEM);
	assert_int_equal(wr_load(&wrapped.destroyed), 1);
	assert_int_equal(wr_load(&wrapped.unfinished), 0);
	return !status;
}

static void lack_memory(void)
{
	unsigned failed = 0;

	for (int64_t n = 0; n < 20; n++)
		failed += !lack_memory_at(n);
	assert_in_range(failed, STREAMS, 20);
}

/* Returns true if there was such a record. A device that is lost goes on until its running kernels end. */
static bool fail_record(unsigned nth, enum error error)
{
	struct rig *rig = rig_of("c:call count=1 -> d:call");
	struct wrapped wrapped = {.fails_at = -1, .longest = 50 * MS};
	weir_status status;
	bool hit;

	device.call = RECORD;
	device.error = error;
	device.nth = nth;
	wr_store(&device.count, 0);
	wr_store(&device.hit, false);
	rig->own = &wrapped;
	rig_on(rig, "c", emit_and_lack_memory);
	status = rig_run(rig);
	hit = wr_load(&device.hit); /* in the run: a signal stream is recorded when its scheduler is
				       destroyed, too */
	rig_destroy(rig);
	assert_int_equal(wr_load(&wrapped.destroyed), 1);
	assert_int_equal(wr_load(&wrapped.in_use), 0);
	assert_int_equal(status != WEIR_OK, hit);
	device.nth = 0;
	return hit;
}

static void fail_records(void)
{
	for (int error = 0; error < ERRORS; error++) {
		unsigned nth = 1;
		while (fail_record(nth, (enum error)error))
			nth++;
		assert_true(nth > STREAMS);
	}
}

/* --- a capture that is left open behind work of the tick --- */

static struct {
	_Atomic bool open, ended;
	bool stays; /* it cannot be ended by the thread of the tick */
} capture;

static bool is_capturing(void *self, int device_index, void *stream)
{
	(void)self;
	(void)device_index;
	(void)stream;
	return wr_load(&capture.open);
}

static void end_capture(void *self, int device_index, void *stream)
{
	(void)self;
	(void)device_index;
	(void)stream;
	wr_store(&capture.ended, true);
	if (!capture.stays)
		wr_store(&capture.open, false);
}

static weir_status emit_and_leave_a_capture(struct rig *rig, weir_context *context)
{
	weir_status status = emit_and_lack_memory(rig, context);
	weir_stream *first = NULL;

	if (!status)
		status = weir_context_allocate_stream(context, "third", &first);
	HOLDS(rig, !status);
	rig_give_native(first);
	wr_store(&capture.open, true);
	return status;
}

static void leave_a_capture(bool stays)
{
	struct rig *rig = rig_of("c:call count=1 -> d:call");
	struct wrapped wrapped = {.fails_at = -1, .longest = SECOND};

	wr_store(&capture.ended, false);
	capture.stays = stays;
	rig->own = &wrapped;
	rig_on(rig, "c", emit_and_leave_a_capture);
	rig_make(rig);
	rig_here(rig);
	rig_own_backend(rig)->capturing = is_capturing;
	rig->own_backend->end_capture = end_capture;
	assert_int_equal(weir_scheduler_start(rig->scheduler), WEIR_OK);
	assert_int_equal(weir_scheduler_wait(rig->scheduler, 10 * SECOND, NULL), WEIR_E_UNSUPPORTED);
	assert_true(wr_load(&capture.ended));
	assert_int_equal(wr_load(&capture.open), stays);
	wr_store(&capture.open, false); /* by the thread that began it */
	rig_restore_backend(rig);
	rig_destroy(rig);
	assert_int_equal(wr_load(&wrapped.destroyed), 1);
	assert_int_equal(wr_load(&wrapped.unfinished), 0);
}

static void leave_captures(void)
{
	leave_a_capture(false);
	leave_a_capture(true);
}

static void t04_g03_what_a_tick_uses_outlives_work_before_a_capture_that_is_left_open(void **state)
{
	(void)state;
	rig_in_worlds(3, leave_captures);
	rig_on_host(leave_captures);
}

static int fault(const void *arguments)
{
	(void)arguments;
	return 1;
}

static const weir_kernel faulty = {sizeof(weir_kernel), "faulty", fault, NULL};

/* One stream works for long, and a fault on the other one makes the device refuse the fences of both. */
static weir_status work_beside_a_fault(struct rig *rig, weir_context *context)
{
	struct wrapped *wrapped = rig->own;
	struct work work = {wrapped, wrapped->longest};
	weir_stream *busy = NULL, *bad = NULL;
	weir_status status = weir_context_allocate_stream(context, "busy", &busy);

	if (!status)
		status = weir_context_allocate_stream(context, "bad", &bad);
	if (!status)
		status = weir_stream_launch(busy, &late, &work, sizeof work);
	if (!status)
		status = weir_stream_launch(bad, &faulty, "", 0);
	weir_sleep(20 * MS);
	return status;
}

static void leave_work(int64_t longest, bool again)
{
	struct rig *rig = rig_of("c:call count=1 -> d:call");
	struct wrapped wrapped = {.fails_at = -1, .longest = longest};

	rig->own = &wrapped;
	rig_on(rig, "c", work_beside_a_fault);
	assert_int_equal(rig_run(rig), WEIR_E_DEVICE);
	if (again) {
		assert_int_equal(weir_scheduler_destroy(rig->scheduler), WEIR_OK);
		rig->scheduler = NULL;
		rig_on(rig, "c", NULL);
		assert_int_equal(rig_run(rig), WEIR_OK);
	}
	rig_destroy(rig);
}

/* Before the scheduler is made anew, and at the end of the graph, it is waited for: shorter, and longer. */
static void leave_works(void)
{
	leave_work(SECOND, true);
	leave_work(3 * SECOND, true);
	leave_work(3 * SECOND, false);
}

static void t04_s08_a_graph_runs_again_after_work_that_was_never_fenced(void **state)
{
	(void)state;
	rig_in_worlds(3, leave_works);
	rig_on_host(leave_works);
}

/* What failed is one call: the work is fenced all the same, and what it uses is given back behind it. */
static void lose_a_record(void)
{
	unsigned nth = 1;

	device.goes_on = true;
	while (fail_record(nth, LOST))
		nth++;
	device.goes_on = false;
	assert_true(nth > STREAMS);
}

static void t04_e02_f65_a_device_that_goes_on_after_a_failure_gives_all_back(void **state)
{
	(void)state;
	rig_in_worlds(10, lose_a_record);
	rig_on_host(lose_a_record);
}

static void t04_e02_f65_what_a_tick_uses_outlives_its_work_if_its_fence_fails(void **state)
{
	(void)state;
	rig_in_worlds(10, fail_records);
	rig_on_host(fail_records);
}

static void t04_f40_a_tick_whose_fence_found_no_memory_is_fenced_again(void **state)
{
	(void)state;
	rig_in_worlds(10, lack_memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t04_f40_a_tick_whose_fence_found_no_memory_is_fenced_again),
		cmocka_unit_test(t04_e02_f65_a_device_that_goes_on_after_a_failure_gives_all_back),
		cmocka_unit_test(t04_g03_what_a_tick_uses_outlives_work_before_a_capture_that_is_left_open),
		cmocka_unit_test(t04_s08_a_graph_runs_again_after_work_that_was_never_fenced),
		cmocka_unit_test(t04_e02_f65_what_a_tick_uses_outlives_its_work_if_its_fence_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

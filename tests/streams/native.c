/*
 * What the system does on a backend with native streams, shown on `host`, whose handles are given out as if
 * they were native: waits across the program's own queues, and the warning of too many busy streams.
 */
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "rig.h"
#include "test.h"

#define MS ((int64_t)1000000)

static void have_native_streams(struct rig *rig)
{
	rig_own_backend(rig)->native_streams = true;
	rig_own_backend(rig)->kind = WEIR_BACKEND_CUDA;
}

/* --- waits --- */

RIG_BODY(xb24_work_of_a_native_stream_waits_for_a_fence)
{
	weir_fence fence;

	have_native_streams(rig);
	rig_store(rig, rig->a, 7, 20 * MS);
	fence = rig_record(rig->a);
	assert_int_equal(wr_fence_enqueue(rig->system, fence, 0, weir_stream_native(rig->b)), WEIR_OK);
	assert_int_equal(rig_read(rig, rig->b), 7);
}

/* The first record of the event completes long before the second one, which the wait is for. */
RIG_BODY(t01_a_wait_is_for_the_last_record_before_it)
{
	void *native, *event;

	event = wr_stream_event(rig->a, rig_record(rig->a).value)->native;
	native = wr_load(&rig->a->native);
	rig_store(rig, rig->a, 1, 10 * MS);
	assert_int_equal(wr_device_record(rig->system, 0, native, event), WEIR_OK);
	rig_store(rig, rig->a, 2, 50 * MS);
	assert_int_equal(wr_device_record(rig->system, 0, native, event), WEIR_OK);
	assert_int_equal(wr_device_wait(rig->system, 0, wr_load(&rig->b->native), event), WEIR_OK);
	rig_add(rig, rig->b, 10, 0);
	assert_int_equal(rig_read(rig, rig->b), 12);
	rig_wait(rig, rig_record(rig->a));
}

static int waits;

static weir_status count_wait(void *self, int device, void *stream, void *event)
{
	waits++;
	return wr_backend_host.wait(self, device, stream, event);
}

RIG_BODY(xb24_a_complete_fence_is_not_waited_for_and_a_false_one_refused)
{
	weir_fence fence = rig_record(rig->a), unknown = {fence.stream, fence.value + 1}, promised;
	void *native;

	have_native_streams(rig);
	rig->backend.wait = count_wait;
	waits = 0;
	native = weir_stream_native(rig->b);
	rig_wait(rig, fence);
	assert_int_equal(wr_fence_enqueue(rig->system, fence, 0, native), WEIR_OK);
	assert_int_equal(wr_fence_enqueue(rig->system, unknown, 0, native), WEIR_E_INVALID);
	assert_int_equal(wr_fence_enqueue(rig->system, fence, 9, native), WEIR_E_INVALID);
	assert_int_equal(wr_promise_create(rig->system, &promised), WEIR_OK);
	assert_int_equal(wr_fence_enqueue(rig->system, promised, 0, native), WEIR_E_UNSUPPORTED);
	assert_int_equal(wr_promise_complete(rig->system, promised, WEIR_OK, NULL), WEIR_OK);
	assert_int_equal(waits, 0);
}

RIG_BODY(g03_a_native_handle_stays_the_same_and_makes_the_stream_dirty)
{
	void *native;

	have_native_streams(rig);
	rig_record(rig->a);
	assert_false(wr_stream_dirty(rig->a));
	native = weir_stream_native(rig->a);
	assert_non_null(native);
	assert_true(wr_stream_dirty(rig->a));
	assert_ptr_equal(weir_stream_native(rig->a), native);
	assert_ptr_equal(wr_stream_handle(rig->a), native);
}

static void give_handle(void *arg)
{
	struct rig *rig = arg;

	(void)weir_stream_native(rig->a);
	wr_store(&rig->waker.poked[9], 1);
}

RIG_BODY(g03_a_handle_is_given_out_when_no_inline_callback_is_being_enqueued)
{
	struct wr_thread thread;

	have_native_streams(rig);
	wr_fetch_add(&rig->a->arming_inline, 1);
	assert_int_equal(wr_thread_start(&thread, "giver", give_handle, rig), WEIR_OK);
	while (!wr_load(&rig->a->native_given))
		wr_thread_yield();
	assert_int_equal(wr_load(&rig->waker.poked[9]),
			 0); /* no more callback begins, but one is under way */
	wr_fetch_sub(&rig->a->arming_inline, 1);
	wr_thread_join(&thread);
	assert_int_equal(wr_load(&rig->waker.poked[9]), 1);
}

/* --- spans (T15) --- */

static struct wr_span *span_on(struct rig *rig, weir_stream *stream)
{
	struct wr_span *span = NULL;

	assert_int_equal(wr_span_create(rig->system, 0, &span), WEIR_OK);
	wr_span_arm(span, stream);
	return span;
}

RIG_BODY(t15_giving_out_the_native_handle_begins_the_span)
{
	struct wr_span_times times;
	struct wr_span *span = span_on(rig, rig->a);

	have_native_streams(rig);
	assert_non_null(weir_stream_native(rig->a));
	assert_true(wr_span_end(span));
	rig_wait(rig, rig_record(rig->a));
	assert_int_equal(wr_span_read(span, &times), WEIR_OK);
	assert_true(times.begin <= times.end);
	wr_span_drop(span);
}

RIG_BODY(t15_work_that_the_program_captures_begins_no_span)
{
	struct wr_span *span;

	have_native_streams(rig);
	assert_non_null(weir_stream_native(rig->a));
	span = span_on(rig, rig->a);
	rig->backend.capturing = rig_in_capture;
	rig_store(rig, rig->a, 1, 0);
	rig->backend.capturing = wr_backend_host.capturing;
	assert_false(wr_span_end(span));
	wr_span_drop(span);
	rig_read(rig, rig->a);
}

/* --- more busy streams than hardware queues --- */

enum { BUSY = 33 };

static char said[1024];
static unsigned lines;

static void note_line(weir_log_level level, int64_t at, const char *line, void *arg)
{
	(void)at;
	(void)arg;
	if (level != WEIR_LOG_WARN)
		return;
	strncpy(said, line, sizeof said - 1);
	lines++;
}

static void keep_busy(struct rig *rig, weir_stream **streams, int count)
{
	struct rig_work work = {.ns = 2 * MS};

	for (int i = 0; i < count; i++) {
		streams[i] = rig_stream(rig, i ? "other" : "first");
		assert_int_equal(weir_stream_launch(streams[i], &rig_sleep, &work, sizeof work), WEIR_OK);
		rig_record(streams[i]);
	}
}

static void watch_twice(struct rig *rig)
{
	int64_t next;

	lines = 0;
	said[0] = 0;
	assert_int_equal(weir_log_set(note_line, NULL), WEIR_OK);
	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_int_equal(weir_log_set(NULL, NULL), WEIR_OK);
}

static void close_all(struct rig *rig, weir_stream **streams, int count)
{
	for (int i = 0; i < count; i++) {
		rig_read(rig, streams[i]); /* its work ends */
		wr_stream_close(streams[i]);
	}
}

RIG_BODY(e02_more_busy_streams_than_hardware_queues_are_warned_of_once)
{
	weir_stream *streams[BUSY];

	have_native_streams(rig);
	keep_busy(rig, streams, BUSY);
	watch_twice(rig);
	assert_int_equal(lines, 1);
	assert_non_null(strstr(said, "device 0: more than 32 streams have work in flight"));
	assert_non_null(strstr(said, "(first, other, other, other, other, other, other, other, ...)"));
	close_all(rig, streams, BUSY);
}

RIG_BODY(e02_as_many_busy_streams_as_hardware_queues_are_no_crowd)
{
	weir_stream *streams[BUSY - 1];

	have_native_streams(rig);
	keep_busy(rig, streams, BUSY - 1);
	watch_twice(rig);
	assert_int_equal(lines, 0);
	close_all(rig, streams, BUSY - 1);
}

/* --- a partition that leaves no multiprocessor over --- */

static weir_status split_all(void *self, const struct wr_partitions_spec *spec, void **out, uint32_t *sms)
{
	weir_status status = wr_backend_host.partitions_create(self, spec, out, sms);

	out[spec->count] = NULL;
	sms[spec->count] = 0;
	return status;
}

RIG_BODY(t05_where_nothing_remains_there_is_no_rest)
{
	static const uint32_t sizes[] = {2, 3};
	const struct wr_partitions_spec spec = {.name = "parts", .sizes = sizes, .count = 2};
	struct wr_partition *parts[3] = {NULL};
	uint32_t sms[3];

	rig_own_backend(rig)->partitions_create = split_all;
	assert_int_equal(wr_partitions_create(rig->system, &spec, parts, sms), WEIR_OK);
	assert_non_null(parts[0]);
	assert_non_null(parts[1]);
	assert_null(parts[2]);
	assert_int_equal(sms[2], 0);
}

/* --- streams and memory that the program has handles of --- */

static struct {
	unsigned kept, made_again;
	bool there; /* one is kept */
} handles;

static void keep_stream(void *self, int device, unsigned flags, int priority, void *stream)
{
	(void)device, (void)flags, (void)priority;
	handles.kept++;
	wr_backend_host.stream_destroy(self, stream);
}

static void *make_again(void *self, int device, unsigned flags, int priority)
{
	void *stream = NULL;

	if (!handles.there)
		return NULL;
	handles.made_again++;
	assert_int_equal(wr_backend_host.stream_create(self, device, flags, priority, NULL, &stream),
			 WEIR_OK);
	return stream;
}

static bool say_allocation(void *self, const void *memory, weir_allocation *out)
{
	(void)self;
	out->data = (void *)(uintptr_t)memory;
	return memory != NULL;
}

/* Streams: one of the program's handle, one that is kept from before or new, one of a partition. */
static void use_streams(const struct wr_backend *backend)
{
	static const uint32_t sizes[] = {1};
	const struct wr_system_options options = {.backend = "host"};
	const struct wr_partitions_spec parts = {.name = "parts", .sizes = sizes, .count = 1};
	struct wr_partition *partition[2] = {NULL};
	struct wr_stream_spec spec = {.flags = 0};
	struct wr_system *system = NULL;
	weir_stream *given, *other;
	uint32_t sms[2];

	assert_int_equal(wr_system_create(&system, &options), WEIR_OK);
	system->backend = backend;
	assert_int_equal(wr_stream_open(system, &spec, "given", &given), WEIR_OK);
	assert_non_null(weir_stream_native(given));
	assert_int_equal(wr_partitions_create(system, &parts, partition, sms), WEIR_OK);
	spec.partition = partition[0];
	assert_int_equal(wr_stream_open(system, &spec, "part", &other), WEIR_OK);
	assert_non_null(weir_stream_native(other));
	assert_int_equal(wr_system_destroy(system), WEIR_OK);
}

RIG_BODY(g03_a_stream_whose_handle_was_given_out_is_kept_and_given_again)
{
	struct wr_backend *backend = &rig->backend;

	have_native_streams(rig);
	backend->stream_keep = keep_stream;
	backend->stream_again = make_again;
	memset(&handles, 0, sizeof handles);
	use_streams(backend);
	assert_int_equal(handles.kept, 1);
	assert_int_equal(handles.made_again, 0);
	handles.there = true;
	use_streams(backend);
	assert_int_equal(handles.kept, 2);
	assert_int_equal(handles.made_again, 1);
}

RIG_BODY(b01_only_a_backend_that_knows_allocations_tells_them)
{
	weir_allocation found = {.size = sizeof found};

	assert_false(wr_system_allocation(rig->system, rig->cell, &found));
	rig_own_backend(rig)->allocation = say_allocation;
	assert_true(wr_system_allocation(rig->system, rig->cell, &found));
	assert_ptr_equal(found.data, rig->cell);
	assert_false(wr_system_allocation(rig->system, NULL, &found));
	rig->backend.is_closed = NULL;
	assert_false(wr_system_is_closed(rig->system, rig->cell));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(xb24_work_of_a_native_stream_waits_for_a_fence),
		cmocka_unit_test(t01_a_wait_is_for_the_last_record_before_it),
		cmocka_unit_test(xb24_a_complete_fence_is_not_waited_for_and_a_false_one_refused),
		cmocka_unit_test(g03_a_native_handle_stays_the_same_and_makes_the_stream_dirty),
		cmocka_unit_test(g03_a_handle_is_given_out_when_no_inline_callback_is_being_enqueued),
		cmocka_unit_test(t15_giving_out_the_native_handle_begins_the_span),
		cmocka_unit_test(t15_work_that_the_program_captures_begins_no_span),
		cmocka_unit_test(e02_more_busy_streams_than_hardware_queues_are_warned_of_once),
		cmocka_unit_test(e02_as_many_busy_streams_as_hardware_queues_are_no_crowd),
		cmocka_unit_test(g03_a_stream_whose_handle_was_given_out_is_kept_and_given_again),
		cmocka_unit_test(b01_only_a_backend_that_knows_allocations_tells_them),
		cmocka_unit_test(t05_where_nothing_remains_there_is_no_rest),
	};

	rig_backend = "host";
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The contract of streams, fences, devices, the default stream and partitions (T1, T2). */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "contract.h"
#include "tests/calls.h"

#define MS     1000000
#define SECOND (1000 * (int64_t)MS)

/* --- streams and fences --- */

RIG_BODY(t1_a_stream_keeps_its_order)
{
	rig_store(rig, rig->a, 1, 2 * MS);
	rig_store(rig, rig->a, 2, 0);
	rig_add(rig, rig->a, 40, MS);
	assert_int_equal(rig_read(rig, rig->a), 42);
}

RIG_BODY(t1_a_fence_that_was_never_recorded_is_refused)
{
	weir_fence fence = rig_record(rig->a), next = {fence.stream, fence.value + 1};

	assert_int_equal(wr_fence_query(rig->system, next), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "was never recorded"));
	assert_int_equal(weir_stream_wait(rig->b, next), WEIR_E_INVALID);
	rig_wait(rig, fence);
}

/* What this weir does not know of it must be zero. */
RIG_BODY(b05_a_kernel_of_a_newer_header_is_launched_if_it_asks_for_nothing_new)
{
	struct {
		weir_kernel kernel;
		uint64_t more;
	} newer = {.kernel = rig_sleep};
	const struct rig_work work = {0};

	if (rig_is("cuda")) /* this kernel has no form for it */
		return;
	newer.kernel.size = sizeof newer;
	assert_int_equal(weir_stream_launch(rig->a, &newer.kernel, &work, sizeof work), WEIR_OK);
	newer.more = 1;
	assert_int_equal(weir_stream_launch(rig->a, &newer.kernel, &work, sizeof work), WEIR_E_UNSUPPORTED);
	rig_wait(rig, rig_record(rig->a));
}

RIG_BODY(t1_an_id_is_never_given_again)
{
	uint64_t old = weir_stream_id(rig->c);
	weir_fence fence;

	rig_store(rig, rig->c, 1, 0);
	fence = rig_record(rig->c);
	wr_stream_close(rig->c);
	rig_wait(rig, fence);
	rig->c = rig_stream(rig, "next");
	assert_int_not_equal(weir_stream_id(rig->c), old);
	assert_int_equal(wr_fence_query(rig->system, fence), WEIR_OK);         /* an old fence is complete */
	assert_string_equal(wr_fence_producer(rig->system, fence, NULL), "?"); /* not the next name */
}

RIG_BODY(t1_a_closed_stream_is_not_given_out_before_it_has_drained)
{
	weir_stream *busy = rig->c;

	rig_store(rig, busy, 1, 20 * MS);
	wr_stream_close(busy);
	rig->c = rig_stream(rig, "next");
	assert_ptr_not_equal(rig->c, busy);
}

RIG_BODY(t2_a_wait_orders_two_streams)
{
	rig_store(rig, rig->a, 1, 5 * MS);
	assert_int_equal(weir_stream_wait(rig->b, rig_record(rig->a)), WEIR_OK);
	rig_add(rig, rig->b, 1, 0);
	assert_int_equal(rig_read(rig, rig->b), 2);
}

RIG_BODY(t2_streams_overlap)
{
	rig_meet(rig, rig->a, 3);
	rig_meet(rig, rig->b, 3);
	rig_meet(rig, rig->c, 3);
	rig_wait(rig, rig_record(rig->a));
	rig_wait(rig, rig_record(rig->b));
	rig_wait(rig, rig_record(rig->c));
	assert_int_equal(rig_read(rig, rig->a), 3); /* none gave up */
}

RIG_BODY(t2_a_wait_is_for_what_was_recorded_then)
{
	weir_fence first;

	rig_store(rig, rig->a, 1, 0);
	first = rig_record(rig->a);
	rig_store(rig, rig->a, 2, 300 * MS);
	assert_int_equal(weir_stream_wait(rig->b, first), WEIR_OK);
	rig_wait(rig, rig_record(rig->b));
	assert_int_equal(wr_fence_query(rig->system, rig_record(rig->a)), WEIR_E_BUSY);
}

RIG_BODY(t2_no_fence_is_complete)
{
	weir_fence none = {0, 0};

	assert_int_equal(wr_fence_query(rig->system, none), WEIR_OK);
	assert_int_equal(wr_fence_wait(rig->system, none, 0), WEIR_OK);
	assert_int_equal(weir_stream_wait(rig->a, none), WEIR_OK);
	assert_false(wr_stream_dirty(rig->a));
}

RIG_BODY(t2_fences_that_were_never_recorded_and_foreign_ones_are_errors)
{
	weir_fence future = {weir_stream_id(rig->a), 1000}, zero = {weir_stream_id(rig->a), 0};
	weir_fence foreign = {weir_stream_id(rig->a) + ((uint64_t)1 << 40), 1}, unknown = {UINT64_MAX, 1};
	weir_fence others = {weir_stream_id(rig->a) + ((uint64_t)1 << 48), 1};
	weir_fence far = {weir_stream_id(rig->a) + 1000, 1}, of_none = {0, 5};

	assert_int_equal(wr_fence_query(rig->system, future), WEIR_E_INVALID);
	assert_int_equal(wr_fence_query(rig->system, zero), WEIR_E_INVALID);
	assert_int_equal(wr_fence_query(rig->system, foreign), WEIR_E_INVALID);
	assert_int_equal(wr_fence_query(rig->system, unknown), WEIR_E_INVALID);
	assert_int_equal(wr_fence_query(rig->system, others), WEIR_E_INVALID); /* a fence of another system */
	assert_int_equal(wr_fence_query(rig->system, far), WEIR_E_INVALID);
	assert_int_equal(wr_fence_query(rig->system, of_none), WEIR_E_INVALID);
	assert_int_equal(weir_stream_wait(rig->b, foreign), WEIR_E_INVALID);
}

RIG_BODY(t2_a_fence_stays_complete_when_its_event_is_used_again)
{
	weir_fence first = rig_record(rig->a), fence = first;

	for (int i = 0; i < 3 * WR_EVENTS; i++) {
		fence = rig_record(rig->a);
		if (i % 16 == 0)
			rig_wait(rig, fence);
	}
	rig_wait(rig, fence);
	assert_int_equal(wr_fence_query(rig->system, first), WEIR_OK);
	assert_true(wr_fence_known_complete(rig->system, first));
	assert_ptr_equal(rig->a->ring->older, NULL); /* the event ring has not grown */
}

RIG_BODY(t2_more_points_than_events_are_pending)
{
	weir_fence fences[3 * WR_EVENTS];

	rig_meet(rig, rig->a, 2); /* ends when c meets it */
	for (int i = 0; i < 3 * WR_EVENTS; i++)
		fences[i] = rig_record(rig->a);
	assert_int_equal(wr_fence_query(rig->system, fences[0]), WEIR_E_BUSY);
	assert_int_equal(wr_fence_query(rig->system, fences[3 * WR_EVENTS - 1]), WEIR_E_BUSY);
	rig_meet(rig, rig->c, 2);
	rig_wait(rig, fences[WR_EVENTS]);
	for (int i = 0; i < 3 * WR_EVENTS; i++)
		rig_wait(rig, fences[i]);
}

RIG_BODY(t2_waits_that_change_nothing_are_left_out)
{
	weir_fence first, second;

	rig_store(rig, rig->a, 1, 20 * MS);
	first = rig_record(rig->a);
	second = rig_record(rig->a);
	assert_int_equal(weir_stream_wait(rig->a, second), WEIR_OK);
	assert_false(wr_stream_dirty(rig->a)); /* its own fence */
	assert_int_equal(weir_stream_wait(rig->b, second), WEIR_OK);
	assert_true(wr_stream_dirty(rig->b));
	rig_record(rig->b);
	assert_int_equal(weir_stream_wait(rig->b, first), WEIR_OK);
	assert_false(wr_stream_dirty(rig->b)); /* b waits for a later point already */
	assert_int_equal(copy_bytes(rig->b, rig->copy, rig->cell, 1), WEIR_OK);
	assert_true(wr_stream_dirty(rig->b)); /* a copy is work */
	rig_wait(rig, second);
	assert_int_equal(weir_stream_wait(rig->c, first), WEIR_OK);
	assert_false(wr_stream_dirty(rig->c)); /* it is complete */
}

RIG_BODY(t2_a_host_wait_ends_in_time)
{
	weir_fence fence;

	rig_meet(rig, rig->a, 2);
	fence = rig_record(rig->a);
	assert_int_equal(wr_fence_wait(rig->system, fence, wr_now() + 5 * MS), WEIR_E_TIMEOUT);
	rig_meet(rig, rig->b, 2);
	assert_int_equal(rig_read(rig, rig->b), 2);
}

RIG_BODY(t2_a_producer_has_a_name_and_an_age)
{
	int64_t age = -1;
	weir_fence fence, foreign = {UINT64_MAX, 1};

	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record(rig->a);
	wr_thread_sleep(2 * MS);
	assert_string_equal(wr_fence_producer(rig->system, fence, &age), "a");
	assert_true(age >= 2 * MS && age < SECOND);
	assert_string_equal(wr_fence_producer(rig->system, foreign, &age), "?");
}

RIG_BODY(t1_a_value_that_was_never_recorded_has_no_producer_and_protects_no_memory)
{
	weir_fence fence = rig_record(rig->a);
	int64_t age = -1;

	fence.value++;
	assert_string_equal(wr_fence_producer(rig->system, fence, &age), "?");
	assert_int_equal(age, 0);
	assert_false(wr_fence_known_complete(rig->system, fence));
	assert_true(wr_fence_may_free(rig->system, fence));
}

RIG_BODY(t1_a_kernel_without_a_form_for_the_backend_is_refused)
{
	static const char most[WEIR_ARGUMENTS_MAX];
	weir_kernel none = {.size = sizeof none, .name = "nothing"};

	assert_int_equal(weir_stream_launch(rig->a, &none, NULL, 0), WEIR_E_UNSUPPORTED);
	assert_non_null(strstr(weir_last_error(), "nothing"));
	assert_int_equal(weir_stream_launch(rig->a, &rig_broken, "", WEIR_ARGUMENTS_MAX + 1), WEIR_E_INVALID);
	assert_int_equal(weir_stream_launch(rig->a, &none, most, sizeof most), WEIR_E_UNSUPPORTED);
}

RIG_BODY(t1_only_cuda_wraps)
{
	weir_stream *stream = NULL;
	void *native = weir_stream_native(rig->a);

	if (!rig_is("cuda")) {
		assert_null(native);
		assert_int_equal(wr_stream_wrap(rig->system, 0, rig, &stream), WEIR_E_UNSUPPORTED);
		return;
	}
	assert_true(wr_stream_dirty(rig->a)); /* work may come by the native handle */
	assert_int_equal(wr_stream_wrap(rig->system, 0, native, &stream), WEIR_OK);
	rig_store(rig, rig->a, 3, 5 * MS);
	rig_add(rig, stream, 4, 0);
	assert_int_equal(rig_read(rig, stream), 7);
	wr_stream_close(stream);
}

RIG_BODY(t1_no_such_device)
{
	weir_stream *stream;
	void *memory;

	assert_int_equal(wr_stream_open(rig->system, &(struct wr_stream_spec){.device = 99}, "x", &stream),
			 WEIR_E_INVALID);
	assert_int_equal(wr_system_alloc(rig->system, 99, 1, &memory), WEIR_E_INVALID);
	assert_int_equal(wr_system_alloc(rig->system, -2, 1, &memory), WEIR_E_INVALID);
}

/* --- several devices --- */

static weir_stream *stream_of(struct rig *rig, const struct wr_stream_spec *spec)
{
	weir_stream *stream = NULL;

	assert_int_equal(wr_stream_open(rig->system, spec, "one more", &stream), WEIR_OK);
	return stream;
}

static weir_stream *stream_on(struct rig *rig, int device)
{
	return stream_of(rig, &(struct wr_stream_spec){.device = device});
}

static int *cell_on(struct rig *rig, int device)
{
	void *memory = NULL;

	assert_int_equal(wr_system_alloc(rig->system, device, sizeof(int), &memory), WEIR_OK);
	return memory;
}

/* Makes the rig's kernels work on this cell. Returns the one before. */
static int *work_on(struct rig *rig, int *cell)
{
	int *before = rig->cell;

	rig->cell = cell;
	return before;
}

static bool has_two_devices(struct rig *rig)
{
	return wr_system_devices(rig->system) > 1;
}

RIG_BODY(t1_each_device_runs_its_streams)
{
	weir_stream *stream;

	if (!has_two_devices(rig))
		return;
	stream = stream_on(rig, 1);
	assert_int_equal(weir_stream_device(stream), 1);
	work_on(rig, cell_on(rig, 1));
	rig_store(rig, stream, 5, MS);
	rig_add(rig, stream, 6, 0);
	assert_int_equal(rig_read(rig, stream), 11);
	wr_stream_close(stream);
}

RIG_BODY(t2_a_wait_for_another_device_orders_and_copies_go_between_devices)
{
	int *there, *here;
	weir_stream *stream;

	if (!has_two_devices(rig))
		return;
	there = cell_on(rig, 1);
	stream = stream_on(rig, 1);
	rig_store(rig, rig->a, 7, 20 * MS);
	assert_int_equal(weir_stream_wait(stream, rig_record(rig->a)), WEIR_OK);
	assert_int_equal(copy_bytes(stream, there, rig->cell, sizeof(int)), WEIR_OK);
	here = work_on(rig, there);
	rig_add(rig, stream, 1, 20 * MS);
	work_on(rig, here);
	assert_int_equal(weir_stream_wait(rig->b, rig_record(stream)), WEIR_OK);
	assert_int_equal(copy_bytes(rig->b, here, there, sizeof(int)), WEIR_OK);
	rig_add(rig, rig->b, 10, 0);
	assert_int_equal(rig_read(rig, rig->b), 18);
	wr_stream_close(stream);
}

RIG_BODY(t1_a_device_is_not_behind_another)
{
	enum { BUSY = 6 };
	weir_stream *busy[BUSY], *stream;
	weir_fence slow[BUSY];

	if (!has_two_devices(rig))
		return;
	stream = stream_on(rig, 1);
	for (int i = 0; i < BUSY; i++) {
		busy[i] = rig_stream(rig, "busy");
		work_on(rig, cell_on(rig, 0));
		rig_store(rig, busy[i], i, 300 * MS);
		slow[i] = rig_record(busy[i]);
	}
	work_on(rig, cell_on(rig, 1));
	rig_store(rig, stream, 9, 0);
	assert_int_equal(rig_read(rig, stream), 9);
	assert_int_equal(wr_fence_query(rig->system, slow[0]), WEIR_E_BUSY);
	for (int i = 0; i < BUSY; i++)
		wr_stream_close(busy[i]);
	wr_stream_close(stream);
}

/* --- the default stream --- */

RIG_BODY(f71_blocking_streams_and_the_default_one_wait_for_each_other)
{
	const struct wr_stream_spec blocking = {.flags = WR_STREAM_BLOCKING};
	weir_stream *x = stream_of(rig, &blocking), *y = stream_of(rig, &blocking), *legacy = NULL;

	assert_int_equal(wr_stream_default(rig->system, 0, "default", &legacy), WEIR_OK);
	rig_store(rig, x, 5, 20 * MS);
	rig_add(rig, legacy, 1, 20 * MS);
	rig_add(rig, y, 10, 0);
	rig_add(rig, legacy, 100, 0);
	assert_int_equal(rig_read(rig, legacy), 116);
	rig_store(rig, legacy, 3, 20 * MS);
	rig_add(rig, x, 4, 0);
	assert_int_equal(rig_read(rig, x), 7);
	wr_stream_close(x);
	rig_add(rig, y, 1, 0); /* closing one view leaves the others open */
	assert_int_equal(rig_read(rig, y), 8);
	wr_stream_close(y);
	wr_stream_close(legacy);
}

/* --- partitions --- */

static void split(struct rig *rig, uint32_t first, uint32_t second, struct wr_partition **out)
{
	uint32_t sizes[] = {first, second}, sms[3] = {0, 0, 0};
	struct wr_partitions_spec spec = {.name = "parts", .sizes = sizes, .count = 2, .minimum = 1};

	assert_int_equal(wr_partitions_create(rig->system, &spec, out, sms), WEIR_OK);
	assert_true(sms[0] >= first && sms[1] >= second);
	assert_true(!out[2] == !sms[2]);
}

RIG_BODY(t1_streams_of_all_partitions_run)
{
	struct wr_partition *parts[3] = {NULL, NULL, NULL};
	weir_stream *streams[3];

	if (rig_is("cuda"))
		split(rig, 8, 17, parts);
	else
		split(rig, 1, 3, parts);
	for (int i = 0; i < 3; i++)
		streams[i] =
			stream_of(rig, &(struct wr_stream_spec){.partition = parts[i], .priority = -100});
	for (int i = 0; i < 3; i++) {
		if (i)
			assert_int_equal(weir_stream_wait(streams[i], rig_record(streams[i - 1])), WEIR_OK);
		rig_add(rig, streams[i], 1 << i, 5 * MS);
	}
	assert_int_equal(weir_stream_wait(rig->a, rig_record(streams[2])), WEIR_OK);
	assert_int_equal(rig_read(rig, rig->a), 7);
	for (int i = 0; i < 3; i++)
		wr_stream_close(streams[i]);
}

static _Atomic int at_once, most_at_once;

static int count_at_once(const void *arguments)
{
	int now = wr_fetch_add(&at_once, 1) + 1, most = wr_load(&most_at_once);

	(void)arguments;
	while (most < now && !wr_cas(&most_at_once, &most, now))
		;
	weir_sleep(5 * MS);
	wr_fetch_sub(&at_once, 1);
	return 0;
}

RIG_BODY(t1_a_partition_of_threads_runs_as_many_kernels_at_once)
{
	enum { STREAMS = 6, KERNELS = 4 };
	static const weir_kernel kernel = {.size = sizeof kernel, .name = "count", .host = count_at_once};
	struct wr_partition *parts[3];
	weir_stream *streams[STREAMS];

	if (rig_is("cuda"))
		return;
	split(rig, 2, 1, parts);
	wr_store(&most_at_once, 0);
	for (int i = 0; i < STREAMS; i++)
		streams[i] = stream_of(rig, &(struct wr_stream_spec){.partition = parts[0]});
	for (int i = 0; i < STREAMS * KERNELS; i++)
		assert_int_equal(weir_stream_launch(streams[i % STREAMS], &kernel, NULL, 0), WEIR_OK);
	for (int i = 0; i < STREAMS; i++)
		rig_wait(rig, rig_record(streams[i]));
	assert_in_range(wr_load(&most_at_once), 1, 2);
	for (int i = 0; i < STREAMS; i++)
		wr_stream_close(streams[i]);
}

RIG_BODY(t1_a_partition_has_no_blocking_streams)
{
	struct wr_partition *parts[3];
	struct wr_stream_spec spec = {.flags = WR_STREAM_BLOCKING};
	weir_stream *stream = NULL;

	split(rig, rig_is("cuda") ? 8 : 1, rig_is("cuda") ? 8 : 1, parts);
	spec.partition = parts[0];
	assert_int_equal(wr_stream_open(rig->system, &spec, "x", &stream), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "non-blocking"));
}

/* The set of multiprocessors that run kernels of this stream. */
static void read_places(struct rig *rig, weir_stream *stream, uint32_t set[8])
{
	const size_t bytes = 8 * sizeof(uint32_t);
	void *there = NULL, *here = NULL;

	assert_int_equal(wr_system_alloc(rig->system, 0, bytes, &there), WEIR_OK);
	assert_int_equal(wr_system_alloc(rig->system, WEIR_DEVICE_HOST, bytes, &here), WEIR_OK);
	memset(here, 0, bytes);
	assert_int_equal(copy_bytes(stream, there, here, bytes), WEIR_OK);
	assert_int_equal(weir_stream_launch(stream, &rig_places, &there, sizeof there), WEIR_OK);
	assert_int_equal(copy_bytes(stream, here, there, bytes), WEIR_OK);
	rig_wait(rig, rig_record(stream));
	memcpy(set, here, bytes);
}

RIG_BODY(t1_a_green_context_keeps_to_its_multiprocessors)
{
	uint32_t sizes[] = {8, 24}, sms[3], sets[3][8] = {{0}}, seen[8] = {0};
	struct wr_partitions_spec spec = {.name = "parts", .sizes = sizes, .count = 2};
	struct wr_partition *parts[3];

	if (!rig_is("cuda"))
		return;
	assert_int_equal(wr_partitions_create(rig->system, &spec, parts, sms), WEIR_OK);
	for (int i = 0; i < 3 && parts[i]; i++) {
		weir_stream *stream = stream_of(rig, &(struct wr_stream_spec){.partition = parts[i]});
		unsigned count = 0;

		read_places(rig, stream, sets[i]);
		for (int word = 0; word < 8; word++) {
			count += (unsigned)__builtin_popcount(sets[i][word]);
			assert_int_equal(seen[word] & sets[i][word], 0);
			seen[word] |= sets[i][word];
		}
		assert_in_range(count, 1, sms[i]);
		wr_stream_close(stream);
	}
}

RIG_BODY(t1_a_priority_that_the_device_does_not_have_is_clamped)
{
	weir_stream *urgent = stream_of(rig, &(struct wr_stream_spec){.priority = -1000}),
		    *lazy = stream_of(rig, &(struct wr_stream_spec){.priority = 1000});

	rig_store(rig, urgent, 1, MS);
	assert_int_equal(weir_stream_wait(lazy, rig_record(urgent)), WEIR_OK);
	rig_add(rig, lazy, 1, 0);
	assert_int_equal(rig_read(rig, lazy), 2);
	wr_stream_close(urgent);
	wr_stream_close(lazy);
}

static void refuses(struct rig *rig, uint32_t first, uint32_t second, uint32_t minimum, const char *says)
{
	uint32_t sizes[] = {first, second}, sms[3];
	struct wr_partitions_spec spec = {.name = "parts", .sizes = sizes, .count = 2, .minimum = minimum};
	struct wr_partition *out[3];

	assert_int_equal(wr_partitions_create(rig->system, &spec, out, sms), WEIR_E_INVALID);
	if (!strstr(weir_last_error(), says))
		fail_msg("'%s' does not say '%s'", weir_last_error(), says);
}

RIG_BODY(t1_sizes_that_cannot_be_had_are_refused)
{
	refuses(rig, 8, 3, 4, "green_context_pool 'parts': partition 1 has 3 SMs, the least is 4");
	refuses(rig, 0, 8, 0, "green_context_pool 'parts': partition 0 has 0 SMs, the least is 1");
	refuses(rig, 8, 100000, 2, "green_context_pool 'parts': partition 1 wants 100000 SMs");
	if (!rig_is("cuda"))
		return;
	refuses(rig, 8, 100000, 2, " SMs, but only ");
	refuses(rig, 8, 100000, 2, " are left; sizes there are multiples of ");
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(t1_a_stream_keeps_its_order),
	cmocka_unit_test(t1_a_fence_that_was_never_recorded_is_refused),
	cmocka_unit_test(b05_a_kernel_of_a_newer_header_is_launched_if_it_asks_for_nothing_new),
	cmocka_unit_test(t1_an_id_is_never_given_again),
	cmocka_unit_test(t1_a_closed_stream_is_not_given_out_before_it_has_drained),
	cmocka_unit_test(t2_a_wait_orders_two_streams),
	cmocka_unit_test(t2_streams_overlap),
	cmocka_unit_test(t2_a_wait_is_for_what_was_recorded_then),
	cmocka_unit_test(t2_no_fence_is_complete),
	cmocka_unit_test(t2_fences_that_were_never_recorded_and_foreign_ones_are_errors),
	cmocka_unit_test(t2_a_fence_stays_complete_when_its_event_is_used_again),
	cmocka_unit_test(t2_more_points_than_events_are_pending),
	cmocka_unit_test(t2_waits_that_change_nothing_are_left_out),
	cmocka_unit_test(t2_a_host_wait_ends_in_time),
	cmocka_unit_test(t2_a_producer_has_a_name_and_an_age),
	cmocka_unit_test(t1_a_value_that_was_never_recorded_has_no_producer_and_protects_no_memory),
	cmocka_unit_test(t1_a_kernel_without_a_form_for_the_backend_is_refused),
	cmocka_unit_test(t1_only_cuda_wraps),
	cmocka_unit_test(t1_no_such_device),
	cmocka_unit_test(t1_each_device_runs_its_streams),
	cmocka_unit_test(t2_a_wait_for_another_device_orders_and_copies_go_between_devices),
	cmocka_unit_test(t1_a_device_is_not_behind_another),
	cmocka_unit_test(f71_blocking_streams_and_the_default_one_wait_for_each_other),
	cmocka_unit_test(t1_streams_of_all_partitions_run),
	cmocka_unit_test(t1_a_partition_of_threads_runs_as_many_kernels_at_once),
	cmocka_unit_test(t1_a_partition_has_no_blocking_streams),
	cmocka_unit_test(t1_a_green_context_keeps_to_its_multiprocessors),
	cmocka_unit_test(t1_a_priority_that_the_device_does_not_have_is_clamped),
	cmocka_unit_test(t1_sizes_that_cannot_be_had_are_refused),
};

const struct contract_part contract_streams = {tests, sizeof tests / sizeof *tests};

/*
 * What every backend must do. Run as `contract BACKEND`, and as `contract BACKEND failure` for the tests that
 * lose the device, which stays lost for the process. Exit code 77: there is no such device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "streams/memory.h"
#include "rig.h"
#include "test.h"

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
	int64_t begun = wr_now();

	rig_store(rig, rig->a, 1, 60 * MS);
	rig->cell++;
	rig_store(rig, rig->b, 1, 60 * MS);
	rig->cell++;
	rig_store(rig, rig->c, 1, 60 * MS);
	rig_wait(rig, rig_record(rig->a));
	rig_wait(rig, rig_record(rig->b));
	rig_wait(rig, rig_record(rig->c));
	assert_true(wr_now() - begun < 120 * MS);
}

RIG_BODY(t2_a_wait_is_for_what_was_recorded_then)
{
	weir_fence first;

	rig_store(rig, rig->a, 1, 0);
	first = rig_record(rig->a);
	rig_store(rig, rig->a, 2, 30 * MS);
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
	assert_true(wr_fence_seen(rig->system, first));
	assert_ptr_equal(rig->a->ring->older, NULL); /* the event ring has not grown */
}

RIG_BODY(t2_more_points_than_events_are_pending)
{
	weir_fence fences[3 * WR_EVENTS];

	rig_store(rig, rig->a, 1, 300 * MS);
	for (int i = 0; i < 3 * WR_EVENTS; i++)
		fences[i] = rig_record(rig->a);
	assert_int_equal(wr_fence_query(rig->system, fences[0]), WEIR_E_BUSY);
	assert_int_equal(wr_fence_query(rig->system, fences[3 * WR_EVENTS - 1]), WEIR_E_BUSY);
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
	assert_int_equal(weir_stream_copy(rig->b, rig->copy, rig->cell, 1), WEIR_OK);
	assert_true(wr_stream_dirty(rig->b)); /* a copy is work */
	rig_wait(rig, second);
	assert_int_equal(weir_stream_wait(rig->c, first), WEIR_OK);
	assert_false(wr_stream_dirty(rig->c)); /* it is complete */
}

RIG_BODY(t2_a_host_wait_ends_in_time)
{
	weir_fence fence;
	int64_t begun = wr_now();

	rig_store(rig, rig->a, 1, 200 * MS);
	fence = rig_record(rig->a);
	assert_int_equal(wr_fence_wait(rig->system, fence, begun + 5 * MS), WEIR_E_TIMEOUT);
	assert_true(wr_now() - begun < 150 * MS);
	rig_wait(rig, fence);
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
	assert_int_equal(weir_stream_copy(stream, there, rig->cell, sizeof(int)), WEIR_OK);
	here = work_on(rig, there);
	rig_add(rig, stream, 1, 20 * MS);
	work_on(rig, here);
	assert_int_equal(weir_stream_wait(rig->b, rig_record(stream)), WEIR_OK);
	assert_int_equal(weir_stream_copy(rig->b, here, there, sizeof(int)), WEIR_OK);
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
	const struct wr_stream_spec blocking = {.flags = WEIR_STREAM_POOL_BLOCKING};
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
	struct wr_stream_spec spec = {.flags = WEIR_STREAM_POOL_BLOCKING};
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
	assert_int_equal(weir_stream_copy(stream, there, here, bytes), WEIR_OK);
	assert_int_equal(weir_stream_launch(stream, &rig_places, &there, sizeof there), WEIR_OK);
	assert_int_equal(weir_stream_copy(stream, here, there, bytes), WEIR_OK);
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

/* --- flags --- */

static bool can_write_flags(struct rig *rig)
{
	const struct wr_backend *backend = rig->system->backend;

	return !backend->can_write_flag || !backend->can_write_flag(rig->system->native, 0);
}

static _Atomic uint32_t *a_word(struct rig *rig)
{
	_Atomic uint32_t *flag;
	void *memory = NULL;

	assert_int_equal(wr_system_alloc(rig->system, WEIR_DEVICE_HOST, sizeof *flag, &memory), WEIR_OK);
	flag = memory;
	wr_store(flag, 0);
	return flag;
}

static void write_flag_word(struct rig *rig, weir_stream *stream, _Atomic uint32_t *flag, uint32_t value)
{
	const struct wr_backend *backend = rig->system->backend;

	assert_int_equal(backend->write_flag(rig->system->native, 0, stream->native, flag, value), WEIR_OK);
}

/* Waits for the value; the word must only grow. */
static void wait_until_written(_Atomic uint32_t *flag, uint32_t value)
{
	int64_t deadline = wr_now() + 10 * SECOND;
	uint32_t last = 0, now;

	for (; (now = wr_load(flag)) != value && wr_now() < deadline; last = now) {
		assert_true(now >= last && now < value);
		wr_thread_sleep(10000);
	}
	assert_int_equal(wr_load(flag), value);
}

RIG_BODY(g4_a_flag_is_written_when_the_work_before_it_is_done)
{
	_Atomic uint32_t *flag = a_word(rig);

	if (!can_write_flags(rig))
		return;
	for (int i = 1; i <= 10; i++) {
		rig_add(rig, rig->a, 1, 2 * MS);
		assert_int_equal(weir_stream_copy(rig->a, rig->copy, rig->cell, sizeof *rig->cell), WEIR_OK);
		write_flag_word(rig, rig->a, flag, (uint32_t)i);
		wait_until_written(flag, (uint32_t)i);
		assert_int_equal(*rig->copy, i);
	}
}

RIG_BODY(g4_the_word_of_a_flag_only_grows)
{
	_Atomic uint32_t *flag = a_word(rig);

	if (!can_write_flags(rig))
		return;
	for (uint32_t i = 1; i <= 50; i++) {
		rig_add(rig, rig->a, 1, i % 3 * MS);
		write_flag_word(rig, rig->a, flag, i);
	}
	wait_until_written(flag, 50);
	rig_wait(rig, rig_record(rig->a));
	assert_int_equal(wr_load(flag), 50);
}

RIG_BODY(f12_a_lost_flag_leaves_the_word_as_it_was)
{
	struct wr_sim_knobs knobs = {.lost = 1000};
	_Atomic uint32_t *flag = a_word(rig);

	if (!rig_is("sim"))
		return;
	wr_system_set_knobs(rig->system, &knobs);
	write_flag_word(rig, rig->a, flag, 1);
	rig_wait(rig, rig_record(rig->a));
	assert_int_equal(wr_load(flag), 0);
}

/* --- live references --- */

RIG_BODY(s4_a_busy_stream_holds_one_reference_until_its_last_fence_was_seen)
{
	weir_fence first, last;

	wr_stream_begin_tick(rig->a);
	wr_stream_begin_tick(rig->a);
	assert_int_equal(rig->waker.live, 1);
	rig_store(rig, rig->a, 1, 0);
	first = rig_record(rig->a);
	wr_stream_begin_tick(rig->a);
	rig_store(rig, rig->a, 1, 20 * MS);
	last = rig_record(rig->a);
	rig_wait(rig, first);
	assert_int_equal(rig->waker.live, 1);
	rig_wait(rig, last);
	assert_int_equal(rig->waker.live, 0);
}

RIG_BODY(s4_a_tick_that_enqueued_nothing_gives_its_reference_back)
{
	int64_t next;

	wr_stream_begin_tick(rig->a);
	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_int_equal(rig->waker.live, 0);
	rig_store(rig, rig->a, 1, MS); /* slow work is not lost */
	rig_record(rig->a);
	assert_int_equal(rig->waker.live, 1);
	rig_wait(rig, rig_record(rig->a));
	assert_int_equal(rig->waker.live, 0);
}

RIG_BODY(s4_a_tick_that_has_work_keeps_its_reference)
{
	wr_stream_begin_tick(rig->a);
	rig_store(rig, rig->a, 1, 20 * MS);
	wr_stream_drop_ref_if_complete(rig->a);
	assert_int_equal(rig->waker.live, 1); /* the work is not recorded yet */
	rig_record(rig->a);
	wr_stream_begin_tick(rig->a);
	wr_stream_drop_ref_if_complete(rig->a);
	assert_int_equal(rig->waker.live, 1); /* the previous tick still has work */
	rig_wait(rig, rig_record(rig->a));
	assert_int_equal(rig->waker.live, 0);
}

RIG_BODY(s4_a_stream_that_is_closed_with_work_holds_no_run_open)
{
	wr_stream_begin_tick(rig->a);
	rig_wait(rig, rig_record(rig->a));
	assert_int_equal(rig->waker.live, 0);
	rig_store(rig, rig->a, 1, 20 * MS);
	wr_stream_close(rig->a);
	assert_int_equal(rig->waker.live, 0);
	rig->a = rig_stream(rig, "next");
}

RIG_BODY(s4_an_abandoned_run_gets_its_references_back_once)
{
	weir_fence fence;

	wr_stream_begin_tick(rig->a);
	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record(rig->a);
	wr_system_drop_all_refs(rig->system);
	assert_int_equal(rig->waker.live, 0);
	rig_wait(rig, fence);
	assert_int_equal(rig->waker.live, 0);
}

RIG_BODY(s4_a_stream_busy_beyond_its_run_owes_the_next_one_nothing)
{
	struct rig_waker next;
	weir_fence fence;

	wr_stream_begin_tick(rig->a);
	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record(rig->a);
	wr_system_detach(rig->system);
	assert_int_equal(rig->waker.live, 0);
	rig_fill_waker(&next);
	wr_system_attach(rig->system, &next.waker);
	rig_wait(rig, fence);
	assert_int_equal(next.live, 0);
	wr_system_detach(rig->system);
}

/* --- signals --- */

static wr_token arm(struct rig *rig, uint32_t entity, weir_fence fence)
{
	wr_token token = 0;

	assert_int_equal(wr_signal_arm(rig->system, entity, &fence, 1, &token), WEIR_OK);
	assert_int_not_equal(token, 0);
	return token;
}

RIG_BODY(g3_one_signal_waits_for_all_fences)
{
	weir_fence fences[3];
	wr_token token;

	rig_store(rig, rig->a, 1, 0);
	rig->cell++;
	rig_store(rig, rig->b, 1, 20 * MS);
	rig->cell++;
	rig_store(rig, rig->c, 1, 10 * MS);
	fences[0] = rig_record(rig->a);
	fences[1] = rig_record(rig->b);
	fences[2] = rig_record(rig->c);
	assert_int_equal(wr_signal_arm(rig->system, 5, fences, 3, &token), WEIR_OK);
	assert_int_equal(wr_system_outstanding(rig->system), 1);
	rig_until_poked(rig, 5);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wr_fence_query(rig->system, fences[i]), WEIR_OK);
	rig_until_kicked(rig, 1);
	wr_system_collect(rig->system);
	assert_int_equal(rig->waker.poked[5], 1);
	assert_int_equal(wr_system_outstanding(rig->system), 0);
}

RIG_BODY(g1_a_cancelled_signal_pokes_no_entity)
{
	weir_fence fence;

	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record(rig->a);
	wr_signal_cancel(rig->system, arm(rig, 5, fence));
	wr_signal_cancel(rig->system, 0);
	arm(rig, 6, fence);
	rig_until_poked(rig, 6);
	while (wr_system_outstanding(rig->system))
		wr_thread_sleep(10000);
	assert_int_equal(rig->waker.poked[5], 0);
	assert_int_equal(wr_system_stale(rig->system), 1);
}

RIG_BODY(g3_a_signal_for_foreign_fences_is_refused)
{
	weir_fence foreign = {UINT64_MAX, 1};
	wr_token token;

	assert_int_equal(wr_signal_arm(rig->system, 5, &foreign, 1, &token), WEIR_E_INVALID);
	assert_int_equal(wr_system_outstanding(rig->system), 0);
}

RIG_BODY(g2_at_the_bound_entities_wait_in_order)
{
	weir_fence fence;
	wr_token token;

	rig->system->signals.bound = 2;
	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record(rig->a);
	wr_signal_cancel(rig->system, arm(rig, 1, fence)); /* counts until it has fired */
	arm(rig, 2, fence);
	for (uint32_t entity = 3; entity <= 6; entity++)
		assert_int_equal(wr_signal_arm(rig->system, entity, &fence, 1, &token), WEIR_E_BUSY);
	assert_int_equal(wr_signal_arm(rig->system, 3, &fence, 1, &token),
			 WEIR_E_BUSY); /* in the FIFO already */
	assert_int_equal(rig->waker.live, 4);
	wr_signal_leave_fifo(rig->system, 4);
	wr_signal_leave_fifo(rig->system, 4);
	assert_int_equal(rig->waker.live, 3);
	rig_until_kicked(rig, 2);
	while (wr_system_outstanding(rig->system))
		wr_thread_sleep(10000);
	wr_system_collect(rig->system);
	assert_int_equal(rig->waker.poked[3], 1);
	assert_int_equal(rig->waker.poked[4], 0);
	assert_int_equal(rig->waker.poked[5], 1);
	assert_int_equal(rig->waker.live, rig->waker.poked[6] ? 0 : 1);
}

RIG_BODY(g2_a_turn_that_is_not_taken_goes_to_the_next)
{
	weir_fence fence;
	wr_token token;
	int64_t next;

	rig->system->signals.bound = 1;
	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record(rig->a);
	arm(rig, 1, fence);
	assert_int_equal(wr_signal_arm(rig->system, 2, &fence, 1, &token), WEIR_E_BUSY);
	assert_int_equal(wr_signal_arm(rig->system, 3, &fence, 1, &token), WEIR_E_BUSY);
	rig_until_poked(rig, 1);
	while (wr_system_outstanding(rig->system))
		wr_thread_sleep(10000);
	wr_system_collect(rig->system);
	assert_int_equal(rig->waker.poked[2], 1);
	assert_int_equal(rig->waker.poked[3], 0); /* 2 is READY and arms nothing */
	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_int_equal(rig->waker.poked[3], 1);
	assert_int_equal(rig->waker.live, 0);
}

RIG_BODY(g2_an_entity_that_gets_a_token_leaves_the_fifo)
{
	weir_fence fence;
	wr_token token;

	rig->system->signals.bound = 1;
	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record(rig->a);
	arm(rig, 1, fence);
	assert_int_equal(wr_signal_arm(rig->system, 2, &fence, 1, &token), WEIR_E_BUSY);
	assert_int_equal(rig->waker.live, 1);
	rig->system->signals.bound = 2;
	arm(rig, 2, fence);
	assert_int_equal(rig->waker.live, 0);
	assert_false(wr_refused_any(rig->system));
}

static weir_status arm_inline(struct rig *rig, uint32_t entity, weir_fence fence)
{
	wr_token token;

	return wr_signal_inline(rig->system, entity, &fence, 1, &token);
}

RIG_BODY(g2_inline_signals_count_against_the_bound_of_the_device)
{
	weir_fence fence;

	rig->system->signals.bound = 2;
	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record(rig->a);
	assert_int_equal(arm_inline(rig, 1, fence), WEIR_OK);
	arm(rig, 2, fence);
	assert_int_equal(arm_inline(rig, 3, fence), WEIR_E_BUSY);
	assert_int_equal(rig->waker.live, 1);
	rig_until_poked(rig, 1);
	rig_until_kicked(rig, 1);
	wr_system_collect(rig->system);
	rig_until_poked(rig, 3);
	assert_int_equal(rig->waker.live, 0);
}

RIG_BODY(f08_a_signal_of_a_run_that_is_over_pokes_nothing)
{
	struct rig_waker next;
	weir_fence fence;

	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record(rig->a);
	arm(rig, 1, fence);
	assert_int_equal(arm_inline(rig, 2, fence), WEIR_OK);
	wr_system_detach(rig->system);
	memset(&rig->waker.waker, 0, sizeof rig->waker.waker); /* a call through it would crash */
	rig_fill_waker(&next);
	wr_system_attach(rig->system, &next.waker);
	arm(rig, 3, fence);
	while (!wr_load(&next.poked[3]))
		wr_thread_sleep(10000);
	assert_int_equal(rig->waker.poked[1] + rig->waker.poked[2] + next.poked[1] + next.poked[2], 0);
	wr_system_detach(rig->system);
	assert_int_equal(wr_system_outstanding(rig->system), 0);
}

RIG_BODY(g1_a_signal_that_was_cancelled_delays_no_other)
{
	struct rig_waker next;
	weir_fence slow;

	rig_store(rig, rig->a, 1, 150 * MS);
	slow = rig_record(rig->a);
	arm(rig, 1, slow);
	wr_system_detach(rig->system);
	rig_fill_waker(&next);
	wr_system_attach(rig->system, &next.waker);
	arm(rig, 2, rig_record(rig->b));
	while (!wr_load(&next.poked[2]))
		wr_thread_sleep(10000);
	assert_int_equal(wr_fence_query(rig->system, slow), WEIR_E_BUSY);
	wr_system_detach(rig->system);
}

RIG_BODY(g1_signal_streams_of_cancelled_signals_are_used_again)
{
	struct wr_signal_stream *first;

	assert_int_equal(wr_signals_reserve(rig->system, 0, 1), WEIR_OK);
	first = rig->system->signals.signal_streams;
	rig_store(rig, rig->a, 1, 20 * MS);
	arm(rig, 1, rig_record(rig->a));
	wr_system_detach(rig->system);
	assert_ptr_equal(rig->system->signals.draining, first);
	wr_thread_sleep(SECOND / 2);
	assert_int_equal(wr_signals_reserve(rig->system, 0, 1), WEIR_OK);
	assert_ptr_equal(rig->system->signals.signal_streams, first);
	assert_null(rig->system->signals.draining);
}

RIG_BODY(g3_a_point_from_before_a_capture_is_signalled_and_none_is_recorded_in_it)
{
	weir_fence fence;

	if (!rig_is("cuda"))
		return;
	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record(rig->a);
	rig_cuda_capture(weir_stream_native(rig->a), true);
	assert_int_equal(arm_inline(rig, 1, fence), WEIR_E_UNSUPPORTED);
	arm(rig, 1, fence);
	assert_int_equal(weir_stream_record(rig->a, &fence), WEIR_E_UNSUPPORTED);
	rig_until_poked(rig, 1);
	assert_true(rig_cuda_capture(weir_stream_native(rig->a), false));
	rig_wait(rig, rig_record(rig->a));
}

RIG_BODY(f69_what_is_asked_meanwhile_breaks_no_capture)
{
	weir_fence fence = rig_record(rig->b);
	void *memory;

	if (!rig_is("cuda"))
		return;
	rig_cuda_capture(weir_stream_native(rig->a), true); /* in global mode */
	rig_wait(rig, fence);
	assert_int_equal(wr_system_alloc(rig->system, 0, 100 << 20, &memory), WEIR_OK);
	assert_true(rig_cuda_capture(weir_stream_native(rig->a), false));
	wr_system_free(rig->system, 0, memory, 100 << 20);
}

RIG_BODY(f08_without_a_run_nothing_is_armed)
{
	weir_fence fence = rig_record(rig->a);
	wr_token token;

	wr_system_detach(rig->system);
	assert_int_equal(wr_signal_arm(rig->system, 1, &fence, 1, &token), WEIR_E_CLOSED);
	assert_int_equal(arm_inline(rig, 1, fence), WEIR_E_CLOSED);
}

RIG_BODY(f07_a_stream_is_closed_with_a_signal_pending)
{
	weir_stream *gone = rig_stream(rig, "gone");

	rig_store(rig, gone, 1, 10 * MS);
	assert_int_equal(arm_inline(rig, 9, rig_record(gone)), WEIR_OK);
	wr_stream_close(gone);
	rig_until_poked(rig, 9);
}

RIG_BODY(f71_the_default_stream_carries_fences_and_signals)
{
	weir_stream *legacy = NULL;
	weir_fence fence;

	assert_int_equal(wr_stream_default(rig->system, 0, "default", &legacy), WEIR_OK);
	rig_store(rig, legacy, 4, 20 * MS);
	fence = rig_record(legacy);
	arm(rig, 1, fence);
	assert_int_equal(arm_inline(rig, 2, fence), WEIR_E_UNSUPPORTED); /* others may enqueue there */
	rig_until_poked(rig, 1);
	assert_int_equal(rig_read(rig, rig->a), 4);
	wr_stream_close(legacy);
}

/* --- the health check --- */

RIG_BODY(e2_streams_that_are_not_queried_wake_the_loop)
{
	wr_stream_begin_tick(rig->a);
	rig_store(rig, rig->a, 1, 10 * MS);
	rig_record(rig->a);
	wr_store(&rig->waker.kicked, 0);
	assert_int_equal(wr_system_arm_kicks(rig->system), WEIR_OK);
	assert_int_equal(wr_system_arm_kicks(rig->system), WEIR_OK);
	assert_int_equal(wr_system_outstanding(rig->system), 1); /* one reference for the last point */
	while (wr_system_outstanding(rig->system))
		wr_thread_sleep(10000);
	rig_until_kicked(rig, 1);
	wr_system_collect(rig->system);
	assert_int_equal(rig->waker.live, 0);
}

RIG_BODY(e2_a_record_wakes_the_resting_watch)
{
	int64_t next;

	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_true(next == INT64_MAX);
	wr_store(&rig->waker.kicked, 0);
	rig_record(rig->a);
	assert_int_equal(rig->waker.kicked, 1);
}

RIG_BODY(e2_the_watch_sees_old_work_and_rests_when_there_is_none)
{
	int64_t next = 0, now = wr_now();
	weir_fence fence;

	assert_int_equal(wr_system_watch(rig->system, now, &next), WEIR_OK);
	assert_true(next == INT64_MAX);
	wr_store(&rig->waker.kicked, 0);
	wr_stream_begin_tick(rig->a);
	assert_int_equal(rig->waker.kicked, 1); /* the loop was told of the new work */
	rig_store(rig, rig->a, 1, MS);
	fence = rig_record(rig->a);
	assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_true(next != INT64_MAX);
	wr_thread_sleep(100 * MS);
	assert_false(wr_fence_seen(rig->system, fence));
	assert_int_equal(wr_system_watch(rig->system, wr_now() + 200 * MS, &next), WEIR_OK);
	assert_true(wr_fence_seen(rig->system, fence));
	assert_int_equal(rig->waker.live, 0);
	assert_true(next == INT64_MAX);
}

/* --- memory and deferred frees --- */

RIG_BODY(t4_memory_that_came_back_is_given_out_again)
{
	void *first, *second, *other;

	assert_int_equal(wr_system_alloc(rig->system, 0, 100000, &first), WEIR_OK);
	assert_int_equal(wr_system_alloc(rig->system, 0, 100000, &other), WEIR_OK);
	assert_ptr_not_equal(first, other);
	assert_int_equal((uintptr_t)first % 256, 0);
	wr_system_free(rig->system, 0, first, 100000);
	assert_int_equal(wr_system_alloc(rig->system, 0, 99000, &second), WEIR_OK);
	assert_ptr_equal(first, second);
	wr_system_free(rig->system, 0, other, 100000);
	wr_system_free(rig->system, 0, second, 99000);
	wr_system_free(rig->system, 0, NULL, 5);
}

RIG_BODY(t4_blocks_do_not_overlap)
{
	enum { BLOCKS = 200 };
	unsigned char *blocks[BLOCKS];
	void *memory;

	for (size_t i = 0; i < BLOCKS; i++) {
		assert_int_equal(wr_system_alloc(rig->system, WEIR_DEVICE_HOST, i * 97 + 1, &memory),
				 WEIR_OK);
		blocks[i] = memory;
		memset(memory, (int)i, i * 97 + 1);
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		assert_int_equal(blocks[i][0], i);
		assert_int_equal(blocks[i][i * 97], i);
		wr_system_free(rig->system, WEIR_DEVICE_HOST, blocks[i], i * 97 + 1);
	}
}

RIG_BODY(t4_what_is_reserved_is_not_asked_of_the_device_again)
{
	void *memory;
	struct wr_chunk *chunks;

	assert_int_equal(wr_system_reserve(rig->system, WEIR_DEVICE_HOST, 64 << 20), WEIR_OK);
	chunks = rig->system->arenas[0].chunks;
	assert_int_equal(wr_system_alloc(rig->system, WEIR_DEVICE_HOST, 60 << 20, &memory), WEIR_OK);
	assert_ptr_equal(rig->system->arenas[0].chunks, chunks);
	wr_system_free(rig->system, WEIR_DEVICE_HOST, memory, 60 << 20);
	assert_int_equal(wr_system_reserve(rig->system, WEIR_DEVICE_HOST, 64 << 20), WEIR_OK);
	assert_ptr_equal(rig->system->arenas[0].chunks, chunks); /* the next run reuses them */
}

struct payload {
	struct wr_deferred_free retired;
	weir_fence fence;
	int released;
};

static void release(struct wr_deferred_free *retired)
{
	((struct payload *)retired)->released++;
}

static bool retire(struct rig *rig, struct payload *payload, weir_fence fence, bool destructor)
{
	*payload = (struct payload){.fence = fence};
	payload->retired = (struct wr_deferred_free){
		.fences = &payload->fence, .count = 1, .release = release, .destructor = destructor};
	return wr_defer_free(rig->system, &payload->retired);
}

RIG_BODY(t4_a_payload_is_released_when_its_use_set_is_complete)
{
	struct payload payload;
	weir_fence fence;

	rig_store(rig, rig->a, 1, 20 * MS);
	fence = rig_record(rig->a);
	assert_false(retire(rig, &payload, fence, false));
	wr_system_run_deferred_frees(rig->system, true);
	assert_int_equal(payload.released, 0);
	rig_wait(rig, fence);
	wr_system_run_deferred_frees(rig->system, false);
	assert_int_equal(payload.released, 1);
	assert_true(retire(rig, &payload, fence, true)); /* complete: the caller releases */
	assert_int_equal(payload.released, 0);
}

RIG_BODY(t4_a_worker_lists_with_a_reference)
{
	struct payload payload;
	weir_fence fence;

	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record(rig->a);
	wr_thread_set_local(rig); /* marks this thread as a worker */
	assert_false(retire(rig, &payload, fence, false));
	wr_thread_set_local(NULL);
	assert_int_equal(rig->waker.live, 1);
	rig_wait(rig, fence);
	wr_system_run_deferred_frees(rig->system, false);
	assert_int_equal(rig->waker.live, 0);
	assert_int_equal(payload.released, 1);
}

RIG_BODY(b5_a_worker_of_another_run_lists_without_a_reference)
{
	struct payload payload = {.retired = {.count = 1, .release = release, .foreign = true}};

	rig_store(rig, rig->a, 1, 10 * MS);
	payload.fence = rig_record(rig->a);
	payload.retired.fences = &payload.fence;
	wr_thread_set_local(rig);
	assert_false(wr_defer_free(rig->system, &payload.retired));
	wr_thread_set_local(NULL);
	assert_int_equal(rig->waker.live, 0);
	rig_wait(rig, payload.fence);
	wr_system_run_deferred_frees(rig->system, false);
	assert_int_equal(payload.released, 1);
}

RIG_BODY(b3_destructors_run_only_where_they_may)
{
	struct payload payload;
	weir_fence fence;

	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record(rig->a);
	assert_false(retire(rig, &payload, fence, true));
	assert_false(wr_system_deferred_frees_ready(rig->system));
	rig_wait(rig, fence);
	wr_store(&rig->waker.kicked, 0);
	wr_system_run_deferred_frees(rig->system, false);
	assert_int_equal(payload.released, 0);
	assert_true(wr_system_deferred_frees_ready(rig->system));
	assert_int_equal(rig->waker.kicked, 1);
	wr_system_run_deferred_frees(rig->system, true);
	assert_int_equal(payload.released, 1);
	assert_false(wr_system_deferred_frees_ready(rig->system));
}

RIG_BODY(s4_an_abandoned_run_gets_the_references_of_its_payloads_back)
{
	struct payload payload;
	weir_fence fence;

	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record(rig->a);
	wr_thread_set_local(rig);
	assert_false(retire(rig, &payload, fence, false));
	wr_thread_set_local(NULL);
	wr_system_drop_all_refs(rig->system);
	assert_int_equal(rig->waker.live, 0);
	rig_wait(rig, fence);
	wr_system_run_deferred_frees(rig->system, false);
	assert_int_equal(payload.released, 1);
	assert_int_equal(rig->waker.live, 0);
}

RIG_BODY(e4_destroying_waits_for_work)
{
	int *cell = rig->cell;

	rig_store(rig, rig->a, 7, 30 * MS); /* not even recorded */
	wr_system_detach(rig->system);
	wr_stream_close(rig->a);
	assert_ptr_equal(cell, rig->cell);
	assert_int_equal(wr_system_destroy(rig->system), WEIR_OK);
	rig->system = NULL;
}

/* --- failure: loses the device --- */

static void fail_device(struct rig *rig)
{
	int64_t deadline = wr_now() + 20 * SECOND;
	weir_fence fence;
	weir_status status;

	assert_int_equal(weir_stream_launch(rig->b, &rig_broken, NULL, 0), WEIR_OK);
	if (weir_stream_record(rig->b, &fence))
		return; /* the fault was found first */
	while ((status = wr_fence_query(rig->system, fence)) == WEIR_E_BUSY && wr_now() < deadline)
		wr_thread_sleep(100000);
	assert_int_equal(status, WEIR_E_DEVICE);
}

RIG_BODY(f60_a_fault_is_a_named_failure)
{
	weir_fence done = rig_record(rig->a), fence;
	void *memory;

	rig_wait(rig, done);
	assert_string_equal(wr_system_failure(rig->system), "");
	fail_device(rig);
	assert_true(wr_system_failed(rig->system));
	assert_non_null(strstr(wr_system_failure(rig->system), rig_is("cuda") ? "CUDA" : "broken"));
	assert_string_equal(wr_system_accused(rig->system), "b");
	assert_int_equal(wr_fence_query(rig->system, done), WEIR_OK); /* the result is remembered */
	assert_int_equal(weir_stream_record(rig->a, &fence), WEIR_E_DEVICE);
	assert_int_equal(weir_stream_copy(rig->a, rig->copy, rig->cell, 1), WEIR_E_DEVICE);
	assert_int_equal(wr_system_alloc(rig->system, 0, 1, &memory), WEIR_E_DEVICE);
	assert_string_equal(weir_last_error(), wr_system_failure(rig->system));
}

RIG_BODY(e3_two_suspects_are_named_and_none_accused)
{
	rig_store(rig, rig->a, 1, 10 * MS);
	rig_record(rig->a);
	fail_device(rig);
	assert_null(wr_system_accused(rig->system));
	assert_non_null(strstr(wr_system_failure(rig->system), "suspects, oldest first: a ("));
	assert_non_null(strstr(wr_system_failure(rig->system), ", b ("));
}

RIG_BODY(e1_a_caller_whose_own_call_failed_queries_the_device)
{
	int64_t until = wr_now() + 2 * SECOND;

	rig_store(rig, rig->a, 1, 0);
	rig_wait(rig, rig_record(rig->a));
	assert_true(wr_system_check_health(rig->system));
	assert_int_equal(weir_stream_launch(rig->b, &rig_broken, NULL, 0), WEIR_OK);
	while (wr_system_check_health(rig->system) && wr_now() < until)
		wr_thread_sleep(MS);
	assert_true(wr_system_failed(rig->system));
	assert_string_equal(wr_system_accused(rig->system), "b");
}

RIG_BODY(f61_nothing_succeeds_after_a_fault)
{
	weir_fence complete, fence;

	rig_store(rig, rig->a, 1, 0);
	complete = rig_record(rig->a);
	wr_thread_sleep(100 * MS); /* complete, but not queried yet */
	assert_int_equal(weir_stream_launch(rig->b, &rig_broken, NULL, 0), WEIR_OK);
	(void)weir_stream_record(rig->b, &fence);
	wr_thread_sleep(500 * MS);
	assert_int_equal(wr_fence_query(rig->system, complete), WEIR_E_DEVICE);
	assert_null(wr_system_accused(rig->system));
}

RIG_BODY(f10_a_failure_pokes_each_waiting_entity_once)
{
	weir_fence fence;
	wr_token token;
	int64_t next;

	rig->system->signals.bound = 2;
	rig_store(rig, rig->a, 1, 50 * MS);
	fence = rig_record(rig->a);
	arm(rig, 1, fence);
	wr_signal_cancel(rig->system, arm(rig, 2, fence));
	assert_int_equal(wr_signal_arm(rig->system, 3, &fence, 1, &token), WEIR_E_BUSY);
	assert_int_equal(rig->waker.live, 1);
	fail_device(rig);
	while (!wr_system_watch(rig->system, wr_now() + SECOND, &next))
		wr_thread_sleep(MS);
	assert_int_equal(rig->waker.poked[1], 1);
	assert_int_equal(rig->waker.poked[2], 0);
	assert_int_equal(rig->waker.poked[3], 1);
	assert_int_equal(rig->waker.live, 0);
	assert_int_equal(wr_system_outstanding(rig->system), 0);
	wr_system_collect(rig->system);
	assert_int_equal(wr_signal_arm(rig->system, 1, &fence, 1, &token), WEIR_E_DEVICE);
}

RIG_BODY(t4_payloads_come_back_after_a_failure)
{
	struct payload payload;
	weir_fence fence;

	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record(rig->a);
	assert_false(retire(rig, &payload, fence, true));
	fail_device(rig);
	wr_thread_sleep(50 * MS); /* the host backend finishes other streams' kernels */
	wr_system_run_deferred_frees(rig->system, true);
	assert_int_equal(payload.released, 1);
}

/* --- sim only --- */

RIG_BODY(f12_a_callback_that_does_not_come_is_found)
{
	struct wr_sim_knobs knobs = {.lost = 1000};
	int64_t next, begun = wr_now();
	weir_fence fence;

	if (!rig_is("sim"))
		return;
	wr_system_set_knobs(rig->system, &knobs);
	rig_store(rig, rig->a, 1, MS);
	fence = rig_record(rig->a);
	arm(rig, 1, fence);
	while (!wr_system_watch(rig->system, wr_now(), &next))
		wr_thread_sleep(next - wr_now());
	assert_true(wr_now() - begun < 3 * SECOND);
	assert_non_null(strstr(wr_system_failure(rig->system), "callback lost"));
	assert_non_null(strstr(wr_system_failure(rig->system), "'a'"));
	assert_int_equal(rig->waker.poked[1], 1);
}

RIG_BODY(f13_a_slow_callback_is_not_lost)
{
	struct wr_sim_knobs knobs = {.call_min = 900 * MS, .call_max = 900 * MS};
	int64_t next;

	if (!rig_is("sim"))
		return;
	wr_system_set_knobs(rig->system, &knobs);
	rig_store(rig, rig->a, 1, 3 * SECOND); /* long work is no failure */
	arm(rig, 1, rig_record(rig->a));
	while (!wr_load(&rig->waker.poked[1])) {
		assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
		wr_thread_sleep(10 * MS);
	}
}

/* With every host worker busy, or a slow callback, complete work must not be reported as lost. */
RIG_BODY(f13_f36_a_late_callback_is_not_lost_and_its_entity_is_poked)
{
	struct wr_sim_knobs knobs = {.call_min = 9 * SECOND, .call_max = 9 * SECOND};
	int64_t next, until;

	if (!rig_is("sim"))
		return;
	wr_system_set_knobs(rig->system, &knobs);
	rig_store(rig, rig->a, 1, MS);
	arm(rig, 1, rig_record(rig->a));
	for (until = wr_now() + 8 * SECOND; wr_now() < until; wr_thread_sleep(20 * MS))
		assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
	assert_int_equal(rig->waker.poked[1], 1);
	assert_int_equal(wr_system_outstanding(rig->system), 1);
	wr_thread_sleep(2 * SECOND);
	assert_int_equal(wr_system_outstanding(rig->system), 0);
}

RIG_BODY(f12_an_inline_callback_that_does_not_come_is_found_by_later_work)
{
	struct wr_sim_knobs knobs = {.lost = 1000};
	int64_t next, begun = wr_now();

	if (!rig_is("sim"))
		return;
	wr_system_set_knobs(rig->system, &knobs);
	rig_store(rig, rig->a, 1, MS);
	assert_int_equal(arm_inline(rig, 1, rig_record(rig->a)), WEIR_OK);
	while (!wr_system_watch(rig->system, wr_now(), &next)) {
		wr_thread_sleep(next - wr_now());
		rig_record(rig->a);
		assert_true(wr_now() - begun < 3 * SECOND);
	}
}

RIG_BODY(f12_an_inline_callback_behind_later_work_is_not_lost)
{
	int64_t next, begun = wr_now();

	if (!rig_is("sim"))
		return;
	rig_store(rig, rig->a, 1, MS);
	weir_fence fence = rig_record(rig->a);
	rig_store(rig, rig->a, 2, 4 * SECOND);
	assert_int_equal(arm_inline(rig, 1, fence), WEIR_OK);
	for (int i = 0; i < 4; i++)
		rig_record(rig->a);
	while (wr_now() - begun < 3 * SECOND) {
		assert_int_equal(wr_system_watch(rig->system, wr_now(), &next), WEIR_OK);
		wr_thread_sleep(next - wr_now());
	}
	assert_int_equal(rig->waker.poked[1], 1); /* the query found it complete */
	rig_wait(rig, rig_record(rig->a));
}

RIG_BODY(f11_a_callback_after_a_fault_is_stale)
{
	struct wr_sim_knobs knobs = {.call_min = 50 * MS, .call_max = 50 * MS, .after_fault = true};

	if (!rig_is("sim"))
		return;
	wr_system_set_knobs(rig->system, &knobs);
	rig_store(rig, rig->a, 1, MS);
	arm(rig, 1, rig_record(rig->a));
	wr_thread_sleep(10 * MS);
	fail_device(rig);
	assert_int_equal(rig->waker.poked[1], 1);
	wr_thread_sleep(100 * MS);
	assert_int_equal(rig->waker.poked[1], 1);
	assert_int_equal(wr_system_stale(rig->system), 1);
}

RIG_BODY(f06_a_second_callback_of_the_same_token_is_stale)
{
	struct wr_sim_knobs knobs = {.twice = 1000};

	if (!rig_is("sim"))
		return;
	wr_system_set_knobs(rig->system, &knobs);
	arm(rig, 1, rig_record(rig->a));
	rig_until_poked(rig, 1);
	wr_thread_sleep(MS);
	assert_int_equal(rig->waker.poked[1], 1);
	assert_true(wr_system_stale(rig->system) >= 1);
	knobs.twice = 0;
	wr_system_set_knobs(rig->system, &knobs);
}

RIG_BODY(e4_hung_work_is_abandoned_and_left_alone)
{
	if (!rig_is("sim"))
		return;
	rig_store(rig, rig->a, 1, 3600 * SECOND);
	rig_record(rig->a);
	wr_system_detach(rig->system);
	assert_int_equal(wr_system_destroy(rig->system), WEIR_E_ABANDONED);
	rig->system = NULL;
}

/* --- main --- */

#define T(test) cmocka_unit_test(test)

static const struct CMUnitTest tests[] = {
	T(t1_a_stream_keeps_its_order),
	T(t1_an_id_is_never_given_again),
	T(t1_a_closed_stream_is_not_given_out_before_it_has_drained),
	T(t2_a_wait_orders_two_streams),
	T(t2_streams_overlap),
	T(t2_a_wait_is_for_what_was_recorded_then),
	T(t2_no_fence_is_complete),
	T(t2_fences_that_were_never_recorded_and_foreign_ones_are_errors),
	T(t2_a_fence_stays_complete_when_its_event_is_used_again),
	T(t2_more_points_than_events_are_pending),
	T(t2_waits_that_change_nothing_are_left_out),
	T(t2_a_host_wait_ends_in_time),
	T(t2_a_producer_has_a_name_and_an_age),
	T(t1_a_kernel_without_a_form_for_the_backend_is_refused),
	T(t1_only_cuda_wraps),
	T(t1_no_such_device),
	T(t1_each_device_runs_its_streams),
	T(t2_a_wait_for_another_device_orders_and_copies_go_between_devices),
	T(t1_a_device_is_not_behind_another),
	T(f71_blocking_streams_and_the_default_one_wait_for_each_other),
	T(t1_streams_of_all_partitions_run),
	T(t1_a_partition_of_threads_runs_as_many_kernels_at_once),
	T(t1_a_partition_has_no_blocking_streams),
	T(t1_a_green_context_keeps_to_its_multiprocessors),
	T(t1_a_priority_that_the_device_does_not_have_is_clamped),
	T(t1_sizes_that_cannot_be_had_are_refused),
	T(g4_a_flag_is_written_when_the_work_before_it_is_done),
	T(g4_the_word_of_a_flag_only_grows),
	T(f12_a_lost_flag_leaves_the_word_as_it_was),
	T(s4_a_busy_stream_holds_one_reference_until_its_last_fence_was_seen),
	T(s4_a_tick_that_enqueued_nothing_gives_its_reference_back),
	T(s4_a_tick_that_has_work_keeps_its_reference),
	T(s4_a_stream_that_is_closed_with_work_holds_no_run_open),
	T(s4_an_abandoned_run_gets_its_references_back_once),
	T(s4_a_stream_busy_beyond_its_run_owes_the_next_one_nothing),
	T(g3_one_signal_waits_for_all_fences),
	T(g1_a_cancelled_signal_pokes_no_entity),
	T(g3_a_signal_for_foreign_fences_is_refused),
	T(g2_at_the_bound_entities_wait_in_order),
	T(g2_a_turn_that_is_not_taken_goes_to_the_next),
	T(g2_an_entity_that_gets_a_token_leaves_the_fifo),
	T(g2_inline_signals_count_against_the_bound_of_the_device),
	T(f08_a_signal_of_a_run_that_is_over_pokes_nothing),
	T(g1_a_signal_that_was_cancelled_delays_no_other),
	T(g1_signal_streams_of_cancelled_signals_are_used_again),
	T(g3_a_point_from_before_a_capture_is_signalled_and_none_is_recorded_in_it),
	T(f69_what_is_asked_meanwhile_breaks_no_capture),
	T(f08_without_a_run_nothing_is_armed),
	T(f07_a_stream_is_closed_with_a_signal_pending),
	T(f71_the_default_stream_carries_fences_and_signals),
	T(e2_streams_that_are_not_queried_wake_the_loop),
	T(e2_a_record_wakes_the_resting_watch),
	T(e2_the_watch_sees_old_work_and_rests_when_there_is_none),
	T(t4_memory_that_came_back_is_given_out_again),
	T(t4_blocks_do_not_overlap),
	T(t4_what_is_reserved_is_not_asked_of_the_device_again),
	T(t4_a_payload_is_released_when_its_use_set_is_complete),
	T(t4_a_worker_lists_with_a_reference),
	T(b5_a_worker_of_another_run_lists_without_a_reference),
	T(b3_destructors_run_only_where_they_may),
	T(s4_an_abandoned_run_gets_the_references_of_its_payloads_back),
	T(e4_destroying_waits_for_work),
	T(f12_a_callback_that_does_not_come_is_found),
	T(f13_a_slow_callback_is_not_lost),
	T(f13_f36_a_late_callback_is_not_lost_and_its_entity_is_poked),
	T(f12_an_inline_callback_that_does_not_come_is_found_by_later_work),
	T(f12_an_inline_callback_behind_later_work_is_not_lost),
	T(f11_a_callback_after_a_fault_is_stale),
	T(f06_a_second_callback_of_the_same_token_is_stale),
	T(e4_hung_work_is_abandoned_and_left_alone),
};

/* On cuda each test needs a process of its own: the device stays lost for the process. */
static const struct CMUnitTest failures[] = {
	T(f60_a_fault_is_a_named_failure),
	T(e3_two_suspects_are_named_and_none_accused),
	T(e1_a_caller_whose_own_call_failed_queries_the_device),
	T(f61_nothing_succeeds_after_a_fault),
	T(f10_a_failure_pokes_each_waiting_entity_once),
	T(t4_payloads_come_back_after_a_failure),
};

int main(int argc, char **argv)
{
	if (argc > 1)
		rig_backend = argv[1];
	if (!rig_device_answers()) {
		fprintf(stderr, "%s\n", weir_last_error());
		return getenv("WEIR_REQUIRE_CUDA") ? 1 : 77;
	}
	if (argc < 3)
		return cmocka_run_group_tests(tests, NULL, NULL);
	cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(failures, NULL, NULL);
}

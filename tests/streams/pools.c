/* Pools of streams, and the partitions of a device. Run as `pools BACKEND`. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "rig.h"
#include "test.h"

#define MS 1000000

/* --- pools --- */

RIG_BODY(t05_an_exhausted_pool_says_its_name_and_its_bound)
{
	struct wr_stream_pool *pool = rig_pool(rig, "fast", 0, 2);
	weir_stream *first = rig_take(pool), *second = rig_take(pool), *third = NULL;

	assert_int_equal(wr_stream_pool_take(pool, "late", &third), WEIR_E_BUSY);
	assert_string_equal(weir_last_error(),
			    "stream pool 'fast' is exhausted: of 2 streams none is left; raise max_size");
	assert_null(third);
	assert_int_equal(wr_stream_pool_taken(pool), 2);
	wr_stream_close(first);
	assert_int_equal(wr_stream_pool_taken(pool), 1);
	third = rig_take(pool);
	wr_stream_close(second);
	wr_stream_close(third);
	assert_int_equal(wr_stream_pool_taken(pool), 0);
}

RIG_BODY(t05_a_pool_without_a_bound_is_never_exhausted)
{
	enum { MANY = 40 };
	struct wr_stream_pool *pool = rig_pool(rig, "wide", 0, 0);
	weir_stream *streams[MANY];

	for (int i = 0; i < MANY; i++)
		streams[i] = rig_take(pool);
	for (int i = 0; i < MANY; i++)
		wr_stream_close(streams[i]);
}

RIG_BODY(t05_the_reserved_streams_are_there_before_the_first_is_taken)
{
	uint32_t before = rig_stream_count(rig);
	struct wr_stream_pool *pool = rig_pool(rig, "fast", 3, 4);
	weir_stream *streams[4];

	assert_int_equal(rig_stream_count(rig), before + 3);
	assert_int_equal(wr_stream_pool_taken(pool), 0);
	for (int i = 0; i < 4; i++)
		streams[i] = rig_take(pool);
	assert_int_equal(rig_stream_count(rig), before + 4);
	for (int i = 0; i < 4; i++)
		wr_stream_close(streams[i]);
}

RIG_BODY(t05_more_are_not_reserved_than_may_be_taken)
{
	uint32_t before = rig_stream_count(rig);

	rig_pool(rig, "small", 5, 2);
	assert_int_equal(rig_stream_count(rig), before + 2);
}

RIG_BODY(t05_a_stream_with_work_is_not_handed_out_before_it_has_drained)
{
	struct wr_stream_pool *pool = rig_pool(rig, "one", 0, 1);
	weir_stream *busy = rig_take(pool), *other;
	weir_fence fence;

	rig_store(rig, busy, 1, 20 * MS);
	fence = rig_record(busy);
	wr_stream_close(busy);
	other = rig_take(pool);
	assert_ptr_not_equal(other, busy);
	wr_stream_close(other);
	rig_wait(rig, fence);
	assert_true(wr_stream_idle(busy));
	other = rig_take(pool);
	assert_int_equal(rig_stream_count(rig), 5); /* the rig's 3 and these 2 */
	wr_stream_close(other);
}

RIG_BODY(t05_pools_do_not_mix)
{
	weir_stream *x = rig_take(rig_pool(rig, "x", 1, 1)), *y;

	wr_stream_close(x);
	y = rig_stream(rig, "of no pool");
	assert_ptr_not_equal(x, y);
	wr_stream_close(y);
	y = rig_take(rig_pool(rig, "y", 0, 1));
	assert_ptr_not_equal(x, y);
	wr_stream_close(y);
}

RIG_BODY(t05_a_pool_of_a_device_that_is_not_there_is_refused)
{
	struct wr_stream_pool_spec spec = {.name = "far", .streams = {.device = 77}, .reserved = 1};
	struct wr_stream_pool *pool = NULL;

	weir_stream *stream;

	assert_int_equal(wr_stream_pool_create(rig->system, &spec, &pool), WEIR_E_INVALID);
	assert_null(pool);
	spec.reserved = 0;
	assert_int_equal(wr_stream_pool_create(rig->system, &spec, &pool), WEIR_OK);
	assert_int_equal(wr_stream_pool_take(pool, "taker", &stream), WEIR_E_INVALID);
	assert_int_equal(wr_stream_pool_taken(pool), 0);
}

static void assert_not_given_out(struct rig *rig, struct wr_stream_spec given, struct wr_stream_spec wanted)
{
	weir_stream *first = NULL, *second = NULL;

	assert_int_equal(wr_stream_open(rig->system, &given, "first", &first), WEIR_OK);
	wr_stream_close(first);
	assert_int_equal(wr_stream_open(rig->system, &wanted, "second", &second), WEIR_OK);
	assert_ptr_not_equal(first, second);
	wr_stream_close(second);
}

RIG_BODY(t05_a_stream_is_given_out_again_only_for_the_same_kind)
{
	const struct wr_stream_spec plain = {0}, far = {.device = 1}, urgent = {.priority = -1};
	const struct wr_stream_spec blocking = {.flags = WR_STREAM_BLOCKING};

	assert_not_given_out(rig, far, plain);
	assert_not_given_out(rig, blocking, plain);
	assert_not_given_out(rig, urgent, plain);
}

RIG_BODY(t05_what_was_closed_with_work_is_given_out_when_that_has_ended)
{
	weir_stream *stream = rig_stream(rig, "first");

	rig_store(rig, stream, 1, MS);
	wr_stream_close(stream);
	while (!wr_stream_idle(stream))
		wr_thread_sleep(MS / 10);
	assert_ptr_equal(rig_stream(rig, "second"), stream);
	wr_stream_close(stream);
}

/* No point was queried, and the newest are not complete. */
RIG_BODY(t02_events_of_work_that_is_done_are_used_again)
{
	struct wr_event_ring *ring = wr_load(&rig->b->ring);
	weir_fence first = rig_record(rig->b), last = first;

	assert_int_equal(weir_stream_wait(rig->a, first), WEIR_OK);
	rig_wait(rig, rig_record(rig->a)); /* so rig->b's first point is complete */
	rig_store(rig, rig->b, 1, 50 * MS);
	for (int i = 0; i < WR_EVENTS; i++)
		last = rig_record(rig->b);
	assert_ptr_equal(wr_load(&rig->b->ring), ring);
	rig_wait(rig, last);
}

/* A recycled stream does not inherit the wait that was noted for the stream before it. */
RIG_BODY(t02_a_wait_for_one_stream_is_none_for_another)
{
	weir_stream *others[WR_WAITED];
	weir_fence of_c, of_other;

	for (int i = 0; i < WR_WAITED; i++)
		others[i] = rig_stream(rig, "another");
	assert_int_equal(others[WR_WAITED - 1]->index % WR_WAITED, rig->c->index % WR_WAITED);
	rig_store(rig, rig->c, 1, 10 * MS);
	of_c = rig_record(rig->c);
	rig->cell++; /* another cell: both work at the same time */
	rig_store(rig, others[WR_WAITED - 1], 1, 10 * MS);
	rig->cell--;
	of_other = rig_record(others[WR_WAITED - 1]);
	assert_int_equal(of_other.value, of_c.value);
	assert_int_equal(weir_stream_wait(rig->b, of_c), WEIR_OK);
	rig_record(rig->b);
	assert_int_equal(weir_stream_wait(rig->b, of_other), WEIR_OK);
	assert_true(wr_stream_dirty(rig->b));
	for (int i = 0; i < WR_WAITED; i++)
		wr_stream_close(others[i]);
}

enum { THREADS = 4, ROUNDS = 150, BOUND = 3, MOST = 4096 };

struct crowd {
	struct wr_stream_pool *pool;
	struct rig *rig;
	_Atomic int owners[MOST];
	_Atomic int shared, refused;
	_Atomic uint64_t id; /* id of the stream that was opened last */
	_Atomic bool over;
};

static void acquire_and_release(void *arg)
{
	struct crowd *crowd = arg;

	for (int i = 0; i < ROUNDS; i++) {
		weir_stream *stream;
		weir_fence fence;

		if (wr_stream_pool_take(crowd->pool, "one of many", &stream)) {
			wr_fetch_add(&crowd->refused, 1);
			wr_thread_yield();
			continue;
		}
		assert_true(stream->index < MOST);
		wr_fetch_add(&crowd->shared, wr_fetch_add(&crowd->owners[stream->index], 1));
		assert_int_equal(weir_stream_record(stream, &fence), WEIR_OK);
		wr_store(&crowd->id, weir_stream_id(stream));
		wr_fetch_sub(&crowd->owners[stream->index], 1);
		wr_stream_close(stream);
	}
}

static void run_crowd(struct crowd *crowd, void (*last)(void *arg))
{
	struct wr_thread threads[THREADS] = {{0}};

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(wr_thread_start(&threads[i], "crowd",
						 i == THREADS - 1 ? last : acquire_and_release, crowd),
				 WEIR_OK);
	for (int i = 0; i < THREADS - 1; i++)
		wr_thread_join(&threads[i]);
	wr_store(&crowd->over, true);
	wr_thread_join(&threads[THREADS - 1]);
}

RIG_BODY(t05_a_stream_has_one_taker_at_a_time)
{
	struct crowd crowd = {.pool = rig_pool(rig, "crowd", 1, BOUND), .rig = rig};

	run_crowd(&crowd, acquire_and_release);
	assert_int_equal(wr_load(&crowd.shared), 0);
	assert_int_equal(wr_stream_pool_taken(crowd.pool), 0);
	assert_true(wr_load(&crowd.refused) < THREADS * ROUNDS);
}

/* While others open and close streams: a shared stream is not handed out before its view is closed. */
static void share_open_streams(void *arg)
{
	struct crowd *crowd = arg;

	while (!wr_load(&crowd->over)) {
		weir_stream *view = NULL;
		weir_fence fence;

		if (wr_stream_share_of(crowd->rig->system, wr_load(&crowd->id), "view", &view)) {
			wr_thread_yield();
			continue;
		}
		assert_int_equal(weir_stream_record(view, &fence), WEIR_OK);
		wr_stream_close(view);
	}
}

RIG_BODY(t06_streams_are_shared_while_they_come_and_go)
{
	struct crowd crowd = {.pool = rig_pool(rig, "crowd", 1, BOUND), .rig = rig};

	run_crowd(&crowd, share_open_streams);
	assert_int_equal(wr_load(&crowd.shared), 0);
	for (uint32_t i = 0; i < rig_stream_count(rig); i++)
		while (!wr_stream_idle(wr_stream_at(rig->system, i)))
			wr_thread_sleep(MS);
	wr_stream_close(rig_stream(rig, "opening counts"));
	for (uint32_t i = 0; i < rig_stream_count(rig); i++)
		assert_int_equal(wr_stream_at(rig->system, i)->sharers, 0);
}

/* --- partitions --- */

RIG_BODY(t05_partitions_live_until_the_streams_of_the_system_are_gone)
{
	uint32_t sizes[] = {1}, sms[2] = {0, 0};
	struct wr_partitions_spec spec = {.name = "halves", .sizes = sizes, .count = 1, .minimum = 1};
	struct wr_partition *parts[2] = {NULL, NULL};
	weir_stream *x = NULL, *y = NULL;

	assert_int_equal(wr_partitions_create(rig->system, &spec, parts, sms), WEIR_OK);
	assert_non_null(parts[0]);
	assert_int_equal(sms[0], 1);
	assert_int_equal(
		wr_stream_open(rig->system, &(struct wr_stream_spec){.partition = parts[0]}, "x", &x),
		WEIR_OK);
	rig_store(rig, x, 3, MS);
	assert_int_equal(rig_read(rig, x), 3);
	wr_stream_close(x);
	y = rig_stream(rig, "of the whole device");
	assert_ptr_not_equal(x, y);
	wr_stream_close(y);
	assert_int_equal(
		wr_stream_open(rig->system, &(struct wr_stream_spec){.partition = parts[0]}, "y", &y),
		WEIR_OK);
	assert_ptr_equal(x, y);
	wr_stream_close(y);
	spec.device = 77;
	assert_int_equal(wr_partitions_create(rig->system, &spec, parts, sms), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "green context pool 'halves'"));
}

RIG_BODY(e06_partitions_that_cannot_be_had_are_refused_by_name)
{
	uint32_t sizes[] = {1}, sms[2];
	struct wr_partitions_spec spec = {.name = "halves", .sizes = sizes, .count = 1, .minimum = 1};
	const int devices[] = {-1, rig->system->devices};
	struct wr_partition *parts[2] = {NULL, NULL};

	for (size_t i = 0; i < 2; i++) {
		spec.device = devices[i];
		assert_int_equal(wr_partitions_create(rig->system, &spec, parts, sms), WEIR_E_INVALID);
		assert_non_null(strstr(weir_last_error(), "this machine has"));
	}
	spec.device = 0;
	rig_own_backend(rig)->partitions_create = NULL;
	assert_int_equal(wr_partitions_create(rig->system, &spec, parts, sms), WEIR_E_UNSUPPORTED);
	assert_non_null(strstr(weir_last_error(), "green context pool 'halves': the "));
	wr_system_fail(rig->system, "the device is gone");
	assert_int_equal(wr_partitions_create(rig->system, &spec, parts, sms), WEIR_E_DEVICE);
	assert_null(parts[0]);
}

static int partitions_destroyed;

static void count_partition(void *self, void *partition)
{
	(void)self;
	assert_non_null(partition);
	partitions_destroyed++;
}

RIG_BODY(t05_each_partition_is_given_back_with_the_system)
{
	uint32_t sizes[] = {1, 2}, sms[3];
	struct wr_partitions_spec spec = {.name = "parts", .sizes = sizes, .count = 2, .minimum = 1};
	struct wr_partition *parts[3];

	assert_int_equal(wr_partitions_create(rig->system, &spec, parts, sms), WEIR_OK);
	rig_own_backend(rig)->partition_destroy = count_partition;
	partitions_destroyed = 0;
	wr_system_detach(rig->system);
	wr_stream_close(rig->a);
	wr_stream_close(rig->b);
	wr_stream_close(rig->c);
	assert_int_equal(wr_system_destroy(rig->system), WEIR_OK);
	rig->system = NULL;
	assert_int_equal(partitions_destroyed, 3); /* 2 parts and the remainder */
}

static weir_status divide_without(struct rig *rig, int64_t n, bool all, struct wr_partition **parts)
{
	uint32_t sizes[] = {1, 2}, sms[3];
	struct wr_partitions_spec spec = {.name = "parts", .sizes = sizes, .count = 2, .minimum = 1};
	weir_status status;

	wr_memory_fail_at(n, all);
	status = wr_partitions_create(rig->system, &spec, parts, sms);
	wr_memory_fail_at(-1, false);
	return status;
}

RIG_BODY(f40_without_memory_a_device_is_not_divided)
{
	for (int all = 0; all < 2; all++) {
		struct wr_partition *parts[3] = {NULL, NULL, NULL};
		int64_t n = 0;

		while (n < 100 && divide_without(rig, n, all, parts) == WEIR_E_NOMEM) {
			assert_null(parts[0]);
			n++;
		}
		assert_in_range(n, 5, 99); /* at least two lists and three handles */
		assert_true(parts[0] && parts[1] && parts[2]);
	}
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(t05_an_exhausted_pool_says_its_name_and_its_bound),
		cmocka_unit_test(t05_a_pool_without_a_bound_is_never_exhausted),
		cmocka_unit_test(t05_the_reserved_streams_are_there_before_the_first_is_taken),
		cmocka_unit_test(t05_more_are_not_reserved_than_may_be_taken),
		cmocka_unit_test(t05_a_stream_with_work_is_not_handed_out_before_it_has_drained),
		cmocka_unit_test(t05_pools_do_not_mix),
		cmocka_unit_test(t05_a_pool_of_a_device_that_is_not_there_is_refused),
		cmocka_unit_test(t05_a_stream_is_given_out_again_only_for_the_same_kind),
		cmocka_unit_test(t05_what_was_closed_with_work_is_given_out_when_that_has_ended),
		cmocka_unit_test(t02_events_of_work_that_is_done_are_used_again),
		cmocka_unit_test(t02_a_wait_for_one_stream_is_none_for_another),
		cmocka_unit_test(t05_a_stream_has_one_taker_at_a_time),
		cmocka_unit_test(t06_streams_are_shared_while_they_come_and_go),
		cmocka_unit_test(t05_partitions_live_until_the_streams_of_the_system_are_gone),
		cmocka_unit_test(e06_partitions_that_cannot_be_had_are_refused_by_name),
		cmocka_unit_test(t05_each_partition_is_given_back_with_the_system),
		cmocka_unit_test(f40_without_memory_a_device_is_not_divided),
	};

	if (argc > 1)
		rig_backend = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Pools of streams, views that share one queue, the default stream, partitions: run as `pools BACKEND`. */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "rig.h"
#include "test.h"

#define MS 1000000

/* --- helpers --- */

static struct wr_stream_pool *pool_of(struct rig *rig, const char *name, uint32_t reserved, uint32_t max)
{
	struct wr_stream_pool_spec spec = {.name = name, .reserved = reserved, .max = max};
	struct wr_stream_pool *pool = NULL;

	assert_int_equal(wr_stream_pool_create(rig->system, &spec, &pool), WEIR_OK);
	return pool;
}

static weir_stream *acquire(struct wr_stream_pool *pool)
{
	weir_stream *stream = NULL;

	assert_int_equal(wr_stream_pool_take(pool, "taker", &stream), WEIR_OK);
	return stream;
}

static weir_stream *share_view(weir_stream *stream)
{
	weir_stream *view = NULL;

	assert_int_equal(wr_stream_share(stream, "view", &view), WEIR_OK);
	return view;
}

static uint32_t stream_count(struct rig *rig)
{
	return wr_load(&rig->system->count);
}

/* --- pools --- */

RIG_BODY(t05_an_exhausted_pool_says_its_name_and_its_bound)
{
	struct wr_stream_pool *pool = pool_of(rig, "fast", 0, 2);
	weir_stream *first = acquire(pool), *second = acquire(pool), *third = NULL;

	assert_int_equal(wr_stream_pool_take(pool, "late", &third), WEIR_E_BUSY);
	assert_string_equal(weir_last_error(),
			    "stream pool 'fast' is exhausted: of 2 streams none is left; raise max_size");
	assert_null(third);
	assert_int_equal(wr_stream_pool_taken(pool), 2);
	wr_stream_close(first);
	assert_int_equal(wr_stream_pool_taken(pool), 1);
	third = acquire(pool);
	wr_stream_close(second);
	wr_stream_close(third);
	assert_int_equal(wr_stream_pool_taken(pool), 0);
}

RIG_BODY(t05_a_pool_without_a_bound_is_never_exhausted)
{
	enum { MANY = 40 };
	struct wr_stream_pool *pool = pool_of(rig, "wide", 0, 0);
	weir_stream *streams[MANY];

	for (int i = 0; i < MANY; i++)
		streams[i] = acquire(pool);
	for (int i = 0; i < MANY; i++)
		wr_stream_close(streams[i]);
}

RIG_BODY(t05_the_reserved_streams_are_there_before_the_first_is_taken)
{
	uint32_t before = stream_count(rig);
	struct wr_stream_pool *pool = pool_of(rig, "fast", 3, 4);
	weir_stream *streams[4];

	assert_int_equal(stream_count(rig), before + 3);
	assert_int_equal(wr_stream_pool_taken(pool), 0);
	for (int i = 0; i < 4; i++)
		streams[i] = acquire(pool);
	assert_int_equal(stream_count(rig), before + 4);
	for (int i = 0; i < 4; i++)
		wr_stream_close(streams[i]);
}

RIG_BODY(t05_more_are_not_reserved_than_may_be_taken)
{
	uint32_t before = stream_count(rig);

	pool_of(rig, "small", 5, 2);
	assert_int_equal(stream_count(rig), before + 2);
}

RIG_BODY(t05_a_stream_with_work_is_not_handed_out_before_it_has_drained)
{
	struct wr_stream_pool *pool = pool_of(rig, "one", 0, 1);
	weir_stream *busy = acquire(pool), *other;
	weir_fence fence;

	rig_store(rig, busy, 1, 20 * MS);
	fence = rig_record(busy);
	wr_stream_close(busy);
	other = acquire(pool);
	assert_ptr_not_equal(other, busy);
	wr_stream_close(other);
	rig_wait(rig, fence);
	assert_true(wr_stream_idle(busy));
	other = acquire(pool);
	assert_int_equal(stream_count(rig), 5); /* the rig's 3 and these 2 */
	wr_stream_close(other);
}

RIG_BODY(t05_pools_do_not_mix)
{
	weir_stream *x = acquire(pool_of(rig, "x", 1, 1)), *y;

	wr_stream_close(x);
	y = rig_stream(rig, "of no pool");
	assert_ptr_not_equal(x, y);
	wr_stream_close(y);
	y = acquire(pool_of(rig, "y", 0, 1));
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
	const struct wr_stream_spec blocking = {.flags = WEIR_STREAM_POOL_BLOCKING};

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
	struct crowd crowd = {.pool = pool_of(rig, "crowd", 1, BOUND), .rig = rig};

	run_crowd(&crowd, acquire_and_release);
	assert_int_equal(wr_load(&crowd.shared), 0);
	assert_int_equal(wr_stream_pool_taken(crowd.pool), 0);
	assert_true(wr_load(&crowd.refused) < THREADS * ROUNDS);
}

/* --- views --- */

RIG_BODY(t06_views_are_one_queue_under_identities_of_their_own)
{
	weir_stream *view = share_view(rig->a);
	weir_fence of_a, of_view;

	assert_true(weir_stream_same(rig->a, view));
	assert_false(weir_stream_same(rig->a, rig->b));
	assert_true(weir_stream_id(rig->a) != weir_stream_id(view));
	rig_store(rig, rig->a, 1, 10 * MS);
	rig_add(rig, view, 10, 5 * MS);
	rig_add(rig, rig->a, 100, 0);
	of_a = rig_record(rig->a);
	assert_true(wr_stream_dirty(view));
	assert_int_equal(rig_read(rig, view), 111);
	of_view = rig_record(view);
	assert_int_equal(of_a.value, 2); /* the rig has recorded point 1 */
	assert_int_equal(of_view.value, 2);
	rig_wait(rig, of_view);
	wr_stream_close(view);
}

RIG_BODY(t06_a_view_of_a_view_is_one_of_its_root)
{
	weir_stream *view = share_view(rig->a), *second = share_view(view);

	assert_true(weir_stream_same(second, rig->a));
	wr_stream_close(view);
	assert_true(weir_stream_same(second, rig->a));
	wr_stream_close(second);
}

RIG_BODY(t06_what_shares_a_queue_need_not_wait)
{
	weir_stream *view = share_view(rig->a);
	weir_fence fence;

	rig_store(rig, rig->a, 1, 10 * MS);
	fence = rig_record(rig->a);
	assert_int_equal(weir_stream_wait(view, fence), WEIR_OK);
	assert_false(wr_stream_dirty(view));
	assert_int_equal(weir_stream_wait(rig->b, fence), WEIR_OK);
	assert_true(wr_stream_dirty(rig->b));
	wr_stream_close(view);
}

RIG_BODY(t06_a_shared_stream_is_not_handed_out_again)
{
	weir_stream *root = rig->a, *view = share_view(root), *next;
	weir_fence fence;

	wr_stream_close(root);
	next = rig_stream(rig, "next");
	assert_ptr_not_equal(next, root);
	wr_stream_close(next);
	rig_store(rig, view, 1, 20 * MS);
	fence = rig_record(view);
	wr_stream_close(view); /* its work is still on the root's queue */
	assert_true(wr_stream_idle(root));
	rig->a = rig_stream(rig, "next");
	assert_ptr_not_equal(rig->a, root);
	rig_wait(rig, fence);
	next = rig_stream(rig, "after that");
	assert_ptr_equal(next, root);
	wr_stream_close(next);
}

RIG_BODY(t06_a_view_that_was_given_back_serves_for_another_stream)
{
	weir_stream *view = share_view(rig->a), *next;
	uint64_t id = weir_stream_id(view);

	wr_stream_close(view);
	next = share_view(rig->b);
	assert_ptr_equal(next, view);
	assert_true(weir_stream_id(next) != id);
	assert_true(weir_stream_same(next, rig->b));
	rig_store(rig, rig->b, 4, 5 * MS);
	rig_add(rig, next, 1, 0);
	assert_int_equal(rig_read(rig, next), 5);
	wr_stream_close(next);
}

RIG_BODY(t06_a_released_view_does_not_lead_to_another_stream)
{
	weir_stream *root = rig->a, *view = share_view(root), *late = NULL;
	weir_fence fence = rig_record(view);

	rig_wait(rig, fence);
	wr_stream_close(view);
	wr_stream_close(root);
	rig->a = rig_stream(rig, "next");
	assert_ptr_equal(rig->a, root); /* reused for another stream */
	assert_int_equal(wr_stream_share_of(rig->system, fence.stream, "late", &late), WEIR_E_CLOSED);
}

RIG_BODY(t06_a_view_that_was_given_back_serves_on_its_own_device_alone)
{
	const struct wr_stream_spec there = {.device = 1};
	weir_stream *far = NULL, *view, *next;

	assert_int_equal(wr_stream_open(rig->system, &there, "far", &far), WEIR_OK);
	view = share_view(far);
	wr_stream_close(view);
	next = share_view(rig->a);
	assert_ptr_not_equal(next, view);
	assert_int_equal(weir_stream_device(next), 0);
	wr_stream_close(next);
	wr_stream_close(far);
}

RIG_BODY(f40_a_view_that_could_not_be_made_holds_no_stream)
{
	weir_stream *view = NULL;

	wr_memory_fail_at(0, true);
	assert_int_equal(wr_stream_share(rig->a, "view", &view), WEIR_E_NOMEM);
	wr_memory_fail_at(-1, false);
	assert_null(view);
	assert_int_equal(rig->a->sharers, 0);
}

RIG_BODY(t01_ids_do_not_run_out_when_many_streams_are_opened)
{
	weir_fence fence;

	wr_store(&rig->system->serials, (UINT32_C(1) << 24) - 2);
	for (int i = 0; i < 4; i++) {
		weir_stream *stream = rig_stream(rig, "one of many");

		assert_int_equal(weir_stream_record(stream, &fence), WEIR_OK);
		rig_wait(rig, fence);
		wr_stream_close(stream);
	}
}

RIG_BODY(t06_a_view_records_more_points_than_it_has_events)
{
	weir_stream *view = share_view(rig->a);
	weir_fence first, last;

	rig_store(rig, rig->a, 1, 20 * MS);
	first = rig_record(view);
	for (int i = 0; i < 3 * WR_EVENTS_SHARED; i++)
		last = rig_record(view);
	assert_int_equal(wr_fence_query(rig->system, first), WEIR_E_BUSY);
	rig_wait(rig, last);
	assert_int_equal(wr_fence_query(rig->system, first), WEIR_OK);
	wr_stream_close(view);
}

RIG_BODY(t06_each_view_holds_a_live_reference_of_its_own)
{
	weir_stream *view = share_view(rig->a);
	weir_fence of_a, of_view;

	wr_stream_begin_tick(rig->a);
	wr_stream_begin_tick(view);
	assert_int_equal(wr_load(&rig->waker.live), 2);
	rig_store(rig, rig->a, 1, MS);
	of_a = rig_record(rig->a);
	rig_store(rig, view, 1, 20 * MS);
	of_view = rig_record(view);
	rig_wait(rig, of_a);
	assert_int_equal(wr_load(&rig->waker.live), 1);
	rig_wait(rig, of_view);
	assert_int_equal(wr_load(&rig->waker.live), 0);
	wr_stream_close(view);
}

RIG_BODY(t06_a_view_may_outlive_the_owner_of_the_stream)
{
	weir_stream *view = share_view(rig->a);

	wr_stream_close(rig->a);
	rig_store(rig, view, 3, MS);
	assert_int_equal(rig_read(rig, view), 3);
	rig->a = view; /* closed by the rig or the system */
}

RIG_BODY(t06_a_stream_that_was_given_on_is_not_shared)
{
	weir_fence fence = rig_record(rig->a);
	weir_stream *root = rig->a, *view = NULL;

	assert_ptr_equal(wr_stream_find(rig->system, fence.stream), root);
	assert_int_equal(wr_stream_share_of(rig->system, fence.stream, "view", &view), WEIR_OK);
	assert_true(weir_stream_same(view, root));
	wr_stream_close(view);
	rig_wait(rig, fence);
	wr_stream_close(root);
	rig->a = rig_stream(rig, "next");
	assert_ptr_equal(rig->a, root);
	view = NULL;
	assert_null(wr_stream_find(rig->system, fence.stream));
	assert_int_equal(wr_stream_share_of(rig->system, fence.stream, "view", &view), WEIR_E_CLOSED);
	assert_null(view);
	assert_null(wr_stream_find(rig->system, 0));
	assert_null(wr_stream_find(rig->system, UINT64_MAX));
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
	struct crowd crowd = {.pool = pool_of(rig, "crowd", 1, BOUND), .rig = rig};

	run_crowd(&crowd, share_open_streams);
	assert_int_equal(wr_load(&crowd.shared), 0);
	for (uint32_t i = 0; i < stream_count(rig); i++)
		while (!wr_stream_idle(wr_stream_at(rig->system, i)))
			wr_thread_sleep(MS);
	wr_stream_close(rig_stream(rig, "opening counts"));
	for (uint32_t i = 0; i < stream_count(rig); i++)
		assert_int_equal(wr_stream_at(rig->system, i)->sharers, 0);
}

/* --- the default stream --- */

RIG_BODY(t06_the_default_stream_has_one_queue_and_many_views)
{
	weir_stream *x = NULL, *y = NULL;
	uint32_t before;

	assert_int_equal(wr_stream_default(rig->system, 0, "x", &x), WEIR_OK);
	before = stream_count(rig);
	assert_int_equal(wr_stream_default(rig->system, 0, "y", &y), WEIR_OK);
	assert_int_equal(stream_count(rig), before + 1);
	assert_true(weir_stream_same(x, y));
	assert_false(weir_stream_same(x, rig->a));
	rig_store(rig, x, 1, 5 * MS);
	rig_add(rig, y, 1, 0);
	assert_int_equal(rig_read(rig, y), 2);
	assert_int_equal(wr_stream_default(rig->system, 77, "z", &y), WEIR_E_INVALID);
	wr_stream_close(x);
	wr_stream_close(y);
}

/* --- partitions --- */

static struct wr_backend wrapping; /* the rig's system runs on it */

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
	wrapping = *rig->system->backend;
	wrapping.partitions_create = NULL;
	rig->system->backend = &wrapping;
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
	wrapping = *rig->system->backend;
	wrapping.partition_destroy = count_partition;
	rig->system->backend = &wrapping;
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

/* --- wrapped streams: streams of the backend stand for the caller's --- */

static weir_stream *wrap(struct rig *rig, weir_stream *native)
{
	weir_stream *stream = NULL;

	wrapping = *rig->system->backend;
	wrapping.native_streams = true;
	rig->system->backend = &wrapping;
	assert_int_equal(wr_stream_wrap(rig->system, 0, wr_load(&native->native), &stream), WEIR_OK);
	return stream;
}

RIG_BODY(t06_two_wraps_of_one_native_stream_are_the_same_queue)
{
	weir_stream *x = wrap(rig, rig->a), *y = wrap(rig, rig->a), *z = wrap(rig, rig->b), *legacy = NULL,
		    *none = NULL;

	assert_ptr_not_equal(x, y);
	assert_true(weir_stream_same(x, y));
	assert_false(weir_stream_same(x, z));
	assert_int_equal(wr_stream_default(rig->system, 0, "default", &legacy), WEIR_OK);
	assert_int_equal(wr_stream_wrap(rig->system, 0, NULL, &none), WEIR_OK);
	assert_true(weir_stream_same(legacy, none));
	wr_stream_close(legacy);
	assert_int_equal(wr_stream_unwrap(none), WEIR_OK);
	assert_int_equal(wr_stream_unwrap(x), WEIR_OK);
	assert_int_equal(wr_stream_unwrap(y), WEIR_OK);
	assert_int_equal(wr_stream_unwrap(z), WEIR_OK);
}

RIG_BODY(t06_a_wrapped_stream_is_unwrapped_when_no_work_is_on_it)
{
	weir_stream *wrapped = wrap(rig, rig->a), *view = share_view(wrapped), *late = NULL;
	weir_fence fence;

	rig_store(rig, wrapped, 1, 20 * MS);
	fence = rig_record(wrapped);
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_E_BUSY);
	rig_wait(rig, fence);
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_E_BUSY);
	assert_non_null(strstr(weir_last_error(), "end the run"));
	rig_store(rig, view, 1, 20 * MS);
	fence = rig_record(view);
	wr_stream_close(view);
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_E_BUSY);
	rig_wait(rig, fence);
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_OK);
	assert_int_equal(wr_stream_share_of(rig->system, weir_stream_id(wrapped), "late", &late),
			 WEIR_E_CLOSED);
	assert_int_equal(wr_stream_unwrap(rig->a), WEIR_E_INVALID);
	assert_int_equal(wr_stream_unwrap(NULL), WEIR_OK);
}

RIG_BODY(t06_a_wrapped_stream_is_unwrapped_after_its_own_work)
{
	weir_stream *wrapped = wrap(rig, rig->a);
	weir_fence fence;

	rig_store(rig, wrapped, 1, 20 * MS);
	fence = rig_record(wrapped);
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_E_BUSY);
	assert_non_null(strstr(weir_last_error(), "wait for it first"));
	rig_wait(rig, fence);
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_OK);
}

/* Unwrapping queries the last points of views itself. */
RIG_BODY(t06_a_wrapped_stream_is_unwrapped_after_views_that_were_not_queried)
{
	weir_stream *wrapped = wrap(rig, rig->a), *view = share_view(wrapped);

	rig_store(rig, view, 1, MS);
	wr_stream_close(view);
	rig_wait(rig, rig_record(wrapped)); /* enqueued behind the view's work */
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_OK);
}

RIG_BODY(t06_work_that_the_caller_left_on_a_wrapped_stream_is_not_waited_for)
{
	weir_stream *wrapped = wrap(rig, rig->a), *own;
	uint32_t before = stream_count(rig);

	rig_wait(rig, rig_record(wrapped));
	wr_store(&wrapped->flag_after_record, true);
	assert_non_null(weir_stream_native(wrapped)); /* work may come by the native handle */
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_OK);
	own = rig_stream(rig, "one of our own");
	assert_ptr_not_equal(own, wrapped);
	wr_stream_close(own);
	assert_ptr_equal(wrap(rig, rig->b), wrapped);
	assert_int_equal(stream_count(rig), before + 1);
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_OK);
}

RIG_BODY(t06_a_wrapped_stream_is_unwrapped_whatever_a_lost_device_left)
{
	weir_stream *wrapped = wrap(rig, rig->a);

	rig_store(rig, wrapped, 1, 5 * MS);
	rig_record(wrapped);
	wr_system_fail(rig->system, "the device is gone");
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_OK);
}

RIG_BODY(g03_the_maker_of_a_wrapped_stream_may_capture_it)
{
	weir_stream *wrapped = wrap(rig, rig->a);
	weir_fence fence;

	wrapping.capturing = rig_in_capture;
	assert_int_equal(weir_stream_record(wrapped, &fence), WEIR_E_UNSUPPORTED);
	wrapping.capturing = NULL;
	rig_wait(rig, rig_record(wrapped));
	assert_int_equal(wr_stream_unwrap(wrapped), WEIR_OK);
}

static weir_status nameless(void *self, int device, void **out)
{
	(void)self;
	(void)device;
	*out = NULL;
	return WEIR_OK;
}

RIG_BODY(t06_default_streams_of_two_devices_are_two_though_they_have_no_names)
{
	weir_stream *here = NULL, *there = NULL;

	wrapping = *rig->system->backend;
	wrapping.stream_default = nameless;
	rig->system->backend = &wrapping;
	assert_int_equal(wr_stream_default(rig->system, 0, "here", &here), WEIR_OK);
	assert_int_equal(wr_stream_default(rig->system, 1, "there", &there), WEIR_OK);
	assert_false(weir_stream_same(here, there));
	wr_stream_close(here);
	wr_stream_close(there);
}

RIG_BODY(t06_the_stream_of_each_thread_is_none_to_wrap)
{
	weir_stream *stream = wrap(rig, rig->a), *none = NULL;

	wrapping.per_thread = wr_load(&rig->a->native);
	assert_int_equal(wr_stream_wrap(rig->system, 0, wrapping.per_thread, &none), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "wrap a stream that was made"));
	assert_null(none);
	assert_int_equal(wr_stream_unwrap(stream), WEIR_OK);
}

#define T(test) cmocka_unit_test(test)

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		T(t05_an_exhausted_pool_says_its_name_and_its_bound),
		T(t05_a_pool_without_a_bound_is_never_exhausted),
		T(t05_the_reserved_streams_are_there_before_the_first_is_taken),
		T(t05_more_are_not_reserved_than_may_be_taken),
		T(t05_a_stream_with_work_is_not_handed_out_before_it_has_drained),
		T(t05_pools_do_not_mix),
		T(t05_a_pool_of_a_device_that_is_not_there_is_refused),
		T(t05_a_stream_is_given_out_again_only_for_the_same_kind),
		T(t05_what_was_closed_with_work_is_given_out_when_that_has_ended),
		T(t02_events_of_work_that_is_done_are_used_again),
		T(t02_a_wait_for_one_stream_is_none_for_another),
		T(t05_a_stream_has_one_taker_at_a_time),
		T(t06_views_are_one_queue_under_identities_of_their_own),
		T(t06_a_view_of_a_view_is_one_of_its_root),
		T(t06_what_shares_a_queue_need_not_wait),
		T(t06_a_shared_stream_is_not_handed_out_again),
		T(t06_a_view_that_was_given_back_serves_for_another_stream),
		T(t06_a_released_view_does_not_lead_to_another_stream),
		T(t06_a_view_that_was_given_back_serves_on_its_own_device_alone),
		T(f40_a_view_that_could_not_be_made_holds_no_stream),
		T(t01_ids_do_not_run_out_when_many_streams_are_opened),
		T(t06_a_view_records_more_points_than_it_has_events),
		T(t06_each_view_holds_a_live_reference_of_its_own),
		T(t06_a_view_may_outlive_the_owner_of_the_stream),
		T(t06_a_stream_that_was_given_on_is_not_shared),
		T(t06_streams_are_shared_while_they_come_and_go),
		T(t06_the_default_stream_has_one_queue_and_many_views),
		T(t05_partitions_live_until_the_streams_of_the_system_are_gone),
		T(e06_partitions_that_cannot_be_had_are_refused_by_name),
		T(t05_each_partition_is_given_back_with_the_system),
		T(f40_without_memory_a_device_is_not_divided),
		T(t06_two_wraps_of_one_native_stream_are_the_same_queue),
		T(t06_a_wrapped_stream_is_unwrapped_after_its_own_work),
		T(t06_a_wrapped_stream_is_unwrapped_after_views_that_were_not_queried),
		T(t06_work_that_the_caller_left_on_a_wrapped_stream_is_not_waited_for),
		T(t06_a_wrapped_stream_is_unwrapped_whatever_a_lost_device_left),
		T(g03_the_maker_of_a_wrapped_stream_may_capture_it),
		T(t06_default_streams_of_two_devices_are_two_though_they_have_no_names),
		T(t06_the_stream_of_each_thread_is_none_to_wrap),
		T(t06_a_wrapped_stream_is_unwrapped_when_no_work_is_on_it),
	};

	if (argc > 1)
		rig_backend = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}

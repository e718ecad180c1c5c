/* The records of a timeline: what is kept, what is dropped, and in which order rings are read. */
#include "trace/ring.h"

#include "base/memory.h"
#include "test.h"

enum { ROOM = 4 };

static struct wr_record at(int64_t time, unsigned lane)
{
	return (struct wr_record){
		.at = time, .kind = WR_RECORD_READY, .lane = (uint16_t)lane, .value = (uint64_t)time};
}

static void add(struct wr_rings *rings, int64_t time, unsigned lane)
{
	struct wr_record record = at(time, lane);

	wr_rings_add(rings, &record, 1);
}

static int open_rings(void **state)
{
	static struct wr_rings rings;

	*state = &rings;
	return wr_rings_init(&rings, 2, ROOM, false);
}

static int close_rings(void **state)
{
	wr_rings_finish(*state);
	return 0;
}

/* The times of the records, in the order in which they are read. */
static size_t read_all(const struct wr_rings *rings, int64_t *times, size_t room, uint64_t *dropped)
{
	struct wr_merge merge;
	struct wr_place place;
	size_t count = 0;

	assert_int_equal(wr_merge_init(&merge, rings), WEIR_OK);
	*dropped = merge.dropped;
	while (wr_merge_next(&merge, &place)) {
		assert_true(count < room);
		times[count++] = wr_ring_at(place.ring, place.index)->at;
	}
	wr_merge_finish(&merge);
	return count;
}

static void expect(const struct wr_rings *rings, const int64_t *wanted, size_t count, uint64_t dropped)
{
	int64_t times[32];
	uint64_t lost;

	assert_int_equal(read_all(rings, times, 32, &lost), count);
	assert_int_equal(lost, dropped);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(times[i], wanted[i]);
}

static void rings_without_records_are_read_as_nothing(void **state)
{
	expect(*state, NULL, 0, 0);
}

static void records_are_read_in_the_order_of_time(void **state)
{
	const int64_t wanted[] = {1, 2, 3, 4, 5, 6};

	add(*state, 2, 0);
	add(*state, 5, 0);
	add(*state, 1, 1);
	add(*state, 6, 1);
	add(*state, 3, WR_RING_OUTSIDE);
	add(*state, 4, WR_RING_OUTSIDE);
	expect(*state, wanted, 6, 0);
}

static void equal_times_are_read_by_lane(void **state)
{
	struct wr_merge merge;
	struct wr_place place;

	add(*state, 7, 1);
	add(*state, 7, 0);
	assert_int_equal(wr_merge_init(&merge, *state), WEIR_OK);
	assert_true(wr_merge_next(&merge, &place));
	assert_int_equal(wr_ring_at(place.ring, place.index)->lane, 0);
	assert_true(wr_merge_next(&merge, &place));
	assert_int_equal(wr_ring_at(place.ring, place.index)->lane, 1);
	wr_merge_finish(&merge);
}

static void a_full_ring_drops_the_oldest(void **state)
{
	const int64_t wanted[] = {7, 8, 9, 10};

	for (int64_t time = 1; time <= 10; time++)
		add(*state, time, 0);
	expect(*state, wanted, 4, 6);
}

static void a_ring_that_is_just_full_drops_nothing(void **state)
{
	const int64_t wanted[] = {1, 2, 3, 4};

	for (int64_t time = 1; time <= ROOM; time++)
		add(*state, time, 0);
	expect(*state, wanted, ROOM, 0);
}

/* Else the others would tell of messages whose other half was dropped. */
static void what_others_have_from_before_is_left_out(void **state)
{
	const int64_t wanted[] = {7, 8, 8, 9, 10};

	add(*state, 2, 1);
	add(*state, 8, 1);
	for (int64_t time = 1; time <= 10; time++)
		add(*state, time, 0);
	expect(*state, wanted, 5, 7);
}

static void times_of_a_ring_never_decrease(void **state)
{
	const int64_t wanted[] = {5, 5, 6};

	add(*state, 5, WR_RING_OUTSIDE);
	add(*state, 3, WR_RING_OUTSIDE); /* stamped before the other thread had the lock */
	add(*state, 6, WR_RING_OUTSIDE);
	expect(*state, wanted, 3, 0);
}

static void a_span_is_read_with_the_record_before_it(void **state)
{
	struct wr_record pair[] = {at(4, 0), at(1, 0)};
	const int64_t wanted[] = {4, 9};

	pair[1].kind = WR_RECORD_SPAN;
	wr_rings_add(*state, pair, 2);
	add(*state, 9, 0);
	expect(*state, wanted, 2, 0);
}

static void cleared_rings_are_as_new(void **state)
{
	const int64_t wanted[] = {1};

	for (int64_t time = 1; time <= 10; time++)
		add(*state, time, 0);
	wr_rings_clear(*state);
	add(*state, 1, 0);
	expect(*state, wanted, 1, 0);
}

static void simulated_lanes_share_a_ring_and_keep_their_order(void **state)
{
	struct wr_rings rings;
	int64_t times[4];
	uint64_t dropped;

	(void)state;
	assert_int_equal(wr_rings_init(&rings, 8, ROOM, true), WEIR_OK);
	assert_int_equal(rings.count, 1);
	add(&rings, 1, 5);
	add(&rings, 1, WR_RING_OUTSIDE);
	add(&rings, 1, 0);
	assert_int_equal(read_all(&rings, times, 4, &dropped), 3);
	assert_int_equal(wr_ring_at(rings.rings, 0)->lane, 5);
	assert_int_equal(wr_ring_at(rings.rings, 2)->lane, 0);
	wr_rings_finish(&rings);
}

static void f40_any_allocation_fails(void **state)
{
	weir_status status = WEIR_E_NOMEM;

	(void)state;
	for (int64_t n = 0; status == WEIR_E_NOMEM; n++) {
		struct wr_rings rings;

		assert_true(n < 16);
		wr_memory_fail_at(n, false);
		status = wr_rings_init(&rings, 2, ROOM, false);
		wr_memory_fail_at(-1, false);
		if (!status) {
			assert_true(n >= 4); /* the rings, and each one's records */
			wr_rings_finish(&rings);
		}
	}
	assert_int_equal(status, WEIR_OK);
}

#define RINGS(test) cmocka_unit_test_setup_teardown(test, open_rings, close_rings)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RINGS(rings_without_records_are_read_as_nothing),
		RINGS(records_are_read_in_the_order_of_time),
		RINGS(equal_times_are_read_by_lane),
		RINGS(a_full_ring_drops_the_oldest),
		RINGS(a_ring_that_is_just_full_drops_nothing),
		RINGS(what_others_have_from_before_is_left_out),
		RINGS(times_of_a_ring_never_decrease),
		RINGS(a_span_is_read_with_the_record_before_it),
		RINGS(cleared_rings_are_as_new),
		cmocka_unit_test(simulated_lanes_share_a_ring_and_keep_their_order),
		cmocka_unit_test(f40_any_allocation_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

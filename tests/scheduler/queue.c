#include "base/memory.h"
#include "queue_rig.h"

#define NEAR_WRAP  (UINT64_C(0x100000000) - 10)
#define EVERYTHING SIZE_MAX

/* --- C4: inbox and front --- */

static void c04_what_is_pushed_waits_in_the_inbox(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 4, WEIR_POLICY_BLOCK, 0);

	push_all(rig, 1, 3);
	assert_int_equal(wr_queue_count(queue), 3);
	assert_int_equal(wr_queue_inbox(queue), 3);
	assert_int_equal(wr_queue_front(queue), 0);
	wr_queue_close_front(queue, 2);
	assert_int_equal(wr_queue_count(queue), 3);
	assert_int_equal(wr_queue_inbox(queue), 1);
	assert_int_equal(wr_queue_front(queue), 2);
	assert_int_equal(number_of(wr_queue_at(queue, 1)), 2);
	assert_taken(rig, 1, 2);
}

static void c04_what_arrives_later_waits(void **state)
{
	static const weir_policy policies[] = {WEIR_POLICY_BLOCK, WEIR_POLICY_POP};

	for (size_t i = 0; i < COUNT(policies); i++) {
		struct rig *rig = *state;
		struct wr_queue *queue = queue_of(rig, 3, policies[i], 0);

		push_all(rig, 1, 1);
		wr_queue_close_front(queue, 1);
		push_all(rig, 2, 3);
		assert_taken(rig, 1, 1);
		assert_int_equal(wr_queue_inbox(queue), 2);
		wr_queue_finish(queue);
		wr_free(queue);
		rig->queue = NULL;
	}
}

static void c04_closing_moves_no_more_than_there_is_and_may_be_repeated(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 4, WEIR_POLICY_BLOCK, 0);

	wr_queue_close_front(queue, 1);
	assert_int_equal(wr_queue_front(queue), 0);
	push_all(rig, 1, 2);
	wr_queue_close_front(queue, 1);
	push_all(rig, 3, 3);
	wr_queue_close_front(queue, EVERYTHING);
	assert_int_equal(wr_queue_front(queue), 3);
	assert_taken(rig, 1, 3);
}

static void c04_room_is_freed_by_the_take_not_by_looking(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 2, WEIR_POLICY_BLOCK, 0);

	assert_int_equal(wr_queue_room(queue), 2);
	push_all(rig, 1, 2);
	wr_queue_close_front(queue, 2);
	assert_int_equal(wr_queue_room(queue), 0);
	assert_int_equal(push(rig, 9), WR_PUSH_FULL);
	assert_taken(rig, 1, 2);
	assert_int_equal(wr_queue_room(queue), 2);
	push_all(rig, 3, 4);
}

static void c04_a_push_sees_freed_room_without_asking_for_it(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 1, WEIR_POLICY_BLOCK, 0);

	for (uint64_t i = 0; i < 10; i++) {
		assert_int_equal(push(rig, i), WR_PUSHED);
		assert_int_equal(push(rig, 99), WR_PUSH_FULL);
		wr_queue_close_front(queue, 1);
		assert_taken(rig, i, i);
	}
}

/* --- F25: the policies --- */

static void f25_block_refuses_and_leaves_the_message(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 1, WEIR_POLICY_BLOCK, 0);
	weir_message *message = numbered(rig->pool, 2);

	push_all(rig, 1, 1);
	assert_int_equal(wr_queue_push(queue, message), WR_PUSH_FULL);
	assert_int_equal(number_of(message), 2);
	assert_int_equal(wr_read(&queue->counters.pushed), 1);
	weir_message_unref(message);
}

static void f25_reject_drops_the_new_one_and_counts_it(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 2, WEIR_POLICY_REJECT, 0);

	push_all(rig, 1, 2);
	assert_int_equal(wr_queue_room(queue), EVERYTHING);
	assert_int_equal(push(rig, 3), WR_PUSH_DROPPED);
	assert_int_equal(wr_pool_live(rig->pool), 2);
	assert_int_equal(wr_read(&queue->counters.pushed), 3);
	assert_int_equal(wr_read(&queue->counters.dropped), 1);
	assert_conserved(queue);
	wr_queue_close_front(queue, EVERYTHING);
	assert_taken(rig, 1, 2);
}

static void f25_fault_says_so_and_leaves_the_message(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 1, WEIR_POLICY_FAULT, 0);
	weir_message *message = numbered(rig->pool, 2);

	push_all(rig, 1, 1);
	assert_int_equal(wr_queue_room(queue), EVERYTHING);
	assert_int_equal(wr_queue_push(queue, message), WR_PUSH_FAULT);
	assert_int_equal(wr_message_references(message), 1);
	assert_int_equal(wr_read(&queue->counters.pushed), 1);
	weir_message_unref(message);
}

static void f25_pop_evicts_the_oldest_of_the_inbox_and_counts_it(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 3, WEIR_POLICY_POP, 0);

	push_all(rig, 1, 5);
	assert_int_equal(wr_queue_count(queue), 3);
	assert_int_equal(wr_pool_live(rig->pool), 3);
	assert_int_equal(wr_read(&queue->counters.pushed), 5);
	assert_int_equal(wr_read(&queue->counters.dropped), 2);
	assert_conserved(queue);
	wr_queue_close_front(queue, EVERYTHING);
	assert_taken(rig, 3, 5);
}

static void c04_pop_never_evicts_the_front(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 6, WEIR_POLICY_POP, 0);

	for (size_t front = 1; front <= 5; front++) { /* the gap may be closed from either side */
		push_all(rig, 1, 6);
		wr_queue_close_front(queue, front);
		push_all(rig, 7, 8);
		assert_int_equal(wr_queue_count(queue), 6);
		assert_int_equal(number_of(wr_queue_at(queue, front - 1)), front);
		assert_taken(rig, 1, front);
		wr_queue_close_front(queue, EVERYTHING);
		assert_taken(rig, front + 3, 8);
	}
}

static void c04_pop_with_a_full_front_admits_one_more(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 2, WEIR_POLICY_POP, 0);

	push_all(rig, 1, 2);
	wr_queue_close_front(queue, 2);
	push_all(rig, 3, 3);
	assert_int_equal(wr_queue_count(queue), 3);
	push_all(rig, 4, 5);
	assert_int_equal(wr_queue_count(queue), 3);
	assert_int_equal(wr_read(&queue->counters.dropped), 2);
	assert_taken(rig, 1, 2);
	wr_queue_close_front(queue, 2);
	assert_taken(rig, 5, 5);
	assert_conserved(queue);
}

struct bomb {
	struct wr_queue *queue;
	bool free;
};

/* The queue's lock is free when this runs: otherwise looking into the queue would deadlock. */
static void look_inside(void *arg)
{
	struct bomb *bomb = arg;

	bomb->free = wr_queue_count(bomb->queue) == 1;
}

static void s11_no_lock_is_held_when_an_evicted_message_goes(void **state)
{
	struct rig *rig = *state;
	struct bomb bomb = {.queue = queue_of(rig, 1, WEIR_POLICY_POP, 0)};
	weir_message *message = NULL;

	assert_int_equal(weir_message_wrap_user(graph_of(rig->pool), &bomb, look_inside, &message), WEIR_OK);
	assert_int_equal(wr_queue_push(bomb.queue, message), WR_PUSHED);
	push_all(rig, 1, 1);
	assert_true(bomb.free);
}

/* --- E5, S5: closing --- */

static void s05_closed_is_seen_with_the_last_push(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 2, WEIR_POLICY_BLOCK, 0);

	assert_false(wr_queue_closed(queue));
	push_all(rig, 1, 1);
	wr_queue_close(queue);
	assert_true(wr_queue_closed(queue));
	assert_int_equal(wr_queue_count(queue), 1);
}

static void s05_a_receiver_that_becomes_done_drops_inbox_and_front(void **state)
{
	static const weir_policy policies[] = {WEIR_POLICY_BLOCK, WEIR_POLICY_POP, WEIR_POLICY_REJECT,
					       WEIR_POLICY_FAULT};

	for (size_t i = 0; i < COUNT(policies); i++) {
		struct rig *rig = *state;
		struct wr_queue *queue = queue_of(rig, 4, policies[i], 0);

		push_all(rig, 1, 4);
		wr_queue_close_front(queue, 2);
		assert_int_equal(wr_queue_drop(queue), 4);
		assert_int_equal(wr_queue_drop(queue), 0);
		assert_int_equal(wr_queue_count(queue), 0);
		assert_int_equal(wr_queue_front(queue), 0);
		assert_int_equal(wr_read(&queue->counters.closed), 4);
		assert_conserved(queue);
		wr_queue_finish(queue);
		wr_free(queue);
		rig->queue = NULL;
	}
}

static void s05_the_sender_takes_back_what_a_done_receiver_left(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 3, WEIR_POLICY_BLOCK, 0);

	push_all(rig, 1, 2);
	assert_int_equal(wr_queue_drop(queue), 2);
	push_all(rig, 3, 5);
	assert_int_equal(wr_queue_take_back(queue), 3);
	assert_int_equal(wr_read(&queue->counters.taken_back), 3);
	assert_int_equal(wr_queue_room(queue), 3);
	push_all(rig, 6, 6);
	assert_int_equal(wr_queue_take_back(queue), 1);
	assert_conserved(queue);
}

static void e05_each_message_is_counted_once(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 2, WEIR_POLICY_POP, 0);

	push_all(rig, 1, 3); /* drops 1 */
	wr_queue_close_front(queue, 1);
	assert_conserved(queue);
	assert_taken(rig, 2, 2);
	assert_conserved(queue);
	push_all(rig, 4, 4);
	assert_int_equal(wr_queue_drop(queue), 2);
	push_all(rig, 5, 5);
	assert_int_equal(wr_queue_take_back(queue), 1);
	push_all(rig, 6, 7);
	assert_int_equal(wr_queue_abandon(queue), 2);
	assert_conserved(queue);
	assert_int_equal(wr_read(&queue->counters.pushed), 7);
	assert_int_equal(wr_read(&queue->counters.delivered), 1);
	assert_int_equal(wr_read(&queue->counters.abandoned), 2);
}

static void s08_a_reset_discards_leftovers_and_counts_from_zero(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 3, WEIR_POLICY_BLOCK, 0);

	push_all(rig, 1, 3);
	wr_queue_close_front(queue, 1);
	wr_queue_close(queue);
	assert_int_equal(wr_queue_reset(queue), 3);
	assert_false(wr_queue_closed(queue));
	assert_int_equal(wr_queue_count(queue), 0);
	assert_conserved(queue);
	assert_int_equal(wr_read(&queue->counters.pushed), 0);
	push_all(rig, 4, 6);
	wr_queue_close_front(queue, 2);
	assert_taken(rig, 4, 5);
	assert_int_equal(wr_queue_count(queue), 1);
}

static void a_front_closed_after_a_reset_holds_only_what_came_later(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 4, WEIR_POLICY_BLOCK, 0);

	push_all(rig, 1, 1);
	wr_queue_close_front(queue, 1);
	push_all(rig, 2, 3);
	assert_int_equal(wr_queue_reset(queue), 3);
	wr_queue_close_front(queue, 1);
	assert_int_equal(wr_queue_front(queue), 0);
	push_all(rig, 4, 4);
	wr_queue_close_front(queue, 2);
	assert_taken(rig, 4, 4);
}

static void a_finished_queue_leaves_no_message(void **state)
{
	struct rig *rig = *state;
	struct wr_queue zeroed = {0};
	struct wr_queue *queue = queue_of(rig, 4, WEIR_POLICY_POP, 0);

	push_all(rig, 1, 4);
	wr_queue_close_front(queue, 2);
	wr_queue_finish(queue);
	wr_queue_finish(queue);
	wr_queue_finish(&zeroed);
	assert_int_equal(wr_pool_live(rig->pool), 0);
}

/* --- bounds --- */

static void f27_capacities_out_of_range_are_refused(void **state)
{
	struct wr_queue queue;
	static const uint32_t good[] = {1, 2, 3, WR_CAPACITY_MAX - 1, WR_CAPACITY_MAX};

	(void)state;
	assert_int_equal(wr_queue_init(&queue, 0, 0, WEIR_POLICY_BLOCK), WEIR_E_INVALID);
	assert_int_equal(wr_queue_init(&queue, 0, WR_CAPACITY_MAX + 1, WEIR_POLICY_BLOCK), WEIR_E_INVALID);
	assert_string_equal(weir_last_error(), "capacity is 65537, must be 1 to 65536");
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_int_equal(wr_queue_init(&queue, 0, good[i], WEIR_POLICY_POP), WEIR_OK);
		assert_true(queue.mask + 1 > good[i]);
		wr_queue_finish(&queue);
	}
}

static void every_capacity_holds_exactly_so_many(void **state)
{
	for (uint32_t capacity = 1; capacity <= 9; capacity++) {
		struct rig *rig = *state;
		struct wr_queue *queue = queue_of(rig, capacity, WEIR_POLICY_BLOCK, 3);

		push_all(rig, 1, capacity);
		assert_int_equal(push(rig, 0), WR_PUSH_FULL);
		wr_queue_close_front(queue, EVERYTHING);
		assert_taken(rig, 1, capacity);
		wr_queue_finish(queue);
		wr_free(queue);
		rig->queue = NULL;
	}
}

static void pass_by(struct rig *rig, weir_policy policy)
{
	struct wr_queue *queue = queue_of(rig, 3, policy, NEAR_WRAP);

	wr_store(&queue->counters.pushed, NEAR_WRAP);
	wr_store(&queue->counters.delivered, NEAR_WRAP);
	for (uint64_t i = 0; i < 10; i++) {
		push_all(rig, 3 * i, 3 * i + 2);
		wr_queue_close_front(queue, 2);
		assert_taken(rig, 3 * i, 3 * i + 1);
		wr_queue_close_front(queue, 1);
		assert_taken(rig, 3 * i + 2, 3 * i + 2);
		assert_conserved(queue);
	}
	assert_int_equal(wr_read(&queue->counters.delivered), NEAR_WRAP + 30);
	assert_int_equal(wr_read(&queue->head), NEAR_WRAP + 30);
	wr_queue_finish(queue);
	wr_free(queue);
	rig->queue = NULL;
}

static void f39_counters_pass_two_to_the_32(void **state)
{
	pass_by(*state, WEIR_POLICY_BLOCK);
	pass_by(*state, WEIR_POLICY_POP);
}

static void f40_a_queue_without_memory_is_refused_whole(void **state)
{
	struct wr_queue queue;

	(void)state;
	wr_memory_fail_at(0, false);
	assert_int_equal(wr_queue_init(&queue, 0, 4, WEIR_POLICY_POP), WEIR_E_NOMEM);
	wr_memory_fail_at(-1, false);
	wr_queue_finish(&queue);
	assert_null(queue.slots);
}

/* --- threads --- */

#define MANY 20000

static void send(void *arg)
{
	struct rig *rig = arg;
	struct wr_local local;

	work_for(&local, 1, rig->pool);
	for (uint64_t i = 1; i <= MANY; i++)
		while (push(rig, i) == WR_PUSH_FULL)
			wr_thread_yield();
	wr_queue_close(rig->queue);
	be_foreign();
}

/* Takes until closed and empty; asserts increasing numbers. Returns the last one. */
static uint64_t receive(struct rig *rig)
{
	weir_message *taken[8];
	uint64_t last = 0;
	bool more = true;

	while (more) {
		bool closed = wr_queue_closed(rig->queue);

		assert_true(wr_queue_count(rig->queue) <= rig->queue->capacity + 1);
		wr_queue_close_front(rig->queue, 1 + last % COUNT(taken));
		more = !closed || wr_queue_front(rig->queue);
		for (size_t i = 0, n = wr_queue_take(rig->queue, taken); i < n; i++) {
			assert_true(number_of(taken[i]) > last);
			last = number_of(taken[i]);
			weir_message_unref(taken[i]);
		}
	}
	return last;
}

static void run(struct rig *rig, uint32_t capacity, weir_policy policy)
{
	struct wr_queue *queue = queue_of(rig, capacity, policy, NEAR_WRAP);
	struct wr_thread thread = {0};

	assert_int_equal(wr_thread_start(&thread, "sender", send, rig), WEIR_OK);
	if (policy == WEIR_POLICY_REJECT)
		receive(rig);
	else
		assert_int_equal(receive(rig), MANY);
	wr_thread_join(&thread);
	assert_int_equal(wr_read(&queue->counters.pushed), MANY);
	assert_int_equal(wr_queue_count(queue), 0);
	assert_conserved(queue);
}

static void e05_two_threads_block(void **state)
{
	struct rig *rig = *state;

	run(rig, 5, WEIR_POLICY_BLOCK);
	assert_int_equal(wr_read(&rig->queue->counters.delivered), MANY);
}

static void e05_two_threads_pop(void **state)
{
	run(*state, 3, WEIR_POLICY_POP);
}

static void e05_two_threads_reject(void **state)
{
	run(*state, 3, WEIR_POLICY_REJECT);
}

#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RIG(c04_what_is_pushed_waits_in_the_inbox),
		WITH_RIG(c04_what_arrives_later_waits),
		WITH_RIG(c04_closing_moves_no_more_than_there_is_and_may_be_repeated),
		WITH_RIG(c04_room_is_freed_by_the_take_not_by_looking),
		WITH_RIG(c04_a_push_sees_freed_room_without_asking_for_it),
		WITH_RIG(f25_block_refuses_and_leaves_the_message),
		WITH_RIG(f25_reject_drops_the_new_one_and_counts_it),
		WITH_RIG(f25_fault_says_so_and_leaves_the_message),
		WITH_RIG(f25_pop_evicts_the_oldest_of_the_inbox_and_counts_it),
		WITH_RIG(c04_pop_never_evicts_the_front),
		WITH_RIG(c04_pop_with_a_full_front_admits_one_more),
		WITH_RIG(s11_no_lock_is_held_when_an_evicted_message_goes),
		WITH_RIG(s05_closed_is_seen_with_the_last_push),
		WITH_RIG(s05_a_receiver_that_becomes_done_drops_inbox_and_front),
		WITH_RIG(s05_the_sender_takes_back_what_a_done_receiver_left),
		WITH_RIG(e05_each_message_is_counted_once),
		WITH_RIG(s08_a_reset_discards_leftovers_and_counts_from_zero),
		WITH_RIG(a_front_closed_after_a_reset_holds_only_what_came_later),
		WITH_RIG(a_finished_queue_leaves_no_message),
		WITH_RIG(f27_capacities_out_of_range_are_refused),
		WITH_RIG(every_capacity_holds_exactly_so_many),
		WITH_RIG(f39_counters_pass_two_to_the_32),
		WITH_RIG(f40_a_queue_without_memory_is_refused_whole),
		WITH_RIG(e05_two_threads_block),
		WITH_RIG(e05_two_threads_pop),
		WITH_RIG(e05_two_threads_reject),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

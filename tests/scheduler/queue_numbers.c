/* The numbers of messages: what observers are told of a message keeps its number, wherever it is moved. */
#include "base/memory.h"
#include "queue_rig.h"

#define NEAR_WRAP  (UINT64_C(0x100000000) - 10)
#define EVERYTHING SIZE_MAX

static uint64_t pushed, dropped, taken[8], first, fronts;
static size_t taken_count;

static weir_status open_numbers(const struct wr_trace_options *options, void **self)
{
	(void)options;
	*self = taken;
	return WEIR_OK;
}

static void on_deliver(void *self, int64_t at, unsigned lane, uint32_t queue, uint64_t number)
{
	(void)self, (void)at, (void)lane, (void)queue;
	pushed = number;
}

static void on_drop(void *self, int64_t at, unsigned lane, uint32_t queue, uint64_t number)
{
	(void)self, (void)at, (void)lane, (void)queue;
	dropped = number;
}

static void on_take(void *self, int64_t at, unsigned lane, uint32_t queue, uint64_t number)
{
	(void)self, (void)at, (void)lane, (void)queue;
	taken[taken_count++] = number;
}

static void on_front(void *self, uint32_t queue, uint64_t number, uint64_t count)
{
	(void)self, (void)queue;
	first = number;
	fronts = count;
}

static const struct wr_observer numbers = {.name = "numbers",
					   .open = open_numbers,
					   .deliver = on_deliver,
					   .drop = on_drop,
					   .take = on_take,
					   .front = on_front};

static struct wr_trace *observed(struct wr_queue *queue)
{
	const struct wr_trace_options options = {.workers = 1};
	const struct wr_observer *const list[] = {&numbers};

	queue->id = 0;
	assert_int_equal(wr_trace_open_with(&options, list, 1, &queue->trace), WEIR_OK);
	return queue->trace;
}

static enum wr_pushed told_push(struct rig *rig, struct wr_trace *trace, uint64_t number)
{
	enum wr_pushed result;

	wr_queue_tell_push(rig->queue, trace, 0);
	result = push(rig, number);
	if (result != WR_PUSHED)
		wr_queue_tell_drop(rig->queue, trace, 0, result);
	return result;
}

/* Takes the front: the messages `from` to `to`, whose numbers are as much more as `base`. */
static void assert_told_taken(struct rig *rig, struct wr_trace *trace, uint64_t base, uint64_t from,
			      uint64_t to)
{
	taken_count = 0;
	wr_queue_tell_take(rig->queue, trace, 0);
	assert_int_equal(taken_count, to - from + 1);
	for (size_t i = 0; i < taken_count; i++)
		assert_int_equal(taken[i], base + from + i);
	assert_taken(rig, from, to);
}

static void e05_a_message_has_the_place_of_its_push(void **state)
{
	struct rig *rig = *state;
	struct wr_trace *trace = observed(queue_of(rig, 3, WEIR_POLICY_BLOCK, NEAR_WRAP));

	for (uint64_t i = 0; i < 40; i += 2) {
		assert_int_equal(told_push(rig, trace, i), WR_PUSHED);
		assert_int_equal(pushed, NEAR_WRAP + i);
		assert_int_equal(told_push(rig, trace, i + 1), WR_PUSHED);
		wr_queue_close_front(rig->queue, EVERYTHING);
		assert_told_taken(rig, trace, NEAR_WRAP, i, i + 1);
	}
	wr_trace_close(trace);
}

static void f25_e05_a_rejected_message_leaves_its_number_to_the_next(void **state)
{
	struct rig *rig = *state;
	struct wr_trace *trace = observed(queue_of(rig, 4, WEIR_POLICY_REJECT, 0));

	for (uint64_t i = 0; i < 9; i++) /* 4 go in, 5 are rejected */
		assert_int_equal(told_push(rig, trace, i), i < 4 ? WR_PUSHED : WR_PUSH_DROPPED);
	assert_int_equal(pushed, 4);
	assert_int_equal(dropped, 4);
	wr_queue_close_front(rig->queue, EVERYTHING);
	assert_told_taken(rig, trace, 0, 0, 3);
	wr_trace_close(trace);
}

/* The front stays, of the inbox the oldest goes: whichever of them is shorter moves, and keeps its numbers.
 */
static void f25_e05_pop_moves_messages_and_not_their_numbers(void **state)
{
	for (size_t front = 0; front <= 4; front++) {
		struct rig *rig = *state;
		struct wr_queue *queue = queue_of(rig, 5, WEIR_POLICY_POP, 0);
		struct wr_trace *trace = observed(queue);

		for (uint64_t i = 0; i < 5; i++)
			assert_int_equal(told_push(rig, trace, i), WR_PUSHED);
		wr_queue_close_front(queue, front);
		assert_int_equal(first, 0);
		assert_int_equal(fronts, front);
		assert_int_equal(told_push(rig, trace, 5), WR_PUSH_EVICTED);
		assert_int_equal(pushed, 5);
		assert_int_equal(dropped, front);
		if (front)
			assert_told_taken(rig, trace, 0, 0, front - 1);
		wr_queue_close_front(queue, EVERYTHING);
		assert_int_equal(first, front + 1);
		assert_told_taken(rig, trace, 0, front + 1, 5);
		wr_queue_finish(queue);
		wr_free(queue);
		rig->queue = NULL;
		wr_trace_close(trace);
	}
}

/* A push that replaces a message has its place and its number; what was shown stays, and is taken again
 * untold. */
static void e05_latest_replaces_in_place(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 1, WEIR_POLICY_LATEST, NEAR_WRAP);
	struct wr_trace *trace = observed(queue);
	weir_message *taken_now[1];

	assert_int_equal(told_push(rig, trace, 0), WR_PUSHED);
	assert_int_equal(told_push(rig, trace, 1), WR_PUSHED);
	assert_int_equal(pushed, NEAR_WRAP + 1);
	assert_int_equal(told_push(rig, trace, 2), WR_PUSH_EVICTED);
	assert_int_equal(pushed, NEAR_WRAP + 1);
	assert_int_equal(dropped, NEAR_WRAP + 1);
	assert_int_equal(number_of(wr_queue_oldest(queue)), 0);
	wr_queue_show(queue, trace, 0);
	assert_told_taken(rig, trace, NEAR_WRAP, 0, 0);
	taken_count = 0;
	wr_queue_tell_take(queue, trace, 0);
	assert_int_equal(taken_count, 0);
	assert_int_equal(wr_queue_take(queue, taken_now), 1);
	assert_int_equal(number_of(taken_now[0]), 0);
	weir_message_unref(taken_now[0]);
	wr_queue_show(queue, trace, 0);
	assert_int_equal(told_push(rig, trace, 3), WR_PUSHED);
	wr_queue_show(queue, trace, 0); /* 2 is dropped: no tick has received it */
	assert_int_equal(dropped, NEAR_WRAP + 1);
	assert_told_taken(rig, trace, NEAR_WRAP - 1, 3, 3);
	assert_conserved(queue);
	assert_int_equal(wr_read(&queue->counters.dropped), 2);
	assert_int_equal(wr_read(&queue->counters.delivered), 2);
	wr_trace_close(trace);
}

/* Times stay with their messages when `pop` moves these. */
static void c04_a_queue_keeps_when_each_message_was_pushed(void **state)
{
	for (size_t front = 0; front <= 4; front++) {
		struct rig *rig = *state;
		struct wr_queue *queue = queue_of(rig, 5, WEIR_POLICY_POP, NEAR_WRAP);

		assert_int_equal(wr_queue_keep_times(queue), WEIR_OK);
		assert_true(wr_queue_oldest_at(queue) == INT64_MAX);
		for (uint64_t i = 0; i < 5; i++) {
			assert_int_equal(push(rig, i), WR_PUSHED);
			queue->pushed_at[(NEAR_WRAP + i) & queue->mask] = (int64_t)i;
		}
		wr_queue_close_front(queue, front);
		assert_int_equal(push(rig, 5), WR_PUSH_EVICTED);
		assert_int_equal(wr_queue_oldest_at(queue), front ? 0 : 1);
		if (front)
			assert_taken(rig, 0, front - 1);
		if (front < 4)
			assert_int_equal(wr_queue_oldest_at(queue), front + 1);
		wr_queue_close_front(queue, EVERYTHING);
		assert_taken(rig, front + 1, 5);
		wr_queue_finish(queue);
		wr_free(queue);
		rig->queue = NULL;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(e05_a_message_has_the_place_of_its_push, set_up, tear_down),
		cmocka_unit_test_setup_teardown(f25_e05_a_rejected_message_leaves_its_number_to_the_next,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(f25_e05_pop_moves_messages_and_not_their_numbers, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(e05_latest_replaces_in_place, set_up, tear_down),
		cmocka_unit_test_setup_teardown(c04_a_queue_keeps_when_each_message_was_pushed, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

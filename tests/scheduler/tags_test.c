/* Tags of a queue: what observers know of a message goes where the message goes. */
#include "base/memory.h"
#include "queue_rig.h"

#define NEAR_WRAP  (UINT64_C(0x100000000) - 10)
#define EVERYTHING SIZE_MAX

static void tag_push(struct rig *rig, uint64_t number, uint64_t origin)
{
	wr_tags_origins(rig->queue->tags)[0] = origin;
	wr_tags_push(rig->queue);
	push(rig, number);
}

/* Takes the front: pushes `from` to `to` of this run, each with the origin 100 + its number. */
static void assert_tags_taken(struct rig *rig, uint64_t from, uint64_t to)
{
	struct wr_queue *queue = rig->queue;

	wr_queue_close_front(queue, EVERYTHING);
	assert_int_equal(wr_tags_take(queue), to - from + 1);
	for (uint64_t i = from; i <= to; i++) {
		assert_int_equal(wr_tag_taken(queue->tags, (size_t)(i - from))[0], i);
		assert_int_equal(wr_tag_taken(queue->tags, (size_t)(i - from))[1], 100 + i);
	}
	assert_taken(rig, from, to);
}

static void e05_a_tag_goes_with_its_message(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 3, WEIR_POLICY_BLOCK, NEAR_WRAP);

	assert_int_equal(wr_queue_add_tags(queue, 1), WEIR_OK);
	for (uint64_t i = 0; i < 40; i += 2) {
		tag_push(rig, i, 100 + i);
		tag_push(rig, i + 1, 101 + i);
		assert_tags_taken(rig, i, i + 1);
	}
}

static void f25_e05_a_rejected_message_leaves_the_tags_of_the_others(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 4, WEIR_POLICY_REJECT, 0);

	assert_int_equal(wr_queue_add_tags(queue, 1), WEIR_OK);
	for (uint64_t i = 0; i < 9; i++) /* 4 go in, 5 are rejected */
		tag_push(rig, i, 100 + i);
	assert_int_equal(queue->tags->pushes, 9);
	assert_tags_taken(rig, 0, 3);
}

/* The front stays, of the inbox the oldest goes: whichever of them is shorter moves, with its tags. */
static void f25_e05_pop_moves_the_tags_with_the_messages(void **state)
{
	for (size_t front = 0; front <= 4; front++) {
		struct rig *rig = *state;
		struct wr_queue *queue = queue_of(rig, 5, WEIR_POLICY_POP, 0);
		assert_int_equal(wr_queue_add_tags(queue, 1), WEIR_OK);
		for (uint64_t i = 0; i < 5; i++)
			tag_push(rig, i, 100 + i);
		wr_queue_close_front(queue, front);
		assert_int_equal(queue->tags->evicted, WR_NOT_PUSHED);
		tag_push(rig, 5, 105);
		assert_int_equal(queue->tags->evicted, front);
		if (front) {
			assert_int_equal(wr_tags_take(queue), front);
			for (size_t i = 0; i < front; i++)
				assert_int_equal(wr_tag_taken(queue->tags, i)[0], i);
			assert_taken(rig, 0, front - 1);
		}
		assert_tags_taken(rig, front + 1, 5);
		wr_queue_finish(queue);
		wr_free(queue);
		rig->queue = NULL;
	}
}

static void s08_e05_a_reset_counts_pushes_from_zero(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 4, WEIR_POLICY_BLOCK, 0);

	assert_int_equal(wr_queue_add_tags(queue, 1), WEIR_OK);
	tag_push(rig, 7, 107);
	wr_queue_reset(queue);
	assert_int_equal(wr_tags_origins(queue->tags)[0], 0);
	tag_push(rig, 0, 100);
	assert_tags_taken(rig, 0, 0);
}

static void f40_tags_without_memory_leave_the_queue_as_it_was(void **state)
{
	struct rig *rig = *state;
	struct wr_queue *queue = queue_of(rig, 4, WEIR_POLICY_BLOCK, 0);

	wr_memory_fail_at(0, false);
	assert_int_equal(wr_queue_add_tags(queue, 1), WEIR_E_NOMEM);
	wr_memory_fail_at(-1, false);
	assert_null(queue->tags);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(e05_a_tag_goes_with_its_message, set_up, tear_down),
		cmocka_unit_test_setup_teardown(f25_e05_a_rejected_message_leaves_the_tags_of_the_others,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(f25_e05_pop_moves_the_tags_with_the_messages, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(s08_e05_a_reset_counts_pushes_from_zero, set_up, tear_down),
		cmocka_unit_test_setup_teardown(f40_tags_without_memory_leave_the_queue_as_it_was, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

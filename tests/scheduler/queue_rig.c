#include "queue_rig.h"

#include "base/memory.h"

int set_up(void **state)
{
	struct rig *rig = wr_alloc(1, sizeof(*rig));

	assert_int_equal(wr_pool_create(&rig->pool), WEIR_OK);
	work_for(&rig->local, 0, rig->pool);
	*state = rig;
	return 0;
}

int tear_down(void **state)
{
	struct rig *rig = *state;

	if (rig->queue)
		wr_queue_finish(rig->queue);
	wr_free(rig->queue);
	assert_int_equal(wr_pool_live(rig->pool), 0);
	wr_pool_destroy(rig->pool);
	be_foreign();
	wr_free(rig);
	return 0;
}

struct wr_queue *queue_of(struct rig *rig, uint32_t capacity, weir_policy policy, uint64_t at)
{
	rig->queue = wr_alloc_aligned(64, sizeof(*rig->queue));
	assert_int_equal(wr_queue_init(rig->queue, 0, capacity, policy), WEIR_OK);
	rig->queue->head_seen = rig->queue->tail_seen = at;
	wr_store(&rig->queue->head, at);
	wr_store(&rig->queue->front_end, at);
	wr_store(&rig->queue->tail, at);
	return rig->queue;
}

weir_message *numbered(struct wr_pool *pool, uint64_t number)
{
	weir_message *message = NULL;

	assert_int_equal(weir_message_create_bytes(graph_of(pool), sizeof(number), &message), WEIR_OK);
	*(uint64_t *)weir_message_data(message) = number;
	return message;
}

uint64_t number_of(const weir_message *message)
{
	return *(const uint64_t *)weir_message_data(message);
}

enum wr_pushed push(struct rig *rig, uint64_t number)
{
	weir_message *message = numbered(rig->pool, number);
	enum wr_pushed pushed = wr_queue_push(rig->queue, message);

	if (pushed == WR_PUSH_FULL || pushed == WR_PUSH_FAULT)
		weir_message_unref(message);
	return pushed;
}

void push_all(struct rig *rig, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i <= to; i++)
		assert_true(push(rig, i) <= WR_PUSH_EVICTED);
}

void assert_taken(struct rig *rig, uint64_t from, uint64_t to)
{
	weir_message *taken[64];
	size_t n;

	assert_true(wr_queue_front(rig->queue) <= 64);
	n = wr_queue_take(rig->queue, taken);
	assert_int_equal(n, to - from + 1);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(number_of(taken[i]), from + i);
		weir_message_unref(taken[i]);
	}
}

void assert_conserved(struct wr_queue *queue)
{
	assert_true(wr_counts_conserved(&queue->counters, wr_queue_count(queue)));
}

/* Queues under test: messages that carry a number, and the expected sums. */
#ifndef TESTS_GRAPHS_QUEUE_RIG_H
#define TESTS_GRAPHS_QUEUE_RIG_H

#include "scheduler/queue.h"
#include "system.h"

struct rig {
	struct wr_pool *pool;
	struct wr_local local;
	struct wr_queue *queue;
};

int set_up(void **state);
int tear_down(void **state); /* asserts that no message is left */
/* Creates a queue of that capacity and policy, with positions beginning at `at`. */
struct wr_queue *queue_of(struct rig *rig, uint32_t capacity, weir_policy policy, uint64_t at);
weir_message *numbered(struct wr_pool *pool, uint64_t number);
uint64_t number_of(const weir_message *message);
enum wr_pushed push(struct rig *rig, uint64_t number); /* drops a message that is rejected */
void push_all(struct rig *rig, uint64_t from, uint64_t to);
/* Takes the front and asserts that it holds the numbers from..to. */
void assert_taken(struct rig *rig, uint64_t from, uint64_t to);
void assert_conserved(struct wr_queue *queue);

#endif

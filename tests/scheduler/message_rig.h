/* Messages under test: a pool, with this thread as its worker 0, and a system that is bound where a test
 * binds it. */
#ifndef TESTS_SCHEDULER_MESSAGE_RIG_H
#define TESTS_SCHEDULER_MESSAGE_RIG_H

#include "scheduler/message.h"
#include "system.h"

struct rig {
	struct wr_pool *pool;
	struct wr_local local;
	struct wr_system system;
	int destroyed;
	uintptr_t destroyed_by;
};

int set_up(void **state);
int tear_down(void **state); /* asserts that no message and no memory is left */
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

weir_message *empty(struct wr_pool *pool);
weir_message *bytes(struct wr_pool *pool, size_t size);
void destroyed(void *arg);           /* a destructor that counts in the rig, its argument */
weir_message *user(struct rig *rig); /* with that destructor */
weir_fence fence(uint64_t stream, uint64_t point);

#endif

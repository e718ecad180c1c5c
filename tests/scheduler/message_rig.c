#include "message_rig.h"

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

	wr_memory_fail_at(-1, false);
	assert_int_equal(wr_pool_live(rig->pool), 0);
	assert_int_equal(rig->system.allocations, 0);
	assert_int_equal(rig->system.listed, 0);
	wr_pool_destroy(rig->pool);
	wr_thread_set_local(NULL);
	wr_free(rig);
	return 0;
}

void destroyed(void *arg)
{
	struct rig *rig = arg;

	rig->destroyed++;
	rig->destroyed_by = wr_thread_self();
}

weir_message *empty(struct wr_pool *pool)
{
	weir_message *message = NULL;

	assert_int_equal(wr_message_empty(pool, &message), WEIR_OK);
	return message;
}

weir_message *bytes(struct wr_pool *pool, size_t size)
{
	weir_message *message = NULL;

	assert_int_equal(weir_message_create_bytes(graph_of(pool), size, &message), WEIR_OK);
	return message;
}

weir_message *user(struct rig *rig)
{
	weir_message *message = NULL;

	assert_int_equal(weir_message_wrap_user(graph_of(rig->pool), rig, destroyed, &message), WEIR_OK);
	return message;
}

weir_fence fence(uint64_t stream, uint64_t point)
{
	return (weir_fence){.stream = stream, .value = point};
}

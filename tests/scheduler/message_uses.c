/* What device work still uses of a message: fences, deferred frees, destructors (T2, T4, B3). */
#include "base/memory.h"
#include "message_rig.h"

/* --- fences and the deferred-free list --- */

static void t04_producers_are_kept_latest_per_stream(void **state)
{
	struct rig *rig = *state;
	weir_message *message = empty(rig->pool);
	weir_fence found[2] = {{0}};

	assert_false(wr_message_has_fences(message));
	wr_message_add_fence(message, fence(0, 0), true);
	assert_int_equal(wr_message_fences(message, found, 2), 0);
	wr_message_add_fence(message, fence(5, 3), true);
	wr_message_add_fence(message, fence(6, 1), true);
	wr_message_add_fence(message, fence(5, 2), true);
	wr_message_add_fence(message, fence(6, 4), true);
	wr_message_add_fence(message, fence(7, 9), false);
	assert_int_equal(weir_message_fences(message, 0, NULL), 2);
	assert_int_equal(weir_message_fences(message, 2, found), 2);
	assert_int_equal(found[0].value, 3);
	assert_int_equal(found[1].value, 4);
	weir_message_unref(message);
}

static void t04_any_number_of_streams_fits_and_its_memory_is_kept(void **state)
{
	struct rig *rig = *state;
	weir_fence found[100];
	weir_message *message;
	int64_t before;

	for (int round = 0; round < 2; round++) {
		before = wr_memory_count();
		message = empty(rig->pool);
		weir_message_ref(message); /* shared: under its lock */
		for (uint64_t i = 1; i <= COUNT(found); i++)
			assert_int_equal(wr_message_add_fence(message, fence(i, i), true), WEIR_OK);
		assert_int_equal(wr_message_fences(message, found, COUNT(found)), COUNT(found));
		assert_int_equal(found[99].stream, 100);
		weir_message_unref(message);
		weir_message_unref(message);
	}
	assert_int_equal(wr_memory_count(), before);
}

static void t04_memory_waits_for_the_whole_use_set(void **state)
{
	struct rig *rig = *state;
	weir_message *message;

	wr_pool_bind(rig->pool, &rig->system);
	message = bytes(rig->pool, 4096);
	assert_int_equal(weir_message_add_reader(message, fence(3, 1)), WEIR_OK);
	wr_message_add_fence(message, fence(4, 1), true);
	weir_message_unref(message);
	assert_int_equal(rig->system.listed, 1);
	assert_int_equal(rig->system.deferred->count, 2);
	assert_int_equal(rig->system.allocations, 1);
	assert_int_equal(wr_pool_live(rig->pool), 1);
	complete(&rig->system);
	assert_int_equal(rig->system.allocations, 0);
	assert_int_equal(wr_pool_live(rig->pool), 0);
}

static void t04_inline_bytes_wait_for_their_readers_too(void **state)
{
	struct rig *rig = *state;
	weir_message *message, *other;

	wr_pool_bind(rig->pool, &rig->system);
	message = bytes(rig->pool, 16);
	wr_message_add_fence(message, fence(3, 1), false);
	weir_message_unref(message);
	other = bytes(rig->pool, 16);
	assert_ptr_not_equal(other, message);
	weir_message_unref(other);
	complete(&rig->system);
}

static void t04_what_is_complete_or_holds_nothing_is_not_listed(void **state)
{
	struct rig *rig = *state;
	weir_message *message;

	wr_pool_bind(rig->pool, &rig->system);
	message = empty(rig->pool);
	wr_message_add_fence(message, fence(3, 1), true);
	weir_message_unref(message);
	assert_int_equal(rig->system.listed, 0);
	message = bytes(rig->pool, 100);
	wr_message_add_fence(message, fence(3, 1), true);
	rig->system.complete = true;
	weir_message_unref(message);
	assert_int_equal(rig->system.listed, 0);
	assert_int_equal(wr_pool_live(rig->pool), 0);
}

static void t02_a_fence_that_cannot_complete_is_refused(void **state)
{
	struct rig *rig = *state;
	weir_message *message = bytes(rig->pool, 100);

	assert_int_equal(weir_message_add_reader(message, fence(0, 0)), WEIR_OK);
	assert_int_equal(weir_message_add_reader(message, fence(1, 1)), WEIR_E_INVALID);
	wr_pool_bind(rig->pool, &rig->system);
	assert_int_equal(weir_message_add_reader(message, fence(UNKNOWN_STREAM, 1)), WEIR_E_INVALID);
	weir_message_unref(message);
	assert_int_equal(rig->system.listed, 0);
}

static void a_payload_goes_back_to_the_system_it_came_from(void **state)
{
	struct rig *rig = *state;
	struct wr_system other = {0};
	weir_message *own = bytes(rig->pool, 100), *first;

	wr_pool_bind(rig->pool, &rig->system);
	first = bytes(rig->pool, 100);
	wr_pool_bind(rig->pool, &other);
	weir_message_unref(own);
	weir_message_unref(first);
	assert_int_equal(rig->system.allocations, 0);
	assert_int_equal(other.allocations, 0);
	wr_pool_bind(rig->pool, NULL);
}

/* --- destructors --- */

static void a_destructor_runs_once_after_the_last_reference(void **state)
{
	struct rig *rig = *state;
	weir_message *message = user(rig);

	assert_ptr_equal(weir_message_data(message), rig);
	assert_int_equal(weir_message_size(message), 0);
	weir_message_unref(weir_message_ref(message));
	assert_int_equal(rig->destroyed, 0);
	weir_message_unref(message);
	assert_int_equal(rig->destroyed, 1);
}

static void t04_a_destructor_waits_for_the_use_set(void **state)
{
	struct rig *rig = *state;
	weir_message *message = user(rig);

	wr_pool_bind(rig->pool, &rig->system);
	wr_message_add_fence(message, fence(1, 1), false);
	weir_message_unref(message);
	assert_int_equal(rig->destroyed, 0);
	assert_true(rig->system.deferred->destructor);
	complete(&rig->system);
	assert_int_equal(rig->destroyed, 1);
}

static void unref_in_thread(void *message)
{
	weir_message_unref(message);
}

static void b03_a_foreign_thread_hands_the_destructor_to_a_worker(void **state)
{
	struct rig *rig = *state;
	weir_message *message = user(rig);
	struct wr_thread thread = {0};

	wr_pool_bind(rig->pool, &rig->system);
	assert_int_equal(wr_thread_start(&thread, "foreign", unref_in_thread, message), WEIR_OK);
	wr_thread_join(&thread);
	assert_int_equal(rig->destroyed, 0);
	assert_int_equal(rig->system.listed, 1);
	complete(&rig->system);
	assert_int_equal(rig->destroyed, 1);
	assert_int_equal(rig->destroyed_by, wr_thread_self());
}

static void b03_without_a_system_there_is_no_worker_to_wait_for(void **state)
{
	struct rig *rig = *state;
	weir_message *message = user(rig);
	struct wr_thread thread = {0};

	assert_int_equal(wr_thread_start(&thread, "foreign", unref_in_thread, message), WEIR_OK);
	wr_thread_join(&thread);
	assert_int_equal(rig->destroyed, 1);
	assert_int_equal(wr_pool_live(rig->pool), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RIG(t04_producers_are_kept_latest_per_stream),
		WITH_RIG(t04_any_number_of_streams_fits_and_its_memory_is_kept),
		WITH_RIG(t04_memory_waits_for_the_whole_use_set),
		WITH_RIG(t04_inline_bytes_wait_for_their_readers_too),
		WITH_RIG(t04_what_is_complete_or_holds_nothing_is_not_listed),
		WITH_RIG(t02_a_fence_that_cannot_complete_is_refused),
		WITH_RIG(a_payload_goes_back_to_the_system_it_came_from),
		WITH_RIG(a_destructor_runs_once_after_the_last_reference),
		WITH_RIG(t04_a_destructor_waits_for_the_use_set),
		WITH_RIG(b03_a_foreign_thread_hands_the_destructor_to_a_worker),
		WITH_RIG(b03_without_a_system_there_is_no_worker_to_wait_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Messages: kinds, tensors, the pool (scheduler/message.h). */
#include <string.h>

#include "base/memory.h"
#include "sim/random.h"
#include "message_rig.h"

/* --- kinds --- */

static void an_empty_message_has_nothing(void **state)
{
	struct rig *rig = *state;
	weir_message *message = empty(rig->pool);

	assert_int_equal(weir_message_kind(message), WEIR_KIND_EMPTY);
	assert_null(weir_message_data(message));
	assert_null(weir_message_tensor(message));
	assert_int_equal(weir_message_size(message), 0);
	assert_true(weir_message_unique(message));
	assert_ptr_equal(wr_message_pool(message), rig->pool);
	weir_message_unref(message);
	weir_message_unref(NULL);
}

static void bytes_of_every_size_are_aligned_and_all_there(void **state)
{
	struct rig *rig = *state;
	static const size_t sizes[] = {0, 1, WR_SMALL, WR_SMALL + 1, 1 << 20};

	for (size_t i = 0; i < COUNT(sizes); i++) {
		weir_message *message = bytes(rig->pool, sizes[i]);

		assert_int_equal(weir_message_kind(message), WEIR_KIND_BYTES);
		assert_int_equal(weir_message_size(message), sizes[i]);
		assert_non_null(weir_message_data(message));
		assert_int_equal((uintptr_t)weir_message_data(message) % 64, 0);
		memset(weir_message_data(message), 0xa5, sizes[i]);
		weir_message_unref(message);
	}
}

static void a_used_message_comes_back_as_new(void **state)
{
	struct rig *rig = *state;
	weir_message *message = bytes(rig->pool, 1000), *again;

	assert_int_equal(wr_message_add_fence(message, fence(1, 1), true), WEIR_OK);
	weir_message_unref(message);
	again = empty(rig->pool);
	assert_ptr_equal(again, message);
	assert_null(weir_message_data(again));
	assert_int_equal(weir_message_size(again), 0);
	assert_false(wr_message_has_fences(again));
	weir_message_unref(again);
}

static void t04_only_the_sole_holder_is_unique(void **state)
{
	struct rig *rig = *state;
	weir_message *message = empty(rig->pool);

	assert_ptr_equal(weir_message_ref(message), message);
	wr_message_ref_many(message, 3);
	assert_int_equal(wr_message_references(message), 5);
	assert_false(weir_message_unique(message));
	for (int i = 0; i < 4; i++)
		weir_message_unref(message);
	assert_true(weir_message_unique(message));
	assert_int_equal(wr_pool_live(rig->pool), 1);
	weir_message_unref(message);
}

static void the_public_creators_use_the_graphs_pool(void **state)
{
	struct rig *rig = *state;
	weir_graph *graph = graph_of(rig->pool);
	int64_t shape[] = {3};
	float data[3];
	weir_tensor tensor = {.size = sizeof(tensor),
			      .data = data,
			      .device = WEIR_DEVICE_HOST,
			      .dimensions = 1,
			      .shape = shape,
			      .code = 2,
			      .bits = 32};
	weir_message *made[5];

	assert_int_equal(weir_message_create_empty(graph, &made[0]), WEIR_OK);
	assert_int_equal(weir_message_create_bytes(graph, 7, &made[1]), WEIR_OK);
	assert_int_equal(weir_message_create_tensor(graph, &tensor, &made[2]), WEIR_OK);
	assert_int_equal(weir_message_wrap_tensor(graph, &tensor, NULL, NULL, &made[3]), WEIR_OK);
	assert_int_equal(weir_message_wrap_user(graph, data, NULL, &made[4]), WEIR_OK);
	assert_int_equal(wr_pool_live(rig->pool), COUNT(made));
	for (size_t i = 0; i < COUNT(made); i++)
		weir_message_unref(made[i]);
}

/* --- tensors --- */

static void a_new_tensor_is_dense_and_row_major(void **state)
{
	struct rig *rig = *state;
	int64_t shape[] = {2, 3, 4}, odd[] = {100, 7, 9};
	weir_tensor like = {.size = sizeof(like),
			    .dimensions = 3,
			    .shape = shape,
			    .strides = odd,
			    .code = 1,
			    .bits = 16,
			    .lanes = 3};
	weir_message *message = NULL;
	const weir_tensor *tensor;

	assert_int_equal(wr_message_tensor(rig->pool, &like, WEIR_DEVICE_HOST, NULL, &message), WEIR_OK);
	memset(shape, 0, sizeof(shape)); /* it was copied */
	tensor = weir_message_tensor(message);
	assert_int_equal(weir_message_kind(message), WEIR_KIND_TENSOR);
	assert_int_equal(weir_message_size(message), 2 * 3 * 4 * 2 * 3);
	assert_int_equal(tensor->size, sizeof(*tensor));
	assert_int_equal(tensor->device, WEIR_DEVICE_HOST);
	assert_int_equal(tensor->lanes, 3);
	assert_memory_equal(tensor->shape, ((int64_t[]){2, 3, 4}), 3 * sizeof(int64_t));
	assert_memory_equal(tensor->strides, ((int64_t[]){12, 4, 1}), 3 * sizeof(int64_t));
	assert_ptr_equal(tensor->data, weir_message_data(message));
	memset(tensor->data, 1, weir_message_size(message));
	weir_message_unref(message);
}

static void a_tensor_may_have_no_dimensions_or_no_elements(void **state)
{
	struct rig *rig = *state;
	int64_t shape[] = {4, 0, 5};
	weir_tensor scalar = {.size = sizeof(scalar), .code = 2, .bits = 64};
	weir_tensor none = {.size = sizeof(none), .dimensions = 3, .shape = shape, .code = 0, .bits = 8};
	weir_message *message = NULL;

	assert_int_equal(wr_message_tensor(rig->pool, &scalar, WEIR_DEVICE_HOST, NULL, &message), WEIR_OK);
	assert_int_equal(weir_message_size(message), 8);
	weir_message_unref(message);
	assert_int_equal(wr_message_tensor(rig->pool, &none, WEIR_DEVICE_HOST, NULL, &message), WEIR_OK);
	assert_int_equal(weir_message_size(message), 0);
	assert_memory_equal(weir_message_tensor(message)->strides, ((int64_t[]){5, 5, 1}),
			    3 * sizeof(int64_t));
	weir_message_unref(message);
}

static void a_tensor_of_bool_has_a_byte_an_element(void **state)
{
	struct rig *rig = *state;
	int64_t shape[] = {4, 3};
	weir_tensor flags = {.size = sizeof(flags), .dimensions = 2, .shape = shape, .code = 6, .bits = 8};
	weir_message *message = NULL;

	assert_int_equal(wr_message_tensor(rig->pool, &flags, WEIR_DEVICE_HOST, NULL, &message), WEIR_OK);
	assert_int_equal(weir_message_tensor(message)->code, 6);
	assert_int_equal(weir_message_size(message), 12);
	weir_message_unref(message);
}

static void a_wrapped_tensor_keeps_its_strides_and_counts_from_first_to_last(void **state)
{
	struct rig *rig = *state;
	int64_t shape[] = {2, 3}, strides[] = {10, 2};
	uint8_t data[64];
	weir_tensor tensor = {.size = sizeof(tensor),
			      .data = data,
			      .device = WEIR_DEVICE_HOST,
			      .dimensions = 2,
			      .shape = shape,
			      .strides = strides,
			      .code = 1,
			      .bits = 8};
	weir_message *message = NULL;

	assert_int_equal(weir_message_wrap_tensor(graph_of(rig->pool), &tensor, destroyed, rig, &message),
			 WEIR_OK);
	assert_int_equal(weir_message_size(message), 10 + 2 * 2 + 1);
	assert_int_equal(weir_message_tensor(message)->strides[0], 10);
	assert_ptr_equal(weir_message_data(message), data);
	weir_message_unref(message);
	assert_int_equal(rig->destroyed, 1);
}

struct bad {
	weir_tensor tensor;
	const char *names; /* the error text must name them */
};

static void e06_a_bad_tensor_is_refused_by_field(void **state)
{
	struct rig *rig = *state;
	int64_t two[] = {2, 2}, negative[] = {2, -1}, huge[] = {INT64_MAX, 1}, wide[] = {INT64_MAX / 8, 3};
	const struct bad bad[] = {
		{{.size = sizeof(weir_tensor), .dimensions = -1, .shape = two, .code = 1, .bits = 8},
		 "dimensions is -1"},
		{{.size = sizeof(weir_tensor), .dimensions = 9, .shape = two, .code = 1, .bits = 8},
		 "dimensions is 9"},
		{{.size = sizeof(weir_tensor), .dimensions = 2, .code = 1, .bits = 8}, "shape is NULL"},
		{{.size = sizeof(weir_tensor), .dimensions = 2, .shape = negative, .code = 1, .bits = 8},
		 "shape[1] is -1"},
		{{.size = sizeof(weir_tensor), .dimensions = 2, .shape = two, .code = 1, .bits = 7},
		 "7 bits"},
		{{.size = sizeof(weir_tensor), .dimensions = 2, .shape = two, .code = 2, .bits = 8},
		 "code 2 with 8 bits"},
		{{.size = sizeof(weir_tensor), .dimensions = 2, .shape = two, .code = 3, .bits = 32},
		 "code 3"},
		{{.size = sizeof(weir_tensor), .dimensions = 2, .shape = two, .code = 4, .bits = 32},
		 "code 4"},
		{{.size = sizeof(weir_tensor), .dimensions = 2, .shape = two, .code = 5, .bits = 8},
		 "code 5"},
		{{.size = sizeof(weir_tensor), .dimensions = 2, .shape = two, .code = 6, .bits = 16},
		 "code 6"},
		{{.size = sizeof(weir_tensor), .dimensions = 2, .shape = huge, .code = 1, .bits = 16},
		 "63 bits"},
		{{.size = sizeof(weir_tensor), .dimensions = 2, .shape = wide, .code = 1, .bits = 64},
		 "63 bits"},
		{{.size = sizeof(weir_tensor),
		  .dimensions = 1,
		  .shape = huge,
		  .code = 1,
		  .bits = 8,
		  .lanes = 2},
		 "63 bits"},
	};
	weir_message *message = NULL;

	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(
			wr_message_tensor(rig->pool, &bad[i].tensor, WEIR_DEVICE_HOST, NULL, &message),
			WEIR_E_INVALID);
		if (!strstr(weir_last_error(), bad[i].names))
			fail_msg("%zu: \"%s\" does not name \"%s\"", i, weir_last_error(), bad[i].names);
		assert_null(message);
	}
}

static void e06_a_bad_wrapped_tensor_is_refused_and_stays_the_callers(void **state)
{
	struct rig *rig = *state;
	int64_t shape[] = {2, 2}, negative[] = {2, -1}, huge[] = {INT64_MAX, 1};
	uint8_t data[4];
	weir_tensor good = {.size = sizeof(good),
			    .data = data,
			    .device = WEIR_DEVICE_HOST,
			    .dimensions = 2,
			    .shape = shape,
			    .code = 1,
			    .bits = 8};
	weir_tensor bad[5] = {good, good, good, good, good};
	weir_message *message = NULL;

	wr_pool_bind(rig->pool, &rig->system);
	bad[0].size = 8;
	bad[1].data = NULL;
	bad[2].device = 1;
	bad[3].strides = negative;
	bad[4].strides = huge;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(
			weir_message_wrap_tensor(graph_of(rig->pool), &bad[i], destroyed, rig, &message),
			WEIR_E_INVALID);
	assert_null(message);
	assert_int_equal(rig->destroyed, 0);
}

static void a_device_needs_a_system_that_has_it(void **state)
{
	struct rig *rig = *state;
	weir_tensor like = {.size = sizeof(like), .code = 2, .bits = 32};
	weir_message *message = NULL;

	assert_int_equal(wr_message_tensor(rig->pool, &like, 0, NULL, &message), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "WEIR_DEVICE_HOST"));
	wr_pool_bind(rig->pool, &rig->system);
	assert_int_equal(wr_message_tensor(rig->pool, &like, 7, NULL, &message), WEIR_E_INVALID);
	assert_null(message);
	assert_int_equal(wr_message_tensor(rig->pool, &like, 0, NULL, &message), WEIR_OK);
	assert_int_equal(weir_message_tensor(message)->device, 0);
	assert_int_equal(rig->system.allocations, 1);
	weir_message_unref(message);
}

/* --- the pool --- */

static void no_malloc_in_steady_state(void **state)
{
	struct rig *rig = *state;
	weir_message *held[200];
	int64_t before;

	assert_int_equal(wr_pool_reserve(rig->pool, COUNT(held) + WR_BATCH), WEIR_OK);
	before = wr_memory_count();
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < COUNT(held); i++)
			held[i] = i % 2 ? empty(rig->pool) : bytes(rig->pool, WR_SMALL);
		assert_int_equal(wr_pool_live(rig->pool), COUNT(held));
		for (size_t i = 0; i < COUNT(held); i++)
			weir_message_unref(held[i]);
	}
	assert_int_equal(wr_memory_count(), before);
}

static void no_message_is_handed_out_twice(void **state)
{
	struct rig *rig = *state;
	weir_message *held[200];

	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < COUNT(held); i++) {
			held[i] = bytes(rig->pool, sizeof(i));
			memcpy(weir_message_data(held[i]), &i, sizeof(i));
		}
		for (size_t i = 0; i < COUNT(held); i++) {
			assert_memory_equal(weir_message_data(held[i]), &i, sizeof(i));
			weir_message_unref(held[i]);
		}
	}
}

static void what_one_worker_drops_another_finds(void **state)
{
	struct rig *rig = *state;
	int64_t before = -1;

	for (int i = 0; i < 1000; i++) {
		weir_message *message;

		work_for(&rig->local, 0, rig->pool);
		message = empty(rig->pool);
		work_for(&rig->local, 63, rig->pool);
		weir_message_unref(message);
		if (i == 200)
			before = wr_memory_count();
	}
	assert_int_equal(wr_memory_count(), before);
	assert_int_equal(wr_pool_live(rig->pool), 0);
}

static void b05_a_worker_of_another_graph_leaves_the_caches_alone(void **state)
{
	struct rig *rig = *state;
	struct wr_pool *other = NULL;
	weir_message *message = empty(rig->pool);
	uint32_t before = wr_read(&rig->pool->caches[0].count);

	assert_int_equal(wr_pool_create(&other), WEIR_OK);
	work_for(&rig->local, 0, other);
	weir_message_unref(message);
	weir_message_unref(empty(rig->pool));
	be_foreign();
	weir_message_unref(empty(rig->pool));
	assert_int_equal(wr_read(&rig->pool->caches[0].count), before);
	wr_pool_destroy(other);
}

static weir_status make_some(struct wr_pool *pool)
{
	weir_tensor like = {.size = sizeof(like), .code = 1, .bits = 64};
	weir_message *made[3] = {NULL};
	weir_status status = weir_message_create_bytes(graph_of(pool), 100, &made[0]);

	if (!status)
		status = wr_message_tensor(pool, &like, WEIR_DEVICE_HOST, NULL, &made[1]);
	for (uint64_t i = 1; !status && i < 20; i++)
		status = wr_message_add_fence(made[0], fence(i, 1), true);
	if (!status)
		status = wr_message_empty(pool, &made[2]);
	for (size_t i = 0; i < COUNT(made); i++)
		weir_message_unref(made[i]);
	return status;
}

static weir_status pool_life(void)
{
	struct wr_pool *pool = NULL;
	weir_status status = wr_pool_create(&pool);

	if (!status)
		status = wr_pool_reserve(pool, 10);
	if (!status)
		status = make_some(pool);
	if (pool)
		assert_int_equal(wr_pool_live(pool), 0);
	wr_pool_destroy(pool);
	return status;
}

static void f40_any_malloc_fails(void **state)
{
	int64_t n;

	(void)state;
	be_foreign();
	for (int all = 0; all < 2; all++) {
		weir_status status = WEIR_E_NOMEM;

		for (n = 0; status; n++) {
			wr_memory_fail_at(n, all);
			status = pool_life();
			wr_memory_fail_at(-1, false);
			assert_true(status == WEIR_OK || status == WEIR_E_NOMEM);
		}
		assert_true(n > 5);
	}
}

/* --- threads --- */

struct crew {
	struct rig *rig;
	unsigned index;
	weir_message *shared;
};

static void work(void *arg)
{
	struct crew *crew = arg;
	struct wr_local local;
	weir_message *held[40] = {NULL};
	struct wr_random random;

	wr_random_seed(&random, 1, crew->index);
	if (crew->index > 0)
		work_for(&local, crew->index, crew->rig->pool);
	for (int i = 0; i < 5000; i++) {
		size_t at = wr_random_below(&random, COUNT(held));

		weir_message_unref(held[at]);
		held[at] = i % 3 ? weir_message_ref(crew->shared) : bytes(crew->rig->pool, 1 + i % 100);
		wr_message_add_fence(held[at], fence(1 + wr_random_below(&random, 9), (uint64_t)i), i % 2);
		wr_message_fences(held[at], &(weir_fence){0}, 1);
	}
	for (size_t i = 0; i < COUNT(held); i++)
		weir_message_unref(held[i]);
	wr_thread_set_local(NULL);
}

static void t04_holders_of_one_message_work_at_the_same_time(void **state)
{
	struct rig *rig = *state;
	weir_message *shared = bytes(rig->pool, 8);
	struct crew crew[4];
	struct wr_thread threads[COUNT(crew)] = {{0}};
	weir_fence found[9] = {{0}};

	for (unsigned i = 0; i < COUNT(crew); i++) {
		crew[i] = (struct crew){.rig = rig, .index = i, .shared = shared};
		assert_int_equal(wr_thread_start(&threads[i], "holder", work, &crew[i]), WEIR_OK);
	}
	for (unsigned i = 0; i < COUNT(crew); i++)
		wr_thread_join(&threads[i]);
	assert_true(weir_message_unique(shared));
	assert_int_equal(wr_message_fences(shared, found, COUNT(found)), COUNT(found));
	assert_int_equal(wr_pool_live(rig->pool), 1);
	weir_message_unref(shared);
}

static void a_tensor_of_16_bits_is_of_any_type(void **state)
{
	struct rig *rig = *state;
	static const uint8_t codes[] = {0, 1, 2, 4};
	int64_t shape[] = {3};
	weir_tensor like = {.size = sizeof(like), .dimensions = 1, .shape = shape, .bits = 16};
	weir_message *message = NULL;

	for (size_t i = 0; i < COUNT(codes); i++) {
		like.code = codes[i];
		assert_int_equal(wr_message_tensor(rig->pool, &like, WEIR_DEVICE_HOST, NULL, &message),
				 WEIR_OK);
		assert_int_equal(weir_message_size(message), 6);
		weir_message_unref(message);
		message = NULL;
	}
	like.code = 3;
	assert_int_equal(wr_message_tensor(rig->pool, &like, WEIR_DEVICE_HOST, NULL, &message),
			 WEIR_E_INVALID);
	assert_null(message);
}

static void e06_a_tensor_whose_strides_overflow_is_refused(void **state)
{
	struct rig *rig = *state;
	int64_t shape[] = {INT64_C(1) << 40, INT64_C(1) << 40, 0};
	weir_tensor like = {.size = sizeof(like), .dimensions = 3, .shape = shape, .code = 1, .bits = 8};
	weir_message *message = NULL;

	assert_int_equal(wr_message_tensor(rig->pool, &like, WEIR_DEVICE_HOST, NULL, &message),
			 WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "63 bits"));
	assert_null(message);
}

static void an_empty_tensor_is_wrapped_without_data_and_on_no_unknown_device(void **state)
{
	struct rig *rig = *state;
	int64_t shape[] = {0, 4};
	weir_tensor none = {.size = sizeof(none),
			    .device = WEIR_DEVICE_HOST,
			    .dimensions = 2,
			    .shape = shape,
			    .code = 1,
			    .bits = 8};
	weir_message *message = NULL;

	wr_pool_bind(rig->pool, &rig->system);
	assert_int_equal(weir_message_wrap_tensor(graph_of(rig->pool), &none, NULL, NULL, &message), WEIR_OK);
	assert_int_equal(weir_message_size(message), 0);
	weir_message_unref(message);
	message = NULL;
	none.device = WEIR_DEVICE_HOST - 1;
	assert_int_equal(weir_message_wrap_tensor(graph_of(rig->pool), &none, NULL, NULL, &message),
			 WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "there is no device -2"));
	assert_null(message);
}

static void t04_what_is_lent_is_never_unique(void **state)
{
	struct rig *rig = *state;
	weir_part parts[2] = {{sizeof *parts, "a", empty(rig->pool)},
			      {sizeof *parts, "b", bytes(rig->pool, 8)}};
	weir_message *whole = NULL, *message = bytes(rig->pool, 100), *part = parts[1].message;

	assert_true(weir_message_unique(message));
	wr_message_mark_delivered(message);
	weir_message_lend(message);
	assert_false(weir_message_unique(message));
	assert_true(wr_message_delivered(message));
	weir_message_unref(message);
	message = bytes(rig->pool, 100);
	assert_true(weir_message_unique(message)); /* the next one is not */
	weir_message_unref(message);
	assert_int_equal(weir_message_pack(graph_of(rig->pool), parts, 2, &whole), WEIR_OK);
	assert_true(weir_message_unique(whole));
	weir_message_lend(part);
	assert_false(weir_message_unique(whole));
	weir_message_unref(whole);
	parts[0].message = empty(rig->pool);
	parts[1].message = bytes(rig->pool, 8);
	assert_int_equal(weir_message_pack(graph_of(rig->pool), parts, 2, &whole), WEIR_OK);
	part = weir_message_ref(parts[1].message);
	weir_message_lend(whole);
	weir_message_unref(whole);
	assert_false(weir_message_unique(part)); /* each of them is lent */
	weir_message_unref(part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RIG(an_empty_message_has_nothing),
		WITH_RIG(bytes_of_every_size_are_aligned_and_all_there),
		WITH_RIG(a_used_message_comes_back_as_new),
		WITH_RIG(t04_only_the_sole_holder_is_unique),
		WITH_RIG(the_public_creators_use_the_graphs_pool),
		WITH_RIG(a_new_tensor_is_dense_and_row_major),
		WITH_RIG(a_tensor_may_have_no_dimensions_or_no_elements),
		WITH_RIG(a_tensor_of_bool_has_a_byte_an_element),
		WITH_RIG(a_wrapped_tensor_keeps_its_strides_and_counts_from_first_to_last),
		WITH_RIG(e06_a_bad_tensor_is_refused_by_field),
		WITH_RIG(e06_a_bad_wrapped_tensor_is_refused_and_stays_the_callers),
		WITH_RIG(a_device_needs_a_system_that_has_it),
		WITH_RIG(no_malloc_in_steady_state),
		WITH_RIG(no_message_is_handed_out_twice),
		WITH_RIG(what_one_worker_drops_another_finds),
		WITH_RIG(b05_a_worker_of_another_graph_leaves_the_caches_alone),
		WITH_RIG(f40_any_malloc_fails),
		WITH_RIG(t04_holders_of_one_message_work_at_the_same_time),
		WITH_RIG(a_tensor_of_16_bits_is_of_any_type),
		WITH_RIG(e06_a_tensor_whose_strides_overflow_is_refused),
		WITH_RIG(an_empty_tensor_is_wrapped_without_data_and_on_no_unknown_device),
		WITH_RIG(t04_what_is_lent_is_never_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Memory pools by calls: what a call refuses, and the program's own blocks beside the description. */
#include <string.h>

#include "base/memory.h"
#include "graphs/plan.h"
#include "kinds.h"

static char bytes[2][2][64];
static void *const first[] = {bytes[0][0], bytes[0][1]}, *const second[] = {bytes[1][0], bytes[1][1]},
		   *const hole[] = {bytes[0][0], NULL};

#define POOL  .size = sizeof(weir_memory_pool), .device = WEIR_DEVICE_HOST
#define BLOCK .block_size = 64, .blocks = 2
#define USER                                                                                                 \
	"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"camera\", \"resources\": "           \
	"[\"own\"]}]}"

static const struct wrong {
	weir_memory_pool pool;
	const char *name, *says;
} wrong_pools[] = {
	{{POOL}, "m", "set block_size and blocks, or max_size alone"},
	{{POOL, .blocks = 2}, "m", "set block_size and blocks, or max_size alone"},
	{{POOL, .block_size = 64}, "m", "set block_size and blocks, or max_size alone"},
	{{POOL, .blocks = 2, .max_size = 64}, "m", "set block_size and blocks, or max_size alone"},
	{{POOL, .block_size = 64, .max_size = 64}, "m", "set block_size and blocks, or max_size alone"},
	{{POOL, .max_size = 64, .memory = first}, "m", "memory is a list of blocks"},
	{{POOL, BLOCK, .memory = hole}, "m", "memory[1] is NULL"},
	{{POOL, .block_size = UINT64_MAX, .blocks = 1}, "m", "does not fit in 63 bits"},
	{{POOL, .max_size = UINT64_MAX}, "m", "does not fit in 63 bits"},
	{{.size = sizeof(weir_memory_pool), .device = -2, BLOCK}, "m", "device is -2"},
	{{.size = 1, BLOCK}, "m", "weir_memory_pool"},
	{{POOL, BLOCK}, "no name", "no name"},
	{{POOL, BLOCK}, "own", "there is a resource 'own' already"},
};

static weir_description *described_with(void *const *memory)
{
	const weir_memory_pool pool = {POOL, BLOCK, .memory = memory};
	weir_description *description = kinds_read(USER);

	assert_int_equal(weir_description_add_memory_pool(description, "own", &pool), WEIR_OK);
	return description;
}

static struct wr_plan *plan_of(const weir_description *description)
{
	struct wr_plan *plan = NULL;

	if (wr_plan_create(&plan, NULL, description, true, NULL, NULL))
		fail_msg("%s", weir_last_error());
	return plan;
}

static void s03_a_wrong_pool_is_refused_and_changes_nothing(void **state)
{
	weir_description *description = described_with(first);
	char *before = kinds_print(description, WEIR_FORMAT_JSON), *after;

	(void)state;
	for (size_t i = 0; i < sizeof wrong_pools / sizeof *wrong_pools; i++) {
		const struct wrong *wrong = &wrong_pools[i];

		assert_int_equal(weir_description_add_memory_pool(description, wrong->name, &wrong->pool),
				 WEIR_E_INVALID);
		if (!strstr(weir_last_error(), wrong->says))
			fail_msg("%zu: '%s' does not say '%s'", i, weir_last_error(), wrong->says);
	}
	after = kinds_print(description, WEIR_FORMAT_JSON);
	assert_string_equal(before, after);
	weir_text_free(before);
	weir_text_free(after);
	weir_description_destroy(description);
}

static void s03_the_blocks_of_each_pool_are_its_own(void **state)
{
	const weir_memory_pool pool = {POOL, BLOCK, .memory = second};
	weir_description *description = described_with(first);
	struct wr_plan *plan;

	(void)state;
	assert_int_equal(weir_description_add_memory_pool(description, "spare", &pool), WEIR_OK);
	plan = plan_of(description);
	assert_int_equal(plan->memory_pool_count, 2);
	assert_ptr_equal(plan->memory_pools[0].memory[1], bytes[0][1]);
	assert_ptr_equal(plan->memory_pools[1].memory[1], bytes[1][1]);
	wr_plan_destroy(plan);
	weir_description_destroy(description);
}

/* All resources are replaced, and a pool of the same name is added again. */
static void s03_the_blocks_given_last_count(void **state)
{
	const weir_memory_pool pool = {POOL, BLOCK, .memory = second};
	weir_description *description = described_with(first);
	struct wr_plan *plan;

	(void)state;
	assert_int_equal(weir_description_put(description, "/resources", "{}"), WEIR_OK);
	assert_int_equal(weir_description_add_memory_pool(description, "own", &pool), WEIR_OK);
	plan = plan_of(description);
	assert_ptr_equal(plan->memory_pools[0].memory[0], bytes[1][0]);
	wr_plan_destroy(plan);
	weir_description_destroy(description);
}

/* The number and the size of blocks are the caller's: a pool that says otherwise would get other memory, or
 * too little. */
static void s03_a_pool_that_is_changed_after_its_blocks_were_given_is_refused(void **state)
{
	static const struct {
		const char *key, *value, *says;
	} changes[] = {
		{"/resources/own/blocks", "3", "described with 3 of 64 of the host now"},
		{"/resources/own/blocks", "1", "described with 1 of 64 of the host now"},
		{"/resources/own", "{\"type\": \"memory_pool\", \"block_size\": 64, \"blocks\": 2}",
		 "with 2 of 64 of a device now"},
		{"/resources/own/block_size", "65", "described with 2 of 65 of the host now"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		weir_description *description = described_with(first);
		struct wr_plan *plan = NULL;

		assert_int_equal(weir_description_put(description, changes[i].key, changes[i].value),
				 WEIR_OK);
		assert_int_equal(wr_plan_create(&plan, NULL, description, true, NULL, NULL), WEIR_E_INVALID);
		assert_null(plan);
		assert_non_null(
			strstr(weir_last_error(), "pool 'own' was given 2 blocks of 64 bytes of the host"));
		assert_non_null(strstr(weir_last_error(), changes[i].says));
		weir_description_destroy(description);
	}
}

/* The pool could not be added, so its blocks belong to no pool that is declared later. */
static void s03_blocks_of_a_pool_that_was_not_added_are_forgotten(void **state)
{
	const weir_memory_pool pool = {POOL, BLOCK, .memory = first}, plain = {POOL, BLOCK};
	weir_description *description = kinds_read(USER);
	struct wr_plan *plan;

	(void)state;
	assert_int_equal(weir_description_put(description, "/resources", "[]"), WEIR_OK);
	assert_int_equal(weir_description_add_memory_pool(description, "own", &pool), WEIR_E_INVALID);
	assert_int_equal(weir_description_add_memory_pool(description, "own", &plain), WEIR_E_INVALID);
	assert_int_equal(weir_description_put(description, "/resources",
					      "{\"own\": {\"type\": \"memory_pool\", \"place\": \"host\", "
					      "\"block_size\": 64, \"blocks\": 2}}"),
			 WEIR_OK);
	plan = plan_of(description);
	assert_null(plan->memory_pools[0].memory);
	wr_plan_destroy(plan);
	weir_description_destroy(description);
}

static void s03_a_struct_of_another_size_is_refused_for_every_resource(void **state)
{
	static const uint32_t sizes[] = {8};
	const weir_green_context_pool parts = {.size = 1, .sms_per_partition = sizes, .num_partitions = 1};
	const weir_green_context_pool named = {
		.size = sizeof named, .sms_per_partition = sizes, .num_partitions = 1};
	const weir_stream_pool streams = {.size = 1};
	weir_description *description = kinds_read(USER);

	(void)state;
	assert_int_equal(weir_description_add_green_context_pool(description, "p", &parts), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "weir_green_context_pool"));
	assert_int_equal(weir_description_add_stream_pool(description, "p", &streams), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "weir_stream_pool"));
	assert_int_equal(weir_description_add_green_context_pool(description, "a b", &named), WEIR_E_INVALID);
	assert_non_null(strstr(weir_last_error(), "a b"));
	weir_description_destroy(description);
}

static weir_status everything(void)
{
	const weir_memory_pool pool = {POOL, BLOCK, .memory = first};
	weir_description *description = NULL;
	struct wr_plan *plan = NULL;
	weir_status status = weir_description_parse(USER, strlen(USER), NULL, NULL, &description);

	if (!status)
		status = weir_description_add_memory_pool(description, "own", &pool);
	if (!status)
		status = wr_plan_create(&plan, NULL, description, true, NULL, NULL);
	wr_plan_destroy(plan);
	weir_description_destroy(description);
	return status;
}

static void f90_s03_any_allocation_of_given_blocks_fails(void **state)
{
	int64_t count = wr_memory_count();

	(void)state;
	assert_int_equal(everything(), WEIR_OK);
	count = wr_memory_count() - count;
	for (int64_t n = 0; n < count; n++) {
		weir_status status;

		wr_memory_fail_at(n, false);
		status = everything();
		wr_memory_fail_at(-1, false);
		assert_int_equal(status, WEIR_E_NOMEM);
	}
}

static void s03_what_pools_need_is_known_after_a_check(void **state)
{
	weir_description *description = described_with(first);
	weir_pool_needs needs = {.size = sizeof needs};

	(void)state;
	assert_false(weir_description_pool_needs(description, 0, &needs));
	assert_int_equal(weir_description_put(description, "/entities/0/operator", "\"idle\""), WEIR_OK);
	assert_int_equal(weir_description_check(description, NULL, NULL, NULL), WEIR_OK);
	assert_true(weir_description_pool_needs(description, 0, &needs));
	assert_string_equal(needs.pool, "own");
	assert_int_equal(needs.blocks, 2);
	assert_false(weir_description_pool_needs(description, 1, &needs));
	needs.size = 1;
	assert_false(weir_description_pool_needs(description, 0, &needs));
	weir_description_destroy(description);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s03_a_wrong_pool_is_refused_and_changes_nothing),
		cmocka_unit_test(s03_the_blocks_of_each_pool_are_its_own),
		cmocka_unit_test(s03_the_blocks_given_last_count),
		cmocka_unit_test(s03_a_pool_that_is_changed_after_its_blocks_were_given_is_refused),
		cmocka_unit_test(s03_blocks_of_a_pool_that_was_not_added_are_forgotten),
		cmocka_unit_test(s03_a_struct_of_another_size_is_refused_for_every_resource),
		cmocka_unit_test(f90_s03_any_allocation_of_given_blocks_fails),
		cmocka_unit_test(s03_what_pools_need_is_known_after_a_check),
	};

	return cmocka_run_group_tests_name("given memory", tests, NULL, NULL);
}

/* Memory pools over the program's own blocks, which are kept beside the description. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graphs/plan.h"
#include "kinds.h"

static char bytes[2][2][64];
static void *const first[] = {bytes[0][0], bytes[0][1]}, *const second[] = {bytes[1][0], bytes[1][1]},
		   *const hole[] = {bytes[0][0], NULL};

#define POOL "{\"type\": \"memory_pool\", \"place\": \"host\", \"block_size\": 64, \"blocks\": 2}"
#define USER                                                                                                 \
	"{\"weir\": 1, \"entities\": [{\"name\": \"a\", \"operator\": \"camera\", \"resources\": "           \
	"[\"own\"]}]}"

static const struct wrong {
	const char *pool, *says;
	size_t block_size;
	void *const *blocks;
	size_t count;
} wrong_memory[] = {
	{"m", "give at least one block", 0, first, 2}, {"m", "give at least one block", 64, first, 0},
	{"m", "give at least one block", 64, NULL, 2}, {"m", "blocks[1] is NULL", 64, hole, 2},
	{"no name", "no name", 64, first, 2},          {NULL, "is not a valid name", 64, first, 2},
};

static weir_status put_pool(weir_description *description, const char *name, void *const *memory)
{
	char pointer[64];
	weir_status status;

	snprintf(pointer, sizeof pointer, "/resources/%s", name);
	status = weir_description_put(description, pointer, POOL);
	return status ? status : weir_description_set_pool_memory(description, name, 64, memory, 2);
}

static weir_description *described_with(void *const *memory)
{
	weir_description *description = kinds_read(USER);

	assert_int_equal(put_pool(description, "own", memory), WEIR_OK);
	return description;
}

static struct wr_plan *plan_of(const weir_description *description)
{
	struct wr_plan *plan = NULL;

	if (wr_plan_create(&plan, NULL, description, true, NULL, NULL))
		fail_msg("%s", weir_last_error());
	return plan;
}

static void s03_wrong_memory_of_a_pool_is_refused_and_changes_nothing(void **state)
{
	weir_description *description = described_with(first);
	struct wr_plan *plan;

	(void)state;
	for (size_t i = 0; i < sizeof wrong_memory / sizeof *wrong_memory; i++) {
		const struct wrong *wrong = &wrong_memory[i];

		assert_int_equal(weir_description_set_pool_memory(description, wrong->pool, wrong->block_size,
								  wrong->blocks, wrong->count),
				 WEIR_E_INVALID);
		if (!strstr(weir_last_error(), wrong->says))
			fail_msg("%zu: '%s' does not say '%s'", i, weir_last_error(), wrong->says);
	}
	plan = plan_of(description);
	assert_ptr_equal(plan->memory_pools[0].memory[1], bytes[0][1]);
	wr_plan_destroy(plan);
	weir_description_destroy(description);
}

static void s03_the_blocks_of_each_pool_are_its_own(void **state)
{
	weir_description *description = described_with(first);
	struct wr_plan *plan;

	(void)state;
	assert_int_equal(put_pool(description, "spare", second), WEIR_OK);
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
	weir_description *description = described_with(first);
	struct wr_plan *plan;

	(void)state;
	assert_int_equal(weir_description_put(description, "/resources", "{}"), WEIR_OK);
	assert_int_equal(put_pool(description, "own", second), WEIR_OK);
	plan = plan_of(description);
	assert_ptr_equal(plan->memory_pools[0].memory[0], bytes[1][0]);
	wr_plan_destroy(plan);
	weir_description_destroy(description);
}

/* The number and the size of blocks are the caller's: a pool that says otherwise would get other memory, or
 * too little. */
static void s03_a_pool_that_is_not_as_its_blocks_were_given_is_refused(void **state)
{
	static const struct {
		const char *key, *value, *says;
	} changes[] = {
		{"/resources/own/blocks", "3", "described with 3 of 64"},
		{"/resources/own/blocks", "1", "described with 1 of 64"},
		{"/resources/own", "{\"type\": \"stream_pool\"}", "which is no memory pool"},
		{"/resources/own/block_size", "65", "described with 2 of 65"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		weir_description *description = described_with(first);
		struct wr_plan *plan = NULL;

		assert_int_equal(weir_description_put(description, changes[i].key, changes[i].value),
				 WEIR_OK);
		assert_int_equal(wr_plan_create(&plan, NULL, description, true, NULL, NULL), WEIR_E_INVALID);
		assert_null(plan);
		assert_non_null(strstr(weir_last_error(), "weir_description_set_pool_memory gave"));
		assert_non_null(strstr(weir_last_error(), changes[i].says));
		weir_description_destroy(description);
	}
}

static weir_status everything(void)
{
	weir_description *description = NULL;
	struct wr_plan *plan = NULL;
	weir_status status = weir_description_parse(USER, strlen(USER), NULL, NULL, &description);

	if (!status)
		status = put_pool(description, "own", first);
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
	assert_int_equal(weir_description_pool_needs(description, 0, &needs), WEIR_E_INVALID);
	assert_int_equal(weir_description_put(description, "/entities/0/operator", "\"idle\""), WEIR_OK);
	assert_int_equal(weir_description_check(description, NULL, NULL, NULL), WEIR_OK);
	assert_false(weir_description_pool_needs(description, 0, &needs));
	assert_string_equal(needs.pool, "own");
	assert_int_equal(needs.blocks, 2);
	assert_int_equal(weir_description_pool_needs(description, 1, &needs), WEIR_E_INVALID);
	needs.size = 1;
	assert_int_equal(weir_description_pool_needs(description, 0, &needs), WEIR_E_INVALID);
	weir_description_destroy(description);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(s03_wrong_memory_of_a_pool_is_refused_and_changes_nothing),
		cmocka_unit_test(s03_the_blocks_of_each_pool_are_its_own),
		cmocka_unit_test(s03_the_blocks_given_last_count),
		cmocka_unit_test(s03_a_pool_that_is_not_as_its_blocks_were_given_is_refused),
		cmocka_unit_test(f90_s03_any_allocation_of_given_blocks_fails),
		cmocka_unit_test(s03_what_pools_need_is_known_after_a_check),
	};

	return cmocka_run_group_tests_name("given memory", tests, NULL, NULL);
}

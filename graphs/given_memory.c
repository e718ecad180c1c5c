/* Memory pools over the program's own blocks: addresses have no place in JSON, so they are kept beside the
 * tree. */
#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/struct.h"
#include "base/words.h"
#include "graphs/description.h"

struct wr_given_memory {
	struct wr_given_memory *next;
	size_t count, block_size;
	void **blocks;
	char *name;
};

static void given_memory_free(struct wr_given_memory *given)
{
	wr_free(given->blocks);
	wr_free(given->name);
	wr_free(given);
}

static weir_status check_blocks(const char *pool, size_t block_size, void *const *blocks, size_t count)
{
	if (!pool || !wr_name_ok(pool))
		return wr_fail(WEIR_E_INVALID, WR_NAME_WRONG, wr_shown(pool ? pool : "").text);
	if (!block_size || !blocks || !count)
		return wr_fail(WEIR_E_INVALID, "memory of pool '%s': give at least one block, and its size",
			       pool);
	for (size_t i = 0; i < count; i++)
		if (!blocks[i])
			return wr_fail(WEIR_E_INVALID, "memory of pool '%s': blocks[%zu] is NULL", pool, i);
	return WEIR_OK;
}

weir_status weir_description_set_pool_memory(weir_description *description, const char *pool,
					     size_t block_size, void *const *blocks, size_t count)
{
	weir_status status = check_blocks(pool, block_size, blocks, count);
	struct wr_given_memory *given = status ? NULL : wr_alloc(1, sizeof *given);

	if (!given)
		return status ? status : WEIR_E_NOMEM;
	given->name = wr_strdup(pool);
	given->count = count;
	given->block_size = block_size;
	given->blocks = wr_alloc(count, sizeof *given->blocks);
	if (!given->name || !given->blocks) {
		given_memory_free(given);
		return WEIR_E_NOMEM;
	}
	memcpy(given->blocks, blocks, count * sizeof *given->blocks);
	given->next = description->given;
	description->given = given;
	wr_description_keep(description, NULL);
	return WEIR_OK;
}

void wr_description_forget_memory(weir_description *description)
{
	for (struct wr_given_memory *given = description->given, *next; given; given = next) {
		next = given->next;
		given_memory_free(given);
	}
}

/* The number and the size of the blocks are the caller's: with others the pool would give away other memory.
 */
static void report_other_blocks(struct wr_reports *reports, const struct wr_plan_memory_pool *pool,
				const struct wr_given_memory *given)
{
	const struct wr_at resources = {.key = "resources"}, at = {&resources, given->name, 0};

	if (!pool)
		wr_report(reports, WR_W_POOL_SIZES, &at, (struct wr_place){0},
			  "weir_description_set_pool_memory gave blocks to '%s', which is no memory pool: "
			  "put it",
			  wr_shown(given->name).text);
	else
		wr_report(
			reports, WR_W_POOL_SIZES, &at, (struct wr_place){0},
			"weir_description_set_pool_memory gave pool '%s' %zu blocks of %zu bytes, and it is "
			"described with %u of %llu: make both the same",
			wr_shown(pool->name).text, given->count, given->block_size, pool->blocks,
			(unsigned long long)pool->block_size);
}

/* Of several lists for one pool the first of the list counts: the one that was given last. */
weir_status wr_description_give_memory(const weir_description *description, struct wr_plan *plan,
				       struct wr_reports *reports)
{
	weir_status status = WEIR_OK;

	for (const struct wr_given_memory *given = description->given; !status && given;
	     given = given->next) {
		struct wr_plan_memory_pool *pool = NULL;

		for (size_t i = 0; i < plan->memory_pool_count && !pool; i++)
			if (!strcmp(plan->memory_pools[i].name, given->name))
				pool = &plan->memory_pools[i];
		if (pool && pool->memory)
			continue;
		if (!pool || pool->blocks != given->count || pool->block_size != given->block_size) {
			report_other_blocks(reports, pool, given);
			continue;
		}
		pool->memory = wr_alloc(given->count, sizeof *pool->memory);
		if (pool->memory)
			memcpy(pool->memory, given->blocks, given->count * sizeof *pool->memory);
		else
			status = WEIR_E_NOMEM;
	}
	return status;
}

weir_status weir_description_pool_needs(const weir_description *description, size_t i, weir_pool_needs *out)
{
	const struct wr_plan *plan = wr_load(&((weir_description *)description)->checked);
	const struct wr_plan_memory_pool *pool;
	weir_pool_needs needs;

	if (!plan)
		return wr_fail(WEIR_E_INVALID, "what pools need is known after weir_description_check");
	if (i >= plan->memory_pool_count)
		return WEIR_E_INVALID;
	pool = &plan->memory_pools[i];
	needs = (weir_pool_needs){.size = sizeof needs,
				  .pool = pool->name,
				  .blocks = pool->blocks,
				  .reached = pool->reached,
				  .claimed = pool->claimed};
	return wr_struct_fill(out, &needs, sizeof needs, "weir_pool_needs");
}

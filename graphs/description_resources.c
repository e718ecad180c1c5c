/* Resources by calls: each adds the JSON of a graph file and checks what a file could not get wrong. */
#include <inttypes.h>
#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/struct.h"
#include "base/text.h"
#include "base/words.h"
#include "graphs/description.h"

static weir_status check_resource_name(const weir_description *description, const char *name)
{
	const struct wr_value *root = &description->root;
	const struct wr_value *resources = root->type == WR_OBJECT ? wr_value_find(root, "resources") : NULL;

	if (!wr_name_ok(name))
		return wr_fail(WEIR_E_INVALID, WR_NAME_WRONG, wr_shown(name).text);
	if (resources && resources->type == WR_OBJECT && wr_value_find(resources, name))
		return wr_fail(WEIR_E_INVALID, "there is a resource '%s' already: give this one another name",
			       name);
	return WEIR_OK;
}

/* Adds the item and finishes it. */
static weir_status put_resource(weir_description *description, const char *name, struct wr_text *item)
{
	char pointer[96] = "/resources/";
	weir_status status = item->status;

	strcat(pointer, name);
	if (!status)
		status = weir_description_put(description, pointer, item->text);
	wr_text_finish(item);
	return status;
}

static weir_status check_stream_pool(const char *name, const weir_stream_pool *pool)
{
	if (pool->flags & ~(unsigned)WEIR_STREAM_POOL_BLOCKING)
		return wr_fail(
			WEIR_E_INVALID,
			"stream pool '%s': unknown flags 0x%x: only WEIR_STREAM_POOL_BLOCKING is defined",
			name, pool->flags);
	if (pool->max_size && pool->reserved_size != UINT32_MAX && pool->reserved_size > pool->max_size)
		return wr_fail(WEIR_E_INVALID,
			       "stream pool '%s': reserved_size is %u, but max_size is %u: raise max_size",
			       name, pool->reserved_size, pool->max_size);
	return WEIR_OK;
}

static void add_stream_pool(struct wr_text *item, const weir_stream_pool *pool)
{
	wr_text_add(item, "{\"type\": \"stream_pool\", \"priority\": %d, \"max_size\": %u", pool->priority,
		    pool->max_size);
	if (pool->device || !pool->green_context) /* left out if 0: the device is then the context's */
		wr_text_add(item, ", \"device\": %d", pool->device);
	if (pool->flags & WEIR_STREAM_POOL_BLOCKING)
		wr_text_add(item, ", \"flags\": \"blocking\"");
	if (pool->reserved_size)
		wr_text_add(item, ", \"reserved_size\": %u",
			    pool->reserved_size == UINT32_MAX ? 0 : pool->reserved_size);
	if (pool->green_context) {
		wr_text_add(item, ", \"green_context\": ");
		wr_text_string(item, pool->green_context);
	}
	wr_text_add(item, "%s}", pool->is_default ? ", \"default\": true" : "");
}

weir_status weir_description_add_stream_pool(weir_description *description, const char *name,
					     const weir_stream_pool *pool)
{
	weir_stream_pool own = {0};
	struct wr_text item = {0};
	weir_status status = wr_struct_read(&own, sizeof(own), pool, "weir_stream_pool");

	if (!status)
		status = check_resource_name(description, name);
	if (!status)
		status = check_stream_pool(name, &own);
	if (status)
		return status;
	add_stream_pool(&item, &own);
	return put_resource(description, name, &item);
}

/* Addresses have no place in JSON: they are kept beside the tree. */
struct wr_given_memory {
	struct wr_given_memory *next;
	size_t count;
	uint64_t block_size;
	int device;
	void **blocks;
	char *name;
};

static void given_memory_free(struct wr_given_memory *given)
{
	wr_free(given->blocks);
	wr_free(given->name);
	wr_free(given);
}

static weir_status keep_memory(weir_description *description, const char *name, const weir_memory_pool *pool)
{
	struct wr_given_memory *given;

	if (!pool->memory)
		return WEIR_OK;
	given = wr_alloc(1, sizeof *given);
	if (!given)
		return WEIR_E_NOMEM;
	given->name = wr_strdup(name);
	given->count = pool->blocks;
	given->block_size = pool->block_size;
	given->device = pool->device;
	given->blocks = wr_alloc(pool->blocks, sizeof *given->blocks);
	if (!given->name || !given->blocks) {
		given_memory_free(given);
		return WEIR_E_NOMEM;
	}
	memcpy(given->blocks, pool->memory, pool->blocks * sizeof *given->blocks);
	given->next = description->given;
	description->given = given;
	return WEIR_OK;
}

/* The one that was kept last: its pool could not be added. */
static void forget_last_memory(weir_description *description)
{
	struct wr_given_memory *given = description->given;

	description->given = given->next;
	given_memory_free(given);
}

void wr_description_forget_memory(weir_description *description)
{
	for (struct wr_given_memory *given = description->given, *next; given; given = next) {
		next = given->next;
		given_memory_free(given);
	}
}

/* Of several of one name the one that was added last. */
static const struct wr_given_memory *given_to(const weir_description *description, const char *pool)
{
	const struct wr_given_memory *given = description->given;

	while (given && strcmp(given->name, pool) != 0)
		given = given->next;
	return given;
}

static const char *place_of(int device)
{
	return device == WEIR_DEVICE_HOST ? "of the host" : "of a device";
}

/* The description was changed since the blocks were given: they are not what it says any more. */
static void report_changed(struct wr_reports *reports, const struct wr_plan_memory_pool *pool,
			   const struct wr_given_memory *given)
{
	const struct wr_at resources = {.key = "resources"}, at = {&resources, pool->name, 0};

	wr_report(reports, WR_W_POOL_SIZES, &at, (struct wr_place){0},
		  "pool '%s' was given %zu blocks of %llu bytes %s by weir_description_add_memory_pool, and "
		  "is described with %u of %llu %s now: add a pool of another name with the new blocks",
		  wr_shown(pool->name).text, given->count, (unsigned long long)given->block_size,
		  place_of(given->device), pool->blocks, (unsigned long long)pool->block_size,
		  place_of(pool->device));
}

static weir_status pool_give(struct wr_plan_memory_pool *pool, const struct wr_given_memory *given)
{
	pool->memory = wr_alloc(given->count, sizeof *pool->memory);
	if (!pool->memory)
		return WEIR_E_NOMEM;
	memcpy(pool->memory, given->blocks, given->count * sizeof *pool->memory);
	return WEIR_OK;
}

weir_status wr_description_give_memory(const weir_description *description, struct wr_plan *plan,
				       struct wr_reports *reports)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < plan->memory_pool_count; i++) {
		struct wr_plan_memory_pool *pool = &plan->memory_pools[i];
		const struct wr_given_memory *given = given_to(description, pool->name);

		if (!given)
			continue;
		if (pool->blocks == given->count && pool->block_size == given->block_size &&
		    pool->device == given->device)
			status = pool_give(pool, given);
		else
			report_changed(reports, pool, given);
	}
	return status;
}

static weir_status check_memory_pool(const char *name, const weir_memory_pool *pool)
{
	if (pool->device < WEIR_DEVICE_HOST)
		return wr_fail(WEIR_E_INVALID,
			       "memory pool '%s': device is %d: give a GPU's index, or WEIR_DEVICE_HOST",
			       name, pool->device);
	if (pool->max_size ? pool->blocks || pool->block_size : !pool->blocks || !pool->block_size)
		return wr_fail(WEIR_E_INVALID,
			       "memory pool '%s': set block_size and blocks, or max_size alone", name);
	if (pool->memory && pool->max_size)
		return wr_fail(WEIR_E_INVALID,
			       "memory pool '%s': memory is a list of blocks: set block_size and "
			       "blocks, not max_size",
			       name);
	for (size_t i = 0; pool->memory && i < pool->blocks; i++)
		if (!pool->memory[i])
			return wr_fail(WEIR_E_INVALID, "memory pool '%s': memory[%zu] is NULL", name, i);
	if (pool->block_size > INT64_MAX || pool->max_size > INT64_MAX)
		return wr_fail(WEIR_E_INVALID, "memory pool '%s': a size does not fit in 63 bits", name);
	return WEIR_OK;
}

static void add_memory_pool(struct wr_text *item, const weir_memory_pool *pool)
{
	wr_text_add(item, "{\"type\": \"memory_pool\", ");
	if (pool->device == WEIR_DEVICE_HOST)
		wr_text_add(item, "\"place\": \"host\", ");
	else
		wr_text_add(item, "\"device\": %d, ", pool->device);
	if (pool->max_size)
		wr_text_add(item, "\"max_size\": %" PRIu64 "}", pool->max_size);
	else
		wr_text_add(item, "\"block_size\": %" PRIu64 ", \"blocks\": %" PRIu32 "}", pool->block_size,
			    pool->blocks);
}

weir_status weir_description_add_memory_pool(weir_description *description, const char *name,
					     const weir_memory_pool *pool)
{
	weir_memory_pool own = {0};
	struct wr_text item = {0};
	weir_status status = wr_struct_read(&own, sizeof(own), pool, "weir_memory_pool");

	if (!status)
		status = check_resource_name(description, name);
	if (!status)
		status = check_memory_pool(name, &own);
	if (!status)
		status = keep_memory(description, name, &own);
	if (status)
		return status;
	add_memory_pool(&item, &own);
	status = put_resource(description, name, &item);
	if (status && own.memory)
		forget_last_memory(description);
	return status;
}

bool weir_description_pool_needs(const weir_description *description, size_t i, weir_pool_needs *out)
{
	const struct wr_plan *plan = wr_load(&((weir_description *)description)->checked);
	const struct wr_plan_memory_pool *pool;
	weir_pool_needs needs;

	if (!plan || i >= plan->memory_pool_count)
		return false;
	pool = &plan->memory_pools[i];
	needs = (weir_pool_needs){.size = sizeof needs,
				  .pool = pool->name,
				  .blocks = pool->blocks,
				  .reached = pool->reached,
				  .claimed = pool->claimed};
	return !wr_struct_fill(out, &needs, sizeof needs, "weir_pool_needs");
}

static weir_status check_context_pool(const char *name, const weir_green_context_pool *pool)
{
	uint32_t least = pool->min_sm_size ? pool->min_sm_size : 2;

	if (pool->flags)
		return wr_fail(WEIR_E_INVALID, "green context pool '%s': flags 0x%x: they must be 0", name,
			       pool->flags);
	if (!pool->num_partitions || !pool->sms_per_partition)
		return wr_fail(WEIR_E_INVALID,
			       "green context pool '%s': no partitions: give the size of at least one", name);
	for (size_t i = 0; i < pool->num_partitions; i++)
		if (pool->sms_per_partition[i] < least)
			return wr_fail(
				WEIR_E_INVALID,
				"green context pool '%s': partition %zu has size %u: it must be at least %u",
				name, i, pool->sms_per_partition[i], least);
	if (pool->default_context < -1 || pool->default_context >= (int64_t)pool->num_partitions)
		return wr_fail(
			WEIR_E_INVALID,
			"green context pool '%s': default_context %d is out of range: write -1 for the "
			"remainder, or a partition from 0 to %zu",
			name, pool->default_context, pool->num_partitions - 1);
	return WEIR_OK;
}

static void add_context_pool(struct wr_text *item, const weir_green_context_pool *pool)
{
	wr_text_add(item, "{\"type\": \"green_context_pool\", \"device\": %d, \"sms_per_partition\": [",
		    pool->device);
	for (size_t i = 0; i < pool->num_partitions; i++)
		wr_text_add(item, "%s%u", i ? ", " : "", pool->sms_per_partition[i]);
	wr_text_add(item, "], \"default_context_index\": %d", pool->default_context);
	if (pool->min_sm_size)
		wr_text_add(item, ", \"min_sm_size\": %u", pool->min_sm_size);
	wr_text_add(item, "%s}", pool->is_default ? ", \"default\": true" : "");
}

weir_status weir_description_add_green_context_pool(weir_description *description, const char *name,
						    const weir_green_context_pool *pool)
{
	weir_green_context_pool own = {0};
	struct wr_text item = {0};
	weir_status status = wr_struct_read(&own, sizeof(own), pool, "weir_green_context_pool");

	if (!status)
		status = check_resource_name(description, name);
	if (!status)
		status = check_context_pool(name, &own);
	if (status)
		return status;
	add_context_pool(&item, &own);
	return put_resource(description, name, &item);
}

weir_status weir_description_add_green_context(weir_description *description, const char *name,
					       const char *pool, int index)
{
	struct wr_text item = {0};
	weir_status status = check_resource_name(description, name);

	if (!status && index < -1 && index != WEIR_PARTITION_REMAINDER)
		status = wr_fail(WEIR_E_INVALID,
				 "green context '%s': index %d is out of range: write -1 for the pool's "
				 "default, or a partition from 0",
				 name, index);
	if (status)
		return status;
	wr_text_add(&item, "{\"type\": \"green_context\", \"pool\": ");
	wr_text_string(&item, pool);
	if (index == WEIR_PARTITION_REMAINDER)
		wr_text_add(&item, ", \"index\": \"remainder\"}");
	else
		wr_text_add(&item, ", \"index\": %d}", index);
	return put_resource(description, name, &item);
}

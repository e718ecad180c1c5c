/* Calls that add resources: each adds the JSON of a graph file and checks what a file could not get wrong. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/struct.h"
#include "graphs/description.h"
#include "base/text.h"

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

weir_status weir_description_use(weir_description *description, const char *entity, const char *resource)
{
	struct wr_text item = {0};
	char pointer[64];
	size_t index = 0;
	weir_status status = wr_description_entity(description, entity, &index);

	if (status)
		return status;
	snprintf(pointer, sizeof(pointer), "/entities/%zu/resources/-", index);
	wr_text_string(&item, resource);
	status = item.status;
	if (!status)
		status = weir_description_put(description, pointer, item.text);
	wr_text_finish(&item);
	return status;
}

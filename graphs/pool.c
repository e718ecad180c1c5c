/* The pools of the key "resources": stream pools, green context pools, and green contexts. */
#include <limits.h>

#include "base/memory.h"
#include "base/words.h"
#include "graphs/build.h"
#include "streams/streams.h"

#define STREAMS_MAX    65536 /* of one pool */
#define PARTITIONS_MAX 256
#define SMS_MAX        65535

static int64_t read_integer(struct wr_build *build, const struct wr_at *up, const char *key,
			    const struct wr_value *value, int64_t min, int64_t max, int64_t fallback)
{
	return wr_field_integer(&build->reports, &(struct wr_at){up, key, 0}, value, min, max, fallback);
}

/* --- stream pools --- */

/* Gives WR_NO_CONTEXT if no context is named or if there is an error, which is reported. */
static weir_status find_context(struct wr_build *build, const struct wr_value *name, const struct wr_at *up,
				uint32_t *out)
{
	struct wr_at at = {up, "green_context", 0};
	struct wr_resource *named = NULL;

	*out = WR_NO_CONTEXT;
	if (name)
		named = wr_resource_find(build, name, &at,
					 1u << WR_GREEN_CONTEXT | 1u << WR_GREEN_CONTEXT_POOL,
					 "a green_context or a green_context_pool");
	return named ? wr_resource_context(build, named, out) : WEIR_OK;
}

static void check_in_context(struct wr_build *build, struct wr_plan_stream_pool *pool,
			     const struct wr_value *flags, const struct wr_value *device,
			     const struct wr_at *at)
{
	int there = wr_plan_context_device(build->plan, pool->green_context);

	if (pool->flags & WR_STREAM_BLOCKING)
		wr_report(&build->reports, WR_W_GREEN_CONTEXT, &(struct wr_at){at, "flags", 0}, flags->place,
			  "streams of a green context are always non_blocking: remove \"flags\"");
	if (there >= 0 && device && device->integer != there)
		wr_report(&build->reports, WR_W_GREEN_CONTEXT, &(struct wr_at){at, "device", 0},
			  device->place, "is %lld, but green context '%s' is on device %d: remove \"device\"",
			  (long long)device->integer,
			  wr_shown(build->plan->green_contexts[pool->green_context].name).text, there);
	if (there >= 0)
		pool->device = there;
}

static void read_pool_sizes(struct wr_build *build, struct wr_plan_stream_pool *pool,
			    const struct wr_value *reserved, const struct wr_value *max,
			    const struct wr_at *at)
{
	pool->reserved_size = (uint32_t)read_integer(build, at, "reserved_size", reserved, 0, STREAMS_MAX, 1);
	pool->max_size = (uint32_t)read_integer(build, at, "max_size", max, 0, STREAMS_MAX, 0);
	if (pool->max_size && pool->reserved_size > pool->max_size)
		wr_report(&build->reports, WR_W_POOL_SIZES, &(struct wr_at){at, "reserved_size", 0},
			  reserved->place, "is %u, but max_size is %u: raise max_size, or reserve fewer",
			  pool->reserved_size, pool->max_size);
}

weir_status wr_build_stream_pool(struct wr_build *build, struct wr_resource *resource, const struct wr_at *at)
{
	enum { TYPE, DEVICE, FLAGS, PRIORITY, RESERVED, MAX, CONTEXT, DEFAULT, KEYS };
	static const struct wr_field fields[KEYS + 1] = {
		[TYPE] = {"type", WR_STRING, true},
		[DEVICE] = {"device", WR_INTEGER, false},
		[FLAGS] = {"flags", WR_STRING, false},
		[PRIORITY] = {"priority", WR_INTEGER, false},
		[RESERVED] = {"reserved_size", WR_INTEGER, false},
		[MAX] = {"max_size", WR_INTEGER, false},
		[CONTEXT] = {"green_context", WR_STRING, false},
		[DEFAULT] = {"default", WR_BOOL, false},
	};
	struct wr_plan_stream_pool *pool = &build->plan->stream_pools[resource->index];
	const struct wr_value *found[KEYS];
	weir_status status;
	int flags = 0;

	wr_fields_read(&build->reports, at, &resource->member->value, "a stream_pool", fields, found);
	pool->device = (int)read_integer(build, at, "device", found[DEVICE], 0, WR_DEVICE_MAX, 0);
	pool->priority = (int)read_integer(build, at, "priority", found[PRIORITY], INT_MIN, INT_MAX, 0);
	if (found[FLAGS])
		flags = wr_field_choice(&build->reports, &(struct wr_at){at, "flags", 0}, found[FLAGS],
					"non_blocking|blocking");
	pool->flags = flags == 1 ? WR_STREAM_BLOCKING : 0;
	read_pool_sizes(build, pool, found[RESERVED], found[MAX], at);
	status = find_context(build, found[CONTEXT], at, &pool->green_context);
	if (!status && pool->green_context != WR_NO_CONTEXT)
		check_in_context(build, pool, found[FLAGS], found[DEVICE], at);
	return status;
}

/* --- green contexts --- */

/* Returns the number of partitions; 0 if there is an error, which is reported. */
static size_t partition_count(struct wr_build *build, const struct wr_at *up, const struct wr_value *sizes,
			      const struct wr_value *number)
{
	struct wr_at at = {up, "sms_per_partition", 0}, number_at = {up, "num_partitions", 0};
	size_t count = wr_value_count(sizes);
	int64_t given = wr_field_integer(&build->reports, &number_at, number, 1, PARTITIONS_MAX, 0);

	if (number && !given)
		return 0;
	if (sizes->type == WR_INTEGER && !number)
		wr_report(&build->reports, WR_W_MISSING_KEY, &at, sizes->place,
			  "a single size needs the key 'num_partitions': the number of partitions");
	if (sizes->type == WR_INTEGER)
		return (size_t)given;
	if (!count || count > PARTITIONS_MAX)
		wr_report(&build->reports, WR_W_RANGE, &at, sizes->place, "lists %zu sizes: must be 1 to %d",
			  count, PARTITIONS_MAX);
	else if (number && given != (int64_t)count)
		wr_report(&build->reports, WR_W_POOL_SIZES, &number_at, number->place,
			  "is %lld, but sms_per_partition lists %zu: remove num_partitions", (long long)given,
			  count);
	return count > PARTITIONS_MAX ? 0 : count;
}

static uint32_t partition_size(struct wr_build *build, const struct wr_plan_green_context_pool *pool,
			       const struct wr_value *size, const struct wr_at *at)
{
	int64_t sms;

	if (!wr_type_check(&build->reports, at, size, WR_INTEGER))
		return 0;
	sms = wr_field_integer(&build->reports, at, size, 1, SMS_MAX, 0);
	if (sms && sms < pool->min_sm_size)
		wr_report(&build->reports, WR_W_RANGE, at, size->place,
			  "%lld is less than min_sm_size, %u: raise the size, or lower min_sm_size",
			  (long long)sms, pool->min_sm_size);
	return (uint32_t)sms;
}

static weir_status read_sizes(struct wr_build *build, struct wr_plan_green_context_pool *pool,
			      const struct wr_value *sizes, const struct wr_value *number,
			      const struct wr_at *up)
{
	struct wr_at at = {up, "sms_per_partition", 0};
	size_t count = partition_count(build, up, sizes, number);

	pool->sizes = wr_alloc(count + 1, sizeof(*pool->sizes));
	if (!pool->sizes)
		return WEIR_E_NOMEM;
	pool->count = count;
	if (sizes->type == WR_INTEGER)
		pool->sizes[0] = partition_size(build, pool, sizes, &at);
	for (size_t i = 0; i < count; i++)
		pool->sizes[i] = sizes->type == WR_INTEGER
					 ? pool->sizes[0]
					 : partition_size(build, pool, &wr_value_at(sizes, i)->value,
							  &(struct wr_at){&at, NULL, i});
	return WEIR_OK;
}

/* An index from -1 to the last partition; -1 also if an error left no partitions. */
static int read_index(struct wr_build *build, const struct wr_plan_green_context_pool *pool,
		      const struct wr_at *up, const char *key, const struct wr_value *value)
{
	return pool->count ? (int)read_integer(build, up, key, value, -1, (int64_t)pool->count - 1, -1) : -1;
}

weir_status wr_build_green_pool(struct wr_build *build, struct wr_resource *resource, const struct wr_at *at)
{
	enum { TYPE, DEVICE, FLAGS, PARTITIONS, SIZES, LEAST, INDEX, DEFAULT, KEYS };
	static const struct wr_field fields[KEYS + 1] = {
		[TYPE] = {"type", WR_STRING, true},
		[DEVICE] = {"device", WR_INTEGER, false},
		[FLAGS] = {"flags", WR_INTEGER, false},
		[PARTITIONS] = {"num_partitions", WR_INTEGER, false},
		[SIZES] = {"sms_per_partition", WR_ARRAY | WR_INTEGER, true},
		[LEAST] = {"min_sm_size", WR_INTEGER, false},
		[INDEX] = {"default_context_index", WR_INTEGER, false},
		[DEFAULT] = {"default", WR_BOOL, false},
	};
	struct wr_plan_green_context_pool *pool = &build->plan->green_context_pools[resource->index];
	const struct wr_value *found[KEYS];
	weir_status status = WEIR_OK;

	wr_fields_read(&build->reports, at, &resource->member->value, "a green_context_pool", fields, found);
	pool->device = (int)read_integer(build, at, "device", found[DEVICE], 0, WR_DEVICE_MAX, 0);
	pool->flags = (unsigned)read_integer(build, at, "flags", found[FLAGS], 0, 0, 0);
	pool->min_sm_size = (uint32_t)read_integer(build, at, "min_sm_size", found[LEAST], 1, SMS_MAX, 2);
	if (found[SIZES])
		status = read_sizes(build, pool, found[SIZES], found[PARTITIONS], at);
	pool->default_index = read_index(build, pool, at, "default_context_index", found[INDEX]);
	return status;
}

/*
 * The index of a green context. In the text -1 is the pool's default and "remainder" the remainder; in the
 * plan -1 is the remainder.
 */
static int read_partition(struct wr_build *build, const struct wr_plan_green_context_pool *pool,
			  const struct wr_at *up, const struct wr_value *value)
{
	int index;

	if (value && value->type == WR_STRING) {
		wr_field_choice(&build->reports, &(struct wr_at){up, "index", 0}, value, "remainder");
		return -1;
	}
	index = read_index(build, pool, up, "index", value);
	return index < 0 ? pool->default_index : index;
}

weir_status wr_build_green_context(struct wr_build *build, struct wr_resource *resource,
				   const struct wr_at *at)
{
	enum { TYPE, POOL, INDEX, KEYS };
	static const struct wr_field fields[KEYS + 1] = {
		[TYPE] = {"type", WR_STRING, true},
		[POOL] = {"pool", WR_STRING, true},
		[INDEX] = {"index", WR_INTEGER | WR_STRING, false},
	};
	struct wr_plan_green_context *context = &build->plan->green_contexts[resource->index];
	const struct wr_plan_green_context_pool *pool;
	const struct wr_value *found[KEYS];
	struct wr_resource *named = NULL;

	wr_fields_read(&build->reports, at, &resource->member->value, "a green_context", fields, found);
	if (found[POOL])
		named = wr_resource_find(build, found[POOL], &(struct wr_at){at, "pool", 0},
					 1u << WR_GREEN_CONTEXT_POOL, "a green_context_pool");
	context->pool = named ? named->index : WR_NO_POOL;
	if (!named)
		return WEIR_OK;
	pool = &build->plan->green_context_pools[named->index];
	context->index = read_partition(build, pool, at, found[INDEX]);
	return WEIR_OK;
}

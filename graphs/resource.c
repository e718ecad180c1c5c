/*
 * The key "resources": stream pools, green context pools and green contexts. They may name each other in any
 * order: all names are entered first; then the types are read in the order in which they may name each other.
 */
#include <limits.h>

#include "base/memory.h"
#include "graphs/build.h"
#include "base/nearest.h"
#include "base/text.h"

#define STREAMS_MAX 65536 /* of one pool */

static const char *resource_name(const struct wr_resource *resource)
{
	return resource->member->key;
}

static const char *type_text(enum wr_resource_type type)
{
	static const char *const texts[] = {"a stream_pool", "a green_context_pool", "a green_context",
					    "nothing"};

	return texts[type];
}

static int64_t read_integer(struct wr_build *build, const struct wr_at *up, const char *key,
			    const struct wr_value *value, int64_t min, int64_t max, int64_t fallback)
{
	return wr_field_integer(&build->reports, &(struct wr_at){up, key, 0}, value, min, max, fallback);
}

/* --- names --- */

static void report_unknown_resource(struct wr_build *build, const struct wr_value *name,
				    const struct wr_at *at, unsigned types)
{
	struct wr_nearest nearest = {.wanted = name->string};

	for (size_t i = 0; i < build->resource_count && build->reports.count < WR_REPORTS_MAX; i++)
		if (types & 1u << build->resources[i].type)
			wr_nearest_try(&nearest, resource_name(&build->resources[i]));
	wr_report(&build->reports, WR_W_UNKNOWN_RESOURCE, at, name->place,
		  "there is no resource '%s'%s: declare it in \"resources\" of the graph",
		  wr_shown(name->string).text, wr_nearest_hint(&nearest).text);
}

struct wr_resource *wr_resource_find(struct wr_build *build, const struct wr_value *name,
				     const struct wr_at *at, unsigned types, const char *wanted)
{
	size_t found = wr_names_find(&build->resource_names, name->string);
	struct wr_resource *resource = found == WR_NO_INDEX ? NULL : &build->resources[found];

	if (resource) {
		resource->used = true;
		if (types & 1u << resource->type)
			return resource;
	}
	build->unresolved_resource = true;
	if (!resource)
		report_unknown_resource(build, name, at, types);
	else if (resource->type != WR_RESOURCE_UNKNOWN)
		wr_report(&build->reports, WR_W_RESOURCE_TYPE, at, name->place, "'%s' is %s: name %s",
			  wr_shown(name->string).text, type_text(resource->type), wanted);
	return NULL;
}

static enum wr_resource_type read_type(struct wr_build *build, const struct wr_member *member,
				       const struct wr_at *up)
{
	struct wr_at at = {up, "type", 0};
	const struct wr_value *type;
	int choice;

	if (!wr_type_check(&build->reports, up, &member->value, WR_OBJECT))
		return WR_RESOURCE_UNKNOWN;
	type = wr_value_find(&member->value, "type");
	if (!type)
		wr_report(&build->reports, WR_W_MISSING_KEY, up, member->value.place,
			  "a resource needs the key 'type'");
	if (!type || !wr_type_check(&build->reports, &at, type, WR_STRING))
		return WR_RESOURCE_UNKNOWN;
	choice = wr_field_choice(&build->reports, &at, type, WR_RESOURCE_TYPES);
	return choice < 0 ? WR_RESOURCE_UNKNOWN : (enum wr_resource_type)choice;
}

/* Adds the resource to its list in the plan, with nothing but its name. */
static weir_status add_to_plan(struct wr_build *build, struct wr_resource *resource)
{
	struct wr_plan *plan = build->plan;
	char *name = wr_strdup(resource_name(resource));

	if (!name)
		return WEIR_E_NOMEM;
	switch (resource->type) {
	case WR_STREAM_POOL:
		resource->pool = resource->index = (uint32_t)plan->stream_pool_count++;
		plan->stream_pools[resource->index].name = name;
		break;
	case WR_GREEN_CONTEXT_POOL:
		resource->index = (uint32_t)plan->green_context_pool_count++;
		plan->green_context_pools[resource->index].name = name;
		break;
	case WR_GREEN_CONTEXT:
		resource->context = resource->index = (uint32_t)plan->green_context_count++;
		plan->green_contexts[resource->index].name = name;
		break;
	case WR_RESOURCE_UNKNOWN:
		wr_free(name);
		break;
	}
	return WEIR_OK;
}

/* `again`: an earlier resource has the same name, which was reported. */
static weir_status enter_resource(struct wr_build *build, const struct wr_member *member, bool again,
				  const struct wr_at *at)
{
	struct wr_resource *resource = &build->resources[build->resource_count];
	weir_status status;

	if (!wr_name_ok(member->key))
		wr_report(&build->reports, WR_W_NAME, at, member->place, WR_NAME_WRONG,
			  wr_shown(member->key).text);
	*resource = (struct wr_resource){.member = member, .context = WR_NO_CONTEXT, .pool = WR_NO_POOL};
	resource->used = again; /* it cannot be named: do not warn that it is unused */
	resource->type = read_type(build, member, at);
	status = add_to_plan(build, resource);
	return status ? status : wr_names_add(&build->resource_names, member->key, build->resource_count++);
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

/* The device of a green context; -1 if its pool had an error. */
static int context_device(const struct wr_plan *plan, uint32_t context)
{
	uint32_t pool = plan->green_contexts[context].pool;

	return pool == WR_NO_POOL ? -1 : plan->green_context_pools[pool].device;
}

static void check_in_context(struct wr_build *build, struct wr_plan_stream_pool *pool,
			     const struct wr_value *flags, const struct wr_value *device,
			     const struct wr_at *at)
{
	int there = context_device(build->plan, pool->green_context);

	if (pool->flags & WEIR_STREAM_POOL_BLOCKING)
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

static weir_status read_stream_pool(struct wr_build *build, struct wr_resource *resource,
				    const struct wr_at *at)
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

	wr_fields_read(&build->reports, at, &resource->member->value, type_text(resource->type), fields,
		       found);
	pool->device = (int)read_integer(build, at, "device", found[DEVICE], 0, WR_DEVICE_MAX, 0);
	pool->priority = (int)read_integer(build, at, "priority", found[PRIORITY], INT_MIN, INT_MAX, 0);
	if (found[FLAGS])
		flags = wr_field_choice(&build->reports, &(struct wr_at){at, "flags", 0}, found[FLAGS],
					"non_blocking|blocking");
	pool->flags = flags == 1 ? WEIR_STREAM_POOL_BLOCKING : 0;
	read_pool_sizes(build, pool, found[RESERVED], found[MAX], at);
	status = find_context(build, found[CONTEXT], at, &pool->green_context);
	if (!status && pool->green_context != WR_NO_CONTEXT)
		check_in_context(build, pool, found[FLAGS], found[DEVICE], at);
	return status;
}

/* --- implied --- */

weir_status wr_resource_context(struct wr_build *build, struct wr_resource *resource, uint32_t *out)
{
	struct wr_plan *plan = build->plan;
	char *name;

	*out = resource->context;
	if (resource->context != WR_NO_CONTEXT)
		return WEIR_OK;
	name = wr_strdup(resource_name(resource));
	if (!name)
		return WEIR_E_NOMEM;
	*out = resource->context = (uint32_t)plan->green_context_count;
	plan->green_contexts[plan->green_context_count++] = (struct wr_plan_green_context){
		name, resource->index, plan->green_context_pools[resource->index].default_index, true};
	return WEIR_OK;
}

/* Takes the name; NULL means that memory ran out. Reserves no streams: the device may never be used. */
static weir_status add_implied_pool(struct wr_build *build, char *name, int device, uint32_t context,
				    uint32_t *out)
{
	struct wr_plan *plan = build->plan;

	if (!name)
		return WEIR_E_NOMEM;
	*out = (uint32_t)plan->stream_pool_count;
	plan->stream_pools[plan->stream_pool_count++] = (struct wr_plan_stream_pool){
		.name = name, .device = device, .green_context = context, .implied = true};
	return WEIR_OK;
}

weir_status wr_resource_pool(struct wr_build *build, struct wr_resource *resource, uint32_t *out)
{
	weir_status status = WEIR_OK;
	uint32_t context;
	int device;

	if (resource->pool == WR_NO_POOL) {
		status = wr_resource_context(build, resource, &context);
		if (status)
			return status;
		device = context_device(build->plan, context);
		status = add_implied_pool(build, wr_format("default of %s", resource_name(resource)),
					  device < 0 ? 0 : device, context, &resource->pool);
	}
	*out = resource->pool;
	return status;
}

weir_status wr_default_pool(struct wr_build *build, uint32_t *out)
{
	weir_status status = WEIR_OK;

	if (build->default_resource)
		return wr_resource_pool(build, build->default_resource, out);
	if (build->implied_pool == WR_NO_POOL)
		status =
			add_implied_pool(build, wr_strdup("default"), 0, WR_NO_CONTEXT, &build->implied_pool);
	*out = build->implied_pool;
	return status;
}

/* --- all --- */

static void check_default(struct wr_build *build, struct wr_resource *resource, const struct wr_at *at)
{
	const struct wr_value *value = NULL;

	if (resource->type == WR_STREAM_POOL || resource->type == WR_GREEN_CONTEXT_POOL)
		value = wr_value_find(&resource->member->value, "default");
	if (!value || value->type != WR_BOOL || !value->boolean)
		return;
	if (build->default_resource) {
		wr_report(&build->reports, WR_W_TWO_DEFAULTS, &(struct wr_at){at, "default", 0}, value->place,
			  "'%s' is the default already: a graph has one default, remove this one",
			  wr_shown(resource_name(build->default_resource)).text);
		return;
	}
	build->default_resource = resource;
	if (resource->type == WR_STREAM_POOL)
		build->plan->stream_pools[resource->index].is_default = true;
	else
		build->plan->green_context_pools[resource->index].is_default = true;
}

static weir_status read_resources_of(struct wr_build *build, enum wr_resource_type type,
				     const struct wr_at *all)
{
	static weir_status (*const read[])(struct wr_build *, struct wr_resource *, const struct wr_at *) = {
		[WR_STREAM_POOL] = read_stream_pool,
		[WR_GREEN_CONTEXT_POOL] = wr_build_green_pool,
		[WR_GREEN_CONTEXT] = wr_build_green_context,
	};
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < build->resource_count && !status; i++)
		if (build->resources[i].type == type)
			status = read[type](build, &build->resources[i],
					    &(struct wr_at){all, build->resources[i].member->key, 0});
	return status;
}

/* Each list has room for implied ones: a pool per green context, one for entities without resource. */
static weir_status alloc_resources(struct wr_build *build, size_t count)
{
	struct wr_plan *plan = build->plan;

	build->implied_pool = WR_NO_POOL;
	build->resources = wr_alloc(count + 1, sizeof(*build->resources));
	plan->stream_pools = wr_alloc(count + 1, sizeof(*plan->stream_pools));
	plan->green_context_pools = wr_alloc(count + 1, sizeof(*plan->green_context_pools));
	plan->green_contexts = wr_alloc(count + 1, sizeof(*plan->green_contexts));
	return build->resources && plan->stream_pools && plan->green_context_pools && plan->green_contexts
		       ? WEIR_OK
		       : WEIR_E_NOMEM;
}

static void count_devices(struct wr_plan *plan)
{
	plan->devices = 1;
	for (size_t i = 0; i < plan->stream_pool_count; i++)
		if (plan->stream_pools[i].device >= plan->devices)
			plan->devices = plan->stream_pools[i].device + 1;
	for (size_t i = 0; i < plan->green_context_pool_count; i++)
		if (plan->green_context_pools[i].device >= plan->devices)
			plan->devices = plan->green_context_pools[i].device + 1;
}

weir_status wr_build_resources(struct wr_build *build, const struct wr_value *resources)
{
	size_t count = resources ? wr_value_count(resources) : 0;
	struct wr_at all = {NULL, "resources", 0};
	weir_status status = alloc_resources(build, count);

	for (size_t i = 0; i < count && !status; i++) {
		const struct wr_member *member = wr_value_at(resources, i);
		struct wr_at at = {&all, member->key, 0};
		if (member->value.type == WR_OBJECT || !wr_is_comment(&build->reports, &at, member))
			status = enter_resource(build, member, wr_value_index(resources, member->key) < i,
						&at);
	}
	wr_names_sort(&build->resource_names);
	if (!status)
		status = read_resources_of(build, WR_GREEN_CONTEXT_POOL, &all);
	if (!status)
		status = read_resources_of(build, WR_GREEN_CONTEXT, &all);
	if (!status)
		status = read_resources_of(build, WR_STREAM_POOL, &all);
	for (size_t i = 0; i < build->resource_count && !status; i++)
		check_default(build, &build->resources[i],
			      &(struct wr_at){&all, build->resources[i].member->key, 0});
	count_devices(build->plan);
	return status;
}

/*
 * The key "resources", and which resource each entity uses. Resources may name each other in any order: all
 * names are entered first; then the types are read in the order in which they may name each other.
 */
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "base/text.h"
#include "graphs/build.h"

static const char *resource_name(const struct wr_resource *resource)
{
	return resource->member->key;
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
	static const char *const texts[] = {"a stream_pool", "a green_context_pool", "a green_context",
					    "a memory_pool", "nothing"};
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
			  wr_shown(name->string).text, texts[resource->type], wanted);
	return NULL;
}

static enum wr_resource_type resource_read_type(struct wr_build *build, const struct wr_member *member,
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
static weir_status resource_add_to_plan(struct wr_build *build, struct wr_resource *resource)
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
	case WR_MEMORY_POOL:
		resource->index = (uint32_t)plan->memory_pool_count++;
		plan->memory_pools[resource->index].name = name;
		break;
	case WR_RESOURCE_UNKNOWN:
		wr_free(name);
		break;
	}
	return WEIR_OK;
}

/* `again`: an earlier resource has the same name, which was reported. */
static weir_status resource_enter(struct wr_build *build, const struct wr_member *member, bool again,
				  const struct wr_at *at)
{
	struct wr_resource *resource = &build->resources[build->resource_count];
	weir_status status;

	if (!wr_name_ok(member->key))
		wr_report(&build->reports, WR_W_NAME, at, member->place, WR_NAME_WRONG,
			  wr_shown(member->key).text);
	*resource = (struct wr_resource){.member = member, .context = WR_NO_CONTEXT, .pool = WR_NO_POOL};
	resource->used = again; /* it cannot be named: do not warn that it is unused */
	resource->type = resource_read_type(build, member, at);
	status = resource_add_to_plan(build, resource);
	return status ? status : wr_names_add(&build->resource_names, member->key, build->resource_count++);
}

/* --- implied --- */

int wr_plan_context_device(const struct wr_plan *plan, uint32_t context)
{
	uint32_t pool = plan->green_contexts[context].pool;

	return pool == WR_NO_POOL ? -1 : plan->green_context_pools[pool].device;
}

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

static weir_status resource_pool(struct wr_build *build, struct wr_resource *resource, uint32_t *out)
{
	weir_status status = WEIR_OK;
	uint32_t context;
	int device;

	if (resource->pool == WR_NO_POOL) {
		status = wr_resource_context(build, resource, &context);
		if (status)
			return status;
		device = wr_plan_context_device(build->plan, context);
		status = add_implied_pool(build, wr_format("default of %s", resource_name(resource)),
					  device < 0 ? 0 : device, context, &resource->pool);
	}
	*out = resource->pool;
	return status;
}

/* For when no resource is the default. */
static weir_status implied_pool(struct wr_build *build, uint32_t *out)
{
	weir_status status = WEIR_OK;

	if (build->implied_pool == WR_NO_POOL)
		status =
			add_implied_pool(build, wr_strdup("default"), 0, WR_NO_CONTEXT, &build->implied_pool);
	*out = build->implied_pool;
	return status;
}

/* --- all --- */

static void resource_check_default(struct wr_build *build, struct wr_resource *resource,
				   const struct wr_at *at)
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
		[WR_STREAM_POOL] = wr_build_stream_pool,
		[WR_GREEN_CONTEXT_POOL] = wr_build_green_pool,
		[WR_GREEN_CONTEXT] = wr_build_green_context,
		[WR_MEMORY_POOL] = wr_build_memory_pool,
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
	plan->memory_pools = wr_alloc(count + 1, sizeof(*plan->memory_pools));
	return build->resources && plan->stream_pools && plan->green_context_pools && plan->green_contexts &&
			       plan->memory_pools
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
	for (size_t i = 0; i < plan->memory_pool_count; i++)
		if (plan->memory_pools[i].device >= plan->devices)
			plan->devices = plan->memory_pools[i].device + 1;
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
			status = resource_enter(build, member, wr_value_index(resources, member->key) < i,
						&at);
	}
	wr_names_sort(&build->resource_names);
	if (!status)
		status = read_resources_of(build, WR_GREEN_CONTEXT_POOL, &all);
	if (!status)
		status = read_resources_of(build, WR_GREEN_CONTEXT, &all);
	if (!status)
		status = read_resources_of(build, WR_STREAM_POOL, &all);
	if (!status)
		status = read_resources_of(build, WR_MEMORY_POOL, &all);
	for (size_t i = 0; i < build->resource_count && !status; i++)
		resource_check_default(build, &build->resources[i],
				       &(struct wr_at){&all, build->resources[i].member->key, 0});
	count_devices(build->plan);
	return status;
}

/* --- what entities use --- */

#define ANY_TYPE                                                                                             \
	(1u << WR_STREAM_POOL | 1u << WR_GREEN_CONTEXT_POOL | 1u << WR_GREEN_CONTEXT | 1u << WR_MEMORY_POOL)

static bool listed_before(const struct wr_value *list, size_t i)
{
	const struct wr_value *name = &wr_value_at(list, i)->value;

	for (size_t k = 0; k < i; k++) {
		const struct wr_value *earlier = &wr_value_at(list, k)->value;

		if (earlier->type == WR_STRING && !strcmp(earlier->string, name->string))
			return true;
	}
	return false;
}

/* The same resource twice, or two of which an entity has one. Each but a memory pool gives a stream pool. */
static void check_listed(struct wr_build *build, const struct wr_value *list, size_t i,
			 const struct wr_resource *here, const struct wr_resource *first,
			 const struct wr_at *at)
{
	const struct wr_value *name = &wr_value_at(list, i)->value;

	if (listed_before(list, i))
		wr_report(&build->reports, WR_W_DUPLICATE_NAME, at, name->place,
			  "'%s' is listed twice: remove one of them", wr_shown(name->string).text);
	else if (here->type != WR_MEMORY_POOL && first)
		wr_report(&build->reports, WR_W_TWO_POOLS, at, name->place,
			  "'%s' and '%s' both give a stream pool, but an entity has one: remove one of them",
			  wr_shown(name->string).text, wr_shown(first->member->key).text);
}

/* Returns the resource of the list that gives a stream pool, or NULL; notes the memory pools. */
static struct wr_resource *read_resource_list(struct wr_build *build, struct wr_plan_entity *entity,
					      const struct wr_value *list, const struct wr_at *up)
{
	struct wr_at all = {up, "resources", 0};
	struct wr_resource *first = NULL;

	for (size_t i = 0; list && i < wr_value_count(list); i++) {
		const struct wr_value *name = &wr_value_at(list, i)->value;
		struct wr_at at = {&all, NULL, i};
		struct wr_resource *here = NULL;

		if (wr_type_check(&build->reports, &at, name, WR_STRING))
			here = wr_resource_find(build, name, &at, ANY_TYPE, "a resource");
		build->unresolved_resource |= !here;
		if (!here)
			continue;
		check_listed(build, list, i, here, first, &at);
		if (here->type == WR_MEMORY_POOL && !listed_before(list, i))
			wr_build_use_memory(build, entity, here, name, &at);
		else if (here->type != WR_MEMORY_POOL)
			first = first ? first : here;
	}
	return first;
}

weir_status wr_build_entity_pool(struct wr_build *build, struct wr_plan_entity *entity,
				 const struct wr_pool_keys *use, const struct wr_at *at)
{
	struct wr_resource *resource = read_resource_list(build, entity, use->resources, at);
	bool wants_default = !use->default_stream_pool || use->default_stream_pool->boolean;
	weir_status status;

	entity->stream_pool = WR_NO_POOL;
	entity->use_default_stream =
		use->use_default_stream ? use->use_default_stream->boolean : build->use_default_stream;
	if (!resource && !wants_default) {
		wr_build_check_memory_device(build, entity, use->resources, at);
		return WEIR_OK;
	}
	if (!resource)
		resource = build->default_resource;
	status = resource ? resource_pool(build, resource, &entity->stream_pool)
			  : implied_pool(build, &entity->stream_pool);
	if (status)
		return status;
	entity->device = build->plan->stream_pools[entity->stream_pool].device;
	build->plan->stream_pools[entity->stream_pool].users++;
	wr_build_check_memory_device(build, entity, use->resources, at);
	if (!resource)
		return WEIR_OK;
	resource->used = true;
	if (entity->kind && entity->kind->flags & WEIR_OPERATOR_STREAM && !entity->use_default_stream)
		resource->workers += entity->instances;
	resource->several |= entity->instances > 1;
	return WEIR_OK;
}

/* Returns true if no input is connected, so that no message brings a stream. */
static bool is_source(const struct wr_plan_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++)
		if (entity->inputs[i].connections)
			return false;
	return true;
}

/* A warning only: the results are right, but it is slow. */
static void check_source_stream(struct wr_build *build, size_t index)
{
	const struct wr_plan_entity *entity = &build->plan->entities[index];
	struct wr_at all = {NULL, "entities", 0}, at = {&all, NULL, index};
	const struct wr_value *off;

	if (!entity->kind || !(entity->kind->flags & WEIR_OPERATOR_STREAM) || !is_source(entity))
		return;
	off = wr_value_find(&wr_value_at(build->entities, index)->value, "default_stream_pool");
	if (off && entity->stream_pool == WR_NO_POOL && !entity->use_default_stream)
		wr_report(&build->reports, WR_W_NO_STREAM, &(struct wr_at){&at, "default_stream_pool", 0},
			  off->place,
			  "a source without a stream pool works on the default stream, serialized with all "
			  "other work there: remove this, or set \"use_default_stream\" if that is intended");
}

/* A warning only: what happens when a pool is exhausted is defined (T7), but rarely intended. */
static void check_few_streams(struct wr_build *build, const struct wr_resource *resource,
			      const struct wr_at *at)
{
	const struct wr_plan_stream_pool *pool = &build->plan->stream_pools[resource->index];
	const struct wr_value *max = wr_value_find(&resource->member->value, "max_size");

	if (!max || !pool->max_size || resource->workers <= pool->max_size)
		return;
	wr_report(
		&build->reports, WR_W_FEW_STREAMS, &(struct wr_at){at, "max_size", 0}, max->place,
		"pool '%s' has %u stream%s for %zu entities%s: %zu of them will work on the streams of their "
		"inputs or, without any, on the default stream, one after the other; raise max_size",
		wr_shown(resource->member->key).text, pool->max_size, pool->max_size == 1 ? "" : "s",
		resource->workers, resource->several ? " and instances" : "",
		resource->workers - pool->max_size);
}

void wr_build_check_resources(struct wr_build *build)
{
	struct wr_at all = {NULL, "resources", 0};

	for (size_t i = 0; i < build->resource_count; i++) {
		const struct wr_resource *resource = &build->resources[i];
		struct wr_at at = {&all, resource->member->key, 0};

		if (build->entities && !build->unresolved_resource && !resource->used &&
		    resource->type != WR_RESOURCE_UNKNOWN)
			wr_report(&build->reports, WR_W_UNUSED_RESOURCE, &at, resource->member->place,
				  "no entity uses '%s': name it in \"resources\" of an entity, or remove it",
				  wr_shown(resource->member->key).text);
		if (resource->type == WR_STREAM_POOL)
			check_few_streams(build, resource, &at);
	}
	for (size_t i = 0; i < build->plan->entity_count; i++)
		check_source_stream(build, i);
}

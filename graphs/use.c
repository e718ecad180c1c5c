/* Gives each entity its stream pool, and warns about odd uses of resources. */
#include "graphs/build.h"
#include "base/text.h"

#define ANY_TYPE (1u << WR_STREAM_POOL | 1u << WR_GREEN_CONTEXT_POOL | 1u << WR_GREEN_CONTEXT)

/* Returns the resource that the list names, or NULL. Each gives a stream pool, so there must be only one. */
static struct wr_resource *read_resource_list(struct wr_build *build, const struct wr_value *list,
					      const struct wr_at *up)
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
		if (!here || !first)
			first = first ? first : here;
		else if (here == first)
			wr_report(&build->reports, WR_W_DUPLICATE_NAME, &at, name->place,
				  "'%s' is listed twice: remove one of them", wr_shown(name->string).text);
		else
			wr_report(
				&build->reports, WR_W_TWO_POOLS, &at, name->place,
				"'%s' and '%s' both give a stream pool, but an entity has one: remove one of "
				"them",
				wr_shown(name->string).text, wr_shown(first->member->key).text);
	}
	return first;
}

weir_status wr_build_use(struct wr_build *build, struct wr_plan_entity *entity, const struct wr_use *use,
			 const struct wr_at *at)
{
	struct wr_resource *resource = read_resource_list(build, use->resources, at);
	bool wants_default = !use->default_stream_pool || use->default_stream_pool->boolean;
	weir_status status;

	entity->stream_pool = WR_NO_POOL;
	entity->use_default_stream =
		use->use_default_stream ? use->use_default_stream->boolean : build->use_default_stream;
	if (!resource && !wants_default)
		return WEIR_OK;
	if (!resource)
		resource = build->default_resource;
	status = resource ? wr_resource_pool(build, resource, &entity->stream_pool)
			  : wr_default_pool(build, &entity->stream_pool);
	if (status)
		return status;
	entity->device = build->plan->stream_pools[entity->stream_pool].device;
	build->plan->stream_pools[entity->stream_pool].users++;
	if (!resource)
		return WEIR_OK;
	resource->used = true;
	resource->workers +=
		entity->kind && entity->kind->flags & WEIR_OPERATOR_STREAM && !entity->use_default_stream;
	return WEIR_OK;
}

static void check_unused(struct wr_build *build, const struct wr_resource *resource, const struct wr_at *at)
{
	if (!resource->used && resource->type != WR_RESOURCE_UNKNOWN)
		wr_report(&build->reports, WR_W_UNUSED_RESOURCE, at, resource->member->place,
			  "no entity uses '%s': name it in \"resources\" of an entity, or remove it",
			  wr_shown(resource->member->key).text);
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
	wr_report(&build->reports, WR_W_FEW_STREAMS, &(struct wr_at){at, "max_size", 0}, max->place,
		  "pool '%s' has %u stream%s for %zu entities: %zu of them will work on the streams of their "
		  "inputs or, without any, on the default stream, one after the other; raise max_size",
		  wr_shown(resource->member->key).text, pool->max_size, pool->max_size == 1 ? "" : "s",
		  resource->workers, resource->workers - pool->max_size);
}

void wr_build_check_resources(struct wr_build *build)
{
	struct wr_at all = {NULL, "resources", 0};

	for (size_t i = 0; i < build->resource_count; i++) {
		const struct wr_resource *resource = &build->resources[i];
		struct wr_at at = {&all, resource->member->key, 0};

		if (build->entities && !build->unresolved_resource)
			check_unused(build, resource, &at);
		if (resource->type == WR_STREAM_POOL)
			check_few_streams(build, resource, &at);
	}
	for (size_t i = 0; i < build->plan->entity_count; i++)
		check_source_stream(build, i);
}

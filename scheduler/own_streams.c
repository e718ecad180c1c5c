#include "scheduler/own_streams.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "scheduler/graph.h"

static weir_status make_room_for_stream(struct wr_own_streams *own)
{
	return wr_grow(&own->items, &own->room, own->count + 1, sizeof *own->items);
}

/* The caller has made room. */
static size_t own_add(struct wr_own_streams *own, weir_stream *stream, uint64_t of)
{
	own->items[own->count] = (struct wr_own_stream){
		.stream = stream,
		.of = of,
		.last = {weir_stream_id(stream), wr_stream_recorded(stream)},
	};
	return own->count++;
}

void wr_own_set_internal(weir_entity *entity, size_t place, bool for_run, bool carried)
{
	struct wr_own_streams *own = &entity->own;

	own->current = place + 1;
	own->for_run = for_run;
	own->carried = carried;
	entity->stream = own->items[place].stream;
}

static weir_status own_take_from_pool(weir_entity *entity, struct wr_stream_pool *pool, size_t *out)
{
	weir_stream *stream;
	weir_status status = make_room_for_stream(&entity->own);

	if (!status)
		status = wr_stream_pool_take(pool, entity->plan->name, &stream);
	if (!status)
		*out = own_add(&entity->own, stream, 0);
	return status;
}

/* A cheap test: an entity that got no stream comes here in every tick. */
static bool pool_exhausted(const weir_entity *entity, const struct wr_stream_pool *pool)
{
	uint32_t max = entity->graph->plan->stream_pools[entity->plan->stream_pool].max_size;

	return max && wr_stream_pool_taken(pool) >= max;
}

weir_status wr_own_take(weir_entity *entity)
{
	struct wr_stream_pool *pool = wr_graph_stream_pool(entity);
	size_t place = 0;
	weir_status status;

	if (!entity->plan->use_default_stream && (!pool || pool_exhausted(entity, pool)))
		return WEIR_OK;
	if (entity->plan->use_default_stream)
		status = wr_own_default(entity, &place);
	else
		status = own_take_from_pool(entity, pool, &place);
	if (!status)
		wr_own_set_internal(entity, place, true, true);
	return status == WEIR_E_BUSY ? WEIR_OK : status;
}

weir_status wr_own_allocate(weir_entity *entity, const char *name, size_t *out)
{
	struct wr_stream_pool *pool = wr_graph_stream_pool(entity);
	char *copy;
	weir_status status;

	for (size_t i = 0; i < entity->own.count; i++) {
		if (entity->own.items[i].name && !strcmp(entity->own.items[i].name, name)) {
			*out = i;
			return WEIR_OK;
		}
	}
	if (!pool)
		return wr_fail(WEIR_E_UNSUPPORTED,
			       "%s: no stream for '%s': it has no stream pool: name one in its resources",
			       entity->plan->name, name);
	copy = wr_strdup(name);
	status = copy ? own_take_from_pool(entity, pool, out) : WEIR_E_NOMEM;
	if (status)
		wr_free(copy);
	else
		entity->own.items[*out].name = copy;
	if (status == WEIR_E_BUSY)
		return wr_fail(status, "%s: no stream for '%s': %s", entity->plan->name, name,
			       weir_last_error());
	return status;
}

weir_status wr_own_default(weir_entity *entity, size_t *out)
{
	struct wr_own_streams *own = &entity->own;
	const struct wr_plan_entity *plan = entity->plan;
	weir_stream *stream;
	weir_status status = WEIR_OK;

	if (!own->default_stream) {
		status = make_room_for_stream(own);
		if (!status)
			status = wr_stream_default(entity->graph->system, plan->device, plan->name, &stream);
		if (!status)
			own->default_stream = own_add(own, stream, 0) + 1;
	}
	if (!status)
		*out = own->default_stream - 1;
	return status;
}

/*
 * First by id, which is cheap. By native stream only when an id of another owner appears for the first time.
 */
static size_t own_find(struct wr_own_streams *own, uint64_t id, const weir_stream *stream)
{
	for (size_t i = 0; i < own->count; i++)
		if (own->items[i].of == id || own->items[i].last.stream == id)
			return i;
	for (size_t i = 0; i < own->count; i++) {
		if (weir_stream_same(own->items[i].stream, stream)) {
			own->items[i].of = id;
			return i;
		}
	}
	return WR_NO_OWN;
}

weir_status wr_own_share(weir_entity *entity, uint64_t id, size_t *out)
{
	struct wr_own_streams *own = &entity->own;
	const weir_stream *stream = wr_stream_find(entity->graph->system, id);
	size_t place = stream ? own_find(own, id, stream) : WR_NO_OWN;
	weir_status status = WEIR_OK;
	weir_stream *share;

	if (place == WR_NO_OWN) {
		status = make_room_for_stream(own);
		if (!status)
			status = wr_stream_share_of(entity->graph->system, id, entity->plan->name, &share);
		if (!status)
			place = own_add(own, share, id);
	}
	if (!status)
		*out = place;
	return status;
}

/* Enqueued work makes the stream dirty; if the operator then recorded a fence, the timeline value moved. */
bool wr_own_has_unfenced_work(const struct wr_own_stream *own)
{
	return own->used || wr_stream_dirty(own->stream) ||
	       wr_stream_recorded(own->stream) != own->last.point;
}

weir_status wr_own_record(struct wr_own_stream *own, weir_fence *out)
{
	bool unfenced = wr_own_has_unfenced_work(own);
	weir_status status = weir_stream_record(own->stream, out);

	if (!status && !unfenced)
		own->last = *out;
	return status;
}

bool wr_entity_idle(weir_entity *entity)
{
	for (size_t i = 0; i < entity->own.count; i++)
		if (!wr_stream_idle(entity->own.items[i].stream))
			return false;
	return true;
}

void wr_entity_close_streams(weir_entity *entity)
{
	struct wr_own_streams *own = &entity->own;

	for (size_t i = own->count; i--;) { /* shares before the streams that they share */
		wr_stream_close(own->items[i].stream);
		wr_free(own->items[i].name);
	}
	own->count = own->named = own->set_count = 0;
	own->current = own->default_stream = 0;
	own->before = (weir_fence){0, 0};
	own->for_run = own->carried = own->partly = own->entered = false;
	own->failure = WEIR_OK;
	entity->stream = NULL;
	entity->context.stream_used = false;
}

void wr_entity_select(weir_entity *entity)
{
	wr_system_select(entity->graph->system, entity->plan->device);
}

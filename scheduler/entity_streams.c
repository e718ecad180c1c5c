/*
 * The streams of an entity: taken from a pool, allocated by name or shared with another owner; released when
 * the operator has stopped. tick_fences.c fences them at the end of each tick that used them,
 * context_streams.c has the operator's calls.
 */
#include "scheduler/entity_streams.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "scheduler/gpu_time.h"
#include "scheduler/graph.h"
#include "trace/trace.h"

#define NO_STREAM SIZE_MAX

static weir_status make_room_for_stream(struct wr_entity_streams *streams)
{
	return wr_grow(&streams->items, &streams->room, streams->count + 1, sizeof *streams->items);
}

/* The caller has made room. */
static size_t streams_add(weir_entity *entity, weir_stream *stream, uint64_t shared_id)
{
	struct wr_entity_streams *streams = &entity->streams;

	streams->items[streams->count] = (struct wr_entity_stream){
		.stream = stream,
		.shared_id = shared_id,
		.last = {weir_stream_id(stream), wr_stream_submitted(stream)},
	};
	streams->count++;
	if (entity->gpu_time)
		wr_gpu_time_add_stream(entity, streams->count - 1);
	return streams->count - 1;
}

void wr_entity_set_current_stream(weir_entity *entity, size_t index, bool for_run, bool emits_carry)
{
	struct wr_entity_streams *streams = &entity->streams;

	streams->current = index + 1;
	streams->for_run = for_run;
	streams->emits_carry = emits_carry;
	entity->current_stream = streams->items[index].stream;
}

static weir_status take_from_pool(weir_entity *entity, struct wr_stream_pool *pool, size_t *out)
{
	weir_stream *stream;
	weir_status status = make_room_for_stream(&entity->streams);

	if (!status)
		status = wr_stream_pool_take(pool, entity->plan->name, &stream);
	if (!status)
		*out = streams_add(entity, stream, 0);
	return status;
}

/* The pool that the entity takes its streams from; NULL: none. */
static struct wr_stream_pool *pool_of(const weir_entity *entity)
{
	uint32_t pool = entity->plan->stream_pool;

	return pool == WR_NO_POOL ? NULL : entity->graph->pools[pool];
}

/* A cheap test: an entity that got no stream comes here in every tick. */
static bool pool_exhausted(const weir_entity *entity, const struct wr_stream_pool *pool)
{
	uint32_t max = entity->graph->plan->stream_pools[entity->plan->stream_pool].max_size;

	return max && wr_stream_pool_taken(pool) >= max;
}

weir_status wr_entity_take_stream(weir_entity *entity)
{
	struct wr_stream_pool *pool = pool_of(entity);
	size_t index = 0;
	weir_status status;

	if (entity->given_stream)
		status = wr_entity_share_stream(entity, weir_stream_id(entity->given_stream), &index);
	else if (!entity->plan->use_default_stream && (!pool || pool_exhausted(entity, pool)))
		return WEIR_OK;
	else if (entity->plan->use_default_stream)
		status = wr_entity_default_stream(entity, &index);
	else
		status = take_from_pool(entity, pool, &index);
	if (!status)
		wr_entity_set_current_stream(entity, index, true, true);
	return status == WEIR_E_BUSY ? WEIR_OK : status;
}

weir_status wr_entity_allocate_stream(weir_entity *entity, const char *name, size_t *out)
{
	struct wr_stream_pool *pool = pool_of(entity);
	char *copy;
	weir_status status;

	for (size_t i = 0; i < entity->streams.count; i++) {
		if (entity->streams.items[i].name && !strcmp(entity->streams.items[i].name, name)) {
			*out = i;
			return WEIR_OK;
		}
	}
	if (entity->context.capture)
		return wr_capture_postpone(entity->context.capture, "a named stream is new: it is allocated "
								    "outside of a capture");
	if (!pool)
		return wr_fail_in(WEIR_E_UNSUPPORTED, entity->plan->name,
				  "no stream for '%s': it has no stream pool: name one in its resources",
				  name);
	copy = wr_strdup(name);
	status = copy ? take_from_pool(entity, pool, out) : WEIR_E_NOMEM;
	if (status)
		wr_free(copy);
	else
		entity->streams.items[*out].name = copy;
	if (status == WEIR_E_BUSY)
		return wr_fail_in(status, entity->plan->name, "no stream for '%s': %s", name,
				  weir_last_error());
	return status;
}

weir_status wr_entity_default_stream(weir_entity *entity, size_t *out)
{
	struct wr_entity_streams *streams = &entity->streams;
	const struct wr_plan_entity *plan = entity->plan;
	weir_stream *stream;
	weir_status status = WEIR_OK;

	if (!streams->default_stream) {
		status = make_room_for_stream(streams);
		if (!status)
			status = wr_stream_default(entity->graph->system, plan->device, plan->name, &stream);
		if (!status)
			streams->default_stream = streams_add(entity, stream, 0) + 1;
	}
	if (!status)
		*out = streams->default_stream - 1;
	return status;
}

/*
 * First by id, which is cheap. By native stream only when an id of another owner appears for the first time.
 */
static size_t streams_find(struct wr_entity_streams *streams, uint64_t id, const weir_stream *stream)
{
	for (size_t i = 0; i < streams->count; i++)
		if (streams->items[i].shared_id == id || streams->items[i].last.stream == id)
			return i;
	for (size_t i = 0; i < streams->count; i++) {
		if (weir_stream_same(streams->items[i].stream, stream)) {
			streams->items[i].shared_id = id;
			return i;
		}
	}
	return NO_STREAM;
}

weir_status wr_entity_share_stream(weir_entity *entity, uint64_t id, size_t *out)
{
	struct wr_entity_streams *streams = &entity->streams;
	const weir_stream *stream = wr_stream_find(entity->graph->system, id);
	size_t index = stream ? streams_find(streams, id, stream) : NO_STREAM;
	weir_status status = WEIR_OK;
	weir_stream *share;

	if (index == NO_STREAM) {
		status = make_room_for_stream(streams);
		if (!status)
			status = wr_stream_share_of(entity->graph->system, id, entity->plan->name, &share);
		if (!status)
			index = streams_add(entity, share, id);
	}
	if (!status)
		*out = index;
	return status;
}

bool wr_entity_streams_idle(weir_entity *entity)
{
	for (size_t i = 0; i < entity->streams.count; i++)
		if (!wr_stream_idle(entity->streams.items[i].stream))
			return false;
	return true;
}

void wr_entity_close_streams(weir_entity *entity)
{
	struct wr_entity_streams *streams = &entity->streams;

	wr_replays_close(entity);
	wr_gpu_time_end_run(entity);
	for (size_t i = streams->count; i--;) { /* shares before the streams that they share */
		wr_scratch_free(&streams->items[i]);
		wr_stream_close(streams->items[i].stream);
		wr_free(streams->items[i].name);
	}
	streams->count = streams->named_count = streams->set_count = streams->early_count = 0;
	streams->current = streams->default_stream = 0;
	streams->last_end = (weir_fence){0, 0};
	streams->for_run = streams->emits_carry = streams->inputs_waited = streams->current_ordered = false;
	streams->scratch_used = streams->scratch_fixed = false;
	streams->failure = WEIR_OK;
	entity->current_stream = NULL;
	entity->context.stream_used = false;
}

void wr_entity_select_device(weir_entity *entity)
{
	wr_system_select(entity->graph->system, entity->plan->device);
}

/* --- names for the trace --- */

void wr_entity_trace_streams(weir_entity *entity, struct wr_trace *trace)
{
	struct wr_entity_streams *streams = &entity->streams;

	for (; streams->named_count < streams->count; streams->named_count++) {
		const struct wr_entity_stream *item = &streams->items[streams->named_count];
		char name[160]; /* the entity's; a stream that it allocated also gets its own name */

		wr_trace_uses(trace, entity->id, wr_stream_number(item->stream),
			      weir_stream_device(item->stream));
		if (item->shared_id || streams->named_count + 1 == streams->default_stream)
			continue;
		snprintf(name, sizeof name, "%s%s%s", entity->plan->name, item->name ? "." : "",
			 item->name ? item->name : "");
		wr_trace_stream(trace, wr_stream_handle(item->stream), name);
	}
}

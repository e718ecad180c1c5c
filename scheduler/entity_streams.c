/*
 * The streams of an entity: taken from a pool, allocated by name or shared with another owner; fenced at the
 * end of each tick that used them; released when the operator has stopped. context_streams.c has the
 * operator's calls.
 *
 * The end of a tick records one fence for each stream that the tick used and adds it to the use set of every
 * payload that the tick took, made or emitted (T4). Emitted messages carry the current stream, or the streams
 * set for their output; of the other streams they get the fences only (T7). If there is no memory for a
 * fence, the marks of the tick stay, and the next call does all of it again.
 */
#include "scheduler/entity_streams.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "scheduler/graph.h"
#include "trace/trace.h"

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

/*
 * Returns true if there may be work on it that `last` does not cover. Enqueued work makes the stream dirty;
 * if the operator then recorded a fence, the timeline value moved.
 */
static bool has_unfenced_work(const struct wr_own_stream *own)
{
	return own->used || wr_stream_dirty(own->stream) ||
	       wr_stream_recorded(own->stream) != own->last.value;
}

weir_status wr_own_record(struct wr_own_stream *own, weir_fence *out)
{
	bool unfenced = has_unfenced_work(own);
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

/* --- the end of a tick --- */

static size_t count_emitted(const weir_entity *entity, const weir_message *message)
{
	size_t count = 0;

	for (size_t i = 0; i < entity->output_count; i++)
		for (size_t k = 0; k < entity->outputs[i].emitted_count; k++)
			count += entity->outputs[i].emitted[k] == message;
	return count;
}

static size_t count_taken(const weir_entity *entity, const weir_message *message)
{
	size_t count = 0;

	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; k < entity->inputs[i].taken_count; k++)
			count += entity->inputs[i].taken[k].message == message;
	return count;
}

/* Returns true if the message was delivered before and has references beside those of this tick. */
static bool has_other_holders(const weir_entity *entity, const weir_message *message)
{
	return wr_message_delivered(message) &&
	       wr_message_references(message) > count_taken(entity, message) + count_emitted(entity, message);
}

/* Returns true if the stream at `place` was set for the output; *any: some stream was. */
static bool stream_was_set(const struct wr_own_streams *own, size_t output, size_t place, bool *any)
{
	*any = false;
	for (size_t i = 0; i < own->set_count; i++) {
		if (own->sets[i].output != output)
			continue;
		*any = true;
		if (own->sets[i].own == place)
			return true;
	}
	return false;
}

static enum wr_part default_part(const struct wr_own_streams *own, size_t place)
{
	return own->carried && place + 1 == own->current ? WR_CARRIED : WR_PRODUCED;
}

/*
 * A message that this entity made was produced by it, in this tick or before. A message that it passes on was
 * only read, unless no other reference exists: then it may have been written in place. For a message that was
 * only read the fence joins the use set alone, even if a stream was set: its other receivers must not wait
 * for this reading, nor find a fence for which no signal will wake them.
 */
static enum wr_part emitted_part(const weir_entity *entity, size_t output, size_t place,
				 const weir_message *message)
{
	const struct wr_own_streams *own = &entity->own;
	bool any, set = stream_was_set(own, output, place, &any);

	if (has_other_holders(entity, message) || (any && !set))
		return WR_USED;
	return set ? WR_CARRIED : default_part(own, place);
}

static weir_status fence_emitted(weir_entity *entity, size_t place, weir_fence fence)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < entity->output_count; i++) {
		for (size_t k = 0; !status && k < entity->outputs[i].emitted_count; k++) {
			weir_message *message = entity->outputs[i].emitted[k];
			status =
				wr_message_add_fence(message, fence, emitted_part(entity, i, place, message));
		}
	}
	return status;
}

/* A message made and kept may be emitted by a later tick, which does not know of the work of this one. */
static enum wr_part kept_part(const weir_entity *entity, size_t place, const weir_message *made)
{
	return count_emitted(entity, made) ? WR_USED : default_part(&entity->own, place);
}

static weir_status fence_payloads(weir_entity *entity, size_t place, weir_fence fence)
{
	weir_message **made = entity->context.made;
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < entity->input_count; i++)
		for (size_t k = 0; !status && k < entity->inputs[i].taken_count; k++)
			status = wr_message_add_fence(entity->inputs[i].taken[k].message, fence, WR_USED);
	for (size_t i = 0; !status && i < entity->context.made_count; i++)
		status = wr_message_add_fence(made[i], fence, kept_part(entity, place, made[i]));
	return status ? status : fence_emitted(entity, place, fence);
}

/* wr_stream_begin_tick: from here the stream's live reference keeps the run open, no longer the worker's
 * alone. */
static weir_status fence_stream(weir_entity *entity, size_t place)
{
	struct wr_own_stream *own = &entity->own.items[place];
	weir_status status;

	own->ended = false;
	if (!has_unfenced_work(own))
		return WEIR_OK;
	own->used = true; /* so that a failed call is repeated */
	wr_stream_begin_tick(own->stream);
	status = weir_stream_record(own->stream, &own->last);
	own->ended = !status;
	return status ? status : fence_payloads(entity, place, own->last);
}

static void end_tick(weir_entity *entity)
{
	struct wr_own_streams *own = &entity->own;

	if (own->current)
		own->before = own->items[own->current - 1].last;
	for (size_t i = 0; i < own->count; i++)
		own->items[i].used = false;
	if (!own->for_run) {
		own->current = 0;
		entity->stream = NULL;
	}
	for (size_t i = 0; own->partly && i < entity->input_count; i++)
		entity->inputs[i].waited = false;
	own->partly = own->entered = false;
	own->set_count = 0;
	entity->context.stream_used = false;
}

weir_status wr_entity_fence(weir_entity *entity)
{
	weir_status status = WEIR_OK;
	bool again = false;

	for (size_t i = 0; i < entity->own.count; i++) {
		weir_status one = fence_stream(entity, i);
		again |= one == WEIR_E_NOMEM;
		status = status ? status : one;
	}
	if (again)
		return WEIR_E_NOMEM;
	end_tick(entity);
	status = status ? status : entity->own.failure;
	entity->own.failure = WEIR_OK;
	return status;
}

weir_stream *wr_entity_stream_of(weir_entity *entity, weir_fence fence)
{
	for (size_t i = 0; i < entity->own.count; i++) {
		const struct wr_own_stream *own = &entity->own.items[i];
		if (own->ended && own->last.stream == fence.stream && own->last.value == fence.value)
			return own->stream;
	}
	return NULL;
}

/* --- names for the trace --- */

/* The entity's current stream gets the entity's name; a stream that it allocated also gets its own name. */
static void trace_stream(struct wr_trace *trace, const weir_entity *entity, const struct wr_own_stream *own)
{
	char name[160];

	snprintf(name, sizeof name, "%s%s%s", entity->plan->name, own->name ? "." : "",
		 own->name ? own->name : "");
	wr_trace_stream(trace, wr_stream_handle(own->stream), name);
}

void wr_entity_trace_streams(weir_entity *entity, struct wr_trace *trace)
{
	struct wr_own_streams *own = &entity->own;

	for (; own->named < own->count; own->named++)
		if (!own->items[own->named].of && own->named + 1 != own->default_stream)
			trace_stream(trace, entity, &own->items[own->named]);
}

/*
 * The end of a tick: records one fence for each stream that the tick used and adds it to the use set of every
 * payload that the tick took, made or emitted (T4). Emitted messages carry the internal stream, or the
 * streams set for their output; of the other streams they get the fences only (T7).
 *
 * If there is no memory for a fence, the marks of the tick stay, and the next call does all of it again.
 */
#include "base/log.h"
#include "base/memory.h"
#include "scheduler/graph.h"

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

/* wr_stream_begin: from here the stream's live reference keeps the run open, no longer the worker's alone. */
static weir_status fence_stream(weir_entity *entity, size_t place)
{
	struct wr_own_stream *own = &entity->own.items[place];
	weir_status status;

	own->ended = false;
	if (!wr_own_has_unfenced_work(own))
		return WEIR_OK;
	own->used = true; /* so that a failed call is repeated */
	wr_stream_begin(own->stream);
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
	/* Before delivery, so that a single receiver is the only holder. */
	wr_context_release_made(&entity->context);
	status = status ? status : entity->own.failure;
	entity->own.failure = WEIR_OK;
	return status;
}

weir_stream *wr_entity_stream_of(weir_entity *entity, weir_fence fence)
{
	for (size_t i = 0; i < entity->own.count; i++) {
		const struct wr_own_stream *own = &entity->own.items[i];
		if (own->ended && own->last.stream == fence.stream && own->last.point == fence.point)
			return own->stream;
	}
	return NULL;
}

/*
 * Without the fence it is unknown when the device is done with the payloads. So they are kept and the run
 * ends; the fence is tried again at the next stop function or run, at the latest when the graph is destroyed.
 */
weir_status wr_entity_settle(weir_entity *entity)
{
	weir_status status = wr_entity_fence(entity);

	if (status == WEIR_E_NOMEM) {
		if (!entity->fences_pending)
			wr_log(WEIR_LOG_WARN,
			       "%s: no memory for a fence: the messages of its last tick "
			       "are kept",
			       entity->plan->name);
		entity->fences_pending = true;
		return status;
	}
	entity->fences_pending = false;
	wr_entity_discard(entity);
	wr_entity_release(entity);
	return status;
}

/* --- dropping the messages of a tick --- */

void wr_context_release_made(weir_context *context)
{
	for (size_t i = 0; i < context->made_count; i++)
		weir_message_unref(context->made[i]);
	context->made_count = 0;
}

void wr_entity_release(weir_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++) {
		struct wr_input *input = &entity->inputs[i];
		for (size_t k = 0; k < input->taken_count; k++)
			weir_message_unref(input->taken[k].message);
		input->taken_count = 0;
	}
	if (entity->context.made_count)
		wr_context_release_made(&entity->context);
}

void wr_entity_discard(weir_entity *entity)
{
	for (size_t i = 0; i < entity->output_count; i++) {
		for (size_t k = 0; k < entity->outputs[i].emitted_count; k++)
			weir_message_unref(entity->outputs[i].emitted[k]);
		entity->outputs[i].emitted_count = 0;
	}
}

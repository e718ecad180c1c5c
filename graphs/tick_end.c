/*
 * What a tick did on the device is fenced when it ends: one fence for each stream that was used, in the use
 * set of every payload that the tick took, made or emitted (T4). What is emitted carries the internal
 * stream, or those that were set for its output; of the other streams of the tick only the fences go with it (T7).
 *
 * Without memory for a fence all of it is to be done again: the marks of the tick stay until it was.
 */
#include "base/log.h"
#include "base/memory.h"
#include "graphs/graph.h"

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

/* Others than this tick: it was delivered before, by whomever, and has more holders than the tick itself. */
static bool others_hold(const weir_entity *entity, const weir_message *message)
{
	return wr_message_out(message) &&
	       wr_message_references(message) > count_taken(entity, message) + count_emitted(entity, message);
}

/* Whether a stream was set for the output, and whether this one was. */
static bool was_set(const struct wr_own_streams *own, size_t output, size_t place, bool *any)
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

static enum wr_part part_by_itself(const struct wr_own_streams *own, size_t place)
{
	return own->carried && place + 1 == own->current ? WR_CARRIED : WR_PRODUCED;
}

/*
 * A message that was made here was produced here, in this tick or before. One that is passed on was only
 * read, unless nobody else holds it (then it may have been written in place): its other receivers must not
 * wait for our reading, nor find a fence of which no signal will tell them, whatever was set.
 */
static enum wr_part part_of(const weir_entity *entity, size_t output, size_t place, const weir_message *message)
{
	const struct wr_own_streams *own = &entity->own;
	bool any, set = was_set(own, output, place, &any);

	if (others_hold(entity, message) || (any && !set))
		return WR_USED;
	return set ? WR_CARRIED : part_by_itself(own, place);
}

static weir_status fence_emitted(weir_entity *entity, size_t place, weir_fence fence)
{
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < entity->output_count; i++) {
		for (size_t k = 0; !status && k < entity->outputs[i].emitted_count; k++) {
			weir_message *message = entity->outputs[i].emitted[k];
			status = wr_message_add_fence(message, fence, part_of(entity, i, place, message));
		}
	}
	return status;
}

/* What was made and is kept may be emitted by a later tick, which knows nothing of this one's work. */
static enum wr_part part_later(const weir_entity *entity, size_t place, const weir_message *made)
{
	return count_emitted(entity, made) ? WR_USED : part_by_itself(&entity->own, place);
}

static weir_status fence_payloads(weir_entity *entity, size_t place, weir_fence fence)
{
	weir_message **made = entity->context.made;
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < entity->input_count; i++)
		for (size_t k = 0; !status && k < entity->inputs[i].taken_count; k++)
			status = wr_message_add_fence(entity->inputs[i].taken[k].message, fence, WR_USED);
	for (size_t i = 0; !status && i < entity->context.made_count; i++)
		status = wr_message_add_fence(made[i], fence, part_later(entity, place, made[i]));
	return status ? status : fence_emitted(entity, place, fence);
}

/* Up to here the worker's own live reference held the run; from here the stream's does. */
static weir_status end_stream(weir_entity *entity, size_t place)
{
	struct wr_own_stream *own = &entity->own.items[place];
	weir_status status;

	own->ended = false;
	if (!wr_own_touched(own))
		return WEIR_OK;
	own->used = true;	/* also next time, if this one fails */
	wr_stream_begin(own->stream);
	status = weir_stream_record(own->stream, &own->last);
	own->ended = !status;
	return status ? status : fence_payloads(entity, place, own->last);
}

static void forget_tick(weir_entity *entity)
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
		weir_status one = end_stream(entity, i);
		again |= one == WEIR_E_NOMEM;
		status = status ? status : one;
	}
	if (again)
		return WEIR_E_NOMEM;
	forget_tick(entity);
	/* Before delivery: an only receiver is the only holder. */
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
 * Without memory for the fence nobody would know when the device is done with the payloads. They stay where
 * they are, and the run ends; the next time (a stop function, another run) the fence is tried again, at the
 * latest when the graph goes.
 */
weir_status wr_entity_settle(weir_entity *entity)
{
	weir_status status = wr_entity_fence(entity);

	if (status == WEIR_E_NOMEM) {
		if (!entity->fences_pending)
			wr_log(WEIR_LOG_WARN, "%s: no memory to note what its stream still uses; "
			       "its messages are kept", entity->plan->name);
		entity->fences_pending = true;
		return status;
	}
	entity->fences_pending = false;
	wr_entity_discard(entity);
	wr_entity_release(entity);
	return status;
}

/* --- what a tick held is let go --- */

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

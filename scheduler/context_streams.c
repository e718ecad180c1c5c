/*
 * The streams of an operator: which stream is the internal one of a tick, what it waits for, and the calls
 * that return other streams. Expensive steps are done at most once in a tick. Every stream that was returned
 * is fenced when the tick ends (tick_fences.c).
 */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/struct.h"
#include "scheduler/graph.h"
#include "scheduler/tick_fences.h"

static const char *entity_name(const weir_context *context)
{
	return context->entity->plan->name;
}

typedef size_t fence_getter(const weir_message *message, weir_fence *out, size_t room);

/* Copies fences of a message into entity->fetched: all, or those whose streams are carried. */
static weir_status fences_fetch(weir_entity *entity, const weir_message *message, fence_getter *get,
				size_t *count)
{
	*count = get(message, entity->fetched, entity->fetched_room);
	if (*count <= entity->fetched_room)
		return WEIR_OK;
	if (wr_grow(&entity->fetched, &entity->fetched_room, *count, sizeof *entity->fetched))
		return WEIR_E_NOMEM;
	*count = get(message, entity->fetched, entity->fetched_room);
	if (*count > entity->fetched_room) /* other holders just added some: not received here */
		*count = entity->fetched_room;
	return WEIR_OK;
}

/* --- the choice of the current stream --- */

/*
 * *out: id of the first stream on the entity's device that a message of this input carries; unchanged if
 * none.
 */
static weir_status find_carried_in(weir_entity *entity, size_t input, uint64_t *out)
{
	struct wr_system *system = entity->graph->system;
	size_t n = 0;

	for (size_t k = 0; k < entity->inputs[input].taken_count; k++) {
		const weir_message *message = entity->inputs[input].taken[k];
		weir_status status = fences_fetch(entity, message, wr_message_carried, &n);
		if (status)
			return status;
		for (size_t f = 0; f < n; f++) {
			uint64_t id = entity->fetched[f].stream;
			const weir_stream *stream = wr_stream_find(system, id);
			if (stream && weir_stream_device(stream) == entity->plan->device) {
				*out = id;
				return WEIR_OK;
			}
		}
	}
	return WEIR_OK;
}

/*
 * Input `first`, then the others: the inputs received next wait on the same stream. *out is 0 if there is
 * none.
 */
static weir_status find_carried(weir_entity *entity, size_t first, uint64_t *out)
{
	weir_status status = WEIR_OK;

	*out = 0;
	if (first < entity->input_count)
		status = find_carried_in(entity, first, out);
	for (size_t i = 0; !status && !*out && i < entity->input_count; i++)
		if (i != first)
			status = find_carried_in(entity, i, out);
	return status;
}

/*
 * The current stream for this tick only: one that a message carries, or, if there is none, the device's
 * default stream, which emitted messages do not carry.
 */
static weir_status use_carried_or_default(weir_entity *entity, size_t first)
{
	uint64_t found;
	size_t index = 0;
	weir_status status = find_carried(entity, first, &found);

	if (!status)
		status = found ? wr_entity_share_stream(entity, found, &index) : WEIR_E_CLOSED;
	if (!status)
		wr_entity_set_current_stream(entity, index, false, true);
	if (status != WEIR_E_CLOSED)
		return status;
	status = wr_entity_default_stream(entity, &index);
	if (!status)
		wr_entity_set_current_stream(entity, index, false, false);
	return status;
}

static weir_status choose_current(weir_entity *entity, size_t first, bool allocate)
{
	weir_status status = WEIR_OK;

	if (entity->current_stream)
		return WEIR_OK;
	if (allocate || entity->plan->use_default_stream || entity->given_stream)
		status = wr_entity_take_stream(entity);
	if (!status && !entity->current_stream)
		status = use_carried_or_default(entity, first);
	return status;
}

/*
 * Keeps the ticks of an entity in order on the device, also if the current stream differs from the last
 * tick's.
 */
static weir_status begin_current(weir_entity *entity)
{
	struct wr_entity_stream *current = &entity->streams.items[entity->streams.current - 1];
	weir_fence before = entity->streams.last_end;
	weir_status status = WEIR_OK;

	if (entity->streams.current_ordered)
		return WEIR_OK;
	wr_stream_begin_tick(entity->current_stream);
	current->used = true;
	if (before.stream != current->last.stream)
		status = weir_stream_wait(entity->current_stream, before);
	entity->streams.current_ordered = !status;
	return status;
}

/* --- what the current stream waits for --- */

/*
 * Makes the current stream wait for the producers of the input (T3). Waits that are already ordered cost
 * nothing.
 */
static weir_status stream_wait_for_input(weir_entity *entity, size_t input)
{
	struct wr_input *port = &entity->inputs[input];
	weir_status status = WEIR_OK;
	size_t n;

	for (size_t k = 0; !status && k < port->taken_count; k++) {
		if (!wr_message_has_fences(port->taken[k]))
			continue;
		status = fences_fetch(entity, port->taken[k], wr_message_fences, &n);
		for (size_t f = 0; !status && f < n; f++)
			status = weir_stream_wait(entity->current_stream, entity->fetched[f]);
	}
	return status;
}

static inline weir_status use_first_stream(weir_context *context)
{
	weir_entity *entity = context->entity;
	weir_status status = choose_current(entity, 0, true);

	if (status)
		return status;
	status = begin_current(entity);
	for (size_t i = 0; !status && i < entity->input_count; i++)
		if (!entity->inputs[i].waited)
			status = stream_wait_for_input(entity, i);
	context->stream_used = !status;
	return status;
}

/* Out of line: every call of a tick but the first is a load. */
__attribute__((noinline)) static weir_status first_stream(weir_context *context, weir_stream **out)
{
	weir_status status = use_first_stream(context);

	if (!status)
		*out = context->entity->current_stream;
	return status;
}

weir_status weir_context_stream(weir_context *context, weir_stream **out)
{
	if (!context->stream_used)
		return first_stream(context, out);
	*out = context->entity->current_stream;
	return WEIR_OK;
}

static weir_status input_wait_once(weir_context *context, unsigned input)
{
	weir_entity *entity = context->entity;
	weir_status status;

	if (context->stream_used || entity->inputs[input].waited)
		return WEIR_OK;
	status = stream_wait_for_input(entity, input);
	entity->inputs[input].waited = !status;
	entity->streams.inputs_waited = true;
	return status;
}

/* Makes stream `after` wait for the work that is now on stream `before`. */
static weir_status order_streams(weir_entity *entity, size_t before, size_t after)
{
	struct wr_entity_stream *items = entity->streams.items;
	weir_fence fence;
	weir_status status;

	if (before == after || weir_stream_same(items[before].stream, items[after].stream))
		return WEIR_OK;
	status = wr_entity_stream_record(&items[before], &fence);
	return status ? status : weir_stream_wait(items[after].stream, fence);
}

/* For callers of code that uses only the default stream; so that stream is fenced at the end of the tick. */
static weir_status order_default_after_current(weir_entity *entity)
{
	size_t index = 0;
	weir_status status = wr_entity_default_stream(entity, &index);

	if (!status)
		entity->streams.items[index].used = true;
	return status ? status : order_streams(entity, entity->streams.current - 1, index);
}

/* The work would be replayed for messages that come with other streams. */
static weir_status refuse_captured(const weir_context *context)
{
	return wr_error_blame(wr_capture_refuse(context->capture, "enqueue has its stream and the entity's "
								  "named ones alone"),
			      entity_name(context));
}

static weir_status refuse_receive(const weir_context *context, unsigned input)
{
	const char *name = entity_name(context);

	if (context->capture)
		return refuse_captured(context);
	if (!context->computing)
		return wr_fail_in(WEIR_E_INVALID, name,
				  "streams are received in compute: "
				  "its messages are taken when it begins");
	return wr_fail_in(WEIR_E_INVALID, name, "a stream is received on input %u of %zu", input,
			  context->entity->input_count);
}

weir_status weir_context_receive_stream(weir_context *context, unsigned input, unsigned flags,
					weir_stream **out)
{
	weir_entity *entity = context->entity;
	weir_status status = wr_flags_check("weir_context_receive_stream", flags,
					    WEIR_RECEIVE_TAKE_NONE | WEIR_RECEIVE_SYNC_DEFAULT);

	if (status)
		return status;

	if (!context->computing || input >= entity->input_count)
		return refuse_receive(context, input);
	status = choose_current(entity, input, !(flags & WEIR_RECEIVE_TAKE_NONE));
	if (status)
		return status;
	status = begin_current(entity);
	if (!status)
		status = input_wait_once(context, input);
	if (!status && flags & WEIR_RECEIVE_SYNC_DEFAULT)
		status = order_default_after_current(entity);
	if (status)
		return status;
	wr_entity_select_device(entity);
	*out = entity->current_stream;
	return WEIR_OK;
}

/* --- other streams --- */

static const weir_stream *fetched_stream(const weir_entity *entity, size_t f)
{
	return wr_stream_find(entity->graph->system, entity->fetched[f].stream);
}

/* Two shares of one native stream count as one stream. */
static bool fetched_stream_is_listed(const weir_entity *entity, size_t f)
{
	const weir_stream *stream = fetched_stream(entity, f);

	for (size_t e = 0; e < f; e++) {
		const weir_stream *other = fetched_stream(entity, e);
		if (other && weir_stream_same(other, stream))
			return true;
	}
	return false;
}

/*
 * *out: the entity's own stream for the fetched fence f. Returns false if the stream was recycled, so that
 * its work is complete, or on failure, which the end of the tick returns.
 */
static bool receive_carried(weir_entity *entity, size_t f, weir_stream **out)
{
	size_t index = 0;
	weir_status status = wr_entity_share_stream(entity, entity->fetched[f].stream, &index);

	if (!status)
		*out = entity->streams.items[index].stream;
	else if (status != WEIR_E_CLOSED)
		entity->streams.failure = status;
	return !status;
}

size_t weir_context_receive_streams(weir_context *context, unsigned input, size_t i, size_t room,
				    weir_stream **out)
{
	weir_entity *entity = context->entity;
	weir_message *message = context->computing ? weir_context_message(context, input, i) : NULL;
	size_t n = 0, count = 0;

	if (context->capture)
		(void)refuse_captured(context);
	if (!message || !wr_message_has_fences(message))
		return 0;
	if (fences_fetch(entity, message, wr_message_carried, &n)) {
		entity->streams.failure = WEIR_E_NOMEM;
		return 0;
	}
	for (size_t f = 0; f < n; f++)
		if (fetched_stream(entity, f) && !fetched_stream_is_listed(entity, f))
			count += count >= room || receive_carried(entity, f, &out[count]);
	return count;
}

weir_status weir_context_allocate_stream(weir_context *context, const char *name, weir_stream **out)
{
	weir_entity *entity = context->entity;
	size_t index = 0;
	weir_status status;

	if (!name || !*name)
		return wr_fail_in(WEIR_E_INVALID, entity_name(context),
				  "a stream is allocated by a name: it must not be empty");
	status = wr_entity_allocate_stream(entity, name, &index);
	if (status)
		return status;
	entity->streams.items[index].used = true; /* uses of its native handle cannot be seen */
	*out = entity->streams.items[index].stream;
	return WEIR_OK;
}

weir_status weir_context_default_stream(weir_context *context, weir_stream **out)
{
	weir_entity *entity = context->entity;
	size_t index = 0;
	weir_status status =
		context->capture ? refuse_captured(context) : wr_entity_default_stream(entity, &index);

	if (status)
		return status;
	entity->streams.items[index].used = true;
	*out = entity->streams.items[index].stream;
	return WEIR_OK;
}

/* Finds the stream among the entity's own; any other, such as a wrapped one, is shared first. */
static weir_status find_or_share(weir_context *context, weir_stream *stream, size_t *out)
{
	weir_entity *entity = context->entity;

	if (!stream)
		return wr_fail_in(WEIR_E_INVALID, entity_name(context), "the stream is NULL");
	if (wr_stream_find(entity->graph->system, weir_stream_id(stream)) != stream)
		return wr_fail_in(WEIR_E_INVALID, entity_name(context),
				  "the stream belongs to another graph, or was released");
	return wr_entity_share_stream(entity, weir_stream_id(stream), out);
}

static weir_status add_set_stream(struct wr_entity_streams *streams, size_t output, size_t index)
{
	weir_status status;

	for (size_t i = 0; i < streams->set_count; i++)
		if (streams->sets[i].output == output && streams->sets[i].index == index)
			return WEIR_OK;
	status = wr_grow(&streams->sets, &streams->set_room, streams->set_count + 1, sizeof *streams->sets);
	if (!status)
		streams->sets[streams->set_count++] = (struct wr_output_stream){output, index};
	return status;
}

weir_status weir_context_set_stream(weir_context *context, unsigned output, weir_stream *stream)
{
	weir_entity *entity = context->entity;
	const char *name = entity_name(context);
	size_t index = 0;
	weir_status status;

	if (context->capture)
		return refuse_captured(context);
	if (!context->computing)
		return wr_fail_in(WEIR_E_INVALID, name,
				  "a stream is set in compute: "
				  "it is about the messages of one tick");
	if (output >= entity->output_count)
		return wr_fail_in(WEIR_E_INVALID, name, "a stream is set on output %u of %zu", output,
				  entity->output_count);
	status = find_or_share(context, stream, &index);
	if (!status)
		status = add_set_stream(&entity->streams, output, index);
	if (!status)
		entity->streams.items[index].used = true;
	return status;
}

/* In a capture there are no fences. */
static weir_status order_captured(weir_context *context, weir_stream *const *streams, size_t count,
				  weir_stream *target)
{
	weir_status status = target ? WEIR_OK : refuse_captured(context);

	for (size_t i = 0; !status && i < count; i++)
		if (streams[i] && streams[i] != target)
			status = wr_capture_order(context->entity->context.capture, streams[i], target);
	return status;
}

weir_status weir_context_synchronize_streams(weir_context *context, weir_stream *const *streams, size_t count,
					     weir_stream *target)
{
	size_t before = 0, after = 0;
	weir_status status;

	if (context->capture)
		return order_captured(context, streams, count, target);
	/* A stream that receive_streams could not give is missing here: target would not wait for it. */
	status = context->entity->streams.failure;
	if (!status)
		status = find_or_share(context, target, &after);
	for (size_t i = 0; !status && i < count; i++) {
		if (!streams[i] || streams[i] == target)
			continue;
		status = find_or_share(context, streams[i], &before);
		if (!status)
			status = order_streams(context->entity, before, after);
	}
	return status;
}

int weir_context_device(const weir_context *context)
{
	return context->entity->plan->device;
}

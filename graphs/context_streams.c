/*
 * The streams of an operator: which one is the internal one of a tick, what it waits for, and the calls
 * that give others. Everything that costs is done at most once in a tick; what was given is fenced when it
 * ends (graphs/tick_end.c).
 */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "graphs/graph.h"

static const char *name_of(const weir_context *context)
{
	return context->entity->plan->name;
}

typedef size_t fetch_fences(const weir_message *message, weir_fence *out, size_t room);

/* Fetches the fences of a message into the entity's scratch: all, or those whose streams travel. */
static weir_status fences_of(weir_entity *entity, const weir_message *message, fetch_fences *fetch,
			     size_t *count)
{
	*count = fetch(message, entity->scratch, entity->scratch_room);
	if (*count <= entity->scratch_room)
		return WEIR_OK;
	if (wr_grow(&entity->scratch, &entity->scratch_room, *count, sizeof *entity->scratch))
		return WEIR_E_NOMEM;
	*count = fetch(message, entity->scratch, entity->scratch_room);
	if (*count > entity->scratch_room)	/* others added some: theirs, not what this tick received */
		*count = entity->scratch_room;
	return WEIR_OK;
}

/* --- which is the internal one --- */

/* The first stream that a message here brings and that works where the entity does. 0: none does. */
static weir_status find_in(weir_entity *entity, size_t input, uint64_t *out)
{
	struct wr_system *system = entity->graph->system;
	size_t n = 0;

	for (size_t k = 0; k < entity->inputs[input].taken_count; k++) {
		const weir_message *message = entity->inputs[input].taken[k].message;
		weir_status status = fences_of(entity, message, wr_message_carried, &n);
		if (status)
			return status;
		for (size_t f = 0; f < n; f++) {
			uint64_t id = entity->scratch[f].stream;
			const weir_stream *stream = wr_stream_find(system, id);
			if (stream && weir_stream_device(stream) == entity->plan->device) {
				*out = id;
				return WEIR_OK;
			}
		}
	}
	return WEIR_OK;
}

/* The input that was asked first, then the others: whoever is asked next waits on the same stream. */
static weir_status find_any(weir_entity *entity, size_t first, uint64_t *out)
{
	weir_status status = WEIR_OK;

	*out = 0;
	if (first < entity->input_count)
		status = find_in(entity, first, out);
	for (size_t i = 0; !status && !*out && i < entity->input_count; i++)
		if (i != first)
			status = find_in(entity, i, out);
	return status;
}

/*
 * For this tick: a queue that brought a message, or, where none did, the device's default stream, which
 * nothing carries.
 */
static weir_status fall_back(weir_entity *entity, size_t first)
{
	uint64_t found;
	size_t own = 0;
	weir_status status = find_any(entity, first, &found);

	if (!status)
		status = found ? wr_own_share(entity, found, &own) : WEIR_E_CLOSED;
	if (!status)
		wr_own_choose(entity, own, false, true);
	if (status != WEIR_E_CLOSED)
		return status;
	status = wr_own_default(entity, &own);
	if (!status)
		wr_own_choose(entity, own, false, false);
	return status;
}

static weir_status choose(weir_entity *entity, size_t first, bool allocate)
{
	weir_status status = WEIR_OK;

	if (entity->stream)
		return WEIR_OK;
	if (allocate || entity->plan->use_default_stream)
		status = wr_own_take(entity);
	if (!status && !entity->stream)
		status = fall_back(entity, first);
	return status;
}

/*
 * The ticks of an entity are in order on the device, also when this one works on another stream than the
 * last one did.
 */
static weir_status use_internal(weir_entity *entity)
{
	struct wr_own_stream *internal = &entity->own.items[entity->own.current - 1];
	weir_fence before = entity->own.before;

	weir_status status = WEIR_OK;

	if (entity->own.entered)
		return WEIR_OK;
	wr_stream_begin(entity->stream);
	internal->used = true;
	if (before.stream != internal->last.stream)
		status = weir_stream_wait(entity->stream, before);
	entity->own.entered = !status;
	return status;
}

/* --- what it waits for --- */

/* The input's producers come first on the device (T3). Waits that are already ordered cost nothing. */
static weir_status wait_for_input(weir_entity *entity, size_t input)
{
	struct wr_input *port = &entity->inputs[input];
	weir_status status = WEIR_OK;
	size_t n;

	for (size_t k = 0; !status && k < port->taken_count; k++) {
		if (!wr_message_has_fences(port->taken[k].message))
			continue;
		status = fences_of(entity, port->taken[k].message, wr_message_fences, &n);
		for (size_t f = 0; !status && f < n; f++)
			status = weir_stream_wait(entity->stream, entity->scratch[f]);
	}
	return status;
}

/* Out of line: the second call of a tick, and every call but the first, is a load. */
__attribute__((noinline)) static weir_stream *first_use(weir_context *context)
{
	weir_entity *entity = context->entity;
	weir_status status = choose(entity, 0, true);

	if (status)
		return NULL;
	status = use_internal(entity);
	for (size_t i = 0; !status && i < entity->input_count; i++)
		if (!entity->inputs[i].waited)
			status = wait_for_input(entity, i);
	context->stream_used = !status;
	return status ? NULL : entity->stream;
}

weir_stream *weir_context_stream(weir_context *context)
{
	return context->stream_used ? context->entity->stream : first_use(context);
}

static weir_status wait_once(weir_context *context, unsigned input)
{
	weir_entity *entity = context->entity;
	weir_status status;

	if (context->stream_used || entity->inputs[input].waited)
		return WEIR_OK;
	status = wait_for_input(entity, input);
	entity->inputs[input].waited = !status;
	entity->own.partly = true;
	return status;
}

/* `after` comes after what is on the other now. */
static weir_status order(weir_entity *entity, size_t before, size_t after)
{
	struct wr_own_stream *items = entity->own.items;
	weir_fence fence;
	weir_status status;

	if (before == after || weir_stream_same(items[before].stream, items[after].stream))
		return WEIR_OK;
	status = wr_own_record(&items[before], &fence);
	return status ? status : weir_stream_wait(items[after].stream, fence);
}

/* Its caller may go on with what knows of no stream but that one: in this tick it is fenced, too. */
static weir_status have_default_wait(weir_entity *entity)
{
	size_t standard = 0;
	weir_status status = wr_own_default(entity, &standard);

	if (!status)
		entity->own.items[standard].used = true;
	return status ? status : order(entity, entity->own.current - 1, standard);
}

static weir_status refuse_input(const weir_context *context, unsigned input)
{
	const char *name = name_of(context);

	if (!context->computing)
		return wr_fail(WEIR_E_INVALID, "%s: streams are received in compute: "
			       "its messages are taken when it begins", name);
	return wr_fail(WEIR_E_INVALID, "%s: a stream is received on input %u of %zu", name, input,
		       context->entity->input_count);
}

weir_status weir_context_receive_stream(weir_context *context, unsigned input, bool allocate,
					bool sync_to_default, weir_stream **out)
{
	weir_entity *entity = context->entity;
	weir_status status;

	if (!context->computing || input >= entity->input_count)
		return refuse_input(context, input);
	status = choose(entity, input, allocate);
	if (status)
		return status;
	status = use_internal(entity);
	if (!status)
		status = wait_once(context, input);
	if (!status && sync_to_default)
		status = have_default_wait(entity);
	if (status)
		return status;
	wr_entity_select(entity);
	*out = entity->stream;
	return WEIR_OK;
}

/* --- the others --- */

static const weir_stream *carried(const weir_entity *entity, size_t f)
{
	return wr_stream_find(entity->graph->system, entity->scratch[f].stream);
}

/* Two owners of one queue are one stream. */
static bool is_listed(const weir_entity *entity, size_t f)
{
	const weir_stream *stream = carried(entity, f);

	for (size_t e = 0; e < f; e++) {
		const weir_stream *other = carried(entity, e);
		if (other && weir_stream_same(other, stream))
			return true;
	}
	return false;
}

/*
 * The stream of a fence in the entity's scratch. False: it was given on, so its work is complete, or the
 * tick fails when it ends.
 */
static bool receive_carried(weir_entity *entity, size_t f, weir_stream **out)
{
	size_t own = 0;
	weir_status status = wr_own_share(entity, entity->scratch[f].stream, &own);

	if (!status)
		*out = entity->own.items[own].stream;
	else if (status != WEIR_E_CLOSED)
		entity->own.failure = status;
	return !status;
}

size_t weir_context_receive_streams(weir_context *context, unsigned input, size_t i, weir_stream **out,
				    size_t room)
{
	weir_entity *entity = context->entity;
	weir_message *message = context->computing ? weir_context_message(context, input, i) : NULL;
	size_t n = 0, count = 0;

	if (!message || !wr_message_has_fences(message))
		return 0;
	if (fences_of(entity, message, wr_message_carried, &n)) {
		entity->own.failure = WEIR_E_NOMEM;
		return 0;
	}
	for (size_t f = 0; f < n; f++)
		if (carried(entity, f) && !is_listed(entity, f))
			count += count >= room || receive_carried(entity, f, &out[count]);
	return count;
}

weir_status weir_context_allocate_stream(weir_context *context, const char *name, weir_stream **out)
{
	weir_entity *entity = context->entity;
	size_t own = 0;
	weir_status status;

	if (!name || !*name)
		return wr_fail(WEIR_E_INVALID, "%s: a stream is allocated by a name of its own",
			       name_of(context));
	status = wr_own_allocate(entity, name, &own);
	if (status)
		return status;
	entity->own.items[own].used = true;	/* a native handle says nothing when it is used */
	*out = entity->own.items[own].stream;
	return WEIR_OK;
}

weir_stream *weir_context_default_stream(weir_context *context)
{
	weir_entity *entity = context->entity;
	size_t own = 0;

	if (wr_own_default(entity, &own))
		return NULL;
	entity->own.items[own].used = true;
	return entity->own.items[own].stream;
}

/* Another's, also one that was wrapped, becomes a share of the entity's own. */
static weir_status own_of(weir_context *context, weir_stream *stream, size_t *out)
{
	weir_entity *entity = context->entity;

	if (!stream)
		return wr_fail(WEIR_E_INVALID, "%s: the stream is NULL", name_of(context));
	if (wr_stream_find(entity->graph->system, weir_stream_id(stream)) != stream)
		return wr_fail(WEIR_E_INVALID, "%s: the stream belongs to another graph, or was given back",
			       name_of(context));
	return wr_own_share(entity, weir_stream_id(stream), out);
}

static weir_status set(struct wr_own_streams *own, size_t output, size_t place)
{
	weir_status status;

	for (size_t i = 0; i < own->set_count; i++)
		if (own->sets[i].output == output && own->sets[i].own == place)
			return WEIR_OK;
	status = wr_grow(&own->sets, &own->set_room, own->set_count + 1, sizeof *own->sets);
	if (!status)
		own->sets[own->set_count++] = (struct wr_set_stream){output, place};
	return status;
}

weir_status weir_context_set_stream(weir_context *context, unsigned output, weir_stream *stream)
{
	weir_entity *entity = context->entity;
	const char *name = name_of(context);
	size_t own = 0;
	weir_status status;

	if (!context->computing)
		return wr_fail(WEIR_E_INVALID, "%s: a stream is set in compute: "
			       "it is about the messages of one tick", name);
	if (output >= entity->output_count)
		return wr_fail(WEIR_E_INVALID, "%s: a stream is set on output %u of %zu", name, output,
			       entity->output_count);
	status = own_of(context, stream, &own);
	if (!status)
		status = set(&entity->own, output, own);
	if (!status)
		entity->own.items[own].used = true;
	return status;
}

weir_status weir_context_synchronize_streams(weir_context *context, weir_stream *const *streams, size_t count,
					     weir_stream *target)
{
	size_t before = 0, after = 0;
	weir_status status = own_of(context, target, &after);

	for (size_t i = 0; !status && i < count; i++) {
		if (!streams[i] || streams[i] == target)
			continue;
		status = own_of(context, streams[i], &before);
		if (!status)
			status = order(context->entity, before, after);
	}
	return status;
}

weir_status weir_context_device_from_stream(weir_context *context, const void *native, int *out)
{
	const struct wr_own_streams *own = &context->entity->own;

	for (size_t i = 0; i < own->count; i++) {
		if (wr_stream_handle(own->items[i].stream) == native) {
			*out = weir_stream_device(own->items[i].stream);
			return WEIR_OK;
		}
	}
	return wr_fail(WEIR_E_INVALID,
		       "%s: the native stream was not given to this entity: weir knows nothing of it",
		       name_of(context));
}

int weir_context_device(const weir_context *context)
{
	return context->entity->plan->device;
}

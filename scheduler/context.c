/*
 * The context of a tick: the calls for an operator in start, compute and stop, and the messages that a tick
 * received, made and emitted, until they are dropped. work.c has the calls about streams. Thread:
 * owner.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/struct.h"
#include "graphs/json.h"
#include "scheduler/ends.h"
#include "scheduler/graph.h"
#include "scheduler/memory.h"
#include "scheduler/scheduler.h"
#include "scheduler/work.h"

weir_graph *weir_context_graph(weir_context *context)
{
	return context->entity->graph;
}

/* Of an instance the program knows the dealer, whose conditions and inputs are those of the graph. */
static weir_entity *shown_entity(const weir_context *context)
{
	weir_entity *entity = context->entity;

	return entity->plan->role == WR_INSTANCE ? &entity->graph->entities[entity->plan->dealer] : entity;
}

weir_entity *weir_context_entity(weir_context *context)
{
	return shown_entity(context);
}

uint64_t weir_context_tick(const weir_context *context)
{
	const struct wr_plan_entity *plan = context->entity->plan;

	return plan->role == WR_PLAIN ? context->tick : context->tick * plan->instances + plan->number;
}

int64_t weir_context_now(const weir_context *context)
{
	(void)context;
	return wr_now();
}

/* local->context is written by the same thread, before and after compute. */
const char *weir_running_entity(void)
{
	const struct wr_local *local = wr_thread_local();
	const weir_context *context = local ? local->context : NULL;

	return context ? context->entity->plan->name : NULL;
}

static bool holds(const weir_message *message, const void *address)
{
	const char *data = weir_message_data(message);

	for (size_t i = 0, parts = weir_message_parts(message); i < parts; i++)
		if (holds(weir_message_part_at(message, i), address))
			return true;
	return data && (uintptr_t)address - (uintptr_t)data < weir_message_size(message);
}

/* Its messages are the thread's own, and constant. */
static void find_taken(const weir_entity *entity, const void *address, weir_device_memory *out)
{
	for (unsigned k = 0; k < entity->input_count; k++)
		for (size_t i = 0; i < entity->inputs[k].taken_count; i++) {
			const weir_message *message = entity->inputs[k].taken[i];
			const struct wr_memory_pool *pool = wr_message_memory_pool(message);

			if (!holds(message, address))
				continue;
			out->port = entity->inputs[k].plan->port->name;
			out->sender = entity->inputs[k].connections[0]->from;
			out->pool = pool ? pool->plan->name : NULL;
		}
}

bool weir_running_device_memory(const void *address, weir_device_memory *out)
{
	const struct wr_local *local = wr_thread_local();
	const weir_context *context = local ? local->context : NULL;
	weir_device_memory found = {0};

	if (!context || !wr_system_is_closed(context->entity->graph->system, address))
		return false;
	find_taken(context->entity, address, &found);
	return !wr_struct_fill(out, &found, sizeof found, "weir_device_memory");
}

bool weir_context_stopping(const weir_context *context)
{
	const weir_scheduler *scheduler = wr_load_acquire(&context->entity->scheduler);

	return wr_load_relaxed(&scheduler->stop_asked);
}

bool weir_context_drained(const weir_context *context)
{
	const weir_scheduler *scheduler = wr_load_acquire(&context->entity->scheduler);

	return wr_load_relaxed(&scheduler->stop_asked) == (WR_STOP_GRAPH | WR_STOP_DRAIN);
}

/* Elsewhere another thread may write it: the workers of a run have left before its operators stop. */
const char *weir_context_failure(const weir_context *context)
{
	const weir_scheduler *scheduler = wr_load_acquire(&context->entity->scheduler);

	if (!context->stopping || !(wr_load_relaxed(&scheduler->stop_asked) & WR_STOP_FAILED))
		return NULL;
	return *scheduler->error.line ? scheduler->error.line : scheduler->text;
}

size_t weir_context_count(const weir_context *context, unsigned input)
{
	const weir_entity *entity = context->entity;

	return input < entity->shown_inputs ? entity->inputs[input].taken_count : 0;
}

int64_t weir_context_age(const weir_context *context, unsigned input)
{
	const struct wr_input *from = &context->entity->inputs[input];

	if (!weir_context_count(context, input) || !from->connections[0]->queue.again)
		return -1;
	return wr_now() - from->connections[0]->queue.shown_since;
}

weir_message *weir_context_message(weir_context *context, unsigned input, size_t i)
{
	const weir_entity *entity = context->entity;

	return i < weir_context_count(context, input) ? entity->inputs[input].taken[i] : NULL;
}

size_t weir_context_queue_count(const weir_context *context, unsigned input, size_t k)
{
	const weir_entity *entity = context->entity;
	const struct wr_input *port = input < entity->input_count ? &entity->inputs[input] : NULL;

	if (!port || k >= port->count || !port->taken_count)
		return 0;
	return port->set ? port->set->known[k].taken : port->taken_by[k];
}

const char *weir_context_sender(const weir_context *context, unsigned input, size_t k)
{
	const weir_entity *entity = shown_entity(context);
	const struct wr_input *port = input < entity->input_count ? &entity->inputs[input] : NULL;

	return port && k < port->count ? port->connections[k]->from : NULL;
}

/* --- emitting --- */

static const char *kind_word(unsigned kind)
{
	switch (kind) {
	case WEIR_KIND_EMPTY:
		return "an empty message";
	case WEIR_KIND_BYTES:
		return "bytes";
	case WEIR_KIND_TENSOR:
		return "a tensor";
	case WEIR_KIND_PARTS:
		return "parts";
	default:
		return "a user's pointer";
	}
}

/* Names the end that does not take this kind: the output itself or one of its receivers. */
static weir_status refuse_kind(const weir_entity *entity, const struct wr_output *output, unsigned kind)
{
	const char *name = entity->plan->name, *port = output->plan->port->name;

	if (!(output->plan->kinds & kind))
		return wr_fail_port(WEIR_E_INVALID, name, port,
				    "emitted %s, which is not among the kinds that the port "
				    "declares",
				    kind_word(kind));
	for (size_t i = 0; i < output->count; i++) {
		const struct wr_connection *connection = output->connections[i];
		const struct wr_plan_input *to =
			connection->receiver ? connection->receiver->inputs[connection->input].plan : NULL;
		if (to && !(to->kinds & kind))
			return wr_fail_port(WEIR_E_INVALID, name, port, "emitted %s, which %s does not take",
					    kind_word(kind), connection->to);
	}
	return WEIR_OK;
}

/*
 * The first type that the tensor does not fit, of the output itself or of one of its receivers; NULL: none,
 * which is kept, so that the next tensor like it costs a comparison. *end: the receiver's port; NULL if it is
 * the output.
 */
static const struct wr_port_type *type_against(struct wr_output *output, const weir_tensor *tensor,
					       const char **end)
{
	*end = NULL;
	if (wr_passed_is(&output->passed, tensor))
		return NULL;
	if (!wr_port_type_takes(&output->plan->type, tensor))
		return &output->plan->type;
	for (size_t i = 0; i < output->count; i++) {
		const struct wr_connection *connection = output->connections[i];
		const weir_entity *receiver = connection->receiver;
		*end = connection->to;
		if (receiver && !wr_port_type_takes(&receiver->inputs[connection->input].plan->type, tensor))
			return &receiver->inputs[connection->input].plan->type;
	}
	wr_passed_set(&output->passed, tensor);
	return NULL;
}

/* Not inlined: what has no type needs no room for the answer. */
__attribute__((noinline)) static bool types_take(struct wr_output *output, const weir_message *message)
{
	const char *end;

	return !type_against(output, weir_message_tensor(message), &end);
}

/* Inline and first the mask: a port without a type pays nothing. */
static inline bool takes_message(struct wr_output *output, const weir_message *message)
{
	return message->kind & output->kinds ||
	       (message->kind & output->looked && types_take(output, message));
}

/* emit_allowed() was false: fails with the reason. */
static weir_status refuse_emit(weir_context *context, unsigned output, const weir_message *message)
{
	const weir_entity *entity = context->entity;
	const char *name = entity->plan->name, *end;
	const struct wr_port_type *type;
	unsigned kind = message ? weir_message_kind(message) : 0;
	struct wr_output *port;
	size_t outputs = entity->output_count - (entity->plan->role == WR_INSTANCE && entity->output_count);

	if (context->capture)
		return wr_error_blame(wr_capture_refuse(context->capture,
							"a message was emitted in enqueue: emit it after the "
							"replay"),
				      name);
	if (!context->computing)
		return wr_fail_in(WEIR_E_INVALID, name, "emit is for compute only");
	if (!message)
		return wr_fail_in(WEIR_E_INVALID, name, "emit needs a message");
	if (output >= outputs)
		return wr_fail_in(WEIR_E_INVALID, name, "emitted on output %u of %zu", output, outputs);
	if (wr_message_pool(message) != entity->graph->pool)
		return wr_fail_in(WEIR_E_INVALID, name, "the message belongs to another graph");
	port = &entity->outputs[output];
	if (!(kind & (port->kinds | port->looked)))
		return refuse_kind(entity, port, kind);
	type = kind & port->looked ? type_against(port, weir_message_tensor(message), &end) : NULL;
	if (type)
		return wr_fail_port(WEIR_E_INVALID, name, port->plan->port->name, "emitted %s, but %s %s %s",
				    wr_tensor_words(weir_message_tensor(message)).text,
				    end ? end : "the port", end ? "takes" : "gives",
				    wr_port_type_text(type).text);
	if (port->emitted_count < port->max_emits)
		return wr_fail_port(WEIR_E_BUSY, name, port->plan->port->name,
				    "no room behind it: emit as many as weir_context_room says");
	return wr_fail_port(WEIR_E_INVALID, name, port->plan->port->name,
			    "more than max_emits (%u) messages in one tick", port->plan->max_emits);
}

/* The room that the review saw is there (S3); of a port that may be full it saw none. */
static inline bool fits(struct wr_output *output)
{
	return output->emitted_count < output->max_emits &&
	       (!output->may_be_full || output->emitted_count < wr_output_room(output));
}

static bool emit_allowed(const weir_context *context, unsigned output, const weir_message *message)
{
	const weir_entity *entity = context->entity;

	return message && context->computing && output < entity->output_count &&
	       wr_message_pool(message) == entity->graph->pool &&
	       takes_message(&entity->outputs[output], message) && fits(&entity->outputs[output]);
}

size_t weir_context_room(const weir_context *context, unsigned output)
{
	const weir_entity *entity = context->entity;
	struct wr_output *port = &entity->outputs[output];
	size_t room;

	if (!context->computing || output >= entity->output_count)
		return 0;
	room = wr_output_room(port);
	return (room < port->max_emits ? room : port->max_emits) - port->emitted_count;
}

size_t weir_context_reserve(weir_context *context, size_t messages)
{
	size_t reserved = wr_claims_reserve(context->entity, messages);

	/* What the device is done with by now comes back at once, as an offer (T4). */
	if (reserved < messages)
		wr_system_run_deferred_frees(context->entity->graph->system, false);
	return reserved;
}

bool weir_context_receivers_done(const weir_context *context, unsigned output)
{
	const weir_entity *entity = context->entity;

	return context->computing && output < entity->output_count &&
	       wr_output_receivers_done(&entity->outputs[output]);
}

#define SEARCHED_MAX 256 /* messages searched per port; the rest of a larger batch is skipped */

/* The same pack may come by two ways, or be received and emitted; `at` is a searched place of such a list. */
static bool pack_precedes(const weir_entity *entity, weir_message *const *at)
{
	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; k < entity->inputs[i].taken_count && k < SEARCHED_MAX; k++)
			if (&entity->inputs[i].taken[k] == at || entity->inputs[i].taken[k] == *at)
				return &entity->inputs[i].taken[k] != at;
	for (size_t i = 0; i < entity->output_count; i++) /* it is found */
		for (size_t k = 0; k < entity->outputs[i].emitted_count && k < SEARCHED_MAX; k++)
			if (&entity->outputs[i].emitted[k] == at || entity->outputs[i].emitted[k] == *at)
				return &entity->outputs[i].emitted[k] != at;
	return false;
}

static size_t count_held_once(const weir_entity *entity, weir_message *const *at, const weir_message *part)
{
	size_t held = wr_pack_count_held(*at, part);

	return held && !pack_precedes(entity, at) ? held : 0;
}

/* References of the packs that this tick received or emits to their part; each pack holds its own, once. */
static uint32_t count_pack_references(const weir_entity *entity, const weir_message *part)
{
	size_t held = 0;

	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; k < entity->inputs[i].taken_count && k < SEARCHED_MAX; k++)
			held += count_held_once(entity, &entity->inputs[i].taken[k], part);
	for (size_t i = 0; i < entity->output_count; i++)
		for (size_t k = 0; k < entity->outputs[i].emitted_count && k < SEARCHED_MAX; k++)
			held += count_held_once(entity, &entity->outputs[i].emitted[k], part);
	return (uint32_t)held;
}

/* References to the message that belong to this tick: received, made by alloc, already emitted, in a pack. */
static uint32_t count_tick_references(const weir_context *context, const weir_message *message)
{
	const weir_entity *entity = context->entity;
	uint32_t held =
		wr_pool_has(entity->graph->pool, WR_POOL_PACKS) ? count_pack_references(entity, message) : 0;

	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; k < entity->inputs[i].taken_count && k < SEARCHED_MAX; k++)
			held += wr_input_refers(&entity->inputs[i], k, message);
	for (size_t i = 0; i < entity->output_count && wr_message_emitted(message); i++)
		for (size_t k = 0; k < entity->outputs[i].emitted_count && k < SEARCHED_MAX; k++)
			held += entity->outputs[i].emitted[k] == message;
	for (size_t k = 0; k < context->made_count && k < SEARCHED_MAX; k++)
		held += context->made[k] == message;
	return held;
}

/*
 * Emitting and packing take a reference of the operator. If all references belong to the tick, there is none
 * to take. References of other holders cannot be told from the operator's, so the check misses those.
 */
bool wr_context_holds_all(const weir_context *context, const weir_message *message)
{
	return wr_message_references(message) <= count_tick_references(context, message);
}

static weir_status refuse_output(const weir_context *context, unsigned output, const char *why)
{
	const weir_entity *entity = context->entity;

	return wr_fail_port(WEIR_E_INVALID, entity->plan->name, entity->outputs[output].plan->port->name,
			    "%s", why);
}

weir_status weir_context_emit(weir_context *context, unsigned output, weir_message *message)
{
	if (!emit_allowed(context, output, message)) {
		weir_status status = refuse_emit(context, output, message);
		weir_message_unref(message);
		return status;
	}
	/* Cheap first. The references of packs are not in context->references. */
	bool few = wr_message_references(message) <= context->references &&
		   (wr_message_emitted(message) || context->entity->input_count || context->made_count);

	if ((few || wr_pool_has(context->entity->graph->pool, WR_POOL_PACKS)) &&
	    wr_context_holds_all(context, message))
		return refuse_output(context, output,
				     "emitted a message without a reference of its own: pass on "
				     "weir_message_ref(message)");
	struct wr_output *port = &context->entity->outputs[output];
	wr_message_mark_emitted(message);
	port->emitted[port->emitted_count++] = message;
	context->references++;
	context->kept--; /* counted or not: cheaper than to ask */
	return WEIR_OK;
}

/* The message stays among the inputs, for the operator and its fences, until the outputs are delivered. */
weir_status weir_context_forward(weir_context *context, unsigned input, size_t i, unsigned output)
{
	weir_entity *entity = context->entity;
	weir_message *message = weir_context_message(context, input, i);
	struct wr_output *port;

	if (!message && context->computing)
		return wr_fail_in(WEIR_E_INVALID, entity->plan->name,
				  "forward: the tick has received no message %zu on input %u", i, input);
	if (!emit_allowed(context, output, message))
		return refuse_emit(context, output, message);
	if (entity->inputs[input].forwarded[i])
		return refuse_output(context, output,
				     "forwarded a message that this tick has forwarded already: emit "
				     "weir_message_ref(message)");
	port = &entity->outputs[output];
	wr_message_mark_emitted(message);
	port->emitted[port->emitted_count++] = message;
	entity->inputs[input].forwarded[i] = true;
	context->forwarded++;
	return WEIR_OK;
}

/* --- emitting at an earlier point of the tick (T12) --- */

/* By which a receiver, or the finisher of an outlet, is woken. */
static enum wr_flagging flagging_of_output(const struct wr_output *output)
{
	enum wr_flagging most = WR_FLAGS_NONE;

	for (size_t i = 0; i < output->count; i++) {
		const struct wr_connection *connection = output->connections[i];
		const struct wr_finisher *finisher = connection->outlet ? connection->outlet->finisher : NULL;
		enum wr_flagging flagged = finisher ? finisher->connection->flagged : connection->flagged;
		most = flagged > most ? flagged : most;
	}
	return most;
}

/*
 * With a fence that the program completes (T17): the message carries it beside what each message of the tick
 * carries, from now on.
 */
__attribute__((noinline)) static weir_status emit_promised(weir_context *context, unsigned output,
							   weir_message *message, weir_fence fence)
{
	weir_entity *entity = context->entity;
	weir_status status = emit_allowed(context, output, message) ? wr_entity_reserve_promise(entity)
								    : refuse_emit(context, output, message);

	if (!status)
		status = weir_message_add_producer(message, fence);
	if (!status || status == WEIR_E_FAILED) /* then carrying it fails as it was completed */
		status = wr_promise_carry(entity->graph->system, fence, entity->id, entity->plan->name,
					  wr_entity_took_message(entity));
	if (status) {
		weir_message_unref(message);
		return status;
	}
	status = weir_context_emit(context, output, message);
	if (!status)
		entity->streams.promised[entity->streams.promised_count++] = fence;
	return status;
}

weir_status weir_context_emit_at(weir_context *context, unsigned output, weir_message *message,
				 weir_fence fence)
{
	weir_entity *entity = context->entity;
	weir_stream *stream = context->computing ? wr_entity_stream_recorded(entity, fence) : NULL;
	weir_status status = WEIR_OK;
	enum wr_flagging flagging;
	bool last;

	if (wr_fence_is_promise(fence))
		return emit_promised(context, output, message, fence);
	if (emit_allowed(context, output, message))
		status =
			stream ? wr_entity_reserve_early(entity)
			       : refuse_output(context, output,
					       "emit_at needs a fence that this tick recorded on a stream of "
					       "this entity: call weir_stream_record in the same compute");
	if (status) {
		weir_message_unref(message);
		return status;
	}
	status = weir_context_emit(context, output, message);
	if (status)
		return status;
	wr_entity_add_early(entity, output, fence);
	/*
	 * The device writes the flag behind all that is on the stream by now. So the fence gets its flag only
	 * if it is the last thing there; else a callback, which waits for the fence alone, tells earlier.
	 */
	last = wr_stream_submitted(stream) == fence.value && !wr_stream_dirty(stream);
	wr_stream_mark_early(stream, fence.value);
	flagging = flagging_of_output(&entity->outputs[output]);
	if (last && flagging)
		(void)wr_flag_write(stream, flagging);
	return WEIR_OK;
}

weir_status weir_context_create_tensor(weir_context *context, const weir_tensor *like, unsigned flags,
				       weir_message **out)
{
	const weir_entity *entity = context->entity;
	bool on_host = flags & WEIR_TENSOR_HOST;
	struct wr_claim *claim = wr_entity_memory(entity, on_host);
	int device = claim     ? wr_memory_pool_of(claim)->plan->device
		     : on_host ? WEIR_DEVICE_HOST
			       : entity->plan->device;
	weir_message *message = NULL;
	weir_status status = wr_flags_check("weir_context_create_tensor", flags, WEIR_TENSOR_HOST);

	if (status)
		return status;
	if (context->capture)
		return wr_error_blame(wr_capture_refuse(context->capture,
							"a tensor was made in enqueue: make it before the "
							"replay, its address is part of the key"),
				      entity->plan->name);
	status = wr_grow(&context->made, &context->made_room, context->made_count + 1, sizeof *context->made);

	if (!status)
		status = wr_message_tensor(entity->graph->pool, like, device, claim, &message);
	if (status)
		return status;
	wr_message_ref_many(message, 1);
	context->made[context->made_count++] = message;
	context->references++;
	*out = message;
	return WEIR_OK;
}

/* --- scratch memory --- */

weir_status weir_context_scratch(weir_context *context, weir_stream *stream, size_t bytes, void **out)
{
	weir_entity *entity = context->entity;
	weir_stream *used = stream;
	size_t index = 0;
	weir_status status = WEIR_OK;

	if (!context->computing && !context->capture)
		return wr_fail_in(WEIR_E_INVALID, entity->plan->name,
				  "scratch memory is for compute only: a tick's end takes it back");
	if (!stream && bytes)
		status = weir_context_stream(context, &used);
	if (status)
		return status;
	while (used && index < entity->streams.count && entity->streams.items[index].stream != used)
		index++;
	if (used && index == entity->streams.count)
		return wr_fail_in(WEIR_E_INVALID, entity->plan->name,
				  "scratch memory is for the streams of this entity: pass one of them, or "
				  "NULL for the current one");
	if (!bytes) {
		*out = NULL;
		return WEIR_OK;
	}
	entity->streams.items[index].used = true; /* uses of its native handle cannot be seen */
	status = wr_scratch_take(entity, index, bytes, out);
	if (status == WEIR_E_BUSY && context->capture)
		return wr_capture_postpone(context->capture, wr_error_text(wr_error_here()));
	return status;
}

/* --- the end of the entity, or of the run --- */

weir_status weir_context_finish(weir_context *context)
{
	if (context->entity->plan->role != WR_PLAIN)
		return wr_fail_in(
			WEIR_E_STATE, context->entity->plan->name,
			"one of several instances cannot finish the entity: leave \"instances\" out");
	context->entity->finished = true;
	return WEIR_OK;
}

static weir_status check_held(const weir_entity *entity, unsigned input)
{
	if (input >= entity->input_count)
		return wr_fail(WEIR_E_INVALID, "%s has no input %u to hold", entity->plan->name, input);
	if (entity->plan->role != WR_PLAIN)
		return wr_fail_in(WEIR_E_STATE, entity->plan->name,
				  "one of several instances cannot hold an input: leave \"instances\" out");
	return WEIR_OK;
}

weir_status weir_context_hold(weir_context *context, unsigned input, unsigned flags)
{
	weir_status status = wr_flags_check("weir_context_hold", flags, WEIR_HOLD_END);

	if (!status)
		status = check_held(context->entity, input);
	if (!status)
		wr_input_hold(&context->entity->inputs[input], !(flags & WEIR_HOLD_END));
	return status;
}

weir_status weir_context_limit(weir_context *context, unsigned input, size_t messages)
{
	weir_status status = check_held(context->entity, input);
	struct wr_input *port;

	if (status)
		return status;
	if (!messages)
		return wr_fail_in(WEIR_E_INVALID, context->entity->plan->name,
				  "an input is limited to 0 messages: hold it");
	port = &context->entity->inputs[input];
	port->limit = messages < UINT32_MAX ? (uint32_t)messages : 0;
	wr_input_hold(port, port->held);
	return WEIR_OK;
}

bool weir_context_ended(const weir_context *context, unsigned input)
{
	const weir_entity *entity = context->entity;

	return input < entity->input_count && wr_input_ended(&entity->inputs[input], 1);
}

weir_status weir_context_fail(weir_context *context, const char *format, ...)
{
	va_list list;

	(void)context;
	va_start(list, format);
	wr_vfail(WEIR_E_FAILED, format, list);
	va_end(list);
	return WEIR_E_FAILED;
}

void weir_context_log(weir_context *context, weir_log_level level, const char *format, ...)
{
	char text[WR_LOG_MAX];
	int nearest = (int)level < WEIR_LOG_ERROR ? WEIR_LOG_ERROR : (int)level;
	va_list list;

	if (!wr_log_on())
		return;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	wr_log_line(nearest > WEIR_LOG_DEBUG ? WEIR_LOG_DEBUG : (weir_log_level)nearest, "%s: %s",
		    context->entity->plan->name, text);
}

void weir_context_count_lock(weir_context *context, const char *lock, int64_t waited_ns)
{
	const weir_scheduler *scheduler = wr_load_acquire(&context->entity->scheduler);

	if (context->computing && scheduler && scheduler->trace)
		wr_trace_lock(scheduler->trace, wr_lane_here(scheduler), context->entity->id, lock,
			      waited_ns);
}

weir_status weir_context_set_record(weir_context *context, const char *json)
{
	char *copy;

	if (!wr_json_is_object(json))
		return wr_fail(WEIR_E_INVALID, "what '%s' records is no object of JSON",
			       context->entity->plan->name);
	copy = wr_strdup(json);
	if (!copy)
		return WEIR_E_NOMEM;
	wr_entity_set_record(shown_entity(context), copy);
	return WEIR_OK;
}

/* --- dropping the messages of a tick --- */

void wr_context_unref_made(weir_context *context)
{
	for (size_t i = 0; i < context->made_count; i++)
		wr_message_unref(context->made[i]);
	context->made_count = 0;
}

void wr_entity_leave_forwarded(weir_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++) {
		struct wr_input *input = &entity->inputs[i];
		size_t left = 0;
		for (size_t k = 0; k < input->taken_count; k++) {
			if (!input->forwarded[k])
				input->taken[left++] = input->taken[k];
			input->forwarded[k] = false;
		}
		input->taken_count = left;
	}
	entity->context.forwarded = 0;
}

void wr_entity_unref_inputs(weir_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++) {
		struct wr_input *input = &entity->inputs[i];
		/* Counted down first: a destructor may end its thread, whose inputs are dropped then
		 * (worker.c). */
		while (input->taken_count)
			wr_message_unref(input->taken[--input->taken_count]);
	}
}

/*
 * Without the fence it is unknown when the device is done with the payloads. So they are kept and the run
 * ends; the fence is tried again at the next stop function or run, at the latest when the graph is destroyed.
 */
weir_status wr_entity_drop_tick(weir_entity *entity)
{
	bool kept = entity->fences_pending;
	weir_status status = wr_entity_fence_tick(entity, &entity->fences_pending);

	if (entity->fences_pending) {
		if (!kept)
			wr_log(WEIR_LOG_WARN, "%s: no fence for its last tick (%s): its messages are kept",
			       entity->plan->name, weir_status_text(status));
		return status;
	}
	entity->streams.promised_count = 0;
	if (entity->context.forwarded)
		wr_entity_leave_forwarded(entity);
	for (size_t i = 0; i < entity->output_count; i++) {
		for (size_t k = 0; k < entity->outputs[i].emitted_count; k++)
			weir_message_unref(entity->outputs[i].emitted[k]);
		entity->outputs[i].emitted_count = 0;
	}
	wr_context_unref_made(&entity->context);
	wr_entity_unref_inputs(entity);
	return status;
}

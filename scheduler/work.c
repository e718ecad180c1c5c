/*
 * The device work of an entity. Its streams are taken from a pool, allocated by name or shared with another
 * owner; released when the operator has stopped. They are fenced at the end of each tick that used them. Then
 * the ticks in flight, and the operator's calls about streams.
 */
#include "scheduler/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/struct.h"
#include "scheduler/gpu_time.h"
#include "scheduler/graph.h"
#include "scheduler/scheduler.h"
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

/* Makes items[index] the current stream, of this tick or for the run. */
static void entity_set_current_stream(weir_entity *entity, size_t index, bool for_run, bool emits_carry)
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

/*
 * Returns the stream of this name, taking it from the pool at the first call. Fails: WEIR_E_BUSY,
 * WEIR_E_UNSUPPORTED.
 */
static weir_status entity_allocate_stream(weir_entity *entity, const char *name, size_t *out)
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

/* Its device's default stream, made at the first call. */
static weir_status entity_default_stream(weir_entity *entity, size_t *out)
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

/*
 * The entity's own stream for the native stream of this id; made at the first call. Fails with WEIR_E_CLOSED,
 * without a text, if the id was recycled.
 */
static weir_status entity_share_stream(weir_entity *entity, uint64_t id, size_t *out)
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

weir_status wr_entity_take_stream(weir_entity *entity)
{
	struct wr_stream_pool *pool = pool_of(entity);
	size_t index = 0;
	size_t most = pool ? entity->graph->plan->stream_pools[entity->plan->stream_pool].max_size : 0;
	weir_status status;

	if (entity->given_stream)
		status = entity_share_stream(entity, weir_stream_id(entity->given_stream), &index);
	else if (entity->plan->use_default_stream)
		status = entity_default_stream(entity, &index);
	else if (!pool || (most && wr_stream_pool_taken(pool) >= most))
		return WEIR_OK; /* a cheap test: an entity that got no stream comes here in every tick */
	else
		status = take_from_pool(entity, pool, &index);
	if (!status)
		entity_set_current_stream(entity, index, true, true);
	return status == WEIR_E_BUSY ? WEIR_OK : status;
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

/*
 * === the fences of a tick ===
 *
 * The end of a tick records one fence for each stream that the tick used and adds it to the use
 * set of every payload that the tick took, made or emitted (T4). Emitted messages carry the current stream,
 * or the streams set for their output; of the other streams they get the fences only (T7). A message that was
 * emitted at an earlier point of the tick carries that point, and the fences of the end protect its payload
 * alone (T12). If there is no memory for a fence, the marks of the tick stay, and the next call does all of
 * it again.
 */

/* --- one stream --- */

/*
 * Returns true if there may be work on it that `last` does not cover. Enqueued work makes the stream dirty;
 * if the operator then recorded a fence, the timeline value moved.
 */
static bool has_unfenced_work(const struct wr_entity_stream *item)
{
	return item->used || wr_stream_dirty(item->stream) ||
	       wr_stream_submitted(item->stream) != item->last.value;
}

bool wr_entity_has_device_work(const weir_entity *entity)
{
	for (size_t i = 0; i < entity->streams.count; i++)
		if (has_unfenced_work(&entity->streams.items[i]))
			return true;
	return false;
}

/* --- the references of a message --- */

enum { SEARCHED_IN_TURN = 16 }; /* a tick of more messages sorts them */

static int compare_messages(const void *a, const void *b)
{
	uintptr_t first = (uintptr_t) * (const weir_message *const *)a;
	uintptr_t second = (uintptr_t) * (const weir_message *const *)b;

	return (first > second) - (first < second);
}

/* At the first search in a tick. Few are searched in turn, and all without memory. */
static void sort_messages(weir_entity *entity)
{
	struct wr_entity_streams *streams = &entity->streams;
	size_t count = 0;

	streams->sort_due = false;
	for (size_t i = 0; i < entity->input_count; i++)
		count += entity->inputs[i].taken_count;
	for (size_t i = 0; i < entity->output_count; i++)
		count += entity->outputs[i].emitted_count;
	if (count <= SEARCHED_IN_TURN)
		return;
	if (count > streams->sorted_room) {
		struct wr_last_error kept = *wr_error_here(); /* the tick may fail by it yet */
		if (wr_grow(&streams->sorted, &streams->sorted_room, count, sizeof *streams->sorted)) {
			*wr_error_here() = kept;
			return;
		}
	}
	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; k < entity->inputs[i].taken_count; k++)
			if (!entity->inputs[i].forwarded[k])
				streams->sorted[streams->sorted_count++] = entity->inputs[i].taken[k];
	for (size_t i = 0; i < entity->output_count; i++)
		for (size_t k = 0; k < entity->outputs[i].emitted_count; k++)
			streams->sorted[streams->sorted_count++] = entity->outputs[i].emitted[k];
	qsort(streams->sorted, streams->sorted_count, sizeof *streams->sorted, compare_messages);
}

/* References that belong to this tick: received, emitted. */
static size_t count_direct(weir_entity *entity, const weir_message *message)
{
	const struct wr_entity_streams *streams = &entity->streams;
	const weir_message *const *at, *const *end;
	size_t count = 0;

	if (streams->sort_due)
		sort_messages(entity);
	if (streams->sorted_count) {
		end = streams->sorted + streams->sorted_count;
		at = bsearch(&message, streams->sorted, streams->sorted_count, sizeof message,
			     compare_messages);
		for (const weir_message *const *before = at; before && *before == message; count++)
			before = before > streams->sorted ? before - 1 : NULL;
		while (at && ++at < end && *at == message)
			count++;
		return count;
	}
	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; k < entity->inputs[i].taken_count; k++)
			count += wr_input_refers(&entity->inputs[i], k, message);
	for (size_t i = 0; i < entity->output_count; i++)
		for (size_t k = 0; k < entity->outputs[i].emitted_count; k++)
			count += entity->outputs[i].emitted[k] == message;
	return count;
}

/* The n-th message that the tick received or emits; NULL after the last. */
static const weir_message *message_of_tick(const weir_entity *entity, size_t n)
{
	for (size_t i = 0; i < entity->input_count; n -= entity->inputs[i++].taken_count)
		if (n < entity->inputs[i].taken_count)
			return entity->inputs[i].taken[n];
	for (size_t i = 0; i < entity->output_count; n -= entity->outputs[i++].emitted_count)
		if (n < entity->outputs[i].emitted_count)
			return entity->outputs[i].emitted[n];
	return NULL;
}

/* Not inlined: a message made in this tick is not searched for. */
__attribute__((noinline)) static bool has_references_beside(weir_entity *entity, const weir_message *message)
{
	size_t references = wr_message_references(message), held = count_direct(entity, message);
	const weir_message *pack;

	if (references <= held || !wr_pool_has(entity->graph->pool, WR_POOL_PACKS))
		return references > held;
	for (size_t n = 0; (pack = message_of_tick(entity, n)); n++) {
		size_t by_pack = wr_pack_count_held(pack, message), first = 0;
		while (by_pack && message_of_tick(entity, first) != pack)
			first++;
		if (by_pack && first == n && wr_message_references(pack) <= count_direct(entity, pack))
			held += by_pack; /* this tick alone holds the pack */
	}
	return references > held;
}

/* --- what its work is to a message --- */

static enum wr_part default_part(const struct wr_entity_streams *streams, size_t index)
{
	return streams->emits_carry && index + 1 == streams->current ? WR_CARRIED : WR_PRODUCED;
}

/* How the work of the stream at `index` concerns the message that this tick emits at the place. */
static enum wr_part output_part(const struct wr_entity_streams *streams, size_t output, size_t place,
				size_t index)
{
	bool any = false, set = false; /* some stream was set for the output; this one was */

	for (size_t i = 0; i < streams->early_count; i++)
		if (streams->early[i].output == output && streams->early[i].place == place)
			return WR_USED;
	for (size_t i = 0; i < streams->set_count; i++) {
		any |= streams->sets[i].output == output;
		set |= streams->sets[i].output == output && streams->sets[i].index == index;
	}
	if (any && !set)
		return WR_USED;
	return set ? WR_CARRIED : default_part(streams, index);
}

/*
 * A message that this entity made was produced by it, in this tick or before. A message that it passes on was
 * only read, unless no other reference exists: then it may have been written in place. For a message that was
 * only read the fence joins the use set alone, even if a stream was set: its other receivers must not wait
 * for this reading, nor find a fence for which no signal will wake them.
 */
static weir_status fence_if_made(weir_entity *entity, weir_message *message, weir_fence fence,
				 enum wr_part part)
{
	if (wr_message_delivered(message) && has_references_beside(entity, message))
		part = WR_USED;
	return wr_message_add_fence(message, fence, part);
}

/* Each part of a pack is fenced as if it were emitted alone: one may be new, another one passed on. */
static weir_status fence_made(weir_entity *entity, weir_message *message, weir_fence fence, enum wr_part part)
{
	weir_status status = WEIR_OK;
	size_t parts;

	if (message->kind != WEIR_KIND_PARTS)
		return fence_if_made(entity, message, fence, part);
	parts = weir_message_parts(message);
	for (size_t i = 0; !status && i < parts; i++)
		status = fence_if_made(entity, weir_message_part_at(message, i), fence, part);
	return status;
}

/* A message made and kept may be emitted by a later tick, which does not know of the work of this one. */
static enum wr_part kept_part(weir_entity *entity, size_t index, const weir_message *made)
{
	bool packs = wr_pool_has(entity->graph->pool, WR_POOL_PACKS);

	if (count_direct(entity, made)) /* it was emitted: what was made in this tick was not received */
		return WR_USED;
	for (size_t i = 0; packs && i < entity->output_count; i++)
		for (size_t k = 0; k < entity->outputs[i].emitted_count; k++)
			if (wr_pack_count_held(entity->outputs[i].emitted[k], made))
				return WR_USED;
	return default_part(&entity->streams, index);
}

static weir_status fence_payloads(weir_entity *entity, size_t index, weir_fence fence)
{
	weir_message **made = entity->context.made;
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < entity->input_count; i++)
		for (size_t k = 0; !status && k < entity->inputs[i].taken_count; k++)
			status = wr_message_add_fence(entity->inputs[i].taken[k], fence, WR_USED);
	for (size_t i = 0; !status && i < entity->context.made_count; i++)
		status = wr_message_add_fence(made[i], fence, kept_part(entity, index, made[i]));
	for (size_t i = 0; !status && i < entity->output_count; i++) {
		for (size_t k = 0; !status && k < entity->outputs[i].emitted_count; k++) {
			enum wr_part part = output_part(&entity->streams, i, k, index);
			status = fence_made(entity, entity->outputs[i].emitted[k], fence, part);
		}
	}
	return status;
}

/* --- the end of a tick --- */

bool wr_entity_took_message(const weir_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++)
		if (entity->inputs[i].taken_count)
			return true;
	return false;
}

/*
 * From wr_stream_begin_tick on, the stream's live reference keeps the run open, no longer the worker's alone.
 */
static weir_status fence_stream(weir_entity *entity, size_t index)
{
	struct wr_entity_stream *item = &entity->streams.items[index];
	weir_status status, failure;

	item->ended = false;
	if (!has_unfenced_work(item))
		return WEIR_OK;
	item->used = true; /* so that a failed call is repeated */
	/* Else its first use did: what was dropped since the record takes again, and the worker holds one. */
	if (!entity->streams.current_ordered || index + 1 != entity->streams.current)
		wr_stream_begin_tick(item->stream);
	if (item->span)
		(void)wr_span_end(item->span);
	failure = weir_stream_record(item->stream, &item->last);
	item->ended = !failure;
	wr_stream_note_tick(item->stream, wr_entity_took_message(entity));
	if (failure && (failure != WEIR_E_DEVICE || !wr_stream_record_end(item->stream, &item->last)))
		return failure;
	status = fence_payloads(entity, index, item->last);
	item->used = status != WEIR_OK;
	return status ? status : failure;
}

weir_stream *wr_entity_stream_recorded(weir_entity *entity, weir_fence fence)
{
	for (size_t i = 0; i < entity->streams.count; i++) {
		const struct wr_entity_stream *item = &entity->streams.items[i];
		if (item->last.stream == fence.stream && item->last.value < fence.value &&
		    fence.value <= wr_stream_submitted(item->stream))
			return item->stream;
	}
	return NULL;
}

weir_status wr_entity_reserve_early(weir_entity *entity)
{
	struct wr_entity_streams *streams = &entity->streams;

	return wr_grow(&streams->early, &streams->early_room, streams->early_count + 1,
		       sizeof *streams->early);
}

void wr_entity_add_early(weir_entity *entity, size_t output, weir_fence fence)
{
	struct wr_entity_streams *streams = &entity->streams;

	streams->early[streams->early_count++] =
		(struct wr_early_message){output, entity->outputs[output].emitted_count - 1, fence};
}

weir_status wr_entity_reserve_promise(weir_entity *entity)
{
	struct wr_entity_streams *streams = &entity->streams;

	return wr_grow(&streams->promised, &streams->promised_room, streams->promised_count + 1,
		       sizeof *streams->promised);
}

/* What the tick took or made is used until they are complete (T4); what it emits carries them already. */
static weir_status fence_promised(weir_entity *entity)
{
	weir_status status = WEIR_OK;

	for (size_t p = 0; p < entity->streams.promised_count; p++) {
		weir_fence fence = entity->streams.promised[p];
		if (wr_promise_over(entity->graph->system, fence))
			continue;
		for (size_t i = 0; !status && i < entity->input_count; i++)
			for (size_t k = 0; !status && k < entity->inputs[i].taken_count; k++)
				status = wr_message_add_fence(entity->inputs[i].taken[k], fence, WR_USED);
		for (size_t i = 0; !status && i < entity->context.made_count; i++)
			status = wr_message_add_fence(entity->context.made[i], fence, WR_USED);
	}
	return status;
}

static void end_tick(weir_entity *entity)
{
	struct wr_entity_streams *streams = &entity->streams;

	if (streams->scratch_used)
		wr_scratch_end_tick(entity);
	if (entity->replays)
		wr_replays_end_tick(entity);
	if (entity->gpu_time)
		wr_gpu_time_end_tick(entity);
	if (streams->current)
		streams->last_end = streams->items[streams->current - 1].last;
	for (size_t i = 0; i < streams->count; i++)
		streams->items[i].used = false;
	if (!streams->for_run) {
		streams->current = 0;
		entity->current_stream = NULL;
	}
	for (size_t i = 0; streams->inputs_waited && i < entity->input_count; i++)
		entity->inputs[i].waited = false;
	streams->inputs_waited = streams->current_ordered = false;
	streams->set_count = streams->early_count = 0;
	entity->context.stream_used = false;
}

weir_status wr_entity_fence_tick(weir_entity *entity, bool *pending)
{
	struct wr_entity_streams *streams = &entity->streams;
	weir_status status = WEIR_OK;
	bool again;

	streams->sort_due = true;
	streams->sorted_count = 0;
	for (size_t i = 0; !status && i < streams->early_count; i++) {
		const struct wr_early_message *early = &streams->early[i];
		weir_message *message = entity->outputs[early->output].emitted[early->place];
		status = fence_made(entity, message, early->fence, WR_CARRIED);
	}
	if (!status && streams->promised_count)
		status = fence_promised(entity);
	again = status == WEIR_E_NOMEM;
	for (size_t i = 0; i < streams->count; i++) {
		const struct wr_entity_stream *item = &streams->items[i];
		weir_status one = fence_stream(entity, i);
		/* Work of the tick may still run, and no fence tells when it ends. */
		bool unfenced = one && has_unfenced_work(item) && !wr_device_lost(entity->graph->system);
		if (unfenced) /* it may have been enqueued before a capture that is still open */
			wr_stream_end_capture(item->stream);
		again |= one == WEIR_E_NOMEM || unfenced;
		status = status ? status : one;
	}
	*pending = again;
	if (!again) {
		end_tick(entity);
		status = status ? status : streams->failure;
	}
	streams->failure = WEIR_OK; /* the tick fails by this one; a later call for want of a fence alone */
	return status;
}

weir_stream *wr_entity_stream_of(weir_entity *entity, weir_fence fence)
{
	for (size_t i = 0; i < entity->streams.count; i++) {
		const struct wr_entity_stream *item = &entity->streams.items[i];
		if (item->ended && item->last.stream == fence.stream && item->last.value == fence.value)
			return item->stream;
	}
	return NULL;
}

/* === ticks in flight === */

#define FEW_OPERATIONS 8   /* ticks that enqueue up to this many operations do not lower the bound */
#define ALL_OPERATIONS 512 /* operations of an entity in flight: half of the driver's launch queue */
#define LEAST          2   /* the bound is never lower: one tick works while the next is enqueued */
#define GUESSED        8   /* up to this many ticks count as in flight without asking the device */

void wr_flight_reset(struct wr_flight *flight, size_t bound)
{
	flight->bound = bound;
	flight->ticks = flight->completed = flight->operations = flight->largest_tick = 0;
	flight->promised = false;
	flight->first = flight->count = 0;
	flight->ask_at = flight->pause = 0;
}

void wr_flight_finish(struct wr_flight *flight)
{
	wr_free(flight->ends);
}

size_t wr_flight_limit(const struct wr_flight *flight)
{
	uint64_t fit = flight->operations > FEW_OPERATIONS ? ALL_OPERATIONS / flight->operations : SIZE_MAX;

	fit = fit < LEAST ? LEAST : fit;
	return flight->bound < fit ? flight->bound : (size_t)fit;
}

/* Not inlined: a run that is not observed pays one branch. */
__attribute__((noinline)) static void tell(const weir_entity *entity, const weir_scheduler *scheduler)
{
	wr_trace_flight(scheduler->trace, wr_lane_here(scheduler), entity->id,
			entity->flight.ticks - entity->flight.completed);
}

static bool is_observed(const weir_entity *entity)
{
	const weir_scheduler *scheduler = wr_load_acquire(&((weir_entity *)entity)->scheduler);

	return scheduler && scheduler->trace;
}

/* Call after the number of ticks in flight has changed. */
static void tell_observers(const weir_entity *entity)
{
	if (is_observed(entity))
		tell(entity, wr_load_acquire(&((weir_entity *)entity)->scheduler));
}

/* --- what is complete --- */

enum { STREAMS = 64 };

/*
 * Queries the last end of each stream, which covers the earlier ones. Beyond STREAMS streams the same stream
 * may be queried again.
 */
static size_t flight_find_pending(const weir_entity *entity, uint64_t tick, weir_fence *out, size_t room)
{
	const struct wr_flight *flight = &entity->flight;
	weir_fence asked[STREAMS];
	size_t known = 0, pending = 0;

	for (size_t i = flight->count; i-- > 0 && (known < entity->streams.count || flight->promised);) {
		const struct wr_flight_end *end = &flight->ends[flight->first + i];
		bool promise = wr_fence_is_promise(end->fence);
		size_t same = promise ? known : 0;
		weir_status status;
		while (same < known && asked[same].stream != end->fence.stream)
			same++;
		if (end->tick > tick || same < known)
			continue;
		if (known < STREAMS && !promise)
			asked[known++] = end->fence;
		if (promise && wr_promise_over(entity->graph->system, end->fence))
			continue; /* if it failed the run ends */
		status = promise ? WEIR_E_BUSY : wr_fence_query(entity->graph->system, end->fence);
		if (!status || status == WEIR_E_DEVICE) /* lost device: the next call on it fails */
			continue;
		if (pending < room)
			out[pending] = end->fence;
		pending++;
	}
	return pending;
}

static size_t flight_pending(weir_entity *entity, uint64_t tick, size_t room, weir_fence *out)
{
	struct wr_flight *flight = &entity->flight;
	size_t pending = tick > flight->completed ? flight_find_pending(entity, tick, out, room) : 0;

	if (pending || tick <= flight->completed)
		return pending;
	while (flight->count && flight->ends[flight->first].tick <= tick) {
		flight->first++;
		flight->count--;
	}
	flight->completed = tick;
	tell_observers(entity);
	return 0;
}

/* --- the bound --- */

static bool flight_is_full(const struct wr_flight *flight)
{
	return flight->bound && flight->ticks - flight->completed >= wr_flight_limit(flight);
}

/* The condition waits for ticks whose number is a multiple of this; the device writes flags after these. */
static uint64_t flight_step(const struct wr_flight *flight)
{
	size_t most = wr_flight_limit(flight);

	return most > 1 ? most / 2 : 1;
}

size_t wr_view_flight_pending(weir_view *view, size_t room, weir_fence *out)
{
	const struct wr_flight *flight = &view->entity->flight;
	uint64_t step = flight_step(flight), tick;

	if (!flight_is_full(flight))
		return 0;
	tick = flight->ticks - wr_flight_limit(flight) + step;
	return flight_pending(view->entity, tick - tick % step, room, out);
}

/* --- noting --- */

/* The live ends move to the start once half of the array precedes them, so the cost per end is constant. */
static weir_status make_room_for_ends(struct wr_flight *flight, size_t count)
{
	if (flight->first + flight->count + count <= flight->room)
		return WEIR_OK;
	if (flight->first && flight->first >= flight->room / 2) {
		memmove(flight->ends, flight->ends + flight->first, flight->count * sizeof *flight->ends);
		flight->first = 0;
	}
	return wr_grow(&flight->ends, &flight->room, flight->first + flight->count + count,
		       sizeof *flight->ends);
}

/* Ticks in flight, up to twice too many; `known` if there are no more than so many. */
static uint64_t count_in_flight(weir_entity *entity, uint64_t known)
{
	struct wr_flight *flight = &entity->flight;

	if (!flight_pending(entity, flight->ticks - known, 0, NULL))
		return known;
	while (flight->ticks - flight->completed > 2 * known &&
	       !flight_pending(entity, (flight->completed + flight->ticks) / 2, 0, NULL))
		;
	return flight->ticks - flight->completed;
}

/*
 * Updates the high-water mark. `completed` may be old, so the device is asked whether more ticks are in
 * flight than ever before, and if so about the middle of the unknown ones: a query may cost more than half a
 * launch. So it is asked the more seldom the longer the answer has been no, up to once while half of the
 * bound is enqueued; in a run that is observed, whose trace shows the number, every fourth tick.
 */
static void update_most_in_flight(weir_entity *entity)
{
	struct wr_flight *flight = &entity->flight;
	uint64_t most = wr_read(&entity->counters.most_in_flight), now = flight->ticks - flight->completed;
	uint64_t step = flight_step(flight), longest = is_observed(entity) ? 4 : step;

	if (now <= most || (now > GUESSED && flight->ticks < flight->ask_at))
		return;
	if (now > GUESSED) {
		uint64_t known = most > GUESSED ? most : GUESSED;

		now = count_in_flight(entity, known);
		flight->pause = now > known ? 1 : 2 * flight->pause + 1;
		flight->pause = flight->pause < longest ? flight->pause : longest;
		flight->ask_at = flight->ticks + flight->pause;
	}
	if (now > most)
		wr_store_relaxed(&entity->counters.most_in_flight, now);
}

weir_status wr_flight_note_tick(weir_entity *entity)
{
	struct wr_flight *flight = &entity->flight;
	const struct wr_entity_streams *streams = &entity->streams;
	enum wr_flagging flagging;
	size_t count = streams->promised_count;
	uint64_t operations = 0;
	weir_status status;

	for (size_t i = 0; i < streams->count; i++)
		count += streams->items[i].ended;
	status = count && flight->bound ? make_room_for_ends(flight, count) : WEIR_OK;
	if (status || !count)
		return status;
	flight->ticks++;
	if (!flight->bound) {
		flight->completed = flight->ticks;
		return WEIR_OK;
	}
	tell_observers(entity);
	for (size_t i = 0; i < streams->count; i++) {
		operations += wr_stream_take_operations(streams->items[i].stream);
		if (streams->items[i].ended)
			flight->ends[flight->first + flight->count++] =
				(struct wr_flight_end){streams->items[i].last, flight->ticks};
	}
	for (size_t i = 0; i < streams->promised_count; i++)
		flight->ends[flight->first + flight->count++] =
			(struct wr_flight_end){streams->promised[i], flight->ticks};
	flight->promised |= streams->promised_count > 0;
	if (operations >= flight->operations || flight->completed >= flight->largest_tick) {
		flight->operations = operations;
		flight->largest_tick = flight->ticks;
	}
	/* The flags of the ticks that the in-flight condition waits for. */
	flagging = wr_flagging_of(entity->in_flight->signal);
	if (flagging && !(flight->ticks % flight_step(flight)))
		for (size_t i = 0; i < streams->count; i++)
			if (streams->items[i].ended)
				wr_flag_write(streams->items[i].stream, flagging);
	update_most_in_flight(entity);
	entity->flight_full = flight_is_full(flight);
	return WEIR_OK;
}

/*
 * === the operator's calls about streams ===
 *
 * Which stream is the internal one of a tick, what it waits for, and the calls
 * that return other streams. Expensive steps are done at most once in a tick. Every stream that was returned
 * is fenced when the tick ends.
 */

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
 * The current stream for this tick only: one that a message carries, or, if there is none, the device's
 * default stream, which emitted messages do not carry.
 */
static weir_status use_carried_or_default(weir_entity *entity, size_t first)
{
	uint64_t found = 0;
	size_t index = 0;
	weir_status status = first < entity->input_count ? find_carried_in(entity, first, &found) : WEIR_OK;

	/* Then the others: the inputs received next wait on the same stream. */
	for (size_t i = 0; !status && !found && i < entity->input_count; i++)
		if (i != first)
			status = find_carried_in(entity, i, &found);
	if (!status)
		status = found ? entity_share_stream(entity, found, &index) : WEIR_E_CLOSED;
	if (!status)
		entity_set_current_stream(entity, index, false, true);
	if (status != WEIR_E_CLOSED)
		return status;
	status = entity_default_stream(entity, &index);
	if (!status)
		entity_set_current_stream(entity, index, false, false);
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
		for (size_t f = 0; !status && f < n; f++) {
			weir_fence fence = entity->fetched[f];
			/* A promise that is over may be stale by now, and is refused then. */
			if (!wr_fence_is_promise(fence) || !wr_promise_over(entity->graph->system, fence))
				status = weir_stream_wait(entity->current_stream, fence);
		}
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

/* Makes stream `after` wait for the work that is now on stream `before`. */
static weir_status order_streams(weir_entity *entity, size_t before, size_t after)
{
	struct wr_entity_stream *items = entity->streams.items;
	bool unfenced = has_unfenced_work(&items[before]);
	weir_fence fence;
	weir_status status;

	if (before == after || weir_stream_same(items[before].stream, items[after].stream))
		return WEIR_OK;
	status = weir_stream_record(items[before].stream, &fence);
	if (status)
		return status;
	if (!unfenced) /* else the end of the tick still fences the same work */
		items[before].last = fence;
	return weir_stream_wait(items[after].stream, fence);
}

/* The work would be replayed for messages that come with other streams. */
static weir_status refuse_captured(const weir_context *context)
{
	return wr_error_blame(wr_capture_refuse(context->capture, "enqueue has its stream and the entity's "
								  "named ones alone"),
			      entity_name(context));
}

weir_status weir_context_receive_stream(weir_context *context, unsigned input, unsigned flags,
					weir_stream **out)
{
	weir_entity *entity = context->entity;
	const char *name = entity_name(context);
	size_t index = 0;
	weir_status status = wr_flags_check("weir_context_receive_stream", flags,
					    WEIR_RECEIVE_TAKE_NONE | WEIR_RECEIVE_SYNC_DEFAULT);

	if (status)
		return status;
	if (context->capture)
		return refuse_captured(context);
	if (!context->computing)
		return wr_fail_in(WEIR_E_INVALID, name,
				  "streams are received in compute: "
				  "its messages are taken when it begins");
	if (input >= entity->input_count)
		return wr_fail_in(WEIR_E_INVALID, name, "a stream is received on input %u of %zu", input,
				  entity->input_count);
	status = choose_current(entity, input, !(flags & WEIR_RECEIVE_TAKE_NONE));
	if (status)
		return status;
	status = begin_current(entity);
	if (!status && !context->stream_used && !entity->inputs[input].waited) {
		status = stream_wait_for_input(entity, input);
		entity->inputs[input].waited = !status;
		entity->streams.inputs_waited = true;
	}
	if (!status && flags & WEIR_RECEIVE_SYNC_DEFAULT) {
		/* For code that uses only the default stream: so that one is fenced at the end of the tick.
		 */
		status = entity_default_stream(entity, &index);
		if (!status)
			entity->streams.items[index].used = true;
		if (!status)
			status = order_streams(entity, entity->streams.current - 1, index);
	}
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
	for (size_t f = 0; f < n; f++) {
		size_t index = 0;
		weir_status status = WEIR_OK;
		if (!fetched_stream(entity, f) || fetched_stream_is_listed(entity, f))
			continue;
		if (count < room)
			status = entity_share_stream(entity, entity->fetched[f].stream, &index);
		if (!status && count < room)
			out[count] = entity->streams.items[index].stream;
		if (!status)
			count++;
		else if (status != WEIR_E_CLOSED) /* that one was recycled: its work is complete */
			entity->streams.failure = status;
	}
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
	status = entity_allocate_stream(entity, name, &index);
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
		context->capture ? refuse_captured(context) : entity_default_stream(entity, &index);

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
	return entity_share_stream(entity, weir_stream_id(stream), out);
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

bool weir_context_allocation(const weir_context *context, const void *memory, weir_allocation *out)
{
	return wr_system_allocation(context->entity->graph->system, memory, out);
}

weir_backend weir_context_backend(const weir_context *context)
{
	return wr_system_backend(context->entity->graph->system);
}

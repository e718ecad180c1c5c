/*
 * The fences of a tick. Its end records one fence for each stream that the tick used and adds it to the use
 * set of every payload that the tick took, made or emitted (T4). Emitted messages carry the current stream,
 * or the streams set for their output; of the other streams they get the fences only (T7). A message that was
 * emitted at an earlier point of the tick carries that point, and the fences of the end protect its payload
 * alone (T12). If there is no memory for a fence, the marks of the tick stay, and the next call does all of
 * it again.
 */
#include "scheduler/tick_fences.h"

#include "base/memory.h"
#include "base/status.h"
#include "scheduler/gpu_time.h"
#include "scheduler/graph.h"

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

weir_status wr_entity_stream_record(struct wr_entity_stream *item, weir_fence *out)
{
	bool unfenced = has_unfenced_work(item);
	weir_status status = weir_stream_record(item->stream, out);

	if (!status && !unfenced)
		item->last = *out;
	return status;
}

/* --- the references of a message --- */

static size_t count_emitted(const weir_entity *entity, const weir_message *message)
{
	size_t count = 0;

	for (size_t i = 0; i < entity->output_count; i++)
		for (size_t k = 0; k < entity->outputs[i].emitted_count; k++)
			count += entity->outputs[i].emitted[k] == message;
	return count;
}

/* References that belong to this tick: received, emitted. */
static size_t count_direct(const weir_entity *entity, const weir_message *message)
{
	size_t count = count_emitted(entity, message);

	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; k < entity->inputs[i].taken_count; k++)
			count += entity->inputs[i].taken[k] == message;
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

static bool is_listed_before(const weir_entity *entity, size_t n, const weir_message *message)
{
	while (n-- > 0)
		if (message_of_tick(entity, n) == message)
			return true;
	return false;
}

/* References to a part by packs that this tick alone holds. */
static size_t count_by_packs(const weir_entity *entity, const weir_message *part)
{
	const weir_message *pack;
	size_t count = 0;

	for (size_t n = 0; (pack = message_of_tick(entity, n)); n++) {
		size_t held = wr_pack_count_held(pack, part);
		if (held && wr_message_references(pack) <= count_direct(entity, pack) &&
		    !is_listed_before(entity, n, pack))
			count += held;
	}
	return count;
}

/* Not inlined: a message made in this tick is not searched for. */
__attribute__((noinline)) static bool has_references_beside(const weir_entity *entity,
							    const weir_message *message)
{
	size_t references = wr_message_references(message), held = count_direct(entity, message);

	if (references > held && wr_pool_has(entity->graph->pool, WR_POOL_PACKS))
		held += count_by_packs(entity, message);
	return references > held;
}

/* --- what its work is to a message --- */

static enum wr_part default_part(const struct wr_entity_streams *streams, size_t index)
{
	return streams->emits_carry && index + 1 == streams->current ? WR_CARRIED : WR_PRODUCED;
}

/* How the work of the stream at `index` concerns what this tick makes for the output. */
static enum wr_part output_part(const struct wr_entity_streams *streams, size_t output, size_t index)
{
	bool any = false, set = false; /* some stream was set for the output; this one was */

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
static weir_status fence_if_made(const weir_entity *entity, weir_message *message, weir_fence fence,
				 enum wr_part part)
{
	if (wr_message_delivered(message) && has_references_beside(entity, message))
		part = WR_USED;
	return wr_message_add_fence(message, fence, part);
}

/* Each part of a pack is fenced as if it were emitted alone: one may be new, another one passed on. */
static weir_status fence_made(const weir_entity *entity, weir_message *message, weir_fence fence,
			      enum wr_part part)
{
	weir_status status = WEIR_OK;
	size_t parts = weir_message_parts(message);

	if (!parts)
		return fence_if_made(entity, message, fence, part);
	for (size_t i = 0; !status && i < parts; i++)
		status = fence_if_made(entity, weir_message_part_at(message, i), fence, part);
	return status;
}

static bool is_early(const struct wr_entity_streams *streams, size_t output, size_t place)
{
	for (size_t i = 0; i < streams->early_count; i++)
		if (streams->early[i].output == output && streams->early[i].place == place)
			return true;
	return false;
}

static weir_status fence_emitted(weir_entity *entity, size_t index, weir_fence fence)
{
	const struct wr_entity_streams *streams = &entity->streams;
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < entity->output_count; i++) {
		for (size_t k = 0; !status && k < entity->outputs[i].emitted_count; k++) {
			weir_message *message = entity->outputs[i].emitted[k];
			enum wr_part part =
				is_early(streams, i, k) ? WR_USED : output_part(streams, i, index);
			status = fence_made(entity, message, fence, part);
		}
	}
	return status;
}

static bool is_emitted_in_pack(const weir_entity *entity, const weir_message *message)
{
	for (size_t i = 0; i < entity->output_count; i++)
		for (size_t k = 0; k < entity->outputs[i].emitted_count; k++)
			if (wr_pack_count_held(entity->outputs[i].emitted[k], message))
				return true;
	return false;
}

/* A message made and kept may be emitted by a later tick, which does not know of the work of this one. */
static enum wr_part kept_part(const weir_entity *entity, size_t index, const weir_message *made)
{
	if (count_emitted(entity, made))
		return WR_USED;
	if (wr_pool_has(entity->graph->pool, WR_POOL_PACKS) && is_emitted_in_pack(entity, made))
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
	return status ? status : fence_emitted(entity, index, fence);
}

/* --- the end of a tick --- */

static bool took_message(const weir_entity *entity)
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
	weir_status status;

	item->ended = false;
	if (!has_unfenced_work(item))
		return WEIR_OK;
	item->used = true; /* so that a failed call is repeated */
	wr_stream_begin_tick(item->stream);
	if (item->span)
		(void)wr_span_end(item->span);
	status = weir_stream_record(item->stream, &item->last);
	item->ended = !status;
	wr_stream_note_tick(item->stream, took_message(entity));
	return status ? status : fence_payloads(entity, index, item->last);
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

static weir_status fence_early(weir_entity *entity)
{
	struct wr_entity_streams *streams = &entity->streams;
	weir_status status = WEIR_OK;

	for (size_t i = 0; !status && i < streams->early_count; i++) {
		const struct wr_early_message *early = &streams->early[i];
		weir_message *message = entity->outputs[early->output].emitted[early->place];
		status = fence_made(entity, message, early->fence, WR_CARRIED);
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

weir_status wr_entity_fence_tick(weir_entity *entity)
{
	weir_status status = WEIR_OK;
	bool again = false;

	if (entity->streams.early_count)
		again = (status = fence_early(entity)) == WEIR_E_NOMEM;
	for (size_t i = 0; i < entity->streams.count; i++) {
		weir_status one = fence_stream(entity, i);
		again |= one == WEIR_E_NOMEM;
		status = status ? status : one;
	}
	if (again) {
		/* The tick fails by this one; a later call fails for want of a fence alone. */
		entity->streams.failure = WEIR_OK;
		return WEIR_E_NOMEM;
	}
	end_tick(entity);
	status = status ? status : entity->streams.failure;
	entity->streams.failure = WEIR_OK;
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

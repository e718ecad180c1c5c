/*
 * Stamps. What a tick emits gets its stamp before it is delivered; a message that was delivered keeps the one
 * that it has, or none, since others may read it. Where a graph has no stamps, a tick pays one load.
 */
#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"
#include "scheduler/graph.h"
#include "scheduler/pool.h"

static inline bool is_stamped(const weir_message *message)
{
	return wr_load_acquire(&((weir_message *)message)->stamped) == WR_STAMPED;
}

static void message_stamp(weir_message *message, weir_stamp stamp)
{
	message->stamp_time = stamp.time;
	message->stamp_tag = stamp.tag;
	wr_store_release(&message->stamped, WR_STAMPED);
	wr_pool_mark(message->pool, WR_POOL_STAMPS);
}

weir_status weir_message_set_stamp(weir_message *message, weir_stamp stamp)
{
	if (wr_message_delivered(message))
		return wr_fail(WEIR_E_INVALID, "call weir_message_set_stamp on a message before it is pushed "
					       "or emitted: others may read it by now");
	message_stamp(message, stamp);
	return WEIR_OK;
}

weir_stamp weir_message_stamp(const weir_message *message)
{
	return is_stamped(message) ? (weir_stamp){message->stamp_time, message->stamp_tag}
				   : (weir_stamp){0, 0};
}

weir_status weir_context_set_stamp(weir_context *context, weir_stamp stamp)
{
	const weir_entity *entity = context->entity;

	if (!context->computing)
		return wr_fail_in(WEIR_E_INVALID, entity->plan->name,
				  "weir_context_set_stamp is for compute only");
	context->stamp = stamp;
	context->stamp_set = true;
	wr_pool_mark(entity->graph->pool, WR_POOL_STAMPS);
	return WEIR_OK;
}

/* --- what a tick emits --- */

static bool find_stamp(const weir_entity *entity, weir_stamp *out)
{
	const weir_message *first = NULL; /* received */

	for (size_t i = 0; i < entity->input_count && !first; i++)
		if (entity->inputs[i].taken_count)
			first = entity->inputs[i].taken[0];
	if (entity->context.stamp_set)
		*out = entity->context.stamp;
	else if (first && is_stamped(first))
		*out = weir_message_stamp(first);
	else
		return false;
	return true;
}

/* Another thread may push another message with this part: whichever comes first, it has a stamp after this.
 */
static void part_stamp_if_new(weir_message *part, weir_stamp stamp)
{
	uint8_t none = WR_STAMPED_NOT;

	if (!wr_message_delivered(part) && wr_cas(&part->stamped, &none, WR_STAMPED_WRITES))
		message_stamp(part, stamp);
	while (wr_load_acquire(&part->stamped) == WR_STAMPED_WRITES)
		wr_thread_yield();
}

void wr_message_stamp_parts(weir_message *message)
{
	weir_stamp stamp;

	if (!is_stamped(message) || wr_message_delivered(message))
		return;
	stamp = weir_message_stamp(message);
	for (size_t i = 0, parts = weir_message_parts(message); i < parts; i++)
		part_stamp_if_new(weir_message_part_at(message, i), stamp);
}

static void stamp_emitted(weir_entity *entity, const weir_stamp *stamp)
{
	for (size_t i = 0; i < entity->output_count; i++) {
		for (size_t k = 0; k < entity->outputs[i].emitted_count; k++) {
			weir_message *message = entity->outputs[i].emitted[k];
			if (stamp && !is_stamped(message) && !wr_message_delivered(message))
				message_stamp(message, *stamp);
			wr_message_stamp_parts(message);
		}
	}
}

/* --- how old messages are --- */

void wr_latencies_clear(struct wr_latencies *latencies)
{
	wr_note(&latencies->count, 0);
	wr_note(&latencies->sum, 0);
	wr_note(&latencies->max, 0);
}

void wr_latencies_add(struct wr_latencies *latencies, const weir_message *message, int64_t *now)
{
	int64_t age;

	if (!is_stamped(message) || !message->stamp_time)
		return;
	*now = *now ? *now : wr_now();
	age = *now > message->stamp_time ? *now - message->stamp_time : 0;
	wr_count(&latencies->count, 1);
	wr_count(&latencies->sum, age);
	if (age > wr_read(&latencies->max))
		wr_note(&latencies->max, age);
}

static void count_latencies(weir_entity *entity)
{
	int64_t now = 0;

	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; k < entity->inputs[i].taken_count; k++)
			wr_latencies_add(&entity->counters.latencies, entity->inputs[i].taken[k], &now);
}

void wr_entity_stamp_tick(weir_entity *entity)
{
	weir_stamp stamp;

	stamp_emitted(entity, find_stamp(entity, &stamp) ? &stamp : NULL);
	entity->context.stamp_set = false;
	if (!entity->receivers)
		count_latencies(entity);
}

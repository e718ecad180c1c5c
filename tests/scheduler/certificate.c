#include "certificate.h"

#include <stdlib.h>
#include <string.h>

enum finding { MET, UNMET, NEVER };
enum { MESSAGES = 256 }; /* of one pool; more blocks do not occur in these tests */

static bool is_done(const weir_entity *entity)
{
	return entity && wr_read(&entity->state) & WR_DONE;
}

static uint64_t queued(const struct wr_queue *queue)
{
	return wr_read(&queue->tail) - wr_read(&queue->head);
}

/* --- what the plan says of ports --- */

static enum finding enough_messages(const weir_entity *entity, unsigned port, uint64_t least)
{
	const struct wr_input *input = &entity->inputs[port];
	uint64_t take = input->plan->take == WEIR_TAKE_ALL ? 1 : input->plan->take, sum = 0;
	uint64_t needed = !input->take ? 0 : least ? least : take; /* nothing while the port is held */
	bool open = false, each = input->plan->port->flags & WEIR_PORT_ANY_SIZE, lacks = false, over = false;

	for (size_t i = 0; i < input->count; i++) {
		const struct wr_queue *queue = &input->connections[i]->queue;

		sum += queued(queue);
		open |= !wr_read(&queue->closed);
		lacks |= queued(queue) < needed;
		over |= queued(queue) < needed && wr_read(&queue->closed);
	}
	if (!input->count || (each ? !lacks : sum >= needed))
		return MET;
	return each ? (over ? NEVER : UNMET) : (open ? UNMET : NEVER);
}

static enum finding room_behind(const weir_entity *entity, unsigned port, uint64_t least)
{
	const struct wr_output *output = &entity->outputs[port];
	uint64_t needed = least ? least : output->plan->max_emits;

	for (size_t i = 0; i < output->count; i++) {
		const struct wr_connection *connection = output->connections[i];
		const struct wr_queue *queue = &connection->queue;

		if (queue->policy == WEIR_POLICY_BLOCK && !is_done(connection->receiver) &&
		    queue->capacity < queued(queue) + needed)
			return UNMET;
	}
	return MET;
}

/* --- memory --- */

/* Messages of a pool, each once: branches of a graph may hold the same one, or packs with the same part. */
struct found {
	const struct wr_memory_pool *pool;
	const weir_message *list[MESSAGES];
	size_t count;
};

static void find(struct found *found, const weir_message *message)
{
	for (size_t i = 0; i < weir_message_parts(message); i++)
		find(found, weir_message_part_at(message, i));
	if (wr_message_memory_pool(message) != found->pool)
		return;
	for (size_t i = 0; i < found->count; i++)
		if (found->list[i] == message)
			return;
	if (found->count == MESSAGES)
		abort();
	found->list[found->count++] = message;
}

static enum finding memory_left(const weir_graph *graph, const struct wr_plan_memory *claim)
{
	struct found found = {.pool = &graph->memory_pools[claim->pool]};
	const struct wr_plan_memory_pool *plan = found.pool->plan;
	uint64_t needed = claim->units;

	for (size_t c = 0; c < graph->connection_count; c++) {
		const struct wr_queue *queue = &graph->connections[c]->queue;

		for (uint64_t k = wr_read(&queue->head); k != wr_read(&queue->tail); k++)
			find(&found, *wr_queue_slot(queue, k));
	}
	for (size_t i = 0; i < found.count; i++)
		needed += plan->blocks ? 1 : weir_message_size(found.list[i]);
	return needed > (plan->blocks ? plan->blocks : plan->max_size) ? UNMET : MET;
}

/* --- entities --- */

static enum finding condition_holds(const weir_entity *entity, const struct wr_plan_condition *condition)
{
	/* The last ones are the fuzzer's (tests/fuzz): all of these wait for no more than time and the
	 * device. */
	static const char *const passing[] = {"periodic",    "in_flight",  "memory_available", "asynchronous",
					      "cuda_stream", "fz_pending", "fz_either",        "fz_own",
					      "fz_own_late", "fz_pause"};
	const char *kind = condition->kind->name;
	size_t known = 0;

	if (!strcmp(kind, "message_available"))
		return enough_messages(entity, (unsigned)weir_values_int(condition->values, "port"),
				       (uint64_t)weir_values_int(condition->values, "min_size"));
	if (!strcmp(kind, "downstream_message_affordable"))
		return room_behind(entity, (unsigned)weir_values_int(condition->values, "port"),
				   (uint64_t)weir_values_int(condition->values, "min_size"));
	if (!strcmp(kind, "count"))
		return (uint64_t)weir_values_int(condition->values, "count") >
				       wr_read(&entity->counters.ticks)
			       ? MET
			       : NEVER; /* without end: a huge number */
	if (!strcmp(kind, "boolean"))
		return weir_values_bool(condition->values, "enable_tick") ? MET : UNMET;
	while (known < sizeof passing / sizeof *passing && strcmp(kind, passing[known]))
		known++;
	if (known == sizeof passing / sizeof *passing)
		return UNMET;
	for (unsigned i = 0; i < entity->input_count; i++)
		if (wr_condition_names(condition, i, true) && enough_messages(entity, i, 0))
			return enough_messages(entity, i, 0);
	return MET;
}

/* The worst finding: NEVER ends an entity whatever else it lacks. */
static enum finding could_go_on(const weir_entity *entity)
{
	enum finding worst = MET, found;
	bool receives = entity->plan->effects || !entity->receivers;

	for (size_t i = 0; i < entity->output_count; i++) {
		const struct wr_output *output = &entity->outputs[i];

		worst = room_behind(entity, (unsigned)i, 0) > worst ? UNMET : worst;
		for (size_t k = 0; k < output->count; k++)
			receives |= !is_done(output->connections[k]->receiver);
	}
	for (size_t i = 0; i < entity->plan->memory_count; i++)
		worst = memory_left(entity->graph, &entity->plan->memory[i]) > worst ? UNMET : worst;
	for (size_t i = 0; i < entity->plan->condition_count; i++) {
		found = condition_holds(entity, &entity->plan->conditions[i]);
		worst = found > worst ? found : worst;
	}
	return receives ? worst : NEVER;
}

const weir_entity *certificate_refuted_by(const weir_scheduler *scheduler)
{
	const weir_graph *graph = scheduler->graph;

	for (size_t i = 0; i < graph->entity_count; i++)
		if (!is_done(&graph->entities[i]) && could_go_on(&graph->entities[i]) != UNMET)
			return &graph->entities[i];
	return NULL;
}

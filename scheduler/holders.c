/*
 * References are bare counts, so what the program holds is found, not stored. What it took from an outlet is
 * marked, under the outlet's lock, and counted by its pool (`outside`) until it is free. A marked message
 * that has no more references than the graph's queues, those by packs in queues included, is the graph's
 * alone. The rest of what is outside is the program's, or an operator keeps it.
 *
 * The loop looks when the live count is 0: no worker is awake, every outlet is empty, every inlet closed, so
 * only the program can move, and it only lets go. (1) It sets `looking`. (2) It takes a live reference, which
 * must be the only one, and owns each entity, so that the queues stand still even if the program pokes one.
 * (3) It reads what is outside, then the references. (4) It drops its reference, which must be the last one,
 * (5) then gives up the entities, so that none has run in between. The word that (4) leaves is the one to
 * close the run with: if the count has left 0 since, the CAS fails. A thread of the program first drops a
 * reference, or frees a unit, then looks at `looking`, and kicks the loop if it was set: so either (3) sees
 * the change, or the loop looks again. All seq_cst. What refused an entity is known before: the list is under
 * the lock of the resource. Model: tests/models/m15_held.c.
 */
#include "scheduler/holders.h"

#include <inttypes.h>

#include "scheduler/ends.h"
#include "scheduler/memory.h"
#include "scheduler/message.h"
#include "scheduler/scheduler.h"
#include "scheduler/run.h"

/* --- the messages in queues --- */

/* Between the caller's first look and its last one nothing else touches the queue. */
static void visit_queue(struct wr_queue *queue, void (*visit)(weir_message *message))
{
	for (uint64_t i = wr_read(&queue->head), end = wr_queue_newest_tail(queue); i != end; i++)
		visit(*wr_queue_slot(queue, i));
	if (queue->shown)
		visit(queue->shown);
}

static bool is_done(weir_entity *entity)
{
	return wr_load(&entity->state) & WR_DONE;
}

static void visit_all(weir_graph *graph, void (*visit)(weir_message *message))
{
	for (size_t i = 0; i < wr_graph_count_all(graph); i++) {
		weir_entity *entity = wr_graph_entity_at(graph, i);

		for (size_t k = 0; !is_done(entity) && k < entity->input_count; k++)
			for (size_t c = 0; c < entity->inputs[k].count; c++)
				visit_queue(&entity->inputs[k].connections[c]->queue, visit);
	}
}

static uint64_t own_units(const struct wr_memory_pool *pool, const weir_message *message)
{
	return wr_message_memory_pool(message) == pool ? wr_memory_pool_units(pool, message->size) : 0;
}

/* --- the graph's own references --- */

#define SEEN (UINT32_C(1) << 31) /* beside the count, so that a message in two queues counts once */

static void forget(weir_message *message)
{
	message->counted = 0;
	for (size_t i = 0, parts = weir_message_parts(message); i < parts; i++)
		forget(weir_message_part_at(message, i));
}

static void count_slot(weir_message *message)
{
	message->counted++;
}

static bool is_alone(const weir_message *message)
{
	return (message->counted & ~SEEN) == wr_load(&((weir_message *)message)->references);
}

/* The program could take a part out of a pack that it holds. */
static void count_parts(weir_message *message)
{
	size_t parts = weir_message_parts(message);

	if (!parts || message->counted & SEEN || !is_alone(message))
		return;
	message->counted |= SEEN;
	for (size_t i = 0; i < parts; i++)
		weir_message_part_at(message, i)->counted += WR_PART_HELD;
}

/* What was outside and is the graph's alone is not the program's. */
static void add_once(weir_message *message)
{
	struct wr_memory_pool *pool = message->counted & SEEN ? NULL : wr_message_memory_pool(message);

	if (pool) {
		uint64_t units = own_units(pool, message);

		message->counted |= SEEN;
		pool->queued += units;
		if (wr_load_relaxed(&message->outside) && is_alone(message))
			pool->program -= units < pool->program ? units : pool->program;
	}
	for (size_t i = 0, parts = weir_message_parts(message); i < parts; i++)
		add_once(weir_message_part_at(message, i));
}

/* Counts `queued` and `program` of all pools. Thread: owns every entity. */
static void count_units(weir_graph *graph)
{
	for (size_t i = 0; i < graph->memory_pool_count; i++) {
		graph->memory_pools[i].queued = 0;
		graph->memory_pools[i].program = wr_load(&graph->memory_pools[i].outside);
	}
	visit_all(graph, forget);
	visit_all(graph, count_slot);
	if (wr_pool_has(graph->pool, WR_POOL_PACKS))
		visit_all(graph, count_parts);
	visit_all(graph, add_once);
}

/* --- may the run end? --- */

static bool waits_for(struct wr_memory_pool *pool)
{
	return wr_load(&pool->outside) && wr_shared_lacks(&pool->shared);
}

static bool some_pool_waits(weir_graph *graph, bool (*waits)(struct wr_memory_pool *pool))
{
	for (size_t i = 0; i < graph->memory_pool_count; i++)
		if (waits(&graph->memory_pools[i]))
			return true;
	return false;
}

static bool program_holds(struct wr_memory_pool *pool)
{
	return waits_for(pool) && pool->program;
}

/* Without a live reference; one that was poked meanwhile is queued with one. */
static void leave_entities(weir_scheduler *scheduler, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		weir_entity *entity = wr_graph_entity_at(scheduler->graph, i);
		uint32_t running = WR_RUNNING;

		if (is_done(entity) || wr_cas(&entity->state, &running, WR_IDLE))
			continue;
		wr_live_take(&scheduler->live);
		wr_exchange(&entity->state, WR_POKED);
		wr_ready_inject(scheduler, entity);
	}
}

/* Returns false, and owns none, if one is not parked. */
static bool own_entities(weir_scheduler *scheduler)
{
	for (size_t i = 0; i < wr_graph_count_all(scheduler->graph); i++) {
		weir_entity *entity = wr_graph_entity_at(scheduler->graph, i);
		uint32_t idle = WR_IDLE;

		if (is_done(entity) || wr_cas(&entity->state, &idle, WR_RUNNING))
			continue;
		leave_entities(scheduler, i);
		return false;
	}
	return true;
}

/* Returns true if the program holds memory that an entity waits for. *alone: nothing else moved meanwhile. */
static bool look(weir_scheduler *scheduler, uint64_t *word, bool *alone)
{
	bool holds = false, owned;

	wr_store(&scheduler->graph->pool->looking, true);
	wr_live_take(&scheduler->live);
	*alone = wr_live_count(&scheduler->live) == 1 && own_entities(scheduler);
	owned = *alone;
	if (owned) {
		count_units(scheduler->graph);
		holds = some_pool_waits(scheduler->graph, program_holds);
	}
	*word = wr_fetch_sub(&scheduler->live, 1) - 1;
	*alone = owned && !(*word & WR_LIVE_COUNT);
	if (owned)
		leave_entities(scheduler, wr_graph_count_all(scheduler->graph));
	else if (!(*word & WR_LIVE_COUNT))
		wr_loop_kick(&scheduler->loop);
	return holds;
}

bool wr_holders_program_may_go_on(weir_scheduler *scheduler, uint64_t *word)
{
	bool alone, holds, looking = wr_load(&scheduler->graph->pool->looking);

	if (!some_pool_waits(scheduler->graph, waits_for))
		return false;
	if (*word == scheduler->looked_word && (looking || !scheduler->looked_holds))
		return scheduler->looked_holds; /* nothing has changed since */
	holds = look(scheduler, word, &alone);
	if (!alone)
		return true;
	scheduler->looked_word = *word;
	scheduler->looked_holds = holds;
	return holds;
}

bool wr_holders_hold_open(weir_scheduler *scheduler)
{
	return scheduler->looked_holds && wr_load(&scheduler->live) == scheduler->looked_word;
}

void wr_holders_reset(weir_scheduler *scheduler)
{
	wr_store(&scheduler->graph->pool->looking, false);
	scheduler->looked_word = UINT64_MAX;
}

/* --- where it is, for people --- */

static uint64_t units_of(const struct wr_memory_pool *pool, const weir_message *message)
{
	uint64_t units = own_units(pool, message);

	for (size_t k = 0, parts = weir_message_parts(message); k < parts; k++)
		units += own_units(pool, weir_message_part_at(message, k));
	return units;
}

/* Units in a queue, 0 if its receiver runs or is DONE, or it is a `pop` queue: tries to own it, waits for
 * nothing. The queue of an outlet is the program's side: under its lock. */
static uint64_t queue_units(const struct wr_memory_pool *pool, struct wr_connection *connection,
			    const weir_entity *owned, bool at_end)
{
	struct wr_queue *queue = &connection->queue;
	weir_entity *receiver = connection->receiver;
	bool tried = !at_end && receiver && receiver != owned;
	uint64_t units = 0;

	if (connection->outlet)
		wr_mutex_lock(&connection->outlet->lock);
	else if (is_done(receiver) || (!at_end && wr_queue_evicts(queue)))
		return 0; /* its sender may evict what the loop reads */
	else if (tried && !wr_entity_own_parked(pool->graph->scheduler, receiver))
		return 0;
	for (uint64_t i = wr_read(&queue->head), end = wr_queue_newest_tail(queue); i != end; i++)
		units += units_of(pool, *wr_queue_slot(queue, i));
	units += queue->shown ? units_of(pool, queue->shown) : 0;
	if (connection->outlet)
		wr_mutex_unlock(&connection->outlet->lock);
	else if (tried)
		wr_entity_leave_parked(pool->graph->scheduler, receiver);
	return units;
}

weir_entity *wr_holders_describe(struct wr_memory_pool *pool, const weir_entity *owned, bool at_end,
				 struct wr_text *text)
{
	weir_graph *graph = pool->graph;
	weir_entity *holder = NULL;
	uint64_t most = 0, found = 0, rest, program;
	const char *between = ": ";

	for (size_t i = 0; i < graph->connection_count; i++) {
		struct wr_connection *connection = graph->connections[i];
		uint64_t units = queue_units(pool, connection, owned, at_end);

		if (!units)
			continue;
		wr_text_add(text, "%s%" PRIu64 " in %s -> %s", between, units, connection->from,
			    connection->to);
		between = ", ";
		found += units;
		if (units > most && connection->receiver) {
			most = units;
			holder = connection->receiver;
		}
	}
	rest = wr_shared_used(&pool->shared);
	program = wr_load(&pool->outside);
	if (at_end) {
		count_units(graph);
		found = pool->queued;
		program = pool->program;
	}
	rest = rest > found ? rest - found
			    : 0; /* while the run is on, a message in two queues counts twice */
	program = program < rest ? program : rest;
	if (program)
		wr_text_add(text, "%s%" PRIu64 " held by the program or an operator", between, program);
	between = program ? ", " : between;
	if (rest > program)
		wr_text_add(text, "%s%" PRIu64 " %s", between, rest - program,
			    at_end ? "kept by operators" : "in ticks, or kept by operators");
	return program ? NULL : holder; /* it may let go */
}

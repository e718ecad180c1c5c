/*
 * A set K of parked entities stands for ever if what each of them waits for can be changed by members of K
 * alone (S6; tests/models/m14_stuck.c: change it first). It waits for messages: every sender that is not
 * closed is in K (an open inlet is not), on each port that lacks some, since a sender that closes may end the
 * entity; for room: the receiver whose queue is full is in K; for memory: so much of the pool lies in queues
 * whose receivers are in K that the rest is too little. It may wait for a time, the device or its bound as
 * well: that changes nothing. It is not in K if it could become DONE by anything outside: it waits for
 * anything else, it has a condition that the program may end, or all its receivers are outside. K is the
 * greatest such set: what does not belong is taken out until nothing changes. If no member has work
 * (messages, a full queue, a refused claim), K has finished and is left alone.
 *
 * Every stuck_every (half a second) the loop takes those that have not ticked for that long, by what their
 * last reviews published. If the set is not empty it is proved in three rounds. In each the loop owns one
 * member after the other (C5) and sees that it has not ticked; in the second it asks what the member waits
 * for. So from the end of the first round on no member ticked until it was asked, and the first that ticks
 * later would need what only a member that ticks can give. The third round is for memory, which is counted
 * while others are asked. Pokes and reviews do not matter: a heartbeat that pushes into K pokes it for ever.
 *
 * A drain is looked at twice, without regard to how long something stood: when it begins, and when it has
 * come to rest, where the loop's thread owns all. What would go on but for the drain is not in K: a sender
 * that is closed counts as outside then.
 *
 * While nothing ticks nothing new can stand: then the loop stops looking, and a worker that is woken kicks
 * it. The loop stores that it rests, then looks whether all workers sleep; a worker withdraws its sleep, then
 * reads that word (seq_cst), so one of them sees the other.
 */

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "scheduler/ends.h"
#include "scheduler/holders.h"
#include "scheduler/memory.h"
#include "scheduler/scheduler.h"
#include "scheduler/run.h"
#include "scheduler/standstill.h"

enum { TRIES = 8 }; /* a useless poke may keep a member busy at the moment of a look */

/* Memory of a pool in a message that waits for an entity. */
struct share {
	const weir_message *message;
	struct wr_memory_pool *pool;
	uint64_t units;
	uint32_t receiver;
};

struct proof {
	weir_scheduler *scheduler;
	struct wr_standstill waits; /* what the members wait for */
	struct share *shares;       /* by message: one that several receivers share counts once */
	size_t share_count, share_room;
	struct member {
		bool works;     /* it has messages, a full queue or a refused claim */
		uint64_t units; /* of one pool, in its queues */
	} * members;            /* by entity */
};

/* Returns true if the entity is of the part that was found. Thread: loop. */
static bool stuck_is_found(weir_entity *entity)
{
	return entity->stuck;
}

static bool inside(const weir_entity *entity)
{
	return entity && entity->stuck;
}

/* --- what belongs --- */

/* Returns true if messages for the port can come from members alone. */
static bool fed_from_inside(const struct proof *proof, const struct wr_input *input)
{
	size_t open = 0;

	for (size_t i = 0; i < input->count; i++) {
		struct wr_connection *connection = input->connections[i];

		if (wr_queue_closed(&connection->queue)) {
			/* any_size: one closed queue may end the entity. Drain: its sender may have obeyed it
			 */
			if (input->any_size ||
			    (proof && wr_load(&proof->scheduler->stop_asked) & WR_STOP_DRAIN))
				return false;
			continue;
		}
		if (!inside(connection->sender))
			return false;
		open++;
	}
	return open;
}

/* If all its receivers are DONE, so is the entity (S5): one that is a member never is. */
static bool has_receiver_inside(const weir_entity *entity)
{
	if (!entity->receivers || entity->plan->effects)
		return true;
	for (size_t i = 0; i < entity->output_count; i++)
		for (size_t k = 0; k < entity->outputs[i].count; k++)
			if (inside(entity->outputs[i].connections[k]->receiver))
				return true;
	return false;
}

/* Returns true if nothing but the entity's own ticks, its senders and its receivers can end it. */
static bool ends_by_graph_alone(const weir_entity *entity)
{
	static const char *const kinds[] = {"message_available",
					    "downstream_message_affordable",
					    "count",
					    "periodic",
					    "cuda_stream",
					    "in_flight",
					    "memory_available"};

	for (size_t i = 0; i < entity->condition_count; i++) {
		const struct wr_plan_condition *plan = entity->conditions[i].plan;
		const char *name = plan->kind->name;
		size_t k = 0;

		/* A set has the port that it waits for, unless it may lack ports (C12). */
		if (!strcmp(name, "aligned") && !strcmp(weir_values_string(plan->values, "missing"), "wait"))
			continue;
		while (k < sizeof kinds / sizeof kinds[0] && strcmp(kinds[k], name))
			k++;
		if (k == sizeof kinds / sizeof kinds[0])
			return false;
	}
	return true;
}

/* By what its last review published. */
static bool may_belong(weir_entity *entity)
{
	uint64_t word = wr_load_relaxed(&entity->cause);
	uint32_t on = wr_subject_of_word(word);

	switch (wr_cause_of_word(word)) {
	case WEIR_CAUSE_MESSAGES:
		return on < entity->input_count && fed_from_inside(NULL, &entity->inputs[on]) &&
		       has_receiver_inside(entity);
	case WEIR_CAUSE_ROOM:
	case WEIR_CAUSE_MEMORY:
		return has_receiver_inside(entity);
	case WEIR_CAUSE_NONE:
	case WEIR_CAUSE_DEVICE:
	case WEIR_CAUSE_BOUND:
	case WEIR_CAUSE_TIME:
	case WEIR_CAUSE_DESCRIPTOR:
	case WEIR_CAUSE_TOLD:
	case WEIR_CAUSE_OWN:
	case WEIR_CAUSE_WORKER:
	case WEIR_CAUSE_COMPUTE:
	case WEIR_CAUSE_START:
	case WEIR_CAUSE_DRAIN:
	case WEIR_CAUSE_DONE:
		break;
	}
	return false;
}

/* --- memory --- */

/* Counts for each pool the units that lie in queues of members. */
static void count_inside(const struct proof *proof, weir_graph *graph)
{
	for (size_t i = 0; i < graph->memory_pool_count; i++)
		graph->memory_pools[i].units_inside = 0;
	for (size_t i = 0; i < proof->share_count;) {
		const struct share *first = &proof->shares[i];
		bool held = false;

		for (; i < proof->share_count && proof->shares[i].message == first->message; i++)
			held |= wr_graph_entity_at(proof->waits.graph, proof->shares[i].receiver)->stuck;
		first->pool->units_inside += held ? first->units : 0;
	}
}

static void add_shares(struct proof *proof, const weir_message *message, uint32_t receiver)
{
	struct wr_memory_pool *pool = wr_message_memory_pool(message);

	for (size_t i = 0, parts = weir_message_parts(message); i < parts; i++)
		add_shares(proof, weir_message_part_at(message, i), receiver);
	if (!pool || proof->waits.status)
		return;
	proof->waits.status =
		wr_grow(&proof->shares, &proof->share_room, proof->share_count + 1, sizeof *proof->shares);
	if (!proof->waits.status)
		proof->shares[proof->share_count++] = (struct share){
			message, pool, wr_memory_pool_units(pool, weir_message_size(message)), receiver};
}

static int compare_shares(const void *a, const void *b)
{
	uintptr_t left = (uintptr_t)((const struct share *)a)->message;
	uintptr_t right = (uintptr_t)((const struct share *)b)->message;

	return (left > right) - (left < right);
}

/* --- the proof --- */

/* Returns true if the cause can be changed by members alone. */
static bool changed_inside(const struct proof *proof, const weir_entity *entity, const struct wr_cause *cause)
{
	if (cause->says != WR_SAYS_WAIT)
		return false;
	if (cause->cause == WEIR_CAUSE_MESSAGES)
		return cause->on < entity->input_count && fed_from_inside(proof, &entity->inputs[cause->on]);
	if (cause->cause == WEIR_CAUSE_ROOM)
		return cause->connection && inside(cause->connection->receiver);
	return cause->claim &&
	       cause->claim->from->size - wr_memory_pool_of(cause->claim)->units_inside < cause->claim->units;
}

static bool belongs(const struct proof *proof, const weir_entity *entity)
{
	const struct wr_standstill *waits = &proof->waits;
	bool held = false;

	for (size_t i = waits->first[entity->id]; i < waits->first[entity->id + 1]; i++) {
		const struct wr_cause *cause = &waits->list[i];
		bool here = changed_inside(proof, entity, cause);
		/* Beside a cause within K these neither end the entity nor let it tick. */
		bool harmless = cause->cause == WEIR_CAUSE_TIME || cause->cause == WEIR_CAUSE_DEVICE ||
				cause->cause == WEIR_CAUSE_BOUND || cause->cause == WEIR_CAUSE_ROOM;

		if (cause->says == WR_SAYS_NEVER || (!here && !harmless))
			return false;
		held |= here;
	}
	return held && has_receiver_inside(entity);
}

/*
 * Notes what it holds and whether it has work. The caller owns the entity. What is in a `pop` queue may be
 * evicted by its sender, so it does not count.
 */
static void note_member(struct proof *proof, weir_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; k < entity->inputs[i].count; k++) {
			struct wr_queue *queue = &entity->inputs[i].connections[k]->queue;
			uint64_t tail = wr_queue_evicts(queue) ? 0 : wr_queue_newest_tail(queue);

			for (uint64_t at = wr_read(&queue->head); at < tail; at++)
				add_shares(proof, *wr_queue_slot(queue, at), entity->id);
		}
	proof->members[entity->id].works = wr_entity_queued(entity, false) || wr_claims_refused(entity) ||
					   (entity->receivers && wr_entity_lacks_room(entity));
}

/*
 * One round: takes out those that are busy, or have ticked since they were marked; returns true if there were
 * none. Owns one after the other, so that no tick is half done. `ask`: notes what each member waits for.
 */
static bool see_members(struct proof *proof, bool ask)
{
	weir_scheduler *scheduler = proof->scheduler;
	weir_graph *graph = scheduler->graph;
	bool all = true;

	for (size_t i = 0; i < graph->entity_count; i++) {
		weir_entity *entity = &graph->entities[i];

		if (ask)
			proof->waits.first[i] = proof->waits.count;
		if (!entity->stuck)
			continue;
		entity->stuck = wr_entity_own_parked(scheduler, entity);
		if (entity->stuck) {
			entity->stuck = wr_read(&entity->counters.ticks) == entity->looked_ticks;
			if (entity->stuck && ask) {
				wr_standstill_add_owned(&proof->waits, entity, false);
				note_member(proof, entity);
			}
			wr_entity_leave_parked(scheduler, entity);
		}
		all &= entity->stuck;
	}
	return all;
}

/*
 * Takes out what does not belong, until nothing changes: up and down the graph in turn, as messages are
 * waited for from one side and room from the other. Returns true if entities are left.
 */
static bool reduce(const struct proof *proof, weir_graph *graph)
{
	size_t left = 0, before;
	bool down = true;

	do {
		before = left;
		left = 0;
		if (proof)
			count_inside(proof, graph);
		for (size_t i = 0; i < graph->entity_count; i++) {
			weir_entity *entity = &graph->entities[down ? i : graph->entity_count - 1 - i];

			if (entity->stuck)
				entity->stuck = proof ? belongs(proof, entity) : may_belong(entity);
			left += entity->stuck;
		}
		down = !down;
	} while (left != before);
	return left;
}

/* Leaves what belongs. Returns true if a member has work: else it has finished. */
static bool reduce_asked(struct proof *proof, weir_graph *graph)
{
	bool works = false;

	if (proof->waits.status)
		return false;
	if (proof->share_count)
		qsort(proof->shares, proof->share_count, sizeof *proof->shares, compare_shares);
	reduce(proof, graph);
	for (size_t i = 0; i < graph->entity_count; i++)
		works |= graph->entities[i].stuck && proof->members[i].works;
	return works;
}

/* Of the marked entities leaves those that are proved to stand for ever. Returns true if there are some. */
static bool prove(struct proof *proof)
{
	weir_graph *graph = proof->scheduler->graph;

	wr_standstill_init(&proof->waits, graph);
	if (!proof->members || proof->waits.status)
		return false;
	see_members(proof, false);
	see_members(proof, true);
	for (size_t i = graph->entity_count; i <= wr_graph_count_all(graph); i++)
		proof->waits.first[i] = proof->waits.count;
	return reduce_asked(proof, graph) && see_members(proof, false);
}

/* The same when the run is at rest, and its loop's thread the only one that looks: one round is enough. */
static bool prove_at_rest(struct proof *proof)
{
	weir_graph *graph = proof->scheduler->graph;

	wr_standstill_collect_at_end(&proof->waits, proof->scheduler);
	if (!proof->members || proof->waits.status)
		return false;
	for (size_t i = 0; i < graph->entity_count; i++)
		if (graph->entities[i].stuck)
			note_member(proof, &graph->entities[i]);
	return reduce_asked(proof, graph);
}

/* --- the word --- */

/* For each pool the member whose queues hold the most of it, for the text. */
static void find_holders(const struct proof *proof, weir_graph *graph)
{
	for (size_t i = 0; i < graph->memory_pool_count; i++) {
		struct wr_memory_pool *pool = &graph->memory_pools[i];
		uint64_t most = 0;

		pool->holder_inside = WR_NO_ENTITY;
		for (size_t e = 0; e < graph->entity_count; e++)
			proof->members[e].units = 0;
		for (size_t k = 0; k < proof->share_count; k++)
			if (proof->shares[k].pool == pool)
				proof->members[proof->shares[k].receiver].units += proof->shares[k].units;
		for (uint32_t e = 0; e < graph->entity_count; e++) {
			if (!graph->entities[e].stuck || proof->members[e].units <= most)
				continue;
			most = proof->members[e].units;
			pool->holder_inside = e;
		}
	}
}

/* What members alone can change is told; the rest would pass. */
static void keep_inner_waits(struct proof *proof)
{
	struct wr_standstill *waits = &proof->waits;
	size_t kept = 0, count = wr_graph_count_all(waits->graph);

	find_holders(proof, waits->graph);
	for (size_t e = 0, i = 0; e < count; e++) {
		size_t end = waits->first[e + 1];
		weir_entity *entity = wr_graph_entity_at(waits->graph, e);

		waits->first[e] = kept;
		for (; i < end; i++) {
			struct wr_cause cause = waits->list[i];

			if (!entity->stuck || !changed_inside(proof, entity, &cause)) {
				wr_free(cause.condition);
				wr_free(cause.detail);
				continue;
			}
			if (cause.claim)
				cause.blames = wr_memory_pool_of(cause.claim)->holder_inside;
			waits->list[kept++] = cause;
		}
	}
	waits->first[count] = waits->count = kept;
}

static void say(struct proof *proof)
{
	weir_scheduler *scheduler = proof->scheduler;
	const struct wr_cause *root;
	struct wr_text line = {0};

	keep_inner_waits(proof);
	wr_standstill_text(&proof->waits, stuck_is_found, &line);
	scheduler->stuck = line.status ? NULL : wr_strdup(line.text);
	wr_text_finish(&line);
	scheduler->stuck_found = true;
	root = wr_standstill_root(&proof->waits);
	scheduler->stuck_entity = root ? root->entity : WR_NO_ENTITY;
	scheduler->stuck_cause = root ? root->cause : WEIR_CAUSE_NONE;
	scheduler->stuck_on = root ? root->on : 0;
	wr_log(WEIR_LOG_ERROR, "%s: a part of the graph stands for ever%s: %s", scheduler->graph->plan->name,
	       scheduler->draining ? "" : " while the rest goes on",
	       scheduler->stuck ? scheduler->stuck : "out of memory");
}

/* --- the loop's looks --- */

/* Marks those that have not ticked for so long; returns true if there are some. */
static bool mark_parked(weir_graph *graph, int64_t now, int64_t long_ago)
{
	bool some = false;

	for (size_t i = 0; i < graph->entity_count; i++) {
		weir_entity *entity = &graph->entities[i];
		uint64_t ticks = wr_read(&entity->counters.ticks);

		if (ticks != entity->looked_ticks)
			entity->looked_at = now;
		entity->looked_ticks = ticks;
		entity->stuck = entity->looked_at <= long_ago && !(wr_load(&entity->state) & WR_DONE) &&
				ends_by_graph_alone(entity);
		some |= entity->stuck;
	}
	return some;
}

/* Proves it of those that are marked, and says so. Returns true if there are some. */
static bool prove_and_say(weir_scheduler *scheduler, bool (*prove_as)(struct proof *proof))
{
	struct proof proof = {
		.scheduler = scheduler,
		.members = wr_alloc(wr_graph_count_all(scheduler->graph) + 1, sizeof *proof.members),
	};
	bool found = prove_as(&proof);

	if (found)
		say(&proof);
	wr_standstill_finish(&proof.waits);
	wr_free(proof.shares);
	wr_free(proof.members);
	return found;
}

static bool find(weir_scheduler *scheduler, int64_t now, int64_t stood)
{
	for (int i = 0; i < TRIES; i++) {
		if (!mark_parked(scheduler->graph, now, now - stood) || !reduce(NULL, scheduler->graph))
			return false;
		if (prove_and_say(scheduler, prove))
			return true;
	}
	return false;
}

void wr_stuck_init(weir_scheduler *scheduler)
{
	int64_t grace = scheduler->options.deadlock_grace_ns;

	scheduler->stuck_every = INT64_C(500000000);
	scheduler->stuck_stood = grace > scheduler->stuck_every ? grace : scheduler->stuck_every;
}

void wr_stuck_begin(weir_scheduler *scheduler, int64_t now)
{
	weir_graph *graph = scheduler->graph;

	wr_free(scheduler->stuck);
	scheduler->stuck = NULL;
	scheduler->stuck_found = false;
	scheduler->stuck_at = scheduler->options.deadlock_grace_ns < 0
				      ? INT64_MAX
				      : wr_time_add(now, scheduler->stuck_every);
	scheduler->stuck_since = now;
	scheduler->stuck_ticks = 0;
	wr_store(&scheduler->looks_rest, false);
	for (size_t i = 0; i < graph->entity_count; i++) {
		graph->entities[i].stuck = false;
		graph->entities[i].looked_at = now;
		graph->entities[i].looked_ticks = 0;
	}
}

static bool looks(const weir_scheduler *scheduler)
{
	return !scheduler->stuck_found && scheduler->options.deadlock_grace_ns >= 0;
}

void wr_stuck_look_before_drain(weir_scheduler *scheduler, int64_t now)
{
	if (looks(scheduler))
		find(scheduler, now, 0);
}

void wr_stuck_look_after_drain(weir_scheduler *scheduler)
{
	if (looks(scheduler) && mark_parked(scheduler->graph, 0, INT64_MAX))
		prove_and_say(scheduler, prove_at_rest);
}

int64_t wr_stuck_look(weir_scheduler *scheduler, int64_t now)
{
	uint64_t ticks;

	if (!looks(scheduler) || scheduler->draining)
		return scheduler->stuck_at = INT64_MAX;
	if (wr_load(&scheduler->looks_rest))
		return INT64_MAX;
	/* At quiescence the loop judges the run, after the same grace time. */
	if ((wr_live_count(&scheduler->live) || wr_holders_hold_open(scheduler)) &&
	    find(scheduler, now, scheduler->stuck_stood))
		return INT64_MAX;
	ticks = wr_graph_count_ticks(scheduler->graph);
	if (ticks == scheduler->stuck_ticks && now - scheduler->stuck_since >= scheduler->stuck_stood) {
		/* Nothing ticks: the same look would find the same until a worker is woken. */
		wr_store(&scheduler->looks_rest, true);
		if (wr_load(&scheduler->sleepers) == scheduler->all_asleep)
			return INT64_MAX;
		wr_store(&scheduler->looks_rest, false);
	}
	if (ticks != scheduler->stuck_ticks)
		scheduler->stuck_since = now;
	scheduler->stuck_ticks = ticks;
	scheduler->stuck_at = wr_time_add(now, scheduler->stuck_every);
	return scheduler->stuck_at;
}

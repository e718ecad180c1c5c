/* The walk from an entity to the root of its waits. */
#include "cli/root.h"

#include <stdlib.h>
#include <string.h>

#include "cli/loads.h"

struct walk {
	const struct cli_recorded *recorded;
	struct cli_root *out;
	bool *visited; /* entities that have a leg */
};

const struct cli_leg *cli_root_leg(const struct cli_root *root, size_t i)
{
	return &((const struct cli_leg *)root->legs.items)[i];
}

const struct cli_leg *cli_root_last(const struct cli_root *root)
{
	return cli_root_leg(root, root->legs.count - 1);
}

static void leg_add(struct walk *walk, struct cli_leg leg)
{
	struct cli_leg *added = cli_list_add(&walk->out->legs, sizeof leg);

	walk->out->no_memory |= !added;
	if (added)
		*added = leg;
}

static size_t end(struct walk *walk, enum cli_root_kind kind)
{
	walk->out->kind = kind;
	return CLI_NO_ENTITY;
}

static size_t end_at(struct walk *walk, enum cli_root_kind kind, struct cli_leg leg)
{
	leg_add(walk, leg);
	return end(walk, kind);
}

/* --- an entity's own time --- */

/* All waits of that cause and port. */
static double wait_of(const struct cli_recorded *recorded, const struct cli_entity *entity,
		      const struct cli_wait *like)
{
	const struct cli_wait *waits = entity->waits.items;
	double share = 0;

	for (size_t i = 0; i < entity->waits.count; i++) {
		const char *on = waits[i].on;

		if (waits[i].cause == like->cause &&
		    (on && like->on ? !strcmp(on, like->on) : on == like->on))
			share += cli_wait_share(recorded, &waits[i]);
	}
	return share;
}

static struct cli_leg longest_wait(const struct cli_recorded *recorded, size_t i)
{
	const struct cli_entity *entity = cli_recorded_entity(recorded, i);
	const struct cli_wait *waits = entity->waits.items;
	struct cli_leg leg = {.entity = i, .cause = WEIR_CAUSE_WORKER};

	if (cli_workers_busy(recorded) >= WORKERS_BUSY) /* else others use the cores of the machine */
		leg.share = cli_worker_share(recorded, i);
	for (size_t k = 0; k < entity->waits.count; k++) {
		double share = wait_of(recorded, entity, &waits[k]);

		if (share > leg.share)
			leg = (struct cli_leg){i,           waits[k].cause, share,
					       waits[k].on, waits[k].of,    waits[k].why};
	}
	return leg;
}

/* What most of its time went to. Cause NONE: nothing that a run could be limited by. */
static struct cli_leg leg_of(const struct cli_recorded *recorded, size_t i)
{
	double host = cli_host_load(recorded, i);
	struct cli_leg leg = longest_wait(recorded, i);

	if (host >= LOAD_BUSY && leg.share < WAIT_LONG)
		return (struct cli_leg){.entity = i, .cause = WEIR_CAUSE_COMPUTE, .share = host};
	if (leg.share < WAIT_LONG)
		leg.cause = WEIR_CAUSE_NONE;
	return leg;
}

/* --- what it waited for --- */

static bool is_port(const char *end, const char *port)
{
	const char *dot = strrchr(end, '.');

	return !port || (dot && !strcmp(dot + 1, port));
}

/* Of the queues of an input that all are empty, that by which most comes; else the emptiest. */
static const struct cli_queue *queue_into(const struct cli_recorded *recorded, size_t receiver,
					  const char *port)
{
	const struct cli_queue *queues = recorded->queues.items, *most = NULL, *emptiest = NULL,
			       *fullest = NULL;

	for (size_t i = 0; i < recorded->queues.count; i++) {
		const struct cli_queue *queue = &queues[i];

		if (queue->receiver_at != receiver || !is_port(queue->to, port))
			continue;
		if (!most || queue->pushed > most->pushed)
			most = queue;
		if (!emptiest || queue->depth.mean < emptiest->depth.mean)
			emptiest = queue;
		if (!fullest || queue->depth.mean > fullest->depth.mean)
			fullest = queue;
	}
	return fullest && fullest->depth.mean >= 0.5 ? emptiest : most;
}

/* Only a queue with the policy block holds its sender up. */
static const struct cli_queue *fullest_behind(const struct cli_recorded *recorded, size_t sender,
					      const char *port)
{
	const struct cli_queue *queues = recorded->queues.items, *fullest = NULL;

	for (size_t i = 0; i < recorded->queues.count; i++)
		if (queues[i].sender_at == sender && is_port(queues[i].from, port) &&
		    (!queues[i].policy || !strcmp(queues[i].policy, "block")) &&
		    (!fullest || queues[i].depth.full_time > fullest->depth.full_time))
			fullest = &queues[i];
	return fullest;
}

/* Marks what an entity's messages come from, or go to; beyond those that `stop` says no more. */
static bool *reach(struct walk *walk, size_t from, bool upstream,
		   bool (*stop)(const struct cli_entity *entity))
{
	const struct cli_recorded *recorded = walk->recorded;
	const struct cli_queue *queues = recorded->queues.items;
	bool *marks = calloc(recorded->entities.count, sizeof *marks), grew = marks;

	walk->out->no_memory |= !marks;
	if (marks)
		marks[from] = true;
	while (grew) {
		grew = false;
		for (size_t i = 0; i < recorded->queues.count; i++) {
			size_t at = upstream ? queues[i].receiver_at : queues[i].sender_at;
			size_t next = upstream ? queues[i].sender_at : queues[i].receiver_at;

			if (at == CLI_NO_ENTITY || next == CLI_NO_ENTITY || !marks[at] || marks[next] ||
			    (stop && stop(cli_recorded_entity(recorded, at))))
				continue;
			marks[next] = grew = true;
		}
	}
	return marks;
}

/* --- device work --- */

/* What it receives is finished: device work before it is not behind its messages. */
static bool is_gated(const struct cli_entity *entity)
{
	const struct cli_wait *waits = entity->waits.items;

	for (size_t i = 0; i < entity->waits.count; i++)
		if (waits[i].cause == WEIR_CAUSE_DEVICE)
			return true;
	return !cli_uses_device(entity);
}

struct suspects {
	size_t busiest, count;
	double load;    /* of the busiest */
	bool unknown;   /* of one of them too few ticks were timed */
	int64_t stream; /* the busiest that one of them shares with another entity */
	size_t sharer;
	double stream_load; /* 0: there is none */
};

static void suspect_streams(struct suspects *out, const struct cli_recorded *recorded, size_t i)
{
	const struct cli_list *list = &cli_recorded_entity(recorded, i)->streams;
	const struct cli_use *uses = list->items;

	for (size_t k = 0; k < list->count; k++) {
		double load = cli_stream_sum(recorded, uses[k].stream);

		if (load <= out->stream_load ||
		    load - cli_stream_load(recorded, i, uses[k].stream) < WAIT_LONG)
			continue;
		out->stream_load = load;
		out->stream = uses[k].stream;
		out->sharer = i;
	}
}

/* Whose work may be behind the messages of an entity, its own included. */
static struct suspects find_suspects(struct walk *walk, size_t from)
{
	struct suspects out = {.busiest = from};
	bool *marks = reach(walk, from, true, is_gated);

	for (size_t i = 0; marks && i < walk->recorded->entities.count; i++) {
		const struct cli_entity *entity = cli_recorded_entity(walk->recorded, i);
		double load = cli_device_load(walk->recorded, i);

		if (!marks[i] || !cli_uses_device(entity))
			continue;
		out.unknown |= !cli_device_known(entity);
		if (!out.count++ || load > out.load)
			out.busiest = i, out.load = load;
		suspect_streams(&out, walk->recorded, i);
	}
	free(marks);
	return out;
}

/* `least`: of the run, from which on the device has no time left. */
static bool is_device(const struct suspects *suspects, double least)
{
	return !suspects->unknown && (suspects->load >= least || suspects->stream_load >= least);
}

/* A stream that is shared is named only if no one of its entities fills it. */
static size_t end_device(struct walk *walk, const struct suspects *suspects, double share)
{
	bool timed = suspects->load >= LOAD_BUSY;

	walk->out->stream = suspects->stream;
	if (suspects->load < LOAD_IDLE && suspects->stream_load >= LOAD_BEHIND)
		return end_at(walk, CLI_ROOT_STREAM,
			      (struct cli_leg){.entity = suspects->sharer,
					       .cause = WEIR_CAUSE_DEVICE,
					       .share = suspects->stream_load});
	return end_at(walk, CLI_ROOT_DEVICE,
		      (struct cli_leg){.entity = suspects->busiest,
				       .cause = WEIR_CAUSE_DEVICE,
				       .share = timed ? suspects->load : share});
}

/*
 * An entity waits so long for the device work behind the messages of a queue. Several messages in the queue
 * say that the device is behind, so that a part of its time in the ticks that were timed suffices; without
 * such times they do, or a wait that takes nearly all of the run.
 */
static size_t go_device(struct walk *walk, const struct cli_queue *queue, double share)
{
	struct suspects suspects = find_suspects(walk, queue->sender_at);
	bool behind = queue->depth.mean > 1 && share >= LOAD_BEHIND;

	if (is_device(&suspects, behind ? LOAD_BEHIND : LOAD_IDLE))
		return end_device(walk, &suspects, share);
	if (!suspects.unknown || (share < LOAD_IDLE && queue->depth.mean <= 1))
		return queue->sender_at;
	return suspects.count == 1 ? end_device(walk, &suspects, share) : end(walk, CLI_ROOT_UNKNOWN);
}

/*
 * With two ticks in flight the device has work all the time that the entity waits for it, with one not while
 * it computes.
 */
static size_t go_bound(struct walk *walk, const struct cli_leg *leg)
{
	const struct cli_entity *entity = cli_recorded_entity(walk->recorded, leg->entity);
	struct suspects suspects = find_suspects(walk, leg->entity);
	bool full = entity->max_in_flight > 1 || leg->share >= LOAD_IDLE;

	if (is_device(&suspects, LOAD_IDLE))
		return end_device(walk, &suspects, leg->share);
	if (!suspects.unknown || !full)
		return end(walk, CLI_ROOT_OWN);
	return suspects.count == 1 ? end_device(walk, &suspects, leg->share) : end(walk, CLI_ROOT_UNKNOWN);
}

/* A sink whose own device work takes the time, or something on the device that was not timed. */
static size_t begin(struct walk *walk, size_t at)
{
	const struct cli_entity *entity = cli_recorded_entity(walk->recorded, at);
	struct cli_leg leg = leg_of(walk->recorded, at);
	struct suspects suspects;

	if (!cli_uses_device(entity) || leg.cause == WEIR_CAUSE_COMPUTE)
		return at;
	suspects = find_suspects(walk, at);
	if (is_device(&suspects, LOAD_IDLE) || (!suspects.unknown && suspects.load >= LOAD_BUSY))
		return end_device(walk, &suspects, suspects.load);
	if (leg.cause != WEIR_CAUSE_NONE || !suspects.unknown)
		return at;
	leg_add(walk, leg);
	return end(walk, CLI_ROOT_UNKNOWN);
}

/* --- the walk --- */

/* Memory that what follows keeps, since it is busy, is not what lacks. */
static size_t go_memory(struct walk *walk, size_t at)
{
	bool *marks = reach(walk, at, false, NULL);
	size_t busy = CLI_NO_ENTITY;

	for (size_t i = 0; marks && i < walk->recorded->entities.count; i++)
		if (marks[i] && cli_host_load(walk->recorded, i) >= LOAD_FULL)
			busy = i;
	free(marks);
	return busy == CLI_NO_ENTITY ? end(walk, CLI_ROOT_OWN) : busy;
}

static size_t go(struct walk *walk, const struct cli_leg *leg)
{
	const struct cli_queue *queue;

	switch (leg->cause) {
	case WEIR_CAUSE_NONE:
		return end(walk, CLI_ROOT_NONE);
	case WEIR_CAUSE_MESSAGES:
	case WEIR_CAUSE_DEVICE:
		queue = queue_into(walk->recorded, leg->entity, leg->on);
		if (!queue || queue->sender_at == CLI_NO_ENTITY)
			return end(walk, queue ? CLI_ROOT_PROGRAM : CLI_ROOT_OWN);
		return leg->cause == WEIR_CAUSE_DEVICE ? go_device(walk, queue, leg->share)
						       : queue->sender_at;
	case WEIR_CAUSE_ROOM:
		queue = fullest_behind(walk->recorded, leg->entity, leg->on);
		if (queue && queue->receiver_at != CLI_NO_ENTITY)
			return queue->receiver_at;
		return end(walk, queue ? CLI_ROOT_PROGRAM : CLI_ROOT_OWN);
	case WEIR_CAUSE_BOUND:
		return go_bound(walk, leg);
	case WEIR_CAUSE_MEMORY:
		return go_memory(walk, leg->entity);
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
	return end(walk, CLI_ROOT_OWN);
}

/* Of the queues that are full in the circle, that which kept its two ends apart longest. */
static void close_circle(struct walk *walk, size_t at)
{
	struct cli_root *out = walk->out;
	double longest = 0;
	size_t first = 0;

	while (cli_root_leg(out, first)->entity != at)
		first++;
	out->kind = CLI_ROOT_CIRCLE;
	for (size_t i = first; i < out->legs.count; i++) {
		const struct cli_leg *leg = cli_root_leg(out, i);

		if (leg->cause == WEIR_CAUSE_ROOM && leg->share > longest) {
			out->kind = CLI_ROOT_QUEUE;
			out->queue = fullest_behind(walk->recorded, leg->entity, leg->on);
			longest = leg->share;
		}
	}
}

/* Nothing else was found: then the first on the way whose compute takes most of the time. */
static void fall_back(struct walk *walk)
{
	struct cli_leg *legs = walk->out->legs.items;

	for (size_t i = 0; i < walk->out->legs.count; i++)
		if (cli_host_load(walk->recorded, legs[i].entity) >= LOAD_BUSY) {
			legs[i].cause = WEIR_CAUSE_COMPUTE;
			legs[i].share = cli_host_load(walk->recorded, legs[i].entity);
			walk->out->legs.count = i + 1;
			walk->out->kind = CLI_ROOT_OWN;
		}
}

void cli_root_find(struct cli_root *out, const struct cli_recorded *recorded, size_t from)
{
	struct walk walk = {recorded, out, calloc(recorded->entities.count, sizeof(bool))};

	*out = (struct cli_root){.no_memory = !walk.visited};
	if (!out->no_memory)
		from = begin(&walk, from);
	while (!out->no_memory && from != CLI_NO_ENTITY) {
		struct cli_leg leg = leg_of(recorded, from);

		if (walk.visited[from]) {
			close_circle(&walk, from);
			break;
		}
		walk.visited[from] = true;
		leg_add(&walk, leg);
		from = go(&walk, &leg);
	}
	if (out->kind == CLI_ROOT_NONE || out->kind == CLI_ROOT_CIRCLE)
		fall_back(&walk);
	free(walk.visited);
}

void cli_root_finish(struct cli_root *root)
{
	free(root->legs.items);
	*root = (struct cli_root){0};
}

/* --- where it begins --- */

struct ends {
	bool sends, receives;
};

static struct ends ends_of(const struct cli_recorded *recorded, size_t entity)
{
	const struct cli_queue *queues = recorded->queues.items;
	struct ends ends = {false, false};

	for (size_t i = 0; i < recorded->queues.count; i++) {
		ends.sends |= queues[i].sender_at == entity && queues[i].receiver_at != CLI_NO_ENTITY;
		ends.receives |= queues[i].receiver_at == entity;
	}
	return ends;
}

size_t cli_root_sink(const struct cli_recorded *recorded)
{
	size_t best = CLI_NO_ENTITY;
	int64_t most = -1;

	if (recorded->main_at != CLI_NO_ENTITY)
		return recorded->main_at;
	for (size_t i = 0; i < recorded->entities.count; i++) {
		const struct cli_entity *entity = cli_recorded_entity(recorded, i);
		struct ends ends = ends_of(recorded, i);
		int64_t frames = ends.receives && !ends.sends ? entity->received : -1;

		if (frames > most)
			most = frames, best = i;
	}
	for (size_t i = 0; most < 0 && i < recorded->entities.count; i++)
		if (best == CLI_NO_ENTITY || cli_any_load(recorded, i) > cli_any_load(recorded, best))
			best = i;
	return best;
}

/*
 * Branches that meet again: the messages of one output go two ways, and an entity takes what comes of both, a
 * picture and what a network says of it. Three warnings are about such a join:
 *
 *   - a queue of one way drops: from then on the join pairs what does not belong together (W051);
 *   - the join can never tick again: one way delivers what the other has no room to wait for (W052);
 *   - a way has less room than the other has work: entities that could run at the same time wait for each
 *     other (W053).
 *
 * A way is followed upwards, from an input of the join to the output where the ways part, through *paired*
 * inputs: those with one connection from which each tick takes a fixed number of messages that a condition
 * waits for. An entity between is taken to emit one message in a tick, or as many as it takes (max_emits is 1
 * or the take): then the i-th message behind it belongs to the i-th before it, or to the i-th group. Nothing
 * is said of other ways: of a port that several entities feed or an inlet, of any number of messages, of
 * conditions that a plugin or program defines, of a connection with initial messages, of a `fault` queue, of
 * other numbers of emitted messages, of ways that part at different outputs, or through an entity with an
 * independent second input. A join whose ways all part at one output is passed like one entity, so ways may
 * be nested.
 *
 * Inputs of one condition `aligned` (C12) are compared by stamps, and what has no partner is dropped, so a
 * queue that drops is harmless there. Where one way delivers one message for several, what lies between two
 * of these has no partner and is dropped, but only when the second has come: until then it needs room. With a
 * timeout nothing is waited for without end. Behind such a join the i-th message belongs to the i-th before
 * it only if all its ways part at one output; if it waits for all ports, what one way drops is lost behind
 * it, too.
 *
 * All numbers of a way count messages of the output where it begins. Its room is the sum of its capacities:
 * what an entity has taken and not yet emitted has its place in the queue behind it (S3). The output is never
 * further ahead of the join than the room of one way, so no more than that can be on the other way, either.
 * This is why a queue that drops is harmless if it holds as many, and why entities that have more work than
 * that cannot all have it at the same time.
 *
 * Cost: each join is walked up to where its ways part, WALK_MAX steps at most.
 */
#include <string.h>

#include "base/memory.h"
#include "graphs/build.h"
#include "graphs/parameter.h"

#define NONE      UINT32_MAX
#define ENDLESS   (UINT64_C(1) << 40) /* more than any sum of capacities; sums of it do not overflow */
#define WALK_MAX  1000
#define PORTS_MAX 16

/* What lies between an output and an input; in messages of the output. */
struct span {
	uint64_t taken;  /* by one tick behind it */
	uint64_t needed; /* until the first tick behind it */
	uint64_t room;   /* what fits between, if there is no tick behind it; ENDLESS: a queue drops */
	uint64_t work;   /* what the entities between have taken when all of them compute at once */
	uint32_t lossy;  /* the connection whose queue drops and holds least; NONE: none */
	uint64_t least;  /* what that queue holds */
};

/* The way of an entity's messages up to the next output that was passed: of its sender, or of its fork. */
struct node {
	uint32_t up, output; /* NONE: not known */
	uint32_t level, root;
	struct span span;
};

struct joins {
	struct wr_build *build;
	const struct wr_plan *plan;
	struct node *nodes;        /* of the entities */
	uint32_t *incoming, *next; /* lists of each entity's incoming connections */
	uint32_t *order;           /* senders first */
};

/* A way while it is walked: from an input of the join up to an output of entity `at`. */
struct way {
	uint32_t connection; /* into the join */
	uint32_t at, output;
	struct span span;
	bool known;
};

static uint64_t bounded(uint64_t count)
{
	return count < ENDLESS ? count : ENDLESS;
}

/* The condition `aligned` that names the input; NULL: none does. */
static const struct wr_plan_condition *set_of(const struct wr_plan_entity *entity, unsigned input)
{
	for (size_t i = 0; i < entity->condition_count; i++)
		if (!strcmp(entity->conditions[i].kind->name, "aligned") &&
		    wr_condition_names(&entity->conditions[i], input, true))
			return &entity->conditions[i];
	return NULL;
}

static const struct wr_plan_condition *set_behind(const struct joins *joins, uint32_t connection)
{
	const struct wr_plan_connection *c = &joins->plan->connections[connection];

	return set_of(&joins->plan->entities[c->to], c->input);
}

static bool is_paired(const struct joins *joins, const struct wr_plan_connection *c)
{
	const struct wr_plan_entity *entity = &joins->plan->entities[c->to];
	const struct wr_plan_input *input = &entity->inputs[c->input];

	return input->connections == 1 && !input->inlet && !(input->port->flags & WEIR_PORT_ANY_SIZE) &&
	       input->take != WEIR_TAKE_ALL && input->policy != WEIR_POLICY_FAULT &&
	       input->policy != WEIR_POLICY_LATEST && !c->initial_messages &&
	       (wr_plan_waits_for(entity, c->input) || set_of(entity, c->input));
}

/* The next paired connection into an entity; NONE after the last. */
static uint32_t next_paired(const struct joins *joins, uint32_t connection)
{
	while (connection != NONE && !is_paired(joins, &joins->plan->connections[connection]))
		connection = joins->next[connection];
	return connection;
}

/* --- ways --- */

static struct way way_begin(const struct joins *joins, uint32_t connection)
{
	const struct wr_plan_connection *c = &joins->plan->connections[connection];
	const struct wr_plan_input *input = &joins->plan->entities[c->to].inputs[c->input];
	bool drops = input->policy != WEIR_POLICY_BLOCK;

	return (struct way){.connection = connection,
			    .at = c->from,
			    .output = c->output,
			    .span = {.taken = input->take,
				     .needed = input->take,
				     .room = drops ? ENDLESS : input->capacity,
				     .lossy = drops ? connection : NONE,
				     .least = drops ? input->capacity : ENDLESS},
			    .known = true};
}

/* Passes the entity that the way has come to: what it counts then are messages of the output before it. */
static void way_climb(const struct joins *joins, struct way *way)
{
	const struct node *node = &joins->nodes[way->at];
	uint64_t emits = wr_plan_output_needs(&joins->plan->entities[way->at].outputs[way->output]);
	uint64_t taken = node->span.taken, each = emits == 1 ? taken : 1;
	struct span *span = &way->span;

	way->known &= emits == 1 || emits == taken;
	span->taken = bounded(span->taken * each);
	span->needed = bounded((span->needed + emits - 1) / emits * taken);
	if (span->needed < node->span.needed)
		span->needed = node->span.needed;
	span->room = bounded(span->room * each + node->span.room);
	span->work = bounded(span->work * each + taken + node->span.work);
	span->least = bounded(span->least * each);
	if (node->span.least < span->least) {
		span->least = node->span.least;
		span->lossy = node->span.lossy;
	}
	way->at = node->up;
	way->output = node->output;
}

/* Walks both ways up to the entity where they part. Returns false if there is none, or it is far. */
static bool ways_meet(const struct joins *joins, struct way *a, struct way *b)
{
	if (joins->nodes[a->at].root != joins->nodes[b->at].root)
		return false;
	for (int steps = 0; a->at != b->at; steps++) {
		if (steps == WALK_MAX)
			return false;
		way_climb(joins, joins->nodes[a->at].level >= joins->nodes[b->at].level ? a : b);
	}
	return a->known && b->known && a->output == b->output;
}

/* --- warnings --- */

/* The paired ways into a join, and what was found about each. */
struct join {
	struct way ways[PORTS_MAX];
	size_t count;
	bool stuck; /* was reported: the rest does not matter */
};

static const char *input_name(const struct joins *joins, uint32_t connection)
{
	const struct wr_plan_connection *c = &joins->plan->connections[connection];

	return joins->plan->entities[c->to].inputs[c->input].port->name;
}

/* The capacity of the last queue of a way with which the way has so much more room. */
static unsigned long long raised_capacity(const struct joins *joins, const struct way *way, uint64_t more)
{
	const struct wr_plan_connection *c = &joins->plan->connections[way->connection];
	const struct wr_plan_entity *to = &joins->plan->entities[c->to];
	uint64_t each = way->span.taken / to->inputs[c->input].take;
	uint64_t step = wr_plan_output_needs(&joins->plan->entities[c->from].outputs[c->output]);

	more = (more + each - 1) / each;
	return to->inputs[c->input].capacity + (more + step - 1) / step * step;
}

static void report_uneven(struct joins *joins, const struct way *slow, const struct way *fast)
{
	const struct wr_plan_connection *c = &joins->plan->connections[slow->connection];
	const struct wr_plan_entity *fork = &joins->plan->entities[slow->at];
	const char *output = fork->outputs[slow->output].port->name;

	wr_build_report_connection(joins->build, WR_W_STUCK_JOIN, slow->connection,
				   "a tick of '%s' takes what comes of %llu messages of '%s.%s' here, but of "
				   "%llu at '%s', whose way gets full: then nothing moves any more; take as "
				   "many on both ways",
				   joins->plan->entities[c->to].name, (unsigned long long)slow->span.taken,
				   fork->name, output, (unsigned long long)fast->span.taken,
				   input_name(joins, fast->connection));
}

static void report_starved(struct joins *joins, const struct way *slow, const struct way *full,
			   uint64_t wanted)
{
	const struct wr_plan_connection *c = &joins->plan->connections[slow->connection];
	const struct wr_plan_entity *fork = &joins->plan->entities[slow->at];
	const char *join = joins->plan->entities[c->to].name;

	wr_build_report_connection(
		joins->build, WR_W_STUCK_JOIN, full->connection,
		"'%s' can never tick: '%s' needs %llu messages of '%s.%s' first, and this way has room for "
		"%llu; raise the capacity of '%s.%s' to %llu",
		join, input_name(joins, slow->connection), (unsigned long long)slow->span.needed, fork->name,
		fork->outputs[slow->output].port->name, (unsigned long long)full->span.room, join,
		input_name(joins, full->connection), raised_capacity(joins, full, wanted - full->span.room));
}

/*
 * The same for two ways into one set: between two messages of `slow` others lie on `full` whose turn as
 * partners never comes.
 */
static bool check_stuck_set(struct joins *joins, const struct wr_plan_condition *set, const struct way *slow,
			    const struct way *full)
{
	const struct wr_plan_connection *c = &joins->plan->connections[full->connection];
	const struct wr_plan_entity *fork = &joins->plan->entities[slow->at];
	uint64_t between = slow->span.taken - full->span.taken, wanted = slow->span.needed + between;

	if (slow->span.taken < full->span.taken || wanted <= full->span.room ||
	    weir_values_int(set->values, "timeout"))
		return false;
	if (slow->span.needed > full->span.room)
		report_starved(joins, slow, full, wanted);
	else
		wr_build_report_connection(
			joins->build, WR_W_STUCK_JOIN, full->connection,
			"up to %llu messages of '%s.%s' lie here until the next one comes at '%s', and this "
			"way has room for %llu: then nothing moves any more; raise the capacity of '%s.%s' "
			"to "
			"%llu",
			(unsigned long long)wanted, fork->name, fork->outputs[slow->output].port->name,
			input_name(joins, slow->connection), (unsigned long long)full->span.room,
			joins->plan->entities[c->to].name, input_name(joins, full->connection),
			raised_capacity(joins, full, wanted - full->span.room));
	return true;
}

/* Returns true if the join stops for ever because `slow` needs more than fits on `full`. */
static bool check_stuck(struct joins *joins, const struct way *slow, const struct way *full)
{
	const struct wr_plan_condition *set = set_behind(joins, slow->connection);

	if (set && set == set_behind(joins, full->connection))
		return check_stuck_set(joins, set, slow, full);
	if (slow->span.taken > full->span.taken && full->span.room < ENDLESS)
		report_uneven(joins, slow, full);
	else if (slow->span.taken == full->span.taken && slow->span.needed > full->span.room)
		report_starved(joins, slow, full, slow->span.needed);
	else
		return false;
	return true;
}

/* How many messages more the way needs room for, so that the fork and all entities of `busy` can work. */
static uint64_t lacking(const struct joins *joins, const struct way *way, const struct way *busy)
{
	uint64_t wanted = busy->span.work +
			  wr_plan_output_needs(&joins->plan->entities[busy->at].outputs[busy->output]);

	return wanted > way->span.room ? wanted - way->span.room : 0;
}

static void report_short(struct joins *joins, const struct way *way, const struct way *busy)
{
	const struct wr_plan_connection *c = &joins->plan->connections[way->connection];
	const struct wr_plan_entity *fork = &joins->plan->entities[way->at];
	uint64_t more = lacking(joins, way, busy);

	wr_build_report_connection(joins->build, WR_W_SHORT_BRANCH, way->connection,
				   "has room for %llu message%s of '%s', but '%s' and the way to '%s' work "
				   "on %llu at a time, so entities wait for each other; raise the capacity "
				   "of '%s.%s' to %llu",
				   (unsigned long long)way->span.room, way->span.room == 1 ? "" : "s",
				   fork->name, fork->name, input_name(joins, busy->connection),
				   (unsigned long long)(way->span.room + more),
				   joins->plan->entities[c->to].name, input_name(joins, way->connection),
				   raised_capacity(joins, way, more));
}

static void report_lossy(struct joins *joins, const struct way *way, const struct way *other)
{
	const struct wr_plan_connection *lossy = &joins->plan->connections[way->span.lossy];
	const struct wr_plan_connection *c = &joins->plan->connections[way->connection];
	const struct wr_plan_entity *fork = &joins->plan->entities[way->at];
	bool pop = joins->plan->entities[lossy->to].inputs[lossy->input].policy == WEIR_POLICY_POP;

	wr_build_report_connection(joins->build, WR_W_LOSSY_BRANCH, way->span.lossy,
				   "\"%s\" drops messages on one of two ways from '%s' to '%s': after a "
				   "drop, what comes at '%s' does not belong to what comes at '%s' any more; "
				   "make it \"block\"%s",
				   pop ? "pop" : "reject", fork->name, joins->plan->entities[c->to].name,
				   input_name(joins, way->connection), input_name(joins, other->connection),
				   fork->input_count ? ", and drop before the ways part" : "");
}

/* Compares one way of the join with all others. */
static void check_way(struct joins *joins, struct join *join, size_t i)
{
	struct way busy = {0}, limited = {0}, losing = {0}, kept = {0};
	const struct wr_plan_condition *set;
	uint32_t harmless = NONE;
	uint64_t most = 0;

	for (size_t k = 0; k < join->count && !join->stuck; k++) {
		struct way way = join->ways[i], other = join->ways[k];

		if (k == i || !ways_meet(joins, &way, &other))
			continue;
		join->stuck = check_stuck(joins, &other, &way);
		if (lacking(joins, &way, &other) > most) {
			most = lacking(joins, &way, &other);
			limited = way;
			busy = other;
		}
		set = set_behind(joins, way.connection);
		if (other.span.room <= way.span.least) {
			harmless = way.span.lossy;
		} else if (!(set && set == set_behind(joins, other.connection))) {
			losing = way;
			kept = other;
		}
	}
	if (losing.known && losing.span.lossy != harmless)
		report_lossy(joins, &losing, &kept);
	if (most && !join->stuck)
		report_short(joins, &limited, &busy);
}

/* --- the entities, senders first --- */

/* What is passed from the fork to the join, as if it was one entity's queue. Inside it all was reported. */
static void span_merge(struct span *span, const struct span *other)
{
	if (span->needed < other->needed)
		span->needed = other->needed;
	if (span->room > other->room)
		span->room = other->room;
	if (span->work < other->work)
		span->work = other->work;
}

static void enter_node(struct joins *joins, uint32_t entity, const struct way *way)
{
	struct node *node = &joins->nodes[entity];

	node->up = way->at;
	node->output = way->output;
	node->level = joins->nodes[way->at].level + 1;
	node->root = joins->nodes[way->at].root;
	node->span = way->span;
}

/* Returns false if the join drops messages of its ways, or ticks twice for one, by another way or a time. */
static bool set_is_whole(const struct joins *joins, const struct join *join)
{
	const struct wr_plan_connection *c = &joins->plan->connections[join->ways[0].connection];
	const struct wr_plan_entity *entity = &joins->plan->entities[c->to];

	for (unsigned i = 0; i < entity->input_count; i++) {
		const struct wr_plan_condition *set = set_of(entity, i);
		bool found = false;

		for (size_t k = 0; k < join->count; k++)
			found |= joins->plan->connections[join->ways[k].connection].input == i;
		if (set && ((!found && entity->inputs[i].connections + entity->inputs[i].inlet) ||
			    weir_values_int(set->values, "timeout")))
			return false;
	}
	return true;
}

/*
 * The fork of all ways into a join stands for its senders, if there is one. Of a set that needs all its ports
 * what one way drops is lost; one that does not loses what all ways drop.
 */
static void enter_join(struct joins *joins, uint32_t entity, const struct join *join)
{
	const struct wr_plan_condition *set = set_behind(joins, join->ways[0].connection);
	struct way first = join->ways[0];
	struct span all;
	size_t lossy;

	for (size_t i = 1; i < join->count; i++) {
		struct way way = join->ways[i];

		if (!ways_meet(joins, &first, &way) || way.span.taken != first.span.taken)
			return;
	}
	all = first.span;
	lossy = first.span.lossy != NONE;
	for (size_t i = 1; i < join->count; i++) {
		struct way way = join->ways[i], up = first;

		if (!ways_meet(joins, &way, &up) || up.at != first.at)
			return;
		span_merge(&all, &way.span);
		lossy += way.span.lossy != NONE;
		if (way.span.least < all.least) {
			all.least = way.span.least;
			all.lossy = way.span.lossy;
		}
	}
	first.span = all;
	if (!set || !lossy ||
	    (lossy < join->count && strcmp(weir_values_string(set->values, "missing"), "wait") != 0)) {
		first.span.lossy = NONE;
		first.span.least = ENDLESS;
	}
	enter_node(joins, entity, &first);
}

static void visit(struct joins *joins, uint32_t entity)
{
	struct join join;
	uint32_t connection = next_paired(joins, joins->incoming[entity]);

	join.count = 0;
	join.stuck = false;
	joins->nodes[entity] = (struct node){.up = NONE, .root = entity};
	for (; connection != NONE && join.count < PORTS_MAX; join.count++) {
		join.ways[join.count] = way_begin(joins, connection);
		connection = next_paired(joins, joins->next[connection]);
	}
	if (join.count == 1 && !set_behind(joins, join.ways[0].connection))
		enter_node(joins, entity, &join.ways[0]);
	if (join.count < 2 || connection != NONE)
		return;
	for (size_t i = 0; i < join.count; i++)
		check_way(joins, &join, i);
	if (set_is_whole(joins, &join))
		enter_join(joins, entity, &join);
}

static weir_status joins_make(struct joins *joins)
{
	const struct wr_plan *plan = joins->plan;

	joins->nodes = wr_alloc(plan->entity_count, sizeof(*joins->nodes));
	joins->incoming = wr_alloc(plan->entity_count, sizeof(*joins->incoming));
	joins->order = wr_alloc(plan->entity_count, sizeof(*joins->order));
	joins->next = wr_alloc(plan->connection_count, sizeof(*joins->next));
	if (!joins->nodes || !joins->incoming || !joins->order || !joins->next)
		return WEIR_E_NOMEM;
	memset(joins->incoming, 0xff, plan->entity_count * sizeof(*joins->incoming));
	for (size_t i = plan->connection_count; i-- > 0;) {
		joins->next[i] = joins->incoming[plan->connections[i].to];
		joins->incoming[plan->connections[i].to] = (uint32_t)i;
	}
	return wr_build_order(joins->build, joins->order);
}

weir_status wr_build_check_joins(struct wr_build *build)
{
	struct joins joins = {.build = build, .plan = build->plan};
	weir_status status = WEIR_OK;

	if (build->reports.errors)
		return WEIR_OK;
	status = joins_make(&joins);
	for (size_t i = 0; !status && i < build->plan->entity_count; i++)
		visit(&joins, joins.order[i]);
	wr_free(joins.nodes);
	wr_free(joins.incoming);
	wr_free(joins.next);
	wr_free(joins.order);
	return status;
}

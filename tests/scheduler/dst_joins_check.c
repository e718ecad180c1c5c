/*
 * Compares what the ticks of an entity have received with what they had to. A review sees at least what was
 * pushed before the last tick had ended (visible), and at most what was there when compute began (arrived).
 * Where it matters when a review looked, a tick is between the two, else it is exactly known. Each message
 * that no tick has received has one count: it was left out between two that were, or is left at the end.
 */
#include "dst_joins.h"

struct walk {
	const struct dst_joins_entity *entity;
	const struct dst_joins_found *found;
	const struct dst_joins_tick *tick, *before;
	unsigned id, at[PORTS]; /* the next message of each port */
	unsigned skipped[PORTS], received[PORTS];
	unsigned empty, late; /* ticks: with nothing; with less than they had to have */
};

static unsigned number_of(const struct walk *walk)
{
	return (unsigned)(walk->tick - joins.log[walk->id].tick);
}

static bool is_queued(const struct walk *walk, unsigned p)
{
	return walk->entity->port[p].from != NONE && walk->entity->port[p].policy != WEIR_POLICY_LATEST;
}

static unsigned pushed(const struct walk *walk, unsigned p)
{
	return (unsigned)walk->found->pushed[p];
}

static unsigned left(const struct walk *walk, unsigned p)
{
	return pushed(walk, p) - walk->at[p];
}

static unsigned beyond(unsigned count, unsigned from)
{
	return count > from ? count - from : 0;
}

/* At a queue that keeps everything nothing is left out; at the others what is left out was dropped. */
static void check_order(struct walk *walk, unsigned p)
{
	const struct dst_joins_tick *tick = walk->tick;

	if (!tick->count[p])
		return;
	if (tick->first[p] < walk->at[p] ||
	    (tick->first[p] > walk->at[p] && walk->entity->port[p].policy == WEIR_POLICY_BLOCK))
		dst_fails("tick %u of e%u begins with message %u at '%c', and %u was due", number_of(walk),
			  walk->id, tick->first[p], 'a' + p, walk->at[p]);
	walk->skipped[p] += tick->first[p] - walk->at[p];
	walk->received[p] += tick->count[p];
	walk->at[p] = tick->first[p] + tick->count[p];
}

/* --- latest --- */

/*
 * C4: what is shown does not go back. Let all device work of a sender be finished `longest` after the push. A
 * review that came after `from` saw of what was older than that by `longest` the newest, or left one behind
 * it that was finished `longest` later: a tick whose review came then shows that or a later one.
 */
static void check_latest(struct walk *walk, unsigned p)
{
	const struct dst_joins_log *sender = &joins.log[walk->entity->port[p].from];
	const struct dst_joins_entity *from = &joins.entity[walk->entity->port[p].from];
	const struct dst_joins_tick *tick = walk->tick, *tick0 = joins.log[walk->id].tick;
	unsigned shown = tick->first[p], least = 0;

	if (tick->count[p] != 1) {
		dst_fails("tick %u of e%u is shown %u messages", number_of(walk), walk->id, tick->count[p]);
		return;
	}
	if (walk->received[p] && shown + 1 < walk->at[p])
		dst_fails("tick %u of e%u is shown message %u again, after %u", number_of(walk), walk->id,
			  shown, walk->at[p] - 1);
	if (from->role == SOURCE && !from->device && !from->promises) {
		least = tick->visible[p];
	} else if (from->role == SOURCE) {
		int64_t longest = sender->longest + 8 * US; /* until a worker has seen it */
		for (const struct dst_joins_tick *t = tick0 + 1; t < tick; t++) {
			if (t->now + longest > (tick - 1)->ended)
				break;
			for (unsigned i = 0; i < t->visible[p]; i++)
				if (sender->sent[i].at < (t - 1)->ended - longest)
					least = i + 1;
		}
	}
	if (shown + 1 < least)
		dst_fails("tick %u of e%u is shown message %u, and %u was finished long before",
			  number_of(walk), walk->id, shown, least - 1);
	if (!walk->received[p] || shown + 1 > walk->at[p]) {
		walk->skipped[p] += shown - walk->at[p];
		walk->received[p]++;
		walk->at[p] = shown + 1;
	}
}

/* --- trees --- */

static bool holds(const struct walk *walk, unsigned ports, const unsigned *there)
{
	for (unsigned p = 0; p < PORTS; p++)
		if (ports >> p & 1 && there[p] <= walk->at[p])
			return false;
	return true;
}

/* C11: the inputs of the alternatives that hold, all of them and no others. */
static void check_tree(struct walk *walk)
{
	const struct dst_joins_tick *tick = walk->tick;
	unsigned received = 0, must = 0, may = 0;
	int64_t beat = 0;

	for (unsigned p = 0; p < PORTS; p++)
		received |= is_queued(walk, p) && tick->count[p] ? 1U << p : 0;
	for (unsigned i = 0; i < walk->entity->alternatives; i++) {
		const struct dst_joins_alternative *alternative = &walk->entity->alternative[i];
		if (alternative->period) {
			beat = alternative->period;
			continue;
		}
		if (!alternative->told && holds(walk, alternative->ports, tick->visible))
			must |= alternative->ports;
		if (!(alternative->ports & ~received) && holds(walk, alternative->ports, tick->arrived))
			may |= alternative->ports;
	}
	if (must & ~received || received & ~may)
		dst_fails("tick %u of e%u receives of inputs %x: at least %x, and %x hold", number_of(walk),
			  walk->id, received, must, may);
	if (!received && (!beat || tick->now < joins.graph->started_at + beat * ++walk->empty))
		dst_fails("tick %u of e%u has nothing, and no beat is due", number_of(walk), walk->id);
	for (unsigned p = 0; p < PORTS; p++) {
		unsigned there = beyond(tick->visible[p], walk->at[p]);
		if (!is_queued(walk, p) || !(received >> p & 1))
			continue;
		if (walk->entity->port[p].take ? tick->count[p] != 1 : tick->count[p] < there)
			dst_fails("tick %u of e%u receives %u of %u at '%c'", number_of(walk), walk->id,
				  tick->count[p], there, 'a' + p);
	}
}

/* No alternative is left that could hold. */
static void check_tree_end(const struct walk *walk)
{
	for (unsigned i = 0; i < walk->entity->alternatives; i++) {
		const struct dst_joins_alternative *alternative = &walk->entity->alternative[i];
		if (alternative->ports &&
		    holds(walk, alternative->ports,
			  (unsigned[]){pushed(walk, 0), pushed(walk, 1), pushed(walk, 2)}))
			dst_fails("e%u has ended, and alternative %u holds", walk->id, i);
	}
}

/* --- batches --- */

struct batch {
	bool met, all; /* all that will come is in it */
	bool over;     /* a port can have enough no more */
};

static struct batch look_at_batch(const struct walk *walk)
{
	struct batch batch = {.met = true, .all = true};
	unsigned sum = 0;

	for (unsigned p = 0; p < PORTS; p++) {
		unsigned count = walk->tick->count[p];
		if (!is_queued(walk, p))
			continue;
		sum += count;
		batch.all &= count == left(walk, p);
		batch.met &= walk->entity->kind != SIZES || count >= walk->entity->port[p].size;
		batch.over |= walk->entity->kind == SIZES && left(walk, p) < walk->entity->port[p].size;
		if (count < beyond(walk->tick->visible[p], walk->at[p]) ||
		    count > beyond(walk->tick->arrived[p], walk->at[p]))
			dst_fails("tick %u of e%u takes %u at '%c', and at least %u are there",
				  number_of(walk), walk->id, count, 'a' + p,
				  beyond(walk->tick->visible[p], walk->at[p]));
	}
	batch.met &= walk->entity->kind == SIZES || sum >= walk->entity->sum;
	if (!sum)
		dst_fails("tick %u of e%u is a batch of nothing", number_of(walk), walk->id);
	return batch;
}

/* When less is enough: of EXPIRING after the push of the oldest, else after the last tick. */
static int64_t enough_at(const struct walk *walk)
{
	const struct dst_joins_log *sender = &joins.log[walk->entity->port[0].from];
	int64_t from = walk->before ? walk->before->ready : joins.graph->started_at;

	if (walk->entity->kind == EXPIRING)
		from = sender->sent[walk->at[0]].at;
	return from + walk->entity->timeout;
}

static void check_batch(struct walk *walk)
{
	struct batch batch = look_at_batch(walk);
	bool timed = walk->entity->timeout &&
		     (walk->entity->instances && walk->entity->kind != EXPIRING
			      ? true
			      : (walk->tick->ready ? walk->tick->ready : walk->tick->now) >= enough_at(walk));

	if (batch.met || timed || batch.all)
		return;
	if (!batch.over || ++walk->late > 2)
		dst_fails("tick %u of e%u has too little", number_of(walk), walk->id);
}

static void check_batch_end(const struct walk *walk)
{
	bool over = false;

	for (unsigned p = 0; p < PORTS; p++) {
		if (!is_queued(walk, p))
			continue;
		over |= walk->entity->kind == SIZES && left(walk, p) < walk->entity->port[p].size;
		if (left(walk, p) && walk->entity->kind != SIZES)
			dst_fails("e%u has ended, and %u are left at '%c'", walk->id, left(walk, p), 'a' + p);
	}
	if (walk->entity->kind == SIZES && !over)
		dst_fails("e%u has ended, and there is a batch", walk->id);
}

/* --- by default --- */

static void check_plain(struct walk *walk)
{
	for (unsigned p = 0; p < PORTS; p++) {
		const struct dst_joins_port *port = &walk->entity->port[p];
		unsigned count = walk->tick->count[p], least = beyond(walk->tick->visible[p], walk->at[p]);
		if (!is_queued(walk, p))
			continue;
		if (port->take ? count != port->take : !count || count < least)
			dst_fails("tick %u of e%u takes %u at '%c'", number_of(walk), walk->id, count,
				  'a' + p);
	}
}

static void check_plain_end(const struct walk *walk)
{
	bool over = false;

	for (unsigned p = 0; p < PORTS; p++)
		over |= is_queued(walk, p) &&
			(walk->entity->port[p].policy == WEIR_POLICY_BLOCK ? left(walk, p) : 0) <
				(walk->entity->port[p].take ? walk->entity->port[p].take : 1);
	if (!over)
		dst_fails("e%u has ended, and its next tick has all that it needs", walk->id);
}

/* --- an entity --- */

static void check_tick(struct walk *walk)
{
	switch (walk->entity->kind) {
	case PLAIN:
		check_plain(walk);
		break;
	case TREE:
		check_tree(walk);
		break;
	case SUM:
	case SIZES:
	case EXPIRING:
		check_batch(walk);
		break;
	case ALIGNED:
		break;
	}
	for (unsigned p = 0; p < PORTS && !dst_said.broken[0]; p++) {
		if (walk->entity->port[p].policy == WEIR_POLICY_LATEST)
			check_latest(walk, p);
		else if (walk->entity->kind == ALIGNED)
			walk->received[p] += walk->tick->count[p]; /* dst_joins_sets.c has the rest */
		else if (is_queued(walk, p))
			check_order(walk, p);
	}
}

/* A `latest` port alone does not end its entity, so what is left there may be all. */
static void check_ends(const struct walk *walk)
{
	switch (walk->entity->kind) {
	case PLAIN:
		check_plain_end(walk);
		break;
	case TREE:
		check_tree_end(walk);
		break;
	case SUM:
	case SIZES:
	case EXPIRING:
		check_batch_end(walk);
		break;
	case ALIGNED:
		break;
	}
}

static void expect(const struct walk *walk, unsigned p, const char *what, uint64_t is, uint64_t least,
		   uint64_t most)
{
	if (is < least || is > most)
		dst_fails("e%u.%c: %llu are %s, not %llu to %llu", walk->id, 'a' + p, (unsigned long long)is,
			  what, (unsigned long long)least, (unsigned long long)most);
}

/* E5. Of a queue that drops none what is left is closed; of one that does it was dropped, or is closed. */
static void check_counts(const struct walk *walk, bool complete)
{
	for (unsigned p = 0; p < PORTS; p++) {
		const struct dst_joins_found *found = walk->found;
		bool drops = walk->entity->port[p].policy != WEIR_POLICY_BLOCK;
		uint64_t tail = left(walk, p);
		if (walk->entity->port[p].from == NONE)
			continue;
		if (complete)
			expect(walk, p, "delivered", found->delivered[p], walk->received[p],
			       walk->received[p]);
		if (walk->entity->kind == ALIGNED && is_queued(walk, p))
			continue;
		expect(walk, p, "unmatched", found->unmatched[p], 0, 0);
		if (complete)
			expect(walk, p, "dropped", found->dropped[p], walk->skipped[p],
			       walk->skipped[p] + (drops ? tail : 0));
		/* By `pop` and `reject` a relay is left nothing at its end. */
		if (found->whole && drops && is_queued(walk, p))
			expect(walk, p, "dropped", found->dropped[p], walk->skipped[p] + tail,
			       walk->skipped[p] + tail);
	}
}

void dst_joins_check(unsigned id, const struct dst_joins_found *found)
{
	const struct dst_joins_log *log = &joins.log[id];
	struct walk walk = {.entity = &joins.entity[id], .found = found, .id = id};
	bool complete = true;

	for (unsigned i = 0; i < log->ticks && !dst_said.broken[0]; i++) {
		complete &= log->tick[i].now > 0;
		if (!complete)
			break; /* of instances: they ended, or the run, before an earlier set */
		walk.tick = &log->tick[i];
		check_tick(&walk);
		walk.before = walk.tick;
	}
	if (!complete && found->whole)
		dst_fails("a tick of e%u is missing", id);
	if (walk.entity->kind == ALIGNED && !dst_said.broken[0])
		dst_joins_check_sets(id, found);
	if (found->whole && !dst_said.broken[0])
		check_ends(&walk);
	if (!dst_said.broken[0])
		check_counts(&walk, complete && (found->whole || !walk.entity->instances));
}

/*
 * M19: several ticks of one entity at once, outputs in the order of the inputs (docs/dev/future.md, Instances). The entity that the
 * graph shows is the *dealer*: it has the conditions, and claims what a tick needs of its pool, set by set in sequence. It hands
 * set and claim to an *instance*, an entity of its own. The *joiner* emits in sequence what the instances made; an instance gives it a
 * record for each set, also for one that made nothing. The dealer deals no more sets than the joiner has places for.
 *
 * Actors: the dealer, two instances, the joiner, a sink behind a queue of one place; the sink frees the block of what it takes. Four sets of
 * inputs are there, a tick makes one message of a block, or nothing. The pool has 1 to 3 blocks. How a poke wakes an entity is M1's and M2's: here each
 * moves when it can.
 * Properties: outputs in the order of the inputs, none lost; a place for each record; never more blocks in use than there are;
 * everything ends, with all blocks back.
 * Run: build/m19_instances [-v]
 */
#include <stdint.h>
#define THREADS 5
enum { DEALER, FIRST, SECOND, JOINER, SINK };
enum { INSTANCES = 2, SETS = 4, PLACES = 3 };
enum mutation { NONE, INSTANCE_CLAIMS, AS_IT_COMES, NO_EMPTY_RECORD, NO_PLACES, CLAIM_KEPT, DEALT_BY_TURNS };
enum made { NOT_YET, NOTHING, MESSAGE };
struct state {
	uint8_t dealt, emitted, set[INSTANCES], claimed[INSTANCES], made[INSTANCES];
	uint8_t records[SETS], order[SETS], came; /* what each set made; the sets as their records came */
	uint8_t in_use, queued, taken, due[SETS]; /* due: a message was made of this set */
};
#define THREAD_NAMES
#include "explore.h"

static const char *thread_name(int t)
{
	static const char *names[] = {"dealer", "instance A", "instance B", "joiner", "sink"};
	return names[t];
}

static void begin(struct state *s)
{
	(void)s;
}

static bool claim(struct state *s)
{
	if (s->in_use == setting)
		return false;
	s->in_use++;
	return true;
}

static bool dealer(struct state *s)
{
	bool places = mutation == NO_PLACES || s->dealt - s->emitted < PLACES;
	int i = mutation == DEALT_BY_TURNS ? s->dealt % INSTANCES : s->set[0] ? 1 : s->set[1] ? 0 : choose(INSTANCES);

	if (s->dealt == SETS || !places || s->set[i] || (mutation != INSTANCE_CLAIMS && !claim(s)))
		return false;
	s->claimed[i] = mutation != INSTANCE_CLAIMS;
	s->set[i] = ++s->dealt;
	say("deals set %d to %c", s->dealt, 'A' + i);
	return true;
}

static bool instance(struct state *s, int i)
{
	uint8_t set = s->set[i];

	if (!set)
		return false;
	if (!s->claimed[i]) {
		if (!claim(s))
			return false;
		s->claimed[i] = 1;
		say("claims");
	} else if (!s->made[i]) {
		s->made[i] = choose(2) ? MESSAGE : NOTHING;
		say(s->made[i] == MESSAGE ? "makes a message of set %d" : "makes nothing of set %d", set);
	} else {
		s->due[set - 1] = s->made[i] == MESSAGE;
		if (s->made[i] == NOTHING && mutation != CLAIM_KEPT)
			s->in_use--;
		if (s->made[i] == MESSAGE || mutation != NO_EMPTY_RECORD) {
			s->records[set - 1] = s->made[i];
			s->order[s->came++] = set;
		}
		s->set[i] = s->made[i] = s->claimed[i] = 0;
		say("gives the record of set %d", set);
	}
	return true;
}

static bool joiner(struct state *s)
{
	uint8_t set = mutation == AS_IT_COMES ? s->order[s->emitted] : (uint8_t)(s->emitted + 1);

	if (s->emitted == SETS || !set || !s->records[set - 1] || (s->records[set - 1] == MESSAGE && s->queued))
		return false;
	if (s->records[set - 1] == MESSAGE)
		s->queued = set;
	s->emitted++;
	say(s->queued == set ? "emits that of set %d" : "has nothing of set %d", set);
	return true;
}

static bool sink(struct state *s)
{
	if (!s->queued)
		return false;
	for (int k = s->taken; k < s->queued - 1; k++)
		if (s->due[k] || !s->records[k])
			fail("set %d overtakes set %d", s->queued, k + 1);
	if (s->queued <= s->taken)
		fail("set %d comes after set %d", s->queued, s->taken);
	s->taken = s->queued;
	s->queued = 0;
	s->in_use--;
	say("takes that of set %d", s->taken);
	return true;
}

static bool step(struct state *s, int t)
{
	switch (t) {
	case DEALER: return dealer(s);
	case JOINER: return joiner(s);
	case SINK: return sink(s);
	default: return instance(s, t - FIRST);
	}
}

static void check(const struct state *s)
{
	if (s->came - s->emitted > PLACES)
		fail("there is no place for the record of set %d", s->order[s->came - 1]);
}

static void at_end(const struct state *s)
{
	if (s->emitted != SETS)
		fail("%d of %d sets have come through, %d blocks are in use", s->emitted, SETS, s->in_use);
	if (s->in_use)
		fail("%d blocks are not back", s->in_use);
}

static const struct run runs[] = {
	{"rules, 1 block", NONE, 1, HOLDS},
	{"rules, 2 blocks", NONE, 2, HOLDS},
	{"rules, 3 blocks", NONE, 3, HOLDS},
	{"instances in turn, 2 blocks: right, and waits for a slow one", DEALT_BY_TURNS, 2, HOLDS},
	{"MUTANT each instance claims for itself", INSTANCE_CLAIMS, 1, BREAKS},
	{"MUTANT the joiner emits records as they come", AS_IT_COMES, 2, BREAKS},
	{"MUTANT no record of a tick that made nothing", NO_EMPTY_RECORD, 1, BREAKS},
	{"MUTANT more sets are dealt than there are places", NO_PLACES, 3, BREAKS},
	{"MUTANT a tick that made nothing keeps its claim", CLAIM_KEPT, 1, BREAKS},
	{0}
};

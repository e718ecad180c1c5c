/*
 * M19: several ticks of one entity at once, outputs in the order of the inputs (rule C13). The *dealer*
 * passes the set of each of its ticks to one *instance*, in turn, if the one place of that instance is free.
 * An instance ticks when its set is there and its place at the joiner is free, and claims for itself; it
 * frees its place when it takes the set, and gives a record for each, also for one that made nothing. The
 * *joiner* emits in the same turn what the instances made.
 *
 * Actors: the dealer, two instances, the joiner, a sink behind a queue of one place; the sink frees the block
 * of what it takes. Five sets of inputs are there, a tick makes one message of a block, or nothing. The pool
 * has 1 to 3 blocks; it needs one for each instance: a set is not dealt before the one that is as many
 * earlier as there are instances was claimed. A setting of 10 more: the input of set 3 may be broken, so that
 * its tick is the last; the joiner ends with its record, and what the others have is dropped. How a poke
 * wakes an entity is M1's and M2's: here each moves when it can. Properties: outputs in the order of the
 * inputs, none lost; no place holds two; never more blocks in use than there are; everything ends, with all
 * blocks back. Run: build/m19_instances [-v]
 */
#include <stdint.h>
#define THREADS 5
enum { DEALER, FIRST, SECOND, JOINER, SINK };
enum { INSTANCES = 2, SETS = 5, BROKEN = 10, BROKEN_SET = 3 };
enum mutation {
	NONE,
	LAST_OF_INSTANCE,
	LAST_GOES_ON,
	AS_IT_COMES,
	NO_EMPTY_RECORD,
	NO_ROOM,
	DEALT_TO_ANY,
	DEALT_AHEAD,
	CLAIM_KEPT
};
struct state {
	uint8_t dealt, emitted;
	uint8_t place[INSTANCES], set[INSTANCES], made[INSTANCES]; /* dealt; in compute; what that has made */
	uint8_t record[INSTANCES], of[INSTANCES]; /* at the joiner: what was made, of which set */
	uint8_t last[INSTANCES], ended; /* the tick that is the last, of the instance; the joiner is done */
	uint8_t joins, joined,
		from; /* in the joiner's compute: a set, what was made of it, and its instance */
	uint8_t in_use, queued, taken, known[SETS], due[SETS]; /* due: a message was made of this set */
};
enum made { NOT_YET, NOTHING, MESSAGE };
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

static int blocks(void)
{
	return setting % BROKEN;
}

static bool dealer(struct state *s)
{
	int i = mutation == DEALT_TO_ANY ? choose(INSTANCES) : s->dealt % INSTANCES;

	if (s->ended || s->last[i] || s->dealt == SETS || (s->place[i] && mutation != DEALT_AHEAD))
		return false;
	if (s->place[i])
		fail("sets %d and %d are mixed", s->place[i], s->dealt + 1);
	s->place[i] = ++s->dealt;
	say("deals set %d to %c", s->dealt, 'A' + i);
	return true;
}

/* Nothing receives from it any more: it drops its set, and what the joiner had. */
static bool instance_ends(struct state *s, int i)
{
	if (!s->place[i] && !s->record[i] && !s->set[i])
		return false;
	s->in_use -= (s->set[i] > 0) + (s->record[i] == MESSAGE);
	s->place[i] = s->record[i] = s->of[i] = s->set[i] = s->made[i] = 0;
	say("ends");
	return true;
}

static bool instance_takes(struct state *s, int i)
{
	if (s->last[i])
		return false;
	if (!s->place[i] || (s->record[i] && mutation != NO_ROOM) || s->in_use == blocks())
		return false;
	s->in_use++;
	s->set[i] = s->place[i];
	s->place[i] = 0;
	say("claims and takes set %d", s->set[i]);
	return true;
}

static bool instance(struct state *s, int i)
{
	if (s->ended)
		return instance_ends(s, i);
	if (!s->set[i])
		return instance_takes(s, i);
	if (!s->made[i]) {
		s->made[i] = choose(2) ? MESSAGE : NOTHING;
		say(s->made[i] == MESSAGE ? "makes a message of set %d" : "makes nothing of set %d",
		    s->set[i]);
		return true;
	}
	if (s->record[i])
		fail("there is no place for the record of set %d", s->set[i]);
	s->known[s->set[i] - 1] = 1;
	s->due[s->set[i] - 1] = s->made[i] == MESSAGE;
	if (s->made[i] == NOTHING && mutation != CLAIM_KEPT)
		s->in_use--;
	if (s->made[i] == MESSAGE || mutation != NO_EMPTY_RECORD) {
		s->record[i] = s->made[i];
		s->of[i] = s->set[i];
	}
	if (setting > BROKEN && s->set[i] == BROKEN_SET && choose(2))
		s->last[i] = s->set[i];
	say(s->last[i] ? "gives the record of set %d, its last" : "gives the record of set %d", s->set[i]);
	s->set[i] = s->made[i] = 0;
	return true;
}

/* Its tick frees the place of the record before it computes. */
static bool joiner_takes(struct state *s)
{
	int i = mutation == AS_IT_COMES ? choose(INSTANCES) : s->emitted % INSTANCES;

	if (s->ended || !s->record[i] || (s->record[i] == MESSAGE && s->queued))
		return false;
	s->joins = s->of[i];
	s->joined = s->record[i];
	s->from = (uint8_t)i;
	s->record[i] = s->of[i] = 0;
	say("takes the record of set %d", s->joins);
	return true;
}

static bool joiner(struct state *s)
{
	uint8_t last = s->last[s->from];

	if (!s->joins)
		return joiner_takes(s);
	if (s->joined == MESSAGE)
		s->queued = s->joins;
	s->emitted++;
	say(s->joined == MESSAGE ? "emits that of set %d" : "has nothing of set %d", s->joins);
	if (mutation != LAST_GOES_ON)
		s->ended = mutation == LAST_OF_INSTANCE ? last > 0 : last == s->joins;
	s->joins = s->joined = 0;
	return true;
}

static bool sink(struct state *s)
{
	if (!s->queued)
		return false;
	for (int k = s->taken; k < s->queued - 1; k++)
		if (s->due[k] || !s->known[k])
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
	case DEALER:
		return dealer(s);
	case JOINER:
		return joiner(s);
	case SINK:
		return sink(s);
	default:
		return instance(s, t - FIRST);
	}
}

static void check(const struct state *s)
{
	if (s->in_use > blocks())
		fail("%d blocks of %d are in use", s->in_use, blocks());
}

static void at_end(const struct state *s)
{
	int last = s->last[0] > s->last[1] ? s->last[0] : s->last[1];

	if (s->emitted != (last ? last : SETS))
		fail("%d of %d sets have come through, %d blocks are in use", s->emitted, SETS, s->in_use);
	if (s->in_use)
		fail("%d blocks are not back", s->in_use);
}

static const struct run runs[] = {
	{"rules, a block for each instance", NONE, 2, HOLDS},
	{"rules, 3 blocks", NONE, 3, HOLDS},
	{"rules, a broken set", NONE, BROKEN + 2, HOLDS},
	{"rules, a broken set, 3 blocks", NONE, BROKEN + 3, HOLDS},
	{"MUTANT one block less than instances", NONE, 1, BREAKS},
	{"MUTANT the joiner emits records as they come", AS_IT_COMES, 2, BREAKS},
	{"MUTANT no record of a tick that made nothing", NO_EMPTY_RECORD, 2, BREAKS},
	{"MUTANT an instance ticks without a place at the joiner", NO_ROOM, 3, BREAKS},
	{"MUTANT a set goes to any instance that is free", DEALT_TO_ANY, 2, BREAKS},
	{"MUTANT a set is dealt behind one that is not taken", DEALT_AHEAD, 2, BREAKS},
	{"MUTANT a tick that made nothing keeps its claim", CLAIM_KEPT, 2, BREAKS},
	{"MUTANT the joiner ends when an instance has had its last tick", LAST_OF_INSTANCE, BROKEN + 3,
	 BREAKS},
	{"MUTANT the joiner goes on behind the last set", LAST_GOES_ON, BROKEN + 2, BREAKS},
	{0}};

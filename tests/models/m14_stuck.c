/*
 * M14: a part of a graph that stands for ever is found while the rest goes on (docs/dev/rules.md S6).
 *
 * Two entities X and Y are reviewed and poked as in S1 and S2; a tick takes, counts itself, delivers, then frees
 * what it took, one step each. The loop looks: in a first collect it notes of each that it is IDLE, and how often
 * it has ticked. In a second one it owns each in turn (CAS IDLE -> RUNNING), compares the number of ticks and
 * reads what it waits for. Last it compares the numbers once more. K is the greatest set of which each member
 * waits for what members alone can change. Two looks are made at any time, the last when all rest.
 * RING: X and Y pass a message (or none) round, through queues of one place; a tick of the third round keeps it.
 *       An outsider pokes X in vain.
 * POOL: X has a message in one block, and needs another for what it sends to Y, which needs one, too. A block is
 *       the outsider's, which frees it at any time or never; or there is none.
 * Properties: no member ticks after the word was given; a part that stands at the end was found.
 * Run: build/m14_stuck [-v].
 */
#include <stdint.h>
#define THREADS 4
enum { X, Y, OUTSIDER, LOOP };
enum { POKED = 1, RUNNING = 2 };
enum { RING, POOL };
enum mutation { NONE, ONE_COLLECT, NO_NUMBERS, BUSY_AT_FIRST, NO_LAST_LOOK, OUTSIDE_FORGOTTEN };
enum at { REST, REVIEW, TAKE, COUNT, PUSH, FREE, LEAVE };
enum { FIRST_X, FIRST_Y, OWN_X, READ_X, OWN_Y, READ_Y, LAST, OVER };
enum { LACKS_MESSAGE = 1, LACKS_ROOM = 2, REFUSED = 4 };
struct state {
	uint8_t state[2], at[2], ticks[2], queue[2], refused[2], pokes, kept; /* queue[e]: into e */
	uint8_t blocks, free, outside, keeps;
	uint8_t look, looks, noted[2], lacks[2], held[2], said;
};
#include "explore.h"

static void begin(struct state *s)
{
	s->state[X] = s->state[Y] = POKED;
	if (setting == RING) {
		s->queue[choose(2)] = (uint8_t)choose(2);
		return;
	}
	s->queue[X] = 1;
	s->outside = (uint8_t)choose(2);
	s->keeps = (uint8_t)choose(2);
	s->blocks = 1 + s->outside;
}

static void poke(struct state *s, int e)
{
	s->state[e] |= POKED;
}

static uint8_t lacks(const struct state *s, int e)
{
	uint8_t found = s->queue[e] ? 0 : LACKS_MESSAGE;

	if (setting == RING && s->queue[1 - e])
		found |= LACKS_ROOM;
	if (s->refused[e])
		found |= REFUSED;
	return found;
}

static void give_back(struct state *s, int n)
{
	s->free += (uint8_t)n;
	for (int e = 0; e < 2; e++)
		if (s->refused[e] && s->free) {
			s->refused[e] = 0;
			poke(s, e);
			return;
		}
}

static bool claim(struct state *s, int e)
{
	if (setting == RING)
		return true;
	s->refused[e] = !s->free;
	s->free -= !s->refused[e];
	return !s->refused[e];
}

static bool entity(struct state *s, int e)
{
	switch (s->at[e]) {
	case REST:
		if (s->state[e] != POKED)
			return false;
		s->state[e] = RUNNING;
		s->at[e] = REVIEW;
		say("is popped");
		return true;
	case REVIEW:
		s->at[e] = !(lacks(s, e) & ~REFUSED) && claim(s, e) ? TAKE : LEAVE;
		say(s->at[e] == TAKE ? "READY" : "WAIT");
		return true;
	case TAKE:
		if (s->said >> e & 1)
			fail("a member ticks after the word");
		s->queue[e]--;
		if (setting == RING)
			poke(s, 1 - e);                         /* there is room */
		s->at[e] = COUNT;
		say("takes a message");
		return true;
	case COUNT:
		s->ticks[e]++;
		s->at[e] = PUSH;
		say("has ticked %d times", s->ticks[e]);
		return true;
	case PUSH:
		if (setting == RING && s->ticks[e] < 3) {
			s->queue[1 - e]++;
			poke(s, 1 - e);
		} else if (setting == POOL && e == X) {
			s->queue[Y]++;
			poke(s, Y);
		}
		s->at[e] = FREE;
		say("delivers");
		return true;
	case FREE:
		if (setting == POOL)
			give_back(s, e == X ? 1 : 2);           /* Y emits nothing: what it claimed, too */
		s->at[e] = REVIEW;
		say("frees what it took");
		return true;
	default:
		s->at[e] = s->state[e] == RUNNING ? REST : REVIEW;
		s->state[e] = s->at[e] == REST ? 0 : RUNNING;
		say(s->at[e] == REST ? "parks" : "was poked meanwhile");
		return true;
	}
}

static bool outsider(struct state *s)
{
	if (setting == RING && s->pokes < 2) {
		s->pokes++;
		poke(s, X);
		say("pokes X in vain");
		return true;
	}
	if (!s->outside || s->keeps)
		return false;
	s->outside = 0;
	give_back(s, 1);
	say("frees its block");
	return true;
}

/* The greatest set, of those in `k`, whose members wait for members alone. */
static uint8_t stuck(const struct state *s, uint8_t k)
{
	uint8_t before;

	do {
		int inside = 0;
		before = k;
		for (int e = 0; e < 2; e++)
			inside += k >> e & 1 ? s->held[e] : 0;
		if (mutation == OUTSIDE_FORGOTTEN)
			inside += s->outside;
		for (int e = 0; e < 2; e++) {
			bool by_other = s->lacks[e] & (LACKS_MESSAGE | LACKS_ROOM) && k >> (1 - e) & 1;
			bool by_pool = s->lacks[e] & REFUSED && s->blocks - inside < 1;
			if (setting == POOL && e == X)
				by_other = false;               /* it has no sender */
			if (!by_other && !by_pool)
				k &= (uint8_t)~(1 << e);
		}
	} while (k != before);
	return k;
}

static void abandon(struct state *s)
{
	s->look = LAST;
	s->lacks[X] = s->lacks[Y] = 0;
}

static bool at_rest(const struct state *s)
{
	return !s->state[X] && !s->state[Y] && (!s->outside || s->keeps) && (setting == POOL || s->pokes == 2);
}

static bool loop(struct state *s)
{
	int e = s->look == FIRST_X || s->look == OWN_X || s->look == READ_X ? X : Y;

	switch (s->look) {
	case FIRST_X: case FIRST_Y:
		if (s->look == FIRST_X && s->looks == 2 && !at_rest(s))
			return false;
		if (s->state[e] && mutation != BUSY_AT_FIRST) {
			abandon(s);
			say("finds %c busy", 'X' + e);
			return true;
		}
		s->noted[e] = s->ticks[e];
		s->look = mutation == ONE_COLLECT ? OWN_X : (uint8_t)(s->look + 1);
		say("notes %c", 'X' + e);
		return true;
	case OWN_X: case OWN_Y:
		if (mutation == ONE_COLLECT)
			s->noted[e] = s->ticks[e];
		if (s->state[e] || (mutation != NO_NUMBERS && s->noted[e] != s->ticks[e])) {
			abandon(s);
			say("finds that %c has gone on", 'X' + e);
			return true;
		}
		s->state[e] = RUNNING;
		s->look++;
		say("owns %c", 'X' + e);
		return true;
	case READ_X: case READ_Y:
		s->lacks[e] = lacks(s, e);
		s->held[e] = setting == POOL ? s->queue[e] : 0;
		s->state[e] = s->state[e] == RUNNING ? 0 : POKED;
		s->look++;
		say("reads what %c waits for: %d", 'X' + e, s->lacks[e]);
		return true;
	case LAST: {
		uint8_t k = stuck(s, 3);
		for (int i = 0; i < 2; i++)
			if (mutation != NO_LAST_LOOK && mutation != ONE_COLLECT && mutation != NO_NUMBERS &&
			    (s->state[i] & RUNNING || s->noted[i] != s->ticks[i]))
				k = 0;
		s->said = k;
		s->looks++;
		s->look = s->said || s->looks == 3 ? OVER : FIRST_X;
		s->noted[X] = s->noted[Y] = s->lacks[X] = s->lacks[Y] = s->held[X] = s->held[Y] = 0;
		say("says %d", k);
		return true;
	}
	default:
		return false;
	}
}

static bool step(struct state *s, int t)
{
	return t == LOOP ? loop(s) : t == OUTSIDER ? outsider(s) : entity(s, t);
}

static void check(const struct state *s)
{
	if (s->queue[X] > 1 || s->queue[Y] > 1)
		fail("a queue above its bound");
}

static void at_end(const struct state *s)
{
	bool stands = setting == RING || (s->refused[X] && !s->outside);

	if (stands && !s->said)
		fail("what stands was not found");
	if (setting == POOL && s->outside && s->said)
		fail("said, though the outsider has a block");
}

static const struct run runs[] = {
	{"rules: a message goes round", NONE, RING, HOLDS},
	{"rules: blocks, one of them outside", NONE, POOL, HOLDS},
	{"MUTANT without the second collect", ONE_COLLECT, RING, BREAKS},
	{"MUTANT the numbers are not compared", NO_NUMBERS, RING, BREAKS},
	{"MUTANT noted in the middle of a tick", BUSY_AT_FIRST, RING, BREAKS},
	{"MUTANT the numbers are not compared once more", NO_LAST_LOOK, POOL, BREAKS},
	{"MUTANT a block outside counts as held", OUTSIDE_FORGOTTEN, POOL, BREAKS},
	{0}
};

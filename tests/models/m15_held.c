/*
 * M15: who holds memory when nothing moves (docs/dev/rules.md S3, S4, B2): a pool, an outlet, the program.
 *
 * Actors: A makes messages, each in a block of the pool, one or (PAIRS) two a tick, and needs that many blocks
 * for a tick; they go into an outlet and, with FORK, into the queue of B, which needs a block for a tick of its
 * own (HALF: one of two goes there, and B needs two). Two takers take from the outlet, drop what they took, or give it, or a second reference to it, to a
 * dropper, or (KEEPS) keep it for ever. An onlooker pokes a disabled entity, so the loop looks at any time.
 * The loop closes the run when nothing moves and the program cannot change that.
 * Rule as modelled; what is done under one lock is one step:
 *   take (outlet's lock): the oldest leaves, its bit says that it was handed out, the pool counts it as
 *                  outside. Then A is poked; the taker of the last one then drops the outlet's live reference.
 *   drop:          references fall; what was handed out and has other holders: `looking` set -> kick.
 *   free (pool's lock): used and outside fall, the oldest entry with enough is offered: removed, owed, and a
 *                  thread that is no worker takes a live reference. Then `looking` set -> kick. Then the offered
 *                  entity is poked, then that live reference is dropped.
 *   loop:          at a live count of 0, and if an entity is refused or owed and something is outside: looking
 *                  is set, then a live reference is taken, the only one, then every entity is owned (else: later again), then outside is read, then each message in a queue: one that was handed out and
 *                  has no more references than the graph's queues is the graph's alone. The rest of what is
 *                  outside is the program's: the run stays open, and what clears `looking` kicks.
 *                  Closed by CAS of (0, epoch) if the count did not leave 0 since, but by the look itself.
 * Properties: never closed while an entity is refused or owed and the program holds a block, or with enough
 * free for it; closed as finished only if A made all; the run ends, unless the program keeps a block for ever
 * and an entity waits for one; then it is open.
 * Bounds: 2 blocks, 3 messages (PAIRS: 4, LONG: 6), 1 or 2 places in the outlet. Run: build/m15_held [-v [NAME]]
 */
#include <stdint.h>
#define THREADS 7
enum { A, B, TAKER, TAKER2, DROPPER, ONLOOKER, LOOP };
enum { MOST = 6, SIZE = 2 };
enum { POKED = 1, RUNNING = 2, DONE = 4 };
enum { PAIRS = 1, FORK = 2, KEEPS = 4, WIDE = 8, HALF = 16, LONG = 32 };
enum mutation { NONE, NOTED_LATE, POKED_LATE, POKED_LATE_OWED, STICKS, LOOKED_LATE, NOT_KICKED, FREE_NOT_KICKED,
		NOT_OWNED, NOT_ALONE, NOT_LAST, LEFT_FIRST, OUTSIDE_FIRST, COUNTED_LAST };
struct state {
	uint8_t state[2], entry[2], pc[THREADS], live, moved, closed, kicked, looking; /* moved: the count left 0 since the loop read it */
	uint8_t made, in_outlet[MOST], in_queue[MOST], refs[MOST], handed[MOST], ours[MOST]; /* ours: the program's references */
	uint8_t holding, used, outside, listed[2], order[2], owed[2], owed_before[2], claimed[2];
	uint8_t has[THREADS], drop[THREADS], offered[THREADS], held[THREADS], given[MOST], kept, looks;
	uint8_t share, alone, at, locked, some;
};
#define THREAD_NAMES
#include "explore.h"

enum { NOTHING = 255 };

static const char *thread_name(int t)
{
	static const char *names[] = {"A", "B", "taker", "taker 2", "dropper", "onlooker", "loop"};
	return names[t];
}

static unsigned all(void) { return setting & LONG ? 6 : setting & PAIRS ? 4 : 3; }
static unsigned each(void) { return setting & PAIRS ? 2 : 1; }
static unsigned places(void) { return setting & (WIDE | PAIRS) ? 2 : 1; }
static unsigned need(int e) { return e == A || setting & HALF ? each() : 1; }

static void begin(struct state *s)
{
	memset(s->has, NOTHING, sizeof s->has);
	memset(s->offered, NOTHING, sizeof s->offered);
	s->order[0] = s->order[1] = NOTHING;
	s->state[A] = POKED;
	s->entry[A] = 1;
	s->live = 1;
	if (setting & FORK) {
		s->state[B] = POKED;
		s->entry[B] = 1;
		s->live++;
	} else {
		s->state[B] = DONE;
	}
}

static void live_take(struct state *s)
{
	if (!s->live++)
		s->moved = 1;
}

static void live_drop(struct state *s)
{
	if (!s->live)
		fail("the live counter fell below 0");
	if (!--s->live)
		s->kicked = 1;
}

static void poke(struct state *s, int e)
{
	if (s->closed)
		return;
	if (!s->state[e]) {
		s->entry[e] = 1;
		live_take(s);
	}
	s->state[e] |= POKED;
}

static unsigned in_outlet(const struct state *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < all(); i++)
		n += s->in_outlet[i];
	return n;
}

static unsigned in_queue(const struct state *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < all(); i++)
		n += s->in_queue[i];
	return n;
}

/* --- the pool; what a caller does in one step is under its lock --- */

static void unlist(struct state *s, int e)
{
	if (!s->listed[e])
		return;
	s->listed[e] = 0;
	if (s->order[0] == e)
		s->order[0] = s->order[1];
	s->order[1] = NOTHING;
}

static int offer(struct state *s)
{
	for (int i = 0; i < 2; i++) {
		int e = s->order[i];

		if (e != NOTHING && SIZE - s->used >= (int)need(e)) {
			unlist(s, e);
			s->owed[e] = 1;
			return e;
		}
	}
	return NOTHING;
}

static void enlist(struct state *s, int e)
{
	s->order[s->order[0] == NOTHING ? 0 : 1] = (uint8_t)e;
	s->listed[e] = 1;
}

static bool lacks(const struct state *s, int e) { return s->listed[e] || (s->owed[e] && mutation != POKED_LATE_OWED); }

/* The program lets go of something that was handed out. */
static void look_again(struct state *s)
{
	if (s->looking) {
		s->looking = 0;
		s->kicked = 1;
		say(", kicks the loop");
	}
}

/* --- entities: 0 waits for its turn, 1 reviews, then what it does; the entry's reference is the worker's meanwhile --- */

static bool turn(struct state *s, int e)
{
	if (!s->entry[e] || s->closed)
		return false;
	s->state[e] = RUNNING;
	s->owed_before[e] = s->owed[e];
	s->pc[e] = 1;
	return true;
}

static void leave(struct state *s, int e)
{
	if (s->state[e] != RUNNING) {
		s->state[e] = RUNNING;
		s->owed_before[e] = s->owed[e];
		s->pc[e] = 1;
		return;
	}
	s->state[e] = s->pc[e] = s->entry[e] = 0;
	live_drop(s);
}

/* Passes on what it was offered, if the review did not end in a claim; then (5) pokes, leaves or (DONE) quits. */
static void pass_on(struct state *s, int e)
{
	if (s->owed_before[e]) {
		s->owed[e] = s->owed_before[e] = 0;
		s->offered[e] = (uint8_t)offer(s);
	}
	s->pc[e] = 5;
}

static bool claim(struct state *s, int e)
{
	s->owed[e] = s->owed_before[e] = 0;
	unlist(s, e);
	if (SIZE - s->used < (int)need(e)) {
		enlist(s, e);
		say("is refused");
		return false;
	}
	s->used += (uint8_t)need(e);
	s->offered[e] = (uint8_t)offer(s);
	s->claimed[e] = 1;
	say("claims");
	return true;
}

static void poke_offered(struct state *s, int t)
{
	if (s->offered[t] != NOTHING) {
		poke(s, s->offered[t]);
		say("pokes %s, to which a block was offered", thread_name(s->offered[t]));
	}
	s->offered[t] = NOTHING;
}

static void quit(struct state *s, int e)
{
	unlist(s, e);
	s->state[e] = DONE;
	s->pc[e] = 9;
	s->entry[e] = 0;
	if (e == A && (setting & FORK))
		poke(s, B);
	live_drop(s);
	say("DONE");
}

static void tick_a(struct state *s)
{
	for (unsigned k = 0; k < each(); k++) {
		int i = s->made++;

		s->in_outlet[i] = 1;
		s->in_queue[i] = (setting & FORK) && !(setting & HALF && i % 2);
		s->refs[i] = (uint8_t)(1 + s->in_queue[i]);
		say("emits %d ", i);
	}
	s->claimed[A] = 0;
	if (!s->holding)
		live_take(s);
	s->holding = 1;
	if (setting & FORK)
		poke(s, B);
}

static bool step_a(struct state *s)
{
	switch (s->pc[A]) {
	case 0:
		return turn(s, A);
	case 1:
		if (s->made == all()) {
			quit(s, A);
		} else if (in_outlet(s) + each() > places() || ((setting & FORK) && in_queue(s) + each() > 2)) {
			say("no room");
			pass_on(s, A);
		} else {
			s->pc[A] = claim(s, A) ? 2 : 5;
		}
		return true;
	case 2:
		poke_offered(s, A);
		s->pc[A] = 3;
		return true;
	case 3:
		tick_a(s);
		s->pc[A] = 1;
		return true;
	case 5:
		poke_offered(s, A);
		leave(s, A);
		return true;
	}
	return false;
}

/* One reference falls; true: the last one. */
static bool drops(struct state *s, int i)
{
	s->refs[i]--;
	say("drops %d", i);
	return !s->refs[i];
}

/* Under the lock, which the loop does not take to read `outside`. */
static void not_outside(struct state *s, int i)
{
	if (s->handed[i])
		s->outside--;
	s->handed[i] = 0;
	say("%d is outside no more", i);
}

static void frees(struct state *s, int t, int i, bool worker)
{
	s->used--;
	s->offered[t] = (uint8_t)offer(s);
	say("frees %d", i);
	if (s->offered[t] != NOTHING && !worker && mutation != POKED_LATE && mutation != POKED_LATE_OWED && !s->closed) {
		live_take(s);
		s->held[t] = 1;
	}
}

static bool step_b(struct state *s)
{
	int i = 0;

	switch (s->pc[B]) {
	case 0:
		return turn(s, B);
	case 1:
		if (in_queue(s))
			s->pc[B] = claim(s, B) ? 2 : 5;
		else if (s->state[A] & DONE)
			quit(s, B);
		else
			pass_on(s, B);
		return true;
	case 2:		/* takes the oldest, pokes A: there is room */
		poke_offered(s, B);
		while (!s->in_queue[i])
			i++;
		s->in_queue[i] = 0;
		s->has[B] = (uint8_t)i;
		poke(s, A);
		s->pc[B] = 3;
		say("takes %d", i);
		return true;
	case 3:
		i = s->has[B];
		if (--s->refs[i])
			s->has[B] = NOTHING;
		s->pc[B] = s->has[B] == NOTHING ? 6 : 4;
		say("drops %d", i);
		return true;
	case 4:
		frees(s, B, s->has[B], true);
		not_outside(s, s->has[B]);
		s->has[B] = NOTHING;
		s->pc[B] = 7;
		return true;
	case 7:
		poke_offered(s, B);
		s->pc[B] = 6;
		return true;
	case 6:		/* releases its claim, unused */
		s->used -= (uint8_t)need(B);
		s->claimed[B] = 0;
		s->offered[B] = (uint8_t)offer(s);
		s->pc[B] = 8;
		return true;
	case 8:
		poke_offered(s, B);
		s->pc[B] = 1;
		return true;
	case 5:
		poke_offered(s, B);
		leave(s, B);
		return true;
	}
	return false;
}

/* --- the program --- */

static void hand_out(struct state *s, int i)
{
	if (!s->handed[i]) {
		s->handed[i] = 1;
		s->outside++;
	}
}

/* 4 drops, 5 kicks; or 6 and 10 free, 8 pokes, 9 drops its live reference, 7 kicks; 0 again */
static bool drop_steps(struct state *s, int t)
{
	int i = s->has[t];

	switch (s->pc[t]) {
	case 4:
		s->ours[i]--;
		s->pc[t] = drops(s, i) ? 6 : s->handed[i] ? 5 : 0;
		s->has[t] = s->pc[t] == 6 ? (uint8_t)i : NOTHING;
		return true;
	case 5:
		if (mutation != NOT_KICKED)
			look_again(s);
		s->pc[t] = 0;
		return true;
	case 6:
		s->locked = 1;
		if (mutation == OUTSIDE_FIRST)
			not_outside(s, i);
		else
			frees(s, t, i, false);
		s->pc[t] = 10;
		return true;
	case 10:
		if (mutation == OUTSIDE_FIRST)
			frees(s, t, i, false);
		else
			not_outside(s, i);
		s->locked = 0;
		s->has[t] = NOTHING;
		s->pc[t] = 8;
		return true;
	case 8:
		poke_offered(s, t);
		s->pc[t] = s->held[t] ? 9 : 7;
		return true;
	case 9:
		live_drop(s);
		s->held[t] = 0;
		s->pc[t] = 7;
		return true;
	case 7:
		if (mutation != FREE_NOT_KICKED)
			look_again(s);
		s->pc[t] = 0;
		return true;
	}
	return false;
}

static void take(struct state *s, int t)
{
	int i = 0;

	while (!s->in_outlet[i])
		i++;
	s->in_outlet[i] = 0;
	s->ours[i]++;
	s->has[t] = (uint8_t)i;
	if (mutation != NOTED_LATE)
		hand_out(s, i);
	s->drop[t] = !in_outlet(s);
	if (s->drop[t])
		s->holding = 0;
	s->pc[t] = 1;
	say("takes %d", i);
}

/* Drops it, gives it to the dropper, gives the dropper a second reference, or keeps it for ever. */
static void decide(struct state *s, int t)
{
	int i = s->has[t];

	switch (choose(setting & KEEPS && !s->kept ? 4 : 3)) {
	case 0:
		s->pc[t] = 4;
		break;
	case 1:
		s->given[i] = 1;
		s->pc[t] = 0;
		s->has[t] = NOTHING;
		say("gives %d to the dropper", i);
		break;
	case 2:
		s->given[i] = 1;
		s->refs[i]++;
		s->ours[i]++;
		s->pc[t] = 4;
		say("gives a second reference to %d to the dropper", i);
		break;
	case 3:
		s->kept = 1;
		s->pc[t] = 0;
		s->has[t] = NOTHING;
		say("keeps %d", i);
		break;
	}
}

static bool taker(struct state *s, int t)
{
	switch (s->pc[t]) {
	case 0:
		if (!in_outlet(s) || s->closed)
			return false;
		take(s, t);
		return true;
	case 1:
		if (mutation == NOTED_LATE)
			hand_out(s, s->has[t]);
		poke(s, A);
		s->pc[t] = 2;
		say("pokes A: there is room");
		return true;
	case 2:
		if (s->drop[t])
			live_drop(s);
		s->drop[t] = 0;
		s->pc[t] = 3;
		return true;
	case 3:
		decide(s, t);
		return true;
	}
	return drop_steps(s, t);
}

static bool dropper(struct state *s)
{
	if (s->pc[DROPPER])
		return drop_steps(s, DROPPER);
	for (unsigned i = 0; i < all(); i++)
		if (s->given[i]) {
			s->given[i] = 0;
			s->has[DROPPER] = (uint8_t)i;
			s->pc[DROPPER] = 4;
			return true;
		}
	return false;
}

/* --- the loop --- */

static bool program_holds(const struct state *s)
{
	for (unsigned i = 0; i < all(); i++)
		if (s->ours[i])
			return true;
	for (int t = TAKER; t <= DROPPER; t++)
		if (s->pc[t] == 6 || (s->pc[t] == 10 && mutation == OUTSIDE_FIRST)) /* it frees the block next */
			return true;
	return false;
}

static void close_run(struct state *s)
{
	bool stuck = false;

	s->closed = 1;
	s->pc[LOOP] = 9;
	for (int e = A; e <= B; e++) {
		bool waits = s->listed[e] || s->owed[e];

		stuck = stuck || waits;
		if (waits && SIZE - s->used >= (int)need(e))
			fail("closed though there is enough for %s", thread_name(e));
		if (waits && program_holds(s))
			fail("closed though the program holds what %s waits for", thread_name(e));
		if (s->entry[e])
			fail("closed though %s is queued", thread_name(e));
	}
	say("closes the run: %s", stuck ? "a deadlock" : "finished");
	if (!stuck && s->made != all())
		fail("finished after %d of %d messages", s->made, all());
}

/* Owns every entity that is not DONE; false: one moves. */
static bool own_all(struct state *s)
{
	for (int e = A; e <= B; e++)
		if (s->state[e] && !(s->state[e] & DONE))
			return false;
	for (int e = A; e <= B; e++)
		if (!s->state[e])
			s->state[e] = RUNNING;
	return true;
}

/* Without a reference, unless it was poked meanwhile: then the entry gets one. */
static void leave_one(struct state *s, int e)
{
	if (s->state[e] == RUNNING) {
		s->state[e] = 0;
	} else if (s->state[e] & RUNNING) {
		s->state[e] = POKED;
		s->entry[e] = 1;
		live_take(s);
	}
}

static bool loop(struct state *s)
{
	switch (s->pc[LOOP]) {
	case 0:
		if (!s->kicked || s->closed)
			return false;
		s->kicked = 0;
		s->pc[LOOP] = 1;
		return true;
	case 1:
		if (s->live || (s->looking && !s->moved)) {
			s->pc[LOOP] = 0;
			return true;
		}
		s->moved = 0;
		s->alone = 0;
		s->at = 0;
		s->pc[LOOP] = 10;
		return true;
	case 10:
		s->pc[LOOP] = s->outside ? 2 : 8;
		return true;
	case 2:		/* under the pool's lock */
		if (s->locked)
			return false;
		if (!lacks(s, A) && !lacks(s, B)) {
			s->pc[LOOP] = 8;
			return true;
		}
		if (mutation == STICKS) {
			s->pc[LOOP] = 0;
			return true;
		}
		if (mutation != LOOKED_LATE)
			s->looking = 1;
		s->pc[LOOP] = 3;
		say("looks");
		return true;
	case 3:
		if (mutation == NOT_OWNED) {
			s->pc[LOOP] = 4;
			return true;
		}
		live_take(s);
		s->moved = 0;
		if ((s->live == 1 || mutation == NOT_ALONE) && own_all(s)) {
			s->pc[LOOP] = 4;
		} else {
			live_drop(s);
			s->moved = 1;
			s->pc[LOOP] = 0;
			say("something moves");
		}
		return true;
	case 4:		/* under the pool's lock: is memory still wanted? */
		if (s->locked)
			return false;
		if (mutation != COUNTED_LAST)
			s->share = s->outside;
		s->pc[LOOP] = lacks(s, A) || lacks(s, B) ? 5 : 6;
		if (s->pc[LOOP] == 6)
			s->share = s->alone = 0;
		return true;
	case 5:		/* one message at a time: its references, and the graph's */
		if (s->in_queue[s->at] && s->handed[s->at] && s->refs[s->at] == 1)
			s->alone++;
		if (++s->at == all())
			s->pc[LOOP] = 6;
		return true;
	case 6:
		if (mutation == COUNTED_LAST && (lacks(s, A) || lacks(s, B)))
			s->share = s->outside;
		s->share = (uint8_t)(s->share - s->alone);
		if (mutation == LOOKED_LATE)
			s->looking = 1;
		say("%d are the program's", s->share);
		s->pc[LOOP] = 7;
		return true;
	case 7:		/* drops its reference, which must be the last one */
		if (mutation == LEFT_FIRST && !s->some) {
			s->pc[LOOP] = 11;
			s->some = 1;
			return true;
		}
		if (mutation != NOT_OWNED && --s->live && mutation != NOT_LAST)
			s->moved = s->share = 1;
		s->pc[LOOP] = mutation == LEFT_FIRST || mutation == NOT_OWNED ? 13 : 11;
		return true;
	case 11:
	case 12:	/* gives up the entities */
		leave_one(s, s->pc[LOOP] - 11);
		s->pc[LOOP]++;
		if (s->pc[LOOP] == 13 && mutation == LEFT_FIRST)
			s->pc[LOOP] = 7;
		return true;
	case 13:
		s->pc[LOOP] = s->share ? 0 : 8;
		s->share = s->alone = s->at = s->some = 0;
		return true;
	case 8:
		if (s->live || s->moved) {
			s->kicked = 1;
			s->pc[LOOP] = 0;
			return true;
		}
		close_run(s);
		return true;
	}
	return false;
}

/* A kick without a reason, as by a poke of an entity that is disabled. */
static bool onlooker(struct state *s)
{
	if (s->looks || s->closed)
		return false;
	s->looks++;
	if (!s->live)
		s->moved = 1;
	s->kicked = 1;
	return true;
}

static bool step(struct state *s, int t)
{
	if (s->locked && (t == A || t == B || (t <= DROPPER && s->pc[t] == 6)))
		return false;
	switch (t) {
	case A:
		return step_a(s);
	case B:
		return step_b(s);
	case TAKER:
	case TAKER2:
		return taker(s, t);
	case DROPPER:
		return dropper(s);
	case ONLOOKER:
		return onlooker(s);
	default:
		return loop(s);
	}
}

static void check(const struct state *s)
{
	if (s->used > SIZE)
		fail("more blocks in use than there are");
	if (!s->locked && s->outside > s->used)
		fail("more outside than in use");
}

static void at_end(const struct state *s)
{
	if (!s->closed && !(s->kept && (s->listed[A] || s->listed[B])))
		fail("the run never ends: %d made, %d used, %d outside, live %d", s->made, s->used, s->outside, s->live);
	if (s->live)
		fail("%d references are left", s->live);
	if (!s->kept && !(setting & FORK) && s->used)
		fail("%d blocks are lost", s->used);
}

static const struct run runs[] = {
	{"rules", NONE, 0, HOLDS},
	{"rules, a tick needs both blocks", NONE, PAIRS, HOLDS},
	{"rules, 2 places", NONE, WIDE, HOLDS},
	{"rules, an entity queues what was handed out", NONE, FORK, HOLDS},
	{"rules, an entity queues what was handed out, 2 places", NONE, FORK | WIDE, HOLDS},
	{"rules, a tick needs both blocks, an entity queues them", NONE, FORK | PAIRS, HOLDS},
	{"rules, it queues one of two and needs both blocks", NONE, FORK | PAIRS | HALF, HOLDS},
	{"rules, the program keeps one", NONE, KEEPS, HOLDS},
	{"rules, the program keeps one, a tick needs both", NONE, KEEPS | PAIRS, HOLDS},
	{"rules, the program keeps one, an entity queues one of two", NONE, KEEPS | FORK | PAIRS | HALF, HOLDS},
	{"rules, the program keeps one, an entity queues it", NONE, KEEPS | FORK, HOLDS},
	{"AS WRITTEN what was outside once counts as the program's", STICKS, FORK, BREAKS},
	{"AS WRITTEN noted after the outlet's lock", NOTED_LATE, PAIRS, BREAKS},
	{"AS WRITTEN the poke of a freeing thread comes after the lock, without a reference", POKED_LATE, 0, BREAKS},
	{"MUTANT and an owed entity does not count as refused", POKED_LATE_OWED, 0, BREAKS},
	{"MUTANT `looking` is set after the references were read", LOOKED_LATE, FORK, BREAKS},
	{"MUTANT a reference that is not the last one kicks nobody", NOT_KICKED, FORK, BREAKS},
	{"MUTANT what is freed kicks nobody", FREE_NOT_KICKED, FORK | PAIRS | HALF, BREAKS},
	{"MUTANT the loop's reference need not be the only one", NOT_ALONE, FORK, BREAKS},
	{"MUTANT the loop's reference need not be the last one that is dropped", NOT_LAST, FORK, BREAKS},
	{"MUTANT it gives up the entities before its reference", LEFT_FIRST, PAIRS | LONG, BREAKS},
	{"MUTANT what is freed is outside no more before the offer holds the run open", OUTSIDE_FIRST, PAIRS, BREAKS},
	{"the entities are not owned: the CAS is enough, but what is read may be written meanwhile", NOT_OWNED, FORK | PAIRS | HALF, HOLDS},
	{"outside is read after the references", COUNTED_LAST, FORK | PAIRS | HALF, HOLDS},
	{0}
};

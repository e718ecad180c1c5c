/*
 * M8: the ready queues (docs/dev/rules.md S9; F31): rings, `next` slots, the injector and its overflow, the due
 * list, sleep and wake.
 *
 * Actors: one to three workers, one or two foreign threads that poke. Each worker has a ring and a `next`
 * slot. Every look at a queue, every push and every look at the announcements is a step of its own.
 * Rule as modelled:
 *   a worker's push:  exchange into its own next slot; what was there before goes to the end of its ring;
 *                     then it looks at the announcements and wakes one. An entity that used its share goes to
 *                     the end of the ring (S2). ROOM: an entity that is poked for freed room goes to the end
 *                     of the ring instead.
 *   a foreign push:   onto the injector, an intrusive stack, by CAS; then the look at the announcements,
 *                     wakes one.
 *   a timer's push:   (DUE: what foreign threads push) to the end of the due list, in one critical section;
 *                     then the look at the announcements, wakes one.
 *   pop:              due, next (together at most ROW times in a row before the ring is looked at), ring,
 *                     due and next if they were not looked at before it, overflow, injector, others' rings,
 *                     others' next slots (by exchange). Due is
 *                     passed over if the pop before took from there and next is not empty. Every TURN-th pop
 *                     looks at overflow and injector first.
 *   injector:         emptied by exchange(NULL), reversed; the first is kept, the rest goes to the end of the
 *                     overflow in one critical section; then one look at the announcements for EACH entry
 *                     moved.
 *   sleep:            announce, look at every queue again, wait. If something is found, the announcement is
 *                     taken back; if a waker has taken it already, the worker passes the wake-up on (it was
 *                     meant for another entry).
 *   wake one:         removes one announcement and wakes that worker.
 * Properties: each poke is answered by a review; no entity in two queues or on two workers at once; a compute
 * that may last until others have begun (BARRIER: as many as there are workers) is never waited for by an
 * entity that is queued while a worker sleeps; nothing is left in the end. GOAL settings go on for ever until
 * one entity has run: a weakly fair cycle is a starvation.
 * Fewer states, and the same runs: a look at an own place that is empty is no step, as only its worker fills it; nor is one at
 * a place of another's in the scenarios in which workers push nothing.
 * Bounds: 1-3 workers, 3-5 entities, ROW 2 (S9: 8), TURN 3 (S9: 61). The live counter is M3's, memory order
 * m3_sleep's.
 * WORTH, the rule of the code: a push by a worker, or a look at another's queue, may take or leave what is there, as a
 * choice; what keeps this right is the lookout (DROP_ROLE before it looks, TAKE_ROLE after everything was looked at,
 * LAZY_ROLE: a worker that leaves entries and sees no lookout wakes another). Its timed sleep may end at any moment.
 * LOOP_LOOKS, the same where the workers keep time: a worker that sees no lookout gives the role to the loop, which gives it up at
 * any moment, then looks at the workers' queues one by one and wakes a worker for the first that it sees; if it sees none it
 * may take the role again (here once), as it does while the graph is busy. A worker that leaves entries takes the
 * role from it. One that has announced its sleep may do so before it looks again (RELIEVE; the code: before a long sleep); if it then
 * stays awake, its look has ended early: before it runs something it looks whether more waits, as one that has slept does. (That the loop's wait ends is m17_timers'.)
 * Run: build/m8_next [-v [NAME]]
 * Result: holds (up to 12 million states a run). One look for a whole batch is too little with 3 workers; a
 * wake-up must be passed on unless the second look has the order of the pop; the overflow comes before the
 * injector. LAZY is right too: a push into next wakes none, but before each compute the worker looks at the
 * announcements if its next slot or ring holds something.
 */
#include <stdint.h>
#define THREADS 6
#define W 3
#define LOOP_HAS_ROLE (W + 1)
#define E 5
#define ROW 2
#define TURN_OF 3
enum { FOREIGN_0 = 3, FOREIGN_1, LOOP };
enum { POKED = 1, RUNNING = 2 };
enum {
	FINITE = 1, LONG, LONG_TWO, LONG_MIXED, BATCH, FOREIGN, PING_RING, PING_INJECTOR, PING_OVERFLOW, PINGS, PINGS_RING, ENDLESS,
	ALWAYS, ALWAYS_RING, ENDLESS_RING, ENDLESS_NEXT, SCENARIO = 31
};
enum { WORKERS_2 = 32, WORKERS_3 = 64, DUE = 128 };
enum mutation {
	NONE, RECHECK_SKIPS_NEXT, NEXT_NOT_STOLEN, NO_ROW_BOUND, INJECTOR_NEVER_FIRST, BATCH_WAKES_NOBODY, BATCH_WAKES_ONE, NO_PASS_ON,
	INJECTOR_BEFORE_OVERFLOW, FIRST_SKIPS_OVERFLOW, NEXT_WAKES_NOBODY, LAZY, NEXT_BY_STORE, STOLEN_BY_STORE, OLD_AFTER_WAKE,
	RECHECK_SKIPS_OVERFLOW, WAKE_CHAIN, REVERSED, REVERSED_NO_PASS_ON, ROOM, ROOM_WAKES_NOBODY,
	RECHECK_SKIPS_DUE, NO_TURNS, DUE_WAKES_NOBODY,
	WORTH, NO_LOOKOUT_WAKES_NOBODY, LEFT_WITHOUT_LOOKOUT, LEAVES_STUCK, ROLE_KEPT, REST_UNTOLD,
	LOOP_LOOKS, LOOP_WAKES_NOBODY, LOOP_NOT_TAKEN_FROM,
	RELIEVED_LATE, RELIEVED_FOR_GOOD
};
struct state {
	uint8_t word[E], owner[E], asked[E], ticks[E], begun, to[2];
	uint8_t due[E], dues, was_due;
	uint8_t ring[W][E], rings[W], next[W], stack[E], stacked, overflow[E], overflows, batch[W][E], batched[W];
	uint8_t lookout, again, relieved[W], sure[W], left[W], slept[W], timed[W];
	uint8_t asleep, wake[W], pc[THREADS], at[W], entity[W], row[W], pops[W], poke[THREADS], carried[W], wakes[W], then[W], new[W];
};
#define THREAD_NAMES
#include "explore.h"

static const char *thread_name(int t)
{
	static const char *names[] = {"worker A", "worker B", "worker C", "foreign 0", "foreign 1", "loop"};
	return names[t];
}

static int scenario(void) { return setting & SCENARIO; }
static bool timers(void) { return setting & DUE; }
static int workers(void) { return (setting & WORKERS_3) ? 3 : (setting & WORKERS_2) ? 2 : 1; }

/* --- what the entities do --- */

/* The entity that must run before the endless ones stop; E: none is endless. */
static int goal(void)
{
	switch (scenario()) {
	case PING_RING: case PING_INJECTOR: case PING_OVERFLOW: return 2;
	case PINGS: case PINGS_RING: return 4;
	case ENDLESS: case ENDLESS_RING: case ENDLESS_NEXT: return 1;
	case ALWAYS: return 3;
	case ALWAYS_RING: return 0;
	}
	return E;
}

static bool over(const struct state *s)
{
	return goal() == E || s->ticks[goal()] >= (scenario() == ALWAYS_RING ? 2 : 1);
}

/* The entities that e's tick pokes, as bits. */
static int targets(const struct state *s, int e)
{
	static const uint8_t finite[2][4] = {{2 | 4, 8, 8, 0}, {8, 0, 1, 0}};

	switch (scenario()) {
	case FINITE: return s->ticks[e] <= 2 ? finite[s->ticks[e] - 1][e] : 0;
	case LONG: case LONG_MIXED: return e == 0 && s->ticks[0] == 1 ? 2 : 0;
	case LONG_TWO: return e == 0 && s->ticks[0] == 1 ? 2 | 4 : 0;
	case PING_RING: case PING_INJECTOR: case PING_OVERFLOW: return e < 2 && !over(s) ? 2 >> e : 0;
	case PINGS: case PINGS_RING: return e < 4 && !over(s) ? 1 << (e ^ 1) : 0;
	case ALWAYS: case ALWAYS_RING: return (e == 1 || e == 2) && !over(s) ? 1 << (3 - e) : 0;
	}
	return 0;
}

/* E0 is READY a second time without a poke; in ALWAYS it goes through the ring. */
static bool again(const struct state *s, int e)
{
	return e == 0 && scenario() >= LONG && scenario() <= LONG_MIXED && s->ticks[0] == 1;
}

static bool requeues(const struct state *s, int e)
{
	return e == 0 && (scenario() == ALWAYS || scenario() == ALWAYS_RING) && !over(s);
}

/* A long compute: ends only when these have begun. */
static int waits_for(const struct state *s, int e)
{
	switch (scenario()) {
	case LONG: return e == 0 && s->ticks[0] == 1 ? 2 : 0;
	case LONG_TWO: return (e == 0 && s->ticks[0] == 1) || (e && workers() == 3) ? 6 : 0;
	case LONG_MIXED: return e || s->ticks[0] == 1 ? 6 : 0;
	case BATCH: case FOREIGN: return workers() == 3 ? 7 : 3;
	}
	return 0;
}

/* The entities that a foreign thread pokes, in order; an endless one begins again. */
static int foreign_target(const struct state *s, int f)
{
	int k = s->poke[FOREIGN_0 + f];

	switch (scenario()) {
	case FINITE: return f == 0 && k < 3 - workers() ? choose(4) : -1;
	case LONG_MIXED: return f == 0 && k == 0 ? 2 : -1;
	case FOREIGN: return workers() == 3 ? (f == 0 ? (k < 2 ? k : -1) : k < 1 ? 2 : -1) : k < 1 ? f : -1;
	case PING_INJECTOR: return f == 0 && k == 0 ? 2 : -1;
	case PINGS: return f == 0 && k == 0 ? 4 : -1;
	case ALWAYS: return f == 0 && k == 0 ? 3 : -1;
	case ENDLESS: case ENDLESS_RING: case ENDLESS_NEXT: return over(s) ? -1 : f ? 2 : 0;
	}
	return -1;
}

static void put(uint8_t *list, uint8_t *n, int e)
{
	if (*n == E)
		fail("E%d does not fit: some entity is queued twice", e);
	list[(*n)++] = (uint8_t)(e + 1);
}

static int shift(uint8_t *list, uint8_t *n)
{
	int e = list[0] - 1;

	for (int i = 0; i + 1 < *n; i++)
		list[i] = list[i + 1];
	list[--*n] = 0;
	return e;
}

static void begin_with(struct state *s, uint8_t *list, uint8_t *n, int e)
{
	s->word[e] = POKED;
	s->asked[e] = 1;
	put(list, n, e);
}

static void begin_next(struct state *s, int w, int e)
{
	s->word[e] = POKED;
	s->asked[e] = 1;
	s->next[w] = (uint8_t)(e + 1);
}

enum { LOOK, MOVE, WAKE, PASS_ON, TURN, AGAIN, LAZY_LOOK, LAZY_ROLE, TICK, POKE, PUSH, PUSH_LATE, CARRY, LEAVE, REQUEUE, ANNOUNCE, RELIEVE, RECHECK, TAKE_ROLE, SLEEP, DROP_ROLE, STEAL_LATE, GONE };

static void begin(struct state *s)
{
	for (int w = workers(); w < W; w++)
		s->pc[w] = GONE;
	switch (scenario()) {
	case FINITE:
		begin_with(s, s->stack, &s->stacked, 1);
		begin_with(s, s->stack, &s->stacked, 2);
		break;
	case LONG: case LONG_TWO: case LONG_MIXED:
		begin_with(s, s->stack, &s->stacked, 0);
		break;
	case BATCH:
		for (int e = 0; e < workers(); e++)
			begin_with(s, s->stack, &s->stacked, e);
		break;
	case PING_OVERFLOW:
		begin_with(s, s->overflow, &s->overflows, 2);
		begin_next(s, 0, 0);
		break;
	case PING_RING:
		begin_with(s, s->ring[0], &s->rings[0], 2);
		/* fall through */
	case PING_INJECTOR:
		begin_next(s, 0, 0);
		break;
	case PINGS_RING:
		begin_with(s, s->ring[0], &s->rings[0], 4);
		/* fall through */
	case PINGS:
		begin_next(s, 0, 0);
		begin_next(s, 1, 2);
		break;
	case ENDLESS:
		begin_with(s, s->overflow, &s->overflows, 1);
		break;
	case ENDLESS_RING:
		begin_with(s, s->ring[0], &s->rings[0], 1);
		break;
	case ENDLESS_NEXT:
		begin_next(s, 0, 1);
		break;
	case ALWAYS: case ALWAYS_RING:
		begin_with(s, s->ring[0], &s->rings[0], 0);
		begin_next(s, 0, 1);
		break;
	}
}

/* --- looking --- */
static bool wake_one(struct state *s)
{
	for (int w = 0; w < workers(); w++)
		if (s->asleep >> w & 1) {
			s->asleep &= (uint8_t)~(1 << w);
			s->wake[w] = 1;
			say("wakes worker %c", 'A' + w);
			return true;
		}
	say("no sleeper to wake");
	return false;
}

static void take(struct state *s, int w, int e, const char *from)
{
	s->entity[w] = (uint8_t)e;
	s->at[w] = 0;
	s->pops[w] = (uint8_t)((s->pops[w] + 1) % TURN_OF);
	s->sure[w] = 0;
	s->pc[w] = TURN;
	say("takes E%d from %s", e, from);
}

static bool take_next(struct state *s, int w, int of)
{
	if (!s->next[of])
		return false;
	int e = s->next[of] - 1;
	if (w != of && mutation == STOLEN_BY_STORE) {
		s->carried[w] = (uint8_t)(e + 1);
		s->then[w] = (uint8_t)of;
		s->pc[w] = STEAL_LATE;
		say("sees E%d in a next slot", e);
		return true;
	}
	s->next[of] = 0;                                        /* order: next rmw acq_rel, argued */
	s->row[w] = (uint8_t)(s->row[w] + (w == of && s->row[w] < ROW));
	take(s, w, e, w == of ? "its next slot" : "another's next slot");
	return true;
}

static bool take_overflow(struct state *s, int w)
{
	if (!s->overflows)
		return false;
	take(s, w, shift(s->overflow, &s->overflows), "the overflow");
	if (mutation == WAKE_CHAIN && s->overflows) {           /* a variant: a worker that leaves entries behind wakes the next */
		s->wakes[w] = 1;
		s->then[w] = TURN;
		s->pc[w] = WAKE;
	}
	return true;
}

static bool take_injector(struct state *s, int w)
{
	if (!s->stacked)
		return false;
	while (s->stacked) {                                    /* exchange(NULL), then reversed: oldest first */ /* order: stack rmw acquire, argued */
		put(s->batch[w], &s->batched[w], s->stack[0] - 1);
		shift(s->stack, &s->stacked);
	}
	take(s, w, shift(s->batch[w], &s->batched[w]), "the injector");
	if (s->batched[w]) {
		s->pc[w] = MOVE;
		say(", %d more", s->batched[w]);
	}
	return true;
}

static bool due_has_turn(const struct state *s, int w)
{
	return !(s->was_due >> w & 1) || !s->next[w] || mutation == NO_TURNS;
}

/* The due list; in a row it counts as next does. */
static bool take_due(struct state *s, int w)
{
	bool turn = due_has_turn(s, w) && s->dues;

	s->was_due = (uint8_t)((s->was_due & ~(1 << w)) | turn << w);
	if (!turn)
		return false;
	s->row[w] = (uint8_t)(s->row[w] + (s->row[w] < ROW));
	take(s, w, shift(s->due, &s->dues), "what is due");
	return true;
}

/* A compute that lasts until others have begun, and they have not. */
static bool stuck(const struct state *s, int w)
{
	int e = s->entity[w];

	return s->pc[w] == TICK && (s->begun & waits_for(s, e)) != waits_for(s, e);
}

/*
 * WORTH: whether what another worker has queued is worth its while is any answer. But who was the lookout takes
 * it from a worker that has not gone on since it looked last, and one that stays awake for an entry takes one.
 */
static bool worth_taking(const struct state *s, int w, int of)
{
	if (mutation < WORTH || s->sure[w] || (s->timed[w] && stuck(s, of) && mutation != LEAVES_STUCK))
		return true;
	return choose(2);
}

/* Looks at one queue; the order of S9. */
static bool look(struct state *s, int w)
{
	bool first = s->pops[w] == TURN_OF - 1 && mutation != INJECTOR_NEVER_FIRST, swapped = mutation == INJECTOR_BEFORE_OVERFLOW, looked;
	int at = s->at[w]++, k;

	switch (at) {
	case 0: case 7:
		if ((at == 0 && !first) || (at == 0 && mutation == FIRST_SKIPS_OVERFLOW))
			return false;
		return swapped ? take_injector(s, w) : take_overflow(s, w);
	case 1: case 8:
		if (at == 1 && !first)
			return false;
		return swapped ? take_overflow(s, w) : take_injector(s, w);
	case 2:
		return (s->row[w] < ROW || mutation == NO_ROW_BOUND) && take_due(s, w);
	case 3:
		return (s->row[w] < ROW || mutation == NO_ROW_BOUND) && take_next(s, w, w);
	case 4:
		looked = s->row[w] < ROW || mutation == NO_ROW_BOUND;
		s->row[w] = 0;
		if (!s->rings[w]) {
			s->at[w] = looked ? 7 : 5;
			return false;
		}
		take(s, w, shift(s->ring[w], &s->rings[w]), "its ring");
		return true;
	case 5:
		return take_due(s, w);
	case 6:
		return take_next(s, w, w);
	}
	k = (w + 1 + (at - 9) / 2) % workers();
	if (at - 9 >= 2 * (workers() - 1)) {
		s->at[w] = 0;
		s->pc[w] = ANNOUNCE;
		s->sure[w] = 0;
		say("finds nothing");
		return true;
	}
	if ((at - 9) % 2)
		return mutation != NEXT_NOT_STOLEN && s->next[k] && worth_taking(s, w, k) && take_next(s, w, k);
	if (!s->rings[k])
		return false;
	if (!worth_taking(s, w, k)) {
		s->at[w]++;                                     /* its next slot goes with it */
		return false;
	}
	take(s, w, shift(s->ring[k], &s->rings[k]), "another's ring"); /* order: rings rmw acq_rel, argued */
	return true;
}

/* A worker pushes something in this scenario. */
static bool own_queues_used(void)
{
	return scenario() != BATCH && scenario() != FOREIGN && scenario() != ENDLESS;
}

/* Only w fills its own places, so one that is empty stays so: a look there is nothing to another thread. */
static bool looks_at_own(const struct state *s, int w, int at)
{
	return ((at == 3 || at == 6) && !s->next[w]) || (at == 4 && !s->rings[w]);
}

/* One look is one step, whether it finds something or not; a look that does not apply, or that only w could tell, is no step. */
static bool looks(struct state *s, int w)
{
	bool first = s->pops[w] == TURN_OF - 1 && mutation != INJECTOR_NEVER_FIRST;

	for (;;) {
		int at = s->at[w];
		bool applies = at > 3 || (at >= 2 ? s->row[w] < ROW || mutation == NO_ROW_BOUND : first);
		applies &= (at != 2 && at != 5) || timers();
		applies &= !looks_at_own(s, w, at) && (at < 9 || own_queues_used());
		if (look(s, w))
			return true;
		if (applies) {
			say("looks %d: nothing", at);
			return true;
		}
	}
}

/* Looks again at one queue after the announcement. Returns 1: not empty, 0: empty, -1: all queues seen. */
static int recheck(struct state *s, int w)
{
	int at = s->at[w]++ - timers(), last = 2 * workers() - 1;

	if ((mutation == REVERSED || mutation == REVERSED_NO_PASS_ON) && at <= last)
		at = last - timers() - at;
	if (at == -1)
		return mutation != RECHECK_SKIPS_DUE && s->dues;
	if (at == 0)
		return mutation != RECHECK_SKIPS_OVERFLOW && s->overflows;
	if (at == 1)
		return s->stacked > 0;
	if (!own_queues_used() && mutation != REVERSED && mutation != REVERSED_NO_PASS_ON)
		return -1;
	int k = (w + 1 + (at - 2) / 2) % workers();
	if (at - 2 >= 2 * (workers() - 1))
		return -1;
	bool found = (at - 2) % 2 ? mutation != RECHECK_SKIPS_NEXT && mutation != NEXT_NOT_STOLEN && s->next[k] : s->rings[k] > 0;
	if (found && mutation >= WORTH) {
		s->sure[w] = choose(2);
		s->left[w] |= !s->sure[w];
		return s->sure[w];
	}
	return found;
}

static bool take_back_announcement(struct state *s, int w)
{
	bool woken = s->wake[w];

	s->asleep &= (uint8_t)~(1 << w);
	s->wake[w] = 0;
	s->slept[w] |= s->relieved[w] && mutation != RELIEVED_FOR_GOOD;
	s->at[w] = s->left[w] = s->relieved[w] = 0;
	s->pc[w] = woken && mutation != NO_PASS_ON && mutation != REVERSED_NO_PASS_ON ? PASS_ON : LOOK;
	say("looks again: there is work%s", woken ? "; had been woken already" : "");
	return true;
}

/* --- a worker --- */
static void poked(struct state *s, int e)
{
	s->asked[e] = 1;
	say("pokes E%d (was %d)", e, s->word[e]);
	s->word[e] |= POKED;
}

/* A poke for freed room: to the end of the ring, past the next slot. */
static bool push_room(struct state *s, int w)
{
	int e = s->new[w] - 1;

	put(s->ring[w], &s->rings[w], e);
	s->new[w] = 0;
	s->wakes[w] = 1;
	s->then[w] = POKE;
	s->pc[w] = mutation == ROOM_WAKES_NOBODY || mutation >= WORTH ? POKE : WAKE;
	say("E%d to the end of its ring", e);
	return true;
}

static bool push_next(struct state *s, int w)
{
	int e = s->new[w] - 1;

	if (!own_queues_used())
		give_up("a worker pushes where none is expected to");
	if ((mutation == ROOM || mutation == ROOM_WAKES_NOBODY || mutation >= WORTH) && choose(2))
		return push_room(s, w);
	s->carried[w] = mutation == NEXT_BY_STORE && s->pc[w] == PUSH_LATE ? s->carried[w] : s->next[w];
	if (mutation == NEXT_BY_STORE && s->pc[w] == PUSH) {
		s->pc[w] = PUSH_LATE;
		say("reads its next slot");
		return true;
	}
	s->next[w] = (uint8_t)(e + 1);                          /* order: next rmw acq_rel, argued */
	s->new[w] = 0;
	s->wakes[w] = 1;
	s->then[w] = POKE;
	s->pc[w] = s->carried[w] ? CARRY : mutation == NEXT_WAKES_NOBODY || mutation == LAZY || mutation >= WORTH ? POKE : WAKE;
	if (s->carried[w] && mutation == OLD_AFTER_WAKE) {
		s->then[w] = CARRY;
		s->pc[w] = WAKE;
	}
	say("E%d into its next slot", e);
	return true;
}

/* A worker that has slept looks once whether more waits, if another one sleeps: a skipped wake counts on that. */
static bool more_elsewhere(const struct state *s, int w)
{
	bool more = s->overflows || s->stacked || s->dues;

	for (int k = 0; k < workers(); k++)
		more |= s->next[k] || s->rings[k];
	return s->slept[w] && s->asleep && more && mutation != REST_UNTOLD;
}

static void leave(struct state *s, int w, int e)
{
	if (requeues(s, e)) {
		s->pc[w] = REQUEUE;
		s->owner[e] = 0;
		s->word[e] = POKED;
		s->asked[e] = 1;
		say("E%d -> QUEUED", e);
	} else if (s->word[e] == RUNNING) {
		s->word[e] = s->owner[e] = 0;
		s->pc[w] = LOOK;
		s->entity[w] = 0;
		say("E%d -> IDLE", e);
	} else {
		s->pc[w] = AGAIN;
		say("E%d was poked", e);
	}
}

static bool worker(struct state *s, int w)
{
	uint8_t *pc = &s->pc[w];
	int e = s->entity[w], found;

	switch (*pc) {
	case LOOK:
		return looks(s, w);
	case STEAL_LATE:                                        /* mutant */
		s->next[s->then[w]] = 0;
		found = s->carried[w] - 1;
		s->carried[w] = s->then[w] = 0;
		take(s, w, found, "another's next slot, by load and store");
		return true;
	case MOVE:
		s->wakes[w] = s->batched[w];
		while (s->batched[w])
			put(s->overflow, &s->overflows, shift(s->batch[w], &s->batched[w]));
		if (mutation == BATCH_WAKES_ONE || mutation == WAKE_CHAIN)
			s->wakes[w] = 1;
		s->then[w] = TURN;
		*pc = mutation == BATCH_WAKES_NOBODY ? TURN : WAKE;
		say("moves the rest to the overflow");
		return true;
	case WAKE:
		if (!wake_one(s) || !--s->wakes[w]) {
			*pc = s->then[w];
			s->then[w] = s->wakes[w] = 0;
		}
		return true;
	case PASS_ON:
		wake_one(s);
		*pc = LOOK;
		return true;
	case TURN:
		if (s->owner[e])
			fail("two workers in E%d", e);
		if (s->word[e] != POKED)
			fail("E%d was popped though it is not QUEUED: it was queued twice", e);
		s->owner[e] = (uint8_t)(w + 1);
		/* fall through */
	case AGAIN:
		s->word[e] = RUNNING;
		s->asked[e] = s->then[w] = s->wakes[w] = 0;
		if (scenario() >= LONG && scenario() <= FOREIGN) /* in the others no compute waits for that */
			s->begun |= (uint8_t)(1 << e);
		*pc = (mutation == LAZY || mutation >= WORTH) && (s->next[w] || s->rings[w] || more_elsewhere(s, w)) ? LAZY_LOOK : TICK;
		s->slept[w] = s->timed[w] = 0;
		say("E%d -> RUNNING", e);
		return true;
	case LAZY_LOOK:                                         /* before a compute, if something would wait behind it */
		if (mutation >= WORTH && s->asleep && choose(2)) {
			*pc = LAZY_ROLE;
			say("not worth a wake-up");
			return true;
		}
		wake_one(s);
		*pc = TICK;
		return true;
	case LAZY_ROLE:
		if (!s->lookout && mutation >= LOOP_LOOKS)
			s->lookout = LOOP_HAS_ROLE;             /* order: lookout rmw seq_cst, argued */
		else if (!s->lookout && mutation != NO_LOOKOUT_WAKES_NOBODY)
			wake_one(s);
		say(s->lookout == LOOP_HAS_ROLE ? "the loop is the lookout" : s->lookout ? "worker %c is the lookout" : "", 'A' + s->lookout - 1);
		*pc = TICK;
		return true;
	case TICK:
		if ((s->begun & waits_for(s, e)) != waits_for(s, e))
			return false;
		s->ticks[e] += s->ticks[e] < 3 && (goal() == E || e == goal());
		s->poke[w] = (uint8_t)targets(s, e);
		*pc = POKE;
		say("E%d ticks", e);
		return true;
	case POKE: {
		int to = 0;
		s->wakes[w] = s->then[w] = 0;
		if (!s->poke[w]) {
			*pc = again(s, e) ? AGAIN : LEAVE;
			say("delivered");
			return true;
		}
		while (!(s->poke[w] >> to & 1))
			to++;
		s->poke[w] &= (uint8_t)~(1 << to);
		s->new[w] = s->word[to] ? 0 : (uint8_t)(to + 1);
		*pc = s->word[to] ? POKE : PUSH;
		poked(s, to);
		return true;
	}
	case PUSH: case PUSH_LATE:
		return push_next(s, w);
	case CARRY:
		put(s->ring[w], &s->rings[w], s->carried[w] - 1);
		say("E%d, which was there, to the end of its ring", s->carried[w] - 1);
		s->carried[w] = 0;
		*pc = mutation == OLD_AFTER_WAKE || mutation >= WORTH ? POKE : WAKE;
		s->wakes[w] = 1;
		s->then[w] = POKE;
		return true;
	case REQUEUE:
		put(s->ring[w], &s->rings[w], e);
		s->wakes[w] = 1;
		s->then[w] = LOOK;
		s->entity[w] = 0;
		*pc = mutation >= WORTH ? LOOK : WAKE;
		if (mutation >= WORTH)
			s->wakes[w] = s->then[w] = 0;
		say("to the end of its ring");
		return true;
	case LEAVE:
		leave(s, w, e);
		return true;
	case ANNOUNCE:
		s->asleep |= (uint8_t)(1 << w);
		*pc = mutation >= LOOP_LOOKS && mutation != RELIEVED_LATE ? RELIEVE : RECHECK;
		say("announces its sleep");
		return true;
	case RELIEVE:                                           /* before it looks: what relies on the role is seen */
		s->relieved[w] = s->lookout == LOOP_HAS_ROLE && choose(2);
		s->lookout = s->relieved[w] ? 0 : s->lookout;   /* order: lookout rmw seq_cst, argued */
		*pc = mutation == RELIEVED_LATE ? SLEEP : RECHECK;
		say(s->relieved[w] ? "the loop is the lookout no more" : "the loop stays what it is");
		return true;
	case RECHECK:
		found = recheck(s, w);
		if (found > 0)
			return take_back_announcement(s, w);
		if (found < 0) {
			s->at[w] = 0;
			*pc = s->left[w] && mutation != LEFT_WITHOUT_LOOKOUT ? TAKE_ROLE : mutation == RELIEVED_LATE ? RELIEVE : SLEEP;
			s->left[w] = s->timed[w] = s->slept[w] = s->relieved[w] = 0;
		}
		say(found < 0 ? "sleeps" : "looks again: nothing");
		return true;
	case TAKE_ROLE:                                         /* leaves entries to their workers */
		if (!s->lookout || (s->lookout == LOOP_HAS_ROLE && mutation != LOOP_NOT_TAKEN_FROM))
			s->lookout = (uint8_t)(w + 1);          /* order: lookout rmw seq_cst, argued */
		*pc = SLEEP;
		say(s->lookout == w + 1 ? "is the lookout, sleeps for a time" : "sleeps");
		return true;
	case SLEEP:
		if (!s->wake[w] && s->lookout != w + 1)
			return false;
		say(s->wake[w] ? "wakes up" : "its time is over");
		s->wake[w] = 0;
		s->asleep &= (uint8_t)~(1 << w);
		s->slept[w] = mutation >= WORTH;
		s->timed[w] = s->lookout == w + 1;
		*pc = s->lookout == w + 1 && mutation != ROLE_KEPT ? DROP_ROLE : LOOK;
		return true;
	case DROP_ROLE:                                         /* before it looks: who relies on it is seen */
		s->lookout = 0;
		*pc = LOOK;
		say("is the lookout no more");
		return true;
	}
	return false;
}

static bool foreign(struct state *s, int t)
{
	uint8_t *pc = &s->pc[t], *to = &s->to[t - FOREIGN_0];
	int e;

	switch (*pc) {
	case 0:
		e = foreign_target(s, t - FOREIGN_0);
		if (e < 0 || (scenario() >= ENDLESS && scenario() != ALWAYS && s->word[e])) /* endless: when that has an effect */
			return false;
		*pc = s->word[e] ? 0 : 1;
		*to = s->word[e] ? 0 : (uint8_t)(e + 1);
		s->poke[t] = (uint8_t)(s->poke[t] + (scenario() < ENDLESS || scenario() == ALWAYS));
		poked(s, e);
		return true;
	case 1:
		if (timers())
			put(s->due, &s->dues, *to - 1);
		else
			put(s->stack, &s->stacked, *to - 1); /* order: stack rmw release, argued */
		*pc = mutation == DUE_WAKES_NOBODY ? 0 : 2;
		say("pushes E%d onto the %s", *to - 1, timers() ? "due list" : "injector");
		*to = 0;
		return true;
	default:
		wake_one(s);
		*pc = 0;
		return true;
	}
}

/* pc: 0, or 1 + the worker whose queue it looks at next. */
static bool loop(struct state *s)
{
	uint8_t *pc = &s->pc[LOOP];
	int k = *pc - 1;

	if (k < 0) {
		if (s->lookout != LOOP_HAS_ROLE)
			return false;
		s->lookout = 0;                                 /* before it looks */
		*pc = 1;
		say("is the lookout no more");
	} else if (s->next[k] || s->rings[k] || k + 1 == workers()) {
		say(s->next[k] || s->rings[k] ? "sees an entry of worker %c" : "sees nothing", 'A' + k);
		if ((s->next[k] || s->rings[k]) && mutation != LOOP_WAKES_NOBODY) {
			wake_one(s);
		} else if (!s->lookout && !s->again && choose(2)) {
			s->lookout = LOOP_HAS_ROLE;             /* order: lookout rmw seq_cst, argued */
			s->again = 1;
		}
		*pc = 0;
	} else {
		(*pc)++;
	}
	return true;
}

static bool step(struct state *s, int t)
{
	if (t == LOOP)
		return loop(s);
	return t >= FOREIGN_0 ? foreign(s, t) : worker(s, t);
}

static int places(const struct state *s, int e)
{
	int n = 0;

	for (int i = 0; i < E; i++)
		n += (s->stack[i] == e + 1) + (s->overflow[i] == e + 1) + (s->due[i] == e + 1);
	for (int w = 0; w < W; w++) {
		n += (s->next[w] == e + 1) + (mutation != STOLEN_BY_STORE && s->pc[w] != PUSH_LATE && s->carried[w] == e + 1);
		for (int i = 0; i < E; i++)
			n += (s->ring[w][i] == e + 1) + (s->batch[w][i] == e + 1);
	}
	return n;
}

static void check(const struct state *s)
{
	for (int e = 0; e < E; e++)
		if (places(s, e) > 1)
			fail("E%d is queued twice", e);
}

static void at_end(const struct state *s)
{
	for (int e = 0; e < E; e++)
		if (places(s, e))
			fail("E%d is queued %s and not taken", e, s->asleep ? "while a worker sleeps" : "behind a long compute");
	for (int e = 0; e < E; e++)
		if (s->asked[e] || s->word[e])
			fail("E%d was poked and never reviewed", e);
	for (int w = 0; w < workers(); w++)
		if (s->pc[w] != SLEEP)
			fail("worker %c hangs", 'A' + w);
	if (goal() < E && !over(s))
		fail("E%d never ran", goal());
	if (s->lookout)
		fail("a worker looks for ever");
}

static const struct run runs[] = {
	{"rules, 1 worker, 4 entities, late pokes", NONE, FINITE, HOLDS},
	{"rules, 2 workers, 4 entities, late pokes", NONE, FINITE | WORKERS_2, HOLDS},
	{"rules, 3 workers, 4 entities, late pokes", NONE, FINITE | WORKERS_3, HOLDS},
	{"rules, a long compute, one behind it in next", NONE, LONG | WORKERS_2, HOLDS},
	{"rules, a long compute, two behind it in next and ring, 2 workers", NONE, LONG_TWO | WORKERS_2, HOLDS},
	{"rules, a long compute, two behind it in next and ring, 3 workers", NONE, LONG_TWO | WORKERS_3, HOLDS},
	{"rules, a long compute, one in next, one from outside, 3 workers", NONE, LONG_MIXED | WORKERS_3, HOLDS},
	{"rules, 2 long computes in one batch, 2 workers", NONE, BATCH | WORKERS_2, HOLDS},
	{"rules, 3 long computes in one batch, 3 workers", NONE, BATCH | WORKERS_3, HOLDS},
	{"rules, 2 long computes poked from outside, 2 workers", NONE, FOREIGN | WORKERS_2, HOLDS},
	{"rules, 3 long computes poked from outside, 3 workers", NONE, FOREIGN | WORKERS_3, HOLDS},
	{"rules, next for ever, one waits in the ring, 1 worker", NONE, PING_RING, HOLDS},
	{"rules, next for ever, one waits in the injector, 1 worker", NONE, PING_INJECTOR, HOLDS},
	{"rules, next for ever, one waits in the overflow, 1 worker", NONE, PING_OVERFLOW, HOLDS},
	{"rules, next for ever, one waits in the ring, 2 workers", NONE, PING_RING | WORKERS_2, HOLDS},
	{"rules, two pairs for ever, one waits in the injector, 2 workers", NONE, PINGS | WORKERS_2, HOLDS},
	{"rules, two pairs for ever, one waits in a ring, 2 workers", NONE, PINGS_RING | WORKERS_2, HOLDS},
	{"rules, injector for ever, one waits in the overflow, 1 worker", NONE, ENDLESS, HOLDS},
	{"rules, ring and next for ever, one waits in the injector, 1 worker", NONE, ALWAYS, HOLDS},
	{"rules, next for ever, an always-ready one in the ring, 1 worker", NONE, ALWAYS_RING, HOLDS},
	{"a batch wakes one, who takes and leaves some wakes the next, batch", WAKE_CHAIN, BATCH | WORKERS_3, HOLDS},
	{"a batch wakes one, who takes and leaves some wakes the next, outside", WAKE_CHAIN, FOREIGN | WORKERS_3, HOLDS},
	{"LAZY: next wakes nobody; a look before each compute instead", LAZY, LONG | WORKERS_2, HOLDS},
	{"LAZY, two behind it in next and ring, 3 workers", LAZY, LONG_TWO | WORKERS_3, HOLDS},
	{"LAZY, 2 workers, 4 entities, late pokes", LAZY, FINITE | WORKERS_2, HOLDS},
	{"a poke for room goes to the ring's end, 1 worker, 4 entities, late pokes", ROOM, FINITE, HOLDS},
	{"a poke for room goes to the ring's end, 2 workers, 4 entities, late pokes", ROOM, FINITE | WORKERS_2, HOLDS},
	{"a poke for room goes to the ring's end, 3 workers, 4 entities, late pokes", ROOM, FINITE | WORKERS_3, HOLDS},
	{"a poke for room goes to the ring's end, a long compute", ROOM, LONG | WORKERS_2, HOLDS},
	{"a poke for room goes to the ring's end, two behind a long compute, 2 workers", ROOM, LONG_TWO | WORKERS_2, HOLDS},
	{"a poke for room goes to the ring's end, two behind a long compute, 3 workers", ROOM, LONG_TWO | WORKERS_3, HOLDS},
	{"a poke for room goes to the ring's end, one from outside, 3 workers", ROOM, LONG_MIXED | WORKERS_3, HOLDS},
	{"a poke for room goes to the ring's end for ever, one waits in the ring", ROOM, PING_RING, HOLDS},
	{"a poke for room goes to the ring's end for ever, one waits in the injector", ROOM, PING_INJECTOR, HOLDS},
	{"a poke for room goes to the ring's end for ever, one waits in the overflow", ROOM, PING_OVERFLOW, HOLDS},
	{"a poke for room goes to the ring's end, two pairs for ever, 2 workers", ROOM, PINGS | WORKERS_2, HOLDS},
	{"a poke for room goes to the ring's end, two pairs for ever, one in a ring, 2 workers", ROOM, PINGS_RING | WORKERS_2, HOLDS},
	{"a poke for room goes to the ring's end for ever, an always-ready one too", ROOM, ALWAYS_RING, HOLDS},
	{"due: 1 worker, 4 entities, late pokes", NONE, FINITE | DUE, HOLDS},
	{"due: 2 workers, 4 entities, late pokes", NONE, FINITE | WORKERS_2 | DUE, HOLDS},
	{"due: a long compute, one in next, one due, 3 workers", NONE, LONG_MIXED | WORKERS_3 | DUE, HOLDS},
	{"due: 2 long computes, 2 workers", NONE, FOREIGN | WORKERS_2 | DUE, HOLDS},
	{"due: 3 long computes, 3 workers", NONE, FOREIGN | WORKERS_3 | DUE, HOLDS},
	{"due for ever, one waits in the overflow, 1 worker", NONE, ENDLESS | DUE, HOLDS},
	{"due for ever, one waits in the ring, 1 worker", NONE, ENDLESS_RING | DUE, HOLDS},
	{"due for ever, one waits in next, 1 worker", NONE, ENDLESS_NEXT | DUE, HOLDS},
	{"ring and next for ever, one is due, 1 worker", NONE, ALWAYS | DUE, HOLDS},
	{"next for ever, one is due, 1 worker", NONE, PING_INJECTOR | DUE, HOLDS},
	{"WORTH: wakes and steals if it is worth it; a lookout, 2 workers, late pokes", WORTH, FINITE | WORKERS_2, HOLDS},
	{"WORTH, 3 workers, late pokes", WORTH, FINITE | WORKERS_3, HOLDS},
	{"WORTH, a long compute, one behind it", WORTH, LONG | WORKERS_2, HOLDS},
	{"WORTH, a long compute, one behind it, 3 workers", WORTH, LONG | WORKERS_3, HOLDS},
	{"WORTH, a long compute, two behind it, 2 workers", WORTH, LONG_TWO | WORKERS_2, HOLDS},
	{"WORTH, long computes, two behind them, 3 workers", WORTH, LONG_TWO | WORKERS_3, HOLDS},
	{"WORTH, a long compute, one behind it, one from outside, 3 workers", WORTH, LONG_MIXED | WORKERS_3, HOLDS},
	{"WORTH, 2 long computes in one batch, 2 workers", WORTH, BATCH | WORKERS_2, HOLDS},
	{"WORTH, 3 long computes in one batch, 3 workers", WORTH, BATCH | WORKERS_3, HOLDS},
	{"WORTH, 2 long computes poked from outside, 2 workers", WORTH, FOREIGN | WORKERS_2, HOLDS},
	{"WORTH, 3 long computes poked from outside, 3 workers", WORTH, FOREIGN | WORKERS_3, HOLDS},
	{"WORTH, next for ever, one waits in the ring, 2 workers", WORTH, PING_RING | WORKERS_2, HOLDS},
	{"WORTH, two pairs for ever, one waits in a ring, 2 workers", WORTH, PINGS_RING | WORKERS_2, HOLDS},
	{"WORTH, two pairs for ever, one waits in the injector, 2 workers", WORTH, PINGS | WORKERS_2, HOLDS},
	{"WORTH, due: a long compute, one in next, one due, 3 workers", WORTH, LONG_MIXED | WORKERS_3 | DUE, HOLDS},
	{"LOOP_LOOKS: the loop is the lookout if nobody is, 2 workers, late pokes", LOOP_LOOKS, FINITE | WORKERS_2, HOLDS},
	{"LOOP_LOOKS, a long compute, one behind it", LOOP_LOOKS, LONG | WORKERS_2, HOLDS},
	{"LOOP_LOOKS, a long compute, one behind it, 3 workers", LOOP_LOOKS, LONG | WORKERS_3, HOLDS},
	{"LOOP_LOOKS, a long compute, two behind it, 2 workers", LOOP_LOOKS, LONG_TWO | WORKERS_2, HOLDS},
	{"LOOP_LOOKS, long computes, two behind them, 3 workers", LOOP_LOOKS, LONG_TWO | WORKERS_3, HOLDS},
	{"LOOP_LOOKS, a long compute, one behind it, one from outside, 3 workers", LOOP_LOOKS, LONG_MIXED | WORKERS_3, HOLDS},
	{"LOOP_LOOKS, 2 long computes in one batch, 2 workers", LOOP_LOOKS, BATCH | WORKERS_2, HOLDS},
	{"LOOP_LOOKS, 3 long computes in one batch, 3 workers", LOOP_LOOKS, BATCH | WORKERS_3, HOLDS},
	{"LOOP_LOOKS, 2 long computes poked from outside, 2 workers", LOOP_LOOKS, FOREIGN | WORKERS_2, HOLDS},
	{"LOOP_LOOKS, 3 long computes poked from outside, 3 workers", LOOP_LOOKS, FOREIGN | WORKERS_3, HOLDS},
	{"LOOP_LOOKS, next for ever, one waits in the ring, 2 workers", LOOP_LOOKS, PING_RING | WORKERS_2, HOLDS},
	{"LOOP_LOOKS, two pairs for ever, one waits in a ring, 2 workers", LOOP_LOOKS, PINGS_RING | WORKERS_2, HOLDS},
	{"LOOP_LOOKS, two pairs for ever, one waits in the injector, 2 workers", LOOP_LOOKS, PINGS | WORKERS_2, HOLDS},
	{"LOOP_LOOKS, due: a long compute, one in next, one due, 3 workers", LOOP_LOOKS, LONG_MIXED | WORKERS_3 | DUE, HOLDS},
	{"MUTANT a worker takes the role from the loop after it has looked", RELIEVED_LATE, LONG | WORKERS_2, BREAKS},
	{"MUTANT a worker takes the role from the loop, stays awake, and does not look whether more waits", RELIEVED_FOR_GOOD, LONG_TWO | WORKERS_3, BREAKS},
	{"MUTANT the loop sees entries and wakes nobody", LOOP_WAKES_NOBODY, LONG | WORKERS_2, BREAKS},
	{"AS WRITTEN a worker that leaves entries does not take the role from the loop", LOOP_NOT_TAKEN_FROM, LONG | WORKERS_2, HOLDS},
	{"MUTANT not worth it, and there is no lookout: wakes nobody", NO_LOOKOUT_WAKES_NOBODY, LONG | WORKERS_2, BREAKS},
	{"MUTANT leaves entries to their worker and sleeps without a time", LEFT_WITHOUT_LOOKOUT, LONG | WORKERS_2, BREAKS},
	{"MUTANT the lookout leaves what stands behind a long compute", LEAVES_STUCK, LONG | WORKERS_2, BREAKS},
	{"MUTANT the lookout keeps its role while it looks and runs", ROLE_KEPT, LONG_TWO | WORKERS_3, BREAKS},
	{"MUTANT who has slept does not look whether more waits", REST_UNTOLD, LONG_TWO | WORKERS_3, BREAKS},
	{"MUTANT due is not looked at before sleeping", RECHECK_SKIPS_DUE, FOREIGN | WORKERS_2 | DUE, BREAKS},
	{"MUTANT a push of what is due wakes nobody", DUE_WAKES_NOBODY, FOREIGN | WORKERS_2 | DUE, BREAKS},
	{"MUTANT due takes no turns with next: next starves", NO_TURNS, ENDLESS_NEXT | DUE, BREAKS},
	{"MUTANT due without a row's bound: the ring starves", NO_ROW_BOUND, ENDLESS_RING | DUE, BREAKS},
	{"MUTANT due for ever, the overflow is never looked at first", INJECTOR_NEVER_FIRST, ENDLESS | DUE, BREAKS},
	{"MUTANT a poke for room that goes to the ring's end wakes nobody", ROOM_WAKES_NOBODY, LONG | WORKERS_2, BREAKS},
	{"MUTANT next slots are not looked at before sleeping", RECHECK_SKIPS_NEXT, LONG | WORKERS_2, BREAKS},
	{"MUTANT next cannot be stolen, long compute", NEXT_NOT_STOLEN, LONG | WORKERS_2, BREAKS},
	{"MUTANT no bound on next in a row: the ring starves", NO_ROW_BOUND, PING_RING, BREAKS},
	{"MUTANT the injector is never looked at first", INJECTOR_NEVER_FIRST, PING_INJECTOR, BREAKS},
	{"MUTANT the injector is never looked at first, 2 workers", INJECTOR_NEVER_FIRST, PINGS | WORKERS_2, BREAKS},
	{"MUTANT the turn of the injector does not look at the overflow", FIRST_SKIPS_OVERFLOW, PING_OVERFLOW, BREAKS},
	{"MUTANT the injector is looked at before the overflow", INJECTOR_BEFORE_OVERFLOW, ENDLESS, BREAKS},
	{"MUTANT a batch moved to the overflow wakes nobody", BATCH_WAKES_NOBODY, BATCH | WORKERS_2, BREAKS},
	{"AS WRITTEN a batch moved to the overflow wakes one, 3 workers", BATCH_WAKES_ONE, BATCH | WORKERS_3, BREAKS},
	{"second look in the order of the pop, keeps the wake-up, outside", NO_PASS_ON, FOREIGN | WORKERS_3, HOLDS},
	{"second look in the order of the pop, keeps the wake-up, mixed", NO_PASS_ON, LONG_MIXED | WORKERS_3, HOLDS},
	{"second look in another order, passes the wake-up on, outside", REVERSED, FOREIGN | WORKERS_3, HOLDS},
	{"second look in another order, passes the wake-up on, mixed", REVERSED, LONG_MIXED | WORKERS_3, HOLDS},
	{"AS WRITTEN second look in another order, keeps the wake-up, outside", REVERSED_NO_PASS_ON, FOREIGN | WORKERS_3, BREAKS},
	{"AS WRITTEN second look in another order, keeps the wake-up, mixed", REVERSED_NO_PASS_ON, LONG_MIXED | WORKERS_3, BREAKS},
	{"MUTANT overflow is not looked at before sleeping", RECHECK_SKIPS_OVERFLOW, BATCH | WORKERS_2, BREAKS},
	{"MUTANT a push into next wakes nobody", NEXT_WAKES_NOBODY, LONG | WORKERS_2, BREAKS},
	{"MUTANT next is filled by load and store, not exchanged", NEXT_BY_STORE, LONG_TWO | WORKERS_2, BREAKS},
	{"MUTANT next is stolen by load and store", STOLEN_BY_STORE, LONG_TWO | WORKERS_2, BREAKS},
	{"MUTANT the old next goes to the ring after the look at the announcements", OLD_AFTER_WAKE, LONG_TWO | WORKERS_3, BREAKS},
	{0}
};

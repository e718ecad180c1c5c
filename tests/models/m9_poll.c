/*
 * M9: the poller (docs/dev/rules.md G4, S9, S4): which worker polls the armed flags, called bells here.
 *
 * Actors: two or three workers, a foreign thread that pushes, the device, which writes the word of an armed
 * bell at any moment (the bell rings), and the loop, which closes the run at a live count of 0. One access to
 * a shared word is one step (own queue: one step for both places, as only their worker fills them; the
 * parker's token is set in the step that takes the announcement back).
 * Rule as modelled:
 *   arm:       `armed` is counted, the bell put into the list, then `version` grows; then a look at the role:
 *              if it is free: hand over; if the poller sleeps: its announcement is taken back and it is
 *              woken.
 *   hand over: if bells are armed, the role is free and no worker spins: one sleeper is woken. Also done by a
 *              worker that leaves idleness with an entity (after it gave the role up), by one that leaves the
 *              role in passing, and before user destructors.
 *   idle:      armed and the role is free: CAS 0 -> me. Round: read `version`, look at every bell (tasks of
 *              those that rang go into the own next slot, the first wakes none), look at every queue; work:
 *              the role is given up by exchange; else spin or timed sleep.
 *   spin:      one at a time (`standby`), counted by `spinners`; ends by work, by the role, which it
 *              takes if it is wanted, while it is counted, and then polls; or by time. An entry in another's queue may be left there by it and the poller at one look, not
 *              at the next.
 *   sleep:     announce; look: the poller at `version`, others whether the role is wanted; at every queue;
 *              found: the announcement is taken back, or the wake-up passed on if it was taken; else the
 *              reference is dropped, park; woken or time: reference, announcement.
 *   later:     a worker that leaves idleness with an entity that is expected to be brief may leave the wake-up
 *              of the hand over to its next pop (LATER; the answer is any, as what is expected may be wrong), if the loop is
 *              the lookout, which it makes it. So may one that armed: to its next pop, or its next compute. The
 *              loop gives the role up, then looks: if bells are armed and the role of the poller is free it wakes one.
 *              A worker that has announced its sleep may take the role from the loop before it looks.
 *   passing:   every TURN-th pop a busy worker takes the role, if it is wanted, looks once, and gives it up.
 *   wake one:  reads the announcements; if one sleeps: reads `spinners`; if none spins: reads the role,
 *              prefers others to the poller, takes one announcement back.
 *   counted:   the poller by `spinners` while it has the role and does not sleep: counted off before it gives
 *              the role up or announces.
 *   pass on:   a worker that was counted, or was woken, and then has an entity, or goes to destructors, looks
 *              once, after its pop, at every queue; if more waits: wake one.
 * The tasks follow scripts (scenarios[]; bells may be armed, and rung, before); a compute may last for ever
 * ('!'). Times: a bell is expected NEAR or FAR, or at once (choice at each look).
 * A timed sleep may end at any moment; STILL: it never ends by itself (so that it hides no wake-up that is
 * missing).
 * Properties: one has the role; the poller does not sleep until FAR while a NEAR bell is armed; never closed
 * while a bell is armed or a task queued; in the end (no actor can move) no bell is armed and no task queued
 * while a worker sleeps without a time, even when all others are in an endless compute; no weakly fair cycle
 * (workers that are never idle fire bells, too).
 * Memory: interleavings, as all accesses are seq_cst in the code: each pair has the shape of m3_sleep's,
 * which says what it needs.
 * Fewer states, and the same runs: forget_of() clears what is not read again before it is written; in a task what is
 * nothing to another thread belongs to the step before; no ring is looked at in the scenarios in which nothing can be in
 * one (rings_used(); a push there would stop the run).
 * Run: build/m9_poll [-v [NAME]]
 * Result: holds (up to 8.5 million states a run; with -DLARGE more) with three hand-overs that are easily
 * forgotten: by a worker that looked in passing, before destructors, and a wake-up for what rings in passing
 * when the worker's own ring is next; and only if a worker that was woken passes on, too.
 */
#include <stdint.h>
#define W 3
#define TASKS 6
#define BELLS 2
#define THREADS 6
enum { FOREIGN = 3, DEVICE, LOOP, LOOKS = 4 };  /* LOOKS: the loop's place among those that wake */
enum { ROW = 1, TURN = 3 };                     /* S9: 8, 61 */
enum { PASSED, NOW, NEAR, FAR, EVER };          /* when to look again */
enum mutation {
	NONE, NO_WANTED, NO_HAND_OVER, NO_VERSION, VERSION_LATE, VERSION_FIRST, SPINNER_LATE, SPINNER_BLIND, GIVE_UP_LATE, SLEEPER_LEFT, ARM_ALONE,
	ROLE_BY_STORE, NO_PASSING, PASSING_KEEPS, ROW_FULL, DESTRUCTOR_ALONE, FIRED_ALONE, NO_REFERENCE, ANY_CHOSEN, NO_PASS_ON,
	WORK_UNSEEN, NO_REST, ONE_PASSED, PASS_EARLY, PASS_COUNTED, POLLER_LATE, POLLER_COUNTED, REST_RETIRED,
	LATER_ALONE, LOOP_BLIND, LOOP_KEEPS, LATER_FORGETS, ARMER_FORGETS, RELIEVED_LATE
};
enum scenario {
	ONE, ONE_THEN_BUSY, BUSY_BEFORE, WORK, LONG_WORK, TWO_TIMES, TWO_ARMERS, CHAIN, TWO_LONG, AGAIN, PASSING, PASSING_ROW, PASSING_TWO,
	FIRED_TURN, ALWAYS, RETIRED, WORK_BUSY, WORK_LONG_FIRED, WORK_LONG_BUSY, OWN_RING, OWN_NEXT, TWO_PUSH, RETIRED_WORK,
	TWO_PUSHES, OWN_TWO, WORK_LONG_ARMER, BRIEF_LONG, SCENARIO = 31
};
enum { WORKERS_3 = 32, SPIN_ON = 64, STILL = 128, LATER = 256 };
enum step {
	POP, HAND_ARMED, HAND_POLLER, HAND_SPINS, HAND_LOOKOUT, LOOKOUT_TAKE, LOOP_ARMED, LOOP_POLLER, WAKE_LOOK, WAKE_SPINS, WAKE_AGAIN, WAKE_CHOOSE, WAKE_TAKE,
	RUN, PUSH_RING, ARM_COUNT, ARM_LIST, ARM_VERSION, ARM_ROLE, ARM_ASLEEP,
	ARM_TAKE, DESTRUCTORS, BLOCKED, ROLE_ARMED, ROLE_POLLER, ROLE_TAKE, VERSION, LOOK, FIRE, LOOK_RING, RELEASE, SPIN_IN, SPIN_ARMED, SPIN_POLLER, SPIN_TAKE,
	SPIN_OUT, STANDBY_OFF, SPIN_COUNT, COUNT_IN, COUNT_OUT, COUNT_BACK, LEAVE,
	ANNOUNCE, RELIEVE, ASK_VERSION, ASK_ARMED, ASK_POLLER, WORK_WAITS, TAKE_BACK, DROP, PARK, UNBIT, GONE
};
enum { OF_IDLE = 1, OF_ARMER };                 /* in may, later: what the hand over belongs to */
enum { OF_ROUND, OF_SPIN, OF_SLEEP, OF_PASS };  /* which step asks whether work waits */
struct state {
	uint8_t next[W], ring[W][3], rings[W], injected[TASKS], injections, retired, queued;
	uint8_t in[BELLS], rung[BELLS], armed, version, poller, sleepers, spinners, token[W], live, closed, ran;
	uint8_t pc[W + 2], ret[W + 2], snap[W + 2], pick[W + 2], hand[W], may[W], later[W], lookout, relieved;
	uint8_t task[W], op[W], idle[W], at[W], of[W];
	uint8_t role[W], passing[W], seen[W], when[W], carried[W], firing[W], rounds[W], row[W], pops[W], pos;
	uint8_t standby, relied[W], grace[W], then[W];
};
#define THREAD_NAMES
#include "explore.h"

static const char *thread_name(int t)
{
	static const char *names[] = {"worker A", "worker B", "worker C", "foreign", "device", "loop"};
	return names[t];
}

/*
 * Tasks 0 and 1 wait for the bells 0 and 1. a b: arms that bell; D E F: pushes task 3 4 5 to the ring's end; d e f: into the next slot;
 * !: a compute without end; ~: again for ever, until task 0 has run. Foreign: the tasks it pushes; T: memory is ready for destructors.
 */
static const struct { const char *script[TASKS], *injected, *foreign; } scenarios[] = {
	[ONE] = {{"", "", "a", "", "", ""}, "2", ""},
	[ONE_THEN_BUSY] = {{"", "", "a!", "", "", ""}, "2", ""},
	[BUSY_BEFORE] = {{"", "", "a", "!", "", ""}, "32", ""},
	[WORK] = {{"", "", "a", "", "", ""}, "2", "3"},
	[LONG_WORK] = {{"", "", "a", "!", "", ""}, "2", "3"},
	[TWO_TIMES] = {{"", "", "ba", "", "", ""}, "2", ""},
	[TWO_ARMERS] = {{"", "", "a", "b", "", ""}, "23", ""},
	[CHAIN] = {{"b", "", "a", "", "", ""}, "2", ""},
	[TWO_LONG] = {{"!", "!", "ab", "", "", ""}, "2", ""},
	[AGAIN] = {{"b!", "", "a", "", "", ""}, "2", ""},
	[PASSING] = {{"", "", "aDEF", "", "", "!"}, "2", ""},
	[PASSING_ROW] = {{"", "", "aD", "eF", "", "!"}, "2", ""},
	[PASSING_TWO] = {{"!", "!", "abDE", "", "", ""}, "2", ""},
	[FIRED_TURN] = {{"!", "", "a", "!", "", ""}, "2", "3"},
	[ALWAYS] = {{"", "", "a", "~", "~", ""}, "234", ""},
	[RETIRED] = {{"", "", "a", "", "", ""}, "2", "T"},
	[WORK_BUSY] = {{"", "", "a!", "", "", ""}, "2", "3"},
	[WORK_LONG_FIRED] = {{"!", "", "a", "", "", ""}, "2", "3"},
	[WORK_LONG_BUSY] = {{"!", "", "!", "", "", ""}, "2", "3"},
	[OWN_RING] = {{"!", "", "aD!", "", "", ""}, "2", ""},
	[OWN_NEXT] = {{"!", "", "ad!", "!", "", ""}, "2", ""},
	[TWO_PUSH] = {{"!", "!", "", "!", "", ""}, "", "3"},
	[RETIRED_WORK] = {{"!", "", "", "!", "", ""}, "", "T3"},
	[TWO_PUSHES] = {{"!", "", "", "!", "!", ""}, "", "34"},
	[WORK_LONG_ARMER] = {{"!", "", "a!", "", "", ""}, "2", "3"},
	[OWN_TWO] = {{"", "", "DE!", "!", "!", ""}, "2", ""},
	[BRIEF_LONG] = {{"", "", "", "!", "", ""}, "", "43"},
};

static int scenario(void) { return setting & SCENARIO; }
static bool rung_before(void) { return scenario() == TWO_PUSH || scenario() == TWO_PUSHES || scenario() == WORK_LONG_BUSY; }
static int armed_before(void) { return scenario() == TWO_PUSH ? 2 : rung_before() || scenario() == RETIRED_WORK || scenario() == BRIEF_LONG; }
static int workers(void) { return setting & WORKERS_3 ? 3 : 2; }
static bool turns(void) { return scenario() >= PASSING && scenario() <= ALWAYS; }
/* Else no step looks at the rings: nothing pushes there, or pushes its next slot's task there before another one. */
static bool rings_used(void)
{
	bool a = armed_before(), b = armed_before() > 1;

	for (int task = 0; task < TASKS; task++) {
		const char *script = scenarios[scenario()].script[task];

		if (strpbrk(script, "defDEF~"))
			return true;
		a |= strchr(script, 'a') != NULL;
		b |= strchr(script, 'b') != NULL;
	}
	return a && b && scenario() != CHAIN && scenario() != AGAIN; /* these arm the second bell behind the first */
}

static int time_of(int bell) { return bell ? FAR : NEAR; }

static void forget(struct state *s);
static bool rings; /* rings_used() */

static void begin(struct state *s)
{
	rings = rings_used();
	for (int w = workers(); w < W; w++)
		s->pc[w] = GONE;
	for (int w = 0; w < workers(); w++)
		s->idle[w] = 1;
	for (const char *t = scenarios[scenario()].injected; *t; t++) {
		s->injected[s->injections++] = (uint8_t)(*t - '0' + 1);
		s->queued |= (uint8_t)(1 << (*t - '0'));
	}
	for (int b = 0; b < armed_before(); b++)
		s->in[b] = 1, s->rung[b] = rung_before();
	s->armed = (uint8_t)armed_before();
	s->live = (uint8_t)(workers() + s->injections + s->armed);
	forget(s);
}

static void queue(struct state *s, int task)
{
	if (s->queued >> task & 1)
		fail("task %d is queued twice", task);
	s->queued |= (uint8_t)(1 << task);
}

static void to_ring(struct state *s, int w, int task)
{
	if (s->rings[w] == 3 || !rings)
		give_up("m9_poll: a ring is too small, or was not to be used");
	s->ring[w][s->rings[w]++] = (uint8_t)(task + 1);
}

static int shift(uint8_t *list, uint8_t *n)
{
	int task = list[0] - 1;

	for (int i = 0; i + 1 < *n; i++)
		list[i] = list[i + 1];
	list[--*n] = 0;
	return task;
}

/* --- waking --- */

static bool wake(struct state *s, int t, int then)
{
	s->pc[t] = WAKE_LOOK;
	s->ret[t] = (uint8_t)then;
	return true;
}

static bool woke(struct state *s, int t)
{
	s->pc[t] = s->ret[t];
	s->ret[t] = s->snap[t] = s->pick[t] = 0;
	return true;
}

static bool wakes(struct state *s, int t)       /* t: LOOKS for the loop */
{
	uint8_t others;

	switch (s->pc[t]) {
	case WAKE_LOOK:
	case WAKE_AGAIN:
		s->snap[t] = s->sleepers;
		s->pc[t] = s->pc[t] == WAKE_LOOK ? WAKE_SPINS : WAKE_CHOOSE;
		say("announced sleeps: %d", s->sleepers);
		return s->snap[t] ? true : woke(s, t);
	case WAKE_SPINS:
		s->pc[t] = WAKE_CHOOSE;
		say("wake one? spinners %d", s->spinners);
		return s->spinners ? woke(s, t) : true;
	case WAKE_CHOOSE:
		others = s->poller && mutation != ANY_CHOSEN ? s->snap[t] & (uint8_t)~(1 << (s->poller - 1)) : s->snap[t];
		others = others ? others : s->snap[t];
		s->pick[t] = others & (uint8_t)-others;
		s->snap[t] = 0;
		s->pc[t] = WAKE_TAKE;
		say("the poller is %d: chooses %d", s->poller, s->pick[t]);
		return true;
	}
	if (!(s->sleepers & s->pick[t])) {
		s->pc[t] = WAKE_AGAIN;
		s->pick[t] = 0;
		say("it is awake");
		return true;
	}
	s->sleepers &= (uint8_t)~s->pick[t];
	s->token[s->pick[t] >> 1] = 1;          /* bits 1, 2, 4: workers 0, 1, 2 */
	say("wakes worker %c", 'A' + (s->pick[t] >> 1));
	return woke(s, t);
}

static void hand_over(struct state *s, int w, int then)
{
	s->pc[w] = HAND_ARMED;
	s->hand[w] = (uint8_t)then;
}

static bool handed(struct state *s, int w)
{
	s->pc[w] = s->hand[w];
	s->hand[w] = s->may[w] = 0;
	return true;
}

static bool hands_over(struct state *s, int w)
{
	bool stop;

	switch (s->pc[w]++) {
	case HAND_ARMED:
		say("hand over? armed %d", s->armed);
		stop = !s->armed;
		break;
	case HAND_POLLER:
		say("hand over? poller %d", s->poller);
		stop = s->poller;
		break;
	case HAND_SPINS:
		say("hand over? spinners %d", s->spinners);
		if (s->spinners)
			return handed(s, w);
		if (!s->may[w] || choose(2)) {
			int then = s->hand[w];
			handed(s, w);
			return wake(s, w, then);
		}
		say(": later");
		s->later[w] = s->may[w];
		return mutation == LATER_ALONE ? handed(s, w) : true;
	case HAND_LOOKOUT:
		say("later: lookout %d", s->lookout);
		stop = s->lookout;
		break;
	default:
		s->lookout = 1;
		say("the loop is the lookout");
		stop = true;
	}
	return stop ? handed(s, w) : true;
}

/* A worker that pushers relied on looks whether more waits, then goes on. */
static int pass_on(struct state *s, int w, int then)
{
	if (!s->relied[w])
		return then;
	s->relied[w] = 0;
	if (mutation == NO_REST || mutation == PASS_COUNTED || (mutation == REST_RETIRED && then == DESTRUCTORS))
		return then;
	s->then[w] = (uint8_t)then;
	s->of[w] = OF_PASS;
	s->at[w] = 0;
	return WORK_WAITS;
}

/* --- taking --- */

static bool take(struct state *s, int w, int task, const char *from, bool wakes_one)
{
	s->queued &= (uint8_t)~(1 << task);
	s->live -= task < BELLS && mutation != NO_REFERENCE;       /* its wait is over */
	s->task[w] = (uint8_t)(task + 1);
	s->at[w] = 0;
	if (turns())
		s->pops[w] = (uint8_t)((s->pops[w] + 1) % TURN);
	say("takes task %d from %s", task, from);
	s->pc[w] = s->idle[w] ? (uint8_t)pass_on(s, w, RUN) : RUN;
	if ((s->idle[w] && mutation != NO_HAND_OVER) || (s->later[w] && mutation != LATER_FORGETS))
		hand_over(s, w, s->pc[w]);
	s->may[w] = s->idle[w] && (setting & LATER) && s->hand[w] ? OF_IDLE : 0;
	s->idle[w] = s->later[w] = 0;
	return wakes_one ? wake(s, w, s->pc[w]) : true;
}

static bool take_injected(struct state *s, int w)
{
	if (!s->injections)
		return false;
	s->live--;
	int task = shift(s->injected, &s->injections);
	return take(s, w, task, "the injector", s->injections);
}

static bool take_next(struct state *s, int w, int of)
{
	int task = s->next[of] - 1;

	if (task < 0)
		return false;
	s->next[of] = 0;
	return take(s, w, task, of == w ? "its next slot" : "another's next slot", false);
}

static bool take_own(struct state *s, int w)
{
	if (s->next[w] && (!turns() || s->row[w] < ROW)) {
		s->row[w] = (uint8_t)(s->row[w] + turns());
		return take_next(s, w, w);
	}
	s->row[w] = 0;
	if (s->rings[w])
		return take(s, w, shift(s->ring[w], &s->rings[w]), "its ring", false);
	return take_next(s, w, w);
}

/* 0: the injector, if it is its turn; 1: own places and the injector; then the others' rings and next slots. */
static bool pops(struct state *s, int w)
{
	if (!s->at[w]) {
		s->at[w] = 1;
		if (turns() && s->pops[w] == TURN - 1) {
			say("the injector first");
			if (take_injected(s, w))
				return true;
			return true;
		}
	}
	s->at[w] += s->at[w] >= 2 && s->at[w] % 2 == 0 && !rings;
	int at = s->at[w]++, of = (w + 1 + (at - 2) / 2) % workers();
	if (at == 1) {
		if (take_own(s, w) || take_injected(s, w))
			return true;
		say("has nothing, nor has the injector");
		return true;
	}
	if (at % 2 == 0 && s->rings[of])
		return take(s, w, shift(s->ring[of], &s->rings[of]), "another's ring", false);
	if (at % 2 == 1 && take_next(s, w, of))
		return true;
	say("steals nothing");
	if (at + 1 < 2 + 2 * (workers() - 1))
		return true;
	if (turns())
		s->pops[w] = (uint8_t)((s->pops[w] + 1) % TURN);
	s->at[w] = s->later[w] = 0;
	s->idle[w] = 1;
	s->pc[w] = ROLE_ARMED;
	if (mutation == GIVE_UP_LATE && s->role[w])
		s->poller = s->role[w] = 0;
	if (s->retired && mutation == DESTRUCTOR_ALONE)
		s->pc[w] = DESTRUCTORS;
	else if (s->retired)
		hand_over(s, w, pass_on(s, w, DESTRUCTORS));
	return true;
}

/* --- running --- */

static const char *ops_left(const struct state *s, int w)
{
	return scenarios[scenario()].script[s->task[w] - 1] + s->op[w];
}

static bool task_ends(struct state *s, int w)
{
	s->ran |= (uint8_t)(s->task[w] == 1 && scenario() == ALWAYS);
	s->task[w] = s->op[w] = 0;
	s->pc[w] = POP;
	if (turns() && s->pops[w] == 0 && mutation != NO_PASSING) {
		s->pc[w] = ROLE_ARMED;
		s->passing[w] = 1;
	}
	say("done");
	return true;
}

static bool push(struct state *s, int w, int task, bool next)
{
	queue(s, task);
	s->op[w]++;
	if (!next) {
		to_ring(s, w, task);
		say("task %d to the end of its ring", task);
		return wake(s, w, RUN);
	}
	s->carried[w] = s->next[w];
	s->next[w] = (uint8_t)(task + 1);
	say("task %d into its next slot", task);
	if (!s->carried[w])
		return wake(s, w, RUN);
	s->pc[w] = PUSH_RING;
	return true;
}

static bool runs_on(struct state *s, int w)
{
	char op = *ops_left(s, w);

	if (mutation == GIVE_UP_LATE && s->role[w]) {
		s->poller = s->role[w] = 0;
		say("gives the role up");
		return true;
	}
	if (op == '!' && s->later[w] == OF_ARMER && mutation != ARMER_FORGETS) {
		s->later[w] = 0;
		hand_over(s, w, RUN);
		say("now");
		return true;
	}
	if (op == '!') {
		s->pc[w] = BLOCKED;
		say("computes for ever");
		return true;
	}
	if (op == '~' && !s->ran) {
		int task = s->task[w] - 1;
		queue(s, task);
		to_ring(s, w, task);
		task_ends(s, w);
		say(", again");
		return wake(s, w, s->pc[w]);
	}
	if (op == 'a' || op == 'b') {
		s->pc[w] = ARM_COUNT;
		say("waits for bell %c", op);
		return true;
	}
	if (op >= 'd' && op <= 'f')
		return push(s, w, op - 'a', true);
	if (op >= 'D' && op <= 'F')
		return push(s, w, op - 'A', false);
	return task_ends(s, w);
}

static bool arms(struct state *s, int w)
{
	int bell = *ops_left(s, w) - 'a';
	uint8_t bit;

	switch (s->pc[w]) {
	case ARM_COUNT:
		s->live += mutation != NO_REFERENCE;
		s->armed++;
		s->pc[w] = mutation == VERSION_FIRST ? ARM_VERSION : ARM_LIST;
		say("armed %d", s->armed);
		return true;
	case ARM_LIST:
		s->in[bell] = 1;
		s->pc[w] = mutation == VERSION_FIRST ? ARM_ROLE : ARM_VERSION;
		say("bell %d is in the list", bell);
		return true;
	case ARM_VERSION:
		s->version++;
		s->pc[w] = mutation == VERSION_FIRST ? ARM_LIST : ARM_ROLE;
		say("version %d", s->version);
		return true;
	case ARM_ROLE:
		say("armed: poller %d", s->poller);
		s->pick[w] = s->poller ? (uint8_t)(1 << (s->poller - 1)) : 0;
		s->pc[w] = ARM_ASLEEP;
		if (!s->poller && mutation == ARM_ALONE) {
			s->op[w]++;
			s->pc[w] = RUN;
		} else if (!s->poller || mutation == SLEEPER_LEFT) {
			s->op[w]++;
			s->pick[w] = 0;
			hand_over(s, w, RUN);
			s->may[w] = setting & LATER ? OF_ARMER : 0;
		}
		return true;
	case ARM_ASLEEP:
		s->pc[w] = ARM_TAKE;
		say("armed: sleepers %d", s->sleepers);
		if (s->sleepers & s->pick[w])
			return true;
		break;
	default:
		bit = s->sleepers & s->pick[w];
		s->sleepers &= (uint8_t)~bit;
		if (bit)
			s->token[bit >> 1] = 1;
		say(bit ? "wakes the poller" : "it is awake");
	}
	s->pick[w] = 0;
	s->op[w]++;
	s->pc[w] = RUN;
	return true;
}

/* --- the role --- */

static void no_role(struct state *s, int w)
{
	s->pc[w] = s->passing[w] ? POP : setting & SPIN_ON ? SPIN_IN : ANNOUNCE;
	s->passing[w] = 0;
}

static bool takes_role(struct state *s, int w)
{
	switch (s->pc[w]++) {
	case ROLE_ARMED:
		say("wanted? armed %d", s->armed);
		if (!s->armed)
			no_role(s, w);
		return true;
	case ROLE_POLLER:
		say("wanted? poller %d", s->poller);
		if (s->poller)
			no_role(s, w);
		return true;
	}
	if (s->poller && mutation != ROLE_BY_STORE) {
		no_role(s, w);
		say("another has the role");
		return true;
	}
	s->poller = (uint8_t)(w + 1);
	s->role[w] = 1;
	s->when[w] = EVER;
	s->pc[w] = s->passing[w] ? LOOK : COUNT_IN;
	say("takes the role%s", s->passing[w] ? " in passing" : "");
	return true;
}

static void ask_work(struct state *s, int w, int of)
{
	s->pc[w] = WORK_WAITS;
	s->of[w] = (uint8_t)of;
	s->at[w] = 0;
}

static bool looks(struct state *s, int w)
{
	int bell = s->at[w]++;

	if (s->in[bell] && s->rung[bell]) {
		s->in[bell] = s->rung[bell] = 0;
		s->armed--;
		s->firing[w] = (uint8_t)(bell + 1);
		s->pc[w] = FIRE;
		say("bell %d has rung", bell);
		return true;
	}
	if (s->in[bell]) {
		int when = choose(2) ? time_of(bell) : NOW;
		s->when[w] = when < s->when[w] ? (uint8_t)when : s->when[w];
	}
	say("looks at bell %d", bell);
	return true;
}

/* After the last bell; no step of its own. */
static void looked(struct state *s, int w)
{
	if (s->pc[w] != LOOK || s->at[w] < BELLS)
		return;
	s->at[w] = 0;
	if (mutation == VERSION_LATE)
		s->seen[w] = s->version;
	if (s->passing[w] || s->when[w] == EVER)
		s->pc[w] = s->passing[w] ? RELEASE : LEAVE;
	else
		ask_work(s, w, OF_ROUND);
}

/* The first wakes none, unless the next pop takes from the own ring. */
static bool fires(struct state *s, int w)
{
	int task = s->firing[w] - 1;

	queue(s, task);
	s->firing[w] = 0;
	s->carried[w] = s->next[w];
	s->next[w] = (uint8_t)(task + 1);
	say("task %d into its next slot", task);
	s->pc[w] = s->carried[w] ? LOOK_RING : LOOK;
	if (!s->carried[w] && s->passing[w] && s->row[w] == ROW && mutation != ROW_FULL)
		wake(s, w, LOOK);
	return true;
}

static bool releases(struct state *s, int w)
{
	bool passing = s->passing[w];

	s->when[w] = s->seen[w] = s->passing[w] = s->grace[w] = 0;
	s->pc[w] = mutation == PASS_EARLY && !passing ? (uint8_t)pass_on(s, w, POP) : POP;
	if (mutation == GIVE_UP_LATE && !passing)
		return true;
	s->poller = s->role[w] = 0;
	say("gives the role up");
	if (passing && mutation != PASSING_KEEPS)
		hand_over(s, w, POP);
	return true;
}

/* --- asking whether work waits: by the poller, the spinner, a worker that announced a sleep --- */

static bool slept(struct state *s, int w)
{
	s->pc[w] = !s->role[w] ? POP : s->pc[w] == WORK_WAITS ? VERSION : COUNT_BACK;
	s->when[w] = s->role[w] ? EVER : 0;
	s->seen[w] = 0;
	return true;
}

static void spun(struct state *s, int w, bool found)
{
	s->rounds[w] = s->grace[w] = 0;
	s->of[w] = found;
	s->pc[w] = SPIN_OUT;
}

static void work_found(struct state *s, int w)
{
	int of = s->of[w];

	s->of[w] = 0;
	if (of == OF_ROUND)
		s->pc[w] = mutation == PASS_COUNTED ? WAKE_LOOK : LEAVE, s->ret[w] = mutation == PASS_COUNTED ? LEAVE : 0;
	else if (of == OF_SPIN)
		spun(s, w, true);
	else if (of == OF_PASS)
		s->pc[w] = s->then[w], s->then[w] = 0, wake(s, w, s->pc[w]);
	else
		s->pc[w] = TAKE_BACK;
}

static void no_work(struct state *s, int w)
{
	int of = s->of[w];

	s->of[w] = 0;
	if (of == OF_ROUND && (s->when[w] == NOW || s->grace[w]))
		slept(s, w);
	else if (of == OF_ROUND)
		s->pc[w] = COUNT_OUT;
	else if (of == OF_PASS)
		s->pc[w] = s->then[w], s->then[w] = 0;
	else if (of == OF_SPIN)
		s->pc[w] = SPIN_ARMED;
	else
		s->pc[w] = DROP;
	if (of == OF_SLEEP)
		s->relieved &= (uint8_t)~(1 << w);
}

/* One place: 0 the injector, then each worker's next slot and ring, then the retired memory. An own place that is empty stays so. */
static bool waits(struct state *s, int w)
{
	int at = s->at[w], last = 2 * workers() + (scenario() == RETIRED || scenario() == RETIRED_WORK);
	bool found = at == 0 ? s->injections > 0 : at > 2 * workers() ? s->retired : at % 2 ? s->next[(at - 1) / 2] : s->rings[(at - 1) / 2];

	say("looks at queue %d", at);
	if (s->of[w] == OF_ROUND || s->of[w] == OF_SPIN) {
		if (at == 0 && (s->next[w] || s->rings[w]))
			found = true;
		else if (at > 0 && found && !s->grace[w] && choose(2)) {
			say(": leaves that where it is");
			s->at[w] = 0;
			s->grace[w] = 1;
			no_work(s, w);
			return true;
		}
		if (found || at >= last)
			s->grace[w] = 0;
	}
	if (mutation == WORK_UNSEEN && s->role[w])
		found = false, at = last;
	do
		at++;
	while (at <= 2 * workers() && (((at - 1) / 2 == w && !s->next[w] && !s->rings[w]) || (at % 2 == 0 && !rings)));
	s->at[w] = found || at > last ? 0 : (uint8_t)at;
	if (found)
		work_found(s, w);
	else if (at > last)
		no_work(s, w);
	return true;
}

static bool spins(struct state *s, int w)
{
	switch (s->pc[w]) {
	case SPIN_IN:
		say("standby %d", s->standby);
		s->pc[w] = s->standby ? ANNOUNCE : SPIN_COUNT;
		s->standby = 1;
		return true;
	case SPIN_COUNT:
		say("spins, is counted");
		s->spinners++;
		s->relied[w] = 1;
		ask_work(s, w, OF_SPIN);
		return true;
	case SPIN_ARMED:
		say("spins: armed %d", s->armed);
		s->pc[w] = SPIN_POLLER;
		if (s->armed && mutation != SPINNER_BLIND)
			return true;
		break;
	case SPIN_POLLER:
		say("spins: poller %d", s->poller);
		s->pc[w] = SPIN_TAKE;
		if (!s->poller)
			return true;
		break;
	default:
		if (s->poller && mutation != ROLE_BY_STORE) {
			say("another has the role");
			break;
		}
		s->poller = (uint8_t)(w + 1);
		s->role[w] = 1;
		s->rounds[w] = s->grace[w] = 0;
		s->pc[w] = STANDBY_OFF;
		say("takes the role while it is counted");
		return true;
	}
	if (s->rounds[w]++ || choose(2))
		spun(s, w, false);
	else
		ask_work(s, w, OF_SPIN);
	return true;
}

static bool spins_out(struct state *s, int w)
{
	bool found = s->of[w];


	s->pc[w] = STANDBY_OFF;
	if (mutation == SPINNER_LATE && !found)
		s->rounds[w] = 3;                       /* still counted; gives the count back when it lies down */
	else
		s->spinners--;
	say("spins no more");
	return true;
}

static bool standby_off(struct state *s, int w)
{
	s->pc[w] = s->role[w] ? VERSION : s->of[w] ? POP : ANNOUNCE;
	s->of[w] = s->standby = 0;
	if (s->pc[w] == POP && mutation == PASS_EARLY)
		s->pc[w] = (uint8_t)pass_on(s, w, POP);
	say("another may spin");
	return true;
}

/* The poller is counted as a spinner, but not while it sleeps. */
static bool counts(struct state *s, int w)
{
	switch (s->pc[w]) {
	case COUNT_IN:
		s->relied[w] = 1;
		s->spinners++;
		s->pc[w] = VERSION;
		break;
	case COUNT_BACK:
		s->spinners += mutation != POLLER_COUNTED;
		s->pc[w] = VERSION;
		break;
	case COUNT_OUT:
		s->spinners -= mutation != POLLER_COUNTED && mutation != POLLER_LATE;
		s->pc[w] = ANNOUNCE;
		break;
	default:
		s->spinners--;
		s->pc[w] = RELEASE;
	}
	say("spinners now %d", s->spinners);
	return true;
}

/* --- sleep --- */

static uint8_t asks_first(const struct state *s, int w)
{
	return s->role[w] ? ASK_VERSION : ASK_ARMED;
}

static bool asks(struct state *s, int w)
{
	bool found = false;

	switch (s->pc[w]) {
	case ANNOUNCE:
		s->sleepers |= (uint8_t)(1 << w);
		s->pc[w] = s->lookout && mutation != RELIEVED_LATE && choose(2) ? RELIEVE : asks_first(s, w);
		say("announces its sleep");
		if (s->role[w] ? mutation == NO_VERSION : mutation == NO_WANTED)
			ask_work(s, w, OF_SLEEP);
		return true;
	case RELIEVE:                                   /* before it looks */
		s->lookout = 0;
		s->relieved |= (uint8_t)(1 << w);
		s->pc[w] = asks_first(s, w);
		say("the loop is the lookout no more");
		return true;
	case ASK_VERSION:
		say("version %d, had %d", s->version, s->seen[w]);
		found = s->version != s->seen[w];
		break;
	case ASK_ARMED:
		say("armed %d", s->armed);
		s->pc[w] = ASK_POLLER;
		if (s->armed)
			return true;
		break;
	default:
		say("poller %d", s->poller);
		found = !s->poller;
	}
	if (found)
		s->pc[w] = TAKE_BACK;
	else
		ask_work(s, w, OF_SLEEP);
	return true;
}

static bool takes_back(struct state *s, int w)
{
	bool taken = !(s->sleepers >> w & 1);

	s->sleepers &= (uint8_t)~(1 << w);
	if (s->rounds[w] == 3) {
		s->rounds[w] = 0;
		s->spinners--;
	}
	if (mutation == POLLER_LATE && s->role[w])
		s->spinners--;
	if (s->relieved >> w & 1)
		s->relied[w] = 1;
	s->relieved &= (uint8_t)~(1 << w);
	say("does not sleep%s", taken ? "; was woken" : "");
	slept(s, w);
	return taken && mutation != NO_PASS_ON ? wake(s, w, s->pc[w]) : true;
}

static bool parks(struct state *s, int w)
{
	bool timed = s->role[w] && !(setting & STILL);

	if (!s->token[w] && !timed)
		return false;
	say(s->token[w] ? "woken" : "its time has come");
	s->token[w] = 0;
	s->pc[w] = UNBIT;
	if (s->closed) {
		if (s->role[w])
			s->poller = s->role[w] = 0;
		s->when[w] = s->seen[w] = 0;
		s->pc[w] = GONE;
		return true;
	}
	s->live++;
	return true;
}

static bool awakes(struct state *s, int w)
{
	s->sleepers &= (uint8_t)~(1 << w);
	if (mutation != ONE_PASSED)
		s->relied[w] = 1;
	say("awake");
	return slept(s, w);
}

static bool worker(struct state *s, int w)
{
	switch (s->pc[w]) {
	case POP: return pops(s, w);
	case HAND_ARMED: case HAND_POLLER: case HAND_SPINS: case HAND_LOOKOUT: case LOOKOUT_TAKE: return hands_over(s, w);
	case WAKE_LOOK: case WAKE_SPINS: case WAKE_AGAIN: case WAKE_CHOOSE: case WAKE_TAKE: return wakes(s, w);
	case RUN: return runs_on(s, w);
	case PUSH_RING: case LOOK_RING: {
		bool look = s->pc[w] == LOOK_RING;
		to_ring(s, w, s->carried[w] - 1);
		say("task %d, which was there, to its ring", s->carried[w] - 1);
		s->carried[w] = 0;
		if (look && mutation == FIRED_ALONE)
			s->pc[w] = LOOK;
		else
			wake(s, w, look ? LOOK : RUN);
		return true;
	}
	case ARM_COUNT: case ARM_LIST: case ARM_VERSION: case ARM_ROLE: case ARM_ASLEEP: case ARM_TAKE: return arms(s, w);
	case DESTRUCTORS:
		s->pc[w] = s->retired ? BLOCKED : ROLE_ARMED;
		say(s->retired ? "runs a destructor for ever" : "no destructor is left");
		s->retired = 0;
		return true;
	case ROLE_ARMED: case ROLE_POLLER: case ROLE_TAKE: return takes_role(s, w);
	case VERSION:
		s->seen[w] = s->version;
		s->when[w] = EVER;
		s->pc[w] = LOOK;
		say("reads version %d", s->version);
		return true;
	case LOOK: return looks(s, w);
	case FIRE: return fires(s, w);
	case RELEASE: return releases(s, w);
	case SPIN_IN: case SPIN_COUNT: case SPIN_ARMED: case SPIN_POLLER: case SPIN_TAKE: return spins(s, w);
	case SPIN_OUT: return spins_out(s, w);
	case STANDBY_OFF: return standby_off(s, w);
	case COUNT_IN: case COUNT_OUT: case COUNT_BACK: case LEAVE: return counts(s, w);
	case ANNOUNCE: case RELIEVE: case ASK_VERSION: case ASK_ARMED: case ASK_POLLER: return asks(s, w);
	case WORK_WAITS: return waits(s, w);
	case TAKE_BACK: return takes_back(s, w);
	case DROP:
		s->lookout &= mutation != RELIEVED_LATE;
		s->live--;
		s->pc[w] = PARK;
		if (s->rounds[w] == 3) {
			s->rounds[w] = 0;
			s->spinners--;
		}
		if (mutation == POLLER_LATE && s->role[w])
			s->spinners--;
		say("sleeps%s", s->role[w] ? s->when[w] == FAR ? " until far" : " until near" : "");
		return true;
	case PARK: return parks(s, w);
	case UNBIT: return awakes(s, w);
	}
	return false;
}

static bool foreign(struct state *s)
{
	char op = scenarios[scenario()].foreign[s->pos];

	if (s->pc[FOREIGN] == DESTRUCTORS) {     /* run.c's watch: wakes one, if they still wait */
		say("do destructors wait? %d", s->retired);
		s->pc[FOREIGN] = POP;
		return s->retired ? wake(s, FOREIGN, POP) : true;
	}
	if (s->pc[FOREIGN] != POP)
		return wakes(s, FOREIGN);
	if (!op || s->closed)
		return false;
	s->pos++;
	if (op == 'T') {
		s->retired = 1;
		s->pc[FOREIGN] = DESTRUCTORS;
		say("memory is ready for destructors");
		return true;
	}
	queue(s, op - '0');
	s->live++;
	s->injected[s->injections++] = (uint8_t)(op - '0' + 1);
	say("pushes task %c onto the injector", op);
	return wake(s, FOREIGN, POP);
}

static bool device(struct state *s)
{
	int waiting = 0;

	for (int b = 0; b < BELLS; b++)
		waiting += s->in[b] && !s->rung[b];
	if (!waiting)
		return false;
	int which = choose(waiting);
	for (int b = 0; b < BELLS; b++)
		if (s->in[b] && !s->rung[b] && !which--) {
			s->rung[b] = 1;
			say("rings bell %d", b);
		}
	return true;
}

/* Given up before it looks. */
static bool looks_out(struct state *s)
{
	bool stop;

	switch (s->pc[LOOKS]++) {
	case LOOKOUT_TAKE:
		s->pc[LOOKS] = s->lookout = 0;
		say("is the lookout no more, late");
		return true;
	case POP:
		s->lookout = mutation == LOOP_KEEPS;
		s->pc[LOOKS] = LOOP_ARMED;
		say("is the lookout no more");
		return true;
	case LOOP_ARMED:
		say("the loop looks: armed %d", s->armed);
		stop = !s->armed;
		break;
	default:
		say("the loop looks: poller %d", s->poller);
		stop = s->poller || mutation == LOOP_BLIND;
		if (!stop)
			return wake(s, LOOKS, POP);
	}
	if (stop)
		s->pc[LOOKS] = mutation == LOOP_KEEPS ? LOOKOUT_TAKE : POP;
	return true;
}

static bool loop(struct state *s)
{
	if (s->pc[LOOKS] >= WAKE_LOOK)
		return wakes(s, LOOKS);
	if (s->pc[LOOKS] || s->lookout)
		return looks_out(s);
	if (s->live || s->closed)
		return false;
	s->closed = 1;
	s->sleepers = 0;
	for (int w = 0; w < workers(); w++)
		s->token[w] = 1;
	say("closes the run");
	return true;
}

/* What a worker does in a task that is nothing to another thread: no step of its own. */
static void goes_on(struct state *s, int w)
{
	while (s->pc[w] == RUN && scenario() != ALWAYS && !(mutation == GIVE_UP_LATE && s->role[w])) {
		char op = *ops_left(s, w);

		if ((op >= 'd' && op <= 'f') || (op >= 'D' && op <= 'F'))
			return;
		runs_on(s, w);
	}
}

/* --- what is not read again before it is written --- */

/* Behind a wake-up, a hand over and a look for more work. */
static int step_behind(const struct state *s, int w)
{
	int pc = s->pc[w];

	if (pc >= WAKE_LOOK && pc <= WAKE_TAKE)
		pc = s->ret[w];
	if (pc >= HAND_ARMED && pc <= LOOKOUT_TAKE)
		pc = s->hand[w];
	return pc == WORK_WAITS && s->of[w] == OF_PASS ? s->then[w] : pc;
}

static void forget_of(struct state *s, int w)
{
	switch (step_behind(s, w)) {
	case BLOCKED:
	case GONE:
		s->task[w] = s->op[w] = s->at[w] = s->idle[w] = s->later[w] = s->pops[w] = s->row[w] = s->relied[w] = s->token[w] = DEAD;
		s->when[w] = s->seen[w] = DEAD;
		break;
	case SPIN_COUNT:
		s->relied[w] = DEAD;
		break;
	case COUNT_IN:
		s->relied[w] = s->when[w] = s->seen[w] = DEAD;
		break;
	case VERSION:
	case COUNT_BACK:
	case LEAVE:
	case RELEASE:
	case TAKE_BACK:
		s->when[w] = s->seen[w] = DEAD;
		break;
	case WORK_WAITS:
		if (s->of[w] == OF_SLEEP)
			s->seen[w] = DEAD;
		break;
	case UNBIT:
		s->when[w] = DEAD;
		/* fall through */
	case DROP:
	case PARK:
		s->seen[w] = DEAD;
		if (mutation != ONE_PASSED)
			s->relied[w] = DEAD;
		break;
	}
}

static void forget(struct state *s)
{
	for (int w = 0; w < workers(); w++)
		forget_of(s, w);
}

static bool step(struct state *s, int t)
{
	bool moved = t == FOREIGN ? foreign(s) : t == DEVICE ? device(s) : t == LOOP ? loop(s) : worker(s, t);

	if (!moved)
		return false;
	if (t < FOREIGN) {
		looked(s, t);
		goes_on(s, t);
	}
	forget(s);
	return true;
}

static bool arming(const struct state *s, int bell)
{
	for (int w = 0; w < workers(); w++)
		if (s->pc[w] >= ARM_COUNT && s->pc[w] <= ARM_TAKE && *ops_left(s, w) == 'a' + bell)
			return true;
	return false;
}

static void check(const struct state *s)
{
	for (int w = 0; w < workers(); w++) {
		if (s->role[w] && s->poller != w + 1)
			fail("two workers have the role");
		if (s->pc[w] == PARK && s->role[w] && s->when[w] == FAR && !s->token[w] && s->in[0] && !arming(s, 0))
			fail("the poller sleeps until far, a bell is armed that will ring soon");
	}
	if (s->closed && (s->armed || s->queued))
		fail("closed, but a bell is armed or a task is queued");
}

static void at_end(const struct state *s)
{
	int asleep = 0, timed = 0, blocked = 0, gone = 0;

	for (int w = 0; w < workers(); w++) {
		asleep += s->pc[w] == PARK && !s->role[w];
		timed += s->pc[w] == PARK && s->role[w];
		blocked += s->pc[w] == BLOCKED;
		gone += s->pc[w] == GONE;
	}
	if (s->queued && asleep + timed)
		fail("a task is queued while a worker sleeps");
	if (s->retired && asleep + timed)
		fail("destructors wait while a worker sleeps");
	if (s->armed && asleep && !timed)
		fail("a bell is armed, and all that could look sleep");
	if (!blocked && !timed && gone < workers())
		fail("the run never ends");
}

static const struct run runs[] = {
	{"rules, one bell, 2 workers", NONE, ONE, HOLDS},
	{"rules, one bell, 2 workers, one may spin", NONE, ONE | SPIN_ON, HOLDS},
	{"rules, one bell, 3 workers", NONE, ONE | WORKERS_3, HOLDS},
	{"rules, one bell, 3 workers, one may spin", NONE, ONE | SPIN_ON | WORKERS_3, HOLDS},
	{"rules, who armed computes for ever, 2 workers", NONE, ONE_THEN_BUSY, HOLDS},
	{"rules, who armed computes for ever, 2 workers, times are long", NONE, ONE_THEN_BUSY | STILL, HOLDS},
	{"rules, who armed computes for ever, 2 workers, one may spin", NONE, ONE_THEN_BUSY | SPIN_ON, HOLDS},
	{"rules, who armed computes for ever, 3 workers, one may spin", NONE, ONE_THEN_BUSY | SPIN_ON | WORKERS_3, HOLDS},
	{"rules, another computes for ever, 2 workers", NONE, BUSY_BEFORE, HOLDS},
	{"rules, another computes for ever, 3 workers", NONE, BUSY_BEFORE | WORKERS_3, HOLDS},
	{"rules, another computes for ever, 3 workers, times are long", NONE, BUSY_BEFORE | STILL | WORKERS_3, HOLDS},
	{"rules, another computes for ever, 3 workers, one may spin", NONE, BUSY_BEFORE | SPIN_ON | WORKERS_3, HOLDS},
	{"rules, a push at any moment", NONE, WORK, HOLDS},
	{"rules, a push at any moment, times are long", NONE, WORK | STILL, HOLDS},
	{"rules, a push at any moment, one may spin", NONE, WORK | SPIN_ON, HOLDS},
	{"rules, a push of a compute for ever", NONE, LONG_WORK, HOLDS},
	{"rules, a push of a compute for ever, times are long", NONE, LONG_WORK | STILL, HOLDS},
	{"rules, a push of a compute for ever, one may spin", NONE, LONG_WORK | SPIN_ON, HOLDS},
	{"rules, a push while who armed computes for ever", NONE, WORK_BUSY, HOLDS},
	{"rules, a push while who armed computes for ever, times are long", NONE, WORK_BUSY | STILL, HOLDS},
	{"rules, a push, what rings computes for ever", NONE, WORK_LONG_FIRED, HOLDS},
	{"rules, a push, what rings computes for ever, times are long", NONE, WORK_LONG_FIRED | STILL, HOLDS},
	{"rules, a push, what rings computes for ever, one may spin", NONE, WORK_LONG_FIRED | SPIN_ON, HOLDS},
	{"rules, a push, what rings and who armed compute for ever, 3 workers", NONE, WORK_LONG_BUSY | WORKERS_3, HOLDS},
	{"rules, a far bell, then a near one", NONE, TWO_TIMES, HOLDS},
	{"rules, a far bell, then a near one, times are long", NONE, TWO_TIMES | STILL, HOLDS},
	{"rules, a far bell and a near one by two workers", NONE, TWO_ARMERS, HOLDS},
	{"rules, a far bell and a near one by two workers, times are long", NONE, TWO_ARMERS | STILL, HOLDS},
	{"rules, a far bell and a near one by two workers, one may spin", NONE, TWO_ARMERS | SPIN_ON, HOLDS},
	{"rules, what rings arms the next", NONE, CHAIN, HOLDS},
	{"rules, what rings arms the next, one may spin", NONE, CHAIN | SPIN_ON, HOLDS},
	{"rules, what rings arms the next and computes for ever, 2 workers", NONE, AGAIN, HOLDS},
	{"rules, what rings arms the next and computes for ever, 3 workers", NONE, AGAIN | WORKERS_3, HOLDS},
	{"rules, two bells, both compute for ever, 2 workers", NONE, TWO_LONG, HOLDS},
	{"rules, two bells, both compute for ever, 2 workers, one may spin", NONE, TWO_LONG | SPIN_ON, HOLDS},
	{"rules, a look in passing, then a compute for ever", NONE, PASSING, HOLDS},
	{"rules, a look in passing, then a compute for ever, times are long", NONE, PASSING | STILL, HOLDS},
	{"rules, a look in passing, then a compute for ever, one may spin", NONE, PASSING | SPIN_ON, HOLDS},
	{"rules, a look in passing, the ring is next and holds a compute for ever", NONE, PASSING_ROW, HOLDS},
	{"rules, the same, one may spin", NONE, PASSING_ROW | SPIN_ON, HOLDS},
	{"rules, two bells in passing, both compute for ever", NONE, PASSING_TWO, HOLDS},
	{"rules, a push, what rings computes for ever, the injector is first at times", NONE, FIRED_TURN, HOLDS},
	{"rules, nobody is ever idle", NONE, ALWAYS, HOLDS},
	{"rules, later, one bell, 2 workers", NONE, ONE | LATER, HOLDS},
	{"rules, later, a push of a compute for ever", NONE, LONG_WORK | LATER, HOLDS},
	{"rules, later, a push of a compute for ever, times are long", NONE, LONG_WORK | LATER | STILL, HOLDS},
	{"rules, later, a push of a compute for ever, one may spin", NONE, LONG_WORK | LATER | SPIN_ON, HOLDS},
	{"rules, later, a push, what rings computes for ever", NONE, WORK_LONG_FIRED | LATER, HOLDS},
	{"rules, later, what rings arms the next and computes for ever, 2 workers", NONE, AGAIN | LATER, HOLDS},
	{"rules, later, two bells, both compute for ever, 2 workers", NONE, TWO_LONG | LATER, HOLDS},
	{"rules, later, two bells, both compute for ever, 2 workers, one may spin", NONE, TWO_LONG | LATER | SPIN_ON, HOLDS},
	{"rules, later, a push while who armed computes for ever", NONE, WORK_BUSY | LATER, HOLDS},
	{"rules, later, a bell, two pushes, the second computes for ever", NONE, BRIEF_LONG | LATER, HOLDS},
	{"rules, later, who armed computes for ever", NONE, ONE_THEN_BUSY | LATER, HOLDS},
	{"rules, later, who armed computes for ever, times are long", NONE, ONE_THEN_BUSY | LATER | STILL, HOLDS},
	{"rules, later, another computes for ever", NONE, BUSY_BEFORE | LATER, HOLDS},
	{"rules, later, who armed computes for ever, a push", NONE, WORK_LONG_ARMER | LATER, HOLDS},
	{"rules, later, two that arm", NONE, TWO_ARMERS | LATER, HOLDS},
	{"later, not even at the next pop: the loop finds it", LATER_FORGETS, TWO_LONG | LATER, HOLDS},
	{"later, who armed does not look before its next compute: the loop finds it", ARMER_FORGETS, ONE_THEN_BUSY | LATER, HOLDS},
	{"MUTANT later, a worker takes the role from the loop after it has looked", RELIEVED_LATE, LONG_WORK | LATER, BREAKS},
	{"MUTANT later, and no lookout", LATER_ALONE, LONG_WORK | LATER, BREAKS},
	{"MUTANT later, the lookout does not look at bells", LOOP_BLIND, LONG_WORK | LATER, BREAKS},
	{"MUTANT later, the lookout looks before it gives that up", LOOP_KEEPS, BRIEF_LONG | LATER, BREAKS},
	{"rules, a destructor for ever", NONE, RETIRED, HOLDS},
	{"rules, a destructor for ever, one may spin", NONE, RETIRED | SPIN_ON, HOLDS},
	{"a spinner that looks at work alone: right, and late", SPINNER_BLIND, ONE_THEN_BUSY | SPIN_ON, HOLDS},
	{"who takes its announcement back keeps the wake-up (order of the pop), a push", NO_PASS_ON, WORK_LONG_FIRED, HOLDS},
	{"who takes its announcement back keeps the wake-up (order of the pop), two bells", NO_PASS_ON, TWO_LONG, HOLDS},
	{"AS WRITTEN who looks in passing hands nothing over", PASSING_KEEPS, PASSING, BREAKS},
	{"AS WRITTEN who looks in passing hands nothing over, times are long", PASSING_KEEPS, PASSING | STILL, BREAKS},
	{"AS WRITTEN what rang in passing wakes nobody, though the ring is next", ROW_FULL, PASSING_ROW, BREAKS},
	{"AS WRITTEN the poller goes to destructors and hands nothing over", DESTRUCTOR_ALONE, RETIRED, BREAKS},
	{"rules, own ring, what rings and who pushed compute for ever, 3 workers", NONE, OWN_RING | WORKERS_3, HOLDS},
	{"rules, own next slot, all compute for ever, 3 workers", NONE, OWN_NEXT | WORKERS_3, HOLDS},
	{"rules, two bells and a push, all compute for ever, 3 workers", NONE, TWO_PUSH | WORKERS_3, HOLDS},
#ifdef LARGE    /* minutes */
	{"rules, later, what rings arms the next and computes for ever, 3 workers", NONE, AGAIN | LATER | WORKERS_3, HOLDS},
	{"rules, two pushes and a bell, all compute for ever, 3 workers", NONE, TWO_PUSHES | WORKERS_3, HOLDS},
	{"rules, two bells and a push, one may spin, 3 workers", NONE, TWO_PUSH | WORKERS_3 | SPIN_ON, HOLDS},
	{"rules, a push, what rings and who arms compute for ever, 3 workers", NONE, WORK_LONG_ARMER | WORKERS_3, HOLDS},
	{"rules, two bells, both compute for ever, 3 workers", NONE, TWO_LONG | WORKERS_3, HOLDS},
#endif
	{"rules, two to the own ring, no bell, one may spin, 3 workers", NONE, OWN_TWO | SPIN_ON | WORKERS_3, HOLDS},
	{"rules, destructors and a push, all for ever", NONE, RETIRED_WORK, HOLDS},
	{"rules, destructors and a push, all for ever, one may spin", NONE, RETIRED_WORK | SPIN_ON, HOLDS},
	{"the second that the poller fires wakes nobody either: it passes on", FIRED_ALONE, TWO_LONG, HOLDS},
	{"a push may choose the poller though another sleeps: it passes on", ANY_CHOSEN, WORK_LONG_FIRED, HOLDS},
	{"who leaves spinning looks before its pop: right, one useless wake-up", PASS_EARLY, WORK_LONG_FIRED, HOLDS},
	{"no look for more work before destructors: its pop had found nothing", REST_RETIRED, RETIRED_WORK | SPIN_ON, HOLDS},
	{"AS WRITTEN who is woken for what is left passes nothing on", ONE_PASSED, TWO_PUSH | WORKERS_3, BREAKS},
	{"MUTANT who leaves spinning passes nothing on", NO_REST, WORK_LONG_FIRED, BREAKS},
	{"MUTANT the same, own ring, 3 workers", NO_REST, OWN_RING | WORKERS_3, BREAKS},
	{"MUTANT the same, two to the own ring, no bell, one may spin", NO_REST, OWN_TWO | SPIN_ON | WORKERS_3, BREAKS},
	{"MUTANT who leaves spinning looks while it is counted", PASS_COUNTED, WORK_LONG_FIRED, BREAKS},
	{"MUTANT the poller is counted until it lies down", POLLER_LATE, WORK | STILL, BREAKS},
	{"MUTANT the poller is counted while it sleeps", POLLER_COUNTED, WORK | STILL, BREAKS},
	{"MUTANT no look at whether the role is wanted before sleeping", NO_WANTED, ONE_THEN_BUSY, BREAKS},
	{"MUTANT the same, what rings arms the next and computes for ever", NO_WANTED, AGAIN, BREAKS},
	{"MUTANT who leaves idleness hands nothing over", NO_HAND_OVER, LONG_WORK, BREAKS},
	{"MUTANT who leaves idleness hands nothing over, one may spin", NO_HAND_OVER, LONG_WORK | SPIN_ON, BREAKS},
	{"MUTANT the role is given up after the look at armed", GIVE_UP_LATE, LONG_WORK, BREAKS},
	{"MUTANT the poller does not compare the version, one armer", NO_VERSION, TWO_TIMES, BREAKS},
	{"MUTANT the poller does not compare the version, two armers", NO_VERSION, TWO_ARMERS, BREAKS},
	{"MUTANT the version is read after the look", VERSION_LATE, TWO_ARMERS, BREAKS},
	{"MUTANT the version grows before the bell is in the list", VERSION_FIRST, TWO_ARMERS, BREAKS},
	{"MUTANT arming does nothing if the poller sleeps, one armer", SLEEPER_LEFT, TWO_TIMES, BREAKS},
	{"MUTANT arming does nothing if the poller sleeps, two armers", SLEEPER_LEFT, TWO_ARMERS, BREAKS},
	{"MUTANT arming wakes nobody if there is no poller", ARM_ALONE, ONE_THEN_BUSY, BREAKS},
	{"MUTANT a spinner counts until it lies down", SPINNER_LATE, ONE_THEN_BUSY | SPIN_ON, BREAKS},
	{"MUTANT the role is taken by load and store", ROLE_BY_STORE, ONE, BREAKS},
	{"MUTANT the same by a spinner", ROLE_BY_STORE, ONE | SPIN_ON | WORKERS_3, BREAKS},
	{"MUTANT busy workers never look", NO_PASSING, ALWAYS, BREAKS},
	{"MUTANT the second that rings in passing wakes nobody either", FIRED_ALONE, PASSING_TWO, BREAKS},
	{"MUTANT the poller does not look at the queues", WORK_UNSEEN, WORK_BUSY | STILL, BREAKS},
	{"MUTANT an entity that waits for a bell holds no reference", NO_REFERENCE, ONE, BREAKS},
	{0}
};

/*
 * M17: which thread waits for the earliest time (docs/dev/rules.md S10, scheduler/timers.c): a worker that sleeps (the
 * keeper), the loop, or a worker that is awake and knows the time. Requests go through a lock-free list; the
 * heap has a lock (critical sections are several steps, since who requests looks at `until` and `kept` without it).
 *
 * Actors: two workers, the loop, the clock, which advances at any moment. Entities: 2; each ticks, requests a
 * time 1 or 2 units ahead, and ticks again when that has come. One compute never ends, whenever it likes; a worker may
 * or may not have expected that (then it hands the times over; else the loop looks after WATCH). A worker that fires
 * two may wake the other one or, if it expects brief runs, not. How a push and a sleep see each other is M3's
 * and M8's: here they are one step each.
 * ROLE: the loop's wait beside the lookout's role (S9). A worker in its compute may leave an entry in its own queue: if there is no
 * lookout, the loop becomes it and its wait is brought near. The loop gives the role up, looks, and may take it again; a worker
 * that has announced its sleep may take it from the loop before it looks (then it puts the loop off past its own time).
 *
 * Property, in each state in which nobody can move but the clock: the next wake-up is not later than the earliest time that is in the
 * list or the heap; or, beside a compute that was expected to be brief, than WATCH from now. What is due and
 * queued waits, beside a worker that sleeps, no longer than WATCH; so does an entry left behind a compute that never ends.
 * Run: build/m17_timers [-v]
 */
#include <stdint.h>
#define THREADS 4
enum { LOOP = 2, CLOCK = 3 };
enum { END = 3, WATCH = 1, INF = 15, AWAKE = 0 };
enum { BRIEF = 1, TWICE = 2, ROLE = 4 }; /* settings: runs may be expected to be brief; one entity ticks once more; entries are left */
enum mutation { NONE, ARM_ONCE, KEEP_ONCE, TAKE_THEN_RETRACT, NO_HAND_OVER, NO_WATCH, KEEPS_FIRST, LOOP_FORGETS_DUE, ARM_FORGETS_DUE, KEEP_FORGETS_DUE, NOBODY_KEEPS, FIRE_FORGETS,
	ROLE_ALONE, ROLE_SEEN_ONCE, RELIEVED_LATE };
enum at { IDLE, RUN, LOOK, HAND, HAND_KEPT, HAND_TAKE, HAND_SET, COMPUTE, LEFT_ROLE, LEFT_LOOK, LEFT_SET, ENDLESS, LIST, SEE, PARKS, SLEEP, RELIEVE, LOOK_AGAIN, KEEP, KEEP_TAKE, KEEP_STORE, KEEP_RELIED, KEEP_PUT_OFF, KEEP_AGAIN,
	PARKED, WOKEN, FIRE, FIRE_TAKE, FIRE_POKE, FIRE_LOOK };
enum loop_at { WAIT, TURN, TURN_TAKE, TURN_POKE, TURN_DUE, TURN_ROLE, TURN_LOOK, ARM_TAKE, ARM_STORE, ARM_AGAIN, ARM_SET };
struct worker { uint8_t at, entity, time, until, token, sleeper, was_keeper, took_due, brief, idle, due, earliest, relied; };
struct state {
	struct worker w[2];
	uint8_t now, queued, parked, poked, listed, heap, time[2], due_at[2], left[2];
	uint8_t lock, keeper, kept, until, timerfd, look_by, loop_at, loop_due, loop_earliest, endless, role, own, leaves;
};
#include "explore.h"

static void begin(struct state *s)
{
	s->now = 1;
	s->queued = 3;
	s->left[0] = setting & TWICE ? 2 : 1;
	s->left[1] = 1;
	s->kept = s->until = s->timerfd = INF;
	s->w[0].time = s->w[1].time = s->w[0].until = s->w[1].until = INF;
	s->loop_earliest = DEAD;
	for (int i = 0; i < 2; i++) {
		s->time[i] = s->due_at[i] = DEAD;
		s->w[i].entity = s->w[i].earliest = s->w[i].relied = DEAD;
	}
	if (setting & ROLE) {                   /* the loop has looked before */
		s->leaves = s->role = 1;
		s->until = s->timerfd = s->look_by = 1 + WATCH;
	}
}

static uint8_t least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/* WATCH after it */
static uint8_t watched(uint8_t at)
{
	return at < INF - WATCH ? (uint8_t)(at + WATCH) : INF;
}

static bool lock(struct state *s, int t)
{
	if (s->lock && s->lock != t + 1)
		return false;
	s->lock = (uint8_t)(t + 1);
	return true;
}

static bool requests(const struct worker *w, int e)
{
	return (w->at == LIST || w->at == SEE) && w->entity == e;
}

/* Read while it is listed, and by the worker that requests it. */
static void forget_times(struct state *s)
{
	for (int e = 0; e < 2; e++)
		if (!(s->listed & 1 << e) && !requests(&s->w[0], e) && !requests(&s->w[1], e))
			s->time[e] = DEAD;
}

static void take(struct state *s)
{
	for (int e = 0; e < 2; e++)
		if (s->listed & 1 << e)
			s->due_at[e] = s->time[e];
	s->heap |= s->listed;
	s->listed = 0;
	forget_times(s);
}

static uint8_t earliest(const struct state *s)
{
	return least(s->heap & 1 ? s->due_at[0] : INF, s->heap & 2 ? s->due_at[1] : INF);
}

static uint8_t take_due(struct state *s)
{
	uint8_t due = 0;

	for (int e = 0; e < 2; e++)
		if (s->heap & 1 << e && s->due_at[e] <= s->now)
			due |= (uint8_t)(1 << e);
	for (int e = 0; e < 2; e++)
		if (due & 1 << e)
			s->due_at[e] = DEAD;
	s->heap &= (uint8_t)~due;
	return due;
}

static void poke(struct state *s, uint8_t due)
{
	s->queued |= due & s->parked;
	s->poked |= due & ~s->parked;
	s->parked &= (uint8_t)~due;
}

static void wake(struct state *s)
{
	for (int w = 0; w < 2; w++) {
		if (!s->w[w].sleeper)
			continue;
		s->w[w].sleeper = 0;
		s->w[w].token = 1;
		return;
	}
}

/* Of the loop, if it waits. */
static void set_until(struct state *s, uint8_t until)
{
	if (s->until != AWAKE)
		s->until = s->timerfd = until;
}

/* What is left in a queue: the loop must look within WATCH. */
static bool relied_on(const struct state *s)
{
	return s->role || s->queued;
}

static void retract(struct state *s, int t)
{
	if (s->keeper == t + 1) {
		s->keeper = 0;
		s->kept = INF;
	}
}

static bool worker(struct state *s, int t)
{
	struct worker *w = &s->w[t];
	uint8_t bit, put_off;

	switch ((enum at)w->at) {
	case IDLE:
		if (s->keeper == t + 1) { /* TAKE_THEN_RETRACT */
			retract(s, t);
			say("is the keeper no more");
		} else if (s->own) {
			s->own &= (uint8_t)(s->own - 1);
			say("takes an entry");
		} else if (s->queued) {
			w->entity = s->queued & 1 ? 0 : 1;
			s->queued &= (uint8_t)~(1 << w->entity);
			w->took_due = 1;
			w->at = RUN;
			say("pops E%d", w->entity);
		} else {
			w->idle = w->time != INF || w->took_due;
			w->at = w->idle ? FIRE : SLEEP;
			say("finds nothing");
		}
		return true;
	case RUN:
		w->at = w->time == INF || mutation == NO_HAND_OVER ? COMPUTE : setting & BRIEF && choose(2) ? LOOK : HAND;
		say(w->at == LOOK ? "expects to be back soon" : "runs it");
		return true;
	case LOOK:
	case FIRE_LOOK:
		if (s->lock)
			return false;
		w->brief = 1;
		if (s->until > s->now + WATCH && (s->until > w->time || w->at == FIRE_LOOK) && mutation != NO_WATCH)
			set_until(s, (uint8_t)(s->now + WATCH));
		say("the loop waits until %d", s->until);
		w->at = w->at == LOOK ? COMPUTE : IDLE;
		return true;
	case HAND:
		w->at = s->until <= w->time ? COMPUTE : HAND_KEPT;
		w->took_due = 1; /* if it sleeps before that */
		if (w->at == COMPUTE)
			w->time = INF;
		say("the loop's wait ends at %d", s->until);
		return true;
	case HAND_KEPT:
		w->at = s->kept <= w->time ? COMPUTE : HAND_TAKE;
		w->time = INF;
		say("the keeper's ends at %d", s->kept);
		return true;
	case HAND_TAKE:
		if (!lock(s, t))
			return false;
		take(s);
		w->earliest = earliest(s);
		w->at = HAND_SET;
		say("takes the list: the earliest is %d", w->earliest);
		return true;
	case HAND_SET:
		if (w->earliest < s->kept && s->until > w->earliest)
			set_until(s, w->earliest);
		s->lock = 0;
		w->earliest = DEAD;
		w->at = COMPUTE;
		say("hands over: the loop's wait ends at %d", s->until);
		return true;
	case COMPUTE:
		if (s->leaves && choose(2)) {
			s->leaves--;
			s->own |= (uint8_t)(1 << t);
			w->at = LEFT_ROLE;
			say("pushes to itself");
		} else if (!s->endless && choose(2)) {
			s->endless = 1;
			w->at = ENDLESS;
			say("computes for ever");
		} else if (s->left[w->entity]) {
			s->left[w->entity]--;
			s->time[w->entity] = (uint8_t)(s->now + 1 + choose(2));
			w->at = LIST;
			say("ticks, next at %d", s->time[w->entity]);
		} else {
			w->at = IDLE;
			w->entity = DEAD;
			say("the last tick");
		}
		return true;
	case LEFT_ROLE:
		w->at = s->role || mutation == ROLE_ALONE ? COMPUTE : LEFT_LOOK;
		s->role = 1;
		say("the loop is the lookout");
		return true;
	case LEFT_LOOK:
		w->at = s->until <= s->now + WATCH ? COMPUTE : LEFT_SET;
		say("its wait ends at %d", s->until);
		return true;
	case LEFT_SET:
		if (s->lock)
			return false;
		if (s->until > s->now + WATCH)
			set_until(s, (uint8_t)(s->now + WATCH));
		w->at = COMPUTE;
		say("brings it: %d", s->until);
		return true;
	case ENDLESS:
		return false;
	case LIST:
		s->listed |= (uint8_t)(1 << w->entity);
		w->at = SEE;
		say("lists the request");
		return true;
	case SEE:
		if (s->time[w->entity] < s->until)
			w->time = least(w->time, s->time[w->entity]);
		else
			w->took_due = 1; /* it will keep time if it sleeps first */
		w->at = PARKS;
		forget_times(s);
		say("sees that the loop waits until %d", s->until);
		return true;
	case PARKS:
		bit = (uint8_t)(1 << w->entity);
		if (s->poked & bit) {
			s->poked &= (uint8_t)~bit;
			w->at = RUN;
			say("was poked meanwhile");
		} else {
			s->parked |= bit;
			w->at = IDLE;
			w->entity = DEAD;
			say("parks");
		}
		return true;
	case SLEEP:
		if (s->queued) {
			w->at = IDLE;
			say("stays awake");
		} else {
			w->sleeper = 1;
			w->brief = 0;
			w->at = setting & ROLE ? mutation == RELIEVED_LATE ? LOOK_AGAIN : RELIEVE : KEEP;
			say("announces its sleep");
		}
		return true;
	case RELIEVE:
		if (s->role && w->time != INF)
			s->role = (uint8_t)choose(2);
		w->at = mutation == RELIEVED_LATE ? KEEP : LOOK_AGAIN;
		say("the loop is the lookout: %d", s->role);
		return true;
	case LOOK_AGAIN:
		w->at = mutation == RELIEVED_LATE ? RELIEVE : KEEP;
		if (s->queued || s->own) {
			w->at = IDLE;
			w->sleeper = w->token = 0; /* a wake-up is for what it has found */
		}
		say(w->at == KEEP ? "looks again: nothing" : "stays awake");
		return true;
	case KEEP:
		if ((w->time == INF && !w->took_due) || mutation == NOBODY_KEEPS) {
			w->until = INF;
			w->at = PARKED;
			say("sleeps");
			return true;
		}
		w->at = KEEP_TAKE;
		return lock(s, t);
	case KEEP_TAKE:
		take(s);
		w->earliest = earliest(s);
		w->at = KEEP_STORE;
		say("takes the list: the earliest is %d", w->earliest);
		return true;
	case KEEP_STORE:
		if (s->keeper == t + 1 || (mutation == KEEPS_FIRST ? !s->keeper : w->earliest < s->kept)) {
			s->kept = w->earliest;
			s->keeper = (uint8_t)(t + 1);
		}
		w->at = setting & ROLE ? KEEP_RELIED : KEEP_PUT_OFF;
		w->relied = !(setting & ROLE) && relied_on(s);
		say("the keeper sleeps until %d", s->kept);
		return true;
	case KEEP_RELIED:
		w->relied = relied_on(s);
		w->at = KEEP_PUT_OFF;
		say(w->relied ? "the loop is relied on" : "nothing relies on the loop");
		return true;
	case KEEP_PUT_OFF:
		if (w->relied)
			s->look_by = watched(s->now);
		put_off = watched(w->relied && mutation != KEEP_FORGETS_DUE ? s->now : w->earliest);
		if (s->until <= w->earliest && s->until < put_off)
			set_until(s, put_off);
		w->relied = DEAD;
		w->at = KEEP_AGAIN;
		say("puts the loop off: %d", s->until);
		return true;
	case KEEP_AGAIN:
		if (s->listed && mutation != KEEP_ONCE) {
			w->at = KEEP_TAKE;
			say("more is listed");
			return true;
		}
		if (relied_on(s) && s->until > s->now + WATCH && mutation != KEEP_FORGETS_DUE && mutation != ROLE_SEEN_ONCE)
			set_until(s, (uint8_t)(s->now + WATCH));
		w->was_keeper = s->keeper == t + 1;
		w->until = w->was_keeper ? w->earliest : INF;
		w->time = INF;
		w->took_due = 0;
		w->earliest = DEAD;
		w->at = PARKED;
		s->lock = 0;
		say("sleeps until %d", w->until);
		return true;
	case PARKED:
		if (!w->token && s->now < w->until)
			return false;
		say(w->token ? "is woken" : "its time has come");
		w->token = w->sleeper = 0;
		w->until = INF;
		w->at = w->was_keeper ? WOKEN : IDLE;
		w->idle = 0;
		return true;
	case WOKEN:
		if (!lock(s, t))
			return false;
		if (mutation != TAKE_THEN_RETRACT)
			retract(s, t);
		s->lock = 0;
		w->was_keeper = 0;
		w->at = FIRE;
		say("is the keeper no more");
		return true;
	case FIRE:
		if (!lock(s, t))
			return false;
		put_off = relied_on(s) ? least(watched(s->now), s->look_by) : watched(s->now);
		if (s->until <= s->now && s->until < put_off)
			set_until(s, put_off);                  /* it has not looked at what is queued */
		w->at = FIRE_TAKE;
		say("looks at the heap");
		return true;
	case FIRE_TAKE:
		take(s);
		w->due = take_due(s);
		w->time = mutation == FIRE_FORGETS ? INF : earliest(s);
		s->lock = 0;
		w->at = FIRE_POKE;
		say("takes what is due: %d; the next is at %d", w->due, w->time);
		return true;
	case FIRE_POKE:
		poke(s, w->due);
		w->at = !w->due && w->idle ? SLEEP : IDLE;
		if (w->due == 3 && setting & BRIEF && choose(2))
			w->at = FIRE_LOOK;
		else if (w->due == 3)
			wake(s);
		say(w->at == FIRE_LOOK ? "pokes, wakes nobody" : "pokes");
		w->due = 0;
		return true;
	}
	return false;
}

static bool loop(struct state *s)
{
	switch ((enum loop_at)s->loop_at) {
	case WAIT:
		if (s->now < s->timerfd)
			return false;
		s->loop_at = TURN;
		say("its wait ends");
		return true;
	case TURN:
		s->until = AWAKE;
		s->timerfd = DEAD;
		s->loop_at = TURN_TAKE;
		say("is awake");
		return true;
	case TURN_TAKE:
		if (!lock(s, LOOP))
			return false;
		take(s);
		s->loop_due = take_due(s);
		s->lock = 0;
		s->loop_at = TURN_POKE;
		say("takes what is due: %d", s->loop_due);
		return true;
	case TURN_POKE:
		poke(s, s->loop_due);
		for (; s->loop_due; s->loop_due &= (uint8_t)(s->loop_due - 1))
			wake(s);
		s->loop_at = TURN_DUE;
		say("pokes");
		return true;
	case TURN_DUE:
		if (s->queued && mutation != LOOP_FORGETS_DUE)
			wake(s);
		s->loop_at = s->role ? TURN_ROLE : ARM_TAKE;
		say("looks at what is queued: %d", s->queued);
		return true;
	case TURN_ROLE:
		s->role = 0;
		s->loop_at = TURN_LOOK;
		say("is the lookout no more");
		return true;
	case TURN_LOOK:
		if (s->own)
			wake(s);
		else if (!s->role)
			s->role = (uint8_t)choose(2);
		s->loop_at = ARM_TAKE;
		say(s->own ? "sees entries" : "sees nothing; is the lookout: %d", s->role);
		return true;
	case ARM_TAKE:
		if (!lock(s, LOOP))
			return false;
		take(s);
		s->loop_earliest = earliest(s);
		s->loop_at = ARM_STORE;
		say("takes the list: the earliest is %d", s->loop_earliest);
		return true;
	case ARM_STORE:
		s->until = s->loop_earliest < s->kept ? s->loop_earliest : INF;
		s->look_by = watched(s->now);
		s->loop_earliest = DEAD;
		s->loop_at = ARM_AGAIN;
		say("waits until %d", s->until);
		return true;
	case ARM_AGAIN:
		s->loop_at = s->listed && mutation != ARM_ONCE ? ARM_TAKE : ARM_SET;
		say("listed: %d", s->listed);
		return true;
	case ARM_SET:
		if (relied_on(s) && mutation != ARM_FORGETS_DUE && mutation != LOOP_FORGETS_DUE)
			s->until = least(s->until, (uint8_t)(s->now + WATCH));
		s->timerfd = s->until;
		s->lock = 0;
		s->loop_at = WAIT;
		say("waits until %d", s->until);
		return true;
	}
	return false;
}

static bool step(struct state *s, int t)
{
	if (t == LOOP)
		return loop(s);
	if (t < LOOP)
		return worker(s, t);
	if (s->now == END)
		return false;
	s->now++;
	say("it is %d", s->now);
	return true;
}

static void check(const struct state *s)
{
	uint8_t wakes = s->timerfd, next = INF, sleepers = 0, briefs = 0;

	if (s->loop_at != WAIT || s->now >= s->timerfd)
		return;
	for (int t = 0; t < 2; t++) {
		const struct worker *w = &s->w[t];
		if (w->at != ENDLESS && (w->at != PARKED || w->token || s->now >= w->until))
			return;
		if (w->at == PARKED)
			wakes = least(wakes, w->until);
		sleepers += w->at == PARKED;
		briefs += w->at == ENDLESS && w->brief;
	}
	for (int e = 0; e < 2; e++)
		if ((s->listed | s->heap) & 1 << e)
			next = least(next, s->listed & 1 << e ? s->time[e] : s->due_at[e]);
	if (wakes > next && !(briefs && wakes <= s->now + WATCH))
		fail("%d is requested, the next wake-up is at %d", next, wakes);
	if (s->own && sleepers && s->timerfd > s->now + WATCH)
		fail("an entry is left behind a compute, and the loop waits until %d", s->timerfd);
	if (s->queued && sleepers && s->timerfd > s->now + WATCH)
		fail("what is due is queued while a worker sleeps, and the loop waits until %d", s->timerfd);
}

static void at_end(const struct state *s)
{
	if (s->lock)
		fail("the lock is held");
}

static const struct run runs[] = {
	{"rules: a keeper, the loop, or a worker that is awake", NONE, 0, HOLDS},
	{"rules: the same, longer", NONE, TWICE, HOLDS},
	{"rules: and runs that are expected to be brief", NONE, BRIEF, HOLDS},
	{"rules: and entries that are left behind a compute", NONE, ROLE, HOLDS},
	{"MUTANT the loop becomes the lookout, and its wait is not brought near", ROLE_ALONE, ROLE, BREAKS},
	{"MUTANT no second look at the role after the loop was put off", ROLE_SEEN_ONCE, ROLE, BREAKS},
	{"MUTANT the role is taken from the loop after the look", RELIEVED_LATE, ROLE, BREAKS},
	{"MUTANT no second look at the list after the loop has set its wait", ARM_ONCE, 0, BREAKS},
	{"MUTANT no second look at the list after the loop was put off", KEEP_ONCE, TWICE, BREAKS},
	{"MUTANT the keeper takes the list before it is the keeper no more", TAKE_THEN_RETRACT, 0, BREAKS},
	{"MUTANT the times are not handed over before a compute", NO_HAND_OVER, 0, BREAKS},
	{"MUTANT a run that is expected to be brief has no one who looks", NO_WATCH, BRIEF, BREAKS},
	{"MUTANT a second keeper, with an earlier time, leaves it to the first", KEEPS_FIRST, 0, BREAKS},
	{"MUTANT the loop does not look at what is queued", LOOP_FORGETS_DUE, BRIEF, BREAKS},
	{"MUTANT it does not look again when it waits", ARM_FORGETS_DUE, BRIEF, BREAKS},
	{"MUTANT the keeper puts the loop off beside what is queued", KEEP_FORGETS_DUE, BRIEF, BREAKS},
	{"MUTANT a worker sleeps and keeps no time", NOBODY_KEEPS, 0, BREAKS},
	{"MUTANT a worker forgets what is not due yet", FIRE_FORGETS, 0, BREAKS},
	{0}
};

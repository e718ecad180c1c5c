/*
 * M16: a fence that the program completes (docs/dev/rules.md T17): its completion against the arming of a receiver, the
 * emission that carries it, the end of the run, and its destruction.
 *
 * A worker emits one message with the promise (or, setting 1, one that only the program holds, so that no receiver waits)
 * and drops its live reference. Two receivers, each its own thread, review when they are poked: they ask, arm, park. A
 * thread of the program completes the promise, well or with a failure, at any moment, also before the message is emitted,
 * or (setting 3) before the run begins, which is when the loop attaches the waker: the worker and the receivers come after
 * that. The thread that completes reads the waker when it takes the list. Setting 4: the program has pushed the message,
 * with another promise, too, which is newer and is completed after the run alone; this one fails. The loop ends the run at a live count of 0, or when it finds a failure, or (setting 2) because it was stopped; then it
 * detaches, and frees all when no thread is inside. A critical section of the promise's lock is one step.
 * Run: build/m16_promise [-v]. Properties: no receiver takes the message before it is completed, or after a failure; each
 * takes it in the end, unless the run was cut short; a failure ends the run as one; no run is over while the promise is
 * open; no thread touches what was freed.
 */
#include <stdint.h>
#define THREADS 5
enum { WORKER, FIRST, SECOND, PROGRAM, LOOP };
enum mutation {
	NONE, MARKED_AFTER_TAKE, ARMED_BLIND, ASKED_NOT_AGAIN, NOT_HELD, FAILURE_NOTED_LATE, FAILURE_ASKED_ONCE, FREED_BESIDE,
	FAILED_IS_COMPLETE, NOT_FORGOTTEN,
	WAKER_READ_EARLY, NOT_WATCHED
};
enum { RECEIVED, ALONE, STOPPED, LATE, WITH_ANOTHER };          /* settings */
enum { OPEN, DONE, FAILED };
enum at { IDLE, ASK, ARM, PARK, OVER };
struct state {
	uint8_t promise, fails, emitted, holds, noted, live, closed, cut, failed, freed, waker, users, begun;
	uint8_t at[2], poked[2], listed[2], waits[2], took[2];  /* waits: its wait holds a live reference */
	uint8_t worker, program, loop, list, held, waking;      /* list, held, waking: what the completion took; the waker */
};
#include "explore.h"

static void attach(struct state *s)
{
	s->live = 1;                                            /* the worker's */
	s->waker = 1;
	s->begun = 1;
}

static void begin(struct state *s)
{
	if (setting == LATE)
		s->loop = 6;
	else
		attach(s);
	s->fails = setting == WITH_ANOTHER ? 1 : (uint8_t)choose(2);
}

static void touch(const struct state *s)
{
	if (s->freed)
		fail("a thread touches what was freed");
}

static void drop(struct state *s)
{
	if (!s->live)
		fail("a live reference is dropped twice");
	s->live--;
}

static void poke(struct state *s, int r)
{
	if (s->closed)
		return;                                         /* refused */
	if (s->at[r] == IDLE && !s->poked[r])
		s->live++;                                      /* that of its entry, until it parks */
	s->poked[r] = 1;
}

static bool worker(struct state *s)
{
	if (!s->begun)
		return false;
	switch (s->worker) {
	case 0:                                                 /* carries it, under its lock */
		if (setting == WITH_ANOTHER) {                  /* pushes it: of no tick */
			s->emitted = 1;
			s->worker = 1;
			say("pushes the message");
			return true;
		}
		if (s->promise == OPEN && mutation != NOT_HELD) {
			s->holds = 1;
			s->live++;
		}
		if (s->promise == FAILED) {                     /* the emission fails, and its tick with it */
			s->noted = 1;
			s->worker = 2;
			say("the emission fails");
			return true;
		}
		s->emitted = 1;
		s->worker = 1;
		say("emits the message");
		return true;
	case 1:
		for (int r = 0; r < 2; r++)
			if (setting != ALONE)
				poke(s, r);
		s->worker = 2;
		say("pokes the receivers");
		return true;
	case 2:
		drop(s);
		s->worker = 3;
		say("sleeps");
		return true;
	}
	return false;
}

static bool receiver(struct state *s, int r)
{
	if (s->closed) {
		if (s->at[r] == OVER)
			return false;
		if (s->at[r] != IDLE || s->poked[r])
			drop(s);
		s->at[r] = OVER;
		return true;
	}
	switch (s->at[r]) {
	case IDLE:
		if (!s->poked[r])
			return false;
		s->poked[r] = 0;
		s->at[r] = ASK;
		say("receiver %d is reviewed", r);
		return true;
	case ASK:
		if (!s->emitted || s->took[r]) {
			s->at[r] = PARK;
		} else if (s->promise == DONE || (mutation == FAILED_IS_COMPLETE && s->promise == FAILED)) {
			if (s->promise == FAILED)
				fail("a message is taken that failed");
			s->took[r] = 1;
			if (s->waits[r])
				drop(s);
			s->waits[r] = 0;
			s->at[r] = PARK;
			say("receiver %d takes the message", r);
		} else {
			if (!s->waits[r])
				s->live++;
			s->waits[r] = 1;
			s->at[r] = ARM;
			say("receiver %d finds it open", r);
		}
		return true;
	case ARM:                                               /* under the promise's lock */
		if (s->promise == OPEN && mutation == NOT_WATCHED)
			say("receiver %d arms the newer one alone; ", r);
		else if (s->promise == OPEN || mutation == ARMED_BLIND)
			s->listed[r] = 1;
		else if (s->promise == FAILED)
			s->noted = 1;
		else if (mutation != ASKED_NOT_AGAIN)
			s->poked[r] = 1;
		s->at[r] = PARK;
		say("receiver %d arms", r);
		return true;
	case PARK:
		s->at[r] = s->poked[r] ? ASK : IDLE;
		if (!s->poked[r])
			drop(s);
		s->poked[r] = 0;
		say("receiver %d parks", r);
		return true;
	}
	return false;
}

/* With the lock held. */
static void take(struct state *s)
{
	for (int r = 0; r < 2; r++) {
		s->list |= (uint8_t)(s->listed[r] << r);
		s->listed[r] = 0;
	}
	s->held = s->holds;
	s->holds = 0;
}

static void mark(struct state *s)
{
	bool waits = s->listed[0] || s->listed[1];

	s->promise = s->fails ? FAILED : DONE;
	if (s->fails && ((s->emitted && setting != WITH_ANOTHER) || waits) && mutation != FAILURE_NOTED_LATE)
		s->noted = 1;
}

static bool program(struct state *s)
{
	switch (s->program) {
	case 0:
		touch(s);
		s->users += mutation != FREED_BESIDE;
		s->waking = s->waker;
		s->program = 1;
		say("comes to complete it");
		return true;
	case 1:
		touch(s);
		if (mutation != MARKED_AFTER_TAKE)
			mark(s);
		take(s);
		if (mutation != WAKER_READ_EARLY)
			s->waking = s->waker;
		s->program = 2;
		say(s->fails ? "completes it with a failure" : "completes it");
		return true;
	case 2:
		touch(s);
		if (mutation == MARKED_AFTER_TAKE)
			mark(s);
		for (int r = 0; r < 2; r++)
			if (s->list >> r & 1 && !s->fails && s->waking)
				poke(s, r);
		s->program = 3;
		say("pokes who waits");
		return true;
	case 3:
		touch(s);
		if (s->held && s->waking)
			drop(s);
		s->program = 4;
		say("drops its reference");
		return true;
	case 4:
		touch(s);
		if (mutation == FAILURE_NOTED_LATE && s->fails)
			s->noted = 1;
		s->users -= mutation != FREED_BESIDE;
		s->program = 5;
		say("leaves");
		return true;
	}
	return false;
}

static void close_run(struct state *s, bool cut)
{
	s->closed = 1;
	s->cut = cut;
	s->failed = cut && s->noted;
	s->loop = 2;
	say(cut ? "the run is cut short" : "the run is over");
}

static bool loop(struct state *s)
{
	switch (s->loop) {
	case 0:                                                 /* a turn: a failure, or a stop, first */
		if (s->noted || (setting == STOPPED && choose(2))) {
			close_run(s, true);
			return true;
		}
		if (s->live > 1)
			return false;                           /* a kick brings it here; it may be early */
		s->loop = 1;
		say("the loop finds no failure");
		return true;
	case 1:                                                 /* then the count; behind it the failure again */
		if (s->live) {
			s->loop = 0;
			return true;
		}
		if (s->noted && mutation != FAILURE_ASKED_ONCE)
			s->loop = 0;
		else
			close_run(s, false);
		return true;
	case 2:                                                 /* the references of what was left are dropped */
		if (s->worker != 3 || s->at[0] != OVER || s->at[1] != OVER)
			return false;
		for (int r = 0; r < 2; r++)
			if (s->waits[r])
				drop(s);
		s->waits[0] = s->waits[1] = 0;
		if (s->holds)
			drop(s);
		s->holds = 0;
		s->loop = 3;
		return true;
	case 3:
		s->waker = 0;
		s->loop = 4;
		return true;
	case 4:
		if (mutation != NOT_FORGOTTEN)
			s->listed[0] = s->listed[1] = 0;
		s->loop = 5;
		say("the waits are forgotten");
		return true;
	case 5:                                                 /* destroy: refused while it is open */
		if (s->promise == OPEN || s->users)
			return false;
		s->freed = 1;
		s->loop = 7;
		say("the graph is destroyed");
		return true;
	case 6:
		attach(s);
		s->loop = 0;
		say("the run begins");
		return true;
	}
	return false;
}

static bool step(struct state *s, int t)
{
	switch (t) {
	case WORKER:
		return worker(s);
	case FIRST:
	case SECOND:
		return receiver(s, t - FIRST);
	case PROGRAM:
		return program(s);
	default:
		return loop(s);
	}
}

static void check(const struct state *s)
{
	if (s->closed && !s->cut && s->emitted && s->promise == OPEN)
		fail("the run is over, and the promise is open");
	if (s->closed && !s->cut && s->promise == FAILED && s->emitted && !s->failed)
		fail("a failure ended no run");
	if ((s->loop == 5 || s->loop == 7) && (s->listed[0] || s->listed[1]))
		fail("a wait of a run that is over is armed");
	if (s->took[0] + s->took[1] && s->promise != DONE)
		fail("the message is taken before it is completed");
}

static void at_end(const struct state *s)
{
	if (!s->freed)
		fail("the run never ends");
	if ((setting == RECEIVED || setting == LATE) && !s->fails && (!s->took[0] || !s->took[1]))
		fail("a receiver never gets the message");
}

static const struct run runs[] = {
	{"rules: two receivers", NONE, RECEIVED, HOLDS},
	{"rules: the program alone has the message", NONE, ALONE, HOLDS},
	{"rules: the run is stopped", NONE, STOPPED, HOLDS},
	{"rules: the run begins late", NONE, LATE, HOLDS},
	{"rules: the message carries another one", NONE, WITH_ANOTHER, HOLDS},
	{"MUTANT marked after its waits were taken", MARKED_AFTER_TAKE, RECEIVED, BREAKS},
	{"MUTANT arming does not look whether it was completed", ARMED_BLIND, RECEIVED, BREAKS},
	{"MUTANT one that was completed meanwhile is not asked again", ASKED_NOT_AGAIN, RECEIVED, BREAKS},
	{"MUTANT it holds no live reference", NOT_HELD, ALONE, BREAKS},
	{"MUTANT the failure is noted after the reference was dropped", FAILURE_NOTED_LATE, ALONE, BREAKS},
	{"MUTANT the loop looks for a failure before the count alone", FAILURE_ASKED_ONCE, ALONE, BREAKS},
	{"MUTANT one that failed counts as complete", FAILED_IS_COMPLETE, RECEIVED, BREAKS},
	{"MUTANT the thread that completes is not counted", FREED_BESIDE, STOPPED, BREAKS},
	{"MUTANT the waits are not forgotten at the end", NOT_FORGOTTEN, STOPPED, BREAKS},
	{"MUTANT the waker is read before the lock is taken", WAKER_READ_EARLY, LATE, BREAKS},
	{"MUTANT of two promises the newer one alone is watched", NOT_WATCHED, WITH_ANOTHER, BREAKS},
	{0}
};

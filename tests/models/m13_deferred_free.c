/*
 * M13: memory that comes back later, and an entity that is refused it (docs/dev/rules.md T4, S3): of two steps
 * that race, at least one reads what the other has written.
 *
 * One block, which the device still uses when its last reference is dropped. Actors: the claimer (an entity
 * that is refused the block), the freer (drops the last reference and lists the block, unless its fence is
 * complete), another worker that processes the list once (an allocation that finds no memory), the loop, the
 * device, and an onlooker that asks for the fence at some moment, so that it is known to be complete. The
 * watch, which looks at the list every 50 ms, is left out: nothing may have to wait for it.
 * Rule as modelled; what is done under a lock is one step, and LOCK carries its order:
 *   claim:    (the resource's lock) enough: claimed. Else entered, and REFUSED is set; then the list is
 *             processed; then the entity parks, and is reviewed again when it is poked.
 *   list:     (the list's lock) the entry, and COUNT; then REFUSED is read: the loop is kicked if it is set.
 *   process:  COUNT is read; if it is not 0, (lock) the list is taken; the device is asked, without a lock;
 *             what is complete is freed: REFUSED is cleared and the entity poked (offer). The rest is put back
 *             (lock), and REFUSED is read there: any thread but the loop kicks the loop if it is set.
 *   the loop: kicked, REFUSED is read; if it is set, the list is processed; then (lock) the fence of an entry
 *             is noted; its signal is armed, which kicks the loop when the fence is complete. If the fence is
 *             known to be complete by then, the loop kicks itself.
 * Property: the claimer gets the block in the end.
 * Bounds: 1 block, 1 fence, 1 claimer; INTERLEAVED, TSO and VIEWS (C11). Run: build/m13_deferred_free [-v [NAME]]
 */
#include <stdbool.h>
#include <stdint.h>
#define WORDS 3
#define MTHREADS 4
#define WRITES 40
#define THREADS 10
enum { REFUSED, COUNT, LOCK };
enum { CLAIMER, FREER, OTHER, LOOP, DEVICE, ONLOOKER, DRAIN };
enum mutation { NONE, LOOKS_FIRST, LISTS_LAST, NO_LOOK, PUT_BACK_SILENT, LOOP_ARMS_UNPROCESSED, KNOWN_IS_SKIPPED, NOT_ARMED, TOLD_ACQ_REL, REFUSED_RELEASE };
#include "memory_fwd.h"
struct state {
	struct memory m;
	uint8_t pc[4], free, poked, entered, listed, done, known, armed, kicked, noted, has[4];
};
#include "explore.h"
#include "memory.h"

enum { CLAIM, PROCESS, PARK, ASLEEP, CLAIMED };      /* the claimer */
enum { DROP, LIST, LOOK, GONE };                     /* the freer */
enum { WAIT, HINT, PROCESS_FIRST, NOTE, ARM };       /* the loop */

static void begin(struct state *s)
{
	memory_init(&s->m, setting);
	if (mutation == LOOKS_FIRST)
		s->pc[CLAIMER] = PROCESS;
}

static void enter_lock(struct state *s, int t) { fetch_add(&s->m, t, LOCK, 1, ACQREL); }
static void leave_lock(struct state *s, int t) { fetch_add(&s->m, t, LOCK, -1, ACQREL); }

static bool is_refused(struct state *s, int t)
{
	/* order: REFUSED load seq_cst */
	return load(&s->m, t, REFUSED, mutation == TOLD_ACQ_REL ? ACQ : SEQ);
}

static void kick(struct state *s)
{
	s->kicked = 1;
	say("; kicks the loop");
}

/* Under the resource's lock: the oldest entry is removed and poked. */
static void give_back(struct state *s, int t)
{
	s->free = 1;
	say("the block is free");
	if (!s->entered)
		return;
	s->entered = 0;
	store(&s->m, t, REFUSED, 0, SEQ); /* order: REFUSED store seq_cst */
	s->poked = 1;
	say("; pokes the claimer");
}

static void put_back(struct state *s, int t)
{
	enter_lock(s, t);
	s->listed = 1;
	fetch_add(&s->m, t, COUNT, 1, mutation == TOLD_ACQ_REL ? ACQREL : SEQ); /* order: COUNT rmw seq_cst */
}

/* One step of processing the list; true: there is another one. */
static bool process(struct state *s, int t)
{
	if (s->has[t]) {
		s->has[t] = 0;
		if (s->done) {
			s->known = 1;
			give_back(s, t);
			return false;
		}
		say("the device still uses it: it is put back");
		put_back(s, t);
		if (t != LOOP && mutation != PUT_BACK_SILENT && is_refused(s, t))
			kick(s);
		leave_lock(s, t);
		return false;
	}
	/* order: COUNT load seq_cst */
	if (!load(&s->m, t, COUNT, mutation == TOLD_ACQ_REL ? ACQ : SEQ)) {
		say("sees an empty list");
		return false;
	}
	enter_lock(s, t);
	s->has[t] = s->listed;
	s->listed = 0;
	store(&s->m, t, COUNT, 0, SEQ); /* order: COUNT store seq_cst */
	leave_lock(s, t);
	say("takes the list: %d", s->has[t]);
	return s->has[t];
}

static void claim(struct state *s)
{
	if (s->free) {
		s->free = 0;
		s->pc[CLAIMER] = CLAIMED;
		memory_leave(&s->m, CLAIMER);
		say("claims the block");
		return;
	}
	s->entered = 1;
	store(&s->m, CLAIMER, REFUSED, 1, mutation == REFUSED_RELEASE ? REL : SEQ);
	say("is refused");
	s->pc[CLAIMER] = mutation == LOOKS_FIRST ? PARK : PROCESS;
}

static bool claimer(struct state *s)
{
	switch (s->pc[CLAIMER]) {
	case CLAIM:
		claim(s);
		return true;
	case PROCESS:
		if (process(s, CLAIMER))
			return true;
		s->pc[CLAIMER] = mutation == LOOKS_FIRST ? CLAIM : PARK;
		return true;
	case PARK:
	case ASLEEP:
		if (s->pc[CLAIMER] == ASLEEP && !s->poked)
			return false;
		say(s->poked ? "is reviewed again" : "parks");
		s->pc[CLAIMER] = !s->poked ? ASLEEP : mutation == LOOKS_FIRST ? PROCESS : CLAIM;
		s->poked = 0;
		return true;
	}
	return false;
}

static bool freer_moves(struct state *s)
{
	switch (s->pc[FREER]) {
	case DROP:
		s->pc[FREER] = s->done ? GONE : mutation == LISTS_LAST ? LOOK : LIST;
		if (s->done)
			give_back(s, FREER);
		else
			say("drops the last reference");
		return true;
	case LIST:
		put_back(s, FREER);
		leave_lock(s, FREER);
		say("lists the block");
		s->pc[FREER] = mutation == LISTS_LAST || mutation == NO_LOOK ? GONE : LOOK;
		return true;
	case LOOK:
		s->pc[FREER] = mutation == LISTS_LAST ? LIST : GONE;
		say("looks whether an entity is refused");
		if (is_refused(s, FREER))
			kick(s);
		return true;
	}
	return false;
}

static bool freer(struct state *s)
{
	bool moves = freer_moves(s);

	if (moves && s->pc[FREER] == GONE)
		memory_leave(&s->m, FREER);
	return moves;
}

static bool other(struct state *s)
{
	if (s->pc[OTHER])
		return false;
	s->pc[OTHER] = !process(s, OTHER);
	if (s->pc[OTHER])
		memory_leave(&s->m, OTHER);
	return true;
}

static void note(struct state *s)
{
	enter_lock(s, LOOP);
	s->noted = s->listed && is_refused(s, LOOP);
	leave_lock(s, LOOP);
	if (s->noted && s->known) {
		say("the fence is known to be complete");
		s->noted = 0;
		if (mutation != KNOWN_IS_SKIPPED)
			kick(s);
	}
	s->pc[LOOP] = s->noted ? ARM : WAIT;
}

/* A fence that is complete when its signal is armed fires at once. */
static void arm(struct state *s)
{
	if (s->done)
		kick(s);
	else if (mutation != NOT_ARMED)
		s->armed = 1;
	say("arms the signal");
	s->pc[LOOP] = WAIT;
}

static bool loop(struct state *s)
{
	switch (s->pc[LOOP]) {
	case WAIT:
		if (!s->kicked)
			return false;
		s->kicked = 0;
		say("wakes");
		s->pc[LOOP] = HINT;
		return true;
	case HINT:
		s->pc[LOOP] = !is_refused(s, LOOP) ? WAIT : mutation == LOOP_ARMS_UNPROCESSED ? NOTE : PROCESS_FIRST;
		say(s->pc[LOOP] == WAIT ? "no entity is refused" : "an entity is refused");
		return true;
	case PROCESS_FIRST:
		if (!process(s, LOOP))
			s->pc[LOOP] = NOTE;
		return true;
	case NOTE:
		note(s);
		return true;
	case ARM:
		arm(s);
		return true;
	}
	return false;
}

static bool device(struct state *s)
{
	if (!s->done) {
		s->done = 1;
		say("the fence is complete");
	} else if (s->armed) {
		s->armed = 0;
		kick(s);
	} else
		return false;
	return true;
}

static bool step(struct state *s, int t)
{
	switch (t) {
	case CLAIMER:
		return claimer(s);
	case FREER:
		return freer(s);
	case OTHER:
		return other(s);
	case LOOP:
		return loop(s);
	case DEVICE:
		return device(s);
	case ONLOOKER:
		if (!s->done || s->known)
			return false;
		s->known = 1;
		say("sees that the fence is complete");
		return true;
	}
	return memory_drain(&s->m, t - DRAIN);
}

static void check(const struct state *s)
{
	if (s->pc[CLAIMER] == CLAIMED && (s->listed || s->free))
		fail("the block is claimed and free");
}

static void at_end(const struct state *s)
{
	if (s->pc[CLAIMER] != CLAIMED)
		fail("the claimer sleeps, and nothing will wake it");
}

static const struct run runs[] = {
	{"rules: interleaved", NONE, INTERLEAVED, HOLDS},
	{"rules: TSO", NONE, TSO, HOLDS},
	{"rules: C11", NONE, VIEWS, HOLDS},
	{"MUTANT the claimer processes the list before it counts as refused", LOOKS_FIRST, INTERLEAVED, BREAKS},
	{"MUTANT the freer looks for refused entities before it lists the block", LISTS_LAST, INTERLEAVED, BREAKS},
	{"MUTANT the freer does not look", NO_LOOK, INTERLEAVED, BREAKS},
	{"MUTANT a thread that puts the block back does not look", PUT_BACK_SILENT, INTERLEAVED, BREAKS},
	{"MUTANT the loop notes fences before it processes the list", LOOP_ARMS_UNPROCESSED, INTERLEAVED, BREAKS},
	{"MUTANT a fence that is known to be complete by then is left out", KNOWN_IS_SKIPPED, INTERLEAVED, BREAKS},
	{"MUTANT the loop arms nothing", NOT_ARMED, INTERLEAVED, BREAKS},
	{"MUTANT refused by a release store: TSO", REFUSED_RELEASE, TSO, BREAKS},
	{"MUTANT refused by a release store: C11", REFUSED_RELEASE, VIEWS, BREAKS},
	{"MUTANT the count and the looks acq_rel: C11", TOLD_ACQ_REL, VIEWS, BREAKS},
	{0}
};

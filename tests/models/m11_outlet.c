/*
 * M11: an outlet that gives complete messages (docs/dev/rules.md B2, S4, S5): its sender, its finisher, a taker,
 * the end of the run.
 *
 * Actors: the sender (an entity that emits N messages, each of which may need the device), the finisher (the
 * outlet's hidden entity), the device, which completes the enqueued work in any order, a taker, which waits
 * until a take would return at once, and the loop, which closes the run at a live count of 0, or (CUT) at any
 * moment.
 * Rule as modelled; what is done under the outlet's lock is one step:
 *   push (lock):   if it needs the device, or an unfinished message is before it: also into the finisher's
 *                  queue, and unfinished grows; into the queue; the first one takes the outlet's live
 *                  reference; `shown` is updated. Then the finisher is poked if it got the message.
 *   room:          capacity - what lies in the queue, finished or not: a take frees it, nothing else.
 *   finisher:      gated on the oldest of its queue; its tick takes (no lock), then (lock) unfinished falls,
 *                  `shown` is updated.
 *   shown:         holding and more in the queue than is unfinished, or ended and not holding.
 *   take (lock):   the oldest leaves; the last one: no longer holding. Then the sender is poked; then the
 *                  outlet's reference goes.
 *   sender DONE:   (lock) ended; closes the finisher's queue; pokes the finisher, which is NEVER when that is
 *                  closed and empty.
 *   cut:           CLOSED, entities leave, (lock) ended, not holding, the outlet's reference goes.
 * Properties: a taken message is complete; the taker gets all N in order and then CLOSED, unless the run was
 * cut; closed by itself only if both are DONE and all was taken; never more in the queue than its capacity,
 * in the finisher's than there; the count ends at 0.
 * Bounds: 3 messages, capacity 1 to 2. Run: build/m11_outlet [-v [NAME]]
 */
#include <stdint.h>
#define THREADS 5
enum { SENDER, FINISHER, DEVICE, TAKER, LOOP };
enum { N = 3 };
enum { POKED = 1, RUNNING = 2, DONE = 4 };
enum { WIDE = 1, CUT = 2 };
enum mutation { NONE, DIRECT_BEHIND, COUNTED_LATE, DROPPED_FIRST, CLOSED_EARLY, NOT_SHOWN, NOT_TOLD, NO_WAIT, FREED_BY_TICK, CLOSED_LATE };
struct state {
	uint8_t state[2], entry[2], pc[5], live, closed, cut;
	uint8_t pushed, taken, unfinished, handed, ticked, behind[N], needs[N], done[N];
	uint8_t holding, ended, shown, told, aside, shut, waits, armed, late, drop, heard;
};
#define THREAD_NAMES
#include "explore.h"

static const char *thread_name(int t)
{
	static const char *names[] = {"sender", "finisher", "device", "taker", "loop"};
	return names[t];
}

static void begin(struct state *s)
{
	for (int e = 0; e < 2; e++) {
		s->state[e] = POKED;
		s->entry[e] = 1;
		s->live++;
	}
}

static void drop(struct state *s)
{
	if (!s->live)
		fail("the live counter fell below 0");
	s->live--;
}

/* A poke with a reference of its own, which the entry keeps. In a closed run it is refused. */
static void poke(struct state *s, int e)
{
	if (s->closed)
		return;
	if (!s->state[e]) {
		s->entry[e] = 1;
		s->live++;
	}
	s->state[e] |= POKED;
}

static unsigned in_queue(const struct state *s)
{
	return (unsigned)s->pushed - s->taken;
}

static void show(struct state *s)
{
	s->shown = (s->holding && in_queue(s) > s->unfinished) || (s->ended && !s->holding);
	if (mutation == CLOSED_EARLY)
		s->shown |= s->ended;
}

/* --- an entity: 0 waits for its turn, 1 reviews, then what it does; the entry's reference is the worker's meanwhile --- */
static bool turn(struct state *s, int e)
{
	if (!s->entry[e])
		return false;
	s->state[e] = RUNNING;
	s->pc[e] = 1;
	return true;
}

static void leave(struct state *s, int e)
{
	if (s->state[e] != RUNNING) {
		s->state[e] = RUNNING;
		s->pc[e] = 1;
		return;
	}
	s->state[e] = s->pc[e] = s->entry[e] = 0;
	drop(s);
}

static void quit(struct state *s, int e)
{
	s->state[e] = DONE;
	s->pc[e] = 9;
	s->entry[e] = 0;
	drop(s);
}

static void push(struct state *s)
{
	int i = s->pushed;
	bool direct;

	s->needs[i] = (uint8_t)choose(2);
	direct = !s->needs[i] && (!s->unfinished || mutation == DIRECT_BEHIND);
	if (!direct && mutation == COUNTED_LATE)
		s->late = 1;
	else if (!direct)
		s->unfinished++;
	if (!direct)
		s->behind[s->handed++] = (uint8_t)i;
	s->pushed++;
	if (!s->holding)
		s->live++;
	s->holding = 1;
	show(s);
	say("pushes %d%s%s", i, s->needs[i] ? ", which needs the device" : "", direct ? "" : ", the finisher has it");
	s->pc[SENDER] = direct ? 1 : 2;
}

static bool sender(struct state *s)
{
	unsigned capacity = setting & WIDE ? 2 : 1;

	if (s->closed && s->cut && s->pc[SENDER] < 9 && s->entry[SENDER]) {
		quit(s, SENDER);
		say("sees the run cut short");
		return true;
	}
	switch (s->pc[SENDER]) {
	case 0:
		return turn(s, SENDER);
	case 1:
		if (s->pushed == N) {
			if (mutation == CLOSED_LATE)
				s->pc[SENDER] = 5;
			else
				s->pc[SENDER] = 3;
			say("NEVER: all emitted");
			return true;
		}
		if ((mutation == FREED_BY_TICK ? s->unfinished : in_queue(s)) < capacity)
			push(s);
		else
			leave(s, SENDER);
		return true;
	case 2:
		poke(s, FINISHER);
		s->unfinished += s->late;
		s->late = 0;
		s->pc[SENDER] = 1;
		say("pokes the finisher");
		return true;
	case 3:
		s->ended = 1;
		show(s);
		s->pc[SENDER] = 4;
		say("the outlet is ended");
		return true;
	case 4:
		s->shut = 1;
		s->pc[SENDER] = 6;
		return true;
	case 5:		/* mutant: pokes before it closes */
		poke(s, FINISHER);
		s->ended = 1;
		show(s);
		s->pc[SENDER] = 7;
		return true;
	case 6:
		if (mutation != NOT_TOLD)
			poke(s, FINISHER);
		quit(s, SENDER);
		say("DONE, the finisher is poked");
		return true;
	case 7:
		s->shut = 1;
		quit(s, SENDER);
		return true;
	}
	return false;
}

static bool is_done(const struct state *s, int i)
{
	return !s->needs[i] || s->done[i];
}

static void unwait(struct state *s)
{
	if (s->waits)
		drop(s);
	s->waits = s->armed = 0;
}

static bool finisher(struct state *s)
{
	if (s->closed && s->cut && s->pc[FINISHER] < 9 && s->entry[FINISHER]) {
		unwait(s);
		quit(s, FINISHER);
		return true;
	}
	switch (s->pc[FINISHER]) {
	case 0:
		return turn(s, FINISHER);
	case 1:
		if (s->ticked == s->handed) {
			bool never = s->shut;
			unwait(s);
			if (never)
				quit(s, FINISHER);
			else
				leave(s, FINISHER);
			say(never ? "NEVER: closed and empty" : "waits for a poke");
		} else if (is_done(s, s->behind[s->ticked])) {
			unwait(s);
			s->ticked++;
			s->pc[FINISHER] = 2;
			say("takes %d", s->behind[s->ticked - 1]);
		} else {
			if (!s->waits && mutation != NO_WAIT) {
				s->live++;
				s->waits = 1;
			}
			s->armed = 1;
			leave(s, FINISHER);
			say("is gated");
		}
		return true;
	case 2:
		if (!s->unfinished)
			fail("a tick found nothing unfinished");
		s->unfinished--;
		if (mutation != NOT_SHOWN)
			show(s);
		s->pc[FINISHER] = 1;
		say("one is finished");
		return true;
	}
	return false;
}

/* The work of all pushed messages is enqueued; any may end next. The signal of the fence that the finisher waits for pokes it. */
static bool device(struct state *s)
{
	int able[N], n = 0, i;

	for (i = 0; i < s->pushed; i++)
		if (s->needs[i] && !s->done[i])
			able[n++] = i;
	if (n) {
		i = able[choose(n)];
		s->done[i] = 1;
		say("finishes %d", i);
		return true;
	}
	return false;
}

static bool fires(struct state *s)
{
	if (!s->armed || s->ticked == s->handed || !is_done(s, s->behind[s->ticked]))
		return false;
	s->armed = 0;
	poke(s, FINISHER);
	say("the signal pokes the finisher");
	return true;
}

static bool taker(struct state *s)
{
	switch (s->pc[TAKER]) {
	case 0:
		if (!s->shown)
			return false;
		if (s->ended && (!s->holding || (mutation == CLOSED_EARLY && in_queue(s) <= s->unfinished))) {
			s->heard = 1;
			s->pc[TAKER] = 9;
			say("gets CLOSED");
			return true;
		}
		if (!is_done(s, s->taken))
			fail("%d was taken before it was finished", s->taken);
		s->taken++;
		say("takes %d", s->taken - 1);
		s->drop = !in_queue(s);
		if (s->drop)
			s->holding = 0;
		show(s);
		s->pc[TAKER] = mutation == DROPPED_FIRST ? 2 : 1;
		return true;
	case 1:
		poke(s, SENDER);
		s->pc[TAKER] = mutation == DROPPED_FIRST ? 0 : 2;
		say("pokes the sender");
		return true;
	case 2:
		if (s->drop)
			drop(s);
		s->drop = 0;
		s->pc[TAKER] = mutation == DROPPED_FIRST ? 1 : 0;
		return true;
	}
	return false;
}

static bool loop(struct state *s)
{
	switch (s->pc[LOOP]) {
	case 0:
		if ((setting & CUT) && choose(2)) {
			s->closed = s->cut = 1;
			s->pc[LOOP] = 1;
			say("cuts the run short");
			return true;
		}
		if (s->live)
			return false;
		s->closed = 1;
		s->pc[LOOP] = 9;
		say("closes at a count of 0");
		if (!(s->state[SENDER] & s->state[FINISHER] & DONE) || s->taken != N)
			fail("closed with %d of %d taken, states %d and %d", s->taken, N, s->state[SENDER], s->state[FINISHER]);
		return true;
	case 1:		/* the workers have left: the references of what is left are dropped */
		if (s->entry[SENDER] || s->entry[FINISHER])
			return false;
		unwait(s);
		if (s->holding)
			drop(s);
		s->holding = 0;
		s->ended = 1;
		show(s);
		s->pc[LOOP] = 9;
		return true;
	}
	return false;
}

static bool step(struct state *s, int t)
{
	switch (t) {
	case SENDER:
		return sender(s);
	case FINISHER:
		return finisher(s);
	case DEVICE:
		return fires(s) || device(s);
	case TAKER:
		return taker(s);
	default:
		return loop(s);
	}
}

static void check(const struct state *s)
{
	if (in_queue(s) > (setting & WIDE ? 2u : 1u))
		fail("more in the queue than its capacity");
	if ((unsigned)s->handed - s->ticked > in_queue(s))
		fail("the finisher holds more than the outlet");
	if (s->unfinished > in_queue(s))
		fail("more unfinished than there is");
}

static void at_end(const struct state *s)
{
	if (!s->closed)
		fail("the run is never closed: %d pushed, %d taken, %d unfinished, live %d", s->pushed, s->taken, s->unfinished, s->live);
	if (!s->heard)
		fail("the taker waits for ever");
	if (!s->cut && s->taken != N)
		fail("CLOSED was returned after %d of %d", s->taken, N);
	if (s->live)
		fail("%d references are left", s->live);
}

static const struct run runs[] = {
	{"rules, capacity 1", NONE, 0, HOLDS},
	{"rules, capacity 2", NONE, WIDE, HOLDS},
	{"rules, the run is cut short, capacity 1", NONE, CUT, HOLDS},
	{"rules, the run is cut short, capacity 2", NONE, WIDE | CUT, HOLDS},
	{"MUTANT what is finished is not counted behind what is not", DIRECT_BEHIND, WIDE, BREAKS},
	{"MUTANT unfinished grows after the lock", COUNTED_LATE, 0, BREAKS},
	{"MUTANT the taker's reference goes before its poke", DROPPED_FIRST, 0, BREAKS},
	{"MUTANT CLOSED is answered while something is unfinished", CLOSED_EARLY, 0, BREAKS},
	{"MUTANT a tick of the finisher does not show", NOT_SHOWN, 0, BREAKS},
	{"MUTANT a sender that is DONE does not poke the finisher", NOT_TOLD, 0, BREAKS},
	{"MUTANT the finisher's tick frees the sender's room", FREED_BY_TICK, 0, BREAKS},
	{"MUTANT the finisher's queue is closed after the poke", CLOSED_LATE, 0, BREAKS},
	{"a gated finisher holds no reference: the outlet's is enough", NO_WAIT, WIDE, HOLDS},
	{0}
};

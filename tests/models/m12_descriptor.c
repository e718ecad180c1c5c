/*
 * M12: an entity that waits for a descriptor (docs/dev/rules.md C9). The owner polls it in each review and arms it,
 * once, if it is not ready; the loop that gets the report marks it as not armed, then pokes the entity.
 *
 * A writer outside puts BYTES bytes, one at a time. The owner takes one byte a tick, but ticks only while a
 * second condition holds, which its own thread switches on at some moment (with a poke). The kernel's set is as
 * epoll's with EPOLLONESHOT: an armed descriptor that is or becomes ready is reported, once. Poke, review and
 * park are M1's: a poke sets a bit that the owner looks at when it parks.
 * Run: build/m12_descriptor [-v]. Properties: all bytes are read in the end; the loop is never woken by a
 * descriptor that nothing waits for, or more often than it was armed.
 */
#include <stdint.h>
#define THREADS 4
#define BYTES 3
enum { WRITER, OWNER, LOOP, SWITCH };
enum mutation { NONE, ARM_SEES_CHANGES_ALONE, POKE_BEFORE_MARK, NOT_ONCE, ARMED_ALWAYS, REPORT_ARMS_NO_MORE };
enum at { IDLE, POLL, ARM, PARK };
struct state { uint8_t written, held, at, poked, on, armed, in_set, taken, got, reports, arms; };
#include "explore.h"

static void begin(struct state *s)
{
	s->at = POLL;                                           /* the run's first review */
	s->on = (uint8_t)choose(2);
}

static void tick(struct state *s)
{
	s->held--;
	s->taken++;
	say("takes a byte");
	if (s->taken == BYTES)
		say(": the last one");
}

static void arm(struct state *s)
{
	if (s->armed)
		return;
	s->armed = 1;
	s->arms++;
	s->in_set = mutation == ARM_SEES_CHANGES_ALONE && s->held ? 0 : 1; /* edge-triggered: what is there already is not reported */
}

static bool step(struct state *s, int t)
{
	switch (t) {
	case WRITER:
		if (s->written == BYTES)
			return false;
		s->written++;
		s->held++;
		if (mutation == ARM_SEES_CHANGES_ALONE && s->armed)
			s->in_set = 1;
		say("writes a byte");
		return true;
	case SWITCH:
		if (s->on)
			return false;
		s->on = s->poked = 1;
		say("the other condition holds: pokes");
		return true;
	case OWNER:
		if (s->at == IDLE && s->poked) {
			s->poked = 0;
			s->at = POLL;
			say("is reviewed");
		} else if (s->at == POLL) {
			bool arms = mutation == ARMED_ALWAYS ? true : s->on && !s->held;
			say(s->held ? "polls: ready; " : "polls: not ready; ");
			if (s->on && s->held)
				tick(s);                        /* and is reviewed again */
			else
				s->at = arms ? ARM : PARK;      /* a poke alone can change the other condition (C2) */
		} else if (s->at == ARM) {
			arm(s);
			s->at = PARK;
			say("arms");
		} else if (s->at == PARK) {
			s->at = s->poked ? POLL : IDLE;
			s->poked = 0;
			say(s->at == IDLE ? "parks" : "was poked meanwhile");
		} else {
			return false;
		}
		return true;
	default:
		if (s->got == 1) {                              /* the second half of a report */
			s->got = 0;
			if (mutation == POKE_BEFORE_MARK)
				s->armed = 0;
			else
				s->poked = 1;
			say(mutation == POKE_BEFORE_MARK ? "marks it as not armed" : "pokes");
			return true;
		}
		if (!s->in_set || !s->held)
			return false;
		if (s->reports < 100)
			s->reports++;
		s->in_set = mutation == NOT_ONCE;
		s->got = 1;
		if (mutation == POKE_BEFORE_MARK)
			s->poked = 1;
		else if (mutation != REPORT_ARMS_NO_MORE)
			s->armed = 0;
		say("the set reports it");
		return true;
	}
}

static void check(const struct state *s)
{
	if (s->reports > s->arms)
		fail("a descriptor that nothing waits for ends the loop's wait again and again");
	if (!s->on && s->reports)
		fail("the loop is woken although a poke alone can change what the entity waits for");
}

static void at_end(const struct state *s)
{
	if (s->taken < BYTES)
		fail("%d of %d bytes are never read", BYTES - s->taken, BYTES);
}

static const struct run runs[] = {
	{"rules: polled at each review, armed once, marked before the poke", NONE, 0, HOLDS},
	{"MUTANT arming reports changes alone", ARM_SEES_CHANGES_ALONE, 0, BREAKS},
	{"MUTANT the loop pokes before it marks", POKE_BEFORE_MARK, 0, BREAKS},
	{"MUTANT the set reports it as long as it is ready", NOT_ONCE, 0, BREAKS},
	{"MUTANT armed although another condition waits for a poke", ARMED_ALWAYS, 0, BREAKS},
	{"MUTANT a report leaves it marked as armed", REPORT_ARMS_NO_MORE, 0, BREAKS},
	{0}
};

/*
 * M20: a wait for the first of several alternatives (docs/dev/rules.md C11; C2, S4, G2). An entity waits for any_of {a fence, another
 * fence, a message}. Each fence has a token of its own; the wait holds one live reference.
 *
 * Actors: the worker (reviews the entity while it is QUEUED; the entity is DONE after its tick), the device (which fences it ever completes
 * is chosen at the start; a complete fence fires its token, which pokes), the sender (may push one message and poke), another entity whose token
 * is outstanding at first, the loop (ends the run at a count of 0). `setting` tokens may be outstanding; a cancelled one counts until
 * it has fired. A refused entity is in the FIFO with a live reference; a released token takes it out and pokes it.
 * With one token both fences complete: a fence without a token is looked at when a token is released. Setting STUCK: no device work
 * completes, and the run must still end. Setting KINDS: the token of fence 2 is of another kind, without a bound (a flag, a promise);
 * arming it takes the entity out of the FIFO, so what was refused before is tried again. KEPT, with KINDS: only fence 2 completes, and the
 * other entity's token is never released.
 * Properties: if an alternative holds, the entity ticks, once; after the tick nothing that was lost holds the run open; the run does not
 * end while a fence is waited for that will complete; no poke reaches an entity of an ended run.
 * Run: build/m20_trees [-v]
 */
#include <stdint.h>
#define THREADS 5
enum { WORKER, DEVICE, SENDER, OTHER, LOOP };
enum { FENCES = 2, STUCK = 4, KINDS = 8, KEPT = 16 };
enum mutation { NONE, STOPS, LEAVES, LAST_ALONE, FIRST_ALONE, JOINED, TOKEN_HOLDS, FIFO_KEPT, WAIT_KEPT, NO_WAIT_LIVE, POKE_BLIND };
enum token { FREE, PENDING, CANCELLED, FIRING };
enum entity { IDLE, POKED = 1, RUNNING = 2, DONE = 4 };
struct state {
	uint8_t pc, entity, token[FENCES], complete[FENCES], will, chosen, message, sent, other, closed;
	uint8_t live, holds, fifo, outstanding, ticks, look, refused;
};
#define THREAD_NAMES
#include "explore.h"

static const char *thread_name(int t)
{
	static const char *names[] = {"worker", "device", "sender", "other", "loop"};
	return names[t];
}

static void begin(struct state *s)
{
	s->entity = POKED;
	s->live = 1;
	s->other = 1;
	s->outstanding = 1;
}

/* By a thread without a live reference. */
static void poke(struct state *s)
{
	uint8_t before = s->entity;

	if (s->closed && mutation != POKE_BLIND)
		return;
	if (s->closed)
		fail("a poke reaches an entity of an ended run");
	s->entity |= POKED;
	s->live += before == IDLE;
}

static void release(struct state *s, int i)
{
	if (setting & KINDS && i == 1)
		return; /* of no bound */
	s->outstanding--;
	if (!s->fifo)
		return;
	s->fifo = 0;
	poke(s);
	s->live--;
}

static void cancel(struct state *s)
{
	for (int i = 0; i < FENCES; i++)
		if (s->token[i] == PENDING)
			s->token[i] = CANCELLED;
	if (s->fifo && mutation != FIFO_KEPT) {
		s->fifo = 0;
		s->live--;
	}
	if (s->holds && mutation != WAIT_KEPT) {
		s->holds = 0;
		s->live--;
	}
}

static bool skipped(int i)
{
	return (mutation == LAST_ALONE && i < FENCES - 1) || ((mutation == FIRST_ALONE || mutation == JOINED) && i > 0);
}

static void refuse(struct state *s)
{
	s->refused = 1;
	s->live += !s->fifo;
	s->fifo = 1;
}

/* Of another kind: it has no bound. */
static void arm_other_kind(struct state *s)
{
	s->token[1] = PENDING;
	say("arms fence 2");
	s->live -= s->fifo;
	s->fifo = 0;
	if (!s->refused || mutation == LEAVES)
		return;
	if (s->outstanding < (setting & 3)) {
		s->token[0] = PENDING;
		s->outstanding++;
		s->refused = 0;
		say("arms fence 1 now");
	} else {
		refuse(s);
		say("is refused a token for fence 1 again");
	}
}

static void arm(struct state *s, int i)
{
	if (s->token[i] != FREE || skipped(i) || (s->refused && mutation == STOPS))
		return;
	if (setting & KINDS && i)
		arm_other_kind(s);
	else if (s->outstanding < (setting & 3)) {
		s->token[i] = PENDING;
		s->outstanding++;
		s->live += mutation == TOKEN_HOLDS;
		say("arms fence %d", i + 1);
	} else {
		refuse(s);
		say("is refused a token for fence %d", i + 1);
	}
}

static bool worker(struct state *s)
{
	switch (s->pc) {
	case 0:
		if (!(s->entity & POKED) || s->entity & DONE || s->closed)
			return false;
		s->entity = RUNNING;
		s->refused = 0;
		s->pc = 1;
		say("begins a review");
		return true;
	case 1:
		s->look = s->message || s->complete[0] || s->complete[1];
		if (s->look) {
			cancel(s);
			s->ticks++;
			s->entity = DONE;
			s->live--;
			s->pc = 0;
			say("ticks, and is DONE");
			return true;
		}
		if (!s->holds && mutation != NO_WAIT_LIVE) {
			s->holds = 1;
			s->live++;
		}
		s->pc = 2;
		say("nothing holds");
		return true;
	case 2: case 3:
		arm(s, s->pc - 2);
		s->pc++;
		return true;
	default:
		s->pc = 0;
		if (s->entity & POKED) {
			say("was poked meanwhile");
			return true;
		}
		s->entity = IDLE;
		s->live--;
		say("parks");
		return true;
	}
}

static bool device(struct state *s)
{
	int i;

	if (!s->chosen) {
		s->chosen = 1;
		s->will = setting & STUCK ? 0 : setting & KEPT ? 2 : setting == 1 ? 3 : (uint8_t)choose(4);
		return true;
	}
	i = choose(FENCES);
	if (!(s->will & 1u << i))
		return false;
	if (!s->complete[i]) {
		s->complete[i] = 1;
		say("completes fence %d", i + 1);
		return true;
	}
	if (mutation == JOINED && !s->complete[!i])
		return false;
	switch (s->token[i]) {
	case PENDING:
		s->token[i] = FIRING;
		say("token %d fires", i + 1);
		return true;
	case FIRING:
		poke(s);
		s->token[i] = FREE;
		s->live -= mutation == TOKEN_HOLDS;
		release(s, i);
		say("pokes, token %d is released", i + 1);
		return true;
	case CANCELLED:
		s->token[i] = FREE;
		s->live -= mutation == TOKEN_HOLDS;
		release(s, i);
		say("token %d was cancelled, and is released", i + 1);
		return true;
	}
	return false;
}

static bool step(struct state *s, int t)
{
	switch (t) {
	case WORKER: return worker(s);
	case DEVICE: return device(s);
	case SENDER:
		if (s->sent)
			return false;
		s->sent = 1;
		if (choose(2) && !s->closed) {
			s->message = 1;
			poke(s);
			say("pushes and pokes");
		}
		return true;
	case OTHER:
		if (!s->other || setting & (STUCK | KEPT))
			return false;
		s->other = 0;
		release(s, FENCES);
		say("the other entity's token is released");
		return true;
	default:
		if (s->closed || s->live)
			return false;
		s->closed = 1;
		say("ends the run");
		if (!s->ticks && s->holds == 0 && s->will && s->chosen && !s->message && s->entity == IDLE)
			fail("the run ends while a fence is waited for");
		return true;
	}
}

static void check(const struct state *s)
{
	if (s->ticks > 1)
		fail("it ticks %d times for one wait", s->ticks);
	if (s->outstanding > (setting & 3))
		fail("%d tokens are outstanding", s->outstanding);
}

static void at_end(const struct state *s)
{
	bool holds = s->message || s->complete[0] || s->complete[1];

	if (holds && !s->ticks)
		fail("an alternative holds, and the entity sleeps");
	if (s->ticks && !s->closed)
		fail("what was lost holds the run open: count %d", s->live);
}

static const struct run runs[] = {
	{"rules, 3 tokens", NONE, 3, HOLDS},
	{"rules, 2 tokens, one of them another entity's", NONE, 2, HOLDS},
	{"rules, 1 token, another entity's", NONE, 1, HOLDS},
	{"rules, 2 tokens, no device work ever completes", NONE, 2 | STUCK, HOLDS},
	{"rules, 1 token, another entity's; fence 2 has one of another kind", NONE, 1 | KINDS, HOLDS},
	{"rules, the same, and the token is not released", NONE, 1 | KINDS | KEPT, HOLDS},
	{"MUTANT what follows a refused alternative is not armed", STOPS, 1 | KINDS | KEPT, BREAKS},
	{"MUTANT a token of another kind takes the entity out of the FIFO for good", LEAVES, 1 | KINDS, BREAKS},
	{"MUTANT the last alternative alone is armed", LAST_ALONE, 3, BREAKS},
	{"MUTANT the first alternative alone is armed", FIRST_ALONE, 3, BREAKS},
	{"MUTANT one token, which fires when all fences are complete", JOINED, 3, BREAKS},
	{"MUTANT each token holds a live reference until it fires", TOKEN_HOLDS, 3, BREAKS},
	{"MUTANT the tick leaves the entity in the FIFO", FIFO_KEPT, 2 | STUCK, BREAKS},
	{"MUTANT the tick keeps the reference of the wait", WAIT_KEPT, 3, BREAKS},
	{"MUTANT the wait holds no reference", NO_WAIT_LIVE, 3, BREAKS},
	{"MUTANT a late signal pokes without a look at the end", POKE_BLIND, 3, BREAKS},
	{0}
};

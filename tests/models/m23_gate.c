/*
 * M23: a sender that reviews its receiver (docs/dev/rules.md S2, C8, G1).
 *
 * Actors: a sender (2 messages, each behind work of the device), a driver (fires the armed token, pokes), two workers. The receiver has a
 * gate: it takes a message once the token that was armed for it has fired. The owner of the receiver closes its front and arms: a worker
 * that popped it, or the sender, which after a push takes ownership by CAS IDLE->RUNNING instead of poking. It arms, unless a token is armed
 * for an earlier message, and leaves by CAS RUNNING->IDLE; if it was poked meanwhile: exchange to QUEUED, push. If the first CAS fails it pokes.
 * Choices: the device is done before the token is armed: then the sender, as owner, arms nothing and queues the receiver.
 * Settings: REFUSED: no token is free at the first arming; the loop pokes the receiver when one is (G2). STRAY: it is poked once more, at any
 * time, as by a user or by a receiver that frees room.
 * Words: TOKEN 2k: fired for k messages; 2k + 1: armed for the next. PRIVATE, the owner's fields: 2 * consumed + a front that waits.
 * Properties: at the end both messages are consumed; never two owners; never twice in the ready queues; no message consumed before its
 * token fired or its work was seen done; no token armed twice; under VIEWS each owner sees the plain fields of the one before.
 * Run: make build/m23_gate && build/m23_gate [-v [NAME]]
 */
#define WORDS 5
#define WRITES 40
#define MTHREADS 5
#define THREADS 10
#include <stdint.h>
enum { STATE, INBOX, TOKEN, READY, PRIVATE };          /* words; READY: entries in the ready queues */
enum { POKED = 1, RUNNING = 2 };
enum { SENDER, DRIVER, WORKER_A, WORKER_B, LOOP, DRAIN };
enum { REFUSED = 4, STRAY = 8 };                                   /* settings, beside the memory model in the low bits */
enum mutation {
	NONE, NO_POKE, BLIND_LEAVE, DROPS_POKE, ARMS_AGAIN, OWNS_BUSY, OWN_RELAXED, LEAVE_RELAXED, STORE_QUEUED, REVIEW_BEFORE_OWNING,
	ARM_AFTER_LEAVING, READY_STAYS
};
#include "memory_fwd.h"
struct state {
	struct memory m;
	uint8_t pc[5], sent, owners, done, early, entered;
};
#define THREAD_NAMES
#include "explore.h"
#include "memory.h"

static const char *thread_name(int t)
{
	static const char *names[] = {"sender", "driver", "worker A", "worker B", "loop", "buf", "buf", "buf", "buf", "buf"};
	return names[t];
}

static uint8_t newest(const struct memory *m, int word)
{
	return m->value[word][m->model == VIEWS ? m->n[word] - 1 : 0];
}

static void push(struct state *s, int t)
{
	say(" -> pushed");
	if (fetch_add(&s->m, t, READY, 1, ACQREL))
		fail("the entity is in the ready queues twice");
}

static void poke(struct state *s, int t)
{
	uint8_t old = fetch_or(&s->m, t, STATE, POKED, ACQREL);

	say("poke: state was %d", old);
	if (!old)
		push(s, t);
}

static void own(struct state *s)
{
	if (++s->owners > 1)
		fail("two owners of one entity");
}

static void begin(struct state *s)
{
	memory_init(&s->m, setting & 3);
	if (!(setting & (REFUSED | STRAY)))
		memory_leave(&s->m, LOOP);
}

/* The owner's: a front that waits has no token yet, and gets it unless it is refused. */
static void arm(struct state *s, int t, uint8_t fields)
{
	struct memory *m = &s->m;
	uint8_t consumed = fields / 2;

	store(m, t, PRIVATE, fields | 1, RLX);
	if ((setting & REFUSED) && !s->entered) {
		s->entered = 1;                         /* in the FIFO: under its lock, so the loop sees it */
		say("is refused, enters the FIFO");
		return;
	}
	if (newest(m, TOKEN) != 2 * consumed)
		fail("a token is armed while another one is, or for work that was waited for");
	exchange(m, t, TOKEN, (uint8_t)(2 * consumed + 1), ACQREL);
	say("arms the token of message %d", consumed + 1);
}

static bool sender(struct state *s)
{
	struct memory *m = &s->m;
	uint8_t *pc = &s->pc[SENDER], fields;

	switch (*pc) {
	case 0:
		if (s->sent == 2) {
			if (m->gone >> SENDER & 1)
				return false;
			memory_leave(m, SENDER);
			say("ends");
			return true;
		}
		store(m, SENDER, INBOX, ++s->sent, RLX);
		say("publishes message %d", s->sent);
		*pc = mutation == REVIEW_BEFORE_OWNING ? 5 : 1;
		return true;
	case 5:                                                 /* the mutant looks at the fields of another owner */
		s->early = (uint8_t)(1 + newest(m, PRIVATE));
		*pc = 1;
		say("looks at the receiver");
		return true;
	case 1:                                                 /* IDLE -> RUNNING: the owner, else a poke */
		*pc = 2;
		if (cas(m, SENDER, STATE, 0, RUNNING, mutation == OWN_RELAXED ? RLX : ACQREL)) { /* order: STATE rmw acq_rel */
			say("owns the parked receiver");
			own(s);
			return true;
		}
		if (mutation == OWNS_BUSY) {
			say("takes it from its owner");
			own(s);
			return true;
		}
		*pc = 0;
		if (mutation == NO_POKE)
			say("busy: leaves it to its owner");
		else
			poke(s, SENDER);
		return true;
	case 2:                                                 /* the review */
		fields = owned(m, SENDER, PRIVATE);
		if (s->early)
			fields = (uint8_t)(s->early - 1);
		*pc = 3;
		if ((fields & 1) && mutation != ARMS_AGAIN) {
			say("a front waits already");
		} else if (fields / 2 + 1 != s->sent && mutation != ARMS_AGAIN) {
			say("an earlier message is its front: queues it");
			*pc = 4;
		} else if (s->done >= s->sent) {
			say("its work is done: queues it");
			*pc = mutation == READY_STAYS ? 3 : 4;
		} else if (mutation == ARM_AFTER_LEAVING) {
			*pc = 6;
			say("leaves the arming for later");
		} else
			arm(s, SENDER, fields);
		return true;
	case 6: case 3:                                         /* leave */
		if (mutation == BLIND_LEAVE) {
			store(m, SENDER, STATE, 0, SEQ);
			say("stores IDLE blindly");
		} else if (!cas(m, SENDER, STATE, RUNNING, 0, mutation == LEAVE_RELAXED ? RLX : REL)) { /* order: STATE rmw release */
			say("was poked meanwhile");
			if (mutation == DROPS_POKE)
				exchange(m, SENDER, STATE, 0, ACQREL);
			*pc = mutation == DROPS_POKE ? 0 : 4;
			s->owners -= mutation == DROPS_POKE;
			return true;
		} else
			say("leaves: IDLE");
		s->owners--;
		s->early = 0;
		*pc = *pc == 6 ? 7 : 0;
		return true;
	case 7:                                                 /* the mutant: owns it no more */
		arm(s, SENDER, owned(m, SENDER, PRIVATE));
		*pc = 0;
		return true;
	case 4:
		s->owners--;
		s->early = 0;
		if (mutation == STORE_QUEUED)
			store(m, SENDER, STATE, POKED, REL);
		else
			exchange(m, SENDER, STATE, POKED, ACQREL);
		say("RUNNING -> QUEUED");
		*pc = 8;
		return true;
	default:
		push(s, SENDER);
		*pc = 0;
		return true;
	}
}

static bool driver(struct state *s)
{
	struct memory *m = &s->m;
	uint8_t token = newest(m, TOKEN);

	switch (s->pc[DRIVER]) {
	case 0:                                                 /* the device finishes; the callback runs behind it */
		if (s->done < s->sent) {
			s->done++;
			say("the device has done the work of message %d", s->done);
			return true;
		}
		if (!(token & 1) || s->done < token / 2 + 1)
			return false;
		cas(m, DRIVER, TOKEN, token, (uint8_t)(token + 1), ACQREL);
		say("token PENDING -> FIRED");
		s->pc[DRIVER] = 1;
		return true;
	default:
		poke(s, DRIVER);
		s->pc[DRIVER] = 0;
		return true;
	}
}

static bool worker(struct state *s, int t)
{
	struct memory *m = &s->m;
	uint8_t *pc = &s->pc[t], inbox, token, fields;

	switch (*pc) {
	case 0:
		if (!newest(m, READY))
			return false;
		fetch_add(m, t, READY, -1, ACQREL);
		say("pops the entity");
		*pc = 1;
		return true;
	case 1:
		exchange(m, t, STATE, RUNNING, ACQREL);
		say("exchanges -> RUNNING");
		own(s);
		*pc = 2;
		return true;
	case 2:
		inbox = load(m, t, INBOX, RLX);
		token = load(m, t, TOKEN, RLX);
		fields = owned(m, t, PRIVATE);
		*pc = 3;
		if (inbox <= fields / 2) {
			store(m, t, PRIVATE, fields, RLX);
			say("review: no message");
		} else if ((fields & 1) && token == fields + 1) {
			store(m, t, PRIVATE, (uint8_t)(fields + 1), RLX);
			say("review: fired: takes message %d", fields / 2 + 1);
			*pc = 2;
		} else if ((fields & 1) && token == fields) {
			say("review: waits for its token");
		} else if (s->done > fields / 2) { /* the query says so; a token that was refused is needed no more */
			exchange(m, t, TOKEN, (uint8_t)((fields | 1) + 1), ACQREL);
			store(m, t, PRIVATE, (uint8_t)((fields | 1) + 1), RLX);
			say("review: done: takes message %d", fields / 2 + 1);
			*pc = 2;
		} else
			arm(s, t, fields);
		return true;
	default:
		if (!cas(m, t, STATE, RUNNING, 0, REL)) {
			exchange(m, t, STATE, RUNNING, ACQREL);
			say("NOTIFIED: looks again");
			*pc = 2;
			return true;
		}
		say("leaves: IDLE");
		s->owners--;
		*pc = 0;
		return true;
	}
}

static bool loop(struct state *s)
{
	if ((setting & STRAY) && !s->pc[LOOP]) {
		s->pc[LOOP] = 1;
		poke(s, LOOP);
		if (!(setting & REFUSED))
			memory_leave(&s->m, LOOP);
		return true;
	}
	if (s->entered != 1)
		return false;
	s->entered = 2;
	say("a token is free, takes the entity out of the FIFO");
	poke(s, LOOP);
	return true;
}

static bool step(struct state *s, int t)
{
	if (t >= DRAIN)
		return memory_drain(&s->m, t - DRAIN);
	return t == SENDER ? sender(s) : t == DRIVER ? driver(s) : t == LOOP ? loop(s) : worker(s, t);
}

static void check(const struct state *s)
{
	(void)s;
}

static void at_end(const struct state *s)
{
	if (newest(&s->m, PRIVATE) != 4)
		fail("%d of 2 messages consumed, all asleep", newest(&s->m, PRIVATE) / 2);
}

static const struct run runs[] = {
	{"rules, sequential consistency", NONE, INTERLEAVED, HOLDS},
	{"rules, TSO", NONE, TSO, HOLDS},
	{"rules, C11 (own acq_rel, leave release)", NONE, VIEWS, HOLDS},
	{"rules, a token is refused, SC", NONE, INTERLEAVED | REFUSED, HOLDS},
	{"rules, a token is refused, C11", NONE, VIEWS | REFUSED, HOLDS},
	{"rules, poked once more, SC", NONE, INTERLEAVED | STRAY, HOLDS},
	{"rules, poked once more, TSO", NONE, TSO | STRAY, HOLDS},
	{"rules, poked once more, C11", NONE, VIEWS | STRAY, HOLDS},
	{"rules, a token is refused, poked once more, SC", NONE, INTERLEAVED | REFUSED | STRAY, HOLDS},
	{"MUTANT busy: neither owned nor poked", NO_POKE, INTERLEAVED, BREAKS},
	{"MUTANT IDLE stored blindly", BLIND_LEAVE, INTERLEAVED, BREAKS},
	{"MUTANT poked meanwhile: IDLE all the same", DROPS_POKE, INTERLEAVED, BREAKS},
	{"MUTANT arms though a front waits", ARMS_AGAIN, INTERLEAVED, BREAKS},
	{"MUTANT owns one that is not parked", OWNS_BUSY, INTERLEAVED, BREAKS},
	{"MUTANT looks at its fields before it owns it", REVIEW_BEFORE_OWNING, INTERLEAVED, BREAKS},
	{"MUTANT arms when it owns it no more", ARM_AFTER_LEAVING, INTERLEAVED | STRAY, BREAKS},
	{"MUTANT work that is done: parked, not queued", READY_STAYS, INTERLEAVED, BREAKS},
	{"MUTANT CAS IDLE->RUNNING relaxed, C11", OWN_RELAXED, VIEWS, BREAKS},
	{"MUTANT CAS RUNNING->IDLE relaxed, C11", LEAVE_RELAXED, VIEWS | STRAY, BREAKS},
	{"MUTANT queued by a release store, C11", STORE_QUEUED, VIEWS, BREAKS},
	{0}
};

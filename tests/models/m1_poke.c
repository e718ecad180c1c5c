/*
 * M1: poke and review (docs/dev/rules.md S1, S2; F01-F04, F19, F33-F34; C5's explaining).
 *
 * Actors: a sender (2 messages: publish in the inbox, poke), a driver callback (CAS the token, poke), two
 * workers (pop, exchange, review, tick, leave by CAS), optionally an explainer (C5: takes ownership of an
 * idle entity).
 * With RETIRE the entity becomes DONE after its first tick (S5): it drops its inbox (counted closed), leaves
 * by CAS RUNNING->DONE; NOTIFIED: exchange to RUNNING, drop again. A sender whose poke finds DONE takes back
 * what it pushed; it is then that queue's owner.
 * The state word has the bits POKED, RUNNING, DONE; IDLE = 0, QUEUED = POKED, NOTIFIED = RUNNING|POKED.
 * A poke is ONE unconditional fetch_or(POKED); if it finds 0, it pushes.
 * Properties: at the end every message was consumed, dropped or taken back, once, and the token consumed,
 * unless the entity is DONE; nothing is dropped or taken back without RETIRE; never two owners; never twice
 * in the ready queues; under VIEWS, also: each owner sees what the former owner wrote in plain fields.
 * Bounds: 1 entity, 2 messages, 1 token, 2 workers; memory INTERLEAVED, TSO, VIEWS (see memory.h).
 * Run: make build/m1_poke && build/m1_poke [-v [NAME]]
 * Result: the rules hold (1,313 states SC, 1,829 TSO, 22,632 C11; with closing upstream 246,118); a poke that
 * may skip after a load breaks under TSO and C11 unless all four accesses are seq_cst; a sender that takes
 * back needs the poke's acquire; 23 mutants found; a second opinion in m1_poke.pml (Spin).
 */
#define WORDS 6
#define MTHREADS 5
#define THREADS 10
#include <stdint.h>
enum { STATE, INBOX, TOKEN, READY, PRIVATE, CLOSED };   /* words; READY: entries in the ready queues; CLOSED: upstream is DONE */
enum { POKED = 1, RUNNING = 2, DONE = 4 };
enum { SENDER, DRIVER, WORKER_A, WORKER_B, EXPLAINER, DRAIN };
enum { EXPLAIN = 4, RETIRE = 8, CLOSING = 16 };                     /* settings, beside the memory model in the low bits */
enum mutation {
	NONE, SKIP_ON_LOAD, SKIP_ON_SEQ_STORE, SKIP_ALL_SEQ, CAS_LOOP, BLIND_IDLE, REVIEW_FIRST, NO_REEXCHANGE, STORE_AFTER_REVIEW,
	POKE_THEN_PUBLISH, POKE_RELAXED, EXCHANGE_RELAXED, LEAVE_RELAXED, PUBLISH_RELAXED, REVIEW_RELAXED, BLIND_EXPLAIN, BLIND_REQUEUE,
	REQUEUE, CAS_LOOP_SEQ, SKIP_FENCED, PUSH_ALWAYS, RELEASE_ONLY_POKE, CAS_LOOP_FENCED, CLOSED_AFTER_COUNT,
	DONE_BLINDLY, DONE_KEEPS_NOTIFIED, DONE_THEN_DROP, DONE_RELAXED, NO_TAKE_BACK
};
#include "memory_fwd.h"
struct state {
	struct memory m;
	uint8_t pc[5], sent, owners, fired_seen, inbox_seen, consumed_token, closed_seen, stale_old[5], found_done, lost;
};
#define THREAD_NAMES
#include "explore.h"
#include "memory.h"

static const char *thread_name(int t)
{
	static const char *names[] = {"sender", "driver", "worker A", "worker B", "explain", "buf", "buf", "buf", "buf", "buf"};
	return names[t];
}

enum { PUBLISH, POKE, EXCHANGE, LEAVE, REVIEW };        /* the accesses whose ordering is varied */
static enum order order_of(int access)
{
	bool all_seq = mutation == SKIP_ALL_SEQ;
	switch (access) {
	case PUBLISH: /* order: INBOX store relaxed */
		return all_seq || mutation == SKIP_ON_SEQ_STORE || mutation == CAS_LOOP_SEQ ? SEQ : mutation == PUBLISH_RELAXED ? RLX : REL;
	case POKE: /* order: STATE rmw acq_rel */
		return mutation == POKE_RELAXED ? RLX : mutation == RELEASE_ONLY_POKE ? REL : ACQREL;
	case EXCHANGE: /* order: STATE rmw acq_rel */
		return all_seq || mutation == CAS_LOOP_SEQ ? SEQ : mutation == EXCHANGE_RELAXED ? RLX : ACQREL;
	case LEAVE: /* order: STATE rmw release */
		return mutation == LEAVE_RELAXED ? RLX : REL;
	default: /* order: INBOX load relaxed */
		return all_seq || mutation == CAS_LOOP_SEQ ? SEQ : mutation == REVIEW_RELAXED ? RLX : ACQ;
	}
}

static void push(struct state *s, int t)
{
	uint8_t before = fetch_add(&s->m, t, READY, 1, ACQREL);

	say(" -> pushed");
	if (before)
		fail("the entity is in the ready queues twice");
}

/* One atomic step of a poke; pc runs from `at` to `at + 2`; true when the poke is over. */
static bool poke_step(struct state *s, int t, int at)
{
	struct memory *m = &s->m;
	bool loop = mutation == CAS_LOOP || mutation == CAS_LOOP_SEQ || mutation == CAS_LOOP_FENCED;
	bool skips = mutation == SKIP_ON_LOAD || mutation == SKIP_ON_SEQ_STORE || mutation == SKIP_ALL_SEQ || mutation == SKIP_FENCED;

	if (s->pc[t] == at && (loop || skips)) {                /* the mutants load first */
		if (mutation == SKIP_FENCED || mutation == CAS_LOOP_FENCED)
			fence(m, t);
		uint8_t old = load(m, t, STATE, mutation == SKIP_ALL_SEQ || mutation == CAS_LOOP_SEQ ? SEQ : RLX);
		say("poke: loads state %d%s", old, old & (POKED | DONE) ? ", skips" : "");
		if (old & (POKED | DONE))
			return true;
		s->stale_old[t] = old;
		s->pc[t]++;
		return false;
	}
	if (loop) {
		uint8_t old = s->stale_old[t];
		bool done = cas(m, t, STATE, old, old | POKED, order_of(POKE));
		if (!done && m->model == VIEWS)
			m->knows[t][STATE] = (uint8_t)(m->n[STATE] - 1);        /* a store becomes visible in the end */
		say("poke: CAS %d -> %d %s", old, old | POKED, done ? "done" : "failed, again");
		if (done && old == 0)
			push(s, t);
		if (!done)
			s->pc[t]--;
		return done;
	}
	uint8_t old = fetch_or(m, t, STATE, POKED, order_of(POKE));
	say("poke: state was %d", old);
	s->found_done |= (uint8_t)(!!(old & DONE) << t);
	if (old == 0 || (mutation == PUSH_ALWAYS && old == RUNNING))
		push(s, t);
	return true;
}

static void begin(struct state *s)
{
	memory_init(&s->m, setting & 3);
	if (!(setting & EXPLAIN))
		memory_leave(&s->m, EXPLAINER);
}

static void own(struct state *s, int t)
{
	if (++s->owners > 1)
		fail("two owners of one entity");
	owned(&s->m, t, PRIVATE);
}

static bool sender(struct state *s)
{
	uint8_t *pc = &s->pc[SENDER];
	bool late = mutation == POKE_THEN_PUBLISH;

	switch (*pc) {
	case 0:
		if (s->sent == 2 && (setting & CLOSING)) {      /* the last message is out: close, poke */
			store(&s->m, SENDER, CLOSED, 1, REL); /* order: CLOSED store release */
			say("closes its port");
			s->sent = 3;
			*pc = 1;
			return true;
		}
		if (s->sent >= 2) {
			if (s->m.gone >> SENDER & 1)
				return false;
			memory_leave(&s->m, SENDER);
			say("ends");
			return true;
		}
		if (!late) {
			store(&s->m, SENDER, INBOX, ++s->sent, order_of(PUBLISH));
			say("publishes message %d", s->sent);
		}
		*pc = 1;
		return true;
	case 1: case 2:
		if (poke_step(s, SENDER, 1))
			*pc = late ? 3 : (s->found_done >> SENDER & 1) && mutation != NO_TAKE_BACK ? 4 : 0;
		return true;
	case 4:                                                 /* found DONE: no other thread touches this queue any more */
		own(s, SENDER);
		*pc = 5;
		say("begins to take back");
		return true;
	case 5: {
		uint8_t gone = owned(&s->m, SENDER, PRIVATE), pushed = s->sent > 2 ? 2 : s->sent;
		s->lost = (uint8_t)(s->lost + pushed - gone);
		store(&s->m, SENDER, PRIVATE, pushed, RLX);
		say("takes %d back, counted closed", pushed - gone);
		s->owners--;
		*pc = 0;
		return true;
	}
	default:
		store(&s->m, SENDER, INBOX, ++s->sent, order_of(PUBLISH));
		say("publishes message %d after the poke", s->sent);
		*pc = 0;
		return true;
	}
}

static bool driver(struct state *s)
{
	uint8_t *pc = &s->pc[DRIVER];

	switch (*pc) {
	case 0:
		cas(&s->m, DRIVER, TOKEN, 0, 1, mutation == SKIP_ALL_SEQ || mutation == CAS_LOOP_SEQ ? SEQ : ACQREL);
		say("token PENDING -> FIRED");
		*pc = 1;
		return true;
	case 1: case 2:
		if (poke_step(s, DRIVER, 1))
			*pc = 3;
		if (*pc == 3)
			memory_leave(&s->m, DRIVER);
		return true;
	}
	return false;
}

static bool worker(struct state *s, int t)
{
	struct memory *m = &s->m;
	uint8_t *pc = &s->pc[t], old;

	switch (*pc) {
	case 0:                                                 /* pop */
		if (m->value[READY][m->model == VIEWS ? m->n[READY] - 1 : 0] == 0)
			return false;
		fetch_add(m, t, READY, -1, ACQREL);
		say("pops the entity");
		*pc = mutation == REVIEW_FIRST ? 2 : 1;
		return true;
	case 1:                                                 /* QUEUED -> RUNNING, before the review */
		old = exchange(m, t, STATE, RUNNING, order_of(EXCHANGE));
		say("exchanges %d -> RUNNING", old);
		own(s, t);
		*pc = 2;
		return true;
	case 10: case 11:                                       /* review: is the upstream closed? to be read BEFORE the inbox */
		s->closed_seen = load(m, t, CLOSED, ACQ); /* order: CLOSED load acquire */
		say("review: sees upstream %s", s->closed_seen ? "closed" : "open");
		*pc = *pc == 10 ? 12 : 4;
		return true;
	case 2:                                                 /* review: the inbox, then the token */
		if ((setting & CLOSING) && mutation != CLOSED_AFTER_COUNT) {
			*pc = 10;
			return worker(s, t);
		}
		/* fall through */
	case 12:
		s->inbox_seen = load(m, t, INBOX, order_of(REVIEW));
		say("review: sees %d messages", s->inbox_seen);
		*pc = 3;
		return true;
	case 3:
		s->fired_seen = load(m, t, TOKEN, order_of(REVIEW));
		say("review: sees token %s", s->fired_seen ? "FIRED" : "PENDING");
		*pc = (setting & CLOSING) && mutation == CLOSED_AFTER_COUNT ? 11 : 4;
		if (mutation == REVIEW_FIRST) {                 /* the exchange comes too late */
			old = exchange(m, t, STATE, RUNNING, order_of(EXCHANGE));
			say("; only now exchanges %d -> RUNNING", old);
			own(s, t);
		}
		return true;
	case 4:                                                 /* READY: tick and review again; else try to leave */
		old = owned(m, t, PRIVATE);
		if (s->inbox_seen > old || s->fired_seen > s->consumed_token) {
			store(m, t, PRIVATE, s->inbox_seen, RLX);
			s->consumed_token = s->fired_seen;
			say("READY, ticks");
			*pc = mutation == REQUEUE || mutation == BLIND_REQUEUE ? 7 : 5;
			if (setting & RETIRE)                   /* its count is reached: NEVER */
				*pc = mutation == DONE_THEN_DROP ? 14 : 8;
			return true;
		}
		store(m, t, PRIVATE, old, RLX);                 /* a review also writes the owner's fields: front, wait, verdict */
		*pc = s->closed_seen ? 8 : 6;
		say(s->closed_seen ? "NEVER" : "not READY");
		return true;
	case 5:                                                 /* again: first take the poke back, then review */
		if (mutation == STORE_AFTER_REVIEW)
			say("looks again without taking the poke back");
		else if (mutation != NO_REEXCHANGE) {
			old = exchange(m, t, STATE, RUNNING, order_of(EXCHANGE));
			say("exchanges %d -> RUNNING, looks again", old);
		}
		*pc = 2;
		return true;
	case 6:                                                 /* leave */
		if (mutation == BLIND_IDLE) {
			store(m, t, STATE, 0, SEQ);
			say("stores IDLE blindly");
		} else if (mutation == STORE_AFTER_REVIEW) {
			store(m, t, STATE, RUNNING, SEQ);
			cas(m, t, STATE, RUNNING, 0, order_of(LEAVE));
			say("stores RUNNING after the review, then leaves");
		} else if (!cas(m, t, STATE, RUNNING, 0, order_of(LEAVE))) {
			say("cannot leave: NOTIFIED");
			*pc = 5;
			return true;
		} else
			say("leaves: IDLE");
		s->owners--;
		s->inbox_seen = s->fired_seen = s->closed_seen = 0;
		*pc = 0;
		return true;
	case 7:                                                 /* after a tick the entity queues itself again */
		s->owners--;
		s->inbox_seen = s->fired_seen = 0;
		if (mutation == BLIND_REQUEUE)
			store(m, t, STATE, POKED, REL);
		else
			exchange(m, t, STATE, POKED, ACQREL);
		say("RUNNING -> QUEUED");
		*pc = 9;
		return true;
	case 8:                                                 /* NEVER: drops what is in the inbox */
		s->inbox_seen = load(m, t, INBOX, order_of(REVIEW));
		say("NEVER: sees %d messages", s->inbox_seen);
		*pc = 13;
		return true;
	case 13:
		old = owned(m, t, PRIVATE);
		s->lost = (uint8_t)(s->lost + s->inbox_seen - old);
		store(m, t, PRIVATE, s->inbox_seen, RLX);
		say("drops %d, counted closed", s->inbox_seen - old);
		*pc = mutation == DONE_THEN_DROP ? 15 : 14;
		return true;
	case 14:                                                /* leaves by CAS RUNNING -> DONE */
		if (mutation == DONE_BLINDLY || mutation == DONE_THEN_DROP)
			exchange(m, t, STATE, DONE, ACQREL);
		else if (!cas(m, t, STATE, RUNNING, DONE, mutation == DONE_RELAXED ? RLX : REL)) { /* order: STATE rmw release */
			say("cannot leave: NOTIFIED");
			*pc = mutation == DONE_KEEPS_NOTIFIED ? 8 : 16;
			return true;
		}
		say("DONE");
		if (mutation == DONE_THEN_DROP) {
			*pc = 8;
			return true;
		}
		/* fall through */
	case 15:
		s->owners--;
		s->inbox_seen = s->fired_seen = s->closed_seen = 0;
		*pc = 0;
		return true;
	case 16:
		old = exchange(m, t, STATE, RUNNING, order_of(EXCHANGE));
		say("exchanges %d -> RUNNING, drops again", old);
		*pc = 8;
		return true;
	default:
		push(s, t);
		*pc = 0;
		return true;
	}
}

static bool explainer(struct state *s)
{
	struct memory *m = &s->m;
	uint8_t *pc = &s->pc[EXPLAINER];

	if (!(setting & EXPLAIN))
		return false;
	switch (*pc) {
	case 0:
		*pc = cas(m, EXPLAINER, STATE, 0, RUNNING, ACQREL) ? 1 : 4; /* one try: enough for all interleavings */
		say(*pc == 1 ? "takes the idle entity to explain it" : "entity busy");
		if (*pc == 1)
			own(s, EXPLAINER);
		return true;
	case 1:
		s->owners--;
		if (mutation == BLIND_EXPLAIN) {
			store(m, EXPLAINER, STATE, 0, SEQ);
			say("puts IDLE back blindly");
			*pc = 4;
		} else if (cas(m, EXPLAINER, STATE, RUNNING, 0, REL)) {
			say("leaves: IDLE");
			*pc = 4;
		} else {                                        /* poked meanwhile: hand it to the workers */
			exchange(m, EXPLAINER, STATE, POKED, ACQREL);
			say("was poked meanwhile: RUNNING|POKED -> QUEUED");
			*pc = 2;
		}
		return true;
	case 2:
		push(s, EXPLAINER);
		*pc = 4;
		return true;
	}
	return false;
}

static bool step(struct state *s, int t)
{
	if (t >= DRAIN)
		return memory_drain(&s->m, t - DRAIN);
	return t == SENDER ? sender(s) : t == DRIVER ? driver(s) : t == EXPLAINER ? explainer(s) : worker(s, t);
}

static void check(const struct state *s)
{
	(void)s;
}

static void at_end(const struct state *s)
{
	const struct memory *m = &s->m;
	int last = m->model == VIEWS ? m->n[PRIVATE] - 1 : 0;

	if (m->value[PRIVATE][last] != 2)
		fail("%d of 2 messages consumed, dropped or taken back, all asleep", m->value[PRIVATE][last]);
	bool done = m->value[STATE][m->model == VIEWS ? m->n[STATE] - 1 : 0] & DONE;
	if (s->lost && !(setting & RETIRE))
		fail("%d messages dropped though they could be delivered", s->lost);
	if (!s->consumed_token && !done)
		fail("lost wake-up: the token fired, no worker reviews");
}

static const struct run runs[] = {
	{"rules, sequential consistency", NONE, INTERLEAVED, HOLDS},
	{"rules, TSO", NONE, TSO, HOLDS},
	{"rules, C11 (poke acq_rel, exchange acq_rel, leave release)", NONE, VIEWS, HOLDS},
	{"rules + DONE, sequential consistency", NONE, INTERLEAVED | RETIRE, HOLDS},
	{"rules + DONE, TSO", NONE, TSO | RETIRE, HOLDS},
	{"rules + DONE, C11", NONE, VIEWS | RETIRE, HOLDS},
	{"rules + DONE + explaining, SC", NONE, INTERLEAVED | RETIRE | EXPLAIN, HOLDS},
	{"rules + DONE + explaining, C11", NONE, VIEWS | RETIRE | EXPLAIN, HOLDS},
	{"rules + explaining, sequential consistency", NONE, INTERLEAVED | EXPLAIN, HOLDS},
	{"rules + explaining, TSO", NONE, TSO | EXPLAIN, HOLDS},
	{"rules + upstream closes: closed is read before the inbox, C11", NONE, VIEWS | CLOSING, HOLDS},
	{"rules + upstream closes + explaining, SC", NONE, INTERLEAVED | CLOSING | EXPLAIN, HOLDS},
	{"MUTANT NEVER from \"too few\" read before \"closed\" (S5)", CLOSED_AFTER_COUNT, INTERLEAVED | CLOSING, BREAKS},
	{"tick = RUNNING->QUEUED by exchange, then push; SC", REQUEUE, INTERLEAVED, HOLDS},
	{"tick = RUNNING->QUEUED by exchange, then push; C11", REQUEUE, VIEWS, HOLDS},
	{"publish relaxed (the poke's release covers it), C11", PUBLISH_RELAXED, VIEWS, HOLDS},
	{"poke release only, C11", RELEASE_ONLY_POKE, VIEWS, HOLDS},
	{"review loads relaxed (the exchange's acquire covers it), C11", REVIEW_RELAXED, VIEWS, HOLDS},
	{"poke loads and skips, publish seq_cst, SC", SKIP_ON_SEQ_STORE, INTERLEAVED, HOLDS},
	{"poke loads and skips, publish seq_cst, TSO", SKIP_ON_SEQ_STORE, TSO, HOLDS},
	{"poke loads and skips, all four accesses seq_cst, C11", SKIP_ALL_SEQ, VIEWS, HOLDS},
	{"poke = CAS loop, sequential consistency", CAS_LOOP, INTERLEAVED, HOLDS},
	{"MUTANT poke = CAS loop whose first load may skip, TSO", CAS_LOOP, TSO, BREAKS},
	{"MUTANT poke = CAS loop whose first load may skip, C11", CAS_LOOP, VIEWS, BREAKS},
	{"poke = CAS loop, publish+load+exchange+review seq_cst, C11", CAS_LOOP_SEQ, VIEWS, HOLDS},
	{"MUTANT fence before the CAS loop's load, but not after the exchange, C11", CAS_LOOP_FENCED, VIEWS, BREAKS},
	{"poke = fence + CAS loop, TSO", CAS_LOOP_FENCED, TSO, HOLDS},
	{"poke loads and skips, sequential consistency", SKIP_ON_LOAD, INTERLEAVED, HOLDS},
	{"MUTANT poke loads and skips, TSO", SKIP_ON_LOAD, TSO, BREAKS},
	{"MUTANT poke loads and skips, only the publish is seq_cst, C11", SKIP_ON_SEQ_STORE, VIEWS, BREAKS},
	{"MUTANT poke relaxed, C11", POKE_RELAXED, VIEWS, BREAKS},
	{"MUTANT exchange relaxed, C11", EXCHANGE_RELAXED, VIEWS, BREAKS},
	{"MUTANT leave relaxed, C11", LEAVE_RELAXED, VIEWS, BREAKS},
	{"MUTANT requeue after a tick by a release store instead of exchange, C11", BLIND_REQUEUE, VIEWS, BREAKS},
	{"requeue after a tick by a release store, TSO", BLIND_REQUEUE, TSO, HOLDS},
	{"MUTANT IDLE stored blindly", BLIND_IDLE, INTERLEAVED, BREAKS},
	{"MUTANT review before the exchange", REVIEW_FIRST, INTERLEAVED, BREAKS},
	{"MUTANT looks again without a new exchange", NO_REEXCHANGE, INTERLEAVED, BREAKS},
	{"MUTANT takes the poke back after the review", STORE_AFTER_REVIEW, INTERLEAVED, BREAKS},
	{"MUTANT pokes before it publishes", POKE_THEN_PUBLISH, INTERLEAVED, BREAKS},
	{"MUTANT poke pushes a RUNNING entity", PUSH_ALWAYS, INTERLEAVED, BREAKS},
	{"MUTANT DONE exchanged in, whatever the state is", DONE_BLINDLY, INTERLEAVED | RETIRE, BREAKS},
	{"MUTANT DONE first, inbox dropped after", DONE_THEN_DROP, INTERLEAVED | RETIRE, BREAKS},
	{"MUTANT NOTIFIED: drops again without the exchange", DONE_KEEPS_NOTIFIED, INTERLEAVED | RETIRE, BREAKS},
	{"MUTANT the sender leaves what it pushed at a DONE receiver", NO_TAKE_BACK, INTERLEAVED | RETIRE, BREAKS},
	{"MUTANT CAS RUNNING->DONE relaxed, C11", DONE_RELAXED, VIEWS | RETIRE, BREAKS},
	{"MUTANT poke release only: the sender takes back without acquire, C11", RELEASE_ONLY_POKE, VIEWS | RETIRE, BREAKS},
	{"MUTANT explainer puts IDLE back blindly", BLIND_EXPLAIN, INTERLEAVED | EXPLAIN, BREAKS},
	{0}
};

/*
 * M10: the set of queues with new messages, of a port with many connections (docs/dev/rules.md C4, S5).
 *
 * Actors: two senders, each with a queue of its own into one port, and the receiver's owner.
 * Rule as modelled:
 *   sender:  stores the tail; exchanges its mark; found unset: links itself to the first of the stack and
 *            exchanges that by CAS, again until it succeeds; then pokes. At its end: stores `closed`; marks
 *            and inserts likewise; counts `open` down; pokes.
 *   owner:   review: reads `open`, THEN takes the whole stack by exchange; of each connection in it: reads
 *            the link, THEN exchanges the mark, THEN reads `closed`, THEN the tail: what it knows of that
 *            queue. Enough is known: it receives one message of the queue that has waited longest (any-size:
 *            one of each). Else NEVER if `open` was 0 (any-size: if a queue known to be closed has none),
 *            else it leaves by CAS.
 * Properties: what is received was pushed; NEVER only when nothing is left (any-size: a closed queue is
 * empty); in the end the receiver is DONE and has received all (any-size: as many as the shorter has); no
 * actor waits for ever; a queue that has a message is served before another is served twice more.
 * Bounds: 2 or 3 messages of A, 1 to 3 of B, room for one or all. Interleavings: the exchanges make the order
 * (queue.h says which sees which).
 * Run: build/m10_fan_in [-v [NAME]]
 */
#include <stdint.h>
#define THREADS 3
#define NQ 2
enum { RECEIVER = 2 };
enum { POKED = 1, RUNNING = 2, DONE = 4 };
enum { ANY_SIZE = 1, EVEN = 2, ONE = 4, MORE = 8 };       /* settings; ONE: room for one message, a sender waits for it */
enum mutation {
	NONE, MARK_FIRST, POKE_FIRST, CLOSED_NOT_INSERTED, DOWN_FIRST, LOOK_FIRST, LINK_LATE, OPEN_LATE, CLOSED_LATE,
	STACK_BY_STORE, LAST_FIRST
};
struct state {
	uint8_t word, marked[NQ], link[NQ], first, open, tail[NQ], closed[NQ];
	uint8_t pc[NQ], saw_first[NQ], ending[NQ];
	uint8_t rpc, seen_open, list, at, next, known[NQ], known_closed[NQ], got[NQ], ring[NQ], in_ring, passed_over[NQ], early;
};
#define THREAD_NAMES
#include "explore.h"

static const char *thread_name(int t)
{
	static const char *names[] = {"sender A", "sender B", "receiver"};
	return names[t];
}

static int messages(int q)
{
	return (q == 0 || (setting & EVEN) ? 2 : 1) + !!(setting & MORE);
}
static void poke(struct state *s) { s->word |= POKED; }

/* --- a sender --- */
enum { STORE, MARK, LINK, SWING, DOWN, POKE, ENDED, MARK_EARLY, STORE_LATE, POKE_EARLY };

static uint8_t sender_begins(const struct state *s, int q)
{
	bool ending = s->tail[q] == messages(q);

	if (ending)
		return STORE;
	return mutation == MARK_FIRST ? MARK : mutation == POKE_FIRST ? POKE_EARLY : STORE;
}

/* The next step once it is in the stack. */
static uint8_t inserted(const struct state *s, int q)
{
	if (mutation == MARK_FIRST && !s->ending[q])
		return STORE_LATE;
	return s->ending[q] && mutation != DOWN_FIRST ? DOWN : POKE;
}

static void next_round(struct state *s, int q)
{
	s->saw_first[q] = 0;
	if (s->ending[q])
		s->pc[q] = ENDED;
	else
		s->pc[q] = sender_begins(s, q);
}

static bool sender(struct state *s, int q)
{
	switch (s->pc[q]) {
	case POKE_EARLY:
		poke(s);
		s->pc[q] = STORE;
		say("pokes");
		return true;
	case STORE:
	case STORE_LATE:
		if ((setting & ONE) && s->tail[q] > s->got[q] && !(s->word & DONE))
			return false;
		if (s->tail[q] == messages(q)) {
			s->closed[q] = 1;
			s->ending[q] = 1;
			if (mutation == DOWN_FIRST)
				s->open--;
			say("closes");
			s->pc[q] = mutation == CLOSED_NOT_INSERTED ? DOWN : MARK;
			return true;
		}
		s->tail[q]++;
		say("pushes message %d", s->tail[q]);
		s->pc[q] = s->pc[q] == STORE_LATE ? POKE : MARK;
		return true;
	case MARK: {
		bool was = s->marked[q];
		s->marked[q] = 1;
		say("marks%s", was ? ": is in the set" : "");
		s->pc[q] = was ? inserted(s, q) : LINK;
		return true;
	}
	case LINK:
		s->saw_first[q] = s->first;
		s->link[q] = s->first;
		s->pc[q] = SWING;
		say("links to %d", s->first);
		return true;
	case SWING:
		if (mutation != STACK_BY_STORE && s->first != s->saw_first[q]) {
			s->pc[q] = LINK;
			say("is not the first any more");
			return true;
		}
		s->first = (uint8_t)(q + 1);
		s->pc[q] = inserted(s, q);
		say("is in the set");
		return true;
	case DOWN:
		s->open--;
		s->pc[q] = POKE;
		say("counts down to %d", s->open);
		return true;
	case POKE:
		if (mutation != POKE_FIRST || s->ending[q])
			poke(s);
		say("pokes");
		next_round(s, q);
		return true;
	default:
		return false;
	}
}

/* --- the receiver's owner --- */
enum { IDLE, OPEN, TAKE, ITEM, UNMARK, CLOSING, TAIL, DECIDE, LEAVE, EARLY, RELINK, OPEN_AT_END, CLOSING_LATE };

static void next_item(struct state *s)
{
	s->at = s->early = 0;
	s->rpc = s->list ? (uint8_t)(mutation == LOOK_FIRST ? EARLY : ITEM) : mutation == OPEN_LATE ? OPEN_AT_END : DECIDE;
}

static void know(struct state *s, int q, uint8_t tail)
{
	if (s->known[q] == s->got[q] && tail > s->got[q])
		s->ring[s->in_ring++] = (uint8_t)q;
	s->known[q] = tail;
	say("knows %d of %c", tail, 'A' + q);
}

static void receive(struct state *s, int q)
{
	s->got[q]++;
	s->passed_over[q] = 0;
	if (s->got[q] > s->tail[q])
		fail("receives what was not pushed");
	say("receives %d of %c", s->got[q], 'A' + q);
}

static void serve(struct state *s)
{
	int q = mutation == LAST_FIRST ? s->ring[s->in_ring - 1] : s->ring[0];

	if (mutation != LAST_FIRST)
		s->ring[0] = s->ring[1];
	s->ring[--s->in_ring] = 0;
	receive(s, q);
	if (s->known[q] > s->got[q])
		s->ring[s->in_ring++] = (uint8_t)q;
	if (s->known[!q] > s->got[!q] && ++s->passed_over[!q] > 1)
		fail("%c is passed over twice", 'A' + !q);
}

static bool enough(const struct state *s)
{
	bool a = s->known[0] > s->got[0], b = s->known[1] > s->got[1];

	return (setting & ANY_SIZE) ? a && b : a || b;
}

static bool hopeless(const struct state *s)
{
	if (!(setting & ANY_SIZE))
		return !s->seen_open;
	return (s->known_closed[0] && s->known[0] == s->got[0]) || (s->known_closed[1] && s->known[1] == s->got[1]);
}

static void decide(struct state *s)
{
	if (enough(s)) {
		if (setting & ANY_SIZE) {
			receive(s, 0);
			receive(s, 1);
			s->in_ring = 0;
			for (int q = 0; q < NQ; q++)
				if (s->known[q] > s->got[q])
					s->ring[s->in_ring++] = (uint8_t)q;
		} else {
			serve(s);
		}
		s->rpc = mutation == OPEN_LATE ? TAKE : OPEN;
		s->seen_open = 0;
		return;
	}
	if (!hopeless(s)) {
		s->rpc = LEAVE;
		s->seen_open = 0;
		say("WAIT");
		return;
	}
	say("NEVER");
	bool right = s->tail[0] == s->got[0] && s->tail[1] == s->got[1];
	if (setting & ANY_SIZE)
		right = (s->closed[0] && s->tail[0] == s->got[0]) || (s->closed[1] && s->tail[1] == s->got[1]);
	if (!right)
		fail("NEVER, and there is a message");
	s->word = DONE;
	s->rpc = IDLE;
	s->seen_open = 0;
}

static bool receiver(struct state *s)
{
	int q = s->at - 1;

	switch (s->rpc) {
	case IDLE:
		if (s->word != POKED)
			return false;
		s->word = RUNNING;
		s->rpc = mutation == OPEN_LATE ? TAKE : OPEN;
		say("-> RUNNING");
		return true;
	case OPEN:
		s->seen_open = s->open;
		s->rpc = TAKE;
		say("sees %d open", s->open);
		return true;
	case TAKE:
		s->list = s->first;
		s->first = 0;
		say("takes the set");
		next_item(s);
		return true;
	case EARLY:                                             /* mutant: the tail before the mark */
		s->early = (uint8_t)(s->tail[s->list - 1] + 1);
		s->rpc = ITEM;
		say("looks at %c", 'A' + s->list - 1);
		return true;
	case ITEM:
		s->at = s->list;
		s->next = s->link[s->at - 1];
		s->rpc = UNMARK;
		say("comes to %c", 'A' + s->at - 1);
		return true;
	case UNMARK:
		s->marked[q] = 0;
		s->rpc = mutation == LINK_LATE ? RELINK : mutation == CLOSED_LATE ? TAIL : CLOSING;
		say("unmarks it");
		return true;
	case RELINK:
		s->next = s->link[q];
		s->rpc = CLOSING;
		say("reads its link");
		return true;
	case CLOSING:
		s->known_closed[q] = s->closed[q];
		s->rpc = TAIL;
		say("sees it %s", s->closed[q] ? "closed" : "open");
		return true;
	case TAIL:
		know(s, q, s->early ? (uint8_t)(s->early - 1) : s->tail[q]);
		s->rpc = CLOSING_LATE;
		/* fall through: one step, but for the mutant */
		if (mutation == CLOSED_LATE)
			return true;
		s->list = s->next;
		s->next = 0;
		next_item(s);
		return true;
	case CLOSING_LATE:
		s->known_closed[q] = s->closed[q];
		say("sees it %s", s->closed[q] ? "closed" : "open");
		s->list = s->next;
		s->next = 0;
		next_item(s);
		return true;
	case OPEN_AT_END:
		s->seen_open = s->open;
		s->rpc = DECIDE;
		say("sees %d open", s->open);
		return true;
	case DECIDE:
		decide(s);
		return true;
	default:
		s->rpc = s->word == RUNNING ? IDLE : mutation == OPEN_LATE ? TAKE : OPEN;
		s->word = s->word == RUNNING ? 0 : RUNNING;
		say("leaves%s", s->word ? ": was poked" : "");
		return true;
	}
}

static bool step(struct state *s, int t)
{
	return t == RECEIVER ? receiver(s) : sender(s, t);
}

static void begin(struct state *s)
{
	s->word = POKED;
	s->open = NQ;
	for (int q = 0; q < NQ; q++)
		s->pc[q] = sender_begins(s, q);
}

static void check(const struct state *s)
{
	(void)s;
}

static void at_end(const struct state *s)
{
	int shorter = messages(1);

	if (!(s->word & DONE))
		fail("the receiver waits for ever");
	for (int q = 0; q < NQ; q++)
		if (s->got[q] != ((setting & ANY_SIZE) ? shorter : messages(q)))
			fail("%d of %c are received", s->got[q], 'A' + q);
}

static const struct run runs[] = {
	{"one message at a time, 2 and 1", NONE, 0, HOLDS},
	{"one message at a time, 2 and 2", NONE, EVEN, HOLDS},
	{"any-size, 2 and 1", NONE, ANY_SIZE, HOLDS},
	{"any-size, 2 and 2", NONE, ANY_SIZE | EVEN, HOLDS},
	{"one message at a time, 2 and 2, room for one", NONE, EVEN | ONE, HOLDS},
	{"any-size, 3 and 3", NONE, ANY_SIZE | EVEN | MORE, HOLDS},
	{"the closing is inserted for any-size ports alone", CLOSED_NOT_INSERTED, EVEN, HOLDS},
	{"MUTANT the mark before the tail", MARK_FIRST, ONE, BREAKS},
	{"MUTANT the poke before push and mark", POKE_FIRST, ONE, BREAKS},
	{"MUTANT an any-size port is not told of the closing", CLOSED_NOT_INSERTED, ANY_SIZE, BREAKS},
	{"MUTANT the owner looks at the tail, then resets the mark", LOOK_FIRST, 0, BREAKS},
	{"MUTANT the link is read after the mark is reset", LINK_LATE, EVEN, BREAKS},
	{"MUTANT `open` is read after the set was taken", OPEN_LATE, 0, BREAKS},
	{"MUTANT `closed` of a queue is read after its tail", CLOSED_LATE, ANY_SIZE | EVEN | MORE, BREAKS},
	{"MUTANT the stack's first is stored, not exchanged", STACK_BY_STORE, 0, BREAKS},
	{"MUTANT the queue that got something last is served first", LAST_FIRST, EVEN, BREAKS},
	{0}
};

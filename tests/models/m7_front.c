/*
 * M7: the inbox and the front of a queue, `block` and `pop` (docs/dev/rules.md C4, S5, E5; the pokes of S1, S2).
 *
 * Actors: one or two senders (each an entity with its own thread of control: review, push, poke, review
 * again), a receiver with one input port fed by all of them, per sender a stream of the device that completes
 * fences in order, a signal.
 * A queue belongs to one connection: an inbox (pushed, not looked at) and a front (looked at, due to the next
 * tick).
 * Rule as modelled:
 *   push, block:  the sender looks at room = capacity - inbox - front in its review; only it adds, so the
 *                 push needs no lock.
 *   push, pop:    ONE critical section: if the queue is full and its inbox is not empty, the oldest of the
 *                 inbox is evicted; then push. With a full front and an empty inbox it admits one more.
 *   review:       `closed` of all senders, THEN the counts (inbox + front); too few: NEVER if all were
 *                 closed, else WAIT. Enough and no front yet: the front is closed: up to `take` messages from
 *                 the inboxes, in turn, beginning after the queue served last; `pop`: under the queue's lock.
 *                 Only then are the fences of the front queried.
 *   gate (C8):    a sender marks the receiver, THEN pushes its first message with a fence; the receiver
 *                 closes the front, THEN looks at the mark, and queries fences only if it is set. (GATE
 *                 settings; in the others it always queries.)
 *   tick:         takes the front and nothing else, which frees the room; then it pokes the senders.
 *   sender ends:  closed is stored after the last push, then a poke.
 *   DONE:         the receiver drops inbox and front, leaves by CAS RUNNING->DONE (NOTIFIED: exchange, drop
 *                 again), and THEN pokes its senders; a sender whose poke finds DONE takes back what it
 *                 pushed.
 * Properties: a tick receives complete fences only, in order per connection, each message once; never more
 * than the capacity (pop: + 1); the front holds what the gathering conditions saw; in the end all are DONE,
 * every queue is empty and pushed = delivered + dropped + closed (E5); where no rule drops messages, dropped
 * and closed are 0. In the STARVE settings senders send until the receiver has had the one thing it waits
 * for: a weakly fair cycle is a starvation.
 * Bounds: 2 senders x 2 messages or 1 x 4, capacity 1-2, take 1, 2, all; at most 3 unfinished fences a
 * stream.
 * Run: build/m7_front [-v [NAME]]
 * Result: holds (up to 4.2 million states a run); a receiver that pokes its senders before it is DONE leaves
 * one waiting for ever (S5 must name the order); all mutants found.
 */
#include <stdint.h>
#define THREADS 6
#define NQ 2
#define ROOM 4
enum { SENDER_A, SENDER_B, RECEIVER, STREAM_A, STREAM_B, SIGNAL };
enum { POKED = 1, RUNNING = 2, DONE = 4 };
enum {                                                  /* settings */
	CAP2 = 1, POP = 2, FENCES = 4, TAKE2 = 8, ALL = 16, BOTH = 32, LIMIT = 64, JOIN = 128, MIN2 = 256, STARVE_FRONT = 512, STARVE_B = 1024,
	FLUSH = 2048, MORE = 4096, QUITS = 8192, GATE = 16384
};
enum mutation {
	NONE, ROOM_BY_LOOKING, NEWEST_FROM_INBOX, CLOSED_AFTER_COUNT, TWO_SECTIONS, FRONT_UNLOCKED, POKE_BEFORE_PUSH, TICK_POKES_NOBODY,
	NO_FRONT, NO_TURNS, CLOSED_BEFORE_PUSH, NO_TAKE_BACK, DONE_BLINDLY, TOPPED_UP, POKE_BEFORE_FREE, DROPS_ONLY_INBOX,
	EVICTS_FRONT, ROOM_IGNORES_DONE, POKES_BEFORE_DONE, MARKS_AFTER_PUSH, MARK_READ_EARLY
};
/* A message: number*4 + the unfinished fences of its stream up to its own; the number is 0 where senders never end. */
struct state {
	uint8_t word[3], pc[3], left[NQ], sent[NQ], inbox[NQ][ROOM], in[NQ], front[NQ][ROOM], fronts[NQ], closed[NQ], unfinished[NQ];
	uint8_t armed, armed_at[NQ], signal_poke, last, got[NQ], dropped[NQ], lost[NQ], newest[NQ], ticks, b_served;
	uint8_t seen_closed, seen[NQ], at, marked, due_push, mark, saw_mark, due_fence[NQ];
};
#define THREAD_NAMES
#include "explore.h"

static const char *thread_name(int t)
{
	static const char *names[] = {"sender A", "sender B", "receiver", "stream A", "stream B", "signal"};
	return names[t];
}

static int capacity(void) { return (setting & CAP2) ? 2 : 1; }
static int queues(void) { return (setting & (BOTH | JOIN | STARVE_B)) ? 2 : 1; }
static int take(void) { return (setting & ALL) ? 2 * ROOM : (setting & TAKE2) ? 2 : 1; }
static int least(void) { return (setting & MIN2) ? 2 : 1; }
static bool endless(int q) { return (setting & STARVE_FRONT) ? q == 0 : (setting & STARVE_B) ? q == 0 : false; }
static bool satisfied(const struct state *s) { return (setting & STARVE_FRONT) ? s->ticks : s->b_served; }
static bool counted(void) { return !(setting & (STARVE_FRONT | STARVE_B)); }
static bool done(const struct state *s, int e) { return s->word[e] & DONE; }
static int fronts(const struct state *s) { return s->fronts[0] + s->fronts[1]; }

static uint8_t shift(uint8_t *list, uint8_t *n)
{
	uint8_t first = list[0];

	for (int i = 0; i + 1 < *n; i++)
		list[i] = list[i + 1];
	list[--*n] = 0;
	return first;
}

static void add(uint8_t *list, uint8_t *n, uint8_t message)
{
	if (*n == ROOM)
		fail("a queue grows beyond every bound");
	list[(*n)++] = message;
}

/* Returns true if the poke found DONE. */
static bool poke(struct state *s, int e)
{
	uint8_t old = s->word[e];

	s->word[e] |= POKED;
	say("pokes %s (was %d)", thread_name(e), old);
	return old & DONE;
}

/* --- a sender --- */
enum { IDLE, REVIEW, MARK, PUSH, MARK_LATE, PUSH_LATE, EVICTED, POKE, TAKE_BACK, CLOSE, CLOSE_FIRST, POKE_CLOSED, RETIRE, LEAVE, AGAIN };

static bool has_room(const struct state *s, int q)
{
	int held = s->in[q] + (mutation == ROOM_BY_LOOKING ? 0 : s->fronts[q]);

	return (setting & POP) || (done(s, RECEIVER) && mutation != ROOM_IGNORES_DONE) || held < capacity();
}

static bool full(const struct state *s, int q)
{
	return s->in[q] + s->fronts[q] >= capacity();
}

static void evict(struct state *s, int q)
{
	if (mutation == EVICTS_FRONT && s->fronts[q])
		shift(s->front[q], &s->fronts[q]);
	else
		shift(s->inbox[q], &s->in[q]);
	if (counted())
		s->dropped[q]++;
	say("evicts the oldest, ");
}

static bool push(struct state *s, int q)
{
	if ((setting & FENCES) && s->unfinished[q] == 3)        /* bound of the model */
		return false;
	if ((setting & POP) && s->pc[q] == PUSH && full(s, q) && s->in[q]) {
		evict(s, q);
		if (mutation == TWO_SECTIONS) {
			s->pc[q] = EVICTED;
			return true;
		}
	}
	if (!endless(q)) {
		s->left[q]--;
		s->sent[q]++;
	}
	bool fenced = (setting & GATE) ? s->due_fence[q] : (setting & FENCES) && (endless(q) || choose(2));  /* without device work it is complete */
	s->unfinished[q] = (uint8_t)(s->unfinished[q] + fenced);
	add(s->inbox[q], &s->in[q], (uint8_t)((endless(q) ? 0 : s->sent[q] * 4) + (fenced ? s->unfinished[q] : 0)));
	say("pushes message %d", s->sent[q]);
	if (s->in[q] + s->fronts[q] > capacity() + !!(setting & POP))
		fail("queue %c holds %d, its capacity is %d", 'A' + q, s->in[q] + s->fronts[q], capacity());
	s->pc[q] = mutation == POKE_BEFORE_PUSH ? AGAIN : mutation == MARKS_AFTER_PUSH ? MARK_LATE : POKE;
	if (mutation != MARKS_AFTER_PUSH)
		s->due_fence[q] = 0;
	return true;
}

static bool sender(struct state *s, int q)
{
	uint8_t *pc = &s->pc[q];

	switch (*pc) {
	case IDLE:
		if (s->word[q] != POKED)
			return false;
		/* fall through */
	case AGAIN:
		s->word[q] = RUNNING;
		*pc = REVIEW;
		say("-> RUNNING");
		return true;
	case REVIEW:
		if (done(s, RECEIVER) && mutation != ROOM_IGNORES_DONE)
			*pc = CLOSE;
		else if (endless(q) ? satisfied(s) : !s->left[q])
			*pc = CLOSE;
		else if (!has_room(s, q))
			*pc = LEAVE;
		else
			*pc = mutation == POKE_BEFORE_PUSH ? PUSH_LATE : mutation == CLOSED_BEFORE_PUSH && s->left[q] == 1 ? CLOSE_FIRST : PUSH;
		if (*pc == PUSH && (setting & GATE))
			*pc = MARK;
		say("review: %s", *pc == CLOSE ? "NEVER" : *pc == LEAVE ? "WAIT for room" : "READY");
		return true;
	case MARK: case MARK_LATE:
		if (*pc == MARK)
			s->due_fence[q] = (uint8_t)choose(2);
		if (*pc == MARK_LATE || mutation != MARKS_AFTER_PUSH)
			s->mark |= s->due_fence[q];     /* order: mark rmw relaxed, argued */
		if (*pc == MARK_LATE)
			s->due_fence[q] = 0;
		say("%s", s->mark ? "the receiver is marked" : "no fence, no mark");
		*pc = *pc == MARK ? PUSH : POKE;
		return true;
	case PUSH_LATE:
		poke(s, RECEIVER);
		*pc = PUSH;
		return true;
	case CLOSE_FIRST:
		s->closed[q] = 1;
		*pc = PUSH;
		say("closes before its last push");
		return true;
	case PUSH: case EVICTED:
		return push(s, q);
	case POKE:
		*pc = poke(s, RECEIVER) && mutation != NO_TAKE_BACK ? TAKE_BACK : AGAIN;
		return true;
	case TAKE_BACK:                                         /* the receiver is DONE: no other thread touches this queue any more */
		if (counted())
			s->lost[q] = (uint8_t)(s->lost[q] + s->in[q] + s->fronts[q]);
		say("takes back %d messages", s->in[q] + s->fronts[q]);
		memset(s->inbox[q], 0, ROOM);
		memset(s->front[q], 0, ROOM);
		s->in[q] = s->fronts[q] = 0;
		*pc = AGAIN;
		return true;
	case CLOSE:
		s->closed[q] = 1;
		*pc = POKE_CLOSED;
		say("closes");
		return true;
	case POKE_CLOSED:
		poke(s, RECEIVER);
		*pc = RETIRE;
		return true;
	case RETIRE:
		s->word[q] = DONE;                              /* it has no input to drop; M1 models the CAS of S5 */
		*pc = IDLE;
		say("DONE");
		return true;
	case LEAVE:
		*pc = s->word[q] == RUNNING ? IDLE : AGAIN;
		if (*pc == IDLE)
			s->word[q] = 0;
		say(*pc == IDLE ? "leaves: IDLE" : "was poked");
		return true;
	}
	return false;
}

/* --- the receiver --- */
enum { R_IDLE, R_CLOSED, R_COUNT_A, R_COUNT_B, R_DECIDE, R_CLOSED_LATE, R_FRONT, R_MOVE_LATE, R_MARK, R_CONTENT, R_TOP_UP, R_TAKE, R_POKE, R_AGAIN, R_LEAVE,
       R_DROP, R_DONE, R_POKE_DONE };

static bool all_closed(const struct state *s) { return s->seen_closed == (queues() == 2 ? 3 : 1); }

static bool enough(const struct state *s)
{
	int sum = 0, with = 0;

	for (int q = 0; q < queues(); q++) {
		sum += s->seen[q];
		with += s->seen[q] > 0;
	}
	if (setting & JOIN)
		return with == 2;
	return sum >= least() || ((setting & FLUSH) && all_closed(s) && sum);
}

/* Can it become enough? A joined port has one sender per queue, the other kind one count over all queues. */
static bool hopeless(const struct state *s)
{
	if (setting & JOIN)
		return ((s->seen_closed & 1) && !s->seen[0]) || ((s->seen_closed & 2) && !s->seen[1]);
	return all_closed(s);
}

static void look_at_closed(struct state *s)
{
	s->seen_closed = (uint8_t)(s->closed[0] | s->closed[1] << 1);
	say("sees closed = %d", s->seen_closed);
}

static void to_front(struct state *s, int q)
{
	add(s->front[q], &s->fronts[q], shift(s->inbox[q], &s->in[q]));
	s->last = (uint8_t)q;
	say("front <- queue %c ", 'A' + q);
}

/* Closes the front, one queue's critical section per step. Returns true when it is closed. */
static bool close_front(struct state *s)
{
	if ((setting & ALL) || (setting & JOIN)) {              /* queue after queue, everything or one of each */
		if (s->at == queues())
			return true;
		int q = s->at++;
		for (int k = 0; s->in[q] && k < ((setting & JOIN) ? 1 : ROOM); k++)
			to_front(s, q);
		return false;
	}
	for (int k = 1; k <= 2 && fronts(s) < take(); k++) {
		int q = mutation == NO_TURNS ? k - 1 : (s->last + k) % 2;
		if (!s->in[q])
			continue;
		if (mutation == FRONT_UNLOCKED) {
			s->marked = (uint8_t)(q + 1);
			s->due_push = s->inbox[q][0];           /* chosen now, moved one step later */
			s->pc[RECEIVER] = R_MOVE_LATE;
			say("decides to move the oldest of queue %c", 'A' + q);
		} else
			to_front(s, q);
		return false;
	}
	return true;
}

static int unfinished(const struct state *s, int q)
{
	int most = 0;

	for (int i = 0; i < s->fronts[q]; i++)
		most = s->front[q][i] % 4 > most ? s->front[q][i] % 4 : most;
	if (mutation == NO_FRONT && s->in[q])
		most = s->inbox[q][0] % 4;
	return most;
}

static void arm(struct state *s)
{
	s->armed = 1;
	for (int q = 0; q < NQ; q++)
		s->armed_at[q] = (uint8_t)unfinished(s, q);
	say("fences pending: arms");
}

static void receive(struct state *s, int q, uint8_t message)
{
	if (message % 4)
		fail("compute receives a message whose fence is not complete");
	if (!counted())
		return;
	if (message / 4 <= s->newest[q])
		fail("compute receives message %d of %c after message %d", message / 4, 'A' + q, s->newest[q]);
	if (!(setting & POP) && message / 4 != s->newest[q] + 1)
		fail("message %d of %c is lost", s->newest[q] + 1, 'A' + q);
	s->newest[q] = message / 4;
	s->got[q]++;
}

/* The tick takes the front of one queue, which frees its room. */
static void take_front(struct state *s, int q)
{
	say("tick: takes %d of queue %c", s->fronts[q], 'A' + q);
	while (s->fronts[q]) {
		uint8_t message = shift(s->front[q], &s->fronts[q]);
		if (mutation == NEWEST_FROM_INBOX && s->in[q]) {        /* "the latest" read as the newest first */
			uint8_t other = s->inbox[q][s->in[q] - 1];
			s->inbox[q][s->in[q] - 1] = message;
			message = other;
		}
		receive(s, q, message);
	}
	s->b_served |= q == 1;
}

static void after_content(struct state *s)
{
	s->at = 0;
	s->armed = s->armed_at[0] = s->armed_at[1] = 0;
	s->pc[RECEIVER] = mutation == TOPPED_UP ? R_TOP_UP : R_TAKE;
	say("READY");
}

static int never(void) { return mutation == POKES_BEFORE_DONE ? R_POKE_DONE : R_DROP; }

static bool receiver(struct state *s)
{
	uint8_t *pc = &s->pc[RECEIVER], *word = &s->word[RECEIVER];
	int q = s->at;

	switch (*pc) {
	case R_IDLE:
		if (*word != POKED)
			return false;
		/* fall through */
	case R_AGAIN:
		*word = RUNNING;
		*pc = mutation == CLOSED_AFTER_COUNT ? R_COUNT_A : R_CLOSED;
		s->at = 0;
		say("-> RUNNING");
		return true;
	case R_CLOSED:
		if (((setting & LIMIT) && s->ticks) || ((setting & QUITS) && choose(2))) {
			*pc = (uint8_t)never();
			say("NEVER: its count is reached, or it was told so");
			return true;
		}
		look_at_closed(s);
		if (mutation == MARK_READ_EARLY)
			s->saw_mark = s->mark;
		*pc = R_COUNT_A;
		return true;
	case R_COUNT_A: case R_COUNT_B: {
		int k = *pc - R_COUNT_A;
		s->seen[k] = (uint8_t)(s->in[k] + s->fronts[k]);
		say("sees %d in queue %c", s->seen[k], 'A' + k);
		*pc = *pc == R_COUNT_A && queues() == 2 ? R_COUNT_B : mutation == CLOSED_AFTER_COUNT ? R_CLOSED_LATE : R_DECIDE;
		return true;
	}
	case R_CLOSED_LATE:
		look_at_closed(s);
		/* fall through */
	case R_DECIDE:
		if (!enough(s)) {
			*pc = (uint8_t)(hopeless(s) ? never() : R_LEAVE);
			say(hopeless(s) ? "too few: NEVER" : "too few: WAIT");
			return true;
		}
		*pc = !fronts(s) && mutation != NO_FRONT ? R_FRONT : (setting & GATE) ? R_MARK : R_CONTENT;
		say("enough");
		return true;
	case R_MOVE_LATE: {                                     /* mutant: what it chose may be evicted by now */
		int k = s->marked - 1;
		uint8_t message = s->due_push;
		if (s->in[k] && s->inbox[k][0] == message)
			shift(s->inbox[k], &s->in[k]);
		add(s->front[k], &s->fronts[k], message);
		s->last = (uint8_t)k;
		s->marked = s->due_push = 0;
		*pc = R_FRONT;
		say("moves it");
		return true;
	}
	case R_FRONT: {
		if (!close_front(s))
			return true;
		int saw = s->seen[0] + s->seen[1];
		if (fronts(s) < (saw < take() ? saw : take()) && !(setting & JOIN))
			fail("the gathering conditions saw %d messages, the front got %d", saw, fronts(s));
		s->at = 0;
		*pc = (setting & GATE) ? R_MARK : R_CONTENT;
		say("the front is closed: %d", fronts(s));
		return true;
	}
	case R_MARK: /* order: mark load relaxed, argued */
		if (mutation != MARK_READ_EARLY)
			s->saw_mark = s->mark;
		*pc = R_CONTENT;
		say(s->saw_mark ? "the mark is there" : "no mark: asks no gate");
		return true;
	case R_CONTENT:
		s->seen[0] = s->seen[1] = s->seen_closed = 0;
		if ((!(setting & GATE) || s->saw_mark) && (unfinished(s, 0) || unfinished(s, 1))) {
			arm(s);
			*pc = R_LEAVE;
			return true;
		}
		if (mutation == NO_FRONT)
			for (int k = 0; k < NQ; k++)
				if (s->in[k])
					to_front(s, k);
		after_content(s);
		return true;
	case R_TOP_UP:
		if (close_front(s)) {
			s->at = 0;
			*pc = R_TAKE;
			say("the front is filled up");
		}
		return true;
	case R_TAKE:
		if (s->at == NQ) {
			s->ticks |= 1;
			s->at = 0;
			*pc = R_AGAIN;
			say("ticked");
			return true;
		}
		if (!s->fronts[q]) {
			s->at++;
			say("nothing of queue %c", 'A' + q);
			return true;
		}
		if (mutation == POKE_BEFORE_FREE && !s->marked) {
			s->marked = 1;
			poke(s, q);
			return true;
		}
		s->marked = 0;
		take_front(s, q);
		*pc = R_POKE;
		if (mutation == TICK_POKES_NOBODY || mutation == POKE_BEFORE_FREE) {
			*pc = R_TAKE;
			s->at++;
		}
		return true;
	case R_POKE:
		poke(s, q);
		s->at++;
		*pc = R_TAKE;
		return true;
	case R_LEAVE:
		*pc = *word == RUNNING ? R_IDLE : R_AGAIN;
		if (*pc == R_IDLE)
			*word = 0;
		s->at = s->seen[0] = s->seen[1] = s->seen_closed = 0;
		say(*pc == R_IDLE ? "leaves: IDLE" : "was poked");
		return true;
	case R_DROP:                                            /* S5: inbox and front of each queue, counted */
		if (s->at == queues()) {
			*pc = R_DONE;
			s->at = 0;
			say("dropped all");
			return true;
		}
		if (counted())
			s->lost[q] = (uint8_t)(s->lost[q] + s->in[q] + (mutation == DROPS_ONLY_INBOX ? 0 : s->fronts[q]));
		say("drops %d messages of %c", s->in[q] + s->fronts[q], 'A' + q);
		memset(s->inbox[q], 0, ROOM);
		s->in[q] = 0;
		if (mutation != DROPS_ONLY_INBOX) {
			memset(s->front[q], 0, ROOM);
			s->fronts[q] = 0;
		}
		s->at++;
		return true;
	case R_DONE:
		if (*word != RUNNING && mutation != DONE_BLINDLY) {
			*word = RUNNING;
			*pc = R_DROP;
			say("was poked: drops again");
			return true;
		}
		*word = DONE;
		s->at = s->seen[0] = s->seen[1] = s->seen_closed = s->armed = s->armed_at[0] = s->armed_at[1] = 0;
		*pc = mutation == POKES_BEFORE_DONE ? R_IDLE : R_POKE_DONE;
		say("DONE");
		return true;
	case R_POKE_DONE:
		if (s->at == queues()) {
			s->at = 0;
			*pc = mutation == POKES_BEFORE_DONE ? R_DROP : R_IDLE;
			say("all neighbours know");
			return true;
		}
		poke(s, s->at++);
		return true;
	}
	return false;
}

/* --- the device --- */
static void one_less(uint8_t *list, int n)
{
	for (int i = 0; i < n; i++)
		list[i] -= list[i] % 4 > 0;
}

static bool stream(struct state *s, int q)
{
	if (!s->unfinished[q])
		return false;
	s->unfinished[q]--;
	one_less(s->inbox[q], s->in[q]);
	one_less(s->front[q], s->fronts[q]);
	s->armed_at[q] -= s->armed_at[q] > 0;
	if (s->due_push && s->marked == q + 1)
		one_less(&s->due_push, 1);
	say("completes its oldest fence");
	return true;
}

static bool signals(struct state *s)
{
	if (s->signal_poke) {
		s->signal_poke = 0;
		poke(s, RECEIVER);
		return true;
	}
	if (!s->armed || s->armed_at[0] || s->armed_at[1])
		return false;
	s->armed = 0;
	s->signal_poke = 1;
	say("fires");
	return true;
}

static void begin(struct state *s)
{
	for (int e = 0; e < 3; e++)
		s->word[e] = POKED;
	s->left[0] = (setting & MORE) ? 4 : (setting & (BOTH | JOIN)) ? 2 : 3;
	s->left[1] = (setting & (BOTH | JOIN)) ? 2 : 1;
	if (endless(0))
		s->left[0] = 0;
	if (queues() == 1) {
		s->left[1] = 0;
		s->word[1] = DONE;
	}
	s->last = 1;
}

static bool step(struct state *s, int t)
{
	return t == RECEIVER ? receiver(s) : t == SIGNAL ? signals(s) : t > RECEIVER ? stream(s, t - STREAM_A) : sender(s, t);
}

static void check(const struct state *s)
{
	for (int q = 0; q < NQ; q++)
		if (s->in[q] + s->fronts[q] > capacity() + !!(setting & POP) || s->fronts[q] > capacity())
			fail("queue %c holds %d + %d, its capacity is %d", 'A' + q, s->in[q], s->fronts[q], capacity());
}

static void at_end(const struct state *s)
{
	for (int e = 0; e < 3; e++)
		if (!done(s, e))
			fail("%s waits for ever", thread_name(e));
	for (int q = 0; q < NQ; q++) {
		if (s->in[q] + s->fronts[q])
			fail("%d messages of %c are left behind a DONE receiver", s->in[q] + s->fronts[q], 'A' + q);
		if (counted() && s->sent[q] != s->got[q] + s->dropped[q] + s->lost[q])
			fail("E5: %c pushed %d, %d delivered + %d dropped + %d closed", 'A' + q, s->sent[q], s->got[q], s->dropped[q], s->lost[q]);
		if (s->lost[q] && !(setting & (LIMIT | QUITS | JOIN)) && (!(setting & MIN2) || (setting & FLUSH)))
			fail("%d messages of %c were dropped as closed though they could be delivered", s->lost[q], 'A' + q);
	}
}

static const struct run runs[] = {
	{"block, capacity 1", NONE, MORE, HOLDS},
	{"block, capacity 2, take 2", NONE, CAP2 | TAKE2 | MORE, HOLDS},
	{"block, capacity 2, fences, take all", NONE, CAP2 | ALL | FENCES | MORE, HOLDS},
	{"block, capacity 2, take 2, at least 2, an odd rest is closed", NONE, CAP2 | TAKE2 | MIN2, HOLDS},
	{"block, capacity 2, take 2, at least 2, flushes the rest", NONE, CAP2 | TAKE2 | MIN2 | FLUSH, HOLDS},
	{"block, receiver DONE after 1 tick, capacity 2, fences", NONE, CAP2 | LIMIT | FENCES, HOLDS},
	{"block, two connections, capacity 1, fences", NONE, BOTH | FENCES, HOLDS},
	{"block, two connections, capacity 2, take 2, fences", NONE, BOTH | CAP2 | TAKE2 | FENCES, HOLDS},
	{"block, two connections, capacity 1, take all, fences", NONE, BOTH | ALL | FENCES, HOLDS},
	{"block, two connections, receiver DONE after 1 tick", NONE, BOTH | CAP2 | LIMIT, HOLDS},
	{"block, receiver DONE at any review, also with a front, capacity 2", NONE, CAP2 | TAKE2 | QUITS | FENCES, HOLDS},
	{"block, two connections, receiver DONE at any review", NONE, BOTH | QUITS | FENCES, HOLDS},
	{"block, any-size port (a list per connection), fences", NONE, JOIN | FENCES, HOLDS},
	{"block, A sends for ever, B is served in its turn", NONE, STARVE_B, HOLDS},
	{"pop, capacity 1, fences", NONE, POP | FENCES | MORE, HOLDS},
	{"pop, capacity 2, take 2, fences", NONE, POP | CAP2 | TAKE2 | FENCES | MORE, HOLDS},
	{"pop, capacity 2, take all, fences", NONE, POP | CAP2 | ALL | FENCES | MORE, HOLDS},
	{"pop, two connections, capacity 1, fences", NONE, POP | BOTH | FENCES, HOLDS},
	{"pop, two connections, receiver DONE after 1 tick", NONE, POP | BOTH | LIMIT | FENCES, HOLDS},
	{"pop, receiver DONE at any review, also with a front, capacity 2", NONE, POP | CAP2 | TAKE2 | QUITS | FENCES, HOLDS},
	{"pop, two connections, receiver DONE at any review", NONE, POP | BOTH | QUITS | FENCES, HOLDS},
	{"pop, evictions for ever do not starve the front", NONE, POP | FENCES | STARVE_FRONT, HOLDS},
	{"pop, evictions for ever do not starve the front, capacity 2, take 2", NONE, POP | CAP2 | TAKE2 | FENCES | STARVE_FRONT, HOLDS},
	{"block, capacity 2, gate", NONE, CAP2 | GATE | FENCES | MORE, HOLDS},
	{"block, two connections, capacity 1, gate", NONE, BOTH | GATE | FENCES, HOLDS},
	{"pop, capacity 2, take all, gate", NONE, POP | CAP2 | ALL | GATE | FENCES | MORE, HOLDS},
	{"REFUSED AT LOAD at least 2, one connection of capacity 1", NONE, TAKE2 | MIN2, BREAKS},
	{"REFUSED AT LOAD at least 2, two connections of capacity 1", NONE, BOTH | MORE | TAKE2 | MIN2, BREAKS},
	{"MUTANT room is freed by looking", ROOM_BY_LOOKING, MORE, BREAKS},
	{"MUTANT room is poked for before it is freed", POKE_BEFORE_FREE, MORE, BREAKS},
	{"MUTANT READY of the front, compute receives the newest of the inbox", NEWEST_FROM_INBOX, POP | CAP2 | FENCES, BREAKS},
	{"MUTANT the front is filled up after the content was asked", TOPPED_UP, CAP2 | TAKE2 | FENCES | MORE, BREAKS},
	{"MUTANT closed is read after the count", CLOSED_AFTER_COUNT, 0, BREAKS},
	{"MUTANT closed is stored before the last push", CLOSED_BEFORE_PUSH, 0, BREAKS},
	{"MUTANT the sender pokes before it pushes", POKE_BEFORE_PUSH, 0, BREAKS},
	{"MUTANT the tick frees room and pokes nobody", TICK_POKES_NOBODY, 0, BREAKS},
	{"MUTANT always begins with the first queue: starves the second", NO_TURNS, STARVE_B, BREAKS},
	{"MUTANT no front in a pop queue: evictions starve what is waited for", NO_FRONT, POP | FENCES | STARVE_FRONT, BREAKS},
	{"MUTANT evict and push are two critical sections", TWO_SECTIONS, POP, BREAKS},
	{"MUTANT evict and push are two critical sections, fences, capacity 2", TWO_SECTIONS, POP | CAP2 | TAKE2 | FENCES | MORE, BREAKS},
	{"MUTANT the front of a pop queue is closed without its lock", FRONT_UNLOCKED, POP | MORE, BREAKS},
	{"MUTANT a full pop queue evicts from its front", EVICTS_FRONT, POP | FENCES | STARVE_FRONT, BREAKS},
	{"MUTANT DONE: the sender does not take back what it pushed", NO_TAKE_BACK, LIMIT | CAP2, BREAKS},
	{"MUTANT DONE: left by a store instead of a CAS", DONE_BLINDLY, LIMIT | CAP2, BREAKS},
	{"AS WRITTEN DONE: pokes its neighbours, then drops and becomes DONE", POKES_BEFORE_DONE, LIMIT | MORE, BREAKS},
	{"MUTANT DONE: only the inbox is dropped, not the front", DROPS_ONLY_INBOX, FENCES | QUITS, BREAKS},
	{"MUTANT the sender marks after its push", MARKS_AFTER_PUSH, GATE | FENCES, BREAKS},
	{"MUTANT the mark is read before the front is closed", MARK_READ_EARLY, GATE | FENCES, BREAKS},
	{"DONE: a sender that looks at room only and takes back what it finds DONE", ROOM_IGNORES_DONE, LIMIT | MORE, HOLDS},
	{0}
};

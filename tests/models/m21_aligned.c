/*
 * M21: a review that drops messages without a partner, beside senders that push and wait for room (C12, S2, S3, S5).
 *
 * Two senders, a queue of each, one receiver whose tick takes a message of each queue if their keys are equal. The
 * keys of a sender ascend, each by 1 or 2. A head that is less than the other one is dropped: the head moves, then its sender
 * is poked. A sender without room parks.
 * Properties: all end; a message is dropped only if no partner is there or will come; nothing that has a partner
 * is left when the receiver ends; E5.
 * Run: build/m21_aligned [-v]
 */
#include <stdint.h>
#define THREADS 3
enum { LEFT, RIGHT, RECEIVER };
enum { ONE_PLACE, TWO_PLACES };
enum { PUSHES = 3, ROOM = 2 };
enum { POKED = 1, RUNNING = 2 };
enum mutation { NONE, NO_POKE, POKE_FIRST, DROPPED_EARLY, CLOSED_LAST, NO_POKE_OF_TAKE };
enum at { REST, CLOSED, COUNTS, DECIDE, MOVED, TOLD, LEAVE, DONE };
struct queue {
	uint8_t keys[ROOM], count, last, pushes, closed;
	uint8_t seen, seen_closed, pushed, taken, dropped;
};
struct state {
	struct queue queues[2];
	uint8_t word[THREADS], at[THREADS], port, moves, poked_first; /* moves: bits of the queues whose senders are to be poked */
};
#define THREAD_NAMES
#include "explore.h"

static const char *thread_name(int t)
{
	static const char *names[] = {"left", "right", "receiver"};
	return names[t];
}

static int capacity(void)
{
	return setting == TWO_PLACES ? 2 : 1;
}

static void begin(struct state *s)
{
	for (int i = 0; i < 2; i++)
		s->queues[i].pushes = (uint8_t)choose(PUSHES + 1);
	s->word[LEFT] = s->word[RIGHT] = s->word[RECEIVER] = POKED;
}

static bool sender(struct state *s, int t)
{
	struct queue *queue = &s->queues[t];

	switch ((enum at)s->at[t]) {
	case REST:
		if (s->word[t] != POKED)
			return false;
		s->word[t] = RUNNING;
		s->at[t] = CLOSED;
		return true;
	case CLOSED:
		if (!queue->pushes) {
			queue->closed = 1;
			s->at[t] = MOVED;
			say("closes");
		} else if (queue->count == capacity()) {
			s->at[t] = LEAVE;
			say("finds no room");
		} else {
			queue->last += 1 + choose(2);
			queue->keys[queue->count++] = queue->last;
			queue->pushes--;
			queue->pushed++;
			s->at[t] = TOLD;
			say("pushes %d", queue->last);
		}
		return true;
	case TOLD:
		s->word[RECEIVER] |= POKED;
		s->at[t] = CLOSED;
		return true;
	case MOVED:
		s->word[RECEIVER] |= POKED;
		s->at[t] = DONE;
		return true;
	case LEAVE:
		s->at[t] = s->word[t] == RUNNING ? REST : CLOSED;
		s->word[t] = s->at[t] == REST ? 0 : RUNNING;
		say(s->at[t] == REST ? "parks" : "was poked meanwhile");
		return true;
	default:
		return false;
	}
}

static void move_head(struct queue *queue)
{
	for (int i = 1; i < queue->count; i++)
		queue->keys[i - 1] = queue->keys[i];
	queue->keys[--queue->count] = 0;
}

static bool may_come(const struct queue *queue, uint8_t key)
{
	for (int i = 0; i < queue->count; i++)
		if (queue->keys[i] == key)
			return true;
	return queue->pushes && queue->last < key;
}

static void drop(struct state *s, int i)
{
	uint8_t key = s->queues[i].keys[0];

	if (may_come(&s->queues[!i], key))
		fail("%d is dropped, and a partner may come", key);
	move_head(&s->queues[i]);
	s->queues[i].seen--;
	s->queues[i].dropped++;
	s->moves |= (uint8_t)(1 << i);
	say("drops %d", key);
}

static void poke_sender(struct state *s, int i)
{
	s->word[i] |= POKED;
	s->moves &= (uint8_t)~(1 << i);
}

/* One drop, or a tick, or neither. */
static void decide(struct state *s)
{
	struct queue *left = &s->queues[LEFT], *right = &s->queues[RIGHT];
	int lesser = left->keys[0] < right->keys[0] ? LEFT : RIGHT;

	s->at[RECEIVER] = MOVED;
	if (left->seen && right->seen && left->keys[0] != right->keys[0]) {
		if (mutation == POKE_FIRST && !s->poked_first) {
			s->poked_first = 1;
			poke_sender(s, lesser);
			s->at[RECEIVER] = DECIDE;
			return;
		}
		s->poked_first = 0;
		drop(s, lesser);
		if (mutation == NO_POKE || mutation == POKE_FIRST)
			s->moves = 0;
	} else if (mutation == DROPPED_EARLY && left->seen && !right->seen && left->keys[0] > right->last) {
		drop(s, LEFT);
	} else if (left->seen && right->seen) {
		move_head(left);
		move_head(right);
		left->taken++;
		right->taken++;
		s->moves = 3;
		say("a tick takes both");
	} else if ((!left->seen && left->seen_closed) || (!right->seen && right->seen_closed)) {
		for (int i = 0; i < left->count; i++)
			if (may_come(right, left->keys[i]))
				fail("it ends, and %d has a partner", left->keys[i]);
		s->at[RECEIVER] = DONE;
		left->count = right->count = 0;
		s->moves = 3;
		say("NEVER");
	} else {
		s->at[RECEIVER] = LEAVE;
	}
}

static bool receiver(struct state *s)
{
	struct queue *queue = &s->queues[s->port];

	switch ((enum at)s->at[RECEIVER]) {
	case REST:
		if (s->word[RECEIVER] != POKED)
			return false;
		s->word[RECEIVER] = RUNNING;
		s->at[RECEIVER] = CLOSED;
		s->port = LEFT;
		return true;
	case CLOSED: /* before the count */
		if (mutation == CLOSED_LAST)
			queue->seen = queue->count;
		else
			queue->seen_closed = queue->closed;
		s->at[RECEIVER] = COUNTS;
		return true;
	case COUNTS:
		if (mutation == CLOSED_LAST)
			queue->seen_closed = queue->closed;
		else
			queue->seen = queue->count;
		s->at[RECEIVER] = s->port == LEFT ? CLOSED : DECIDE;
		s->port = s->port == LEFT ? RIGHT : LEFT;
		return true;
	case DECIDE:
		decide(s);
		return true;
	case MOVED: /* the room is free; now the senders */
		if (s->moves && mutation != NO_POKE_OF_TAKE)
			poke_sender(s, s->moves & 1 ? LEFT : RIGHT);
		else
			s->moves = 0;
		if (!s->moves)
			s->at[RECEIVER] = CLOSED;
		return true;
	case LEAVE:
		s->at[RECEIVER] = s->word[RECEIVER] == RUNNING ? REST : CLOSED;
		s->word[RECEIVER] = s->at[RECEIVER] == REST ? 0 : RUNNING;
		return true;
	default:
		return false;
	}
}

static bool step(struct state *s, int t)
{
	return t == RECEIVER ? receiver(s) : sender(s, t);
}

static void check(const struct state *s)
{
	(void)s;
}

static void at_end(const struct state *s)
{
	if (s->at[RECEIVER] != DONE)
		fail("the receiver hangs");
	for (int i = 0; i < 2; i++)
		if (s->queues[i].taken + s->queues[i].dropped > s->queues[i].pushed)
			fail("more is taken than was pushed");
}

static const struct run runs[] = {
	{"rules: one place", NONE, ONE_PLACE, HOLDS},
	{"rules: two places", NONE, TWO_PLACES, HOLDS},
	{"MUTANT a dropped front does not poke its sender", NO_POKE, ONE_PLACE, BREAKS},
	{"MUTANT its sender is poked before the head moves", POKE_FIRST, ONE_PLACE, BREAKS},
	{"MUTANT a partner dropped too early", DROPPED_EARLY, TWO_PLACES, BREAKS},
	{"MUTANT a sender is seen closed after its queue was looked at", CLOSED_LAST, TWO_PLACES, BREAKS},
	{"MUTANT a tick pokes no sender", NO_POKE_OF_TAKE, ONE_PLACE, BREAKS},
	{0},
};

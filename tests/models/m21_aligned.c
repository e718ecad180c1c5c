/*
 * M21: a review that drops messages without a partner, beside senders that push and wait for room (C12, S2, S3, S5).
 *
 * Two senders, a queue of each, one receiver whose tick takes a message of each queue if their keys are equal. The
 * keys of a sender ascend, each by 1 or 2. A head that is less than the other one is dropped: the head moves, then its sender
 * is poked. A sender without room parks.
 *
 * With reuse a tick takes the lesser head alone once the other queue's next key is known to be greater, or its sender
 * is closed and it is empty; it is shown what the other queue gave last, if that is not older than AGE. The receiver keeps
 * what each queue gave last, with a reference of its own, until the queue gives another one, a set finds it too old, or
 * the receiver ends. Each sender has a pool of as many blocks as its queue has places, and one for what is kept.
 * Properties: all end; a message is dropped, or a set lacks one, only if no partner is there or will come; nothing that
 * has a partner is left when the receiver ends; a tick without a message of a queue has none that it could show; what a tick
 * is shown is alive; each message is given back once; what is kept grows younger only; E5.
 * Run: build/m21_aligned [-v]
 */
#include <stdint.h>
#define THREADS 3
enum { LEFT, RIGHT, RECEIVER };
enum { ONE_PLACE, TWO_PLACES, REUSE, REUSE_TWO };
enum { PUSHES = 3, ROOM = 2, KEYS = 2 * PUSHES + 1, AGE = 2 };
enum { POKED = 1, RUNNING = 2 };
enum mutation { NONE, NO_POKE, POKE_FIRST, DROPPED_EARLY, CLOSED_LAST, NO_POKE_OF_TAKE,
		KEPT_UNOWNED, KEPT_LOST, AGE_REVERSED, HOLDS_OPEN, SMALL_POOL };
enum at { REST, CLOSED, COUNTS, DECIDE, GIVE_BACK, COMPUTE, MOVED, TOLD, LEAVE, DONE };
struct queue {
	uint8_t keys[ROOM], count, last, pushes, closed;
	uint8_t seen, seen_closed, pushed, taken, dropped;
	/* reuse: references by key; keys: the last seen, what is kept, what was, what the tick is shown; 0: none */
	uint8_t references[KEYS], known, kept, before, shown;
};
struct state {
	struct queue queues[2];
	uint8_t word[THREADS], at[THREADS], port, moves, poked_first; /* moves: bits of the queues whose senders are to be poked */
	uint8_t key; /* of the set of the tick; 0: none */
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
	return setting == TWO_PLACES || setting == REUSE_TWO ? 2 : 1;
}

static bool reuses(void)
{
	return setting >= REUSE;
}

static bool has_block(const struct queue *queue)
{
	int alive = 0;

	for (int key = 0; key < KEYS; key++)
		alive += queue->references[key] > 0;
	return !reuses() || alive < capacity() + (mutation != SMALL_POOL);
}

static void give_back(struct queue *queue, uint8_t key)
{
	if (key && !queue->references[key]--)
		fail("%d is given back twice", key);
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
		} else if (!has_block(queue)) {
			s->at[t] = LEAVE;
			say("finds no block");
		} else {
			queue->last += 1 + choose(2);
			queue->references[queue->last] += reuses();
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

/* The set has the head of the queue, or what the queue gave last. */
static void show(struct queue *queue, uint8_t key, bool in)
{
	bool young = mutation == AGE_REVERSED ? key - queue->kept > AGE : key - queue->kept <= AGE;

	queue->before = queue->kept;
	if (in) {
		queue->kept = queue->shown = key;
		queue->references[key] += mutation != KEPT_UNOWNED;
		queue->taken++;
		queue->seen--;
		move_head(queue);
	} else if (queue->kept && young) {
		queue->shown = queue->kept;
		queue->references[queue->kept]++;
		queue->before = 0;
	} else {
		queue->kept = 0;
	}
	if (queue->kept && queue->before > queue->kept)
		fail("%d is kept after %d", queue->kept, queue->before);
}

static void end_reuse(struct state *s)
{
	s->at[RECEIVER] = DONE;
	for (int i = 0; mutation != KEPT_LOST && i < 2; i++) {
		give_back(&s->queues[i], s->queues[i].kept);
		s->queues[i].kept = 0;
	}
	say("NEVER");
}

/* A tick for the lesser head, with the other one if they are equal; or it waits for that one, or ends. */
static void decide_reuse(struct state *s)
{
	struct queue *left = &s->queues[LEFT], *right = &s->queues[RIGHT];
	struct queue *first = left->seen && (!right->seen || left->keys[0] <= right->keys[0]) ? left : right;
	struct queue *other = first == left ? right : left;
	uint8_t key = first->keys[0];
	bool both = other->seen && other->keys[0] == key;

	s->at[RECEIVER] = LEAVE;
	if (!first->seen) {
		if (left->seen_closed && right->seen_closed && !(mutation == HOLDS_OPEN && (left->kept || right->kept)))
			end_reuse(s);
		return;
	}
	if (!other->seen && !other->seen_closed && other->known <= key)
		return;
	if (!both && may_come(other, key))
		fail("a set has %d alone, and a partner may come", key);
	show(first, key, true);
	show(other, key, both);
	s->key = key;
	s->moves = both ? 3 : (uint8_t)(1 << (first == right));
	s->at[RECEIVER] = GIVE_BACK;
	say("a set of %d: %d and %d", key, left->shown, right->shown);
}

static void compute(struct state *s)
{
	for (int i = 0; i < 2; i++) {
		struct queue *queue = &s->queues[i];
		if (queue->shown && !queue->references[queue->shown])
			fail("%d is shown, and was given back", queue->shown);
		if (queue->shown && s->key - queue->shown > AGE)
			fail("%d is shown at %d", queue->shown, s->key);
		if (!queue->shown && queue->before && s->key - queue->before <= AGE)
			fail("%d is not shown at %d", queue->before, s->key);
		give_back(queue, queue->shown);
		queue->shown = queue->before = 0;
	}
	s->key = 0;
	s->at[RECEIVER] = CLOSED;
	say("computes");
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
		if (queue->seen)
			queue->known = queue->keys[queue->seen - 1];
		s->at[RECEIVER] = s->port == LEFT ? CLOSED : DECIDE;
		s->port = s->port == LEFT ? RIGHT : LEFT;
		return true;
	case DECIDE:
		if (reuses())
			decide_reuse(s);
		else
			decide(s);
		return true;
	case GIVE_BACK: /* the room is free; now the block, then the senders */
		give_back(&s->queues[LEFT], s->queues[LEFT].before);
		give_back(&s->queues[RIGHT], s->queues[RIGHT].before);
		s->moves |= (uint8_t)((s->queues[LEFT].before > 0) | (s->queues[RIGHT].before > 0) << 1);
		s->at[RECEIVER] = MOVED;
		return true;
	case COMPUTE:
		compute(s);
		return true;
	case MOVED: /* the room is free; now the senders */
		if (s->moves && mutation != NO_POKE_OF_TAKE)
			poke_sender(s, s->moves & 1 ? LEFT : RIGHT);
		else
			s->moves = 0;
		if (!s->moves)
			s->at[RECEIVER] = s->key ? COMPUTE : CLOSED;
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
	for (int i = 0; i < 2; i++)
		for (int key = 0; key < KEYS; key++)
			if (s->queues[i].references[key])
				fail("%d is never given back", key);
}

static const struct run runs[] = {
	{"rules: one place", NONE, ONE_PLACE, HOLDS},
	{"rules: two places", NONE, TWO_PLACES, HOLDS},
	{"MUTANT a dropped front does not poke its sender", NO_POKE, ONE_PLACE, BREAKS},
	{"MUTANT its sender is poked before the head moves", POKE_FIRST, ONE_PLACE, BREAKS},
	{"MUTANT a partner dropped too early", DROPPED_EARLY, TWO_PLACES, BREAKS},
	{"MUTANT a sender is seen closed after its queue was looked at", CLOSED_LAST, TWO_PLACES, BREAKS},
	{"MUTANT a tick pokes no sender", NO_POKE_OF_TAKE, ONE_PLACE, BREAKS},
	{"reuse: one place", NONE, REUSE, HOLDS},
	{"reuse: two places", NONE, REUSE_TWO, HOLDS},
	{"MUTANT reuse: closed is read after the queue", CLOSED_LAST, REUSE, BREAKS},
	{"MUTANT what is kept has no reference of its own", KEPT_UNOWNED, REUSE, BREAKS},
	{"MUTANT what is kept is not given back at the end", KEPT_LOST, REUSE, BREAKS},
	{"MUTANT the age is compared the wrong way", AGE_REVERSED, REUSE, BREAKS},
	{"MUTANT what is kept holds the receiver open", HOLDS_OPEN, REUSE, BREAKS},
	{"MUTANT the pool has no block for what is kept", SMALL_POOL, REUSE, BREAKS},
	{0},
};

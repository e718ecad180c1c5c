/*
 * M18: an input port that shows the newest finished message again and again, and never holds its sender back (C4,
 * `latest`). Three places: `shown`, finished, what a tick receives; `next`, the oldest that waits to be shown,
 * which nothing replaces; `newest`, which each push replaces while there is a next. The owner moves messages on, newest to
 * next to shown, twice in a review at the most; a push and each move are critical sections of one lock.
 *
 * Actors: the sender, the receiver, the device, a pacer that makes a tick due (another input of the receiver). The device works on the
 * oldest message first and takes two steps for each. Without anything to show, the receiver waits for a push, or for
 * the fence of next, by a signal. FINITE: up to three pushes, then the sender closes; two ticks become due, the last one when all is
 * finished. ENDLESS: the sender pushes for ever. WAITS: both ticks are due before the first push. ALONE: the entity has no other
 * input, so it ends once the sender was seen closed and it has received the last message.
 * Properties: nothing is shown before it is finished; no tick waits for ever once something was pushed; a tick shows the last
 * message if all were finished before its review; each message is delivered once, or dropped, or left at the end; ENDLESS: the first tick comes.
 * Run: build/m18_latest [-v]
 */
#include <stdint.h>
#define THREADS 4
enum { SENDER, RECEIVER, DEVICE, PACER };
enum { FINITE, ENDLESS, WAITS, ALONE };
enum { PUSHES = 3, TICKS = 2, IDS = 5, FINISHED = 2 };
enum { POKED = 1, RUNNING = 2 };
enum mutation { NONE, ONE_PLACE, NOT_ASKED, NO_SIGNAL, NO_POKE, CLOSED_LAST, UNSEEN_FORGOTTEN, MOVED_ONCE, MOVED_ALWAYS, UNLOCKED };
enum at { REST, CLOSED, ASK, SHOW, DECIDE, LEAVE, DONE };
struct state {
	uint8_t word, at, was_closed, all_there, none, due, paced;
	uint8_t newest, next, shown, seen, moved, progress[IDS], armed, carried;
	uint8_t pushes, pushing, pokes, closed, pushed, delivered, dropped;
};
#define THREAD_NAMES
#include "explore.h"

static const char *thread_name(int t)
{
	static const char *names[] = {"sender", "receiver", "device", "pacer"};
	return names[t];
}

static void begin(struct state *s)
{
	s->word = POKED;
	s->pushes = setting != ENDLESS ? (uint8_t)choose(PUSHES + 1) : 1;
	if (setting == WAITS)
		s->due = s->paced = TICKS;
}

static bool finished(const struct state *s, uint8_t id)
{
	return s->progress[id] == FINISHED;
}

static uint8_t unused(const struct state *s)
{
	uint8_t id = 1;

	while (id == s->newest || id == s->next || id == s->shown || id == s->carried)
		id++;
	return id;
}

static bool is_all_there(const struct state *s)
{
	return s->closed && (!s->next || finished(s, s->next)) && (!s->newest || finished(s, s->newest));
}

static void drop(struct state *s, uint8_t id)
{
	if (setting != ENDLESS && id)
		s->dropped++;
}

static bool sender(struct state *s)
{
	uint8_t *place = !s->next || mutation == ONE_PLACE ? &s->next : &s->newest;

	if (s->pokes) {
		s->pokes = 0;
		if (mutation != NO_POKE)
			s->word |= POKED;
		say("pokes");
	} else if (s->pushing) {
		if (s->carried && *place == s->carried)
			fail("%d is shown, and dropped", s->carried);
		drop(s, *place);
		*place = unused(s);
		s->progress[*place] = 0;
		s->pushing = 0;
		s->pokes = 1;
		s->pushed += setting != ENDLESS;
		say("pushes %d", *place);
	} else if (s->pushes) {
		s->pushes -= setting != ENDLESS;
		s->pushing = 1;
		say("makes a message");
	} else if (!s->closed) {
		s->closed = s->pokes = 1;
		say("is closed");
	} else {
		return false;
	}
	return true;
}

static bool receiver(struct state *s)
{
	switch ((enum at)s->at) {
	case REST:
		if (s->word != POKED)
			return false;
		s->word = RUNNING;
		s->at = CLOSED;
		say("is popped");
		return true;
	case CLOSED:                                            /* before it looks at newest */
		if (mutation != CLOSED_LAST)
			s->was_closed = s->closed;
		s->all_there = is_all_there(s);
		s->moved = 0;
		s->at = ASK;
		say("sees the sender %s", s->was_closed ? "closed" : "open");
		return true;
	case ASK:
		s->none = !s->next;
		s->at = s->next && (finished(s, s->next) || mutation == NOT_ASKED) ? SHOW : DECIDE;
		say(!s->next ? "there is no more" : s->at == SHOW ? "next is finished" : "next is not finished");
		return true;
	case SHOW:
		if (mutation == UNLOCKED && !s->carried && s->newest) { /* a load and a store */
			s->carried = s->newest;
			return true;
		}
		if (!s->seen && mutation != UNSEEN_FORGOTTEN)
			drop(s, s->shown);
		s->shown = s->next;
		s->next = s->carried ? s->carried : s->newest;
		s->seen = s->newest = s->carried = 0;
		s->none = !s->next;
		s->moved = (uint8_t)((s->moved + 1) % 9);
		s->at = s->moved < (mutation == MOVED_ONCE ? 1 : mutation == MOVED_ALWAYS ? 9 : 2) ? ASK : DECIDE;
		say("shows %d, next is %d", s->shown, s->next);
		return true;
	case DECIDE:
		if (mutation == CLOSED_LAST)
			s->was_closed = s->closed;
		if (!s->shown && s->none && s->was_closed) {
			s->at = DONE;
			say("NEVER: nothing will come");
			return true;
		}
		if (setting == ALONE && s->was_closed && s->none && s->seen) {
			s->at = DONE;
			say("NEVER: it has received the last one");
			return true;
		}
		if (!s->shown && s->next && mutation != NO_SIGNAL) {
			s->armed = s->next;
			if (finished(s, s->next))
				s->word |= POKED;               /* it fires at once */
		}
		if (s->shown && s->due) {
			s->due--;
			if (!s->seen && setting != ENDLESS)
				s->delivered++;
			s->seen = 1;
			s->word |= POKED;                       /* its next review */
			if (s->all_there && (s->newest || s->next))
				fail("a tick shows %d, and a newer one was finished before its review", s->shown);
			say("a tick receives %d", s->shown);
		}
		s->at = LEAVE;
		return true;
	case LEAVE:
		s->at = s->word == RUNNING ? REST : CLOSED;
		s->word = s->at == REST ? 0 : RUNNING;
		say(s->at == REST ? "parks" : "was poked meanwhile");
		return true;
	default:
		return false;
	}
}

static bool device(struct state *s)
{
	uint8_t id = s->next && !finished(s, s->next) ? s->next : s->newest;

	if (!id || finished(s, id))
		return false;
	s->progress[id]++;
	if (finished(s, id) && s->armed == id) {
		s->armed = 0;
		s->word |= POKED;
	}
	say("works on %d%s", id, finished(s, id) ? ", which is finished" : "");
	return true;
}

/* The last tick is due when the device has finished all that was pushed. */
static bool pacer(struct state *s)
{
	bool last = setting != ENDLESS && s->paced == TICKS - 1;

	if (s->paced == (setting != ENDLESS ? TICKS : 1))
		return false;
	if (last && !is_all_there(s))
		return false;
	s->paced++;
	s->due++;
	s->word |= POKED;
	say("makes a tick due");
	return true;
}

static bool step(struct state *s, int t)
{
	if (setting == ENDLESS && s->paced && !s->due)
		return false; /* the tick has come */
	return t == SENDER ? sender(s) : t == RECEIVER ? receiver(s) : t == DEVICE ? device(s) : pacer(s);
}

static void check(const struct state *s)
{
	if (s->shown && !finished(s, s->shown))
		fail("a message is shown that is not finished");
}

static void at_end(const struct state *s)
{
	int left = (s->newest != 0) + (s->next != 0) + (s->shown && !s->seen);

	if (setting == ENDLESS)
		return;
	if (s->at != REST && s->at != DONE)
		fail("the receiver hangs");
	if (s->at == DONE && (s->newest || s->next || (s->shown && !s->seen)))
		fail("it has ended, and there is a message");
	if (s->at == REST && s->due)
		fail("a tick waits for ever");
	if (setting != ENDLESS && s->delivered + s->dropped + left != s->pushed)
		fail("of %d messages %d were delivered, %d dropped, %d are left", s->pushed, s->delivered, s->dropped, left);
}

static const struct run runs[] = {
	{"rules: up to three pushes, two ticks", NONE, FINITE, HOLDS},
	{"rules: a sender that pushes for ever", NONE, ENDLESS, HOLDS},
	{"rules: both ticks wait for the first message", NONE, WAITS, HOLDS},
	{"rules: no other input", NONE, ALONE, HOLDS},
	{"MUTANT one place for what is not finished, which a push replaces", ONE_PLACE, ENDLESS, BREAKS},
	{"MUTANT what is next is shown, finished or not", NOT_ASKED, FINITE, BREAKS},
	{"MUTANT no signal while there is nothing to show", NO_SIGNAL, WAITS, BREAKS},
	{"MUTANT a push pokes nobody", NO_POKE, WAITS, BREAKS},
	{"MUTANT the sender is seen closed after newest was looked at", CLOSED_LAST, FINITE, BREAKS},
	{"MUTANT the same, without another input", CLOSED_LAST, ALONE, BREAKS},
	{"MUTANT what was shown to no tick is not counted", UNSEEN_FORGOTTEN, FINITE, BREAKS},
	{"MUTANT one message is moved on in a review", MOVED_ONCE, FINITE, BREAKS},
	{"MUTANT messages are moved on as long as they are finished", MOVED_ALWAYS, ENDLESS, BREAKS},
	{"MUTANT newest is moved on by a load and a store", UNLOCKED, FINITE, BREAKS},
	{0},
};

/*
 * M22: two graphs joined by a link (docs/dev/rules.md R1 to R6): credits, data, the end, the loss of the link and a new one.
 * The sender takes a message from its input only with a credit and keeps its block until the link is done with it; the
 * receiver has a place for each credit, emits in the order of the numbers while there is room behind it, and gives the credit back then.
 * It ticks without room, too: it still answers, and hears that the link is lost. Its review looks for room only if it has said that it wants some.
 *
 * Actors: the sender's ticks, the receiver's ticks, the link, what is behind the receiver, and a knife that cuts the link at any
 * moment, up to twice. Two messages may go as a bundle, which the link has a copy of and delivers as one. The link delivers what is under way in any order, so the end may come before data. What it has delivered lies in the
 * inbox of a side, which the side handles when it progresses the link; an arrival wakes a side that has armed the link.
 * A tick: progress, arm (if something came meanwhile: progress again), look and act; what was sent used the link, so progress
 * and arm again, then rest. Sender and receiver end up at rest for good, or the model says what hangs.
 * Properties: sent = received + lost, counted alike by both sides, received in order; never more under way or waiting than
 * credits; no block given back while the link may read it; the receiver ends after the last message, and the sender after the receiver.
 * Run: build/m22_remote [-v]
 */
#include <stdint.h>
#define THREADS 5
enum { SENDER, RECEIVER, LINK, BEHIND, KNIFE };
enum { WHOLE, CUT, CUT_TWICE, CREDITS }; /* settings: cuts + CREDITS * credits */
enum { MESSAGES = 4 };
enum mutation {
	NONE, CREDIT_TWICE, END_AT_ONCE, LOOKED_BEFORE, BLOCK_GIVEN_BACK, OLD_CREDITS, WELCOME_IN_FULL, ARMED_ONCE, AS_IT_ARRIVES,
	NEXT_EMITTED, LOST_ADDED, NO_ROOM_ASKED, ROOM_UNWANTED, WELCOME_SETS, BUNDLE_ONE_CREDIT, BUNDLE_ONE_PLACE
};
enum at { REST, PROGRESS, ARM, ACT, OVER };
struct side { uint8_t at, armed, event, acted, looked, linked, lost; };
struct state {
	struct side side[2];
	/* the sender */
	uint8_t credits, sent, blocks, end_sent, hello_sent;
	uint8_t bundled; /* bit n: message n is in a bundle with the next one */
	/* the receiver: `ready` are whole and in order, and not emitted; next: the number after them */
	uint8_t places, next, ready, end_seen, end, emitted, greeted, to_give, answered, unheard, room, wants;
	/* under way, and delivered but not handled */
	uint8_t data, end_data, hello, hello_at, welcome, welcome_received, welcome_credits, given, done;
	uint8_t in_data, in_end, in_hello, in_welcome, in_given, in_done, in_complete, in_lost[2];
	uint8_t cut;
};
#define THREAD_NAMES
#include "explore.h"

static const char *thread_name(int t)
{
	static const char *names[] = {"sender", "receiver", "link", "behind", "knife"};
	return names[t];
}

static int most(void)
{
	return setting / CREDITS;
}

static void begin(struct state *s)
{
	s->side[SENDER].looked = s->side[RECEIVER].looked = s->room = 1; /* their first tick */
}

static void arrive(struct state *s, int side)
{
	s->side[side].event |= s->side[side].armed;
}

static bool has_inbox(const struct state *s, int side)
{
	if (side == SENDER)
		return s->in_welcome || s->in_given || s->in_done || s->in_complete || s->in_lost[SENDER];
	return s->in_data || s->in_end || s->in_hello || s->in_lost[RECEIVER];
}

/* --- what the sides handle when they progress the link --- */

static void sender_handles(struct state *s)
{
	if (s->in_complete) /* the blocks that the link is done with */
		s->blocks &= (uint8_t)~s->in_complete;
	if (s->in_welcome) {
		s->side[SENDER].linked = 1;
		s->side[SENDER].lost = (uint8_t)(s->sent - s->welcome_received);
		s->credits = (uint8_t)(s->welcome_credits + (mutation == WELCOME_SETS ? 0 : s->credits)); /* some may have come before it */
	}
	s->credits += s->in_given;
	if (s->in_done)
		s->side[SENDER].at = OVER;
	if (s->in_lost[SENDER]) { /* the close of the link ends what was under way */
		s->side[SENDER].linked = s->hello_sent = s->end_sent = s->blocks = 0;
		if (mutation != OLD_CREDITS)
			s->credits = 0;
	}
	s->in_complete = s->in_welcome = s->in_given = s->in_done = s->in_lost[SENDER] = 0;
}

static void receiver_handles(struct state *s)
{
	s->places |= s->in_data;
	if (mutation == AS_IT_ARRIVES)
		while (s->places) {
			s->places &= (uint8_t)(s->places - 1);
			s->ready++;
			s->next++;
		}
	while (s->places >> s->next & 1) {
		s->places &= (uint8_t)~(1 << s->next);
		s->next++;
		s->ready++;
	}
	if (mutation == CREDIT_TWICE)
		for (int i = 0; i < MESSAGES; i++)
			s->to_give += s->in_data >> i & 1;
	if (s->in_end)
		s->end_seen = 1;
	if (s->in_lost[RECEIVER]) {
		s->side[RECEIVER].linked = s->end_seen = s->places = s->to_give = 0;
		s->greeted = 0;
	}
	if (s->in_hello)
		s->greeted = 1;
	s->in_data = s->in_end = s->in_hello = s->in_lost[RECEIVER] = 0;
}

/* --- what they do then --- */

static bool sender_can(const struct state *s)
{
	if (!s->side[SENDER].linked)
		return !s->hello_sent;
	return (s->sent < MESSAGES && s->credits) || (s->sent == MESSAGES && !s->end_sent);
}

static void sender_acts(struct state *s)
{
	bool broken = s->in_lost[SENDER]; /* and it does not know: what it sends goes nowhere */

	if (!s->side[SENDER].linked) {
		s->hello_sent = 1;
		s->hello = !broken;
		s->hello_at = s->sent;
		say("says hello, %d sent", s->sent);
	} else if (s->sent + 1 < MESSAGES && s->credits > (mutation != BUNDLE_ONE_CREDIT) && choose(2)) {
		s->data |= broken ? 0 : (uint8_t)(3 << s->sent);
		s->bundled |= broken ? 0 : (uint8_t)(1 << s->sent);
		s->credits -= mutation == BUNDLE_ONE_CREDIT ? 1 : 2;
		say("sends %d and %d as a bundle", s->sent, s->sent + 1);
		s->sent += 2;
	} else if (s->sent < MESSAGES) {
		s->data |= broken ? 0 : (uint8_t)(1 << s->sent);
		if (mutation != BLOCK_GIVEN_BACK)
			s->blocks |= (uint8_t)(1 << s->sent);
		s->credits--;
		say("sends %d", s->sent);
		s->sent++;
	} else {
		s->end_sent = 1;
		s->end_data = !broken;
		say("sends the end");
	}
}

static bool receiver_ends(const struct state *s)
{
	return s->end_seen && (mutation == END_AT_ONCE || (s->next == MESSAGES && !s->ready)) && !s->answered;
}

static bool receiver_can(const struct state *s)
{
	return (s->ready && (s->room || mutation == NO_ROOM_ASKED)) || (s->greeted && !s->side[RECEIVER].linked) || receiver_ends(s);
}

static void receiver_acts(struct state *s)
{
	struct side *side = &s->side[RECEIVER];
	bool broken = s->in_lost[RECEIVER]; /* and it does not know: what it sends goes nowhere */

	if (s->greeted && !side->linked) {
		uint8_t received = (uint8_t)(s->emitted + (mutation == NEXT_EMITTED ? 0 : s->ready));

		side->linked = 1;
		s->welcome = !broken;
		side->lost = mutation == LOST_ADDED ? (uint8_t)(side->lost + s->hello_at - s->next)
						    : (uint8_t)(s->hello_at - s->emitted - s->ready);
		s->welcome_received = mutation == LOST_ADDED ? s->next : received;
		s->welcome_credits = (uint8_t)(most() - (mutation == WELCOME_IN_FULL ? 0 : s->ready));
		s->next = s->hello_at;
		say("welcomes, %d received, %d lost", received, side->lost);
	} else if (receiver_ends(s)) {
		s->answered = 1;
		s->done = !broken;
		s->unheard = broken;
		say("answers the end");
		side->at = OVER;
	} else if (s->ready && (s->room || mutation == NO_ROOM_ASKED)) {
		if (!s->room)
			fail("emits without room");
		s->room = 0;
		s->ready--;
		s->emitted++;
		s->to_give += side->linked;
		say("emits its message %d", s->emitted);
	}
	if (s->to_give && side->linked) {
		s->given += broken ? 0 : s->to_give;
		s->to_give = 0;
	}
}

/* --- a tick --- */

static bool side_step(struct state *s, int t)
{
	struct side *side = &s->side[t];
	bool can = t == SENDER ? sender_can(s) : receiver_can(s);

	if (side->at == OVER)
		return false;
	switch ((enum at)side->at) {
	case REST:
		if (!side->event && !side->looked && !(t == RECEIVER && s->wants && s->room))
			return false;
		side->at = PROGRESS;
		side->acted = side->event = 0;
		say("ticks");
		return true;
	case PROGRESS:
		side->armed = 0;
		if (mutation == LOOKED_BEFORE)
			side->looked = can;
		side->at = ARM;
		if (t == SENDER)
			sender_handles(s);
		else
			receiver_handles(s);
		say("progresses the link");
		return true;
	case ARM:
		if (has_inbox(s, t)) {
			side->at = PROGRESS;
			say("could not arm: something came");
			return true;
		}
		side->armed = 1;
		side->at = ACT;
		if (mutation != LOOKED_BEFORE)
			side->looked = can;
		if (t == RECEIVER)
			s->wants = s->ready && mutation != ROOM_UNWANTED;
		say("arms");
		return true;
	default:
		if (!side->looked || side->acted) {
			side->at = REST;
			say("rests%s", side->looked ? ", and will tick again" : "");
			return true;
		}
		side->at = mutation == ARMED_ONCE ? REST : PROGRESS; /* what is sent uses the link */
		side->armed = 0;
		side->acted = 1;
		if (t == SENDER)
			sender_acts(s);
		else
			receiver_acts(s);
		if (mutation == ARMED_ONCE)
			side->looked = t == SENDER ? sender_can(s) : receiver_can(s);
		return true;
	}
}

/* --- the link --- */

/* Or a bundle by its first one. */
static bool deliver_message(struct state *s, int n)
{
	bool bundle = s->bundled >> n & 1;
	uint8_t all = (uint8_t)((bundle ? 3 : 1) << n);

	if (!(s->data >> n & 1) || (n && s->bundled >> (n - 1) & 1))
		return false;
	s->data &= (uint8_t)~all;
	s->in_data |= bundle && mutation == BUNDLE_ONE_PLACE ? (uint8_t)(1 << n) : all;
	s->bundled &= (uint8_t)~all;
	if (!bundle) {
		s->in_complete |= all;
		arrive(s, SENDER);
	}
	arrive(s, RECEIVER);
	say(bundle ? "brings %d and the next" : "brings %d", n);
	return true;
}

static bool deliver(struct state *s, int what)
{
	switch (what) {
	case 0:
		if (!s->hello)
			return false;
		s->hello = 0;
		s->in_hello = 1;
		arrive(s, RECEIVER);
		say("brings the hello");
		return true;
	case 1:
		if (!s->welcome)
			return false;
		s->welcome = 0;
		s->in_welcome = 1;
		arrive(s, SENDER);
		say("brings the welcome");
		return true;
	case 2:
		if (!s->given)
			return false;
		s->in_given += s->given;
		s->given = 0;
		arrive(s, SENDER);
		say("brings credits");
		return true;
	case 3:
		if (!s->done)
			return false;
		s->done = 0;
		s->in_done = 1;
		arrive(s, SENDER);
		say("brings the answer to the end");
		return true;
	case 4:
		if (!s->end_data)
			return false;
		s->end_data = 0;
		s->in_end = 1;
		arrive(s, RECEIVER);
		say("brings the end");
		return true;
	default:
		return deliver_message(s, what - 5);
	}
}

static bool cut(struct state *s)
{
	if (s->cut == setting % CREDITS || !s->hello_sent || s->in_lost[SENDER] || s->answered)
		return false;
	s->cut++;
	s->data = s->bundled = s->end_data = s->hello = s->welcome = s->given = s->done = s->in_welcome = s->in_given = s->in_hello = s->in_end = 0;
	s->in_lost[SENDER] = s->in_lost[RECEIVER] = 1;
	arrive(s, SENDER);
	arrive(s, RECEIVER);
	say("cuts");
	return true;
}

static bool step(struct state *s, int t)
{
	switch (t) {
	case SENDER:
	case RECEIVER:
		return side_step(s, t);
	case LINK:
		return deliver(s, choose(5 + MESSAGES));
	case BEHIND:
		if (s->room || s->side[RECEIVER].at == OVER)
			return false;
		s->room = 1;
		say("takes what was emitted");
		return true;
	default:
		return cut(s);
	}
}

static void check(const struct state *s)
{
	int here = s->ready;

	for (int i = 0; i < MESSAGES; i++)
		here += (s->data >> i & 1) + (s->in_data >> i & 1) + (s->places >> i & 1);
	if (here > most())
		fail("%d messages are under way or wait, with %d credits", here, most());
	if (s->data & ~s->blocks & ~s->bundled & ~(s->bundled << 1))
		fail("a block was given back while the link may read it");
	if (mutation == AS_IT_ARRIVES && (s->data & ((1 << s->next) - 1)))
		fail("a message is received before an earlier one");
}

static void at_end(const struct state *s)
{
	const struct side *sender = &s->side[SENDER], *receiver = &s->side[RECEIVER];

	if (receiver->at != OVER)
		fail("the receiver waits for ever: %d emitted of %d", s->emitted, s->sent);
	if (s->emitted + receiver->lost != MESSAGES)
		fail("of %d messages %d were emitted and %d lost", MESSAGES, s->emitted, receiver->lost);
	if (s->unheard)
		return; /* its timeout ends the sender, which cannot know what became of the last messages */
	if (sender->at != OVER)
		fail("the sender waits for ever: %d sent", s->sent);
	if (sender->lost != receiver->lost)
		fail("the sender counts %d as lost, the receiver %d", sender->lost, receiver->lost);
}

static const struct run runs[] = {
	{"rules: one credit", NONE, 1 * CREDITS + WHOLE, HOLDS},
	{"rules: two credits", NONE, 2 * CREDITS + WHOLE, HOLDS},
	{"rules: one credit, the link is cut", NONE, 1 * CREDITS + CUT, HOLDS},
	{"rules: two credits, the link is cut", NONE, 2 * CREDITS + CUT, HOLDS},
	{"rules: two credits, the link is cut twice", NONE, 2 * CREDITS + CUT_TWICE, HOLDS},
	{"rules: three credits, the link is cut", NONE, 3 * CREDITS + CUT, HOLDS},
	{"MUTANT a credit is given when a message comes, and again when it is emitted", CREDIT_TWICE, 1 * CREDITS + WHOLE, BREAKS},
	{"MUTANT the end ends, whatever is under way", END_AT_ONCE, 2 * CREDITS + WHOLE, BREAKS},
	{"MUTANT what is to do is looked up before the link is armed", LOOKED_BEFORE, 1 * CREDITS + WHOLE, BREAKS},
	{"MUTANT a block is given back while the link reads it", BLOCK_GIVEN_BACK, 1 * CREDITS + WHOLE, BREAKS},
	{"MUTANT credits of the old link count on the new one", OLD_CREDITS, 2 * CREDITS + CUT, BREAKS},
	{"MUTANT a welcome gives all credits, whatever waits to be emitted", WELCOME_IN_FULL, 2 * CREDITS + CUT, BREAKS},
	{"MUTANT the link is not armed again behind what was sent", ARMED_ONCE, 1 * CREDITS + WHOLE, BREAKS},
	{"MUTANT messages are received as they arrive", AS_IT_ARRIVES, 2 * CREDITS + WHOLE, BREAKS},
	{"MUTANT the welcome tells what was emitted, not what was received", NEXT_EMITTED, 2 * CREDITS + CUT, BREAKS},
	{"MUTANT what is lost is added up from welcome to welcome", LOST_ADDED, 2 * CREDITS + CUT_TWICE, BREAKS},
	{"MUTANT a welcome sets the credits, whichever came before it", WELCOME_SETS, 1 * CREDITS + CUT, BREAKS},
	{"MUTANT the receiver does not ask for room", NO_ROOM_ASKED, 1 * CREDITS + WHOLE, BREAKS},
	{"MUTANT the receiver does not say that it wants room", ROOM_UNWANTED, 1 * CREDITS + WHOLE, BREAKS},
	{"MUTANT a bundle takes one credit", BUNDLE_ONE_CREDIT, 2 * CREDITS + WHOLE, BREAKS},
	{"MUTANT of a bundle one message is received", BUNDLE_ONE_PLACE, 2 * CREDITS + WHOLE, BREAKS},
	{0},
};

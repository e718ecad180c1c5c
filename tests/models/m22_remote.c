/*
 * M22: graphs joined by a link (docs/dev/rules.md R1 to R6): credits, data, the end, the loss of the link and a new one, and
 * a second sender that connects to the receiver.
 * The sender takes a message from its input only with a credit and keeps its block until the link is done with it; the
 * receiver has a place for each credit, and memory, emits in the order of the numbers while there is room behind it, and gives the credit back then.
 * A credit tells how many messages of the sender were emitted, which confirms them.
 * It ticks without room, too: it still answers, and hears that the link is lost. Its review looks for room only if it has said that it wants some.
 *
 * A receiver has one connection at a time: a sender that connects meanwhile is refused, and tries again. To the receiver a sender is the one
 * that it had before, or another one: then it begins to count anew, and takes another session, which its welcome tells. So one that comes
 * back behind another one finds another receiver, and counts what the old one had not confirmed as lost.
 *
 * Actors: the senders' ticks, the receiver's ticks, the link, what is behind the receiver, and a knife that cuts the link at any
 * moment, up to twice. A sender that is alone may send two messages as a bundle, which the link has a copy of and delivers as one. The link delivers what is under way in any order, so the end may come before data. What it has delivered lies in the
 * inbox of a side, which the side handles when it progresses the link; an arrival wakes a side that has armed the link.
 * A tick: progress, arm (if something came meanwhile: progress again), look and act; what was sent used the link, so progress
 * and arm again, then rest. Sender and receiver end up at rest for good, or the model says what hangs.
 * At any moment all behind the receiver may be done, while its run goes on: then it takes no more, says so to the sender that it has, and
 * to one that connects later, and neither emits nor welcomes.
 * Properties: sent = received + lost, counted alike by both sides, received in order; never more under way or waiting than
 * credits; no block given back while the link may read it; the receiver ends after the last message, and the sender after the receiver.
 * Behind a receiver that takes no more the sender ends.
 * Of two senders one gets its answer; the other one waits for another receiver. What a sender counts as lost is what did not come,
 * and beside it at most what was not confirmed when the other one took its place; the receiver never counts what came.
 * Fewer states, and the same runs: forget() clears what is not read again before it is written, as what a welcome sets; of credits behind
 * the last message, and of blocks whose messages are delivered, only whether there is something in the inbox. To rest is no step of its own.
 * Run: build/m22_remote [-v]
 */
#include <stdint.h>
#define THREADS 6
enum { SENDER, SECOND, RECEIVER, LINK, BEHIND, KNIFE };
enum { SENDERS = 2, NO_SENDER = SENDERS };
enum { WHOLE, CUT, CUT_TWICE, CREDITS, TWO = 30, EACH_ONE = 60, ENOUGH = 90, SCARCE = 128 }; /* settings: cuts + CREDITS * credits, + TWO with two senders or EACH_ONE, + ENOUGH with one */
/* SCARCE: the receiver may lack memory for its places: its welcome gives any number of credits, and the rest as memory comes. */
/* With two senders, and with ENOUGH, there is always room behind the receiver, and nothing is asked of blocks: both are the matter of the others. */
enum { MESSAGES = 4, FEW = 2 }; /* of one sender, of each of two, and of one with ENOUGH; with EACH_ONE they have one each */
enum mutation {
	NONE, CREDIT_TWICE, END_AT_ONCE, LOOKED_BEFORE, BLOCK_GIVEN_BACK, OLD_CREDITS, WELCOME_IN_FULL, ARMED_ONCE, AS_IT_ARRIVES,
	NEXT_EMITTED, LOST_ADDED, NO_ROOM_ASKED, ROOM_UNWANTED, WELCOME_SETS, SECOND_BESIDE, SESSION_KEPT, COUNT_KEPT, CREDIT_CONFIRMS,
	BUNDLE_ONE_CREDIT, BUNDLE_ONE_PLACE, TOLD_ONCE, WELCOMED_IN_VAIN, CREDIT_COUNTS, MEMORY_UNHEARD
};
enum at { REST, PROGRESS, ARM, ACT, OVER };
struct side { uint8_t at, armed, event, acted, looked, linked, lost, in_lost; };
struct sender {
	uint8_t credits, sent, blocks, end_sent, hello_sent;
	uint8_t session, confirmed, lost_before; /* session: of the receiver that it knows; 0: none */
	/* delivered but not handled */
	uint8_t in_welcome, in_given, in_told, in_done, in_complete, in_enough;
	uint8_t told, has_told; /* by a credit that has overtaken its welcome */
	uint8_t came; /* of its messages, to the receiver, in all */
};
struct state {
	struct side side[SENDERS + 1];
	struct sender sender[SENDERS];
	uint8_t line; /* whose connection the receiver has */
	/* the receiver: `ready` are whole and in order, and not emitted; next: the number after them; last: the sender that it knows; kept: came, and was not emitted */
	uint8_t places, next, ready, end_seen, kept, greeted, to_give, withheld, answered, unheard, room, wants;
	uint8_t last, session, received, lost_before, replaced;
	uint8_t bundled; /* bit n: message n is under way in a bundle with the next one */
	/* under way; what the welcome tells */
	uint8_t data, end_data, hello, hello_at, welcome, given, given_told, done;
	uint8_t welcome_received, welcome_credits, welcome_waiting, welcome_session;
	uint8_t in_data, in_end, in_hello;
	uint8_t behind_done, full, enough; /* full: it takes no more; enough: under way */
	uint8_t cut;
};
#define THREAD_NAMES
#include "explore.h"

static const char *thread_name(int t)
{
	static const char *names[] = {"sender", "second", "receiver", "link", "behind", "knife"};
	return names[t];
}

static int base(void)
{
	return setting & ~SCARCE;
}

static int most(void)
{
	return base() % TWO / CREDITS;
}

static int messages(void)
{
	return base() < TWO ? MESSAGES : base() >= EACH_ONE && base() < ENOUGH ? 1 : FEW;
}

static bool two_senders(void)
{
	return base() >= TWO && base() < ENOUGH;
}

static void forget(struct state *s);

static void begin(struct state *s)
{
	for (int t = 0; t <= RECEIVER; t++)
		s->side[t].looked = t != SECOND || two_senders(); /* their first tick */
	s->room = s->session = 1;
	s->line = s->last = NO_SENDER;
	forget(s);
}

static void arrive(struct state *s, int side)
{
	s->side[side].event |= s->side[side].armed;
}

static bool has_inbox(const struct state *s, int side)
{
	const struct sender *sender = &s->sender[side];

	if (side == RECEIVER)
		return s->in_data || s->in_end || s->in_hello || s->side[side].in_lost;
	return sender->in_welcome || sender->in_given || sender->in_done || sender->in_complete || sender->in_enough || s->side[side].in_lost;
}

/* --- what the sides handle when they progress the link --- */

static void take_welcome(struct state *s, struct sender *sender, struct side *side)
{
	side->linked = 1;
	if (sender->session && sender->session != s->welcome_session)
		sender->lost_before = side->lost = (uint8_t)(sender->lost_before + sender->sent - sender->confirmed);
	else
		side->lost = (uint8_t)(sender->lost_before + sender->sent - s->welcome_received);
	sender->session = s->welcome_session;
	if (mutation == CREDIT_COUNTS)
		sender->confirmed = (uint8_t)(s->welcome_received - s->welcome_waiting + sender->credits);
	else
		sender->confirmed = sender->has_told ? sender->told : (uint8_t)(s->welcome_received - s->welcome_waiting);
	sender->told = sender->has_told = 0;
	sender->credits = (uint8_t)(s->welcome_credits + (mutation == WELCOME_SETS ? 0 : sender->credits)); /* some may have come before it */
}

static void sender_handles(struct state *s, int t)
{
	struct sender *sender = &s->sender[t];
	struct side *side = &s->side[t];

	if (sender->in_complete) /* the blocks that the link is done with */
		sender->blocks &= (uint8_t)~sender->in_complete;
	if (sender->in_welcome)
		take_welcome(s, sender, side);
	sender->credits += sender->in_given;
	if (mutation == CREDIT_COUNTS && side->linked) {
		sender->confirmed += sender->in_given;
	} else if (sender->in_given && (side->linked || mutation == CREDIT_CONFIRMS)) {
		sender->confirmed = sender->in_told;
	} else if (sender->in_given) { /* it counts from the welcome on, which it has overtaken */
		sender->told = sender->in_told;
		sender->has_told = 1;
	}
	if (sender->in_done)
		side->at = OVER;
	if (sender->in_enough) { /* it closes */
		side->at = OVER;
		s->side[RECEIVER].in_lost = 1;
		arrive(s, RECEIVER);
	}
	if (side->in_lost) { /* the close of the link ends what was under way */
		side->linked = sender->hello_sent = sender->end_sent = sender->blocks = sender->told = sender->has_told = 0;
		if (mutation != OLD_CREDITS)
			sender->credits = 0;
	}
	sender->in_complete = sender->in_welcome = sender->in_given = sender->in_told = sender->in_done = sender->in_enough = side->in_lost = 0;
}

static void move_to_ready(struct state *s)
{
	s->next++;
	s->ready++;
	s->received++;
	s->sender[s->last].came++;
	s->kept++;
}

static void receiver_handles(struct state *s)
{
	s->places |= s->in_data;
	if (mutation == AS_IT_ARRIVES)
		while (s->places) {
			s->places &= (uint8_t)(s->places - 1);
			move_to_ready(s);
		}
	while (s->places >> s->next & 1) {
		s->places &= (uint8_t)~(1 << s->next);
		move_to_ready(s);
	}
	if (s->full)
		s->ready = 0;
	if (mutation == CREDIT_TWICE)
		for (int i = 0; i < messages(); i++)
			s->to_give += s->in_data >> i & 1;
	if (s->in_end)
		s->end_seen = 1;
	if (s->side[RECEIVER].in_lost) {
		s->side[RECEIVER].linked = s->end_seen = s->places = s->to_give = s->withheld = 0;
		s->greeted = 0;
		s->line = NO_SENDER;
	}
	if (s->in_hello) {
		s->greeted = 1;
		if (mutation == SECOND_BESIDE)
			s->side[RECEIVER].linked = 0;
	}
	s->in_data = s->in_end = s->in_hello = s->side[RECEIVER].in_lost = 0;
}

/* --- what they do then --- */

/* A side that connects beside another connection is refused, and tries again by time. */
static bool may_connect(const struct state *s, int t)
{
	if (s->full && mutation == TOLD_ONCE)
		return false;
	if (t == SECOND && (!two_senders() || s->last == NO_SENDER)) /* which of two is the first is all the same */
		return false;
	return !s->side[t].linked && !s->sender[t].hello_sent && (s->line == NO_SENDER || mutation == SECOND_BESIDE);
}

static bool sender_can(const struct state *s, int t)
{
	const struct sender *sender = &s->sender[t];

	if (!s->side[t].linked)
		return may_connect(s, t);
	return (sender->sent < messages() && sender->credits) || (sender->sent == messages() && !sender->end_sent);
}

static void sender_acts(struct state *s, int t)
{
	struct sender *sender = &s->sender[t];
	bool broken = s->side[t].in_lost; /* and it does not know: what it sends goes nowhere */

	if (!s->side[t].linked) {
		if (!may_connect(s, t)) {
			say("is refused");
			return;
		}
		sender->hello_sent = 1;
		s->line = (uint8_t)t;
		s->hello = 1;
		s->hello_at = sender->sent;
		say("says hello, %d sent", sender->sent);
	} else if (base() < TWO && sender->sent + 1 < messages() && sender->credits > (mutation != BUNDLE_ONE_CREDIT) && choose(2)) {
		s->data |= broken ? 0 : (uint8_t)(3 << sender->sent);
		s->bundled |= broken ? 0 : (uint8_t)(1 << sender->sent);
		sender->credits -= mutation == BUNDLE_ONE_CREDIT ? 1 : 2;
		say("sends %d and %d as a bundle", sender->sent, sender->sent + 1);
		sender->sent += 2;
	} else if (sender->sent < messages()) {
		s->data |= broken ? 0 : (uint8_t)(1 << sender->sent);
		if (mutation != BLOCK_GIVEN_BACK && base() < TWO)
			sender->blocks |= (uint8_t)(1 << sender->sent);
		sender->credits--;
		say("sends %d", sender->sent);
		sender->sent++;
	} else {
		sender->end_sent = 1;
		s->end_data |= !broken;
		say("sends the end");
	}
}

static bool receiver_ends(const struct state *s)
{
	return s->end_seen && (mutation == END_AT_ONCE || (s->next == messages() && !s->ready)) && !s->answered;
}

static bool receiver_can(const struct state *s)
{
	if (s->behind_done)
		return !s->full || (s->greeted && !s->side[RECEIVER].linked);
	return (s->to_give && s->side[RECEIVER].linked) || (s->ready && (s->room || mutation == NO_ROOM_ASKED)) || (s->greeted && !s->side[RECEIVER].linked) || receiver_ends(s);
}

static void welcome(struct state *s, bool broken)
{
	struct side *side = &s->side[RECEIVER];
	bool another = s->line != s->last;

	side->linked = 1;
	s->greeted = 0;
	if (another) {
		if (s->last != NO_SENDER) {
			s->replaced++;
			s->session += mutation != SESSION_KEPT;
		}
		s->lost_before = side->lost;
		if (s->last == NO_SENDER || mutation != COUNT_KEPT)
			s->received = s->hello_at;
		s->last = s->line;
	}
	side->lost = mutation == LOST_ADDED && !another ? (uint8_t)(side->lost + s->hello_at - s->next)
							: (uint8_t)(s->lost_before + s->hello_at - s->received);
	s->welcome = !broken;
	s->welcome_received = mutation == LOST_ADDED && !another ? s->next : s->received;
	if (mutation == NEXT_EMITTED)
		s->welcome_received -= s->ready;
	s->welcome_waiting = s->ready;
	s->welcome_credits = (uint8_t)(most() - (mutation == WELCOME_IN_FULL ? 0 : s->ready));
	s->withheld = setting & SCARCE ? (uint8_t)choose(s->welcome_credits + 1) : 0;
	s->welcome_credits -= s->withheld;
	s->welcome_session = s->session;
	s->next = s->hello_at;
	say("welcomes, %d received, %d lost", s->welcome_received, side->lost);
}

static void receiver_acts(struct state *s)
{
	struct side *side = &s->side[RECEIVER];
	bool broken = side->in_lost; /* and it does not know: what it sends goes nowhere */

	if (s->behind_done && !s->full) {
		s->full = 1;
		s->enough = side->linked && !broken;
		s->ready = side->linked = 0;
		say("takes no more");
	} else if (s->full && s->greeted && mutation != WELCOMED_IN_VAIN) {
		s->greeted = 0;
		s->enough = !broken;
		say("says that it takes no more");
	} else if (s->greeted && !side->linked) {
		welcome(s, broken);
	} else if (s->full) {
		return;
	} else if (receiver_ends(s)) {
		s->answered = 1;
		s->done = !broken;
		s->unheard = broken;
		say("answers the end");
		side->at = OVER;
	} else if (s->ready && (s->room || mutation == NO_ROOM_ASKED)) {
		if (!s->room)
			fail("emits without room");
		s->room = base() >= TWO;
		s->ready--;
		s->kept--;
		s->to_give += side->linked;
		say("emits");
	}
	if (s->to_give && side->linked) {
		s->given += broken ? 0 : s->to_give;
		s->given_told = broken ? 0 : (uint8_t)(s->received - s->ready);
		s->to_give = 0;
	}
}

/* --- a tick --- */

static bool side_step(struct state *s, int t)
{
	struct side *side = &s->side[t];
	bool can = t == RECEIVER ? receiver_can(s) : sender_can(s, t);

	if (side->at == OVER)
		return false;
	switch ((enum at)side->at) {
	case REST:
		if (!side->event && !side->looked &&
		    !(t == RECEIVER ? (s->wants && s->room) || (s->behind_done && !s->full) || (s->to_give && side->linked && mutation != MEMORY_UNHEARD)
				    : may_connect(s, t)))
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
		if (t == RECEIVER)
			receiver_handles(s);
		else
			sender_handles(s, t);
		say("progresses the link");
		return true;
	case ARM:
		if (has_inbox(s, t)) {
			side->at = PROGRESS;
			say("could not arm: something came");
			return true;
		}
		side->armed = 1;
		if (mutation != LOOKED_BEFORE)
			side->looked = can;
		side->at = side->looked && !side->acted ? ACT : REST;
		if (t == RECEIVER)
			s->wants = s->ready && mutation != ROOM_UNWANTED;
		say("arms%s", side->at == ACT ? "" : side->looked ? ", rests, and will tick again" : ", rests");
		return true;
	default:
		side->at = mutation == ARMED_ONCE ? REST : PROGRESS; /* what is sent uses the link */
		side->armed = 0;
		side->acted = 1;
		if (t == RECEIVER)
			receiver_acts(s);
		else
			sender_acts(s, t);
		if (mutation == ARMED_ONCE)
			side->looked = t == RECEIVER ? receiver_can(s) : sender_can(s, t);
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
	if (base() < TWO && !bundle)
		s->sender[s->line].in_complete |= all;
	if (!bundle)
		arrive(s, s->line);
	arrive(s, RECEIVER);
	say(bundle ? "brings %d and the next" : "brings %d", n);
	return true;
}

static bool deliver(struct state *s, int what)
{
	struct sender *sender = &s->sender[s->line];

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
		sender->in_welcome = 1;
		arrive(s, s->line);
		say("brings the welcome");
		return true;
	case 2:
		if (!s->given)
			return false;
		sender->in_given += s->given;
		sender->in_told = s->given_told;
		s->given = s->given_told = 0;
		arrive(s, s->line);
		say("brings credits");
		return true;
	case 3:
		if (!s->done)
			return false;
		s->done = 0;
		sender->in_done = 1;
		arrive(s, s->line);
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
	case 5:
		if (base() < ENOUGH)
			return deliver_message(s, 0);
		if (!s->enough)
			return false;
		s->enough = 0;
		sender->in_enough = 1;
		arrive(s, s->line);
		say("brings that it takes no more");
		return true;
	default:
		return deliver_message(s, what - 5 - (base() >= ENOUGH));
	}
}

static bool cut(struct state *s)
{
	struct sender *sender = &s->sender[s->line];

	if (s->cut == base() % CREDITS || s->line == NO_SENDER || s->side[s->line].in_lost || s->side[RECEIVER].in_lost ||
	    !sender->hello_sent || s->answered)
		return false;
	s->cut++;
	s->data = s->bundled = s->end_data = s->hello = s->welcome = s->given = s->given_told = s->done = s->enough = sender->in_enough = sender->in_welcome = sender->in_given = sender->in_told = s->in_hello = s->in_end = 0;
	s->side[s->line].in_lost = s->side[RECEIVER].in_lost = 1;
	arrive(s, s->line);
	arrive(s, RECEIVER);
	say("cuts");
	return true;
}

static bool moves_on(struct state *s, int t)
{
	switch (t) {
	case SENDER:
	case SECOND:
	case RECEIVER:
		return side_step(s, t);
	case LINK:
		return s->line != NO_SENDER && deliver(s, choose(5 + (base() >= ENOUGH) + messages()));
	case BEHIND:
		if (base() >= ENOUGH && !s->behind_done && s->side[RECEIVER].at != OVER) {
			s->behind_done = 1;
			say("all behind it is done");
			return true;
		}
		if (s->withheld && s->side[RECEIVER].at != OVER) {
			s->withheld--;
			s->to_give++;
			say("gives the receiver memory");
			return true;
		}
		if (s->room || s->side[RECEIVER].at == OVER)
			return false;
		s->room = 1;
		say("takes what was emitted");
		return true;
	default:
		return cut(s);
	}
}

/* --- what is not read again before it is written --- */

static void forget_of_side(struct state *s, int t)
{
	struct side *side = &s->side[t];

	if (side->at == REST || side->at == OVER)
		side->acted = DEAD;
	if (side->at == PROGRESS || side->at == OVER || (side->at == ARM && mutation != LOOKED_BEFORE))
		side->looked = DEAD;
	if (side->at == OVER)
		side->armed = side->event = DEAD;
	if (t == RECEIVER && (side->at == PROGRESS || side->at == ARM || side->at == OVER))
		s->wants = DEAD;
	if (s->full || (t != RECEIVER && !side->linked && side->at != OVER)) /* a welcome sets it */
		side->lost = DEAD;
	if (t == RECEIVER && !two_senders() && s->last != NO_SENDER && !side->linked && side->at != OVER && mutation != LOST_ADDED)
		side->lost = DEAD;
}

static void forget_of_sender(struct state *s, int t)
{
	struct sender *sender = &s->sender[t];

	sender->blocks &= s->data; /* of what was delivered no more is asked than that something was */
	sender->in_complete = sender->in_complete ? 0x80 | (sender->in_complete & s->data) : 0;
	if (!two_senders()) /* it is asked where the receiver is another one */
		sender->confirmed = sender->in_told = sender->told = sender->has_told = DEAD;
	if (sender->sent == messages() && mutation != CREDIT_COUNTS) {
		sender->credits = DEAD;
		sender->in_given = sender->in_given > 0;
		if (s->line == t) {
			s->given = s->given > 0;
			s->welcome_credits = DEAD;
		}
	}
}

static void forget(struct state *s)
{
	for (int t = SENDER; t <= RECEIVER; t++)
		forget_of_side(s, t);
	for (int t = 0; t < SENDERS; t++)
		forget_of_sender(s, t);
	if (!two_senders())
		s->given_told = s->welcome_waiting = DEAD;
	bool welcomed = s->welcome || s->sender[SENDER].in_welcome || s->sender[SECOND].in_welcome;

	if (!welcomed)
		s->welcome_received = s->welcome_credits = s->welcome_waiting = s->welcome_session = DEAD;
	if (!s->hello && !s->in_hello && !s->greeted)
		s->hello_at = DEAD;
	if (!s->side[RECEIVER].linked && !welcomed && (s->line == NO_SENDER || !s->side[s->line].linked) && !s->data && !s->in_data && !s->places &&
	    mutation != LOST_ADDED && mutation != SECOND_BESIDE)
		s->next = DEAD; /* a welcome sets it */
	if (s->full)
		s->kept = DEAD;
}

static bool step(struct state *s, int t)
{
	if (!moves_on(s, t))
		return false;
	forget(s);
	return true;
}

static void check(const struct state *s)
{
	int here = s->ready;

	for (int i = 0; i < messages(); i++)
		here += (s->data >> i & 1) + (s->in_data >> i & 1) + (s->places >> i & 1);
	if (here > most())
		fail("%d messages are under way or wait, with %d credits", here, most());
	if (base() < TWO && s->line != NO_SENDER && s->data & ~s->sender[s->line].blocks & ~s->bundled & ~(s->bundled << 1))
		fail("a block was given back while the link may read it");
	if (mutation == AS_IT_ARRIVES && (s->data & ((1 << s->next) - 1)))
		fail("a message is received before an earlier one");
	if (s->received > s->sender[s->last % SENDERS].sent)
		fail("%d messages of a sender were received, and %d sent", s->received, s->sender[s->last % SENDERS].sent);
}

/* Of one that had its answer. What was not confirmed, of each receiver that it had and found replaced, may have come. */
static void check_sender(const struct state *s, int t)
{
	int more = s->sender[t].came + s->side[t].lost - messages();

	if (more < 0 || more > s->replaced * most())
		fail("the sender counts %d as lost, and %d of %d came", s->side[t].lost, s->sender[t].came, messages());
}

static void at_end(const struct state *s)
{
	const struct side *receiver = &s->side[RECEIVER];
	int missed = 0, came = s->sender[SENDER].came + s->sender[SECOND].came;

	if (s->full) {
		if (s->side[SENDER].at != OVER)
			fail("the sender waits for ever, and the receiver takes no more");
		return;
	}
	if (receiver->at != OVER)
		fail("the receiver waits for ever: %d emitted of %d", came - (int8_t)s->kept, s->sender[SENDER].sent);
	for (int t = 0; t < SENDERS; t++)
		missed += s->sender[t].sent - s->sender[t].came;
	if (s->replaced ? receiver->lost > missed : receiver->lost != s->sender[s->last].sent - s->sender[s->last].came)
		fail("the receiver counts %d as lost, and %d did not come", receiver->lost, missed);
	if (s->kept)
		fail("%d came, and %d were emitted", came, came - (int8_t)s->kept);
	if (s->unheard)
		return; /* its timeout ends the sender, which cannot know what became of the last messages */
	if (s->side[s->line].at != OVER)
		fail("the sender waits for ever: %d sent", s->sender[s->line].sent);
	check_sender(s, s->line);
	if (!s->replaced && s->side[s->line].lost != receiver->lost)
		fail("the sender counts %d as lost, the receiver %d", s->side[s->line].lost, receiver->lost);
}

static const struct run runs[] = {
	{"rules: one credit", NONE, 1 * CREDITS + WHOLE, HOLDS},
	{"rules: two credits", NONE, 2 * CREDITS + WHOLE, HOLDS},
	{"rules: one credit, the link is cut", NONE, 1 * CREDITS + CUT, HOLDS},
	{"rules: two credits, the link is cut", NONE, 2 * CREDITS + CUT, HOLDS},
	{"rules: two credits, the link is cut twice", NONE, 2 * CREDITS + CUT_TWICE, HOLDS},
	{"rules: three credits, the link is cut", NONE, 3 * CREDITS + CUT, HOLDS},
	{"rules: two senders, one credit, the link is cut", NONE, TWO + 1 * CREDITS + CUT, HOLDS},
	{"rules: two senders, two credits, the link is cut", NONE, TWO + 2 * CREDITS + CUT, HOLDS},
	{"rules: two senders with a message each, one credit, the link is cut twice", NONE, EACH_ONE + 1 * CREDITS + CUT_TWICE, HOLDS},
	{"rules: one credit, memory is scarce, the link is cut", NONE, SCARCE + 1 * CREDITS + CUT, HOLDS},
	{"rules: two credits, memory is scarce, the link is cut", NONE, SCARCE + 2 * CREDITS + CUT, HOLDS},
	{"rules: two senders, one credit, memory is scarce, the link is cut", NONE, SCARCE + TWO + 1 * CREDITS + CUT, HOLDS},
	{"MUTANT a credit confirms a message, though it may be given as memory comes", CREDIT_COUNTS, SCARCE + EACH_ONE + 1 * CREDITS + CUT_TWICE, BREAKS},
	{"MUTANT memory that comes wakes nobody", MEMORY_UNHEARD, SCARCE + 1 * CREDITS + WHOLE, BREAKS},
	{"rules: one credit, the receiver takes no more", NONE, ENOUGH + 1 * CREDITS + WHOLE, HOLDS},
	{"rules: two credits, the receiver takes no more, the link is cut twice", NONE, ENOUGH + 2 * CREDITS + CUT_TWICE, HOLDS},
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
	{"MUTANT a second sender is accepted beside the first", SECOND_BESIDE, TWO + 1 * CREDITS + WHOLE, BREAKS},
	{"MUTANT a sender that comes back behind another one finds the same session", SESSION_KEPT, EACH_ONE + 1 * CREDITS + CUT_TWICE, BREAKS},
	{"MUTANT another sender is counted from where the first one was", COUNT_KEPT, TWO + 1 * CREDITS + CUT, BREAKS},
	{"MUTANT a credit before the welcome of another receiver confirms what the one before had", CREDIT_CONFIRMS, EACH_ONE + 1 * CREDITS + CUT_TWICE, BREAKS},
	{"MUTANT a bundle takes one credit", BUNDLE_ONE_CREDIT, 2 * CREDITS + WHOLE, BREAKS},
	{"MUTANT of a bundle one message is received", BUNDLE_ONE_PLACE, 2 * CREDITS + WHOLE, BREAKS},
	{"MUTANT a receiver that takes no more listens no more", TOLD_ONCE, ENOUGH + 1 * CREDITS + WHOLE, BREAKS},
	{"MUTANT a receiver that takes no more welcomes a sender", WELCOMED_IN_VAIN, ENOUGH + 1 * CREDITS + WHOLE, BREAKS},
	{0},
};

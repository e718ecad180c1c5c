/*
 * M2: claims on what entities share (docs/dev/rules.md, S3: blocks and bytes of a memory pool;
 * faults F25, F26).
 *
 * Actors: 3 entities (each its own thread of control: more interleavings than any number of workers), 2
 * resources, per resource the thread that returns what ticks have used (deferred frees, a consumer), a timer.
 * An entity: poked -> review (may say WAIT or NEVER once) -> claims what it needs of each resource in
 * ascending id, each claim one critical section -> tick: of each claim it uses all or nothing; it may fail
 * (uses nothing) -> what is not used is released -> reviews again. NEVER: it leaves by CAS RUNNING->DONE
 * (NOTIFIED: exchange to RUNNING, again); DONE absorbs every poke.
 * Rule as modelled, each line one critical section of the resource:
 *   offer:        the oldest entry of the refused list for which there is enough, if any, is REMOVED and
 *                 marked owed; it is poked.
 *   release(r):   give back; offer.
 *   claim(e,r):   the mark is taken back, e's entry removed; enough -> claimed, offer what is left; else
 *                 entered at the end.
 *   park:         for every r where e was owed when this review began and still is: the mark is taken back;
 *                 offer. What was offered later stays: its poke comes later too, and starts another review.
 *   became DONE:  for every r: the entry is removed, any mark taken back, also a newer one; offer.
 * Variants: free units are open to all (S3), or RESERVE: owed units are kept for the entity that is owed.
 * Properties: never more in use than there is; if an entity is refused while there is enough, one has been
 * told; in the end all are DONE; no livelock; in the STARVE settings also: an entity that wants one tick gets
 * it although two others go on for ever.
 * STRAY: each entity may get one needless poke (a drain, a neighbour): it is reviewed while its entry is in
 * the list; one tick each.
 * KEEPER: A makes messages ahead: what it has claimed it keeps from tick to tick, two units at most, as many as
 * it will yet use. It takes what there is, in one critical section (its own mark and entry first; short of two:
 * entered at the end; what is left is offered), in a review and in a tick; it is never refused, and waits
 * only while it has none, or for messages. What it wants no longer, and all when it is DONE, goes back and is
 * offered. So an entity that waits for A's messages needs a resource with more than A keeps.
 * PATIENT: an entity that says WAIT is woken only when all others are DONE or wait too: it waits for their
 * messages.
 * Fewer states, and the same runs: a poke between the claims and the next review is not noted, as that begins with an
 * exchange, and an entity that looks again is as one that is idle and poked; what a tick has used is counted by amount,
 * as no more of it is read; steps of nothing shared (a choice, a resource that the entity does not need or has not
 * claimed) belong to the step before, but for what STARVE and PATIENT let others read.
 * Bounds: 3 entities (2+1+1 ticks), 2 resources of size 1 and 2, one unit a claim; AMOUNTS: one resource, A
 * needs 2 of 2.
 * Run: build/m2_claim [-v [NAME]]
 * Result: holds (up to 0.3 million states a run); ascending order is needed (else a livelock); RESERVE
 * livelocks with two resources; without it an entity can be overtaken for ever by perfect timing; with
 * amounts a claim must offer what is left, and to the oldest for which it is enough; all mutants found.
 */
#include <stdint.h>
#define ENTITIES 3
#define RESOURCES 2
#define THREADS 6
enum { TIMER = 5 };                                     /* threads: entities 0-2, returners 3-4, the timer */
enum { POKED = 1, RUNNING = 2, DONE = 4 };
enum { SIZE2 = 1, AMOUNTS = 2, STARVE = 4, RESERVE = 8, CROSSED = 32, ONE = 64, CALM = 128, STARVE_WIDE = 256, STRAY = 512, PATIENT = 1024, KEEPER = 2048 };
enum mutation { NONE, REFUSE_OUTSIDE, NO_PASS_ON, KEEP_ENTRY, GIVE_BACK_SILENT, DESCENDING, UNUSED_SILENT, FAIL_KEEPS, PASS_ON_NEW,
	OLDEST_ONLY, CLAIM_OFFERS_NOTHING, AS_WRITTEN, DONE_KEEPS_ENTRY, DONE_KEEPS_NEW_MARK, DONE_TWO_SECTIONS, DONE_SILENT,
	DONE_BLINDLY, KEEPER_NOT_ENTERED, KEEPER_SHORT_NOT_ENTERED, KEEPER_OFFERS_NOTHING, KEEPER_GIVES_BACK_SILENT, KEEPER_DONE_KEEPS, KEEPER_DONE_SILENT
};
struct state {
	uint8_t word[ENTITIES], pc[THREADS], left[ENTITIES], at[ENTITIES], claims[ENTITIES], uses[ENTITIES], mood[ENTITIES], waiting[ENTITIES], owed[ENTITIES], owed_before[ENTITIES];
	uint8_t out[RESOURCES][2], claimed[RESOURCES], refused[RESOURCES][ENTITIES], n[RESOURCES], seen_full[ENTITIES];
	uint8_t to_poke[THREADS], stray, kept;
};
#define THREAD_NAMES
#include "explore.h"

static const char *thread_name(int t)
{
	static const char *names[] = {"A", "B", "C", "back 0", "back 1", "timer"};
	return names[t];
}

static int size(void) { return (setting & KEEPER) && (setting & PATIENT) ? 2 + !!(setting & SIZE2) : (setting & (SIZE2 | AMOUNTS)) ? 2 : 1; }
static int amount(int e) { return (setting & AMOUNTS) && e == 0 ? 2 : 1; }
static int used_by(int e) { return amount(e) - 1; } /* where out counts it: by the amount, as no more of it matters */
static bool keeper(int e) { return (setting & KEEPER) && e == 0; }
static bool head_only(void) { return mutation == OLDEST_ONLY || mutation == AS_WRITTEN; }
static bool claim_silent(void) { return mutation == CLAIM_OFFERS_NOTHING || mutation == AS_WRITTEN; }

/* Which resources an entity needs. */
static int needs(int e)
{
	if (setting & (ONE | AMOUNTS | KEEPER))
		return 1;
	if (setting & CROSSED)
		return e < 2 ? 3 : 0;
	if (setting & STARVE)
		return (setting & STARVE_WIDE) ? 3 : e == 0 ? 3 : e;    /* A needs both; B needs 0, C needs 1, or all need both */
	return e < 2 ? 3 : 2;
}

/* The resource that e claims in its k-th turn. */
static int turn(int e, int k)
{
	bool down = mutation == DESCENDING && e == 1;

	return down ? RESOURCES - 1 - k : k;
}

static int owed_units(const struct state *s, int r, int but)
{
	int sum = 0;

	for (int e = 0; e < ENTITIES; e++)
		sum += e != but && (s->owed[e] >> r & 1) ? amount(e) : 0;
	return sum;
}

static int in_use(const struct state *s, int r)
{
	int sum = s->claimed[r] + (r ? 0 : s->kept);

	return sum + s->out[r][0] + 2 * s->out[r][1];
}

/* Is there enough for e? */
static bool enough(const struct state *s, int r, int e)
{
	int reserved = (setting & RESERVE) ? owed_units(s, r, e) : 0;

	return in_use(s, r) + reserved + amount(e) <= size();
}

static void forget_entry(struct state *s, int r, int e)
{
	int k = 0;

	for (int i = 0; i < s->n[r]; i++)
		if (s->refused[r][i] != e + 1)
			s->refused[r][k++] = s->refused[r][i];
	for (int i = k; i < ENTITIES; i++)
		s->refused[r][i] = 0;
	s->n[r] = (uint8_t)k;
}

static void enter(struct state *s, int r, int e)
{
	forget_entry(s, r, e);
	int i = s->n[r]++;
	s->refused[r][i] = (uint8_t)(e + 1);
}

/* How many A is to have, of what it will yet use. */
static int wanted(const struct state *s) { return s->left[0] < 2 ? s->left[0] : 2; }

/* Inside r's critical section: chooses the entity that thread t must poke. */
static void offer(struct state *s, int r, int t)
{
	int i = 0;

	while (i < s->n[r] && !head_only() && !enough(s, r, s->refused[r][i] - 1))
		i++;
	if (i == s->n[r] || !enough(s, r, s->refused[r][i] - 1))
		return;
	int e = s->refused[r][i] - 1;
	if (mutation != KEEP_ENTRY) {
		forget_entry(s, r, e);
		s->owed[e] |= (uint8_t)(1 << r);
	}
	s->to_poke[t] |= (uint8_t)(1 << e);
	say(", offers it to %c", 'A' + e);
}

enum { IDLE, REVIEW, CLAIM, ENTER_LATE, GIVE_BACK, TICK, SETTLE, PASS_ON, LEAVE, RETIRE, CLEAN, CLEAN_LATE, FILL, KEEP_TICK, KEEP_SETTLE };

/* From a tick to the review behind it, it changes nothing: that begins with an exchange. */
static void poke(struct state *s, int e)
{
	uint8_t pc = s->pc[e];

	if (pc != TICK && pc != SETTLE && pc != KEEP_TICK && pc != KEEP_SETTLE)
		s->word[e] |= POKED;
	if (!(setting & PATIENT))
		s->waiting[e] = 0;              /* the timer waits for one that is not poked */
}

/* As one that is idle and was poked. */
static void review_again(struct state *s, int e)
{
	s->pc[e] = IDLE;
	s->word[e] = POKED;
	s->at[e] = 0;
}

static void tick_next(struct state *s, int e, int pc)
{
	s->pc[e] = (uint8_t)pc;
	s->word[e] = RUNNING;
	s->at[e] = 0;
	if (s->left[e] == 1)
		s->mood[e] = 0;                 /* it is asked before a tick */
}

/* The next resource from r on of those in the set. */
static uint8_t next_of(int set, int r)
{
	while (r < RESOURCES && !(set >> r & 1))
		r++;
	return (uint8_t)r;
}

static bool poke_pending(struct state *s, int t)
{
	for (int e = 0; e < ENTITIES; e++)
		if (s->to_poke[t] >> e & 1) {
			s->to_poke[t] &= (uint8_t)~(1 << e);
			poke(s, e);
			say("pokes %c", 'A' + e);
			return true;
		}
	return false;
}

/* The one critical section in which A takes what it keeps. */
static void fill(struct state *s)
{
	s->owed[0] &= (uint8_t)~1;
	s->owed_before[0] &= (uint8_t)~1;
	forget_entry(s, 0, 0);
	while (s->kept < wanted(s) && in_use(s, 0) < size())
		s->kept++;
	say("keeps %d", s->kept);
	if (s->kept < wanted(s)) {
		if (mutation != KEEPER_NOT_ENTERED && !(mutation == KEEPER_SHORT_NOT_ENTERED && s->kept)) {
			enter(s, 0, 0);
			say(", enters");
		}
	} else if (mutation != KEEPER_OFFERS_NOTHING) {
		offer(s, 0, 0);
	}
}

/* What it wants no longer. */
static void give_back_kept(struct state *s, int want)
{
	if (s->kept <= want)
		return;
	s->kept = (uint8_t)want;
	say("gives back what it kept");
	if (mutation != KEEPER_GIVES_BACK_SILENT)
		offer(s, 0, 0);
}

/* DONE: one critical section of r. */
static void clean(struct state *s, int e, int r)
{
	int marks = mutation == DONE_KEEPS_NEW_MARK ? s->owed[e] & s->owed_before[e] : s->owed[e];

	say("cleans up at resource %d", r);
	if (mutation != DONE_KEEPS_ENTRY && mutation != DONE_TWO_SECTIONS)
		forget_entry(s, r, e);
	if (!(marks >> r & 1) && !(keeper(e) && !r && s->kept))
		return;
	s->owed[e] &= (uint8_t)~(1 << r);
	if (keeper(e) && !r && mutation != KEEPER_DONE_KEEPS)
		s->kept = 0;
	if (mutation != DONE_SILENT && mutation != KEEPER_DONE_SILENT)
		offer(s, r, e);
}

/* From its k-th turn on. */
static void claim_next(struct state *s, int e, int k)
{
	while (k < RESOURCES && !(needs(e) >> turn(e, k) & 1))
		k++;
	s->at[e] = (uint8_t)k;
}

static void pass_on_next(struct state *s, int e, int r)
{
	s->at[e] = next_of(needs(e), r);
	s->pc[e] = PASS_ON;
	if (s->at[e] == RESOURCES && !(setting & STARVE)) {
		s->pc[e] = s->left[e] ? LEAVE : RETIRE;
		s->at[e] = 0;
		say(s->left[e] ? ", parks" : ", is to become DONE");
	}
}

static void give_back_next(struct state *s, int e, int r)
{
	s->pc[e] = GIVE_BACK;
	s->at[e] = next_of(s->claims[e], r);
	if (s->at[e] == RESOURCES)
		pass_on_next(s, e, 0);
}

static void settle_next(struct state *s, int e, int r)
{
	s->pc[e] = SETTLE;
	s->at[e] = next_of(s->claims[e], r);
	if (s->at[e] < RESOURCES)
		return;
	s->uses[e] = 0;
	review_again(s, e);
}

static void clean_next(struct state *s, int e, int r)
{
	s->pc[e] = CLEAN;
	s->at[e] = next_of(needs(e), r);
	if (s->at[e] < RESOURCES)
		return;
	s->pc[e] = IDLE;
	s->at[e] = s->owed_before[e] = 0;
	say(", is rid of everything");
}

static void tick(struct state *s, int e)
{
	if (setting & (CALM | STARVE | STRAY)) {
		s->uses[e] = (uint8_t)needs(e);
		say(", ticks, uses all");
	} else {
		int what = choose(4);                   /* 3 all, 0 nothing (or failed), 1 and 2 only one of them */
		s->uses[e] = (uint8_t)(what & needs(e));
		say(what ? ", ticks, uses 0x%x" : ", compute fails, uses nothing", what);
	}
	if (!(setting & STARVE) || e == 0)
		s->left[e]--;
	settle_next(s, e, 0);
}

static bool entity(struct state *s, int e)
{
	uint8_t *pc = &s->pc[e];
	int r, what, used = s->uses[e];

	if (poke_pending(s, e))
		return true;
	switch (*pc) {
	case IDLE:
		if (s->word[e] != POKED)
			return false;
		s->word[e] = RUNNING;
		s->owed_before[e] = s->owed[e];                 /* later marks are followed by a poke, and so by another review */
		*pc = REVIEW;
		say("-> RUNNING");
		if (setting & (STARVE | PATIENT))               /* else the review, up to its first claim, is of nothing shared */
			return true;
		say(", ");
		/* fall through */
	case REVIEW:
		s->waiting[e] = 0;
		if (!s->left[e] || ((setting & STARVE) && e && !s->left[0])) {
			say("review: NEVER");
			pass_on_next(s, e, 0);
		} else if (keeper(e)) {
			*pc = FILL;
			say("review: looks what it may keep");
		} else if (s->mood[e] && (what = choose(3))) {
			s->mood[e] = 0;
			s->waiting[e] = what == 1;
			if (what == 2)
				s->left[e] = 0;
			say(what == 1 ? "review: WAIT for the timer" : "review: NEVER (stopped)");
			pass_on_next(s, e, 0);
		} else {
			*pc = CLAIM;
			claim_next(s, e, 0);
			say("review: READY");
		}
		return true;
	case CLAIM:
		r = turn(e, s->at[e]);
		if (enough(s, r, e)) {
			s->owed[e] &= (uint8_t)~(1 << r);
			s->owed_before[e] &= (uint8_t)~(1 << r);
			forget_entry(s, r, e);
			s->claimed[r] = (uint8_t)(s->claimed[r] + amount(e));
			s->claims[e] |= (uint8_t)(1 << r);
			say("claims %d of resource %d", amount(e), r);
			if (!claim_silent())
				offer(s, r, e);
			claim_next(s, e, s->at[e] + 1);
			if (s->at[e] < RESOURCES)
				return true;
			tick_next(s, e, TICK);
			if (!(setting & STARVE))                /* where others look at what is left */
				tick(s, e);
			return true;
		}
		say("too little of resource %d", r);
		if (mutation == REFUSE_OUTSIDE) {
			s->seen_full[e] = (uint8_t)(r + 1);
			*pc = ENTER_LATE;
			return true;
		}
		s->owed[e] &= (uint8_t)~(1 << r);
		s->owed_before[e] &= (uint8_t)~(1 << r);
		enter(s, r, e);
		say(", enters as refused");
		give_back_next(s, e, 0);
		return true;
	case ENTER_LATE:
		r = s->seen_full[e] - 1;
		s->seen_full[e] = 0;
		s->owed[e] &= (uint8_t)~(1 << r);
		enter(s, r, e);
		say("enters as refused at resource %d, late", r);
		give_back_next(s, e, 0);
		return true;
	case GIVE_BACK:
		r = s->at[e];
		s->claims[e] &= (uint8_t)~(1 << r);
		s->claimed[r] = (uint8_t)(s->claimed[r] - amount(e));
		say("gives back what it claimed of resource %d", r);
		if (mutation != GIVE_BACK_SILENT)
			offer(s, r, e);
		give_back_next(s, e, r + 1);
		return true;
	case TICK:
		tick(s, e);
		return true;
	case SETTLE:
		r = s->at[e];
		settle_next(s, e, r + 1);
		if (mutation == FAIL_KEEPS && !used)
			return true;
		s->claims[e] &= (uint8_t)~(1 << r);
		s->claimed[r] = (uint8_t)(s->claimed[r] - amount(e));
		if (used >> r & 1) {
			s->out[r][used_by(e)]++;
			say("has used resource %d", r);
		} else {
			say("releases resource %d unused", r);
			if (mutation != UNUSED_SILENT)
				offer(s, r, e);
		}
		return true;
	case FILL:
		fill(s);
		if (!s->kept) {
			pass_on_next(s, e, 0);
			return true;
		}
		if (!s->mood[e] || !(what = choose(3))) {
			tick_next(s, e, KEEP_TICK);
			return true;
		}
		s->mood[e] = 0;
		s->waiting[e] = what == 1;
		if (what == 2)
			s->left[e] = 0;
		say(what == 1 ? ", WAIT for the timer" : ", NEVER (stopped)");
		pass_on_next(s, e, 0);
		return true;
	case KEEP_TICK:
		s->left[e]--;
		if (choose(2)) {
			s->kept--;
			s->out[0][used_by(e)]++;
			say("ticks, uses one");
		} else {
			say("ticks, its message needs none");
		}
		*pc = KEEP_SETTLE;
		return true;
	case KEEP_SETTLE:
		give_back_kept(s, wanted(s));
		review_again(s, e);
		return true;
	case PASS_ON:
		if (s->at[e] == RESOURCES) {
			*pc = s->left[e] && !((setting & STARVE) && e && !s->left[0]) ? LEAVE : RETIRE;
			s->at[e] = 0;
			say(*pc == LEAVE ? "parks" : "is to become DONE");
			return true;
		}
		r = s->at[e];
		if (((mutation == PASS_ON_NEW ? s->owed[e] : s->owed[e] & s->owed_before[e]) >> r & 1) && mutation != NO_PASS_ON) {
			s->owed[e] &= (uint8_t)~(1 << r);
			say("does not use what it was offered of resource %d", r);
			offer(s, r, e);
		}
		pass_on_next(s, e, r + 1);
		return true;
	case LEAVE:
		if (s->word[e] == RUNNING) {
			s->word[e] = 0;
			*pc = IDLE;
			s->owed_before[e] = 0;
			say("leaves: IDLE");
		} else {
			review_again(s, e);
			say("was poked");
		}
		return true;
	case RETIRE:
		if (s->word[e] != RUNNING && mutation != DONE_BLINDLY) {
			s->word[e] = RUNNING;
			say("was poked: again");
			return true;
		}
		s->word[e] = DONE;
		say("DONE");
		clean_next(s, e, 0);
		return true;
	case CLEAN:
		clean(s, e, s->at[e]);
		if (mutation == DONE_TWO_SECTIONS)
			*pc = CLEAN_LATE;
		else
			clean_next(s, e, s->at[e] + 1);
		return true;
	case CLEAN_LATE:
		r = s->at[e];
		forget_entry(s, r, e);
		say("removes its entry at resource %d, late", r);
		clean_next(s, e, r + 1);
		return true;
	}
	return false;
}

/* Used units come back, in any order. */
static bool brings_back(struct state *s, int r)
{
	int t = ENTITIES + r, two;

	if (poke_pending(s, t))
		return true;
	if (!s->out[r][0] && !s->out[r][1])
		return false;
	two = s->out[r][0] && s->out[r][1] ? choose(2) : s->out[r][1] > 0;
	s->out[r][two]--;
	say("%d of resource %d, which a tick used, comes back", 1 + two, r);
	offer(s, r, t);
	return true;
}

static bool others_go_on(const struct state *s, int e)
{
	for (int i = 0; i < ENTITIES; i++)
		if (i != e && !(s->word[i] & DONE) && !s->waiting[i])
			return true;
	return false;
}

static bool timer(struct state *s)
{
	for (int e = 0; e < ENTITIES; e++)
		if (s->waiting[e] && s->word[e] == 0 && !((setting & PATIENT) && others_go_on(s, e))) {
			s->waiting[e] = 0;
			poke(s, e);
			say("pokes %c", 'A' + e);
			return true;
		}
	if (!(setting & STRAY) || s->stray == 7)
		return false;
	int e = choose(ENTITIES);
	if (s->stray >> e & 1)
		return false;
	s->stray |= (uint8_t)(1 << e);
	poke(s, e);
	say("pokes %c for nothing", 'A' + e);
	return true;
}

static void begin(struct state *s)
{
	for (int e = 0; e < ENTITIES; e++) {
		s->word[e] = POKED;
		s->left[e] = keeper(e) ? 3 : (setting & (STARVE | STRAY)) ? 1 : needs(e) ? (e == 0 ? 2 : 1) : 0;
		s->mood[e] = (setting & (STARVE | CROSSED)) ? 0 : (setting & STRAY) ? e == 2 : keeper(e) || e != 1;
	}
}

static bool step(struct state *s, int t)
{
	return t < ENTITIES ? entity(s, t) : t < TIMER ? brings_back(s, t - ENTITIES) : timer(s);
}

static void check(const struct state *s)
{
	for (int r = 0; r < RESOURCES; r++) {
		bool waits = false, told_somebody = owed_units(s, r, -1);
		if (in_use(s, r) > size())
			fail("more of resource %d is in use than there is", r);
		for (int i = 0; i < s->n[r]; i++) {
			waits |= enough(s, r, s->refused[r][i] - 1);
			told_somebody |= (s->word[s->refused[r][i] - 1] & ~DONE) != 0;
		}
		for (int t = 0; t < THREADS; t++)
			told_somebody |= s->to_poke[t] != 0;
		if ((setting & KEEPER) && !r && !s->word[0] && s->kept < wanted(s) && in_use(s, 0) < size() && !told_somebody)
			fail("A waits, keeps less than it wants, there is one, and none was told");
		if (waits && !told_somebody)
			fail("enough of resource %d, an entity refused, and none was told", r);
	}
}

static void at_end(const struct state *s)
{
	for (int e = 0; e < ENTITIES; e++)
		if (!(s->word[e] & DONE))
			fail("%c waits for ever (%s)", 'A' + e, enough(s, 0, e) && enough(s, 1, e) ? "there is enough" : "something was never given back");
}

static const struct run runs[] = {
	{"rules, 3 entities {01}{01}{1}, size 1", NONE, 0, HOLDS},
	{"rules, 3 entities {01}{01}{1}, size 2", NONE, SIZE2, HOLDS},
	{"rules, 3 entities one resource, size 1", NONE, ONE, HOLDS},
	{"rules, 3 entities one resource, size 2", NONE, ONE | SIZE2, HOLDS},
	{"rules, amounts: A needs 2 of 2, B and C need 1", NONE, AMOUNTS, HOLDS},
	{"rules, one resource, stray pokes, size 1", NONE, ONE | STRAY, HOLDS},
	{"rules, amounts, stray pokes", NONE, AMOUNTS | STRAY, HOLDS},
	{"rules, one resource, who waits waits for the others", NONE, ONE | PATIENT, HOLDS},
	{"rules, two resources, who waits waits for the others", NONE, PATIENT, HOLDS},
	{"rules, two entities {01}{01}, ascending", NONE, CROSSED, HOLDS},
	{"a claim offers nothing, the oldest only; one unit a claim, size 1", AS_WRITTEN, 0, HOLDS},
	{"a claim offers nothing, the oldest only; one unit a claim, size 2", AS_WRITTEN, ONE | SIZE2, HOLDS},
	{"AS WRITTEN a claim offers nothing, the oldest only; amounts", AS_WRITTEN, AMOUNTS, BREAKS},
	{"AS WRITTEN a claim that leaves something offers nothing; amounts", CLAIM_OFFERS_NOTHING, AMOUNTS, BREAKS},
	{"AS WRITTEN only the oldest is offered, even if it is too little for it", OLDEST_ONLY, AMOUNTS, BREAKS},
	{"rules, A keeps what it claims, size 1", NONE, KEEPER, HOLDS},
	{"rules, A keeps what it claims, size 2", NONE, KEEPER | SIZE2, HOLDS},
	{"rules, A keeps two of three, who waits waits for the others", NONE, KEEPER | SIZE2 | PATIENT, HOLDS},
	{"AS WRITTEN A keeps two of two, who waits waits for the others", NONE, KEEPER | PATIENT, BREAKS},
	{"MUTANT KEEPER finds too little and does not enter", KEEPER_NOT_ENTERED, KEEPER | SIZE2, BREAKS},
	{"MUTANT KEEPER has some, is short of two and does not enter", KEEPER_SHORT_NOT_ENTERED, KEEPER | SIZE2, BREAKS},
	{"MUTANT KEEPER takes what it wants and offers none of the rest", KEEPER_OFFERS_NOTHING, KEEPER | SIZE2, BREAKS},
	{"MUTANT KEEPER gives back what it wants no longer, and offers it to none", KEEPER_GIVES_BACK_SILENT, KEEPER | SIZE2, BREAKS},
	{"MUTANT KEEPER is DONE and keeps what it kept", KEEPER_DONE_KEEPS, KEEPER | SIZE2, BREAKS},
	{"MUTANT KEEPER is DONE and offers what it kept to none", KEEPER_DONE_SILENT, KEEPER | SIZE2, BREAKS},
	{"RESERVE (what is owed is kept for its entity), size 1", NONE, RESERVE, BREAKS},
	{"RESERVE, size 2", NONE, RESERVE | SIZE2, HOLDS},
	{"MUTANT one of the two claims in descending order", DESCENDING, CROSSED | CALM, BREAKS},
	{"descending + RESERVE", DESCENDING, CROSSED | CALM | RESERVE, BREAKS},
	{"MUTANT too little and entered in two critical sections", REFUSE_OUTSIDE, CALM, BREAKS},
	{"MUTANT the poke is not passed on", NO_PASS_ON, ONE | PATIENT, BREAKS},
	{"MUTANT who gives back pokes the oldest but leaves its entry in the list", KEEP_ENTRY, SIZE2 | CALM, BREAKS},
	{"MUTANT passes on also what it was offered during this review", PASS_ON_NEW, RESERVE, BREAKS},
	{"MUTANT giving back pokes nobody", GIVE_BACK_SILENT, 0, BREAKS},
	{"MUTANT an unused claim pokes nobody", UNUSED_SILENT, 0, BREAKS},
	{"MUTANT a failed compute keeps its claims", FAIL_KEEPS, 0, BREAKS},
	{"MUTANT DONE: its entry stays in the list", DONE_KEEPS_ENTRY, ONE | STRAY, BREAKS},
	{"MUTANT DONE: takes back only marks that it knew when its review began", DONE_KEEPS_NEW_MARK, ONE | STRAY, BREAKS},
	{"MUTANT DONE: mark and entry in two critical sections", DONE_TWO_SECTIONS, ONE | STRAY, BREAKS},
	{"MUTANT DONE: does not pass on", DONE_SILENT, ONE | STRAY, BREAKS},
	{"DONE exchanged in, whatever the state is: an entity without inbox", DONE_BLINDLY, ONE | STRAY, HOLDS},
	{"AS WRITTEN (what is free is anybody's): can A {01} starve? B {0}, C {1} for ever", NONE, STARVE, BREAKS},
	{"AS WRITTEN (what is free is anybody's): one resource, can A starve?", NONE, STARVE | ONE, BREAKS},
	{"RESERVE: one resource, can A starve?", NONE, STARVE | ONE | RESERVE, HOLDS},
	{"MUTANT RESERVE, but passes on what it was offered during this review", PASS_ON_NEW, STARVE | ONE | RESERVE, BREAKS},
	{"RESERVE: A {01}, B {0}, C {1} for ever", NONE, STARVE | RESERVE, BREAKS},
	{"RESERVE: A {01}, B {01}, C {01} for ever", NONE, STARVE | RESERVE | STARVE_WIDE, BREAKS},
	{0}
};

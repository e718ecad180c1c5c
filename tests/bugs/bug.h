/*
 * Seeded bugs: run-time switches of the seam build, by which CI proves that the tests find them. bugs.txt
 * says what each one does to the source.
 */
#ifndef TESTS_BUGS_BUG_H
#define TESTS_BUGS_BUG_H

#include <stdbool.h>
#include <stddef.h>

enum wr_bug {
	WR_BUG_NONE,
	WR_BUG_CHECK_THEN_STORE, /* lost wake-up: check, then store */
	WR_BUG_BLIND_IDLE,       /* changes the state to IDLE by a store */
	/* poke reads the state first and skips on QUEUED, after a relaxed store */
	WR_BUG_POKE_SKIPS,
	WR_BUG_ROOM_BY_LOOKING,        /* room is freed when the front is closed, not by the tick */
	WR_BUG_CLOSED_AFTER_COUNT,     /* `closed` is read after the count */
	WR_BUG_STATE_BEFORE_REFERENCE, /* poke changes the state, then takes its reference */
	WR_BUG_GIVEN_BACK_TO_CLOSED,   /* work is returned to a closed run */
	WR_BUG_READY_NOT_BOUND,        /* READY is not bound to the front: compute receives newer messages */
	WR_BUG_PAYLOAD_EARLY,          /* a payload is freed before its reader on the GPU is done */
	WR_BUG_TOKEN_WITHOUT_GENERATION, /* a callback fires its slot whatever its generation */
	WR_BUG_FLIGHT_NOT_ASKED,         /* max_in_flight takes ticks that were not queried for complete */
	WR_BUG_OWN_FENCE_NOT_ARMED,      /* fences that no message of the front brought are not armed */
	WR_BUG_MARKED_BEFORE_PUSH,       /* a sender marks its queue as new, then pushes */
	WR_BUG_LOOKED_BEFORE_MARK,       /* the receiver reads a queue, then resets its mark */
	WR_BUG_UNFINISHED_TAKEN,         /* an outlet returns a message whose device work is not complete */
	WR_BUG_GATE_AFTER_PUSH,          /* that a message has fences is noted after its push */
	/* that note is read before the front is closed, in the review before */
	WR_BUG_GATE_BEFORE_FRONT,
	/* a thread checks an inlet's room, then announces that it waits for it */
	WR_BUG_INLET_WAITS_UNSEEN,
	WR_BUG_DESCRIPTOR_POKE_FIRST, /* the loop pokes an entity, then marks its descriptor as not armed */
	WR_BUG_DESCRIPTOR_SILENT,     /* a descriptor is watched without a poke */
	WR_BUG_ONE_SCRATCH,           /* all streams of an entity have one stack of scratch memory */
	WR_BUG_SCRATCH_LENT,          /* a stack is used again while another stream goes on with it */
	WR_BUG_STUCK_UNCOUNTED,       /* what is told to stand for ever may have ticked between the looks */
	WR_BUG_OUTGROWN_EARLY,        /* a stack that was outgrown is freed while earlier ticks use it */
	/* claims: the mutants of the model m2_claim */
	WR_BUG_CLAIM_REFUSED_OUTSIDE,
	WR_BUG_CLAIM_NOT_PASSED_ON,
	WR_BUG_CLAIM_ENTRY_KEPT,
	WR_BUG_CLAIM_GIVEN_BACK_SILENT,
	WR_BUG_CLAIM_UNUSED_SILENT,
	WR_BUG_CLAIM_UNUSED_KEPT,
	WR_BUG_CLAIM_DESCENDING,
	WR_BUG_CLAIM_OLDEST_ONLY,
	WR_BUG_CLAIM_OFFERS_NOTHING,
	WR_BUG_CLAIM_AS_WRITTEN,
	WR_BUG_CLAIM_DONE_KEEPS_ENTRY,
	WR_BUG_CLAIM_DONE_KEEPS_NEW_OFFER,
	WR_BUG_CLAIM_DONE_IN_TWO_SECTIONS,
	WR_BUG_CLAIM_DONE_SILENT,
	/* who holds memory: the mutants of the model m15_held */
	WR_BUG_HELD_NOTED_LATE,
	WR_BUG_HELD_POKED_LATE,
	WR_BUG_HELD_OWED_FORGOTTEN,
	WR_BUG_HELD_STICKS,
	WR_BUG_HELD_NOT_KICKED,
	WR_BUG_HELD_FREE_NOT_KICKED,
	WR_BUG_HELD_LOOKED_LATE,
	WR_BUG_HELD_NOT_ALONE,
	WR_BUG_HELD_NOT_LAST,
	WR_BUG_HELD_LEFT_FIRST,
	WR_BUG_HELD_OUTSIDE_FIRST,
};

extern enum wr_bug wr_bug_active;
#define WR_BUG(name) (wr_bug_active == WR_BUG_##name)

/* A safety net would hide what a protocol loses, so some worlds run without nets. */
extern bool wr_nets;
/* A port of up to this many connections has no set (WR_FAN_IN_FEW); random, so that small graphs have sets,
 * too. */
extern size_t wr_fan_in_few;

#endif

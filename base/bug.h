/*
 * Seeded bugs: run-time switches of the seam build, so that CI can prove that the tests find them. Elsewhere
 * WR_BUG(x) is the constant false and costs nothing.
 */
#ifndef WR_BASE_BUG_H
#define WR_BASE_BUG_H

#include <stdbool.h>

enum wr_bug {
	WR_BUG_NONE,
	WR_BUG_CHECK_THEN_STORE,	/* lost wake-up: check, then store */
	WR_BUG_BLIND_IDLE,		/* leaves to IDLE by a store */
	WR_BUG_POKE_SKIPS,		/* poke looks first and skips on QUEUED, after a relaxed store */
	WR_BUG_ROOM_BY_LOOKING,		/* room is freed when the front is closed, not by the tick */
	WR_BUG_CLOSED_AFTER_COUNT,	/* `closed` is read after the count */
	WR_BUG_STATE_BEFORE_REFERENCE,	/* poke changes the state, then takes its reference */
	WR_BUG_GIVEN_BACK_TO_CLOSED,	/* work is given back to a closed run */
	WR_BUG_READY_NOT_BOUND,		/* READY is not bound to the front: compute receives newer messages */
	WR_BUG_PAYLOAD_EARLY,		/* a payload is freed before its reader on the GPU is done */
	WR_BUG_TOKEN_WITHOUT_GENERATION,
	WR_BUG_FLIGHT_NOT_ASKED,	/* max_in_flight takes ticks that nobody asked about for complete */
	WR_BUG_OWN_FENCE_NOT_ARMED,	/* fences that no message of the front brought are not armed */
	WR_BUG_MARKED_BEFORE_PUSH,	/* a sender marks its queue as having news, then pushes */
	WR_BUG_LOOKED_BEFORE_MARK,	/* the receiver looks at a queue, then resets its mark */
	WR_BUG_UNFINISHED_TAKEN,	/* an outlet gives what work on the device is still making */
	WR_BUG_GATE_AFTER_PUSH,		/* that a message has fences is said after its push */
	WR_BUG_GATE_BEFORE_FRONT,	/* that was looked at before the front is closed, in the review before */
	WR_BUG_INLET_WAITS_UNSEEN,	/* who waits for an inlet's room looks, then says that it waits */
};

#ifdef WR_SEAM
extern enum wr_bug wr_bug_active;
#define WR_BUG(name) (wr_bug_active == WR_BUG_##name)
#else
#define WR_BUG(name) false
#endif

/* A net that catches what a protocol loses would hide the loss: some worlds go without. */
#ifdef WR_SEAM
extern bool wr_nets;
#define WR_NET wr_nets
#else
#define WR_NET true
#endif

#endif

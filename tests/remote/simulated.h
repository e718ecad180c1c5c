/*
 * A transport of simulated worlds, whose sides are in one of them: a seed decides when a message comes,
 * in which order, when a payload is filled, when the sender is told that it was, when the connection is lost
 * and when each side hears of it, and what strangers connect. It reads what is sent and writes where it is
 * received as late as it may, and writes garbage there until then.
 *
 * It is as strict as an engine may be: its descriptor becomes readable only for what comes while it is armed,
 * which `progress` does last, and any use of the link ends (R4). What a side owes the other by R1 is checked
 * where a message passes, what it does with a block of the link's where that is read (R3), and that no side
 * sleeps while the link has news, or keeps a connection on which a payload was torn, whenever the world is at
 * rest. Of a connection whose payload is torn no loss is told, until a side drops it. A side that is silent
 * is lost in time, and no other one (R7, simulated_silence.c).
 *
 * It replaces the system's timers and clock in the world (simulated_time.c), so that the times of remote/ are
 * the world's.
 */
#ifndef TESTS_REMOTE_SIMULATED_H
#define TESTS_REMOTE_SIMULATED_H

#include "remote/remote.h"

enum simulated_side { SIMULATED_SENDER, SIMULATED_RECEIVER };

/* What befalls the link. */
struct simulated_plan {
	unsigned places;    /* of the receiver */
	unsigned cuts;      /* losses of a connection, at random instants */
	unsigned tears;     /* payloads that do not come */
	bool full;          /* a cut waits until all places of the receiver are used */
	unsigned strangers; /* that connect */
	unsigned refusals;  /* of connections, for no reason */
	unsigned silences;  /* for a while nothing comes to a side, or to both, or a process stands still */
	int64_t silence;    /* ns that one of them takes, at most */
};

/* What befell it so far. */
struct simulated_seen {
	unsigned cuts, greeted; /* cuts: tears, and what silence ended, too; greeted: hellos of a sender that
				   were answered */
	unsigned first;         /* the number that the first hello to the last receiver told */
	unsigned missed;        /* messages that the receiver can know that it did not get, since it began */
	unsigned replaced;      /* welcomes to another sender than the one before */
	unsigned received;      /* messages that were whole, behind those before them (R2) */
	bool done_lost;         /* an answer to the end: what the sender cannot know (R6) */
	unsigned lost;          /* messages under way that went down with a connection */
	bool enough;            /* the sink takes no more: what is emitted then is dropped, not under way */
};

/* Messages between the receiver and what calls simulated_came, at most. */
enum { SIMULATED_BEHIND = 3 };

extern struct simulated_seen simulated_seen;

/* In a world, in which it starts a fiber. `fails` hears of each broken promise. */
void simulated_begin(uint64_t seed, const struct simulated_plan *plan,
		     void (*fails)(const char *format, ...) WEIR_PRINTF(1, 2));
void simulated_end(void);
/*
 * The process whose entity has this state dies: it says no word more, and the other side hears of it later,
 * or, if its machine died, by silence alone.
 */
void simulated_crash(const void *state);
/* The sink has got a message. */
void simulated_came(void);
/*
 * While the world is at rest: an entity with this state, which is not done, sleeps only if its link has no
 * news.
 */
void simulated_look(const void *state);

/* --- simulated_time.c --- */

void simulated_time_begin(uint64_t seed);
int64_t simulated_time_next(void);     /* when a timer fires next; INT64_MAX: none does */
void simulated_time_fire(int64_t now); /* those that are due */
void simulated_wake(void);             /* a timer was set */

#endif

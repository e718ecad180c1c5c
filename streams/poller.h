/* What the poller of the flags watches (G4); what it does stands in streams.h. No lock: see poller.c. */
#ifndef WR_STREAMS_POLLER_H
#define WR_STREAMS_POLLER_H

#include "streams/estimate.h"
#include "streams/streams.h"

struct wr_signal;
struct wr_armed_flag;

struct wr_poller {
	_Atomic(struct wr_signal *) inbox;	/* armed, and not yet in the list */
	_Atomic size_t armed;			/* in the inbox or the list */
	_Atomic uint64_t version;		/* grows with each that is put into the inbox */
	_Atomic bool looking;			/* somebody looks: the list is his */
	struct wr_armed_flag *list;
	size_t count, room;
	struct wr_estimate lateness;		/* of sleeps. Who plays the role */
	_Atomic int64_t margin;
	bool spins;				/* the backend's; tests set it before a run */
};

void wr_poller_init(struct wr_poller *poller, bool spins);
void wr_poller_finish(struct wr_poller *poller);
/*
 * All tokens were revoked: takes back what has ended, which is
 * all. Waits for who still looks. Thread: who detaches.
 */
void wr_flags_reap(struct wr_system *system);

#endif

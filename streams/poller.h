/* The poller of the flags (G4); its functions are in streams.h. It has no lock: see poller.c. */
#ifndef WR_STREAMS_POLLER_H
#define WR_STREAMS_POLLER_H

#include "streams/estimate.h"
#include "streams/streams.h"

struct wr_signal;
struct wr_armed_flag;

struct wr_poller {
	_Atomic(struct wr_signal *) inbox; /* armed, and not yet in the list */
	_Atomic size_t armed;              /* signals in the inbox or the list */
	_Atomic uint64_t version;          /* grows with each signal that is put into the inbox */
	_Atomic bool looking;              /* a thread polls, and owns list, count and room */
	struct wr_armed_flag *list;
	size_t count, room;
	struct wr_estimate lateness; /* of sleeps. Used by the worker that is the poller */
	_Atomic int64_t margin;      /* how much earlier a sleep must end */
	bool spins;                  /* the backend's; tests set it before a run */
};

void wr_poller_init(struct wr_poller *poller, bool spins);
void wr_poller_finish(struct wr_poller *poller);
/*
 * Recycles all signals by flag, whose tokens have all ended, once no
 * thread polls any more. Thread: the one that detaches.
 */
void wr_flags_reap(struct wr_system *system);

#endif

/*
 * The live counter (S4): one word that says whether a run can go on. Bits 0-31 count references, bit 32 is
 * CLOSED, bits 33-63 are the epoch (how often the count left 0; it may wrap).
 *
 * The thread that takes the first reference increments the epoch before it drops that reference. So the epoch
 * is exact while the count is 0, and the CAS (0, epoch) -> CLOSED fails if anything was alive meanwhile. Only
 * a read-modify-write may decide that the run is closed (S8).
 */
#ifndef WR_SCHEDULER_LIVE_H
#define WR_SCHEDULER_LIVE_H

#include "base/atomic.h"

#define WR_LIVE_COUNT  UINT64_C(0xffffffff)
#define WR_LIVE_CLOSED (UINT64_C(1) << 32)
#define WR_LIVE_EPOCH  (UINT64_C(1) << 33)

typedef _Atomic uint64_t wr_live;

static inline bool wr_live_closed(wr_live *live)
{
	return wr_load(live) & WR_LIVE_CLOSED;
}

static inline uint64_t wr_live_count(wr_live *live)
{
	return wr_load(live) & WR_LIVE_COUNT;
}

/* Takes a reference. Returns false if the run is closed; the caller must drop the reference all the same. */
static inline bool wr_live_take(wr_live *live)
{
	uint64_t before = wr_fetch_add(live, 1);

	if (before & WR_LIVE_CLOSED)
		return false;
	if (!(before & WR_LIVE_COUNT))
		wr_fetch_add(live, WR_LIVE_EPOCH);
	return true;
}

/* Drops a reference. Returns true if the count is now 0: the caller must kick the loop. */
static inline bool wr_live_drop(wr_live *live)
{
	return (wr_fetch_sub(live, 1) & WR_LIVE_COUNT) == 1;
}

/* Closes the counter if the word is still `seen`, read at a count of 0. */
static inline bool wr_live_close_idle(wr_live *live, uint64_t seen)
{
	return !(seen & (WR_LIVE_COUNT | WR_LIVE_CLOSED)) && wr_cas(live, &seen, seen | WR_LIVE_CLOSED);
}

static inline void wr_live_close(wr_live *live) /* whatever the count */
{
	wr_fetch_or(live, WR_LIVE_CLOSED);
}

/* Opens a closed counter at count 0 and takes the references of all entries and workers, in one step (S8). */
static inline void wr_live_open(wr_live *live, uint64_t references)
{
	wr_fetch_add(live, references - WR_LIVE_CLOSED);
}

#endif

/* What the failure of a system does to the run. */
#ifndef WR_STREAMS_FAILURE_H
#define WR_STREAMS_FAILURE_H

#include "streams/streams.h"

/*
 * system->on_failure: writes the report, sets `failed`, ends all tokens and pokes all refused entities.
 * Called once, by the thread that sets `failing`.
 */
void wr_failure_announce(struct wr_system *system, const char *what);

#endif

/* What the simulation of claims sees of the library. */
#ifndef TESTS_SCHEDULER_DST_CLAIMS_H
#define TESTS_SCHEDULER_DST_CLAIMS_H

#include "base/clock.h"
#include "base/thread.h"
#include "rest.h"
#include "scheduler/memory_pool.h"
#include "sim/random.h"
#include "sim/simulation.h"
#include "streams/host/sim.h"
#include "streams/token.h"
#include "tests/bugs/bug.h"

/* The seeded bugs of claims: X(name, bug). */
#define DST_CLAIM_BUGS(X)                                                                                    \
	X("claim_refused_outside", CLAIM_REFUSED_OUTSIDE)                                                    \
	X("claim_not_passed_on", CLAIM_NOT_PASSED_ON)                                                        \
	X("claim_entry_kept", CLAIM_ENTRY_KEPT)                                                              \
	X("claim_given_back_silent", CLAIM_GIVEN_BACK_SILENT)                                                \
	X("claim_unused_silent", CLAIM_UNUSED_SILENT)                                                        \
	X("claim_unused_kept", CLAIM_UNUSED_KEPT)                                                            \
	X("claim_descending", CLAIM_DESCENDING)                                                              \
	X("claim_oldest_only", CLAIM_OLDEST_ONLY)                                                            \
	X("claim_offers_nothing", CLAIM_OFFERS_NOTHING)                                                      \
	X("claim_as_written", CLAIM_AS_WRITTEN)                                                              \
	X("claim_done_keeps_entry", CLAIM_DONE_KEEPS_ENTRY)                                                  \
	X("claim_done_keeps_new_offer", CLAIM_DONE_KEEPS_NEW_OFFER)                                          \
	X("claim_done_in_two_sections", CLAIM_DONE_IN_TWO_SECTIONS)                                          \
	X("claim_done_silent", CLAIM_DONE_SILENT)

#endif

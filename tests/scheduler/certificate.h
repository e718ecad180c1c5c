/*
 * A certificate that a run was over: from what is left, which the counts and the plan show, no entity could
 * have gone on. It asks no condition and no claim, and calls nothing that does.
 */
#ifndef TESTS_SCHEDULER_CERTIFICATE_H
#define TESTS_SCHEDULER_CERTIFICATE_H

#include "scheduler/graph.h"
#include "scheduler/memory.h"
#include "scheduler/scheduler.h"

/*
 * Returns an entity that could tick or should be DONE; NULL: none. After a run with WEIR_OK or
 * WEIR_E_DEADLOCK that was not stopped. What the device did is complete, times pass, and memory that no queue
 * holds comes back: the run must not end while the program holds it. So do not ask where operators keep
 * memory. Conditions of unknown kinds, and those that were told to wait, count as not met.
 */
const weir_entity *certificate_refuted_by(const weir_scheduler *scheduler);

#endif

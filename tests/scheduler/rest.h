/*
 * What must hold of a run whenever its world is at rest (wr_sim_at_rest), that is whenever time passes in it: no work
 * waits beside a worker that sleeps, and the watch comes back where the device has something left to do. Each wake-up that is left out, or is not passed on, shows here, also where
 * it costs nothing but time.
 */
#ifndef TESTS_SCHEDULER_REST_H
#define TESTS_SCHEDULER_REST_H

#include "scheduler/scheduler.h"

const char *rest_broken(weir_scheduler *scheduler);	/* NULL: it holds, or no run is on */

#endif

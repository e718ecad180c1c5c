/*
 * What must hold of a run whenever its world is at rest (wr_sim_at_rest), that is whenever time passes in it:
 * no work waits while a worker sleeps, and the periodic watch comes back while the device has work.
 * Each wake-up that is missing, or not passed on, shows here, even if it costs only time.
 */
#ifndef TESTS_SCHEDULER_REST_H
#define TESTS_SCHEDULER_REST_H

#include "scheduler/memory.h"
#include "scheduler/scheduler.h"
#include "streams/system.h"

/* The loop looks so often for what stands for ever, whatever time it has stood. */
void rest_look_often(weir_scheduler *scheduler, int64_t every);
const char *rest_broken(weir_scheduler *scheduler); /* what is broken; NULL: nothing, or no run */
/*
 * S3: memory is free, and this entity, which sleeps and asks for memory in each review, lacks some of what it
 * keeps, and is not told.
 */
bool rest_memory_unheard(const weir_entity *entity);
uint64_t rest_memory_used(const weir_graph *graph); /* units of all pools, also what is kept */

#endif

/* A run, from its start to its end. docs/dev/rules.md (S) describes the protocol. */
#ifndef WR_SCHEDULER_RUN_H
#define WR_SCHEDULER_RUN_H

#include "scheduler/scheduler.h"
#include "sim/simulation.h"

/* --- its course --- */
weir_status wr_run_start(weir_scheduler *scheduler);
void wr_run_turn(weir_scheduler *scheduler); /* loop thread: does what is due; never blocks */
/* The same, called by the loop; ends it if the scheduler is destroyed. */
void wr_run_on_turn(void *scheduler);
/* Call when the workers have left and the live count is 0. Finds the verdict, stops the operators. */
void wr_run_end(weir_scheduler *scheduler);
/* The sum of what its entities count, each its own. Thread: any. */
uint64_t wr_graph_count_ticks(const weir_graph *graph);
/* Drops the live references that a run cut short has left (S4). */
void wr_run_release_leftovers(weir_scheduler *scheduler);

/* --- the operators' stop functions --- */
/* Makes the calls that are owed; an operator whose work still hangs is never stopped. */
void wr_operators_stop_before_destroy(weir_scheduler *scheduler);

/* --- failing and stopping --- */
/*
 * Fails the run with this thread's last error; entity: the one that failed, or NULL. Only the first failure
 * is kept. Thread: any.
 */
void wr_run_fail(weir_scheduler *scheduler, const weir_entity *entity, weir_cause cause, weir_status status);

static inline bool wr_run_ended(weir_scheduler *scheduler)
{
	return wr_load(&scheduler->phase) == WR_ENDED;
}

/*
 * The way into a simulated world. Its locks, conditions and clock are for its fibers: a program's thread that
 * waited on one would wait for ever, since the fibers run only while a thread drives them. So a public call
 * that locks, waits or reads the time of a run does so in a function of its own, which runs as a fiber while
 * the calling thread drives the world; only one thread at a time may do so. That is why such a function takes
 * its arguments through one pointer. Any thread may poke, but a poke from outside must not touch anything
 * that fibers wait on.
 *
 * Returns what fn returns. fn is called directly if there is no world or the caller is in it already. Fails:
 * WEIR_E_DEADLOCK, WEIR_E_TIMEOUT of the world.
 */
typedef weir_status wr_world_fn(weir_scheduler *scheduler, void *arg);
weir_status wr_world_call(weir_scheduler *scheduler, wr_world_fn *fn, void *arg);

/* --- descriptors of conditions: loop.c --- */
/* Arms the descriptors that the entity waits for. Fails: WEIR_E_INVALID, WEIR_E_IO. Thread: owner. */
weir_status wr_descriptors_arm(weir_scheduler *scheduler, weir_entity *entity);
/* "has waited 1.2 s for descriptor 7 (readable)"; false: it waits for none. Thread: the entity's owner. */
bool wr_descriptor_describe(struct wr_condition *condition, char *text, size_t room);
/* Ends all watches, before the operators' stop functions close their descriptors. No worker runs. */
void wr_descriptors_forget(weir_scheduler *scheduler);

#endif

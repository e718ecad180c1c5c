/*
 * A part of the graph that stands for ever while the rest goes on, or is drained (S6): the loop looks for it
 * and says so once in a run.
 */
#ifndef WR_SCHEDULER_STUCK_H
#define WR_SCHEDULER_STUCK_H

#include "scheduler/scheduler.h"

void wr_stuck_init(weir_scheduler *scheduler);               /* when its options are known */
void wr_stuck_begin(weir_scheduler *scheduler, int64_t now); /* before a run */
/* Looks, if it is time. Returns when to look again. Thread: loop. */
int64_t wr_stuck_look(weir_scheduler *scheduler, int64_t now);
/*
 * Look also at what has stood for no time: when the drain begins; and when it has come to rest, while the
 * queues and claims are as the last tick left them. Thread: loop.
 */
void wr_stuck_look_before_drain(weir_scheduler *scheduler, int64_t now);
void wr_stuck_look_after_drain(weir_scheduler *scheduler);
/* A worker has been woken: if nothing ticked for so long that the loop has stopped looking, it looks again.
 */
static inline void wr_stuck_wake(weir_scheduler *scheduler)
{
	if (wr_load(&scheduler->looks_rest) && wr_exchange(&scheduler->looks_rest, false))
		wr_loop_kick(&scheduler->loop);
}

#endif

/*
 * GPU time of an entity's ticks (T15): which ticks are timed, and the spans of those that are not read yet.
 * Thread, for all functions: the entity's owner.
 */
#ifndef WR_SCHEDULER_GPU_TIME_H
#define WR_SCHEDULER_GPU_TIME_H

#include "scheduler/entity.h"

enum {
	WR_TIMED_TICKS = 16, /* of an entity, that are not read */
	WR_TIMED_FROM = 4,   /* the first one that is sampled */
	WR_SPANS_UNREAD = 64 /* with so many, of other ticks, too, a tick that is not timed gets none */
};

/* A run begins: ticks are timed if an observer wants it. Makes the first span, since that may take long. */
void wr_gpu_time_begin_run(weir_entity *entity, const weir_scheduler *scheduler);
/* Reads what is complete, and drops the spans. Before the entity's streams are closed. */
void wr_gpu_time_end_run(weir_entity *entity);
void wr_gpu_time_finish(struct wr_gpu_time *time); /* frees it, NULL too; the run has ended */

/* A tick begins: reads what is complete, and arms a span on each stream if this tick is timed. */
void wr_gpu_time_begin_tick(weir_entity *entity, unsigned lane);
/* items[index] is new. Arms it, too, if the running tick is timed. */
void wr_gpu_time_add_stream(weir_entity *entity, size_t index);
/* All streams of the tick are fenced. */
void wr_gpu_time_end_tick(weir_entity *entity);
/* Reads what is complete. */
void wr_gpu_time_read(weir_entity *entity, unsigned lane);

#endif

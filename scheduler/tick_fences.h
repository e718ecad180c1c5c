/*
 * The fences that a tick records on the streams of its entity. Thread, for all functions: the entity's owner.
 */
#ifndef WR_SCHEDULER_TICK_FENCES_H
#define WR_SCHEDULER_TICK_FENCES_H

#include "scheduler/entity_streams.h"

/* Returns true if the end of this tick would record a fence. Thread: owner. */
bool wr_entity_has_device_work(const weir_entity *entity);
/* Records a fence for others to wait for; the end of the tick still fences the same work. */
weir_status wr_entity_stream_record(struct wr_entity_stream *item, weir_fence *out);
/*
 * The end of a tick: records the used streams and adds the fences to all payloads (T4). On WEIR_E_NOMEM call
 * it again.
 */
weir_status wr_entity_fence_tick(weir_entity *entity);
/* Returns the entity's stream on which the running tick recorded this fence, or NULL. */
weir_stream *wr_entity_stream_recorded(weir_entity *entity, weir_fence fence);
/* Makes room for one more entry in `early`. Fails: WEIR_E_NOMEM. */
weir_status wr_entity_reserve_early(weir_entity *entity);
/* Notes that the message emitted last on the output carries the fence. Call after wr_entity_reserve_early. */
void wr_entity_add_early(weir_entity *entity, size_t output, weir_fence fence);
/* Returns the entity's stream that recorded this fence at the end of its last tick, or NULL. */
weir_stream *wr_entity_stream_of(weir_entity *entity, weir_fence fence);

#endif

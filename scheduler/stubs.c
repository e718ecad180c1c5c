/* Weak stand-ins until the real ones are there. */
#include "scheduler/scheduler.h"
#define WEAK __attribute__((weak))
WEAK weir_status wr_bell_ring(weir_stream *stream) { (void)stream; return WEIR_E_UNSUPPORTED; }
WEAK weir_status wr_bell_check(struct wr_system *system) { (void)system; return WEIR_OK; }
WEAK weir_status wr_bell_arm(struct wr_system *system, uint32_t entity, const weir_fence *fences, size_t n, wr_token *out)
{ (void)system; (void)entity; (void)fences; (void)n; (void)out; return WEIR_E_UNSUPPORTED; }
WEAK int64_t wr_bells_look(struct wr_system *system, int64_t now) { (void)system; (void)now; return INT64_MAX; }
WEAK void wr_bells_overslept(struct wr_system *system, int64_t late_ns) { (void)system; (void)late_ns; }
WEAK size_t wr_bells_armed(const struct wr_system *system) { (void)system; return 0; }
WEAK uint64_t wr_bells_version(const struct wr_system *system) { (void)system; return 0; }
WEAK weir_stream *wr_entity_stream_of(weir_entity *entity, weir_fence fence)
{ return entity->stream && weir_stream_id(entity->stream) == fence.stream ? entity->stream : NULL; }

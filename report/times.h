/*
 * The times of an entity as texts show them: those of its instances are one.
 */
#ifndef WR_REPORT_TIMES_H
#define WR_REPORT_TIMES_H

#include "scheduler/entity.h"
#include "trace/statistics.h"

/*
 * Adds to `into`, which is the caller's, the histogram at this offset of struct wr_entity_statistics: of the
 * entity or, if it has instances, of all of them. Thread: any.
 */
void wr_entity_times(const weir_entity *entity, struct wr_statistics *statistics, size_t offset,
		     struct wr_histogram *into);
/* Of a part of an entity with instances: what parts wait for among themselves is none of the entity's (C13).
 */
bool wr_wait_is_shown(const weir_entity *part, const struct wr_wait_for *what);
/* The next one from there that is for the same cause and subject; words do not count. NULL: none. Thread:
 * any. */
struct wr_wait_times *wr_wait_alike(struct wr_wait_times *wait, const struct wr_wait_for *what);

#endif

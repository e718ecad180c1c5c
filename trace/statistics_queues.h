/* The rows of the observer of statistics that tell of queues: how many messages they held, and for how long.
 */
#ifndef WR_TRACE_STATISTICS_QUEUES_H
#define WR_TRACE_STATISTICS_QUEUES_H

#include "trace/statistics.h"

void wr_statistics_begin_queues(struct wr_statistics *statistics); /* before a run */

void wr_statistics_on_queue(void *self, uint32_t queue, uint32_t sender, uint32_t receiver, const char *from,
			    const char *to, uint32_t capacity);
void wr_statistics_on_deliver(void *self, int64_t at, unsigned lane, uint32_t queue, uint64_t number);
void wr_statistics_on_drop(void *self, int64_t at, unsigned lane, uint32_t queue, uint64_t number);
void wr_statistics_on_unmatched(void *self, int64_t at, unsigned lane, uint32_t queue, uint64_t number);
void wr_statistics_on_take(void *self, int64_t at, unsigned lane, uint32_t queue, uint64_t number);
void wr_statistics_on_entity_done(void *self, int64_t at, unsigned lane, uint32_t entity);

#endif

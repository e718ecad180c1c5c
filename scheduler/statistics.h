/* What statistics.c and statistics_text.c share. */
#ifndef WR_SCHEDULER_STATISTICS_H
#define WR_SCHEDULER_STATISTICS_H

#include "scheduler/scheduler.h"
#include "trace/statistics.h"

struct wr_text;

/* Adds the JSON text of all. Thread: any. */
void wr_statistics_text(weir_scheduler *scheduler, struct wr_statistics *statistics, struct wr_text *text);

#endif

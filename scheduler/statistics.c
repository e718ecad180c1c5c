/* The public call about statistics. It reads what trace/statistics.c collects. */
#include "scheduler/statistics.h"

#include "base/status.h"
#include "base/text.h"

weir_status weir_scheduler_print_statistics(weir_scheduler *scheduler, char **out)
{
	struct wr_statistics *statistics = wr_statistics_in(scheduler->trace);
	struct wr_text text = {0};

	if (!statistics)
		return wr_fail(WEIR_E_INVALID,
			       "graph %s: no statistics are collected: create the scheduler with "
			       "WEIR_OBSERVE_STATISTICS in options.observe",
			       scheduler->graph->plan->name);
	wr_statistics_text(scheduler, statistics, &text);
	if (text.status) {
		weir_status status = text.status;

		wr_text_finish(&text);
		return status;
	}
	*out = text.text;
	return WEIR_OK;
}

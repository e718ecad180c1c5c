/* The public calls about statistics. They read what trace/statistics.c and path_times.c collect. */
#include "scheduler/statistics.h"

#include "base/status.h"
#include "base/struct.h"
#include "base/text.h"

struct wr_statistics *wr_statistics_of(const weir_scheduler *scheduler)
{
	return wr_trace_self(scheduler->trace, &wr_statistics);
}

bool weir_scheduler_entity_times(weir_scheduler *scheduler, size_t i, weir_entity_times *out)
{
	struct wr_statistics *statistics = wr_statistics_of(scheduler);
	struct wr_entity_statistics *entity;
	weir_entity_times times;
	struct wr_histogram waited = {0};

	if (!statistics || i >= scheduler->graph->entity_count)
		return false;
	entity = &statistics->entities[i];
	(void)wr_statistics_waited(statistics, i, NULL, &waited);
	times = (weir_entity_times){
		.size = sizeof times,
		.entity = scheduler->graph->entities[i].plan->name,
		.submit = wr_histogram_summary(&entity->submit),
		.blocked = wr_histogram_summary(&entity->blocked),
		.ready_to_compute = wr_histogram_summary(&entity->queued),
		.waited = wr_histogram_summary(&waited),
		.gpu_span = wr_histogram_summary(&entity->gpu_span),
		.done_latency = wr_histogram_summary(&entity->done_latency),
		.done_source = wr_statistics_source(entity),
	};
	wr_histogram_finish(&waited);
	return !wr_struct_fill(out, &times, sizeof times, "weir_entity_times");
}

bool weir_scheduler_path_latency(weir_scheduler *scheduler, size_t i, weir_path_latency *out)
{
	struct wr_path_times *paths = scheduler->paths;
	struct wr_path_time *path;
	weir_path_latency latency;

	if (!paths || i >= paths->time_count)
		return false;
	path = &paths->times[i];
	latency = (weir_path_latency){
		.size = sizeof latency,
		.entities = path->names,
		.entity_count = path->length,
		.other = path->other,
		.count = wr_read(&path->count),
		.latency = wr_histogram_summary(&path->latency),
	};
	return !wr_struct_fill(out, &latency, sizeof latency, "weir_path_latency");
}

weir_status weir_scheduler_print_statistics(weir_scheduler *scheduler, char **out)
{
	struct wr_statistics *statistics = wr_statistics_of(scheduler);
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

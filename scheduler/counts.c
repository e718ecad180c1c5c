/* Snapshots of the counters of entities and queues (E5). */
#include "base/struct.h"
#include "scheduler/scheduler.h"

bool weir_scheduler_entity_counts(weir_scheduler *scheduler, size_t i, weir_entity_counts *out)
{
	weir_entity *entity;
	weir_entity_counts counts;

	if (i >= scheduler->graph->entity_count)
		return false;
	entity = &scheduler->graph->entities[i];
	counts = (weir_entity_counts){
		.size = sizeof counts,
		.entity = entity->plan->name,
		.ticks = wr_read(&entity->counters.ticks),
		.received = wr_read(&entity->counters.received),
		.emitted = wr_read(&entity->counters.emitted),
		.unconnected = wr_read(&entity->counters.unconnected),
		.compute_ns = wr_read(&entity->counters.compute_ns),
		.most_in_flight = wr_read(&entity->counters.most_in_flight),
		.done = wr_load(&entity->state) & WR_DONE,
		.lost = wr_read(&entity->counters.lost),
	};
	return !wr_struct_fill(out, &counts, sizeof counts, "weir_entity_counts");
}

bool weir_scheduler_queue_counts(weir_scheduler *scheduler, size_t i, weir_queue_counts *out)
{
	struct wr_connection *connection;
	struct wr_queue_counters *counters;
	weir_queue_counts counts;

	if (i >= scheduler->graph->connection_count)
		return false;
	connection = scheduler->graph->connections[i];
	counters = &connection->queue.counters;
	counts = (weir_queue_counts){
		.size = sizeof counts,
		.from = connection->from,
		.to = connection->to,
		.pushed = wr_read(&counters->pushed),
		.delivered = wr_read(&counters->delivered),
		.dropped = wr_read(&counters->dropped),
		.closed = wr_read(&counters->closed) + wr_read(&counters->taken_back),
		.queued = wr_queue_snapshot(&connection->queue),
		.abandoned = wr_read(&counters->abandoned),
		.capacity = connection->queue.capacity,
	};
	return !wr_struct_fill(out, &counts, sizeof counts, "weir_queue_counts");
}

/*
 * Reserves messages, host and device memory and signals before the first tick, so that no tick waits for an
 * allocator or for the driver. Beyond these bounds they are created when they are needed.
 */
#include "scheduler/finisher.h"
#include "scheduler/scheduler.h"

#define RESERVE_MOST 32768 /* messages, 12 MiB */
#define SIGNALS_MAX  256   /* per device */

/* Returns true if a stream pool in use names the device. Without any pool device 0 is used. */
static bool uses_device(const struct wr_plan *plan, int device)
{
	for (size_t i = 0; i < plan->stream_pool_count; i++)
		if (plan->stream_pools[i].device == device && plan->stream_pools[i].users)
			return true;
	return !device && !plan->stream_pool_count;
}

static bool works_on(const weir_entity *entity, int device)
{
	return entity->plan->kind->flags & WEIR_OPERATOR_STREAM && entity->plan->device == device;
}

/* Returns true if the entity will wait for work of the device: by a condition, or by an implied gate (C8). */
static bool waits_for(const weir_entity *entity, int device)
{
	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; k < entity->inputs[i].count; k++) {
			const weir_entity *sender = entity->inputs[i].connections[k]->sender;
			if (sender && entity->has_content && sender->plan->device == device)
				return true;
			if (sender && entity->inputs[i].gate && works_on(sender, device))
				return true;
		}
	return false;
}

/*
 * Two for each entity that is gated on work of the device, and two for each whose work there is bounded by
 * max_in_flight, since the loop releases a token only a little after it has fired. One for the end of each
 * stream.
 */
static weir_status reserve_signals(weir_graph *graph, int device)
{
	size_t count = 0;

	if (wr_system_failed(graph->system))
		return WEIR_OK; /* the run will fail with the device's error */
	for (size_t i = 0; i < graph->entity_count; i++) {
		const weir_entity *entity = &graph->entities[i];
		count += waits_for(entity, device) ? 2 : 0;
		count += works_on(entity, device);
		count += works_on(entity, device) && entity->flight.bound ? 2 : 0;
	}
	for (size_t i = 0; i < graph->hidden_count; i++)
		count += graph->hidden[i]->outlet->connection->sender->plan->device == device ? 2 : 0;
	return wr_signals_reserve(graph->system, device, count < SIGNALS_MAX ? count : SIGNALS_MAX);
}

static weir_status reserve_devices(weir_graph *graph)
{
	const struct wr_plan *plan = graph->plan;
	bool memory = wr_system_is_cuda(graph->system); /* else device memory is host memory */
	weir_status status = WEIR_OK;

	if (memory)
		status = wr_system_reserve(graph->system, WEIR_HOST, (size_t)plan->scheduler.host_memory);
	else if (!graph->world) /* no gain in virtual time */
		status = wr_system_open_arena(graph->system, WEIR_HOST);
	for (int device = 0; !status && device < wr_system_devices(graph->system); device++) {
		if (!uses_device(plan, device))
			continue;
		if (memory)
			status = wr_system_reserve(graph->system, device,
						   (size_t)plan->scheduler.device_memory);
		else if (!graph->world)
			status = wr_system_open_arena(graph->system, device);
		if (!status)
			status = reserve_signals(graph, device);
	}
	return status;
}

weir_status wr_reserve(weir_graph *graph)
{
	size_t messages = 0;
	weir_status status;

	for (size_t i = 0; i < graph->connection_count; i++) {
		size_t capacity = graph->connections[i]->queue.capacity;
		messages += capacity < 1024 ? capacity + 1 : 1024;
	}
	messages += graph->entity_count;
	status = wr_pool_reserve(graph->pool, messages < RESERVE_MOST ? messages : RESERVE_MOST);
	return status ? status : reserve_devices(graph);
}

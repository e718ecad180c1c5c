/*
 * The resources of a graph with a system: the partitions of its devices and its stream pools, as in the plan.
 * The system owns them; the graph keeps pointers to the pools, in plan order.
 */
#include "base/memory.h"
#include "base/status.h"
#include "scheduler/graph.h"

/* The partitions of one green context pool, then the remainder. */
struct pool_partitions {
	struct wr_partition **partitions;
	uint32_t *sms;
};

static weir_status create_partitions(struct wr_system *system, const struct wr_plan_green_context_pool *plan,
				     struct pool_partitions *out)
{
	const struct wr_partitions_spec spec = {plan->name, plan->device, plan->sizes, plan->count,
						plan->min_sm_size};

	out->partitions = wr_alloc(plan->count + 1, sizeof *out->partitions);
	out->sms = wr_alloc(plan->count + 1, sizeof *out->sms);
	if (!out->partitions || !out->sms)
		return WEIR_E_NOMEM;
	return wr_partitions_create(system, &spec, out->partitions, out->sms);
}

static weir_status create_all_partitions(weir_graph *graph, struct pool_partitions **out)
{
	const struct wr_plan *plan = graph->plan;
	weir_status status = WEIR_OK;

	*out = wr_alloc(plan->green_context_pool_count + 1, sizeof **out);
	if (!*out)
		return WEIR_E_NOMEM;
	for (size_t i = 0; !status && i < plan->green_context_pool_count; i++)
		status = create_partitions(graph->system, &plan->green_context_pools[i], &(*out)[i]);
	return status;
}

static void free_partition_lists(const weir_graph *graph, struct pool_partitions *parts)
{
	for (size_t i = 0; parts && i < graph->plan->green_context_pool_count; i++) {
		wr_free(parts[i].partitions);
		wr_free(parts[i].sms);
	}
	wr_free(parts);
}

/* Index -1 is the remainder, or the last partition if nothing remains. */
static struct wr_partition *partition_of(const struct wr_plan *plan, uint32_t context,
					 const struct pool_partitions *parts)
{
	if (context == WR_NO_CONTEXT)
		return NULL;
	const struct wr_plan_green_context *own = &plan->green_contexts[context];
	struct wr_partition **partitions = parts[own->pool].partitions;
	size_t count = plan->green_context_pools[own->pool].count;

	if (own->index >= 0)
		return partitions[own->index];
	return partitions[count] ? partitions[count] : partitions[count - 1];
}

static weir_status make_stream_pool(weir_graph *graph, size_t i, const struct pool_partitions *parts)
{
	const struct wr_plan_stream_pool *plan = &graph->plan->stream_pools[i];
	const struct wr_stream_pool_spec spec = {
		.name = plan->name,
		.streams = {.device = plan->device,
			    .flags = plan->flags,
			    .priority = plan->priority,
			    .partition = partition_of(graph->plan, plan->green_context, parts)},
		.reserved = plan->reserved_size,
		.max = plan->max_size,
	};
	weir_status status = wr_stream_pool_create(graph->system, &spec, &graph->pools[i]);

	if (!status || status == WEIR_E_NOMEM)
		return status;
	return wr_fail(status, "stream pool '%s': %s", plan->name, weir_last_error());
}

weir_status wr_resources_make(weir_graph *graph)
{
	struct pool_partitions *parts = NULL;
	weir_status status = create_all_partitions(graph, &parts);

	if (!status) {
		graph->pools = wr_alloc(graph->plan->stream_pool_count + 1, sizeof(struct wr_stream_pool *));
		status = graph->pools ? WEIR_OK : WEIR_E_NOMEM;
	}
	for (size_t i = 0; !status && i < graph->plan->stream_pool_count; i++)
		status = make_stream_pool(graph, i, parts);
	free_partition_lists(graph, parts);
	return status;
}

void wr_resources_forget(weir_graph *graph)
{
	wr_free(graph->pools);
	graph->pools = NULL;
}

struct wr_stream_pool *wr_graph_stream_pool(const weir_entity *entity)
{
	uint32_t pool = entity->plan->stream_pool;

	return pool == WR_NO_POOL ? NULL : entity->graph->pools[pool];
}

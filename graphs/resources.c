/*
 * The resources of a placed graph: partitions of its devices and pools of streams, as the plan names them.
 * They belong to the system and go with it; the graph only remembers which pool is which. Made all or none:
 * who fails says which resource could not be had.
 */
#include "base/memory.h"
#include "base/status.h"
#include "graphs/graph.h"

/* What is made of one green context pool: its partitions, then the remainder. */
struct divided {
	struct wr_partition **partitions;
	uint32_t *sms;
};

static weir_status divide(struct wr_system *system, const struct wr_plan_green_context_pool *plan,
			  struct divided *out)
{
	const struct wr_partitions_spec spec = {plan->name, plan->device, plan->sizes, plan->count,
						plan->min_sm_size};

	out->partitions = wr_alloc(plan->count + 1, sizeof *out->partitions);
	out->sms = wr_alloc(plan->count + 1, sizeof *out->sms);
	if (!out->partitions || !out->sms)
		return WEIR_E_NOMEM;
	return wr_partitions_create(system, &spec, out->partitions, out->sms);
}

static weir_status divide_all(weir_graph *graph, struct divided **out)
{
	const struct wr_plan *plan = graph->plan;
	weir_status status = WEIR_OK;

	*out = wr_alloc(plan->green_context_pool_count + 1, sizeof **out);
	if (!*out)
		return WEIR_E_NOMEM;
	for (size_t i = 0; !status && i < plan->green_context_pool_count; i++)
		status = divide(graph->system, &plan->green_context_pools[i], &(*out)[i]);
	return status;
}

static void forget_divided(const weir_graph *graph, struct divided *divided)
{
	for (size_t i = 0; divided && i < graph->plan->green_context_pool_count; i++) {
		wr_free(divided[i].partitions);
		wr_free(divided[i].sms);
	}
	wr_free(divided);
}

/* -1: the remainder, or the last partition if nothing remains. */
static struct wr_partition *partition_of(const struct wr_plan *plan, uint32_t context,
					 const struct divided *divided)
{
	if (context == WR_NO_CONTEXT)
		return NULL;
	const struct wr_plan_green_context *own = &plan->green_contexts[context];
	struct wr_partition **partitions = divided[own->pool].partitions;
	size_t count = plan->green_context_pools[own->pool].count;

	if (own->index >= 0)
		return partitions[own->index];
	return partitions[count] ? partitions[count] : partitions[count - 1];
}

static weir_status make_pool(weir_graph *graph, size_t i, const struct divided *divided)
{
	const struct wr_plan_stream_pool *plan = &graph->plan->stream_pools[i];
	const struct wr_stream_pool_spec spec = {
		.name = plan->name,
		.streams = {.device = plan->device,
			    .flags = plan->flags,
			    .priority = plan->priority,
			    .partition = partition_of(graph->plan, plan->green_context, divided)},
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
	struct divided *divided = NULL;
	weir_status status = divide_all(graph, &divided);

	if (!status) {
		graph->pools = wr_alloc(graph->plan->stream_pool_count + 1, sizeof(struct wr_stream_pool *));
		status = graph->pools ? WEIR_OK : WEIR_E_NOMEM;
	}
	for (size_t i = 0; !status && i < graph->plan->stream_pool_count; i++)
		status = make_pool(graph, i, divided);
	forget_divided(graph, divided);
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

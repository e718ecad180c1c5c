#include "scheduler/finisher.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "graphs/registry.h"
#include "graphs/parameter.h"
#include "scheduler/outlet.h"

static const weir_port outlet_ports[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};

static const weir_operator outlet_operator = {
	.size = sizeof(weir_operator), .name = "outlet", .inputs = outlet_ports};

/* {"type": "cuda_stream", "port": "in"}, with the scheduler's signal. */
static weir_status plan_condition(struct wr_plan_condition *condition)
{
	const weir_condition *gate = wr_registry_find_condition(NULL, "cuda_stream");
	weir_values *values = wr_alloc(1, sizeof *values + sizeof values->settings[0]);
	unsigned *ports = wr_alloc(1, sizeof *ports);

	*condition =
		(struct wr_plan_condition){.kind = gate, .values = values, .implied = true, .signal = -1};
	condition->name = wr_strdup(gate->name);
	if (values) {
		values->count = 1;
		values->settings[0] = (struct wr_setting){
			.parameter = &gate->parameters[0], .ports = ports, .port_count = 1};
	}
	if (!values)
		wr_free(ports);
	return values && ports && condition->name ? WEIR_OK : WEIR_E_NOMEM;
}

static weir_status make_plan(struct wr_finisher *finisher, const char *port, uint32_t capacity)
{
	/* `reject` wakes no sender for room. It never rejects: it holds at most what the outlet holds. */
	finisher->input = (struct wr_plan_input){.port = outlet_ports,
						 .capacity = capacity,
						 .take = 1,
						 .policy = WEIR_POLICY_REJECT,
						 .connections = 1};
	finisher->plan = (struct wr_plan_entity){.kind = &outlet_operator,
						 .stream_pool = WR_NO_POOL,
						 .inputs = &finisher->input,
						 .input_count = 1,
						 .conditions = &finisher->condition,
						 .condition_count = 1};
	finisher->plan.name = wr_format("outlet of '%s'", port);
	return finisher->plan.name ? plan_condition(&finisher->condition) : WEIR_E_NOMEM;
}

weir_status wr_finisher_make(weir_graph *graph, const char *port, uint32_t capacity,
			     weir_status (*compute)(weir_context *context, void *state),
			     struct wr_finisher **out)
{
	struct wr_finisher *finisher = wr_alloc_aligned(64, sizeof *finisher);
	weir_status status;

	if (!finisher)
		return WEIR_E_NOMEM;
	status = make_plan(finisher, port, capacity);
	if (!status)
		status = wr_entity_fill(&finisher->entity, graph, (uint32_t)wr_graph_count_all(graph),
					&finisher->plan);
	if (!status)
		status = wr_connection_create_unlisted(&finisher->entity, 0, capacity, &finisher->connection);
	if (!status)
		status = wr_grow(&graph->finishers, &graph->finisher_room, graph->finisher_count + 1,
				 sizeof *graph->finishers);
	if (status) {
		wr_finisher_destroy(finisher);
		return status;
	}
	finisher->entity.compute = compute;
	*out = finisher;
	return WEIR_OK;
}

void wr_finisher_give(struct wr_finisher *finisher, weir_outlet *outlet)
{
	weir_graph *graph = outlet->graph;

	finisher->outlet = outlet;
	outlet->finisher = finisher;
	graph->finishers[graph->finisher_count++] = finisher;
}

void wr_finisher_destroy(struct wr_finisher *finisher)
{
	if (!finisher)
		return;
	if (finisher->connection)
		wr_connection_destroy(finisher->connection);
	wr_entity_finish(&finisher->entity);
	wr_values_destroy(finisher->condition.values);
	wr_free(finisher->condition.name);
	wr_free(finisher->plan.name);
	wr_free(finisher);
}

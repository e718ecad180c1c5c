/*
 * Resets a graph before a run, so that all runs begin alike (S8): queues hold the initial messages only,
 * states of operators and conditions are zeroed, conditions are started, counters are 0. Also finds the ports
 * that no condition names, since inlets and outlets are made after the graph. Thread: the one that starts or
 * ends the run; no worker runs.
 */
#include <limits.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "scheduler/finisher.h"
#include "graphs/values.h"

static bool port_lacks_connection(size_t connections, const weir_port *port)
{
	return !connections && !(port->flags & WEIR_PORT_OPTIONAL);
}

static weir_status check_connected(const weir_entity *entity)
{
	const char *name = entity->plan->name;

	for (size_t i = 0; i < entity->input_count; i++) {
		const weir_port *port = entity->inputs[i].plan->port;
		if (port_lacks_connection(entity->inputs[i].count, port))
			return wr_fail(WEIR_E_INVALID,
				       "%s.%s: nothing is connected to this input; "
				       "connect it or give it an inlet",
				       name, port->name);
	}
	for (size_t i = 0; i < entity->output_count; i++) {
		const weir_port *port = entity->outputs[i].plan->port;
		if (port_lacks_connection(entity->outputs[i].count, port))
			return wr_fail(WEIR_E_INVALID,
				       "%s.%s: this output is connected to nothing; "
				       "connect it or give it an outlet",
				       name, port->name);
	}
	return WEIR_OK;
}

static weir_status blame_entity(weir_graph *graph, const weir_entity *entity, weir_status status)
{
	graph->blamed = status ? entity : NULL;
	return status;
}

static bool has_inlet(const weir_graph *graph, const struct wr_plan_end *end)
{
	for (const weir_inlet *inlet = graph->inlets; inlet; inlet = inlet->next)
		if (inlet->connection->receiver == &graph->entities[end->entity] &&
		    inlet->connection->input == end->port)
			return true;
	return false;
}

static bool has_outlet(const weir_graph *graph, const struct wr_plan_end *end)
{
	for (const weir_outlet *outlet = graph->outlets; outlet; outlet = outlet->next)
		if (outlet->connection->sender == &graph->entities[end->entity] &&
		    outlet->connection->output == end->port)
			return true;
	return false;
}

static weir_status refuse_end(weir_graph *graph, const struct wr_plan_end *end, const char *port,
			      const char *what, const char *remedy)
{
	const weir_entity *entity = &graph->entities[end->entity];

	return blame_entity(graph, entity,
			    wr_fail(WEIR_E_INVALID, "%s.%s is an %s of this graph: a program must %s",
				    entity->plan->name, port, what, remedy));
}

/*
 * The program must make the inlets and outlets that the plan names, or the run would never end or lose its
 * results.
 */
static weir_status check_named(weir_graph *graph)
{
	const struct wr_plan *plan = graph->plan;

	for (size_t i = 0; i < plan->inlet_count; i++)
		if (!has_inlet(graph, &plan->inlets[i]))
			return refuse_end(graph, &plan->inlets[i], wr_plan_inlet(plan, i)->port->name,
					  "inlet", "feed it (weir_graph_inlet)");
	for (size_t i = 0; i < plan->outlet_count; i++)
		if (!has_outlet(graph, &plan->outlets[i]))
			return refuse_end(graph, &plan->outlets[i], wr_plan_outlet(plan, i)->port->name,
					  "outlet", "take from it (weir_graph_outlet)");
	return WEIR_OK;
}

weir_status wr_graph_ready(weir_graph *graph)
{
	weir_status status = check_named(graph);

	for (size_t i = 0; !status && i < graph->entity_count; i++)
		status = blame_entity(graph, &graph->entities[i], check_connected(&graph->entities[i]));
	return status;
}

/*
 * Allocates `taken` for the largest front: all that fits into the queues; a `pop` queue may hold one more.
 */
static weir_status alloc_taken(struct wr_input *input)
{
	size_t need = 0;

	for (size_t i = 0; i < input->count; i++)
		need += input->connections[i]->queue.capacity + 1;
	wr_free(input->taken);
	wr_free(input->taken_by);
	input->taken = wr_alloc(need ? need : 1, sizeof *input->taken);
	input->taken_by = wr_alloc(input->count ? input->count : 1, sizeof *input->taken_by);
	return input->taken && input->taken_by ? WEIR_OK : WEIR_E_NOMEM;
}

static weir_status start_condition(const weir_entity *entity, const struct wr_plan_condition *plan,
				   void *state)
{
	weir_status status;

	*wr_error_here() = 0;
	status = plan->kind->start(state, plan->values);
	if (!status)
		return WEIR_OK;
	status = wr_settle_failure(status, "start");
	return wr_fail(status, "%s: condition '%s': %s", entity->plan->name, plan->name, weir_last_error());
}

/* The set may have to grow: inlets may have been made since the last run. */
static weir_status reset_set(struct wr_input *input)
{
	if (input->set && input->set->count != input->count) {
		wr_fan_in_destroy(input->set);
		input->set = NULL;
	}
	if (input->count <= WR_FAN_IN_FEW)
		return WEIR_OK;
	if (!input->set)
		input->set = wr_fan_in_make(input->count);
	if (!input->set)
		return WEIR_E_NOMEM;
	wr_fan_in_reset(input->set, input->connections, input->any_size);
	return WEIR_OK;
}

static weir_status reset_conditions(weir_entity *entity)
{
	weir_status status = WEIR_OK;

	entity->askable = false;
	for (size_t i = 0; !status && i < entity->condition_count; i++) {
		const struct wr_condition *condition = &entity->conditions[i];
		memset(condition->state, 0, condition->plan->kind->state_size);
		if (condition->plan->kind->start)
			status = start_condition(entity, condition->plan, condition->state);
		if (!status)
			status = wr_values_judge(condition->plan->values);
	}
	entity->askable = !status;
	return status;
}

/* Returns true if a default condition, one that the description does not contain, names this output. */
static bool has_default_condition(const weir_entity *entity, unsigned output)
{
	for (size_t i = 0; i < entity->condition_count; i++) {
		const struct wr_plan_condition *plan = entity->conditions[i].plan;
		if (plan->implied && wr_condition_names(plan, output, false))
			return true;
	}
	return false;
}

static bool input_is_named(const weir_entity *entity, unsigned input)
{
	for (size_t i = 0; i < entity->condition_count; i++)
		if (wr_condition_names(entity->conditions[i].plan, input, true))
			return true;
	return false;
}

/*
 * Finds the ports without a default condition (inlets, outlets, user's conditions): the review checks them
 * itself.
 */
static void find_unguarded_ports(weir_entity *entity)
{
	entity->unguarded = false;
	for (uint32_t i = 0; i < entity->output_count; i++)
		entity->unguarded |= entity->outputs[i].count && !has_default_condition(entity, i);
	for (uint32_t i = 0; i < entity->input_count; i++) {
		if (!entity->inputs[i].count || input_is_named(entity, i))
			continue;
		entity->inputs[i].content = true;
		entity->has_content = true;
	}
}

static bool is_default(const struct wr_plan_condition *condition)
{
	const char *kind = condition->kind->name;

	return condition->implied &&
	       (!strcmp(kind, "message_available") || !strcmp(kind, "downstream_message_affordable"));
}

/* Returns true if ask.c can decide the gathering conditions by reading the queues, without their locks. */
static bool has_default_conditions_only(const weir_entity *entity)
{
	size_t first = entity->in_flight ? 1 : 0;

	if (first == entity->gathering_count)
		return false; /* there is nothing to ask */
	for (size_t i = first; i < entity->gathering_count; i++)
		if (!is_default(entity->conditions[i].plan))
			return false;
	for (size_t i = 0; i < entity->input_count; i++)
		if (entity->inputs[i].count != 1 || entity->inputs[i].set || /* small set: tests only */
		    wr_queue_evicts(&entity->inputs[i].connections[0]->queue))
			return false;
	return true;
}

/* A port that names no kinds accepts all. */
static void intersect_kinds(struct wr_output *output)
{
	output->kinds = output->plan->port->kinds ? output->plan->port->kinds : UINT_MAX;
	for (size_t i = 0; i < output->count; i++) {
		const struct wr_connection *connection = output->connections[i];
		const weir_entity *receiver = connection->receiver;
		unsigned kinds = receiver ? receiver->inputs[connection->input].plan->port->kinds : 0;
		output->kinds &= kinds ? kinds : UINT_MAX;
	}
}

/* One by one, since other threads may read them. */
static void reset_counters(struct wr_entity_counters *counters)
{
	wr_store_relaxed(&counters->ticks, 0);
	wr_store_relaxed(&counters->received, 0);
	wr_store_relaxed(&counters->emitted, 0);
	wr_store_relaxed(&counters->unconnected, 0);
	wr_store_relaxed(&counters->lost, 0);
	wr_store_relaxed(&counters->compute_ns, 0);
	wr_store_relaxed(&counters->most_in_flight, 0);
}

static void reset_flight(weir_entity *entity)
{
	int64_t own = entity->plan->max_in_flight;

	wr_flight_reset(&entity->flight, own < 0 ? entity->graph->max_in_flight : (size_t)own);
	entity->flight_full = false;
}

static weir_status reset_entity(weir_entity *entity)
{
	bool fed = false, rooted = false;
	weir_status status = entity->fences_pending ? wr_entity_settle(entity) : WEIR_OK;

	if (status)
		return status;

	for (size_t i = 0; !status && i < entity->input_count; i++) {
		struct wr_input *input = &entity->inputs[i];
		input->next_served = 0;
		fed |= input->count > 0;
		for (size_t k = 0; k < input->count; k++)
			rooted |= input->connections[k]->initial > 0;
		status = alloc_taken(input);
		if (!status)
			status = reset_set(input);
	}
	for (size_t i = 0; i < entity->output_count; i++) {
		entity->outputs[i].total = 0;
		intersect_kinds(&entity->outputs[i]);
	}
	find_unguarded_ports(entity);
	entity->default_only = has_default_conditions_only(entity);
	entity->gated = entity->has_content;
	wr_fetch_or(&entity->looks, entity->has_content ? WR_LOOKS_CONTENT : 0);
	entity->looked = 0;
	entity->root = !fed || rooted;
	wr_store(&entity->listeners, entity->receivers);
	entity->finished = entity->fronts_closed = entity->started = false;
	entity->past = INT64_MAX;
	entity->timer_place = 0;
	entity->verdict.failed = WEIR_OK;
	entity->verdict.fault = NULL;
	entity->context.tick = 0;
	reset_flight(entity);
	reset_counters(&entity->counters);
	memset(entity->operator_state, 0, entity->plan->kind->state_size);
	return status ? status : reset_conditions(entity);
}

void wr_graph_forget_queued(weir_graph *graph)
{
	for (size_t i = 0; i < graph->entity_count; i++)
		for (size_t k = 0; k < graph->entities[i].input_count; k++)
			if (graph->entities[i].inputs[k].set)
				wr_fan_in_forget(graph->entities[i].inputs[k].set);
}

weir_status wr_graph_reset(weir_graph *graph, size_t *discarded)
{
	weir_status status = WEIR_OK;

	wr_graph_forget_queued(graph);
	for (size_t i = 0; i < graph->entity_count; i++) /* before the first message of the run */
		wr_store(&graph->entities[i].looks, 0);
	for (size_t i = 0; !status && i < graph->connection_count; i++)
		status = wr_connection_reset(graph->connections[i], graph->pool, discarded);
	for (size_t i = 0; !status && i < graph->hidden_count; i++) /* the outlet's queue counts these */
		status = wr_connection_reset(graph->hidden[i]->connection, graph->pool, &(size_t){0});
	for (size_t i = 0; !status && i < wr_graph_all(graph); i++)
		status = blame_entity(graph, wr_graph_at(graph, i), reset_entity(wr_graph_at(graph, i)));
	return status;
}

void wr_graph_close_streams(weir_graph *graph)
{
	for (size_t i = 0; i < graph->entity_count; i++)
		if (!graph->entities[i].fences_pending && !graph->entities[i].stop_owed)
			wr_entity_close_streams(&graph->entities[i]);
}

void wr_graph_forget_told(weir_graph *graph)
{
	for (size_t i = 0; i < graph->entity_count; i++)
		for (size_t k = 0; k < graph->entities[i].condition_count; k++)
			wr_store(&graph->entities[i].conditions[k].told, WEIR_TOLD_NOTHING);
}

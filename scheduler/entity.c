/*
 * Makes an entity from its part of the plan: ports, conditions, memory for the states of its operator and its
 * conditions.
 */
#include "base/memory.h"
#include "scheduler/graph.h"

static weir_status make_inputs(weir_entity *entity, const struct wr_plan_entity *plan)
{
	entity->inputs = wr_alloc(plan->input_count ? plan->input_count : 1, sizeof *entity->inputs);
	if (!entity->inputs)
		return WEIR_E_NOMEM;
	entity->input_count = plan->input_count;
	for (size_t i = 0; i < plan->input_count; i++) {
		struct wr_input *input = &entity->inputs[i];
		bool all = plan->inputs[i].take == WEIR_ALL;
		input->plan = &plan->inputs[i];
		input->take = all ? SIZE_MAX : plan->inputs[i].take;
		input->need = all ? 1 : plan->inputs[i].take;
		input->gate = plan->inputs[i].gate;
		input->any_size = plan->inputs[i].port->flags & WEIR_PORT_ANY_SIZE;
	}
	return WEIR_OK;
}

static weir_status make_outputs(weir_entity *entity, const struct wr_plan_entity *plan)
{
	entity->outputs = wr_alloc(plan->output_count ? plan->output_count : 1, sizeof *entity->outputs);
	if (!entity->outputs)
		return WEIR_E_NOMEM;
	entity->output_count = plan->output_count;
	for (size_t i = 0; i < plan->output_count; i++) {
		struct wr_output *output = &entity->outputs[i];
		output->plan = &plan->outputs[i];
		output->max_emits = output->plan->max_emits;
		output->emitted = wr_alloc(output->plan->max_emits, sizeof *output->emitted);
		if (!output->emitted)
			return WEIR_E_NOMEM;
	}
	return WEIR_OK;
}

/* Marks the ports that the condition names: each must hold `need` messages before it is asked (C4). */
static void mark_content(weir_entity *entity, const struct wr_plan_condition *condition)
{
	for (unsigned i = 0; i < entity->input_count; i++)
		entity->inputs[i].content |= wr_condition_names(condition, i, true);
}

static weir_status add_condition(weir_entity *entity, const struct wr_plan_condition *plan)
{
	struct wr_condition *condition = &entity->conditions[entity->condition_count];

	condition->plan = plan;
	condition->ask = plan->kind->ask;
	condition->state = wr_alloc(1, plan->kind->state_size + 1);
	if (!condition->state)
		return WEIR_E_NOMEM;
	entity->condition_count++;
	entity->wants_ticked |= plan->kind->ticked != NULL;
	entity->timed |= plan->kind->ticked && !(plan->kind->flags & WEIR_CONDITION_TIMELESS);
	if (plan->kind->phase == WEIR_GATHERING) {
		entity->gathering_count++;
	} else {
		entity->has_content = true;
		mark_content(entity, plan);
	}
	return WEIR_OK;
}

static weir_status make_conditions(weir_entity *entity, const struct wr_plan_entity *plan)
{
	size_t count = plan->condition_count;
	weir_status status = WEIR_OK;

	entity->conditions = wr_alloc(count + 1, sizeof *entity->conditions);
	if (!entity->conditions)
		return WEIR_E_NOMEM;
	if (entity->graph->plan->in_flight.kind) {
		status = add_condition(entity, &entity->graph->plan->in_flight);
		entity->in_flight = entity->condition_count ? &entity->conditions[0] : NULL;
	}
	for (int phase = WEIR_GATHERING; phase <= WEIR_CONTENT; phase++)
		for (size_t i = 0; !status && i < count; i++)
			if ((int)plan->conditions[i].kind->phase == phase)
				status = add_condition(entity, &plan->conditions[i]);
	return status;
}

weir_status wr_entity_fill(weir_entity *entity, weir_graph *graph, uint32_t id,
			   const struct wr_plan_entity *plan)
{
	weir_status status;

	entity->id = id;
	entity->graph = graph;
	entity->plan = plan;
	entity->context.entity = entity;
	entity->selects = graph->plan->devices > 1;
	entity->compute = plan->kind->compute;
	entity->operator_state = wr_alloc_aligned(64, plan->kind->state_size + 1);
	if (!entity->operator_state)
		return WEIR_E_NOMEM;
	status = make_inputs(entity, plan);
	if (!status)
		status = make_outputs(entity, plan);
	return status ? status : make_conditions(entity, plan);
}

weir_status wr_entity_make(weir_graph *graph, uint32_t id)
{
	const struct wr_plan_entity *plan = &graph->plan->entities[id];

	return wr_entity_fill(&graph->entities[id], graph, id, plan);
}

void wr_entity_finish(weir_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++) {
		wr_free(entity->inputs[i].connections);
		wr_free(entity->inputs[i].taken);
		wr_free(entity->inputs[i].taken_by);
		wr_fan_in_destroy(entity->inputs[i].set);
	}
	for (size_t i = 0; i < entity->output_count; i++) {
		wr_free(entity->outputs[i].connections);
		wr_free(entity->outputs[i].emitted);
	}
	for (size_t i = 0; i < entity->condition_count; i++)
		wr_free(entity->conditions[i].state);
	wr_free(entity->inputs);
	wr_free(entity->outputs);
	wr_free(entity->conditions);
	wr_free(entity->operator_state);
	wr_free(entity->verdict.fences);
	wr_free(entity->scratch);
	wr_free(entity->wait.fences);
	wr_free(entity->context.made);
	wr_flight_finish(&entity->flight);
	wr_free(entity->own.items);
	wr_free(entity->own.sets);
}

size_t wr_entity_held(weir_entity *entity)
{
	size_t held = 0;

	for (size_t i = 0; i < entity->input_count; i++)
		for (size_t k = 0; k < entity->inputs[i].count; k++)
			held += wr_queue_count(&entity->inputs[i].connections[k]->queue);
	return held;
}

const char *weir_entity_name(const weir_entity *entity)
{
	return entity->plan->name;
}

const weir_operator *weir_entity_operator(const weir_entity *entity)
{
	return entity->plan->kind;
}

const weir_values *weir_entity_values(const weir_entity *entity)
{
	return entity->plan->values;
}

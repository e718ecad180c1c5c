/*
 * Decides which input ports have an implied gate (C8): host ports, unless a `cuda_stream` condition names
 * them or the description sets "gate". Checks the result when all connections are known.
 */
#include <string.h>

#include "graphs/build.h"
#include "graphs/registry.h"

bool wr_plan_gated_by_hand(const struct wr_plan_entity *entity, unsigned input)
{
	for (size_t i = 0; i < entity->condition_count; i++)
		if (!strcmp(entity->conditions[i].kind->name, "cuda_stream") &&
		    wr_condition_names(&entity->conditions[i], input, true))
			return true;
	return false;
}

static void report_gate(struct wr_build *build, enum wr_error error, size_t entity,
			const struct wr_plan_input *input, const char *text, const char *name)
{
	struct wr_at all = {NULL, "entities", 0}, at = {&all, NULL, entity}, ports = {&at, "ports", 0},
		     here = {&ports, input->port->name, 0};

	wr_report(&build->reports, error, &(struct wr_at){&here, "gate", 0},
		  (struct wr_place){input->line, input->column}, "'%s' %s: %s", name, text,
		  error == WR_W_GATE_TWICE ? "remove one of the two" : "remove this");
}

static void build_gate(struct wr_build *build, size_t index, unsigned i)
{
	const struct wr_plan_entity *entity = &build->plan->entities[index];
	struct wr_plan_input *input = &entity->inputs[i];

	input->gate = input->gate_given < 0 ? !input->device : input->gate_given;
	if (!wr_plan_gated_by_hand(entity, i))
		return;
	input->gate = false;
	if (!input->gate_given)
		report_gate(build, WR_W_GATE_TWICE, index, input,
			    "is gated by a cuda_stream condition, but has \"gate\": false",
			    input->port->name);
}

void wr_build_gates(struct wr_build *build)
{
	for (size_t i = 0; i < build->plan->entity_count; i++)
		for (unsigned k = 0; k < build->plan->entities[i].input_count; k++)
			build_gate(build, i, k);
}

/* Returns true if the operator is not built in: whether its compute reads host memory is not known. */
static bool is_user_kind(const weir_operator *kind)
{
	return wr_registry_find_operator(NULL, kind->name) != kind;
}

static void check_gate(struct wr_build *build, size_t i)
{
	const struct wr_plan_connection *c = &build->plan->connections[i];
	const struct wr_plan_entity *from = &build->plan->entities[c->from],
				    *to = &build->plan->entities[c->to];
	const struct wr_plan_input *input = &to->inputs[c->input];

	if (input->gate || wr_plan_gated_by_hand(to, c->input))
		return;
	if (!input->device && from->kind->flags & WEIR_OPERATOR_STREAM)
		report_gate(build, WR_W_NO_GATE, c->to, input,
			    "works on a stream; without a gate, host code may read unfinished data",
			    from->name);
	if (input->device && input->gate_given < 0 && !strcmp(from->kind->name, "download") &&
	    !is_user_kind(from->kind) && is_user_kind(to->kind))
		wr_build_report_connection(
			build, WR_W_DEVICE_PORT, i,
			"'%s' is a device port, but a download writes host memory: if compute reads "
			"it, write \"gate\": true (or WEIR_PORT_HOST in its table), else \"gate\": false",
			input->port->name);
}

void wr_build_check_gates(struct wr_build *build)
{
	for (size_t i = 0; i < build->plan->connection_count; i++)
		check_gate(build, i);
}

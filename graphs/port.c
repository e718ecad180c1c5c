/* Ports: those of an operator's table by name, the key "ports" of an entity, gates, ports that nothing is
 * connected to. */
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "graphs/build.h"
#include "graphs/registry.h"
#include "graphs/table.h"

/* --- the key "ports" --- */

static weir_status make_ports(struct wr_plan_entity *entity)
{
	const weir_operator *kind = entity->kind;

	entity->input_count = wr_port_count(kind->inputs);
	entity->output_count = wr_port_count(kind->outputs);
	entity->inputs = wr_alloc(entity->input_count, sizeof(*entity->inputs));
	entity->outputs = wr_alloc(entity->output_count, sizeof(*entity->outputs));
	if (!entity->inputs || !entity->outputs) {
		entity->input_count = entity->output_count = 0;
		return WEIR_E_NOMEM;
	}
	for (size_t i = 0; i < entity->input_count; i++) {
		const weir_port *port = &kind->inputs[i];
		bool says = port->flags & (WEIR_PORT_DEVICE | WEIR_PORT_HOST);
		entity->inputs[i] = (struct wr_plan_input){
			.port = port,
			.kinds = wr_port_kinds(port),
			.capacity = port->capacity ? port->capacity : 1,
			.take = port->take ? port->take : 1,
			.policy = port->policy,
			.device = says ? port->flags & WEIR_PORT_DEVICE : kind->flags & WEIR_OPERATOR_STREAM,
			.gate_given = -1};
	}
	for (size_t i = 0; i < entity->output_count; i++) {
		const weir_port *port = &kind->outputs[i];
		entity->outputs[i] =
			(struct wr_plan_output){.port = port,
						.kinds = wr_port_kinds(port),
						.max_emits = port->max_emits ? port->max_emits : 1};
	}
	return WEIR_OK;
}

/* What cannot be was refused with the table, so only memory can be missing. */
static weir_status read_types(struct wr_plan_entity *entity)
{
	char text[WR_TYPE_WHY];
	struct wr_words why = wr_words_in(text, sizeof(text));
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < entity->input_count && !status; i++)
		status = wr_port_type_read(&entity->inputs[i].type, &entity->scope, entity->inputs[i].port,
					   &why);
	for (size_t i = 0; i < entity->output_count && !status; i++)
		status = wr_port_type_read(&entity->outputs[i].type, &entity->scope, entity->outputs[i].port,
					   &why);
	return status;
}

static uint32_t read_take(struct wr_build *build, const struct wr_at *at, const struct wr_value *take,
			  uint32_t fallback)
{
	if (!take || take->type == WR_INTEGER)
		return (uint32_t)wr_field_integer(&build->reports, at, take, 1, WR_PORT_CAPACITY_MAX,
						  fallback);
	if (!strcmp(take->string, "all"))
		return WEIR_TAKE_ALL;
	wr_report(&build->reports, WR_W_CHOICE, at, take->place,
		  "'%s' is not a valid take: write a number or \"all\"", wr_shown(take->string).text);
	return fallback;
}

static void build_input(struct wr_build *build, struct wr_plan_input *input, const struct wr_value *value,
			const struct wr_at *at)
{
	enum { CAPACITY, TAKE, POLICY, GATE, KEYS = 8 };
	static const struct wr_field fields[KEYS] = {{"capacity", WR_INTEGER, false},
						     {"take", WR_INTEGER | WR_STRING, false},
						     {"policy", WR_STRING, false},
						     {"gate", WR_BOOL, false}};
	const struct wr_value *found[KEYS];
	int policy = -1;

	wr_fields_read(&build->reports, at, value, "an input port", fields, found);
	input->capacity =
		(uint32_t)wr_field_integer(&build->reports, &(struct wr_at){at, "capacity", 0},
					   found[CAPACITY], 1, WR_PORT_CAPACITY_MAX, input->capacity);
	input->take = read_take(build, &(struct wr_at){at, "take", 0}, found[TAKE], input->take);
	if (found[POLICY]) /* in the order of weir_policy */
		policy = wr_field_choice(&build->reports, &(struct wr_at){at, "policy", 0}, found[POLICY],
					 "block|pop|reject|fault|latest");
	if (policy >= 0) {
		input->policy = (weir_policy)policy;
		input->policy_line = found[POLICY]->place.line;
		input->policy_column = found[POLICY]->place.column;
	}
	if (found[GATE]) {
		input->gate_given = found[GATE]->boolean;
		input->line = found[GATE]->place.line;
		input->column = found[GATE]->place.column;
	}
	if (input->policy == WEIR_POLICY_LATEST)
		wr_build_latest_input(build, input, at, found[CAPACITY], found[TAKE], found[GATE]);
	if (input->take != WEIR_TAKE_ALL && input->take > input->capacity)
		wr_report(
			&build->reports, WR_W_TAKE, &(struct wr_at){at, found[TAKE] ? "take" : "capacity", 0},
			found[TAKE] ? found[TAKE]->place : found[CAPACITY]->place,
			"take %u is larger than the capacity %u: it would wait for ever; raise the capacity",
			input->take, input->capacity);
}

static void build_output(struct wr_build *build, struct wr_plan_output *output, const struct wr_value *value,
			 const struct wr_at *at)
{
	static const struct wr_field fields[] = {{"max_emits", WR_INTEGER, false}, {NULL, 0, false}};
	const struct wr_value *found[2];

	wr_fields_read(&build->reports, at, value, "an output port", fields, found);
	output->max_emits = (uint32_t)wr_field_integer(&build->reports, &(struct wr_at){at, "max_emits", 0},
						       found[0], 1, WR_PORT_CAPACITY_MAX, output->max_emits);
}

static void report_unknown_port(struct wr_build *build, const struct wr_plan_entity *entity,
				const struct wr_member *member, const struct wr_at *at)
{
	struct wr_nearest nearest = {.wanted = member->key};

	for (size_t i = 0; i < entity->input_count; i++)
		wr_nearest_try(&nearest, entity->inputs[i].port->name);
	for (size_t i = 0; i < entity->output_count; i++)
		wr_nearest_try(&nearest, entity->outputs[i].port->name);
	wr_report(&build->reports, WR_W_UNKNOWN_PORT, at, member->place, "operator '%s' has no port '%s'%s",
		  entity->kind->name, wr_shown(member->key).text, wr_nearest_hint(&nearest).text);
}

weir_status wr_build_ports(struct wr_build *build, struct wr_plan_entity *entity,
			   const struct wr_value *ports, const struct wr_at *up)
{
	struct wr_at all = {up, "ports", 0};
	weir_status status = make_ports(entity);

	if (!status)
		status = read_types(entity);
	for (size_t i = 0; !status && ports && i < wr_value_count(ports); i++) {
		const struct wr_member *member = wr_value_at(ports, i);
		struct wr_at at = {&all, member->key, 0};
		int input = wr_port_index(entity->kind->inputs, member->key);
		int output = wr_port_index(entity->kind->outputs, member->key);

		if (input < 0 && output < 0 && wr_is_comment(&build->reports, &at, member))
			continue;
		if (input < 0 && output < 0)
			report_unknown_port(build, entity, member, &at);
		else if (!wr_type_check(&build->reports, &at, &member->value, WR_OBJECT))
			continue;
		else if (input >= 0)
			build_input(build, &entity->inputs[input], &member->value, &at);
		else
			build_output(build, &entity->outputs[output], &member->value, &at);
	}
	return status;
}

/* --- unconnected ports --- */

static void check_unconnected(struct wr_build *build, const struct wr_plan_entity *entity,
			      const weir_port *port, uint32_t connections, const char *direction)
{
	size_t index = (size_t)(entity - build->plan->entities);
	struct wr_at all = {NULL, "entities", 0};

	if (connections || port->flags & WEIR_PORT_OPTIONAL)
		return;
	if (!entity->name || wr_names_find(&build->plan->names, entity->name) != index)
		return; /* its name has an error, already reported, so nothing can be connected to it */
	wr_report(&build->reports, WR_W_UNCONNECTED, &(struct wr_at){&all, NULL, index},
		  wr_value_at(build->entities, index)->value.place,
		  "%s '%s' of entity '%s' is not connected: connect it, or remove the entity", direction,
		  port->name, entity->name);
}

void wr_build_check_unconnected(struct wr_build *build)
{
	for (size_t i = 0; i < build->plan->entity_count; i++) {
		const struct wr_plan_entity *entity = &build->plan->entities[i];
		for (size_t k = 0; k < entity->input_count; k++)
			check_unconnected(build, entity, entity->inputs[k].port,
					  entity->inputs[k].connections + entity->inputs[k].inlet, "input");
		for (size_t k = 0; k < entity->output_count; k++)
			check_unconnected(build, entity, entity->outputs[k].port,
					  entity->outputs[k].connections + entity->outputs[k].outlet,
					  "output");
	}
}

/*
 * --- gates ---
 * Decides which input ports have an implied gate (C8): host ports, unless a `cuda_stream` condition names
 * them or the description sets "gate". Checks the result when all connections are known.
 */

static bool is_gated_by_condition(const struct wr_plan_entity *entity, unsigned input)
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
	if (input->policy == WEIR_POLICY_LATEST) {
		input->gate = true; /* what waits for a message waits until it is finished */
		return;
	}
	if (!is_gated_by_condition(entity, i))
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

static void check_gate(struct wr_build *build, size_t i)
{
	const struct wr_plan_connection *c = &build->plan->connections[i];
	const struct wr_plan_entity *from = &build->plan->entities[c->from],
				    *to = &build->plan->entities[c->to];
	const struct wr_plan_input *input = &to->inputs[c->input];

	if (input->gate || is_gated_by_condition(to, c->input))
		return;
	if (!input->device && from->kind->flags & WEIR_OPERATOR_STREAM)
		report_gate(build, WR_W_NO_GATE, c->to, input,
			    "works on a stream; without a gate, host code may read unfinished data",
			    from->name);
	/* Of an operator that is not built in it is not known whether its compute reads host memory. */
	if (input->device && input->gate_given < 0 && from->outputs[c->output].port->flags & WEIR_PORT_HOST &&
	    wr_registry_find_operator(NULL, to->kind->name) != to->kind)
		wr_build_report_connection(
			build, WR_W_DEVICE_PORT, i,
			"'%s' is a device port, but a %s writes host memory: if compute reads "
			"it, write \"gate\": true (or WEIR_PORT_HOST in its table), else \"gate\": false",
			input->port->name, from->kind->name);
}

void wr_build_check_gates(struct wr_build *build)
{
	for (size_t i = 0; i < build->plan->connection_count; i++)
		check_gate(build, i);
}

/*
 * Instances: "instances": N of an entity X. The plan of a graph that runs has, for X, 2 + N entities:
 *
 *   dealer     X itself: its inputs, its conditions that name no output; passes the set of each tick to one
 * instance, in turn instances  N: the operator with a state, a stream and claims of its own; one set of
 * inputs each joiner     the outputs of X, the conditions that name one; passes on what the instances emit,
 * in turn
 *
 * Between a dealer and an instance there is a connection for each input and a last one, `turn`, whose message
 * is pushed behind the set; so a set may have any number of messages at each port. Likewise between an
 * instance and the joiner for each output. The queue of `turn` has one place: it is free when what was pushed
 * before it is taken, too. So each of the other queues holds messages of one set. All have the name of X.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "graphs/build.h"
#include "graphs/parameter.h"
#include "graphs/table.h"

/* --- the key "instances" --- */

void wr_build_instances(struct wr_build *build, struct wr_plan_entity *entity, const struct wr_value *value,
			const struct wr_at *at)
{
	struct wr_at here = {at, "instances", 0};
	bool receives = entity->kind->inputs && entity->kind->inputs->name;

	if (entity->instances < 2)
		return;
	if (!(entity->kind->flags & WEIR_OPERATOR_INSTANCES))
		wr_report(&build->reports, WR_W_INSTANCES, &here, value->place,
			  "operator %s does not say that several of its ticks may run at once: leave "
			  "\"instances\" out%s",
			  entity->kind->name,
			  receives ? "" : " (a source makes one message after the other)");
	else if (!receives)
		wr_report(&build->reports, WR_W_INSTANCES, &here, value->place,
			  "operator %s has no input, so there is nothing to deal to instances: leave "
			  "\"instances\" out",
			  entity->kind->name);
	else if (wr_brought_count(entity->kind))
		wr_report(
			&build->reports, WR_W_INSTANCES, &here, value->place,
			"operator %s brings conditions, which instances do not have: leave \"instances\" out",
			entity->kind->name);
}

/* Why an input of instances cannot be like this, behind its name; NULL: it can. */
static const char *refuse_input(const struct wr_plan_input *input)
{
	if (input->port->flags & WEIR_PORT_ANY_SIZE)
		return "takes from any number of connections, and an input of instances has one: leave "
		       "\"instances\" out, or join the messages before";
	if (input->connections + input->inlet > 1)
		return "has several connections, and an input of instances has one: leave \"instances\" out, "
		       "or join the messages before";
	if (input->policy == WEIR_POLICY_LATEST)
		return "is \"latest\", and gives a message to several ticks: choose another policy, or leave "
		       "\"instances\" out";
	return NULL;
}

/* The most messages that a tick takes from the port. */
static uint32_t largest_set(const struct wr_plan_input *input)
{
	if (input->take != WEIR_TAKE_ALL)
		return input->take;
	return input->capacity + (input->policy == WEIR_POLICY_POP);
}

uint64_t wr_instances_places(const struct wr_plan_entity *entity)
{
	uint64_t places = 0;

	for (size_t i = 0; i < entity->input_count; i++)
		places += largest_set(&entity->inputs[i]);
	for (size_t i = 0; i < entity->output_count; i++)
		places += entity->outputs[i].max_emits;
	return entity->instances * places;
}

/*
 * Likewise, of a condition. The dealer has them: what they say of a tick must hold for the compute that an
 * instance begins later.
 */
static const char *refuse_condition(const struct wr_plan_entity *entity,
				    const struct wr_plan_condition *condition)
{
	const char *kind = condition->kind->name;
	bool inputs = false, outputs = false;

	for (unsigned i = 0; i < entity->input_count; i++)
		inputs |= wr_condition_names(condition, i, true);
	for (unsigned i = 0; i < entity->output_count; i++)
		outputs |= wr_condition_names(condition, i, false);
	if (!strcmp(kind, "asynchronous") || !strcmp(kind, "file_descriptor"))
		return "speaks of one compute at a time: leave \"instances\" out";
	if (!strcmp(kind, "aligned") && !strcmp(weir_values_string(condition->values, "missing"), "reuse"))
		return "gives a message to several ticks: write \"missing\": \"empty\", or leave "
		       "\"instances\" out";
	if (condition->kind->phase != WEIR_PHASE_GATHERING && strcmp(kind, "cuda_stream") != 0)
		return "looks into messages, which instances wait for later: give it to a `pass` before, or "
		       "leave \"instances\" out";
	if (inputs && outputs)
		return "names inputs and outputs, which are at two ends of the instances: leave "
		       "\"instances\" "
		       "out";
	return NULL;
}

bool wr_instances_possible(const struct wr_plan_entity *entity)
{
	bool possible = entity->kind->flags & WEIR_OPERATOR_INSTANCES && entity->input_count &&
			!wr_brought_count(entity->kind);

	for (size_t i = 0; possible && i < entity->input_count; i++)
		possible = !refuse_input(&entity->inputs[i]);
	for (size_t i = 0; possible && i < entity->condition_count; i++)
		possible = !refuse_condition(entity, &entity->conditions[i]);
	return possible;
}

static void check_entity(struct wr_build *build, const struct wr_plan_entity *entity, const struct wr_at *at,
			 struct wr_place place)
{
	for (size_t i = 0; i < entity->input_count; i++)
		if (refuse_input(&entity->inputs[i]))
			wr_report(&build->reports, WR_W_INSTANCES, at, place, "input '%s' %s",
				  entity->inputs[i].port->name, refuse_input(&entity->inputs[i]));
	for (size_t i = 0; i < entity->condition_count; i++)
		if (refuse_condition(entity, &entity->conditions[i]))
			wr_report(&build->reports, WR_W_INSTANCES, at, place, "condition '%s' %s",
				  wr_shown(entity->conditions[i].name).text,
				  refuse_condition(entity, &entity->conditions[i]));
}

void wr_build_check_instances(struct wr_build *build)
{
	struct wr_at all = {NULL, "entities", 0};

	for (size_t i = 0; i < build->plan->entity_count; i++) {
		const struct wr_plan_entity *entity = &build->plan->entities[i];
		struct wr_at up = {&all, NULL, i}, at = {&up, "instances", 0};

		if (entity->instances > 1 && entity->kind)
			check_entity(
				build, entity, &at,
				wr_value_find(&wr_value_at(build->entities, i)->value, "instances")->place);
	}
}

/* --- the plan of a graph that runs --- */

static const weir_port turn_port = {.size = sizeof(weir_port), .name = "turn"};

struct expansion {
	struct wr_plan *plan;
	const weir_condition *condition;
	struct wr_plan_entity *dealer;
	uint32_t dealer_at;
};

/* Takes what comes from the instance's own ends, so it checks nothing. */
static struct wr_plan_input hidden_input(const weir_port *port, uint32_t capacity)
{
	return (struct wr_plan_input){
		.port = port,
		.type.port = &turn_port,
		.kinds = ~0U,
		.capacity = capacity,
		.take = WEIR_TAKE_ALL,
		.policy = WEIR_POLICY_BLOCK,
		.connections = 1,
		.gate_given = -1,
		.device = true,
	};
}

static struct wr_plan_output hidden_output(const weir_port *port, uint32_t max_emits)
{
	return (struct wr_plan_output){
		.port = port,
		.type.port = &turn_port,
		.kinds = ~0U,
		.max_emits = max_emits,
		.connections = 1,
	};
}

static weir_status add_condition(const struct expansion *expansion, struct wr_plan_entity *entity)
{
	struct wr_plan_condition *added;
	struct wr_plan_condition *all = wr_alloc(entity->condition_count + 1, sizeof *all);

	if (!all)
		return WEIR_E_NOMEM;
	if (entity->condition_count)
		memcpy(all, entity->conditions, sizeof *all * entity->condition_count);
	wr_free(entity->conditions);
	entity->conditions = all;
	added = &all[entity->condition_count];
	*added = (struct wr_plan_condition){.kind = expansion->condition, .signal = -1};
	added->name = wr_strdup(expansion->condition->name);
	added->values = wr_alloc(1, sizeof *added->values);
	entity->condition_count++;
	return added->name && added->values ? WEIR_OK : WEIR_E_NOMEM;
}

static void connect(struct wr_plan *plan, uint32_t from, size_t output, uint32_t to, size_t input)
{
	plan->connections[plan->connection_count++] = (struct wr_plan_connection){
		.from = from, .output = (uint32_t)output, .to = to, .input = (uint32_t)input};
}

/* What a hidden entity has of X. */
static struct wr_plan_entity *add_entity(const struct expansion *expansion, enum wr_role role, size_t inputs,
					 size_t outputs)
{
	const struct wr_plan_entity *dealer = expansion->dealer;
	struct wr_plan_entity *entity = &expansion->plan->entities[expansion->plan->entity_count++];

	*entity = (struct wr_plan_entity){
		.name = dealer->name,
		.kind = dealer->kind,
		.stream_pool = dealer->stream_pool,
		.device = dealer->device,
		.use_default_stream = dealer->use_default_stream,
		.effects = dealer->effects,
		.depth = dealer->depth,
		.max_in_flight = dealer->max_in_flight,
		.replay_given = dealer->replay_given,
		.replay_keys = dealer->replay_keys,
		.replay_warm_up = dealer->replay_warm_up,
		.values = dealer->values,
		.instances = dealer->instances,
		.role = role,
		.first = dealer->first,
		.dealer = expansion->dealer_at,
		.joiner = dealer->joiner,
	};
	entity->inputs = wr_alloc(inputs + 1, sizeof *entity->inputs);
	entity->outputs = wr_alloc(outputs + 1, sizeof *entity->outputs);
	entity->input_count = entity->inputs ? inputs : 0;
	entity->output_count = entity->outputs ? outputs : 0;
	return entity->inputs && entity->outputs ? entity : NULL;
}

static weir_status add_instance(struct expansion *expansion, uint32_t number)
{
	const struct wr_plan_entity *dealer = expansion->dealer;
	bool joined = dealer->joiner != WR_NO_JOINER;
	size_t inputs = dealer->input_count, outputs = wr_port_count(dealer->kind->outputs);
	const struct wr_plan_output *given =
		joined ? expansion->plan->entities[dealer->joiner].outputs : NULL;
	struct wr_plan_entity *entity =
		add_entity(expansion, WR_INSTANCE, inputs + 1, joined ? outputs + 1 : 0);

	if (!entity)
		return WEIR_E_NOMEM;
	entity->number = number;
	entity->memory_count = dealer->memory_count;
	memcpy(entity->memory, dealer->memory, sizeof entity->memory);
	for (size_t i = 0; i < inputs; i++) {
		entity->inputs[i] = hidden_input(dealer->inputs[i].port, largest_set(&dealer->inputs[i]));
		entity->inputs[i].gate = dealer->inputs[i].gate;
		entity->inputs[i].device = dealer->inputs[i].device;
	}
	entity->inputs[inputs] = hidden_input(&turn_port, 1);
	for (size_t i = 0; joined && i < outputs; i++)
		entity->outputs[i] = hidden_output(given[i].port, given[i].max_emits);
	if (joined)
		entity->outputs[outputs] = hidden_output(&turn_port, 1);
	return add_condition(expansion, entity);
}

/* Before the instances, whose outputs are made after its own. */
static weir_status add_joiner(struct expansion *expansion)
{
	struct wr_plan_entity *dealer = expansion->dealer;
	size_t outputs = dealer->output_count, ports = outputs + 1, kept = 0;
	struct wr_plan_entity *joiner;

	joiner = add_entity(expansion, WR_JOINER, ports * dealer->instances, 0);
	if (!joiner)
		return WEIR_E_NOMEM;
	for (size_t i = 0; i < joiner->input_count; i++)
		joiner->inputs[i] = i % ports < outputs ? hidden_input(dealer->outputs[i % ports].port,
								       dealer->outputs[i % ports].max_emits)
							: hidden_input(&turn_port, 1);
	wr_free(joiner->outputs);
	joiner->outputs = dealer->outputs;
	joiner->output_count = outputs;
	dealer->outputs = NULL;
	dealer->output_count = 0;
	joiner->conditions = wr_alloc(dealer->condition_count + 1, sizeof *joiner->conditions);
	if (!joiner->conditions)
		return WEIR_E_NOMEM;
	/* Those that name an output ask about the joiner's, whose ports have the same indices. */
	for (size_t i = 0; i < dealer->condition_count; i++) {
		const struct wr_plan_condition *condition = &dealer->conditions[i];
		unsigned port;
		bool input = true;

		if (wr_condition_port(condition, &port, &input) && !input)
			joiner->conditions[joiner->condition_count++] = *condition;
		else
			dealer->conditions[kept++] = *condition;
	}
	dealer->condition_count = kept;
	return WEIR_OK;
}

static weir_status make_dealer(const struct expansion *expansion)
{
	struct wr_plan_entity *dealer = expansion->dealer;
	size_t ports = dealer->input_count + 1;

	wr_free(dealer->outputs);
	dealer->output_count = 0;
	dealer->outputs = wr_alloc(ports * dealer->instances, sizeof *dealer->outputs);
	if (!dealer->outputs)
		return WEIR_E_NOMEM;
	dealer->output_count = ports * dealer->instances;
	for (size_t i = 0; i < dealer->output_count; i++)
		dealer->outputs[i] = i % ports < dealer->input_count
					     ? hidden_output(dealer->inputs[i % ports].port,
							     largest_set(&dealer->inputs[i % ports]))
					     : hidden_output(&turn_port, 1);
	for (size_t i = 0; i < dealer->input_count; i++) {
		dealer->inputs[i].gate = false;
		dealer->inputs[i].device = true;
	}
	dealer->role = WR_DEALER;
	dealer->dealer = expansion->dealer_at;
	dealer->memory_count = 0;
	dealer->effects = false;
	return add_condition(expansion, dealer);
}

static weir_status expand_entity(struct wr_plan *plan, const weir_condition *condition, uint32_t at)
{
	struct expansion expansion = {plan, condition, &plan->entities[at], at};
	struct wr_plan_entity *dealer = expansion.dealer, *joiner = NULL;
	size_t inputs = dealer->input_count + 1, outputs = dealer->output_count + 1;
	weir_status status = WEIR_OK;

	dealer->joiner = dealer->output_count ? (uint32_t)plan->entity_count : WR_NO_JOINER;
	dealer->first = (uint32_t)plan->entity_count + (dealer->output_count > 0);
	if (dealer->output_count) {
		joiner = &plan->entities[dealer->joiner];
		status = add_joiner(&expansion);
	}
	for (uint32_t k = 0; !status && k < dealer->instances; k++)
		status = add_instance(&expansion, k);
	if (!status && joiner)
		status = add_condition(&expansion, joiner);
	if (!status)
		status = make_dealer(&expansion);
	if (status)
		return status;
	for (size_t i = 0; joiner && i < plan->shown_connections; i++)
		if (plan->connections[i].from == at)
			plan->connections[i].from = dealer->joiner;
	for (size_t i = 0; joiner && i < plan->outlet_count; i++)
		if (plan->outlets[i].entity == at)
			plan->outlets[i].entity = dealer->joiner;
	for (uint32_t k = 0; k < dealer->instances; k++) {
		for (size_t i = 0; i < inputs; i++)
			connect(plan, at, k * inputs + i, dealer->first + k, i);
		for (size_t i = 0; joiner && i < outputs; i++)
			connect(plan, dealer->first + k, i, dealer->joiner, k * outputs + i);
	}
	return WEIR_OK;
}

weir_status wr_plan_expand(struct wr_plan *plan, const weir_condition *condition)
{
	size_t entities = plan->entity_count, connections = plan->connection_count;
	struct wr_plan_entity *all;
	struct wr_plan_connection *joined;
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < plan->shown_count; i++) {
		const struct wr_plan_entity *entity = &plan->entities[i];
		size_t ports =
			entity->input_count + 1 + (entity->output_count ? entity->output_count + 1 : 0);

		if (entity->instances < 2)
			continue;
		entities += entity->instances + 1;
		connections += entity->instances * ports;
	}
	if (entities == plan->entity_count)
		return WEIR_OK;
	all = wr_alloc(entities, sizeof *all);
	joined = wr_alloc(connections, sizeof *joined);
	if (!all || !joined) {
		wr_free(all);
		wr_free(joined);
		return WEIR_E_NOMEM;
	}
	memcpy(all, plan->entities, sizeof *all * plan->entity_count);
	if (plan->connection_count)
		memcpy(joined, plan->connections, sizeof *joined * plan->connection_count);
	wr_free(plan->entities);
	wr_free(plan->connections);
	plan->entities = all;
	plan->connections = joined;
	for (uint32_t i = 0; !status && i < plan->shown_count; i++)
		if (plan->entities[i].instances > 1)
			status = expand_entity(plan, condition, i);
	return status;
}

/*
 * Input ports with `"policy": "latest"`: one connection, whose newest finished message each tick receives.
 * What cannot be beside it is refused here, in the text; what a table says is checked with the table
 * (table.c).
 */
#include <string.h>

#include "graphs/build.h"

/* Of its policy; if the operator's table says it, of the entity. */
static struct wr_place place_of(const struct wr_build *build, size_t entity,
				const struct wr_plan_input *input)
{
	if (!input->policy_line)
		return wr_value_at(build->entities, entity)->value.place;
	return (struct wr_place){input->policy_line, input->policy_column};
}

static void report_key(struct wr_build *build, const struct wr_at *at, const char *key,
		       const struct wr_value *value, const char *why)
{
	if (value)
		wr_report(&build->reports, WR_W_LATEST, &(struct wr_at){at, key, 0}, value->place,
			  "\"latest\" %s: remove \"%s\"", why, key);
}

void wr_build_latest_input(struct wr_build *build, struct wr_plan_input *input, const struct wr_at *at,
			   const struct wr_value *capacity, const struct wr_value *take,
			   const struct wr_value *gate)
{
	report_key(build, at, "capacity", capacity, "has places of its own");
	report_key(build, at, "take", take, "gives one message");
	if (gate && !gate->boolean)
		report_key(build, at, "gate", gate, "gives finished messages only");
	if (!take && input->port->take > 1)
		wr_report(
			&build->reports, WR_W_LATEST, &(struct wr_at){at, "policy", 0},
			(struct wr_place){input->policy_line, input->policy_column},
			"\"latest\" gives one message, but the operator takes %s here: choose another policy",
			input->port->take == WEIR_TAKE_ALL ? "all" : "several");
	input->capacity = input->take = 1;
}

static void check_beside(struct wr_build *build, size_t entity, unsigned port, const struct wr_at *at)
{
	const struct wr_plan_entity *plan = &build->plan->entities[entity];
	const struct wr_plan_input *input = &plan->inputs[port];
	uint32_t found = 0;

	if (input->port->flags & WEIR_PORT_ANY_SIZE)
		wr_report(&build->reports, WR_W_LATEST, at, place_of(build, entity, input),
			  "'%s' takes from any number of connections, and \"latest\" gives what came last by "
			  "one: choose another policy",
			  input->port->name);
	else if (input->port->flags & WEIR_PORT_ONCE)
		wr_report(&build->reports, WR_W_LATEST, at, place_of(build, entity, input),
			  "\"latest\" gives a message to tick after tick, and '%s' takes each once: choose "
			  "another "
			  "policy, or give this one to a 'pass' before it, with a 'periodic'",
			  input->port->name);
	else if (input->connections && input->inlet)
		wr_report(&build->reports, WR_W_LATEST, at, place_of(build, entity, input),
			  "'%s' has a connection and an inlet, and \"latest\" gives what came last by one: "
			  "remove one of them",
			  input->port->name);
	for (size_t i = 0; i < plan->condition_count; i++)
		if (!wr_condition_names(&plan->conditions[i], port, true))
			continue;
		else if (plan->conditions[i].inner)
			wr_report(&build->reports, WR_W_LATEST, at, place_of(build, entity, input),
				  "\"latest\" gives '%s' to every tick: leave it out of any_of",
				  input->port->name);
		else if (!strcmp(plan->conditions[i].kind->name, "multi_message_available") ||
			 !strcmp(plan->conditions[i].kind->name, "expiring_message_available"))
			wr_report(&build->reports, WR_W_LATEST, at, place_of(build, entity, input),
				  "\"latest\" gives one message: leave '%s' out of %s", input->port->name,
				  plan->conditions[i].kind->name);
		else if (!strcmp(plan->conditions[i].kind->name, "cuda_stream"))
			wr_report(&build->reports, WR_W_LATEST, at, place_of(build, entity, input),
				  "\"latest\" gives finished messages only: remove the cuda_stream condition "
				  "of '%s'",
				  input->port->name);
	for (size_t i = 0; i < build->plan->connection_count; i++) {
		const struct wr_plan_connection *c = &build->plan->connections[i];

		if (c->to == entity && c->input == port && found++)
			wr_build_report_connection(
				build, WR_W_LATEST, i,
				"is not the only connection into '%s', and \"latest\" gives what came last "
				"by one: remove it, or choose another policy",
				input->port->name);
	}
}

/* Kinds that say nothing of when the next tick is due while such ports show something. */
static bool paces(const struct wr_plan_condition *condition)
{
	static const char *const others[] = {
		"message_available", "cuda_stream",     "count", "downstream_message_affordable",
		"in_flight",         "memory_available"};

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (!strcmp(condition->kind->name, others[i]))
			return false;
	return true;
}

/* A tree does if each of its alternatives does: one that does not lets the entity tick. */
static bool tree_paces(const struct wr_plan_condition *tree)
{
	for (size_t i = 1, last; i <= tree->span; i = last + 1) {
		bool any = false;
		last = i + tree[i].span;
		for (size_t k = i; k <= last; k++)
			any |= !tree[k].span && paces(&tree[k]);
		if (!any)
			return false;
	}
	return true;
}

static bool is_paced(const struct wr_build *build, size_t entity)
{
	const struct wr_plan_entity *plan = &build->plan->entities[entity];

	for (size_t i = 0; i < plan->input_count; i++)
		if (plan->inputs[i].connections + plan->inputs[i].inlet &&
		    plan->inputs[i].policy != WEIR_POLICY_LATEST)
			return true;
	for (size_t i = 0; i < plan->condition_count; i++)
		if (!plan->conditions[i].inner && (plan->conditions[i].span ? tree_paces(&plan->conditions[i])
									    : paces(&plan->conditions[i])))
			return true;
	for (size_t i = 0; i < plan->output_count; i++)
		if (plan->outputs[i].outlet)
			return true;
	for (size_t i = 0; i < build->plan->connection_count; i++) {
		const struct wr_plan_connection *c = &build->plan->connections[i];

		if (c->from == entity &&
		    build->plan->entities[c->to].inputs[c->input].policy == WEIR_POLICY_BLOCK)
			return true;
	}
	return false;
}

/* Returns true if it warned of the entity. */
static bool check_port(struct wr_build *build, size_t entity, unsigned port, bool warned)
{
	const struct wr_plan_input *input = &build->plan->entities[entity].inputs[port];
	struct wr_at all = {NULL, "entities", 0}, at = {&all, NULL, entity}, ports = {&at, "ports", 0},
		     here = {&ports, input->port->name, 0}, policy = {&here, "policy", 0};
	const struct wr_at *where = input->policy_line ? &policy : &at;

	check_beside(build, entity, port, where);
	if (warned || !(input->connections + input->inlet) || build->open_ports || build->unresolved ||
	    is_paced(build, entity))
		return warned;
	wr_report(&build->reports, WR_W_ONLY_LATEST, where, place_of(build, entity, input),
		  "nothing says when '%s' ticks: all its inputs are \"latest\", so it ticks without pause "
		  "once each has a message; add a condition, as periodic",
		  build->plan->entities[entity].name);
	return true;
}

void wr_build_check_latest(struct wr_build *build)
{
	for (size_t i = 0; i < build->plan->entity_count; i++) {
		bool warned = false;
		for (unsigned k = 0; k < build->plan->entities[i].input_count; k++)
			if (build->plan->entities[i].inputs[k].policy == WEIR_POLICY_LATEST)
				warned = check_port(build, i, k, warned);
	}
}

/*
 * A plan for readers: as text, as a graph file that means the same plan, as Graphviz' DOT. Whoever prints
 * adds to one growing text, whose first failure stays; so nothing has to be checked on the way.
 */
#include <inttypes.h>
#include <string.h>

#include "graphs/plan.h"
#include "graphs/text.h"
#include "graphs/units.h"
#include "graphs/values.h"
#include "streams/streams.h"

static const char *const policies[] = {"block", "pop", "reject", "fault"}; /* weir_policy */
static const char *const signals[] = {"callback", "callback_inline"};      /* enum wr_signal_kind */

/* -----------------------------------------------------------------------------------------------------------
 * values -- */

static const char *port_name(const struct wr_plan_entity *entity, const struct wr_setting *setting, size_t i)
{
	unsigned port = setting->ports[i];

	return wr_parameter_is_input(setting->parameter) ? entity->inputs[port].port->name
							 : entity->outputs[port].port->name;
}

static void add_ports(struct wr_text *text, const struct wr_plan_entity *entity,
		      const struct wr_setting *setting)
{
	bool list = setting->parameter->type == WEIR_INPUTS || setting->parameter->type == WEIR_OUTPUTS;

	if (list)
		wr_text_add(text, "[");
	for (size_t i = 0; i < setting->port_count; i++)
		wr_text_add(text, "%s\"%s\"", i ? ", " : "", port_name(entity, setting, i));
	if (list)
		wr_text_add(text, "]");
}

/* As JSON; for people durations and sizes get a unit. */
static void add_setting(struct wr_text *text, const struct wr_plan_entity *entity,
			const struct wr_setting *setting, bool people)
{
	switch (setting->parameter->type) {
	case WEIR_BOOL:
		wr_text_add(text, "%s", setting->integer ? "true" : "false");
		break;
	case WEIR_NUMBER:
		wr_text_real(text, setting->number);
		break;
	case WEIR_STRING:
	case WEIR_CHOICE:
		wr_text_string(text, setting->string);
		break;
	case WEIR_INPUT:
	case WEIR_OUTPUT:
	case WEIR_INPUTS:
	case WEIR_OUTPUTS:
		add_ports(text, entity, setting);
		break;
	case WEIR_INT:
	case WEIR_DURATION:
	case WEIR_SIZE:
		if (people && setting->parameter->type == WEIR_DURATION)
			wr_text_add(text, "%s", wr_duration_shown(setting->integer).text);
		else if (people && setting->parameter->type == WEIR_SIZE)
			wr_text_add(text, "%s", wr_size_shown(setting->integer).text);
		else
			wr_text_add(text, "%" PRId64, setting->integer);
		break;
	}
}

/* -------------------------------------------------------------------------------------------------------------
 * JSON -- */

static void json_values(struct wr_text *text, const struct wr_plan_entity *entity, const weir_values *values,
			const char *before)
{
	for (size_t i = 0; i < values->count; i++) {
		wr_text_add(text, "%s\"%s\": ", i ? ", " : before, values->settings[i].parameter->name);
		add_setting(text, entity, &values->settings[i], false);
	}
}

static void json_scheduler(struct wr_text *text, const struct wr_plan_scheduler *scheduler)
{
	wr_text_add(text, "  \"scheduler\": {");
	if (scheduler->workers)
		wr_text_add(text, "\"workers\": %u, ", scheduler->workers);
	if (scheduler->signal >= 0)
		wr_text_add(text, "\"signal\": \"%s\", ", signals[scheduler->signal]);
	if (scheduler->backend)
		wr_text_add(text, "\"backend\": \"%s\", ", scheduler->backend);
	if (scheduler->has_seed)
		wr_text_add(text, "\"seed\": %" PRIu64 ", ", scheduler->seed);
	if (scheduler->has_drain)
		wr_text_add(text, "\"drain\": %" PRId64 ", ", scheduler->drain_ns);
	if (scheduler->has_grace)
		wr_text_add(text, "\"deadlock_grace\": %" PRId64 ", ", scheduler->deadlock_grace_ns);
	if (scheduler->has_duration)
		wr_text_add(text, "\"max_duration\": %" PRId64 ", ", scheduler->max_duration_ns);
	if (scheduler->has_spin)
		wr_text_add(text, "\"spin\": %" PRId64 ", ", scheduler->spin_ns);
	wr_text_add(text, "\"device_memory\": %" PRId64 ", \"host_memory\": %" PRId64 "},\n",
		    scheduler->device_memory, scheduler->host_memory);
}

static void json_ports(struct wr_text *text, const struct wr_plan_entity *entity)
{
	const char *before = ",\n     \"ports\": {";

	for (size_t i = 0; i < entity->input_count; i++, before = ", ") {
		const struct wr_plan_input *input = &entity->inputs[i];
		wr_text_add(text, "%s\"%s\": {\"capacity\": %u, ", before, input->port->name,
			    input->capacity);
		if (input->take == WEIR_ALL)
			wr_text_add(text, "\"take\": \"all\", ");
		else
			wr_text_add(text, "\"take\": %u, ", input->take);
		wr_text_add(text, "\"policy\": \"%s\"}", policies[input->policy]);
	}
	for (size_t i = 0; i < entity->output_count; i++, before = ", ")
		wr_text_add(text, "%s\"%s\": {\"max_emits\": %u}", before, entity->outputs[i].port->name,
			    entity->outputs[i].max_emits);
	if (entity->input_count + entity->output_count)
		wr_text_add(text, "}");
}

/* Implied conditions too: written down they mean the same. */
static void json_condition(struct wr_text *text, const struct wr_plan_entity *entity,
			   const struct wr_plan_condition *condition)
{
	wr_text_add(text, "{\"type\": \"%s\"", condition->kind->name);
	if (strcmp(condition->name, condition->kind->name))
		wr_text_add(text, ", \"name\": \"%s\"", condition->name);
	if (condition->signal >= 0)
		wr_text_add(text, ", \"signal\": \"%s\"", signals[condition->signal]);
	json_values(text, entity, condition->values, ", ");
	wr_text_add(text, "}");
}

static void json_entity(struct wr_text *text, const struct wr_plan_entity *entity)
{
	wr_text_add(text, "    {\"name\": \"%s\", \"operator\": \"%s\"", entity->name, entity->kind->name);
	if (entity->values->count) {
		json_values(text, entity, entity->values, ",\n     \"parameters\": {");
		wr_text_add(text, "}");
	}
	json_ports(text, entity);
	for (size_t i = 0; i < entity->condition_count; i++) {
		wr_text_add(text, i ? ",\n                    " : ",\n     \"conditions\": [");
		json_condition(text, entity, &entity->conditions[i]);
	}
	wr_text_add(text, "%s}", entity->condition_count ? "]" : "");
}

static const char *output_name(const struct wr_plan *plan, const struct wr_plan_connection *c)
{
	return plan->entities[c->from].outputs[c->output].port->name;
}

static const char *input_name(const struct wr_plan *plan, const struct wr_plan_connection *c)
{
	return plan->entities[c->to].inputs[c->input].port->name;
}

static void json_connection(struct wr_text *text, const struct wr_plan *plan,
			    const struct wr_plan_connection *c)
{
	const char *from = plan->entities[c->from].name, *to = plan->entities[c->to].name;

	if (c->initial)
		wr_text_add(text, "    {\"from\": \"%s.%s\", \"to\": \"%s.%s\", \"initial\": %u}", from,
			    output_name(plan, c), to, input_name(plan, c), c->initial);
	else
		wr_text_add(text, "    [\"%s.%s\", \"%s.%s\"]", from, output_name(plan, c), to,
			    input_name(plan, c));
}

static void add_json(struct wr_text *text, const struct wr_plan *plan)
{
	wr_text_add(text, "{\n  \"weir\": 1, \"name\": \"%s\",\n", plan->name);
	json_scheduler(text, &plan->scheduler);
	wr_text_add(text, "  \"entities\": [");
	for (size_t i = 0; i < plan->entity_count; i++) {
		wr_text_add(text, i ? ",\n" : "\n");
		json_entity(text, &plan->entities[i]);
	}
	wr_text_add(text, "\n  ],\n  \"connections\": [");
	for (size_t i = 0; i < plan->connection_count; i++) {
		wr_text_add(text, i ? ",\n" : "\n");
		json_connection(text, plan, &plan->connections[i]);
	}
	wr_text_add(text, "\n  ]\n}\n");
}

/* -------------------------------------------------------------------------------------------------------------
 * text -- */

static void text_duration(struct wr_text *text, const char *name, bool given, int64_t ns)
{
	if (given)
		wr_text_add(text, ", %s %s", name, ns < 0 ? "for ever" : wr_duration_shown(ns).text);
}

static void text_scheduler(struct wr_text *text, const struct wr_plan_scheduler *scheduler)
{
	if (scheduler->workers)
		wr_text_add(text, "scheduler: workers %u", scheduler->workers);
	else
		wr_text_add(text, "scheduler: workers one per core");
	wr_text_add(text, ", signal %s",
		    signals[scheduler->signal < 0 ? WR_SIGNAL_CALLBACK : scheduler->signal]);
	wr_text_add(text, ", backend %s", scheduler->backend ? scheduler->backend : "auto");
	if (scheduler->has_seed)
		wr_text_add(text, ", seed %" PRIu64, scheduler->seed);
	text_duration(text, "drain", true, scheduler->has_drain ? scheduler->drain_ns : 5000000000);
	text_duration(text, "deadlock_grace", scheduler->has_grace, scheduler->deadlock_grace_ns);
	text_duration(text, "max_duration", scheduler->has_duration, scheduler->max_duration_ns);
	text_duration(text, "spin", scheduler->has_spin, scheduler->spin_ns);
	wr_text_add(text, ", device_memory %s", wr_size_shown(scheduler->device_memory).text);
	wr_text_add(text, ", host_memory %s\n", wr_size_shown(scheduler->host_memory).text);
}

static void text_values(struct wr_text *text, const struct wr_plan_entity *entity, const weir_values *values)
{
	for (size_t i = 0; i < values->count; i++) {
		wr_text_add(text, " %s=", values->settings[i].parameter->name);
		add_setting(text, entity, &values->settings[i], true);
	}
}

static void text_ports(struct wr_text *text, const struct wr_plan_entity *entity)
{
	for (size_t i = 0; i < entity->input_count; i++) {
		const struct wr_plan_input *input = &entity->inputs[i];
		wr_text_add(text, "  input %s: capacity %u, take ", input->port->name, input->capacity);
		if (input->take == WEIR_ALL)
			wr_text_add(text, "all, %s", policies[input->policy]);
		else
			wr_text_add(text, "%u, %s", input->take, policies[input->policy]);
		wr_text_add(text, "%s\n", input->connections ? "" : ", not connected");
	}
	for (size_t i = 0; i < entity->output_count; i++)
		wr_text_add(text, "  output %s: max_emits %u%s\n", entity->outputs[i].port->name,
			    entity->outputs[i].max_emits,
			    entity->outputs[i].connections ? "" : ", not connected");
}

static void text_condition(struct wr_text *text, const struct wr_plan_entity *entity,
			   const struct wr_plan_condition *condition)
{
	wr_text_add(text, "  when %s", condition->kind->name);
	if (strcmp(condition->name, condition->kind->name))
		wr_text_add(text, " '%s'", condition->name);
	text_values(text, entity, condition->values);
	if (condition->signal >= 0)
		wr_text_add(text, " signal=%s", signals[condition->signal]);
	wr_text_add(text, "%s\n", condition->implied ? " (default)" : "");
}

static void text_entity(struct wr_text *text, const struct wr_plan_entity *entity)
{
	wr_text_add(text, "%s: %s", entity->name, entity->kind->name);
	text_values(text, entity, entity->values);
	wr_text_add(text, "\n");
	text_ports(text, entity);
	for (size_t i = 0; i < entity->condition_count; i++)
		text_condition(text, entity, &entity->conditions[i]);
}

static void add_text(struct wr_text *text, const struct wr_plan *plan)
{
	wr_text_add(text, "graph %s: %zu entit%s, %zu connection%s\n", plan->name, plan->entity_count,
		    plan->entity_count == 1 ? "y" : "ies", plan->connection_count,
		    plan->connection_count == 1 ? "" : "s");
	text_scheduler(text, &plan->scheduler);
	for (size_t i = 0; i < plan->entity_count; i++)
		text_entity(text, &plan->entities[i]);
	for (size_t i = 0; i < plan->connection_count; i++) {
		const struct wr_plan_connection *c = &plan->connections[i];
		wr_text_add(text, "%s.%s -> %s.%s", plan->entities[c->from].name, output_name(plan, c),
			    plan->entities[c->to].name, input_name(plan, c));
		if (c->initial)
			wr_text_add(text, " (%u initial)", c->initial);
		wr_text_add(text, "\n");
	}
}

/* --------------------------------------------------------------------------------------------------------------
 * DOT -- */

/* Names are letters, digits, _ and -: nothing in them needs an escape. */
static void dot_entity(struct wr_text *text, const struct wr_plan_entity *entity)
{
	bool gated = false;

	for (size_t i = 0; i < entity->condition_count; i++)
		gated |= !strcmp(entity->conditions[i].kind->name, "cuda_stream");
	wr_text_add(text, "  \"%s\" [label=\"%s\\n%s\"%s];\n", entity->name, entity->name, entity->kind->name,
		    gated ? ", style=\"rounded,bold\"" : "");
}

static void dot_connection(struct wr_text *text, const struct wr_plan *plan,
			   const struct wr_plan_connection *c)
{
	const struct wr_plan_input *input = &plan->entities[c->to].inputs[c->input];

	wr_text_add(text, "  \"%s\" -> \"%s\" [taillabel=\"%s\", headlabel=\"%s\"",
		    plan->entities[c->from].name, plan->entities[c->to].name, output_name(plan, c),
		    input_name(plan, c));
	if (input->capacity > 1 || input->policy != WEIR_BLOCK)
		wr_text_add(text, ", label=\"%s %u\"", policies[input->policy], input->capacity);
	wr_text_add(text, "%s];\n", c->initial ? ", style=dashed" : "");
}

static void add_dot(struct wr_text *text, const struct wr_plan *plan)
{
	wr_text_add(text, "digraph \"%s\" {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n",
		    plan->name);
	for (size_t i = 0; i < plan->entity_count; i++)
		dot_entity(text, &plan->entities[i]);
	for (size_t i = 0; i < plan->connection_count; i++)
		dot_connection(text, plan, &plan->connections[i]);
	wr_text_add(text, "}\n");
}

static void add_plan(struct wr_text *text, const struct wr_plan *plan, weir_format format)
{
	switch (format) {
	case WEIR_AS_TEXT:
		add_text(text, plan);
		break;
	case WEIR_AS_JSON:
		add_json(text, plan);
		break;
	case WEIR_AS_DOT:
		add_dot(text, plan);
		break;
	}
}

weir_status weir_description_print(const weir_description *description, const weir_registry *registry,
				   weir_format format, char **out)
{
	struct wr_text text = {0};
	struct wr_plan *plan = NULL;
	weir_status status = wr_plan_create(&plan, registry, description, true, NULL, NULL);

	if (status)
		return status;
	add_plan(&text, plan, format);
	wr_plan_destroy(plan);
	status = text.status;
	if (status)
		wr_text_finish(&text);
	else
		*out = text.text;
	return status;
}

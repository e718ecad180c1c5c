/*
 * Draws a plan for Graphviz: an entity with its kind, its resource, the parameters that differ from their
 * defaults, and the conditions that are not defaults; a connection with its queue and its gate.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graphs/parameter.h"
#include "graphs/show.h"
#include "streams/streams.h"

enum { VALUE_ROOM = 44 }; /* a longer value is cut */

/* --- labels: a text with line feeds, escaped when it is drawn --- */

/* A text keeps its first failure, or that of a part of it. */
static void take_status(struct wr_text *text, weir_status status)
{
	if (!text->status)
		text->status = status;
}

static void dot_escaped(struct wr_text *text, const struct wr_text *label)
{
	for (size_t i = 0; i < label->length; i++) {
		char c = label->text[i];

		if (c == '\n')
			wr_text_add(text, "\\n");
		else if (c == '&')
			wr_text_add(text, "&amp;");
		else
			wr_text_add(text, c == '"' || c == '\\' ? "\\%c" : "%c", c);
	}
}

/* Whose parameters they are, and whose ports they name. */
struct holder {
	const struct wr_plan_entity *entity;
	const weir_values *values;
};

/* The value of the table's default, as a text; NULL: there is none. */
static char *default_text(struct wr_text *text, const struct holder *holder, const weir_parameter *parameter)
{
	const weir_parameter only[] = {*parameter, {.name = NULL}};
	struct wr_values_source source = {.kind = holder->values->kind,
					  .name = holder->values->name,
					  .parameters = only,
					  .ports = holder->entity->kind};
	struct wr_reports reports = {0};
	struct wr_text shown = {0};
	weir_values *values = NULL;
	weir_status status = parameter->fallback ? wr_values_create(&values, &source, &reports) : WEIR_OK;

	if (values)
		wr_show_setting(&shown, holder->entity, &values->settings[0], true);
	wr_values_destroy(values);
	take_status(text, status ? status : shown.status);
	return shown.text;
}

/* Adds the parameters that differ from their defaults; returns how many of them have a default. */
static size_t label_settings(struct wr_text *label, const struct holder *holder, const char *before)
{
	size_t changed = 0;

	for (size_t i = 0; i < holder->values->count && !label->status; i++) {
		const struct wr_setting *setting = &holder->values->settings[i];
		struct wr_text shown = {0};
		char value[VALUE_ROOM], *usual = NULL;

		wr_show_setting(&shown, holder->entity, setting, true);
		take_status(label, shown.status);
		if (!label->status)
			usual = default_text(label, holder, setting->parameter);
		if (!shown.status && (!usual || !shown.text || strcmp(usual, shown.text))) {
			wr_shown_cut(value, sizeof value, shown.text);
			wr_text_add(label, "%s%s=%s", before, setting->parameter->name, value);
			changed += setting->parameter->fallback != NULL;
		}
		wr_text_finish(&shown);
		wr_free(usual);
	}
	return changed;
}

/* Kinds that entities have by default: such a condition is drawn only if it differs from that. */
static bool is_usual(const struct wr_plan_condition *condition)
{
	static const char *const kinds[] = {"message_available", "downstream_message_affordable",
					    "memory_available"};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(condition->kind->name, kinds[i]) && !strcmp(condition->name, kinds[i]))
			return true;
	return false;
}

static void label_condition(struct wr_text *label, const struct wr_plan_entity *entity,
			    const struct wr_plan_condition *condition, int depth)
{
	struct holder holder = {entity, condition->values};
	struct wr_text settings = {0};
	size_t changed = label_settings(&settings, &holder, " ");

	take_status(label, settings.status);
	if (changed || depth || !is_usual(condition)) {
		wr_text_add(label, "\n%*s%s %s", 2 * depth, "", depth ? "-" : "when", condition->kind->name);
		if (strcmp(condition->name, condition->kind->name))
			wr_text_add(label, " '%s'", condition->name);
		wr_text_add(label, "%s", settings.text ? settings.text : "");
		if (condition->signal >= 0)
			wr_text_add(label, " signal=%s", wr_signal_text(condition->signal));
	}
	wr_text_finish(&settings);
}

/* --- entities --- */

static void dot_entity(struct wr_text *text, const struct wr_plan *plan, const struct wr_plan_entity *entity,
		       bool gated)
{
	const char *resource = wr_plan_used_resource(plan, entity);
	struct wr_text label = {0};
	char several[16] = "";

	for (size_t i = 0; i < entity->condition_count; i++)
		gated |= !strcmp(entity->conditions[i].kind->name, "cuda_stream");
	if (entity->instances > 1)
		snprintf(several, sizeof several, " x%u", entity->instances);
	wr_text_add(&label, "%s\n%s%s%s%s", entity->name, entity->kind->name, several, resource ? "\n" : "",
		    resource ? resource : "");
	for (size_t i = 0; i < entity->memory_count; i++)
		wr_text_add(&label, "\n%s", plan->memory_pools[entity->memory[i].pool].name);
	label_settings(&label, &(struct holder){entity, entity->values}, "\n");
	if (entity->max_in_flight >= 0)
		wr_text_add(&label, "\nmax_in_flight %" PRId64, entity->max_in_flight);
	if (entity->effects && entity->output_count)
		wr_text_add(&label, "\neffects");
	if (entity->replay_given)
		wr_text_add(&label, "\nreplay %s", entity->replay_keys ? "on" : "off");
	if (entity->main)
		wr_text_add(&label, "\nmain");
	for (size_t i = 0; i < entity->condition_count; i++)
		if (!entity->conditions[i].implied)
			label_condition(&label, entity, &entity->conditions[i],
					wr_condition_depth(entity, i));
	take_status(text, label.status);
	wr_text_add(text, "  \"%s\" [label=\"", entity->name);
	dot_escaped(text, &label);
	wr_text_add(text, "\"%s];\n", gated ? ", style=\"rounded,bold\"" : "");
	wr_text_finish(&label);
}

/* --- connections --- */

static void dot_queue(struct wr_text *text, const struct wr_plan_input *input, uint32_t max_emits,
		      uint32_t initial)
{
	struct wr_text label = {0};

	if (input->policy == WEIR_POLICY_LATEST)
		wr_text_add(&label, "\nlatest");
	else if (input->capacity > 1 || input->policy != WEIR_POLICY_BLOCK)
		wr_text_add(&label, "\n%s %u", wr_policy_text(input->policy), input->capacity);
	if (input->take == WEIR_TAKE_ALL)
		wr_text_add(&label, "\ntake all");
	else if (input->take > 1)
		wr_text_add(&label, "\ntake %u", input->take);
	if (max_emits > 1)
		wr_text_add(&label, "\nmax_emits %u", max_emits);
	if (initial)
		wr_text_add(&label, "\n%u initial", initial);
	take_status(text, label.status);
	if (label.text) {
		struct wr_text lines = {label.text + 1, label.length - 1, 0, label.status};

		wr_text_add(text, ", label=\"");
		dot_escaped(text, &lines);
		wr_text_add(text, "\"");
	}
	wr_text_finish(&label);
}

static void dot_connection(struct wr_text *text, const struct wr_plan *plan,
			   const struct wr_plan_connection *c)
{
	const struct wr_plan_entity *from = &plan->entities[c->from];
	const struct wr_plan_input *input = &plan->entities[c->to].inputs[c->input];
	/* A gate is drawn if it is asked for, or may close: its sender works on a stream. */
	bool gate = input->gate && (input->gate_given > 0 || from->kind->flags & WEIR_OPERATOR_STREAM);

	wr_text_add(text, "  \"%s\" -> \"%s\" [taillabel=\"%s\", headlabel=\"%s%s\"", from->name,
		    plan->entities[c->to].name, wr_plan_output_name(plan, c), wr_plan_input_name(plan, c),
		    gate                     ? " (gate)"
		    : input->gate_given == 0 ? " (no gate)"
					     : "");
	dot_queue(text, input, from->outputs[c->output].max_emits, c->initial_messages);
	wr_text_add(text, "%s];\n", c->initial_messages ? ", style=dashed" : "");
}

/* Inlets and outlets: each needs a node of its own, hence a unique name. */
static void dot_ends(struct wr_text *text, const struct wr_plan *plan)
{
	for (size_t i = 0; i < plan->inlet_count; i++) {
		const char *entity = plan->entities[plan->inlets[i].entity].name;
		const char *port = wr_plan_inlet(plan, i)->port->name;
		wr_text_add(text, "  \"to %s.%s\" [label=\"inlet\", shape=plaintext];\n", entity, port);
		wr_text_add(text, "  \"to %s.%s\" -> \"%s\" [headlabel=\"%s\"];\n", entity, port, entity,
			    port);
	}
	for (size_t i = 0; i < plan->outlet_count; i++) {
		const char *entity = plan->entities[plan->outlets[i].entity].name;
		const char *port = wr_plan_outlet(plan, i)->port->name;
		wr_text_add(text, "  \"from %s.%s\" [label=\"outlet\", shape=plaintext];\n", entity, port);
		wr_text_add(text, "  \"%s\" -> \"from %s.%s\" [taillabel=\"%s\"", entity, entity, port, port);
		if (wr_plan_outlet(plan, i)->outlet > 1)
			wr_text_add(text, ", label=\"%u\"", wr_plan_outlet(plan, i)->outlet);
		wr_text_add(text, "];\n");
	}
}

void wr_show_dot(struct wr_text *text, const struct wr_plan *plan)
{
	bool *gated = wr_alloc(plan->entity_count + 1, sizeof(*gated));

	if (!gated) {
		take_status(text, WEIR_E_NOMEM);
		return;
	}
	/* Entities are drawn as gated if a gated input is connected to an entity that works on a stream. */
	for (size_t i = 0; i < plan->connection_count; i++) {
		const struct wr_plan_connection *c = &plan->connections[i];
		gated[c->to] |= plan->entities[c->to].inputs[c->input].gate &&
				plan->entities[c->from].kind->flags & WEIR_OPERATOR_STREAM;
	}
	wr_text_add(text, "digraph \"%s\" {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n",
		    plan->name);
	for (size_t i = 0; i < plan->entity_count; i++)
		dot_entity(text, plan, &plan->entities[i], gated[i]);
	wr_free(gated);
	for (size_t i = 0; i < plan->connection_count; i++)
		dot_connection(text, plan, &plan->connections[i]);
	dot_ends(text, plan);
	wr_text_add(text, "}\n");
}

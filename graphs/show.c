/*
 * Prints a plan: as text, as a graph file that gives the same plan, as DOT for Graphviz. Everything is added
 * to one growing text that keeps its first failure, so that only the end has to check it.
 */
#include "graphs/show.h"

#include <string.h>

#include "base/memory.h"
#include "graphs/description.h"

/* --- DOT --- */

/* Entities are drawn as gated if a gated input is connected to an entity that works on a stream. */
static void mark_gated(const struct wr_plan *plan, bool *gated)
{
	for (size_t i = 0; i < plan->connection_count; i++) {
		const struct wr_plan_connection *c = &plan->connections[i];
		gated[c->to] |= plan->entities[c->to].inputs[c->input].gate &&
				plan->entities[c->from].kind->flags & WEIR_OPERATOR_STREAM;
	}
}

/* Names are letters, digits, _ and -, so nothing has to be escaped. */
static void dot_entity(struct wr_text *text, const struct wr_plan *plan, const struct wr_plan_entity *entity,
		       bool gated)
{
	const char *resource = wr_plan_used_resource(plan, entity);

	for (size_t i = 0; i < entity->condition_count; i++)
		gated |= !strcmp(entity->conditions[i].kind->name, "cuda_stream");
	wr_text_add(text, "  \"%s\" [label=\"%s\\n%s%s%s\"%s];\n", entity->name, entity->name,
		    entity->kind->name, resource ? "\\n" : "", resource ? resource : "",
		    gated ? ", style=\"rounded,bold\"" : "");
}

static void dot_connection(struct wr_text *text, const struct wr_plan *plan,
			   const struct wr_plan_connection *c)
{
	const struct wr_plan_input *input = &plan->entities[c->to].inputs[c->input];

	wr_text_add(text, "  \"%s\" -> \"%s\" [taillabel=\"%s\", headlabel=\"%s\"",
		    plan->entities[c->from].name, plan->entities[c->to].name, wr_plan_output_name(plan, c),
		    wr_plan_input_name(plan, c));
	if (input->capacity > 1 || input->policy != WEIR_POLICY_BLOCK)
		wr_text_add(text, ", label=\"%s %u\"", wr_policy_text(input->policy), input->capacity);
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

static void add_dot(struct wr_text *text, const struct wr_plan *plan)
{
	bool *gated = wr_alloc(plan->entity_count + 1, sizeof(*gated));

	if (!gated) {
		text->status = text->status ? text->status : WEIR_E_NOMEM;
		return;
	}
	mark_gated(plan, gated);
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

static void add_plan(struct wr_text *text, const struct wr_plan *plan, weir_format format)
{
	switch (format) {
	case WEIR_FORMAT_TEXT:
		wr_show_text(text, plan);
		break;
	case WEIR_FORMAT_JSON:
		wr_show_json(text, plan);
		break;
	case WEIR_FORMAT_DOT:
		add_dot(text, plan);
		break;
	}
}

weir_status weir_description_print(const weir_description *description, const weir_registry *registry,
				   weir_format format, char **out)
{
	struct wr_text text = {0};
	struct wr_plan *plan = NULL;
	weir_status status = wr_description_plan(&plan, registry, description);

	if (status)
		return status;
	add_plan(&text, plan, format);
	wr_description_keep(description, plan);
	status = text.status;
	if (status)
		wr_text_finish(&text);
	else
		*out = text.text;
	return status;
}

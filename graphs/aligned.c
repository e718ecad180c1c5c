/*
 * The condition `aligned`: each of its ports has one connection and gives one message to a tick. What cannot
 * be is refused here.
 */
#include <stdarg.h>
#include <string.h>

#include "base/text.h"
#include "graphs/build.h"
#include "graphs/parameter.h"

/* A condition in the text; of one that the operator brings, the entity. */
struct aligned {
	struct wr_build *build;
	const struct wr_plan_entity *entity;
	const struct wr_plan_condition *condition;
	const struct wr_at *at;
	const struct wr_value *value; /* NULL: it is brought */
	struct wr_place place;
};

static void refuse(const struct aligned *aligned, const char *key, const char *format, ...) WEIR_PRINTF(3, 4);
/* At the key, or at the condition if it has none. */
static void refuse(const struct aligned *aligned, const char *key, const char *format, ...)
{
	const struct wr_value *value = aligned->value ? wr_value_find(aligned->value, key) : NULL;
	struct wr_at inside = {aligned->at, key, 0};
	struct wr_text line = {0};
	va_list list;

	va_start(list, format);
	wr_text_vadd(&line, format, list);
	va_end(list);
	if (line.status)
		aligned->build->reports.status = line.status;
	else
		wr_report(&aligned->build->reports, WR_W_ALIGNED, value ? &inside : aligned->at,
			  value ? value->place : aligned->place, "%s", line.text);
	wr_text_finish(&line);
}

/* Another condition that says when the port's messages are enough; NULL: there is none. */
static const char *other_gathering(const struct aligned *aligned, unsigned port)
{
	for (size_t i = 0; i < aligned->entity->condition_count; i++) {
		const struct wr_plan_condition *other = &aligned->entity->conditions[i];

		if (other != aligned->condition && other->kind->phase == WEIR_PHASE_GATHERING &&
		    wr_condition_names(other, port, true))
			return other->kind->name;
	}
	return NULL;
}

static void check_port(const struct aligned *aligned, unsigned port)
{
	const struct wr_plan_input *input = &aligned->entity->inputs[port];
	const char *name = input->port->name, *other = other_gathering(aligned, port);

	if (input->port->flags & WEIR_PORT_ANY_SIZE)
		refuse(aligned, "ports",
		       "'%s' takes from any number of connections, and an aligned port from one: leave it "
		       "out",
		       name);
	else if (input->connections + input->inlet > 1)
		refuse(aligned, "ports",
		       "'%s' has more than one connection, whose messages come in any order: leave one",
		       name);
	else if (input->policy == WEIR_POLICY_LATEST || input->policy == WEIR_POLICY_POP)
		refuse(aligned, "ports",
		       "'%s' has the policy \"%s\", which replaces messages before they are compared: make "
		       "it \"block\"",
		       name, input->policy == WEIR_POLICY_POP ? "pop" : "latest");
	else if (input->take != 1)
		refuse(aligned, "ports",
		       "a tick takes one message of an aligned port: leave \"take\" of '%s' at 1", name);
	else if (input->capacity == 1 && weir_values_bool(aligned->condition->values, "nearest"))
		refuse(aligned, "nearest",
		       "'%s' has the capacity 1, and the message after the nearest one must fit, too: raise "
		       "it to 2",
		       name);
	if (other)
		refuse(aligned, "ports", "'%s' is named by %s, too: remove one of the two", name, other);
}

/* Of the two that say how old what is given again may be; the other one is for other keys. */
static void check_age(const struct aligned *aligned, const char *key, const char *other, bool reuse)
{
	const weir_values *values = aligned->condition->values;
	const struct wr_value *written = aligned->value ? wr_value_find(aligned->value, key) : NULL;
	bool tags = !strcmp(other, "max_age");
	bool zero = !weir_values_int(values, key);
	int64_t ns;

	/* What could not be read is 0, too, and was reported. */
	if (written && written->type == WR_STRING)
		zero = !weir_duration_parse(written->string, &ns) && !ns;
	else if (written)
		zero = written->type == WR_INTEGER && !written->integer;
	if (weir_values_int(values, other) != -1)
		refuse(aligned, other,
		       tags ? "\"max_age\" is a time, and tags are compared: use \"max_age_tags\""
			    : "\"max_age_tags\" is for tags, and times are compared: use \"max_age\"");
	else if (weir_values_int(values, key) != -1 && !reuse)
		refuse(aligned, key,
		       "\"%s\" says how old a message may be that is given again: add \"missing\": "
		       "\"reuse\", or leave it out",
		       key);
	else if (zero)
		refuse(aligned, key,
		       "a message of the age 0 belongs to the set, so none would be given again: leave "
		       "\"%s\" "
		       "out for any age, or write \"missing\": \"empty\"",
		       key);
}

static void check_parameters(const struct aligned *aligned)
{
	const weir_values *values = aligned->condition->values;
	const char *missing = weir_values_string(values, "missing");
	const struct wr_setting *ports = wr_values_setting(values, "ports");
	const struct wr_value *written = aligned->value ? wr_value_find(aligned->value, "ports") : NULL;
	bool tags = !strcmp(weir_values_string(values, "by"), "tag");

	/* One that is named twice, or is unknown, was reported. */
	if (ports && ports->port_count == 1 &&
	    (!written || written->type != WR_ARRAY || wr_value_count(written) == 1))
		refuse(aligned, "ports", "messages of one port alone need no partner: name another port");
	if (weir_values_int(values, tags ? "within" : "within_tags"))
		refuse(aligned, tags ? "within" : "within_tags",
		       tags ? "\"within\" is a time, and tags are compared: use \"within_tags\""
			    : "\"within_tags\" is for tags, and times are compared: use \"within\"");
	if (weir_values_int(values, "timeout") && !strcmp(missing, "wait"))
		refuse(aligned, "timeout",
		       "\"timeout\" says when a tick comes without a port: add \"missing\": \"empty\", or "
		       "leave it out");
	check_age(aligned, tags ? "max_age_tags" : "max_age", tags ? "max_age" : "max_age_tags",
		  !strcmp(missing, "reuse"));
	for (size_t i = 0; ports && i < ports->port_count; i++) {
		check_port(aligned, ports->ports[i]);
		if (!strcmp(missing, "reuse"))
			aligned->entity->inputs[ports->ports[i]].reused = true;
	}
}

static void check_written(struct wr_build *build, size_t entity, size_t condition,
			  const struct wr_value *value, const struct wr_at *at)
{
	const struct wr_plan_entity *plan = &build->plan->entities[entity];
	struct aligned aligned = {build, plan, &plan->conditions[condition], at, value, value->place};

	if (!strcmp(aligned.condition->kind->name, "aligned"))
		check_parameters(&aligned);
}

void wr_build_check_aligned(struct wr_build *build)
{
	for (size_t i = 0; i < build->plan->connection_count; i++) {
		const struct wr_plan_connection *c = &build->plan->connections[i];
		const struct wr_plan_entity *to = &build->plan->entities[c->to];

		for (size_t k = 0; c->initial_messages && k < to->condition_count; k++)
			if (!strcmp(to->conditions[k].kind->name, "aligned") &&
			    wr_condition_names(&to->conditions[k], c->input, true))
				wr_build_report_connection(build, WR_W_ALIGNED, i,
							   "initial messages have no stamps, and '%s' is "
							   "aligned: put \"initial_messages\" on another "
							   "connection",
							   to->inputs[c->input].port->name);
	}
	for (size_t i = 0; i < build->plan->entity_count; i++) {
		const struct wr_plan_entity *entity = &build->plan->entities[i];
		struct wr_at all = {NULL, "entities", 0}, at = {&all, NULL, i};
		struct aligned aligned = {build, entity, NULL, &at, NULL, {0}};

		if (!entity->kind)
			continue;
		wr_build_each_condition(build, i, check_written);
		aligned.place = wr_value_at(build->entities, i)->value.place;
		for (size_t k = 0; k < entity->condition_count; k++) {
			aligned.condition = &entity->conditions[k];
			if (aligned.condition->brought && !strcmp(aligned.condition->kind->name, "aligned"))
				check_parameters(&aligned);
		}
	}
}

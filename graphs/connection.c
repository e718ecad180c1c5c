/* The key "connections": each leads from an output to an input. The keys "inlets" and "outlets". */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "graphs/build.h"
#include "graphs/parameter.h"
#include "graphs/table.h"

#define NOTHING UINT32_MAX /* an error, already reported */

/* "entity.port", as indices. */
struct end {
	uint32_t entity, port;
};

/* One item of "connections" while it is read. */
struct connection_item {
	size_t index;
	struct wr_at at;
	struct end from;
	uint32_t initial_messages;
	struct wr_place initial_place;
};

static void report_unknown_entity(struct wr_build *build, const struct wr_at *at, struct wr_place place,
				  const char *name)
{
	struct wr_nearest nearest = {.wanted = name};

	for (size_t i = 0; i < build->plan->entity_count; i++)
		wr_nearest_try(&nearest, build->plan->entities[i].name);
	wr_report(&build->reports, WR_W_UNKNOWN_ENTITY, at, place, "there is no entity '%s'%s",
		  wr_shown(name).text, wr_nearest_hint(&nearest).text);
}

static struct end find_end(struct wr_build *build, const struct wr_at *at, const struct wr_value *value,
			   const char *name, const char *port, bool input)
{
	struct end end = {NOTHING, NOTHING};
	size_t entity = wr_names_find(&build->plan->names, name);
	int index;

	if (entity == WR_NO_INDEX) {
		report_unknown_entity(build, at, value->place, name);
		return end;
	}
	if (!build->plan->entities[entity].kind)
		return end; /* its operator is unknown, already reported */
	index = wr_port_find(&build->reports, at, value->place, build->plan->entities[entity].kind, port,
			     input);
	if (index >= 0)
		end = (struct end){(uint32_t)entity, (uint32_t)index};
	return end;
}

static struct end find_end_named(struct wr_build *build, const struct wr_at *at, const struct wr_value *value,
				 bool input)
{
	struct end end = {NOTHING, NOTHING};
	const char *dot = strchr(value->string, '.');
	char name[65];

	if (!dot || dot == value->string || !dot[1] || strchr(dot + 1, '.') ||
	    (size_t)(dot - value->string) >= sizeof(name)) {
		wr_report(&build->reports, WR_W_ENDPOINT, at, value->place,
			  "'%s' does not name a port: write \"entity.port\"", wr_shown(value->string).text);
	} else {
		memcpy(name, value->string, (size_t)(dot - value->string));
		name[dot - value->string] = '\0';
		end = find_end(build, at, value, name, dot + 1, input);
	}
	build->unresolved |= end.entity == NOTHING;
	return end;
}

static weir_status enter_connection(struct wr_build *build, const struct connection_item *item, struct end to,
				    size_t to_index, struct wr_place place)
{
	size_t i = build->plan->connection_count;
	weir_status status;

	if (item->from.entity == NOTHING || to.entity == NOTHING)
		return WEIR_OK;
	status = wr_grow(&build->plan->connections, &build->connection_room, i + 1,
			 sizeof(*build->plan->connections));
	if (!status)
		status = wr_grow(&build->origins, &build->origin_room, i + 1, sizeof(*build->origins));
	if (status)
		return status;
	build->plan->connections[i] = (struct wr_plan_connection){item->from.entity, item->from.port,
								  to.entity, to.port, item->initial_messages};
	build->origins[i] = (struct wr_connection_origin){item->index, to_index, place, item->initial_place};
	build->plan->connection_count++;
	build->plan->entities[item->from.entity].outputs[item->from.port].connections++;
	build->plan->entities[to.entity].inputs[to.port].connections++;
	return WEIR_OK;
}

/* ["a.out", "b.in"] */
static weir_status read_pair(struct wr_build *build, struct connection_item *item,
			     const struct wr_value *pair)
{
	struct wr_at from = {&item->at, NULL, 0}, to = {&item->at, NULL, 1};
	const struct wr_value *first, *second;

	if (wr_value_count(pair) != 2) {
		build->unresolved = true;
		wr_report(&build->reports, WR_W_ENDPOINT, &item->at, pair->place,
			  "a connection has two ends, this list has %zu: write [\"entity.output\", "
			  "\"entity.input\"]",
			  wr_value_count(pair));
		return WEIR_OK;
	}
	first = &wr_value_at(pair, 0)->value;
	second = &wr_value_at(pair, 1)->value;
	/* Checks the second end even if the first has an error. */
	if (wr_type_check(&build->reports, &from, first, WR_STRING))
		item->from = find_end_named(build, &from, first, false);
	if (!wr_type_check(&build->reports, &to, second, WR_STRING))
		return WEIR_OK;
	return enter_connection(build, item, find_end_named(build, &to, second, true), WR_ORIGIN_PAIR,
				pair->place);
}

/* "to": one end, or a list of them. */
static weir_status read_targets(struct wr_build *build, struct connection_item *item,
				const struct wr_value *to)
{
	struct wr_at at = {&item->at, "to", 0};
	weir_status status = WEIR_OK;

	if (to->type == WR_STRING)
		return enter_connection(build, item, find_end_named(build, &at, to, true), WR_ORIGIN_STRING,
					to->place);
	if (!wr_value_count(to))
		wr_report(&build->reports, WR_W_ENDPOINT, &at, to->place,
			  "is empty: name at least one input");
	for (size_t i = 0; i < wr_value_count(to) && !status; i++) {
		const struct wr_value *target = &wr_value_at(to, i)->value;
		struct wr_at inside = {&at, NULL, i};
		if (wr_type_check(&build->reports, &inside, target, WR_STRING))
			status = enter_connection(build, item, find_end_named(build, &inside, target, true),
						  i, target->place);
	}
	return status;
}

static weir_status read_object(struct wr_build *build, struct connection_item *item,
			       const struct wr_value *object)
{
	enum { FROM, TO, INITIAL, KEYS = 6 };
	static const struct wr_field fields[KEYS] = {{"from", WR_STRING, true},
						     {"to", WR_STRING | WR_ARRAY, true},
						     {"initial_messages", WR_INTEGER, false}};
	const struct wr_value *found[KEYS];

	wr_fields_read(&build->reports, &item->at, object, "a connection", fields, found);
	if (found[INITIAL]) {
		item->initial_messages = (uint32_t)wr_field_integer(
			&build->reports, &(struct wr_at){&item->at, "initial_messages", 0}, found[INITIAL], 0,
			WR_PORT_CAPACITY_MAX, 0);
		item->initial_place = found[INITIAL]->place;
	}
	if (found[FROM])
		item->from = find_end_named(build, &(struct wr_at){&item->at, "from", 0}, found[FROM], false);
	build->unresolved |= !found[FROM] || !found[TO];
	return found[TO] ? read_targets(build, item, found[TO]) : WEIR_OK;
}

static int by_ends(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;

	for (int i = 0; i < 5; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

/* Sorts keys of both ends and the connection's index: equal connections become neighbours. */
static weir_status check_doubles(struct wr_build *build)
{
	const struct wr_plan *plan = build->plan;
	uint32_t(*keys)[5] = wr_alloc(plan->connection_count, sizeof(*keys));

	if (!keys)
		return WEIR_E_NOMEM;
	for (size_t i = 0; i < plan->connection_count; i++) {
		const struct wr_plan_connection *c = &plan->connections[i];
		const uint32_t key[5] = {c->from, c->output, c->to, c->input, (uint32_t)i};
		memcpy(keys[i], key, sizeof(key));
	}
	qsort(keys, plan->connection_count, sizeof(*keys), by_ends);
	for (size_t i = 1; i < plan->connection_count; i++)
		if (!memcmp(keys[i - 1], keys[i], 4 * sizeof(keys[i][0])))
			wr_build_report_connection(build, WR_W_DOUBLE_CONNECTION, keys[i][4],
						   "is listed twice: remove one of them");
	wr_free(keys);
	return WEIR_OK;
}

weir_status wr_build_connections(struct wr_build *build, const struct wr_value *connections)
{
	struct wr_at all = {NULL, "connections", 0};
	weir_status status = WEIR_OK;

	for (size_t i = 0; i < wr_value_count(connections) && !status; i++) {
		struct connection_item item = {.index = i, .at = {&all, NULL, i}, .from = {NOTHING, NOTHING}};
		const struct wr_value *value = &wr_value_at(connections, i)->value;
		if (!wr_type_check(&build->reports, &item.at, value, WR_ARRAY | WR_OBJECT))
			build->unresolved = true;
		else
			status = value->type == WR_ARRAY ? read_pair(build, &item, value)
							 : read_object(build, &item, value);
	}
	return status ? status : check_doubles(build);
}

/*
 * --- inlets and outlets ---
 * The keys "inlets" and "outlets": where a program feeds the graph and takes from it. With them such a graph
 * can be checked, printed and drawn, and a run fails if the program forgot one.
 */

/* One item of a list while it is read. */
struct end_item {
	struct wr_at at;
	struct wr_place place;
	uint32_t capacity;
};

/* "a.out", or {"port": "a.out", "capacity": 4} */
static struct end read_end(struct wr_build *build, struct end_item *item, const struct wr_value *value,
			   bool input)
{
	enum { PORT, CAPACITY, KEYS = 4 };
	static const struct wr_field outlet_fields[KEYS] = {{"port", WR_STRING, true},
							    {"capacity", WR_INTEGER, false}};
	static const struct wr_field inlet_fields[KEYS] = {{"port", WR_STRING, true}};
	const struct wr_value *found[KEYS];

	item->place = value->place;
	item->capacity = 1;
	if (!wr_type_check(&build->reports, &item->at, value, WR_STRING | WR_OBJECT))
		return (struct end){NOTHING, NOTHING};
	if (value->type == WR_STRING)
		return find_end_named(build, &item->at, value, input);
	wr_fields_read(&build->reports, &item->at, value, input ? "an inlet" : "an outlet",
		       input ? inlet_fields : outlet_fields, found);
	if (!input)
		item->capacity =
			(uint32_t)wr_field_integer(&build->reports, &(struct wr_at){&item->at, "capacity", 0},
						   found[CAPACITY], 1, WR_PORT_CAPACITY_MAX, 1);
	if (!found[PORT])
		return (struct end){NOTHING, NOTHING};
	return find_end_named(build, &(struct wr_at){&item->at, "port", 0}, found[PORT], input);
}

const struct wr_plan_input *wr_plan_inlet(const struct wr_plan *plan, size_t i)
{
	return &plan->entities[plan->inlets[i].entity].inputs[plan->inlets[i].port];
}

const struct wr_plan_output *wr_plan_outlet(const struct wr_plan *plan, size_t i)
{
	return &plan->entities[plan->outlets[i].entity].outputs[plan->outlets[i].port];
}

static void report_end_twice(struct wr_build *build, const struct end_item *item, const char *what)
{
	wr_report(&build->reports, WR_W_DUPLICATE_NAME, &item->at, item->place,
		  "this %s is listed twice: remove one of them", what);
}

/* The capacity must hold what one tick may emit, and the room that the sender's conditions need. */
static void check_outlet(struct wr_build *build, const struct end_item *item, const struct end *end)
{
	const struct wr_plan_entity *sender = &build->plan->entities[end->entity];

	if (wr_plan_output_needs(&sender->outputs[end->port]) > item->capacity)
		wr_report(&build->reports, WR_W_MAX_EMITS, &item->at, item->place,
			  "one tick may emit %u, but only %u fit: raise the capacity, or lower max_emits",
			  sender->outputs[end->port].max_emits, item->capacity);
	for (size_t k = 0; k < sender->condition_count; k++) {
		const struct wr_plan_condition *condition = &sender->conditions[k];
		const struct wr_setting *size = wr_values_setting(condition->values, "min_size");
		if (size && size->integer > item->capacity && wr_condition_names(condition, end->port, false))
			wr_report(&build->reports, WR_W_MIN_SIZE, &item->at, item->place,
				  "condition '%s' needs room for %lld, but only %u fit: it would wait for "
				  "ever; "
				  "raise the capacity",
				  condition->name, (long long)size->integer, item->capacity);
	}
}

weir_status wr_build_inlets(struct wr_build *build, const struct wr_value *inlets)
{
	struct wr_plan *plan = build->plan;
	struct wr_at all = {NULL, "inlets", 0};

	plan->inlets = wr_alloc(wr_value_count(inlets) + 1, sizeof(*plan->inlets));
	if (!plan->inlets)
		return WEIR_E_NOMEM;
	for (size_t i = 0; i < wr_value_count(inlets); i++) {
		struct end_item item = {.at = {&all, NULL, i}};
		struct end end = read_end(build, &item, &wr_value_at(inlets, i)->value, true);
		struct wr_plan_input *input;

		build->unresolved |= end.entity == NOTHING;
		if (end.entity == NOTHING)
			continue;
		input = &plan->entities[end.entity].inputs[end.port];
		if (input->inlet)
			report_end_twice(build, &item, "inlet");
		else
			plan->inlets[plan->inlet_count++] = (struct wr_plan_end){end.entity, end.port};
		input->inlet = true;
	}
	return WEIR_OK;
}

weir_status wr_build_outlets(struct wr_build *build, const struct wr_value *outlets)
{
	struct wr_plan *plan = build->plan;
	struct wr_at all = {NULL, "outlets", 0};

	plan->outlets = wr_alloc(wr_value_count(outlets) + 1, sizeof(*plan->outlets));
	if (!plan->outlets)
		return WEIR_E_NOMEM;
	for (size_t i = 0; i < wr_value_count(outlets); i++) {
		struct end_item item = {.at = {&all, NULL, i}};
		struct end end = read_end(build, &item, &wr_value_at(outlets, i)->value, false);
		struct wr_plan_output *output;

		build->unresolved |= end.entity == NOTHING;
		if (end.entity == NOTHING)
			continue;
		output = &plan->entities[end.entity].outputs[end.port];
		if (output->outlet)
			report_end_twice(build, &item, "outlet");
		else
			plan->outlets[plan->outlet_count++] = (struct wr_plan_end){end.entity, end.port};
		output->outlet = item.capacity;
		check_outlet(build, &item, &end);
	}
	return WEIR_OK;
}

/*
 * The keys "inlets" and "outlets": where a program feeds the graph and takes from it. With them such a graph
 * can be checked, printed and drawn, and a run fails if the program forgot one.
 */
#include "base/memory.h"
#include "graphs/build.h"
#include "graphs/port_names.h"
#include "graphs/values.h"

/* One item of a list. */
struct item {
	struct wr_at at;
	struct wr_place place;
	uint32_t capacity;
};

/* "a.out", or {"port": "a.out", "capacity": 4} */
static struct wr_end read_item(struct wr_build *build, struct item *item, const struct wr_value *value,
			       bool input)
{
	enum { PORT, CAPACITY, KEYS = 4 };
	static const struct wr_field of_outlet[KEYS] = {{"port", WR_STRING, true},
							{"capacity", WR_INTEGER, false}};
	static const struct wr_field of_inlet[KEYS] = {{"port", WR_STRING, true}};
	const struct wr_value *found[KEYS];

	item->place = value->place;
	item->capacity = 1;
	if (!wr_type_check(&build->reports, &item->at, value, WR_STRING | WR_OBJECT))
		return (struct wr_end){WR_NOTHING, WR_NOTHING};
	if (value->type == WR_STRING)
		return wr_build_end(build, &item->at, value, input);
	wr_fields_read(&build->reports, &item->at, value, input ? "an inlet" : "an outlet",
		       input ? of_inlet : of_outlet, found);
	if (!input)
		item->capacity =
			(uint32_t)wr_field_integer(&build->reports, &(struct wr_at){&item->at, "capacity", 0},
						   found[CAPACITY], 1, WR_PORT_CAPACITY_MAX, 1);
	if (!found[PORT])
		return (struct wr_end){WR_NOTHING, WR_NOTHING};
	return wr_build_end(build, &(struct wr_at){&item->at, "port", 0}, found[PORT], input);
}

const struct wr_plan_input *wr_plan_inlet(const struct wr_plan *plan, size_t i)
{
	return &plan->entities[plan->inlets[i].entity].inputs[plan->inlets[i].port];
}

const struct wr_plan_output *wr_plan_outlet(const struct wr_plan *plan, size_t i)
{
	return &plan->entities[plan->outlets[i].entity].outputs[plan->outlets[i].port];
}

static void report_twice(struct wr_build *build, const struct item *item, const char *what)
{
	wr_report(&build->reports, WR_W_DUPLICATE_NAME, &item->at, item->place,
		  "this %s is listed twice: remove one of them", what);
}

/* The capacity must hold what one tick may emit, and the room that the sender's conditions need. */
static void check_outlet(struct wr_build *build, const struct item *item, const struct wr_end *end)
{
	const struct wr_plan_entity *sender = &build->plan->entities[end->entity];

	if (sender->outputs[end->port].max_emits > item->capacity)
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
		struct item item = {.at = {&all, NULL, i}};
		struct wr_end end = read_item(build, &item, &wr_value_at(inlets, i)->value, true);
		struct wr_plan_input *input;

		build->unresolved |= end.entity == WR_NOTHING;
		if (end.entity == WR_NOTHING)
			continue;
		input = &plan->entities[end.entity].inputs[end.port];
		if (input->inlet)
			report_twice(build, &item, "inlet");
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
		struct item item = {.at = {&all, NULL, i}};
		struct wr_end end = read_item(build, &item, &wr_value_at(outlets, i)->value, false);
		struct wr_plan_output *output;

		build->unresolved |= end.entity == WR_NOTHING;
		if (end.entity == WR_NOTHING)
			continue;
		output = &plan->entities[end.entity].outputs[end.port];
		if (output->outlet)
			report_twice(build, &item, "outlet");
		else
			plan->outlets[plan->outlet_count++] = (struct wr_plan_end){end.entity, end.port};
		output->outlet = item.capacity;
		check_outlet(build, &item, &end);
	}
	return WEIR_OK;
}

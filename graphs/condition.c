/* The key "conditions" of an entity, and the default conditions of its ports. */
#include <string.h>

#include "base/memory.h"
#include "base/nearest.h"
#include "graphs/build.h"
#include "graphs/parameter.h"
#include "graphs/registry.h"
#include "graphs/table.h"
#include "streams/streams.h"

/* The keys of a condition that are not parameters. */
static const char *const common_keys[] = {"type", "name", NULL};
static const char *const tree_keys[] = {"type", "name", "conditions", NULL};
static const char *const cuda_keys[] = {"type", "name", "signal", NULL};

static const char *const *extra_keys(const weir_condition *kind)
{
	if (wr_is_tree(kind))
		return tree_keys;
	return strcmp(kind->name, "cuda_stream") ? common_keys : cuda_keys;
}

/* Conditions of Holoscan that may come; these are reported as not supported instead of unknown. */
static bool is_planned(const char *name)
{
	static const char *const planned[] = {"not", "cuda_event", NULL};
	size_t i = 0;

	while (planned[i] && strcmp(planned[i], name))
		i++;
	return planned[i];
}

static const weir_condition *find_condition(struct wr_build *build, const struct wr_value *type,
					    const struct wr_at *up)
{
	const weir_condition *kind = wr_registry_find_condition(build->registry, type->string);
	struct wr_nearest nearest = {.wanted = type->string};
	struct wr_at at = {up, "type", 0};

	if (kind)
		return kind;
	for (size_t i = 0; weir_registry_condition(build->registry, i); i++)
		wr_nearest_try(&nearest, weir_registry_condition(build->registry, i)->name);
	if (is_planned(type->string))
		wr_report(&build->reports, WR_W_UNSUPPORTED, &at, type->place,
			  "condition '%s' is not supported in this version: remove it", type->string);
	else
		wr_report(&build->reports, WR_W_UNKNOWN_CONDITION, &at, type->place,
			  "there is no condition '%s'%s: `weir conditions` lists them",
			  wr_shown(type->string).text, wr_nearest_hint(&nearest).text);
	return NULL;
}

static const struct wr_value *required_type(struct wr_build *build, const struct wr_value *value,
					    const struct wr_at *at)
{
	const struct wr_value *type = wr_value_find(value, "type");

	if (!type)
		wr_report(&build->reports, WR_W_MISSING_KEY, at, value->place,
			  "a condition needs the key 'type'");
	else if (wr_type_check(&build->reports, &(struct wr_at){at, "type", 0}, type, WR_STRING))
		return type;
	return NULL;
}

/* A program addresses a condition by its name, so given names must be unique; default names need not be. */
static void check_condition_name(struct wr_build *build, const struct wr_plan_entity *entity,
				 const struct wr_value *name, const struct wr_at *at)
{
	if (!wr_name_ok(name->string)) {
		wr_report(&build->reports, WR_W_NAME, at, name->place, WR_NAME_WRONG,
			  wr_shown(name->string).text);
		return;
	}
	for (size_t i = 0; i < entity->condition_count; i++)
		if (!strcmp(entity->conditions[i].name, name->string)) {
			wr_report(
				&build->reports, WR_W_DUPLICATE_NAME, at, name->place,
				"a condition of this entity has the name '%s' already: give this one another",
				name->string);
			return;
		}
}

static const char *condition_name(struct wr_build *build, const struct wr_plan_entity *entity,
				  const struct wr_value *value, const weir_condition *kind,
				  const struct wr_at *up)
{
	const struct wr_value *name = wr_value_find(value, "name");
	struct wr_at at = {up, "name", 0};

	if (!name || !wr_type_check(&build->reports, &at, name, WR_STRING))
		return kind->name;
	check_condition_name(build, entity, name, &at);
	return name->string;
}

/*
 * What a program tells is addressed by name: two of a kind, of which one is inside any_of, need names to be
 * told apart.
 */
static void check_told_name(struct wr_build *build, const struct wr_plan_entity *entity,
			    const struct wr_value *value, const struct wr_at *at)
{
	const struct wr_plan_condition *last = &entity->conditions[entity->condition_count - 1];
	const char *kind = last->kind->name;

	if (wr_value_find(value, "name") ||
	    (strcmp(kind, "boolean") != 0 && strcmp(kind, "fence") != 0 && strcmp(kind, "asynchronous") != 0))
		return;
	for (const struct wr_plan_condition *other = entity->conditions; other < last; other++)
		if (!strcmp(other->name, last->name) && (other->inner || last->inner)) {
			wr_report(&build->reports, WR_W_DUPLICATE_NAME, at, value->place,
				  "a condition of this entity has the name '%s' already, and a program tells "
				  "it by that: give this one a \"name\"",
				  last->name);
			return;
		}
}

/* enum wr_signal_kind; -1: the scheduler's. */
static int condition_signal(struct wr_build *build, const struct wr_value *value, const weir_condition *kind,
			    const struct wr_at *up)
{
	const struct wr_value *signal = wr_value_find(value, "signal");
	struct wr_at at = {up, "signal", 0};

	if (!signal || extra_keys(kind) != cuda_keys ||
	    !wr_type_check(&build->reports, &at, signal, WR_STRING))
		return -1;
	return wr_field_choice(&build->reports, &at, signal, WR_SIGNALS);
}

static weir_status fill_condition(struct wr_build *build, struct wr_plan_entity *entity,
				  struct wr_plan_condition *condition, const struct wr_value *value,
				  const struct wr_at *at)
{
	const weir_condition *kind = condition->kind;
	struct wr_values_source source = {
		.kind = "condition",
		.name = kind->name,
		.parameters = kind->parameters,
		.ports = entity->kind,
		.object = value,
		.skip = extra_keys(kind),
		.at = at,
		.place = value->place,
	};

	condition->signal = condition_signal(build, value, kind, at);
	condition->claims = !kind->ask;
	condition->name = wr_strdup(condition_name(build, entity, value, kind, at));
	return condition->name ? wr_values_create(&condition->values, &source, &build->reports)
			       : WEIR_E_NOMEM;
}

/* Adds a condition even if it has errors in its parameters. */
static weir_status add_condition(struct wr_build *build, struct wr_plan_entity *entity,
				 const weir_condition *kind, const struct wr_value *value,
				 const struct wr_at *at)
{
	struct wr_plan_condition condition = {.kind = kind};
	weir_status status = fill_condition(build, entity, &condition, value, at);

	if (status) {
		wr_free(condition.name);
		return status;
	}
	entity->conditions[entity->condition_count++] = condition;
	for (unsigned i = 0; !strcmp(kind->name, "expiring_message_available") && i < entity->input_count;
	     i++)
		entity->inputs[i].timed |= wr_condition_names(&condition, i, true);
	return WEIR_OK;
}

/* Adds what is inside the condition at index `tree`, the last of the list so far. */
static weir_status build_tree(struct wr_build *build, struct wr_plan_entity *entity, size_t tree,
			      const struct wr_value *value, const struct wr_at *up)
{
	const weir_condition *kind = entity->conditions[tree].kind;
	const struct wr_value *inside = wr_value_find(value, "conditions");
	struct wr_at all = {up, "conditions", 0};
	weir_status status = WEIR_OK;

	if (!inside) {
		wr_report(&build->reports, WR_W_MISSING_KEY, up, value->place,
			  "'%s' needs the key 'conditions', a list of conditions", kind->name);
		return WEIR_OK;
	}
	if (!wr_type_check(&build->reports, &all, inside, WR_ARRAY))
		return WEIR_OK;
	if (!wr_value_count(inside))
		wr_report(&build->reports, WR_W_RANGE, &all, inside->place,
			  "'%s' of no conditions: write at least one, or remove it", kind->name);
	for (size_t i = 0; i < wr_value_count(inside) && !status; i++)
		status = wr_build_condition(build, entity, &wr_value_at(inside, i)->value,
					    &(struct wr_at){&all, NULL, i}, kind);
	entity->conditions[tree].span = entity->condition_count - tree - 1;
	return status;
}

weir_status wr_build_condition(struct wr_build *build, struct wr_plan_entity *entity,
			       const struct wr_value *value, const struct wr_at *at,
			       const weir_condition *inside)
{
	size_t before = entity->condition_count;
	const struct wr_value *type;
	const weir_condition *kind;
	weir_status status;

	if (!wr_type_check(&build->reports, at, value, WR_OBJECT))
		return WEIR_OK;
	type = required_type(build, value, at);
	kind = type ? find_condition(build, type, at) : NULL;
	if (!kind || !wr_tree_allows(build, kind, inside, at, type->place))
		return WEIR_OK;
	status = add_condition(build, entity, kind, value, at);
	if (status)
		return status;
	entity->conditions[before].inner = inside;
	check_told_name(build, entity, value, at);
	return wr_is_tree(kind) ? build_tree(build, entity, before, value, at) : WEIR_OK;
}

weir_status wr_build_conditions(struct wr_build *build, struct wr_plan_entity *entity,
				const struct wr_value *conditions, const struct wr_at *up)
{
	size_t count = conditions ? wr_value_count(conditions) : 0;
	size_t all_levels = conditions ? wr_tree_count(conditions) : 0;
	size_t defaults = entity->input_count + entity->output_count + WR_PLACES;
	struct wr_at all = {up, "conditions", 0};
	weir_status status = WEIR_OK;

	entity->conditions =
		wr_alloc(all_levels + wr_brought_count(entity->kind) + defaults, sizeof(*entity->conditions));
	if (!entity->conditions)
		return WEIR_E_NOMEM;
	for (size_t i = 0; i < count && !status; i++)
		status = wr_build_condition(build, entity, &wr_value_at(conditions, i)->value,
					    &(struct wr_at){&all, NULL, i}, NULL);
	return status ? status : wr_build_brought(build, entity);
}

bool wr_condition_names(const struct wr_plan_condition *condition, unsigned port, bool input)
{
	for (size_t i = 0; i < condition->values->count; i++) {
		const struct wr_setting *setting = &condition->values->settings[i];
		bool fits = input ? wr_parameter_is_input(setting->parameter)
				  : wr_parameter_is_output(setting->parameter);
		for (size_t k = 0; fits && k < setting->port_count; k++)
			if (setting->ports[k] == port)
				return true;
	}
	return false;
}

bool wr_condition_port(const struct wr_plan_condition *condition, unsigned *port, bool *input)
{
	for (size_t i = 0; i < condition->values->count; i++) {
		const struct wr_setting *setting = &condition->values->settings[i];
		if (!setting->port_count)
			continue;
		*port = setting->ports[0];
		*input = wr_parameter_is_input(setting->parameter);
		return true;
	}
	return false;
}

bool wr_plan_waits_for(const struct wr_plan_entity *entity, unsigned input)
{
	for (size_t i = 0; i < entity->condition_count; i++) {
		const char *kind = entity->conditions[i].kind->name;

		if (!entity->conditions[i].inner &&
		    (!strcmp(kind, "message_available") || !strcmp(kind, "cuda_stream")) &&
		    wr_condition_names(&entity->conditions[i], input, true))
			return true;
	}
	return false;
}

static bool is_named(const struct wr_plan_entity *entity, unsigned port, bool input)
{
	for (size_t i = 0; i < entity->condition_count; i++)
		if (wr_condition_names(&entity->conditions[i], port, input))
			return true;
	return false;
}

/* Adds the condition as if the description had {"type": ..., KEY: ..., "min_blocks": ...}; blocks 0: not. */
static weir_status add_default_condition(struct wr_build *build, struct wr_plan_entity *entity,
					 const char *kind_name, const char *key, const char *port,
					 int64_t blocks)
{
	const weir_condition *kind = wr_registry_find_condition(build->registry, kind_name);
	struct wr_at all = {NULL, "entities", 0};
	struct wr_at at = {&all, NULL, (size_t)(entity - build->plan->entities)};
	struct wr_value value = {0}, name = {0};
	weir_status status;

	if (!kind)
		return WEIR_OK; /* the library was built without it */
	status = wr_value_container(&value, WR_OBJECT);
	if (!status)
		status = wr_value_string(&name, port);
	if (!status)
		status = wr_value_set(&value, key, &name);
	if (status)
		wr_value_finish(&name);
	if (!status && blocks)
		status = wr_value_set(&value, "min_blocks",
				      &(struct wr_value){.type = WR_INTEGER, .integer = blocks});
	if (!status)
		status = add_condition(build, entity, kind, &value, &at);
	if (!status)
		entity->conditions[entity->condition_count - 1].implied = true;
	wr_value_finish(&value);
	return status;
}

static bool wants_default(uint32_t connections, const weir_port *port)
{
	return connections || !(port->flags & WEIR_PORT_OPTIONAL);
}

static weir_status add_default_conditions(struct wr_build *build, struct wr_plan_entity *entity)
{
	weir_status status = WEIR_OK;

	for (unsigned i = 0; i < entity->input_count && !status; i++)
		if (wants_default(entity->inputs[i].connections + entity->inputs[i].inlet,
				  entity->inputs[i].port) &&
		    !is_named(entity, i, true))
			status = add_default_condition(build, entity, "message_available", "port",
						       entity->inputs[i].port->name, 0);
	for (unsigned i = 0; i < entity->output_count && !status; i++)
		if (wants_default(entity->outputs[i].connections + entity->outputs[i].outlet,
				  entity->outputs[i].port) &&
		    !(entity->outputs[i].port->flags & WEIR_PORT_FULL) && !is_named(entity, i, false))
			status = add_default_condition(build, entity, "downstream_message_affordable", "port",
						       entity->outputs[i].port->name, 0);
	return status;
}

weir_status wr_build_default_conditions(struct wr_build *build)
{
	static weir_values none;
	weir_status status = WEIR_OK;

	/* One serves all entities: it has no parameters; the bounds come from entities and scheduler. */
	build->plan->in_flight = (struct wr_plan_condition){
		.kind = wr_registry_find_condition(build->registry, "in_flight"),
		.name = "in_flight",
		.values = &none,
		.implied = true,
		.signal = -1,
	};
	for (size_t i = 0; i < build->plan->entity_count && !status; i++)
		if (build->plan->entities[i].kind)
			status = add_default_conditions(build, &build->plan->entities[i]);
	return status;
}

weir_status wr_build_imply_claim(struct wr_build *build, struct wr_plan_entity *entity,
				 const struct wr_plan_memory *memory)
{
	return add_default_condition(build, entity, "memory_available", "pool",
				     build->plan->memory_pools[memory->pool].name, (int64_t)memory->units);
}

/* Those of a list, which the plan has in [next, end), and those inside them. */
static void each_condition(struct wr_build *build, size_t index, const struct wr_value *holder,
			   const struct wr_at *up, size_t next, size_t end, wr_build_condition_fn *fn)
{
	const struct wr_plan_entity *entity = &build->plan->entities[index];
	const struct wr_value *list = wr_value_find(holder, "conditions");
	struct wr_at conditions = {up, "conditions", 0};

	for (size_t i = 0; list && i < wr_value_count(list) && next < end; i++) {
		const struct wr_value *value = &wr_value_at(list, i)->value;
		const struct wr_value *type = value->type == WR_OBJECT ? wr_value_find(value, "type") : NULL;
		struct wr_at item = {&conditions, NULL, i};
		size_t after = next + 1 + entity->conditions[next].span;

		if (!type || type->type != WR_STRING ||
		    strcmp(type->string, entity->conditions[next].kind->name) != 0)
			continue;
		fn(build, index, next, value, &item);
		if (after > next + 1)
			each_condition(build, index, value, &item, next + 1, after, fn);
		next = after;
	}
}

/* The plan has the conditions of the text in their order, without those whose type was an error. */
void wr_build_each_condition(struct wr_build *build, size_t index, wr_build_condition_fn *fn)
{
	struct wr_at all = {NULL, "entities", 0}, at = {&all, NULL, index};

	each_condition(build, index, &wr_value_at(build->entities, index)->value, &at, 0,
		       build->plan->entities[index].condition_count, fn);
}

/* The key "entities". */
#include "base/memory.h"
#include "base/nearest.h"
#include "graphs/build.h"
#include "graphs/parameter.h"
#include "graphs/registry.h"
#include "graphs/table.h"

/* Gives the entities their names before anything else is read, so that each can be found. */
static weir_status enter_names(struct wr_plan *plan, const struct wr_value *entities)
{
	for (size_t i = 0; i < plan->entity_count; i++) {
		const struct wr_value *entity = &wr_value_at(entities, i)->value;
		const struct wr_value *name =
			entity->type == WR_OBJECT ? wr_value_find(entity, "name") : NULL;

		if (!name || name->type != WR_STRING || !wr_name_ok(name->string))
			continue; /* reported when the entity is read */
		plan->entities[i].name = wr_strdup(name->string);
		if (!plan->entities[i].name || wr_names_add(&plan->names, plan->entities[i].name, i))
			return WEIR_E_NOMEM;
	}
	wr_names_sort(&plan->names);
	return WEIR_OK;
}

static void check_entity_name(struct wr_build *build, const struct wr_plan_entity *entity,
			      const struct wr_value *name, const struct wr_at *up)
{
	struct wr_at at = {up, "name", 0};
	size_t first = wr_names_find(&build->plan->names, name->string);

	if (!wr_name_ok(name->string))
		wr_report(&build->reports, WR_W_NAME, &at, name->place, WR_NAME_WRONG,
			  wr_shown(name->string).text);
	else if (first < (size_t)(entity - build->plan->entities))
		wr_report(&build->reports, WR_W_DUPLICATE_NAME, &at, name->place,
			  "entity %zu has the name '%s' already: give this one another", first, name->string);
}

static void find_operator(struct wr_build *build, struct wr_plan_entity *entity, const struct wr_value *name,
			  const struct wr_at *at)
{
	struct wr_nearest nearest = {.wanted = name->string};

	entity->kind = wr_registry_find_operator(build->registry, name->string);
	if (entity->kind)
		return;
	for (size_t i = 0; weir_registry_operator(build->registry, i); i++)
		wr_nearest_try(&nearest, weir_registry_operator(build->registry, i)->name);
	wr_report(&build->reports, WR_W_UNKNOWN_OPERATOR, &(struct wr_at){at, "operator", 0}, name->place,
		  "there is no operator '%s'%s: `weir operators` lists them, --plugin or --python adds some",
		  wr_shown(name->string).text, wr_nearest_hint(&nearest).text);
}

static weir_status build_parameters(struct wr_build *build, struct wr_plan_entity *entity,
				    const struct wr_value *object, const struct wr_at *at,
				    struct wr_place place)
{
	struct wr_at inside = {at, "parameters", 0};
	struct wr_values_source source = {
		.kind = "operator",
		.name = entity->kind->name,
		.parameters = entity->kind->parameters,
		.ports = entity->kind,
		.object = object,
		.at = object ? &inside : at,
		.place = object ? object->place : place,
	};

	return wr_values_create(&entity->values, &source, &build->reports);
}

/* --- keys of an entity --- */

enum {
	NAME,
	OPERATOR,
	PARAMETERS,
	CONDITIONS,
	PORTS,
	RESOURCES,
	DEFAULT_POOL,
	DEFAULT_STREAM,
	EFFECTS,
	IN_FLIGHT,
	REPLAY,
	MAIN,
	INSTANCES,
	KEYS = 18
};
static const struct wr_field entity_fields[KEYS] = {
	{"name", WR_STRING, true},
	{"operator", WR_STRING, true},
	{"parameters", WR_OBJECT, false},
	{"conditions", WR_ARRAY, false},
	{"ports", WR_OBJECT, false},
	{"resources", WR_ARRAY, false},
	{"default_stream_pool", WR_BOOL, false},
	{"use_default_stream", WR_BOOL, false},
	{"effects", WR_BOOL, false},
	{"max_in_flight", WR_INTEGER, false},
	{"replay", WR_OBJECT | WR_BOOL, false},
	{"main", WR_BOOL, false},
	{"instances", WR_INTEGER, false},
	{"device", 0, false},
	{"on_error", 0, false},
	{"priority", 0, false},
	{"pin", 0, false},
};

enum { KEPT, WARM_UP, REPLAY_FIELDS };
static const struct wr_field replay_fields[REPLAY_FIELDS + 1] = {
	{"keys", WR_INTEGER, false},
	{"warm_up", WR_INTEGER, false},
};

/* "replay": an object, or true for its defaults; false: never. */
static void build_replay(struct wr_build *build, struct wr_plan_entity *entity, const struct wr_value *value,
			 const struct wr_at *up)
{
	const struct wr_value *found[REPLAY_FIELDS + 1] = {NULL};
	struct wr_at at = {up, "replay", 0};

	entity->replay_given = value != NULL;
	entity->replay_keys = WR_REPLAY_KEYS;
	entity->replay_warm_up = WR_REPLAY_WARM_UP;
	if (value && value->type == WR_BOOL && !value->boolean)
		entity->replay_keys = 0;
	if (!value || value->type != WR_OBJECT)
		return;
	wr_fields_read(&build->reports, &at, value, "replay", replay_fields, found);
	if (found[KEPT])
		entity->replay_keys =
			(uint32_t)wr_field_integer(&build->reports, &(struct wr_at){&at, "keys", 0},
						   found[KEPT], 1, WR_REPLAY_KEYS_MAX, WR_REPLAY_KEYS);
	if (found[WARM_UP])
		entity->replay_warm_up = (uint32_t)wr_field_integer(
			&build->reports, &(struct wr_at){&at, "warm_up", 0}, found[WARM_UP], 1,
			WR_REPLAY_WARM_UP_MAX, WR_REPLAY_WARM_UP);
}

static weir_status build_entity(struct wr_build *build, struct wr_plan_entity *entity,
				const struct wr_value *value, const struct wr_at *at)
{
	const struct wr_value *found[KEYS];
	struct wr_at inside = {at, "parameters", 0};
	weir_status status = WEIR_OK;
	size_t errors;

	if (!wr_type_check(&build->reports, at, value, WR_OBJECT))
		return WEIR_OK;
	wr_fields_read(&build->reports, at, value, "an entity", entity_fields, found);
	if (found[NAME])
		check_entity_name(build, entity, found[NAME], at);
	if (found[OPERATOR])
		find_operator(build, entity, found[OPERATOR], at);
	entity->max_in_flight = -1;
	if (found[IN_FLIGHT])
		entity->max_in_flight =
			wr_field_integer(&build->reports, &(struct wr_at){at, "max_in_flight", 0},
					 found[IN_FLIGHT], 0, WR_IN_FLIGHT_MAX, 0);
	build_replay(build, entity, found[REPLAY], at);
	entity->instances = (uint32_t)wr_field_integer(&build->reports, &(struct wr_at){at, "instances", 0},
						       found[INSTANCES], 1, WR_INSTANCES_MAX, 1);
	entity->main = found[MAIN] && found[MAIN]->boolean;
	build->unresolved_resource |= !found[RESOURCES] && wr_value_index(value, "resources") != WR_NO_INDEX;
	if (!status)
		status = wr_build_entity_pool(
			build, entity,
			&(struct wr_pool_keys){found[RESOURCES], found[DEFAULT_POOL], found[DEFAULT_STREAM]},
			at);
	if (status || !entity->kind)
		return status;
	entity->effects =
		found[EFFECTS] ? found[EFFECTS]->boolean : (entity->kind->flags & WEIR_OPERATOR_EFFECTS) != 0;
	errors = build->reports.errors;
	status = build_parameters(build, entity, found[PARAMETERS], at, value->place);
	if (!status && entity->kind->describe)
		status = wr_build_described(build, entity, errors == build->reports.errors,
					    found[PARAMETERS] ? &inside : at,
					    found[PARAMETERS] ? found[PARAMETERS]->place : value->place);
	if (status || !entity->kind)
		return status;
	wr_build_instances(build, entity, found[INSTANCES], at);
	status = wr_build_ports(build, entity, found[PORTS], at);
	if (!status)
		status = wr_build_conditions(build, entity, found[CONDITIONS], at);
	return status;
}

weir_status wr_build_entities(struct wr_build *build, const struct wr_value *entities)
{
	struct wr_at all = {NULL, "entities", 0};
	size_t count = wr_value_count(entities);
	weir_status status = WEIR_OK;

	if (count > WR_ENTITIES_MAX) {
		wr_report(&build->reports, WR_W_TOO_MANY, &all, entities->place,
			  "%zu entities: at most %zu are allowed", count, WR_ENTITIES_MAX);
		return WEIR_OK;
	}
	build->plan->entities = wr_alloc(count, sizeof(*build->plan->entities));
	if (!build->plan->entities)
		return WEIR_E_NOMEM;
	build->plan->entity_count = count;
	build->entities = entities;
	status = enter_names(build->plan, entities);
	for (size_t i = 0; i < count && !status; i++)
		status = build_entity(build, &build->plan->entities[i], &wr_value_at(entities, i)->value,
				      &(struct wr_at){&all, NULL, i});
	return status;
}

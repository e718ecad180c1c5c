/*
 * Trees of conditions: any_of, and all_of inside it. The plan has a tree as a part of the entity's list: the
 * tree, then what is inside it. So what looks for conditions by name or port finds those inside, too.
 */
#include <string.h>

#include "graphs/build.h"
#include "graphs/parameter.h"
#include "graphs/table.h"

bool wr_is_tree(const weir_condition *kind)
{
	return !strcmp(kind->name, "any_of") || !strcmp(kind->name, "all_of");
}

size_t wr_tree_count(const struct wr_value *conditions)
{
	size_t count = wr_value_count(conditions);

	for (size_t i = 0; i < wr_value_count(conditions); i++) {
		const struct wr_value *value = &wr_value_at(conditions, i)->value;
		const struct wr_value *inside =
			value->type == WR_OBJECT ? wr_value_find(value, "conditions") : NULL;

		if (inside && inside->type == WR_ARRAY)
			count += wr_tree_count(inside);
	}
	return count;
}

static bool names_outputs(const weir_condition *kind)
{
	for (size_t i = 0; kind->parameters && kind->parameters[i].name; i++)
		if (wr_parameter_is_output(&kind->parameters[i]))
			return true;
	return false;
}

/* Room, memory and the bound of ticks in flight are needed whatever else holds (S3, T8). */
static bool is_needed_always(const weir_condition *kind)
{
	return !kind->ask || names_outputs(kind) || !strcmp(kind->name, "in_flight");
}

bool wr_tree_allows(struct wr_build *build, const weir_condition *kind, const weir_condition *inside,
		    const struct wr_at *up, struct wr_place place)
{
	bool any_of = !strcmp(kind->name, "any_of"), all_of = !strcmp(kind->name, "all_of");
	struct wr_at at = {up, "type", 0};

	if (!inside && all_of)
		wr_report(&build->reports, WR_W_UNSUPPORTED, &at, place,
			  "all conditions of an entity must hold: write those of 'all_of' into its list");
	else if (inside && any_of)
		wr_report(&build->reports, WR_W_DEPTH, &at, place,
			  "'any_of' inside '%s': write its conditions into the outer any_of", inside->name);
	else if (inside && all_of && !strcmp(inside->name, "all_of"))
		wr_report(&build->reports, WR_W_DEPTH, &at, place,
			  "'all_of' inside 'all_of': write its conditions into the outer one");
	else if (inside && is_needed_always(kind))
		wr_report(&build->reports, WR_W_UNSUPPORTED, &at, place,
			  "each tick needs what '%s' says: write it beside any_of", kind->name);
	else if (inside && kind->phase != WEIR_PHASE_GATHERING)
		wr_report(&build->reports, WR_W_UNSUPPORTED, &at, place,
			  "'%s' looks into messages, of which any_of has chosen none yet: write it beside "
			  "any_of",
			  kind->name);
	else
		return true;
	return false;
}

weir_status wr_build_tree(struct wr_build *build, struct wr_plan_entity *entity, size_t tree,
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

int wr_condition_depth(const struct wr_plan_entity *entity, size_t i)
{
	int depth = 0;

	for (size_t k = 0; entity->conditions[i].inner && k < i; k++)
		depth += i - k <= entity->conditions[k].span;
	return depth;
}

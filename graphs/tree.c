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

bool wr_tree_allows(struct wr_build *build, const weir_condition *kind, const weir_condition *inside,
		    const struct wr_at *up, struct wr_place place)
{
	bool any_of = !strcmp(kind->name, "any_of"), all_of = !strcmp(kind->name, "all_of");
	struct wr_at at = {up, "type", 0};
	/* Room, memory and the bound of ticks in flight (S3, T8). */
	bool always = !kind->ask || !strcmp(kind->name, "in_flight");

	for (size_t i = 0; kind->parameters && kind->parameters[i].name; i++)
		always |= wr_parameter_is_output(&kind->parameters[i]);
	if (!inside && all_of)
		wr_report(&build->reports, WR_W_UNSUPPORTED, &at, place,
			  "all conditions of an entity must hold: write those of 'all_of' into its list");
	else if (inside && any_of)
		wr_report(&build->reports, WR_W_DEPTH, &at, place,
			  "'any_of' inside '%s': write its conditions into the outer any_of", inside->name);
	else if (inside && all_of && !strcmp(inside->name, "all_of"))
		wr_report(&build->reports, WR_W_DEPTH, &at, place,
			  "'all_of' inside 'all_of': write its conditions into the outer one");
	else if (inside && always)
		wr_report(&build->reports, WR_W_UNSUPPORTED, &at, place,
			  "each tick needs what '%s' says: write it beside any_of", kind->name);
	else if (inside && kind->phase != WEIR_PHASE_GATHERING)
		wr_report(&build->reports, WR_W_UNSUPPORTED, &at, place,
			  "'%s' looks into messages, of which any_of has chosen none yet: write it beside "
			  "any_of",
			  kind->name);
	else if (inside && !strcmp(kind->name, "aligned"))
		wr_report(&build->reports, WR_W_UNSUPPORTED, &at, place,
			  "'aligned' chooses the messages of every tick: write it beside any_of");
	else
		return true;
	return false;
}

int wr_condition_depth(const struct wr_plan_entity *entity, size_t i)
{
	int depth = 0;

	for (size_t k = 0; entity->conditions[i].inner && k < i; k++)
		depth += i - k <= entity->conditions[k].span;
	return depth;
}

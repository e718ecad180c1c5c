/*
 * The main sink: the messages that it receives are the frames of a run. "main" names it; else it is the sink
 * with the longest way from a source, so each entity gets its depth here, and the run, which knows the ends
 * that a program added and what arrived, chooses (wr_graph_main). A sink receives messages and sends none.
 */
#include <string.h>

#include "base/memory.h"
#include "graphs/build.h"

/* --- the key "main" --- */

/* NULL: it may be the main one. A program may still connect open inputs. */
static const char *main_wrong(const struct wr_build *build, const struct wr_plan_entity *entity)
{
	bool receives = entity->input_count && (build->open_ports || build->unresolved);

	for (size_t i = 0; i < entity->output_count; i++)
		if (entity->outputs[i].connections || entity->outputs[i].outlet)
			return "sends messages, so it is no sink";
	for (size_t i = 0; i < entity->input_count; i++)
		receives |= entity->inputs[i].connections || entity->inputs[i].inlet;
	return receives ? NULL : "receives no messages";
}

void wr_build_check_main(struct wr_build *build)
{
	const struct wr_plan *plan = build->plan;
	const struct wr_plan_entity *first = NULL;
	struct wr_at all = {NULL, "entities", 0};

	for (size_t i = 0; i < plan->entity_count; i++) {
		const struct wr_plan_entity *entity = &plan->entities[i];
		struct wr_at up = {&all, NULL, i}, at = {&up, "main", 0};
		const struct wr_value *value = &wr_value_at(build->entities, i)->value;
		const char *wrong = entity->main && entity->kind ? main_wrong(build, entity) : NULL;

		if (!entity->main || !entity->name)
			continue;
		if (first)
			wr_report(&build->reports, WR_W_MAIN, &at, wr_value_find(value, "main")->place,
				  "'%s' is the main sink already: give \"main\" to one of them", first->name);
		else if (wrong)
			wr_report(&build->reports, WR_W_MAIN, &at, wr_value_find(value, "main")->place,
				  "'%s' %s: give \"main\" to the entity where the frames end", entity->name,
				  wrong);
		else
			first = entity;
	}
}

/* --- depths --- */

struct depths {
	uint32_t *order, *incoming, *next; /* incoming: of an entity, the first of a list by `next` */
};

static weir_status depths_make(struct depths *depths, const struct wr_build *build)
{
	const struct wr_plan *plan = build->plan;

	depths->order = wr_alloc(plan->entity_count, sizeof(*depths->order));
	depths->incoming = wr_alloc(plan->entity_count, sizeof(*depths->incoming));
	depths->next = wr_alloc(plan->connection_count, sizeof(*depths->next));
	if (!depths->order || !depths->incoming || !depths->next)
		return WEIR_E_NOMEM;
	memset(depths->incoming, 0xff, plan->entity_count * sizeof(*depths->incoming));
	for (size_t i = 0; i < plan->connection_count; i++) {
		uint32_t to = plan->connections[i].to;

		depths->next[i] = depths->incoming[to];
		depths->incoming[to] = (uint32_t)i;
	}
	return wr_build_order(build, depths->order);
}

weir_status wr_build_depths(struct wr_build *build)
{
	const struct wr_plan *plan = build->plan;
	struct depths depths = {0};
	weir_status status;

	if (build->reports.errors)
		return WEIR_OK;
	status = depths_make(&depths, build);
	for (size_t e = 0; !status && e < plan->entity_count; e++) {
		uint32_t depth = 0;

		/* Its senders have theirs, but for those of connections with initial messages. */
		for (uint32_t i = depths.incoming[depths.order[e]]; i != UINT32_MAX; i = depths.next[i]) {
			const struct wr_plan_connection *c = &plan->connections[i];

			if (!c->initial_messages && plan->entities[c->from].depth > depth)
				depth = plan->entities[c->from].depth;
		}
		plan->entities[depths.order[e]].depth = depth + 1;
	}
	wr_free(depths.order);
	wr_free(depths.incoming);
	wr_free(depths.next);
	return status;
}

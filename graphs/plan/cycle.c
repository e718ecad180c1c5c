/*
 * Cycles. A cycle needs a connection with initial messages, or it never starts (F85). So: take those
 * connections away; what is still strongly connected (Tarjan's algorithm, without recursion: a chain may have
 * a million entities) can never start. With all connections, what is strongly connected and has exits goes on
 * when the exits are done, unless something ends it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graphs/plan/build.h"
#include "graphs/plan/text.h"

#define NONE        UINT32_MAX
#define NAMES_SHOWN 8

/* The connections of each entity, side by side: those of entity e are links[first[e]..first[e+1]). */
struct web {
	const struct wr_plan *plan;
	uint32_t *first, *links;
	uint32_t *component;                         /* of each entity; NONE: not known yet */
	uint32_t *order, *low, *stack, *path, *next; /* of the search */
	uint32_t visited, components, stacked, depth;
	bool without_initial;
};

static void web_finish(struct web *web)
{
	uint32_t *all[] = {web->first, web->links, web->component, web->order,
			   web->low,   web->stack, web->path,      web->next};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		wr_free(all[i]);
}

static weir_status web_alloc(struct web *web)
{
	size_t n = web->plan->entity_count + 2;
	uint32_t **all[] = {&web->first, &web->component, &web->order, &web->low,
			    &web->stack, &web->path,      &web->next};

	web->links = wr_alloc(web->plan->connection_count, sizeof(*web->links));
	if (!web->links)
		return WEIR_E_NOMEM;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		*all[i] = wr_alloc(n, sizeof(**all[i]));
		if (!*all[i])
			return WEIR_E_NOMEM;
	}
	memset(web->component, 0xff, n * sizeof(*web->component));
	memset(web->order, 0xff, n * sizeof(*web->order));
	return WEIR_OK;
}

/* A self connection was reported as such and is no cycle here. */
static bool counts(const struct web *web, const struct wr_plan_connection *c)
{
	return c->from != c->to && !(web->without_initial && c->initial);
}

static void web_fill(struct web *web)
{
	const struct wr_plan *plan = web->plan;

	for (size_t i = 0; i < plan->connection_count; i++)
		if (counts(web, &plan->connections[i]))
			web->first[plan->connections[i].from + 2]++;
	for (size_t e = 2; e < plan->entity_count + 2; e++)
		web->first[e] += web->first[e - 1];
	for (size_t i = 0; i < plan->connection_count; i++)
		if (counts(web, &plan->connections[i]))
			web->links[web->first[plan->connections[i].from + 1]++] = (uint32_t)i;
}

static void enter(struct web *web, uint32_t entity)
{
	web->order[entity] = web->low[entity] = web->visited++;
	web->next[entity] = web->first[entity];
	web->stack[web->stacked++] = entity;
	web->path[web->depth++] = entity;
}

static void leave(struct web *web, uint32_t entity)
{
	web->depth--;
	if (web->depth && web->low[entity] < web->low[web->path[web->depth - 1]])
		web->low[web->path[web->depth - 1]] = web->low[entity];
	if (web->low[entity] != web->order[entity])
		return;
	do
		web->component[web->stack[--web->stacked]] = web->components;
	while (web->stack[web->stacked] != entity);
	web->components++;
}

static void search_from(struct web *web, uint32_t root)
{
	enter(web, root);
	while (web->depth) {
		uint32_t entity = web->path[web->depth - 1], to;

		if (web->next[entity] == web->first[entity + 1]) {
			leave(web, entity);
			continue;
		}
		to = web->plan->connections[web->links[web->next[entity]++]].to;
		if (web->order[to] == NONE)
			enter(web, to);
		else if (web->component[to] == NONE && web->order[to] < web->low[entity])
			web->low[entity] = web->order[to];
	}
}

static weir_status web_make(struct web *web, const struct wr_plan *plan, bool without_initial)
{
	*web = (struct web){.plan = plan, .without_initial = without_initial};
	if (web_alloc(web))
		return WEIR_E_NOMEM;
	web_fill(web);
	for (size_t e = 0; e < plan->entity_count; e++)
		if (web->order[e] == NONE)
			search_from(web, (uint32_t)e);
	return WEIR_OK;
}

/* A shortest way from `entity` back to itself: the connections in path[0..]; returns how many.
 * Breadth first. */
static uint32_t way_back(struct web *web, uint32_t entity)
{
	uint32_t *reached_by = web->order, head = 0, tail = 0, length = 0;

	memset(reached_by, 0xff, web->plan->entity_count * sizeof(*reached_by));
	web->stack[tail++] = entity;
	while (head < tail && reached_by[entity] == NONE) {
		uint32_t from = web->stack[head++];
		for (uint32_t k = web->first[from]; k < web->first[from + 1]; k++) {
			uint32_t to = web->plan->connections[web->links[k]].to;
			if (web->component[to] != web->component[entity] || reached_by[to] != NONE)
				continue;
			reached_by[to] = web->links[k];
			if (to != entity)
				web->stack[tail++] = to;
		}
	}
	do {
		web->path[length++] = reached_by[entity];
		entity = web->plan->connections[reached_by[entity]].from;
	} while (entity != web->plan->connections[web->path[0]].to);
	return length;
}

/* "a -> b -> a". The way was found backwards. */
static void add_way(struct wr_text *text, const struct web *web, uint32_t length)
{
	for (uint32_t i = length; i-- > 0;) {
		const struct wr_plan_connection *c = &web->plan->connections[web->path[i]];
		if (length - i <= NAMES_SHOWN)
			wr_text_add(text, "%s -> ", web->plan->entities[c->from].name);
		else if (i == 0)
			wr_text_add(text, "... (%u more) -> ", length - NAMES_SHOWN);
	}
	wr_text_add(text, "%s", web->plan->entities[web->plan->connections[web->path[0]].to].name);
}

static weir_status report(struct wr_build *build, struct web *web, uint32_t entity, enum wr_error error,
			  const char *why)
{
	struct wr_text line = {0};
	uint32_t length = way_back(web, entity);
	weir_status status;

	wr_text_add(&line, "cycle ");
	add_way(&line, web, length);
	wr_text_add(&line, " %s", why);
	status = line.status;
	if (!status)
		wr_build_report_origin(build, error, web->path[length - 1], line.text);
	wr_text_finish(&line);
	return status;
}

/* What is known of a component. */
struct part {
	uint32_t first; /* entity, in the order of the text */
	uint32_t size;
	bool exits, bounded, fed;
	uint32_t effects; /* 1 + the first entity with effects of its own; 0: none */
};

static bool has_count(const struct wr_plan_entity *entity)
{
	for (size_t i = 0; i < entity->condition_count; i++)
		if (!strcmp(entity->conditions[i].kind->name, "count"))
			return true;
	return false;
}

static void survey(const struct web *web, struct part *parts)
{
	for (size_t e = web->plan->entity_count; e-- > 0;) {
		struct part *part = &parts[web->component[e]];
		part->first = (uint32_t)e;
		part->size++;
		part->bounded |= has_count(&web->plan->entities[e]);
		if (web->plan->entities[e].effects)
			part->effects = (uint32_t)e + 1;
	}
	for (size_t i = 0; i < web->plan->connection_count; i++) {
		const struct wr_plan_connection *c = &web->plan->connections[i];
		bool leaves = web->component[c->from] != web->component[c->to];
		parts[web->component[c->from]].exits |= leaves;
		parts[web->component[c->to]].fed |= leaves;
	}
}

/* What keeps itself going and does not care whether anybody listens. */
static weir_status warn_endless(struct wr_build *build, struct web *web, const struct part *part)
{
	char why[192];

	if (part->bounded)
		return WEIR_OK;
	if (part->effects && !part->fed) {
		snprintf(why, sizeof why, "never ends: %s has effects of its own, and no entity of it has an end; "
			 "give one a count condition", web->plan->entities[part->effects - 1].name);
		return report(build, web, part->first, WR_W_EFFECTS_CYCLE, why);
	}
	if (part->exits)
		return report(build, web, part->first, WR_W_ENDLESS_CYCLE,
			      "goes on when its exits are done: end it, for example with a count condition");
	return WEIR_OK;
}

static weir_status check_parts(struct wr_build *build, struct web *web, const struct part *parts)
{
	weir_status status = WEIR_OK;

	for (uint32_t i = 0; i < web->components && !status && build->reports.count < WR_REPORTS_MAX; i++) {
		if (parts[i].size < 2)
			continue;
		if (web->without_initial)
			status = report(build, web, parts[i].first, WR_W_CYCLE,
					"can never start: give one of its connections \"initial\": 1");
		else
			status = warn_endless(build, web, &parts[i]);
	}
	return status;
}

static weir_status check(struct wr_build *build, bool without_initial)
{
	struct web web;
	struct part *parts = NULL;
	weir_status status = web_make(&web, build->plan, without_initial);

	if (!status)
		parts = wr_alloc(web.components, sizeof(*parts));
	if (!status && !parts)
		status = WEIR_E_NOMEM;
	if (!status) {
		survey(&web, parts);
		status = check_parts(build, &web, parts);
	}
	wr_free(parts);
	web_finish(&web);
	return status;
}

weir_status wr_build_check_cycles(struct wr_build *build)
{
	size_t before = build->reports.errors;
	weir_status status = check(build, true);

	return status || build->reports.errors > before ? status : check(build, false);
}

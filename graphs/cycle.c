/*
 * Checks cycles, as strongly connected components (Tarjan's algorithm; iterative, as a chain may have a
 * million entities). Without the connections that have initial messages, a component of two or more entities
 * is a cycle that can never start (F85). With all connections, a component that has exits keeps running when
 * the exits are done, unless a count condition ends it, or an entity of it waits for messages from outside:
 * it then ends with what feeds it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "graphs/build.h"

#define NONE        UINT32_MAX
#define NAMES_SHOWN 8

/* The connections from entity e are links[first[e]..first[e+1]). */
struct search {
	const struct wr_plan *plan;
	uint32_t *first, *links;
	uint32_t *component;                         /* of each entity; NONE: not yet known */
	uint32_t *order, *low, *stack, *path, *next; /* state of the search */
	uint32_t visited, components, stacked, depth;
	bool without_initial;
};

static void search_finish(struct search *search)
{
	uint32_t *all[] = {search->first, search->links, search->component, search->order,
			   search->low,   search->stack, search->path,      search->next};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		wr_free(all[i]);
}

static weir_status search_alloc(struct search *search)
{
	size_t n = search->plan->entity_count + 2;
	uint32_t **all[] = {&search->first, &search->component, &search->order, &search->low,
			    &search->stack, &search->path,      &search->next};

	search->links = wr_alloc(search->plan->connection_count, sizeof(*search->links));
	if (!search->links)
		return WEIR_E_NOMEM;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		*all[i] = wr_alloc(n, sizeof(**all[i]));
		if (!*all[i])
			return WEIR_E_NOMEM;
	}
	memset(search->component, 0xff, n * sizeof(*search->component));
	memset(search->order, 0xff, n * sizeof(*search->order));
	return WEIR_OK;
}

/* Self connections have an error of their own and are not cycles here. */
static bool is_searched(const struct search *search, const struct wr_plan_connection *c)
{
	return c->from != c->to && !(search->without_initial && c->initial_messages);
}

static void search_fill(struct search *search)
{
	const struct wr_plan *plan = search->plan;

	for (size_t i = 0; i < plan->connection_count; i++)
		if (is_searched(search, &plan->connections[i]))
			search->first[plan->connections[i].from + 2]++;
	for (size_t e = 2; e < plan->entity_count + 2; e++)
		search->first[e] += search->first[e - 1];
	for (size_t i = 0; i < plan->connection_count; i++)
		if (is_searched(search, &plan->connections[i]))
			search->links[search->first[plan->connections[i].from + 1]++] = (uint32_t)i;
}

static void search_enter(struct search *search, uint32_t entity)
{
	search->order[entity] = search->low[entity] = search->visited++;
	search->next[entity] = search->first[entity];
	search->stack[search->stacked++] = entity;
	search->path[search->depth++] = entity;
}

static void search_leave(struct search *search, uint32_t entity)
{
	search->depth--;
	if (search->depth && search->low[entity] < search->low[search->path[search->depth - 1]])
		search->low[search->path[search->depth - 1]] = search->low[entity];
	if (search->low[entity] != search->order[entity])
		return;
	do
		search->component[search->stack[--search->stacked]] = search->components;
	while (search->stack[search->stacked] != entity);
	search->components++;
}

static void search_from(struct search *search, uint32_t root)
{
	search_enter(search, root);
	while (search->depth) {
		uint32_t entity = search->path[search->depth - 1], to;

		if (search->next[entity] == search->first[entity + 1]) {
			search_leave(search, entity);
			continue;
		}
		to = search->plan->connections[search->links[search->next[entity]++]].to;
		if (search->order[to] == NONE)
			search_enter(search, to);
		else if (search->component[to] == NONE && search->order[to] < search->low[entity])
			search->low[entity] = search->order[to];
	}
}

static weir_status search_make(struct search *search, const struct wr_plan *plan, bool without_initial)
{
	*search = (struct search){.plan = plan, .without_initial = without_initial};
	if (search_alloc(search))
		return WEIR_E_NOMEM;
	search_fill(search);
	for (size_t e = 0; e < plan->entity_count; e++)
		if (search->order[e] == NONE)
			search_from(search, (uint32_t)e);
	return WEIR_OK;
}

/*
 * Finds a shortest cycle through `entity`, breadth first. Returns its length; path[] has its connections,
 * last one first.
 */
static uint32_t shortest_cycle(struct search *search, uint32_t entity)
{
	uint32_t *reached_by = search->order, head = 0, tail = 0, length = 0;

	memset(reached_by, 0xff, search->plan->entity_count * sizeof(*reached_by));
	search->stack[tail++] = entity;
	while (head < tail && reached_by[entity] == NONE) {
		uint32_t from = search->stack[head++];
		for (uint32_t k = search->first[from]; k < search->first[from + 1]; k++) {
			uint32_t to = search->plan->connections[search->links[k]].to;
			if (search->component[to] != search->component[entity] || reached_by[to] != NONE)
				continue;
			reached_by[to] = search->links[k];
			if (to != entity)
				search->stack[tail++] = to;
		}
	}
	do {
		search->path[length++] = reached_by[entity];
		entity = search->plan->connections[reached_by[entity]].from;
	} while (entity != search->plan->connections[search->path[0]].to);
	return length;
}

/* Adds "a -> b -> a". */
static void add_cycle(struct wr_text *text, const struct search *search, uint32_t length)
{
	for (uint32_t i = length; i-- > 0;) {
		const struct wr_plan_connection *c = &search->plan->connections[search->path[i]];
		if (length - i <= NAMES_SHOWN)
			wr_text_add(text, "%s -> ", search->plan->entities[c->from].name);
		else if (i == 0)
			wr_text_add(text, "... (%u more) -> ", length - NAMES_SHOWN);
	}
	wr_text_add(text, "%s", search->plan->entities[search->plan->connections[search->path[0]].to].name);
}

static weir_status report_cycle(struct wr_build *build, struct search *search, uint32_t entity,
				enum wr_error error, const char *why)
{
	struct wr_text line = {0};
	uint32_t length = shortest_cycle(search, entity);
	weir_status status;

	wr_text_add(&line, "cycle ");
	add_cycle(&line, search, length);
	wr_text_add(&line, " %s", why);
	status = line.status;
	if (!status)
		wr_build_report_origin(build, error, search->path[length - 1], line.text);
	wr_text_finish(&line);
	return status;
}

/* A component. */
struct part {
	uint32_t first; /* its first entity in the text */
	uint32_t size;
	bool exits, bounded, fed;
	bool follows;     /* cannot tick without messages that an entity outside sends */
	uint32_t effects; /* 1 + the first entity with effects of its own; 0: none */
};

static void survey_parts(const struct search *search, struct part *parts)
{
	for (size_t e = search->plan->entity_count; e-- > 0;) {
		const struct wr_plan_entity *entity = &search->plan->entities[e];
		struct part *part = &parts[search->component[e]];
		part->first = (uint32_t)e;
		part->size++;
		for (size_t i = 0; i < entity->condition_count; i++)
			part->bounded |= !entity->conditions[i].inner &&
					 !strcmp(entity->conditions[i].kind->name, "count");
		if (entity->effects)
			part->effects = (uint32_t)e + 1;
	}
	for (size_t i = 0; i < search->plan->connection_count; i++) {
		const struct wr_plan_connection *c = &search->plan->connections[i];
		const struct wr_plan_entity *to = &search->plan->entities[c->to];
		bool leaves = search->component[c->from] != search->component[c->to];
		bool alone = to->inputs[c->input].connections == 1 && !to->inputs[c->input].inlet;
		parts[search->component[c->from]].exits |= leaves;
		parts[search->component[c->to]].fed |= leaves;
		parts[search->component[c->to]].follows |= leaves && alone && wr_plan_waits_for(to, c->input);
	}
}

/* Warns about a component that keeps running when its receivers are done. */
static weir_status warn_endless(struct wr_build *build, struct search *search, const struct part *part)
{
	char why[192];

	if (part->bounded || part->follows)
		return WEIR_OK;
	if (part->effects && !part->fed) {
		snprintf(why, sizeof why,
			 "never ends: %s has effects of its own, and nothing ends the cycle; "
			 "give one of its entities a count condition",
			 search->plan->entities[part->effects - 1].name);
		return report_cycle(build, search, part->first, WR_W_EFFECTS_CYCLE, why);
	}
	if (part->exits)
		return report_cycle(
			build, search, part->first, WR_W_ENDLESS_CYCLE,
			"keeps running when its exits are done: end it, for example with a count condition");
	return WEIR_OK;
}

static weir_status check_parts(struct wr_build *build, struct search *search, const struct part *parts)
{
	weir_status status = WEIR_OK;

	for (uint32_t i = 0; i < search->components && !status && build->reports.count < WR_REPORTS_MAX;
	     i++) {
		if (parts[i].size < 2)
			continue;
		if (search->without_initial)
			status = report_cycle(
				build, search, parts[i].first, WR_W_CYCLE,
				"can never start: give one of its connections \"initial_messages\": 1");
		else
			status = warn_endless(build, search, &parts[i]);
	}
	return status;
}

static weir_status check_cycles(struct wr_build *build, bool without_initial)
{
	struct search search;
	struct part *parts = NULL;
	weir_status status = search_make(&search, build->plan, without_initial);

	if (!status)
		parts = wr_alloc(search.components, sizeof(*parts));
	if (!status && !parts)
		status = WEIR_E_NOMEM;
	if (!status) {
		survey_parts(&search, parts);
		status = check_parts(build, &search, parts);
	}
	wr_free(parts);
	search_finish(&search);
	return status;
}

/* A component is complete when all behind it are: without cycles, receivers before their senders. */
weir_status wr_build_order(const struct wr_build *build, uint32_t *order)
{
	struct search search;
	weir_status status = search_make(&search, build->plan, true);

	for (size_t e = 0; !status && e < build->plan->entity_count; e++)
		order[search.components - 1 - search.component[e]] = (uint32_t)e;
	search_finish(&search);
	return status;
}

weir_status wr_build_check_cycles(struct wr_build *build)
{
	size_t before = build->reports.errors;
	weir_status status = check_cycles(build, true);

	return status || build->reports.errors > before ? status : check_cycles(build, false);
}

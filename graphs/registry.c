/*
 * The registry: a sorted list of operators and one of conditions. A new registry has the built-ins. A NULL
 * registry means the built-ins alone; they are then searched in their own tables, so that a simple program
 * needs no registry.
 */
#include "graphs/registry.h"
#include "graphs/table.h"

#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/status.h"
#include "graphs/registry.h"

struct kind {
	const char *name;
	const void *table;
	size_t sequence; /* counts additions; 0 for built-ins */
};

struct kinds {
	struct kind *list; /* sorted by name */
	size_t count, room;
};

struct weir_registry {
	struct kinds operators, conditions;
	size_t sequence;
	uint64_t stamp;
	struct wr_plugin *plugins;
};

/* The first entry that is not before `name`. */
static size_t kinds_position(const struct kinds *kinds, const char *name)
{
	size_t low = 0, high = kinds->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(kinds->list[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const void *kinds_find(const struct kinds *kinds, const char *name)
{
	size_t i = kinds_position(kinds, name);

	return i < kinds->count && !strcmp(kinds->list[i].name, name) ? kinds->list[i].table : NULL;
}

static weir_status kinds_insert(struct kinds *kinds, const char *name, const void *table, size_t sequence)
{
	size_t i = kinds_position(kinds, name);
	weir_status status = wr_grow(&kinds->list, &kinds->room, kinds->count + 1, sizeof(*kinds->list));

	if (status)
		return status;
	memmove(&kinds->list[i + 1], &kinds->list[i], (kinds->count - i) * sizeof(*kinds->list));
	kinds->list[i] = (struct kind){name, table, sequence};
	kinds->count++;
	return WEIR_OK;
}

static _Atomic uint64_t stamps; /* given so far, in the process; orders nothing */

static uint64_t new_stamp(void)
{
	return 1 + wr_add_relaxed(&stamps, 1);
}

uint64_t wr_registry_stamp(const weir_registry *registry)
{
	return registry ? registry->stamp : 0;
}

weir_status weir_registry_create(weir_registry **out)
{
	weir_registry *registry = wr_alloc(1, sizeof(*registry));
	weir_status status = registry ? WEIR_OK : WEIR_E_NOMEM;

	for (size_t i = 0; !status && wr_builtin_operators[i]; i++)
		status = kinds_insert(&registry->operators, wr_builtin_operators[i]->name,
				      wr_builtin_operators[i], 0);
	for (size_t i = 0; !status && wr_builtin_conditions[i]; i++)
		status = kinds_insert(&registry->conditions, wr_builtin_conditions[i]->name,
				      wr_builtin_conditions[i], 0);
	if (status) {
		weir_registry_destroy(registry);
		return status;
	}
	registry->stamp = new_stamp();
	*out = registry;
	return status;
}

static weir_status registry_add(weir_registry *registry, struct kinds *kinds, const char *what,
				const char *name, const void *table)
{
	if (kinds_find(kinds, name))
		return wr_fail(WEIR_E_INVALID, "there is already %s '%s': give this one another name", what,
			       name);
	registry->stamp = new_stamp();
	return kinds_insert(kinds, name, table, ++registry->sequence);
}

weir_status weir_registry_add_operator(weir_registry *registry, const weir_operator *table)
{
	weir_status status = wr_operator_check(table);

	return status ? status
		      : registry_add(registry, &registry->operators, "an operator", table->name, table);
}

weir_status weir_registry_add_condition(weir_registry *registry, const weir_condition *table)
{
	weir_status status = wr_condition_check(table);

	return status ? status
		      : registry_add(registry, &registry->conditions, "a condition", table->name, table);
}

/* The built-in of that rank by name. The list is unsorted but short, so every call counts anew. */
static const weir_operator *builtin_operator(size_t rank)
{
	const weir_operator *const *all = wr_builtin_operators;

	for (size_t i = 0; all[i]; i++) {
		size_t before = 0;
		for (size_t j = 0; all[j]; j++)
			before += strcmp(all[j]->name, all[i]->name) < 0;
		if (before == rank)
			return all[i];
	}
	return NULL;
}

static const weir_condition *builtin_condition(size_t rank)
{
	const weir_condition *const *all = wr_builtin_conditions;

	for (size_t i = 0; all[i]; i++) {
		size_t before = 0;
		for (size_t j = 0; all[j]; j++)
			before += strcmp(all[j]->name, all[i]->name) < 0;
		if (before == rank)
			return all[i];
	}
	return NULL;
}

const weir_operator *weir_registry_operator(const weir_registry *registry, size_t i)
{
	if (!registry)
		return builtin_operator(i);
	return i < registry->operators.count ? registry->operators.list[i].table : NULL;
}

const weir_condition *weir_registry_condition(const weir_registry *registry, size_t i)
{
	if (!registry)
		return builtin_condition(i);
	return i < registry->conditions.count ? registry->conditions.list[i].table : NULL;
}

const weir_operator *wr_registry_find_operator(const weir_registry *registry, const char *name)
{
	if (registry)
		return kinds_find(&registry->operators, name);
	for (size_t i = 0; wr_builtin_operators[i]; i++)
		if (!strcmp(wr_builtin_operators[i]->name, name))
			return wr_builtin_operators[i];
	return NULL;
}

const weir_condition *wr_registry_find_condition(const weir_registry *registry, const char *name)
{
	if (registry)
		return kinds_find(&registry->conditions, name);
	for (size_t i = 0; wr_builtin_conditions[i]; i++)
		if (!strcmp(wr_builtin_conditions[i]->name, name))
			return wr_builtin_conditions[i];
	return NULL;
}

size_t wr_registry_mark(const weir_registry *registry)
{
	return registry->sequence;
}

static void kinds_rollback(struct kinds *kinds, size_t mark)
{
	size_t kept = 0;

	for (size_t i = 0; i < kinds->count; i++)
		if (kinds->list[i].sequence <= mark)
			kinds->list[kept++] = kinds->list[i];
	kinds->count = kept;
}

void wr_registry_rollback(weir_registry *registry, size_t mark)
{
	registry->stamp = new_stamp();
	kinds_rollback(&registry->operators, mark);
	kinds_rollback(&registry->conditions, mark);
}

void wr_registry_add_plugin(weir_registry *registry, struct wr_plugin *plugin)
{
	plugin->next = registry->plugins;
	registry->plugins = plugin;
}

void weir_registry_destroy(weir_registry *registry)
{
	if (!registry)
		return;
	while (registry->plugins) {
		struct wr_plugin *plugin = registry->plugins;
		registry->plugins = plugin->next;
		wr_plugin_close(plugin);
	}
	wr_free(registry->operators.list);
	wr_free(registry->conditions.list);
	wr_free(registry);
}

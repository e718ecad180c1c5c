/*
 * The registry: a list of operators and one of conditions, each in order of addition, with their names. A new
 * registry has the built-ins. A NULL registry means the built-ins alone; they are then searched in their own
 * tables, so that a simple program needs no registry.
 */
#include "graphs/registry.h"
#include "graphs/layout.h"
#include "graphs/table.h"

#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/status.h"

struct kind {
	const void *table;
	void *own;       /* its copy in this library's layout, which `table` is then; NULL: none */
	size_t sequence; /* counts additions; 0 for built-ins */
};

struct kinds {
	struct kind *list;
	size_t count, room;
	struct wr_names names; /* to indices of the list */
};

struct weir_registry {
	struct kinds operators, conditions;
	size_t sequence;
	uint64_t stamp;
	struct wr_plugin *plugins;
};

static const void *kinds_table(const struct kinds *kinds, size_t index)
{
	return index == WR_NO_INDEX ? NULL : kinds->list[index].table;
}

static weir_status kinds_add(struct kinds *kinds, const char *name, struct kind kind)
{
	weir_status status = wr_grow(&kinds->list, &kinds->room, kinds->count + 1, sizeof(*kinds->list));

	if (!status)
		status = wr_names_insert(&kinds->names, name, kinds->count);
	if (!status)
		kinds->list[kinds->count++] = kind;
	return status;
}

static void kinds_cut(struct kinds *kinds, size_t count)
{
	while (kinds->count > count)
		wr_free(kinds->list[--kinds->count].own);
}

static void kinds_finish(struct kinds *kinds)
{
	kinds_cut(kinds, 0);
	wr_names_finish(&kinds->names);
	wr_free(kinds->list);
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
		status = kinds_add(&registry->operators, wr_builtin_operators[i]->name,
				   (struct kind){.table = wr_builtin_operators[i]});
	for (size_t i = 0; !status && wr_builtin_conditions[i]; i++)
		status = kinds_add(&registry->conditions, wr_builtin_conditions[i]->name,
				   (struct kind){.table = wr_builtin_conditions[i]});
	if (status) {
		weir_registry_destroy(registry);
		return status;
	}
	registry->stamp = new_stamp();
	*out = registry;
	return status;
}

/* Takes `own`. */
static weir_status registry_add(weir_registry *registry, struct kinds *kinds, const char *what,
				const char *name, struct kind kind)
{
	weir_status status;

	if (wr_names_find(&kinds->names, name) != WR_NO_INDEX) {
		wr_free(kind.own);
		return wr_fail(WEIR_E_INVALID, "there is already %s '%s': give this one another name", what,
			       name);
	}
	registry->stamp = new_stamp();
	kind.sequence = ++registry->sequence;
	status = kinds_add(kinds, name, kind);
	if (status)
		wr_free(kind.own);
	return status;
}

weir_status weir_registry_add_operator(weir_registry *registry, const weir_operator *table)
{
	weir_operator *own = NULL;
	weir_status status = wr_layout_operator(table, &own);

	table = own ? own : table;
	if (!status)
		status = wr_operator_check(table);
	if (!status)
		status = wr_brought_check(registry, table);
	if (!status)
		return registry_add(registry, &registry->operators, "an operator", table->name,
				    (struct kind){.table = table, .own = own});
	wr_free(own);
	return status;
}

weir_status weir_registry_add_condition(weir_registry *registry, const weir_condition *table)
{
	weir_condition *own = NULL;
	weir_status status = wr_layout_condition(table, &own);

	table = own ? own : table;
	if (!status)
		status = wr_condition_check(table);
	if (!status)
		return registry_add(registry, &registry->conditions, "a condition", table->name,
				    (struct kind){.table = table, .own = own});
	wr_free(own);
	return status;
}

/* The tables of the built-ins are sorted by name, which tests check. */
const weir_operator *weir_registry_operator(const weir_registry *registry, size_t i)
{
	size_t builtin = 0;

	if (registry)
		return kinds_table(&registry->operators, wr_names_at(&registry->operators.names, i));
	while (builtin < i && wr_builtin_operators[builtin])
		builtin++;
	return wr_builtin_operators[builtin];
}

const weir_condition *weir_registry_condition(const weir_registry *registry, size_t i)
{
	size_t builtin = 0;

	if (registry)
		return kinds_table(&registry->conditions, wr_names_at(&registry->conditions.names, i));
	while (builtin < i && wr_builtin_conditions[builtin])
		builtin++;
	return wr_builtin_conditions[builtin];
}

const weir_operator *wr_registry_find_operator(const weir_registry *registry, const char *name)
{
	if (registry)
		return kinds_table(&registry->operators, wr_names_find(&registry->operators.names, name));
	for (size_t i = 0; wr_builtin_operators[i]; i++)
		if (!strcmp(wr_builtin_operators[i]->name, name))
			return wr_builtin_operators[i];
	return NULL;
}

const weir_condition *wr_registry_find_condition(const weir_registry *registry, const char *name)
{
	if (registry)
		return kinds_table(&registry->conditions, wr_names_find(&registry->conditions.names, name));
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
	size_t count = kinds->count;

	while (count && kinds->list[count - 1].sequence > mark)
		count--;
	kinds_cut(kinds, count);
	wr_names_remove_from(&kinds->names, kinds->count);
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

const struct wr_plugin *wr_registry_plugins(const weir_registry *registry)
{
	return registry ? registry->plugins : NULL;
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
	kinds_finish(&registry->operators);
	kinds_finish(&registry->conditions);
	wr_free(registry);
}

/* Kinds by name. */
#ifndef WR_GRAPHS_PLAN_REGISTRY_H
#define WR_GRAPHS_PLAN_REGISTRY_H

#include "weir.h"

const weir_operator *wr_registry_find_operator(const weir_registry *registry,
					       const char *name); /* NULL: none; registry: NULL = built-ins */
const weir_condition *wr_registry_find_condition(const weir_registry *registry, const char *name);

/* Whether a table is fit to be added; last_error says what is wrong with it. */
weir_status wr_operator_check(const weir_operator *table);
weir_status wr_condition_check(const weir_condition *table);

/* All or nothing: what was added after the mark can be taken out again. */
size_t wr_registry_mark(const weir_registry *registry);
void wr_registry_return(weir_registry *registry, size_t mark);

/* A plugin that stays loaded until the registry is destroyed (graphs/plan/plugin.c). */
struct wr_plugin {
	struct wr_plugin *next;
	void *handle;
	int fd;
};
void wr_registry_keep(weir_registry *registry, struct wr_plugin *plugin); /* takes it */
void wr_plugin_close(struct wr_plugin *plugin);

#endif

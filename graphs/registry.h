/* The registry: operators and conditions by name. */
#ifndef WR_GRAPHS_REGISTRY_H
#define WR_GRAPHS_REGISTRY_H

#include "weir.h"

/* The built-in kinds, defined in operators/table.c and conditions/table.c. By name; NULL ends each list. */
extern const weir_operator *const wr_builtin_operators[];
extern const weir_condition *const wr_builtin_conditions[];

const weir_operator *wr_registry_find_operator(const weir_registry *registry,
					       const char *name); /* NULL: none; registry: NULL = built-ins */
const weir_condition *wr_registry_find_condition(const weir_registry *registry, const char *name);

/* Differs between registries, even if one is made where another was, and after each addition; 0: NULL. */
uint64_t wr_registry_stamp(const weir_registry *registry);

/* wr_registry_rollback removes everything that was added after the mark. */
size_t wr_registry_mark(const weir_registry *registry);
void wr_registry_rollback(weir_registry *registry, size_t mark);

/* A loaded plugin (graphs/plugin.c). */
struct wr_plugin {
	struct wr_plugin *next;
	void *handle;
	int fd;
	bool used; /* the descriptor was that of an earlier load, whose object may be loaded */
};
void wr_registry_add_plugin(
	weir_registry *registry,
	struct wr_plugin *plugin); /* takes the plugin; the registry's destruction unloads it */
const struct wr_plugin *wr_registry_plugins(const weir_registry *registry); /* a list; NULL: none */
void wr_plugin_close(struct wr_plugin *plugin);
/* The file of what weir_registry_load is given, a path or a name (graphs/plugin_name.c); wr_free. Fails:
 * WEIR_E_IO: there is no plugin of that name; WEIR_E_NOMEM. */
weir_status wr_plugin_path(const char *given, char **out);

#endif

/*
 * Builds a plan. Each step checks its part of the tree, reports errors and continues, so that one check
 * reports all errors; a step itself fails only if memory runs out. Parts with errors stay zero; later steps
 * skip them.
 */
#ifndef WR_GRAPHS_BUILD_H
#define WR_GRAPHS_BUILD_H

#include "base/file.h"
#include "graphs/field.h"
#include "graphs/plan.h"

#define WR_ENTITIES_MAX    ((size_t)1 << 20)
#define WR_CONNECTIONS_MAX ((size_t)1 << 22)

/* Where a connection is in the tree, for checks that run after all have been read. */
struct wr_connection_origin {
	size_t item; /* index in "connections" */
	size_t to;   /* index in its list "to", or one of these: */
	struct wr_place place, initial;
};

#define WR_ORIGIN_PAIR   WR_NO_INDEX       /* ["a.out", "b.in"] */
#define WR_ORIGIN_STRING (WR_NO_INDEX - 1) /* "to": "b.in" */

enum wr_resource_type {
	WR_STREAM_POOL,
	WR_GREEN_CONTEXT_POOL,
	WR_GREEN_CONTEXT,
	WR_MEMORY_POOL,
	WR_RESOURCE_UNKNOWN
};
#define WR_DEVICE_MAX     63
#define WR_RESOURCE_TYPES "stream_pool|green_context_pool|green_context|memory_pool"
#define WR_SIGNALS        "auto|callback|callback_inline|flag" /* enum wr_signal_kind */

/* One of "resources". */
struct wr_resource {
	const struct wr_member *member; /* of the tree */
	enum wr_resource_type type;     /* WR_RESOURCE_UNKNOWN: an error, already reported */
	uint32_t index;                 /* in the plan's list of its type */
	uint32_t context; /* its own index, or that of a pool's implied context; WR_NO_CONTEXT: none yet */
	uint32_t pool;    /* its own index, or that of a context's implied pool; WR_NO_POOL: none yet */
	bool used;
	size_t workers; /* entities that need a stream for each tick; of several instances each counts */
	bool several;   /* some of them have instances */
};

struct wr_build {
	struct wr_plan *plan;
	const weir_registry *registry;
	const struct wr_root *root; /* what operators that describe their ports may open */
	struct wr_reports reports;
	const struct wr_value *entities; /* of the tree; NULL: none */
	struct wr_resource *resources;   /* in the order of the text */
	size_t resource_count;
	struct wr_names resource_names;
	struct wr_resource *default_resource;
	uint32_t implied_pool;    /* of entities without a resource, if none is the default; or WR_NO_POOL */
	bool use_default_stream;  /* default of "use_default_stream" */
	bool unresolved_resource; /* a reference had an error: it may mean a resource that seems unused */
	struct wr_connection_origin *origins; /* one per connection of the plan */
	size_t connection_room, origin_room;
	bool open_ports;
	bool unresolved; /* an end of a connection had an error: ports may only seem unconnected */
};

weir_status wr_build_resources(struct wr_build *build, const struct wr_value *resources); /* NULL: none */
weir_status wr_build_entities(struct wr_build *build, const struct wr_value *entities);
weir_status wr_build_connections(struct wr_build *build, const struct wr_value *connections);
weir_status wr_build_inlets(struct wr_build *build, const struct wr_value *inlets);
weir_status wr_build_outlets(struct wr_build *build, const struct wr_value *outlets);

/* Parts of an entity whose kind is known. `at` is its place in the tree. */
weir_status wr_build_ports(struct wr_build *build, struct wr_plan_entity *entity,
			   const struct wr_value *ports, const struct wr_at *at);
/*
 * Of an operator that describes its ports: calls it, if its values had no error, and gives the entity a kind
 * with them; without ports a kind of NULL, which is reported. `at`: its parameters. described.c
 */
weir_status wr_build_described(struct wr_build *build, struct wr_plan_entity *entity, bool values_are_good,
			       const struct wr_at *at, struct wr_place place);
weir_status wr_build_conditions(struct wr_build *build, struct wr_plan_entity *entity,
				const struct wr_value *conditions, const struct wr_at *at);
/* Adds one condition, or reports its error. The entity's list has room for it. */
weir_status wr_build_condition(struct wr_build *build, struct wr_plan_entity *entity,
			       const struct wr_value *value, const struct wr_at *at,
			       const weir_condition *inside); /* any_of or all_of; NULL: in no tree */
/* Trees: tree.c. */
bool wr_is_tree(const weir_condition *kind);
size_t wr_tree_count(const struct wr_value *conditions); /* of a list, with those inside trees */
/* Returns true if the kind may stand there: in no tree, or directly inside `inside`. Else it reports why. */
bool wr_tree_allows(struct wr_build *build, const weir_condition *kind, const weir_condition *inside,
		    const struct wr_at *at, struct wr_place place);
/* Those that its operator brings: brought.c. */
size_t wr_brought_count(const weir_operator *kind);
weir_status wr_build_brought(struct wr_build *build, struct wr_plan_entity *entity);
/* Calls fn for each condition of the text that the entity's plan has, with its index there and its place. */
typedef void wr_build_condition_fn(struct wr_build *build, size_t entity, size_t condition,
				   const struct wr_value *value, const struct wr_at *at);
void wr_build_each_condition(struct wr_build *build, size_t index, wr_build_condition_fn *fn);

/* Parts of "resources". `at` is the resource's place; the resources that it names have been read. */
weir_status wr_build_stream_pool(struct wr_build *build, struct wr_resource *resource,
				 const struct wr_at *at);
weir_status wr_build_green_pool(struct wr_build *build, struct wr_resource *resource, const struct wr_at *at);
weir_status wr_build_green_context(struct wr_build *build, struct wr_resource *resource,
				   const struct wr_at *at);

/* Memory pools and what ticks claim of them: memory.c. */
weir_status wr_build_memory_pool(struct wr_build *build, struct wr_resource *resource,
				 const struct wr_at *at);
/* The entity names the memory pool in its list. */
void wr_build_use_memory(struct wr_build *build, struct wr_plan_entity *entity,
			 const struct wr_resource *resource, const struct wr_value *name,
			 const struct wr_at *at);
void wr_build_check_memory_device(struct wr_build *build, const struct wr_plan_entity *entity,
				  const struct wr_value *resources, const struct wr_at *up);
weir_status wr_build_claims(struct wr_build *build);       /* once all outputs are known */
weir_status wr_build_check_memory(struct wr_build *build); /* sizes against queues; warnings */
/* Adds the condition memory_available that the text leaves out. */
weir_status wr_build_imply_claim(struct wr_build *build, struct wr_plan_entity *entity,
				 const struct wr_plan_memory *memory);

/* An entity's keys about streams; NULL if absent. */
struct wr_pool_keys {
	const struct wr_value *resources, *default_stream_pool, *use_default_stream;
};
weir_status wr_build_entity_pool(struct wr_build *build, struct wr_plan_entity *entity,
				 const struct wr_pool_keys *use, const struct wr_at *at);

/*
 * The resource of that name if its type is in the mask `types` (1 << type; `wanted` names them for the
 * report). Otherwise reports an error and returns NULL.
 */
struct wr_resource *wr_resource_find(struct wr_build *build, const struct wr_value *name,
				     const struct wr_at *at, unsigned types, const char *wanted);
/* The green context of a resource: itself, or the default one of a green context pool. */
weir_status wr_resource_context(struct wr_build *build, struct wr_resource *resource, uint32_t *out);
/* The device of a green context; -1 if its pool had an error. */
int wr_plan_context_device(const struct wr_plan *plan, uint32_t context);

/* Called when all entities are known; reports warnings. */
void wr_build_check_resources(struct wr_build *build);

/* Called when all connections are known. */
weir_status wr_build_default_conditions(struct wr_build *build); /* default conditions */
void wr_build_gates(struct wr_build *build);                     /* which ports have an implied gate (C8) */
void wr_build_check_gates(struct wr_build *build);               /* warnings */
void wr_build_check_conditions(struct wr_build *build); /* min_size against take, capacity, max_emits */
/* A port whose policy is `latest`, once its keys are read: those that are given beside it, or NULL. */
void wr_build_latest_input(struct wr_build *build, struct wr_plan_input *input, const struct wr_at *at,
			   const struct wr_value *capacity, const struct wr_value *take,
			   const struct wr_value *gate);
void wr_build_check_latest(struct wr_build *build);
void wr_build_check_aligned(struct wr_build *build); /* what `aligned` names */
/* What the key "instances" of an entity needs: of its operator, whose ports are known, and once all
 * connections and claims are. */
void wr_build_instances(struct wr_build *build, struct wr_plan_entity *entity, const struct wr_value *value,
			const struct wr_at *at);
void wr_build_check_instances(struct wr_build *build);
uint64_t wr_instances_places(const struct wr_plan_entity *entity); /* of messages, in queues that it hides */
void wr_build_check_unconnected(struct wr_build *build);
void wr_build_check_connections(struct wr_build *build);  /* sizes and kinds of both ends */
weir_status wr_build_check_types(struct wr_build *build); /* of both ends: agree.c */
weir_status wr_build_check_cycles(struct wr_build *build);
/* The entities, senders before receivers; connections with initial messages do not count. No errors so far.
 */
weir_status wr_build_order(const struct wr_build *build, uint32_t *order);
weir_status wr_build_check_joins(struct wr_build *build); /* warnings */
void wr_build_check_main(struct wr_build *build);
weir_status wr_build_depths(struct wr_build *build);

/* Report at a connection: the line as it is, or with "a.out -> b.in: " before it. */
void wr_build_report_origin(struct wr_build *build, enum wr_error error, size_t connection, const char *line);
void wr_build_report_connection(struct wr_build *build, enum wr_error error, size_t connection,
				const char *format, ...) WEIR_PRINTF(4, 5);

#endif

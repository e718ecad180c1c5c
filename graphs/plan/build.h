/*
 * A plan in the making. Each step checks its part of the tree, reports what is wrong and goes on, so that all
 * errors come in one go; a step fails only for want of memory. What could not be understood stays zero and is
 * passed over by later steps.
 */
#ifndef WR_GRAPHS_PLAN_BUILD_H
#define WR_GRAPHS_PLAN_BUILD_H

#include "graphs/plan/fields.h"
#include "graphs/plan/plan.h"

#define WR_ENTITIES_MAX    ((size_t)1 << 20)
#define WR_CONNECTIONS_MAX ((size_t)1 << 22)

/* Where a connection stands: for reports that come when all are known. */
struct wr_connection_origin {
	size_t item; /* of "connections" */
	size_t to;   /* of its list "to", or: */
	struct wr_place place, initial;
};

#define WR_ORIGIN_PAIR   WR_NO_INDEX       /* ["a.out", "b.in"] */
#define WR_ORIGIN_STRING (WR_NO_INDEX - 1) /* "to": "b.in" */

enum wr_resource_type { WR_STREAM_POOL, WR_GREEN_CONTEXT_POOL, WR_GREEN_CONTEXT, WR_RESOURCE_UNKNOWN };
#define WR_DEVICE_MAX     63
#define WR_RESOURCE_TYPES "stream_pool|green_context_pool|green_context"
#define WR_SIGNALS        "callback|callback_inline|flag" /* enum wr_signal_kind */

/* One of "resources". */
struct wr_resource {
	const struct wr_member *member; /* of the tree */
	enum wr_resource_type type;     /* WR_RESOURCE_UNKNOWN: not understood; it was reported */
	uint32_t index;                 /* in the plan's list of its type */
	uint32_t context;               /* itself, or the implied one of a pool; WR_NO_CONTEXT: none yet */
	uint32_t pool;                  /* itself, or the implied one of a context; WR_NO_POOL: none yet */
	bool used;
	size_t workers;                 /* entities that need a stream for each tick */
};

struct wr_build {
	struct wr_plan *plan;
	const weir_registry *registry;
	struct wr_reports reports;
	struct wr_names names;                /* of entities */
	const struct wr_value *entities;      /* of the tree; NULL: none */
	struct wr_resource *resources;        /* in the order of the text */
	size_t resource_count;
	struct wr_names resource_names;
	struct wr_resource *default_resource;
	uint32_t implied_pool;                /* of who names none, without a default; or WR_NO_POOL */
	bool use_default_stream;              /* of entities that do not say */
	bool unresolved_resource;             /* a name was not understood: who is unused may be meant */
	struct wr_connection_origin *origins; /* one per connection of the plan */
	size_t connection_room, origin_room;
	bool open_ports;
	bool unresolved; /* an end of a connection was not understood: unconnected ports may be its fault */
};

weir_status wr_build_resources(struct wr_build *build, const struct wr_value *resources); /* NULL: none */
weir_status wr_build_scheduler(struct wr_build *build, const struct wr_value *scheduler);
weir_status wr_build_entities(struct wr_build *build, const struct wr_value *entities);
weir_status wr_build_connections(struct wr_build *build, const struct wr_value *connections);
weir_status wr_build_inlets(struct wr_build *build, const struct wr_value *inlets);
weir_status wr_build_outlets(struct wr_build *build, const struct wr_value *outlets);

/* One end: "entity.port". */
#define WR_NOTHING UINT32_MAX /* not understood; it was reported */
struct wr_end {
	uint32_t entity, port;
};
struct wr_end wr_build_end(struct wr_build *build, const struct wr_at *at, const struct wr_value *value,
			   bool input);

/* Parts of an entity. `at` is its chain; the kind is known. */
weir_status wr_build_ports(struct wr_build *build, struct wr_plan_entity *entity,
			   const struct wr_value *ports, const struct wr_at *at);
weir_status wr_build_conditions(struct wr_build *build, struct wr_plan_entity *entity,
				const struct wr_value *conditions, const struct wr_at *at);

/* Parts of it. `at` is the resource's chain; who it names was read before. */
weir_status wr_build_green_pool(struct wr_build *build, struct wr_resource *resource, const struct wr_at *at);
weir_status wr_build_green_context(struct wr_build *build, struct wr_resource *resource,
				   const struct wr_at *at);

/* What an entity says of streams; any may be NULL. */
struct wr_use {
	const struct wr_value *resources, *default_stream_pool, *use_default_stream;
};
weir_status wr_build_use(struct wr_build *build, struct wr_plan_entity *entity, const struct wr_use *use,
			 const struct wr_at *at);

/*
 * The resource of that name, if it is of one of the types (a mask of 1 << type; `wanted` says them in words).
 * NULL: it is not; that was reported.
 */
struct wr_resource *wr_resource_find(struct wr_build *build, const struct wr_value *name,
				     const struct wr_at *at, unsigned types, const char *wanted);
/* The green context that a resource stands for: itself, or a pool's default one. */
weir_status wr_resource_context(struct wr_build *build, struct wr_resource *resource, uint32_t *out);
/* The stream pool that it stands for: itself, or an implied one in its context. */
weir_status wr_resource_pool(struct wr_build *build, struct wr_resource *resource, uint32_t *out);
/* The pool of all who name none where no resource is the default. */
weir_status wr_default_pool(struct wr_build *build, uint32_t *out);

/* When all entities are known: warnings. */
void wr_build_check_resources(struct wr_build *build);

/* When all connections are known. */
weir_status wr_build_implied(struct wr_build *build);   /* default conditions */
void wr_build_gates(struct wr_build *build);            /* which ports have an implied gate (C8) */
void wr_build_check_gates(struct wr_build *build);      /* warnings */
void wr_build_check_conditions(struct wr_build *build); /* min_size against take, capacity, max_emits */
void wr_build_check_unconnected(struct wr_build *build);
void wr_build_check_connections(struct wr_build *build); /* sizes and kinds of both ends */
weir_status wr_build_check_cycles(struct wr_build *build);

/* Reports of a connection: the line as it is, or one that begins with "a.out -> b.in: ". */
void wr_build_report_origin(struct wr_build *build, enum wr_error error, size_t connection, const char *line);
void wr_build_report_connection(struct wr_build *build, enum wr_error error, size_t connection,
				const char *format, ...) WEIR_PRINTF(4, 5);

#endif

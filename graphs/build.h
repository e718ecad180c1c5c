/*
 * A plan in the making. Each step checks its part of the tree, reports what is wrong and goes on, so that all
 * errors come in one go; a step fails only for want of memory. What could not be understood stays zero and is
 * passed over by later steps.
 */
#ifndef WR_GRAPHS_BUILD_H
#define WR_GRAPHS_BUILD_H

#include "graphs/fields.h"
#include "graphs/plan.h"

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

struct wr_build {
	struct wr_plan *plan;
	const weir_registry *registry;
	struct wr_reports reports;
	struct wr_names names;                /* of entities */
	const struct wr_value *entities;      /* of the tree; NULL: none */
	struct wr_connection_origin *origins; /* one per connection of the plan */
	size_t connection_room, origin_room;
	bool open_ports;
	bool unresolved; /* an end of a connection was not understood: unconnected ports may be its fault */
};

weir_status wr_build_scheduler(struct wr_build *build, const struct wr_value *scheduler);
weir_status wr_build_entities(struct wr_build *build, const struct wr_value *entities);
weir_status wr_build_connections(struct wr_build *build, const struct wr_value *connections);

/* Parts of an entity. `at` is its chain; the kind is known. */
weir_status wr_build_ports(struct wr_build *build, struct wr_plan_entity *entity,
			   const struct wr_value *ports, const struct wr_at *at);
weir_status wr_build_conditions(struct wr_build *build, struct wr_plan_entity *entity,
				const struct wr_value *conditions, const struct wr_at *at);

/* When all connections are known. */
weir_status wr_build_implied(struct wr_build *build);   /* default conditions */
void wr_build_check_conditions(struct wr_build *build); /* min_size against take, capacity, max_emits */
void wr_build_check_unconnected(struct wr_build *build);
void wr_build_check_connections(struct wr_build *build); /* sizes and kinds of both ends */
weir_status wr_build_check_cycles(struct wr_build *build);

/* Whether a parameter of the condition names that port. */
bool wr_condition_names(const struct wr_plan_condition *condition, unsigned port, bool input);

/* Reports of a connection: the line as it is, or one that begins with "a.out -> b.in: ". */
void wr_build_report_origin(struct wr_build *build, enum wr_error error, size_t connection, const char *line);
void wr_build_report_connection(struct wr_build *build, enum wr_error error, size_t connection,
				const char *format, ...) WEIR_PRINTF(4, 5);

#endif

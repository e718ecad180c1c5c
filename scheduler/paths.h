/*
 * The ways that messages take through a graph, enumerated before the run. A path leads from a source (an
 * entity without connected inputs, or an inlet) to a sink and visits an entity once. What leads up to an
 * entity is a prefix; an entity has one for each way on which messages reach it. For each connection a map
 * says which prefix of its receiver continues a prefix of its sender.
 *
 * Bounds: WR_PREFIXES per entity, WR_PREFIXES_ALL of a graph. An entity whose prefixes do not all fit has one
 * more, the last, for the rest: its `other`. What follows on an `other` is `other` as well, but not around a
 * cycle, where it would go on for ever.
 *
 * Plain data: entities and connections by number.
 */
#ifndef WR_SCHEDULER_PATHS_H
#define WR_SCHEDULER_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir.h"

enum { WR_PREFIXES = 64, WR_PREFIXES_ALL = 4096 };
#define WR_NO_ENTITY UINT32_MAX /* in wr_ends: an inlet or an outlet is there */
#define WR_NO_PREFIX UINT8_MAX

struct wr_ends {
	uint32_t sender, receiver;
};

struct wr_prefix {
	uint32_t entity;
	uint32_t before; /* number of the prefix that it continues; UINT32_MAX: begins here */
	uint32_t inlet;  /* begins at this connection; UINT32_MAX: it does not begin at an inlet */
	uint32_t at;     /* index among those of the entity */
};

struct wr_entity_prefixes {
	uint32_t *prefixes; /* numbers of the named ones */
	uint32_t named;
	uint32_t count; /* named, and one if it has an `other` */
	bool other;
};

struct wr_paths {
	struct wr_prefix *prefixes;
	size_t prefix_count;
	struct wr_entity_prefixes *entities;
	size_t entity_count;
	const struct wr_ends *connections; /* borrowed until enumerated */
	size_t connection_count;
	/* [connection][prefix of the sender; 0 for an inlet]: index among those of the receiver, or
	 * WR_NO_PREFIX */
	uint8_t **maps;
	bool folded; /* some entity has an `other` */

	/* while enumerating: the connections by sender; the last prefix, + 1, that was continued to an entity
	 */
	uint32_t *out, *out_from, *continued;
};

/* Fails: WEIR_E_NOMEM; then *out is untouched. */
weir_status wr_paths_enumerate(const struct wr_ends *connections, size_t connection_count,
			       size_t entity_count, struct wr_paths **out);
void wr_paths_destroy(struct wr_paths *paths); /* NULL is fine */

/* The number of entities of a prefix, with the last; `number` is that of the prefix. */
size_t wr_prefix_length(const struct wr_paths *paths, uint32_t number);

/* Origins that travel over the connection: prefixes of its sender, or 1 for an inlet. */
static inline size_t wr_paths_origins(const struct wr_paths *paths, const struct wr_ends *ends)
{
	return ends->sender == WR_NO_ENTITY ? 1 : paths->entities[ends->sender].count;
}

#endif

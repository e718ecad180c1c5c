#include "scheduler/paths.h"

#include <string.h>

#include "base/memory.h"

#define NONE UINT32_MAX

/* --- connections by sender --- */

/* The connections that entity e sends on: paths->out, from out_from[e] to before out_from[e + 1]. */
static weir_status sort_connections(struct wr_paths *paths)
{
	uint32_t *from = paths->out_from = wr_alloc(paths->entity_count + 2, sizeof *from);

	paths->out = wr_alloc(paths->connection_count + 1, sizeof *paths->out);
	paths->continued = wr_alloc(paths->entity_count + 1, sizeof *paths->continued);
	if (!from || !paths->out || !paths->continued)
		return WEIR_E_NOMEM;
	for (size_t i = 0; i < paths->connection_count; i++)
		if (paths->connections[i].sender != WR_NO_ENTITY)
			from[paths->connections[i].sender + 2]++;
	for (size_t i = 2; i < paths->entity_count + 2; i++)
		from[i] += from[i - 1];
	for (uint32_t i = 0; i < paths->connection_count; i++)
		if (paths->connections[i].sender != WR_NO_ENTITY)
			paths->out[from[paths->connections[i].sender + 1]++] = i;
	return WEIR_OK;
}

/* --- prefixes --- */

static bool prefix_visits(const struct wr_paths *paths, uint32_t prefix, uint32_t entity)
{
	for (; prefix != NONE; prefix = paths->prefixes[prefix].before)
		if (paths->prefixes[prefix].entity == entity)
			return true;
	return false;
}

size_t wr_prefix_length(const struct wr_paths *paths, uint32_t number)
{
	size_t length = 0;

	for (; number != NONE; number = paths->prefixes[number].before)
		length++;
	return length;
}

/* Beyond the bounds the entity gets an `other`. */
static weir_status prefix_add(struct wr_paths *paths, uint32_t entity, uint32_t before, uint32_t inlet)
{
	struct wr_entity_prefixes *own = &paths->entities[entity];
	size_t room = own->named;
	weir_status status;

	if (own->named == WR_PREFIXES || paths->prefix_count == WR_PREFIXES_ALL) {
		own->other = true;
		return WEIR_OK;
	}
	status = wr_grow(&own->prefixes, &room, own->named + 1, sizeof *own->prefixes);
	if (status)
		return status;
	own->prefixes[own->named] = (uint32_t)paths->prefix_count;
	paths->prefixes[paths->prefix_count++] = (struct wr_prefix){entity, before, inlet, own->named++};
	return WEIR_OK;
}

static weir_status add_beginnings(struct wr_paths *paths)
{
	bool *fed = wr_alloc(paths->entity_count + 1, sizeof *fed);
	weir_status status = fed ? WEIR_OK : WEIR_E_NOMEM;

	for (uint32_t i = 0; !status && i < paths->connection_count; i++) {
		const struct wr_ends *ends = &paths->connections[i];
		if (ends->receiver == WR_NO_ENTITY)
			continue;
		fed[ends->receiver] = true;
		if (ends->sender == WR_NO_ENTITY)
			status = prefix_add(paths, ends->receiver, NONE, i);
	}
	for (uint32_t i = 0; !status && i < paths->entity_count; i++)
		if (!fed[i])
			status = prefix_add(paths, i, NONE, NONE);
	wr_free(fed);
	return status;
}

/* Once per receiver: two connections between the same entities continue a prefix in the same way. */
static weir_status continue_prefix(struct wr_paths *paths, uint32_t prefix)
{
	uint32_t entity = paths->prefixes[prefix].entity;
	weir_status status = WEIR_OK;

	for (uint32_t k = paths->out_from[entity]; !status && k < paths->out_from[entity + 1]; k++) {
		uint32_t receiver = paths->connections[paths->out[k]].receiver;
		if (receiver == WR_NO_ENTITY || paths->continued[receiver] == prefix + 1 ||
		    prefix_visits(paths, prefix, receiver))
			continue;
		paths->continued[receiver] = prefix + 1;
		status = prefix_add(paths, receiver, prefix, NONE);
	}
	return status;
}

/* --- what is folded --- */

struct walk {
	const struct wr_paths *paths;
	bool *seen;
	uint32_t *left; /* a stack */
	size_t left_count;
};

static weir_status walk_init(struct walk *walk, const struct wr_paths *paths)
{
	*walk = (struct walk){.paths = paths};
	walk->seen = wr_alloc(paths->entity_count + 1, sizeof *walk->seen);
	walk->left = wr_alloc(paths->entity_count + 1, sizeof *walk->left);
	return walk->seen && walk->left ? WEIR_OK : WEIR_E_NOMEM;
}

static void walk_finish(struct walk *walk)
{
	wr_free(walk->seen);
	wr_free(walk->left);
}

static void walk_visit(struct walk *walk, uint32_t entity)
{
	if (entity == WR_NO_ENTITY || walk->seen[entity])
		return;
	walk->seen[entity] = true;
	walk->left[walk->left_count++] = entity;
}

/* Returns true if messages of `from` may reach `to`. */
static bool reaches(struct walk *walk, uint32_t from, uint32_t to)
{
	const struct wr_paths *paths = walk->paths;

	memset(walk->seen, 0, paths->entity_count * sizeof *walk->seen);
	walk->left_count = 0;
	walk_visit(walk, from);
	while (walk->left_count && !walk->seen[to]) {
		uint32_t entity = walk->left[--walk->left_count];
		for (uint32_t k = paths->out_from[entity]; k < paths->out_from[entity + 1]; k++)
			walk_visit(walk, paths->connections[paths->out[k]].receiver);
	}
	return walk->seen[to];
}

/* From each entity with an `other`: its receivers have one, too, unless they lead back to it. */
static weir_status spread_others(struct wr_paths *paths)
{
	struct walk walk;
	uint32_t *left = wr_alloc(paths->entity_count + 1, sizeof *left);
	size_t count = 0;
	weir_status status = walk_init(&walk, paths);

	if (!left)
		status = WEIR_E_NOMEM;
	for (uint32_t i = 0; !status && i < paths->entity_count; i++)
		if (paths->entities[i].other)
			left[count++] = i;
	paths->folded = count > 0;
	while (!status && count) {
		uint32_t entity = left[--count];
		for (uint32_t k = paths->out_from[entity]; k < paths->out_from[entity + 1]; k++) {
			uint32_t receiver = paths->connections[paths->out[k]].receiver;
			if (receiver == WR_NO_ENTITY || paths->entities[receiver].other ||
			    reaches(&walk, receiver, entity))
				continue;
			paths->entities[receiver].other = true;
			left[count++] = receiver;
		}
	}
	walk_finish(&walk);
	wr_free(left);
	return status;
}

/* --- maps --- */

static uint8_t map_other(struct walk *walk, const struct wr_ends *ends)
{
	const struct wr_entity_prefixes *receiver = &walk->paths->entities[ends->receiver];

	if (!receiver->other || reaches(walk, ends->receiver, ends->sender))
		return WR_NO_PREFIX;
	return (uint8_t)receiver->named;
}

/* A prefix that no prefix of the receiver continues visits the receiver already, or was folded. */
static uint8_t map_named(const struct wr_paths *paths, const struct wr_ends *ends, uint32_t prefix)
{
	const struct wr_entity_prefixes *receiver = &paths->entities[ends->receiver];

	for (uint32_t i = 0; i < receiver->named; i++)
		if (paths->prefixes[receiver->prefixes[i]].before == prefix)
			return (uint8_t)i;
	if (prefix_visits(paths, prefix, ends->receiver))
		return WR_NO_PREFIX;
	return (uint8_t)receiver->named;
}

static void map_inlet(const struct wr_paths *paths, uint32_t connection, uint8_t *map)
{
	const struct wr_entity_prefixes *receiver = &paths->entities[paths->connections[connection].receiver];

	*map = (uint8_t)receiver->named; /* folded, unless it is found */
	for (uint32_t i = 0; i < receiver->named; i++)
		if (paths->prefixes[receiver->prefixes[i]].inlet == connection)
			*map = (uint8_t)i;
}

static weir_status make_map(struct wr_paths *paths, struct walk *walk, uint32_t connection)
{
	const struct wr_ends *ends = &paths->connections[connection];
	const struct wr_entity_prefixes *sender = &paths->entities[ends->sender];
	uint8_t *map;

	if (ends->receiver == WR_NO_ENTITY)
		return WEIR_OK;
	map = paths->maps[connection] = wr_alloc(wr_paths_origins(paths, ends) + 1, sizeof *map);
	if (!map)
		return WEIR_E_NOMEM;
	if (ends->sender == WR_NO_ENTITY) {
		map_inlet(paths, connection, map);
		return WEIR_OK;
	}
	for (uint32_t i = 0; i < sender->named; i++)
		map[i] = map_named(paths, ends, sender->prefixes[i]);
	if (sender->other)
		map[sender->named] = map_other(walk, ends);
	return WEIR_OK;
}

static weir_status make_maps(struct wr_paths *paths)
{
	struct walk walk;
	weir_status status = walk_init(&walk, paths);

	for (uint32_t i = 0; i < paths->entity_count; i++)
		paths->entities[i].count = paths->entities[i].named + paths->entities[i].other;
	for (uint32_t i = 0; !status && i < paths->connection_count; i++)
		status = make_map(paths, &walk, i);
	walk_finish(&walk);
	return status;
}

/* --- all --- */

void wr_paths_destroy(struct wr_paths *paths)
{
	if (!paths)
		return;
	for (size_t i = 0; paths->entities && i < paths->entity_count; i++)
		wr_free(paths->entities[i].prefixes);
	for (size_t i = 0; paths->maps && i < paths->connection_count; i++)
		wr_free(paths->maps[i]);
	wr_free(paths->entities);
	wr_free(paths->maps);
	wr_free(paths->prefixes);
	wr_free(paths->out);
	wr_free(paths->out_from);
	wr_free(paths->continued);
	wr_free(paths);
}

static weir_status enumerate(struct wr_paths *paths)
{
	weir_status status = sort_connections(paths);

	if (!status)
		status = add_beginnings(paths);
	/* Shorter ones first, since each is appended. */
	for (uint32_t i = 0; !status && i < paths->prefix_count; i++)
		status = continue_prefix(paths, i);
	if (!status)
		status = spread_others(paths);
	if (!status)
		status = make_maps(paths);
	return status;
}

weir_status wr_paths_enumerate(const struct wr_ends *connections, size_t connection_count,
			       size_t entity_count, struct wr_paths **out)
{
	struct wr_paths *paths = wr_alloc(1, sizeof *paths);
	weir_status status;

	if (!paths)
		return WEIR_E_NOMEM;
	paths->entity_count = entity_count;
	paths->connections = connections;
	paths->connection_count = connection_count;
	paths->entities = wr_alloc(entity_count + 1, sizeof *paths->entities);
	paths->maps = wr_alloc(connection_count + 1, sizeof *paths->maps);
	paths->prefixes = wr_alloc(WR_PREFIXES_ALL, sizeof *paths->prefixes);
	status = paths->entities && paths->maps && paths->prefixes ? enumerate(paths) : WEIR_E_NOMEM;
	paths->connections = NULL;
	if (status) {
		wr_paths_destroy(paths);
		return status;
	}
	*out = paths;
	return WEIR_OK;
}

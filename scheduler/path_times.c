#include "scheduler/path_times.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "scheduler/graph.h"
#include "scheduler/outlet.h"

/* --- making: which entities end paths, and the names of all paths --- */

static struct wr_ends *list_ends(const weir_graph *graph)
{
	struct wr_ends *ends = wr_alloc(graph->connection_count + 1, sizeof *ends);

	for (size_t i = 0; ends && i < graph->connection_count; i++) {
		const struct wr_connection *connection = graph->connections[i];
		ends[i].sender = connection->sender ? connection->sender->id : WR_NO_ENTITY;
		ends[i].receiver = connection->receiver ? connection->receiver->id : WR_NO_ENTITY;
	}
	return ends;
}

static uint32_t count_outlets(const weir_entity *entity)
{
	uint32_t count = 0;

	for (size_t i = 0; i < entity->output_count; i++)
		for (size_t k = 0; k < entity->outputs[i].count; k++)
			count += entity->outputs[i].connections[k]->outlet != NULL;
	return count;
}

static size_t count_inputs(const weir_entity *entity)
{
	size_t count = 0;

	for (size_t i = 0; i < entity->input_count; i++)
		count += entity->inputs[i].count;
	return count;
}

static weir_status make_pending(struct wr_entity_paths *own)
{
	int64_t *origins = wr_alloc(WR_ENDS_PENDING * own->count + 1, sizeof *origins);

	own->pending = wr_alloc(WR_ENDS_PENDING, sizeof *own->pending);
	if (!own->pending || !origins) {
		wr_free(origins);
		return WEIR_E_NOMEM;
	}
	for (size_t i = 0; i < WR_ENDS_PENDING; i++)
		own->pending[i].origins = origins + i * own->count;
	return WEIR_OK;
}

static weir_status list_outlets(const weir_entity *entity, struct wr_entity_paths *own)
{
	uint32_t outlets = count_outlets(entity), n = 0;

	own->end_count = !entity->receivers ? 1 : outlets < 64 ? outlets : 64;
	own->outputs = wr_alloc((size_t)outlets + 1, sizeof *own->outputs);
	if (!own->outputs)
		return WEIR_E_NOMEM;
	for (uint32_t i = 0; i < entity->output_count; i++)
		for (size_t k = 0; k < entity->outputs[i].count; k++)
			if (entity->outputs[i].connections[k]->outlet)
				own->outputs[n++] = i;
	return WEIR_OK;
}

static weir_status make_entity(struct wr_path_times *times, const weir_entity *entity)
{
	struct wr_entity_paths *own = &times->entities[entity->id];
	weir_status status;

	own->count = times->paths->entities[entity->id].count;
	own->source = !count_inputs(entity);
	own->first_path = times->time_count;
	own->origins = wr_alloc(own->count + 1, sizeof *own->origins);
	status = own->origins ? list_outlets(entity, own) : WEIR_E_NOMEM;
	if (!status && own->end_count)
		status = make_pending(own);
	times->time_count += own->end_count * own->count;
	return status;
}

static const char *end_text(struct wr_path_times *times, const char *what, const char *port)
{
	char *text = wr_format("%s:%s", what, port);
	size_t room = times->ends_text_count;

	if (!text || wr_grow(&times->ends_text, &room, times->ends_text_count + 1, sizeof text)) {
		wr_free(text);
		return NULL;
	}
	return times->ends_text[times->ends_text_count++] = text;
}

static const char *outlet_text(struct wr_path_times *times, const weir_entity *entity, uint32_t output)
{
	const struct wr_output *port = &entity->outputs[output];

	return end_text(times, "outlet", port->connections[0]->from);
}

/* number: of the prefix; UINT32_MAX: the entity's `other`, of which the entity alone is known. */
static weir_status name_path(struct wr_path_times *times, const weir_graph *graph, const weir_entity *entity,
			     uint32_t number, const char *outlet, struct wr_path_time *out)
{
	const struct wr_prefix *prefixes = times->paths->prefixes;
	size_t length = number == UINT32_MAX ? 1 : wr_prefix_length(times->paths, number), at;

	out->other = number == UINT32_MAX;
	out->names = wr_alloc(length + 2, sizeof *out->names);
	if (!out->names)
		return WEIR_E_NOMEM;
	out->names[0] = entity->plan->name;
	for (uint32_t i = number; i != UINT32_MAX; i = prefixes[i].before)
		if (prefixes[i].before == UINT32_MAX && prefixes[i].inlet != UINT32_MAX) {
			out->names[0] = end_text(times, "inlet", graph->connections[prefixes[i].inlet]->to);
			out->length = 1;
		}
	at = out->length += length;
	for (uint32_t i = number; i != UINT32_MAX; i = prefixes[i].before)
		out->names[--at] = graph->entities[prefixes[i].entity].plan->name;
	if (outlet)
		out->names[out->length++] = outlet;
	return out->names[0] ? WEIR_OK : WEIR_E_NOMEM;
}

static weir_status name_paths(struct wr_path_times *times, const weir_graph *graph, const weir_entity *entity)
{
	const struct wr_entity_paths *own = &times->entities[entity->id];
	const struct wr_entity_prefixes *prefixes = &times->paths->entities[entity->id];
	weir_status status = WEIR_OK;

	for (uint32_t end = 0; !status && end < own->end_count; end++) {
		const char *outlet = entity->receivers ? outlet_text(times, entity, own->outputs[end]) : NULL;
		if (entity->receivers && !outlet)
			return WEIR_E_NOMEM;
		for (uint32_t i = 0; !status && i < own->count; i++)
			status = name_path(times, graph, entity,
					   i < prefixes->named ? prefixes->prefixes[i] : UINT32_MAX, outlet,
					   &times->times[own->first_path + end * own->count + i]);
	}
	return status;
}

static void on_completed(void *arg, uint32_t id, uint64_t tick, int64_t end);

static weir_status make_times(struct wr_path_times *times, const weir_graph *graph)
{
	weir_status status = WEIR_OK;

	times->entities = wr_alloc(times->entity_count + 1, sizeof *times->entities);
	if (!times->entities)
		return WEIR_E_NOMEM;
	for (size_t i = 0; !status && i < times->entity_count; i++)
		status = make_entity(times, &graph->entities[i]);
	if (status)
		return status;
	times->times = wr_alloc(times->time_count + 1, sizeof *times->times);
	if (!times->times)
		return WEIR_E_NOMEM;
	for (size_t i = 0; !status && i < times->entity_count; i++)
		status = name_paths(times, graph, &graph->entities[i]);
	return status;
}

weir_status wr_path_times_create(weir_graph *graph, struct wr_statistics *statistics,
				 struct wr_path_times **out)
{
	struct wr_path_times *times = wr_alloc(1, sizeof *times);
	struct wr_ends *ends = list_ends(graph);
	weir_status status = times && ends ? WEIR_OK : WEIR_E_NOMEM;

	if (!status) {
		times->statistics = statistics;
		times->entity_count = graph->entity_count;
		status =
			wr_paths_enumerate(ends, graph->connection_count, graph->entity_count, &times->paths);
	}
	if (!status)
		status = make_times(times, graph);
	wr_free(ends);
	if (status) {
		wr_path_times_destroy(times);
		return status;
	}
	statistics->completed = on_completed;
	statistics->completed_arg = times;
	*out = times;
	return WEIR_OK;
}

void wr_path_times_destroy(struct wr_path_times *times)
{
	if (!times)
		return;
	for (size_t i = 0; times->entities && i < times->entity_count; i++) {
		struct wr_entity_paths *own = &times->entities[i];
		if (own->pending)
			wr_free(own->pending[0].origins);
		wr_free(own->pending);
		wr_free(own->origins);
		wr_free(own->outputs);
	}
	for (size_t i = 0; times->times && i < times->time_count; i++) {
		wr_free(times->times[i].names);
		wr_histogram_finish(&times->times[i].latency);
	}
	for (size_t i = 0; i < times->ends_text_count; i++)
		wr_free(times->ends_text[i]);
	wr_free(times->ends_text);
	wr_free(times->entities);
	wr_free(times->times);
	wr_paths_destroy(times->paths);
	wr_free(times);
}

void wr_path_times_reset(struct wr_path_times *times)
{
	for (size_t i = 0; i < times->time_count; i++) {
		wr_note(&times->times[i].count, 0);
		wr_histogram_clear(&times->times[i].latency);
	}
	for (size_t i = 0; i < times->entity_count; i++)
		for (size_t k = 0; times->entities[i].pending && k < WR_ENDS_PENDING; k++)
			times->entities[i].pending[k].tick = UINT64_MAX;
}

/* --- origins --- */

size_t wr_path_times_origins(const struct wr_path_times *times, const struct wr_connection *connection)
{
	if (!connection->receiver)
		return 0; /* the path ends at the sender's tick */
	return connection->sender ? times->entities[connection->sender->id].count : 1;
}

/* Returns NULL for the finisher of an outlet, where no path leads. */
static struct wr_entity_paths *paths_of(struct wr_path_times *times, const weir_entity *entity)
{
	return entity->id < times->entity_count ? &times->entities[entity->id] : NULL;
}

void wr_path_times_begin(struct wr_path_times *times, weir_entity *entity)
{
	struct wr_entity_paths *own = paths_of(times, entity);

	if (own)
		memset(own->origins, 0, own->count * sizeof *own->origins);
}

static void keep_oldest(int64_t *kept, int64_t origin)
{
	if (origin && (!*kept || origin < *kept))
		*kept = origin;
}

void wr_path_times_take(struct wr_path_times *times, struct wr_connection *connection, size_t front)
{
	const struct wr_tags *tags = connection->queue.tags;
	const uint8_t *map = times->paths->maps[connection->queue.id];
	int64_t *kept = times->entities[connection->receiver->id].origins;

	for (size_t i = 0; i < front; i++) {
		const uint64_t *origins = wr_tag_taken(tags, i) + 1;
		for (uint32_t k = 0; k + 1 < tags->words; k++)
			if (map[k] != WR_NO_PREFIX)
				keep_oldest(&kept[map[k]], (int64_t)origins[k]);
	}
}

void wr_path_times_push(struct wr_connection *connection)
{
	*wr_tags_origins(connection->queue.tags) = (uint64_t)wr_now();
}

/* Each connection of the graph has tags; those to outlets have no origins. */
static void hand_on(const struct wr_entity_paths *own, const weir_entity *entity)
{
	for (size_t i = 0; i < entity->output_count; i++)
		for (size_t k = 0; k < entity->outputs[i].count; k++) {
			struct wr_tags *tags = entity->outputs[i].connections[k]->queue.tags;
			if (tags->words > 1)
				memcpy(wr_tags_origins(tags), own->origins,
				       own->count * sizeof *own->origins);
		}
}

/* --- ends --- */

static uint64_t reached(const struct wr_entity_paths *own, const weir_entity *entity)
{
	uint64_t mask = 0;

	if (!entity->receivers)
		return 1;
	for (uint32_t i = 0; i < own->end_count; i++)
		if (entity->outputs[own->outputs[i]].emitted_count)
			mask |= UINT64_C(1) << i;
	return mask;
}

static void count_ends(struct wr_path_times *times, const struct wr_entity_paths *own, uint64_t outlets)
{
	for (size_t i = 0; i < own->end_count * own->count; i++)
		if (own->origins[i % own->count] && outlets >> (i / own->count) & 1)
			wr_count(&times->times[own->first_path + i].count, 1);
}

static void measure_ends(struct wr_path_times *times, const struct wr_entity_paths *own,
			 const int64_t *origins, uint64_t outlets, int64_t end)
{
	for (size_t i = 0; i < own->end_count * own->count; i++)
		if (origins[i % own->count] && outlets >> (i / own->count) & 1)
			wr_histogram_add(&times->times[own->first_path + i].latency,
					 end - origins[i % own->count]);
}

static void put_off_ends(struct wr_entity_paths *own, uint64_t tick, uint64_t outlets)
{
	struct wr_pending_end *pending = &own->pending[own->next_pending++ % WR_ENDS_PENDING];

	pending->tick = tick;
	pending->outlets = outlets;
	memcpy(pending->origins, own->origins, own->count * sizeof *own->origins);
}

/* The owner reports it, too. A finisher has no work on the device. */
static void on_completed(void *arg, uint32_t id, uint64_t tick, int64_t end)
{
	struct wr_path_times *times = arg;
	struct wr_entity_paths *own = &times->entities[id];

	assert(id < times->entity_count);
	for (size_t i = 0; own->pending && i < WR_ENDS_PENDING; i++) {
		struct wr_pending_end *pending = &own->pending[i];
		if (pending->tick != tick)
			continue;
		measure_ends(times, own, pending->origins, pending->outlets, end);
		pending->tick = UINT64_MAX;
		return;
	}
}

void wr_path_times_end(struct wr_path_times *times, weir_entity *entity, bool device)
{
	struct wr_entity_paths *own = paths_of(times, entity);
	const struct wr_entity_statistics *tick = &times->statistics->entities[entity->id];
	uint64_t outlets;

	if (!own)
		return;
	if (own->source)
		own->origins[0] = tick->begun_at;
	hand_on(own, entity);
	outlets = own->end_count ? reached(own, entity) : 0;
	if (!outlets || entity->context.tick < times->statistics->skip)
		return;
	count_ends(times, own, outlets);
	if (device)
		put_off_ends(own, entity->context.tick, outlets);
	else
		measure_ends(times, own, own->origins, outlets, tick->ended_at);
}

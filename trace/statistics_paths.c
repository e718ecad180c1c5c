#include "trace/statistics_paths.h"

#include "base/memory.h"
#include "trace/statistics.h"

static struct wr_prefix no_prefix; /* in `continued`: the way ends there */

static struct wr_entity_paths *entity_of(struct wr_paths *paths, uint32_t entity)
{
	return entity < paths->entity_count ? &paths->entities[entity] : NULL;
}

static struct wr_queue_paths *queue_of(struct wr_paths *paths, uint32_t queue)
{
	return queue < paths->queue_count ? &paths->queues[queue] : NULL;
}

/* --- origins --- */

/* Without memory the message is on no path. */
static void origin_add(struct wr_origins *origins, struct wr_prefix *prefix, int64_t time)
{
	if (wr_grow(&origins->items, &origins->room, origins->count + 1, sizeof *origins->items))
		return;
	origins->items[origins->count++] = (struct wr_origin){prefix, time};
}

static void origin_keep_oldest(struct wr_origins *origins, struct wr_prefix *prefix, int64_t time)
{
	for (size_t i = 0; i < origins->count; i++) {
		struct wr_origin *item = &origins->items[i];

		if (item->prefix != prefix)
			continue;
		item->time = time < item->time ? time : item->time;
		return;
	}
	origin_add(origins, prefix, time);
}

static void origins_copy(struct wr_origins *to, const struct wr_origins *from)
{
	to->count = 0;
	for (size_t i = 0; i < from->count; i++)
		origin_add(to, from->items[i].prefix, from->items[i].time);
}

/* --- prefixes --- */

static struct wr_prefix *prefix_make(struct wr_entity_paths *own, const struct wr_prefix *like)
{
	struct wr_prefix *made = wr_alloc(1, sizeof *made), *last = wr_read(&own->prefixes);

	if (!made)
		return NULL;
	made->before = like->before;
	made->entity = like->entity;
	made->inlet = like->inlet;
	made->index = like->index;
	made->other = like->other;
	while (last && wr_read(&last->next))
		last = wr_read(&last->next);
	wr_store_release(last ? &last->next : &own->prefixes, made); /* a reader sees it filled */
	return made;
}

static struct wr_prefix *prefix_other(struct wr_paths *paths, uint32_t entity)
{
	struct wr_entity_paths *own = &paths->entities[entity];

	if (!own->other)
		own->other = prefix_make(own, &(struct wr_prefix){.entity = entity,
								  .inlet = WR_NO_QUEUE,
								  .index = WR_PREFIXES,
								  .other = true});
	if (own->other)
		wr_note(&paths->folded, true);
	return own->other;
}

/* Finds it, or makes it; beyond the bounds the entity's `other`. */
static struct wr_prefix *prefix_find(struct wr_paths *paths, uint32_t entity, const struct wr_prefix *before,
				     uint32_t inlet)
{
	struct wr_entity_paths *own = &paths->entities[entity];
	struct wr_prefix *found = wr_read(&own->prefixes);

	while (found && (found->other || found->before != before || found->inlet != inlet))
		found = wr_read(&found->next);
	if (found)
		return found;
	if (own->named == WR_PREFIXES || wr_read(&paths->named) >= WR_PREFIXES_ALL)
		return prefix_other(paths, entity);
	found = prefix_make(
		own,
		&(struct wr_prefix){.before = before, .entity = entity, .inlet = inlet, .index = own->named});
	own->named += found != NULL;
	wr_add_relaxed(&paths->named, found != NULL);
	return found;
}

/* Returns true if messages of `from` may reach `to`. `seen` has a place per entity. */
static bool reaches(const struct wr_paths *paths, uint32_t from, uint32_t to, bool *seen)
{
	bool found = from == to;

	seen[from] = true;
	for (size_t i = 0; !found && i < paths->queue_count; i++) {
		const struct wr_queue_paths *queue = &paths->queues[i];

		if (queue->sender == from && queue->receiver < paths->entity_count && !seen[queue->receiver])
			found = reaches(paths, queue->receiver, to, seen);
	}
	return found;
}

/* The entities that an `other` visits are not known. */
static bool leads_back(const struct wr_paths *paths, uint32_t receiver, const struct wr_prefix *before)
{
	bool *seen, found;

	if (!before->other) {
		while (before && before->entity != receiver)
			before = before->before;
		return before;
	}
	seen = wr_alloc(paths->entity_count + 1, sizeof *seen);
	found = !seen || reaches(paths, receiver, before->entity, seen);
	wr_free(seen);
	return found;
}

/*
 * before: NULL: an inlet pushed it. Returns NULL if the way ends here: it visits the receiver already, or
 * memory ran out.
 */
static struct wr_prefix *prefix_continue(struct wr_paths *paths, uint32_t id, const struct wr_prefix *before)
{
	struct wr_queue_paths *queue = &paths->queues[id];
	size_t index = before ? before->index : 0;
	struct wr_prefix *found;

	if (!queue->continued)
		queue->continued = wr_alloc(WR_PREFIXES + 1, sizeof *queue->continued);
	if (!queue->continued)
		return NULL;
	found = queue->continued[index];
	if (!found && !before)
		found = prefix_find(paths, queue->receiver, NULL, id);
	else if (!found && leads_back(paths, queue->receiver, before))
		found = &no_prefix;
	else if (!found)
		found = before->other ? prefix_other(paths, queue->receiver)
				      : prefix_find(paths, queue->receiver, before, WR_NO_QUEUE);
	queue->continued[index] = found;
	return found == &no_prefix ? NULL : found;
}

/* --- making --- */

weir_status wr_paths_init(struct wr_paths *paths, size_t entities, size_t queues)
{
	paths->entity_count = entities;
	paths->queue_count = queues;
	paths->entities = wr_alloc(entities + 1, sizeof *paths->entities);
	paths->queues = wr_alloc(queues + 1, sizeof *paths->queues);
	return paths->entities && paths->queues ? WEIR_OK : WEIR_E_NOMEM;
}

static void prefix_free(struct wr_prefix *prefix)
{
	struct wr_path *path = wr_read(&prefix->paths);

	while (path) {
		struct wr_path *next = wr_read(&path->next);

		wr_histogram_finish(&path->latency);
		wr_free(path);
		path = next;
	}
	wr_free(prefix);
}

void wr_paths_finish(struct wr_paths *paths)
{
	for (size_t i = 0; paths->entities && i < paths->entity_count; i++) {
		struct wr_entity_paths *own = &paths->entities[i];
		struct wr_prefix *prefix = wr_read(&own->prefixes);

		while (prefix) {
			struct wr_prefix *next = wr_read(&prefix->next);

			prefix_free(prefix);
			prefix = next;
		}
		for (size_t k = 0; own->pending && k < WR_ENDS_PENDING; k++)
			wr_free(own->pending[k].origins.items);
		wr_free(own->pending);
		wr_free(own->outlets);
		wr_free(own->origins.items);
	}
	for (size_t i = 0; paths->queues && i < paths->queue_count; i++) {
		struct wr_queue_paths *queue = &paths->queues[i];

		for (uint64_t k = 0; queue->places && k <= queue->mask; k++)
			wr_free(queue->places[k].items);
		wr_free(queue->places);
		wr_free(queue->continued);
	}
	wr_free(paths->entities);
	wr_free(paths->queues);
}

/* The same before each run. Without memory for its places the messages of the queue are on no path. */
void wr_paths_on_queue(struct wr_paths *paths, uint32_t id, uint32_t sender, uint32_t receiver,
		       uint32_t capacity)
{
	struct wr_queue_paths *queue = queue_of(paths, id);
	struct wr_entity_paths *from = entity_of(paths, sender), *to = entity_of(paths, receiver);

	if (!queue || queue->mask)
		return;
	queue->sender = sender;
	queue->receiver = receiver;
	queue->mask = 1;
	while (queue->mask < (uint64_t)capacity + 1)
		queue->mask = 2 * queue->mask;
	queue->mask--;
	if (from)
		from->feeds = true;
	if (to) {
		to->fed = true;
		queue->places = wr_alloc(queue->mask + 1, sizeof *queue->places);
	} else if (from) {
		if (!wr_grow(&from->outlets, &from->outlet_room, from->outlet_count + 1,
			     sizeof *from->outlets))
			from->outlets[from->outlet_count++] = id;
		queue->outlet = (uint32_t)from->outlet_count - 1;
	}
}

void wr_paths_on_run_begin(struct wr_paths *paths)
{
	for (size_t i = 0; i < paths->queue_count; i++)
		paths->queues[i].ended = 0;
	for (size_t i = 0; i < paths->entity_count; i++) {
		struct wr_entity_paths *own = &paths->entities[i];

		own->origins.count = 0;
		own->taking = false;
		own->computed = 0;
		for (size_t k = 0; own->pending && k < WR_ENDS_PENDING; k++)
			own->pending[k].tick = 0;
		for (struct wr_prefix *prefix = wr_read(&own->prefixes); prefix;
		     prefix = wr_read(&prefix->next))
			for (struct wr_path *path = wr_read(&prefix->paths); path;
			     path = wr_read(&path->next)) {
				wr_note(&path->count, 0);
				wr_histogram_clear(&path->latency);
			}
	}
}

/* --- a message arrives --- */

/* The first one since the last tick. */
static void begin_taking(struct wr_entity_paths *own)
{
	if (!own->taking)
		own->origins.count = 0;
	own->taking = true;
}

static void take_at(struct wr_paths *paths, uint32_t id, uint64_t number)
{
	const struct wr_queue_paths *queue = &paths->queues[id];
	struct wr_entity_paths *own = &paths->entities[queue->receiver];
	const struct wr_origins *place = &queue->places[number & queue->mask];

	for (size_t i = 0; i < place->count; i++) {
		struct wr_prefix *here = prefix_continue(paths, id, place->items[i].prefix);

		if (here)
			origin_keep_oldest(&own->origins, here, place->items[i].time);
	}
}

/* Of a `pop` queue: pushes may reuse the places before the front is taken, so it counts as taken now. */
void wr_paths_on_front(void *self, uint32_t id, uint64_t first, uint64_t count)
{
	struct wr_statistics *statistics = self;
	struct wr_queue_paths *queue = queue_of(&statistics->paths, id);

	if (!queue || !queue->places)
		return;
	begin_taking(&statistics->paths.entities[queue->receiver]);
	queue->held = true;
	for (uint64_t i = 0; i < count; i++)
		take_at(&statistics->paths, id, first + i);
}

void wr_paths_on_take(struct wr_paths *paths, uint32_t id, uint64_t number)
{
	struct wr_queue_paths *queue = queue_of(paths, id);

	if (!queue || !queue->places)
		return;
	begin_taking(&paths->entities[queue->receiver]);
	if (!queue->held)
		take_at(paths, id, number);
}

void wr_paths_on_tick_begin(struct wr_paths *paths, uint32_t entity, int64_t at)
{
	struct wr_entity_paths *own = entity_of(paths, entity);

	if (!own)
		return;
	begin_taking(own);
	own->taking = false;
	own->computed = 0;
	if (!own->fed)
		origin_keep_oldest(&own->origins, prefix_find(paths, entity, NULL, WR_NO_QUEUE), at);
}

/* --- a path ends --- */

/* Finds it, or makes it. */
static struct wr_path *path_of(struct wr_prefix *prefix, uint32_t outlet)
{
	struct wr_path *path = wr_read(&prefix->paths), *last = NULL;

	for (; path; path = wr_read(&path->next)) {
		if (path->outlet == outlet)
			return path;
		last = path;
	}
	path = wr_alloc(1, sizeof *path);
	if (!path)
		return NULL;
	path->outlet = outlet;
	wr_store_release(last ? &last->next : &prefix->paths, path); /* a reader sees it filled */
	return path;
}

static void measure_ends(const struct wr_origins *origins, uint32_t outlet, int64_t end)
{
	for (size_t i = 0; i < origins->count; i++) {
		struct wr_path *path = path_of(origins->items[i].prefix, outlet);

		if (path)
			wr_histogram_add(&path->latency, end - origins->items[i].time);
	}
}

/* Until the device work of the tick is complete. */
static void put_off_end(struct wr_entity_paths *own, uint64_t tick, uint32_t end)
{
	struct wr_pending_end *pending;

	if (!own->pending)
		own->pending = wr_alloc(WR_ENDS_PENDING, sizeof *own->pending);
	if (!own->pending || end >= 64)
		return;
	pending = &own->pending[own->next_pending];
	if (pending->tick != tick) {
		own->next_pending = (own->next_pending + 1) % WR_ENDS_PENDING;
		pending = &own->pending[own->next_pending];
		pending->tick = tick;
		pending->ends = 0;
		origins_copy(&pending->origins, &own->origins);
	}
	pending->ends |= UINT64_C(1) << end;
}

/* end: the index of the outlet; at: when compute returned. */
static void path_end(struct wr_entity_paths *own, uint32_t outlet, uint32_t end, int64_t at)
{
	for (size_t i = 0; i < own->origins.count; i++) {
		struct wr_path *path = path_of(own->origins.items[i].prefix, outlet);

		if (path)
			wr_count(&path->count, 1);
	}
	if (own->device)
		put_off_end(own, own->computed, end);
	else
		measure_ends(&own->origins, outlet, at);
}

/* Nothing was delivered so far. */
void wr_paths_on_computed(void *self, uint32_t entity, uint64_t tick, bool device)
{
	struct wr_statistics *statistics = self;
	struct wr_entity_paths *own = entity_of(&statistics->paths, entity);

	if (!own || tick < statistics->skip)
		return;
	own->computed = tick + 1;
	own->device = device;
	if (!own->feeds)
		path_end(own, WR_NO_QUEUE, 0, statistics->entities[entity].ended_at);
}

void wr_paths_on_deliver(struct wr_statistics *statistics, uint32_t id, uint64_t number, int64_t at)
{
	struct wr_paths *paths = &statistics->paths;
	struct wr_queue_paths *queue = queue_of(paths, id);
	struct wr_entity_paths *own = queue ? entity_of(paths, queue->sender) : NULL;
	struct wr_origins *place = queue && queue->places ? &queue->places[number & queue->mask] : NULL;

	if (place && own) {
		origins_copy(place, &own->origins);
	} else if (place) {
		place->count = 0;
		origin_add(place, NULL, at);
	} else if (own && own->computed && queue->ended != own->computed) {
		queue->ended = own->computed;
		path_end(own, id, queue->outlet, statistics->entities[queue->sender].ended_at);
	}
}

void wr_paths_on_complete(struct wr_paths *paths, uint32_t entity, uint64_t tick, int64_t end)
{
	struct wr_entity_paths *own = entity_of(paths, entity);
	struct wr_pending_end *pending = own ? own->pending : NULL;
	size_t i = 0;

	while (pending && i < WR_ENDS_PENDING && pending[i].tick != tick + 1)
		i++;
	if (!pending || i == WR_ENDS_PENDING)
		return;
	pending[i].tick = 0;
	if (!own->feeds)
		measure_ends(&pending[i].origins, WR_NO_QUEUE, end);
	for (size_t k = 0; k < own->outlet_count && k < 64; k++)
		if (pending[i].ends >> k & 1)
			measure_ends(&pending[i].origins, own->outlets[k], end);
}

/* --- reading --- */

void wr_paths_each(struct wr_paths *paths, wr_path_fn *fn, void *arg)
{
	for (size_t i = 0; i < paths->entity_count; i++)
		for (struct wr_prefix *prefix = wr_load_acquire(&paths->entities[i].prefixes); prefix;
		     prefix = wr_load_acquire(&prefix->next))
			for (struct wr_path *path = wr_load_acquire(&prefix->paths); path;
			     path = wr_load_acquire(&path->next))
				if (wr_read(&path->count))
					fn(prefix, path, arg);
}

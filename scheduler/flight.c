#include "scheduler/flight.h"

#include <string.h>

#include "base/memory.h"
#include "scheduler/graph.h"
#include "scheduler/scheduler.h"

#define FEW_OPERATIONS 8   /* ticks that enqueue up to this many operations do not lower the bound */
#define ALL_OPERATIONS 512 /* operations of an entity in flight: half of the driver's launch queue */
#define LEAST          2   /* the bound is never lower: one tick works while the next is enqueued */
#define GUESSED        8   /* up to this many ticks count as in flight without asking the device */

void wr_flight_reset(struct wr_flight *flight, size_t bound)
{
	flight->bound = bound;
	flight->ticks = flight->completed = flight->operations = flight->largest_tick = 0;
	flight->first = flight->count = 0;
}

void wr_flight_finish(struct wr_flight *flight)
{
	wr_free(flight->ends);
}

size_t wr_flight_limit(const struct wr_flight *flight)
{
	uint64_t fit = flight->operations > FEW_OPERATIONS ? ALL_OPERATIONS / flight->operations : SIZE_MAX;

	fit = fit < LEAST ? LEAST : fit;
	return flight->bound < fit ? flight->bound : (size_t)fit;
}

/* Not inlined: a run that is not observed pays one branch. */
__attribute__((noinline)) static void tell(const weir_entity *entity, const weir_scheduler *scheduler)
{
	wr_trace_flight(scheduler->trace, wr_lane_here(scheduler), entity->id,
			entity->flight.ticks - entity->flight.completed);
}

/* Call after the number of ticks in flight has changed. */
static void tell_observers(const weir_entity *entity)
{
	const weir_scheduler *scheduler = wr_load_acquire(&((weir_entity *)entity)->scheduler);

	if (scheduler && scheduler->trace)
		tell(entity, scheduler);
}

/* --- what is complete --- */

static void flight_complete_up_to(weir_entity *entity, uint64_t tick)
{
	struct wr_flight *flight = &entity->flight;

	if (tick <= flight->completed)
		return;
	while (flight->count && flight->ends[flight->first].tick <= tick) {
		flight->first++;
		flight->count--;
	}
	flight->completed = tick;
	tell_observers(entity);
}

static bool fence_is_listed(const weir_fence *fences, size_t count, weir_fence fence)
{
	for (size_t i = 0; i < count; i++)
		if (fences[i].stream == fence.stream)
			return true;
	return false;
}

enum { STREAMS = 64 };

/*
 * Queries the last end of each stream, which covers the earlier ones. Beyond STREAMS streams the same stream
 * may be queried again.
 */
static size_t flight_find_pending(const weir_entity *entity, uint64_t tick, weir_fence *out, size_t room)
{
	const struct wr_flight *flight = &entity->flight;
	weir_fence asked[STREAMS];
	size_t known = 0, pending = 0;

	for (size_t i = flight->count; i-- > 0 && known < entity->streams.count;) {
		const struct wr_flight_end *end = &flight->ends[flight->first + i];
		weir_status status;
		if (end->tick > tick || fence_is_listed(asked, known, end->fence))
			continue;
		if (known < STREAMS)
			asked[known++] = end->fence;
		status = wr_fence_query(entity->graph->system, end->fence);
		if (!status || status == WEIR_E_DEVICE) /* lost device: the next call on it fails */
			continue;
		if (pending < room)
			out[pending] = end->fence;
		pending++;
	}
	return pending;
}

static size_t flight_pending(weir_entity *entity, uint64_t tick, size_t room, weir_fence *out)
{
	size_t pending;

	if (tick <= entity->flight.completed)
		return 0;
	pending = flight_find_pending(entity, tick, out, room);
	if (!pending)
		flight_complete_up_to(entity, tick);
	return pending;
}

/* --- the bound --- */

static bool flight_is_full(const struct wr_flight *flight)
{
	return flight->bound && flight->ticks - flight->completed >= wr_flight_limit(flight);
}

/* The condition waits for ticks whose number is a multiple of this; the device writes flags after these. */
static uint64_t flight_step(const struct wr_flight *flight)
{
	size_t most = wr_flight_limit(flight);

	return most > 1 ? most / 2 : 1;
}

size_t wr_view_flight_pending(weir_view *view, size_t room, weir_fence *out)
{
	const struct wr_flight *flight = &view->entity->flight;
	uint64_t step = flight_step(flight), tick;

	if (!flight_is_full(flight))
		return 0;
	tick = flight->ticks - wr_flight_limit(flight) + step;
	return flight_pending(view->entity, tick - tick % step, room, out);
}

/* --- noting --- */

/* The live ends move to the start once half of the array precedes them, so the cost per end is constant. */
static weir_status make_room_for_ends(struct wr_flight *flight, size_t count)
{
	if (flight->first + flight->count + count <= flight->room)
		return WEIR_OK;
	if (flight->first && flight->first >= flight->room / 2) {
		memmove(flight->ends, flight->ends + flight->first, flight->count * sizeof *flight->ends);
		flight->first = 0;
	}
	return wr_grow(&flight->ends, &flight->room, flight->first + flight->count + count,
		       sizeof *flight->ends);
}

static size_t count_ended_streams(const struct wr_entity_streams *streams)
{
	size_t count = 0;

	for (size_t i = 0; i < streams->count; i++)
		count += streams->items[i].ended;
	return count;
}

static void flight_note_ends(struct wr_flight *flight, const struct wr_entity_streams *streams)
{
	struct wr_flight_end *end = flight->ends + flight->first + flight->count;

	for (size_t i = 0; i < streams->count; i++)
		if (streams->items[i].ended)
			*end++ = (struct wr_flight_end){streams->items[i].last, flight->ticks};
	flight->count = (size_t)(end - flight->ends) - flight->first;
}

static void flight_update_operations(weir_entity *entity)
{
	struct wr_flight *flight = &entity->flight;
	uint64_t operations = 0;

	for (size_t i = 0; i < entity->streams.count; i++)
		operations += wr_stream_take_operations(entity->streams.items[i].stream);
	if (operations < flight->operations && flight->completed < flight->largest_tick)
		return;
	flight->operations = operations;
	flight->largest_tick = flight->ticks;
}

/* Writes the flags of the ticks that the in-flight condition waits for. */
static void flight_write_flags(weir_entity *entity)
{
	if (entity->in_flight->signal != WR_SIGNAL_FLAG ||
	    entity->flight.ticks % flight_step(&entity->flight))
		return;
	for (size_t i = 0; i < entity->streams.count; i++)
		if (entity->streams.items[i].ended)
			wr_flag_write(entity->streams.items[i].stream);
}

/*
 * Updates the high-water mark. `done` may be old, so the device is asked about the middle of the unknown
 * ticks; only for a new maximum above GUESSED, since a query costs as much as a record.
 */
static void update_most_in_flight(weir_entity *entity)
{
	struct wr_flight *flight = &entity->flight;
	uint64_t most = wr_read(&entity->counters.most_in_flight), now = flight->ticks - flight->completed;

	if (now <= most)
		return;
	if (now > GUESSED && !flight_pending(entity, flight->completed + (now + 1) / 2, 0, NULL))
		now = flight->ticks - flight->completed;
	if (now > most)
		wr_store_relaxed(&entity->counters.most_in_flight, now);
}

weir_status wr_flight_note_tick(weir_entity *entity)
{
	struct wr_flight *flight = &entity->flight;
	size_t count = count_ended_streams(&entity->streams);
	weir_status status = count && flight->bound ? make_room_for_ends(flight, count) : WEIR_OK;

	if (status || !count)
		return status;
	flight->ticks++;
	if (!flight->bound) {
		flight->completed = flight->ticks;
		return WEIR_OK;
	}
	tell_observers(entity);
	flight_note_ends(flight, &entity->streams);
	flight_update_operations(entity);
	flight_write_flags(entity);
	update_most_in_flight(entity);
	entity->flight_full = flight_is_full(flight);
	return WEIR_OK;
}

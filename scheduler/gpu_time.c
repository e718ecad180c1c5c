/*
 * GPU time (T15). A timed tick has a span on each stream of the entity (streams/stream.c). The spans that got
 * work are listed when the tick ends, and read in that order when they are complete; the others are spare.
 * Nothing waits: the owner looks at the first one of the list at each of its ticks and when it parks, and the
 * end of the run looks at all of them.
 *
 * While completion flags are in use, the ticks that are not timed have spans without timers: what the poller
 * learns of them costs the device nothing.
 *
 * What fails here ends the timing of the entity in this run, and nothing else.
 */
#include "scheduler/gpu_time.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "scheduler/graph.h"
#include "scheduler/scheduler.h"

/* A span that is not read. */
struct part {
	struct wr_span *span;
	const char *name; /* of its stream */
	uint32_t queue;   /* wr_stream_number */
	uint64_t tick;
};

/* Observers keep pointers to it: freed with the entity. */
struct name {
	struct name *next;
	char text[];
};

struct wr_gpu_time {
	struct wr_trace *trace;
	uint64_t every;     /* one tick of so many is timed; 0: none */
	bool flags;         /* the others have spans without timers */
	bool on;            /* in this run */
	bool measuring;     /* the running tick has spans */
	bool timing;        /* with timers */
	size_t ticks;       /* timed and not read */
	struct part *parts; /* [first, first + count) */
	size_t first, count, room;
	int64_t blocked; /* of the parts of the first tick that were read */
	bool unknown;    /* of one of them nothing is known */
	struct wr_span **spare;
	size_t spare_count, spare_room;
	struct name *names;
};

/* --- names of streams --- */

static const char *name_keep(struct wr_gpu_time *time, const char *text)
{
	size_t bytes = strlen(text) + 1;
	struct name *name = time->names;

	while (name && strcmp(name->text, text))
		name = name->next;
	if (name)
		return name->text;
	name = wr_alloc(1, sizeof *name + bytes);
	if (!name)
		return "";
	memcpy(name->text, text, bytes);
	name->next = time->names;
	time->names = name;
	return name->text;
}

/* As profilers call the stream (work.c); of the others, where it comes from. */
static const char *stream_name(weir_entity *entity, size_t index)
{
	const struct wr_entity_stream *item = &entity->streams.items[index];
	bool is_default = index + 1 == entity->streams.default_stream;
	char text[160];

	if (!item->name && !is_default && !item->shared_id)
		return entity->plan->name;
	snprintf(text, sizeof text, "%s.%s", entity->plan->name,
		 item->name   ? item->name
		 : is_default ? "(default)"
			      : "(shared)");
	return name_keep(entity->gpu_time, text);
}

/* --- spans --- */

static void gpu_time_stop(weir_entity *entity)
{
	struct wr_gpu_time *time = entity->gpu_time;

	for (size_t i = 0; i < entity->streams.count; i++) {
		wr_span_drop(entity->streams.items[i].span);
		entity->streams.items[i].span = NULL;
	}
	for (size_t i = 0; i < time->count; i++)
		wr_span_drop(time->parts[time->first + i].span);
	while (time->spare_count)
		wr_span_drop(time->spare[--time->spare_count]);
	time->on = time->measuring = time->unknown = false;
	time->first = time->count = time->ticks = 0;
}

static void gpu_time_fail(weir_entity *entity, weir_status status)
{
	gpu_time_stop(entity);
	if (status != WEIR_E_DEVICE) /* else the run fails, and says why */
		wr_log(WEIR_LOG_WARN, "%s: its GPU time is not measured any more in this run: %s",
		       entity->plan->name, weir_last_error());
}

/* Makes room first, so that a span which is given back always finds some. */
static weir_status span_make(weir_entity *entity, int device, bool timed, struct wr_span **out)
{
	struct wr_gpu_time *time = entity->gpu_time;
	size_t all = time->spare_count + time->count + entity->streams.count + 1;
	weir_status status = wr_grow(&time->spare, &time->spare_room, all, sizeof *time->spare);

	if (!status)
		status = wr_grow(&time->parts, &time->room, all, sizeof *time->parts);
	if (status)
		return status;
	return timed ? wr_span_create(entity->graph->system, device, out)
		     : wr_span_create_untimed(entity->graph->system, device, out);
}

static void span_give_back(struct wr_gpu_time *time, struct wr_span *span)
{
	time->spare[time->spare_count++] = span;
}

static weir_status span_take(weir_entity *entity, int device, struct wr_span **out)
{
	struct wr_gpu_time *time = entity->gpu_time;

	for (size_t i = time->spare_count; i-- > 0;) {
		if (wr_span_device(time->spare[i]) != device || wr_span_timed(time->spare[i]) != time->timing)
			continue;
		*out = time->spare[i];
		time->spare[i] = time->spare[--time->spare_count];
		return WEIR_OK;
	}
	return span_make(entity, device, time->timing, out);
}

/* --- a run --- */

void wr_gpu_time_begin_run(weir_entity *entity, const weir_scheduler *scheduler)
{
	struct wr_gpu_time *time = entity->gpu_time;
	struct wr_system *system = entity->graph->system;
	bool timers = scheduler->gpu_time && wr_system_times(system), flags = wr_system_flags(system);
	struct wr_span *span = NULL;
	weir_status status;

	if (time)
		time->on = time->measuring = false;
	if ((!timers && !flags) || !wr_trace_wants_device_work(scheduler->trace) || wr_system_failed(system))
		return;
	if (!time)
		time = entity->gpu_time = wr_alloc(1, sizeof *time);
	if (!time) {
		wr_log(WEIR_LOG_WARN, "%s: its GPU time is not measured: %s", entity->plan->name,
		       weir_status_text(WEIR_E_NOMEM));
		return;
	}
	time->trace = scheduler->trace;
	time->every = timers ? (uint64_t)scheduler->gpu_time : 0;
	time->flags = flags;
	time->on = true;
	time->blocked = 0;
	status = span_make(entity, entity->plan->device, timers, &span);
	if (status)
		gpu_time_fail(entity, status);
	else
		span_give_back(time, span);
}

void wr_gpu_time_end_run(weir_entity *entity)
{
	if (!entity->gpu_time || !entity->gpu_time->on)
		return;
	wr_gpu_time_read(entity, WR_LANE_OUTSIDE);
	gpu_time_stop(entity);
}

void wr_gpu_time_finish(struct wr_gpu_time *time)
{
	if (!time)
		return;
	while (time->names) {
		struct name *name = time->names;

		time->names = name->next;
		wr_free(name);
	}
	wr_free(time->parts);
	wr_free(time->spare);
	wr_free(time);
}

/* --- a tick --- */

/*
 * The first tick of a run is often the longest, so it is timed only with all others. Of a short run something
 * must be known, too: before the first tick of `every` the 4th, the 8th, the 16th and so on are timed.
 */
static bool tick_is_due(const weir_entity *entity)
{
	uint64_t every = entity->gpu_time->every, number = entity->context.tick + 1;

	if (number < every)
		return number >= WR_TIMED_FROM && !(number & (number - 1));
	return every && !(number % every);
}

void wr_gpu_time_begin_tick(weir_entity *entity, unsigned lane)
{
	struct wr_gpu_time *time = entity->gpu_time;

	if (time->count)
		wr_gpu_time_read(entity, lane);
	time->timing = time->on && time->ticks < WR_TIMED_TICKS && tick_is_due(entity);
	time->measuring = time->timing || (time->on && time->flags && time->count < WR_SPANS_UNREAD);
	for (size_t i = 0; time->measuring && i < entity->streams.count; i++)
		wr_gpu_time_add_stream(entity, i);
}

void wr_gpu_time_add_stream(weir_entity *entity, size_t index)
{
	struct wr_entity_stream *item = &entity->streams.items[index];
	weir_status status;

	if (!entity->gpu_time->measuring)
		return;
	status = span_take(entity, weir_stream_device(item->stream), &item->span);
	if (status ==
	    WEIR_E_BUSY) /* another thread measures that device's timers: this tick is not timed there */
		return;
	if (status)
		gpu_time_fail(entity, status);
	else
		wr_span_arm(item->span, item->stream);
}

/* There is room for it: span_make. */
static void part_add(weir_entity *entity, size_t index)
{
	struct wr_gpu_time *time = entity->gpu_time;

	if (time->first + time->count == time->room) {
		memmove(time->parts, time->parts + time->first, time->count * sizeof *time->parts);
		time->first = 0;
	}
	time->parts[time->first + time->count++] =
		(struct part){entity->streams.items[index].span, stream_name(entity, index),
			      wr_stream_number(entity->streams.items[index].stream), entity->context.tick};
}

void wr_gpu_time_end_tick(weir_entity *entity)
{
	struct wr_gpu_time *time = entity->gpu_time;
	size_t before = time->count;

	for (size_t i = 0; time->measuring && i < entity->streams.count; i++) {
		struct wr_entity_stream *item = &entity->streams.items[i];

		if (!item->span)
			continue;
		wr_span_note_fence(item->span, item->stream);
		if (wr_span_end(item->span)) /* it has ended before, if the stream was fenced */
			part_add(entity, i);
		else
			span_give_back(time, item->span);
		item->span = NULL;
	}
	time->ticks += time->timing && time->count > before;
	time->measuring = time->timing = false;
}

/* --- reading --- */

/* The first part of the list was read. */
static void part_emit(weir_entity *entity, const struct wr_span_times *times, unsigned lane)
{
	struct wr_gpu_time *time = entity->gpu_time;
	const struct part *part = &time->parts[time->first];
	bool last = time->count == 1 || part[1].tick != part->tick, timed = wr_span_timed(part->span);

	if (times->known)
		wr_trace_device_work(time->trace, lane, entity->id, part->tick, part->name, part->queue,
				     times->begin, times->end, timed ? WR_TRACE_TIMERS : WR_TRACE_POLLER);
	time->unknown |= !times->known;
	time->blocked += times->blocked;
	if (!last)
		return;
	if (!time->unknown) {
		wr_trace_blocked(time->trace, lane, entity->id, part->tick, time->blocked);
		wr_trace_complete(time->trace, lane, entity->id, part->tick);
	}
	time->ticks -= timed;
	time->blocked = 0;
	time->unknown = false;
}

void wr_gpu_time_read(weir_entity *entity, unsigned lane)
{
	struct wr_gpu_time *time = entity->gpu_time;
	struct wr_span_times times;
	weir_status status = WEIR_OK;

	while (time->count && !(status = wr_span_read(time->parts[time->first].span, &times))) {
		part_emit(entity, &times, lane);
		span_give_back(time, time->parts[time->first].span);
		time->first++;
		time->count--;
	}
	if (status && status != WEIR_E_BUSY)
		gpu_time_fail(entity, status);
}

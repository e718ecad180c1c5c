/*
 * The rows of entities, of their streams and their counters: what an entity waited for, its signals, the
 * device work of its ticks.
 */
#include <string.h>

#include "base/memory.h"
#include "trace/tracks.h"

enum { ENTITY_THREADS = 1000 }; /* above those of workers; those of streams are above those of entities */

struct wr_track wr_entity_track(uint32_t id)
{
	return (struct wr_track){WR_GROUP_ENTITIES, ENTITY_THREADS + id};
}

/* --- ticks --- */

/* Those of instances are the entity's. */
void wr_tracks_tick(struct wr_tracks *tracks, char phase, struct wr_track track, int64_t at, uint32_t id)
{
	const struct wr_tracks_entity *entity = &tracks->entities[id];
	char name[200];
	struct wr_words words = wr_words_in(name, sizeof name);

	wr_words_put(&words, entity->part.part == WR_PART_INSTANCE ? tracks->entities[entity->part.of].name
								   : entity->name);
	wr_words_put(&words, entity->part.part == WR_PART_DEALS ? ": deal" : "");
	wr_chrome_event(&tracks->chrome, phase, track, at, name);
}

void wr_tracks_tick_args(struct wr_tracks *tracks, uint32_t id, uint64_t tick)
{
	const struct wr_timeline_part *part = &tracks->entities[id].part;
	struct wr_chrome *chrome = &tracks->chrome;

	if (part->part != WR_PART_INSTANCE) {
		wr_chrome_count(chrome, "tick", tick);
		if (part->part)
			wr_chrome_text(chrome, "of", tracks->entities[part->of].name);
		return;
	}
	wr_chrome_count(chrome, "tick", tick * part->instances + part->number);
	wr_chrome_count(chrome, "instance", part->number);
}

/* --- entities --- */

void wr_tracks_end_wait(struct wr_tracks *tracks, uint32_t id, int64_t at)
{
	struct wr_tracks_entity *entity = &tracks->entities[id];

	if (entity->of)
		wr_chrome_slice_end(&tracks->chrome, wr_entity_track(id), at);
	entity->of = NULL;
}

static const char *text_of(uint64_t pointer)
{
	const char *text = (const char *)(uintptr_t)pointer;

	return text ? text : "";
}

/* A review that finds the same leaves the slice as it is. */
void wr_tracks_wait(struct wr_tracks *tracks, const struct wr_record *record)
{
	struct wr_tracks_entity *entity = &tracks->entities[record->subject];
	const char *of = text_of(record->value), *why = text_of(record->more);
	char name[200];
	struct wr_words words = wr_words_in(name, sizeof name);

	if (entity->of == of && entity->why == why && entity->cause == record->cause)
		return;
	wr_tracks_end_wait(tracks, record->subject, record->at);
	wr_words_put(&words, of);
	wr_words_put(&words, *of ? ": " : "");
	wr_words_put(&words, why);
	wr_chrome_event(&tracks->chrome, 'B', wr_entity_track(record->subject), record->at, name);
	wr_chrome_args(&tracks->chrome);
	wr_chrome_text(&tracks->chrome, "cause", weir_cause_text((weir_cause)record->cause));
	wr_chrome_end(&tracks->chrome);
	entity->of = of;
	entity->why = why;
	entity->cause = record->cause;
}

void wr_tracks_ready(struct wr_tracks *tracks, const struct wr_record *record)
{
	struct wr_tracks_entity *entity = &tracks->entities[record->subject];

	wr_tracks_end_wait(tracks, record->subject, record->at);
	entity->ready = true;
	entity->ready_at = record->at;
}

void wr_tracks_entity_done(struct wr_tracks *tracks, const struct wr_record *record)
{
	wr_tracks_end_wait(tracks, record->subject, record->at);
	wr_chrome_instant(&tracks->chrome, wr_entity_track(record->subject), record->at, "done");
	wr_chrome_end(&tracks->chrome);
	for (uint32_t i = tracks->entities[record->subject].queues; i;
	     i = tracks->queues[i - 1].next_of_receiver) {
		/* What it holds is dropped, and what is pushed later, too. */
		tracks->queues[i - 1].closed = true;
		tracks->queues[i - 1].depth = 0;
		wr_tracks_show_depth(tracks, i - 1, record->at);
	}
}

void wr_tracks_arm(struct wr_tracks *tracks, const struct wr_record *record)
{
	static const char *const kinds[] = {
		[WR_TRACE_CALLBACK] = "callback",
		[WR_TRACE_INLINE] = "callback_inline",
		[WR_TRACE_FLAG] = "flag",
	};

	wr_chrome_instant(&tracks->chrome, wr_entity_track(record->subject), record->at, "signal armed");
	wr_chrome_args(&tracks->chrome);
	wr_chrome_text(&tracks->chrome, "kind",
		       record->more < sizeof kinds / sizeof kinds[0] ? kinds[record->more] : "other");
	wr_chrome_count(&tracks->chrome, "token", record->value);
	wr_chrome_end(&tracks->chrome);
}

void wr_tracks_fire(struct wr_tracks *tracks, const struct wr_record *record)
{
	wr_chrome_instant(&tracks->chrome, wr_entity_track(record->subject), record->at, "signal fired");
	wr_chrome_args(&tracks->chrome);
	wr_chrome_count(&tracks->chrome, "token", record->value);
	wr_chrome_end(&tracks->chrome);
}

void wr_tracks_complete(struct wr_tracks *tracks, const struct wr_record *record)
{
	wr_chrome_instant(&tracks->chrome, wr_entity_track(record->subject), record->at, "complete");
	wr_chrome_args(&tracks->chrome);
	wr_tracks_tick_args(tracks, record->subject, record->value);
	wr_chrome_end(&tracks->chrome);
}

void wr_tracks_flight(struct wr_tracks *tracks, const struct wr_record *record)
{
	wr_chrome_counter(&tracks->chrome, WR_GROUP_FLIGHT, record->at,
			  tracks->entities[record->subject].name, "ticks", record->value);
}

void wr_tracks_pool(struct wr_tracks *tracks, const struct wr_record *record)
{
	const struct wr_timeline_pool *pool = &tracks->timeline->pools[record->subject];
	wr_chrome_counter(&tracks->chrome, WR_GROUP_POOLS, record->at, pool->name ? pool->name : "pool",
			  pool->unit ? pool->unit : "used", record->value);
}

/* --- the device --- */

/* The row of the entity's stream; named when it is first seen. NULL: no memory. */
static struct wr_tracks_stream *stream_find(struct wr_tracks *tracks, uint32_t id, const char *name)
{
	struct wr_tracks_entity *entity = &tracks->entities[id];
	struct wr_tracks_stream *made;

	for (uint32_t i = entity->streams; i; i = tracks->streams[i - 1].next)
		if (!strcmp(tracks->streams[i - 1].name, name))
			return &tracks->streams[i - 1];
	if (wr_grow(&tracks->streams, &tracks->stream_room, tracks->stream_count + 1,
		    sizeof *tracks->streams)) {
		tracks->chrome.text.status = WEIR_E_NOMEM;
		return NULL;
	}
	made = &tracks->streams[tracks->stream_count++];
	*made = (struct wr_tracks_stream){
		.entity = id, .next = entity->streams, .name = name, .ended_at = INT64_MIN};
	entity->streams = (uint32_t)tracks->stream_count;
	return made;
}

static struct wr_track stream_track(const struct wr_tracks *tracks, const struct wr_tracks_stream *stream)
{
	size_t index = (size_t)(stream - tracks->streams);

	return (struct wr_track){WR_GROUP_DEVICE,
				 ENTITY_THREADS + (uint32_t)(tracks->timeline->entity_count + index)};
}

static void name_stream(struct wr_tracks *tracks, const struct wr_tracks_stream *stream)
{
	const char *entity = tracks->entities[stream->entity].name;
	char name[200];
	struct wr_words words = wr_words_in(name, sizeof name);

	wr_words_put(&words, entity);
	if (*stream->name && strcmp(stream->name, entity) != 0) {
		wr_words_put(&words, ": ");
		wr_words_put(&words, stream->name);
	}
	wr_chrome_name_track(&tracks->chrome, stream_track(tracks, stream), name, stream->entity);
}

/*
 * The work of one stream is in its order, but begins and ends are measured with an error: on its row a slice
 * begins at the earliest where the one before it ends. "ns" is the time as it was measured.
 */
void wr_tracks_device(struct wr_tracks *tracks, const struct wr_record *record)
{
	struct wr_place place = tracks->place;
	struct wr_chrome *chrome = &tracks->chrome;
	const struct wr_record *span;
	struct wr_tracks_stream *stream;
	int64_t begin, end;

	if (place.index + 1 >= wr_ring_count(place.ring))
		return;
	span = wr_ring_at(place.ring, place.index + 1);
	stream = stream_find(tracks, record->subject, text_of(record->more));
	if (!stream || span->kind != WR_RECORD_SPAN)
		return;
	if (stream->ended_at == INT64_MIN)
		name_stream(tracks, stream);
	begin = span->at < stream->ended_at ? stream->ended_at : span->at;
	end = (int64_t)span->value < begin ? begin : (int64_t)span->value;
	stream->ended_at = end;
	wr_tracks_tick(tracks, 'X', stream_track(tracks, stream), begin, record->subject);
	wr_chrome_time(chrome, "dur", end - begin);
	wr_chrome_args(chrome);
	wr_tracks_tick_args(tracks, record->subject, record->value);
	wr_chrome_count(chrome, "ns", (uint64_t)((int64_t)span->value - span->at));
	wr_chrome_text(chrome, "source", span->more == WR_TRACE_TIMERS ? "timers" : "flag");
	wr_chrome_end(chrome);
}

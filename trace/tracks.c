/*
 * The rows of a timeline's file, from the records in the order of time.
 *
 * A worker's row has its ticks (around compute) and its sleeps. What a tick takes is recorded before compute
 * and what it delivers after it, so the arrows of messages are drawn at the ends of the slice: those that end
 * in it when it begins, those that begin in it before its end is written, which is held back until the worker
 * does something else. A thread that is not a worker has a slice without length where it pushes or takes.
 */
#include "trace/tracks.h"

#include <inttypes.h>

#include "base/memory.h"

/* --- rows and names --- */

static struct wr_track lane_track(const struct wr_tracks *tracks, unsigned lane)
{
	unsigned workers = tracks->timeline->workers;

	return (struct wr_track){WR_GROUP_WORKERS, 1 + (lane < workers ? lane : workers)};
}

/* NULL: a thread that is not a worker. */
static struct wr_tracks_lane *record_lane(const struct wr_tracks *tracks, const struct wr_record *record)
{
	return record->lane < tracks->timeline->workers ? &tracks->lanes[record->lane] : NULL;
}

static struct wr_track record_track(const struct wr_tracks *tracks, const struct wr_record *record)
{
	return lane_track(tracks, record->lane);
}

/* The begin ('s') or the end ('f') of a message's arrow, in the slice that the row has at this time. */
static void draw_arrow(struct wr_tracks *tracks, char phase, struct wr_track track, int64_t at,
		       uint32_t queue, uint64_t sequence)
{
	wr_chrome_arrow(&tracks->chrome, phase, track, at, tracks->queues[queue].name,
			(uint64_t)queue << 40 | sequence);
}

/* --- workers --- */

static void end_held_slice(struct wr_tracks *tracks, struct wr_tracks_lane *lane, struct wr_track track)
{
	if (!lane->held)
		return;
	wr_chrome_slice_end(&tracks->chrome, track, lane->ended_at);
	lane->held = lane->computing = false;
}

/* Ends whatever slices the row has. A tick without an end: its thread was ended in compute. */
static void end_row(struct wr_tracks *tracks, struct wr_tracks_lane *lane, struct wr_track track, int64_t at)
{
	end_held_slice(tracks, lane, track);
	if (lane->computing || lane->asleep)
		wr_chrome_slice_end(&tracks->chrome, track, at);
	lane->computing = lane->asleep = false;
}

/* The arrows of what the lane has taken for the tick that begins at the place. */
static void end_arrows(struct wr_tracks *tracks, struct wr_tracks_lane *lane)
{
	struct wr_place place = tracks->place;
	const struct wr_record *begin = wr_ring_at(place.ring, place.index);

	for (size_t i = lane->takes_from; lane->taking && i < place.index; i++) {
		const struct wr_record *take = wr_ring_at(place.ring, i);

		if (take->kind == WR_RECORD_TAKE && take->lane == begin->lane &&
		    tracks->queues[take->subject].seen && take->value >= tracks->queues[take->subject].first)
			draw_arrow(tracks, 'f', record_track(tracks, begin), begin->at, take->subject,
				   take->value);
	}
	lane->taking = false;
}

static void on_tick_begin(struct wr_tracks *tracks, const struct wr_record *record)
{
	struct wr_tracks_lane *lane = record_lane(tracks, record);
	struct wr_tracks_entity *entity = &tracks->entities[record->subject];
	struct wr_chrome *chrome = &tracks->chrome;
	struct wr_track track = record_track(tracks, record);

	if (!lane)
		return;
	end_row(tracks, lane, track, record->at);
	wr_tracks_tick(tracks, 'B', track, record->at, record->subject);
	wr_chrome_args(chrome);
	wr_tracks_tick_args(tracks, record->subject, record->value);
	if (entity->ready)
		wr_chrome_time(chrome, "ready", entity->ready_at - chrome->origin);
	wr_chrome_end(chrome);
	entity->ready = false;
	lane->computing = true;
	end_arrows(tracks, lane);
}

static void on_tick_end(struct wr_tracks *tracks, const struct wr_record *record)
{
	struct wr_tracks_lane *lane = record_lane(tracks, record);

	if (!lane || !lane->computing)
		return;
	lane->held = true;
	lane->ended_at = record->at;
}

static void on_sleep_begin(struct wr_tracks *tracks, const struct wr_record *record)
{
	struct wr_tracks_lane *lane = record_lane(tracks, record);

	if (!lane)
		return;
	end_row(tracks, lane, record_track(tracks, record), record->at);
	wr_chrome_slice_begin(&tracks->chrome, record_track(tracks, record), record->at, "sleep");
	lane->asleep = true;
}

static void on_sleep_end(struct wr_tracks *tracks, const struct wr_record *record)
{
	struct wr_tracks_lane *lane = record_lane(tracks, record);

	if (!lane || !lane->asleep)
		return;
	wr_chrome_slice_end(&tracks->chrome, record_track(tracks, record), record->at);
	lane->asleep = false;
}

static void on_steal(struct wr_tracks *tracks, const struct wr_record *record)
{
	struct wr_tracks_lane *lane = record_lane(tracks, record);
	struct wr_track track = record_track(tracks, record);

	if (lane)
		end_held_slice(tracks, lane, track);
	wr_chrome_instant(&tracks->chrome, track, record->at, "steal");
	wr_chrome_args(&tracks->chrome);
	wr_chrome_text(&tracks->chrome, "entity", tracks->entities[record->subject].name);
	wr_chrome_end(&tracks->chrome);
}

/* Captured work may be launched right after compute: the tick's slice then ends after it. */
static void on_replay_begin(struct wr_tracks *tracks, const struct wr_record *record)
{
	struct wr_tracks_lane *lane = record_lane(tracks, record);

	if (!lane || !lane->computing)
		return;
	lane->replaying = lane->held;
	lane->held = false;
	wr_chrome_slice_begin(&tracks->chrome, record_track(tracks, record), record->at,
			      record->value ? "capture" : "replay");
}

static void on_replay_end(struct wr_tracks *tracks, const struct wr_record *record)
{
	struct wr_tracks_lane *lane = record_lane(tracks, record);

	if (!lane || !lane->computing)
		return;
	wr_chrome_slice_end(&tracks->chrome, record_track(tracks, record), record->at);
	lane->held = lane->replaying;
	lane->ended_at = record->at;
}

/* --- queues --- */

void wr_tracks_show_depth(struct wr_tracks *tracks, uint32_t id, int64_t at)
{
	if (!tracks->queues[id].inside)
		wr_chrome_counter(&tracks->chrome, WR_GROUP_QUEUES, at, tracks->queues[id].name, "messages",
				  tracks->queues[id].depth);
}

/* A thread that does not tick: the arrow gets a slice without length. */
static void point_arrow(struct wr_tracks *tracks, char phase, const struct wr_record *record, uint64_t number)
{
	struct wr_track track = record_track(tracks, record);

	wr_chrome_slice_begin(&tracks->chrome, track, record->at, phase == 's' ? "push" : "take");
	draw_arrow(tracks, phase, track, record->at, record->subject, number);
	wr_chrome_slice_end(&tracks->chrome, track, record->at);
}

enum { LOOKED_AHEAD = 64 };
#define NEVER_TAKEN (UINT64_C(1) << 39)

/* Returns true if the push was refused: the drop follows in the ring of its thread. */
static bool push_is_refused(const struct wr_tracks *tracks, const struct wr_record *push)
{
	struct wr_place place = tracks->place;

	for (size_t i = place.index + 1; i < wr_ring_count(place.ring) && i <= place.index + LOOKED_AHEAD;
	     i++) {
		const struct wr_record *next = wr_ring_at(place.ring, i);

		if (next->subject != push->subject || next->lane != push->lane)
			continue;
		if (next->kind == WR_RECORD_DELIVER || next->kind == WR_RECORD_DROP)
			return next->kind == WR_RECORD_DROP && next->value == push->value;
	}
	return false;
}

/* The next push has the number of one that is refused again, and arrows are told apart by it. */
static uint64_t begin_number(struct wr_tracks *tracks, const struct wr_record *push)
{
	struct wr_tracks_queue *queue = &tracks->queues[push->subject];

	if (queue->closed || push_is_refused(tracks, push))
		return NEVER_TAKEN + queue->never_taken++;
	return push->value;
}

static void on_deliver(struct wr_tracks *tracks, const struct wr_record *record)
{
	struct wr_tracks_lane *lane = record_lane(tracks, record);
	struct wr_tracks_queue *queue = &tracks->queues[record->subject];

	if (!queue->seen)
		queue->first = record->value;
	queue->seen = true;
	queue->depth += !queue->closed;
	if (lane && lane->computing)
		draw_arrow(tracks, 's', record_track(tracks, record),
			   lane->held ? lane->ended_at : record->at, record->subject,
			   begin_number(tracks, record));
	else
		point_arrow(tracks, 's', record, begin_number(tracks, record));
	wr_tracks_show_depth(tracks, record->subject, record->at);
}

/*
 * A message leaves the queue. Returns true if its push is in the file. Where the file begins late, messages
 * from before are not known: the depth is then the least that it can be.
 */
static bool count_leaving(struct wr_tracks *tracks, const struct wr_record *record)
{
	struct wr_tracks_queue *queue = &tracks->queues[record->subject];

	if (queue->depth)
		queue->depth--;
	wr_tracks_show_depth(tracks, record->subject, record->at);
	return queue->seen && record->value >= queue->first;
}

static void on_take(struct wr_tracks *tracks, const struct wr_record *record)
{
	struct wr_tracks_lane *lane = record_lane(tracks, record);
	bool known = count_leaving(tracks, record);

	if (!lane) {
		if (known)
			point_arrow(tracks, 'f', record, record->value);
	} else if (lane->computing && !lane->held) {
		if (known)
			draw_arrow(tracks, 'f', record_track(tracks, record), record->at, record->subject,
				   record->value);
	} else if (!lane->taking) {
		lane->taking = true;
		lane->takes_from = tracks->place.index;
	}
}

static void on_drop(struct wr_tracks *tracks, const struct wr_record *record)
{
	const struct wr_timeline_queue *queue = &tracks->timeline->queues[record->subject];
	uint32_t entity = queue->receiver != UINT32_MAX ? queue->receiver : queue->sender;

	count_leaving(tracks, record);
	if (entity == UINT32_MAX)
		return;
	wr_chrome_instant(&tracks->chrome, wr_entity_track(entity), record->at, "drop");
	wr_chrome_args(&tracks->chrome);
	wr_chrome_text(&tracks->chrome, "queue", tracks->queues[record->subject].name);
	wr_chrome_count(&tracks->chrome, "sequence", record->value);
	wr_chrome_end(&tracks->chrome);
}

/* --- all --- */

static char *entity_name(const struct wr_timeline *timeline, uint32_t i)
{
	const char *name = timeline->entities[i];
	const struct wr_timeline_part *part = i < timeline->part_count ? &timeline->parts[i] : NULL;

	if (!name)
		return wr_format("entity %" PRIu32, i);
	if (part && part->part == WR_PART_INSTANCE)
		return wr_format("%s[%" PRIu32 "]", name, part->number);
	return part && part->part == WR_PART_ORDERS ? wr_format("%s: order", name) : wr_strdup(name);
}

/* An entity or queue whose name was lost, as memory ran out, has its number. */
static weir_status make_names(struct wr_tracks *tracks)
{
	const struct wr_timeline *timeline = tracks->timeline;
	bool made = true;

	for (uint32_t i = 0; made && i < timeline->entity_count; i++) {
		tracks->entities[i].name = entity_name(timeline, i);
		if (i < timeline->part_count)
			tracks->entities[i].part = timeline->parts[i];
		made = tracks->entities[i].name;
	}
	for (uint32_t i = 0; made && i < timeline->queue_count; i++) {
		const struct wr_timeline_queue *queue = &timeline->queues[i];

		/* both ends are parts of one entity */
		tracks->queues[i].inside =
			queue->sender < timeline->part_count && queue->receiver < timeline->part_count &&
			timeline->parts[queue->sender].part && timeline->parts[queue->receiver].part &&
			timeline->parts[queue->sender].of == timeline->parts[queue->receiver].of;
		tracks->queues[i].name = tracks->queues[i].inside
						 ? wr_format("inside %s", timeline->entities[queue->sender])
					 : queue->from ? wr_format("%s -> %s", queue->from, queue->to)
						       : wr_format("queue %" PRIu32, i);
		made = tracks->queues[i].name;
		if (queue->receiver < timeline->entity_count) {
			tracks->queues[i].next_of_receiver = tracks->entities[queue->receiver].queues;
			tracks->entities[queue->receiver].queues = i + 1;
		}
	}
	return made ? WEIR_OK : WEIR_E_NOMEM;
}

weir_status wr_tracks_init(struct wr_tracks *tracks, const struct wr_timeline *timeline)
{
	*tracks = (struct wr_tracks){.timeline = timeline, .last = timeline->begun_at};
	tracks->lanes = wr_alloc(timeline->workers, sizeof *tracks->lanes);
	tracks->entities = wr_alloc(timeline->entity_count, sizeof *tracks->entities);
	tracks->queues = wr_alloc(timeline->queue_count, sizeof *tracks->queues);
	if (!tracks->lanes || !tracks->entities || !tracks->queues || make_names(tracks))
		return WEIR_E_NOMEM;
	return wr_merge_init(&tracks->merge, &timeline->rings);
}

void wr_tracks_finish(struct wr_tracks *tracks)
{
	wr_merge_finish(&tracks->merge);
	for (size_t i = 0; tracks->entities && i < tracks->timeline->entity_count; i++)
		wr_free(tracks->entities[i].name);
	for (size_t i = 0; tracks->queues && i < tracks->timeline->queue_count; i++)
		wr_free(tracks->queues[i].name);
	wr_free(tracks->lanes);
	wr_free(tracks->entities);
	wr_free(tracks->queues);
	wr_free(tracks->streams);
}

enum { ROWS = 4096 }; /* of an entity with its instances: these are below it */

void wr_tracks_name(struct wr_tracks *tracks)
{
	static const char *const groups[] = {
		[WR_GROUP_WORKERS] = "workers",    [WR_GROUP_DEVICE] = "device",
		[WR_GROUP_ENTITIES] = "entities",  [WR_GROUP_QUEUES] = "queues",
		[WR_GROUP_POOLS] = "memory pools", [WR_GROUP_FLIGHT] = "ticks in flight",
	};
	const struct wr_timeline *timeline = tracks->timeline;

	for (unsigned i = WR_GROUP_WORKERS; i <= WR_GROUP_FLIGHT; i++)
		wr_chrome_name_group(&tracks->chrome, i, groups[i]);
	for (unsigned i = 0; i < timeline->workers; i++) {
		char name[24];
		struct wr_words words = wr_words_in(name, sizeof name);

		wr_words_add(&words, "worker %u", i);
		wr_chrome_name_track(&tracks->chrome, lane_track(tracks, i), name, i);
	}
	wr_chrome_name_track(&tracks->chrome, lane_track(tracks, timeline->workers), "other threads",
			     timeline->workers);
	for (uint32_t i = 0; i < timeline->entity_count; i++) {
		const struct wr_timeline_part *part = &tracks->entities[i].part;
		uint64_t below = part->part == WR_PART_INSTANCE ? 1 + part->number
				 : part->part == WR_PART_ORDERS ? 1 + part->instances
								: 0;

		wr_chrome_name_track(&tracks->chrome, wr_entity_track(i), tracks->entities[i].name,
				     (part->part ? part->of : i) * (timeline->part_count ? ROWS : 1) + below);
	}
}

/* Returns whether the number of the record's subject was declared. */
static bool subject_known(const struct wr_timeline *timeline, const struct wr_record *record)
{
	switch ((enum wr_record_kind)record->kind) {
	case WR_RECORD_TAKE:
	case WR_RECORD_DELIVER:
	case WR_RECORD_DROP:
		return record->subject < timeline->queue_count;
	case WR_RECORD_POOL:
		return record->subject < timeline->pool_count;
	case WR_RECORD_SLEEP_BEGIN:
	case WR_RECORD_SLEEP_END:
		return true;
	case WR_RECORD_SPAN:
		return false;
	case WR_RECORD_TICK_BEGIN:
	case WR_RECORD_TICK_END:
	case WR_RECORD_READY:
	case WR_RECORD_WAIT:
	case WR_RECORD_ENTITY_DONE:
	case WR_RECORD_ARM:
	case WR_RECORD_FIRE:
	case WR_RECORD_COMPLETE:
	case WR_RECORD_DEVICE:
	case WR_RECORD_FLIGHT:
	case WR_RECORD_REPLAY_BEGIN:
	case WR_RECORD_REPLAY_END:
	case WR_RECORD_STEAL:
		break;
	}
	return record->subject < timeline->entity_count;
}

void wr_tracks_add(struct wr_tracks *tracks, struct wr_place place)
{
	static void (*const rows[])(struct wr_tracks * tracks, const struct wr_record *record) = {
		[WR_RECORD_TICK_BEGIN] = on_tick_begin,
		[WR_RECORD_TICK_END] = on_tick_end,
		[WR_RECORD_READY] = wr_tracks_ready,
		[WR_RECORD_WAIT] = wr_tracks_wait,
		[WR_RECORD_ENTITY_DONE] = wr_tracks_entity_done,
		[WR_RECORD_TAKE] = on_take,
		[WR_RECORD_DELIVER] = on_deliver,
		[WR_RECORD_DROP] = on_drop,
		[WR_RECORD_ARM] = wr_tracks_arm,
		[WR_RECORD_FIRE] = wr_tracks_fire,
		[WR_RECORD_COMPLETE] = wr_tracks_complete,
		[WR_RECORD_DEVICE] = wr_tracks_device,
		[WR_RECORD_POOL] = wr_tracks_pool,
		[WR_RECORD_FLIGHT] = wr_tracks_flight,
		[WR_RECORD_REPLAY_BEGIN] = on_replay_begin,
		[WR_RECORD_REPLAY_END] = on_replay_end,
		[WR_RECORD_SLEEP_BEGIN] = on_sleep_begin,
		[WR_RECORD_SLEEP_END] = on_sleep_end,
		[WR_RECORD_STEAL] = on_steal,
	};
	const struct wr_record *record = wr_ring_at(place.ring, place.index);

	tracks->place = place;
	tracks->last = record->at;
	if (subject_known(tracks->timeline, record))
		rows[record->kind](tracks, record);
}

void wr_tracks_end(struct wr_tracks *tracks, int64_t at)
{
	if (at < tracks->last)
		at = tracks->last;
	for (unsigned i = 0; i < tracks->timeline->workers; i++)
		end_row(tracks, &tracks->lanes[i], lane_track(tracks, i), at);
	for (uint32_t i = 0; i < tracks->timeline->entity_count; i++)
		wr_tracks_end_wait(tracks, i, at);
}

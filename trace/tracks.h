/*
 * Writing the rows of a timeline's file (tracks.c) while its records are read in the order of time
 * (timeline_file.c).
 */
#ifndef WR_TRACE_TRACKS_H
#define WR_TRACE_TRACKS_H

#include "trace/chrome.h"
#include "trace/timeline.h"

/* Groups of rows, in this order. */
enum wr_tracks_group {
	WR_GROUP_WORKERS = 1,
	WR_GROUP_DEVICE,
	WR_GROUP_ENTITIES,
	WR_GROUP_QUEUES,
	WR_GROUP_POOLS,
	WR_GROUP_FLIGHT
};

struct wr_tracks_lane {
	bool computing;      /* its slice is begun, its end not written */
	bool held;           /* the end is known, */
	int64_t ended_at;    /* and is this */
	bool replaying;      /* compute has returned, and captured work is launched */
	bool asleep, taking; /* taking: messages were taken for the next tick, */
	size_t takes_from;   /* from this record of its ring on */
};

struct wr_tracks_entity {
	char *name; /* of its row: "x[0]" of an instance */
	struct wr_timeline_part part;
	const char *of, *why; /* the wait whose slice is begun; of NULL: none */
	uint8_t cause;        /* and its weir_cause */
	int64_t ready_at;
	bool ready;
	uint32_t queues;  /* those that it receives from: 1 + the index of the first one; 0: none */
	uint32_t streams; /* 1 + the index of the first one; 0: none */
};

struct wr_tracks_queue {
	char *name;
	bool inside;    /* between two parts of one entity: its depth says nothing */
	uint64_t first; /* the first push in the file, if one is `seen` */
	uint64_t depth;
	uint64_t never_taken;      /* pushes that were refused, or came too late */
	bool seen, closed;         /* closed: its receiver is done */
	uint32_t next_of_receiver; /* 1 + the index of its receiver's next one */
};

struct wr_tracks_stream {
	uint32_t entity, next; /* next: 1 + the index of the entity's next one */
	const char *name;
	int64_t ended_at;
};

struct wr_tracks {
	const struct wr_timeline *timeline;
	struct wr_chrome chrome;
	struct wr_merge merge;
	struct wr_tracks_lane *lanes; /* of the workers */
	struct wr_tracks_entity *entities;
	struct wr_tracks_queue *queues;
	struct wr_tracks_stream *streams;
	size_t stream_count, stream_room;
	int64_t last;          /* time of the last record */
	struct wr_place place; /* of the record that is written */
};

/* Fails: WEIR_E_NOMEM. */
weir_status wr_tracks_init(struct wr_tracks *tracks, const struct wr_timeline *timeline);
void wr_tracks_finish(struct wr_tracks *tracks); /* a zeroed one is fine */
void wr_tracks_name(struct wr_tracks *tracks);   /* names the groups and the rows */
void wr_tracks_add(struct wr_tracks *tracks, struct wr_place place);
void wr_tracks_end(struct wr_tracks *tracks, int64_t at); /* ends what is begun */

void wr_tracks_show_depth(struct wr_tracks *tracks, uint32_t queue, int64_t at);

/* --- tracks_entities.c --- */
/* Begins an event that is a tick of the entity, up to its arguments, which may follow. */
void wr_tracks_tick(struct wr_tracks *tracks, char phase, struct wr_track track, int64_t at, uint32_t id);
/* The arguments that say which tick it is. */
void wr_tracks_tick_args(struct wr_tracks *tracks, uint32_t id, uint64_t tick);
struct wr_track wr_entity_track(uint32_t id);
void wr_tracks_end_wait(struct wr_tracks *tracks, uint32_t id, int64_t at);
/* One per kind of record. */
void wr_tracks_wait(struct wr_tracks *tracks, const struct wr_record *record);
void wr_tracks_ready(struct wr_tracks *tracks, const struct wr_record *record);
void wr_tracks_entity_done(struct wr_tracks *tracks, const struct wr_record *record);
void wr_tracks_arm(struct wr_tracks *tracks, const struct wr_record *record);
void wr_tracks_fire(struct wr_tracks *tracks, const struct wr_record *record);
void wr_tracks_complete(struct wr_tracks *tracks, const struct wr_record *record);
void wr_tracks_device(struct wr_tracks *tracks, const struct wr_record *record);
void wr_tracks_pool(struct wr_tracks *tracks, const struct wr_record *record);
void wr_tracks_flight(struct wr_tracks *tracks, const struct wr_record *record);

#endif

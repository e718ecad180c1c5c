/*
 * The records of a timeline: one ring of fixed size per lane. A lane is a worker, or all other threads
 * together; it has one writer at a time. When a ring is full the oldest record is overwritten, and how many
 * were is known. All memory is allocated at creation (pages that are not reached cost nothing).
 */
#ifndef WR_TRACE_RING_H
#define WR_TRACE_RING_H

#include "base/thread.h"

enum wr_record_kind {
	WR_RECORD_TICK_BEGIN = 1, /* subject: the entity; value: the tick */
	WR_RECORD_TICK_END,
	WR_RECORD_READY,
	WR_RECORD_WAIT, /* value, more: pointers to the condition and its reason */
	WR_RECORD_ENTITY_DONE,
	WR_RECORD_TAKE, /* subject: the queue; value: the message's sequence */
	WR_RECORD_DELIVER,
	WR_RECORD_DROP,
	WR_RECORD_ARM, /* subject: the entity; value: the token; more: enum wr_trace_signal */
	WR_RECORD_FIRE,
	WR_RECORD_COMPLETE, /* value: the tick */
	WR_RECORD_DEVICE,   /* value: the tick; more: a pointer to the stream's name. Followed by SPAN */
	WR_RECORD_SPAN,     /* at, value: begin and end of the device's work; more: a pointer to the source */
	WR_RECORD_POOL,     /* subject: the pool; value: what is used */
	WR_RECORD_FLIGHT,   /* value: ticks in flight */
	WR_RECORD_REPLAY_BEGIN, /* value: 1: it captures */
	WR_RECORD_REPLAY_END,
	WR_RECORD_SLEEP_BEGIN,
	WR_RECORD_SLEEP_END,
	WR_RECORD_STEAL,
};

struct wr_record {
	int64_t at;
	uint64_t value, more;
	uint32_t subject;
	uint8_t kind, cause; /* enum wr_record_kind; of WAIT: weir_cause */
	uint16_t lane;
};
_Static_assert(sizeof(struct wr_record) == 32, "two records fill a cache line");

struct wr_ring {
	_Alignas(64) struct wr_record *records;
	size_t room, next; /* next: where the next record goes */
	uint64_t written;  /* since it was cleared */
	int64_t last;      /* stamp of the last record */
};

weir_status wr_ring_init(struct wr_ring *ring, size_t room);
void wr_ring_finish(struct wr_ring *ring); /* a zeroed one is fine */
void wr_ring_clear(struct wr_ring *ring);
size_t wr_ring_count(const struct wr_ring *ring); /* records that are kept */
/* The i-th record that is kept, the oldest first. */
const struct wr_record *wr_ring_at(const struct wr_ring *ring, size_t i);

/* Writes over the oldest record. The stamps of a ring never decrease. Thread: the ring's only writer. */
static inline void wr_ring_add(struct wr_ring *ring, const struct wr_record *record)
{
	struct wr_record *slot = &ring->records[ring->next];

	*slot = *record;
	if (record->kind != WR_RECORD_SPAN) {
		if (slot->at < ring->last)
			slot->at = ring->last;
		ring->last = slot->at;
	}
	if (++ring->next == ring->room)
		ring->next = 0;
	ring->written++;
}

#define WR_RING_OUTSIDE UINT16_MAX /* wr_record.lane: not a worker */

/*
 * The rings of one scheduler. In a simulated world all lanes write one ring: they are fibers of one thread,
 * so the order of the records is the order of the events even where virtual time stands still.
 */
struct wr_rings {
	struct wr_ring *rings; /* of the workers, then of all other threads */
	size_t count;
	bool locks;           /* false in a simulated world */
	struct wr_mutex lock; /* of the last ring */
};

/* Gives a ring of `room` records per worker and one for other threads; if `simulated` one for all. */
weir_status wr_rings_init(struct wr_rings *rings, unsigned workers, size_t room, bool simulated);
void wr_rings_finish(struct wr_rings *rings);
void wr_rings_clear(struct wr_rings *rings); /* Thread: one that no writer runs beside but outside ones */
/* Adds one or two records, side by side, to the ring of the first one's lane. Thread: that lane's. */
void wr_rings_add(struct wr_rings *rings, const struct wr_record *records, size_t count);

/*
 * Reads all rings in the order of time; no worker runs. A ring that overwrote records begins late: what the
 * others have from before is left out, so that all that is read is complete.
 */
struct wr_merge {
	const struct wr_rings *rings;
	size_t *next;     /* by ring: the record that is read next */
	size_t current;   /* the ring that is read, */
	int64_t until;    /* up to this time */
	uint64_t dropped; /* records that were overwritten or left out */
	int64_t from;     /* the time of the first one that is not left out; INT64_MIN: nothing is */
};

/* A record, and its place in its ring. */
struct wr_place {
	const struct wr_ring *ring;
	size_t index;
};

weir_status wr_merge_init(struct wr_merge *merge, const struct wr_rings *rings); /* fails: WEIR_E_NOMEM */
void wr_merge_finish(struct wr_merge *merge);
/* Gives the next record; a SPAN is skipped, as it belongs to the one before it. Returns false at the end. */
bool wr_merge_next(struct wr_merge *merge, struct wr_place *out);

#endif

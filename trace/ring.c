#include "trace/ring.h"

#include "base/memory.h"

weir_status wr_ring_init(struct wr_ring *ring, size_t room)
{
	*ring = (struct wr_ring){.room = room, .last = INT64_MIN};
	if (room > PTRDIFF_MAX / sizeof(struct wr_record)) {
		room = PTRDIFF_MAX / sizeof(struct wr_record); /* which fails */
	}
	ring->records = wr_alloc_aligned(64, room * sizeof(struct wr_record));
	return ring->records ? WEIR_OK : WEIR_E_NOMEM;
}

void wr_ring_finish(struct wr_ring *ring)
{
	wr_free(ring->records);
	ring->records = NULL;
}

void wr_ring_clear(struct wr_ring *ring)
{
	ring->next = 0;
	ring->written = 0;
	ring->last = INT64_MIN;
}

size_t wr_ring_count(const struct wr_ring *ring)
{
	return ring->written < ring->room ? (size_t)ring->written : ring->room;
}

const struct wr_record *wr_ring_at(const struct wr_ring *ring, size_t i)
{
	size_t first = ring->written < ring->room ? 0 : ring->next;

	return &ring->records[i < ring->room - first ? first + i : i - (ring->room - first)];
}

/* --- the rings of a scheduler --- */

weir_status wr_rings_init(struct wr_rings *rings, unsigned workers, size_t room, bool simulated)
{
	size_t count = simulated ? 1 : (size_t)workers + 1;
	weir_status status = WEIR_OK;

	*rings = (struct wr_rings){.rings = wr_alloc_aligned(64, count * sizeof(struct wr_ring))};
	if (!rings->rings)
		return WEIR_E_NOMEM;
	for (; !status && rings->count < count; rings->count++)
		status = wr_ring_init(&rings->rings[rings->count], room);
	if (!status && !simulated) {
		status = wr_mutex_init(&rings->lock);
		rings->locks = !status;
	}
	if (status)
		wr_rings_finish(rings);
	return status;
}

void wr_rings_finish(struct wr_rings *rings)
{
	if (rings->locks)
		wr_mutex_finish(&rings->lock);
	for (size_t i = 0; i < rings->count; i++)
		wr_ring_finish(&rings->rings[i]);
	wr_free(rings->rings);
	*rings = (struct wr_rings){0};
}

static void last_lock(struct wr_rings *rings)
{
	if (rings->locks)
		wr_mutex_lock(&rings->lock);
}

static void last_unlock(struct wr_rings *rings)
{
	if (rings->locks)
		wr_mutex_unlock(&rings->lock);
}

void wr_rings_clear(struct wr_rings *rings)
{
	last_lock(rings);
	for (size_t i = 0; i < rings->count; i++)
		wr_ring_clear(&rings->rings[i]);
	last_unlock(rings);
}

/*
 * The lock is the innermost: it is held for the copy of two records, and nothing is called meanwhile. So the
 * thread of a device callback may take it, too.
 */
static void add_to_last(struct wr_rings *rings, const struct wr_record *records, size_t count)
{
	last_lock(rings);
	for (size_t i = 0; i < count; i++)
		wr_ring_add(&rings->rings[rings->count - 1], &records[i]);
	last_unlock(rings);
}

void wr_rings_add(struct wr_rings *rings, const struct wr_record *records, size_t count)
{
	size_t lane = records->lane;

	if (lane >= rings->count - 1) {
		add_to_last(rings, records, count);
		return;
	}
	for (size_t i = 0; i < count; i++)
		wr_ring_add(&rings->rings[lane], &records[i]);
}

/* --- reading --- */

static int64_t ring_begin(const struct wr_ring *ring)
{
	return wr_ring_count(ring) ? wr_ring_at(ring, 0)->at : INT64_MIN;
}

/* Returns whether the ring has a record to read, past spans; *at: its time. */
static bool ring_next(struct wr_merge *merge, size_t i, int64_t *at)
{
	const struct wr_ring *ring = &merge->rings->rings[i];
	size_t count = wr_ring_count(ring);

	while (merge->next[i] < count && wr_ring_at(ring, merge->next[i])->kind == WR_RECORD_SPAN)
		merge->next[i]++;
	if (merge->next[i] == count)
		return false;
	*at = wr_ring_at(ring, merge->next[i])->at;
	return true;
}

weir_status wr_merge_init(struct wr_merge *merge, const struct wr_rings *rings)
{
	*merge = (struct wr_merge){.rings = rings, .from = INT64_MIN, .until = INT64_MIN};
	merge->next = wr_alloc(rings->count, sizeof *merge->next);
	if (!merge->next)
		return WEIR_E_NOMEM;
	for (size_t i = 0; i < rings->count; i++) {
		const struct wr_ring *ring = &rings->rings[i];

		if (ring->written > ring->room && ring_begin(ring) > merge->from)
			merge->from = ring_begin(ring);
	}
	for (size_t i = 0; i < rings->count; i++) {
		const struct wr_ring *ring = &rings->rings[i];
		int64_t at;

		while (ring_next(merge, i, &at) && at < merge->from)
			merge->next[i]++;
		merge->dropped += ring->written - wr_ring_count(ring) + merge->next[i];
	}
	return WEIR_OK;
}

void wr_merge_finish(struct wr_merge *merge)
{
	wr_free(merge->next);
	merge->next = NULL;
}

/* Chooses the ring with the oldest record, and how far it may be read before another one is older. */
static bool choose_ring(struct wr_merge *merge)
{
	int64_t least = INT64_MAX, at;
	bool found = false;

	merge->until = INT64_MAX;
	for (size_t i = 0; i < merge->rings->count; i++) {
		if (!ring_next(merge, i, &at))
			continue;
		if (!found || at < least) {
			merge->until = found ? least - 1 : INT64_MAX; /* the other ring goes first if equal */
			merge->current = i;
			least = at;
			found = true;
		} else if (at < merge->until) {
			merge->until = at;
		}
	}
	return found;
}

bool wr_merge_next(struct wr_merge *merge, struct wr_place *out)
{
	int64_t at;

	if ((!ring_next(merge, merge->current, &at) || at > merge->until) && !choose_ring(merge))
		return false;
	*out = (struct wr_place){&merge->rings->rings[merge->current], merge->next[merge->current]++};
	return true;
}

/*
 * The table of streams. A stream is entered once; each time it is opened it gets a new id. open.c creates
 * streams.
 *
 * A closed stream is reused once all values recorded on it were seen complete. Several streams may share one
 * native stream, the root's. A root is not reused while it has sharers, and a sharer counts until it is
 * closed and drained, since its work is on the root's queue.
 *
 * system->lock is taken in this file only; nothing is created and no device queried under it. It guards
 * opening and the counts of sharers. Finding a stream takes no lock: a place of the table is written once,
 * with release, before the count that bounds all searches, and its stream is freed with the system. The id,
 * written last, tells which open the stream belongs to.
 */
#include "streams/table.h"

#include "base/memory.h"
#include "base/status.h"
#include "streams/device.h"
#include "streams/system.h"

/* --- entering a stream --- */

static weir_status table_enter_locked(struct wr_system *system, weir_stream *stream)
{
	uint32_t index = wr_load(&system->count);
	struct wr_page *page;

	if (index == WR_PAGES * WR_PAGE)
		return wr_fail(WEIR_E_INVALID, "more than %d streams in one graph", WR_PAGES * WR_PAGE);
	page = wr_load(&system->table[index / WR_PAGE]);
	if (!page) {
		page = wr_alloc(1, sizeof *page);
		if (!page)
			return WEIR_E_NOMEM;
		wr_store_release(&system->table[index / WR_PAGE], page);
	}
	stream->index = index;
	wr_store_release(&page->streams[index % WR_PAGE], stream);
	wr_store(&system->count, index + 1);
	return WEIR_OK;
}

/* Writes the id last: from here on the stream is found by it. */
static void stream_set_id_locked(weir_stream *stream, const char *owner)
{
	uint64_t serial = wr_fetch_add(&stream->system->serials, 1) + 1;

	for (int i = 0; i < WR_WAITED; i++)
		stream->waited[i] = (weir_fence){0, 0};
	stream->in_tick = false;
	stream->kick_value = 0;
	wr_store(&stream->owner, owner ? owner : "?");
	wr_store(&stream->dirty, false);
	wr_store(&stream->flag_after_record, false);
	if (wr_exchange(&stream->closed, false))
		wr_fetch_sub(&stream->system->closed_count, 1);
	wr_store(&stream->id, stream->system->serial << 48 | serial << 16 | stream->index);
}

/* --- reuse --- */

/* Queries the device, so the lock is not held. */
static void query_closed(struct wr_system *system)
{
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);

		if (wr_load(&stream->closed))
			wr_stream_idle(stream);
	}
}

/*
 * One still dirty, or with a flag after its last record, could not be recorded: the end of its work is
 * unknown.
 */
static bool known_drained(weir_stream *stream)
{
	return wr_load(&stream->closed) && !wr_load(&stream->dirty) && !wr_load(&stream->flag_after_record) &&
	       !wr_load(&stream->inline_callbacks) &&
	       wr_load(&stream->completed) >= wr_load(&stream->submitted);
}

static void uncount_drained_locked(struct wr_system *system)
{
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);

		if (!stream->sharing || !known_drained(stream))
			continue;
		stream->sharing = false;
		wr_load(&stream->root)->sharers--;
	}
}

static bool same_spec(const struct wr_stream_spec *a, const struct wr_stream_spec *b)
{
	return a->device == b->device && a->flags == b->flags && a->priority == b->priority &&
	       a->partition == b->partition;
}

/* A sharer may share any other root of the device the next time. */
static bool is_of_kind_locked(const weir_stream *stream, const struct wr_stream_kind *kind)
{
	bool shares = wr_load(&stream->root) != stream;

	if (shares != (kind->root != NULL) || stream->spec.device != kind->spec.device)
		return false;
	return shares || (same_spec(&stream->spec, &kind->spec) && stream->pool == kind->pool &&
			  stream->wrapped == kind->wrapped);
}

/*
 * A sharer seen drained only after uncount_drained_locked is still counted at its root; a later open finds
 * it. The search begins after the last stream found, so that one of many free streams is found at once.
 */
static weir_stream *table_find_free_locked(struct wr_system *system, const struct wr_stream_kind *kind)
{
	uint32_t count = wr_load(&system->count);

	for (uint32_t i = 0; i < count; i++) {
		weir_stream *stream;

		system->search_from = system->search_from + 1 < count ? system->search_from + 1 : 0;
		stream = wr_stream_at(system, system->search_from);
		if (is_of_kind_locked(stream, kind) && known_drained(stream) && !stream->sharers &&
		    !stream->sharing)
			return stream;
	}
	return NULL;
}

static void stream_set_root_locked(weir_stream *stream, const struct wr_stream_kind *kind)
{
	if (kind->root || kind->wrapped) {
		wr_store(&stream->native, kind->native);
		stream->queue = kind->native;
	}
	if (!kind->root)
		return;
	wr_store(&stream->root, kind->root); /* the caller has counted it there */
	stream->sharing = true;
}

/* `thorough`: also queries closed streams that were not seen drained yet. */
static weir_stream *table_find_and_reopen(struct wr_system *system, const struct wr_stream_kind *kind,
					  const char *owner, bool thorough)
{
	weir_stream *found;

	if (thorough)
		query_closed(system);
	wr_mutex_lock(&system->lock);
	if (thorough)
		uncount_drained_locked(system);
	found = table_find_free_locked(system, kind);
	if (found) {
		stream_set_root_locked(found, kind);
		stream_set_id_locked(found, owner);
	}
	wr_mutex_unlock(&system->lock);
	return found;
}

weir_stream *wr_table_reuse(struct wr_system *system, const struct wr_stream_kind *kind, const char *owner)
{
	weir_stream *found;

	if (!wr_load(&system->closed_count))
		return NULL;
	found = table_find_and_reopen(system, kind, owner, false);
	return found ? found : table_find_and_reopen(system, kind, owner, true);
}

weir_status wr_table_enter(weir_stream *stream, const struct wr_stream_kind *kind, const char *owner)
{
	struct wr_system *system = stream->system;
	weir_status status;

	wr_mutex_lock(&system->lock);
	stream_set_root_locked(stream, kind);
	status = table_enter_locked(system, stream);
	if (!status)
		stream_set_id_locked(stream, owner);
	wr_mutex_unlock(&system->lock);
	return status;
}

/* --- sharing --- */

static weir_stream *root_count_in_locked(weir_stream *stream)
{
	wr_load(&stream->root)->sharers++;
	return wr_load(&stream->root);
}

weir_stream *wr_table_add_sharer(weir_stream *stream)
{
	weir_stream *root;

	wr_mutex_lock(&stream->system->lock);
	root = root_count_in_locked(stream);
	wr_mutex_unlock(&stream->system->lock);
	return root;
}

/*
 * The native stream of a closed wrapped stream belongs to the program again and may be gone. A sharer that is
 * not counted at its root any more has drained, and its root may have been reused.
 */
static bool may_be_shared_locked(weir_stream *stream)
{
	weir_stream *root = wr_load(&stream->root);

	return (root == stream || stream->sharing) && !(root->wrapped && wr_load(&root->closed));
}

weir_stream *wr_table_add_sharer_by_id(struct wr_system *system, uint64_t id)
{
	weir_stream *stream, *root = NULL;

	wr_mutex_lock(&system->lock);
	stream = wr_stream_find(system, id);
	if (stream && may_be_shared_locked(stream))
		root = root_count_in_locked(stream);
	wr_mutex_unlock(&system->lock);
	return root;
}

void wr_table_drop_sharer(weir_stream *root)
{
	wr_mutex_lock(&root->system->lock);
	root->sharers--;
	wr_mutex_unlock(&root->system->lock);
}

/* --- closing --- */

bool wr_table_close(weir_stream *stream)
{
	wr_store(&stream->owner, "a closed stream");
	wr_fetch_add(&stream->system->closed_count, 1);
	if (!wr_exchange(&stream->closed, true)) /* from here on it may be reused */
		return true;
	wr_fetch_sub(&stream->system->closed_count, 1);
	return false;
}

bool wr_table_close_unshared(weir_stream *stream)
{
	struct wr_system *system = stream->system;
	bool shared;

	query_closed(system);
	wr_mutex_lock(&system->lock);
	uncount_drained_locked(system);
	shared = stream->sharers > 0;
	if (!shared)
		wr_table_close(stream);
	wr_mutex_unlock(&system->lock);
	return !shared;
}

/* --- life --- */

void wr_stream_free(weir_stream *stream)
{
	struct wr_system *system = stream->system;
	void *native = wr_load(&stream->native);

	wr_event_rings_free(stream);
	if (native && wr_load(&stream->root) == stream && !stream->wrapped)
		wr_device_stream_destroy(system, native);
	wr_free(stream);
}

weir_status wr_table_init(struct wr_system *system)
{
	system->defaults = wr_alloc((size_t)system->devices, sizeof *system->defaults);
	return system->defaults ? WEIR_OK : WEIR_E_NOMEM;
}

void wr_table_finish(struct wr_system *system)
{
	for (uint32_t i = 0; i < wr_load(&system->count); i++)
		wr_stream_free(wr_stream_at(system, i));
	for (int i = 0; i < WR_PAGES; i++)
		wr_free(wr_load(&system->table[i]));
	wr_free((void *)system->defaults);
}

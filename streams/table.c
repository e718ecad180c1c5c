/*
 * The table of streams: entered once, named, given back, named again. What is made and for whom stands in
 * open.c.
 *
 * A stream is given out again once all that was recorded on it was seen complete. Several streams may share
 * one native stream, the root's. A root is not given out again while somebody shares it, and who shares it
 * counts until he has closed and is drained, since what he left lies on the root's queue.
 *
 * system->lock is taken in this file alone, and under it nothing is made and no device asked. It guards who
 * is given out and the counts of who shares. A stream is found without it: a place of the table is written
 * once, with release, before the count that bounds who looks, and its stream is freed with the system. Whose
 * it is now says its id, which is written last.
 */
#include "streams/table.h"

#include "base/memory.h"
#include "base/status.h"
#include "streams/system.h"

weir_stream *wr_stream_at(struct wr_system *system, uint32_t index)
{
	struct wr_page *page = wr_load_acquire(&system->table[index / WR_PAGE]);

	return page ? wr_load_acquire(&page->streams[index % WR_PAGE]) : NULL;
}

static weir_status enter_table_locked(struct wr_system *system, weir_stream *stream)
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

/* The id is the last thing that a fence could name: from here on the stream is found. */
static void name_locked(weir_stream *stream, const char *owner)
{
	uint64_t serial = wr_fetch_add(&stream->system->serials, 1) + 1;

	for (int i = 0; i < WR_WAITED; i++)
		stream->waited[i] = (weir_fence){0, 0};
	stream->begun = false;
	stream->expected = 0;
	wr_store(&stream->owner, owner ? owner : "?");
	wr_store(&stream->dirty, false);
	wr_store(&stream->flag_after_record, false);
	if (wr_exchange(&stream->closed, false))
		wr_fetch_sub(&stream->system->lying, 1);
	wr_store(&stream->id, stream->system->serial << 48 | serial << 16 | stream->index);
}

/* --- again --- */

/* Asks the device, so without the lock. */
static void look_at_closed(struct wr_system *system)
{
	for (uint32_t i = 0; i < wr_load(&system->count); i++) {
		weir_stream *stream = wr_stream_at(system, i);

		if (wr_load(&stream->closed))
			wr_stream_idle(stream);
	}
}

/* Still dirty or trailing: its last record was refused, so nobody knows when what is on it ends. */
static bool known_drained(weir_stream *stream)
{
	return wr_load(&stream->closed) && !wr_load(&stream->dirty) && !wr_load(&stream->flag_after_record) &&
	       !wr_load(&stream->inlined) && wr_load(&stream->completed) >= wr_load(&stream->submitted);
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

/* One that shares may share any other's queue the next time. */
static bool is_of_kind_locked(const weir_stream *stream, const struct wr_stream_kind *kind)
{
	bool shares = wr_load(&stream->root) != stream;

	if (shares != (kind->root != NULL) || stream->spec.device != kind->spec.device)
		return false;
	return shares || (same_spec(&stream->spec, &kind->spec) && stream->pool == kind->pool &&
			  stream->wrapped == kind->wrapped);
}

/*
 * What was seen drained only since uncount_drained_locked is still counted at its root: it waits for the next
 * who opens. Begins behind the last one that was found: of many that lie ready each is found at once.
 */
static weir_stream *find_free_locked(struct wr_system *system, const struct wr_stream_kind *kind)
{
	uint32_t count = wr_load(&system->count);

	for (uint32_t i = 0; i < count; i++) {
		weir_stream *stream;

		system->looked = system->looked + 1 < count ? system->looked + 1 : 0;
		stream = wr_stream_at(system, system->looked);
		if (is_of_kind_locked(stream, kind) && known_drained(stream) && !stream->sharers &&
		    !stream->sharing)
			return stream;
	}
	return NULL;
}

static void take_on_locked(weir_stream *stream, const struct wr_stream_kind *kind)
{
	if (kind->root || kind->wrapped)
		wr_store(&stream->native, kind->native);
	if (!kind->root)
		return;
	wr_store(&stream->root, kind->root); /* who opens has counted it there */
	stream->sharing = true;
}

/* `thorough`: also what nobody has seen drained yet. */
static weir_stream *look_for(struct wr_system *system, const struct wr_stream_kind *kind, const char *owner,
			     bool thorough)
{
	weir_stream *found;

	if (thorough)
		look_at_closed(system);
	wr_mutex_lock(&system->lock);
	if (thorough)
		uncount_drained_locked(system);
	found = find_free_locked(system, kind);
	if (found) {
		take_on_locked(found, kind);
		name_locked(found, owner);
	}
	wr_mutex_unlock(&system->lock);
	return found;
}

weir_stream *wr_table_reuse(struct wr_system *system, const struct wr_stream_kind *kind, const char *owner)
{
	weir_stream *found;

	if (!wr_load(&system->lying))
		return NULL;
	found = look_for(system, kind, owner, false);
	return found ? found : look_for(system, kind, owner, true);
}

weir_status wr_table_enter(weir_stream *stream, const struct wr_stream_kind *kind, const char *owner)
{
	struct wr_system *system = stream->system;
	weir_status status;

	wr_mutex_lock(&system->lock);
	take_on_locked(stream, kind);
	status = enter_table_locked(system, stream);
	if (!status)
		name_locked(stream, owner);
	wr_mutex_unlock(&system->lock);
	return status;
}

/* --- sharing --- */

static weir_stream *count_in_locked(weir_stream *stream)
{
	wr_load(&stream->root)->sharers++;
	return wr_load(&stream->root);
}

weir_stream *wr_table_count_in(weir_stream *stream)
{
	weir_stream *root;

	wr_mutex_lock(&stream->system->lock);
	root = count_in_locked(stream);
	wr_mutex_unlock(&stream->system->lock);
	return root;
}

weir_stream *wr_stream_find(struct wr_system *system, uint64_t id)
{
	weir_stream *stream =
		id && (id & 0xffff) < wr_load(&system->count) ? wr_stream_at(system, id & 0xffff) : NULL;

	return stream && wr_load(&stream->id) == id ? stream : NULL;
}

/*
 * The native stream of a wrapped one that was closed is its maker's alone: it may be gone. A view that is not
 * counted at its root any more has drained, and its root may be somebody else's.
 */
static bool may_be_shared_locked(weir_stream *stream)
{
	weir_stream *root = wr_load(&stream->root);

	return (root == stream || stream->sharing) && !(root->wrapped && wr_load(&root->closed));
}

weir_stream *wr_table_count_in_by_id(struct wr_system *system, uint64_t id)
{
	weir_stream *stream, *root = NULL;

	wr_mutex_lock(&system->lock);
	stream = wr_stream_find(system, id);
	if (stream && may_be_shared_locked(stream))
		root = count_in_locked(stream);
	wr_mutex_unlock(&system->lock);
	return root;
}

void wr_table_count_out(weir_stream *root)
{
	wr_mutex_lock(&root->system->lock);
	root->sharers--;
	wr_mutex_unlock(&root->system->lock);
}

/* --- giving back --- */

void wr_table_close(weir_stream *stream)
{
	struct wr_stream_pool *pool = stream->pool;

	wr_store(&stream->owner, "a closed stream");
	wr_fetch_add(&stream->system->lying, 1);
	if (wr_exchange(&stream->closed, true)) /* from here on it may be somebody else's */
		wr_fetch_sub(&stream->system->lying, 1);
	else if (pool)
		wr_stream_pool_gave_back(pool);
}

bool wr_table_close_unshared(weir_stream *stream)
{
	struct wr_system *system = stream->system;
	bool shared;

	look_at_closed(system);
	wr_mutex_lock(&system->lock);
	uncount_drained_locked(system);
	shared = stream->sharers > 0;
	if (!shared)
		wr_table_close(stream);
	wr_mutex_unlock(&system->lock);
	return !shared;
}

/* --- life --- */

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
